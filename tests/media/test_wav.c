/* SPDX-License-Identifier: MIT */
/* The WAV reader: widths, forms, chunks, lengths nobody filled in (cases A01, A02, A04, A05, A08), every refusal, every
 * truncation, and the n-th allocation failing for every n. Files are built here, chunk by chunk. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "counting_allocator.h"
#include "gguf_example.h"
#include "refuse_each.h"
#include "sotto/media.h"

enum { N = 16000 };

/* ---- building files ---- */

struct wav {
    uint8_t * data;
    size_t size, cap;
};

static void put(struct wav * w, const void * bytes, size_t n) {
    if (w->size + n >= w->cap) {
        w->cap = 2 * w->cap + n + 64;
        w->data = realloc(w->data, w->cap);
        assert_non_null(w->data);
    }
    if (n > 0)
        memcpy(w->data + w->size, bytes, n);
    w->size += n;
}

static void put_number(struct wav * w, uint64_t x, size_t width) {
    for (size_t i = 0; i < width; i++)
        put(w, &(uint8_t){ (uint8_t)(x >> (8 * i)) }, 1);
}

static void put_chunk(struct wav * w, const char * id, const void * payload, size_t n) {
    put(w, id, 4);
    put_number(w, n, 4);
    put(w, payload, n);
    put(w, "", n % 2);
}

static struct wav begin(void) {
    struct wav w = { NULL, 0, 0 };
    put(&w, "RIFF\0\0\0\0WAVE", 12);
    return w;
}

static void set_u32(struct wav * w, size_t at, uint32_t x) {
    for (size_t i = 0; i < 4; i++)
        w->data[at + i] = (uint8_t)(x >> (8 * i));
}

static void put_format(struct wav * w, int tag, int channels, int rate, int bits) {
    put(w, "fmt \x10\0\0\0", 8);
    put_number(w, (uint64_t)tag, 2);
    put_number(w, (uint64_t)channels, 2);
    put_number(w, (uint64_t)rate, 4);
    put_number(w, (uint64_t)(rate * channels * bits / 8), 4);
    put_number(w, (uint64_t)(channels * bits / 8), 2);
    put_number(w, (uint64_t)bits, 2);
}

static const uint8_t guid_tail[14] = { 0, 0, 0, 0, 0x10, 0, 0x80, 0, 0, 0xAA, 0, 0x38, 0x9B, 0x71 };

static void put_extensible(struct wav * w, int sub, int channels, int rate, int bits, int valid, const uint8_t * tail) {
    put_format(w, 0xFFFE, channels, rate, bits);
    set_u32(w, w->size - 20, 40);
    put_number(w, 22, 2);
    put_number(w, (uint64_t)valid, 2);
    put_number(w, 3, 4);
    put_number(w, (uint64_t)sub, 2);
    put(w, tail, 14);
}

static void finish(struct wav * w) { set_u32(w, 4, (uint32_t)(w->size - 8)); }

/* Half a tone of 440 Hz, as a real number. */
static double tone(size_t i) { return 0.5 * sin(2 * 3.14159265358979 * 440 * (double)i / N); }

static void put_sample(struct wav * w, double x, int tag, int bits) {
    if (tag == 3 && bits == 32) {
        float f = (float)x;
        uint32_t word;
        memcpy(&word, &f, 4);
        put_number(w, word, 4);
    } else if (tag == 3) {
        uint64_t word;
        memcpy(&word, &x, 8);
        put_number(w, word, 8);
    } else if (bits == 8) {
        put_number(w, (uint64_t)(128 + lrint(x * 128)), 1);
    } else {
        put_number(w, (uint64_t)llrint(x * ldexp(1, bits - 1)), (size_t)bits / 8);
    }
}

/* All tone samples of one width, as the payload of a data chunk. */
static struct wav payload(int tag, int bits, size_t n) {
    struct wav p = { NULL, 0, 0 };
    for (size_t i = 0; i < n; i++)
        put_sample(&p, tone(i), tag, bits);
    return p;
}

