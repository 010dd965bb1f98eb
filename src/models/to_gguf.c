/* SPDX-License-Identifier: MIT */
/* A Whisper model as GGUF: keys from its sizes and vocabulary, tensors converted as they are written. */
#include <stdio.h>
#include <string.h>

#include "models/models_impl.h"

#define MAX_SPECIALS 1024

struct writer {
    struct whisper_source * source;
    const struct sotto_convert_params * params;
    struct sotto_gguf_context * gguf;
    uint64_t total;
};

/* ---- keys ---- */

/* The first failure of a row of setters. */
#define SET(status, call)         \
    do {                          \
        if ((status) == SOTTO_OK) \
            (status) = (call);    \
    } while (0)

/* What the input says beyond what is set below, its licence for one; but for what a quantiser said of itself. */
static enum sotto_status keep_pairs(struct writer * w) {
    if (w->source->pairs == NULL)
        return SOTTO_OK;
    enum sotto_status status = sotto_gguf_set_kv(w->gguf, w->source->pairs);
    for (int64_t i = sotto_gguf_get_n_kv(w->gguf) - 1; i >= 0 && status == SOTTO_OK; i--) {
        const char * key = sotto_gguf_get_key(w->gguf, i);
        if (strncmp(key, "quantize.", 9) == 0 || strcmp(key, "general.file_type") == 0)
            sotto_gguf_remove_key(w->gguf, key);
    }
    return status;
}

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
    const char * kept = NULL;
    int ftype = sotto_i_whisper_ftype(w->source);
    if (w->source->pairs != NULL)
        sotto_gguf_get_str(w->source->pairs, "general.name", &kept);
    bool v3 = s->n_vocab == 51866;
    snprintf(name, sizeof(name), "whisper-%s%s%s%s", size_name(s), s->n_vocab == WHISPER_MIN_VOCAB ? ".en" : "",
             v3 && s->audio_layers == 32 ? "-v3" : "", s->audio_layers == 32 && s->text_layers == 4 ? "-turbo" : "");
    enum sotto_status status = sotto_gguf_set_val_str(w->gguf, "general.architecture", "whisper");
    SET(status, sotto_gguf_set_val_str(w->gguf, "general.name", kept != NULL ? kept : name));
    if (ftype >= 0)
        SET(status, set_u32(w, "general.file_type", ftype));
    SET(status, set_u32(w, "general.quantization_version", 2));
    if (w->params->imatrix != NULL)
        SET(status, sotto_gguf_set_val_i32(w->gguf, "quantize.imatrix.entries_count",
                                           (int32_t)sotto_imatrix_n_entries(w->params->imatrix)));
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

static enum sotto_status set_traits(struct writer * w, const struct whisper_sizes * s,
                                    const struct whisper_specials * sp) {
    const struct whisper_source * source = w->source;
    bool first_distil = s->text_layers == 2 && s->n_vocab != 51866;
    bool speaker_turns = false;
    if (source->pairs != NULL)
        sotto_gguf_get_bool(source->pairs, "whisper.speaker_turns", &speaker_turns);
    enum sotto_status status = sotto_gguf_set_val_bool(w->gguf, "whisper.multilingual", sp->multilingual);
    SET(status, set_u32(w, "whisper.language_count", sp->n_languages));
    SET(status, sotto_gguf_set_val_bool(w->gguf, "whisper.timestamps", !first_distil));
    SET(status, sotto_gguf_set_val_bool(w->gguf, "whisper.speaker_turns", speaker_turns));
    SET(status, set_list(w, "whisper.alignment_heads", &source->alignment_heads));
    SET(status, set_list(w, "whisper.suppress_tokens", &source->suppress));
    SET(status, set_list(w, "whisper.suppress_tokens_begin", &source->suppress_begin));
    return status;
}

/* ---- vocabulary ---- */

