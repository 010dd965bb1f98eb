/* SPDX-License-Identifier: MIT */
/* Whisper's two normalisers of text. Each is a row of passes, from one buffer into the other and back, which do what
 * the reference's regular expressions do, their treatment of overlaps included: after a match the search goes on behind
 * it. */
#include <string.h>

#include "sotto/eval.h"
#include "sotto/speech.h"

#include "speech/eval_numbers.h"
#include "speech/eval_unicode.h"

/* What a pass reads and writes. */
struct work {
    struct sotto_i_points in, out;
};
typedef void (*pass)(const struct sotto_i_points * in, struct sotto_i_points * out);

static void turn(struct work * work) {
    struct sotto_i_points done = work->in;
    done.n = 0;
    work->in = work->out;
    work->out = done;
    work->in.failed = work->out.failed = work->in.failed || work->out.failed;
}

static void run(struct work * work, const pass * passes, size_t n) {
    for (size_t i = 0; i < n; i++) {
        passes[i](&work->in, &work->out);
        turn(work);
    }
}
#define RUN(work, passes) run(work, passes, sizeof(passes) / sizeof((passes)[0]))

/* ---- small things ---- */

static uint32_t at(const struct sotto_i_points * text, size_t i) { return i < text->n ? text->points[i] : 0; }

static bool is_digit(uint32_t point) { return point >= '0' && point <= '9'; } /* as [0-9] */
static bool is_letter(uint32_t point) { return point >= 'a' && point <= 'z'; }
static bool is_currency(uint32_t point) { return point == '$' || point == 0xA3 || point == 0x20AC; }

/* Does a word begin or end before character i? */
static bool is_edge(const struct sotto_i_points * text, size_t i) {
    bool before = i > 0 && sotto_i_is_word(text->points[i - 1]);
    bool after = i < text->n && sotto_i_is_word(text->points[i]);
    return before != after;
}

static bool stands_at(const struct sotto_i_points * text, size_t i, const char * ascii) {
    size_t n = strlen(ascii);
    return i <= text->n && text->n - i >= n && sotto_i_spells(text->points + i, n, ascii);
}

static size_t skip_spaces(const struct sotto_i_points * text, size_t i) {
    while (i < text->n && sotto_i_is_space(text->points[i]))
        i++;
    return i;
}

/* ---- passes of both ---- */

static size_t find(const struct sotto_i_points * text, size_t i, uint32_t one, uint32_t other) {
    while (i < text->n && text->points[i] != one && text->points[i] != other)
        i++;
    return i;
}

/* <...> and [...], whichever sign closes. */
static void drop_brackets(const struct sotto_i_points * in, struct sotto_i_points * out) {
    size_t close = 0;
    for (size_t i = 0; i < in->n; i++) {
        if (in->points[i] == '<' || in->points[i] == '[') {
            if (close <= i)
                close = find(in, i + 1, '>', ']');
            if (close < in->n) {
                i = close;
                continue;
            }
        }
        sotto_i_points_push(out, in->points[i]);
    }
}

/* (...), which hold something. */
static void drop_parentheses(const struct sotto_i_points * in, struct sotto_i_points * out) {
    size_t close = 0;
    for (size_t i = 0; i < in->n; i++) {
        if (in->points[i] == '(') {
            if (close <= i)
                close = find(in, i + 1, ')', ')');
            if (close < in->n && close > i + 1) {
                i = close;
                continue;
            }
        }
        sotto_i_points_push(out, in->points[i]);
    }
}

static void squeeze(const struct sotto_i_points * in, struct sotto_i_points * out) {
    for (size_t i = 0; i < in->n; i++) {
        if (!sotto_i_is_space(in->points[i]))
            sotto_i_points_push(out, in->points[i]);
        else if (i == 0 || !sotto_i_is_space(in->points[i - 1]))
            sotto_i_points_push(out, ' ');
    }
}

static const struct {
    uint32_t point;
    const char * plain;
} PLAIN[] = {
    /* letters that normal form KD leaves whole */
    { 0x153, "oe" }, { 0x152, "OE" },  { 0xF8, "o" },  { 0xD8, "O" },  { 0xE6, "ae" }, { 0xC6, "AE" },
    { 0xDF, "ss" },  { 0x1E9E, "SS" }, { 0x111, "d" }, { 0x110, "D" }, { 0xF0, "d" },  { 0xD0, "D" },
    { 0xFE, "th" },  { 0xDE, "th" },   { 0x142, "l" }, { 0x141, "L" },
};

