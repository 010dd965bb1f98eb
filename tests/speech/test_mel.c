/* SPDX-License-Identifier: MIT */
/* The spectrogram against the definition, calculated plainly in f64; edges, padding, silence, and the same bits however
 * the work is cut. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "speech/mel.h"
#include "speech/mel_tables.h"
#include "refuse_each.h"

#define PI    3.14159265358979323846
#define LIMIT 1e-4
#define T     SOTTO_I_WINDOW_FRAMES

static sotto_backend_t backend;

static int open_backend(void ** state) {
    (void)state;
    backend = sotto_backend_cpu_init();
    return backend ? 0 : -1;
}

static int close_backend(void ** state) {
    (void)state;
    sotto_backend_free(backend);
    return 0;
}

static struct sotto_i_mel * mel_of(int n_mels) {
    struct sotto_i_mel * mel;
    assert_int_equal(sotto_i_mel_new(n_mels, backend, NULL, &mel), SOTTO_OK);
    return mel;
}

/* ---- sounds: exactly n floats, so that a sanitizer sees every read past them ---- */

static float * sound_of(size_t n) {
    float * pcm = malloc(n ? n * sizeof(*pcm) : 1);
    assert_non_null(pcm);
    return pcm;
}

static float * noise(size_t n, float loudness) {
    float * pcm = sound_of(n);
    uint32_t seed = 7;
    for (size_t i = 0; i < n; i++) {
        seed = seed * 1664525u + 1013904223u;
        pcm[i] = loudness * ((float)(seed >> 8) / (float)(1 << 23) - 1.0f);
    }
    return pcm;
}

static float * tone(size_t n, double hertz, double loudness) {
    float * pcm = sound_of(n);
    for (size_t i = 0; i < n; i++)
        pcm[i] = (float)(loudness * sin(2.0 * PI * hertz * (double)i / 16000.0));
    return pcm;
}

/* ---- the definition ---- */

static double hertz_of(double mel) { return mel < 15 ? 200 * mel / 3 : 1000 * exp((mel - 15) * log(6.4) / 27); }

static double weight(int n_mels, int band, int bin) {
    double top = 45.245640471924965;
    double f[3];
    for (int i = 0; i < 3; i++)
        f[i] = hertz_of(top * (band + i) / (n_mels + 1));
    double up = (40 * bin - f[0]) / (f[1] - f[0]);
    double down = (f[2] - 40 * bin) / (f[2] - f[1]);
    return fmax(0, fmin(up, down)) * 2 / (f[2] - f[0]);
}

/* log10 of all bands of frame t. */
static void define(const float * pcm, size_t n, int64_t t, int n_mels, const double * weights, double * bands) {
    static double cosine[400];
    double power[201];
    double x[400];
    for (int i = 0; i < 400; i++) {
        cosine[i] = cos(2 * PI * i / 400);
        int64_t at = t * 160 - 200 + i;
        at = at < 0 ? -at : at;
        x[i] = (uint64_t)at < n ? pcm[at] * (0.5 - 0.5 * cos(2 * PI * i / 400)) : 0;
    }
    for (int k = 0; k < 201; k++) {
        double re = 0;
        double im = 0;
        for (int i = 0; i < 400; i++) {
            re += x[i] * cosine[k * i % 400];
            im += x[i] * cosine[(k * i + 100) % 400];
        }
        power[k] = re * re + im * im;
    }
    for (int b = 0; b < n_mels; b++) {
        double sum = 0;
        for (int k = 0; k < 201; k++)
            sum += weights[b * 201 + k] * power[k];
        bands[b] = log10(fmax(sum, 1e-10));
    }
}

/* ---- comparison ---- */

struct reference {
    int n_mels;
    size_t n_frames; /* frames 0, step, 2 step, ... and the last 8 of `last` + 1 */
    int64_t * frames;
    double * values; /* n_frames * n_mels */
    double largest;
};

static double * make_weights(int n_mels) {
    double * weights = malloc((size_t)n_mels * 201 * sizeof(*weights));
    assert_non_null(weights);
    for (int b = 0; b < n_mels; b++) {
        for (int k = 0; k < 201; k++)
            weights[b * 201 + k] = weight(n_mels, b, k);
    }
    return weights;
}

