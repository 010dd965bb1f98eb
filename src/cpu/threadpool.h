/* SPDX-License-Identifier: MIT */
/* What the executor asks of a thread pool: run a function on chunks 0 ... n-1, each exactly once, in any order and on
 * any of its threads, and return when all are done. */
#ifndef SOTTO_CPU_THREADPOOL_H
#define SOTTO_CPU_THREADPOOL_H

#include "sotto/cpu.h"

/* `thread` is 0 for the caller, else the number of a worker, below n_threads. */
typedef void (*sotto_i_chunk_function)(void * user_data, int thread, int64_t chunk);

/* Claim the pool for a graph; false if another one has it. The claim is the calling thread's. */
bool sotto_i_pool_enter(struct sotto_threadpool * pool);
void sotto_i_pool_leave(struct sotto_threadpool * pool);

/* With the pool claimed. n_threads: at most so many take part, 1..the pool's number. n_chunks > 0. */
void sotto_i_pool_run(struct sotto_threadpool * pool, int n_threads, sotto_i_chunk_function function, void * user_data,
                      int64_t n_chunks);

/* The same on the calling thread alone, no pool needed. */
void sotto_i_alone_run(sotto_i_chunk_function function, void * user_data, int64_t n_chunks);

/* The pool of the process, with at least n_threads threads, from the default allocator. It lives while anyone holds
 * it; NULL and MEMORY if it cannot be had or cannot grow (then it stays as it was, unheld). */
struct sotto_threadpool * sotto_i_shared_pool_hold(int n_threads);
void sotto_i_shared_pool_drop(void);

#endif
