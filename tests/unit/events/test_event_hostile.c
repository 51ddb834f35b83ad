/* Records that no thole has written: damaged, hostile, wrong. */
#include "recordings.h"
#include "torture.h"
#include <stdlib.h>

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

/* More error types than a retry may have, and so many that they do not fit into memory. */
static void hostile_retry(void)
{
    enum { MANY = 3 * 1000 * 1000 };
    struct {
        size_t n;
        thole_status status;
        const char *text;
    } const rows[] = {
        {RETRY_FINAL_TYPES_MAX, THOLE_OK, "ok"},
        {RETRY_FINAL_TYPES_MAX + 1, THOLE_LIMIT, "there are 65 final error types, at most 64 are allowed"},
        {MANY, THOLE_LIMIT, "record takes too much memory to decode"},
    };
    thole_slice *types = calloc(MANY, sizeof *types);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct retry const retry = {.final_types = types, .final_types_len = rows[i].n};
        struct event const event = {
            .kind = EVENT_ACTIVITY_SCHEDULED, .id = 1, .name = S("a"), .queue = S("q"), .retry = &retry};
        struct record const record = turn_record(&event, 1);
        struct record to;
        struct buf bytes;
        struct arena arena;
        thole_error err = {.text = "ok"};
        record_bytes(&record, &bytes);
        CU_ASSERT_EQUAL(record_read(&bytes, &arena, &to, &err), rows[i].status);
        CHECK_STR("final types", err.text, rows[i].text);
        buf_release(&bytes);
        arena_release(&arena);
    }
    free(types);
}

static void hostile_sizes(void)
{
    struct buf bytes;
    struct arena arena;
    struct record to;
    thole_error err;
    buf_init(&bytes, RECORD_BYTES_MAX + 1);
    memset(buf_extend(&bytes, RECORD_BYTES_MAX + 1), 0, RECORD_BYTES_MAX + 1);
    CU_ASSERT_EQUAL(record_read(&bytes, &arena, &to, &err), THOLE_LIMIT);
    CHECK_STR("size", err.text, "record has 8388609 bytes, at most 8388608 are allowed");
    arena_release(&arena);
    empty_events(&bytes, 4 * 1000 * 1000);
    CU_ASSERT_EQUAL(record_read(&bytes, &arena, &to, &err), THOLE_LIMIT);
    CHECK_STR("memory", err.text, "record takes too much memory to decode");
    arena_release(&arena);
    empty_events(&bytes, RECORD_EVENTS_MAX + 1);
    CU_ASSERT_EQUAL(record_read(&bytes, &arena, &to, &err), THOLE_LIMIT);
    CHECK_STR("events", err.text, "record has 100001 events, at most 100000 are allowed");
    arena_release(&arena);
    buf_release(&bytes);
    hostile_retry();
}

/* ---- refused records ---- */

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
static const struct sequence_range unordered[] = {{10, 10}, {12, 12}, {12, 12}};
static void above_twice(struct record *r, struct event *e)
{
    (void)e, r->position.ranges = unordered;
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
        record_bytes(&record, &bytes);
        CU_ASSERT_EQUAL(record_read(&bytes, &arena, &to, &err), rows[i].status);
        CHECK_STR(rows[i].name, err.text, rows[i].text);
        CU_ASSERT_EQUAL(err.status, rows[i].status);
        buf_release(&bytes);
        arena_release(&arena);
    }
}

