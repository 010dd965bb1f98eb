/* SPDX-License-Identifier: MIT */
/* Sizes and layout questions, also on records filled by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/tensor_impl.h"
#include "sotto/ops.h"

static struct sotto_tensor record(enum sotto_type type, const int64_t ne[4], const size_t nb[4]) {
    struct sotto_tensor t = { .type = type };
    memcpy(t.ne, ne, sizeof(t.ne));
    memcpy(t.nb, nb, sizeof(t.nb));
    return t;
}

static struct sotto_tensor dense(enum sotto_type type, int64_t n0, int64_t n1, int64_t n2, int64_t n3) {
    int64_t ne[4] = { n0, n1, n2, n3 };
    size_t nb[4] = { 0 };
    size_t bytes;
    assert_true(sotto_i_dense(type, ne, nb, &bytes));
    return record(type, ne, nb);
}

/* ---- sizes ---- */

static void sizes(void ** state) {
    (void)state;
    struct sotto_tensor t = dense(SOTTO_TYPE_F32, 5, 3, 2, 2);
    assert_int_equal(sotto_nelements(&t), 60);
    assert_int_equal(sotto_nrows(&t), 12);
    assert_int_equal(sotto_nbytes(&t), 240);
    assert_int_equal(sotto_nbytes_pad(&t), 240);
    assert_int_equal(sotto_element_size(&t), 4);
    assert_int_equal(sotto_n_dims(&t), 4);
    t = dense(SOTTO_TYPE_Q4_0, 64, 3, 1, 1);
    assert_int_equal(sotto_nbytes(&t), 108);
    assert_int_equal(sotto_nbytes_pad(&t), 112);
    assert_int_equal(sotto_element_size(&t), 18);
    assert_int_equal(sotto_n_dims(&t), 2);
    t = dense(SOTTO_TYPE_F32, 1, 1, 1, 1);
    assert_int_equal(sotto_n_dims(&t), 1);
    t = record(SOTTO_TYPE_F32, (int64_t[]){ 3, 3, 1, 1 }, (size_t[]){ 4, 24, 72, 72 }); /* gaps count */
    assert_int_equal(sotto_nbytes(&t), 60);
    t = record(SOTTO_TYPE_F32, (int64_t[]){ 2, 3, 1, 1 }, (size_t[]){ 4, 0, 0, 0 }); /* repeated rows do not */
    assert_int_equal(sotto_nbytes(&t), 8);
    t = record(SOTTO_TYPE_F16, (int64_t[]){ 3, 2, 1, 1 }, (size_t[]){ 100, 2, 400, 400 });
    assert_int_equal(sotto_nbytes(&t), 204);
}

static void empty_tensors_have_no_bytes(void ** state) {
    (void)state;
    struct sotto_tensor t = dense(SOTTO_TYPE_F32, 4096, 0, 1, 1); /* case X13 */
    assert_int_equal(sotto_nbytes(&t), 0);
    assert_int_equal(sotto_nelements(&t), 0);
    assert_true(sotto_is_empty(&t));
    assert_true(sotto_is_contiguous(&t));
    assert_true(sotto_is_contiguously_allocated(&t));
    t = dense(SOTTO_TYPE_Q4_K, 4096, 0, 1, 1);
    assert_int_equal(sotto_nbytes(&t), 0);
    assert_true(sotto_is_contiguous(&t));
    for (int d = 0; d < 4; d++) {
        int64_t ne[4] = { 32, 3, 2, 5 };
        ne[d] = 0;
        t = dense(SOTTO_TYPE_Q8_0, ne[0], ne[1], ne[2], ne[3]);
        assert_int_equal(sotto_nbytes(&t), 0);
        assert_int_equal(sotto_nelements(&t), 0);
        assert_true(sotto_is_empty(&t));
        t.ne[d] = -1; /* by hand */
        assert_int_equal(sotto_nbytes(&t), 0);
        assert_int_equal(sotto_nelements(&t), 0);
    }
}

static void records_by_hand_do_no_harm(void ** state) {
    (void)state;
    struct sotto_tensor t =
        record(SOTTO_TYPE_F32, (int64_t[]){ INT64_MAX, INT64_MAX, 2, 2 }, (size_t[]){ 4, SIZE_MAX, SIZE_MAX, 1 });
    sotto_clear_last_error();
    assert_int_equal(sotto_nbytes(&t), 0);
    assert_int_equal(sotto_last_error(), SOTTO_E_MEMORY);
    assert_int_equal(sotto_nelements(&t), 0);
    assert_int_equal(sotto_nbytes_pad(&t), 0);
    assert_false(sotto_is_contiguously_allocated(&t));
    static const int strange[] = { -5, 4, 36, SOTTO_TYPE_COUNT, 99999 };
    for (size_t i = 0; i < sizeof(strange) / sizeof(strange[0]); i++) {
        t = record((enum sotto_type)strange[i], (int64_t[]){ 4, 1, 1, 1 }, (size_t[]){ 4, 16, 16, 16 });
        assert_int_equal(sotto_nbytes(&t), 0);
        assert_int_equal(sotto_element_size(&t), 0);
        assert_false(sotto_is_contiguous(&t));
        assert_false(sotto_is_contiguous_rows(&t));
        assert_false(sotto_is_contiguously_allocated(&t));
    }
}

