/* The codec of history records. */
#include "event.h"
#include "history.pb-c.h"
#include "samples.h"
#include "torture.h"
#include <stdlib.h>

#define S(literal)                                                                                           \
    {                                                                                                        \
        (const uint8_t *)("" literal), sizeof(literal) - 1                                                   \
    }

/* Every kind, and one that is not known. */
enum { EVERY_KIND = EVENT_DISCARDED - EVENT_STARTED + 2 };
static const struct event *every_kind(void)
{
    static struct event events[EVERY_KIND];
    memcpy(events, sample_events, sample_events_len * sizeof *events);
    events[EVERY_KIND - 1] = (struct event){.kind = EVENT_UNKNOWN, .id = EVERY_KIND, .ref = 4};
    return events;
}

static const uint64_t above[] = {9, 11, UINT64_MAX};

static struct record turn_record(const struct event *events, size_t n)
{
    return (struct record){.kind = RECORD_TURN,
                           .epoch = 3,
                           .n = 7,
                           .committed = 5,
                           .position = {.floor = 7, .above = above, .above_len = 3},
                           .turn = {.instance = S("order/1 \xe2\x82\xac"),
                                    .execution = 2,
                                    .number = 4,
                                    .time_ms = 99,
                                    .more = true,
                                    .ran = true,
                                    .events = events,
                                    .events_len = n}};
}

static void encode(const struct record *record, struct buf *to)
{
    buf_init(to, RECORD_BYTES_MAX + 1000);
    CU_ASSERT_EQUAL(record_encode(record, to), THOLE_OK);
}

/* Decodes and returns the status; *ret and its memory are the caller's until release(). */
static thole_status decode(const struct buf *bytes, struct arena *arena, struct record *ret, thole_error *err)
{
    arena_init(arena, 64 << 20);
    return record_decode(buf_bytes(bytes), arena, ret, err);
}

static bool same_slice(thole_slice a, thole_slice b)
{
    return thole_slice_equal(a, b);
}

static void check_position(const struct position *a, const struct position *b)
{
    CU_ASSERT_EQUAL(a->floor, b->floor);
    CU_ASSERT_EQUAL(a->above_len, b->above_len);
    CU_ASSERT(a->above_len == 0 || memcmp(a->above, b->above, a->above_len * sizeof *a->above) == 0);
}

static void round_trip_of_every_kind(void)
{
    struct record const from = turn_record(every_kind(), EVERY_KIND);
    struct record to;
    struct buf bytes;
    struct arena arena;
    encode(&from, &bytes);
    CU_ASSERT_EQUAL(decode(&bytes, &arena, &to, NULL), THOLE_OK);
    buf_release(&bytes); /* everything was copied */
    CU_ASSERT(to.kind == RECORD_TURN && to.epoch == 3 && to.n == 7 && to.committed == 5);
    check_position(&to.position, &from.position);
    CU_ASSERT(same_slice(to.turn.instance, from.turn.instance));
    CU_ASSERT(to.turn.execution == 2 && to.turn.number == 4 && to.turn.time_ms == 99);
    CU_ASSERT(to.turn.more && to.turn.ran && to.turn.blocked == BLOCKED_NOT);
    CU_ASSERT_EQUAL(to.turn.events_len, EVERY_KIND);
    for (size_t i = 0; i < to.turn.events_len; i++) {
        struct buf got, want;
        buf_init(&got, 10000);
        buf_init(&want, 10000);
        show_event(&to.turn.events[i], &got);
        show_event(&from.turn.events[i], &want);
        CHECK_STR(event_kind_name(from.turn.events[i].kind), buf_cstr(&got), buf_cstr(&want));
        CU_ASSERT_EQUAL(to.turn.events[i].kind, from.turn.events[i].kind);
        CU_ASSERT(event_equal(&to.turn.events[i], &from.turn.events[i]));
        buf_release(&got);
        buf_release(&want);
    }
    arena_release(&arena);
}

