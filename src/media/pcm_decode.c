/* SPDX-License-Identifier: MIT */
/* Samples as they lie in files, to f32.
 *
 * Integers are divided by half their range, so that full scale is 1; u8 is centred on 128. Channels are added up in
 * double, one after the other, divided by their number and rounded once. Whatever brings the samples here, a WAV file
 * of our own reader or a frame of FFmpeg's, the result has the same bits. */
#include <math.h>
#include <string.h>

#include "media/media_impl.h"

static const struct coding {
    const char * name;
    size_t width;
    bool has_order; /* its name ends in le or be */
} CODINGS[] = {
    [SOTTO_SAMPLE_U8] = { "u8", 1, false },       [SOTTO_SAMPLE_S16] = { "s16", 2, true },
    [SOTTO_SAMPLE_S24] = { "s24", 3, true },      [SOTTO_SAMPLE_S32] = { "s32", 4, true },
    [SOTTO_SAMPLE_S64] = { "s64", 8, true },      [SOTTO_SAMPLE_F32] = { "f32", 4, true },
    [SOTTO_SAMPLE_F64] = { "f64", 8, true },      [SOTTO_SAMPLE_ALAW] = { "alaw", 1, false },
    [SOTTO_SAMPLE_MULAW] = { "mulaw", 1, false },
};
#define N_CODINGS (sizeof(CODINGS) / sizeof(CODINGS[0]))

size_t sotto_i_pcm_width(enum sotto_sample_coding code) { return CODINGS[code].width; }

bool sotto_i_pcm_named(const char * name, size_t size, enum sotto_sample_coding * code, bool * big) {
    for (size_t i = 0; i < N_CODINGS; i++) {
        size_t n = strlen(CODINGS[i].name);
        const char * order = name + n;
        if (size < n || memcmp(name, CODINGS[i].name, n) != 0 || size != n + (CODINGS[i].has_order ? 2 : 0))
            continue;
        *code = (enum sotto_sample_coding)i;
        *big = CODINGS[i].has_order && memcmp(order, "be", 2) == 0;
        return !CODINGS[i].has_order || *big || memcmp(order, "le", 2) == 0;
    }
    return false;
}

bool sotto_i_pcm_host_is_big(void) {
    const uint16_t one = 1;
    uint8_t first;
    memcpy(&first, &one, 1);
    return first == 0;
}

/* An unsigned integer of n bytes. */
static inline uint64_t load(const uint8_t * p, size_t n, bool big) {
    uint64_t x = 0;
    for (size_t i = 0; i < n; i++)
        x |= (uint64_t)p[big ? n - 1 - i : i] << (8 * i);
    return x;
}

/* A signed one, with half its range as 1. */
static inline double integer(const uint8_t * p, size_t n, bool big) {
    int64_t x = (int64_t)(load(p, n, big) << (64 - 8 * n)); /* its sign on top */
    return (double)x / 9223372036854775808.0;
}

static inline double real32(const uint8_t * p, bool big) {
    uint32_t bits = (uint32_t)load(p, 4, big);
    float x;
    memcpy(&x, &bits, sizeof(x));
    return (double)x;
}

static inline double real64(const uint8_t * p, bool big) {
    uint64_t bits = load(p, 8, big);
    double x;
    memcpy(&x, &bits, sizeof(x));
    return x;
}

/* G.711: sign, 3 bits of exponent, 4 of mantissa. */
static double mulaw(uint8_t byte) {
    unsigned u = ~(unsigned)byte & 0xFF;
    int magnitude = (int)((((u & 0x0F) << 3) + 0x84) << (u >> 4 & 7)) - 0x84;
    return ((u & 0x80) != 0 ? -magnitude : magnitude) / 32768.0;
}

static double alaw(uint8_t byte) {
    unsigned a = byte ^ 0x55u;
    unsigned exponent = a >> 4 & 7;
    unsigned mantissa = (a & 0x0F) << 4;
    int magnitude = (int)(exponent == 0 ? mantissa + 8 : (mantissa + 0x108) << (exponent - 1));
    return ((a & 0x80) != 0 ? magnitude : -magnitude) / 32768.0;
}

#define ADD(value)                            \
    for (size_t i = 0; i < n; i++, p += step) \
        sum[i] += (value);                    \
    break

void sotto_i_pcm_add(enum sotto_sample_coding code, bool big, const uint8_t * p, size_t step, double * sum, size_t n) {
    switch (code) {
    case SOTTO_SAMPLE_U8: ADD((p[0] - 128) / 128.0);
    case SOTTO_SAMPLE_S16: ADD(integer(p, 2, big));
    case SOTTO_SAMPLE_S24: ADD(integer(p, 3, big));
    case SOTTO_SAMPLE_S32: ADD(integer(p, 4, big));
    case SOTTO_SAMPLE_S64: ADD(integer(p, 8, big));
    case SOTTO_SAMPLE_F32: ADD(real32(p, big));
    case SOTTO_SAMPLE_F64: ADD(real64(p, big));
    case SOTTO_SAMPLE_ALAW: ADD(alaw(p[0]));
    case SOTTO_SAMPLE_MULAW: ADD(mulaw(p[0]));
    }
}

size_t sotto_i_pcm_mean(const double * sum, int channels, float * out, size_t n) {
    for (size_t i = 0; i < n; i++) {
        out[i] = (float)(sum[i] / channels);
        if (!isfinite(out[i]))
            return i;
    }
    return n;
}
