/* SPDX-License-Identifier: MIT */
/* One graph, at once: the work area is the caller's, and the plan is made for the one call. */
#include "cpu/exec.h"
#include "cpu/kernels.h"
#include "cpu/ops_table.h"
#include "cpu/threadpool.h"

static int threads_wanted(int n_threads, const struct sotto_threadpool * pool) {
    if (n_threads > 0)
        return n_threads < SOTTO_MAX_N_THREADS ? n_threads : SOTTO_MAX_N_THREADS;
    return pool != NULL ? sotto_threadpool_get_n_threads(pool) : SOTTO_DEFAULT_N_THREADS;
}

static enum sotto_status plan_once(struct sotto_i_cpu_plan * plan, const struct sotto_cgraph * graph, int n_threads,
                                   const char * function) {
    /* without a buffer type the graph is only looked at */
    return sotto_i_cpu_plan_init(plan, (struct sotto_cgraph *)(uintptr_t)graph, n_threads, NULL, NULL, function);
}

struct sotto_cplan sotto_graph_plan(const struct sotto_cgraph * graph, int n_threads,
                                    struct sotto_threadpool * threadpool) {
    struct sotto_cplan cplan = { .threadpool = threadpool };
    if (graph == NULL) {
        sotto_fail(SOTTO_E_NULLARG, "sotto_graph_plan: graph is NULL");
        return cplan;
    }
    /* again while fewer threads are of use than were planned for: computing will plan for that number */
    enum sotto_status s = SOTTO_OK;
    for (int want = threads_wanted(n_threads, threadpool); s == SOTTO_OK && cplan.n_threads != want;) {
        struct sotto_i_cpu_plan plan;
        s = plan_once(&plan, graph, want, "sotto_graph_plan");
        cplan.work_size = s == SOTTO_OK ? plan.base.work_size : 0;
        cplan.n_threads = s == SOTTO_OK ? want : 0;
        want = plan.n_threads;
        sotto_i_cpu_plan_clear(&plan);
    }
    return cplan;
}

static enum sotto_status run_plan(const struct sotto_i_cpu_plan * plan, const struct sotto_cplan * cplan) {
    struct sotto_i_cpu_run how = { .function = "sotto_graph_compute",
                                   .pool = cplan->threadpool,
                                   .n_threads = plan->n_threads,
                                   .abort_callback = cplan->abort_callback,
                                   .abort_user_data = cplan->abort_callback_data };
    how.kernels = sotto_i_kernels_for(cplan->use_ref ? SOTTO_CPU_LEVEL_C : sotto_cpu_get_level());
    const bool shared = how.pool == NULL && how.n_threads > 1;
    if (shared) {
        how.pool = sotto_i_shared_pool_hold(how.n_threads);
        if (how.pool == NULL)
            return SOTTO_E_MEMORY;
    }
    const enum sotto_status s = sotto_i_cpu_exec(plan, &how);
    if (shared)
        sotto_i_shared_pool_drop();
    return s;
}

enum sotto_status sotto_graph_compute(struct sotto_cgraph * graph, struct sotto_cplan * cplan) {
    if (graph == NULL)
        return sotto_fail(SOTTO_E_NULLARG, "sotto_graph_compute: graph is NULL");
    if (cplan == NULL || cplan->n_threads <= 0)
        return sotto_fail(SOTTO_E_STATE, "sotto_graph_compute: no plan; make one with sotto_graph_plan");
    if (cplan->work_size > 0 && cplan->work_data == NULL)
        return sotto_fail(SOTTO_E_STATE, "sotto_graph_compute: work_data is NULL, the plan needs %zu bytes",
                          cplan->work_size);
    struct sotto_i_cpu_plan plan;
    enum sotto_status s =
        plan_once(&plan, graph, threads_wanted(cplan->n_threads, cplan->threadpool), "sotto_graph_compute");
    if (s == SOTTO_OK && plan.base.work_size > cplan->work_size)
        s = sotto_fail(SOTTO_E_STATE,
                       "sotto_graph_compute: the graph needs %zu bytes of work area, the plan was made "
                       "for %zu; make a new one",
                       plan.base.work_size, cplan->work_size);
    plan.work = cplan->work_data;
    if (s == SOTTO_OK)
        s = run_plan(&plan, cplan);
    sotto_i_cpu_plan_clear(&plan);
    return s;
}

enum sotto_status sotto_graph_compute_with_ctx(struct sotto_context * ctx, struct sotto_cgraph * graph, int n_threads) {
    if (ctx == NULL || graph == NULL)
        return sotto_fail(SOTTO_E_NULLARG, "sotto_graph_compute_with_ctx: %s is NULL", ctx == NULL ? "ctx" : "graph");
    struct sotto_cplan cplan = sotto_graph_plan(graph, n_threads, NULL);
    if (cplan.n_threads == 0)
        return sotto_last_error();
    if (cplan.work_size > 0) {
        cplan.work_data = sotto_new_buffer(ctx, cplan.work_size);
        if (cplan.work_data == NULL)
            return sotto_last_error();
    }
    return sotto_graph_compute(graph, &cplan);
}
