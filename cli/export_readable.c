#include "export_readable.h"
#include "client_internal.h"
#include "export.h"
#include "jscan.h"
#include <stdio.h>
#include <string.h>

enum { READABLE_BYTES_MAX = 16 * RECORD_BYTES_MAX };

/* Members that every version has written where there was something to write. */
static const char always[] = "execution id kind ref name data time turn sequence due";

static bool same_value(thole_slice a, thole_slice b)
{
    struct buf texts[2];
    if (thole_slice_equal(a, b))
        return true;
    buf_init(&texts[0], READABLE_BYTES_MAX);
    buf_init(&texts[1], READABLE_BYTES_MAX);
    bool const same = json_text(a, &texts[0]) && json_text(b, &texts[1]) &&
                      thole_slice_equal(buf_bytes(&texts[0]), buf_bytes(&texts[1]));
    buf_release(&texts[0]);
    buf_release(&texts[1]);
    return same;
}

static bool name_in(const char *names, thole_slice key)
{
    size_t place;
    return json_name_among(names, key, &place);
}

static size_t members_of(thole_slice event)
{
    size_t at = 0, n = 0;
    thole_slice key, value;
    while (json_field(event, &at, &key, &value))
        n++;
    return n;
}

/* Whether each required member is present, and each present one agrees with the record. */
static bool same_event(thole_slice said, thole_slice own, size_t number, char ret_why[HISTORY_WHY_BYTES])
{
    size_t at = 0, found = 0;
    thole_slice key, value, other;
    while (json_field(own, &at, &key, &value)) {
        char name[64];
        (void)snprintf(name, sizeof name, "%.*s", THOLE_FMT(key));
        bool const there = json_find(said, name, &other);
        found += there;
        if (there ? same_value(value, other) : !name_in(always, key))
            continue;
        (void)snprintf(ret_why, HISTORY_WHY_BYTES, "event %zu %s \"%s\"", number,
                       there ? "has another" : "has no", name);
        return false;
    }
    if (members_of(said) == found)
        return true;
    (void)snprintf(ret_why, HISTORY_WHY_BYTES, "event %zu has members that this version does not know",
                   number);
    return false;
}

static bool same_events(thole_slice said, thole_slice own, char ret_why[HISTORY_WHY_BYTES])
{
    size_t at = 0, own_at = 0, number = 0;
    thole_slice event, own_event;
    while (json_item(own, &own_at, &own_event)) {
        number++;
        if (!json_item(said, &at, &event)) {
            (void)snprintf(ret_why, HISTORY_WHY_BYTES, "event %zu is missing", number);
            return false;
        }
        if (!same_event(event, own_event, number, ret_why))
            return false;
    }
    if (!json_item(said, &at, &event) && json_ends(said, at))
        return true;
    (void)snprintf(ret_why, HISTORY_WHY_BYTES, "there are more than %zu", number);
    return false;
}

static bool export_readable_is_read(thole_slice bytes)
{
    struct record record;
    struct arena arena;
    arena_init(&arena, CLIENT_ARENA_MAX);
    bool const good = record_decode(bytes, &arena, &record, NULL) == THOLE_OK;
    arena_release(&arena);
    return good;
}

bool export_readable(void *arg, uint64_t sequence, thole_slice bytes, const thole_slice *events,
                     char ret_why[HISTORY_WHY_BYTES])
{
    struct json json;
    struct buf own;
    thole_slice value;
    if (!export_readable_is_read(bytes)) /* the reader of the record has a finding for that */
        return true;
    buf_init(&own, READABLE_BYTES_MAX);
    json_to_buf(&json, &own);
    json_object(&json);
    export_decorate(arg, &json, sequence, bytes);
    json_end(&json);
    bool const has = json_find(buf_bytes(&own), "events", &value);
    bool same = buf_status(&own) == THOLE_OK && (events != NULL) == has;
    if (!same)
        (void)snprintf(ret_why, HISTORY_WHY_BYTES, "%s",
                       has ? "they are missing" : "the record has no events");
    else if (has && !thole_slice_equal(*events, value))
        same = same_events(*events, value, ret_why);
    buf_release(&own);
    return same;
}
