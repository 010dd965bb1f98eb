/* SPDX-License-Identifier: MIT */
/* Vocabularies in JSON and text, and the tokenizers made of them.
 *
 * Input: one byte that says which file the vocabulary is (bits 0 and 1) and whether the model is multilingual (bit 2);
 * one with the length of a text, and the text; then the files, packed (fuzz/unpack.h).
 * Properties. A vocabulary is refused with a status of its own, or it has every word of Whisper; then merges and a
 * tokenizer can be made of it, or are refused likewise. Whatever strings the file holds, a vocabulary of the single bytes
 * and of these strings encodes any text into tokens that join to the same text. Merges, where there are any, give for
 * each token of more than one byte the two that it is made of. Memory is bounded and nothing stays. */
#include <string.h>
#include <unistd.h>

#include "fuzz/unpack.h"
#include "models/hf_impl.h"
#include "speech/bpe.h"
#include "speech/tokenizer.h"

const size_t fuzz_replays = 10;

enum { MOST_WORDS = 64, MOST_TEXT = 255 };

/* ---- the files ---- */

enum form { TOKENIZER_JSON, VOCAB_JSON, VOCABULARY_JSON, VOCABULARY_TXT };

static enum sotto_status read_files(struct whisper_source * source, enum form form, struct fuzz_input * in) {
    static const char * const names[] = { "tokenizer.json", "vocab.json", "vocabulary.json", "vocabulary.txt" };
    for (int i = 0; i < 4; i++)
        unlink(fuzz_path(names[i]));
    unlink(fuzz_path("added_tokens.json"));
    fuzz_unpack_to(in, names[form], FUZZ_MOST_TEXT);
    if (form == VOCAB_JSON && in->left > 0)
        fuzz_unpack_to(in, "added_tokens.json", FUZZ_MOST_TEXT);
    sotto_clear_last_error();
    return form < VOCABULARY_JSON ? sotto_i_hf_vocabulary(source, fuzz_folder())
                                  : sotto_i_ct2_vocabulary(source, fuzz_folder());
}

static const char * spelling(void * user_data, int id, size_t * size) {
    const struct whisper_source * source = user_data;
    *size = strlen(source->tokens[id]);
    return source->tokens[id];
}

static void use_tokenizer(const struct sotto_i_tokenizer * tokenizer, const uint8_t * text, size_t n) {
    int32_t ids[MOST_TEXT];
    size_t count, at = 0;
    fuzz_holds(sotto_i_tokenizer_encode(tokenizer, (const char *)text, n, ids, MOST_TEXT, &count) == SOTTO_OK);
    fuzz_holds(count <= n);
    for (size_t i = 0; i < count; i++) {
        size_t size;
        fuzz_holds(ids[i] >= 0 && ids[i] < sotto_i_tokenizer_specials(tokenizer)->eot);
        const char * bytes = sotto_i_tokenizer_bytes(tokenizer, ids[i], &size);
        fuzz_holds(size > 0 && size <= n - at && memcmp(bytes, text + at, size) == 0);
        at += size;
    }
    fuzz_holds(at == n);
}

static void use_source(struct whisper_source * source, const uint8_t * text, size_t n) {
    struct sotto_i_tokenizer * tokenizer;
    const enum sotto_status status = sotto_i_tokenizer_new(source->sizes.n_vocab, SOTTO_I_ALPHABET_GPT2, spelling,
                                                           source, source->allocator, &tokenizer);
    fuzz_holds(status == SOTTO_OK || status == SOTTO_E_MODEL_VOCAB);
    if (status == SOTTO_OK) {
        use_tokenizer(tokenizer, text, n);
        sotto_i_tokenizer_free(tokenizer);
    }
}

static void read_vocabulary(enum form form, bool multilingual, struct fuzz_input * in, const uint8_t * text, size_t n) {
    static const char * tokens[WHISPER_MIN_VOCAB + 1];
    struct counting_allocator memory;
    counting_allocator_init(&memory);
    struct whisper_source source = { .allocator = &memory.base, .path = "input", .tokens = tokens };
    source.sizes.n_vocab = WHISPER_MIN_VOCAB + multilingual;
    for (int i = 0; i < WHISPER_MIN_VOCAB + 1; i++)
        tokens[i] = "";
    const enum sotto_status status = read_files(&source, form, in);
    fuzz_holds(sotto_last_error() == status && status != SOTTO_E_MEMORY);
    if (status == SOTTO_OK)
        use_source(&source, text, n);
    source.tokens = NULL;
    sotto_i_whisper_source_free(&source);
    fuzz_memory_done(&memory);
}

/* ---- the strings alone: single bytes, then what stands between quotes or line ends ---- */

