/* SPDX-License-Identifier: MIT */
/* Files as sources: a path, which is read at absolute positions, or a stream. */
#define _FILE_OFFSET_BITS 64
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gguf/gguf_impl.h"

#define MAX_PIECE ((size_t)1 << 30)

enum sotto_status sotto_i_gguf_pread(int fd, const char * name, void * dst, uint64_t offset, size_t n, size_t * got) {
    *got = 0;
    while (*got < n) {
        size_t piece = n - *got < MAX_PIECE ? n - *got : MAX_PIECE;
        ssize_t r = pread(fd, (char *)dst + *got, piece, (off_t)(offset + *got));
        if (r == 0)
            break;
        if (r < 0 && errno != EINTR)
            return sotto_i_gguf_fail(offset + *got, SOTTO_E_GGUF_IO_READ, "gguf: %s: %s", name, strerror(errno));
        if (r > 0)
            *got += (size_t)r;
    }
    return SOTTO_OK;
}

void sotto_i_gguf_close_fd(int fd) {
    if (fd >= 0)
        close(fd);
}

static enum sotto_status fetch_fd(struct gguf_source * source, void * dst, uint64_t offset, size_t n, size_t * got) {
    return sotto_i_gguf_pread(source->fd, source->name, dst, source->start + offset, n, got);
}

static enum sotto_status size_of_fd(int fd, const char * path, uint64_t * size) {
    struct stat st;
    if (fstat(fd, &st) != 0)
        return sotto_i_gguf_fail(0, SOTTO_E_GGUF_IO_STAT, "gguf: %s: %s", path, strerror(errno));
    if (S_ISDIR(st.st_mode))
        return sotto_i_gguf_fail(0, SOTTO_E_GGUF_IO_OPEN, "gguf: %s is a folder; name a GGUF file", path);
    off_t end = S_ISREG(st.st_mode) ? st.st_size : lseek(fd, 0, SEEK_END);
    if (end < 0)
        return sotto_i_gguf_fail(0, SOTTO_E_GGUF_IO_SEEK,
                                 "gguf: %s: the size cannot be told: %s; copy it to a file first", path,
                                 strerror(errno));
    *size = (uint64_t)end;
    return SOTTO_OK;
}

enum sotto_status sotto_i_gguf_source_path(struct gguf_source * source, const char * path, uint64_t start) {
    int fd;
    do
        fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe without a writer is an error, not a wait */
    while (fd < 0 && errno == EINTR);
    if (fd < 0)
        return sotto_i_gguf_fail(0, SOTTO_E_GGUF_IO_OPEN, "gguf: %s: %s", path, strerror(errno));
    source->fd = fd;
    source->name = path;
    source->start = start;
    source->fetch = fetch_fd;
    uint64_t size = 0;
    enum sotto_status status = size_of_fd(fd, path, &size);
    if (status == SOTTO_OK)
        source->size = size > start ? size - start : 0;
    return status;
}

static enum sotto_status fetch_file(struct gguf_source * source, void * dst, uint64_t offset, size_t n, size_t * got) {
    if (fseeko(source->file, (off_t)(source->start + offset), SEEK_SET) != 0)
        return sotto_i_gguf_fail(offset, SOTTO_E_GGUF_IO_SEEK, "gguf: %s: %s", source->name, strerror(errno));
    *got = fread(dst, 1, n, source->file);
    if (*got < n && ferror(source->file))
        return sotto_i_gguf_fail(offset + *got, SOTTO_E_GGUF_IO_READ, "gguf: %s: %s", source->name, strerror(errno));
    return SOTTO_OK;
}

enum sotto_status sotto_i_gguf_source_file(struct gguf_source * source, FILE * file) {
    source->file = file;
    source->name = "stream";
    source->fetch = fetch_file;
    off_t here = ftello(file);
    off_t end = -1;
    if (here >= 0 && fseeko(file, 0, SEEK_END) == 0)
        end = ftello(file);
    if (end < 0 || fseeko(file, here, SEEK_SET) != 0)
        return sotto_i_gguf_fail(0, SOTTO_E_GGUF_IO_SEEK,
                                 "gguf: the stream cannot be positioned: %s; copy it to a file first", strerror(errno));
    source->start = (uint64_t)here;
    source->size = end > here ? (uint64_t)(end - here) : 0;
    return SOTTO_OK;
}
