/* SPDX-License-Identifier: MIT */
/* quant_vectors FILE: compare every type with the stored bytes and numbers of a quant-vectors.json.
 *
 *     <type>.quantize              the 256 values of the file, without a matrix: bytes, and what they decode to
 *     <type>.with_imatrix ...      the encodings that came from elsewhere: with and without a matrix, the row quantiser
 *     <type>.dequantize            one block of a pattern of bytes
 *     <type>.lcg64                 64 blocks of random bytes, decoded; their product with a row of activations, from the
 *                                  decoded numbers and from the engine
 *     <type>.zero_block            the encoding of zeros
 *     codebooks.<name>             the tables behind the types, read back through decoding
 *
 * Ends with "N passed, N failed, N skipped". */
#include <ctype.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/type_convert.h"
#include "sha256.h"
#include "sotto/quant.h"
#include "sotto/sotto.h"
#include "tally.h"

enum { N = 256, MOST_FLOATS = 16384, MOST_BYTES = 32768, ARENA = 1 << 20 };

static struct tally tally;
static float input[N], matrix[N];

static json_t * at(json_t * node, const char * key) { return json_object_get(node, key); }
static double number(json_t * node, const char * key) { return json_number_value(at(node, key)); }
static const char * text(json_t * node, const char * key) {
    const char * value = json_string_value(at(node, key));
    return value ? value : "";
}

/* ---- a type, and its converters */

struct type {
    const char * name; /* as in the file: upper case */
    json_t * node;
    enum sotto_type id;
    void (*decode)(const void * x, float * y, int64_t n);
    void (*encode)(const float * x, void * y, int64_t n);
};

static void copy_out(const void * x, float * y, int64_t n) { memcpy(y, x, (size_t)n * sizeof(float)); }

static struct type find_type(const char * name, json_t * node) {
    struct type t = { name, node, (enum sotto_type)(int)number(node, "id"), NULL, NULL };
    const struct sotto_type_traits * traits = sotto_get_type_traits(t.id);
    t.decode = traits->to_float;
    t.encode = traits->from_float_ref;
    if (t.id == SOTTO_TYPE_F32) {
        t.decode = copy_out;
    }
    if (t.id == SOTTO_TYPE_Q8_1) {
        t.decode = sotto_i_q8_1_to_float;
    }
    if (t.id == SOTTO_TYPE_Q8_K) {
        t.decode = sotto_i_q8_k_to_float;
        t.encode = sotto_i_q8_k_from_float;
    }
    return t;
}

static bool is_work_type(const struct type * t) { return t->id == SOTTO_TYPE_Q8_1 || t->id == SOTTO_TYPE_Q8_K; }

/* ---- comparisons */

static void check_hash(const void * data, size_t n, json_t * node, const char * key) {
    char hex[65];
    sha256_hex(data, n, hex);
    tally_that(&tally, strcmp(hex, text(node, key)) == 0, "%s is %s, expected %s", key, hex, text(node, key));
}

static void check_hex(const uint8_t * data, size_t n, const char * hex) {
    tally_that(&tally, strlen(hex) == 2 * n, "%zu bytes, expected %zu", n, strlen(hex) / 2);
    for (size_t i = 0; 2 * i + 1 < strlen(hex) && i < n; i++) {
        const char digits[3] = { hex[2 * i], hex[2 * i + 1], 0 };
        tally_that(&tally, data[i] == strtoul(digits, NULL, 16), "byte %zu is %02x, expected %s", i, data[i], digits);
    }
}

/* Root mean square of what was lost; w weighs the squares. */
static double loss(const float * y, const float * w) {
    double sum = 0.0;
    for (int i = 0; i < N; i++) {
        const double d = (double)input[i] - y[i];
        sum += (w ? w[i] : 1.0) * d * d;
    }
    double weights = 0.0;
    for (int i = 0; i < N; i++) {
        weights += w ? w[i] : 1.0;
    }
    return sqrt(sum / weights);
}

