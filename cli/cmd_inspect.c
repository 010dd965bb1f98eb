/* SPDX-License-Identifier: MIT */
/* sotto inspect FILE: what is in a model file, and with --verify whether its values are valid. */
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "sotto/alloc.h"
#include "sotto/quant.h"

#include "cli/digest.h"
#include "cli/inspect.h"

enum { PIECE = 1 << 20 };

/* ---- verifying ---- */

/* The first row of a piece with an invalid block; it is told. */
static void tell_bad(const struct inspection * found, const struct sotto_file_tensor * t, const char * piece,
                     uint64_t offset, size_t n) {
    size_t unit = sotto_type_size(t->type), at = 0;
    while (at + unit < n && sotto_validate_row_data(t->type, piece + at, unit))
        at += unit;
    uint64_t blocks = t->rank > 0 ? (uint64_t)(t->shape[t->rank - 1] / sotto_blck_size(t->type)) : 1;
    uint64_t block = (offset + at) / unit;
    fprintf(stderr, "sotto: %s: ", found->path);
    put_json_string(stderr, t->name, strlen(t->name));
    fprintf(stderr, " row %" PRIu64 " at byte %" PRIu64 ": %s\n", blocks > 0 ? block / blocks : 0,
            t->offset + offset + at, sotto_last_error_text());
}

static enum sotto_status verify_tensor(struct inspection * found, size_t i, char * piece) {
    const struct sotto_file_tensor * t = sotto_model_file_tensor(found->file, i);
    struct verified * result = &found->verified[i];
    size_t unit = sotto_type_size(t->type), most = PIECE / unit * unit;
    struct digest digest;
    digest_start(&digest);
    for (uint64_t at = 0; at < t->n_bytes && signals_seen() == 0; at += most) {
        size_t n = t->n_bytes - at < most ? (size_t)(t->n_bytes - at) : most;
        enum sotto_status status = sotto_model_file_read(found->file, i, at, piece, n);
        if (status != SOTTO_OK)
            return status;
        digest_add(&digest, piece, n);
        if (result->bad || sotto_validate_row_data(t->type, piece, n))
            continue;
        tell_bad(found, t, piece, at, n);
        result->bad = true;
        found->n_bad++;
    }
    digest_finish(&digest, result->hash);
    return SOTTO_OK;
}

static enum sotto_status verify(struct inspection * found) {
    found->verified = sotto_calloc(NULL, found->n_tensors + 1, sizeof(*found->verified));
    char * piece = sotto_malloc(NULL, PIECE, 1);
    enum sotto_status status = found->verified != NULL && piece != NULL ? SOTTO_OK : SOTTO_E_MEMORY;
    for (size_t i = 0; i < found->n_tensors && status == SOTTO_OK && signals_seen() == 0; i++)
        status = verify_tensor(found, i, piece);
    sotto_mfree(NULL, piece, PIECE, 1);
    return status;
}

/* ---- the file ---- */

static void count(struct inspection * found) {
    found->n_tensors = sotto_model_file_n_tensors(found->file);
    for (size_t i = 0; i < found->n_tensors; i++) {
        const struct sotto_file_tensor * t = sotto_model_file_tensor(found->file, i);
        found->types[t->type].n++;
        found->types[t->type].elements += t->n_elements;
        found->types[t->type].bytes += t->n_bytes;
        found->all.elements += t->n_elements;
        found->all.bytes += t->n_bytes;
    }
}

static enum exit_code tell(const struct inspection * found) {
    if (found->options->json)
        inspect_json(found, stdout);
    else
        inspect_text(found, stdout);
    if (fflush(stdout) == 0 && ferror(stdout) == 0)
        return found->n_bad > 0 ? EXIT_MODEL : EXIT_DONE;
    fprintf(stderr, "sotto: standard output could not be written\n");
    return EXIT_OUTPUT;
}

static enum exit_code inspect(struct inspection * found) {
    enum sotto_status status = sotto_model_file_open(found->path, NULL, &found->file);
    struct stat st;
    if (status == SOTTO_OK && stat(found->path, &st) == 0 && S_ISREG(st.st_mode))
        found->size = (uint64_t)st.st_size;
    if (status == SOTTO_OK) {
        count(found);
        status = found->options->verify ? verify(found) : SOTTO_OK;
    }
    if (signals_seen() != 0)
        return (enum exit_code)(EXIT_SIGNAL + signals_seen());
    if (status == SOTTO_OK)
        return tell(found);
    bool gguf = status >= SOTTO_E_GGUF_TRUNCATED && status <= SOTTO_E_GGUF_DATA_EXTENT;
    if (gguf && strstr(sotto_last_error_text(), "byte ") == NULL)
        fprintf(stderr, "sotto: %s (at byte %" PRIu64 ")\n", sotto_last_error_text(), sotto_gguf_last_error_pos());
    else
        print_last_error();
    return exit_code_of(status, EXIT_MODEL);
}

enum exit_code command_inspect(const struct options * options) {
    signals_watch();
    struct inspection found = { .options = options, .path = options->args[0] };
    enum exit_code code = inspect(&found);
    if (found.verified != NULL)
        sotto_mfree(NULL, found.verified, found.n_tensors + 1, sizeof(*found.verified));
    sotto_model_file_free(found.file);
    return code;
}
