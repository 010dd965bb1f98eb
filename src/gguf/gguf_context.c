/* SPDX-License-Identifier: MIT */
/* The empty context, its end, and the helpers that reader, setters and writer share. */
#include <stdarg.h>
#include <string.h>

#include "gguf/gguf_impl.h"

static _Thread_local uint64_t last_pos;

uint64_t sotto_gguf_last_error_pos(void) { return last_pos; }

enum sotto_status sotto_i_gguf_fail(uint64_t pos, enum sotto_status status, const char * format, ...) {
    char text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    last_pos = pos;
    if (pos == 0)
        return sotto_fail(status, "%s", text);
    return sotto_fail(status, "%s (at byte %llu)", text, (unsigned long long)pos);
}

enum sotto_status sotto_i_gguf_failed_at(uint64_t pos, enum sotto_status status) {
    if (status != SOTTO_OK)
        last_pos = pos;
    return status;
}

enum sotto_status sotto_gguf_model_status(enum sotto_status status) {
    switch (status) {
    case SOTTO_E_MEMORY:
    case SOTTO_E_LIMIT: return status;
    case SOTTO_E_GGUF_IO_OPEN:
    case SOTTO_E_GGUF_IO_STAT:
    case SOTTO_E_GGUF_IO_SEEK:
    case SOTTO_E_GGUF_IO_READ: return SOTTO_E_IO;
    case SOTTO_E_GGUF_MAGIC: return SOTTO_E_MODEL_FORMAT;
    case SOTTO_E_GGUF_VERSION_ZERO:
    case SOTTO_E_GGUF_VERSION_OLD:
    case SOTTO_E_GGUF_VERSION_NEW:
    case SOTTO_E_GGUF_ENDIAN: return SOTTO_E_MODEL_VERSION;
    case SOTTO_E_GGUF_TRUNCATED:
    case SOTTO_E_GGUF_COUNT_TENSORS: /* more than what is left of the file can hold: most often a broken-off download */
    case SOTTO_E_GGUF_COUNT_KV:
    case SOTTO_E_GGUF_STRING_LENGTH:
    case SOTTO_E_GGUF_ARRAY_LENGTH:
    case SOTTO_E_GGUF_DATA_START:
    case SOTTO_E_GGUF_DATA_EXTENT: return SOTTO_E_MODEL_TRUNCATED;
    case SOTTO_E_GGUF_TENSOR_TYPE:
    case SOTTO_E_GGUF_TENSOR_TYPE_RETIRED: return SOTTO_E_MODEL_TENSOR_TYPE;
    case SOTTO_E_GGUF_TENSOR_DUPLICATE: return SOTTO_E_MODEL_TENSOR_DUPLICATE;
    default: return SOTTO_E_MODEL_CORRUPT;
    }
}

struct gguf_shown sotto_i_gguf_show(const char * text, size_t len) {
    static const char digit[] = "0123456789abcdef";
    struct gguf_shown shown;
    size_t n = 0;
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)text[i];
        if (n > 76) {
            memcpy(shown.text + n, "...", 3);
            n += 3;
            break;
        }
        if (c >= 0x20 && c < 0x7F) {
            shown.text[n++] = (char)c;
        } else {
            shown.text[n++] = '\\';
            shown.text[n++] = 'x';
            shown.text[n++] = digit[c >> 4];
            shown.text[n++] = digit[c & 15];
        }
    }
    shown.text[n] = 0;
    return shown;
}

enum sotto_status sotto_i_gguf_check_alignment(uint32_t alignment, uint64_t pos) {
    if (alignment > 0 && alignment <= GGUF_MAX_ALIGNMENT && (alignment & (alignment - 1)) == 0)
        return SOTTO_OK;
    return sotto_i_gguf_fail(pos, SOTTO_E_GGUF_ALIGN_VALUE,
                             "gguf: general.alignment is %lu, not a power of two up to %u", (unsigned long)alignment,
                             GGUF_MAX_ALIGNMENT);
}

bool sotto_i_gguf_align(uint64_t x, uint64_t alignment, uint64_t * out) {
    if (x > UINT64_MAX - (alignment - 1))
        return false;
    *out = (x + alignment - 1) & ~(alignment - 1);
    return true;
}

enum sotto_status sotto_i_gguf_name_set(const struct sotto_allocator * allocator, struct gguf_name * name,
                                        const char * text, size_t len) {
    name->text = sotto_malloc(allocator, len + 1, 1);
    if (name->text == NULL)
        return SOTTO_E_MEMORY;
    memcpy(name->text, text, len);
    name->text[len] = 0;
    name->len = len;
    return SOTTO_OK;
}

void sotto_i_gguf_name_free(const struct sotto_allocator * allocator, struct gguf_name * name) {
    if (name->text != NULL)
        sotto_mfree(allocator, name->text, name->len + 1, 1);
    name->text = NULL;
}

struct sotto_gguf_context * sotto_i_gguf_new(const struct sotto_allocator * allocator) {
    if (allocator == NULL)
        allocator = sotto_default_allocator();
    struct sotto_gguf_context * ctx = sotto_calloc(allocator, 1, sizeof(*ctx));
    if (ctx == NULL) {
        last_pos = 0;
        return NULL;
    }
    ctx->allocator = allocator;
    ctx->version = SOTTO_GGUF_VERSION;
    ctx->alignment = SOTTO_GGUF_DEFAULT_ALIGNMENT;
    ctx->fd = -1;
    sotto_i_gguf_index_seed(&ctx->kv_index);
    sotto_i_gguf_index_seed(&ctx->info_index);
    return ctx;
}

struct sotto_gguf_context * sotto_gguf_init_empty(void) {
    return sotto_i_gguf_new(NULL);
}

struct sotto_gguf_context * sotto_gguf_init_empty_ext(const struct sotto_allocator * allocator) {
    return sotto_i_gguf_new(allocator);
}

void sotto_gguf_free(struct sotto_gguf_context * ctx) {
    if (ctx == NULL)
        return;
    const struct sotto_allocator * allocator = ctx->allocator;
    for (size_t i = 0; i < ctx->n_kv; i++)
        sotto_i_gguf_kv_free(allocator, &ctx->kv[i]);
    for (size_t i = 0; i < ctx->n_info; i++)
        sotto_i_gguf_info_free(allocator, &ctx->info[i]);
    sotto_mfree(allocator, ctx->kv, ctx->cap_kv, sizeof(*ctx->kv));
    sotto_mfree(allocator, ctx->info, ctx->cap_info, sizeof(*ctx->info));
    sotto_i_gguf_index_free(&ctx->kv_index, allocator);
    sotto_i_gguf_index_free(&ctx->info_index, allocator);
    sotto_i_gguf_close_fd(ctx->fd);
    sotto_i_gguf_unmap(&ctx->map);
    sotto_mfree(allocator, ctx, 1, sizeof(*ctx));
}
