/* The codecs of inbox messages and heartbeats. */
#include "message.h"
#include "messages.pb-c.h"
#include "torture.h"

#define S(literal)                                                                                           \
    {                                                                                                        \
        (const uint8_t *)("" literal), sizeof(literal) - 1                                                   \
    }

static const struct message every_kind[] = {
    {.kind = MESSAGE_START,
     .instance = S("order-1"),
     .orchestration = S("checkout"),
     .data = S("in\0put"),
     .request_id = S("r")},
    {.kind = MESSAGE_ACTIVITY_RESULT,
     .instance = S("\xe2\x82\xac"),
     .execution = 2,
     .task = UINT64_MAX,
     .status = THOLE_APP,
     .data = S("declined"),
     .attempt = 3,
     .worker = S("w-1")},
    {.kind = MESSAGE_CANCEL, .instance = S("order-1"), .data = S("why"), .request_id = S("r")},
};

static bool same(const struct message *a, const struct message *b)
{
    return a->kind == b->kind && thole_slice_equal(a->instance, b->instance) &&
           thole_slice_equal(a->orchestration, b->orchestration) && thole_slice_equal(a->data, b->data) &&
           thole_slice_equal(a->request_id, b->request_id) && thole_slice_equal(a->worker, b->worker) &&
           a->execution == b->execution && a->task == b->task && a->attempt == b->attempt &&
           a->status == b->status;
}

static void encode(const struct message *message, struct buf *to)
{
    buf_init(to, MESSAGE_BYTES_MAX + 1000);
    CU_ASSERT_EQUAL(message_encode(message, to), THOLE_OK);
}

static void round_trip(void)
{
    for (size_t i = 0; i < ARRAY_LEN(every_kind); i++) {
        struct buf bytes;
        struct arena arena;
        struct message to;
        encode(&every_kind[i], &bytes);
        arena_init(&arena, 1000);
        CU_ASSERT_EQUAL(message_decode(buf_bytes(&bytes), &arena, &to, NULL), THOLE_OK);
        buf_release(&bytes);
        CU_ASSERT(same(&to, &every_kind[i]));
        arena_release(&arena);
    }
    struct buf bytes;
    buf_init(&bytes, 100);
    CU_ASSERT_EQUAL(message_encode(&(struct message){.kind = (enum message_kind)9}, &bytes), THOLE_INVALID);
    buf_init(&bytes, 10);
    CU_ASSERT_EQUAL(message_encode(&every_kind[0], &bytes), THOLE_LIMIT);
    buf_release(&bytes);
}

static void refused(void)
{
    static const uint8_t long_text[1025] = {0};
    struct message const start = every_kind[0], result = every_kind[1], cancel = every_kind[2];
    struct {
        const char *text;
        struct message message;
    } rows[] = {
        {"instance id is empty", start},
        {"instance id contains a NUL byte", cancel},
        {"orchestration name is empty", start},
        {"orchestration name has byte 0x2e, allowed is [A-Za-z0-9_-]", start},
        {"request id has 201 bytes, at most 200 are allowed", start},
        {"activity result without an execution or an activity", result},
        {"activity result without an execution or an activity", result},
        {"worker id has 201 bytes, at most 200 are allowed", result},
        {"cancel reason has 1025 bytes, at most 1024 are allowed", cancel},
        {"request id has 201 bytes, at most 200 are allowed", cancel},
    };
    rows[0].message.instance.len = 0;
    rows[1].message.instance = (thole_slice){long_text, 1};
    rows[2].message.orchestration.len = 0;
    rows[3].message.orchestration = THOLE_STR("a.b");
    rows[4].message.request_id = (thole_slice){long_text, 201};
    rows[5].message.execution = 0;
    rows[6].message.task = 0;
    rows[7].message.worker = (thole_slice){long_text, 201};
    rows[8].message.data = (thole_slice){long_text, 1025};
    rows[9].message.request_id = (thole_slice){long_text, 201};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct buf bytes;
        struct arena arena;
        struct message to;
        thole_error err = {.text = "ok"};
        encode(&rows[i].message, &bytes);
        arena_init(&arena, 10000);
        CU_ASSERT_EQUAL(message_decode(buf_bytes(&bytes), &arena, &to, &err), THOLE_CORRUPT);
        CHECK_STR("refused", err.text, rows[i].text);
        CU_ASSERT_EQUAL(err.status, THOLE_CORRUPT);
        buf_release(&bytes);
        arena_release(&arena);
    }
}

