/* SPDX-License-Identifier: MIT */
/* Guarded memory and dice: guarded.h. */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */
#include "guarded.h"

#include <setjmp.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

struct guarded guarded_new(size_t bytes) {
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    struct guarded g;
    g.size = (bytes + page - 1) / page * page + page;
    g.map = mmap(NULL, g.size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(g.map != MAP_FAILED);
    assert_int_equal(mprotect(g.map + g.size - page, page, PROT_NONE), 0);
    g.data = g.map + g.size - page - bytes;
    return g;
}

void guarded_free(struct guarded * g) { munmap(g->map, g->size); }

uint32_t dice_next(struct dice * dice) {
    dice->state = dice->state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(dice->state >> 32);
}

uint32_t dice_below(struct dice * dice, uint32_t n) { return dice_next(dice) % n; }

float dice_float(struct dice * dice) { return (float)((int32_t)dice_next(dice) * 0x1p-31); }
