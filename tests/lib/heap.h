/* Bytes of the heap in use, for tests that repeat steps which must free all their memory. A sanitizer's heap
 * and other C libraries than glibc say 0: there such a test passes, and the leak sanitizer looks instead. */
#ifndef THOLE_HEAP_H
#define THOLE_HEAP_H
#include <features.h>
#include <malloc.h>

/* Bytes, those of freed blocks that their thread keeps at hand included: call it after a round or two. */
static inline size_t heap_used(void)
{
#if defined(__GLIBC_PREREQ) && __GLIBC_PREREQ(2, 33)
    struct mallinfo2 const info = mallinfo2();
    return info.uordblks + info.hblkhd;
#else
    return 0;
#endif
}
#endif
