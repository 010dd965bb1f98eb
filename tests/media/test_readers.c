/* SPDX-License-Identifier: MIT */
/* Our reader and FFmpeg's side by side: the same bits from the same WAV files, raw samples and lossless files, almost
 * the same from lossy ones; files, pipes, videos, what is damaged, cut off or no sound. Files are made with the ffmpeg
 * command. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "gguf_example.h"
#include "guarded.h"
#include "refuse_each.h"
#include "sotto/log.h"
#include "sotto/media.h"

static char folder[64];

/* ---- files ---- */

static const char * in_folder(const char * name) {
    static char paths[4][128];
    static int turn;
    char * path = paths[turn++ % 4];
    snprintf(path, sizeof(paths[0]), "%s/%s", folder, name);
    return path;
}

static size_t put_number(uint8_t * to, uint64_t x, size_t width) {
    for (size_t i = 0; i < width; i++)
        to[i] = (uint8_t)(x >> (8 * i));
    return width;
}

struct kind {
    const char * raw; /* for sotto_raw_format_parse */
    int tag, bits;
};
static const struct kind KINDS[] = { { "u8", 1, 8 },     { "s16le", 1, 16 }, { "s24le", 1, 24 }, { "s32le", 1, 32 },
                                     { "f32le", 3, 32 }, { "f64le", 3, 64 }, { "alaw", 6, 8 },   { "mulaw", 7, 8 } };
enum { N_KINDS = sizeof(KINDS) / sizeof(KINDS[0]), HEADER = 44 };

static void put_header(uint8_t * to, const struct kind * kind, int channels, int rate, size_t bytes) {
    int frame = channels * kind->bits / 8;
    memcpy(to, "RIFF....WAVEfmt ", 16);
    put_number(to + 4, HEADER - 8 + bytes, 4);
    put_number(to + 16, 16, 4);
    put_number(to + 20, (uint64_t)kind->tag, 2);
    put_number(to + 22, (uint64_t)channels, 2);
    put_number(to + 24, (uint64_t)rate, 4);
    put_number(to + 28, (uint64_t)(rate * frame), 4);
    put_number(to + 32, (uint64_t)frame, 2);
    put_number(to + 34, (uint64_t)kind->bits, 2);
    memcpy(to + 36, "data", 4);
    put_number(to + 40, bytes, 4);
}

static void put_sample(uint8_t * to, const struct kind * kind, double x, struct dice * dice) {
    float f = (float)x;
    uint32_t word;
    uint64_t wide;
    memcpy(&word, &f, sizeof(word));
    memcpy(&wide, &x, sizeof(wide));
    if (kind->tag == 3)
        put_number(to, kind->bits == 32 ? word : wide, (size_t)kind->bits / 8);
    else
        put_number(to, dice_next(dice), (size_t)kind->bits / 8);
}

/* A WAV of n frames of noise; malloc'd. */
static uint8_t * noise(const struct kind * kind, int channels, int rate, size_t n, size_t * size) {
    static struct dice dice = { 1 };
    size_t width = (size_t)kind->bits / 8;
    *size = HEADER + n * (size_t)channels * width;
    uint8_t * wav = malloc(*size);
    assert_non_null(wav);
    put_header(wav, kind, channels, rate, *size - HEADER);
    for (size_t i = HEADER; i < *size; i += width)
        put_sample(wav + i, kind, 1.5 * (double)dice_float(&dice), &dice);
    return wav;
}

/* Six seconds of a changing sound with little above 4 kHz, as s16 with two channels. */
static void make_song(int rate) {
    size_t n = 6 * (size_t)rate;
    size_t size;
    uint8_t * wav = noise(&KINDS[1], 2, rate, n, &size);
    for (size_t i = 0; i < n; i++) {
        double t = (double)i / rate;
        double loud = 0.3 + 0.2 * sin(7 * t);
        double x = loud * sin(2 * 3.14159265358979 * (200 * t + 30 * sin(3 * t))) + 0.1 * sin(9000 * t + 5 * sin(t));
        put_number(wav + HEADER + 4 * i, (uint64_t)lrint(x * 20000), 2);
        put_number(wav + HEADER + 4 * i + 2, (uint64_t)lrint(x * 10000), 2);
    }
    char name[32];
    snprintf(name, sizeof(name), "song%d.wav", rate);
    write_bytes(in_folder(name), wav, size);
    free(wav);
}

