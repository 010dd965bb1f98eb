/* SPDX-License-Identifier: MIT */
/* Codes and scales of panels over cpu/simd.h, compiled once per level (x86/codes_<level>.c).
 *
 * A vector holds one word of each of VL rows, beginning at row `lane`. Words of four codes, and of four small scales,
 * are taken apart with shifts and masks, so that nothing ever crosses lanes. */

enum { PANEL = SOTTO_CPU_PANEL, ROW = PANEL * 4 /* bytes of a word of all rows */ };

#define EACH_VECTOR(lane) for (int lane = 0; lane < PANEL; lane += VL)

SIMD_INLINE VI bytes_of(int x) { return vi_set1((int32_t)(0x01010101u * (unsigned)x)); }
/* In each byte the bits that `mask` leaves of v >> shift. */
SIMD_INLINE VI part(VI v, int shift, int mask) { return vi_and(vi_shr_by(v, shift), bytes_of(mask)); }

/* Word i of a field of 4-byte words, of 2-byte floats. */
SIMD_INLINE VI word(const char * field, int i, int lane) { return vi_load(field + i * ROW + lane * 4); }
SIMD_INLINE V half(const char * field, int i, int lane) {
    return v_load_f16((const uint16_t *)(const void *)(field + (i * PANEL + lane) * 2));
}

SIMD_INLINE V v_negate(V a) { return v_from_bits(vi_xor(v_to_bits(a), vi_set1(INT32_MIN))); }

/* Codes 4 * quad .. 4 * quad + 3 of each row; the scale of sub-block `sub`. */
SIMD_INLINE void put(uint8_t * code, int quad, int lane, VI v) { vi_store(code + quad * ROW + lane * 4, v); }
SIMD_INLINE void put_float(float * out, int sub, int lane, V v) { v_store(out + sub * PANEL + lane, v); }

/* Bits 4 * quad .. 4 * quad + 3 of h, each as bit 4 of one byte. */
SIMD_INLINE VI fifth(VI h, int quad) {
    const VI four = vi_and(vi_shr_by(h, 4 * quad), vi_set1(15));
    const VI two = vi_or(four, vi_shl(four, 7));
    return vi_shl(vi_and(vi_or(two, vi_shl(two, 14)), bytes_of(1)), 4);
}

/* ---- types of 32 elements: nibbles, low ones first, perhaps with a fifth bit or a table ---- */

struct block32 {
    const char *d, *m, *h, *nibbles; /* scales, minima, fifth bits; NULL what there is not */
    VI table;                        /* of codes; unused unless `looked_up` */
};

SIMD_INLINE void unpack_32(const struct block32 * x, int looked_up, const struct sotto_i_codes * out, int64_t b) {
    uint8_t * code = out->code + b * 8 * ROW;
    EACH_VECTOR(lane) {
        for (int q = 0; q < 4; q++) {
            const VI w = word(x->nibbles, q, lane);
            VI low = part(w, 0, 15), high = part(w, 4, 15);
            if (x->h) {
                low = vi_or(low, fifth(word(x->h, 0, lane), q));
                high = vi_or(high, fifth(word(x->h, 0, lane), q + 4));
            }
            put(code, q, lane, looked_up ? vi_lookup(x->table, low) : low);
            put(code, q + 4, lane, looked_up ? vi_lookup(x->table, high) : high);
        }
        if (x->d) {
            put_float(out->scale, (int)b, lane, half(x->d, 0, lane));
        }
        if (x->m) {
            put_float(out->min, (int)b, lane, v_negate(half(x->m, 0, lane)));
        }
    }
}

static void unpack_q4_0(const void * panel, int64_t blocks, const struct sotto_i_codes * out) {
    const char * x = panel;
    for (int64_t b = 0; b < blocks; b++, x += 18 * PANEL) {
        unpack_32(&(struct block32){ .d = x, .nibbles = x + 2 * PANEL }, 0, out, b);
    }
}

