/* A payload that a record has twice stands in it once: what is written, what is read, and what is refused. */
#include "history.pb-c.h"
#include "record_references.h"
#include "recordings.h"
#include "redaction.h"
#include <stdlib.h>

enum { LARGE = 4096, MANY = 40 };

static uint8_t letters[MANY][LARGE];

/* Payload @p which, in memory of its own each time. */
static thole_slice large(struct arena *arena, size_t which, size_t len)
{
    uint8_t *const bytes = arena_alloc(arena, len);
    CU_ASSERT_PTR_NOT_NULL_FATAL(bytes);
    memcpy(bytes, letters[which], len);
    return (thole_slice){bytes, len};
}

static void fill_letters(void)
{
    for (size_t i = 0; i < MANY; i++) {
        memset(letters[i], 'a', LARGE);
        letters[i][LARGE / 2] = (uint8_t)i; /* the ends are alike */
    }
}

static size_t encoded_bytes(const struct turn *turn, bool refers, struct buf *to)
{
    struct record record = turn_record(turn->events, turn->events_len);
    record.refers = refers;
    record_bytes(&record, to);
    return to->len;
}

static void check_same(const struct turn *turn, const struct record *got)
{
    CU_ASSERT_EQUAL_FATAL(got->turn.events_len, turn->events_len);
    for (size_t i = 0; i < turn->events_len; i++) {
        struct buf a, b;
        buf_init(&a, 100000);
        buf_init(&b, 100000);
        show_event(&turn->events[i], &a);
        show_event(&got->turn.events[i], &b);
        CHECK_STR(event_kind_name(turn->events[i].kind), buf_cstr(&b), buf_cstr(&a));
        buf_release(&a);
        buf_release(&b);
    }
}

/* Encodes with and without references; what is read is the same. Returns how many bytes fewer they take. */
static size_t bytes_saved(const struct turn *turn, struct record *ret, struct arena *arena)
{
    struct buf with, without;
    struct record plain;
    struct arena other;
    size_t const less = encoded_bytes(turn, true, &with), all = encoded_bytes(turn, false, &without);
    CU_ASSERT_EQUAL(record_read(&without, &other, &plain, NULL), THOLE_OK);
    CU_ASSERT_EQUAL(record_read(&with, arena, ret, NULL), THOLE_OK);
    check_same(turn, &plain);
    check_same(turn, ret);
    CU_ASSERT_TRUE(less <= all);
    CU_ASSERT_TRUE(memmem(with.ptr, with.len, turn->events[0].data.ptr, turn->events[0].data.len) != NULL);
    arena_release(&other);
    buf_release(&with);
    buf_release(&without);
    return all - less;
}

#define TURN(list) ((struct turn){.events = (list), .events_len = ARRAY_LEN(list)})

/* An instance that hands its input to an activity, and its result on. */
static void a_turn_says_a_payload_once(void)
{
    struct arena arena, from;
    struct record got;
    arena_init(&from, 1 << 20);
    struct event const begins[] = {
        {.kind = EVENT_STARTED, .id = 1, .code = 1, .name = S("o"), .data = large(&from, 1, LARGE)},
        {.kind = EVENT_ACTIVITY_SCHEDULED,
         .id = 2,
         .name = S("a"),
         .queue = S("q"),
         .data = large(&from, 1, LARGE)}};
    struct event const ends[] = {{.kind = EVENT_ACTIVITY_COMPLETED,
                                  .id = 3,
                                  .ref = 2,
                                  .try_number = 1,
                                  .data = large(&from, 2, LARGE)},
                                 {.kind = EVENT_COMPLETED, .id = 4, .data = large(&from, 2, LARGE)}};
    struct turn const turns[] = {TURN(begins), TURN(ends)};
    for (size_t i = 0; i < ARRAY_LEN(turns); i++) {
        size_t const saved = bytes_saved(&turns[i], &got, &arena);
        CU_ASSERT_TRUE(saved > LARGE - 16 && saved < LARGE + 16);
        CU_ASSERT_PTR_EQUAL(got.turn.events[0].data.ptr, got.turn.events[1].data.ptr);
        arena_release(&arena);
    }
    arena_release(&from);
}

/* The place, from 1, of the event that has each payload. */
static void check_homes(const char *name, const struct turn *turn, const char *want)
{
    const uint32_t *references;
    struct arena arena;
    char text[256] = "";
    arena_init(&arena, 1 << 20);
    CU_ASSERT_EQUAL(references_find(turn, &arena, &references), THOLE_OK);
    for (size_t i = 0, at = 0; references != NULL && i < turn->events_len; i++)
        at += (size_t)snprintf(text + at, sizeof text - at, "%s%u", i == 0 ? "" : " ", references[i]);
    CHECK_STR(name, text, want);
    arena_release(&arena);
}

