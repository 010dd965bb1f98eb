/* SPDX-License-Identifier: MIT */
/* Row kernels (src/cpu/vec_kernels.h): each slot of each level the machine has against its scalar twin, bit for bit;
 * the scalar functions against double precision; the meaning of special values.
 *
 *     test_vec [--bench] [seed]       the seed is printed; --bench times the same calls instead */
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>

#include "cpu/kernels.h"
#include "cpu/vmath_c.h"

enum { MAX_N = 8193, SLACK = 64, ROOM = MAX_N + 2 * SLACK };

typedef struct sotto_i_vec_kernels kernels;

/* ---- slots, called alike ---- */

struct row {
    const float *a, *b; /* as floats, or as 16-bit words */
    float p, q;
    int64_t n;
};

enum form {
    TO_F32, /* 16-bit words to floats */
    TO_F16, /* floats to 16-bit words */
    TO_BF16,
    MAP,        /* floats to floats */
    UPDATE,     /* y is read, too */
    REDUCE,     /* floats to a float */
    MAP_REDUCE, /* floats to floats, with a float behind them */
    INDEX       /* floats to an int64_t */
};

static void c_f16_to_f32(const kernels * k, const struct row * r, void * y) {
    k->f16_to_f32((const uint16_t *)r->a, y, r->n);
}
static void c_bf16_to_f32(const kernels * k, const struct row * r, void * y) {
    k->bf16_to_f32((const uint16_t *)r->a, y, r->n);
}
static void c_f32_to_f16(const kernels * k, const struct row * r, void * y) { k->f32_to_f16(r->a, y, r->n); }
static void c_f32_to_bf16(const kernels * k, const struct row * r, void * y) { k->f32_to_bf16(r->a, y, r->n); }
static void c_add(const kernels * k, const struct row * r, void * y) { k->add(r->a, r->b, y, r->n); }
static void c_mul(const kernels * k, const struct row * r, void * y) { k->mul(r->a, r->b, y, r->n); }
static void c_scale(const kernels * k, const struct row * r, void * y) { k->scale(r->a, r->p, y, r->n); }
static void c_scale_bias(const kernels * k, const struct row * r, void * y) {
    k->scale_bias(r->a, r->p, r->q, y, r->n);
}
static void c_shift_scale(const kernels * k, const struct row * r, void * y) {
    k->shift_scale(r->a, r->p, r->q, y, r->n);
}
static void c_add_scaled(const kernels * k, const struct row * r, void * y) { k->add_scaled(r->a, r->p, y, r->n); }
static void c_gelu(const kernels * k, const struct row * r, void * y) { k->gelu(r->a, y, r->n); }
static void c_gelu_erf(const kernels * k, const struct row * r, void * y) { k->gelu_erf(r->a, y, r->n); }
static void c_sum(const kernels * k, const struct row * r, void * y) { *(float *)y = k->sum(r->a, r->n); }
static void c_sum_sq_diff(const kernels * k, const struct row * r, void * y) {
    *(float *)y = k->sum_sq_diff(r->a, r->p, r->n);
}
static void c_exp_sum(const kernels * k, const struct row * r, void * y) {
    float * out = y;
    const float s = k->exp_sum(r->a, r->p, out, r->n);
    out[r->n] = s;
}
static void c_max(const kernels * k, const struct row * r, void * y) { *(float *)y = k->max(r->a, r->n); }
static void c_argmax(const kernels * k, const struct row * r, void * y) {
    const int64_t i = k->argmax(r->a, r->n);
    memcpy(y, &i, sizeof(i));
}

static const struct slot {
    const char * name;
    void (*call)(const kernels * k, const struct row * r, void * y);
    enum form form;
} slots[] = {
    { "f16_to_f32", c_f16_to_f32, TO_F32 },
    { "bf16_to_f32", c_bf16_to_f32, TO_F32 },
    { "f32_to_f16", c_f32_to_f16, TO_F16 },
    { "f32_to_bf16", c_f32_to_bf16, TO_BF16 },
    { "add", c_add, MAP },
    { "mul", c_mul, MAP },
    { "scale", c_scale, MAP },
    { "scale_bias", c_scale_bias, MAP },
    { "shift_scale", c_shift_scale, MAP },
    { "add_scaled", c_add_scaled, UPDATE },
    { "gelu", c_gelu, MAP },
    { "gelu_erf", c_gelu_erf, MAP },
    { "sum", c_sum, REDUCE },
    { "sum_sq_diff", c_sum_sq_diff, REDUCE },
    { "exp_sum", c_exp_sum, MAP_REDUCE },
    { "max", c_max, REDUCE },
    { "argmax", c_argmax, INDEX },
};
enum { N_SLOTS = sizeof(slots) / sizeof(slots[0]) };

