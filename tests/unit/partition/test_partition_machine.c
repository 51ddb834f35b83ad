/* The partition machine at its edges: what the simulation's worlds never offer, or only once in a while. */
#include "instances_state.h"
#include "partition_stage.h"
#include "thole_cunit.h"
#include <stdlib.h>
#include <string.h>

/* ---- orchestrations ---- */

static thole_status where(thole_ctx *ctx, void *arg, thole_slice input, thole_slice *ret_output)
{
    (void)arg, (void)input;
    *ret_output = thole_format(ctx, "execution %llu", (unsigned long long)thole_execution_id(ctx));
    return THOLE_OK;
}

/* Waits for an activity, and says so. */
static thole_status plain(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    thole_on_query(ctx, THOLE_STR("where"), where, NULL);
    thole_log(ctx, THOLE_LOG_INFO, "it begins");
    return thole_await(ctx, thole_call(ctx, THOLE_STR("work"), input), ret_output);
}

static thole_status how(thole_ctx *ctx, void *arg, thole_slice input, thole_slice *ret_output)
{
    (void)input;
    *ret_output = thole_format(ctx, "%s", (const char *)arg);
    return THOLE_OK;
}

/* Ends with what it was given, and knows it afterwards; or does not, where it was kept on its stack. */
static thole_status knows(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    enum { BYTES = 32 };
    char local[BYTES] = "waits";
    char *kept = thole_alloc(ctx, BYTES);
    if (kept == NULL)
        return THOLE_LIMIT;
    memcpy(kept, local, BYTES);
    thole_on_query(ctx, THOLE_STR("kept"), how, kept);
    thole_on_query(ctx, THOLE_STR("local"), how, local);
    THOLE_TRY(thole_await(ctx, thole_call(ctx, THOLE_STR("work"), input), ret_output));
    memcpy(kept, "knows", 6);
    memcpy(local, "knows", 6);
    return THOLE_OK;
}

enum { MANY = 25000 };

static thole_status many(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    (void)input, (void)ret_output;
    thole_task last = {0};
    for (int i = 0; i < MANY; i++)
        last = thole_call(ctx, THOLE_STR("work"), (thole_slice){0});
    return thole_await(ctx, last, NULL);
}

/* Takes more memory with every event than there is. */
static thole_status greedy(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    (void)input, (void)ret_output;
    for (size_t bytes = 1000;; bytes *= 4) {
        THOLE_TRY(thole_await(ctx, thole_event(ctx, THOLE_STR("item")), NULL));
        if (thole_alloc(ctx, bytes) == NULL)
            THOLE_TRY(thole_await(ctx, thole_event(ctx, THOLE_STR("item")), NULL));
    }
}

static thole_status mother(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    thole_child_options const options = {.size = sizeof options, .instance = THOLE_STR("kid")};
    return thole_await(ctx, thole_child(ctx, THOLE_STR("plain"), input, &options), ret_output);
}

static const thole_orchestration_entry entries[] = {{"plain", plain, 0},
                                                    {"many", many, 0},
                                                    {"greedy", greedy, 0},
                                                    {"mother", mother, 0},
                                                    {"knows", knows, 0}};

/* ---- queries and lines ---- */

static void test_queries(void)
{
    struct stage *s = stage_begin(entries, ARRAY_LEN(entries));
    stage_query(s, "i", "where");
    stage_check_said(s, "absent", "answer NOT_FOUND: there is no such instance\n");
    stage_tell(s, "i", MESSAGE_EVENT, "early");
    stage_query(s, "i", "where");
    stage_check_said(s, "not started", "answer NOT_FOUND: there is no such instance\n");
    stage_start(s, "i", "plain");
    (void)stage_said(s);
    stage_query(s, "i", "where");
    stage_check_said(s, "live", "answer OK: execution 1\n");
    stage_start(s, "stranger", "nobody-knows-it");
    (void)stage_said(s);
    stage_query(s, "stranger", "where");
    stage_check_said(
        s, "no code",
        "answer INVALID: engine stage, which owned partition 0 then, does not have orchestration "
        "'nobody-knows-it': all engines of a namespace must have the same orchestrations\n");
    stage_complete(s, "i", 3, THOLE_STR("done"));
    (void)stage_said(s);
    stage_query(s, "i", "where");
    stage_check_said(s, "ended", "answer OK: execution 1\n");
    (void)partition_input(
        s->p,
        &(struct partition_in){.kind = PARTITION_IN_STEP_DOWN, .generation = partition_generation(s->p)},
        s->now_ms);
    stage_query(s, "i", "where");
    stage_check_said(s, "closed", "answer UNAVAILABLE: the partition is not open\n");
    stage_end(s);
}

