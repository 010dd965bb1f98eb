/* SPDX-License-Identifier: MIT */
/* Converting CTranslate2 folders: a tiny model with all its parts, what becomes of its numbers, and every way in which
 * such a folder can be wrong: cut off at each field, wrong shapes, missing, doubled and unknown variables, bad JSON.
 * Nothing may be left behind, and an old output stays as it was. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <fcntl.h>
#include <stdint.h>
#include <math.h>
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

enum { D = 4, MELS = 3, AUDIO = 5, TEXT = 6, VOCAB = 51865, MAX_VARIABLES = 64 };
enum dtype { F32 = 0, I8 = 1, I16 = 2, I32 = 3, F16 = 4, BF16 = 5 };

struct variable {
    char name[128];
    int rank;
    uint32_t dims[4];
    int dtype;
    int64_t value;       /* of a scalar */
    int first;           /* what values of elements count from */
    double scale;        /* of float values; 0 = all zero */
    bool zero_keys;      /* rows of keys are zero: which third or half by name */
    int32_t extra_bytes; /* the payload size says so many more */
};

struct model {
    struct variable variables[MAX_VARIABLES];
    int n;
    uint32_t version, revision;
    const char * spec;
    const char *alias, *target;
    int more_aliases; /* of the same target */
    /* written */
    uint8_t * bytes;
    size_t size, cap;
    size_t fields[1024]; /* where each begins */
    int n_fields;
};

static char folder[512];
static char output[600];

/* ---- describing a model ---- */

static struct variable * add(struct model * m, const char * name, int rank, uint32_t d0, uint32_t d1, uint32_t d2) {
    struct variable * v = &m->variables[m->n++];
    memset(v, 0, sizeof(*v));
    snprintf(v->name, sizeof(v->name), "%s", name);
    v->rank = rank;
    v->dims[0] = d0;
    v->dims[1] = d1;
    v->dims[2] = d2;
    v->dtype = F16;
    v->scale = 1;
    return v;
}

static void add_scalar(struct model * m, const char * name, int dtype, int64_t value) {
    struct variable * v = add(m, name, 0, 0, 0, 0);
    v->dtype = dtype;
    v->value = value;
}

static void add_linear(struct model * m, const char * prefix, const char * name, uint32_t rows, uint32_t columns) {
    char full[128];
    snprintf(full, sizeof(full), "%s/%s/weight", prefix, name);
    add(m, full, 2, rows, columns, 0);
    snprintf(full, sizeof(full), "%s/%s/bias", prefix, name);
    add(m, full, 1, rows, 0, 0)->zero_keys = rows > D && strstr(name, "attention") != NULL;
}

static void add_norm(struct model * m, const char * prefix, const char * name) {
    char full[128];
    snprintf(full, sizeof(full), "%s%s/layer_norm/gamma", prefix, name);
    add(m, full, 1, D, 0, 0);
    snprintf(full, sizeof(full), "%s%s/layer_norm/beta", prefix, name);
    add(m, full, 1, D, 0, 0);
}

static void add_layer(struct model * m, const char * prefix, bool cross) {
    add_norm(m, prefix, "/self_attention");
    add_linear(m, prefix, "self_attention/linear_0", 3 * D, D);
    add_linear(m, prefix, "self_attention/linear_1", D, D);
    if (cross) {
        add_norm(m, prefix, "/attention");
        add_linear(m, prefix, "attention/linear_0", D, D);
        add_linear(m, prefix, "attention/linear_1", 2 * D, D);
        add_linear(m, prefix, "attention/linear_2", D, D);
    }
    add_norm(m, prefix, "/ffn");
    add_linear(m, prefix, "ffn/linear_0", 4 * D, D);
    add_linear(m, prefix, "ffn/linear_1", D, 4 * D);
}

static void describe(struct model * m) {
    free(m->bytes);
    memset(m, 0, sizeof(*m));
    m->version = 6;
    m->revision = 3;
    m->spec = "WhisperSpec";
    m->alias = "decoder/projection/weight";
    m->target = "decoder/embeddings/weight";
    add_scalar(m, "encoder/num_heads", I16, 2);
    add_scalar(m, "decoder/num_heads", I16, 2);
    add_scalar(m, "decoder/activation", I8, 3);
    add_scalar(m, "decoder/pre_norm", I8, 1);
    add_scalar(m, "decoder/alignment_layer", I16, -1);
    add(m, "encoder/conv1/weight", 3, D, MELS, 3);
    add(m, "encoder/conv1/bias", 1, D, 0, 0);
    add(m, "encoder/conv2/weight", 3, D, D, 3);
    add(m, "encoder/conv2/bias", 1, D, 0, 0);
    add(m, "encoder/position_encodings/encodings", 2, AUDIO, D, 0);
    add_layer(m, "encoder/layer_0", false);
    add_norm(m, "encoder", "");
    add(m, "decoder/embeddings/weight", 2, VOCAB, D, 0);
    add(m, "decoder/position_encodings/encodings", 2, TEXT, D, 0);
    add_layer(m, "decoder/layer_0", true);
    add_norm(m, "decoder", "");
}

static struct variable * find(struct model * m, const char * name) {
    for (int i = 0; i < m->n; i++) {
        if (strcmp(m->variables[i].name, name) == 0)
            return &m->variables[i];
    }
    fail_msg("no variable %s", name);
    return NULL;
}

