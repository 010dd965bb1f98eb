/* SPDX-License-Identifier: MIT */
/* speech_vectors FILE: compare every stage of the recogniser with the stored numbers of a speech-vectors.json.
 *
 * The model is $SOTTO_MODELS/base-f32.gguf (default ~/.cache/sotto/models), the sound is looked for in $SOTTO_AUDIO
 * (default ~/.cache/sotto/audio) and in Debian's pocketsphinx-testdata. What the library cannot do yet is skipped and
 * counted by name. Ends with "N passed, N failed, N skipped"; 1 if a check failed, 2 if a file is missing. */
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sotto/media.h"
#include "sotto/speech.h"
#include "speech/mel.h"
#include "speech/search.h"
#include "sha256.h"
#include "tally.h"

#define LIBRIVOX "/usr/share/pocketsphinx/test/data/librivox"
#define T        SOTTO_I_WINDOW_FRAMES

enum { MAX_CLIPS = 16, MAX_TOKENS = 448, PATH_SIZE = 1024 };

struct clip {
    const char * name;
    json_t * node;
    struct sotto_audio * audio;
    const float * pcm;
    size_t n;
};

struct bench {
    struct tally tally;
    json_t * root;
    struct clip clips[MAX_CLIPS];
    int n_clips;
    char model_path[PATH_SIZE];
    struct sotto_model * model;
    struct sotto_state * state;
};

/* ---- json ---- */

static json_t * at(json_t * node, const char * key) { return json_object_get(node, key); }
static double number(json_t * node, const char * key) { return json_number_value(at(node, key)); }
static double item(json_t * array, size_t i) { return json_number_value(json_array_get(array, i)); }
static int index_at(json_t * array, size_t i) { return (int)json_integer_value(json_array_get(array, i)); }
static size_t length(json_t * node) { return json_array_size(node); }

/* Ids of an array; how many, at most MAX_TOKENS. */
static int ids_of(json_t * array, int32_t ids[MAX_TOKENS]) {
    int n = 0;
    for (size_t i = 0; i < length(array) && n < MAX_TOKENS; i++)
        ids[n++] = index_at(array, i);
    return n;
}

/* A call of the library inside a check. */
static bool went(struct bench * b, enum sotto_status status) {
    return tally_that(&b->tally, status == SOTTO_OK, "%s", sotto_last_error_text());
}

/* ---- sound ---- */

static bool find_sound(const char * file, char path[PATH_SIZE]) {
    const char * folder = getenv("SOTTO_AUDIO");
    if (folder)
        snprintf(path, PATH_SIZE, "%s/%s", folder, file);
    else
        snprintf(path, PATH_SIZE, "%s/.cache/sotto/audio/%s", getenv("HOME") ? getenv("HOME") : "", file);
    FILE * found = fopen(path, "rb");
    if (!found) {
        snprintf(path, PATH_SIZE, LIBRIVOX "/%s", file);
        found = fopen(path, "rb");
    }
    if (found)
        fclose(found);
    return found != NULL;
}

/* The samples as the file has them, 16 bits. */
static void hash_samples(const struct clip * clip, char hex[65]) {
    unsigned char * bytes = malloc(2 * clip->n + 1);
    hex[0] = 0;
    if (!bytes)
        return;
    for (size_t i = 0; i < clip->n; i++) {
        long sample = lrintf(clip->pcm[i] * 32768.0f);
        bytes[2 * i] = (unsigned char)(sample & 255);
        bytes[2 * i + 1] = (unsigned char)(sample >> 8 & 255);
    }
    sha256_hex(bytes, 2 * clip->n, hex);
    free(bytes);
}

/* False if the file is not there or cannot be read. */
static bool load_clip(struct bench * b, struct clip * clip) {
    char path[PATH_SIZE];
    char hex[65];
    const char * file = json_string_value(at(clip->node, "file"));
    if (!file || !find_sound(file, path) || !sha256_file_hex(path, hex)) {
        fprintf(stderr, "speech_vectors: clip %s: no file %s\n", clip->name, file ? file : "named");
        return false;
    }
    if (sotto_audio_load(path, NULL, &clip->audio) != SOTTO_OK) {
        fprintf(stderr, "speech_vectors: %s\n", sotto_last_error_text());
        return false;
    }
    clip->pcm = clip->audio->samples;
    clip->n = clip->audio->n_samples;
    tally_begin(&b->tally, "clips.%s.file", clip->name);
    tally_that(&b->tally, strcmp(hex, json_string_value(at(clip->node, "file_sha256"))) == 0,
               "%s is another file than the one measured", path);
    hash_samples(clip, hex);
    tally_that(&b->tally, strcmp(hex, json_string_value(at(clip->node, "pcm_s16_sha256"))) == 0,
               "the samples are others than those measured");
    tally_that(&b->tally, (double)clip->n == number(clip->node, "samples"), "%zu samples", clip->n);
    tally_that(&b->tally, clip->audio->rate == SOTTO_SAMPLE_RATE, "%d samples a second", clip->audio->rate);
    tally_end(&b->tally);
    return true;
}

