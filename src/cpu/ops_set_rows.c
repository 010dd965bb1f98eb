/* SPDX-License-Identifier: MIT */
/* SET_ROWS: a[:, c[j,..], s, t] = b[:, j, s, t]. Sources are b, c, a; the node is a view of a.
 *
 * Work is cut by planes (s, t) and by columns, never by rows j: so two sources of one row are written by one thread,
 * the later one last, and results do not depend on threads. */
#include "cpu/rows.h"

enum { COLUMNS = 256 }; /* whole blocks of any type */

static bool supports(const struct sotto_tensor * node) {
    const enum sotto_type b = node->src[0]->type, c = node->src[1]->type;
    return sotto_i_none_packed(node) && (b == SOTTO_TYPE_F32 || b == SOTTO_TYPE_F16) &&
           (c == SOTTO_TYPE_I32 || c == SOTTO_TYPE_I64) && sotto_i_is_encodable(node->type);
}

static int64_t n_blocks(const struct sotto_tensor * node) { return (node->ne[0] + COLUMNS - 1) / COLUMNS; }

static void prepare(const struct sotto_tensor * node, int n_threads, struct sotto_i_cpu_work * work) {
    const int64_t units = n_blocks(node) * node->ne[2] * node->ne[3];
    sotto_i_prepare_units(units, sotto_nelements(node->src[0]), n_threads, work);
}

struct scatter {
    const struct sotto_i_vec_kernels * kernels;
    struct sotto_i_operand b, c, y;
    sotto_i_encode_fn encode; /* of a y in blocks, else NULL */
};

static int64_t id_at(const struct sotto_i_operand * c, int64_t j, const char * row) {
    const char * p = row + (size_t)j * c->nb[0];
    return c->type == SOTTO_TYPE_I64 ? *(const int64_t *)p : *(const int32_t *)p;
}

/* Columns [first, last) of one row. */
static void put(const struct scatter * s, const char * from, char * to, int64_t first, int64_t last) {
    if (s->b.type == s->y.type) {
        sotto_i_copy_strided(from + (size_t)first * s->b.nb[0], s->b.nb[0], to + (size_t)first * s->y.nb[0], s->y.nb[0],
                             s->y.size, last - first);
        return;
    }
    float buffer[SOTTO_I_PIECE];
    for (int64_t i = first; i < last; i += SOTTO_I_PIECE) {
        const int64_t n = last - i < SOTTO_I_PIECE ? last - i : SOTTO_I_PIECE;
        const float * x = sotto_i_load(s->kernels, &s->b, from, i, n, buffer);
        if (s->encode)
            s->encode(x, to + sotto_i_row_bytes(s->y.type, i), n);
        else
            sotto_i_store(s->kernels, &s->y, to, i, n, x);
    }
}

/* Columns [first, last) of all rows of plane (i2, i3). */
static enum sotto_status scatter_plane(const struct scatter * s, int64_t i2, int64_t i3, int64_t first, int64_t last) {
    const char * ids = sotto_i_operand_row(&s->c, i2, i3, 0);
    for (int64_t j = 0; j < s->b.ne[1]; j++) {
        const int64_t id = id_at(&s->c, j, ids);
        if (id < 0 || id >= s->y.ne[1])
            return sotto_fail(SOTTO_E_RANGE,
                              "sotto_set_rows: index %lld (element %lld of c) is outside the %lld rows of a",
                              (long long)id, (long long)j, (long long)s->y.ne[1]);
        put(s, sotto_i_operand_row(&s->b, j, i2, i3), sotto_i_operand_row(&s->y, id, i2, i3), first, last);
    }
    return SOTTO_OK;
}

static enum sotto_status run(const struct sotto_i_cpu_task * task, struct sotto_tensor * node, int64_t chunk,
                             int64_t n_chunks) {
    const struct scatter s = { .kernels = &task->kernels->vec,
                               .b = sotto_i_as_operand(node->src[0]),
                               .c = sotto_i_as_operand(node->src[1]),
                               .y = sotto_i_as_operand(node),
                               .encode = sotto_i_encoder(node->type) };
    const int64_t blocks = n_blocks(node), width = node->ne[0];
    int64_t unit, last;
    sotto_i_chunk_range(blocks * node->ne[2] * node->ne[3], chunk, n_chunks, &unit, &last);
    while (unit < last) {
        const int64_t plane = unit / blocks, block = unit % blocks;
        const int64_t n = blocks - block < last - unit ? blocks - block : last - unit;
        const int64_t end = (block + n) * COLUMNS < width ? (block + n) * COLUMNS : width;
        const enum sotto_status status =
            scatter_plane(&s, plane % node->ne[2], plane / node->ne[2], block * COLUMNS, end);
        if (status != SOTTO_OK)
            return status;
        unit += n;
    }
    return SOTTO_OK;
}

const struct sotto_i_cpu_op sotto_i_cpu_SET_ROWS = { supports, prepare, run };
