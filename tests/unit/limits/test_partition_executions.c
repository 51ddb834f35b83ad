/* When the next execution of an instance begins that continues as new. */
#include "partition_stage.h"
#include "thole/orchestration.h"
#include "thole_cunit.h"
#include <stdio.h>
#include <string.h>

enum { SPAN_MS = 60000, MAX = 3, EACH_MS = SPAN_MS / MAX };

/* For ever. */
static thole_status loops(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    (void)ret_output;
    return thole_continue_as_new(ctx, input, 0);
}

/* One event each. */
static thole_status listens(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    (void)ret_output;
    THOLE_TRY(thole_await(ctx, thole_event(ctx, THOLE_STR("item")), NULL));
    return thole_continue_as_new(ctx, input, 0);
}

static const thole_orchestration_entry entries[] = {
    {"loops", loops, 0}, {"listens", listens, 0}, {"plain", stage_calls, 0}};

static struct stage *begin(uint64_t max)
{
    struct partition_options options;
    stage_options(&options, entries, ARRAY_LEN(entries));
    options.executions_max = max;
    options.executions_span_ms = SPAN_MS;
    return stage_begin_with(&options, 100);
}

static void tell_each(struct stage *s, const char *instance, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        char text[16];
        (void)snprintf(text, sizeof text, "%u", i);
        stage_tell(s, instance, MESSAGE_EVENT, text);
    }
}

static size_t executions(const struct stage *s, const char *instance)
{
    size_t n = 0;
    for (size_t i = 0; i < s->log_len; i++)
        if (s->log[i].kind == RECORD_TURN && strcmp(s->log[i].instance, instance) == 0 &&
            s->log[i].execution > n)
            n = s->log[i].execution;
    return n;
}

/* The first one was begun by its start, and counts as none. */
static void a_loop_is_slow(void)
{
    struct stage *s = begin(MAX);
    stage_start(s, "i", "loops");
    CU_ASSERT_EQUAL(executions(s, "i"), 1 + MAX);
    stage_timer(s, s->now_ms + EACH_MS - 1);
    CU_ASSERT_EQUAL(executions(s, "i"), 1 + MAX);
    for (unsigned n = 1; n < 10; n++) {
        stage_timer(s, s->now_ms + (n == 1 ? 1 : EACH_MS));
        CU_ASSERT_EQUAL(executions(s, "i"), 1 + MAX + n);
        CU_ASSERT_TRUE(partition_deadline_ms(s->p) <= s->now_ms + EACH_MS);
    }
    CU_ASSERT_FALSE(partition_idle(s->p));
    stage_end(s);
}

/* An instance that has rested may begin as many at once again, and no more. */
static void rest_is_counted_for_a_span(void)
{
    struct stage *s = begin(MAX);
    stage_start(s, "i", "listens");
    stage_timer(s, s->now_ms + 10 * SPAN_MS);
    tell_each(s, "i", MAX);
    CU_ASSERT_EQUAL(executions(s, "i"), 1 + MAX);
    CU_ASSERT_PTR_NULL(strstr(stage_said(s), "limit"));
    stage_end(s);
}

static void another_is_not_delayed(void)
{
    struct stage *s = begin(MAX);
    stage_start(s, "i", "loops");
    (void)stage_said(s);
    stage_start(s, "j", "plain");
    stage_complete(s, "j", 2, THOLE_STR("done"));
    stage_check_said(s, "the other", "notice started j\nnotice completed j\n");
    stage_start(s, "k", "loops");
    CU_ASSERT_EQUAL(executions(s, "k"), 1 + MAX);
    stage_end(s);
}

static void it_is_said(void)
{
    struct stage *s = begin(MAX);
    stage_start(s, "i", "loops");
    CU_ASSERT_PTR_NOT_NULL(
        strstr(stage_said(s), "limit executions of 3 a minute: i of loops, execution 4\n"));
    stage_end(s);
}

