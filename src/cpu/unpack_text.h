/* SPDX-License-Identifier: MIT */
/* Rows of quantised types to f32 over cpu/simd.h, compiled once per level (x86/unpack_<level>.c). Vectors run along the
 * row; each element is decoded by the very operations of the type's scalar decoder, which is the definition. */

/* Vectors of n consecutive elements. */
#define EACH_VECTOR(v, n) for (int v = 0; v < (n); v += VL)

SIMD_INLINE V number(int x) { return v_set1((float)x); }

/* (byte >> shift) & mask of VL bytes. */
SIMD_INLINE VI part(const uint8_t * p, int shift, int mask) {
    return vi_and(vi_shr_by(vi_load_u8(p), shift), vi_set1(mask));
}

/* The bit `bit` of VL bytes, moved to bit `to`. */
SIMD_INLINE VI bit_of(const uint8_t * p, int bit, int to) { return vi_shl_by(part(p, bit, 1), to); }

/* Fields of `bits` bits of the word at p, one a lane, from field `first` on. */
SIMD_INLINE VI fields(const uint8_t * p, int first, int bits) {
    static const int32_t lanes[16] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 };
    uint32_t word;
    memcpy(&word, p, sizeof(word));
    const VI shifts = bits == 1 ? vi_load(lanes) : vi_shl(vi_load(lanes), 1);
    return vi_and(vi_shr_each(vi_set1((int32_t)(word >> (first * bits))), shifts), vi_set1((1 << bits) - 1));
}

/* Bits first .. first + VL - 1 of h, one a lane, each as bit 4. */
SIMD_INLINE VI fifth(const uint8_t * h, int first) { return vi_shl(fields(h, first, 1), 4); }

/* Values of a table of bytes, which are too large by `offset`. */
SIMD_INLINE VI value(VI table, VI index, int offset) {
    return vi_sub(vi_and(vi_lookup(table, index), vi_set1(255)), vi_set1(offset));
}

SIMD_INLINE void put(float * y, VI q, V d) { v_store(y, v_mul(vi_to_float(q), d)); }
SIMD_INLINE void put_less(float * y, VI q, int offset, V d) { put(y, vi_sub(q, vi_set1(offset)), d); }
SIMD_INLINE void put_plus(float * y, VI q, V d, V m) { v_store(y, v_add(v_mul(vi_to_float(q), d), m)); }
SIMD_INLINE void put_minus(float * y, VI q, V d, V m) { v_store(y, v_sub(v_mul(vi_to_float(q), d), m)); }

/* ---- types of few bits ---- */

static void unpack_q1_0(const void * x, float * y, int64_t n) {
    for (const uint8_t * p = x; n > 0; n -= 128, p += 18) {
        const V d = v_set1_f16(p);
        for (int i = 0; i < 16; i += 4, y += 32) {
            EACH_VECTOR(v, 32) { put_less(y + v, vi_shl(fields(p + 2 + i, v, 1), 1), 1, d); /* 1 or -1 */ }
        }
    }
}

static void unpack_q2_0(const void * x, float * y, int64_t n) {
    for (const uint8_t * p = x; n > 0; n -= 64, p += 18) {
        const V d = v_set1_f16(p);
        for (int i = 0; i < 16; i += 4, y += 16) {
            EACH_VECTOR(v, 16) { put_less(y + v, fields(p + 2 + i, v, 2), 1, d); }
        }
    }
}

static void unpack_tq2_0(const void * x, float * y, int64_t n) {
    for (const uint8_t * p = x; n > 0; n -= 256, p += 66) {
        const V d = v_set1_f16(p + 64);
        for (int j = 0; j < 8; j++, y += 32) {
            EACH_VECTOR(v, 32) { put_less(y + v, part(p + j / 4 * 32 + v, j % 4 * 2, 3), 1, d); }
        }
    }
}

/* ---- types of 32 elements: low nibbles are the first half, high ones the second ---- */

static void unpack_q4_0(const void * x, float * y, int64_t n) {
    for (const uint8_t * p = x; n > 0; n -= 32, p += 18, y += 32) {
        const V d = v_set1_f16(p);
        EACH_VECTOR(v, 16) {
            put_less(y + v, part(p + 2 + v, 0, 15), 8, d);
            put_less(y + 16 + v, part(p + 2 + v, 4, 15), 8, d);
        }
    }
}

