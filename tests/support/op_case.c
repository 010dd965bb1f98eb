/* SPDX-License-Identifier: MIT */
#include "support/op_case.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { ARENA = 16 << 20, WORK = 1 << 20, GUARD = 256, GUARD_BYTE = 0x5C };

/* ---- making ---- */

static struct sotto_tensor * new_guard(struct op_case * c) {
    struct sotto_tensor * t = sotto_new_tensor_1d(c->ctx, SOTTO_TYPE_I8, GUARD);
    assert_non_null(t);
    memset(t->data, GUARD_BYTE, GUARD);
    return t;
}

void op_case_begin(struct op_case * c) {
    memset(c, 0, sizeof(*c));
    c->state = 20261130;
    c->ctx = sotto_init((struct sotto_init_params){ .mem_size = ARENA });
    assert_non_null(c->ctx);
    c->guard[0] = new_guard(c);
}

void op_case_end(struct op_case * c) { sotto_free(c->ctx); }

uint32_t op_random(struct op_case * c) {
    c->state = c->state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(c->state >> 32);
}

double op_random_unit(struct op_case * c) { return op_random(c) * 0x1p-31 - 1.0; }

static bool is_integer(enum sotto_type type) {
    return type == SOTTO_TYPE_I8 || type == SOTTO_TYPE_I16 || type == SOTTO_TYPE_I32 || type == SOTTO_TYPE_I64;
}

static double random_value(struct op_case * c, enum sotto_type type) {
    return is_integer(type) ? (double)(op_random(c) % 201) - 100.0 : op_random_unit(c);
}

static struct sotto_tensor * with_layout(struct op_case * c, enum sotto_type type, enum op_layout layout,
                                         const int64_t ne[4]) {
    struct sotto_tensor * t;
    switch (layout) {
    case OP_PADDED:
        t = sotto_new_tensor_4d(c->ctx, type, ne[0] + 3, ne[1] + 1, ne[2] + 2, ne[3] + 1);
        return sotto_view_4d(c->ctx, t, ne[0], ne[1], ne[2], ne[3], t->nb[1], t->nb[2], t->nb[3], t->nb[1] + t->nb[0]);
    case OP_PERMUTED:
        t = sotto_new_tensor_4d(c->ctx, type, ne[0], ne[2], ne[1], ne[3]);
        return sotto_permute(c->ctx, t, 0, 2, 1, 3);
    case OP_TRANSPOSED:
        t = sotto_new_tensor_4d(c->ctx, type, ne[1], ne[0], ne[2], ne[3]);
        return sotto_permute(c->ctx, t, 1, 0, 2, 3);
    default: return sotto_new_tensor_4d(c->ctx, type, ne[0], ne[1], ne[2], ne[3]);
    }
}

/* Calls f for every element of a shape, in logical order. */
#define FOR_EACH(ne, i)                            \
    for (i[3] = 0; i[3] < (ne)[3]; i[3]++)         \
        for (i[2] = 0; i[2] < (ne)[2]; i[2]++)     \
            for (i[1] = 0; i[1] < (ne)[1]; i[1]++) \
                for (i[0] = 0; i[0] < (ne)[0]; i[0]++)

struct sotto_tensor * op_tensor(struct op_case * c, enum sotto_type type, enum op_layout layout, int64_t ne0,
                                int64_t ne1, int64_t ne2, int64_t ne3) {
    const int64_t ne[4] = { ne0, ne1, ne2, ne3 };
    struct sotto_tensor * t = with_layout(c, type, layout, ne);
    assert_non_null(t);
    struct sotto_tensor * owner = t->view_src ? t->view_src : t;
    memset(owner->data, 0x77, sotto_nbytes(owner)); /* gaps hold something else */
    int64_t i[4];
    FOR_EACH(ne, i)
    op_set(t, i[0], i[1], i[2], i[3], random_value(c, type));
    return t;
}

struct sotto_tensor * op_values(struct op_case * c, int64_t n, const float * values) {
    struct sotto_tensor * t = sotto_new_tensor_1d(c->ctx, SOTTO_TYPE_F32, n);
    assert_non_null(t);
    memcpy(t->data, values, (size_t)n * sizeof(*values));
    return t;
}

