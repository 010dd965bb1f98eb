/* SPDX-License-Identifier: MIT */
/* Encoding of iq2 and iq3: magnitudes become rows of a codebook, signs are kept apart, a sub-block shares a scale.
 *
 * For each sub-block many inverse scales are tried. One turns magnitudes into digits, digits that are no row of the
 * codebook into the neighbour with the least weighted error; the trial is as good as its rows fit with the best scale
 * for them. The winner's scale then decides once more which neighbours stand in. See iq_decode.c for the layouts. */
#include "core/type_convert.h"
#include "quant/f4.h"
#include "quant/fit.h"
#include "quant/lattice.h"
#include "quant/quant_impl.h"

enum { SUB_MAX = 32, GROUP_MAX = 8, TRIAL_MAX = 32 };

enum repair { OFF_GRID_GROUPS, ALL_IF_ANY, ALWAYS_ALL };

/* What sets the types apart. */
struct kind {
    enum sotto_i_book book;
    int sub, length, levels; /* elements of a sub-block and of a row, values of a digit */
    bool even;               /* an even number of signs in 8 */
    float nothing;           /* magnitudes below it are 0 */
    int around;              /* trials -around..around times step */
    float step;
    bool fitted; /* trials are spread around a fit instead of the largest magnitude */
    enum repair repair;
    float stored;        /* what d is stored with */
    float sigma2, share; /* sigma2 is so many mean squares; weights without a matrix are share * sigma2 + x^2 */
};

/* A block before it is packed. */
struct encoded {
    uint16_t rows[64];
    uint8_t signs[32];
    uint8_t codes[16];
    float d;
};

/* ---- a sub-block */

struct sub_block {
    const struct kind * kind;
    const struct sotto_i_lattice * lattice;
    int trials, groups;
    float z[SUB_MAX], w[SUB_MAX], root[SUB_MAX]; /* magnitudes, weights, roots of weights */
    int16_t rows[TRIAL_MAX][GROUP_MAX];          /* by trial and group */
    bool on_grid[TRIAL_MAX][GROUP_MAX];
    float level[SUB_MAX][TRIAL_MAX];    /* 2 digit + 1 of those rows */
    float zq[TRIAL_MAX], qq[TRIAL_MAX]; /* sums of w z q and w q q over the levels q */
};

/* Magnitudes of 8 elements, and the signs. Where they have to be even the least important one is turned. */
static uint8_t take_signs(const struct kind * kind, const float * x, const float * w, float * z) {
    unsigned signs = 0, odd = 0;
    for (int i = 0; i < 8; i++) {
        const bool negative = x[i] < 0.0f;
        z[i] = fabsf(x[i]);
        signs |= (unsigned)negative << i;
        odd ^= negative;
    }
    if (kind->even && odd) {
        int least = 0;
        for (int i = 1; i < 8; i++) {
            least = w[i] * x[i] * x[i] < w[least] * x[least] * x[least] ? i : least;
        }
        signs ^= 1U << least;
        z[least] = -z[least];
    }
    return (uint8_t)signs;
}

/* The cell that magnitudes fall into; its number is summed in floats, where it is exact. */
static int cell_of(const struct kind * kind, const float * z, float inverse) {
    static const f4 POWERS_OF_8 = { 1.0f, 8.0f, 64.0f, 512.0f };
    static const f4 POWERS_OF_3[2] = { { 1.0f, 3.0f, 9.0f, 27.0f }, { 81.0f, 243.0f, 729.0f, 2187.0f } };
    const float top = (float)(kind->levels - 1);
    f4 sum = f4_even(0.5f * (inverse * f4_load(z) - 1.0f), 0.0f, top);
    if (kind->length == 4) {
        sum *= POWERS_OF_8;
    } else {
        const f4 rest = f4_even(0.5f * (inverse * f4_load(z + 4) - 1.0f), 0.0f, top);
        sum = sum * POWERS_OF_3[0] + rest * POWERS_OF_3[1];
    }
    return (int)((sum[0] + sum[1]) + (sum[2] + sum[3]));
}

