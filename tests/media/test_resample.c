/* SPDX-License-Identifier: MIT */
/* The resampler: what the specification requires of it, measured; its formula, evaluated directly; lengths, time 0,
 * pieces of any size, and the n-th allocation failing for every n. All through the public call, with raw f32. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "guarded.h"
#include "refuse_each.h"
#include "sotto/media.h"

enum { OUT = 16000 };

static const double PI = 3.14159265358979323846;

struct source {
    const float * samples;
    size_t n, at, step; /* bytes */
};

static size_t read_source(void * user_data, void * dst, size_t n) {
    struct source * s = user_data;
    n = n < s->step ? n : s->step;
    n = n < s->n - s->at ? n : s->n - s->at;
    memcpy(dst, (const char *)s->samples + s->at, n);
    s->at += n;
    return n;
}

static enum sotto_status try(const float * samples, size_t n, int from, int to, size_t step,
                             const struct sotto_allocator * allocator, struct sotto_audio ** audio) {
    struct source source = { samples, n * sizeof(float), 0, step };
    struct sotto_raw_format raw = { sizeof(raw), SOTTO_SAMPLE_F32, false, from, 1 };
    struct sotto_audio_params params = sotto_audio_default_params();
    params.raw = &raw;
    params.rate = to;
    params.allocator = allocator;
    return sotto_audio_load_callback(read_source, &source, "source", &params, audio);
}

static struct sotto_audio * resampled(const float * samples, size_t n, int from, int to) {
    struct sotto_audio * audio;
    if (try(samples, n, from, to, SIZE_MAX, NULL, &audio) != SOTTO_OK)
        fail_msg("%s", sotto_last_error_text());
    assert_int_equal(audio->rate, to);
    return audio;
}

static float * tone(double hz, int rate, size_t n) {
    float * x = malloc(n * sizeof(*x));
    assert_non_null(x);
    for (size_t i = 0; i < n; i++)
        x[i] = (float)(0.5 * sin(2 * PI * hz * (double)i / rate));
    return x;
}

/* Power of what is left in the middle of a resampled second when the ideal tone of that amplitude is taken away,
 * against that of the tone that went in, in dB. */
static double rest(double hz, int rate, int to, double amplitude) {
    float * in = tone(hz, rate, (size_t)rate);
    struct sotto_audio * audio = resampled(in, (size_t)rate, rate, to);
    double power = 0;
    size_t edge = (size_t)to / 10;
    for (size_t i = edge; i < audio->n_samples - edge; i++) {
        double ideal = amplitude * sin(2 * PI * hz * (double)i / to);
        power += ((double)audio->samples[i] - ideal) * ((double)audio->samples[i] - ideal);
    }
    power /= (double)(audio->n_samples - 2 * edge);
    sotto_audio_free(audio);
    free(in);
    return 10 * log10(power / 0.125);
}

static void tone_of_1_khz(void ** state) {
    (void)state;
    static const int rates[] = { 8000, 11025, 22050, 44100, 48000, 96000 };
    for (size_t i = 0; i < sizeof(rates) / sizeof(rates[0]); i++) {
        double db = rest(1000, rates[i], OUT, 0.5); /* the error of gain and time counts too */
        print_message("1 kHz at %d Hz: SNR %.1f dB\n", rates[i], -db);
        assert_true(db <= -80);
    }
}

static void aliases(void ** state) {
    (void)state;
    static const int rates[] = { 22050, 24000, 44100, 48000, 96000, 192000 };
    double worst = -INFINITY;
    for (size_t i = 0; i < sizeof(rates) / sizeof(rates[0]); i++) {
        for (double hz = 8300; hz < rates[i] / 2.0; hz = hz < 8600 ? hz + 50 : hz * 1.23) {
            double db = rest(hz, rates[i], OUT, 0);
            worst = db > worst ? db : worst;
            if (db > -70)
                fail_msg("%g Hz at %d Hz comes out at %.1f dB", hz, rates[i], db);
        }
    }
    print_message("loudest alias: %.1f dB\n", worst);
}

