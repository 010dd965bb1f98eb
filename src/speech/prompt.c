/* SPDX-License-Identifier: MIT */
/* The prompt of a window (spec 5.3, 5.4):
 *
 *     [prev  hotwords  initial prompt, if carried  history]  sot  language  task  [no timestamps]  [0.00  prefix] */
#include <string.h>

#include "sotto/log.h"

#include "run.h"
#include "unicode.h"

#define WARM 0.5f /* from this temperature on earlier text is not used */

/* ---- lists of tokens ---- */

static void keep_newest(struct sotto_i_tokens * list, const int32_t * ids, int n) {
    if (n > SOTTO_I_MAX_HISTORY) {
        ids += n - SOTTO_I_MAX_HISTORY;
        n = SOTTO_I_MAX_HISTORY;
    }
    int drop = list->n + n > SOTTO_I_MAX_HISTORY ? list->n + n - SOTTO_I_MAX_HISTORY : 0;
    memmove(list->ids, list->ids + drop, (size_t)(list->n - drop) * sizeof(*ids));
    list->n -= drop;
    memcpy(list->ids + list->n, ids, (size_t)n * sizeof(*ids));
    list->n += n;
}

void sotto_i_run_keep_history(struct sotto_i_run * run, const int32_t * tokens, int n) {
    keep_newest(&run->history, tokens, n);
}

/* Which of a text's tokens are kept when there are too many. */
enum end { FIRST, NEWEST };

static void keep_end(struct sotto_i_tokens * list, const int32_t * ids, int n, int max, enum end end,
                     const char * field) {
    int keep = n < max ? n : max;
    if (keep < n)
        sotto_log(SOTTO_LOG_WARN, "sotto_transcribe: params.%s has %d tokens, its %s %d are used\n", field, n,
                  end == FIRST ? "first" : "last", keep);
    keep_newest(list, end == FIRST ? ids : ids + (n - keep), keep);
}

static enum sotto_status encode(struct sotto_i_run * r, size_t max_ids, struct sotto_i_tokens * list, int max,
                                enum end end, const char * field) {
    struct sotto_state * s = r->state;
    size_t n = 0;
    int32_t * ids = sotto_malloc(s->allocator, max_ids, sizeof(*ids));
    if (!ids)
        return SOTTO_E_MEMORY;
    enum sotto_status status =
        sotto_i_tokenizer_encode(s->model->tokenizer, s->scratch.data, s->scratch.size, ids, max_ids, &n);
    if (status == SOTTO_OK)
        keep_end(list, ids, (int)n, max, end, field);
    sotto_mfree(s->allocator, ids, max_ids, sizeof(*ids));
    return status;
}

static bool is_utf8(const char * text, size_t size) {
    uint32_t point = 0;
    for (size_t at = 0; at < size && point != UINT32_MAX;)
        at += sotto_i_utf8_next(text + at, size - at, &point);
    return point != UINT32_MAX;
}

/* " " and the text without outer white space, as tokens; nothing for an empty text. */
static enum sotto_status add_text(struct sotto_i_run * r, const char * text, struct sotto_i_tokens * list, int max,
                                  enum end end, const char * field) {
    struct sotto_state * s = r->state;
    if (!text)
        return SOTTO_OK;
    size_t size = strlen(text);
    text = sotto_i_trim(text, &size);
    if (size == 0)
        return SOTTO_OK;
    if (size > INT32_MAX - 1)
        return sotto_fail(SOTTO_E_PARAM, "sotto_transcribe: params.%s must be shorter than 2 GiB", field);
    if (!is_utf8(text, size))
        sotto_log(SOTTO_LOG_WARN, "sotto_transcribe: params.%s is not UTF-8 throughout\n", field);
    s->scratch.size = 0;
    enum sotto_status status = sotto_i_bytes_append(&s->scratch, s->allocator, " ", 1);
    if (status == SOTTO_OK)
        status = sotto_i_bytes_append(&s->scratch, s->allocator, text, size);
    return status == SOTTO_OK ? encode(r, s->scratch.size, list, max, end, field) : status;
}

