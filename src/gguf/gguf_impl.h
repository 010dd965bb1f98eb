/* SPDX-License-Identifier: MIT */
/* A GGUF file in memory, as reader, setters and writer share it.
 *
 *   context ─ kv[]    key ─ value     scalars inside the record, arrays and strings in one block each
 *           ─ info[]  name ─ type, axes, offset, where the data is
 *
 * Both lists are in file order; a hash index beside each finds names. Records begin with their name, so one index
 * serves both. */
#ifndef SOTTO_GGUF_IMPL_H
#define SOTTO_GGUF_IMPL_H

#include "sotto/backend.h"
#include "sotto/gguf.h"

#define GGUF_MAX_KEY         65535
#define GGUF_MAX_ALIGNMENT   (1u << 24)
#define GGUF_MAX_TENSOR_NAME (SOTTO_MAX_NAME - 1)

/* Value types of fixed size.   X(NAME, suffix, C type) */
#define GGUF_FIXED_TYPES(X)  \
    X(UINT8, u8, uint8_t)    \
    X(INT8, i8, int8_t)      \
    X(UINT16, u16, uint16_t) \
    X(INT16, i16, int16_t)   \
    X(UINT32, u32, uint32_t) \
    X(INT32, i32, int32_t)   \
    X(FLOAT32, f32, float)   \
    X(BOOL, bool, bool)      \
    X(UINT64, u64, uint64_t) \
    X(INT64, i64, int64_t)   \
    X(FLOAT64, f64, double)

struct gguf_name {
    char * text; /* len bytes and a 0 */
    size_t len;
};

struct gguf_kv {
    struct gguf_name key;
    enum sotto_gguf_type type; /* of the elements */
    bool is_array;
    size_t n; /* elements, 1 for a single value */
    union {
        uint64_t u64;
        uint32_t u32;
        uint8_t bytes[8];
    } scalar;          /* a single value of fixed size; what an empty array points to */
    uint8_t * block;   /* array elements, or strings with a 0 after each; NULL if there are none */
    size_t block_size; /* bytes of it */
    size_t * ends;     /* string arrays: position after each string's 0 */
};

struct gguf_info {
    struct gguf_name name;
    enum sotto_type type;
    int64_t ne[SOTTO_MAX_DIMS];
    uint64_t offset;                 /* in the data section */
    uint64_t size;                   /* bytes without padding */
    uint64_t file_offset, file_size; /* as they were read, for sotto_gguf_read_tensor */
    enum sotto_type file_type;
    bool in_file;
    const void * data;               /* where the data is: in host memory, */
    struct sotto_tensor * tensor;    /* in a backend's buffer (a copy of the record), */
    sotto_gguf_tensor_reader reader; /* or behind a function */
    void * reader_data;
};

/* Open addressing; a slot is hash << 32 | id + 1, or 0. */
struct gguf_index {
    uint64_t seed[2];
    uint64_t * slots;
    size_t n_slots; /* a power of two, or 0 */
};

/* A mapped piece of a file; base NULL if nothing is mapped. */
struct gguf_map {
    void * base;
    size_t size;
};

struct sotto_gguf_context {
    const struct sotto_allocator * allocator;
    uint32_t version;
    size_t alignment;
    struct gguf_kv * kv;
    size_t n_kv, cap_kv;
    struct gguf_index kv_index;
    struct gguf_info * info;
    size_t n_info, cap_info;
    struct gguf_index info_index;
    uint64_t start;       /* of the container in its source */
    uint64_t data_offset; /* of the data section from start */
    uint64_t data_size;   /* of all tensors with padding */
    void * data;          /* blob in the caller's context, or in the mapping */
    int fd;               /* for sotto_gguf_read_tensor, -1 if closed */
    bool swapped;         /* read from the other byte order */
    bool write_swapped;   /* to be written in it */
    struct gguf_map map;
};

/* ---- errors (gguf_context.c) ---- */

