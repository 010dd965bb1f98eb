/* SPDX-License-Identifier: MIT */
/* For tests: the same work again and again, the n-th allocation refused the n-th time, until none is refused. */
#ifndef SOTTO_TESTS_REFUSE_EACH_H
#define SOTTO_TESTS_REFUSE_EACH_H

#include "sotto/alloc.h"
#include "sotto/status.h"

/* `work` makes something with memory of `allocator`, uses it, frees it, and returns how that went. It has to be MEMORY,
 * recorded as the thread's last error, when an allocation was refused, and OK the one time that none was; each time all
 * memory has to be given back. Fails the test where that does not hold; prints and returns how many were refused. */
long refuse_each(enum sotto_status (*work)(const struct sotto_allocator * allocator, void * user_data),
                 void * user_data);

/* The same for work that allocates often: after the first 200 ever fewer are refused, each a third further on. */
long refuse_many(enum sotto_status (*work)(const struct sotto_allocator * allocator, void * user_data),
                 void * user_data);

#endif
