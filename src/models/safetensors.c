/* SPDX-License-Identifier: MIT */
/* Reading the header of a safetensors file. Every number is compared with what the file holds before it is used. */
#include <string.h>

#include "models/safetensors.h"

#define HEADER "the header"

/* A tensor while it is read. */
struct entry {
    struct safetensor tensor;
    bool has_type, has_shape, has_offsets;
    uint64_t items;
    char dtype[24];
};

const char * sotto_i_safetensors_name(const struct safetensors * file, const struct safetensor * tensor) {
    return file->text.bytes + tensor->name;
}

static struct models_shown shown(const struct safetensors * file, const struct safetensor * tensor) {
    const char * name = sotto_i_safetensors_name(file, tensor);
    return sotto_i_models_show(name, strlen(name));
}

/* ---- one tensor ---- */

static enum sotto_status read_dtype(struct json_scan * s, struct json_text * scratch, struct entry * e) {
    size_t n = scratch->n;
    enum sotto_status status = sotto_i_json_string(s, scratch);
    if (status != SOTTO_OK)
        return status;
    struct models_shown text = sotto_i_models_show(scratch->bytes + n, strlen(scratch->bytes + n));
    memcpy(e->dtype, text.text, sizeof(e->dtype) - 1);
    scratch->n = n;
    e->has_type = true;
    return SOTTO_OK;
}

static enum sotto_status read_shape(struct json_scan * s, struct entry * e) {
    char c;
    enum sotto_status status = sotto_i_json_expect(s, '[');
    if (status == SOTTO_OK)
        status = sotto_i_json_peek(s, &c);
    bool more = status == SOTTO_OK && c != ']';
    if (status == SOTTO_OK && !more)
        status = sotto_i_json_expect(s, ']');
    e->items = 1;
    e->has_shape = true;
    while (status == SOTTO_OK && more) {
        uint64_t dim;
        if (e->tensor.rank == SAFETENSORS_MAX_RANK)
            return sotto_i_json_corrupt(s, "a shape with more than 8 axes");
        status = sotto_i_json_count(s, &dim);
        if (status != SOTTO_OK)
            return status;
        if (dim > 0 && e->items > (uint64_t)INT64_MAX / 8 / dim)
            return sotto_i_json_corrupt(s, "a shape of too many items");
        e->items *= dim;
        e->tensor.dims[e->tensor.rank++] = dim;
        status = sotto_i_json_more(s, ']', &more);
    }
    return status;
}

static enum sotto_status read_offsets(struct json_scan * s, struct entry * e) {
    bool more;
    enum sotto_status status = sotto_i_json_expect(s, '[');
    if (status == SOTTO_OK)
        status = sotto_i_json_count(s, &e->tensor.begin);
    if (status == SOTTO_OK)
        status = sotto_i_json_expect(s, ',');
    if (status == SOTTO_OK)
        status = sotto_i_json_count(s, &e->tensor.end);
    if (status == SOTTO_OK)
        status = sotto_i_json_more(s, ']', &more);
    if (status == SOTTO_OK && (more || e->tensor.end < e->tensor.begin))
        status = sotto_i_json_corrupt(s, "data_offsets are no begin and end");
    e->has_offsets = true;
    return status;
}

/* "dtype": "F16" and so on; what later versions may add is skipped. */
static enum sotto_status read_field(struct json_scan * s, struct json_text * scratch, struct entry * e) {
    size_t n = scratch->n;
    enum sotto_status status = sotto_i_json_string(s, scratch);
    if (status != SOTTO_OK)
        return status;
    const char * key = scratch->bytes + n;
    bool is_type = strcmp(key, "dtype") == 0;
    bool is_shape = strcmp(key, "shape") == 0;
    bool is_offsets = strcmp(key, "data_offsets") == 0;
    scratch->n = n;
    if ((is_type && e->has_type) || (is_shape && e->has_shape) || (is_offsets && e->has_offsets))
        return sotto_i_json_corrupt(s, "a field stands twice");
    status = sotto_i_json_expect(s, ':');
    if (status != SOTTO_OK)
        return status;
    if (is_type)
        return read_dtype(s, scratch, e);
    if (is_shape)
        return read_shape(s, e);
    return is_offsets ? read_offsets(s, e) : sotto_i_json_skip(s, scratch);
}

