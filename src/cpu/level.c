/* SPDX-License-Identifier: MIT */
/* CPU levels: what the machine offers, what is used, and the kernels of each. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "cpu/kernels.h"
#include "sotto/log.h"

static const char * const names[SOTTO_CPU_LEVEL_COUNT] = { "c", "avx2", "avx512", "avx512vnni" };

static pthread_once_t once = PTHREAD_ONCE_INIT;
static enum sotto_cpu_level best;
static atomic_int used;
static struct sotto_i_kernels kernels[SOTTO_CPU_LEVEL_COUNT];

/* ---- what the machine offers ---- */

#if defined(__x86_64__)

#include <cpuid.h>

#define BIT(word, n) (((word) >> (n)&1u) != 0)

/* Register sets that the operating system saves: 1 x87, 2 SSE, 4 AVX, 0xE0 AVX-512. */
static uint32_t saved_registers(void) {
    uint32_t low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return low;
}

static enum sotto_cpu_level detect(void) {
    uint32_t a, b, c, d;
    if (!__get_cpuid(1, &a, &b, &c, &d))
        return SOTTO_CPU_LEVEL_C;
    const bool osxsave = BIT(c, 27), avx = BIT(c, 28), fma = BIT(c, 12), f16c = BIT(c, 29);
    if (!osxsave || !avx || !fma || !f16c || !__get_cpuid_count(7, 0, &a, &b, &c, &d))
        return SOTTO_CPU_LEVEL_C;
    const uint32_t saved = saved_registers();
    if (!BIT(b, 5) || (saved & 0x06) != 0x06) /* avx2 */
        return SOTTO_CPU_LEVEL_C;
    const bool avx512 = BIT(b, 16) && BIT(b, 17) && BIT(b, 30) && BIT(b, 31); /* f, dq, bw, vl */
    if (!avx512 || (saved & 0xE6) != 0xE6)
        return SOTTO_CPU_LEVEL_AVX2;
    return BIT(c, 11) ? SOTTO_CPU_LEVEL_AVX512VNNI : SOTTO_CPU_LEVEL_AVX512;
}

#else

static enum sotto_cpu_level detect(void) { return SOTTO_CPU_LEVEL_C; }

#endif

/* ---- what is used ---- */

/* The environment lowers the level; a wish that cannot be had is told to the log and not followed. */
static enum sotto_cpu_level wanted(void) {
    const char * wish = getenv("SOTTO_CPU_LEVEL");
    if (wish == NULL || *wish == 0)
        return best;
    for (int i = 0; i < SOTTO_CPU_LEVEL_COUNT; i++) {
        if (strcmp(wish, names[i]) != 0)
            continue;
        if (i <= (int)best)
            return (enum sotto_cpu_level)i;
        sotto_log(SOTTO_LOG_WARN, "SOTTO_CPU_LEVEL=%s: this machine offers %s at most\n", wish, names[best]);
        return best;
    }
    sotto_log(SOTTO_LOG_WARN, "SOTTO_CPU_LEVEL=%s is no level; c, avx2, avx512 and avx512vnni are\n", wish);
    return best;
}

static void init(void) {
    best = detect();
    for (int i = 0; i <= (int)best; i++) {
        const enum sotto_cpu_level level = (enum sotto_cpu_level)i;
        sotto_i_gemm_init(&kernels[i].gemm, level);
        sotto_i_igemm_init(&kernels[i].igemm, level);
        sotto_i_codes_init(&kernels[i].codes, level);
        sotto_i_vec_init(&kernels[i].vec, level);
        sotto_i_attn_init(&kernels[i].attn, level);
    }
    atomic_store(&used, (int)wanted());
}

const struct sotto_i_kernels * sotto_i_kernels_for(enum sotto_cpu_level level) {
    pthread_once(&once, init);
    return (int)level >= 0 && level <= best ? &kernels[level] : NULL;
}

enum sotto_cpu_level sotto_cpu_best_level(void) {
    pthread_once(&once, init);
    return best;
}

enum sotto_cpu_level sotto_cpu_get_level(void) {
    pthread_once(&once, init);
    return (enum sotto_cpu_level)atomic_load(&used);
}

enum sotto_status sotto_cpu_set_level(enum sotto_cpu_level level) {
    pthread_once(&once, init);
    if ((int)level < 0 || level >= SOTTO_CPU_LEVEL_COUNT)
        return sotto_fail(SOTTO_E_PARAM, "sotto_cpu_set_level: %d is no level", (int)level);
    if (level > best)
        return sotto_fail(SOTTO_E_UNSUPPORTED, "sotto_cpu_set_level: %s is above %s, the best that this machine offers",
                          names[level], names[best]);
    atomic_store(&used, (int)level);
    return SOTTO_OK;
}

const char * sotto_cpu_level_name(enum sotto_cpu_level level) {
    if ((int)level < 0 || level >= SOTTO_CPU_LEVEL_COUNT) {
        sotto_fail(SOTTO_E_PARAM, "sotto_cpu_level_name: %d is no level", (int)level);
        return "unknown";
    }
    return names[level];
}