static void test_a_query_loads_what_is_cold(void)
{
    struct stage *s = stage_begin(entries, ARRAY_LEN(entries));
    stage_start(s, "i", "plain");
    stage_again(s);
    (void)stage_said(s);
    size_t const records = s->log_len;
    stage_query(s, "i", "where");
    stage_check_said(s, "cold", "answer OK: execution 1\n");
    stage_query(s, "i", "what");
    stage_check_said(s, "no such query",
                     "answer NOT_FOUND: there is no query 'what'; the instance answers: where\n");
    CU_ASSERT_EQUAL(s->log_len, records);
    stage_end(s);
}

#define ON_STACK                                                                                             \
    "answer INVALID: the execution has ended, and what query 'local' is about stood on its stack: keep it "  \
    "in memory of thole_alloc()\n"

/* The code goes through its history once more, and nothing of it stays. */
static void test_what_has_ended_is_asked(void)
{
    struct partition_options options;
    stage_options(&options, entries, ARRAY_LEN(entries));
    struct stage *const s = stage_begin_with(&options, 2);
    stage_start(s, "i", "knows");
    stage_query(s, "i", "kept");
    stage_query(s, "i", "local");
    stage_check_said(s, "lives", "notice started i\nanswer OK: waits\nanswer OK: waits\n");
    stage_complete(s, "i", 2, THOLE_STR("done"));
    (void)stage_said(s);
    size_t const records = s->log_len;
    for (int again = 0; again < 2; again++) { /* remembered; then cold */
        size_t const loads = s->loads;
        stage_query(s, "i", "kept");
        stage_check_said(s, "kept", "answer OK: knows\n");
        stage_query(s, "i", "local");
        stage_check_said(s, "local", ON_STACK);
        stage_query(s, "i", "what");
        stage_check_said(s, "none",
                         "answer NOT_FOUND: there is no query 'what'; the instance answers: local, kept\n");
        CU_ASSERT_EQUAL(stack_pool_in_use(s->stacks), 0);
        CU_ASSERT_EQUAL(s->loads, loads + 3);
        CU_ASSERT_EQUAL(s->log_len, records + (size_t)again); /* the epoch */
        if (again == 0)
            stage_again(s);
    }
    stage_start(s, "j", "knows");
    stage_start(s, "k", "knows");
    (void)stage_said(s);
    CU_ASSERT_EQUAL(stack_pool_in_use(s->stacks), 2); /* all existing ones: one of them is evicted */
    stage_query(s, "i", "kept");
    stage_check_said(s, "short of stacks", "answer OK: knows\n");
    stage_end(s);
}

/* As many as are read at a time; asked before their end is committed, and then at once. */
static void test_so_many_that_have_ended_are_asked_at_a_time(void)
{
    enum { INSTANCES = 20, AT_A_TIME = 16 };
    char id[INSTANCES][16];
    struct stage *const s = stage_begin(entries, ARRAY_LEN(entries));
    for (int i = 0; i < INSTANCES; i++) {
        (void)snprintf(id[i], sizeof id[i], "i%02d", i);
        stage_start(s, id[i], "knows");
    }
    (void)stage_said(s);
    s->hold_appends = true;
    for (int i = 0; i < INSTANCES; i++)
        stage_complete(s, id[i], 2, THOLE_STR("done"));
    for (int i = 0; i < INSTANCES; i++)
        for (int k = 0; k < 2; k++)
            stage_query(s, id[i], "kept");
    stage_check_said(s, "in flight", "");
    stage_release(s);
    size_t known = 0, refused = 0;
    for (const char *at = stage_said(s); (at = strstr(at, "answer ")) != NULL; at++) {
        known += strncmp(at, "answer OK: knows\n", 17) == 0;
        refused += strncmp(at, "answer UNAVAILABLE: too many instances that have ended are asked\n", 64) == 0;
    }
    CU_ASSERT_EQUAL(known, 2 * AT_A_TIME);
    CU_ASSERT_EQUAL(refused, 2 * (INSTANCES - AT_A_TIME));
    stage_query(s, id[INSTANCES - 1], "kept");
    stage_check_said(s, "later", "answer OK: knows\n");
    stage_end(s);
}

