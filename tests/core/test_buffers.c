/* SPDX-License-Identifier: MIT */
/* Buffers as the core handles them: placing tensors, moving data with all checks, whole contexts, and what a backend
 * may leave out. The driver here is a small one of our own: memory that only its functions may touch. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/backend_impl.h"
#include "refuse_each.h"
#include "sotto/cpu.h"

/* ---- a device: stores every byte inverted ---- */

static int refuse_tensor; /* init_tensor number that fails, 0 = none */
static int n_inits;

static const char * device_name(sotto_backend_buffer_type_t buft) { return buft ? "device" : ""; }
static size_t device_alignment(sotto_backend_buffer_type_t buft) { return buft ? 32 : 0; }
static size_t device_max(sotto_backend_buffer_type_t buft) { return buft ? 4096 : 0; }

static size_t device_size(sotto_backend_buffer_type_t buft, const struct sotto_tensor * tensor) {
    (void)buft;
    return sotto_is_empty(tensor) ? 0 : sotto_nbytes(tensor) + 7;
}

static void device_free(sotto_backend_buffer_t buffer) {
    sotto_mfree(buffer->allocator, buffer->context, buffer->size + 32, 1);
}

static void * device_base(sotto_backend_buffer_t buffer) {
    return (void *)(((uintptr_t)buffer->context + 31) & ~(uintptr_t)31);
}

static enum sotto_status device_init(sotto_backend_buffer_t buffer, struct sotto_tensor * tensor) {
    tensor->extra = buffer;
    return ++n_inits == refuse_tensor ? sotto_fail(SOTTO_E_TYPE, "device: refused") : SOTTO_OK;
}

static enum sotto_status device_set(sotto_backend_buffer_t buffer, struct sotto_tensor * tensor, const void * data,
                                    size_t offset, size_t size) {
    (void)buffer;
    for (size_t i = 0; i < size; i++) {
        ((unsigned char *)tensor->data)[offset + i] = (unsigned char)~((const unsigned char *)data)[i];
    }
    return SOTTO_OK;
}

static enum sotto_status device_get(sotto_backend_buffer_t buffer, const struct sotto_tensor * tensor, void * data,
                                    size_t offset, size_t size) {
    (void)buffer;
    for (size_t i = 0; i < size; i++) {
        ((unsigned char *)data)[i] = (unsigned char)~((const unsigned char *)tensor->data)[offset + i];
    }
    return SOTTO_OK;
}

static void device_clear(sotto_backend_buffer_t buffer, uint8_t value) {
    memset(device_base(buffer), (unsigned char)~value, buffer->size);
}

static sotto_backend_buffer_t device_alloc(sotto_backend_buffer_type_t buft, size_t size,
                                           const struct sotto_allocator * allocator) {
    static const struct sotto_i_buffer_iface iface = {
        .free_buffer = device_free,
        .get_base = device_base,
        .init_tensor = device_init,
        .set_tensor = device_set,
        .get_tensor = device_get,
        .clear = device_clear,
    };
    void * memory = sotto_malloc(allocator, size + 32, 1);
    sotto_backend_buffer_t buffer = memory ? sotto_i_buffer_new(buft, &iface, memory, size, allocator) : NULL;
    if (!buffer) {
        sotto_mfree(allocator, memory, size + 32, 1);
    }
    return buffer;
}

static struct sotto_backend_buffer_type device = {
    .iface = {
        .get_name = device_name,
        .alloc_buffer = device_alloc,
        .get_alignment = device_alignment,
        .get_max_size = device_max,
        .get_alloc_size = device_size,
    },
};

/* ---- fixture ---- */

static struct sotto_context * ctx;

static int set_up(void ** state) {
    (void)state;
    refuse_tensor = 0;
    n_inits = 0;
    ctx = sotto_init((struct sotto_init_params){ .mem_size = 1 << 16, .no_alloc = true });
    return 0;
}

static int tear_down(void ** state) {
    (void)state;
    sotto_free(ctx);
    return 0;
}

