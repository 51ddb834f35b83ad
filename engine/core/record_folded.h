/* The codec of what a record lists as dispensable. */
#ifndef THOLE_RECORD_FOLDED_H
#define THOLE_RECORD_FOLDED_H
#include "event.h"
#include "history.pb-c.h"

/* Into memory of @p arena; the hashes are borrowed from @p from. */
THOLE_NODISCARD thole_status folded_to_pb(const struct folded *from, struct arena *arena,
                                          Thole__V1__Folded *ret);
/* Into memory of @p arena. @p pb: NULL: it lists nothing. */
THOLE_NODISCARD thole_status folded_from_pb(const Thole__V1__Folded *pb, struct arena *arena,
                                            struct folded *ret, thole_error *reterr);
#endif
