/* The instances in memory, alone: what comes for them, what they give to be recorded, what they say and when.
 */
#include "coro.h"
#include "instances_state.h"
#include "room.h"
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static thole_status plain(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    thole_log(ctx, THOLE_LOG_INFO, "it begins");
    return thole_await(ctx, thole_call(ctx, THOLE_STR("work"), input), ret_output);
}

static const thole_orchestration_entry entries[] = {{.name = "plain", .run = plain}};

struct stand { /* instances, and who gives them what they ask for */
    struct env env;
    struct instances *instances;
    struct stack_pool *stacks;
    uint64_t inbox;
    struct log_rule log;
    struct said said;
    struct arena arena;            /* of the records */
    struct log_record records[40]; /* of the epoch, in order */
    size_t records_len, committed;
};

static void say(struct stand *s, const char *what, thole_slice of)
{
    said_add(&s->said, "%s %.*s", what, THOLE_FMT(of));
}

static struct record stored(struct stand *s, size_t i)
{
    struct record record;
    CU_ASSERT_EQUAL_FATAL(record_decode(s->records[i].bytes, &s->arena, &record, NULL), THOLE_OK);
    return record;
}

/* All that is committed of it. */
static void give_history(struct stand *s, uint64_t token, thole_slice instance)
{
    struct log_record of[ARRAY_LEN(s->records)];
    struct in_history in = {.instance = instance, .records = of};
    for (size_t i = 0; i < s->committed; i++) {
        struct record const record = stored(s, i);
        bool const turn = record.kind == RECORD_TURN;
        if (thole_slice_equal(turn ? record.turn.instance : record.deletion.instance, instance))
            of[in.records_len++] = s->records[i];
    }
    CU_ASSERT_TRUE(instances_history(s->instances, token, &in, &s->log));
}

/* Takes the outputs; a LOAD is answered with what is committed. */
static void listen(struct stand *s)
{
    struct partition_out out;
    while (env_poll(&s->env, &out)) {
        switch (out.kind) {
        case PARTITION_OUT_LOAD:
            say(s, "load", out.load.instance);
            give_history(s, out.token, out.load.instance);
            break;
        case PARTITION_OUT_LINE: say(s, "line", out.line.text); break;
        case PARTITION_OUT_NOTICE: say(s, out.notice.kind, out.notice.instance); break;
        case PARTITION_OUT_QUERY_ANSWER: say(s, "answer", out.query_answer.data); break;
        case PARTITION_OUT_REJECT: say(s, reject_code_name(out.reject.code), out.reject.instance); break;
        default: say(s, "what", (thole_slice){0}); break;
        }
    }
    instances_check(s->instances);
}

static void check_said(struct stand *s, const char *row, const char *want)
{
    listen(s);
    said_check(&s->said, row, want);
}

static struct stand *begin(void)
{
    struct stand *s = calloc(1, sizeof *s);
    CU_ASSERT_PTR_NOT_NULL_FATAL(s);
    s->stacks = stack_pool_create(1, 8);
    s->log = (struct log_rule){.epoch = 1, .opened = 1};
    arena_init(&s->arena, 1 << 20);
    s->env.now_ms = 1000;
    s->env.options = (struct partition_options){.orchestrations = entries,
                                                .orchestrations_len = ARRAY_LEN(entries),
                                                .stacks = s->stacks,
                                                .payload_max = 65536,
                                                .instance_memory_max = 1 << 20,
                                                .record_max = 1000 * 1000,
                                                .parked_max = 10,
                                                .crash_limit = 2,
                                                .early_event_ms = 5000,
                                                .ahead_max = 100};
    s->instances = instances_create(&s->env);
    CU_ASSERT_PTR_NOT_NULL_FATAL(s->instances);
    return s;
}

static void end(struct stand *s)
{
    instances_check(s->instances);
    CU_ASSERT_FALSE(s->env.nomem);
    instances_destroy(s->instances);
    env_release(&s->env);
    CU_ASSERT_EQUAL(stack_pool_in_use(s->stacks), 0);
    stack_pool_destroy(s->stacks);
    arena_release(&s->arena);
    free(s);
}

static void give(struct stand *s, struct message *message, const char *id)
{
    struct buf bytes;
    buf_init(&bytes, MESSAGE_BYTES_MAX);
    message->instance = thole_slice_from(id);
    message->request_id = THOLE_STR("r");
    CU_ASSERT_EQUAL(message_encode(message, &bytes), THOLE_OK);
    struct in_message const in = {
        .sequence = ++s->inbox, .instance = message->instance, .bytes = buf_bytes(&bytes)};
    CU_ASSERT_TRUE(instances_message(s->instances, &in));
    CU_ASSERT_FALSE(instances_message(s->instances, &in)); /* it came before */
    buf_release(&bytes);
}

static void start(struct stand *s, const char *id, const char *orchestration)
{
    give(s, &(struct message){.kind = MESSAGE_START, .orchestration = thole_slice_from(orchestration)}, id);
}

