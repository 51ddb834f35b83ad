/*
 * The watches of a client: found by the token of an answer and by the instance of a notice. Under
 * client.lock, all of it. Zeroed: empty.
 */
#ifndef THOLE_WATCH_TABLE_H
#define THOLE_WATCH_TABLE_H
#include "thole/types.h"

enum { WATCH_BUCKETS = 1024 };

struct watch;
struct watch_table {
    struct watch *first; /* of all, the newest first */
    struct watch *by_token[WATCH_BUCKETS], *by_name[WATCH_BUCKETS];
};

/* The watch's token and name are set, and stay as they are. */
void watch_table_add(struct watch_table *table, struct watch *watch);
void watch_table_remove(struct watch_table *table, struct watch *watch);
/* The watch whose looks have this token, or whose publish has the next one. NULL: none any more. */
struct watch *watch_table_answer(const struct watch_table *table, uint64_t token);
/* The first watch of this name, and the next one after @p watch. NULL: no more. */
struct watch *watch_table_named(const struct watch_table *table, thole_slice name);
struct watch *watch_table_next_named(const struct watch *watch);

#endif
