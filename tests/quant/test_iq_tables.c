/* SPDX-License-Identifier: MIT */
/* Codebooks as the compiler made them, and search tables: what they hold, making and releasing them. */
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/tensor_impl.h"
#include "core/type_convert.h"
#include "quant/codebooks.h"
#include "quant/lattice.h"
#include "sotto/ops.h"
#include "sotto/quant.h"
#include "support/counting_allocator.h"
#include "support/refuse_each.h"
#include "support/sha256.h"

enum { N = 512, ROWS = 4, MOST_BYTES = N / 256 * 144 };

static const enum sotto_type WITH_TABLES[] = { SOTTO_TYPE_IQ2_XXS, SOTTO_TYPE_IQ2_XS, SOTTO_TYPE_IQ2_S,
                                               SOTTO_TYPE_IQ3_XXS, SOTTO_TYPE_IQ3_S,  SOTTO_TYPE_IQ1_S,
                                               SOTTO_TYPE_IQ1_M };
enum { TYPES = sizeof(WITH_TABLES) / sizeof(WITH_TABLES[0]) };

static float values[ROWS * N], weights[N];

static void make_values(void) {
    for (int i = 0; i < ROWS * N; i++) {
        values[i] = sinf(0.37f * (float)i) * (1.0f + 0.1f * (float)(i % 7));
        weights[i % N] = 1.0f + (float)(i % 3);
    }
}

/* ---- codebooks */

static void is_hash(const void * data, size_t bytes, const char * expected) {
    char hex[65];
    sha256_hex(data, bytes, hex);
    assert_string_equal(hex, expected);
}

static void codes_have_hash(const uint16_t * codes, int rows, const char * expected) {
    uint8_t bytes[2 * 2048];
    for (int r = 0; r < rows; r++) {
        bytes[2 * r] = (uint8_t)codes[r];
        bytes[2 * r + 1] = (uint8_t)(codes[r] >> 8);
    }
    is_hash(bytes, 2 * (size_t)rows, expected);
}

