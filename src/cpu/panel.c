/* SPDX-License-Identifier: MIT */
/* Moving rows into panels and out of them: a walk over the fields of a block (panel.h). */
#include "cpu/panel.h"

#include <string.h>

#include "sotto/cpu.h"

enum { PANEL = SOTTO_CPU_PANEL, MAX_FIELDS = 4 };

/* Consecutive words of a block. */
struct field {
    uint8_t width, count;
};

/* By type, in the order of the block's bytes. A type without fields is one word of its block's bytes. */
static const struct field fields[SOTTO_TYPE_COUNT][MAX_FIELDS] = {
    [SOTTO_TYPE_Q4_0] = { { 2, 1 }, { 4, 4 } },    /* d, nibbles */
    [SOTTO_TYPE_Q4_1] = { { 2, 2 }, { 4, 4 } },    /* d and m, nibbles */
    [SOTTO_TYPE_Q5_0] = { { 2, 1 }, { 4, 5 } },    /* d, fifth bits and nibbles */
    [SOTTO_TYPE_Q5_1] = { { 2, 2 }, { 4, 5 } },    /* d and m, fifth bits and nibbles */
    [SOTTO_TYPE_Q8_0] = { { 2, 1 }, { 4, 8 } },    /* d, codes */
    [SOTTO_TYPE_Q2_K] = { { 4, 20 }, { 2, 2 } },   /* scales and codes, d and dmin */
    [SOTTO_TYPE_Q3_K] = { { 4, 27 }, { 2, 1 } },   /* mask, codes and scales, d */
    [SOTTO_TYPE_Q4_K] = { { 2, 2 }, { 4, 35 } },   /* d and dmin, scales and codes */
    [SOTTO_TYPE_Q5_K] = { { 2, 2 }, { 4, 43 } },   /* d and dmin, scales, high bits and codes */
    [SOTTO_TYPE_Q6_K] = { { 4, 52 }, { 2, 1 } },   /* low bits, high bits and scales, d */
    [SOTTO_TYPE_IQ4_NL] = { { 2, 1 }, { 4, 4 } },  /* d, nibbles */
    [SOTTO_TYPE_IQ4_XS] = { { 2, 2 }, { 4, 33 } }, /* d and high bits of scales, low bits and nibbles */
    [SOTTO_TYPE_MXFP4] = { { 1, 1 }, { 4, 4 } },   /* e, nibbles */
};

/* Words of `width` bytes between a row and a lane; the common widths as single moves. */
static void to_lane(char * lane, const char * row, size_t width, size_t count) {
    for (size_t i = 0; i < count; i++) {
        char * to = lane + i * PANEL * width;
        const char * from = row + i * width;
        if (width == 4) {
            memcpy(to, from, 4);
        } else if (width == 2) {
            memcpy(to, from, 2);
        } else {
            memcpy(to, from, width);
        }
    }
}

static void from_lane(char * row, const char * lane, size_t width, size_t count) {
    for (size_t i = 0; i < count; i++) {
        char * to = row + i * width;
        const char * from = lane + i * PANEL * width;
        if (width == 4) {
            memcpy(to, from, 4);
        } else if (width == 2) {
            memcpy(to, from, 2);
        } else {
            memcpy(to, from, width);
        }
    }
}

void sotto_i_panel_set(enum sotto_type type, void * panel, int lane, int64_t b0, int64_t n, const void * row) {
    const size_t bytes = sotto_get_type_traits(type)->type_size;
    const struct field * f = fields[type];
    char * to = (char *)panel + (size_t)b0 * PANEL * bytes;
    const char * from = row;
    if (f->width == 0) {
        to_lane(to + (size_t)lane * bytes, from, bytes, (size_t)n);
        return;
    }
    for (int64_t b = 0; b < n; b++) {
        for (int i = 0; i < MAX_FIELDS && f[i].width; i++) {
            const size_t width = f[i].width, count = f[i].count;
            to_lane(to + (size_t)lane * width, from, width, count);
            to += PANEL * width * count;
            from += width * count;
        }
    }
}

void sotto_i_panel_get(enum sotto_type type, const void * panel, int lane, int64_t b0, int64_t n, void * row) {
    const size_t bytes = sotto_get_type_traits(type)->type_size;
    const struct field * f = fields[type];
    const char * from = (const char *)panel + (size_t)b0 * PANEL * bytes;
    char * to = row;
    if (f->width == 0) {
        from_lane(to, from + (size_t)lane * bytes, bytes, (size_t)n);
        return;
    }
    for (int64_t b = 0; b < n; b++) {
        for (int i = 0; i < MAX_FIELDS && f[i].width; i++) {
            const size_t width = f[i].width, count = f[i].count;
            from_lane(to, from + (size_t)lane * width, width, count);
            from += PANEL * width * count;
            to += width * count;
        }
    }
}

void sotto_i_panel_clear(enum sotto_type type, void * panel, int lane, int64_t n) {
    static const char zeros[512]; /* more than any block has */
    for (int64_t b = 0; b < n; b++) {
        sotto_i_panel_set(type, panel, lane, b, 1, zeros);
    }
}
