/* Recorded histories executed again, of many instances at once, within little memory. */
#include "coro.h"
#include "play.h"
#include "replayer.h"
#include <string.h>

/* ---- the program ---- */

static thole_status order(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    THOLE_TRY(thole_await(ctx, thole_call(ctx, THOLE_STR("charge"), input), ret_output));
    return thole_await(ctx, thole_call(ctx, THOLE_STR("ship"), *ret_output), ret_output);
}

/* A version that charges less. */
static thole_status order_2(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    return thole_await(ctx, thole_call(ctx, THOLE_STR("ship"), input), ret_output);
}

static const thole_orchestration_entry entries[] = {{"order", order, 0}, {"order", order_2, 2}};
static const thole_program program = {
    .size = sizeof program, .name = "test", .orchestrations = entries, .orchestrations_len = 2};

/* ---- stacks ---- */

static bool without_stacks; /* the system has no mapping left */

struct coro *__real_coro_create_sized(struct stack_pool *pool, size_t stack_bytes, void (*entry)(void *arg),
                                      void *arg);
struct coro *__wrap_coro_create_sized(struct stack_pool *pool, size_t stack_bytes, void (*entry)(void *arg),
                                      void *arg)
{
    return without_stacks ? NULL : __real_coro_create_sized(pool, stack_bytes, entry, arg);
}

/* ---- records ---- */

#define OPEN "#1 Started order@1(in) | #2 ActivityScheduled charge(in)"
#define CHARGED " / #3 ActivityCompleted #2 (ok) | #4 ActivityScheduled ship(ok)"
#define SHIPPED " / #5 ActivityCompleted #4 (done) | #6 Completed (done)"

struct reports {
    char text[2048];
    size_t len, stop_after;
    const char *gone; /* deleted meanwhile */
};

static bool on_report(void *arg, const struct replay_report *report)
{
    struct reports *reports = arg;
    size_t const at = strlen(reports->text);
    (void)snprintf(reports->text + at, sizeof reports->text - at, "%.*s/%llu turn %llu %s: %s%s\n",
                   THOLE_FMT(report->instance), (unsigned long long)report->execution,
                   (unsigned long long)report->turn, thole_status_name(report->status), report->text,
                   report->call_site == NULL ? "" : " (site)");
    return ++reports->len != reports->stop_after;
}

/* On the code's own stack: how far it had come. */
static void on_reached(void *arg, const struct replay_report *report)
{
    struct reports *reports = arg;
    size_t const at = strlen(reports->text);
    (void)snprintf(reports->text + at, sizeof reports->text - at, "reached %llu turn %llu%s\n",
                   (unsigned long long)report->execution, (unsigned long long)report->turn,
                   report->call_site == NULL ? "" : " (site)");
}

static bool is_gone(void *arg, thole_slice instance)
{
    const struct reports *reports = arg;
    return reports->gone != NULL && thole_slice_equal(instance, thole_slice_from(reports->gone));
}

static struct replayer *replayer_of(struct reports *reports, size_t memory_max)
{
    struct replay_options const options = {.program = &program,
                                           .memory_max = memory_max,
                                           .stacks_max = 1000,
                                           .instance_memory_max = 1024 * 1024,
                                           .payload_max = 1024,
                                           .report = on_report,
                                           .gone = is_gone,
                                           .arg = reports};
    struct replayer *replayer = NULL;
    replayer = replayer_create(&options);
    return replayer;
}

/* Gives the history's turns to the replayer, from @p first on, at most @p n. */
static thole_status give(struct replayer *replayer, const char *instance, uint64_t execution,
                         const char *history, size_t first, size_t n)
{
    struct play_turns turns;
    thole_status status = THOLE_OK;
    play_parse(history, &turns);
    for (size_t i = first; i < turns.len && n > 0 && status == THOLE_OK; i++, n--) {
        struct record record = {.kind = RECORD_TURN, .epoch = 1, .n = i + 1, .turn = turns.turns[i]};
        record.turn.instance = thole_slice_from(instance);
        record.turn.execution = execution;
        status = replayer_take(replayer, &record);
    }
    play_turns_release(&turns);
    return status;
}

