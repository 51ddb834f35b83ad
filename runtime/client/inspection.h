/* The open tasks of an instance, from its records: now, or at a point of its history. */
#ifndef THOLE_INSPECTION_H
#define THOLE_INSPECTION_H
#include "thole/client.h"

struct inspection;
/* @p point: NULL = the end; copied, as the id is. */
struct inspection *inspection_create(thole_slice instance, const thole_inspect_point *point);
void inspection_destroy(struct inspection *inspection); /* NULL-safe */
/* The next record of the instance that counts, in order; of the newest execution among them that begins at or
 * before the point. */
THOLE_NODISCARD thole_status inspection_take(struct inspection *inspection, thole_slice bytes,
                                             thole_error *reterr);
/* Whether an execution has begun with these records; what was not whole is forgotten. */
bool inspection_has_turn(struct inspection *inspection);
/* THOLE_NOT_FOUND: it had not begun, or has no such execution or event. Otherwise as
 * thole_client_inspect_at(). */
THOLE_NODISCARD thole_status inspection_end(struct inspection *inspection, size_t payload_max,
                                            thole_inspection_fn *each, void *arg, thole_error *reterr);
#endif