struct words {
    char spelled[256 + MOST_WORDS][2 * WHISPER_MAX_TOKEN + 8];
    const char * tokens[256 + MOST_WORDS];
    size_t n;
};

static void add_word(struct words * words, const uint8_t * from, size_t len) {
    if (len == 0 || len > WHISPER_MAX_TOKEN || words->n == 256 + MOST_WORDS || memchr(from, 0, len) != NULL)
        return;
    memcpy(words->spelled[words->n], from, len);
    words->spelled[words->n][len] = 0;
    words->tokens[words->n] = words->spelled[words->n];
    words->n++;
}

static void find_words(struct words * words, struct fuzz_input in) {
    for (words->n = 0; words->n < 256; words->n++) {
        fuzz_spell_token((unsigned)words->n, words->spelled[words->n]);
        words->tokens[words->n] = words->spelled[words->n];
    }
    size_t begin = 0;
    for (size_t i = 0; i < in.left; i++) {
        if (in.at[i] == '"' || in.at[i] == '\n') {
            add_word(words, in.at + begin, i - begin);
            begin = i + 1;
        }
    }
}

static void encode(const struct sotto_i_vocab * vocab, const struct sotto_allocator * allocator, const uint8_t * text,
                   size_t n) {
    struct sotto_i_bpe bpe = { .allocator = allocator };
    int32_t ids[MOST_TEXT];
    size_t count = 0, at = 0;
    fuzz_holds(sotto_i_bpe_encode(&bpe, vocab, (const char *)text, n, ids, MOST_TEXT, &count) == SOTTO_OK &&
               count <= n);
    for (size_t i = 0; i < count; i++) {
        size_t size;
        const char * bytes = sotto_i_vocab_bytes(vocab, ids[i], &size);
        fuzz_holds(size > 0 && size <= n - at && memcmp(bytes, text + at, size) == 0);
        fuzz_holds(sotto_i_vocab_find(vocab, bytes, size) == ids[i]);
        at += size;
    }
    fuzz_holds(at == n);
    sotto_i_bpe_free(&bpe);
}

static void use_words(const struct words * words, const uint8_t * text, size_t n) {
    struct counting_allocator memory;
    struct sotto_i_vocab vocab;
    counting_allocator_init(&memory);
    enum sotto_status status = sotto_i_vocab_init(&vocab, (int32_t)words->n, &memory.base);
    fuzz_holds(status == SOTTO_OK);
    for (size_t i = 0; i < words->n && status == SOTTO_OK; i++)
        status = sotto_i_vocab_add_spelled(&vocab, words->tokens[i], strlen(words->tokens[i]));
    fuzz_holds(status == SOTTO_OK || status == SOTTO_E_MODEL_VOCAB);
    if (status == SOTTO_OK) {
        fuzz_holds(sotto_i_vocab_index(&vocab, (int32_t)words->n) == SOTTO_OK);
        encode(&vocab, &memory.base, text, n);
    }
    sotto_i_vocab_free(&vocab);
    fuzz_memory_done(&memory);
}

/* "a b" is a token without its space. */
static void use_merges(const struct words * words) {
    struct counting_allocator memory;
    struct bpe_merges merges = { 0 };
    counting_allocator_init(&memory);
    const enum sotto_status status = sotto_i_bpe_merges(&memory.base, words->tokens, words->n, &merges);
    fuzz_holds(status == SOTTO_OK || status == SOTTO_E_MODEL_VOCAB);
    fuzz_holds(status != SOTTO_OK || merges.n == words->n - 256);
    for (size_t i = 0; i < merges.n && status == SOTTO_OK; i++) {
        const char * whole = words->tokens[256 + i];
        const char * space = strchr(merges.merges[i], ' ');
        fuzz_holds(space != NULL && strlen(merges.merges[i]) == strlen(whole) + 1);
        const size_t first = (size_t)(space - merges.merges[i]);
        fuzz_holds(memcmp(merges.merges[i], whole, first) == 0 && strcmp(space + 1, whole + first) == 0);
    }
    sotto_i_bpe_merges_free(&memory.base, &merges);
    fuzz_memory_done(&memory);
}

int LLVMFuzzerTestOneInput(const uint8_t * bytes, size_t n) {
    static struct words words;
    struct fuzz_input in = { bytes, n };
    const unsigned mode = (unsigned)fuzz_take(&in, 1);
    size_t text_size = (size_t)fuzz_take(&in, 1);
    const uint8_t * text = fuzz_take_bytes(&in, &text_size);
    find_words(&words, in);
    use_words(&words, text, text_size);
    use_merges(&words);
    read_vocabulary((enum form)(mode & 3), (mode & 4) != 0, &in, text, text_size);
    return 0;
}
