/*
 * Nothing is left out on the way: what a message says is in its record, what happened is in the rows, and an
 * answer that comes twice counts once. Every field is shown.
 */
#include "dropped.h"
#include "history.pb-c.h"
#include "partition_stage.h"
#include "samples.h"
#include "thole/orchestration.h"
#include "thole_cunit.h"
#include <stdlib.h>
#include <string.h>

/* ---- orchestrations ---- */

static thole_status waits(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    (void)input;
    return thole_await(ctx, thole_event(ctx, THOLE_STR("go")), ret_output);
}

/* An activity that is tried twice, a timer, a child, and then an event. */
static thole_status all_kinds(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    thole_call_options const options = {.size = sizeof options,
                                        .queue = THOLE_STR("gpu"),
                                        .try_timeout_ms = 700,
                                        .retry = {.tries_max = 2, .first_delay_ms = 50}};
    thole_child_options const child = {.size = sizeof child, .instance = THOLE_STR("kid")};
    thole_set_status(ctx, THOLE_STR("half way"));
    drop_task(thole_timer(ctx, 3600 * 1000));
    drop_task(thole_child(ctx, THOLE_STR("waits"), input, &child));
    THOLE_TRY(thole_await(ctx, thole_call_with(ctx, THOLE_STR("draw"), input, &options), ret_output));
    return thole_await(ctx, thole_event(ctx, THOLE_STR("go")), NULL);
}

/* Each execution leaves an activity. */
static thole_status rounds(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    (void)ret_output;
    drop_task(thole_call(ctx, THOLE_STR("work"), input));
    THOLE_TRY(thole_await(ctx, thole_event(ctx, THOLE_STR("item")), NULL));
    return thole_continue_as_new(ctx, input, 0);
}

/* Two activities whose next tries are due at different times. */
static thole_status two_tries(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    (void)ret_output;
    for (uint64_t delay_ms = 50; delay_ms <= 5000; delay_ms *= 100) {
        thole_call_options const options = {.size = sizeof options,
                                            .retry = {.tries_max = 2, .first_delay_ms = delay_ms}};
        drop_task(thole_call_with(ctx, THOLE_STR("draw"), input, &options));
    }
    return thole_await(ctx, thole_event(ctx, THOLE_STR("item")), NULL);
}

/* Tells two others. */
static thole_status tells(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    (void)ret_output;
    thole_raise(ctx, THOLE_STR("p"), THOLE_STR("news"), input);
    thole_raise(ctx, THOLE_STR("q"), THOLE_STR("news"), input);
    return thole_await(ctx, thole_event(ctx, THOLE_STR("item")), NULL);
}

static thole_status says(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    (void)input, (void)ret_output;
    thole_on_query(ctx, THOLE_STR("how"), stage_how, NULL);
    thole_log(ctx, THOLE_LOG_INFO, "it begins");
    THOLE_TRY(thole_await(ctx, thole_event(ctx, THOLE_STR("item")), NULL));
    thole_log(ctx, THOLE_LOG_INFO, "it ends");
    return THOLE_OK;
}

static const thole_orchestration_entry entries[] = {{"says", says, 0},           {"waits", waits, 0},
                                                    {"all_kinds", all_kinds, 0}, {"rounds", rounds, 0},
                                                    {"tells", tells, 0},         {"two_tries", two_tries, 0}};

static struct stage *begin(void)
{
    return stage_begin(entries, ARRAY_LEN(entries));
}

/* ---- messages ---- */

/* The first event of the newest record. */
static void check_recorded(struct stage *s, const char *row, const char *want)
{
    struct record record;
    struct buf got;
    buf_init(&got, 10000);
    CU_ASSERT_EQUAL_FATAL(record_decode(s->log[s->log_len - 1].bytes, &s->arena, &record, NULL), THOLE_OK);
    if (record.kind == RECORD_TURN && record.turn.events_len > 0)
        show_event(&record.turn.events[0], &got);
    CHECK_STR(row, buf_cstr(&got), want);
    buf_release(&got);
}

#define REQUEST(what)                                                                                        \
    {                                                                                                        \
        .kind = (what), .instance = THOLE_STR("i"), .data = THOLE_STR("why"), .request_id = THOLE_STR("r")   \
    }

