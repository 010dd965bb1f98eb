/* SPDX-License-Identifier: MIT */
/* The parser: once through the file, in its order, stopping at the first fault.
 *
 * The file is hostile until proven otherwise. Every number is compared with what is left of the file, by subtraction or
 * division, before anything is allocated, multiplied or positioned with it; and no table is sized by a number from the
 * file: blocks grow as their bytes arrive. */
#include <string.h>

#include "gguf/gguf_impl.h"

#define MIN_PAIR    14 /* length 8, key 1, type 4, value 1 */
#define MIN_INFO    24 /* length 8, axes 4, type 4, offset 8 */
#define FIRST_BLOCK ((size_t)1 << 20)

struct parser {
    struct sotto_gguf_context * ctx;
    struct gguf_source * source;
    const struct sotto_gguf_open_params * params;
    bool strict;
};

/* ---- fields ---- */

static enum sotto_status read_field(struct parser * p, void * dst, size_t width, const char * what) {
    struct gguf_source * source = p->source;
    uint64_t left = sotto_i_gguf_left(source);
    if (width > left)
        return sotto_i_gguf_fail(source->pos, SOTTO_E_GGUF_TRUNCATED,
                                 "gguf: %s: %s at byte %llu needs %zu bytes, %llu are left", source->name, what,
                                 (unsigned long long)source->pos, width, (unsigned long long)left);
    if (source->pos + width > p->params->max_meta_bytes)
        return sotto_i_gguf_fail(source->pos, SOTTO_E_LIMIT,
                                 "gguf: %s: more than %llu bytes before the tensors; raise max_meta_bytes",
                                 source->name, (unsigned long long)p->params->max_meta_bytes);
    return sotto_i_gguf_read(source, dst, width);
}

static enum sotto_status read_u32(struct parser * p, uint32_t * value, const char * what) {
    return read_field(p, value, sizeof(*value), what);
}

static enum sotto_status read_u64(struct parser * p, uint64_t * value, const char * what) {
    return read_field(p, value, sizeof(*value), what);
}

/* A string's length, checked. */
static enum sotto_status read_length(struct parser * p, uint64_t * len, const char * what) {
    enum sotto_status status = read_u64(p, len, what);
    if (status != SOTTO_OK)
        return status;
    uint64_t left = sotto_i_gguf_left(p->source);
    if (*len <= left && *len <= p->params->max_string && *len < SIZE_MAX)
        return SOTTO_OK;
    return sotto_i_gguf_fail(p->source->pos - 8, SOTTO_E_GGUF_STRING_LENGTH,
                             "gguf: %s: %s at byte %llu has length %llu; %llu bytes are left, the limit is %llu",
                             p->source->name, what, (unsigned long long)(p->source->pos - 8), (unsigned long long)*len,
                             (unsigned long long)left, (unsigned long long)p->params->max_string);
}

/* Append n bytes from the source to a block of *size bytes of which *used are filled, doubling it as bytes arrive. */
static enum sotto_status read_block(struct parser * p, uint8_t ** block, size_t * size, size_t used, size_t n) {
    while (n > 0) {
        size_t piece = n < FIRST_BLOCK ? n : FIRST_BLOCK;
        if (*size > FIRST_BLOCK && n > piece)
            piece = n < *size ? n : *size;
        if (piece > *size - used) {
            size_t grown = *size <= SIZE_MAX / 2 ? *size * 2 : SIZE_MAX;
            if (grown < used + piece || grown > used + n)
                grown = used + piece;
            uint8_t * larger = sotto_realloc(p->ctx->allocator, *block, *size, grown, 1);
            if (larger == NULL)
                return SOTTO_E_MEMORY;
            *block = larger;
            *size = grown;
        }
        enum sotto_status status = read_field(p, *block + used, piece, "data");
        if (status != SOTTO_OK)
            return status;
        used += piece;
        n -= piece;
    }
    return SOTTO_OK;
}

/* ---- text ---- */

