/* SPDX-License-Identifier: MIT */
/* WAV, front to back:
 *
 *   "RIFF" u32 size "WAVE" { id[4] u32 size, payload, pad to even }...
 *
 * `fmt ` says how samples are coded, `data` holds them; other chunks are passed over. RF64 keeps 64-bit sizes in `ds64`.
 * Lengths are only ever used to stop early: what a pipe left at 0 or 0xFFFFFFFF means "to the end". */
#include <stdio.h>
#include <string.h>

#include "sotto/log.h"

#include "media/media_impl.h"

#define UNKNOWN32 0xFFFFFFFFu
#define MAX_FMT   65536

struct wav {
    struct media_input * in;
    struct pcm_format format;
    uint64_t end;       /* of the RIFF chunk, 0 if nobody filled it in */
    uint64_t data_size; /* from ds64, 0 without */
    bool has_format;
};

static uint32_t u16(const uint8_t * p) { return (uint32_t)p[0] | (uint32_t)p[1] << 8; }

static uint32_t u32(const uint8_t * p) { return u16(p) | u16(p + 2) << 16; }

static enum sotto_status corrupt(const struct wav * w, const char * what) {
    return sotto_fail(SOTTO_E_AUDIO_CORRUPT, "sotto_audio_load: %s: %s, at byte %llu", w->in->name, what,
                      (unsigned long long)w->in->at);
}

/* ---- fmt ---- */

/* The end of every GUID that stands for a plain format tag. */
static const uint8_t GUID_TAIL[14] = { 0, 0, 0, 0, 0x10, 0, 0x80, 0, 0, 0xAA, 0, 0x38, 0x9B, 0x71 };

static enum sotto_status unknown_guid(const struct wav * w, const uint8_t * g) {
    return sotto_fail(
        SOTTO_E_AUDIO_CODEC,
        "sotto_audio_load: %s: the sub-format "
        "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x is not read; convert it to PCM",
        w->in->name, g[3], g[2], g[1], g[0], g[5], g[4], g[7], g[6], g[8], g[9], g[10], g[11], g[12], g[13], g[14],
        g[15]);
}

/* How samples of a format tag and width are coded. */
static enum sotto_status find_code(const struct wav * w, uint32_t tag, uint32_t bits, enum sotto_sample_coding * code) {
    static const struct {
        uint32_t tag, bits;
        enum sotto_sample_coding code;
    } known[] = { { 1, 8, SOTTO_SAMPLE_U8 },   { 1, 16, SOTTO_SAMPLE_S16 }, { 1, 24, SOTTO_SAMPLE_S24 },
                  { 1, 32, SOTTO_SAMPLE_S32 }, { 3, 32, SOTTO_SAMPLE_F32 }, { 3, 64, SOTTO_SAMPLE_F64 },
                  { 6, 8, SOTTO_SAMPLE_ALAW }, { 7, 8, SOTTO_SAMPLE_MULAW } };
    bool tag_known = false;
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        tag_known = tag_known || known[i].tag == tag;
        if (known[i].tag == tag && known[i].bits == bits) {
            *code = known[i].code;
            return SOTTO_OK;
        }
    }
    if (tag_known)
        return sotto_fail(SOTTO_E_AUDIO_PARAM, "sotto_audio_load: %s: samples of %lu bits are not read", w->in->name,
                          (unsigned long)bits);
    return sotto_fail(SOTTO_E_AUDIO_CODEC, "sotto_audio_load: %s: codec 0x%04lx is not read; convert it to PCM",
                      w->in->name, (unsigned long)tag);
}

static enum sotto_status check_numbers(const struct wav * w, uint32_t channels, uint32_t rate, uint32_t align,
                                       size_t width) {
    const char * wrong = NULL;
    if (channels < 1 || channels > MEDIA_MAX_CHANNELS)
        wrong = "1 to 64 channels are read";
    else if (rate < MEDIA_MIN_RATE || rate > MEDIA_MAX_RATE)
        wrong = "1 to 768 kHz are read";
    else if (align != channels * width)
        wrong = "a frame is not as long as its samples";
    if (wrong == NULL)
        return SOTTO_OK;
    return sotto_fail(SOTTO_E_AUDIO_PARAM,
                      "sotto_audio_load: %s: %lu channels, %lu Hz, frames of %lu bytes, samples of %zu: %s",
                      w->in->name, (unsigned long)channels, (unsigned long)rate, (unsigned long)align, width, wrong);
}

static enum sotto_status parse_format(struct wav * w, const uint8_t * fmt, size_t size) {
    uint32_t tag = u16(fmt);
    uint32_t bits = u16(fmt + 14);
    if (tag == 0xFFFE) {
        if (size < 40)
            return corrupt(w, "an extensible 'fmt ' chunk is shorter than 40 bytes");
        if (memcmp(fmt + 26, GUID_TAIL, sizeof(GUID_TAIL)) != 0)
            return unknown_guid(w, fmt + 24);
        tag = u16(fmt + 24);
    }
    enum sotto_sample_coding code = SOTTO_SAMPLE_U8;
    enum sotto_status status = find_code(w, tag, bits, &code);
    if (status == SOTTO_OK)
        status = check_numbers(w, u16(fmt + 2), u32(fmt + 4), u16(fmt + 12), sotto_i_pcm_width(code));
    if (status != SOTTO_OK)
        return status;
    w->format = (struct pcm_format){ code, false, (int)u16(fmt + 2), (int)u32(fmt + 4) };
    w->has_format = true;
    return SOTTO_OK;
}

/* ---- chunks ---- */