static void check_bytes(const struct type * t, json_t * expected, const uint8_t * data, size_t n) {
    float y[N];
    tally_that(&tally, n == (size_t)number(expected, "n_bytes"), "%zu bytes", n);
    check_hash(data, n, expected, "sha256");
    check_hex(data, n, text(expected, "hex"));
    t->decode(data, y, N);
    if (at(expected, "roundtrip_sha256")) {
        check_hash(y, sizeof(y), expected, "roundtrip_sha256");
    }
    if (at(expected, "roundtrip_rms")) {
        tally_near(&tally, "rms", loss(y, NULL), number(expected, "roundtrip_rms"), 1e-9, "%s", t->name);
    }
    if (at(expected, "roundtrip_weighted_rms")) {
        tally_near(&tally, "weighted rms", loss(y, matrix), number(expected, "roundtrip_weighted_rms"), 1e-7, "%s",
                   t->name);
    }
}

/* ---- encoding */

static size_t row_of(const struct type * t) { return sotto_row_size(t->id, N); }

static void check_chunk(const struct type * t, json_t * expected, const float * w) {
    uint8_t data[MOST_BYTES];
    const size_t n = sotto_quantize_chunk(t->id, input, data, 0, 1, N, w);
    tally_that(&tally, n == row_of(t), "sotto_quantize_chunk: %s", sotto_last_error_text());
    check_bytes(t, expected, data, n);
}

static void check_row(const struct type * t, json_t * expected) {
    uint8_t data[MOST_BYTES];
    t->encode(input, data, N);
    check_bytes(t, expected, data, row_of(t));
}

static void check_quantize(const struct type * t) {
    json_t * expected = at(t->node, "quantize");
    if (!expected) {
        return;
    }
    tally_begin(&tally, "%s.quantize", t->name);
    if (t->encode) {
        check_row(t, expected);
    }
    if (!is_work_type(t)) {
        check_chunk(t, expected, NULL);
    }
    tally_end(&tally);
}

static void check_reference(const struct type * t) {
    const char * variant;
    json_t * expected;
    json_object_foreach(at(t->node, "quantize_reference_c"), variant, expected) {
        tally_begin(&tally, "%s.%s", t->name, variant);
        if (strcmp(variant, "from_float_ref") == 0) {
            check_row(t, expected);
        } else if (strcmp(variant, "with_imatrix") == 0) {
            check_chunk(t, expected, matrix);
        } else {
            tally_that(&tally, strcmp(variant, "without_imatrix") == 0, "an unknown variant");
            check_chunk(t, expected, NULL);
        }
        tally_end(&tally);
    }
}

static void check_zero_block(const struct type * t) {
    const char * hex = text(t->node, "zero_block_hex");
    if (!*hex) {
        return;
    }
    static const float zeros[N];
    float ones[N];
    for (int i = 0; i < N; i++) {
        ones[i] = 1.0f;
    }
    uint8_t data[MOST_BYTES];
    memset(data, 0xA5, sizeof(data));
    const int64_t n = sotto_blck_size(t->id);
    tally_begin(&tally, "%s.zero_block", t->name);
    if (is_work_type(t)) {
        t->encode(zeros, data, n);
    } else {
        const float * w = sotto_quantize_requires_imatrix(t->id) ? ones : NULL;
        tally_that(&tally, sotto_quantize_chunk(t->id, zeros, data, 0, 1, n, w) > 0, "%s", sotto_last_error_text());
    }
    check_hex(data, sotto_type_size(t->id), hex);
    tally_end(&tally);
}

/* ---- decoding */

static double sum_of(const float * y, size_t n) {
    double sum = 0.0;
    for (size_t i = 0; i < n; i++) {
        sum += y[i];
    }
    return sum;
}

