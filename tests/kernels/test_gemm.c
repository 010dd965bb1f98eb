/* SPDX-License-Identifier: MIT */
/* Product kernels and their driver: every level of this machine against the scalar definition, bit for bit.
 *
 *     test_gemm [SEED] [--bench]
 *
 * Operands end at a page that cannot be read, outputs are surrounded by canaries, pointers are aligned to no more
 * than the contract asks. Values: random ones, zeros, denormals, the largest, infinities and NaN. --bench times each
 * slot instead and prints its ratio to the scalar twin. */
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

#include "cpu/gemm.h"
#include "guarded.h"

enum { PANEL = SOTTO_CPU_PANEL, BLOCK = SOTTO_I_K_BLOCK };

static uint64_t seed = 1;
static struct dice dice;

static uint32_t next(void) { return dice_next(&dice); }

static float from_bits(uint32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof(x));
    return x;
}

static uint32_t to_bits(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof(bits));
    return bits;
}

enum kind { RANDOM, ZEROS, DENORMAL, LARGEST, SPECIAL, KINDS };

/* A value that f16 and bf16 can hold as well, or nearly: rounding it is up to the caller. */
static float value(enum kind kind) {
    const uint32_t sign = next() & 0x80000000u;
    switch (kind) {
    case ZEROS: return from_bits(sign);
    case DENORMAL: return from_bits(sign | (next() & 0x007fffffu));
    case LARGEST: return from_bits(sign | 0x7f7fffffu);
    case SPECIAL:
        return next() % 16 ? from_bits(sign | 0x3f800000u) : next() % 2 ? (float)NAN : from_bits(sign | 0x7f800000u);
    default: return dice_float(&dice);
    }
}

/* One element of a type, and what it is worth. */
static size_t element_size(enum sotto_type type) { return type == SOTTO_TYPE_F32 ? 4 : 2; }

static void put(enum sotto_type type, void * p, float x) {
    if (type == SOTTO_TYPE_F32) {
        memcpy(p, &x, sizeof(x));
    } else if (type == SOTTO_TYPE_F16) {
        const sotto_fp16_t h = sotto_fp32_to_fp16(x);
        memcpy(p, &h, sizeof(h));
    } else {
        const sotto_bf16_t h = sotto_fp32_to_bf16(x);
        memcpy(p, &h, sizeof(h));
    }
}

static float take(enum sotto_type type, const void * p) {
    float x;
    sotto_fp16_t f16;
    sotto_bf16_t bf16;
    switch (type) {
    case SOTTO_TYPE_F16: return memcpy(&f16, p, sizeof(f16)), sotto_fp16_to_fp32(f16);
    case SOTTO_TYPE_BF16: return memcpy(&bf16, p, sizeof(bf16)), sotto_bf16_to_fp32(bf16);
    default: return memcpy(&x, p, sizeof(x)), x;
    }
}

static struct guarded guarded_values(enum sotto_type type, size_t n, enum kind kind) {
    struct guarded g = guarded_new(n * element_size(type));
    for (size_t i = 0; i < n; i++) {
        put(type, (char *)g.data + i * element_size(type), value(kind));
    }
    return g;
}

static bool same(float a, float b) { return to_bits(a) == to_bits(b) || (isnan(a) && isnan(b)); }

static void check_same(const float * want, const float * got, size_t n, const char * what) {
    for (size_t i = 0; i < n; i++) {
        if (!same(want[i], got[i])) {
            fail_msg("seed %llu, %s: element %zu is %a (%08x), the scalar twin's %a (%08x)", (unsigned long long)seed,
                     what, i, (double)got[i], (unsigned)to_bits(got[i]), (double)want[i], (unsigned)to_bits(want[i]));
        }
    }
}

static const char * describe(const char * format, ...) {
    static char text[200];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    return text;
}

/* ---- slots ---- */

static const enum sotto_type types[] = { SOTTO_TYPE_F32, SOTTO_TYPE_F16, SOTTO_TYPE_BF16 };
enum { TYPES = sizeof(types) / sizeof(*types) };