static bool put_plain(struct sotto_i_points * out, uint32_t point) {
    for (size_t i = 0; i < sizeof(PLAIN) / sizeof(PLAIN[0]); i++) {
        if (PLAIN[i].point == point) {
            sotto_i_points_put(out, PLAIN[i].plain);
            return true;
        }
    }
    return false;
}

static void put_letter(struct sotto_i_points * out, uint32_t point) {
    enum sotto_i_drop drop = sotto_i_drop_class(point);
    if ((point >= 0x80 && put_plain(out, point)) || drop == SOTTO_I_DROP_NONSPACING)
        return;
    sotto_i_points_push(out, drop == SOTTO_I_DROP_SYMBOL ? ' ' : point);
}

static void drop_marks_and_symbols(const struct sotto_i_points * in, struct sotto_i_points * out) {
    for (size_t i = 0; i < in->n; i++)
        put_letter(out, in->points[i]);
}

/* ---- English ---- */

/* Whole words; a pattern that begins inside a word asks for no edge there. */
static const struct replacement {
    const char * from;
    const char * to;
} REPLACEMENTS[] = {
    { "won't", "will not" },
    { "can't", "can not" },
    { "let's", "let us" },
    { "ain't", "aint" },
    { "y'all", "you all" },
    { "wanna", "want to" },
    { "gotta", "got to" },
    { "gonna", "going to" },
    { "i'ma", "i am going to" },
    { "imma", "i am going to" },
    { "woulda", "would have" },
    { "coulda", "could have" },
    { "shoulda", "should have" },
    { "ma'am", "madam" },
    { "mr", "mister " },
    { "mrs", "missus " },
    { "st", "saint " },
    { "dr", "doctor " },
    { "prof", "professor " },
    { "capt", "captain " },
    { "gov", "governor " },
    { "ald", "alderman " },
    { "gen", "general " },
    { "sen", "senator " },
    { "rep", "representative " },
    { "pres", "president " },
    { "rev", "reverend " },
    { "hon", "honorable " },
    { "asst", "assistant " },
    { "assoc", "associate " },
    { "lt", "lieutenant " },
    { "col", "colonel " },
    { "jr", "junior " },
    { "sr", "senior " },
    { "esq", "esquire " },
}, ENDINGS[] = {
    { "'d been", " had been" },
    { "'s been", " has been" },
    { "'d gone", " had gone" },
    { "'s gone", " has gone" },
    { "'d done", " had done" },
    { "'s got", " has got" },
    { "n't", " not" },
    { "'re", " are" },
    { "'s", " is" },
    { "'d", " would" },
    { "'ll", " will" },
    { "'t", " not" },
    { "'ve", " have" },
    { "'m", " am" },
};

static const struct replacement FILLERS[] = {
    { "hmm", "" }, { "mm", "" }, { "mhm", "" }, { "mmm", "" }, { "uh", "" }, { "um", "" },
};

static void replace(struct work * work, const struct replacement * row, bool whole) {
    const struct sotto_i_points * in = &work->in;
    size_t n = strlen(row->from);
    for (size_t i = 0; i < in->n; i++) {
        bool here = in->points[i] == (unsigned char)row->from[0] && stands_at(in, i, row->from) && is_edge(in, i + n);
        if (!here || (whole && !is_edge(in, i))) {
            sotto_i_points_push(&work->out, in->points[i]);
            continue;
        }
        sotto_i_points_put(&work->out, row->to);
        i += n - 1;
    }
    turn(work);
}

static void replace_all(struct work * work, const struct replacement * rows, size_t n, bool whole) {
    for (size_t i = 0; i < n; i++)
        replace(work, &rows[i], whole);
}
#define REPLACE(work, rows, whole) replace_all(work, rows, sizeof(rows) / sizeof((rows)[0]), whole)

static void tie_apostrophes(const struct sotto_i_points * in, struct sotto_i_points * out) {
    for (size_t i = 0; i < in->n; i++) {
        size_t next = skip_spaces(in, i);
        if (next > i && at(in, next) == '\'')
            i = next;
        sotto_i_points_push(out, in->points[i]);
    }
}

static void drop_commas(const struct sotto_i_points * in, struct sotto_i_points * out) {
    for (size_t i = 0; i < in->n; i++) {
        sotto_i_points_push(out, in->points[i]);
        if (sotto_i_digit_value(in->points[i]) >= 0 && at(in, i + 1) == ',' &&
            sotto_i_digit_value(at(in, i + 2)) >= 0) {
            sotto_i_points_push(out, in->points[i + 2]);
            i += 2;
        }
    }
}

