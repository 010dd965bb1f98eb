/* SPDX-License-Identifier: MIT */
/* Running a plan: the calling thread walks the steps, and shares the chunks of a step with the pool if there are
 * several. Callbacks are asked on the calling thread, between steps, when no other thread works on the graph.
 *
 * Every chunk of a failing node still runs, and the error of the lowest chunk is the one reported: so the message does
 * not depend on which thread was faster. */
#include "cpu/exec.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "core/status_impl.h"
#include "cpu/fpenv.h"
#include "cpu/threadpool.h"

/* One node being computed. */
struct node_run {
    const struct sotto_i_cpu_plan * plan;
    const struct sotto_i_cpu_step * step;
    struct sotto_tensor * node;
    const struct sotto_i_kernels * kernels;
    enum sotto_compute compute;
    int n_threads;
    char * scratch;
    /* the failure of the lowest chunk, under error_lock; failed_chunk < 0: none */
    int64_t failed_chunk;
    int failed_thread;
    enum sotto_status status;
    char text[1024];
};

/* Errors are rare: one lock for all graphs. */
static pthread_mutex_t error_lock = PTHREAD_MUTEX_INITIALIZER;

/* A thread's last error is its own: keep the text for the thread that asked for the graph. */
static void record_error(struct node_run * run, enum sotto_status status, int thread, int64_t chunk) {
    const char * text = sotto_last_error_text();
    pthread_mutex_lock(&error_lock);
    if (run->failed_chunk < 0 || chunk < run->failed_chunk) {
        run->failed_chunk = chunk;
        run->failed_thread = thread;
        run->status = status;
        const size_t n = strlen(text) < sizeof(run->text) ? strlen(text) : sizeof(run->text) - 1;
        memcpy(run->text, text, n);
        run->text[n] = 0;
    }
    pthread_mutex_unlock(&error_lock);
}

static void run_chunk(void * user_data, int thread, int64_t chunk) {
    struct node_run * run = user_data;
    const struct sotto_i_cpu_task task = { .thread = thread,
                                           .n_threads = run->n_threads,
                                           .scratch = run->scratch + (size_t)thread * run->plan->scratch,
                                           .kernels = run->kernels,
                                           .compute = run->compute };
    const enum sotto_status s = run->step->op->run(&task, run->node, chunk, run->step->work.n_chunks);
    if (s != SOTTO_OK)
        record_error(run, s, thread, chunk);
}

/* With threads that take part; pool NULL: the caller alone. */
static enum sotto_status run_node(struct node_run * run, struct sotto_threadpool * pool) {
    run->failed_chunk = -1;
    if (pool != NULL)
        sotto_i_pool_run(pool, run->n_threads, run_chunk, run, run->step->work.n_chunks);
    else
        sotto_i_alone_run(run_chunk, run, run->step->work.n_chunks);
    if (run->failed_chunk < 0)
        return SOTTO_OK;
    sotto_i_take_error(run->status, run->text);
    return run->status;
}

static enum sotto_status stopped(const struct sotto_i_cpu_run * how, const struct sotto_tensor * node) {
    return sotto_fail(SOTTO_E_ABORTED, "%s: a callback stopped the graph after node '%s'", how->function, node->name);
}

static bool wants(const struct sotto_i_cpu_run * how, struct sotto_tensor * node) {
    return how->eval_callback != NULL && how->eval_callback(node, true, how->eval_user_data);
}

static enum sotto_status run_steps(struct node_run * run, const struct sotto_i_cpu_run * how,
                                   struct sotto_threadpool * pool) {
    const struct sotto_i_cpu_plan * plan = run->plan;
    for (int i = 0; i < plan->base.n_steps; i++) {
        run->step = &plan->steps[i];
        run->node = plan->base.steps[i].node;
        const bool wanted = wants(how, run->node);
        const enum sotto_status s = run_node(run, pool);
        if (s != SOTTO_OK)
            return s;
        if (wanted && !how->eval_callback(run->node, false, how->eval_user_data))
            return stopped(how, run->node);
        if (how->abort_callback != NULL && how->abort_callback(how->abort_user_data))
            return stopped(how, run->node);
    }
    return SOTTO_OK;
}

static char * align_up(void * pointer) {
    const uintptr_t rest = (uintptr_t)pointer % SOTTO_DATA_ALIGN;
    return (char *)pointer + (rest != 0 ? SOTTO_DATA_ALIGN - rest : 0);
}

static int smaller(int a, int b) { return a < b ? a : b; }

enum sotto_status sotto_i_cpu_exec(const struct sotto_i_cpu_plan * plan, const struct sotto_i_cpu_run * how) {
    enum sotto_status s = sotto_i_plan_check(&plan->base, how->function);
    if (s != SOTTO_OK)
        return s;
    struct node_run run = { .plan = plan, .kernels = how->kernels, .compute = how->compute, .n_threads = 1 };
    run.scratch = plan->work != NULL ? align_up(plan->work) : NULL;
    struct sotto_threadpool * pool = NULL;
    int n_threads = smaller(plan->n_threads, how->n_threads);
    if (how->pool != NULL && n_threads > 1 && sotto_i_pool_enter(how->pool)) {
        pool = how->pool;
        run.n_threads = smaller(n_threads, sotto_threadpool_get_n_threads(pool));
    }
    const sotto_i_fpenv fpenv = sotto_i_fpenv_enter();
    s = run_steps(&run, how, pool);
    sotto_i_fpenv_leave(fpenv);
    if (pool != NULL)
        sotto_i_pool_leave(pool);
    return s;
}
