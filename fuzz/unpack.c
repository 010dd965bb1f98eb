/* SPDX-License-Identifier: MIT */
#include "fuzz/unpack.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ESCAPE = 0xEC, N_TOKENS = 50257 };

struct out {
    int fd;
    size_t at, most;
};

static size_t fitting(const struct out * out, size_t n) { return n < out->most - out->at ? n : out->most - out->at; }

static void put(struct out * out, const void * bytes, size_t n) {
    n = fitting(out, n);
    fuzz_holds(n == 0 || pwrite(out->fd, bytes, n, (off_t)out->at) == (ssize_t)n);
    out->at += n;
}

static void put_often(struct out * out, const char * text, size_t times) {
    static char many[3 * 4096];
    const size_t len = strlen(text);
    for (size_t i = 0; i < sizeof(many); i += len)
        memcpy(many + i, text, len);
    times = times < out->most ? times : out->most;
    for (size_t n; times > 0; times -= n) {
        n = times < 4096 ? times : 4096;
        put(out, many, n * len);
    }
}

/* ---- tokens ---- */

/* The bytes that print come first, then the others. */
static unsigned byte_of(unsigned id) {
    static const unsigned runs[][2] = { { 33, 126 }, { 161, 172 }, { 174, 255 }, { 0, 32 }, { 127, 160 } };
    for (size_t i = 0; i < sizeof(runs) / sizeof(*runs); i++) {
        const unsigned n = runs[i][1] - runs[i][0] + 1;
        if (id < n)
            return runs[i][0] + id;
        id -= n;
    }
    return 173;
}

static char * spell_byte(unsigned byte, char * out) {
    unsigned code = byte <= 32 ? 256 + byte : byte >= 127 && byte <= 160 ? 289 + byte - 127 : byte == 173 ? 323 : byte;
    if (code >= 128) {
        *out++ = (char)(0xC0 | code >> 6);
        code = 0x80 | (code & 63);
    }
    *out++ = (char)code;
    return out;
}

void fuzz_spell_token(unsigned id, char * out) {
    if (id >= 256 && id < N_TOKENS - 1)
        out = spell_byte((id - 256) / 256, out);
    if (id < N_TOKENS - 1)
        out = spell_byte(id < 256 ? byte_of(id) : (id - 256) % 256, out);
    *out = 0;
}

static size_t show_entry(unsigned id, char * out) {
    char token[8];
    char * to = out;
    fuzz_spell_token(id, token);
    *to++ = '"';
    for (const char * c = token; *c != 0; c++) {
        if (*c == '"' || *c == '\\')
            *to++ = '\\';
        *to++ = *c;
    }
    return (size_t)(to - out) + (size_t)sprintf(to, "\": %u%s", id, id + 1 < N_TOKENS ? ", " : "");
}

static void put_tokens(struct out * out, size_t n) {
    static char text[N_TOKENS * 24];
    static size_t ends[N_TOKENS + 1];
    for (unsigned id = 0; id < N_TOKENS && ends[N_TOKENS] == 0; id++)
        ends[id + 1] = ends[id] + show_entry(id, text + ends[id]);
    put(out, text, ends[n < N_TOKENS ? n : N_TOKENS]);
}

/* ---- unpacking ---- */

/* What an escape stands for, less EC 03. */
static void put_escape(struct out * out, struct fuzz_input * in, unsigned code) {
    const uint8_t escape = ESCAPE;
    if (code > 4) {
        put(out, &escape, 1);
        return;
    }
    const size_t n = (size_t)fuzz_take(in, 4);
    switch (code) {
    case 0: out->at += fitting(out, n); break; /* a hole in the file */
    case 1: put_often(out, "\n", n); break;
    case 2: put_often(out, ",\"\"", n); break;
    default: put_tokens(out, n); break;
    }
}

size_t fuzz_unpack(struct fuzz_input * in, int fd, size_t most) {
    struct out out = { fd, 0, most };
    fuzz_holds(ftruncate(fd, 0) == 0);
    while (in->left > 0) {
        const uint8_t * escape = memchr(in->at, ESCAPE, in->left);
        size_t n = escape != NULL ? (size_t)(escape - in->at) : in->left;
        put(&out, fuzz_take_bytes(in, &n), n);
        if (escape == NULL)
            break;
        fuzz_take(in, 1);
        const unsigned code = (unsigned)fuzz_take(in, 1);
        if (code == 3)
            break;
        put_escape(&out, in, code);
    }
    fuzz_holds(ftruncate(fd, (off_t)out.at) == 0);
    return out.at;
}

/* ---- the folder ---- */

static char folder[64];
static char names[16][32];

static void remove_folder(void) {
    for (int i = 0; i < 16 && names[i][0] != 0; i++)
        unlink(fuzz_path(names[i]));
    rmdir(folder);
}

const char * fuzz_folder(void) {
    if (folder[0] != 0)
        return folder;
    snprintf(folder, sizeof(folder), "/dev/shm/sotto-fuzz-XXXXXX");
    if (mkdtemp(folder) == NULL) {
        snprintf(folder, sizeof(folder), "/tmp/sotto-fuzz-XXXXXX");
        fuzz_holds(mkdtemp(folder) != NULL);
    }
    atexit(remove_folder);
    return folder;
}

static void remember(const char * name) {
    int i = 0;
    while (i < 15 && names[i][0] != 0 && strcmp(names[i], name) != 0)
        i++;
    snprintf(names[i], sizeof(names[i]), "%.31s", name);
}

const char * fuzz_path(const char * name) {
    static char paths[4][128];
    static int next;
    char * path = paths[next++ % 4];
    remember(name);
    snprintf(path, sizeof(paths[0]), "%.90s/%.31s", fuzz_folder(), name);
    return path;
}

size_t fuzz_unpack_to(struct fuzz_input * in, const char * name, size_t most) {
    int fd = open(fuzz_path(name), O_RDWR | O_CREAT, 0600);
    fuzz_holds(fd >= 0);
    const size_t n = fuzz_unpack(in, fd, most);
    close(fd);
    return n;
}