/* quant.md section 4 */
static void codebooks_have_their_hashes(void ** state) {
    (void)state;
#define CHECK(name, grid, codes)                                     \
    is_hash(sotto_i_grid_##name, sizeof(sotto_i_grid_##name), grid); \
    codes_have_hash(sotto_i_codes_##name, sizeof(sotto_i_codes_##name) / sizeof(uint16_t), codes);
    CHECK(iq2_xxs, "05826b5d3e472a3a78f196be62ac78acf81df0f909626e12ab9fa2a5d490dd54",
          "915952ebc4af8ddba8113583ca1316fc818843f7b825bbf1a25ae1c39bf0e16d")
    CHECK(iq2_xs, "06e47aaca60b4dc1d9b5a3f34540437058a6b142b4d7a59d5ded769b4d1bf1de",
          "f66435966ca8d64e9e4a6e3c91e64afcf9015e700ec85962f527283ebae207b9")
    CHECK(iq2_s, "e1aa1473412b0552c2174c30ef22ab4073f6a181b85a17056e8249bd2932fd88",
          "e6e75e121b65e8afa5c1f92b71463cfbe217b83893f438acde22fd5db06a43f7")
    CHECK(iq3_xxs, "46e35f5a997efdee6c99ce57854c8a0d4f0ff8ca57e5e8a60c0793ea580acf5d",
          "c9678803c61b2210fbd8cbbb3f965a835409cd7d88a04d086d236261bd221d11")
    CHECK(iq3_s, "bd1af4945a1717c65610b0284e4628b9a1ba3b306fae3a06f6e5f597356e349f",
          "353274c58dd7d8dc5ee960dc8fc54ff9164eaf2b49206b841cd49415cf393f81")
    CHECK(iq1_s, "07540ffc1aeaf6ad4d97e96b0fcc765aae39671d4ae4a27bbd0e796fde167c6a",
          "e9ffebfc997ad6023063a667c0bf4eedd8ebf7f56b3da399cbc7d1b1f7ea52c6")
#undef CHECK
}

static void signs_and_values_have_their_hashes(void ** state) {
    (void)state;
    uint8_t signs[128];
    for (unsigned k = 0; k < 128; k++) {
        signs[k] = even_signs(k);
    }
    is_hash(signs, sizeof(signs), "a76742a603f8beca5212ecce0f1f02f11a4887fd2f7c8b15aca0ea3eb3380c31");
    is_hash(sotto_i_iq4_values, 16, "61aa47540aa024b5d6ddaa839b84ffe59f3d5a349af5c6c7ffcb5e0474b46163");
}

/* ---- tables */

static int distance(const struct sotto_i_lattice * t, int cell, int row) {
    int sum = 0;
    for (int i = 0; i < t->length; i++, cell /= t->levels) {
        const int step = 2 * (cell % t->levels - t->digits[row * ROW_MAX + i]);
        sum += step * step;
    }
    return sum;
}

/* Every row is at most as far as the last neighbour and then in the list, or farther than all of it. */
static void check_cell(const struct sotto_i_lattice * t, int cell, int shells) {
    const uint16_t * list = t->neighbours + t->first[cell];
    const int n = (int)(t->first[cell + 1] - t->first[cell]), own = t->row[cell];
    if (own >= 0) {
        assert_int_equal(distance(t, cell, own), 0);
        assert_int_equal(n, 0);
        return;
    }
    assert_true(n > 0);
    int seen = 1, within = 0;
    for (int i = 1; i < n; i++) {
        const int before = distance(t, cell, list[i - 1]), here = distance(t, cell, list[i]);
        assert_true(before < here || (before == here && list[i - 1] < list[i]));
        seen += before < here;
    }
    assert_int_equal(seen, shells);
    for (int row = 0; row < t->rows; row++) {
        within += distance(t, cell, row) <= distance(t, cell, list[n - 1]);
    }
    assert_int_equal(within, n);
}

static void tables_list_the_nearest_rows(void ** state) {
    (void)state;
    static const int SHELLS[BOOK_COUNT] = { 2, 2, 1, 2, 3, 3 };
    for (int book = 0; book < BOOK_COUNT; book++) {
        assert_int_equal(sotto_i_lattice_make((enum sotto_i_book)book), SOTTO_OK);
        const struct sotto_i_lattice * t = sotto_i_lattice((enum sotto_i_book)book);
        assert_int_equal(t->cells, t->length == 8 ? 6561 : 4096);
        for (int cell = 0; cell < t->cells; cell += 7) {
            check_cell(t, cell, SHELLS[book]);
        }
        assert_ptr_equal(t, sotto_i_lattice((enum sotto_i_book)book));
        sotto_i_lattice_free((enum sotto_i_book)book);
        assert_null(sotto_i_lattice((enum sotto_i_book)book));
    }
}

static void quantise_all(enum sotto_type type, uint8_t * out) {
    const size_t bytes = sotto_row_size(type, N) * ROWS;
    assert_int_equal(sotto_quantize_chunk(type, values, out, 0, ROWS, N, weights), bytes);
}

static void tables_are_made_once_and_again_after_release(void ** state) {
    (void)state;
    struct counting_allocator allocator;
    counting_allocator_init(&allocator);
    const struct sotto_allocator * before = sotto_default_allocator();
    assert_int_equal(sotto_set_default_allocator(&allocator.base), SOTTO_OK);
    for (int i = 0; i < TYPES; i++) {
        uint8_t first[ROWS * MOST_BYTES] = { 0 }, second[ROWS * MOST_BYTES] = { 0 };
        sotto_quantize_init(WITH_TABLES[i]);
        const long requests = allocator.requests;
        assert_true(requests > 0 && allocator.held > 0);
        sotto_quantize_init(WITH_TABLES[i]);
        quantise_all(WITH_TABLES[i], first);
        assert_int_equal(allocator.requests, requests);
        sotto_quantize_free();
        sotto_quantize_free();
        assert_int_equal(allocator.held, 0);
        quantise_all(WITH_TABLES[i], second); /* makes them itself */
        assert_memory_equal(first, second, sizeof(first));
    }
    sotto_quantize_init(SOTTO_TYPE_IQ4_NL); /* has none */
    assert_int_equal(sotto_set_default_allocator(before), SOTTO_OK);
    sotto_quantize_free(); /* goes to the allocator they came from */
    assert_int_equal(allocator.held, 0);
}

static enum sotto_status use(const struct sotto_allocator * allocator, void * user_data) {
    const enum sotto_type type = *(const enum sotto_type *)user_data;
    uint8_t out[ROWS * MOST_BYTES];
    memset(out, 0xA5, sizeof(out));
    const struct sotto_allocator * before = sotto_default_allocator();
    sotto_set_default_allocator(allocator);
    const size_t bytes = sotto_quantize_chunk(type, values, out, 0, ROWS, N, weights);
    const enum sotto_status status = bytes ? SOTTO_OK : sotto_last_error();
    for (size_t i = 0; !bytes && i < sizeof(out); i++) {
        assert_int_equal(out[i], 0xA5);
    }
    sotto_set_default_allocator(before);
    sotto_quantize_free();
    return status;
}

static void no_memory_is_a_status(void ** state) {
    (void)state;
    for (int i = 0; i < TYPES; i++) {
        enum sotto_type type = WITH_TABLES[i];
        assert_true(refuse_each(use, &type) >= 5);
    }
}

static void * quantise_thread(void * out) {
    for (int i = 0; i < TYPES; i++) {
        quantise_all(WITH_TABLES[i], (uint8_t *)out + i * ROWS * MOST_BYTES);
    }
    return NULL;
}

static void threads_may_make_them_at_once(void ** state) {
    (void)state;
    static uint8_t out[4][TYPES * ROWS * MOST_BYTES];
    pthread_t threads[4];
    for (int round = 0; round < 2; round++) {
        sotto_quantize_free();
        for (int t = 0; t < 4; t++) {
            assert_int_equal(pthread_create(&threads[t], NULL, quantise_thread, out[t]), 0);
        }
        for (int t = 0; t < 4; t++) {
            assert_int_equal(pthread_join(threads[t], NULL), 0);
            assert_memory_equal(out[t], out[0], sizeof(out[0]));
        }
    }
    sotto_quantize_free();
}

/* ---- rows without tables, and graphs */

static void rows_need_the_tables(void ** state) {
    (void)state;
    static const enum sotto_type TYPES_BY_ROWS[] = { SOTTO_TYPE_IQ2_S, SOTTO_TYPE_IQ3_XXS, SOTTO_TYPE_IQ3_S };
    sotto_quantize_free();
    for (int i = 0; i < 3; i++) {
        const enum sotto_type type = TYPES_BY_ROWS[i];
        const size_t bytes = sotto_row_size(type, N);
        uint8_t row[MOST_BYTES], chunk[MOST_BYTES], none[MOST_BYTES] = { 0 };
        memset(row, 0xA5, sizeof(row));
        sotto_get_type_traits(type)->from_float_ref(values, row, N);
        assert_memory_equal(row, none, bytes);
        assert_int_equal(sotto_quantize_chunk(type, values, chunk, 0, 1, N, NULL), bytes);
        sotto_get_type_traits(type)->from_float_ref(values, row, N);
        assert_memory_equal(row, chunk, bytes);
    }
    sotto_quantize_free();
}

/* Nodes of graphs cannot make tables, so nothing is converted to these types there. */
static void graphs_do_not_convert_to_them(void ** state) {
    (void)state;
    for (int i = 0; i < TYPES; i++) {
        assert_false(sotto_i_takes_float_rows(WITH_TABLES[i]));
        assert_true(sotto_i_gives_float_rows(WITH_TABLES[i]));
    }
    assert_true(sotto_i_takes_float_rows(SOTTO_TYPE_IQ4_NL) && sotto_i_takes_float_rows(SOTTO_TYPE_IQ4_XS));
    struct sotto_context * ctx = sotto_init((struct sotto_init_params){ 1 << 16, NULL, false });
    struct sotto_tensor * from = sotto_new_tensor_1d(ctx, SOTTO_TYPE_F32, 256);
    assert_null(sotto_cpy(ctx, from, sotto_new_tensor_1d(ctx, SOTTO_TYPE_IQ3_S, 256)));
    assert_int_equal(sotto_last_error(), SOTTO_E_TYPE);
    sotto_free(ctx);
}

/* ---- values of any kind */

static float bits_to_float(uint32_t bits) {
    float v;
    memcpy(&v, &bits, sizeof(v));
    return v;
}

/* Any bits, then finite values with a few that are not: no sanitizer may object, and the bytes are the same twice. */
static void any_floats_can_be_quantised(void ** state) {
    (void)state;
    static float x[ROWS * N];
    uint32_t seed = 1;
    for (int round = 0; round < 8; round++) {
        for (int i = 0; i < ROWS * N; i++) {
            seed = seed * 1664525u + 1013904223u;
            const float special[4] = { NAN, INFINITY, -INFINITY, 3e38f };
            x[i] = round < 4 ? bits_to_float(seed) : seed >> 24 < 8 ? special[seed >> 22 & 3] : values[i];
        }
        for (int i = 0; i < TYPES + 2; i++) {
            const enum sotto_type type = i < TYPES    ? WITH_TABLES[i]
                                         : i == TYPES ? SOTTO_TYPE_IQ4_NL
                                                      : SOTTO_TYPE_IQ4_XS;
            const float * matrix = sotto_quantize_requires_imatrix(type) || round % 2 ? weights : NULL;
            uint8_t first[ROWS * N / 32 * 18], second[ROWS * N / 32 * 18];
            const size_t bytes = sotto_row_size(type, N) * ROWS;
            assert_int_equal(sotto_quantize_chunk(type, x, first, 0, ROWS, N, matrix), bytes);
            assert_int_equal(sotto_quantize_chunk(type, x, second, 0, ROWS, N, matrix), bytes);
            assert_memory_equal(first, second, bytes);
        }
    }
    sotto_quantize_free();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(codebooks_have_their_hashes),  cmocka_unit_test(signs_and_values_have_their_hashes),
        cmocka_unit_test(tables_list_the_nearest_rows), cmocka_unit_test(tables_are_made_once_and_again_after_release),
        cmocka_unit_test(no_memory_is_a_status),        cmocka_unit_test(threads_may_make_them_at_once),
        cmocka_unit_test(rows_need_the_tables),         cmocka_unit_test(graphs_do_not_convert_to_them),
        cmocka_unit_test(any_floats_can_be_quantised),
    };
    make_values();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
