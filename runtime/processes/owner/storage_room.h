/*
 * How much the streams of the namespace, the account and the database take, how fast they grow, and for how
 * many days there is room. Kept in memory by the engine that looks at the streams (lookout.h).
 */
#ifndef THOLE_STORAGE_ROOM_H
#define THOLE_STORAGE_ROOM_H
#include "forecast.h"
#include "json.h"
#include "metrics.h"
#include "topology.h"

struct room_limit {
    char name[STREAM_NAME_BYTES_MAX];
    struct forecast forecast;
};
struct room {
    struct topology_usage kinds[DEFECT_OBJECTS];
    struct forecast forecasts[DEFECT_OBJECTS]; /* of the streams of each kind */
    struct room_limit limits[TOPOLOGY_LIMITS_MAX];
    size_t limits_len;
    struct forecast account, database;
};

void room_take_streams(struct room *room, const struct topology_seen *seen, uint64_t now_ms);
/* Bytes of all streams of the account, also those of others; @p bytes_max 0: no limit. */
void room_take_account(struct room *room, uint64_t bytes, uint64_t bytes_max, uint64_t now_ms);
void room_take_database(struct room *room, uint64_t bytes, uint64_t now_ms);
void room_count(const struct room *room, struct metric_cells *cells);
/* An array. */
void room_json(const struct room *room, struct json *json);
#endif
