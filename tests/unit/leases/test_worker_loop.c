/* The inputs that a worker's loop gives its machine, and the loop's actions for the machine's outputs:
 * streams, Postgres and the outputs are played. */
#include "captured.h"
#include "clock.h"
#include "logged.h"
#include "said.h"
#include "thole_cunit.h"
#include "worker_parts.h"
#include "wrap_cork.h"
#include "wrap_mutexes.h"
#include <stdlib.h>
#include <unistd.h>

enum { STEPS_MAX = 8, OUTS_MAX = 8, NOW_MS = 100000, CLAIMS_FD = 501, COMPLETIONS_FD = 502 };

static struct {
    struct worker_host host;
    uint64_t now_ms, machine_ms, told_ms, claims_ms; /* deadlines */
    uint64_t asked_ms;                               /* until when it wants to wait */
    void (*steps[STEPS_MAX])(void);
    size_t step;
    struct worker_out outs[OUTS_MAX];
    size_t outs_len;
    struct said said;
    thole_status delivered_status;
    int left;           /* the connection reads itself again */
    short continued[2]; /* events given to claims and completions */
} play;

/* ---- the world ---- */

uint64_t __wrap_clock_monotonic_ms(void)
{
    return play.now_ms;
}

/* The waits of claims and completions. */
struct pollfd __wrap_row_calls_socket(const struct row_calls *calls, uint64_t *ret_deadline_ms)
{
    bool const claims = calls == play.host.claims;
    CU_ASSERT_TRUE(claims || calls == play.host.completions);
    *ret_deadline_ms = claims ? play.claims_ms : UINT64_MAX;
    return (struct pollfd){.fd = claims ? CLAIMS_FD : COMPLETIONS_FD, .events = POLLIN};
}

void __wrap_row_calls_continue(struct row_calls *calls, short revents)
{
    play.continued[calls == play.host.claims ? 0 : 1] = revents;
}

void __wrap_connection_read(struct connection *connection, struct pollfd *also, size_t n,
                            uint64_t deadline_ms, connection_awake_fn *awake, void *arg)
{
    CU_ASSERT_FALSE(wrap_cork_is_on()); /* nothing is held back while it sleeps */
    CU_ASSERT_PTR_EQUAL(connection, play.host.connection);
    CU_ASSERT_EQUAL_FATAL(n, 3);
    CU_ASSERT_EQUAL(also[0].fd, mailbox_wakeup(&play.host.inbox));
    CU_ASSERT_TRUE(also[1].fd == CLAIMS_FD && also[2].fd == COMPLETIONS_FD);
    CU_ASSERT_TRUE(also[0].events == POLLIN && also[1].events == POLLIN && also[2].events == POLLIN);
    also[1].revents = POLLIN;
    also[2].revents = POLLERR;
    awake(arg);
    play.asked_ms = deadline_ms;
    if (play.step < STEPS_MAX && play.steps[play.step] != NULL)
        play.steps[play.step++]();
    else
        play.outs[play.outs_len++] = (struct worker_out){.kind = WORKER_OUT_STOPPED};
}

void __wrap_connection_leave(struct connection *connection)
{
    CU_ASSERT_PTR_EQUAL(connection, play.host.connection);
    play.left++;
}

bool __real_worker_poll(struct worker_machine *w, struct worker_out *ret);
bool __wrap_worker_poll(struct worker_machine *w, struct worker_out *ret)
{
    (void)w;
    if (play.outs_len == 0)
        return false;
    *ret = play.outs[0];
    memmove(play.outs, play.outs + 1, --play.outs_len * sizeof play.outs[0]);
    return true;
}

uint64_t __wrap_worker_next_deadline_ms(const struct worker_machine *w)
{
    (void)w;
    return play.machine_ms;
}

void __wrap_log_limits_line(struct log_limits *limits, uint64_t now_ms, size_t kind,
                            const struct log_fields *fields, const char *fmt, ...) THOLE_PRINTF(5, 6);
