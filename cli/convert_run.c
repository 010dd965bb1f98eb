/* SPDX-License-Identifier: MIT */
/* From the options of convert and quantize to a written model. */
#include <string.h>

#include "cli/convert_run.h"

/* "PATTERN=TYPE"; the last = counts, since patterns may hold one. */
static bool add_rule(struct conversion * c, const char * command, const char * word) {
    struct sotto_type_rule * rule = &c->rules[c->params.n_rules];
    char * pattern = c->patterns[c->params.n_rules];
    const char * equals = strrchr(word, '=');
    size_t n = equals != NULL ? (size_t)(equals - word) : 0;
    if (n == 0 || n >= sizeof(c->patterns[0])) {
        fprintf(stderr, "sotto %s: --keep takes PATTERN=TYPE, such as 'dec.token_embd.*=f16', not '%s'\n", command,
                word);
        return false;
    }
    memcpy(pattern, word, n);
    pattern[n] = 0;
    rule->pattern = pattern;
    c->params.n_rules++;
    return type_of_name(command, equals + 1, &rule->type);
}

static bool add_rules(struct conversion * c, const char * command, const struct options * options) {
    for (int i = 0; i < options->keep.n; i++)
        if (!add_rule(c, command, options->keep.words[i]))
            return false;
    if (options->keep_embedding)
        c->rules[c->params.n_rules++] = (struct sotto_type_rule){ "dec.token_embd.weight", SOTTO_TYPE_F16 };
    if (options->encoder_type == NULL)
        return true;
    struct sotto_type_rule * rule = &c->rules[c->params.n_rules++];
    rule->pattern = "enc.blk.*";
    return type_of_name(command, options->encoder_type, &rule->type);
}

enum exit_code conversion_init(struct conversion * c, const char * command, const struct options * options) {
    *c = (struct conversion){ .params = sotto_convert_default_params() };
    progress_init(&c->progress, !options->no_progress);
    c->params.rules = c->rules;
    c->params.n_threads = options->threads;
    if (!add_rules(c, command, options))
        return EXIT_USAGE;
    if (options->imatrix == NULL)
        return EXIT_DONE;
    enum sotto_status status = sotto_imatrix_open(options->imatrix, NULL, &c->imatrix);
    c->params.imatrix = c->imatrix;
    if (status == SOTTO_OK)
        return EXIT_DONE;
    print_last_error();
    return exit_code_of(status, EXIT_MODEL);
}

void conversion_free(struct conversion * c) { sotto_imatrix_free(c->imatrix); }

static bool go_on(uint64_t done, uint64_t total, void * user_data) {
    progress_show(user_data, total > 0 ? (int)(done * 100 / total) : 100);
    return signals_seen() == 0;
}

static enum exit_code code_of(enum sotto_status status) {
    switch (status) {
    case SOTTO_OK: return EXIT_DONE;
    case SOTTO_E_PARAM:
    case SOTTO_E_NULLARG: return EXIT_USAGE;
    case SOTTO_E_GGUF_IO_OPEN:
    case SOTTO_E_GGUF_IO_WRITE:
    case SOTTO_E_GGUF_IO_SYNC:
    case SOTTO_E_GGUF_IO_RENAME: return EXIT_OUTPUT;
    default: return exit_code_of(status, EXIT_MODEL);
    }
}

enum exit_code conversion_run(struct conversion * c, const char * in, const char * out) {
    c->params.progress = go_on;
    c->params.progress_user_data = &c->progress;
    progress_begin(&c->progress, 0);
    enum sotto_status status = sotto_convert(in, out, &c->params);
    progress_clear(&c->progress);
    if (status == SOTTO_E_ABORTED && signals_seen() != 0)
        return (enum exit_code)(EXIT_SIGNAL + signals_seen());
    if (status != SOTTO_OK)
        print_last_error();
    return code_of(status);
}