static struct sotto_tensor * f32(int64_t n0, int64_t n1) { return sotto_new_tensor_2d(ctx, SOTTO_TYPE_F32, n0, n1); }

/* Both kinds of memory for the tests that hold for each. */
static sotto_backend_buffer_type_t kind(int i) { return i == 0 ? sotto_backend_cpu_buffer_type() : &device; }

/* ---- buffer types and buffers ---- */

static void queries_forward(void ** state) {
    (void)state;
    assert_string_equal(sotto_backend_buft_name(&device), "device");
    assert_int_equal(sotto_backend_buft_get_alignment(&device), 32);
    assert_int_equal(sotto_backend_buft_get_max_size(&device), 4096);
    assert_int_equal(sotto_backend_buft_get_max_size(sotto_backend_cpu_buffer_type()), SIZE_MAX);
    assert_false(sotto_backend_buft_is_host(&device));
    assert_true(sotto_backend_buft_is_host(sotto_backend_cpu_buffer_type()));
    struct sotto_tensor * t = f32(3, 2);
    assert_int_equal(sotto_backend_buft_get_alloc_size(&device, t), 31);
    sotto_backend_buffer_t buffer = sotto_backend_buft_alloc_buffer(&device, 100);
    assert_string_equal(sotto_backend_buffer_name(buffer), "device");
    assert_int_equal(sotto_backend_buffer_get_size(buffer), 100);
    assert_int_equal(sotto_backend_buffer_get_alignment(buffer), 32);
    assert_int_equal(sotto_backend_buffer_get_max_size(buffer), 4096);
    assert_int_equal(sotto_backend_buffer_get_alloc_size(buffer, t), 31);
    assert_ptr_equal(sotto_backend_buffer_get_type(buffer), &device);
    assert_false(sotto_backend_buffer_is_host(buffer));
    sotto_backend_buffer_set_usage(buffer, SOTTO_BACKEND_BUFFER_USAGE_WEIGHTS);
    assert_int_equal(sotto_backend_buffer_get_usage(buffer), SOTTO_BACKEND_BUFFER_USAGE_WEIGHTS);
    sotto_backend_buffer_reset(buffer);
    sotto_backend_buffer_free(buffer);
    sotto_clear_last_error();
    assert_null(sotto_backend_buft_alloc_buffer(&device, 4097));
    assert_int_equal(sotto_last_error(), SOTTO_E_MEMORY);
}

static void empty_buffers_are_valid(void ** state) {
    (void)state;
    for (int k = 0; k < 2; k++) {
        sotto_backend_buffer_t buffer = sotto_backend_buft_alloc_buffer(kind(k), 0);
        assert_non_null(buffer);
        assert_null(sotto_backend_buffer_get_base(buffer));
        assert_int_equal(sotto_backend_buffer_get_size(buffer), 0);
        sotto_backend_buffer_clear(buffer, 1);
        sotto_backend_buffer_reset(buffer);
        struct sotto_tensor * none = f32(0, 3);
        assert_int_equal(sotto_backend_tensor_alloc(buffer, none, NULL), SOTTO_OK);
        assert_int_equal(sotto_backend_tensor_alloc(buffer, f32(1, 1), NULL), SOTTO_E_BOUNDS);
        sotto_backend_buffer_free(buffer);
    }
    sotto_backend_buffer_free(NULL);
}

static enum sotto_status fill_buffer(const struct sotto_allocator * allocator, void * user_data) {
    struct sotto_tensor * t = f32(4, 4);
    sotto_backend_buffer_t buffer =
        sotto_backend_alloc_ctx_tensors_from_buft_ext(ctx, kind(*(const int *)user_data), allocator);
    assert_int_equal(t->data != NULL, buffer != NULL);
    assert_int_equal(t->buffer != NULL, buffer != NULL);
    sotto_backend_buffer_free(buffer);
    return sotto_last_error();
}

static void every_allocation_may_fail(void ** state) {
    (void)state;
    for (int k = 0; k < 2; k++) {
        long refused = refuse_each(fill_buffer, &k);
        assert_in_range(refused, 1, 9);
        sotto_reset(ctx);
    }
}