/* Length of the well-formed UTF-8 character at s, 0 if there is none. */
static size_t utf8_length(const uint8_t * s, size_t left) {
    if (s[0] < 0x80)
        return 1;
    size_t n = s[0] >= 0xF0 ? 4 : s[0] >= 0xE0 ? 3 : 2;
    if (s[0] < 0xC2 || s[0] > 0xF4 || n > left)
        return 0;
    uint8_t low = s[0] == 0xE0 ? 0xA0 : s[0] == 0xF0 ? 0x90 : 0x80;
    uint8_t high = s[0] == 0xED ? 0x9F : s[0] == 0xF4 ? 0x8F : 0xBF;
    if (s[1] < low || s[1] > high)
        return 0;
    for (size_t i = 2; i < n; i++) {
        if ((s[i] & 0xC0) != 0x80)
            return 0;
    }
    return n;
}

static bool is_utf8(const uint8_t * s, size_t len) {
    while (len > 0) {
        size_t n = utf8_length(s, len);
        if (n == 0)
            return false;
        s += n;
        len -= n;
    }
    return true;
}

static bool is_key_char(char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '.' || c == '-';
}

/* ---- pairs ---- */

static enum sotto_status check_key_text(struct parser * p, size_t id, const struct gguf_name * key, uint64_t pos) {
    for (size_t i = 0; i < key->len; i++) {
        if (key->text[i] == 0 || (p->strict && !is_key_char(key->text[i])))
            return sotto_i_gguf_fail(pos + i, SOTTO_E_GGUF_KEY_CHARS, "gguf: %s: key '%s' of pair %zu at byte %llu",
                                     p->source->name, SHOW(*key), id, (unsigned long long)pos);
    }
    int64_t old = sotto_i_gguf_kv_find(p->ctx, key->text, key->len);
    if (old >= 0)
        return sotto_i_gguf_fail(pos, SOTTO_E_GGUF_KEY_DUPLICATE, "gguf: %s: pairs %lld and %zu have the key '%s'",
                                 p->source->name, (long long)old, id, SHOW(*key));
    return SOTTO_OK;
}

static enum sotto_status read_key(struct parser * p, size_t id, struct gguf_name * key) {
    uint64_t len;
    uint64_t pos = p->source->pos;
    enum sotto_status status = read_length(p, &len, "a key");
    if (status != SOTTO_OK)
        return status;
    if (len == 0)
        return sotto_i_gguf_fail(pos, SOTTO_E_GGUF_KEY_EMPTY, "gguf: %s: the key of pair %zu at byte %llu is empty",
                                 p->source->name, id, (unsigned long long)pos);
    if (len > GGUF_MAX_KEY)
        return sotto_i_gguf_fail(pos, SOTTO_E_GGUF_KEY_LENGTH,
                                 "gguf: %s: the key of pair %zu at byte %llu has %llu bytes, at most %d are allowed",
                                 p->source->name, id, (unsigned long long)pos, (unsigned long long)len, GGUF_MAX_KEY);
    key->text = sotto_malloc(p->ctx->allocator, (size_t)len + 1, 1);
    if (key->text == NULL)
        return SOTTO_E_MEMORY;
    key->len = (size_t)len;
    key->text[len] = 0;
    status = read_field(p, key->text, key->len, "a key");
    return status == SOTTO_OK ? check_key_text(p, id, key, pos + 8) : status;
}

/* Normalise bools to 0 and 1, or refuse others. */
static enum sotto_status check_bools(struct parser * p, const struct gguf_kv * kv, uint8_t * values, uint64_t pos) {
    for (size_t i = 0; i < kv->n; i++) {
        if (values[i] > 1 && p->strict)
            return sotto_i_gguf_fail(pos + i, SOTTO_E_GGUF_BOOL_VALUE, "gguf: %s: a bool of '%s' at byte %llu is %d",
                                     p->source->name, SHOW(kv->key), (unsigned long long)(pos + i), values[i]);
        values[i] = values[i] != 0;
    }
    return SOTTO_OK;
}

/* Append one string and its 0 to the pair's block. */
static enum sotto_status read_string(struct parser * p, struct gguf_kv * kv, size_t * used) {
    uint64_t len;
    enum sotto_status status = read_length(p, &len, "a string");
    if (status != SOTTO_OK)
        return status;
    uint64_t pos = p->source->pos;
    size_t n = (size_t)len;
    if (n > SIZE_MAX - 1 - *used)
        return sotto_i_gguf_fail(pos, SOTTO_E_LIMIT, "gguf: %s: '%s' is too large for this machine", p->source->name,
                                 SHOW(kv->key));
    status = read_block(p, &kv->block, &kv->block_size, *used, n);
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
    if (p->strict && !is_utf8(kv->block + *used, n))
        return sotto_i_gguf_fail(pos, SOTTO_E_GGUF_UTF8, "gguf: %s: a string of '%s' at byte %llu: '%s'",
                                 p->source->name, SHOW(kv->key), (unsigned long long)pos,
                                 sotto_i_gguf_show((const char *)kv->block + *used, n).text);
    kv->block[*used + n] = 0;
    *used += n + 1;
    return SOTTO_OK;
}

