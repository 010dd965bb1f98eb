/* SPDX-License-Identifier: MIT */
/* Quantising matrices: the table of quantisers, and the driver over it. */
#include "sotto/quant.h"

#include "core/checked.h"
#include "core/tensor_impl.h"
#include "core/type_convert.h"
#include "quant/quant_impl.h"

/* ---- types without blocks */

static void f32_row(const float * x, void * y, int64_t n, const float * w) {
    (void)w;
    memcpy(y, x, (size_t)n * sizeof(float));
}

static void f16_row(const float * x, void * y, int64_t n, const float * w) {
    (void)w;
    uint8_t * out = y;
    for (int64_t i = 0; i < n; i++) {
        put_half(out + 2 * i, x[i]);
    }
}

static void bf16_row(const float * x, void * y, int64_t n, const float * w) {
    (void)w;
    uint8_t * out = y;
    for (int64_t i = 0; i < n; i++) {
        put_u16(out + 2 * i, sotto_fp32_to_bf16(x[i]).bits);
    }
}

/* ---- the table */

#define QUANTISER(NAME, name, matrix)
#define QUANTISER_WITH_TABLES(NAME, name, matrix)
#define PLAIN(NAME, name)                                                             \
    static void plain_##name(const float * x, void * y, int64_t n, const float * w) { \
        (void)w;                                                                      \
        sotto_i_##name##_from_float(x, y, n);                                         \
    }
#include "quant/quantisers.def"
#undef PLAIN
#undef QUANTISER
#undef QUANTISER_WITH_TABLES

