/* SPDX-License-Identifier: MIT */
/* op_vectors FILE...: run known-answer cases of the op-vectors format through the engine.
 *
 * Each case names operands (given values, or a formula), a program of builder calls, and the result that the last
 * one must have: type, extents, strides, node, sources, parameters, values. Each is computed with 1 and with 3
 * threads, which must agree bit for bit. A case with a builder or type that does not exist yet is skipped and
 * counted by that name. Gradients are left to the backward pass. Ends with "N passed, N failed, N skipped". */
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sotto/sotto.h"

enum { MAX_NAMED = 64, MAX_ARGS = 12, MAX_SKIPS = 256, ARENA = 48 << 20 };

struct named {
    const char * name;
    struct sotto_tensor * tensor;
};

struct run {
    struct sotto_context * ctx;
    struct named named[MAX_NAMED];
    int n_named;
    char why[512]; /* first failure */
};

struct arg {
    struct sotto_tensor * t;
    double number;
    bool flag;
};

struct builder {
    const char * name;
    int n_args;
    struct sotto_tensor * (*make)(struct sotto_context * c, const struct arg * a);
    enum sotto_status (*set)(const struct arg * a);
};

#define T(i) a[i].t
#define N(i) (int64_t) a[i].number
#define I(i) (int)a[i].number
#define Z(i) (size_t) a[i].number
#define F(i) (float)a[i].number
#define B(i) a[i].flag
#define Y(i) (enum sotto_type)(int) a[i].number

#define BUILDER(name, n, call) \
    static struct sotto_tensor * make_##name(struct sotto_context * c, const struct arg * a) { return call; }
#define SETTER(name, n, call) \
    static enum sotto_status set_##name(const struct arg * a) { return call; }
#include "vectors/builders.def"
#undef BUILDER
#undef SETTER

static const struct builder builders[] = {
#define BUILDER(name, n, call) { #name, n, make_##name, NULL },
#define SETTER(name, n, call)  { #name, n, NULL, set_##name },
#include "vectors/builders.def"
#undef BUILDER
#undef SETTER
};

static const struct builder * find_builder(const char * name) {
    for (size_t i = 0; i < sizeof(builders) / sizeof(*builders); i++) {
        if (strcmp(builders[i].name, name) == 0) {
            return &builders[i];
        }
    }
    return NULL;
}

static int find_type(const char * name) {
    for (int i = 0; i < SOTTO_TYPE_COUNT; i++) {
        if (strcmp(sotto_type_name((enum sotto_type)i), name) == 0) {
            return i;
        }
    }
    return -1;
}

/* Values can be made and compared: plain numbers, or blocks that decode. */
static bool type_usable(const char * name) {
    const int type = find_type(name);
    return type >= 0 && (!sotto_is_quantized((enum sotto_type)type) ||
                         sotto_get_type_traits((enum sotto_type)type)->to_float != NULL);
}

static bool fail(struct run * run, const char * format, ...) SOTTO_PRINTF(2, 3);

static bool fail(struct run * run, const char * format, ...) {
    if (run->why[0] == '\0') {
        va_list args;
        va_start(args, format);
        vsnprintf(run->why, sizeof(run->why), format, args);
        va_end(args);
    }
    return false;
}

static struct sotto_tensor * lookup(const struct run * run, const char * name) {
    for (int i = run->n_named - 1; i >= 0; i--) {
        if (strcmp(run->named[i].name, name) == 0) {
            return run->named[i].tensor;
        }
    }
    return NULL;
}

static bool remember(struct run * run, const char * name, struct sotto_tensor * tensor) {
    if (run->n_named == MAX_NAMED) {
        return fail(run, "more than %d names in one case", MAX_NAMED);
    }
    run->named[run->n_named++] = (struct named){ name, tensor };
    return true;
}

/* ---- operands ---- */

static double json_double(const json_t * value) {
    if (json_is_string(value)) {
        return strtod(json_string_value(value), NULL); /* "inf", "-inf", "nan" */
    }
    return json_number_value(value);
}

