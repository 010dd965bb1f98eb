/* SPDX-License-Identifier: MIT */
/* Loading in three steps: name every tensor that the sizes ask for and check it against the file's directory; allocate
 * one buffer for matrices and one for the rest; read tensor by tensor, a block of rows at a time, through one staging
 * area. The file is never mapped: that would hold the weights twice, and make a disk error a signal. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "sotto/quant.h"

#include "weights.h"

#define STAGE_ELEMENTS (1 << 18)

struct loader {
    struct sotto_model * model;
    const char * path;
    struct sotto_gguf_context * gguf;
    enum sotto_status status; /* first failure; later steps do nothing */
    int64_t n_found;
    char missing[512]; /* names, comma between them */
    bool check;
    uint8_t *raw, *wide; /* staging: as in the file, and widened */
    size_t stage;        /* elements each of them holds, as f32 */
};

static bool failed(const struct loader * l) { return l->status != SOTTO_OK; }

/* ---- naming and checking ---- */

static void note_missing(struct loader * l, const char * name) {
    size_t used = strlen(l->missing);
    snprintf(l->missing + used, sizeof(l->missing) - used, "%s%s", used ? ", " : "", name);
}

static bool same_extents(const int64_t * a, const int64_t * b) { return memcmp(a, b, 4 * sizeof(*a)) == 0; }

/* Types of weights: those whose rows can be read as floats. */
static bool readable(enum sotto_type type) { return type == SOTTO_TYPE_F32 || sotto_get_type_traits(type)->to_float; }

/* Is tensor `name` in the file with these extents and a type that can be read? Its type, or COUNT. */
static enum sotto_type look_up(struct loader * l, const char * name, const int64_t * ne) {
    int64_t id = sotto_gguf_find_tensor(l->gguf, name);
    if (id < 0) {
        note_missing(l, name);
        return SOTTO_TYPE_COUNT;
    }
    l->n_found++;
    const int64_t * have = sotto_gguf_get_tensor_ne(l->gguf, id);
    if (!same_extents(have, ne)) {
        l->status = sotto_fail(SOTTO_E_MODEL_TENSOR_SHAPE,
                               "sotto_model_open: %s: tensor %s is [%lld, %lld, %lld], want [%lld, %lld, %lld]",
                               l->path, name, (long long)have[0], (long long)have[1], (long long)have[2],
                               (long long)ne[0], (long long)ne[1], (long long)ne[2]);
        return SOTTO_TYPE_COUNT;
    }
    enum sotto_type type = sotto_gguf_get_tensor_type(l->gguf, id);
    if (readable(type))
        return type;
    l->status =
        sotto_fail(SOTTO_E_MODEL_TENSOR_TYPE,
                   "sotto_model_open: %s: tensor %s has type %s, which is none for weights; convert with --type "
                   "f16",
                   l->path, name, sotto_type_name(type));
    return SOTTO_TYPE_COUNT;
}

/* The record of a matrix in the packed context, of the file's type, rows of ne0*ne1 (a convolution's) or ne0 elements. */
static struct sotto_tensor * matrix(struct loader * l, const char * name, int64_t ne0, int64_t ne1, int64_t ne2) {
    const int64_t ne[4] = { ne0, ne1, ne2, 1 };
    enum sotto_type type = failed(l) ? SOTTO_TYPE_COUNT : look_up(l, name, ne);
    if (type == SOTTO_TYPE_COUNT)
        return NULL;
    struct sotto_context * ctx = l->model->matrices;
    bool kernel = ne2 > 1;
    struct sotto_tensor * t = sotto_new_tensor_2d(ctx, type, kernel ? ne0 * ne1 : ne0, kernel ? ne2 : ne1);
    if (!t)
        l->status = sotto_context_status(ctx);
    else
        sotto_set_name(t, name);
    return t;
}

/* A vector or table in the plain context, always f32. */
static struct sotto_tensor * plain(struct loader * l, const char * name, int64_t ne0, int64_t ne1) {
    const int64_t ne[4] = { ne0, ne1, 1, 1 };
    if (failed(l) || look_up(l, name, ne) == SOTTO_TYPE_COUNT)
        return NULL;
    struct sotto_tensor * t = sotto_new_tensor_2d(l->model->vectors, SOTTO_TYPE_F32, ne0, ne1);
    if (!t)
        l->status = sotto_context_status(l->model->vectors);
    else
        sotto_set_name(t, name);
    return t;
}

