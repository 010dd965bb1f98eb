/* SPDX-License-Identifier: MIT */
/* The recogniser: 16 kHz sound in, text out, with a Whisper model.
 *
 *     struct sotto_model * model;
 *     struct sotto_state * state;
 *     if (sotto_model_open("base.gguf", NULL, &model) == SOTTO_OK &&
 *         sotto_state_new(model, NULL, &state) == SOTTO_OK &&
 *         sotto_transcribe(state, samples, n_samples, NULL) == SOTTO_OK)
 *         for (int i = 0; i < sotto_n_segments(state); i++)
 *             puts(sotto_get_segment(state, i)->text);
 *     sotto_state_free(state);
 *     sotto_model_free(model);
 *
 * A model holds weights and vocabulary and never changes once open: any number of states may use it, from any
 * threads. A state holds caches, graphs and the result of the last call; it is used by one thread at a time, and a call
 * on a state that another thread is using returns SOTTO_E_BUSY. The model must outlive its states.
 *
 * Times of results are centiseconds (cs, 10 ms) from the first sample. A frame is one column of the spectrogram, 10 ms;
 * a position is one column of the encoder's output, 20 ms; a window is 3,000 frames, 30 s.
 *
 * Parameter structs are made by the function that returns defaults, edited, and passed; NULL means the defaults.
 * Functions that return a status leave the message in sotto_last_error_text(). Getters accept NULL and answer NULL or
 * 0. Strings and arrays that getters return belong to the object and live until its next call that changes them. */
#ifndef SOTTO_SPEECH_H
#define SOTTO_SPEECH_H

#include "sotto/cpu.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SOTTO_SAMPLE_RATE  16000
#define SOTTO_MAX_DECODERS 16 /* sequences that are decoded side by side: beams, or samples at a temperature */

struct sotto_model;
struct sotto_state;

/* ---- models ---- */

enum sotto_gelu_form {
    SOTTO_GELU_FORM_ERF = 0, /* exact; what Whisper was trained with */
    SOTTO_GELU_FORM_TANH = 1 /* the approximation that ggml's programs use */
};

struct sotto_model_params {
    uint32_t size;                            /* sizeof(struct sotto_model_params) */
    const struct sotto_allocator * allocator; /* for the model and, unless they say otherwise, its states */
    enum sotto_gelu_form gelu;
    bool check_weights; /* look at every weight; MODEL_NAN if one is NaN or infinite */
};
SOTTO_API struct sotto_model_params sotto_model_default_params(void);

/* Read a model from a GGUF file (architecture "whisper") at `path`; `*model` is NULL on failure.
 *   IO                       the file is missing, unreadable or a directory
 *   MODEL_FORMAT, _ARCH      not GGUF; GGUF, but no Whisper model
 *   MODEL_TRUNCATED, _CORRUPT, GGUF_*   the container is damaged
 *   MODEL_HPARAMS, _VOCAB    impossible sizes; unusable vocabulary
 *   MODEL_TENSOR_MISSING, _UNKNOWN, _SHAPE, _TYPE   the message names the tensor
 *   MEMORY */
SOTTO_API enum sotto_status sotto_model_open(const char * path, const struct sotto_model_params * params,
                                             struct sotto_model ** model);
SOTTO_API void sotto_model_free(struct sotto_model * model); /* after its states; NULL is allowed */

/* What the file says. Any thread. */
SOTTO_API const char * sotto_model_name(const struct sotto_model * model); /* "base"; "unknown" is no error */
SOTTO_API int sotto_model_n_vocab(const struct sotto_model * model);
SOTTO_API int sotto_model_n_mels(const struct sotto_model * model);
SOTTO_API int sotto_model_width(const struct sotto_model * model);
SOTTO_API int sotto_model_n_audio_ctx(const struct sotto_model * model); /* positions, 1500 */
SOTTO_API int sotto_model_n_text_ctx(const struct sotto_model * model);  /* tokens, 448 */
SOTTO_API int sotto_model_n_audio_layers(const struct sotto_model * model);
SOTTO_API int sotto_model_n_text_layers(const struct sotto_model * model);
SOTTO_API bool sotto_model_is_multilingual(const struct sotto_model * model);
SOTTO_API int sotto_model_n_languages(const struct sotto_model * model);
SOTTO_API enum sotto_type sotto_model_weight_type(const struct sotto_model * model); /* of the token embedding */
SOTTO_API size_t sotto_model_memory(const struct sotto_model * model);               /* bytes of weights */

/* ---- languages: ids 0..99 in the order of their tokens; 99 (yue) only in vocabularies of 51,866 ---- */

