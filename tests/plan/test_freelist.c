/* SPDX-License-Identifier: MIT */
/* The free list: best fit, merging, and a long random run beside a plain map of units. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "plan/freelist.h"
#include "sotto/sotto.h"

enum { UNIT = 64, MAX_LIVE = 40, MAP = 40 * 8 };

static void best_fit_and_merging(void ** state) {
    (void)state;
    struct sotto_i_freelist list;
    assert_int_equal(sotto_i_freelist_init(&list, UNIT, 8, NULL), SOTTO_OK);
    const size_t sizes[] = { 1, 300, 64, 130, 65 }; /* 1, 5, 1, 3, 2 units */
    const size_t expected[] = { 0, 1, 6, 7, 10 };
    for (int i = 0; i < 5; i++)
        assert_int_equal(sotto_i_freelist_take(&list, sizes[i]), expected[i] * UNIT);
    assert_int_equal(list.top, 12 * UNIT);
    sotto_i_freelist_give(&list, 1 * UNIT, 300);
    sotto_i_freelist_give(&list, 7 * UNIT, 130);
    assert_int_equal(sotto_i_freelist_take(&list, 3 * UNIT), 7 * UNIT); /* the smaller one that fits */
    sotto_i_freelist_give(&list, 7 * UNIT, 3 * UNIT);
    sotto_i_freelist_give(&list, 6 * UNIT, 64); /* joins both neighbours */
    assert_int_equal(list.n, 2);
    assert_int_equal(sotto_i_freelist_take(&list, 9 * UNIT), 1 * UNIT);
    assert_int_equal(list.top, 12 * UNIT);
    assert_int_equal(sotto_i_freelist_take(&list, SIZE_MAX), SIZE_MAX);
    assert_int_equal(sotto_i_freelist_take(&list, SIZE_MAX / 2), 12 * UNIT);
    assert_int_equal(sotto_i_freelist_take(&list, SIZE_MAX / 2), SIZE_MAX);
    sotto_i_freelist_free(&list);
}

static void nothing_takes_no_room(void ** state) {
    (void)state;
    struct sotto_i_freelist list;
    assert_int_equal(sotto_i_freelist_init(&list, UNIT, 1, NULL), SOTTO_OK);
    assert_int_equal(sotto_i_freelist_take(&list, UNIT), 0);
    for (int i = 0; i < 5; i++) {
        const size_t offset = sotto_i_freelist_take(&list, 0);
        assert_int_equal(list.top, UNIT);
        sotto_i_freelist_give(&list, offset, 0);
        assert_int_equal(list.n, 1);
    }
    sotto_i_freelist_free(&list);
}

static void random_run(void ** state) {
    (void)state;
    uint32_t seed = 5;
    struct sotto_i_freelist list;
    assert_int_equal(sotto_i_freelist_init(&list, UNIT, MAX_LIVE, NULL), SOTTO_OK);
    struct {
        size_t offset, size;
    } live[MAX_LIVE];
    int n = 0;
    unsigned char map[MAP * 2] = { 0 };
    for (int step = 0; step < 20000 || n > 0; step++) {
        seed = seed * 1664525u + 1013904223u;
        const uint32_t r = seed >> 8;
        if (n < MAX_LIVE && step < 20000 && r % 2 == 0) {
            const size_t size = 1 + r / 2 % (8 * UNIT);
            const size_t offset = sotto_i_freelist_take(&list, size);
            assert_true(offset % UNIT == 0 && offset + size <= sizeof(map) * UNIT);
            for (size_t u = offset / UNIT; u < (offset + size + UNIT - 1) / UNIT; u++)
                assert_int_equal(map[u]++, 0);
            live[n].offset = offset;
            live[n++].size = size;
        } else if (n > 0) {
            const int i = (int)(r / 2 % (uint32_t)n);
            for (size_t u = live[i].offset / UNIT; u < (live[i].offset + live[i].size + UNIT - 1) / UNIT; u++)
                map[u] = 0;
            sotto_i_freelist_give(&list, live[i].offset, live[i].size);
            live[i] = live[--n];
        }
    }
    assert_int_equal(list.n, 1); /* all merged again */
    assert_int_equal(list.blocks[0].offset, 0);
    assert_int_equal(list.blocks[0].size, SIZE_MAX - SIZE_MAX % UNIT);
    sotto_i_freelist_free(&list);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(best_fit_and_merging),
        cmocka_unit_test(nothing_takes_no_room),
        cmocka_unit_test(random_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
