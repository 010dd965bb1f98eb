/* SPDX-License-Identifier: MIT */
/* Views: where they point, what they may reach, and what they are called. Names and flags of all tensors. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "sotto/ops.h"

static struct sotto_context * ctx;
static struct sotto_tensor * a; /* [6, 4] of 0, 1, 2 ... */

static int set_up(void ** state) {
    (void)state;
    ctx = sotto_init((struct sotto_init_params){ .mem_size = 1 << 16 });
    a = sotto_set_name(sotto_new_tensor_2d(ctx, SOTTO_TYPE_F32, 6, 4), "a");
    for (int i = 0; i < 24; i++) {
        ((float *)a->data)[i] = (float)i;
    }
    return 0;
}

static int tear_down(void ** state) {
    (void)state;
    sotto_free(ctx);
    return 0;
}

static float at(const struct sotto_tensor * t, int64_t i0, int64_t i1) { return sotto_get_f32_nd(t, i0, i1, 0, 0); }

static void check_nb(const struct sotto_tensor * t, size_t nb0, size_t nb1, size_t nb2, size_t nb3) {
    assert_int_equal(t->nb[0], nb0);
    assert_int_equal(t->nb[1], nb1);
    assert_int_equal(t->nb[2], nb2);
    assert_int_equal(t->nb[3], nb3);
}

/* ---- pointing ---- */

static void views_share_storage(void ** state) {
    (void)state;
    struct sotto_tensor * v = sotto_view_2d(ctx, a, 3, 3, 24, 32);
    check_nb(v, 4, 24, 72, 72);
    assert_ptr_equal(v->view_src, a);
    assert_int_equal(v->view_offs, 32);
    assert_true(at(v, 0, 0) == 8.0f && at(v, 2, 2) == 22.0f);
    struct sotto_tensor * w = sotto_view_1d(ctx, v, 2, 28); /* of a view: still a's */
    assert_ptr_equal(w->view_src, a);
    assert_ptr_equal(w->src[0], v);
    assert_int_equal(w->view_offs, 60);
    assert_int_equal(w->op_params[0], 28); /* the argument */
    assert_true(at(w, 0, 0) == 15.0f);
    check_nb(w, 4, 8, 8, 8);
    struct sotto_tensor * x = sotto_view_3d(ctx, a, 2, 2, 2, 24, 48, 4);
    check_nb(x, 4, 24, 48, 96);
    struct sotto_tensor * y = sotto_view_4d(ctx, a, 2, 2, 1, 2, 24, 24, 48, 4);
    check_nb(y, 4, 24, 24, 48);
    assert_true(sotto_get_f32_nd(y, 1, 1, 0, 1) == 20.0f);
    struct sotto_tensor * same = sotto_view_tensor(ctx, v);
    assert_int_equal(same->op, SOTTO_OP_NONE);
    assert_null(same->src[0]);
    assert_ptr_equal(same->view_src, a);
    assert_ptr_equal(same->data, v->data);
    assert_string_equal(same->name, "a (view) (view)");
    struct sotto_tensor * fresh = sotto_dup_tensor(ctx, v);
    assert_null(fresh->view_src);
    check_nb(fresh, 4, 12, 36, 36);
}

static void permutations_move_extents_and_strides(void ** state) {
    (void)state;
    struct sotto_tensor * b = sotto_new_tensor_4d(ctx, SOTTO_TYPE_F32, 4, 3, 2, 5);
    struct sotto_tensor * p = sotto_permute(ctx, b, 2, 0, 3, 1);
    static const int64_t want[] = { 3, 5, 4, 2 };
    assert_memory_equal(p->ne, want, sizeof(want));
    check_nb(p, 16, 96, 4, 48);
    struct sotto_tensor * t = sotto_transpose(ctx, a);
    assert_int_equal(t->ne[0], 4);
    assert_int_equal(t->ne[1], 6);
    assert_true(at(t, 1, 2) == 8.0f);
    struct sotto_tensor * r = sotto_reshape_3d(ctx, sotto_view_1d(ctx, a, 12, 24), 2, 3, 2);
    assert_true(sotto_get_f32_nd(r, 1, 2, 1, 0) == 17.0f);
    assert_ptr_equal(r->view_src, a);
    assert_int_equal(r->view_offs, 24);
}