static bool load_clips(struct bench * b) {
    const char * name;
    json_t * node;
    json_object_foreach(at(b->root, "clips"), name, node) {
        if (b->n_clips == MAX_CLIPS)
            break;
        struct clip * clip = &b->clips[b->n_clips++];
        *clip = (struct clip){ .name = name, .node = node };
        if (!load_clip(b, clip))
            return false;
    }
    return b->n_clips > 0;
}

static const struct clip * clip_named(const struct bench * b, const char * name) {
    for (int i = 0; name && i < b->n_clips; i++) {
        if (strcmp(b->clips[i].name, name) == 0)
            return &b->clips[i];
    }
    return NULL;
}

/* ---- spectrogram ---- */

struct moments {
    double mean, deviation, least, largest;
};

/* Of columns 0 .. n - 1 of n_bands rows of `stride` values. */
static struct moments moments_of(const float * values, size_t n_rows, size_t n, size_t stride) {
    struct moments m = { 0, 0, INFINITY, -INFINITY };
    double count = (double)n_rows * (double)n;
    for (size_t r = 0; r < n_rows; r++) {
        for (size_t i = 0; i < n; i++) {
            double v = values[r * stride + i];
            m.mean += v / count;
            m.least = fmin(m.least, v);
            m.largest = fmax(m.largest, v);
        }
    }
    for (size_t r = 0; r < n_rows; r++) {
        for (size_t i = 0; i < n; i++)
            m.deviation += (values[r * stride + i] - m.mean) * (values[r * stride + i] - m.mean) / count;
    }
    m.deviation = sqrt(m.deviation);
    return m;
}

static void check_mel_statistics(struct bench * b, json_t * e, const char * kind, const float * mel, size_t n_frames) {
    struct moments m = moments_of(mel, length(at(e, "band_means")), n_frames, T);
    const struct {
        const char * key;
        double value;
    } all[] = { { "content_mean", m.mean },
                { "content_std", m.deviation },
                { "content_min", m.least },
                { "content_max", m.largest } };
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        if (at(e, all[i].key))
            tally_near(&b->tally, kind, all[i].value, number(e, all[i].key), 1e-4, "%s", all[i].key);
    }
    for (size_t band = 0; band < length(at(e, "band_means")); band++)
        tally_near(&b->tally, kind, moments_of(mel + band * T, 1, n_frames, T).mean, item(at(e, "band_means"), band),
                   1e-4, "mean of band %zu", band);
}

static void check_mel_values(struct bench * b, json_t * e, const float * mel) {
    json_t * bands = at(b->root, "mel_bands");
    json_t * frames = at(e, "frames");
    for (size_t i = 0; i < length(bands); i++) {
        for (size_t j = 0; j < length(frames); j++) {
            int band = index_at(bands, i);
            int frame = index_at(frames, j);
            tally_near(&b->tally, "mel", mel[band * T + frame], item(json_array_get(at(e, "values"), i), j), 1e-4,
                       "band %d frame %d", band, frame);
        }
    }
}

/* What the public API does not show: the maximum, and band counts other than the model's. */
static void check_mel_directly(struct bench * b, const struct clip * clip, json_t * e, const char * kind, float * out) {
    int n_bands = (int)length(at(e, "band_means"));
    int content = (int)sotto_i_mel_content_frames(clip->n);
    sotto_backend_t backend = sotto_backend_cpu_init();
    struct sotto_i_mel * mel = NULL;
    float largest = 0;
    if (went(b, backend ? sotto_i_mel_new(n_bands, backend, NULL, &mel) : sotto_last_error()) &&
        went(b, sotto_i_mel_max(mel, clip->pcm, clip->n, &largest)) &&
        went(b, sotto_i_mel_window(mel, clip->pcm, clip->n, 0, content, largest, SOTTO_PAD_ZERO, out, NULL))) {
        tally_near(&b->tally, kind, largest, number(e, "max_log10"), 1e-4, "max_log10");
        if (at(e, "floor"))
            tally_near(&b->tally, kind, (largest - 8 + 4) / 4, number(e, "floor"), 1e-4, "floor");
        if (at(e, "frames_total"))
            tally_that(&b->tally, content + T == (int)number(e, "frames_total"), "%d frames in all", content + T);
        check_mel_statistics(b, e, kind, out, (size_t)content);
    }
    sotto_i_mel_free(mel);
    sotto_backend_free(backend);
}

