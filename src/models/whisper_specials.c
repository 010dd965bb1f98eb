/* SPDX-License-Identifier: MIT */
/* Ids and spellings that follow from the number of tokens, whatever a container calls them. */
#include <stdio.h>

#include "models/models_impl.h"

struct whisper_specials sotto_i_whisper_specials(const struct whisper_sizes * sizes) {
    struct whisper_specials s;
    s.multilingual = sizes->n_vocab > WHISPER_MIN_VOCAB;
    s.n_languages = (int32_t)sizes->n_vocab - 51765 - (s.multilingual ? 1 : 0);
    s.eot = whisper_eot(sizes);
    s.sot = s.eot + 1;
    s.translate = s.sot + 1 + s.n_languages;
    s.transcribe = s.translate + 1;
    s.solm = s.translate + 2;
    s.prev = s.translate + 3;
    s.nosp = s.translate + 4;
    s.no_timestamps = s.translate + 5;
    s.beg = s.translate + 6;
    return s;
}

void sotto_i_whisper_spell(const struct whisper_specials * s, int32_t id, char out[WHISPER_SPECIAL_SIZE]) {
    static const char * const tasks[] = { "translate",   "transcribe", "startoflm",
                                          "startofprev", "nospeech",   "notimestamps" };
    const char * name = NULL;
    out[0] = 0;
    if (id == s->eot)
        name = "endoftext";
    else if (id == s->sot)
        name = "startoftranscript";
    else if (id < s->translate)
        name = sotto_language_code(id - s->sot - 1);
    else if (id < s->beg)
        name = tasks[id - s->translate];
    if (id >= s->beg)
        snprintf(out, WHISPER_SPECIAL_SIZE, "<|%d.%02d|>", (id - s->beg) / 50, (id - s->beg) % 50 * 2);
    else if (name != NULL)
        snprintf(out, WHISPER_SPECIAL_SIZE, "<|%s|>", name);
}
