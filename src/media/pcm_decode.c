/* SPDX-License-Identifier: MIT */
/* Samples as they lie in files, to f32.
 *
 * Integers are divided by half their range, so that full scale is 1; u8 is centred on 128. Channels are averaged in
 * double and rounded once. */
#include <math.h>
#include <string.h>

#include "media/media_impl.h"

size_t sotto_i_pcm_width(enum pcm_code code) {
    switch (code) {
    case PCM_S16: return 2;
    case PCM_S24: return 3;
    case PCM_S32:
    case PCM_F32: return 4;
    case PCM_F64: return 8;
    case PCM_U8:
    case PCM_ALAW:
    case PCM_MULAW: break;
    }
    return 1;
}

static uint64_t little(const uint8_t * p, size_t n) {
    uint64_t x = 0;
    for (size_t i = 0; i < n; i++)
        x |= (uint64_t)p[i] << (8 * i);
    return x;
}

/* Sign-extend an integer that fills the low `bits` bits. */
static double integer(uint64_t x, int bits) {
    uint64_t half = (uint64_t)1 << (bits - 1);
    return ((double)(x ^ half) - (double)half) / (double)half;
}

static double real32(const uint8_t * p) {
    uint32_t bits = (uint32_t)little(p, 4);
    float x;
    memcpy(&x, &bits, sizeof(x));
    return (double)x;
}

static double real64(const uint8_t * p) {
    uint64_t bits = little(p, 8);
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

static double sample(enum pcm_code code, const uint8_t * p) {
    switch (code) {
    case PCM_U8: return (p[0] - 128) / 128.0;
    case PCM_S16: return integer(little(p, 2), 16);
    case PCM_S24: return integer(little(p, 3), 24);
    case PCM_S32: return integer(little(p, 4), 32);
    case PCM_F32: return real32(p);
    case PCM_F64: return real64(p);
    case PCM_ALAW: return alaw(p[0]);
    case PCM_MULAW: return mulaw(p[0]);
    }
    return 0;
}

size_t sotto_i_pcm_decode(const struct pcm_format * format, const uint8_t * in, float * out, size_t n) {
    size_t width = sotto_i_pcm_width(format->code);
    for (size_t i = 0; i < n; i++) {
        double sum = 0;
        for (int c = 0; c < format->channels; c++, in += width)
            sum += sample(format->code, in);
        out[i] = (float)(sum / format->channels);
        if (!isfinite(out[i]))
            return i;
    }
    return n;
}