static void check_dequantize(const struct type * t) {
    json_t * expected = at(t->node, "dequantize");
    if (!expected) {
        return;
    }
    const size_t bytes = sotto_type_size(t->id), n = (size_t)number(expected, "n_floats");
    uint8_t data[MOST_BYTES];
    float y[N];
    tally_begin(&tally, "%s.dequantize", t->name);
    tally_that(&tally, n == (size_t)sotto_blck_size(t->id), "%zu elements", n);
    for (size_t i = 0; i < bytes; i++) {
        data[i] = (uint8_t)(i * 37 + 11);
    }
    check_hex(data, bytes, text(expected, "block_hex"));
    t->decode(data, y, (int64_t)n);
    check_hash(y, n * sizeof(float), expected, "sha256");
    for (size_t i = 0; i < json_array_size(at(expected, "first8_bits")); i++) {
        uint32_t bits;
        memcpy(&bits, &y[i], sizeof(bits));
        const char * hex = json_string_value(json_array_get(at(expected, "first8_bits"), i));
        tally_that(&tally, bits == strtoul(hex, NULL, 16), "value %zu is %08x, expected %s", i, bits, hex);
    }
    const double sum = number(expected, "sum_f64");
    tally_near(&tally, "sum of a block", sum_of(y, n), sum, 1e-9 * (fabs(sum) + 1.0), "%s", t->name);
    tally_end(&tally);
}

/* Where a block holds binary16 scales: -1 for none. */
static const int HALVES[SOTTO_TYPE_COUNT][2] = {
    [SOTTO_TYPE_Q4_0] = { 0, -1 },    [SOTTO_TYPE_Q4_1] = { 0, 2 },    [SOTTO_TYPE_Q5_0] = { 0, -1 },
    [SOTTO_TYPE_Q5_1] = { 0, 2 },     [SOTTO_TYPE_Q8_0] = { 0, -1 },   [SOTTO_TYPE_Q8_1] = { 0, 2 },
    [SOTTO_TYPE_Q2_K] = { 80, 82 },   [SOTTO_TYPE_Q3_K] = { 108, -1 }, [SOTTO_TYPE_Q4_K] = { 0, 2 },
    [SOTTO_TYPE_Q5_K] = { 0, 2 },     [SOTTO_TYPE_Q6_K] = { 208, -1 }, [SOTTO_TYPE_Q8_K] = { -1, -1 },
    [SOTTO_TYPE_IQ2_XXS] = { 0, -1 }, [SOTTO_TYPE_IQ2_XS] = { 0, -1 }, [SOTTO_TYPE_IQ3_XXS] = { 0, -1 },
    [SOTTO_TYPE_IQ1_S] = { 0, -1 },   [SOTTO_TYPE_IQ4_NL] = { 0, -1 }, [SOTTO_TYPE_IQ3_S] = { 0, -1 },
    [SOTTO_TYPE_IQ2_S] = { 0, -1 },   [SOTTO_TYPE_IQ4_XS] = { 0, -1 }, [SOTTO_TYPE_IQ1_M] = { -1, -1 },
    [SOTTO_TYPE_TQ1_0] = { 52, -1 },  [SOTTO_TYPE_TQ2_0] = { 64, -1 }, [SOTTO_TYPE_MXFP4] = { -1, -1 },
    [SOTTO_TYPE_NVFP4] = { -1, -1 },  [SOTTO_TYPE_Q1_0] = { 0, -1 },   [SOTTO_TYPE_Q2_0] = { 0, -1 },
};

/* Scales that give numbers of a sensible size. */
static void tame(enum sotto_type type, uint8_t * block) {
    for (int i = 0; i < 2 && HALVES[type][i] >= 0; i++) {
        block[HALVES[type][i]] = 0x00;
        block[HALVES[type][i] + 1] = 0x38;
    }
    if (type == SOTTO_TYPE_IQ1_M) {
        static const uint8_t upper[4] = { 0, 0, 8, 3 };
        for (int i = 0; i < 4; i++) {
            block[49 + 2 * i] = (uint8_t)((block[49 + 2 * i] & 15) | upper[i] << 4);
        }
    } else if (type == SOTTO_TYPE_MXFP4) {
        block[0] = (uint8_t)((block[0] & 63) + 96);
    } else if (type == SOTTO_TYPE_Q8_K) {
        const uint8_t half[4] = { 0, 0, 0, 0x3F };
        memcpy(block, half, 4);
    }
}

