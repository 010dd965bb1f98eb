/* SPDX-License-Identifier: MIT */
/* Memory whose last byte is the last of a page, with a page behind it that cannot be touched: a kernel that reads or
 * writes too far dies at once. And a small generator, so that a test can print its seed and take it back. */
#ifndef SOTTO_TESTS_GUARDED_H
#define SOTTO_TESTS_GUARDED_H

#include <stddef.h>
#include <stdint.h>

struct guarded {
    char * map;
    size_t size;
    void * data; /* `bytes` of zeros */
};

struct guarded guarded_new(size_t bytes); /* fails the test when there is no memory */
void guarded_free(struct guarded * g);

struct dice {
    uint64_t state;
};

uint32_t dice_next(struct dice * dice);
uint32_t dice_below(struct dice * dice, uint32_t n); /* 0 .. n-1 */
float dice_float(struct dice * dice);                /* -1 .. 1 */

#endif