/* Full stops that no digit follows; of two only the first, whose match takes in the second. */
static void drop_stops(const struct sotto_i_points * in, struct sotto_i_points * out) {
    for (size_t i = 0; i < in->n; i++) {
        if (in->points[i] != '.' || is_digit(at(in, i + 1))) {
            sotto_i_points_push(out, in->points[i]);
            continue;
        }
        sotto_i_points_push(out, ' ');
        if (++i < in->n)
            sotto_i_points_push(out, in->points[i]);
    }
}

/* As drop_marks_and_symbols, but for what belongs to numbers. */
static void drop_most_symbols(const struct sotto_i_points * in, struct sotto_i_points * out) {
    for (size_t i = 0; i < in->n; i++) {
        uint32_t point = in->points[i];
        if (point == '.' || point == '%' || point == 0xA2 || is_currency(point))
            sotto_i_points_push(out, point);
        else
            put_letter(out, point);
    }
}

/* ---- numbers ---- */

/* Behind "and a half" at character i, or 0. */
static size_t end_of_half(const struct sotto_i_points * text, size_t i) {
    if (!stands_at(text, i, "and") || !is_edge(text, i))
        return 0;
    size_t a = skip_spaces(text, i + 3);
    if (a == i + 3 || at(text, a) != 'a')
        return 0;
    size_t half = skip_spaces(text, a + 1);
    return half > a + 1 && stands_at(text, half, "half") && is_edge(text, half + 4) ? half + 4 : 0;
}

/* A piece of text before "and a half" or at the end; pieces of white space alone are dropped, halves with them. */
static void put_piece(const struct sotto_i_points * in, size_t first, size_t end, bool half,
                      struct sotto_i_points * out) {
    size_t stop = end;
    while (stop > first && sotto_i_is_space(in->points[stop - 1]))
        stop--;
    if (stop == first)
        return;
    if (out->n > 0)
        sotto_i_points_push(out, ' ');
    sotto_i_points_append(out, in->points + first, end - first);
    size_t word = stop;
    while (word > first && !sotto_i_is_space(in->points[word - 1]))
        word--;
    if (half)
        sotto_i_points_put(out, sotto_i_takes_half(in->points + word, stop - word) ? " point five" : " and a half");
}

static void take_halves(const struct sotto_i_points * in, struct sotto_i_points * out) {
    size_t first = 0;
    for (size_t i = 0; i < in->n; i++) {
        size_t end = end_of_half(in, i);
        if (end == 0)
            continue;
        put_piece(in, first, i, true, out);
        first = end;
        i = end - 1;
    }
    put_piece(in, first, in->n, false, out);
}

static void part_letters_and_digits(const struct sotto_i_points * in, struct sotto_i_points * out) {
    for (size_t i = 0; i < in->n; i++) {
        uint32_t point = in->points[i];
        uint32_t next = at(in, i + 1);
        sotto_i_points_push(out, point);
        if ((is_letter(point) && is_digit(next)) || (is_digit(point) && is_letter(next)))
            sotto_i_points_push(out, ' ');
    }
}

/* Length of an ordinal's or plural's ending at character i, 0 if there is none. */
static size_t ending(const struct sotto_i_points * text, size_t i) {
    static const char * const endings[] = { "st", "nd", "rd", "th", "s" };
    for (size_t k = 0; k < sizeof(endings) / sizeof(endings[0]); k++) {
        size_t n = strlen(endings[k]);
        if (stands_at(text, i, endings[k]) && is_edge(text, i + n))
            return n;
    }
    return 0;
}

static void tie_endings(const struct sotto_i_points * in, struct sotto_i_points * out) {
    for (size_t i = 0; i < in->n; i++) {
        sotto_i_points_push(out, in->points[i]);
        size_t next = skip_spaces(in, i + 1);
        if (is_digit(in->points[i]) && next > i + 1 && ending(in, next) > 0)
            i = next - 1;
    }
}

/* How many digits, one or two, end a word at character i; else 0. */
static size_t cents_at(const struct sotto_i_points * text, size_t i) {
    size_t n = 0;
    while (n < 2 && is_digit(at(text, i + n)))
        n++;
    return n > 0 && is_edge(text, i + n) ? n : 0;
}

