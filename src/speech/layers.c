/* SPDX-License-Identifier: MIT */
/* A NULL from a builder passes through the next ones; whoever expands the graph sees the context's error. */
#include <math.h>

#include "layers.h"

struct sotto_tensor * sotto_i_normed(struct sotto_context * ctx, const struct sotto_model * model,
                                     struct sotto_tensor * x, const struct sotto_i_affine * norm) {
    x = sotto_norm(ctx, x, model->hp.eps);
    return sotto_add(ctx, sotto_mul(ctx, x, norm->weight), norm->bias);
}

struct sotto_tensor * sotto_i_project(struct sotto_context * ctx, const struct sotto_i_linear * w,
                                      struct sotto_tensor * x) {
    struct sotto_tensor * y = sotto_mul_mat(ctx, w->weight, x);
    return w->bias ? sotto_add(ctx, y, w->bias) : y;
}

struct sotto_tensor * sotto_i_activate(struct sotto_context * ctx, const struct sotto_model * model,
                                       struct sotto_tensor * x) {
    return model->gelu == SOTTO_GELU_FORM_TANH ? sotto_gelu(ctx, x) : sotto_gelu_erf(ctx, x);
}

struct sotto_tensor * sotto_i_feed_forward(struct sotto_context * ctx, const struct sotto_model * model,
                                           const struct sotto_i_layer * layer, struct sotto_tensor * x) {
    struct sotto_tensor * y = sotto_i_project(ctx, &layer->up, sotto_i_normed(ctx, model, x, &layer->ffn_norm));
    y = sotto_i_project(ctx, &layer->down, sotto_i_activate(ctx, model, y));
    return sotto_add(ctx, x, y);
}

struct sotto_tensor * sotto_i_split_heads(struct sotto_context * ctx, struct sotto_tensor * x, int heads) {
    return x ? sotto_reshape_3d(ctx, x, x->ne[0] / heads, heads, x->ne[1]) : NULL;
}

struct sotto_tensor * sotto_i_join_heads(struct sotto_context * ctx, const struct sotto_i_linear * out,
                                         struct sotto_tensor * x, struct sotto_tensor * y) {
    y = y ? sotto_reshape_2d(ctx, y, y->ne[0] * y->ne[1], y->ne[2]) : NULL;
    return sotto_add(ctx, x, sotto_i_project(ctx, out, y));
}

float sotto_i_attention_scale(const struct sotto_model * model, int heads) {
    return 1.0f / sqrtf((float)(model->hp.width / heads));
}
