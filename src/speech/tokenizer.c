/* SPDX-License-Identifier: MIT */
/* The tokenizer puts together the vocabulary, the word split and byte pair encoding, and finds the ids of what is not
 * spoken. Ids from low to high: ordinary tokens, end of text, start of transcript, languages, six more specials,
 * no-timestamps, 1,501 timestamps. */
#include "tokenizer.h"

#include <stdio.h>
#include <string.h>

#include "bpe.h"
#include "languages.h"
#include "split.h"

#define N_ENGLISH    50256 /* ordinary tokens of the English-only vocabulary */
#define N_FIXED      51765 /* ids of it that are no language: ordinary, eight specials, timestamps */
#define N_TIMESTAMPS 1501  /* 0.00 .. 30.00 */
#define MAX_VOCAB    (1 << 24)

struct sotto_i_tokenizer {
    const struct sotto_allocator * allocator;
    struct sotto_i_specials specials;
    struct sotto_i_vocab vocab;
    int32_t blank;
    int32_t * non_speech;
    size_t non_speech_room;
    size_t n_non_speech;
};

/* ---- special tokens ---- */

enum sotto_status sotto_i_specials_init(int64_t n_vocab, struct sotto_i_specials * specials) {
    *specials = (struct sotto_i_specials){ .n_vocab = 0 };
    if (n_vocab < SOTTO_I_MIN_VOCAB || n_vocab > MAX_VOCAB)
        return sotto_fail(SOTTO_E_MODEL_HPARAMS, "tokenizer: a vocabulary of %lld tokens; Whisper's have %d or more",
                          (long long)n_vocab, SOTTO_I_MIN_VOCAB);
    int32_t n = (int32_t)n_vocab;
    int32_t multilingual = n > SOTTO_I_MIN_VOCAB ? 1 : 0;
    int32_t languages = n - N_FIXED - multilingual;
    struct sotto_i_specials * s = specials;
    s->n_vocab = n;
    s->multilingual = multilingual;
    s->n_languages = languages < SOTTO_I_N_LANGUAGES ? languages : SOTTO_I_N_LANGUAGES;
    s->eot = N_ENGLISH + multilingual;
    s->sot = s->eot + 1;
    s->language0 = s->sot + 1;
    s->translate = s->language0 + languages;
    s->transcribe = s->translate + 1;
    s->solm = s->translate + 2;
    s->prev = s->translate + 3;
    s->nosp = s->translate + 4;
    s->no_timestamps = s->translate + 5;
    s->beg = s->translate + 6;
    return SOTTO_OK;
}

/* How a special token is spelled, at most 31 characters. */
static void spell(const struct sotto_i_specials * s, int32_t id, char text[32]) {
    static const char * const after_languages[] = { "translate",   "transcribe", "startoflm",
                                                    "startofprev", "nospeech",   "notimestamps" };
    int32_t k = id - s->beg;
    if (id == s->eot)
        strcpy(text, "<|endoftext|>");
    else if (id == s->sot)
        strcpy(text, "<|startoftranscript|>");
    else if (k >= 0)
        snprintf(text, 32, "<|%d.%02d|>", (int)(k / 50), (int)(k % 50 * 2));
    else if (id >= s->translate)
        snprintf(text, 32, "<|%s|>", after_languages[id - s->translate]);
    else if (sotto_language_code(id - s->language0))
        snprintf(text, 32, "<|%s|>", sotto_language_code(id - s->language0));
    else
        snprintf(text, 32, "<|language %d|>", (int)(id - s->language0));
}

/* ---- non-speech symbols ---- */

static const char * const symbols[] = {
    "\"",  "#",  "(",  ")",  "*",   "+",  "/",  ":",   ";",   "<",  "=",  ">",  "@",  "[",   "\\",  "]",
    "^",   "_",  "`",  "{",  "|",   "}",  "~",  "「",  "」",  "『", "』", "<<", ">>", "<<<", ">>>", "--",
    "---", "-(", "-[", "('", "(\"", "((", "))", "(((", ")))", "[[", "]]", "{{", "}}", "♪♪",  "♪♪♪",
};
static const char * const musical[] = { "♩", "♪", "♫", "♬", "♭", "♮", "♯" };
static const char * const beginnings[] = { " -", " '" };

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static void insert_sorted(struct sotto_i_tokenizer * t, int32_t id) {
    size_t at = t->n_non_speech;
    while (at > 0 && t->non_speech[at - 1] > id)
        at--;
    if (at > 0 && t->non_speech[at - 1] == id)
        return;
    memmove(t->non_speech + at + 1, t->non_speech + at, (t->n_non_speech - at) * sizeof(*t->non_speech));
    t->non_speech[at] = id;
    t->n_non_speech++;
}

/* Add the first token of `space` and `symbol` together, if it is the only one or any number will do. */
static enum sotto_status add_first(struct sotto_i_tokenizer * t, const char * space, const char * symbol, bool any) {
    char text[32];
    int32_t first = 0;
    size_t count;
    int length = snprintf(text, sizeof(text), "%s%s", space, symbol);
    enum sotto_status status = sotto_i_tokenizer_encode(t, text, (size_t)length, &first, 1, &count);
    if (status == SOTTO_OK && (any || count == 1))
        insert_sorted(t, first);
    return status;
}

static enum sotto_status add_all(struct sotto_i_tokenizer * t, const char * const * list, size_t n, bool any) {
    for (size_t i = 0; i < n; i++) {
        enum sotto_status status = add_first(t, "", list[i], any);
        if (status == SOTTO_OK)
            status = add_first(t, " ", list[i], any);
        if (status != SOTTO_OK)
            return status;
    }
    return SOTTO_OK;
}

