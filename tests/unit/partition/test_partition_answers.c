/* Answers to clients about starts under an id in use: true ones, and not before they are true. */
#include "engine_answers.h"
#include "partition_stage.h"
#include "thole_cunit.h"
#include <stdlib.h>

static thole_status takes(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    (void)input;
    THOLE_TRY(thole_await(ctx, thole_event(ctx, THOLE_STR("item")), ret_output));
    return thole_await(ctx, thole_event(ctx, THOLE_STR("last")), ret_output);
}

static thole_status deaf(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    return thole_await(ctx, thole_call(ctx, THOLE_STR("work"), input), ret_output);
}

static const thole_orchestration_entry entries[] = {{"takes", takes, 0}, {"deaf", deaf, 0}};

static void start_with(struct stage *s, const char *orchestration, const char *event, const char *request)
{
    struct message const message = {.kind = MESSAGE_START,
                                    .instance = THOLE_STR("i"),
                                    .orchestration = thole_slice_from(orchestration),
                                    .request_id = thole_slice_from(request),
                                    .event_name = thole_slice_from(event)};
    stage_message(s, &message);
}

static struct stage *begin(const char *orchestration)
{
    struct stage *s = stage_begin(entries, ARRAY_LEN(entries));
    start_with(s, orchestration, "", "first");
    (void)stage_said(s);
    return s;
}

/* With so many bytes that no more are kept. */
static void fill(struct stage *s)
{
    static uint8_t const data[32768];
    char request[16];
    for (size_t i = 0; i <= EVENTS_KEPT_BYTES_MAX / sizeof data; i++) {
        (void)snprintf(request, sizeof request, "e-%zu", i);
        struct message const message = {.kind = MESSAGE_EVENT,
                                        .instance = THOLE_STR("i"),
                                        .event_name = THOLE_STR("other"),
                                        .event_data = {data, sizeof data},
                                        .request_id = thole_slice_from(request)};
        stage_message(s, &message);
    }
    (void)stage_said(s);
}

static struct stage *begin_case(enum engine_answer_case what)
{
    struct stage *s = what == ANSWER_TO_NEW    ? stage_begin(entries, ARRAY_LEN(entries))
                      : what == ANSWER_TO_FULL ? begin("deaf")
                                               : begin("takes");
    if (what == ANSWER_TO_AGAIN)
        start_with(s, "takes", "item", "r");
    if (what == ANSWER_TO_ENDED)
        stage_tell(s, "i", MESSAGE_TERMINATE, "over");
    if (what == ANSWER_TO_FULL)
        fill(s);
    (void)stage_said(s);
    return s;
}

/* The script of the client's tests says what the machine says. */
static void test_what_the_script_says(void)
{
    for (size_t i = 0; i < ANSWER_CASES; i++) {
        const struct engine_answer *want = &engine_answers[i];
        char text[64];
        struct stage *s = begin_case((enum engine_answer_case)i);
        start_with(s, i == ANSWER_TO_FULL ? "deaf" : "takes", "item", "r");
        (void)snprintf(text, sizeof text, "notice %s i%s%s%s", want->kind, want->code == NULL ? "\n" : ", ",
                       want->code == NULL ? "" : want->code, want->code == NULL ? "" : ": 256 events wait");
        const char *said = stage_said(s);
        const char *at = strstr(said, "notice");
        if (at == NULL || strncmp(at, text, strlen(text)) != 0 || strstr(at + 1, "notice") != NULL)
            printf("  [%s] got %s", want->name, said);
        CU_ASSERT_TRUE(at != NULL && strncmp(at, text, strlen(text)) == 0);
        CU_ASSERT_TRUE(at != NULL && strstr(at + 1, "notice") == NULL); /* once */
        stage_end(s);
    }
}

static void test_nothing_uncommitted_is_said(void)
{
    struct stage *s = begin("takes");
    s->hold_appends = true;
    start_with(s, "takes", "item", "r");
    stage_check_said(s, "its turn is not committed", "");
    stage_release(s);
    stage_check_said(s, "it is", "notice started i\n");
    stage_end(s);
}