static void unpack_q4_1(const void * x, float * y, int64_t n) {
    for (const uint8_t * p = x; n > 0; n -= 32, p += 20, y += 32) {
        const V d = v_set1_f16(p), m = v_set1_f16(p + 2);
        EACH_VECTOR(v, 16) {
            put_plus(y + v, part(p + 4 + v, 0, 15), d, m);
            put_plus(y + 16 + v, part(p + 4 + v, 4, 15), d, m);
        }
    }
}

static void unpack_q5_0(const void * x, float * y, int64_t n) {
    for (const uint8_t * p = x; n > 0; n -= 32, p += 22, y += 32) {
        const V d = v_set1_f16(p);
        EACH_VECTOR(v, 16) {
            put_less(y + v, vi_or(part(p + 6 + v, 0, 15), fifth(p + 2, v)), 16, d);
            put_less(y + 16 + v, vi_or(part(p + 6 + v, 4, 15), fifth(p + 2, 16 + v)), 16, d);
        }
    }
}

static void unpack_q5_1(const void * x, float * y, int64_t n) {
    for (const uint8_t * p = x; n > 0; n -= 32, p += 24, y += 32) {
        const V d = v_set1_f16(p), m = v_set1_f16(p + 2);
        EACH_VECTOR(v, 16) {
            put_plus(y + v, vi_or(part(p + 8 + v, 0, 15), fifth(p + 4, v)), d, m);
            put_plus(y + 16 + v, vi_or(part(p + 8 + v, 4, 15), fifth(p + 4, 16 + v)), d, m);
        }
    }
}

static void unpack_q8_0(const void * x, float * y, int64_t n) {
    for (const uint8_t * p = x; n > 0; n -= 32, p += 34, y += 32) {
        const V d = v_set1_f16(p);
        EACH_VECTOR(v, 32) { put(y + v, vi_load_i8(p + 2 + v), d); }
    }
}

/* 16 bytes of nibbles, indices into a table. */
SIMD_INLINE void unpack_table(const uint8_t * nibbles, float * y, VI table, int offset, V d) {
    EACH_VECTOR(v, 16) {
        put(y + v, value(table, part(nibbles + v, 0, 15), offset), d);
        put(y + 16 + v, value(table, part(nibbles + v, 4, 15), offset), d);
    }
}

static void unpack_iq4_nl(const void * x, float * y, int64_t n) {
    const VI table = vi_table(sotto_i_codes_iq4);
    for (const uint8_t * p = x; n > 0; n -= 32, p += 18, y += 32) {
        unpack_table(p + 2, y, table, 128, v_set1_f16(p));
    }
}

static void unpack_mxfp4(const void * x, float * y, int64_t n) {
    const VI table = vi_table(sotto_i_codes_fp4);
    for (const uint8_t * p = x; n > 0; n -= 32, p += 17, y += 32) {
        unpack_table(p + 1, y, table, 12, v_set1(sotto_i_codes_exponent(p[0])));
    }
}

/* ---- types of 256 elements: e = 128 n + 32 k + l ---- */

static void unpack_q2_k(const void * x, float * y, int64_t n) {
    for (const uint8_t * p = x; n > 0; n -= 256, p += 84) {
        const V d = v_set1_f16(p + 80), dmin = v_set1_f16(p + 82);
        for (int g = 0; g < 16; g++, y += 16) {
            const V scale = v_mul(d, number(p[g] & 15)), min = v_mul(dmin, number(p[g] >> 4));
            const uint8_t * codes = p + 16 + g / 8 * 32 + g % 2 * 16;
            EACH_VECTOR(v, 16) { put_minus(y + v, part(codes + v, g / 2 % 4 * 2, 3), scale, min); }
        }
    }
}

static void unpack_q3_k(const void * x, float * y, int64_t n) {
    for (const uint8_t * p = x; n > 0; n -= 256, p += 110) {
        const uint8_t * s = p + 96;
        for (int g = 0; g < 16; g++, y += 16) {
            const int low = s[g % 8] >> (g / 8 * 4) & 15, high = s[8 + g % 4] >> (g / 4 * 2) & 3;
            const V scale = v_mul(v_set1_f16(p + 108), number((low | high << 4) - 32));
            const uint8_t *codes = p + 32 + g / 8 * 32 + g % 2 * 16, *mask = p + g % 2 * 16;
            EACH_VECTOR(v, 16) {
                put_less(y + v, vi_or(part(codes + v, g / 2 % 4 * 2, 3), bit_of(mask + v, g / 2, 2)), 4, scale);
            }
        }
    }
}