void __wrap_log_limits_line(struct log_limits *limits, uint64_t now_ms, size_t kind,
                            const struct log_fields *fields, const char *fmt, ...)
{
    char text[512];
    va_list args;
    va_start(args, fmt);
    logged_text(text, sizeof text, fields, fmt, args);
    va_end(args);
    CU_ASSERT_TRUE(limits == play.host.lines && kind == WORKER_LINE_FORGED && !fields->of_partition);
    CU_ASSERT_EQUAL(now_ms, play.now_ms);
    said_add(&play.said, "limited: %s\n", text);
}

uint64_t __wrap_log_limits_rest(struct log_limits *limits, uint64_t now_ms)
{
    CU_ASSERT_PTR_EQUAL(limits, play.host.lines);
    CU_ASSERT_EQUAL(now_ms, clock_monotonic_ms());
    return play.told_ms;
}

uint32_t __wrap_handlers_replaced(struct handlers *pool)
{
    (void)pool;
    return 0;
}

void __wrap_worker_advance(struct worker_machine *w, uint64_t now_ms)
{
    (void)w, (void)now_ms;
}

struct worker_counters __wrap_worker_counters(const struct worker_machine *w)
{
    (void)w;
    return (struct worker_counters){.delivered = 1,
                                    .claimed = 2,
                                    .completed = 3,
                                    .cancelled_by_push = 4,
                                    .cancelled_by_renewal = 5,
                                    .lease_lost = 6,
                                    .abandoned = 7,
                                    .stolen = 8,
                                    .gone = 9,
                                    .refused = 10,
                                    .unclaimed = 11,
                                    .unknown = 12,
                                    .handed_back = 13,
                                    .contradicted = 14,
                                    .timed_out = 15,
                                    .left = 16,
                                    .isolated = 17,
                                    .deferred = 18,
                                    .poisoned = 19,
                                    .held = 20,
                                    .adopted = 21,
                                    .forged = 22,
                                    .unproven = 23,
                                    .resumed = 24,
                                    .quick = 25,
                                    .shelved = 26};
}

static const char *const in_names[] = {
    [WORKER_IN_DELIVERED] = "delivered", [WORKER_IN_CLAIMED] = "claimed",
    [WORKER_IN_RENEWED] = "renewed",     [WORKER_IN_RELEASED] = "released",
    [WORKER_IN_BEGUN] = "begun",         [WORKER_IN_COMMITTED] = "committed",
    [WORKER_IN_LEFT] = "left",           [WORKER_IN_NOT_LOST] = "not lost",
    [WORKER_IN_SHELVED] = "shelved",     [WORKER_IN_FINISHED] = "finished",
    [WORKER_IN_PUBLISHED] = "published", [WORKER_IN_PUSHED] = "pushed",
    [WORKER_IN_SLOT] = "slot",           [WORKER_IN_STOP] = "stop",
};

void __wrap_worker_give(struct worker_host *host, const struct worker_in *in)
{
    CU_ASSERT_PTR_EQUAL(host, &play.host);
    said_add(&play.said,
             "%s rows=%zu unknown=%d ok=%d status=%s limit=%llu kind=%.*s reason=%.*s of=%.*s#%llu.%llu.%u "
             "ids=%zu\n",
             in_names[in->kind], in->rows_len, in->unknown, in->ok, thole_status_name(in->status),
             (unsigned long long)in->limit_ms, THOLE_FMT(in->cancel_kind), THOLE_FMT(in->reason),
             THOLE_FMT(in->key.instance), (unsigned long long)in->key.execution,
             (unsigned long long)in->key.activity_id, in->key.try_number, in->activity_ids_len);
}

void __wrap_puller_want(struct puller *puller, uint32_t free_slots)
{
    (void)puller;
    said_add(&play.said, "want %u\n", free_slots);
}

