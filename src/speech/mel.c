/* SPDX-License-Identifier: MIT */
/* A fixed number of frames at a time goes through one graph, planned once:
 *
 *     sums, differences [200, F]      each frame folded about its middle (mel_tables.h), packed by us
 *     re = cosines * sums, im = sines * differences       [201, F]
 *     bands = filters * (re^2 + im^2)                     [M, F]
 *
 * Folding halves the work and loses nothing: 16-bit samples add exactly. The logarithm is taken on the way out. The
 * signal counts as mirrored before its start and as followed by zeros, so frames past its end are known without
 * calculation. */
#include "mel.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "mel_tables.h"

#define N_FRAMES     500 /* frames a run */
#define SMALLEST     1e-10f
#define SMALLEST_LOG (-10.0f)
#define RANGE        8.0f /* log10 of what is kept below the maximum */

struct sotto_i_mel {
    const struct sotto_allocator * allocator;
    sotto_backend_t backend;
    int n_mels;
    struct sotto_context * weights;
    sotto_backend_buffer_t weights_buffer;
    struct sotto_context * ctx;
    struct sotto_tensor * sums;
    struct sotto_tensor * differences;
    struct sotto_tensor * bands;
    sotto_backend_graph_plan_t plan;
    float * packed; /* sums, then differences: 2 * SOTTO_I_HALF * N_FRAMES */
    float * result; /* n_mels * N_FRAMES */
};

/* ---- life ---- */

struct tables {
    struct sotto_tensor * cosines;
    struct sotto_tensor * sines;
    struct sotto_tensor * filters;
};

static size_t n_table_floats(const struct sotto_i_mel * mel) {
    return (size_t)SOTTO_I_BINS * (2 * SOTTO_I_HALF + (size_t)mel->n_mels);
}

/* Calculate the tables and hand them to the backend. */
static enum sotto_status set_tables(struct sotto_i_mel * mel, const struct tables * t) {
    size_t n = n_table_floats(mel);
    float * values = sotto_malloc(mel->allocator, n, sizeof(*values));
    if (!values)
        return SOTTO_E_MEMORY;
    float * sines = values + SOTTO_I_HALF * SOTTO_I_BINS;
    float * filters = sines + SOTTO_I_HALF * SOTTO_I_BINS;
    sotto_i_mel_basis(values, sines);
    sotto_i_mel_filters(mel->n_mels, filters);
    enum sotto_status status = sotto_backend_tensor_set(t->cosines, values, 0, sotto_nbytes(t->cosines));
    if (status == SOTTO_OK)
        status = sotto_backend_tensor_set(t->sines, sines, 0, sotto_nbytes(t->sines));
    if (status == SOTTO_OK)
        status = sotto_backend_tensor_set(t->filters, filters, 0, sotto_nbytes(t->filters));
    sotto_mfree(mel->allocator, values, n, sizeof(*values));
    return status;
}

static enum sotto_status make_tables(struct sotto_i_mel * mel, struct tables * t) {
    sotto_backend_buffer_type_t type = sotto_backend_is_cpu(mel->backend)
                                           ? sotto_backend_cpu_packed_buffer_type()
                                           : sotto_backend_get_default_buffer_type(mel->backend);
    mel->weights = sotto_init_ext(
        (struct sotto_init_params){ .mem_size = 3 * sotto_tensor_overhead(), .no_alloc = true }, mel->allocator);
    if (!mel->weights)
        return sotto_last_error();
    t->cosines = sotto_new_tensor_2d(mel->weights, SOTTO_TYPE_F32, SOTTO_I_HALF, SOTTO_I_BINS);
    t->sines = sotto_new_tensor_2d(mel->weights, SOTTO_TYPE_F32, SOTTO_I_HALF, SOTTO_I_BINS);
    t->filters = sotto_new_tensor_2d(mel->weights, SOTTO_TYPE_F32, SOTTO_I_BINS, mel->n_mels);
    if (sotto_context_status(mel->weights) != SOTTO_OK)
        return sotto_context_status(mel->weights);
    mel->weights_buffer = sotto_backend_alloc_ctx_tensors_from_buft_ext(mel->weights, type, mel->allocator);
    return mel->weights_buffer ? set_tables(mel, t) : sotto_last_error();
}

