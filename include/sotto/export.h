/* SPDX-License-Identifier: MIT */
/* Marks what a shared library of sotto shows to its users. Everything else is hidden. */
#ifndef SOTTO_EXPORT_H
#define SOTTO_EXPORT_H

#if defined(_WIN32) && defined(SOTTO_SHARED)
#ifdef SOTTO_BUILDING
#define SOTTO_API __declspec(dllexport)
#else
#define SOTTO_API __declspec(dllimport)
#endif
#elif defined(__GNUC__) || defined(__clang__)
#define SOTTO_API __attribute__((visibility("default")))
#else
#define SOTTO_API
#endif

/* lets the compiler check printf arguments of our own variadic functions */
#if defined(__GNUC__) || defined(__clang__)
#define SOTTO_PRINTF(text, first) __attribute__((format(printf, text, first)))
#else
#define SOTTO_PRINTF(text, first)
#endif

#endif
