/* SPDX-License-Identifier: MIT */
/* whisper.cpp's .bin: a tiny model written here byte by byte, what becomes of its numbers in GGUF and back, and every way
 * in which such a file can be wrong: cut off at each field, impossible counts, wrong shapes and types, missing, doubled
 * and unknown tensors. Nothing may be left behind, and an old output stays as it was. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <fcntl.h>
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
#include "sotto/speech.h"

enum { D = 4, MELS = 3, AUDIO = 5, TEXT = 6, VOCAB = 51865, WORDS = 50257, MAX_TENSORS = 64, MAX_FIELDS = 1024 };
enum { MAGIC, N_VOCAB, AUDIO_CTX, AUDIO_WIDTH, AUDIO_HEADS, AUDIO_LAYERS, TEXT_CTX, TEXT_WIDTH, TEXT_HEADS };
enum { TEXT_LAYERS = 9, N_MELS, FTYPE, HEADER };

struct tensor {
    char name[300];
    int32_t name_len; /* 0 = as long as it is */
    int32_t rank;
    int32_t ne[5]; /* fastest first */
    int32_t type;
    float scale;
};

struct model {
    int32_t header[HEADER];
    int32_t bands, bins;
    float filter_error;
    int32_t words, first_word; /* entries; length that the first one claims, -1 = as it is */
    struct tensor tensors[MAX_TENSORS];
    int n;
    /* written */
    uint8_t * bytes;
    size_t size, cap;
    size_t fields[MAX_FIELDS]; /* where each number outside filters and vocabulary begins */
    int n_fields;
};

static struct model model;
static char input[512], output[512], back[512];

/* ---- describing ---- */

static struct tensor * add(const char * name, int rank, int32_t ne0, int32_t ne1, int32_t ne2, int32_t type) {
    struct tensor * t = &model.tensors[model.n++];
    assert_true(model.n <= MAX_TENSORS);
    memset(t, 0, sizeof(*t));
    snprintf(t->name, sizeof(t->name), "%s", name);
    t->rank = rank;
    t->ne[0] = ne0;
    t->ne[1] = ne1;
    t->ne[2] = ne2;
    t->type = type;
    t->scale = 1;
    return t;
}

static void add_pair(const char * prefix, const char * name, int32_t in, int32_t out, bool bias) {
    char full[128];
    snprintf(full, sizeof(full), "%s.%s.weight", prefix, name);
    if (in > 0)
        add(full, 2, in, out, 0, SOTTO_TYPE_F16);
    else
        add(full, 1, out, 0, 0, SOTTO_TYPE_F32);
    snprintf(full, sizeof(full), "%s.%s.bias", prefix, name);
    if (bias)
        add(full, 1, out, 0, 0, SOTTO_TYPE_F32);
}

static void add_attention(const char * prefix, const char * name) {
    static const char * const parts[] = { "query", "key", "value", "out" };
    char full[64];
    snprintf(full, sizeof(full), "%s_ln", name);
    add_pair(prefix, full, 0, D, true);
    for (int i = 0; i < 4; i++) {
        snprintf(full, sizeof(full), "%s.%s", name, parts[i]);
        add_pair(prefix, full, D, D, i != 1);
    }
}

static void add_layer(const char * prefix, bool cross) {
    add_attention(prefix, "attn");
    if (cross)
        add_attention(prefix, "cross_attn");
    add_pair(prefix, "mlp_ln", 0, D, true);
    add_pair(prefix, "mlp.0", D, 4 * D, true);
    add_pair(prefix, "mlp.2", 4 * D, D, true);
}