#define SET(at, payload)                                                                                     \
    {                                                                                                        \
        .kind = EVENT_CUSTOM_STATUS_SET, .id = (at), .data = (payload)                                       \
    }
#define END(at, payload)                                                                                     \
    {                                                                                                        \
        .kind = EVENT_COMPLETED, .id = (at), .data = (payload)                                               \
    }

static void which_event_has_it(void)
{
    struct arena from;
    arena_init(&from, 1 << 20);
    thole_slice const a = large(&from, 1, LARGE), b = large(&from, 2, LARGE), again = large(&from, 1, LARGE);
    thole_slice const least = large(&from, 1, REFERENCE_BYTES_MIN), less = {a.ptr, REFERENCE_BYTES_MIN - 1};
    struct event const first[] = {SET(5, a), SET(6, b), SET(7, again), SET(8, b)};
    struct event const last[] = {SET(5, a), SET(6, again), END(7, a)};
    struct event const echo[] = {{.kind = EVENT_STARTED, .id = 1, .data = a}, SET(2, a), END(3, again)};
    struct event const received[] = {{.kind = EVENT_EVENT_RECEIVED, .id = 1, .data = a},
                                     {.kind = EVENT_EVENT_RECEIVED, .id = 2, .data = a},
                                     SET(3, a)};
    struct event const short_one[] = {SET(1, less), SET(2, less)},
                       least_one[] = {SET(1, least), SET(2, least)};
    struct event const lengths[] = {SET(1, a), SET(2, least)}, others[] = {SET(1, a), SET(2, b)};
    struct event const gap[] = {SET(1, a), SET(3, again)}, gap_home[] = {SET(1, b), SET(3, a), SET(4, a)};
    struct event const hashes[] = {{.kind = EVENT_ORIGINS_CARRIED, .id = 1, .data = a}, SET(2, a), SET(3, a)};
    struct event const unknown[] = {{.kind = EVENT_UNKNOWN, .id = 1, .data = a}, SET(2, a)};
    struct event const none[] = {SET(0, a), SET(0, a)};
    check_homes("the first", &TURN(first), "0 0 1 2");
    check_homes("the end", &TURN(last), "3 3 0");
    check_homes("a start and an end keep theirs", &TURN(echo), "0 3 0");
    check_homes("what clients sent keeps its own", &TURN(received), "0 0 1");
    check_homes("too short", &TURN(short_one), "");
    check_homes("as short as may be", &TURN(least_one), "0 1");
    check_homes("other lengths", &TURN(lengths), "");
    check_homes("other bytes", &TURN(others), "");
    check_homes("ids with a gap", &TURN(gap), "0 1");
    check_homes("an id that is not found", &TURN(gap_home), "");
    check_homes("no payload", &TURN(hashes), "0 0 2");
    check_homes("of an unknown kind", &TURN(unknown), "");
    check_homes("no ids", &TURN(none), "");
    arena_release(&from);
}

/* Each payload is compared with a few others, so that a turn of many takes no time of its own. */
static void many_payloads(void)
{
    struct event events[2 * MANY];
    struct arena from;
    const uint32_t *references;
    arena_init(&from, 1 << 22);
    for (size_t i = 0; i < 2 * MANY; i++)
        events[i] = (struct event)SET(i + 1, large(&from, i % MANY, LARGE));
    struct turn const turn = TURN(events);
    CU_ASSERT_EQUAL(references_find(&turn, &from, &references), THOLE_OK);
    CU_ASSERT_PTR_NOT_NULL_FATAL(references);
    for (size_t i = 0; i < 2 * MANY; i++)
        CU_ASSERT_EQUAL(references[i], i >= MANY && i < MANY + REFERENCE_HOMES_MAX ? i + 1 - MANY : 0);
    CU_ASSERT_EQUAL(references_bytes(&turn, references) / LARGE, REFERENCE_HOMES_MAX);
    arena_release(&from);
}

/* The size of small turns, in bytes and in events, is as before. */
static void small_payloads(void)
{
    struct record record = turn_record(every_kind(), EVERY_KIND);
    struct buf plain, refers;
    record_bytes(&record, &plain);
    record.refers = true;
    record_bytes(&record, &refers);
    CU_ASSERT_TRUE(thole_slice_equal(buf_bytes(&plain), buf_bytes(&refers)));
    buf_release(&plain);
    buf_release(&refers);
}

