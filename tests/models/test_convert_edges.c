/* SPDX-License-Identifier: MIT */
/* Edges that only mutations of the source led to (tools/mutate): lists that an input does not have, the tensor after the
 * last, merges whose last pair changes, folders that hold half a model. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "conversion.h"
#include "gguf_example.h"
#include "models/models_impl.h"
#include "sotto/model_file.h"
#include "tiny_model.h"

static void lists_stay_away(void ** state) {
    (void)state;
    char out[512];
    const char * in = tiny_model();
    assert_non_null(in);
    snprintf(out, sizeof(out), "%s.gguf", temp_path("lists"));
    assert_int_equal(conversion(in, out, SOTTO_TYPE_F16, NULL), SOTTO_OK);
    struct sotto_gguf_context * gguf = sotto_gguf_open(out, NULL);
    assert_non_null(gguf);
    assert_int_equal(sotto_gguf_find_key(gguf, "whisper.alignment_heads"), -1);
    assert_int_equal(sotto_gguf_find_key(gguf, "whisper.suppress_tokens"), -1);
    assert_int_equal(sotto_gguf_find_key(gguf, "whisper.suppress_tokens_begin"), -1);
    sotto_gguf_free(gguf);
    unlink(out);
}

static void no_tensor_after_the_last(void ** state) {
    (void)state;
    struct sotto_model_file * file;
    assert_int_equal(sotto_model_file_open(tiny_model(), NULL, &file), SOTTO_OK);
    const size_t n = sotto_model_file_n_tensors(file);
    assert_non_null(sotto_model_file_tensor(file, n - 1));
    assert_null(sotto_model_file_tensor(file, n));
    sotto_model_file_free(file);
}

/* After "ab" is joined, "b c" is no pair any more, though "bc" is a token. */
static void merges_of_overlapping_tokens(void ** state) {
    (void)state;
    char bytes[256][4];
    const char * tokens[259];
    for (unsigned i = 0; i < 256; i++) {
        sotto_i_alphabet_encode(&(uint8_t){ (uint8_t)i }, 1, bytes[i]);
        tokens[i] = bytes[i];
    }
    tokens[256] = "ab";
    tokens[257] = "bc";
    tokens[258] = "abc";
    struct bpe_merges merges = { 0 };
    assert_int_equal(sotto_i_bpe_merges(NULL, tokens, 259, &merges), SOTTO_OK);
    assert_int_equal(merges.n, 3);
    assert_string_equal(merges.merges[0], "a b");
    assert_string_equal(merges.merges[1], "b c");
    assert_string_equal(merges.merges[2], "ab c");
    sotto_i_bpe_merges_free(NULL, &merges);
}

/* Weights without a vocabulary, and a vocabulary without weights. */
static void half_a_folder(void ** state) {
    (void)state;
    static const char * const names[] = { "model.bin", "vocabulary.txt" };
    char folder[512], file[600], out[512];
    snprintf(folder, sizeof(folder), "%s", temp_path("half"));
    snprintf(out, sizeof(out), "%s.gguf", temp_path("half-out"));
    assert_int_equal(mkdir(folder, 0700), 0);
    for (int i = 0; i < 2; i++) {
        snprintf(file, sizeof(file), "%s/%s", folder, names[i]);
        write_bytes(file, "a\n", 2);
        assert_int_equal(conversion(folder, out, SOTTO_TYPE_F16, NULL), SOTTO_E_MODEL_FORMAT);
        unlink(file);
    }
    rmdir(folder);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_stay_away),
        cmocka_unit_test(no_tensor_after_the_last),
        cmocka_unit_test(merges_of_overlapping_tokens),
        cmocka_unit_test(half_a_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
