/* SPDX-License-Identifier: MIT */
/* Files that appear whole or not at all: what is there before, while and after, and every way to fail. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "sotto/file.h"
#include "support/gguf_example.h"
#include "support/refuse_each.h"

static char folder[512], path[600], link_path[600];

static int make_folder(void ** state) {
    (void)state;
    snprintf(folder, sizeof(folder), "%s", temp_path("XXXXXX"));
    if (mkdtemp(folder) == NULL)
        return -1;
    snprintf(path, sizeof(path), "%s/out", folder);
    snprintf(link_path, sizeof(link_path), "%s/link", folder);
    return 0;
}

/* No temporary file may be left: then the folder can be removed. */
static int remove_folder(void ** state) {
    (void)state;
    unlink(path);
    unlink(link_path);
    return rmdir(folder);
}

static struct sotto_file * create(const char * name, uint32_t flags) {
    struct sotto_file_params params = { .size = sizeof(params), .flags = flags };
    struct sotto_file * file;
    if (sotto_file_create(name, &params, &file) != SOTTO_OK)
        fail_msg("%s", sotto_last_error_text());
    return file;
}

static void holds(const char * name, const void * bytes, size_t n) {
    size_t size;
    uint8_t * got = read_bytes(name, &size);
    assert_non_null(got);
    assert_int_equal(size, n);
    assert_memory_equal(got, bytes, n);
    free(got);
}

static unsigned mode_of(const char * name) {
    struct stat st;
    assert_int_equal(lstat(name, &st), 0);
    return (unsigned)st.st_mode;
}

/* ---- what is there when ---- */

static void appears_when_finished(void ** state) {
    (void)state;
    struct sotto_file * file;
    assert_int_equal(sotto_file_create(path, NULL, &file), SOTTO_OK);
    assert_int_equal(sotto_file_write(file, "abc", 3), SOTTO_OK);
    assert_int_equal(sotto_file_write(file, NULL, 0), SOTTO_OK);
    assert_int_equal(access(path, F_OK), -1);
    assert_int_equal(sotto_file_finish(file, SOTTO_OK), SOTTO_OK);
    holds(path, "abc", 3);
    file = create(path, 0);
    assert_int_equal(sotto_file_write(file, "new", 3), SOTTO_OK);
    holds(path, "abc", 3);
    assert_int_equal(sotto_file_finish(file, SOTTO_OK), SOTTO_OK);
    holds(path, "new", 3);
}

static void thrown_away_on_failure(void ** state) {
    (void)state;
    struct sotto_file * file = create(path, 0);
    assert_int_equal(sotto_file_write(file, "abc", 3), SOTTO_OK);
    assert_int_equal(sotto_file_finish(file, SOTTO_E_ABORTED), SOTTO_E_ABORTED);
    assert_int_equal(access(path, F_OK), -1);
    write_bytes(path, "old", 3);
    file = create(path, SOTTO_FILE_FSYNC);
    fputs("abc", sotto_file_stream(file));
    assert_int_equal(sotto_file_finish(file, SOTTO_E_ABORTED), SOTTO_E_ABORTED);
    holds(path, "old", 3);
    assert_int_equal(sotto_file_finish(NULL, SOTTO_OK), SOTTO_OK);
    assert_int_equal(sotto_file_finish(NULL, SOTTO_E_ABORTED), SOTTO_E_ABORTED);
}

