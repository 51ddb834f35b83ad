/* Protobuf messages as JSON: the canonical mapping, both ways. */
#include "gateway.pb-c.h"
#include "message.h"
#include "messages.pb-c.h"
#include "proto_json.h"
#include "thole_cunit.h"
#include <stdarg.h>
#include <stdlib.h>

static struct codec_scratch scratch;
static thole_error error;

/* Decodes an exact copy, so that AddressSanitizer sees every byte read too far. */
static const ProtobufCMessage *decode(const ProtobufCMessageDescriptor *descriptor, const char *json)
{
    ProtobufCMessage *message = NULL;
    size_t const len = strlen(json);
    uint8_t *const copy = malloc(len == 0 ? 1 : len);
    memcpy(copy, json, len);
    codec_init(&scratch);
    error.text[0] = '\0';
    if (proto_json_decode(descriptor, (thole_slice){copy, len}, &scratch, &message, &error) != THOLE_OK)
        message = NULL;
    free(copy);
    return message;
}

static void check_encoded(const ProtobufCMessage *message, const char *want)
{
    struct buf json;
    buf_init(&json, 1 << 20);
    CU_ASSERT_EQUAL(proto_json_encode(message, &json), THOLE_OK);
    CHECK_STR("encoded", buf_cstr(&json), want);
    buf_release(&json);
}