static void stride_zero_repeats(void ** state) {
    (void)state;
    struct sotto_tensor * v = sotto_view_2d(ctx, a, 6, 4, 0, 0);
    assert_non_null(v);
    assert_int_equal(sotto_nbytes(v), 24);
    assert_true(at(v, 5, 3) == 5.0f);
    size_t used = sotto_used_mem(ctx);
    assert_null(sotto_cpy(ctx, a, v)); /* no destination */
    assert_int_equal(sotto_context_status(ctx), SOTTO_E_LAYOUT);
    sotto_clear_error(ctx);
    assert_null(sotto_scale_inplace(ctx, v, 2.0f));
    assert_int_equal(sotto_context_status(ctx), SOTTO_E_LAYOUT);
    sotto_clear_error(ctx);
    struct sotto_tensor * six = sotto_new_tensor_1d(ctx, SOTTO_TYPE_F32, 6);
    used = sotto_used_mem(ctx);
    assert_null(sotto_view_2d(ctx, six, 4, 3, 0, 0)); /* dense size is larger than the owner */
    assert_int_equal(sotto_context_status(ctx), SOTTO_E_BOUNDS);
    assert_int_equal(sotto_used_mem(ctx), used);
}

/* ---- reach ---- */

static void expect(struct sotto_tensor * got, size_t used, enum sotto_status status) {
    if (status == SOTTO_OK) {
        assert_non_null(got);
        assert_int_equal(sotto_context_status(ctx), SOTTO_OK);
        return;
    }
    assert_null(got);
    assert_int_equal(sotto_context_status(ctx), status);
    assert_int_equal(sotto_used_mem(ctx), used);
    sotto_clear_error(ctx);
}

#define EXPECT(status, call)               \
    do {                                   \
        size_t used = sotto_used_mem(ctx); \
        expect(call, used, status);        \
    } while (0)

static void bounds(void ** state) {
    (void)state;
    EXPECT(SOTTO_OK, sotto_view_1d(ctx, a, 24, 0));
    EXPECT(SOTTO_E_BOUNDS, sotto_view_1d(ctx, a, 25, 0));
    EXPECT(SOTTO_OK, sotto_view_1d(ctx, a, 1, 92));
    EXPECT(SOTTO_E_BOUNDS, sotto_view_1d(ctx, a, 1, 96));
    EXPECT(SOTTO_E_BOUNDS, sotto_view_1d(ctx, a, 1, SIZE_MAX - 3));
    EXPECT(SOTTO_E_BOUNDS, sotto_view_1d(ctx, a, INT64_MAX, 0));
    EXPECT(SOTTO_OK, sotto_view_2d(ctx, a, 2, 4, 24, 16));
    EXPECT(SOTTO_E_BOUNDS, sotto_view_2d(ctx, a, 2, 4, 24, 20)); /* dense fits, strides do not */
    EXPECT(SOTTO_E_BOUNDS, sotto_view_2d(ctx, a, 1, 2, SIZE_MAX - 3, 0));
    EXPECT(SOTTO_E_BOUNDS, sotto_view_3d(ctx, a, 1, 2, 2, 4, SIZE_MAX / 2 - 3, 0));
    EXPECT(SOTTO_E_BOUNDS, sotto_view_4d(ctx, a, 2, 2, 2, 4, 4, 4, 4, 0)); /* strides fit, dense does not */
    EXPECT(SOTTO_E_SHAPE, sotto_view_1d(ctx, a, -1, 0));
    EXPECT(SOTTO_E_SHAPE, sotto_view_2d(ctx, a, 1, INT64_MIN, 4, 0));
    EXPECT(SOTTO_E_PARAM, sotto_view_1d(ctx, a, 1, 2));
    EXPECT(SOTTO_E_PARAM, sotto_view_2d(ctx, a, 1, 2, 6, 0));
    EXPECT(SOTTO_OK, sotto_view_2d(ctx, a, 0, 3, 4, 0)); /* empty */
    struct sotto_tensor * v = sotto_view_1d(ctx, a, 6, 72);
    EXPECT(SOTTO_OK, sotto_view_1d(ctx, v, 6, 0));
    EXPECT(SOTTO_E_BOUNDS, sotto_view_1d(ctx, v, 6, 4)); /* counted from the owner */
    EXPECT(SOTTO_E_BOUNDS, sotto_view_1d(ctx, v, 1, SIZE_MAX - 71));
}