/* ---- shapes ---- */

static void shapes(void ** state) {
    (void)state;
    struct sotto_tensor scalar = dense(SOTTO_TYPE_F32, 1, 1, 1, 1);
    struct sotto_tensor vector = dense(SOTTO_TYPE_F32, 7, 1, 1, 1);
    struct sotto_tensor matrix = dense(SOTTO_TYPE_F32, 1, 7, 1, 1);
    struct sotto_tensor cube = dense(SOTTO_TYPE_F32, 1, 1, 7, 1);
    struct sotto_tensor four = dense(SOTTO_TYPE_F32, 1, 1, 1, 7);
    const struct sotto_tensor * all[] = { &scalar, &vector, &matrix, &cube, &four };
    for (int i = 0; i < 5; i++) {
        assert_int_equal(sotto_is_scalar(all[i]), i < 1);
        assert_int_equal(sotto_is_vector(all[i]), i < 2);
        assert_int_equal(sotto_is_matrix(all[i]), i < 3);
        assert_int_equal(sotto_is_3d(all[i]), i < 4);
        assert_false(sotto_is_view(all[i]));
        for (int k = 0; k < 5; k++) {
            assert_int_equal(sotto_are_same_shape(all[i], all[k]), i == k);
        }
    }
    assert_true(sotto_are_same_stride(&scalar, &scalar));
    assert_false(sotto_are_same_stride(&scalar, &vector));
}

static void tiling(void ** state) {
    (void)state;
    struct sotto_tensor a = dense(SOTTO_TYPE_F32, 3, 2, 1, 1);
    struct sotto_tensor b = dense(SOTTO_TYPE_F32, 6, 2, 5, 1);
    struct sotto_tensor c = dense(SOTTO_TYPE_F32, 7, 2, 5, 1);
    struct sotto_tensor none = dense(SOTTO_TYPE_F32, 3, 0, 1, 1);
    assert_true(sotto_can_repeat(&a, &b));
    assert_false(sotto_can_repeat(&b, &a));
    assert_false(sotto_can_repeat(&a, &c));
    assert_true(sotto_can_repeat(&a, &none));
    assert_false(sotto_can_repeat(&none, &a));
    assert_true(sotto_can_repeat(&none, &none));
}

/* ---- strides ---- */

static void order_of_strides(void ** state) {
    (void)state;
    struct sotto_tensor t = dense(SOTTO_TYPE_F32, 4, 3, 2, 2);
    assert_false(sotto_is_transposed(&t));
    assert_false(sotto_is_permuted(&t));
    t = record(SOTTO_TYPE_F32, (int64_t[]){ 3, 4, 2, 2 }, (size_t[]){ 16, 4, 48, 96 });
    assert_true(sotto_is_transposed(&t));
    assert_true(sotto_is_permuted(&t));
    assert_false(sotto_is_contiguous(&t));
    assert_false(sotto_is_contiguous_rows(&t));
    assert_true(sotto_is_contiguously_allocated(&t));
    t = record(SOTTO_TYPE_F32, (int64_t[]){ 4, 2, 3, 2 }, (size_t[]){ 4, 48, 16, 96 });
    assert_false(sotto_is_transposed(&t));
    assert_true(sotto_is_permuted(&t));
    assert_true(sotto_is_contiguous_rows(&t));
    t = dense(SOTTO_TYPE_F32, 0, 3, 1, 1);
    assert_true(sotto_is_transposed(&t)); /* nb1 is 0: as the specification notes */
    t = record(SOTTO_TYPE_F32, (int64_t[]){ 5, 4, 3, 1 }, (size_t[]){ 12, 60, 4, 240 });
    assert_true(sotto_is_contiguous_channels(&t));
    t = dense(SOTTO_TYPE_F32, 5, 4, 3, 1);
    assert_false(sotto_is_contiguous_channels(&t));
}

static void rule_c(void ** state) {
    (void)state;
    static const int64_t ne[] = { 4, 3, 2, 5 };
    static const struct {
        size_t nb[4];
        bool c0, c1, c2, to1, to2, to3;
    } cases[] = {
        { { 4, 16, 48, 96 }, true, true, true, true, true, true },
        { { 4, 20, 60, 120 }, false, true, true, true, false, false }, /* padded rows */
        { { 4, 16, 64, 128 }, false, false, true, true, true, false }, /* padded matrices */
        { { 4, 16, 48, 100 }, false, false, false, true, true, true },
        { { 8, 32, 96, 192 }, false, false, false, false, false, false }, /* every other element */
        { { 4, 32, 16, 96 }, false, false, false, true, false, false },   /* permuted: C(2,4) wants nb3 = 2 * 16 */
        { { 4, 32, 16, 32 }, false, false, true, true, false, false },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct sotto_tensor t = record(SOTTO_TYPE_F32, ne, cases[i].nb);
        assert_int_equal(sotto_is_contiguous(&t), cases[i].c0);
        assert_int_equal(sotto_is_contiguous_0(&t), cases[i].c0);
        assert_int_equal(sotto_is_contiguous_1(&t), cases[i].c1);
        assert_int_equal(sotto_is_contiguous_2(&t), cases[i].c2);
        assert_int_equal(sotto_is_contiguous_to_1(&t), cases[i].to1);
        assert_int_equal(sotto_is_contiguous_to_2(&t), cases[i].to2);
        assert_int_equal(sotto_is_contiguous_to_3(&t), cases[i].to3);
    }
}

