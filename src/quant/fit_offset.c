/* SPDX-License-Identifier: MIT */
/* The fit of a scale and a minimum: least squares for a series of roundings, the best of which is kept. */
#include "quant/lanes.h"

struct groups {
    struct lanes x[FIT_MAX], w[FIT_MAX];
    struct lanes sum_w, sum_x; /* sums of w and w x */
    struct lanes largest;
    struct lanes scale, min, error; /* the best so far */
    struct lanes s, s_min;          /* the inverse scale and the minimum its codes were made with */
};

struct trial {
    struct lanes code[FIT_MAX];
    struct lanes s, scale, min;
    struct lanes a, b, c; /* sums of w l, w l l, w l x over the codes l */
    struct lanes error;
};

static void begin(struct groups * g, int n) {
    struct lanes lo = all_lanes(INFINITY), hi = all_lanes(-INFINITY);
    struct lanes sum_w = all_lanes(0.0f), sum_x = all_lanes(0.0f);
    for (int i = 0; i < n; i++) {
        EACH_PART(p) {
            const f4 x = g->x[i].part[p], w = g->w[i].part[p];
            lo.part[p] = f4_min(x, lo.part[p]);
            hi.part[p] = f4_max(x, hi.part[p]);
            sum_w.part[p] += w;
            sum_x.part[p] += w * x;
        }
    }
    EACH_PART(p) { lo.part[p] = f4_where(lo.part[p] > 0.0f, f4_all(0.0f), lo.part[p]); }
    g->min = lo;
    g->largest = hi;
    g->sum_w = sum_w;
    g->sum_x = sum_x;
}

/* The error of the trial's codes under its scale and minimum. */
static inline void measure(const struct groups * g, int n, bool absolute, struct trial * t) {
    struct lanes sum = all_lanes(0.0f);
    for (int i = 0; i < n; i++) {
        EACH_PART(p) {
            const f4 d = t->scale.part[p] * t->code[i].part[p] + t->min.part[p] - g->x[i].part[p];
            sum.part[p] += g->w[i].part[p] * (absolute ? f4_abs(d) : d * d);
        }
    }
    t->error = sum;
}

/* Codes for the trial's inverse scale and the minimum that is best now, and their sums. */
static inline void round_codes(const struct groups * g, int n, float top, struct trial * t) {
    struct lanes a = all_lanes(0.0f), b = all_lanes(0.0f), c = all_lanes(0.0f);
    for (int i = 0; i < n; i++) {
        EACH_PART(p) {
            const f4 x = g->x[i].part[p];
            const f4 code = f4_even(t->s.part[p] * (x - g->min.part[p]), 0.0f, top), wl = g->w[i].part[p] * code;
            t->code[i].part[p] = code;
            a.part[p] += wl;
            b.part[p] += wl * code;
            c.part[p] += wl * x;
        }
    }
    t->a = a;
    t->b = b;
    t->c = c;
}

/* The scale and minimum that fit the codes best. Codes that do not determine them give some of infinite error. */
static void solve(const struct groups * g, struct trial * t) {
    EACH_PART(p) {
        const f4 w = g->sum_w.part[p], x = g->sum_x.part[p], a = t->a.part[p], b = t->b.part[p], c = t->c.part[p];
        const f4 determinant = w * b - a * a;
        const f4 scale = (w * c - x * a) / determinant, min = (b * x - a * c) / determinant;
        const i4 above = min > 0.0f;
        t->scale.part[p] = f4_where(above, c / b, scale);
        t->min.part[p] = f4_where(determinant > 0.0f, f4_where(above, f4_all(0.0f), min), f4_all(-INFINITY));
    }
}

static void keep_better(struct groups * g, const struct trial * t) {
    EACH_PART(p) {
        const i4 better = t->error.part[p] < g->error.part[p];
        g->s_min.part[p] = f4_where(better, g->min.part[p], g->s_min.part[p]);
        g->s.part[p] = f4_where(better, t->s.part[p], g->s.part[p]);
        g->error.part[p] = f4_where(better, t->error.part[p], g->error.part[p]);
        g->scale.part[p] = f4_where(better, t->scale.part[p], g->scale.part[p]);
        g->min.part[p] = f4_where(better, t->min.part[p], g->min.part[p]);
    }
}

/* Spread the values from the minimum to the largest over `spread` codes. */
static void spread_over(const struct groups * g, float spread, struct trial * t) {
    EACH_PART(p) { t->s.part[p] = spread / (g->largest.part[p] - g->min.part[p]); }
}

static inline void search(struct groups * g, int n, const struct sotto_i_offset_search * how, bool absolute) {
    const float top = (float)how->top;
    struct trial t;
    spread_over(g, top, &t);
    EACH_PART(p) { t.scale.part[p] = 1.0f / t.s.part[p]; }
    t.min = g->min;
    round_codes(g, n, top, &t);
    measure(g, n, absolute, &t);
    g->s = t.s;
    g->s_min = g->min;
    g->scale = t.scale;
    g->error = t.error;
    for (int k = 0; k <= how->trials; k++) {
        spread_over(g, how->first + how->step * (float)k + top, &t);
        round_codes(g, n, top, &t);
        solve(g, &t);
        measure(g, n, absolute, &t);
        keep_better(g, &t);
    }
}

/* Scale, minimum and codes of lane l, whose smallest value (or 0) is given. */
static void put_group(const struct groups * g, int l, int n, float top, float smallest, float * scale, float * min,
                      uint8_t * codes) {
    const bool flat = !(get_lane(&g->largest, l) > smallest); /* equal values, none below 0 */
    const float s = get_lane(&g->s, l), s_min = get_lane(&g->s_min, l);
    for (int i = 0; i < n; i++) {
        codes[i] = flat ? 0 : (uint8_t)q_even(s * (get_lane(&g->x[i], l) - s_min), 0.0f, top);
    }
    *scale = flat ? 0.0f : get_lane(&g->scale, l);
    *min = flat ? -smallest : -get_lane(&g->min, l);
}

void sotto_i_fit_offset(const struct sotto_i_offset_search * how, const float * x, const float * w, int groups, int n,
                        float * scales, float * minima, uint8_t * codes) {
    for (int first = 0; first < groups; first += LANES) {
        const int used = groups - first < LANES ? groups - first : LANES;
        struct groups g;
        gather_lanes(x + first * n, used, n, g.x);
        gather_lanes(w + first * n, used, n, g.w);
        begin(&g, n);
        const struct lanes smallest = g.min;
        if (how->absolute) {
            search(&g, n, how, true);
        } else {
            search(&g, n, how, false);
        }
        for (int l = 0; l < used; l++) {
            put_group(&g, l, n, (float)how->top, get_lane(&smallest, l), scales + first + l, minima + first + l,
                      codes + (first + l) * n);
        }
    }
}
