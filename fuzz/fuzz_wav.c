/* SPDX-License-Identifier: MIT */
/* WAV files.
 *
 * Property: whatever the bytes are, our reader gives sound at the wanted rate with nothing but finite samples, or a
 * status of its own and no sound; and it says the same of bytes that arrive all at once and one by one. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz/fuzz.h"
#include "sotto/media.h"

const size_t fuzz_replays = 1000;

struct source {
    const uint8_t * bytes;
    size_t n, at, step;
};

static size_t read_source(void * user_data, void * dst, size_t n) {
    struct source * s = user_data;
    n = n < s->step ? n : s->step;
    n = n < s->n - s->at ? n : s->n - s->at;
    if (n > 0)
        memcpy(dst, s->bytes + s->at, n);
    s->at += n;
    return n;
}

static enum sotto_status load(const uint8_t * bytes, size_t n, size_t step, struct sotto_audio ** audio) {
    struct source source = { bytes, n, 0, step };
    struct sotto_audio_params params = sotto_audio_default_params();
    params.reader = SOTTO_AUDIO_OWN;
    params.rate = 16000;
    params.max_samples = 1 << 20;
    return sotto_audio_load_callback(read_source, &source, "input", &params, audio);
}

int LLVMFuzzerTestOneInput(const uint8_t * bytes, size_t n) {
    struct sotto_audio * whole;
    struct sotto_audio * slow;
    enum sotto_status status = load(bytes, n, SIZE_MAX, &whole);
    fuzz_holds(load(bytes, n, 1, &slow) == status);
    fuzz_holds((whole != NULL) == (status == SOTTO_OK) && (slow != NULL) == (status == SOTTO_OK));
    if (whole != NULL) {
        fuzz_holds(whole->rate == 16000 && whole->n_samples > 0 && whole->n_samples == slow->n_samples);
        fuzz_holds(memcmp(whole->samples, slow->samples, whole->n_samples * sizeof(float)) == 0);
        for (size_t i = 0; i < whole->n_samples; i++)
            fuzz_holds(isfinite(whole->samples[i]));
    }
    sotto_audio_free(whole);
    sotto_audio_free(slow);
    return 0;
}
