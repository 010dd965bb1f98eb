/* SPDX-License-Identifier: MIT */
/* Reading and writing elements, one by one and all at once, also in views with gaps. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "sotto/cpu.h"

static struct sotto_context * ctx;

static int set_up(void ** state) {
    (void)state;
    ctx = sotto_init((struct sotto_init_params){ .mem_size = 1 << 16 });
    return 0;
}

static int tear_down(void ** state) {
    (void)state;
    sotto_free(ctx);
    return 0;
}

static const enum sotto_type six[] = { SOTTO_TYPE_I8,  SOTTO_TYPE_I16,  SOTTO_TYPE_I32,
                                       SOTTO_TYPE_F16, SOTTO_TYPE_BF16, SOTTO_TYPE_F32 };

static void every_type_gives_back_what_it_holds(void ** state) {
    (void)state;
    for (size_t k = 0; k < 6; k++) {
        struct sotto_tensor * t = sotto_new_tensor_4d(ctx, six[k], 3, 2, 2, 2);
        for (int i = 0; i < 24; i++) {
            assert_int_equal(sotto_set_i32_1d(t, i, i - 12), SOTTO_OK);
        }
        for (int i = 0; i < 24; i++) {
            assert_int_equal(sotto_get_i32_1d(t, i), i - 12);
            assert_true(sotto_get_f32_1d(t, i) == (float)(i - 12));
            assert_int_equal(sotto_get_i32_nd(t, i % 3, i / 3 % 2, i / 6 % 2, i / 12), i - 12);
        }
        assert_int_equal(sotto_set_f32_nd(t, 1, 1, 0, 1, -2.75f), SOTTO_OK);
        assert_int_equal(sotto_get_i32_nd(t, 1, 1, 0, 1), -2); /* towards zero, when read or when stored */
        assert_true(sotto_get_f32_nd(t, 1, 1, 0, 1) == (k < 3 ? -2.0f : -2.75f));
        assert_int_equal(sotto_set_i32_nd(t, 0, 0, 0, 0, 5), SOTTO_OK);
        assert_int_equal(sotto_set_f32_1d(t, 23, 7.0f), SOTTO_OK);
        assert_int_equal(sotto_get_i32_1d(t, 23), 7);
    }
}

static void integers_saturate(void ** state) {
    (void)state;
    struct sotto_tensor * t = sotto_new_tensor_1d(ctx, SOTTO_TYPE_I8, 1);
    sotto_set_i32_1d(t, 0, 300);
    assert_int_equal(sotto_get_i32_1d(t, 0), 127);
    sotto_set_f32_1d(t, 0, -1e9f);
    assert_int_equal(sotto_get_i32_1d(t, 0), -128);
    sotto_set_f32_1d(t, 0, NAN);
    assert_int_equal(sotto_get_i32_1d(t, 0), 0);
    t = sotto_new_f32(ctx, 1e20f);
    assert_int_equal(sotto_get_i32_1d(t, 0), INT32_MAX);
    sotto_set_f32(t, -INFINITY);
    assert_int_equal(sotto_get_i32_1d(t, 0), INT32_MIN);
    sotto_set_f32(t, NAN);
    assert_int_equal(sotto_get_i32_1d(t, 0), 0);
    assert_true(isnan(sotto_get_f32_1d(t, 0)));
    t = sotto_new_i32(ctx, INT32_MAX - 1);
    assert_int_equal(sotto_get_i32_1d(t, 0), INT32_MAX - 1);
}

static void logical_index_follows_strides(void ** state) {
    (void)state;
    struct sotto_tensor * t = sotto_new_tensor_3d(ctx, SOTTO_TYPE_F32, 3, 4, 5);
    for (int i = 0; i < 60; i++) {
        sotto_set_f32_1d(t, i, (float)i);
    }
    struct sotto_tensor * p = sotto_permute(ctx, t, 2, 0, 1, 3); /* [4, 5, 3] */
    for (int64_t i = 0; i < 60; i++) {
        int64_t i0, i1, i2;
        sotto_unravel_index(p, i, &i0, &i1, &i2, NULL);
        assert_int_equal(i, i0 + 4 * i1 + 20 * i2);
        assert_true(sotto_get_f32_1d(p, i) == (float)(i2 + 3 * i0 + 12 * i1));
    }
    sotto_set_i32_1d(p, 21, 99);
    assert_true(sotto_get_f32_nd(t, 1, 1, 0, 0) == 99.0f);
}

/* A window [2, 2, 2] into [4, 3, 3], filled with 7: everything outside stays. */
static void filling_leaves_gaps_alone(void ** state) {
    (void)state;
    for (size_t k = 0; k < 6; k++) {
        struct sotto_tensor * t = sotto_set_i32(sotto_new_tensor_3d(ctx, six[k], 4, 3, 3), 1);
        size_t es = sotto_element_size(t);
        struct sotto_tensor * v = sotto_view_3d(ctx, t, 2, 2, 2, t->nb[1], t->nb[2], t->nb[1] + es);
        for (int round = 0; round < 3; round++) {
            int want = round == 2 ? 0 : 7 + round;
            struct sotto_tensor * got = round == 0   ? sotto_set_i32(v, 7)
                                        : round == 1 ? sotto_set_f32(v, 8.0f)
                                                     : sotto_set_zero(v);
            assert_ptr_equal(got, v);
            for (int i = 0; i < 36; i++) {
                int i0 = i % 4, i1 = i / 4 % 3, i2 = i / 12;
                bool inside = i0 >= 1 && i0 < 3 && i1 >= 1 && i2 < 2;
                assert_int_equal(sotto_get_i32_1d(t, i), inside ? want : 1);
            }
        }
    }
}

