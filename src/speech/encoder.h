/* SPDX-License-Identifier: MIT */
/* The encoder: mel of a window -> encoder output -> keys and values for the decoder's cross attention, in one graph. */
#ifndef SOTTO_SPEECH_ENCODER_H
#define SOTTO_SPEECH_ENCODER_H

#include "kvcache.h"

struct sotto_i_encoder {
    struct sotto_tensor * out; /* [D, positions] */
    sotto_backend_graph_plan_t plan;
};

/* Arena bytes that _build takes. */
size_t sotto_i_encoder_overhead(const struct sotto_i_hparams * hp);

/* Build the graph over `mel` [3000, M] in `ctx` and plan it. */
enum sotto_status sotto_i_encoder_build(struct sotto_i_encoder * encoder, struct sotto_context * ctx,
                                        sotto_backend_t backend, const struct sotto_model * model,
                                        struct sotto_tensor * mel, const struct sotto_i_cross * cross);

#endif