/* ---- elements ---- */

static char * address(const struct sotto_tensor * t, int64_t i0, int64_t i1, int64_t i2, int64_t i3) {
    return (char *)t->data + (size_t)i0 * t->nb[0] + (size_t)i1 * t->nb[1] + (size_t)i2 * t->nb[2] +
           (size_t)i3 * t->nb[3];
}

double op_get(const struct sotto_tensor * t, int64_t i0, int64_t i1, int64_t i2, int64_t i3) {
    const char * p = address(t, i0, i1, i2, i3);
    switch (t->type) {
    case SOTTO_TYPE_F32: return *(const float *)p;
    case SOTTO_TYPE_F16: return sotto_fp16_to_fp32(*(const uint16_t *)p);
    case SOTTO_TYPE_BF16: return sotto_bf16_to_fp32(*(const sotto_bf16_t *)p);
    case SOTTO_TYPE_I8: return *(const int8_t *)p;
    case SOTTO_TYPE_I16: return *(const int16_t *)p;
    case SOTTO_TYPE_I32: return *(const int32_t *)p;
    case SOTTO_TYPE_I64: return (double)*(const int64_t *)p;
    default: fail_msg("op_get: type %d", (int)t->type); return NAN;
    }
}

void op_set(struct sotto_tensor * t, int64_t i0, int64_t i1, int64_t i2, int64_t i3, double value) {
    char * p = address(t, i0, i1, i2, i3);
    switch (t->type) {
    case SOTTO_TYPE_F32: *(float *)p = (float)value; break;
    case SOTTO_TYPE_F16: *(uint16_t *)p = sotto_fp32_to_fp16((float)value); break;
    case SOTTO_TYPE_BF16: *(sotto_bf16_t *)p = sotto_fp32_to_bf16((float)value); break;
    case SOTTO_TYPE_I8: *(int8_t *)p = (int8_t)value; break;
    case SOTTO_TYPE_I16: *(int16_t *)p = (int16_t)value; break;
    case SOTTO_TYPE_I32: *(int32_t *)p = (int32_t)value; break;
    case SOTTO_TYPE_I64: *(int64_t *)p = (int64_t)value; break;
    default: fail_msg("op_set: type %d", (int)t->type);
    }
}

double op_get_tiled(const struct sotto_tensor * t, const int64_t i[4]) {
    return op_get(t, i[0] % t->ne[0], i[1] % t->ne[1], i[2] % t->ne[2], i[3] % t->ne[3]);
}

double op_rounding(enum sotto_type type) {
    return type == SOTTO_TYPE_F16 ? 0x1p-11 : type == SOTTO_TYPE_BF16 ? 0x1p-8 : type == SOTTO_TYPE_F32 ? 0x1p-24 : 0.0;
}

/* ---- computing ---- */

enum sotto_status op_compute(struct sotto_tensor * y, int n_threads) {
    struct sotto_context * ctx = sotto_init((struct sotto_init_params){ .mem_size = WORK });
    assert_non_null(ctx);
    struct sotto_cgraph * graph = sotto_new_graph(ctx);
    assert_non_null(graph);
    assert_int_equal(sotto_build_forward_expand(graph, y), SOTTO_OK);
    const enum sotto_status status = sotto_graph_compute_with_ctx(ctx, graph, n_threads);
    sotto_free(ctx);
    return status;
}

static void check_guards(const struct op_case * c) {
    for (int k = 0; k < 2; k++)
        for (int i = 0; i < GUARD; i++)
            if (((const unsigned char *)c->guard[k]->data)[i] != GUARD_BYTE)
                fail_msg("guard %d was written to at byte %d", k, i);
}

static void check_values(const struct sotto_tensor * y, const double * truth, double bound, const char * level,
                         int n_threads) {
    int64_t i[4], n = 0;
    FOR_EACH(y->ne, i) {
        const double got = op_get(y, i[0], i[1], i[2], i[3]), want = truth[n++];
        const bool same = isnan(want)   ? isnan(got)
                          : isinf(want) ? got == want
                                        : fabs(got - want) <= bound * (1.0 + fabs(want));
        if (!same)
            fail_msg("%s at level %s, %d threads: [%lld,%lld,%lld,%lld] is %.9g, should be %.9g", sotto_op_desc(y),
                     level, n_threads, (long long)i[0], (long long)i[1], (long long)i[2], (long long)i[3], got, want);
    }
}

