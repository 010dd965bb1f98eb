/* SPDX-License-Identifier: MIT */
/* Blocks of every type: any bytes decoded, any numbers encoded.
 *
 * Input: the type u8 % 43; flags u8; then bytes, which are decoded as blocks and encoded as numbers.
 *   bit 0         the numbers are encoded by the quantiser of files
 *   bit 1         the first row of numbers are an importance matrix
 *   bits 2 and 3  blocks of a row, less 1
 *   bit 4         numbers are signed bytes / 16 rather than the bits of floats
 *   bit 5         the numbers are encoded by the row function of the type
 * Properties. Decoding reads only whole blocks, each by itself gives what it gives in a row, and blocks that validate have
 * finite values. Encoding gives the bytes that each row gives by itself, all of them in their place, and numbers of
 * ordinary size give blocks that validate; what is refused is refused with a status and writes nothing. */
#include <math.h>
#include <string.h>

#include "fuzz/fuzz.h"
#include "sotto/quant.h"

const size_t fuzz_replays = 100;

enum { GUARD = 16, MOST_BLOCKS = 24 };

static void * taken(size_t size) {
    void * p = malloc(size > 0 ? size : 1);
    fuzz_holds(p != NULL);
    return p;
}

static bool all_finite(const float * x, size_t n) {
    for (size_t i = 0; i < n; i++) {
        if (!isfinite(x[i]))
            return false;
    }
    return true;
}

/* ---- decoding ---- */

/* NaN is NaN, whatever its bits. */
static void same_floats(const float * a, const float * b, size_t n) {
    for (size_t i = 0; i < n; i++)
        fuzz_holds(memcmp(&a[i], &b[i], sizeof(*a)) == 0 || (isnan(a[i]) && isnan(b[i])));
}

/* A finite scale times a code can be too large for a float where the scale has eight bits of exponent. */
static bool can_overflow(enum sotto_type type) { return type == SOTTO_TYPE_MXFP4 || type == SOTTO_TYPE_Q8_K; }

static void decode(enum sotto_type type, struct fuzz_input * in) {
    const struct sotto_type_traits * t = sotto_get_type_traits(type);
    const size_t block = (size_t)t->blck_size, n_blocks = in->left / t->type_size, n = n_blocks * block;
    const size_t size = n_blocks * t->type_size;
    uint8_t * x = taken(size);
    float * y = taken(n * sizeof(*y));
    float * z = taken(block * sizeof(*z));
    if (size > 0)
        memcpy(x, in->at, size);
    t->to_float(x, y, (int64_t)n);
    for (size_t i = 0; i < n_blocks; i++) {
        t->to_float(x + i * t->type_size, z, t->blck_size);
        same_floats(y + i * block, z, block);
    }
    if (type != SOTTO_TYPE_Q8_1 && sotto_validate_row_data(type, x, size) && !can_overflow(type))
        fuzz_holds(all_finite(y, n));
    free(x);
    free(y);
    free(z);
}

/* ---- encoding ---- */

struct matrix {
    enum sotto_type type;
    int64_t rows, columns;
    const float * values;
    const float * weights; /* or NULL */
};

static float next_number(struct fuzz_input * in, bool small) {
    if (small)
        return (float)(int8_t)fuzz_take(in, 1) / 16.0f;
    const uint32_t bits = (uint32_t)fuzz_take(in, 4);
    float x;
    memcpy(&x, &bits, sizeof(x));
    return x;
}

/* Weights that are allowed: numbers from 0 up. */
static bool good_weights(const struct matrix * m) {
    for (int64_t i = 0; m->weights != NULL && i < m->columns; i++) {
        if (!(m->weights[i] >= 0) || !isfinite(m->weights[i]))
            return false;
    }
    return true;
}

static bool can_encode(enum sotto_type type) {
    return type == SOTTO_TYPE_F32 || type == SOTTO_TYPE_F16 || type == SOTTO_TYPE_BF16 ||
           (sotto_is_quantized(type) && type != SOTTO_TYPE_Q8_1 && type != SOTTO_TYPE_Q8_K);
}

/* In several pieces, from the last row to the first. */
static void encode_rows(const struct matrix * m, uint8_t * out, size_t row) {
    for (int64_t r = m->rows - 1; r >= 0; r--)
        fuzz_holds(sotto_quantize_chunk(m->type, m->values, out, r * m->columns, 1, m->columns, m->weights) == row);
}

