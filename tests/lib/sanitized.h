/* Is this program built with AddressSanitizer or ThreadSanitizer? They want terabytes of address space, end
 * the process without memory with words of their own, and report what was meant to crash. */
#ifndef THOLE_SANITIZED_H
#define THOLE_SANITIZED_H
#include <stdbool.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { SANITIZED = true };
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
enum { SANITIZED = true };
#else
enum { SANITIZED = false };
#endif
#else
enum { SANITIZED = false };
#endif
#endif
