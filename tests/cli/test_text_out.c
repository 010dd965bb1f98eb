/* SPDX-License-Identifier: MIT */
/* The command line's writers: JSON strings that a strict reader takes back, valid UTF-8 always, times (cases O02, O04,
 * O05). The source is included, since the command line is no library. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>
#include <jansson.h>

#include "cli/text_out.c"

struct written {
    char * text;
    size_t size;
    FILE * file;
};

static struct written * begin(struct written * w) {
    w->file = open_memstream(&w->text, &w->size);
    assert_non_null(w->file);
    return w;
}

/* What a JSON reader makes of the string that is written for these bytes. */
static void reads_as(const char * bytes, size_t size, const char * expected, size_t expected_size) {
    struct written w;
    put_json_string(begin(&w)->file, bytes, size);
    fclose(w.file);
    for (size_t i = 0; i < w.size; i++)
        assert_true((unsigned char)w.text[i] >= 0x20);
    json_t * value = json_loadb(w.text, w.size, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
    assert_non_null(value);
    assert_int_equal(json_string_length(value), expected_size);
    assert_memory_equal(json_string_value(value), expected, expected_size);
    json_decref(value);
    struct written plain;
    put_utf8(begin(&plain)->file, bytes, size);
    fclose(plain.file);
    assert_int_equal(plain.size, expected_size);
    assert_memory_equal(plain.text, expected, expected_size);
    free(plain.text);
    free(w.text);
}
#define READS_AS(bytes, expected) reads_as(bytes, sizeof(bytes) - 1, expected, sizeof(expected) - 1)
#define R                         "\xEF\xBF\xBD"

static void every_byte(void ** state) {
    (void)state;
    for (int c = 0; c < 128; c++)
        reads_as(&(char){ (char)c }, 1, &(char){ (char)c }, 1);
    for (int c = 128; c < 256; c++)
        reads_as(&(char){ (char)c }, 1, R, 3);
    READS_AS("a\"b\\c\n\t\r\x01\x7F/\0z", "a\"b\\c\n\t\r\x01\x7F/\0z");
    READS_AS("", "");
}

static void well_formed_text_stays(void ** state) {
    (void)state;
    READS_AS("\xC2\x80 \xDF\xBF \xE0\xA0\x80 \xED\x9F\xBF \xEE\x80\x80 \xEF\xBF\xBF \xF0\x90\x80\x80 \xF4\x8F\xBF\xBF",
             "\xC2\x80 \xDF\xBF \xE0\xA0\x80 \xED\x9F\xBF \xEE\x80\x80 \xEF\xBF\xBF \xF0\x90\x80\x80 \xF4\x8F\xBF\xBF");
    READS_AS("\xE4\xBD\xA0", "\xE4\xBD\xA0");
}

static void ill_formed_text_is_replaced(void ** state) {
    (void)state;
    READS_AS("\xE4\xBD", R);
    READS_AS("x\xE4\xBDy", "x" R "y");
    READS_AS("\xC0\xAF", R R);
    READS_AS("\xE0\x80\xAF", R R R);
    READS_AS("\xED\xA0\x80", R R R);
    READS_AS("\xF0\x90\x80", R);
    READS_AS("\xF4\x90\x80\x80", R R R R);
    READS_AS("\xF5\xFF", R R);
    READS_AS("\xE4\xE4\xBD\xA0", R "\xE4\xBD\xA0");
}

static void times(void ** state) {
    (void)state;
    static const struct {
        long long cs;
        const char * stamp;
    } rows[] = { { 0, "00:00:00.000" },    { 710, "00:00:07.100" },    { 5999, "00:00:59.990" },
                 { 6000, "00:01:00.000" }, { 360000, "01:00:00.000" }, { 36000001, "100:00:00.010" } };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct written w;
        put_stamp(begin(&w)->file, rows[i].cs, '.');
        fclose(w.file);
        assert_string_equal(w.text, rows[i].stamp);
        free(w.text);
    }
}

/* What `put` writes for `text`. */
static void writes(void (*put)(FILE * to, const char * text, size_t size), const char * text, const char * expected) {
    struct written w;
    put(begin(&w)->file, text, strlen(text));
    fclose(w.file);
    assert_string_equal(w.text, expected);
    free(w.text);
}

static void separators(void ** state) {
    (void)state;
    writes(put_csv_string, "=\"a\", b\nc\xFF", "\"=\"\"a\"\", b\nc" R "\"");
    writes(put_line, " a\r\nb\tc", " a  b\tc");
    writes(put_cell, " a\r\nb\tc", " a  b c");
    writes(put_cue, "a-->b--->\n--",
           "a->b-->"
           " --");
    writes(put_cue, "-->", "->");
    writes(put_cue, "", "");
}

static void characters_cut_in_the_middle(void ** state) {
    (void)state;
    static const struct {
        const char * text;
        size_t whole;
    } rows[] = { { "", 0 },
                 { "ab", 2 },
                 { "a\xE4", 1 },
                 { "a\xE4\xBD", 1 },
                 { "\xE4\xBD\xA0", 3 },
                 { "\xF0\x90\x80", 0 },
                 { "\x80", 1 },
                 { "a\xFF", 2 },
                 { "\xE4"
                   "b",
                   2 },
                 { "\xC3\xA9\xC3", 2 },
                 { "\xE0\x80", 2 } };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        assert_int_equal(whole_characters(rows[i].text, strlen(rows[i].text)), rows[i].whole);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_byte),
        cmocka_unit_test(well_formed_text_stays),
        cmocka_unit_test(ill_formed_text_is_replaced),
        cmocka_unit_test(times),
        cmocka_unit_test(separators),
        cmocka_unit_test(characters_cut_in_the_middle),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
