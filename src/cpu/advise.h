/* SPDX-License-Identifier: MIT */
/* Advice to the system about memory; none of it changes what the memory holds, and a system may ignore it all. */
#ifndef SOTTO_CPU_ADVISE_H
#define SOTTO_CPU_ADVISE_H

#include <stddef.h>

/* All of this memory will soon be written and then be read again and again: large pages, where there are any, save most
 * of the time of getting it, and misses when it is read. */
void sotto_i_advise_large_pages(void * memory, size_t size);

#endif