/* A new slot has to be listed above. */
_Static_assert(sizeof(kernels) == N_SLOTS * sizeof(void (*)(void)), "a slot without a test");

static size_t output_bytes(enum form form, int64_t n) {
    switch (form) {
    case TO_F16:
    case TO_BF16: return (size_t)n * sizeof(uint16_t);
    case REDUCE: return sizeof(float);
    case MAP_REDUCE: return (size_t)(n + 1) * sizeof(float);
    case INDEX: return sizeof(int64_t);
    default: return (size_t)n * sizeof(float);
    }
}

/* ---- input ---- */

static uint64_t seed = 20261130, state;

static uint32_t random_bits(void) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state >> 32);
}

static float random_unit(void) { return (float)random_bits() * 0x1p-31f - 1.0f; }

static const float extremes[] = { 0.0f,     -0.0f,     0x1p-149f, -0x1p-149f, FLT_MIN, -FLT_MIN, FLT_MAX, -FLT_MAX,
                                  INFINITY, -INFINITY, NAN,       1.0f,       -1.0f,   88.8f,    -104.5f, 65520.0f };
enum { N_EXTREMES = sizeof(extremes) / sizeof(extremes[0]) };

enum mix { UNIT, WIDE, ANY_BITS, FINITE_EXTREMES, ALL_EXTREMES, CONSTANT, N_MIXES };

static float random_float(enum mix mix) {
    switch (mix) {
    case UNIT: return random_unit();
    case WIDE: return ldexpf(random_unit(), (int)(random_bits() % 40) - 30);
    case ANY_BITS: return sotto_i_from_bits(random_bits());
    case CONSTANT: return 0.25f;
    default: {
        const float x = random_bits() % 3 ? random_unit() * 4.0f : extremes[random_bits() % N_EXTREMES];
        return mix == ALL_EXTREMES || isfinite(x) ? x : 1.0f;
    }
    }
}

static void fill(float * x, int64_t n, enum mix mix) {
    for (int64_t i = 0; i < n; i++)
        x[i] = random_float(mix);
}

/* ---- comparison ---- */

static bool is_nan16(uint16_t x, enum form form) {
    return form == TO_F16 ? (x & 0x7C00) == 0x7C00 && (x & 0x3FF) : (x & 0x7F80) == 0x7F80 && (x & 0x7F);
}

/* Equal bits, or both NaN. */
static bool equal(enum form form, const void * x, const void * y, int64_t n) {
    const size_t bytes = output_bytes(form, n);
    if (form == INDEX)
        return memcmp(x, y, bytes) == 0;
    if (form == TO_F16 || form == TO_BF16) {
        const uint16_t *a = x, *b = y;
        for (size_t i = 0; i < bytes / sizeof(*a); i++)
            if (a[i] != b[i] && !(is_nan16(a[i], form) && is_nan16(b[i], form)))
                return false;
        return true;
    }
    const float *a = x, *b = y;
    for (size_t i = 0; i < bytes / sizeof(*a); i++)
        if (sotto_i_to_bits(a[i]) != sotto_i_to_bits(b[i]) && !(isnan(a[i]) && isnan(b[i])))
            return false;
    return true;
}

static float in_a[ROOM], in_b[ROOM], out_c[ROOM], out_v[ROOM];

/* SLACK floats before and behind the n of a row are looked after. */
static size_t guarded_bytes(int64_t n) { return (size_t)(n + 2 * SLACK) * sizeof(float); }

static bool canaries_live(const void * from, size_t used, int64_t n) {
    const unsigned char *all = (const unsigned char *)out_v, *first = from;
    for (const unsigned char * p = all; p < all + guarded_bytes(n); p++)
        if ((p < first || p >= first + used) && *p != 0xA5)
            return false;
    return true;
}