static void check_bytes(const char *row, thole_slice bytes, thole_status expected, const char *text)
{
    struct arena arena;
    struct message to;
    thole_error err = {.text = "ok"};
    arena_init(&arena, 10000);
    CU_ASSERT_EQUAL(message_decode(bytes, &arena, &to, &err), expected);
    CHECK_STR(row, err.text, text);
    arena_release(&arena);
}

static void newer_and_other_bytes(void)
{
    static const uint8_t zeros[MESSAGE_BYTES_MAX + 1] = {0};
    check_bytes("nothing", THOLE_STR(""), THOLE_CORRUPT, "message is empty");
    check_bytes("format 2", THOLE_STR("\x08\x02"), THOLE_UNSUPPORTED,
                "message format 2, this engine knows 1");
    check_bytes("no format", THOLE_STR("\x12\x01i"), THOLE_CORRUPT, "message without a format");
    check_bytes("kind 9", THOLE_STR("\x08\x01\x12\x01i\x4a\x02hi"), THOLE_UNSUPPORTED,
                "message of an unknown kind");
    check_bytes("no kind", THOLE_STR("\x08\x01\x12\x01i"), THOLE_UNSUPPORTED, "message of an unknown kind");
    check_bytes("an unknown field", THOLE_STR("\x08\x01\x12\x01i\x2a\x05\x0a\x01y\xa2\x06\x00"),
                THOLE_CORRUPT, "message does not decode");
    check_bytes("an unknown field", THOLE_STR("\x08\x01\x12\x01i\x2a\x06\x0a\x01y\xa2\x06\x00\x7a\x02hi"),
                THOLE_OK, "ok");
    check_bytes("text", THOLE_STR("{\"start\":{}}"), THOLE_CORRUPT, "message does not decode");
    check_bytes("too large", (thole_slice){zeros, sizeof zeros}, THOLE_LIMIT,
                "message has 8388609 bytes, at most 8388608 are allowed");
}

static thole_status decode_and_touch(thole_slice bytes, struct arena *arena, thole_error *reterr)
{
    struct message m;
    THOLE_TRY(message_decode(bytes, arena, &m, reterr));
    torture_touch(m.instance);
    torture_touch(m.orchestration);
    torture_touch(m.data);
    torture_touch(m.request_id);
    torture_touch(m.worker);
    if (id_check(m.instance, NULL) != THOLE_OK)
        CU_FAIL("an id that is none");
    if (m.kind == MESSAGE_START && name_check(m.orchestration, "x", NULL) != THOLE_OK)
        CU_FAIL("a name that is none");
    return THOLE_OK;
}

static void damaged_bytes(void)
{
    for (size_t i = 0; i < ARRAY_LEN(every_kind); i++) {
        struct buf bytes;
        encode(&every_kind[i], &bytes);
        torture_bytes(decode_and_touch, buf_bytes(&bytes));
        torture_arena(decode_and_touch, buf_bytes(&bytes));
        buf_release(&bytes);
    }
    torture_garbage(decode_and_touch, 20000);
}

/* ---- heartbeats ---- */

static const thole_slice names[] = {S("checkout"), S("refund"), S("x")};
static const struct partition_needs needs[] = {
    {.partition = 3, .orchestrations = names, .orchestrations_len = 2},
    {.partition = UINT32_MAX, .orchestrations = NULL, .orchestrations_len = 0},
};
static const struct heartbeat full = {.node = S("node-1"),
                                      .started_ms = 77,
                                      .orchestrations = names,
                                      .orchestrations_len = 3,
                                      .needs = needs,
                                      .needs_len = 2};

static thole_status heartbeat_touch(thole_slice bytes, struct arena *arena, thole_error *reterr)
{
    struct heartbeat h;
    THOLE_TRY(heartbeat_decode(bytes, arena, &h, reterr));
    torture_touch(h.node);
    for (size_t i = 0; i < h.orchestrations_len; i++)
        torture_touch(h.orchestrations[i]);
    for (size_t i = 0; i < h.needs_len; i++)
        for (size_t j = 0; j < h.needs[i].orchestrations_len; j++)
            torture_touch(h.needs[i].orchestrations[j]);
    return THOLE_OK;
}

