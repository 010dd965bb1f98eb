/* SPDX-License-Identifier: MIT */
/* The tokenizer on a made vocabulary: 256 bytes, some hundred tokens that are two earlier ones joined, and filler.
 * Merging is compared with the plain rule, applied literally. */
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
#include "refuse_each.h"

#define N_VOCAB  51865
#define N_JOINED 700
#define LETTERS  "ab c'st1\n"

static char bytes_of[256 + N_JOINED][64];
static size_t size_of[256 + N_JOINED];
static uint32_t seed = 1;

static uint32_t draw(uint32_t below) {
    seed = seed * 1664525u + 1013904223u;
    return (seed >> 8) % below;
}

/* ---- the made vocabulary ---- */

/* The byte whose token has this id. */
static unsigned char byte_with_id(int id) {
    if (id < 94)
        return (unsigned char)(33 + id);
    if (id < 106)
        return (unsigned char)(161 + id - 94);
    if (id < 188)
        return (unsigned char)(174 + id - 106);
    if (id < 221)
        return (unsigned char)(id - 188);
    return id < 255 ? (unsigned char)(127 + id - 221) : 173;
}

static int a_letter(void) {
    unsigned char letter = (unsigned char)LETTERS[draw(sizeof(LETTERS) - 1)];
    for (int id = 0;; id++) {
        if (byte_with_id(id) == letter)
            return id;
    }
}

static void make_vocabulary(void) {
    for (int id = 0; id < 256; id++) {
        bytes_of[id][0] = (char)byte_with_id(id);
        size_of[id] = 1;
    }
    for (int id = 256; id < 256 + N_JOINED; id++) {
        int left = draw(2) && id > 256 ? 256 + (int)draw((uint32_t)id - 256) : a_letter();
        int right = draw(3) == 0 && id > 256 ? 256 + (int)draw((uint32_t)id - 256) : a_letter();
        if (size_of[left] + size_of[right] > 10)
            left = right = a_letter();
        memcpy(bytes_of[id], bytes_of[left], size_of[left]);
        memcpy(bytes_of[id] + size_of[left], bytes_of[right], size_of[right]);
        size_of[id] = size_of[left] + size_of[right];
    }
}

struct source {
    enum sotto_i_alphabet alphabet;
    int broken;        /* this id ... */
    const char * text; /* ... is spelled like this */
    size_t text_size;
    char room[256];
};

/* Bytes in the alphabet of text files. */
static size_t spell(const char * bytes, size_t size, char * out) {
    size_t n = 0;
    for (size_t i = 0; i < size; i++) {
        unsigned byte = (unsigned char)bytes[i];
        unsigned point = byte;
        if (byte <= 32)
            point = 256 + byte;
        else if (byte >= 127 && byte <= 160)
            point = 289 + byte - 127;
        else if (byte == 173)
            point = 323;
        if (point < 128) {
            out[n++] = (char)point;
        } else {
            out[n++] = (char)(0xC0 | point >> 6);
            out[n++] = (char)(0x80 | (point & 63));
        }
    }
    return n;
}

static const char * spelling(void * user_data, int id, size_t * size) {
    struct source * source = user_data;
    if (id == source->broken) {
        *size = source->text_size;
        return source->text;
    }
    char plain[64];
    size_t n = 0;
    if (id < 256 + N_JOINED) {
        n = size_of[id];
        memcpy(plain, bytes_of[id], n);
    } else if (id != 50256) {
        n = (size_t)snprintf(plain, sizeof(plain), "~~%d~~", id);
    }
    if (source->alphabet == SOTTO_I_ALPHABET_GPT2) {
        *size = spell(plain, n, source->room);
    } else {
        memcpy(source->room, plain, n);
        *size = n;
    }
    return source->room;
}

static struct sotto_i_tokenizer * tokenizer_in(enum sotto_i_alphabet alphabet) {
    struct source source = { .alphabet = alphabet, .broken = -1 };
    struct sotto_i_tokenizer * tokenizer;
    assert_int_equal(sotto_i_tokenizer_new(N_VOCAB, alphabet, spelling, &source, NULL, &tokenizer), SOTTO_OK);
    return tokenizer;
}

