/* SPDX-License-Identifier: MIT */
/* sotto convert IN OUT.gguf|OUT.bin|OUT/ */
#include "cli/convert_run.h"

enum exit_code command_convert(const struct options * options) {
    signals_watch();
    struct conversion conversion;
    enum exit_code code = conversion_init(&conversion, "convert", options);
    if (code == EXIT_DONE && options->type != NULL && !type_of_name("convert", options->type, &conversion.params.type))
        code = EXIT_USAGE;
    if (code == EXIT_DONE)
        code = conversion_run(&conversion, options->args[0], options->args[1]);
    conversion_free(&conversion);
    return code;
}
