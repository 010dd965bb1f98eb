/* SPDX-License-Identifier: MIT */
/* A Whisper model as GGUF: keys from its sizes and vocabulary, tensors converted as they are written. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "models/models_impl.h"

#define MAX_SPECIALS 1024
#define SPECIAL_SIZE 32
#define STAGE        ((size_t)16384) /* elements converted at once */

struct writer {
    struct whisper_source * source;
    const struct sotto_convert_params * params;
    struct sotto_gguf_context * gguf;
    uint8_t * stage; /* STAGE elements of the source's type */
    float * floats;  /* and as f32 */
    uint64_t total;
};

/* ---- ids that follow from the number of tokens (speech-tokens 4.2) ---- */

struct specials {
    int32_t eot, sot, n_languages, translate, transcribe, solm, prev, nosp, no_timestamps, beg;
    bool multilingual;
};

static struct specials specials_of(int64_t n_vocab) {
    struct specials s;
    s.multilingual = n_vocab > WHISPER_MIN_VOCAB;
    int32_t m = s.multilingual ? 1 : 0;
    s.n_languages = (int32_t)n_vocab - 51765 - m;
    s.eot = 50256 + m;
    s.sot = s.eot + 1;
    s.translate = s.sot + 1 + s.n_languages;
    s.transcribe = s.translate + 1;
    s.solm = s.translate + 2;
    s.prev = s.translate + 3;
    s.nosp = s.translate + 4;
    s.no_timestamps = s.translate + 5;
    s.beg = s.translate + 6;
    return s;
}

/* The spelling of a special token, whatever the container calls it; "" if it has none. */
static void spell(const struct specials * s, int32_t id, char out[SPECIAL_SIZE]) {
    static const char * const tasks[] = { "translate",   "transcribe", "startoflm",
                                          "startofprev", "nospeech",   "notimestamps" };
    const char * name = NULL;
    out[0] = 0;
    if (id == s->eot)
        name = "endoftext";
    else if (id == s->sot)
        name = "startoftranscript";
    else if (id < s->translate)
        name = sotto_language_code(id - s->sot - 1);
    else if (id < s->beg)
        name = tasks[id - s->translate];
    if (id >= s->beg)
        snprintf(out, SPECIAL_SIZE, "<|%d.%02d|>", (id - s->beg) / 50, (id - s->beg) % 50 * 2);
    else if (name != NULL)
        snprintf(out, SPECIAL_SIZE, "<|%s|>", name);
}

/* ---- keys ---- */

/* The first failure of a row of setters. */
#define SET(status, call)         \
    do {                          \
        if ((status) == SOTTO_OK) \
            (status) = (call);    \
    } while (0)

static enum sotto_status set_u32(struct writer * w, const char * key, int64_t value) {
    return sotto_gguf_set_val_u32(w->gguf, key, (uint32_t)value);
}

static const char * size_name(const struct whisper_sizes * s) {
    switch (s->audio_layers) {
    case 4: return "tiny";
    case 6: return "base";
    case 12: return "small";
    case 24: return "medium";
    case 32: return "large";
    default: return "unknown";
    }
}

static enum sotto_status set_general(struct writer * w, const struct whisper_sizes * s) {
    char name[64];
    bool v3 = s->n_vocab == 51866;
    snprintf(name, sizeof(name), "whisper-%s%s%s%s", size_name(s), s->n_vocab == WHISPER_MIN_VOCAB ? ".en" : "",
             v3 && s->audio_layers == 32 ? "-v3" : "", s->audio_layers == 32 && s->text_layers == 4 ? "-turbo" : "");
    enum sotto_status status = sotto_gguf_set_val_str(w->gguf, "general.architecture", "whisper");
    SET(status, sotto_gguf_set_val_str(w->gguf, "general.name", name));
    SET(status, set_u32(w, "general.file_type", w->params->type == SOTTO_TYPE_F16 ? 1 : 0));
    SET(status, set_u32(w, "general.quantization_version", 2));
    return status;
}

