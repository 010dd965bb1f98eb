/* SPDX-License-Identifier: MIT */
/* The merges of a byte-level vocabulary, made from the vocabulary alone.
 *
 * Token ids are in rank order: a token's id says when the pair it was made of was joined. So encoding token `id` with
 * only the tokens below it, always joining the adjacent pair whose joined text has the lowest id, ends in exactly the
 * two parts that were joined to make it. */
#include <string.h>
#include <time.h>

#include "models/models_impl.h"

#define FIRST_MERGE 256
#define MAX_TOKEN   WHISPER_MAX_TOKEN

struct piece {
    uint16_t begin, len;
};

/* Raw bytes of all tokens, and a hash of them to ids. */
struct table {
    const struct sotto_allocator * allocator;
    uint8_t * bytes;
    size_t bytes_size;
    size_t * ends; /* n */
    uint32_t * slots;
    size_t n, n_slots;
    uint64_t seed;
};

/* ---- the table ---- */

static const uint8_t * token(const struct table * t, size_t id, size_t * len) {
    size_t begin = id > 0 ? t->ends[id - 1] : 0;
    *len = t->ends[id] - begin;
    return t->bytes + begin;
}

static size_t hash(const struct table * t, const uint8_t * text, size_t len) {
    uint64_t h = t->seed;
    for (size_t i = 0; i < len; i++)
        h = (h ^ text[i]) * 0x9e3779b97f4a7c15u ^ h >> 29;
    return (size_t)(h ^ h >> 32) & (t->n_slots - 1);
}

/* Id of a text, SIZE_MAX if it is no token. */
static size_t find(const struct table * t, const uint8_t * text, size_t len) {
    for (size_t i = hash(t, text, len); t->slots[i] != 0; i = (i + 1) & (t->n_slots - 1)) {
        size_t n;
        const uint8_t * s = token(t, t->slots[i] - 1, &n);
        if (n == len && memcmp(s, text, len) == 0)
            return t->slots[i] - 1;
    }
    return SIZE_MAX;
}

static enum sotto_status add_token(struct table * t, const char * spelling, size_t id, size_t * used) {
    if (strlen(spelling) > 2 * MAX_TOKEN)
        return sotto_fail(SOTTO_E_MODEL_VOCAB, "sotto_convert: token %zu is too long", id);
    int64_t n = sotto_i_alphabet_decode(spelling, t->bytes + *used);
    if (n < 0 || n > MAX_TOKEN)
        return sotto_fail(SOTTO_E_MODEL_VOCAB, "sotto_convert: token %zu, '%s', is no text in the byte alphabet", id,
                          sotto_i_models_show(spelling, strlen(spelling)).text);
    if (n > 0 && find(t, t->bytes + *used, (size_t)n) != SIZE_MAX)
        return sotto_fail(SOTTO_E_MODEL_VOCAB, "sotto_convert: token %zu, '%s', stands twice", id,
                          sotto_i_models_show(spelling, strlen(spelling)).text);
    t->ends[id] = *used + (size_t)n;
    if (n > 0) {
        size_t i = hash(t, t->bytes + *used, (size_t)n);
        while (t->slots[i] != 0)
            i = (i + 1) & (t->n_slots - 1);
        t->slots[i] = (uint32_t)id + 1;
    }
    *used += (size_t)n;
    return SOTTO_OK;
}

static enum sotto_status make_table(struct table * t, const char * const * tokens, size_t n) {
    t->n = n;
    t->n_slots = 1024;
    while (t->n_slots < 2 * n)
        t->n_slots *= 2;
    t->seed = (uint64_t)(uintptr_t)t * 0x9e3779b97f4a7c15u ^ (uint64_t)time(NULL);
    t->bytes_size = 1;
    for (size_t i = 0; i < n; i++)
        t->bytes_size += strlen(tokens[i]);
    t->bytes = sotto_malloc(t->allocator, t->bytes_size, 1);
    t->ends = sotto_malloc(t->allocator, n, sizeof(*t->ends));
    t->slots = sotto_calloc(t->allocator, t->n_slots, sizeof(*t->slots));
    if (t->bytes == NULL || t->ends == NULL || t->slots == NULL)
        return SOTTO_E_MEMORY;
    size_t used = 0;
    for (size_t i = 0; i < n; i++) {
        enum sotto_status status = add_token(t, tokens[i], i, &used);
        if (status != SOTTO_OK)
            return status;
    }
    return SOTTO_OK;
}

static void free_table(struct table * t) {
    sotto_mfree(t->allocator, t->bytes, t->bytes_size, 1);
    sotto_mfree(t->allocator, t->ends, t->n, sizeof(*t->ends));
    sotto_mfree(t->allocator, t->slots, t->n_slots, sizeof(*t->slots));
}

