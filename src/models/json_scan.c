/* SPDX-License-Identifier: MIT */
/* A scanner for JSON that may be hostile: no tree, no recursion, memory only for the strings that are asked for. */
#include <string.h>

#include "models/safetensors.h"

#define MAX_DEPTH 64

enum sotto_status sotto_i_json_corrupt(const struct json_scan * s, const char * problem) {
    return sotto_fail(SOTTO_E_MODEL_CORRUPT, "sotto_convert: %s: %s: %s at byte %llu", s->in.stream->path, s->what,
                      problem, (unsigned long long)s->in.at);
}

/* ---- bytes ---- */

/* The next byte, which stays; 0 at the end, which no place in JSON allows. */
static enum sotto_status look(struct json_scan * s, char * c) {
    uint64_t at = s->in.at;
    *c = 0;
    if (at >= s->end)
        return SOTTO_OK;
    enum sotto_status status = sotto_i_models_next(&s->in, c, 1, s->what);
    s->in.at = at;
    return status;
}

static enum sotto_status take_byte(struct json_scan * s, char * c) {
    if (s->in.at >= s->end)
        return sotto_i_json_corrupt(s, "it ends too early");
    return sotto_i_models_next(&s->in, c, 1, s->what);
}

enum sotto_status sotto_i_json_peek(struct json_scan * s, char * c) {
    enum sotto_status status = look(s, c);
    while (status == SOTTO_OK && (*c == ' ' || *c == '\t' || *c == '\r' || *c == '\n')) {
        s->in.at++;
        status = look(s, c);
    }
    return status;
}

enum sotto_status sotto_i_json_expect(struct json_scan * s, char c) {
    char found;
    enum sotto_status status = sotto_i_json_peek(s, &found);
    if (status != SOTTO_OK)
        return status;
    if (found != c) {
        char problem[] = "there is no ' '";
        problem[sizeof(problem) - 3] = c;
        return sotto_i_json_corrupt(s, problem);
    }
    s->in.at++;
    return SOTTO_OK;
}

enum sotto_status sotto_i_json_more(struct json_scan * s, char close, bool * more) {
    char c;
    enum sotto_status status = sotto_i_json_peek(s, &c);
    *more = c == ',';
    return status == SOTTO_OK ? sotto_i_json_expect(s, *more ? ',' : close) : status;
}

/* ---- strings ---- */

static enum sotto_status add(struct json_text * text, char c) {
    void * bytes = text->bytes;
    enum sotto_status status = sotto_i_models_grow(text->allocator, &bytes, text->n, &text->cap, 1);
    if (status != SOTTO_OK)
        return status;
    text->bytes = bytes;
    text->bytes[text->n++] = c;
    return SOTTO_OK;
}

static enum sotto_status add_point(struct json_text * text, uint32_t point) {
    char bytes[4];
    int n = point < 0x80 ? 1 : point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
    static const uint8_t lead[5] = { 0, 0, 0xC0, 0xE0, 0xF0 };
    for (int i = n - 1; i > 0; i--, point >>= 6)
        bytes[i] = (char)(0x80 | (point & 0x3F));
    bytes[0] = (char)(lead[n] | point);
    enum sotto_status status = SOTTO_OK;
    for (int i = 0; i < n && status == SOTTO_OK; i++)
        status = add(text, bytes[i]);
    return status;
}

/* Four hexadecimal digits. */
static enum sotto_status read_hex(struct json_scan * s, uint32_t * value) {
    static const char digits[] = "0123456789abcdefABCDEF";
    *value = 0;
    for (int i = 0; i < 4; i++) {
        char c;
        enum sotto_status status = take_byte(s, &c);
        if (status != SOTTO_OK)
            return status;
        const char * digit = c != 0 ? strchr(digits, c) : NULL;
        if (digit == NULL)
            return sotto_i_json_corrupt(s, "an escape without four hexadecimal digits");
        uint32_t number = (uint32_t)(digit - digits);
        *value = *value << 4 | (number < 16 ? number : number - 6);
    }
    return SOTTO_OK;
}

/* After "\u". */
static enum sotto_status read_point(struct json_scan * s, uint32_t * point) {
    uint32_t low = 0;
    char marks[2] = "";
    enum sotto_status status = read_hex(s, point);
    if (status != SOTTO_OK || *point < 0xD800 || *point > 0xDFFF)
        return status;
    if (*point < 0xDC00) {
        for (int i = 0; i < 2 && status == SOTTO_OK; i++)
            status = take_byte(s, &marks[i]);
        if (status == SOTTO_OK && marks[0] == '\\' && marks[1] == 'u')
            status = read_hex(s, &low);
    }
    if (status != SOTTO_OK)
        return status;
    if (low < 0xDC00 || low > 0xDFFF)
        return sotto_i_json_corrupt(s, "half of a surrogate pair");
    *point = 0x10000 + ((*point - 0xD800) << 10) + (low - 0xDC00);
    return SOTTO_OK;
}

static enum sotto_status read_escape(struct json_scan * s, struct json_text * text) {
    static const char names[] = "\"\\/bfnrt";
    static const char meaning[] = "\"\\/\b\f\n\r\t";
    char c;
    enum sotto_status status = take_byte(s, &c);
    if (status != SOTTO_OK)
        return status;
    const char * name = c != 0 ? strchr(names, c) : NULL;
    if (name != NULL)
        return add(text, meaning[name - names]);
    if (c != 'u')
        return sotto_i_json_corrupt(s, "an unknown escape");
    uint32_t point;
    status = read_point(s, &point);
    if (status == SOTTO_OK && point == 0)
        status = sotto_i_json_corrupt(s, "a 0 in a string");
    return status == SOTTO_OK ? add_point(text, point) : status;
}

