/* SPDX-License-Identifier: MIT */
/* Which type each tensor is stored in: a rule's, else the one asked for, else its own; then what its shape, its container
 * and the importance matrix allow. Everything that can be refused is refused here, before anything is written. */
#include <fnmatch.h>
#include <string.h>

#include "models/models_impl.h"
#include "sotto/log.h"
#include "sotto/quant.h"

#define MAX_FTYPE 64

struct choice {
    struct whisper_source * source;
    const struct sotto_convert_params * params;
    enum sotto_type floats; /* for weights that keep their type and are floats */
    size_t n_fallen;        /* matrices that got another type than they were to have ... */
    enum sotto_type wanted; /* ... the first of them, its length of rows, and what it got */
    int64_t row;
    enum sotto_type got;
    size_t n_weighed, n_unweighed; /* quantised with an entry of the imatrix, and without */
};

/* ---- what is asked for ---- */

static bool is_float(enum sotto_type type) {
    return type == SOTTO_TYPE_F32 || type == SOTTO_TYPE_F16 || type == SOTTO_TYPE_BF16;
}

/* A type of weights in files: floats, and what is quantised but the two types of work. */
static bool is_target(enum sotto_type type) {
    return is_float(type) || (type >= 0 && type < SOTTO_TYPE_COUNT && sotto_is_quantized(type) &&
                              type != SOTTO_TYPE_Q8_1 && type != SOTTO_TYPE_Q8_K);
}

static bool is_bin_type(enum sotto_type type) {
    return is_float(type) || (type <= SOTTO_TYPE_Q6_K && type != SOTTO_TYPE_Q8_1);
}

static enum sotto_status check_type(enum sotto_type type, enum whisper_form form, const char * what) {
    if (!is_target(type))
        return sotto_fail(SOTTO_E_PARAM, "sotto_convert: %s: weights are not stored as %s (type %d)", what,
                          sotto_type_name(type), (int)type);
    if (form == WHISPER_BIN && !is_bin_type(type))
        return sotto_fail(SOTTO_E_PARAM, "sotto_convert: %s: .bin has no %s; write GGUF, or choose another type", what,
                          sotto_type_name(type));
    if (form == WHISPER_HF && !is_float(type))
        return sotto_fail(SOTTO_E_PARAM,
                          "sotto_convert: %s: safetensors of Hugging Face have no %s; choose f32, f16 or bf16", what,
                          sotto_type_name(type));
    return SOTTO_OK;
}

static bool fits_rule(const struct sotto_type_rule * rule, const struct whisper_tensor * t) {
    return fnmatch(rule->pattern, sotto_i_whisper_name(t, WHISPER_GGUF).text, 0) == 0 ||
           fnmatch(rule->pattern, sotto_i_whisper_name(t, WHISPER_BIN).text, 0) == 0;
}

static bool is_of_use(const struct whisper_source * source, const struct sotto_type_rule * rule) {
    for (size_t i = 0; i < source->n_tensors; i++) {
        if (source->tensors[i].weight && fits_rule(rule, &source->tensors[i]))
            return true;
    }
    return false;
}

static enum sotto_status check_params(const struct choice * c, enum whisper_form form) {
    const struct sotto_convert_params * p = c->params;
    if (p->n_threads < 0 || p->n_threads > SOTTO_MAX_N_THREADS)
        return sotto_fail(SOTTO_E_PARAM, "sotto_convert: params.n_threads is %d, want 0..%d", p->n_threads,
                          SOTTO_MAX_N_THREADS);
    if (p->rules == NULL && p->n_rules > 0)
        return sotto_fail(SOTTO_E_NULLARG, "sotto_convert: params.rules is NULL, params.n_rules is %zu", p->n_rules);
    enum sotto_status status = SOTTO_OK;
    if (p->type != SOTTO_TYPE_COUNT)
        status = check_type(p->type, form, "params.type");
    for (size_t i = 0; i < p->n_rules && status == SOTTO_OK; i++) {
        const char * pattern = p->rules[i].pattern;
        if (pattern == NULL)
            return sotto_fail(SOTTO_E_NULLARG, "sotto_convert: the pattern of rule %zu is NULL", i);
        status = check_type(p->rules[i].type, form, pattern);
        if (status == SOTTO_OK && !is_of_use(c->source, &p->rules[i]))
            status = sotto_fail(SOTTO_E_PARAM,
                                "sotto_convert: no weight of the model has a name like '%s'; names are such as %s",
                                pattern, "enc.blk.0.attn_q.weight");
    }
    return status;
}