void __wrap_row_calls_send(struct row_calls *calls, struct row_call *call)
{
    static const char *const kinds[] = {"claim",  "renew", "release", "leave",   "not lost",
                                        "shelve", "begin", "commit",  "rollback"};
    CU_ASSERT_PTR_EQUAL(call, &play.host.calls[call->kind]);
    said_add(&play.said, "%s %s rows=%zu\n",
             calls == play.host.claims ? "claims:" : "completions:", kinds[call->kind], call->len);
    for (size_t i = 0; i < call->len; i++)
        said_add(&play.said, "  %.*s %llu.%llu.%u p=%u\n", THOLE_FMT(call->claims[i].key.instance),
                 (unsigned long long)call->claims[i].key.execution,
                 (unsigned long long)call->claims[i].key.activity_id,
                 (unsigned)call->claims[i].key.try_number, call->claims[i].partition);
}

thole_status __wrap_work_message_signal(struct connection *connection, const struct work_message *message,
                                        enum work_signal signal, thole_error *reterr)
{
    static const char *const names[] = {
        [WORK_ACK] = "+ACK", [WORK_NAK] = "-NAK", [WORK_PROGRESS] = "+WPI", [WORK_TERM] = "+TERM"};
    (void)connection, (void)reterr;
    if (message->sequence == 0)
        said_add(&play.said, "%s\n", names[signal]);
    else
        said_add(&play.said, "%s %llu\n", names[signal], (unsigned long long)message->sequence);
    return THOLE_OK;
}

thole_status __wrap_work_message_put_back(struct connection *connection, const struct work_message *message,
                                          uint64_t delay_ms, thole_error *reterr)
{
    (void)connection, (void)message, (void)reterr;
    said_add(&play.said, "put back for %llu\n", (unsigned long long)delay_ms);
    return THOLE_OK;
}

void __wrap_work_message_destroy(struct work_message *message)
{
    said_add(&play.said, "freed\n");
    free(message);
}

/* ---- names that workers know ---- */

static enum served served_play;
static unsigned asked_play;

enum served __wrap_served_names_look(struct served_names *served, thole_slice queue, thole_slice name,
                                     uint64_t now_ms, bool *ret_asks)
{
    (void)served;
    CU_ASSERT_TRUE(thole_slice_equal(queue, THOLE_STR("q")));
    CU_ASSERT_TRUE(thole_slice_equal(name, THOLE_STR("stranger")));
    CU_ASSERT_EQUAL(now_ms, play.now_ms);
    *ret_asks = served_play == SERVED_UNKNOWN;
    return served_play;
}

void __wrap_queue_keeper_ask(struct queue_keeper *keeper)
{
    (void)keeper;
    asked_play++;
}

static thole_status nothing(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    (void)act, (void)input, (void)ret_output;
    return THOLE_OK;
}

static const thole_activity_entry entries[] = {{.name = "charge", .run = nothing}};
static const thole_program program = {.name = "none", .activities = entries, .activities_len = 1};

static void begin(void)
{
    struct worker_options options;
    memset(&play, 0, sizeof play);
    play.now_ms = NOW_MS;
    play.claims_ms = UINT64_MAX;
    play.host.claims = (struct row_calls *)&play.claims_ms;
    play.host.completions = (struct row_calls *)&play.asked_ms;
    play.host.program = &program;
    play.host.topology.partitions = 8;
    play.host.options.queue = "q";
    play.host.options.stop_limit_ms = 1234;
    play.host.claims = (struct row_calls *)&play.now_ms;
    play.host.completions = (struct row_calls *)&play.step;
    worker_options_init(&options);
    play.host.machine = worker_create(&options);
    for (int kind = 0; kind < ROW_CALL_KINDS; kind++)
        row_call_init(&play.host.calls[kind], kind, 4);
    mailbox_init(&play.host.inbox);
    CU_ASSERT_EQUAL_FATAL(mailbox_open_wakeup(&play.host.inbox, NULL), THOLE_OK);
}

static void end(void)
{
    for (int kind = 0; kind < ROW_CALL_KINDS; kind++)
        row_call_release(&play.host.calls[kind]);
    worker_destroy(play.host.machine);
    mailbox_release(&play.host.inbox);
}

static void run_loop(void *arg)
{
    (void)arg;
    (void)worker_loop_main(&play.host);
}

