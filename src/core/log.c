/* SPDX-License-Identifier: MIT */
/* The log callback of the process. Messages that fit are formatted on the stack; longer ones in memory of the
 * default allocator, and are cut when there is none. */
#include "sotto/log.h"

#include <stdarg.h>
#include <stdio.h>

#include "sotto/alloc.h"

static sotto_log_callback log_callback;
static void * log_user_data;

void sotto_log_set(sotto_log_callback callback, void * user_data) {
    log_callback = callback;
    log_user_data = user_data;
}

void sotto_log_get(sotto_log_callback * callback, void ** user_data) {
    if (callback) {
        *callback = log_callback;
    }
    if (user_data) {
        *user_data = log_user_data;
    }
}

void sotto_log(enum sotto_log_level level, const char * format, ...) {
    if (!log_callback || !format) {
        return;
    }
    char text[1100]; /* the longest message of sotto_fail, and some */
    va_list args;
    va_start(args, format);
    int length = vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    if (length < 0) {
        return;
    }
    const struct sotto_allocator * allocator = sotto_default_allocator();
    size_t size = (size_t)length + 1;
    char * longer = size > sizeof(text) ? allocator->alloc(allocator->user_data, size, 16) : NULL;
    if (!longer) {
        log_callback(level, text, log_user_data);
        return;
    }
    va_start(args, format);
    vsnprintf(longer, size, format, args);
    va_end(args);
    log_callback(level, longer, log_user_data);
    allocator->free(allocator->user_data, longer, size, 16);
}