/* ---- data ---- */

static void data_goes_in_and_out(void ** state) {
    (void)state;
    for (int k = 0; k < 2; k++) {
        sotto_reset(ctx);
        struct sotto_tensor * t = f32(6, 4);
        struct sotto_tensor * v = sotto_view_2d(ctx, t, 3, 2, 24, 32);
        sotto_backend_buffer_t buffer = sotto_backend_alloc_ctx_tensors_from_buft(ctx, kind(k));
        assert_ptr_equal(v->buffer, buffer);
        assert_ptr_equal(v->data, (char *)t->data + 32);
        float in[24], out[24];
        for (int i = 0; i < 24; i++) {
            in[i] = (float)i;
        }
        assert_int_equal(sotto_backend_tensor_set(t, in, 0, sizeof(in)), SOTTO_OK);
        assert_int_equal(sotto_backend_tensor_get(t, out, 8, 40), SOTTO_OK);
        assert_memory_equal(out, in + 2, 40);
        assert_int_equal(sotto_backend_tensor_get(v, out, 24, 12), SOTTO_OK);
        assert_true(out[0] == 14.0f && out[2] == 16.0f);
        float packed[4] = { 100, 101, 102, 103 }; /* column 1 of rows 0 to 3 */
        assert_int_equal(sotto_backend_tensor_set_2d(t, packed, 4, 4, 4, 24, 4), SOTTO_OK);
        float column[8] = { 0 };
        assert_int_equal(sotto_backend_tensor_get_2d(t, column, 4, 4, 4, 24, 8), SOTTO_OK);
        for (int i = 0; i < 4; i++) {
            assert_true(column[2 * i] == 100.0f + (float)i && column[2 * i + 1] == 0.0f);
        }
        sotto_backend_buffer_clear(buffer, 0);
        assert_int_equal(sotto_backend_tensor_get(t, out, 0, sizeof(out)), SOTTO_OK);
        for (int i = 0; i < 24; i++) {
            assert_true(out[i] == 0.0f);
        }
        enum sotto_status filled = sotto_backend_tensor_memset(t, 0x40, 4, 4);
        assert_int_equal(filled, k == 0 ? SOTTO_OK : SOTTO_E_UNSUPPORTED);
        sotto_backend_buffer_free(buffer);
    }
}

static void ranges_are_checked(void ** state) {
    (void)state;
    struct sotto_tensor * t = f32(6, 4);
    float x[24] = { 0 };
    assert_int_equal(sotto_backend_tensor_set(t, x, 0, 4), SOTTO_E_STATE);
    assert_int_equal(sotto_backend_tensor_set(t, x, 0, 0), SOTTO_E_STATE);
    sotto_backend_buffer_t buffer = sotto_backend_alloc_ctx_tensors_from_buft(ctx, &device);
    struct sotto_tensor * late = sotto_view_1d(ctx, t, 2, 0);
    late->data = NULL; /* as made before t was placed */
    assert_int_equal(sotto_backend_tensor_get(late, x, 0, 4), SOTTO_E_STATE);
    assert_int_equal(sotto_backend_view_init(late), SOTTO_OK);
    assert_int_equal(sotto_backend_tensor_get(late, x, 0, 8), SOTTO_OK);
    assert_int_equal(sotto_backend_tensor_get(late, x, 0, 12), SOTTO_E_BOUNDS); /* the view's bytes count */
    static const struct {
        size_t offset, size;
    } bad[] = { { 0, 97 }, { 93, 4 }, { 97, 1 }, { SIZE_MAX, 1 }, { 1, SIZE_MAX }, { SIZE_MAX, SIZE_MAX } };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(sotto_backend_tensor_set(t, x, bad[i].offset, bad[i].size), SOTTO_E_BOUNDS);
        assert_int_equal(sotto_backend_tensor_get(t, x, bad[i].offset, bad[i].size), SOTTO_E_BOUNDS);
        assert_int_equal(sotto_backend_tensor_memset(t, 0, bad[i].offset, bad[i].size), SOTTO_E_BOUNDS);
    }
    assert_int_equal(sotto_backend_tensor_set_2d(t, x, 0, 4, 5, 24, 4), SOTTO_E_BOUNDS);
    assert_int_equal(sotto_backend_tensor_get_2d(t, x, 0, 4, SIZE_MAX, SIZE_MAX, 4), SOTTO_E_BOUNDS);
    assert_int_equal(sotto_backend_tensor_set_2d(t, x, 0, 4, 0, 24, 4), SOTTO_OK);
    assert_int_equal(sotto_backend_tensor_set(t, NULL, 1000, 0), SOTTO_OK); /* nothing asked for */
    assert_int_equal(sotto_backend_tensor_set(t, NULL, 0, 4), SOTTO_E_NULLARG);
    assert_int_equal(sotto_backend_tensor_get(t, NULL, 0, 4), SOTTO_E_NULLARG);
    assert_int_equal(sotto_backend_tensor_set(NULL, x, 0, 4), SOTTO_E_NULLARG);
    assert_int_equal(sotto_backend_tensor_get(NULL, x, 0, 0), SOTTO_E_NULLARG);
    assert_int_equal(sotto_backend_tensor_memset(NULL, 0, 0, 4), SOTTO_E_NULLARG);
    sotto_backend_buffer_free(buffer);
}

