/* SPDX-License-Identifier: MIT */
/* Reading pairs: key, type, value. Keys are unique, and names of bytes, not of what a terminator leaves of them. */
#include <string.h>

#include "gguf/gguf_parser.h"

static bool is_key_char(char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '.' || c == '-';
}

static enum sotto_status check_key_text(struct gguf_parser * p, size_t id, const struct gguf_name * key, uint64_t pos) {
    for (size_t i = 0; i < key->len; i++) {
        if (key->text[i] == 0 || (p->strict && !is_key_char(key->text[i])))
            return sotto_i_gguf_fail(pos + i, SOTTO_E_GGUF_KEY_CHARS, "gguf: %s: key '%s' of pair %zu", p->source->name,
                                     SHOW(*key), id);
    }
    int64_t old = sotto_i_gguf_kv_find(p->ctx, key->text, key->len);
    if (old >= 0)
        return sotto_i_gguf_fail(pos, SOTTO_E_GGUF_KEY_DUPLICATE, "gguf: %s: pairs %lld and %zu have the key '%s'",
                                 p->source->name, (long long)old, id, SHOW(*key));
    return SOTTO_OK;
}

static enum sotto_status read_key(struct gguf_parser * p, size_t id, struct gguf_name * key) {
    uint64_t len;
    uint64_t pos = p->source->pos;
    enum sotto_status status = sotto_i_gguf_length(p, &len, "a key");
    if (status != SOTTO_OK)
        return status;
    if (len == 0)
        return sotto_i_gguf_fail(pos, SOTTO_E_GGUF_KEY_EMPTY, "gguf: %s: the key of pair %zu is empty", p->source->name,
                                 id);
    if (len > GGUF_MAX_KEY)
        return sotto_i_gguf_fail(pos, SOTTO_E_GGUF_KEY_LENGTH,
                                 "gguf: %s: the key of pair %zu has %llu bytes, at most %d are allowed",
                                 p->source->name, id, (unsigned long long)len, GGUF_MAX_KEY);
    key->text = sotto_malloc(p->ctx->allocator, (size_t)len + 1, 1);
    if (key->text == NULL)
        return SOTTO_E_MEMORY;
    key->len = (size_t)len;
    key->text[len] = 0;
    status = sotto_i_gguf_field(p, key->text, key->len, "a key");
    return status == SOTTO_OK ? check_key_text(p, id, key, pos + 8) : status;
}

/* Normalise bools to 0 and 1, or refuse others. */
static enum sotto_status check_bools(struct gguf_parser * p, const struct gguf_kv * kv, uint8_t * values,
                                     uint64_t pos) {
    for (size_t i = 0; i < kv->n; i++) {
        if (values[i] > 1 && p->strict)
            return sotto_i_gguf_fail(pos + i, SOTTO_E_GGUF_BOOL_VALUE, "gguf: %s: a bool of '%s' is %d",
                                     p->source->name, SHOW(kv->key), values[i]);
        values[i] = values[i] != 0;
    }
    return SOTTO_OK;
}

/* Append one string and its 0 to the pair's block. */
static enum sotto_status read_string(struct gguf_parser * p, struct gguf_kv * kv, size_t * used) {
    uint64_t len;
    enum sotto_status status = sotto_i_gguf_length(p, &len, "a string");
    if (status != SOTTO_OK)
        return status;
    uint64_t pos = p->source->pos;
    size_t n = (size_t)len;
    if (n > SIZE_MAX - 1 - *used)
        return sotto_i_gguf_fail(pos, SOTTO_E_LIMIT, "gguf: %s: '%s' is too large for this machine", p->source->name,
                                 SHOW(kv->key));
    status = sotto_i_gguf_block(p, &kv->block, &kv->block_size, *used, n);
    if (status != SOTTO_OK)
        return status;
    if (*used + n == kv->block_size) {
        size_t grown = kv->block_size + (kv->is_array ? kv->block_size / 2 + 16 : 1);
        uint8_t * larger = sotto_realloc(p->ctx->allocator, kv->block, kv->block_size, grown, 1);
        if (larger == NULL)
            return SOTTO_E_MEMORY;
        kv->block = larger;
        kv->block_size = grown;
    }
    if (p->strict && !sotto_i_gguf_is_utf8(kv->block + *used, n))
        return sotto_i_gguf_fail(pos, SOTTO_E_GGUF_UTF8, "gguf: %s: a string of '%s': '%s'", p->source->name,
                                 SHOW(kv->key), sotto_i_gguf_show((const char *)kv->block + *used, n).text);
    kv->block[*used + n] = 0;
    *used += n + 1;
    return SOTTO_OK;
}