/* Each kind, as the one that refers and as the one that is referred to. */
static void every_kind_of_event(void)
{
    size_t may = 0;
    for (size_t i = 0; i < sample_events_len; i++) {
        struct arena arena, from;
        struct record got;
        arena_init(&from, 1 << 20);
        struct event events[3] = {{.kind = EVENT_EVENT_RECEIVED, .id = 1, .name = S("e")}, sample_events[i]};
        size_t const n = event_is_terminal(events[1].kind) ? 2 : 3;
        events[2] = (struct event)SET(3, ((thole_slice){0}));
        events[1].id = 2;
        for (size_t k = 0; k < n; k++)
            if (event_data_field(events[k].kind) != 0)
                events[k].data = large(&from, 1, LARGE);
        struct turn const turn = {.events = events, .events_len = n};
        bool const refers = event_may_refer(events[1].kind);
        CU_ASSERT_EQUAL(event_has_payload(events[1].kind), event_data_field(events[1].kind) != 0);
        CU_ASSERT_TRUE(!refers || event_has_payload(events[1].kind));
        size_t const saved = bytes_saved(&turn, &got, &arena) / (LARGE - 16);
        CU_ASSERT_EQUAL(saved, (size_t)refers + (n == 3));
        CU_ASSERT_TRUE(!refers || event_kind_of_body(events[1].kind + REFERENCE_KINDS) == events[1].kind);
        CU_ASSERT_TRUE(refers ||
                       (int)event_kind_of_body(events[1].kind + REFERENCE_KINDS) != (int)events[1].kind);
        may += refers;
        arena_release(&arena);
        arena_release(&from);
    }
    CU_ASSERT_EQUAL(may, 8);
}

/* ---- forged records ---- */

struct forged {
    unsigned body; /* number of the body, of a kind with bytes as field 1 */
    uint64_t id, payload_of;
    size_t bytes; /* of its own payload */
};

/* Records of SideEffectRecorded and its like; with the mark after the first event, or elsewhere, or
 * without. */
static thole_status forge_marked(const struct forged *of, size_t n, size_t mark, struct record *ret,
                                 struct arena *arena, thole_error *err)
{
    Thole__V1__Record pb = THOLE__V1__RECORD__INIT;
    Thole__V1__Turn turn = THOLE__V1__TURN__INIT;
    Thole__V1__Event *const events = calloc(n, sizeof *events), **const at = calloc(n + 1, sizeof *at);
    Thole__V1__SideEffectRecorded *const bodies = calloc(n, sizeof *bodies);
    Thole__V1__Event no_event = THOLE__V1__EVENT__INIT;
    uint8_t *const payload = calloc(1, RECORD_BYTES_MAX);
    struct buf bytes;
    for (size_t i = 0; i < n; i++) {
        thole__v1__event__init(at[i + (i >= mark)] = &events[i]);
        thole__v1__side_effect_recorded__init(&bodies[i]);
        bodies[i].data = (ProtobufCBinaryData){of[i].bytes, payload};
        events[i].id = of[i].id;
        events[i].payload_of = of[i].payload_of;
        events[i].body_case = (Thole__V1__Event__BodyCase)of[i].body;
        events[i].side_effect_recorded = &bodies[i];
    }
    pb.format = 1, pb.epoch = 1, pb.n = 1;
    pb.body_case = THOLE__V1__RECORD__BODY_TURN, pb.turn = &turn;
    turn.instance = (ProtobufCBinaryData){1, (uint8_t *)(uintptr_t) "i"};
    turn.execution = turn.turn = 1, turn.ran = true;
    if (mark <= n)
        at[mark] = &no_event;
    turn.events = at, turn.n_events = n + (mark <= n);
    buf_init(&bytes, RECORD_BYTES_MAX + 10000);
    size_t const len = thole__v1__record__get_packed_size(&pb);
    thole__v1__record__pack(&pb, buf_extend(&bytes, len));
    *err = (thole_error){.text = "ok"};
    thole_status const status = record_read(&bytes, arena, ret, err);
    buf_release(&bytes);
    free(events), free(at), free(bodies), free(payload);
    return status;
}

static thole_status forge(const struct forged *of, size_t n, struct record *ret, struct arena *arena,
                          thole_error *err)
{
    return forge_marked(of, n, REFERENCE_MARK, ret, arena, err);
}

enum { HOME = EVENT_SIDE_EFFECT_RECORDED, REFERS = HOME + REFERENCE_KINDS, HASHES = EVENT_ORIGINS_CARRIED };