static void check_mel(struct bench * b, const struct clip * clip, const char * key) {
    json_t * e = at(clip->node, key);
    size_t n = length(at(e, "band_means")) * T;
    float * out = malloc((n ? n : 1) * sizeof(*out));
    tally_begin(&b->tally, "clips.%s.%s", clip->name, key);
    if (tally_that(&b->tally, out != NULL && n > 0, "no bands or no memory"))
        check_mel_directly(b, clip, e, key, out);
    if (at(e, "values") && went(b, sotto_pcm_to_mel(b->state, clip->pcm, clip->n, 0, SOTTO_PAD_ZERO))) {
        check_mel_values(b, e, sotto_get_mel(b->state));
        tally_that(&b->tally, memcmp(out, sotto_get_mel(b->state), n * sizeof(*out)) == 0,
                   "the state's spectrogram has other bits");
    }
    tally_end(&b->tally);
    free(out);
}

/* ---- encoder ---- */

static double norm_of(const float * row, int n) {
    double sum = 0;
    for (int i = 0; i < n; i++)
        sum += (double)row[i] * row[i];
    return sqrt(sum);
}

static void check_norms(struct bench * b, json_t * positions, json_t * norms, const float * rows) {
    int width = sotto_model_width(b->model);
    for (size_t i = 0; i < length(positions); i++) {
        double expected = item(norms, i);
        double got = norm_of(rows + (size_t)index_at(positions, i) * (size_t)width, width);
        tally_near(&b->tally, "encoder norm (rel.)", got / expected, 1.0, 1e-3, "position %d", index_at(positions, i));
    }
}

static void check_encoder_statistics(struct bench * b, json_t * e, const float * rows) {
    size_t width = (size_t)sotto_model_width(b->model);
    size_t n = (size_t)sotto_model_n_audio_ctx(b->model);
    struct moments m = moments_of(rows, n, width, width);
    size_t peak = (size_t)index_at(at(e, "argmax"), 0) * width + (size_t)index_at(at(e, "argmax"), 1);
    tally_near(&b->tally, "encoder mean", m.mean, number(e, "mean"), 1e-5, "all");
    tally_near(&b->tally, "encoder deviation", m.deviation, number(e, "std"), 1e-4, "all");
    tally_near(&b->tally, "encoder", fmax(m.largest, -m.least), number(e, "max_abs"), 5e-3, "largest");
    tally_near(&b->tally, "encoder", fabs(rows[peak]), number(e, "max_abs"), 5e-3, "where the largest is");
}

/* The window in the state is the clip's and encoded. */
static void check_encoder(struct bench * b, const struct clip * clip) {
    json_t * e = at(clip->node, "encoder");
    json_t * channels = at(b->root, "encoder_channels");
    json_t * positions = at(e, "positions");
    const float * rows = sotto_get_encoder_output(b->state);
    size_t width = (size_t)sotto_model_width(b->model);
    tally_begin(&b->tally, "clips.%s.encoder", clip->name);
    for (size_t i = 0; i < length(positions); i++) {
        for (size_t j = 0; j < length(channels); j++) {
            double got = rows[(size_t)index_at(positions, i) * width + (size_t)index_at(channels, j)];
            tally_near(&b->tally, "encoder", got, item(json_array_get(at(e, "values"), i), j), 5e-3,
                       "position %d channel %d", index_at(positions, i), index_at(channels, j));
        }
    }
    check_norms(b, positions, at(e, "row_norms"), rows);
    check_encoder_statistics(b, e, rows);
    tally_end(&b->tally);
}

/* ---- logits ---- */

/* `top`: [id, value] in falling order; those that lie further apart than the tolerance keep their order, and nothing
 * else is larger than the last. */
static void check_top(struct bench * b, json_t * top, const float * logits, double limit) {
    size_t n = length(top);
    double last = item(json_array_get(top, n - 1), 1);
    size_t above = 0;
    for (size_t i = 0; i < n; i++) {
        int id = index_at(json_array_get(top, i), 0);
        double value = item(json_array_get(top, i), 1);
        tally_near(&b->tally, "logits", logits[id], value, limit, "top %zu, token %d", i, id);
        if (i + 1 < n && fabs(value - item(json_array_get(top, i + 1), 1)) > limit)
            tally_that(&b->tally, logits[id] > logits[index_at(json_array_get(top, i + 1), 0)],
                       "token %d is not before the next one", id);
    }
    for (int id = 0; id < sotto_model_n_vocab(b->model); id++)
        above += logits[id] > last + limit;
    tally_that(&b->tally, n > 0 && above <= n, "%zu tokens lie above the %zu largest", above, n);
}

