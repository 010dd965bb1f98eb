/* SPDX-License-Identifier: MIT */
/* Fits of a scale that may be negative: the most extreme value lies on the end of the codes that has one more level. */
#include "quant/lanes.h"

struct groups {
    struct lanes x[FIT_MAX], w[FIT_MAX], wx[FIT_MAX];
    struct lanes largest, extreme; /* magnitude, and the first value of it; 1 if it is next to nothing */
    struct lanes s, scale, best;
    struct lanes xl, ll; /* sums of w x l and w l l over the codes l */
};

static const float NOTHING = 1e-15f; /* below, values have no scale */

/* Values, weights (NULL: squares) and extremes of up to LANES groups. */
static void begin(struct groups * g, const float * x, const float * w, int groups, int n) {
    struct lanes largest = all_lanes(0.0f), extreme = all_lanes(0.0f);
    gather_lanes(x, groups, n, g->x);
    gather_lanes(w ? w : x, groups, n, g->w);
    for (int i = 0; i < n; i++) {
        EACH_PART(p) {
            const f4 v = g->x[i].part[p], size = f4_abs(v);
            extreme.part[p] = f4_where(size > largest.part[p], v, extreme.part[p]);
            largest.part[p] = f4_max(size, largest.part[p]);
            g->w[i].part[p] = w ? g->w[i].part[p] : v * v;
            g->wx[i].part[p] = g->w[i].part[p] * v;
        }
    }
    EACH_PART(p) { extreme.part[p] = f4_where(largest.part[p] < NOTHING, f4_all(1.0f), extreme.part[p]); }
    g->largest = largest;
    g->extreme = extreme;
}

static inline f4 code_of(f4 s, f4 x, float half) { return f4_even(s * x, -half, half - 1.0f); }

/* The sums for codes made with the inverse scales s. */
static inline void sum_codes(struct groups * g, int n, float half, const struct lanes * s) {
    struct lanes xl = all_lanes(0.0f), ll = all_lanes(0.0f);
    for (int i = 0; i < n; i++) {
        EACH_PART(p) {
            const f4 code = code_of(s->part[p], g->x[i].part[p], half);
            xl.part[p] += g->wx[i].part[p] * code;
            ll.part[p] += g->w[i].part[p] * code * code;
        }
    }
    g->xl = xl;
    g->ll = ll;
}

static void first_trial(struct groups * g, int n, float half) {
    EACH_PART(p) { g->s.part[p] = -half / g->extreme.part[p]; }
    sum_codes(g, n, half, &g->s);
    EACH_PART(p) {
        const f4 scale = g->xl.part[p] / g->ll.part[p];
        g->scale.part[p] = f4_where(g->ll.part[p] != 0.0f, scale, f4_all(0.0f));
        g->best.part[p] = g->scale.part[p] * g->xl.part[p];
    }
}

static void trial(struct groups * g, int n, float half, float spread) {
    struct lanes s;
    EACH_PART(p) { s.part[p] = -spread / g->extreme.part[p]; }
    sum_codes(g, n, half, &s);
    EACH_PART(p) {
        const f4 xl = g->xl.part[p], ll = g->ll.part[p], scale = xl / ll;
        const i4 better = (ll > 0.0f) & (xl * xl > g->best.part[p] * ll);
        g->s.part[p] = f4_where(better, s.part[p], g->s.part[p]);
        g->scale.part[p] = f4_where(better, scale, g->scale.part[p]);
        g->best.part[p] = f4_where(better, scale * xl, g->best.part[p]);
    }
}

static void all_codes(const struct groups * g, int n, float half, struct lanes * code) {
    for (int i = 0; i < n; i++) {
        EACH_PART(p) { code[i].part[p] = code_of(g->s.part[p], g->x[i].part[p], half); }
    }
}

/* Scale and codes of lane l. */
static float put_group(const struct groups * g, const struct lanes * code, int l, int n, float half, uint8_t * codes) {
    const bool nothing = get_lane(&g->largest, l) < NOTHING;
    for (int i = 0; i < n; i++) {
        codes[i] = nothing ? 0 : (uint8_t)(get_lane(&code[i], l) + half);
    }
    return nothing ? 0.0f : get_lane(&g->scale, l);
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
    i4 moved = { 0 };
    for (int i = 0; i < n; i++) {
        EACH_PART(p) {
            const f4 x = g->x[i].part[p], w = g->w[i].part[p], wx = g->wx[i].part[p], old = code[i].part[p];
            const f4 xl = g->xl.part[p] - wx * old, ll = g->ll.part[p] - w * old * old;
            const f4 new = f4_even(x * ll / xl, -half, half - 1.0f);
            const f4 new_xl = xl + wx * new, new_ll = ll + w *new *new;
            const i4 better = (xl > 0.0f) & (new != old) & (new_ll > 0.0f) &
                              (new_xl * new_xl * g->ll.part[p] > g->xl.part[p] * g->xl.part[p] * new_ll);
            code[i].part[p] = f4_where(better, new, old);
            g->xl.part[p] = f4_where(better, new_xl, g->xl.part[p]);
            g->ll.part[p] = f4_where(better, new_ll, g->ll.part[p]);
            moved |= better;
        }
    }
    return (moved[0] | moved[1] | moved[2] | moved[3]) != 0;
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
        EACH_PART(p) { g.scale.part[p] = f4_where(g.ll.part[p] > 0.0f, g.xl.part[p] / g.ll.part[p], f4_all(0.0f)); }
        for (int l = 0; l < used; l++) {
            scales[first + l] = put_group(&g, code, l, n, h, codes + (first + l) * n);
        }
    }
}