/* In the order of sotto's own writer, so that a way there and back gives the same bytes. */
static void describe(void) {
    static const int32_t header[] = { 0x67676d6c, VOCAB, AUDIO, D, 2, 1, TEXT, D, 2, 1, MELS, 1 };
    free(model.bytes);
    memset(&model, 0, sizeof(model));
    memcpy(model.header, header, sizeof(header));
    model.bands = MELS;
    model.bins = 201;
    model.words = WORDS;
    model.first_word = -1;
    add("encoder.conv1.weight", 3, 3, MELS, D, SOTTO_TYPE_F16);
    add("encoder.conv1.bias", 2, 1, D, 0, SOTTO_TYPE_F32);
    add("encoder.conv2.weight", 3, 3, D, D, SOTTO_TYPE_F16);
    add("encoder.conv2.bias", 2, 1, D, 0, SOTTO_TYPE_F32);
    add("encoder.positional_embedding", 2, D, AUDIO, 0, SOTTO_TYPE_F32);
    add_layer("encoder.blocks.0", false);
    add_pair("encoder", "ln_post", 0, D, true);
    add("decoder.token_embedding.weight", 2, D, VOCAB, 0, SOTTO_TYPE_F16);
    add("decoder.positional_embedding", 2, D, TEXT, 0, SOTTO_TYPE_F32);
    add_layer("decoder.blocks.0", true);
    add_pair("decoder", "ln", 0, D, true);
}

static struct tensor * find(const char * name) {
    for (int i = 0; i < model.n; i++) {
        if (strcmp(model.tensors[i].name, name) == 0)
            return &model.tensors[i];
    }
    fail_msg("no tensor %s", name);
    return NULL;
}

/* ---- writing ---- */

static void put(const void * bytes, size_t n) {
    if (model.size + n > model.cap) {
        model.cap = 2 * model.cap + n;
        model.bytes = realloc(model.bytes, model.cap);
        assert_non_null(model.bytes);
    }
    memcpy(model.bytes + model.size, bytes, n);
    model.size += n;
}

static void put_number(uint32_t x) {
    put((const uint8_t[]){ (uint8_t)x, (uint8_t)(x >> 8), (uint8_t)(x >> 16), (uint8_t)(x >> 24) }, 4);
}

static void put_field(int32_t x) {
    assert_true(model.n_fields < MAX_FIELDS);
    model.fields[model.n_fields++] = model.size;
    put_number((uint32_t)x);
}

static void put_filters(void) {
    float filters[MELS * 201];
    assert_int_equal(sotto_mel_filters(MELS, filters), SOTTO_OK);
    put_field(model.bands);
    put_field(model.bins);
    for (int i = 0; i < MELS * 201; i++) {
        float x = filters[i] + model.filter_error;
        uint32_t bits;
        memcpy(&bits, &x, sizeof(bits));
        put_number(bits);
    }
}

static uint8_t byte_of(int id) {
    int printing = id < 94 ? 33 + id : id < 106 ? 161 + id - 94 : id < 188 ? 174 + id - 106 : -1;
    if (printing >= 0)
        return (uint8_t)printing;
    id -= 188;
    return (uint8_t)(id <= 32 ? id : id < 67 ? 127 + id - 33 : 173);
}

/* The bytes in the order of their ids, 50,000 pairs of bytes, the empty one. */
static void put_vocabulary(void) {
    put_field(model.words);
    for (int id = 0; id < model.words; id++) {
        uint8_t word[2] = { byte_of(id & 255), 0 };
        uint32_t len = id < 256 ? 1 : id < WORDS - 1 ? 2 : 0;
        if (id >= 256) {
            word[0] = (uint8_t)((id - 256) / 256);
            word[1] = (uint8_t)((id - 256) % 256);
        }
        put_number(id == 0 && model.first_word >= 0 ? (uint32_t)model.first_word : len);
        put(word, len);
    }
}

static float value_of(const struct tensor * t, size_t i) { return ((float)(i % 253) - 126) / 64 * t->scale; }

static void put_value(const struct tensor * t, size_t i) {
    float x = value_of(t, i);
    sotto_fp16_t half = sotto_fp32_to_fp16(x);
    sotto_bf16_t brain = sotto_fp32_to_bf16(x);
    if (t->type == SOTTO_TYPE_F32)
        put(&x, 4);
    else if (t->type == SOTTO_TYPE_F16)
        put(&half, 2);
    else if (t->type == SOTTO_TYPE_BF16)
        put(&brain, 2);
}

static void put_tensor(const struct tensor * t) {
    int32_t name_len = t->name_len != 0 ? t->name_len : (int32_t)strlen(t->name);
    size_t items = 1;
    put_field(t->rank);
    put_field(name_len);
    put_field(t->type);
    for (int i = 0; i < t->rank && i < 5; i++) {
        put_field(t->ne[i]);
        items *= t->ne[i] > 0 && t->ne[i] <= VOCAB ? (size_t)t->ne[i] : 0;
    }
    put(t->name, strlen(t->name));
    for (size_t i = 0; i < items; i++)
        put_value(t, i);
}