static struct wav plain(size_t n) {
    struct wav w = begin();
    struct wav p = payload(1, 16, n);
    put_format(&w, 1, 1, N, 16);
    put_chunk(&w, "data", p.data, p.size);
    finish(&w);
    free(p.data);
    return w;
}

/* ---- loading ---- */

struct pipe_state {
    const struct wav * wav;
    size_t at, step;
};

static size_t read_pipe(void * user_data, void * dst, size_t n) {
    struct pipe_state * p = user_data;
    size_t left = p->wav->size - p->at;
    n = n < p->step ? n : p->step;
    n = n < left ? n : left;
    memcpy(dst, p->wav->data + p->at, n);
    p->at += n;
    return n;
}

/* Load as a file and through pipes that deliver little at a time; all have to agree. */
static enum sotto_status load(const struct wav * w, struct sotto_audio ** audio) {
    const char * path = temp_path("test.wav");
    struct sotto_audio_params params = sotto_audio_default_params();
    params.reader = SOTTO_AUDIO_OWN;
    write_bytes(path, w->data, w->size);
    enum sotto_status status = sotto_audio_load(path, &params, audio);
    unlink(path);
    for (size_t step = 1; step < 100000; step *= 37) {
        struct pipe_state p = { w, 0, step };
        struct sotto_audio * other;
        assert_int_equal(sotto_audio_load_callback(read_pipe, &p, "pipe", &params, &other), status);
        assert_true((other != NULL) == (status == SOTTO_OK));
        if (other != NULL) {
            assert_int_equal(other->n_samples, (*audio)->n_samples);
            assert_memory_equal(other->samples, (*audio)->samples, other->n_samples * sizeof(float));
        }
        sotto_audio_free(other);
    }
    return status;
}

static void refused(struct wav * w, enum sotto_status status, const char * word) {
    struct sotto_audio * audio = (struct sotto_audio *)w;
    assert_int_equal(load(w, &audio), status);
    assert_null(audio);
    if (strstr(sotto_last_error_text(), word) == NULL)
        fail_msg("'%s' is not in: %s", word, sotto_last_error_text());
    free(w->data);
}

/* Loads, has n samples, each within `step` of the tone. */
static void is_tone(struct wav * w, size_t n, double step) {
    struct sotto_audio * audio;
    if (load(w, &audio) != SOTTO_OK)
        fail_msg("%s", sotto_last_error_text());
    assert_int_equal(audio->n_samples, n);
    assert_int_equal(audio->rate, N);
    for (size_t i = 0; i < n; i++) {
        if (!(fabs(audio->samples[i] - tone(i)) <= step))
            fail_msg("sample %zu is %g, not %g", i, (double)audio->samples[i], tone(i));
    }
    sotto_audio_free(audio);
    free(w->data);
}

/* ---- A01: lengths that nobody filled in ---- */

static void streamed_lengths(void ** state) {
    (void)state;
    static const uint32_t sizes[][2] = { { UINT32_MAX, UINT32_MAX }, { 0, 0 },          { UINT32_MAX, 0 },
                                         { 0, UINT32_MAX },          { 36, 0 },         { 2 * N + 36, 0 },
                                         { 2 * N + 36, UINT32_MAX }, { 0x7FFFFFFF, 0 }, { 0x80000024, 0x80000000 } };
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        struct wav w = plain(N);
        set_u32(&w, 4, sizes[i][0]);
        set_u32(&w, 40, sizes[i][1]);
        is_tone(&w, N, 0.5 / 32768);
    }
}

