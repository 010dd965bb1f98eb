/* SPDX-License-Identifier: MIT */
/* The whole way from a file of sound to text, with sotto's libraries as they are installed. C11, and C++ as well.
 *
 *     cc transcribe.c -o transcribe $(pkg-config --cflags --libs sotto-speech sotto-media)
 *     ./transcribe base.gguf recording.wav
 *
 * Every call reports what went wrong as a status, and as a sentence in sotto_last_error_text(). */
#include <stdio.h>

#include <sotto/media.h>
#include <sotto/speech.h>

/* Print the segments of the last transcription: when, in seconds, and what. */
static void print_segments(const struct sotto_state * state) {
    for (int i = 0; i < sotto_n_segments(state); i++) {
        const struct sotto_segment * segment = sotto_get_segment(state, i);
        printf("%7.2f - %7.2f %s\n", (double)segment->t0 / 100, (double)segment->t1 / 100, segment->text);
    }
}

/* What a state does with one recording. The model and the state can take the next one afterwards. */
static enum sotto_status transcribe(struct sotto_state * state, const char * path) {
    struct sotto_audio_params audio_params = sotto_audio_default_params();
    audio_params.rate = SOTTO_SAMPLE_RATE;
    struct sotto_audio * audio = NULL; /* mono samples, from any kind of file */
    enum sotto_status status = sotto_audio_load(path, &audio_params, &audio);

    struct sotto_transcribe_params params = sotto_transcribe_default_params();
    params.language = "auto"; /* or "en", "german", ... */
    if (status == SOTTO_OK)
        status = sotto_transcribe(state, audio->samples, audio->n_samples, &params);
    if (status == SOTTO_OK)
        print_segments(state);
    sotto_audio_free(audio); /* as every _free, this accepts NULL */
    return status;
}

int main(int argc, char ** argv) {
    if (argc != 3) {
        fprintf(stderr, "usage: %s MODEL.gguf SOUND\n", argv[0]);
        return 2;
    }
    struct sotto_model * model = NULL; /* weights; any number of states may share them, a thread each */
    struct sotto_state * state = NULL; /* caches, and the result of the last call */
    enum sotto_status status = sotto_model_open(argv[1], NULL, &model);
    if (status == SOTTO_OK)
        status = sotto_state_new(model, NULL, &state);
    if (status == SOTTO_OK)
        status = transcribe(state, argv[2]);
    if (status != SOTTO_OK)
        fprintf(stderr, "%s\n", sotto_last_error_text());
    sotto_state_free(state);
    sotto_model_free(model); /* after its states */
    return status == SOTTO_OK ? 0 : 1;
}