/* The neighbour of a cell that magnitudes over `scale` are nearest to. */
static int snap(const struct sub_block * s, int cell, const float * z, const float * root, float scale) {
    const f4 low = scale * (f4){ 1.0f, 3.0f, 5.0f, 7.0f }, high = scale * (f4){ 9.0f, 11.0f, 13.0f, 15.0f };
    struct sotto_i_costs costs;
    for (int i = 0; i < s->kind->length; i++) {
        f4 off = low - z[i], cost = root[i] * off * off;
        memcpy(costs.of[i], &cost, sizeof(cost));
        if (s->kind->levels == LEVEL_MAX) {
            off = high - z[i];
            cost = root[i] * off * off;
            memcpy(costs.of[i] + 4, &cost, sizeof(cost));
        }
    }
    return sotto_i_lattice_nearest(s->lattice, cell, &costs);
}

/* The row for group g of trial t with the inverse scale given, and its levels. */
static void choose_row(struct sub_block * s, int t, int g, float inverse, float scale) {
    const int length = s->kind->length, first = g * length;
    const int cell = cell_of(s->kind, s->z + first, inverse);
    int row = s->lattice->row[cell];
    s->on_grid[t][g] = row >= 0;
    if (row < 0) {
        row = snap(s, cell, s->z + first, s->root + first, scale);
    }
    s->rows[t][g] = (int16_t)row;
    for (int i = 0; i < length; i++) {
        s->level[first + i][t] = (float)(2 * s->lattice->digits[row * ROW_MAX + i] + 1);
    }
}

static void sum_trials(struct sub_block * s, int from, int to) {
    for (int t = from; t < to; t++) {
        s->zq[t] = 0.0f;
        s->qq[t] = 0.0f;
    }
    for (int i = 0; i < s->kind->sub; i++) {
        const float w = s->w[i], wz = s->w[i] * s->z[i];
        for (int t = from; t < to; t++) {
            const float q = s->level[i][t];
            s->zq[t] += wz * q;
            s->qq[t] += w * q * q;
        }
    }
}

/* Runs the trials around `den`, the magnitude of the upper end; the best is returned and the scale set. If none fits at
 * all the scale stays, and the one with the lowest rows is returned. */
static int best_trial(struct sub_block * s, float den, float * scale) {
    const struct kind * kind = s->kind;
    float best = 0.0f;
    int winner = s->trials;
    for (int t = 0; t < s->trials; t++) {
        const float k = (float)(t - kind->around);
        const float inverse = ((float)(2 * kind->levels - 1) + k * kind->step) / den;
        for (int g = 0; g < s->groups; g++) {
            choose_row(s, t, g, inverse, 1.0f / inverse);
        }
    }
    sum_trials(s, 0, s->trials);
    for (int t = 0; t < s->trials; t++) {
        if (s->qq[t] > 0.0f && s->zq[t] * s->zq[t] > best * s->qq[t]) {
            *scale = s->zq[t] / s->qq[t];
            best = *scale * s->zq[t];
            winner = t;
        }
    }
    return winner;
}

/* Choose rows again with the scale that was found. */
static void repair(struct sub_block * s, int t, float * scale) {
    bool all_on_grid = true;
    for (int g = 0; g < s->groups; g++) {
        all_on_grid = all_on_grid && s->on_grid[t][g];
    }
    const enum repair how = s->kind->repair;
    const bool all = how == ALWAYS_ALL || (how == ALL_IF_ANY && !all_on_grid);
    if (!(*scale > 0.0f) || (all_on_grid && !all)) {
        return;
    }
    const float inverse = 1.0f / *scale;
    for (int g = 0; g < s->groups; g++) {
        if (all || !s->on_grid[t][g]) {
            choose_row(s, t, g, inverse, *scale);
        }
    }
    sum_trials(s, t, t + 1);
    if (s->qq[t] > 0.0f) {
        *scale = s->zq[t] / s->qq[t];
    }
}

/* The lowest row for every group, for when no trial is any good. */
static void lowest_rows(struct sub_block * s, int t) {
    for (int g = 0; g < s->groups; g++) {
        s->rows[t][g] = 0;
        s->on_grid[t][g] = s->kind->repair != ALL_IF_ANY;
    }
    for (int i = 0; i < s->kind->sub; i++) {
        s->level[i][t] = 1.0f;
    }
}