/* Messages for it during the read wait: a deletion, and a later question. */
static void test_what_has_ended_is_deleted_while_it_is_asked(void)
{
    struct stage *s = stage_begin(entries, ARRAY_LEN(entries));
    stage_start(s, "i", "knows");
    s->hold_appends = true;
    stage_complete(s, "i", 2, THOLE_STR("done"));
    stage_query(s, "i", "kept");
    struct message const away = {
        .kind = MESSAGE_DELETE, .instance = THOLE_STR("i"), .request_id = THOLE_STR("away")};
    stage_message(s, &away);
    stage_release(s);
    stage_settle(s);
    stage_query(s, "i", "kept");
    const char *said = stage_said(s);
    CU_ASSERT_PTR_NOT_NULL(strstr(said, "notice deleted i\n"));
    CU_ASSERT_PTR_NOT_NULL(strstr(said, "answer NOT_FOUND: there is no such instance\n"));
    CU_ASSERT_PTR_NULL(strstr(said, "UNAVAILABLE"));
    stage_end(s);
}

/* A deposed owner has continued after the epoch, two executions further: its records hide those that
 * count. */
static void test_a_rivals_records_hide_nothing(void)
{
    struct partition_options options;
    struct event const started = {
        .kind = EVENT_STARTED, .id = 1, .code = SEMANTICS_VERSION, .name = THOLE_STR("plain")};
    struct record record = {
        .kind = RECORD_TURN,
        .epoch = 1,
        .n = 9,
        .turn = {.instance = THOLE_STR("i"), .number = 1, .ran = true, .events = &started, .events_len = 1}};
    stage_options(&options, entries, ARRAY_LEN(entries));
    struct stage *const s = stage_begin_with(&options, 1000);
    stage_start(s, "i", "plain");
    stage_again(s);
    for (record.turn.execution = 2; record.turn.execution <= 3; record.turn.execution++)
        stage_forge(s, &record);
    (void)stage_said(s);
    stage_query(s, "i", "where");
    stage_check_said(s, "step down", "");
    CHECK_STR("why", s->closed, "a history holds what another owner wrote behind this epoch");
    stage_open(s);
    stage_query(s, "i", "where");
    stage_check_said(s, "voids removed", "answer OK: execution 1\n");
    stage_end(s);
}

static void test_lines_wait_for_their_turn(void)
{
    struct stage *s = stage_begin(entries, ARRAY_LEN(entries));
    s->hold_appends = true;
    stage_start(s, "i", "plain");
    stage_check_said(s, "in flight", "");
    stage_release(s);
    stage_check_said(s, "committed", "notice started i\nline i: it begins\n");
    stage_end(s);
}

/* ---- sizes ---- */

static void test_a_turn_of_many_rows(void)
{
    struct stage *s = stage_begin(entries, ARRAY_LEN(entries));
    s->hold_applied = true;
    stage_start(s, "i", "many");
    CU_ASSERT_EQUAL(s->activities, BATCH_ROWS_MAX);
    CU_ASSERT_EQUAL(s->works, 0);
    stage_release(s);
    CU_ASSERT_EQUAL(s->activities, MANY);
    CU_ASSERT_EQUAL(s->works, MANY);
    CU_ASSERT_TRUE(s->largest_batch <= BATCH_ROWS_MAX);
    CU_ASSERT_EQUAL(partition_open_activities(s->p), MANY);
    stage_end(s);
}

