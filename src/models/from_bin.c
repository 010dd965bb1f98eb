/* SPDX-License-Identifier: MIT */
/* whisper.cpp's .bin as a source: a flat stream without lengths or checksums, all little-endian.
 *
 *   header       12 x i32: magic, tokens, positions, width, heads, layers of both stacks, mel bands, type
 *   filters      i32 bands, i32 bins, bands x bins f32
 *   vocabulary   i32 count, count x (u32 length, raw bytes)
 *   tensors      i32 axes, i32 length of the name, i32 type, axes x i32 (fastest first), name, values; to the end
 *
 * Only descriptions are read here; values stay in the file. */
#include <math.h>
#include <string.h>

#include "sotto/log.h"

#include "models/models_impl.h"

#define MAX_VOCABULARY ((uint64_t)64 << 20)
#define LEAST_WORDS    50256
#define N_BINS         201
#define VAD_TYPE       10 /* length of "silero-16k", where a speech model has its number of tokens */

struct reader {
    struct whisper_source * source;
    struct models_cursor in;
};

static const char * file(const struct reader * r) { return r->source->path; }

static enum sotto_status read_i32(struct reader * r, int64_t * value, const char * what) {
    uint64_t bits;
    enum sotto_status status = sotto_i_models_number(&r->in, &bits, 4, what);
    *value = (int32_t)(uint32_t)bits;
    return status;
}

/* Are n bytes left? */
static enum sotto_status need(const struct reader * r, uint64_t n, const char * what) {
    if (n <= sotto_i_models_left(&r->in))
        return SOTTO_OK;
    return sotto_i_models_truncated(r->in.stream, r->in.at, n, what);
}

/* ---- header ---- */

/* ftype is 1000 * version of the block layouts + a hint at the types of tensors, which say it themselves. */
static enum sotto_status check_ftype(const struct reader * r, int64_t ftype) {
    static const bool known[25] = {
        [0] = true,  [1] = true,  [2] = true,  [3] = true,  [7] = true,  [8] = true, [9] = true,
        [10] = true, [11] = true, [12] = true, [13] = true, [14] = true, [24] = true
    };
    int64_t version = ftype / 1000;
    int64_t hint = ftype % 1000;
    if (hint < 0 || hint >= 25 || !known[hint])
        return sotto_fail(SOTTO_E_MODEL_TENSOR_TYPE, "sotto_convert: %s: ftype %lld is unknown", file(r),
                          (long long)ftype);
    if (version == 0 || version == 2)
        return SOTTO_OK;
    return sotto_fail(SOTTO_E_MODEL_QUANT_VERSION,
                      "sotto_convert: %s has block layouts of version %lld; read are 0 and 2: quantise it anew",
                      file(r), (long long)version);
}

static enum sotto_status read_header(struct reader * r) {
    struct whisper_sizes * s = &r->source->sizes;
    int64_t magic, text_width, ftype;
    int64_t * const fields[] = { &magic,          &s->n_vocab,      &s->audio_ctx, &s->width,
                                 &s->audio_heads, &s->audio_layers, &s->text_ctx,  &text_width,
                                 &s->text_heads,  &s->text_layers,  &s->n_mels,    &ftype };
    enum sotto_status status = SOTTO_OK;
    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]) && status == SOTTO_OK; i++) {
        status = read_i32(r, fields[i], "the header");
        if (status == SOTTO_OK && i == 1 && s->n_vocab == VAD_TYPE)
            status = sotto_fail(SOTTO_E_MODEL_ARCH,
                                "sotto_convert: %s finds voices (VAD); give a speech recognition model", file(r));
    }
    if (status == SOTTO_OK && text_width != s->width)
        status = sotto_fail(SOTTO_E_MODEL_HPARAMS, "sotto_convert: %s: the widths %lld and %lld differ", file(r),
                            (long long)s->width, (long long)text_width);
    return status == SOTTO_OK ? check_ftype(r, ftype) : status;
}

/* ---- filters: sotto calculates its own ---- */