static const char *counted(const struct replayer *replayer)
{
    static char text[512];
    struct replay_counts const c = replayer_counts(replayer);
    (void)snprintf(text, sizeof text,
                   "%llu instances %llu executions %llu turns %llu events %llu diverged %llu "
                   "unreadable %llu without code:%s",
                   (unsigned long long)c.instances, (unsigned long long)c.executions,
                   (unsigned long long)c.turns, (unsigned long long)c.events, (unsigned long long)c.diverged,
                   (unsigned long long)c.unreadable, (unsigned long long)c.without_code, c.unknown);
    return text;
}

enum { ALL = 100, PLENTY = 64 * 1024 * 1024 };

static void check_one(const char *row, const char *history, const char *want_counts, const char *want_reports)
{
    struct reports reports = {.len = 0};
    struct replayer *replayer = replayer_of(&reports, PLENTY);
    CU_ASSERT_EQUAL(give(replayer, "i", 1, history, 0, ALL), THOLE_OK);
    CU_ASSERT_FALSE(replayer_pass(replayer));
    CHECK_STR(row, counted(replayer), want_counts);
    CHECK_STR(row, reports.text, want_reports);
    replayer_destroy(replayer);
}

static void test_until(void)
{
    static const struct {
        uint64_t execution, event;
        const char *reports;
    } rows[] = {
        {0, 1, "reached 1 turn 1\n"},        /* received: before the code begins */
        {0, 2, "reached 1 turn 1 (site)\n"}, /* asked for */
        {1, 3, "reached 1 turn 2 (site)\n"}, /* received: the await returns */
        {1, 4, "reached 1 turn 2 (site)\n"},
        {1, 6, "reached 1 turn 3 (site)\n"}, /* the end */
        {2, 4, ""},
        {1, 7, ""},
        {1, 0, ""},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct reports reports = {.len = 0};
        struct replay_options const options = {.program = &program,
                                               .memory_max = PLENTY,
                                               .stacks_max = 1000,
                                               .instance_memory_max = 1024 * 1024,
                                               .payload_max = 1024,
                                               .report = on_report,
                                               .reached = on_reached,
                                               .until_execution = rows[i].execution,
                                               .until_event = rows[i].event,
                                               .arg = &reports};
        struct replayer *replayer = replayer_create(&options);
        CU_ASSERT_EQUAL(give(replayer, "i", 1, OPEN CHARGED SHIPPED, 0, ALL), THOLE_OK);
        CHECK_STR("until", reports.text, rows[i].reports);
        replayer_destroy(replayer);
    }
}

static void test_one(void)
{
    static const struct {
        const char *row, *history, *counts, *reports;
    } rows[] = {
        {"ended", OPEN CHARGED SHIPPED,
         "1 instances 1 executions 3 turns 6 events 0 diverged 0 unreadable 0 without code:", ""},
        {"open", OPEN CHARGED,
         "1 instances 1 executions 2 turns 4 events 0 diverged 0 unreadable 0 without code:", ""},
        {"version 2", "#1 Started order@2(in) | #2 ActivityScheduled ship(in)",
         "1 instances 1 executions 1 turns 2 events 0 diverged 0 unreadable 0 without code:", ""},
        {"the newest where none is named", "#1 Started order(in) | #2 ActivityScheduled ship(in)",
         "1 instances 1 executions 1 turns 2 events 0 diverged 0 unreadable 0 without code:", ""},
        {"chosen later", "~#1 Started order(in) / #2 VersionChosen @1 | #3 ActivityScheduled charge(in)",
         "1 instances 1 executions 2 turns 3 events 0 diverged 0 unreadable 0 without code:", ""},
        {"never ran", "~#1 Started order@1(in)",
         "0 instances 0 executions 0 turns 0 events 0 diverged 0 unreadable 0 without code:", ""},
        {"no such version", "#1 Started order@3(in) | #2 ActivityScheduled ship(in)",
         "0 instances 0 executions 0 turns 0 events 0 diverged 0 unreadable 1 without code: order,",
         "i/1 turn 1 NOT_FOUND: it runs, and test has no version 3 of orchestration order\n"},
        {"never ran, and no such orchestration", "~#1 Started refund@1(in)",
         "0 instances 0 executions 0 turns 0 events 0 diverged 0 unreadable 1 without code: refund,",
         "i/1 turn 1 NOT_FOUND: it runs, and test has no version 1 of orchestration refund\n"},
        {"no such orchestration", "#1 Started refund@1(in) | #2 Completed ()",
         "0 instances 0 executions 0 turns 0 events 0 diverged 0 unreadable 1 without code: refund,", ""},
        {"diverged", OPEN " / #3 ActivityCompleted #2 (ok) | #4 ActivityScheduled wrap(ok)" SHIPPED,
         "1 instances 1 executions 1 turns 2 events 1 diverged 0 unreadable 0 without code:",
         "i/1 turn 2 NONDETERMINISM: event 4: history has ActivityScheduled 'wrap', the code asked for "
         "ActivityScheduled 'ship' (site)\n"},
        {"a turn is missing", OPEN SHIPPED, "", ""},
    };
    for (size_t i = 0; i + 1 < ARRAY_LEN(rows); i++)
        check_one(rows[i].row, rows[i].history, rows[i].counts, rows[i].reports);
}

