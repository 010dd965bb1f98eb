/* SPDX-License-Identifier: MIT */
/* GGUF as what is converted: the tiny model to .bin and back, the table of positions that it lacks, and every way in which
 * its keys, lists and tensors can be wrong. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "conversion.h"
#include "gguf_example.h"
#include "tiny_model.h"

static struct sotto_gguf_context * tiny; /* as it is, with its data in `ctx` */
static struct sotto_context * ctx;
static struct sotto_gguf_context * wrong; /* a copy to spoil */
static char input[512], output[512], back[512];

static int setup(void ** state) {
    (void)state;
    snprintf(input, sizeof(input), "%s.gguf", temp_path("from"));
    snprintf(output, sizeof(output), "%s.bin", temp_path("to"));
    snprintf(back, sizeof(back), "%s.gguf", temp_path("back"));
    if (!tiny_model_write(input, SOTTO_TYPE_F16, 7))
        return -1;
    tiny = sotto_gguf_init_from_file(input, (struct sotto_gguf_init_params){ .ctx = &ctx });
    return tiny != NULL ? 0 : -1;
}

static int teardown(void ** state) {
    (void)state;
    sotto_gguf_free(tiny);
    sotto_free(ctx);
    unlink(input);
    unlink(output);
    unlink(back);
    return 0;
}

/* ---- a copy, and what becomes of it ---- */

/* All keys, and all tensors but `without`. */
static void copy_without(const char * without) {
    wrong = sotto_gguf_init_empty();
    assert_int_equal(sotto_gguf_set_kv(wrong, tiny), SOTTO_OK);
    for (int64_t i = 0; i < sotto_gguf_get_n_tensors(tiny); i++) {
        const char * name = sotto_gguf_get_tensor_name(tiny, i);
        if (strcmp(name, without) != 0)
            assert_int_equal(sotto_gguf_add_tensor(wrong, sotto_get_tensor(ctx, name)), SOTTO_OK);
    }
}

static void copy(void) { copy_without(""); }

/* A tensor of zeros. */
static void add_zeros(const char * name, enum sotto_type type, int n_dims, const int64_t * ne) {
    struct sotto_context * own = sotto_init((struct sotto_init_params){ .mem_size = 1 << 20 });
    struct sotto_tensor * t = sotto_new_tensor(own, type, n_dims, ne);
    sotto_set_name(t, name);
    assert_int_equal(sotto_gguf_add_tensor(wrong, t), SOTTO_OK);
    static const uint8_t zeros[1 << 16];
    assert_true(sotto_nbytes(t) <= sizeof(zeros));
    assert_int_equal(sotto_gguf_set_tensor_data(wrong, name, zeros), SOTTO_OK);
    sotto_free(own);
}

static enum sotto_status convert(const char * in, const char * out, const struct sotto_allocator * allocator) {
    return conversion(in, out, sotto_convert_default_params().type, allocator);
}

/* The copy is refused so, with this word in the message. */
static void refused(enum sotto_status status, const char * word) {
    char path[512];
    snprintf(path, sizeof(path), "%s.gguf", temp_path("wrong"));
    assert_true(sotto_gguf_write_to_file(wrong, path, false));
    sotto_gguf_free(wrong);
    conversion_refused(path, output, sotto_convert_default_params().type, status, word);
    unlink(path);
}

/* ---- tests ---- */