static double log_sum_exp(const float * logits, int n) {
    double largest = -INFINITY;
    double sum = 0;
    for (int i = 0; i < n; i++)
        largest = fmax(largest, logits[i]);
    for (int i = 0; i < n; i++)
        sum += exp(logits[i] - largest);
    return largest + log(sum);
}

static void check_row(struct bench * b, json_t * e, const float * logits) {
    json_t * ids = at(b->root, "logit_ids");
    int n_vocab = sotto_model_n_vocab(b->model);
    check_top(b, at(e, "top"), logits, 2e-3);
    for (size_t i = 0; i < length(ids); i++)
        tally_near(&b->tally, "logits", logits[index_at(ids, i)], item(at(e, "values"), i), 2e-3, "token %d",
                   index_at(ids, i));
    if (at(e, "mean"))
        tally_near(&b->tally, "logits", moments_of(logits, 1, (size_t)n_vocab, 0).mean, number(e, "mean"), 2e-3,
                   "mean");
    if (at(e, "logsumexp"))
        tally_near(&b->tally, "logits", log_sum_exp(logits, n_vocab), number(e, "logsumexp"), 2e-3, "logsumexp");
}

/* Decode a named prompt on the window that is encoded in `state`. */
static const float * decode(struct bench * b, struct sotto_state * state, const char * prompt) {
    int32_t ids[MAX_TOKENS];
    int n = ids_of(at(at(b->root, "prompts"), prompt), ids);
    bool ok = tally_that(&b->tally, n > 0, "no prompt of this name") && went(b, sotto_decode(state, ids, n, 0));
    return ok ? sotto_get_logits(state) : NULL;
}

static void check_logits(struct bench * b, const struct clip * clip) {
    const char * prompt;
    json_t * e;
    json_object_foreach(at(clip->node, "logits"), prompt, e) {
        tally_begin(&b->tally, "clips.%s.logits.%s", clip->name, prompt);
        const float * logits = decode(b, b->state, prompt);
        if (logits)
            check_row(b, e, logits);
        tally_end(&b->tally);
    }
}

/* ---- languages ---- */

/* The window in the state is encoded. */
static void check_language(struct bench * b, const struct clip * clip, const char * key) {
    json_t * expected = at(at(clip->node, "language"), key);
    int language = -1;
    int n = 0;
    int best = 0;
    tally_begin(&b->tally, "clips.%s.language.%s", clip->name, key);
    if (went(b, sotto_detect_language(b->state, &language))) {
        const float * probs = sotto_get_language_probs(b->state, &n);
        tally_that(&b->tally, n == (int)length(expected), "%d languages", n);
        for (int i = 0; i < n && i < (int)length(expected); i++) {
            tally_near(&b->tally, "language", probs[i], item(expected, (size_t)i), 1e-4, "%s", sotto_language_code(i));
            best = item(expected, (size_t)i) > item(expected, (size_t)best) ? i : best;
        }
        tally_that(&b->tally, language == best, "found %d instead of %d", language, best);
    }
    tally_end(&b->tally);
}

/* One frame more than the content, then 0.0. The frame is one of the silent ones that follow. */
static bool set_mel_with_one_more(struct bench * b, const struct clip * clip) {
    int n_bands = sotto_model_n_mels(b->model);
    int n = (int)sotto_i_mel_content_frames(clip->n) + 1;
    if (sotto_pcm_to_mel(b->state, clip->pcm, clip->n, 0, SOTTO_PAD_SILENCE) != SOTTO_OK || n > T)
        return false;
    float * copy = malloc((size_t)n_bands * (size_t)n * sizeof(*copy));
    if (!copy)
        return false;
    for (int band = 0; band < n_bands; band++)
        memcpy(copy + band * n, sotto_get_mel(b->state) + band * T, (size_t)n * sizeof(*copy));
    enum sotto_status status = sotto_set_mel(b->state, copy, n, n_bands);
    free(copy);
    return status == SOTTO_OK && sotto_encode(b->state) == SOTTO_OK;
}

/* ---- transcripts ---- */

static struct sotto_transcribe_params params_for(enum sotto_pad_mode pad) {
    struct sotto_transcribe_params params = sotto_transcribe_default_params();
    params.language = "en";
    params.pad_mode = pad;
    params.early_end = false;
    params.drop_late_history = false;
    params.temperature_inc = 0;
    return params;
}

