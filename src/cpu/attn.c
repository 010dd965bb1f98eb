/* SPDX-License-Identifier: MIT */
/* The walk of attn.h: chunk by chunk of keys, tile by tile of queries.
 *
 * What lies in scratch, floats unless noted:
 *
 *     queries [block] records          filled in by the op
 *     q       [block][dk]              side by side, so that a tile of them fits the first cache
 *     o       [block][dv, padded]      running outputs
 *     max, sum [block]                 running maxima and sums
 *     keys    [dk][64]                 this chunk's keys, positions side by side
 *     vals    [64][dv, padded]         this chunk's values, unless they can be read where they are; before them its keys,
 *                                      if they have to be decoded
 *     w       [12][64]                 scores, then weights, of one tile
 *
 * The chunk is the outer loop: laying out 64 keys costs about as much as using them for three queries, and values of a
 * cache lie a power of two apart, so that they would push one another out of the first cache.
 *
 * With the decoder's few queries the walk waits for memory. Per layer of 8 heads of width 64 over 1500 keys in f32, one
 * query, one thread, avx512 on Zen 4: 180 us when the cache lies in the third-level cache, of which the keys' layout
 * takes 60; 470 us when it comes from main memory, 400 with the next chunk asked for ahead (f16: 350 and 270). What
 * helps most is how the cache is laid out: rows of one head side by side (strides of the pool are free) reach 1.6 times
 * the bandwidth of rows of all heads interleaved, and keys whose positions lie side by side need no layout here. */
#include "cpu/attn.h"

#include <math.h>
#include <string.h>

#include "cpu/vmath_c.h"

enum {
    KEYS = SOTTO_I_ATTN_KEYS,
    TILE = SOTTO_I_ATTN_TILE,
    BLOCK_FLOATS = 32768, /* q and o of a walk together: half of a small second cache */
    MIN_SHARED = 96,      /* queries that are worth a layout of their own, as long as threads have work */
    DIRECT = 8            /* up to so many queries values are read in place */
};

/* Parts of scratch. */
struct area {
    float *q, *o, *max, *sum, *keys, *vals, *w;
    int64_t ldo;
};