static int make(void ** state) {
    make_vocabulary();
    *state = tokenizer_in(SOTTO_I_ALPHABET_GPT2);
    return 0;
}

static int drop(void ** state) {
    sotto_i_tokenizer_free(*state);
    return 0;
}

/* ---- special ids ---- */

static void specials_follow_from_the_size(void ** state) {
    (void)state;
    static const int32_t expected[3][12] = {
        { 51864, 99, 0, 50256, 50257, 50258, 50357, 50358, 50359, 50360, 50361, 50362 },
        { 51865, 99, 1, 50257, 50258, 50259, 50358, 50359, 50360, 50361, 50362, 50363 },
        { 51866, 100, 1, 50257, 50258, 50259, 50359, 50360, 50361, 50362, 50363, 50364 },
    };
    for (int i = 0; i < 3; i++) {
        struct sotto_i_specials s;
        assert_int_equal(sotto_i_specials_init(expected[i][0], &s), SOTTO_OK);
        const int32_t got[12] = { s.n_vocab,   s.n_languages, s.multilingual, s.eot,  s.sot,  s.language0,
                                  s.translate, s.transcribe,  s.solm,         s.prev, s.nosp, s.no_timestamps };
        assert_memory_equal(got, expected[i], sizeof(got));
        assert_int_equal(s.beg, s.no_timestamps + 1);
        assert_int_equal(s.beg + 1500, s.n_vocab - 1);
    }
}

static void impossible_sizes_are_refused(void ** state) {
    (void)state;
    static const int64_t sizes[] = { -1, 0, 51863, (int64_t)1 << 31, INT64_MAX };
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        struct sotto_i_specials s;
        struct sotto_i_tokenizer * tokenizer;
        struct source source = { .broken = -1 };
        assert_int_equal(sotto_i_specials_init(sizes[i], &s), SOTTO_E_MODEL_HPARAMS);
        assert_int_equal(sotto_i_tokenizer_new(sizes[i], SOTTO_I_ALPHABET_BYTES, spelling, &source, NULL, &tokenizer),
                         SOTTO_E_MODEL_HPARAMS);
        assert_null(tokenizer);
    }
}

static void specials_are_spelled_by_rule(void ** state) {
    static const struct {
        int32_t id;
        const char * text;
    } known[] = {
        { 50257, "<|endoftext|>" }, { 50258, "<|startoftranscript|>" },
        { 50259, "<|en|>" },        { 50357, "<|su|>" },
        { 50358, "<|translate|>" }, { 50359, "<|transcribe|>" },
        { 50360, "<|startoflm|>" }, { 50361, "<|startofprev|>" },
        { 50362, "<|nospeech|>" },  { 50363, "<|notimestamps|>" },
        { 50364, "<|0.00|>" },      { 50418, "<|1.08|>" },
        { 51864, "<|30.00|>" },
    };
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        size_t size;
        assert_string_equal(sotto_i_tokenizer_bytes(*state, known[i].id, &size), known[i].text);
        assert_int_equal(size, strlen(known[i].text));
    }
    size_t size;
    assert_null(sotto_i_tokenizer_bytes(*state, -1, &size));
    assert_null(sotto_i_tokenizer_bytes(*state, N_VOCAB, &size));
    assert_int_equal(size, 0);
}

/* ---- ordinary tokens ---- */

static void both_alphabets_give_the_same_bytes(void ** state) {
    struct sotto_i_tokenizer * raw = tokenizer_in(SOTTO_I_ALPHABET_BYTES);
    for (int32_t id = 0; id < 256 + N_JOINED; id++) {
        size_t a;
        size_t b;
        const char * x = sotto_i_tokenizer_bytes(*state, id, &a);
        const char * y = sotto_i_tokenizer_bytes(raw, id, &b);
        assert_int_equal(a, size_of[id]);
        assert_int_equal(b, size_of[id]);
        assert_memory_equal(x, bytes_of[id], a);
        assert_memory_equal(y, bytes_of[id], b);
        assert_int_equal(x[a], 0);
    }
    sotto_i_tokenizer_free(raw);
}

