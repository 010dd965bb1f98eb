/* SPDX-License-Identifier: MIT */
/* How good is a transcript? Normalised text, word and character errors, and whether one run beats another.
 *
 *     struct sotto_eval_params params = sotto_eval_default_params();
 *     params.language = "en";
 *     struct sotto_eval_score score;
 *     if (sotto_eval_score(reference, strlen(reference), text, strlen(text), &params, &score) == SOTTO_OK)
 *         errors += score.words.substitutions + score.words.deletions + score.words.insertions;
 *
 * Error rates are errors / units of the reference, summed over all clips and not averaged. Nothing here needs a model.
 * All functions may be called from any thread. */
#ifndef SOTTO_EVAL_H
#define SOTTO_EVAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sotto/alloc.h"

#ifdef __cplusplus
extern "C" {
#endif

struct sotto_eval_params {
    uint32_t size;                            /* sizeof(struct sotto_eval_params) */
    const struct sotto_allocator * allocator; /* NULL = default */
    const char * language; /* code or name as sotto_language_id takes it; NULL or unknown = none in particular */
    bool strip_accents;    /* leave out marks above and below letters; English always does */
};
SOTTO_API struct sotto_eval_params sotto_eval_default_params(void);

/* Bring a text into the form in which Whisper's authors count errors, so that spelling is not counted as hearing:
 *   English   lower case, no remarks in brackets, contractions and titles in full, numbers in digits, no punctuation;
 *             British spellings are left
 *   others    lower case, no remarks in brackets, normal form KC, marks, symbols and punctuation become spaces;
 *             Chinese, Japanese, Thai, Lao, Burmese and Cantonese are cut into characters (grapheme clusters)
 * Ill-formed UTF-8 counts as punctuation. `*normalised` has `*normalised_size` bytes and a 0 behind them and is given
 * back with sotto_mfree(allocator, *normalised, *normalised_size + 1, 1). NULLARG, PARAM, MEMORY. */
SOTTO_API enum sotto_status sotto_eval_normalise(const char * text, size_t size,
                                                 const struct sotto_eval_params * params, char ** normalised,
                                                 size_t * normalised_size);

enum sotto_eval_unit {
    SOTTO_EVAL_WORDS = 0,     /* what white space sets apart */
    SOTTO_EVAL_CHARACTERS = 1 /* code points, white space inside too, at both ends not */
};

/* Of an alignment with the fewest errors: reference units = hits + substitutions + deletions. */
struct sotto_eval_counts {
    int64_t hits;
    int64_t substitutions;
    int64_t deletions;  /* only in the reference */
    int64_t insertions; /* only in the hypothesis */
};

/* Align two texts as they are. Of several alignments the one that jiwer takes. NULLARG, PARAM, MEMORY. */
SOTTO_API enum sotto_status sotto_eval_count(const char * reference, size_t reference_size, const char * hypothesis,
                                             size_t hypothesis_size, enum sotto_eval_unit unit,
                                             const struct sotto_allocator * allocator,
                                             struct sotto_eval_counts * counts);

struct sotto_eval_score {
    struct sotto_eval_counts words;
    struct sotto_eval_counts characters; /* in languages that are cut into characters: the same as words */
};

/* Normalise both and count both. NULLARG, PARAM, MEMORY. */
SOTTO_API enum sotto_status sotto_eval_score(const char * reference, size_t reference_size, const char * hypothesis,
                                             size_t hypothesis_size, const struct sotto_eval_params * params,
                                             struct sotto_eval_score * score);

/* One clip in two runs. */
struct sotto_eval_pair {
    int64_t units;     /* of the reference */
    int64_t errors[2]; /* of the first and the second run */
};

struct sotto_eval_interval {
    double difference; /* rate of the first run less that of the second */
    double low, high;  /* in which it lies with the given confidence */
};

/* Paired bootstrap: clips are drawn with replacement n_draws times; the interval holds the middle of the differences
 * found. The same seed gives the same interval. 0 < confidence < 1, n_draws > 0, n_pairs > 0, counts not negative and
 * some units (PARAM); NULLARG, MEMORY. */
SOTTO_API enum sotto_status sotto_eval_bootstrap(const struct sotto_eval_pair * pairs, size_t n_pairs, size_t n_draws,
                                                 double confidence, uint64_t seed,
                                                 const struct sotto_allocator * allocator,
                                                 struct sotto_eval_interval * interval);

#ifdef __cplusplus
}
#endif
#endif
