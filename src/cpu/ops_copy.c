/* SPDX-License-Identifier: MIT */
/* DUP, CPY, CONT, REPEAT: elements in logical order (dimension 0 fastest), converted where types differ. A quantised
 * tensor is copied block by block; where only one side is quantised, runs of whole blocks of it meet runs of the other.
 *
 * Three more ways: source and destination of one shape are walked in pieces of rows (rows.h); where one of them is dense
 * along dimension 1 instead of 0, the copy goes in square tiles, which keeps both sides in the cache; different shapes,
 * and packed sources, are walked by runs that end where a row of either side ends. */
#include <string.h>

#include "cpu/packed.h"
#include "cpu/rows.h"

static bool is_i32_pair(enum sotto_type a, enum sotto_type b) {
    return (a == SOTTO_TYPE_F32 && b == SOTTO_TYPE_I32) || (a == SOTTO_TYPE_I32 && b == SOTTO_TYPE_F32);
}

static bool supports(const struct sotto_tensor * node) {
    const enum sotto_type from = node->src[0]->type, to = node->type;
    if (sotto_i_is_packed(node) || (sotto_i_is_packed(node->src[0]) && !sotto_i_packed_readable(node->src[0])))
        return false;
    if (sotto_i_is_quantised(from) != sotto_i_is_quantised(to))
        return sotto_i_is_float(from) ? sotto_i_is_encodable(to) : sotto_i_is_float(to) && sotto_i_is_decodable(from);
    return from == to || (sotto_i_is_float(from) && sotto_i_is_float(to)) || is_i32_pair(from, to);
}

static void prepare(const struct sotto_tensor * node, int n_threads, struct sotto_i_cpu_work * work) {
    const int64_t n = sotto_nelements(node);
    sotto_i_prepare_units(n, n, n_threads, work);
}

/* n elements from element `first` of a row of `from` to element `at` of a row of `to`; n <= SOTTO_I_PIECE. */
static void copy_run(const struct sotto_i_vec_kernels * k, const struct sotto_i_operand * from, const char * from_row,
                     int64_t first, const struct sotto_i_operand * to, char * to_row, int64_t at, int64_t n) {
    if (from->type == to->type) {
        sotto_i_copy_strided(from_row + (size_t)first * from->nb[0], from->nb[0], to_row + (size_t)at * to->nb[0],
                             to->nb[0], to->size, n);
    } else {
        float buffer[SOTTO_I_PIECE];
        sotto_i_store(k, to, to_row, at, n, sotto_i_load(k, from, from_row, first, n, buffer));
    }
}

/* ---- one shape ---- */

static void copy_same_shape(const struct sotto_i_vec_kernels * k, struct sotto_i_walk * w, int64_t chunk,
                            int64_t n_chunks) {
    int64_t unit, last;
    sotto_i_chunk_range(w->units, chunk, n_chunks, &unit, &last);
    if (unit == last)
        return;
    for (sotto_i_walk_seek(w, unit); unit < last; unit++, sotto_i_walk_next(w))
        copy_run(k, &w->op[1], w->row[1], w->at[0], &w->op[0], w->row[0], w->at[0], w->len);
}

enum { TILE = 16 };

/* Dense along dimension 1 and not along 0. */
static bool is_turned(const struct sotto_i_operand * op) { return op->nb[0] != op->size && op->nb[1] == op->size; }

static bool is_transposed(const struct sotto_i_walk * w) {
    return is_turned(&w->op[0]) != is_turned(&w->op[1]) && w->ne[0] >= TILE && w->ne[1] >= TILE;
}

/* Rows [i1, i1 + rows) of a plane, all of dimension 0, tile by tile. */
static void copy_band(const struct sotto_i_vec_kernels * k, const struct sotto_i_walk * w, int64_t i1, int64_t i2,
                      int64_t i3, int64_t rows) {
    const struct sotto_i_operand *to = &w->op[0], *from = &w->op[1];
    const char * source = sotto_i_operand_row(from, i1, i2, i3);
    char * target = sotto_i_operand_row(to, i1, i2, i3);
    for (int64_t i = 0; i < w->ne[0]; i += TILE) {
        const int64_t n = w->ne[0] - i < TILE ? w->ne[0] - i : TILE;
        for (int64_t j = 0; j < rows; j++)
            copy_run(k, from, source + (size_t)j * from->nb[1], i, to, target + (size_t)j * to->nb[1], i, n);
    }
}

static void copy_transposed(const struct sotto_i_vec_kernels * k, const struct sotto_i_walk * w, int64_t chunk,
                            int64_t n_chunks) {
    const int64_t bands = (w->ne[1] + TILE - 1) / TILE;
    int64_t unit, last;
    sotto_i_chunk_range(bands * w->ne[2] * w->ne[3], chunk, n_chunks, &unit, &last);
    for (; unit < last; unit++) {
        const int64_t i1 = unit % bands * TILE, i2 = unit / bands % w->ne[2], i3 = unit / bands / w->ne[2];
        copy_band(k, w, i1, i2, i3, w->ne[1] - i1 < TILE ? w->ne[1] - i1 : TILE);
    }
}

