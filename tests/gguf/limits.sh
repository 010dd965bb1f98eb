#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# Malformed files cannot make the reader take memory: every case, mutation and odd file again in a process that may have
# 64 MB of address space in all. (Sanitizers need more than that; there the tests' own allocator counts.)
set -euo pipefail

if grep -q '^SOTTO_SANITIZE:[A-Z]*=.' "$SOTTO_BUILD/CMakeCache.txt"; then
    echo "not under sanitizers"
    exit 0
fi
for name in cases faults mutations order; do
    program=$SOTTO_BUILD/tests/test_gguf_$name
    if (ulimit -v 2048 && "$program") >/dev/null 2>&1; then
        echo "FAILED: the limit does not bite" >&2
        exit 1
    fi
    (ulimit -v 65536 && "$program") >/dev/null 2>&1 || { echo "FAILED: test_gguf_$name in 64 MB" >&2; exit 1; }
done
echo "4 programs in 64 MB each"