/* A lack of stacks is not the history's fault: the run fails, and nothing is said of the instance. */
static void test_no_stack(void)
{
    static const char late[] =
        "~#1 Started order(in) / #2 VersionChosen @1 | #3 ActivityScheduled charge(in)";
    static const char *const histories[] = {OPEN CHARGED, late};
    for (size_t i = 0; i < ARRAY_LEN(histories); i++) {
        struct reports reports = {.len = 0};
        struct replayer *replayer = replayer_of(&reports, PLENTY);
        without_stacks = true;
        CU_ASSERT_EQUAL(give(replayer, "i", 1, histories[i], 0, ALL), THOLE_NOMEM);
        without_stacks = false;
        CHECK_STR(histories[i], reports.text, "");
        replayer_destroy(replayer);
    }
}

static void test_gap(void)
{
    struct reports reports = {.len = 0};
    struct replayer *replayer = replayer_of(&reports, PLENTY);
    CU_ASSERT_EQUAL(give(replayer, "i", 1, OPEN CHARGED SHIPPED, 0, 1), THOLE_OK);
    CU_ASSERT_EQUAL(give(replayer, "i", 1, OPEN CHARGED SHIPPED, 2, 1), THOLE_OK);
    CU_ASSERT_EQUAL(give(replayer, "headless", 1, OPEN CHARGED, 1, 1), THOLE_OK); /* another pass's */
    CU_ASSERT_EQUAL(replayer_take_damage(replayer, THOLE_STR("damaged"), 1, THOLE_CORRUPT, "no record"),
                    THOLE_OK);
    CU_ASSERT_FALSE(replayer_pass(replayer));
    CHECK_STR("reports", reports.text,
              "i/1 turn 2 CORRUPT: turn 3 follows turn 1 (site)\ndamaged/1 turn 1 CORRUPT: no record\n");
    replayer_destroy(replayer);
}

/* Parts, and a turn that its next owner wrote again. */
static void test_parts(void)
{
    struct reports reports = {.len = 0};
    struct replayer *replayer = replayer_of(&reports, PLENTY);
    struct play_turns turns;
    play_parse(OPEN CHARGED SHIPPED, &turns);
    for (size_t i = 0; i < turns.len; i++) {
        struct record first = {.kind = RECORD_TURN, .epoch = 1, .n = 2 * i + 1, .turn = turns.turns[i]};
        first.turn.instance = THOLE_STR("i");
        first.turn.execution = 1;
        struct record second = first;
        first.turn.more = true;
        first.turn.events_len = 1;
        second.n++;
        second.turn.events++;
        second.turn.events_len--;
        if (i == 1) /* the writer dies; the next one begins the turn again */
            CU_ASSERT_EQUAL(replayer_take(replayer, &first), THOLE_OK);
        first.epoch = second.epoch = i == 0 ? 1 : 2;
        CU_ASSERT_EQUAL(replayer_take(replayer, &first), THOLE_OK);
        CU_ASSERT_EQUAL(replayer_take(replayer, &second), THOLE_OK);
    }
    play_turns_release(&turns);
    CU_ASSERT_FALSE(replayer_pass(replayer));
    CHECK_STR("parts", counted(replayer),
              "1 instances 1 executions 3 turns 6 events 0 diverged 0 unreadable 0 without code:");
    CHECK_STR("parts", reports.text, "");
    replayer_destroy(replayer);
}

