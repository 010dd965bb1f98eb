/* SPDX-License-Identifier: MIT */
#include "fuzz/small_model.h"

#include "fuzz/unpack.h"
#include "models/models_impl.h"

enum { N_VOCAB = 51865 };

/* Values in [-1/4, 1/4) that depend on the tensor and the place alone; norms are around 1. */
static enum sotto_status read_values(const struct whisper_source * source, const struct whisper_tensor * tensor,
                                     uint64_t first, size_t n, void * dst) {
    const uint32_t number = (uint32_t)(tensor - source->tensors);
    const bool scale = tensor->rank == 1 && number % 2 == 0;
    float * x = dst;
    for (size_t i = 0; i < n; i++) {
        const uint32_t hash = ((uint32_t)(first + i) * 2654435761u) ^ (number * 40503u);
        x[i] = (float)(hash >> 20) / 8192.0f - 0.25f + (scale ? 1.0f : 0.0f);
    }
    return SOTTO_OK;
}

static void spell(const char ** tokens) {
    static char text[N_VOCAB][16];
    for (unsigned id = 0; id < N_VOCAB; id++) {
        fuzz_spell_token(id < 50257 ? id : 50256, text[id]);
        tokens[id] = text[id];
    }
}

void fuzz_small_model(const char * path, enum sotto_type type) {
    struct whisper_source source = { .allocator = sotto_default_allocator(), .path = "small", .read = read_values };
    source.sizes = (struct whisper_sizes){ .n_vocab = N_VOCAB,
                                           .n_mels = 3,
                                           .width = 32,
                                           .audio_ctx = 1500,
                                           .audio_layers = 1,
                                           .audio_heads = 1,
                                           .text_ctx = 16,
                                           .text_layers = 1,
                                           .text_heads = 2 };
    struct sotto_convert_params params = sotto_convert_default_params();
    params.type = type;
    source.params = &params;
    fuzz_holds(sotto_i_whisper_layout(&source) == SOTTO_OK);
    spell(source.tokens);
    for (size_t i = 0; i < source.n_tensors; i++) {
        source.tensors[i].source_type = source.tensors[i].kept = SOTTO_TYPE_F32;
        source.tensors[i].found = true;
    }
    fuzz_holds(sotto_i_choose_types(&source, &params, false) == SOTTO_OK);
    fuzz_holds(sotto_i_models_workers_new(&source, 1) == SOTTO_OK);
    fuzz_holds(sotto_i_to_gguf(&source, path, &params) == SOTTO_OK);
    sotto_i_whisper_source_free(&source);
}
