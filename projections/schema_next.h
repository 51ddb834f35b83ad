/*
 * A second schema beside a namespace's. The rows are made again in it while programs use the first schema;
 * then it takes the first one's place. Statuses: see postgres.h.
 *
 *   schema_next_open()       removes the rest of an earlier attempt, makes the tables
 *   schema_next_begin()      for each partition: notes where in its log the rows begin
 *   …                        the rows, and again those that have changed
 *   schema_next_switch()     in one transaction
 *
 * If the program is killed at any point, the first schema is as before, or the second one is in its place.
 */
#ifndef THOLE_SCHEMA_NEXT_H
#define THOLE_SCHEMA_NEXT_H
#include "postgres.h"

/* Connects, holds a lock of the session, and makes the schema "thole_<ns>~next" with all tables and, where
 * there are such roles, their rights. THOLE_CONFLICT: another rebuild is under way; THOLE_UNSUPPORTED: a
 * pooler stands between; the tables that are there are older than this program. */
THOLE_NODISCARD thole_status schema_next_open(const struct postgres_options *options, struct postgres **ret,
                                              thole_error *reterr);
/* The partition's watermark is from now on what it is in the first schema. *ret_watermark 0: no engine has
 * opened it there. */
THOLE_NODISCARD thole_status schema_next_begin(struct postgres *next, uint32_t p, uint64_t *ret_watermark,
                                               thole_error *reterr);
/*
 * Takes the place of the first schema, which is removed. All its tables are locked for that; then owners are
 * fenced, open their partitions again, and project the log after the watermarks. Claims of activities are
 * taken over as they are at that moment. Statements that wait meanwhile find the new tables.
 * THOLE_UNAVAILABLE: the tables could not be locked in time, or the connection was lost: whether the switch
 * was done is then unknown, and schema_next_open() starts over.
 */
THOLE_NODISCARD thole_status schema_next_switch(struct postgres *next, thole_error *reterr);
/* Instead: removes the second schema. */
void schema_next_drop(struct postgres *next);
#endif