/* Frames up to `last`: each step-th, and those around both ends. */
static void make_reference(struct reference * r, const float * pcm, size_t n, int n_mels, int64_t last, int step) {
    double * weights = make_weights(n_mels);
    *r = (struct reference){ .n_mels = n_mels, .largest = -10 };
    r->frames = malloc((size_t)(last + 1) * sizeof(*r->frames));
    r->values = malloc((size_t)(last + 1) * (size_t)n_mels * sizeof(*r->values));
    assert_true(r->frames && r->values);
    for (int64_t t = 0; t <= last; t++) {
        if (t % step != 0 && t > 4 && t < last - 8)
            continue;
        double * values = r->values + r->n_frames * (size_t)n_mels;
        define(pcm, n, t, n_mels, weights, values);
        for (int b = 0; b < n_mels; b++)
            r->largest = fmax(r->largest, values[b]);
        r->frames[r->n_frames++] = t;
    }
    free(weights);
}

static void drop_reference(struct reference * r) {
    free(r->frames);
    free(r->values);
}

static void compare(const struct reference * r, const float * out, int64_t frame0, int n_columns) {
    for (size_t i = 0; i < r->n_frames; i++) {
        int64_t t = r->frames[i] - frame0;
        for (int b = 0; b < r->n_mels && t >= 0 && t < n_columns; b++) {
            double expected = (fmax(r->values[i * (size_t)r->n_mels + (size_t)b], r->largest - 8) + 4) / 4;
            assert_true(fabs(out[b * T + t] - expected) <= LIMIT);
        }
    }
}

static void check_fill(const float * out, int n_mels, int first, float value) {
    for (int b = 0; b < n_mels; b++) {
        for (int t = first; t < T; t++)
            assert_true(out[b * T + t] == value);
    }
}

/* The first window of a sound in both ways of padding, each step-th frame against the definition. */
static void check_sound(const float * pcm, size_t n, int n_mels, int step) {
    struct sotto_i_mel * mel = mel_of(n_mels);
    float * out = malloc((size_t)n_mels * T * sizeof(*out));
    assert_non_null(out);
    int content = (int)sotto_i_mel_content_frames(n);
    content = content < T ? content : T;
    struct reference r;
    make_reference(&r, pcm, n, n_mels, (int64_t)n / 160 + 3, step);
    float largest;
    assert_int_equal(sotto_i_mel_max(mel, pcm, n, &largest), SOTTO_OK);
    assert_true(fabs(largest - r.largest) <= 1e-5);
    assert_int_equal(sotto_i_mel_window(mel, pcm, n, 0, content, largest, SOTTO_PAD_ZERO, out, NULL), SOTTO_OK);
    compare(&r, out, 0, content);
    check_fill(out, n_mels, content, 0.0f);
    assert_int_equal(sotto_i_mel_window(mel, pcm, n, 0, content, largest, SOTTO_PAD_SILENCE, out, NULL), SOTTO_OK);
    compare(&r, out, 0, T);
    check_fill(out, n_mels, (int)(n / 160) + 3 < T ? (int)(n / 160) + 3 : T, (fmaxf(largest - 8, -10) + 4) / 4);
    drop_reference(&r);
    free(out);
    sotto_i_mel_free(mel);
}

/* ---- cases ---- */

static void filters_are_those_of_the_reference(void ** state) {
    (void)state;
    static const struct {
        int n_mels;
        int n_nonzero;
        double sum, first, largest;
    } known[] = { { 80, 391, 1.99902, 0.0248626, 0.0258807 }, { 128, 394, 3.19099, 0.0123740, 0.0416818 } };
    static float filters[128 * 201];
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        int n_nonzero = 0;
        double sum = 0;
        double largest = 0;
        sotto_i_mel_filters(known[i].n_mels, filters);
        for (int k = 0; k < known[i].n_mels * 201; k++) {
            n_nonzero += filters[k] != 0;
            sum += filters[k];
            largest = fmax(largest, filters[k]);
        }
        assert_int_equal(n_nonzero, known[i].n_nonzero);
        assert_true(fabs(sum - known[i].sum) < 1e-5);
        assert_true(fabs(filters[1] - known[i].first) < 1e-7);
        assert_true(filters[0] == 0 && filters[2] == 0);
        assert_true(fabs(largest - known[i].largest) < 1e-7);
    }
}

static void a_handful_of_samples_is_enough(void ** state) {
    (void)state;
    static const size_t sizes[] = { 0, 1, 2, 159, 160, 199, 200, 201, 399, 400, 401, 561 };
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        float * pcm = noise(sizes[i], 0.3f);
        check_sound(pcm, sizes[i], 80, 1);
        free(pcm);
    }
}

