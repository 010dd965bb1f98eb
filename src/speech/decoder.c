/* SPDX-License-Identifier: MIT */
/* Spec 3.3, with the choice of 5.5 8e behind it as graph nodes over the vocabulary. */
#include "decoder.h"
#include "layers.h"

#define LAYER_NODES 44
#define OTHER_NODES 40
#define N_INPUTS    11

static const int widths[SOTTO_I_N_WIDTHS] = { 1, 4, 16, SOTTO_I_MAX_WIDTH };

static size_t n_nodes(const struct sotto_i_hparams * hp) {
    return LAYER_NODES * (size_t)hp->n_text_layers + OTHER_NODES;
}

static struct sotto_tensor * new_columns(struct sotto_context * ctx) {
    return sotto_new_tensor_1d(ctx, SOTTO_TYPE_I32, SOTTO_I_MAX_WIDTH);
}

static enum sotto_status define_inputs(struct sotto_i_decoder * d, int n_beams) {
    struct sotto_i_inputs * in = &d->in;
    struct sotto_context * ctx = d->data;
    in->tokens = new_columns(ctx);
    in->positions = new_columns(ctx);
    in->rows = new_columns(ctx);
    in->seq = new_columns(ctx);
    in->len = new_columns(ctx);
    in->cross_seq = new_columns(ctx);
    in->cross_len = new_columns(ctx);
    in->wanted = sotto_new_tensor_1d(ctx, SOTTO_TYPE_I32, 2);
    in->mask = sotto_new_tensor_1d(ctx, SOTTO_TYPE_F32, d->model->hp.n_vocab);
    if (n_beams > 0) {
        in->masks = sotto_new_tensor_2d(ctx, SOTTO_TYPE_F32, d->model->hp.n_vocab, n_beams);
        in->cool = sotto_new_tensor_1d(ctx, SOTTO_TYPE_F32, 1);
    }
    return sotto_context_status(ctx);
}

/* ---- graph ---- */

/* What the graph under construction needs everywhere. */
struct build {
    struct sotto_context * ctx;
    const struct sotto_i_decoder * d;
    int heads;
    float scale;
    struct sotto_tensor *tokens, *positions, *rows, *seq, *len, *cross_seq, *cross_len;
    struct sotto_tensor * wanted; /* NULL for all columns */
};

static struct build begin(const struct sotto_i_decoder * d, int width, int n_wanted) {
    struct sotto_context * ctx = d->graphs;
    const struct sotto_i_inputs * in = &d->in;
    int heads = d->model->hp.n_text_heads;
    struct build b = { .ctx = ctx, .d = d, .heads = heads, .scale = sotto_i_attention_scale(d->model, heads) };
    b.tokens = sotto_view_1d(ctx, in->tokens, width, 0);
    b.positions = sotto_view_1d(ctx, in->positions, width, 0);
    b.rows = sotto_view_1d(ctx, in->rows, width, 0);
    b.seq = sotto_view_1d(ctx, in->seq, width, 0);
    b.len = sotto_view_1d(ctx, in->len, width, 0);
    b.cross_len = sotto_view_1d(ctx, in->cross_len, width, 0);
    b.cross_seq = sotto_view_1d(ctx, in->cross_seq, width, 0);
    if (n_wanted < width || width == 1)
        b.wanted = sotto_view_1d(ctx, in->wanted, n_wanted, 0);
    return b;
}

static struct sotto_tensor * attend(const struct build * b, const struct sotto_i_attention * a, struct sotto_tensor * x,
                                    struct sotto_tensor * q, struct sotto_tensor * k, struct sotto_tensor * v,
                                    bool cross) {
    q = sotto_i_split_heads(b->ctx, q, b->heads);
    struct sotto_tensor * table = cross ? b->d->cross->table : b->d->cache.table;
    struct sotto_tensor * seq = cross ? b->cross_seq : b->seq;
    struct sotto_tensor * y = sotto_attn_rows(b->ctx, q, k, v, table, seq, cross ? b->cross_len : b->len, b->scale);
    return sotto_i_join_heads(b->ctx, &a->out, x, y);
}

