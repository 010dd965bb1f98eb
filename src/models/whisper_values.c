/* SPDX-License-Identifier: MIT */
/* The values of a model's tensors, from the container into the type that a writer stores, a batch of rows at a time. */
#include <math.h>
#include <string.h>

#include "models/models_impl.h"

#define PIECE ((size_t)1 << 18)

uint64_t sotto_i_whisper_items(const struct whisper_tensor * tensor) {
    uint64_t n = 1;
    for (int i = 0; i < tensor->rank; i++)
        n *= (uint64_t)tensor->shape[i];
    return n;
}

size_t sotto_i_whisper_piece(const struct whisper_tensor * tensor) {
    size_t row = (size_t)tensor->shape[tensor->rank - 1];
    return row < PIECE ? PIECE / row * row : row;
}

/* The encoder's positions, [T, D]: sin(t r_c) in column c < D/2, cos(t r_c) in column D/2 + c, r_c falling from 1 to
 * 1/10000. */
static void compute_positions(const struct whisper_sizes * s, uint64_t first, size_t n, float * out) {
    int64_t half = s->width / 2;
    double step = log(10000.0) / (double)(half > 1 ? half - 1 : 1);
    for (size_t i = 0; i < n; i++) {
        int64_t t = (int64_t)(first + i) / s->width;
        int64_t c = (int64_t)(first + i) % s->width;
        double angle = (double)t * exp(-(double)(c % (half > 0 ? half : 1)) * step);
        out[i] = (float)(c < half ? sin(angle) : cos(angle));
    }
}

static enum sotto_status batch(struct whisper_source * source, const struct whisper_tensor * t, uint64_t first,
                               size_t n, void * dst) {
    if (t->stored == t->source_type)
        return source->read(source, t, first, n, dst);
    void * raw = sotto_i_models_stage(source->workers, t->source_type, n);
    if (raw == NULL)
        return SOTTO_E_MEMORY;
    enum sotto_status status = source->read(source, t, first, n, raw);
    struct models_loss * loss = source->params->tensor != NULL ? &source->loss : NULL;
    return status == SOTTO_OK ? sotto_i_models_encode(source->workers, t, raw, n, dst, loss) : status;
}

static void tell(struct whisper_source * source, const struct whisper_tensor * t) {
    struct whisper_name name = sotto_i_whisper_name(t, WHISPER_GGUF);
    struct sotto_tensor_loss loss = { .size = sizeof(loss), .name = name.text, .type = t->stored };
    loss.n_elements = sotto_i_whisper_items(t);
    loss.n_bytes = whisper_bytes(t->stored, loss.n_elements);
    loss.sum2 = source->loss.sum2;
    loss.error2 = source->loss.error2;
    source->loss = (struct models_loss){ 0 };
    if (source->params->tensor != NULL)
        source->params->tensor(&loss, source->params->tensor_user_data);
}

static enum sotto_status found_values(struct whisper_source * source, const struct whisper_tensor * t, uint64_t first,
                                      size_t n, uint8_t * dst) {
    size_t row = (size_t)t->shape[t->rank - 1];
    size_t most = row < MODELS_BATCH ? MODELS_BATCH / row * row : row;
    while (n > 0) {
        size_t m = n < most ? n : most;
        enum sotto_status status = batch(source, t, first, m, dst);
        if (status != SOTTO_OK)
            return status;
        dst += whisper_bytes(t->stored, m);
        first += m;
        n -= m;
    }
    return SOTTO_OK;
}

enum sotto_status sotto_i_whisper_values(struct whisper_source * source, const struct whisper_tensor * tensor,
                                         uint64_t first, size_t n, void * dst) {
    enum sotto_status status = SOTTO_OK;
    if (tensor->found)
        status = found_values(source, tensor, first, n, dst);
    else
        compute_positions(&source->sizes, first, n, dst);
    if (status == SOTTO_OK && first + n == sotto_i_whisper_items(tensor))
        tell(source, tensor);
    return status;
}

enum sotto_status sotto_i_convert_report(const struct sotto_convert_params * params, uint64_t done, uint64_t total) {
    if (params->progress == NULL || params->progress(done, total, params->progress_user_data))
        return SOTTO_OK;
    return sotto_fail(SOTTO_E_ABORTED, "sotto_convert: the caller asked to stop");
}

void sotto_i_whisper_source_free(struct whisper_source * source) {
    const struct sotto_allocator * allocator = source->allocator;
    if (source->close != NULL)
        source->close(source);
    sotto_mfree(allocator, source->text, source->text_size, 1);
    if (source->tokens != NULL)
        sotto_mfree(allocator, source->tokens, (size_t)source->sizes.n_vocab, sizeof(*source->tokens));
    sotto_mfree(allocator, source->alignment_heads.ids, source->alignment_heads.n, sizeof(int32_t));
    sotto_mfree(allocator, source->suppress.ids, source->suppress.n, sizeof(int32_t));
    sotto_mfree(allocator, source->suppress_begin.ids, source->suppress_begin.n, sizeof(int32_t));
    sotto_mfree(allocator, source->tensors, source->cap_tensors, sizeof(*source->tensors));
    sotto_i_models_workers_free(allocator, source->workers);
}