/* Run ffmpeg in the folder. */
static void make(const char * arguments) {
    char command[512];
    snprintf(command, sizeof(command), "cd %s && ffmpeg -nostdin -v error -y %s", folder, arguments);
    if (system(command) != 0)
        fail_msg("%s", command);
}

static size_t size_of(const char * name) {
    struct stat st;
    assert_int_equal(stat(in_folder(name), &st), 0);
    return (size_t)st.st_size;
}

/* ---- loading ---- */

struct pipe_state {
    const uint8_t * bytes;
    size_t n, at, step;
};

static size_t read_pipe(void * user_data, void * dst, size_t n) {
    struct pipe_state * p = user_data;
    n = n < p->step ? n : p->step;
    n = n < p->n - p->at ? n : p->n - p->at;
    memcpy(dst, p->bytes + p->at, n);
    p->at += n;
    return n;
}

static enum sotto_status from_bytes(const uint8_t * bytes, size_t n, enum sotto_audio_reader reader, int rate,
                                    const char * raw, struct sotto_audio ** audio) {
    struct pipe_state p = { bytes, n, 0, 5000 };
    struct sotto_raw_format format;
    struct sotto_audio_params params = sotto_audio_default_params();
    params.reader = reader;
    params.rate = rate;
    if (raw != NULL) {
        assert_int_equal(sotto_raw_format_parse(raw, &format), SOTTO_OK);
        params.raw = &format;
    }
    return sotto_audio_load_callback(read_pipe, &p, "pipe", &params, audio);
}

static struct sotto_audio * load(const char * name, enum sotto_audio_reader reader, int rate) {
    struct sotto_audio_params params = sotto_audio_default_params();
    params.reader = reader;
    params.rate = rate;
    struct sotto_audio * audio;
    if (sotto_audio_load(in_folder(name), &params, &audio) != SOTTO_OK)
        fail_msg("%s", sotto_last_error_text());
    return audio;
}

static void refused(const char * name, enum sotto_status status) {
    struct sotto_audio * audio;
    enum sotto_status found = sotto_audio_load(name[0] == '/' ? name : in_folder(name), NULL, &audio);
    if (found != status)
        fail_msg("%s: %s, not %s: %s", name, sotto_status_name(found), sotto_status_name(status),
                 sotto_last_error_text());
    assert_null(audio);
}

static void same(struct sotto_audio * a, struct sotto_audio * b) {
    assert_int_equal(a->rate, b->rate);
    assert_int_equal(a->channels, b->channels);
    assert_int_equal(a->n_samples, b->n_samples);
    assert_memory_equal(a->samples, b->samples, a->n_samples * sizeof(float));
    sotto_audio_free(a);
    sotto_audio_free(b);
}

/* SNR in dB of b against a up to 5 s, at the shift within +-30 ms where it is best; b scaled to fit. */
static double snr(const struct sotto_audio * a, const struct sotto_audio * b, int from_second) {
    int most = a->rate * 30 / 1000;
    double best = -INFINITY;
    for (int shift = -most; shift <= most; shift++) {
        double aa = 0, ab = 0, bb = 0;
        for (int i = from_second * a->rate; i < 5 * a->rate; i += 13) {
            double x = (double)a->samples[i];
            double y = (double)b->samples[i + shift];
            aa += x * x;
            ab += x * y;
            bb += y * y;
        }
        double db = -10 * log10(1 - ab * ab / (aa * bb));
        best = db > best ? db : best;
    }
    return best;
}

/* ---- the same bits ---- */

static void wav_both_ways(void ** state) {
    (void)state;
    static const int rates[] = { 8000, 11025, 16000, 22050, 44100, 48000, 96000 };
    int n = 0;
    for (int k = 0; k < N_KINDS; k++) {
        for (int channels = 1; channels <= 8; channels++) {
            for (size_t r = 0; r < sizeof(rates) / sizeof(rates[0]); r++, n++) {
                size_t size;
                uint8_t * wav = noise(&KINDS[k], channels, rates[r], 1500, &size);
                struct sotto_audio * own;
                struct sotto_audio * other;
                int rate = n % 2 == 0 ? 16000 : 0;
                if (from_bytes(wav, size, SOTTO_AUDIO_OWN, rate, NULL, &own) != SOTTO_OK)
                    fail_msg("%s", sotto_last_error_text());
                char raw[32];
                snprintf(raw, sizeof(raw), "%s:%d:%d", KINDS[k].raw, rates[r], channels);
                assert_int_equal(from_bytes(wav + HEADER, size - HEADER, SOTTO_AUDIO_ANY, rate, raw, &other), SOTTO_OK);
                same(own, other);
                if (sotto_audio_has_ffmpeg()) {
                    assert_int_equal(from_bytes(wav, size, SOTTO_AUDIO_OWN, rate, NULL, &own), SOTTO_OK);
                    if (from_bytes(wav, size, SOTTO_AUDIO_FFMPEG, rate, NULL, &other) != SOTTO_OK)
                        fail_msg("%s", sotto_last_error_text());
                    same(own, other);
                }
                free(wav);
            }
        }
    }
    print_message("%d files, the same samples\n", n);
}