static enum sotto_status set_sizes(struct writer * w, const struct whisper_sizes * s) {
    enum sotto_status status = set_u32(w, "whisper.vocab_size", s->n_vocab);
    SET(status, set_u32(w, "whisper.mel_bands", s->n_mels));
    SET(status, set_u32(w, "whisper.encoder.context_length", s->audio_ctx));
    SET(status, set_u32(w, "whisper.encoder.embedding_length", s->width));
    SET(status, set_u32(w, "whisper.encoder.feed_forward_length", 4 * s->width));
    SET(status, set_u32(w, "whisper.encoder.block_count", s->audio_layers));
    SET(status, set_u32(w, "whisper.encoder.attention.head_count", s->audio_heads));
    SET(status, set_u32(w, "whisper.decoder.context_length", s->text_ctx));
    SET(status, set_u32(w, "whisper.decoder.embedding_length", s->width));
    SET(status, set_u32(w, "whisper.decoder.feed_forward_length", 4 * s->width));
    SET(status, set_u32(w, "whisper.decoder.block_count", s->text_layers));
    SET(status, set_u32(w, "whisper.decoder.attention.head_count", s->text_heads));
    SET(status, sotto_gguf_set_val_f32(w->gguf, "whisper.attention.layer_norm_epsilon", 1e-5f));
    SET(status, set_u32(w, "whisper.audio.sample_rate", 16000));
    SET(status, set_u32(w, "whisper.audio.n_fft", 400));
    SET(status, set_u32(w, "whisper.audio.hop_length", 160));
    SET(status, set_u32(w, "whisper.audio.chunk_seconds", 30));
    return status;
}

static enum sotto_status set_list(struct writer * w, const char * key, const struct whisper_list * list) {
    if (!list->given)
        return SOTTO_OK;
    return sotto_gguf_set_arr_data(w->gguf, key, SOTTO_GGUF_TYPE_INT32, list->ids, list->n);
}

static enum sotto_status set_traits(struct writer * w, const struct whisper_sizes * s, const struct specials * sp) {
    const struct whisper_source * source = w->source;
    bool first_distil = s->text_layers == 2 && s->n_vocab != 51866;
    enum sotto_status status = sotto_gguf_set_val_bool(w->gguf, "whisper.multilingual", sp->multilingual);
    SET(status, set_u32(w, "whisper.language_count", sp->n_languages));
    SET(status, sotto_gguf_set_val_bool(w->gguf, "whisper.timestamps", !first_distil));
    SET(status, sotto_gguf_set_val_bool(w->gguf, "whisper.speaker_turns", false));
    SET(status, set_list(w, "whisper.alignment_heads", &source->alignment_heads));
    SET(status, set_list(w, "whisper.suppress_tokens", &source->suppress));
    SET(status, set_list(w, "whisper.suppress_tokens_begin", &source->suppress_begin));
    return status;
}

/* ---- vocabulary ---- */

static enum sotto_status set_token_types(struct writer * w, const struct specials * sp) {
    size_t n = (size_t)w->source->sizes.n_vocab;
    int32_t * types = sotto_malloc(w->source->allocator, n, sizeof(*types));
    if (types == NULL)
        return SOTTO_E_MEMORY;
    for (size_t i = 0; i < n; i++)
        types[i] = i < (size_t)sp->eot ? 1 : 3;
    enum sotto_status status =
        sotto_gguf_set_arr_data(w->gguf, "tokenizer.ggml.token_type", SOTTO_GGUF_TYPE_INT32, types, n);
    sotto_mfree(w->source->allocator, types, n, sizeof(*types));
    return status;
}

/* Tokens as the container spells them, specials as Whisper does. */
static enum sotto_status set_tokens(struct writer * w, const struct specials * sp) {
    const struct whisper_source * source = w->source;
    size_t n = (size_t)source->sizes.n_vocab;
    size_t eot = (size_t)sp->eot;
    char(*spelled)[SPECIAL_SIZE] = sotto_malloc(source->allocator, n - eot, SPECIAL_SIZE);
    const char ** tokens = sotto_malloc(source->allocator, n, sizeof(*tokens));
    enum sotto_status status = SOTTO_E_MEMORY;
    if (spelled != NULL && tokens != NULL) {
        memcpy(tokens, source->tokens, n * sizeof(*tokens));
        for (size_t i = 0; i < n - eot; i++) {
            spell(sp, (int32_t)(eot + i), spelled[i]);
            if (spelled[i][0] != 0)
                tokens[eot + i] = spelled[i];
        }
        status = sotto_gguf_set_arr_str(w->gguf, "tokenizer.ggml.tokens", tokens, n);
    }
    sotto_mfree(source->allocator, spelled, n - eot, SPECIAL_SIZE);
    sotto_mfree(source->allocator, tokens, n, sizeof(*tokens));
    return status;
}

