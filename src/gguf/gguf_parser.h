/* SPDX-License-Identifier: MIT */
/* The parser's state and its parts. Every part leaves the source behind what it read, or stops at the first fault. */
#ifndef SOTTO_GGUF_PARSER_H
#define SOTTO_GGUF_PARSER_H

#include "gguf/gguf_impl.h"

struct gguf_parser {
    struct sotto_gguf_context * ctx;
    struct gguf_source * source;
    const struct sotto_gguf_open_params * params;
    bool strict;
    uint64_t alignment_pos; /* of the value of general.alignment */
};

/* ---- fields (gguf_fields.c) ---- */

/* `width` bytes as they are; `what` names them in errors. */
enum sotto_status sotto_i_gguf_field(struct gguf_parser * p, void * dst, size_t width, const char * what);
/* Numbers, in the order of the machine. */
enum sotto_status sotto_i_gguf_u32(struct gguf_parser * p, uint32_t * value, const char * what);
enum sotto_status sotto_i_gguf_u64(struct gguf_parser * p, uint64_t * value, const char * what);
/* A string's length, checked. */
enum sotto_status sotto_i_gguf_length(struct gguf_parser * p, uint64_t * len, const char * what);
/* Append n bytes from the source to a block of *size bytes of which `used` are filled, doubling it as bytes arrive. */
enum sotto_status sotto_i_gguf_block(struct gguf_parser * p, uint8_t ** block, size_t * size, size_t used, size_t n);
bool sotto_i_gguf_is_utf8(const uint8_t * s, size_t len);

/* ---- pairs (gguf_read_kv.c), infos (gguf_read_info.c) ---- */

enum sotto_status sotto_i_gguf_read_pair(struct gguf_parser * p, size_t id);
/* After all pairs: the context's alignment. */
enum sotto_status sotto_i_gguf_take_alignment(struct gguf_parser * p);
enum sotto_status sotto_i_gguf_read_info(struct gguf_parser * p, size_t id);

#endif
