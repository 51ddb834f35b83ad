/*
 * Small blocks of the engine's own: a struct, a list node, a table. They are never NULL: where the system has
 * no memory for them, the process says so on stderr and aborts. The log has everything, and the supervisor
 * starts it again.
 *
 * What users fill is not for here: it has a ceiling, in an arena or a buf, and what does not fit is a status.
 * See "Memory" in CONTRIBUTING.md.
 */
#ifndef THOLE_MEMORY_H
#define THOLE_MEMORY_H
#include <stddef.h>

/* All are freed with free(). Zeroed. */
void *memory_new(size_t bytes);
/* @p n objects of @p bytes; checks the product. */
void *memory_array(size_t n, size_t bytes);
/* Room for @p n objects at least in a growing array, which may move; what is added is not zeroed. @p items is
 * NULL and *cap 0 before the first. */
void *memory_reserve(void *items, size_t *cap, size_t n, size_t bytes);
/* A copy with a NUL behind it. @p from may be NULL when @p bytes is 0. */
void *memory_copy(const void *from, size_t bytes);
char *memory_text(const char *text);
/* The end of the process that the others come to: for a small block that an arena was to give, and could not
 * because malloc failed. */
_Noreturn void memory_give_up(size_t n, size_t bytes);
#endif
