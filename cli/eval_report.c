/* SPDX-License-Identifier: MIT */
/* What an evaluation found, for people and as JSON; the other run it is compared with. */
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "sotto/alloc.h"
#include "sotto/speech.h"

#include "cli/eval_set.h"

enum { N_WORST = 20, N_DRAWS = 10000, SEED = 1 };

/* Sums over clips. Errors where the reference has no words are no part of rates. */
struct totals {
    size_t n_clips, n_failed, n_empty, n_stripped, n_told, n_right;
    double seconds, compute;
    struct sotto_eval_counts words, characters;
    int64_t inserted; /* words, where there were none */
};

struct sotto_eval_params eval_params(const struct eval_set * set, const struct eval_clip * clip) {
    struct sotto_eval_params params = sotto_eval_default_params();
    params.language = clip->language[0] != 0 ? clip->language : sotto_language_code(clip->found);
    params.strip_accents = set->options->strip_accents || clip->strip_accents;
    return params;
}

/* ---- the other run ---- */

static const char * heard_by_other(const json_t * clips, const char * audio) {
    for (size_t i = 0; i < json_array_size(clips); i++) {
        const json_t * clip = json_array_get(clips, i);
        const char * name = json_string_value(json_object_get(clip, "audio"));
        if (name != NULL && strcmp(name, audio) == 0)
            return json_string_value(json_object_get(clip, "heard"));
    }
    return NULL;
}

static bool compare_clip(const struct eval_set * set, struct eval_clip * clip, const char * heard) {
    struct sotto_eval_params params = eval_params(set, clip);
    struct sotto_eval_score between;
    size_t size = strlen(heard);
    if (sotto_eval_score(clip->text, strlen(clip->text), heard, size, &params, &clip->other) != SOTTO_OK ||
        sotto_eval_score(heard, size, clip->heard, clip->heard_size, &params, &between) != SOTTO_OK) {
        print_last_error();
        return false;
    }
    clip->compared = true;
    clip->same = eval_errors(&between.words) == 0;
    return true;
}

bool eval_read_other(struct eval_set * set, const char * path) {
    json_error_t error;
    set->other = json_load_file(path, 0, &error);
    if (set->other == NULL)
        fprintf(stderr, "sotto: %s: line %d: %s\n", path, error.line, error.text);
    else if (!json_is_array(json_object_get(set->other, "clips")))
        fprintf(stderr, "sotto: %s: no \"clips\" in it; give what sotto eval --json wrote\n", path);
    else
        return true;
    return false;
}

bool eval_score_other(struct eval_set * set) {
    const json_t * clips = json_object_get(set->other, "clips");
    for (size_t i = 0; i < set->n_clips; i++) {
        struct eval_clip * clip = &set->clips[i];
        const char * heard = clip->done ? heard_by_other(clips, clip->audio) : NULL;
        if (heard != NULL && !compare_clip(set, clip, heard))
            return false;
    }
    return true;
}

struct comparison {
    size_t n_clips, n_same;
    bool known; /* there was something to draw from */
    struct sotto_eval_interval interval;
};

static bool compare_runs(const struct eval_set * set, struct comparison * found) {
    *found = (struct comparison){ 0 };
    struct sotto_eval_pair * pairs = sotto_malloc(NULL, set->n_clips, sizeof(struct sotto_eval_pair));
    int64_t units = 0;
    size_t n = 0;
    for (size_t i = 0; i < set->n_clips && pairs != NULL; i++) {
        const struct eval_clip * clip = &set->clips[i];
        found->n_clips += clip->compared;
        found->n_same += clip->compared && clip->same;
        int64_t words = eval_units(&clip->score.words);
        if (!clip->compared || words == 0)
            continue;
        pairs[n++] =
            (struct sotto_eval_pair){ words, { eval_errors(&clip->score.words), eval_errors(&clip->other.words) } };
        units += words;
    }
    found->known = units > 0;
    bool well = pairs != NULL && (!found->known || sotto_eval_bootstrap(pairs, n, N_DRAWS, 0.95, SEED, NULL,
                                                                        &found->interval) == SOTTO_OK);
    sotto_mfree(NULL, pairs, set->n_clips, sizeof(struct sotto_eval_pair));
    if (!well)
        print_last_error();
    return well;
}

/* ---- sums ---- */

static void add_counts(struct sotto_eval_counts * to, const struct sotto_eval_counts * counts) {
    to->hits += counts->hits;
    to->substitutions += counts->substitutions;
    to->deletions += counts->deletions;
    to->insertions += counts->insertions;
}

