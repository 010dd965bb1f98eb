/* SPDX-License-Identifier: MIT */
/* GGUF: the container of models.
 *
 *   header      "GGUF", version, number of tensors, number of pairs
 *   pairs       key, type, value: everything that is not a tensor
 *   infos       name, axes, type and place of each tensor
 *   data        the tensors one after another, each padded with zeros to the alignment (32, or general.alignment)
 *
 * A reader trusts no byte: every count and length is compared with what is left of the file before it is used, and a
 * file that fails a check is refused whole, with a status that names the check.
 *
 *     struct sotto_gguf_context * gguf = sotto_gguf_open("base.gguf", NULL);
 *     if (gguf == NULL)
 *         fprintf(stderr, "%s\n", sotto_last_error_text());
 *     int64_t id = sotto_gguf_find_tensor(gguf, "enc.conv1.weight");
 *     sotto_gguf_read_tensor(gguf, id, weights, 0, sotto_gguf_get_tensor_size(gguf, id));
 *     sotto_gguf_free(gguf);
 *
 * Statuses are SOTTO_E_GGUF_* and the shared NULLARG, PARAM, STATE, MEMORY, LIMIT, UNSUPPORTED.
 * Threads: a context may be read by several threads at once while none changes it; sotto_gguf_read_tensor included. */
#ifndef SOTTO_GGUF_H
#define SOTTO_GGUF_H

#include <stdio.h>

#include "sotto/file.h"
#include "sotto/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SOTTO_GGUF_MAGIC                 "GGUF"
#define SOTTO_GGUF_VERSION               3
#define SOTTO_GGUF_DEFAULT_ALIGNMENT     32
#define SOTTO_GGUF_KEY_GENERAL_ALIGNMENT "general.alignment"

struct sotto_gguf_context;

/* Types of values, with their numbers in files. */
enum sotto_gguf_type {
    SOTTO_GGUF_TYPE_UINT8 = 0,
    SOTTO_GGUF_TYPE_INT8 = 1,
    SOTTO_GGUF_TYPE_UINT16 = 2,
    SOTTO_GGUF_TYPE_INT16 = 3,
    SOTTO_GGUF_TYPE_UINT32 = 4,
    SOTTO_GGUF_TYPE_INT32 = 5,
    SOTTO_GGUF_TYPE_FLOAT32 = 6,
    SOTTO_GGUF_TYPE_BOOL = 7, /* one byte, 0 or 1 */
    SOTTO_GGUF_TYPE_STRING = 8,
    SOTTO_GGUF_TYPE_ARRAY = 9, /* of any type but arrays */
    SOTTO_GGUF_TYPE_UINT64 = 10,
    SOTTO_GGUF_TYPE_INT64 = 11,
    SOTTO_GGUF_TYPE_FLOAT64 = 12,
    SOTTO_GGUF_TYPE_COUNT
};

/* "u8", "str", "arr", ...; NULL outside the list. Bytes of a value; 0 for strings, arrays and unknown types. */
SOTTO_API const char * sotto_gguf_type_name(enum sotto_gguf_type type);
SOTTO_API size_t sotto_gguf_type_size(enum sotto_gguf_type type);

/* Position in the file at which this thread's newest GGUF error was found; 0 if it has none. */
SOTTO_API uint64_t sotto_gguf_last_error_pos(void);

/* For loaders of models: what a failure of the container means for the model in it. IO, MODEL_FORMAT (not GGUF),
 * MODEL_VERSION, MODEL_TRUNCATED, MODEL_TENSOR_TYPE, MODEL_TENSOR_DUPLICATE, and MODEL_CORRUPT for all else; MEMORY and
 * LIMIT stay what they are. */
SOTTO_API enum sotto_status sotto_gguf_model_status(enum sotto_status status);

/* ---- opening ---- */

/* What becomes of the tensors:
 *   ctx NULL                 only pairs and infos are read; data need not exist
 *   ctx set, no_alloc true   *ctx receives a new context with one tensor per info, without data
 *   ctx set, no_alloc false  likewise with data, which lies in a first tensor "GGUF tensor data binary blob"
 * The caller frees *ctx with sotto_free; it may live longer than the GGUF context. On failure it is NULL. */
struct sotto_gguf_init_params {
    bool no_alloc;
    struct sotto_context ** ctx;
};

