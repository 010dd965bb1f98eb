/* SPDX-License-Identifier: MIT */
/* Files in memory: a nameless file in /dev/shm, else in the folder of temporary files, reached through /dev/fd. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fuzz/fuzz.h"

static int nameless(const char * folder) {
    char name[256];
    snprintf(name, sizeof(name), "%s/sotto-fuzz-XXXXXX", folder);
    int fd = mkstemp(name);
    if (fd >= 0)
        unlink(name);
    return fd;
}

struct fuzz_file fuzz_file_new(void) {
    struct fuzz_file file = { .fd = nameless("/dev/shm") };
    if (file.fd < 0)
        file.fd = nameless("/tmp");
    fuzz_holds(file.fd >= 0);
    snprintf(file.path, sizeof(file.path), "/dev/fd/%d", file.fd);
    return file;
}

void fuzz_file_set(const struct fuzz_file * file, const void * bytes, size_t n) {
    fuzz_holds(ftruncate(file->fd, 0) == 0);
    fuzz_holds(pwrite(file->fd, bytes, n, 0) == (ssize_t)n);
}