static void arena_data_is_reached_as_well(void ** state) {
    (void)state;
    sotto_set_no_alloc(ctx, false);
    struct sotto_tensor * t = sotto_set_f32(f32(2, 2), 3.0f);
    float x[4];
    assert_int_equal(sotto_backend_tensor_get(t, x, 0, 16), SOTTO_OK);
    assert_true(x[3] == 3.0f);
    assert_int_equal(sotto_backend_tensor_memset(t, 0, 12, 4), SOTTO_OK);
    assert_true(sotto_get_f32_1d(t, 3) == 0.0f && sotto_get_f32_1d(t, 2) == 3.0f);
}

/* From and to each kind of memory; the gaps of a view keep what they hold. */
static void tensors_are_copied(void ** state) {
    (void)state;
    for (int k = 0; k < 8; k++) {
        sotto_reset(ctx);
        bool window = k & 4;
        float in[24], out[24];
        struct sotto_tensor * a = f32(6, 4);
        sotto_backend_buffer_t from = sotto_backend_alloc_ctx_tensors_from_buft(ctx, kind(k & 1));
        struct sotto_tensor * b = f32(6, 4);
        sotto_backend_buffer_t to = sotto_backend_alloc_ctx_tensors_from_buft(ctx, kind((k >> 1) & 1));
        struct sotto_tensor * src = window ? sotto_transpose(ctx, sotto_view_2d(ctx, a, 3, 2, 24, 32)) : a;
        struct sotto_tensor * dst = window ? sotto_transpose(ctx, sotto_view_2d(ctx, b, 3, 2, 24, 32)) : b;
        for (int i = 0; i < 24; i++) {
            in[i] = (float)i;
            out[i] = -1.0f;
        }
        sotto_backend_tensor_set(a, in, 0, sizeof(in));
        sotto_backend_tensor_set(b, out, 0, sizeof(out));
        assert_int_equal(sotto_backend_tensor_copy(src, dst), SOTTO_OK);
        sotto_backend_tensor_get(b, out, 0, sizeof(out));
        for (int i = 0; i < 24; i++) {
            bool inside = i % 6 >= 2 && i % 6 < 5 && i / 6 >= 1 && i / 6 < 3;
            assert_true(out[i] == (!window || inside ? (float)i : -1.0f));
        }
        sotto_backend_buffer_free(from);
        sotto_backend_buffer_free(to);
    }
}