static void save(void) {
    model.size = 0;
    model.n_fields = 0;
    for (int i = 0; i < HEADER; i++)
        put_field(model.header[i]);
    put_filters();
    put_vocabulary();
    for (int i = 0; i < model.n; i++)
        put_tensor(&model.tensors[i]);
    write_bytes(input, model.bytes, model.size);
}

static int setup(void ** state) {
    (void)state;
    snprintf(input, sizeof(input), "%s.bin", temp_path("in"));
    snprintf(output, sizeof(output), "%s.gguf", temp_path("out"));
    snprintf(back, sizeof(back), "%s.bin", temp_path("back"));
    describe();
    save();
    return 0;
}

static int teardown(void ** state) {
    (void)state;
    unlink(input);
    unlink(output);
    unlink(back);
    free(model.bytes);
    return 0;
}

/* ---- converting ---- */

static void done(enum sotto_status status) {
    if (status != SOTTO_OK)
        fail_msg("%s", sotto_last_error_text());
}

static void refused(enum sotto_status status, const char * word) {
    conversion_refused(input, output, SOTTO_TYPE_F16, status, word);
}

static void refused_model(enum sotto_status status, const char * word) {
    save();
    refused(status, word);
    describe();
}

static void same_files(const char * a, const char * b) {
    size_t size_a, size_b;
    uint8_t * bytes_a = read_bytes(a, &size_a);
    uint8_t * bytes_b = read_bytes(b, &size_b);
    assert_int_equal(size_a, size_b);
    assert_memory_equal(bytes_a, bytes_b, size_a);
    free(bytes_a);
    free(bytes_b);
}

static void check_tensor(struct sotto_gguf_context * g, const char * name, enum sotto_type type, const char * bin) {
    int64_t id = sotto_gguf_find_tensor(g, name);
    assert_true(id >= 0);
    assert_int_equal(sotto_gguf_get_tensor_type(g, id), type);
    size_t size = sotto_gguf_get_tensor_size(g, id);
    uint8_t * data = malloc(size);
    assert_int_equal(sotto_gguf_read_tensor(g, id, data, 0, size), SOTTO_OK);
    for (size_t i = 0; i < size / sotto_type_size(type); i++) {
        float x =
            type == SOTTO_TYPE_F32 ? ((float *)(void *)data)[i] : sotto_fp16_to_fp32(((sotto_fp16_t *)(void *)data)[i]);
        assert_true(x == value_of(find(bin), i));
    }
    free(data);
}

static void check_output(enum sotto_type type) {
    struct sotto_gguf_context * g = sotto_gguf_open(output, NULL);
    assert_non_null(g);
    assert_int_equal(sotto_gguf_get_n_tensors(g), 7 + 15 + 4 + 24);
    check_tensor(g, "enc.conv1.weight", type, "encoder.conv1.weight");
    check_tensor(g, "enc.conv1.bias", SOTTO_TYPE_F32, "encoder.conv1.bias");
    check_tensor(g, "enc.pos_embd.weight", SOTTO_TYPE_F32, "encoder.positional_embedding");
    check_tensor(g, "enc.blk.0.attn_output.weight", type, "encoder.blocks.0.attn.out.weight");
    check_tensor(g, "dec.blk.0.cross_attn_norm.bias", SOTTO_TYPE_F32, "decoder.blocks.0.cross_attn_ln.bias");
    check_tensor(g, "dec.blk.0.ffn_down.weight", type, "decoder.blocks.0.mlp.2.weight");
    check_tensor(g, "dec.token_embd.weight", type, "decoder.token_embedding.weight");
    int64_t tokens = sotto_gguf_find_key(g, "tokenizer.ggml.tokens");
    assert_int_equal(sotto_gguf_get_arr_n(g, tokens), VOCAB);
    assert_string_equal(sotto_gguf_get_arr_str(g, tokens, 0), "!");
    assert_string_equal(sotto_gguf_get_arr_str(g, tokens, 220), "\xC4\xA0"); /* the space */
    assert_string_equal(sotto_gguf_get_arr_str(g, tokens, 50256), "");
    assert_string_equal(sotto_gguf_get_arr_str(g, tokens, 50259), "<|en|>");
    assert_int_equal(sotto_gguf_get_arr_n(g, sotto_gguf_find_key(g, "tokenizer.ggml.merges")), 50000);
    sotto_gguf_free(g);
}