static void announced_length_is_not_allocated(void ** state) {
    (void)state;
    struct wav w = plain(1000);
    set_u32(&w, 4, 0xFFFFFF00);
    set_u32(&w, 40, 0xFFFFFE00);
    struct counting_allocator allocator;
    counting_allocator_init(&allocator);
    struct sotto_audio_params params = sotto_audio_default_params();
    params.allocator = &allocator.base;
    struct pipe_state p = { &w, 0, SIZE_MAX };
    struct sotto_audio * audio;
    assert_int_equal(sotto_audio_load_callback(read_pipe, &p, "pipe", &params, &audio), SOTTO_OK);
    assert_int_equal(audio->n_samples, 1000);
    assert_true(allocator.peak < 200000);
    sotto_audio_free(audio);
    assert_int_equal(allocator.held, 0);
    free(w.data);
}

static void rf64_sizes(void ** state) {
    (void)state;
    struct wav w = { NULL, 0, 0 };
    put(&w, "RF64\xFF\xFF\xFF\xFFWAVE", 12);
    struct wav sizes = { NULL, 0, 0 };
    struct wav p = payload(1, 16, N);
    put_number(&sizes, 0, 8);
    put_number(&sizes, p.size, 8);
    put_number(&sizes, N, 8);
    put_number(&sizes, 0, 4);
    put_chunk(&w, "ds64", sizes.data, sizes.size);
    put_format(&w, 1, 1, N, 16);
    size_t at = w.size + 4;
    put_chunk(&w, "data", p.data, p.size);
    set_u32(&w, at, UINT32_MAX);
    put_chunk(&w, "LIST", "not sound!", 10);
    free(sizes.data);
    free(p.data);
    is_tone(&w, N, 0.5 / 32768);
}

/* ---- A02: other chunks ---- */

static void chunks_around(void ** state) {
    (void)state;
    static const char filler[4096];
    struct wav w = begin();
    struct wav p = payload(1, 16, N);
    put_chunk(&w, "JUNK", filler, 28);
    put_format(&w, 1, 1, N, 16);
    put_chunk(&w, "LIST", filler, 27);
    put_chunk(&w, "FLLR", filler, 4096);
    put_chunk(&w, "data", p.data, p.size);
    put_chunk(&w, "LIST", filler, 26);
    finish(&w);
    free(p.data);
    is_tone(&w, N, 0.5 / 32768);
}

/* ---- A04: extensible ---- */

static void extensible(void ** state) {
    (void)state;
    static const struct {
        int sub, bits, valid;
    } kinds[] = { { 1, 24, 24 }, { 3, 32, 32 }, { 1, 32, 24 }, { 1, 16, 16 }, { 1, 8, 8 }, { 3, 64, 64 } };
    for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
        struct wav w = begin();
        struct wav p = { NULL, 0, 0 };
        put_extensible(&w, kinds[k].sub, 2, N, kinds[k].bits, kinds[k].valid, guid_tail);
        for (size_t i = 0; i < 1000; i++) { /* left + right = 2 x tone */
            put_sample(&p, tone(i) * 1.5, kinds[k].sub, kinds[k].bits);
            put_sample(&p, tone(i) * 0.5, kinds[k].sub, kinds[k].bits);
        }
        put_chunk(&w, "data", p.data, p.size);
        finish(&w);
        free(p.data);
        is_tone(&w, 1000, kinds[k].bits == 8 ? 1.0 / 128 : 1.0 / 32768);
    }
    struct wav w = begin();
    uint8_t tail[14] = { 9 };
    put_extensible(&w, 0x1234, 2, N, 16, 16, tail);
    put_chunk(&w, "data", "abcd", 4);
    refused(&w, SOTTO_E_AUDIO_CODEC, "00091234-0000");
    w = begin();
    put_format(&w, 0xFFFE, 1, N, 16);
    put_chunk(&w, "data", "abcd", 4);
    refused(&w, SOTTO_E_AUDIO_CORRUPT, "shorter than 40");
}

/* ---- A05: widths ---- */

