/* Limits, orders and counts of the partition that nobody misses at once when they are off by one. */
#include "dropped.h"
#include "heap.h"
#include "partition_stage.h"
#include "thole/client.h"
#include "thole_cunit.h"
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- orchestrations ---- */

static thole_status first(thole_ctx *ctx, void *arg, thole_slice input, thole_slice *ret_output)
{
    (void)ctx, (void)arg, (void)input;
    *ret_output = THOLE_STR("first");
    return THOLE_OK;
}

static thole_status second(thole_ctx *ctx, void *arg, thole_slice input, thole_slice *ret_output)
{
    (void)ctx, (void)arg, (void)input;
    *ret_output = THOLE_STR("second");
    return THOLE_OK;
}

/* Waits for an activity; what that gives is its status and, when it is not "done", why it fails. */
static thole_status plain(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    thole_on_query(ctx, THOLE_STR("first"), first, NULL);
    thole_on_query(ctx, THOLE_STR("second"), second, NULL);
    THOLE_TRY(thole_await(ctx, thole_call(ctx, THOLE_STR("work"), input), ret_output));
    thole_set_status(ctx, *ret_output);
    return ret_output->len <= 4 ? THOLE_OK : thole_throw(ctx, "%.*s", THOLE_FMT(*ret_output));
}

static thole_status thrice(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    THOLE_TRY(thole_await(ctx, thole_event(ctx, THOLE_STR("item")), ret_output));
    return input.len == 2 ? THOLE_OK
                          : thole_continue_as_new(ctx, thole_format(ctx, "%.*s+", THOLE_FMT(input)), 0);
}

enum { MANY = 12000 };

/* Schedules so many activities, and ends without waiting for them. */
static thole_status many(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    (void)input, (void)ret_output;
    for (int i = 0; i < MANY; i++)
        drop_task(thole_call(ctx, THOLE_STR("work"), (thole_slice){0}));
    return THOLE_OK;
}

static const thole_orchestration_entry entries[] = {
    {"plain", plain, 0}, {"thrice", thrice, 0}, {"many", many, 0}};

static struct stage *begin(void)
{
    struct partition_options options;
    stage_options(&options, entries, ARRAY_LEN(entries));
    return stage_begin_with(&options, 2000);
}

static size_t times(const char *text, const char *what)
{
    size_t n = 0;
    for (; (text = strstr(text, what)) != NULL; text++)
        n++;
    return n;
}

/* ---- questions ---- */

/* Those that wait for one instance are answered in their order. */
static void test_questions_in_order(void)
{
    struct stage *s = begin();
    stage_start(s, "i", "plain");
    s->hold_appends = true;
    stage_complete(s, "i", 2, THOLE_STR("done"));
    (void)stage_said(s);
    stage_query(s, "i", "first");
    stage_query(s, "i", "second");
    stage_query(s, "i", "second");
    CHECK_STR("not yet", stage_said(s), "");
    stage_release(s);
    const char *answers = strstr(stage_said(s), "answer");
    CHECK_STR("then", answers == NULL ? "" : answers,
              "answer OK: first\nanswer OK: second\nanswer OK: second\n");
    stage_end(s);
}

/* A thousand of them wait, and no more; who is answered makes room. */
static void test_so_many_questions_wait(void)
{
    enum { MOST = 1000, ASKED = MOST + 3 };
    struct stage *s = begin();
    stage_start(s, "i", "plain");
    s->hold_appends = true;
    stage_complete(s, "i", 2, THOLE_STR("done"));
    (void)stage_said(s);
    for (int i = 0; i < ASKED; i++)
        stage_query(s, "i", "first");
    CU_ASSERT_EQUAL(times(stage_said(s), "answer UNAVAILABLE: too many queries are waiting\n"), ASKED - MOST);
    stage_release(s);
    CU_ASSERT_EQUAL(times(stage_said(s), "answer OK: first\n"), MOST);
    stage_start(s, "j", "plain");
    s->hold_appends = true;
    stage_complete(s, "j", 2, THOLE_STR("done"));
    (void)stage_said(s);
    for (int i = 0; i < MOST; i++)
        stage_query(s, "j", "first");
    CHECK_STR("there is room again", stage_said(s), "");
    stage_release(s);
    stage_end(s);
}

/* ---- counts ---- */

/* The count must not be too low. The row of the last scheduled activity may have been gone when they were
 * counted, its result on the way: then its end takes nothing away. */