static void forged_references(void)
{
    static const char to_one[] = "event 2, SideEffectRecorded, has the payload of event 1, which has none";
    static const char against[] =
        "event 2, SideEffectRecorded: its body does not go with a payload of event 1";
    struct {
        struct forged events[3];
        const char *text;
    } const rows[] = {
        {{{HOME, 1, 0, 9}, {REFERS, 2, 1, 0}, {HOME, 3, 0, 0}}, "ok"},
        {{{HOME, 1, 0, 0}, {REFERS, 2, 3, 0}, {HOME, 3, 0, 9}}, "ok"},
        {{{HOME, 1, 0, 0}, {REFERS, 2, 1, 0}, {HOME, 3, 0, 9}}, to_one},
        {{{HASHES, 1, 0, 8}, {REFERS, 2, 1, 0}, {HOME, 3, 0, 9}}, to_one},
        {{{REFERS, 1, 3, 0}, {REFERS, 2, 1, 0}, {HOME, 3, 0, 9}}, to_one}, /* a reference to a reference */
        {{{HOME, 1, 0, 9}, {REFERS, 2, 1, 9}, {HOME, 3, 0, 0}}, against},
        {{{HOME, 1, 0, 9}, {HOME, 2, 1, 9}, {HOME, 3, 0, 0}}, against},
        {{{HOME, 1, 0, 9}, {HOME, 2, 1, 0}, {HOME, 3, 0, 0}}, against},
        {{{HOME, 1, 0, 9}, {REFERS, 2, 0, 0}, {HOME, 3, 0, 0}},
         "event 2, SideEffectRecorded: its body does not go with a payload of event 0"},
        {{{HOME, 1, 0, 9}, {REFERS, 2, 2, 0}, {HOME, 3, 0, 0}},
         "event 2, SideEffectRecorded, has the payload of event 2, which has none"},
        {{{HOME, 1, 0, 9}, {REFERS, 2, 4, 0}, {HOME, 3, 0, 0}},
         "event 2, SideEffectRecorded, has the payload of event 4, which has none"},
        {{{HOME, 1, 0, 9}, {REFERS, 2, UINT64_MAX, 0}, {HOME, 3, 0, 0}},
         "event 2, SideEffectRecorded, has the payload of event 18446744073709551615, which has none"},
        {{{HOME, 5, 0, 9}, {REFERS, 6, 4, 0}, {HOME, 7, 0, 9}},
         "event 6, SideEffectRecorded, has the payload of event 4, which has none"},
        {{{HOME, 5, 0, 9}, {REFERS, 6, 7, 0}, {HOME, 8, 0, 9}},
         "event 6, SideEffectRecorded, has the payload of event 7, which has none"},
        {{{REFERS, 1, 1, 0}, {HOME, 2, 0, 0}, {HOME, 3, 0, 0}},
         "event 1, SideEffectRecorded, has the payload of event 1, which has none"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct arena arena;
        struct record got;
        thole_error err;
        bool const good = strcmp(rows[i].text, "ok") == 0;
        CU_ASSERT_EQUAL(forge(rows[i].events, 3, &got, &arena, &err), good ? THOLE_OK : THOLE_CORRUPT);
        CHECK_STR("forged", err.text, rows[i].text);
        CU_ASSERT_TRUE(!good || got.turn.events[1].data.len == 9);
        arena_release(&arena);
    }
}

/* The mark that makes an older engine keep all messages for the instance, and lets no newer one see more than
 * was written. */
static void the_mark(void)
{
    struct forged const events[] = {{HOME, 1, 0, 9}, {REFERS, 2, 1, 0}, {HOME, 3, 0, 8}};
    for (size_t mark = 0; mark < 5; mark++) {
        struct arena arena;
        struct record got;
        thole_error err;
        thole_status const status = forge_marked(events, 3, mark, &got, &arena, &err);
        CHECK_STR("mark", thole_status_name(status), mark == REFERENCE_MARK ? "OK" : "CORRUPT");
        if (status != THOLE_OK)
            CHECK_STR("text", err.text, "turn 1 has references without their mark");
        else
            CU_ASSERT_TRUE(got.turn.events_len == 3 && got.turn.events[2].data.len == 8);
        arena_release(&arena);
    }
    struct forged const plain[] = {{HOME, 1, 0, 9}, {HOME, 2, 0, 9}};
    struct arena arena;
    struct record got;
    thole_error err;
    CU_ASSERT_EQUAL(forge(plain, 2, &got, &arena, &err), THOLE_OK);
    CU_ASSERT_TRUE(got.turn.events_len == 3 && got.turn.events[1].kind == EVENT_UNKNOWN);
    arena_release(&arena);
}

/* To an older reader a body with a reference is of a kind that it does not know; so is to this one a
 * reference to such a kind, or by a kind that has none. */
static void unknown_kinds(void)
{
    enum { NEWER = 499 };
    struct forged const events[] = {
        {NEWER, 1, 0, 9}, {REFERS, 2, 1, 0}, {HOME, 3, 0, 9}, {EVENT_COMPLETED + REFERENCE_KINDS, 4, 3, 0}};
    struct arena arena;
    struct record got;
    thole_error err;
    CU_ASSERT_EQUAL(forge(events, 4, &got, &arena, &err), THOLE_OK);
    CHECK_STR("unknown", err.text, "ok");
    const struct event *const e = got.turn.events;
    CU_ASSERT_TRUE(e[0].kind == EVENT_UNKNOWN && e[1].kind == EVENT_UNKNOWN && e[1].id == 2);
    CU_ASSERT_TRUE(e[2].kind == EVENT_SIDE_EFFECT_RECORDED && e[3].kind == EVENT_UNKNOWN &&
                   e[3].data.len == 0);
    arena_release(&arena);
}

/* With all of its payloads a record is as large as one may be, not larger. */
static void expansion(void)
{
    enum { MIB = 1 << 20, N = 8 };
    struct {
        size_t events, bytes;
        thole_status status;
    } const rows[] = {{2, 4 * MIB - 100, THOLE_OK},
                      {2, 4 * MIB, THOLE_LIMIT},
                      {N, MIB - 100, THOLE_OK},
                      {N, MIB, THOLE_LIMIT},
                      {RECORD_EVENTS_MAX, MIB, THOLE_LIMIT},
                      {RECORD_EVENTS_MAX, 1, THOLE_OK}};
    struct forged *const events = calloc(RECORD_EVENTS_MAX, sizeof *events);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct arena arena;
        struct record got;
        thole_error err;
        for (size_t k = 0; k < rows[i].events; k++)
            events[k] = (struct forged){k == 0 ? HOME : REFERS, k + 1, k > 0, k == 0 ? rows[i].bytes : 0};
        thole_status const status = forge(events, rows[i].events, &got, &arena, &err);
        CHECK_STR("expanded", thole_status_name(status), thole_status_name(rows[i].status));
        if (status != THOLE_OK)
            CHECK_STR("text", err.text, "record has more than 8388608 bytes with all of its payloads");
        arena_release(&arena);
    }
    free(events);
}

