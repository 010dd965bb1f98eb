/* SPDX-License-Identifier: MIT */
/* Text as the writers need it: valid UTF-8, JSON strings, times. */
#include <string.h>

#include "cli/cli.h"

/* Bytes of the well-formed character at s; 0 if there is none, and then *bad bytes belong to one U+FFFD (the longest
 * beginning of a character, as Unicode recommends). */
static size_t character(const unsigned char * s, size_t left, size_t * bad) {
    *bad = 1;
    if (s[0] < 0x80)
        return 1;
    if (s[0] < 0xC2 || s[0] > 0xF4)
        return 0;
    size_t n = s[0] >= 0xF0 ? 4 : s[0] >= 0xE0 ? 3 : 2;
    unsigned char low = s[0] == 0xE0 ? 0xA0 : s[0] == 0xF0 ? 0x90 : 0x80;
    unsigned char high = s[0] == 0xED ? 0x9F : s[0] == 0xF4 ? 0x8F : 0xBF;
    for (size_t i = 1; i < n; i++) {
        if (i >= left || s[i] < (i == 1 ? low : 0x80) || s[i] > (i == 1 ? high : 0xBF)) {
            *bad = i;
            return 0;
        }
    }
    return n;
}

static void put_plain(FILE * to, const char * s, size_t n) { fwrite(s, 1, n, to); }

static void put_escaped(FILE * to, const char * s, size_t n) {
    unsigned char c = (unsigned char)s[0];
    const char * short_form = c != 0 ? strchr("\"\"\\\\\nn\tt\rr\bb\ff", c) : NULL;
    if (n == 1 && short_form != NULL && (c < 0x20 || c == '"' || c == '\\'))
        fprintf(to, "\\%c", short_form[1]);
    else if (n == 1 && c < 0x20)
        fprintf(to, "\\u%04x", c);
    else
        put_plain(to, s, n);
}

static void put_all(FILE * to, const char * text, size_t size, void (*put)(FILE * to, const char * s, size_t n)) {
    while (size > 0) {
        size_t bad;
        size_t n = character((const unsigned char *)text, size, &bad);
        if (n > 0)
            put(to, text, n);
        else
            fputs("\xEF\xBF\xBD", to);
        n = n > 0 ? n : bad;
        text += n;
        size -= n;
    }
}

void put_utf8(FILE * to, const char * text, size_t size) { put_all(to, text, size, put_plain); }

void put_json_string(FILE * to, const char * text, size_t size) {
    putc('"', to);
    put_all(to, text, size, put_escaped);
    putc('"', to);
}

static void put_csv(FILE * to, const char * s, size_t n) {
    if (n == 1 && s[0] == '"')
        putc('"', to);
    put_plain(to, s, n);
}

void put_csv_string(FILE * to, const char * text, size_t size) {
    putc('"', to);
    put_all(to, text, size, put_csv);
    putc('"', to);
}

static void put_without_breaks(FILE * to, const char * s, size_t n) {
    if (n == 1 && (s[0] == '\n' || s[0] == '\r'))
        putc(' ', to);
    else
        put_plain(to, s, n);
}

void put_line(FILE * to, const char * text, size_t size) { put_all(to, text, size, put_without_breaks); }

static void put_without_tabs(FILE * to, const char * s, size_t n) {
    if (n == 1 && s[0] == '\t')
        putc(' ', to);
    else
        put_without_breaks(to, s, n);
}

void put_cell(FILE * to, const char * text, size_t size) { put_all(to, text, size, put_without_tabs); }

void put_cue(FILE * to, const char * text, size_t size) {
    size_t from = 0;
    for (size_t i = 0; i + 3 <= size; i++) {
        if (memcmp(text + i, "-->", 3) != 0)
            continue;
        put_line(to, text + from, i - from);
        fputs("->", to);
        i += 2;
        from = i + 1;
    }
    put_line(to, text + from, size - from);
}

size_t whole_characters(const char * text, size_t size) {
    const unsigned char * s = (const unsigned char *)text;
    size_t at = 0;
    while (at < size) {
        size_t bad;
        size_t n = character(s + at, size - at, &bad);
        if (n == 0 && at + bad == size && s[at] >= 0xC2 && s[at] <= 0xF4)
            return at;
        at += n > 0 ? n : bad;
    }
    return size;
}

void put_stamp(FILE * to, long long cs, char point) {
    fprintf(to, "%02lld:%02lld:%02lld%c%03lld", cs / 360000, cs / 6000 % 60, cs / 100 % 60, point, cs % 100 * 10);
}