static void widths(void ** state) {
    (void)state;
    static const int kinds[][2] = { { 1, 8 }, { 1, 16 }, { 1, 24 }, { 1, 32 }, { 3, 32 }, { 3, 64 } };
    for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
        struct wav w = begin();
        struct wav p = payload(kinds[k][0], kinds[k][1], N);
        put_format(&w, kinds[k][0], 1, N, kinds[k][1]);
        put_chunk(&w, "data", p.data, p.size);
        finish(&w);
        free(p.data);
        is_tone(&w, N, kinds[k][1] == 8 ? 1.0 / 128 : 1.0 / 32768);
    }
}

static void exact_values(void ** state) {
    (void)state;
    static const struct {
        int tag, bits;
        const char * bytes;
        double value;
    } known[] = {
        { 1, 8, "\x00", -1 },
        { 1, 8, "\x80", 0 },
        { 1, 8, "\xFF", 127 / 128.0 },
        { 1, 16, "\x00\x80", -1 },
        { 1, 16, "\xFF\x7F", 32767 / 32768.0 },
        { 1, 24, "\0\0\x80", -1 },
        { 1, 24, "\x01\0\0", 1 / 8388608.0 },
        { 1, 32, "\0\0\0\x80", -1 },
        { 3, 32, "\0\0\x40\x40", 3 },
        { 3, 64, "\0\0\0\0\0\0\x04\xC0", -2.5 },
        { 6, 8, "\xD5", 8 / 32768.0 },
        { 6, 8, "\x55", -8 / 32768.0 },
        { 6, 8, "\xAA", 32256 / 32768.0 },
        { 6, 8, "\x2A", -32256 / 32768.0 },
        { 7, 8, "\xFF", 0 },
        { 7, 8, "\x7F", 0 },
        { 7, 8, "\x80", 32124 / 32768.0 },
        { 7, 8, "\x00", -32124 / 32768.0 },
        { 7, 8, "\xFE", 8 / 32768.0 },
    };
    for (size_t k = 0; k < sizeof(known) / sizeof(known[0]); k++) {
        struct wav w = begin();
        struct sotto_audio * audio;
        put_format(&w, known[k].tag, 1, N, known[k].bits);
        put_chunk(&w, "data", known[k].bytes, (size_t)known[k].bits / 8);
        finish(&w);
        assert_int_equal(load(&w, &audio), SOTTO_OK);
        assert_int_equal(audio->n_samples, 1);
        if (audio->samples[0] != (float)known[k].value)
            fail_msg("row %zu gives %g, not %g", k, (double)audio->samples[0], known[k].value);
        sotto_audio_free(audio);
        free(w.data);
    }
}

static void odd_floats(void ** state) {
    (void)state;
    const double odd[] = { NAN, INFINITY, -INFINITY, 1e300 };
    for (int k = 0; k < 4; k++) {
        for (int bits = 32; bits <= 64; bits += 32) {
            struct wav w = begin();
            struct wav p = payload(3, bits, 100);
            put_sample(&p, odd[k], 3, bits);
            put_format(&w, 3, 1, N, bits);
            put_chunk(&w, "data", p.data, p.size);
            finish(&w);
            free(p.data);
            refused(&w, SOTTO_E_AUDIO_NAN, "sample 100");
        }
    }
}

/* ---- A08: little or nothing ---- */

static void few_samples(void ** state) {
    (void)state;
    static const size_t counts[] = { 1, 2, 199, 200, 201, 399, 400 };
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        struct wav w = plain(counts[i]);
        is_tone(&w, counts[i], 0.5 / 32768);
    }
    struct wav w = plain(0);
    refused(&w, SOTTO_E_AUDIO_EMPTY, "no sample");
    w = plain(0);
    put_chunk(&w, "LIST", "0123456789", 10);
    finish(&w);
    refused(&w, SOTTO_E_AUDIO_EMPTY, "no sample");
    w = begin();
    put_format(&w, 1, 1, N, 16);
    finish(&w);
    refused(&w, SOTTO_E_AUDIO_EMPTY, "no 'data'");
    w = begin();
    put_format(&w, 1, 2, N, 16);
    put_chunk(&w, "data", "abc", 3); /* less than a frame */
    refused(&w, SOTTO_E_AUDIO_EMPTY, "no sample");
}

