/* SPDX-License-Identifier: MIT */
/* IM2COL: each row of the result is the patch of the image under the kernel at one place, channels outermost, zeros
 * where the kernel hangs over. Rows are gathered in the image's type, then converted if the result has another. */
#include <string.h>

#include "core/op.h"
#include "cpu/rows.h"

enum { BLOCK = 16 }; /* rows that are gathered together */

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
        work->scratch = BLOCK * (size_t)node->ne[0] * sotto_type_size(type);
}

/* Where a kernel line at output column ow meets the image: kernel columns [lo, hi), the first at image column x. */
struct span {
    int64_t lo, hi, x;
};

/* First kernel column at or behind image column `limit`, when kernel column 0 lies at x. */
static int64_t first_at(int64_t x, int64_t limit, int64_t dilation, int64_t kw) {
    if (x >= limit)
        return 0;
    const int64_t i = (limit - x + dilation - 1) / dilation;
    return i < kw ? i : kw;
}

static struct span span_at(const struct patches * s, int64_t ow) {
    const int64_t x = ow * s->p.s0 - s->p.p0;
    const int64_t lo = first_at(x, 0, s->p.d0, s->kw), hi = first_at(x, s->w, s->p.d0, s->kw);
    return (struct span){ lo, hi, x + lo * s->p.d0 };
}

/* One line of kw elements of `size` bytes; `from` is NULL where the line lies outside. */
static inline void gather_line(const struct patches * s, const struct span * span, const char * from, char * to,
                               size_t size) {
    const int64_t lo = from ? span->lo : s->kw, hi = from ? span->hi : s->kw;
    const size_t step = (size_t)s->p.d0 * s->nb_w;
    int64_t i = 0;
    for (; i < lo; i++, to += size)
        memset(to, 0, size);
    if (lo < hi)
        from += (size_t)span->x * s->nb_w;
    for (; i < hi; i++, to += size, from += step)
        memcpy(to, from, size);
    for (; i < s->kw; i++, to += size)
        memset(to, 0, size);
}

/* The patches at output columns [ow, ow + n), one after another: line by line for all of them, so that a line of the
 * image is read while it is in the cache. */
static void gather(const struct patches * s, int64_t ow, int64_t n, int64_t oh, int64_t batch, char * to,
                   size_t row_bytes) {
    struct span spans[BLOCK];
    for (int64_t j = 0; j < n; j++)
        spans[j] = span_at(s, ow + j);
    for (int64_t line = 0; line < s->channels * s->kh; line++, to += (size_t)s->kw * s->size) {
        const int64_t c = line / s->kh, row = s->p.is_2D ? oh * s->p.s1 + line % s->kh * s->p.d1 - s->p.p1 : 0;
        const char * plane = s->image + (size_t)batch * s->nb_n + (size_t)c * s->nb_c;
        const char * from = row >= 0 && row < s->h ? plane + (size_t)row * s->nb_h : NULL;
        for (int64_t j = 0; j < n; j++)
            if (s->size == sizeof(float))
                gather_line(s, &spans[j], from, to + (size_t)j * row_bytes, sizeof(float));
            else
                gather_line(s, &spans[j], from, to + (size_t)j * row_bytes, sizeof(uint16_t));
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

/* Rows [r, r + n) of y, which differ in the output column only. */
static void run_block(const struct sotto_i_cpu_task * task, const struct patches * s, const struct sotto_i_operand * y,
                      enum sotto_type type, int64_t r, int64_t n) {
    const struct sotto_i_operand dense = {
        .type = type, .size = s->size, .ne = { y->ne[0], 1, 1, 1 }, .nb = { s->size }
    };
    const int64_t i1 = r % y->ne[1], i2 = r / y->ne[1] % y->ne[2], i3 = r / y->ne[1] / y->ne[2];
    const int64_t oh = s->p.is_2D ? i2 : 0, batch = s->p.is_2D ? i3 : i2;
    char * row = sotto_i_operand_row(y, i1, i2, i3);
    const size_t row_bytes = (size_t)y->ne[0] * s->size;
    if (type == y->type) {
        gather(s, i1, n, oh, batch, row, y->nb[1]);
        return;
    }
    char * scratch = task->scratch;
    gather(s, i1, n, oh, batch, scratch, row_bytes);
    for (int64_t j = 0; j < n; j++)
        convert(&task->kernels->vec, &dense, scratch + (size_t)j * row_bytes, y, row + (size_t)j * y->nb[1]);
}

static enum sotto_status run(const struct sotto_i_cpu_task * task, struct sotto_tensor * node, int64_t chunk,
                             int64_t n_chunks) {
    const struct patches s = patches_of(node);
    const struct sotto_i_operand y = sotto_i_as_operand(node);
    int64_t r, last;
    sotto_i_chunk_range(sotto_nrows(node), chunk, n_chunks, &r, &last);
    while (r < last) {
        const int64_t left = y.ne[1] - r % y.ne[1], most = last - r < BLOCK ? last - r : BLOCK;
        const int64_t n = left < most ? left : most;
        run_block(task, &s, &y, node->src[1]->type, r, n);
        r += n;
    }
    return SOTTO_OK;
}

const struct sotto_i_cpu_op sotto_i_cpu_IM2COL = { supports, prepare, run };
