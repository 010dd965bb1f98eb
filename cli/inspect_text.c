/* SPDX-License-Identifier: MIT */
/* sotto inspect for people. Nothing from the file reaches a terminal unescaped. */
#include <inttypes.h>
#include <string.h>

#include "cli/inspect.h"

/* A name as it is if all of it can be seen, else as JSON. */
static void put_name(FILE * to, const char * name) {
    size_t n = strlen(name), plain = 0;
    while (plain < n && name[plain] > ' ' && name[plain] <= '~' && name[plain] != '"')
        plain++;
    if (plain == n && n > 0)
        fputs(name, to);
    else
        put_json_string(to, name, n);
}

static void put_value(FILE * to, const struct sotto_gguf_context * gguf, int64_t id) {
    if (!is_gguf_array(gguf, id)) {
        fprintf(to, "%s  ", sotto_gguf_type_name(sotto_gguf_get_kv_type(gguf, id)));
        put_gguf_value(gguf, id, 0, to);
        return;
    }
    size_t n = sotto_gguf_get_arr_n(gguf, id);
    fprintf(to, "%zu %s  [", n, sotto_gguf_type_name(sotto_gguf_get_arr_type(gguf, id)));
    for (size_t i = 0; i < n && i < SHOWN_ELEMENTS; i++) {
        fputs(i > 0 ? ", " : "", to);
        put_gguf_value(gguf, id, i, to);
    }
    fputs(n > SHOWN_ELEMENTS ? ", ...]" : "]", to);
}

static void put_pairs(FILE * to, const struct sotto_gguf_context * gguf) {
    fprintf(to, "pairs      %" PRId64 "\n", sotto_gguf_get_n_kv(gguf));
    for (int64_t id = 0; id < sotto_gguf_get_n_kv(gguf); id++) {
        fputs("  ", to);
        put_name(to, sotto_gguf_get_key(gguf, id));
        fputs("  ", to);
        put_value(to, gguf, id);
        putc('\n', to);
    }
}

static void put_sizes(FILE * to, const struct sotto_model_file * file) {
    int64_t value;
    const char * name;
    fputs("sizes\n", to);
    for (size_t i = 0; (name = sotto_model_file_size(file, i, &value)) != NULL; i++)
        fprintf(to, "  %s  %" PRId64 "\n", name, value);
}

static void put_types(FILE * to, const struct inspection * found) {
    fprintf(to, "tensors    %zu, %" PRIu64 " values in %" PRIu64 " bytes\n", found->n_tensors, found->all.elements,
            found->all.bytes);
    for (int i = 0; i < SOTTO_TYPE_COUNT; i++)
        if (found->types[i].n > 0)
            fprintf(to, "  %-8s %5" PRIu64 " tensors  %12" PRIu64 " values  %12" PRIu64 " bytes\n",
                    sotto_type_name((enum sotto_type)i), found->types[i].n, found->types[i].elements,
                    found->types[i].bytes);
}

static void put_tensor(FILE * to, const struct inspection * found, size_t i) {
    const struct sotto_file_tensor * t = sotto_model_file_tensor(found->file, i);
    fputs("  ", to);
    put_name(to, t->name);
    fprintf(to, "  %s  [", sotto_type_name(t->type));
    for (int k = 0; k < t->rank; k++)
        fprintf(to, "%s%" PRId64, k > 0 ? ", " : "", t->shape[k]);
    fprintf(to, "]  %" PRIu64 " bytes at %" PRIu64, t->n_bytes, t->offset);
    if (found->verified != NULL)
        fprintf(to, "  %s  %s", found->verified[i].hash, found->verified[i].bad ? "BAD" : "good");
    putc('\n', to);
}

void inspect_text(const struct inspection * found, FILE * to) {
    const struct sotto_gguf_context * gguf = sotto_model_file_gguf(found->file);
    uint32_t version = sotto_model_file_version(found->file);
    fputs("file       ", to);
    put_name(to, found->path);
    fprintf(to, "\ncontainer  %s", sotto_model_file_container(found->file));
    if (version > 0)
        fprintf(to, ", version %" PRIu32, version);
    if (gguf != NULL)
        fprintf(to, ", aligned to %zu", sotto_gguf_get_alignment(gguf));
    if (found->size > 0)
        fprintf(to, ", %" PRIu64 " bytes", found->size);
    putc('\n', to);
    if (gguf != NULL)
        put_pairs(to, gguf);
    else
        put_sizes(to, found->file);
    put_types(to, found);
    for (size_t i = 0; i < found->n_tensors && found->options->tensors; i++)
        put_tensor(to, found, i);
    if (found->verified != NULL && found->n_bad == 0)
        fprintf(to, "verified   all values are valid\n");
    else if (found->verified != NULL)
        fprintf(to, "verified   %zu of %zu tensors hold values that are not valid\n", found->n_bad, found->n_tensors);
}