/* ---- refusals ---- */

static void refused_format(int tag, int channels, int rate, int bits, enum sotto_status status, const char * word) {
    struct wav w = begin();
    put_format(&w, tag, channels, rate, bits);
    put_chunk(&w, "data", "0123456789abcdef", 16);
    finish(&w);
    refused(&w, status, word);
}

static void impossible_formats(void ** state) {
    (void)state;
    refused_format(1, 0, N, 16, SOTTO_E_AUDIO_PARAM, "0 channels");
    refused_format(1, 65, N, 16, SOTTO_E_AUDIO_PARAM, "65 channels");
    refused_format(1, 1, 0, 16, SOTTO_E_AUDIO_PARAM, " 0 Hz");
    refused_format(1, 1, 999, 16, SOTTO_E_AUDIO_PARAM, "999 Hz");
    refused_format(1, 1, 1092676, 16, SOTTO_E_AUDIO_PARAM, "1092676 Hz");
    refused_format(1, 1, N, 12, SOTTO_E_AUDIO_PARAM, "12 bits");
    refused_format(3, 1, N, 16, SOTTO_E_AUDIO_PARAM, "16 bits");
    refused_format(6, 1, N, 16, SOTTO_E_AUDIO_PARAM, "16 bits");
    refused_format(2, 1, N, 4, SOTTO_E_AUDIO_CODEC, "0x0002");
    refused_format(0x55, 1, N, 16, SOTTO_E_AUDIO_CODEC, "0x0055");
    struct wav w = plain(10);
    w.data[32] = 3; /* block alignment */
    refused(&w, SOTTO_E_AUDIO_PARAM, "frames of 3 bytes");
}

static void broken_chunks(void ** state) {
    (void)state;
    struct wav w = { NULL, 0, 0 };
    put(&w, "RIFF", 4);
    refused(&w, SOTTO_E_AUDIO_FORMAT, "no WAV");
    w = (struct wav){ NULL, 0, 0 };
    put(&w, "", 0);
    refused(&w, SOTTO_E_AUDIO_FORMAT, "empty");
    w = (struct wav){ NULL, 0, 0 };
    put(&w,
        "\0\0\0\x20"
        "ftypM4A \0\0\0\0",
        16);
    refused(&w, SOTTO_E_AUDIO_FORMAT, "no WAV");
    w = begin();
    memcpy(w.data + 8, "AVI ", 4);
    refused(&w, SOTTO_E_AUDIO_CORRUPT, "no WAVE");
    w = begin();
    put_chunk(&w, "data", "abcd", 4);
    refused(&w, SOTTO_E_AUDIO_CORRUPT, "before 'fmt '");
    w = begin();
    put_chunk(&w, "LIST", "abcd", 4);
    refused(&w, SOTTO_E_AUDIO_CORRUPT, "no 'fmt '");
    w = plain(10);
    set_u32(&w, 16, 15);
    refused(&w, SOTTO_E_AUDIO_CORRUPT, "impossible length");
    w = plain(10);
    memcpy(w.data + 16, "ffff", 4);
    refused(&w, SOTTO_E_AUDIO_CORRUPT, "impossible length");
    w = begin();
    put_format(&w, 1, 1, N, 16);
    put(&w, "evil\xF0\xFF\xFF\xFFxxxx", 12);
    refused(&w, SOTTO_E_AUDIO_CORRUPT, "past the end");
}

