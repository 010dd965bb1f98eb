/* SPDX-License-Identifier: MIT */
#include "fuzz/read_model.h"

#include <string.h>

static const enum sotto_type types[] = { SOTTO_TYPE_COUNT, SOTTO_TYPE_F16,  SOTTO_TYPE_Q8_0, SOTTO_TYPE_F32,
                                         SOTTO_TYPE_BF16,  SOTTO_TYPE_Q4_0, SOTTO_TYPE_Q5_1, SOTTO_TYPE_IQ4_NL };

/* Rows of a tensor from `first` on, into memory of exactly their size. */
static void look_at_rows(struct whisper_source * source, const struct whisper_tensor * t, uint64_t first, uint64_t n) {
    const uint64_t row = (uint64_t)t->shape[t->rank - 1];
    const size_t size = (size_t)whisper_bytes(t->stored, n * row);
    uint8_t * a = malloc(size);
    uint8_t * b = malloc(size);
    fuzz_holds(a != NULL && b != NULL);
    const enum sotto_status status = sotto_i_whisper_values(source, t, first * row, (size_t)(n * row), a);
    fuzz_holds(status == SOTTO_OK || status == SOTTO_E_MODEL_NAN || status == SOTTO_E_MODEL_CORRUPT);
    fuzz_holds(sotto_i_whisper_values(source, t, first * row, (size_t)(n * row), b) == status);
    fuzz_holds(status != SOTTO_OK || memcmp(a, b, size) == 0);
    free(a);
    free(b);
}

/* Its first rows and its last one. */
static void look_at_tensor(struct whisper_source * source, const struct whisper_tensor * t) {
    const uint64_t rows = sotto_i_whisper_items(t) / (uint64_t)t->shape[t->rank - 1];
    look_at_rows(source, t, 0, rows < 4 ? rows : 4);
    look_at_rows(source, t, rows - 1, 1);
}

static void look_at_lists(const struct whisper_source * source) {
    const struct whisper_list * lists[] = { &source->suppress, &source->suppress_begin };
    for (int k = 0; k < 2; k++) {
        for (size_t i = 0; i < lists[k]->n; i++)
            fuzz_holds(lists[k]->ids[i] >= 0 && lists[k]->ids[i] < source->sizes.n_vocab);
    }
    size_t bytes = 0;
    for (int64_t i = 0; i < source->sizes.n_vocab; i++)
        bytes += strlen(source->tokens[i]);
    fuzz_holds(bytes <= source->text_size);
}

static void convert(struct whisper_source * source, unsigned wanted) {
    struct sotto_convert_params params = sotto_convert_default_params();
    params.allocator = source->allocator;
    params.type = types[wanted % (sizeof(types) / sizeof(types[0]))];
    source->params = &params;
    fuzz_holds(sotto_i_choose_types(source, &params, false) == SOTTO_OK);
    fuzz_holds(sotto_i_models_workers_new(source, 1) == SOTTO_OK);
    for (size_t i = 0; i < source->n_tensors; i++)
        look_at_tensor(source, &source->tensors[i]);
}

void fuzz_read_model(whisper_reader reader, const char * path, size_t size, unsigned wanted) {
    struct counting_allocator memory;
    counting_allocator_init(&memory);
    struct whisper_source source = { .allocator = &memory.base };
    sotto_clear_last_error();
    const enum sotto_status status = reader(&source, path);
    fuzz_holds(status != SOTTO_E_MEMORY && sotto_last_error() == status);
    if (status == SOTTO_OK) {
        for (size_t i = 0; i < source.n_tensors; i++)
            fuzz_holds(!source.tensors[i].found || source.tensors[i].at <= size);
        look_at_lists(&source);
        convert(&source, wanted);
    }
    sotto_i_whisper_source_free(&source);
    fuzz_memory_done(&memory);
}
