/* SPDX-License-Identifier: MIT */
#include "support/tiny_model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sotto/cpu.h"
#include "sotto/gguf.h"
#include "sotto/quant.h"
#include "sotto/tensor.h"

enum { N_VOCAB = 51865, N_MELS = 80, N_TEXT = 448, N_ORDINARY = 50257, SPELLING = 16 };

struct maker {
    struct sotto_context * ctx;
    struct sotto_gguf_context * gguf;
    uint32_t random;
    enum sotto_type type;
    int64_t width;
    bool ok;
};

int64_t tiny_model_width(enum sotto_type type) {
    const int64_t block = sotto_blck_size(type);
    return block > 64 ? block : 64;
}

/* Uniform in [-1, 1): a plain linear congruential generator, so that the model is the same everywhere. */
static float next_random(struct maker * m) {
    m->random = m->random * 1664525u + 1013904223u;
    return (float)(m->random >> 8) / 8388608.0f - 1.0f;
}

/* Rows of base + scale * random, quantised row by row with weights that are all alike. */
static bool fill(struct maker * m, struct sotto_tensor * t, float base, float scale) {
    enum { MOST = 1024, DISTINCT = 512 };
    float row[MOST], weights[MOST];
    const size_t size = sotto_row_size(t->type, t->ne[0]);
    bool ok = t->ne[0] <= MOST;
    for (int64_t r = 0, n = sotto_nrows(t); ok && r < n; r++) {
        char * out = (char *)t->data + (size_t)r * size;
        if (r >= DISTINCT && sotto_is_quantized(t->type)) {
            memcpy(out, out - DISTINCT * size, size);
            continue;
        }
        for (int64_t i = 0; i < t->ne[0]; i++) {
            row[i] = base + scale * next_random(m);
            weights[i] = 1.0f;
        }
        ok = sotto_quantize_chunk(t->type, row, out, 0, 1, t->ne[0], weights) == size;
    }
    return ok;
}

/* A tensor named `name`: base + scale * random. */
static void add(struct maker * m, const char * name, enum sotto_type type, int n_dims, const int64_t * ne, float base,
                float scale) {
    struct sotto_tensor * t = m->ok ? sotto_new_tensor(m->ctx, type, n_dims, ne) : NULL;
    if (t == NULL) {
        m->ok = false;
        return;
    }
    sotto_set_name(t, name);
    m->ok = fill(m, t, base, scale) && sotto_gguf_add_tensor(m->gguf, t) == SOTTO_OK;
}

static void vector(struct maker * m, const char * prefix, const char * name, int64_t n, float base, float scale) {
    char full[64];
    snprintf(full, sizeof(full), "%s%s", prefix, name);
    add(m, full, SOTTO_TYPE_F32, 1, &n, base, scale);
}

static void matrix(struct maker * m, const char * prefix, const char * name, int64_t in, int64_t out, float scale) {
    char full[64];
    snprintf(full, sizeof(full), "%s%s", prefix, name);
    add(m, full, m->type, 2, (const int64_t[]){ in, out }, 0.0f, scale);
}

static void norm(struct maker * m, const char * prefix, const char * name) {
    const int64_t D = m->width;
    char full[48];
    snprintf(full, sizeof(full), "%s.weight", name);
    vector(m, prefix, full, D, 1.0f, 0.1f);
    snprintf(full, sizeof(full), "%s.bias", name);
    vector(m, prefix, full, D, 0.0f, 0.1f);
}

/* `kind` is "attn" or "cross_attn". */
static void attention(struct maker * m, const char * prefix, const char * kind) {
    static const char * parts[] = { "q", "k", "v", "output" };
    const int64_t D = m->width;
    char full[48];
    for (int i = 0; i < 4; i++) {
        snprintf(full, sizeof(full), "%s_%s.weight", kind, parts[i]);
        matrix(m, prefix, full, D, D, 0.2f);
        if (i != 1) {
            snprintf(full, sizeof(full), "%s_%s.bias", kind, parts[i]);
            vector(m, prefix, full, D, 0.0f, 0.1f);
        }
    }
}