/* Where the trials begin: the scale, and the magnitude of the upper end, <= 0 if there is nothing to encode. */
static float start(const struct sub_block * s, float * scale) {
    const struct kind * kind = s->kind;
    float most = s->z[0];
    for (int i = 1; i < kind->sub; i++) {
        most = s->z[i] > most ? s->z[i] : most;
    }
    if (!(most > 0.0f) || most < kind->nothing) {
        return 0.0f;
    }
    if (kind->fitted) {
        int8_t codes[SUB_MAX];
        *scale = sotto_i_fit_positive(s->z, s->w, kind->sub, kind->levels + 1, codes);
        return *scale * (float)kind->levels;
    }
    *scale = most / (float)(2 * kind->levels - 1);
    return most;
}

/* Rows and signs of the sub-block at x; the scale is returned. */
static float encode_sub_block(struct sub_block * s, const float * x, uint16_t * rows, uint8_t * signs) {
    const struct kind * kind = s->kind;
    uint8_t taken[SUB_MAX / 8];
    for (int i = 0; i < kind->sub; i += 8) {
        taken[i / 8] = take_signs(kind, x + i, s->w + i, s->z + i);
    }
    float scale = 0.0f;
    const float den = start(s, &scale);
    if (!(den > 0.0f)) {
        return 0.0f;
    }
    for (int i = 0; i < kind->sub; i++) {
        s->root[i] = sqrtf(s->w[i]);
    }
    lowest_rows(s, s->trials);
    const int t = best_trial(s, den, &scale);
    repair(s, t, &scale);
    const uint8_t turn = scale < 0.0f ? 0xFF : 0;
    for (int g = 0; g < s->groups; g++) {
        rows[g] = (uint16_t)s->rows[t][g];
    }
    for (int i = 0; i < kind->sub / 8; i++) {
        signs[i] = taken[i] ^ turn;
    }
    return fabsf(scale);
}

/* ---- a block */

static void weigh(const struct kind * kind, const float * x, const float * column, float sigma2, float * w) {
    if (column) {
        sotto_i_weigh(x, column, kind->sub, sigma2, w);
        return;
    }
    const float least = kind->share != 0.0f ? kind->share * sigma2 : 0.0f; /* sigma2 may be infinite */
    for (int i = 0; i < kind->sub; i++) {
        w[i] = least + x[i] * x[i];
    }
}

/* False if all of it is nothing. */
static bool encode_block(const struct kind * kind, const float * x, const float * column, struct encoded * e) {
    const float sigma2 = kind->sigma2 * (sotto_i_sum_of_squares(x, QK_K) / (float)QK_K);
    const int subs = QK_K / kind->sub;
    struct sub_block s = { .kind = kind, .lattice = sotto_i_lattice(kind->book) };
    float scales[16], most = 0.0f;
    s.trials = 2 * kind->around + 1;
    s.groups = kind->sub / kind->length;
    *e = (struct encoded){ .d = 0.0f };
    for (int j = 0; s.lattice && j < subs; j++) {
        const int at = j * kind->sub;
        weigh(kind, x + at, column ? column + at : NULL, sigma2, s.w);
        scales[j] = encode_sub_block(&s, x + at, e->rows + j * s.groups, e->signs + at / 8);
        most = scales[j] > most ? scales[j] : most;
    }
    if (!(most > 0.0f)) {
        return false;
    }
    const float d = most / 31.0f, inverse = 1.0f / d;
    for (int j = 0; j < subs; j++) {
        e->codes[j] = (uint8_t)q_even(0.5f * (inverse * scales[j] - 1.0f), 0.0f, 15.0f);
    }
    e->d = d * kind->stored;
    return true;
}

/* ---- layouts */

static const struct kind IQ2_XXS = {
    BOOK_IQ2_XXS, 32, 8, 3, true, 1e-15f, 6, 0.1f, true, ALWAYS_ALL, 1.0f, 1.0f, 0.0f
};
static const struct kind IQ2_XS = { BOOK_IQ2_XS,     16,   8,    3,   true, 1e-15f, 9, 0.1f, false,
                                    OFF_GRID_GROUPS, 1.0f, 1.0f, 0.0f };
static const struct kind IQ2_S = { BOOK_IQ2_S,      16,      8,    3,    false, 1e-8f, 9, 0.1f, false,
                                   OFF_GRID_GROUPS, 0.9875f, 2.0f, 0.25f };
static const struct kind IQ3_XXS = { BOOK_IQ3_XXS,    32,      4,    8,   true, 1e-8f, 15, 0.2f, false,
                                     OFF_GRID_GROUPS, 1.0125f, 2.0f, 0.0f };