/* Runs the steps; returns what was logged; malloc. */
static char *run(void (*const *steps)(void), size_t n)
{
    for (size_t i = 0; i < n; i++)
        play.steps[i] = steps[i];
    play.left = 0;
    char *const text = captured(STDERR_FILENO, run_loop, NULL);
    CU_ASSERT_EQUAL(play.left, 1);
    return text;
}

static struct thole_activity *activity(uint64_t id)
{
    struct work_message *const message = calloc(1, sizeof *message);
    message->item = (struct work_item){.queue = THOLE_STR("q"),
                                       .instance = THOLE_STR("order"),
                                       .activity = THOLE_STR("charge"),
                                       .execution = 2,
                                       .activity_id = id,
                                       .try_number = 3};
    struct thole_activity *const act = activity_create(message, NOW_MS);
    act->partition = 5;
    act->attempt = 7;
    return act;
}

static struct worker_out out_of(enum worker_out_kind kind, const struct thole_activity *act)
{
    return (struct worker_out){.kind = kind, .id = (uint64_t)(uintptr_t)act};
}

/* ---- how many messages are wanted ---- */

static struct thole_activity *arrived[2];

static void arrive(size_t i)
{
    atomic_fetch_add(&play.host.arriving, 1);
    arrived[i] = activity(10 + i);
    mailbox_push(&play.host.inbox, &arrived[i]->delivered.mail);
}

static void wants_three(void)
{
    play.outs[play.outs_len++] = (struct worker_out){.kind = WORKER_OUT_WANT, .count = 3};
}

static void one_arrives(void)
{
    said_check(&play.said, "three", "want 3\n");
    arrive(0);
    worker_loop_state(&play.host); /* taken after the delivery */
    worker_loop_state(&play.host);
}

static void another_is_on_its_way(void)
{
    said_check(&play.said, "one has come", "want 2\n");
    atomic_fetch_add(&play.host.arriving, 1);
    worker_loop_state(&play.host);
}

static void it_comes(void)
{
    said_check(&play.said, "one is on its way", "want 1\n");
    atomic_fetch_sub(&play.host.arriving, 1);
    arrive(1);
    wants_three();
}

static void test_how_many_are_wanted(void)
{
    begin();
    play.host.state = (struct worker_mail){.kind = WORKER_MAIL_STATE};
    free(run((void (*const[])(void)){wants_three, one_arrives, another_is_on_its_way, it_comes}, 4));
    said_check(&play.said, "again", "want 3\n");
    for (size_t i = 0; i < ARRAY_LEN(arrived); i++) {
        CU_ASSERT_TRUE(arrived[i]->run == nothing);
        activity_destroy(arrived[i]);
    }
    end();
}

/* ---- repeated deliveries ---- */

static uint64_t again_sequence;
static uint8_t again_says;

static void it_comes_twice(void)
{
    for (size_t i = 0; i < 2; i++) {
        arrive(i);
        arrived[i]->message->item.activity_id = 10;
        arrived[i]->message->sequence = i == 0 ? 5 : again_sequence;
        arrived[i]->message->digest.bytes[0] = i == 0 ? 0 : again_says;
    }
}

/* A redelivery is the same message; of two messages that say the same the one that was stored first is
 * acknowledged, whichever comes first; one that says something else is not taken for either. */
static void test_what_comes_again(void)
{
    static const struct {
        uint64_t sequence;
        uint8_t says;
        const char *want;
        uint64_t left;
    } rows[] = {
        {5, 0, "freed\n", 5}, {6, 0, "+ACK 5\nfreed\n", 6}, {4, 0, "+ACK 4\nfreed\n", 5}, {6, 1, "", 5}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        begin();
        again_sequence = rows[i].sequence;
        again_says = rows[i].says;
        free(run((void (*const[])(void)){it_comes_twice}, 1));
        said_check(&play.said, "comes again", rows[i].want);
        CU_ASSERT_EQUAL(arrived[0]->message->sequence, rows[i].left);
        activity_destroy(arrived[0]);
        if (rows[i].says != 0)
            activity_destroy(arrived[1]);
        end();
    }
}

/* ---- log lines at the end ---- */

