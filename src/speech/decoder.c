/* SPDX-License-Identifier: MIT */
/* Spec 3.3, with the choice of 5.5 8e behind it as graph nodes over the vocabulary. */
#include "decoder.h"
#include "layers.h"

#define LAYER_NODES 44
#define OTHER_NODES 40

static const int widths[SOTTO_I_N_WIDTHS] = { 1, 4, 16, SOTTO_I_MAX_WIDTH };

static size_t n_nodes(const struct sotto_i_hparams * hp) {
    return LAYER_NODES * (size_t)hp->n_text_layers + OTHER_NODES;
}

size_t sotto_i_decoder_n_inputs(void) { return 8; }

size_t sotto_i_decoder_overhead(const struct sotto_i_hparams * hp) {
    size_t n = n_nodes(hp);
    return SOTTO_I_N_WIDTHS * (n * sotto_tensor_overhead() + sotto_graph_overhead_custom(n, false));
}

static struct sotto_tensor * new_input(struct sotto_context * ctx, enum sotto_type type, int64_t n) {
    return sotto_new_tensor_1d(ctx, type, n);
}

enum sotto_status sotto_i_decoder_define(struct sotto_i_decoder * decoder, struct sotto_context * data) {
    struct sotto_i_inputs * in = &decoder->in;
    in->tokens = new_input(data, SOTTO_TYPE_I32, SOTTO_I_MAX_WIDTH);
    in->positions = new_input(data, SOTTO_TYPE_I32, SOTTO_I_MAX_WIDTH);
    in->rows = new_input(data, SOTTO_TYPE_I32, SOTTO_I_MAX_WIDTH);
    in->seq = new_input(data, SOTTO_TYPE_I32, SOTTO_I_MAX_WIDTH);
    in->len = new_input(data, SOTTO_TYPE_I32, SOTTO_I_MAX_WIDTH);
    in->cross_len = new_input(data, SOTTO_TYPE_I32, SOTTO_I_MAX_WIDTH);
    in->wanted = new_input(data, SOTTO_TYPE_I32, 2);
    in->mask = new_input(data, SOTTO_TYPE_F32, decoder->model->hp.n_vocab);
    return sotto_context_status(data);
}

/* ---- graph ---- */

/* What the graph under construction needs everywhere. */
struct build {
    struct sotto_context * ctx;
    const struct sotto_i_decoder * d;
    int heads;
    float scale;
    struct sotto_tensor *tokens, *positions, *rows, *seq, *len, *cross_len, *wanted;
};

static struct build begin(struct sotto_context * ctx, const struct sotto_i_decoder * d, const struct sotto_i_step * s) {
    const struct sotto_i_inputs * in = &d->in;
    int heads = d->model->hp.n_text_heads;
    struct build b = { .ctx = ctx, .d = d, .heads = heads, .scale = sotto_i_attention_scale(d->model, heads) };
    b.tokens = sotto_view_1d(ctx, in->tokens, s->width, 0);
    b.positions = sotto_view_1d(ctx, in->positions, s->width, 0);
    b.rows = sotto_view_1d(ctx, in->rows, s->width, 0);
    b.seq = sotto_view_1d(ctx, in->seq, s->width, 0);
    b.len = sotto_view_1d(ctx, in->len, s->width, 0);
    b.cross_len = sotto_view_1d(ctx, in->cross_len, s->width, 0);
    b.wanted = sotto_view_1d(ctx, in->wanted, s->n_wanted, 0);
    return b;
}

static struct sotto_tensor * attend(const struct build * b, const struct sotto_i_attention * a, struct sotto_tensor * x,
                                    struct sotto_tensor * q, struct sotto_tensor * k, struct sotto_tensor * v,
                                    bool cross) {
    const struct sotto_i_kvcache * cache = &b->d->cache;
    q = sotto_i_split_heads(b->ctx, q, b->heads);
    k = sotto_i_split_heads(b->ctx, k, b->heads);
    v = sotto_i_split_heads(b->ctx, v, b->heads);
    struct sotto_tensor * table = cross ? cache->cross_table : cache->table;
    struct sotto_tensor * y = sotto_attn_rows(b->ctx, q, k, v, table, b->seq, cross ? b->cross_len : b->len, b->scale);
    return sotto_i_join_heads(b->ctx, &a->out, x, y);
}

