/* The codecs of inbox messages and heartbeats. */
#include "message.h"
#include "messages.pb-c.h"
#include "range.h"
#include "samples.h"
#include "torture.h"

#define S(literal)                                                                                           \
    {                                                                                                        \
        (const uint8_t *)("" literal), sizeof(literal) - 1                                                   \
    }

static void encode(const struct message *message, struct buf *to)
{
    buf_init(to, MESSAGE_BYTES_MAX + 1000);
    CU_ASSERT_EQUAL(message_encode(message, to), THOLE_OK);
}

static void round_trip(void)
{
    for (size_t i = 0; i < sample_messages_len; i++) {
        struct buf bytes;
        struct arena arena;
        struct message to;
        encode(&sample_messages[i], &bytes);
        arena_init(&arena, 1000);
        CU_ASSERT_EQUAL(message_decode(buf_bytes(&bytes), &arena, &to, NULL), THOLE_OK);
        buf_release(&bytes);
        struct buf got, want;
        buf_init(&got, 10000);
        buf_init(&want, 10000);
        show_message(&to, &got);
        show_message(&sample_messages[i], &want);
        CHECK_STR("round trip", buf_cstr(&got), buf_cstr(&want));
        buf_release(&got);
        buf_release(&want);
        arena_release(&arena);
    }
    struct buf bytes;
    buf_init(&bytes, 100);
    CU_ASSERT_EQUAL(message_encode(&(struct message){.kind = (enum message_kind)(MESSAGE_LAST + 1)}, &bytes),
                    THOLE_INVALID);
    buf_init(&bytes, 10);
    CU_ASSERT_EQUAL(message_encode(&sample_messages[0], &bytes), THOLE_LIMIT);
    buf_release(&bytes);
}

static uint8_t const long_text[DETAILS_BYTES_MAX + 1] = {0};

/* One field of a good message is made wrong. */
struct wrong {
    const char *text;
    enum message_kind kind;
    size_t at; /* of a slice or of a number */
    thole_slice bytes;
};
#define WRONG(text, kind, member, ...)                                                                       \
    {                                                                                                        \
        text, MESSAGE_##kind, offsetof(struct message, member), __VA_ARGS__                                  \
    }

static struct message make_wrong(const struct wrong *row)
{
    struct message message = sample_messages[row->kind - MESSAGE_START];
    uint8_t *at = (uint8_t *)&message + row->at;
    if (row->at == offsetof(struct message, execution) || row->at == offsetof(struct message, task) ||
        row->at == offsetof(struct message, parent.execution) ||
        row->at == offsetof(struct message, parent.event))
        memset(at, 0, sizeof(uint64_t));
    else
        memcpy(at, &row->bytes, sizeof row->bytes);
    return message;
}

static void check_wrong(const struct wrong *row)
{
    struct message const message = make_wrong(row);
    struct message to;
    struct buf bytes;
    struct arena arena;
    thole_error err = {.text = "ok"};
    encode(&message, &bytes);
    arena_init(&arena, 100000);
    CU_ASSERT_EQUAL(message_decode(buf_bytes(&bytes), &arena, &to, &err), THOLE_CORRUPT);
    CHECK_STR("refused", err.text, row->text);
    CU_ASSERT_EQUAL(err.status, THOLE_CORRUPT);
    buf_release(&bytes);
    arena_release(&arena);
}

