/* Several results in one message: what is written is read, and is what the generated code has; what is none
 * is refused. */
#include "message.h"
#include "messages.pb-c.h"
#include "result_list.h"
#include "torture.h"
#include <stdlib.h>

enum { LIST_BYTES = 1 << 20 };
#define NO_LIST "it has no results, more than 256, or is cut off"

/* The result of activity @p task of an instance: "i-7" has a text of seven times as many bytes, so that
 * lengths of one byte and of two are there. */
static void result_of(uint64_t task, struct buf *to)
{
    static uint8_t text[8192];
    char id[16];
    (void)snprintf(id, sizeof id, "i-%llu", (unsigned long long)task);
    struct message const message = {.kind = MESSAGE_ACTIVITY_RESULT,
                                    .instance = thole_slice_from(id),
                                    .execution = 1,
                                    .task = task,
                                    .try_number = 1,
                                    .data = {text, task * 7}};
    buf_clear(to);
    CU_ASSERT_EQUAL_FATAL(message_encode(&message, to), THOLE_OK);
}

/* The results of the activities 1 to @p len. */
static void list_of(size_t len, struct buf *list)
{
    struct buf message;
    size_t bytes = 0;
    buf_init(&message, LIST_BYTES);
    for (size_t i = 1; i <= len; i++) {
        result_of(i, &message);
        bytes += result_list_bytes(message.len);
        result_list_add(list, buf_bytes(&message));
        CU_ASSERT_EQUAL(list->len, bytes);
    }
    buf_release(&message);
}

static void message_of(size_t len, struct buf *to)
{
    struct buf list;
    buf_init(&list, LIST_BYTES);
    list_of(len, &list);
    result_list_write(buf_bytes(&list), to);
    CU_ASSERT_TRUE(to->len <= list.len + RESULT_LIST_ROOM_BYTES);
    buf_release(&list);
}

static bool is_result_of(thole_slice bytes, uint64_t task)
{
    struct buf want;
    buf_init(&want, LIST_BYTES);
    result_of(task, &want);
    bool const same = thole_slice_equal(bytes, buf_bytes(&want));
    buf_release(&want);
    return same;
}

/* Checks that the list has the results of the activities 1 to @p len, in order, and no more. */
static void check_list(thole_slice message, size_t len)
{
    struct result_list list;
    struct result_item item;
    size_t got = 0;
    char id[16];
    thole_error err = {.text = ""};
    thole_status const status = result_list_read(message, &list, &got, &err);
    CU_ASSERT_EQUAL(status, THOLE_OK);
    CHECK_STR("a list", err.text, "");
    CU_ASSERT_EQUAL(got, len);
    for (size_t i = 1; i <= len && status == THOLE_OK; i++) {
        CU_ASSERT_TRUE_FATAL(result_list_next(&list, &item));
        CU_ASSERT_TRUE(is_result_of(item.bytes, i));
        (void)snprintf(id, sizeof id, "i-%zu", i);
        CU_ASSERT_TRUE(thole_slice_equal(item.instance, thole_slice_from(id)));
    }
    CU_ASSERT_TRUE(status != THOLE_OK || !result_list_next(&list, &item));
}

static void there_and_back(void)
{
    static const size_t rows[] = {1, 2, 3, RESULT_LIST_MAX};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct buf message;
        buf_init(&message, LIST_BYTES);
        message_of(rows[i], &message);
        check_list(buf_bytes(&message), rows[i]);
        buf_release(&message);
    }
}

static void the_only_one(void)
{
    struct buf list;
    buf_init(&list, LIST_BYTES);
    CU_ASSERT_EQUAL(result_list_only(buf_bytes(&list)).len, 0);
    list_of(1, &list);
    CU_ASSERT_TRUE(is_result_of(result_list_only(buf_bytes(&list)), 1));
    buf_release(&list);
}

/* ---- the generated code's reading and writing ---- */

static void as_generated_code_reads_it(void)
{
    static const size_t rows[] = {1, 3, RESULT_LIST_MAX};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct buf message;
        buf_init(&message, LIST_BYTES);
        message_of(rows[i], &message);
        Thole__V1__InboxMessage *const pb = thole__v1__inbox_message__unpack(NULL, message.len, message.ptr);
        CU_ASSERT_PTR_NOT_NULL_FATAL(pb);
        CU_ASSERT(pb->format == MESSAGE_FORMAT && pb->instance.len == 0 && pb->base.n_unknown_fields == 0);
        CU_ASSERT_EQUAL_FATAL(pb->body_case, THOLE__V1__INBOX_MESSAGE__BODY_RESULTS);
        CU_ASSERT_EQUAL_FATAL(pb->results->n_messages, rows[i]);
        for (size_t k = 0; k < rows[i]; k++)
            CU_ASSERT_TRUE(is_result_of(
                (thole_slice){pb->results->messages[k].data, pb->results->messages[k].len}, k + 1));
        thole__v1__inbox_message__free_unpacked(pb, NULL);
        buf_release(&message);
    }
}