enum sotto_gguf_open_flag {
    SOTTO_GGUF_OPEN_STRICT = 1,        /* refuse what the format's description does not allow though readers accept it:
                                         bools other than 0 and 1, text that is not UTF-8, keys outside [a-z0-9_.-],
                                         nameless tensors */
    SOTTO_GGUF_OPEN_MMAP = 2,          /* map the data of a file instead of reading it, where that is possible */
    SOTTO_GGUF_OPEN_SWAP = 4,          /* accept files in the other byte order (else ENDIAN) */
    SOTTO_GGUF_OPEN_TAIL_PAD = 8,      /* the padding after the last tensor may be missing */
    SOTTO_GGUF_OPEN_CHECK_EXTENT = 16, /* demand that the data is there, by size, even if it is not read now */
    SOTTO_GGUF_OPEN_POPULATE = 32      /* with MMAP: have all mapped pages in before returning */
};

/* All zero: as sotto_gguf_init_from_file with metadata only. */
struct sotto_gguf_open_params {
    uint32_t size;  /* sizeof(struct sotto_gguf_open_params); 0 means its first form, this one */
    uint32_t flags; /* enum sotto_gguf_open_flag; unknown bits: PARAM */
    struct sotto_context ** ctx;
    bool no_alloc;
    uint64_t max_string;                      /* bytes of one string, 0 = 2^30 */
    uint64_t max_array;                       /* elements of one array, 0 = 2^30 */
    uint64_t max_kv;                          /* pairs, 0 = 2^20 */
    uint64_t max_tensors;                     /* 0 = 2^20 */
    uint64_t max_meta_bytes;                  /* everything before the data, 0 = 2^32 */
    uint64_t start;                           /* where the container begins in the file */
    const struct sotto_allocator * allocator; /* for the context and *ctx; NULL = default */
};
SOTTO_API struct sotto_gguf_open_params sotto_gguf_open_params_default(void);

/* MMAP matters when data is wanted from a path. Tensors of *ctx then point into the file, which is mapped read-only:
 * there is no blob, they must not be written to, and neither they nor *ctx may be used after sotto_gguf_free. Reading is
 * used instead, silently, when the file is no regular one, needs a byte swap, holds a tensor at an address that is no
 * multiple of its natural alignment, or cannot be mapped; sotto_gguf_is_mapped tells. A mapped file that somebody else
 * cuts short ends the process with a signal when it is used: read files from places you do not control. Files that are
 * replaced by a rename, as sotto's own writers do it, are safe.
 *
 * SWAP turns every number of a file in the other byte order, of metadata and tensors, into the machine's; version 3
 * only. Tensors of q5_0, q5_1 and the iq types but iq4_nl have no agreed form in it: ENDIAN when their data is wanted. */

/* Open a file. It stays open, for sotto_gguf_read_tensor, until the context is freed. params NULL: the defaults.
 * NULL on failure, and then nothing stays behind. */
SOTTO_API struct sotto_gguf_context * sotto_gguf_open(const char * path, const struct sotto_gguf_open_params * params);
/* The same from memory, which is copied as far as needed and may go away afterwards. */
SOTTO_API struct sotto_gguf_context * sotto_gguf_open_buffer(const void * data, size_t size,
                                                             const struct sotto_gguf_open_params * params);

/* The field's functions. None keeps its source open. */
SOTTO_API struct sotto_gguf_context * sotto_gguf_init_empty(void);
SOTTO_API struct sotto_gguf_context * sotto_gguf_init_empty_ext(const struct sotto_allocator * allocator);
SOTTO_API struct sotto_gguf_context * sotto_gguf_init_from_file(const char * path,
                                                                struct sotto_gguf_init_params params);
/* From the current position, which becomes position 0; the stream must be binary and seekable, stays open and is left
 * at an unspecified position. */
SOTTO_API struct sotto_gguf_context * sotto_gguf_init_from_file_ptr(FILE * file, struct sotto_gguf_init_params params);
SOTTO_API struct sotto_gguf_context * sotto_gguf_init_from_buffer(const void * data, size_t size,
                                                                  struct sotto_gguf_init_params params);
/* Reads `len` bytes at `offset` from the container's start to `output` and returns how many it delivered; fewer than
 * `len` means the end. Offsets ascend, each byte is asked for once, len is 1..max_chunk_read (0 = unbounded). */
typedef size_t (*sotto_gguf_reader_callback_t)(void * user_data, void * output, uint64_t offset, size_t len);
SOTTO_API struct sotto_gguf_context * sotto_gguf_init_from_callback(sotto_gguf_reader_callback_t callback,
                                                                    void * user_data, size_t max_chunk_read,
                                                                    uint64_t max_expected_size,
                                                                    struct sotto_gguf_init_params params);
SOTTO_API void sotto_gguf_free(struct sotto_gguf_context * ctx); /* NULL is allowed */