static void unpack_q4_1(const void * panel, int64_t blocks, const struct sotto_i_codes * out) {
    const char * x = panel;
    for (int64_t b = 0; b < blocks; b++, x += 20 * PANEL) {
        unpack_32(&(struct block32){ .d = x, .m = x + 2 * PANEL, .nibbles = x + 4 * PANEL }, 0, out, b);
    }
}

static void unpack_q5_0(const void * panel, int64_t blocks, const struct sotto_i_codes * out) {
    const char * x = panel;
    for (int64_t b = 0; b < blocks; b++, x += 22 * PANEL) {
        unpack_32(&(struct block32){ .d = x, .h = x + 2 * PANEL, .nibbles = x + 6 * PANEL }, 0, out, b);
    }
}

static void unpack_q5_1(const void * panel, int64_t blocks, const struct sotto_i_codes * out) {
    const char * x = panel;
    for (int64_t b = 0; b < blocks; b++, x += 24 * PANEL) {
        unpack_32(&(struct block32){ .d = x, .m = x + 2 * PANEL, .h = x + 4 * PANEL, .nibbles = x + 8 * PANEL }, 0, out,
                  b);
    }
}

static void unpack_iq4_nl(const void * panel, int64_t blocks, const struct sotto_i_codes * out) {
    const char * x = panel;
    const VI table = vi_table(sotto_i_codes_iq4);
    for (int64_t b = 0; b < blocks; b++, x += 18 * PANEL) {
        unpack_32(&(struct block32){ .d = x, .nibbles = x + 2 * PANEL, .table = table }, 1, out, b);
    }
}

static void unpack_mxfp4(const void * panel, int64_t blocks, const struct sotto_i_codes * out) {
    const char * x = panel;
    const VI table = vi_table(sotto_i_codes_fp4);
    for (int64_t b = 0; b < blocks; b++, x += 17 * PANEL) {
        unpack_32(&(struct block32){ .nibbles = x + PANEL, .table = table }, 1, out, b);
        for (int lane = 0; lane < PANEL; lane++) {
            out->scale[b * PANEL + lane] = sotto_i_codes_exponent((uint8_t)x[lane]);
        }
    }
}

static void unpack_q8_0(const void * panel, int64_t blocks, const struct sotto_i_codes * out) {
    const char * x = panel;
    for (int64_t b = 0; b < blocks; b++, x += 34 * PANEL) {
        EACH_VECTOR(lane) {
            for (int q = 0; q < 8; q++) {
                put(out->code + b * 8 * ROW, q, lane, vi_xor(word(x + 2 * PANEL, q, lane), bytes_of(128)));
            }
            put_float(out->scale, (int)b, lane, half(x, 0, lane));
        }
    }
}

/* ---- types of 256 elements ---- */

/* Byte i of each word as a float, minus `less`. */
SIMD_INLINE V scale_of(VI bytes, int i, int less) {
    return vi_to_float(vi_sub(vi_and(vi_shr_by(bytes, 8 * i), vi_set1(255)), vi_set1(less)));
}

static void unpack_q2_k(const void * panel, int64_t blocks, const struct sotto_i_codes * out) {
    const char * x = panel;
    for (int64_t b = 0; b < blocks; b++, x += 84 * PANEL) {
        const char *codes = x + 16 * PANEL, *d = x + 80 * PANEL;
        EACH_VECTOR(lane) {
            for (int i = 0; i < 16; i++) {
                const VI w = word(codes, i, lane);
                for (int k = 0; k < 4; k++) {
                    put(out->code + b * 64 * ROW, i / 8 * 32 + k * 8 + i % 8, lane, part(w, 2 * k, 3));
                }
            }
            for (int g = 0; g < 16; g++) {
                const VI s = word(x, g / 4, lane);
                put_float(out->scale + b * 16 * PANEL, g, lane,
                          v_mul(half(d, 0, lane), scale_of(part(s, 0, 15), g % 4, 0)));
                put_float(out->min + b * 16 * PANEL, g, lane,
                          v_mul(half(d, 1, lane), scale_of(part(s, 4, 15), g % 4, 0)));
            }
        }
    }
}

