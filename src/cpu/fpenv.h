/* SPDX-License-Identifier: MIT */
/* The floating-point state that kernels count on: rounding to nearest even, no flushing of subnormal numbers. Entered
 * by every thread that computes, and put back afterwards on threads that are not ours. */
#ifndef SOTTO_CPU_FPENV_H
#define SOTTO_CPU_FPENV_H

#include <stdint.h>

#if defined(__SSE__)
#include <immintrin.h>

typedef uint32_t sotto_i_fpenv;

static inline sotto_i_fpenv sotto_i_fpenv_enter(void) {
    const uint32_t old = _mm_getcsr();
    _mm_setcsr(old & ~(uint32_t)(0x6000 | 0x8000 | 0x0040)); /* rounding, flush to zero, subnormals are zeros */
    return old;
}

/* Exceptions raised meanwhile stay as the thread had them. */
static inline void sotto_i_fpenv_leave(sotto_i_fpenv old) { _mm_setcsr(old); }

#elif defined(__aarch64__)

typedef uint64_t sotto_i_fpenv;

static inline sotto_i_fpenv sotto_i_fpenv_enter(void) {
    uint64_t old;
    __asm__ volatile("mrs %0, fpcr" : "=r"(old));
    const uint64_t set = old & ~(uint64_t)(0x00C00000 | 0x01000000 | 0x00080000); /* rounding, FZ, FZ16 */
    __asm__ volatile("msr fpcr, %0" : : "r"(set));
    return old;
}

static inline void sotto_i_fpenv_leave(sotto_i_fpenv old) { __asm__ volatile("msr fpcr, %0" : : "r"(old)); }

#else
#include <fenv.h>

typedef int sotto_i_fpenv;

static inline sotto_i_fpenv sotto_i_fpenv_enter(void) {
    const int old = fegetround();
    fesetround(FE_TONEAREST);
    return old;
}

static inline void sotto_i_fpenv_leave(sotto_i_fpenv old) { fesetround(old); }

#endif

#endif