static enum sotto_status read_fields(struct json_scan * s, struct json_text * scratch, struct entry * e) {
    char c;
    enum sotto_status status = sotto_i_json_expect(s, '{');
    if (status == SOTTO_OK)
        status = sotto_i_json_peek(s, &c);
    bool more = status == SOTTO_OK && c != '}';
    while (status == SOTTO_OK && more) {
        status = read_field(s, scratch, e);
        if (status == SOTTO_OK)
            status = sotto_i_json_more(s, '}', &more);
    }
    if (status == SOTTO_OK && !(e->has_type && e->has_shape && e->has_offsets))
        status = sotto_i_json_corrupt(s, "a tensor without dtype, shape or data_offsets");
    return status;
}

static enum sotto_status check_entry(const struct safetensors * file, const struct json_scan * s, struct entry * e) {
    static const struct {
        const char * dtype;
        enum sotto_type type;
    } types[] = { { "F32", SOTTO_TYPE_F32 }, { "F16", SOTTO_TYPE_F16 }, { "BF16", SOTTO_TYPE_BF16 } };
    struct safetensor * t = &e->tensor;
    size_t i = 0;
    while (i < 3 && strcmp(e->dtype, types[i].dtype) != 0)
        i++;
    if (i == 3)
        return sotto_fail(SOTTO_E_MODEL_TENSOR_TYPE,
                          "sotto_convert: %s: '%s' before byte %llu is %s; read are F32, F16 and BF16",
                          file->stream.path, shown(file, t).text, (unsigned long long)s->in.at, e->dtype);
    t->type = types[i].type;
    if (t->end - t->begin != e->items * sotto_type_size(t->type))
        return sotto_fail(SOTTO_E_MODEL_TENSOR_SIZE,
                          "sotto_convert: %s: '%s' before byte %llu has %llu bytes for %llu items of %s",
                          file->stream.path, shown(file, t).text, (unsigned long long)s->in.at,
                          (unsigned long long)(t->end - t->begin), (unsigned long long)e->items, e->dtype);
    return SOTTO_OK;
}

/* ---- the header ---- */

static enum sotto_status keep(struct safetensors * file, const struct safetensor * tensor) {
    void * array = file->tensors;
    enum sotto_status status =
        sotto_i_models_grow(file->allocator, &array, file->n_tensors, &file->cap_tensors, sizeof(*file->tensors));
    if (status != SOTTO_OK)
        return status;
    file->tensors = array;
    file->tensors[file->n_tensors++] = *tensor;
    return SOTTO_OK;
}

static enum sotto_status read_entry(struct safetensors * file, struct json_scan * s) {
    struct entry e = { .tensor = { .name = file->text.n } };
    enum sotto_status status = sotto_i_json_string(s, &file->text);
    if (status == SOTTO_OK)
        status = sotto_i_json_expect(s, ':');
    if (status != SOTTO_OK)
        return status;
    if (strcmp(file->text.bytes + e.tensor.name, "__metadata__") == 0) {
        status = sotto_i_json_skip(s, &file->text);
        file->text.n = e.tensor.name;
        return status;
    }
    status = read_fields(s, &file->text, &e);
    if (status == SOTTO_OK)
        status = check_entry(file, s, &e);
    return status == SOTTO_OK ? keep(file, &e.tensor) : status;
}

static enum sotto_status read_entries(struct safetensors * file, struct json_scan * s) {
    char c;
    enum sotto_status status = sotto_i_json_expect(s, '{');
    if (status == SOTTO_OK)
        status = sotto_i_json_peek(s, &c);
    bool more = status == SOTTO_OK && c != '}';
    if (status == SOTTO_OK && !more)
        status = sotto_i_json_expect(s, '}');
    while (status == SOTTO_OK && more) {
        status = read_entry(file, s);
        if (status == SOTTO_OK)
            status = sotto_i_json_more(s, '}', &more);
    }
    if (status == SOTTO_OK)
        status = sotto_i_json_peek(s, &c);
    if (status == SOTTO_OK && s->in.at != s->end)
        status = sotto_i_json_corrupt(s, "something follows the object");
    return status;
}

/* ---- the whole ---- */

static int order_names(const void * things, size_t a, size_t b) {
    const struct safetensors * file = things;
    return strcmp(sotto_i_safetensors_name(file, &file->tensors[a]), sotto_i_safetensors_name(file, &file->tensors[b]));
}

static enum sotto_status sort_names(struct safetensors * file) {
    enum sotto_status status = sotto_i_models_sort(file->allocator, file->n_tensors, order_names, file, &file->sorted);
    for (size_t i = 1; i < file->n_tensors && status == SOTTO_OK; i++) {
        const struct safetensor * t = &file->tensors[file->sorted[i]];
        if (order_names(file, file->sorted[i - 1], file->sorted[i]) == 0)
            status = sotto_fail(SOTTO_E_MODEL_TENSOR_DUPLICATE, "sotto_convert: %s: '%s' occurs twice in " HEADER,
                                file->stream.path, shown(file, t).text);
    }
    return status;
}

