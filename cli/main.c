/* SPDX-License-Identifier: MIT */
/* sotto: the command line. Finds the command, takes the options apart, runs it. */
#include <string.h>

#include "sotto/log.h"

#include "cli/cli.h"

static void print_warning(enum sotto_log_level level, const char * text, void * user_data) {
    (void)user_data;
    if (level == SOTTO_LOG_WARN)
        fprintf(stderr, "sotto: warning: %s", text);
}

void print_last_error(void) { fprintf(stderr, "sotto: %s\n", sotto_last_error_text()); }

enum exit_code exit_code_of(enum sotto_status status, enum exit_code other) {
    return status == SOTTO_E_MEMORY || status == SOTTO_E_LIMIT ? EXIT_MEMORY : other;
}

/* What was printed has to have arrived. */
static enum exit_code flushed(enum exit_code code) {
    if (fflush(stdout) == 0 && ferror(stdout) == 0)
        return code;
    fprintf(stderr, "sotto: standard output could not be written\n");
    return EXIT_OUTPUT;
}

static enum exit_code help(const struct options * options) {
    if (options->man) {
        options_man(stdout);
        return flushed(EXIT_DONE);
    }
    if (options->n_args == 0) {
        options_overview(stdout);
        return flushed(EXIT_DONE);
    }
    enum command command = options_command(options->args[0]);
    if (command == COMMAND_COUNT) {
        fprintf(stderr, "sotto: %s: no such command\n", options->args[0]);
        return EXIT_USAGE;
    }
    options_help(command, stdout);
    return flushed(EXIT_DONE);
}

static enum exit_code completion(const struct options * options) {
    if (options_completion(options->args[0], stdout))
        return flushed(EXIT_DONE);
    fprintf(stderr, "sotto completion: %s: there is none for that; bash and zsh are known\n", options->args[0]);
    return EXIT_USAGE;
}

static enum exit_code run(enum command command, const struct options * options) {
    if (options->help) {
        options_help(command, stdout);
        return flushed(EXIT_DONE);
    }
    switch (command) {
    case COMMAND_TRANSCRIBE: return command_transcribe(options);
    case COMMAND_EVAL: return command_eval(options);
    case COMMAND_CONVERT: return command_convert(options);
    case COMMAND_QUANTIZE: return command_quantize(options);
    case COMMAND_INSPECT: return command_inspect(options);
    case COMMAND_IMATRIX: return command_imatrix(options);
    case COMMAND_MODELS: return flushed(command_models(options));
    case COMMAND_COMPLETION: return completion(options);
    case COMMAND_HELP:
    case COMMAND_COUNT: break;
    }
    return help(options);
}

/* Is the program called by a name of whisper.cpp's? */
static bool is_whisper_cli(const char * program) {
    const char * slash = strrchr(program, '/');
    return strcmp(slash != NULL ? slash + 1 : program, "whisper-cli") == 0;
}

static enum exit_code call(int argc, char ** argv) {
    bool as_whisper_cli = argc > 0 && is_whisper_cli(argv[0]);
    const char * name = as_whisper_cli ? "transcribe" : argc > 1 ? argv[1] : "";
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0)
        name = "help";
    enum command command = options_command(name);
    if (command == COMMAND_COUNT) {
        if (argc > 1)
            fprintf(stderr, "sotto: %s: no such command\n\n", argv[1]);
        options_overview(stderr);
        return EXIT_USAGE;
    }
    int skip = as_whisper_cli ? 1 : 2;
    struct options options;
    if (!options_parse(command, as_whisper_cli, argc - skip, argv + skip, &options))
        return EXIT_USAGE;
    return run(command, &options);
}

int main(int argc, char ** argv) {
    sotto_log_set(print_warning, NULL);
    struct arguments arguments;
    enum exit_code code = EXIT_USAGE;
    if (arguments_expand(argc, argv, &arguments))
        code = call(arguments.n, arguments.words);
    arguments_free(&arguments);
    return (int)code;
}
