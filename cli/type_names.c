/* SPDX-License-Identifier: MIT */
/* Types of weights by name, or by the number that whisper.cpp's quantize takes. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "sotto/quant.h"

#include "cli/convert_run.h"

/* Those that files may hold. */
static bool is_for_weights(enum sotto_type type) {
    return type == SOTTO_TYPE_F32 || type == SOTTO_TYPE_F16 || type == SOTTO_TYPE_BF16 ||
           (sotto_is_quantized(type) && type != SOTTO_TYPE_Q8_1 && type != SOTTO_TYPE_Q8_K);
}

static bool same_name(const char * name, const char * word) {
    while (*name != 0 && tolower((unsigned char)*name) == tolower((unsigned char)*word)) {
        name++;
        word++;
    }
    return *name == 0 && *word == 0;
}

bool type_of_name(const char * command, const char * word, enum sotto_type * type) {
    for (int i = 0; i < SOTTO_TYPE_COUNT; i++) {
        *type = (enum sotto_type)i;
        if (is_for_weights(*type) && same_name(sotto_type_name(*type), word))
            return true;
    }
    char * end;
    long number = strtol(word, &end, 10);
    if (isdigit((unsigned char)word[0]) && *end == 0 && number <= 1000) {
        *type = sotto_ftype_to_sotto_type((int)number);
        if (*type != SOTTO_TYPE_COUNT)
            return true;
    }
    fprintf(stderr, "sotto %s: '%s' is no type of weights; there are", command, word);
    for (int i = 0; i < SOTTO_TYPE_COUNT; i++)
        if (is_for_weights((enum sotto_type)i))
            fprintf(stderr, " %s", sotto_type_name((enum sotto_type)i));
    fputc('\n', stderr);
    return false;
}
