/* SPDX-License-Identifier: MIT */
/* The writers of JSON: whisper.cpp's form, without and with tokens, and one object a recording. */
#include <string.h>

#include "sotto/alloc.h"

#include "cli/writers.h"

static void put_string(FILE * to, const char * text) { put_json_string(to, text, strlen(text)); }

static const char * language_of(const struct transcript * transcript) {
    return sotto_language_code(sotto_get_language(transcript->state));
}

/* All segments' text in one piece, without the outer blanks; one character may lie in two segments. */
static bool put_text(FILE * to, const struct sotto_state * state) {
    size_t total = 0;
    for (int i = 0; i < sotto_n_segments(state); i++)
        total += sotto_get_segment(state, i)->text_size;
    char * all = sotto_malloc(NULL, total + 1, 1);
    if (all == NULL)
        return false;
    size_t at = 0;
    for (int i = 0; i < sotto_n_segments(state); i++) {
        const struct sotto_segment * segment = sotto_get_segment(state, i);
        memcpy(all + at, segment->text, segment->text_size);
        at += segment->text_size;
    }
    size_t size = total;
    const char * text = trimmed(all, &size);
    while (size > 0 && (text[size - 1] == ' ' || text[size - 1] == '\t'))
        size--;
    put_json_string(to, text, size);
    sotto_mfree(NULL, all, total + 1, 1);
    return true;
}

static void put_seconds(FILE * to, int64_t cs) { fprintf(to, "%lld.%02d", (long long)(cs / 100), (int)(cs % 100)); }

bool write_jsonl(FILE * to, const struct transcript * transcript) {
    const struct sotto_state * state = transcript->state;
    const char * language = language_of(transcript);
    fputs("{\"file\":", to);
    put_string(to, transcript->name);
    fputs(",\"language\":", to);
    if (language != NULL)
        put_string(to, language);
    else
        fputs("null", to);
    fprintf(to, ",\"duration\":%.3f,\"text\":", transcript->seconds);
    bool whole = put_text(to, state);
    fputs(",\"segments\":[", to);
    for (int i = 0; i < sotto_n_segments(state); i++) {
        const struct sotto_segment * segment = sotto_get_segment(state, i);
        fputs(i > 0 ? ",{\"start\":" : "{\"start\":", to);
        put_seconds(to, segment->t0);
        fputs(",\"end\":", to);
        put_seconds(to, segment->t1);
        fputs(",\"text\":", to);
        put_json_string(to, segment->text, segment->text_size);
        putc('}', to);
    }
    fputs("]}\n", to);
    return whole;
}

/* ---- whisper.cpp's form ---- */

/* Tokens that together make whole characters. A character may lie in two segments: then the first one's text holds all
 * of it, and so does its last group. */
struct group {
    char text[256];
    size_t size;
    const struct sotto_token_data * first;
    size_t gone;       /* bytes of the tokens to come that belong to the segment before */
    size_t left;       /* bytes of the tokens to come */
    const char * rest; /* what the segment's text has after them */
    size_t n_rest;
};

enum { MOST_REST = 3 }; /* bytes of a character after its first */

static void put_group(FILE * to, struct group * group, bool * comma) {
    if (group->first == NULL)
        return;
    fprintf(to, "%s\n\t\t\t\t{\n\t\t\t\t\t\"text\": ", *comma ? "," : "");
    put_json_string(to, group->text, group->size);
    fprintf(to, ",\n\t\t\t\t\t\"id\": %d,\n\t\t\t\t\t\"p\": %.6g,\n\t\t\t\t\t\"t_dtw\": -1\n\t\t\t\t}",
            (int)group->first->id, (double)group->first->p);
    *comma = true;
    group->size = 0;
    group->first = NULL;
}

static bool is_special(const struct sotto_state * state, const struct sotto_token_data * token) {
    return token->id >= sotto_token_special(sotto_state_model(state), SOTTO_TOKEN_EOT);
}

static void append(struct group * group, const char * text, size_t size) {
    size = size <= sizeof(group->text) - group->size ? size : sizeof(group->text) - group->size;
    if (size > 0)
        memcpy(group->text + group->size, text, size);
    group->size += size;
}

/* Tokens longer than a group stand alone; nothing joins what is no text. */
static void put_token(FILE * to, const struct sotto_state * state, const struct sotto_token_data * token,
                      struct group * group, bool * comma) {
    size_t size = 0;
    const char * text = sotto_token_text(sotto_state_model(state), token->id, &size);
    bool special = is_special(state, token);
    if (!special) {
        size_t gone = group->gone < size ? group->gone : size;
        group->left -= size;
        group->gone -= gone;
        if (gone > 0 && gone == size)
            return;
        text += gone;
        size -= gone;
    }
    if (special || group->size + size + MOST_REST > sizeof(group->text))
        put_group(to, group, comma);
    if (group->first == NULL)
        group->first = token;
    append(group, text, size);
    if (!special && group->left == 0)
        append(group, group->rest, group->n_rest);
    if (whole_characters(group->text, group->size) == group->size)
        put_group(to, group, comma);
}

/* Bytes at the beginning that go on with a character. */
static size_t leading(const char * text, size_t size) {
    size_t n = 0;
    while (n < size && n < MOST_REST && ((unsigned char)text[n] & 0xC0) == 0x80)
        n++;
    return n;
}

