/* SPDX-License-Identifier: MIT */
/* model.bin of CTranslate2: a header, variables with their payload behind each, aliases.
 *
 *   u32 version, string spec, u32 revision, u32 count
 *   count x   string name, u8 rank, rank x u32 dims, u8 type, u32 bytes, payload
 *   u32 count, count x   string alias, string target
 *
 * A string is a u16 length that counts a final 0, and the bytes. Only descriptions are read here; payloads stay in the
 * file. */
#include <string.h>

#include "sotto/log.h"

#include "models/models_impl.h"

#define MIN_VARIABLE 9 /* string of one 0: 3, rank 1, type 1, bytes 4 */
#define MIN_ALIAS    6

#define NAME(v) sotto_i_models_show((v)->name, (v)->name_size - 1).text

struct cursor {
    struct ct2_model * model;
    struct models_cursor in;
};

static const char * file(const struct cursor * c) { return c->model->stream.path; }

static uint64_t left(const struct cursor * c) { return sotto_i_models_left(&c->in); }

static enum sotto_status read_number(struct cursor * c, uint64_t * value, size_t width, const char * what) {
    return sotto_i_models_number(&c->in, value, width, what);
}

static enum sotto_status read_string(struct cursor * c, char ** text, size_t * size, const char * what) {
    uint64_t len;
    enum sotto_status status = read_number(c, &len, 2, what);
    if (status != SOTTO_OK)
        return status;
    if (len == 0)
        return sotto_fail(SOTTO_E_MODEL_CORRUPT, "sotto_convert: %s: %s at byte %llu has length 0", file(c), what,
                          (unsigned long long)c->in.at);
    if (len > left(c))
        return sotto_i_models_truncated(&c->model->stream, c->in.at, len, what);
    char * bytes = sotto_malloc(c->model->allocator, (size_t)len, 1);
    if (bytes == NULL)
        return SOTTO_E_MEMORY;
    status = sotto_i_models_stream_read(&c->model->stream, c->in.at, bytes, (size_t)len, what);
    if (status == SOTTO_OK && memchr(bytes, 0, (size_t)len) != bytes + len - 1)
        status = sotto_fail(SOTTO_E_MODEL_CORRUPT, "sotto_convert: %s: %s at byte %llu does not end in its only 0",
                            file(c), what, (unsigned long long)c->in.at);
    if (status != SOTTO_OK) {
        sotto_mfree(c->model->allocator, bytes, (size_t)len, 1);
        return status;
    }
    c->in.at += len;
    *text = bytes;
    *size = (size_t)len;
    return SOTTO_OK;
}

/* ---- header ---- */

static enum sotto_status check_spec(struct cursor * c) {
    char * spec = NULL;
    size_t size;
    enum sotto_status status = read_string(c, &spec, &size, "the name of the specification");
    if (status != SOTTO_OK)
        return status;
    if (strcmp(spec, "WhisperSpec") != 0)
        status = sotto_fail(SOTTO_E_MODEL_ARCH, "sotto_convert: %s holds a '%s', not a WhisperSpec", file(c),
                            sotto_i_models_show(spec, size - 1).text);
    sotto_mfree(c->model->allocator, spec, size, 1);
    return status;
}

static enum sotto_status read_header(struct cursor * c, uint64_t * count) {
    uint64_t version = 0;
    uint64_t revision = 0;
    enum sotto_status status = read_number(c, &version, 4, "the version");
    c->model->version = (uint32_t)version;
    if (status == SOTTO_OK && (version > 6 || version < 4))
        status = sotto_fail(SOTTO_E_MODEL_VERSION,
                            "sotto_convert: %s has version %llu at byte 0; read are 4 to 6: convert the model anew",
                            file(c), (unsigned long long)version);
    if (status == SOTTO_OK)
        status = check_spec(c);
    if (status == SOTTO_OK)
        status = read_number(c, &revision, 4, "the revision");
    if (status == SOTTO_OK && (revision > 3 || revision < 1))
        status =
            sotto_fail(SOTTO_E_MODEL_VERSION, "sotto_convert: %s has revision %llu before byte %llu; read are 1 to 3",
                       file(c), (unsigned long long)revision, (unsigned long long)c->in.at);
    if (status == SOTTO_OK)
        status = read_number(c, count, 4, "the number of variables");
    if (status == SOTTO_OK && *count > left(c) / MIN_VARIABLE)
        status = sotto_i_models_truncated(&c->model->stream, c->in.at, *count * MIN_VARIABLE, "the variables");
    return status;
}

/* ---- variables ---- */

size_t sotto_i_ct2_width(enum ct2_type type) {
    static const size_t width[CT2_TYPE_COUNT] = { 4, 1, 2, 4, 2, 2 };
    return width[type];
}