static enum sotto_status set_token_types(struct writer * w, const struct whisper_specials * sp) {
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
static enum sotto_status set_tokens(struct writer * w, const struct whisper_specials * sp) {
    const struct whisper_source * source = w->source;
    size_t n = (size_t)source->sizes.n_vocab;
    size_t eot = (size_t)sp->eot;
    char(*spelled)[WHISPER_SPECIAL_SIZE] = sotto_malloc(source->allocator, n - eot, WHISPER_SPECIAL_SIZE);
    const char ** tokens = sotto_malloc(source->allocator, n, sizeof(*tokens));
    enum sotto_status status = SOTTO_E_MEMORY;
    if (spelled != NULL && tokens != NULL) {
        memcpy(tokens, source->tokens, n * sizeof(*tokens));
        for (size_t i = 0; i < n - eot; i++) {
            sotto_i_whisper_spell(sp, (int32_t)(eot + i), spelled[i]);
            if (spelled[i][0] != 0)
                tokens[eot + i] = spelled[i];
        }
        status = sotto_gguf_set_arr_str(w->gguf, "tokenizer.ggml.tokens", tokens, n);
    }
    sotto_mfree(source->allocator, spelled, n - eot, WHISPER_SPECIAL_SIZE);
    sotto_mfree(source->allocator, tokens, n, sizeof(*tokens));
    return status;
}

static enum sotto_status set_merges(struct writer * w, const struct whisper_specials * sp) {
    struct bpe_merges merges;
    const struct sotto_allocator * allocator = w->source->allocator;
    enum sotto_status status = sotto_i_bpe_merges(allocator, w->source->tokens, (size_t)sp->eot, &merges);
    if (status == SOTTO_OK)
        status = sotto_gguf_set_arr_str(w->gguf, "tokenizer.ggml.merges", merges.merges, merges.n);
    sotto_i_bpe_merges_free(allocator, &merges);
    return status;
}

static enum sotto_status set_languages(struct writer * w, const struct whisper_specials * sp) {
    const char * codes[MAX_SPECIALS];
    size_t n = 0;
    while (n < (size_t)sp->n_languages && n < MAX_SPECIALS && sotto_language_code((int)n) != NULL) {
        codes[n] = sotto_language_code((int)n);
        n++;
    }
    return sotto_gguf_set_arr_str(w->gguf, "tokenizer.whisper.language_codes", codes, n);
}

static enum sotto_status set_vocabulary(struct writer * w, const struct whisper_specials * sp) {
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

/* Ids are not places in the source: what is computed has no tensor in the file. */
static const struct whisper_tensor * tensor_of(const struct writer * w, int64_t id) {
    return sotto_i_whisper_find(w->source, WHISPER_GGUF, sotto_gguf_get_tensor_name(w->gguf, id));
}

static enum sotto_status read_tensor(void * user_data, int64_t id, void * dst, size_t offset, size_t size) {
    struct writer * w = user_data;
    const struct whisper_tensor * t = tensor_of(w, id);
    size_t unit = sotto_type_size(t->stored);
    size_t block = (size_t)sotto_blck_size(t->stored);
    enum sotto_status status = sotto_i_whisper_values(w->source, t, offset / unit * block, size / unit * block, dst);
    if (status != SOTTO_OK)
        return status;
    return sotto_i_convert_report(w->params, sotto_gguf_get_tensor_offset(w->gguf, id) + offset + size, w->total);
}

static enum sotto_status add_tensor(struct writer * w, struct sotto_context * ctx, const struct whisper_tensor * t) {
    int64_t ne[SOTTO_MAX_DIMS];
    for (int i = 0; i < t->rank; i++)
        ne[i] = t->shape[t->rank - 1 - i];
    sotto_reset(ctx);
    struct sotto_tensor * tensor = sotto_new_tensor(ctx, t->stored, t->rank, ne);
    if (tensor == NULL)
        return sotto_context_status(ctx);
    sotto_set_name(tensor, sotto_i_whisper_name(t, WHISPER_GGUF).text);
    enum sotto_status status = sotto_gguf_add_tensor(w->gguf, tensor);
    return status == SOTTO_OK ? sotto_gguf_set_tensor_reader(w->gguf, tensor->name, read_tensor, w) : status;
}

static enum sotto_status add_tensors(struct writer * w) {
    struct sotto_init_params init = { .mem_size = sotto_tensor_overhead(), .no_alloc = true };
    struct sotto_context * ctx = sotto_init_ext(init, w->source->allocator);
    if (ctx == NULL)
        return SOTTO_E_MEMORY;
    enum sotto_status status = SOTTO_OK;
    for (size_t i = 0; i < w->source->n_tensors && status == SOTTO_OK; i++) {
        if (w->source->tensors[i].found)
            status = add_tensor(w, ctx, &w->source->tensors[i]);
    }
    sotto_free(ctx);
    w->total = sotto_gguf_get_data_size(w->gguf);
    return status;
}

static enum sotto_status write_file(struct writer * w, const char * out) {
    const struct whisper_sizes * s = &w->source->sizes;
    struct whisper_specials sp = sotto_i_whisper_specials(s);
    enum sotto_status status = keep_pairs(w);
    SET(status, set_general(w, s));
    SET(status, set_sizes(w, s));
    SET(status, set_traits(w, s, &sp));
    SET(status, set_vocabulary(w, &sp));
    SET(status, add_tensors(w));
    if (status != SOTTO_OK)
        return status;
    return sotto_gguf_write_to_file(w->gguf, out, false) ? SOTTO_OK : sotto_last_error();
}

enum sotto_status sotto_i_to_gguf(struct whisper_source * source, const char * out,
                                  const struct sotto_convert_params * params) {
    struct writer w = { .source = source, .params = params };
    w.gguf = sotto_gguf_init_empty_ext(source->allocator);
    enum sotto_status status = w.gguf != NULL ? write_file(&w, out) : SOTTO_E_MEMORY;
    sotto_gguf_free(w.gguf);
    return status;
}
