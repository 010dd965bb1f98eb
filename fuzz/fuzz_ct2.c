/* SPDX-License-Identifier: MIT */
/* CTranslate2 folders.
 *
 * Input: one byte, of which bit 0 makes the vocabulary JSON and the others say what to convert to; then config.json,
 * the vocabulary and model.bin, packed (fuzz/unpack.h).
 * Property: a folder is refused with a status of its own, or is a whole model, whose values can be read and converted.
 * Either way memory is bounded and nothing stays. */
#include <unistd.h>

#include "fuzz/unpack.h"
#include "fuzz/read_model.h"

const size_t fuzz_replays = 40;

int LLVMFuzzerTestOneInput(const uint8_t * bytes, size_t n) {
    struct fuzz_input in = { bytes, n };
    const unsigned mode = (unsigned)fuzz_take(&in, 1);
    fuzz_unpack_to(&in, "config.json", FUZZ_MOST_TEXT);
    fuzz_unpack_to(&in, mode & 1 ? "vocabulary.json" : "vocabulary.txt", FUZZ_MOST_TEXT);
    unlink(fuzz_path(mode & 1 ? "vocabulary.txt" : "vocabulary.json"));
    const size_t size = fuzz_unpack_to(&in, "model.bin", FUZZ_MOST_WEIGHTS);
    fuzz_read_model(sotto_i_from_ct2, fuzz_folder(), size, mode >> 1);
    return 0;
}
