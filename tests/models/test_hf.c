/* SPDX-License-Identifier: MIT */
/* Hugging Face folders: a tiny model written here, whole and in shards, with either kind of vocabulary; what becomes of
 * its numbers; and every way in which weights, settings, index and vocabulary can be wrong. Nothing may be left behind,
 * and an old output stays as it was. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "conversion.h"
#include "counting_allocator.h"
#include "gguf_example.h"
#include "models/models_impl.h"
#include "refuse_each.h"

enum { D = 4, MELS = 3, AUDIO = 5, TEXT = 6, VOCAB = 51865, WORDS = 50257, MAX_TENSORS = 64 };

struct tensor {
    char name[96];
    int rank;
    int dims[4];
    enum sotto_type type;
};

static struct tensor tensors[MAX_TENSORS];
static int n_tensors;
static char folder[512], output[600];

/* ---- the model ---- */

static struct tensor * add(const char * name, int rank, int d0, int d1, int d2) {
    struct tensor * t = &tensors[n_tensors++];
    assert_true(n_tensors <= MAX_TENSORS);
    *t = (struct tensor){ .rank = rank, .dims = { d0, d1, d2 }, .type = SOTTO_TYPE_F16 };
    snprintf(t->name, sizeof(t->name), "%s", name);
    return t;
}

static void add_pair(const char * prefix, const char * name, int out, int in, bool bias) {
    char full[96];
    snprintf(full, sizeof(full), "%s%s.weight", prefix, name);
    add(full, in > 0 ? 2 : 1, out, in, 0);
    snprintf(full, sizeof(full), "%s%s.bias", prefix, name);
    if (bias)
        add(full, 1, out, 0, 0);
}

static void add_attention(const char * prefix, const char * name) {
    char full[64];
    snprintf(full, sizeof(full), "%s_layer_norm", name);
    add_pair(prefix, full, D, 0, true);
    for (int i = 0; i < 4; i++) {
        snprintf(full, sizeof(full), "%s.%.3s_proj", name, &"q\0\0k\0\0v\0\0out"[3 * i]);
        add_pair(prefix, full, D, D, i != 1);
    }
}

static void add_layer(const char * prefix, bool cross) {
    add_attention(prefix, "self_attn");
    if (cross)
        add_attention(prefix, "encoder_attn");
    add_pair(prefix, "final_layer_norm", D, 0, true);
    add_pair(prefix, "fc1", 4 * D, D, true);
    add_pair(prefix, "fc2", D, 4 * D, true);
}

static void describe(void) {
    n_tensors = 0;
    add("model.encoder.conv1.weight", 3, D, MELS, 3);
    add("model.encoder.conv1.bias", 1, D, 0, 0);
    add("model.encoder.conv2.weight", 3, D, D, 3);
    add("model.encoder.conv2.bias", 1, D, 0, 0);
    add("model.encoder.embed_positions.weight", 2, AUDIO, D, 0);
    add_layer("model.encoder.layers.0.", false);
    add_pair("model.encoder.", "layer_norm", D, 0, true);
    add("model.decoder.embed_tokens.weight", 2, VOCAB, D, 0);
    add("model.decoder.embed_positions.weight", 2, TEXT, D, 0);
    add_layer("model.decoder.layers.0.", true);
    add_pair("model.decoder.", "layer_norm", D, 0, true);
}

static struct tensor * find(const char * name) {
    for (int i = 0; i < n_tensors; i++) {
        if (strcmp(tensors[i].name, name) == 0)
            return &tensors[i];
    }
    fail_msg("no tensor %s", name);
    return NULL;
}

static size_t items(const struct tensor * t) {
    size_t n = 1;
    for (int i = 0; i < t->rank; i++)
        n *= (size_t)t->dims[i];
    return n;
}

/* The value of an element, exact in every type: different in each tensor. */
static float value_of(const struct tensor * t, size_t i) {
    return ((float)((i + strlen(t->name) * 7) % 253) - 126) / 64;
}

/* ---- writing ---- */

static const char * in_folder(const char * name) {
    static char path[2][700];
    static int turn;
    turn = !turn;
    snprintf(path[turn], sizeof(path[turn]), "%s/%s", folder, name);
    return path[turn];
}

static void put_text(const char * name, const char * text) { write_bytes(in_folder(name), text, strlen(text)); }

static const char * dtype_of(enum sotto_type type) {
    return type == SOTTO_TYPE_F32 ? "F32" : type == SOTTO_TYPE_F16 ? "F16" : "BF16";
}

static void put_value(uint8_t * to, enum sotto_type type, float x) {
    if (type == SOTTO_TYPE_F32)
        memcpy(to, &x, 4);
    else if (type == SOTTO_TYPE_F16)
        memcpy(to, &(sotto_fp16_t){ sotto_fp32_to_fp16(x) }, 2);
    else
        memcpy(to, &(sotto_bf16_t){ sotto_fp32_to_bf16(x).bits }, 2);
}

