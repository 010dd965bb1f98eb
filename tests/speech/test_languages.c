/* SPDX-License-Identifier: MIT */
/* Codes, names and aliases of languages. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "speech/languages.h"

static void codes_and_names_lead_back(void ** state) {
    (void)state;
    for (int id = 0; id < SOTTO_I_N_LANGUAGES; id++) {
        assert_int_equal(sotto_language_id(sotto_language_code(id)), id);
        assert_int_equal(sotto_language_id(sotto_language_name(id)), id);
    }
}

static void order_is_that_of_the_tokens(void ** state) {
    (void)state;
    static const struct {
        int id;
        const char * code;
        const char * name;
    } known[] = { { 0, "en", "english" },         { 1, "zh", "chinese" },    { 20, "he", "hebrew" },
                  { 29, "no", "norwegian" },      { 50, "br", "breton" },    { 75, "am", "amharic" },
                  { 80, "ht", "haitian creole" }, { 98, "su", "sundanese" }, { 99, "yue", "cantonese" } };
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        assert_string_equal(sotto_language_code(known[i].id), known[i].code);
        assert_string_equal(sotto_language_name(known[i].id), known[i].name);
    }
}

static void case_does_not_matter(void ** state) {
    (void)state;
    assert_int_equal(sotto_language_id("DE"), 2);
    assert_int_equal(sotto_language_id("gErMaN"), 2);
    assert_int_equal(sotto_language_id("Haitian Creole"), 80);
}

static void aliases_are_known(void ** state) {
    (void)state;
    static const char * const aliases[][2] = {
        { "burmese", "my" },       { "valencian", "ca" }, { "flemish", "nl" },   { "haitian", "ht" },
        { "letzeburgesch", "lb" }, { "pushto", "ps" },    { "panjabi", "pa" },   { "moldavian", "ro" },
        { "moldovan", "ro" },      { "sinhalese", "si" }, { "castilian", "es" }, { "Mandarin", "zh" },
    };
    for (size_t i = 0; i < sizeof(aliases) / sizeof(aliases[0]); i++)
        assert_string_equal(sotto_language_code(sotto_language_id(aliases[i][0])), aliases[i][1]);
}

static void strangers_are_refused(void ** state) {
    (void)state;
    static const char * const unknown[] = { "", "e", "eng", "english ", " en", "auto", "xx", "klingon" };
    for (size_t i = 0; i < sizeof(unknown) / sizeof(unknown[0]); i++)
        assert_int_equal(sotto_language_id(unknown[i]), -1);
    assert_int_equal(sotto_language_id(NULL), -1);
    assert_null(sotto_language_code(-1));
    assert_null(sotto_language_code(SOTTO_I_N_LANGUAGES));
    assert_null(sotto_language_name(-1));
    assert_null(sotto_language_name(SOTTO_I_N_LANGUAGES));
}

static void detection_is_asked_for_in_three_ways(void ** state) {
    (void)state;
    assert_true(sotto_i_language_is_auto(NULL));
    assert_true(sotto_i_language_is_auto(""));
    assert_true(sotto_i_language_is_auto("Auto"));
    assert_false(sotto_i_language_is_auto("en"));
    assert_false(sotto_i_language_is_auto("automatic"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(codes_and_names_lead_back), cmocka_unit_test(order_is_that_of_the_tokens),
        cmocka_unit_test(case_does_not_matter),      cmocka_unit_test(aliases_are_known),
        cmocka_unit_test(strangers_are_refused),     cmocka_unit_test(detection_is_asked_for_in_three_ways),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
