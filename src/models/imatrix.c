/* SPDX-License-Identifier: MIT */
/* Importance matrices: gathering, and their files.
 *
 * Sums are kept as doubles and added in the order of the computation, on the thread that asked for it, so they do not
 * depend on the number of threads. What is handed out goes through the f32 of files: it is the same before writing and
 * after reading. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "sotto/backend.h"
#include "sotto/gguf.h"
#include "sotto/imatrix.h"

#define SUMS   ".in_sum2"
#define COUNTS ".counts"

struct entry {
    char name[SOTTO_MAX_NAME];
    int64_t n; /* columns */
    double count;
    double * sums;
    float * means;
};

struct sotto_imatrix {
    const struct sotto_allocator * allocator;
    struct entry * entries; /* sorted by name */
    size_t n, room;
    int64_t most_rows; /* of one product */
    void * row;        /* on its way from a device */
    float * floats;    /* and as f32 */
    size_t row_size, floats_size;
};

struct sotto_imatrix * sotto_imatrix_new(const struct sotto_allocator * allocator) {
    struct sotto_imatrix * imatrix = sotto_calloc(allocator, 1, sizeof(*imatrix));
    if (imatrix != NULL)
        imatrix->allocator = allocator;
    return imatrix;
}

void sotto_imatrix_free(struct sotto_imatrix * imatrix) {
    if (imatrix == NULL)
        return;
    const struct sotto_allocator * a = imatrix->allocator;
    for (size_t i = 0; i < imatrix->n; i++) {
        struct entry * e = &imatrix->entries[i];
        sotto_mfree(a, e->sums, (size_t)e->n, sizeof(*e->sums));
        sotto_mfree(a, e->means, (size_t)e->n, sizeof(*e->means));
    }
    sotto_mfree(a, imatrix->entries, imatrix->room, sizeof(*imatrix->entries));
    sotto_mfree(a, imatrix->row, imatrix->row_size, 1);
    sotto_mfree(a, imatrix->floats, imatrix->floats_size, 1);
    sotto_mfree(a, imatrix, 1, sizeof(*imatrix));
}

/* ---- entries ---- */