static struct sotto_tensor * self_attention(const struct build * b, const struct sotto_i_attention * a,
                                            const struct sotto_i_kv * kv, struct sotto_tensor * x) {
    struct sotto_tensor * h = sotto_i_normed(b->ctx, b->d->model, x, &a->norm);
    struct sotto_tensor * q = sotto_i_project(b->ctx, &a->q, h);
    struct sotto_tensor * k = sotto_set_rows(b->ctx, kv->k, sotto_i_project(b->ctx, &a->k, h), b->rows);
    struct sotto_tensor * v = sotto_set_rows(b->ctx, kv->v, sotto_i_project(b->ctx, &a->v, h), b->rows);
    return attend(b, a, x, q, k, v, false);
}

static struct sotto_tensor * cross_attention(const struct build * b, const struct sotto_i_attention * a,
                                             const struct sotto_i_kv * kv, struct sotto_tensor * x) {
    struct sotto_tensor * h = sotto_i_normed(b->ctx, b->d->model, x, &a->norm);
    return attend(b, a, x, sotto_i_project(b->ctx, &a->q, h), kv->k, kv->v, true);
}

static struct sotto_tensor * build_logits(const struct build * b) {
    const struct sotto_model * model = b->d->model;
    struct sotto_context * ctx = b->ctx;
    struct sotto_tensor * x = sotto_add(ctx, sotto_get_rows(ctx, model->embedding, b->tokens),
                                        sotto_get_rows(ctx, model->text_pos, b->positions));
    for (int i = 0; i < model->hp.n_text_layers; i++) {
        const struct sotto_i_layer * layer = sotto_i_text_layer(model, i);
        x = self_attention(b, &layer->self, &b->d->cache.self[i], x);
        x = cross_attention(b, &layer->cross, &b->d->cache.cross[i], x);
        x = sotto_i_feed_forward(ctx, model, layer, x);
    }
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

static enum sotto_status build_step(struct sotto_i_decoder * d, struct sotto_context * ctx, struct sotto_i_step * s) {
    struct sotto_cgraph * graph = sotto_new_graph_custom(ctx, n_nodes(&d->model->hp), false);
    if (!graph)
        return sotto_context_status(ctx);
    struct build b = begin(ctx, d, s);
    s->logits = build_logits(&b);
    build_choice(ctx, d, s);
    struct sotto_tensor * outputs[] = { s->logits, s->probs, s->text, s->timestamp, s->timestamp_sum, s->plain };
    enum sotto_status status = expand(graph, outputs, s->plain ? 6 : 5);
    if (status != SOTTO_OK)
        return status;
    s->plan = sotto_backend_graph_plan_create(d->backend, graph);
    return s->plan ? SOTTO_OK : sotto_last_error();
}

enum sotto_status sotto_i_decoder_build(struct sotto_i_decoder * decoder, struct sotto_context * ctx) {
    for (int i = 0; i < SOTTO_I_N_WIDTHS; i++) {
        struct sotto_i_step * s = &decoder->steps[i];
        s->width = widths[i];
        s->n_wanted = s->width > 1 ? 2 : 1;
        enum sotto_status status = build_step(decoder, ctx, s);
        if (status != SOTTO_OK)
            return status;
    }
    return SOTTO_OK;
}

void sotto_i_decoder_free(struct sotto_i_decoder * decoder) {
    for (int i = 0; i < SOTTO_I_N_WIDTHS; i++)
        if (decoder->steps[i].plan)
            sotto_backend_graph_plan_free(decoder->backend, decoder->steps[i].plan);
}

/* ---- running ---- */

/* Columns from n on are padding: they see nothing, and each writes a spare row of its own. */
static void set_inputs(struct sotto_i_decoder * d, const struct sotto_i_step * s, const int32_t * tokens, int n,
                       int n_past, int wanted) {
    int32_t * token = sotto_get_data(d->in.tokens);
    int32_t * position = sotto_get_data(d->in.positions);
    int32_t * row = sotto_get_data(d->in.rows);
    int32_t * seq = sotto_get_data(d->in.seq);
    int32_t * len = sotto_get_data(d->in.len);
    int32_t * cross_len = sotto_get_data(d->in.cross_len);
    for (int i = 0; i < s->width; i++) {
        bool used = i < n;
        token[i] = used ? tokens[i] : 0;
        position[i] = used ? n_past + i : 0;
        row[i] = used ? n_past + i : d->cache.n_ctx + i;
        seq[i] = 0;
        len[i] = used ? n_past + i + 1 : 0;
        cross_len[i] = used ? d->model->hp.n_audio_ctx : 0;
    }
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
