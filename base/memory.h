/*
 * Small allocations of the engine itself: a struct, a list node, a table. Never NULL: if the system has no
 * memory for them, the process prints a message and aborts. Nothing is lost, since all state is in the log;
 * the supervisor restarts the process.
 *
 * Memory that users fill is in an arena or a buf with a ceiling; exceeding it is a status. See "Memory" in
 * CONTRIBUTING.md.
 */
#ifndef THOLE_MEMORY_H
#define THOLE_MEMORY_H
#include <stddef.h>

/* All are freed with free(). Zeroed. */
void *memory_new(size_t bytes);
/* @p n objects of @p bytes; checks the product. */
void *memory_array(size_t n, size_t bytes);
/* Room for at least @p n objects in a growing array, which may move; new room is not zeroed. At first @p
 * items is NULL and *cap 0. */
void *memory_reserve(void *items, size_t *cap, size_t n, size_t bytes);
/* A copy with a NUL after it. @p from may be NULL when @p bytes is 0. */
void *memory_copy(const void *from, size_t bytes);
char *memory_text(const char *text);
/* Prints the message and aborts; also for a small allocation from an arena for which malloc failed. */
_Noreturn void memory_give_up(size_t n, size_t bytes);
#endif
