/* SPDX-License-Identifier: MIT */
/* Arithmetic on sizes that notices overflow: each returns false, and leaves the result alone, when it does not fit. */
#ifndef SOTTO_CORE_CHECKED_H
#define SOTTO_CORE_CHECKED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static inline bool sotto_i_add(size_t a, size_t b, size_t * sum) {
    if (b > SIZE_MAX - a) {
        return false;
    }
    *sum = a + b;
    return true;
}

static inline bool sotto_i_mul(size_t a, size_t b, size_t * product) {
    if (a != 0 && b > SIZE_MAX / a) {
        return false;
    }
    *product = a * b;
    return true;
}

/* Round up to a multiple of `align`, a power of two. */
static inline bool sotto_i_align_up(size_t a, size_t align, size_t * aligned) {
    if (a > SIZE_MAX - (align - 1)) {
        return false;
    }
    *aligned = (a + align - 1) & ~(align - 1);
    return true;
}

/* Products of extents: a, b >= 0. */
static inline bool sotto_i_mul_i64(int64_t a, int64_t b, int64_t * product) {
    if (a != 0 && b > INT64_MAX / a) {
        return false;
    }
    *product = a * b;
    return true;
}

#endif