/* Tensors begin, begin + step, ... as one file. */
static void save_part(const char * name, int begin, int step) {
    size_t cap = 1 << 20;
    for (int i = begin; i < n_tensors; i += step)
        cap += items(&tensors[i]) * 4;
    uint8_t * bytes = malloc(cap);
    char * header = (char *)bytes + 8;
    size_t n = 1;
    size_t at = 0;
    header[0] = '{';
    for (int i = begin; i < n_tensors; i += step) {
        const struct tensor * t = &tensors[i];
        size_t size = items(t) * sotto_type_size(t->type);
        n += (size_t)sprintf(header + n, "%s\"%s\": {\"dtype\": \"%s\", \"shape\": [", n > 1 ? ", " : "", t->name,
                             dtype_of(t->type));
        for (int k = 0; k < t->rank; k++)
            n += (size_t)sprintf(header + n, "%s%d", k > 0 ? ", " : "", t->dims[k]);
        n += (size_t)sprintf(header + n, "], \"data_offsets\": [%zu, %zu]}", at, at + size);
        at += size;
    }
    header[n++] = '}';
    for (int i = 0; i < 8; i++)
        bytes[i] = (uint8_t)((uint64_t)n >> (8 * i));
    uint8_t * to = bytes + 8 + n;
    for (int i = begin; i < n_tensors; i += step) {
        size_t width = sotto_type_size(tensors[i].type);
        for (size_t k = 0; k < items(&tensors[i]); k++, to += width)
            put_value(to, tensors[i].type, value_of(&tensors[i], k));
    }
    write_bytes(in_folder(name), bytes, (size_t)(to - bytes));
    free(bytes);
}

static void save(void) { save_part("model.safetensors", 0, 1); }