/* A segment's text is that of its tokens, less what completes the segment before, with what completes its own end. */
static void compare_text(const struct sotto_state * state, int segment, struct group * group) {
    const struct sotto_segment * s = sotto_get_segment(state, segment);
    struct group head = { .size = 0 };
    *group = (struct group){ .size = 0 };
    for (int i = 0; i < s->n_tokens; i++) {
        const struct sotto_token_data * token = sotto_get_segment_token(state, segment, i);
        size_t size = 0;
        const char * text = sotto_token_text(sotto_state_model(state), token->id, &size);
        if (is_special(state, token))
            continue;
        append(&head, text, size);
        group->left += size;
    }
    size_t before = leading(head.text, head.size), now = leading(s->text, s->text_size);
    group->gone = before > now ? before - now : 0;
    size_t own = group->left - group->gone;
    group->n_rest = s->text_size > own ? s->text_size - own : 0;
    group->rest = s->text + s->text_size - group->n_rest;
}

static void put_tokens(FILE * to, const struct transcript * transcript, int segment) {
    const struct sotto_state * state = transcript->state;
    struct group group;
    bool comma = false;
    compare_text(state, segment, &group);
    fputs(",\n\t\t\t\"tokens\": [", to);
    for (int i = 0; i < sotto_get_segment(state, segment)->n_tokens; i++)
        put_token(to, state, sotto_get_segment_token(state, segment, i), &group, &comma);
    put_group(to, &group, &comma);
    fputs(comma ? "\n\t\t\t]" : "]", to);
}

static void put_segment(FILE * to, const struct transcript * transcript, int i, bool full) {
    const struct sotto_segment * segment = sotto_get_segment(transcript->state, i);
    fputs(i > 0 ? ",\n\t\t{\n\t\t\t\"timestamps\": {\n\t\t\t\t\"from\": \""
                : "\n\t\t{\n\t\t\t\"timestamps\": {\n\t\t\t\t\"from\": \"",
          to);
    put_stamp(to, segment->t0, ',');
    fputs("\",\n\t\t\t\t\"to\": \"", to);
    put_stamp(to, segment->t1, ',');
    fprintf(to, "\"\n\t\t\t},\n\t\t\t\"offsets\": {\n\t\t\t\t\"from\": %lld,\n\t\t\t\t\"to\": %lld\n\t\t\t},\n",
            10 * (long long)segment->t0, 10 * (long long)segment->t1);
    fputs("\t\t\t\"text\": ", to);
    put_json_string(to, segment->text, segment->text_size);
    if (full)
        put_tokens(to, transcript, i);
    fputs("\n\t\t}", to);
}

static void put_layers(FILE * to, const char * name, int ctx, int width, int layers) {
    fprintf(
        to,
        "\t\t\"%s\": {\n\t\t\t\"ctx\": %d,\n\t\t\t\"state\": %d,\n\t\t\t\"head\": %d,\n\t\t\t\"layer\": %d\n\t\t},\n",
        name, ctx, width, width / 64, layers);
}

static void put_model(FILE * to, const struct sotto_model * model) {
    fputs("\t\"model\": {\n\t\t\"type\": ", to);
    put_string(to, sotto_model_name(model));
    fprintf(to, ",\n\t\t\"multilingual\": %s,\n\t\t\"vocab\": %d,\n",
            sotto_model_is_multilingual(model) ? "true" : "false", sotto_model_n_vocab(model));
    int width = sotto_model_width(model);
    put_layers(to, "audio", sotto_model_n_audio_ctx(model), width, sotto_model_n_audio_layers(model));
    put_layers(to, "text", sotto_model_n_text_ctx(model), width, sotto_model_n_text_layers(model));
    fprintf(to, "\t\t\"mels\": %d,\n\t\t\"ftype\": %d\n\t},\n", sotto_model_n_mels(model),
            sotto_model_weight_type(model) == SOTTO_TYPE_F32 ? 0 : 1);
}

static void put_head(FILE * to, const struct transcript * transcript) {
    const struct options * options = transcript->options;
    const char * language = language_of(transcript);
    fputs("{\n\t\"systeminfo\": ", to);
    put_string(to, sotto_cpu_level_name(sotto_cpu_get_level()));
    fputs(",\n", to);
    put_model(to, sotto_state_model(transcript->state));
    fputs("\t\"params\": {\n\t\t\"model\": ", to);
    put_string(to, transcript->model);
    fputs(",\n\t\t\"language\": ", to);
    put_string(to, options->language != NULL ? options->language : "auto");
    fprintf(to, ",\n\t\t\"translate\": %s\n\t},\n\t\"result\": {\n\t\t\"language\": ",
            options->translate ? "true" : "false");
    if (language != NULL)
        put_string(to, language);
    else
        fputs("null", to);
    fputs("\n\t},\n\t\"transcription\": [", to);
}

static bool write(FILE * to, const struct transcript * transcript, bool full) {
    put_head(to, transcript);
    int n = sotto_n_segments(transcript->state);
    for (int i = 0; i < n; i++)
        put_segment(to, transcript, i, full);
    fputs(n > 0 ? "\n\t]\n}\n" : "]\n}\n", to);
    return true;
}

bool write_json(FILE * to, const struct transcript * transcript) { return write(to, transcript, false); }
bool write_json_full(FILE * to, const struct transcript * transcript) { return write(to, transcript, true); }