enum sotto_status sotto_i_json_string(struct json_scan * s, struct json_text * text) {
    enum sotto_status status = sotto_i_json_expect(s, '"');
    while (status == SOTTO_OK) {
        char c;
        status = take_byte(s, &c);
        if (status != SOTTO_OK)
            return status;
        if (c == '"')
            return add(text, 0);
        if ((uint8_t)c < 0x20)
            return sotto_i_json_corrupt(s, "a control character in a string");
        status = c == '\\' ? read_escape(s, text) : add(text, c);
    }
    return status;
}

/* ---- numbers ---- */

enum sotto_status sotto_i_json_count(struct json_scan * s, uint64_t * value) {
    char c;
    int digits = 0;
    *value = 0;
    enum sotto_status status = sotto_i_json_peek(s, &c);
    while (status == SOTTO_OK && c >= '0' && c <= '9') {
        uint64_t digit = (uint64_t)(c - '0');
        if (*value > ((uint64_t)INT64_MAX - digit) / 10)
            return sotto_i_json_corrupt(s, "too large a number");
        if (digits > 0 && *value == 0)
            return sotto_i_json_corrupt(s, "a number that begins with 0");
        *value = *value * 10 + digit;
        digits++;
        s->in.at++;
        status = look(s, &c);
    }
    if (status == SOTTO_OK && digits == 0)
        status = sotto_i_json_corrupt(s, "no whole number");
    return status;
}

/* ---- values that nobody wants ---- */

static enum sotto_status skip_word(struct json_scan * s, const char * word) {
    enum sotto_status status = SOTTO_OK;
    for (; *word != 0 && status == SOTTO_OK; word++) {
        char c;
        status = take_byte(s, &c);
        if (status == SOTTO_OK && c != *word)
            status = sotto_i_json_corrupt(s, "no value");
    }
    return status;
}

/* Not told: 01 from 1, and the like. */
static enum sotto_status skip_number(struct json_scan * s) {
    uint64_t begin = s->in.at;
    char c;
    enum sotto_status status = look(s, &c);
    while (status == SOTTO_OK && c != 0 && strchr("+-.0123456789eE", c) != NULL) {
        s->in.at++;
        status = look(s, &c);
    }
    return status == SOTTO_OK && s->in.at == begin ? sotto_i_json_corrupt(s, "no value") : status;
}

static enum sotto_status skip_string(struct json_scan * s, struct json_text * scratch) {
    size_t n = scratch->n;
    enum sotto_status status = sotto_i_json_string(s, scratch);
    scratch->n = n;
    return status;
}

static enum sotto_status skip_scalar(struct json_scan * s, char c, struct json_text * scratch) {
    switch (c) {
    case '"': return skip_string(s, scratch);
    case 't': return skip_word(s, "true");
    case 'f': return skip_word(s, "false");
    case 'n': return skip_word(s, "null");
    default: return skip_number(s);
    }
}

struct nest {
    char closes[MAX_DEPTH]; /* what ends each level */
    int depth;
};

/* Inside a level, before its next value: an object has a key there. */
static enum sotto_status skip_key(struct json_scan * s, const struct nest * nest, struct json_text * scratch) {
    if (nest->closes[nest->depth - 1] == ']')
        return SOTTO_OK;
    enum sotto_status status = skip_string(s, scratch);
    return status == SOTTO_OK ? sotto_i_json_expect(s, ':') : status;
}

/* Into an array or object; *empty if it ends at once. */
static enum sotto_status enter(struct json_scan * s, struct nest * nest, char c, struct json_text * scratch,
                               bool * empty) {
    if (nest->depth == MAX_DEPTH)
        return sotto_i_json_corrupt(s, "too many levels");
    char close = c == '{' ? '}' : ']';
    nest->closes[nest->depth++] = close;
    s->in.at++;
    enum sotto_status status = sotto_i_json_peek(s, &c);
    *empty = c == close;
    if (status != SOTTO_OK || !*empty)
        return status == SOTTO_OK ? skip_key(s, nest, scratch) : status;
    nest->depth--;
    s->in.at++;
    return SOTTO_OK;
}

/* After a value: to the next one, out of all levels that end here. */
static enum sotto_status leave(struct json_scan * s, struct nest * nest, struct json_text * scratch) {
    enum sotto_status status = SOTTO_OK;
    bool more = false;
    while (nest->depth > 0 && status == SOTTO_OK && !more) {
        status = sotto_i_json_more(s, nest->closes[nest->depth - 1], &more);
        nest->depth -= !more;
    }
    return status == SOTTO_OK && more ? skip_key(s, nest, scratch) : status;
}

enum sotto_status sotto_i_json_skip(struct json_scan * s, struct json_text * scratch) {
    struct nest nest = { .depth = 0 };
    enum sotto_status status;
    do {
        char c;
        bool value = true;
        status = sotto_i_json_peek(s, &c);
        if (status == SOTTO_OK && (c == '{' || c == '['))
            status = enter(s, &nest, c, scratch, &value);
        else if (status == SOTTO_OK)
            status = skip_scalar(s, c, scratch);
        if (status == SOTTO_OK && value)
            status = leave(s, &nest, scratch);
    } while (status == SOTTO_OK && nest.depth > 0);
    return status;
}
