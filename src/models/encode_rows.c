/* SPDX-License-Identifier: MIT */
/* Rows from one type into another, several threads at it.
 *
 * A batch is cut into jobs of a few rows, which threads draw from a counter; each job goes through f32 in its thread's
 * scratch. A row's bytes depend on the row alone, so they are the same for any number of threads. Of several failures
 * that of the first rows is reported. */
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "models/models_impl.h"
#include "sotto/quant.h"

#define JOB       ((size_t)8192)               /* elements, but one row at least */
#define MOST_JOBS (2 * MODELS_BATCH / JOB + 2) /* of a batch, since jobs are more than half of JOB */

struct batch {
    const struct whisper_tensor * tensor;
    const uint8_t * raw;
    uint8_t * dst;
    size_t n, job;       /* elements: of all, and of a job */
    int64_t row, n_jobs; /* elements of a row */
};

struct models_workers {
    const struct sotto_allocator * allocator;
    uint8_t * stage;
    size_t stage_size;
    float * scratch; /* of all threads, one after the other */
    size_t scratch_each;
    int n_threads, n_running; /* the caller and n_running others */
    pthread_t * threads;

    pthread_mutex_t lock;
    pthread_cond_t begin, end;
    uint64_t round; /* of the batch in hand; grows */
    bool quit;
    int n_busy;
    struct batch batch;
    atomic_llong next;                    /* job */
    bool measure;                         /* errors too ... */
    struct models_loss losses[MOST_JOBS]; /* ... of each job, so that they are added in one order */
    long long failed;                     /* the first job that did, -1 = none */
    enum sotto_status status;
};

/* ---- one job ---- */

static bool all_finite(const float * x, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (!isfinite(x[i]))
            return false;
    return true;
}

static void to_floats(enum sotto_type type, const void * from, float * to, size_t n) {
    if (type == SOTTO_TYPE_F32)
        memcpy(to, from, n * sizeof(*to));
    else
        sotto_get_type_traits(type)->to_float(from, to, (int64_t)n);
}

/* What is finite has to stay so. */
static enum sotto_status to_halves(const float * x, sotto_fp16_t * y, size_t n) {
    sotto_fp32_to_fp16_row(x, y, (int64_t)n);
    for (size_t i = 0; i < n; i++)
        if (isfinite(x[i]) && (y[i] & 0x7C00) == 0x7C00)
            return SOTTO_E_MODEL_NAN;
    return SOTTO_OK;
}

static enum sotto_status to_blocks(const struct whisper_tensor * t, const float * x, void * y, size_t n, int64_t row) {
    if (!all_finite(x, n))
        return SOTTO_E_MODEL_NAN;
    size_t bytes = sotto_quantize_chunk(t->stored, x, y, 0, (int64_t)n / row, row, t->importance);
    if (bytes == 0)
        return sotto_last_error();
    return sotto_validate_row_data(t->stored, y, bytes) ? SOTTO_OK : SOTTO_E_MODEL_NAN;
}

static struct models_loss compare(enum sotto_type type, const float * x, const void * y, float * floats, size_t n) {
    struct models_loss loss = { 0 };
    to_floats(type, y, floats, n);
    for (size_t i = 0; i < n; i++) {
        double difference = (double)x[i] - (double)floats[i];
        loss.sum2 += (double)x[i] * (double)x[i];
        loss.error2 += difference * difference;
    }
    return loss;
}

static enum sotto_status from_floats(const struct batch * b, const float * floats, uint8_t * to, size_t n) {
    switch (b->tensor->stored) {
    case SOTTO_TYPE_F32: memcpy(to, floats, n * sizeof(*floats)); return SOTTO_OK;
    case SOTTO_TYPE_F16: return to_halves(floats, (void *)to, n);
    case SOTTO_TYPE_BF16: sotto_fp32_to_bf16_row(floats, (void *)to, (int64_t)n); return SOTTO_OK;
    default: return to_blocks(b->tensor, floats, to, n, b->row);
    }
}