static void round_trip_of_other_records(void)
{
    struct record const rows[] = {
        {.kind = RECORD_EPOCH_OPENED,
         .epoch = 4,
         .position = {.floor = UINT64_MAX},
         .node = S("n1"),
         .time_ms = 5,
         .previous_epoch = 3,
         .previous_n = 77},
        {.kind = RECORD_POSITION,
         .epoch = 4,
         .n = 1,
         .committed = 1,
         .position = {.floor = 7, .above = above, .above_len = 2}},
        {.kind = RECORD_TURN,
         .epoch = 1,
         .n = 1,
         .turn = {.instance = S("i"),
                  .execution = 1,
                  .number = 1,
                  .blocked = BLOCKED_LIMIT,
                  .blocked_text = S("why")}},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct record to;
        struct buf bytes;
        struct arena arena;
        encode(&rows[i], &bytes);
        CU_ASSERT_EQUAL(decode(&bytes, &arena, &to, NULL), THOLE_OK);
        CU_ASSERT(to.kind == rows[i].kind && to.epoch == rows[i].epoch && to.n == rows[i].n);
        CU_ASSERT(to.committed == rows[i].committed && to.time_ms == rows[i].time_ms);
        CU_ASSERT(to.previous_epoch == rows[i].previous_epoch && to.previous_n == rows[i].previous_n);
        CU_ASSERT(same_slice(to.node, rows[i].node));
        CU_ASSERT_EQUAL(to.turn.blocked, rows[i].turn.blocked);
        CU_ASSERT(same_slice(to.turn.blocked_text, rows[i].turn.blocked_text));
        check_position(&to.position, &rows[i].position);
        buf_release(&bytes);
        arena_release(&arena);
    }
}

/* The bytes of a record that exists may never change: this one was written when the format was made. */
static void the_bytes_are_for_ever(void)
{
    struct event const events[] = {{.kind = EVENT_ACTIVITY_COMPLETED, .id = 300, .ref = 2, .data = S("ok")},
                                   {.kind = EVENT_TIMER_CREATED, .id = 301, .due_ms = 5000}};
    struct record record = turn_record(events, 2);
    record.turn.instance = (thole_slice)S("i");
    record.turn.more = false;
    record.position.above_len = 1;
    struct buf bytes, hex;
    encode(&record, &bytes);
    buf_init(&hex, 1000);
    for (size_t i = 0; i < bytes.len; i++)
        buf_printf(&hex, "%02x", bytes.ptr[i]);
    CHECK_STR(
        "turn", buf_cstr(&hex),
        "08011003180720052a0508071201093a220a01691002180420633001420b08ac0210022a040a026f6b420808ad02420308"
        "8827");
    buf_release(&hex);
    buf_release(&bytes);
}

/* The most that an event of any kind can take beside its slices: all numbers as long as they get. */
static void sizes_of_events(void)
{
    static const uint8_t long_bytes[300] = {0};
    thole_slice const types[] = {S(""), {long_bytes, 300}, S("t")};
    struct retry const retry = {UINT64_MAX, UINT64_MAX, UINT32_MAX, UINT64_MAX, UINT64_MAX,
                                UINT32_MAX, UINT32_MAX, types,      3};
    thole_slice const long_slice = {long_bytes, 300};
    struct event const large = {.id = UINT64_MAX,
                                .ref = UINT64_MAX,
                                .due_ms = UINT64_MAX,
                                .code = UINT32_MAX,
                                .try_number = UINT32_MAX,
                                .version = UINT32_MAX,
                                .timed = true,
                                .flag = true,
                                .name = long_slice,
                                .queue = long_slice,
                                .data = long_slice,
                                .request_id = long_slice,
                                .error_type = long_slice,
                                .details = long_slice,
                                .target = long_slice,
                                .parent = {long_slice, UINT64_MAX, UINT64_MAX},
                                .retry = &retry};
    struct record record = turn_record(NULL, 0);
    struct buf empty, one;
    encode(&record, &empty);
    for (int kind = EVENT_STARTED; kind <= EVENT_DISCARDED; kind++) {
        struct event event = large;
        event.kind = (enum event_kind)kind;
        record = turn_record(&event, 1);
        encode(&record, &one);
        CU_ASSERT(one.len - empty.len + 20 <
                  event_bytes_max(&event)); /* 20: longer lengths of longer slices */
        buf_release(&one);
    }
    buf_release(&empty);
}