static void big_endian_raw(void ** state) {
    (void)state;
    for (int k = 1; k < 6; k++) {
        size_t size;
        uint8_t * wav = noise(&KINDS[k], 1, 16000, 500, &size);
        struct sotto_audio * little;
        struct sotto_audio * big;
        assert_int_equal(from_bytes(wav, size, SOTTO_AUDIO_OWN, 0, NULL, &little), SOTTO_OK);
        size_t width = (size_t)KINDS[k].bits / 8;
        for (size_t i = HEADER; i < size; i += width) {
            for (size_t j = 0; j < width / 2; j++) {
                uint8_t swap = wav[i + j];
                wav[i + j] = wav[i + width - 1 - j];
                wav[i + width - 1 - j] = swap;
            }
        }
        char raw[32];
        snprintf(raw, sizeof(raw), "%.3sbe", KINDS[k].raw);
        assert_int_equal(from_bytes(wav + HEADER, size - HEADER, SOTTO_AUDIO_ANY, 0, raw, &big), SOTTO_OK);
        same(little, big);
        free(wav);
    }
}

static void raw_forms(void ** state) {
    (void)state;
    struct sotto_raw_format f;
    assert_int_equal(sotto_raw_format_parse("s24be:44100:2", &f), SOTTO_OK);
    assert_true(f.size == sizeof(f) && f.coding == SOTTO_SAMPLE_S24 && f.big_endian && f.rate == 44100 &&
                f.channels == 2);
    assert_int_equal(sotto_raw_format_parse("mulaw:8000", &f), SOTTO_OK);
    assert_true(f.coding == SOTTO_SAMPLE_MULAW && f.rate == 8000 && f.channels == 1);
    assert_int_equal(sotto_raw_format_parse("f64le", &f), SOTTO_OK);
    assert_true(f.coding == SOTTO_SAMPLE_F64 && !f.big_endian && f.rate == 16000);
    static const char * const bad[] = { "",
                                        "s16",
                                        "u8le",
                                        "s16le:",
                                        "s16le:16000:",
                                        "s17le",
                                        "s16le:999",
                                        "s16le:768001",
                                        "s16le:16000:0",
                                        "s16le:16000:65",
                                        "S16LE",
                                        "s16le:-16000",
                                        "s16le:16000:1:",
                                        "s16le 16000",
                                        "s16le:16000:1x",
                                        "s16xe",
                                        ":16000:1",
                                        "s16le:99999999999999999999",
                                        "s16le:1e4" };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        if (sotto_raw_format_parse(bad[i], &f) != SOTTO_E_PARAM)
            fail_msg("'%s' is taken", bad[i]);
    }
    assert_int_equal(sotto_raw_format_parse(NULL, &f), SOTTO_E_NULLARG);
    assert_int_equal(sotto_raw_format_parse("u8", NULL), SOTTO_E_NULLARG);
    struct sotto_audio * audio;
    assert_int_equal(from_bytes((const uint8_t *)"abc", 3, SOTTO_AUDIO_ANY, 0, "s32le", &audio), SOTTO_E_AUDIO_EMPTY);
}

/* ---- other containers and codecs ---- */

static void need_ffmpeg(void) {
    if (!sotto_audio_has_ffmpeg())
        skip();
    if (system("command -v ffmpeg >/dev/null") != 0)
        fail_msg("there is no ffmpeg command; tools/setup test installs it");
}