/* scratch holds a job twice */
static enum sotto_status encode(const struct batch * b, int64_t job, float * scratch, struct models_loss * loss) {
    const struct whisper_tensor * t = b->tensor;
    size_t first = (size_t)job * b->job;
    size_t n = b->n - first < b->job ? b->n - first : b->job;
    uint8_t * to = b->dst + whisper_bytes(t->stored, first);
    to_floats(t->source_type, b->raw + whisper_bytes(t->source_type, first), scratch, n);
    enum sotto_status status = from_floats(b, scratch, to, n);
    if (status == SOTTO_OK && loss != NULL)
        *loss = compare(t->stored, scratch, to, scratch + b->job, n);
    return status;
}

static void note_failure(struct models_workers * w, long long job, enum sotto_status status) {
    pthread_mutex_lock(&w->lock);
    if (w->failed < 0 || job < w->failed) {
        w->failed = job;
        w->status = status;
    }
    pthread_mutex_unlock(&w->lock);
}

static void draw_jobs(struct models_workers * w, int thread) {
    const struct batch * b = &w->batch;
    float * scratch = w->scratch + (size_t)thread * w->scratch_each;
    long long job;
    while ((job = atomic_fetch_add(&w->next, 1)) < b->n_jobs) {
        enum sotto_status status = encode(b, job, scratch, w->measure ? &w->losses[job] : NULL);
        if (status != SOTTO_OK)
            note_failure(w, job, status);
    }
}

/* ---- threads ---- */

struct start {
    struct models_workers * workers;
    int thread;
};