/* As sotto_fail, with the position in the file, which the message ends with if it is not 0. */
enum sotto_status sotto_i_gguf_fail(uint64_t pos, enum sotto_status status, const char * format, ...)
    SOTTO_PRINTF(3, 4);
/* A failure that another part of the engine has recorded gets its position. */
enum sotto_status sotto_i_gguf_failed_at(uint64_t pos, enum sotto_status status);

/* Text from a file made fit to print: cut to 80 bytes, odd ones as \xNN. */
struct gguf_shown {
    char text[88];
};
struct gguf_shown sotto_i_gguf_show(const char * text, size_t len);
#define SHOW(name) sotto_i_gguf_show((name).text, (name).len).text

/* ALIGN_VALUE unless a power of two up to GGUF_MAX_ALIGNMENT. */
enum sotto_status sotto_i_gguf_check_alignment(uint32_t alignment, uint64_t pos);

/* x rounded up to a power of two; false if that overflows. */
bool sotto_i_gguf_align(uint64_t x, uint64_t alignment, uint64_t * out);

/* ---- context (gguf_context.c) ---- */

struct sotto_gguf_context * sotto_i_gguf_new(const struct sotto_allocator * allocator);
enum sotto_status sotto_i_gguf_name_set(const struct sotto_allocator * allocator, struct gguf_name * name,
                                        const char * text, size_t len);
void sotto_i_gguf_name_free(const struct sotto_allocator * allocator, struct gguf_name * name);

/* ---- index (gguf_index.c) ---- */

void sotto_i_gguf_index_seed(struct gguf_index * index);
/* Make room for `count` names. */
enum sotto_status sotto_i_gguf_index_reserve(struct gguf_index * index, const struct sotto_allocator * allocator,
                                             size_t count);
/* `records` are those that the index was filled from, `stride` bytes each. -1 if absent. */
int64_t sotto_i_gguf_index_find(const struct gguf_index * index, const void * records, size_t stride, const char * text,
                                size_t len);
void sotto_i_gguf_index_add(struct gguf_index * index, const struct gguf_name * name, size_t id); /* room is there */
void sotto_i_gguf_index_rebuild(struct gguf_index * index, const void * records, size_t stride, size_t n);
void sotto_i_gguf_index_free(struct gguf_index * index, const struct sotto_allocator * allocator);

/* ---- pairs (gguf_kv.c) ---- */

const void * sotto_i_gguf_kv_data(const struct gguf_kv * kv);
const char * sotto_i_gguf_kv_string(const struct gguf_kv * kv, size_t i, size_t * len);
void sotto_i_gguf_kv_free(const struct sotto_allocator * allocator, struct gguf_kv * kv);
/* Room for `more` pairs; then appending cannot fail. Replaces a pair of that key and owns *kv from then on. */
enum sotto_status sotto_i_gguf_kv_reserve(struct sotto_gguf_context * ctx, size_t more);
void sotto_i_gguf_kv_append(struct sotto_gguf_context * ctx, const struct gguf_kv * kv);
void sotto_i_gguf_kv_remove(struct sotto_gguf_context * ctx, size_t id);
int64_t sotto_i_gguf_kv_find(const struct sotto_gguf_context * ctx, const char * key, size_t len);

/* ---- infos (gguf_info.c) ---- */

enum sotto_status sotto_i_gguf_info_reserve(struct sotto_gguf_context * ctx);
void sotto_i_gguf_info_append(struct sotto_gguf_context * ctx, const struct gguf_info * info);
int64_t sotto_i_gguf_info_find(const struct sotto_gguf_context * ctx, const char * name, size_t len);
void sotto_i_gguf_info_free(const struct sotto_allocator * allocator, struct gguf_info * info);
/* Check ne and type and set info->size. Names `pos` in errors. */
enum sotto_status sotto_i_gguf_info_shape(const struct gguf_info * info, uint64_t pos);
enum sotto_status sotto_i_gguf_info_size(struct gguf_info * info, uint64_t pos);
/* Add one tensor's place to a running total; false if that passes 2^64. */
bool sotto_i_gguf_advance(uint64_t * total, uint64_t size, uint64_t alignment);
enum sotto_status sotto_i_gguf_too_large(const struct gguf_info * info);
/* Recompute all offsets for an alignment; changes nothing if they overflow. */
enum sotto_status sotto_i_gguf_place(struct sotto_gguf_context * ctx, size_t alignment);

