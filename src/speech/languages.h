/* SPDX-License-Identifier: MIT */
/* The hundred languages in the order of their tokens. languages.c also defines the public sotto_language_*. */
#ifndef SOTTO_SPEECH_LANGUAGES_H
#define SOTTO_SPEECH_LANGUAGES_H

#include "sotto/speech.h"

#define SOTTO_I_N_LANGUAGES 100 /* the last one, Cantonese, only in vocabularies of 51,866 */

/* NULL, "" and "auto" (any case) ask for detection. */
bool sotto_i_language_is_auto(const char * language);

#endif
