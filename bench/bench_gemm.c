/* SPDX-License-Identifier: MIT */
/* Matrix products beside OpenBLAS, through the public API: packed weights, a CPU backend, a plan that runs many times.
 *
 *     bench_gemm [--threads N] [--reps N] [--json]
 *
 * y[n, m] = weights[k, n]^T x[k, m]; m is what a recogniser calls frames or tokens. Weights as f32 and as f16; OpenBLAS
 * has f32 both times. The two take turns inside one run, and medians are printed, so that a machine that slows down
 * slows both. Before each measured run a program's threads have a rest, in which the other's stop spinning, and
 * some unmeasured runs, which wake its own and bring the clock up. OpenBLAS is loaded at run time (libopenblas.so.0),
 * without the environment variables that would change its kernels or blocks. */
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "sotto/sotto.h"

enum { MAX_REPS = 1000, ROW_MAJOR = 101, COL_MAJOR = 102, NO_TRANS = 111, TRANS = 112 };

#define REST_S    0.200 /* OpenBLAS' threads keep spinning after a call, up to 0.1 s were seen */
#define WARM_S    0.030
#define MEASURE_S 0.002 /* products that are faster run several times */

struct options {
    int threads, reps;
    bool json;
};

struct blas {
    void (*sgemm)(int order, int ta, int tb, int m, int n, int k, float alpha, const float * a, int lda,
                  const float * b, int ldb, float beta, float * c, int ldc);
    void (*sgemv)(int order, int ta, int m, int n, float alpha, const float * a, int lda, const float * x, int incx,
                  float beta, float * y, int incy);
    void (*set_threads)(int n);
    char * (*config)(void);
    char * (*core)(void);
};

/* One product, ready to run. */
struct product {
    int m, n, k;
    enum sotto_type type;
    float *w, *x, *blas_y; /* [n][k], [m][k], [m][n] */
    struct sotto_context *weights, *graph;
    sotto_backend_buffer_t buffer;
    sotto_backend_t cpu;
    sotto_backend_graph_plan_t plan;
    struct sotto_tensor * y;
    const struct blas * blas;
};

struct result {
    double ours, theirs; /* medians, seconds */
    double difference;   /* largest, over the largest value */
};

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void rest(double seconds) {
    const struct timespec t = { 0, (long)(seconds * 1e9) };
    nanosleep(&t, NULL);
}

static void die(const char * what) {
    fprintf(stderr, "bench_gemm: %s: %s\n", what, sotto_last_error_text());
    exit(EXIT_FAILURE);
}

static void * need(void * p, const char * what) {
    if (!p) {
        die(what);
    }
    return p;
}

/* ---- OpenBLAS ---- */

static bool load(struct blas * blas) {
    unsetenv("OPENBLAS_CORETYPE");
    unsetenv("OPENBLAS_L2_SIZE");
    void * lib = dlopen("libopenblas.so.0", RTLD_NOW);
    if (!lib) {
        return false;
    }
    /* as POSIX has it: a data pointer from dlsym is stored into a function pointer */
    *(void **)&blas->sgemm = dlsym(lib, "cblas_sgemm");
    *(void **)&blas->sgemv = dlsym(lib, "cblas_sgemv");
    *(void **)&blas->set_threads = dlsym(lib, "openblas_set_num_threads");
    *(void **)&blas->config = dlsym(lib, "openblas_get_config");
    *(void **)&blas->core = dlsym(lib, "openblas_get_corename");
    return blas->sgemm && blas->sgemv && blas->set_threads && blas->config && blas->core;
}

static void run_theirs(struct product * p) {
    if (p->m == 1) {
        p->blas->sgemv(ROW_MAJOR, NO_TRANS, p->n, p->k, 1.0f, p->w, p->k, p->x, 1, 0.0f, p->blas_y, 1);
    } else {
        p->blas->sgemm(COL_MAJOR, TRANS, NO_TRANS, p->n, p->m, p->k, 1.0f, p->w, p->k, p->x, p->k, 0.0f, p->blas_y,
                       p->n);
    }
}

/* ---- ours ---- */

static void run_ours(struct product * p) {
    if (sotto_backend_graph_plan_compute(p->cpu, p->plan) != SOTTO_OK) {
        die("compute");
    }
}

static float * values(size_t n, uint32_t * state) {
    float * x = need(malloc(n * sizeof(float)), "memory");
    for (size_t i = 0; i < n; i++) {
        *state = *state * 1664525u + 1013904223u;
        x[i] = (float)((int32_t)(*state >> 21) - 1024) / 1024.0f; /* exact in f16 */
    }
    return x;
}

