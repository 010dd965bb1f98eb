/* SPDX-License-Identifier: MIT */
/* Importance matrices: how much each column of a weight matters, measured by running the model over recordings.
 *
 * An entry holds, for each column of a matrix, the sum of squares of what it was multiplied with. Quantisers keep the
 * columns with large ones more exact. Gathering goes through the callback around nodes:
 *
 *     struct sotto_imatrix * imatrix = sotto_imatrix_new(NULL);
 *     struct sotto_state_params params = sotto_state_default_params();
 *     params.eval_callback = sotto_imatrix_collect;
 *     params.eval_user_data = imatrix;
 *     ... sotto_transcribe with a state of these params ...
 *     sotto_imatrix_write(imatrix, "base.imatrix.gguf", &name, 1);
 *     sotto_imatrix_free(imatrix);
 *
 * Files are GGUF in the field's form: general.type is "imatrix"; for each matrix NAME the f32 tensors NAME.in_sum2
 * [columns] and NAME.counts [1], the number of rows summed up; imatrix.datasets, imatrix.chunk_count and
 * imatrix.chunk_size. The same runs give the same file.
 *
 * One thread at a time may change an imatrix, any may read one that does not change. */
#ifndef SOTTO_IMATRIX_H
#define SOTTO_IMATRIX_H

#include "sotto/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

struct sotto_imatrix;

/* An empty one; NULL and MEMORY on failure. allocator NULL: the default. */
SOTTO_API struct sotto_imatrix * sotto_imatrix_new(const struct sotto_allocator * allocator);
SOTTO_API void sotto_imatrix_free(struct sotto_imatrix * imatrix); /* NULL is allowed */

/* A sotto_backend_eval_callback; user_data is the imatrix. Adds the second operand of each product of a named matrix of
 * weights to that matrix's entry. Returns false, which stops the graph, if memory is short. */
SOTTO_API bool sotto_imatrix_collect(struct sotto_tensor * tensor, bool ask, void * user_data);

/* Read a file; *imatrix is NULL on failure. NULLARG, IO, MODEL_FORMAT (not GGUF, or no imatrix), MODEL_CORRUPT (sums or
 * counts are missing, do not fit one another, are negative or not finite), GGUF_*, MEMORY. */
SOTTO_API enum sotto_status sotto_imatrix_open(const char * path, const struct sotto_allocator * allocator,
                                               struct sotto_imatrix ** imatrix);
/* Write one, with the names of the recordings. The file appears when it is whole. NULLARG, STATE (nothing was gathered),
 * MEMORY, GGUF_IO_... */
SOTTO_API enum sotto_status sotto_imatrix_write(const struct sotto_imatrix * imatrix, const char * path,
                                                const char * const * datasets, size_t n_datasets);

/* Entries in the order of the file, by name when gathered. Getters accept NULL and answer 0 or NULL. */
SOTTO_API size_t sotto_imatrix_n_entries(const struct sotto_imatrix * imatrix);
SOTTO_API const char * sotto_imatrix_name(const struct sotto_imatrix * imatrix, size_t i);
/* Means of squares, one for each of *n_columns columns, of the matrix of that name; NULL without an error if there is no
 * entry. An entry to which nothing was added holds ones. */
SOTTO_API const float * sotto_imatrix_find(const struct sotto_imatrix * imatrix, const char * name,
                                           int64_t * n_columns);

#ifdef __cplusplus
}
#endif
#endif