static void test_what_no_record_can_hold(void)
{
    struct partition_options options;
    stage_options(&options, entries, ARRAY_LEN(entries));
    options.payload_max = 1000;
    options.record_max = partition_record_min(&options);
    struct stage *const s = stage_begin_with(&options, 1000);
    thole_slice const huge = {calloc(1, s->options.record_max), s->options.record_max};
    stage_start(s, "i", "plain");
    (void)stage_said(s);
    stage_complete(s, "i", 2, huge);
    stage_check_said(s, "result", "notice failed i\n");
    CU_ASSERT_PTR_NOT_NULL(strstr(stage_history(s, "i"), "ActivityFailed #2 LIMIT"));
    stage_end(s);
    free((void *)(uintptr_t)huge.ptr);
}

/* Work that was done long ago is not queued again when the rows are made again. */
static void test_a_redo_queues_what_is_open(void)
{
    struct stage *s = stage_begin(entries, ARRAY_LEN(entries));
    for (char id[] = "a"; id[0] < 'f'; id[0]++)
        stage_start(s, id, "plain");
    for (char id[] = "a"; id[0] < 'd'; id[0]++)
        stage_complete(s, id, 2, THOLE_STR("done"));
    CU_ASSERT_EQUAL(s->works, 5);
    s->works = s->activities = 0;
    stage_again(s); /* nothing is known to be projected */
    CU_ASSERT_EQUAL(s->works, 2);
    CU_ASSERT_EQUAL(s->activities, 2);
    CU_ASSERT_EQUAL(s->loads, 5); /* when they began; nobody had to be asked whose child they were */
    stage_end(s);
}

/* Nor work whose result waits in the inbox; results of other tries and executions do not count, nor does one
 * that was read before the activity was scheduled, and changed nothing. The inbox is read once, and only when
 * an activity is open. */
static void test_a_redo_hears_of_results(void)
{
    static const struct partition_result results[] = {
        {{(const uint8_t *)"a", 1}, 1, 2, 1, .sequence = 7},
        {{(const uint8_t *)"d", 1}, 1, 2, 1, .sequence = 5},
        {{(const uint8_t *)"e", 1}, 1, 2, 1, .sequence = 0},
        {{(const uint8_t *)"b", 1}, 1, 2, 2, .sequence = 8},
        {{(const uint8_t *)"c", 1}, 2, 2, 1, .sequence = 9},
        {{(const uint8_t *)"nobody", 6}, 1, 2, 1, .sequence = 10}};
    struct stage *s = stage_begin(entries, ARRAY_LEN(entries));
    CU_ASSERT_EQUAL(s->result_looks, 0);
    for (char id[] = "a"; id[0] < 'f'; id[0]++)
        stage_start(s, id, "plain");
    s->works = s->activities = 0;
    s->results = results;
    s->results_len = ARRAY_LEN(results);
    stage_again(s);
    CU_ASSERT_EQUAL(s->works, 3);
    CU_ASSERT_EQUAL(s->activities, 3);
    CU_ASSERT_EQUAL(s->result_looks, 1);
    stage_end(s);
}

/* Messages sent to others are in the log, whatever happens to the rows. */
static void test_a_redo_sends_nothing_again(void)
{
    struct stage *s = stage_begin(entries, ARRAY_LEN(entries));
    stage_start(s, "a", "mother");
    CU_ASSERT_EQUAL(s->sends, 1);
    stage_again(s);
    CU_ASSERT_EQUAL(s->sends, 2); /* no record says that it was stored */
    stage_settle(s);
    CU_ASSERT_TRUE(partition_idle(s->p));
    stage_again(s);
    stage_start(s, "b", "mother");
    CU_ASSERT_EQUAL(s->sends, 3);
    stage_tell(s, "c", MESSAGE_EVENT, "early");
    stage_again(s);
    CU_ASSERT_EQUAL(s->sends, 3);
    CU_ASSERT_EQUAL(s->loads, 3);
    stage_end(s);
}

/* A log that lost its tail and went on, or rows that come from a backup: the sequence alone would not tell.
 */
