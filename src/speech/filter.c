/* SPDX-License-Identifier: MIT */
/* See filter.h. Rules are numbered as in the specification. */
#include <math.h>
#include <string.h>

#include "filter.h"
#include "segment.h"

static void forbid(float * row, int32_t first, int32_t end) {
    for (int32_t id = first; id < end; id++)
        row[id] = -INFINITY;
}

void sotto_i_filter_base(const struct sotto_i_filter * filter, float * base) {
    const struct sotto_i_specials * s = filter->specials;
    memset(base, 0, (size_t)s->n_vocab * sizeof(*base));
    forbid(base, s->sot, s->beg); /* 3: sot, languages, tasks, solm, prev, nosp, no_timestamps lie side by side */
    if (!filter->timestamps)
        forbid(base, s->beg, s->n_vocab);        /* 4 */
    for (int i = 0; i < filter->n_suppress; i++) /* 6, 7 */
        forbid(base, filter->suppress[i], filter->suppress[i] + 1);
}

/* 8c: timestamps never fall; a pair may repeat its first half, a new segment must have a length. */
static void forbid_past(const struct sotto_i_specials * s, const int32_t * tokens, int n, bool pair_due, float * row) {
    for (int i = n - 1; i >= 0; i--) {
        if (tokens[i] < s->beg)
            continue;
        forbid(row, s->beg, pair_due ? tokens[i] : tokens[i] + 1);
        return;
    }
}

static void timestamp_rules(const struct sotto_i_filter * filter, const int32_t * tokens, int n, float * row) {
    const struct sotto_i_specials * s = filter->specials;
    if (n == 0) { /* 8d */
        forbid(row, 0, s->beg);
        if (filter->max_initial >= 0 && s->beg + filter->max_initial + 1 < s->n_vocab)
            forbid(row, s->beg + filter->max_initial + 1, s->n_vocab);
        return;
    }
    bool last = tokens[n - 1] >= s->beg;
    bool before = n < 2 || tokens[n - 2] >= s->beg;
    if (last && before)
        forbid(row, s->beg, s->n_vocab); /* 8a */
    if (last && !before)
        forbid(row, 0, s->eot); /* 8b */
    forbid_past(s, tokens, n, last && !before, row);
}

/* What would repeat the newest text tokens and the one that followed them before. */
static void forbid_repeats(const struct sotto_i_filter * filter, const int32_t * tokens, int n, float * row) {
    int32_t text[SOTTO_I_MAX_TOKENS];
    int n_text = 0, same = filter->no_repeat - 1;
    for (int i = 0; i < n; i++)
        if (tokens[i] < filter->specials->eot)
            text[n_text++] = tokens[i];
    for (int i = same; i < n_text; i++)
        if (memcmp(text + i - same, text + n_text - same, (size_t)same * sizeof(*text)) == 0)
            row[text[i]] = -INFINITY;
}

void sotto_i_filter_mask(const struct sotto_i_filter * filter, const float * base, const int32_t * tokens, int n,
                         float * mask) {
    const struct sotto_i_specials * s = filter->specials;
    memcpy(mask, base, (size_t)s->n_vocab * sizeof(*mask));
    if (filter->suppress_blank && n == 0) { /* 2 */
        mask[filter->blank] = -INFINITY;
        mask[s->eot] = -INFINITY;
    }
    if (filter->no_repeat > 0)
        forbid_repeats(filter, tokens, n, mask);
    if (!filter->timestamps)
        return;
    if (filter->max_tokens > 0 && n >= filter->max_tokens)
        forbid(mask, 0, s->eot); /* 5 */
    timestamp_rules(filter, tokens, n, mask);
}

int sotto_i_filter_max_initial(float seconds) {
    if (!(seconds > 0))
        return -1;
    double steps = floor((double)seconds / 0.02 + 0.5);
    return steps < 1500 ? (int)steps : 1500;
}