static void lossless(void ** state) {
    (void)state;
    need_ffmpeg();
    static const struct {
        const char * name;
        const char * options;
    } files[] = { { "x.flac", "" },
                  { "x24.flac", "-sample_fmt s32" },
                  { "x.aiff", "" },
                  { "x.au", "" },
                  { "x.caf", "" },
                  { "x.w64", "" },
                  { "x.wv", "" },
                  { "alac.m4a", "-c:a alac" },
                  { "pcm.mkv", "-c:a pcm_s16le" },
                  { "x.nut", "-c:a pcm_f64le" } };
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        char arguments[128];
        snprintf(arguments, sizeof(arguments), "-i song44100.wav %s %s", files[i].options, files[i].name);
        make(arguments);
        for (int rate = 0; rate <= 16000; rate += 16000)
            same(load("song44100.wav", SOTTO_AUDIO_OWN, rate), load(files[i].name, SOTTO_AUDIO_ANY, rate));
    }
}

static const struct lossy {
    const char * name;
    const char * options;
    double db;
} LOSSY[] = { { "x.mp3", "-b:a 128k", 25 },
              { "x.ogg", "-c:a libvorbis", 20 },
              { "x.opus", "-c:a libopus -b:a 96k", 20 },
              { "x.m4a", "-c:a aac -b:a 128k", 25 },
              { "x.aac", "-c:a aac -b:a 128k", 15 }, /* shifted by a part of a sample */
              { "x.ts", "-c:a mp2 -b:a 192k", 15 },
              { "x.webm", "-c:a libopus -b:a 96k", 20 },
              { "fast.mp4", "-f lavfi -i testsrc=s=64x64:r=5:d=6 -c:v mpeg4 -c:a aac -movflags +faststart", 25 },
              { "x.mp4", "-f lavfi -i testsrc=s=64x64:r=5:d=6 -c:v mpeg4 -c:a aac -b:a 128k", 25 },
              { "x.avi", "-f lavfi -i testsrc=s=64x64:r=5:d=6 -c:v mpeg4 -c:a libmp3lame", 25 },
              { "adpcm.wav", "-c:a adpcm_ms", 20 },
              { "mp3.wav", "-c:a libmp3lame", 25 } };
enum { N_LOSSY = sizeof(LOSSY) / sizeof(LOSSY[0]) };

static void lossy(void ** state) {
    (void)state;
    need_ffmpeg();
    struct sotto_audio * truth = load("song44100.wav", SOTTO_AUDIO_OWN, 16000);
    for (int i = 0; i < N_LOSSY; i++) {
        struct sotto_audio * audio = load(LOSSY[i].name, SOTTO_AUDIO_ANY, 16000);
        double off = fabs((double)audio->n_samples - (double)truth->n_samples) / 16000;
        double db = snr(truth, audio, 1);
        print_message("%s: SNR %.1f dB, length off by %.3f s\n", LOSSY[i].name, db, off);
        assert_true(db >= LOSSY[i].db);
        assert_true(off < 0.1);
        sotto_audio_free(audio);
    }
    sotto_audio_free(truth);
}

/* Out of a pipe comes what comes out of a file, but for the padding at the end of an MP3. */
static void pipes(void ** state) {
    (void)state;
    need_ffmpeg();
    for (int i = 0; i < N_LOSSY; i++) {
        size_t size;
        uint8_t * bytes = read_bytes(in_folder(LOSSY[i].name), &size);
        struct sotto_audio * piped;
        if (from_bytes(bytes, size, SOTTO_AUDIO_ANY, 16000, NULL, &piped) != SOTTO_OK)
            fail_msg("%s: %s", LOSSY[i].name, sotto_last_error_text());
        struct sotto_audio * whole = load(LOSSY[i].name, SOTTO_AUDIO_ANY, 16000);
        if (piped->n_samples < whole->n_samples || piped->n_samples > whole->n_samples + 800)
            fail_msg("%s: %zu samples, not %zu", LOSSY[i].name, piped->n_samples, whole->n_samples);
        assert_memory_equal(piped->samples, whole->samples, (whole->n_samples - 100) * sizeof(float));
        sotto_audio_free(piped);
        sotto_audio_free(whole);
        free(bytes);
    }
}