static void bad_vocabularies_are_refused(void ** state) {
    (void)state;
    static char long_text[1025];
    memset(long_text, 'x', sizeof(long_text));
    const struct source sources[] = {
        { .alphabet = SOTTO_I_ALPHABET_GPT2, .broken = 300 },                                     /* missing */
        { .alphabet = SOTTO_I_ALPHABET_GPT2, .broken = 300, .text = "a b", .text_size = 3 },      /* spells no byte */
        { .alphabet = SOTTO_I_ALPHABET_GPT2, .broken = 300, .text = "\xC3", .text_size = 1 },     /* cut UTF-8 */
        { .alphabet = SOTTO_I_ALPHABET_GPT2, .broken = 300, .text = "\xC5\x84", .text_size = 2 }, /* U+0144 */
        { .alphabet = SOTTO_I_ALPHABET_BYTES, .broken = 300, .text = long_text, .text_size = 1025 },
        { .alphabet = SOTTO_I_ALPHABET_BYTES, .broken = 188, .text = "??", .text_size = 2 }, /* no byte 0 */
    };
    for (size_t i = 0; i < sizeof(sources) / sizeof(sources[0]); i++) {
        struct source source = sources[i];
        struct sotto_i_tokenizer * tokenizer;
        assert_int_equal(sotto_i_tokenizer_new(N_VOCAB, source.alphabet, spelling, &source, NULL, &tokenizer),
                         SOTTO_E_MODEL_VOCAB);
        assert_null(tokenizer);
    }
}

/* ---- word split ---- */

static void text_is_split_into_words(void ** state) {
    (void)state;
    static const char * const split[] = {
        "Hello| world|!",
        " Hello|  | world",
        "I|'m| 25| years| old|.|  | ok|\n|\n|new",
        "don|'t| DON|'|T| we|'ll| they|'ve| he|'d| she|'re|'s",
        "a|''|s|'s|a|'|x",
        "3|.|14| 1|,|000|abc|123|def",
        " Привет|,| мир",
        "naïve| café| —| “|q|”",
        "日本語テスト|、|です",
        "x| \t\n|\t|y|   ",
        "\xC2\xA0\xE3\x80\x80| a",
        "e|\xCC\x81|e",                           /* a mark is neither letter nor number */
        "\xE0\xA5\xA7\xE0\xA5\xA8| \xE2\x85\xA7", /* digits of another script, a Roman numeral */
        "a|\xFF\xFE|b| \xC0\x80|c",               /* no UTF-8 */
        "\x1C| \x01|a",
    };
    for (size_t i = 0; i < sizeof(split) / sizeof(split[0]); i++) {
        char text[128];
        size_t n = 0;
        for (const char * p = split[i]; *p; p++) {
            if (*p != '|')
                text[n++] = *p;
        }
        size_t at = 0;
        for (const char * p = split[i]; *p;) {
            size_t expected = strcspn(p, "|");
            assert_int_equal(sotto_i_split_next(text + at, n - at), expected);
            at += expected;
            p += expected + (p[expected] == '|');
        }
    }
}

static void classes_of_characters(void ** state) {
    (void)state;
    assert_int_equal(sotto_i_char_class('a'), SOTTO_I_CHAR_LETTER);
    assert_int_equal(sotto_i_char_class('0'), SOTTO_I_CHAR_NUMBER);
    assert_int_equal(sotto_i_char_class(0x2028), SOTTO_I_CHAR_SPACE);
    assert_int_equal(sotto_i_char_class(0x200B), SOTTO_I_CHAR_OTHER);
    assert_int_equal(sotto_i_char_class(0x1F), SOTTO_I_CHAR_OTHER);
    assert_int_equal(sotto_i_char_class(0x20000), SOTTO_I_CHAR_LETTER);
    assert_int_equal(sotto_i_char_class(0x10FFFF), SOTTO_I_CHAR_OTHER);
    assert_int_equal(sotto_i_char_class(UINT32_MAX), SOTTO_I_CHAR_OTHER);
}