static void unpack_q3_k(const void * panel, int64_t blocks, const struct sotto_i_codes * out) {
    const char * x = panel;
    for (int64_t b = 0; b < blocks; b++, x += 110 * PANEL) {
        const char *codes = x + 32 * PANEL, *scales = x + 96 * PANEL, *d = x + 108 * PANEL;
        EACH_VECTOR(lane) {
            for (int i = 0; i < 16; i++) {
                const VI w = word(codes, i, lane), mask = word(x, i % 8, lane);
                for (int k = 0; k < 4; k++) {
                    const VI third = vi_shl(part(mask, i / 8 * 4 + k, 1), 2);
                    put(out->code + b * 64 * ROW, i / 8 * 32 + k * 8 + i % 8, lane, vi_or(part(w, 2 * k, 3), third));
                }
            }
            const VI high = word(scales, 2, lane);
            for (int g = 0; g < 16; g += 4) {
                const VI low = part(word(scales, g / 4 % 2, lane), g / 8 * 4, 15);
                const VI s = vi_or(low, vi_shl(part(high, g / 4 * 2, 3), 4));
                for (int i = 0; i < 4; i++) {
                    put_float(out->scale + b * 16 * PANEL, g + i, lane, v_mul(half(d, 0, lane), scale_of(s, i, 32)));
                }
            }
        }
    }
}

/* Six-bit scales and minima of q4_K and q5_K. */
SIMD_INLINE void scales_k(const char * x, int lane, float * scale, float * min) {
    const char * s = x + 4 * PANEL;
    const VI a = word(s, 0, lane), b = word(s, 1, lane), c = word(s, 2, lane);
    const VI scales[2] = { part(a, 0, 63), vi_or(part(c, 0, 15), vi_shl(part(a, 6, 3), 4)) };
    const VI mins[2] = { part(b, 0, 63), vi_or(part(c, 4, 15), vi_shl(part(b, 6, 3), 4)) };
    for (int j = 0; j < 8; j++) {
        put_float(scale, j, lane, v_mul(half(x, 0, lane), scale_of(scales[j / 4], j % 4, 0)));
        put_float(min, j, lane, v_mul(half(x, 1, lane), scale_of(mins[j / 4], j % 4, 0)));
    }
}

static void unpack_q4_k(const void * panel, int64_t blocks, const struct sotto_i_codes * out) {
    const char * x = panel;
    for (int64_t b = 0; b < blocks; b++, x += 144 * PANEL) {
        EACH_VECTOR(lane) {
            for (int i = 0; i < 32; i++) {
                const VI w = word(x + 16 * PANEL, i, lane);
                put(out->code + b * 64 * ROW, i / 8 * 16 + i % 8, lane, part(w, 0, 15));
                put(out->code + b * 64 * ROW, i / 8 * 16 + 8 + i % 8, lane, part(w, 4, 15));
            }
            scales_k(x, lane, out->scale + b * 8 * PANEL, out->min + b * 8 * PANEL);
        }
    }
}

static void unpack_q5_k(const void * panel, int64_t blocks, const struct sotto_i_codes * out) {
    const char * x = panel;
    for (int64_t b = 0; b < blocks; b++, x += 176 * PANEL) {
        EACH_VECTOR(lane) {
            for (int i = 0; i < 32; i++) {
                const VI w = word(x + 48 * PANEL, i, lane), high = word(x + 16 * PANEL, i % 8, lane);
                const VI even = vi_shl(part(high, i / 8 * 2, 1), 4), odd = vi_shl(part(high, i / 8 * 2 + 1, 1), 4);
                put(out->code + b * 64 * ROW, i / 8 * 16 + i % 8, lane, vi_or(part(w, 0, 15), even));
                put(out->code + b * 64 * ROW, i / 8 * 16 + 8 + i % 8, lane, vi_or(part(w, 4, 15), odd));
            }
            scales_k(x, lane, out->scale + b * 8 * PANEL, out->min + b * 8 * PANEL);
        }
    }
}