SOTTO_API int sotto_language_id(const char * code_or_name); /* any case, known aliases; -1 if unknown */
SOTTO_API const char * sotto_language_code(int id);         /* "en"; NULL outside the list */
SOTTO_API const char * sotto_language_name(int id);         /* "english" */

/* ---- tokens ---- */

enum sotto_special_token {
    SOTTO_TOKEN_EOT = 0, /* end of text */
    SOTTO_TOKEN_SOT = 1, /* start of transcript */
    SOTTO_TOKEN_TRANSLATE = 2,
    SOTTO_TOKEN_TRANSCRIBE = 3,
    SOTTO_TOKEN_SOLM = 4, /* start of LM; a change of speaker in tinydiarize models */
    SOTTO_TOKEN_PREV = 5, /* start of previous text */
    SOTTO_TOKEN_NOSP = 6, /* no speech */
    SOTTO_TOKEN_NO_TIMESTAMPS = 7,
    SOTTO_TOKEN_BEG = 8 /* timestamp 0.00; BEG + k is k * 0.02 s */
};
SOTTO_API int32_t sotto_token_special(const struct sotto_model * model, enum sotto_special_token which); /* or -1 */
SOTTO_API int32_t sotto_token_language(const struct sotto_model * model, int language); /* -1 if it has none */
/* Bytes of a token, specials as "<|en|>", "<|1.08|>"; `*size` (may be NULL) counts them, a 0 follows. One token may end
 * inside a UTF-8 character. NULL outside the vocabulary. */
SOTTO_API const char * sotto_token_text(const struct sotto_model * model, int32_t token, size_t * size);
/* Encode `size` bytes of text. Writes at most `capacity` ids and stores in `*count` how many there are; text never gives
 * special ids. MEMORY, PARAM. Any thread. */
SOTTO_API enum sotto_status sotto_tokenize(const struct sotto_model * model, const char * text, size_t size,
                                           int32_t * tokens, size_t capacity, size_t * count);

/* ---- states ---- */

struct sotto_state_params {
    uint32_t size;                             /* sizeof(struct sotto_state_params) */
    const struct sotto_allocator * allocator;  /* NULL = the model's */
    int n_threads;                             /* 1..SOTTO_MAX_N_THREADS; 0 = the processors there are, at most 4 */
    enum sotto_type cache_type;                /* F32 or F16 keys and values; COUNT = F32 for F32 weights, else F16 */
    sotto_backend_eval_callback eval_callback; /* asked around every node that the state computes; NULL = none */
    void * eval_user_data;
    enum sotto_compute compute; /* of its backend */
};
SOTTO_API struct sotto_state_params sotto_state_default_params(void);

/* Caches and graphs for one recording at a time. All memory that greedy decoding needs is taken here, but for the
 * result; caches for several sequences are made when a call needs them first, and stay. PARAM, MEMORY. Any thread. */
SOTTO_API enum sotto_status sotto_state_new(const struct sotto_model * model, const struct sotto_state_params * params,
                                            struct sotto_state ** state);
SOTTO_API void sotto_state_free(struct sotto_state * state); /* NULL is allowed */
SOTTO_API const struct sotto_model * sotto_state_model(const struct sotto_state * state);

/* ---- whole recordings ---- */

enum sotto_pad_mode {
    SOTTO_PAD_ZERO = 0,   /* what follows the sound in a window is 0.0, as the reference does */
    SOTTO_PAD_SILENCE = 1 /* it is silence, as whisper.cpp does */
};

/* Called after each window that gave segments: the last n_new of the state's are new. Getters may be called. */
typedef void (*sotto_new_segment_callback)(struct sotto_state * state, int n_new, void * user_data);
/* Percent done, 0..100: before each window, and 100 at the end. */
typedef void (*sotto_progress_callback)(struct sotto_state * state, int percent, void * user_data);

struct sotto_transcribe_params {
    uint32_t size; /* sizeof(struct sotto_transcribe_params) */
    int n_threads; /* for this call; 0 = the state's */

    const char * language;              /* code or name; NULL, "" and "auto" = detected on the window decoded first */
    int language_detection_segments;    /* windows to look at; they are, until ... (1) */
    float language_detection_threshold; /* ... a language is likelier than this; else the most frequent one (0.5) */
    bool multilingual;                  /* detected anew on every window that is decoded */
    bool translate;                     /* into English */

