/* SPDX-License-Identifier: MIT */
/* Names and sentences of statuses, and the newest failure of each thread.
 *
 * The message of a thread lies in thread-local storage, so that recording one never allocates: it works when
 * memory is what ran out. */
#include "sotto/status.h"

#include <stdio.h>
#include <string.h>

#include "core/status_impl.h"
#include "sotto/log.h"

enum { TEXT_SIZE = 1024 };

struct entry {
    int value;
    const char * name;
    const char * spelled;
    const char * sentence;
};

static const struct entry entries[] = {
    { SOTTO_OK, "SOTTO_OK", "OK", "no error" },
#define STATUS(value, NAME, spelled, sentence) { value, "SOTTO_E_" #NAME, spelled, sentence },
#include "sotto/status.def"
#undef STATUS
};

static const struct entry unknown = { -1, "SOTTO_E_UNKNOWN", "UNKNOWN", "a status that this library does not know" };

static _Thread_local enum sotto_status last_status;
static _Thread_local char last_text[TEXT_SIZE];

static const struct entry * find(enum sotto_status status) {
    for (size_t i = 0; i < sizeof(entries) / sizeof(entries[0]); i++) {
        if (entries[i].value == (int)status) {
            return &entries[i];
        }
    }
    return &unknown;
}

const char * sotto_status_name(enum sotto_status status) { return find(status)->name; }

const char * sotto_status_text(enum sotto_status status) { return find(status)->sentence; }

enum sotto_status sotto_last_error(void) { return last_status; }

const char * sotto_last_error_text(void) { return last_text; }

void sotto_clear_last_error(void) {
    last_status = SOTTO_OK;
    last_text[0] = '\0';
}

void sotto_i_take_error(enum sotto_status status, const char * text) {
    last_status = status;
    snprintf(last_text, sizeof(last_text), "%s", text);
}

enum sotto_status sotto_fail_v(enum sotto_status status, const char * format, va_list args) {
    if (status == SOTTO_OK) {
        return status;
    }
    char text[TEXT_SIZE]; /* the arguments may point into the old message */
    int used = snprintf(text, sizeof(text), "%s: ", find(status)->spelled);
    if (used < 0) {
        used = 0;
        text[0] = '\0';
    }
    if (format) {
        vsnprintf(text + used, sizeof(text) - (size_t)used, format, args);
    }
    last_status = status;
    memcpy(last_text, text, sizeof(text));
    sotto_log(SOTTO_LOG_ERROR, "%s\n", last_text);
    return status;
}

enum sotto_status sotto_fail(enum sotto_status status, const char * format, ...) {
    va_list args;
    va_start(args, format);
    sotto_fail_v(status, format, args);
    va_end(args);
    return status;
}
