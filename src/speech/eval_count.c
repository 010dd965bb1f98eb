/* SPDX-License-Identifier: MIT */
/* Errors of an alignment, in two rows of memory.
 *
 * D[i][j] is the fewest errors between the first i units of the reference and the first j of the hypothesis. Alignments
 * of equal cost differ in how many units hit, so the path matters. jiwer walks back from the end and in each cell
 *
 *     deletes   if D[i][j] = D[i-1][j] + 1, else
 *     inserts   if D[i][j-1] = D[i-1][j-1] - 1, else
 *     goes diagonally, a hit or a substitution
 *
 * (after taking off what both texts begin and end with). That choice needs only neighbours, so each cell carries the
 * hits of its path along, and the counts follow from cost and hits at the end. */
#include <string.h>

#include "sotto/eval.h"

#include "speech/eval_unicode.h"

/* Units as numbers: equal units, equal numbers. */
struct units {
    uint32_t * ids;
    size_t n;
};

/* ---- words to numbers ---- */

struct word {
    const char * text;
    size_t size;
    uint32_t id;
};

struct dictionary {
    const struct sotto_allocator * allocator;
    struct word * slots; /* open addressing; size 0 = free */
    size_t n_slots;      /* a power of two */
    uint32_t n_words;
};

static uint64_t hash(const char * text, size_t size) {
    uint64_t value = 0xCBF29CE484222325u;
    for (size_t i = 0; i < size; i++)
        value = (value ^ (unsigned char)text[i]) * 0x100000001B3u;
    return value ^ value >> 29;
}

static uint32_t look_up(struct dictionary * dictionary, const char * text, size_t size) {
    size_t mask = dictionary->n_slots - 1;
    size_t at = (size_t)hash(text, size) & mask;
    while (dictionary->slots[at].size > 0) {
        const struct word * slot = &dictionary->slots[at];
        if (slot->size == size && memcmp(slot->text, text, size) == 0)
            return slot->id;
        at = (at + 1) & mask;
    }
    dictionary->slots[at] = (struct word){ text, size, dictionary->n_words };
    return dictionary->n_words++;
}