/* By place; tensors without values before the one that begins where they do. */
static int order_places(const void * things, size_t a, size_t b) {
    const struct safetensor * t = things;
    if (t[a].begin != t[b].begin)
        return t[a].begin < t[b].begin ? -1 : 1;
    return t[a].end < t[b].end ? -1 : t[a].end > t[b].end;
}

/* Offsets become places in the file. The tensors have to fill the data, each beginning where another ends. */
static enum sotto_status check_places(struct safetensors * file, uint64_t data) {
    uint64_t size = file->stream.size - data;
    uint64_t at = 0;
    size_t * sorted;
    enum sotto_status status =
        sotto_i_models_sort(file->allocator, file->n_tensors, order_places, file->tensors, &sorted);
    for (size_t i = 0; i < file->n_tensors && status == SOTTO_OK; i++) {
        struct safetensor * t = &file->tensors[sorted[i]];
        if (t->begin != at)
            status = sotto_fail(
                SOTTO_E_MODEL_CORRUPT, "sotto_convert: %s: '%s' begins at byte %llu of the data, where %llu is due",
                file->stream.path, shown(file, t).text, (unsigned long long)t->begin, (unsigned long long)at);
        else if (t->end > size)
            status = sotto_i_models_truncated(&file->stream, data + t->begin, t->end - t->begin, shown(file, t).text);
        at = t->end;
        t->begin += data;
        t->end += data;
    }
    sotto_mfree(file->allocator, sorted, file->n_tensors, sizeof(*sorted));
    if (status == SOTTO_OK && at != size)
        status = sotto_fail(SOTTO_E_MODEL_CORRUPT, "sotto_convert: %s: the tensors end at byte %llu, the file at %llu",
                            file->stream.path, (unsigned long long)(data + at), (unsigned long long)file->stream.size);
    return status;
}

static enum sotto_status read_header(struct safetensors * file) {
    struct json_scan s = { .in = { .stream = &file->stream }, .what = HEADER };
    uint64_t length;
    char first = 0;
    enum sotto_status status = sotto_i_models_number(&s.in, &length, 8, "the length of " HEADER);
    if (status != SOTTO_OK)
        return status;
    if (length > SAFETENSORS_MAX_HEADER)
        return sotto_fail(SOTTO_E_MODEL_CORRUPT, "sotto_convert: %s: a header of %llu bytes at byte 8, at most %llu",
                          file->stream.path, (unsigned long long)length, (unsigned long long)SAFETENSORS_MAX_HEADER);
    if (length > file->stream.size - 8)
        return sotto_i_models_truncated(&file->stream, 8, length, HEADER);
    s.end = 8 + length;
    if (length > 0)
        status = sotto_i_models_stream_read(&file->stream, 8, &first, 1, HEADER);
    if (status == SOTTO_OK && first != '{')
        status = sotto_i_json_corrupt(&s, "it does not begin with '{'");
    if (status == SOTTO_OK)
        status = read_entries(file, &s);
    if (status == SOTTO_OK)
        status = sort_names(file);
    return status == SOTTO_OK ? check_places(file, s.end) : status;
}

enum sotto_status sotto_i_safetensors_open(struct safetensors * file, const struct sotto_allocator * allocator,
                                           const char * folder, const char * name) {
    *file = (struct safetensors){ .allocator = allocator, .text = { .allocator = allocator } };
    enum sotto_status status = sotto_i_models_stream_open(&file->stream, allocator, folder, name);
    return status == SOTTO_OK ? read_header(file) : status;
}

void sotto_i_safetensors_close(struct safetensors * file) {
    sotto_mfree(file->allocator, file->sorted, file->n_tensors, sizeof(*file->sorted));
    sotto_mfree(file->allocator, file->tensors, file->cap_tensors, sizeof(*file->tensors));
    sotto_mfree(file->allocator, file->text.bytes, file->text.cap, 1);
    sotto_i_models_stream_close(&file->stream);
}

const struct safetensor * sotto_i_safetensors_find(const struct safetensors * file, const char * name) {
    size_t low = 0;
    size_t high = file->n_tensors;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct safetensor * t = &file->tensors[file->sorted[middle]];
        int order = strcmp(name, sotto_i_safetensors_name(file, t));
        if (order == 0)
            return t;
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}
