/* SPDX-License-Identifier: MIT */
/* Products in 8 bits over cpu/simd.h, compiled once per level (x86/igemm_<level>.c).
 *
 * The including file defines
 *     TILES(X)     X(panels, cols) for each shape of tile the level has
 *     MAX_COLS     columns of a full strip
 * A word of four codes of each row meets the same word of a column, broadcast. With VNNI that is one instruction; without,
 * products are added in pairs in 16 bits, where codes above 127 would not fit: those types' codes are read as signed
 * numbers, code - 128, and the activation takes the sign. The sums are whole numbers, so all levels agree. */

enum { PANEL = SOTTO_CPU_PANEL, PER_PANEL = PANEL / VL, ROW = PANEL * 4, BLOCK = SOTTO_I_ROUND_BLOCK };

#if defined(__AVX512F__)
SIMD_INLINE VI vi_madd(VI pairs) { return _mm512_madd_epi16(pairs, _mm512_set1_epi16(1)); }
SIMD_INLINE VI vi_add16(VI a, VI b) { return _mm512_add_epi16(a, b); }
SIMD_INLINE VI vi_pairs(VI code, VI q) { return _mm512_maddubs_epi16(code, q); }
SIMD_INLINE VI vi_abs8(VI a) { return _mm512_abs_epi8(a); }
SIMD_INLINE VI vi_sign8(VI a, VI sign) {
    return _mm512_mask_sub_epi8(a, _mm512_movepi8_mask(sign), _mm512_setzero_si512(), a);
}
#else
SIMD_INLINE VI vi_madd(VI pairs) { return _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)); }
SIMD_INLINE VI vi_add16(VI a, VI b) { return _mm256_add_epi16(a, b); }
SIMD_INLINE VI vi_pairs(VI code, VI q) { return _mm256_maddubs_epi16(code, q); }
SIMD_INLINE VI vi_abs8(VI a) { return _mm256_abs_epi8(a); }
SIMD_INLINE VI vi_sign8(VI a, VI sign) { return _mm256_sign_epi8(a, sign); }
#endif

/* How codes meet activations. NARROW: up to 63, and two words' pairs fit in 16 bits. */
enum way { NARROW, WIDE };

/* sum += code * q over two words, eight codes of each lane. */
SIMD_INLINE VI dot(enum way way, VI sum, const VI w[2], const VI q[2]) {
#if defined(__AVX512VNNI__)
    (void)way;
    return _mm512_dpbusd_epi32(_mm512_dpbusd_epi32(sum, w[0], q[0]), w[1], q[1]);
#else
    if (way == NARROW) {
        return vi_add(sum, vi_madd(vi_add16(vi_pairs(w[0], q[0]), vi_pairs(w[1], q[1]))));
    }
    sum = vi_add(sum, vi_madd(vi_pairs(vi_abs8(w[0]), vi_sign8(q[0], w[0]))));
    return vi_add(sum, vi_madd(vi_pairs(vi_abs8(w[1]), vi_sign8(q[1], w[1]))));
#endif
}

#if defined(__AVX512VNNI__)
enum { SIGNED = 0 };
#else
enum { SIGNED = 1 };
#endif

