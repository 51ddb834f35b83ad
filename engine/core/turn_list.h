/*
 * The turns of one execution from its records. A turn may be written in several parts, and twice if its first
 * writer lost the partition. Pure.
 */
#ifndef THOLE_TURN_LIST_H
#define THOLE_TURN_LIST_H
#include "arena.h"
#include "event.h"

struct turn_list {
    struct record *records; /* the caller's, with room for all records that are given */
    size_t len;
    size_t held; /* number of records after them: parts of a newer execution's incomplete first turn */
};

/*
 * Takes the next record in stream order. Keeps only the newest execution that has a complete turn. If a turn
 * was written twice, the one with the higher epoch counts, and records of a lower epoch after it are void.
 * Memory is shared with @p record.
 */
void turn_list_take(struct turn_list *list, const struct record *record);
/*
 * Joins the parts of the turn that begins at @p first; returns the number of its records, 0: no memory.
 * ret->more stays true if the last part is missing (the writer crashed): the turn does not count. Borrows
 * from the records; new memory is from @p arena.
 */
size_t turn_list_join(const struct turn_list *list, size_t first, struct arena *arena, struct turn *ret);
#endif