static void test_executions(void)
{
    struct reports reports = {.len = 0};
    struct replayer *replayer = replayer_of(&reports, PLENTY);
    CU_ASSERT_EQUAL(give(replayer, "i", 0, "~#1 EventReceived paid(1)", 0, ALL), THOLE_OK);
    CU_ASSERT_EQUAL(give(replayer, "i", 1, OPEN CHARGED SHIPPED, 0, ALL), THOLE_OK);
    CU_ASSERT_EQUAL(give(replayer, "i", 2, OPEN, 0, ALL), THOLE_OK);
    CU_ASSERT_EQUAL(give(replayer, "i", 3, OPEN CHARGED, 0, ALL), THOLE_OK);
    CU_ASSERT_FALSE(replayer_pass(replayer));
    CHECK_STR("executions", counted(replayer),
              "1 instances 3 executions 6 turns 12 events 0 diverged 0 unreadable 0 without code:");
    replayer_destroy(replayer);
}

/* Records before a deletion may be missing. The next instance with the id is another one. */
static void test_deletions(void)
{
    struct event const begins[] = {{.kind = EVENT_STARTED,
                                    .id = 1,
                                    .name = THOLE_STR("order"),
                                    .data = THOLE_STR("in"),
                                    .version = 2,
                                    .before = 1},
                                   {.kind = EVENT_ACTIVITY_SCHEDULED,
                                    .id = 2,
                                    .name = THOLE_STR("ship"),
                                    .queue = THOLE_STR("default"),
                                    .data = THOLE_STR("in")}};
    struct record const next = {.kind = RECORD_TURN,
                                .epoch = 1,
                                .n = 9,
                                .turn = {.instance = THOLE_STR("ended"),
                                         .execution = 2,
                                         .number = 1,
                                         .ran = true,
                                         .events = begins,
                                         .events_len = ARRAY_LEN(begins)}};
    struct reports reports = {.len = 0};
    struct replayer *replayer = replayer_of(&reports, PLENTY);
    CU_ASSERT_EQUAL(give(replayer, "ended", 1, OPEN CHARGED SHIPPED, 0, ALL), THOLE_OK);
    replayer_take_deletion(replayer, THOLE_STR("ended"));
    CU_ASSERT_EQUAL(replayer_take(replayer, &next), THOLE_OK);
    CU_ASSERT_EQUAL(give(replayer, "its end", 1, OPEN CHARGED SHIPPED, 2, 1), THOLE_OK);
    replayer_take_deletion(replayer, THOLE_STR("its end"));
    CU_ASSERT_EQUAL(give(replayer, "its beginning", 1, OPEN CHARGED SHIPPED, 0, 1), THOLE_OK);
    replayer_take_deletion(replayer, THOLE_STR("its beginning"));
    replayer_take_deletion(replayer, THOLE_STR("nothing of it"));
    CU_ASSERT_FALSE(replayer_pass(replayer));
    CHECK_STR("deletions", counted(replayer),
              "2 instances 2 executions 4 turns 8 events 0 diverged 0 unreadable 0 without code:");
    CHECK_STR("deletions", reports.text, "");
    replayer_destroy(replayer);
}

/* A deletion during the read: a gap is nothing to report. */
static void test_deleted_meanwhile(void)
{
    struct reports reports = {.gone = "i"};
    struct replayer *replayer = replayer_of(&reports, PLENTY);
    static const char *const ids[] = {"i", "j"};
    for (size_t i = 0; i < ARRAY_LEN(ids); i++) {
        CU_ASSERT_EQUAL(give(replayer, ids[i], 1, OPEN CHARGED SHIPPED, 0, 1), THOLE_OK);
        CU_ASSERT_EQUAL(give(replayer, ids[i], 1, OPEN CHARGED SHIPPED, 2, 1), THOLE_OK);
    }
    CU_ASSERT_FALSE(replayer_pass(replayer));
    CHECK_STR("meanwhile", counted(replayer),
              "1 instances 1 executions 1 turns 2 events 0 diverged 1 unreadable 0 without code:");
    CHECK_STR("meanwhile", reports.text, "j/1 turn 2 CORRUPT: turn 3 follows turn 1 (site)\n");
    replayer_destroy(replayer);
}

static void test_stop(void)
{
    struct reports reports = {.stop_after = 2};
    struct replayer *replayer = replayer_of(&reports, PLENTY);
    static const char *const ids[] = {"a", "b", "c"};
    thole_status status = THOLE_OK;
    for (size_t i = 0; i < ARRAY_LEN(ids) && status == THOLE_OK; i++)
        status = give(replayer, ids[i], 1, "#1 Started order@1(in) | #2 Patched x", 0, ALL);
    CU_ASSERT_EQUAL(status, THOLE_CANCELLED);
    replayer_cut(replayer); /* seen histories count */
    CHECK_STR("cut", counted(replayer),
              "2 instances 2 executions 0 turns 0 events 2 diverged 0 unreadable 0 without code:");
    CU_ASSERT_FALSE(replayer_pass(replayer));
    CU_ASSERT_EQUAL(reports.len, 2);
    replayer_destroy(replayer);
}

