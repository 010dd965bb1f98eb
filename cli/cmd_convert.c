/* SPDX-License-Identifier: MIT */
/* sotto convert IN OUT.gguf|OUT.bin */
#include <string.h>

#include "sotto/models.h"

#include "cli/cli.h"

static bool go_on(uint64_t done, uint64_t total, void * user_data) {
    (void)done;
    (void)total;
    (void)user_data;
    return signals_seen() == 0;
}

static enum exit_code code_of(enum sotto_status status) {
    switch (status) {
    case SOTTO_OK: return EXIT_DONE;
    case SOTTO_E_GGUF_IO_OPEN:
    case SOTTO_E_GGUF_IO_WRITE:
    case SOTTO_E_GGUF_IO_SYNC:
    case SOTTO_E_GGUF_IO_RENAME: return EXIT_OUTPUT;
    default: return exit_code_of(status, EXIT_MODEL);
    }
}

enum exit_code command_convert(const struct options * options) {
    signals_watch();
    struct sotto_convert_params params = sotto_convert_default_params();
    if (options->type != NULL)
        params.type = strcmp(options->type, "f32") == 0 ? SOTTO_TYPE_F32 : SOTTO_TYPE_F16;
    params.progress = go_on;
    enum sotto_status status = sotto_convert(options->args[0], options->args[1], &params);
    if (status == SOTTO_E_ABORTED && signals_seen() != 0)
        return (enum exit_code)(EXIT_SIGNAL + signals_seen());
    if (status != SOTTO_OK)
        print_last_error();
    return code_of(status);
}
