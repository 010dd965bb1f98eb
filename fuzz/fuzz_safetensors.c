/* SPDX-License-Identifier: MIT */
/* Safetensors files.
 *
 * Input: the file.
 * Property: it is refused with a status of its own, or its tensors have distinct names by which they are found, whole
 * items, and fill the data after the header, each byte once. Either way memory is bounded and nothing stays. */
#include <string.h>

#include "fuzz/fuzz.h"
#include "models/safetensors.h"

const size_t fuzz_replays = 4000;

static void look_at(const struct safetensors * file, size_t n) {
    uint64_t total = 0;
    uint64_t data = n; /* where it begins */
    for (size_t i = 0; i < file->n_tensors; i++) {
        const struct safetensor * t = &file->tensors[i];
        fuzz_holds(sotto_i_safetensors_find(file, sotto_i_safetensors_name(file, t)) == t);
        fuzz_holds(t->begin <= t->end && t->end <= n);
        uint64_t items = 1;
        for (int k = 0; k < t->rank; k++)
            items *= t->dims[k];
        fuzz_holds(items * sotto_type_size(t->type) == t->end - t->begin);
        total += t->end - t->begin;
        data = t->begin < data ? t->begin : data;
    }
    fuzz_holds(total == n - data);
}

int LLVMFuzzerTestOneInput(const uint8_t * bytes, size_t n) {
    static struct fuzz_file place = { .fd = -1 };
    if (place.fd < 0)
        place = fuzz_file_new();
    fuzz_file_set(&place, bytes, n);
    struct counting_allocator memory;
    counting_allocator_init(&memory);
    struct safetensors file;
    sotto_clear_last_error();
    const enum sotto_status status = sotto_i_safetensors_open(&file, &memory.base, NULL, place.path);
    fuzz_holds(sotto_last_error() == status);
    fuzz_holds(status == SOTTO_OK || (status >= SOTTO_E_MODEL_FORMAT && status <= SOTTO_E_MODEL_PICKLE));
    if (status == SOTTO_OK)
        look_at(&file, n);
    sotto_i_safetensors_close(&file);
    fuzz_memory_done(&memory);
    return 0;
}