static void test_counters(void)
{
    begin();
    char *const text = run(NULL, 0);
    const char *const at = strstr(text, "worker stopped");
    CHECK_STR("counters", at == NULL ? "" : at,
              "worker stopped: claimed=2 completed=3 cancelled_by_push=4 cancelled_by_renewal=5 lease_lost=6"
              " abandoned=7 stolen=8 delivered=1 gone=9 refused=10 unclaimed=11 unknown=12 handed_back=13"
              " contradicted=14 timed_out=15 left=16 isolated=17 deferred=18 poisoned=19 held=20 adopted=21 "
              "forged=22 unproven=23 resumed=24 quick=25 shelved=26\"\n");
    free(text);
    end();
}

/* ---- until when it waits ---- */

static void test_until_when_it_waits(void)
{
    static const struct {
        uint64_t machine_ms, told_ms, claims_ms, asked_ms;
    } rows[] = {{NOW_MS + 5, UINT64_MAX, UINT64_MAX, NOW_MS + 5},
                {UINT64_MAX, NOW_MS + 6, UINT64_MAX, NOW_MS + 6},
                {NOW_MS + 8, UINT64_MAX, NOW_MS + 7, NOW_MS + 7},
                {UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        begin();
        play.machine_ms = rows[i].machine_ms;
        play.told_ms = rows[i].told_ms;
        play.claims_ms = rows[i].claims_ms;
        free(run(NULL, 0));
        CU_ASSERT_EQUAL(play.asked_ms, rows[i].asked_ms);
        CU_ASSERT_TRUE(play.continued[0] == POLLIN && play.continued[1] == POLLERR);
        end();
    }
}

/* ---- how it ends ---- */

static void test_ends(void)
{
    static const struct {
        enum worker_out_kind kind;
        enum worker_end end;
        uint64_t delay_ms;
        const char *sent, *level, *logged;
    } rows[] = {
        {WORKER_OUT_ACK, WORKER_END_COMPLETED, 0, "+ACK\nfreed\n", "", NULL},
        {WORKER_OUT_ACK, WORKER_END_GONE, 0, "+ACK\nfreed\n", "debug",
         "\"not run, it was cancelled or done before\""},
        {WORKER_OUT_ACK, WORKER_END_CANCELLED, 0, "+ACK\nfreed\n", "info", "cancelled"},
        {WORKER_OUT_ACK, WORKER_END_REFUSED, 0, "+ACK\nfreed\n", "warn",
         "\"result refused, it was cancelled or another worker was first\""},
        {WORKER_OUT_DROP, WORKER_END_STOLEN, 0, "freed\n", "warn",
         "\"result refused, another worker has taken it over\""},
        {WORKER_OUT_DROP, WORKER_END_LEASE_LOST, 0, "freed\n", "warn", "\"lease lost, it will run again\""},
        {WORKER_OUT_NAK, WORKER_END_UNCLAIMED, 500, "put back for 500\nfreed\n", "warn",
         "\"could not be claimed in time, comes back\""},
        {WORKER_OUT_NAK, WORKER_END_UNKNOWN, 1, "put back for 1\nfreed\n", "", NULL},
        {WORKER_OUT_NAK, WORKER_END_HANDED_BACK, 0, "-NAK\nfreed\n", "info", "\"handed back\""},
        {WORKER_OUT_ACK, WORKER_END_LATER, 0, "+ACK\nfreed\n", "debug", "\"is completed from outside\""},
        {WORKER_OUT_NAK, WORKER_END_DEFERRED, 0, "-NAK\nfreed\n", "debug",
         "\"handed back, a poison candidate runs isolated\""},
        {WORKER_OUT_NAK, WORKER_END_HELD, 900, "put back for 900\nfreed\n", "debug",
         "\"put back, another lease of it lasts\""},
    };
    log_configure(LOG_LEVEL_DEBUG, LOG_FORMAT_LOGFMT, "test");
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char want[256];
        begin();
        play.outs[0] = out_of(rows[i].kind, activity(9));
        play.outs[0].end = rows[i].end;
        play.outs[0].delay_ms = rows[i].delay_ms;
        play.outs_len = 1;
        char *const text = run(NULL, 0);
        said_check(&play.said, rows[i].logged == NULL ? "silent" : rows[i].logged, rows[i].sent);
        (void)snprintf(want, sizeof want,
                       "level=%s program=test area=worker instance=order execution=2 activity=charge "
                       "activity_id=9 try=3 attempt=7 msg=%s\n",
                       rows[i].level, rows[i].logged == NULL ? "" : rows[i].logged);
        CU_ASSERT_EQUAL(strstr(text, want) != NULL, rows[i].logged != NULL);
        CU_ASSERT_EQUAL(strstr(text, "instance=order") != NULL, rows[i].logged != NULL);
        free(text);
        end();
    }
    log_configure(LOG_LEVEL_INFO, LOG_FORMAT_LOGFMT, "test");
}

