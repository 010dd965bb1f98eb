/* SPDX-License-Identifier: MIT */
/* Samples at one rate to samples at another, piece by piece: push some, pull what they make, until the end. */
#ifndef SOTTO_MEDIA_RESAMPLE_H
#define SOTTO_MEDIA_RESAMPLE_H

#include <stddef.h>

#include "sotto/alloc.h"

#define RESAMPLE_BLOCK 4096

struct resampler;

/* Rates from 1 Hz to 2^20 Hz. MEMORY. */
enum sotto_status sotto_i_resampler_new(const struct sotto_allocator * allocator, int from, int to,
                                        struct resampler ** resampler);
void sotto_i_resampler_free(struct resampler * r); /* NULL is allowed */

/* The most that can be pulled after n <= RESAMPLE_BLOCK more are pushed, or after the end. */
size_t sotto_i_resampler_room(const struct resampler * r, size_t n);
/* n <= RESAMPLE_BLOCK; everything has to be pulled in between. */
void sotto_i_resampler_push(struct resampler * r, const float * in, size_t n);
/* Nothing follows: what is pulled then makes floor(pushed * to / from + 0.5) in all. */
void sotto_i_resampler_end(struct resampler * r);
/* All that can be made now, at most the room; how many. */
size_t sotto_i_resampler_pull(struct resampler * r, float * out);

#endif