static void test_rows_of_another_log_are_made_anew(void)
{
    struct stage *s = stage_begin(entries, ARRAY_LEN(entries));
    stage_start(s, "a", "plain");
    stage_start(s, "b", "plain");
    stage_timer(s, s->now_ms + s->options.idle_ms); /* the database is told how far it is */
    struct projected const known = s->applied;
    CU_ASSERT_EQUAL(known.mark, projected_mark(s->log[known.seq - 1].bytes));
    const struct {
        const char *name;
        struct projected projected;
        const char *expected;
    } cases[] = {{"the same", known, "0 resets, 0 rows"},
                 {"from before there were marks", {known.seq, 0}, "0 resets, 0 rows"},
                 {"another record there", {known.seq, known.mark ^ 1}, "1 resets, 2 rows"},
                 {"another sequence", {known.seq - 1, known.mark}, "1 resets, 2 rows"},
                 {"ahead of the log", {known.seq + 1000, known.mark}, "1 resets, 2 rows"}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        s->projected = cases[i].projected;
        s->resets = s->activities = 0;
        stage_again(s);
        char got[64];
        snprintf(got, sizeof got, "%zu resets, %zu rows", s->resets, s->activities);
        CHECK_STR(cases[i].name, got, cases[i].expected);
        CU_ASSERT_EQUAL(partition_state(s->p), PARTITION_OPEN);
    }
    s->projected = known;
    s->other_key = true;
    s->resets = s->activities = 0;
    stage_again(s);
    CU_ASSERT_EQUAL(s->resets, 1);
    CU_ASSERT_EQUAL(s->fault, ROWS_FAULT_OTHER_KEY);
    CU_ASSERT_EQUAL(s->activities, 2);
    s->log[known.seq - 1].deleted = true;
    s->projected = known;
    stage_again(s);
    CU_ASSERT_EQUAL(s->resets, 2);
    stage_end(s);
}

/* A log from a backup may have fewer epochs than the database has seen: none comes again. */
static void test_epochs_that_the_log_lost(void)
{
    struct stage *s = stage_begin(entries, ARRAY_LEN(entries));
    s->epoch = 700;
    stage_again(s);
    CHECK_STR("closed", s->closed, "the database has a newer epoch of the partition");
    stage_open(s);
    CU_ASSERT_EQUAL(partition_state(s->p), PARTITION_OPEN);
    CU_ASSERT_EQUAL(partition_epoch(s->p), 701);
    stage_end(s);
}

/* ---- instances whose code cannot run ---- */

static void test_a_damaged_history_is_kept_and_can_end(void)
{
    struct stage *s = stage_begin(entries, ARRAY_LEN(entries));
    stage_start(s, "i", "plain");
    stage_again(s);
    s->log[1].bytes = THOLE_STR("\xff\xff"); /* the turn */
    (void)stage_said(s);
    stage_complete(s, "i", 3, THOLE_STR("done"));
    stage_query(s, "i", "where");
    stage_check_said(s, "query", "answer INVALID: a record of the history does not decode\n");
    CHECK_STR("raw", stage_history(s, "i"), "garbage\n1.2 waits 3: #1 ActivityCompleted #3 (done)\n");
    (void)stage_said(s);
    for (int fail = 0; fail < 2; fail++) /* not recorded: nobody would be able to read it */
        stage_message(s, &(struct message){.kind = MESSAGE_RELEASE,
                                           .instance = THOLE_STR("i"),
                                           .execution = 1,
                                           .task = 3,
                                           .fail = fail});
    stage_check_said(
        s, "decisions",
        "rejected unreadable i: the instance cannot be read here, so nobody knows what is in quarantine\n"
        "rejected unreadable i: the instance cannot be read here, so nobody knows what is in quarantine\n");
    CU_ASSERT_EQUAL(s->deletions, 0);
    stage_tell(s, "i", MESSAGE_TERMINATE, "give up");
    stage_check_said(s, "terminated", "notice terminated i\n");
    CU_ASSERT_EQUAL(s->deletions, 1); /* of its timers and activities, which nobody knows */
    CU_ASSERT_EQUAL(s->removals, 0);
    stage_again(s);
    (void)stage_said(s);
    stage_tell(s, "i", MESSAGE_EVENT, "late");
    stage_query(s, "i", "where");
    stage_check_said(s, "ended",
                     "notice rejected i\n"
                     "answer INVALID: it has ended, and its history cannot be read here\n");
    CHECK_STR("nothing more", stage_history(s, "i"),
              "garbage\n1.2 waits 3: #1 ActivityCompleted #3 (done)\n"
              "1.3 ran: #2 TerminateRequested (give up); #3 Terminated (give up)\n");
    stage_end(s);
}

