#include "recordings.h"

const struct event *every_kind(void)
{
    static struct event events[EVERY_KIND];
    memcpy(events, sample_events, sample_events_len * sizeof *events);
    events[EVERY_KIND - 1] = (struct event){.kind = EVENT_UNKNOWN, .id = EVERY_KIND, .ref = 4};
    return events;
}

static const struct sequence_range above[] = {{9, 9}, {11, 11}, {UINT64_MAX, UINT64_MAX}};

struct record turn_record(const struct event *events, size_t n)
{
    return (struct record){.kind = RECORD_TURN,
                           .epoch = 3,
                           .n = 7,
                           .committed = 5,
                           .position = {.floor = 7, .ranges = above, .ranges_len = 3, .listed = true},
                           .turn = {.instance = S("order/1 \xe2\x82\xac"),
                                    .execution = 2,
                                    .number = 4,
                                    .time_ms = 99,
                                    .more = true,
                                    .ran = true,
                                    .events = events,
                                    .events_len = n}};
}

void record_bytes(const struct record *record, struct buf *to)
{
    buf_init(to, RECORD_BYTES_MAX + 1000);
    CU_ASSERT_EQUAL(record_encode(record, to), THOLE_OK);
}

thole_status record_read(const struct buf *bytes, struct arena *arena, struct record *ret, thole_error *err)
{
    arena_init(arena, 64 << 20);
    return record_decode(buf_bytes(bytes), arena, ret, err);
}