static double formula(int64_t i, double k) { return sin(0.37 * (double)i + 0.11 * k) * (1.0 + 0.1 * (double)(i % 7)); }

static double operand_value(const json_t * operand, int64_t i) {
    const json_t * values = json_object_get(operand, "v");
    if (values != NULL) {
        return json_double(json_array_get(values, (size_t)i));
    }
    const json_t * mul = json_object_get(operand, "mul");
    double x = formula(i, json_number_value(json_object_get(operand, "k")));
    if (json_is_true(json_object_get(operand, "abs"))) {
        x = fabs(x);
    }
    return x * (mul != NULL ? json_number_value(mul) : 1.0) + json_number_value(json_object_get(operand, "add"));
}

static void * element(const struct sotto_tensor * t, int64_t i) {
    int64_t at[SOTTO_MAX_DIMS];
    sotto_unravel_index(t, i, &at[0], &at[1], &at[2], &at[3]);
    char * p = t->data;
    for (int d = 0; d < SOTTO_MAX_DIMS; d++) {
        p += (size_t)at[d] * t->nb[d];
    }
    return p;
}

static double get_element(const struct sotto_tensor * t, int64_t i) {
    if (t->type == SOTTO_TYPE_I64) {
        int64_t x;
        memcpy(&x, element(t, i), sizeof(x));
        return (double)x;
    }
    if (t->type == SOTTO_TYPE_I32) {
        int32_t x;
        memcpy(&x, element(t, i), sizeof(x));
        return x;
    }
    return sotto_get_f32_1d(t, i);
}

static void set_element(struct sotto_tensor * t, int64_t i, double x) {
    if (t->type == SOTTO_TYPE_I64) {
        const int64_t whole = (int64_t)x;
        memcpy(element(t, i), &whole, sizeof(whole));
    } else if (t->type == SOTTO_TYPE_I32 || t->type == SOTTO_TYPE_I16 || t->type == SOTTO_TYPE_I8) {
        sotto_set_i32_1d(t, i, (int32_t)x);
    } else {
        sotto_set_f32_1d(t, i, (float)x);
    }
}

static int hex_digit(char c) { return c <= '9' ? c - '0' : (c | 32) - 'a' + 10; }

static bool fill_bytes(struct run * run, struct sotto_tensor * t, const char * hex) {
    const size_t n = strlen(hex) / 2;
    if (n != sotto_nbytes(t)) {
        return fail(run, "operand has %zu bytes of blocks, its type takes %zu", n, sotto_nbytes(t));
    }
    for (size_t i = 0; i < n; i++) {
        ((uint8_t *)t->data)[i] = (uint8_t)(hex_digit(hex[2 * i]) * 16 + hex_digit(hex[2 * i + 1]));
    }
    return true;
}

static bool read_ne(const json_t * list, int64_t ne[SOTTO_MAX_DIMS]) {
    const size_t n = json_array_size(list);
    for (size_t d = 0; d < SOTTO_MAX_DIMS; d++) {
        ne[d] = d < n ? json_integer_value(json_array_get(list, d)) : 1;
    }
    return n <= SOTTO_MAX_DIMS;
}

static bool make_operands(struct run * run, const json_t * in) {
    const char * name;
    json_t * operand;
    json_object_foreach((json_t *)in, name, operand) {
        int64_t ne[SOTTO_MAX_DIMS];
        read_ne(json_object_get(operand, "ne"), ne);
        const int type = find_type(json_string_value(json_object_get(operand, "t")));
        struct sotto_tensor * t = sotto_new_tensor(run->ctx, (enum sotto_type)type, SOTTO_MAX_DIMS, ne);
        if (t == NULL) {
            return fail(run, "operand %s: %s", name, sotto_last_error_text());
        }
        sotto_set_name(t, name);
        const char * hex = json_string_value(json_object_get(operand, "hex"));
        if (hex != NULL) {
            if (!fill_bytes(run, t, hex)) {
                return false;
            }
        } else {
            for (int64_t i = 0, n = sotto_nelements(t); i < n; i++) {
                set_element(t, i, operand_value(operand, i));
            }
        }
        if (!remember(run, name, t)) {
            return false;
        }
    }
    return true;
}

