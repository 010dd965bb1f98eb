/* SPDX-License-Identifier: MIT */
/* GGUF files.
 *
 * Property: whatever the bytes are, a file opens or is refused with a status of its own, at the same place and with the
 * same content from memory, a path, a mapping, a stream and a callback; it takes no more memory than a small multiple of
 * its size and leaves nothing. What opens can be looked at with every getter, and what is written of it, in both byte
 * orders, reads as the same again. With memory that runs out, low limits or a source that ends before it said, it opens as
 * the same or is refused. */
#include <string.h>
#include <unistd.h>

#include "fuzz/fuzz.h"
#include "sotto/gguf.h"

const size_t fuzz_replays = 1000;

static struct counting_allocator memory;
static struct fuzz_file place = { .fd = -1 };

struct input {
    const uint8_t * bytes;
    size_t n;
};

/* ---- ways in ---- */

enum way { BUFFER, PATH, MAPPED, STREAM, CALLBACK, INIT_FILE, INIT_BUFFER, N_WAYS };

static size_t deliver(void * user_data, void * output, uint64_t offset, size_t len) {
    const struct input * in = user_data;
    size_t n = offset >= in->n ? 0 : in->n - (size_t)offset;
    n = n < len ? n : len;
    if (n > 0)
        memcpy(output, in->bytes + offset, n);
    return n;
}

static struct sotto_gguf_context * open_stream(struct sotto_gguf_init_params init) {
    FILE * file = fopen(place.path, "rb");
    fuzz_holds(file != NULL);
    struct sotto_gguf_context * gguf = sotto_gguf_init_from_file_ptr(file, init);
    fclose(file);
    return gguf;
}

static struct sotto_gguf_context * open_way(enum way way, struct input in, struct sotto_context ** tensors,
                                            uint32_t flags) {
    struct sotto_gguf_open_params params = sotto_gguf_open_params_default();
    struct sotto_gguf_init_params init = { .ctx = tensors };
    params.flags = flags | (way == MAPPED ? SOTTO_GGUF_OPEN_MMAP : 0);
    params.ctx = tensors;
    sotto_clear_last_error();
    switch (way) {
    case BUFFER: return sotto_gguf_open_buffer(in.bytes, in.n, &params);
    case PATH:
    case MAPPED: return sotto_gguf_open(place.path, &params);
    case STREAM: return open_stream(init);
    case INIT_FILE: return sotto_gguf_init_from_file(place.path, init);
    case INIT_BUFFER: return sotto_gguf_init_from_buffer(in.bytes, in.n, init);
    default: return sotto_gguf_init_from_callback(deliver, &in, 5, in.n, init);
    }
}

/* ---- what was read ---- */

static uint64_t mix(uint64_t digest, const void * bytes, size_t n) {
    const uint8_t * b = bytes;
    for (size_t i = 0; i < n; i++)
        digest = (digest ^ b[i]) * 0x100000001b3u;
    return digest;
}

static uint64_t look_at_strings(const struct sotto_gguf_context * gguf, int64_t id, size_t n, uint64_t digest) {
    for (size_t i = 0; i < n; i++) {
        size_t len;
        const char * text = sotto_gguf_get_arr_str_n(gguf, id, i, &len);
        fuzz_holds(text != NULL && text[len] == 0 && sotto_gguf_get_arr_str(gguf, id, i) == text);
        digest = mix(digest, text, len + 1);
    }
    fuzz_holds(sotto_gguf_get_arr_str(gguf, id, n) == NULL && sotto_last_error() != SOTTO_OK);
    return digest;
}

static uint64_t look_at_array(const struct sotto_gguf_context * gguf, int64_t id, uint64_t digest) {
    const enum sotto_gguf_type type = sotto_gguf_get_arr_type(gguf, id);
    const size_t n = sotto_gguf_get_arr_n(gguf, id);
    digest = mix(digest, &type, sizeof(type));
    if (type == SOTTO_GGUF_TYPE_STRING)
        return look_at_strings(gguf, id, n, digest);
    const uint8_t * data = sotto_gguf_get_arr_data(gguf, id);
    fuzz_holds(data != NULL && (uintptr_t)data % 8 == 0);
    return mix(digest, data, n * sotto_gguf_type_size(type));
}