static bool of_ordinary_size(const struct matrix * m) {
    for (int64_t i = 0; i < m->rows * m->columns; i++) {
        if (!(fabsf(m->values[i]) <= 1e4f))
            return false;
    }
    for (int64_t i = 0; m->weights != NULL && i < m->columns; i++) {
        if (!(m->weights[i] <= 1e4f))
            return false;
    }
    return true;
}

/* May the type be encoded to? Bad weights are allowed to types that ignore all of them. */
static bool allowed(const struct matrix * m, bool accepted) {
    if (!can_encode(m->type) || (m->weights == NULL && sotto_quantize_requires_imatrix(m->type)))
        return false;
    return accepted || good_weights(m);
}

static void encode(const struct matrix * m) {
    const size_t row = sotto_row_size(m->type, m->columns), size = (size_t)m->rows * row;
    uint8_t * whole = taken(size + GUARD);
    uint8_t * pieces = taken(size + GUARD);
    memset(whole, 0xA5, size + GUARD);
    memset(pieces, 0xA5, size + GUARD);
    sotto_clear_last_error();
    const size_t written = sotto_quantize_chunk(m->type, m->values, whole, 0, m->rows, m->columns, m->weights);
    const bool accepted = sotto_last_error() == SOTTO_OK;
    fuzz_holds(accepted == allowed(m, accepted) && written == (accepted ? size : 0));
    if (accepted) {
        encode_rows(good_weights(m) ? m : &(struct matrix){ m->type, m->rows, m->columns, m->values, NULL }, pieces,
                    row);
        if (of_ordinary_size(m))
            fuzz_holds(sotto_validate_row_data(m->type, whole, size));
    }
    fuzz_holds(memcmp(whole, pieces, size + GUARD) == 0 && whole[size] == 0xA5);
    free(whole);
    free(pieces);
}

static void encode_input(enum sotto_type type, unsigned flags, struct fuzz_input * in) {
    const bool small = (flags & 16) != 0, weighted = (flags & 2) != 0;
    const size_t width = small ? 1 : 4, block = (size_t)sotto_blck_size(type);
    const size_t columns = block * ((flags >> 2 & 3) + 1), most = MOST_BLOCKS * block / columns;
    size_t rows = in->left / width / columns;
    rows = rows < 1 ? 1 : rows < most ? rows : most;
    float * weights = taken(columns * sizeof(*weights));
    float * values = taken(rows * columns * sizeof(*values));
    for (size_t i = 0; i < columns && weighted; i++)
        weights[i] = next_number(in, small);
    for (size_t i = 0; i < rows * columns; i++)
        values[i] = next_number(in, small);
    encode(&(struct matrix){ type, (int64_t)rows, (int64_t)columns, values, weighted ? weights : NULL });
    free(values);
    free(weights);
}

/* The type's own function: a row, and its blocks one by one. */
static void encode_reference(enum sotto_type type, bool small, struct fuzz_input * in) {
    const struct sotto_type_traits * t = sotto_get_type_traits(type);
    const size_t block = (size_t)t->blck_size, n = in->left / (small ? 1 : 4) / block;
    const size_t n_blocks = n < MOST_BLOCKS ? n : MOST_BLOCKS;
    float * x = taken(n_blocks * block * sizeof(*x));
    uint8_t * whole = taken(n_blocks * t->type_size);
    uint8_t * one = taken(t->type_size);
    for (size_t i = 0; i < n_blocks * block; i++)
        x[i] = next_number(in, small);
    sotto_quantize_init(type);
    t->from_float_ref(x, whole, (int64_t)(n_blocks * block));
    for (size_t i = 0; i < n_blocks; i++) {
        t->from_float_ref(x + i * block, one, t->blck_size);
        fuzz_holds(memcmp(whole + i * t->type_size, one, t->type_size) == 0);
    }
    free(x);
    free(whole);
    free(one);
}

int LLVMFuzzerTestOneInput(const uint8_t * bytes, size_t n) {
    struct fuzz_input in = { bytes, n };
    const enum sotto_type type = (enum sotto_type)(fuzz_take(&in, 1) % SOTTO_TYPE_COUNT);
    const unsigned flags = (unsigned)fuzz_take(&in, 1);
    if (sotto_blck_size(type) == 0)
        return 0;
    const struct fuzz_input all = in;
    if (sotto_get_type_traits(type)->to_float != NULL)
        decode(type, &in);
    if (flags & 1)
        encode_input(type, flags, &in);
    in = all;
    if ((flags & 32) != 0 && sotto_get_type_traits(type)->from_float_ref != NULL)
        encode_reference(type, (flags & 16) != 0, &in);
    return 0;
}
