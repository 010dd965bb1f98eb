/* SPDX-License-Identifier: MIT */
/* How sotto reports what went wrong.
 *
 * Every function that can fail returns an `enum sotto_status`, or a pointer, bool or count that is NULL,
 * false or 0 on failure. Either way the status and a sentence (what, where, how to mend) of the calling
 * thread's newest failure stay readable here. The library never prints, never exits and never aborts.
 *
 *     if (sotto_model_open("base.gguf", NULL, &model) != SOTTO_OK)
 *         fprintf(stderr, "%s\n", sotto_last_error_text());
 *
 * All functions of this header may be called from any thread. */
#ifndef SOTTO_STATUS_H
#define SOTTO_STATUS_H

#include <stdarg.h>

#include "sotto/export.h"

#ifdef __cplusplus
extern "C" {
#endif

enum sotto_status {
    SOTTO_OK = 0,
#define STATUS(value, NAME, spelled, sentence) SOTTO_E_##NAME = value,
#include "sotto/status.def"
#undef STATUS
};

/* The enumerator's name, e.g. "SOTTO_E_SHAPE"; "SOTTO_E_UNKNOWN" for a value outside the list. */
SOTTO_API const char * sotto_status_name(enum sotto_status status);

/* One sentence on what the status means; never NULL. */
SOTTO_API const char * sotto_status_text(enum sotto_status status);

/* Status of the newest failing call of this thread, SOTTO_OK if none failed. Successful calls leave it. */
SOTTO_API enum sotto_status sotto_last_error(void);

/* Its message, "NAME: function: details"; "" if none. Valid until this thread's next failing call. */
SOTTO_API const char * sotto_last_error_text(void);

/* Forget this thread's newest failure. */
SOTTO_API void sotto_clear_last_error(void);

/* For libraries built on sotto: record a failure of this thread as sotto's own functions do. The message
 * becomes "<spelled name>: <format...>" and is logged once at ERROR level. Returns `status`, so that a
 * function can end with `return sotto_fail(...)`. Never allocates; messages are cut at 1,023 bytes. */
SOTTO_API enum sotto_status sotto_fail(enum sotto_status status, const char * format, ...) SOTTO_PRINTF(2, 3);
SOTTO_API enum sotto_status sotto_fail_v(enum sotto_status status, const char * format, va_list args);

#ifdef __cplusplus
}
#endif
#endif
