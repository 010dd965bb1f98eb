/* SPDX-License-Identifier: MIT */
/* Models in GGUF: opened, and then run.
 *
 * Input: one byte that chooses a small model (bits 0 and 1, or bit 5) and says whether weights are checked (bit 2), whether
 * it runs twice (bit 3), and whether memory runs out while it is opened (bit 4, then a u8 says after how many requests);
 * then changes to its file, each of
 *   kind u8 % 4, index u16, length u8 % 8, that many bytes and one more
 *     0   a field of the metadata: by its number, or if that is 0x8000 and more, of pair or tensor number index & 0xFFF,
 *         its value (8), key (9), type (A); its name (B), first extent (C), type (D), as the upper four bits say
 *     1   the data of tensor `index` % 64, at an offset u16, the bytes sixteen times
 *     2   the text of the tokens, at 32 * index
 *     3   the file ends at byte (index << 8) % its size
 * Property: such a file is refused with a status of its own, or is a model that encodes a window and decodes two tokens,
 * to the same bits if it does so twice. Memory is bounded and nothing stays. */
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "fuzz/unpack.h"
#include "fuzz/small_model.h"
#include "sotto/gguf.h"
#include "sotto/speech.h"

const size_t fuzz_replays = 2;

enum { MOST_FIELDS = 4096, N_MODELS = 5 };
enum { CHECK = 4, TWICE = 8, NO_MEMORY = 16, LAST_MODEL = 32 };

struct span {
    size_t at, size;
};

/* What is looked for by number; see the top. */
enum part { VALUE, KEY, PAIR_TYPE, NAME, EXTENT, TENSOR_TYPE, N_PARTS };

struct model {
    struct fuzz_file file;
    uint8_t * bytes;
    size_t size;
    struct span fields[MOST_FIELDS];
    size_t n_fields;
    struct span parts[N_PARTS][256];
    size_t n_parts[N_PARTS];
    struct span tokens;
    struct span data[64];
    size_t n_data;
};

static struct model models[N_MODELS];

/* ---- the model's file, which is known to be good ---- */

static uint64_t number(const struct model * m, size_t at, size_t width) {
    uint64_t value = 0;
    memcpy(&value, m->bytes + at, width);
    return value;
}

/* A field of the metadata; where the next one begins. */
static size_t field(struct model * m, size_t at, size_t size) {
    fuzz_holds(m->n_fields < MOST_FIELDS);
    m->fields[m->n_fields++] = (struct span){ at, size };
    return at + size;
}

/* The newest field but `back` has this part as well. */
static void note(struct model * m, enum part part, size_t back) {
    fuzz_holds(m->n_parts[part] < 256);
    m->parts[part][m->n_parts[part]++] = m->fields[m->n_fields - 1 - back];
}

static size_t text_field(struct model * m, size_t at) {
    const size_t size = (size_t)number(m, at, 8);
    return field(m, field(m, at, 8), size);
}

static size_t skip_strings(const struct model * m, size_t at, uint64_t n) {
    for (; n > 0; n--)
        at += 8 + (size_t)number(m, at, 8);
    return at;
}

static size_t array_fields(struct model * m, size_t at) {
    const enum sotto_gguf_type type = (enum sotto_gguf_type)number(m, at, 4);
    const uint64_t n = number(m, at + 4, 8);
    at = field(m, field(m, at, 4), 8);
    if (type != SOTTO_GGUF_TYPE_STRING)
        return at + sotto_gguf_type_size(type) * n;
    const size_t end = skip_strings(m, at, n);
    if (end - at > m->tokens.size)
        m->tokens = (struct span){ at, end - at };
    return end;
}

static size_t pair_fields(struct model * m, size_t at) {
    at = text_field(m, at);
    note(m, KEY, 0);
    const enum sotto_gguf_type type = (enum sotto_gguf_type)number(m, at, 4);
    at = field(m, at, 4);
    note(m, PAIR_TYPE, 0);
    if (type == SOTTO_GGUF_TYPE_ARRAY)
        at = array_fields(m, at);
    else
        at = type == SOTTO_GGUF_TYPE_STRING ? text_field(m, at) : field(m, at, sotto_gguf_type_size(type));
    note(m, VALUE, 0);
    return at;
}

static size_t info_fields(struct model * m, size_t at) {
    at = text_field(m, at);
    note(m, NAME, 0);
    const uint64_t rank = number(m, at, 4);
    at = field(m, at, 4);
    for (uint64_t i = 0; i < rank; i++)
        at = field(m, at, 8);
    note(m, EXTENT, rank - 1);
    at = field(m, field(m, at, 4), 8);
    note(m, TENSOR_TYPE, 1);
    return at;
}

