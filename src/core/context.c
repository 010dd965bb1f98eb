/* SPDX-License-Identifier: MIT */
/* Contexts: the arena (layout in tensor_impl.h) and the sticky error. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/checked.h"
#include "core/tensor_impl.h"

struct sotto_i_object {
    size_t offset; /* of the payload, from the arena's start */
    size_t size;   /* of the payload */
    struct sotto_i_object * next;
    enum sotto_i_object_kind kind;
#if UINTPTR_MAX > 0xFFFFFFFF
    char padding[4];
#endif
};

struct sotto_context {
    const struct sotto_allocator * allocator;
    char * memory;
    size_t size;
    bool owned;
    bool no_alloc;
    struct sotto_i_object * first;
    struct sotto_i_object * last;
    enum sotto_status status;
    char text[1024];
    sotto_error_hook hook;
    void * hook_data;
};

_Static_assert(sizeof(struct sotto_i_object) % SOTTO_MEM_ALIGN == 0, "payloads would lose their alignment");
_Static_assert(sizeof(struct sotto_tensor) % SOTTO_MEM_ALIGN == 0, "data would lose its alignment");

/* ---- life ---- */

/* Fill in the arena's memory; false and an error if it cannot be had. */
static bool take_memory(struct sotto_context * ctx, const struct sotto_init_params * params) {
    ctx->size = params->mem_size ? params->mem_size : SOTTO_MEM_ALIGN;
    ctx->memory = params->mem_buffer;
    ctx->owned = !params->mem_buffer;
    if (!ctx->owned) {
        return true;
    }
    if (sotto_i_align_up(ctx->size, SOTTO_MEM_ALIGN, &ctx->size)) {
        ctx->memory = ctx->allocator->alloc(ctx->allocator->user_data, ctx->size, SOTTO_DATA_ALIGN);
    }
    if (!ctx->memory) {
        sotto_fail(SOTTO_E_MEMORY, "sotto_init: no memory for an arena of %zu bytes", params->mem_size);
    }
    return ctx->memory;
}

struct sotto_context * sotto_init_ext(struct sotto_init_params params, const struct sotto_allocator * allocator) {
    if ((uintptr_t)params.mem_buffer % SOTTO_MEM_ALIGN != 0) {
        sotto_fail(SOTTO_E_PARAM, "sotto_init: mem_buffer is not aligned to %d bytes", SOTTO_MEM_ALIGN);
        return NULL;
    }
    if (!allocator) {
        allocator = sotto_default_allocator();
    }
    struct sotto_context * ctx = sotto_calloc(allocator, 1, sizeof(*ctx));
    if (!ctx) {
        return NULL;
    }
    ctx->allocator = allocator;
    ctx->no_alloc = params.no_alloc;
    if (!take_memory(ctx, &params)) {
        sotto_mfree(allocator, ctx, 1, sizeof(*ctx));
        return NULL;
    }
    return ctx;
}

struct sotto_context * sotto_init(struct sotto_init_params params) {
    return sotto_init_ext(params, NULL);
}

void sotto_reset(struct sotto_context * ctx) {
    if (!ctx) {
        sotto_fail(SOTTO_E_NULLARG, "sotto_reset: ctx is NULL");
        return;
    }
    ctx->first = NULL;
    ctx->last = NULL;
    sotto_clear_error(ctx);
}

void sotto_free(struct sotto_context * ctx) {
    if (!ctx) {
        return;
    }
    const struct sotto_allocator * allocator = ctx->allocator;
    if (ctx->owned) {
        allocator->free(allocator->user_data, ctx->memory, ctx->size, SOTTO_DATA_ALIGN);
    }
    sotto_mfree(allocator, ctx, 1, sizeof(*ctx));
}

/* ---- arena ---- */

static size_t used(const struct sotto_context * ctx) { return ctx->last ? ctx->last->offset + ctx->last->size : 0; }

bool sotto_i_arena_size(size_t size, size_t * bytes) {
    return sotto_i_align_up(size, SOTTO_MEM_ALIGN, bytes) && sotto_i_add(*bytes, sizeof(struct sotto_i_object), bytes);
}

void * sotto_i_arena_new(struct sotto_context * ctx, const char * function, enum sotto_i_object_kind kind,
                         size_t size) {
    size_t start = used(ctx);
    size_t needed;
    if (!sotto_i_arena_size(size, &needed)) {
        sotto_i_context_fail(ctx, SOTTO_E_MEMORY, "%s: an object of %zu bytes overflows", function, size);
        return NULL;
    }
    if (start > ctx->size || needed > ctx->size - start) {
        sotto_i_context_fail(ctx, SOTTO_E_MEMORY,
                             "%s: the context's arena is full: %zu bytes needed, %zu of %zu available; make it with a "
                             "larger mem_size",
                             function, needed, start > ctx->size ? 0 : ctx->size - start, ctx->size);
        return NULL;
    }
    struct sotto_i_object * object = (struct sotto_i_object *)(void *)(ctx->memory + start);
    *object = (struct sotto_i_object){
        .offset = start + sizeof(*object),
        .size = needed - sizeof(*object),
        .kind = kind,
    };
    if (ctx->last) {
        ctx->last->next = object;
    } else {
        ctx->first = object;
    }
    ctx->last = object;
    return object + 1;
}

struct sotto_i_object * sotto_i_arena_last(const struct sotto_context * ctx) {
    return ctx ? ctx->last : NULL;
}