/* "$2 and ¢7" and "$2 ¢7" -> "$2.07" */
static void join_cents(const struct sotto_i_points * in, struct sotto_i_points * out) {
    for (size_t i = 0; i < in->n; i++) {
        sotto_i_points_push(out, in->points[i]);
        size_t end = i + 1;
        while (is_currency(in->points[i]) && is_digit(at(in, end)))
            end++;
        if (end == i + 1 || at(in, end) != ' ')
            continue;
        size_t cent = stands_at(in, end, " and ") ? end + 5 : end + 1;
        size_t n = at(in, cent) == 0xA2 ? cents_at(in, cent + 1) : 0;
        if (n == 0)
            continue;
        sotto_i_points_append(out, in->points + i + 1, end - i - 1);
        sotto_i_points_put(out, n == 1 ? ".0" : ".");
        sotto_i_points_append(out, in->points + cent + 1, n);
        i = cent + n;
    }
}

/* "$0.36" -> "¢36"; any character may stand for the point, as in the reference. */
static void take_out_cents(const struct sotto_i_points * in, struct sotto_i_points * out) {
    for (size_t i = 0; i < in->n; i++) {
        bool fits = is_currency(in->points[i]) && at(in, i + 1) == '0' && i + 2 < in->n && in->points[i + 2] != '\n';
        size_t n = fits ? cents_at(in, i + 3) : 0;
        if (n == 0) {
            sotto_i_points_push(out, in->points[i]);
            continue;
        }
        sotto_i_points_push(out, 0xA2);
        if (n == 2 && in->points[i + 3] == '0')
            sotto_i_points_push(out, in->points[i + 4]);
        else
            sotto_i_points_append(out, in->points + i + 3, n);
        i += 2 + n;
    }
}

static void spell_one(const struct sotto_i_points * in, struct sotto_i_points * out) {
    for (size_t i = 0; i < in->n; i++) {
        size_t end = at(in, i + 1) == 's' ? i + 2 : i + 1;
        if (in->points[i] == '1' && is_edge(in, i) && is_edge(in, end))
            sotto_i_points_put(out, "one");
        else
            sotto_i_points_push(out, in->points[i]);
    }
}

/* ---- the end of English ---- */

static void split_words(const struct sotto_i_points * in, struct sotto_i_points * out) {
    size_t first = skip_spaces(in, 0);
    for (size_t i = first; i < in->n; i++) {
        if (!sotto_i_is_space(in->points[i])) {
            if (i > first && sotto_i_is_space(in->points[i - 1]))
                sotto_i_points_push(out, ' ');
            sotto_i_points_push(out, in->points[i]);
        }
    }
}

/* Points and currencies that no digit follows. */
static void drop_prefixes(const struct sotto_i_points * in, struct sotto_i_points * out) {
    for (size_t i = 0; i < in->n; i++) {
        uint32_t point = in->points[i];
        bool sign = point == '.' || point == 0xA2 || is_currency(point);
        if (!sign || i + 1 == in->n || is_digit(in->points[i + 1])) {
            sotto_i_points_push(out, point);
            continue;
        }
        sotto_i_points_push(out, ' ');
        sotto_i_points_push(out, in->points[++i]);
    }
}

/* Per cent signs that follow no digit. */
static void drop_percents(const struct sotto_i_points * in, struct sotto_i_points * out) {
    for (size_t i = 0; i < in->n; i++) {
        sotto_i_points_push(out, in->points[i]);
        if (!is_digit(in->points[i]) && at(in, i + 1) == '%') {
            sotto_i_points_push(out, ' ');
            i++;
        }
    }
}

static void normalise_english(struct work * work) {
    static const pass first[] = { sotto_i_lower, drop_brackets, drop_parentheses };
    static const pass after_fillers[] = { tie_apostrophes };
    static const pass rest[] = {
        drop_commas,   drop_stops,
        sotto_i_nfkd,  drop_most_symbols, /* letters */
        take_halves,   part_letters_and_digits,
        tie_endings,   sotto_i_numbers, /* numbers */
        join_cents,    take_out_cents,
        spell_one, /* money */
        split_words,   drop_prefixes,
        drop_percents, squeeze,
    };
    RUN(work, first);
    REPLACE(work, FILLERS, true);
    RUN(work, after_fillers);
    REPLACE(work, REPLACEMENTS, true);
    REPLACE(work, ENDINGS, false);
    RUN(work, rest);
}

/* ---- other languages ---- */

static void drop_symbols(const struct sotto_i_points * in, struct sotto_i_points * out) {
    for (size_t i = 0; i < in->n; i++) {
        bool keep = sotto_i_drop_class(in->points[i]) == SOTTO_I_DROP_KEEP;
        sotto_i_points_push(out, keep ? in->points[i] : ' ');
    }
}

