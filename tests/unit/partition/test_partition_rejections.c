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

static const thole_orchestration_entry entries[] = {{"waits", waits, .version = 1},
                                                    {"calls", stage_calls, .version = 1}};

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
    {"no list", RAW("\x08\x01\x7a\x00"), REJECT_MALFORMED,
     "rejected malformed thole.ns.in.0.event.item.%zz: it is no list of results, has too many, or one "
     "without a valid instance\n"},
    {"newer list", RAW("\x08\x02\x7a\x00"), REJECT_UNSUPPORTED,
     "rejected unsupported thole.ns.in.0.event.item.%zz: it is a list of results in a newer format\n"},
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
    stage_again(s); /* crashed before the answer */
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
    CU_ASSERT_EQUAL(out.token, 1 << 8); /* part 0 of message 1 */
    CU_ASSERT_EQUAL(out.reject.sequence, 1);
    CU_ASSERT_EQUAL(out.reject.stored_ns, 77);
    CU_ASSERT_EQUAL(out.reject.message_bytes, sizeof bytes);
    CU_ASSERT_TRUE(thole_slice_equal(out.reject.bytes, (thole_slice){bytes, REJECTED_PAYLOAD_MAX}));
    stage_end(s);
}

/* ---- several results in one message ---- */

/* Results that two instances wait for. */
static struct stage *begin_with_two(struct message results[2])
{
    static const char *const ids[] = {"i", "j"};
    struct stage *const s = begin();
    for (size_t i = 0; i < ARRAY_LEN(ids); i++) {
        stage_start(s, ids[i], "calls");
        results[i] = (struct message){.kind = MESSAGE_ACTIVITY_RESULT,
                                      .instance = thole_slice_from(ids[i]),
                                      .execution = 1,
                                      .task = 2,
                                      .try_number = 1,
                                      .source.place.attempt = 1};
    }
    stage_timer(s, s->now_ms + 10000);
    CU_ASSERT_EQUAL(floor_of(s), 2);
    (void)stage_said(s);
    return s;
}

/* How often its result is recorded. */
static size_t results_of(struct stage *s, const char *id)
{
    size_t n = 0;
    for (const char *at = stage_history(s, id); (at = strstr(at, "ActivityCompleted #2")) != NULL; at++)
        n++;
    return n;
}

/* The message is incorporated with the turn of the last one: whoever opens the log before reads it again. */
static void test_two_results_in_one_message(void)
{
    struct message results[2];
    struct stage *s = begin_with_two(results);
    size_t const before = s->log_len;
    stage_results(s, results, ARRAY_LEN(results));
    CU_ASSERT_EQUAL_FATAL(s->log_len, before + 2);
    CHECK_STR("the first turn", s->log[before].instance, "i");
    CHECK_STR("the last turn", s->log[before + 1].instance, "j");
    CU_ASSERT_EQUAL(floor_of(s), 3);
    s->log_len--;
    CU_ASSERT_EQUAL(floor_of(s), 2);
    stage_again(s); /* the last turn was not stored: both results come once more */
    s->inbox--;
    CU_ASSERT(results_of(s, "i") == 1 && results_of(s, "j") == 0);
    stage_results(s, results, ARRAY_LEN(results));
    CU_ASSERT(results_of(s, "i") == 1 && results_of(s, "j") == 1);
    stage_timer(s, s->now_ms + 10000);
    CU_ASSERT_EQUAL(floor_of(s), 3);
    CU_ASSERT_TRUE(partition_idle(s->p));
    stage_end(s);
}

