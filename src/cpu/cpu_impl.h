/* SPDX-License-Identifier: MIT */
/* Inside of the CPU backend: what an op's kernel looks like, and what the runtime hands to it.
 *
 * The runtime (exec.c) walks a plan's steps. For each it asks the op, at plan time, into how many chunks the node
 * is to be cut and how much scratch a thread needs; at run time threads draw chunk numbers from a counter and call
 * run() for each, then meet at a barrier. Chunks of a node are independent and may run in any order and on any
 * thread; how a node is cut must not change a bit of the result. Workers never allocate. */
#ifndef SOTTO_CPU_IMPL_H
#define SOTTO_CPU_IMPL_H

#include "sotto/cpu.h"

struct sotto_i_kernels; /* cpu/kernels.h */

/* What a thread has at hand while it computes chunks. */
struct sotto_i_cpu_task {
    int thread, n_threads;
    void * scratch; /* this thread's own, aligned to SOTTO_DATA_ALIGN, `scratch` bytes of the work below */
    const struct sotto_i_kernels * kernels; /* of the level in use */
    enum sotto_compute compute;
};

/* Filled at plan time. Shapes are final then; data pointers are not, and must not be looked at. */
struct sotto_i_cpu_work {
    int64_t n_chunks; /* >= 1; 1 = one thread does it all */
    size_t scratch;   /* bytes per thread */
};

struct sotto_i_cpu_op {
    /* exactly what run() can do; the builder's rules were checked already */
    bool (*supports)(const struct sotto_tensor * node);
    void (*prepare)(const struct sotto_tensor * node, int n_threads, struct sotto_i_cpu_work * work);
    /* compute chunk `chunk` of `n_chunks`; RANGE for a bad index in data (sotto_fail), else SOTTO_OK */
    enum sotto_status (*run)(const struct sotto_i_cpu_task * task, struct sotto_tensor * node, int64_t chunk,
                             int64_t n_chunks);
};

/* One per row of ops.def that is no view: a missing kernel is a link error. */
#define OP(id, NAME, symbol, min_src, max_src, shape, params, flags) \
    extern const struct sotto_i_cpu_op sotto_i_cpu_##NAME;
#include "core/ops.def"
#undef OP

/* Units [*first, *last) of chunk `chunk` when n units are cut into n_chunks almost equal runs. */
static inline void sotto_i_chunk_range(int64_t n, int64_t chunk, int64_t n_chunks, int64_t * first, int64_t * last) {
    const int64_t each = n / n_chunks, rest = n % n_chunks;
    *first = chunk * each + (chunk < rest ? chunk : rest);
    *last = *first + each + (chunk < rest ? 1 : 0);
}

/* prepare() of ops that work row by row: a few chunks per thread, none smaller than about 16 k elements. */
void sotto_i_cpu_prepare_rows(const struct sotto_tensor * node, int n_threads, struct sotto_i_cpu_work * work);

#endif
