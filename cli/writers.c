/* SPDX-License-Identifier: MIT */
/* The writers of plain forms: text, subtitles, tables. */
#include "cli/writers.h"

const char * trimmed(const char * text, size_t * size) {
    while (*size > 0 && (text[0] == ' ' || text[0] == '\t')) {
        text++;
        (*size)--;
    }
    return text;
}

static bool write_txt(FILE * to, const struct transcript * transcript) {
    for (int i = 0; i < sotto_n_segments(transcript->state); i++) {
        const struct sotto_segment * segment = sotto_get_segment(transcript->state, i);
        size_t size = segment->text_size;
        const char * text = trimmed(segment->text, &size);
        put_line(to, text, size);
        putc('\n', to);
    }
    return true;
}

static void put_cue_times(FILE * to, const struct sotto_segment * segment, char point) {
    put_stamp(to, segment->t0, point);
    fputs(" --> ", to);
    put_stamp(to, segment->t1, point);
    putc('\n', to);
}

static bool write_srt(FILE * to, const struct transcript * transcript) {
    for (int i = 0; i < sotto_n_segments(transcript->state); i++) {
        const struct sotto_segment * segment = sotto_get_segment(transcript->state, i);
        fprintf(to, "%d\n", i + 1 + transcript->options->offset_n);
        put_cue_times(to, segment, ',');
        put_cue(to, segment->text, segment->text_size);
        fputs("\n\n", to);
    }
    return true;
}

static bool write_vtt(FILE * to, const struct transcript * transcript) {
    fputs("WEBVTT\n\n", to);
    for (int i = 0; i < sotto_n_segments(transcript->state); i++) {
        const struct sotto_segment * segment = sotto_get_segment(transcript->state, i);
        put_cue_times(to, segment, '.');
        put_cue(to, segment->text, segment->text_size);
        fputs("\n\n", to);
    }
    return true;
}

static bool write_tsv(FILE * to, const struct transcript * transcript) {
    fputs("start\tend\ttext\n", to);
    for (int i = 0; i < sotto_n_segments(transcript->state); i++) {
        const struct sotto_segment * segment = sotto_get_segment(transcript->state, i);
        size_t size = segment->text_size;
        const char * text = trimmed(segment->text, &size);
        while (size > 0 && (text[size - 1] == ' ' || text[size - 1] == '\t'))
            size--;
        fprintf(to, "%lld\t%lld\t", 10 * (long long)segment->t0, 10 * (long long)segment->t1);
        put_cell(to, text, size);
        putc('\n', to);
    }
    return true;
}

static bool write_csv(FILE * to, const struct transcript * transcript) {
    fputs("start,end,text\n", to);
    for (int i = 0; i < sotto_n_segments(transcript->state); i++) {
        const struct sotto_segment * segment = sotto_get_segment(transcript->state, i);
        fprintf(to, "%lld,%lld,", 10 * (long long)segment->t0, 10 * (long long)segment->t1);
        put_csv_string(to, segment->text, segment->text_size);
        putc('\n', to);
    }
    return true;
}

static bool write_lrc(FILE * to, const struct transcript * transcript) {
    fprintf(to, "[by:%s]\n", transcript->options->as_whisper_cli ? "whisper.cpp" : "sotto");
    for (int i = 0; i < sotto_n_segments(transcript->state); i++) {
        const struct sotto_segment * segment = sotto_get_segment(transcript->state, i);
        long long t0 = (long long)segment->t0;
        fprintf(to, "[%02lld:%02lld.%02lld]", t0 / 6000, t0 / 100 % 60, t0 % 100);
        put_line(to, segment->text, segment->text_size);
        putc('\n', to);
    }
    return true;
}

const struct writer WRITERS[] = {
    { "txt", "txt", true, write_txt },       { "srt", "srt", false, write_srt },
    { "vtt", "vtt", false, write_vtt },      { "tsv", "tsv", false, write_tsv },
    { "csv", "csv", false, write_csv },      { "lrc", "lrc", false, write_lrc },
    { "json", "json", false, write_json },   { "json-full", "json", false, write_json_full },
    { "jsonl", "jsonl", true, write_jsonl },
};
const int N_WRITERS = sizeof(WRITERS) / sizeof(WRITERS[0]);
