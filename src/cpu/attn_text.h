/* SPDX-License-Identifier: MIT */
/* Attention kernels over cpu/simd.h, compiled once per level (x86/attn_<level>.c).
 *
 * dots and values are the same loop, rows of sums kept in registers: some queries times some vectors of positions
 * (or of the head's width), one vector load and one broadcast per step. Shapes are chosen so that there are at least
 * as many independent chains as the multiply-add needs to be busy, and few enough to stay in registers. The including
 * file defines
 *     ROWS               queries of a full tile of sums: 6, which divides SOTTO_I_ATTN_TILE
 *     VECS(rows)         vectors of a tile of sums that has so many queries: 1, 2, 4 or 8
 *     m_bits             the low VL bits as a mask of lanes
 *     reduce16           the tree of sixteen partial sums, reduce_max the largest lane */

enum { KEYS = SOTTO_I_ATTN_KEYS, KEY_VECS = KEYS / VL, TILE = SOTTO_I_ATTN_TILE, K_BLOCK = 256, MASKED_F16 = 0xFC00 };

/* ---- products ---- */

/* Sums of rows queries times vecs vectors of positions over k elements, stored, or added to what x holds. */
SIMD_INLINE void dots_block(int rows, int vecs, float * x, const float * q, int64_t ldq, const float * packed,
                            int64_t k, int add) {
    V acc[ROWS * KEY_VECS];
    UNROLL for (int i = 0; i < rows * vecs; i++) { acc[i] = v_zero(); }
    for (int64_t l = 0; l < k; l++, packed += KEYS) {
        V key[KEY_VECS];
        UNROLL for (int v = 0; v < vecs; v++) { key[v] = v_load(packed + v * VL); }
        UNROLL for (int i = 0; i < rows; i++) {
            const V qi = v_set1(q[i * ldq + l]);
            UNROLL for (int v = 0; v < vecs; v++) { acc[i * vecs + v] = v_fma(qi, key[v], acc[i * vecs + v]); }
        }
    }
    UNROLL for (int i = 0; i < rows; i++) {
        UNROLL for (int v = 0; v < vecs; v++) {
            float * p = x + i * KEYS + v * VL;
            v_store(p, add ? v_add(v_load(p), acc[i * vecs + v]) : acc[i * vecs + v]);
        }
    }
}

SIMD_INLINE void dots_rows(int rows, float * x, const float * q, int64_t ldq, const float * packed, int64_t d) {
    const int vecs = VECS(rows);
    for (int j = 0; j < KEYS; j += vecs * VL) {
        int64_t l = 0;
        do {
            const int64_t k = d - l < K_BLOCK ? d - l : K_BLOCK;
            dots_block(rows, vecs, x + j, q + l, ldq, packed + l * KEYS + j, k, l > 0);
            l += K_BLOCK;
        } while (l < d);
    }
}

static void dots(float * x, const float * q, int64_t ldq, int n, const float * packed, int64_t d) {
    for (; n >= ROWS; n -= ROWS, x += ROWS * KEYS, q += ROWS * ldq) {
        dots_rows(ROWS, x, q, ldq, packed, d);
    }
    switch (n) {
    case 5: dots_rows(5, x, q, ldq, packed, d); break;
    case 4: dots_rows(4, x, q, ldq, packed, d); break;
    case 3: dots_rows(3, x, q, ldq, packed, d); break;
    case 2: dots_rows(2, x, q, ldq, packed, d); break;
    case 1: dots_rows(1, x, q, ldq, packed, d); break;
    default: break;
    }
}

/* ---- scores to weights ---- */

static uint64_t unmasked(const uint16_t * mask, int n) {
    const __m256i closed = _mm256_set1_epi16((int16_t)MASKED_F16);
    uint16_t copy[KEYS] = { 0 };
    uint64_t bits = 0;
    memcpy(copy, mask, (size_t)n * sizeof(copy[0]));
    for (int j = 0; j < KEYS; j += 32) {
        const __m256i * m = (const __m256i *)(const void *)(copy + j);
        const __m256i a = _mm256_cmpeq_epi16(_mm256_loadu_si256(m), closed);
        const __m256i b = _mm256_cmpeq_epi16(_mm256_loadu_si256(m + 1), closed);
        const __m256i both = _mm256_permute4x64_epi64(_mm256_packs_epi16(a, b), 0xD8);
        bits |= (uint64_t)(uint32_t)_mm256_movemask_epi8(both) << j;
    }
    return ~bits & sotto_i_first_bits(n);
}