static struct sotto_tensor * self_attention(const struct build * b, const struct sotto_i_attention * a,
                                            const struct sotto_i_kv * kv, struct sotto_tensor * x) {
    struct sotto_tensor * h = sotto_i_normed(b->ctx, b->d->model, x, &a->norm);
    struct sotto_tensor * q = sotto_i_project(b->ctx, &a->q, h);
    struct sotto_tensor * k = sotto_set_rows(b->ctx, kv->k, sotto_i_project(b->ctx, &a->k, h), b->rows);
    struct sotto_tensor * v = sotto_set_rows(b->ctx, kv->v, sotto_i_project(b->ctx, &a->v, h), b->rows);
    k = sotto_i_split_heads(b->ctx, k, b->heads);
    v = sotto_i_split_heads(b->ctx, v, b->heads);
    return attend(b, a, x, q, k, v, false);
}

static struct sotto_tensor * cross_attention(const struct build * b, const struct sotto_i_attention * a,
                                             const struct sotto_i_kv * kv, struct sotto_tensor * x) {
    struct sotto_tensor * h = sotto_i_normed(b->ctx, b->d->model, x, &a->norm);
    struct sotto_tensor * k = sotto_permute(b->ctx, kv->k, 2, 0, 1, 3);
    struct sotto_tensor * v = sotto_permute(b->ctx, kv->v, 0, 2, 1, 3);
    return attend(b, a, x, sotto_i_project(b->ctx, &a->q, h), k, v, true);
}

static struct sotto_tensor * build_logits(const struct build * b) {
    const struct sotto_model * model = b->d->model;
    struct sotto_context * ctx = b->ctx;
    struct sotto_tensor * x = sotto_add(ctx, sotto_get_rows(ctx, model->embedding, b->tokens),
                                        sotto_get_rows(ctx, model->text_pos, b->positions));
    for (int i = 0; i < model->hp.n_text_layers; i++) {
        const struct sotto_i_layer * layer = sotto_i_text_layer(model, i);
        x = self_attention(b, &layer->self, &b->d->cache.layers[i], x);
        x = cross_attention(b, &layer->cross, &b->d->cross->layers[i], x);
        x = sotto_i_feed_forward(ctx, model, layer, x);
    }
    if (b->wanted)
        x = sotto_get_rows(ctx, x, b->wanted);
    return sotto_mul_mat(ctx, model->embedding, sotto_i_normed(ctx, model, x, &model->text_norm));
}

/* Elements first .. first + n - 1 of column `column`. */
static struct sotto_tensor * slice(struct sotto_context * ctx, struct sotto_tensor * x, int column, int first, int n) {
    return x ? sotto_view_1d(ctx, x, n, (size_t)column * x->nb[1] + (size_t)first * sizeof(float)) : NULL;
}

static void build_choice(struct sotto_context * ctx, const struct sotto_i_decoder * d, struct sotto_i_step * s) {
    int n = d->model->hp.n_vocab, beg = sotto_i_model_specials(d->model)->beg;
    struct sotto_tensor * masked = sotto_add(ctx, slice(ctx, s->logits, s->n_wanted - 1, 0, n), d->in.mask);
    s->probs = sotto_soft_max(ctx, masked);
    s->text = sotto_top_k(ctx, slice(ctx, masked, 0, 0, beg), 1);
    s->timestamp = sotto_top_k(ctx, slice(ctx, masked, 0, beg, n - beg), 1);
    s->timestamp_sum = sotto_sum_rows(ctx, slice(ctx, s->probs, 0, beg, n - beg));
    s->plain = s->n_wanted > 1 ? sotto_soft_max(ctx, slice(ctx, s->logits, 0, 0, n)) : NULL;
}

static enum sotto_status expand(struct sotto_cgraph * graph, struct sotto_tensor * const * outputs, int n) {
    for (int i = 0; i < n; i++) {
        if (outputs[i])
            sotto_set_output(outputs[i]);
        enum sotto_status status = sotto_build_forward_expand(graph, outputs[i]);
        if (status != SOTTO_OK)
            return status;
    }
    return SOTTO_OK;
}

/* Plan a graph of these outputs. */
static enum sotto_status make_plan(struct sotto_i_decoder * d, struct sotto_tensor * const * outputs, int n,
                                   sotto_backend_graph_plan_t * plan) {
    struct sotto_cgraph * graph = sotto_new_graph_custom(d->graphs, n_nodes(&d->model->hp), false);
    if (!graph)
        return sotto_context_status(d->graphs);
    enum sotto_status status = expand(graph, outputs, n);
    if (status != SOTTO_OK)
        return status;
    *plan = sotto_backend_graph_plan_create(d->backend, graph);
    return *plan ? SOTTO_OK : sotto_last_error();
}