/* ---- types ---- */

/* F16 if that loses nothing, else F32; COUNT if some are quantised, and each keeps its own. */
static enum sotto_type kept_floats(const struct whisper_source * source) {
    enum sotto_type type = SOTTO_TYPE_F16;
    for (size_t i = 0; i < source->n_tensors; i++) {
        const struct whisper_tensor * t = &source->tensors[i];
        if (t->weight && sotto_is_quantized(t->kept))
            return SOTTO_TYPE_COUNT;
        if (t->weight && t->kept != SOTTO_TYPE_F16)
            type = SOTTO_TYPE_F32;
    }
    return type;
}

static enum sotto_type asked_for(const struct choice * c, const struct whisper_tensor * t) {
    for (size_t i = 0; i < c->params->n_rules; i++) {
        if (fits_rule(&c->params->rules[i], t))
            return c->params->rules[i].type;
    }
    if (c->params->type == SOTTO_TYPE_COUNT)
        return c->floats != SOTTO_TYPE_COUNT ? c->floats : t->kept;
    /* kernels of convolutions are f16 in the field's files but those of f32 */
    return t->rank > 2 && c->params->type != SOTTO_TYPE_F32 ? SOTTO_TYPE_F16 : c->params->type;
}

static bool whole_blocks(enum sotto_type type, int64_t row) { return row % sotto_blck_size(type) == 0; }

static enum sotto_type with_whole_blocks(struct choice * c, const struct whisper_tensor * t, enum sotto_type type) {
    int64_t row = t->shape[t->rank - 1];
    if (whole_blocks(type, row))
        return type;
    enum sotto_type other = whole_blocks(SOTTO_TYPE_Q8_0, row) ? SOTTO_TYPE_Q8_0 : SOTTO_TYPE_F16;
    if (c->n_fallen++ == 0) {
        c->wanted = type;
        c->row = row;
        c->got = other;
    }
    return other;
}

/* ---- importance ---- */

static enum sotto_status weigh(struct choice * c, struct whisper_tensor * t) {
    if (!sotto_is_quantized(t->stored) || t->stored == t->source_type)
        return SOTTO_OK;
    struct whisper_name name = sotto_i_whisper_name(t, WHISPER_GGUF);
    int64_t columns = 0;
    t->importance = sotto_imatrix_find(c->params->imatrix, name.text, &columns);
    if (t->importance != NULL && columns != t->shape[t->rank - 1])
        return sotto_fail(SOTTO_E_PARAM,
                          "sotto_convert: the imatrix belongs to another model: '%s' has %lld columns there, not %lld",
                          name.text, (long long)columns, (long long)t->shape[t->rank - 1]);
    if (t->importance == NULL && sotto_quantize_requires_imatrix(t->stored))
        return sotto_fail(SOTTO_E_NULLARG, "sotto_convert: %s needs an imatrix, and %s for '%s'; make one with %s",
                          sotto_type_name(t->stored), c->params->imatrix == NULL ? "none is given" : "it has no entry",
                          name.text, "sotto imatrix");
    *(t->importance != NULL ? &c->n_weighed : &c->n_unweighed) += 1;
    return SOTTO_OK;
}

/* ---- all together ---- */