static void find_fields(struct model * m) {
    const uint64_t n_tensors = number(m, 8, 8), n_pairs = number(m, 16, 8);
    size_t at = field(m, field(m, field(m, field(m, 0, 4), 4), 8), 8);
    for (uint64_t i = 0; i < n_pairs; i++)
        at = pair_fields(m, at);
    for (uint64_t i = 0; i < n_tensors; i++)
        at = info_fields(m, at);
}

static void find_data(struct model * m) {
    struct sotto_gguf_context * gguf = sotto_gguf_open(m->file.path, NULL);
    fuzz_holds(gguf != NULL);
    for (int64_t i = 0; i < sotto_gguf_get_n_tensors(gguf) && m->n_data < 64; i++)
        m->data[m->n_data++] = (struct span){ sotto_gguf_get_data_offset(gguf) + sotto_gguf_get_tensor_offset(gguf, i),
                                              sotto_gguf_get_tensor_size(gguf, i) };
    sotto_gguf_free(gguf);
}

static struct model * prepare(unsigned i) {
    static const enum sotto_type types[N_MODELS] = { SOTTO_TYPE_F32, SOTTO_TYPE_F16, SOTTO_TYPE_Q8_0, SOTTO_TYPE_Q4_0,
                                                     SOTTO_TYPE_BF16 };
    struct model * m = &models[i];
    if (m->bytes != NULL)
        return m;
    const char * path = fuzz_path("small.gguf");
    fuzz_small_model(path, types[i]);
    FILE * file = fopen(path, "rb");
    fuzz_holds(file != NULL && fseek(file, 0, SEEK_END) == 0);
    m->size = (size_t)ftell(file);
    rewind(file);
    m->bytes = malloc(m->size);
    fuzz_holds(m->bytes != NULL && fread(m->bytes, 1, m->size, file) == m->size);
    fclose(file);
    m->file = fuzz_file_new();
    fuzz_file_set(&m->file, m->bytes, m->size);
    find_fields(m);
    find_data(m);
    return m;
}

/* ---- changes ---- */

struct change {
    struct span spans[256];
    size_t n;
    bool cut;
};

static void write_at(const struct model * m, struct change * done, size_t at, const uint8_t * bytes, size_t n) {
    n = at > m->size ? 0 : n < m->size - at ? n : m->size - at;
    if (n == 0 || done->n == sizeof(done->spans) / sizeof(done->spans[0]))
        return;
    fuzz_holds(pwrite(m->file.fd, bytes, n, (off_t)at) == (ssize_t)n);
    done->spans[done->n++] = (struct span){ at, n };
}

static size_t place_of(const struct model * m, size_t index) {
    if (index < 0x8000)
        return m->fields[index % m->n_fields].at;
    const size_t part = (index >> 12) % N_PARTS; /* 8 is 2 there */
    const size_t which = (part + N_PARTS - 2) % N_PARTS;
    return m->parts[which][(index & 0xFFF) % m->n_parts[which]].at;
}

static void change_once(const struct model * m, struct change * done, struct fuzz_input * in) {
    const unsigned kind = (unsigned)fuzz_take(in, 1) % 4;
    const size_t index = (size_t)fuzz_take(in, 2);
    size_t n = (size_t)fuzz_take(in, 1) % 8 + 1;
    const size_t offset = kind == 1 ? (size_t)fuzz_take(in, 2) : 0;
    const uint8_t * bytes = fuzz_take_bytes(in, &n);
    const struct span * data = &m->data[index % m->n_data];
    if (kind == 0)
        write_at(m, done, place_of(m, index), bytes, n);
    for (size_t i = 0; kind == 1 && i < 16; i++)
        write_at(m, done, data->at + (offset + i * n) % data->size, bytes, n);
    if (kind == 2)
        write_at(m, done, m->tokens.at + 32 * index % m->tokens.size, bytes, n);
    if (kind == 3 && !done->cut) {
        fuzz_holds(ftruncate(m->file.fd, (off_t)((index << 8) % m->size)) == 0);
        done->cut = true;
    }
}

static void undo(const struct model * m, const struct change * done) {
    if (done->cut)
        fuzz_file_set(&m->file, m->bytes, m->size);
    for (size_t i = 0; i < done->n && !done->cut; i++) {
        const struct span * s = &done->spans[i];
        fuzz_holds(pwrite(m->file.fd, m->bytes + s->at, s->size, (off_t)s->at) == (ssize_t)s->size);
    }
}

/* ---- running ---- */