/* What is left beside an up-sampled tone are its images and the loss at the edge of the pass band. */
static void images(void ** state) {
    (void)state;
    for (double hz = 100; hz <= 3400; hz += 300) {
        double db = rest(hz, 8000, OUT, 0.5);
        if (db > -70)
            fail_msg("beside %g Hz at 8000 Hz comes %.1f dB", hz, db);
    }
    assert_true(rest(4000, 11025, OUT, 0.5) <= -70);
    assert_true(rest(1000, 1000 * 7, 768000, 0.5) <= -70);
}

/* ---- the formula ---- */

static double bessel(double x) {
    double sum = 0;
    double term = 1;
    for (int k = 0; k < 60; k++) {
        sum += term;
        term *= x * x / 4 / ((k + 1.0) * (k + 1.0));
    }
    return sum;
}

static double formula(const float * x, size_t n, int from, int to, size_t m) {
    double lower = from < to ? from : to;
    double t = (double)m / to;
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        double u = (t - (double)i / from) * lower;
        if (fabs(u) > 32 + 1e-9)
            continue;
        double v = PI * 0.95 * u;
        sum +=
            (double)x[i] * (fabs(v) < 1e-12 ? 1 : sin(v) / v) * bessel(9 * sqrt(fmax(1 - u * u / 1024, 0))) / bessel(9);
    }
    return sum * 0.95 * lower / from;
}

static void agrees_with_formula(void ** state) {
    (void)state;
    static const int rates[][2] = { { 8000, OUT },  { 11025, OUT }, { 44100, OUT },  { 48000, OUT },
                                    { 96000, OUT }, { 44099, OUT }, { 1009, OUT },   { 127997, OUT },
                                    { OUT, 48000 }, { OUT, 1000 },  { 1000, 768000 } };
    struct dice dice = { 4 };
    for (size_t k = 0; k < sizeof(rates) / sizeof(rates[0]); k++) {
        float x[2000];
        for (size_t i = 0; i < 2000; i++)
            x[i] = dice_float(&dice);
        struct sotto_audio * audio = resampled(x, 2000, rates[k][0], rates[k][1]);
        double worst = 0;
        for (size_t m = 0; m < audio->n_samples; m += 1 + audio->n_samples / 300) {
            double off = fabs((double)audio->samples[m] - formula(x, 2000, rates[k][0], rates[k][1], m));
            worst = off > worst ? off : worst;
        }
        print_message("%d to %d Hz: off by %.2g at most\n", rates[k][0], rates[k][1], worst);
        assert_true(worst <= 1e-6);
        sotto_audio_free(audio);
    }
}

/* ---- lengths and times ---- */

static void lengths(void ** state) {
    (void)state;
    static const float zeros[3000];
    static const int rates[] = { 1000, 7999, 8000, 11025, 22050, 44100, 48000, 96000, 768000 };
    for (size_t k = 0; k < sizeof(rates) / sizeof(rates[0]); k++) {
        for (size_t n = 1; n <= 3000; n += n < 60 ? 1 : 97) {
            size_t due = (size_t)floor((double)n * OUT / rates[k] + 0.5);
            struct sotto_audio * audio;
            enum sotto_status status = try(zeros, n, rates[k], OUT, SIZE_MAX, NULL, &audio);
            assert_int_equal(status, due > 0 ? SOTTO_OK : SOTTO_E_AUDIO_EMPTY);
            if (due > 0)
                assert_int_equal(audio->n_samples, due);
            sotto_audio_free(audio);
        }
    }
}

