/* The codec of the inbox position in a record. */
#ifndef THOLE_RECORD_POSITION_H
#define THOLE_RECORD_POSITION_H
#include "event.h"
#include "history.pb-c.h"

/* Into memory of @p arena, what is borrowed lives as long as @p from. THOLE_LIMIT: too many ranges, or too
 * many sequences for a list. */
THOLE_NODISCARD thole_status position_to_pb(const struct position *from, struct arena *arena,
                                            Thole__V1__Position *ret);
/* Likewise. @p pb: NULL: there is none, and nothing is incorporated. */
THOLE_NODISCARD thole_status position_from_pb(const Thole__V1__Position *pb, struct arena *arena,
                                              struct position *ret, thole_error *reterr);
#endif