    /* What the model believes was said before. A prompt has room for 223 tokens. */
    const char * initial_prompt;     /* text said before the first window, or NULL; its last tokens are used */
    const int32_t * prompt_tokens;   /* the same as text tokens and timestamps, instead of initial_prompt ... */
    int n_prompt_tokens;             /* ... or 0 */
    bool carry_initial_prompt;       /* before each window, not only the first */
    const char * hotwords;           /* text in the prompt of each window, such as names; or NULL */
    const char * prefix;             /* what the first window's text begins with, or NULL; no hotwords then */
    int n_max_text_ctx;              /* most tokens of earlier text in a prompt, at most 224; 0 = none */
    bool condition_on_previous_text; /* the text of earlier windows is part of the next prompt */
    bool drop_late_history;          /* no earlier text for a window of less than 5 s that is not the first */

    /* What may be written. */
    bool no_timestamps;              /* one segment a window, no times inside */
    bool single_segment;             /* one segment a window all the same */
    bool suppress_blank;             /* a window may not begin with a space alone or with the end */
    bool suppress_nst;               /* no symbols that are not spoken: brackets, notes, ... */
    const int32_t * suppress_tokens; /* ids that are never written ... */
    int n_suppress_tokens;
    const char * suppress_regex; /* ... and those of which this POSIX extended expression matches the whole text */
    bool early_end;              /* a window is done when a timestamp comes within 100 ms of the end of the sound; not
                                  * with beams */
    float max_initial_ts;        /* seconds; the first timestamp of a window lies below; <= 0 = anywhere */
    int no_repeat_ngram;         /* no sequence of so many text tokens comes twice in a window; 0 = it may */
    int max_tokens;              /* sampled tokens of a window before it must end; 0 = only the limit of 224 */

    /* Search. A window is decoded at `temperature`; if that goes wrong, again at temperature + temperature_inc and so
     * on up to 1.0. At 0 the most likely text is searched, above best_of samples are drawn and the best one taken. */
    int beam_size;         /* 1 = greedy, at most SOTTO_MAX_DECODERS */
    float patience;        /* beams end when beam_size * patience hypotheses did, at most 2 * SOTTO_MAX_DECODERS */
    float length_penalty;  /* 0..1: a hypothesis scores sum / ((5 + length) / 6)^this; < 0 = sum / length */
    float temperature;     /* 0 or more */
    float temperature_inc; /* <= 0 = one attempt */
    int best_of;           /* 1..SOTTO_MAX_DECODERS */
    uint64_t seed;         /* sample i of a window is drawn by the generator seed + i */

    /* An attempt went wrong if its text repeats itself or is unlikely, and it is not silence. */
    float compression_ratio_thold; /* its compression_ratio is above this; so it is, too, if it has no end, and no
                                    * timestamp from 15 s on */
    float entropy_thold;           /* the last 32 of more than 32 tokens have less than this, in nats; 0 = not looked
                                    * at, whisper.cpp has 2.4 */
    float logprob_thold;           /* its avg_logprob is below this */
    float no_speech_thold;         /* silence: no_speech_prob is above this and avg_logprob not above logprob_thold */

    enum sotto_pad_mode pad_mode;
    int64_t offset;            /* cs to skip at the start */
    int64_t duration;          /* cs to look at, 0 = to the end */
    const double * clip_times; /* of that range only start, end, start, end, ... in seconds, ascending; an odd one out
                                * ends with the sound */
    int n_clip_times;          /* 0 = all */

    sotto_new_segment_callback new_segment;
    void * new_segment_user_data;
    sotto_progress_callback progress;
    void * progress_user_data;
    sotto_abort_callback abort; /* asked often; true ends the call with ABORTED, segments so far stay */
    void * abort_user_data;
};
SOTTO_API struct sotto_transcribe_params sotto_transcribe_default_params(void);

/* Recognise n_samples of mono f32 sound at 16 kHz (1.0 is full scale; more is allowed). Replaces the state's result.
 * Less than 100 ms of sound, an offset at or past the end, and silence give success and no segments.
 *   NULLARG, PARAM   the message names the field
 *   AUDIO_NAN        a sample is NaN or infinite
 *   LANGUAGE         not known, or not to this model
 *   REGEX            params.suppress_regex is no expression
 *   BUSY, ABORTED, MEMORY; after any of them the state can be used again */
SOTTO_API enum sotto_status sotto_transcribe(struct sotto_state * state, const float * samples, size_t n_samples,
                                             const struct sotto_transcribe_params * params);

/* ---- results of the last sotto_transcribe ---- */