/* Such lines are limited: others can cause them at any rate. */
static void test_a_forged_message(void)
{
    begin();
    play.outs[0] = out_of(WORKER_OUT_TERM, activity(9));
    play.outs[0].end = WORKER_END_FORGED;
    play.outs_len = 1;
    free(run(NULL, 0));
    said_check(
        &play.said, "forged",
        "+TERM\nlimited: instance=order execution=2 activity=charge activity_id=9 try=3 a message was "
        "removed "
        "from queue q, it is not what an engine has scheduled; who but engines may publish to the queues?\n"
        "freed\n");
    end();
}

/* The thread still reads the input. */
static void test_one_that_still_runs(void)
{
    begin();
    struct thole_activity *const act = activity(9);
    act->running = true;
    play.outs[0] = out_of(WORKER_OUT_DROP, act);
    play.outs[0].end = WORKER_END_COMPLETED;
    play.outs_len = 1;
    free(run(NULL, 0));
    said_check(&play.said, "not freed", "");
    CU_ASSERT_TRUE(act->forgotten);
    play.host.stopped = false;
    mailbox_push(&play.host.inbox, &act->finished.mail);
    free(run(NULL, 0));
    said_check(&play.said, "it has returned", "freed\n");
    end();
}

/* ---- activities unknown to this program ---- */

static struct thole_activity *stranger;

static void stranger_comes(void)
{
    atomic_fetch_add(&play.host.arriving, 1);
    mailbox_push(&play.host.inbox, &stranger->delivered.mail);
}

static void test_what_it_does_not_know(void)
{
    static const enum served rows[] = {SERVED_UNKNOWN, SERVED_BY_SOME, SERVED_BY_NONE};
    asked_play = 0;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        begin();
        served_play = rows[i];
        stranger = activity(9);
        stranger->message->item.activity = THOLE_STR("stranger");
        free(run((void (*const[])(void)){stranger_comes}, 1));
        struct worker_out out;
        bool shelved = false;
        while (__real_worker_poll(play.host.machine, &out))
            shelved |= out.kind == WORKER_OUT_SHELVE;
        CU_ASSERT_EQUAL(shelved, rows[i] == SERVED_BY_NONE);
        CU_ASSERT_EQUAL(asked_play, 1); /* when nothing was known */
        activity_destroy(stranger);
        end();
    }
}

/* ---- rows ---- */