static void add_clip(struct totals * sum, const struct eval_clip * clip, bool stripped) {
    sum->n_clips++;
    sum->n_stripped += stripped;
    if (!clip->done) {
        sum->n_failed++;
        return;
    }
    sum->seconds += clip->seconds;
    sum->compute += clip->compute;
    if (clip->detected && clip->language[0] != 0) {
        sum->n_told++;
        sum->n_right += sotto_language_id(clip->language) == clip->found;
    }
    if (eval_units(&clip->score.words) == 0) {
        sum->n_empty++;
        sum->inserted += clip->score.words.insertions;
        return;
    }
    add_counts(&sum->words, &clip->score.words);
    add_counts(&sum->characters, &clip->score.characters);
}

/* Of the clips in one language; -1 = of all. */
static struct totals sum_up(const struct eval_set * set, int language) {
    struct totals sum = { 0 };
    for (size_t i = 0; i < set->n_clips; i++) {
        if (language < 0 || sotto_language_id(set->clips[i].language) == language)
            add_clip(&sum, &set->clips[i], eval_params(set, &set->clips[i]).strip_accents);
    }
    return sum;
}

static double rate(const struct sotto_eval_counts * counts) {
    int64_t units = eval_units(counts);
    return units > 0 ? (double)eval_errors(counts) / (double)units : 0;
}

/* ---- for people ---- */

static void put_rate(FILE * to, const char * name, const struct sotto_eval_counts * counts) {
    fprintf(to,
            "%-9s %6.2f %%  %" PRId64 " of %" PRId64 ": %" PRId64 " substituted, %" PRId64 " deleted, %" PRId64
            " inserted\n",
            name, 100 * rate(counts), eval_errors(counts), eval_units(counts), counts->substitutions, counts->deletions,
            counts->insertions);
}

static void put_totals(FILE * to, const struct totals * sum) {
    fprintf(to, "clips     %zu", sum->n_clips);
    if (sum->n_failed > 0)
        fprintf(to, ", %zu of which failed", sum->n_failed);
    fprintf(to, "\nsound     %.1f s in %.1f s, real-time factor %.3f\n", sum->seconds, sum->compute,
            sum->seconds > 0 ? sum->compute / sum->seconds : 0);
    put_rate(to, "WER", &sum->words);
    put_rate(to, "CER", &sum->characters);
    if (sum->n_empty > 0)
        fprintf(to, "silent    %zu clips without words in the list, %" PRId64 " words heard there, not counted above\n",
                sum->n_empty, sum->inserted);
    if (sum->n_told > 0)
        fprintf(to, "language  found right in %zu of %zu clips\n", sum->n_right, sum->n_told);
    fprintf(to, "texts     normalised as Whisper's authors do, spellings left");
    if (sum->n_stripped > 0)
        fprintf(to, ", accents taken off in %zu clips", sum->n_stripped);
    putc('\n', to);
}

static void put_languages(FILE * to, const struct eval_set * set, size_t n_all) {
    const char * code;
    for (int id = 0; (code = sotto_language_code(id)) != NULL; id++) {
        struct totals sum = sum_up(set, id);
        if (sum.n_clips > 0 && sum.n_clips < n_all)
            put_rate(to, code, &sum.words);
    }
}

/* More errors first; of as many, the order of the list. */
static int compare_clips(const void * a, const void * b) {
    const struct eval_clip * x = *(const struct eval_clip * const *)a;
    const struct eval_clip * y = *(const struct eval_clip * const *)b;
    int64_t more = eval_errors(&y->score.words) - eval_errors(&x->score.words);
    return more != 0 ? (more > 0) - (more < 0) : (x > y) - (x < y);
}

static void put_worst_clip(FILE * to, const struct eval_clip * clip) {
    fprintf(to, "\n  %" PRId64 " errors, %" PRId64 " words  ", eval_errors(&clip->score.words),
            eval_units(&clip->score.words));
    put_utf8(to, clip->audio, strlen(clip->audio));
    fputs("\n    list:  ", to);
    put_utf8(to, clip->text, strlen(clip->text));
    fputs("\n    heard: ", to);
    size_t blank = strspn(clip->heard, " ");
    put_utf8(to, clip->heard + blank, clip->heard_size - blank);
    putc('\n', to);
}

