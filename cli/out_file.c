/* SPDX-License-Identifier: MIT */
/* Output that appears whole: a temporary file in the same folder, renamed when it is closed. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sotto/alloc.h"

#include "cli/cli.h"

static bool failed(const char * path) {
    fprintf(stderr, "sotto: %s: %s\n", path, strerror(errno));
    return false;
}

/* Devices, pipes and links are written as they are. */
static bool replaceable(const char * path) {
    struct stat st;
    return lstat(path, &st) != 0 || S_ISREG(st.st_mode);
}

static bool open_temp(struct out_file * out) {
    out->temp_size = strlen(out->path) + 32;
    out->temp = sotto_malloc(NULL, out->temp_size, 1);
    if (out->temp == NULL) {
        print_last_error();
        return false;
    }
    int fd = -1;
    for (int i = 0; i < 100 && fd < 0; i++) {
        snprintf(out->temp, out->temp_size, "%s.tmp.%ld.%d", out->path, (long)getpid(), i);
        fd = open(out->temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd < 0 && errno != EEXIST)
            break;
    }
    out->file = fd >= 0 ? fdopen(fd, "w") : NULL;
    return out->file != NULL;
}

bool out_open(struct out_file * out, const char * path) {
    *out = (struct out_file){ .path = path, .file = stdout };
    if (path == NULL || strcmp(path, "-") == 0) {
        out->path = "standard output";
        return true;
    }
    if (!replaceable(path)) {
        out->file = fopen(path, "w");
        return out->file != NULL || failed(path);
    }
    if (open_temp(out))
        return true;
    failed(path);
    sotto_mfree(NULL, out->temp, out->temp_size, 1);
    return false;
}

bool out_close(struct out_file * out, bool keep) {
    bool written = fflush(out->file) == 0 && ferror(out->file) == 0;
    if (out->file != stdout)
        written = fclose(out->file) == 0 && written;
    if (out->temp != NULL && (!keep || !written || rename(out->temp, out->path) != 0)) {
        int reason = errno;
        unlink(out->temp);
        errno = reason;
        written = written && !keep;
    }
    sotto_mfree(NULL, out->temp, out->temp_size, 1);
    return written || failed(out->path);
}