static size_t random_blocks(const struct type * t, uint8_t * data) {
    uint32_t s = 1;
    const size_t bytes = sotto_type_size(t->id), blocks = 64;
    for (size_t i = 0; i < blocks * bytes; i++) {
        s = s * 1664525u + 1013904223u;
        data[i] = (uint8_t)(s >> 24);
    }
    for (size_t b = 0; b < blocks; b++) {
        tame(t->id, data + b * bytes);
    }
    return blocks * bytes;
}

/* Activations as a product sees them: in the type that the file says, and back. */
static void activations(const char * type, float * y, int64_t n) {
    uint8_t data[MOST_BYTES];
    for (int64_t i = 0; i < n; i++) {
        y[i] = (float)cos(0.11 * (double)i);
    }
    if (strcmp(type, "Q8_0") == 0) {
        sotto_i_q8_0_from_float(y, data, n);
        sotto_i_q8_0_to_float(data, y, n);
    } else if (strcmp(type, "Q8_1") == 0) {
        sotto_i_q8_1_from_float(y, data, n);
        sotto_i_q8_1_to_float(data, y, n);
    } else {
        tally_that(&tally, strcmp(type, "Q8_K") == 0, "activations of type %s", type);
        sotto_i_q8_k_from_float(y, data, n);
        sotto_i_q8_k_to_float(data, y, n);
    }
}

/* mul_mat of one row of blocks and one of activations. */
static double engine_product(const struct type * t, const uint8_t * data, size_t bytes, const float * y, size_t n) {
    struct sotto_context * ctx = sotto_init((struct sotto_init_params){ ARENA, NULL, false });
    struct sotto_tensor * a = sotto_new_tensor_1d(ctx, t->id, (int64_t)n);
    struct sotto_tensor * b = sotto_new_tensor_1d(ctx, SOTTO_TYPE_F32, (int64_t)n);
    struct sotto_tensor * c = sotto_mul_mat(ctx, a, b);
    double product = NAN;
    if (c) {
        memcpy(a->data, data, bytes);
        memcpy(b->data, y, n * sizeof(float));
        struct sotto_cgraph * graph = sotto_new_graph(ctx);
        sotto_build_forward_expand(graph, c);
        if (sotto_graph_compute_with_ctx(ctx, graph, 1) == SOTTO_OK) {
            product = *(const float *)c->data;
        }
    }
    tally_that(&tally, !isnan(product), "mul_mat: %s", sotto_last_error_text());
    sotto_free(ctx);
    return product;
}

static void check_products(const struct type * t, json_t * expected, const uint8_t * data, size_t bytes,
                           const float * x, size_t n) {
    static float y[MOST_FLOATS];
    activations(text(t->node, "vec_dot_type"), y, (int64_t)n);
    double dot = 0.0, size = 0.0;
    for (size_t i = 0; i < n; i++) {
        dot += (double)x[i] * y[i];
        size += fabs((double)x[i] * y[i]);
    }
    const double known = number(expected, "dot_f64");
    tally_near(&tally, "dot / sum of magnitudes", dot / size, known / size, 1e-12, "%s", t->name);
    tally_near(&tally, "sum of magnitudes", size / number(expected, "dot_abs_sum_f64"), 1.0, 1e-12, "%s", t->name);
    tally_near(&tally, "product / sum of magnitudes", engine_product(t, data, bytes, y, n) / size, known / size, 1e-5,
               "%s", t->name);
}

static void check_wide(const struct type * t) {
    json_t * expected = at(t->node, "lcg64");
    if (!expected) {
        return;
    }
    static uint8_t data[MOST_BYTES];
    static float x[MOST_FLOATS];
    const size_t bytes = random_blocks(t, data), n = (size_t)number(expected, "n_floats");
    tally_begin(&tally, "%s.lcg64", t->name);
    check_hash(data, bytes, expected, "bytes_sha256");
    t->decode(data, x, (int64_t)n);
    check_hash(x, n * sizeof(float), expected, "floats_sha256");
    const double sum = number(expected, "sum_f64");
    tally_near(&tally, "sum of blocks", sum_of(x, n), sum, 1e-9 * (fabs(sum) + 1.0), "%s", t->name);
    if (at(expected, "dot_f64")) {
        check_products(t, expected, data, bytes, x, n);
    }
    tally_end(&tally);
}

