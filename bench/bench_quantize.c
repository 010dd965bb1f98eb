/* SPDX-License-Identifier: MIT */
/* Quantising a model's tensors beside another library's ggml_quantize_chunk, on one thread.
 *
 *     bench_quantize LIBRARY MODEL.gguf REPS [TYPE...]      all types without names; LIBRARY - for none
 *
 * Rows of whole blocks of 256 count. The two take turns, tensor by tensor; the sums over the tensors of the medians of
 * the processor's time are printed, so that other work on the machine weighs little; and whether the bytes are equal,
 * without a matrix or, for types that need one, with one of ones. The library is loaded at run time. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "sotto/gguf.h"
#include "sotto/quant.h"
#include "sotto/status.h"

enum { MOST_REPS = 99 };

typedef size_t (*quantize_fn)(int type, const float * src, void * dst, int64_t start, int64_t nrows, int64_t n_per_row,
                              const float * imatrix);

struct bench {
    quantize_fn peer; /* NULL: none */
    struct sotto_gguf_context * model;
    int reps;
    float *x, *ones;
    uint8_t *ours, *theirs; /* no type takes more than x */
};

struct total {
    double ours, theirs; /* seconds */
    int64_t elements;
    size_t bytes;
    bool equal, refused;
};

static double cpu_seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int ascending(const void * a, const void * b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double * v, int n) {
    qsort(v, (size_t)n, sizeof(*v), ascending);
    return v[n / 2];
}

static bool counts(const struct bench * b, int64_t id) {
    const int64_t * ne = sotto_gguf_get_tensor_ne(b->model, id);
    return ne[0] % 256 == 0 && ne[1] > 1 &&
           sotto_get_type_traits(sotto_gguf_get_tensor_type(b->model, id))->blck_size == 1;
}

static int64_t elements_of(const struct bench * b, int64_t id) {
    const int64_t * ne = sotto_gguf_get_tensor_ne(b->model, id);
    return ne[0] * ne[1] * ne[2] * ne[3];
}

/* A tensor as floats in b->x; its own form passes through b->ours. */
static bool load(struct bench * b, int64_t id) {
    const enum sotto_type type = sotto_gguf_get_tensor_type(b->model, id);
    if (sotto_gguf_read_tensor(b->model, id, b->ours, 0, sotto_gguf_get_tensor_size(b->model, id)) != SOTTO_OK) {
        return false;
    }
    if (type == SOTTO_TYPE_F32) {
        memcpy(b->x, b->ours, sotto_gguf_get_tensor_size(b->model, id));
        return true;
    }
    if (!sotto_get_type_traits(type)->to_float) {
        return false;
    }
    sotto_get_type_traits(type)->to_float(b->ours, b->x, elements_of(b, id));
    return true;
}

static void measure(struct bench * b, enum sotto_type type, int64_t id, struct total * total) {
    const int64_t columns = sotto_gguf_get_tensor_ne(b->model, id)[0], n = elements_of(b, id), rows = n / columns;
    const float * w = sotto_quantize_requires_imatrix(type) ? b->ones : NULL;
    double ours[MOST_REPS], theirs[MOST_REPS];
    for (int r = 0; r < b->reps; r++) {
        const double start = cpu_seconds();
        sotto_quantize_chunk(type, b->x, b->ours, 0, rows, columns, w);
        const double between = cpu_seconds();
        if (b->peer && b->peer((int)type, b->x, b->theirs, 0, rows, columns, w) == 0) {
            total->refused = true;
        }
        ours[r] = between - start;
        theirs[r] = cpu_seconds() - between;
    }
    total->ours += median(ours, b->reps);
    total->theirs += median(theirs, b->reps);
    total->elements += n;
    total->bytes += sotto_row_size(type, n);
    total->equal &= memcmp(b->ours, b->theirs, sotto_row_size(type, n)) == 0;
}

