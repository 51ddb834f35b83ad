/* Whom a parent ends: its own children, and nobody who has, had or will have the same id. */
#include "dropped.h"
#include "partition_stage.h"
#include "thole_cunit.h"
#include <stdlib.h>

static thole_status plain(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    return thole_await(ctx, thole_call(ctx, THOLE_STR("work"), input), ret_output);
}

static thole_status again(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    THOLE_TRY(thole_await(ctx, thole_call(ctx, THOLE_STR("work"), input), ret_output));
    return thole_continue_as_new(ctx, input, 0);
}

/* Ends before it has heard whether the child was started. */
static thole_status hasty(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    (void)ret_output;
    for (int close = THOLE_CLOSE_CANCEL; close <= THOLE_CLOSE_TERMINATE; close++) {
        thole_child_options const options = {
            .size = sizeof options, .instance = THOLE_STR("kid"), .close = (thole_close)close};
        drop_task(thole_child(ctx, THOLE_STR("plain"), input, &options));
    }
    return THOLE_OK;
}

static const thole_orchestration_entry entries[] = {
    {"plain", plain, 0}, {"again", again, 0}, {"hasty", hasty, 0}};

static void start_kid(struct stage *s, const char *orchestration, struct origin parent)
{
    struct message const message = {.kind = MESSAGE_START,
                                    .instance = THOLE_STR("kid"),
                                    .orchestration = thole_slice_from(orchestration),
                                    .request_id = parent.instance.len > 0 ? (thole_slice){0} : THOLE_STR("r"),
                                    .parent = parent};
    stage_message(s, &message);
}

static bool kid_says(struct stage *s, const char *what)
{
    return strstr(stage_history(s, "kid"), what) != NULL;
}

static void ask(struct stage *s, enum message_kind kind, const char *request, struct origin parent)
{
    struct message const message = {.kind = kind,
                                    .instance = THOLE_STR("kid"),
                                    .data = THOLE_STR("why"),
                                    .request_id = thole_slice_from(request),
                                    .parent = parent};
    stage_message(s, &message);
}

static const struct origin mine = {{(const uint8_t *)"other", 5}, 3, 2};