/* Copy `size` bytes from byte `offset` of tensor `id` to `dst`, straight from the file, so that a loader can go through
 * tensors with one small buffer. For contexts from sotto_gguf_open (else STATE). PARAM (id), BOUNDS (outside the
 * tensor), IO_READ, TRUNCATED (the data is not all there). */
SOTTO_API enum sotto_status sotto_gguf_read_tensor(const struct sotto_gguf_context * ctx, int64_t id, void * dst,
                                                   size_t offset, size_t size);

/* ---- looking ----
 *
 * Ids are 0..n-1 in the order of the file. An id outside records PARAM and returns 0, NULL, -1 or COUNT. Pointers live
 * until the context is freed or, for pairs, changed. */

SOTTO_API uint32_t sotto_gguf_get_version(const struct sotto_gguf_context * ctx);
SOTTO_API size_t sotto_gguf_get_alignment(const struct sotto_gguf_context * ctx);
SOTTO_API size_t sotto_gguf_get_data_offset(const struct sotto_gguf_context * ctx); /* of the data, in the source */
SOTTO_API void * sotto_gguf_get_data(const struct sotto_gguf_context * ctx);      /* blob or mapping, NULL if neither */
SOTTO_API size_t sotto_gguf_get_data_size(const struct sotto_gguf_context * ctx); /* all tensors with padding */

SOTTO_API bool sotto_gguf_is_mapped(const struct sotto_gguf_context * ctx);  /* the data lies in the mapped file */
SOTTO_API bool sotto_gguf_is_swapped(const struct sotto_gguf_context * ctx); /* the file has the other byte order */

SOTTO_API int64_t sotto_gguf_get_n_kv(const struct sotto_gguf_context * ctx);
SOTTO_API int64_t sotto_gguf_find_key(const struct sotto_gguf_context * ctx, const char * key); /* -1 if absent */
SOTTO_API const char * sotto_gguf_get_key(const struct sotto_gguf_context * ctx, int64_t id);
SOTTO_API enum sotto_gguf_type sotto_gguf_get_kv_type(const struct sotto_gguf_context * ctx, int64_t id);
/* Type of the elements; COUNT and VALUE_TYPE if it is no array. */
SOTTO_API enum sotto_gguf_type sotto_gguf_get_arr_type(const struct sotto_gguf_context * ctx, int64_t id);

/* Values of exactly that type, single or in an array of one; nothing is converted (VALUE_TYPE). */
SOTTO_API uint8_t sotto_gguf_get_val_u8(const struct sotto_gguf_context * ctx, int64_t id);
SOTTO_API int8_t sotto_gguf_get_val_i8(const struct sotto_gguf_context * ctx, int64_t id);
SOTTO_API uint16_t sotto_gguf_get_val_u16(const struct sotto_gguf_context * ctx, int64_t id);
SOTTO_API int16_t sotto_gguf_get_val_i16(const struct sotto_gguf_context * ctx, int64_t id);
SOTTO_API uint32_t sotto_gguf_get_val_u32(const struct sotto_gguf_context * ctx, int64_t id);
SOTTO_API int32_t sotto_gguf_get_val_i32(const struct sotto_gguf_context * ctx, int64_t id);
SOTTO_API float sotto_gguf_get_val_f32(const struct sotto_gguf_context * ctx, int64_t id);
SOTTO_API uint64_t sotto_gguf_get_val_u64(const struct sotto_gguf_context * ctx, int64_t id);
SOTTO_API int64_t sotto_gguf_get_val_i64(const struct sotto_gguf_context * ctx, int64_t id);
SOTTO_API double sotto_gguf_get_val_f64(const struct sotto_gguf_context * ctx, int64_t id);
SOTTO_API bool sotto_gguf_get_val_bool(const struct sotto_gguf_context * ctx, int64_t id);
SOTTO_API const char * sotto_gguf_get_val_str(const struct sotto_gguf_context * ctx, int64_t id);
SOTTO_API const char * sotto_gguf_get_val_str_n(const struct sotto_gguf_context * ctx, int64_t id, size_t * len);
SOTTO_API const void * sotto_gguf_get_val_data(const struct sotto_gguf_context * ctx, int64_t id); /* not strings */

SOTTO_API size_t sotto_gguf_get_arr_n(const struct sotto_gguf_context * ctx, int64_t id); /* 1 if it is no array */
/* The elements, one after another, aligned to 8 bytes; not for strings. Never NULL for an array. */
SOTTO_API const void * sotto_gguf_get_arr_data(const struct sotto_gguf_context * ctx, int64_t id);
SOTTO_API const char * sotto_gguf_get_arr_str(const struct sotto_gguf_context * ctx, int64_t id, size_t i);
SOTTO_API const char * sotto_gguf_get_arr_str_n(const struct sotto_gguf_context * ctx, int64_t id, size_t i,
                                                size_t * len);