static enum sotto_status compare_filters(struct reader * r, int n_mels, float * own) {
    enum sotto_status status = sotto_mel_filters(n_mels, own);
    double worst = 0;
    for (int i = 0; i < n_mels * N_BINS && status == SOTTO_OK; i++) {
        uint64_t bits;
        status = sotto_i_models_number(&r->in, &bits, 4, "the filters");
        float stored;
        memcpy(&stored, &(uint32_t){ (uint32_t)bits }, sizeof(stored));
        double difference = fabs((double)stored - (double)own[i]);
        worst = difference <= worst ? worst : difference;
    }
    if (status == SOTTO_OK && !(worst <= 1e-6))
        sotto_log(SOTTO_LOG_WARN, "sotto_convert: %s: its mel filters are up to %g off; sotto uses its own\n", file(r),
                  worst);
    return status;
}

static enum sotto_status read_filters(struct reader * r) {
    int64_t bands, bins;
    enum sotto_status status = read_i32(r, &bands, "the number of filters");
    if (status == SOTTO_OK)
        status = read_i32(r, &bins, "the number of bins");
    if (status != SOTTO_OK)
        return status;
    if (bands != r->source->sizes.n_mels || bins != N_BINS)
        return sotto_fail(SOTTO_E_MODEL_FILTERS, "sotto_convert: %s: filters of %lld x %lld, expected %lld x %d",
                          file(r), (long long)bands, (long long)bins, (long long)r->source->sizes.n_mels, N_BINS);
    size_t n = (size_t)bands * N_BINS;
    status = need(r, n * 4, "the filters");
    if (status != SOTTO_OK)
        return status;
    float * own = sotto_malloc(r->source->allocator, n, sizeof(*own));
    if (own == NULL)
        return SOTTO_E_MEMORY;
    status = compare_filters(r, (int)bands, own);
    sotto_mfree(r->source->allocator, own, n, sizeof(*own));
    return status;
}

/* ---- vocabulary ---- */

static enum sotto_status bad_vocabulary(const struct reader * r, const char * what, uint64_t number) {
    return sotto_fail(SOTTO_E_MODEL_VOCAB, "sotto_convert: the vocabulary of %s: %s (%llu)", file(r), what,
                      (unsigned long long)number);
}

/* Walk over the entries: their bytes into *total, or, once that is known, their spellings into the source. */
static enum sotto_status walk_vocabulary(struct reader * r, int64_t count, uint64_t * total, bool store) {
    uint8_t bytes[WHISPER_MAX_TOKEN];
    char * out = r->source->text;
    *total = 0;
    for (int64_t id = 0; id < count; id++) {
        uint64_t len;
        enum sotto_status status = sotto_i_models_number(&r->in, &len, 4, "a token");
        if (status != SOTTO_OK)
            return status;
        if (len > WHISPER_MAX_TOKEN)
            return bad_vocabulary(r, "an entry is longer than 1024 bytes", len);
        status = sotto_i_models_next(&r->in, bytes, (size_t)len, "a token");
        if (status != SOTTO_OK)
            return status;
        *total += len;
        if (store) {
            r->source->tokens[id] = out;
            out += sotto_i_alphabet_encode(bytes, (size_t)len, out) + 1;
        }
    }
    return SOTTO_OK;
}

/* Ids that the file leaves out have to be specials, whose spellings follow from their numbers, or the empty word. */
static enum sotto_status read_vocabulary(struct reader * r) {
    int64_t count;
    uint64_t total;
    enum sotto_status status = read_i32(r, &count, "the number of tokens");
    if (status != SOTTO_OK)
        return status;
    if (count < 0 || count > r->source->sizes.n_vocab)
        return bad_vocabulary(r, "impossible number of entries", (uint64_t)count);
    if (count < LEAST_WORDS)
        return bad_vocabulary(r, "too few entries", (uint64_t)count);
    status = need(r, (uint64_t)count * 4, "the vocabulary");
    uint64_t begin = r->in.at;
    if (status == SOTTO_OK)
        status = walk_vocabulary(r, count, &total, false);
    if (status != SOTTO_OK)
        return status;
    if (total > MAX_VOCABULARY)
        return bad_vocabulary(r, "more than 64 MiB", total);
    r->source->text_size = (size_t)total * 2 + (size_t)count + 1;
    r->source->text = sotto_malloc(r->source->allocator, r->source->text_size, 1);
    if (r->source->text == NULL)
        return SOTTO_E_MEMORY;
    r->in.at = begin;
    return walk_vocabulary(r, count, &total, true);
}