static const char * full_name(char * out, size_t size, const char * place, const char * stem, const char * end) {
    snprintf(out, size, "%s%s%s", place, stem, end);
    return out;
}

static struct sotto_i_affine affine(struct loader * l, const char * place, const char * stem) {
    char name[SOTTO_MAX_NAME];
    int64_t d = l->model->hp.width;
    struct sotto_i_affine a;
    a.weight = plain(l, full_name(name, sizeof(name), place, stem, ".weight"), d, 1);
    a.bias = plain(l, full_name(name, sizeof(name), place, stem, ".bias"), d, 1);
    return a;
}

static struct sotto_i_linear linear(struct loader * l, const char * place, const char * stem, int64_t in, int64_t out,
                                    bool bias) {
    char name[SOTTO_MAX_NAME];
    struct sotto_i_linear w;
    w.weight = matrix(l, full_name(name, sizeof(name), place, stem, ".weight"), in, out, 1);
    w.bias = bias ? plain(l, full_name(name, sizeof(name), place, stem, ".bias"), out, 1) : NULL;
    return w;
}

static struct sotto_i_linear kernel(struct loader * l, const char * stem, int64_t in) {
    char name[SOTTO_MAX_NAME];
    int64_t d = l->model->hp.width;
    struct sotto_i_linear w;
    w.weight = matrix(l, full_name(name, sizeof(name), "enc.", stem, ".weight"), 3, in, d);
    w.bias = plain(l, full_name(name, sizeof(name), "enc.", stem, ".bias"), d, 1);
    return w;
}

static struct sotto_i_attention attention(struct loader * l, const char * place, const char * kind) {
    char stem[32];
    int64_t d = l->model->hp.width;
    struct sotto_i_attention a;
    a.norm = affine(l, place, full_name(stem, sizeof(stem), kind, "attn_norm", ""));
    a.q = linear(l, place, full_name(stem, sizeof(stem), kind, "attn_q", ""), d, d, true);
    a.k = linear(l, place, full_name(stem, sizeof(stem), kind, "attn_k", ""), d, d, false);
    a.v = linear(l, place, full_name(stem, sizeof(stem), kind, "attn_v", ""), d, d, true);
    a.out = linear(l, place, full_name(stem, sizeof(stem), kind, "attn_output", ""), d, d, true);
    return a;
}

static void name_layer(struct loader * l, struct sotto_i_layer * layer, const char * stack, int i, int64_t ff) {
    char place[24];
    int64_t d = l->model->hp.width;
    snprintf(place, sizeof(place), "%s.blk.%d.", stack, i);
    layer->self = attention(l, place, "");
    if (strcmp(stack, "dec") == 0)
        layer->cross = attention(l, place, "cross_");
    layer->ffn_norm = affine(l, place, "ffn_norm");
    layer->up = linear(l, place, "ffn_up", d, ff, true);
    layer->down = linear(l, place, "ffn_down", ff, d, true);
}

static struct sotto_tensor * kernel_shape(struct loader * l, int64_t in) {
    struct sotto_tensor * t = sotto_new_tensor_2d(l->model->vectors, SOTTO_TYPE_F32, 3, in);
    if (!t && !failed(l))
        l->status = sotto_context_status(l->model->vectors);
    return t;
}

/* The encoder's table of positions is optional: it can be calculated. */
static struct sotto_tensor * audio_positions(struct loader * l) {
    const char * name = "enc.pos_embd.weight";
    int64_t d = l->model->hp.width, n = l->model->hp.n_audio_ctx;
    if (failed(l) || sotto_gguf_find_tensor(l->gguf, name) >= 0)
        return plain(l, name, d, n);
    struct sotto_tensor * t = sotto_new_tensor_2d(l->model->vectors, SOTTO_TYPE_F32, d, n);
    if (!t)
        l->status = sotto_context_status(l->model->vectors);
    return t;
}

