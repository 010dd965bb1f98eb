/* SPDX-License-Identifier: MIT */
/* Tokens in json-full: those that share a character are one, in a segment and over two of them (case O02). The source is
 * included, since the command line is no library; a made transcript stands for the recogniser's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>
#include <jansson.h>

#include "cli/text_out.c"

#define sotto_n_segments        made_n_segments
#define sotto_get_segment       made_segment
#define sotto_get_segment_token made_token
#define sotto_token_text        made_text
#define sotto_token_special     made_special
#define sotto_state_model       made_model
#include "cli/writers.c"
#include "cli/writers_json.c"

enum { EOT = 100 };

static struct sotto_segment segment;
static struct sotto_token_data tokens[16];
static const char * texts[16];

int made_n_segments(const struct sotto_state * state) {
    (void)state;
    return 1;
}
const struct sotto_segment * made_segment(const struct sotto_state * state, int i) {
    (void)state;
    (void)i;
    return &segment;
}
const struct sotto_token_data * made_token(const struct sotto_state * state, int s, int i) {
    (void)state;
    (void)s;
    return &tokens[i];
}
const char * made_text(const struct sotto_model * model, int32_t token, size_t * size) {
    (void)model;
    const char * text = token < EOT ? texts[token] : "<|1.00|>";
    *size = strlen(text);
    return text;
}
int32_t made_special(const struct sotto_model * model, enum sotto_special_token which) {
    (void)model;
    (void)which;
    return EOT;
}
const struct sotto_model * made_model(const struct sotto_state * state) {
    (void)state;
    return NULL;
}

/* A segment whose text is `text`, with the tokens up to NULL; "T" is a timestamp. What the JSON makes of its tokens, in
 * braces. */
static void gives(const char * text, const char * const * given, const char * expected) {
    char * out;
    size_t size;
    int n = 0;
    for (; given[n] != NULL; n++) {
        texts[n] = given[n];
        tokens[n] = (struct sotto_token_data){ .id = strcmp(given[n], "T") == 0 ? EOT + 50 : n, .p = 0.5f };
    }
    segment = (struct sotto_segment){ .t1 = 100, .text = text, .text_size = strlen(text), .n_tokens = n };
    FILE * to = open_memstream(&out, &size);
    assert_non_null(to);
    const struct transcript transcript = { .name = "x" };
    put_segment(to, &transcript, 0, true);
    fclose(to);
    json_t * json = json_loadb(out, size, JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(json);
    char all[512] = "";
    size_t i;
    json_t * token;
    json_array_foreach(json_object_get(json, "tokens"), i, token) {
        strcat(all, "{");
        strcat(all, json_string_value(json_object_get(token, "text")));
        strcat(all, "}");
    }
    assert_string_equal(all, expected);
    json_decref(json);
    free(out);
}

#define GIVES(text, expected, ...) gives(text, (const char * const[]){ __VA_ARGS__, NULL }, expected)

static void in_one_segment(void ** state) {
    (void)state;
    GIVES(" a b", "{<|1.00|>}{ a}{ b}{<|1.00|>}", "T", " a", " b", "T");
    GIVES("\xE4\xBD\xA0", "{\xE4\xBD\xA0}", "\xE4", "\xBD\xA0");
    GIVES(" \xC3\xA9t\xC3\xA9", "{ \xC3\xA9t\xC3\xA9}{<|1.00|>}", " \xC3", "\xA9t\xC3", "\xA9", "T");
    GIVES("\xF0\x9F\x98\x80", "{\xF0\x9F\x98\x80}", "\xF0", "\x9F", "\x98", "\x80");
}

static void over_two_segments(void ** state) {
    (void)state;
    GIVES(" a\xE4\xBD\xA0", "{<|1.00|>}{ a\xE4\xBD\xA0}{<|1.00|>}", "T", " a\xE4", "T"); /* the first ... */
    GIVES("b c", "{<|1.00|>}{b}{ c}{<|1.00|>}", "T", "\xBD\xA0", "b", " c", "T");        /* ... and the second */
    GIVES("b c", "{<|1.00|>}{b}{ c}", "T", "\xBD",
          "\xA0"
          "b",
          " c");
    GIVES("\xC3\xA9", "{\xC3\xA9}", "\xA0\xC3");
    GIVES("", "{<|1.00|>}{<|1.00|>}", "T", "\xBD\xA0", "T");
}

static void never_completed(void ** state) {
    (void)state;
    GIVES("a\xE4", "{a}{\xEF\xBF\xBD}", "a", "\xE4");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(in_one_segment),
        cmocka_unit_test(over_two_segments),
        cmocka_unit_test(never_completed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
