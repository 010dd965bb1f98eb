/* SPDX-License-Identifier: MIT */
/* The files of a Hugging Face folder but the weights: what programs of that family look for, made from the sizes, the
 * vocabulary and the lists. Specials are spelled as Whisper does, merges follow from the vocabulary. */
#include <stdio.h>
#include <string.h>

#include "models/models_impl.h"
#include "sotto/file.h"

struct writer {
    struct whisper_source * source;
    struct whisper_specials specials;
    struct bpe_merges merges;
    FILE * out; /* the file in hand */
};

/* ---- pieces ---- */

static void put_string(FILE * out, const char * text) {
    fputc('"', out);
    for (const char * c = text; *c != 0; c++) {
        if (*c == '"' || *c == '\\')
            fprintf(out, "\\%c", *c);
        else if ((unsigned char)*c < 0x20)
            fprintf(out, "\\u%04x", (unsigned)*c);
        else
            fputc(*c, out);
    }
    fputc('"', out);
}

/* "spelling": id, from the first id on; specials that have no spelling are left out. */
static void put_tokens(const struct writer * w, int32_t first, int32_t end) {
    const char * before = "";
    for (int32_t id = first; id < end; id++) {
        char spelled[WHISPER_SPECIAL_SIZE] = "";
        if (id >= w->specials.eot)
            sotto_i_whisper_spell(&w->specials, id, spelled);
        if (id >= w->specials.eot && spelled[0] == 0)
            continue;
        fputs(before, w->out);
        put_string(w->out, id < w->specials.eot ? w->source->tokens[id] : spelled);
        fprintf(w->out, ":%ld", (long)id);
        before = ",";
    }
}

/* Words and the end of text. Without its empty word a vocabulary has one less. */
static void put_words(const struct writer * w) {
    fputc('{', w->out);
    put_tokens(w, 0, w->specials.eot + 1);
    fputc('}', w->out);
}

static void put_list(const struct writer * w, const char * key, const struct whisper_list * list, bool pairs) {
    if (!list->given)
        return;
    fprintf(w->out, ",\n  \"%s\": [", key);
    for (size_t i = 0; i < list->n; i++) {
        const char * open = pairs && i % 2 == 0 ? "[" : "";
        const char * close = pairs && i % 2 == 1 ? "]" : "";
        fprintf(w->out, "%s%s%ld%s", i > 0 ? ", " : "", open, (long)list->ids[i], close);
    }
    fputc(']', w->out);
}

/* ---- files ---- */

static void put_config(struct writer * w) {
    const struct whisper_sizes * s = &w->source->sizes;
    const struct {
        const char * key;
        int64_t value;
    } rows[] = {
        { "vocab_size", s->n_vocab },
        { "num_mel_bins", s->n_mels },
        { "d_model", s->width },
        { "encoder_layers", s->audio_layers },
        { "encoder_attention_heads", s->audio_heads },
        { "encoder_ffn_dim", 4 * s->width },
        { "decoder_layers", s->text_layers },
        { "decoder_attention_heads", s->text_heads },
        { "decoder_ffn_dim", 4 * s->width },
        { "max_source_positions", s->audio_ctx },
        { "max_target_positions", s->text_ctx },
        { "num_hidden_layers", s->audio_layers },
        { "bos_token_id", w->specials.eot },
        { "eos_token_id", w->specials.eot },
        { "pad_token_id", w->specials.eot },
        { "decoder_start_token_id", w->specials.sot },
    };
    fputs("{\n  \"architectures\": [\"WhisperForConditionalGeneration\"],\n  \"model_type\": \"whisper\",\n"
          "  \"activation_function\": \"gelu\",\n  \"scale_embedding\": false,\n  \"is_encoder_decoder\": true,\n"
          "  \"tie_word_embeddings\": true",
          w->out);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        fprintf(w->out, ",\n  \"%s\": %lld", rows[i].key, (long long)rows[i].value);
    put_list(w, "suppress_tokens", &w->source->suppress, false);
    put_list(w, "begin_suppress_tokens", &w->source->suppress_begin, false);
    fputs("\n}\n", w->out);
}

static void put_generation(struct writer * w) {
    const struct whisper_specials * s = &w->specials;
    fprintf(w->out,
            "{\n  \"bos_token_id\": %ld,\n  \"eos_token_id\": %ld,\n  \"pad_token_id\": %ld,\n"
            "  \"decoder_start_token_id\": %ld,\n  \"no_timestamps_token_id\": %ld,\n  \"prev_sot_token_id\": %ld,\n"
            "  \"max_length\": %lld,\n  \"return_timestamps\": false,\n  \"is_multilingual\": %s",
            (long)s->eot, (long)s->eot, (long)s->eot, (long)s->sot, (long)s->no_timestamps, (long)s->prev,
            (long long)w->source->sizes.text_ctx, s->multilingual ? "true" : "false");
    put_list(w, "alignment_heads", &w->source->alignment_heads, true);
    put_list(w, "suppress_tokens", &w->source->suppress, false);
    put_list(w, "begin_suppress_tokens", &w->source->suppress_begin, false);
    if (s->multilingual) {
        fputs(",\n  \"lang_to_id\": {", w->out);
        put_tokens(w, s->sot + 1, s->translate);
        fprintf(w->out, "},\n  \"task_to_id\": {\"transcribe\": %ld, \"translate\": %ld}", (long)s->transcribe,
                (long)s->translate);
    }
    fputs("\n}\n", w->out);
}