/* ---- writing it ---- */

static void put(struct model * m, const void * bytes, size_t n) {
    if (m->size + n > m->cap) {
        m->cap = 2 * m->cap + n;
        m->bytes = realloc(m->bytes, m->cap);
        assert_non_null(m->bytes);
    }
    memcpy(m->bytes + m->size, bytes, n);
    m->size += n;
}

static void put_number(struct model * m, uint64_t x, size_t width) {
    assert_true(m->n_fields < 1024);
    m->fields[m->n_fields++] = m->size;
    for (size_t i = 0; i < width; i++)
        put(m, &(uint8_t){ (uint8_t)(x >> (8 * i)) }, 1);
}

static void put_string(struct model * m, const char * text) {
    put_number(m, strlen(text) + 1, 2);
    put(m, text, strlen(text) + 1);
}

static size_t width_of(int dtype) { return dtype == F32 || dtype == I32 ? 4 : dtype == I8 ? 1 : 2; }

/* The value of an element, exact in f16 and bf16 while scale is a power of two. */
static double value_of(const struct variable * v, size_t i) {
    size_t n = v->dims[0];
    bool fused = n == 3 * D;
    if (v->zero_keys && (fused ? i >= D && i < 2 * D : n == 2 * D && i < D))
        return i % 2 == 0 ? 0.0 : -0.0;
    return ((double)(i % 253) - 126 + v->first) / 64 * v->scale;
}

/* The integer of an element of quantised weights. */
static int64_t integer_of(const struct variable * v, size_t i) {
    return v->dtype == I8 ? (int64_t)(i * 7 % 256) - 128 : (int64_t)(i * 1009 % 65536) - 32768;
}

static void put_value(struct model * m, const struct variable * v, size_t i) {
    float x = (float)value_of(v, i);
    if (v->dtype != F32 && v->dtype != F16 && v->dtype != BF16) {
        uint64_t bits = (uint64_t)(v->rank == 0 ? v->value : integer_of(v, i));
        put(m, &bits, width_of(v->dtype));
    } else if (v->dtype == F32) {
        put(m, &x, 4);
    } else if (v->dtype == F16) {
        put(m, &(sotto_fp16_t){ sotto_fp32_to_fp16(x) }, 2);
    } else {
        sotto_bf16_t half = sotto_fp32_to_bf16(x);
        put(m, &half, 2);
    }
}

static void put_variable(struct model * m, const struct variable * v) {
    size_t items = 1;
    put_string(m, v->name);
    put_number(m, (uint64_t)v->rank, 1);
    for (int i = 0; i < v->rank; i++) {
        put_number(m, v->dims[i], 4);
        items *= v->dims[i];
    }
    put_number(m, (uint64_t)v->dtype, 1);
    size_t width = v->dtype <= BF16 ? width_of(v->dtype) : 1;
    put_number(m, (uint64_t)((int64_t)(items * width) + v->extra_bytes), 4);
    for (size_t i = 0; i < items && v->dtype <= BF16; i++)
        put_value(m, v, i);
}

static void write_file(const char * name, const void * bytes, size_t size) {
    char path[600];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    write_bytes(path, bytes, size);
}

static void remove_file(const char * name) {
    char path[600];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    unlink(path);
}

static void serialise(struct model * m) {
    m->size = 0;
    m->n_fields = 0;
    put_number(m, m->version, 4);
    put_string(m, m->spec);
    put_number(m, m->revision, 4);
    put_number(m, (uint64_t)m->n, 4);
    for (int i = 0; i < m->n; i++)
        put_variable(m, &m->variables[i]);
    put_number(m, (uint64_t)((m->alias != NULL) + m->more_aliases), 4);
    for (int i = 0; i < m->more_aliases; i++) {
        char name[32];
        snprintf(name, sizeof(name), "%c%d", "zad"[i % 3], i);
        put_string(m, name);
        put_string(m, m->target);
    }
    if (m->alias != NULL) {
        put_string(m, m->alias);
        put_string(m, m->target);
    }
}

static void save(struct model * m) {
    serialise(m);
    write_file("model.bin", m->bytes, m->size);
}