static void check_tokens(struct bench * b, json_t * expected, int window, const char * margin) {
    const struct sotto_window * w = sotto_get_window(b->state, window);
    int n = (int)length(expected);
    for (int i = 0; i < n && i < w->n_tokens; i++) {
        int32_t got = sotto_get_window_token(b->state, window, i)->id;
        if (!tally_that(&b->tally, got == index_at(expected, (size_t)i), "window %d, token %d is %d instead of %d%s",
                        window, i, (int)got, index_at(expected, (size_t)i), margin))
            return;
    }
    tally_that(&b->tally, w->n_tokens == n, "window %d has %d tokens instead of %d%s", window, w->n_tokens, n, margin);
}

static void check_window(struct bench * b, json_t * e, json_t * tokens, int window, double ratio_limit) {
    const struct sotto_window * w = sotto_get_window(b->state, window);
    char margin[80] = "";
    if (!tally_that(&b->tally, w != NULL, "there is no window %d", window))
        return;
    if (at(e, "min_margin"))
        snprintf(margin, sizeof(margin), " (smallest margins %.3f, rule 8e %.3f)", number(e, "min_margin"),
                 number(e, "min_margin_rule_8e"));
    check_tokens(b, tokens, window, margin);
    tally_near(&b->tally, "avg_logprob", w->avg_logprob, number(e, "avg_logprob"), 1e-3, "window %d", window);
    tally_near(&b->tally, "no_speech_prob", w->no_speech_prob, number(e, "no_speech_prob"), 1e-4, "window %d", window);
    if (at(e, "sum_logprob"))
        tally_near(&b->tally, "sum_logprob", w->sum_logprob, number(e, "sum_logprob"), 5e-3, "window %d", window);
    if (at(e, "compression_ratio"))
        tally_near(&b->tally, "compression_ratio", w->compression_ratio, number(e, "compression_ratio"), ratio_limit,
                   "window %d", window);
}

/* Log-probabilities of the tokens and, what is left of the sum, of the end. */
static void check_token_logprobs(struct bench * b, json_t * expected) {
    const struct sotto_window * w = sotto_get_window(b->state, 0);
    if (!w || !tally_that(&b->tally, length(expected) == (size_t)w->n_tokens + 1, "%d tokens", w->n_tokens))
        return;
    double rest = w->sum_logprob;
    for (int i = 0; i < w->n_tokens; i++) {
        double got = sotto_get_window_token(b->state, 0, i)->plog;
        rest -= got;
        tally_near(&b->tally, "token logprob", got, item(expected, (size_t)i), 5e-3, "token %d", i);
    }
    tally_near(&b->tally, "token logprob", rest, item(expected, (size_t)w->n_tokens), 5e-3, "end");
}

static void check_segment(struct bench * b, json_t * e, int i) {
    const struct sotto_segment * s = sotto_get_segment(b->state, i);
    json_t * tokens = at(e, "tokens");
    tally_near(&b->tally, "segment time", (double)s->t0 / 100, number(e, "start"), 0.005, "start of segment %d", i);
    tally_near(&b->tally, "segment time", (double)s->t1 / 100, number(e, "end"), 0.005, "end of segment %d", i);
    tally_that(&b->tally, strcmp(s->text, json_string_value(at(e, "text"))) == 0, "text of segment %d is \"%s\"", i,
               s->text);
    if (at(e, "seek"))
        tally_that(&b->tally, (double)sotto_get_window(b->state, s->window)->seek == number(e, "seek"),
                   "segment %d was found in another window", i);
    if (!tokens ||
        !tally_that(&b->tally, (size_t)s->n_tokens == length(tokens), "segment %d has %d tokens", i, s->n_tokens))
        return;
    for (int k = 0; k < s->n_tokens; k++)
        tally_that(&b->tally, sotto_get_segment_token(b->state, i, k)->id == index_at(tokens, (size_t)k),
                   "token %d of segment %d is another", k, i);
}

static void check_segments(struct bench * b, json_t * segments) {
    int n = sotto_n_segments(b->state);
    tally_that(&b->tally, n == (int)length(segments), "%d segments instead of %zu", n, length(segments));
    for (int i = 0; i < n && i < (int)length(segments); i++)
        check_segment(b, json_array_get(segments, (size_t)i), i);
}

static void check_text(struct bench * b, const char * expected) {
    char text[4096] = "";
    size_t used = 0;
    for (int i = 0; i < sotto_n_segments(b->state) && used < sizeof(text); i++)
        used += (size_t)snprintf(text + used, sizeof(text) - used, "%s", sotto_get_segment(b->state, i)->text);
    tally_that(&b->tally, strcmp(text, expected) == 0, "the text is \"%s\"", text);
}

static bool transcribe(struct bench * b, const float * pcm, size_t n, enum sotto_pad_mode pad, int beam_size) {
    struct sotto_transcribe_params params = params_for(pad);
    params.beam_size = beam_size;
    return went(b, sotto_transcribe(b->state, pcm, n, &params));
}