static void impulses_stay(void ** state) {
    (void)state;
    static const int rates[] = { 8000, 32000, 48000, 96000 };
    for (size_t k = 0; k < sizeof(rates) / sizeof(rates[0]); k++) {
        for (size_t at = 0; at < 4000; at += 480) {
            float x[4000] = { 0 };
            x[at] = 1;
            struct sotto_audio * audio = resampled(x, 4000, rates[k], OUT);
            size_t top = 0;
            for (size_t i = 0; i < audio->n_samples; i++)
                top = audio->samples[i] > audio->samples[top] ? i : top;
            assert_int_equal(top, at * OUT / (size_t)rates[k]);
            sotto_audio_free(audio);
        }
    }
}

static void same_rate_is_untouched(void ** state) {
    (void)state;
    float x[1000];
    struct dice dice = { 7 };
    for (size_t i = 0; i < 1000; i++)
        x[i] = 3 * dice_float(&dice);
    struct sotto_audio * audio = resampled(x, 1000, OUT, OUT);
    assert_int_equal(audio->n_samples, 1000);
    assert_memory_equal(audio->samples, x, sizeof(x));
    sotto_audio_free(audio);
}

static void pieces_of_any_size(void ** state) {
    (void)state;
    float x[20000];
    struct dice dice = { 9 };
    for (size_t i = 0; i < 20000; i++)
        x[i] = dice_float(&dice);
    for (int from = 11025; from <= 44100; from *= 2) {
        struct sotto_audio * whole = resampled(x, 20000, from, OUT);
        for (size_t step = 1; step < 80000; step = step * 13 + 1) {
            struct sotto_audio * audio;
            assert_int_equal(try(x, 20000, from, OUT, step, NULL, &audio), SOTTO_OK);
            assert_int_equal(audio->n_samples, whole->n_samples);
            assert_memory_equal(audio->samples, whole->samples, audio->n_samples * sizeof(float));
            sotto_audio_free(audio);
        }
        sotto_audio_free(whole);
    }
}

/* ---- refusals ---- */

static void too_large_values(void ** state) {
    (void)state;
    float x[1000];
    for (size_t i = 0; i < 1000; i++)
        x[i] = i < 500 ? -3e38f : 3e38f;
    struct sotto_audio * audio;
    assert_int_equal(try(x, 1000, 8000, OUT, SIZE_MAX, NULL, &audio), SOTTO_E_AUDIO_NAN);
    assert_null(audio);
}

static void impossible_rates(void ** state) {
    (void)state;
    static const int rates[] = { -1, 1, 999, 768001, INT32_MAX };
    const float x[1] = { 0 };
    struct sotto_audio * audio;
    for (size_t i = 0; i < sizeof(rates) / sizeof(rates[0]); i++) {
        assert_int_equal(try(x, 1, OUT, rates[i], SIZE_MAX, NULL, &audio), SOTTO_E_PARAM);
        assert_int_equal(try(x, 1, rates[i], OUT, SIZE_MAX, NULL, &audio), SOTTO_E_PARAM);
    }
}

static enum sotto_status resample_zeros(const struct sotto_allocator * allocator, void * user_data) {
    static const float zeros[100000];
    struct sotto_audio * audio;
    enum sotto_status status = try(zeros, 100000, *(const int *)user_data, OUT, SIZE_MAX, allocator, &audio);
    sotto_audio_free(audio);
    return status;
}

static void nth_allocation_fails(void ** state) {
    (void)state;
    int rates[] = { 48000, 44099 };
    for (size_t k = 0; k < 2; k++)
        assert_true(refuse_each(resample_zeros, &rates[k]) > 3);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tone_of_1_khz),
        cmocka_unit_test(aliases),
        cmocka_unit_test(images),
        cmocka_unit_test(agrees_with_formula),
        cmocka_unit_test(lengths),
        cmocka_unit_test(impulses_stay),
        cmocka_unit_test(same_rate_is_untouched),
        cmocka_unit_test(pieces_of_any_size),
        cmocka_unit_test(too_large_values),
        cmocka_unit_test(impossible_rates),
        cmocka_unit_test(nth_allocation_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
