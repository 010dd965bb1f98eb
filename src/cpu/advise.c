/* SPDX-License-Identifier: MIT */
/* Advice to the system, where it takes any (advise.h). */
#define _DEFAULT_SOURCE /* madvise */
#include "cpu/advise.h"

#include <stdint.h>

#if defined(__linux__)
#include <sys/mman.h>
#include <unistd.h>
#endif

void sotto_i_advise_large_pages(void * memory, size_t size) {
#if defined(__linux__) && defined(MADV_HUGEPAGE)
    const long page = sysconf(_SC_PAGESIZE);
    if (page <= 0)
        return;
    const uintptr_t mask = (uintptr_t)page - 1;
    const uintptr_t first = ((uintptr_t)memory + mask) & ~mask; /* whole pages inside the block */
    const uintptr_t end = ((uintptr_t)memory + size) & ~mask;
    if (end > first)
        madvise((void *)first, (size_t)(end - first), MADV_HUGEPAGE); /* what it says matters to nobody */
#else
    (void)memory;
    (void)size;
#endif
}