/* What a check remembers between its runs. */
struct check {
    struct sotto_tensor *y, *owner;
    size_t bytes, n;
    char * before; /* the owner's bytes */
    double * truth;
    double * first; /* elements after the first run */
    bool ran;
};

static void check_begin(struct check * k, struct sotto_tensor * y, op_truth truth, const void * user) {
    k->y = y;
    k->owner = y->view_src ? y->view_src : y;
    k->bytes = sotto_nbytes(k->owner);
    k->n = (size_t)sotto_nelements(y);
    k->ran = false;
    k->before = malloc(k->bytes + 1);
    k->truth = malloc((k->n + 1) * sizeof(double));
    k->first = malloc((k->n + 1) * sizeof(double));
    assert_true(k->before && k->truth && k->first);
    memcpy(k->before, k->owner->data, k->bytes);
    int64_t i[4];
    size_t at = 0;
    FOR_EACH(y->ne, i)
    k->truth[at++] = truth(y, i, user);
}

static void check_end(struct check * k) {
    memcpy(k->owner->data, k->before, k->bytes);
    free(k->before);
    free(k->truth);
    free(k->first);
}

/* Elements are those of the first run; a NaN is a NaN. */
static void check_same_bits(struct check * k, const char * level, int n_threads) {
    int64_t i[4];
    size_t at = 0;
    FOR_EACH(k->y->ne, i) {
        const double x = op_get(k->y, i[0], i[1], i[2], i[3]);
        double * first = &k->first[at++];
        if (!k->ran)
            *first = x;
        else if (!(isnan(x) && isnan(*first)) && memcmp(&x, first, sizeof(x)) != 0)
            fail_msg("%s at level %s, %d threads, gives other bits at [%lld,%lld,%lld,%lld] than the first run",
                     sotto_op_desc(k->y), level, n_threads, (long long)i[0], (long long)i[1], (long long)i[2],
                     (long long)i[3]);
    }
    k->ran = true;
}

/* The bytes between the elements are as before. Elements are put back. */
static void check_gaps(const struct check * k) {
    const size_t size = sotto_type_size(k->y->type);
    int64_t i[4];
    FOR_EACH(k->y->ne, i) {
        char * p = address(k->y, i[0], i[1], i[2], i[3]);
        memcpy(p, k->before + (p - (char *)k->owner->data), size);
    }
    if (memcmp(k->owner->data, k->before, k->bytes) != 0)
        fail_msg("%s writes between its elements", sotto_op_desc(k->y));
}

double op_zero(const struct sotto_tensor * y, const int64_t i[4], const void * user) {
    (void)y, (void)i, (void)user;
    return 0.0;
}

void op_case_check(struct op_case * c, struct sotto_tensor * y, op_truth truth, const void * user, double bound) {
    if (!y)
        fail_msg("%s", sotto_context_error(c->ctx));
    c->guard[1] = new_guard(c);
    struct check k;
    check_begin(&k, y, truth, user);
    const enum sotto_cpu_level used = sotto_cpu_get_level();
    for (int level = 0; level <= (int)sotto_cpu_best_level(); level++)
        for (int n_threads = 1; n_threads <= 3; n_threads += 2) {
            const char * name = sotto_cpu_level_name((enum sotto_cpu_level)level);
            assert_int_equal(sotto_cpu_set_level((enum sotto_cpu_level)level), SOTTO_OK);
            if (op_compute(y, n_threads) != SOTTO_OK)
                fail_msg("%s: %s", sotto_op_desc(y), sotto_last_error_text());
            check_values(y, k.truth, bound, name, n_threads);
            check_same_bits(&k, name, n_threads);
            check_gaps(&k);
            check_guards(c);
        }
    assert_int_equal(sotto_cpu_set_level(used), SOTTO_OK);
    check_end(&k);
}