static void zero_reaches_all_types(void ** state) {
    (void)state;
    static const enum sotto_type types[] = { SOTTO_TYPE_Q4_0, SOTTO_TYPE_Q8_K, SOTTO_TYPE_F64, SOTTO_TYPE_I64 };
    for (size_t k = 0; k < 4; k++) {
        struct sotto_tensor * t = sotto_new_tensor_2d(ctx, types[k], 256, 2);
        memset(t->data, 0xAA, sotto_nbytes(t));
        assert_ptr_equal(sotto_set_zero(t), t);
        for (size_t i = 0; i < sotto_nbytes(t); i++) {
            assert_int_equal(((char *)t->data)[i], 0);
        }
    }
    struct sotto_tensor * none = sotto_new_tensor_2d(ctx, SOTTO_TYPE_F32, 0, 3);
    assert_ptr_equal(sotto_set_zero(none), none);
    assert_ptr_equal(sotto_set_f32(none, 1.0f), none);
}

static void faults(void ** state) {
    (void)state;
    struct sotto_tensor * t = sotto_set_f32(sotto_new_tensor_2d(ctx, SOTTO_TYPE_F32, 3, 2), 4.0f);
    static const int64_t outside[] = { -1, 6, INT64_MIN, INT64_MAX };
    for (size_t i = 0; i < 4; i++) {
        sotto_clear_last_error();
        assert_true(sotto_get_f32_1d(t, outside[i]) == 0.0f);
        assert_int_equal(sotto_last_error(), SOTTO_E_PARAM);
        assert_int_equal(sotto_set_f32_1d(t, outside[i], 1.0f), SOTTO_E_PARAM);
        assert_int_equal(sotto_set_i32_nd(t, 0, outside[i], 0, 0, 1), SOTTO_E_PARAM);
        int64_t i0 = 5, i1 = 5, i2 = 5, i3 = 5;
        sotto_unravel_index(t, outside[i], &i0, &i1, &i2, &i3);
        assert_int_equal(i0 | i1 | i2 | i3, 0);
    }
    struct sotto_tensor * q = sotto_new_tensor_1d(ctx, SOTTO_TYPE_Q4_0, 32);
    assert_int_equal(sotto_set_f32_1d(q, 0, 1.0f), SOTTO_E_TYPE);
    assert_null(sotto_set_f32(q, 1.0f));
    assert_int_equal(sotto_set_i32_1d(sotto_new_tensor_1d(ctx, SOTTO_TYPE_I64, 1), 0, 1), SOTTO_E_TYPE);
    assert_null(sotto_get_data_f32(q));
    assert_int_equal(sotto_last_error(), SOTTO_E_TYPE);
    assert_ptr_equal(sotto_get_data_f32(t), t->data);
    assert_ptr_equal(sotto_get_data(q), q->data);
    sotto_set_no_alloc(ctx, true);
    struct sotto_tensor * bare = sotto_new_tensor_1d(ctx, SOTTO_TYPE_F32, 4);
    assert_int_equal(sotto_set_f32_1d(bare, 0, 1.0f), SOTTO_E_STATE);
    assert_null(sotto_set_zero(bare));
    assert_int_equal(sotto_last_error(), SOTTO_E_STATE);
    assert_int_equal(sotto_set_f32_1d(NULL, 0, 1.0f), SOTTO_E_NULLARG);
    assert_int_equal(sotto_get_i32_nd(NULL, 0, 0, 0, 0), 0);
    assert_null(sotto_set_zero(NULL));
    assert_null(sotto_set_i32(NULL, 1));
    assert_null(sotto_get_data(NULL));
    assert_null(sotto_get_data_f32(NULL));
    assert_int_equal(sotto_last_error(), SOTTO_E_NULLARG);
}

static void packed_weights_are_no_host_memory(void ** state) {
    (void)state;
    sotto_set_no_alloc(ctx, true);
    struct sotto_tensor * t = sotto_new_tensor_2d(ctx, SOTTO_TYPE_F32, 4, 20);
    sotto_backend_buffer_t buffer =
        sotto_backend_alloc_ctx_tensors_from_buft(ctx, sotto_backend_cpu_packed_buffer_type());
    assert_non_null(buffer);
    assert_int_equal(sotto_set_f32_1d(t, 0, 1.0f), SOTTO_E_UNSUPPORTED);
    assert_null(sotto_set_f32(t, 1.0f));
    sotto_backend_buffer_free(buffer);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(every_type_gives_back_what_it_holds), TEST(integers_saturate),      TEST(logical_index_follows_strides),
        TEST(filling_leaves_gaps_alone),           TEST(zero_reaches_all_types), TEST(faults),
        TEST(packed_weights_are_no_host_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