static enum sotto_status make_plan(struct sotto_i_mel * mel, const struct tables * t) {
    enum { N_NODES = 16 };
    size_t size = N_NODES * sotto_tensor_overhead() + sotto_graph_overhead_custom(N_NODES, false);
    mel->ctx = sotto_init_ext((struct sotto_init_params){ .mem_size = size, .no_alloc = true }, mel->allocator);
    if (!mel->ctx)
        return sotto_last_error();
    struct sotto_context * ctx = mel->ctx;
    mel->sums = sotto_new_tensor_2d(ctx, SOTTO_TYPE_F32, SOTTO_I_HALF, N_FRAMES);
    mel->differences = sotto_new_tensor_2d(ctx, SOTTO_TYPE_F32, SOTTO_I_HALF, N_FRAMES);
    struct sotto_tensor * re = sotto_mul_mat(ctx, t->cosines, mel->sums);
    struct sotto_tensor * im = sotto_mul_mat(ctx, t->sines, mel->differences);
    struct sotto_tensor * power = sotto_add(ctx, sotto_mul(ctx, re, re), sotto_mul(ctx, im, im));
    mel->bands = sotto_mul_mat(ctx, t->filters, power);
    struct sotto_cgraph * graph = sotto_new_graph_custom(ctx, N_NODES, false);
    if (sotto_context_status(ctx) != SOTTO_OK)
        return sotto_context_status(ctx);
    sotto_set_input(mel->sums);
    sotto_set_input(mel->differences);
    sotto_set_output(mel->bands);
    enum sotto_status status = sotto_build_forward_expand(graph, mel->bands);
    if (status != SOTTO_OK)
        return status;
    mel->plan = sotto_backend_graph_plan_create(mel->backend, graph);
    if (!mel->plan)
        return sotto_last_error();
    status = sotto_backend_tensor_memset(mel->sums, 0, 0, sotto_nbytes(mel->sums));
    if (status == SOTTO_OK)
        status = sotto_backend_tensor_memset(mel->differences, 0, 0, sotto_nbytes(mel->differences));
    return status;
}

static enum sotto_status make_all(struct sotto_i_mel * mel) {
    struct tables tables = { NULL, NULL, NULL };
    mel->packed = sotto_malloc(mel->allocator, 2 * SOTTO_I_HALF * N_FRAMES, sizeof(*mel->packed));
    mel->result = sotto_malloc(mel->allocator, (size_t)mel->n_mels * N_FRAMES, sizeof(*mel->result));
    if (!mel->packed || !mel->result)
        return SOTTO_E_MEMORY;
    enum sotto_status status = make_tables(mel, &tables);
    return status == SOTTO_OK ? make_plan(mel, &tables) : status;
}

enum sotto_status sotto_i_mel_new(int n_mels, sotto_backend_t backend, const struct sotto_allocator * allocator,
                                  struct sotto_i_mel ** out) {
    *out = NULL;
    struct sotto_i_mel * mel = sotto_calloc(allocator, 1, sizeof(*mel));
    if (!mel)
        return SOTTO_E_MEMORY;
    mel->allocator = allocator;
    mel->backend = backend;
    mel->n_mels = n_mels;
    enum sotto_status status = make_all(mel);
    if (status != SOTTO_OK) {
        sotto_i_mel_free(mel);
        return status;
    }
    *out = mel;
    return SOTTO_OK;
}

void sotto_i_mel_free(struct sotto_i_mel * mel) {
    if (!mel)
        return;
    if (mel->plan)
        sotto_backend_graph_plan_free(mel->backend, mel->plan);
    sotto_free(mel->ctx);
    sotto_backend_buffer_free(mel->weights_buffer);
    sotto_free(mel->weights);
    sotto_mfree(mel->allocator, mel->packed, 2 * SOTTO_I_HALF * N_FRAMES, sizeof(*mel->packed));
    sotto_mfree(mel->allocator, mel->result, (size_t)mel->n_mels * N_FRAMES, sizeof(*mel->result));
    sotto_mfree(mel->allocator, mel, 1, sizeof(*mel));
}

