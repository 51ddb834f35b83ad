/*
 * Looks every few seconds, and when a request fails, whether streams, buckets, settings, consumers and tables
 * are as the namespace needs them: the things themselves, and not what was true at the start. What can be
 * derived is made again; what cannot is logged when it is seen and then each minute, counted
 * (thole_engine_defects), and told to who asks. The engine looks that should own partition 0, and each that
 * has not joined; the others look only whether the stream WORK is another one. At the tables each looks whose
 * partitions have open activities, and every five minutes: an idle engine asks Postgres nothing. A thread.
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
