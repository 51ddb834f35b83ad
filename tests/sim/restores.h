/* Older rows are put back in place under living sessions: of any age, a dump of them, again and again. */
#ifndef THOLE_RESTORES_H
#define THOLE_RESTORES_H
#include "world.h"

void restores_begin(struct world *w);
struct seat;
/* Whether the rows are what the partition's owner has left there, if it knows what they must be. */
bool rows_as_left(const struct world *w, const struct seat *seat);
/* Like rows_as_left(), in the midst of batches: as the last answered one has left the rows. */
bool rows_as_answered(const struct world *w, const struct seat *seat);
/* They are not older than it knows: nothing is lost in rows of another time. */
bool rows_not_older(const struct world *w, const struct seat *seat);
/* A look of the host: an idle partition writes no batch, which would say what it follows. False: they are of
 * another time, and the partition steps down. */
bool rows_look(struct world *w, struct seat *seat);
void restores_end(struct world *w); /* the last time: soon, when all is quiet */
#endif