/* The getter of a single value's own type gives what the untyped one does; the others refuse. */
static uint64_t look_at_value(const struct sotto_gguf_context * gguf, int64_t id, enum sotto_gguf_type own,
                              uint64_t digest) {
#define GETTER(TYPE, suffix, ctype)                                                            \
    {                                                                                          \
        sotto_clear_last_error();                                                              \
        const ctype value = sotto_gguf_get_val_##suffix(gguf, id);                             \
        fuzz_holds((sotto_last_error() == SOTTO_OK) == (own == SOTTO_GGUF_TYPE_##TYPE));       \
        if (own == SOTTO_GGUF_TYPE_##TYPE)                                                     \
            fuzz_holds(memcmp(&value, sotto_gguf_get_val_data(gguf, id), sizeof(value)) == 0); \
    }
    GETTER(UINT8, u8, uint8_t)
    GETTER(INT8, i8, int8_t)
    GETTER(UINT16, u16, uint16_t)
    GETTER(INT16, i16, int16_t)
    GETTER(UINT32, u32, uint32_t)
    GETTER(INT32, i32, int32_t)
    GETTER(FLOAT32, f32, float)
    GETTER(BOOL, bool, bool)
    GETTER(UINT64, u64, uint64_t)
    GETTER(INT64, i64, int64_t)
    GETTER(FLOAT64, f64, double)
#undef GETTER
    size_t len = 0;
    sotto_clear_last_error();
    const char * text = sotto_gguf_get_val_str_n(gguf, id, &len);
    fuzz_holds((text != NULL) == (own == SOTTO_GGUF_TYPE_STRING));
    if (text != NULL)
        return mix(digest, text, len + 1);
    return mix(digest, sotto_gguf_get_val_data(gguf, id), sotto_gguf_type_size(own));
}

/* For loaders: found only if the value fits. */
static void look_as_loaders(const struct sotto_gguf_context * gguf, const char * key, enum sotto_gguf_type type) {
    uint64_t u;
    int64_t i;
    double f;
    bool b;
    const char * s = NULL;
    sotto_gguf_get_uint(gguf, key, &u);
    sotto_gguf_get_int(gguf, key, &i);
    fuzz_holds(sotto_gguf_get_float(gguf, key, &f) ==
               (type == SOTTO_GGUF_TYPE_FLOAT32 || type == SOTTO_GGUF_TYPE_FLOAT64));
    fuzz_holds(sotto_gguf_get_bool(gguf, key, &b) == (type == SOTTO_GGUF_TYPE_BOOL));
    fuzz_holds(sotto_gguf_get_str(gguf, key, &s) == (type == SOTTO_GGUF_TYPE_STRING && s != NULL));
}

static uint64_t look_at_pairs(const struct sotto_gguf_context * gguf, uint64_t digest) {
    const int64_t n = sotto_gguf_get_n_kv(gguf);
    for (int64_t id = 0; id < n; id++) {
        const char * key = sotto_gguf_get_key(gguf, id);
        const enum sotto_gguf_type type = sotto_gguf_get_kv_type(gguf, id);
        fuzz_holds(key != NULL && sotto_gguf_find_key(gguf, key) == id);
        fuzz_holds(sotto_gguf_type_name(type) != NULL);
        look_as_loaders(gguf, key, type);
        digest = mix(mix(digest, key, strlen(key) + 1), &type, sizeof(type));
        digest =
            type == SOTTO_GGUF_TYPE_ARRAY ? look_at_array(gguf, id, digest) : look_at_value(gguf, id, type, digest);
    }
    fuzz_holds(sotto_gguf_get_key(gguf, n) == NULL && sotto_gguf_get_key(gguf, -1) == NULL);
    return digest;
}

static uint64_t look_at_tensors(const struct sotto_gguf_context * gguf, struct sotto_context * tensors,
                                uint64_t digest) {
    const int64_t n = sotto_gguf_get_n_tensors(gguf);
    for (int64_t id = 0; id < n; id++) {
        const char * name = sotto_gguf_get_tensor_name(gguf, id);
        const size_t size = sotto_gguf_get_tensor_size(gguf, id);
        const size_t offset = sotto_gguf_get_tensor_offset(gguf, id);
        const enum sotto_type type = sotto_gguf_get_tensor_type(gguf, id);
        fuzz_holds(name != NULL && sotto_gguf_find_tensor(gguf, name) == id);
        fuzz_holds(offset % sotto_gguf_get_alignment(gguf) == 0);
        digest = mix(mix(digest, name, strlen(name) + 1), &type, sizeof(type));
        digest = mix(digest, sotto_gguf_get_tensor_ne(gguf, id), SOTTO_MAX_DIMS * sizeof(int64_t));
        if (tensors == NULL)
            continue;
        const struct sotto_tensor * t = sotto_get_tensor(tensors, name);
        fuzz_holds(t != NULL && sotto_nbytes(t) == size && t->type == type);
        digest = mix(digest, t->data, size);
    }
    fuzz_holds(sotto_gguf_get_tensor_name(gguf, n) == NULL && sotto_gguf_get_tensor_ne(gguf, -1) == NULL);
    return digest;
}

static uint64_t look(const struct sotto_gguf_context * gguf, struct sotto_context * tensors) {
    fuzz_holds(sotto_gguf_get_version(gguf) == 2 || sotto_gguf_get_version(gguf) == 3);
    const uint64_t alignment = sotto_gguf_get_alignment(gguf);
    fuzz_holds(alignment > 0 && (alignment & (alignment - 1)) == 0);
    return look_at_tensors(gguf, tensors, look_at_pairs(gguf, mix(1, &alignment, sizeof(alignment))));
}

/* ---- written again ---- */

static void give_data(struct sotto_gguf_context * gguf, struct sotto_context * tensors) {
    for (int64_t id = 0; tensors != NULL && id < sotto_gguf_get_n_tensors(gguf); id++) {
        const char * name = sotto_gguf_get_tensor_name(gguf, id);
        fuzz_holds(sotto_gguf_set_tensor_data(gguf, name, sotto_get_tensor(tensors, name)->data) == SOTTO_OK);
    }
}

/* Refused only where the other byte order has no form for a type. */
static void write_and_compare(struct sotto_gguf_context * gguf, bool only_meta, bool big_endian, uint64_t digest) {
    char * text = NULL;
    size_t n = 0;
    FILE * file = open_memstream(&text, &n);
    fuzz_holds(file != NULL && sotto_gguf_set_big_endian(gguf, big_endian) == SOTTO_OK);
    const bool written = sotto_gguf_write_to_file_ptr(gguf, file, only_meta);
    fclose(file);
    fuzz_holds(written || (big_endian && sotto_last_error() == SOTTO_E_GGUF_ENDIAN));
    if (written) {
        struct sotto_context * tensors = NULL;
        struct input in = { (const uint8_t *)text, n };
        struct sotto_gguf_context * again = open_way(BUFFER, in, only_meta ? NULL : &tensors, SOTTO_GGUF_OPEN_SWAP);
        fuzz_holds(again != NULL && sotto_gguf_is_swapped(again) == big_endian);
        fuzz_holds(look(again, tensors) == digest);
        if (only_meta)
            fuzz_holds(n == sotto_gguf_get_meta_size(gguf));
        sotto_gguf_free(again);
        sotto_free(tensors);
    }
    free(text);
}

/* ---- opening in a mode ---- */

struct outcome {
    enum sotto_status status;
    uint64_t pos, digest;
};

/* Straight from the file, piece by piece. */
static void read_tensors(const struct sotto_gguf_context * gguf, struct sotto_context * tensors) {
    for (int64_t id = 0; id < sotto_gguf_get_n_tensors(gguf); id++) {
        const struct sotto_tensor * t = sotto_get_tensor(tensors, sotto_gguf_get_tensor_name(gguf, id));
        const size_t size = sotto_gguf_get_tensor_size(gguf, id);
        uint8_t piece[64];
        for (size_t at = 0; at < size; at += sizeof(piece)) {
            const size_t n = size - at < sizeof(piece) ? size - at : sizeof(piece);
            fuzz_holds(sotto_gguf_read_tensor(gguf, id, piece, at, n) == SOTTO_OK);
            fuzz_holds(memcmp(piece, (const uint8_t *)t->data + at, n) == 0);
        }
        fuzz_holds(sotto_gguf_read_tensor(gguf, id, piece, size, 1) == SOTTO_E_BOUNDS);
    }
}

static struct outcome open_once(enum way way, struct input in, bool data, uint32_t flags) {
    struct sotto_context * tensors = NULL;
    struct sotto_gguf_context * gguf = open_way(way, in, data ? &tensors : NULL, flags);
    struct outcome out = { sotto_last_error(), sotto_gguf_last_error_pos(), 0 };
    fuzz_holds((gguf != NULL) == (out.status == SOTTO_OK));
    fuzz_holds((tensors != NULL) == (gguf != NULL && data));
    fuzz_holds(atomic_load(&memory.peak) <= 64 * 1024 + 17 * (long long)in.n);
    if (gguf != NULL) {
        out.digest = look(gguf, tensors);
        if (way == PATH && data && !sotto_gguf_is_swapped(gguf))
            read_tensors(gguf, tensors);
        if (way == BUFFER && sotto_gguf_get_alignment(gguf) <= 4096) {
            give_data(gguf, tensors);
            write_and_compare(gguf, !data, false, out.digest);
            write_and_compare(gguf, !data, true, out.digest);
        }
    }
    sotto_free(tensors);
    sotto_gguf_free(gguf);
    fuzz_memory_done(&memory);
    atomic_store(&memory.peak, 0);
    return out;
}

static struct outcome open_everywhere(struct input in, bool data) {
    const struct outcome first = open_once(BUFFER, in, data, 0);
    for (int way = PATH; way < N_WAYS; way++) {
        const struct outcome other = open_once((enum way)way, in, data, 0);
        fuzz_holds(other.status == first.status && other.digest == first.digest);
        fuzz_holds(first.status == SOTTO_OK || other.pos == first.pos);
    }
    return first;
}

/* ---- worse conditions ---- */

/* What could not be opened has left nothing; what could is what it is under good ones. */
static void open_badly(struct sotto_gguf_context * gguf, struct sotto_context * tensors, struct outcome good) {
    fuzz_holds((gguf != NULL) == (sotto_last_error() == SOTTO_OK) && (tensors != NULL) == (gguf != NULL));
    if (gguf != NULL)
        fuzz_holds(good.status == SOTTO_OK && look(gguf, tensors) == good.digest);
    sotto_free(tensors);
    sotto_gguf_free(gguf);
    fuzz_memory_done(&memory);
}

static void run_out_of_memory(struct input in, struct outcome good) {
    struct sotto_context * tensors = NULL;
    atomic_store(&memory.refuse, atomic_load(&memory.requests) + 1 + (long)(in.n % 13));
    struct sotto_gguf_context * gguf = open_way(in.n % 2 == 0 ? BUFFER : PATH, in, &tensors, 0);
    atomic_store(&memory.refuse, 0);
    open_badly(gguf, tensors, good);
}

static void meet_limits(struct input in, struct outcome good) {
    struct sotto_context * tensors = NULL;
    struct sotto_gguf_open_params params = sotto_gguf_open_params_default();
    params.ctx = &tensors;
    params.max_string = 12;
    params.max_array = 3;
    params.max_kv = 4;
    params.max_tensors = 2;
    params.max_meta_bytes = 200;
    sotto_clear_last_error();
    struct sotto_gguf_context * gguf = sotto_gguf_open_buffer(in.bytes, in.n, &params);
    open_badly(gguf, tensors, good);
}

static void end_too_early(struct input in, struct outcome good) {
    struct sotto_context * tensors = NULL;
    struct sotto_gguf_init_params init = { .ctx = &tensors };
    struct input less = { in.bytes, in.n - in.n / 3 };
    sotto_clear_last_error();
    struct sotto_gguf_context * gguf = sotto_gguf_init_from_callback(deliver, &less, 0, in.n, init);
    open_badly(gguf, tensors, good);
}

int LLVMFuzzerTestOneInput(const uint8_t * bytes, size_t n) {
    if (place.fd < 0) {
        place = fuzz_file_new();
        counting_allocator_init(&memory);
        fuzz_holds(sotto_set_default_allocator(&memory.base) == SOTTO_OK);
    }
    const struct input in = { bytes, n };
    fuzz_file_set(&place, bytes, n);
    if (n == 0)
        return 0;
    const struct outcome meta = open_everywhere(in, false), data = open_everywhere(in, true);
    run_out_of_memory(in, data);
    meet_limits(in, data);
    end_too_early(in, data);
    const struct outcome strict = open_once(BUFFER, in, false, SOTTO_GGUF_OPEN_STRICT);
    fuzz_holds(strict.status != SOTTO_OK || (meta.status == SOTTO_OK && meta.digest == strict.digest));
    open_once(BUFFER, in, true, SOTTO_GGUF_OPEN_SWAP | SOTTO_GGUF_OPEN_TAIL_PAD);
    open_once(PATH, in, false, SOTTO_GGUF_OPEN_SWAP | SOTTO_GGUF_OPEN_CHECK_EXTENT);
    return 0;
}