static void views_of_blocks(void ** state) {
    (void)state;
    struct sotto_tensor * q = sotto_new_tensor_2d(ctx, SOTTO_TYPE_Q4_0, 64, 4);
    EXPECT(SOTTO_OK, sotto_view_2d(ctx, q, 32, 4, 36, 18));
    EXPECT(SOTTO_E_BOUNDS, sotto_view_2d(ctx, q, 32, 4, 36, 36));
    EXPECT(SOTTO_E_SHAPE, sotto_view_1d(ctx, q, 33, 0)); /* case Q05 */
    EXPECT(SOTTO_E_PARAM, sotto_view_1d(ctx, q, 32, 4));
    EXPECT(SOTTO_OK, sotto_permute(ctx, q, 0, 2, 1, 3));
    EXPECT(SOTTO_E_LAYOUT, sotto_permute(ctx, q, 1, 0, 2, 3));
    EXPECT(SOTTO_E_LAYOUT, sotto_transpose(ctx, q));
    EXPECT(SOTTO_OK, sotto_reshape_2d(ctx, q, 128, 2));
    EXPECT(SOTTO_E_SHAPE, sotto_reshape_2d(ctx, q, 16, 16));
}

static void views_in_a_context_without_data(void ** state) {
    (void)state;
    sotto_set_no_alloc(ctx, true);
    struct sotto_tensor * t = sotto_new_tensor_2d(ctx, SOTTO_TYPE_F32, 6, 4);
    assert_null(t->data);
    struct sotto_tensor * v = sotto_view_1d(ctx, t, 6, 24);
    assert_null(v->data);
    assert_ptr_equal(v->view_src, t);
    struct sotto_tensor * w = sotto_view_1d(ctx, a, 6, 24); /* a has data */
    assert_ptr_equal(w->data, (char *)a->data + 24);
}

/* ---- names ---- */

static void builders_name_their_results(void ** state) {
    (void)state;
    struct sotto_tensor * b = sotto_new_tensor_2d(ctx, SOTTO_TYPE_F32, 6, 4);
    struct sotto_tensor * named = sotto_set_name(sotto_dup_tensor(ctx, b), "b");
    assert_string_equal(sotto_view_1d(ctx, a, 1, 0)->name, "a (view)");
    assert_string_equal(sotto_reshape_1d(ctx, a, 24)->name, "a (reshaped)");
    assert_string_equal(sotto_permute(ctx, a, 0, 1, 2, 3)->name, "a (permuted)");
    assert_string_equal(sotto_transpose(ctx, a)->name, "a (transposed)");
    assert_string_equal(sotto_cont(ctx, a)->name, "a (cont)");
    assert_string_equal(sotto_cont_2d(ctx, a, 4, 6)->name, "a (cont)");
    assert_string_equal(sotto_cpy(ctx, a, named)->name, "b (copy of a)");
    assert_string_equal(sotto_cpy(ctx, a, b)->name, "a (copy)");
    assert_string_equal(sotto_cast(ctx, a, SOTTO_TYPE_F16)->name, "a (copy)");
    assert_string_equal(sotto_gelu_inplace(ctx, a)->name, "a (view)");
    assert_string_equal(sotto_add(ctx, a, a)->name, "");
    assert_string_equal(sotto_dup(ctx, a)->name, "");
}