struct level {
    struct sotto_i_gemm_kernels c, k;
    const char * name;
};

static void check_unpack(const struct level * l, enum sotto_type type, const void * x, size_t n) {
    float *want = calloc(n + 2, sizeof(float)), *got = calloc(n + 2, sizeof(float));
    got[0] = want[0] = got[n + 1] = want[n + 1] = 12345.0f;
    l->c.unpack[type](x, want + 1, (int64_t)n);
    l->k.unpack[type](x, got + 1, (int64_t)n);
    check_same(want, got, n + 2, describe("unpack %s to level %s, n %zu", sotto_type_name(type), l->name, n));
    free(want);
    free(got);
}

static void test_unpack(void ** arg) {
    const struct level * l = *arg;
    for (int t = 0; t < TYPES; t++) {
        for (size_t n = 0; n < 70; n++) {
            struct guarded x = guarded_values(types[t], n, RANDOM);
            check_unpack(l, types[t], x.data, n);
            guarded_free(&x);
        }
    }
    struct guarded all = guarded_new(65536 * 2);
    for (uint32_t i = 0; i < 65536; i++) {
        const uint16_t h = (uint16_t)i;
        memcpy((char *)all.data + i * 2, &h, sizeof(h));
    }
    check_unpack(l, SOTTO_TYPE_F16, all.data, 65536);
    check_unpack(l, SOTTO_TYPE_BF16, all.data, 65536);
    guarded_free(&all);
}

static void check_pack(const struct level * l, int n, int64_t k) {
    struct guarded rows[PANEL];
    const float * source[PANEL];
    for (int r = 0; r < n; r++) {
        rows[r] = guarded_values(SOTTO_TYPE_F32, (size_t)k, RANDOM);
        source[r] = rows[r].data;
    }
    const int64_t ld = sotto_i_strip_ld(n);
    const size_t size = (size_t)(k * ld);
    struct guarded want = guarded_new(size * sizeof(float)), got = guarded_new(size * sizeof(float));
    l->c.pack(source, n, k, want.data, ld);
    l->k.pack(source, n, k, got.data, ld);
    check_same(want.data, got.data, size, describe("pack of level %s, %d rows of %d", l->name, n, (int)k));
    for (int r = 0; r < n; r++) {
        guarded_free(&rows[r]);
    }
    guarded_free(&want);
    guarded_free(&got);
}

static void test_pack(void ** arg) {
    for (int n = 1; n <= PANEL; n++) {
        for (int64_t k = 0; k < 20; k++) {
            check_pack(*arg, n, k);
        }
        check_pack(*arg, n, BLOCK);
    }
}

/* One tile into c with canaries around each column. */
static void check_tile(const struct level * l, enum sotto_type type, int panels, int cols, int64_t k, enum kind kind) {
    const int rows = PANEL * panels, ldc = rows + 3, ldb = (int)sotto_i_strip_ld(cols);
    const size_t step = (size_t)k * PANEL + PANEL;
    struct guarded a = guarded_values(type, step * (size_t)(panels - 1) + (size_t)k * PANEL, kind);
    struct guarded b = guarded_values(SOTTO_TYPE_F32, (size_t)(k * ldb), kind == LARGEST ? RANDOM : kind);
    const size_t n = (size_t)ldc * (size_t)cols + 1;
    float *want = malloc(n * sizeof(float)), *got = malloc(n * sizeof(float)), *wide = NULL;
    for (size_t i = 0; i < n; i++) {
        want[i] = got[i] = value(kind);
    }
    struct sotto_i_gemm_tile t = { .a = a.data,
                                   .a_step = step,
                                   .b = b.data,
                                   .ldb = ldb,
                                   .ldc = ldc,
                                   .k = k,
                                   .panels = panels,
                                   .cols = cols,
                                   .add = next() % 2 };
    t.c = got + 1;
    (type == SOTTO_TYPE_F32 ? l->k.tile : l->k.tile_direct[type])(&t);
    if (type != SOTTO_TYPE_F32) {
        const size_t elements = step * (size_t)panels;
        wide = calloc(elements + 1, sizeof(float));
        l->c.unpack[type](a.data, wide, (int64_t)(elements - PANEL));
        t.a = wide;
    }
    t.c = want + 1;
    l->c.tile(&t);
    check_same(want, got, n,
               describe("tile %s of level %s, %d panels x %d columns, k %d, values %d, add %d", sotto_type_name(type),
                        l->name, panels, cols, (int)k, (int)kind, (int)t.add));
    free(want);
    free(got);
    free(wide);
    guarded_free(&a);
    guarded_free(&b);
}