static void check_one(const struct slot * slot, const kernels * c, const kernels * v, const char * level, int64_t n,
                      enum mix mix, int shift) {
    struct row r = { in_a + SLACK + shift, in_b + SLACK + (shift + 1) % 3, random_unit(), random_unit(), n };
    if (slot->form == MAP_REDUCE)
        r.p = mix == UNIT ? 1.0f : random_float(mix);
    fill((float *)r.a, n, mix);
    fill((float *)r.b, n, mix);
    /* 16-bit outputs may begin at any word, others at any float */
    float * yc = out_c + SLACK;
    const int skew = slot->form == TO_F16 || slot->form == TO_BF16 ? shift : 2 * shift;
    void * yv = (uint16_t *)(out_v + SLACK) + skew;
    memset(out_v, 0xA5, guarded_bytes(n));
    if (slot->form == UPDATE) {
        memcpy(yc, r.b, (size_t)n * sizeof(float));
        memcpy(yv, r.b, (size_t)n * sizeof(float));
    }
    if (slot->form == INDEX)
        yv = out_v + SLACK;
    slot->call(c, &r, yc);
    slot->call(v, &r, yv);
    if (!equal(slot->form, yc, yv, n))
        fail_msg("%s_%s differs from its twin: n %lld, mix %d, shift %d, seed %llu", slot->name, level, (long long)n,
                 (int)mix, shift, (unsigned long long)seed);
    if (!canaries_live(yv, output_bytes(slot->form, n), n))
        fail_msg("%s_%s writes outside: n %lld, shift %d, seed %llu", slot->name, level, (long long)n, shift,
                 (unsigned long long)seed);
    if (slot->form != MAP && slot->form != MAP_REDUCE)
        return;
    slot->call(v, &r, (void *)r.a); /* in place; room for the sum is behind the row */
    if (!equal(slot->form, yc, r.a, n))
        fail_msg("%s_%s in place differs: n %lld, mix %d, shift %d, seed %llu", slot->name, level, (long long)n,
                 (int)mix, shift, (unsigned long long)seed);
}

static void check_level(const struct slot * slot, const kernels * c, const kernels * v, const char * level) {
    static const int64_t long_n[] = { 255, 256, 257, 4095, 4096, 4097, MAX_N };
    state = seed;
    for (int mix = 0; mix < N_MIXES; mix++) {
        for (int64_t n = 0; n <= 70; n++)
            check_one(slot, c, v, level, n, (enum mix)mix, (int)(random_bits() % 4));
        for (size_t i = 0; i < sizeof(long_n) / sizeof(long_n[0]); i++)
            check_one(slot, c, v, level, long_n[i], (enum mix)mix, (int)(random_bits() % 4));
    }
}

static void slot_equals_twin(void ** test_state) {
    const struct slot * slot = *test_state;
    kernels c, v;
    sotto_i_vec_init(&c, SOTTO_CPU_LEVEL_C);
    for (int level = SOTTO_CPU_LEVEL_C; level <= (int)sotto_cpu_best_level(); level++) {
        sotto_i_vec_init(&v, (enum sotto_cpu_level)level);
        check_level(slot, &c, &v, sotto_cpu_level_name((enum sotto_cpu_level)level));
    }
}

/* ---- the scalar functions against double precision ---- */

/* Distance in units of the last place of a float near `truth`. */
static double ulps(float y, double truth) {
    int exponent;
    frexp(fabs(truth) < FLT_MIN ? FLT_MIN : fabs(truth), &exponent);
    return fabs(y - truth) / ldexp(1.0, exponent - 24);
}

static void raise_to(double * worst, double x) {
    if (x > *worst)
        *worst = x;
}

struct errors {
    double exp_normal, exp_denormal, tanh_ulp, tanh_relative, erf, gelu, gelu_erf;
};