/* thole_should_continue_as_new() adds them up: they may never change. */
static void sizes_are_for_ever(void)
{
    static const size_t expected[] = {185, 220, 162, 181, 172, 160, 160, 165, 166, 163, 171, 163,
                                      178, 181, 180, 168, 164, 175, 163, 174, 172, 174, 172, 162,
                                      167, 170, 170, 164, 166, 163, 166, 166, 168, 176, 160, 167};
    CU_ASSERT_EQUAL(sample_events_len, ARRAY_LEN(expected));
    for (size_t i = 0; i < ARRAY_LEN(expected); i++) {
        CU_ASSERT_EQUAL(event_bytes_max(&sample_events[i]), expected[i]);
    }
}

static void sizes(void)
{
    struct record record;
    struct buf one;
    record = turn_record(every_kind(), EVERY_KIND);
    encode(&record, &one);
    for (size_t max = 0; max <= one.len; max++) {
        struct buf to;
        buf_init(&to, max);
        CU_ASSERT_EQUAL(record_encode(&record, &to), max < one.len ? THOLE_LIMIT : THOLE_OK);
        CU_ASSERT_EQUAL(to.len, max < one.len ? 0 : one.len);
        buf_release(&to);
    }
    buf_release(&one);
}

static void too_much(void)
{
    struct event *events = calloc(RECORD_EVENTS_MAX + 1, sizeof *events);
    uint64_t *many = calloc(POSITION_ABOVE_MAX + 1, sizeof *many);
    for (size_t i = 0; i <= RECORD_EVENTS_MAX; i++)
        events[i] = (struct event){.kind = EVENT_TIMER_CREATED, .id = i + 1};
    for (size_t i = 0; i <= POSITION_ABOVE_MAX; i++)
        many[i] = 9 + i * 2;
    struct record record = turn_record(events, RECORD_EVENTS_MAX), to;
    record.position = (struct position){.floor = 7, .above = many, .above_len = POSITION_ABOVE_MAX};
    struct buf bytes;
    struct arena arena;
    encode(&record, &bytes);
    CU_ASSERT_EQUAL(decode(&bytes, &arena, &to, NULL), THOLE_OK); /* the largest that may be written */
    CU_ASSERT_EQUAL(to.turn.events_len, RECORD_EVENTS_MAX);
    CU_ASSERT_EQUAL(to.position.above_len, POSITION_ABOVE_MAX);
    arena_release(&arena);
    buf_clear(&bytes);
    record.turn.events_len++;
    CU_ASSERT_EQUAL(record_encode(&record, &bytes), THOLE_LIMIT);
    record.turn.events_len = 0;
    record.position.above_len++;
    CU_ASSERT_EQUAL(record_encode(&record, &bytes), THOLE_LIMIT);
    record.kind = RECORD_UNKNOWN;
    record.position.above_len = 0;
    CU_ASSERT_EQUAL(record_encode(&record, &bytes), THOLE_INVALID);
    buf_release(&bytes);
    free(events);
    free(many);
}

/* A turn of n events of two bytes each. */
static void empty_events(struct buf *bytes, size_t n)
{
    uint8_t const head[] = {0x08, 1, 0x10, 1, 0x18, 1, 0x3a};
    uint8_t const turn[] = {0x0a, 1, 'i', 0x10, 1, 0x18, 1};
    buf_clear(bytes);
    buf_append(bytes, head, sizeof head);
    for (size_t i = 0, len = sizeof turn + n * 2; i < 4; i++, len >>= 7)
        *buf_extend(bytes, 1) = (uint8_t)(i < 3 ? (len & 0x7f) | 0x80 : len & 0x7f);
    buf_append(bytes, turn, sizeof turn);
    uint8_t *events = buf_extend(bytes, n * 2);
    for (size_t i = 0; i < n; i++)
        memcpy(events + i * 2, (const uint8_t[]){0x42, 0}, 2);
}

