/* SPDX-License-Identifier: MIT */
/* At each point the first alternative that matches: an English contraction; letters, numbers or other characters, each
 * with one space before them if there is one; white space, which leaves its last character to the word that follows. */
#include "split.h"

#include <stdint.h>
#include <string.h>

#include "unicode.h"

/* Class of the character at text + at and its length in bytes. */
static enum sotto_i_char class_at(const char * text, size_t n, size_t at, size_t * length) {
    uint32_t point;
    *length = sotto_i_utf8_next(text + at, n - at, &point);
    return sotto_i_char_class(point);
}

static size_t contraction(const char * text, size_t n) {
    static const char * const endings[] = { "'s", "'t", "'re", "'ve", "'m", "'ll", "'d" };
    for (size_t i = 0; i < sizeof(endings) / sizeof(endings[0]); i++) {
        size_t length = strlen(endings[i]);
        if (length <= n && memcmp(text, endings[i], length) == 0)
            return length;
    }
    return 0;
}

/* End of the run of characters of class `name` that begins at `at`; `last` is where its last character begins. */
static size_t run_end(const char * text, size_t n, size_t at, enum sotto_i_char name, size_t * last) {
    size_t length;
    *last = at;
    while (at < n && class_at(text, n, at, &length) == name) {
        *last = at;
        at += length;
    }
    return at;
}

size_t sotto_i_split_next(const char * text, size_t n) {
    size_t length;
    size_t last;
    size_t end = contraction(text, n);
    if (end > 0)
        return end;
    size_t word = text[0] == ' ' && n > 1 ? 1 : 0;
    enum sotto_i_char name = class_at(text, n, word, &length);
    if (name != SOTTO_I_CHAR_SPACE)
        return run_end(text, n, word, name, &last);
    end = run_end(text, n, 0, SOTTO_I_CHAR_SPACE, &last);
    return end == n || last == 0 ? end : last;
}
