/*
 * The turns of one execution out of the records that hold it. A turn may be written in several parts, and
 * twice when its first writer was deposed. Pure.
 */
#ifndef THOLE_TURN_LIST_H
#define THOLE_TURN_LIST_H
#include "arena.h"
#include "event.h"

struct turn_list {
    struct record *records; /* the caller's, with room for all that is taken */
    size_t len;
    size_t held; /* behind them: parts of a newer execution's first turn, which is not whole yet */
};

/*
 * Takes the next turn's record in the stream's order. Only the newest execution of which there is a whole
 * turn is kept. Of what was written twice the higher epoch counts, and what a lower one writes behind it is
 * void. Memory is shared with @p record.
 */
void turn_list_take(struct turn_list *list, const struct record *record);
/*
 * Joins the parts of the turn that begins at @p first; returns how many records that took, 0: no memory.
 * ret->more stays true when its last part is missing: its writer died in between, it never happened. Borrows
 * from the records; what has to be made is in @p arena.
 */
size_t turn_list_join(const struct turn_list *list, size_t first, struct arena *arena, struct turn *ret);
#endif