/* For loaders: the value of a key if it is there, single, and of a kind that `out` can hold; else false, without an
 * error. Integers of any width and sign, floats of both widths. */
SOTTO_API bool sotto_gguf_get_uint(const struct sotto_gguf_context * ctx, const char * key, uint64_t * out);
SOTTO_API bool sotto_gguf_get_int(const struct sotto_gguf_context * ctx, const char * key, int64_t * out);
SOTTO_API bool sotto_gguf_get_float(const struct sotto_gguf_context * ctx, const char * key, double * out);
SOTTO_API bool sotto_gguf_get_bool(const struct sotto_gguf_context * ctx, const char * key, bool * out);
SOTTO_API bool sotto_gguf_get_str(const struct sotto_gguf_context * ctx, const char * key, const char ** out);

SOTTO_API int64_t sotto_gguf_get_n_tensors(const struct sotto_gguf_context * ctx);
SOTTO_API int64_t sotto_gguf_find_tensor(const struct sotto_gguf_context * ctx, const char * name); /* -1 if absent */
SOTTO_API const char * sotto_gguf_get_tensor_name(const struct sotto_gguf_context * ctx, int64_t id);
SOTTO_API size_t sotto_gguf_get_tensor_offset(const struct sotto_gguf_context * ctx, int64_t id);      /* in the data */
SOTTO_API const int64_t * sotto_gguf_get_tensor_ne(const struct sotto_gguf_context * ctx, int64_t id); /* four */
SOTTO_API enum sotto_type sotto_gguf_get_tensor_type(const struct sotto_gguf_context * ctx, int64_t id);
SOTTO_API size_t sotto_gguf_get_tensor_size(const struct sotto_gguf_context * ctx, int64_t id); /* bytes, unpadded */

/* ---- changing ----
 *
 * A set replaces a pair of that key and appends the new one at the end, so that ids of later pairs move down by one.
 * Everything is copied. Keys have 1..65,535 bytes (KEY_EMPTY, KEY_LENGTH). `general.alignment` can only be set as a
 * u32 that is a power of two up to 2^24 (ALIGN_TYPE, ALIGN_VALUE); the tensors' offsets follow it. On failure nothing
 * has changed. */

SOTTO_API enum sotto_status sotto_gguf_set_val_u8(struct sotto_gguf_context * ctx, const char * key, uint8_t value);
SOTTO_API enum sotto_status sotto_gguf_set_val_i8(struct sotto_gguf_context * ctx, const char * key, int8_t value);
SOTTO_API enum sotto_status sotto_gguf_set_val_u16(struct sotto_gguf_context * ctx, const char * key, uint16_t value);
SOTTO_API enum sotto_status sotto_gguf_set_val_i16(struct sotto_gguf_context * ctx, const char * key, int16_t value);
SOTTO_API enum sotto_status sotto_gguf_set_val_u32(struct sotto_gguf_context * ctx, const char * key, uint32_t value);
SOTTO_API enum sotto_status sotto_gguf_set_val_i32(struct sotto_gguf_context * ctx, const char * key, int32_t value);
SOTTO_API enum sotto_status sotto_gguf_set_val_f32(struct sotto_gguf_context * ctx, const char * key, float value);
SOTTO_API enum sotto_status sotto_gguf_set_val_u64(struct sotto_gguf_context * ctx, const char * key, uint64_t value);
SOTTO_API enum sotto_status sotto_gguf_set_val_i64(struct sotto_gguf_context * ctx, const char * key, int64_t value);
SOTTO_API enum sotto_status sotto_gguf_set_val_f64(struct sotto_gguf_context * ctx, const char * key, double value);
SOTTO_API enum sotto_status sotto_gguf_set_val_bool(struct sotto_gguf_context * ctx, const char * key, bool value);
SOTTO_API enum sotto_status sotto_gguf_set_val_str(struct sotto_gguf_context * ctx, const char * key,
                                                   const char * value);
SOTTO_API enum sotto_status sotto_gguf_set_val_str_n(struct sotto_gguf_context * ctx, const char * key,
                                                     const char * value, size_t len);
/* `n` elements of a type of fixed size (else VALUE_TYPE); data may be NULL if n is 0. */
SOTTO_API enum sotto_status sotto_gguf_set_arr_data(struct sotto_gguf_context * ctx, const char * key,
                                                    enum sotto_gguf_type type, const void * data, size_t n);