/* ---- splitting ---- */

/* Rank of pieces i and i + 1 joined, if it is below `limit`; else SIZE_MAX. */
static size_t rank_of(const struct table * t, const uint8_t * text, const struct piece * p, size_t limit) {
    size_t id = find(t, text + p[0].begin, (size_t)p[0].len + p[1].len);
    return id < limit ? id : SIZE_MAX;
}

/* Encode a token by those below it; the number of pieces left. */
static size_t encode(const struct table * t, size_t limit, struct piece * p, size_t * ranks) {
    size_t n;
    const uint8_t * text = token(t, limit, &n);
    for (size_t i = 0; i < n; i++)
        p[i] = (struct piece){ (uint16_t)i, 1 };
    for (size_t i = 0; i + 1 < n; i++)
        ranks[i] = rank_of(t, text, p + i, limit);
    while (n > 1) {
        size_t best = 0;
        for (size_t i = 1; i + 1 < n; i++)
            best = ranks[i] < ranks[best] ? i : best;
        if (ranks[best] == SIZE_MAX)
            break;
        p[best].len = (uint16_t)(p[best].len + p[best + 1].len);
        memmove(p + best + 1, p + best + 2, (n - best - 2) * sizeof(*p));
        memmove(ranks + best, ranks + best + 1, (n - best - 2) * sizeof(*ranks));
        n--;
        if (best + 1 < n)
            ranks[best] = rank_of(t, text, p + best, limit);
        if (best > 0)
            ranks[best - 1] = rank_of(t, text, p + best - 1, limit);
    }
    return n;
}

/* Ids of the two parts of token `id`. */
static enum sotto_status parts_of(const struct table * t, size_t id, size_t parts[2]) {
    struct piece pieces[MAX_TOKEN];
    size_t ranks[MAX_TOKEN];
    size_t len;
    const uint8_t * text = token(t, id, &len);
    bool two = len > 1 && encode(t, id, pieces, ranks) == 2;
    for (int i = 0; i < 2 && two; i++) {
        parts[i] = find(t, text + pieces[i].begin, pieces[i].len);
        two = parts[i] < id;
    }
    if (two)
        return SOTTO_OK;
    return sotto_fail(SOTTO_E_MODEL_VOCAB, "sotto_convert: token %zu is not made of two lower ones", id);
}

static enum sotto_status reserve(const struct sotto_allocator * allocator, const char * const * tokens, size_t n,
                                 struct bpe_merges * out) {
    /* both parts together are as long as the token; a space and a 0 come on top */
    out->text_size = 1;
    for (size_t i = FIRST_MERGE; i < n; i++)
        out->text_size += strlen(tokens[i]) + 2;
    out->cap = n - FIRST_MERGE;
    out->text = sotto_malloc(allocator, out->text_size, 1);
    out->merges = sotto_malloc(allocator, out->cap, sizeof(*out->merges));
    return out->text != NULL && out->merges != NULL ? SOTTO_OK : SOTTO_E_MEMORY;
}

static enum sotto_status make_merges(const struct table * t, const char * const * tokens, struct bpe_merges * out) {
    char * at = out->text;
    for (size_t id = FIRST_MERGE; id < t->n; id++) {
        if (tokens[id][0] == 0)
            continue;
        size_t parts[2];
        enum sotto_status status = parts_of(t, id, parts);
        if (status != SOTTO_OK)
            return status;
        out->merges[out->n++] = at;
        for (int i = 0; i < 2; i++) {
            size_t len = strlen(tokens[parts[i]]);
            memcpy(at, tokens[parts[i]], len);
            at[len] = i == 0 ? ' ' : 0;
            at += len + 1;
        }
    }
    return SOTTO_OK;
}

enum sotto_status sotto_i_bpe_merges(const struct sotto_allocator * allocator, const char * const * tokens, size_t n,
                                     struct bpe_merges * out) {
    *out = (struct bpe_merges){ 0 };
    if (n <= FIRST_MERGE)
        return sotto_fail(SOTTO_E_MODEL_VOCAB, "sotto_convert: %zu tokens do not hold all bytes", n);
    struct table t = { .allocator = allocator };
    enum sotto_status status = make_table(&t, tokens, n);
    if (status == SOTTO_OK)
        status = reserve(allocator, tokens, n, out);
    if (status == SOTTO_OK)
        status = make_merges(&t, tokens, out);
    free_table(&t);
    return status;
}

void sotto_i_bpe_merges_free(const struct sotto_allocator * allocator, struct bpe_merges * merges) {
    sotto_mfree(allocator, merges->text, merges->text_size, 1);
    sotto_mfree(allocator, merges->merges, merges->cap, sizeof(*merges->merges));
    *merges = (struct bpe_merges){ 0 };
}