/* Scores of one query, -inf where closed, over its products. Returns the largest, at least `max`; NaN is passed
 * over. */
SIMD_INLINE float scores(const struct sotto_i_attn_weigh * t, int i) {
    float * x = t->x + i * KEYS;
    const uint64_t open = t->open[i];
    const V cap = v_set1(t->softcap), inner = v_set1(t->softcap != 0.0f ? t->scale / t->softcap : t->scale);
    V max = v_set1(t->max[i]), s[KEY_VECS];
    UNROLL for (int v = 0; v < KEY_VECS; v++) { s[v] = v_mul(inner, v_load(x + v * VL)); }
    if (t->softcap != 0.0f) {
        for (int v = 0; v < KEY_VECS; v++) {
            s[v] = v_mul(cap, v_tanh(s[v]));
        }
    }
    if (t->mask != NULL) {
        uint16_t mask[KEYS] = { 0 };
        memcpy(mask, t->mask[i], (size_t)t->n_keys * sizeof(mask[0]));
        UNROLL for (int v = 0; v < KEY_VECS; v++) {
            s[v] = v_fma(v_set1(t->slope[i]), v_load_f16(mask + v * VL), s[v]);
        }
    }
    UNROLL for (int v = 0; v < KEY_VECS; v++) {
        s[v] = v_select(m_bits(open >> (v * VL)), s[v], v_set1(-INFINITY));
        max = v_max(s[v], max);
        v_store(x + v * VL, s[v]);
    }
    return reduce_max(max);
}

/* Is there a NaN among the scores (closed ones are -inf by now)? */
static int any_nan(const float * x) {
    int any = 0;
    for (int v = 0; v < KEY_VECS; v++) {
        any |= m_any(v_isnan(v_load(x + v * VL)));
    }
    return any;
}

/* Weights over scores; returns their sum. */
SIMD_INLINE float weights(float * x, uint64_t open, float max) {
    const V m = v_set1(max);
    V p[16 / VL], w[KEY_VECS];
    UNROLL for (int v = 0; v < KEY_VECS; v++) {
        w[v] = v_exp(v_sub(v_load(x + v * VL), m));
        w[v] = v_select(m_bits(open >> (v * VL)), w[v], v_zero());
        v_store(x + v * VL, w[v]);
    }
    UNROLL for (int v = 0; v < 16 / VL; v++) { p[v] = w[v]; }
    UNROLL for (int v = 16 / VL; v < KEY_VECS; v++) { p[v % (16 / VL)] = v_add(p[v % (16 / VL)], w[v]); }
    return reduce16(p);
}

static void weigh(const struct sotto_i_attn_weigh * t) {
    float before[16] = { 0.0f }, max[16] = { 0.0f }, factor[16], sum[16] = { 0.0f };
    for (int i = 0; i < t->n; i++) {
        before[i] = t->max[i];
        max[i] = scores(t, i);
        if (max[i] == -INFINITY) {
            if (any_nan(t->x + i * KEYS)) {
                max[i] = NAN;
            } else {
                t->open[i] = 0;
            }
        }
    }
    for (int i = 0; i < t->n; i += VL) {
        const V b = v_load(before + i), f = v_exp(v_sub(b, v_load(max + i)));
        v_store(factor + i, v_select(v_eq(b, v_set1(-INFINITY)), v_zero(), f));
    }
    for (int i = 0; i < t->n; i++) {
        if (t->open[i] != 0) {
            sum[i] = weights(t->x + i * KEYS, t->open[i], max[i]);
        } else {
            factor[i] = 1.0f; /* and sum 0 + s */
        }
    }
    for (int i = 0; i < t->n; i += VL) {
        const int n = t->n - i < VL ? t->n - i : VL;
        v_store_n(t->sum + i, v_fma(v_load_n(t->sum + i, n), v_load(factor + i), v_load(sum + i)), n);
    }
    memcpy(t->max, max, (size_t)t->n * sizeof(max[0]));
    memcpy(t->factor, factor, (size_t)t->n * sizeof(factor[0]));
}

/* ---- weights times values ---- */

/* rows queries that all see positions 0 .. n_keys-1 (open == NULL), or one query that sees those of `open`; `part`
 * elements of one vector, or vecs whole ones when part is VL. */
