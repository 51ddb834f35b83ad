/* Is this program built with AddressSanitizer or ThreadSanitizer? They want terabytes of address space, end
 * the process without memory with words of their own, and report what was meant to crash. */
#ifndef THOLE_SANITIZED_H
#define THOLE_SANITIZED_H
#include "sanitizers.h"

enum { SANITIZED = SANITIZED_ADDRESS || SANITIZED_THREAD };
#endif
