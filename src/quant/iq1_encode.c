/* SPDX-License-Identifier: MIT */
/* Encoding of iq1_s and iq1_m: digits 0, 1, 2 for -1, 0, 1, and a shift by an eighth up or down that many share.
 *
 * With the elements of a sub-block in ascending order the digits are cut by two borders: first 0s, then 1s, then 2s.
 * All pairs of borders are tried with all shifts, each with the scale that is best for it. Then groups of 8 digits that
 * are no row of the codebook become the neighbour that fits best. See iq_decode.c for the layouts. */
#include <float.h>

#include "quant/f4.h"
#include "quant/fit.h"
#include "quant/lattice.h"
#include "quant/quant_impl.h"

enum { SUB_MAX = 32, GROUPS_MAX = 4, ALL_ONES = 3280 /* the cell of eight digits 1 */ };

/* What digits stand for, shifted up and down. */
static const float VALUES[2][4] = { { -0.875f, 0.125f, 1.125f }, { -1.125f, -0.125f, 0.875f } };

/* A sub-block of n elements in `groups` of 8. */
struct sub_block {
    int n, groups;
    const struct sotto_i_lattice * lattice;
    const float * x;
    float w[SUB_MAX];
    int order[SUB_MAX];   /* elements, smallest first */
    float scale, best;    /* of the best cut so far, and how well it fits */
    int first, second;    /* its borders: places in the order */
    int down[GROUPS_MAX]; /* shift of each group: 1 down */
    uint8_t digits[SUB_MAX];
    uint16_t rows[GROUPS_MAX];
};

static void sort(struct sub_block * s) {
    for (int i = 0; i < s->n; i++) {
        int k = i;
        for (; k > 0 && s->x[i] < s->x[s->order[k - 1]]; k--) {
            s->order[k] = s->order[k - 1];
        }
        s->order[k] = i;
    }
}

/* True if a fit with the sums of w v x and w v v over values v beats the best so far, which it then is. */
static bool beats(struct sub_block * s, float vx, float vv) {
    if (vv > 0.0f && vx * vx > s->best * vv) {
        s->scale = vx / vv;
        s->best = s->scale * vx;
        return true;
    }
    return false;
}

static inline bool any(i4 mask) { return (mask[0] | mask[1] | mask[2] | mask[3]) != 0; }

/* ---- iq1_s: one shift for all, and sums from sums up to each place */

enum { PLACES = 36 }; /* 0..32, and up to whole vectors */

struct sums_so_far {
    float wx[PLACES], w[PLACES]; /* of the elements before a place */
};

/* Four sums at once, for second borders i..i + 3: of each, the elements up to `first` have the first value. */
static f4 cut_sums(const float * sums, int first, int second, int n, const float * v, const float * times) {
    const f4 to = f4_load(sums + second);
    const f4 low = f4_all((sums[first] - sums[0]) * v[0] * times[0]);
    return (low + (to - sums[first]) * v[1] * times[1]) + (sums[n] - to) * v[2] * times[2];
}

static void try_cuts(struct sub_block * s, const struct sums_so_far * sums, int first, int second) {
    static const float ONCE[3] = { 1.0f, 1.0f, 1.0f };
    f4 vx[2], vv[2];
    i4 better = { 0 };
    for (int down = 0; down < 2; down++) {
        const float * v = VALUES[down];
        vx[down] = cut_sums(sums->wx, first, second, s->n, v, ONCE);
        vv[down] = cut_sums(sums->w, first, second, s->n, v, v);
        better |= (i4)(vv[down] > 0.0f) & (i4)(vx[down] * vx[down] > s->best * vv[down]);
    }
    for (int l = 0; any(better) && l < 4 && second + l <= s->n; l++) {
        for (int down = 0; down < 2; down++) {
            if (beats(s, vx[down][l], vv[down][l])) {
                s->first = first;
                s->second = second + l;
                s->down[0] = down;
            }
        }
    }
}

static void cut_with_one_shift(struct sub_block * s) {
    struct sums_so_far sums = { { 0.0f }, { 0.0f } };
    for (int k = 0; k < s->n; k++) {
        const int i = s->order[k];
        sums.wx[k + 1] = sums.wx[k] + s->w[i] * s->x[i];
        sums.w[k + 1] = sums.w[k] + s->w[i];
    }
    for (int first = 0; first <= s->n; first++) {
        for (int second = first; second <= s->n; second += 4) {
            try_cuts(s, &sums, first, second);
        }
    }
    for (int g = 1; g < s->groups; g++) {
        s->down[g] = s->down[0];
    }
}

/* ---- iq1_m: a shift for each of two groups, four choices side by side */

struct terms {
    f4 vx[16][3], vv[16][3]; /* w v x and w v v of the element at a place, were it to get a digit */
};

