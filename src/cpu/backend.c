/* SPDX-License-Identifier: MIT */
/* The CPU as a backend. */
#include "cpu/exec.h"
#include "core/backend_impl.h"
#include "cpu/kernels.h"
#include "cpu/ops_table.h"
#include "cpu/threadpool.h"

struct cpu_backend {
    struct sotto_backend base; /* first */
    int n_threads;
    struct sotto_threadpool * pool;   /* the caller's; NULL: the shared one */
    struct sotto_threadpool * shared; /* held for as long as the backend lives */
    bool use_ref;
    enum sotto_compute compute;
    struct sotto_i_cpu_plan cached; /* of the graph that graph_compute saw last; no graph: none */
    int cached_threads;
};

static struct cpu_backend * of(sotto_backend_t backend) { return (struct cpu_backend *)backend; }

/* ---- plans ---- */

static void drop_cached(struct cpu_backend * cpu) {
    sotto_i_cpu_plan_clear(&cpu->cached);
    cpu->cached = (struct sotto_i_cpu_plan){ .n_threads = 1 };
}

static enum sotto_status run_plan(struct cpu_backend * cpu, const struct sotto_i_cpu_plan * plan,
                                  const char * function) {
    const enum sotto_cpu_level level = cpu->use_ref ? SOTTO_CPU_LEVEL_C : sotto_cpu_get_level();
    const struct sotto_i_cpu_run how = { .function = function,
                                         .pool = cpu->pool != NULL ? cpu->pool : cpu->shared,
                                         .n_threads = cpu->n_threads,
                                         .kernels = sotto_i_kernels_for(level),
                                         .compute = cpu->compute,
                                         .eval_callback = cpu->base.eval_callback,
                                         .eval_user_data = cpu->base.eval_user_data,
                                         .abort_callback = cpu->base.abort_callback,
                                         .abort_user_data = cpu->base.abort_user_data };
    return sotto_i_cpu_exec(plan, &how);
}

static sotto_backend_graph_plan_t plan_create(sotto_backend_t backend, struct sotto_cgraph * graph) {
    struct cpu_backend * cpu = of(backend);
    const struct sotto_allocator * allocator = backend->allocator;
    struct sotto_i_cpu_plan * plan = sotto_malloc(allocator, 1, sizeof(*plan));
    if (plan == NULL)
        return NULL;
    enum sotto_status s = sotto_i_cpu_plan_init(plan, graph, cpu->n_threads, sotto_backend_cpu_buffer_type(), allocator,
                                                "sotto_backend_graph_plan_create");
    if (s == SOTTO_OK)
        s = sotto_i_cpu_plan_own_work(plan);
    if (s == SOTTO_OK)
        return &plan->base;
    sotto_i_cpu_plan_clear(plan);
    sotto_mfree(allocator, plan, 1, sizeof(*plan));
    return NULL;
}

static enum sotto_status plan_compute(sotto_backend_t backend, sotto_backend_graph_plan_t plan) {
    return run_plan(of(backend), (const struct sotto_i_cpu_plan *)plan, "sotto_backend_graph_plan_compute");
}

static void plan_free(sotto_backend_t backend, sotto_backend_graph_plan_t plan) {
    if (plan == NULL)
        return;
    sotto_i_cpu_plan_clear((struct sotto_i_cpu_plan *)plan);
    sotto_mfree(backend->allocator, plan, 1, sizeof(struct sotto_i_cpu_plan));
}

/* Without a plan: the one of the last call serves if it was the same graph, unchanged. It only has to be told apart
 * from others, so nothing of an earlier graph is looked at, which may be gone. */
static enum sotto_status graph_compute(sotto_backend_t backend, struct sotto_cgraph * graph) {
    struct cpu_backend * cpu = of(backend);
    const char * function = "sotto_backend_graph_compute";
    if (cpu->cached_threads != cpu->n_threads || !sotto_i_plan_fits(&cpu->cached.base, graph)) {
        drop_cached(cpu);
        cpu->cached_threads = cpu->n_threads;
        enum sotto_status s =
            sotto_i_cpu_plan_init(&cpu->cached, graph, cpu->n_threads, NULL, backend->allocator, function);
        if (s == SOTTO_OK)
            s = sotto_i_cpu_plan_own_work(&cpu->cached);
        if (s != SOTTO_OK) {
            drop_cached(cpu);
            return s;
        }
    }
    return run_plan(cpu, &cpu->cached, function);
}

/* ---- what it can do ---- */

static bool supports_buft(sotto_backend_t backend, sotto_backend_buffer_type_t buft) {
    (void)backend;
    return buft == sotto_backend_cpu_packed_buffer_type() || sotto_backend_buft_is_host(buft);
}