static const struct kind IQ3_S = { BOOK_IQ3_S, 32, 4, 8, false, 0.0f, 9, 0.2f, false, ALL_IF_ANY, 1.033f, 2.0f, 0.0f };

/* Four sign fields of 7 bits and a code of 4. */
static uint32_t signs_and_code(const uint8_t * signs, uint8_t code) {
    uint32_t bits = (uint32_t)code << 28;
    for (int r = 0; r < 4; r++) {
        bits |= (uint32_t)(signs[r] & 127) << (7 * r);
    }
    return bits;
}

static void put_codes(const uint8_t * codes, int n, uint8_t * out) {
    for (int i = 0; i < n; i += 2) {
        out[i / 2] = (uint8_t)(codes[i] | codes[i + 1] << 4);
    }
}

static void iq2_xxs_pack(const struct encoded * e, uint8_t * block) {
    for (int j = 0; j < 8; j++) {
        for (int r = 0; r < 4; r++) {
            block[2 + 8 * j + r] = (uint8_t)e->rows[4 * j + r];
        }
        put_u32(block + 6 + 8 * j, signs_and_code(e->signs + 4 * j, e->codes[j]));
    }
}

static void iq2_xs_pack(const struct encoded * e, uint8_t * block) {
    for (int r = 0; r < 32; r++) {
        put_u16(block + 2 + 2 * r, (uint16_t)(e->rows[r] | (e->signs[r] & 127) << 9));
    }
    put_codes(e->codes, 16, block + 66);
}

static void iq2_s_pack(const struct encoded * e, uint8_t * block) {
    for (int r = 0; r < 32; r++) {
        block[2 + r] = (uint8_t)e->rows[r];
        block[34 + r] = e->signs[r];
        block[66 + r / 4] |= (uint8_t)(e->rows[r] >> 8 << (2 * (r % 4)));
    }
    put_codes(e->codes, 16, block + 74);
}

static void iq3_xxs_pack(const struct encoded * e, uint8_t * block) {
    for (int q = 0; q < 64; q++) {
        block[2 + q] = (uint8_t)e->rows[q];
    }
    for (int j = 0; j < 8; j++) {
        put_u32(block + 66 + 4 * j, signs_and_code(e->signs + 4 * j, e->codes[j]));
    }
}

static void iq3_s_pack(const struct encoded * e, uint8_t * block) {
    for (int q = 0; q < 64; q++) {
        block[2 + q] = (uint8_t)e->rows[q];
        block[66 + q / 8] |= (uint8_t)(e->rows[q] >> 8 << (q % 8));
    }
    memcpy(block + 74, e->signs, sizeof(e->signs));
    put_codes(e->codes, 8, block + 106);
}

/* Zero bytes for a block of nothing, and for all without tables. */
#define QUANTISE(name, NAME, bytes)                                                             \
    void sotto_i_quantise_##name(const float * x, void * y, int64_t n, const float * w) {       \
        uint8_t * block = y;                                                                    \
        for (int64_t i = 0; i < n; i += QK_K, block += (bytes)) {                               \
            struct encoded e;                                                                   \
            memset(block, 0, (bytes));                                                          \
            if (encode_block(&(NAME), x + i, w ? w + i : NULL, &e)) {                           \
                put_half(block, e.d);                                                           \
                name##_pack(&e, block);                                                         \
            }                                                                                   \
        }                                                                                       \
    }                                                                                           \
    enum sotto_status sotto_i_##name##_init(void) { return sotto_i_lattice_make((NAME).book); } \
    void sotto_i_##name##_free(void) { sotto_i_lattice_free((NAME).book); }
QUANTISE(iq2_xxs, IQ2_XXS, 66)
QUANTISE(iq2_xs, IQ2_XS, 74)
QUANTISE(iq2_s, IQ2_S, 82)
QUANTISE(iq3_xxs, IQ3_XXS, 98)
QUANTISE(iq3_s, IQ3_S, 110)

void sotto_i_iq2_s_from_float(const float * x, void * y, int64_t n) { sotto_i_quantise_iq2_s(x, y, n, NULL); }
void sotto_i_iq3_xxs_from_float(const float * x, void * y, int64_t n) { sotto_i_quantise_iq3_xxs(x, y, n, NULL); }
void sotto_i_iq3_s_from_float(const float * x, void * y, int64_t n) { sotto_i_quantise_iq3_s(x, y, n, NULL); }