/* Nobody writes what nobody would read: it is over the limit, as without references. */
static void too_large_to_write(void)
{
    static const size_t sizes[] = {(4 << 20) - 300, 4 << 20};
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        thole_slice const payload = {calloc(1, sizes[i]), sizes[i]};
        struct event const events[] = {SET(1, payload), SET(2, payload)};
        struct record record = turn_record(events, 2);
        struct buf to;
        buf_init(&to, RECORD_BYTES_MAX);
        buf_text(&to, "before");
        record.refers = true;
        CU_ASSERT_EQUAL(record_encode(&record, &to), i == 0 ? THOLE_OK : THOLE_LIMIT);
        CU_ASSERT_TRUE(i == 0 ? to.len > sizes[i] : to.len == 6);
        record.refers = false;
        buf_clear(&to);
        CU_ASSERT_EQUAL(record_encode(&record, &to), i == 0 ? THOLE_OK : THOLE_LIMIT);
        buf_release(&to);
        free((void *)(uintptr_t)payload.ptr);
    }
}

static void with_letters(void (*test)(void))
{
    fill_letters();
    test();
}
static void test_once(void)
{
    with_letters(a_turn_says_a_payload_once);
}
static void test_homes(void)
{
    with_letters(which_event_has_it);
}
static void test_many(void)
{
    with_letters(many_payloads);
}
static void test_kinds(void)
{
    with_letters(every_kind_of_event);
}

static const struct thole_test tests[] = {
    {"a turn says a payload once", test_once},
    {"which event has it", test_homes},
    {"many payloads", test_many},
    {"small payloads", small_payloads},
    {"every kind of event", test_kinds},
    {"forged references", forged_references},
    {"the mark", the_mark},
    {"unknown kinds", unknown_kinds},
    {"expansion", expansion},
    {"too large to write", too_large_to_write},
};
THOLE_TEST_MAIN("record_references", tests)
