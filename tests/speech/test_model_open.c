/* SPDX-License-Identifier: MIT */
/* What sotto_model_open says about files that are no usable model (spec 11, case L09): made from the tiny model by
 * leaving out, adding or changing one thing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sotto/gguf.h"
#include "sotto/quant.h"
#include "sotto/speech.h"
#include "support/tiny_model.h"

static char path[512]; /* the changed copy */

/* What becomes of the model on the way. */
struct change {
    const char * skip;   /* tensor left out */
    const char * twist;  /* tensor with another shape */
    const char * poison; /* tensor with a NaN */
    const char * retype; /* tensor that becomes ... */
    enum sotto_type type;
    bool bad_scale; /* ... with a NaN for its first scale */
    bool extra;     /* one tensor more */
    void (*keys)(struct sotto_gguf_context * gguf);
};

static const struct change * current;

static void add_extra(struct sotto_context * ctx, struct sotto_gguf_context * out) {
    struct sotto_tensor * t = sotto_new_tensor_1d(ctx, SOTTO_TYPE_F32, 4);
    assert_non_null(t);
    sotto_set_zero(t);
    sotto_set_name(t, "enc.blk.0.surprise");
    assert_int_equal(sotto_gguf_add_tensor(out, t), SOTTO_OK);
}

/* t in another type: quantised, or of zeros where the type is for no weights. */
static struct sotto_tensor * retyped(struct sotto_context * ctx, const struct sotto_tensor * t) {
    struct sotto_tensor * v = sotto_new_tensor(ctx, current->type, 4, t->ne);
    const int64_t rows = sotto_nrows(t);
    assert_non_null(v);
    memset(v->data, 0, sotto_nbytes(v));
    if (current->type == SOTTO_TYPE_F16 || current->type == SOTTO_TYPE_BF16 || sotto_is_quantized(current->type))
        assert_int_equal(sotto_quantize_chunk(current->type, t->data, v->data, 0, rows, t->ne[0], NULL),
                         sotto_nbytes(v));
    if (current->bad_scale)
        memset(v->data, 0xFF, 2);
    return sotto_set_name(v, t->name);
}

static void copy_tensor(struct sotto_context * views, struct sotto_tensor * t, struct sotto_gguf_context * out) {
    if (current->skip && strcmp(t->name, current->skip) == 0)
        return;
    if (current->poison && strcmp(t->name, current->poison) == 0)
        ((float *)t->data)[3] = NAN;
    if (current->twist && strcmp(t->name, current->twist) == 0) {
        struct sotto_tensor * v = sotto_reshape_2d(views, t, t->ne[0] / 2, sotto_nelements(t) / (t->ne[0] / 2));
        assert_non_null(v);
        sotto_set_name(v, t->name);
        t = v;
    }
    if (current->retype && strcmp(t->name, current->retype) == 0)
        t = retyped(views, t);
    assert_int_equal(sotto_gguf_add_tensor(out, t), SOTTO_OK);
}

/* Write the changed copy. */
static void make(const struct change * change) {
    struct sotto_context * ctx = NULL;
    struct sotto_gguf_open_params params = sotto_gguf_open_params_default();
    params.ctx = &ctx;
    struct sotto_gguf_context * in = sotto_gguf_open(tiny_model(), &params);
    assert_non_null(in);
    struct sotto_context * more = sotto_init((struct sotto_init_params){ 1 << 20, NULL, false });
    struct sotto_gguf_context * out = sotto_gguf_init_empty();
    assert_non_null(more);
    assert_non_null(out);
    current = change;
    assert_int_equal(sotto_gguf_set_kv(out, in), SOTTO_OK);
    for (int64_t i = 0; i < sotto_gguf_get_n_tensors(in); i++)
        copy_tensor(more, sotto_get_tensor(ctx, sotto_gguf_get_tensor_name(in, i)), out);
    if (change->extra)
        add_extra(more, out);
    if (change->keys)
        change->keys(out);
    assert_true(sotto_gguf_write_to_file(out, path, false));
    sotto_gguf_free(out);
    sotto_gguf_free(in);
    sotto_free(more);
    sotto_free(ctx);
}