static bool supports_op(sotto_backend_t backend, const struct sotto_tensor * op) {
    (void)backend;
    return sotto_i_cpu_can(op);
}

static const char * get_name(sotto_backend_t backend) {
    (void)backend;
    return "CPU";
}

static sotto_backend_buffer_type_t get_default_buffer_type(sotto_backend_t backend) {
    (void)backend;
    return sotto_backend_cpu_buffer_type();
}

/* ---- making and settings ---- */

static void free_backend(sotto_backend_t backend) {
    struct cpu_backend * cpu = of(backend);
    drop_cached(cpu);
    sotto_i_shared_pool_drop();
    sotto_mfree(backend->allocator, cpu, 1, sizeof(*cpu));
}

static const struct sotto_i_backend_iface iface = {
    .get_name = get_name,
    .free_backend = free_backend,
    .get_default_buffer_type = get_default_buffer_type,
    .supports_op = supports_op,
    .supports_buft = supports_buft,
    .graph_compute = graph_compute,
    .plan_create = plan_create,
    .plan_compute = plan_compute,
    .plan_free = plan_free,
};

sotto_backend_t sotto_backend_cpu_init(void) { return sotto_backend_cpu_init_ext(NULL); }

sotto_backend_t sotto_backend_cpu_init_ext(const struct sotto_allocator * allocator) {
    (void)sotto_cpu_get_level(); /* reads the environment now rather than at the first graph */
    struct cpu_backend * cpu = sotto_calloc(allocator, 1, sizeof(*cpu));
    if (cpu == NULL)
        return NULL;
    cpu->base.iface = iface;
    cpu->base.allocator = allocator;
    cpu->n_threads = SOTTO_DEFAULT_N_THREADS;
    cpu->shared = sotto_i_shared_pool_hold(SOTTO_DEFAULT_N_THREADS);
    if (cpu->shared == NULL) {
        sotto_mfree(allocator, cpu, 1, sizeof(*cpu));
        return NULL;
    }
    return &cpu->base;
}

bool sotto_backend_is_cpu(sotto_backend_t backend) {
    return backend != NULL && backend->iface.free_backend == free_backend;
}

static enum sotto_status check_cpu(sotto_backend_t backend, const char * function) {
    if (backend == NULL)
        return sotto_fail(SOTTO_E_NULLARG, "%s: backend is NULL", function);
    if (!sotto_backend_is_cpu(backend))
        return sotto_fail(SOTTO_E_PARAM, "%s: %s is not the CPU backend", function, sotto_backend_name(backend));
    return SOTTO_OK;
}

enum sotto_status sotto_backend_cpu_set_n_threads(sotto_backend_t backend, int n_threads) {
    const enum sotto_status s = check_cpu(backend, "sotto_backend_cpu_set_n_threads");
    if (s != SOTTO_OK)
        return s;
    if (n_threads < 1 || n_threads > SOTTO_MAX_N_THREADS)
        return sotto_fail(SOTTO_E_PARAM, "sotto_backend_cpu_set_n_threads: %d threads; 1 to %d are possible", n_threads,
                          SOTTO_MAX_N_THREADS);
    struct cpu_backend * cpu = of(backend);
    if (sotto_i_shared_pool_hold(n_threads) == NULL)
        return SOTTO_E_MEMORY;
    sotto_i_shared_pool_drop(); /* this backend holds it already */
    cpu->n_threads = n_threads;
    return SOTTO_OK;
}

enum sotto_status sotto_backend_cpu_set_threadpool(sotto_backend_t backend, struct sotto_threadpool * pool) {
    const enum sotto_status s = check_cpu(backend, "sotto_backend_cpu_set_threadpool");
    if (s == SOTTO_OK)
        of(backend)->pool = pool;
    return s;
}

enum sotto_status sotto_backend_cpu_set_compute(sotto_backend_t backend, enum sotto_compute compute) {
    const enum sotto_status s = check_cpu(backend, "sotto_backend_cpu_set_compute");
    if (s != SOTTO_OK)
        return s;
    if (compute != SOTTO_COMPUTE_DEFAULT && compute != SOTTO_COMPUTE_F32)
        return sotto_fail(SOTTO_E_PARAM, "sotto_backend_cpu_set_compute: %d is not in the list", (int)compute);
    of(backend)->compute = compute;
    return SOTTO_OK;
}

void sotto_backend_cpu_set_use_ref(sotto_backend_t backend, bool use_ref) {
    if (check_cpu(backend, "sotto_backend_cpu_set_use_ref") == SOTTO_OK)
        of(backend)->use_ref = use_ref;
}