SOTTO_API enum sotto_status sotto_gguf_set_arr_str(struct sotto_gguf_context * ctx, const char * key,
                                                   const char ** strings, size_t n);
/* Remove a pair; the id it had, -1 if absent. */
SOTTO_API int64_t sotto_gguf_remove_key(struct sotto_gguf_context * ctx, const char * key);
/* Set every pair of `src`. */
SOTTO_API enum sotto_status sotto_gguf_set_kv(struct sotto_gguf_context * ctx, const struct sotto_gguf_context * src);

/* Append a tensor: its name, type, axes, and where its data is; the data is read when the file is written. NULLARG,
 * TENSOR_NAME_LENGTH, TENSOR_DUPLICATE, TENSOR_LAYOUT (not contiguous), TENSOR_TYPE, TENSOR_BLOCK, DATA_TOTAL. */
SOTTO_API enum sotto_status sotto_gguf_add_tensor(struct sotto_gguf_context * ctx, const struct sotto_tensor * tensor);
/* Change a tensor's type and with it the later offsets; its data pointer stays. NOT_FOUND, TENSOR_BLOCK. */
SOTTO_API enum sotto_status sotto_gguf_set_tensor_type(struct sotto_gguf_context * ctx, const char * name,
                                                       enum sotto_type type);
/* Where its data is; at least its size must be readable when the file is written. NOT_FOUND. */
SOTTO_API enum sotto_status sotto_gguf_set_tensor_data(struct sotto_gguf_context * ctx, const char * name,
                                                       const void * data);
/* For data made while the file is written: `reader` fills `dst` with `size` bytes from byte `offset` of tensor `id`, in
 * ascending order; a status other than SOTTO_OK ends the writing and is what the write reports. */
typedef enum sotto_status (*sotto_gguf_tensor_reader)(void * user_data, int64_t id, void * dst, size_t offset,
                                                      size_t size);
SOTTO_API enum sotto_status sotto_gguf_set_tensor_reader(struct sotto_gguf_context * ctx, const char * name,
                                                         sotto_gguf_tensor_reader reader, void * user_data);

/* ---- writing ----
 *
 * Version 3, in the byte order of the machine or the one that is set; the bytes depend only on the context. `only_meta` writes everything
 * before the data with its padding, sotto_gguf_get_meta_size bytes: a program may append the tensors itself. Everything
 * is checked before the first byte is written (TENSOR_NODATA, ...). false: IO_OPEN, IO_WRITE, IO_SYNC, IO_RENAME. */

/* In which byte order to write; without this call that of the machine. Types without a form in the other order (see SWAP
 * above) are refused when written (ENDIAN). NULLARG. */
SOTTO_API enum sotto_status sotto_gguf_set_big_endian(struct sotto_gguf_context * ctx, bool big_endian);

enum sotto_gguf_write_flag {
    SOTTO_GGUF_WRITE_FSYNC = SOTTO_FILE_FSYNC,         /* force file and folder to disk before returning */
    SOTTO_GGUF_WRITE_NO_ATOMIC = SOTTO_FILE_NO_ATOMIC, /* write the file itself, without a temporary one */
    SOTTO_GGUF_WRITE_KEEP_MODE = SOTTO_FILE_KEEP_MODE  /* the permissions of a file that is replaced */
};
struct sotto_gguf_write_params {
    uint32_t size;  /* sizeof(struct sotto_gguf_write_params) */
    uint32_t flags; /* enum sotto_gguf_write_flag; unknown bits: PARAM */
    unsigned mode;  /* permissions of a new file before the umask, 0 = 0666 */
};

/* Write a file that appears whole or not at all (sotto/file.h). params NULL: no flags. */
SOTTO_API bool sotto_gguf_write(const struct sotto_gguf_context * ctx, const char * path, bool only_meta,
                                const struct sotto_gguf_write_params * params);
SOTTO_API bool sotto_gguf_write_to_file(const struct sotto_gguf_context * ctx, const char * path, bool only_meta);
/* Write at the stream's current position, without seeking, and flush it. */
SOTTO_API bool sotto_gguf_write_to_file_ptr(const struct sotto_gguf_context * ctx, FILE * file, bool only_meta);
SOTTO_API size_t sotto_gguf_get_meta_size(const struct sotto_gguf_context * ctx);
/* Exactly that many bytes. NULLARG. */
SOTTO_API enum sotto_status sotto_gguf_get_meta_data(const struct sotto_gguf_context * ctx, void * data);

#ifdef __cplusplus
}
#endif
#endif
