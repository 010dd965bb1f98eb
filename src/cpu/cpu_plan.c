/* SPDX-License-Identifier: MIT */
/* The CPU's part of a plan: an op for each step, its chunks, and the work area for the most demanding step. */
#include "cpu/exec.h"
#include "cpu/ops_table.h"

static enum sotto_status check_steps(const struct sotto_i_cpu_plan * plan, const char * function) {
    enum sotto_status s = SOTTO_OK;
    for (int i = 0; i < plan->base.n_steps && s == SOTTO_OK; i++)
        s = sotto_i_cpu_check_op(plan->base.steps[i].node, function);
    return s;
}

static size_t round_up(size_t size) {
    const size_t over = size % SOTTO_DATA_ALIGN;
    return over != 0 ? size + (SOTTO_DATA_ALIGN - over) : size;
}

size_t sotto_i_cpu_work_size(size_t scratch, int n_threads) {
    if (scratch == 0)
        return 0;
    if (scratch > SIZE_MAX - 2 * SOTTO_DATA_ALIGN)
        return SIZE_MAX;
    const size_t each = round_up(scratch) + SOTTO_DATA_ALIGN;
    return each > SIZE_MAX / (size_t)n_threads ? SIZE_MAX : each * (size_t)n_threads;
}

/* Cut every node for n_threads; find how many threads are of use and the scratch one of them needs. */
static void prepare_steps(struct sotto_i_cpu_plan * plan, int n_threads) {
    int64_t useful = 1;
    size_t scratch = 0;
    for (int i = 0; i < plan->base.n_steps; i++) {
        const struct sotto_tensor * node = plan->base.steps[i].node;
        struct sotto_i_cpu_step * step = &plan->steps[i];
        *step = (struct sotto_i_cpu_step){ .op = sotto_i_cpu_op_of(node), .work = { .n_chunks = 1 } };
        step->op->prepare(node, n_threads, &step->work);
        if (useful < step->work.n_chunks)
            useful = step->work.n_chunks;
        if (scratch < step->work.scratch)
            scratch = step->work.scratch;
    }
    plan->n_threads = useful < n_threads ? (int)useful : n_threads;
    plan->scratch = scratch;
}

static enum sotto_status size_work(struct sotto_i_cpu_plan * plan, const char * function) {
    plan->base.work_size = sotto_i_cpu_work_size(plan->scratch, plan->n_threads);
    if (plan->base.work_size == SIZE_MAX)
        return sotto_fail(SOTTO_E_MEMORY, "%s: the work area for %d threads overflows", function, plan->n_threads);
    plan->scratch = round_up(plan->scratch);
    return SOTTO_OK;
}

enum sotto_status sotto_i_cpu_plan_init(struct sotto_i_cpu_plan * plan, struct sotto_cgraph * graph, int n_threads,
                                        sotto_backend_buffer_type_t buft, const struct sotto_allocator * allocator,
                                        const char * function) {
    *plan = (struct sotto_i_cpu_plan){ .n_threads = 1 };
    enum sotto_status s = sotto_i_plan_init(&plan->base, graph, buft, allocator);
    if (s == SOTTO_OK)
        s = check_steps(plan, function);
    if (s != SOTTO_OK || plan->base.n_steps == 0)
        return s;
    plan->steps = sotto_malloc(allocator, plan->base.capacity, sizeof(*plan->steps));
    if (plan->steps == NULL)
        return SOTTO_E_MEMORY;
    prepare_steps(plan, n_threads);
    return size_work(plan, function);
}

enum sotto_status sotto_i_cpu_plan_own_work(struct sotto_i_cpu_plan * plan) {
    plan->owns_work = true;
    if (plan->base.work_size == 0)
        return SOTTO_OK;
    plan->work = sotto_malloc(plan->base.allocator, plan->base.work_size, 1);
    return plan->work != NULL ? SOTTO_OK : SOTTO_E_MEMORY;
}

void sotto_i_cpu_plan_clear(struct sotto_i_cpu_plan * plan) {
    const struct sotto_allocator * allocator = plan->base.allocator;
    if (plan->owns_work)
        sotto_mfree(allocator, plan->work, plan->base.work_size, 1);
    sotto_mfree(allocator, plan->steps, plan->base.capacity, sizeof(*plan->steps));
    sotto_i_plan_clear(&plan->base);
}