static void check_greedy(struct bench * b, const struct clip * clip) {
    json_t * e = at(clip->node, "greedy");
    tally_begin(&b->tally, "clips.%s.greedy", clip->name);
    if (transcribe(b, clip->pcm, clip->n, SOTTO_PAD_ZERO, 1)) {
        check_window(b, e, at(e, "tokens"), 0, 1e-6);
        check_token_logprobs(b, at(e, "token_logprobs"));
        check_text(b, json_string_value(at(e, "text")));
        check_segments(b, at(e, "segments"));
    }
    tally_end(&b->tally);
}

/* ---- beams ---- */

static bool same_hypothesis(const struct sotto_i_sampled * got, json_t * expected) {
    json_t * tokens = at(expected, "tokens");
    if ((size_t)got->n != length(tokens))
        return false;
    for (int i = 0; i < got->n; i++)
        if (got->ids[i] != index_at(tokens, (size_t)i))
            return false;
    return true;
}

/* The finished hypotheses as a set, with their sums. */
static void check_finished(struct bench * b, json_t * expected) {
    const struct sotto_i_search * search = b->state->search;
    tally_that(&b->tally, (size_t)search->n_finished == length(expected), "%d hypotheses finished", search->n_finished);
    for (size_t k = 0; k < length(expected); k++) {
        json_t * e = json_array_get(expected, k);
        int i = 0;
        while (i < search->n_finished && !same_hypothesis(&search->finished[i], e))
            i++;
        if (!tally_that(&b->tally, i < search->n_finished, "hypothesis %zu was not found", k))
            continue;
        const struct sotto_i_sampled * got = &search->finished[i];
        tally_near(&b->tally, "beam sum", got->sum, number(e, "sum"), 5e-3, "hypothesis %zu", k);
        tally_near(&b->tally, "beam score", got->sum / got->n, number(e, "score"), 5e-3, "hypothesis %zu", k);
    }
}

static void check_beams(struct bench * b, const struct clip * clip) {
    json_t * e = at(clip->node, "beam5");
    tally_begin(&b->tally, "clips.%s.beam5", clip->name);
    if (transcribe(b, clip->pcm, clip->n, SOTTO_PAD_ZERO, 5)) {
        check_window(b, e, at(e, "tokens"), 0, 5.1e-3);
        check_text(b, json_string_value(at(e, "text")));
        check_segments(b, at(e, "segments"));
        check_finished(b, at(e, "finished"));
    }
    tally_end(&b->tally);
}

/* ---- one clip ---- */

static bool encode_clip(struct bench * b, const struct clip * clip, enum sotto_pad_mode pad) {
    tally_begin(&b->tally, "clips.%s.encode", clip->name);
    bool ok = went(b, sotto_pcm_to_mel(b->state, clip->pcm, clip->n, 0, pad)) && went(b, sotto_encode(b->state));
    tally_end(&b->tally);
    return ok;
}

/* The clip is encoded with silence behind it. */
static void check_silence_fill(struct bench * b, const struct clip * clip) {
    json_t * e = at(clip->node, "silence_fill");
    size_t width = (size_t)sotto_model_width(b->model);
    struct moments m =
        moments_of(sotto_get_encoder_output(b->state), (size_t)sotto_model_n_audio_ctx(b->model), width, width);
    tally_begin(&b->tally, "clips.%s.silence_fill", clip->name);
    tally_near(&b->tally, "encoder mean", m.mean, number(e, "encoder_mean"), 1e-5, "all");
    tally_near(&b->tally, "encoder deviation", m.deviation, number(e, "encoder_std"), 1e-4, "all");
    const float * logits = decode(b, b->state, "notimestamps");
    if (logits)
        check_top(b, at(e, "notimestamps_top"), logits, 5e-3);
    if (transcribe(b, clip->pcm, clip->n, SOTTO_PAD_SILENCE, 1))
        check_window(b, e, at(e, "greedy_tokens"), 0, 0);
    tally_end(&b->tally);
}

static void skip_present(struct bench * b, json_t * node, const char * prefix, const char * const * keys, size_t n) {
    for (size_t i = 0; i < n; i++) {
        char name[TALLY_NAME];
        snprintf(name, sizeof(name), "%s%s", prefix, keys[i]);
        if (at(node, keys[i]))
            tally_skip(&b->tally, name);
    }
}