static void names_are_cut_between_characters(void ** state) {
    (void)state;
    char plain[100];
    memset(plain, 'n', sizeof(plain));
    plain[99] = '\0';
    assert_ptr_equal(sotto_set_name(a, plain), a);
    assert_int_equal(strlen(sotto_get_name(a)), 63);
    assert_int_equal(strlen(sotto_view_1d(ctx, a, 1, 0)->name), 63);
    plain[63] = '\0';
    sotto_set_name(a, plain);
    assert_string_equal(a->name, plain);
    for (size_t lead = 60; lead < 64; lead++) { /* a character of three bytes across the limit */
        memset(plain, 'n', lead);
        memcpy(plain + lead,
               "\xE2\x82\xAC"
               "tail",
               8);
        sotto_set_name(a, plain);
        assert_int_equal(strlen(a->name), lead == 60 ? 63 : lead);
        sotto_set_name(a, "");
        sotto_format_name(a, "%s", plain);
        assert_int_equal(strlen(a->name), lead == 60 ? 63 : lead);
    }
    memset(plain, 0x80, 99); /* no UTF-8 at all */
    assert_int_equal(strlen(sotto_set_name(a, plain)->name), 63);
}

static void names_may_be_made_of_themselves(void ** state) {
    (void)state;
    sotto_format_name(a, "%s.%s", a->name, a->name);
    assert_string_equal(a->name, "a.a");
    assert_string_equal(sotto_set_name(a, a->name + 1)->name, ".a");
    for (size_t i = 2; i < SOTTO_MAX_NAME; i++) {
        assert_int_equal(a->name[i], 0);
    }
    sotto_clear_last_error();
    assert_null(sotto_set_name(a, NULL));
    assert_null(sotto_set_name(NULL, "x"));
    assert_null(sotto_format_name(NULL, "x"));
    assert_int_equal(sotto_last_error(), SOTTO_E_NULLARG);
    assert_string_equal(sotto_get_name(NULL), "");
}

/* ---- flags ---- */

static void flags(void ** state) {
    (void)state;
    struct sotto_tensor * v = sotto_view_1d(ctx, a, 3, 0);
    struct sotto_tensor * y = sotto_scale(ctx, a, 2.0f);
    struct sotto_tensor * one = sotto_new_f32(ctx, 1.0f);
    sotto_set_input(y);
    assert_int_equal(y->flags, SOTTO_TENSOR_FLAG_INPUT);
    sotto_set_output(v);
    assert_int_equal(v->flags, SOTTO_TENSOR_FLAG_OUTPUT);
    assert_int_equal(a->flags, SOTTO_TENSOR_FLAG_OUTPUT);
    assert_int_equal(sotto_set_param(y), SOTTO_E_STATE);
    assert_int_equal(sotto_set_param(one), SOTTO_OK);
    assert_int_equal(sotto_set_loss(a), SOTTO_E_SHAPE);
    assert_int_equal(sotto_set_loss(sotto_new_i32(ctx, 1)), SOTTO_E_TYPE);
    assert_int_equal(sotto_set_loss(one), SOTTO_OK);
    assert_int_equal(one->flags, SOTTO_TENSOR_FLAG_PARAM | SOTTO_TENSOR_FLAG_LOSS);
    assert_int_equal(sotto_set_param(NULL), SOTTO_E_NULLARG);
    assert_int_equal(sotto_set_loss(NULL), SOTTO_E_NULLARG);
    sotto_set_input(NULL);
    sotto_set_output(NULL);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(views_share_storage),
        TEST(permutations_move_extents_and_strides),
        TEST(stride_zero_repeats),
        TEST(bounds),
        TEST(views_of_blocks),
        TEST(views_in_a_context_without_data),
        TEST(builders_name_their_results),
        TEST(names_are_cut_between_characters),
        TEST(names_may_be_made_of_themselves),
        TEST(flags),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