/* The whole payload of a chunk, of which the first `keep` bytes are wanted, and its pad byte. */
static enum sotto_status read_chunk(struct wav * w, uint64_t size, uint8_t * kept, size_t keep, size_t * got) {
    keep = size < keep ? (size_t)size : keep;
    enum sotto_status status = sotto_i_media_read(w->in, kept, keep, got);
    if (status != SOTTO_OK)
        return status;
    uint64_t rest = size - keep;
    uint64_t passed = 0;
    if (*got == keep)
        status = sotto_i_media_skip(w->in, rest, &passed);
    if (status == SOTTO_OK && (*got < keep || passed < rest))
        status = corrupt(w, "a chunk reaches past the end of the file");
    if (status == SOTTO_OK && size % 2 == 1)
        status = sotto_i_media_skip(w->in, 1, &passed);
    return status;
}

static enum sotto_status read_format(struct wav * w, uint32_t size) {
    uint8_t fmt[40];
    size_t got;
    if (size < 16 || size > MAX_FMT)
        return corrupt(w, "a 'fmt ' chunk has an impossible length");
    enum sotto_status status = read_chunk(w, size, fmt, sizeof(fmt), &got);
    return status == SOTTO_OK ? parse_format(w, fmt, got) : status;
}

static enum sotto_status read_ds64(struct wav * w, uint32_t size) {
    uint8_t sizes[16];
    size_t got;
    enum sotto_status status = read_chunk(w, size, sizes, sizeof(sizes), &got);
    if (status == SOTTO_OK && got < sizeof(sizes))
        status = corrupt(w, "a 'ds64' chunk is shorter than 16 bytes");
    if (status == SOTTO_OK)
        w->data_size = (uint64_t)u32(sizes + 8) | (uint64_t)u32(sizes + 12) << 32;
    return status;
}

/* Do these 8 bytes begin another chunk inside the RIFF chunk? Asked after a data chunk of length 0, which is either
 * truly empty or one whose length nobody filled in. */
static bool is_chunk(const struct wav * w, const uint8_t * head, uint64_t at) {
    for (int i = 0; i < 4; i++) {
        if (head[i] < 0x20 || head[i] > 0x7E)
            return false;
    }
    return w->end >= at + 8 && u32(head + 4) <= w->end - at - 8;
}

static enum sotto_status data_length(struct wav * w, uint32_t size, uint64_t * length) {
    *length = size;
    if (size == UNKNOWN32)
        *length = w->data_size > 0 ? w->data_size : UINT64_MAX;
    if (size != 0)
        return SOTTO_OK;
    uint8_t head[8];
    size_t got;
    enum sotto_status status = sotto_i_media_read(w->in, head, sizeof(head), &got);
    if (status != SOTTO_OK)
        return status;
    sotto_i_media_unread(w->in, head, got);
    if (got < sizeof(head) || !is_chunk(w, head, w->in->at))
        *length = UINT64_MAX;
    return SOTTO_OK;
}

static enum sotto_status read_data(struct wav * w, uint32_t size, struct media_sink * sink) {
    if (!w->has_format)
        return corrupt(w, "'data' comes before 'fmt '");
    uint64_t length;
    enum sotto_status status = data_length(w, size, &length);
    uint64_t begin = w->in->at;
    if (status == SOTTO_OK)
        status = sotto_i_sink_begin(sink, w->format.rate, w->format.channels);
    if (status == SOTTO_OK)
        status = sotto_i_pcm_read(w->in, &w->format, length, sink);
    if (status == SOTTO_OK && length != UINT64_MAX && w->in->at - begin < length)
        sotto_log(SOTTO_LOG_WARN, "sotto_audio_load: %s: %llu bytes of sound were announced, %llu are there\n",
                  w->in->name, (unsigned long long)length, (unsigned long long)(w->in->at - begin));
    return status;
}

static enum sotto_status read_riff(struct wav * w) {
    uint8_t head[12];
    size_t got;
    enum sotto_status status = sotto_i_media_read(w->in, head, sizeof(head), &got);
    if (status != SOTTO_OK)
        return status;
    if (got < sizeof(head) || (memcmp(head, "RIFF", 4) != 0 && memcmp(head, "RF64", 4) != 0))
        return sotto_fail(SOTTO_E_AUDIO_FORMAT,
                          "sotto_audio_load: %s is no WAV file%s; convert it to WAV, or name the form of raw samples",
                          w->in->name, got == 0 ? " (it is empty)" : "");
    if (memcmp(head + 8, "WAVE", 4) != 0)
        return corrupt(w, "a RIFF file that is no WAVE");
    uint32_t size = u32(head + 4);
    w->end = size == UNKNOWN32 ? 0 : (uint64_t)size + 8;
    return SOTTO_OK;
}

enum sotto_status sotto_i_wav_read(struct media_input * in, struct media_sink * sink) {
    struct wav w = { .in = in };
    enum sotto_status status = read_riff(&w);
    while (status == SOTTO_OK) {
        uint8_t head[8];
        size_t got;
        status = sotto_i_media_read(in, head, sizeof(head), &got);
        if (status != SOTTO_OK)
            break;
        if (got < sizeof(head) && !w.has_format)
            return corrupt(&w, "there is no 'fmt ' chunk");
        if (got < sizeof(head))
            return sotto_fail(SOTTO_E_AUDIO_EMPTY, "sotto_audio_load: %s has no 'data' chunk", in->name);
        uint32_t size = u32(head + 4);
        if (memcmp(head, "data", 4) == 0)
            return read_data(&w, size, sink);
        if (memcmp(head, "fmt ", 4) == 0)
            status = read_format(&w, size);
        else if (memcmp(head, "ds64", 4) == 0)
            status = read_ds64(&w, size);
        else
            status = read_chunk(&w, size, NULL, 0, &got);
    }
    return status;
}