static void ill_formed_utf8_counts_byte_by_byte(void ** state) {
    (void)state;
    static const struct {
        const char * text;
        size_t length;
        uint32_t point;
    } cases[] = {
        { "A", 1, 'A' },
        { "\xC2\x80", 2, 0x80 },
        { "\xE0\xA0\x80", 3, 0x800 },
        { "\xF4\x8F\xBF\xBF", 4, 0x10FFFF },
        { "\x80", 1, UINT32_MAX },
        { "\xC1\x81", 1, UINT32_MAX },         /* overlong */
        { "\xE0\x80\x80", 1, UINT32_MAX },     /* overlong */
        { "\xF0\x80\x80\x80", 1, UINT32_MAX }, /* overlong */
        { "\xED\xA0\x80", 1, UINT32_MAX },     /* surrogate */
        { "\xF4\x90\x80\x80", 1, UINT32_MAX }, /* past the end */
        { "\xF5\x80\x80\x80", 1, UINT32_MAX },
        { "\xE2\x82", 1, UINT32_MAX }, /* cut */
        { "\xE2\x28\xA1", 1, UINT32_MAX },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        uint32_t point;
        size_t length = sotto_i_utf8_next(cases[i].text, strlen(cases[i].text), &point);
        assert_int_equal(length, cases[i].length);
        assert_int_equal(point, cases[i].point);
    }
}

/* ---- merging ---- */

static int32_t lowest_id(const char * bytes, size_t size) {
    for (int32_t id = 0; id < 256 + N_JOINED; id++) {
        if (size_of[id] == size && memcmp(bytes_of[id], bytes, size) == 0)
            return id;
    }
    return -1;
}

/* The rule as it is written: look at all neighbours, join the best, again. */
static size_t merge_plainly(const char * piece, size_t n, int32_t * ids) {
    size_t ends[256];
    size_t parts = n;
    for (size_t i = 0; i < n; i++)
        ends[i] = i + 1;
    for (;;) {
        int32_t best = INT32_MAX;
        size_t where = 0;
        for (size_t i = 0; i + 1 < parts; i++) {
            size_t begin = i ? ends[i - 1] : 0;
            int32_t id = lowest_id(piece + begin, ends[i + 1] - begin);
            if (id >= 0 && id < best) {
                best = id;
                where = i;
            }
        }
        if (best == INT32_MAX)
            break;
        memmove(ends + where, ends + where + 1, (parts - where - 1) * sizeof(*ends));
        parts--;
    }
    for (size_t i = 0; i < parts; i++) {
        size_t begin = i ? ends[i - 1] : 0;
        ids[i] = lowest_id(piece + begin, ends[i] - begin);
    }
    return parts;
}

static void merging_follows_the_rule(void ** state) {
    for (int round = 0; round < 300; round++) {
        char text[200];
        size_t n = 1 + draw(sizeof(text) - 1);
        for (size_t i = 0; i < n; i++)
            text[i] = draw(40) == 0 ? (char)draw(256) : LETTERS[draw(sizeof(LETTERS) - 1)];
        int32_t expected[sizeof(text)];
        size_t n_expected = 0;
        for (size_t at = 0; at < n;) {
            size_t length = sotto_i_split_next(text + at, n - at);
            n_expected += merge_plainly(text + at, length, expected + n_expected);
            at += length;
        }
        int32_t ids[sizeof(text)];
        size_t count;
        assert_int_equal(sotto_i_tokenizer_encode(*state, text, n, ids, sizeof(text), &count), SOTTO_OK);
        assert_int_equal(count, n_expected);
        assert_memory_equal(ids, expected, count * sizeof(*ids));
    }
}

static void check_decodes(const struct sotto_i_tokenizer * tokenizer, const char * text, size_t n) {
    int32_t * ids = malloc(n * sizeof(*ids));
    size_t count;
    assert_non_null(ids);
    assert_int_equal(sotto_i_tokenizer_encode(tokenizer, text, n, ids, n, &count), SOTTO_OK);
    assert_true(count <= n);
    size_t at = 0;
    for (size_t i = 0; i < count; i++) {
        size_t size;
        const char * bytes = sotto_i_tokenizer_bytes(tokenizer, ids[i], &size);
        assert_true(ids[i] < 50257 && at + size <= n);
        assert_memory_equal(text + at, bytes, size);
        at += size;
    }
    assert_int_equal(at, n);
    free(ids);
}

