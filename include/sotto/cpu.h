/* SPDX-License-Identifier: MIT */
/* The CPU backend: thread pools, levels of instruction sets, packed weights.
 *
 * Results are the same bits for any number of threads, and in f32 on every CPU that has fused multiply-add,
 * whatever level runs (docs/numerics.md). */
#ifndef SOTTO_CPU_H
#define SOTTO_CPU_H

#include "sotto/plan.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SOTTO_MAX_N_THREADS     512
#define SOTTO_DEFAULT_N_THREADS 4

/* ---- levels ---- */

/* Bundles of CPU features; the best one that this CPU and operating system offer is used, or a lower one asked
 * for with sotto_cpu_set_level or the environment variable SOTTO_CPU_LEVEL (a name below), read once at the
 * first use of the backend. */
enum sotto_cpu_level {
    SOTTO_CPU_LEVEL_C = 0,          /* "c": plain C, the definition of every kernel; slow */
    SOTTO_CPU_LEVEL_AVX2 = 1,       /* "avx2": with fma and f16c */
    SOTTO_CPU_LEVEL_AVX512 = 2,     /* "avx512": f, bw, vl, dq */
    SOTTO_CPU_LEVEL_AVX512VNNI = 3, /* "avx512vnni": and its dot products of bytes */
    SOTTO_CPU_LEVEL_COUNT
};
SOTTO_API enum sotto_cpu_level sotto_cpu_best_level(void); /* what the machine offers */
SOTTO_API enum sotto_cpu_level sotto_cpu_get_level(void);  /* what is used */
/* Choose a level for the process; PARAM outside the list, UNSUPPORTED above sotto_cpu_best_level. Not while
 * anything computes. Packed weights stay valid: their layout does not depend on the level. */
SOTTO_API enum sotto_status sotto_cpu_set_level(enum sotto_cpu_level level);
SOTTO_API const char * sotto_cpu_level_name(enum sotto_cpu_level level);

/* ---- thread pools ---- */

struct sotto_threadpool;

struct sotto_threadpool_params {
    uint32_t size; /* sizeof(struct sotto_threadpool_params) */
    int n_threads; /* 1..SOTTO_MAX_N_THREADS, the computing thread included */
    uint32_t poll; /* microseconds an idle worker spins before it sleeps; default 50, 0 sleeps at once */
    const struct sotto_allocator * allocator; /* NULL = default */
};
SOTTO_API struct sotto_threadpool_params sotto_threadpool_params_default(int n_threads);
/* Start n_threads - 1 workers; the thread that computes is worker 0. NULL: PARAM, MEMORY (a thread could not be
 * made; nothing stays running). free: not while computing; NULL is allowed. */
SOTTO_API struct sotto_threadpool * sotto_threadpool_new(const struct sotto_threadpool_params * params);
SOTTO_API void sotto_threadpool_free(struct sotto_threadpool * pool);
SOTTO_API int sotto_threadpool_get_n_threads(const struct sotto_threadpool * pool);

/* ---- backend ---- */

/* A CPU backend that computes with SOTTO_DEFAULT_N_THREADS threads of the process's shared pool; a graph that
 * finds its pool busy runs on the caller's thread alone, with the same result. NULL and MEMORY on failure. */
SOTTO_API sotto_backend_t sotto_backend_cpu_init(void);
SOTTO_API sotto_backend_t sotto_backend_cpu_init_ext(const struct sotto_allocator * allocator);
SOTTO_API bool sotto_backend_is_cpu(sotto_backend_t backend);
/* PARAM outside 1..SOTTO_MAX_N_THREADS; MEMORY when the shared pool cannot grow (the old count stays). */
SOTTO_API enum sotto_status sotto_backend_cpu_set_n_threads(sotto_backend_t backend, int n_threads);
/* Use a pool of the caller's, which must outlive the backend's use of it; NULL goes back to the shared one. */
SOTTO_API enum sotto_status sotto_backend_cpu_set_threadpool(sotto_backend_t backend, struct sotto_threadpool * pool);

/* In what numbers products are computed whose node asks for nothing (sotto_mul_mat_set_prec); docs/numerics.md. */
enum sotto_compute {
    SOTTO_COMPUTE_DEFAULT = 0, /* quantised weights meet activations rounded to 8 bits, all else f32 */
    SOTTO_COMPUTE_F32 = 1      /* everything in f32 */
};
SOTTO_API enum sotto_status sotto_backend_cpu_set_compute(sotto_backend_t backend,
                                                          enum sotto_compute compute); /* PARAM */

/* Use the plainest implementation of every op (level c), for comparisons. */
SOTTO_API void sotto_backend_cpu_set_use_ref(sotto_backend_t backend, bool use_ref);

SOTTO_API sotto_backend_buffer_type_t sotto_backend_cpu_buffer_type(void);
/* A buffer over the caller's memory, aligned to SOTTO_MEM_ALIGN (PARAM); not freed with the buffer. */
SOTTO_API sotto_backend_buffer_t sotto_backend_cpu_buffer_from_ptr(void * ptr, size_t size);

/* Packed weights: rows laid out in panels for the product kernels. Not host memory: set and get convert, whole rows at a
 * time, and lose nothing. f32, f16, bf16 and all quantised types but the work types. Serves MUL_MAT and MUL_MAT_ID as
 * first operand, GET_ROWS, CPY, CONT and DUP out of it, and views by whole panels of SOTTO_CPU_PANEL rows. */
#define SOTTO_CPU_PANEL 16
SOTTO_API sotto_backend_buffer_type_t sotto_backend_cpu_packed_buffer_type(void);

/* ---- one graph, at once ---- */

struct sotto_cplan {
    size_t work_size;    /* bytes that work_data must have, 0 possible */
    uint8_t * work_data; /* the caller's, set before computing */
    int n_threads;
    struct sotto_threadpool * threadpool; /* NULL = the shared one */
    sotto_abort_callback abort_callback;
    void * abort_callback_data;
    bool use_ref;
};
/* Work area and threads for a graph whose tensors have data; n_threads <= 0: the pool's number, else 4. */
SOTTO_API struct sotto_cplan sotto_graph_plan(const struct sotto_cgraph * graph, int n_threads,
                                              struct sotto_threadpool * threadpool);
/* STATE if work_data is missing, else as sotto_backend_graph_compute. */
SOTTO_API enum sotto_status sotto_graph_compute(struct sotto_cgraph * graph, struct sotto_cplan * cplan);
/* The same with the work area taken from the arena of `ctx`; MEMORY if it does not fit. */
SOTTO_API enum sotto_status sotto_graph_compute_with_ctx(struct sotto_context * ctx, struct sotto_cgraph * graph,
                                                         int n_threads);

#ifdef __cplusplus
}
#endif
#endif
