/* SPDX-License-Identifier: MIT */
/* Two timestamps side by side end one segment and begin the next; text after the last such pair belongs to the next
 * window, which begins there. A window that ends in a single timestamp, or has no pair, is done with: what follows in
 * it holds no speech, and decoding it again would invent some. */
#include "segment.h"

static bool is_timestamp(const struct sotto_i_cut_params * p, int32_t id) { return id >= p->specials->beg; }

/* A timestamp of the window, in frames of the recording. */
static int64_t frame_of(const struct sotto_i_cut_params * p, int32_t id) {
    return p->seek + 2 * (int64_t)(id - p->specials->beg);
}

static void add_slice(const struct sotto_i_cut_params * p, const int32_t * tokens, int first, int end,
                      struct sotto_i_cut * cut) {
    struct sotto_i_slice * s = &cut->slices[cut->n++];
    s->first = first;
    s->end = end;
    s->t0 = is_timestamp(p, tokens[first]) ? frame_of(p, tokens[first]) : p->seek;
    s->t1 = frame_of(p, tokens[end - 1]);
}

static void add_whole(const struct sotto_i_cut_params * p, int n, int64_t t1, struct sotto_i_cut * cut) {
    cut->slices[cut->n++] = (struct sotto_i_slice){ 0, n, p->seek, t1 };
}

/* The last timestamp above 0.00, or the end of the window. */
static int64_t end_of_speech(const struct sotto_i_cut_params * p, const int32_t * tokens, int n) {
    for (int i = n - 1; i >= 0; i--)
        if (is_timestamp(p, tokens[i]))
            return tokens[i] > p->specials->beg ? frame_of(p, tokens[i]) : p->seek + p->n_frames;
    return p->seek + p->n_frames;
}

/* Cut at pairs; where the last slice ends, 0 if there is no pair. */
static int cut_at_pairs(const struct sotto_i_cut_params * p, const int32_t * tokens, int n, struct sotto_i_cut * cut) {
    int first = 0;
    for (int i = 1; i < n; i++) {
        if (!is_timestamp(p, tokens[i]) || !is_timestamp(p, tokens[i - 1]))
            continue;
        add_slice(p, tokens, first, i, cut);
        first = i;
    }
    return first;
}

static void cut_timed(const struct sotto_i_cut_params * p, const int32_t * tokens, int n, struct sotto_i_cut * cut) {
    bool single_end = n >= 2 && is_timestamp(p, tokens[n - 1]) && !is_timestamp(p, tokens[n - 2]);
    int rest = cut_at_pairs(p, tokens, n, cut);
    if (single_end && (cut->n > 0 || p->limited))
        add_slice(p, tokens, rest, n, cut);
    if (cut->n == 0)
        add_whole(p, n, end_of_speech(p, tokens, n), cut);
    else if (!single_end || p->limited)
        cut->seek = cut->slices[cut->n - 1].t1;
}

void sotto_i_cut_window(const struct sotto_i_cut_params * params, const int32_t * tokens, int n,
                        struct sotto_i_cut * cut) {
    int64_t end = params->seek + params->n_frames;
    cut->n = 0;
    cut->seek = end;
    if (n > 0 && params->timestamps)
        cut_timed(params, tokens, n, cut);
    else if (n > 0)
        add_whole(params, n, end, cut);
    if (cut->seek <= params->seek)
        cut->seek = end;
}