/* Memory that breaks, or a mistake of ours: the partition is opened again, and nobody is hurt. */
static void test_a_record_that_does_not_decode_as_it_was_written(void)
{
    struct stage *s = stage_begin(entries, ARRAY_LEN(entries));
    stage_start(s, "i", "plain");
    stage_start(s, "j", "plain");
    s->hold_appends = true;
    stage_complete(s, "i", 2, THOLE_STR("done"));
    CU_ASSERT_EQUAL_FATAL(s->held_len, 1);
    memset((void *)(uintptr_t)s->appended.ptr, 0xff, s->appended.len);
    size_t const at = s->log_len - 1;
    s->log[at].bytes = THOLE_STR("\xff\xff"); /* and so it was stored */
    stage_release(s);
    CHECK_STR("closed", s->closed, "a record does not decode as it was written");
    stage_open(s);
    (void)stage_said(s);
    CU_ASSERT_TRUE(s->log[at].deleted); /* nobody can tell that it counted: what it took in comes again */
    stage_query(s, "i", "where");
    stage_query(s, "j", "where");
    stage_check_said(s, "live", "answer OK: execution 1\nanswer OK: execution 1\n");
    stage_complete(s, "i", 2, THOLE_STR("done"));
    stage_complete(s, "j", 2, THOLE_STR("done"));
    stage_check_said(s, "ended", "notice completed i\nnotice completed j\n");
    stage_end(s);
}

/* Nothing that decodes says in which execution it is, and where nothing was started it can end all the same.
 */
static void test_damage_before_the_start(void)
{
    struct stage *s = stage_begin(entries, ARRAY_LEN(entries));
    stage_tell(s, "i", MESSAGE_EVENT, "early");
    stage_tell(s, "j", MESSAGE_EVENT, "early");
    stage_start(s, "j", "plain");
    stage_again(s);
    s->log[1].bytes = s->log[2].bytes = THOLE_STR("\xff\xff"); /* the early events */
    (void)stage_said(s);
    stage_tell(s, "i", MESSAGE_EVENT, "another");
    stage_tell(s, "i", MESSAGE_TERMINATE, "give up");
    stage_check_said(s, "terminated", "notice terminated i\n");
    CHECK_STR("ended", stage_history(s, "i"),
              "garbage\n1.1 waits 3: #1 EventReceived item(another)\n"
              "1.2 ran: #2 TerminateRequested (give up); #3 Terminated (give up)\n");
    stage_complete(s, "j", 3, THOLE_STR("done")); /* has them, in its first turn */
    stage_check_said(s, "goes on", "notice completed j\n");
    stage_end(s);
}

/* A record whose writer knew it to be stored is not void because it does not decode any more. */
static void test_damage_in_the_tail(void)
{
    struct stage *s = stage_begin(entries, ARRAY_LEN(entries));
    stage_start(s, "i", "plain");
    stage_start(s, "j", "plain");
    stage_start(s, "k", "plain");
    s->log[1].bytes = THOLE_STR("\xff\xff"); /* i's */
    (void)stage_said(s);
    stage_again(s);
    CU_ASSERT_EQUAL(partition_state(s->p), PARTITION_OPEN);
    CU_ASSERT_FALSE(s->log[1].deleted);
    stage_complete(s, "j", 2, THOLE_STR("done"));
    stage_complete(s, "k", 2, THOLE_STR("done"));
    stage_check_said(s, "the others", "notice completed j\nnotice completed k\n");
    stage_query(s, "i", "where");
    stage_check_said(s, "itself", "answer INVALID: a record of the history does not decode\n");
    stage_end(s);
}