static void test_who_is_asked(void)
{
    static const struct {
        enum worker_out_kind kind;
        const char *sent;
    } rows[] = {{WORKER_OUT_CLAIM, "claims: claim"},
                {WORKER_OUT_RENEW, "claims: renew"},
                {WORKER_OUT_RELEASE, "claims: release"},
                {WORKER_OUT_LEAVE, "claims: leave"},
                {WORKER_OUT_NOT_LOST, "claims: not lost"},
                {WORKER_OUT_SHELVE, "claims: shelve"},
                {WORKER_OUT_COMPLETE_BEGIN, "completions: begin"},
                {WORKER_OUT_COMPLETE_COMMIT, "completions: commit"},
                {WORKER_OUT_COMPLETE_ROLLBACK, "completions: rollback"}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char want[128];
        bool const none =
            rows[i].kind == WORKER_OUT_COMPLETE_COMMIT || rows[i].kind == WORKER_OUT_COMPLETE_ROLLBACK;
        begin();
        struct thole_activity *const act = activity(9);
        struct worker_row const row = {.id =
                                           rows[i].kind == WORKER_OUT_NOT_LOST ? 0 : (uint64_t)(uintptr_t)act,
                                       .key = {THOLE_STR("order"), 2, 9, 3},
                                       .attempt = 7};
        play.outs[0] = (struct worker_out){.kind = rows[i].kind, .rows = &row, .rows_len = !none};
        play.outs_len = 1;
        free(run(NULL, 0));
        (void)snprintf(want, sizeof want, "%s rows=%d\n%s", rows[i].sent, !none,
                       none                                  ? ""
                       : rows[i].kind == WORKER_OUT_NOT_LOST ? "  order 2.9.3 p=0\n"
                                                             : "  order 2.9.3 p=5\n");
        said_check(&play.said, rows[i].sent, want);
        activity_destroy(act);
        end();
    }
}

static struct row_call answer;

static void answer_comes(void)
{
    mailbox_push(&play.host.inbox, &answer.mail.mail);
}

static void test_answers(void)
{
    static const struct {
        enum row_call_kind kind;
        const char *given;
    } rows[] = {{ROW_CALL_CLAIM, "claimed"}, {ROW_CALL_RENEW, "renewed"},     {ROW_CALL_RELEASE, "released"},
                {ROW_CALL_LEAVE, "left"},    {ROW_CALL_NOT_LOST, "not lost"}, {ROW_CALL_SHELVE, "shelved"},
                {ROW_CALL_BEGIN, "begun"},   {ROW_CALL_COMMIT, "committed"}};
    for (size_t i = 0; i < 2 * ARRAY_LEN(rows); i++) {
        bool const unknown = i % 2 == 1;
        char want[128];
        begin();
        struct thole_activity *const act = activity(9);
        struct claim claim = {.lost = 4,
                              .lost_worker = THOLE_STR("w-1"),
                              .lost_report = THOLE_STR("tripped"),
                              .details = THOLE_STR("half"),
                              .orchestration = THOLE_STR("checkout"),
                              .version = 6};
        struct worker_row row = {.id = (uint64_t)(uintptr_t)act, .attempt = 8, .state = WORKER_ROW_MINE};
        answer = (struct row_call){
            .kind = rows[i / 2].kind, .claims = &claim, .rows = &row, .len = 1, .unknown = unknown};
        answer.mail = (struct worker_mail){.kind = WORKER_MAIL_ANSWER, .owner = &answer};
        free(run((void (*const[])(void)){answer_comes}, 1));
        (void)snprintf(want, sizeof want,
                       "%s rows=1 unknown=%d ok=0 status=OK limit=0 kind= reason= of=#0.0.0 ids=0\n",
                       rows[i / 2].given, unknown);
        said_check(&play.said, rows[i / 2].given, want);
        bool const begun = rows[i / 2].kind == ROW_CALL_CLAIM && !unknown;
        CU_ASSERT_EQUAL(act->lost, begun ? 4 : 0);
        CHECK_STR("worker", act->lost_worker, begun ? "w-1" : "");
        CHECK_STR("report", act->lost_report, begun ? "tripped" : "");
        CU_ASSERT_EQUAL(thole_slice_equal(act->before, THOLE_STR("half")), begun);
        CU_ASSERT_EQUAL(thole_slice_equal(act->parties.orchestration, THOLE_STR("checkout")), begun);
        CU_ASSERT_EQUAL(play.host.details_round, unknown); /* details sent before may be lost */
        activity_destroy(act);
        said_clear(&play.said);
        end();
    }
}

/* ---- results ---- */

static struct thole_activity *published;

static void is_published(void)
{
    published->published_ok = true;
    published->publish_err_code = 0;
    mailbox_push(&play.host.inbox, &published->published.mail);
}

static void is_refused(void)
{
    said_check(&play.said, "stored",
               "published rows=0 unknown=0 ok=1 status=OK limit=0 kind= reason= of=#0.0.0 ids=0\n");
    published->published_ok = false;
    published->publish_err_code = 10077;
    mailbox_push(&play.host.inbox, &published->published.mail);
}

