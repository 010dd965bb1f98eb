/* SPDX-License-Identifier: MIT */
/* For tests of model containers: converting, and being refused. */
#ifndef SOTTO_TESTS_CONVERSION_H
#define SOTTO_TESTS_CONVERSION_H

#include "sotto/models.h"

/* sotto_convert; the status has to be the thread's last error too. */
enum sotto_status conversion(const char * in, const char * out, enum sotto_type type,
                             const struct sotto_allocator * allocator);

/* Fails with this status and a word in its message, leaks nothing and leaves the output alone. */
void conversion_refused(const char * in, const char * out, enum sotto_type type, enum sotto_status status,
                        const char * word);

#endif