static void told_by_content(void ** state) {
    (void)state;
    need_ffmpeg();
    size_t size;
    uint8_t * bytes = read_bytes(in_folder("x.m4a"), &size);
    write_bytes(in_folder("liar.wav"), bytes, size);
    free(bytes);
    same(load("x.m4a", SOTTO_AUDIO_ANY, 16000), load("liar.wav", SOTTO_AUDIO_ANY, 16000));
    struct sotto_audio_params params = sotto_audio_default_params();
    struct sotto_audio * audio;
    params.reader = SOTTO_AUDIO_OWN;
    assert_int_equal(sotto_audio_load(in_folder("adpcm.wav"), &params, &audio), SOTTO_E_AUDIO_CODEC);
    assert_int_equal(sotto_audio_load(in_folder("x.m4a"), &params, &audio), SOTTO_E_AUDIO_FORMAT);
}

static void sound_that_begins_late(void ** state) {
    (void)state;
    need_ffmpeg();
    make("-f lavfi -i testsrc=s=64x64:r=5:d=8 -itsoffset 2 -i song44100.wav -c:v mpeg4 -c:a pcm_s16le late.mkv");
    struct sotto_audio * late = load("late.mkv", SOTTO_AUDIO_ANY, 0);
    struct sotto_audio * song = load("song44100.wav", SOTTO_AUDIO_ANY, 0);
    size_t by = late->n_samples - song->n_samples;
    assert_true(fabs((double)by / 44100 - 2) < 0.01);
    for (size_t i = 0; i < by; i++)
        assert_true(late->samples[i] == 0);
    assert_memory_equal(late->samples + by, song->samples, song->n_samples * sizeof(float));
    sotto_audio_free(late);
    sotto_audio_free(song);
}

static void rate_that_changes(void ** state) {
    (void)state;
    need_ffmpeg();
    make("-i song44100.wav -b:a 64k -write_xing 0 -id3v2_version 0 a.mp3");
    make("-i song16000.wav -b:a 64k -write_xing 0 -id3v2_version 0 b.mp3");
    size_t n, m;
    uint8_t * a = read_bytes(in_folder("a.mp3"), &n);
    uint8_t * b = read_bytes(in_folder("b.mp3"), &m);
    a = realloc(a, n + m);
    assert_non_null(a);
    memcpy(a + n, b, m);
    write_bytes(in_folder("ab.mp3"), a, n + m);
    free(a);
    free(b);
    struct sotto_audio * audio = load("ab.mp3", SOTTO_AUDIO_ANY, 16000);
    print_message("two rates: %.3f s\n", (double)audio->n_samples / 16000);
    assert_true(fabs((double)audio->n_samples / 16000 - 12) < 0.3);
    sotto_audio_free(audio);
    refused("ab.mp3", SOTTO_E_AUDIO_PARAM);
}

/* ---- what is no sound ---- */

static void no_sound(void ** state) {
    (void)state;
    static const char text[] = "It is a truth universally acknowledged, that a single man in possession of a good "
                               "fortune, must be in want of a wife.\nHowever little known the feelings or views\n";
    write_bytes(in_folder("text.wav"), text, sizeof(text) - 1);
    refused("text.wav", SOTTO_E_AUDIO_FORMAT);
    write_bytes(in_folder("short"), "RIFF", 4);
    refused("short", SOTTO_E_AUDIO_FORMAT);
    write_bytes(in_folder("riff"), "RIFF\x10\0\0\0PALM\0\0\0\0\0\0\0\0", 20);
    refused("riff", SOTTO_E_AUDIO_CORRUPT);
    refused("/dev/null", SOTTO_E_AUDIO_FORMAT);
    refused("/", SOTTO_E_IO);
    refused("absent", SOTTO_E_IO);
    uint8_t junk[20000];
    struct dice dice = { 3 };
    for (size_t i = 0; i < sizeof(junk); i++)
        junk[i] = (uint8_t)dice_next(&dice);
    write_bytes(in_folder("junk"), junk, sizeof(junk));
    refused("junk", SOTTO_E_AUDIO_FORMAT);
    memset(junk, 0, sizeof(junk));
    write_bytes(in_folder("zeros"), junk, sizeof(junk));
    refused("zeros", SOTTO_E_AUDIO_FORMAT);
    need_ffmpeg();
    make("-f lavfi -i testsrc=s=64x64:r=5:d=1 -c:v mpeg4 mute.mp4");
    refused("mute.mp4", SOTTO_E_AUDIO_EMPTY);
    make("-f lavfi -i testsrc=s=64x64:r=5:d=1 -c:v mpeg4 mute.mkv");
    refused("mute.mkv", SOTTO_E_AUDIO_EMPTY);
    make("-f lavfi -i testsrc=s=64x64:d=1 -frames:v 1 picture.png");
    refused("picture.png", SOTTO_E_AUDIO_EMPTY);
}

