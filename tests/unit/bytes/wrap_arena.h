/* Memory of arenas that is refused once, as the test says: what asked for it must say so, whatever fits
 * afterwards. (A ceiling alone does not show that: below it nothing more fits.) */
#ifndef THOLE_WRAP_ARENA_H
#define THOLE_WRAP_ARENA_H
#include "arena.h"

/* The nth request from now on is refused; 0: none. */
void arena_refuse(size_t n);
/* Whether that request was made. No other is refused then. */
bool arena_refused(void);
#endif