static void there_and_back(void ** state) {
    (void)state;
    save();
    done(conversion(input, output, SOTTO_TYPE_COUNT, NULL));
    check_output(SOTTO_TYPE_F16);
    done(conversion(output, back, SOTTO_TYPE_COUNT, NULL));
    same_files(input, back);
    done(conversion(back, output, SOTTO_TYPE_F32, NULL));
    check_output(SOTTO_TYPE_F32);
    done(conversion(output, back, SOTTO_TYPE_COUNT, NULL)); /* stays f32 */
    done(conversion(back, output, SOTTO_TYPE_COUNT, NULL));
    check_output(SOTTO_TYPE_F32);
    done(conversion(output, back, SOTTO_TYPE_F16, NULL));
    same_files(input, back);
}

/* Biases as plain vectors, other orders, bf16, filters of others, more and fewer words: all of it is read. */
static void variants(void ** state) {
    (void)state;
    struct tensor * bias = find("encoder.conv1.bias");
    bias->rank = 1;
    bias->ne[0] = D;
    for (int i = 0; i < model.n; i++) {
        if (model.tensors[i].type == SOTTO_TYPE_F16)
            model.tensors[i].type = SOTTO_TYPE_BF16;
    }
    struct tensor last = model.tensors[model.n - 1];
    model.tensors[model.n - 1] = model.tensors[0];
    model.tensors[0] = last;
    model.filter_error = 1e-3f;
    save();
    done(conversion(input, output, SOTTO_TYPE_COUNT, NULL));
    check_output(SOTTO_TYPE_F32);
    done(conversion(input, output, SOTTO_TYPE_F16, NULL));
    check_output(SOTTO_TYPE_F16);
    static const int32_t words[] = { WORDS - 1, WORDS + 1, VOCAB };
    for (int i = 0; i < 3; i++) {
        model.words = words[i];
        save();
        done(conversion(input, output, SOTTO_TYPE_F16, NULL));
        check_output(SOTTO_TYPE_F16);
    }
    describe();
}

/* ---- what can be wrong ---- */

static void cut_off_everywhere(void ** state) {
    (void)state;
    save();
    size_t end_of_words = model.fields[HEADER + 3];
    assert_true(model.n_fields > 200);
    assert_int_equal(truncate(input, (off_t)model.size - 1), 0);
    refused(SOTTO_E_MODEL_TRUNCATED, input);
    for (int i = model.n_fields - 1; i > 0; i--) {
        bool record = i == HEADER + 3 || (i > HEADER + 3 && model.fields[i] - model.fields[i - 1] != 4);
        assert_int_equal(truncate(input, (off_t)model.fields[i] + 1), 0);
        refused(SOTTO_E_MODEL_TRUNCATED, input);
        assert_int_equal(truncate(input, (off_t)model.fields[i]), 0);
        refused(record ? SOTTO_E_MODEL_TENSOR_MISSING : SOTTO_E_MODEL_TRUNCATED, input);
    }
    static const size_t sizes[] = { 0, 1, 3 };
    for (int i = 2; i >= 0; i--) {
        assert_int_equal(truncate(input, (off_t)sizes[i]), 0);
        refused(SOTTO_E_MODEL_FORMAT, input);
    }
    save();
    assert_int_equal(truncate(input, (off_t)end_of_words - 3), 0); /* inside the vocabulary */
    refused(SOTTO_E_MODEL_TRUNCATED, "token");
    save();
}