static void a_message_is_recorded_whole(void)
{
    struct message const start = {.kind = MESSAGE_START,
                                  .instance = THOLE_STR("i"),
                                  .orchestration = THOLE_STR("waits"),
                                  .data = THOLE_STR("in"),
                                  .request_id = THOLE_STR("r"),
                                  .version = 1,
                                  .parent = {THOLE_STR("p"), 5, 6}};
    struct {
        struct message message;
        const char *want;
    } const rows[] = {
        {REQUEST(MESSAGE_CANCEL), "#3 CancelRequested (why)\ndata: \"why\"\nrequest_id: \"r\"\n"},
        {REQUEST(MESSAGE_TERMINATE), "#3 TerminateRequested (why)\ndata: \"why\"\nrequest_id: \"r\"\n"},
        {REQUEST(MESSAGE_PAUSE), "#3 Paused (why)\ndata: \"why\"\nrequest_id: \"r\"\n"},
        {{.kind = MESSAGE_EVENT,
          .instance = THOLE_STR("i"),
          .event_name = THOLE_STR("other"),
          .event_data = THOLE_STR("data"),
          .request_id = THOLE_STR("r")},
         "#3 EventReceived other(data)\nname: \"other\"\ndata: \"data\"\nrequest_id: \"r\"\n"},
        {{.kind = MESSAGE_DELETE,
          .instance = THOLE_STR("i"),
          .data = THOLE_STR("why"),
          .request_id = THOLE_STR("r"),
          .force = true},
         "#3 TerminateRequested (why)\ndata: \"why\"\nrequest_id: \"r\"\n"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct stage *s = begin();
        stage_message(s, &start);
        check_recorded(s, "start",
                       "#1 Started waits@1(in) of p:5#6\ncode: 3\nversion: 1\nname: \"waits\"\ndata: \"in\"\n"
                       "request_id: \"r\"\nparent.instance: \"p\"\nparent.execution: 5\nparent.event: 6\n");
        size_t const at = s->log_len;
        stage_message(s, &rows[i].message);
        CU_ASSERT(s->log_len > at);
        size_t const last = s->log_len;
        s->log_len = at + 1;
        check_recorded(s, message_kind_text(rows[i].message.kind), rows[i].want);
        s->log_len = last;
        stage_end(s);
    }
}

static void check_deleted(struct stage *s, const char *want)
{
    struct buf got;
    struct record record;
    buf_init(&got, 10000);
    for (size_t i = 0; i < s->log_len; i++)
        if (s->log[i].kind == RECORD_DELETED) {
            CU_ASSERT_EQUAL(record_decode(s->log[i].bytes, &s->arena, &record, NULL), THOLE_OK);
            record.epoch = record.n = record.committed = record.published = 0;
            record.position = (struct position){.floor = 0};
            show_record(&record, &got);
        }
    CHECK_STR("deletion", buf_cstr(&got), want);
    buf_release(&got);
}

static void a_deletion_is_recorded_whole(void)
{
    struct stage *s = begin();
    struct message const start = {.kind = MESSAGE_START,
                                  .instance = THOLE_STR("i"),
                                  .orchestration = THOLE_STR("waits"),
                                  .request_id = THOLE_STR("r"),
                                  .parent = {THOLE_STR("p"), 5, 6}};
    struct message delete = REQUEST(MESSAGE_DELETE);
    delete.request_id = THOLE_STR("asked");
    stage_message(s, &start);
    stage_tell(s, "i", MESSAGE_TERMINATE, "over");
    stage_message(s, &delete);
    check_deleted(s, "deleted\ninstance: \"i\"\nexecution: 1\ntime_ms: 1000000\norchestration: \"waits\"\n"
                     "reason: \"why\"\nrequest_id: \"asked\"\nstarted_by: \"r\"\nparent.instance: \"p\"\n"
                     "parent.execution: 5\nparent.event: 6\n");
    stage_end(s);
}

/* ---- rows ---- */

static const char *shown(thole_slice text)
{
    static char room[8][64];
    static size_t at;
    char *to = room[at++ % 8];
    (void)snprintf(to, sizeof room[0], "%.*s", (int)(text.len < 60 ? text.len : 60), (const char *)text.ptr);
    return to;
}

static void see_activities(struct buf *to, const char *what, const struct batch_activity *rows, size_t n)
{
    for (size_t i = 0; i < n; i++)
        buf_printf(to, "%s activity %s.%llu.%llu try %u %s/%s %llu '%s'\n", what, shown(rows[i].instance),
                   (unsigned long long)rows[i].execution, (unsigned long long)rows[i].activity_id,
                   rows[i].try_number, shown(rows[i].queue), shown(rows[i].activity),
                   (unsigned long long)rows[i].try_timeout_ms, shown(rows[i].details));
}

static void see_timers(struct buf *to, const char *what, const struct batch_timer *rows, size_t n)
{
    for (size_t i = 0; i < n; i++)
        buf_printf(to, "%s timer %s.%llu.%llu %llu\n", what, shown(rows[i].instance),
                   (unsigned long long)rows[i].execution, (unsigned long long)rows[i].timer_id,
                   (unsigned long long)rows[i].due_ms);
}

static void see_quarantine(struct buf *to, const char *what, const struct batch_quarantine *rows, size_t n)
{
    for (size_t i = 0; i < n; i++)
        buf_printf(to, "%s quarantine %s.%llu.%llu %s/%s try %u lost %u %s '%s' %llu %llu\n", what,
                   shown(rows[i].instance), (unsigned long long)rows[i].execution,
                   (unsigned long long)rows[i].activity_id, shown(rows[i].queue), shown(rows[i].activity),
                   rows[i].try_number, rows[i].lost, shown(rows[i].worker), shown(rows[i].reason),
                   (unsigned long long)rows[i].since_ms, (unsigned long long)rows[i].until_ms);
}

static void see(struct stage *s, const struct batch *b)
{
    struct buf *to = &s->said;
    see_activities(to, "-", b->activities_removed, b->activities_removed_len);
    see_activities(to, "+", b->activities_added, b->activities_added_len);
    see_timers(to, "-", b->timers_removed, b->timers_removed_len);
    see_timers(to, "+", b->timers_added, b->timers_added_len);
    see_quarantine(to, "-", b->quarantine_removed, b->quarantine_removed_len);
    see_quarantine(to, "+", b->quarantine_added, b->quarantine_added_len);
    for (size_t i = 0; i < b->instances_len; i++) {
        const struct batch_instance *const r = &b->instances[i];
        buf_printf(to,
                   "%s instance %s.%llu %s@%u status %u turns %llu at %llu created %llu updated %llu '%s'",
                   r->removed ? "-" : "+", shown(r->instance), (unsigned long long)r->execution,
                   shown(r->orchestration), r->version, r->status, (unsigned long long)r->turns,
                   (unsigned long long)r->history_seq, (unsigned long long)r->created_ms,
                   (unsigned long long)r->updated_ms, shown(r->detail));
        if (r->began_ms > 0 && r->execution > 1)
            buf_printf(to, " began %llu", (unsigned long long)r->began_ms);
        if (r->custom_status_set)
            buf_printf(to, " custom '%s'", shown(r->custom_status));
        if (r->parent.len > 0)
            buf_printf(to, " of %s", shown(r->parent));
        buf_text(to, "\n");
    }
    for (size_t i = 0; i < b->deletions_len; i++)
        buf_printf(
            to, "deletion %s.%llu pruned %llu-%llu at %llu\n", shown(b->deletions[i].instance),
            (unsigned long long)b->deletions[i].execution, (unsigned long long)b->deletions[i].pruned.above,
            (unsigned long long)b->deletions[i].pruned.upto, (unsigned long long)b->deletions[i].history_seq);
}

static struct message result(uint64_t task, uint32_t try_number)
{
    return (struct message){.kind = MESSAGE_ACTIVITY_RESULT,
                            .instance = THOLE_STR("i"),
                            .execution = 1,
                            .task = task,
                            .try_number = try_number,
                            .source.place.attempt = 1};
}

static void the_rows_are_whole(void)
{
    struct stage *s = begin();
    s->see = see;
    stage_start(s, "i", "all_kinds");
    stage_check_said(
        s, "started",
        "notice started i\n+ activity i.1.5 try 1 gpu/draw 700 ''\n+ timer i.1.3 4600000\n"
        "+ instance i.1 all_kinds@1 status 1 turns 1 at 2 created 1000000 updated 1000000 '' custom "
        "'half way'\nsend kind 3 to kid.0.0: OK  ''\n");
    struct message failed = result(5, 1);
    failed.status = THOLE_APP;
    failed.data = THOLE_STR("no");
    failed.details = THOLE_STR("half");
    stage_message(s, &failed);
    stage_check_said(s, "a try has failed",
                     "- activity i.1.5 try 1 / 0 ''\n+ timer i.1.5 1000050\n"
                     "+ instance i.1 @0 status 1 turns 2 at 3 created 0 updated 1000000 ''\n");
    stage_timer(s, s->now_ms + 50);
    stage_check_said(s, "the next",
                     "+ activity i.1.5 try 2 gpu/draw 700 'half'\n- timer i.1.5 0\n"
                     "+ instance i.1 @0 status 1 turns 3 at 4 created 0 updated 1000050 ''\n");
    struct message lost = result(5, 2);
    lost.status = THOLE_APP;
    lost.lost = 5;
    lost.lost_worker = THOLE_STR("w");
    lost.queue = THOLE_STR("gpu");
    lost.data = THOLE_STR("it kills");
    stage_message(s, &lost);
    stage_check_said(s, "quarantined",
                     "- activity i.1.5 try 2 / 0 ''\n+ timer i.1.5 4600050\n"
                     "+ quarantine i.1.5 gpu/draw try 2 lost 5 w 'it kills' 1000050 4600050\n"
                     "+ instance i.1 @0 status 1 turns 4 at 5 created 0 updated 1000050 ''\n");
    stage_message(s, &(struct message){.kind = MESSAGE_RELEASE,
                                       .instance = THOLE_STR("i"),
                                       .execution = 1,
                                       .task = 5,
                                       .try_number = 2,
                                       .source = {.actor = {.name = THOLE_STR("ops")}}});
    stage_check_said(s, "released",
                     "+ activity i.1.5 try 3 gpu/draw 700 'half'\n- timer i.1.5 0\n"
                     "- quarantine i.1.5 / try 0 lost 0  '' 0 0\n"
                     "+ instance i.1 @0 status 1 turns 5 at 6 created 0 updated 1000050 ''\n");
    check_recorded(s, "by whom",
                   "#9 ActivityTryStarted #5 try 3 draw() from quarantine\nref: 5\ntry_number: 3\n"
                   "quarantined: 1\nname: \"draw\"\nqueue: \"gpu\"\ndetails: \"half\"\n"
                   "retry.try_timeout_ms: 700\nactor: \"ops\"\n");
    stage_tell(s, "i", MESSAGE_TERMINATE, "over");
    stage_check_said(s, "terminated",
                     "notice terminated i\n- activity i.1.5 try 0 / 0 ''\n- timer i.1.3 0\n"
                     "+ instance i.1 @0 status 7 turns 6 at 7 created 0 updated 1000050 'over'\n"
                     "send kind 5 to kid.0.0: OK  'over' by <1.12.i to its child 1#4\n");
    stage_tell(s, "i", MESSAGE_DELETE, "gone");
    stage_check_said(s, "deleted", "notice deleted i\ndeletion i.1 pruned 0-0 at 8\n");
    stage_end(s);
}

static void fire(struct stage *s, uint64_t execution, uint64_t task)
{
    stage_message(s, &(struct message){.kind = MESSAGE_RELEASE,
                                       .instance = THOLE_STR("i"),
                                       .execution = execution,
                                       .task = task,
                                       .timer = true,
                                       .source = {.actor = {.name = THOLE_STR("ops")}}});
}

/* A client makes a timer fire that is due in an hour, or a waiting try start: once, in its execution, and
 * nothing else. */
static void a_timer_is_fired(void)
{
    struct stage *s = begin();
    stage_start(s, "i", "all_kinds");
    struct message failed = result(5, 1);
    failed.status = THOLE_APP;
    stage_message(s, &failed); /* the next try waits */
    s->see = see;
    (void)stage_said(s);
    fire(s, 1, 4);
    fire(s, 1, 100);
    fire(s, 2, 3);
    fire(s, 2, 5);
    stage_check_said(s, "nothing that waits for a time", "");
    fire(s, 1, 3);
    stage_check_said(s, "fired",
                     "- timer i.1.3 0\n"
                     "+ instance i.1 @0 status 1 turns 3 at 4 created 0 updated 1000000 ''\n");
    check_recorded(s, "who", "#7 TimerFired #3\nref: 3\nactor: \"ops\"\n");
    fire(s, 1, 5);
    stage_check_said(s, "the next try",
                     "+ activity i.1.5 try 2 gpu/draw 700 ''\n"
                     "- timer i.1.5 0\n"
                     "+ instance i.1 @0 status 1 turns 4 at 5 created 0 updated 1000000 ''\n");
    check_recorded(s, "who asked for it",
                   "#8 ActivityTryStarted #5 try 2 draw()\nref: 5\ntry_number: 2\nname: \"draw\"\n"
                   "queue: \"gpu\"\nretry.try_timeout_ms: 700\nactor: \"ops\"\n");
    fire(s, 1, 3);
    fire(s, 1, 5);
    stage_check_said(s, "again", "");
    stage_timer(s, s->now_ms + 3600 * 1000);
    stage_end(s);
}

/* Rows of two executions, and a row that comes and goes, in one batch: those before it are being written. */
static void rows_of_one_batch(void)
{
    struct stage *s = begin();
    stage_start(s, "i", "rounds");
    stage_tell(s, "i", MESSAGE_EVENT, "once"); /* from now on its activities have one number */
    stage_start(s, "j", "all_kinds");
    s->hold_applied = true;
    stage_start(s, "k", "waits");
    s->see = see;
    (void)stage_said(s);
    struct message lost = result(5, 1);
    lost.instance = THOLE_STR("j");
    lost.status = THOLE_APP;
    lost.lost = 5;
    lost.lost_worker = THOLE_STR("w");
    lost.queue = THOLE_STR("gpu");
    lost.data = THOLE_STR("it kills");
    stage_message(s, &lost);
    stage_tell(s, "i", MESSAGE_EVENT, "go on");
    stage_message(
        s,
        &(struct message){
            .kind = MESSAGE_RELEASE, .instance = THOLE_STR("j"), .execution = 1, .task = 5, .try_number = 1});
    s->now_ms += 7;
    stage_tell(s, "i", MESSAGE_EVENT, "later");
    stage_check_said(s, "not yet", "notice continued_as_new i\nnotice continued_as_new i\n");
    stage_release(s);
    stage_check_said(s, "rows",
                     "- activity i.2.3 try 0 / 0 ''\n+ activity j.1.5 try 2 gpu/draw 700 ''\n"
                     "+ activity i.4.3 try 1 default/work 0 ''\n- timer j.1.5 0\n"
                     "+ instance j.1 @0 status 1 turns 3 at 10 created 0 updated 1000000 ''\n"
                     "+ instance i.2 @0 status 9 turns 2 at 8 created 0 updated 1000000 ''\n"
                     "+ instance i.3 rounds@1 status 9 turns 2 at 11 created 0 updated 1000007 '' began "
                     "1000000\n"
                     "+ instance i.4 rounds@1 status 1 turns 1 at 12 created 0 updated 1000007 '' began "
                     "1000007\n");
    stage_end(s);
}

/* A worker is told when the row of its try is gone; where the row of the next try replaces it, when that
 * exists. */
static void pushes_of_one_batch(void)
{
    struct stage *s = begin();
    stage_start(s, "i", "two_tries");
    s->hold_applied = s->tells_work = true;
    stage_start(s, "k", "waits");
    for (uint64_t task = 2; task <= 3; task++) {
        struct message late = result(task, 1);
        late.status = THOLE_TIMEOUT;
        late.data = THOLE_STR("late");
        stage_message(s, &late);
    }
    stage_timer(s, s->now_ms + 50);
    (void)stage_said(s);
    while (s->held_len > 0)
        stage_release(s);
    stage_check_said(s, "pushes",
                     "rows gone: i.1.3\npush i.1 timeout 'late' 3 try 1\nwithdraw 2\n"
                     "push i.1 timeout 'late' 2 try 1\nwithdraw 1\n");
    stage_end(s);
}

/* ---- answers ---- */

static const char *story(struct stage *s)
{
    stage_start(s, "i", "all_kinds");
    stage_start(s, "kid", "waits");
    struct message const done = result(5, 1);
    stage_message(s, &done);
    struct message const taken = {.kind = MESSAGE_START,
                                  .instance = THOLE_STR("kid"),
                                  .orchestration = THOLE_STR("waits"),
                                  .request_id = THOLE_STR("other"),
                                  .parent = {THOLE_STR("p"), 5, 6}};
    stage_message(s, &taken);
    stage_bytes(s, THOLE_STR("i"), THOLE_STR("garbage"), REJECT_NONE);
    stage_tell(s, "i", MESSAGE_CANCEL, "enough");
    stage_tell(s, "i", MESSAGE_DELETE, "gone");
    stage_settle(s);
    CU_ASSERT_TRUE(partition_idle(s->p));
    return stage_said(s);
}

static void an_answer_that_comes_twice_counts_once(void)
{
    struct stage *once = begin(), *twice = begin();
    twice->answers_twice = true;
    const char *const want = story(once), *const got = story(twice);
    CHECK_STR("said", got, want);
    CU_ASSERT_EQUAL(twice->log_len, once->log_len);
    CU_ASSERT_EQUAL(twice->removals, once->removals);
    CU_ASSERT(once->sends > 0 && once->works > 0 && once->removals > 0);
    stage_end(once);
    stage_end(twice);
}

/* Of two messages one is answered twice: the other is still waited for. */
static void an_answer_is_not_that_of_another(void)
{
    struct stage *s = begin();
    s->hold_sent = true;
    stage_start(s, "i", "tells");
    CU_ASSERT_EQUAL_FATAL(s->held_len, 2);
    for (int i = 0; i < 2; i++)
        (void)partition_input(s->p, &s->held[0], s->now_ms);
    (void)partition_input(s->p, &(struct partition_in){.kind = PARTITION_IN_CLOSE}, s->now_ms);
    stage_run(s);
    CU_ASSERT_EQUAL(partition_state(s->p), PARTITION_CLOSING);
    stage_release(s);
    CU_ASSERT_EQUAL(partition_state(s->p), PARTITION_CLOSED);
    stage_end(s);
}

/* Log lines of a turn come before the answers about it. */
static void its_lines_come_before_answers(void)
{
    struct stage *s = begin();
    stage_start(s, "i", "says");
    (void)stage_said(s);
    s->hold_appends = true;
    stage_tell(s, "i", MESSAGE_EVENT, "go on");
    stage_query(s, "i", "how"); /* has ended, and that is not yet stored */
    stage_check_said(s, "nothing is stored", "");
    stage_release(s);
    stage_check_said(s, "in this order", "notice completed i\nline i: it ends\nanswer OK: well\n");
    stage_end(s);
}

/* The first request again: it is told what it started. Another one under that id: what it asked for. */
static void a_notice_names_the_orchestration(void)
{
    struct stage *s = begin();
    stage_start(s, "i", "says");
    stage_start(s, "i", "waits"); /* repeats the request */
    CHECK_STR("again", s->noticed, "says");
    struct message const other = {.kind = MESSAGE_START,
                                  .instance = THOLE_STR("i"),
                                  .orchestration = THOLE_STR("waits"),
                                  .request_id = THOLE_STR("other")};
    stage_message(s, &other);
    CHECK_STR("another one", s->noticed, "waits");
    stage_end(s);
}

/* ---- time ---- */

static void check_times(struct stage *s)
{
    uint64_t last = 0;
    size_t turns = 0;
    for (size_t i = 0; i < s->log_len; i++) {
        struct record record;
        if (strcmp(s->log[i].instance, "i") != 0)
            continue;
        CU_ASSERT_EQUAL(record_decode(s->log[i].bytes, &s->arena, &record, NULL), THOLE_OK);
        uint64_t const at = record.kind == RECORD_DELETED ? record.deletion.time_ms : record.turn.time_ms;
        CU_ASSERT(at >= last);
        last = at;
        turns++;
    }
    CU_ASSERT(turns >= 7);
}

/* The clock of the next owner is an hour slow, and then another: no instance's time goes back, nor does it
 * from one incarnation to the next. */
static void time_never_goes_back(void)
{
    enum { HOUR = 3600 * 1000 };
    struct stage *s = begin();
    s->now_ms += 10 * HOUR;
    stage_again(s);
    stage_tell(s, "i", MESSAGE_EVENT, "early");
    for (int life = 0; life < 2; life++) {
        s->now_ms -= HOUR;
        stage_again(s);
        stage_start(s, "i", "waits");
        s->now_ms -= HOUR;
        stage_again(s);
        stage_tell(s, "i", MESSAGE_EVENT, life == 0 ? "a" : "b");
        stage_tell(s, "i", MESSAGE_TERMINATE, life == 0 ? "one" : "two");
        s->now_ms -= HOUR;
        stage_again(s);
        stage_tell(s, "i", MESSAGE_DELETE, life == 0 ? "gone" : "gone again");
    }
    s->hold_removed = true;
    check_times(s);
    stage_end(s);
}

/* ---- unreadable records ---- */

/* Messages that come with the request to terminate are not recorded after the end. */
static void what_is_terminated_has_ended(void)
{
    struct stage *s = begin();
    stage_start(s, "i", "waits");
    stage_again(s);
    s->log[1].bytes = THOLE_STR("\xff\xff"); /* the turn */
    s->hold_loads = true;                    /* all come while it is loaded: one turn takes them */
    stage_tell(s, "i", MESSAGE_EVENT, "one");
    stage_tell(s, "i", MESSAGE_TERMINATE, "give up");
    stage_tell(s, "i", MESSAGE_EVENT, "two");
    stage_release(s);
    CHECK_STR("ended", stage_history(s, "i"),
              "garbage\n1.2 ran: #1 EventReceived item(one); #2 TerminateRequested (give up); "
              "#3 Terminated (give up)\n");
    stage_end(s);
}

/* A newer version of thole has written its last turn: it is said so, and nothing of it is changed. */
static void what_is_too_new_is_left_alone(void)
{
    struct stage *s = begin();
    stage_start(s, "i", "waits");
    stage_again(s);
    Thole__V1__Record *pb = thole__v1__record__unpack(NULL, s->log[1].bytes.len, s->log[1].bytes.ptr);
    CU_ASSERT_PTR_NOT_NULL_FATAL(pb);
    uint8_t *bytes = arena_alloc(&s->arena, s->log[1].bytes.len + 16);
    pb->format = 1000;
    s->log[1].bytes = (thole_slice){bytes, thole__v1__record__pack(pb, bytes)};
    thole__v1__record__free_unpacked(pb, NULL);
    (void)stage_said(s);
    stage_query(s, "i", "how");
    stage_check_said(s, "asked", "answer INVALID: the history was written by a newer version of thole\n");
    stage_tell(s, "i", MESSAGE_EVENT, "more");
    CHECK_STR("kept", stage_history(s, "i"), "garbage\n1.1 waits 4: #1 EventReceived item(more)\n");
    stage_end(s);
}

static const struct thole_test tests[] = {
    {"a message is recorded whole", a_message_is_recorded_whole},
    {"a deletion is recorded whole", a_deletion_is_recorded_whole},
    {"the rows are whole", the_rows_are_whole},
    {"partition: a timer is fired", a_timer_is_fired},
    {"an answer that comes twice counts once", an_answer_that_comes_twice_counts_once},
    {"an answer is not that of another", an_answer_is_not_that_of_another},
    {"rows of one batch", rows_of_one_batch},
    {"pushes of one batch", pushes_of_one_batch},
    {"its lines come before answers", its_lines_come_before_answers},
    {"a notice names the orchestration", a_notice_names_the_orchestration},
    {"time never goes back", time_never_goes_back},
    {"what is terminated has ended", what_is_terminated_has_ended},
    {"what is too new is left alone", what_is_too_new_is_left_alone},
};
THOLE_TEST_MAIN("partition whole", tests)
