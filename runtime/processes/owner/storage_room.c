#include "storage_room.h"
#include <string.h>

/* ---- observations ---- */

/* One that was not among the fullest before begins. */
static struct forecast find_limit(const struct room *room, const char *name)
{
    for (size_t i = 0; i < room->limits_len; i++)
        if (strcmp(room->limits[i].name, name) == 0)
            return room->limits[i].forecast;
    return (struct forecast){.from_ms = 0};
}

void room_take_streams(struct room *room, const struct topology_seen *seen, uint64_t now_ms)
{
    struct room_limit limits[TOPOLOGY_LIMITS_MAX];
    for (size_t object = 0; object < DEFECT_OBJECTS; object++) {
        room->kinds[object] = seen->kinds[object];
        if (seen->kinds[object].streams > 0)
            forecast_take(&room->forecasts[object], now_ms, seen->kinds[object].bytes, 0);
    }
    for (size_t i = 0; i < seen->limits_len; i++) {
        memcpy(limits[i].name, seen->limits[i].name, sizeof limits[i].name);
        limits[i].forecast = find_limit(room, seen->limits[i].name);
        forecast_take(&limits[i].forecast, now_ms, seen->limits[i].bytes, seen->limits[i].bytes_max);
    }
    memcpy(room->limits, limits, seen->limits_len * sizeof *limits);
    room->limits_len = seen->limits_len;
}

void room_take_account(struct room *room, uint64_t bytes, uint64_t bytes_max, uint64_t now_ms)
{
    forecast_take(&room->account, now_ms, bytes, bytes_max);
}

void room_take_database(struct room *room, uint64_t bytes, uint64_t now_ms)
{
    forecast_take(&room->database, now_ms, bytes, 0);
}

/* ---- reports ---- */

enum { ROOM_ACCOUNT = DEFECT_OBJECTS, ROOM_DATABASE }; /* after the streams, in thole_engine_stored_bytes */
enum { ROOM_LEFT_ACCOUNT, ROOM_LEFT_STREAM };          /* thole_engine_room_seconds */
enum { DAY_MS = 24 * 60 * 60 * 1000 };

/* 0 is what a gauge says when nothing is known. */
static uint64_t ms_told(uint64_t days)
{
    return days == FORECAST_NEVER ? 0 : days == 0 ? 1 : days * DAY_MS;
}

void room_count(const struct room *room, struct metric_cells *cells)
{
    uint64_t least = FORECAST_NEVER;
    for (size_t object = 0; object < DEFECT_OBJECTS; object++) {
        metric_set(cells, METRIC_ENGINE_STORED, object, room->kinds[object].bytes);
        metric_set(cells, METRIC_ENGINE_MESSAGES, object, room->kinds[object].messages);
    }
    metric_set(cells, METRIC_ENGINE_STORED, ROOM_ACCOUNT, room->account.bytes);
    metric_set(cells, METRIC_ENGINE_STORED, ROOM_DATABASE, room->database.bytes);
    for (size_t i = 0; i < room->limits_len; i++) {
        uint64_t const days = forecast_days(&room->limits[i].forecast);
        least = days < least ? days : least;
    }
    metric_set(cells, METRIC_ENGINE_ROOM, ROOM_LEFT_ACCOUNT, ms_told(forecast_days(&room->account)));
    metric_set(cells, METRIC_ENGINE_ROOM, ROOM_LEFT_STREAM, ms_told(least));
}

static void forecast_json(struct json *json, const char *what, const struct forecast *forecast,
                          const struct topology_usage *usage)
{
    if (forecast->from_ms == 0)
        return;
    json_object(json);
    json_member_text(json, "what", what);
    if (usage != NULL) {
        json_member_number(json, "streams", usage->streams);
        json_member_number(json, "messages", usage->messages);
    }
    json_member_number(json, "bytes", forecast->bytes);
    json_member_number(json, "bytes_max", forecast->bytes_max);
    json_member_number(json, "from_bytes", forecast->from_bytes);
    json_member_number(json, "span_ms", forecast_span_ms(forecast));
    json_end(json);
}

void room_json(const struct room *room, struct json *json)
{
    json_array(json);
    forecast_json(json, "account", &room->account, NULL);
    forecast_json(json, "database", &room->database, NULL);
    for (size_t i = 0; i < room->limits_len; i++)
        forecast_json(json, room->limits[i].name, &room->limits[i].forecast, NULL);
    for (size_t object = 0; object < DEFECT_OBJECTS; object++)
        forecast_json(json, defect_objects[object], &room->forecasts[object], &room->kinds[object]);
    json_end(json);
}