static bool put_worst(FILE * to, const struct eval_set * set) {
    const struct eval_clip ** order = sotto_malloc(NULL, set->n_clips, sizeof(*order));
    if (order == NULL) {
        print_last_error();
        return false;
    }
    size_t n = 0;
    for (size_t i = 0; i < set->n_clips; i++) {
        if (eval_errors(&set->clips[i].score.words) > 0)
            order[n++] = &set->clips[i];
    }
    qsort(order, n, sizeof(*order), compare_clips);
    if (n > 0)
        fprintf(to, "\nworst clips\n");
    for (size_t i = 0; i < n && i < N_WORST; i++)
        put_worst_clip(to, order[i]);
    sotto_mfree(NULL, order, set->n_clips, sizeof(*order));
    return true;
}

static bool put_comparison(FILE * to, const struct eval_set * set) {
    struct comparison found;
    if (!compare_runs(set, &found))
        return false;
    fprintf(to, "\nagainst %s\n  the same text in %zu of %zu clips\n", set->options->against, found.n_same,
            found.n_clips);
    if (found.known)
        fprintf(to, "  word errors %+.2f points, 95 %% interval %+.2f .. %+.2f\n", 100 * found.interval.difference,
                100 * found.interval.low, 100 * found.interval.high);
    return true;
}

bool eval_report(const struct eval_set * set, FILE * to) {
    struct totals sum = sum_up(set, -1);
    put_totals(to, &sum);
    put_languages(to, set, sum.n_clips);
    return (set->options->against == NULL || put_comparison(to, set)) && put_worst(to, set);
}

/* ---- JSON ---- */

static void put_string(FILE * to, const char * name, const char * text, size_t size) {
    fprintf(to, "\"%s\":", name);
    put_json_string(to, text, size);
}

static void put_counts(FILE * to, const char * name, const struct sotto_eval_counts * counts) {
    fprintf(to,
            ",\"%s\":{\"units\":%" PRId64 ",\"hits\":%" PRId64 ",\"substitutions\":%" PRId64 ",\"deletions\":%" PRId64
            ",\"insertions\":%" PRId64 ",\"rate\":%.6f}",
            name, eval_units(counts), counts->hits, counts->substitutions, counts->deletions, counts->insertions,
            rate(counts));
}

static void put_clip(FILE * to, const struct eval_clip * clip, bool stripped) {
    const char * found = sotto_language_code(clip->found);
    putc('{', to);
    put_string(to, "audio", clip->audio, strlen(clip->audio));
    putc(',', to);
    put_string(to, "text", clip->text, strlen(clip->text));
    if (clip->done) {
        putc(',', to);
        put_string(to, "heard", clip->heard, clip->heard_size);
        fprintf(to, ",\"language\":\"%s\",\"detected\":%s,\"accents_stripped\":%s", found != NULL ? found : "",
                clip->detected ? "true" : "false", stripped ? "true" : "false");
        fprintf(to, ",\"seconds\":%.3f,\"compute_seconds\":%.3f", clip->seconds, clip->compute);
        put_counts(to, "words", &clip->score.words);
        put_counts(to, "characters", &clip->score.characters);
    }
    putc('}', to);
}

static bool put_json_comparison(FILE * to, const struct eval_set * set) {
    struct comparison found;
    if (!compare_runs(set, &found))
        return false;
    fputs(",\"against\":{", to);
    put_string(to, "file", set->options->against, strlen(set->options->against));
    fprintf(to, ",\"clips\":%zu,\"same_text\":%zu", found.n_clips, found.n_same);
    if (found.known)
        fprintf(to, ",\"difference\":%.6f,\"low\":%.6f,\"high\":%.6f,\"confidence\":0.95", found.interval.difference,
                found.interval.low, found.interval.high);
    putc('}', to);
    return true;
}

bool eval_report_json(const struct eval_set * set, FILE * to) {
    struct totals sum = sum_up(set, -1);
    fputs("{\"normaliser\":\"whisper\",\"spelling\":null,\"clips\":[\n", to);
    for (size_t i = 0; i < set->n_clips; i++) {
        put_clip(to, &set->clips[i], eval_params(set, &set->clips[i]).strip_accents);
        fputs(i + 1 < set->n_clips ? ",\n" : "\n", to);
    }
    fprintf(to,
            "],\"failed\":%zu,\"seconds\":%.3f,\"compute_seconds\":%.3f,\"silent\":{\"clips\":%zu,\"words\":%" PRId64
            "},\"languages\":{\"told\":%zu,\"right\":%zu}",
            sum.n_failed, sum.seconds, sum.compute, sum.n_empty, sum.inserted, sum.n_told, sum.n_right);
    put_counts(to, "words", &sum.words);
    put_counts(to, "characters", &sum.characters);
    bool well = set->options->against == NULL || put_json_comparison(to, set);
    fputs("}\n", to);
    return well;
}