/* Of each kind something that no thole writes. */
static const uint8_t long_bytes[65] = {0};
static const struct {
    const char *text;
    struct event event;
} bad_events[] = {
    {"instance id is not valid UTF-8 at byte 0",
     {.kind = EVENT_STARTED, .name = S("o"), .code = 1, .parent = {S("\xff"), 1, 1}}},
    {"instance id is empty", {.kind = EVENT_STARTED, .name = S("o"), .code = 1, .parent = {S(""), 1, 1}}},
    {"event 5, Started, has a parent without a number",
     {.kind = EVENT_STARTED, .name = S("o"), .code = 1, .parent = {S("p"), 0, 1}}},
    {"event 5, Started, has a parent without a number",
     {.kind = EVENT_STARTED, .name = S("o"), .code = 1, .parent = {S("p"), 1, 0}}},
    {"event 5, ActivityCompleted, refers to event 0", {.kind = EVENT_ACTIVITY_COMPLETED}},
    {"error type has byte 0x20, allowed is [A-Za-z0-9_.-]",
     {.kind = EVENT_ACTIVITY_FAILED, .ref = 1, .code = 7, .error_type = S(" ")}},
    {"event 5, ActivityCancelled, refers to event 0", {.kind = EVENT_ACTIVITY_CANCELLED, .code = 1}},
    {"event 5, TimerCreated, refers to event 1", {.kind = EVENT_TIMER_CREATED, .ref = 1}},
    {"event 5, CancelRequested, refers to event 1", {.kind = EVENT_CANCEL_REQUESTED, .ref = 1}},
    {"event 5, Completed, refers to event 1", {.kind = EVENT_COMPLETED, .ref = 1}},
    {"error type has 65 bytes, at most 64 are allowed",
     {.kind = EVENT_FAILED, .code = 7, .error_type = {long_bytes, 65}}},
    {"event 5, Cancelled, refers to event 1", {.kind = EVENT_CANCELLED, .ref = 1}},
    {"event 5, ActivityTryFailed, refers to event 0", {.kind = EVENT_ACTIVITY_TRY_FAILED, .code = 7}},
    {"event 5, ActivityTryFailed, has code 0", {.kind = EVENT_ACTIVITY_TRY_FAILED, .ref = 1}},
    {"error type has byte 0x2f, allowed is [A-Za-z0-9_.-]",
     {.kind = EVENT_ACTIVITY_TRY_FAILED, .ref = 1, .code = 7, .error_type = S("/")}},
    {"event 5, ActivityTryStarted, refers to event 0",
     {.kind = EVENT_ACTIVITY_TRY_STARTED, .name = S("a"), .queue = S("q")}},
    {"activity name is empty", {.kind = EVENT_ACTIVITY_TRY_STARTED, .ref = 1, .queue = S("q")}},
    {"queue name is empty", {.kind = EVENT_ACTIVITY_TRY_STARTED, .ref = 1, .name = S("a")}},
    {"event name is empty", {.kind = EVENT_EVENT_RECEIVED}},
    {"event 5, EventReceived, refers to event 1", {.kind = EVENT_EVENT_RECEIVED, .ref = 1, .name = S("e")}},
    {"event name has byte 0x2e, allowed is [A-Za-z0-9_-]", {.kind = EVENT_EVENT_AWAITED, .name = S(".")}},
    {"event 5, EventAwaitCancelled, refers to event 0", {.kind = EVENT_EVENT_AWAIT_CANCELLED, .code = 1}},
    {"event 5, EventAwaitCancelled, has code 0", {.kind = EVENT_EVENT_AWAIT_CANCELLED, .ref = 1}},
    {"orchestration name is empty", {.kind = EVENT_CHILD_SCHEDULED, .target = S("c")}},
    {"instance id is empty", {.kind = EVENT_CHILD_SCHEDULED, .name = S("o")}},
    {"event 5, ChildCompleted, refers to event 0", {.kind = EVENT_CHILD_COMPLETED}},
    {"event 5, ChildFailed, refers to event 0", {.kind = EVENT_CHILD_FAILED, .code = 7}},
    {"event 5, ChildFailed, has code 0", {.kind = EVENT_CHILD_FAILED, .ref = 1}},
    {"error type has byte 0xff, allowed is [A-Za-z0-9_.-]",
     {.kind = EVENT_CHILD_FAILED, .ref = 1, .code = 7, .error_type = S("\xff")}},
    {"event 5, ChildCancelled, refers to event 0",
     {.kind = EVENT_CHILD_CANCELLED, .code = 1, .target = S("c")}},
    {"event 5, ChildCancelled, has code 0", {.kind = EVENT_CHILD_CANCELLED, .ref = 1, .target = S("c")}},
    {"instance id is empty", {.kind = EVENT_CHILD_CANCELLED, .ref = 1, .code = 1}},
    {"orchestration name is empty", {.kind = EVENT_DETACHED_STARTED, .target = S("c")}},
    {"instance id is empty", {.kind = EVENT_DETACHED_STARTED, .name = S("o")}},
    {"event name is empty", {.kind = EVENT_EVENT_SENT, .target = S("c")}},
    {"instance id is empty", {.kind = EVENT_EVENT_SENT, .name = S("e")}},
    {"event 5, SideEffectRecorded, refers to event 1", {.kind = EVENT_SIDE_EFFECT_RECORDED, .ref = 1}},
    {"event 5, CustomStatusSet, refers to event 1", {.kind = EVENT_CUSTOM_STATUS_SET, .ref = 1}},
    {"event 5, StateSet, has no key", {.kind = EVENT_STATE_SET}},
    {"key has 65 bytes, at most 64 are allowed", {.kind = EVENT_STATE_SET, .name = {long_bytes, 65}}},
    {"change name is empty", {.kind = EVENT_PATCHED}},
    {"event 5, ContinuedAsNew, refers to event 1", {.kind = EVENT_CONTINUED_AS_NEW, .ref = 1}},
    {"event 5, TerminateRequested, refers to event 1", {.kind = EVENT_TERMINATE_REQUESTED, .ref = 1}},
    {"event 5, Terminated, refers to event 1", {.kind = EVENT_TERMINATED, .ref = 1}},
    {"event 5, Paused, refers to event 1", {.kind = EVENT_PAUSED, .ref = 1}},
    {"event 5, Resumed, refers to event 1", {.kind = EVENT_RESUMED, .ref = 1}},
    {"event 5, HistoryPruned, refers to event 1", {.kind = EVENT_HISTORY_PRUNED, .ref = 1}},
    {"key has 65 bytes, at most 64 are allowed", {.kind = EVENT_STATE_CARRIED, .name = {long_bytes, 65}}},
    {"event 5, OriginsCarried, has 9 bytes", {.kind = EVENT_ORIGINS_CARRIED, .data = S("012345678")}},
    {"event 5, VersionChosen, refers to event 1", {.kind = EVENT_VERSION_CHOSEN, .ref = 1}},
    {"event 5, Discarded, refers to event 1", {.kind = EVENT_DISCARDED, .ref = 1}},
};