/* Lists of other files open none of them. */
static void no_other_file(void ** state) {
    (void)state;
    need_ffmpeg();
    char text[512];
    const char * song = in_folder("song44100.wav");
    snprintf(text, sizeof(text),
             "#EXTM3U\n#EXT-X-VERSION:3\n#EXT-X-TARGETDURATION:6\n#EXT-X-MEDIA-SEQUENCE:0\n#EXTINF:6.0,\n%s\n"
             "#EXT-X-ENDLIST\n",
             song);
    write_bytes(in_folder("list.m3u8"), text, strlen(text));
    snprintf(text, sizeof(text), "ffconcat version 1.0\nfile '%s'\n", song);
    write_bytes(in_folder("list.ffconcat"), text, strlen(text));
    static const char * const names[] = { "list.m3u8", "list.ffconcat" };
    for (int i = 0; i < 2; i++) {
        struct sotto_audio * audio;
        enum sotto_status status = sotto_audio_load(in_folder(names[i]), NULL, &audio);
        print_message("%s: %s\n", names[i], sotto_last_error_text());
        assert_int_equal(status, SOTTO_E_AUDIO_FORMAT);
        assert_null(audio);
    }
}

/* ---- damage ---- */

static bool is_audio_status(enum sotto_status status) {
    return status == SOTTO_OK || status == SOTTO_E_AUDIO_FORMAT || status == SOTTO_E_AUDIO_CORRUPT ||
           status == SOTTO_E_AUDIO_EMPTY || status == SOTTO_E_AUDIO_CODEC || status == SOTTO_E_AUDIO_PARAM ||
           status == SOTTO_E_AUDIO_NAN;
}

static void survive(const char * name, const uint8_t * bytes, size_t n) {
    struct sotto_audio * audio;
    enum sotto_status status = from_bytes(bytes, n, SOTTO_AUDIO_ANY, 16000, NULL, &audio);
    if (!is_audio_status(status))
        fail_msg("%s, %zu bytes: %s", name, n, sotto_last_error_text());
    assert_true((audio != NULL) == (status == SOTTO_OK));
    if (audio != NULL)
        assert_true(audio->n_samples > 0 && audio->n_samples < 3600 * 16000);
    sotto_audio_free(audio);
}

static void cut_off(void ** state) {
    (void)state;
    need_ffmpeg();
    for (int i = 0; i < N_LOSSY; i++) {
        size_t size;
        uint8_t * bytes = read_bytes(in_folder(LOSSY[i].name), &size);
        for (size_t k = 0; k <= 12; k++)
            survive(LOSSY[i].name, bytes, k < 5 ? 10 * k * k : size * k / 13);
        free(bytes);
    }
    /* with the table of contents in front, half a video is half its sound */
    size_t size;
    uint8_t * bytes = read_bytes(in_folder("fast.mp4"), &size);
    struct sotto_audio * audio;
    assert_int_equal(from_bytes(bytes, size / 2, SOTTO_AUDIO_ANY, 16000, NULL, &audio), SOTTO_OK);
    assert_true(audio->n_samples > 16000 && audio->n_samples < 5 * 16000);
    sotto_audio_free(audio);
    free(bytes);
    bytes = read_bytes(in_folder("x.mp4"), &size);
    assert_int_equal(from_bytes(bytes, size / 2, SOTTO_AUDIO_ANY, 16000, NULL, &audio), SOTTO_E_AUDIO_CORRUPT);
    free(bytes);
}

static void flipped_bytes(void ** state) {
    (void)state;
    need_ffmpeg();
    struct dice dice = { 11 };
    for (int i = 0; i < N_LOSSY; i++) {
        size_t size;
        uint8_t * whole = read_bytes(in_folder(LOSSY[i].name), &size);
        uint8_t * bytes = malloc(size);
        assert_non_null(bytes);
        for (int round = 0; round < 8; round++) {
            memcpy(bytes, whole, size);
            for (int k = 0; k < 30; k++) /* half of them in the first bytes, where the structure is */
                bytes[dice_below(&dice, k % 2 == 0 ? 1500 : (uint32_t)size)] = (uint8_t)dice_next(&dice);
            survive(LOSSY[i].name, bytes, size);
        }
        free(bytes);
        free(whole);
    }
}

static int warnings;