/* Runs what is ready and returns the record, rendered; the caller says instances_ran(). */
static const char *run(struct stand *s, struct instances_record *ret)
{
    static char text[512];
    struct buf to;
    buf_init(&to, sizeof text - 1);
    CU_ASSERT_TRUE_FATAL(instances_run(s->instances, ret));
    if (ret->turn != NULL) {
        buf_printf(&to, "%llu.%llu %s", (unsigned long long)ret->turn->execution,
                   (unsigned long long)ret->turn->number, ret->turn->ran ? "ran" : "waits");
        for (size_t i = 0; i < ret->turn->events_len; i++) {
            buf_text(&to, "; ");
            event_render(&ret->turn->events[i], &to);
        }
    } else if (ret->deletion != NULL) {
        buf_printf(&to, "deleted up to %llu", (unsigned long long)ret->deletion->execution);
    }
    (void)snprintf(text, sizeof text, "%.*s", THOLE_FMT(buf_bytes(&to)));
    buf_release(&to);
    return text;
}

/* It is appended, if there is anything to record. */
static void append(struct stand *s, const struct instances_record *made)
{
    struct record record = {.epoch = 1, .n = s->records_len + 1, .committed = s->committed};
    if (made->entry != NULL) {
        CU_ASSERT_FATAL(s->records_len < ARRAY_LEN(s->records));
        record.kind = made->turn != NULL ? RECORD_TURN : RECORD_DELETED;
        if (made->turn != NULL)
            record.turn = *made->turn;
        else
            record.deletion = *made->deletion;
        s->records[s->records_len++] = (struct log_record){.sequence = s->log.opened + record.n,
                                                           .execution = record.turn.execution,
                                                           .bytes = record_bytes(&s->arena, &record)};
    }
    instances_ran(s->instances, made->entry != NULL, s->records_len);
}

/* Its record is appended; returns its entry. */
static struct entry *record(struct stand *s, const char *row, const char *want)
{
    struct instances_record made;
    const char *const got = run(s, &made);
    CHECK_STR(row, got, want);
    append(s, &made);
    return made.entry;
}

/* The next record is committed; it is the entry's. */
static void commit_with(struct stand *s, struct entry *entry, const struct turn_log *lines, size_t n)
{
    CU_ASSERT_FATAL(s->committed < s->records_len);
    struct record const record = stored(s, s->committed);
    s->log.known = ++s->committed;
    if (record.kind == RECORD_TURN)
        instances_count(s->instances, entry, &record.turn, 1);
    instances_committed(s->instances, entry, record.turn.execution, lines, n);
    instances_check(s->instances);
}

static void commit(struct stand *s, struct entry *entry)
{
    commit_with(s, entry, NULL, 0);
}

/* ---- what is taken, what is recorded ---- */

static void test_a_start(void)
{
    struct stand *s = begin();
    struct instances_record made;
    start(s, "i", "plain");
    CU_ASSERT_EQUAL(instances_pending(s->instances), 1);
    CU_ASSERT_FALSE(instances_run(s->instances, &made)); /* it is not known yet what there is of it */
    check_said(s, "its history", "load i");
    CU_ASSERT_FALSE(instances_quiet(s->instances));
    CU_ASSERT_EQUAL(instances_inbox(s->instances)->floor, 0);
    const char *const turn = run(s, &made);
    CHECK_STR("its first turn", turn, "1.1 ran; #1 Started plain@1(); #2 ActivityScheduled work()");
    CU_ASSERT_TRUE_FATAL(made.entry != NULL && made.lines_len == 1);
    CU_ASSERT(instances_inbox(s->instances)->floor == 1 && instances_inbox(s->instances)->dirty);
    append(s, &made);
    CU_ASSERT_FALSE(instances_inbox(s->instances)->dirty);
    check_said(s, "nobody hears of it yet", "");
    struct turn_log const line = {.text = THOLE_STR("it begins")};
    commit_with(s, made.entry, &line, 1);
    check_said(s, "now", "line it begins");
    CU_ASSERT_TRUE(instances_quiet(s->instances));
    end(s);
}

static void test_what_changes_nothing_is_not_recorded(void)
{
    struct stand *s = begin();
    start(s, "i", "plain");
    listen(s);
    struct entry *entry = record(s, "starts", "1.1 ran; #1 Started plain@1(); #2 ActivityScheduled work()");
    commit(s, entry);
    struct message unknown = {.kind = MESSAGE_ACTIVITY_RESULT, .execution = 1, .task = 9, .attempt = 1};
    give(s, &unknown, "i");
    CU_ASSERT_PTR_NULL(record(s, "of an activity that is not there", ""));
    CU_ASSERT_EQUAL(instances_inbox(s->instances)->floor, 2); /* and incorporated */
    struct message result = {.kind = MESSAGE_ACTIVITY_RESULT, .execution = 1, .task = 2, .attempt = 1};
    give(s, &result, "i");
    entry = record(s, "ends", "1.2 ran; #3 ActivityCompleted #2 (); #4 Completed ()");
    (void)entry;
    end(s);
}