static enum sotto_status read_dims(struct cursor * c, struct ct2_variable * v) {
    uint64_t rank;
    enum sotto_status status = read_number(c, &rank, 1, "a rank");
    if (status != SOTTO_OK)
        return status;
    if (rank > 4)
        return sotto_fail(SOTTO_E_MODEL_CORRUPT, "sotto_convert: %s: '%s' before byte %llu has %llu axes", file(c),
                          NAME(v), (unsigned long long)c->in.at, (unsigned long long)rank);
    v->rank = (int)rank;
    v->items = 1;
    for (int i = 0; i < v->rank && status == SOTTO_OK; i++) {
        status = read_number(c, &v->dims[i], 4, "an axis");
        if (status == SOTTO_OK && v->dims[i] > 0 && v->items > INT64_MAX / v->dims[i])
            return sotto_fail(SOTTO_E_MODEL_CORRUPT, "sotto_convert: %s: '%s' before byte %llu has too many items",
                              file(c), NAME(v), (unsigned long long)c->in.at);
        v->items *= v->dims[i];
    }
    return status;
}

static enum sotto_status read_payload(struct cursor * c, struct ct2_variable * v) {
    uint64_t type = 0;
    uint64_t bytes = 0;
    enum sotto_status status = read_number(c, &type, 1, "a type");
    if (status == SOTTO_OK && type >= CT2_TYPE_COUNT)
        status =
            sotto_fail(SOTTO_E_MODEL_TENSOR_TYPE, "sotto_convert: %s: '%s' before byte %llu has the unknown type %llu",
                       file(c), NAME(v), (unsigned long long)c->in.at, (unsigned long long)type);
    if (status == SOTTO_OK)
        status = read_number(c, &bytes, 4, "a size");
    if (status != SOTTO_OK)
        return status;
    v->type = (enum ct2_type)type;
    size_t width = sotto_i_ct2_width(v->type);
    if (bytes % width != 0 || bytes / width != v->items)
        return sotto_fail(SOTTO_E_MODEL_TENSOR_SIZE,
                          "sotto_convert: %s: '%s' at byte %llu has %llu bytes for %llu items of %zu", file(c), NAME(v),
                          (unsigned long long)c->in.at, (unsigned long long)bytes, (unsigned long long)v->items, width);
    if (bytes > left(c))
        return sotto_i_models_truncated(&c->model->stream, c->in.at, bytes, NAME(v));
    v->at = c->in.at;
    c->in.at += bytes;
    return SOTTO_OK;
}

static enum sotto_status read_variable(struct cursor * c) {
    struct ct2_model * m = c->model;
    void * array = m->variables;
    enum sotto_status status =
        sotto_i_models_grow(m->allocator, &array, m->n_variables, &m->cap_variables, sizeof(*m->variables));
    if (status != SOTTO_OK)
        return status;
    m->variables = array;
    struct ct2_variable v = { 0 };
    status = read_string(c, &v.name, &v.name_size, "the name of a variable");
    if (status != SOTTO_OK)
        return status;
    m->variables[m->n_variables] = v;
    struct ct2_variable * kept = &m->variables[m->n_variables++];
    status = read_dims(c, kept);
    return status == SOTTO_OK ? read_payload(c, kept) : status;
}

/* ---- names ---- */

static int order_variables(const void * things, size_t a, size_t b) {
    const struct ct2_variable * v = things;
    return strcmp(v[a].name, v[b].name);
}

static int order_aliases(const void * things, size_t a, size_t b) {
    const struct ct2_alias * alias = things;
    return strcmp(alias[a].name, alias[b].name);
}

static enum sotto_status sort_names(struct ct2_model * m) {
    size_t n = m->n_variables;
    enum sotto_status status = sotto_i_models_sort(m->allocator, n, order_variables, m->variables, &m->sorted);
    for (size_t i = 1; i < n && status == SOTTO_OK; i++) {
        const struct ct2_variable * v = &m->variables[m->sorted[i]];
        if (order_variables(m->variables, m->sorted[i - 1], m->sorted[i]) == 0)
            status = sotto_fail(SOTTO_E_MODEL_TENSOR_DUPLICATE, "sotto_convert: %s: '%s' at byte %llu occurs twice",
                                m->stream.path, NAME(v), (unsigned long long)v->at);
    }
    return status;
}