static void count_warnings(enum sotto_log_level level, const char * text, void * user_data) {
    (void)text;
    (void)user_data;
    warnings += level == SOTTO_LOG_WARN;
}

/* A hole in the middle does not move what follows, and is told. */
static void hole_in_the_middle(void ** state) {
    (void)state;
    need_ffmpeg();
    static const char * const names[] = { "x.mp3", "x.ogg", "x.m4a", "x.flac" };
    struct sotto_audio * truth = load("song44100.wav", SOTTO_AUDIO_OWN, 16000);
    for (size_t i = 0; i < 4; i++) {
        size_t size;
        uint8_t * bytes = read_bytes(in_folder(names[i]), &size);
        memset(bytes + size * 2 / 5, 0x55, size / 20); /* 0.3 s, from 2.4 s on */
        struct sotto_audio * audio;
        warnings = 0;
        sotto_log_set(count_warnings, NULL);
        enum sotto_status status = from_bytes(bytes, size, SOTTO_AUDIO_ANY, 16000, NULL, &audio);
        sotto_log_set(NULL, NULL);
        if (status != SOTTO_OK)
            fail_msg("%s: %s", names[i], sotto_last_error_text());
        double off = ((double)audio->n_samples - (double)truth->n_samples) / 16000;
        double db = snr(truth, audio, 4);
        print_message("%s: off by %.3f s, %d warnings, SNR behind the hole %.1f dB\n", names[i], off, warnings, db);
        assert_true(fabs(off) < 0.1 && db > 20 && warnings > 0);
        sotto_audio_free(audio);
        free(bytes);
    }
    sotto_audio_free(truth);
}

/* ---- callers ---- */

static void params_that_make_no_sense(void ** state) {
    (void)state;
    struct sotto_audio * audio;
    struct sotto_audio_params params = sotto_audio_default_params();
    const char * path = in_folder("song16000.wav");
    params.reader = (enum sotto_audio_reader)3;
    assert_int_equal(sotto_audio_load(path, &params, &audio), SOTTO_E_PARAM);
    params.reader = SOTTO_AUDIO_FFMPEG;
    assert_int_equal(sotto_audio_load(path, &params, &audio),
                     sotto_audio_has_ffmpeg() ? SOTTO_OK : SOTTO_E_UNSUPPORTED);
    sotto_audio_free(audio);
    const struct sotto_raw_format raws[] = {
        { 1, SOTTO_SAMPLE_S16, false, 16000, 1 },
        { sizeof(raws[0]), (enum sotto_sample_coding)9, false, 16000, 1 },
        { sizeof(raws[0]), SOTTO_SAMPLE_S16, false, 999, 1 },
        { sizeof(raws[0]), SOTTO_SAMPLE_S16, false, 16000, 65 },
    };
    for (size_t i = 0; i < sizeof(raws) / sizeof(raws[0]); i++) {
        params.raw = &raws[i];
        assert_int_equal(sotto_audio_load(path, &params, &audio), SOTTO_E_PARAM);
        assert_null(audio);
    }
}

struct failing_pipe {
    struct pipe_state pipe;
    size_t fails_at;
};

static size_t read_failing(void * user_data, void * dst, size_t n) {
    struct failing_pipe * p = user_data;
    return p->pipe.at >= p->fails_at ? SIZE_MAX : read_pipe(&p->pipe, dst, n);
}

static void reading_fails(void ** state) {
    (void)state;
    need_ffmpeg();
    for (int i = 0; i < N_LOSSY; i++) {
        size_t size;
        uint8_t * bytes = read_bytes(in_folder(LOSSY[i].name), &size);
        for (size_t at = 0; at <= size; at += size / 5) {
            struct failing_pipe p = { { bytes, size, 0, 1000 }, at };
            struct sotto_audio * audio;
            enum sotto_status status = sotto_audio_load_callback(read_failing, &p, "pipe", NULL, &audio);
            if (status != SOTTO_E_IO)
                fail_msg("%s at %zu of %zu: %s", LOSSY[i].name, at, size, sotto_status_name(status));
            assert_non_null(strstr(sotto_last_error_text(), "reading failed"));
            assert_null(audio);
        }
        free(bytes);
    }
}

struct in_memory {
    uint8_t * bytes;
    size_t size, max_samples;
};

static bool count_down(void * data) {
    int * left = data;
    return --*left < 0;
}

