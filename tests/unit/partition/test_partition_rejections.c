/* Messages that the partition cannot take: each is given away with its reason, and counts when it is kept. */
#include "partition_stage.h"
#include "thole_cunit.h"
#include <stdlib.h>
#include <string.h>

enum { PAYLOAD_MAX = 1000 };

static thole_status waits(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    (void)input;
    return thole_await(ctx, thole_event(ctx, THOLE_STR("item")), ret_output);
}

static const thole_orchestration_entry entries[] = {{"waits", waits, .version = 1}};

static struct stage *begin(void)
{
    struct partition_options options;
    stage_options(&options, entries, ARRAY_LEN(entries));
    options.payload_max = PAYLOAD_MAX;
    struct stage *const s = stage_begin_with(&options, 100);
    (void)stage_said(s);
    return s;
}

/* Of the newest record. */
static uint64_t floor_of(struct stage *s)
{
    struct record record;
    CU_ASSERT_EQUAL(record_decode(s->log[s->log_len - 1].bytes, &s->arena, &record, NULL), THOLE_OK);
    return record.position.floor;
}

static const struct {
    const char *row;
    thole_slice bytes;
    enum reject_code refused;
    const char *said;
} raw[] = {
#define RAW(text)                                                                                            \
    {                                                                                                        \
        (const uint8_t *)("" text), sizeof(text) - 1                                                         \
    }
    {"garbage", RAW("\xff\xff"), REJECT_NONE, "rejected malformed i: "},
    {"empty", RAW(""), REJECT_NONE, "rejected malformed i: message is empty\n"},
    {"newer", RAW("\x08\x02\x12\x01i"), REJECT_NONE,
     "rejected unsupported i: message format 2, this engine knows 1\n"},
    {"no kind", RAW("\x08\x01\x12\x01i"), REJECT_NONE,
     "rejected unsupported i: message of an unknown kind\n"},
    {"no instance", RAW("\x08\x01"), REJECT_NONE, "rejected malformed i: instance id is empty\n"},
    {"other instance", RAW("\x08\x01\x12\x01j\x4a\x00"), REJECT_NONE,
     "rejected instance i: the subject and the message name different instances\n"},
    {"kind and name", RAW("\x08\x01\x12\x01i\x4a\x00"), REJECT_NONE,
     "rejected route i: the message is one for \"control.pause\", but its subject has another kind or "
     "name\n"},
    {"token", RAW("\x08\x01\x12\x01i\x4a\x00"), REJECT_SUBJECT,
     "rejected subject thole.ns.in.0.event.item.%zz: the subject's last token is not an instance id or, "
     "behind \"by\", an actor, percent-encoded\n"},
    {"partition", RAW("\x08\x01\x12\x01i\x4a\x00"), REJECT_PARTITION,
     "rejected partition thole.ns.in.0.event.item.%zz: the instance's CRC-32 says that another partition has "
     "it\n"},
};

static void test_each_reason_has_its_code(void)
{
    struct stage *s = begin();
    for (size_t i = 0; i < ARRAY_LEN(raw); i++) {
        stage_bytes(s, THOLE_STR("i"), raw[i].bytes, raw[i].refused);
        char const *said = stage_said(s);
        if (strncmp(said, raw[i].said, strlen(raw[i].said)) != 0)
            fprintf(stderr, "%s: said %s", raw[i].row, said);
        CU_ASSERT_EQUAL(strncmp(said, raw[i].said, strlen(raw[i].said)), 0);
    }
    stage_timer(s, s->now_ms + 10000);
    CU_ASSERT_EQUAL(floor_of(s), ARRAY_LEN(raw));
    stage_end(s);
}

