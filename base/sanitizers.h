/* Which sanitizer this is compiled with, for gcc and clang: 1 or 0. */
#ifndef THOLE_SANITIZERS_H
#define THOLE_SANITIZERS_H
#if defined(__has_feature) /* clang */
#define SANITIZED_ADDRESS __has_feature(address_sanitizer)
#define SANITIZED_THREAD __has_feature(thread_sanitizer)
#else
#ifdef __SANITIZE_ADDRESS__
#define SANITIZED_ADDRESS 1
#else
#define SANITIZED_ADDRESS 0
#endif
#ifdef __SANITIZE_THREAD__
#define SANITIZED_THREAD 1
#else
#define SANITIZED_THREAD 0
#endif
#endif
#endif
