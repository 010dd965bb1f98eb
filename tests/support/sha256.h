/* SPDX-License-Identifier: MIT */
/* SHA-256, to tell whether a file is the one that expected values belong to. */
#ifndef SOTTO_TESTS_SHA256_H
#define SOTTO_TESTS_SHA256_H

#include <stdbool.h>
#include <stddef.h>

/* Hash of n bytes as 64 lower-case digits and a 0. */
void sha256_hex(const void * data, size_t n, char hex[65]);

/* Hash of a file; false if it cannot be read. */
bool sha256_file_hex(const char * path, char hex[65]);

#endif