static void feed_forward(struct maker * m, const char * prefix) {
    const int64_t D = m->width;
    norm(m, prefix, "ffn_norm");
    matrix(m, prefix, "ffn_up.weight", D, 4 * D, 0.2f);
    vector(m, prefix, "ffn_up.bias", 4 * D, 0.0f, 0.1f);
    matrix(m, prefix, "ffn_down.weight", 4 * D, D, 0.1f);
    vector(m, prefix, "ffn_down.bias", D, 0.0f, 0.1f);
}

/* The encoder's position table is left out: it is optional, so readers compute it. */
static void tensors(struct maker * m) {
    const int64_t D = m->width;
    const enum sotto_type kernel = sotto_is_quantized(m->type) ? SOTTO_TYPE_F16 : m->type;
    add(m, "enc.conv1.weight", kernel, 3, (const int64_t[]){ 3, N_MELS, D }, 0.0f, 0.1f);
    vector(m, "", "enc.conv1.bias", D, 0.0f, 0.1f);
    add(m, "enc.conv2.weight", kernel, 3, (const int64_t[]){ 3, D, D }, 0.0f, 0.1f);
    vector(m, "", "enc.conv2.bias", D, 0.0f, 0.1f);
    norm(m, "enc.blk.0.", "attn_norm");
    attention(m, "enc.blk.0.", "attn");
    feed_forward(m, "enc.blk.0.");
    norm(m, "", "enc.output_norm");
    matrix(m, "", "dec.token_embd.weight", D, N_VOCAB, 0.3f);
    add(m, "dec.pos_embd.weight", SOTTO_TYPE_F32, 2, (const int64_t[]){ D, N_TEXT }, 0.0f, 0.1f);
    norm(m, "dec.blk.0.", "attn_norm");
    attention(m, "dec.blk.0.", "attn");
    norm(m, "dec.blk.0.", "cross_attn_norm");
    attention(m, "dec.blk.0.", "cross_attn");
    feed_forward(m, "dec.blk.0.");
    norm(m, "", "dec.output_norm");
}

static int byte_of_id(int id) {
    static const int runs[][2] = { { 33, 126 }, { 161, 172 }, { 174, 255 }, { 0, 32 }, { 127, 160 }, { 173, 173 } };
    for (size_t i = 0; i < sizeof(runs) / sizeof(*runs); i++) {
        const int n = runs[i][1] - runs[i][0] + 1;
        if (id < n) {
            return runs[i][0] + id;
        }
        id -= n;
    }
    return 0;
}

/* One byte in the alphabet of files that store tokens as text. */
static size_t spell_byte(int byte, char * out) {
    int code = byte;
    if (byte <= 32) {
        code = 256 + byte;
    } else if (byte >= 127 && byte <= 160) {
        code = 256 + 33 + byte - 127;
    } else if (byte == 173) {
        code = 256 + 67;
    }
    if (code < 128) {
        out[0] = (char)code;
        return 1;
    }
    out[0] = (char)(0xC0 | (code >> 6));
    out[1] = (char)(0x80 | (code & 63));
    return 2;
}

/* The single bytes, then pairs of bytes, one empty entry, then specials. */
static bool vocabulary(struct maker * m) {
    char * text = calloc(N_VOCAB, SPELLING);
    const char ** tokens = malloc(N_VOCAB * sizeof(*tokens));
    bool ok = text != NULL && tokens != NULL;
    for (int id = 0; ok && id < N_VOCAB; id++) {
        char * out = text + (size_t)id * SPELLING;
        if (id < 256) {
            spell_byte(byte_of_id(id), out);
        } else if (id < N_ORDINARY - 1) {
            const size_t n = spell_byte((id - 256) / 256, out);
            spell_byte((id - 256) % 256, out + n);
        } else if (id >= N_ORDINARY) {
            snprintf(out, SPELLING, "<|%d|>", id);
        }
        tokens[id] = out;
    }
    ok = ok && sotto_gguf_set_arr_str(m->gguf, "tokenizer.ggml.tokens", tokens, N_VOCAB) == SOTTO_OK;
    free(tokens);
    free(text);
    return ok;
}