static void known_values_of_a_tone(void ** state) {
    (void)state;
    float * pcm = tone(16000, 1000, 0.5);
    float * out = malloc(80 * T * sizeof(*out));
    assert_non_null(out);
    struct sotto_i_mel * mel = mel_of(80);
    float largest;
    bool silent;
    assert_int_equal(sotto_i_mel_max(mel, pcm, 16000, &largest), SOTTO_OK);
    assert_true(fabs(largest - 1.758607) < 1e-5);
    assert_int_equal(sotto_i_mel_window(mel, pcm, 16000, 0, 100, largest, SOTTO_PAD_ZERO, out, &silent), SOTTO_OK);
    assert_false(silent);
    int best = 0;
    for (int b = 0; b < 80; b++)
        best = out[b * T + 50] > out[best * T + 50] ? b : best;
    assert_int_equal(best, 26);
    assert_true(fabs(out[26 * T + 50] - 1.439652) < 1e-5);
    assert_true(fabs(out[50] - -0.560348) < 1e-5);
    sotto_i_mel_free(mel);
    free(out);
    free(pcm);
}

static void loud_edges(void ** state) {
    (void)state;
    static const double hertz[] = { 440, 1234.5, 7000.7 };
    for (size_t i = 0; i < sizeof(hertz) / sizeof(hertz[0]); i++) {
        float * pcm = tone(16000, hertz[i], 1.0);
        check_sound(pcm, 16000, 80, 1);
        check_sound(pcm, 16000, 128, 7);
        free(pcm);
    }
}

/* The loudest frame is the last one, or the one after the content. */
static void a_click_at_the_very_end(void ** state) {
    (void)state;
    static const size_t sizes[] = { 480000, 480001 };
    for (size_t i = 0; i < 2; i++) {
        float * pcm = noise(sizes[i], 0.01f);
        pcm[sizes[i] - 60] = 1.0f;
        check_sound(pcm, sizes[i], i ? 128 : 80, 97);
        free(pcm);
    }
}

static void silence_is_silent(void ** state) {
    (void)state;
    enum { N = 32000 };
    float * pcm = sound_of(N);
    float * out = malloc(80 * T * sizeof(*out));
    assert_non_null(out);
    memset(pcm, 0, N * sizeof(*pcm));
    struct sotto_i_mel * mel = mel_of(80);
    float largest;
    bool silent = false;
    assert_int_equal(sotto_i_mel_max(mel, pcm, N, &largest), SOTTO_OK);
    assert_true(largest == -10.0f);
    assert_int_equal(sotto_i_mel_window(mel, pcm, N, 0, 200, largest, SOTTO_PAD_SILENCE, out, &silent), SOTTO_OK);
    assert_true(silent);
    check_fill(out, 80, 0, -1.5f);
    pcm[100 * 160] = 0.5f; /* seen by frames 99 to 101 */
    assert_int_equal(sotto_i_mel_max(mel, pcm, N, &largest), SOTTO_OK);
    assert_int_equal(sotto_i_mel_window(mel, pcm, N, 0, 200, largest, SOTTO_PAD_ZERO, out, &silent), SOTTO_OK);
    assert_false(silent);
    assert_int_equal(sotto_i_mel_window(mel, pcm, N, 110, 90, largest, SOTTO_PAD_ZERO, out, &silent), SOTTO_OK);
    assert_true(silent);
    assert_int_equal(sotto_i_mel_window(mel, pcm, N, 0, 90, largest, SOTTO_PAD_SILENCE, out, &silent), SOTTO_OK);
    assert_true(silent); /* the frames asked for, although what follows is sound */
    sotto_i_mel_free(mel);
    free(out);
    free(pcm);
}

static void a_window_past_the_end_is_zero(void ** state) {
    (void)state;
    float * pcm = noise(1600, 0.5f);
    float * out = malloc(80 * T * sizeof(*out));
    assert_non_null(out);
    struct sotto_i_mel * mel = mel_of(80);
    bool silent;
    assert_int_equal(sotto_i_mel_window(mel, pcm, 1600, 3010, 0, 0.0f, SOTTO_PAD_SILENCE, out, &silent), SOTTO_OK);
    check_fill(out, 80, 0, 0.0f);
    assert_true(silent);
    assert_int_equal(sotto_i_mel_window(mel, pcm, 1600, 3000, 0, 0.0f, SOTTO_PAD_SILENCE, out, &silent), SOTTO_OK);
    check_fill(out, 80, 10, 0.0f);
    assert_true(out[0] == -1.0f && out[9] == -1.0f);
    sotto_i_mel_free(mel);
    free(out);
    free(pcm);
}