SIMD_INLINE void values_block(int rows, int vecs, int part, float * o, int64_t ldo, const float * w,
                              const float * factor, int n_keys, const float * const * v, int64_t l) {
    V acc[ROWS * KEY_VECS];
    UNROLL for (int i = 0; i < rows; i++) {
        UNROLL for (int c = 0; c < vecs; c++) {
            const float * p = o + i * ldo + l + c * VL;
            acc[i * vecs + c] = v_mul(part == VL ? v_load(p) : v_load_n(p, part), v_set1(factor[i]));
        }
    }
    for (int j = 0; j < n_keys; j++) {
        V val[KEY_VECS];
        UNROLL for (int c = 0; c < vecs; c++) {
            val[c] = part == VL ? v_load(v[j] + l + c * VL) : v_load_n(v[j] + l, part);
        }
        UNROLL for (int i = 0; i < rows; i++) {
            const V wi = v_set1(w[i * KEYS + j]);
            UNROLL for (int c = 0; c < vecs; c++) { acc[i * vecs + c] = v_fma(wi, val[c], acc[i * vecs + c]); }
        }
    }
    UNROLL for (int i = 0; i < rows; i++) {
        UNROLL for (int c = 0; c < vecs; c++) {
            float * p = o + i * ldo + l + c * VL;
            if (part == VL) {
                v_store(p, acc[i * vecs + c]);
            } else {
                v_store_n(p, acc[i * vecs + c], part);
            }
        }
    }
}

SIMD_INLINE void values_rows(int rows, float * o, int64_t ldo, const float * w, const float * factor, int n_keys,
                             const float * const * v, int64_t d) {
    const int vecs = VECS(rows);
    int64_t l = 0;
    for (; l + vecs * VL <= d; l += vecs * VL) {
        values_block(rows, vecs, VL, o, ldo, w, factor, n_keys, v, l);
    }
    for (; l + VL <= d; l += VL) {
        values_block(rows, 1, VL, o, ldo, w, factor, n_keys, v, l);
    }
    if (l < d) {
        values_block(rows, 1, (int)(d - l), o, ldo, w, factor, n_keys, v, l);
    }
}

/* The full tile and its remainders, for queries that see the same first n_keys positions. */
static void values_dense(float * o, int64_t ldo, int n, const float * w, const float * factor, int n_keys,
                         const float * const * v, int64_t d) {
    for (; n >= ROWS; n -= ROWS, o += ROWS * ldo, w += ROWS * KEYS, factor += ROWS) {
        values_rows(ROWS, o, ldo, w, factor, n_keys, v, d);
    }
    switch (n) {
    case 5: values_rows(5, o, ldo, w, factor, n_keys, v, d); break;
    case 4: values_rows(4, o, ldo, w, factor, n_keys, v, d); break;
    case 3: values_rows(3, o, ldo, w, factor, n_keys, v, d); break;
    case 2: values_rows(2, o, ldo, w, factor, n_keys, v, d); break;
    case 1: values_rows(1, o, ldo, w, factor, n_keys, v, d); break;
    default: break;
    }
}

/* One query with gaps: the open positions and their weights are moved together first. */
static void values_sparse(float * o, const float * w, float factor, uint64_t open, const float * const * v, int64_t d) {
    const float * rows[KEYS];
    float weight[KEYS];
    int n = 0;
    for (int j = 0; j < KEYS; j++) {
        if ((open >> j & 1) != 0) {
            rows[n] = v[j];
            weight[n++] = w[j];
        }
    }
    values_dense(o, 0, 1, weight, &factor, n, rows, d);
}

/* How many of the first n queries see the same run of positions from 0 on; 0 if the first one's has gaps. */
static int alike(const uint64_t * open, int n) {
    int same = 0;
    if (open[0] != 0 && (open[0] & (open[0] + 1)) == 0) {
        while (same < n && open[same] == open[0]) {
            same++;
        }
    }
    return same;
}

static int count_bits(uint64_t first_bits) { return (int)_mm_popcnt_u64(first_bits); }

static void values(float * o, int64_t ldo, int n, const float * w, const float * factor, const uint64_t * open,
                   const float * const * v, int64_t d) {
    for (int i = 0; i < n;) {
        const int same = alike(open + i, n - i);
        if (same > 0) {
            values_dense(o + i * ldo, ldo, same, w + i * KEYS, factor + i, count_bits(open[i]), v, d);
        } else if (open[i] != 0) {
            values_sparse(o + i * ldo, w + i * KEYS, factor[i], open[i], v, d);
        }
        i += same > 0 ? same : 1;
    }
}

static void raise(struct sotto_i_attn_kernels * kernels) {
    kernels->dots = dots;
    kernels->unmasked = unmasked;
    kernels->weigh = weigh;
    kernels->values = values;
}