static bool is_blank(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

/* The word at or behind *at; its size, 0 at the end. */
static size_t next_word(const char * text, size_t size, size_t * at) {
    while (*at < size && is_blank(text[*at]))
        (*at)++;
    size_t end = *at;
    while (end < size && !is_blank(text[end]))
        end++;
    return end - *at;
}

static size_t count_words(const char * text, size_t size) {
    size_t n = 0;
    size_t length;
    for (size_t at = 0; (length = next_word(text, size, &at)) > 0; at += length)
        n++;
    return n;
}

static bool read_words(struct dictionary * dictionary, const char * text, size_t size, struct units * units) {
    size_t n = count_words(text, size);
    units->ids = sotto_malloc(dictionary->allocator, n, sizeof(uint32_t));
    if (units->ids == NULL && n > 0)
        return false;
    size_t length;
    for (size_t at = 0; (length = next_word(text, size, &at)) > 0; at += length)
        units->ids[units->n++] = look_up(dictionary, text + at, length);
    return true;
}

static bool read_both_words(const char * const text[2], const size_t size[2], const struct sotto_allocator * allocator,
                            struct units units[2]) {
    struct dictionary dictionary = { .allocator = allocator, .n_slots = 16 };
    size_t n = count_words(text[0], size[0]) + count_words(text[1], size[1]);
    while (dictionary.n_slots / 2 < n)
        dictionary.n_slots *= 2;
    dictionary.slots = sotto_calloc(allocator, dictionary.n_slots, sizeof(struct word));
    bool done = dictionary.slots != NULL && read_words(&dictionary, text[0], size[0], &units[0]) &&
                read_words(&dictionary, text[1], size[1], &units[1]);
    sotto_mfree(allocator, dictionary.slots, dictionary.n_slots, sizeof(struct word));
    return done;
}

/* ---- characters ---- */

static bool read_characters(const char * text, size_t size, const struct sotto_allocator * allocator,
                            struct units * units) {
    struct sotto_i_points points = { .allocator = allocator };
    sotto_i_points_read(&points, text, size);
    size_t first = 0;
    while (first < points.n && sotto_i_is_space(points.points[first]))
        first++;
    while (points.n > first && sotto_i_is_space(points.points[points.n - 1]))
        points.n--;
    units->n = points.n - first;
    units->ids = sotto_malloc(allocator, units->n, sizeof(uint32_t));
    bool done = !points.failed && (units->ids != NULL || units->n == 0);
    if (done && units->n > 0)
        memcpy(units->ids, points.points + first, units->n * sizeof(uint32_t));
    else if (!done) {
        sotto_mfree(allocator, units->ids, units->n, sizeof(uint32_t));
        *units = (struct units){ 0 };
    }
    sotto_i_points_free(&points);
    return done;
}

/* ---- alignment ---- */

struct cell {
    uint32_t cost, hits;
};

/* The row of reference unit `unit`, from the one before it. */
static void next_row(const struct cell * above, struct cell * row, uint32_t unit, const uint32_t * hypothesis,
                     size_t n) {
    row[0] = (struct cell){ above[0].cost + 1, 0 };
    for (size_t j = 1; j <= n; j++) {
        uint32_t hit = unit == hypothesis[j - 1];
        uint32_t cost = above[j - 1].cost + !hit;
        if (cost > above[j].cost + 1)
            cost = above[j].cost + 1;
        if (cost > row[j - 1].cost + 1)
            cost = row[j - 1].cost + 1;
        struct cell from = above[j - 1];
        from.hits += hit;
        if (cost == above[j].cost + 1)
            from = above[j];
        else if (row[j - 1].cost + 1 == above[j - 1].cost)
            from = row[j - 1];
        row[j] = (struct cell){ cost, from.hits };
    }
}

static bool align(const uint32_t * reference, size_t n, const uint32_t * hypothesis, size_t m,
                  const struct sotto_allocator * allocator, struct cell * end) {
    struct cell * rows = sotto_malloc(allocator, 2 * (m + 1), sizeof(struct cell));
    if (rows == NULL)
        return false;
    for (size_t j = 0; j <= m; j++)
        rows[j] = (struct cell){ (uint32_t)j, 0 };
    struct cell * above = rows;
    struct cell * row = rows + m + 1;
    for (size_t i = 0; i < n; i++) {
        next_row(above, row, reference[i], hypothesis, m);
        struct cell * done = row;
        row = above;
        above = done;
    }
    *end = above[m];
    sotto_mfree(allocator, rows, 2 * (m + 1), sizeof(struct cell));
    return true;
}

static bool count(const struct units * a, const struct units * b, const struct sotto_allocator * allocator,
                  struct sotto_eval_counts * counts) {
    size_t least = a->n < b->n ? a->n : b->n;
    size_t head = 0;
    size_t tail = 0;
    while (head < least && a->ids[head] == b->ids[head])
        head++;
    while (tail < least - head && a->ids[a->n - 1 - tail] == b->ids[b->n - 1 - tail])
        tail++;
    int64_t n = (int64_t)(a->n - head - tail);
    int64_t m = (int64_t)(b->n - head - tail);
    struct cell end = { (uint32_t)(n + m), 0 };
    if (n > 0 && m > 0 && !align(a->ids + head, (size_t)n, b->ids + head, (size_t)m, allocator, &end))
        return false;
    counts->insertions = (int64_t)end.cost - n + end.hits;
    counts->deletions = counts->insertions + n - m;
    counts->substitutions = n - counts->deletions - end.hits;
    counts->hits = (int64_t)(head + tail) + end.hits;
    return true;
}

enum sotto_status sotto_eval_count(const char * reference, size_t reference_size, const char * hypothesis,
                                   size_t hypothesis_size, enum sotto_eval_unit unit,
                                   const struct sotto_allocator * allocator, struct sotto_eval_counts * counts) {
    const char * const text[2] = { reference, hypothesis };
    const size_t size[2] = { reference_size, hypothesis_size };
    if ((reference == NULL && reference_size > 0) || (hypothesis == NULL && hypothesis_size > 0) || counts == NULL)
        return sotto_fail(SOTTO_E_NULLARG, "sotto_eval_count: both texts and counts must be given");
    if (unit != SOTTO_EVAL_WORDS && unit != SOTTO_EVAL_CHARACTERS)
        return sotto_fail(SOTTO_E_PARAM, "sotto_eval_count: unit %d is neither words nor characters", (int)unit);
    if (reference_size > INT32_MAX / 2 || hypothesis_size > INT32_MAX / 2)
        return sotto_fail(SOTTO_E_PARAM, "sotto_eval_count: texts of 1 GiB and more are not compared; cut them");
    struct units units[2] = { { NULL, 0 }, { NULL, 0 } };
    bool done = unit == SOTTO_EVAL_WORDS ? read_both_words(text, size, allocator, units)
                                         : read_characters(text[0], size[0], allocator, &units[0]) &&
                                               read_characters(text[1], size[1], allocator, &units[1]);
    done = done && count(&units[0], &units[1], allocator, counts);
    for (int i = 0; i < 2; i++)
        sotto_mfree(allocator, units[i].ids, units[i].n, sizeof(uint32_t));
    return done ? SOTTO_OK : SOTTO_E_MEMORY;
}