static void put_preprocessor(struct writer * w) {
    fprintf(w->out,
            "{\n  \"feature_extractor_type\": \"WhisperFeatureExtractor\",\n  \"processor_class\": "
            "\"WhisperProcessor\",\n  \"feature_size\": %lld,\n  \"sampling_rate\": 16000,\n  \"hop_length\": 160,\n"
            "  \"n_fft\": 400,\n  \"chunk_length\": 30,\n  \"n_samples\": 480000,\n  \"nb_max_frames\": 3000,\n"
            "  \"padding_side\": \"right\",\n  \"padding_value\": 0.0,\n  \"return_attention_mask\": false\n}\n",
            (long long)w->source->sizes.n_mels);
}

static void put_vocab(struct writer * w) {
    put_words(w);
    fputc('\n', w->out);
}

static void put_added(struct writer * w) {
    fputc('{', w->out);
    put_tokens(w, w->specials.sot, (int32_t)w->source->sizes.n_vocab);
    fputs("}\n", w->out);
}

static void put_merges(struct writer * w) {
    fputs("#version: 0.2\n", w->out);
    for (size_t i = 0; i < w->merges.n; i++)
        fprintf(w->out, "%s\n", w->merges.merges[i]);
}

static void put_tokenizer_config(struct writer * w) {
    fputs("{\n  \"tokenizer_class\": \"WhisperTokenizer\",\n  \"processor_class\": \"WhisperProcessor\",\n"
          "  \"add_prefix_space\": false,\n  \"errors\": \"replace\",\n  \"model_max_length\": 1024,\n"
          "  \"bos_token\": \"<|endoftext|>\",\n  \"eos_token\": \"<|endoftext|>\",\n"
          "  \"pad_token\": \"<|endoftext|>\",\n  \"unk_token\": \"<|endoftext|>\"\n}\n",
          w->out);
}

/* The one file of fast tokenizers. Timestamps are tokens that were added, but not specials, which people hide. */
static void put_tokenizer(struct writer * w) {
    const char * before = "";
    fputs("{\"version\":\"1.0\",\"truncation\":null,\"padding\":null,\"added_tokens\":[", w->out);
    for (int32_t id = w->specials.eot; id < w->source->sizes.n_vocab; id++) {
        char spelled[WHISPER_SPECIAL_SIZE];
        sotto_i_whisper_spell(&w->specials, id, spelled);
        if (spelled[0] == 0)
            continue;
        fprintf(w->out,
                "%s\n{\"id\":%ld,\"content\":\"%s\",\"single_word\":false,\"lstrip\":false,\"rstrip\":false,"
                "\"normalized\":false,\"special\":%s}",
                before, (long)id, spelled, id < w->specials.beg ? "true" : "false");
        before = ",";
    }
    fputs("],\n\"normalizer\":null,\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":false,"
          "\"trim_offsets\":true,\"use_regex\":true},\"post_processor\":null,\"decoder\":{\"type\":\"ByteLevel\","
          "\"add_prefix_space\":true,\"trim_offsets\":true,\"use_regex\":true},\n\"model\":{\"type\":\"BPE\","
          "\"dropout\":null,\"unk_token\":null,\"continuing_subword_prefix\":\"\",\"end_of_word_suffix\":\"\","
          "\"fuse_unk\":false,\"vocab\":",
          w->out);
    put_words(w);
    fputs(",\"merges\":[", w->out);
    for (size_t i = 0; i < w->merges.n; i++) {
        fputs(i > 0 ? "," : "", w->out);
        put_string(w->out, w->merges.merges[i]);
    }
    fputs("]}}\n", w->out);
}

static const struct {
    const char * name;
    void (*put)(struct writer * w);
} FILES[] = {
    { "config.json", put_config },
    { "generation_config.json", put_generation },
    { "preprocessor_config.json", put_preprocessor },
    { "vocab.json", put_vocab },
    { "merges.txt", put_merges },
    { "added_tokens.json", put_added },
    { "tokenizer_config.json", put_tokenizer_config },
    { "tokenizer.json", put_tokenizer },
};

static enum sotto_status put_file(struct writer * w, const char * path, void (*put)(struct writer * w)) {
    const struct sotto_file_params params = { .size = sizeof(params), .allocator = w->source->allocator };
    struct sotto_file * file;
    enum sotto_status status = sotto_file_create(path, &params, &file);
    if (status != SOTTO_OK)
        return status;
    w->out = sotto_file_stream(file);
    if (w->out == NULL)
        return sotto_file_finish(file, sotto_last_error());
    put(w);
    return sotto_file_finish(file, SOTTO_OK);
}

enum sotto_status sotto_i_to_hf_texts(struct whisper_source * source, const char * folder) {
    struct writer w = { .source = source, .specials = sotto_i_whisper_specials(&source->sizes) };
    size_t size = strlen(folder) + 32;
    char * path = sotto_malloc(source->allocator, size, 1);
    enum sotto_status status = path != NULL ? SOTTO_OK : SOTTO_E_MEMORY;
    if (status == SOTTO_OK)
        status = sotto_i_bpe_merges(source->allocator, source->tokens, (size_t)w.specials.eot, &w.merges);
    for (size_t i = 0; i < sizeof(FILES) / sizeof(FILES[0]) && status == SOTTO_OK; i++) {
        snprintf(path, size, "%s%s", folder, FILES[i].name);
        status = put_file(&w, path, FILES[i].put);
    }
    sotto_i_bpe_merges_free(source->allocator, &w.merges);
    sotto_mfree(source->allocator, path, size, 1);
    return status;
}