static enum sotto_status set_merges(struct writer * w, const struct specials * sp) {
    struct bpe_merges merges;
    const struct sotto_allocator * allocator = w->source->allocator;
    enum sotto_status status = sotto_i_bpe_merges(allocator, w->source->tokens, (size_t)sp->eot, &merges);
    if (status == SOTTO_OK)
        status = sotto_gguf_set_arr_str(w->gguf, "tokenizer.ggml.merges", merges.merges, merges.n);
    sotto_i_bpe_merges_free(allocator, &merges);
    return status;
}

static enum sotto_status set_languages(struct writer * w, const struct specials * sp) {
    const char * codes[MAX_SPECIALS];
    size_t n = 0;
    while (n < (size_t)sp->n_languages && n < MAX_SPECIALS && sotto_language_code((int)n) != NULL) {
        codes[n] = sotto_language_code((int)n);
        n++;
    }
    return sotto_gguf_set_arr_str(w->gguf, "tokenizer.whisper.language_codes", codes, n);
}

static enum sotto_status set_vocabulary(struct writer * w, const struct specials * sp) {
    enum sotto_status status = sotto_gguf_set_val_str(w->gguf, "tokenizer.ggml.model", "gpt2");
    SET(status, sotto_gguf_set_val_str(w->gguf, "tokenizer.ggml.pre", "gpt-2"));
    SET(status, set_merges(w, sp));
    SET(status, set_tokens(w, sp));
    SET(status, set_token_types(w, sp));
    SET(status, set_u32(w, "tokenizer.ggml.bos_token_id", sp->sot));
    SET(status, set_u32(w, "tokenizer.ggml.eos_token_id", sp->eot));
    SET(status, set_u32(w, "tokenizer.whisper.translate_token_id", sp->translate));
    SET(status, set_u32(w, "tokenizer.whisper.transcribe_token_id", sp->transcribe));
    SET(status, set_u32(w, "tokenizer.whisper.startoflm_token_id", sp->solm));
    SET(status, set_u32(w, "tokenizer.whisper.startofprev_token_id", sp->prev));
    SET(status, set_u32(w, "tokenizer.whisper.nospeech_token_id", sp->nosp));
    SET(status, set_u32(w, "tokenizer.whisper.notimestamps_token_id", sp->no_timestamps));
    SET(status, set_u32(w, "tokenizer.whisper.timestamp_begin_token_id", sp->beg));
    SET(status, set_languages(w, sp));
    return status;
}

/* ---- tensors ---- */

static enum sotto_type target_type(const struct writer * w, const struct whisper_tensor * t) {
    return t->weight ? w->params->type : SOTTO_TYPE_F32;
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
                              t->name, (double)in[i]);
    }
    return SOTTO_OK;
}

static enum sotto_status convert_piece(struct writer * w, const struct whisper_tensor * t, uint64_t first, size_t n,
                                       void * dst) {
    enum sotto_type type = target_type(w, t);
    if (type == t->source_type)
        return w->source->read(w->source->self, t, first, n, dst);
    enum sotto_status status = w->source->read(w->source->self, t, first, n, w->stage);
    if (status != SOTTO_OK)
        return status;
    to_floats(t->source_type, w->stage, type == SOTTO_TYPE_F32 ? dst : w->floats, n);
    return type == SOTTO_TYPE_F32 ? SOTTO_OK : to_halves(t, w->floats, dst, n);
}

static enum sotto_status report(const struct writer * w, uint64_t done) {
    if (w->params->progress == NULL || w->params->progress(done, w->total, w->params->progress_user_data))
        return SOTTO_OK;
    return sotto_fail(SOTTO_E_ABORTED, "sotto_convert: the caller asked to stop");
}