/* The tile; way, sub, panels and cols are constants wherever it is inlined. */
SIMD_INLINE void tile(enum way way, int sub, int panels, int cols, const struct sotto_i_igemm_tile * t) {
    enum { MAX_ACC = 24 };
    const int n_vec = panels * PER_PANEL;
    const bool as_signed = SIGNED && way == WIDE;
    V acc[MAX_ACC];
    UNROLL for (int i = 0; i < n_vec * cols; i++) { acc[i] = v_zero(); }
    for (int64_t s = 0; s < t->k / sub; s++) {
        VI sum[MAX_ACC];
        UNROLL for (int j = 0; j < cols; j++) {
            const VI start = as_signed ? vi_set1(0) : vi_set1(t->start[s * t->ld + j]);
            UNROLL for (int v = 0; v < n_vec; v++) { sum[j * n_vec + v] = start; }
        }
        const uint8_t * code = t->w.code + s * sub * PANEL;
        const int8_t * q = t->q + s * sub * t->ld;
        for (int i = 0; i < sub / 8; i++, code += 2 * ROW, q += 8 * t->ld) {
            VI w[MAX_ACC][2];
            UNROLL for (int v = 0; v < n_vec; v++) {
                const uint8_t * at = code + (size_t)(v / PER_PANEL) * t->code_step + v % PER_PANEL * VL * 4;
                w[v][0] = vi_load(at);
                w[v][1] = vi_load(at + ROW);
                if (as_signed) {
                    w[v][0] = vi_xor(w[v][0], vi_set1((int32_t)0x80808080));
                    w[v][1] = vi_xor(w[v][1], vi_set1((int32_t)0x80808080));
                }
            }
            UNROLL for (int j = 0; j < cols; j++) {
                int32_t words[2];
                memcpy(&words[0], q + j * 4, 4);
                memcpy(&words[1], q + (t->ld + j) * 4, 4);
                const VI x[2] = { vi_set1(words[0]), vi_set1(words[1]) };
                UNROLL for (int v = 0; v < n_vec; v++) { sum[j * n_vec + v] = dot(way, sum[j * n_vec + v], w[v], x); }
            }
        }
        UNROLL for (int v = 0; v < n_vec; v++) {
            const size_t at = (size_t)(v / PER_PANEL) * t->scale_step + (size_t)(s * PANEL + v % PER_PANEL * VL);
            const V scale = v_load(t->w.scale + at);
            UNROLL for (int j = 0; j < cols; j++) {
                const V d = v_set1(t->d[s * sub / BLOCK * t->ld + j]);
                acc[j * n_vec + v] = v_fma(vi_to_float(sum[j * n_vec + v]), v_mul(scale, d), acc[j * n_vec + v]);
            }
            if (t->form->mins) {
                const V min = v_load(t->w.min + at);
                UNROLL for (int j = 0; j < cols; j++) {
                    acc[j * n_vec + v] = v_fnma(min, v_set1(t->sum[s * t->ld + j]), acc[j * n_vec + v]);
                }
            }
        }
    }
    UNROLL for (int j = 0; j < cols; j++) {
        UNROLL for (int v = 0; v < n_vec; v++) {
            float * c = t->c + j * t->ldc + v * VL;
            v_store(c, t->add ? v_add(v_load(c), acc[j * n_vec + v]) : acc[j * n_vec + v]);
        }
    }
}

typedef void (*tile_fn)(const struct sotto_i_igemm_tile * t);

#if defined(__AVX512VNNI__)
#define WAYS(X, P, N) X(WIDE, 16, P, N) X(WIDE, 32, P, N)
#define WAY_OF(form)  WIDE
#else
#define WAYS(X, P, N) X(NARROW, 16, P, N) X(NARROW, 32, P, N) X(WIDE, 32, P, N)
#define WAY_OF(form)  ((form)->top <= 63 ? NARROW : WIDE)
#endif

#define DEFINE_TILE(W, S, P, N) \
    static void tile_##W##_##S##_##P##x##N(const struct sotto_i_igemm_tile * t) { tile(W, S, P, N, t); }
#define TILE_ENTRY(W, S, P, N) [W][S / 32][P][N] = tile_##W##_##S##_##P##x##N,
#define DEFINE_SHAPE(P, N)     WAYS(DEFINE_TILE, P, N)
#define ENTER_SHAPE(P, N)      WAYS(TILE_ENTRY, P, N)

TILES(DEFINE_SHAPE)
static const tile_fn tiles[2][2][SOTTO_I_GEMM_MAX_PANELS + 1][SOTTO_I_GEMM_MAX_COLS + 1] = { TILES(ENTER_SHAPE) };

static void run_tile(const struct sotto_i_igemm_tile * t) {
    tiles[WAY_OF(t->form)][t->form->sub / 32][t->panels][t->cols](t);
}

static void round_rows(const float * x, int64_t n, int8_t * q, float * d, int32_t * sums) {
    for (int64_t b = 0; b < n / BLOCK; b++, x += BLOCK, q += BLOCK) {
        VI most = vi_set1(0);
        for (int i = 0; i < BLOCK; i += VL) {
            most = vi_max(most, vi_and(v_to_bits(v_load(x + i)), vi_set1(0x7FFFFFFF)));
        }
        const struct sotto_i_round_scale s = sotto_i_round_scale((uint32_t)vi_greatest(most));
        d[b] = s.d;
        const V inverse = v_set1(s.inverse);
        for (int i = 0; i < BLOCK; i += VL) {
            vi_store_i8(q + i, s.inverse == 0.0f ? vi_set1(0) : v_to_int(v_mul(v_load(x + i), inverse)));
        }
        for (int half = 0; half < 2; half++) {
            int32_t sum = 0;
            for (int i = 0; i < 16; i++) {
                sum += q[16 * half + i];
            }
            sums[2 * b + half] = sum;
        }
    }
}

SIMD_INLINE void raise(struct sotto_i_igemm_kernels * kernels) {
    kernels->max_cols = MAX_COLS;
    for (int n = 1; n <= MAX_COLS; n++) {
        for (int p = 1; p <= SOTTO_I_GEMM_MAX_PANELS; p *= 2) {
            if (tiles[WIDE][1][p][n]) {
                kernels->panels[n] = p;
            }
        }
    }
    kernels->tile = run_tile;
    kernels->round = round_rows;
}