static void headers(void ** state) {
    (void)state;
    static const struct {
        int field;
        int32_t value;
        enum sotto_status status;
        const char * word;
    } rows[] = {
        { MAGIC, 0x67676d6d, SOTTO_E_MODEL_FORMAT, "neither" },
        { N_VOCAB, 10, SOTTO_E_MODEL_ARCH, "VAD" },
        { N_VOCAB, 51863, SOTTO_E_MODEL_HPARAMS, "tokens 51863" },
        { N_VOCAB, -1, SOTTO_E_MODEL_HPARAMS, "tokens -1" },
        { N_VOCAB, INT32_MAX, SOTTO_E_MODEL_HPARAMS, "tokens" },
        { AUDIO_CTX, 0, SOTTO_E_MODEL_HPARAMS, "contexts 0" },
        { AUDIO_WIDTH, 8, SOTTO_E_MODEL_HPARAMS, "differ" },
        { AUDIO_HEADS, 3, SOTTO_E_MODEL_HPARAMS, "heads 3" },
        { AUDIO_HEADS, 0, SOTTO_E_MODEL_HPARAMS, "heads 0" },
        { AUDIO_LAYERS, 0, SOTTO_E_MODEL_HPARAMS, "layers 0" },
        { AUDIO_LAYERS, INT32_MAX, SOTTO_E_MODEL_HPARAMS, "layers" },
        { TEXT_CTX, -5, SOTTO_E_MODEL_HPARAMS, "contexts" },
        { TEXT_HEADS, -2, SOTTO_E_MODEL_HPARAMS, "heads" },
        { TEXT_LAYERS, -1, SOTTO_E_MODEL_HPARAMS, "layers" },
        { TEXT_LAYERS, 2, SOTTO_E_MODEL_TENSOR_MISSING, "decoder.blocks.1." },
        { N_MELS, 513, SOTTO_E_MODEL_HPARAMS, "bands 513" },
        { N_MELS, 4, SOTTO_E_MODEL_FILTERS, "3 x 201" },
        { FTYPE, 4, SOTTO_E_MODEL_TENSOR_TYPE, "ftype 4" },
        { FTYPE, 25, SOTTO_E_MODEL_TENSOR_TYPE, "ftype 25" },
        { FTYPE, -1, SOTTO_E_MODEL_TENSOR_TYPE, "ftype -1" },
        { FTYPE, 1002, SOTTO_E_MODEL_QUANT_VERSION, "version 1" },
        { FTYPE, 3008, SOTTO_E_MODEL_QUANT_VERSION, "version 3" },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        model.header[rows[i].field] = rows[i].value;
        refused_model(rows[i].status, rows[i].word);
    }
    model.header[AUDIO_WIDTH] = model.header[TEXT_WIDTH] = 8;
    refused_model(SOTTO_E_MODEL_TENSOR_SHAPE, "encoder.conv1.weight");
}

static void filters_and_words(void ** state) {
    (void)state;
    model.bands = 80;
    refused_model(SOTTO_E_MODEL_FILTERS, "80 x 201");
    model.bins = 200;
    refused_model(SOTTO_E_MODEL_FILTERS, "3 x 200");
    model.words = -1;
    refused_model(SOTTO_E_MODEL_VOCAB, "number of entries");
    model.words = VOCAB + 1;
    refused_model(SOTTO_E_MODEL_VOCAB, "number of entries");
    model.first_word = 1025;
    refused_model(SOTTO_E_MODEL_VOCAB, "(1025)");
    model.first_word = -2 & INT32_MAX;
    refused_model(SOTTO_E_MODEL_VOCAB, "1024 bytes");
    model.words = 100;
    refused_model(SOTTO_E_MODEL_VOCAB, "too few entries (100)");
    model.words = 0;
    refused_model(SOTTO_E_MODEL_VOCAB, "too few entries (0)");
    model.n = 0;
    refused_model(SOTTO_E_MODEL_TENSOR_MISSING, "a vocabulary alone, without its 50 tensors");
}