static void copies_need_one_layout(void ** state) {
    (void)state;
    struct sotto_tensor * a = f32(4, 3);
    struct sotto_tensor * b = f32(3, 4);
    struct sotto_tensor * h = sotto_new_tensor_2d(ctx, SOTTO_TYPE_F16, 4, 3);
    struct sotto_tensor * t = sotto_transpose(ctx, b);
    assert_int_equal(sotto_backend_tensor_copy(a, a), SOTTO_OK);
    assert_int_equal(sotto_backend_tensor_copy(a, sotto_dup_tensor(ctx, a)), SOTTO_E_STATE);
    sotto_backend_buffer_t buffer = sotto_backend_alloc_ctx_tensors_from_buft(ctx, &device);
    assert_int_equal(sotto_backend_tensor_copy(a, b), SOTTO_E_LAYOUT);
    assert_int_equal(sotto_backend_tensor_copy(a, h), SOTTO_E_LAYOUT);
    assert_int_equal(sotto_backend_tensor_copy(a, t), SOTTO_E_LAYOUT);
    assert_int_equal(sotto_backend_tensor_copy(a, f32(4, 3)), SOTTO_E_STATE);
    assert_int_equal(sotto_backend_tensor_copy(NULL, a), SOTTO_E_NULLARG);
    assert_int_equal(sotto_backend_tensor_copy(a, NULL), SOTTO_E_NULLARG);
    sotto_backend_buffer_free(buffer);
}

/* ---- placing ---- */

static void tensors_are_placed_inside(void ** state) {
    (void)state;
    sotto_backend_buffer_t buffer = sotto_backend_buft_alloc_buffer(&device, 200);
    char * base = sotto_backend_buffer_get_base(buffer);
    struct sotto_tensor * t = f32(4, 4); /* 64 + 7 bytes */
    assert_int_equal(sotto_backend_tensor_alloc(buffer, t, base + 130), SOTTO_E_BOUNDS);
    assert_int_equal(sotto_backend_tensor_alloc(buffer, t, base - 1), SOTTO_E_BOUNDS);
    assert_int_equal(sotto_backend_tensor_alloc(buffer, t, NULL), SOTTO_E_BOUNDS);
    assert_null(t->data);
    assert_null(t->buffer);
    refuse_tensor = 1;
    assert_int_equal(sotto_backend_tensor_alloc(buffer, t, base), SOTTO_E_TYPE);
    assert_true(!t->data && !t->buffer && !t->extra);
    assert_int_equal(sotto_backend_tensor_alloc(buffer, t, base + 129), SOTTO_OK);
    assert_ptr_equal(t->extra, buffer);
    assert_int_equal(sotto_backend_tensor_alloc(buffer, t, base), SOTTO_E_STATE);
    struct sotto_tensor * v = sotto_view_1d(ctx, t, 4, 0);
    assert_int_equal(sotto_backend_tensor_alloc(buffer, v, base), SOTTO_E_STATE);
    assert_int_equal(sotto_backend_view_init(v), SOTTO_OK);
    assert_int_equal(sotto_backend_view_init(t), SOTTO_E_STATE);
    assert_int_equal(sotto_backend_view_init(sotto_view_1d(ctx, f32(4, 4), 4, 0)), SOTTO_E_STATE);
    assert_int_equal(sotto_backend_view_init(NULL), SOTTO_E_NULLARG);
    assert_int_equal(sotto_backend_tensor_alloc(NULL, t, base), SOTTO_E_NULLARG);
    assert_int_equal(sotto_backend_tensor_alloc(buffer, NULL, base), SOTTO_E_NULLARG);
    sotto_backend_buffer_free(buffer);
}