static void set_weights(struct product * p, struct sotto_tensor * w) {
    const size_t n = (size_t)p->n * (size_t)p->k;
    if (p->type == SOTTO_TYPE_F32) {
        if (sotto_backend_tensor_set(w, p->w, 0, n * sizeof(float)) != SOTTO_OK) {
            die("weights");
        }
        return;
    }
    sotto_fp16_t * half = need(malloc(n * sizeof(*half)), "memory");
    sotto_fp32_to_fp16_row(p->w, half, (int64_t)n);
    if (sotto_backend_tensor_set(w, half, 0, n * sizeof(*half)) != SOTTO_OK) {
        die("weights");
    }
    free(half);
}

static void product_init(struct product * p, const struct options * o) {
    uint32_t state = 1;
    p->w = values((size_t)p->n * (size_t)p->k, &state);
    p->x = values((size_t)p->m * (size_t)p->k, &state);
    p->blas_y = values((size_t)p->m * (size_t)p->n, &state);

    p->weights = need(sotto_init((struct sotto_init_params){ .mem_size = 4096, .no_alloc = true }), "context");
    struct sotto_tensor * w = sotto_new_tensor_2d(p->weights, p->type, p->k, p->n);
    p->buffer =
        need(sotto_backend_alloc_ctx_tensors_from_buft(p->weights, sotto_backend_cpu_packed_buffer_type()), "buffer");
    set_weights(p, w);

    const size_t data = sizeof(float) * ((size_t)p->m * (size_t)p->k + (size_t)p->m * (size_t)p->n);
    const struct sotto_init_params params = { .mem_size = data + (1u << 20) };
    p->graph = need(sotto_init(params), "context");
    struct sotto_tensor * x = need(sotto_new_tensor_2d(p->graph, SOTTO_TYPE_F32, p->k, p->m), "tensor");
    memcpy(x->data, p->x, sotto_nbytes(x));
    p->y = need(sotto_mul_mat(p->graph, w, x), "mul_mat");
    struct sotto_cgraph * g = need(sotto_new_graph_custom(p->graph, 16, false), "graph");
    if (sotto_build_forward_expand(g, p->y) != SOTTO_OK) {
        die("graph");
    }
    p->cpu = need(sotto_backend_cpu_init(), "backend");
    if (sotto_backend_cpu_set_n_threads(p->cpu, o->threads) != SOTTO_OK) {
        die("threads");
    }
    p->plan = need(sotto_backend_graph_plan_create(p->cpu, g), "plan");
}

static void product_free(struct product * p) {
    sotto_backend_graph_plan_free(p->cpu, p->plan);
    sotto_backend_free(p->cpu);
    sotto_backend_buffer_free(p->buffer);
    sotto_free(p->graph);
    sotto_free(p->weights);
    free(p->w);
    free(p->x);
    free(p->blas_y);
}

/* ---- measuring ---- */

static double measure(struct product * p, void (*run)(struct product *)) {
    rest(REST_S);
    const double start = now();
    int n = 0;
    do {
        run(p);
        n++;
    } while (now() - start < WARM_S);
    const double each = (now() - start) / n;
    const int inner = each < MEASURE_S ? (int)(MEASURE_S / each) + 1 : 1;
    const double t = now();
    for (int i = 0; i < inner; i++) {
        run(p);
    }
    return (now() - t) / inner;
}

static int compare(const void * a, const void * b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double * x, int n) {
    qsort(x, (size_t)n, sizeof(*x), compare);
    return n % 2 ? x[n / 2] : 0.5 * (x[n / 2 - 1] + x[n / 2]);
}

static double difference(const struct product * p) {
    const float * y = p->y->data;
    double most = 0.0, scale = 1e-30;
    for (size_t i = 0; i < (size_t)p->m * (size_t)p->n; i++) {
        most = fmax(most, fabs((double)y[i] - (double)p->blas_y[i]));
        scale = fmax(scale, fabs((double)p->blas_y[i]));
    }
    return most / scale;
}

static struct result measure_both(struct product * p, const struct options * o) {
    static double ours[MAX_REPS], theirs[MAX_REPS];
    struct result r = { 0 };
    for (int i = 0; i < o->reps; i++) {
        ours[i] = measure(p, run_ours);
        if (p->blas) {
            theirs[i] = measure(p, run_theirs);
        }
    }
    r.ours = median(ours, o->reps);
    if (p->blas) {
        r.theirs = median(theirs, o->reps);
        r.difference = difference(p);
    }
    return r;
}

/* ---- telling ---- */

static const char * cpu_model(void) {
    static char name[128] = "unknown";
    char line[256];
    FILE * f = fopen("/proc/cpuinfo", "r");
    while (f && fgets(line, sizeof(line), f)) {
        const char * colon = strchr(line, ':');
        if (strncmp(line, "model name", 10) == 0 && colon) {
            snprintf(name, sizeof(name), "%.*s", (int)strcspn(colon + 2, "\n"), colon + 2);
            break;
        }
    }
    if (f) {
        fclose(f);
    }
    return name;
}