static void name_tensors(struct loader * l) {
    struct sotto_model * m = l->model;
    const struct sotto_i_hparams * hp = &m->hp;
    m->conv1 = kernel(l, "conv1", hp->n_mels);
    m->conv2 = kernel(l, "conv2", hp->width);
    m->conv1_shape = kernel_shape(l, hp->n_mels);
    m->conv2_shape = kernel_shape(l, hp->width);
    m->audio_pos = audio_positions(l);
    for (int i = 0; i < hp->n_audio_layers; i++)
        name_layer(l, &m->layers[i], "enc", i, hp->audio_ff);
    m->audio_norm = affine(l, "enc.", "output_norm");
    m->embedding = matrix(l, "dec.token_embd.weight", hp->width, hp->n_vocab, 1);
    m->text_pos = plain(l, "dec.pos_embd.weight", hp->width, hp->n_text_ctx);
    for (int i = 0; i < hp->n_text_layers; i++)
        name_layer(l, &m->layers[hp->n_audio_layers + i], "dec", i, hp->text_ff);
    m->text_norm = affine(l, "dec.", "output_norm");
    if (m->embedding)
        m->weight_type = m->embedding->type;
}

static bool is_ours(const struct loader * l, const char * name) {
    return sotto_get_tensor(l->model->matrices, name) || sotto_get_tensor(l->model->vectors, name);
}

static void refuse_strangers(struct loader * l) {
    if (failed(l))
        return;
    if (l->missing[0]) {
        l->status = sotto_fail(SOTTO_E_MODEL_TENSOR_MISSING,
                               "sotto_model_open: %s: the file lacks %s; convert the model again", l->path, l->missing);
        return;
    }
    int64_t n = sotto_gguf_get_n_tensors(l->gguf);
    for (int64_t i = 0; n != l->n_found && i < n; i++) {
        const char * name = sotto_gguf_get_tensor_name(l->gguf, i);
        if (is_ours(l, name))
            continue;
        l->status = sotto_fail(SOTTO_E_MODEL_TENSOR_UNKNOWN, "sotto_model_open: %s: tensor %s is no part of the model",
                               l->path, name);
        return;
    }
}

/* ---- memory ---- */

static struct sotto_context * records(struct loader * l, size_t n) {
    struct sotto_init_params params = { n * sotto_tensor_overhead(), NULL, true };
    struct sotto_context * ctx = sotto_init_ext(params, l->model->allocator);
    if (!ctx)
        l->status = SOTTO_E_MEMORY;
    return ctx;
}

/* Layers hold 6 (encoder) or 10 (decoder) matrices and 9 or 14 vectors; outside them there are 3 and 10. */
static void make_records(struct loader * l) {
    struct sotto_model * m = l->model;
    size_t enc = (size_t)m->hp.n_audio_layers, dec = (size_t)m->hp.n_text_layers;
    m->layers = sotto_calloc(m->allocator, enc + dec, sizeof(*m->layers));
    if (!m->layers)
        l->status = SOTTO_E_MEMORY;
    if (!failed(l))
        m->matrices = records(l, 3 + 6 * enc + 10 * dec);
    if (!failed(l))
        m->vectors = records(l, 10 + 9 * enc + 14 * dec);
}

static void allocate(struct loader * l) {
    struct sotto_model * m = l->model;
    if (failed(l))
        return;
    m->packed = sotto_backend_alloc_ctx_tensors_from_buft_ext(m->matrices, sotto_backend_cpu_packed_buffer_type(),
                                                              m->allocator);
    if (m->packed)
        m->plain =
            sotto_backend_alloc_ctx_tensors_from_buft_ext(m->vectors, sotto_backend_cpu_buffer_type(), m->allocator);
    if (!m->packed || !m->plain) {
        l->status = sotto_last_error();
        return;
    }
    sotto_backend_buffer_set_usage(m->packed, SOTTO_BACKEND_BUFFER_USAGE_WEIGHTS);
    sotto_backend_buffer_set_usage(m->plain, SOTTO_BACKEND_BUFFER_USAGE_WEIGHTS);
}

/* ---- reading ---- */

static size_t bytes_of(enum sotto_type type, size_t n) {
    return n / (size_t)sotto_blck_size(type) * sotto_type_size(type);
}

static const void * widen(struct loader * l, enum sotto_type from, enum sotto_type to, size_t n) {
    if (from == to)
        return l->raw;
    sotto_get_type_traits(from)->to_float(l->raw, (float *)(void *)l->wide, (int64_t)n);
    return l->wide;
}