static void bump_allocator_fills_a_buffer(void ** state) {
    (void)state;
    sotto_backend_buffer_t buffer = sotto_backend_buft_alloc_buffer(&device, 96 + 71);
    struct sotto_tallocr allocr = sotto_tallocr_new(buffer);
    struct sotto_tensor * a = f32(4, 4);
    struct sotto_tensor * b = f32(4, 4);
    struct sotto_tensor * c = f32(1, 1);
    struct sotto_tensor * none = f32(0, 1);
    assert_int_equal(sotto_tallocr_alloc(&allocr, a), SOTTO_OK);
    assert_int_equal(sotto_tallocr_alloc(&allocr, b), SOTTO_OK);
    assert_ptr_equal(b->data, (char *)a->data + 96);
    assert_int_equal((uintptr_t)a->data % 32, 0);
    assert_int_equal(sotto_tallocr_alloc(&allocr, c), SOTTO_E_MEMORY);
    assert_null(c->data);
    assert_int_equal(sotto_tallocr_alloc(&allocr, none), SOTTO_OK);
    assert_int_equal(sotto_tallocr_alloc(&allocr, NULL), SOTTO_E_NULLARG);
    assert_int_equal(sotto_tallocr_alloc(NULL, c), SOTTO_E_NULLARG);
    struct sotto_tallocr nothing = sotto_tallocr_new(NULL);
    assert_int_equal(sotto_tallocr_alloc(&nothing, c), SOTTO_E_NULLARG);
    sotto_backend_buffer_free(buffer);
}

/* ---- whole contexts ---- */

static void contexts_are_placed_in_order(void ** state) {
    (void)state;
    struct sotto_tensor * a = f32(3, 3);
    struct sotto_tensor * v = sotto_view_1d(ctx, a, 3, 12);
    struct sotto_tensor * none = f32(0, 3);
    struct sotto_tensor * b = f32(2, 2);
    assert_int_equal(sotto_backend_alloc_ctx_tensors_from_buft_size(ctx, &device), 64 + 32);
    sotto_backend_buffer_t buffer = sotto_backend_alloc_ctx_tensors_from_buft(ctx, &device);
    assert_int_equal(sotto_backend_buffer_get_size(buffer), 96);
    assert_ptr_equal(a->data, sotto_backend_buffer_get_base(buffer));
    assert_ptr_equal(b->data, (char *)a->data + 64);
    assert_ptr_equal(v->data, (char *)a->data + 12);
    assert_ptr_equal(none->buffer, buffer);
    sotto_clear_last_error();
    assert_null(sotto_backend_alloc_ctx_tensors_from_buft(ctx, &device)); /* nothing to do */
    assert_int_equal(sotto_last_error(), SOTTO_OK);
    assert_int_equal(sotto_backend_alloc_ctx_tensors_from_buft_size(ctx, &device), 0);
    struct sotto_tensor * w = sotto_view_1d(ctx, v, 1, 4);
    assert_null(w->buffer);
    assert_null(sotto_backend_alloc_ctx_tensors_from_buft(ctx, &device));
    assert_ptr_equal(w->buffer, buffer); /* but late views are served */
    struct sotto_tensor * c = f32(2, 2);
    sotto_backend_buffer_t second = sotto_backend_alloc_ctx_tensors_from_buft(ctx, sotto_backend_cpu_buffer_type());
    assert_ptr_equal(c->buffer, second);
    assert_ptr_equal(a->buffer, buffer);
    sotto_backend_buffer_free(second);
    sotto_backend_buffer_free(buffer);
}