static void measure(float x, struct errors * e) {
    const double truth = exp(x), limit = (double)FLT_MAX * (1.0 + 0x1p-25);
    const float y = sotto_i_expf(x);
    if (truth >= limit)
        assert_true(isinf(y) && y > 0.0f);
    else
        raise_to(truth < FLT_MIN ? &e->exp_denormal : &e->exp_normal, ulps(y, truth));
    raise_to(&e->tanh_ulp, ulps(sotto_i_tanhf(x), tanh(x)));
    if (fabsf(x) >= FLT_MIN)
        raise_to(&e->tanh_relative, fabs(sotto_i_tanhf(x) / tanh(x) - 1.0));
    raise_to(&e->erf, fabs(sotto_i_erff(x) - erf(x)));
    assert_int_equal(signbit(sotto_i_tanhf(x)) != 0, signbit(x) != 0);
    assert_int_equal(signbit(sotto_i_erff(x)) != 0, signbit(x) != 0);
    if (fabsf(x) > 100.0f)
        return;
    const double d = x, k = sqrt(2.0 / acos(-1.0));
    raise_to(&e->gelu,
             fabs(sotto_i_geluf(x) - 0.5 * d * (1.0 + tanh(k * d * (1.0 + 0.044715 * d * d)))) / (1.0 + fabs(d)));
    raise_to(&e->gelu_erf, fabs(sotto_i_gelu_erff(x) - 0.5 * d * (1.0 + erf(d * sqrt(0.5)))) / (1.0 + fabs(d)));
}

/* Every 257th float. The bounds are those that vmath_c.h states. */
static void functions_are_accurate(void ** test_state) {
    (void)test_state;
    struct errors e = { 0 };
    for (uint64_t bits = 0; bits <= UINT32_MAX; bits += 257) {
        const float x = sotto_i_from_bits((uint32_t)bits);
        if (isnan(x)) {
            assert_true(isnan(sotto_i_expf(x)) && isnan(sotto_i_tanhf(x)) && isnan(sotto_i_erff(x)));
            assert_true(isnan(sotto_i_geluf(x)) && isnan(sotto_i_gelu_erff(x)));
        } else {
            measure(x, &e);
        }
    }
    print_message("exp %.3f ulp, denormal %.3f ulp; tanh %.3f ulp, %.2g relative; erf %.3g; gelu %.3g, erf form %.3g\n",
                  e.exp_normal, e.exp_denormal, e.tanh_ulp, e.tanh_relative, e.erf, e.gelu, e.gelu_erf);
    assert_true(e.exp_normal <= 0.97 && e.exp_denormal <= 0.74);
    assert_true(e.tanh_ulp <= 1.03 && e.tanh_relative <= 8.8e-8);
    assert_true(e.erf <= 7.5e-8);
    assert_true(e.gelu <= 1.5e-7 && e.gelu_erf <= 1e-7);
}

/* ---- special values ---- */

static void special_values(void ** test_state) {
    (void)test_state;
    assert_true(sotto_i_expf(0.0f) == 1.0f && sotto_i_expf(-INFINITY) == 0.0f && isinf(sotto_i_expf(INFINITY)));
    assert_true(sotto_i_expf(-104.0f) == 0.0f && sotto_i_expf(-103.9f) == 0x1p-149f);
    assert_true(sotto_i_tanhf(INFINITY) == 1.0f && sotto_i_tanhf(-20.0f) == -1.0f && sotto_i_tanhf(1e-40f) == 1e-40f);
    assert_true(sotto_i_erff(INFINITY) == 1.0f && sotto_i_erff(-5.0f) == -1.0f);
    static const float far[] = { 13.24f, 50.0f, 1e4f, 1e20f, FLT_MAX, INFINITY };
    for (size_t i = 0; i < sizeof(far) / sizeof(far[0]); i++) {
        assert_true(sotto_i_geluf(far[i]) == far[i] && sotto_i_gelu_erff(far[i]) == far[i]);
        assert_true(fabsf(sotto_i_geluf(-far[i])) < 1e-30f && fabsf(sotto_i_gelu_erff(-far[i])) == 0.0f);
    }
}