static void to_bin_and_back(void ** state) {
    (void)state;
    assert_int_equal(convert(input, output, NULL), SOTTO_OK);
    assert_int_equal(convert(output, back, NULL), SOTTO_OK);
    struct sotto_context * data;
    struct sotto_gguf_context * g = sotto_gguf_init_from_file(back, (struct sotto_gguf_init_params){ .ctx = &data });
    assert_non_null(g);
    assert_int_equal(sotto_gguf_get_n_tensors(g), sotto_gguf_get_n_tensors(tiny) + 1);
    for (int64_t i = 0; i < sotto_gguf_get_n_tensors(tiny); i++) {
        const struct sotto_tensor * a = sotto_get_tensor(ctx, sotto_gguf_get_tensor_name(tiny, i));
        const struct sotto_tensor * b = sotto_get_tensor(data, a->name);
        assert_non_null(b);
        assert_int_equal(a->type, b->type);
        assert_memory_equal(a->ne, b->ne, sizeof(a->ne));
        assert_memory_equal(a->data, b->data, sotto_nbytes(a));
    }
    const struct sotto_tensor * positions = sotto_get_tensor(data, "enc.pos_embd.weight");
    assert_non_null(positions);
    assert_true(positions->type == SOTTO_TYPE_F32 && positions->ne[0] == 64 && positions->ne[1] == 1500);
    const float * x = positions->data;
    for (int t = 0; t < 1500; t++) {
        for (int c = 0; c < 32; c++) {
            double angle = t * pow(10000.0, -c / 31.0);
            assert_true(fabs((double)x[t * 64 + c] - sin(angle)) < 1e-6);
            assert_true(fabs((double)x[t * 64 + 32 + c] - cos(angle)) < 1e-6);
        }
    }
    sotto_gguf_free(g);
    sotto_free(data);
}

static void keys(void ** state) {
    (void)state;
    static const char * const sizes[] = { "whisper.vocab_size",
                                          "whisper.mel_bands",
                                          "whisper.encoder.context_length",
                                          "whisper.encoder.embedding_length",
                                          "whisper.encoder.block_count",
                                          "whisper.encoder.attention.head_count",
                                          "whisper.decoder.context_length",
                                          "whisper.decoder.block_count",
                                          "whisper.decoder.attention.head_count" };
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        copy();
        sotto_gguf_remove_key(wrong, sizes[i]);
        refused(SOTTO_E_MODEL_HPARAMS, sizes[i]);
        copy();
        sotto_gguf_set_val_str(wrong, sizes[i], "64");
        refused(SOTTO_E_MODEL_HPARAMS, sizes[i]);
        copy();
        sotto_gguf_set_val_i32(wrong, sizes[i], -1);
        refused(SOTTO_E_MODEL_HPARAMS, sizes[i]);
        copy();
        sotto_gguf_set_val_u32(wrong, sizes[i], 0);
        refused(SOTTO_E_MODEL_HPARAMS, " be");
    }
    copy();
    sotto_gguf_set_val_u32(wrong, "whisper.decoder.embedding_length", 128);
    refused(SOTTO_E_MODEL_HPARAMS, "must be 64");
    copy();
    sotto_gguf_set_val_u32(wrong, "whisper.encoder.feed_forward_length", 255);
    refused(SOTTO_E_MODEL_HPARAMS, "must be 256");
    copy();
    sotto_gguf_set_val_u32(wrong, "whisper.encoder.block_count", 1000);
    refused(SOTTO_E_MODEL_TENSOR_MISSING, "'enc.blk.1.attn_norm.weight'");
    copy();
    sotto_gguf_set_val_str(wrong, "general.architecture", "llama");
    refused(SOTTO_E_MODEL_ARCH, "'llama'");
    copy();
    sotto_gguf_remove_key(wrong, "general.architecture");
    refused(SOTTO_E_MODEL_ARCH, "nothing");
}