static void as_generated_code_writes_it(void)
{
    enum { MANY = 40 };
    struct buf bodies[MANY], message, ours;
    ProtobufCBinaryData messages[MANY];
    Thole__V1__Results results = THOLE__V1__RESULTS__INIT;
    Thole__V1__InboxMessage pb = THOLE__V1__INBOX_MESSAGE__INIT;
    for (size_t i = 0; i < MANY; i++) {
        buf_init(&bodies[i], LIST_BYTES);
        result_of(i + 1, &bodies[i]);
        messages[i] = (ProtobufCBinaryData){bodies[i].len, bodies[i].ptr};
    }
    results.n_messages = MANY;
    results.messages = messages;
    pb.format = MESSAGE_FORMAT;
    pb.body_case = THOLE__V1__INBOX_MESSAGE__BODY_RESULTS;
    pb.results = &results;
    buf_init(&message, LIST_BYTES);
    buf_init(&ours, LIST_BYTES);
    thole__v1__inbox_message__pack(&pb, buf_extend(&message, thole__v1__inbox_message__get_packed_size(&pb)));
    check_list(buf_bytes(&message), MANY);
    message_of(MANY, &ours);
    CU_ASSERT_TRUE(thole_slice_equal(buf_bytes(&ours), buf_bytes(&message)));
    for (size_t i = 0; i < MANY; i++)
        buf_release(&bodies[i]);
    buf_release(&message);
    buf_release(&ours);
}

/* ---- messages of others ---- */

static void append_field(struct buf *to, uint8_t field, thole_slice bytes)
{
    uint8_t const head[] = {(uint8_t)(field << 3 | WIRE_BYTES), (uint8_t)bytes.len};
    CU_ASSERT_TRUE_FATAL(bytes.len < 0x80);
    buf_append(to, head, sizeof head);
    buf_slice(to, bytes);
}

/* Between any two fields of the message, of the list, and in a result. */
static void unknown_fields(void)
{
    static const thole_slice unknown[] = {{(const uint8_t *)"\xc0\x3e\x01", 3},
                                          {(const uint8_t *)"\xc2\x3e\x02hi", 5},
                                          {(const uint8_t *)"\xc5\x3e\x31\x32\x33\x34", 6},
                                          {(const uint8_t *)"\xc1\x3e\x31\x32\x33\x34\x35\x36\x37\x38", 10}};
    for (size_t i = 0; i < ARRAY_LEN(unknown); i++) {
        struct result_list read;
        struct result_item item;
        struct buf list, message, result;
        size_t len = 0;
        buf_init(&list, LIST_BYTES);
        buf_init(&message, LIST_BYTES);
        buf_init(&result, LIST_BYTES);
        buf_slice(&list, unknown[i]);
        for (uint64_t k = 1; k <= 2; k++) {
            result_of(k, &result);
            buf_slice(&result, unknown[i]);
            append_field(&list, 1, buf_bytes(&result));
            buf_slice(&list, unknown[i]);
        }
        buf_slice(&message, unknown[i]);
        result_list_write(buf_bytes(&list), &message);
        buf_slice(&message, unknown[i]);
        CU_ASSERT_EQUAL(result_list_read(buf_bytes(&message), &read, &len, NULL), THOLE_OK);
        CU_ASSERT_EQUAL(len, 2);
        CU_ASSERT_TRUE(result_list_next(&read, &item) && item.bytes.len > 3);
        CU_ASSERT_TRUE(thole_slice_equal(item.instance, THOLE_STR("i-1")));
        CU_ASSERT_TRUE(result_list_next(&read, &item));
        CU_ASSERT_TRUE(thole_slice_equal(item.instance, THOLE_STR("i-2")));
        CU_ASSERT_TRUE(thole_slice_equal(item.bytes, buf_bytes(&result)));
        CU_ASSERT_FALSE(result_list_next(&read, &item));
        buf_release(&list);
        buf_release(&message);
        buf_release(&result);
    }
}

/* A field that comes twice: lists are put together, as protocol buffers say (protobuf-c forgets the first);
 * of anything else the last one counts. */