static void every_truncation(void ** state) {
    (void)state;
    struct wav whole = plain(20);
    for (size_t n = 0; n < whole.size; n++) {
        struct wav w = { whole.data, n, 0 };
        struct sotto_audio * audio;
        enum sotto_status status = load(&w, &audio);
        if (n >= 46) { /* one sample is there */
            assert_int_equal(status, SOTTO_OK);
            assert_int_equal(audio->n_samples, (n - 44) / 2);
        } else {
            enum sotto_status due = n < 12   ? SOTTO_E_AUDIO_FORMAT
                                    : n < 36 ? SOTTO_E_AUDIO_CORRUPT
                                             : SOTTO_E_AUDIO_EMPTY;
            assert_int_equal(status, due);
        }
        sotto_audio_free(audio);
    }
    free(whole.data);
}

static size_t read_badly(void * user_data, void * dst, size_t n) {
    (void)user_data;
    (void)dst;
    (void)n;
    return SIZE_MAX;
}

static void files_that_are_none(void ** state) {
    (void)state;
    struct sotto_audio * audio;
    assert_int_equal(sotto_audio_load("/nonexistent.wav", NULL, &audio), SOTTO_E_IO);
    assert_int_equal(sotto_audio_load("/", NULL, &audio), SOTTO_E_IO);
    assert_int_equal(sotto_audio_load("/dev/null", NULL, &audio), SOTTO_E_AUDIO_FORMAT);
    assert_int_equal(sotto_audio_load(NULL, NULL, &audio), SOTTO_E_NULLARG);
    assert_int_equal(sotto_audio_load("/dev/null", NULL, NULL), SOTTO_E_NULLARG);
    assert_int_equal(sotto_audio_load_callback(read_badly, NULL, "bad", NULL, &audio), SOTTO_E_IO);
    assert_null(audio);
    struct sotto_audio_params params = { .size = 1 };
    assert_int_equal(sotto_audio_load("/dev/null", &params, &audio), SOTTO_E_PARAM);
    sotto_audio_free(NULL);
}

/* ---- memory ---- */

static void limit_of_samples(void ** state) {
    (void)state;
    struct wav w = plain(1000);
    struct sotto_audio_params params = sotto_audio_default_params();
    for (size_t limit = 999; limit <= 1000; limit++) {
        struct pipe_state p = { &w, 0, SIZE_MAX };
        struct sotto_audio * audio;
        params.max_samples = limit;
        assert_int_equal(sotto_audio_load_callback(read_pipe, &p, "pipe", &params, &audio),
                         limit < 1000 ? SOTTO_E_LIMIT : SOTTO_OK);
        sotto_audio_free(audio);
    }
    free(w.data);
}

static enum sotto_status load_pipe(const struct sotto_allocator * allocator, void * user_data) {
    struct pipe_state p = { user_data, 0, SIZE_MAX };
    struct sotto_audio_params params = sotto_audio_default_params();
    params.allocator = allocator;
    struct sotto_audio * audio;
    enum sotto_status status = sotto_audio_load_callback(read_pipe, &p, "pipe", &params, &audio);
    sotto_audio_free(audio);
    return status;
}

static void nth_allocation_fails(void ** state) {
    (void)state;
    struct wav w = plain(5 * N);
    assert_true(refuse_each(load_pipe, &w) > 2);
    free(w.data);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(streamed_lengths),     cmocka_unit_test(announced_length_is_not_allocated),
        cmocka_unit_test(rf64_sizes),           cmocka_unit_test(chunks_around),
        cmocka_unit_test(extensible),           cmocka_unit_test(widths),
        cmocka_unit_test(exact_values),         cmocka_unit_test(odd_floats),
        cmocka_unit_test(few_samples),          cmocka_unit_test(impossible_formats),
        cmocka_unit_test(broken_chunks),        cmocka_unit_test(every_truncation),
        cmocka_unit_test(files_that_are_none),  cmocka_unit_test(limit_of_samples),
        cmocka_unit_test(nth_allocation_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