/* Requests of clients to it do not wait. */
static void a_client_does_not_wait(void)
{
    struct stage *s = begin(1);
    stage_start(s, "i", "loops");
    (void)stage_said(s);
    stage_tell(s, "i", MESSAGE_TERMINATE, "enough");
    CU_ASSERT_PTR_NOT_NULL(strstr(stage_said(s), "notice terminated i\n"));
    stage_start(s, "j", "loops");
    (void)stage_said(s);
    stage_query(s, "j", "how");
    CU_ASSERT_STRING_EQUAL(stage_said(s), "");
    stage_timer(s, s->now_ms + SPAN_MS);
    CU_ASSERT_PTR_NOT_NULL(strstr(stage_said(s), "answer UNAVAILABLE: the instance continues as new again"));
    stage_start(s, "k", "loops");
    (void)stage_said(s);
    stage_message(s, &(struct message){.kind = MESSAGE_START,
                                       .instance = THOLE_STR("k"),
                                       .orchestration = THOLE_STR("plain"),
                                       .request_id = THOLE_STR("another")});
    CU_ASSERT_PTR_NOT_NULL(strstr(stage_said(s), "notice rejected k\n"));
    CU_ASSERT_EQUAL(partition_pending(s->p), 0);
    stage_end(s);
}

/* An event for each execution is no debt: after them the loop is as slow as any. */
static void what_began_early_is_no_debt(void)
{
    struct stage *s = begin(1);
    stage_start(s, "i", "loops");
    size_t const before = executions(s, "i");
    tell_each(s, "i", 20);
    CU_ASSERT_EQUAL(executions(s, "i"), before + 20);
    stage_timer(s, s->now_ms + SPAN_MS);
    CU_ASSERT_EQUAL(executions(s, "i"), before + 21);
    CU_ASSERT_EQUAL(partition_pending(s->p), 0);
    stage_end(s);
}

/* Results of an execution that has ended do not hurry it; many of them would fill the partition's room. */
static void what_others_send_hurries_it_only_when_there_is_much(void)
{
    struct stage *s = begin(1);
    stage_start(s, "i", "loops");
    size_t const before = executions(s, "i");
    for (unsigned n = 0; n < 15; n++)
        stage_complete(s, "i", 2, THOLE_STR("late"));
    CU_ASSERT_EQUAL(executions(s, "i"), before);
    CU_ASSERT_EQUAL(partition_pending(s->p), 15);
    stage_complete(s, "i", 2, THOLE_STR("late"));
    CU_ASSERT_EQUAL(executions(s, "i"), before + 1);
    CU_ASSERT_EQUAL(partition_pending(s->p), 0);
    stage_end(s);
}

static void a_new_owner_goes_on(void)
{
    struct stage *s = begin(MAX);
    stage_start(s, "i", "loops");
    size_t const before = executions(s, "i");
    stage_again(s);
    stage_tell(s, "i", MESSAGE_EVENT, "x"); /* the stage's rows are only counted: something loads it */
    CU_ASSERT_TRUE(executions(s, "i") > before);
    stage_end(s);
}

static void zero_is_no_limit(void)
{
    struct stage *s = begin(0);
    stage_start(s, "i", "listens");
    tell_each(s, "i", 100);
    CU_ASSERT_EQUAL(executions(s, "i"), 101);
    stage_end(s);
}

static const struct thole_test tests[] = {
    {"a loop is slow", a_loop_is_slow},
    {"rest is counted for a span", rest_is_counted_for_a_span},
    {"another is not delayed", another_is_not_delayed},
    {"it is said", it_is_said},
    {"a client does not wait", a_client_does_not_wait},
    {"what began early is no debt", what_began_early_is_no_debt},
    {"what others send hurries it only when there is much",
     what_others_send_hurries_it_only_when_there_is_much},
    {"a new owner goes on", a_new_owner_goes_on},
    {"zero is no limit", zero_is_no_limit},
};
THOLE_TEST_MAIN("partition executions", tests)