static void fields_that_come_twice(void)
{
    struct buf message, list;
    struct result_list read;
    struct result_item item;
    size_t len = 0;
    buf_init(&message, LIST_BYTES);
    buf_init(&list, LIST_BYTES);
    list_of(3, &list);
    size_t const first = result_list_bytes(result_list_only(buf_bytes(&list)).len);
    buf_append(&message, "\x08\x05\x7a\x00\x08\x01", 6); /* another format first, and an empty list */
    append_field(&message, 15, (thole_slice){list.ptr, first});
    append_field(&message, 15, (thole_slice){list.ptr + first, list.len - first});
    buf_append(&message, "\x7a\x00", 2);
    check_list(buf_bytes(&message), 3);
    thole_slice const twice = THOLE_STR("\x08\x01\x7a\x08\x0a\x06\x12\x01x\x12\x01y");
    CU_ASSERT_EQUAL(result_list_read(twice, &read, &len, NULL), THOLE_OK);
    CU_ASSERT_TRUE(result_list_next(&read, &item));
    CU_ASSERT_TRUE(thole_slice_equal(item.instance, THOLE_STR("y")));
    buf_release(&message);
    buf_release(&list);
}

/* ---- refused messages ---- */

static void check_refused(const char *row, thole_slice bytes, thole_status want, const char *text)
{
    struct result_list list;
    size_t len = 77;
    thole_error err = {.text = "ok"};
    thole_status const status = result_list_read(bytes, &list, &len, &err);
    if (status != want)
        fprintf(stderr, "\n  [%s] %s\n", row, thole_status_name(status));
    CU_ASSERT_EQUAL(status, want);
    CHECK_STR(row, err.text, text);
    CU_ASSERT_EQUAL(err.status, want);
    CU_ASSERT_EQUAL(len, 77); /* not written */
}

