/* SPDX-License-Identifier: MIT */
/* sotto quantize IN OUT TYPE, in the order of whisper.cpp's program; sotto quantize --report TSV IN [TYPE...] */
#include "cli/convert_run.h"
#include "cli/quantize_report.h"

static enum exit_code quantize(struct conversion * conversion, const struct options * options) {
    if (!type_of_name("quantize", options->args[2], &conversion->params.type))
        return EXIT_USAGE;
    return conversion_run(conversion, options->args[0], options->args[1]);
}

static bool arguments_fit(const struct options * options) {
    if (options->report != NULL || options->n_args == 3)
        return true;
    fprintf(stderr, "sotto quantize: give IN OUT TYPE, or --report TSV IN [TYPE...]\ntry: sotto help quantize\n");
    return false;
}

enum exit_code command_quantize(const struct options * options) {
    signals_watch();
    if (!arguments_fit(options))
        return EXIT_USAGE;
    struct conversion conversion;
    enum exit_code code = conversion_init(&conversion, "quantize", options);
    if (code == EXIT_DONE)
        code = options->report != NULL ? quantize_report(&conversion, options) : quantize(&conversion, options);
    conversion_free(&conversion);
    return code;
}