static void heartbeat_round_trip(void)
{
    struct buf bytes;
    struct arena arena;
    struct heartbeat to;
    buf_init(&bytes, 1000);
    arena_init(&arena, 1000);
    CU_ASSERT_EQUAL(heartbeat_encode(&full, &bytes), THOLE_OK);
    CU_ASSERT_EQUAL(heartbeat_decode(buf_bytes(&bytes), &arena, &to, NULL), THOLE_OK);
    torture_bytes(heartbeat_touch, buf_bytes(&bytes));
    torture_arena(heartbeat_touch, buf_bytes(&bytes));
    buf_release(&bytes);
    CU_ASSERT(thole_slice_equal(to.node, full.node));
    CU_ASSERT(to.started_ms == 77 && to.orchestrations_len == 3 && to.needs_len == 2);
    for (size_t i = 0; i < 3; i++)
        CU_ASSERT(thole_slice_equal(to.orchestrations[i], names[i]));
    CU_ASSERT(to.needs[0].partition == 3 && to.needs[0].orchestrations_len == 2);
    CU_ASSERT(thole_slice_equal(to.needs[0].orchestrations[1], names[1]));
    CU_ASSERT(to.needs[1].partition == UINT32_MAX && to.needs[1].orchestrations_len == 0);
    arena_release(&arena);
    torture_garbage(heartbeat_touch, 20000);
}

static void check_heartbeat(const struct heartbeat *heartbeat, thole_status expected, const char *text)
{
    struct buf bytes;
    struct arena arena;
    struct heartbeat to;
    thole_error err = {.text = "ok"};
    buf_init(&bytes, 1000);
    arena_init(&arena, 1000);
    CU_ASSERT_EQUAL(heartbeat_encode(heartbeat, &bytes), THOLE_OK);
    CU_ASSERT_EQUAL(heartbeat_decode(buf_bytes(&bytes), &arena, &to, &err), expected);
    CHECK_STR("heartbeat", err.text, text);
    buf_release(&bytes);
    arena_release(&arena);
}

static void heartbeats_refused(void)
{
    thole_slice const bad_name[] = {S("a b")};
    struct partition_needs const bad_need = {.orchestrations = bad_name, .orchestrations_len = 1};
    struct heartbeat h = {.node = S("n")};
    check_heartbeat(&h, THOLE_OK, "ok");
    h.orchestrations = bad_name, h.orchestrations_len = 1;
    check_heartbeat(&h, THOLE_CORRUPT, "orchestration name has byte 0x20, allowed is [A-Za-z0-9_-]");
    h = (struct heartbeat){.node = S("n"), .needs = &bad_need, .needs_len = 1};
    check_heartbeat(&h, THOLE_CORRUPT, "orchestration name has byte 0x20, allowed is [A-Za-z0-9_-]");
    h = (struct heartbeat){.started_ms = 1};
    check_heartbeat(&h, THOLE_CORRUPT, "node id has 0 bytes");
}

static void versioned_names(void)
{
    static const struct {
        thole_slice name;
        const char *text;
    } rows[] = {
        {S("order@2"), "ok"},
        {S("order@4294967295"), "ok"},
        {S("order@"), "orchestration has a version that is no number"},
        {S("order@02"), "orchestration has a version that is no number"},
        {S("order@x"), "orchestration has a version that is no number"},
        {S("order@2@3"), "orchestration has a version that is no number"},
        {S("order@12345678901"), "orchestration has a version that is no number"},
        {S("@2"), "orchestration name is empty"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct heartbeat const h = {.node = S("n"), .orchestrations = &rows[i].name, .orchestrations_len = 1};
        check_heartbeat(&h, strcmp(rows[i].text, "ok") == 0 ? THOLE_OK : THOLE_CORRUPT, rows[i].text);
    }
}

static const struct thole_test tests[] = {
    {"round trip", round_trip},
    {"refused", refused},
    {"newer and other bytes", newer_and_other_bytes},
    {"damaged bytes", damaged_bytes},
    {"heartbeat round trip", heartbeat_round_trip},
    {"heartbeats refused", heartbeats_refused},
    {"versioned names", versioned_names},
};
THOLE_TEST_MAIN("message", tests)