/* A turn that hits the limit has no effect; the messages that it was to take are recorded all the same. */
static void test_a_limit_blocks_the_code_only(void)
{
    struct partition_options options;
    stage_options(&options, entries, ARRAY_LEN(entries));
    options.instance_memory_max = 100000;
    struct stage *const s = stage_begin_with(&options, 1000);
    stage_start(s, "i", "greedy");
    for (char item[] = "a"; item[0] < 'g'; item[0]++)
        stage_tell(s, "i", MESSAGE_EVENT, item);
    const char *history = stage_history(s, "i");
    CU_ASSERT_PTR_NOT_NULL(strstr(history, "waits 5: #"));
    for (char item[] = "EventReceived item(a)"; item[19] < 'g'; item[19]++)
        CU_ASSERT_PTR_NOT_NULL(strstr(history, item));
    stage_tell(s, "i", MESSAGE_PAUSE, "hold");
    CU_ASSERT_PTR_NOT_NULL(strstr(stage_history(s, "i"), "waits 6: #"));
    s->options.instance_memory_max = 10000000;
    stage_again(s);
    (void)stage_said(s);
    stage_tell(s, "i", MESSAGE_TERMINATE, "enough");
    stage_check_said(s, "terminated", "notice terminated i\n");
    stage_end(s);
}

/* Stacks are few: who is parked goes, and the turn is made after all. */
static void test_no_stack_left(void)
{
    struct partition_options options;
    stage_options(&options, entries, ARRAY_LEN(entries));
    struct stage *const s = stage_begin_with(&options, 3);
    for (char id[] = "a"; id[0] < 'k'; id[0]++) {
        stage_start(s, id, "plain");
        CU_ASSERT_PTR_NOT_NULL(strstr(stage_history(s, id), "1.1 ran: #1 Started"));
    }
    for (char id[] = "a"; id[0] < 'k'; id[0]++) {
        stage_complete(s, id, 3, THOLE_STR("done"));
        stage_complete(s, id, 2, THOLE_STR("done"));
        CU_ASSERT_PTR_NOT_NULL(strstr(stage_history(s, id), "Completed (done)"));
    }
    stage_end(s);
}

/* ---- the inbox position ---- */

/* The start of a child under an id in use counts as taken in when its parent's answer is stored. */
static void test_a_refused_child_waits_for_its_answer(void)
{
    struct stage *s = stage_begin(entries, ARRAY_LEN(entries));
    stage_start(s, "kid", "plain");
    struct message const start = {.kind = MESSAGE_START,
                                  .instance = THOLE_STR("kid"),
                                  .orchestration = THOLE_STR("plain"),
                                  .parent = {THOLE_STR("other"), 1, 2}};
    s->hold_sent = true;
    (void)stage_said(s);
    stage_message(s, &start);
    stage_check_said(s, "refused",
                     "send kind 7 to other.1.2: CONFLICT conflict 'the instance id is in use' of kid\n");
    stage_settle(s);
    CU_ASSERT_FALSE(partition_idle(s->p));
    stage_again(s);
    s->hold_sent = false;
    s->inbox--; /* comes again */
    (void)stage_said(s);
    stage_message(s, &start);
    stage_check_said(s, "again",
                     "send kind 7 to other.1.2: CONFLICT conflict 'the instance id is in use' of kid\n");
    stage_settle(s);
    CU_ASSERT_TRUE(partition_idle(s->p));
    stage_again(s);
    s->inbox--;
    (void)stage_said(s);
    stage_message(s, &start); /* the position is saved */
    stage_check_said(s, "never again", "");
    stage_end(s);
}