static void split_clusters(const struct sotto_i_points * in, struct sotto_i_points * out) {
    for (size_t i = 0; i < in->n; i++) {
        if (i > 0 && !sotto_i_joins(in->points[i - 1], in->points[i]))
            sotto_i_points_push(out, ' ');
        sotto_i_points_push(out, in->points[i]);
    }
}

static bool is_split(const char * code) {
    static const char * const codes[] = { "zh", "ja", "th", "lo", "my", "yue" };
    for (size_t i = 0; code != NULL && i < sizeof(codes) / sizeof(codes[0]); i++) {
        if (strcmp(code, codes[i]) == 0)
            return true;
    }
    return false;
}

static void normalise_basic(struct work * work, bool strip_accents, bool split) {
    static const pass first[] = { sotto_i_lower, drop_brackets, drop_parentheses, sotto_i_nfkd };
    static const pass plain[] = { drop_marks_and_symbols, sotto_i_lower };
    static const pass composed[] = { sotto_i_compose, drop_symbols, sotto_i_lower };
    static const pass clusters[] = { split_clusters };
    static const pass last[] = { squeeze };
    RUN(work, first);
    if (strip_accents)
        RUN(work, plain);
    else
        RUN(work, composed);
    if (split)
        RUN(work, clusters);
    RUN(work, last);
}

/* ---- calls ---- */

struct sotto_eval_params sotto_eval_default_params(void) {
    return (struct sotto_eval_params){ .size = sizeof(struct sotto_eval_params) };
}

static const char * language_of(const struct sotto_eval_params * params) {
    return sotto_language_code(sotto_language_id(params->language));
}

enum sotto_status sotto_eval_normalise(const char * text, size_t size, const struct sotto_eval_params * params,
                                       char ** normalised, size_t * normalised_size) {
    struct sotto_eval_params defaults = sotto_eval_default_params();
    if (params == NULL)
        params = &defaults;
    if ((text == NULL && size > 0) || normalised == NULL || normalised_size == NULL)
        return sotto_fail(SOTTO_E_NULLARG, "sotto_eval_normalise: text, normalised and normalised_size must be given");
    if (params->size != sizeof(struct sotto_eval_params))
        return sotto_fail(SOTTO_E_PARAM,
                          "sotto_eval_normalise: params.size is %u; begin with sotto_eval_default_params()",
                          params->size);
    const char * code = language_of(params);
    struct work work = { { .allocator = params->allocator }, { .allocator = params->allocator } };
    sotto_i_points_read(&work.in, text, size);
    if (code != NULL && strcmp(code, "en") == 0)
        normalise_english(&work);
    else
        normalise_basic(&work, params->strip_accents, is_split(code));
    *normalised = sotto_i_points_utf8(&work.in, normalised_size);
    sotto_i_points_free(&work.in);
    sotto_i_points_free(&work.out);
    return *normalised != NULL ? SOTTO_OK : SOTTO_E_MEMORY;
}

enum sotto_status sotto_eval_score(const char * reference, size_t reference_size, const char * hypothesis,
                                   size_t hypothesis_size, const struct sotto_eval_params * params,
                                   struct sotto_eval_score * score) {
    struct sotto_eval_params defaults = sotto_eval_default_params();
    if (params == NULL)
        params = &defaults;
    if (score == NULL)
        return sotto_fail(SOTTO_E_NULLARG, "sotto_eval_score: score must be given");
    char *a = NULL, *b = NULL;
    size_t n_a = 0, n_b = 0;
    enum sotto_status status = sotto_eval_normalise(reference, reference_size, params, &a, &n_a);
    if (status == SOTTO_OK)
        status = sotto_eval_normalise(hypothesis, hypothesis_size, params, &b, &n_b);
    if (status == SOTTO_OK)
        status = sotto_eval_count(a, n_a, b, n_b, SOTTO_EVAL_WORDS, params->allocator, &score->words);
    if (status == SOTTO_OK && is_split(language_of(params)))
        score->characters = score->words;
    else if (status == SOTTO_OK)
        status = sotto_eval_count(a, n_a, b, n_b, SOTTO_EVAL_CHARACTERS, params->allocator, &score->characters);
    if (a != NULL)
        sotto_mfree(params->allocator, a, n_a + 1, 1);
    if (b != NULL)
        sotto_mfree(params->allocator, b, n_b + 1, 1);
    return status;
}
