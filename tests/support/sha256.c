/* SPDX-License-Identifier: MIT */
#include "sha256.h"

#include "cli/digest.c"

void sha256_hex(const void * data, size_t n, char hex[65]) {
    struct digest s;
    digest_start(&s);
    digest_add(&s, data, n);
    digest_finish(&s, hex);
}

bool sha256_file_hex(const char * path, char hex[65]) {
    unsigned char buffer[4096];
    struct digest s;
    FILE * file = fopen(path, "rb");
    if (!file)
        return false;
    digest_start(&s);
    for (size_t n = fread(buffer, 1, sizeof(buffer), file); n > 0; n = fread(buffer, 1, sizeof(buffer), file))
        digest_add(&s, buffer, n);
    bool ok = !ferror(file);
    fclose(file);
    digest_finish(&s, hex);
    return ok;
}
