/* SPDX-License-Identifier: MIT */
/* Normalised texts, counts and intervals by known answers; every allocation that fails; arguments that make no sense.
 * tests/eval/test_eval_peer.py compares with the reference at large. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "sotto/eval.h"

#include "support/refuse_each.h"

static void check(const char * language, bool strip, const char * text, const char * wanted) {
    struct sotto_eval_params params = sotto_eval_default_params();
    params.language = language;
    params.strip_accents = strip;
    char * got;
    size_t size;
    assert_int_equal(sotto_eval_normalise(text, strlen(text), &params, &got, &size), SOTTO_OK);
    assert_string_equal(got, wanted);
    assert_int_equal(size, strlen(wanted));
    sotto_mfree(NULL, got, size + 1, 1);
}

static void english(void ** state) {
    (void)state;
    check("en", false, "two point five million", "2500000");
    check("en", false, "nineteen ninety nine", "1999");
    check("English", false, "three thousand twenty nine", "3029");
    check("en", false, "one triple oh one", "10001");
    check("en", false, "july third twenty twenty", "july 3rd 2020");
    check("en", false, "$0.36", "¢36");
    check("en", false, "Mr. Park visited Assoc. Prof. Kim Jr.", "mister park visited associate professor kim junior");
    check("en", false, "b747", "b 747");
    check("en", false, "two dollars and seventy cents", "$2.70");
    check("en", false, "thirty first of the nineteen fifties, two and a half percent", "31st of the 1950s 2.5%");
    check("en", false, "Hmm, he'd been [noise] at the caf\xC3\xA9 (I think), won't 10km",
          "he had been at the cafe will not 10 km");
    check("en", false, "mobilisation", "mobilisation"); /* no table of spellings */
    check("en", false, "", "");
}

static void others(void ** state) {
    (void)state;
    check("fr", false, "L'\xC3\x89t\xC3\xA9 \xE2\x80\x94 [bruit] d\xC3\xA9j\xC3\xA0!",
          "l \xC3\xA9t\xC3\xA9 d\xC3\xA9j\xC3\xA0 ");
    check("fr", false, "e\xCC\x81t\xC3\xA9", "\xC3\xA9t\xC3\xA9");
    check("es", true, "\xC2\xBFQu\xC3\xA9 a\xC3\xB1o?", " que ano ");
    check("ja", false, "\xE6\x97\xA5\xE6\x9C\xAC", "\xE6\x97\xA5 \xE6\x9C\xAC");
    check(NULL, false, "bad \xFF byte", "bad byte");
}

static void count_case(const char * a, const char * b, enum sotto_eval_unit unit, const int64_t wanted[4]) {
    struct sotto_eval_counts got;
    assert_int_equal(sotto_eval_count(a, strlen(a), b, strlen(b), unit, NULL, &got), SOTTO_OK);
    assert_int_equal(got.hits, wanted[0]);
    assert_int_equal(got.substitutions, wanted[1]);
    assert_int_equal(got.deletions, wanted[2]);
    assert_int_equal(got.insertions, wanted[3]);
}

static void counts(void ** state) {
    (void)state;
    count_case("a b c d", "a x c d", SOTTO_EVAL_WORDS, (int64_t[]){ 3, 1, 0, 0 });
    count_case("a b c", "b c d", SOTTO_EVAL_WORDS, (int64_t[]){ 2, 0, 1, 1 });
    count_case("", " a  b ", SOTTO_EVAL_WORDS, (int64_t[]){ 0, 0, 0, 2 });
    count_case("a b", "", SOTTO_EVAL_WORDS, (int64_t[]){ 0, 0, 2, 0 });
    count_case(" \xC3\xA9t\xC3\xA9 ", "ete", SOTTO_EVAL_CHARACTERS, (int64_t[]){ 1, 2, 0, 0 });
    count_case("kitten", "sitting", SOTTO_EVAL_CHARACTERS, (int64_t[]){ 4, 2, 0, 1 });
}

static void score(void ** state) {
    (void)state;
    struct sotto_eval_params params = sotto_eval_default_params();
    params.language = "en";
    struct sotto_eval_score got;
    assert_int_equal(sotto_eval_score("It's ten.", 9, "it is 10 am", 11, &params, &got), SOTTO_OK);
    assert_int_equal(got.words.hits, 3);
    assert_int_equal(got.words.insertions, 1);
    assert_int_equal(got.characters.hits, 8);
    assert_int_equal(got.characters.insertions, 3);
    params.language = "zh";
    assert_int_equal(sotto_eval_score("\xE6\x97\xA5\xE6\x9C\xAC", 6, "\xE6\x97\xA5", 3, &params, &got), SOTTO_OK);
    assert_int_equal(got.words.hits, 1);
    assert_int_equal(got.words.deletions, 1);
    assert_int_equal(got.characters.deletions, 1);
}