static enum sotto_status choose(struct choice * c, struct whisper_tensor * t, enum whisper_form form) {
    t->importance = NULL;
    t->stored = SOTTO_TYPE_F32;
    if (!t->weight)
        return SOTTO_OK;
    t->stored = with_whole_blocks(c, t, asked_for(c, t));
    enum sotto_status status = check_type(t->stored, form, sotto_i_whisper_name(t, WHISPER_GGUF).text);
    return status == SOTTO_OK ? weigh(c, t) : status;
}

static bool loses_again(const struct whisper_source * source) {
    for (size_t i = 0; i < source->n_tensors; i++) {
        const struct whisper_tensor * t = &source->tensors[i];
        if (t->weight && sotto_is_quantized(t->source_type) && sotto_is_quantized(t->stored) &&
            t->stored != t->source_type)
            return true;
    }
    return false;
}

/* whisper.cpp makes all matrices of the type in the header. */
static bool is_mixed(const struct whisper_source * source) {
    enum sotto_type type = SOTTO_TYPE_COUNT;
    for (size_t i = 0; i < source->n_tensors; i++) {
        const struct whisper_tensor * t = &source->tensors[i];
        if (!t->weight || t->rank > 2)
            continue;
        if (type != SOTTO_TYPE_COUNT && t->stored != type)
            return true;
        type = t->stored;
    }
    return false;
}

static void tell(const struct choice * c, enum whisper_form form) {
    if (c->n_fallen > 0)
        sotto_log(
            SOTTO_LOG_WARN,
            "sotto_convert: rows of %lld are no whole blocks of %s (%lld): %zu weights become %s or f16 instead\n",
            (long long)c->row, sotto_type_name(c->wanted), (long long)sotto_blck_size(c->wanted), c->n_fallen,
            sotto_type_name(c->got));
    if (c->params->imatrix != NULL && c->n_unweighed > 0)
        sotto_log(SOTTO_LOG_WARN, "sotto_convert: the imatrix has no entry for %zu of %zu quantised weights\n",
                  c->n_unweighed, c->n_unweighed + c->n_weighed);
    if (loses_again(c->source))
        sotto_log(SOTTO_LOG_WARN, "sotto_convert: %s is quantised already; from its f16 form the result is better\n",
                  c->source->path);
    if (form == WHISPER_BIN && is_mixed(c->source))
        sotto_log(SOTTO_LOG_WARN, "sotto_convert: matrices have several types, which whisper.cpp does not read\n");
}

enum sotto_status sotto_i_choose_types(struct whisper_source * source, const struct sotto_convert_params * params,
                                       enum whisper_form form) {
    struct choice c = { .source = source, .params = params, .floats = kept_floats(source) };
    enum sotto_status status = check_params(&c, form);
    for (size_t i = 0; i < source->n_tensors && status == SOTTO_OK; i++)
        status = choose(&c, &source->tensors[i], form);
    if (status != SOTTO_OK)
        return status;
    if (params->imatrix != NULL && c.n_weighed == 0 && c.n_unweighed > 0)
        return sotto_fail(SOTTO_E_PARAM, "sotto_convert: the imatrix belongs to another model: it has no '%s'",
                          "dec.blk.0.attn_q.weight");
    tell(&c, form);
    return SOTTO_OK;
}

int sotto_i_whisper_ftype(const struct whisper_source * source) {
    uint64_t bytes[SOTTO_TYPE_COUNT] = { 0 };
    enum sotto_type most = SOTTO_TYPE_F32;
    for (size_t i = 0; i < source->n_tensors; i++) {
        const struct whisper_tensor * t = &source->tensors[i];
        if (t->weight)
            bytes[t->stored] += whisper_bytes(t->stored, sotto_i_whisper_items(t));
    }
    for (int i = 0; i < SOTTO_TYPE_COUNT; i++)
        most = bytes[i] > bytes[most] ? (enum sotto_type)i : most;
    int ftype = 0;
    while (ftype < MAX_FTYPE && sotto_ftype_to_sotto_type(ftype) != most)
        ftype++;
    sotto_clear_last_error(); /* of numbers that stand for nothing */
    return ftype < MAX_FTYPE ? ftype : -1;
}
