/*
 * Checks every few seconds, and when a request fails, whether streams, buckets, settings, consumers and
 * tables are as the namespace needs them: the objects themselves, not their state at the start. Objects that
 * can be derived are made again; other defects are logged when they are seen and then each minute, counted
 * (thole_engine_defects), and reported to those who ask. The engine that should own partition 0 looks, and
 * each that has not joined; the others look only whether the stream WORK is another one. Each engine whose
 * partitions have open activities also looks at the tables, and every five minutes: an idle engine asks
 * Postgres nothing. A thread.
 */
#ifndef THOLE_LOOKOUT_H
#define THOLE_LOOKOUT_H
#include "defect.h"
#include "json.h"

struct engine_host;
struct lookout;
struct lookout *lookout_create(struct engine_host *engine);
THOLE_NODISCARD thole_status lookout_start(struct lookout *lookout, thole_error *reterr);
/* Joins its thread, when no shard's thread runs any more. NULL-safe, as is the next. */
void lookout_end(struct lookout *lookout);
void lookout_release(struct lookout *lookout);
/* Something has failed that may come of it. Any thread; at most one look a second follows. NULL-safe. */
void lookout_hurry(struct lookout *lookout);
/* An array of what is not as it must be; one of what was missing and is made again, for some minutes; one of
 * how much room there is (storage_room.h). Any thread. */
void lookout_json(struct lookout *lookout, struct json *json);
void lookout_mended_json(struct lookout *lookout, struct json *json);
void lookout_room_json(struct lookout *lookout, struct json *json);
#endif