static enum sotto_status build_step(struct sotto_i_decoder * d, struct sotto_i_step * s) {
    struct build b = begin(d, s->width, s->n_wanted);
    s->logits = build_logits(&b);
    build_choice(d->graphs, d, s);
    struct sotto_tensor * outputs[] = { s->logits, s->probs, s->text, s->timestamp, s->timestamp_sum, s->plain };
    return make_plan(d, outputs, s->plain ? 6 : 5, &s->plan);
}

/* Elements first .. first + n - 1 of each column. */
static struct sotto_tensor * band(struct sotto_context * ctx, struct sotto_tensor * x, int first, int n) {
    return x ? sotto_view_2d(ctx, x, n, x->ne[1], x->nb[1], (size_t)first * sizeof(float)) : NULL;
}

static enum sotto_status build_beam_step(struct sotto_i_decoder * d, struct sotto_i_beam_step * s) {
    int n = d->model->hp.n_vocab, beg = sotto_i_model_specials(d->model)->beg;
    struct sotto_context * ctx = d->graphs;
    struct build b = begin(d, s->width, s->width);
    struct sotto_tensor * masked = sotto_add(ctx, build_logits(&b), d->in.masks);
    s->probs = sotto_soft_max(ctx, masked);
    s->drawn = sotto_soft_max(ctx, sotto_mul(ctx, masked, d->in.cool));
    s->text = sotto_top_k(ctx, band(ctx, masked, 0, beg), s->width + 1);
    s->timestamp = sotto_top_k(ctx, band(ctx, masked, beg, n - beg), s->width + 1);
    s->timestamp_sum = sotto_sum_rows(ctx, band(ctx, s->probs, beg, n - beg));
    struct sotto_tensor * outputs[] = { s->probs, s->drawn, s->text, s->timestamp, s->timestamp_sum };
    return make_plan(d, outputs, 5, &s->plan);
}

static enum sotto_status build(struct sotto_i_decoder * d, int n_beams) {
    for (int i = 0; i < SOTTO_I_N_WIDTHS; i++) {
        struct sotto_i_step * s = &d->steps[i];
        s->width = widths[i];
        s->n_wanted = s->width > 1 ? 2 : 1;
        enum sotto_status status = build_step(d, s);
        if (status != SOTTO_OK)
            return status;
    }
    d->beams.width = n_beams;
    return n_beams > 0 ? build_beam_step(d, &d->beams) : SOTTO_OK;
}

/* ---- life ---- */

static struct sotto_context * new_records(const struct sotto_i_decoder * d, size_t bytes) {
    struct sotto_init_params params = { bytes, NULL, true };
    return sotto_init_ext(params, d->allocator);
}

/* Tensors that stay, and their data. */
static enum sotto_status make_data(struct sotto_i_decoder * d, const struct sotto_i_decoder_params * p) {
    const struct sotto_i_hparams * hp = &d->model->hp;
    d->data = new_records(d, (sotto_i_kvcache_n_tensors(hp) + N_INPUTS) * sotto_tensor_overhead());
    if (!d->data)
        return SOTTO_E_MEMORY;
    enum sotto_status status = sotto_i_kvcache_define(&d->cache, d->data, hp, p->cache_type, p->n_beams, p->n_sampled,
                                                      SOTTO_I_MAX_WIDTH, d->allocator);
    if (status == SOTTO_OK)
        status = define_inputs(d, p->n_beams);
    if (status != SOTTO_OK)
        return status;
    d->buffer = sotto_backend_alloc_ctx_tensors_from_buft_ext(d->data, sotto_backend_cpu_buffer_type(), d->allocator);
    if (!d->buffer)
        return SOTTO_E_MEMORY;
    sotto_backend_buffer_clear(d->buffer, 0);
    sotto_i_kvcache_init(&d->cache);
    return SOTTO_OK;
}

enum sotto_status sotto_i_decoder_init(struct sotto_i_decoder * decoder, const struct sotto_i_decoder_params * params) {
    const size_t n = n_nodes(&params->model->hp);
    const size_t n_graphs = SOTTO_I_N_WIDTHS + (params->n_beams > 0);
    *decoder = (struct sotto_i_decoder){
        .model = params->model, .allocator = params->allocator, .backend = params->backend, .cross = params->cross
    };
    enum sotto_status status = make_data(decoder, params);
    if (status != SOTTO_OK)
        return status;
    decoder->graphs =
        new_records(decoder, n_graphs * (n * sotto_tensor_overhead() + sotto_graph_overhead_custom(n, false)));
    return decoder->graphs ? build(decoder, params->n_beams) : SOTTO_E_MEMORY;
}

