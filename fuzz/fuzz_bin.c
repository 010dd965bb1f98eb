/* SPDX-License-Identifier: MIT */
/* whisper.cpp's .bin.
 *
 * Input: one byte for the type to convert to, then the file, packed (fuzz/unpack.h).
 * Property: a file is refused with a status of its own, or is a whole model, whose values can be read and converted.
 * Either way memory is bounded and nothing stays. */
#include "fuzz/unpack.h"
#include "fuzz/read_model.h"

const size_t fuzz_replays = 16;

int LLVMFuzzerTestOneInput(const uint8_t * bytes, size_t n) {
    static struct fuzz_file place = { .fd = -1 };
    if (place.fd < 0)
        place = fuzz_file_new();
    struct fuzz_input in = { bytes, n };
    const unsigned wanted = (unsigned)fuzz_take(&in, 1);
    const size_t size = fuzz_unpack(&in, place.fd, FUZZ_MOST_WEIGHTS);
    fuzz_read_model(sotto_i_from_bin, place.path, size, wanted);
    return 0;
}
