/* SPDX-License-Identifier: MIT */
/* Classes, lower case, decomposition and composition of characters: searches in the generated tables. */
#include "speech/eval_unicode.h"

#include "speech/unicode.h"

struct range {
    uint32_t first, last, value;
};
struct run {
    uint32_t first, last, step, image;
};
struct pair {
    uint32_t point, a, b;
};
struct more {
    uint32_t point, length;
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const struct range drops[] = {
#define DROP(first, last, name) { first, last, SOTTO_I_DROP_##name },
#include "speech/eval_unicode.def"
#undef DROP
};

static const uint32_t zeros[] = {
#define DIGIT(zero) zero,
#include "speech/eval_unicode.def"
#undef DIGIT
};

static const struct run lowers[] = {
#define LOWER(first, last, step, image) { first, last, step, image },
#include "speech/eval_unicode.def"
#undef LOWER
};

static const struct range combinings[] = {
#define COMBINING(first, last, value) { first, last, value },
#include "speech/eval_unicode.def"
#undef COMBINING
};

static const struct run ones[] = {
#define ONE(first, last, step, image) { first, last, step, image },
#include "speech/eval_unicode.def"
#undef ONE
};

static const struct pair twos[] = {
#define TWO(point, a, b) { point, a, b },
#include "speech/eval_unicode.def"
#undef TWO
};

static const struct more mores[] = {
#define MORE(point, length) { point, length },
#include "speech/eval_unicode.def"
#undef MORE
};

static const uint32_t parts[] = {
#define PART(point) point,
#include "speech/eval_unicode.def"
#undef PART
};

static const struct pair joins[] = {
#define JOIN(a, b, point) { point, a, b },
#include "speech/eval_unicode.def"
#undef JOIN
};

/* ---- classes ---- */

static uint32_t value_in(const struct range * table, size_t n, uint32_t point) {
    size_t low = 0;
    size_t high = n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (point > table[middle].last)
            low = middle + 1;
        else if (point < table[middle].first)
            high = middle;
        else
            return table[middle].value;
    }
    return 0;
}

enum sotto_i_drop sotto_i_drop_class(uint32_t point) { return (enum sotto_i_drop)value_in(drops, COUNT(drops), point); }

bool sotto_i_is_space(uint32_t point) {
    return (point >= 0x1C && point <= 0x1F) || sotto_i_char_class(point) == SOTTO_I_CHAR_SPACE;
}

bool sotto_i_is_word(uint32_t point) {
    enum sotto_i_char name = sotto_i_char_class(point);
    return point == '_' || name == SOTTO_I_CHAR_LETTER || name == SOTTO_I_CHAR_NUMBER;
}

int sotto_i_digit_value(uint32_t point) {
    if (point < 0x80)
        return point >= '0' && point <= '9' ? (int)(point - '0') : -1;
    for (size_t i = 0; i < COUNT(zeros) && zeros[i] <= point; i++) {
        if (point - zeros[i] < 10)
            return (int)(point - zeros[i]);
    }
    return -1;
}

/* ---- lower case ---- */

/* The image of a point, itself if the table has none. */
static uint32_t image_in(const struct run * table, size_t n, uint32_t point) {
    size_t low = 0;
    size_t high = n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (point > table[middle].last)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == n || point < table[low].first || (point - table[low].first) % table[low].step != 0)
        return point;
    return table[low].image + (point - table[low].first);
}

/* Marks and signs inside words, which say nothing about where a word ends. */
static bool is_ignorable(uint32_t point) {
    return point == '\'' || point == '.' || point == ':' || point == 0xAD || point == 0xB7 || point == 0x2019 ||
           sotto_i_drop_class(point) == SOTTO_I_DROP_NONSPACING;
}

static bool ends_word(const struct sotto_i_points * in, size_t at) {
    size_t before = at;
    while (before > 0 && is_ignorable(in->points[before - 1]))
        before--;
    if (before == 0 || sotto_i_char_class(in->points[before - 1]) != SOTTO_I_CHAR_LETTER)
        return false;
    size_t after = at + 1;
    while (after < in->n && is_ignorable(in->points[after]))
        after++;
    return after == in->n || sotto_i_char_class(in->points[after]) != SOTTO_I_CHAR_LETTER;
}

void sotto_i_lower(const struct sotto_i_points * in, struct sotto_i_points * out) {
    for (size_t i = 0; i < in->n; i++) {
        uint32_t point = in->points[i];
        if (point == 0x3A3 && ends_word(in, i)) {
            sotto_i_points_push(out, 0x3C2);
        } else if (point == 0x130) { /* capital i with a dot: the only one that becomes two characters */
            sotto_i_points_push(out, 'i');
            sotto_i_points_push(out, 0x307);
        } else {
            sotto_i_points_push(out, image_in(lowers, COUNT(lowers), point));
        }
    }
}

/* ---- Hangul: syllables are counted, not listed ---- */

enum { LEAD0 = 0x1100, VOWEL0 = 0x1161, TAIL0 = 0x11A7, N_LEADS = 19, N_VOWELS = 21, N_TAILS = 28 };
#define SYLLABLE0   0xAC00u
#define N_SYLLABLES ((uint32_t)N_LEADS * N_VOWELS * N_TAILS)

static bool is_syllable(uint32_t point) { return point >= SYLLABLE0 && point - SYLLABLE0 < N_SYLLABLES; }

static size_t take_syllable(uint32_t point, uint32_t * to) {
    uint32_t index = point - SYLLABLE0;
    to[0] = LEAD0 + index / (N_VOWELS * N_TAILS);
    to[1] = VOWEL0 + index / N_TAILS % N_VOWELS;
    to[2] = TAIL0 + index % N_TAILS;
    return to[2] == TAIL0 ? 2 : 3;
}

