/* SPDX-License-Identifier: MIT */
/* sotto eval TSV: recognise every clip of a list and count what was heard wrong. */
#include "cli/eval_run.h"

static enum exit_code evaluate(struct eval_run * run, FILE * to) {
    const struct options * options = run->options;
    if (!eval_run_read(run, options->args[0]) ||
        (options->against != NULL && !eval_read_other(&run->set, options->against)))
        return EXIT_AUDIO;
    enum exit_code code = eval_run_clips(run);
    if (code != EXIT_DONE && code != EXIT_SOME)
        return code;
    bool told =
        eval_score_other(&run->set) && (options->json ? eval_report_json(&run->set, to) : eval_report(&run->set, to));
    return told ? code : EXIT_MEMORY;
}

static enum exit_code open_and_evaluate(struct eval_run * run) {
    const struct options * options = run->options;
    enum exit_code code = eval_run_open(run, options->model, sotto_state_default_params());
    if (code != EXIT_DONE)
        return code;
    struct out_file out;
    if (!out_open(&out, options->output))
        return EXIT_OUTPUT;
    code = evaluate(run, out.file);
    return out_close(&out, code == EXIT_DONE || code == EXIT_SOME) ? code : EXIT_OUTPUT;
}

enum exit_code command_eval(const struct options * options) {
    signals_watch();
    struct eval_run run;
    enum exit_code code = eval_run_init(&run, "eval", options) ? open_and_evaluate(&run) : EXIT_USAGE;
    eval_run_free(&run);
    return code;
}
