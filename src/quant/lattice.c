/* SPDX-License-Identifier: MIT */
/* Tables of neighbours: made once under a lock, then read without. */
#include "quant/lattice.h"

#include <pthread.h>
#include <math.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#include "quant/codebooks.h"
#include "quant/f4.h"

enum {
    MOST_ROWS = 2048,
    MOST_DISTANCE = 4 * 49 /* fits a byte */,
    HEADS = 27 /* tuples of three digits of three values */
};

static const struct book {
    const uint16_t * codes;
    int rows, length, levels, shells;
} books[BOOK_COUNT] = {
    [BOOK_IQ2_XXS] = { sotto_i_codes_iq2_xxs, 256, 8, 3, 2 }, [BOOK_IQ2_XS] = { sotto_i_codes_iq2_xs, 512, 8, 3, 2 },
    [BOOK_IQ2_S] = { sotto_i_codes_iq2_s, 1024, 8, 3, 1 },    [BOOK_IQ3_XXS] = { sotto_i_codes_iq3_xxs, 256, 4, 8, 2 },
    [BOOK_IQ3_S] = { sotto_i_codes_iq3_s, 512, 4, 8, 3 },     [BOOK_IQ1] = { sotto_i_codes_iq1_s, 2048, 8, 3, 3 },
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic(struct sotto_i_lattice *) made[BOOK_COUNT];

/* ---- memory */

static void release(struct sotto_i_lattice * t) {
    if (!t) {
        return;
    }
    const struct sotto_allocator * allocator = t->allocator;
    sotto_mfree(allocator, t->digits, (size_t)t->rows * ROW_MAX, sizeof(*t->digits));
    sotto_mfree(allocator, t->heads, (size_t)t->rows, sizeof(*t->heads));
    sotto_mfree(allocator, t->row, (size_t)t->cells, sizeof(*t->row));
    sotto_mfree(allocator, t->first, (size_t)t->cells + 1, sizeof(*t->first));
    sotto_mfree(allocator, t->neighbours, t->room, sizeof(*t->neighbours));
    sotto_mfree(allocator, t, 1, sizeof(*t));
}

static int power(int base, int exponent) {
    int product = 1;
    for (int i = 0; i < exponent; i++) {
        product *= base;
    }
    return product;
}

static struct sotto_i_lattice * allocate(const struct book * book) {
    const struct sotto_allocator * allocator = sotto_default_allocator();
    struct sotto_i_lattice * t = sotto_calloc(allocator, 1, sizeof(*t));
    if (!t) {
        return NULL;
    }
    t->allocator = allocator;
    t->length = book->length;
    t->levels = book->levels;
    t->rows = book->rows;
    t->cells = power(book->levels, book->length);
    t->digits = sotto_calloc(allocator, (size_t)t->rows * ROW_MAX, sizeof(*t->digits));
    t->heads = t->digits ? sotto_calloc(allocator, (size_t)t->rows, sizeof(*t->heads)) : NULL;
    t->row = t->heads ? sotto_malloc(allocator, (size_t)t->cells, sizeof(*t->row)) : NULL;
    t->first = t->row ? sotto_malloc(allocator, (size_t)t->cells + 1, sizeof(*t->first)) : NULL;
    if (!t->first) {
        release(t);
        return NULL;
    }
    return t;
}

static bool resize(struct sotto_i_lattice * t, uint32_t room) {
    uint16_t * neighbours = sotto_realloc(t->allocator, t->neighbours, t->room, room, sizeof(*neighbours));
    if (!neighbours) {
        return false;
    }
    t->neighbours = neighbours;
    t->room = room;
    return true;
}

/* ---- building */

/* Digits of the rows, which rows the cells are, and the digits once more place by place. */
static void spread(const struct book * book, struct sotto_i_lattice * t, uint8_t (*places)[MOST_ROWS]) {
    const int bits = book->levels > 4 ? 3 : 2;
    for (int cell = 0; cell < t->cells; cell++) {
        t->row[cell] = -1;
    }
    for (int r = 0; r < book->rows; r++) {
        int cell = 0;
        for (int i = book->length - 1; i >= 0; i--) {
            const int digit = book->codes[r] >> (bits * i) & ((1 << bits) - 1);
            t->digits[r * ROW_MAX + i] = (uint8_t)digit;
            places[i][r] = (uint8_t)digit;
            cell = cell * book->levels + digit;
        }
        t->row[cell] = (int16_t)r;
        t->heads[r] = (uint8_t)(cell % 3 + 4 * (cell / 3 % HEADS));
    }
}

/* Squared distances of all rows from a cell, in digits. */
static void measure(const struct book * book, int cell, uint8_t (*places)[MOST_ROWS], uint8_t * restrict distances) {
    memset(distances, 0, MOST_ROWS);
    for (int i = 0; i < book->length; i++, cell /= book->levels) {
        const uint8_t digit = (uint8_t)(cell % book->levels);
        const uint8_t * place = places[i];
        for (int r = 0; r < book->rows; r++) {
            const uint8_t step = (uint8_t)(place[r] - digit);
            distances[r] = (uint8_t)(distances[r] + step * step);
        }
    }
}

/* The rows at one distance, in order; true if there are any. */
static bool add_shell(const struct book * book, struct sotto_i_lattice * t, const uint8_t * distances, int distance) {
    const uint8_t *at = distances, *end = distances + book->rows;
    const uint32_t before = t->held;
    while (at < end && (at = memchr(at, distance, (size_t)(end - at)))) {
        t->neighbours[t->held++] = (uint16_t)(at++ - distances);
    }
    return t->held > before;
}

static bool add_neighbours(const struct book * book, struct sotto_i_lattice * t, const uint8_t * distances) {
    if (t->room - t->held < (uint32_t)book->rows && !resize(t, t->room + t->room / 2 + MOST_ROWS)) {
        return false;
    }
    for (int shell = 0, distance = 1; shell < book->shells && distance <= MOST_DISTANCE; distance++) {
        shell += add_shell(book, t, distances, distance);
    }
    return true;
}

static bool fill(const struct book * book, struct sotto_i_lattice * t) {
    uint8_t places[ROW_MAX][MOST_ROWS], distances[MOST_ROWS];
    spread(book, t, places);
    for (int cell = 0; cell < t->cells; cell++) {
        t->first[cell] = t->held;
        if (t->row[cell] < 0) {
            measure(book, cell, places, distances);
            if (!add_neighbours(book, t, distances)) {
                return false;
            }
        }
    }
    t->first[t->cells] = t->held;
    return resize(t, t->held);
}

enum sotto_status sotto_i_lattice_make(enum sotto_i_book book) {
    if (atomic_load_explicit(&made[book], memory_order_acquire)) {
        return SOTTO_OK;
    }
    enum sotto_status status = SOTTO_OK;
    pthread_mutex_lock(&lock);
    if (!atomic_load_explicit(&made[book], memory_order_relaxed)) {
        struct sotto_i_lattice * t = allocate(&books[book]);
        if (t && fill(&books[book], t)) {
            atomic_store_explicit(&made[book], t, memory_order_release);
        } else {
            release(t);
            status = sotto_fail(SOTTO_E_MEMORY, "sotto_quantize_init: no memory for a table of neighbours");
        }
    }
    pthread_mutex_unlock(&lock);
    return status;
}

void sotto_i_lattice_free(enum sotto_i_book book) {
    pthread_mutex_lock(&lock);
    release(atomic_exchange_explicit(&made[book], NULL, memory_order_acq_rel));
    pthread_mutex_unlock(&lock);
}

const struct sotto_i_lattice * sotto_i_lattice(enum sotto_i_book book) {
    return atomic_load_explicit(&made[book], memory_order_acquire);
}

/* ---- searching */

/* As costs are not negative, a row whose first digits cost as much as the best row is out. */

static int nearest_of_4(const struct sotto_i_lattice * t, int cell, const struct sotto_i_costs * costs) {
    const uint16_t *next = t->neighbours + t->first[cell], *end = t->neighbours + t->first[cell + 1];
    int nearest = *next;
    float least = INFINITY;
    for (; next < end; next++) {
        const uint8_t * digits = t->digits + *next * ROW_MAX;
        float cost = costs->of[0][digits[0]] + costs->of[1][digits[1]];
        cost = cost + costs->of[2][digits[2]] + costs->of[3][digits[3]];
        if (cost < least) {
            least = cost;
            nearest = *next;
        }
    }
    return nearest;
}

/* The costs of all beginnings of four digits, first digits side by side, with a fourth that does not occur. */
static void sum_heads(const struct sotto_i_costs * costs, f4 heads[HEADS]) {
    const f4 one = f4_load(costs->of[0]);
    f4 two[3], three[9];
    for (int b = 0; b < 3; b++) {
        two[b] = one + costs->of[1][b];
    }
    for (int c = 0; c < 9; c++) {
        three[c] = two[c % 3] + costs->of[2][c / 3];
    }
    for (int d = 0; d < HEADS; d++) {
        heads[d] = three[d % 9] + costs->of[3][d / 9];
    }
}

static int nearest_of_8(const struct sotto_i_lattice * t, int cell, const struct sotto_i_costs * costs) {
    const uint16_t *next = t->neighbours + t->first[cell], *end = t->neighbours + t->first[cell + 1];
    int nearest = *next;
    float least = INFINITY;
    f4 heads[HEADS];
    sum_heads(costs, heads);
    for (; next < end; next++) {
        const unsigned head = t->heads[*next];
        float cost = heads[head / 4][head % 4];
        if (cost < least) {
            const uint8_t * digits = t->digits + *next * ROW_MAX;
            for (int i = 4; i < 8; i++) {
                cost += costs->of[i][digits[i]];
            }
            if (cost < least) {
                least = cost;
                nearest = *next;
            }
        }
    }
    return nearest;
}

int sotto_i_lattice_nearest(const struct sotto_i_lattice * t, int cell, const struct sotto_i_costs * costs) {
    return t->length == 4 ? nearest_of_4(t, cell, costs) : nearest_of_8(t, cell, costs);
}