static struct ct2_variable * find_variable(struct ct2_model * m, const char * name) {
    size_t low = 0;
    size_t high = m->n_variables;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        struct ct2_variable * v = &m->variables[m->sorted[middle]];
        int cmp = strcmp(name, v->name);
        if (cmp == 0)
            return v;
        if (cmp < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}

/* Aliases of one name stand for the same: the first in order. */
static struct ct2_variable * find_alias(struct ct2_model * m, const char * name) {
    size_t low = 0;
    size_t high = m->sorted_aliases != NULL ? m->n_aliases : 0;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (strcmp(m->aliases[m->sorted_aliases[middle]].name, name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    if (m->sorted_aliases == NULL || low == m->n_aliases)
        return NULL;
    const struct ct2_alias * alias = &m->aliases[m->sorted_aliases[low]];
    return strcmp(alias->name, name) == 0 ? &m->variables[alias->variable] : NULL;
}

struct ct2_variable * sotto_i_ct2_find(struct ct2_model * model, const char * name) {
    struct ct2_variable * v = find_variable(model, name);
    return v != NULL ? v : find_alias(model, name);
}

static enum sotto_status read_target(struct cursor * c, size_t * variable) {
    char * target = NULL;
    size_t size;
    enum sotto_status status = read_string(c, &target, &size, "the target of an alias");
    if (status != SOTTO_OK)
        return status;
    const struct ct2_variable * v = find_variable(c->model, target);
    if (v == NULL)
        status = sotto_fail(SOTTO_E_MODEL_CORRUPT,
                            "sotto_convert: %s: an alias before byte %llu stands for '%s', which is not there", file(c),
                            (unsigned long long)c->in.at, sotto_i_models_show(target, size - 1).text);
    else
        *variable = (size_t)(v - c->model->variables);
    sotto_mfree(c->model->allocator, target, size, 1);
    return status;
}

static enum sotto_status read_alias(struct cursor * c) {
    struct ct2_model * m = c->model;
    void * array = m->aliases;
    enum sotto_status status =
        sotto_i_models_grow(m->allocator, &array, m->n_aliases, &m->cap_aliases, sizeof(*m->aliases));
    if (status != SOTTO_OK)
        return status;
    m->aliases = array;
    struct ct2_alias alias = { 0 };
    status = read_string(c, &alias.name, &alias.name_size, "the name of an alias");
    if (status != SOTTO_OK)
        return status;
    m->aliases[m->n_aliases++] = alias;
    return read_target(c, &m->aliases[m->n_aliases - 1].variable);
}

static enum sotto_status read_aliases(struct cursor * c) {
    uint64_t count = 0;
    enum sotto_status status = read_number(c, &count, 4, "the number of aliases");
    if (status == SOTTO_OK && count > left(c) / MIN_ALIAS)
        status = sotto_i_models_truncated(&c->model->stream, c->in.at, count * MIN_ALIAS, "the aliases");
    for (uint64_t i = 0; i < count && status == SOTTO_OK; i++)
        status = read_alias(c);
    if (status == SOTTO_OK)
        status = sotto_i_models_sort(c->model->allocator, c->model->n_aliases, order_aliases, c->model->aliases,
                                     &c->model->sorted_aliases);
    if (status == SOTTO_OK && left(c) > 0)
        sotto_log(SOTTO_LOG_WARN, "sotto_convert: %s: %llu bytes after the end are ignored\n", file(c),
                  (unsigned long long)left(c));
    return status;
}

enum sotto_status sotto_i_ct2_open(struct ct2_model * model, const struct sotto_allocator * allocator,
                                   const char * folder) {
    *model = (struct ct2_model){ .allocator = allocator };
    enum sotto_status status = sotto_i_models_stream_open(&model->stream, allocator, folder, "model.bin");
    struct cursor c = { .model = model, .in = { .stream = &model->stream } };
    uint64_t count = 0;
    if (status == SOTTO_OK)
        status = read_header(&c, &count);
    for (uint64_t i = 0; i < count && status == SOTTO_OK; i++)
        status = read_variable(&c);
    if (status == SOTTO_OK)
        status = sort_names(model);
    return status == SOTTO_OK ? read_aliases(&c) : status;
}

void sotto_i_ct2_close(struct ct2_model * model) {
    const struct sotto_allocator * allocator = model->allocator;
    for (size_t i = 0; i < model->n_variables; i++)
        sotto_mfree(allocator, model->variables[i].name, model->variables[i].name_size, 1);
    for (size_t i = 0; i < model->n_aliases; i++)
        sotto_mfree(allocator, model->aliases[i].name, model->aliases[i].name_size, 1);
    sotto_mfree(allocator, model->sorted, model->n_variables, sizeof(*model->sorted));
    sotto_mfree(allocator, model->sorted_aliases, model->n_aliases, sizeof(*model->sorted_aliases));
    sotto_mfree(allocator, model->variables, model->cap_variables, sizeof(*model->variables));
    sotto_mfree(allocator, model->aliases, model->cap_aliases, sizeof(*model->aliases));
    sotto_i_models_stream_close(&model->stream);
}