static void intervals(void ** state) {
    (void)state;
    struct sotto_eval_pair pairs[40];
    for (int i = 0; i < 40; i++)
        pairs[i] = (struct sotto_eval_pair){ 10 + i % 3, { 3 + i % 2, 2 } };
    struct sotto_eval_interval a, b;
    assert_int_equal(sotto_eval_bootstrap(pairs, 40, 2000, 0.95, 7, NULL, &a), SOTTO_OK);
    assert_int_equal(sotto_eval_bootstrap(pairs, 40, 2000, 0.95, 7, NULL, &b), SOTTO_OK);
    assert_memory_equal(&a, &b, sizeof(a));
    assert_true(a.low > 0.10 && a.low < a.difference && a.difference < a.high && a.high < 0.17);
    assert_true(a.difference > 60.0 / 439 - 1e-12 && a.difference < 60.0 / 439 + 1e-12);
    for (int i = 0; i < 40; i++)
        pairs[i].errors[0] = pairs[i].errors[1] = i;
    assert_int_equal(sotto_eval_bootstrap(pairs, 40, 100, 0.95, 7, NULL, &a), SOTTO_OK);
    assert_true(a.low == 0 && a.high == 0);
}

static void bad_arguments(void ** state) {
    (void)state;
    char * text;
    size_t size;
    struct sotto_eval_params params = { 0 };
    struct sotto_eval_counts counted;
    struct sotto_eval_interval interval;
    struct sotto_eval_pair pair = { 0, { 0, 0 } };
    assert_int_equal(sotto_eval_normalise("a", 1, &params, &text, &size), SOTTO_E_PARAM);
    assert_int_equal(sotto_eval_normalise(NULL, 1, NULL, &text, &size), SOTTO_E_NULLARG);
    assert_int_equal(sotto_eval_score("a", 1, "a", 1, NULL, NULL), SOTTO_E_NULLARG);
    assert_int_equal(sotto_eval_count("a", 1, "a", 1, (enum sotto_eval_unit)2, NULL, &counted), SOTTO_E_PARAM);
    assert_int_equal(sotto_eval_count(NULL, 1, "a", 1, SOTTO_EVAL_WORDS, NULL, &counted), SOTTO_E_NULLARG);
    assert_int_equal(sotto_eval_bootstrap(&pair, 1, 10, 0.95, 0, NULL, &interval), SOTTO_E_PARAM);
    pair.units = 1;
    assert_int_equal(sotto_eval_bootstrap(&pair, 1, 10, 1.0, 0, NULL, &interval), SOTTO_E_PARAM);
    assert_int_equal(sotto_eval_bootstrap(&pair, 0, 10, 0.95, 0, NULL, &interval), SOTTO_E_PARAM);
    pair.errors[1] = -1;
    assert_int_equal(sotto_eval_bootstrap(&pair, 1, 10, 0.95, 0, NULL, &interval), SOTTO_E_PARAM);
}

/* ---- memory ---- */

static enum sotto_status everything(const struct sotto_allocator * allocator, void * user_data) {
    (void)user_data;
    static const char english_text[] =
        "Mr. Two million three hundred thousand forty-five and a half per cent, $2 and 7 cents "
        "of 2.5 billion; the nineteen nineties and double oh seven";
    static const char other_text[] = "\xE6\x97\xA5 caf\xC3\xA9 \xED\x95\x9C";
    struct sotto_eval_params params = sotto_eval_default_params();
    struct sotto_eval_score got;
    params.allocator = allocator;
    params.language = "en";
    enum sotto_status status = sotto_eval_score(english_text, sizeof(english_text) - 1, "x", 1, &params, &got);
    params.language = "ja";
    if (status == SOTTO_OK)
        status = sotto_eval_score(other_text, sizeof(other_text) - 1, "x", 1, &params, &got);
    struct sotto_eval_pair pair = { 1, { 1, 0 } };
    struct sotto_eval_interval interval;
    if (status == SOTTO_OK)
        status = sotto_eval_bootstrap(&pair, 1, 10, 0.9, 0, allocator, &interval);
    return status;
}

static void every_allocation_may_fail(void ** state) {
    (void)state;
    assert_true(refuse_each(everything, NULL) > 10);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(english),
        cmocka_unit_test(others),
        cmocka_unit_test(counts),
        cmocka_unit_test(score),
        cmocka_unit_test(intervals),
        cmocka_unit_test(bad_arguments),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests_name("normalise", tests, NULL, NULL);
}