/* ---- program ---- */

static bool read_args(struct run * run, const json_t * call, struct arg * args) {
    for (size_t i = 2; i < json_array_size(call); i++) {
        const json_t * value = json_array_get(call, i);
        struct arg * arg = &args[i - 2];
        if (json_is_string(value)) {
            arg->t = lookup(run, json_string_value(value));
            if (arg->t == NULL) {
                return fail(run, "program names unknown tensor '%s'", json_string_value(value));
            }
        } else if (json_is_boolean(value)) {
            arg->flag = json_is_true(value);
        } else if (json_is_number(value)) {
            arg->number = json_number_value(value);
        } else if (!json_is_null(value)) {
            return fail(run, "argument %zu is of a kind that is not read", i - 1);
        }
    }
    return true;
}

static bool run_program(struct run * run, const json_t * prog) {
    for (size_t i = 0; i < json_array_size(prog); i++) {
        const json_t * call = json_array_get(prog, i);
        const char * name = json_string_value(json_array_get(call, 1));
        const struct builder * builder = find_builder(name);
        struct arg args[MAX_ARGS] = { { 0 } };
        if (json_array_size(call) != (size_t)builder->n_args + 2) {
            return fail(run, "%s takes %d arguments, the program gives %zu", name, builder->n_args,
                        json_array_size(call) - 2);
        }
        if (!read_args(run, call, args)) {
            return false;
        }
        if (builder->set != NULL) {
            if (builder->set(args) != SOTTO_OK) {
                return fail(run, "%s", sotto_last_error_text());
            }
            continue;
        }
        struct sotto_tensor * result = builder->make(run->ctx, args);
        if (result == NULL) {
            return fail(run, "builder refused: %s", sotto_last_error_text());
        }
        if (!remember(run, json_string_value(json_array_get(call, 0)), result)) {
            return false;
        }
    }
    return true;
}

static bool compute(struct run * run, struct sotto_tensor * y, int n_threads) {
    struct sotto_cgraph * graph = sotto_new_graph(run->ctx);
    if (sotto_build_forward_expand(graph, y) != SOTTO_OK ||
        sotto_graph_compute_with_ctx(run->ctx, graph, n_threads) != SOTTO_OK) {
        return fail(run, "compute: %s", sotto_last_error_text());
    }
    return true;
}

/* ---- checks ---- */

static double round_to_type(enum sotto_type type, double x) {
    if (type == SOTTO_TYPE_F16) {
        return sotto_fp16_to_fp32(sotto_fp32_to_fp16((float)x));
    }
    if (type == SOTTO_TYPE_BF16) {
        return sotto_bf16_to_fp32(sotto_fp32_to_bf16((float)x));
    }
    return (float)x;
}

/* Values of a tensor in logical order; the caller frees. */
static double * read_values(const struct sotto_tensor * t) {
    const int64_t n = sotto_nelements(t);
    double * values = malloc(sizeof(double) * (size_t)(n > 0 ? n : 1));
    if (sotto_is_quantized(t->type)) {
        float * row = malloc(sizeof(float) * (size_t)t->ne[0]);
        for (int64_t i = 0; i < n; i += t->ne[0]) {
            int64_t at[SOTTO_MAX_DIMS];
            sotto_unravel_index(t, i, &at[0], &at[1], &at[2], &at[3]);
            const char * p = (const char *)t->data + at[1] * (int64_t)t->nb[1] + at[2] * (int64_t)t->nb[2] +
                             at[3] * (int64_t)t->nb[3];
            sotto_get_type_traits(t->type)->to_float(p, row, t->ne[0]);
            for (int64_t j = 0; j < t->ne[0]; j++) {
                values[i + j] = row[j];
            }
        }
        free(row);
        return values;
    }
    for (int64_t i = 0; i < n; i++) {
        values[i] = get_element(t, i);
    }
    return values;
}

