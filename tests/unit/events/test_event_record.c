/* The codec of history records. */
#include "event.h"
#include "history.pb-c.h"
#include "record_head.h"
#include "recordings.h"
#include "torture.h"
#include <stdlib.h>

static bool same_slice(thole_slice a, thole_slice b)
{
    return thole_slice_equal(a, b);
}

static void check_position(const struct position *a, const struct position *b)
{
    CU_ASSERT_EQUAL(a->floor, b->floor);
    CU_ASSERT_EQUAL(a->ranges_len, b->ranges_len);
    CU_ASSERT_EQUAL(a->listed && a->ranges_len > 0, b->listed);
    CU_ASSERT(a->seen == b->seen && a->seen_ns == b->seen_ns);
    CU_ASSERT(a->ranges_len == 0 || memcmp(a->ranges, b->ranges, a->ranges_len * sizeof *a->ranges) == 0);
}

static void round_trip_of_every_kind(void)
{
    struct record const from = turn_record(every_kind(), EVERY_KIND);
    struct record to;
    struct buf bytes;
    struct arena arena;
    record_bytes(&from, &bytes);
    CU_ASSERT_EQUAL(record_read(&bytes, &arena, &to, NULL), THOLE_OK);
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

/* The actor of an event and the worker that ran it are read back, cost the bytes that docs/audit.md says, and
 * neither are compared by a replay nor count as a history's size. */
static void who_and_where(void)
{
    enum { ACTOR_BYTES = 91, PLACE_BYTES = 24 };
    static const size_t costs[] = {ACTOR_BYTES, PLACE_BYTES};
    for (size_t i = 0; i < ARRAY_LEN(costs); i++) {
        struct event plain = sample_events_said[i];
        plain.source = NULL;
        struct record said = turn_record(&sample_events_said[i], 1), unsaid = turn_record(&plain, 1), to;
        struct buf bytes, without, got, want;
        struct arena arena;
        record_bytes(&said, &bytes);
        record_bytes(&unsaid, &without);
        CU_ASSERT_EQUAL(bytes.len - without.len, costs[i]);
        CU_ASSERT_EQUAL(event_bytes_max(&plain), event_bytes_max(&sample_events_said[i]));
        CU_ASSERT(bytes.len - without.len <=
                  event_room_bytes(&sample_events_said[i]) - event_bytes_max(&plain));
        CU_ASSERT(event_equal(&plain, &sample_events_said[i]));
        CU_ASSERT_EQUAL(record_read(&bytes, &arena, &to, NULL), THOLE_OK);
        buf_release(&bytes); /* everything was copied */
        buf_init(&got, 10000);
        buf_init(&want, 10000);
        show_event(&to.turn.events[0], &got);
        show_event(&sample_events_said[i], &want);
        CHECK_STR("said", buf_cstr(&got), buf_cstr(&want));
        arena_release(&arena);
        CU_ASSERT_EQUAL(record_read(&without, &arena, &to, NULL), THOLE_OK);
        CU_ASSERT(to.turn.events[0].source == NULL);
        arena_release(&arena);
        buf_release(&without);
        buf_release(&got);
        buf_release(&want);
    }
}

static void round_trip_of_other_records(void)
{
    static const struct sequence_range above[] = {{9, 9}, {11, 400}};
    struct record const rows[] = {
        {.kind = RECORD_EPOCH_OPENED,
         .epoch = 4,
         .position = {.floor = UINT64_MAX, .seen = UINT64_MAX, .seen_ns = UINT64_MAX},
         .node = S("n1"),
         .time_ms = 5,
         .previous_epoch = 3,
         .previous_n = 77},
        {.kind = RECORD_POSITION,
         .epoch = 4,
         .n = 1,
         .committed = 1,
         .published = UINT64_MAX,
         .position = {.floor = 7, .ranges = above, .ranges_len = 2}},
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
        record_bytes(&rows[i], &bytes);
        CU_ASSERT_EQUAL(record_read(&bytes, &arena, &to, NULL), THOLE_OK);
        CU_ASSERT(to.kind == rows[i].kind && to.epoch == rows[i].epoch && to.n == rows[i].n);
        CU_ASSERT(to.committed == rows[i].committed && to.published == rows[i].published);
        CU_ASSERT_EQUAL(to.time_ms, rows[i].time_ms);
        CU_ASSERT(to.previous_epoch == rows[i].previous_epoch && to.previous_n == rows[i].previous_n);
        CU_ASSERT(same_slice(to.node, rows[i].node));
        CU_ASSERT_EQUAL(to.turn.blocked, rows[i].turn.blocked);
        CU_ASSERT(same_slice(to.turn.blocked_text, rows[i].turn.blocked_text));
        check_position(&to.position, &rows[i].position);
        buf_release(&bytes);
        arena_release(&arena);
    }
}

static void check_bytes(const char *name, const struct record *record, const char *want)
{
    struct buf bytes, hex;
    record_bytes(record, &bytes);
    buf_init(&hex, 1000);
    for (size_t i = 0; i < bytes.len; i++)
        buf_printf(&hex, "%02x", bytes.ptr[i]);
    CHECK_STR(name, buf_cstr(&hex), want);
    buf_release(&hex);
    buf_release(&bytes);
}

/* The bytes of a record that exists may never change: these were written when the format, and what was added
 * to it, was made. */
static void the_bytes_are_for_ever(void)
{
    struct event const events[] = {{.kind = EVENT_ACTIVITY_COMPLETED, .id = 300, .ref = 2, .data = S("ok")},
                                   {.kind = EVENT_TIMER_CREATED, .id = 301, .due_ms = 5000}};
    struct record record = turn_record(events, 2);
    record.turn.instance = (thole_slice)S("i");
    record.turn.more = false;
    record.position = (struct position){
        .floor = 7, .ranges = (const struct sequence_range[]){{9, 9}}, .ranges_len = 1, .listed = true};
    check_bytes(
        "turn", &record,
        "08011003180720052a0508071201093a220a01691002180420633001420b08ac0210022a040a026f6b420808ad02420308"
        "8827");
    record.position.seen = 11;
    record.position.seen_ns = 5000;
    check_bytes(
        "what was seen", &record,
        "08011003180720052a0a0807120109180b2088273a220a01691002180420633001420b08ac0210022a040a026f6b42"
        "0808ad024203088827");
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
    record_bytes(&record, &empty);
    for (int kind = EVENT_STARTED; kind <= EVENT_LAST; kind++) {
        struct event event = large;
        event.kind = (enum event_kind)kind;
        record = turn_record(&event, 1);
        record_bytes(&record, &one);
        CU_ASSERT(one.len - empty.len + 20 <
                  event_bytes_max(&event)); /* 20: longer lengths of longer slices */
        buf_release(&one);
    }
    buf_release(&empty);
}

/* thole_should_continue_as_new() adds them up: they may never change. */
static void sizes_are_for_ever(void)
{
    static const size_t expected[] = {185, 220, 162, 181, 172, 160, 160, 165, 166, 163, 171, 163, 178,
                                      181, 180, 168, 164, 175, 163, 174, 172, 174, 172, 162, 167, 170,
                                      170, 164, 166, 163, 166, 166, 168, 176, 160, 167, 215, 166, 191};
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
    record_bytes(&record, &one);
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
    struct sequence_range *many = calloc(POSITION_ABOVE_MAX + 1, sizeof *many);
    for (size_t i = 0; i <= RECORD_EVENTS_MAX; i++)
        events[i] = (struct event){.kind = EVENT_TIMER_CREATED, .id = i + 1};
    for (size_t i = 0; i <= POSITION_ABOVE_MAX; i++)
        many[i] = (struct sequence_range){9 + i * 2, 9 + i * 2};
    struct record record = turn_record(events, RECORD_EVENTS_MAX), to;
    record.position =
        (struct position){.floor = 7, .ranges = many, .ranges_len = POSITION_ABOVE_MAX, .listed = true};
    struct buf bytes;
    struct arena arena;
    record_bytes(&record, &bytes);
    CU_ASSERT_EQUAL(record_read(&bytes, &arena, &to, NULL), THOLE_OK); /* the largest that may be written */
    CU_ASSERT_EQUAL(to.turn.events_len, RECORD_EVENTS_MAX);
    CU_ASSERT_EQUAL(to.position.ranges_len, POSITION_ABOVE_MAX);
    arena_release(&arena);
    buf_clear(&bytes);
    record.turn.events_len++;
    CU_ASSERT_EQUAL(record_encode(&record, &bytes), THOLE_LIMIT);
    record.turn.events_len = 0;
    record.position.ranges_len++;
    CU_ASSERT_EQUAL(record_encode(&record, &bytes), THOLE_LIMIT);
    record.position.listed = false;
    CU_ASSERT_EQUAL(record_encode(&record, &bytes), THOLE_LIMIT);
    record.kind = RECORD_UNKNOWN;
    record.position.ranges_len = 0;
    CU_ASSERT_EQUAL(record_encode(&record, &bytes), THOLE_INVALID);
    buf_release(&bytes);
    free(events);
    free(many);
}

/* Fields that are 0 or empty come back so: except the number of a try, and a retry without contents. */
static void least_events(void)
{
    static const struct retry nothing = {.try_timeout_ms = 0}, tries = {.tries_max = 1};
    static const struct retry total = {.total_timeout_ms = 1};
    struct {
        struct event event;
        uint32_t try_number;
        bool retry;
    } const rows[] = {
        {{.kind = EVENT_STARTED, .name = S("o"), .code = 1}, 0, false},
        {{.kind = EVENT_ACTIVITY_SCHEDULED, .name = S("a"), .queue = S("q")}, 0, false},
        {{.kind = EVENT_ACTIVITY_SCHEDULED, .name = S("a"), .queue = S("q"), .retry = &nothing}, 0, false},
        {{.kind = EVENT_ACTIVITY_SCHEDULED, .name = S("a"), .queue = S("q"), .retry = &tries}, 0, true},
        {{.kind = EVENT_ACTIVITY_SCHEDULED, .name = S("a"), .queue = S("q"), .retry = &total}, 0, true},
        {{.kind = EVENT_ACTIVITY_COMPLETED, .ref = 1}, 1, false},
        {{.kind = EVENT_ACTIVITY_COMPLETED, .ref = 1, .try_number = 1}, 1, false},
        {{.kind = EVENT_ACTIVITY_FAILED, .ref = 1, .code = 7}, 1, false},
        {{.kind = EVENT_ACTIVITY_TRY_FAILED, .ref = 1, .code = 7}, 1, false},
        {{.kind = EVENT_ACTIVITY_TRY_STARTED, .ref = 1, .name = S("a"), .queue = S("q")}, 1, false},
        {{.kind = EVENT_STATE_CARRIED}, 0, false}, /* the custom status */
        {{.kind = EVENT_ORIGINS_CARRIED}, 0, false},
        {{.kind = EVENT_CHILD_SCHEDULED, .name = S("o"), .target = S("c"), .code = 99}, 0, false},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct event event = rows[i].event;
        event.id = 1;
        struct record record = turn_record(&event, 1), to;
        struct buf bytes, got, want;
        struct arena arena;
        record_bytes(&record, &bytes);
        CU_ASSERT_EQUAL(record_read(&bytes, &arena, &to, NULL), THOLE_OK);
        buf_init(&got, 10000);
        buf_init(&want, 10000);
        event.try_number = rows[i].try_number;
        CU_ASSERT_EQUAL(to.turn.events[0].retry != NULL, rows[i].retry);
        show_event(&to.turn.events[0], &got);
        show_event(&event, &want);
        CHECK_STR(event_kind_name(event.kind), buf_cstr(&got), buf_cstr(&want));
        buf_release(&bytes);
        buf_release(&got);
        buf_release(&want);
        arena_release(&arena);
    }
}

/* Execution 0 holds what came before the instance. Nothing runs there. */
static void execution_0(void)
{
    struct event const event = {.kind = EVENT_EVENT_RECEIVED, .id = 1, .name = S("e")};
    struct record record = turn_record(&event, 1), to;
    struct buf bytes;
    struct arena arena;
    record.turn.execution = 0;
    record.turn.ran = false;
    record.turn.blocked = BLOCKED_NOT_STARTED;
    record_bytes(&record, &bytes);
    CU_ASSERT_EQUAL(record_read(&bytes, &arena, &to, NULL), THOLE_OK);
    CU_ASSERT(to.turn.execution == 0 && to.turn.blocked == BLOCKED_NOT_STARTED);
    buf_release(&bytes);
    arena_release(&arena);
}

/* ---- records of a newer thole ---- */

/* An unknown field in every message: the record, the turn, each event and its body, and what is in them. */
static void unknown_fields_everywhere(void)
{
    uint8_t data[] = "\x02hi";
    ProtobufCMessageUnknownField field = {
        .tag = 1000, .wire_type = PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED, .len = 3, .data = data};
    struct record record = turn_record(every_kind(), EVERY_KIND), to;
    struct buf bytes, got, want;
    struct arena arena;
    record_bytes(&record, &bytes);
    Thole__V1__Record *pb = thole__v1__record__unpack(NULL, bytes.len, bytes.ptr);
    ProtobufCMessage *all[4 + EVERY_KIND * 3];
    size_t n = 0;
    all[n++] = &pb->base;
    all[n++] = &pb->position->base;
    all[n++] = &pb->turn->base;
    all[n++] = &pb->turn->events[0]->started->parent->base;
    all[n++] = &pb->turn->events[1]->activity_scheduled->retry->base;
    for (size_t i = 0; i < pb->turn->n_events; i++) {
        all[n++] = &pb->turn->events[i]->base;
        if (pb->turn->events[i]->body_case != THOLE__V1__EVENT__BODY__NOT_SET)
            all[n++] = &pb->turn->events[i]->started->base; /* whichever it is */
    }
    for (size_t i = 0; i < n; i++)
        all[i]->unknown_fields = &field, all[i]->n_unknown_fields = 1;
    buf_clear(&bytes);
    thole__v1__record__pack(pb, buf_extend(&bytes, thole__v1__record__get_packed_size(pb)));
    for (size_t i = 0; i < n; i++)
        all[i]->unknown_fields = NULL, all[i]->n_unknown_fields = 0;
    thole__v1__record__free_unpacked(pb, NULL);
    CU_ASSERT_EQUAL(record_read(&bytes, &arena, &to, NULL), THOLE_OK);
    buf_init(&got, 100000);
    buf_init(&want, 100000);
    show_record(&to, &got);
    show_record(&record, &want);
    CHECK_STR("unknown fields", buf_cstr(&got), buf_cstr(&want));
    buf_release(&bytes);
    buf_release(&got);
    buf_release(&want);
    arena_release(&arena);
}

static thole_status decode_pb(const Thole__V1__Record *pb, thole_slice more, struct arena *arena,
                              struct record *ret)
{
    struct buf bytes;
    buf_init(&bytes, 10000);
    thole__v1__record__pack(pb, buf_extend(&bytes, thole__v1__record__get_packed_size(pb)));
    buf_slice(&bytes, more);
    thole_status const status = record_read(&bytes, arena, ret, NULL);
    buf_release(&bytes);
    return status;
}

static void newer_formats(void)
{
    Thole__V1__Record pb = THOLE__V1__RECORD__INIT;
    struct arena arena;
    struct record to;
    pb.format = 3, pb.epoch = 1, pb.n = 1;
    CU_ASSERT_EQUAL(decode_pb(&pb, THOLE_STR(""), &arena, &to), THOLE_CORRUPT); /* no body: no record */
    CU_ASSERT_EQUAL(decode_pb(&pb, THOLE_STR("\xa2\x01\x02hi"), &arena, &to), THOLE_CORRUPT); /* field 20 */
    CU_ASSERT_EQUAL(decode_pb(&pb, THOLE_STR("\x52\x02hi"), &arena, &to), THOLE_UNSUPPORTED); /* field 10 */
    Thole__V1__PositionMoved moved = THOLE__V1__POSITION_MOVED__INIT;
    pb.body_case = THOLE__V1__RECORD__BODY_POSITION_MOVED, pb.position_moved = &moved;
    CU_ASSERT_EQUAL(decode_pb(&pb, THOLE_STR(""), &arena, &to), THOLE_UNSUPPORTED);
    pb.body_case = THOLE__V1__RECORD__BODY__NOT_SET;
    pb.format = 0;
    CU_ASSERT_EQUAL(decode_pb(&pb, THOLE_STR(""), &arena, &to), THOLE_CORRUPT);
    pb.format = 1; /* a body of a kind that is not known: field 10 */
    CU_ASSERT_EQUAL(decode_pb(&pb, THOLE_STR("\x52\x02hi"), &arena, &to), THOLE_OK);
    CU_ASSERT(to.kind == RECORD_UNKNOWN && to.epoch == 1 && to.n == 1);
    arena_release(&arena);
}

/* A body of format 2: whoever knows format 1 only must not take it for garbage. */
static void deletions(void)
{
    static const uint8_t long_bytes[REASON_BYTES_MAX + 1] = {0};
    thole_slice const too_long = {long_bytes, sizeof long_bytes};
    struct deletion const good = {.instance = S("i"), .reason = {long_bytes, REASON_BYTES_MAX}};
    struct {
        const char *name;
        struct deletion deletion;
        thole_status status;
    } const rows[] = {
        {"least", {.instance = S("i")}, THOLE_OK},
        {"most", good, THOLE_OK},
        {"no id", {.reason = S("why")}, THOLE_CORRUPT},
        {"long reason", {.instance = S("i"), .reason = too_long}, THOLE_CORRUPT},
        {"long request", {.instance = S("i"), .request_id = too_long}, THOLE_CORRUPT},
        {"long start", {.instance = S("i"), .started_by = too_long}, THOLE_CORRUPT},
        {"parent's number", {.instance = S("i"), .parent = {S("p"), 1, 0}}, THOLE_CORRUPT},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct record const from = {.kind = RECORD_DELETED, .epoch = 1, .n = 1, .deletion = rows[i].deletion};
        struct record to = {.kind = RECORD_UNKNOWN};
        struct buf bytes;
        struct arena arena;
        record_bytes(&from, &bytes);
        CU_ASSERT_EQUAL(bytes.ptr[1], 2);
        thole_status const status = record_read(&bytes, &arena, &to, NULL);
        CHECK_STR(rows[i].name, thole_status_name(status), thole_status_name(rows[i].status));
        CU_ASSERT(rows[i].status != THOLE_OK ||
                  (to.kind == RECORD_DELETED && same_slice(to.deletion.reason, rows[i].deletion.reason)));
        arena_release(&arena);
        bytes.ptr[1] = 1;
        CU_ASSERT_EQUAL(record_read(&bytes, &arena, &to, NULL), THOLE_CORRUPT);
        buf_release(&bytes);
        arena_release(&arena);
    }
}

static void newer_fields_events_and_blocks(void)
{
    /* A turn with: a blocked kind 99; an unknown field 15; an event of kind 42; one with an unknown field. */
    static const char turn[] = "\x3a\x26\x0a\x01i\x10\x01\x18\x01\x3a\x02\x08\x63\x7a\x02hi"
                               "\x42\x09\x08\x01\x10\x07\xd2\x02\x02hi"
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

static void hashes_of_records_before(void)
{
    struct arena arena;
    struct buf bytes;
    struct record to, from = {.kind = RECORD_POSITION, .epoch = 1, .n = 1};
    arena_init(&arena, 1 << 20);
    buf_init(&bytes, 1 << 20);
    from.previous = record_hash_make(THOLE_STR("a"), 1, THOLE_STR("x"));
    from.previous_of_instance = (struct record_link){record_hash_make(THOLE_STR("a"), 1, THOLE_STR("y")), 7};
    CU_ASSERT_EQUAL(record_encode(&from, &bytes), THOLE_OK);
    CU_ASSERT_EQUAL(record_decode(buf_bytes(&bytes), &arena, &to, NULL), THOLE_OK);
    CU_ASSERT_TRUE(record_hash_equal(&to.previous, &from.previous));
    CU_ASSERT_TRUE(record_hash_equal(&to.previous_of_instance.hash, &from.previous_of_instance.hash));
    CU_ASSERT_EQUAL(to.previous_of_instance.sequence, 7);
    from.previous_of_instance.sequence = 0; /* as an older engine writes it */
    buf_clear(&bytes);
    CU_ASSERT_EQUAL(record_encode(&from, &bytes), THOLE_OK);
    bytes.ptr[bytes.len - 1 - RECORD_HASH_BYTES]--; /* one byte shorter */
    bytes.len--;
    CU_ASSERT_EQUAL(record_decode(buf_bytes(&bytes), &arena, &to, NULL), THOLE_OK);
    CU_ASSERT_TRUE(record_hash_equal(&to.previous, &from.previous));
    CU_ASSERT_FALSE(record_hash_known(&to.previous_of_instance.hash));
    buf_release(&bytes);
    arena_release(&arena);
}

static bool head_of(struct record_head *ret, const struct record *record)
{
    struct buf bytes;
    buf_init(&bytes, 1 << 20);
    CU_ASSERT_EQUAL_FATAL(record_encode(record, &bytes), THOLE_OK);
    CU_ASSERT_FALSE(record_head_read((thole_slice){bytes.ptr, bytes.len - 1}, ret)); /* cut off */
    bool const says = record_head_read(buf_bytes(&bytes), ret);
    buf_release(&bytes);
    return says;
}

/* Where the record stands in the history of its instance, without decoding it. */
static void where_it_stands(void)
{
    struct event events[] = {{.id = 300, .kind = EVENT_STARTED, .name = THOLE_STR("order")}};
    struct record from = {.kind = RECORD_TURN,
                          .epoch = 1,
                          .n = 2,
                          .turn = {.instance = THOLE_STR("order"), .execution = 1, .number = 500}};
    struct record_head head;
    CU_ASSERT_FALSE(head_of(&head, &from)); /* an older engine's */
    from.previous = record_hash_make(THOLE_STR("a"), 1, THOLE_STR("x"));
    CU_ASSERT(head_of(&head, &from) && !record_hash_known(&head.before.hash)); /* the first */
    CU_ASSERT(head.before.sequence == 0 && head.turn == 500 && head.first_event == 0);
    from.turn.events = events;
    from.turn.events_len = 1;
    from.previous_of_instance.hash = record_hash_make(THOLE_STR("a"), 1, THOLE_STR("y"));
    CU_ASSERT_FALSE(head_of(&head, &from)); /* does not say where */
    from.previous_of_instance.sequence = 1000;
    CU_ASSERT(head_of(&head, &from) && head.before.sequence == 1000);
    CU_ASSERT(head.turn == 500 && head.first_event == 300);
    CU_ASSERT(record_hash_equal(&head.before.hash, &from.previous_of_instance.hash));
    from.kind = RECORD_DELETED;
    from.deletion = (struct deletion){.instance = THOLE_STR("order"), .execution = 3};
    CU_ASSERT(head_of(&head, &from) && head.before.sequence == 1000 && head.turn == 0);
    CU_ASSERT_FALSE(record_head_read(THOLE_STR("no record"), &head));
    CU_ASSERT_FALSE(record_head_read(THOLE_STR(""), &head));
}

static const struct thole_test tests[] = {
    {"round trip of every kind", round_trip_of_every_kind},
    {"who and where", who_and_where},
    {"where it stands", where_it_stands},
    {"round trip of other records", round_trip_of_other_records},
    {"the bytes are for ever", the_bytes_are_for_ever},
    {"sizes of events", sizes_of_events},
    {"sizes are for ever", sizes_are_for_ever},
    {"sizes", sizes},
    {"too much", too_much},
    {"least events", least_events},
    {"execution 0", execution_0},
    {"unknown fields everywhere", unknown_fields_everywhere},
    {"newer formats", newer_formats},
    {"deletions", deletions},
    {"hashes of records before", hashes_of_records_before},
    {"newer fields, events and blocks", newer_fields_events_and_blocks},
};
THOLE_TEST_MAIN("event_record", tests)