static int64_t min64(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t max64(int64_t a, int64_t b) { return a > b ? a : b; }
static int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
static int64_t round16(int64_t n) { return (n + 15) & ~(int64_t)15; }

enum sotto_i_attn_type sotto_i_attn_type(enum sotto_type type) {
    switch (type) {
    case SOTTO_TYPE_F32: return SOTTO_I_ATTN_F32;
    case SOTTO_TYPE_F16: return SOTTO_I_ATTN_F16;
    case SOTTO_TYPE_BF16: return SOTTO_I_ATTN_BF16;
    default: return SOTTO_I_ATTN_TYPES;
    }
}

struct sotto_i_attn_pool sotto_i_attn_pool(const struct sotto_i_gemm_kernels * decoders, enum sotto_type type,
                                           const void * data, size_t step, int64_t width) {
    const struct sotto_type_traits * traits = sotto_get_type_traits(type);
    struct sotto_i_attn_pool pool = { .data = data, .step = step, .type = sotto_i_attn_type(type) };
    pool.size = (size_t)(width / traits->blck_size) * traits->type_size;
    if (pool.type == SOTTO_I_ATTN_TYPES) {
        pool.type = SOTTO_I_ATTN_F32;
        pool.decode = decoders->unpack[type];
    }
    return pool;
}

int64_t sotto_i_attn_block(int64_t dk, int64_t dv) {
    const int64_t n = BLOCK_FLOATS / max64(dk + dv, 1);
    return min64(max64(n / TILE * TILE, TILE), SOTTO_I_ATTN_MAX_BLOCK);
}

/* Carve scratch into its parts; returns the bytes used. */
static size_t carve(struct area * a, char * scratch, int64_t dk, int64_t dv) {
    const int64_t block = sotto_i_attn_block(dk, dv), ldo = round16(dv);
    const int64_t rows = KEYS * max64(dk, ldo);
    const int64_t floats[] = { block * dk, block * ldo, block, block, KEYS * dk, rows, TILE * KEYS };
    float ** const part[] = { &a->q, &a->o, &a->max, &a->sum, &a->keys, &a->vals, &a->w };
    size_t used = ((size_t)block * sizeof(struct sotto_i_attn_query) + 63) & ~(size_t)63;
    for (size_t i = 0; i < sizeof(part) / sizeof(part[0]); i++) {
        if (scratch != NULL) {
            *part[i] = (float *)(void *)(scratch + used);
        }
        used += (size_t)round16(floats[i]) * sizeof(float);
    }
    a->ldo = ldo;
    return used;
}

size_t sotto_i_attn_scratch(int64_t dk, int64_t dv) {
    struct area a;
    return carve(&a, NULL, dk, dv);
}

int64_t sotto_i_attn_n_blocks(int64_t n, int64_t units, int64_t dk, int64_t dv, int n_threads) {
    const int64_t least = ceil_div(n, sotto_i_attn_block(dk, dv));
    const int64_t balanced = min64(ceil_div(4 * (int64_t)n_threads, max64(units, 1)), n / MIN_SHARED);
    const int64_t busy = min64(ceil_div(n_threads, max64(units, 1)), ceil_div(n, TILE));
    return max64(max64(least, n_threads > 1 ? max64(balanced, busy) : 1), 1);
}

/* Rows of the positions from `first` on, at most a chunk; returns how many there are. */
static int find_rows(const void ** rows, const struct sotto_i_attn_pool * pool, const struct sotto_i_attn_walk * walk,
                     int64_t first, int64_t len) {
    const int n = (int)max64(min64(len - first, KEYS), 0);
    for (int j = 0; j < n; j++) {
        int64_t row = first + j;
        if (walk->table != NULL) {
            int32_t entry;
            memcpy(&entry, walk->table + (size_t)row * walk->table_step, sizeof(entry));
            row = entry;
        }
        rows[j] = pool->data + (size_t)row * pool->step;
    }
    return n;
}

/* Do the rows follow one another? */
static bool consecutive(const void * const * rows, int n, size_t step) {
    for (int j = 1; j < n; j++) {
        if ((const char *)rows[j] != (const char *)rows[j - 1] + step) {
            return false;
        }
    }
    return true;
}

/* Rows that lie side by side, element by element, to rows in `out`. */
static void gather_rows(const struct sotto_i_attn_pool * pool, const void ** rows, int n, int64_t d, char * out) {
    for (int j = 0; j < n; j++, out += (size_t)d * pool->step) {
        for (int64_t l = 0; l < d; l++) {
            memcpy(out + (size_t)l * pool->step, (const char *)rows[j] + (size_t)l * pool->along, pool->step);
        }
        rows[j] = out;
    }
}

/* Keys that lie side by side, of consecutive positions: they only change their type. */
static void widen_keys(const struct sotto_i_attn_kernels * kernels, const struct sotto_i_attn_pool * pool,
                       const char * first, int n, int64_t d, float * keys) {
    if (n < KEYS) {
        memset(keys, 0, (size_t)(d * KEYS) * sizeof(float));
    }
    for (int64_t l = 0; l < d; l += KEYS) {
        const void * elements[KEYS];
        const int count = (int)min64(d - l, KEYS);
        for (int i = 0; i < count; i++) {
            elements[i] = first + (size_t)(l + i) * pool->along;
        }
        kernels->widen[pool->type](keys + l * KEYS, KEYS, elements, count, n);
    }
}

/* Ask for the chunk after this one while this one is worked on: caches of whole models come from main memory. */
static void fetch_next(const struct sotto_i_attn_kernels * kernels, const struct sotto_i_attn_walk * walk,
                       const struct sotto_i_attn_pool * pool, int64_t first, int64_t len) {
    const void * rows[KEYS];
    const int n = find_rows(rows, pool, walk, first + KEYS, len);
    if (pool->along == 0) {
        kernels->prefetch(rows, n, pool->size);
        return;
    }
    const int elements = n > 0 ? (int)min64(walk->dk, KEYS) : 0;
    for (int l = elements - 1; l >= 0; l--) {
        rows[l] = (const char *)rows[0] + (size_t)l * pool->along;
    }
    kernels->prefetch(rows, elements, (size_t)n * pool->step);
}

/* Rows in blocks as f32 rows, which then lie in `out`, `ld` floats apart. */
static void decode_rows(const struct sotto_i_attn_pool * pool, const void ** rows, int n, int64_t d, float * out,
                        int64_t ld) {
    for (int j = 0; j < n; j++) {
        pool->decode(rows[j], out + j * ld, d);
        rows[j] = out + j * ld;
    }
}

/* This chunk's values as f32 rows: in place, or copied side by side. */
static void find_values(const struct sotto_i_attn_kernels * kernels, const struct sotto_i_attn_walk * walk,
                        const struct area * a, const float ** v, const void ** rows, int n_keys) {
    const int in_place = walk->v.type == SOTTO_I_ATTN_F32 && (walk->n <= DIRECT || walk->v.decode);
    if (walk->v.decode) {
        decode_rows(&walk->v, rows, n_keys, walk->dv, a->vals, a->ldo);
    }
    if (!in_place) {
        kernels->widen[walk->v.type](a->vals, a->ldo, rows, n_keys, walk->dv);
    }
    for (int j = 0; j < KEYS; j++) {
        v[j] = in_place ? rows[j] : a->vals + min64(j, n_keys - 1) * a->ldo;
    }
}

/* The positions of this chunk that take part, per query of a tile; false if there are none. */
static bool find_open(const struct sotto_i_attn_kernels * kernels, const struct sotto_i_attn_query * queries, int n,
                      int64_t first, int n_keys, uint64_t * open, const uint16_t ** mask) {
    uint64_t any = 0;
    for (int i = 0; i < n; i++) {
        const int64_t seen = max64(min64(queries[i].len - first, n_keys), 0);
        open[i] = sotto_i_first_bits(seen);
        if (queries[i].mask != NULL) {
            mask[i] = queries[i].mask + first;
            open[i] &= kernels->unmasked(mask[i], n_keys);
        }
        any |= open[i];
    }
    return any != 0;
}

/* One tile of queries and one chunk. */
static void tile(const struct sotto_i_attn_kernels * kernels, const struct sotto_i_attn_walk * walk,
                 const struct area * a, int64_t i, int64_t first, int n_keys, const float * const * v) {
    const struct sotto_i_attn_query * queries = walk->queries + i;
    const int n = (int)min64(walk->n - i, TILE);
    const uint16_t * mask[TILE];
    float slope[TILE], factor[TILE];
    uint64_t open[TILE];
    for (int r = 0; r < n; r++) {
        slope[r] = queries[r].slope;
    }
    if (!find_open(kernels, queries, n, first, n_keys, open, mask)) {
        return;
    }
    kernels->dots(a->w, a->q + i * walk->dk, walk->dk, n, a->keys, walk->dk);
    kernels->weigh(&(struct sotto_i_attn_weigh){
        .n = n,
        .n_keys = n_keys,
        .scale = walk->scale,
        .softcap = walk->softcap,
        .x = a->w,
        .mask = queries[0].mask != NULL ? mask : NULL,
        .slope = slope,
        .max = a->max + i,
        .sum = a->sum + i,
        .factor = factor,
        .open = open,
    });
    kernels->values(a->o + i * a->ldo, a->ldo, n, a->w, factor, open, v, walk->dv);
}

/* This chunk's keys, positions side by side, to a->keys. */
static int find_keys(const struct sotto_i_attn_kernels * kernels, const struct sotto_i_attn_walk * walk,
                     const struct area * a, int64_t first, int64_t len) {
    const void * rows[KEYS] = { NULL };
    const struct sotto_i_attn_pool * pool = &walk->k;
    const int n_keys = find_rows(rows, pool, walk, first, len);
    if (pool->along != 0 && consecutive(rows, n_keys, pool->step)) {
        widen_keys(kernels, pool, rows[0], n_keys, walk->dk, a->keys);
        return n_keys;
    }
    if (pool->along != 0) {
        gather_rows(pool, rows, n_keys, walk->dk, (char *)a->vals);
    } else if (pool->decode) {
        decode_rows(pool, rows, n_keys, walk->dk, a->vals, walk->dk);
    }
    for (int j = n_keys; j < KEYS; j++) {
        rows[j] = rows[0]; /* stands in */
    }
    kernels->pack_keys[pool->type](a->keys, rows, walk->dk);
    return n_keys;
}

/* One chunk of a walk of `len` positions, for all queries. */
static void chunk(const struct sotto_i_attn_kernels * kernels, const struct sotto_i_attn_walk * walk,
                  const struct area * a, int64_t first, int64_t len) {
    const void * rows[KEYS];
    const float * v[KEYS];
    const int n_keys = find_keys(kernels, walk, a, first, len);
    fetch_next(kernels, walk, &walk->v, first, len);
    fetch_next(kernels, walk, &walk->k, first, len);
    find_rows(rows, &walk->v, walk, first, len);
    find_values(kernels, walk, a, v, rows, n_keys);
    for (int64_t i = 0; i < walk->n; i += TILE) {
        tile(kernels, walk, a, i, first, n_keys, v);
    }
}

/* The sink, and the division by the sum. */
static void finish(const struct sotto_i_attn_query * query, const float * o, float max, float sum, int64_t dv) {
    if (sum == 0.0f) {
        memset(query->out, 0, (size_t)dv * sizeof(float));
        return;
    }
    float factor = 1.0f;
    if (query->sink != NULL) {
        const float all = *query->sink > max ? *query->sink : max;
        factor = sotto_i_expf(max - all);
        sum = fmaf(sum, factor, sotto_i_expf(*query->sink - all));
    }
    const float inverse = 1.0f / sum;
    for (int64_t l = 0; l < dv; l++) {
        query->out[l] = o[l] * factor * inverse;
    }
}

void sotto_i_attn_run(const struct sotto_i_attn_kernels * kernels, const struct sotto_i_attn_walk * walk,
                      void * scratch) {
    struct area a;
    int64_t len = 0;
    carve(&a, scratch, walk->dk, walk->dv);
    for (int64_t i = 0; i < walk->n; i++) {
        memcpy(a.q + i * walk->dk, walk->queries[i].q, (size_t)walk->dk * sizeof(float));
        memset(a.o + i * a.ldo, 0, (size_t)a.ldo * sizeof(float));
        a.max[i] = -INFINITY;
        a.sum[i] = 0.0f;
        len = max64(len, walk->queries[i].len);
    }
    for (int64_t first = 0; first < len; first += KEYS) {
        chunk(kernels, walk, &a, first, len);
    }
    for (int64_t i = 0; i < walk->n; i++) {
        finish(&walk->queries[i], a.o + i * a.ldo, a.max[i], a.sum[i], walk->dv);
    }
}
