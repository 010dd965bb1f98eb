/* SPDX-License-Identifier: MIT */
/* An allocator for tests: counts requests, refuses one of them, knows what is still held, notices writes past the end of
 * a block. Thread-safe. */
#ifndef SOTTO_TESTS_COUNTING_ALLOCATOR_H
#define SOTTO_TESTS_COUNTING_ALLOCATOR_H

#include <stdatomic.h>
#include <stdbool.h>

#include "sotto/alloc.h"

struct counting_allocator {
    struct sotto_allocator base; /* pass &base */
    atomic_long requests;        /* allocations and growths asked for */
    atomic_long refuse;          /* number of the request that fails, from 1; 0 = none */
    atomic_long refused;         /* how many were refused */
    atomic_llong held;           /* bytes not given back */
    atomic_llong peak;
};

void counting_allocator_init(struct counting_allocator * allocator);

/* Set-up and tear-down of a group of tests: one is the default of the process meanwhile, and at the end nothing may be
 * held. */
int counting_allocator_begin(void ** state);
int counting_allocator_end(void ** state);

#endif