/* Opening must fail with `status` and a message that holds `word`. */
static void refuse(const char * file, enum sotto_status status, const char * word) {
    struct sotto_model_params params = sotto_model_default_params();
    struct sotto_model * model = (struct sotto_model *)1;
    params.check_weights = true;
    enum sotto_status got = sotto_model_open(file, &params, &model);
    if (got != status || !strstr(sotto_last_error_text(), word) || model)
        fail_msg("%s for %s: \"%s\", want %s and \"%s\"", sotto_status_name(got), file, sotto_last_error_text(),
                 sotto_status_name(status), word);
}

static void refuse_change(struct change change, enum sotto_status status, const char * word) {
    make(&change);
    refuse(path, status, word);
}

static void test_unchanged_opens(void ** state) {
    (void)state;
    make(&(struct change){ 0 });
    struct sotto_model_params params = sotto_model_default_params();
    struct sotto_model * model;
    params.check_weights = true;
    assert_int_equal(sotto_model_open(path, &params, &model), SOTTO_OK);
    assert_int_equal(sotto_model_n_vocab(model), 51865);
    assert_int_equal(sotto_model_n_mels(model), 80);
    assert_int_equal(sotto_model_width(model), 64);
    assert_int_equal(sotto_model_n_audio_ctx(model), 1500);
    assert_int_equal(sotto_model_n_text_ctx(model), 448);
    assert_int_equal(sotto_model_n_audio_layers(model), 1);
    assert_int_equal(sotto_model_n_text_layers(model), 1);
    assert_int_equal(sotto_model_n_languages(model), 99);
    assert_true(sotto_model_is_multilingual(model));
    assert_string_equal(sotto_model_name(model), "unknown");
    assert_true(sotto_model_memory(model) > 51865 * 64 * 2);
    assert_int_equal(sotto_token_special(model, SOTTO_TOKEN_BEG), 50364);
    assert_int_equal(sotto_token_language(model, 98), 50357);
    assert_int_equal(sotto_token_language(model, 99), -1);
    sotto_model_free(model);
}

static void test_tensors(void ** state) {
    (void)state;
    refuse_change((struct change){ .skip = "enc.blk.0.attn_k.weight" }, SOTTO_E_MODEL_TENSOR_MISSING,
                  "enc.blk.0.attn_k.weight");
    refuse_change((struct change){ .skip = "dec.output_norm.bias" }, SOTTO_E_MODEL_TENSOR_MISSING,
                  "dec.output_norm.bias");
    refuse_change((struct change){ .twist = "dec.blk.0.ffn_up.weight" }, SOTTO_E_MODEL_TENSOR_SHAPE,
                  "dec.blk.0.ffn_up.weight");
    refuse_change((struct change){ .extra = true }, SOTTO_E_MODEL_TENSOR_UNKNOWN, "enc.blk.0.surprise");
    refuse_change((struct change){ .poison = "dec.blk.0.attn_norm.weight" }, SOTTO_E_MODEL_NAN,
                  "dec.blk.0.attn_norm.weight");
}

static void accept_change(struct change change) {
    struct sotto_model_params params = sotto_model_default_params();
    struct sotto_model * model;
    make(&change);
    params.check_weights = !change.bad_scale;
    assert_int_equal(sotto_model_open(path, &params, &model), SOTTO_OK);
    sotto_model_free(model);
}

/* Any tensor may have any type of weights; norms, biases and positions become f32. */
static void test_types_of_tensors(void ** state) {
    (void)state;
    static const char * const names[] = { "dec.blk.0.attn_norm.weight", "enc.blk.0.ffn_up.bias", "dec.pos_embd.weight",
                                          "enc.blk.0.attn_q.weight", "dec.blk.0.ffn_down.weight" };
    static const enum sotto_type types[] = { SOTTO_TYPE_F16, SOTTO_TYPE_BF16, SOTTO_TYPE_Q8_0, SOTTO_TYPE_Q4_1,
                                             SOTTO_TYPE_NVFP4 };
    for (int i = 0; i < 5; i++) {
        accept_change((struct change){ .retype = names[i], .type = types[i] });
        accept_change((struct change){ .retype = names[i], .type = types[(i + 2) % 5] });
        refuse_change((struct change){ .retype = names[i], .type = SOTTO_TYPE_I32 }, SOTTO_E_MODEL_TENSOR_TYPE,
                      names[i]);
        refuse_change((struct change){ .retype = names[i], .type = SOTTO_TYPE_F64 }, SOTTO_E_MODEL_TENSOR_TYPE,
                      names[i]);
    }
    struct change bad = { .retype = "enc.blk.0.attn_q.weight", .type = SOTTO_TYPE_Q5_0, .bad_scale = true };
    refuse_change(bad, SOTTO_E_MODEL_NAN, "enc.blk.0.attn_q.weight");
    accept_change(bad); /* when nobody asks for a check */
}

