/* SPDX-License-Identifier: MIT */
/* sotto quantize --report TSV IN [TYPE...]
 *
 * Each type's model is written to a folder of temporary files, opened, and removed before it is measured: sizes and
 * errors come from the conversion, words and time from recognising the list. F16 comes first, since times are told as
 * multiples of its time. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sotto/alloc.h"

#include "cli/eval_run.h"
#include "cli/quantize_report.h"

static const enum sotto_type DEFAULT_TYPES[] = {
    SOTTO_TYPE_F32,  SOTTO_TYPE_F16,    SOTTO_TYPE_BF16,   SOTTO_TYPE_Q8_0,  SOTTO_TYPE_Q5_0, SOTTO_TYPE_Q5_1,
    SOTTO_TYPE_Q4_0, SOTTO_TYPE_Q4_1,   SOTTO_TYPE_Q6_K,   SOTTO_TYPE_Q5_K,  SOTTO_TYPE_Q4_K, SOTTO_TYPE_Q3_K,
    SOTTO_TYPE_Q2_K, SOTTO_TYPE_IQ4_NL, SOTTO_TYPE_IQ4_XS, SOTTO_TYPE_MXFP4,
};
enum { N_DEFAULT = sizeof(DEFAULT_TYPES) / sizeof(DEFAULT_TYPES[0]) };

struct row {
    enum sotto_type type;
    bool asked; /* else it is there only to compare with */
    bool done;
    uint64_t file_size;
    double sum2, error2; /* of all quantised values */
    double worst;        /* relative error of one tensor ... */
    char worst_name[64]; /* ... and which */
    int64_t errors, words;
    double seconds, compute;
};

struct report {
    struct conversion * conversion;
    struct eval_run run;
    const char * in;
    struct row rows[SOTTO_TYPE_COUNT + 1];
    size_t n_rows;
    char folder[256], model[300];
};

/* ---- one type ---- */

static double relative(double error2, double sum2) { return sum2 > 0 ? sqrt(error2 / sum2) : 0; }

static void take_loss(const struct sotto_tensor_loss * loss, void * user_data) {
    struct row * row = user_data;
    double error = relative(loss->error2, loss->sum2);
    if (sotto_is_quantized(loss->type) || loss->error2 > 0) {
        row->sum2 += loss->sum2;
        row->error2 += loss->error2;
    }
    if (error <= row->worst)
        return;
    row->worst = error;
    snprintf(row->worst_name, sizeof(row->worst_name), "%s", loss->name);
}

static enum exit_code open_type(struct report * r, struct row * row) {
    struct sotto_convert_params * params = &r->conversion->params;
    params->type = row->type;
    params->tensor = take_loss;
    params->tensor_user_data = row;
    enum exit_code code = conversion_run(r->conversion, r->in, r->model);
    if (code != EXIT_DONE)
        return code;
    struct stat st;
    row->file_size = stat(r->model, &st) == 0 ? (uint64_t)st.st_size : 0;
    code = eval_run_open(&r->run, r->model, sotto_state_default_params());
    unlink(r->model);
    return code;
}

static void add_up(struct row * row, const struct eval_set * set) {
    for (size_t i = 0; i < set->n_clips; i++) {
        const struct eval_clip * clip = &set->clips[i];
        if (!clip->done)
            continue;
        row->seconds += clip->seconds;
        row->compute += clip->compute;
        if (eval_units(&clip->score.words) == 0)
            continue;
        row->errors += eval_errors(&clip->score.words);
        row->words += eval_units(&clip->score.words);
    }
    row->done = true;
}

static enum exit_code measure(struct report * r, struct row * row) {
    if (isatty(STDERR_FILENO))
        fprintf(stderr, "%s\n", sotto_type_name(row->type));
    enum exit_code code = open_type(r, row);
    if (code == EXIT_DONE)
        code = eval_run_clips(&r->run);
    if (code == EXIT_DONE || code == EXIT_SOME)
        add_up(row, &r->run.set);
    return code;
}

/* ---- for people ---- */

static double wer(const struct row * row) { return row->words > 0 ? (double)row->errors / (double)row->words : 0; }

static double times_f16(const struct report * r, const struct row * row) {
    return r->rows[0].compute > 0 ? row->compute / r->rows[0].compute : 0;
}

static void put_table(const struct report * r, FILE * to) {
    fprintf(to, "type      size MB   error      worst  in                                        WER    time\n");
    for (size_t i = 0; i < r->n_rows; i++) {
        const struct row * row = &r->rows[i];
        if (!row->asked)
            continue;
        fprintf(to, "%-8s %8.1f  %6.4f %%  %6.3f %%  %-36s %6.2f %%  %5.2f\n", sotto_type_name(row->type),
                (double)row->file_size / 1e6, 100 * relative(row->error2, row->sum2), 100 * row->worst,
                row->worst_name[0] != 0 ? row->worst_name : "-", 100 * wer(row), times_f16(r, row));
    }
    fprintf(to,
            "\nerror: root mean square of the differences to IN / that of its values; worst: of one tensor\n"
            "WER: %" PRId64 " words in %.1f s of sound; time: as a multiple of f16's, which took %.1f s\n",
            r->rows[0].words, r->rows[0].seconds, r->rows[0].compute);
}