static int put_byte(char * out, int byte) {
    bool shown = (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
    int c = shown ? byte : byte <= 32 ? 256 + byte : byte <= 160 ? 289 + byte - 127 : 323;
    if (c == '"' || c == '\\')
        return sprintf(out, "\\%c", c);
    return c < 128 ? sprintf(out, "%c", c) : sprintf(out, "%c%c", 0xC0 | c >> 6, 0x80 | (c & 63));
}

/* 256 bytes, 50,000 pairs of bytes, the empty word; *n bytes of an object of JSON. */
static char * words(size_t * n) {
    char * text = malloc(2 << 20);
    char * at = text;
    for (int id = 0; id < WORDS; id++) {
        at += sprintf(at, "%s\"", id > 0 ? ",\n" : "{");
        if (id < 256)
            at += put_byte(at, id);
        else if (id < WORDS - 1) {
            at += put_byte(at, (id - 256) / 256);
            at += put_byte(at, (id - 256) % 256);
        }
        at += sprintf(at, "\": %d", id);
    }
    at += sprintf(at, "}");
    *n = (size_t)(at - text);
    return text;
}

static const char added[] = "{\"<|endoftext|>\": 50257, \"<|startoftranscript|>\": 50258, \"<|xx|>\": 51864}";

static void save_vocab(void) {
    size_t n;
    char * text = words(&n);
    write_bytes(in_folder("vocab.json"), text, n);
    put_text("added_tokens.json", added);
    free(text);
}

/* tokenizer.json, with more after its words and before its end. */
static void save_tokenizer(const char * type, const char * more, const char * rest) {
    size_t n;
    char * text = words(&n);
    char * whole = malloc(n + 4096);
    size_t size = (size_t)sprintf(whole, "{\"version\": \"1.0\", \"model\": {\"type\": %s, \"vocab\": ", type);
    memcpy(whole + size, text, n);
    size += n - 1;
    size += (size_t)sprintf(whole + size, "%s}, \"merges\": []}%s}", more, rest);
    write_bytes(in_folder("tokenizer.json"), whole, size);
    free(whole);
    free(text);
}

static const char config[] =
    "{\"model_type\": \"whisper\", \"vocab_size\": 51865, \"num_mel_bins\": 3, \"d_model\": 4, \"encoder_layers\": 1, "
    "\"encoder_attention_heads\": 2, \"encoder_ffn_dim\": 16, \"decoder_layers\": 1, \"decoder_attention_heads\": 2, "
    "\"decoder_ffn_dim\": 16, \"max_source_positions\": 5, \"max_target_positions\": 6, "
    "\"activation_function\": \"gelu\", \"scale_embedding\": false, \"suppress_tokens\": [7], "
    "\"begin_suppress_tokens\": [8, 9]}";

static const char generation[] =
    "{\"alignment_heads\": [[0, 1]], \"suppress_tokens\": [1, 2], \"begin_suppress_tokens\": null, "
    "\"lang_to_id\": {\"<|en|>\": 50259}, \"is_multilingual\": true, \"no_timestamps_token_id\": 50363}";

static int setup(void ** state) {
    (void)state;
    snprintf(folder, sizeof(folder), "%s", temp_path("hf"));
    snprintf(output, sizeof(output), "%s.gguf", folder);
    mkdir(folder, 0777);
    describe();
    save();
    save_vocab();
    put_text("config.json", config);
    return 0;
}

static int teardown(void ** state) {
    (void)state;
    static const char * const names[] = { "model.safetensors", "config.json", "vocab.json", "added_tokens.json" };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        unlink(in_folder(names[i]));
    unlink(output);
    return rmdir(folder); /* fails if something was left behind */
}

/* ---- converting ---- */

static void done(const char * in) {
    enum sotto_status status = conversion(in, output, SOTTO_TYPE_COUNT, NULL);
    if (status != SOTTO_OK)
        fail_msg("%s: %s", in, sotto_last_error_text());
}

static void refused(enum sotto_status status, const char * word) {
    conversion_refused(folder, output, SOTTO_TYPE_COUNT, status, word);
}

static void refused_model(enum sotto_status status, const char * word) {
    save();
    refused(status, word);
    describe();
}

static void refused_text(const char * name, const char * text, const char * restored, enum sotto_status status,
                         const char * word) {
    put_text(name, text);
    refused(status, word);
    if (restored != NULL)
        put_text(name, restored);
    else
        unlink(in_folder(name));
}

static void check_tensor(struct sotto_gguf_context * g, const char * gguf, const char * name, enum sotto_type type) {
    const struct tensor * t = find(name);
    int64_t id = sotto_gguf_find_tensor(g, gguf);
    assert_true(id >= 0);
    assert_int_equal(sotto_gguf_get_tensor_type(g, id), type);
    size_t size = sotto_gguf_get_tensor_size(g, id);
    assert_int_equal(size, items(t) * sotto_type_size(type));
    uint8_t * data = malloc(size);
    assert_int_equal(sotto_gguf_read_tensor(g, id, data, 0, size), SOTTO_OK);
    for (size_t i = 0; i < items(t); i++) {
        uint8_t want[4];
        put_value(want, type, value_of(t, i));
        assert_memory_equal(data + i * sotto_type_size(type), want, sotto_type_size(type));
    }
    free(data);
}

static void check_list(struct sotto_gguf_context * g, const char * key, size_t n, int32_t first) {
    int64_t id = sotto_gguf_find_key(g, key);
    if (n == 0) {
        assert_int_equal(id, -1);
        return;
    }
    assert_true(id >= 0);
    assert_int_equal(sotto_gguf_get_arr_n(g, id), n);
    assert_int_equal(((const int32_t *)sotto_gguf_get_arr_data(g, id))[0], first);
}

static struct sotto_gguf_context * open_output(void) {
    struct sotto_gguf_context * g = sotto_gguf_open(output, NULL);
    assert_non_null(g);
    return g;
}

static void check_output(enum sotto_type type) {
    struct sotto_gguf_context * g = open_output();
    assert_int_equal(sotto_gguf_get_n_tensors(g), 50);
    check_tensor(g, "enc.conv1.weight", "model.encoder.conv1.weight", type);
    check_tensor(g, "enc.conv2.bias", "model.encoder.conv2.bias", SOTTO_TYPE_F32);
    check_tensor(g, "enc.pos_embd.weight", "model.encoder.embed_positions.weight", SOTTO_TYPE_F32);
    check_tensor(g, "enc.blk.0.attn_norm.weight", "model.encoder.layers.0.self_attn_layer_norm.weight", SOTTO_TYPE_F32);
    check_tensor(g, "enc.blk.0.attn_k.weight", "model.encoder.layers.0.self_attn.k_proj.weight", type);
    check_tensor(g, "enc.blk.0.ffn_norm.bias", "model.encoder.layers.0.final_layer_norm.bias", SOTTO_TYPE_F32);
    check_tensor(g, "enc.output_norm.weight", "model.encoder.layer_norm.weight", SOTTO_TYPE_F32);
    check_tensor(g, "dec.token_embd.weight", "model.decoder.embed_tokens.weight", type);
    check_tensor(g, "dec.pos_embd.weight", "model.decoder.embed_positions.weight", SOTTO_TYPE_F32);
    check_tensor(g, "dec.blk.0.attn_output.weight", "model.decoder.layers.0.self_attn.out_proj.weight", type);
    check_tensor(g, "dec.blk.0.cross_attn_norm.bias", "model.decoder.layers.0.encoder_attn_layer_norm.bias",
                 SOTTO_TYPE_F32);
    check_tensor(g, "dec.blk.0.cross_attn_q.bias", "model.decoder.layers.0.encoder_attn.q_proj.bias", SOTTO_TYPE_F32);
    check_tensor(g, "dec.blk.0.cross_attn_v.weight", "model.decoder.layers.0.encoder_attn.v_proj.weight", type);
    check_tensor(g, "dec.blk.0.ffn_up.weight", "model.decoder.layers.0.fc1.weight", type);
    check_tensor(g, "dec.blk.0.ffn_down.bias", "model.decoder.layers.0.fc2.bias", SOTTO_TYPE_F32);
    int64_t tokens = sotto_gguf_find_key(g, "tokenizer.ggml.tokens");
    assert_string_equal(sotto_gguf_get_arr_str(g, tokens, 65), "A");
    assert_string_equal(sotto_gguf_get_arr_str(g, tokens, 256 + 65 * 256 + 32), "A\xC4\xA0");
    assert_string_equal(sotto_gguf_get_arr_str(g, tokens, 50256), "");
    assert_string_equal(sotto_gguf_get_arr_str(g, tokens, 51864), "<|30.00|>");
    sotto_gguf_free(g);
}

static void every_type(void ** state) {
    (void)state;
    static const enum sotto_type types[] = { SOTTO_TYPE_F16, SOTTO_TYPE_F32, SOTTO_TYPE_BF16 };
    for (int k = 0; k < 3; k++) {
        for (int i = 0; i < n_tensors; i++)
            tensors[i].type = types[k];
        save();
        done(folder);
        check_output(types[k] == SOTTO_TYPE_F16 ? SOTTO_TYPE_F16 : SOTTO_TYPE_F32);
    }
    describe();
    struct tensor * tied = add("proj_out.weight", 2, VOCAB, D, 0);
    tied->type = SOTTO_TYPE_BF16;
    save();
    done(folder);
    check_output(SOTTO_TYPE_F16);
    describe();
    *find("model.encoder.embed_positions.weight") = tensors[--n_tensors]; /* may be missing: it can be computed */
    save();
    done(folder);
    struct sotto_gguf_context * g = open_output();
    assert_int_equal(sotto_gguf_get_n_tensors(g), 49);
    sotto_gguf_free(g);
    describe();
    save();
    done(in_folder("model.safetensors"));
    check_output(SOTTO_TYPE_F16);
    char here[600];
    assert_non_null(getcwd(here, sizeof(here)));
    assert_int_equal(chdir(folder), 0);
    done("model.safetensors");
    assert_int_equal(chdir(here), 0);
    check_output(SOTTO_TYPE_F16);
}

/* generation_config.json has the last word, where it says anything. */
static void lists(void ** state) {
    (void)state;
    done(folder);
    struct sotto_gguf_context * g = open_output();
    check_list(g, "whisper.alignment_heads", 0, 0);
    check_list(g, "whisper.suppress_tokens", 1, 7);
    check_list(g, "whisper.suppress_tokens_begin", 2, 8);
    sotto_gguf_free(g);
    put_text("generation_config.json", generation);
    put_text("preprocessor_config.json", "{\"feature_size\": 3}");
    done(folder);
    g = open_output();
    check_list(g, "whisper.alignment_heads", 2, 0);
    check_list(g, "whisper.suppress_tokens", 2, 1);
    check_list(g, "whisper.suppress_tokens_begin", 2, 8);
    sotto_gguf_free(g);
    unlink(in_folder("generation_config.json"));
    unlink(in_folder("preprocessor_config.json"));
}

/* ---- shards ---- */

static void save_shards(void) {
    char * index = malloc(1 << 16);
    size_t n = (size_t)sprintf(index, "{\"metadata\": {\"total_size\": 0}, \"weight_map\": {");
    for (int i = 0; i < n_tensors; i++)
        n += (size_t)sprintf(index + n, "%s\"%s\": \"%c.safetensors\"", i > 0 ? "," : "", tensors[i].name, 'a' + i % 3);
    sprintf(index + n, "}}");
    put_text("model.safetensors.index.json", index);
    save_part("a.safetensors", 0, 3);
    save_part("b.safetensors", 1, 3);
    save_part("c.safetensors", 2, 3);
    free(index);
}

static void refused_index(const char * text, enum sotto_status status, const char * word) {
    put_text("model.safetensors.index.json", text);
    refused(status, word);
}

static void shards(void ** state) {
    (void)state;
    static const char first[] = "model.encoder.conv1.weight";
    char text[400];
    unlink(in_folder("model.safetensors"));
    save_shards();
    done(folder);
    check_output(SOTTO_TYPE_F16);
    save_part("b.safetensors", 0, 3); /* what is in a already */
    refused(SOTTO_E_MODEL_TENSOR_MISSING, "promises");
    snprintf(text, sizeof(text), "{\"weight_map\": {\"%s\": \"a.safetensors\", \"%s\": \"b.safetensors\"}}", first,
             tensors[3].name);
    refused_index(text, SOTTO_E_MODEL_TENSOR_DUPLICATE, first);
    unlink(in_folder("b.safetensors"));
    refused_index(text, SOTTO_E_IO, "b.safetensors");
    static const char * const bad[][2] = {
        { "", "no JSON" },
        { "[]", "no object" },
        { "{}", "no object" },
        { "{\"weight_map\": []}", "no object" },
        { "{\"weight_map\": {\"x\": 1}}", "no name of a file for: 'x'" },
        { "{\"weight_map\": {\"x\": \"\"}}", "no name" },
        { "{\"weight_map\": {\"x\": \"../a.safetensors\"}}", "no name" },
        { "{\"weight_map\": {\"x\": \"/etc/passwd\"}}", "no name" },
        { "{\"weight_map\": {\"x\": \"sub/a.safetensors\"}}", "no name" },
        { "{\"weight_map\": {\"x\": \".hidden\"}}", "no name" },
        { "{\"weight_map\": {\"x\": \"a\\u0000b\"}}", "no name" },
        { "{\"weight_map\": {\"x\": \"a\", \"x\": \"a\"}}", "no JSON" },
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        refused_index(bad[i][0], SOTTO_E_MODEL_CONFIG, bad[i][1]);
    refused_index("{\"weight_map\": {}}", SOTTO_E_MODEL_TENSOR_MISSING, "49 of 50");
    refused_index("{\"weight_map\": {\"x\": \"a.safetensors\"}}", SOTTO_E_MODEL_TENSOR_MISSING, "'x'");
    unlink(in_folder("a.safetensors"));
    unlink(in_folder("c.safetensors"));
    unlink(in_folder("model.safetensors.index.json"));
    save();
}

/* ---- weights ---- */

static void every_tensor(void ** state) {
    (void)state;
    for (int i = 0; i < 50; i++) {
        char name[96];
        memcpy(name, tensors[i].name, sizeof(name));
        if (strcmp(name, "model.encoder.embed_positions.weight") != 0) {
            tensors[i] = tensors[--n_tensors];
            refused_model(SOTTO_E_MODEL_TENSOR_MISSING, name);
        }
        tensors[i].name[strlen(name) - 1] = 'x';
        refused_model(SOTTO_E_MODEL_TENSOR_UNKNOWN, "at byte");
        tensors[i].dims[tensors[i].rank - 1]++;
        refused_model(SOTTO_E_MODEL_TENSOR_SHAPE, name);
        tensors[i].dims[tensors[i].rank++] = 1;
        refused_model(SOTTO_E_MODEL_TENSOR_SHAPE, name);
        snprintf(add("", 1, 1, 0, 0)->name, sizeof(tensors[0].name), "%s", name);
        refused_model(SOTTO_E_MODEL_TENSOR_DUPLICATE, name);
    }
    add("model.decoder.layers.0.self_attn.k_proj.bias", 1, D, 0, 0);
    refused_model(SOTTO_E_MODEL_TENSOR_UNKNOWN, "k_proj.bias");
    add("encoder.conv1.weight", 3, D, MELS, 3); /* the same without its prefix */
    refused_model(SOTTO_E_MODEL_TENSOR_DUPLICATE, "encoder.conv1.weight");
    add("proj_out.weight", 2, VOCAB, D + 1, 0);
    refused_model(SOTTO_E_MODEL_TENSOR_SHAPE, "proj_out.weight");
    add("\x01odd\xFF", 1, 1, 0, 0)->name[0] = '\x7F';
    refused_model(SOTTO_E_MODEL_TENSOR_UNKNOWN, "'?odd?'");
    save();
    assert_int_equal(truncate(in_folder("model.safetensors"), 100000), 0);
    refused(SOTTO_E_MODEL_TRUNCATED, "model.safetensors");
    assert_int_equal(truncate(in_folder("model.safetensors"), 0), 0);
    refused(SOTTO_E_MODEL_TRUNCATED, "model.safetensors");
    save();
}

/* ---- settings ---- */

/* The configuration with one value replaced. */
static void refused_setting(const char * key, const char * value, enum sotto_status status, const char * word) {
    char text[2048];
    char quoted[64];
    snprintf(quoted, sizeof(quoted), "\"%s\": ", key);
    const char * at = strstr(config, quoted);
    assert_non_null(at);
    const char * end = at + strlen(quoted);
    end += *end == '[' ? strcspn(end, "]") + 1 : strcspn(end, ",}");
    snprintf(text, sizeof(text), "%.*s%s%s%s", (int)(at - config), config, quoted, value, end);
    refused_text("config.json", text, config, status, word);
}

static void settings(void ** state) {
    (void)state;
    static const char * const sizes[] = { "vocab_size",      "num_mel_bins",
                                          "d_model",         "encoder_layers",
                                          "encoder_ffn_dim", "encoder_attention_heads",
                                          "decoder_layers",  "decoder_attention_heads",
                                          "decoder_ffn_dim", "max_source_positions" };
    static const char * const no_sizes[] = { "null", "-1", "1.5", "\"4\"", "[4]", "16777217", "9223372036854775807" };
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        for (size_t k = 0; k < sizeof(no_sizes) / sizeof(no_sizes[0]); k++)
            refused_setting(sizes[i], no_sizes[k], SOTTO_E_MODEL_CONFIG, sizes[i]);
        refused_setting(sizes[i], "0", SOTTO_E_MODEL_HPARAMS, "0");
    }
    refused_setting("max_target_positions", "null", SOTTO_E_MODEL_CONFIG, "max_length");
    refused_setting("max_target_positions", "null, \"max_length\": 7", SOTTO_E_MODEL_TENSOR_SHAPE, "embed_positions");
    refused_setting("vocab_size", "51863", SOTTO_E_MODEL_HPARAMS, "tokens 51863");
    refused_setting("vocab_size", "51866", SOTTO_E_MODEL_TENSOR_SHAPE, "embed_tokens");
    refused_setting("encoder_attention_heads", "3", SOTTO_E_MODEL_HPARAMS, "heads 3");
    refused_setting("encoder_layers", "2", SOTTO_E_MODEL_TENSOR_MISSING, "model.encoder.layers.1.");
    refused_setting("encoder_ffn_dim", "15", SOTTO_E_MODEL_HPARAMS, "encoder_ffn_dim 15");
    refused_setting("model_type", "\"wav2vec2\"", SOTTO_E_MODEL_ARCH, "'wav2vec2'");
    refused_setting("model_type", "null", SOTTO_E_MODEL_CONFIG, "model_type: it is missing");
    refused_setting("model_type", "3", SOTTO_E_MODEL_CONFIG, "model_type: no string");
    refused_setting("activation_function", "\"relu\"", SOTTO_E_MODEL_HPARAMS, "gelu");
    refused_setting("activation_function", "1", SOTTO_E_MODEL_CONFIG, "no string");
    refused_setting("scale_embedding", "true", SOTTO_E_MODEL_HPARAMS, "scale_embedding");
    refused_setting("suppress_tokens", "[51865]", SOTTO_E_MODEL_CONFIG, "suppress_tokens");
    refused_setting("suppress_tokens", "\"\"", SOTTO_E_MODEL_CONFIG, "no array");
    static const char * const no_objects[] = { "", "{", "[]", "3", "{}x", "{\"a\":1,\"a\":2}" };
    for (size_t i = 0; i < sizeof(no_objects) / sizeof(no_objects[0]); i++) {
        refused_text("config.json", no_objects[i], config, SOTTO_E_MODEL_CONFIG, "config.json");
        refused_text("generation_config.json", no_objects[i], NULL, SOTTO_E_MODEL_CONFIG, "generation_config.json");
        refused_text("preprocessor_config.json", no_objects[i], NULL, SOTTO_E_MODEL_CONFIG, "preprocessor_config.json");
    }
    unlink(in_folder("config.json"));
    refused(SOTTO_E_MODEL_FORMAT, "has no config.json");
    conversion_refused(in_folder("model.safetensors"), output, SOTTO_TYPE_COUNT, SOTTO_E_MODEL_FORMAT, "beside it");
    put_text("config.json", config);
}

static void generation_settings(void ** state) {
    (void)state;
    static const char * const rows[][2] = {
        { "{\"is_multilingual\": false}", "is_multilingual" },
        { "{\"is_multilingual\": 1}", "is_multilingual" },
        { "{\"no_timestamps_token_id\": 50362}", "50363" },
        { "{\"no_timestamps_token_id\": \"50363\"}", "50363" },
        { "{\"lang_to_id\": []}", "lang_to_id" },
        { "{\"lang_to_id\": {\"<|en|>\": 51865}}", "lang_to_id" },
        { "{\"lang_to_id\": {\"<|en|>\": -1}}", "lang_to_id" },
        { "{\"lang_to_id\": {\"<|en|>\": \"1\"}}", "lang_to_id" },
        { "{\"alignment_heads\": {}}", "alignment_heads" },
        { "{\"alignment_heads\": [[1, 0]]}", "out of range" },
        { "{\"alignment_heads\": [[0, 2]]}", "out of range" },
        { "{\"alignment_heads\": [[0]]}", "no pair" },
        { "{\"alignment_heads\": [[0,0],[0,1],[0,0]]}", "more heads" },
        { "{\"suppress_tokens\": [-1]}", "out of range" },
        { "{\"begin_suppress_tokens\": [1.5]}", "no integer" },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        refused_text("generation_config.json", rows[i][0], NULL, SOTTO_E_MODEL_CONFIG, rows[i][1]);
    refused_text("preprocessor_config.json", "{\"feature_size\": 80}", NULL, SOTTO_E_MODEL_CONFIG, "feature_size");
}

/* ---- vocabulary ---- */

static void tokenizer(void ** state) {
    (void)state;
    static const char eot[] =
        ", \"added_tokens\": [{\"id\": 50257, \"content\": \"<|endoftext|>\", \"special\": true}]";
    save_tokenizer("\"BPE\"", ", \"<|endoftext|>\": 50257", eot);
    done(folder);
    check_output(SOTTO_TYPE_F16);
    save_tokenizer("\"BPE\"", "", "");
    done(folder);
    check_output(SOTTO_TYPE_F16);
    static const struct {
        const char *type, *more, *rest, *word;
    } rows[] = {
        { "\"Unigram\"", "", "", "not BPE" },
        { "null", "", "", "not BPE" },
        { "\"BPE\"", ", \"xyz\": -1", "", "no number" },
        { "\"BPE\"", ", \"xyz\": 51865", "", "no number" },
        { "\"BPE\"", ", \"xyz\": 9223372036854775807", "", "no number" },
        { "\"BPE\"", ", \"xyz\": \"5\"", "", "no number" },
        { "\"BPE\"", ", \"xyz\": 5.0", "", "no number" },
        { "\"BPE\"", ", \"xyz\": 66", "", "two tokens (66)" },
        { "\"BPE\"", ", \"xyz\": 50257", eot, "two tokens (50257)" },
        { "\"BPE\"", "", ", \"added_tokens\": 3", "no array" },
        { "\"BPE\"", "", ", \"added_tokens\": [3]", "no content" },
        { "\"BPE\"", "", ", \"added_tokens\": [{\"id\": 50258}]", "no content" },
        { "\"BPE\"", "", ", \"added_tokens\": [{\"content\": \"x\"}]", "no number" },
        { "\"BPE\"", "", ", \"added_tokens\": [{\"id\": 50258, \"content\": \"a\\u0000\"}]", "holds a 0" },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        save_tokenizer(rows[i].type, rows[i].more, rows[i].rest);
        refused(SOTTO_E_MODEL_VOCAB, rows[i].word);
    }
    static const char * const texts[][2] = {
        { "", "no JSON" },
        { "[]", "not BPE" },
        { "{\"model\": {\"type\": \"BPE\"}}", "no object of tokens" },
        { "{\"model\": {\"type\": \"BPE\", \"vocab\": []}}", "no object of tokens" },
        { "{\"model\": {\"type\": \"BPE\", \"vocab\": {}}}", "missing (0)" },
        { "{\"model\": {\"type\": \"BPE\", \"vocab\": {\"!\": 0, \"\\\"\": 2}}}", "missing (1)" },
    };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        refused_text("tokenizer.json", texts[i][0], NULL, SOTTO_E_MODEL_VOCAB, texts[i][1]);
}

static void deep_and_large(void ** state) {
    (void)state;
    size_t n = (16 << 20) + 1;
    char * text = malloc(n);
    memset(text, '[', n);
    write_bytes(in_folder("tokenizer.json"), text, n);
    refused(SOTTO_E_LIMIT, "tokenizer.json");
    write_bytes(in_folder("tokenizer.json"), text, n - 1);
    refused(SOTTO_E_MODEL_VOCAB, "depth");
    free(text);
    unlink(in_folder("tokenizer.json"));
}

static void vocab(void ** state) {
    (void)state;
    refused_text("added_tokens.json", "{\"x1\": 5}", added, SOTTO_E_MODEL_VOCAB, "two tokens (5)");
    refused_text("added_tokens.json", "{\"x1\": 99999}", added, SOTTO_E_MODEL_VOCAB, "no number");
    refused_text("added_tokens.json", "3", added, SOTTO_E_MODEL_VOCAB, "no array");
    refused_text("added_tokens.json", "{", added, SOTTO_E_MODEL_VOCAB, "no JSON");
    unlink(in_folder("added_tokens.json")); /* all of them follow from their numbers */
    done(folder);
    check_output(SOTTO_TYPE_F16);
    refused_text("vocab.json", "[]", NULL, SOTTO_E_MODEL_VOCAB, "no object of tokens");
    refused(SOTTO_E_IO, "vocab.json");
    save_vocab();
}

/* ---- folders ---- */

static void folders(void ** state) {
    (void)state;
    unlink(in_folder("model.safetensors"));
    refused(SOTTO_E_MODEL_FORMAT, "no model.safetensors");
    put_text("pytorch_model.bin", "PK\3\4");
    refused(SOTTO_E_MODEL_PICKLE, "safetensors form");
    static const char * const pickled[] = { "PK\3\4", "\x80\2}q", "\x80\4\x95", "\x80\5" };
    for (int i = 0; i < 4; i++) {
        put_text("pytorch_model.bin", pickled[i]);
        conversion_refused(in_folder("pytorch_model.bin"), output, SOTTO_TYPE_COUNT, SOTTO_E_MODEL_PICKLE,
                           "safetensors form");
    }
    static const char * const old[][2] = { { "algg", "'ggla'" }, { "fmgg", "'ggmf'" }, { "tjgg", "'ggjt'" } };
    for (int i = 0; i < 3; i++) {
        put_text("pytorch_model.bin", old[i][0]);
        conversion_refused(in_folder("pytorch_model.bin"), output, SOTTO_TYPE_COUNT, SOTTO_E_MODEL_FORMAT, old[i][1]);
    }
    unlink(in_folder("pytorch_model.bin"));
    save();
}

/* ---- writing folders ---- */

static const char * const written[] = {
    "config.json",       "generation_config.json", "preprocessor_config.json", "vocab.json",       "merges.txt",
    "added_tokens.json", "tokenizer.json",         "tokenizer_config.json",    "model.safetensors"
};
static char made[600]; /* with a slash at the end */

static void remove_made(void) {
    for (size_t i = 0; i < sizeof(written) / sizeof(written[0]); i++) {
        char path[700];
        snprintf(path, sizeof(path), "%s%s", made, written[i]);
        unlink(path);
    }
    assert_int_equal(rmdir(made), 0); /* nothing else is in it */
}

static void check_same(const char * a, const char * b) {
    size_t n, m;
    uint8_t * x = read_bytes(a, &n);
    uint8_t * y = read_bytes(b, &m);
    assert_true(x != NULL && y != NULL && n == m);
    assert_memory_equal(x, y, n);
    free(x);
    free(y);
}

/* Into a folder and back: the same GGUF as without the way round, whichever files are used. */
static void there_and_back(void ** state) {
    (void)state;
    static const enum sotto_type types[] = { SOTTO_TYPE_F16, SOTTO_TYPE_F32, SOTTO_TYPE_BF16 };
    char direct[600];
    char path[700];
    snprintf(made, sizeof(made), "%s/", temp_path("hf-out"));
    snprintf(direct, sizeof(direct), "%s.gguf", temp_path("hf-direct"));
    put_text("generation_config.json", generation);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(conversion(folder, direct, types[i], NULL), SOTTO_OK);
        assert_int_equal(conversion(direct, made, types[i], NULL), SOTTO_OK);
        assert_int_equal(conversion(made, output, types[i], NULL), SOTTO_OK);
        check_same(direct, output);
    }
    snprintf(path, sizeof(path), "%stokenizer.json", made);
    unlink(path);
    assert_int_equal(conversion(made, output, SOTTO_TYPE_BF16, NULL), SOTTO_OK);
    check_same(direct, output);
    remove_made();
    unlink(direct);
    unlink(in_folder("generation_config.json"));
}

static bool stop(uint64_t done_bytes, uint64_t total, void * user_data) {
    (void)user_data;
    return done_bytes < total / 2;
}

static void not_written(void ** state) {
    (void)state;
    snprintf(made, sizeof(made), "%s/", temp_path("hf-out"));
    assert_int_equal(conversion(folder, made, SOTTO_TYPE_Q8_0, NULL), SOTTO_E_PARAM);
    assert_non_null(strstr(sotto_last_error_text(), "choose f32, f16 or bf16"));
    assert_int_equal(conversion(folder, "/nonexistent/x/", SOTTO_TYPE_F16, NULL), SOTTO_E_GGUF_IO_OPEN);
    assert_int_equal(conversion(folder, "/dev/null/", SOTTO_TYPE_F16, NULL), SOTTO_E_GGUF_IO_OPEN);
    struct sotto_convert_params params = sotto_convert_default_params();
    params.progress = stop;
    assert_int_equal(sotto_convert(folder, made, &params), SOTTO_E_ABORTED);
    char path[700];
    snprintf(path, sizeof(path), "%smodel.safetensors", made);
    assert_int_equal(access(path, F_OK), -1); /* so the folder is no model */
    assert_int_equal(conversion(made, output, SOTTO_TYPE_F16, NULL), SOTTO_E_MODEL_FORMAT);
    assert_int_equal(mkdir(path, 0777), 0);
    assert_int_equal(conversion(folder, made, SOTTO_TYPE_F16, NULL), SOTTO_E_GGUF_IO_OPEN);
    assert_int_equal(rmdir(path), 0);
    remove_made();
}

static enum sotto_status write_folder(const struct sotto_allocator * allocator, void * user_data) {
    return conversion(user_data, made, SOTTO_TYPE_F16, allocator);
}

static void nth_allocation_of_writing_fails(void ** state) {
    (void)state;
    char gguf[600];
    snprintf(gguf, sizeof(gguf), "%s.gguf", temp_path("hf-direct"));
    snprintf(made, sizeof(made), "%s/", temp_path("hf-out"));
    assert_int_equal(conversion(folder, gguf, SOTTO_TYPE_F16, NULL), SOTTO_OK);
    assert_true(refuse_many(write_folder, gguf) > 60);
    unlink(gguf);
    remove_made();
}

static enum sotto_status read_file(const struct sotto_allocator * allocator, void * user_data) {
    struct whisper_source source = { .allocator = allocator };
    whisper_reader reader;
    enum sotto_status status = sotto_i_recognise(allocator, user_data, &reader);
    if (status == SOTTO_OK)
        status = reader(&source, user_data);
    sotto_i_whisper_source_free(&source);
    return status;
}

static void nth_allocation_fails(void ** state) {
    (void)state;
    struct counting_allocator allocator;
    counting_allocator_init(&allocator);
    assert_int_equal(read_file(&allocator.base, folder), SOTTO_OK);
    assert_true(allocator.held == 0 && allocator.peak < 4 << 20);
    char file[700];
    snprintf(file, sizeof(file), "%s", in_folder("model.safetensors"));
    assert_true(refuse_each(read_file, folder) > 15);
    assert_true(refuse_each(read_file, file) > 15);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_type),
        cmocka_unit_test(lists),
        cmocka_unit_test(shards),
        cmocka_unit_test(every_tensor),
        cmocka_unit_test(settings),
        cmocka_unit_test(generation_settings),
        cmocka_unit_test(tokenizer),
        cmocka_unit_test(deep_and_large),
        cmocka_unit_test(vocab),
        cmocka_unit_test(folders),
        cmocka_unit_test(there_and_back),
        cmocka_unit_test(not_written),
        cmocka_unit_test(nth_allocation_of_writing_fails),
        cmocka_unit_test(nth_allocation_fails),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