static void test_who_may_ask(void)
{
    struct {
        const char *row, *request;
        struct origin by, child;
        bool heard;
    } const rows[] = {
        {"its parent", "<3.7.other", mine, mine, true},
        {"a client", "r-1", {{0}, 0, 0}, mine, true},
        {"a client, of what has no parent", "r-1", {{0}, 0, 0}, {{0}, 0, 0}, true},
        {"somebody whose child was refused", "<3.7.other", mine, {{0}, 0, 0}, false},
        {"another parent", "<3.7.third", {THOLE_STR("third"), 3, 2}, mine, false},
        {"another execution of the parent", "<4.7.other", {THOLE_STR("other"), 4, 2}, mine, false},
        {"another child of it", "<3.7.other", {THOLE_STR("other"), 3, 4}, mine, false},
        {"an older engine, in the name of its parent", "<3.7.other", {{0}, 0, 0}, mine, true},
        {"an older engine, of another execution", "<33.7.other", {{0}, 0, 0}, mine, false},
        {"an older engine, of a shorter execution", "<3", {{0}, 0, 0}, mine, false},
        {"an older engine, of another parent", "<3.7.other2", {{0}, 0, 0}, mine, false},
        {"an older engine, without an event", "<3.other", {{0}, 0, 0}, mine, false},
        {"an older engine, without a parent", "<3.7", {{0}, 0, 0}, mine, false},
        {"an older engine, of what has no parent", "<0.7.", {{0}, 0, 0}, {{0}, 0, 0}, false},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        for (int end = 0; end < 2; end++) {
            struct stage *s = stage_begin(entries, ARRAY_LEN(entries));
            start_kid(s, "plain", rows[i].child);
            ask(s, end == 0 ? MESSAGE_CANCEL : MESSAGE_TERMINATE, rows[i].request, rows[i].by);
            bool const heard = kid_says(s, end == 0 ? "CancelRequested (why)" : "TerminateRequested (why)");
            if (heard != rows[i].heard)
                printf("  [%s, %s]\n", rows[i].row, end == 0 ? "cancel" : "terminate");
            CU_ASSERT_EQUAL(heard, rows[i].heard);
            stage_settle(s); /* incorporated either way */
            CU_ASSERT_TRUE(partition_idle(s->p));
            stage_end(s);
        }
}

static void test_the_next_of_that_id(void)
{
    struct stage *s = stage_begin(entries, ARRAY_LEN(entries));
    start_kid(s, "plain", mine);
    struct message const delete_it = {.kind = MESSAGE_DELETE,
                                      .instance = THOLE_STR("kid"),
                                      .request_id = THOLE_STR("delete"),
                                      .force = true};
    stage_message(s, &delete_it);
    ask(s, MESSAGE_TERMINATE, "<3.7.other", mine); /* no such instance */
    start_kid(s, "plain", (struct origin){{0}, 0, 0});
    ask(s, MESSAGE_TERMINATE, "<3.7.other", mine);
    ask(s, MESSAGE_CANCEL, "<3.7.other", mine);
    stage_again(s);
    ask(s, MESSAGE_TERMINATE, "<3.7.other", mine);
    CU_ASSERT_TRUE(kid_says(s, "2.1 ran: #1 Started plain@1() after 1 deleted"));
    CU_ASSERT_FALSE(kid_says(s, "\n2.2"));
    stage_end(s);
}

/* A child that has continued as new, or is loaded from its history, is still the same. */
static void test_the_same_later(void)
{
    struct stage *s = stage_begin(entries, ARRAY_LEN(entries));
    start_kid(s, "again", mine);
    stage_complete(s, "kid", 2, THOLE_STR("done"));
    stage_again(s);
    ask(s, MESSAGE_TERMINATE, "<3.7.other", (struct origin){THOLE_STR("other"), 3, 4});
    CU_ASSERT_FALSE(kid_says(s, "Terminated"));
    ask(s, MESSAGE_TERMINATE, "<3.7.other", mine);
    CU_ASSERT_TRUE(kid_says(s, "Terminated (why)"));
    stage_end(s);
}

/* Whose code is missing can be ended by its parent, too, and by nobody else's. */
static void test_who_cannot_run(void)
{
    struct stage *s = stage_begin(entries, ARRAY_LEN(entries));
    start_kid(s, "nobody-knows-it", mine);
    ask(s, MESSAGE_TERMINATE, "<3.7.third", (struct origin){THOLE_STR("third"), 3, 2});
    CU_ASSERT_FALSE(kid_says(s, "Terminated"));
    ask(s, MESSAGE_TERMINATE, "<3.7.other", mine);
    CU_ASSERT_TRUE(kid_says(s, "Terminated (why)"));
    stage_end(s);
}

/* A parent's message says which of its children it means. */
static void test_what_a_parent_sends(void)
{
    struct stage *s = stage_begin(entries, ARRAY_LEN(entries));
    stage_start(s, "kid", "plain");
    (void)stage_said(s);
    stage_start(s, "p", "hasty");
    const char *const said = stage_said(s);
    CU_ASSERT_PTR_NOT_NULL(strstr(said, "send kind 5 to kid.0.0: OK  'ended' by <1.5.p to its child 1#2\n"));
    CU_ASSERT_PTR_NOT_NULL(strstr(said, "send kind 8 to kid.0.0: OK  'ended' by <1.6.p to its child 1#4\n"));
    stage_end(s);
}

static const struct thole_test tests[] = {
    {"origins: who may ask", test_who_may_ask},
    {"origins: the next of that id", test_the_next_of_that_id},
    {"origins: the same later", test_the_same_later},
    {"origins: who cannot run", test_who_cannot_run},
    {"origins: what a parent sends", test_what_a_parent_sends},
};
THOLE_TEST_MAIN("partition origins", tests)