/* ---- tensors ---- */

struct record {
    int64_t rank, name_len, type;
    int64_t ne[4]; /* fastest first */
    uint64_t items;
    char name[256];
};

static enum sotto_status corrupt(const struct reader * r, const char * what, int64_t number) {
    return sotto_fail(SOTTO_E_MODEL_CORRUPT, "sotto_convert: %s: a tensor before byte %llu has %s %lld", file(r),
                      (unsigned long long)r->in.at, what, (long long)number);
}

static enum sotto_status read_axes(struct reader * r, struct record * rec) {
    rec->items = 1;
    for (int i = 0; i < 4; i++)
        rec->ne[i] = 1;
    for (int i = 0; i < rec->rank; i++) {
        enum sotto_status status = read_i32(r, &rec->ne[i], "an axis");
        if (status != SOTTO_OK)
            return status;
        if (rec->ne[i] < 1)
            return corrupt(r, "an axis of", rec->ne[i]);
        if (rec->items > (uint64_t)INT64_MAX / 8 / (uint64_t)rec->ne[i])
            return corrupt(r, "too many values, an axis of", rec->ne[i]);
        rec->items *= (uint64_t)rec->ne[i];
    }
    return SOTTO_OK;
}

static enum sotto_status read_record(struct reader * r, struct record * rec) {
    enum sotto_status status = need(r, 12, "a tensor");
    if (status == SOTTO_OK)
        status = read_i32(r, &rec->rank, "a tensor");
    if (status == SOTTO_OK)
        status = read_i32(r, &rec->name_len, "a tensor");
    if (status == SOTTO_OK)
        status = read_i32(r, &rec->type, "a tensor");
    if (status != SOTTO_OK)
        return status;
    if (rec->rank < 0 || rec->rank > 4)
        return corrupt(r, "a number of axes of", rec->rank);
    if (rec->name_len < 1 || rec->name_len > 255)
        return corrupt(r, "a name of length", rec->name_len);
    status = read_axes(r, rec);
    if (status == SOTTO_OK)
        status = sotto_i_models_next(&r->in, rec->name, (size_t)rec->name_len, "the name of a tensor");
    rec->name[rec->name_len] = 0;
    return status;
}

/* The file drops axes of length 1, and writes convolution biases as [d, 1]. */
static bool fits(const struct record * rec, const struct whisper_tensor * t) {
    int skip = rec->rank == 2 && t->rank == 1 && rec->ne[0] == 1 ? 1 : 0;
    for (int i = 0; i < 4; i++) {
        int64_t wanted = i < skip ? 1 : i - skip < t->rank ? t->shape[t->rank - 1 - (i - skip)] : 1;
        if (rec->ne[i] != wanted)
            return false;
    }
    return rec->rank >= 1;
}

static bool known_type(int64_t type) {
    return type == SOTTO_TYPE_BF16 || (type >= 0 && type <= SOTTO_TYPE_Q6_K && type != SOTTO_TYPE_Q8_1 &&
                                       sotto_blck_size((enum sotto_type)type) > 0);
}

/* Rows have to be whole blocks. */
static enum sotto_status check_type(const struct reader * r, const struct record * rec, struct whisper_tensor * t) {
    if (!known_type(rec->type))
        return sotto_fail(
            SOTTO_E_MODEL_TENSOR_TYPE,
            "sotto_convert: %s: '%s' before byte %llu has the type %lld (%s), which is none of these files", file(r),
            rec->name, (unsigned long long)r->in.at, (long long)rec->type,
            rec->type < 0 || rec->type > INT32_MAX ? "unknown" : sotto_type_name((enum sotto_type)rec->type));
    t->source_type = (enum sotto_type)rec->type;
    t->kept = t->source_type;
    if (rec->ne[0] % sotto_blck_size(t->source_type) == 0)
        return SOTTO_OK;
    return sotto_fail(SOTTO_E_MODEL_TENSOR_SHAPE,
                      "sotto_convert: %s: '%s' before byte %llu: rows of %lld are no whole blocks of %s", file(r),
                      rec->name, (unsigned long long)r->in.at, (long long)rec->ne[0], sotto_type_name(t->source_type));
}