/* Pieces around the size of the buffer, printed ones between them. */
static void all_sizes_in_order(void ** state) {
    (void)state;
    enum { N = 400000 };
    static const size_t pieces[] = { 1, 65535, 1, 65536, 2, 65537, 7, 131072, 65535 };
    uint8_t * bytes = malloc(N);
    assert_non_null(bytes);
    for (size_t i = 0; i < N; i++)
        bytes[i] = (uint8_t)(i * 31 + i / 251);
    for (size_t streamed = 0; streamed <= sizeof(pieces) / sizeof(pieces[0]); streamed++) {
        struct sotto_file * file = create(path, SOTTO_FILE_FSYNC);
        size_t at = 0;
        for (size_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]); at += pieces[i++]) {
            if (i == streamed) {
                FILE * stream = sotto_file_stream(file);
                assert_non_null(stream);
                assert_ptr_equal(sotto_file_stream(file), stream);
                assert_int_equal(fwrite(bytes + at, 1, pieces[i], stream), pieces[i]);
            } else {
                assert_int_equal(sotto_file_write(file, bytes + at, pieces[i]), SOTTO_OK);
            }
        }
        assert_int_equal(sotto_file_finish(file, SOTTO_OK), SOTTO_OK);
        holds(path, bytes, at);
    }
    free(bytes);
}

static void without_temporary_file(void ** state) {
    (void)state;
    write_bytes(path, "a longer one", 12);
    struct sotto_file * file = create(path, SOTTO_FILE_NO_ATOMIC);
    holds(path, "", 0);
    assert_int_equal(sotto_file_write(file, "abc", 3), SOTTO_OK);
    assert_int_equal(sotto_file_finish(file, SOTTO_OK), SOTTO_OK);
    holds(path, "abc", 3);
}

static void links_stay(void ** state) {
    (void)state;
    assert_int_equal(symlink(path, link_path), 0);
    for (int i = 0; i < 2; i++) { /* it leads nowhere at first */
        struct sotto_file * file = create(link_path, 0);
        assert_int_equal(sotto_file_write(file, "abcd", 3 + (size_t)i), SOTTO_OK);
        assert_int_equal(sotto_file_finish(file, SOTTO_OK), SOTTO_OK);
        assert_true(S_ISLNK(mode_of(link_path)));
        assert_true(S_ISREG(mode_of(path)));
        holds(path, "abcd", 3 + (size_t)i);
    }
    struct sotto_file * file = create(link_path, 0);
    assert_int_equal(sotto_file_write(file, "x", 1), SOTTO_OK);
    assert_int_equal(sotto_file_finish(file, SOTTO_E_ABORTED), SOTTO_E_ABORTED);
    holds(path, "abcd", 4);
}

static void permissions(void ** state) {
    (void)state;
    const mode_t mask = umask(022);
    struct sotto_file_params params = { .size = sizeof(params), .mode = 0640 };
    struct sotto_file * file;
    assert_int_equal(sotto_file_create(path, &params, &file), SOTTO_OK);
    assert_int_equal(sotto_file_finish(file, SOTTO_OK), SOTTO_OK);
    assert_int_equal(mode_of(path) & 07777, 0640);
    assert_int_equal(chmod(path, 0604), 0);
    assert_int_equal(sotto_file_finish(create(path, SOTTO_FILE_KEEP_MODE), SOTTO_OK), SOTTO_OK);
    assert_int_equal(mode_of(path) & 07777, 0604);
    assert_int_equal(sotto_file_finish(create(path, 0), SOTTO_OK), SOTTO_OK);
    assert_int_equal(mode_of(path) & 07777, 0644);
    umask(mask);
}

/* ---- failures ---- */

static void refused(const char * name, const struct sotto_file_params * params, enum sotto_status status) {
    struct sotto_file * file = (struct sotto_file *)folder;
    sotto_clear_last_error();
    assert_int_equal(sotto_file_create(name, params, &file), status);
    assert_int_equal(sotto_last_error(), status);
    assert_null(file);
}

static void wrong_arguments(void ** state) {
    (void)state;
    refused(NULL, NULL, SOTTO_E_NULLARG);
    assert_int_equal(sotto_file_create(path, NULL, NULL), SOTTO_E_NULLARG);
    refused(path, &(struct sotto_file_params){ 0 }, SOTTO_E_PARAM);
    refused(path, &(struct sotto_file_params){ .size = sizeof(struct sotto_file_params), .flags = 8 }, SOTTO_E_PARAM);
    assert_int_equal(sotto_file_write(NULL, "a", 1), SOTTO_E_NULLARG);
    sotto_clear_last_error();
    assert_null(sotto_file_stream(NULL));
    assert_int_equal(sotto_last_error(), SOTTO_E_NULLARG);
    struct sotto_file * file = create(path, 0);
    assert_int_equal(sotto_file_write(file, NULL, 1), SOTTO_E_NULLARG);
    assert_int_equal(sotto_file_finish(file, SOTTO_OK), SOTTO_OK);
    holds(path, "", 0);
}