static enum sotto_status stopped_after(const char * name, bool pipe, int left) {
    struct sotto_audio_params params = sotto_audio_default_params();
    struct sotto_audio * audio = NULL;
    params.rate = 16000;
    params.abort = count_down;
    params.abort_data = &left;
    enum sotto_status status;
    if (pipe) {
        size_t size;
        uint8_t * bytes = read_bytes(in_folder(name), &size);
        struct pipe_state p = { bytes, size, 0, 700 };
        status = sotto_audio_load_callback(read_pipe, &p, "pipe", &params, &audio);
        free(bytes);
    } else {
        status = sotto_audio_load(in_folder(name), &params, &audio);
    }
    assert_int_equal(audio == NULL, status != SOTTO_OK);
    assert_true(status == SOTTO_OK || strstr(sotto_last_error_text(), "abort") != NULL);
    sotto_audio_free(audio);
    return status;
}

/* At any question, in both readers. */
static void stopped_on_demand(void ** state) {
    (void)state;
    int n_files = sotto_audio_has_ffmpeg() ? N_LOSSY : 0;
    for (int i = -1; i < n_files; i++) {
        for (int pipe = 0; pipe < 2; pipe++) {
            const char * name = i < 0 ? "song44100.wav" : LOSSY[i].name;
            int left = 0, n_stopped = 0;
            enum sotto_status status = SOTTO_E_ABORTED;
            for (; status == SOTTO_E_ABORTED; left = left * 2 + 1, n_stopped++)
                status = stopped_after(name, pipe != 0, left);
            assert_int_equal(status, SOTTO_OK);
            assert_in_range(n_stopped, 4, 24);
        }
    }
}

static enum sotto_status load_pipe(const struct sotto_allocator * allocator, void * user_data) {
    const struct in_memory * file = user_data;
    struct pipe_state p = { file->bytes, file->size, 0, SIZE_MAX };
    struct sotto_audio_params params = sotto_audio_default_params();
    params.allocator = allocator;
    params.rate = 16000;
    params.max_samples = file->max_samples;
    struct sotto_audio * audio;
    enum sotto_status status = sotto_audio_load_callback(read_pipe, &p, "pipe", &params, &audio);
    sotto_audio_free(audio);
    return status;
}

static void nth_allocation_fails(void ** state) {
    (void)state;
    need_ffmpeg();
    struct in_memory file = { .max_samples = sotto_audio_default_params().max_samples };
    file.bytes = read_bytes(in_folder("x.m4a"), &file.size);
    assert_true(refuse_each(load_pipe, &file) > 5);
    file.max_samples = 95000;
    assert_int_equal(load_pipe(NULL, &file), SOTTO_E_LIMIT);
    file.max_samples = 97000;
    assert_int_equal(load_pipe(NULL, &file), SOTTO_OK);
    free(file.bytes);
}

/* ---- the folder ---- */

static int begin(void ** state) {
    (void)state;
    snprintf(folder, sizeof(folder), "/tmp/sotto-readers-XXXXXX");
    if (mkdtemp(folder) == NULL)
        return -1;
    make_song(44100);
    make_song(16000);
    if (!sotto_audio_has_ffmpeg())
        return 0;
    for (int i = 0; i < N_LOSSY; i++) {
        char arguments[256];
        snprintf(arguments, sizeof(arguments), "-i song44100.wav %s %s", LOSSY[i].options, LOSSY[i].name);
        make(arguments);
        assert_true(size_of(LOSSY[i].name) > 1500);
    }
    return 0;
}

static int end(void ** state) {
    (void)state;
    char command[128];
    snprintf(command, sizeof(command), "rm -rf %s", folder);
    return system(command);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wav_both_ways),
        cmocka_unit_test(big_endian_raw),
        cmocka_unit_test(raw_forms),
        cmocka_unit_test(lossless),
        cmocka_unit_test(lossy),
        cmocka_unit_test(pipes),
        cmocka_unit_test(told_by_content),
        cmocka_unit_test(sound_that_begins_late),
        cmocka_unit_test(rate_that_changes),
        cmocka_unit_test(no_sound),
        cmocka_unit_test(no_other_file),
        cmocka_unit_test(cut_off),
        cmocka_unit_test(flipped_bytes),
        cmocka_unit_test(hole_in_the_middle),
        cmocka_unit_test(params_that_make_no_sense),
        cmocka_unit_test(reading_fails),
        cmocka_unit_test(stopped_on_demand),
        cmocka_unit_test(nth_allocation_fails),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