/* Logits of the second token. */
static void run(const struct sotto_model * model, float * logits) {
    struct sotto_state_params params = sotto_state_default_params();
    struct sotto_state * state;
    params.n_threads = 1;
    fuzz_holds(sotto_state_new(model, &params, &state) == SOTTO_OK);
    const int n_mels = sotto_model_n_mels(model);
    float * mel = calloc((size_t)n_mels * 64, sizeof(*mel));
    fuzz_holds(mel != NULL);
    for (int i = 0; i < n_mels * 64; i++)
        mel[i] = (float)(i * 37 % 41) / 20.0f - 1.0f;
    fuzz_holds(sotto_set_mel(state, mel, 64, n_mels) == SOTTO_OK);
    free(mel);
    fuzz_holds(sotto_encode(state) == SOTTO_OK);
    const int32_t first = sotto_token_special(model, SOTTO_TOKEN_SOT), second = 300;
    fuzz_holds(sotto_decode(state, &first, 1, 0) == SOTTO_OK);
    fuzz_holds(sotto_decode(state, &second, 1, 1) == SOTTO_OK);
    memcpy(logits, sotto_get_logits(state), (size_t)sotto_model_n_vocab(model) * sizeof(*logits));
    sotto_state_free(state);
}

static void run_often(const struct sotto_model * model, bool twice) {
    const int n = sotto_model_n_vocab(model);
    float * a = malloc((size_t)n * sizeof(*a));
    float * b = malloc((size_t)n * sizeof(*b));
    fuzz_holds(a != NULL && b != NULL);
    run(model, a);
    if (twice)
        run(model, b);
    for (int i = 0; twice && i < n; i++)
        fuzz_holds(memcmp(&a[i], &b[i], sizeof(*a)) == 0 || (isnan(a[i]) && isnan(b[i])));
    free(a);
    free(b);
}

/* All that can be asked about it is within bounds. */
static void look_at(const struct sotto_model * model) {
    const int n_vocab = sotto_model_n_vocab(model);
    fuzz_holds(sotto_model_name(model) != NULL && sotto_model_width(model) > 0 && sotto_model_memory(model) > 0);
    fuzz_holds(sotto_model_n_audio_ctx(model) == 1500 && sotto_model_n_text_ctx(model) >= 8);
    fuzz_holds(sotto_model_n_audio_layers(model) > 0 && sotto_model_n_text_layers(model) > 0);
    fuzz_holds(sotto_model_weight_type(model) < SOTTO_TYPE_COUNT);
    fuzz_holds(sotto_model_n_languages(model) == (sotto_model_is_multilingual(model) ? n_vocab - 51766 : 99));
    for (int i = 0; i <= SOTTO_TOKEN_BEG; i++) {
        const int32_t id = sotto_token_special(model, (enum sotto_special_token)i);
        fuzz_holds(id >= 0 && id < n_vocab && sotto_token_text(model, id, NULL) != NULL);
    }
    fuzz_holds(sotto_token_language(model, 0) > 0 && sotto_token_language(model, -1) == -1);
    int32_t tokens[8];
    size_t n;
    fuzz_holds(sotto_tokenize(model, "a text", 6, tokens, 8, &n) == SOTTO_OK && n <= 6);
}

/* `refuse`: the request for memory that fails, 0 if none does. */
static void open_and_run(const struct model * m, unsigned mode, long refuse) {
    struct counting_allocator memory;
    counting_allocator_init(&memory);
    atomic_store(&memory.refuse, refuse);
    struct sotto_model_params params = sotto_model_default_params();
    params.allocator = &memory.base;
    params.check_weights = (mode & CHECK) != 0;
    struct sotto_model * model;
    sotto_clear_last_error();
    const enum sotto_status status = sotto_model_open(m->file.path, &params, &model);
    fuzz_holds((model != NULL) == (status == SOTTO_OK) && sotto_last_error() == status);
    fuzz_holds((status == SOTTO_E_MEMORY) == (atomic_load(&memory.refused) > 0));
    atomic_store(&memory.refuse, 0);
    if (model != NULL) {
        look_at(model);
        run_often(model, (mode & TWICE) != 0);
    }
    sotto_model_free(model);
    fuzz_memory_done(&memory);
}

int LLVMFuzzerTestOneInput(const uint8_t * bytes, size_t n) {
    struct fuzz_input in = { bytes, n };
    const unsigned mode = (unsigned)fuzz_take(&in, 1);
    const struct model * m = prepare(mode & LAST_MODEL ? N_MODELS - 1 : mode & 3);
    const long refuse = mode & NO_MEMORY ? 1 + (long)fuzz_take(&in, 1) : 0;
    struct change done = { .n = 0 };
    while (in.left > 0)
        change_once(m, &done, &in);
    open_and_run(m, mode, refuse);
    undo(m, &done);
    return 0;
}
