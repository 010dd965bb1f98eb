/* SPDX-License-Identifier: MIT */
/* Spec 3.1. A convolution is a product of its kernels, stored as rows of 3 * channels weights, with the columns that
 * im2col gathers; so kernels are packed like every matrix and columns stay f32. */
#include "encoder.h"
#include "layers.h"

#define LAYER_NODES 30
#define CROSS_NODES 9
#define OTHER_NODES 24

static size_t n_nodes(const struct sotto_i_hparams * hp) {
    return LAYER_NODES * (size_t)hp->n_audio_layers + CROSS_NODES * (size_t)hp->n_text_layers + OTHER_NODES;
}

size_t sotto_i_encoder_overhead(const struct sotto_i_hparams * hp) {
    size_t n = n_nodes(hp);
    return n * sotto_tensor_overhead() + sotto_graph_overhead_custom(n, false);
}

/* x [T, channels] -> [D, T / stride] */
static struct sotto_tensor * convolve(struct sotto_context * ctx, const struct sotto_model * model,
                                      const struct sotto_i_linear * w, struct sotto_tensor * shape,
                                      struct sotto_tensor * x, int stride) {
    x = sotto_im2col(ctx, shape, x, stride, 0, 1, 0, 1, 0, false, SOTTO_TYPE_F32);
    return sotto_i_activate(ctx, model, sotto_i_project(ctx, w, x));
}

static struct sotto_tensor * heads_apart(struct sotto_context * ctx, struct sotto_tensor * x, int heads) {
    return sotto_permute(ctx, sotto_i_split_heads(ctx, x, heads), 0, 2, 1, 3);
}

static struct sotto_tensor * attend(struct sotto_context * ctx, const struct sotto_model * model,
                                    const struct sotto_i_attention * a, struct sotto_tensor * x) {
    int heads = model->hp.n_audio_heads;
    struct sotto_tensor * h = sotto_i_normed(ctx, model, x, &a->norm);
    struct sotto_tensor * q = heads_apart(ctx, sotto_i_project(ctx, &a->q, h), heads);
    struct sotto_tensor * k = heads_apart(ctx, sotto_i_project(ctx, &a->k, h), heads);
    struct sotto_tensor * v = heads_apart(ctx, sotto_i_project(ctx, &a->v, h), heads);
    float scale = sotto_i_attention_scale(model, heads);
    struct sotto_tensor * y = sotto_flash_attn_ext(ctx, q, k, v, NULL, scale, 0, 0);
    return sotto_i_join_heads(ctx, &a->out, x, y);
}

static struct sotto_tensor * build_output(struct sotto_context * ctx, const struct sotto_model * model,
                                          struct sotto_tensor * mel) {
    struct sotto_tensor * x = convolve(ctx, model, &model->conv1, model->conv1_shape, mel, 1);
    x = sotto_cont(ctx, sotto_transpose(ctx, x));
    x = convolve(ctx, model, &model->conv2, model->conv2_shape, x, 2);
    x = sotto_add(ctx, x, model->audio_pos);
    for (int i = 0; i < model->hp.n_audio_layers; i++) {
        const struct sotto_i_layer * layer = sotto_i_audio_layer(model, i);
        x = attend(ctx, model, &layer->self, x);
        x = sotto_i_feed_forward(ctx, model, layer, x);
    }
    return sotto_i_normed(ctx, model, x, &model->audio_norm);
}

static enum sotto_status expand_cross(struct sotto_context * ctx, struct sotto_cgraph * graph,
                                      const struct sotto_model * model, struct sotto_tensor * out,
                                      const struct sotto_i_cross * cache) {
    for (int i = 0; i < model->hp.n_text_layers; i++) {
        const struct sotto_i_attention * cross = &sotto_i_text_layer(model, i)->cross;
        const struct sotto_i_kv * kv = &cache->layers[i];
        int heads = model->hp.n_text_heads;
        struct sotto_tensor * k = sotto_i_split_heads(ctx, sotto_i_project(ctx, &cross->k, out), heads);
        struct sotto_tensor * v = sotto_i_split_heads(ctx, sotto_i_project(ctx, &cross->v, out), heads);
        k = sotto_cpy(ctx, sotto_permute(ctx, k, 1, 2, 0, 3), kv->k);
        v = sotto_cpy(ctx, sotto_permute(ctx, v, 0, 2, 1, 3), kv->v);
        enum sotto_status status = sotto_build_forward_expand(graph, k);
        if (status == SOTTO_OK)
            status = sotto_build_forward_expand(graph, v);
        if (status != SOTTO_OK)
            return status;
    }
    return SOTTO_OK;
}

enum sotto_status sotto_i_encoder_build(struct sotto_i_encoder * encoder, struct sotto_context * ctx,
                                        sotto_backend_t backend, const struct sotto_model * model,
                                        struct sotto_tensor * mel, const struct sotto_i_cross * cross) {
    struct sotto_cgraph * graph = sotto_new_graph_custom(ctx, n_nodes(&model->hp), false);
    encoder->out = build_output(ctx, model, mel);
    if (!graph || !encoder->out)
        return sotto_context_status(ctx);
    sotto_set_name(encoder->out, "encoder");
    sotto_set_output(encoder->out);
    enum sotto_status status = expand_cross(ctx, graph, model, encoder->out, cross);
    if (status != SOTTO_OK)
        return status;
    encoder->plan = sotto_backend_graph_plan_create(backend, graph);
    return encoder->plan ? SOTTO_OK : sotto_last_error();
}