static void places_that_cannot_be_opened(void ** state) {
    (void)state;
    char name[700];
    snprintf(name, sizeof(name), "%s/absent/out", folder);
    refused(name, NULL, SOTTO_E_GGUF_IO_OPEN);
    refused("", NULL, SOTTO_E_GGUF_IO_OPEN);
    refused("/", NULL, SOTTO_E_GGUF_IO_OPEN);
    refused(folder, NULL, SOTTO_E_GGUF_IO_OPEN);
    write_bytes(path, "old", 3);
    snprintf(name, sizeof(name), "%s/below", path);
    refused(name, NULL, SOTTO_E_GGUF_IO_OPEN);
    if (geteuid() != 0) { /* who may do anything writes there too */
        assert_int_equal(chmod(folder, 0500), 0);
        refused(path, NULL, SOTTO_E_GGUF_IO_OPEN);
        assert_int_equal(chmod(folder, 0700), 0);
    }
    holds(path, "old", 3);
}

static void full_disks_are_noticed(void ** state) {
    (void)state;
    static const uint8_t zeros[100000];
    struct sotto_file * file = create("/dev/full", 0);
    assert_int_equal(sotto_file_write(file, "abc", 3), SOTTO_OK); /* in the buffer */
    assert_int_equal(sotto_file_finish(file, SOTTO_OK), SOTTO_E_GGUF_IO_WRITE);
    file = create("/dev/full", 0);
    assert_int_equal(sotto_file_write(file, zeros, sizeof(zeros)), SOTTO_E_GGUF_IO_WRITE);
    assert_int_equal(sotto_file_write(file, "abc", 3), SOTTO_E_GGUF_IO_WRITE);
    assert_int_equal(sotto_file_finish(file, SOTTO_OK), SOTTO_E_GGUF_IO_WRITE);
    file = create("/dev/full", 0);
    fputs("abc", sotto_file_stream(file));
    assert_int_equal(sotto_file_finish(file, SOTTO_OK), SOTTO_E_GGUF_IO_WRITE);
    file = create("/dev/full", 0);
    assert_int_not_equal(fwrite(zeros, 1, sizeof(zeros), sotto_file_stream(file)), sizeof(zeros));
    assert_int_equal(sotto_file_write(file, zeros, sizeof(zeros)), SOTTO_E_GGUF_IO_WRITE);
    assert_int_equal(sotto_file_finish(file, SOTTO_OK), SOTTO_E_GGUF_IO_WRITE);
    file = create("/dev/full", 0);
    assert_int_equal(sotto_file_write(file, "abc", 3), SOTTO_OK);
    assert_null(sotto_file_stream(file)); /* what was written before goes out first */
    assert_int_equal(sotto_file_finish(file, SOTTO_OK), SOTTO_E_GGUF_IO_WRITE);
    assert_true(S_ISCHR(mode_of("/dev/full")));
}

/* A limit on the size of files: writes become short, then fail. */
static void short_writes_keep_the_old_file(void ** state) {
    (void)state;
    static const uint8_t zeros[300000];
    write_bytes(path, "old", 3);
    struct rlimit before, small;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    small = before;
    small.rlim_cur = 200000;
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    struct sotto_file * file = create(path, 0);
    enum sotto_status written = sotto_file_write(file, zeros, sizeof(zeros));
    enum sotto_status finished = sotto_file_finish(file, SOTTO_OK);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    signal(SIGXFSZ, handler);
    assert_int_equal(written, SOTTO_E_GGUF_IO_WRITE);
    assert_int_equal(finished, SOTTO_E_GGUF_IO_WRITE);
    holds(path, "old", 3);
}