static void test_tile(void ** arg) {
    static const int64_t ks[] = { 0, 1, 2, 3, 31, 33, 255, 256 };
    const struct level * l = *arg;
    for (int t = 0; t < TYPES; t++) {
        if (types[t] != SOTTO_TYPE_F32 && !l->k.tile_direct[types[t]]) {
            continue;
        }
        for (int cols = 1; cols <= l->k.max_cols; cols++) {
            for (int panels = 1; panels <= l->k.panels[cols]; panels *= 2) {
                for (size_t i = 0; i < sizeof(ks) / sizeof(*ks); i++) {
                    check_tile(l, types[t], panels, cols, ks[i], (enum kind)(next() % KINDS));
                }
            }
        }
    }
}

/* ---- driver ---- */

/* Operands of one product: rows [n][k] and [m][k], with what the definition makes of them. */
struct product {
    int64_t n, m, k;
    enum sotto_type a_type, b_type;
    struct guarded a, b;
    float * want; /* [m][n] */
};

static float at(enum sotto_type type, const struct guarded * g, int64_t i) {
    return take(type, (const char *)g->data + (size_t)i * element_size(type));
}

/* docs/numerics.md, "Products", word by word. */
static float definition(const struct product * p, int64_t i, int64_t j) {
    float y = 0.0f;
    for (int64_t l0 = 0; l0 < p->k; l0 += BLOCK) {
        float s = 0.0f;
        for (int64_t l = l0; l < p->k && l < l0 + BLOCK; l++) {
            s = fmaf(at(p->a_type, &p->a, i * p->k + l), at(p->b_type, &p->b, j * p->k + l), s);
        }
        y = l0 == 0 ? s : y + s;
    }
    return y;
}

static struct product product_new(int64_t n, int64_t m, int64_t k, enum sotto_type a, enum sotto_type b,
                                  enum kind kind) {
    struct product p = { .n = n, .m = m, .k = k, .a_type = a, .b_type = b };
    p.a = guarded_values(a, (size_t)(n * k), kind);
    p.b = guarded_values(b, (size_t)(m * k), kind == LARGEST ? RANDOM : kind);
    p.want = malloc((size_t)(n * m) * sizeof(float));
    for (int64_t j = 0; j < m; j++) {
        for (int64_t i = 0; i < n; i++) {
            p.want[j * n + i] = definition(&p, i, j);
        }
    }
    return p;
}

static void product_free(struct product * p) {
    guarded_free(&p->a);
    guarded_free(&p->b);
    free(p->want);
}

/* Rows into panels; lanes that no row fills hold NaN, which must not get out. */
static struct guarded to_panels(const struct product * p) {
    const size_t es = element_size(p->a_type);
    const int64_t panels = (p->n + PANEL - 1) / PANEL;
    struct guarded g = guarded_new((size_t)(panels * PANEL * p->k) * es);
    for (int64_t r = 0; r < panels * PANEL; r++) {
        for (int64_t l = 0; l < p->k; l++) {
            put(p->a_type, (char *)g.data + (size_t)((r / PANEL * p->k + l) * PANEL + r % PANEL) * es,
                r < p->n ? at(p->a_type, &p->a, r * p->k + l) : (float)NAN);
        }
    }
    return g;
}