static void test_limits_of_what_is_taken(void)
{
    static const uint8_t bytes[PAYLOAD_MAX + 1];
    struct stage *s = begin();
    struct message m = {.kind = MESSAGE_START,
                        .instance = THOLE_STR("i"),
                        .orchestration = THOLE_STR("waits"),
                        .data = {bytes, PAYLOAD_MAX + 1},
                        .request_id = THOLE_STR("r")};
    stage_message(s, &m);
    stage_check_said(s, "input",
                     "rejected too_large i: the input has 1001 bytes, the namespace allows 1000\n");
    m.data.len = PAYLOAD_MAX;
    m.event_name = THOLE_STR("other");
    m.event_data = (thole_slice){bytes, PAYLOAD_MAX + 1};
    stage_message(s, &m);
    stage_check_said(s, "signal",
                     "rejected too_large i: the event's data has 1001 bytes, the namespace allows 1000\n");
    CHECK_STR("nothing began", stage_history(s, "i"), "");
    m.event_data.len = PAYLOAD_MAX;
    m.request_id = THOLE_STR("\xff");
    stage_message(s, &m);
    stage_check_said(s, "request id",
                     "rejected request_id i: a request id is like an instance id: at most 200 bytes of UTF-8 "
                     "without NUL\n");
    m.request_id = THOLE_STR("<1.2.an engine's may be longer and is not looked at \xff");
    stage_message(s, &m);
    stage_check_said(s, "taken", "notice started i\n");
    stage_end(s);
}

/* Until it is kept it does not count as incorporated; another owner reads it again. What comes meanwhile goes
 * on. */
static void test_counts_when_it_is_kept(void)
{
    struct stage *s = begin();
    s->hold_rejected = true;
    stage_bytes(s, THOLE_STR("bad"), THOLE_STR("\xff"), REJECT_NONE);
    stage_start(s, "i", "waits");
    CU_ASSERT_PTR_NOT_NULL(strstr(stage_said(s), "notice started i\n"));
    stage_timer(s, s->now_ms + 10000);
    CU_ASSERT_EQUAL(floor_of(s), 0);
    CU_ASSERT_FALSE(partition_idle(s->p));
    stage_release(s);
    stage_timer(s, s->now_ms + 10000);
    CU_ASSERT_EQUAL(floor_of(s), 2);
    CU_ASSERT_TRUE(partition_idle(s->p));
    s->hold_rejected = true;
    stage_bytes(s, THOLE_STR("bad"), THOLE_STR("\xff"), REJECT_NONE);
    stage_again(s); /* it crashed before the answer */
    (void)stage_said(s);
    s->inbox--;
    stage_bytes(s, THOLE_STR("bad"), THOLE_STR("\xff"), REJECT_NONE);
    CU_ASSERT_PTR_NOT_NULL(strstr(stage_said(s), "rejected malformed bad: "));
    stage_release(s);
    stage_timer(s, s->now_ms + 10000);
    CU_ASSERT_EQUAL(floor_of(s), 3);
    stage_end(s);
}

/* Only so much of it is given away as is to be kept. */
static void test_the_payload_is_cut(void)
{
    static uint8_t bytes[3 * REJECTED_PAYLOAD_MAX];
    struct partition_options options;
    struct partition_out out;
    struct stage *s = begin();
    stage_options(&options, entries, ARRAY_LEN(entries));
    memset(bytes, 0xff, sizeof bytes);
    (void)partition_input(s->p,
                          &(struct partition_in){.kind = PARTITION_IN_MESSAGE,
                                                 .generation = partition_generation(s->p),
                                                 .message = {.sequence = ++s->inbox,
                                                             .stored_ns = 77,
                                                             .instance = THOLE_STR("i"),
                                                             .bytes = {bytes, sizeof bytes}}},
                          s->now_ms);
    CU_ASSERT_TRUE_FATAL(partition_poll(s->p, &out));
    CU_ASSERT_EQUAL(out.kind, PARTITION_OUT_REJECT);
    CU_ASSERT_EQUAL(out.token, 1);
    CU_ASSERT_EQUAL(out.reject.sequence, 1);
    CU_ASSERT_EQUAL(out.reject.stored_ns, 77);
    CU_ASSERT_EQUAL(out.reject.message_bytes, sizeof bytes);
    CU_ASSERT_TRUE(thole_slice_equal(out.reject.bytes, (thole_slice){bytes, REJECTED_PAYLOAD_MAX}));
    stage_end(s);
}

static const struct thole_test tests[] = {
    {"each_reason_has_its_code", test_each_reason_has_its_code},
    {"limits_of_what_is_taken", test_limits_of_what_is_taken},
    {"counts_when_it_is_kept", test_counts_when_it_is_kept},
    {"the_payload_is_cut", test_the_payload_is_cut},
};
THOLE_TEST_MAIN("partition rejections", tests)