static void syncing_and_renaming_fail(void ** state) {
    (void)state;
    assert_int_equal(sotto_file_finish(create("/dev/null", SOTTO_FILE_FSYNC), SOTTO_OK), SOTTO_E_GGUF_IO_SYNC);
    struct sotto_file * file = create(path, 0);
    assert_int_equal(mkdir(path, 0700), 0); /* in the meantime */
    assert_int_equal(sotto_file_finish(file, SOTTO_OK), SOTTO_E_GGUF_IO_RENAME);
    assert_int_equal(rmdir(path), 0);
}

/* The old file stays until all of it worked. */
static enum sotto_status write_abc(const struct sotto_allocator * allocator, void * user_data) {
    (void)user_data;
    struct sotto_file_params params = { sizeof(params), SOTTO_FILE_FSYNC, 0, allocator };
    struct sotto_file * file;
    write_bytes(path, "old", 3);
    enum sotto_status status = sotto_file_create(path, &params, &file);
    if (status == SOTTO_OK) {
        assert_int_equal(sotto_file_write(file, "abc", 3), SOTTO_OK);
        status = sotto_file_finish(file, SOTTO_OK);
    }
    holds(path, status == SOTTO_OK ? "abc" : "old", 3);
    return status;
}

/* As a signal handler would do it: what is being written goes, what is done stays. */
static void temporaries_are_removed(void ** state) {
    (void)state;
    char second[700];
    snprintf(second, sizeof(second), "%s/second", folder);
    assert_int_equal(sotto_file_finish(create(link_path, 0), SOTTO_OK), SOTTO_OK);
    struct sotto_file * files[] = { create(path, 0), create(second, 0), create("/dev/null", 0), create(link_path, 0) };
    assert_int_equal(sotto_file_write(files[0], "abc", 3), SOTTO_OK);
    sotto_file_remove_temporaries();
    assert_int_equal(sotto_file_finish(files[0], SOTTO_OK), SOTTO_E_GGUF_IO_RENAME);
    assert_int_equal(sotto_file_finish(files[1], SOTTO_E_ABORTED), SOTTO_E_ABORTED);
    assert_int_equal(sotto_file_finish(files[2], SOTTO_OK), SOTTO_OK);
    assert_int_equal(sotto_file_finish(files[3], SOTTO_OK), SOTTO_E_GGUF_IO_RENAME);
    assert_int_equal(access(path, F_OK), -1);
    assert_int_equal(access(second, F_OK), -1);
    holds(link_path, "", 0);
    struct sotto_file * later = create(path, 0); /* and all goes on as before */
    sotto_file_remove_temporaries();
    assert_int_equal(sotto_file_finish(later, SOTTO_OK), SOTTO_E_GGUF_IO_RENAME);
}

static void nth_allocation_fails(void ** state) {
    (void)state;
    assert_true(refuse_each(write_abc, NULL) >= 3);
}

int main(void) {
#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, make_folder, remove_folder)
    const struct CMUnitTest tests[] = {
        IN_FOLDER(appears_when_finished),
        IN_FOLDER(thrown_away_on_failure),
        IN_FOLDER(all_sizes_in_order),
        IN_FOLDER(without_temporary_file),
        IN_FOLDER(links_stay),
        IN_FOLDER(permissions),
        IN_FOLDER(wrong_arguments),
        IN_FOLDER(places_that_cannot_be_opened),
        IN_FOLDER(full_disks_are_noticed),
        IN_FOLDER(short_writes_keep_the_old_file),
        IN_FOLDER(syncing_and_renaming_fail),
        IN_FOLDER(temporaries_are_removed),
        IN_FOLDER(nth_allocation_fails),
    };
    return cmocka_run_group_tests_name("core/file_out", tests, NULL, NULL);
}