static enum sotto_status read_tensor(void * user_data, int64_t id, void * dst, size_t offset, size_t size) {
    struct writer * w = user_data;
    const struct whisper_tensor * t = &w->source->tensors[id];
    size_t width = sotto_type_size(target_type(w, t));
    uint8_t * out = dst;
    uint64_t first = offset / width;
    for (size_t left = size / width; left > 0;) {
        size_t n = left < STAGE ? left : STAGE;
        enum sotto_status status = convert_piece(w, t, first, n, out);
        if (status != SOTTO_OK)
            return status;
        out += n * width;
        first += n;
        left -= n;
    }
    return report(w, sotto_gguf_get_tensor_offset(w->gguf, id) + offset + size);
}

static enum sotto_status add_tensor(struct writer * w, struct sotto_context * ctx, const struct whisper_tensor * t) {
    int64_t ne[SOTTO_MAX_DIMS];
    for (int i = 0; i < t->rank; i++)
        ne[i] = t->shape[t->rank - 1 - i];
    sotto_reset(ctx);
    struct sotto_tensor * tensor = sotto_new_tensor(ctx, target_type(w, t), t->rank, ne);
    if (tensor == NULL)
        return sotto_context_status(ctx);
    sotto_set_name(tensor, t->name);
    enum sotto_status status = sotto_gguf_add_tensor(w->gguf, tensor);
    return status == SOTTO_OK ? sotto_gguf_set_tensor_reader(w->gguf, t->name, read_tensor, w) : status;
}

static enum sotto_status add_tensors(struct writer * w) {
    struct sotto_init_params init = { .mem_size = sotto_tensor_overhead(), .no_alloc = true };
    struct sotto_context * ctx = sotto_init_ext(init, w->source->allocator);
    if (ctx == NULL)
        return SOTTO_E_MEMORY;
    enum sotto_status status = SOTTO_OK;
    for (size_t i = 0; i < w->source->n_tensors && status == SOTTO_OK; i++)
        status = add_tensor(w, ctx, &w->source->tensors[i]);
    sotto_free(ctx);
    w->total = sotto_gguf_get_data_size(w->gguf);
    return status;
}

static enum sotto_status write_file(struct writer * w, const char * out) {
    const struct whisper_sizes * s = &w->source->sizes;
    struct specials sp = specials_of(s->n_vocab);
    enum sotto_status status = set_general(w, s);
    SET(status, set_sizes(w, s));
    SET(status, set_traits(w, s, &sp));
    SET(status, set_vocabulary(w, &sp));
    SET(status, add_tensors(w));
    if (status != SOTTO_OK)
        return status;
    return sotto_gguf_write_to_file(w->gguf, out, false) ? SOTTO_OK : sotto_last_error();
}

enum sotto_status sotto_i_whisper_write(struct whisper_source * source, const char * out,
                                        const struct sotto_convert_params * params) {
    struct writer w = { .source = source, .params = params };
    w.gguf = sotto_gguf_init_empty_ext(source->allocator);
    w.stage = sotto_malloc(source->allocator, STAGE, sizeof(float));
    w.floats = sotto_malloc(source->allocator, STAGE, sizeof(float));
    enum sotto_status status = SOTTO_E_MEMORY;
    if (w.gguf != NULL && w.stage != NULL && w.floats != NULL)
        status = write_file(&w, out);
    sotto_mfree(source->allocator, w.stage, STAGE, sizeof(float));
    sotto_mfree(source->allocator, w.floats, STAGE, sizeof(float));
    sotto_gguf_free(w.gguf);
    return status;
}

void sotto_i_whisper_source_free(struct whisper_source * source) {
    const struct sotto_allocator * allocator = source->allocator;
    sotto_mfree(allocator, source->text, source->text_size, 1);
    sotto_mfree(allocator, source->tokens, (size_t)source->sizes.n_vocab, sizeof(*source->tokens));
    sotto_mfree(allocator, source->alignment_heads.ids, source->alignment_heads.n, sizeof(int32_t));
    sotto_mfree(allocator, source->suppress.ids, source->suppress.n, sizeof(int32_t));
    sotto_mfree(allocator, source->suppress_begin.ids, source->suppress_begin.n, sizeof(int32_t));
    sotto_mfree(allocator, source->tensors, source->cap_tensors, sizeof(*source->tensors));
}
