/* SPDX-License-Identifier: MIT */
/* Matrix product kernels over cpu/simd.h, compiled once per level (x86/gemm_<level>.c).
 *
 * The including file defines
 *     TILES(T, X)        X(T, panels, cols) for each shape of tile the level has
 *     MAX_COLS           columns of a full strip
 * A tile keeps all its sums in registers: 16 / VL vectors per panel and column. Shapes are chosen so that there are
 * enough independent chains to hide the latency of the multiply-add (8 or more), and few enough to stay in registers. */

enum { PANEL = SOTTO_CPU_PANEL, PER_PANEL = PANEL / VL };
enum a_type { A_F32, A_F16, A_BF16 };
enum { PREFETCH = 1024 }; /* elements ahead of a stream of weights: memory's latency at full speed */

/* Vector v of the row of panels at `a`, element size by type. Constant `type`, so one load remains. */
SIMD_INLINE V load_a(enum a_type type, const char * a) {
    if (type == A_F32) {
        return v_load((const float *)(const void *)a);
    }
    return type == A_F16 ? v_load_f16((const uint16_t *)(const void *)a)
                         : v_load_bf16((const uint16_t *)(const void *)a);
}

/* Vector v of a row of panels: where it lies. */
#define VECTOR_OF(a, v) ((a) + (size_t)((v) / PER_PANEL) * step + (size_t)((v) % PER_PANEL) * VL * es)

/* The tile; type, panels and cols are constants wherever it is inlined. */
SIMD_INLINE void tile(enum a_type type, int panels, int cols, const struct sotto_i_gemm_tile * t) {
    enum { MAX_ACC = 32 };
    const int n_vec = panels * PER_PANEL;
    const size_t es = type == A_F32 ? 4 : 2;
    const size_t step = t->a_step * es;
    const char * a = t->a;
    const float * b = t->b;
    V acc[MAX_ACC];

    UNROLL for (int i = 0; i < n_vec * cols; i++) { acc[i] = v_zero(); }
    for (int j = 0; j < cols; j++) {
        for (int p = 0; p < panels; p++) {
            v_prefetch(t->c + j * t->ldc + p * PANEL);
        }
    }
    for (int64_t l = 0; l < t->k; l++, a += PANEL * es, b += t->ldb) {
        /* keep the shorter side in registers, and walk along the other */
        V kept[MAX_ACC];
        if (n_vec <= cols) {
            UNROLL for (int v = 0; v < n_vec; v++) { kept[v] = load_a(type, VECTOR_OF(a, v)); }
            UNROLL for (int j = 0; j < cols; j++) {
                const V bj = v_set1(b[j]);
                UNROLL for (int v = 0; v < n_vec; v++) { acc[j * n_vec + v] = v_fma(kept[v], bj, acc[j * n_vec + v]); }
            }
        } else {
            UNROLL for (int j = 0; j < cols; j++) { kept[j] = v_set1(b[j]); }
            UNROLL for (int v = 0; v < n_vec; v++) {
                const V av = load_a(type, VECTOR_OF(a, v));
                UNROLL for (int j = 0; j < cols; j++) { acc[j * n_vec + v] = v_fma(av, kept[j], acc[j * n_vec + v]); }
            }
        }
    }
    UNROLL for (int j = 0; j < cols; j++) {
        UNROLL for (int v = 0; v < n_vec; v++) {
            float * c = t->c + j * t->ldc + v * VL;
            V sum = acc[j * n_vec + v];
            if (t->add) {
                sum = v_add(v_load(c), sum);
            }
            v_store(c, sum);
        }
    }
}

typedef void (*tile_fn)(const struct sotto_i_gemm_tile * t);

#define DEFINE_TILE(T, P, N) \
    static void tile_##T##_##P##x##N(const struct sotto_i_gemm_tile * t) { tile(A_##T, P, N, t); }
#define TILE_ENTRY(T, P, N) [P][N] = tile_##T##_##P##x##N,
#define TILE_TABLE(T)       static const tile_fn tiles_##T[SOTTO_I_GEMM_MAX_PANELS + 1][SOTTO_I_GEMM_MAX_COLS + 1]

TILES(F32, DEFINE_TILE)
TILE_TABLE(F32) = { TILES(F32, TILE_ENTRY) };
TILES(F16, DEFINE_TILE)
TILE_TABLE(F16) = { TILES(F16, TILE_ENTRY) };
TILES(BF16, DEFINE_TILE)
TILE_TABLE(BF16) = { TILES(BF16, TILE_ENTRY) };

static void tile_f32(const struct sotto_i_gemm_tile * t) { tiles_F32[t->panels][t->cols](t); }

static void tile_f16(const struct sotto_i_gemm_tile * t) { tiles_F16[t->panels][t->cols](t); }

static void tile_bf16(const struct sotto_i_gemm_tile * t) { tiles_BF16[t->panels][t->cols](t); }

SIMD_INLINE void unpack_16bit(enum a_type type, const uint16_t * x, float * y, int64_t n) {
    int64_t i = 0;
    for (; i + VL <= n; i += VL) {
        v_prefetch(x + i + PREFETCH);
        v_store(y + i, load_a(type, (const char *)(x + i)));
    }
    if (i < n) {
        uint16_t rest[VL] = { 0 };
        memcpy(rest, x + i, (size_t)(n - i) * sizeof(*rest));
        v_store_n(y + i, load_a(type, (const char *)rest), n - i);
    }
}

static void unpack_f16(const void * x, float * y, int64_t n) { unpack_16bit(A_F16, x, y, n); }

static void unpack_bf16(const void * x, float * y, int64_t n) { unpack_16bit(A_BF16, x, y, n); }

/* Up to four rows, whose values go to dst[l * ld + 0..3]; a missing row is zeros. */
SIMD_INLINE void pack_4(const float * const * rows, int n, int64_t k, float * dst, int64_t ld) {
    int64_t l = 0;
    for (; l + 4 <= k; l += 4) {
        Q q[4];
        for (int r = 0; r < 4; r++) {
            q[r] = r < n ? q_load(rows[r] + l) : q_zero();
        }
        q_transpose(q);
        for (int i = 0; i < 4; i++) {
            q_store(dst + (l + i) * ld, q[i]);
        }
    }
    for (; l < k; l++) {
        for (int r = 0; r < 4; r++) {
            dst[l * ld + r] = r < n ? rows[r][l] : 0.0f;
        }
    }
}

static void pack(const float * const * rows, int n, int64_t k, float * dst, int64_t ld) {
    for (int r = 0; r < n; r += 4) {
        if (n - r >= 4) {
            pack_4(rows + r, 4, k, dst + r, ld);
        } else {
            pack_4(rows + r, n - r, k, dst + r, ld);
        }
    }
}

SIMD_INLINE void raise(struct sotto_i_gemm_kernels * kernels) {
    kernels->max_cols = MAX_COLS;
    for (int n = 1; n <= MAX_COLS; n++) {
        for (int p = 1; p <= SOTTO_I_GEMM_MAX_PANELS; p *= 2) {
            if (tiles_F32[p][n]) {
                kernels->panels[n] = p;
            }
        }
    }
    kernels->tile = tile_f32;
    kernels->tile_direct[SOTTO_TYPE_F16] = tile_f16;
    kernels->tile_direct[SOTTO_TYPE_BF16] = tile_bf16;
    kernels->unpack[SOTTO_TYPE_F16] = unpack_f16;
    kernels->unpack[SOTTO_TYPE_BF16] = unpack_bf16;
    kernels->pack = pack;
}