/* A frame has the same bits whichever run or column it falls in, and for any number of threads. */
static void bits_do_not_depend_on_the_cut(void ** state) {
    (void)state;
    enum { N = 160 * 1300 };
    float * pcm = noise(N, 0.7f);
    float * a = malloc(80 * T * sizeof(*a));
    float * b = malloc(80 * T * sizeof(*b));
    assert_true(a && b);
    struct sotto_i_mel * mel = mel_of(80);
    assert_int_equal(sotto_i_mel_window(mel, pcm, N, 0, 1300, 2.0f, SOTTO_PAD_ZERO, a, NULL), SOTTO_OK);
    for (int threads = 1; threads <= 3; threads++) {
        int shift = 123 * threads;
        assert_int_equal(sotto_backend_cpu_set_n_threads(backend, threads), SOTTO_OK);
        assert_int_equal(sotto_i_mel_window(mel, pcm, N, shift, 1300 - shift, 2.0f, SOTTO_PAD_ZERO, b, NULL), SOTTO_OK);
        for (int band = 0; band < 80; band++)
            assert_memory_equal(a + band * T + shift, b + band * T, (size_t)(1300 - shift) * sizeof(*a));
    }
    assert_int_equal(sotto_backend_cpu_set_n_threads(backend, 2), SOTTO_OK);
    sotto_i_mel_free(mel);
    free(a);
    free(b);
    free(pcm);
}

static void numbers_of_bands(void ** state) {
    (void)state;
    static const int bands[] = { 1, 2, 13, 512 };
    float * pcm = noise(4000, 0.5f);
    for (size_t i = 0; i < sizeof(bands) / sizeof(bands[0]); i++)
        check_sound(pcm, 4000, bands[i], 5);
    free(pcm);
}

static void absurdly_loud_sound_stays_finite(void ** state) {
    (void)state;
    float * pcm = noise(3200, 1e30f);
    float * out = malloc(80 * T * sizeof(*out));
    assert_non_null(out);
    struct sotto_i_mel * mel = mel_of(80);
    float largest;
    assert_int_equal(sotto_i_mel_max(mel, pcm, 3200, &largest), SOTTO_OK);
    assert_true(largest > 30 && largest < 39);
    assert_int_equal(sotto_i_mel_window(mel, pcm, 3200, 0, 20, largest, SOTTO_PAD_ZERO, out, NULL), SOTTO_OK);
    for (int i = 0; i < 80 * T; i++)
        assert_true(isfinite(out[i]));
    sotto_i_mel_free(mel);
    free(out);
    free(pcm);
}

static enum sotto_status make_and_use(const struct sotto_allocator * allocator, void * user_data) {
    const float * pcm = user_data;
    static float out[80 * T];
    struct sotto_i_mel * mel;
    float largest;
    enum sotto_status status = sotto_i_mel_new(80, backend, allocator, &mel);
    if (status == SOTTO_OK)
        status = sotto_i_mel_max(mel, pcm, 1600, &largest);
    if (status == SOTTO_OK)
        status = sotto_i_mel_window(mel, pcm, 1600, 0, 10, largest, SOTTO_PAD_ZERO, out, NULL);
    sotto_i_mel_free(mel);
    return status;
}

static void every_allocation_may_fail(void ** state) {
    (void)state;
    float * pcm = noise(1600, 0.5f);
    assert_true(refuse_each(make_and_use, pcm) > 4);
    free(pcm);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(filters_are_those_of_the_reference),
        cmocka_unit_test(a_handful_of_samples_is_enough),
        cmocka_unit_test(known_values_of_a_tone),
        cmocka_unit_test(loud_edges),
        cmocka_unit_test(a_click_at_the_very_end),
        cmocka_unit_test(silence_is_silent),
        cmocka_unit_test(a_window_past_the_end_is_zero),
        cmocka_unit_test(bits_do_not_depend_on_the_cut),
        cmocka_unit_test(numbers_of_bands),
        cmocka_unit_test(absurdly_loud_sound_stays_finite),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, open_backend, close_backend);
}