/* n elements from `first` on, whole rows of t. */
static enum sotto_status read_block(struct loader * l, int64_t id, struct sotto_tensor * t, size_t first, size_t n) {
    enum sotto_type from = sotto_gguf_get_tensor_type(l->gguf, id);
    size_t size = bytes_of(from, n);
    enum sotto_status status = sotto_gguf_read_tensor(l->gguf, id, l->raw, bytes_of(from, first), size);
    if (status != SOTTO_OK) {
        char text[512];
        snprintf(text, sizeof(text), "%s", sotto_last_error_text());
        status = status == SOTTO_E_GGUF_TRUNCATED ? SOTTO_E_MODEL_TRUNCATED : SOTTO_E_IO;
        return sotto_fail(status, "sotto_model_open: %s: tensor %s: %s", l->path, t->name, text);
    }
    if (l->check && !sotto_validate_row_data(from, l->raw, size))
        return sotto_fail(SOTTO_E_MODEL_NAN, "sotto_model_open: %s: tensor %s holds NaN or infinity", l->path, t->name);
    return sotto_backend_tensor_set(t, widen(l, from, t->type, n), bytes_of(t->type, first), bytes_of(t->type, n));
}

static size_t block_rows(size_t row) {
    size_t rows = STAGE_ELEMENTS / row / SOTTO_CPU_PANEL * SOTTO_CPU_PANEL;
    return rows > 0 ? rows : SOTTO_CPU_PANEL;
}

static void read_tensor(struct loader * l, struct sotto_tensor * t) {
    int64_t id = sotto_gguf_find_tensor(l->gguf, t->name);
    size_t row = (size_t)t->ne[0], n = (size_t)sotto_nelements(t), step = block_rows(row) * row;
    for (size_t at = 0; at < n && !failed(l); at += step)
        l->status = read_block(l, id, t, at, n - at < step ? n - at : step);
}

static void read_all(struct loader * l, struct sotto_context * ctx) {
    for (struct sotto_tensor * t = sotto_get_first_tensor(ctx); t && !failed(l); t = sotto_get_next_tensor(ctx, t))
        if (t->name[0])
            read_tensor(l, t);
}

static size_t longest_row(const struct sotto_context * ctx) {
    int64_t most = 1;
    for (struct sotto_tensor * t = sotto_get_first_tensor(ctx); t; t = sotto_get_next_tensor(ctx, t))
        if (t->ne[0] > most)
            most = t->ne[0];
    return (size_t)most;
}

static void fill(struct loader * l) {
    if (failed(l))
        return;
    const struct sotto_allocator * allocator = l->model->allocator;
    size_t a = longest_row(l->model->matrices), b = longest_row(l->model->vectors), row = a > b ? a : b;
    l->stage = row * SOTTO_CPU_PANEL > STAGE_ELEMENTS ? row * SOTTO_CPU_PANEL : STAGE_ELEMENTS;
    l->raw = sotto_malloc(allocator, 2 * l->stage, sizeof(float));
    if (!l->raw) {
        l->status = SOTTO_E_MEMORY;
        return;
    }
    l->wide = l->raw + l->stage * sizeof(float);
    read_all(l, l->model->matrices);
    read_all(l, l->model->vectors);
    sotto_mfree(allocator, l->raw, 2 * l->stage, sizeof(float));
}

/* Position t, column c < D/2: sin(t r_c), column D/2 + c: cos(t r_c), r_c falling from 1 to 1/10000. */
static void calculate_positions(struct sotto_tensor * table) {
    float * data = sotto_get_data_f32(table);
    int64_t half = table->ne[0] / 2;
    double step = half > 1 ? log(10000.0) / (double)(half - 1) : 0;
    for (int64_t t = 0; t < table->ne[1]; t++) {
        for (int64_t c = 0; c < half; c++) {
            double angle = (double)t * exp(-(double)c * step);
            data[t * table->ne[0] + c] = (float)sin(angle);
            data[t * table->ne[0] + half + c] = (float)cos(angle);
        }
    }
}

enum sotto_status sotto_i_weights_load(struct sotto_model * model, const char * path, struct sotto_gguf_context * gguf,
                                       bool check) {
    struct loader l = { .model = model, .path = path, .gguf = gguf, .check = check };
    make_records(&l);
    if (failed(&l))
        return l.status;
    name_tensors(&l);
    refuse_strangers(&l);
    allocate(&l);
    fill(&l);
    if (!failed(&l) && !model->audio_pos->name[0])
        calculate_positions(model->audio_pos);
    return l.status;
}
