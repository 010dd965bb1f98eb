/* SPDX-License-Identifier: MIT */
/* Tables of neighbours: made once under a lock, then read without. */
#include "quant/lattice.h"

#include <pthread.h>
#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "quant/codebooks.h"

enum { MOST_ROWS = 2048 };

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
    t->row = t->digits ? sotto_malloc(allocator, (size_t)t->cells, sizeof(*t->row)) : NULL;
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
    }
}

/* Squared distances of all rows from a cell: at most 4 * 49. */
static void measure(const struct book * book, int cell, uint8_t (*places)[MOST_ROWS], uint8_t * distances) {
    memset(distances, 0, (size_t)book->rows);
    for (int i = 0; i < book->length; i++, cell /= book->levels) {
        const int digit = cell % book->levels;
        for (int r = 0; r < book->rows; r++) {
            const int step = places[i][r] - digit;
            distances[r] = (uint8_t)(distances[r] + step * step);
        }
    }
}

/* The smallest distance that is more than `than`; 255 for none. */
static int next_distance(const uint8_t * distances, int rows, int than) {
    uint8_t next = 255;
    for (int r = 0; r < rows; r++) {
        const uint8_t d = distances[r] > than ? distances[r] : 255;
        next = d < next ? d : next;
    }
    return next;
}

static bool add_neighbours(const struct book * book, struct sotto_i_lattice * t, const uint8_t * distances) {
    if (t->room - t->held < (uint32_t)book->rows && !resize(t, t->room + t->room / 2 + MOST_ROWS)) {
        return false;
    }
    for (int shell = 0, distance = 0; shell < book->shells; shell++) {
        distance = next_distance(distances, book->rows, distance);
        for (int r = 0; r < book->rows && distance < 255; r++) {
            if (distances[r] == distance) {
                t->neighbours[t->held++] = (uint16_t)r;
            }
        }
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

int sotto_i_lattice_nearest(const struct sotto_i_lattice * t, int cell, const struct sotto_i_costs * costs) {
    const uint16_t *next = t->neighbours + t->first[cell], *end = t->neighbours + t->first[cell + 1];
    int nearest = *next;
    float least = INFINITY;
    for (; next < end; next++) {
        const uint8_t * digits = t->digits + *next * ROW_MAX;
        float cost = 0.0f;
        for (int i = 0; i < t->length; i++) {
            cost += costs->of[i][digits[i]];
        }
        if (cost < least) {
            least = cost;
            nearest = *next;
        }
    }
    return nearest;
}
