/* SPDX-License-Identifier: MIT */
/* Segments show pointers into the text, which moves when it grows; they are renewed then. */
#include <math.h>
#include <string.h>

#include "result.h"

/* Room for `need` items of `size` bytes; arrays at least double, so that appending stays cheap. */
static enum sotto_status reserve(const struct sotto_allocator * allocator, void ** array, size_t * capacity,
                                 size_t need, size_t size) {
    if (need <= *capacity)
        return SOTTO_OK;
    size_t count = *capacity > 16 ? *capacity : 16;
    while (count < need && count <= SIZE_MAX / 2)
        count *= 2;
    if (count < need)
        count = need;
    void * grown = sotto_realloc(allocator, *array, *capacity, count, size);
    if (!grown)
        return SOTTO_E_MEMORY;
    *array = grown;
    *capacity = count;
    return SOTTO_OK;
}

enum sotto_status sotto_i_bytes_append(struct sotto_i_bytes * text, const struct sotto_allocator * allocator,
                                       const char * data, size_t size) {
    void * array = text->data;
    enum sotto_status status = reserve(allocator, &array, &text->capacity, text->size + size + 1, 1);
    text->data = array;
    if (status != SOTTO_OK)
        return status;
    if (size > 0)
        memcpy(text->data + text->size, data, size);
    text->size += size;
    text->data[text->size] = 0;
    return SOTTO_OK;
}

void sotto_i_result_clear(struct sotto_i_result * result) {
    result->text.size = 0;
    result->n_tokens = result->n_segments = result->n_windows = 0;
}

void sotto_i_result_free(struct sotto_i_result * result) {
    const struct sotto_allocator * a = result->allocator;
    sotto_mfree(a, result->text.data, result->text.capacity, 1);
    sotto_mfree(a, result->tokens, result->max_tokens, sizeof(*result->tokens));
    sotto_mfree(a, result->segments, result->max_segments, sizeof(*result->segments));
    sotto_mfree(a, result->windows, result->max_windows, sizeof(*result->windows));
}

static enum sotto_status reserve_tokens(struct sotto_i_result * r, size_t more) {
    void * array = r->tokens;
    enum sotto_status status = reserve(r->allocator, &array, &r->max_tokens, r->n_tokens + more, sizeof(*r->tokens));
    r->tokens = array;
    return status;
}

static enum sotto_status reserve_window(struct sotto_i_result * r) {
    void * array = r->windows;
    enum sotto_status status = reserve(r->allocator, &array, &r->max_windows, r->n_windows + 1, sizeof(*r->windows));
    r->windows = array;
    return status;
}

static enum sotto_status reserve_segment(struct sotto_i_result * r) {
    void * array = r->segments;
    enum sotto_status status = reserve(r->allocator, &array, &r->max_segments, r->n_segments + 1, sizeof(*r->segments));
    r->segments = array;
    return status;
}

enum sotto_status sotto_i_result_add_window(struct sotto_i_result * result, const struct sotto_window * window,
                                            const struct sotto_i_choice * tokens) {
    size_t n = (size_t)window->n_tokens;
    enum sotto_status status = reserve_tokens(result, n);
    if (status == SOTTO_OK)
        status = reserve_window(result);
    if (status != SOTTO_OK)
        return status;
    struct sotto_i_found_window * w = &result->windows[result->n_windows++];
    w->shown = *window;
    w->shown.size = sizeof(w->shown);
    w->token_at = result->n_tokens;
    for (size_t i = 0; i < n; i++) {
        const struct sotto_i_choice * c = &tokens[i];
        result->tokens[result->n_tokens++] = (struct sotto_token_data){ .size = sizeof(*result->tokens),
                                                                        .id = c->id,
                                                                        .p = (float)exp(c->plog),
                                                                        .plog = (float)c->plog,
                                                                        .tid = c->tid,
                                                                        .pt = c->pt,
                                                                        .ptsum = c->ptsum };
    }
    return SOTTO_OK;
}

enum sotto_status sotto_i_result_add_segment(struct sotto_i_result * result, const struct sotto_segment * segment,
                                             const char * text, size_t size, int first, int n) {
    enum sotto_status status = reserve_segment(result);
    const char * before = result->text.data;
    size_t text_at = result->text.size;
    if (status == SOTTO_OK)
        status = sotto_i_bytes_append(&result->text, result->allocator, text, size);
    if (status != SOTTO_OK)
        return status;
    result->text.size++; /* the 0 stays between texts */
    struct sotto_i_found_segment * s = &result->segments[result->n_segments++];
    s->shown = *segment;
    s->shown.size = sizeof(s->shown);
    s->shown.window = (int)result->n_windows - 1;
    s->shown.text_size = size;
    s->shown.n_tokens = n;
    s->shown.text = result->text.data + text_at;
    s->text_at = text_at;
    s->token_at = result->windows[result->n_windows - 1].token_at + (size_t)first;
    if (before != result->text.data)
        for (size_t i = 0; i < result->n_segments; i++)
            result->segments[i].shown.text = result->text.data + result->segments[i].text_at;
    return SOTTO_OK;
}