/* Another owner is the next to take it: it says what it does with it. */
static void test_what_is_lost_is_not_said(void)
{
    struct stage *s = begin("takes");
    s->hold_appends = true;
    start_with(s, "takes", "item", "r");
    stage_again(s);
    stage_check_said(s, "lost", "");
    stage_end(s);
}

/* Both in one turn: the event comes too late. */
static void test_behind_what_ends_it(void)
{
    struct stage *s = begin("takes");
    stage_again(s);
    (void)stage_said(s);
    s->hold_loads = true;
    stage_tell(s, "i", MESSAGE_TERMINATE, "over");
    start_with(s, "takes", "item", "r");
    start_with(s, "takes", "last", "s");
    stage_release(s);
    stage_check_said(s, "dropped", "notice terminated i\nnotice rejected i\nnotice rejected i\n");
    CU_ASSERT_PTR_NULL(strstr(stage_history(s, "i"), "EventReceived"));
    stage_end(s);
}

/* A repetition of the start that it has ended of was taken. */
static void test_it_ended_of_this(void)
{
    struct stage *s = stage_begin(entries, ARRAY_LEN(entries));
    start_with(s, "takes", "item", "r");
    stage_tell(s, "i", MESSAGE_TERMINATE, "over");
    (void)stage_said(s);
    start_with(s, "takes", "item", "r");
    stage_check_said(s, "again", "notice started i\n");
    stage_end(s);
}

static void test_without_an_event(void)
{
    struct stage *s = begin("takes");
    start_with(s, "takes", "", "second");
    stage_check_said(s, "in use", "notice rejected i\n");
    start_with(s, "takes", "", "first");
    stage_check_said(s, "again", "notice started i\n");
    start_with(s, "takes", "item", "<1.2.p"); /* an execution, which does not wait for an answer */
    start_with(s, "takes", "last", "");       /* nor does who gives no request id */
    CU_ASSERT_PTR_NULL(strstr(stage_said(s), "notice started"));
    stage_end(s);
}

static void raise(struct stage *s, const char *name, const char *request)
{
    struct message const message = {.kind = MESSAGE_EVENT,
                                    .instance = THOLE_STR("i"),
                                    .event_name = thole_slice_from(name),
                                    .request_id = thole_slice_from(request)};
    stage_message(s, &message);
}

/* An event without a start is answered when it is refused: at once, or when the end is committed. */
static void test_an_event_alone(void)
{
    struct stage *s = begin("takes");
    s->hold_appends = true;
    stage_tell(s, "i", MESSAGE_TERMINATE, "over");
    raise(s, "item", "r");
    stage_check_said(s, "the end is not committed", "");
    stage_release(s);
    stage_check_said(s, "it is", "notice terminated i\nnotice rejected i\n");
    raise(s, "item", "s");
    stage_check_said(s, "behind it", "notice rejected i\n");
    raise(s, "item", "<1.2.p");
    stage_check_said(s, "nobody waits", "");
    stage_end(s);
}

static void test_an_event_with_the_end(void)
{
    struct stage *s = begin("takes");
    stage_again(s);
    (void)stage_said(s);
    s->hold_loads = true;
    raise(s, "item", "q");
    stage_tell(s, "i", MESSAGE_TERMINATE, "over");
    raise(s, "item", "r");
    stage_release(s);
    stage_check_said(s, "dropped", "notice terminated i\nnotice rejected i\n");
    stage_end(s);
}

static void test_an_event_too_many(void)
{
    struct stage *s = begin("deaf");
    fill(s);
    raise(s, "item", "r");
    CU_ASSERT_PTR_NOT_NULL(strstr(stage_said(s), "notice rejected i, too_many: 256 events wait"));
    stage_end(s);
}

static const struct thole_test tests[] = {
    {"answers: what the script says", test_what_the_script_says},
    {"answers: nothing uncommitted is said", test_nothing_uncommitted_is_said},
    {"answers: what is lost is not said", test_what_is_lost_is_not_said},
    {"answers: behind what ends it", test_behind_what_ends_it},
    {"answers: it ended of this", test_it_ended_of_this},
    {"answers: without an event", test_without_an_event},
    {"answers: an event alone", test_an_event_alone},
    {"answers: an event with the end", test_an_event_with_the_end},
    {"answers: an event too many", test_an_event_too_many},
};
THOLE_TEST_MAIN("partition answers", tests)
