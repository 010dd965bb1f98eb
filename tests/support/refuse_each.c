/* SPDX-License-Identifier: MIT */
#include "support/refuse_each.h"

#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support/counting_allocator.h"

/* One run; true if an allocation was refused in it. */
static bool refuse_one(long n, enum sotto_status (*work)(const struct sotto_allocator * allocator, void * user_data),
                       void * user_data) {
    struct counting_allocator allocator;
    counting_allocator_init(&allocator);
    allocator.refuse = n;
    sotto_clear_last_error();
    enum sotto_status status = work(&allocator.base, user_data);
    const bool refused = allocator.refused != 0;
    if (status != (refused ? SOTTO_E_MEMORY : SOTTO_OK))
        fail_msg("allocation %ld: %s: %s", n, sotto_status_name(status), sotto_last_error_text());
    if (refused)
        assert_int_equal(sotto_last_error(), SOTTO_E_MEMORY);
    if (allocator.held != 0)
        fail_msg("allocation %ld: %lld bytes are not given back", n, (long long)allocator.held);
    return refused;
}

static long refuse(enum sotto_status (*work)(const struct sotto_allocator * allocator, void * user_data),
                   void * user_data, long most_in_turn) {
    long refused = 0;
    for (long n = 1; refuse_one(n, work, user_data); n += n < most_in_turn ? 1 : n / 3)
        refused++;
    print_message("%ld allocations refused, one at a time\n", refused);
    return refused;
}

long refuse_each(enum sotto_status (*work)(const struct sotto_allocator * allocator, void * user_data),
                 void * user_data) {
    return refuse(work, user_data, LONG_MAX);
}

long refuse_many(enum sotto_status (*work)(const struct sotto_allocator * allocator, void * user_data),
                 void * user_data) {
    return refuse(work, user_data, 200);
}