/* Work that grew with the square of a piece would not end within the time a test has. */
static void long_text_is_encoded_and_decoded(void ** state) {
    enum { N = 400000 };
    char * text = malloc(N);
    assert_non_null(text);
    for (int kind = 0; kind < 4; kind++) {
        for (size_t i = 0; i < N; i++) {
            const char of_kind[4] = { 'a', (char)('a' + draw(3)), (char)draw(256), ' ' };
            text[i] = of_kind[kind];
        }
        check_decodes(*state, text, N);
    }
    free(text);
}

static void specials_in_text_are_ordinary(void ** state) {
    const char * text = "<|en|><|endoftext|><|0.00|>";
    check_decodes(*state, text, strlen(text));
}

static void a_short_array_gets_the_first_ids(void ** state) {
    const char * text = "ab cab 's t1ab\ncc";
    int32_t all[32];
    int32_t few[4] = { -7, -7, -7, -7 };
    size_t count;
    size_t again;
    assert_int_equal(sotto_i_tokenizer_encode(*state, text, strlen(text), all, 32, &count), SOTTO_OK);
    assert_true(count > 3);
    assert_int_equal(sotto_i_tokenizer_encode(*state, text, strlen(text), few, 3, &again), SOTTO_OK);
    assert_int_equal(again, count);
    assert_memory_equal(few, all, 3 * sizeof(*few));
    assert_int_equal(few[3], -7);
    assert_int_equal(sotto_i_tokenizer_encode(*state, text, strlen(text), NULL, 0, &again), SOTTO_OK);
    assert_int_equal(again, count);
    assert_int_equal(sotto_i_tokenizer_encode(*state, NULL, 0, NULL, 0, &again), SOTTO_OK);
    assert_int_equal(again, 0);
}

/* With no token beyond bytes but the filler, only the symbols of one byte are one token. */
static void non_speech_symbols_are_found(void ** state) {
    int n;
    const int32_t * ids = sotto_i_tokenizer_non_speech(*state, &n);
    const char * one_byte = "\"#()*+/:;<=>@[\\]^_`{|}~";
    for (const char * p = one_byte; *p; p++) {
        int found = 0;
        for (int i = 0; i < n; i++)
            found += ids[i] == lowest_id(p, 1);
        assert_int_equal(found, 1);
    }
    for (int i = 1; i < n; i++)
        assert_true(ids[i - 1] < ids[i]);
    assert_int_equal(sotto_i_tokenizer_blank(*state), 220);
}

static enum sotto_status make_and_use(const struct sotto_allocator * allocator, void * user_data) {
    (void)user_data;
    struct source source = { .alphabet = SOTTO_I_ALPHABET_GPT2, .broken = -1 };
    struct sotto_i_tokenizer * tokenizer;
    int32_t ids[16];
    size_t count;
    enum sotto_status status =
        sotto_i_tokenizer_new(N_VOCAB, SOTTO_I_ALPHABET_GPT2, spelling, &source, allocator, &tokenizer);
    if (status == SOTTO_OK)
        status = sotto_i_tokenizer_encode(tokenizer, "abc", 3, ids, 16, &count);
    sotto_i_tokenizer_free(tokenizer);
    return status;
}

static void every_allocation_may_fail(void ** state) {
    (void)state;
    assert_true(refuse_many(make_and_use, NULL) > 5);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(specials_follow_from_the_size), cmocka_unit_test(impossible_sizes_are_refused),
        cmocka_unit_test(specials_are_spelled_by_rule),  cmocka_unit_test(both_alphabets_give_the_same_bytes),
        cmocka_unit_test(bad_vocabularies_are_refused),  cmocka_unit_test(text_is_split_into_words),
        cmocka_unit_test(classes_of_characters),         cmocka_unit_test(ill_formed_utf8_counts_byte_by_byte),
        cmocka_unit_test(merging_follows_the_rule),      cmocka_unit_test(long_text_is_encoded_and_decoded),
        cmocka_unit_test(specials_in_text_are_ordinary), cmocka_unit_test(a_short_array_gets_the_first_ids),
        cmocka_unit_test(non_speech_symbols_are_found),  cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, make, drop);
}