static void test_open_activities_are_never_too_few(void)
{
    struct stage *s = begin();
    stage_start(s, "a", "plain");
    stage_again(s); /* finds no row */
    CU_ASSERT_EQUAL(partition_open_activities(s->p), 0);
    stage_query(s, "a", "first"); /* loaded */
    stage_start(s, "b", "plain");
    CU_ASSERT_EQUAL(partition_open_activities(s->p), 1);
    stage_complete(s, "a", 2, THOLE_STR("done"));
    CU_ASSERT_TRUE(partition_open_activities(s->p) >= 1);
    stage_end(s);
}

/* Rows went with the deleted instance, whatever was counted of them: they are counted again, once. */
static void test_a_deletion_has_the_rows_counted(void)
{
    struct stage *s = begin();
    stage_start(s, "i", "plain");
    stage_complete(s, "i", 2, THOLE_STR("done"));
    stage_settle(s);
    size_t const before = s->live_reads;
    stage_tell(s, "i", MESSAGE_DELETE, "gone");
    stage_settle(s);
    CU_ASSERT_EQUAL(s->live_reads, before + 1);
    CU_ASSERT_TRUE(partition_idle(s->p));
    stage_end(s);
}

/* ---- opening and closing ---- */

static void check_node(struct stage *s, const char *want)
{
    struct record opened = {.epoch = 0};
    for (size_t i = 0; i < s->log_len; i++)
        if (s->log[i].kind == RECORD_EPOCH_OPENED)
            CU_ASSERT_EQUAL(record_decode(s->log[i].bytes, &s->arena, &opened, NULL), THOLE_OK);
    CU_ASSERT_TRUE(thole_slice_equal(opened.node, thole_slice_from(want)));
}

/* The options' text is the caller's: the partition opens again for years. */
static void test_the_node_is_copied(void)
{
    struct partition_options options;
    char node[] = "node-7";
    stage_options(&options, entries, ARRAY_LEN(entries));
    options.node = thole_slice_from(node);
    struct stage *const s = stage_begin_with(&options, 10);
    check_node(s, "node-7");
    memset(node, 'x', sizeof node - 1);
    (void)partition_input(s->p, &(struct partition_in){.kind = PARTITION_IN_CLOSE}, s->now_ms);
    stage_run(s);
    stage_open(s);
    CU_ASSERT_EQUAL(partition_epoch(s->p), 2);
    check_node(s, "node-7");
    stage_end(s);
}

/* The log of the process says which epoch it was, and how much it did. */
static void test_it_says_what_it_closes(void)
{
    struct stage *s = begin();
    stage_start(s, "i", "plain");
    stage_complete(s, "i", 2, THOLE_STR("done"));
    stage_settle(s);
    uint64_t const records = partition_committed_n(s->p);
    CU_ASSERT_TRUE(records >= 2);
    (void)partition_input(s->p, &(struct partition_in){.kind = PARTITION_IN_CLOSE}, s->now_ms);
    stage_run(s);
    CHECK_STR("why", s->closed, "handed over");
    CU_ASSERT_EQUAL(s->closed_epoch, 1);
    CU_ASSERT_EQUAL(s->closed_records, records);
    CU_ASSERT_EQUAL(partition_state(s->p), PARTITION_CLOSED);
    stage_end(s);
}

/* ---- work is done once ---- */

/* The log says that the pruned records are gone: the next owner does not look for them again. */
static void test_a_prune_is_done_once(void)
{
    struct stage *s = begin();
    struct message const prune = {
        .kind = MESSAGE_PRUNE, .instance = THOLE_STR("i"), .request_id = THOLE_STR("prune"), .execution = 3};
    stage_start(s, "i", "thrice");
    stage_tell(s, "i", MESSAGE_EVENT, "one");
    stage_tell(s, "i", MESSAGE_EVENT, "two");
    stage_message(s, &prune);
    stage_settle(s);
    CU_ASSERT_EQUAL(s->removals, 1);
    CU_ASSERT_TRUE(partition_idle(s->p));
    for (int again = 0; again < 2; again++) {
        s->projected = again == 0 ? s->applied : (struct projected){0};
        stage_again(s);
        stage_settle(s);
        CU_ASSERT_EQUAL(s->removals, 1);
    }
    stage_end(s);
}