/* Give back what a block has too much. */
static enum sotto_status trim(struct parser * p, struct gguf_kv * kv, size_t used) {
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
static enum sotto_status read_strings(struct parser * p, struct gguf_kv * kv, size_t n) {
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

static enum sotto_status read_array(struct parser * p, struct gguf_kv * kv) {
    uint32_t type;
    uint64_t n;
    uint64_t pos = p->source->pos;
    enum sotto_status status = read_u32(p, &type, "an array's type");
    if (status == SOTTO_OK)
        status = read_u64(p, &n, "an array's length");
    if (status != SOTTO_OK)
        return status;
    if (type == SOTTO_GGUF_TYPE_ARRAY)
        return sotto_i_gguf_fail(pos, SOTTO_E_GGUF_ARRAY_NESTED, "gguf: %s: '%s' at byte %llu is an array of arrays",
                                 p->source->name, SHOW(kv->key), (unsigned long long)pos);
    if (type >= SOTTO_GGUF_TYPE_COUNT)
        return sotto_i_gguf_fail(pos, SOTTO_E_GGUF_ARRAY_TYPE,
                                 "gguf: %s: '%s' at byte %llu is an array of the unknown type %lu", p->source->name,
                                 SHOW(kv->key), (unsigned long long)pos, (unsigned long)type);
    kv->type = (enum sotto_gguf_type)type;
    kv->is_array = true;
    size_t width = sotto_gguf_type_size(kv->type);
    uint64_t fit = sotto_i_gguf_left(p->source) / (width > 0 ? width : 8);
    if (n > fit || n > p->params->max_array || n > SIZE_MAX / 8)
        return sotto_i_gguf_fail(pos + 4, SOTTO_E_GGUF_ARRAY_LENGTH,
                                 "gguf: %s: '%s' at byte %llu has %llu elements; %llu fit, the limit is %llu",
                                 p->source->name, SHOW(kv->key), (unsigned long long)pos, (unsigned long long)n,
                                 (unsigned long long)fit, (unsigned long long)p->params->max_array);
    if (kv->type == SOTTO_GGUF_TYPE_STRING)
        return read_strings(p, kv, (size_t)n);
    kv->n = (size_t)n;
    pos = p->source->pos;
    status = read_block(p, &kv->block, &kv->block_size, 0, kv->n * width);
    if (status == SOTTO_OK && kv->type == SOTTO_GGUF_TYPE_BOOL)
        status = check_bools(p, kv, kv->block, pos);
    return status;
}

static enum sotto_status read_value(struct parser * p, struct gguf_kv * kv) {
    uint32_t type;
    uint64_t pos = p->source->pos;
    enum sotto_status status = read_u32(p, &type, "a value's type");
    if (status != SOTTO_OK)
        return status;
    if (type >= SOTTO_GGUF_TYPE_COUNT)
        return sotto_i_gguf_fail(pos, SOTTO_E_GGUF_KV_TYPE, "gguf: %s: '%s' at byte %llu has the unknown type %lu",
                                 p->source->name, SHOW(kv->key), (unsigned long long)pos, (unsigned long)type);
    if (type == SOTTO_GGUF_TYPE_ARRAY)
        return read_array(p, kv);
    kv->type = (enum sotto_gguf_type)type;
    kv->n = 1;
    if (kv->type == SOTTO_GGUF_TYPE_STRING) {
        size_t used = 0;
        status = read_string(p, kv, &used);
        return status == SOTTO_OK ? trim(p, kv, used) : status;
    }
    status = read_field(p, kv->scalar.bytes, sotto_gguf_type_size(kv->type), "a value");
    if (status == SOTTO_OK && kv->type == SOTTO_GGUF_TYPE_BOOL)
        status = check_bools(p, kv, kv->scalar.bytes, p->source->pos - 1);
    return status;
}

static enum sotto_status read_pair(struct parser * p, size_t id) {
    struct gguf_kv kv = { 0 };
    enum sotto_status status = sotto_i_gguf_kv_reserve(p->ctx, 1);
    if (status == SOTTO_OK)
        status = read_key(p, id, &kv.key);
    if (status == SOTTO_OK)
        status = read_value(p, &kv);
    if (status == SOTTO_OK)
        sotto_i_gguf_kv_append(p->ctx, &kv);
    else
        sotto_i_gguf_kv_free(p->ctx->allocator, &kv);
    return status;
}

static enum sotto_status take_alignment(struct parser * p) {
    static const char key[] = SOTTO_GGUF_KEY_GENERAL_ALIGNMENT;
    int64_t id = sotto_i_gguf_kv_find(p->ctx, key, sizeof(key) - 1);
    if (id < 0)
        return SOTTO_OK;
    const struct gguf_kv * kv = &p->ctx->kv[id];
    if (kv->type != SOTTO_GGUF_TYPE_UINT32 || kv->is_array)
        return sotto_i_gguf_fail(p->source->pos, SOTTO_E_GGUF_ALIGN_TYPE,
                                 "gguf: %s: %s is of type %s%s, not a single u32", p->source->name, key,
                                 kv->is_array ? "array of " : "", sotto_gguf_type_name(kv->type));
    p->ctx->alignment = kv->scalar.u32;
    return sotto_i_gguf_check_alignment(kv->scalar.u32, p->source->pos);
}

/* ---- infos ---- */

static enum sotto_status check_tensor_name(struct parser * p, size_t id, const char * text, size_t len, uint64_t pos) {
    const char * file = p->source->name;
    if (len == 0 && p->strict)
        return sotto_i_gguf_fail(pos, SOTTO_E_GGUF_TENSOR_NAME_EMPTY, "gguf: %s: tensor %zu has no name", file, id);
    if (memchr(text, 0, len) != NULL)
        return sotto_i_gguf_fail(pos, SOTTO_E_GGUF_TENSOR_NAME_NUL, "gguf: %s: tensor %zu is named '%s'", file, id,
                                 sotto_i_gguf_show(text, len).text);
    int64_t old = sotto_i_gguf_info_find(p->ctx, text, len);
    if (old >= 0)
        return sotto_i_gguf_fail(pos, SOTTO_E_GGUF_TENSOR_DUPLICATE, "gguf: %s: tensors %lld and %zu are named '%s'",
                                 file, (long long)old, id, sotto_i_gguf_show(text, len).text);
    return SOTTO_OK;
}

static enum sotto_status read_tensor_name(struct parser * p, size_t id, struct gguf_name * name) {
    uint64_t pos = p->source->pos;
    uint64_t len;
    enum sotto_status status = read_u64(p, &len, "a tensor's name");
    if (status != SOTTO_OK)
        return status;
    if (len > GGUF_MAX_TENSOR_NAME)
        return sotto_i_gguf_fail(pos, SOTTO_E_GGUF_TENSOR_NAME_LENGTH,
                                 "gguf: %s: the name of tensor %zu at byte %llu has %llu bytes, at most %d are allowed",
                                 p->source->name, id, (unsigned long long)pos, (unsigned long long)len,
                                 GGUF_MAX_TENSOR_NAME);
    if (len > sotto_i_gguf_left(p->source))
        return sotto_i_gguf_fail(pos, SOTTO_E_GGUF_STRING_LENGTH,
                                 "gguf: %s: the name of tensor %zu has %llu bytes, %llu are left", p->source->name, id,
                                 (unsigned long long)len, (unsigned long long)sotto_i_gguf_left(p->source));
    char text[GGUF_MAX_TENSOR_NAME];
    status = read_field(p, text, (size_t)len, "a tensor's name");
    if (status == SOTTO_OK)
        status = check_tensor_name(p, id, text, (size_t)len, pos + 8);
    return status == SOTTO_OK ? sotto_i_gguf_name_set(p->ctx->allocator, name, text, (size_t)len) : status;
}

static enum sotto_status read_shape(struct parser * p, struct gguf_info * info) {
    uint32_t n_dims;
    uint64_t pos = p->source->pos;
    enum sotto_status status = read_u32(p, &n_dims, "a number of axes");
    if (status != SOTTO_OK)
        return status;
    if (n_dims > SOTTO_MAX_DIMS)
        return sotto_i_gguf_fail(pos, SOTTO_E_GGUF_TENSOR_DIMS,
                                 "gguf: %s: tensor '%s' has %lu axes, at most %d are allowed", p->source->name,
                                 SHOW(info->name), (unsigned long)n_dims, SOTTO_MAX_DIMS);
    for (uint32_t i = 0; i < SOTTO_MAX_DIMS; i++)
        info->ne[i] = 1;
    status = read_field(p, info->ne, n_dims * sizeof(info->ne[0]), "axes");
    return status == SOTTO_OK ? sotto_i_gguf_info_shape(info, pos + 4) : status;
}

/* The offset must be where the tensors before end; moves that end on. */
static enum sotto_status read_offset(struct parser * p, struct gguf_info * info) {
    struct sotto_gguf_context * ctx = p->ctx;
    uint64_t pos = p->source->pos;
    enum sotto_status status = read_u64(p, &info->offset, "a tensor's offset");
    if (status != SOTTO_OK)
        return status;
    if (info->offset != ctx->data_size)
        return sotto_i_gguf_fail(
            pos, SOTTO_E_GGUF_TENSOR_OFFSET, "gguf: %s: tensor '%s' is at offset %llu, expected %llu", p->source->name,
            SHOW(info->name), (unsigned long long)info->offset, (unsigned long long)ctx->data_size);
    uint64_t padded;
    if (!sotto_i_gguf_align(info->size, ctx->alignment, &padded) || padded > UINT64_MAX - ctx->data_size)
        return sotto_i_gguf_fail(pos, SOTTO_E_GGUF_DATA_TOTAL,
                                 "gguf: %s: tensor '%s' of %llu bytes at offset %llu passes 2^64", p->source->name,
                                 SHOW(info->name), (unsigned long long)info->size, (unsigned long long)info->offset);
    ctx->data_size += padded;
    info->file_offset = info->offset;
    info->file_size = info->size;
    info->in_file = true;
    return SOTTO_OK;
}

static enum sotto_status read_info(struct parser * p, size_t id) {
    struct gguf_info info = { 0 };
    uint32_t type = 0;
    enum sotto_status status = sotto_i_gguf_info_reserve(p->ctx);
    if (status == SOTTO_OK)
        status = read_tensor_name(p, id, &info.name);
    if (status == SOTTO_OK)
        status = read_shape(p, &info);
    if (status == SOTTO_OK)
        status = read_u32(p, &type, "a tensor's type");
    if (status == SOTTO_OK) {
        info.type = type < SOTTO_TYPE_COUNT ? (enum sotto_type)type : SOTTO_TYPE_COUNT;
        status = type < SOTTO_TYPE_COUNT
                     ? sotto_i_gguf_info_size(&info, p->source->pos - 4)
                     : sotto_i_gguf_fail(p->source->pos - 4, SOTTO_E_GGUF_TENSOR_TYPE,
                                         "gguf: %s: tensor '%s' has type %ld; known are 0 to %d", p->source->name,
                                         SHOW(info.name), (long)(int32_t)type, SOTTO_TYPE_COUNT - 1);
    }
    if (status == SOTTO_OK)
        status = read_offset(p, &info);
    if (status == SOTTO_OK)
        sotto_i_gguf_info_append(p->ctx, &info);
    else
        sotto_i_gguf_info_free(p->ctx->allocator, &info);
    return status;
}

/* ---- header ---- */

static enum sotto_status check_version(struct parser * p, uint32_t version) {
    const char * name = p->source->name;
    if (version == 0)
        return sotto_i_gguf_fail(4, SOTTO_E_GGUF_VERSION_ZERO, "gguf: %s has version 0; read are 2 and 3", name);
    if ((version & 0xFFFF) == 0) {
        uint32_t swapped = version >> 24 | (version >> 8 & 0xFF00);
        return sotto_i_gguf_fail(4, SOTTO_E_GGUF_ENDIAN,
                                 "gguf: %s has the other byte order: its version reads 0x%08lx, swapped %lu", name,
                                 (unsigned long)version, (unsigned long)swapped);
    }
    if (version == 1)
        return sotto_i_gguf_fail(4, SOTTO_E_GGUF_VERSION_OLD, "gguf: %s has version 1; read are 2 and 3", name);
    if (version > SOTTO_GGUF_VERSION)
        return sotto_i_gguf_fail(4, SOTTO_E_GGUF_VERSION_NEW, "gguf: %s has version %lu; read are 2 and 3", name,
                                 (unsigned long)version);
    p->ctx->version = version;
    return SOTTO_OK;
}

static enum sotto_status bad_count(struct parser * p, bool tensors, uint64_t count, uint64_t most) {
    return sotto_i_gguf_fail(tensors ? 8 : 16, tensors ? SOTTO_E_GGUF_COUNT_TENSORS : SOTTO_E_GGUF_COUNT_KV,
                             "gguf: %s: %lld %s; a file of %llu bytes can hold %llu", p->source->name, (long long)count,
                             tensors ? "tensors" : "pairs", (unsigned long long)p->source->size,
                             (unsigned long long)most);
}

static enum sotto_status check_counts(struct parser * p, uint64_t n_tensors, uint64_t n_kv) {
    uint64_t left = sotto_i_gguf_left(p->source);
    if (n_tensors > INT64_MAX)
        return bad_count(p, true, n_tensors, left / MIN_INFO);
    if (n_kv > left / MIN_PAIR)
        return bad_count(p, false, n_kv, left / MIN_PAIR);
    uint64_t most = (left - n_kv * MIN_PAIR) / MIN_INFO;
    if (n_tensors > most)
        return bad_count(p, true, n_tensors, most);
    if (n_kv > p->params->max_kv || n_tensors > p->params->max_tensors)
        return sotto_i_gguf_fail(8, SOTTO_E_LIMIT,
                                 "gguf: %s: %llu tensors and %llu pairs; max_tensors is %llu, max_kv %llu",
                                 p->source->name, (unsigned long long)n_tensors, (unsigned long long)n_kv,
                                 (unsigned long long)p->params->max_tensors, (unsigned long long)p->params->max_kv);
    return SOTTO_OK;
}

static enum sotto_status read_header(struct parser * p, uint64_t * n_tensors, uint64_t * n_kv) {
    char magic[4];
    uint32_t version;
    enum sotto_status status = read_field(p, magic, sizeof(magic), "the magic");
    if (status == SOTTO_OK && memcmp(magic, SOTTO_GGUF_MAGIC, sizeof(magic)) != 0)
        status = sotto_i_gguf_fail(0, SOTTO_E_GGUF_MAGIC, "gguf: %s begins with '%s', not 'GGUF'", p->source->name,
                                   sotto_i_gguf_show(magic, sizeof(magic)).text);
    if (status == SOTTO_OK)
        status = read_u32(p, &version, "the version");
    if (status == SOTTO_OK)
        status = check_version(p, version);
    if (status == SOTTO_OK)
        status = read_u64(p, n_tensors, "the number of tensors");
    if (status == SOTTO_OK)
        status = read_u64(p, n_kv, "the number of pairs");
    return status == SOTTO_OK ? check_counts(p, *n_tensors, *n_kv) : status;
}

/* Where the data begins: after the padding, which must be there if there is a tensor. */
static enum sotto_status find_data(struct parser * p) {
    struct sotto_gguf_context * ctx = p->ctx;
    uint64_t end = p->source->pos;
    ctx->data_offset = end;
    if (ctx->n_info == 0)
        return SOTTO_OK;
    if (!sotto_i_gguf_align(end, ctx->alignment, &ctx->data_offset) || ctx->data_offset > p->source->size)
        return sotto_i_gguf_fail(end, SOTTO_E_GGUF_DATA_START,
                                 "gguf: %s: the tensors begin at byte %llu, the file has %llu", p->source->name,
                                 (unsigned long long)ctx->data_offset, (unsigned long long)p->source->size);
    return SOTTO_OK;
}

enum sotto_status sotto_i_gguf_parse(struct sotto_gguf_context * ctx, struct gguf_source * source,
                                     const struct sotto_gguf_open_params * params) {
    struct parser p = { ctx, source, params, (params->flags & SOTTO_GGUF_OPEN_STRICT) != 0 };
    uint64_t n_tensors = 0;
    uint64_t n_kv = 0;
    enum sotto_status status = read_header(&p, &n_tensors, &n_kv);
    for (uint64_t i = 0; i < n_kv && status == SOTTO_OK; i++)
        status = read_pair(&p, (size_t)i);
    if (status == SOTTO_OK)
        status = take_alignment(&p);
    for (uint64_t i = 0; i < n_tensors && status == SOTTO_OK; i++)
        status = read_info(&p, (size_t)i);
    return status == SOTTO_OK ? find_data(&p) : status;
}
