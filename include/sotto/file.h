/* SPDX-License-Identifier: MIT */
/* A file that appears whole or not at all.
 *
 * What is written goes to a temporary file beside `path`, which takes its name when it is finished; a failure leaves an
 * old file as it was. A symbolic link's target is replaced. What cannot be replaced (pipes, devices) is written directly.
 *
 *     struct sotto_file * file;
 *     if (sotto_file_create("out.txt", NULL, &file) != SOTTO_OK)
 *         return sotto_last_error();
 *     fprintf(sotto_file_stream(file), "hello\n");     or sotto_file_write
 *     return sotto_file_finish(file, SOTTO_OK);
 *
 * A file belongs to one thread at a time. */
#ifndef SOTTO_FILE_H
#define SOTTO_FILE_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "sotto/alloc.h"
#include "sotto/export.h"
#include "sotto/status.h"

#ifdef __cplusplus
extern "C" {
#endif

struct sotto_file;

enum sotto_file_flag {
    SOTTO_FILE_FSYNC = 1,     /* force file and folder to disk before finishing */
    SOTTO_FILE_NO_ATOMIC = 2, /* write the file itself, without a temporary one */
    SOTTO_FILE_KEEP_MODE = 4  /* the permissions of a file that is replaced */
};

struct sotto_file_params {
    uint32_t size;                            /* sizeof(struct sotto_file_params) */
    uint32_t flags;                           /* enum sotto_file_flag; unknown bits: PARAM */
    unsigned mode;                            /* permissions of a new file before the umask, 0 = 0666 */
    const struct sotto_allocator * allocator; /* NULL: that of the process */
};

/* Begin a file; params NULL: no flags. On failure *file is NULL: NULLARG, PARAM, MEMORY, IO_OPEN, IO_WRITE (its
 * permissions cannot be set). */
SOTTO_API enum sotto_status sotto_file_create(const char * path, const struct sotto_file_params * params,
                                              struct sotto_file ** file);

/* Write n bytes, through a buffer. The first failure (IO_WRITE) is remembered: later writes do nothing and return it,
 * and so does finishing. */
SOTTO_API enum sotto_status sotto_file_write(struct sotto_file * file, const void * data, size_t n);

/* A stream for printing to the file, the same at each call; it may be mixed with writes. It ends with the file, which
 * notices what failed on it: do not close it. NULL if there is none to be had: MEMORY, IO_WRITE. */
SOTTO_API FILE * sotto_file_stream(struct sotto_file * file);

/* End a file and free it. With SOTTO_OK it takes its name; with a status that tells of a failure it is thrown away (one
 * that is written directly stays as far as it got) and that status returned. IO_WRITE, IO_RENAME, IO_SYNC: it is thrown
 * away too, unless it was the folder that could not be synced. NULL returns `status`. */
SOTTO_API enum sotto_status sotto_file_finish(struct sotto_file * file, enum sotto_status status);

/* Remove the temporary files of all files that are being written, of 64 at most. For a signal handler that is about to
 * end the process: it may be called from one, at any time, and those files cannot be finished after it (IO_RENAME). */
SOTTO_API void sotto_file_remove_temporaries(void);

#ifdef __cplusplus
}
#endif
#endif