/* Of what is kept while the log is read again, that which is over is thrown away now and then, all of it; now
 * and then, as the others are copied: it takes about as long as it took to make it. */
static void test_a_redo_of_many_that_are_over(void)
{
    enum { NOISE = 256 * 1024, TIMES = 20 }; /* a tenth of what is thrown away */
    struct stage *s = begin();
    stage_start(s, "i", "plain");
    clock_t const begun = clock();
    stage_start(s, "m", "many");
    clock_t const made = clock();
    s->works = s->activities = 0;
    stage_again(s); /* nothing is known to be projected */
    CU_ASSERT(clock() - made <= TIMES * (made - begun));
    CU_ASSERT_EQUAL(s->works, 1);
    CU_ASSERT_EQUAL(s->activities, 1);
    size_t const used = heap_used(), kept = s->arena.held; /* the stage keeps all that it says */
    stage_again(s);
    CU_ASSERT(heap_used() < used + (s->arena.held - kept) + NOISE);
    stage_end(s);
}

/* Messages that a user has removed leave a gap. Together with the known ones after it the gap raises the
 * position, which is written down although nothing was taken in. */
static void test_a_gap_moves_the_position(void)
{
    struct stage *s = begin();
    struct message const more = {.kind = MESSAGE_EVENT,
                                 .instance = THOLE_STR("i"),
                                 .event_name = THOLE_STR("item"),
                                 .request_id = THOLE_STR("more")};
    stage_start(s, "i", "plain");
    s->hold_rejected = true;
    stage_bytes(s, THOLE_STR("i"), THOLE_STR("garbage"), REJECT_NONE);
    stage_bytes(s, THOLE_STR("i"), THOLE_STR("garbage"), REJECT_NONE);
    stage_message(s, &more);
    uint64_t const last = s->inbox;
    stage_again(s); /* the position has the last one, and not the two before it */
    s->inbox = last - 1;
    stage_message(s, &more); /* which are gone now */
    CU_ASSERT_NOT_EQUAL(s->log[s->log_len - 1].kind, RECORD_POSITION);
    stage_settle(s);
    CU_ASSERT_EQUAL(s->log[s->log_len - 1].kind, RECORD_POSITION);
    CU_ASSERT_TRUE(partition_idle(s->p));
    stage_end(s);
}

/* ---- texts ---- */

static bool ends_in_a_character(const char *text)
{
    size_t const len = strlen(text);
    size_t at = len;
    while (at > 0 && ((unsigned char)text[at - 1] & 0xC0) == 0x80)
        at--;
    return at == len ? len == 0 || (unsigned char)text[len - 1] < 0x80
                     : len - at == 1; /* all here have two bytes */
}

static void test_texts_are_cut_between_characters(void)
{
    enum { CHARACTERS = 600, MOST = 1024 };
    char text[2 * CHARACTERS + 2];
    for (int odd = 0; odd < 2; odd++) {
        struct stage *s = begin();
        size_t len = 0;
        if (odd)
            text[len++] = 'x';
        for (int i = 0; i < CHARACTERS; i++, len += 2)
            memcpy(&text[len], "\xc3\xa9", 2);
        stage_start(s, "i", "plain");
        stage_complete(s, "i", 2, (thole_slice){(const uint8_t *)text, len});
        CU_ASSERT_EQUAL(strlen(s->detail), odd ? MOST - 1 : MOST);
        CU_ASSERT_EQUAL(strlen(s->custom_status), odd ? MOST - 1 : MOST);
        CU_ASSERT_TRUE(ends_in_a_character(s->detail));
        CU_ASSERT_TRUE(ends_in_a_character(s->custom_status));
        stage_end(s);
    }
}

static const struct thole_test tests[] = {
    {"questions in order", test_questions_in_order},
    {"so many questions wait", test_so_many_questions_wait},
    {"open activities are never too few", test_open_activities_are_never_too_few},
    {"a deletion has the rows counted", test_a_deletion_has_the_rows_counted},
    {"the node is copied", test_the_node_is_copied},
    {"it says what it closes", test_it_says_what_it_closes},
    {"a prune is done once", test_a_prune_is_done_once},
    {"a redo of many that are over", test_a_redo_of_many_that_are_over},
    {"a gap moves the position", test_a_gap_moves_the_position},
    {"texts are cut between characters", test_texts_are_cut_between_characters},
};
THOLE_TEST_MAIN("partition edges", tests)