static void check_clip(struct bench * b, const struct clip * clip) {
    static const char * const later[] = { "words" };
    if (at(clip->node, "mel"))
        check_mel(b, clip, "mel");
    if (at(clip->node, "mel128"))
        check_mel(b, clip, "mel128");
    if (encode_clip(b, clip, SOTTO_PAD_ZERO)) {
        check_encoder(b, clip);
        check_logits(b, clip);
        check_language(b, clip, "zero_fill");
    }
    if (set_mel_with_one_more(b, clip))
        check_language(b, clip, "fw");
    if (encode_clip(b, clip, SOTTO_PAD_SILENCE)) {
        check_language(b, clip, "silence_fill");
        check_silence_fill(b, clip);
    }
    check_greedy(b, clip);
    if (at(clip->node, "beam5"))
        check_beams(b, clip);
    skip_present(b, clip->node, "clips.", later, 1);
}

/* ---- other form of GELU ---- */

static double largest_change(const float * a, const float * b, size_t n) {
    double largest = 0;
    for (size_t i = 0; i < n; i++)
        largest = fmax(largest, fabs((double)a[i] - b[i]));
    return largest;
}

/* `state` has the tanh form, b->state the exact one; both have the clip encoded. */
static void compare_forms(struct bench * b, struct sotto_state * state, const struct clip * clip, json_t * e) {
    const char * prompt = json_string_value(at(e, "prompt"));
    const float * rows = sotto_get_encoder_output(state);
    const float * exact = decode(b, b->state, prompt);
    const float * logits = decode(b, state, prompt);
    size_t n = (size_t)sotto_model_n_audio_ctx(b->model) * (size_t)sotto_model_width(b->model);
    if (!exact || !logits)
        return;
    check_row(b, e, logits);
    check_norms(b, at(at(clip->node, "encoder"), "positions"), at(e, "encoder_row_norms"), rows);
    tally_near(&b->tally, "change of logits", largest_change(exact, logits, (size_t)sotto_model_n_vocab(b->model)),
               number(e, "max_logit_change"), 5e-3, "erf to tanh");
    tally_near(&b->tally, "change of encoder", largest_change(sotto_get_encoder_output(b->state), rows, n),
               number(e, "max_encoder_change"), 1.5e-2, "erf to tanh");
}

static void check_gelu_tanh(struct bench * b) {
    json_t * e = at(b->root, "gelu_tanh");
    const struct clip * clip = clip_named(b, json_string_value(at(e, "clip")));
    struct sotto_model_params params = sotto_model_default_params();
    struct sotto_model * model = NULL;
    struct sotto_state * state = NULL;
    params.gelu = SOTTO_GELU_FORM_TANH;
    tally_begin(&b->tally, "gelu_tanh");
    if (tally_that(&b->tally, clip != NULL, "no such clip") &&
        went(b, sotto_model_open(b->model_path, &params, &model)) && went(b, sotto_state_new(model, NULL, &state)) &&
        went(b, sotto_pcm_to_mel(state, clip->pcm, clip->n, 0, SOTTO_PAD_ZERO)) && went(b, sotto_encode(state)) &&
        went(b, sotto_pcm_to_mel(b->state, clip->pcm, clip->n, 0, SOTTO_PAD_ZERO)) && went(b, sotto_encode(b->state)))
        compare_forms(b, state, clip, e);
    tally_end(&b->tally);
    sotto_state_free(state);
    sotto_model_free(model);
}

/* ---- several windows ---- */

/* The clips of the recipe one after another; NULL if there is none or no memory. */
static float * join(const struct bench * b, json_t * recipe, size_t * n) {
    size_t total = 0;
    *n = 0;
    for (size_t i = 0; i < length(recipe); i++) {
        const struct clip * clip = clip_named(b, json_string_value(json_array_get(recipe, i)));
        if (!clip)
            return NULL;
        total += clip->n;
    }
    float * pcm = malloc((total ? total : 1) * sizeof(*pcm));
    for (size_t i = 0; pcm && i < length(recipe); i++) {
        const struct clip * clip = clip_named(b, json_string_value(json_array_get(recipe, i)));
        memcpy(pcm + *n, clip->pcm, clip->n * sizeof(*pcm));
        *n += clip->n;
    }
    return pcm;
}

static void check_windows(struct bench * b, json_t * windows) {
    int n = sotto_n_windows(b->state);
    tally_that(&b->tally, n == (int)length(windows), "%d windows instead of %zu", n, length(windows));
    for (int i = 0; i < n && i < (int)length(windows); i++) {
        json_t * e = json_array_get(windows, (size_t)i);
        tally_that(&b->tally, (double)sotto_get_window(b->state, i)->seek == number(e, "seek"),
                   "window %d begins at frame %lld", i, (long long)sotto_get_window(b->state, i)->seek);
        check_window(b, e, at(e, "tokens"), i, 5.1e-5);
    }
}