static void hostile_sizes(void)
{
    struct buf bytes;
    struct arena arena;
    struct record to;
    thole_error err;
    buf_init(&bytes, RECORD_BYTES_MAX + 1);
    memset(buf_extend(&bytes, RECORD_BYTES_MAX + 1), 0, RECORD_BYTES_MAX + 1);
    CU_ASSERT_EQUAL(decode(&bytes, &arena, &to, &err), THOLE_LIMIT);
    CHECK_STR("size", err.text, "record has 8388609 bytes, at most 8388608 are allowed");
    arena_release(&arena);
    empty_events(&bytes, 4 * 1000 * 1000);
    CU_ASSERT_EQUAL(decode(&bytes, &arena, &to, &err), THOLE_LIMIT);
    CHECK_STR("memory", err.text, "record takes too much memory to decode");
    arena_release(&arena);
    empty_events(&bytes, RECORD_EVENTS_MAX + 1);
    CU_ASSERT_EQUAL(decode(&bytes, &arena, &to, &err), THOLE_LIMIT);
    CHECK_STR("events", err.text, "record has 100001 events, at most 100000 are allowed");
    arena_release(&arena);
    buf_release(&bytes);
}

/* ---- what is refused ---- */

struct bad_row {
    const char *name;
    thole_status status;
    const char *text;
    void (*damage)(struct record *record, struct event *event);
};

static void no_epoch(struct record *r, struct event *e)
{
    (void)e, r->epoch = 0;
}
static void turn_zero(struct record *r, struct event *e)
{
    (void)e, r->turn.number = 0;
}
static void execution_zero(struct record *r, struct event *e)
{
    (void)e, r->turn.execution = 0;
}
static void n_zero(struct record *r, struct event *e)
{
    (void)e, r->n = r->committed = 0;
}
static void committed_ahead(struct record *r, struct event *e)
{
    (void)e, r->committed = 8;
}
static void no_instance(struct record *r, struct event *e)
{
    (void)e, r->turn.instance.len = 0;
}
static void bad_instance(struct record *r, struct event *e)
{
    (void)e, r->turn.instance = (thole_slice)S("a\xff");
}
static void ran_and_blocked(struct record *r, struct event *e)
{
    (void)e, r->turn.blocked = BLOCKED_LIMIT;
}
static void event_zero(struct record *r, struct event *e)
{
    (void)r, e->id = 0;
}
static void bad_activity(struct record *r, struct event *e)
{
    (void)r, e->name = (thole_slice)S("a b");
}
static void bad_queue(struct record *r, struct event *e)
{
    (void)r, e->queue = (thole_slice)S("");
}
static void scheduled_with_ref(struct record *r, struct event *e)
{
    (void)r, e->ref = 1;
}
static void bad_orchestration(struct record *r, struct event *e)
{
    (void)r, e->kind = EVENT_STARTED, e->code = 1, e->name.len = 0;
}
static void no_semantics(struct record *r, struct event *e)
{
    (void)r, e->kind = EVENT_STARTED;
}
static void no_ref(struct record *r, struct event *e)
{
    (void)r, e->kind = EVENT_TIMER_FIRED;
}
static void no_status(struct record *r, struct event *e)
{
    (void)r, e->kind = EVENT_ACTIVITY_FAILED, e->ref = 1;
}
static void no_cancel_kind(struct record *r, struct event *e)
{
    (void)r, e->kind = EVENT_TIMER_CANCELLED, e->ref = 1;
}
static void end_without_status(struct record *r, struct event *e)
{
    (void)r, e->kind = EVENT_FAILED;
}
static void above_floor(struct record *r, struct event *e)
{
    (void)e, r->position.floor = 8;
}
static const uint64_t unordered[] = {10, 12, 12};
static void above_twice(struct record *r, struct event *e)
{
    (void)e, r->position.above = unordered;
}
static void above_the_last(struct record *r, struct event *e)
{
    (void)e, r->position.floor = UINT64_MAX;
}
static void epoch_with_n(struct record *r, struct event *e)
{
    (void)e, r->kind = RECORD_EPOCH_OPENED;
}
static void long_node(struct record *r, struct event *e)
{
    static const uint8_t node[201] = {0};
    (void)e, r->kind = RECORD_EPOCH_OPENED, r->n = r->committed = 0, r->node = (thole_slice){node, 201};
}