static void check_driver(const struct level * l, const struct product * p, bool packed, int64_t row_cut,
                         int64_t col_cut) {
    const size_t n = (size_t)(p->n * p->m) + 2;
    const size_t es = element_size(p->a_type);
    struct guarded panels = to_panels(p);
    float * y = malloc(n * sizeof(float));
    void * scratch = NULL;
    assert_int_equal(posix_memalign(&scratch, SOTTO_DATA_ALIGN, sotto_i_gemm_scratch()), 0);
    y[0] = y[n - 1] = 12345.0f;
    const struct sotto_i_kernels kernels = { .gemm = l->k };
    struct sotto_i_gemm g = { .kernels = &kernels, .n = p->n, .k = p->k, .y = y + 1, .ldy = p->n, .scratch = scratch };
    g.a.data = packed ? panels.data : p->a.data;
    g.a.type = p->a_type;
    g.a.packed = packed;
    g.a.nb[0] = es;
    g.a.nb[1] = es * (size_t)p->k;
    g.b.data = p->b.data;
    g.b.type = p->b_type;
    g.b.nb[0] = element_size(p->b_type);
    g.b.nb[1] = g.b.nb[0] * (size_t)p->k;
    for (int quarter = 0; quarter < 4; quarter++) {
        struct sotto_i_gemm_rect r = { 0, row_cut, 0, col_cut };
        if (quarter & 1) {
            r.row0 = row_cut;
            r.row1 = p->n;
        }
        if (quarter & 2) {
            r.col0 = col_cut;
            r.col1 = p->m;
        }
        sotto_i_gemm_run(&g, &r);
    }
    const char * what =
        describe("product at level %s, a %s%s, b %s, %d rows (cut at %d), %d columns (cut at %d), k %d", l->name,
                 sotto_type_name(p->a_type), packed ? " packed" : "", sotto_type_name(p->b_type), (int)p->n,
                 (int)row_cut, (int)p->m, (int)col_cut, (int)p->k);
    check_same(p->want, y + 1, n - 2, what);
    assert_true(y[0] == 12345.0f && y[n - 1] == 12345.0f);
    free(y);
    free(scratch);
    guarded_free(&panels);
}

static void test_driver(void ** arg) {
    static const int64_t ks[] = { 0, 1, 2, 3, 31, 33, 255, 256, 257, 511, 512, 513, 700 };
    static const int64_t ns[] = { 1, 15, 16, 17, 31, 33, 48 };
    for (size_t i = 0; i < sizeof(ks) / sizeof(*ks); i++) {
        for (size_t j = 0; j < sizeof(ns) / sizeof(*ns); j++) {
            const int64_t m = 1 + (int64_t)((i * 7 + j * 3 + next() % 2) % 26), n = ns[j];
            struct product p = product_new(n, m, ks[i], types[next() % TYPES], types[next() % TYPES],
                                           (enum kind)(next() % (2 * KINDS) % KINDS));
            check_driver(*arg, &p, true, n, m);
            check_driver(*arg, &p, true, n / PANEL / 2 * PANEL, next() % m);
            check_driver(*arg, &p, false, n, m);
            check_driver(*arg, &p, false, n / PANEL / 2 * PANEL, next() % m);
            product_free(&p);
        }
    }
}

static void test_columns(void ** arg) {
    for (int64_t m = 1; m <= 26; m++) {
        struct product p = product_new(33, m, 40, types[m % TYPES], SOTTO_TYPE_F32, RANDOM);
        check_driver(*arg, &p, true, 33, m);
        check_driver(*arg, &p, false, 33, m);
        product_free(&p);
    }
    /* more than a group of columns, more than a batch of panels, several runs of k */
    struct product p =
        product_new(9 * PANEL + 5, SOTTO_I_GEMM_GROUP + 7, 2 * BLOCK + 1, SOTTO_TYPE_F16, SOTTO_TYPE_F32, RANDOM);
    check_driver(*arg, &p, true, p.n, p.m);
    product_free(&p);
}

