/* SPDX-License-Identifier: MIT */
/* sotto inspect as JSON: numbers, and strings as UTF-8 in which ill-formed bytes are U+FFFD. */
#include <inttypes.h>
#include <string.h>

#include "cli/inspect.h"

static void put_text(FILE * to, const char * name, const char * text) {
    fprintf(to, "\"%s\":", name);
    put_json_string(to, text, strlen(text));
}

static void put_array(FILE * to, const struct sotto_gguf_context * gguf, int64_t id) {
    size_t n = sotto_gguf_get_arr_n(gguf, id);
    fprintf(to, ",\"element\":\"%s\",\"count\":%zu,\"first\":[",
            sotto_gguf_type_name(sotto_gguf_get_arr_type(gguf, id)), n);
    for (size_t i = 0; i < n && i < SHOWN_ELEMENTS; i++) {
        fputs(i > 0 ? "," : "", to);
        put_gguf_value(gguf, id, i, to);
    }
    putc(']', to);
}

static void put_pairs(FILE * to, const struct sotto_gguf_context * gguf) {
    fputs(",\n\"pairs\":[", to);
    for (int64_t id = 0; id < sotto_gguf_get_n_kv(gguf); id++) {
        fputs(id > 0 ? ",\n{" : "\n{", to);
        put_text(to, "key", sotto_gguf_get_key(gguf, id));
        fprintf(to, ",\"type\":\"%s\"", sotto_gguf_type_name(sotto_gguf_get_kv_type(gguf, id)));
        if (is_gguf_array(gguf, id)) {
            put_array(to, gguf, id);
        } else {
            fputs(",\"value\":", to);
            put_gguf_value(gguf, id, 0, to);
        }
        putc('}', to);
    }
    fputs("]", to);
}

static void put_sizes(FILE * to, const struct sotto_model_file * file) {
    int64_t value;
    const char * name;
    fputs(",\n\"sizes\":{", to);
    for (size_t i = 0; (name = sotto_model_file_size(file, i, &value)) != NULL; i++)
        fprintf(to, "%s\"%s\":%" PRId64, i > 0 ? "," : "", name, value);
    putc('}', to);
}

static void put_types(FILE * to, const struct inspection * found) {
    const char * comma = "";
    fputs(",\n\"types\":{", to);
    for (int i = 0; i < SOTTO_TYPE_COUNT; i++) {
        if (found->types[i].n == 0)
            continue;
        fprintf(to, "%s\"%s\":{\"tensors\":%" PRIu64 ",\"values\":%" PRIu64 ",\"bytes\":%" PRIu64 "}", comma,
                sotto_type_name((enum sotto_type)i), found->types[i].n, found->types[i].elements,
                found->types[i].bytes);
        comma = ",";
    }
    putc('}', to);
}

static void put_tensor(FILE * to, const struct inspection * found, size_t i) {
    const struct sotto_file_tensor * t = sotto_model_file_tensor(found->file, i);
    fputs(i > 0 ? ",\n{" : "\n{", to);
    put_text(to, "name", t->name);
    fprintf(to, ",\"type\":\"%s\",\"shape\":[", sotto_type_name(t->type));
    for (int k = 0; k < t->rank; k++)
        fprintf(to, "%s%" PRId64, k > 0 ? "," : "", t->shape[k]);
    fprintf(to, "],\"bytes\":%" PRIu64 ",\"offset\":%" PRIu64, t->n_bytes, t->offset);
    if (found->verified != NULL)
        fprintf(to, ",\"sha256\":\"%s\",\"valid\":%s", found->verified[i].hash,
                found->verified[i].bad ? "false" : "true");
    putc('}', to);
}

static void put_tensors(FILE * to, const struct inspection * found) {
    fputs(",\n\"tensors\":[", to);
    for (size_t i = 0; i < found->n_tensors; i++)
        put_tensor(to, found, i);
    putc(']', to);
}

void inspect_json(const struct inspection * found, FILE * to) {
    const struct sotto_gguf_context * gguf = sotto_model_file_gguf(found->file);
    putc('{', to);
    put_text(to, "file", found->path);
    fprintf(to, ",\"container\":\"%s\",\"version\":%" PRIu32 ",\"bytes\":%" PRIu64,
            sotto_model_file_container(found->file), sotto_model_file_version(found->file), found->size);
    if (gguf != NULL) {
        fprintf(to, ",\"alignment\":%zu", sotto_gguf_get_alignment(gguf));
        put_pairs(to, gguf);
    } else {
        put_sizes(to, found->file);
    }
    put_types(to, found);
    fprintf(to, ",\n\"tensor_count\":%zu,\"tensor_bytes\":%" PRIu64, found->n_tensors, found->all.bytes);
    if (found->options->tensors)
        put_tensors(to, found);
    if (found->verified != NULL)
        fprintf(to, ",\n\"invalid_tensors\":%zu", found->n_bad);
    fputs("}\n", to);
}
