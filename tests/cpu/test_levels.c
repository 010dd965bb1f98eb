/* SPDX-License-Identifier: MIT */
/* CPU levels: names, the machine's best, choosing, and the environment variable. That is read once a process, so each
 * value of it is tried in a child: this program run again with the name of what to expect. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cpu/kernels.h"
#include "sotto/sotto.h"

static const char * program;

/* The level that a process uses which is started with SOTTO_CPU_LEVEL=wish. */
static int level_of_child(const char * wish) {
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        if (wish != NULL)
            setenv("SOTTO_CPU_LEVEL", wish, 1);
        else
            unsetenv("SOTTO_CPU_LEVEL");
        execl(program, program, "--level", (char *)NULL);
        _exit(100);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void names(void ** state) {
    (void)state;
    assert_string_equal(sotto_cpu_level_name(SOTTO_CPU_LEVEL_C), "c");
    assert_string_equal(sotto_cpu_level_name(SOTTO_CPU_LEVEL_AVX2), "avx2");
    assert_string_equal(sotto_cpu_level_name(SOTTO_CPU_LEVEL_AVX512), "avx512");
    assert_string_equal(sotto_cpu_level_name(SOTTO_CPU_LEVEL_AVX512VNNI), "avx512vnni");
    assert_string_equal(sotto_cpu_level_name(SOTTO_CPU_LEVEL_COUNT), "unknown");
    assert_int_equal(sotto_last_error(), SOTTO_E_PARAM);
}

#if defined(__x86_64__) && defined(__GNUC__)
static void best_is_what_the_compiler_sees(void ** state) {
    (void)state;
    __builtin_cpu_init();
    enum sotto_cpu_level expected = SOTTO_CPU_LEVEL_C;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        expected = SOTTO_CPU_LEVEL_AVX2;
    if (expected == SOTTO_CPU_LEVEL_AVX2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq"))
        expected = SOTTO_CPU_LEVEL_AVX512;
    if (expected == SOTTO_CPU_LEVEL_AVX512 && __builtin_cpu_supports("avx512vnni"))
        expected = SOTTO_CPU_LEVEL_AVX512VNNI;
    print_message("best level: %s\n", sotto_cpu_level_name(sotto_cpu_best_level()));
    assert_int_equal(sotto_cpu_best_level(), expected);
}
#endif

static void choosing(void ** state) {
    (void)state;
    const enum sotto_cpu_level before = sotto_cpu_get_level(), best = sotto_cpu_best_level();
    for (int level = 0; level < SOTTO_CPU_LEVEL_COUNT; level++) {
        const enum sotto_status s = sotto_cpu_set_level((enum sotto_cpu_level)level);
        assert_int_equal(s, level <= (int)best ? SOTTO_OK : SOTTO_E_UNSUPPORTED);
        assert_int_equal(sotto_cpu_get_level(), level <= (int)best ? level : (int)best);
        const struct sotto_i_kernels * kernels = sotto_i_kernels_for((enum sotto_cpu_level)level);
        assert_true((kernels != NULL) == (level <= (int)best));
    }
    assert_int_equal(sotto_cpu_set_level(SOTTO_CPU_LEVEL_COUNT), SOTTO_E_PARAM);
    assert_int_equal(sotto_cpu_set_level((enum sotto_cpu_level) - 1), SOTTO_E_PARAM);
    assert_int_equal(sotto_cpu_set_level(before), SOTTO_OK);
}

static void environment(void ** state) {
    (void)state;
    const int best = (int)sotto_cpu_best_level();
    assert_int_equal(level_of_child(NULL), best);
    assert_int_equal(level_of_child(""), best);
    assert_int_equal(level_of_child("mmx"), best); /* no level: told to the log, not followed */
    for (int level = 0; level < SOTTO_CPU_LEVEL_COUNT; level++) {
        const char * name = sotto_cpu_level_name((enum sotto_cpu_level)level);
        assert_int_equal(level_of_child(name), level <= best ? level : best);
    }
}

int main(int argc, char ** argv) {
    program = argv[0];
    if (argc > 1 && strcmp(argv[1], "--level") == 0)
        return (int)sotto_cpu_get_level();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names),
#if defined(__x86_64__) && defined(__GNUC__)
        cmocka_unit_test(best_is_what_the_compiler_sees),
#endif
        cmocka_unit_test(choosing),
        cmocka_unit_test(environment),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
