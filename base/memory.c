#include "memory.h"
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TEXT_BYTES = 256, FIRST_ITEMS = 16, SMALL_BYTES = 4096 };

/* The only I/O of the pure folders: no caller could handle a status. */
_Noreturn void memory_give_up(size_t n, size_t bytes)
{
    char text[TEXT_BYTES];
    (void)snprintf(
        text, sizeof text,
        "thole: out of memory for %zu x %zu bytes: the process ends, nothing that was acknowledged is "
        "lost. Try: a higher memory limit (cgroup, ulimit -v), or a lower --parked-memory-max\n",
        n, bytes);
    if (write(STDERR_FILENO, text, strlen(text)) < 0)
        abort();
    abort();
}

/* Small blocks by malloc(), since glibc's calloc() does not use the thread's cache; large ones by calloc(),
 * which does not clear fresh pages again. */
static void *memory_allocate(size_t n, size_t bytes)
{
    if (n > SMALL_BYTES / bytes)
        return calloc(n, bytes);
    void *p = malloc(n * bytes);
    return p == NULL ? NULL : memset(p, 0, n * bytes);
}

void *memory_array(size_t n, size_t bytes)
{
    void *p = memory_allocate(n == 0 ? 1 : n, bytes == 0 ? 1 : bytes);
    if (p == NULL)
        memory_give_up(n, bytes);
    return p;
}

void *memory_new(size_t bytes)
{
    return memory_array(1, bytes);
}

void *memory_copy(const void *from, size_t bytes)
{
    if (bytes == SIZE_MAX)
        memory_give_up(1, bytes);
    char *copy = memory_array(bytes + 1, 1);
    if (bytes > 0)
        memcpy(copy, from, bytes);
    return copy;
}

char *memory_text(const char *text)
{
    return memory_copy(text, strlen(text));
}

void *memory_reserve(void *items, size_t *cap, size_t n, size_t bytes)
{
    size_t more = *cap == 0 ? FIRST_ITEMS : *cap;
    if (n <= *cap)
        return items;
    while (more < n && more <= SIZE_MAX / 2)
        more *= 2;
    if (more < n || more > SIZE_MAX / bytes)
        memory_give_up(n, bytes);
    void *p = realloc(items, more * bytes);
    if (p == NULL)
        memory_give_up(more, bytes);
    *cap = more;
    return p;
}