/* ---- frames ---- */

int64_t sotto_i_mel_content_frames(size_t n) { return (int64_t)(n / SOTTO_I_HOP); }

/* Frames that see a sample; those after them are all zero. */
static int64_t sounding_frames(size_t n) { return n == 0 ? 0 : (int64_t)((n - 1 + SOTTO_I_HALF) / SOTTO_I_HOP) + 1; }

/* The 400 samples of a frame near an end of the signal, frame t centred on sample 160 t. */
static void gather(const float * pcm, size_t n, int64_t t, float frame[SOTTO_I_FFT]) {
    int64_t first = t * SOTTO_I_HOP - SOTTO_I_HALF;
    for (int i = 0; i < SOTTO_I_FFT; i++) {
        int64_t at = first + i < 0 ? -(first + i) : first + i;
        frame[i] = (uint64_t)at < n ? pcm[at] : 0.0f;
    }
}

static void fold(const float frame[SOTTO_I_FFT], float * sums, float * differences) {
    for (int l = 0; l < SOTTO_I_HALF - 1; l++) {
        sums[l] = frame[l + 1] + frame[SOTTO_I_FFT - 1 - l];
        differences[l] = frame[l + 1] - frame[SOTTO_I_FFT - 1 - l];
    }
    sums[SOTTO_I_HALF - 1] = frame[SOTTO_I_HALF];
    differences[SOTTO_I_HALF - 1] = 0.0f;
}

static void pack(struct sotto_i_mel * mel, const float * pcm, size_t n, int64_t frame0, int n_frames) {
    float edge[SOTTO_I_FFT];
    for (int i = 0; i < n_frames; i++) {
        int64_t t = frame0 + i;
        int64_t first = t * SOTTO_I_HOP - SOTTO_I_HALF;
        const float * frame = edge;
        if (first >= 0 && (uint64_t)first + SOTTO_I_FFT <= n)
            frame = pcm + first;
        else
            gather(pcm, n, t, edge);
        float * sums = mel->packed + (size_t)i * SOTTO_I_HALF;
        fold(frame, sums, sums + (size_t)N_FRAMES * SOTTO_I_HALF);
    }
}

/* Powers of all bands of at most N_FRAMES frames into mel->result[band + M * i]. Columns past n_frames keep what they
 * had: columns do not mix. */
static enum sotto_status transform(struct sotto_i_mel * mel, const float * pcm, size_t n, int64_t frame0,
                                   int n_frames) {
    size_t bytes = (size_t)n_frames * SOTTO_I_HALF * sizeof(float);
    pack(mel, pcm, n, frame0, n_frames);
    enum sotto_status status = sotto_backend_tensor_set(mel->sums, mel->packed, 0, bytes);
    if (status == SOTTO_OK)
        status = sotto_backend_tensor_set(mel->differences, mel->packed + (size_t)N_FRAMES * SOTTO_I_HALF, 0, bytes);
    if (status == SOTTO_OK)
        status = sotto_backend_graph_plan_compute(mel->backend, mel->plan);
    if (status == SOTTO_OK)
        status = sotto_backend_tensor_get(mel->bands, mel->result, 0,
                                          (size_t)n_frames * (size_t)mel->n_mels * sizeof(float));
    return status;
}

/* ---- values ---- */

/* log10 of x > 0 by frexp and the series of artanh, in f64 with plain operations, so that it has the same bits with
 * every C library: |s| <= 0.172, error below 1e-12. */
static float log10_of(float x) {
    int exponent;
    double m = frexp((double)x, &exponent);
    if (m < 0.70710678118654752) {
        m *= 2.0;
        exponent--;
    }
    double s = (m - 1.0) / (m + 1.0);
    double q = s * s;
    double series = 1.0 / 13.0;
    for (int k = 11; k >= 1; k -= 2)
        series = series * q + 1.0 / k;
    return (float)(exponent * 0.30102999566398120 + 0.86858896380650366 * s * series);
}