static void refused(void)
{
    struct bad_row const rows[] = {
        {"no epoch", THOLE_CORRUPT, "record without an epoch", no_epoch},
        {"turn 0", THOLE_CORRUPT, "turn without an execution or a number", turn_zero},
        {"execution 0", THOLE_CORRUPT, "turn without an execution or a number", execution_zero},
        {"a turn numbered 0 in its epoch", THOLE_CORRUPT, "record number 0 in epoch 3", n_zero},
        {"an epoch numbered 7 in itself", THOLE_CORRUPT, "record number 7 in epoch 3", epoch_with_n},
        {"more committed than written", THOLE_CORRUPT, "record 7 says that 8 are committed", committed_ahead},
        {"no instance", THOLE_CORRUPT, "instance id is empty", no_instance},
        {"instance", THOLE_CORRUPT, "instance id is not valid UTF-8 at byte 1", bad_instance},
        {"ran and blocked", THOLE_CORRUPT, "turn 4 ran and was blocked", ran_and_blocked},
        {"event 0", THOLE_CORRUPT, "ActivityScheduled without an event id", event_zero},
        {"activity", THOLE_CORRUPT, "activity name has byte 0x20, allowed is [A-Za-z0-9_-]", bad_activity},
        {"queue", THOLE_CORRUPT, "queue name is empty", bad_queue},
        {"a ref too many", THOLE_CORRUPT, "event 5, ActivityScheduled, refers to event 1",
         scheduled_with_ref},
        {"orchestration", THOLE_CORRUPT, "orchestration name is empty", bad_orchestration},
        {"no semantics", THOLE_CORRUPT, "event 5, Started, has code 0", no_semantics},
        {"no ref", THOLE_CORRUPT, "event 5, TimerFired, refers to event 0", no_ref},
        {"no status", THOLE_CORRUPT, "event 5, ActivityFailed, has code 0", no_status},
        {"no cancel kind", THOLE_CORRUPT, "event 5, TimerCancelled, has code 0", no_cancel_kind},
        {"an end without status", THOLE_CORRUPT, "event 5, Failed, has code 0", end_without_status},
        {"above the floor", THOLE_CORRUPT, "position lists 9 after 9", above_floor},
        {"above twice", THOLE_CORRUPT, "position lists 12 after 12", above_twice},
        {"above the last", THOLE_CORRUPT, "position lists 9 after 18446744073709551615", above_the_last},
        {"node", THOLE_CORRUPT, "node id has 201 bytes", long_node},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct event event = {.kind = EVENT_ACTIVITY_SCHEDULED, .id = 5, .name = S("a"), .queue = S("q")};
        struct record record = turn_record(&event, 1), to;
        struct buf bytes;
        struct arena arena;
        thole_error err = {.text = "ok"};
        rows[i].damage(&record, &event);
        encode(&record, &bytes);
        CU_ASSERT_EQUAL(decode(&bytes, &arena, &to, &err), rows[i].status);
        CHECK_STR(rows[i].name, err.text, rows[i].text);
        CU_ASSERT_EQUAL(err.status, rows[i].status);
        buf_release(&bytes);
        arena_release(&arena);
    }
}

/* ---- what a newer thole may have written ---- */

static thole_status decode_pb(const Thole__V1__Record *pb, thole_slice more, struct arena *arena,
                              struct record *ret)
{
    struct buf bytes;
    buf_init(&bytes, 10000);
    thole__v1__record__pack(pb, buf_extend(&bytes, thole__v1__record__get_packed_size(pb)));
    buf_slice(&bytes, more);
    thole_status const status = decode(&bytes, arena, ret, NULL);
    buf_release(&bytes);
    return status;
}

static void newer_formats(void)
{
    Thole__V1__Record pb = THOLE__V1__RECORD__INIT;
    struct arena arena;
    struct record to;
    pb.format = 2, pb.epoch = 1, pb.n = 1;
    CU_ASSERT_EQUAL(decode_pb(&pb, THOLE_STR(""), &arena, &to), THOLE_CORRUPT); /* no body: no record */
    Thole__V1__PositionMoved moved = THOLE__V1__POSITION_MOVED__INIT;
    pb.body_case = THOLE__V1__RECORD__BODY_POSITION_MOVED, pb.position_moved = &moved;
    CU_ASSERT_EQUAL(decode_pb(&pb, THOLE_STR(""), &arena, &to), THOLE_UNSUPPORTED);
    pb.body_case = THOLE__V1__RECORD__BODY__NOT_SET;
    pb.format = 0;
    CU_ASSERT_EQUAL(decode_pb(&pb, THOLE_STR(""), &arena, &to), THOLE_CORRUPT);
    pb.format = 1; /* a body of a kind that is not known: field 9 */
    CU_ASSERT_EQUAL(decode_pb(&pb, THOLE_STR("\x4a\x02hi"), &arena, &to), THOLE_OK);
    CU_ASSERT(to.kind == RECORD_UNKNOWN && to.epoch == 1 && to.n == 1);
    arena_release(&arena);
}