static void refused(void)
{
#define ROW(name, bytes, status, text)                                                                       \
    {                                                                                                        \
        name, {(const uint8_t *)("" bytes), sizeof(bytes) - 1}, THOLE_##status, text                         \
    }
#define NO_MESSAGE "it is no message of results"
#define NEWER "message format 2, this engine knows 1"
    static const struct {
        const char *row;
        thole_slice bytes;
        thole_status status;
        const char *text;
    } rows[] = {
        ROW("nothing", "", CORRUPT, NO_MESSAGE),
        ROW("text", "{\"results\":{}}", CORRUPT, NO_MESSAGE),
        ROW("no format", "\x7a\x05\x0a\x03\x12\x01i", CORRUPT, NO_MESSAGE),
        ROW("format 0", "\x08\x00\x7a\x05\x0a\x03\x12\x01i", CORRUPT, NO_MESSAGE),
        ROW("a format of bytes", "\x0a\x01\x01\x7a\x05\x0a\x03\x12\x01i", CORRUPT, NO_MESSAGE),
        ROW("newer", "\x08\x02\x7a\x05\x0a\x03\x12\x01i", UNSUPPORTED, NEWER),
        ROW("newer, and other", "\x08\x02\x82\x01\x00", UNSUPPORTED, NEWER),
        ROW("newer, cut off", "\x08\x02\x7a\x05\x0a", CORRUPT, NO_MESSAGE),
        ROW("much newer", "\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", UNSUPPORTED,
            "message format 18446744073709551615, this engine knows 1"),
        ROW("no list", "\x08\x01", CORRUPT, NO_LIST),
        ROW("of one instance", "\x08\x01\x12\x01i\x4a\x00", CORRUPT, NO_LIST),
        ROW("a list that is a number", "\x08\x01\x78\x01", CORRUPT, NO_LIST),
        ROW("an empty list", "\x08\x01\x7a\x00", CORRUPT, NO_LIST),
        ROW("a list of something else", "\x08\x01\x7a\x05\x12\x03\x12\x01i", CORRUPT, NO_LIST),
        ROW("a result that is a number", "\x08\x01\x7a\x02\x08\x01", CORRUPT, NO_LIST),
        ROW("the list is cut off", "\x08\x01\x7a\x07\x0a\x03\x12\x01i\x0a\x03", CORRUPT, NO_LIST),
        ROW("no result", "\x08\x01\x7a\x02\x0a\x00", CORRUPT, "instance id is empty"),
        ROW("no instance", "\x08\x01\x7a\x04\x0a\x02\x08\x01", CORRUPT, "instance id is empty"),
        ROW("an instance that is a number", "\x08\x01\x7a\x04\x0a\x02\x10\x01", CORRUPT,
            "instance id is empty"),
        ROW("an id that is none", "\x08\x01\x7a\x05\x0a\x03\x12\x01\xff", CORRUPT,
            "instance id is not valid UTF-8 at byte 0"),
        ROW("with a NUL byte", "\x08\x01\x7a\x05\x0a\x03\x12\x01\x00", CORRUPT,
            "instance id contains a NUL byte"),
        ROW("a result that is cut off", "\x08\x01\x7a\x06\x0a\x04\x12\x01i\x08", CORRUPT,
            "instance id is empty"),
        ROW("the second has none", "\x08\x01\x7a\x07\x0a\x03\x12\x01i\x0a\x00", CORRUPT,
            "instance id is empty"),
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        check_refused(rows[i].row, rows[i].bytes, rows[i].status, rows[i].text);
#undef ROW
#undef NO_MESSAGE
#undef NEWER
}

static void too_many(void)
{
    struct buf message, list;
    buf_init(&message, LIST_BYTES);
    buf_init(&list, LIST_BYTES);
    message_of(RESULT_LIST_MAX + 1, &message);
    check_refused("257", buf_bytes(&message), THOLE_CORRUPT, NO_LIST);
    buf_clear(&message);
    message_of(RESULT_LIST_MAX, &message);
    list_of(1, &list); /* one more, in a list of its own */
    append_field(&message, 15, buf_bytes(&list));
    check_refused("256 and 1", buf_bytes(&message), THOLE_CORRUPT, NO_LIST);
    buf_release(&message);
    buf_release(&list);
}

static thole_status read_and_touch(thole_slice bytes, struct arena *arena, thole_error *reterr)
{
    struct result_list list;
    struct result_item item;
    size_t len, got = 0;
    (void)arena;
    THOLE_TRY(result_list_read(bytes, &list, &len, reterr));
    for (; result_list_next(&list, &item); got++) {
        torture_touch(item.bytes);
        torture_touch(item.instance);
        if (id_check(item.instance, NULL) != THOLE_OK)
            CU_FAIL("an id that is none");
    }
    if (got != len || len == 0 || len > RESULT_LIST_MAX)
        CU_FAIL("not as many as it says");
    return THOLE_OK;
}

/* A list that is not there to its end is none: no part of it is taken. */
static void cut_off(void)
{
    struct buf message;
    struct result_list list;
    size_t n;
    buf_init(&message, LIST_BYTES);
    message_of(3, &message);
    for (size_t len = 0; len < message.len; len++) {
        uint8_t *const exact = malloc(len + (len == 0));
        memcpy(exact, message.ptr, len);
        CU_ASSERT_EQUAL(result_list_read((thole_slice){exact, len}, &list, &n, NULL), THOLE_CORRUPT);
        free(exact);
    }
    check_list(buf_bytes(&message), 3);
    buf_release(&message);
}

static void damaged_bytes(void)
{
    struct buf message;
    buf_init(&message, LIST_BYTES);
    message_of(3, &message);
    torture_bytes(read_and_touch, buf_bytes(&message));
    torture_garbage(read_and_touch, 20000);
    buf_release(&message);
}

/* On the subject of one instance it is no message. */
static void no_message_of_an_instance(void)
{
    struct buf message;
    struct arena arena;
    struct message to;
    thole_error err;
    buf_init(&message, LIST_BYTES);
    arena_init(&arena, LIST_BYTES);
    message_of(2, &message);
    CU_ASSERT_EQUAL(message_decode(buf_bytes(&message), &arena, &to, &err), THOLE_CORRUPT);
    CHECK_STR("of no instance", err.text, "instance id is empty");
    buf_append(&message, "\x12\x03i-1", 5);
    check_list(buf_bytes(&message), 2);
    CU_ASSERT_EQUAL(message_decode(buf_bytes(&message), &arena, &to, &err), THOLE_CORRUPT);
    CHECK_STR("of one", err.text, "several results, on the subject of one instance");
    buf_release(&message);
    arena_release(&arena);
}

static const struct thole_test tests[] = {
    {"there and back", there_and_back},
    {"the only one", the_only_one},
    {"as generated code reads it", as_generated_code_reads_it},
    {"as generated code writes it", as_generated_code_writes_it},
    {"unknown fields", unknown_fields},
    {"fields that come twice", fields_that_come_twice},
    {"refused", refused},
    {"too many", too_many},
    {"cut off", cut_off},
    {"damaged bytes", damaged_bytes},
    {"no message of an instance", no_message_of_an_instance},
};
THOLE_TEST_MAIN("result_list", tests)