static void * work(void * data) {
    struct models_workers * w = ((struct start *)data)->workers;
    int thread = ((struct start *)data)->thread;
    uint64_t seen = 0;
    pthread_mutex_lock(&w->lock);
    w->n_busy--; /* `data` is read */
    pthread_cond_signal(&w->end);
    for (;;) {
        while (w->round == seen && !w->quit)
            pthread_cond_wait(&w->begin, &w->lock);
        if (w->quit)
            break;
        seen = w->round;
        pthread_mutex_unlock(&w->lock);
        draw_jobs(w, thread);
        pthread_mutex_lock(&w->lock);
        if (--w->n_busy == 0)
            pthread_cond_signal(&w->end);
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

static void wait_for_all(struct models_workers * w) {
    while (w->n_busy > 0)
        pthread_cond_wait(&w->end, &w->lock);
}

/* With fewer threads than asked for the work is done as well. */
static void start_threads(struct models_workers * w) {
    pthread_mutex_lock(&w->lock);
    while (w->n_running + 1 < w->n_threads) {
        struct start start = { w, w->n_running + 1 };
        w->n_busy = 1;
        if (pthread_create(&w->threads[w->n_running], NULL, work, &start) != 0) {
            w->n_busy = 0;
            break;
        }
        w->n_running++;
        wait_for_all(w);
    }
    pthread_mutex_unlock(&w->lock);
}

static void stop_threads(struct models_workers * w) {
    pthread_mutex_lock(&w->lock);
    w->quit = true;
    pthread_cond_broadcast(&w->begin);
    pthread_mutex_unlock(&w->lock);
    for (int i = 0; i < w->n_running; i++)
        pthread_join(w->threads[i], NULL);
}

static void run(struct models_workers * w) {
    atomic_store(&w->next, 0);
    w->failed = -1;
    bool alone = w->batch.n_jobs == 1 || w->n_running == 0;
    if (!alone) {
        pthread_mutex_lock(&w->lock);
        w->n_busy = w->n_running;
        w->round++;
        pthread_cond_broadcast(&w->begin);
        pthread_mutex_unlock(&w->lock);
    }
    draw_jobs(w, 0);
    if (alone)
        return;
    pthread_mutex_lock(&w->lock);
    wait_for_all(w);
    pthread_mutex_unlock(&w->lock);
}

/* ---- the interface ---- */

static int processors(void) {
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n >= 1 && n < SOTTO_DEFAULT_N_THREADS ? (int)n : SOTTO_DEFAULT_N_THREADS;
}

static size_t longest_row(const struct whisper_source * source) {
    size_t most = JOB;
    for (size_t i = 0; i < source->n_tensors; i++) {
        const struct whisper_tensor * t = &source->tensors[i];
        size_t row = (size_t)t->shape[t->rank - 1];
        most = row > most ? row : most;
    }
    return most;
}

/* Tables that quantisers search are made by one thread, before the others need them. */
static enum sotto_status prepare_types(const struct whisper_source * source) {
    for (size_t i = 0; i < source->n_tensors; i++) {
        enum sotto_type type = source->tensors[i].stored;
        if (!sotto_is_quantized(type))
            continue;
        sotto_clear_last_error();
        sotto_quantize_init(type);
        if (sotto_last_error() != SOTTO_OK)
            return sotto_last_error();
    }
    return SOTTO_OK;
}

enum sotto_status sotto_i_models_workers_new(struct whisper_source * source, int n_threads) {
    const struct sotto_allocator * allocator = source->allocator;
    enum sotto_status status = prepare_types(source);
    if (status != SOTTO_OK)
        return status;
    struct models_workers * w = sotto_calloc(allocator, 1, sizeof(*w));
    if (w == NULL)
        return SOTTO_E_MEMORY;
    w->allocator = allocator;
    w->n_threads = n_threads > 0 ? n_threads : processors();
    w->scratch_each = 2 * longest_row(source);
    w->scratch = sotto_malloc(allocator, w->scratch_each * (size_t)w->n_threads, sizeof(float));
    w->threads = sotto_malloc(allocator, (size_t)w->n_threads, sizeof(*w->threads));
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->begin, NULL);
    pthread_cond_init(&w->end, NULL);
    source->workers = w;
    if (w->scratch == NULL || w->threads == NULL)
        return SOTTO_E_MEMORY;
    start_threads(w);
    return SOTTO_OK;
}

void sotto_i_models_workers_free(const struct sotto_allocator * allocator, struct models_workers * w) {
    if (w == NULL)
        return;
    stop_threads(w);
    pthread_cond_destroy(&w->end);
    pthread_cond_destroy(&w->begin);
    pthread_mutex_destroy(&w->lock);
    sotto_mfree(allocator, w->threads, (size_t)w->n_threads, sizeof(*w->threads));
    sotto_mfree(allocator, w->scratch, w->scratch_each * (size_t)w->n_threads, sizeof(float));
    sotto_mfree(allocator, w->stage, w->stage_size, 1);
    sotto_mfree(allocator, w, 1, sizeof(*w));
}

void * sotto_i_models_stage(struct models_workers * w, enum sotto_type type, size_t n) {
    size_t size = (size_t)whisper_bytes(type, n);
    if (size > w->stage_size) {
        uint8_t * larger = sotto_realloc(w->allocator, w->stage, w->stage_size, size, 1);
        if (larger == NULL)
            return NULL;
        w->stage = larger;
        w->stage_size = size;
    }
    return w->stage;
}

static enum sotto_status failure(const struct models_workers * w) {
    const struct whisper_tensor * t = w->batch.tensor;
    struct whisper_name name = sotto_i_whisper_name(t, WHISPER_GGUF);
    if (w->status == SOTTO_E_MODEL_NAN)
        return sotto_fail(w->status,
                          "sotto_convert: a weight of '%s' is not finite or too large for %s; use a larger type, "
                          "such as f32",
                          name.text, sotto_type_name(t->stored));
    return sotto_fail(w->status, "sotto_convert: '%s' cannot be made %s", name.text, sotto_type_name(t->stored));
}

enum sotto_status sotto_i_models_encode(struct models_workers * w, const struct whisper_tensor * tensor,
                                        const void * raw, size_t n, void * dst, struct models_loss * loss) {
    size_t row = (size_t)tensor->shape[tensor->rank - 1];
    size_t job = row < JOB ? JOB / row * row : row;
    w->batch = (struct batch){ .tensor = tensor, .raw = raw, .dst = dst, .n = n, .job = job };
    w->batch.row = (int64_t)row;
    w->batch.n_jobs = (int64_t)((n + job - 1) / job);
    w->measure = loss != NULL;
    run(w);
    for (int64_t i = 0; i < w->batch.n_jobs && loss != NULL; i++) {
        loss->sum2 += w->losses[i].sum2;
        loss->error2 += w->losses[i].error2;
    }
    return w->failed < 0 ? SOTTO_OK : failure(w);
}
