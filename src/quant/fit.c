/* SPDX-License-Identifier: MIT */
/* Weights, and the fit of non-negative values. */
#include "quant/fit.h"

#include "quant/quant_impl.h"

void sotto_i_columns(const float * x, const float * column, int n, float * q) {
    bool says = false;
    for (int i = 0; i < n; i++) {
        says |= column[i] > 0.0f && x[i] != 0.0f;
    }
    for (int i = 0; i < n; i++) {
        q[i] = says ? column[i] : 1.0f;
    }
}

void sotto_i_weigh(const float * x, const float * column, int n, float sigma2, float * w) {
    sotto_i_columns(x, column, n, w);
    for (int i = 0; i < n; i++) {
        w[i] *= sqrtf(sigma2 + x[i] * x[i]);
    }
}

float sotto_i_sum_of_squares(const float * x, int64_t n) {
    float sum = 0.0f;
    for (int64_t i = 0; i < n; i++) {
        sum += x[i] * x[i];
    }
    return sum;
}

/* Codes for the inverse scale s, and the weighted squared error they leave. */
static float positive_error(const float * x, const float * w, int n, float s, float top) {
    const float scale = 1.0f / s;
    float error = 0.0f;
    for (int i = 0; i < n; i++) {
        const float d = x[i] - scale * q_even(s * x[i], -127.0f, top);
        error += w[i] * d * d;
    }
    return error;
}

/* The inverse scale to start from: the least error of nine. */
static float positive_start(const float * x, const float * w, int n, float largest, int top) {
    float best_s = (float)top / largest;
    float best = positive_error(x, w, n, best_s, 127.0f);
    for (int k = -4; k <= 4; k++) {
        if (k != 0) {
            const float s = (0.1f * (float)k + (float)top) / largest;
            const float error = positive_error(x, w, n, s, (float)top);
            if (error < best) {
                best = error;
                best_s = s;
            }
        }
    }
    return best_s;
}

struct sums {
    float xl, ll; /* sums of w x l and w l l */
};

/* Move single codes to where the scale that the others give would have them, if that fits better; true if one moved. */
static bool positive_sweep(const float * x, const float * w, int n, float top, float * l, struct sums * sums) {
    bool moved = false;
    for (int i = 0; i < n; i++) {
        struct sums less = { sums->xl - w[i] * x[i] * l[i], sums->ll - w[i] * l[i] * l[i] };
        if (!(less.xl > 0.0f && less.ll > 0.0f)) {
            continue;
        }
        const float code = q_even(x[i] * less.ll / less.xl, -127.0f, top);
        if (code == l[i]) {
            continue;
        }
        less.xl += w[i] * x[i] * code;
        less.ll += w[i] * code * code;
        if (less.xl * less.xl * sums->ll > sums->xl * sums->xl * less.ll) {
            l[i] = code;
            *sums = less;
            moved = true;
        }
    }
    return moved;
}

float sotto_i_fit_positive(const float * x, const float * w, int n, int top, int8_t * codes) {
    float largest = 0.0f;
    for (int i = 0; i < n; i++) {
        largest = x[i] > largest ? x[i] : largest;
    }
    if (largest < 1e-15f) {
        for (int i = 0; i < n; i++) {
            codes[i] = 0;
        }
        return 0.0f;
    }
    const float s = positive_start(x, w, n, largest, top);
    float l[FIT_MAX];
    struct sums sums = { 0.0f, 0.0f };
    for (int i = 0; i < n; i++) {
        l[i] = q_even(s * x[i], -127.0f, (float)top);
        sums.xl += w[i] * x[i] * l[i];
        sums.ll += w[i] * l[i] * l[i];
    }
    for (int sweep = 0; sweep < 5 && positive_sweep(x, w, n, (float)top, l, &sums); sweep++) {}
    for (int i = 0; i < n; i++) {
        codes[i] = (int8_t)l[i];
    }
    return sums.ll > 0.0f ? sums.xl / sums.ll : 0.0f;
}