/* Of the joined clips. */
static void check_recording(struct bench * b, const float * pcm, size_t n, const char * key, int beam_size) {
    json_t * long_node = at(b->root, "long");
    json_t * e = at(long_node, key);
    tally_begin(&b->tally, "long.%s", key);
    if (tally_that(&b->tally, pcm && (double)n == number(long_node, "samples"), "%zu samples", n) &&
        transcribe(b, pcm, n, SOTTO_PAD_ZERO, beam_size)) {
        check_windows(b, at(e, "windows"));
        check_segments(b, at(e, "segments"));
    }
    tally_end(&b->tally);
}

static void check_long(struct bench * b) {
    static const char * const later[] = { "greedy_words" };
    json_t * e = at(b->root, "long");
    size_t n;
    float * pcm = join(b, at(e, "recipe"), &n);
    check_recording(b, pcm, n, "greedy", 1);
    if (at(e, "beam5"))
        check_recording(b, pcm, n, "beam5", 5);
    skip_present(b, e, "long.", later, 1);
    free(pcm);
}

/* ---- text ---- */

static bool decodes_to(const struct bench * b, const int32_t * ids, size_t n, const char * text, size_t size) {
    size_t used = 0;
    for (size_t i = 0; i < n; i++) {
        size_t bytes;
        const char * token = sotto_token_text(b->model, ids[i], &bytes);
        if (!token || bytes > size - used || memcmp(text + used, token, bytes) != 0)
            return false;
        used += bytes;
    }
    return used == size;
}

static void check_pair(struct bench * b, json_t * pair) {
    int32_t ids[MAX_TOKENS];
    const char * text = json_string_value(json_array_get(pair, 0));
    size_t size = json_string_length(json_array_get(pair, 0));
    json_t * expected = json_array_get(pair, 1);
    size_t n = 0;
    bool same =
        went(b, sotto_tokenize(b->model, text, size, ids, MAX_TOKENS, &n)) && n == length(expected) && n <= MAX_TOKENS;
    for (size_t i = 0; same && i < n; i++)
        same = ids[i] == index_at(expected, i);
    tally_that(&b->tally, same, "\"%s\" gives other ids", text);
    tally_that(&b->tally, same && decodes_to(b, ids, n, text, size), "the ids of \"%s\" do not give it back", text);
}

static void check_tokeniser(struct bench * b) {
    json_t * pairs = at(b->root, "tokeniser");
    for (size_t i = 0; i < length(pairs); i++) {
        tally_begin(&b->tally, "tokeniser[%zu]", i);
        check_pair(b, json_array_get(pairs, i));
        tally_end(&b->tally);
    }
}

/* ---- all ---- */

static void check_all(struct bench * b) {
    for (int i = 0; i < b->n_clips; i++)
        check_clip(b, &b->clips[i]);
    if (at(b->root, "gelu_tanh"))
        check_gelu_tanh(b);
    if (at(b->root, "long"))
        check_long(b);
    check_tokeniser(b);
    for (size_t i = 0; i < length(at(b->root, "words_split")); i++)
        tally_skip(&b->tally, "words_split");
    if (at(b->root, "vad"))
        tally_skip(&b->tally, "vad");
}

static bool open_all(struct bench * b, const char * file) {
    json_error_t error;
    const char * folder = getenv("SOTTO_MODELS");
    b->root = json_load_file(file, JSON_ALLOW_NUL, &error);
    if (!b->root) {
        fprintf(stderr, "speech_vectors: %s:%d: %s\n", file, error.line, error.text);
        return false;
    }
    if (folder)
        snprintf(b->model_path, PATH_SIZE, "%s/base-f32.gguf", folder);
    else
        snprintf(b->model_path, PATH_SIZE, "%s/.cache/sotto/models/base-f32.gguf",
                 getenv("HOME") ? getenv("HOME") : "");
    if (sotto_model_open(b->model_path, NULL, &b->model) != SOTTO_OK ||
        sotto_state_new(b->model, NULL, &b->state) != SOTTO_OK) {
        fprintf(stderr, "speech_vectors: %s\n", sotto_last_error_text());
        return false;
    }
    return load_clips(b);
}

static void close_all(struct bench * b) {
    for (int i = 0; i < b->n_clips; i++)
        sotto_audio_free(b->clips[i].audio);
    sotto_state_free(b->state);
    sotto_model_free(b->model);
    json_decref(b->root);
}

int main(int argc, char ** argv) {
    static struct bench bench;
    int code = 2;
    if (argc != 2)
        fprintf(stderr, "usage: speech_vectors FILE\n");
    else if (open_all(&bench, argv[1])) {
        check_all(&bench);
        code = tally_report(&bench.tally);
    }
    close_all(&bench);
    return code;
}