static void refused_events(void)
{
    for (size_t i = 0; i < ARRAY_LEN(bad_events); i++) {
        struct event event = bad_events[i].event;
        event.id = 5;
        struct record record = turn_record(&event, 1), to;
        struct buf bytes;
        struct arena arena;
        thole_error err = {.text = "ok"};
        record_bytes(&record, &bytes);
        CU_ASSERT_EQUAL(record_read(&bytes, &arena, &to, &err), THOLE_CORRUPT);
        CHECK_STR(event_kind_name(event.kind), err.text, bad_events[i].text);
        CU_ASSERT_EQUAL(err.status, THOLE_CORRUPT);
        buf_release(&bytes);
        arena_release(&arena);
    }
}

/* ---- damage ---- */

static thole_status decode_and_touch(thole_slice bytes, struct arena *arena, thole_error *reterr)
{
    struct record r;
    THOLE_TRY(record_decode(bytes, arena, &r, reterr));
    struct buf text;
    buf_init(&text, 1 << 20);
    show_record(&r, &text); /* reads every byte */
    /* Every decoded record can be encoded again. */
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
    record_bytes(&record, &bytes);
    torture_bytes(decode_and_touch, buf_bytes(&bytes));
    torture_arena(decode_and_touch, buf_bytes(&bytes));
    buf_release(&bytes);
    record = (struct record){.kind = RECORD_EPOCH_OPENED, .epoch = 4, .node = S("node"), .previous_epoch = 3};
    record_bytes(&record, &bytes);
    torture_bytes(decode_and_touch, buf_bytes(&bytes));
    buf_release(&bytes);
}

static void garbage(void)
{
    torture_garbage(decode_and_touch, 20000);
}

static const struct thole_test tests[] = {
    {"hostile sizes", hostile_sizes}, {"refused", refused}, {"refused events", refused_events},
    {"damaged bytes", damaged_bytes}, {"garbage", garbage},
};
THOLE_TEST_MAIN("event_hostile", tests)
