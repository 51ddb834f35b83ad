/*
 * The environment of processes that run activities: the names of a list, and those that the option
 * --process-env adds. Everything else is removed, its text too, since the environment of a worker has
 * passwords and keys of whatever kind.
 */
#ifndef THOLE_ENVIRONMENT_H
#define THOLE_ENVIRONMENT_H
#include "thole/types.h"
#include <stdbool.h>
#include <stddef.h>

/* THOLE_INVALID unless @p names are names of variables with commas between them, each with an optional `*`
 * at its end; NULL and "" are none. */
THOLE_NODISCARD thole_status environment_check(const char *names, thole_error *reterr);
/* Whether a variable ("NAME" or "NAME=value") may stay: it is in the list, or in @p names. */
bool environment_allows(const char *variable, const char *names);
/* Removes all other variables of this process, and erases their texts. */
void environment_keep(const char *names);
/* Fills @p len bytes with zeros where they can be written; elsewhere nothing happens. */
void environment_erase(char *text, size_t len);
#endif
