/* SPDX-License-Identifier: MIT */
/* The values of CTranslate2's variables. Floats are passed on as they are. Of quantised weights there is a scale beside
 * them, "<name>_scale", and a value is q / scale:
 *
 *   i8    f32 for each row (slowest axis), scale = 127 / max |row|
 *   i16   one f32, scale = 1024 / max |weights|; old exports leave it out and mean 1000
 *
 * These are given as f32. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "models/models_impl.h"

#define OLD_I16_SCALE 1000.0f
#define SCALES        256 /* read at once */

/* Names that aliases lead to may hold anything. */
#define NAME(v) sotto_i_models_show((v)->name, (v)->name_size - 1).text

static const char * file(const struct ct2_model * m) { return m->stream.path; }

static unsigned long long place(const struct ct2_variable * v) { return (unsigned long long)v->at; }

static struct ct2_variable * scale_of(struct ct2_model * m, const struct ct2_variable * v, char * name, size_t size) {
    int n = snprintf(name, size, "%s_scale", v->name);
    return n > 0 && (size_t)n < size ? sotto_i_ct2_find(m, name) : NULL;
}

static enum sotto_status check_scale(struct ct2_model * m, const struct ct2_variable * v) {
    char name[256];
    struct ct2_variable * scale = scale_of(m, v, name, sizeof(name));
    uint64_t wanted = v->type == CT2_I8 && v->rank > 0 ? v->dims[0] : 1;
    if (scale == NULL && v->type == CT2_I16)
        return SOTTO_OK;
    if (scale == NULL)
        return sotto_fail(SOTTO_E_MODEL_TENSOR_MISSING,
                          "sotto_convert: %s has no '%s_scale' for the i8 weights at byte %llu", file(m), NAME(v),
                          place(v));
    if (scale->type != CT2_F32)
        return sotto_fail(SOTTO_E_MODEL_TENSOR_TYPE, "sotto_convert: %s: '%s' at byte %llu is not f32", file(m),
                          NAME(scale), place(scale));
    if (scale->items != wanted)
        return sotto_fail(SOTTO_E_MODEL_TENSOR_SHAPE,
                          "sotto_convert: %s: '%s' at byte %llu has %llu items, expected %llu: a scale for each %s",
                          file(m), NAME(scale), place(scale), (unsigned long long)scale->items,
                          (unsigned long long)wanted, v->type == CT2_I8 ? "row" : "array");
    scale->used = true;
    return SOTTO_OK;
}

enum sotto_status sotto_i_ct2_set_type(struct ct2_model * m, const struct ct2_variable * v, struct whisper_tensor * t) {
    static const enum sotto_type types[CT2_TYPE_COUNT] = {
        [CT2_F32] = SOTTO_TYPE_F32,   [CT2_I8] = SOTTO_TYPE_F32,  [CT2_I16] = SOTTO_TYPE_F32,
        [CT2_I32] = SOTTO_TYPE_COUNT, [CT2_F16] = SOTTO_TYPE_F16, [CT2_BF16] = SOTTO_TYPE_BF16
    };
    t->source_type = types[v->type];
    t->kept = t->source_type;
    if (v->type == CT2_I32)
        return sotto_fail(SOTTO_E_MODEL_TENSOR_TYPE, "sotto_convert: %s: weights '%s' at byte %llu are i32", file(m),
                          NAME(v), place(v));
    if (v->type != CT2_I8 && v->type != CT2_I16)
        return SOTTO_OK;
    t->kept = v->type == CT2_I8 && v->rank == 2 ? SOTTO_TYPE_Q8_0 : SOTTO_TYPE_F16;
    return check_scale(m, v);
}

/* ---- reading ---- */

/* Scales of rows first..first+n of a variable, as far as they are in memory. */
struct scales {
    struct ct2_model * model;
    const struct ct2_variable * variable; /* NULL: there is none */
    uint64_t first;
    size_t n;
    float values[SCALES];
};

static enum sotto_status load_scales(struct scales * s, uint64_t row) {
    const struct ct2_variable * v = s->variable;
    uint64_t left = v->items - row;
    s->first = row;
    s->n = left < SCALES ? (size_t)left : SCALES;
    enum sotto_status status =
        sotto_i_models_stream_read(&s->model->stream, v->at + 4 * row, s->values, 4 * s->n, NAME(v));
    for (size_t i = 0; i < s->n && status == SOTTO_OK; i++) {
        if (!(s->values[i] > 0) || !isfinite(s->values[i]))
            status =
                sotto_fail(SOTTO_E_MODEL_CORRUPT, "sotto_convert: %s: '%s' at byte %llu: the scale of row %llu is %g",
                           file(s->model), NAME(v), place(v), (unsigned long long)(row + i), (double)s->values[i]);
    }
    return status;
}

static enum sotto_status scale_at(struct scales * s, uint64_t row, float * scale) {
    enum sotto_status status = SOTTO_OK;
    if (s->n == 0 || row < s->first || row >= s->first + s->n)
        status = load_scales(s, row);
    *scale = status == SOTTO_OK ? s->values[row - s->first] : 0;
    return status;
}

/* n integers of i8 stand at the end of dst's bytes, where widening does not run over those that are still to come. */
static enum sotto_status widen_i8(struct scales * s, uint64_t first, uint64_t row_length, size_t n, float * dst) {
    const uint8_t * q = (const uint8_t *)dst + 3 * n;
    float scale = 0;
    for (size_t i = 0; i < n; i++) {
        if (i == 0 || (first + i) % row_length == 0) {
            enum sotto_status status = scale_at(s, (first + i) / row_length, &scale);
            if (status != SOTTO_OK)
                return status;
        }
        float value = (float)(q[i] < 128 ? q[i] : q[i] - 256) / scale;
        memcpy(dst + i, &value, sizeof(value));
    }
    return SOTTO_OK;
}

static enum sotto_status widen_i16(struct scales * s, size_t n, float * dst) {
    const uint8_t * q = (const uint8_t *)dst + 2 * n;
    float scale = OLD_I16_SCALE;
    enum sotto_status status = s->variable != NULL ? scale_at(s, 0, &scale) : SOTTO_OK;
    for (size_t i = 0; i < n && status == SOTTO_OK; i++) {
        int32_t bits = q[2 * i] | q[2 * i + 1] << 8;
        float value = (float)(bits < 32768 ? bits : bits - 65536) / scale;
        memcpy(dst + i, &value, sizeof(value));
    }
    return status;
}

enum sotto_status sotto_i_ct2_read(struct ct2_model * m, const struct ct2_variable * v, uint64_t first, size_t n,
                                   void * dst) {
    size_t width = sotto_i_ct2_width(v->type);
    bool quantised = v->type == CT2_I8 || v->type == CT2_I16;
    uint8_t * raw = (uint8_t *)dst + (quantised ? (sizeof(float) - width) * n : 0);
    enum sotto_status status = sotto_i_models_stream_read(&m->stream, v->at + first * width, raw, n * width, NAME(v));
    if (status != SOTTO_OK || !quantised)
        return status;
    char name[256];
    struct scales scales = { .model = m, .variable = scale_of(m, v, name, sizeof(name)) };
    return v->type == CT2_I8 ? widen_i8(&scales, first, v->items / v->dims[0], n, dst) : widen_i16(&scales, n, dst);
}