/* ---- tables, through decoding: blocks are made so that what they decode to is an entry */

static void put_half(uint8_t * p, float v) {
    const uint16_t half = sotto_fp32_to_fp16(v);
    p[0] = (uint8_t)half;
    p[1] = (uint8_t)(half >> 8);
}

/* Row r of a lattice in the first group of a block; all else is zero. */
static void row_block(const char * name, unsigned r, uint8_t * block) {
    memset(block, 0, MOST_BYTES);
    const uint8_t low = (uint8_t)r, high = (uint8_t)(r >> 8);
    if (strcmp(name, "IQ2_XXS") == 0) {
        put_half(block, 8.0f);
        block[2] = low;
    } else if (strcmp(name, "IQ2_XS") == 0) {
        put_half(block, 8.0f);
        block[2] = low;
        block[3] = high;
    } else if (strcmp(name, "IQ2_S") == 0) {
        put_half(block, 8.0f);
        block[2] = low;
        block[66] = high;
    } else if (strcmp(name, "IQ3_XXS") == 0) {
        put_half(block, 4.0f);
        block[2] = low;
    } else if (strcmp(name, "IQ3_S") == 0) {
        put_half(block, 1.0f);
        block[2] = low;
        block[66] = high;
    } else {
        put_half(block, 1.0f);
        block[2] = low;
        block[34] = high;
    }
}

static const char * decoded_by(const char * name) {
    if (strcmp(name, "ksigns") == 0) {
        return "IQ2_XXS";
    }
    return strcmp(name, "iq4nl_values") == 0 ? "IQ4_NL" : strcmp(name, "fp4_values") == 0 ? "MXFP4" : name;
}

static size_t lattice_bytes(const struct type * t, json_t * expected, int8_t * out) {
    const unsigned rows = (unsigned)number(expected, "rows"), columns = (unsigned)number(expected, "cols");
    static uint8_t block[MOST_BYTES];
    float y[N];
    for (unsigned r = 0; r < rows; r++) {
        row_block(t->name, r, block);
        t->decode(block, y, N);
        for (unsigned i = 0; i < columns; i++) {
            out[r * columns + i] = (int8_t)(t->id == SOTTO_TYPE_IQ1_S ? y[i] - 0.125f : y[i]);
        }
    }
    return (size_t)rows * columns;
}

/* A code of so many bits a digit for each row, its digits the places of its values in the list of them. */
static void check_codes(json_t * expected, const int8_t * rows) {
    const unsigned n = (unsigned)number(expected, "rows"), columns = (unsigned)number(expected, "cols");
    static uint8_t codes[2 * 2048];
    for (unsigned r = 0; r < n && r < 2048; r++) {
        unsigned code = 0;
        for (unsigned i = 0; i < columns; i++) {
            unsigned digit = 0;
            while (digit < 7 &&
                   json_integer_value(json_array_get(at(expected, "values"), digit)) != rows[r * columns + i]) {
                digit++;
            }
            code |= digit << (columns == 8 ? 2 * i : 3 * i);
        }
        codes[2 * r] = (uint8_t)code;
        codes[2 * r + 1] = (uint8_t)(code >> 8);
    }
    check_hash(codes, 2 * (size_t)n, expected, "codes_u16le_sha256");
}

/* Entry k of the signs, from the signs of a group of ones. */
static size_t sign_bytes(const struct type * t, int8_t * out) {
    static uint8_t block[MOST_BYTES];
    float y[N];
    for (unsigned k = 0; k < 128; k++) {
        row_block("IQ2_XXS", 0, block);
        block[6] = (uint8_t)k;
        t->decode(block, y, N);
        unsigned bits = 0;
        for (int i = 0; i < 8; i++) {
            bits |= (unsigned)(y[i] < 0.0f) << i;
        }
        out[k] = (int8_t)bits;
    }
    return 128;
}

