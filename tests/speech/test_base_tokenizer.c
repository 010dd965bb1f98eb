/* SPDX-License-Identifier: MIT */
/* The tokenizer with the vocabulary of Whisper base: known ids, and the list of symbols that are not spoken. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "speech/split.h"
#include "speech/tokenizer.h"
#include "speech/unicode.h"
#include "sotto/gguf.h"

enum { MAX_IDS = 32 };

struct words {
    struct sotto_gguf_context * gguf;
    int64_t key;
};

static const char * spelling(void * user_data, int id, size_t * size) {
    struct words * words = user_data;
    const char * text = sotto_gguf_get_arr_str(words->gguf, words->key, (size_t)id);
    *size = text ? strlen(text) : 0;
    return text;
}

static int make(void ** state) {
    char path[1024];
    const char * folder = getenv("SOTTO_MODELS");
    if (folder)
        snprintf(path, sizeof(path), "%s/base.gguf", folder);
    else
        snprintf(path, sizeof(path), "%s/.cache/sotto/models/base.gguf", getenv("HOME") ? getenv("HOME") : "");
    struct words words = { .gguf = sotto_gguf_open(path, NULL) };
    assert_non_null(words.gguf);
    words.key = sotto_gguf_find_key(words.gguf, "tokenizer.ggml.tokens");
    struct sotto_i_tokenizer * tokenizer;
    assert_int_equal(sotto_i_tokenizer_new((int64_t)sotto_gguf_get_arr_n(words.gguf, words.key), SOTTO_I_ALPHABET_GPT2,
                                           spelling, &words, NULL, &tokenizer),
                     SOTTO_OK);
    sotto_gguf_free(words.gguf);
    *state = tokenizer;
    return 0;
}

static int drop(void ** state) {
    sotto_i_tokenizer_free(*state);
    return 0;
}

static void known_texts_have_known_ids(void ** state) {
    static const struct {
        const char * text;
        size_t n;
        int32_t ids[12];
    } known[] = {
        { " And so my fellow Americans, ask not", 8, { 400, 370, 452, 7177, 6280, 11, 1029, 406 } },
        { " Hello world!", 3, { 2425, 1002, 0 } },
        { "I'm 25 years old.  ok\n\nnew", 11, { 40, 478, 3552, 924, 1331, 13, 220, 3133, 198, 198, 7686 } },
        { " Привет, мир", 3, { 38932, 11, 20536 } },
        { " 日本語テスト", 5, { 220, 27311, 31348, 22985, 40498 } },
        { "naïve café — “q”", 10, { 629, 15487, 303, 25118, 3466, 1059, 250, 80, 913, 251 } },
        { " 3.14 1,000", 6, { 805, 13, 7271, 502, 11, 1360 } },
        { "don't DON'T we'll", 7, { 13966, 380, 20403, 6, 51, 321, 603 } },
        { "  two  spaces ", 5, { 220, 732, 220, 7673, 220 } },
        { " the time to talk", 4, { 264, 565, 281, 751 } },
        { "🎵 la", 2, { 38830, 635 } },
    };
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        int32_t ids[MAX_IDS];
        size_t count;
        assert_int_equal(sotto_i_tokenizer_encode(*state, known[i].text, strlen(known[i].text), ids, MAX_IDS, &count),
                         SOTTO_OK);
        assert_int_equal(count, known[i].n);
        assert_memory_equal(ids, known[i].ids, count * sizeof(*ids));
    }
}

static void non_speech_list_is_the_reference_s(void ** state) {
    static const int32_t expected[] = {
        1,     2,     7,     8,     9,     10,    14,    25,    26,    27,    28,    29,    31,    58,
        59,    60,    61,    62,    63,    90,    91,    92,    93,    359,   503,   522,   542,   873,
        893,   902,   918,   922,   931,   1350,  1853,  1982,  2460,  2627,  3246,  3253,  3268,  3536,
        3846,  3961,  4183,  4667,  6585,  6647,  7273,  9061,  9383,  10428, 10929, 11938, 12033, 12331,
        12562, 13793, 14157, 14635, 15265, 15618, 16553, 16604, 18362, 18956, 20075, 21675, 22520, 26130,
        26161, 26435, 28279, 29464, 31650, 32302, 32470, 36865, 42863, 47425, 49870, 50254,
    };
    int n;
    const int32_t * ids = sotto_i_tokenizer_non_speech(*state, &n);
    assert_int_equal(n, sizeof(expected) / sizeof(expected[0]));
    assert_memory_equal(ids, expected, sizeof(expected));
    assert_int_equal(sotto_i_tokenizer_blank(*state), 220);
}

static int is_utf8(const char * bytes, size_t size) {
    uint32_t point = 0;
    for (size_t at = 0; at < size && point != UINT32_MAX;)
        at += sotto_i_utf8_next(bytes + at, size - at, &point);
    return point != UINT32_MAX;
}

/* Every ordinary token that is text and one piece encodes to itself. */
static void tokens_encode_to_themselves(void ** state) {
    int checked = 0;
    for (int32_t id = 0; id < sotto_i_tokenizer_specials(*state)->eot; id++) {
        size_t size;
        const char * bytes = sotto_i_tokenizer_bytes(*state, id, &size);
        if (size == 0 || !is_utf8(bytes, size) || sotto_i_split_next(bytes, size) != size)
            continue;
        int32_t got = -1;
        size_t count;
        assert_int_equal(sotto_i_tokenizer_encode(*state, bytes, size, &got, 1, &count), SOTTO_OK);
        assert_int_equal(count, 1);
        assert_int_equal(got, id);
        checked++;
    }
    assert_int_equal(checked, 48775);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_texts_have_known_ids),
        cmocka_unit_test(non_speech_list_is_the_reference_s),
        cmocka_unit_test(tokens_encode_to_themselves),
    };
    return cmocka_run_group_tests(tests, make, drop);
}