/* Whole models: opened as they are, in less memory than f32, and they run. */
static void test_whole_types(void ** state) {
    (void)state;
    static const enum sotto_type types[] = { SOTTO_TYPE_Q5_0, SOTTO_TYPE_MXFP4, SOTTO_TYPE_Q6_K };
    static const float silence[16000];
    tiny_model_not_plain_c();
    for (int i = 0; i < 3; i++) {
        struct sotto_model * model;
        struct sotto_state * s;
        assert_true(tiny_model_write(path, types[i], 3));
        assert_int_equal(sotto_model_open(path, NULL, &model), SOTTO_OK);
        assert_int_equal(sotto_model_weight_type(model), types[i]);
        assert_int_equal(sotto_model_width(model), tiny_model_width(types[i]));
        assert_true(sotto_model_memory(model) < 51865 * (size_t)tiny_model_width(types[i]) * 2);
        assert_int_equal(sotto_state_new(model, NULL, &s), SOTTO_OK);
        assert_int_equal(sotto_pcm_to_mel(s, silence, 16000, 0, SOTTO_PAD_ZERO), SOTTO_OK);
        assert_int_equal(sotto_encode(s), SOTTO_OK);
        assert_int_equal(sotto_decode(s, (const int32_t[]){ 50258 }, 1, 0), SOTTO_OK);
        for (int t = 0; t < 51865; t++)
            assert_true(isfinite(sotto_get_logits(s)[t]));
        sotto_state_free(s);
        sotto_model_free(model);
    }
}

/* The table of encoder positions may be missing: it is calculated, and near what files hold. */
static void test_positions_are_optional(void ** state) {
    (void)state;
    make(&(struct change){ .skip = "enc.pos_embd.weight" });
    struct sotto_model * model;
    assert_int_equal(sotto_model_open(path, NULL, &model), SOTTO_OK);
    sotto_model_free(model);
}

static void other_arch(struct sotto_gguf_context * g) { sotto_gguf_set_val_str(g, "general.architecture", "llama"); }
static void no_arch(struct sotto_gguf_context * g) { sotto_gguf_remove_key(g, "general.architecture"); }
static void odd_heads(struct sotto_gguf_context * g) {
    sotto_gguf_set_val_u32(g, "whisper.encoder.attention.head_count", 3);
}
static void no_layers(struct sotto_gguf_context * g) { sotto_gguf_set_val_u32(g, "whisper.encoder.block_count", 0); }
static void many_layers(struct sotto_gguf_context * g) {
    sotto_gguf_set_val_u32(g, "whisper.decoder.block_count", 4000000000u);
}
static void small_vocabulary(struct sotto_gguf_context * g) { sotto_gguf_set_val_u32(g, "whisper.vocab_size", 51863); }
static void other_width(struct sotto_gguf_context * g) {
    sotto_gguf_set_val_u32(g, "whisper.decoder.embedding_length", 128);
}
static void text_for_number(struct sotto_gguf_context * g) { sotto_gguf_set_val_str(g, "whisper.mel_bands", "80"); }
static void other_rate(struct sotto_gguf_context * g) { sotto_gguf_set_val_u32(g, "whisper.audio.sample_rate", 8000); }
static void other_beginning(struct sotto_gguf_context * g) {
    sotto_gguf_set_val_u32(g, "tokenizer.whisper.timestamp_begin_token_id", 50365);
}
static void no_tokens(struct sotto_gguf_context * g) { sotto_gguf_remove_key(g, "tokenizer.ggml.tokens"); }
static void few_tokens(struct sotto_gguf_context * g) {
    const char * tokens[] = { "a", "b" };
    sotto_gguf_set_arr_str(g, "tokenizer.ggml.tokens", tokens, 2);
}