static bool keys(struct maker * m) {
    const uint32_t D = (uint32_t)m->width, heads = D / 64;
    const struct {
        const char * key;
        uint32_t value;
    } numbers[] = {
        { "general.file_type", 0 },
        { "general.quantization_version", 2 },
        { "whisper.vocab_size", N_VOCAB },
        { "whisper.mel_bands", N_MELS },
        { "whisper.encoder.context_length", 1500 },
        { "whisper.encoder.embedding_length", D },
        { "whisper.encoder.feed_forward_length", 4 * D },
        { "whisper.encoder.block_count", 1 },
        { "whisper.encoder.attention.head_count", heads },
        { "whisper.decoder.context_length", N_TEXT },
        { "whisper.decoder.embedding_length", D },
        { "whisper.decoder.feed_forward_length", 4 * D },
        { "whisper.decoder.block_count", 1 },
        { "whisper.decoder.attention.head_count", heads },
        { "whisper.audio.sample_rate", 16000 },
        { "whisper.audio.n_fft", 400 },
        { "whisper.audio.hop_length", 160 },
        { "whisper.audio.chunk_seconds", 30 },
        { "whisper.language_count", 99 },
    };
    bool ok = sotto_gguf_set_val_str(m->gguf, "general.architecture", "whisper") == SOTTO_OK &&
              sotto_gguf_set_val_str(m->gguf, "general.name", "tiny test model") == SOTTO_OK &&
              sotto_gguf_set_val_f32(m->gguf, "whisper.attention.layer_norm_epsilon", 1e-5f) == SOTTO_OK &&
              sotto_gguf_set_val_bool(m->gguf, "whisper.multilingual", true) == SOTTO_OK &&
              sotto_gguf_set_val_bool(m->gguf, "whisper.timestamps", true) == SOTTO_OK &&
              sotto_gguf_set_val_bool(m->gguf, "whisper.speaker_turns", false) == SOTTO_OK &&
              sotto_gguf_set_val_str(m->gguf, "tokenizer.ggml.model", "gpt2") == SOTTO_OK;
    for (size_t i = 0; ok && i < sizeof(numbers) / sizeof(*numbers); i++) {
        ok = sotto_gguf_set_val_u32(m->gguf, numbers[i].key, numbers[i].value) == SOTTO_OK;
    }
    return ok && vocabulary(m);
}

bool tiny_model_write(const char * path, enum sotto_type type, uint32_t seed) {
    struct maker m = { .ctx = sotto_init((struct sotto_init_params){ .mem_size = 32 << 20 }),
                       .gguf = sotto_gguf_init_empty(),
                       .random = seed,
                       .type = type,
                       .width = tiny_model_width(type),
                       .ok = true };
    m.ok = m.ctx != NULL && m.gguf != NULL && keys(&m);
    if (m.ok) {
        tensors(&m);
    }
    m.ok = m.ok && sotto_gguf_write_to_file(m.gguf, path, false);
    if (!m.ok) {
        fprintf(stderr, "tiny model: %s\n", sotto_last_error_text());
    }
    sotto_gguf_free(m.gguf);
    sotto_free(m.ctx);
    return m.ok;
}

static char path[512];

static void remove_model(void) { remove(path); }

const char * tiny_model(void) {
    if (path[0] == '\0') {
        const char * folder = getenv("SOTTO_BUILD");
        snprintf(path, sizeof(path), "%s/tiny-%ld.gguf", folder != NULL ? folder : "/tmp", (long)getpid());
        if (!tiny_model_write(path, SOTTO_TYPE_F32, 1)) {
            path[0] = '\0';
            return NULL;
        }
        atexit(remove_model);
    }
    return path;
}

void tiny_model_not_plain_c(void) {
    if (sotto_cpu_get_level() == SOTTO_CPU_LEVEL_C) {
        sotto_cpu_set_level(sotto_cpu_best_level());
    }
}