/* ---- before the first window ---- */

/* Most tokens of earlier text in a prompt, so that it leaves room in the context for what it introduces. */
static int history_limit(const struct sotto_i_run * r) {
    int room = r->state->model->hp.n_text_ctx - 6;
    int limit = r->params->n_max_text_ctx < SOTTO_I_MAX_PREVIOUS ? r->params->n_max_text_ctx : SOTTO_I_MAX_PREVIOUS;
    limit = limit < room ? limit : room;
    return limit > 1 ? limit - 1 : 0;
}

enum sotto_status sotto_i_run_set_prompts(struct sotto_i_run * run) {
    const struct sotto_transcribe_params * p = run->params;
    struct sotto_i_tokens * initial = p->carry_initial_prompt ? &run->initial : &run->history;
    int room = run->state->model->hp.n_text_ctx - 8;
    int max = SOTTO_I_MAX_HISTORY < room ? SOTTO_I_MAX_HISTORY : room > 0 ? room : 0;
    run->max_history = history_limit(run);
    if (p->n_prompt_tokens > 0)
        keep_end(initial, p->prompt_tokens, p->n_prompt_tokens, run->max_history, NEWEST, "prompt_tokens");
    enum sotto_status status = add_text(run, p->initial_prompt, initial, run->max_history, NEWEST, "initial_prompt");
    if (status == SOTTO_OK)
        status = add_text(run, p->hotwords, &run->hotwords, max, FIRST, "hotwords");
    return status == SOTTO_OK ? add_text(run, p->prefix, &run->prefix, max, FIRST, "prefix") : status;
}

/* ---- a prompt ---- */

struct writer {
    int32_t * ids;
    int n;
};

static void put(struct writer * w, int32_t id) { w->ids[w->n++] = id; }

static void put_all(struct writer * w, const int32_t * ids, int n) {
    memcpy(w->ids + w->n, ids, (size_t)n * sizeof(*ids));
    w->n += n;
}

static int least(int a, int b) { return a < b ? a : b; }

/* Everything before start-of-transcript, at most `room` tokens. */
static void put_previous(const struct sotto_i_run * r, bool warm, int room, struct writer * w) {
    int hot = r->prefix.n > 0 ? 0 : least(r->hotwords.n, room - 1);
    int left = least(r->max_history, SOTTO_I_MAX_HISTORY) - hot;
    left = least(left, room - 1 - hot);
    left = warm || left < 0 ? 0 : left;
    int initial = least(r->initial.n, left), history = least(r->history.n, left - initial);
    if (hot <= 0 && initial + history == 0)
        return;
    put(w, r->specials->prev);
    put_all(w, r->hotwords.ids, hot > 0 ? hot : 0);
    put_all(w, r->initial.ids + (r->initial.n - initial), initial);
    put_all(w, r->history.ids + (r->history.n - history), history);
}

void sotto_i_run_make_prompt(const struct sotto_i_run * run, float temperature, struct sotto_i_sample_params * sample) {
    struct writer w = { run->state->prompt, 0 };
    bool timestamps = run->filter.timestamps;
    int n_prefix = run->prefix.n > 0 ? run->prefix.n + timestamps : 0;
    int n_task = (run->specials->multilingual ? 3 : 1) + !timestamps;
    put_previous(run, temperature >= WARM, run->state->model->hp.n_text_ctx - n_task - n_prefix - 1, &w);
    sample->prompt = w.ids;
    sample->sot = w.n;
    put(&w, run->specials->sot);
    if (run->specials->multilingual) {
        put(&w, run->specials->language0 + run->state->language);
        put(&w, run->translate ? run->specials->translate : run->specials->transcribe);
    }
    if (!timestamps)
        put(&w, run->specials->no_timestamps);
    if (n_prefix > run->prefix.n)
        put(&w, run->specials->beg);
    put_all(&w, run->prefix.ids, run->prefix.n);
    sample->n_prompt = w.n;
    sample->n_prefix = n_prefix;
}
