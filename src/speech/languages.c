/* SPDX-License-Identifier: MIT */
/* Codes and names of the languages, and other names by which people ask for them. */
#include "languages.h"

#include <string.h>

struct language {
    const char * code;
    const char * name;
};

/* In the order of the language tokens. */
static const struct language languages[SOTTO_I_N_LANGUAGES] = {
    { "en", "english" },        { "zh", "chinese" },     { "de", "german" },        { "es", "spanish" },
    { "ru", "russian" },        { "ko", "korean" },      { "fr", "french" },        { "ja", "japanese" },
    { "pt", "portuguese" },     { "tr", "turkish" },     { "pl", "polish" },        { "ca", "catalan" },
    { "nl", "dutch" },          { "ar", "arabic" },      { "sv", "swedish" },       { "it", "italian" },
    { "id", "indonesian" },     { "hi", "hindi" },       { "fi", "finnish" },       { "vi", "vietnamese" },
    { "he", "hebrew" },         { "uk", "ukrainian" },   { "el", "greek" },         { "ms", "malay" },
    { "cs", "czech" },          { "ro", "romanian" },    { "da", "danish" },        { "hu", "hungarian" },
    { "ta", "tamil" },          { "no", "norwegian" },   { "th", "thai" },          { "ur", "urdu" },
    { "hr", "croatian" },       { "bg", "bulgarian" },   { "lt", "lithuanian" },    { "la", "latin" },
    { "mi", "maori" },          { "ml", "malayalam" },   { "cy", "welsh" },         { "sk", "slovak" },
    { "te", "telugu" },         { "fa", "persian" },     { "lv", "latvian" },       { "bn", "bengali" },
    { "sr", "serbian" },        { "az", "azerbaijani" }, { "sl", "slovenian" },     { "kn", "kannada" },
    { "et", "estonian" },       { "mk", "macedonian" },  { "br", "breton" },        { "eu", "basque" },
    { "is", "icelandic" },      { "hy", "armenian" },    { "ne", "nepali" },        { "mn", "mongolian" },
    { "bs", "bosnian" },        { "kk", "kazakh" },      { "sq", "albanian" },      { "sw", "swahili" },
    { "gl", "galician" },       { "mr", "marathi" },     { "pa", "punjabi" },       { "si", "sinhala" },
    { "km", "khmer" },          { "sn", "shona" },       { "yo", "yoruba" },        { "so", "somali" },
    { "af", "afrikaans" },      { "oc", "occitan" },     { "ka", "georgian" },      { "be", "belarusian" },
    { "tg", "tajik" },          { "sd", "sindhi" },      { "gu", "gujarati" },      { "am", "amharic" },
    { "yi", "yiddish" },        { "lo", "lao" },         { "uz", "uzbek" },         { "fo", "faroese" },
    { "ht", "haitian creole" }, { "ps", "pashto" },      { "tk", "turkmen" },       { "nn", "nynorsk" },
    { "mt", "maltese" },        { "sa", "sanskrit" },    { "lb", "luxembourgish" }, { "my", "myanmar" },
    { "bo", "tibetan" },        { "tl", "tagalog" },     { "mg", "malagasy" },      { "as", "assamese" },
    { "tt", "tatar" },          { "haw", "hawaiian" },   { "ln", "lingala" },       { "ha", "hausa" },
    { "ba", "bashkir" },        { "jw", "javanese" },    { "su", "sundanese" },     { "yue", "cantonese" },
};

static const struct language aliases[] = {
    { "my", "burmese" },       { "ca", "valencian" }, { "nl", "flemish" },   { "ht", "haitian" },
    { "lb", "letzeburgesch" }, { "ps", "pushto" },    { "pa", "panjabi" },   { "ro", "moldavian" },
    { "ro", "moldovan" },      { "si", "sinhalese" }, { "es", "castilian" }, { "zh", "mandarin" },
};

static char lower(char c) { return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c; }

/* `known` is in lower case. */
static bool same(const char * text, const char * known) {
    while (*known && lower(*text) == *known) {
        text++;
        known++;
    }
    return *text == 0 && *known == 0;
}

static int find(const char * text, bool names) {
    for (int id = 0; id < SOTTO_I_N_LANGUAGES; id++) {
        if (same(text, names ? languages[id].name : languages[id].code))
            return id;
    }
    return -1;
}

int sotto_language_id(const char * code_or_name) {
    if (!code_or_name)
        return -1;
    int id = find(code_or_name, false);
    if (id < 0)
        id = find(code_or_name, true);
    for (size_t i = 0; id < 0 && i < sizeof(aliases) / sizeof(aliases[0]); i++) {
        if (same(code_or_name, aliases[i].name))
            id = find(aliases[i].code, false);
    }
    return id;
}

const char * sotto_language_code(int id) { return id >= 0 && id < SOTTO_I_N_LANGUAGES ? languages[id].code : NULL; }

const char * sotto_language_name(int id) { return id >= 0 && id < SOTTO_I_N_LANGUAGES ? languages[id].name : NULL; }

bool sotto_i_language_is_auto(const char * language) { return !language || language[0] == 0 || same(language, "auto"); }