void sotto_i_decoder_free(struct sotto_i_decoder * decoder) {
    for (int i = 0; i < SOTTO_I_N_WIDTHS; i++)
        if (decoder->steps[i].plan)
            sotto_backend_graph_plan_free(decoder->backend, decoder->steps[i].plan);
    if (decoder->beams.plan)
        sotto_backend_graph_plan_free(decoder->backend, decoder->beams.plan);
    sotto_backend_buffer_free(decoder->buffer);
    sotto_free(decoder->graphs);
    sotto_free(decoder->data);
    sotto_i_kvcache_free(&decoder->cache, decoder->allocator);
}

/* ---- running ---- */

/* What column i computes: a token at a position of a sequence, its key and value into `row`. */
static void set_column(struct sotto_i_decoder * d, int i, int32_t token, int position, int seq, int32_t row) {
    ((int32_t *)sotto_get_data(d->in.tokens))[i] = token;
    ((int32_t *)sotto_get_data(d->in.positions))[i] = position;
    ((int32_t *)sotto_get_data(d->in.rows))[i] = row;
    ((int32_t *)sotto_get_data(d->in.seq))[i] = seq;
    ((int32_t *)sotto_get_data(d->in.len))[i] = position + 1;
    ((int32_t *)sotto_get_data(d->in.cross_len))[i] = d->model->hp.n_audio_ctx;
}

/* Padding: the column sees nothing and writes a spare row of its own. */
static void set_padding(struct sotto_i_decoder * d, int i) {
    set_column(d, i, 0, 0, 0, d->cache.n_rows + i);
    ((int32_t *)sotto_get_data(d->in.len))[i] = 0;
    ((int32_t *)sotto_get_data(d->in.cross_len))[i] = 0;
}

static void set_inputs(struct sotto_i_decoder * d, const struct sotto_i_step * s, const int32_t * tokens, int n,
                       int n_past, int wanted) {
    for (int i = 0; i < n; i++)
        set_column(d, i, tokens[i], n_past + i, 0, n_past + i);
    for (int i = n; i < s->width; i++)
        set_padding(d, i);
    int32_t * columns = sotto_get_data(d->in.wanted);
    columns[0] = s->n_wanted > 1 ? wanted : n - 1;
    columns[1] = n - 1;
}

/* The narrowest graph that holds n columns; the no-speech row needs one that computes two columns of logits. */
static const struct sotto_i_step * pick(const struct sotto_i_decoder * d, int n, bool two) {
    for (int i = 0; i < SOTTO_I_N_WIDTHS; i++)
        if (d->steps[i].width >= n && (!two || d->steps[i].n_wanted > 1))
            return &d->steps[i];
    return &d->steps[SOTTO_I_N_WIDTHS - 1];
}

static enum sotto_status read_no_speech(struct sotto_i_decoder * d, const struct sotto_i_step * s) {
    size_t at = (size_t)sotto_i_model_specials(d->model)->nosp * sizeof(float);
    return sotto_backend_tensor_get(s->plain, &d->no_speech_prob, at, sizeof(float));
}

static enum sotto_status run_chunk(struct sotto_i_decoder * d, const int32_t * tokens, int n, int n_past, int sot) {
    bool has_sot = sot >= 0 && sot < n;
    const struct sotto_i_step * s = pick(d, n, has_sot);
    set_inputs(d, s, tokens, n, n_past, has_sot ? sot : 0);
    enum sotto_status status = sotto_backend_graph_plan_compute(d->backend, s->plan);
    if (status != SOTTO_OK)
        return status;
    d->last = s;
    d->n_decoded = n_past + n;
    return has_sot ? read_no_speech(d, s) : SOTTO_OK;
}

enum sotto_status sotto_i_decoder_run(struct sotto_i_decoder * decoder, const int32_t * tokens, int n, int n_past,
                                      int sot) {
    for (int at = 0; at < n; at += SOTTO_I_MAX_WIDTH) {
        int part = n - at < SOTTO_I_MAX_WIDTH ? n - at : SOTTO_I_MAX_WIDTH;
        enum sotto_status status = run_chunk(decoder, tokens + at, part, n_past + at, sot < 0 ? -1 : sot - at);
        if (status != SOTTO_OK)
            return status;
    }
    return SOTTO_OK;
}