static void lists(void ** state) {
    (void)state;
    static const struct {
        const char * key;
        int32_t ids[3];
        size_t n;
    } rows[] = {
        { "whisper.alignment_heads", { 1, 0 }, 2 },    { "whisper.alignment_heads", { 0, 1 }, 2 },
        { "whisper.alignment_heads", { 0, 0, 0 }, 3 }, { "whisper.alignment_heads", { -1, 0 }, 2 },
        { "whisper.suppress_tokens", { 51865 }, 1 },   { "whisper.suppress_tokens_begin", { -1 }, 1 },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        copy();
        sotto_gguf_set_arr_data(wrong, rows[i].key, SOTTO_GGUF_TYPE_INT32, rows[i].ids, rows[i].n);
        refused(SOTTO_E_MODEL_CONFIG, rows[i].key);
    }
    copy();
    sotto_gguf_set_val_i32(wrong, "whisper.suppress_tokens", 1);
    refused(SOTTO_E_MODEL_CONFIG, "array of i32");
    static const char tokens[] = "tokenizer.ggml.tokens";
    copy();
    sotto_gguf_remove_key(wrong, tokens);
    refused(SOTTO_E_MODEL_VOCAB, tokens);
    copy();
    sotto_gguf_set_arr_str(wrong, tokens, (const char *[]){ "a", "b" }, 2);
    refused(SOTTO_E_MODEL_VOCAB, tokens);
    const char ** all = malloc(51865 * sizeof(*all));
    for (size_t i = 0; i < 51865; i++)
        all[i] = sotto_gguf_get_arr_str(tiny, sotto_gguf_find_key(tiny, tokens), i);
    static char longest[2100];
    memset(longest, 'x', sizeof(longest) - 1);
    const char * const bad[] = { longest, longest + 1000, "\x7F", "\xC3", "\xE2\x82\xAC" };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        all[300] = bad[i];
        copy();
        sotto_gguf_set_arr_str(wrong, tokens, all, 51865);
        refused(SOTTO_E_MODEL_VOCAB, "token 300");
    }
    free(all);
}

static void tensors(void ** state) {
    (void)state;
    static const char name[] = "dec.blk.0.attn_q.weight";
    copy_without(name);
    refused(SOTTO_E_MODEL_TENSOR_MISSING, name);
    copy();
    add_zeros("dec.blk.1.attn_q.weight", SOTTO_TYPE_F16, 2, (const int64_t[]){ 64, 64 });
    refused(SOTTO_E_MODEL_TENSOR_UNKNOWN, "dec.blk.1.attn_q.weight");
    static const int64_t shapes[][4] = { { 64, 65, 1, 1 }, { 64, 64, 2, 1 }, { 64, 64, 1, 2 }, { 32, 64, 1, 1 } };
    for (int i = 0; i < 4; i++) {
        copy_without(name);
        add_zeros(name, SOTTO_TYPE_F16, 4, shapes[i]);
        refused(SOTTO_E_MODEL_TENSOR_SHAPE, name);
    }
    static const enum sotto_type types[] = { SOTTO_TYPE_Q8_1, SOTTO_TYPE_I8, SOTTO_TYPE_I16, SOTTO_TYPE_I64,
                                             SOTTO_TYPE_F64 };
    for (int i = 0; i < 5; i++) {
        copy_without(name);
        add_zeros(name, types[i], 2, shapes[0]);
        refused(SOTTO_E_MODEL_TENSOR_SHAPE, name);
        copy_without(name);
        add_zeros(name, types[i], 2, (const int64_t[]){ 64, 64 });
        refused(SOTTO_E_MODEL_TENSOR_TYPE, sotto_type_name(types[i]));
    }
}

static void cut_off(void ** state) {
    (void)state;
    size_t size;
    uint8_t * bytes = read_bytes(input, &size);
    static const size_t cuts[] = { 4, 7, 23, 24, 100, 100000, 2000000 };
    for (size_t i = 0; i < sizeof(cuts) / sizeof(cuts[0]); i++) {
        write_bytes(back, bytes, cuts[i]);
        assert_int_equal(convert(back, output, NULL), SOTTO_E_MODEL_TRUNCATED);
    }
    write_bytes(back, bytes, size - 1000);
    assert_int_equal(convert(back, output, NULL), SOTTO_E_MODEL_TRUNCATED);
    bytes[4] = 9;
    write_bytes(back, bytes, size);
    assert_int_equal(convert(back, output, NULL), SOTTO_E_MODEL_VERSION);
    free(bytes);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(to_bin_and_back), cmocka_unit_test(keys),    cmocka_unit_test(lists),
        cmocka_unit_test(tensors),         cmocka_unit_test(cut_off),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