/* Sixteen values, from the sixteen nibbles. */
static size_t value_bytes(const struct type * t, int8_t * out) {
    uint8_t block[64] = { 0 };
    float y[N];
    const int first = t->id == SOTTO_TYPE_MXFP4 ? 1 : 2;
    if (t->id == SOTTO_TYPE_MXFP4) {
        block[0] = 128;
    } else {
        put_half(block, 1.0f);
    }
    for (int i = 0; i < 16; i++) {
        block[first + i] = (uint8_t)i;
    }
    t->decode(block, y, sotto_blck_size(t->id));
    for (int i = 0; i < 16; i++) {
        out[i] = (int8_t)y[i];
    }
    return 16;
}

static void check_codebook(json_t * types, const char * name, json_t * expected) {
    static int8_t bytes[MOST_BYTES];
    const struct type t = find_type(decoded_by(name), at(types, decoded_by(name)));
    if (!t.decode) {
        tally_skip(&tally, t.name);
        return;
    }
    tally_begin(&tally, "codebooks.%s", name);
    size_t n;
    if (strcmp(name, "ksigns") == 0) {
        n = sign_bytes(&t, bytes);
    } else if (islower((unsigned char)name[0])) {
        n = value_bytes(&t, bytes);
    } else {
        n = lattice_bytes(&t, expected, bytes);
        check_codes(expected, bytes);
    }
    tally_that(&tally, n == (size_t)number(expected, "decoded_bytes"), "%zu bytes", n);
    check_hash(bytes, n, expected, "decoded_sha256");
    tally_end(&tally);
}

/* ---- the file */

static void check_type(const struct type * t) {
    tally_begin(&tally, "%s.sizes", t->name);
    tally_that(&tally, sotto_blck_size(t->id) == (int64_t)number(t->node, "block_elems"), "elements of a block");
    tally_that(&tally, sotto_type_size(t->id) == (size_t)number(t->node, "block_bytes"), "bytes of a block");
    tally_end(&tally);
    if (sotto_is_quantized(t->id) && !t->decode) {
        tally_skip(&tally, t->name);
        return;
    }
    check_quantize(t);
    check_reference(t);
    check_zero_block(t);
    check_dequantize(t);
    check_wide(t);
}

static void read_input(json_t * root) {
    json_t * bits = at(at(root, "input"), "f32_bits_big_endian_hex");
    tally_begin(&tally, "input");
    tally_that(&tally, json_array_size(bits) == N, "%zu values", json_array_size(bits));
    for (int i = 0; i < N; i++) {
        const char * hex = json_string_value(json_array_get(bits, (size_t)i));
        const uint32_t value = (uint32_t)strtoul(hex ? hex : "", NULL, 16);
        memcpy(&input[i], &value, sizeof(value));
        matrix[i] = (float)(1 + i % 3);
    }
    check_hash(input, sizeof(input), at(root, "input"), "sha256");
    tally_end(&tally);
}

int main(int argc, char ** argv) {
    json_error_t error;
    json_t * root = argc == 2 ? json_load_file(argv[1], 0, &error) : NULL;
    if (!root) {
        fprintf(stderr, argc == 2 ? "quant_vectors: %s: line %d: %s\n" : "usage: quant_vectors FILE\n",
                argc == 2 ? argv[1] : "", argc == 2 ? error.line : 0, argc == 2 ? error.text : "");
        return 2;
    }
    read_input(root);
    const char * name;
    json_t * node;
    json_object_foreach(at(root, "types"), name, node) {
        const struct type t = find_type(name, node);
        check_type(&t);
    }
    json_object_foreach(at(root, "codebooks"), name, node) { check_codebook(at(root, "types"), name, node); }
    sotto_quantize_free();
    json_decref(root);
    return tally_report(&tally);
}
