/* SPDX-License-Identifier: MIT */
/* Groups side by side: lane l of element i is element i of the l-th of up to LANES groups.
 *
 * Sums over a group keep their order, so they cannot be spread over vector lanes; different groups can. Inner loops run
 * over lanes, a fixed number, and have no branches, which compilers turn into vectors. Lanes without a group hold
 * zeros. */
#ifndef SOTTO_QUANT_LANES_H
#define SOTTO_QUANT_LANES_H

#include "quant/fit.h"
#include "quant/quant_impl.h"

enum { LANES = 8 };

#define EACH_LANE(l) for (int l = 0; l < LANES; l++)

struct lanes {
    float at[LANES];
};

static inline struct lanes all_lanes(float v) {
    struct lanes a;
    EACH_LANE(l) { a.at[l] = v; }
    return a;
}

/* The first `groups` <= LANES groups of n values at x. */
static inline void gather_lanes(const float * x, int groups, int n, struct lanes * to) {
    for (int i = 0; i < n; i++) {
        EACH_LANE(l) { to[i].at[l] = l < groups ? x[l * n + i] : 0.0f; }
    }
}

#endif