/* Instances without room are not read any more, either. */
static void test_stop_with_more_to_read(void)
{
    enum { INSTANCES = 60, STACKS = 4, DIVERGING = 12 };
    struct reports reports = {.stop_after = 1};
    struct replayer *replayer = replayer_of(&reports, STACKS * 80 * 1024);
    thole_status status = THOLE_OK;
    for (int i = 0; i < INSTANCES && status == THOLE_OK; i++) {
        char id[32];
        (void)snprintf(id, sizeof id, "instance-%d", i);
        status = give(replayer, id, 1, OPEN, 0, ALL);
    }
    CU_ASSERT_EQUAL(status, THOLE_OK);
    do
        for (int i = 0; i < DIVERGING && status == THOLE_OK; i++) {
            char id[32];
            (void)snprintf(id, sizeof id, "diverges-%d", i);
            status = give(replayer, id, 1, "#1 Started order@1(in) | #2 Patched x", 0, ALL);
        }
    while (status == THOLE_OK && replayer_pass(replayer));
    CU_ASSERT_EQUAL(status, THOLE_CANCELLED);
    CU_ASSERT_FALSE(replayer_pass(replayer));
    CU_ASSERT_EQUAL(reports.len, 1);
    replayer_destroy(replayer);
}

/* Turn by turn through all instances, so that all of them are under way at once; the memory is for a few. */
static void test_many_in_little_memory(void)
{
    enum { INSTANCES = 400, STACKS = 20 };
    struct reports reports = {.len = 0};
    struct replayer *replayer = replayer_of(&reports, STACKS * 80 * 1024);
    size_t passes = 0;
    do {
        passes++;
        for (size_t turn = 0; turn < 3; turn++)
            for (int i = 0; i < INSTANCES; i++) {
                char id[32];
                (void)snprintf(id, sizeof id, "instance-%d", i);
                const char *history = i == 7    ? OPEN " / #3 ActivityCompleted #2 (ok) | #4 Completed (ok)"
                                      : i == 11 ? "#1 Started refund@1(in) / #2 CancelRequested (x)"
                                                : OPEN CHARGED SHIPPED;
                CU_ASSERT_EQUAL(give(replayer, id, 1, history, turn, 1), THOLE_OK);
            }
    } while (replayer_pass(replayer));
    CU_ASSERT(passes > INSTANCES / STACKS / 2 && passes <= 64);
    CHECK_STR("many", counted(replayer),
              "399 instances 399 executions 1195 turns 2390 events 1 diverged 0 unreadable 1 without code: "
              "refund,");
    CU_ASSERT_EQUAL(reports.len, 2); /* the other one runs without code */
    replayer_destroy(replayer);
}

/* So many at once that the table grows; of one that has failed, further parts of turns are passed over. */
static void test_a_crowd(void)
{
    enum { INSTANCES = 5000 };
    struct reports reports = {.len = 0};
    struct replayer *replayer = replayer_of(&reports, (size_t)4 * 1024 * 1024 * 1024);
    char id[32];
    do {
        for (int round = 0; round < 2; round++) /* the second time each is found */
            for (int i = 0; i < INSTANCES; i++) {
                (void)snprintf(id, sizeof id, "instance-%d", i);
                CU_ASSERT_EQUAL(
                    give(replayer, id, 1, "#1 Started refund@1(in) / #2 CancelRequested (x)", round, 1),
                    THOLE_OK);
            }
    } while (replayer_pass(replayer));
    CHECK_STR("all", counted(replayer),
              "0 instances 0 executions 0 turns 0 events 0 diverged 0 unreadable 5000 without code: refund,");
    replayer_destroy(replayer);
}