static void refused(void)
{
    struct wrong const rows[] = {
        WRONG("instance id is empty", START, instance, {NULL, 0}),
        WRONG("instance id contains a NUL byte", CANCEL, instance, {long_text, 1}),
        WRONG("orchestration name is empty", START, orchestration, {NULL, 0}),
        WRONG("orchestration name has byte 0x2e, allowed is [A-Za-z0-9_-]", START, orchestration, S("a.b")),
        WRONG("request id has 257 bytes, at most 256 are allowed", START, request_id, {long_text, 257}),
        WRONG("instance id is not valid UTF-8 at byte 0", START, parent.instance, S("\xff")),
        WRONG("instance id is empty", START, parent.instance, {NULL, 0}),
        WRONG("parent without an execution or an event", START, parent.execution, {NULL, 0}),
        WRONG("parent without an execution or an event", START, parent.event, {NULL, 0}),
        WRONG("event name is empty", START, event_name, {NULL, 0}),
        WRONG("event name has byte 0x20, allowed is [A-Za-z0-9_-]", START, event_name, S("a b")),
        WRONG("activity result without an execution or an activity", ACTIVITY_RESULT, execution, {NULL, 0}),
        WRONG("activity result without an execution or an activity", ACTIVITY_RESULT, task, {NULL, 0}),
        WRONG("worker id has 201 bytes, at most 200 are allowed", ACTIVITY_RESULT, source.place.worker,
              {long_text, 201}),
        WRONG("error type has 65 bytes, at most 64 are allowed", ACTIVITY_RESULT, error_type,
              {long_text, 65}),
        WRONG("error type has byte 0x20, allowed is [A-Za-z0-9_.-]", ACTIVITY_RESULT, error_type, S("a b")),
        WRONG("details has 16385 bytes, at most 16384 are allowed", ACTIVITY_RESULT, details,
              {long_text, DETAILS_BYTES_MAX + 1}),
        WRONG("cancel reason has 1025 bytes, at most 1024 are allowed", CANCEL, data, {long_text, 1025}),
        WRONG("request id has 257 bytes, at most 256 are allowed", CANCEL, request_id, {long_text, 257}),
        WRONG("event name is empty", EVENT, event_name, {NULL, 0}),
        WRONG("request id has 257 bytes, at most 256 are allowed", EVENT, request_id, {long_text, 257}),
        WRONG("child result without an execution or an event", CHILD_RESULT, execution, {NULL, 0}),
        WRONG("child result without an execution or an event", CHILD_RESULT, task, {NULL, 0}),
        WRONG("error type has byte 0x0a, allowed is [A-Za-z0-9_.-]", CHILD_RESULT, error_type, S("a\n")),
        WRONG("instance id is empty", CHILD_RESULT, child, {NULL, 0}),
        WRONG("terminate reason has 1025 bytes, at most 1024 are allowed", TERMINATE, data,
              {long_text, 1025}),
        WRONG("request id has 257 bytes, at most 256 are allowed", TERMINATE, request_id, {long_text, 257}),
        WRONG("pause reason has 1025 bytes, at most 1024 are allowed", PAUSE, data, {long_text, 1025}),
        WRONG("request id has 257 bytes, at most 256 are allowed", PAUSE, request_id, {long_text, 257}),
        WRONG("resume reason has 1025 bytes, at most 1024 are allowed", RESUME, data, {long_text, 1025}),
        WRONG("request id has 257 bytes, at most 256 are allowed", RESUME, request_id, {long_text, 257}),
        WRONG("reason of a prune has 1025 bytes, at most 1024 are allowed", PRUNE, data, {long_text, 1025}),
        WRONG("request id has 257 bytes, at most 256 are allowed", PRUNE, request_id, {long_text, 257}),
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        check_wrong(&rows[i]);
}

/* Each text of each kind: as long as it may be, and a byte longer. */
static void longest(void)
{
#define UPTO(kind, member, most)                                                                             \
    {                                                                                                        \
        MESSAGE_##kind, offsetof(struct message, member), most                                               \
    }
#define REQUEST(kind) UPTO(kind, request_id, 256), UPTO(kind, data, 1024)
    static const struct {
        enum message_kind kind;
        size_t at, most;
    } rows[] = {
        UPTO(START, instance, 200),
        UPTO(START, orchestration, 64),
        UPTO(START, request_id, 256),
        UPTO(START, event_name, 64),
        UPTO(START, parent.instance, 200),
        UPTO(ACTIVITY_RESULT, source.place.worker, 200),
        UPTO(ACTIVITY_RESULT, source.place.host, 255),
        UPTO(CANCEL, source.actor.name, 200),
        UPTO(CANCEL, source.actor.client, 64),
        UPTO(ACTIVITY_RESULT, queue, 64),
        UPTO(ACTIVITY_RESULT, error_type, 64),
        UPTO(ACTIVITY_RESULT, details, 16384),
        UPTO(ACTIVITY_RESULT, lost_worker, 200),
        UPTO(EVENT, event_name, 64),
        UPTO(EVENT, request_id, 256),
        UPTO(CHILD_RESULT, child, 200),
        UPTO(CHILD_RESULT, error_type, 64),
        REQUEST(CANCEL),
        REQUEST(TERMINATE),
        REQUEST(PAUSE),
        REQUEST(RESUME),
        REQUEST(DELETE),
        REQUEST(PRUNE),
        REQUEST(RETRY),
    };
    static uint8_t letters[16385];
    memset(letters, 'a', sizeof letters);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        for (size_t more = 0; more <= 1; more++) {
            struct message message = sample_messages[rows[i].kind - MESSAGE_START], to;
            thole_slice const text = {letters, rows[i].most + more};
            struct buf bytes;
            struct arena arena;
            memcpy((uint8_t *)&message + rows[i].at, &text, sizeof text);
            encode(&message, &bytes);
            arena_init(&arena, 100000);
            thole_status const status = message_decode(buf_bytes(&bytes), &arena, &to, NULL);
            if (status != (more ? THOLE_CORRUPT : THOLE_OK))
                printf("  [kind %d, member at %zu, %zu bytes]\n", (int)rows[i].kind, rows[i].at, text.len);
            CU_ASSERT_EQUAL(status, more ? THOLE_CORRUPT : THOLE_OK);
            buf_release(&bytes);
            arena_release(&arena);
        }
#undef REQUEST
#undef UPTO
}

/* The shortest message of each kind, as an older thole writes it. */
static void least(void)
{
    static uint8_t const most[DETAILS_BYTES_MAX] = {0};
    struct {
        struct message message;
        uint32_t try_number; /* comes out so */
    } const rows[] = {
        {{.kind = MESSAGE_START, .orchestration = S("o")}, 0},
        {{.kind = MESSAGE_START, .orchestration = S("o"), .event_name = S("e")}, 0},
        {{.kind = MESSAGE_START, .orchestration = S("o"), .parent = {S("p"), 1, 1}}, 0},
        {{.kind = MESSAGE_ACTIVITY_RESULT, .execution = 1, .task = 1}, 1},
        {{.kind = MESSAGE_ACTIVITY_RESULT, .execution = 1, .task = 1, .try_number = 1}, 1},
        {{.kind = MESSAGE_ACTIVITY_RESULT, .execution = 1, .task = 1, .try_number = 2}, 2},
        {{.kind = MESSAGE_ACTIVITY_RESULT, .execution = 1, .task = 1, .details = {most, sizeof most}}, 1},
        {{.kind = MESSAGE_EVENT, .event_name = S("e")}, 0},
        {{.kind = MESSAGE_CHILD_RESULT, .execution = 1, .task = 1, .child = S("c")}, 0},
        {{.kind = MESSAGE_CANCEL, .data = {most, 1024}, .request_id = {most, 256}}, 0},
        {{.kind = MESSAGE_TERMINATE}, 0},
        {{.kind = MESSAGE_PAUSE}, 0},
        {{.kind = MESSAGE_RESUME}, 0},
        {{.kind = MESSAGE_PRUNE}, 0},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct message from = rows[i].message, to;
        from.instance = THOLE_STR("i");
        struct buf bytes, got, want;
        struct arena arena;
        encode(&from, &bytes);
        arena_init(&arena, 100000);
        buf_init(&got, 100000);
        buf_init(&want, 100000);
        CU_ASSERT_EQUAL(message_decode(buf_bytes(&bytes), &arena, &to, NULL), THOLE_OK);
        from.try_number = rows[i].try_number;
        show_message(&to, &got);
        show_message(&from, &want);
        CHECK_STR(message_kind_text(from.kind), buf_cstr(&got), buf_cstr(&want));
        buf_release(&bytes);
        buf_release(&got);
        buf_release(&want);
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
    check_bytes("kind 16", THOLE_STR("\x08\x01\x12\x01i\x82\x01\x02hi"), THOLE_UNSUPPORTED,
                "message of an unknown kind");
    check_bytes("several results", THOLE_STR("\x08\x01\x12\x01i\x7a\x05\x0a\x03\x12\x01i"), THOLE_CORRUPT,
                "several results, on the subject of one instance");
    check_bytes("an empty list", THOLE_STR("\x08\x01\x12\x01i\x7a\x00"), THOLE_CORRUPT,
                "several results, on the subject of one instance");
    check_bytes("no kind", THOLE_STR("\x08\x01\x12\x01i"), THOLE_UNSUPPORTED, "message of an unknown kind");
    check_bytes("an unknown field", THOLE_STR("\x08\x01\x12\x01i\x2a\x05\x0a\x01y\xa2\x06\x00"),
                THOLE_CORRUPT, "message does not decode");
    check_bytes("an unknown field", THOLE_STR("\x08\x01\x12\x01i\x2a\x06\x0a\x01y\xa2\x06\x00\x82\x01\x02hi"),
                THOLE_OK, "ok");
    check_bytes("text", THOLE_STR("{\"start\":{}}"), THOLE_CORRUPT, "message does not decode");
    check_bytes("too large", (thole_slice){zeros, sizeof zeros}, THOLE_LIMIT,
                "message has 8388609 bytes, at most 8388608 are allowed");
}

/* An unknown field in the message, its body, and what is in it. */
static void unknown_fields_everywhere(void)
{
    uint8_t data[] = "\x02hi";
    ProtobufCMessageUnknownField field = {
        .tag = 1000, .wire_type = PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED, .len = 3, .data = data};
    for (size_t i = 0; i < sample_messages_len; i++) {
        struct buf bytes, got, want;
        struct arena arena;
        struct message to;
        encode(&sample_messages[i], &bytes);
        Thole__V1__InboxMessage *pb = thole__v1__inbox_message__unpack(NULL, bytes.len, bytes.ptr);
        ProtobufCMessage *all[4] = {&pb->base, &pb->start->base}; /* whichever it is */
        size_t n = 2;
        if (pb->body_case == THOLE__V1__INBOX_MESSAGE__BODY_START)
            all[n++] = &pb->start->parent->base, all[n++] = &pb->start->event->base;
        for (size_t j = 0; j < n; j++)
            all[j]->unknown_fields = &field, all[j]->n_unknown_fields = 1;
        buf_clear(&bytes);
        thole__v1__inbox_message__pack(pb, buf_extend(&bytes, thole__v1__inbox_message__get_packed_size(pb)));
        for (size_t j = 0; j < n; j++)
            all[j]->unknown_fields = NULL, all[j]->n_unknown_fields = 0;
        thole__v1__inbox_message__free_unpacked(pb, NULL);
        arena_init(&arena, 10000);
        buf_init(&got, 10000);
        buf_init(&want, 10000);
        CU_ASSERT_EQUAL(message_decode(buf_bytes(&bytes), &arena, &to, NULL), THOLE_OK);
        show_message(&to, &got);
        show_message(&sample_messages[i], &want);
        CHECK_STR("unknown fields", buf_cstr(&got), buf_cstr(&want));
        buf_release(&bytes);
        buf_release(&got);
        buf_release(&want);
        arena_release(&arena);
    }
}

/* A heartbeat of eight million bytes that are all needs, and one of names. */
static void hostile_counts(void)
{
    struct buf bytes;
    struct arena arena;
    struct heartbeat to;
    thole_error err;
    buf_init(&bytes, MESSAGE_BYTES_MAX);
    for (int row = 0; row < 2; row++) {
        buf_clear(&bytes);
        buf_append(&bytes, "\x08\x01\x12\x01n", 5);
        uint8_t *items = buf_extend(&bytes, MESSAGE_BYTES_MAX - 6);
        for (size_t i = 0; i + 1 < MESSAGE_BYTES_MAX - 6; i += 2)
            memcpy(items + i, row == 0 ? "\x2a\x00" : "\x22\x00", 2);
        arena_init(&arena, 1 << 20);
        thole_status const status = heartbeat_decode(buf_bytes(&bytes), &arena, &to, &err);
        CU_ASSERT(status == THOLE_LIMIT);
        CHECK_STR("hostile", err.text, "heartbeat takes too much memory to decode");
        arena_release(&arena);
    }
    buf_release(&bytes);
}

static thole_status decode_and_touch(thole_slice bytes, struct arena *arena, thole_error *reterr)
{
    struct message m;
    THOLE_TRY(message_decode(bytes, arena, &m, reterr));
    struct buf text;
    buf_init(&text, 1 << 20);
    show_message(&m, &text); /* reads every byte */
    buf_clear(&text);
    if (message_encode(&m, &text) != THOLE_OK)
        CU_FAIL("what was decoded cannot be encoded");
    buf_release(&text);
    if (id_check(m.instance, NULL) != THOLE_OK)
        CU_FAIL("an id that is none");
    if (error_type_check(m.error_type, NULL) != THOLE_OK)
        CU_FAIL("an error type that is none");
    if (m.kind == MESSAGE_START && name_check(m.orchestration, "x", NULL) != THOLE_OK)
        CU_FAIL("a name that is none");
    return THOLE_OK;
}

static void damaged_bytes(void)
{
    for (size_t i = 0; i < sample_messages_len; i++) {
        struct buf bytes;
        encode(&sample_messages[i], &bytes);
        torture_bytes(decode_and_touch, buf_bytes(&bytes));
        torture_arena(decode_and_touch, buf_bytes(&bytes));
        buf_release(&bytes);
    }
    torture_garbage(decode_and_touch, 20000);
}

/* ---- heartbeats ---- */

static const thole_slice names[] = {S("checkout"), S("refund@2"), S("x")};
static const struct partition_needs needs[] = {
    {.partition = 3, .orchestrations = names, .orchestrations_len = 2},
    {.partition = PARTITIONS_MOST - 1, .orchestrations = NULL, .orchestrations_len = 0},
};
static const struct heartbeat full = {.node = S("node-1"),
                                      .started_ms = 77,
                                      .orchestrations = names,
                                      .orchestrations_len = 3,
                                      .needs = needs,
                                      .needs_len = 2,
                                      .takes_results = true,
                                      .reads_ranges = true};

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
    CU_ASSERT(to.needs[1].partition == PARTITIONS_MOST - 1 && to.needs[1].orchestrations_len == 0);
    CU_ASSERT_TRUE(to.takes_results);
    CU_ASSERT_TRUE(to.reads_ranges);
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
    h = (struct heartbeat){.node = {long_text, 200}};
    check_heartbeat(&h, THOLE_OK, "ok");
    h.node.len++;
    check_heartbeat(&h, THOLE_CORRUPT, "node id has 201 bytes");
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
    {"longest", longest},
    {"least", least},
    {"newer and other bytes", newer_and_other_bytes},
    {"unknown fields everywhere", unknown_fields_everywhere},
    {"hostile counts", hostile_counts},
    {"damaged bytes", damaged_bytes},
    {"heartbeat round trip", heartbeat_round_trip},
    {"heartbeats refused", heartbeats_refused},
    {"versioned names", versioned_names},
};
THOLE_TEST_MAIN("message", tests)
