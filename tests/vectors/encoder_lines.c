/* SPDX-License-Identifier: MIT */
/* encoder_lines MODEL: what the encoder makes of a spectrogram, for a test in another language. In come bands x 3000
 * floats of 32 bits, out go positions x width of them. */
#include <stdio.h>
#include <stdlib.h>

#include "sotto/speech.h"

enum { FRAMES = 3000, POSITIONS = 1500 };

static enum sotto_status encode(struct sotto_state * state, const float * mel, int n_mels, size_t n_out) {
    enum sotto_status status = sotto_set_mel(state, mel, FRAMES, n_mels);
    if (status == SOTTO_OK)
        status = sotto_encode(state);
    if (status == SOTTO_OK)
        fwrite(sotto_get_encoder_output(state), sizeof(float), n_out, stdout);
    return status;
}

int main(int argc, char ** argv) {
    struct sotto_model * model = NULL;
    struct sotto_state * state = NULL;
    if (argc != 2)
        return 2;
    enum sotto_status status = sotto_model_open(argv[1], NULL, &model);
    if (status == SOTTO_OK)
        status = sotto_state_new(model, NULL, &state);
    if (status == SOTTO_OK) {
        int n_mels = sotto_model_n_mels(model);
        size_t n = (size_t)n_mels * FRAMES;
        float * mel = malloc(n * sizeof(*mel));
        bool read = mel != NULL && fread(mel, sizeof(*mel), n, stdin) == n;
        status = read ? encode(state, mel, n_mels, (size_t)POSITIONS * (size_t)sotto_model_width(model)) : SOTTO_E_IO;
        free(mel);
    }
    if (status != SOTTO_OK)
        fprintf(stderr, "encoder_lines: %s\n", sotto_last_error_text());
    sotto_state_free(state);
    sotto_model_free(model);
    return status == SOTTO_OK && fflush(stdout) == 0 ? 0 : 1;
}