/* The character of a byte in the alphabet of vocabularies. */
static int put_byte(char * out, int byte) {
    int c = byte;
    bool shown = (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
    if (!shown)
        c = byte <= 32 ? 256 + byte : byte <= 160 ? 289 + byte - 127 : 323;
    if (c < 128)
        return sprintf(out, "%c", c);
    return sprintf(out, "%c%c", 0xC0 | c >> 6, 0x80 | (c & 63));
}

/* 256 bytes, 50,000 pairs of bytes, the empty token, and nameless specials. */
static char * vocabulary(size_t * size) {
    char * text = malloc(1 << 20);
    char * at = text;
    assert_non_null(text);
    for (int id = 0; id < VOCAB; id++) {
        int k = id - 256;
        if (id < 256) {
            at += put_byte(at, id);
        } else if (k < 50000) {
            at += put_byte(at, k / 256);
            at += put_byte(at, k % 256);
        } else if (id > 50256) {
            at += sprintf(at, "<|special %d|>", id);
        }
        *at++ = '\n';
    }
    *size = (size_t)(at - text);
    return text;
}

static const char config[] = "{\"alignment_heads\": [[0, 1]], \"suppress_ids\": [1, 2], \"lang_ids\": [50259], "
                             "\"suppress_ids_begin\": null}";

static void save_texts(void) {
    size_t size;
    char * text = vocabulary(&size);
    write_file("vocabulary.txt", text, size);
    write_file("config.json", config, strlen(config));
    free(text);
}

static struct model model;

static int setup(void ** state) {
    (void)state;
    snprintf(folder, sizeof(folder), "%s", temp_path("ct2"));
    snprintf(output, sizeof(output), "%s.gguf", folder);
    mkdir(folder, 0777);
    save_texts();
    describe(&model);
    save(&model);
    return 0;
}

static int teardown(void ** state) {
    (void)state;
    static const char * const names[] = { "model.bin",   "model.bin.part1", "model.bin.part2", "model.bin.part3",
                                          "config.json", "vocabulary.txt",  "vocabulary.json" };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        remove_file(names[i]);
    unlink(output);
    free(model.bytes);
    return rmdir(folder); /* fails if something was left behind */
}

/* ---- converting ---- */

static enum sotto_status convert(enum sotto_type type, const struct sotto_allocator * allocator) {
    return conversion(folder, output, type, allocator);
}

static void refused(enum sotto_status status, const char * word) {
    conversion_refused(folder, output, SOTTO_TYPE_F16, status, word);
}

static void refused_model(enum sotto_status status, const char * word) {
    save(&model);
    refused(status, word);
    describe(&model);
}

static float element(const void * data, enum sotto_type type, size_t i) {
    return type == SOTTO_TYPE_F32 ? ((const float *)data)[i] : sotto_fp16_to_fp32(((const sotto_fp16_t *)data)[i]);
}

/* One tensor of the output against elements first.. of a variable. */
static void check_tensor(struct sotto_gguf_context * g, const char * name, enum sotto_type type, const char * variable,
                         size_t first) {
    int64_t id = sotto_gguf_find_tensor(g, name);
    assert_true(id >= 0);
    assert_int_equal(sotto_gguf_get_tensor_type(g, id), type);
    size_t size = sotto_gguf_get_tensor_size(g, id);
    void * data = malloc(size);
    assert_int_equal(sotto_gguf_read_tensor(g, id, data, 0, size), SOTTO_OK);
    for (size_t i = 0; i < size / sotto_type_size(type); i++)
        assert_true(element(data, type, i) == (float)value_of(find(&model, variable), first + i));
    free(data);
}

static void check_output(enum sotto_type type) {
    struct sotto_gguf_context * g = sotto_gguf_open(output, NULL);
    assert_non_null(g);
    assert_int_equal(sotto_gguf_get_n_tensors(g), 7 + 15 + 4 + 24);
    uint64_t u;
    assert_true(sotto_gguf_get_uint(g, "whisper.encoder.embedding_length", &u) && u == D);
    assert_true(sotto_gguf_get_uint(g, "whisper.mel_bands", &u) && u == MELS);
    assert_true(sotto_gguf_get_uint(g, "whisper.encoder.context_length", &u) && u == AUDIO);
    assert_true(sotto_gguf_get_uint(g, "whisper.decoder.context_length", &u) && u == TEXT);
    assert_true(sotto_gguf_get_uint(g, "whisper.decoder.attention.head_count", &u) && u == 2);
    int64_t merges = sotto_gguf_find_key(g, "tokenizer.ggml.merges");
    assert_int_equal(sotto_gguf_get_arr_n(g, merges), 50000);
    assert_int_equal(sotto_gguf_find_key(g, "whisper.suppress_tokens_begin"), -1);
    int64_t tokens = sotto_gguf_find_key(g, "tokenizer.ggml.tokens");
    assert_string_equal(sotto_gguf_get_arr_str(g, tokens, 50259), "<|en|>");
    assert_string_equal(sotto_gguf_get_arr_str(g, tokens, 51864), "<|30.00|>");
    check_tensor(g, "enc.conv1.weight", type, "encoder/conv1/weight", 0);
    check_tensor(g, "enc.pos_embd.weight", SOTTO_TYPE_F32, "encoder/position_encodings/encodings", 0);
    check_tensor(g, "enc.blk.0.attn_v.weight", type, "encoder/layer_0/self_attention/linear_0/weight", 2 * D * D);
    check_tensor(g, "dec.blk.0.attn_q.bias", SOTTO_TYPE_F32, "decoder/layer_0/self_attention/linear_0/bias", 0);
    check_tensor(g, "dec.blk.0.cross_attn_k.weight", type, "decoder/layer_0/attention/linear_1/weight", 0);
    check_tensor(g, "dec.blk.0.cross_attn_v.bias", SOTTO_TYPE_F32, "decoder/layer_0/attention/linear_1/bias", D);
    check_tensor(g, "dec.blk.0.ffn_down.weight", type, "decoder/layer_0/ffn/linear_1/weight", 0);
    check_tensor(g, "dec.token_embd.weight", type, "decoder/embeddings/weight", 0);
    sotto_gguf_free(g);
}

static void every_float_type(void ** state) {
    (void)state;
    static const int dtypes[] = { F16, F32, BF16 };
    static const enum sotto_type types[] = { SOTTO_TYPE_F16, SOTTO_TYPE_F32 };
    for (int d = 0; d < 3; d++) {
        for (int i = 0; i < model.n; i++) {
            if (model.variables[i].rank > 0)
                model.variables[i].dtype = dtypes[d];
        }
        save(&model);
        for (int t = 0; t < 2; t++) {
            assert_int_equal(convert(types[t], NULL), SOTTO_OK);
            check_output(types[t]);
        }
    }
    describe(&model);
}

static void a_model_in_parts(void ** state) {
    (void)state;
    save(&model);
    assert_int_equal(convert(SOTTO_TYPE_F16, NULL), SOTTO_OK);
    size_t size;
    uint8_t * whole = read_bytes(output, &size);
    remove_file("model.bin");
    size_t a = model.fields[40] + 1; /* inside a field */
    size_t b = model.size - 100000;  /* inside a payload */
    write_file("model.bin.part1", model.bytes, a);
    refused(SOTTO_E_MODEL_TRUNCATED, "no .part2");
    write_file("model.bin.part2", model.bytes + a, b - a);
    refused(SOTTO_E_MODEL_TRUNCATED, "no .part3");
    write_file("model.bin.part3", model.bytes + b, model.size - b);
    assert_int_equal(convert(SOTTO_TYPE_F16, NULL), SOTTO_OK);
    size_t joined_size;
    uint8_t * joined = read_bytes(output, &joined_size);
    assert_int_equal(size, joined_size);
    assert_memory_equal(whole, joined, size);
    free(whole);
    free(joined);
    remove_file("model.bin.part1");
    remove_file("model.bin.part2");
    remove_file("model.bin.part3");
    save(&model);
}

/* ---- model.bin ---- */

static void cut_off_at_every_field(void ** state) {
    (void)state;
    save(&model);
    char path[600];
    snprintf(path, sizeof(path), "%s/model.bin", folder);
    assert_true(model.n_fields > 250);
    for (int i = model.n_fields - 1; i >= 0; i--) {
        for (int more = 1; more >= 0; more--) {
            bool one_byte = i + 1 < model.n_fields && model.fields[i + 1] == model.fields[i] + 1;
            if (more == 1 && one_byte)
                continue; /* that is where the next field begins */
            assert_int_equal(truncate(path, (off_t)model.fields[i] + more), 0);
            refused(SOTTO_E_MODEL_TRUNCATED, "model.bin");
        }
    }
    save(&model);
}

/* The folder as it is gives a model or a status of its own; memory is little, and nothing stays. */
static void holds(void) {
    struct counting_allocator memory;
    counting_allocator_init(&memory);
    struct whisper_source source = { .allocator = &memory.base };
    sotto_clear_last_error();
    enum sotto_status status = sotto_i_from_ct2(&source, folder);
    assert_int_equal(sotto_last_error(), status);
    assert_true(status == SOTTO_OK || (status >= SOTTO_E_MODEL_FORMAT && status <= SOTTO_E_MODEL_PICKLE));
    assert_true(memory.peak < 64 << 20);
    sotto_i_whisper_source_free(&source);
    assert_int_equal(memory.held, 0);
}

/* Every byte of a number set to a few values. Lengths of strings among them, so names are cut and joined as well. */
static void any_bytes(void ** state) {
    (void)state;
    static const int values[] = { 0, 1, 4, 0x7F, 0x80, 0xFF };
    char path[600];
    save(&model);
    snprintf(path, sizeof(path), "%s/model.bin", folder);
    int fd = open(path, O_WRONLY);
    assert_true(fd >= 0);
    for (int i = 0; i < model.n_fields; i++) {
        size_t end = i + 1 < model.n_fields ? model.fields[i + 1] : model.size;
        for (size_t at = model.fields[i]; at < end && at < model.fields[i] + 4; at++) {
            for (size_t k = 0; k < sizeof(values) / sizeof(values[0]); k++) {
                assert_int_equal(pwrite(fd, &(uint8_t){ (uint8_t)values[k] }, 1, (off_t)at), 1);
                holds();
            }
            assert_int_equal(pwrite(fd, model.bytes + at, 1, (off_t)at), 1);
        }
    }
    close(fd);
}

static void headers(void ** state) {
    (void)state;
    model.version = 7;
    refused_model(SOTTO_E_MODEL_VERSION, "version 7");
    model.version = 3;
    refused_model(SOTTO_E_MODEL_VERSION, "version 3");
    model.revision = 4;
    refused_model(SOTTO_E_MODEL_VERSION, "revision 4");
    model.spec = "TransformerSpec";
    refused_model(SOTTO_E_MODEL_ARCH, "TransformerSpec");
    model.target = "nothing";
    refused_model(SOTTO_E_MODEL_CORRUPT, "'nothing'");
    static const struct {
        size_t field; /* of put_number: 0 version, 1 length of the spec, 2 revision, 3 count, 4 length of a name */
        uint64_t value;
        size_t width;
        enum sotto_status status;
    } patches[] = {
        { 1, 0, 2, SOTTO_E_MODEL_CORRUPT },
        { 1, 11, 2, SOTTO_E_MODEL_CORRUPT },
        { 1, 13, 2, SOTTO_E_MODEL_CORRUPT },
        { 3, UINT32_MAX, 4, SOTTO_E_MODEL_TRUNCATED },
        { 3, 0, 4, SOTTO_E_MODEL_TRUNCATED },
        { 4, 0, 2, SOTTO_E_MODEL_CORRUPT },
        { 4, 65535, 2, SOTTO_E_MODEL_CORRUPT },
        { 5, 5, 1, SOTTO_E_MODEL_CORRUPT },
        { 5, 255, 1, SOTTO_E_MODEL_CORRUPT },
        { 6, 6, 1, SOTTO_E_MODEL_TENSOR_TYPE },
        { 6, 255, 1, SOTTO_E_MODEL_TENSOR_TYPE },
        { 7, 1, 4, SOTTO_E_MODEL_TENSOR_SIZE },
        { 7, UINT32_MAX, 4, SOTTO_E_MODEL_TENSOR_SIZE },
    };
    for (size_t i = 0; i < sizeof(patches) / sizeof(patches[0]); i++) {
        serialise(&model);
        for (size_t k = 0; k < patches[i].width; k++)
            model.bytes[model.fields[patches[i].field] + k] = (uint8_t)(patches[i].value >> (8 * k));
        write_file("model.bin", model.bytes, model.size);
        refused(patches[i].status, "model.bin");
    }
}

static void payloads(void ** state) {
    (void)state;
    struct variable * v = find(&model, "encoder/conv2/weight");
    v->extra_bytes = 2;
    refused_model(SOTTO_E_MODEL_TENSOR_SIZE, "encoder/conv2/weight");
    find(&model, "encoder/conv2/weight")->extra_bytes = -1;
    refused_model(SOTTO_E_MODEL_TENSOR_SIZE, "encoder/conv2/weight");
    v = &model.variables[model.n - 1]; /* 2^32 x 2^32 x 4 items of which none is there */
    v->rank = 4;
    for (int i = 0; i < 4; i++)
        v->dims[i] = UINT32_MAX;
    v->dtype = 9;
    serialise(&model);
    size_t type_at = model.fields[model.n_fields - 5]; /* before it: type; after: size and alias count and strings */
    model.bytes[type_at] = F16;
    write_file("model.bin", model.bytes, model.size);
    refused(SOTTO_E_MODEL_CORRUPT, "too many items");
    describe(&model);
}

/* For each weight: missing, doubled, of another shape, of types that are no weights. */
static void every_weight(void ** state) {
    (void)state;
    int n = 0;
    for (int i = 0; i < model.n; i++) {
        char name[128];
        snprintf(name, sizeof(name), "%s", model.variables[i].name);
        if (model.variables[i].rank == 0)
            continue;
        n++;
        snprintf(model.variables[i].name, sizeof(model.variables[i].name), "x%.100s", name);
        bool optional = strcmp(name, "encoder/position_encodings/encodings") == 0;
        if (strcmp(name, "decoder/embeddings/weight") == 0)
            model.alias = NULL;
        refused_model(optional ? SOTTO_E_MODEL_TENSOR_UNKNOWN : SOTTO_E_MODEL_TENSOR_MISSING, name);
        model.variables[0] = model.variables[i];
        refused_model(SOTTO_E_MODEL_TENSOR_DUPLICATE, name);
        if (strstr(name, "embeddings") == NULL) {
            model.variables[i].dims[model.variables[i].rank - 1]++;
            refused_model(SOTTO_E_MODEL_TENSOR_SHAPE, "expected");
            model.variables[i].dims[model.variables[i].rank++] = 1;
            refused_model(SOTTO_E_MODEL_TENSOR_SHAPE, name);
        }
        model.variables[i].dtype = I32;
        refused_model(SOTTO_E_MODEL_TENSOR_TYPE, name);
        model.variables[i].dtype = I8;
        refused_model(SOTTO_E_MODEL_TENSOR_MISSING, "_scale");
    }
    assert_int_equal(n, 5 + 12 + 2 + 2 + 20 + 2);
}

/* The element of a scale, as put_value writes it. */
static float scale_of(size_t i) { return (float)(((double)(i % 253) + 1) / 64); }

static void check_integers(const char * name, const char * variable, size_t first, size_t row_length) {
    struct sotto_gguf_context * g = sotto_gguf_open(output, NULL);
    assert_non_null(g);
    int64_t id = sotto_gguf_find_tensor(g, name);
    assert_true(id >= 0);
    assert_int_equal(sotto_gguf_get_tensor_type(g, id), SOTTO_TYPE_F32);
    size_t size = sotto_gguf_get_tensor_size(g, id);
    float * data = malloc(size);
    assert_int_equal(sotto_gguf_read_tensor(g, id, data, 0, size), SOTTO_OK);
    const struct variable * v = find(&model, variable);
    for (size_t i = 0; i < size / sizeof(float); i++) {
        float scale = row_length == 0 ? 1000 : v->dtype == I16 ? scale_of(0) : scale_of((first + i) / row_length);
        assert_true(data[i] == (float)integer_of(v, first + i) / scale);
    }
    free(data);
    sotto_gguf_free(g);
}

static struct variable * add_scale(const char * name, uint32_t n) {
    char full[128];
    snprintf(full, sizeof(full), "%.100s_scale", name);
    struct variable * scale = add(&model, full, n > 0 ? 1 : 0, n, 0, 0);
    scale->dtype = F32;
    scale->first = 127;
    return scale;
}

/* Values are q / scale: a scale for each row of i8, of kernels for each channel; one for all of i16. */
static void quantised_weights(void ** state) {
    (void)state;
    static const char fused[] = "decoder/layer_0/attention/linear_1/weight";
    static const char kernel[] = "encoder/conv1/weight";
    static const char up[] = "decoder/layer_0/ffn/linear_0/weight";
    static const char down[] = "decoder/layer_0/ffn/linear_1/weight";
    static const char words[] = "decoder/embeddings/weight";
    find(&model, fused)->dtype = find(&model, kernel)->dtype = find(&model, words)->dtype = I8;
    find(&model, up)->dtype = find(&model, down)->dtype = I16;
    add_scale(fused, 2 * D);
    add_scale(kernel, D);
    add_scale(words, VOCAB);
    add_scale(up, 0);
    save(&model);
    assert_int_equal(convert(SOTTO_TYPE_F32, NULL), SOTTO_OK);
    check_integers("dec.blk.0.cross_attn_k.weight", fused, 0, D);
    check_integers("dec.blk.0.cross_attn_v.weight", fused, D * D, D);
    check_integers("enc.conv1.weight", kernel, 0, MELS * 3);
    check_integers("dec.token_embd.weight", words, 0, D);
    check_integers("dec.blk.0.ffn_up.weight", up, 0, D);
    check_integers("dec.blk.0.ffn_down.weight", down, 0, 0); /* without a scale */
    describe(&model);
}

/* A scale by an alias: that of what the alias stands for. */
static void aliased_weights(void ** state) {
    (void)state;
    static const char name[] = "decoder/layer_0/ffn/linear_0/weight";
    struct variable * v = find(&model, name);
    v->dtype = I8;
    snprintf(v->name, sizeof(v->name), "a/weight");
    add_scale("a/weight", 4 * D);
    model.alias = name;
    model.target = "a/weight";
    for (model.more_aliases = 0; model.more_aliases < 20; model.more_aliases += 19) {
        save(&model);
        assert_int_equal(convert(SOTTO_TYPE_F32, NULL), SOTTO_OK);
        check_integers("dec.blk.0.ffn_up.weight", "a/weight", 0, D);
    }
    describe(&model);
}

static void wrong_scales(void ** state) {
    (void)state;
    static const char name[] = "decoder/layer_0/ffn/linear_0/weight";
    static const uint32_t counts[] = { 4 * D - 1, 4 * D + 1, 0 };
    for (int i = 0; i < 3; i++) {
        find(&model, name)->dtype = I8;
        add_scale(name, counts[i]);
        refused_model(SOTTO_E_MODEL_TENSOR_SHAPE, "linear_0/weight_scale");
    }
    find(&model, name)->dtype = I16;
    add_scale(name, 4 * D);
    refused_model(SOTTO_E_MODEL_TENSOR_SHAPE, "expected 1:");
    find(&model, name)->dtype = I8;
    add_scale(name, 4 * D)->dtype = F16;
    refused_model(SOTTO_E_MODEL_TENSOR_TYPE, "_scale");
    static const double bad[] = { 0, -1, HUGE_VAL, -HUGE_VAL };
    for (int i = 0; i < 4; i++) {
        for (int dtype = I8; dtype <= I16; dtype++) {
            find(&model, name)->dtype = dtype;
            struct variable * scale = add_scale(name, dtype == I8 ? 4 * D : 0);
            scale->scale = bad[i];
            refused_model(SOTTO_E_MODEL_CORRUPT, "the scale of row 0");
        }
    }
}

static void sizes_that_cannot_be(void ** state) {
    (void)state;
    find(&model, "encoder/num_heads")->value = 3;
    refused_model(SOTTO_E_MODEL_HPARAMS, "heads 3 and 2");
    find(&model, "decoder/num_heads")->value = 0;
    refused_model(SOTTO_E_MODEL_HPARAMS, "heads 2 and 0");
    find(&model, "decoder/num_heads")->value = -2;
    refused_model(SOTTO_E_MODEL_HPARAMS, "heads 2 and -2");
    find(&model, "decoder/num_heads")->dtype = F16;
    refused_model(SOTTO_E_MODEL_TENSOR_TYPE, "decoder/num_heads");
    find(&model, "decoder/activation")->value = 0;
    refused_model(SOTTO_E_MODEL_HPARAMS, "decoder/activation");
    find(&model, "decoder/pre_norm")->value = 0;
    refused_model(SOTTO_E_MODEL_HPARAMS, "decoder/pre_norm");
    find(&model, "decoder/embeddings/weight")->dims[0] = 51863;
    refused_model(SOTTO_E_MODEL_HPARAMS, "tokens 51863");
    find(&model, "decoder/embeddings/weight")->dims[1] = 0;
    refused_model(SOTTO_E_MODEL_HPARAMS, "width 0");
    find(&model, "encoder/conv1/weight")->dims[1] = 513;
    refused_model(SOTTO_E_MODEL_HPARAMS, "bands 513");
    find(&model, "encoder/conv1/weight")->dims[1] = 0;
    refused_model(SOTTO_E_MODEL_HPARAMS, "bands 0");
    for (int i = 0; i < model.n; i++) { /* layer 0 becomes layer 1: a gap */
        char * digit = strstr(model.variables[i].name, "encoder/layer_0");
        if (digit != NULL)
            digit[14] = '1';
    }
    refused_model(SOTTO_E_MODEL_TENSOR_MISSING, "encoder/layer_0/");
    add(&model, "encoder/layer_99999999999999999999/x", 1, 1, 0, 0);
    refused_model(SOTTO_E_MODEL_HPARAMS, "layers");
    add(&model, "decoder/surprise", 1, 1, 0, 0);
    refused_model(SOTTO_E_MODEL_TENSOR_UNKNOWN, "decoder/surprise");
}

static void key_biases_and_large_weights(void ** state) {
    (void)state;
    static const char * const names[] = { "encoder/layer_0/self_attention/linear_0/bias",
                                          "decoder/layer_0/self_attention/linear_0/bias",
                                          "decoder/layer_0/attention/linear_1/bias" };
    static const int dtypes[] = { F32, F16, BF16 };
    for (int i = 0; i < 3; i++) {
        for (int d = 0; d < 3; d++) {
            find(&model, names[i])->zero_keys = false;
            find(&model, names[i])->dtype = dtypes[d];
            refused_model(SOTTO_E_MODEL_CORRUPT, names[i]);
        }
    }
    struct variable * v = find(&model, "decoder/layer_0/ffn/linear_0/weight");
    v->dtype = F32;
    v->scale = 65536;
    save(&model);
    refused(SOTTO_E_MODEL_NAN, "dec.blk.0.ffn_up.weight");
    assert_int_equal(convert(SOTTO_TYPE_F32, NULL), SOTTO_OK);
    describe(&model);
    save(&model);
}

/* ---- the texts ---- */

static void configs(void ** state) {
    (void)state;
    static const struct {
        const char * text;
        enum sotto_status status;
    } rows[] = {
        { "", SOTTO_E_MODEL_CONFIG },
        { "{", SOTTO_E_MODEL_CONFIG },
        { "[]", SOTTO_E_MODEL_CONFIG },
        { "{\"alignment_heads\": 3}", SOTTO_E_MODEL_CONFIG },
        { "{\"alignment_heads\": [3]}", SOTTO_E_MODEL_CONFIG },
        { "{\"alignment_heads\": [[0]]}", SOTTO_E_MODEL_CONFIG },
        { "{\"alignment_heads\": [[1, 0]]}", SOTTO_E_MODEL_CONFIG },
        { "{\"alignment_heads\": [[0, 2]]}", SOTTO_E_MODEL_CONFIG },
        { "{\"alignment_heads\": [[0, -1]]}", SOTTO_E_MODEL_CONFIG },
        { "{\"alignment_heads\": [[0, \"1\"]]}", SOTTO_E_MODEL_CONFIG },
        { "{\"alignment_heads\": [[0, 1], [0, 1], [0, 1]]}", SOTTO_E_MODEL_CONFIG },
        { "{\"suppress_ids\": [51865]}", SOTTO_E_MODEL_CONFIG },
        { "{\"suppress_ids\": [-1]}", SOTTO_E_MODEL_CONFIG },
        { "{\"suppress_ids\": [1.5]}", SOTTO_E_MODEL_CONFIG },
        { "{\"suppress_ids_begin\": {}}", SOTTO_E_MODEL_CONFIG },
        { "{\"lang_ids\": [9223372036854775807]}", SOTTO_E_MODEL_CONFIG },
        { "{\"lang_ids\": [1], \"lang_ids\": [2]}", SOTTO_E_MODEL_CONFIG },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        write_file("config.json", rows[i].text, strlen(rows[i].text));
        refused(rows[i].status, "config.json");
    }
    write_file("config.json", "{}", 2);
    assert_int_equal(convert(SOTTO_TYPE_F16, NULL), SOTTO_OK);
    remove_file("config.json");
    refused(SOTTO_E_IO, "config.json");
    write_file("config.json", config, strlen(config));
}

static void refused_vocabulary(const char * text, size_t size, const char * word) {
    write_file("vocabulary.txt", text, size);
    refused(SOTTO_E_MODEL_VOCAB, word);
}

/* The lines as an array of JSON, with something else for "!"; how many bytes. */
static size_t json_of(const char * text, size_t size, const char * other, char * out) {
    size_t n = 0;
    out[n++] = '[';
    for (size_t at = 0; at < size;) {
        size_t len = (size_t)((const char *)memchr(text + at, '\n', size - at) - (text + at));
        n += (size_t)sprintf(out + n, "%s\"", at > 0 ? "," : "");
        if (len == 1 && text[at] == '!')
            n += (size_t)sprintf(out + n, "%s", other);
        for (size_t i = at; i < at + len && !(len == 1 && text[at] == '!'); i++) {
            if (text[i] == '"' || text[i] == '\\')
                out[n++] = '\\';
            out[n++] = text[i];
        }
        out[n++] = '"';
        at += len + 1;
    }
    out[n++] = ']';
    return n;
}

static void vocabularies(void ** state) {
    (void)state;
    size_t size;
    char * text = vocabulary(&size);
    refused_vocabulary(text, 0, "fewer");
    refused_vocabulary(text, size - 18, "fewer");
    char * more = malloc(size + 2);
    memcpy(more, text, size);
    memcpy(more + size, "x\n", 2);
    refused_vocabulary(more, size + 2, "more");
    memcpy(more, text, size);
    more[100] = 0;
    refused_vocabulary(more, size, "is 0");
    memcpy(more, text, size);
    more[0] = '\x7F'; /* not in the alphabet */
    refused_vocabulary(more, size, "token 0");
    more[0] = (char)0xFF;
    refused_vocabulary(more, size, "token 0");
    memcpy(more, text, size);
    strstr(more, "\n!\n")[1] = '"'; /* what the next token says */
    refused_vocabulary(more, size, "stands twice");
    free(more);
    more = malloc(2 * size); /* the same with CR LF */
    size_t n = 0;
    for (size_t i = 0; i < size; i++) {
        if (text[i] == '\n')
            more[n++] = '\r';
        more[n++] = text[i];
    }
    write_file("vocabulary.txt", more, n);
    assert_int_equal(convert(SOTTO_TYPE_F16, NULL), SOTTO_OK);
    check_output(SOTTO_TYPE_F16);
    free(more);
    write_file("vocabulary.txt", text, 10);
    n = json_of(text, size, "\\u0021", more = malloc(2 * size));
    write_file("vocabulary.json", more, n);
    assert_int_equal(convert(SOTTO_TYPE_F16, NULL), SOTTO_OK);
    check_output(SOTTO_TYPE_F16);
    static const char * const bad[] = { "a\\u0000", "\", 3, \"" };
    for (int i = 0; i < 2; i++) {
        write_file("vocabulary.json", more, json_of(text, size, bad[i], more));
        refused(SOTTO_E_MODEL_VOCAB, i == 0 ? "holds a 0" : "as many strings");
    }
    free(more);
    write_file("vocabulary.txt", text, size);
    write_file("vocabulary.json", "[\"a\", \"b\"]", 10);
    refused(SOTTO_E_MODEL_VOCAB, "(2)");
    write_file("vocabulary.json", "{\"a\": 1}", 8);
    refused(SOTTO_E_MODEL_VOCAB, "no array");
    write_file("vocabulary.json", "[", 1);
    refused(SOTTO_E_MODEL_VOCAB, "vocabulary.json");
    remove_file("vocabulary.json");
    remove_file("vocabulary.txt");
    refused(SOTTO_E_MODEL_FORMAT, "vocabulary.txt");
    write_file("vocabulary.txt", text, size);
    free(text);
}

/* ---- calls ---- */

static bool stop_at_once(uint64_t done, uint64_t total, void * user_data) {
    assert_true(done <= total);
    ++*(int *)user_data;
    return false;
}

static void calls(void ** state) {
    (void)state;
    int calls_made = 0;
    struct sotto_convert_params params = sotto_convert_default_params();
    params.progress = stop_at_once;
    params.progress_user_data = &calls_made;
    assert_int_equal(sotto_convert(folder, output, &params), SOTTO_E_ABORTED);
    assert_int_equal(calls_made, 1);
    params.type = SOTTO_TYPE_Q8_K;
    assert_int_equal(sotto_convert(folder, output, &params), SOTTO_E_PARAM);
    params.size = 8;
    assert_int_equal(sotto_convert(folder, output, &params), SOTTO_E_PARAM);
    assert_int_equal(sotto_convert(NULL, output, NULL), SOTTO_E_NULLARG);
    assert_int_equal(sotto_convert(folder, NULL, NULL), SOTTO_E_NULLARG);
    assert_int_equal(sotto_convert("/nonexistent", output, NULL), SOTTO_E_IO);
    assert_int_equal(sotto_convert("/dev/null", output, NULL), SOTTO_E_MODEL_FORMAT);
    assert_int_equal(sotto_convert("/", output, NULL), SOTTO_E_MODEL_FORMAT);
    assert_int_equal(sotto_convert(folder, "/nonexistent/x.gguf", NULL), SOTTO_E_GGUF_IO_OPEN);
    assert_int_equal(sotto_convert(folder, "/dev/full", NULL), SOTTO_E_GGUF_IO_WRITE);
}

static enum sotto_status convert_to_f16(const struct sotto_allocator * allocator, void * user_data) {
    (void)user_data;
    return convert(SOTTO_TYPE_F16, allocator);
}

static void nth_allocation_fails(void ** state) {
    (void)state;
    struct counting_allocator allocator;
    counting_allocator_init(&allocator);
    assert_int_equal(convert(SOTTO_TYPE_F16, &allocator.base), SOTTO_OK);
    assert_true(allocator.peak < 20 << 20);
    assert_true(refuse_each(convert_to_f16, NULL) > 100);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_float_type),
        cmocka_unit_test(a_model_in_parts),
        cmocka_unit_test(cut_off_at_every_field),
        cmocka_unit_test(any_bytes),
        cmocka_unit_test(headers),
        cmocka_unit_test(payloads),
        cmocka_unit_test(every_weight),
        cmocka_unit_test(quantised_weights),
        cmocka_unit_test(aliased_weights),
        cmocka_unit_test(wrong_scales),
        cmocka_unit_test(sizes_that_cannot_be),
        cmocka_unit_test(key_biases_and_large_weights),
        cmocka_unit_test(configs),
        cmocka_unit_test(vocabularies),
        cmocka_unit_test(calls),
        cmocka_unit_test(nth_allocation_fails),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