/* Give back what a block has too much. */
static enum sotto_status trim(struct gguf_parser * p, struct gguf_kv * kv, size_t used) {
    if (kv->block_size == used)
        return SOTTO_OK;
    uint8_t * exact = sotto_realloc(p->ctx->allocator, kv->block, kv->block_size, used, 1);
    if (exact == NULL)
        return SOTTO_E_MEMORY;
    kv->block = exact;
    kv->block_size = used;
    return SOTTO_OK;
}

/* Strings of an array; kv->n counts those that are there, so that the pair can be freed at any time. */
static enum sotto_status read_strings(struct gguf_parser * p, struct gguf_kv * kv, size_t n) {
    size_t used = 0;
    size_t cap = 0;
    enum sotto_status status = SOTTO_OK;
    kv->n = 0;
    for (size_t i = 0; i < n && status == SOTTO_OK; i++) {
        if (i == cap) {
            size_t grown = cap + cap / 2 + 64 < n ? cap + cap / 2 + 64 : n;
            size_t * ends = sotto_realloc(p->ctx->allocator, kv->ends, cap, grown, sizeof(*ends));
            if (ends == NULL)
                return SOTTO_E_MEMORY;
            kv->ends = ends;
            kv->n = cap = grown;
        }
        status = read_string(p, kv, &used);
        kv->ends[i] = used;
    }
    return status == SOTTO_OK ? trim(p, kv, used) : status;
}

static enum sotto_status read_array(struct gguf_parser * p, struct gguf_kv * kv) {
    uint32_t type;
    uint64_t n;
    uint64_t pos = p->source->pos;
    enum sotto_status status = sotto_i_gguf_u32(p, &type, "an array's type");
    if (status == SOTTO_OK)
        status = sotto_i_gguf_u64(p, &n, "an array's length");
    if (status != SOTTO_OK)
        return status;
    if (type == SOTTO_GGUF_TYPE_ARRAY)
        return sotto_i_gguf_fail(pos, SOTTO_E_GGUF_ARRAY_NESTED, "gguf: %s: '%s' is an array of arrays",
                                 p->source->name, SHOW(kv->key));
    if (type >= SOTTO_GGUF_TYPE_COUNT)
        return sotto_i_gguf_fail(pos, SOTTO_E_GGUF_ARRAY_TYPE, "gguf: %s: '%s' is an array of the unknown type %lu",
                                 p->source->name, SHOW(kv->key), (unsigned long)type);
    kv->type = (enum sotto_gguf_type)type;
    kv->is_array = true;
    size_t width = sotto_gguf_type_size(kv->type);
    uint64_t fit = sotto_i_gguf_left(p->source) / (width > 0 ? width : 8);
    if (n > fit || n > p->params->max_array || n > SIZE_MAX / 8)
        return sotto_i_gguf_fail(pos + 4, SOTTO_E_GGUF_ARRAY_LENGTH,
                                 "gguf: %s: '%s' has %llu elements; %llu fit, the limit is %llu", p->source->name,
                                 SHOW(kv->key), (unsigned long long)n, (unsigned long long)fit,
                                 (unsigned long long)p->params->max_array);
    if (kv->type == SOTTO_GGUF_TYPE_STRING)
        return read_strings(p, kv, (size_t)n);
    kv->n = (size_t)n;
    pos = p->source->pos;
    status = sotto_i_gguf_block(p, &kv->block, &kv->block_size, 0, kv->n * width);
    if (status == SOTTO_OK && p->ctx->swapped)
        sotto_i_gguf_swap(kv->block, width, kv->n);
    if (status == SOTTO_OK && kv->type == SOTTO_GGUF_TYPE_BOOL)
        status = check_bools(p, kv, kv->block, pos);
    return status;
}

