/* SPDX-License-Identifier: MIT */
/* The pieces that encoder and decoder share, as graph builders. Columns are positions: x is [D, n]. */
#ifndef SOTTO_SPEECH_LAYERS_H
#define SOTTO_SPEECH_LAYERS_H

#include "model.h"

/* LN(x) * weight + bias */
struct sotto_tensor * sotto_i_normed(struct sotto_context * ctx, const struct sotto_model * model,
                                     struct sotto_tensor * x, const struct sotto_i_affine * norm);
/* W x + b */
struct sotto_tensor * sotto_i_project(struct sotto_context * ctx, const struct sotto_i_linear * w,
                                      struct sotto_tensor * x);
/* gelu in the model's form */
struct sotto_tensor * sotto_i_activate(struct sotto_context * ctx, const struct sotto_model * model,
                                       struct sotto_tensor * x);
/* x + W2 gelu(W1 LN(x)) */
struct sotto_tensor * sotto_i_feed_forward(struct sotto_context * ctx, const struct sotto_model * model,
                                           const struct sotto_i_layer * layer, struct sotto_tensor * x);
/* [D, n] as [D/heads, heads, n] */
struct sotto_tensor * sotto_i_split_heads(struct sotto_context * ctx, struct sotto_tensor * x, int heads);
/* x + Wo y, y [D/heads, heads, n] what attention gave */
struct sotto_tensor * sotto_i_join_heads(struct sotto_context * ctx, const struct sotto_i_linear * out,
                                         struct sotto_tensor * x, struct sotto_tensor * y);
/* 1 / sqrt(D / heads) */
float sotto_i_attention_scale(const struct sotto_model * model, int heads);

#endif