static void is_lost_soon(void)
{
    said_check(&play.said, "refused",
               "published rows=0 unknown=0 ok=0 status=OK limit=0 kind= reason= of=#0.0.0 ids=0\n");
    published->publish_err_code = 0;
    play.now_ms += 9999;
    mailbox_push(&play.host.inbox, &published->published.mail);
}

static void is_lost_later(void)
{
    said_clear(&play.said);
    play.now_ms += 1;
    mailbox_push(&play.host.inbox, &published->published.mail);
}

/* The server has said so to the connection alone. */
static void is_forbidden(void)
{
    thole_error error = {.status = THOLE_OK};
    (void)thole_fail(&error, THOLE_DENIED, "the NATS server forbids it: publish to a.b");
    play.host.nats.area = "worker";
    nats_watch_trouble(&play.host.nats, CONNECTION_FORBIDS, &error);
    play.now_ms += 10000;
    mailbox_push(&play.host.inbox, &published->published.mail);
}

static void test_published(void)
{
    begin();
    published = activity(9);
    char *const text =
        run((void (*const[])(void)){is_published, is_refused, is_lost_soon, is_lost_later, is_forbidden}, 5);
    const char *const first =
        strstr(text, "it is tried again: nats-server cannot store it: its disk is full");
    CU_ASSERT_PTR_NOT_NULL_FATAL(first);
    const char *const second = strstr(first, "it is tried again: NATS does not answer\"\n");
    CU_ASSERT_PTR_NOT_NULL_FATAL(second);
    const char *const third =
        strstr(second, "it is tried again: the NATS server forbids it: publish to a.b\"\n");
    CU_ASSERT_PTR_NOT_NULL_FATAL(third);
    CU_ASSERT_PTR_NULL(strstr(third + 1, "it is tried again"));
    free(text);
    activity_destroy(published);
    end();
}

/* ---- pushes, a stop ---- */

static void a_push_comes(void)
{
    static uint64_t const ids[] = {4, 5};
    struct push_mail *const push = calloc(1, sizeof *push);
    push->mail = (struct worker_mail){.kind = WORKER_MAIL_PUSH, .owner = push};
    arena_init(&push->arena, 1024);
    push->notice = (struct cancel_notice){.instance = THOLE_STR("order"),
                                          .execution = 2,
                                          .activity_ids = ids,
                                          .activity_ids_len = 2,
                                          .try_number = 3,
                                          .kind = THOLE_STR("requested"),
                                          .reason = THOLE_STR("why")};
    mailbox_push(&play.host.inbox, &push->mail.mail);
}

static void a_stop_comes(void)
{
    said_check(
        &play.said, "push",
        "pushed rows=0 unknown=0 ok=0 status=OK limit=0 kind=requested reason=why of=order#2.0.3 ids=2\n");
    play.host.stop = (struct worker_mail){.kind = WORKER_MAIL_STOP};
    mailbox_push(&play.host.inbox, &play.host.stop.mail);
}

static void test_push_and_stop(void)
{
    begin();
    free(run((void (*const[])(void)){a_push_comes, a_stop_comes}, 2));
    said_check(&play.said, "stop",
               "stop rows=0 unknown=0 ok=0 status=OK limit=1234 kind= reason= of=#0.0.0 ids=0\n");
    CU_ASSERT_TRUE(play.host.stopping);
    end();
}

static const struct thole_test tests[] = {
    {"how many are wanted", test_how_many_are_wanted},
    {"what comes again", test_what_comes_again},
    {"counters", test_counters},
    {"until when it waits", test_until_when_it_waits},
    {"ends", test_ends},
    {"a forged message", test_a_forged_message},
    {"one that still runs", test_one_that_still_runs},
    {"what it does not know", test_what_it_does_not_know},
    {"who is asked", test_who_is_asked},
    {"answers", test_answers},
    {"published", test_published},
    {"push and stop", test_push_and_stop},
};
THOLE_TEST_MAIN("worker_loop", tests)