static void test_without_code(void)
{
    struct stand *s = begin();
    start(s, "i", "unknown");
    listen(s);
    (void)record(s, "it waits", "1.1 waits; #1 Started unknown()");
    end(s);
}

static void test_what_comes_before_its_instance(void)
{
    struct stand *s = begin();
    give(s, &(struct message){.kind = MESSAGE_EVENT, .event_name = THOLE_STR("e")}, "i");
    listen(s);
    struct entry *entry = record(s, "is kept", "0.1 waits; #1 EventReceived e()");
    commit(s, entry);
    instances_timer(s->instances, THOLE_STR("i"), 0, EARLY_TIMER);
    struct instances_record made;
    const char *const turn = run(s, &made);
    CHECK_STR("not given up too early", turn, "");
    CU_ASSERT(made.entry == NULL && made.wake.due_ms == 6000 && made.wake.timer_id == EARLY_TIMER);
    instances_ran(s->instances, 0, 0);
    start(s, "i", "plain");
    (void)record(s, "and is there when it starts",
                 "1.1 ran; #1 Started plain@1(); #2 EventReceived e(); #3 ActivityScheduled work()");
    end(s);
}

static void test_questions(void)
{
    struct stand *s = begin();
    struct in_query const ask = {.instance = THOLE_STR("i"), .query = THOLE_STR("q")};
    instances_query(s->instances, 7, &ask, false);
    check_said(s, "not open", "answer the partition is not open");
    instances_query(s->instances, 7, &ask, true);
    check_said(s, "when it is known", "load i, answer there is no such instance");
    end(s);
}

static void test_what_cannot_be_taken(void)
{
    struct stand *s = begin();
    struct in_message const in = {.sequence = 1, .instance = THOLE_STR("i"), .bytes = THOLE_STR("\xff")};
    CU_ASSERT_TRUE(instances_message(s->instances, &in));
    check_said(s, "is given out", "malformed i");
    CU_ASSERT(instances_inbox(s->instances)->floor == 0 && !instances_quiet(s->instances));
    instances_rejected(s->instances, 1);
    CU_ASSERT(instances_inbox(s->instances)->floor == 1 && instances_quiet(s->instances));
    end(s);
}

/* ---- states ---- */

static bool aborts(void (*body)(struct stand *), struct stand *s)
{
    int status = 0;
    fflush(NULL);
    pid_t const child = fork();
    if (child == 0) {
        (void)freopen("/dev/null", "w", stderr);
        body(s);
        _exit(0);
    }
    CU_ASSERT_EQUAL_FATAL(waitpid(child, &status, 0), child);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

static struct entry *the_entry(struct stand *s)
{
    struct entry *entry = entries_find(&s->instances->entries, THOLE_STR("i"));
    if (entry == NULL)
        _exit(0);
    return entry;
}

static void from_live_to_early(struct stand *s)
{
    entry_become(&s->instances->entries, the_entry(s), ENTRY_EARLY);
}

static void live_without_code(struct stand *s)
{
    the_entry(s)->running.instance = NULL;
    instances_check(s->instances);
}

static void ready_and_in_no_line(struct stand *s)
{
    the_entry(s)->ready = true;
    instances_check(s->instances);
}

static void one_pending_too_many(struct stand *s)
{
    s->instances->entries.pending_len++;
    instances_check(s->instances);
}

static void incorporated_twice(struct stand *s)
{
    uint64_t above[] = {9, 9};
    s->instances->progress.above = above;
    s->instances->progress.above_len = 2;
    instances_check(s->instances);
}

static void nothing(struct stand *s)
{
    instances_check(s->instances);
}

static void test_what_must_not_be_is_noticed(void)
{
    struct stand *s = begin();
    start(s, "i", "plain");
    listen(s);
    commit(s, record(s, "starts", "1.1 ran; #1 Started plain@1(); #2 ActivityScheduled work()"));
    CU_ASSERT_FALSE(aborts(nothing, s));
    CU_ASSERT_TRUE(aborts(from_live_to_early, s));
    CU_ASSERT_TRUE(aborts(live_without_code, s));
    CU_ASSERT_TRUE(aborts(ready_and_in_no_line, s));
    CU_ASSERT_TRUE(aborts(one_pending_too_many, s));
    CU_ASSERT_TRUE(aborts(incorporated_twice, s));
    end(s);
}

static const struct thole_test tests[] = {
    {"instances: a start", test_a_start},
    {"instances: what changes nothing is not recorded", test_what_changes_nothing_is_not_recorded},
    {"instances: without code", test_without_code},
    {"instances: what comes before its instance", test_what_comes_before_its_instance},
    {"instances: questions", test_questions},
    {"instances: what cannot be taken", test_what_cannot_be_taken},
    {"instances: what must not be is noticed", test_what_must_not_be_is_noticed},
};
THOLE_TEST_MAIN("instances room", tests)
