/* SPDX-License-Identifier: MIT */
/* Log messages. Silent unless a callback is set; the library itself never writes to a stream. */
#ifndef SOTTO_LOG_H
#define SOTTO_LOG_H

#include "sotto/export.h"

#ifdef __cplusplus
extern "C" {
#endif

enum sotto_log_level {
    SOTTO_LOG_NONE = 0,
    SOTTO_LOG_DEBUG = 1,
    SOTTO_LOG_INFO = 2,
    SOTTO_LOG_WARN = 3,
    SOTTO_LOG_ERROR = 4,
    SOTTO_LOG_CONT = 5 /* continues the previous message */
};

/* Receives each message: `text` is complete, 0-terminated, of any length, usually ends in a newline and is
 * valid during the call only. May be called from any thread. */
typedef void (*sotto_log_callback)(enum sotto_log_level level, const char * text, void * user_data);

/* Set the callback of the whole process, NULL for silence. Set it before other calls: not synchronised. */
SOTTO_API void sotto_log_set(sotto_log_callback callback, void * user_data);

/* Read back what is set. Either pointer may be NULL. */
SOTTO_API void sotto_log_get(sotto_log_callback * callback, void ** user_data);

/* For libraries built on sotto: send one message to the callback; does nothing without one. */
SOTTO_API void sotto_log(enum sotto_log_level level, const char * format, ...) SOTTO_PRINTF(2, 3);

#ifdef __cplusplus
}
#endif
#endif