/* Case X02: a dimension of extent 1 decides nothing, wherever it is and whatever its stride. */
static void extents_of_one_carry_any_stride(void ** state) {
    (void)state;
    struct sotto_tensor t = record(SOTTO_TYPE_F32, (int64_t[]){ 192, 1, 128, 1 }, (size_t[]){ 4, 1536, 1536, 196608 });
    assert_true(sotto_is_contiguous_1(&t));
    assert_false(sotto_is_contiguous(&t));
    for (unsigned ones = 0; ones < 16; ones++) {
        int64_t ne[4];
        for (int d = 0; d < 4; d++) {
            ne[d] = ones & (1u << d) ? 1 : d + 2;
        }
        struct sotto_tensor plain = dense(SOTTO_TYPE_F32, ne[0], ne[1], ne[2], ne[3]);
        for (size_t junk = 0; junk < 100000; junk = junk * 3 + 7) {
            struct sotto_tensor odd = plain;
            for (int d = 0; d < 4; d++) {
                odd.nb[d] = ne[d] == 1 ? junk : plain.nb[d];
            }
            assert_true(sotto_is_contiguous(&odd));
            assert_true(sotto_is_contiguous_1(&odd));
            assert_true(sotto_is_contiguous_2(&odd));
            assert_true(sotto_is_contiguous_to_3(&odd));
            assert_true(sotto_is_contiguous_rows(&odd));
            assert_true(sotto_is_contiguously_allocated(&odd));
            assert_int_equal(sotto_nbytes(&odd), sotto_nbytes(&plain));
        }
    }
    t = record(SOTTO_TYPE_Q4_0, (int64_t[]){ 32, 4, 1, 1 }, (size_t[]){ 999, 18, 72, 72 });
    assert_true(sotto_is_contiguous(&t)); /* one block a row */
}

static void self_repetition(void ** state) {
    (void)state;
    struct sotto_tensor t = record(SOTTO_TYPE_F32, (int64_t[]){ 2, 3, 1, 1 }, (size_t[]){ 4, 0, 0, 0 });
    assert_true(sotto_i_repeats_itself(&t));
    t.nb[1] = 8;
    assert_false(sotto_i_repeats_itself(&t)); /* dimensions 2 and 3 have one step */
    t = dense(SOTTO_TYPE_Q4_0, 32, 1, 1, 1);
    t.nb[0] = 0;
    assert_false(sotto_i_repeats_itself(&t));
}

static void null_tensors_are_refused(void ** state) {
    (void)state;
    struct sotto_tensor t = dense(SOTTO_TYPE_F32, 1, 1, 1, 1);
    bool (*const questions[])(const struct sotto_tensor *) = {
        sotto_is_empty,
        sotto_is_scalar,
        sotto_is_vector,
        sotto_is_matrix,
        sotto_is_3d,
        sotto_is_view,
        sotto_is_transposed,
        sotto_is_permuted,
        sotto_is_contiguous,
        sotto_is_contiguous_0,
        sotto_is_contiguous_1,
        sotto_is_contiguous_2,
        sotto_is_contiguous_to_1,
        sotto_is_contiguous_to_2,
        sotto_is_contiguous_to_3,
        sotto_is_contiguously_allocated,
        sotto_is_contiguous_rows,
        sotto_is_contiguous_channels,
    };
    for (size_t i = 0; i < sizeof(questions) / sizeof(questions[0]); i++) {
        sotto_clear_last_error();
        assert_false(questions[i](NULL));
        assert_int_equal(sotto_last_error(), SOTTO_E_NULLARG);
    }
    assert_false(sotto_are_same_shape(&t, NULL));
    assert_false(sotto_are_same_stride(NULL, &t));
    assert_false(sotto_can_repeat(NULL, NULL));
    assert_int_equal(sotto_nelements(NULL), 0);
    assert_int_equal(sotto_nrows(NULL), 0);
    assert_int_equal(sotto_nbytes(NULL), 0);
    assert_int_equal(sotto_nbytes_pad(NULL), 0);
    assert_int_equal(sotto_element_size(NULL), 0);
    assert_int_equal(sotto_n_dims(NULL), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes),
        cmocka_unit_test(empty_tensors_have_no_bytes),
        cmocka_unit_test(records_by_hand_do_no_harm),
        cmocka_unit_test(shapes),
        cmocka_unit_test(tiling),
        cmocka_unit_test(order_of_strides),
        cmocka_unit_test(rule_c),
        cmocka_unit_test(extents_of_one_carry_any_stride),
        cmocka_unit_test(self_repetition),
        cmocka_unit_test(null_tensors_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