/* Where an entry of that name is, or belongs. */
static size_t place_of(const struct sotto_imatrix * imatrix, const char * name, bool * found) {
    size_t low = 0, high = imatrix->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (strcmp(imatrix->entries[middle].name, name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    *found = low < imatrix->n && strcmp(imatrix->entries[low].name, name) == 0;
    return low;
}

static bool make_room(struct sotto_imatrix * imatrix) {
    if (imatrix->n < imatrix->room)
        return true;
    size_t room = imatrix->room > 0 ? 2 * imatrix->room : 64;
    struct entry * entries = sotto_realloc(imatrix->allocator, imatrix->entries, imatrix->room, room, sizeof(*entries));
    if (entries == NULL)
        return false;
    imatrix->entries = entries;
    imatrix->room = room;
    return true;
}

/* The entry of that name, a new one of zeros if there is none; NULL and MEMORY. */
static struct entry * entry_of(struct sotto_imatrix * imatrix, const char * name, int64_t n) {
    bool found;
    size_t at = place_of(imatrix, name, &found);
    if (found)
        return &imatrix->entries[at];
    struct entry e = { .n = n };
    snprintf(e.name, sizeof(e.name), "%s", name);
    e.sums = sotto_calloc(imatrix->allocator, (size_t)n, sizeof(*e.sums));
    e.means = sotto_calloc(imatrix->allocator, (size_t)n, sizeof(*e.means));
    if (e.sums == NULL || e.means == NULL || !make_room(imatrix)) {
        sotto_mfree(imatrix->allocator, e.sums, (size_t)n, sizeof(*e.sums));
        sotto_mfree(imatrix->allocator, e.means, (size_t)n, sizeof(*e.means));
        return NULL;
    }
    memmove(&imatrix->entries[at + 1], &imatrix->entries[at], (imatrix->n - at) * sizeof(e));
    imatrix->entries[at] = e;
    imatrix->n++;
    return &imatrix->entries[at];
}

/* As a file would tell them. */
static void set_means(struct entry * e) {
    double count = (double)(float)e->count;
    for (int64_t i = 0; i < e->n; i++)
        e->means[i] = count > 0 ? (float)((double)(float)e->sums[i] / count) : 1.0f;
}

size_t sotto_imatrix_n_entries(const struct sotto_imatrix * imatrix) { return imatrix != NULL ? imatrix->n : 0; }

const char * sotto_imatrix_name(const struct sotto_imatrix * imatrix, size_t i) {
    return i < sotto_imatrix_n_entries(imatrix) ? imatrix->entries[i].name : NULL;
}

const float * sotto_imatrix_find(const struct sotto_imatrix * imatrix, const char * name, int64_t * n_columns) {
    bool found = false;
    size_t at = imatrix != NULL && name != NULL ? place_of(imatrix, name, &found) : 0;
    if (n_columns != NULL)
        *n_columns = found ? imatrix->entries[at].n : 0;
    return found ? imatrix->entries[at].means : NULL;
}

/* ---- gathering ---- */

static bool is_wanted(const struct sotto_tensor * t) {
    const struct sotto_tensor * weights = t->src[0];
    return t->op == SOTTO_OP_MUL_MAT && weights->name[0] != 0 && weights->ne[2] == 1 && weights->ne[3] == 1 &&
           weights->buffer != NULL &&
           sotto_backend_buffer_get_usage(weights->buffer) == SOTTO_BACKEND_BUFFER_USAGE_WEIGHTS;
}

static bool grow(const struct sotto_imatrix * imatrix, void ** buffer, size_t * size, size_t wanted) {
    if (wanted <= *size)
        return true;
    void * larger = sotto_realloc(imatrix->allocator, *buffer, *size, wanted, 1);
    if (larger == NULL)
        return false;
    *buffer = larger;
    *size = wanted;
    return true;
}

/* A row of x as floats; NULL with an error. */
static const float * row_of(struct sotto_imatrix * imatrix, const struct sotto_tensor * x, size_t offset) {
    size_t bytes = sotto_row_size(x->type, x->ne[0]);
    const void * row = (const char *)x->data + offset;
    if (x->buffer != NULL && !sotto_backend_buffer_is_host(x->buffer)) {
        if (!grow(imatrix, &imatrix->row, &imatrix->row_size, bytes) ||
            sotto_backend_tensor_get(x, imatrix->row, offset, bytes) != SOTTO_OK)
            return NULL;
        row = imatrix->row;
    }
    if (x->type == SOTTO_TYPE_F32)
        return row;
    void * floats = imatrix->floats;
    if (!grow(imatrix, &floats, &imatrix->floats_size, (size_t)x->ne[0] * sizeof(float)))
        return NULL;
    imatrix->floats = floats;
    sotto_get_type_traits(x->type)->to_float(row, floats, x->ne[0]);
    return floats;
}

static bool add_rows(struct sotto_imatrix * imatrix, struct entry * e, const struct sotto_tensor * x) {
    int64_t n_rows = sotto_nrows(x);
    for (int64_t r = 0; r < n_rows; r++) {
        size_t i1 = (size_t)(r % x->ne[1]);
        size_t i2 = (size_t)(r / x->ne[1] % x->ne[2]);
        size_t i3 = (size_t)(r / x->ne[1] / x->ne[2]);
        const float * row = row_of(imatrix, x, i1 * x->nb[1] + i2 * x->nb[2] + i3 * x->nb[3]);
        if (row == NULL)
            return false;
        for (int64_t i = 0; i < e->n; i++)
            e->sums[i] += (double)row[i] * (double)row[i];
    }
    e->count += (double)n_rows;
    if (n_rows > imatrix->most_rows)
        imatrix->most_rows = n_rows;
    set_means(e);
    return true;
}

static bool is_readable(const struct sotto_tensor * x) {
    return x->nb[0] == sotto_type_size(x->type) &&
           (x->type == SOTTO_TYPE_F32 || sotto_get_type_traits(x->type)->to_float != NULL);
}

bool sotto_imatrix_collect(struct sotto_tensor * tensor, bool ask, void * user_data) {
    struct sotto_imatrix * imatrix = user_data;
    if (ask)
        return is_wanted(tensor);
    const struct sotto_tensor * x = tensor->src[1];
    struct entry * e = entry_of(imatrix, tensor->src[0]->name, x->ne[0]);
    if (e == NULL)
        return false;
    if (e->n == x->ne[0] && is_readable(x))
        return add_rows(imatrix, e, x);
    sotto_fail(SOTTO_E_SHAPE, "sotto_imatrix_collect: '%s' is multiplied with %s rows of %lld, expected %lld floats",
               e->name, sotto_type_name(x->type), (long long)x->ne[0], (long long)e->n);
    return false;
}

/* ---- writing ---- */

struct writer {
    const struct sotto_imatrix * imatrix;
    struct sotto_gguf_context * gguf;
};

/* Tensors come in pairs, in the order of entries: sums, counts. */
static enum sotto_status put_values(void * user_data, int64_t id, void * dst, size_t offset, size_t size) {
    const struct writer * w = user_data;
    const struct entry * e = &w->imatrix->entries[id / 2];
    float * out = dst;
    size_t first = offset / sizeof(float);
    for (size_t i = 0; i < size / sizeof(float); i++)
        out[i] = id % 2 == 0 ? (float)e->sums[first + i] : (float)e->count;
    return SOTTO_OK;
}

static enum sotto_status add_tensor(struct writer * w, struct sotto_context * ctx, const char * name, const char * end,
                                    int64_t n) {
    char full[2 * SOTTO_MAX_NAME];
    int len = snprintf(full, sizeof(full), "%s%s", name, end);
    if (len >= SOTTO_MAX_NAME)
        return sotto_fail(SOTTO_E_PARAM, "sotto_imatrix_write: the name of '%s' is too long", name);
    sotto_reset(ctx);
    struct sotto_tensor * tensor = sotto_new_tensor_2d(ctx, SOTTO_TYPE_F32, n, 1);
    if (tensor == NULL)
        return sotto_context_status(ctx);
    sotto_set_name(tensor, full);
    enum sotto_status status = sotto_gguf_add_tensor(w->gguf, tensor);
    return status == SOTTO_OK ? sotto_gguf_set_tensor_reader(w->gguf, full, put_values, w) : status;
}

static enum sotto_status add_tensors(struct writer * w) {
    struct sotto_init_params init = { .mem_size = sotto_tensor_overhead(), .no_alloc = true };
    struct sotto_context * ctx = sotto_init_ext(init, w->imatrix->allocator);
    enum sotto_status status = ctx != NULL ? SOTTO_OK : SOTTO_E_MEMORY;
    for (size_t i = 0; i < w->imatrix->n && status == SOTTO_OK; i++) {
        const struct entry * e = &w->imatrix->entries[i];
        status = add_tensor(w, ctx, e->name, SUMS, e->n);
        if (status == SOTTO_OK)
            status = add_tensor(w, ctx, e->name, COUNTS, 1);
    }
    sotto_free(ctx);
    return status;
}

/* A chunk is the longest product, for Whisper a window; how many of them the most used matrix saw. */
static uint32_t n_chunks(const struct sotto_imatrix * imatrix) {
    double most = 0;
    for (size_t i = 0; i < imatrix->n; i++)
        most = imatrix->entries[i].count > most ? imatrix->entries[i].count : most;
    double chunks = imatrix->most_rows > 0 ? ceil(most / (double)imatrix->most_rows) : 1;
    return chunks < (double)UINT32_MAX ? (uint32_t)chunks : UINT32_MAX;
}

static enum sotto_status add_keys(struct writer * w, const char * const * datasets, size_t n) {
    const char ** names = sotto_malloc(w->imatrix->allocator, n, sizeof(*names));
    if (names == NULL && n > 0)
        return SOTTO_E_MEMORY;
    for (size_t i = 0; i < n; i++)
        names[i] = datasets[i];
    enum sotto_status status = sotto_gguf_set_val_str(w->gguf, "general.type", "imatrix");
    if (status == SOTTO_OK)
        status = sotto_gguf_set_arr_str(w->gguf, "imatrix.datasets", names, n);
    if (status == SOTTO_OK)
        status = sotto_gguf_set_val_u32(w->gguf, "imatrix.chunk_count", n_chunks(w->imatrix));
    if (status == SOTTO_OK)
        status = sotto_gguf_set_val_u32(w->gguf, "imatrix.chunk_size", (uint32_t)w->imatrix->most_rows);
    sotto_mfree(w->imatrix->allocator, names, n, sizeof(*names));
    return status;
}

enum sotto_status sotto_imatrix_write(const struct sotto_imatrix * imatrix, const char * path,
                                      const char * const * datasets, size_t n_datasets) {
    if (imatrix == NULL || path == NULL || (datasets == NULL && n_datasets > 0))
        return sotto_fail(SOTTO_E_NULLARG, "sotto_imatrix_write: %s is NULL",
                          imatrix == NULL ? "imatrix"
                          : path == NULL  ? "path"
                                          : "datasets");
    if (imatrix->n == 0)
        return sotto_fail(SOTTO_E_STATE, "sotto_imatrix_write: nothing was gathered; run the model first");
    struct writer w = { .imatrix = imatrix, .gguf = sotto_gguf_init_empty_ext(imatrix->allocator) };
    if (w.gguf == NULL)
        return SOTTO_E_MEMORY;
    enum sotto_status status = add_keys(&w, datasets, n_datasets);
    if (status == SOTTO_OK)
        status = add_tensors(&w);
    if (status == SOTTO_OK && !sotto_gguf_write_to_file(w.gguf, path, false))
        status = sotto_last_error();
    sotto_gguf_free(w.gguf);
    return status;
}

/* ---- reading ---- */

struct reader {
    const char * path;
    struct sotto_imatrix * imatrix;
    struct sotto_gguf_context * gguf;
};

static enum sotto_status corrupt(const struct reader * r, const char * name, const char * what) {
    return sotto_fail(SOTTO_E_MODEL_CORRUPT, "sotto_imatrix_open: %s: '%.64s' %s", r->path, name, what);
}

static enum sotto_status container(const struct reader * r, enum sotto_status status) {
    char text[512];
    snprintf(text, sizeof(text), "%s", sotto_last_error_text());
    return sotto_fail(sotto_gguf_model_status(status), "sotto_imatrix_open: %s: %s", r->path, text);
}

static int64_t elements(const struct reader * r, int64_t id) {
    const int64_t * ne = sotto_gguf_get_tensor_ne(r->gguf, id);
    return ne[0] * ne[1] * ne[2] * ne[3];
}

/* Sums of several matrices (experts) of one tensor lie one after another, a count for each. */
static enum sotto_status read_entry(const struct reader * r, struct entry * e, int64_t sums, int64_t counts) {
    int64_t columns = sotto_gguf_get_tensor_ne(r->gguf, sums)[0];
    float count = 0;
    enum sotto_status status = sotto_gguf_read_tensor(r->gguf, sums, e->means, 0, (size_t)e->n * sizeof(*e->means));
    for (int64_t i = 0; i < e->n && status == SOTTO_OK; i++) {
        if (i % columns == 0)
            status =
                sotto_gguf_read_tensor(r->gguf, counts, &count, (size_t)(i / columns) * sizeof(count), sizeof(count));
        if (!(count >= 0 && e->means[i] >= 0) || !isfinite(count) || !isfinite(e->means[i]))
            return corrupt(r, e->name, "holds a sum or count that is negative or not finite");
        e->sums[i] = (double)e->means[i];
        e->means[i] = count > 0 ? (float)(e->sums[i] / (double)count) : 1.0f;
    }
    e->count = (double)count;
    return status == SOTTO_OK ? SOTTO_OK : container(r, status);
}

static bool ends_so(const char * name, const char * end) {
    size_t n = strlen(name), m = strlen(end);
    return n > m && strcmp(name + n - m, end) == 0;
}

static enum sotto_status take_entry(const struct reader * r, int64_t sums) {
    char name[SOTTO_MAX_NAME + sizeof(COUNTS)];
    const char * full = sotto_gguf_get_tensor_name(r->gguf, sums);
    size_t len = strlen(full) - strlen(SUMS);
    if (len >= SOTTO_MAX_NAME)
        return corrupt(r, full, "has too long a name");
    snprintf(name, sizeof(name), "%.*s%s", (int)len, full, COUNTS);
    int64_t counts = sotto_gguf_find_tensor(r->gguf, name);
    name[len] = 0;
    if (counts < 0)
        return corrupt(r, name, "has sums but no counts");
    int64_t n = elements(r, sums);
    bool fits = sotto_gguf_get_tensor_type(r->gguf, sums) == SOTTO_TYPE_F32 &&
                sotto_gguf_get_tensor_type(r->gguf, counts) == SOTTO_TYPE_F32 && n > 0 &&
                elements(r, counts) == n / sotto_gguf_get_tensor_ne(r->gguf, sums)[0];
    if (!fits)
        return corrupt(r, name, "needs f32 sums and a count for each matrix");
    struct entry * e = entry_of(r->imatrix, name, n);
    return e != NULL ? read_entry(r, e, sums, counts) : SOTTO_E_MEMORY;
}

static enum sotto_status take_entries(const struct reader * r) {
    const char * type = "nothing";
    if (!sotto_gguf_get_str(r->gguf, "general.type", &type) || strcmp(type, "imatrix") != 0)
        return sotto_fail(SOTTO_E_MODEL_FORMAT, "sotto_imatrix_open: %s is a GGUF file, but no imatrix", r->path);
    enum sotto_status status = SOTTO_OK;
    for (int64_t id = 0; id < sotto_gguf_get_n_tensors(r->gguf) && status == SOTTO_OK; id++) {
        if (ends_so(sotto_gguf_get_tensor_name(r->gguf, id), SUMS))
            status = take_entry(r, id);
    }
    if (status == SOTTO_OK && r->imatrix->n == 0)
        status = sotto_fail(SOTTO_E_MODEL_CORRUPT, "sotto_imatrix_open: %s holds no sums", r->path);
    return status;
}

enum sotto_status sotto_imatrix_open(const char * path, const struct sotto_allocator * allocator,
                                     struct sotto_imatrix ** imatrix) {
    if (path == NULL || imatrix == NULL)
        return sotto_fail(SOTTO_E_NULLARG, "sotto_imatrix_open: %s is NULL", path == NULL ? "path" : "imatrix");
    *imatrix = NULL;
    struct reader r = { .path = path };
    struct sotto_gguf_open_params params = sotto_gguf_open_params_default();
    params.flags = SOTTO_GGUF_OPEN_TAIL_PAD | SOTTO_GGUF_OPEN_CHECK_EXTENT;
    params.allocator = allocator;
    r.gguf = sotto_gguf_open(path, &params);
    if (r.gguf == NULL)
        return container(&r, sotto_last_error());
    r.imatrix = sotto_imatrix_new(allocator);
    enum sotto_status status = r.imatrix != NULL ? take_entries(&r) : SOTTO_E_MEMORY;
    sotto_gguf_free(r.gguf);
    if (status == SOTTO_OK)
        *imatrix = r.imatrix;
    else
        sotto_imatrix_free(r.imatrix);
    return status;
}