static void records(void ** state) {
    (void)state;
    static const char name[] = "decoder.blocks.0.mlp.0.weight";
    static const int32_t ranks[] = { -1, 5, INT32_MAX, INT32_MIN };
    for (int i = 0; i < 4; i++) {
        find(name)->rank = ranks[i];
        refused_model(SOTTO_E_MODEL_CORRUPT, "number of axes");
    }
    static const int32_t lengths[] = { -1, 256, INT32_MAX };
    for (int i = 0; i < 3; i++) {
        find(name)->name_len = lengths[i];
        refused_model(SOTTO_E_MODEL_CORRUPT, "name of length");
    }
    find(name)->name[0] = 0;
    refused_model(SOTTO_E_MODEL_CORRUPT, "name of length 0");
    static const int32_t axes[] = { 0, -1, INT32_MIN };
    for (int i = 0; i < 3; i++) {
        find(name)->ne[1] = axes[i];
        refused_model(SOTTO_E_MODEL_CORRUPT, "an axis of");
    }
    struct tensor * t = find(name);
    t->rank = 4;
    for (int i = 0; i < 4; i++)
        t->ne[i] = INT32_MAX;
    refused_model(SOTTO_E_MODEL_CORRUPT, "too many values");
    find(name)->name_len = 5; /* the rest of it reads as values; what follows makes no sense */
    refused_model(SOTTO_E_MODEL_TENSOR_UNKNOWN, "'decod'");
}

static void types(void ** state) {
    (void)state;
    static const char name[] = "decoder.blocks.0.mlp.0.weight";
    static const int32_t quantised[] = { 2, 3, 6, 7, 8, 10, 11, 12, 13, 14 };
    static const int32_t wrong[] = { 4, 5, 9, 15, 24, 26, 28, 29, 31, 43, -1, INT32_MAX };
    for (size_t i = 0; i < sizeof(quantised) / sizeof(quantised[0]); i++) {
        find(name)->type = quantised[i]; /* rows of 4 */
        refused_model(SOTTO_E_MODEL_TENSOR_SHAPE, "no whole blocks");
    }
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        find(name)->type = wrong[i];
        refused_model(SOTTO_E_MODEL_TENSOR_TYPE, name);
    }
}

/* Each tensor: missing, doubled, misnamed, of other shapes. */
static void every_tensor(void ** state) {
    (void)state;
    for (int i = 0; i < model.n; i++) {
        char name[128];
        snprintf(name, sizeof(name), "%s", model.tensors[i].name);
        model.tensors[i] = model.tensors[--model.n];
        refused_model(SOTTO_E_MODEL_TENSOR_MISSING, name);
        model.tensors[model.n++] = model.tensors[i];
        refused_model(SOTTO_E_MODEL_TENSOR_DUPLICATE, name);
        strcat(model.tensors[i].name, "s");
        refused_model(SOTTO_E_MODEL_TENSOR_UNKNOWN, name);
        model.tensors[i].ne[model.tensors[i].rank - 1]++;
        refused_model(SOTTO_E_MODEL_TENSOR_SHAPE, name);
        model.tensors[i].ne[model.tensors[i].rank++] = 2;
        refused_model(SOTTO_E_MODEL_TENSOR_SHAPE, name);
        model.tensors[i].rank = 0;
        refused_model(SOTTO_E_MODEL_TENSOR_SHAPE, name);
    }
    assert_int_equal(model.n, 50);
}

static void names(void ** state) {
    (void)state;
    static const char * const rows[] = { "encoder.blocks.1.mlp.0.weight",
                                         "encoder.blocks.00.mlp.0.weight",
                                         "encoder.blocks.+0.mlp.0.weight",
                                         "encoder.blocks.-1.mlp.0.weight",
                                         "encoder.blocks.0mlp.0.weight",
                                         "encoder.blocks.mlp.0.weight",
                                         "encoder.mlp.0.weight",
                                         "enc.blk.0.ffn_up.weight",
                                         "encoder.blocks.0.",
                                         "encoder.blocks.99999999999999999999.x",
                                         "decoder.conv1.weight",
                                         "Encoder.conv1.weight",
                                         "\x01\xFF%s",
                                         "e" };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        add(rows[i], 2, D, 4 * D, 0, SOTTO_TYPE_F16);
        refused_model(SOTTO_E_MODEL_TENSOR_UNKNOWN, "does not belong");
    }
}

