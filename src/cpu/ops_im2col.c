/* SPDX-License-Identifier: MIT */
/* IM2COL: each row of the result is the patch of the image under the kernel at one place, channels outermost, zeros
 * where the kernel hangs over. A row is gathered in the image's type, then converted if the result has another. */
#include <string.h>

#include "core/op.h"
#include "cpu/rows.h"

/* The image as [W, H, C, N] and the kernel's extents, for one and two dimensions alike. */
struct patches {
    const char * image;
    int64_t w, h, channels;
    size_t nb_w, nb_h, nb_c, nb_n, size;
    int64_t kw, kh;
    struct params_im2col p;
};

static struct patches patches_of(const struct sotto_tensor * node) {
    const struct sotto_tensor *a = node->src[0], *b = node->src[1];
    struct patches s = { .image = b->data, .w = b->ne[0], .nb_w = b->nb[0], .kw = a->ne[0] };
    memcpy(&s.p, node->op_params, sizeof(s.p));
    const int d = s.p.is_2D ? 2 : 1; /* the channels' dimension in both */
    s.h = s.p.is_2D ? b->ne[1] : 1;
    s.nb_h = s.p.is_2D ? b->nb[1] : 0;
    s.kh = s.p.is_2D ? a->ne[1] : 1;
    s.channels = b->ne[d];
    s.nb_c = b->nb[d];
    s.nb_n = b->nb[d + 1];
    s.size = sotto_type_size(b->type);
    return s;
}

static bool supports(const struct sotto_tensor * node) {
    return sotto_i_none_packed(node) && sotto_i_is_float(node->src[1]->type) && sotto_i_is_float(node->type);
}

static void prepare(const struct sotto_tensor * node, int n_threads, struct sotto_i_cpu_work * work) {
    const enum sotto_type type = node->src[1]->type;
    sotto_i_prepare_units(sotto_nrows(node), sotto_nelements(node), n_threads, work);
    if (type != node->type)
        work->scratch = (size_t)node->ne[0] * sotto_type_size(type);
}

/* One line of kw elements: those of [lo, hi) come from the image, starting at `from`. */
static char * gather_line(const struct patches * s, const char * from, int64_t lo, int64_t hi, char * to) {
    const size_t step = (size_t)s->p.d0 * s->nb_w;
    memset(to, 0, (size_t)lo * s->size);
    to += (size_t)lo * s->size;
    if (s->size == sizeof(float))
        for (int64_t i = lo; i < hi; i++, from += step, to += sizeof(float))
            memcpy(to, from, sizeof(float));
    else
        for (int64_t i = lo; i < hi; i++, from += step, to += sizeof(uint16_t))
            memcpy(to, from, sizeof(uint16_t));
    memset(to, 0, (size_t)(s->kw - hi) * s->size);
    return to + (size_t)(s->kw - hi) * s->size;
}

/* First kernel column at or behind image column `limit`, when column 0 lies at x. */
static int64_t first_at(int64_t x, int64_t limit, int64_t dilation, int64_t kw) {
    if (x >= limit)
        return 0;
    const int64_t i = (limit - x + dilation - 1) / dilation;
    return i < kw ? i : kw;
}

static void gather(const struct patches * s, int64_t ow, int64_t oh, int64_t n, char * to) {
    const int64_t x = ow * s->p.s0 - s->p.p0, y = s->p.is_2D ? oh * s->p.s1 - s->p.p1 : 0;
    const int64_t lo = first_at(x, 0, s->p.d0, s->kw), hi = first_at(x, s->w, s->p.d0, s->kw);
    for (int64_t c = 0; c < s->channels; c++) {
        const char * plane = s->image + (size_t)n * s->nb_n + (size_t)c * s->nb_c;
        for (int64_t k = 0; k < s->kh; k++) {
            const int64_t row = y + k * s->p.d1;
            const bool inside = row >= 0 && row < s->h && lo < hi;
            const char * line = inside ? plane + (size_t)row * s->nb_h + (size_t)(x + lo * s->p.d0) * s->nb_w : plane;
            to = gather_line(s, line, inside ? lo : s->kw, inside ? hi : s->kw, to);
        }
    }
}

static void convert(const struct sotto_i_vec_kernels * k, const struct sotto_i_operand * from, const char * row,
                    const struct sotto_i_operand * to, char * to_row) {
    float buffer[SOTTO_I_PIECE];
    for (int64_t i = 0; i < to->ne[0]; i += SOTTO_I_PIECE) {
        const int64_t n = to->ne[0] - i < SOTTO_I_PIECE ? to->ne[0] - i : SOTTO_I_PIECE;
        sotto_i_store(k, to, to_row, i, n, sotto_i_load(k, from, row, i, n, buffer));
    }
}

static enum sotto_status run(const struct sotto_i_cpu_task * task, struct sotto_tensor * node, int64_t chunk,
                             int64_t n_chunks) {
    const struct patches s = patches_of(node);
    const struct sotto_i_operand y = sotto_i_as_operand(node);
    const struct sotto_i_operand dense = {
        .type = node->src[1]->type, .size = s.size, .ne = { y.ne[0], 1, 1, 1 }, .nb = { s.size }
    };
    int64_t r, last;
    sotto_i_chunk_range(sotto_nrows(node), chunk, n_chunks, &r, &last);
    for (; r < last; r++) {
        const int64_t i1 = r % y.ne[1], i2 = r / y.ne[1] % y.ne[2], i3 = r / y.ne[1] / y.ne[2];
        char * row = sotto_i_operand_row(&y, i1, i2, i3);
        char * to = dense.type == y.type ? row : task->scratch;
        gather(&s, i1, s.p.is_2D ? i2 : 0, s.p.is_2D ? i3 : i2, to);
        if (to != row)
            convert(&task->kernels->vec, &dense, to, &y, row);
    }
    return SOTTO_OK;
}

const struct sotto_i_cpu_op sotto_i_cpu_IM2COL = { supports, prepare, run };