/* ---- two shapes, or packed ---- */

/* A place in a tensor, moving on in logical order. */
struct cursor {
    struct sotto_i_operand op;
    int64_t at[SOTTO_MAX_DIMS];
    char * row;
};

static void cursor_row(struct cursor * c) { c->row = sotto_i_operand_row(&c->op, c->at[1], c->at[2], c->at[3]); }

static void cursor_init(struct cursor * c, const struct sotto_tensor * tensor, int64_t index) {
    c->op = sotto_i_as_operand(tensor);
    if (sotto_i_is_packed(tensor))
        memset(c->op.nb, 0, sizeof(c->op.nb)); /* rows are not where the strides say */
    for (int d = 0; d < SOTTO_MAX_DIMS; d++) {
        c->at[d] = index % c->op.ne[d];
        index /= c->op.ne[d];
    }
    cursor_row(c);
}

static void cursor_advance(struct cursor * c, int64_t n) {
    c->at[0] += n;
    if (c->at[0] < c->op.ne[0])
        return;
    c->at[0] = 0;
    for (int d = 1; d < SOTTO_MAX_DIMS && ++c->at[d] == c->op.ne[d]; d++)
        c->at[d] = 0;
    cursor_row(c);
}

/* n elements (blocks) of a packed tensor from where the cursor stands. */
static void copy_packed_run(const struct sotto_i_vec_kernels * k, const struct sotto_tensor * from,
                            const struct cursor * a, const struct cursor * b, int64_t n) {
    float piece[SOTTO_I_PIECE];
    const int64_t block = sotto_blck_size(a->op.type);
    const struct sotto_i_operand dense = {
        .type = a->op.type, .size = a->op.size, .ne = { n, 1, 1, 1 }, .nb = { a->op.size }
    };
    sotto_i_packed_get(from, a->at[1], a->at[2], a->at[3], a->at[0] * block, n * block, piece);
    copy_run(k, &dense, (const char *)piece, 0, &b->op, b->row, b->at[0], n);
}

static int64_t min(int64_t a, int64_t b) { return a < b ? a : b; }

static void copy_reshaped(const struct sotto_i_vec_kernels * k, const struct sotto_tensor * from,
                          const struct sotto_tensor * to, int64_t chunk, int64_t n_chunks) {
    int64_t i, last;
    sotto_i_chunk_range(sotto_nelements(to) / sotto_blck_size(to->type), chunk, n_chunks, &i, &last);
    if (i == last)
        return;
    struct cursor a, b;
    cursor_init(&a, from, i);
    cursor_init(&b, to, i);
    const int64_t most = SOTTO_I_PIECE / sotto_blck_size(to->type);
    while (i < last) {
        const int64_t n = min(min(a.op.ne[0] - a.at[0], b.op.ne[0] - b.at[0]), min(last - i, most));
        if (sotto_i_is_packed(from))
            copy_packed_run(k, from, &a, &b, n);
        else
            copy_run(k, &a.op, a.row, a.at[0], &b.op, b.row, b.at[0], n);
        cursor_advance(&a, n);
        cursor_advance(&b, n);
        i += n;
    }
}

/* ---- one side quantised ---- */

/* A copy between a quantised tensor and floats. Positions of the quantised cursor count blocks. */
struct recoding {
    const struct sotto_i_kernels * kernels;
    const struct sotto_tensor *blocks, *floats;
    sotto_i_encode_fn encode; /* NULL: decode */
    struct cursor q, x;
};

/* n elements of `t`, in blocks or packed, from where its cursor stands, to `out`. */
static void decode_run(const struct sotto_i_kernels * kernels, const struct sotto_tensor * t, const struct cursor * c,
                       int64_t n, float * out) {
    float piece[SOTTO_I_PIECE]; /* no block is larger than its floats */
    const void * x = c->row + (size_t)c->at[0] * c->op.size;
    if (sotto_i_is_packed(t)) {
        sotto_i_packed_get(t, c->at[1], c->at[2], c->at[3], c->at[0] * sotto_blck_size(t->type), n, piece);
        x = piece;
    }
    kernels->gemm.unpack[t->type](x, out, n);
}

/* n floats from where their cursor stands to `values`. */
static void load_run(const struct recoding * r, int64_t n, float * values) {
    const struct cursor * x = &r->x;
    if (sotto_i_is_packed(r->floats)) {
        decode_run(r->kernels, r->floats, x, n, values);
        return;
    }
    const float * from = sotto_i_load(&r->kernels->vec, &x->op, x->row, x->at[0], n, values);
    if (from != values)
        memcpy(values, from, (size_t)n * sizeof(*values));
}