static void maxima_and_nan(void ** test_state) {
    (void)test_state;
    for (int level = SOTTO_CPU_LEVEL_C; level <= (int)sotto_cpu_best_level(); level++) {
        kernels k;
        sotto_i_vec_init(&k, (enum sotto_cpu_level)level);
        float x[100];
        for (int i = 0; i < 100; i++)
            x[i] = -NAN;
        assert_true(isnan(k.max(x, 100)) && k.argmax(x, 100) == 0);
        x[77] = x[90] = -INFINITY;
        assert_true(isnan(k.max(x, 100)) && k.argmax(x, 100) == 77);
        x[33] = x[91] = -0.0f;
        x[80] = 0.0f;
        assert_int_equal(k.argmax(x, 100), 33);
        for (int i = 0; i < 100; i++)
            x[i] = i < 50 ? -INFINITY : i == 70 ? -0.0f : -FLT_MAX;
        assert_int_equal(sotto_i_to_bits(k.max(x, 100)), 0);
        assert_true(k.max(x, 50) == -INFINITY && k.argmax(x, 50) == 0 && k.argmax(x, 100) == 70);
        assert_true(k.max(x, 0) == -INFINITY && k.argmax(x, 0) == 0 && k.sum(x, 0) == 0.0f);
    }
}

/* Sixteen partial sums in chunks of 4096: a value in the chunk behind a large sum is rounded once, not lost. */
static void sums_follow_the_contract(void ** test_state) {
    (void)test_state;
    kernels k;
    sotto_i_vec_init(&k, SOTTO_CPU_LEVEL_C);
    static float x[8192];
    double truth = 0.0, size = 0.0;
    state = seed;
    for (int i = 0; i < 8192; i++) {
        x[i] = random_unit();
        truth += x[i];
        size += fabs(x[i]);
    }
    assert_true(fabs(k.sum(x, 8192) - truth) <= 0x1p-24 * (256 + 4 + 2) * size);
    memset(x, 0, sizeof(x));
    x[0] = 0x1p24f;
    x[16] = 1.0f; /* same partial sum: 2^24 + 1 is rounded to even */
    assert_true(k.sum(x, 8192) == 0x1p24f);
    x[17] = x[33] = 1.0f; /* 1 + 1 first, then 2^24 + 2 */
    assert_true(k.sum(x, 8192) == 0x1p24f + 2.0f);
    x[4096] = x[4097] = 1.0f; /* the next chunk's sum is 2 */
    assert_true(k.sum(x, 8192) == 0x1p24f + 4.0f);
}

/* ---- timing ---- */

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double time_call(const struct slot * slot, const kernels * k, int64_t n) {
    const struct row r = { in_a, in_b, 0.5f, 0.25f, n };
    double best = 1e9;
    for (int round = 0; round < 7; round++) {
        const double start = now();
        for (int i = 0; i < 200; i++)
            slot->call(k, &r, out_c);
        const double t = (now() - start) / 200.0;
        best = t < best ? t : best;
    }
    return best;
}

static int bench(void) {
    state = seed;
    fill(in_a, ROOM, UNIT);
    fill(in_b, ROOM, UNIT);
    printf("%-14s %-8s %10s %8s\n", "kernel", "level", "ns/element", "ratio");
    for (int s = 0; s < N_SLOTS; s++) {
        double scalar = 0.0;
        for (int level = SOTTO_CPU_LEVEL_C; level <= (int)sotto_cpu_best_level(); level++) {
            kernels k;
            sotto_i_vec_init(&k, (enum sotto_cpu_level)level);
            const double t = time_call(&slots[s], &k, 4096);
            scalar = level == SOTTO_CPU_LEVEL_C ? t : scalar;
            printf("%-14s %-8s %10.3f %8.1f\n", slots[s].name, sotto_cpu_level_name((enum sotto_cpu_level)level),
                   t / 4096 * 1e9, scalar / t);
        }
    }
    return 0;
}

int main(int argc, char ** argv) {
    bool timing = false;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--bench") == 0)
            timing = true;
        else
            seed = strtoull(argv[i], NULL, 0);
    }
    printf("seed %llu\n", (unsigned long long)seed);
    if (timing)
        return bench();
    struct CMUnitTest tests[N_SLOTS + 4] = {
        cmocka_unit_test(functions_are_accurate),
        cmocka_unit_test(special_values),
        cmocka_unit_test(maxima_and_nan),
        cmocka_unit_test(sums_follow_the_contract),
    };
    for (int i = 0; i < N_SLOTS; i++)
        tests[4 + i] = (struct CMUnitTest){ slots[i].name, slot_equals_twin, NULL, NULL, (void *)&slots[i] };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