static enum sotto_status read_value(struct gguf_parser * p, struct gguf_kv * kv) {
    uint32_t type;
    uint64_t pos = p->source->pos;
    enum sotto_status status = sotto_i_gguf_u32(p, &type, "a value's type");
    if (status != SOTTO_OK)
        return status;
    if (type >= SOTTO_GGUF_TYPE_COUNT)
        return sotto_i_gguf_fail(pos, SOTTO_E_GGUF_KV_TYPE, "gguf: %s: '%s' has the unknown type %lu", p->source->name,
                                 SHOW(kv->key), (unsigned long)type);
    if (type == SOTTO_GGUF_TYPE_ARRAY)
        return read_array(p, kv);
    kv->type = (enum sotto_gguf_type)type;
    kv->n = 1;
    if (kv->type == SOTTO_GGUF_TYPE_STRING) {
        size_t used = 0;
        status = read_string(p, kv, &used);
        return status == SOTTO_OK ? trim(p, kv, used) : status;
    }
    size_t width = sotto_gguf_type_size(kv->type);
    status = sotto_i_gguf_field(p, kv->scalar.bytes, width, "a value");
    if (status == SOTTO_OK && p->ctx->swapped)
        sotto_i_gguf_swap(kv->scalar.bytes, width, 1);
    if (status == SOTTO_OK && kv->type == SOTTO_GGUF_TYPE_BOOL)
        status = check_bools(p, kv, kv->scalar.bytes, p->source->pos - 1);
    return status;
}

static bool is_alignment(const struct gguf_name * key) {
    return strcmp(key->text, SOTTO_GGUF_KEY_GENERAL_ALIGNMENT) == 0;
}

enum sotto_status sotto_i_gguf_read_pair(struct gguf_parser * p, size_t id) {
    struct gguf_kv kv = { 0 };
    enum sotto_status status = sotto_i_gguf_kv_reserve(p->ctx, 1);
    if (status == SOTTO_OK)
        status = read_key(p, id, &kv.key);
    if (status == SOTTO_OK && is_alignment(&kv.key))
        p->alignment_pos = p->source->pos + 4; /* behind its type */
    if (status == SOTTO_OK)
        status = read_value(p, &kv);
    if (status == SOTTO_OK)
        sotto_i_gguf_kv_append(p->ctx, &kv);
    else
        sotto_i_gguf_kv_free(p->ctx->allocator, &kv);
    return status;
}

enum sotto_status sotto_i_gguf_take_alignment(struct gguf_parser * p) {
    static const char key[] = SOTTO_GGUF_KEY_GENERAL_ALIGNMENT;
    int64_t id = sotto_i_gguf_kv_find(p->ctx, key, sizeof(key) - 1);
    if (id < 0)
        return SOTTO_OK;
    const struct gguf_kv * kv = &p->ctx->kv[id];
    if (kv->type != SOTTO_GGUF_TYPE_UINT32 || kv->is_array)
        return sotto_i_gguf_fail(p->alignment_pos - 4, SOTTO_E_GGUF_ALIGN_TYPE,
                                 "gguf: %s: %s is of type %s%s, not a single u32", p->source->name, key,
                                 kv->is_array ? "array of " : "", sotto_gguf_type_name(kv->type));
    p->ctx->alignment = kv->scalar.u32;
    return sotto_i_gguf_check_alignment(kv->scalar.u32, p->alignment_pos);
}
