/* SPDX-License-Identifier: MIT */
/* Thread pools.
 *
 * All that threads share about the chunks at hand is one 64-bit ticket:
 *
 *     63        42 41       32 31                0
 *    |   epoch    | threads   |   chunks left     |
 *
 * A thread takes a chunk by a compare-and-swap that lowers the last field, and only a thread that has taken one looks
 * at the job behind it. The coordinating thread returns once all chunks are done, not when all workers have come by:
 * a worker that is late finds no chunk left and so never touches a job, a plan or a graph that may be gone by then.
 * The epoch keeps a delayed compare-and-swap from taking a chunk of another job. Workers with a number not below
 * `threads` stand aside.
 *
 * Idle workers watch the ticket for `poll` microseconds and then sleep, each on its own condition; the coordinator
 * watches `outstanding` in the same way. Both sides write their own flag before they read the other's (sequentially
 * consistent), and sleep and wake under one lock, so no wake-up is lost. Nothing is allocated after a worker's start. */
#include "cpu/threadpool.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cpu/fpenv.h"
#include "cpu/test_hooks.h"

#define CACHE_LINE 64

struct worker {
    struct sotto_threadpool * pool;
    pthread_t thread;
    pthread_cond_t wake;
    int index;
    bool asleep; /* under the pool's lock */
};

/* What a chunk is a chunk of. Written while no chunk is outstanding. */
struct job {
    sotto_i_chunk_function function;
    void * user_data;
    int64_t n_chunks;
    int64_t stride, shift; /* order of the test hooks: chunk = (stride * i + shift) mod n_chunks; stride 0 = off */
};

struct sotto_threadpool {
    const struct sotto_allocator * allocator;
    uint32_t poll;
    atomic_int n_threads; /* workers 1 ... n_threads - 1 exist */
    atomic_bool busy, stop;
    pthread_mutex_t lock;
    pthread_cond_t done;
    struct job job;
    uint32_t epoch; /* of the claimant */
    _Alignas(CACHE_LINE) _Atomic uint64_t ticket;
    _Alignas(CACHE_LINE) _Atomic int64_t outstanding; /* chunks not finished */
    _Alignas(CACHE_LINE) atomic_int sleepers;
    atomic_bool waiting; /* the coordinator sleeps */
    struct worker * workers[SOTTO_MAX_N_THREADS];
};

/* ---- test hooks ---- */

static struct {
    atomic_bool on;
    _Atomic uint64_t seed;
    _Atomic uint64_t chunks[SOTTO_MAX_N_THREADS];
} hooks;

void sotto_i_test_hooks(bool on, uint64_t seed) {
    atomic_store(&hooks.on, on);
    atomic_store(&hooks.seed, seed);
    for (int i = 0; on && i < SOTTO_MAX_N_THREADS; i++)
        atomic_store(&hooks.chunks[i], 0);
}

uint64_t sotto_i_test_chunks(int thread) {
    return thread >= 0 && thread < SOTTO_MAX_N_THREADS ? atomic_load(&hooks.chunks[thread]) : 0;
}

