/* SPDX-License-Identifier: MIT */
/* sotto eval: the clips, their list, and the report. */
#ifndef SOTTO_CLI_EVAL_SET_H
#define SOTTO_CLI_EVAL_SET_H

#include "sotto/eval.h"

#include "cli/cli.h"

struct eval_clip {
    const char * audio;    /* as the list has it */
    const char * text;     /* what is said */
    const char * language; /* "" = the list does not tell */
    bool strip_accents;    /* the list says that the text lacks them */
    bool done;             /* it could be read and recognised; else what follows is empty */
    bool detected;         /* the recogniser was not told the language */
    int found;             /* the language it used */
    double seconds;        /* of sound */
    double compute;        /* seconds it took */
    char * heard;
    size_t heard_size; /* a 0 follows, which is not counted */
    struct sotto_eval_score score;
    bool compared; /* the other run has it too */
    bool same;     /* and heard the same, normalised */
    struct sotto_eval_score other;
};

struct eval_set {
    const struct options * options;
    char * file; /* the list, cut into strings */
    size_t file_size;
    struct eval_clip * clips;
    size_t n_clips, n_room; /* how many there are, and could be */
    struct json_t * other;  /* the other run, or NULL */
};

/* Read the list: tab-separated, UTF-8, a header line that names the columns audio, text and perhaps lang and accents,
 * which is "strip" for texts that lack them. false, with a message, if it is none. */
bool eval_read(struct eval_set * set, const char * path);
void eval_free(struct eval_set * set);

static inline int64_t eval_units(const struct sotto_eval_counts * counts) {
    return counts->hits + counts->substitutions + counts->deletions;
}
static inline int64_t eval_errors(const struct sotto_eval_counts * counts) {
    return counts->substitutions + counts->deletions + counts->insertions;
}

/* How a clip's texts are normalised. */
struct sotto_eval_params eval_params(const struct eval_set * set, const struct eval_clip * clip);

/* Read another run, a file that --json wrote: an object with clips, objects with audio and heard. false, with a
 * message, if it is none. */
bool eval_read_other(struct eval_set * set, const char * path);
/* Score its clips. false, with a message, if memory is short. */
bool eval_score_other(struct eval_set * set);

/* Print what was found. */
bool eval_report(const struct eval_set * set, FILE * to);
bool eval_report_json(const struct eval_set * set, FILE * to);

#endif
