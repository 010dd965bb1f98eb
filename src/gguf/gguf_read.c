/* SPDX-License-Identifier: MIT */
/* The parser: once through the file, in its order, stopping at the first fault.
 *
 * The file is hostile until proven otherwise. Every number is compared with what is left of the file, by subtraction or
 * division, before anything is allocated, multiplied or positioned with it; and no table is sized by a number from the
 * file. */
#include <string.h>

#include "gguf/gguf_parser.h"

#define MIN_PAIR 14 /* length 8, key 1, type 4, value 1 */
#define MIN_INFO 24 /* length 8, axes 4, type 4, offset 8 */

/* A version whose low half is zero is that of a file in the other byte order. */
static enum sotto_status take_byte_order(struct gguf_parser * p, uint32_t * version) {
    if (*version == 0 || (*version & 0xFFFF) != 0)
        return SOTTO_OK;
    uint32_t read = *version;
    sotto_i_gguf_swap(version, sizeof(*version), 1);
    p->ctx->swapped = (p->params->flags & SOTTO_GGUF_OPEN_SWAP) != 0;
    if (p->ctx->swapped)
        return SOTTO_OK;
    return sotto_i_gguf_fail(4, SOTTO_E_GGUF_ENDIAN,
                             "gguf: %s has the other byte order: its version reads 0x%08lx, swapped %lu; open it with "
                             "SOTTO_GGUF_OPEN_SWAP",
                             p->source->name, (unsigned long)read, (unsigned long)*version);
}

static enum sotto_status check_version(struct gguf_parser * p, uint32_t version) {
    const char * name = p->source->name;
    if (version == 0)
        return sotto_i_gguf_fail(4, SOTTO_E_GGUF_VERSION_ZERO, "gguf: %s has version 0; read are 2 and 3", name);
    enum sotto_status status = take_byte_order(p, &version);
    if (status != SOTTO_OK)
        return status;
    if (version == 1 || (version == 2 && p->ctx->swapped))
        return sotto_i_gguf_fail(4, SOTTO_E_GGUF_VERSION_OLD, "gguf: %s has version %lu; read are 2 and 3%s", name,
                                 (unsigned long)version, p->ctx->swapped ? ", and 3 alone in this byte order" : "");
    if (version > SOTTO_GGUF_VERSION)
        return sotto_i_gguf_fail(4, SOTTO_E_GGUF_VERSION_NEW, "gguf: %s has version %lu; read are 2 and 3", name,
                                 (unsigned long)version);
    p->ctx->version = version;
    return SOTTO_OK;
}

static enum sotto_status bad_count(struct gguf_parser * p, bool tensors, uint64_t count, uint64_t most) {
    return sotto_i_gguf_fail(tensors ? 8 : 16, tensors ? SOTTO_E_GGUF_COUNT_TENSORS : SOTTO_E_GGUF_COUNT_KV,
                             "gguf: %s: %lld %s; a file of %llu bytes can hold %llu", p->source->name, (long long)count,
                             tensors ? "tensors" : "pairs", (unsigned long long)p->source->size,
                             (unsigned long long)most);
}

static enum sotto_status check_counts(struct gguf_parser * p, uint64_t n_tensors, uint64_t n_kv) {
    uint64_t left = sotto_i_gguf_left(p->source);
    if (n_tensors > INT64_MAX)
        return bad_count(p, true, n_tensors, left / MIN_INFO);
    if (n_kv > left / MIN_PAIR)
        return bad_count(p, false, n_kv, left / MIN_PAIR);
    uint64_t most = (left - n_kv * MIN_PAIR) / MIN_INFO;
    if (n_tensors > most)
        return bad_count(p, true, n_tensors, most);
    if (n_kv > p->params->max_kv || n_tensors > p->params->max_tensors)
        return sotto_i_gguf_fail(8, SOTTO_E_LIMIT,
                                 "gguf: %s: %llu tensors and %llu pairs; max_tensors is %llu, max_kv %llu",
                                 p->source->name, (unsigned long long)n_tensors, (unsigned long long)n_kv,
                                 (unsigned long long)p->params->max_tensors, (unsigned long long)p->params->max_kv);
    return SOTTO_OK;
}

static enum sotto_status read_header(struct gguf_parser * p, uint64_t * n_tensors, uint64_t * n_kv) {
    char magic[4];
    uint32_t version;
    enum sotto_status status = sotto_i_gguf_field(p, magic, sizeof(magic), "the magic");
    if (status == SOTTO_OK && memcmp(magic, SOTTO_GGUF_MAGIC, sizeof(magic)) != 0)
        status = sotto_i_gguf_fail(0, SOTTO_E_GGUF_MAGIC, "gguf: %s begins with '%s', not 'GGUF'", p->source->name,
                                   sotto_i_gguf_show(magic, sizeof(magic)).text);
    if (status == SOTTO_OK)
        status = sotto_i_gguf_field(p, &version, sizeof(version), "the version");
    if (status == SOTTO_OK)
        status = check_version(p, version);
    if (status == SOTTO_OK)
        status = sotto_i_gguf_u64(p, n_tensors, "the number of tensors");
    if (status == SOTTO_OK)
        status = sotto_i_gguf_u64(p, n_kv, "the number of pairs");
    return status == SOTTO_OK ? check_counts(p, *n_tensors, *n_kv) : status;
}

/* Where the data begins: after the padding, which must be there if there is a tensor. */
static enum sotto_status find_data(struct gguf_parser * p) {
    struct sotto_gguf_context * ctx = p->ctx;
    uint64_t end = p->source->pos;
    ctx->data_offset = end;
    if (ctx->n_info == 0)
        return SOTTO_OK;
    if (!sotto_i_gguf_align(end, ctx->alignment, &ctx->data_offset) || ctx->data_offset > p->source->size)
        return sotto_i_gguf_fail(end, SOTTO_E_GGUF_DATA_START,
                                 "gguf: %s: the tensors begin at byte %llu, the file has %llu", p->source->name,
                                 (unsigned long long)ctx->data_offset, (unsigned long long)p->source->size);
    return SOTTO_OK;
}

enum sotto_status sotto_i_gguf_parse(struct sotto_gguf_context * ctx, struct gguf_source * source,
                                     const struct sotto_gguf_open_params * params) {
    struct gguf_parser p = { ctx, source, params, (params->flags & SOTTO_GGUF_OPEN_STRICT) != 0, 0 };
    uint64_t n_tensors = 0;
    uint64_t n_kv = 0;
    enum sotto_status status = read_header(&p, &n_tensors, &n_kv);
    for (uint64_t i = 0; i < n_kv && status == SOTTO_OK; i++)
        status = sotto_i_gguf_read_pair(&p, (size_t)i);
    if (status == SOTTO_OK)
        status = sotto_i_gguf_take_alignment(&p);
    for (uint64_t i = 0; i < n_tensors && status == SOTTO_OK; i++)
        status = sotto_i_gguf_read_info(&p, (size_t)i);
    return status == SOTTO_OK ? find_data(&p) : status;
}