static void make_terms(const struct sub_block * s, struct terms * terms) {
    for (int k = 0; k < s->n; k++) {
        const int i = s->order[k];
        for (int digit = 0; digit < 3; digit++) {
            const float up = VALUES[0][digit], down = VALUES[1][digit];
            const f4 v = i < 8 ? (f4){ up, up, down, down } : (f4){ up, down, up, down };
            terms->vx[k][digit] = s->w[i] * v * s->x[i];
            terms->vv[k][digit] = s->w[i] * v * v;
        }
    }
}

static void cut_with_two_shifts(struct sub_block * s) {
    struct terms terms;
    make_terms(s, &terms);
    f4 low_vx = f4_all(0.0f), low_vv = f4_all(0.0f);
    for (int first = 0; first <= s->n; first++) {
        f4 mid_vx = low_vx, mid_vv = low_vv;
        for (int second = first; second <= s->n; second++) {
            f4 vx = mid_vx, vv = mid_vv;
            for (int k = second; k < s->n; k++) {
                vx += terms.vx[k][2];
                vv += terms.vv[k][2];
            }
            const i4 better = (i4)(vv > 0.0f) & (i4)(vx * vx > s->best * vv);
            for (int choice = 0; any(better) && choice < 4; choice++) {
                if (beats(s, vx[choice], vv[choice])) {
                    s->first = first;
                    s->second = second;
                    s->down[0] = choice >> 1;
                    s->down[1] = choice & 1;
                }
            }
            if (second < s->n) {
                mid_vx += terms.vx[second][1];
                mid_vv += terms.vv[second][1];
            }
        }
        if (first < s->n) {
            low_vx += terms.vx[first][0];
            low_vv += terms.vv[first][0];
        }
    }
}

/* ---- both */

static void take_digits(struct sub_block * s) {
    const bool turn = s->scale < 0.0f;
    for (int k = 0; k < s->n; k++) {
        const int digit = k < s->first ? 0 : k < s->second ? 1 : 2;
        s->digits[s->order[k]] = (uint8_t)(turn ? 2 - digit : digit);
    }
    for (int g = 0; turn && g < s->groups; g++) {
        s->down[g] = 1 - s->down[g];
    }
    s->scale = turn ? -s->scale : s->scale;
}

/* The row for 8 digits; true if the digits had to change. */
static bool take_row(struct sub_block * s, int g) {
    uint8_t * digits = s->digits + 8 * g;
    int cell = 0;
    for (int i = 7; i >= 0; i--) {
        cell = 3 * cell + digits[i];
    }
    const int row = s->lattice->row[cell];
    if (row >= 0) {
        s->rows[g] = (uint16_t)row;
        return false;
    }
    struct sotto_i_costs costs;
    for (int i = 0; i < 8; i++) {
        const f4 off = s->scale * f4_load(VALUES[s->down[g]]) - s->x[8 * g + i], cost = s->w[8 * g + i] * off * off;
        memcpy(costs.of[i], &cost, sizeof(cost));
    }
    s->rows[g] = (uint16_t)sotto_i_lattice_nearest(s->lattice, cell, &costs);
    memcpy(digits, s->lattice->digits + s->rows[g] * ROW_MAX, 8);
    return true;
}

static void fit_scale_again(struct sub_block * s) {
    float vx = 0.0f, vv = 0.0f;
    for (int i = 0; i < s->n; i++) {
        const float v = VALUES[s->down[i / 8]][s->digits[i]];
        vx += s->w[i] * v * s->x[i];
        vv += s->w[i] * v * v;
    }
    if (vx > 0.0f && vv > 0.0f) {
        s->scale = vx / vv;
    }
}

/* A sub-block of nothing: the digits nearest to 0. */
static void be_nothing(struct sub_block * s) {
    s->scale = 0.0f;
    memset(s->digits, 1, sizeof(s->digits));
    for (int g = 0; g < s->groups; g++) {
        s->rows[g] = (uint16_t)s->lattice->row[ALL_ONES];
        s->down[g] = 0;
    }
}

static void encode_sub_block(struct sub_block * s, float nothing, void (*cut)(struct sub_block * s)) {
    float most = 0.0f;
    for (int i = 0; i < s->n; i++) {
        most = fabsf(s->x[i]) > most ? fabsf(s->x[i]) : most;
    }
    s->best = -FLT_MAX;
    if (!(most < nothing)) {
        sort(s);
        cut(s);
    }
    if (!(s->best > -FLT_MAX)) { /* no cut has weights that add up to something */
        be_nothing(s);
        return;
    }
    take_digits(s);
    bool changed = false;
    for (int g = 0; g < s->groups; g++) {
        changed |= take_row(s, g);
    }
    if (changed) {
        fit_scale_again(s);
    }
}