/* Whatever else is in the product, a column has its own bits. */
static void test_one_or_many(void ** arg) {
    struct product many = product_new(40, 30, 600, SOTTO_TYPE_F16, SOTTO_TYPE_F32, RANDOM), one = many;
    for (int64_t j = 0; j < many.m; j++) {
        one.m = 1;
        one.want = many.want + j * many.n;
        one.b.data = (char *)many.b.data + (size_t)(j * many.k) * sizeof(float);
        check_driver(*arg, &one, true, one.n, 1);
    }
    product_free(&many);
}

/* ---- timing ---- */

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double time_tile(void (*tile)(const struct sotto_i_gemm_tile *), const struct sotto_i_gemm_tile * t) {
    double best = 1e9;
    for (int round = 0; round < 5; round++) {
        const double start = now();
        int n = 0;
        do {
            tile(t);
            n++;
        } while (now() - start < 2e-3);
        const double each = (now() - start) / n;
        best = each < best ? each : best;
    }
    return best;
}

static void bench_level(const struct level * l) {
    static float a[SOTTO_I_GEMM_MAX_PANELS * PANEL * BLOCK], b[SOTTO_I_GEMM_MAX_COLS * BLOCK];
    static float c[SOTTO_I_GEMM_MAX_COLS * SOTTO_I_GEMM_MAX_PANELS * PANEL];
    for (int type = 0; type < TYPES; type++) {
        void (*tile)(const struct sotto_i_gemm_tile *) = type == 0 ? l->k.tile : l->k.tile_direct[types[type]];
        for (int cols = 1; tile && cols <= l->k.max_cols; cols++) {
            const int panels = l->k.panels[cols];
            const struct sotto_i_gemm_tile t = { .a = a,
                                                 .a_step = PANEL * BLOCK,
                                                 .b = b,
                                                 .c = c,
                                                 .k = BLOCK,
                                                 .panels = panels,
                                                 .ldb = sotto_i_strip_ld(cols),
                                                 .ldc = panels * PANEL,
                                                 .cols = cols };
            const double flop = 2.0 * PANEL * panels * cols * BLOCK;
            const double here = time_tile(tile, &t), scalar = time_tile(l->c.tile, &t);
            printf("%-7s tile %-4s %d x %2d  %8.0f ns  %6.1f GFLOP/s  %5.1f times the scalar twin\n", l->name,
                   sotto_type_name(types[type]), panels, cols, here * 1e9, flop / here * 1e-9, scalar / here);
        }
    }
}

/* ---- all levels ---- */

static struct level levels[SOTTO_CPU_LEVEL_COUNT];

static int run_level(struct level * l) {
    struct CMUnitTest tests[] = {
        { "unpack", test_unpack, NULL, NULL, l },   { "pack", test_pack, NULL, NULL, l },
        { "tile", test_tile, NULL, NULL, l },       { "driver", test_driver, NULL, NULL, l },
        { "columns", test_columns, NULL, NULL, l }, { "one_or_many", test_one_or_many, NULL, NULL, l },
    };
    char names[sizeof(tests) / sizeof(*tests)][64];
    for (size_t i = 0; i < sizeof(tests) / sizeof(*tests); i++) {
        snprintf(names[i], sizeof(names[i]), "%s %s", tests[i].name, l->name);
        tests[i].name = names[i];
    }
    dice.state = seed;
    return _cmocka_run_group_tests(l->name, tests, sizeof(tests) / sizeof(*tests), NULL, NULL);
}

int main(int argc, char ** argv) {
    bool bench = false;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--bench") == 0) {
            bench = true;
        } else {
            seed = strtoull(argv[i], NULL, 0);
        }
    }
    printf("seed %llu\n", (unsigned long long)seed);
    int failed = 0;
    for (int i = 0; i <= (int)sotto_cpu_best_level(); i++) {
        struct level * l = &levels[i];
        l->name = sotto_cpu_level_name((enum sotto_cpu_level)i);
        sotto_i_gemm_init(&l->c, SOTTO_CPU_LEVEL_C);
        sotto_i_gemm_init(&l->k, (enum sotto_cpu_level)i);
        if (bench) {
            bench_level(l);
        } else {
            failed += run_level(l);
        }
    }
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