static void print_machine(const struct options * o, const struct blas * blas) {
    const char * level = sotto_cpu_level_name(sotto_cpu_get_level());
    if (o->json) {
        printf("{\"cpu\": \"%s\", \"level\": \"%s\", \"threads\": %d, \"reps\": %d, \"compiler\": \"%s\", "
               "\"openblas\": \"%s\", \"openblas_core\": \"%s\", \"products\": [",
               cpu_model(), level, o->threads, o->reps, __VERSION__, blas ? blas->config() : "",
               blas ? blas->core() : "");
        return;
    }
    printf("cpu %s, level %s, %d threads, medians of %d, compiler %s\n", cpu_model(), level, o->threads, o->reps,
           __VERSION__);
    printf("peer %s\n", blas ? blas->config() : "none: libopenblas.so.0 was not found (tools/setup bench installs it)");
    printf("\n%6s %6s %6s %-4s %21s %21s %7s %9s %8s\n", "m", "n", "k", "w", "sotto", "openblas f32", "ratio",
           "weights", "differ");
}

static void print_result(const struct options * o, const struct product * p, const struct result * r, bool first) {
    const double flop = 2.0 * p->m * p->n * p->k;
    const double bytes = (double)p->n * p->k * (double)sotto_type_size(p->type);
    const double blas_gflops = r->theirs > 0.0 ? flop / r->theirs * 1e-9 : 0.0;
    const double ratio = r->theirs / r->ours;
    if (o->json) {
        printf(
            "%s\n {\"m\": %d, \"n\": %d, \"k\": %d, \"weights\": \"%s\", \"sotto_ms\": %.4f, \"sotto_gflops\": %.1f, "
            "\"openblas_ms\": %.4f, \"openblas_gflops\": %.1f, \"ratio\": %.3f, \"weights_gb_s\": %.1f}",
            first ? "" : ",", p->m, p->n, p->k, sotto_type_name(p->type), r->ours * 1e3, flop / r->ours * 1e-9,
            r->theirs * 1e3, blas_gflops, ratio, bytes / r->ours * 1e-9);
        return;
    }
    printf("%6d %6d %6d %-4s %8.3f ms %6.1f GF %8.3f ms %6.1f GF %7.2f %4.1f GB/s %8.1e\n", p->m, p->n, p->k,
           sotto_type_name(p->type), r->ours * 1e3, flop / r->ours * 1e-9, r->theirs * 1e3, blas_gflops, ratio,
           bytes / r->ours * 1e-9, r->difference);
    fflush(stdout);
}

static bool parse(int argc, char ** argv, struct options * o) {
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0) {
            o->json = true;
        } else if (i + 1 < argc && strcmp(argv[i], "--threads") == 0) {
            o->threads = atoi(argv[++i]);
        } else if (i + 1 < argc && strcmp(argv[i], "--reps") == 0) {
            o->reps = atoi(argv[++i]);
        } else {
            return false;
        }
    }
    return o->threads >= 1 && o->threads <= SOTTO_MAX_N_THREADS && o->reps >= 1 && o->reps <= MAX_REPS;
}

int main(int argc, char ** argv) {
    /* m, n, k: the encoder's products (1500 frames), a square one, the decoder's (one token, and five beams) */
    static const int shapes[][3] = { { 1500, 512, 512 }, { 1500, 2048, 512 }, { 1500, 512, 2048 }, { 1024, 1024, 1024 },
                                     { 1, 51865, 512 },  { 5, 51865, 512 },   { 1, 512, 512 },     { 1, 2048, 512 } };
    struct options o = { .threads = 2, .reps = 9 };
    struct blas openblas;
    if (!parse(argc, argv, &o)) {
        fprintf(stderr, "usage: bench_gemm [--threads N] [--reps N] [--json]\n");
        return 2;
    }
    const struct blas * blas = load(&openblas) ? &openblas : NULL;
    if (blas) {
        blas->set_threads(o.threads);
    }
    print_machine(&o, blas);
    for (size_t i = 0; i < 2 * sizeof(shapes) / sizeof(*shapes); i++) {
        const int * s = shapes[i / 2];
        struct product p = { .m = s[0], .n = s[1], .k = s[2], .blas = blas };
        p.type = i % 2 ? SOTTO_TYPE_F16 : SOTTO_TYPE_F32;
        product_init(&p, &o);
        const struct result r = measure_both(&p, &o);
        print_result(&o, &p, &r, i == 0);
        product_free(&p);
    }
    printf("%s", o.json ? "\n]}\n" : "");
    return EXIT_SUCCESS;
}