static void weigh(const float * x, const float * column, int n, float sigma2, float * w) {
    if (column) {
        sotto_i_weigh(x, column, n, sigma2, w);
        return;
    }
    for (int i = 0; i < n; i++) {
        w[i] = x[i] * x[i];
    }
}

/* All sub-blocks of a block, and codes of their scales; a fifteenth of the largest scale is returned. */
static float encode_block(struct sub_block * subs, int count, const float * x, const float * column, uint8_t * codes) {
    const int n = QK_K / count;
    const bool one_shift = n == 32;
    const float sigma2 = 2.0f * (sotto_i_sum_of_squares(x, QK_K) / (float)QK_K);
    float most = 0.0f;
    for (int j = 0; j < count; j++) {
        struct sub_block * s = subs + j;
        s->n = n;
        s->groups = n / 8;
        s->lattice = sotto_i_lattice(BOOK_IQ1);
        s->x = x + j * n;
        weigh(s->x, column ? column + j * n : NULL, n, sigma2, s->w);
        encode_sub_block(s, one_shift ? 1e-12f : 1e-7f, one_shift ? cut_with_one_shift : cut_with_two_shifts);
        most = s->scale > most ? s->scale : most;
    }
    const float d = most / 15.0f, inverse = q_inverse(d);
    for (int j = 0; j < count; j++) {
        codes[j] = (uint8_t)q_even(0.5f * (inverse * subs[j].scale - 1.0f), 0.0f, 7.0f);
    }
    return d;
}

static void iq1_s_block(const float * x, const float * column, uint8_t * block) {
    struct sub_block subs[8];
    uint8_t codes[8];
    const float d = encode_block(subs, 8, x, column, codes);
    memset(block, 0, 50);
    if (d == 0.0f) {
        return;
    }
    for (int j = 0; j < 8; j++) {
        unsigned rest = (unsigned)(codes[j] | subs[j].down[0] << 3) << 12;
        for (int r = 0; r < 4; r++) {
            block[2 + 4 * j + r] = (uint8_t)subs[j].rows[r];
            rest |= (unsigned)subs[j].rows[r] >> 8 << (3 * r);
        }
        put_u16(block + 34 + 2 * j, (uint16_t)rest);
    }
    put_half(block, d * 1.125f);
}

/* d once more, from all elements as they will be decoded */
static float fit_block(const struct sub_block * subs, const uint8_t * codes, float d) {
    float vx = 0.0f, vv = 0.0f;
    for (int i = 0; i < QK_K; i++) {
        const struct sub_block * s = subs + i / 16;
        const int k = i % 16;
        const float v = VALUES[s->down[k / 8]][s->digits[k]] * (float)(2 * codes[i / 16] + 1);
        vx += s->w[k] * v * s->x[k];
        vv += s->w[k] * v * v;
    }
    return vv > 0.0f ? vx / vv : d;
}

static void iq1_m_block(const float * x, const float * column, uint8_t * block) {
    struct sub_block subs[16];
    uint8_t codes[16];
    const float d = encode_block(subs, 16, x, column, codes);
    uint16_t scales[4] = { 0 };
    memset(block, 0, 56);
    if (d == 0.0f) {
        return;
    }
    for (int g = 0; g < 16; g++) {
        const struct sub_block * s = subs + g;
        block[2 * g] = (uint8_t)s->rows[0];
        block[2 * g + 1] = (uint8_t)s->rows[1];
        block[32 + g] = (uint8_t)(s->rows[0] >> 8 | s->down[0] << 3 | s->rows[1] >> 8 << 4 | s->down[1] << 7);
        scales[g / 4] |= (uint16_t)(codes[g] << (3 * (g % 4)));
    }
    const unsigned bits = sotto_fp32_to_fp16(fit_block(subs, codes, d) * 1.1125f);
    for (int i = 0; i < 4; i++) {
        put_u16(block + 48 + 2 * i, (uint16_t)(scales[i] | (bits >> (4 * i) & 15) << 12));
    }
}

#define QUANTISE(name, bytes)                                                                \
    void sotto_i_quantise_##name(const float * x, void * y, int64_t n, const float * w) {    \
        uint8_t * block = y;                                                                 \
        for (int64_t i = 0; i < n; i += QK_K, block += (bytes)) {                            \
            name##_block(x + i, w ? w + i : NULL, block);                                    \
        }                                                                                    \
    }                                                                                        \
    enum sotto_status sotto_i_##name##_init(void) { return sotto_i_lattice_make(BOOK_IQ1); } \
    void sotto_i_##name##_free(void) { sotto_i_lattice_free(BOOK_IQ1); }
QUANTISE(iq1_s, 50)
QUANTISE(iq1_m, 56)
