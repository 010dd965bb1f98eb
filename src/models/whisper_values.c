/* SPDX-License-Identifier: MIT */
/* The values of a model's tensors, from the container into the type that a writer stores. */
#include <math.h>
#include <string.h>

#include "models/models_impl.h"

#define STAGE ((size_t)16384) /* elements converted at once */

enum sotto_type sotto_i_whisper_lossless(const struct whisper_source * source) {
    for (size_t i = 0; i < source->n_tensors; i++) {
        if (source->tensors[i].weight && source->tensors[i].source_type != SOTTO_TYPE_F16)
            return SOTTO_TYPE_F32;
    }
    return SOTTO_TYPE_F16;
}

enum sotto_type sotto_i_whisper_stored(const struct whisper_tensor * tensor,
                                       const struct sotto_convert_params * params) {
    return tensor->weight ? params->type : SOTTO_TYPE_F32;
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

static void to_floats(enum sotto_type type, const void * in, float * out, size_t n) {
    if (type == SOTTO_TYPE_F16)
        sotto_fp16_to_fp32_row(in, out, (int64_t)n);
    else if (type == SOTTO_TYPE_BF16)
        sotto_bf16_to_fp32_row(in, out, (int64_t)n);
    else
        memcpy(out, in, n * sizeof(*out));
}

/* Round to f16; what was finite has to stay so. */
static enum sotto_status to_halves(const struct whisper_tensor * t, const float * in, sotto_fp16_t * out, size_t n) {
    sotto_fp32_to_fp16_row(in, out, (int64_t)n);
    for (size_t i = 0; i < n; i++) {
        if (isfinite(in[i]) && (out[i] & 0x7C00) == 0x7C00)
            return sotto_fail(SOTTO_E_MODEL_NAN, "sotto_convert: a weight of '%s' is %g, too large for f16; use f32",
                              sotto_i_whisper_name(t, WHISPER_GGUF).text, (double)in[i]);
    }
    return SOTTO_OK;
}

static enum sotto_status piece(const struct whisper_source * source, const struct whisper_tensor * t,
                               enum sotto_type type, uint64_t first, size_t n, void * dst) {
    if (type == t->source_type)
        return source->read(source, t, first, n, dst);
    enum sotto_status status = source->read(source, t, first, n, source->stage);
    if (status != SOTTO_OK)
        return status;
    to_floats(t->source_type, source->stage, type == SOTTO_TYPE_F32 ? dst : source->floats, n);
    return type == SOTTO_TYPE_F32 ? SOTTO_OK : to_halves(t, source->floats, dst, n);
}

enum sotto_status sotto_i_whisper_values(const struct whisper_source * source, const struct whisper_tensor * tensor,
                                         enum sotto_type type, uint64_t first, size_t n, void * dst) {
    uint8_t * out = dst;
    if (!tensor->found) {
        compute_positions(&source->sizes, first, n, dst);
        return SOTTO_OK;
    }
    while (n > 0) {
        size_t m = n < STAGE ? n : STAGE;
        enum sotto_status status = piece(source, tensor, type, first, m, out);
        if (status != SOTTO_OK)
            return status;
        out += m * sotto_type_size(type);
        first += m;
        n -= m;
    }
    return SOTTO_OK;
}

enum sotto_status sotto_i_convert_report(const struct sotto_convert_params * params, uint64_t done, uint64_t total) {
    if (params->progress == NULL || params->progress(done, total, params->progress_user_data))
        return SOTTO_OK;
    return sotto_fail(SOTTO_E_ABORTED, "sotto_convert: the caller asked to stop");
}

enum sotto_status sotto_i_whisper_stage(struct whisper_source * source) {
    source->stage = sotto_malloc(source->allocator, STAGE, sizeof(float));
    source->floats = sotto_malloc(source->allocator, STAGE, sizeof(float));
    return source->stage != NULL && source->floats != NULL ? SOTTO_OK : SOTTO_E_MEMORY;
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
    sotto_mfree(allocator, source->stage, STAGE, sizeof(float));
    sotto_mfree(allocator, source->floats, STAGE, sizeof(float));
}