static bool run_type(struct bench * b, enum sotto_type type) {
    struct total total = { .equal = true };
    sotto_quantize_init(type);
    for (int64_t id = 0; id < sotto_gguf_get_n_tensors(b->model); id++) {
        if (counts(b, id)) {
            if (!load(b, id)) {
                return false;
            }
            measure(b, type, id, &total);
        }
    }
    if (total.elements == 0) {
        return false;
    }
    printf("%-8s %8.1f MB %9.1f ms %6.2f ns/element", sotto_type_name(type), (double)total.bytes / 1e6,
           1e3 * total.ours, 1e9 * total.ours / (double)total.elements);
    if (b->peer) {
        printf("   library %9.1f ms   ratio %5.2f   bytes %s", 1e3 * total.theirs, total.theirs / total.ours,
               total.refused ? "refused"
               : total.equal ? "equal"
                             : "DIFFER");
    }
    printf("\n");
    fflush(stdout);
    return true;
}

static bool wanted(enum sotto_type type, int n, char ** names) {
    const struct sotto_type_traits * traits = sotto_get_type_traits(type);
    const bool writable = traits->is_quantized && type != SOTTO_TYPE_Q8_1 && type != SOTTO_TYPE_Q8_K;
    bool named = n == 0;
    for (int i = 0; i < n; i++) {
        named |= strcmp(names[i], traits->type_name) == 0;
    }
    return writable && named;
}

static bool allocate(struct bench * b) {
    size_t most = 0;
    int64_t columns = 1;
    for (int64_t id = 0; id < sotto_gguf_get_n_tensors(b->model); id++) {
        if (counts(b, id)) {
            const size_t bytes = (size_t)elements_of(b, id) * sizeof(float);
            most = bytes > most ? bytes : most;
            columns = sotto_gguf_get_tensor_ne(b->model, id)[0] > columns ? sotto_gguf_get_tensor_ne(b->model, id)[0]
                                                                          : columns;
        }
    }
    b->x = malloc(most + 1);
    b->ours = malloc(most + 1);
    b->theirs = malloc(most + 1);
    b->ones = malloc((size_t)columns * sizeof(float));
    if (!b->x || !b->ours || !b->theirs || !b->ones) {
        return false;
    }
    memset(b->x, 0, most);
    memset(b->ours, 0, most);
    memset(b->theirs, 0, most);
    for (int64_t i = 0; i < columns; i++) {
        b->ones[i] = 1.0f;
    }
    return true;
}

static bool load_peer(struct bench * b, const char * path) {
    if (strcmp(path, "-") == 0) {
        return true;
    }
    void * library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    void * symbol = library ? dlsym(library, "ggml_quantize_chunk") : NULL;
    memcpy(&b->peer, &symbol, sizeof(symbol));
    if (!symbol) {
        fprintf(stderr, "bench_quantize: %s\n", dlerror());
    }
    return symbol != NULL;
}

int main(int argc, char ** argv) {
    struct bench b = { 0 };
    if (argc < 4 || (b.reps = atoi(argv[3])) < 1 || b.reps > MOST_REPS) {
        fprintf(stderr, "usage: bench_quantize LIBRARY|- MODEL.gguf REPS [TYPE...]\n");
        return 2;
    }
    if (!load_peer(&b, argv[1])) {
        return 1;
    }
    b.model = sotto_gguf_open(argv[2], NULL);
    bool well = b.model && allocate(&b);
    for (int t = 0; t < SOTTO_TYPE_COUNT && well; t++) {
        if (wanted((enum sotto_type)t, argc - 4, argv + 4)) {
            well = run_type(&b, (enum sotto_type)t);
        }
    }
    if (!well) {
        fprintf(stderr, "bench_quantize: %s\n", sotto_last_error_text());
    }
    sotto_quantize_free();
    free(b.x);
    free(b.ours);
    free(b.theirs);
    free(b.ones);
    sotto_gguf_free(b.model);
    return well ? 0 : 1;
}