/* The refused part is rejected alone, and its message is incorporated when that is stored. */
static void test_one_of_two_results_is_refused(void)
{
    static const char said[] =
        "rejected nonce j: the result is not from a worker that was given the activity, nor with its token: "
        "its nonce is another one (part 1)\n";
    struct message results[2];
    struct stage *s = begin_with_two(results);
    results[1].nonce = THOLE_STR("00000000000000000000000000000000");
    s->hold_rejected = true;
    stage_results(s, results, ARRAY_LEN(results));
    CU_ASSERT_PTR_NOT_NULL(strstr(stage_said(s), said));
    stage_timer(s, s->now_ms + 10000);
    CU_ASSERT(results_of(s, "i") == 1 && results_of(s, "j") == 0);
    CU_ASSERT_EQUAL(floor_of(s), 2);
    CU_ASSERT_FALSE(partition_idle(s->p));
    stage_again(s); /* crashed before the answer */
    (void)stage_said(s);
    s->inbox--;
    stage_results(s, results, ARRAY_LEN(results));
    stage_check_said(s, "once more", said);
    stage_timer(s, s->now_ms + 10000);
    CU_ASSERT(results_of(s, "i") == 1 && floor_of(s) == 2);
    stage_release(s);
    stage_timer(s, s->now_ms + 10000);
    CU_ASSERT_EQUAL(floor_of(s), 3);
    CU_ASSERT_TRUE(partition_idle(s->p));
    stage_end(s);
}

/* All are: each is given away, and the message counts when all are kept. */
static void test_all_results_are_refused(void)
{
    struct message results[3];
    struct stage *s = begin_with_two(results);
    results[2] = results[0];
    for (size_t i = 0; i < ARRAY_LEN(results); i++)
        results[i].nonce = THOLE_STR("00000000000000000000000000000000");
    s->hold_rejected = true;
    stage_results(s, results, ARRAY_LEN(results));
    const char *const said = stage_said(s);
    CU_ASSERT_PTR_NOT_NULL(strstr(said, "rejected nonce i: "));
    CU_ASSERT_PTR_NOT_NULL(strstr(said, "(part 1)\nrejected nonce i: "));
    CU_ASSERT_PTR_NOT_NULL(strstr(said, "(part 2)\n"));
    CU_ASSERT_EQUAL_FATAL(s->held_len, 3);
    for (size_t i = 0; i < 2; i++)
        (void)partition_input(s->p, &s->held[i], s->now_ms);
    stage_timer(s, s->now_ms + 10000);
    CU_ASSERT_EQUAL(floor_of(s), 2);
    s->held[0] = s->held[2];
    s->held_len = 1;
    stage_release(s);
    stage_timer(s, s->now_ms + 10000);
    CU_ASSERT_EQUAL(floor_of(s), 3);
    CU_ASSERT_TRUE(partition_idle(s->p));
    stage_end(s);
}

/* The answer for one of them comes twice: the other is still waited for, and not lost in a crash. */
static void test_an_answer_that_comes_twice_is_one_parts(void)
{
    struct message results[2];
    struct stage *s = begin_with_two(results);
    stage_again(s); /* neither is in memory */
    results[0].nonce = THOLE_STR("00000000000000000000000000000000");
    s->hold_loads = s->answers_twice = true;
    stage_results(s, results, ARRAY_LEN(results));
    CU_ASSERT_PTR_NOT_NULL(strstr(stage_said(s), "rejected nonce i: "));
    stage_timer(s, s->now_ms + 10000);
    CU_ASSERT_EQUAL(floor_of(s), 2);
    stage_release(s);
    stage_timer(s, s->now_ms + 10000);
    CU_ASSERT(results_of(s, "i") == 0 && results_of(s, "j") == 1);
    CU_ASSERT_EQUAL(floor_of(s), 3);
    stage_end(s);
}

static const struct thole_test tests[] = {
    {"each_reason_has_its_code", test_each_reason_has_its_code},
    {"limits_of_what_is_taken", test_limits_of_what_is_taken},
    {"counts_when_it_is_kept", test_counts_when_it_is_kept},
    {"the_payload_is_cut", test_the_payload_is_cut},
    {"two_results_in_one_message", test_two_results_in_one_message},
    {"one_of_two_results_is_refused", test_one_of_two_results_is_refused},
    {"all_results_are_refused", test_all_results_are_refused},
    {"an_answer_that_comes_twice_is_one_parts", test_an_answer_that_comes_twice_is_one_parts},
};
THOLE_TEST_MAIN("partition rejections", tests)