static const struct sotto_i_quantiser quantisers[SOTTO_TYPE_COUNT] = {
    [SOTTO_TYPE_F32] = { f32_row, IGNORES_MATRIX, NULL, NULL },
    [SOTTO_TYPE_F16] = { f16_row, IGNORES_MATRIX, NULL, NULL },
    [SOTTO_TYPE_BF16] = { bf16_row, IGNORES_MATRIX, NULL, NULL },
#define PLAIN(NAME, name)             [SOTTO_TYPE_##NAME] = { plain_##name, IGNORES_MATRIX, NULL, NULL },
#define QUANTISER(NAME, name, matrix) [SOTTO_TYPE_##NAME] = { sotto_i_quantise_##name, matrix, NULL, NULL },
#define QUANTISER_WITH_TABLES(NAME, name, matrix) \
    [SOTTO_TYPE_##NAME] = { sotto_i_quantise_##name, matrix, sotto_i_##name##_init, sotto_i_##name##_free },
#include "quant/quantisers.def"
#undef PLAIN
#undef QUANTISER
#undef QUANTISER_WITH_TABLES
};

const struct sotto_i_quantiser * sotto_i_quantiser(enum sotto_type type) {
    return (unsigned)type < SOTTO_TYPE_COUNT && quantisers[type].row ? &quantisers[type] : NULL;
}

/* ---- tables of the types */

void sotto_quantize_init(enum sotto_type type) {
    const enum sotto_status status = sotto_i_type_status(type);
    if (status != SOTTO_OK) {
        sotto_fail(status, "sotto_quantize_init: type %d: %s", (int)type, sotto_type_name(type));
        return;
    }
    const struct sotto_i_quantiser * quantiser = sotto_i_quantiser(type);
    if (quantiser && quantiser->init) {
        quantiser->init();
    }
}

void sotto_quantize_free(void) {
    for (int type = 0; type < SOTTO_TYPE_COUNT; type++) {
        if (quantisers[type].free) {
            quantisers[type].free();
        }
    }
}

bool sotto_quantize_requires_imatrix(enum sotto_type type) {
    const struct sotto_i_quantiser * quantiser = sotto_i_quantiser(type);
    return quantiser && quantiser->matrix == NEEDS_MATRIX;
}

/* ---- rows of a matrix */

struct chunk {
    enum sotto_type type;
    const struct sotto_i_quantiser * quantiser;
    const float * src;
    uint8_t * dst;
    int64_t start, nrows, n_per_row;
    const float * imatrix;
    size_t row_size, bytes;
};

static bool chunk_fail(enum sotto_status status, const struct chunk * c, const char * what) {
    sotto_fail(status, "sotto_quantize_chunk: %s: %s", sotto_type_name(c->type), what);
    return false;
}

static bool check_type(struct chunk * c) {
    const enum sotto_status status = sotto_i_type_status(c->type);
    c->quantiser = sotto_i_quantiser(c->type);
    if (status == SOTTO_OK && c->quantiser) {
        return true;
    }
    sotto_fail(status == SOTTO_OK ? SOTTO_E_TYPE : status, "sotto_quantize_chunk: type %d: %s%s", (int)c->type,
               sotto_type_name(c->type), status == SOTTO_OK ? ": nothing is quantised to it" : "");
    return false;
}

static bool check_pointers(struct chunk * c) {
    if (!c->src || !c->dst) {
        return chunk_fail(SOTTO_E_NULLARG, c, c->src ? "dst is NULL" : "src is NULL");
    }
    if (c->quantiser->matrix == IGNORES_MATRIX) {
        c->imatrix = NULL;
    } else if (c->quantiser->matrix == NEEDS_MATRIX && !c->imatrix) {
        return chunk_fail(SOTTO_E_NULLARG, c, "imatrix is NULL, and this type needs one: make it with `sotto imatrix`");
    }
    return true;
}

static bool check_counts(struct chunk * c) {
    if (c->start < 0 || c->nrows < 0 || c->n_per_row < 0) {
        return chunk_fail(SOTTO_E_PARAM, c, "start, nrows or n_per_row is negative");
    }
    if (c->n_per_row % sotto_blck_size(c->type) != 0) {
        sotto_fail(SOTTO_E_SHAPE, "sotto_quantize_chunk: %s: rows of %lld elements: give a multiple of %lld",
                   sotto_type_name(c->type), (long long)c->n_per_row, (long long)sotto_blck_size(c->type));
        return false;
    }
    if (c->n_per_row == 0 ? c->start != 0 : c->start % c->n_per_row != 0) {
        sotto_fail(SOTTO_E_PARAM, "sotto_quantize_chunk: %s: start %lld is not the first element of a row of %lld",
                   sotto_type_name(c->type), (long long)c->start, (long long)c->n_per_row);
        return false;
    }
    return true;
}

/* Where the rows lie, in bytes, without overflow. */
static bool check_sizes(struct chunk * c) {
    const int64_t first = c->n_per_row ? c->start / c->n_per_row : 0;
    const uint64_t rows = (uint64_t)first + (uint64_t)c->nrows, columns = (uint64_t)c->n_per_row;
    size_t end;
    if (rows > SIZE_MAX || columns > SIZE_MAX / sizeof(float) ||
        !sotto_i_mul((size_t)rows, (size_t)columns * sizeof(float), &end)) {
        return chunk_fail(SOTTO_E_MEMORY, c, "the size of these rows overflows");
    }
    c->row_size = sotto_row_size(c->type, c->n_per_row); /* no more than src takes */
    c->dst += (size_t)first * c->row_size;
    c->bytes = (size_t)c->nrows * c->row_size;
    return true;
}

static bool check_weights(const struct chunk * c) {
    for (int64_t i = 0; c->imatrix && i < c->n_per_row; i++) {
        if (!(c->imatrix[i] >= 0.0f && c->imatrix[i] < INFINITY)) {
            sotto_fail(SOTTO_E_PARAM, "sotto_quantize_chunk: %s: imatrix[%lld] is %g: weights are >= 0 and finite",
                       sotto_type_name(c->type), (long long)i, (double)c->imatrix[i]);
            return false;
        }
    }
    return true;
}

size_t sotto_quantize_chunk(enum sotto_type type, const float * src, void * dst, int64_t start, int64_t nrows,
                            int64_t n_per_row, const float * imatrix) {
    struct chunk c = { .type = type, .src = src, .dst = dst, .start = start, .nrows = nrows };
    c.n_per_row = n_per_row;
    c.imatrix = imatrix;
    if (!check_type(&c) || !check_pointers(&c) || !check_counts(&c) || !check_sizes(&c) || !check_weights(&c)) {
        return 0;
    }
    if (c.quantiser->init && c.quantiser->init() != SOTTO_OK) {
        return 0;
    }
    for (int64_t row = 0; row < nrows; row++) {
        c.quantiser->row(src + start + row * n_per_row, c.dst + (size_t)row * c.row_size, n_per_row, c.imatrix);
    }
    return c.bytes;
}