float * sotto_i_decoder_mask(struct sotto_i_decoder * decoder) { return sotto_get_data(decoder->in.mask); }

const float * sotto_i_decoder_logits(const struct sotto_i_decoder * decoder) {
    const struct sotto_i_step * s = decoder->last;
    return s ? sotto_get_data_f32(s->logits) + (size_t)(s->n_wanted - 1) * (size_t)s->logits->ne[0] : NULL;
}

static enum sotto_status read_prob(const struct sotto_i_step * s, int32_t id, float * p) {
    return sotto_backend_tensor_get(s->probs, p, (size_t)id * sizeof(float), sizeof(*p));
}

enum sotto_status sotto_i_decoder_candidates(const struct sotto_i_decoder * decoder, struct sotto_i_candidates * out) {
    const struct sotto_i_step * s = decoder->last;
    enum sotto_status status = sotto_backend_tensor_get(s->text, &out->text, 0, sizeof(out->text));
    if (status == SOTTO_OK)
        status = sotto_backend_tensor_get(s->timestamp, &out->timestamp, 0, sizeof(out->timestamp));
    if (status == SOTTO_OK)
        status = sotto_backend_tensor_get(s->timestamp_sum, &out->timestamp_sum, 0, sizeof(out->timestamp_sum));
    if (status != SOTTO_OK)
        return status;
    out->timestamp += sotto_i_model_specials(decoder->model)->beg;
    status = read_prob(s, out->text, &out->p_text);
    return status == SOTTO_OK ? read_prob(s, out->timestamp, &out->p_timestamp) : status;
}

/* ---- beams ---- */

void sotto_i_decoder_branch(struct sotto_i_decoder * decoder, int n_prompt) {
    sotto_i_kvcache_share(&decoder->cache, n_prompt);
}

enum sotto_status sotto_i_decoder_run_beams(struct sotto_i_decoder * decoder, const int32_t * tokens, int n,
                                            int position) {
    struct sotto_i_kvcache * cache = &decoder->cache;
    for (int i = 0; i < n; i++)
        set_column(decoder, i, tokens[i], position, 1 + i,
                   position < cache->first ? position : sotto_i_kvcache_take(cache, i, position));
    for (int i = n; i < decoder->beams.width; i++)
        set_padding(decoder, i);
    return sotto_backend_graph_plan_compute(decoder->backend, decoder->beams.plan);
}

static float * column_of(const struct sotto_tensor * t, int i) {
    return (float *)sotto_get_data(t) + (size_t)i * (size_t)t->ne[0];
}

float * sotto_i_decoder_beam_mask(struct sotto_i_decoder * decoder, int beam) {
    return column_of(decoder->in.masks, beam);
}

void sotto_i_decoder_set_temperature(struct sotto_i_decoder * decoder, float temperature) {
    *column_of(decoder->in.cool, 0) = temperature > 0 ? 1.0f / temperature : 1.0f;
}

const float * sotto_i_decoder_beam_probs(const struct sotto_i_decoder * decoder, int beam) {
    return column_of(decoder->beams.probs, beam);
}

const float * sotto_i_decoder_beam_drawn(const struct sotto_i_decoder * decoder, int beam) {
    return column_of(decoder->beams.drawn, beam);
}

void sotto_i_decoder_ranking(const struct sotto_i_decoder * decoder, int beam, int n, struct sotto_i_ranking * out) {
    const struct sotto_i_beam_step * s = &decoder->beams;
    const float * probs = sotto_i_decoder_beam_probs(decoder, beam);
    const int32_t * text = (const int32_t *)sotto_get_data(s->text) + (size_t)beam * (size_t)s->text->ne[0];
    const int32_t * stamp = (const int32_t *)sotto_get_data(s->timestamp) + (size_t)beam * (size_t)s->timestamp->ne[0];
    out->n = n;
    out->timestamp_sum = *column_of(s->timestamp_sum, beam);
    for (int i = 0; i < n; i++) {
        out->text[i] = text[i];
        out->timestamp[i] = stamp[i] + sotto_i_model_specials(decoder->model)->beg;
        out->p_text[i] = probs[out->text[i]];
        out->p_timestamp[i] = probs[out->timestamp[i]];
    }
}