static void calls(void ** state) {
    (void)state;
    save();
    find("decoder.blocks.0.mlp.0.weight")->scale = 65536;
    find("decoder.blocks.0.mlp.0.weight")->type = SOTTO_TYPE_F32;
    save();
    refused(SOTTO_E_MODEL_NAN, "dec.blk.0.ffn_up.weight");
    describe();
    save();
    write_bytes(back, "old", 3);
    assert_int_equal(conversion(input, "/nonexistent/x.bin", SOTTO_TYPE_F16, NULL), SOTTO_E_GGUF_IO_OPEN);
    assert_int_equal(symlink("/dev/full", output), -1); /* it exists */
    unlink(output);
    char full[600];
    snprintf(full, sizeof(full), "%s.full.bin", output);
    assert_int_equal(symlink("/dev/full", full), 0);
    assert_int_equal(conversion(input, full, SOTTO_TYPE_F16, NULL), SOTTO_E_GGUF_IO_WRITE);
    unlink(full);
    assert_int_equal(conversion("/", back, SOTTO_TYPE_F16, NULL), SOTTO_E_MODEL_FORMAT);
    write_bytes(output, "PK\3\4....", 8);
    assert_int_equal(conversion(output, back, SOTTO_TYPE_F16, NULL), SOTTO_E_MODEL_PICKLE);
    write_bytes(output, "GGUF", 4);
    assert_int_equal(conversion(output, back, SOTTO_TYPE_F16, NULL), SOTTO_E_MODEL_TRUNCATED);
    size_t size;
    uint8_t * bytes = read_bytes(back, &size);
    assert_int_equal(size, 3);
    free(bytes);
}

/* ---- any bytes ---- */

/* The file as it is gives a model or a status of its own; memory is little, and nothing stays. */
static void holds(void) {
    struct counting_allocator memory;
    counting_allocator_init(&memory);
    struct whisper_source source = { .allocator = &memory.base };
    sotto_clear_last_error();
    enum sotto_status status = sotto_i_from_bin(&source, input);
    assert_int_equal(sotto_last_error(), status);
    assert_true(status == SOTTO_OK || (status >= SOTTO_E_MODEL_FORMAT && status <= SOTTO_E_MODEL_PICKLE));
    assert_true(memory.peak < 64 << 20);
    sotto_i_whisper_source_free(&source);
    assert_int_equal(memory.held, 0);
}

static void holds_with(int fd, size_t at, int value) {
    assert_int_equal(pwrite(fd, &(uint8_t){ (uint8_t)value }, 1, (off_t)at), 1);
    holds();
    assert_int_equal(pwrite(fd, model.bytes + at, 1, (off_t)at), 1);
}

/* Numbers before the vocabulary set to many values; those of tensors, and a name, to a few. */
static void any_bytes(void ** state) {
    (void)state;
    save();
    int fd = open(input, O_WRONLY);
    assert_true(fd >= 0);
    for (int i = 0; i < model.n_fields; i++) {
        size_t at = model.fields[i];
        for (size_t k = at; k < at + 4; k++) {
            for (int value = 0; value < 256 && i < HEADER + 2; value += 17)
                holds_with(fd, k, value);
            holds_with(fd, k, 0xFF);
            holds_with(fd, k, model.bytes[k] ^ 1);
        }
    }
    size_t name = model.fields[HEADER + 3 + 5] + 4; /* of the first tensor: after 3 numbers and 3 axes */
    for (size_t k = name; k < name + strlen(model.tensors[0].name); k++)
        holds_with(fd, k, model.bytes[k] ^ 0x20);
    close(fd);
}

static enum sotto_status one_way(const struct sotto_allocator * allocator, void * user_data) {
    const char * const * way = user_data;
    return conversion(way[0], way[1], SOTTO_TYPE_F16, allocator);
}

/* Both ways. */
static void nth_allocation_fails(void ** state) {
    (void)state;
    save();
    const char * ways[][2] = { { input, output }, { output, back } };
    for (int w = 0; w < 2; w++)
        assert_true(refuse_each(one_way, ways[w]) > 8);
    same_files(input, back);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(there_and_back), cmocka_unit_test(variants),          cmocka_unit_test(cut_off_everywhere),
        cmocka_unit_test(headers),        cmocka_unit_test(filters_and_words), cmocka_unit_test(records),
        cmocka_unit_test(types),          cmocka_unit_test(every_tensor),      cmocka_unit_test(names),
        cmocka_unit_test(calls),          cmocka_unit_test(any_bytes),         cmocka_unit_test(nth_allocation_fails),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