struct sotto_segment {
    uint32_t size;     /* how much of this struct the library fills */
    int64_t t0, t1;    /* cs */
    const char * text; /* UTF-8 as the model wrote it, leading space kept; 0-terminated. A character that lies in the
                        * tokens of two segments is the first one's */
    size_t text_size;  /* bytes */
    int n_tokens;      /* timestamps included, see sotto_get_segment_token */
    int window;        /* index of the window it was found in */
    float avg_logprob; /* of that window: mean log-probability of its tokens and the end */
    float no_speech_prob;
    float compression_ratio; /* bytes of the window's text / bytes of its zlib stream */
    float temperature;       /* of the window's last attempt */
};

struct sotto_token_data {
    uint32_t size; /* how much of this struct the library fills */
    int32_t id;
    float p;     /* probability after the filters */
    float plog;  /* its natural logarithm */
    int32_t tid; /* the most likely timestamp here */
    float pt;    /* its probability among the timestamps; 0 where the filters allow none */
    float ptsum; /* probability of all timestamps together */
};

/* A window as it was decoded, before it was cut into segments; silent ones too. */
struct sotto_window {
    uint32_t size;      /* how much of this struct the library fills */
    int64_t seek;       /* first frame */
    int n_frames;       /* frames of sound, at most 3000 */
    bool skipped;       /* silent: not decoded, or thrown away */
    int n_tokens;       /* prefix and all that were sampled, the end not */
    int n_prompt;       /* tokens of the prompt */
    double sum_logprob; /* of the tokens but the prefix, and of the end if it was drawn */
    float avg_logprob;  /* sum / (n_tokens + 1) */
    float no_speech_prob;
    float compression_ratio;
    float temperature; /* of the last attempt */
    int n_attempts;    /* 0 if it was not decoded */
    int language;      /* in which it was decoded, -1 if it was not */
};

SOTTO_API int sotto_n_segments(const struct sotto_state * state);
SOTTO_API const struct sotto_segment * sotto_get_segment(const struct sotto_state * state, int i);
SOTTO_API const struct sotto_token_data * sotto_get_segment_token(const struct sotto_state * state, int segment, int i);
SOTTO_API int sotto_n_windows(const struct sotto_state * state);
SOTTO_API const struct sotto_window * sotto_get_window(const struct sotto_state * state, int i);
SOTTO_API const struct sotto_token_data * sotto_get_window_token(const struct sotto_state * state, int window, int i);

/* The language that was used, of several the last one: id, -1 before the first window. If it was detected, the probabilities of all languages of
 * the model in the order of ids; NULL if it was given. */
SOTTO_API int sotto_get_language(const struct sotto_state * state);
SOTTO_API const float * sotto_get_language_probs(const struct sotto_state * state, int * count);

/* ---- step by step: what sotto_transcribe is made of ---- */

/* The spectrogram's filters, 1 <= n_mels <= 512 (else PARAM): filters[k + 201 * band] for the bin of 40 * k Hz. */
SOTTO_API enum sotto_status sotto_mel_filters(int n_mels, float * filters);

/* Spectrogram of the window that begins at `frame0`, into the state. PARAM, AUDIO_NAN, BUSY. */
SOTTO_API enum sotto_status sotto_pcm_to_mel(struct sotto_state * state, const float * samples, size_t n_samples,
                                             int64_t frame0, enum sotto_pad_mode pad_mode);
/* One's own: data[band * n_frames + t], 0 <= n_frames <= 3000, the rest 0.0; n_mels must be the model's (PARAM). */
SOTTO_API enum sotto_status sotto_set_mel(struct sotto_state * state, const float * data, int n_frames, int n_mels);
/* The window in the state: mel[band * 3000 + t]. */
SOTTO_API const float * sotto_get_mel(const struct sotto_state * state);
/* Run the encoder over it and fill the cross caches of all decoder layers. BUSY, MEMORY. */
SOTTO_API enum sotto_status sotto_encode(struct sotto_state * state);
/* Output of the encoder, [positions, width]; NULL before the first sotto_encode. */
SOTTO_API const float * sotto_get_encoder_output(const struct sotto_state * state);
/* Run the decoder over n tokens at positions n_past.. (n_past must not exceed what was decoded before). PARAM for ids
 * or positions outside, STATE before sotto_encode, BUSY. */
SOTTO_API enum sotto_status sotto_decode(struct sotto_state * state, const int32_t * tokens, int n_tokens, int n_past);
/* Unfiltered logits of the last token given to sotto_decode, n_vocab of them; NULL before. */
SOTTO_API const float * sotto_get_logits(const struct sotto_state * state);
/* Probabilities of the languages for the window in the state, one decoder step; the most likely id into *language, the
 * distribution as sotto_get_language_probs. An English-only model answers 0 without computing. */
SOTTO_API enum sotto_status sotto_detect_language(struct sotto_state * state, int * language);

#ifdef __cplusplus
}
#endif
#endif