/* n floats between `values` and where their cursor stands, which moves on. */
static void move_floats(struct recoding * r, int64_t n, float * values) {
    struct cursor * x = &r->x;
    for (int64_t done = 0; done < n;) {
        const int64_t run = min(n - done, x->op.ne[0] - x->at[0]);
        if (r->encode)
            load_run(r, run, values + done);
        else
            sotto_i_store(&r->kernels->vec, &x->op, x->row, x->at[0], run, values + done);
        cursor_advance(x, run);
        done += run;
    }
}

static void copy_recoded(const struct sotto_i_kernels * kernels, const struct sotto_tensor * from,
                         const struct sotto_tensor * to, int64_t chunk, int64_t n_chunks) {
    struct recoding r = { .kernels = kernels, .blocks = from, .floats = to };
    if (sotto_i_is_quantised(to->type)) {
        r.blocks = to;
        r.floats = from;
        r.encode = sotto_i_encoder(to->type);
    }
    const int64_t block = sotto_blck_size(r.blocks->type);
    int64_t i, last;
    sotto_i_chunk_range(sotto_nelements(to) / block, chunk, n_chunks, &i, &last);
    if (i == last)
        return;
    cursor_init(&r.q, r.blocks, i);
    cursor_init(&r.x, r.floats, i * block);
    while (i < last) {
        float values[SOTTO_I_PIECE];
        const int64_t n = min(min(r.q.op.ne[0] - r.q.at[0], last - i), SOTTO_I_PIECE / block);
        if (!r.encode)
            decode_run(kernels, from, &r.q, n * block, values);
        move_floats(&r, n * block, values);
        if (r.encode)
            r.encode(values, r.q.row + (size_t)r.q.at[0] * r.q.op.size, n * block);
        cursor_advance(&r.q, n);
        i += n;
    }
}

static enum sotto_status run(const struct sotto_i_cpu_task * task, struct sotto_tensor * node, int64_t chunk,
                             int64_t n_chunks) {
    const struct sotto_i_vec_kernels * k = &task->kernels->vec;
    const struct sotto_tensor * a = node->src[0];
    if (sotto_i_is_quantised(a->type) != sotto_i_is_quantised(node->type)) {
        copy_recoded(task->kernels, a, node, chunk, n_chunks);
        return SOTTO_OK;
    }
    if (sotto_i_is_packed(a) || !sotto_are_same_shape(a, node)) {
        copy_reshaped(k, a, node, chunk, n_chunks);
        return SOTTO_OK;
    }
    if (a->data == node->data && a->type == node->type && sotto_are_same_stride(a, node))
        return SOTTO_OK; /* dup in place */
    struct sotto_i_walk w;
    sotto_i_walk_init(&w, node, a, NULL);
    if (is_transposed(&w))
        copy_transposed(k, &w, chunk, n_chunks);
    else
        copy_same_shape(k, &w, chunk, n_chunks);
    return SOTTO_OK;
}

const struct sotto_i_cpu_op sotto_i_cpu_DUP = { supports, prepare, run };
const struct sotto_i_cpu_op sotto_i_cpu_CPY = { supports, prepare, run };
const struct sotto_i_cpu_op sotto_i_cpu_CONT = { supports, prepare, run };

/* ---- REPEAT ---- */

static bool supports_repeat(const struct sotto_tensor * node) {
    return sotto_i_none_packed(node) && node->type == node->src[0]->type && sotto_blck_size(node->type) == 1;
}

/* Elements [first, first + n) of a row that is repeated. */
static void repeat_run(const struct sotto_i_operand * from, const char * row, int64_t first, int64_t n, char * to,
                       size_t to_stride) {
    const int64_t width = from->ne[0];
    if (width == 1) {
        sotto_i_copy_strided(row, 0, to, to_stride, from->size, n);
        return;
    }
    for (int64_t at = first % width; n > 0; at = 0) {
        const int64_t run_length = min(width - at, n);
        sotto_i_copy_strided(row + (size_t)at * from->nb[0], from->nb[0], to, to_stride, from->size, run_length);
        to += (size_t)run_length * to_stride;
        n -= run_length;
    }
}

static enum sotto_status run_repeat(const struct sotto_i_cpu_task * task, struct sotto_tensor * node, int64_t chunk,
                                    int64_t n_chunks) {
    (void)task;
    struct sotto_i_walk w;
    int64_t unit, last;
    sotto_i_walk_init(&w, node, node->src[0], NULL);
    sotto_i_chunk_range(w.units, chunk, n_chunks, &unit, &last);
    if (unit == last)
        return SOTTO_OK;
    for (sotto_i_walk_seek(&w, unit); unit < last; unit++, sotto_i_walk_next(&w))
        repeat_run(&w.op[1], w.row[1], w.at[0], w.len, w.row[0] + (size_t)w.at[0] * w.op[0].nb[0], w.op[0].nb[0]);
    return SOTTO_OK;
}

const struct sotto_i_cpu_op sotto_i_cpu_REPEAT = { supports_repeat, sotto_i_prepare_map, run_repeat };