static int sprintf_of(char *to, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static int sprintf_of(char *to, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    int const len = vsnprintf(to, 64, fmt, args);
    va_end(args);
    return len;
}

/* ---- tests ---- */

static void test_there_and_back(void)
{
    static const char *const tasks[] = {
        "{}",
        "{\"status\":9,\"text\":\"later\"}",
        "{\"tasks\":[{\"claim\":\"1\",\"activity\":\"pay\",\"instance\":\"ä\\\"\\n\",\"execution\":"
        "\"18446744073709551615\",\"activityId\":\"7\",\"tryNumber\":4294967295,\"input\":\"AAECgP//\","
        "\"key\":\"k\"},{}]}",
        "{\"tasks\":[{\"input\":\"YQ==\"},{\"input\":\"YWI=\"},{\"input\":\"YWJj\"}]}",
    };
    for (size_t i = 0; i < ARRAY_LEN(tasks); i++) {
        const ProtobufCMessage *const message = decode(&thole__v1__tasks__descriptor, tasks[i]);
        CU_ASSERT_PTR_NOT_NULL_FATAL(message);
        check_encoded(message, tasks[i]);
        codec_release(&scratch);
    }
}

static void test_what_is_read(void)
{
    const Thole__V1__Task *const task = (const Thole__V1__Task *)decode(
        &thole__v1__task__descriptor,
        " { \"activity_id\" : \"12\" , \"tryNumber\":3, \"unknown\":{\"a\":[1,{}]}, \"input\":\"_-8\","
        " \"details\":null, \"\\u0076ersion\":\"5\", \"key\":\"\\u00e4\\ud83d\\ude00\" }\n");
    CU_ASSERT_PTR_NOT_NULL_FATAL(task);
    CU_ASSERT_EQUAL(task->activity_id, 12); /* the name as in the file; a number as a text */
    CU_ASSERT_EQUAL(task->try_number, 3);
    CU_ASSERT_EQUAL(task->version, 5);
    CU_ASSERT_EQUAL(task->input.len, 2); /* the other alphabet, not padded */
    CU_ASSERT_EQUAL(memcmp(task->input.data, "\xff\xef", 2), 0);
    CU_ASSERT_EQUAL(task->details.len, 0);
    CHECK_STR("text", task->key, "\xc3\xa4\xf0\x9f\x98\x80");
    CHECK_STR("absent", task->queue, "");
    codec_release(&scratch);
    const Thole__V1__Outcome *outcome = (const Thole__V1__Outcome *)decode(
        &thole__v1__outcome__descriptor,
        "{\"cancelled\":true,\"failure\":{\"final\":false,\"text\":\"no\"}}");
    CU_ASSERT_PTR_NOT_NULL_FATAL(outcome);
    CU_ASSERT_TRUE(outcome->cancelled);
    CHECK_STR("nested", outcome->failure->text, "no");
    CU_ASSERT_FALSE(outcome->failure->final);
    check_encoded(&outcome->base, "{\"failure\":{\"text\":\"no\"},\"cancelled\":true}");
    codec_release(&scratch);
    outcome = (const Thole__V1__Outcome *)decode(&thole__v1__outcome__descriptor, "{\"failure\":{ }}");
    CU_ASSERT_PTR_NOT_NULL_FATAL(outcome);
    CU_ASSERT_PTR_NOT_NULL(outcome->failure); /* present, though it is empty */
    codec_release(&scratch);
}

static void test_what_is_refused(void)
{
    static const struct {
        const char *json, *text;
    } rows[] = {
        {"", "the message is not an object"},
        {"null", "the message is not an object"},
        {"[{}]", "the message is not an object"},
        {"{\"claim\":\"1\"", "the message is not an object"},
        {"{}}", "the message is not valid JSON"},
        {"{\"claim\":\"1\" \"key\":\"\"}", "the message is not valid JSON"},
        {"{\"claim\":\"1\",}", "the message is not valid JSON"},
        {"{\"claim\":\"1\"} junk}", "the message is not valid JSON"},
        {"{} {}", "the message is not valid JSON"},
        {"{\"claim\":1}", "claim is not a text"},
        {"{\"claim\":\"a\\u0000\"}", "claim is not a text in UTF-8 without NUL"},
        {"{\"claim\":\"\xff\"}", "claim is not a text in UTF-8 without NUL"},
        {"{\"execution\":18446744073709551616}", "execution is not a number from 0 to 18446744073709551615"},
        {"{\"execution\":1.5}", "execution is not a number from 0 to 18446744073709551615"},
        {"{\"execution\":true}", "execution is not a number from 0 to 18446744073709551615"},
        {"{\"tryNumber\":\"\"}", "try_number is not a number from 0 to 4294967295"},
        {"{\"try_number\":4294967296}", "try_number is not a number from 0 to 4294967295"},
        {"{\"input\":\"a\"}", "input is not base64"},
        {"{\"input\":\"a b=\"}", "input is not base64"},
        {"{\"input\":[1]}", "input is not base64"},
        {"{\"claim\":\"1\",\"claim\":\"2\"}", "claim is there twice"},
        {"{\"tryNumber\":1,\"try_number\":1}", "try_number is there twice"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        CU_ASSERT_PTR_NULL(decode(&thole__v1__task__descriptor, rows[i].json));
        CHECK_STR(rows[i].json, error.text, rows[i].text);
        codec_release(&scratch);
    }
    CU_ASSERT_PTR_NULL(decode(&thole__v1__tasks__descriptor, "{\"tasks\":{}}"));
    CHECK_STR("list", error.text, "tasks is not a list");
    codec_release(&scratch);
    CU_ASSERT_PTR_NULL(decode(&thole__v1__tasks__descriptor, "{\"tasks\":[{} 1]}"));
    CHECK_STR("behind an item", error.text, "the message is not valid JSON");
    codec_release(&scratch);
    CU_ASSERT_PTR_NULL(decode(&thole__v1__outcome__descriptor, "{\"cancelled\":1}"));
    CHECK_STR("bool", error.text, "cancelled is not true or false");
    codec_release(&scratch);
}

/* The strict way: where the member stands that a message has not. */
static void test_what_is_not_known(void)
{
    static const struct {
        const char *json, *message, *member; /* NULL: it is read, or refused for something else */
    } rows[] = {
        {"{\"token\":\"t\",\"failure\":{\"type\":\"x\"},\"output\":null}", NULL, ""},
        {"{\"token\":\"t\",\"tokn\":\"u\"}", "CompleteActivity", "tokn"},
        {"{\"tokn\":null}", "CompleteActivity", "tokn"},
        {"{\"failure\":{\"txt\":\"\"}}", "TaskFailure", "txt"},
        {"{\"\":1}", "CompleteActivity", ""},
        {"{\"Token\":\"t\"}", "CompleteActivity", "Token"},
        {"{\"token\":1}", NULL, ""},
        {"[]", NULL, ""},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct proto_json_unknown unknown;
        ProtobufCMessage *message = NULL;
        char member[32];
        codec_init(&scratch);
        thole_status const status =
            proto_json_decode_known(&thole__v1__complete_activity__descriptor, thole_slice_from(rows[i].json),
                                    &scratch, &unknown, &message, &error);
        CU_ASSERT_EQUAL(status == THOLE_OK, i == 0);
        CU_ASSERT_EQUAL(unknown.message != NULL, rows[i].message != NULL);
        if (unknown.message != NULL && rows[i].message != NULL) {
            (void)snprintf(member, sizeof member, "%.*s", THOLE_FMT(unknown.member));
            CHECK_STR(rows[i].json, unknown.message->short_name, rows[i].message);
            CHECK_STR(rows[i].json, member, rows[i].member);
        }
        codec_release(&scratch);
    }
}

/* Lists of each kind of value that a message has, as long as they may be. */
static void test_lists(void)
{
    char *const json = malloc(200000);
    size_t len = (size_t)sprintf_of(json, "{\"worker\":\"w\",\"activities\":[");
    for (int i = 0; i < 10000; i++)
        len += (size_t)sprintf_of(json + len, "%s\"a%d\"", i == 0 ? "" : ",", i);
    (void)sprintf_of(json + len, "]}");
    const Thole__V1__OpenSession *const open =
        (const Thole__V1__OpenSession *)decode(&thole__v1__open_session__descriptor, json);
    CU_ASSERT_PTR_NOT_NULL_FATAL(open);
    CU_ASSERT_EQUAL_FATAL(open->n_activities, 10000);
    CHECK_STR("first", open->activities[0], "a0");
    CHECK_STR("last", open->activities[9999], "a9999");
    check_encoded(&open->base, json);
    codec_release(&scratch);
    (void)sprintf_of(json + len, ",\"b\"]}");
    CU_ASSERT_PTR_NULL(decode(&thole__v1__open_session__descriptor, json));
    CHECK_STR("one more", error.text, "activities has more than 10000 items");
    CU_ASSERT_EQUAL(error.status, THOLE_LIMIT);
    codec_release(&scratch);
    free(json);
    const Thole__V1__TasksRenewed *const renewed = (const Thole__V1__TasksRenewed *)decode(
        &thole__v1__tasks_renewed__descriptor,
        "{\"cancelled\":[{\"claim\":\"1\",\"graceMs\":7},{\"claim\":\"2\"}],\"gone\":[ \"8\" , \"9\" ]}");
    CU_ASSERT_PTR_NOT_NULL_FATAL(renewed);
    CU_ASSERT_TRUE(renewed->n_cancelled == 2 && renewed->n_gone == 2);
    CU_ASSERT_EQUAL(renewed->cancelled[0]->grace_ms, 7);
    CHECK_STR("second notice", renewed->cancelled[1]->claim, "2");
    CHECK_STR("second gone", renewed->gone[1], "9");
    codec_release(&scratch);
    const Thole__V1__TasksRenewed *const empty = (const Thole__V1__TasksRenewed *)decode(
        &thole__v1__tasks_renewed__descriptor, "{\"cancelled\":[],\"gone\":[\t]}");
    CU_ASSERT_PTR_NOT_NULL_FATAL(empty);
    CU_ASSERT_TRUE(empty->n_cancelled == 0 && empty->n_gone == 0);
    check_encoded(&empty->base, "{}");
    codec_release(&scratch);
}

/* Valid and invalid base64. */
static void test_bytes(void)
{
    static const struct {
        const char *json;
        const char *bytes; /* NULL: it is not read */
        size_t len;
    } rows[] = {
        {"", "", 0},           {"=", "", 0},          {"YQ", "a", 1},         {"YQ=", "a", 1},
        {"YQ==", "a", 1},      {"YWI", "ab", 2},      {"YWJj", "abc", 3},     {"+/-_", "\xfb\xff\xbf", 3},
        {"AAAA", "\0\0\0", 3}, {"YWJjZA", "abcd", 4}, {"Y", NULL, 0},         {"YWJjZ", NULL, 0},
        {"Y=Q=", NULL, 0},     {"YQ.=", NULL, 0},     {"YWJj YWJj", NULL, 0},
    };
    char json[64];
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        (void)snprintf(json, sizeof json, "{\"details\":\"%s\",\"heartbeat\":true}", rows[i].json);
        const Thole__V1__RunningTask *const task =
            (const Thole__V1__RunningTask *)decode(&thole__v1__running_task__descriptor, json);
        if ((task != NULL) != (rows[i].bytes != NULL))
            fprintf(stderr, "\n  %s: %s\n", json, error.text);
        CU_ASSERT_EQUAL(task != NULL, rows[i].bytes != NULL);
        if (task != NULL && rows[i].bytes != NULL) {
            CU_ASSERT_TRUE(task->heartbeat);
            CU_ASSERT_EQUAL(task->details.len, rows[i].len);
            CU_ASSERT_EQUAL(memcmp(task->details.data, rows[i].bytes, rows[i].len), 0);
        }
        codec_release(&scratch);
    }
}

/* Bytes around a message, and in its place. */
static void test_around(void)
{
    static const struct {
        const char *json;
        bool read;
    } rows[] = {
        {"\t\r\n {} \t\r\n", true},
        {"{ }", true},
        {"{\t\r\n}", true},
        {"{}x", false},
        {"x{}", false},
        {"{x}", false},
        {"{ \"a\" }", false},
        {"{\"a\":}", false},
        {"{\"status\":\"9\"}", true},
        {"{\"status\":\"9}", false},
        {"{\"status\":9,\"status\":8}", false},
        {"{\"status\":null,\"status\":8}", true},
        {"{\"status\":4294967295}", true},
        {"{\"status\":\"4294967296\"}", false},
        {"{\"text\":null}", true},
        {"{\"text\":nul}", false},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        bool const read = decode(&thole__v1__accepted__descriptor, rows[i].json) != NULL;
        if (read != rows[i].read)
            fprintf(stderr, "\n  [%s] is %s: %s\n", rows[i].json, read ? "read" : "not read", error.text);
        CU_ASSERT_EQUAL(read, rows[i].read);
        codec_release(&scratch);
    }
}

static void test_texts(void)
{
    Thole__V1__Tasks tasks = THOLE__V1__TASKS__INIT;
    Thole__V1__Task task = THOLE__V1__TASK__INIT;
    Thole__V1__Task *list[] = {&task};
    tasks.tasks = list;
    tasks.n_tasks = 1;
    task.claim = (char *)"\xc3\xa4";
    CU_ASSERT_EQUAL(proto_texts_check(&tasks.base, &error), THOLE_OK);
    task.claim = (char *)"\xc3";
    CU_ASSERT_EQUAL(proto_texts_check(&tasks.base, &error), THOLE_CORRUPT);
    CHECK_STR("text", error.text, "claim is not UTF-8");
    char *gone[] = {(char *)"a", (char *)"\xff"};
    Thole__V1__TasksRenewed renewed = THOLE__V1__TASKS_RENEWED__INIT;
    renewed.gone = gone;
    renewed.n_gone = 1;
    CU_ASSERT_EQUAL(proto_texts_check(&renewed.base, &error), THOLE_OK);
    renewed.n_gone = 2;
    CU_ASSERT_EQUAL(proto_texts_check(&renewed.base, &error), THOLE_CORRUPT);
    CHECK_STR("text of a list", error.text, "gone is not UTF-8");
    Thole__V1__Outcome outcome = THOLE__V1__OUTCOME__INIT;
    Thole__V1__TaskFailure failure = THOLE__V1__TASK_FAILURE__INIT;
    CU_ASSERT_EQUAL(proto_texts_check(&outcome.base, &error), THOLE_OK); /* without the message in it */
    outcome.failure = &failure;
    failure.type = (char *)"\x80";
    CU_ASSERT_EQUAL(proto_texts_check(&outcome.base, &error), THOLE_CORRUPT);
    CHECK_STR("text of a message", error.text, "type is not UTF-8");
}

/* Every shorter text, and every text with another byte in one place, is read or refused. */
static void test_broken_texts(void)
{
    static const char whole[] =
        "{\"tasks\":[{\"claim\":\"\\u00e4\",\"input\":\"YWJj\",\"execution\":\"12\"}],\"status\":3}";
    static const char bytes[] = "{}[]\",:\\\x01\xff"
                                "9u";
    char text[sizeof whole];
    size_t read = 0;
    for (size_t len = 0; len < sizeof whole - 1; len++) {
        memcpy(text, whole, sizeof whole);
        text[len] = '\0';
        CU_ASSERT_PTR_NULL(decode(&thole__v1__tasks__descriptor, text));
        codec_release(&scratch);
    }
    for (size_t place = 0; place < sizeof whole - 1; place++)
        for (size_t i = 0; i < sizeof bytes - 1; i++) {
            memcpy(text, whole, sizeof whole);
            text[place] = bytes[i];
            read += decode(&thole__v1__tasks__descriptor, text) != NULL;
            codec_release(&scratch);
        }
    CU_ASSERT_TRUE(read > 20);
}

/* At most one field of a oneof; the others are not written, nor are they read from where it is. */
static void test_oneof(void)
{
    static const char event[] = "{\"format\":1,\"instance\":\"eA==\",\"event\":{\"name\":\"Z28=\"}}";
    const Thole__V1__InboxMessage *const inbox =
        (const Thole__V1__InboxMessage *)decode(&thole__v1__inbox_message__descriptor, event);
    CU_ASSERT_PTR_NOT_NULL_FATAL(inbox);
    CU_ASSERT_EQUAL(inbox->body_case, THOLE__V1__INBOX_MESSAGE__BODY_EVENT);
    check_encoded(&inbox->base, event);
    codec_release(&scratch);
    CU_ASSERT_PTR_NULL(decode(&thole__v1__inbox_message__descriptor, "{\"cancel\":{},\"pause\":{}}"));
    CHECK_STR("two", error.text, "pause is not alone: the message has another one of its kind");
    codec_release(&scratch);
    CU_ASSERT_PTR_NOT_NULL(decode(&thole__v1__inbox_message__descriptor, "{\"cancel\":{},\"pause\":null}"));
    codec_release(&scratch);
}

/* JSON and protobuf are told apart by the first byte. */
static void test_packed(void)
{
    struct message const cancel = {.kind = MESSAGE_CANCEL,
                                   .instance = THOLE_STR("x"),
                                   .data = THOLE_STR("why"),
                                   .request_id = THOLE_STR("r")};
    thole_slice const json = THOLE_STR(
        "{\"instance\":\"eA==\",\"cancel\":{\"requestId\":\"cg==\",\"reason\":\"d2h5\"},\"format\":1}");
    struct buf packed, want;
    buf_init(&packed, 100);
    buf_init(&want, 100);
    CU_ASSERT_EQUAL(message_encode(&cancel, &want), THOLE_OK);
    CU_ASSERT_EQUAL(proto_json_pack(&thole__v1__inbox_message__descriptor, json, &packed, NULL), THOLE_OK);
    CU_ASSERT_TRUE(thole_slice_equal(buf_bytes(&packed), buf_bytes(&want)));
    CU_ASSERT_TRUE(proto_json_is(json));
    CU_ASSERT_FALSE(proto_json_is(buf_bytes(&want)));
    CU_ASSERT_FALSE(proto_json_is(THOLE_STR("")));
    CU_ASSERT_EQUAL(proto_json_pack(&thole__v1__inbox_message__descriptor, THOLE_STR("{"), &packed, NULL),
                    THOLE_CORRUPT);
    buf_release(&packed);
    buf_release(&want);
}

int main(void)
{
    static const struct thole_test tests[] = {{"there and back", test_there_and_back},
                                              {"what is read", test_what_is_read},
                                              {"what is refused", test_what_is_refused},
                                              {"what is not known", test_what_is_not_known},
                                              {"lists", test_lists},
                                              {"bytes", test_bytes},
                                              {"around", test_around},
                                              {"texts", test_texts},
                                              {"broken texts", test_broken_texts},
                                              {"oneof", test_oneof},
                                              {"packed", test_packed}};
    return thole_run_suite("proto_json", tests, ARRAY_LEN(tests));
}
