/* SPDX-License-Identifier: MIT */
/* Text to token ids and back: byte-level BPE in rank order (the id of a token is its rank), and the ids of the
 * special tokens, which follow from the size of the vocabulary alone. */
#ifndef SOTTO_SPEECH_TOKENIZER_H
#define SOTTO_SPEECH_TOKENIZER_H

#include "sotto/speech.h"

/* Where special ids lie. Timestamp k is beg + k and means k * 0.02 s, k = 0..1500. */
struct sotto_i_specials {
    int n_vocab;
    int n_languages; /* 99 or 100 */
    bool multilingual;
    int32_t eot, sot;
    int32_t language0; /* language i is language0 + i */
    int32_t translate, transcribe, solm, prev, nosp, no_timestamps, beg;
};

/* Smallest vocabulary that can be Whisper's; HPARAMS below it or where the ids do not fit. */
#define SOTTO_I_MIN_VOCAB 51864
enum sotto_status sotto_i_specials_init(int64_t n_vocab, struct sotto_i_specials * specials);

struct sotto_i_tokenizer;

/* Gives the spelling of token `id` and its size in bytes; NULL when the file has none. */
typedef const char * (*sotto_i_spelling)(void * user_data, int id, size_t * size);

enum sotto_i_alphabet {
    SOTTO_I_ALPHABET_BYTES = 0, /* spellings are the raw bytes */
    SOTTO_I_ALPHABET_GPT2 = 1   /* each byte is spelled as one printable character (spec 4.3) */
};

/* Take over the ordinary tokens (ids below eot), one call of `spelling` each; specials are spelled by rule
 * ("<|en|>", "<|1.08|>") whatever the file says. MODEL_VOCAB for an entry that is missing, over 1,024 bytes or not
 * in the alphabet; MEMORY. */
enum sotto_status sotto_i_tokenizer_new(int64_t n_vocab, enum sotto_i_alphabet alphabet, sotto_i_spelling spelling,
                                        void * user_data, const struct sotto_allocator * allocator,
                                        struct sotto_i_tokenizer ** out);
void sotto_i_tokenizer_free(struct sotto_i_tokenizer * tokenizer); /* NULL is allowed */

const struct sotto_i_specials * sotto_i_tokenizer_specials(const struct sotto_i_tokenizer * tokenizer);

/* Encode `size` bytes of text (any bytes; never gives special ids). Writes the first `capacity` ids, `*count` is how
 * many there are (at most `size`). MEMORY. Any thread. */
enum sotto_status sotto_i_tokenizer_encode(const struct sotto_i_tokenizer * tokenizer, const char * text, size_t size,
                                           int32_t * ids, size_t capacity, size_t * count);

/* Bytes of a token: raw for ordinary ones, the spelling for specials; 0-terminated besides (an ordinary token may
 * hold a 0 byte). NULL and size 0 outside the vocabulary. Valid as long as the tokenizer. Any thread. */
const char * sotto_i_tokenizer_bytes(const struct sotto_i_tokenizer * tokenizer, int32_t id, size_t * size);

/* The ids of non-speech symbols (spec 5.5), ascending, found once at _new. */
const int32_t * sotto_i_tokenizer_non_speech(const struct sotto_i_tokenizer * tokenizer, int * count);

/* Id of the token " " (a single space), which suppress_blank forbids. */
int32_t sotto_i_tokenizer_blank(const struct sotto_i_tokenizer * tokenizer);

#endif
