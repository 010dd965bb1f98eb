/* SPDX-License-Identifier: MIT */
/* Mapping of files, where the system has it. Whoever maps can do without: NULL means that the file is to be read. */
#define _FILE_OFFSET_BITS 64
#define _DEFAULT_SOURCE   /* MAP_POPULATE */
#include <unistd.h>

#include "gguf/gguf_impl.h"

#if _POSIX_MAPPED_FILES > 0

#include <sys/mman.h>
#include <sys/stat.h>

/* Does the file still hold the range? Whole pages can be touched, so the last one only has to begin inside. */
static bool is_there(int fd, uint64_t end, uint64_t page) {
    struct stat st;
    uint64_t whole;
    return fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && sotto_i_gguf_align((uint64_t)st.st_size, page, &whole) &&
           end <= whole;
}

/* Map, and have every page in before anybody waits for one. */
#ifdef MAP_POPULATE
static void * map_pages(size_t size, int fd, uint64_t at, size_t page, bool populate) {
    (void)page;
    return mmap(NULL, size, PROT_READ, MAP_PRIVATE | (populate ? MAP_POPULATE : 0), fd, (off_t)at);
}
#else
static void * map_pages(size_t size, int fd, uint64_t at, size_t page, bool populate) {
    void * base = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, (off_t)at);
    for (size_t i = 0; populate && base != MAP_FAILED && i < size; i += page)
        (void)((volatile const uint8_t *)base)[i];
    return base;
}
#endif

void * sotto_i_gguf_map(struct gguf_map * map, int fd, uint64_t offset, uint64_t size, bool populate) {
    const long known = sysconf(_SC_PAGESIZE);
    const uint64_t page = known > 0 ? (uint64_t)known : 4096;
    const uint64_t before = offset % page;
    if (size == 0 || size > SIZE_MAX - before || offset > INT64_MAX - size || !is_there(fd, offset + size, page))
        return NULL;
    void * base = map_pages((size_t)(size + before), fd, offset - before, (size_t)page, populate);
    if (base == MAP_FAILED)
        return NULL;
    map->base = base;
    map->size = (size_t)(size + before);
    posix_madvise(base, map->size, POSIX_MADV_WILLNEED);
    return (uint8_t *)base + before;
}

void sotto_i_gguf_unmap(struct gguf_map * map) {
    if (map->base != NULL)
        munmap(map->base, map->size);
    map->base = NULL;
}

#else

void * sotto_i_gguf_map(struct gguf_map * map, int fd, uint64_t offset, uint64_t size, bool populate) {
    (void)map;
    (void)fd;
    (void)offset;
    (void)size;
    (void)populate;
    return NULL;
}

void sotto_i_gguf_unmap(struct gguf_map * map) { (void)map; }

#endif