static enum sotto_status place(struct reader * r, const struct record * rec, struct whisper_tensor * t) {
    if (t->found)
        return sotto_fail(SOTTO_E_MODEL_TENSOR_DUPLICATE, "sotto_convert: %s: '%s' occurs twice", file(r), rec->name);
    if (!fits(rec, t)) {
        uint64_t shape[4];
        for (int i = 0; i < rec->rank; i++)
            shape[i] = (uint64_t)rec->ne[rec->rank - 1 - i];
        return sotto_i_whisper_bad_shape(r->source, rec->name, (int)rec->rank, shape, t, 1);
    }
    enum sotto_status status = check_type(r, rec, t);
    if (status != SOTTO_OK)
        return status;
    uint64_t bytes = whisper_bytes(t->source_type, rec->items);
    status = need(r, bytes, rec->name);
    if (status != SOTTO_OK)
        return status;
    t->at = r->in.at;
    t->found = true;
    r->in.at += bytes;
    return SOTTO_OK;
}

static enum sotto_status read_tensors(struct reader * r) {
    struct record rec;
    if (sotto_i_models_left(&r->in) == 0)
        return sotto_fail(SOTTO_E_MODEL_TENSOR_MISSING,
                          "sotto_convert: %s ends at byte %llu: a vocabulary alone, without its %zu tensors", file(r),
                          (unsigned long long)r->in.at, r->source->n_tensors);
    while (sotto_i_models_left(&r->in) > 0) {
        enum sotto_status status = read_record(r, &rec);
        if (status != SOTTO_OK)
            return status;
        struct whisper_tensor * t = sotto_i_whisper_find(r->source, WHISPER_BIN, rec.name);
        if (t == NULL || strlen(rec.name) != (size_t)rec.name_len)
            return sotto_fail(SOTTO_E_MODEL_TENSOR_UNKNOWN,
                              "sotto_convert: %s: '%s' does not belong to a Whisper model", file(r),
                              sotto_i_models_show(rec.name, (size_t)rec.name_len).text);
        status = place(r, &rec, t);
        if (status != SOTTO_OK)
            return status;
    }
    return sotto_i_whisper_complete(r->source, WHISPER_BIN);
}

/* ---- the source ---- */

static enum sotto_status read_values(const struct whisper_source * source, const struct whisper_tensor * tensor,
                                     uint64_t first, size_t n, void * dst) {
    enum sotto_type type = tensor->source_type;
    return sotto_i_models_stream_read(source->self, tensor->at + whisper_bytes(type, first), dst,
                                      (size_t)whisper_bytes(type, n), sotto_i_whisper_name(tensor, WHISPER_BIN).text);
}

static void close_file(struct whisper_source * source) {
    sotto_i_models_stream_close(source->self);
    sotto_mfree(source->allocator, source->self, 1, sizeof(struct models_stream));
}

enum sotto_status sotto_i_from_bin(struct whisper_source * source, const char * path) {
    struct models_stream * stream = sotto_calloc(source->allocator, 1, sizeof(*stream));
    if (stream == NULL)
        return SOTTO_E_MEMORY;
    source->path = path;
    source->self = stream;
    source->read = read_values;
    source->close = close_file;
    struct reader r = { .source = source, .in = { .stream = stream } };
    enum sotto_status status = sotto_i_models_stream_open(stream, source->allocator, NULL, path);
    if (status == SOTTO_OK)
        status = read_header(&r);
    if (status == SOTTO_OK)
        status = sotto_i_whisper_layout(source);
    if (status == SOTTO_OK)
        status = read_filters(&r);
    if (status == SOTTO_OK)
        status = read_vocabulary(&r);
    return status == SOTTO_OK ? read_tensors(&r) : status;
}
