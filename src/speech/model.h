/* SPDX-License-Identifier: MIT */
/* A loaded model: sizes, weights by layer, tokenizer. It never changes once open.
 *
 * Matrices lie packed in one buffer, each once: the token embedding serves both the look-up at the decoder's foot and
 * the logits at its head. Norms, biases and position tables are f32 in plain host memory. Shapes: D width, V
 * vocabulary, M mel bands. */
#ifndef SOTTO_SPEECH_MODEL_H
#define SOTTO_SPEECH_MODEL_H

#include "tokenizer.h"

#define SOTTO_I_MAX_LAYERS 256 /* of one stack; a file that claims more is refused before anything is allocated */

struct sotto_i_hparams {
    int n_vocab, n_mels, width;
    int n_audio_ctx, n_audio_heads, n_audio_layers, audio_ff;
    int n_text_ctx, n_text_heads, n_text_layers, text_ff;
    float eps;
    bool timestamps; /* false for first-generation distil models */
};

struct sotto_i_affine { /* a norm: x * weight + bias */
    struct sotto_tensor *weight, *bias;
};

struct sotto_i_linear { /* weight [in, out], bias [out] or NULL */
    struct sotto_tensor *weight, *bias;
};

struct sotto_i_attention {
    struct sotto_i_affine norm;
    struct sotto_i_linear q, k, v, out;
};

struct sotto_i_layer {
    struct sotto_i_attention self;
    struct sotto_i_attention cross; /* decoder only */
    struct sotto_i_affine ffn_norm;
    struct sotto_i_linear up, down;
};

struct sotto_model {
    const struct sotto_allocator * allocator;
    struct sotto_i_hparams hp;
    enum sotto_gelu_form gelu;
    enum sotto_type weight_type;
    char name[32];
    struct sotto_i_tokenizer * tokenizer;

    struct sotto_context *matrices, *vectors; /* records of the tensors ... */
    sotto_backend_buffer_t packed, plain;     /* ... and their data */

    /* kernels as rows of 3 * channels weights; the shapes [3, channels] tell im2col what to gather */
    struct sotto_i_linear conv1, conv2;
    struct sotto_tensor *conv1_shape, *conv2_shape;
    struct sotto_tensor * audio_pos; /* [D, positions] */
    struct sotto_i_affine audio_norm;
    struct sotto_tensor * embedding; /* [D, V] */
    struct sotto_tensor * text_pos;  /* [D, text positions] */
    struct sotto_i_affine text_norm;
    struct sotto_i_layer * layers; /* the encoder's, then the decoder's */
};

/* The i-th layer of a stack. */
const struct sotto_i_layer * sotto_i_audio_layer(const struct sotto_model * model, int i);
const struct sotto_i_layer * sotto_i_text_layer(const struct sotto_model * model, int i);
const struct sotto_i_specials * sotto_i_model_specials(const struct sotto_model * model);

#endif