/* ---- JSON ---- */

static void put_json(const struct report * r, FILE * to) {
    fputs("{\"model\":", to);
    put_json_string(to, r->in, strlen(r->in));
    fputs(",\"list\":", to);
    put_json_string(to, r->run.list, strlen(r->run.list));
    fprintf(to, ",\"seconds\":%.3f,\"f16_compute_seconds\":%.3f,\"types\":[", r->rows[0].seconds, r->rows[0].compute);
    const char * comma = "";
    for (size_t i = 0; i < r->n_rows; i++) {
        const struct row * row = &r->rows[i];
        if (!row->asked)
            continue;
        fprintf(to, "%s\n{\"type\":\"%s\",\"bytes\":%" PRIu64 ",\"error\":%.8f,\"worst\":%.8f,\"worst_tensor\":", comma,
                sotto_type_name(row->type), row->file_size, relative(row->error2, row->sum2), row->worst);
        put_json_string(to, row->worst_name, strlen(row->worst_name));
        fprintf(to,
                ",\"errors\":%" PRId64 ",\"words\":%" PRId64 ",\"wer\":%.6f,\"compute_seconds\":%.3f,\"time\":%.4f}",
                row->errors, row->words, wer(row), row->compute, times_f16(r, row));
        comma = ",";
    }
    fputs("\n]}\n", to);
}

/* ---- all types ---- */

static void add_row(struct report * r, enum sotto_type type, bool asked) {
    for (size_t i = 0; i < r->n_rows; i++) {
        if (r->rows[i].type == type) {
            r->rows[i].asked = r->rows[i].asked || asked;
            return;
        }
    }
    r->rows[r->n_rows++] = (struct row){ .type = type, .asked = asked };
}

static bool add_types(struct report * r, const struct options * options) {
    add_row(r, SOTTO_TYPE_F16, false);
    for (int i = 1; i < options->n_args; i++) {
        enum sotto_type type;
        if (!type_of_name("quantize", options->args[i], &type))
            return false;
        add_row(r, type, true);
    }
    for (int i = 0; i < N_DEFAULT && options->n_args == 1; i++)
        add_row(r, DEFAULT_TYPES[i], true);
    return true;
}

static bool make_folder(struct report * r) {
    const char * root = getenv("TMPDIR");
    int n =
        snprintf(r->folder, sizeof(r->folder), "%s/sotto-report-XXXXXX", root != NULL && root[0] != 0 ? root : "/tmp");
    if (n >= (int)sizeof(r->folder) || mkdtemp(r->folder) == NULL) {
        fprintf(stderr, "sotto quantize: no folder for temporary models can be made in %s\n",
                root != NULL && root[0] != 0 ? root : "/tmp");
        r->folder[0] = 0;
        return false;
    }
    snprintf(r->model, sizeof(r->model), "%s/model.gguf", r->folder);
    signals_remove(r->model, r->folder);
    return true;
}

static enum exit_code measure_all(struct report * r) {
    bool some = false;
    for (size_t i = 0; i < r->n_rows; i++) {
        enum exit_code code = measure(r, &r->rows[i]);
        some = some || code == EXIT_SOME;
        if (code != EXIT_DONE && code != EXIT_SOME)
            return code;
    }
    return some ? EXIT_SOME : EXIT_DONE;
}

static enum exit_code report(struct report * r, const struct options * options) {
    if (!add_types(r, options))
        return EXIT_USAGE;
    if (!eval_run_read(&r->run, options->report))
        return EXIT_AUDIO;
    if (!make_folder(r))
        return EXIT_OUTPUT;
    struct out_file out;
    if (!out_open(&out, options->output))
        return EXIT_OUTPUT;
    enum exit_code code = measure_all(r);
    bool keep = code == EXIT_DONE || code == EXIT_SOME;
    if (keep && options->json)
        put_json(r, out.file);
    else if (keep)
        put_table(r, out.file);
    return out_close(&out, keep) ? code : EXIT_OUTPUT;
}

enum exit_code quantize_report(struct conversion * conversion, const struct options * options) {
    struct report * r = sotto_calloc(NULL, 1, sizeof(*r));
    if (r == NULL) {
        print_last_error();
        return EXIT_MEMORY;
    }
    r->conversion = conversion;
    r->in = options->args[0];
    enum exit_code code = eval_run_init(&r->run, "quantize", options) ? report(r, options) : EXIT_USAGE;
    if (r->folder[0] != 0) {
        signals_remove(NULL, NULL);
        unlink(r->model);
        rmdir(r->folder);
    }
    eval_run_free(&r->run);
    sotto_mfree(NULL, r, 1, sizeof(*r));
    return code;
}