static void refused_contexts_are_left_alone(void ** state) {
    (void)state;
    struct sotto_tensor * t[4];
    for (int i = 0; i < 4; i++) {
        t[i] = i < 3 ? f32(4, 4) : sotto_view_1d(ctx, t[0], 4, 0);
    }
    for (refuse_tensor = 1; refuse_tensor <= 4; refuse_tensor++) {
        n_inits = 0;
        sotto_clear_last_error();
        assert_null(sotto_backend_alloc_ctx_tensors_from_buft(ctx, &device));
        assert_int_equal(sotto_last_error(), SOTTO_E_TYPE);
        for (int i = 0; i < 4; i++) {
            assert_true(!t[i]->data && !t[i]->buffer && !t[i]->extra);
        }
    }
    refuse_tensor = 0;
    sotto_backend_buffer_t buffer = sotto_backend_alloc_ctx_tensors_from_buft(ctx, &device);
    assert_non_null(buffer);
    sotto_backend_buffer_free(buffer);
    sotto_reset(ctx);
    f32(33, 33);
    sotto_clear_last_error();
    assert_null(sotto_backend_alloc_ctx_tensors_from_buft(ctx, &device)); /* over the largest buffer */
    assert_int_equal(sotto_last_error(), SOTTO_E_MEMORY);
    sotto_reset(ctx);
    f32((int64_t)1 << 60, 1);
    f32((int64_t)1 << 60, 1);
    f32((int64_t)1 << 60, 1);
    f32((int64_t)1 << 60, 1);
    sotto_clear_last_error();
    assert_null(sotto_backend_alloc_ctx_tensors_from_buft(ctx, &device)); /* the sum overflows */
    assert_int_equal(sotto_last_error(), SOTTO_E_MEMORY);
    assert_int_equal(sotto_backend_alloc_ctx_tensors_from_buft_size(ctx, &device), 0);
    sotto_reset(ctx);
    sotto_set_no_alloc(ctx, false);
    sotto_clear_last_error();
    assert_null(sotto_backend_alloc_ctx_tensors_from_buft(ctx, &device));
    assert_int_equal(sotto_last_error(), SOTTO_E_STATE);
    assert_null(sotto_backend_alloc_ctx_tensors_from_buft(NULL, &device));
    assert_null(sotto_backend_alloc_ctx_tensors_from_buft(ctx, NULL));
    assert_null(sotto_backend_alloc_ctx_tensors(ctx, NULL));
    assert_int_equal(sotto_last_error(), SOTTO_E_NULLARG);
}

static void packed_weights_refuse_other_types(void ** state) {
    (void)state;
    struct sotto_tensor * a = f32(4, 20);
    struct sotto_tensor * i = sotto_new_tensor_1d(ctx, SOTTO_TYPE_I32, 4);
    sotto_clear_last_error();
    assert_null(sotto_backend_alloc_ctx_tensors_from_buft(ctx, sotto_backend_cpu_packed_buffer_type()));
    assert_int_not_equal(sotto_last_error(), SOTTO_OK);
    assert_true(!a->data && !a->buffer && !i->data && !i->buffer);
}

/* ---- backends ---- */

static int n_plans;
static int n_freed;

static sotto_backend_graph_plan_t make_plan(sotto_backend_t backend, struct sotto_cgraph * graph) {
    n_plans++;
    return graph ? (sotto_backend_graph_plan_t)(void *)backend : NULL;
}

static enum sotto_status run_plan(sotto_backend_t backend, sotto_backend_graph_plan_t plan) {
    return (void *)plan == (void *)backend ? SOTTO_OK : SOTTO_E_INTERNAL;
}

static void free_plan(sotto_backend_t backend, sotto_backend_graph_plan_t plan) {
    n_freed += (void *)plan == (void *)backend;
}

static sotto_backend_buffer_type_t device_type(sotto_backend_t backend) { return backend ? &device : NULL; }

static void backends_may_leave_things_out(void ** state) {
    (void)state;
    struct sotto_backend backend = {
        .iface = {
            .get_default_buffer_type = device_type,
            .plan_create = make_plan,
            .plan_compute = run_plan,
            .plan_free = free_plan,
        },
    };
    struct sotto_cgraph * g = sotto_new_graph_custom(ctx, 4, false);
    assert_int_equal(sotto_backend_synchronize(&backend), SOTTO_OK);
    assert_int_equal(sotto_backend_graph_compute(&backend, g), SOTTO_OK); /* plan, compute, free */
    assert_int_equal(n_plans * 10 + n_freed, 11);
    assert_int_equal(sotto_backend_get_alignment(&backend), 32);
    assert_int_equal(sotto_backend_get_max_size(&backend), 4096);
    sotto_backend_buffer_t buffer = sotto_backend_alloc_buffer(&backend, 10);
    assert_ptr_equal(sotto_backend_buffer_get_type(buffer), &device);
    sotto_backend_buffer_free(buffer);
    assert_null(sotto_gelu(ctx, NULL)); /* the context is in error now */
    assert_int_equal(sotto_backend_graph_compute(&backend, g), SOTTO_E_NULLARG);
    assert_null(sotto_backend_graph_plan_create(&backend, g));
    assert_int_equal(n_plans, 1);
}