static uint32_t join_syllable(uint32_t a, uint32_t b) {
    if (a - LEAD0 < N_LEADS && b - VOWEL0 < N_VOWELS)
        return SYLLABLE0 + ((a - LEAD0) * N_VOWELS + (b - VOWEL0)) * N_TAILS;
    if (is_syllable(a) && (a - SYLLABLE0) % N_TAILS == 0 && b > TAIL0 && b - TAIL0 < N_TAILS)
        return a + (b - TAIL0);
    return 0;
}

/* ---- decomposition ---- */

enum { LONGEST = 18 }; /* parts of one step; U+FDFA has so many */

/* One step: how many characters `point` becomes, 0 if it stays. */
static size_t take_apart(uint32_t point, uint32_t * to) {
    if (point < 0xA0)
        return 0;
    if (is_syllable(point))
        return take_syllable(point, to);
    to[0] = image_in(ones, COUNT(ones), point);
    if (to[0] != point)
        return 1;
    size_t low = 0;
    size_t high = COUNT(twos);
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (twos[middle].point < point)
            low = middle + 1;
        else
            high = middle;
    }
    if (low < COUNT(twos) && twos[low].point == point) {
        to[0] = twos[low].a;
        to[1] = twos[low].b;
        return 2;
    }
    size_t at = 0;
    for (size_t i = 0; i < COUNT(mores) && mores[i].point <= point; at += mores[i++].length) {
        for (size_t k = 0; mores[i].point == point && k < mores[i].length; k++)
            to[k] = parts[at + k];
        if (mores[i].point == point)
            return mores[i].length;
    }
    return 0;
}

static void push_decomposed(struct sotto_i_points * out, uint32_t point) {
    uint32_t waiting[2 * LONGEST];
    size_t n = 1;
    waiting[0] = point;
    while (n > 0) {
        uint32_t step[LONGEST];
        uint32_t next = waiting[--n];
        size_t length = take_apart(next, step);
        if (length == 0 || n + length > COUNT(waiting)) {
            sotto_i_points_push(out, next);
            continue;
        }
        for (size_t i = length; i-- > 0;)
            waiting[n++] = step[i];
    }
}

static uint32_t combining_class(uint32_t point) {
    return point < 0x300 ? 0 : value_in(combinings, COUNT(combinings), point);
}

/* Marks behind one another by their class, those of one class as they were. */
static void sort_marks(struct sotto_i_points * text) {
    for (size_t i = 1; i < text->n; i++) {
        uint32_t point = text->points[i];
        uint32_t own = combining_class(point);
        size_t to = i;
        while (own > 0 && to > 0 && combining_class(text->points[to - 1]) > own) {
            text->points[to] = text->points[to - 1];
            to--;
        }
        text->points[to] = point;
    }
}

void sotto_i_nfkd(const struct sotto_i_points * in, struct sotto_i_points * out) {
    for (size_t i = 0; i < in->n; i++)
        push_decomposed(out, in->points[i]);
    sort_marks(out);
}

/* ---- composition ---- */

static uint32_t join(uint32_t a, uint32_t b) {
    size_t low = 0;
    size_t high = COUNT(joins);
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct pair * row = &joins[middle];
        if (row->a < a || (row->a == a && row->b < b))
            low = middle + 1;
        else
            high = middle;
    }
    if (low < COUNT(joins) && joins[low].a == a && joins[low].b == b)
        return joins[low].point;
    return join_syllable(a, b);
}

void sotto_i_compose(const struct sotto_i_points * in, struct sotto_i_points * out) {
    size_t starter = SIZE_MAX; /* the last character of class 0 written */
    uint32_t last = 0;         /* class of what was written last */
    for (size_t i = 0; i < in->n && !out->failed; i++) {
        uint32_t point = in->points[i];
        uint32_t own = combining_class(point);
        bool reaches = starter != SIZE_MAX && (out->n == starter + 1 || last < own);
        uint32_t joined = reaches ? join(out->points[starter], point) : 0;
        if (joined != 0) {
            out->points[starter] = joined;
            continue;
        }
        if (own == 0)
            starter = out->n;
        last = own;
        sotto_i_points_push(out, point);
    }
}

/* ---- grapheme clusters ---- */

static bool is_lead(uint32_t point) {
    return (point >= 0x1100 && point <= 0x115F) || (point >= 0xA960 && point <= 0xA97C);
}
static bool is_vowel(uint32_t point) {
    return (point >= 0x1160 && point <= 0x11A7) || (point >= 0xD7B0 && point <= 0xD7C6);
}
static bool is_tail(uint32_t point) {
    return (point >= 0x11A8 && point <= 0x11FF) || (point >= 0xD7CB && point <= 0xD7FB);
}

bool sotto_i_joins(uint32_t a, uint32_t b) {
    if (a == '\r')
        return b == '\n';
    if (a < 0x20 || sotto_i_char_class(a) == SOTTO_I_CHAR_SPACE)
        return a == ' ' && (b == 0x200C || b == 0x200D);
    bool open = is_syllable(a) && (a - SYLLABLE0) % N_TAILS == 0;
    if (is_lead(a))
        return is_lead(b) || is_vowel(b) || is_syllable(b) || b == 0x200C || b == 0x200D;
    if ((is_vowel(a) || open) && (is_vowel(b) || is_tail(b)))
        return true;
    if ((is_tail(a) || is_syllable(a)) && is_tail(b))
        return true;
    return b == 0x200C || b == 0x200D || (b >= 0xE0020 && b <= 0xE007F); /* joiners and tags, which extend anything */
}