static void test_the_first_missing_message_holds_the_others_back(void)
{
    struct partition_options options;
    stage_options(&options, entries, ARRAY_LEN(entries));
    options.ahead_max = 8;
    struct stage *const s = stage_begin_with(&options, 1000);
    stage_start(s, "kid", "plain");
    s->hold_sent = true;
    struct message const start = {.kind = MESSAGE_START,
                                  .instance = THOLE_STR("kid"),
                                  .orchestration = THOLE_STR("plain"),
                                  .parent = {THOLE_STR("other"), 1, 2}};
    stage_message(s, &start);
    for (size_t i = 0; i < 7; i++) {
        CU_ASSERT_EQUAL(partition_room(s->p), 7 - i);
        stage_tell(s, "absent", MESSAGE_CANCEL, "why");
    }
    CU_ASSERT_EQUAL(partition_room(s->p), 0);
    stage_release(s);
    CU_ASSERT_EQUAL(partition_room(s->p), 8);
    stage_end(s);
}

/* ---- execution 0 ---- */

static void test_early_events_wait_and_go(void)
{
    struct partition_options options;
    stage_options(&options, entries, ARRAY_LEN(entries));
    options.early_event_ms = 5000;
    struct stage *const s = stage_begin_with(&options, 1000);
    stage_tell(s, "i", MESSAGE_EVENT, "a");
    stage_tell(s, "i", MESSAGE_EVENT, "a"); /* repeats it */
    stage_timer(s, s->now_ms + 3000);
    stage_tell(s, "i", MESSAGE_EVENT, "b");
    stage_timer(s, s->now_ms + 3000); /* the first alone would be over now */
    stage_tell(s, "i", MESSAGE_CANCEL, "nobody");
    CHECK_STR("kept", stage_history(s, "i"),
              "0.1 waits 7: #1 EventReceived item(a)\n0.2 waits 7: #2 EventReceived item(b)\n");
    stage_timer(s, s->now_ms + 3000);
    stage_tell(s, "i", MESSAGE_EVENT, "c");
    stage_again(s);
    stage_start(s, "i", "plain");
    CHECK_STR("begun", stage_history(s, "i"),
              "0.1 waits 7: #1 EventReceived item(a)\n0.2 waits 7: #2 EventReceived item(b)\n"
              "0.3 waits 7: #3 Discarded (nobody started it in time)\n"
              "0.4 waits 7: #4 EventReceived item(c)\n"
              "1.1 ran: #1 Started plain@1(); #2 EventReceived item(c); #3 ActivityScheduled work()\n");
    stage_end(s);
}

static const struct thole_test tests[] = {
    {"partition: queries", test_queries},
    {"partition: a query loads what is cold", test_a_query_loads_what_is_cold},
    {"what has ended is asked", test_what_has_ended_is_asked},
    {"so many that have ended are asked at a time", test_so_many_that_have_ended_are_asked_at_a_time},
    {"what has ended is deleted while it is asked", test_what_has_ended_is_deleted_while_it_is_asked},
    {"partition: a rival's records hide nothing", test_a_rivals_records_hide_nothing},
    {"partition: lines wait for their turn", test_lines_wait_for_their_turn},
    {"partition: a turn of many rows", test_a_turn_of_many_rows},
    {"partition: what no record can hold", test_what_no_record_can_hold},
    {"partition: a redo queues what is open", test_a_redo_queues_what_is_open},
    {"a redo hears of results that wait", test_a_redo_hears_of_results},
    {"partition: a redo sends nothing again", test_a_redo_sends_nothing_again},
    {"partition: rows of another log are made anew", test_rows_of_another_log_are_made_anew},
    {"partition: epochs that the log lost", test_epochs_that_the_log_lost},
    {"partition: a damaged history is kept and can end", test_a_damaged_history_is_kept_and_can_end},
    {"a record that does not decode as it was written", test_a_record_that_does_not_decode_as_it_was_written},
    {"partition: damage before the start", test_damage_before_the_start},
    {"partition: damage in the tail", test_damage_in_the_tail},
    {"partition: a limit blocks the code only", test_a_limit_blocks_the_code_only},
    {"partition: no stack left", test_no_stack_left},
    {"partition: a refused child waits for its answer", test_a_refused_child_waits_for_its_answer},
    {"partition: the first missing message holds back", test_the_first_missing_message_holds_the_others_back},
    {"partition: early events wait and go", test_early_events_wait_and_go},
};
THOLE_TEST_MAIN("partition machine", tests)
