/* SPDX-License-Identifier: MIT */
/* quant_lines: rows of any type for a test in another language, raw numbers in and out.
 *
 *     quant_lines encode TYPE N            rows of N floats -> rows of TYPE (its number), by sotto_quantize_chunk
 *     quant_lines encode_weighted TYPE N   the same; the first row is the importance matrix
 *     quant_lines encode_row TYPE N        by the row quantiser of the table of types
 *     quant_lines decode TYPE N            rows of TYPE -> rows of N floats
 *     quant_lines validate TYPE N          a line for each row: 1 if it is valid, else 0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/type_convert.h"
#include "sotto/quant.h"
#include "sotto/status.h"

typedef void (*decode_fn)(const void * x, float * y, int64_t n);
typedef void (*encode_fn)(const float * x, void * y, int64_t n);

static decode_fn decoder(enum sotto_type type) {
    return type == SOTTO_TYPE_Q8_1   ? sotto_i_q8_1_to_float
           : type == SOTTO_TYPE_Q8_K ? sotto_i_q8_k_to_float
                                     : sotto_get_type_traits(type)->to_float;
}

static encode_fn encoder(enum sotto_type type) {
    return type == SOTTO_TYPE_Q8_K ? sotto_i_q8_k_from_float : sotto_get_type_traits(type)->from_float_ref;
}

struct job {
    const char * what;
    enum sotto_type type;
    int64_t n;
    float * floats;
    float * weights; /* NULL: none */
    uint8_t * blocks;
    size_t float_bytes, block_bytes; /* of a row */
};

static bool put(const void * data, size_t bytes) { return fwrite(data, 1, bytes, stdout) == bytes; }

static bool encode(const struct job * j) {
    memset(j->blocks, 0xA5, j->block_bytes);
    if (strcmp(j->what, "encode_row") == 0) {
        encoder(j->type)(j->floats, j->blocks, j->n);
    } else if (sotto_quantize_chunk(j->type, j->floats, j->blocks, 0, 1, j->n, j->weights) != j->block_bytes) {
        fprintf(stderr, "quant_lines: %s\n", sotto_last_error_text());
        return false;
    }
    return put(j->blocks, j->block_bytes);
}

/* One row from standard input, and what is asked of it; -1 at the end, 0 for a failure. */
static int row(const struct job * j) {
    const bool from_floats = strncmp(j->what, "encode", 6) == 0;
    const size_t bytes = from_floats ? j->float_bytes : j->block_bytes;
    const size_t got = fread(from_floats ? (void *)j->floats : j->blocks, 1, bytes, stdin);
    if (got != bytes) {
        return got == 0 ? -1 : 0;
    }
    if (from_floats) {
        return encode(j);
    }
    if (strcmp(j->what, "validate") == 0) {
        return printf("%d\n", sotto_validate_row_data(j->type, j->blocks, j->block_bytes)) > 0;
    }
    decoder(j->type)(j->blocks, j->floats, j->n);
    return put(j->floats, j->float_bytes);
}

int main(int argc, char ** argv) {
    if (argc != 4) {
        return 2;
    }
    struct job j = { argv[1], (enum sotto_type)atoi(argv[2]), atoll(argv[3]), NULL, NULL, NULL, 0, 0 };
    j.block_bytes = sotto_row_size(j.type, j.n);
    j.float_bytes = (size_t)j.n * sizeof(float);
    j.floats = malloc(j.float_bytes);
    j.weights = malloc(j.float_bytes);
    j.blocks = malloc(j.block_bytes);
    int done = j.block_bytes > 0 && j.floats && j.weights && j.blocks;
    struct job use = j;
    use.weights = NULL;
    if (strcmp(j.what, "encode_weighted") == 0) {
        done = done && fread(j.weights, 1, j.float_bytes, stdin) == j.float_bytes;
        use.weights = j.weights;
    }
    while (done == 1) {
        done = row(&use);
    }
    free(j.floats);
    free(j.weights);
    free(j.blocks);
    return done == -1 && fflush(stdout) == 0 ? 0 : 1;
}