static void unpack_q6_k(const void * panel, int64_t blocks, const struct sotto_i_codes * out) {
    const char * x = panel;
    for (int64_t b = 0; b < blocks; b++, x += 210 * PANEL) {
        const char *high = x + 128 * PANEL, *scales = x + 192 * PANEL, *d = x + 208 * PANEL;
        EACH_VECTOR(lane) {
            for (int i = 0; i < 32; i++) { /* word i of the low bits: sub-blocks k and k + 2 of 32 */
                const VI w = word(x, i, lane), h = word(high, i / 16 * 8 + i % 8, lane);
                const int k = i / 8 % 2, quad = i / 16 * 32 + k * 8 + i % 8;
                put(out->code + b * 64 * ROW, quad, lane, vi_or(part(w, 0, 15), vi_shl(part(h, 2 * k, 3), 4)));
                put(out->code + b * 64 * ROW, quad + 16, lane, vi_or(part(w, 4, 15), vi_shl(part(h, 2 * k + 4, 3), 4)));
            }
            for (int g = 0; g < 16; g++) { /* signed bytes */
                const VI s = vi_xor(word(scales, g / 4, lane), bytes_of(128));
                put_float(out->scale + b * 16 * PANEL, g, lane, v_mul(half(d, 0, lane), scale_of(s, g % 4, 128)));
            }
        }
    }
}

static void unpack_iq4_xs(const void * panel, int64_t blocks, const struct sotto_i_codes * out) {
    const char * x = panel;
    const VI table = vi_table(sotto_i_codes_iq4);
    for (int64_t b = 0; b < blocks; b++, x += 136 * PANEL) {
        for (int j = 0; j < 8; j++) {
            unpack_32(&(struct block32){ .nibbles = x + (8 + 16 * j) * PANEL, .table = table }, 1, out, b * 8 + j);
        }
        EACH_VECTOR(lane) {
            const uint16_t * high = (const uint16_t *)(const void *)(x + 2 * PANEL) + lane;
            const VI sh = vi_load_u16(high), sl = word(x + 4 * PANEL, 0, lane);
            for (int j = 0; j < 8; j++) {
                const VI low = vi_and(vi_shr_by(sl, 4 * j), vi_set1(15));
                const VI s = vi_or(low, vi_shl(vi_and(vi_shr_by(sh, 2 * j), vi_set1(3)), 4));
                put_float(out->scale + b * 8 * PANEL, j, lane,
                          v_mul(half(x, 0, lane), vi_to_float(vi_sub(s, vi_set1(32)))));
            }
        }
    }
}

/* ---- f32 ---- */

static void to_float(const struct sotto_i_codes_form * form, const struct sotto_i_codes * codes, int64_t n,
                     float * dst) {
    for (int64_t l = 0; l < n; l += 4) {
        EACH_VECTOR(lane) {
            const VI w = vi_load(codes->code + l * PANEL + lane * 4);
            const V scale = v_load(codes->scale + l / form->sub * PANEL + lane);
            for (int i = 0; i < 4; i++) {
                const V y = v_mul(scale, scale_of(w, i, form->offset));
                float * to = dst + (l + i) * PANEL + lane;
                v_store(to, form->mins ? v_sub(y, v_load(codes->min + l / form->sub * PANEL + lane)) : y);
            }
        }
    }
}

SIMD_INLINE void raise(struct sotto_i_codes_kernels * kernels) {
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
    kernels->to_float = to_float;
}