static enum sotto_status find_non_speech(struct sotto_i_tokenizer * t) {
    t->non_speech_room = 2 * (COUNT(symbols) + COUNT(musical)) + COUNT(beginnings);
    t->non_speech = sotto_malloc(t->allocator, t->non_speech_room, sizeof(*t->non_speech));
    if (!t->non_speech)
        return SOTTO_E_MEMORY;
    enum sotto_status status = add_all(t, symbols, COUNT(symbols), false);
    if (status == SOTTO_OK)
        status = add_all(t, musical, COUNT(musical), true);
    for (size_t i = 0; status == SOTTO_OK && i < COUNT(beginnings); i++)
        status = add_first(t, "", beginnings[i], true);
    return status;
}

/* ---- life ---- */

static enum sotto_status add_ordinary(struct sotto_i_tokenizer * t, enum sotto_i_alphabet alphabet,
                                      sotto_i_spelling spelling, void * user_data) {
    for (int32_t id = 0; id < t->specials.eot; id++) {
        size_t size = 0;
        const char * text = spelling(user_data, id, &size);
        if (!text)
            return sotto_fail(SOTTO_E_MODEL_VOCAB, "tokenizer: the file has no token %d", (int)id);
        enum sotto_status status = alphabet == SOTTO_I_ALPHABET_GPT2 ? sotto_i_vocab_add_spelled(&t->vocab, text, size)
                                                                     : sotto_i_vocab_add(&t->vocab, text, size);
        if (status != SOTTO_OK)
            return status;
    }
    return SOTTO_OK;
}

static enum sotto_status add_specials(struct sotto_i_tokenizer * t) {
    for (int32_t id = t->specials.eot; id < t->specials.n_vocab; id++) {
        char text[32];
        spell(&t->specials, id, text);
        enum sotto_status status = sotto_i_vocab_add(&t->vocab, text, strlen(text));
        if (status != SOTTO_OK)
            return status;
    }
    return SOTTO_OK;
}

static enum sotto_status fill(struct sotto_i_tokenizer * t, enum sotto_i_alphabet alphabet, sotto_i_spelling spelling,
                              void * user_data) {
    enum sotto_status status = sotto_i_vocab_init(&t->vocab, t->specials.n_vocab, t->allocator);
    if (status == SOTTO_OK)
        status = add_ordinary(t, alphabet, spelling, user_data);
    if (status == SOTTO_OK)
        status = add_specials(t);
    if (status == SOTTO_OK)
        status = sotto_i_vocab_index(&t->vocab, t->specials.eot);
    if (status != SOTTO_OK)
        return status;
    t->blank = sotto_i_vocab_find(&t->vocab, " ", 1);
    return find_non_speech(t);
}

enum sotto_status sotto_i_tokenizer_new(int64_t n_vocab, enum sotto_i_alphabet alphabet, sotto_i_spelling spelling,
                                        void * user_data, const struct sotto_allocator * allocator,
                                        struct sotto_i_tokenizer ** out) {
    struct sotto_i_specials specials;
    *out = NULL;
    enum sotto_status status = sotto_i_specials_init(n_vocab, &specials);
    if (status != SOTTO_OK)
        return status;
    struct sotto_i_tokenizer * t = sotto_calloc(allocator, 1, sizeof(*t));
    if (!t)
        return SOTTO_E_MEMORY;
    t->allocator = allocator;
    t->specials = specials;
    status = fill(t, alphabet, spelling, user_data);
    if (status != SOTTO_OK) {
        sotto_i_tokenizer_free(t);
        return status;
    }
    *out = t;
    return SOTTO_OK;
}

void sotto_i_tokenizer_free(struct sotto_i_tokenizer * tokenizer) {
    if (!tokenizer)
        return;
    sotto_i_vocab_free(&tokenizer->vocab);
    sotto_mfree(tokenizer->allocator, tokenizer->non_speech, tokenizer->non_speech_room,
                sizeof(*tokenizer->non_speech));
    sotto_mfree(tokenizer->allocator, tokenizer, 1, sizeof(*tokenizer));
}

/* ---- use ---- */

enum sotto_status sotto_i_tokenizer_encode(const struct sotto_i_tokenizer * tokenizer, const char * text, size_t size,
                                           int32_t * ids, size_t capacity, size_t * count) {
    struct sotto_i_bpe bpe = { .allocator = tokenizer->allocator };
    enum sotto_status status = SOTTO_OK;
    *count = 0;
    for (size_t at = 0; at < size && status == SOTTO_OK;) {
        size_t length = sotto_i_split_next(text + at, size - at);
        status = sotto_i_bpe_encode(&bpe, &tokenizer->vocab, text + at, length, ids, capacity, count);
        at += length;
    }
    sotto_i_bpe_free(&bpe);
    return status;
}

const char * sotto_i_tokenizer_bytes(const struct sotto_i_tokenizer * tokenizer, int32_t id, size_t * size) {
    *size = 0;
    if (id < 0 || id >= tokenizer->specials.n_vocab)
        return NULL;
    return sotto_i_vocab_bytes(&tokenizer->vocab, id, size);
}

const struct sotto_i_specials * sotto_i_tokenizer_specials(const struct sotto_i_tokenizer * tokenizer) {
    return &tokenizer->specials;
}

const int32_t * sotto_i_tokenizer_non_speech(const struct sotto_i_tokenizer * tokenizer, int * count) {
    *count = (int)tokenizer->n_non_speech;
    return tokenizer->non_speech;
}

int32_t sotto_i_tokenizer_blank(const struct sotto_i_tokenizer * tokenizer) { return tokenizer->blank; }