static void newer_fields_events_and_blocks(void)
{
    /* A turn with: a blocked kind 99; an unknown field 15; an event of kind 40; one with an unknown field. */
    static const char turn[] = "\x3a\x26\x0a\x01i\x10\x01\x18\x01\x3a\x02\x08\x63\x7a\x02hi"
                               "\x42\x09\x08\x01\x10\x07\xc2\x02\x02hi"
                               "\x42\x0a\x08\x02\x72\x06\x0a\x01x\x7a\x01y";
    Thole__V1__Record pb = THOLE__V1__RECORD__INIT;
    struct arena arena;
    struct record to;
    pb.format = 1, pb.epoch = 1, pb.n = 1;
    thole_slice const bytes = (thole_slice){(const uint8_t *)turn, sizeof turn - 1};
    CU_ASSERT_EQUAL(bytes.len, 2 + 0x26);
    CU_ASSERT_EQUAL(decode_pb(&pb, bytes, &arena, &to), THOLE_OK);
    CU_ASSERT_EQUAL(to.turn.blocked, BLOCKED_TOO_NEW);
    CU_ASSERT_EQUAL(to.turn.events_len, 2);
    CU_ASSERT(to.turn.events[0].kind == EVENT_UNKNOWN && to.turn.events[0].id == 1 &&
              to.turn.events[0].ref == 7);
    CU_ASSERT(to.turn.events[1].kind == EVENT_CANCELLED &&
              same_slice(to.turn.events[1].data, THOLE_STR("x")));
    arena_release(&arena);
}

/* ---- damage ---- */

static thole_status decode_and_touch(thole_slice bytes, struct arena *arena, thole_error *reterr)
{
    struct record r;
    THOLE_TRY(record_decode(bytes, arena, &r, reterr));
    torture_touch(r.node);
    torture_touch(r.turn.instance);
    torture_touch(r.turn.blocked_text);
    torture_touch((thole_slice){(const uint8_t *)r.position.above, r.position.above_len * sizeof(uint64_t)});
    struct buf text;
    buf_init(&text, 1 << 20);
    for (size_t i = 0; i < r.turn.events_len; i++) {
        const struct event *e = &r.turn.events[i];
        torture_touch(e->name);
        torture_touch(e->queue);
        torture_touch(e->data);
        torture_touch(e->request_id);
        event_render(e, &text);
    }
    /* What was taken can be written again. */
    buf_clear(&text);
    if (r.kind != RECORD_UNKNOWN && record_encode(&r, &text) != THOLE_OK)
        CU_FAIL("what was decoded cannot be encoded");
    buf_release(&text);
    return THOLE_OK;
}

static void damaged_bytes(void)
{
    struct record record = turn_record(every_kind(), EVERY_KIND);
    struct buf bytes;
    encode(&record, &bytes);
    torture_bytes(decode_and_touch, buf_bytes(&bytes));
    torture_arena(decode_and_touch, buf_bytes(&bytes));
    buf_release(&bytes);
    record = (struct record){.kind = RECORD_EPOCH_OPENED, .epoch = 4, .node = S("node"), .previous_epoch = 3};
    encode(&record, &bytes);
    torture_bytes(decode_and_touch, buf_bytes(&bytes));
    buf_release(&bytes);
}

static void garbage(void)
{
    torture_garbage(decode_and_touch, 20000);
}

static const struct thole_test tests[] = {
    {"round trip of every kind", round_trip_of_every_kind},
    {"round trip of other records", round_trip_of_other_records},
    {"the bytes are for ever", the_bytes_are_for_ever},
    {"sizes of events", sizes_of_events},
    {"sizes are for ever", sizes_are_for_ever},
    {"sizes", sizes},
    {"too much", too_much},
    {"hostile sizes", hostile_sizes},
    {"refused", refused},
    {"newer formats", newer_formats},
    {"newer fields, events and blocks", newer_fields_events_and_blocks},
    {"damaged bytes", damaged_bytes},
    {"garbage", garbage},
};
THOLE_TEST_MAIN("event_record", tests)
