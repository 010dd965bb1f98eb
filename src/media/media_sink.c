/* SPDX-License-Identifier: MIT */
/* The end of the way: channels become one, rates become the wanted one, and the array grows. */
#include <math.h>
#include <string.h>

#include "sotto/log.h"

#include "media/media_impl.h"
#include "media/resample.h"

#define BLOCK RESAMPLE_BLOCK

static enum sotto_status reserve(struct media_sink * sink, size_t more) {
    if (more <= sink->cap - sink->n)
        return SOTTO_OK;
    size_t cap = sink->cap + sink->cap / 2 + 4 * BLOCK;
    cap = cap < sink->n + more ? sink->n + more : cap;
    float * samples = sotto_realloc(sink->allocator, sink->samples, sink->cap, cap, sizeof(*samples));
    if (samples == NULL)
        return SOTTO_E_MEMORY;
    sink->samples = samples;
    sink->cap = cap;
    return SOTTO_OK;
}

static enum sotto_status grown(struct media_sink * sink, size_t n) {
    if (n > sink->max - sink->n)
        return sotto_fail(SOTTO_E_LIMIT, "sotto_audio_load: %s has more than %zu samples; cut it into pieces",
                          sink->name, sink->max);
    sink->n += n;
    return SOTTO_OK;
}

static enum sotto_status odd_sample(const struct media_sink * sink, size_t i) {
    return sotto_fail(SOTTO_E_AUDIO_NAN, "sotto_audio_load: %s: sample %zu is NaN or infinite", sink->name,
                      sink->n + i);
}

/* Take over what the resampler has ready; `n` was pushed. */
static enum sotto_status pull(struct media_sink * sink, size_t n) {
    enum sotto_status status = reserve(sink, sotto_i_resampler_room(sink->resampler, n));
    if (status != SOTTO_OK)
        return status;
    float * out = sink->samples + sink->n;
    size_t made = sotto_i_resampler_pull(sink->resampler, out);
    for (size_t i = 0; i < made; i++) {
        if (!isfinite(out[i])) /* the filter overshoots at the very end of the range */
            return odd_sample(sink, i);
    }
    return grown(sink, made);
}

static enum sotto_status finish_rate(struct media_sink * sink) {
    enum sotto_status status = SOTTO_OK;
    if (sink->resampler != NULL) {
        sotto_i_resampler_end(sink->resampler);
        status = pull(sink, 0);
    }
    sotto_i_resampler_free(sink->resampler);
    sink->resampler = NULL;
    return status;
}

enum sotto_status sotto_i_sink_begin(struct media_sink * sink, int rate, int channels) {
    if (channels < 1 || channels > MEDIA_MAX_CHANNELS || rate < MEDIA_MIN_RATE || rate > MEDIA_MAX_RATE)
        return sotto_fail(SOTTO_E_AUDIO_PARAM,
                          "sotto_audio_load: %s: %d channels, %d Hz: 1 to 64 channels of 1 to 768 kHz are read",
                          sink->name, channels, rate);
    sink->channels = sink->rate == 0 ? channels : sink->channels;
    if (rate == sink->rate)
        return SOTTO_OK;
    if (sink->rate != 0 && sink->wanted == 0)
        return sotto_fail(SOTTO_E_AUDIO_PARAM,
                          "sotto_audio_load: %s: the rate changes from %d to %d Hz; ask for one rate", sink->name,
                          sink->rate, rate);
    enum sotto_status status = finish_rate(sink);
    sink->rate = rate;
    if (status == SOTTO_OK && sink->wanted != 0 && sink->wanted != rate)
        status = sotto_i_resampler_new(sink->allocator, rate, sink->wanted, &sink->resampler);
    return status;
}

/* n <= BLOCK samples. */
static enum sotto_status put_block(struct media_sink * sink, const float * block, size_t n) {
    if (sink->resampler != NULL) {
        sotto_i_resampler_push(sink->resampler, block, n);
        return pull(sink, n);
    }
    enum sotto_status status = reserve(sink, n);
    if (status != SOTTO_OK)
        return status;
    memcpy(sink->samples + sink->n, block, n * sizeof(*block));
    return grown(sink, n);
}

enum sotto_status sotto_i_sink_put(struct media_sink * sink, enum sotto_sample_coding code, bool big,
                                   const uint8_t * const * planes, size_t step, int channels, size_t n) {
    enum sotto_status status = SOTTO_OK;
    for (size_t at = 0; at < n && status == SOTTO_OK; at += BLOCK) {
        double sum[BLOCK] = { 0 };
        float block[BLOCK];
        size_t part = n - at < BLOCK ? n - at : BLOCK;
        for (int c = 0; c < channels; c++)
            sotto_i_pcm_add(code, big, planes[c] + at * step, step, sum, part);
        size_t good = sotto_i_pcm_mean(sum, channels, block, part);
        status = good < part ? odd_sample(sink, good) : put_block(sink, block, part);
    }
    return status;
}

enum sotto_status sotto_i_sink_silence(struct media_sink * sink, uint64_t n) {
    static const float zeros[BLOCK];
    enum sotto_status status = SOTTO_OK;
    for (uint64_t at = 0; at < n && status == SOTTO_OK; at += BLOCK)
        status = put_block(sink, zeros, n - at < BLOCK ? (size_t)(n - at) : BLOCK);
    return status;
}

enum sotto_status sotto_i_sink_end(struct media_sink * sink) {
    enum sotto_status status = finish_rate(sink);
    if (status == SOTTO_OK && sink->n == 0)
        status = sotto_fail(SOTTO_E_AUDIO_EMPTY, "sotto_audio_load: %s holds no sample", sink->name);
    return status;
}

void sotto_i_sink_free(struct media_sink * sink) {
    sotto_i_resampler_free(sink->resampler);
    sink->resampler = NULL;
}

/* ---- interleaved samples ---- */

enum sotto_status sotto_i_pcm_read(struct media_input * in, const struct pcm_format * format, uint64_t limit,
                                   struct media_sink * sink) {
    uint8_t block[16384]; /* holds a frame of 64 channels of f64 many times */
    const uint8_t * planes[MEDIA_MAX_CHANNELS];
    size_t width = sotto_i_pcm_width(format->code);
    size_t frame = width * (size_t)format->channels;
    size_t whole = sizeof(block) / frame * frame;
    for (int c = 0; c < format->channels; c++)
        planes[c] = block + (size_t)c * width;
    for (uint64_t left = limit; left > 0;) {
        size_t want = left < whole ? (size_t)left : whole;
        size_t got;
        enum sotto_status status = sotto_i_media_read(in, block, want, &got);
        if (status == SOTTO_OK)
            status = sotto_i_sink_put(sink, format->code, format->big, planes, frame, format->channels, got / frame);
        if (status != SOTTO_OK)
            return status;
        if (got % frame != 0)
            sotto_log(SOTTO_LOG_WARN, "sotto_audio_load: %s: the sound ends inside a sample, which is left out\n",
                      in->name);
        left -= got;
        if (got < want)
            break;
    }
    return SOTTO_OK;
}