void sotto_i_arena_rewind(struct sotto_context * ctx, struct sotto_i_object * last) {
    if (!ctx) {
        return;
    }
    ctx->last = last;
    if (last) {
        last->next = NULL;
    } else {
        ctx->first = NULL;
    }
}

void * sotto_new_buffer(struct sotto_context * ctx, size_t nbytes) {
    if (!ctx) {
        sotto_fail(SOTTO_E_NULLARG, "sotto_new_buffer: ctx is NULL");
        return NULL;
    }
    void * memory = sotto_i_arena_new(ctx, "sotto_new_buffer", SOTTO_I_OBJECT_WORK, nbytes);
    if (memory) {
        memset(memory, 0, nbytes);
    }
    return memory;
}

/* ---- what is set ---- */

/* False and NULLARG without a context. */
static bool given(const struct sotto_context * ctx, const char * function) {
    if (!ctx) {
        sotto_fail(SOTTO_E_NULLARG, "%s: ctx is NULL", function);
    }
    return ctx;
}

size_t sotto_used_mem(const struct sotto_context * ctx) { return given(ctx, "sotto_used_mem") ? used(ctx) : 0; }

bool sotto_get_no_alloc(const struct sotto_context * ctx) { return given(ctx, "sotto_get_no_alloc") && ctx->no_alloc; }

void sotto_set_no_alloc(struct sotto_context * ctx, bool no_alloc) {
    if (given(ctx, "sotto_set_no_alloc")) {
        ctx->no_alloc = no_alloc;
    }
}

void * sotto_get_mem_buffer(const struct sotto_context * ctx) {
    return given(ctx, "sotto_get_mem_buffer") ? ctx->memory : NULL;
}

size_t sotto_get_mem_size(const struct sotto_context * ctx) { return given(ctx, "sotto_get_mem_size") ? ctx->size : 0; }

const struct sotto_allocator * sotto_i_context_allocator(const struct sotto_context * ctx) {
    return ctx ? ctx->allocator : sotto_default_allocator();
}

/* ---- walking ---- */

static struct sotto_tensor * next_tensor(struct sotto_i_object * object) {
    while (object && object->kind != SOTTO_I_OBJECT_TENSOR) {
        object = object->next;
    }
    return object ? (struct sotto_tensor *)(void *)(object + 1) : NULL;
}

struct sotto_tensor * sotto_get_first_tensor(const struct sotto_context * ctx) {
    return given(ctx, "sotto_get_first_tensor") ? next_tensor(ctx->first) : NULL;
}

struct sotto_tensor * sotto_get_next_tensor(const struct sotto_context * ctx, struct sotto_tensor * tensor) {
    if (!given(ctx, "sotto_get_next_tensor")) {
        return NULL;
    }
    uintptr_t at = (uintptr_t)tensor - (uintptr_t)ctx->memory;
    if (!tensor || at < sizeof(struct sotto_i_object) || at >= used(ctx)) {
        sotto_fail(SOTTO_E_PARAM, "sotto_get_next_tensor: the tensor is not of this context");
        return NULL;
    }
    return next_tensor(((struct sotto_i_object *)(void *)tensor - 1)->next);
}

struct sotto_tensor * sotto_get_tensor(struct sotto_context * ctx, const char * name) {
    if (!given(ctx, "sotto_get_tensor")) {
        return NULL;
    }
    if (!name) {
        sotto_fail(SOTTO_E_NULLARG, "sotto_get_tensor: name is NULL");
        return NULL;
    }
    struct sotto_tensor * tensor = sotto_get_first_tensor(ctx);
    while (tensor && strcmp(tensor->name, name) != 0) {
        tensor = sotto_get_next_tensor(ctx, tensor);
    }
    return tensor;
}

size_t sotto_get_max_tensor_size(const struct sotto_context * ctx) {
    size_t largest = 0;
    if (given(ctx, "sotto_get_max_tensor_size")) {
        for (struct sotto_tensor * t = sotto_get_first_tensor(ctx); t; t = sotto_get_next_tensor(ctx, t)) {
            size_t bytes = sotto_nbytes(t);
            largest = bytes > largest ? bytes : largest;
        }
    }
    return largest;
}

/* ---- the error ---- */

enum sotto_status sotto_context_status(const struct sotto_context * ctx) {
    return given(ctx, "sotto_context_status") ? ctx->status : SOTTO_E_NULLARG;
}

const char * sotto_context_error(const struct sotto_context * ctx) {
    return given(ctx, "sotto_context_error") ? ctx->text : "";
}

void sotto_clear_error(struct sotto_context * ctx) {
    if (given(ctx, "sotto_clear_error")) {
        ctx->status = SOTTO_OK;
        ctx->text[0] = '\0';
    }
}

void sotto_set_error_hook(struct sotto_context * ctx, sotto_error_hook hook, void * user_data) {
    if (given(ctx, "sotto_set_error_hook")) {
        ctx->hook = hook;
        ctx->hook_data = user_data;
    }
}

enum sotto_status sotto_i_context_fail(struct sotto_context * ctx, enum sotto_status status, const char * format, ...) {
    va_list args;
    va_start(args, format);
    sotto_fail_v(status, format, args);
    va_end(args);
    if (ctx && ctx->status == SOTTO_OK && status != SOTTO_OK) {
        ctx->status = status;
        snprintf(ctx->text, sizeof(ctx->text), "%s", sotto_last_error_text());
        if (ctx->hook) {
            ctx->hook(status, ctx->text, ctx->hook_data);
        }
    }
    return status;
}