static int64_t common_divisor(int64_t a, int64_t b) {
    while (b != 0) {
        const int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* An order of the chunks for each job: stride and number of chunks have no divisor in common. */
static void shuffle(struct job * job, uint32_t epoch) {
    uint64_t h = (atomic_load(&hooks.seed) + epoch) * 0x9E3779B97F4A7C15u;
    h ^= h >> 29;
    job->stride = 1 + (int64_t)((h >> 8) & 0x7FFF);
    while (common_divisor(job->stride, job->n_chunks) != 1)
        job->stride++;
    job->shift = (int64_t)(h >> 40);
}

static void start_job(struct job * job, sotto_i_chunk_function function, void * user_data, int64_t n_chunks,
                      uint32_t epoch) {
    *job = (struct job){ .function = function, .user_data = user_data, .n_chunks = n_chunks };
    if (atomic_load_explicit(&hooks.on, memory_order_relaxed))
        shuffle(job, epoch);
}

static void run_chunk(const struct job * job, int thread, int64_t i) {
    if (job->stride != 0) {
        i = (int64_t)(((uint64_t)job->stride * (uint64_t)i + (uint64_t)job->shift) % (uint64_t)job->n_chunks);
        atomic_fetch_add_explicit(&hooks.chunks[thread], 1, memory_order_relaxed);
    }
    job->function(job->user_data, thread, i);
}

void sotto_i_alone_run(sotto_i_chunk_function function, void * user_data, int64_t n_chunks) {
    struct job job;
    start_job(&job, function, user_data, n_chunks, 0);
    for (int64_t i = 0; i < n_chunks; i++)
        run_chunk(&job, 0, i);
}

/* ---- watching ---- */

static void relax(void) {
#if defined(__SSE2__)
    _mm_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

static uint64_t now_us(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000u + (uint64_t)t.tv_nsec / 1000u;
}

/* Watch until ready(pool, index) or `poll` microseconds are over. */
static bool watch(struct sotto_threadpool * pool, int index, bool (*ready)(struct sotto_threadpool *, int)) {
    if (ready(pool, index))
        return true;
    if (pool->poll == 0)
        return false;
    const uint64_t end = now_us() + pool->poll;
    do {
        for (int i = 0; i < 64; i++) {
            if (ready(pool, index))
                return true;
            relax();
        }
    } while (now_us() < end);
    return false;
}

/* ---- drawing chunks ---- */

static uint64_t make_ticket(uint32_t epoch, int n_threads, uint32_t left) {
    return (uint64_t)(epoch & 0x3FFFFF) << 42 | (uint64_t)n_threads << 32 | left;
}

/* n_threads is at most 512 and takes ten bits. */
static bool ticket_open(uint64_t ticket, int index) {
    return (uint32_t)ticket != 0 && index < (int)(ticket >> 32 & 0x3FF);
}

static bool draw(struct sotto_threadpool * pool, int index, uint32_t * left) {
    uint64_t ticket = atomic_load_explicit(&pool->ticket, memory_order_acquire);
    while (ticket_open(ticket, index)) {
        if (atomic_compare_exchange_weak_explicit(&pool->ticket, &ticket, ticket - 1, memory_order_acq_rel,
                                                  memory_order_acquire)) {
            *left = (uint32_t)ticket;
            return true;
        }
    }
    return false;
}

/* The chunk is finished; after the last one this thread may touch nothing but the pool. */
static void finish_chunk(struct sotto_threadpool * pool) {
    if (atomic_fetch_sub(&pool->outstanding, 1) == 1 && atomic_load(&pool->waiting)) {
        pthread_mutex_lock(&pool->lock);
        pthread_cond_signal(&pool->done);
        pthread_mutex_unlock(&pool->lock);
    }
}

static void draw_all(struct sotto_threadpool * pool, int index) {
    uint32_t left;
    while (draw(pool, index, &left)) {
        run_chunk(&pool->job, index, pool->job.n_chunks - (int64_t)left);
        finish_chunk(pool);
    }
}

/* ---- workers ---- */

static bool worker_ready(struct sotto_threadpool * pool, int index) {
    return ticket_open(atomic_load(&pool->ticket), index) || atomic_load_explicit(&pool->stop, memory_order_relaxed);
}

static void worker_sleep(struct sotto_threadpool * pool, struct worker * worker) {
    pthread_mutex_lock(&pool->lock);
    worker->asleep = true;
    atomic_fetch_add(&pool->sleepers, 1);
    if (worker_ready(pool, worker->index)) {
        worker->asleep = false;
        atomic_fetch_sub(&pool->sleepers, 1);
    }
    while (worker->asleep)
        pthread_cond_wait(&worker->wake, &pool->lock);
    pthread_mutex_unlock(&pool->lock);
}

/* Wake up to n sleeping workers with a number below n_threads; the lock is held. */
static void wake_workers(struct sotto_threadpool * pool, int n_threads, int64_t n) {
    for (int i = 1; i < n_threads && n > 0; i++) {
        struct worker * worker = pool->workers[i];
        if (!worker->asleep)
            continue;
        worker->asleep = false;
        atomic_fetch_sub(&pool->sleepers, 1);
        pthread_cond_signal(&worker->wake);
        n--;
    }
}

static void * worker_main(void * argument) {
    struct worker * worker = argument;
    struct sotto_threadpool * pool = worker->pool;
    (void)sotto_i_fpenv_enter(); /* the thread is ours: nothing to put back */
    while (!atomic_load_explicit(&pool->stop, memory_order_relaxed)) {
        if (watch(pool, worker->index, worker_ready))
            draw_all(pool, worker->index);
        else
            worker_sleep(pool, worker);
    }
    return NULL;
}

/* ---- the coordinating thread ---- */

static bool all_done(struct sotto_threadpool * pool, int index) {
    (void)index;
    return atomic_load(&pool->outstanding) == 0;
}

static void wait_done(struct sotto_threadpool * pool) {
    if (watch(pool, 0, all_done))
        return;
    pthread_mutex_lock(&pool->lock);
    atomic_store(&pool->waiting, true);
    while (!all_done(pool, 0))
        pthread_cond_wait(&pool->done, &pool->lock);
    atomic_store(&pool->waiting, false);
    pthread_mutex_unlock(&pool->lock);
}

/* With the test hooks on: wait until a worker has drawn one of n open chunks. */
static void let_worker_draw(struct sotto_threadpool * pool, uint32_t n) {
    while ((uint32_t)atomic_load(&pool->ticket) == n) {
        const struct timespec moment = { .tv_nsec = 1000 };
        nanosleep(&moment, NULL);
    }
}

/* The caller's own chunk, the first in the order, was never open; some worker runs one of the others. */
static void run_own_chunk(struct sotto_threadpool * pool) {
    let_worker_draw(pool, (uint32_t)pool->job.n_chunks - 1);
    run_chunk(&pool->job, 0, 0);
    finish_chunk(pool);
}

bool sotto_i_pool_enter(struct sotto_threadpool * pool) { return !atomic_exchange(&pool->busy, true); }

void sotto_i_pool_leave(struct sotto_threadpool * pool) { atomic_store(&pool->busy, false); }

void sotto_i_pool_run(struct sotto_threadpool * pool, int n_threads, sotto_i_chunk_function function, void * user_data,
                      int64_t n_chunks) {
    if (n_threads <= 1 || n_chunks == 1 || n_chunks > UINT32_MAX) {
        sotto_i_alone_run(function, user_data, n_chunks);
        return;
    }
    start_job(&pool->job, function, user_data, n_chunks, ++pool->epoch);
    const bool hooked = pool->job.stride != 0;
    atomic_store_explicit(&pool->outstanding, n_chunks, memory_order_relaxed);
    atomic_store(&pool->ticket, make_ticket(pool->epoch, n_threads, (uint32_t)n_chunks - (hooked ? 1 : 0)));
    if (atomic_load(&pool->sleepers) > 0) {
        pthread_mutex_lock(&pool->lock);
        wake_workers(pool, n_threads, n_chunks - 1);
        pthread_mutex_unlock(&pool->lock);
    }
    if (hooked)
        run_own_chunk(pool);
    draw_all(pool, 0);
    wait_done(pool);
}

/* ---- making and freeing ---- */

static void worker_free(struct sotto_threadpool * pool, struct worker * worker) {
    pthread_cond_destroy(&worker->wake);
    sotto_mfree(pool->allocator, worker, 1, sizeof(*worker));
}

/* Start a thread that takes no signals: those are for the program's own threads. */
static int start_thread(struct worker * worker) {
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    const int error = pthread_create(&worker->thread, NULL, worker_main, worker);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return error;
}

static enum sotto_status add_worker(struct sotto_threadpool * pool) {
    const int index = atomic_load(&pool->n_threads);
    struct worker * worker = sotto_calloc(pool->allocator, 1, sizeof(*worker));
    if (worker == NULL)
        return SOTTO_E_MEMORY;
    worker->pool = pool;
    worker->index = index;
    if (pthread_cond_init(&worker->wake, NULL) != 0) {
        sotto_mfree(pool->allocator, worker, 1, sizeof(*worker));
        return sotto_fail(SOTTO_E_MEMORY, "thread pool: a condition could not be made");
    }
    const int error = start_thread(worker);
    if (error != 0) {
        worker_free(pool, worker);
        return sotto_fail(SOTTO_E_MEMORY,
                          "thread pool: thread %d could not be started (error %d); ask for fewer threads", index,
                          error);
    }
    pool->workers[index] = worker;
    atomic_store(&pool->n_threads, index + 1);
    return SOTTO_OK;
}

/* Add workers until there are n threads. Graphs may be running; they go on with those they have. Workers that could be
 * started stay when a later one cannot. */
static enum sotto_status grow(struct sotto_threadpool * pool, int n_threads) {
    enum sotto_status s = SOTTO_OK;
    while (s == SOTTO_OK && atomic_load(&pool->n_threads) < n_threads)
        s = add_worker(pool);
    return s;
}

struct sotto_threadpool_params sotto_threadpool_params_default(int n_threads) {
    return (struct sotto_threadpool_params){ .size = sizeof(struct sotto_threadpool_params),
                                             .n_threads = n_threads,
                                             .poll = 50 };
}

static const struct sotto_allocator * or_default(const struct sotto_allocator * allocator) {
    return allocator != NULL ? allocator : sotto_default_allocator();
}

static struct sotto_threadpool * pool_record(const struct sotto_threadpool_params * params) {
    const struct sotto_allocator * allocator = or_default(params->allocator);
    struct sotto_threadpool * pool = allocator->alloc(allocator->user_data, sizeof(*pool), CACHE_LINE);
    if (pool == NULL) {
        sotto_fail(SOTTO_E_MEMORY, "sotto_threadpool_new: %zu bytes could not be had", sizeof(*pool));
        return NULL;
    }
    memset(pool, 0, sizeof(*pool));
    pool->allocator = allocator;
    pool->poll = params->poll;
    atomic_init(&pool->n_threads, 1);
    const bool has_lock = pthread_mutex_init(&pool->lock, NULL) == 0;
    if (has_lock && pthread_cond_init(&pool->done, NULL) == 0)
        return pool;
    if (has_lock)
        pthread_mutex_destroy(&pool->lock);
    allocator->free(allocator->user_data, pool, sizeof(*pool), CACHE_LINE);
    sotto_fail(SOTTO_E_MEMORY, "sotto_threadpool_new: the system has no more locks");
    return NULL;
}

struct sotto_threadpool * sotto_threadpool_new(const struct sotto_threadpool_params * params) {
    if (params == NULL) {
        sotto_fail(SOTTO_E_NULLARG, "sotto_threadpool_new: params is NULL");
        return NULL;
    }
    if (params->size != sizeof(*params)) {
        sotto_fail(SOTTO_E_PARAM,
                   "sotto_threadpool_new: params.size is %u, expected %zu; start from "
                   "sotto_threadpool_params_default",
                   (unsigned)params->size, sizeof(*params));
        return NULL;
    }
    if (params->n_threads < 1 || params->n_threads > SOTTO_MAX_N_THREADS) {
        sotto_fail(SOTTO_E_PARAM, "sotto_threadpool_new: %d threads; 1 to %d are possible", params->n_threads,
                   SOTTO_MAX_N_THREADS);
        return NULL;
    }
    struct sotto_threadpool * pool = pool_record(params);
    if (pool != NULL && grow(pool, params->n_threads) != SOTTO_OK) {
        sotto_threadpool_free(pool);
        return NULL;
    }
    return pool;
}

void sotto_threadpool_free(struct sotto_threadpool * pool) {
    if (pool == NULL)
        return;
    const int n_threads = atomic_load(&pool->n_threads);
    atomic_store(&pool->stop, true);
    pthread_mutex_lock(&pool->lock);
    wake_workers(pool, n_threads, n_threads);
    pthread_mutex_unlock(&pool->lock);
    for (int i = 1; i < n_threads; i++) {
        pthread_join(pool->workers[i]->thread, NULL);
        worker_free(pool, pool->workers[i]);
    }
    pthread_cond_destroy(&pool->done);
    pthread_mutex_destroy(&pool->lock);
    pool->allocator->free(pool->allocator->user_data, pool, sizeof(*pool), CACHE_LINE);
}

int sotto_threadpool_get_n_threads(const struct sotto_threadpool * pool) {
    if (pool == NULL) {
        sotto_fail(SOTTO_E_NULLARG, "sotto_threadpool_get_n_threads: pool is NULL");
        return 0;
    }
    return atomic_load(&((struct sotto_threadpool *)(uintptr_t)pool)->n_threads);
}

/* ---- the shared pool ---- */

static struct {
    pthread_mutex_t lock;
    struct sotto_threadpool * pool;
    int holders;
} shared = { .lock = PTHREAD_MUTEX_INITIALIZER };

struct sotto_threadpool * sotto_i_shared_pool_hold(int n_threads) {
    pthread_mutex_lock(&shared.lock);
    if (shared.pool == NULL) {
        const struct sotto_threadpool_params params = sotto_threadpool_params_default(n_threads);
        shared.pool = sotto_threadpool_new(&params);
    }
    struct sotto_threadpool * pool = shared.pool;
    if (pool != NULL && grow(pool, n_threads) != SOTTO_OK)
        pool = NULL;
    if (pool != NULL)
        shared.holders++;
    pthread_mutex_unlock(&shared.lock);
    return pool;
}

void sotto_i_shared_pool_drop(void) {
    pthread_mutex_lock(&shared.lock);
    struct sotto_threadpool * last = --shared.holders == 0 ? shared.pool : NULL;
    if (last != NULL)
        shared.pool = NULL;
    pthread_mutex_unlock(&shared.lock);
    sotto_threadpool_free(last);
}
