/* SPDX-License-Identifier: MIT */
/* What the buffer types of the CPU share. Their storage is host memory, which is the context of the buffer. */
#ifndef SOTTO_CPU_BUFFER_H
#define SOTTO_CPU_BUFFER_H

#include "core/backend_impl.h"

/* A buffer with `size` bytes of its own; NULL and MEMORY on failure. */
sotto_backend_buffer_t sotto_i_cpu_buffer_new(sotto_backend_buffer_type_t buft,
                                              const struct sotto_i_buffer_iface * iface, size_t size,
                                              const struct sotto_allocator * allocator);

/* Entries of the interfaces. */
void sotto_i_cpu_buffer_free(sotto_backend_buffer_t buffer);
void * sotto_i_cpu_buffer_base(sotto_backend_buffer_t buffer);
void sotto_i_cpu_buffer_clear(sotto_backend_buffer_t buffer, uint8_t value);
size_t sotto_i_cpu_buffer_alignment(sotto_backend_buffer_type_t buft);

#endif
