/* SPDX-License-Identifier: MIT */
/* Fits of a scale that may be negative: the most extreme value lies on the end of the codes that has one more level. */
#include "quant/lanes.h"

struct groups {
    struct lanes x[FIT_MAX], w[FIT_MAX], wx[FIT_MAX];
    struct lanes largest, extreme; /* magnitude, and the first value of it; 1 if it is next to nothing */
    struct lanes s, scale, best;
    struct lanes xl, ll; /* sums of w x l and w l l over the codes l */
};

static bool next_to_nothing(float largest) { return largest < 1e-15f; }

/* Values, weights (NULL: squares) and extremes of up to LANES groups. */
static void begin(struct groups * g, const float * x, const float * w, int groups, int n) {
    struct lanes largest = all_lanes(0.0f), extreme = all_lanes(0.0f);
    gather_lanes(x, groups, n, g->x);
    gather_lanes(w ? w : x, groups, n, g->w);
    for (int i = 0; i < n; i++) {
        EACH_LANE(l) {
            const float v = g->x[i].at[l], size = fabsf(v);
            extreme.at[l] = size > largest.at[l] ? v : extreme.at[l];
            largest.at[l] = size > largest.at[l] ? size : largest.at[l];
            g->w[i].at[l] = w ? g->w[i].at[l] : v * v;
            g->wx[i].at[l] = g->w[i].at[l] * v;
        }
    }
    EACH_LANE(l) { extreme.at[l] = next_to_nothing(largest.at[l]) ? 1.0f : extreme.at[l]; }
    g->largest = largest;
    g->extreme = extreme;
}

static inline float code_of(float s, float x, float half) { return q_even(s * x, -half, half - 1.0f); }

/* The sums for codes made with the inverse scales s. */
static inline void sum_codes(struct groups * g, int n, float half, const struct lanes * s) {
    struct lanes xl = all_lanes(0.0f), ll = all_lanes(0.0f);
    for (int i = 0; i < n; i++) {
        EACH_LANE(l) {
            const float code = code_of(s->at[l], g->x[i].at[l], half);
            xl.at[l] += g->wx[i].at[l] * code;
            ll.at[l] += g->w[i].at[l] * code * code;
        }
    }
    g->xl = xl;
    g->ll = ll;
}

static void first_trial(struct groups * g, int n, float half) {
    EACH_LANE(l) { g->s.at[l] = -half / g->extreme.at[l]; }
    sum_codes(g, n, half, &g->s);
    EACH_LANE(l) {
        const float scale = g->xl.at[l] / g->ll.at[l];
        g->scale.at[l] = g->ll.at[l] != 0.0f ? scale : 0.0f;
        g->best.at[l] = g->scale.at[l] * g->xl.at[l];
    }
}

static void trial(struct groups * g, int n, float half, float spread) {
    struct lanes s;
    EACH_LANE(l) { s.at[l] = -spread / g->extreme.at[l]; }
    sum_codes(g, n, half, &s);
    EACH_LANE(l) {
        const float xl = g->xl.at[l], ll = g->ll.at[l], scale = xl / ll;
        const bool better = (ll > 0.0f) & (xl * xl > g->best.at[l] * ll);
        g->s.at[l] = better ? s.at[l] : g->s.at[l];
        g->scale.at[l] = better ? scale : g->scale.at[l];
        g->best.at[l] = better ? scale * xl : g->best.at[l];
    }
}

static void all_codes(const struct groups * g, int n, float half, struct lanes * code) {
    for (int i = 0; i < n; i++) {
        EACH_LANE(l) { code[i].at[l] = code_of(g->s.at[l], g->x[i].at[l], half); }
    }
}

/* Scale and codes of lane l. */
static float put_group(const struct groups * g, const struct lanes * code, int l, int n, float half, uint8_t * codes) {
    const bool nothing = next_to_nothing(g->largest.at[l]);
    for (int i = 0; i < n; i++) {
        codes[i] = nothing ? 0 : (uint8_t)(code[i].at[l] + half);
    }
    return nothing ? 0.0f : g->scale.at[l];
}

void sotto_i_fit_signed(int half, const float * x, const float * w, int groups, int n, float * scales,
                        uint8_t * codes) {
    const float h = (float)half;
    for (int first = 0; first < groups; first += LANES) {
        const int used = groups - first < LANES ? groups - first : LANES;
        struct groups g;
        struct lanes code[FIT_MAX];
        begin(&g, x + first * n, w ? w + first * n : NULL, used, n);
        first_trial(&g, n, h);
        for (int k = 1; k <= 9; k++) {
            trial(&g, n, h, h + 0.1f * (float)(k - 10));
        }
        for (int k = 1; k <= 9; k++) {
            trial(&g, n, h, h + 0.1f * (float)k);
        }
        all_codes(&g, n, h, code);
        for (int l = 0; l < used; l++) {
            scales[first + l] = put_group(&g, code, l, n, h, codes + (first + l) * n);
        }
    }
}

/* Give each code in turn the value it has under the scale of the others, where that fits better; true if one moved. */
static bool sweep(struct groups * g, int n, float half, struct lanes * code) {
    int moved = 0;
    for (int i = 0; i < n; i++) {
        EACH_LANE(l) {
            const float x = g->x[i].at[l], w = g->w[i].at[l], wx = g->wx[i].at[l], old = code[i].at[l];
            const float xl = g->xl.at[l] - wx * old, ll = g->ll.at[l] - w * old * old;
            const float new = q_even(x * ll / xl, -half, half - 1.0f);
            const float new_xl = xl + wx * new, new_ll = ll + w *new *new;
            const int better = (xl > 0.0f) & (new != old) & (new_ll > 0.0f) &
                               (new_xl * new_xl * g->ll.at[l] > g->xl.at[l] * g->xl.at[l] * new_ll);
            code[i].at[l] = better ? new : old;
            g->xl.at[l] = better ? new_xl : g->xl.at[l];
            g->ll.at[l] = better ? new_ll : g->ll.at[l];
            moved |= better;
        }
    }
    return moved != 0;
}

void sotto_i_fit_signed_moving(int half, const float * x, int groups, int n, float * scales, uint8_t * codes) {
    const float h = (float)half;
    for (int first = 0; first < groups; first += LANES) {
        const int used = groups - first < LANES ? groups - first : LANES;
        struct groups g;
        struct lanes code[FIT_MAX];
        begin(&g, x + first * n, NULL, used, n);
        first_trial(&g, n, h);
        all_codes(&g, n, h, code);
        for (int k = 0; k < 5 && sweep(&g, n, h, code); k++) {}
        EACH_LANE(l) {
            const float scale = g.xl.at[l] / g.ll.at[l];
            g.scale.at[l] = g.ll.at[l] > 0.0f ? scale : 0.0f;
        }
        for (int l = 0; l < used; l++) {
            scales[first + l] = put_group(&g, code, l, n, h, codes + (first + l) * n);
        }
    }
}
