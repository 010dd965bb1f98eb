/* SPDX-License-Identifier: MIT */
/* The CPU's plan of a graph, and running it. */
#ifndef SOTTO_CPU_EXEC_H
#define SOTTO_CPU_EXEC_H

#include "cpu/cpu_impl.h"
#include "plan/plan_impl.h"

/* The op of a step and how its node is cut. */
struct sotto_i_cpu_step {
    const struct sotto_i_cpu_op * op;
    struct sotto_i_cpu_work work;
};

struct sotto_i_cpu_plan {
    struct sotto_graph_plan base;    /* first: a sotto_graph_plan of this backend is one of these */
    struct sotto_i_cpu_step * steps; /* by step of the base */
    int n_threads;                   /* at most so many are of use */
    size_t scratch;                  /* bytes per thread, a multiple of SOTTO_DATA_ALIGN */
    void * work;                     /* base.work_size bytes; the plan's own, or the caller's */
    bool owns_work;
};

/* Plan for n_threads threads. `buft`: where to place tensors without data, NULL to leave them. `function` begins
 * messages. The context's error, MEMORY, UNSUPPORTED naming node and operand. The plan has no work area yet. */
enum sotto_status sotto_i_cpu_plan_init(struct sotto_i_cpu_plan * plan, struct sotto_cgraph * graph, int n_threads,
                                        sotto_backend_buffer_type_t buft, const struct sotto_allocator * allocator,
                                        const char * function);
enum sotto_status sotto_i_cpu_plan_own_work(struct sotto_i_cpu_plan * plan);
void sotto_i_cpu_plan_clear(struct sotto_i_cpu_plan * plan);

/* Bytes for `scratch` bytes on each of n_threads, with room to align: 0 for 0, SIZE_MAX on overflow. */
size_t sotto_i_cpu_work_size(size_t scratch, int n_threads);

/* How to run. */
struct sotto_i_cpu_run {
    const char * function;          /* begins messages */
    struct sotto_threadpool * pool; /* NULL: alone */
    int n_threads;
    const struct sotto_i_kernels * kernels;
    enum sotto_compute compute;
    sotto_backend_eval_callback eval_callback; /* may be NULL */
    void * eval_user_data;
    sotto_abort_callback abort_callback; /* may be NULL */
    void * abort_user_data;
};

/* Check the plan against its graph and compute: STATE, ABORTED, or the first error of an op. */
enum sotto_status sotto_i_cpu_exec(const struct sotto_i_cpu_plan * plan, const struct sotto_i_cpu_run * how);

#endif
