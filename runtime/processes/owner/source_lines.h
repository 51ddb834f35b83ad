/*
 * Says where in the program's source an instance waits, to who has asked for it with the query QUERY_SOURCE.
 * On a thread, since addr2line takes long: once for each address, of which a program has few.
 */
#ifndef THOLE_SOURCE_LINES_H
#define THOLE_SOURCE_LINES_H
#include "connection.h"

enum { SOURCE_QUESTIONS_MAX = 64 };

struct source_lines;
THOLE_NODISCARD thole_status source_lines_start(struct connection *connection, struct source_lines **ret,
                                                thole_error *reterr);
/* Answers to @p reply, soon. False: too many wait. @p address: a return address in this process. */
THOLE_NODISCARD bool source_lines_ask(struct source_lines *lines, const char *reply, bool json,
                                      const void *address);
/* Questions that wait are not answered. The shards have ended. NULL-safe. */
void source_lines_stop(struct source_lines *lines);
#endif