/* Sound far above full scale may overflow; its power then counts as the largest number there is. */
static float clamp_power(float power) {
    if (!(power <= FLT_MAX))
        return FLT_MAX;
    return power < SMALLEST ? SMALLEST : power;
}

enum sotto_status sotto_i_mel_max(struct sotto_i_mel * mel, const float * pcm, size_t n, float * max_log10) {
    float largest = 0.0f;
    int64_t end = sounding_frames(n);
    *max_log10 = SMALLEST_LOG;
    for (int64_t t = 0; t < end; t += N_FRAMES) {
        int count = end - t < N_FRAMES ? (int)(end - t) : N_FRAMES;
        enum sotto_status status = transform(mel, pcm, n, t, count);
        if (status != SOTTO_OK)
            return status;
        for (size_t i = 0; i < (size_t)count * (size_t)mel->n_mels; i++) {
            float power = clamp_power(mel->result[i]);
            largest = power > largest ? power : largest;
        }
    }
    if (largest > SMALLEST)
        *max_log10 = log10_of(largest);
    return SOTTO_OK;
}

static float scaled(float value) { return (value + 4.0f) / 4.0f; }

/* What a frame without sound holds once it is clamped and scaled, and the least value that any has. */
static float floor_of(float max_log10) {
    return scaled(max_log10 - RANGE > SMALLEST_LOG ? max_log10 - RANGE : SMALLEST_LOG);
}

/* Columns first .. last - 1 of every band. */
static void fill(const struct sotto_i_mel * mel, float * out, int first, int last, float value) {
    for (int b = 0; b < mel->n_mels; b++) {
        for (int t = first; t < last; t++)
            out[(size_t)b * SOTTO_I_WINDOW_FRAMES + (size_t)t] = value;
    }
}

/* Scale the powers of n_frames frames into columns from `column` on; true if one of the first n_asked lies above the
 * floor. */
static bool put(const struct sotto_i_mel * mel, int n_frames, int n_asked, float max_log10, float * out, int column) {
    float lowest = floor_of(max_log10);
    bool sound = false;
    for (int b = 0; b < mel->n_mels; b++) {
        float * row = out + (size_t)b * SOTTO_I_WINDOW_FRAMES + column;
        for (int i = 0; i < n_frames; i++) {
            float value = scaled(log10_of(clamp_power(mel->result[(size_t)i * (size_t)mel->n_mels + (size_t)b])));
            row[i] = value > lowest ? value : lowest;
            sound = sound || (value > lowest && i < n_asked);
        }
    }
    return sound;
}

/* Columns of the window that are calculated: as many as asked for, but none past the last that sees sound. */
static int columns_to_make(size_t n, int64_t frame0, int wanted) {
    int64_t left = sounding_frames(n) - frame0;
    return left <= 0 ? 0 : left < wanted ? (int)left : wanted;
}

enum sotto_status sotto_i_mel_window(struct sotto_i_mel * mel, const float * pcm, size_t n, int64_t frame0,
                                     int n_frames, float max_log10, enum sotto_pad_mode pad, float * out,
                                     bool * silent) {
    int64_t all = sotto_i_mel_content_frames(n) + SOTTO_I_WINDOW_FRAMES; /* frames of the padded signal */
    int64_t there = frame0 >= all ? 0 : all - frame0 < SOTTO_I_WINDOW_FRAMES ? all - frame0 : SOTTO_I_WINDOW_FRAMES;
    int wanted = pad == SOTTO_PAD_SILENCE || n_frames > there ? (int)there : n_frames;
    int made = columns_to_make(n, frame0, wanted);
    bool sound = false;
    for (int t = 0; t < made; t += N_FRAMES) {
        int count = made - t < N_FRAMES ? made - t : N_FRAMES;
        enum sotto_status status = transform(mel, pcm, n, frame0 + t, count);
        if (status != SOTTO_OK)
            return status;
        bool above = put(mel, count, n_frames - t, max_log10, out, t);
        sound = sound || above;
    }
    fill(mel, out, made, wanted, floor_of(max_log10));
    fill(mel, out, wanted, SOTTO_I_WINDOW_FRAMES, 0.0f);
    if (silent)
        *silent = !sound;
    return SOTTO_OK;
}
