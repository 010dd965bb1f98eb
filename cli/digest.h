/* SPDX-License-Identifier: MIT */
/* SHA-256 of bytes that come in pieces. */
#ifndef SOTTO_CLI_DIGEST_H
#define SOTTO_CLI_DIGEST_H

#include <stddef.h>
#include <stdint.h>

struct digest {
    uint32_t h[8];
    unsigned char block[64];
    size_t n_block; /* bytes waiting in it */
    uint64_t n;     /* bytes so far */
};

void digest_start(struct digest * digest);
void digest_add(struct digest * digest, const void * bytes, size_t n);
/* As 64 lower-case digits and a 0. */
void digest_finish(struct digest * digest, char hex[65]);

#endif