static void test_keys(void ** state) {
    (void)state;
    refuse_change((struct change){ .keys = other_arch }, SOTTO_E_MODEL_ARCH, "llama");
    refuse_change((struct change){ .keys = no_arch }, SOTTO_E_MODEL_ARCH, "whisper");
    refuse_change((struct change){ .keys = odd_heads }, SOTTO_E_MODEL_HPARAMS, "head_count");
    refuse_change((struct change){ .keys = no_layers }, SOTTO_E_MODEL_HPARAMS, "block_count");
    refuse_change((struct change){ .keys = many_layers }, SOTTO_E_MODEL_HPARAMS, "decoder.block_count");
    refuse_change((struct change){ .keys = small_vocabulary }, SOTTO_E_MODEL_HPARAMS, "51863");
    refuse_change((struct change){ .keys = other_width }, SOTTO_E_MODEL_HPARAMS, "embedding_length");
    refuse_change((struct change){ .keys = text_for_number }, SOTTO_E_MODEL_HPARAMS, "mel_bands");
    refuse_change((struct change){ .keys = other_rate }, SOTTO_E_MODEL_HPARAMS, "sample_rate");
    refuse_change((struct change){ .keys = other_beginning }, SOTTO_E_MODEL_HPARAMS, "timestamp_begin");
    refuse_change((struct change){ .keys = no_tokens }, SOTTO_E_MODEL_VOCAB, "tokenizer.ggml.tokens");
    refuse_change((struct change){ .keys = few_tokens }, SOTTO_E_MODEL_VOCAB, "2 tokens");
}

/* ---- other files ---- */

static void write_file(const void * data, size_t size) {
    FILE * file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

static void test_no_model(void ** state) {
    (void)state;
    refuse("/nonexistent/model.gguf", SOTTO_E_IO, "/nonexistent/model.gguf");
    refuse("/tmp", SOTTO_E_IO, "/tmp");
    write_file("", 0);
    refuse(path, SOTTO_E_MODEL_FORMAT, path);
    write_file("GG", 2);
    refuse(path, SOTTO_E_MODEL_FORMAT, path);
    write_file("RIFF\x24\0\0\0WAVEfmt \x10\0\0\0\1\0\1\0", 24);
    refuse(path, SOTTO_E_MODEL_FORMAT, path);
    write_file("GGUF\3\0\0\0", 8);
    refuse(path, SOTTO_E_MODEL_TRUNCATED, path);
    write_file("GGUF\1\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 24);
    refuse(path, SOTTO_E_MODEL_VERSION, path);
}

static void test_cut_off(void ** state) {
    (void)state;
    FILE * file = fopen(tiny_model(), "rb");
    assert_non_null(file);
    fseek(file, 0, SEEK_END);
    size_t size = (size_t)ftell(file);
    char * data = malloc(size);
    assert_non_null(data);
    rewind(file);
    assert_int_equal(fread(data, 1, size, file), size);
    fclose(file);
    for (size_t keep = 5; keep + 64 < size; keep = keep * 3 + 1) {
        write_file(data, keep);
        refuse(path, SOTTO_E_MODEL_TRUNCATED, path);
    }
    write_file(data, size - 64);
    refuse(path, SOTTO_E_MODEL_TRUNCATED, path);
    free(data);
}

static void test_arguments(void ** state) {
    (void)state;
    struct sotto_model * model;
    struct sotto_model_params params = { 0 };
    assert_int_equal(sotto_model_open(NULL, NULL, &model), SOTTO_E_NULLARG);
    assert_int_equal(sotto_model_open(tiny_model(), NULL, NULL), SOTTO_E_NULLARG);
    assert_int_equal(sotto_model_open(tiny_model(), &params, &model), SOTTO_E_PARAM);
    params = sotto_model_default_params();
    params.gelu = (enum sotto_gelu_form)7;
    assert_int_equal(sotto_model_open(tiny_model(), &params, &model), SOTTO_E_PARAM);
    sotto_model_free(NULL);
    assert_int_equal(sotto_model_n_vocab(NULL), 0);
    assert_null(sotto_model_name(NULL));
    assert_int_equal(sotto_token_special(NULL, SOTTO_TOKEN_EOT), -1);
}

int main(void) {
    const char * folder = getenv("SOTTO_BUILD");
    snprintf(path, sizeof(path), "%s/test-model-open.gguf", folder ? folder : "/tmp");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_unchanged_opens),
        cmocka_unit_test(test_tensors),
        cmocka_unit_test(test_types_of_tensors),
        cmocka_unit_test(test_whole_types),
        cmocka_unit_test(test_positions_are_optional),
        cmocka_unit_test(test_keys),
        cmocka_unit_test(test_no_model),
        cmocka_unit_test(test_cut_off),
        cmocka_unit_test(test_arguments),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    remove(path);
    return failed;
}