/* ---- byte order (gguf_swap.c) ---- */

/* Reverse the bytes of each of n values of `width` bytes. */
void sotto_i_gguf_swap(void * values, size_t width, size_t n);
/* Has the type a form in the other byte order? Then turn `size` bytes of whole blocks from one to the other. */
bool sotto_i_gguf_has_other_order(enum sotto_type type);
void sotto_i_gguf_swap_data(enum sotto_type type, void * data, size_t size);
enum sotto_status sotto_i_gguf_no_other_order(const struct gguf_info * info, uint64_t pos, const char * where);
/* What an address of tensor data must be a multiple of. */
size_t sotto_i_gguf_natural_align(enum sotto_type type);

/* ---- mapping (gguf_map.c) ---- */

/* Map `size` bytes at `offset` of a file for reading, touched already if `populate`: where they are, or NULL if that is
 * not possible, for whatever reason. */
void * sotto_i_gguf_map(struct gguf_map * map, int fd, uint64_t offset, uint64_t size, bool populate);
void sotto_i_gguf_unmap(struct gguf_map * map);

/* ---- sources (gguf_source.c, files in gguf_file.c) ---- */

/* Bytes of a container in order. `size` is what the source holds from the container's start, or is said to hold. */
struct gguf_source {
    const struct sotto_allocator * allocator;
    const char * name; /* path, for messages */
    uint64_t size;
    uint64_t pos;   /* of the next byte to deliver */
    uint64_t start; /* of the container in the file */
    /* Fetch up to n bytes at `offset` from the container's start; fewer only at the end. */
    enum sotto_status (*fetch)(struct gguf_source * source, void * dst, uint64_t offset, size_t n, size_t * got);
    const uint8_t * window; /* fetched, not yet delivered */
    size_t window_len;
    uint8_t * own; /* the window's memory */
    int fd;
    FILE * file;
    sotto_gguf_reader_callback_t callback;
    void * user_data;
    size_t max_chunk;
    bool ended; /* the callback delivered less than asked */
};

enum sotto_status sotto_i_gguf_source_path(struct gguf_source * source, const char * path, uint64_t start);
enum sotto_status sotto_i_gguf_source_file(struct gguf_source * source, FILE * file);
void sotto_i_gguf_source_buffer(struct gguf_source * source, const void * data, size_t size, uint64_t start);
void sotto_i_gguf_source_callback(struct gguf_source * source, sotto_gguf_reader_callback_t callback, void * user_data,
                                  size_t max_chunk, uint64_t size);
void sotto_i_gguf_source_close(struct gguf_source * source);
uint64_t sotto_i_gguf_left(const struct gguf_source * source);
/* n bytes, which the caller compared with what is left. */
enum sotto_status sotto_i_gguf_read(struct gguf_source * source, void * dst, uint64_t n);
void sotto_i_gguf_skip(struct gguf_source * source, uint64_t n);
/* Read from a descriptor at an absolute position; *got < n only at the end of the file. */
enum sotto_status sotto_i_gguf_pread(int fd, const char * name, void * dst, uint64_t offset, size_t n, size_t * got);
void sotto_i_gguf_close_fd(int fd);

/* ---- reading (gguf_read.c, gguf_load.c) ---- */

/* Parse everything before the data into an empty context. */
enum sotto_status sotto_i_gguf_parse(struct sotto_gguf_context * ctx, struct gguf_source * source,
                                     const struct sotto_gguf_open_params * params);

/* Make the caller's context of tensors, with their data unless params->no_alloc. */
enum sotto_status sotto_i_gguf_load_tensors(struct sotto_gguf_context * ctx, struct gguf_source * source,
                                            const struct sotto_gguf_open_params * params);

#endif