/* Six-bit scale and minimum of sub-block j of q4_K and q5_K. */
SIMD_INLINE void scales_k(const uint8_t * p, int j, V * scale, V * min) {
    const uint8_t * s = p + 4;
    const int sc = j < 4 ? s[j] & 63 : (s[j + 4] & 15) | s[j - 4] >> 6 << 4;
    const int mn = j < 4 ? s[j + 4] & 63 : s[j + 4] >> 4 | s[j] >> 6 << 4;
    *scale = v_mul(v_set1_f16(p), number(sc));
    *min = v_mul(v_set1_f16(p + 2), number(mn));
}

static void unpack_q4_k(const void * x, float * y, int64_t n) {
    for (const uint8_t * p = x; n > 0; n -= 256, p += 144) {
        for (int j = 0; j < 8; j++, y += 32) {
            V scale, min;
            scales_k(p, j, &scale, &min);
            EACH_VECTOR(v, 32) { put_minus(y + v, part(p + 16 + j / 2 * 32 + v, j % 2 * 4, 15), scale, min); }
        }
    }
}

static void unpack_q5_k(const void * x, float * y, int64_t n) {
    for (const uint8_t * p = x; n > 0; n -= 256, p += 176) {
        for (int j = 0; j < 8; j++, y += 32) {
            V scale, min;
            scales_k(p, j, &scale, &min);
            EACH_VECTOR(v, 32) {
                const VI low = part(p + 48 + j / 2 * 32 + v, j % 2 * 4, 15);
                put_minus(y + v, vi_or(low, bit_of(p + 16 + v, j, 4)), scale, min);
            }
        }
    }
}

static void unpack_q6_k(const void * x, float * y, int64_t n) {
    for (const uint8_t * p = x; n > 0; n -= 256, p += 210) {
        for (int g = 0; g < 16; g++, y += 16) {
            const int half = g / 8, k = g / 2 % 4, l = g % 2 * 16;
            const uint8_t *low = p + 64 * half + 32 * (k % 2) + l, *high = p + 128 + 32 * half + l;
            const V scale = v_mul(v_set1_f16(p + 208), number((int8_t)p[192 + g]));
            EACH_VECTOR(v, 16) {
                const VI two = vi_shl(part(high + v, 2 * k, 3), 4);
                put_less(y + v, vi_or(part(low + v, k / 2 * 4, 15), two), 32, scale);
            }
        }
    }
}

static void unpack_iq4_xs(const void * x, float * y, int64_t n) {
    const VI table = vi_table(sotto_i_codes_iq4);
    for (const uint8_t * p = x; n > 0; n -= 256, p += 136) {
        for (int j = 0; j < 8; j++, y += 32) {
            const int low = p[4 + j / 2] >> (j % 2 * 4) & 15, high = p[2 + j / 4] >> (j % 4 * 2) & 3;
            const V d = v_mul(v_set1_f16(p), number((low | high << 4) - 32));
            unpack_table(p + 8 + 16 * j, y, table, 128, d);
        }
    }
}

SIMD_INLINE void raise(struct sotto_i_gemm_kernels * kernels) {
    kernels->unpack[SOTTO_TYPE_Q1_0] = unpack_q1_0;
    kernels->unpack[SOTTO_TYPE_Q2_0] = unpack_q2_0;
    kernels->unpack[SOTTO_TYPE_TQ2_0] = unpack_tq2_0;
    kernels->unpack[SOTTO_TYPE_Q4_0] = unpack_q4_0;
    kernels->unpack[SOTTO_TYPE_Q4_1] = unpack_q4_1;
    kernels->unpack[SOTTO_TYPE_Q5_0] = unpack_q5_0;
    kernels->unpack[SOTTO_TYPE_Q5_1] = unpack_q5_1;
    kernels->unpack[SOTTO_TYPE_Q8_0] = unpack_q8_0;
    kernels->unpack[SOTTO_TYPE_Q2_K] = unpack_q2_k;
    kernels->unpack[SOTTO_TYPE_Q3_K] = unpack_q3_k;
    kernels->unpack[SOTTO_TYPE_Q4_K] = unpack_q4_k;
    kernels->unpack[SOTTO_TYPE_Q5_K] = unpack_q5_k;
    kernels->unpack[SOTTO_TYPE_Q6_K] = unpack_q6_k;
    kernels->unpack[SOTTO_TYPE_IQ4_NL] = unpack_iq4_nl;
    kernels->unpack[SOTTO_TYPE_IQ4_XS] = unpack_iq4_xs;
    kernels->unpack[SOTTO_TYPE_MXFP4] = unpack_mxfp4;
}