static void test_parts_behind_a_failure(void)
{
    struct reports reports = {.len = 0};
    struct replayer *replayer = replayer_of(&reports, PLENTY);
    struct play_turns turns;
    CU_ASSERT_EQUAL(
        give(replayer, "order", 1, OPEN " / #3 ActivityCompleted #2 (ok) | #4 Completed (ok)", 0, ALL),
        THOLE_OK);
    CU_ASSERT_EQUAL(reports.len, 1);
    play_parse(OPEN, &turns);
    struct record part = {.kind = RECORD_TURN, .epoch = 1, .n = 9, .turn = turns.turns[0]};
    part.turn.instance = THOLE_STR("order");
    part.turn.execution = 1;
    part.turn.more = true;
    CU_ASSERT_EQUAL(replayer_take(replayer, &part), THOLE_OK);
    part.turn.more = false;
    CU_ASSERT_EQUAL(replayer_take(replayer, &part), THOLE_OK);
    CU_ASSERT_FALSE(replayer_pass(replayer));
    CU_ASSERT_EQUAL(reports.len, 1);
    replayer_destroy(replayer);
    play_turns_release(&turns);
}

/* A finished instance needs no memory any more: one that has failed, one that is gone, one for which there is
 * no code. */
static void test_over_weighs_nothing(void)
{
    enum { INSTANCES = 20, STACKS = 4 };
    static const char *const histories[] = {OPEN " / #3 ActivityCompleted #2 (ok) | #4 Completed (ok)",
                                            OPEN CHARGED SHIPPED,
                                            "#1 Started refund@1(in) / #2 CancelRequested (x)"};
    for (size_t h = 0; h < ARRAY_LEN(histories); h++) {
        struct reports reports = {.len = 0};
        struct replayer *replayer = replayer_of(&reports, STACKS * 80 * 1024);
        size_t passes = 0;
        do {
            passes++;
            for (int i = 0; i < INSTANCES; i++) {
                char id[32];
                (void)snprintf(id, sizeof id, "instance-%d", i);
                CU_ASSERT_EQUAL(give(replayer, id, 1, histories[h], 0, ALL), THOLE_OK);
            }
        } while (replayer_pass(replayer));
        if (passes != 1)
            fprintf(stderr, "\n  history %zu: %zu passes\n", h, passes);
        CU_ASSERT_EQUAL(passes, 1);
        replayer_destroy(replayer);
    }
}

/* Parts of a turn that is not whole yet weigh what they hold: with room for half of them others wait for the
 * next pass. */
static void test_parts_weigh(void)
{
    enum { INSTANCES = 64, PAYLOAD = 60 * 1024 };
    static uint8_t payload[PAYLOAD];
    struct play_turns turns;
    play_parse(OPEN, &turns);
    struct event event = turns.turns[0].events[0];
    event.data = (thole_slice){payload, sizeof payload};
    struct reports reports = {.len = 0};
    struct replayer *replayer = replayer_of(&reports, INSTANCES * PAYLOAD / 2);
    for (int i = 0; i < INSTANCES; i++) {
        char id[32];
        (void)snprintf(id, sizeof id, "instance-%d", i);
        struct record part = {.kind = RECORD_TURN, .epoch = 1, .n = 1, .turn = turns.turns[0]};
        part.turn.instance = thole_slice_from(id);
        part.turn.execution = 1;
        part.turn.more = true;
        part.turn.events = &event;
        part.turn.events_len = 1;
        CU_ASSERT_EQUAL(replayer_take(replayer, &part), THOLE_OK);
    }
    CU_ASSERT_TRUE(replayer_pass(replayer));
    replayer_destroy(replayer);
    play_turns_release(&turns);
}

static void test_sums(void)
{
    struct replay_counts to = {.events = 1, .unknown = " a, b,"};
    struct replay_counts const more = {.events = 2, .diverged = 3, .unknown = " b, c,"};
    replay_counts_add(&to, &more);
    CU_ASSERT(to.events == 3 && to.diverged == 3);
    CHECK_STR("names", to.unknown, " a, b, c,");
}

static const struct thole_test tests[] = {
    {"no stack", test_no_stack},
    {"one history", test_one},
    {"until an event", test_until},
    {"gaps and damage", test_gap},
    {"parts", test_parts},
    {"executions", test_executions},
    {"stop", test_stop},
    {"stop with more to read", test_stop_with_more_to_read},
    {"many in little memory", test_many_in_little_memory},
    {"what is over weighs nothing", test_over_weighs_nothing},
    {"a crowd", test_a_crowd},
    {"parts behind a failure", test_parts_behind_a_failure},
    {"parts weigh", test_parts_weigh},
    {"sums", test_sums},
    {"deletions", test_deletions},
    {"deleted meanwhile", test_deleted_meanwhile},
};
THOLE_TEST_MAIN("replayer", tests)
