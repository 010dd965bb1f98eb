/* SPDX-License-Identifier: MIT */
/* Groups side by side: lane l of element i is element i of the l-th of up to LANES groups.
 *
 * Sums over a group keep their order, so they cannot be spread over the lanes of a vector; different groups can. Lanes
 * without a group hold zeros. */
#ifndef SOTTO_QUANT_LANES_H
#define SOTTO_QUANT_LANES_H

#include "quant/f4.h"
#include "quant/fit.h"
#include "quant/quant_impl.h"

enum { LANES = 8, PARTS = 2 };

struct lanes {
    f4 part[PARTS];
};

#define EACH_PART(p) for (int p = 0; p < PARTS; p++)

static inline struct lanes all_lanes(float v) { return (struct lanes){ { f4_all(v), f4_all(v) } }; }
static inline float get_lane(const struct lanes * a, int l) { return a->part[l / 4][l % 4]; }

/* The first `groups` <= LANES groups of n values at x. */
static inline void gather_lanes(const float * x, int groups, int n, struct lanes * to) {
    for (int i = 0; i < n; i++) {
        to[i] = all_lanes(0.0f);
        for (int l = 0; l < groups; l++) {
            to[i].part[l / 4][l % 4] = x[l * n + i];
        }
    }
}

#endif