static void null_handles_are_refused(void ** state) {
    (void)state;
    sotto_clear_last_error();
    assert_null(sotto_backend_buft_name(NULL));
    assert_int_equal(sotto_last_error(), SOTTO_E_NULLARG);
    assert_null(sotto_backend_buft_alloc_buffer(NULL, 1));
    assert_int_equal(sotto_backend_buft_get_alignment(NULL), 0);
    assert_int_equal(sotto_backend_buft_get_max_size(NULL), 0);
    assert_int_equal(sotto_backend_buft_get_alloc_size(NULL, NULL), 0);
    assert_int_equal(sotto_backend_buft_get_alloc_size(&device, NULL), 0);
    assert_false(sotto_backend_buft_is_host(NULL));
    assert_null(sotto_backend_buffer_name(NULL));
    assert_null(sotto_backend_buffer_get_base(NULL));
    assert_int_equal(sotto_backend_buffer_get_size(NULL), 0);
    assert_null(sotto_backend_buffer_get_type(NULL));
    assert_int_equal(sotto_backend_buffer_init_tensor(NULL, NULL), SOTTO_E_NULLARG);
    assert_int_equal(sotto_backend_buffer_get_alignment(NULL), 0);
    assert_int_equal(sotto_backend_buffer_get_max_size(NULL), 0);
    assert_int_equal(sotto_backend_buffer_get_alloc_size(NULL, NULL), 0);
    assert_false(sotto_backend_buffer_is_host(NULL));
    sotto_backend_buffer_clear(NULL, 0);
    sotto_backend_buffer_set_usage(NULL, SOTTO_BACKEND_BUFFER_USAGE_ANY);
    assert_int_equal(sotto_backend_buffer_get_usage(NULL), SOTTO_BACKEND_BUFFER_USAGE_ANY);
    sotto_backend_buffer_reset(NULL);
    assert_null(sotto_backend_name(NULL));
    sotto_backend_free(NULL);
    assert_null(sotto_backend_get_default_buffer_type(NULL));
    assert_null(sotto_backend_alloc_buffer(NULL, 1));
    assert_int_equal(sotto_backend_get_alignment(NULL), 0);
    assert_int_equal(sotto_backend_get_max_size(NULL), 0);
    assert_int_equal(sotto_backend_synchronize(NULL), SOTTO_E_NULLARG);
    assert_false(sotto_backend_supports_op(NULL, NULL));
    assert_false(sotto_backend_supports_buft(NULL, NULL));
    assert_int_equal(sotto_backend_graph_compute(NULL, NULL), SOTTO_E_NULLARG);
    assert_null(sotto_backend_graph_plan_create(NULL, NULL));
    assert_int_equal(sotto_backend_graph_plan_compute(NULL, NULL), SOTTO_E_NULLARG);
    sotto_backend_graph_plan_free(NULL, NULL);
    sotto_backend_set_eval_callback(NULL, NULL, NULL);
    sotto_backend_set_abort_callback(NULL, NULL, NULL);
    assert_int_equal(sotto_last_error(), SOTTO_E_NULLARG);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(queries_forward),
        TEST(empty_buffers_are_valid),
        TEST(every_allocation_may_fail),
        TEST(data_goes_in_and_out),
        TEST(ranges_are_checked),
        TEST(arena_data_is_reached_as_well),
        TEST(tensors_are_copied),
        TEST(copies_need_one_layout),
        TEST(tensors_are_placed_inside),
        TEST(bump_allocator_fills_a_buffer),
        TEST(contexts_are_placed_in_order),
        TEST(refused_contexts_are_left_alone),
        TEST(packed_weights_refuse_other_types),
        TEST(backends_may_leave_things_out),
        TEST(null_handles_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