static double rms(const json_t * want, const json_t * rcap) {
    double sum = 0;
    size_t n = 0;
    for (size_t i = 0; i < json_array_size(want); i++) {
        const json_t * value = json_array_get(want, i);
        const double x = json_is_null(value) ? NAN : json_double(value);
        if (isfinite(x) && fabs(x) < 1e30) {
            sum += x * x;
            n++;
        }
    }
    const double r = n > 0 ? sqrt(sum / (double)n) : 0;
    return rcap != NULL && json_number_value(rcap) < r ? json_number_value(rcap) : r;
}

static bool value_ok(double got, double want, double tol, double r) {
    if (isnan(want) || isnan(got)) {
        return isnan(want) && isnan(got);
    }
    if (isinf(want) || isinf(got)) {
        return got == want;
    }
    if (fabs(want) >= 1e30) {
        return fabs(got - want) <= 1e-5 * fabs(want);
    }
    return fabs(got - want) <= tol * (fabs(want) + r) + 1e-6;
}

static int compare_doubles(const void * a, const void * b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Rows as multisets: sort both sides. */
static void sort_rows(double * values, int64_t n, int64_t row) {
    for (int64_t i = 0; row > 0 && i + row <= n; i += row) {
        qsort(values + i, (size_t)row, sizeof(double), compare_doubles);
    }
}

static bool check_values(struct run * run, const char * what, const struct sotto_tensor * t, const json_t * expected,
                         const json_t * test) {
    const json_t * want = json_object_get(expected, "v");
    const int64_t n = sotto_nelements(t);
    if (json_array_size(want) != (size_t)n) {
        return fail(run, "%s has %" PRId64 " elements, wanted %zu", what, n, json_array_size(want));
    }
    const char * cmp = json_string_value(json_object_get(test, "cmp"));
    const bool exact = cmp != NULL && strcmp(cmp, "exact") == 0;
    const bool set = cmp != NULL && strcmp(cmp, "set") == 0;
    const double tol = json_number_value(json_object_get(test, "tol"));
    const double r = rms(want, json_object_get(test, "rcap"));
    double * got = read_values(t);
    double * wanted = malloc(sizeof(double) * (size_t)(n > 0 ? n : 1));
    for (int64_t i = 0; i < n; i++) {
        const json_t * value = json_array_get(want, (size_t)i);
        wanted[i] = json_is_null(value) ? got[i] : json_double(value);
    }
    if (set) {
        sort_rows(got, n, t->ne[0]);
        sort_rows(wanted, n, t->ne[0]);
    }
    bool ok = true;
    for (int64_t i = 0; i < n && ok; i++) {
        const bool good = exact && isfinite(wanted[i]) ? got[i] == round_to_type(t->type, wanted[i])
                                                       : value_ok(got[i], wanted[i], tol, r);
        if (!good) {
            ok = fail(run, "%s[%" PRId64 "] = %.9g, wanted %.9g (tolerance %g, rms %.6g)", what, i, got[i], wanted[i],
                      tol, r);
        }
    }
    free(got);
    free(wanted);
    return ok;
}

static bool check_hex(struct run * run, const struct sotto_tensor * t, const char * hex) {
    for (size_t i = 0; i < strlen(hex) / 2; i++) {
        const int want = hex_digit(hex[2 * i]) * 16 + hex_digit(hex[2 * i + 1]);
        if (((const uint8_t *)t->data)[i] != want) {
            return fail(run, "block byte %zu is %d, wanted %d", i, ((const uint8_t *)t->data)[i], want);
        }
    }
    return true;
}

static bool check_layout(struct run * run, const char * what, const struct sotto_tensor * t, const json_t * expected) {
    int64_t ne[SOTTO_MAX_DIMS];
    read_ne(json_object_get(expected, "ne"), ne);
    for (int d = 0; d < SOTTO_MAX_DIMS; d++) {
        if (t->ne[d] != ne[d]) {
            return fail(run, "%s.ne[%d] = %" PRId64 ", wanted %" PRId64, what, d, t->ne[d], ne[d]);
        }
    }
    const json_t * nb = json_object_get(expected, "nb");
    for (size_t d = 0; d < json_array_size(nb); d++) {
        const json_int_t want = json_integer_value(json_array_get(nb, d));
        if (t->nb[d] != (size_t)want) {
            return fail(run, "%s.nb[%zu] = %zu, wanted %lld", what, d, t->nb[d], (long long)want);
        }
    }
    return true;
}

static bool check_sources(struct run * run, const struct sotto_tensor * y, const json_t * src) {
    for (size_t i = 0; i < SOTTO_MAX_SRC; i++) {
        const char * name = json_string_value(json_array_get(src, i));
        const struct sotto_tensor * want = NULL;
        if (name != NULL) {
            want = strcmp(name, "(itself)") == 0 ? y : lookup(run, name);
        }
        if (y->src[i] != want) {
            return fail(run, "source slot %zu is %s, wanted %s", i, y->src[i] ? y->src[i]->name : "empty",
                        name ? name : "empty");
        }
    }
    return true;
}

static bool check_node(struct run * run, const struct sotto_tensor * y, const json_t * out) {
    const char * node = json_string_value(json_object_get(out, "node"));
    if (node == NULL || json_object_get(out, "composed") != NULL) {
        return true;
    }
    if (strcmp(sotto_op_name((enum sotto_op)y->op), node) != 0) {
        return fail(run, "node is %s, wanted %s", sotto_op_name((enum sotto_op)y->op), node);
    }
    const json_t * par = json_object_get(out, "par");
    for (size_t i = 0; i < SOTTO_MAX_OP_PARAMS / sizeof(int32_t); i++) {
        const int32_t want = (int32_t)json_integer_value(json_array_get(par, i));
        if (par != NULL && y->op_params[i] != want) {
            return fail(run, "op_params[%zu] = %d, wanted %d", i, y->op_params[i], want);
        }
    }
    if (json_is_true(json_object_get(out, "view")) && y->view_src == NULL) {
        return fail(run, "the result should share an operand's storage");
    }
    return check_sources(run, y, json_object_get(out, "src"));
}

static bool check_named(struct run * run, const json_t * test, const char * key, bool values) {
    const char * name;
    json_t * expected;
    json_object_foreach(json_object_get(test, key), name, expected) {
        const struct sotto_tensor * t = lookup(run, name);
        if (t == NULL) {
            return fail(run, "%s names unknown tensor %s", key, name);
        }
        if (!check_layout(run, name, t, expected) || (values && !check_values(run, name, t, expected, test))) {
            return false;
        }
    }
    return true;
}

static bool check_result(struct run * run, const json_t * test) {
    const json_t * out = json_object_get(test, "out");
    const struct sotto_tensor * y = lookup(run, "y");
    if (strcmp(sotto_type_name(y->type), json_string_value(json_object_get(out, "t"))) != 0) {
        return fail(run, "type is %s, wanted %s", sotto_type_name(y->type),
                    json_string_value(json_object_get(out, "t")));
    }
    const char * hex = json_string_value(json_object_get(out, "hex"));
    return check_layout(run, "y", y, out) && check_node(run, y, out) && check_named(run, test, "views", false) &&
           (hex == NULL || check_hex(run, y, hex)) && check_values(run, "y", y, out, test) &&
           check_named(run, test, "after", true);
}

/* ---- cases ---- */

static bool run_once(struct run * run, const json_t * test, int n_threads) {
    run->ctx = sotto_init((struct sotto_init_params){ .mem_size = ARENA });
    if (run->ctx == NULL) {
        return fail(run, "%s", sotto_last_error_text());
    }
    if (!make_operands(run, json_object_get(test, "in")) || !run_program(run, json_object_get(test, "prog"))) {
        return false;
    }
    struct sotto_tensor * y = lookup(run, "y");
    if (y == NULL) {
        return fail(run, "the program makes no y");
    }
    return compute(run, y, n_threads) && check_result(run, test);
}

static bool same_bits(struct run * a, const struct run * b) {
    const struct sotto_tensor *x = lookup(a, "y"), *y = lookup(b, "y");
    const size_t size = sotto_type_size(x->type);
    for (int64_t i = 0, n = sotto_nelements(x) / sotto_blck_size(x->type); i < n; i++) {
        const int64_t at = i * sotto_blck_size(x->type);
        if (sotto_is_quantized(x->type)
                ? memcmp((char *)x->data + (size_t)i * size, (char *)y->data + (size_t)i * size, size)
                : memcmp(element(x, at), element(y, at), size)) {
            return fail(a, "y[%" PRId64 "] differs between 1 and 3 threads", at);
        }
    }
    return true;
}

/* Name of the first thing that does not exist yet, or NULL. */
static const char * missing(const json_t * test) {
    const json_t * prog = json_object_get(test, "prog");
    for (size_t i = 0; i < json_array_size(prog); i++) {
        const char * name = json_string_value(json_array_get(json_array_get(prog, i), 1));
        if (find_builder(name) == NULL) {
            return name;
        }
        const int number = (int)json_integer_value(json_array_get(json_array_get(prog, i), 3));
        if (strcmp(name, "cast") == 0 && !type_usable(sotto_type_name((enum sotto_type)number))) {
            return sotto_type_name((enum sotto_type)number);
        }
        if (strncmp(name, "unary", 5) == 0 &&
            strcmp(sotto_unary_op_name((enum sotto_unary_op)number), "UNKNOWN") == 0) {
            return "unary (variant)";
        }
    }
    const char * name;
    json_t * operand;
    json_object_foreach(json_object_get(test, "in"), name, operand) {
        const char * type = json_string_value(json_object_get(operand, "t"));
        if (!type_usable(type)) {
            return type;
        }
    }
    const char * type = json_string_value(json_object_get(json_object_get(test, "out"), "t"));
    return type_usable(type) ? NULL : type;
}

struct tally {
    int passed, failed, skipped;
    struct {
        char name[32];
        int count;
    } skips[MAX_SKIPS];
    int n_skips;
};

static void count_skip(struct tally * tally, const char * name) {
    tally->skipped++;
    for (int i = 0; i < tally->n_skips; i++) {
        if (strcmp(tally->skips[i].name, name) == 0) {
            tally->skips[i].count++;
            return;
        }
    }
    if (tally->n_skips < MAX_SKIPS) {
        snprintf(tally->skips[tally->n_skips].name, sizeof(tally->skips[0].name), "%s", name);
        tally->skips[tally->n_skips++].count = 1;
    }
}

static void run_case(const json_t * test, struct tally * tally) {
    const char * name = json_string_value(json_object_get(test, "name"));
    const char * lacking = missing(test);
    if (lacking != NULL) {
        count_skip(tally, lacking);
        return;
    }
    static struct run one, three;
    memset(&one, 0, sizeof(one));
    memset(&three, 0, sizeof(three));
    const bool ok = run_once(&one, test, 1) && run_once(&three, test, 3) && same_bits(&one, &three);
    if (ok) {
        tally->passed++;
    } else {
        tally->failed++;
        printf("FAILED %s: %s%s\n", name, one.why, three.why);
    }
    sotto_free(one.ctx);
    sotto_free(three.ctx);
}

static bool run_file(const char * path, struct tally * tally) {
    json_error_t error;
    json_t * root = json_load_file(path, 0, &error);
    if (root == NULL) {
        fprintf(stderr, "op_vectors: %s: line %d: %s\n", path, error.line, error.text);
        return false;
    }
    const json_t * cases = json_object_get(root, "cases");
    for (size_t i = 0; i < json_array_size(cases); i++) {
        run_case(json_array_get(cases, i), tally);
    }
    json_decref(root);
    return true;
}

int main(int argc, char ** argv) {
    static struct tally tally;
    if (argc < 2) {
        fprintf(stderr, "usage: op_vectors FILE...\n");
        return 2;
    }
    for (int i = 1; i < argc; i++) {
        if (!run_file(argv[i], &tally)) {
            return 2;
        }
    }
    for (int i = 0; i < tally.n_skips; i++) {
        printf("skipped %s: %d\n", tally.skips[i].name, tally.skips[i].count);
    }
    printf("%d passed, %d failed, %d skipped\n", tally.passed, tally.failed, tally.skipped);
    return tally.failed > 0 || tally.passed == 0;
}
