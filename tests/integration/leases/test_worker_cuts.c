/*
 * Workers are killed after each of their steps, around cancellations and around results; then workers and the
 * engine at once. Each step has a queue and a worker of its own, with proxies before both servers that hold
 * it there, and all die together. Whoever comes next runs again what has to be run again, and nothing that
 * was cancelled or done; one outcome counts, and nothing is left in the queue.
 */
#include "actors.h"
#include "api.h"
#include "cancels.h"
#include "jscan.h"
#include "reader.h"
#include "work_names.h"
#include <signal.h>

enum { EACH = 3, STEPS = 8, PASSES = 2, ALL = 2 * EACH, ID_BYTES = 80 };

/* Instances that want a result; of most cuts, as many again lose a race. */
struct cut {
    const char *name;
    bool loses;
    void (*hold)(struct cut *cut);  /* before there is work; may be NULL */
    void (*ready)(struct cut *cut); /* waits until its worker has the work */
    void (*reach)(struct cut *cut); /* the step */
    char queue[32];
    struct actor_worker net;
    struct stack_program *worker;
    bool done[ALL];   /* the result was recorded at the kill */
    size_t runs[ALL]; /* begun before the next worker came */
};

static struct stack_program *engine;
static unsigned pass; /* from 1; in the second the engine dies, too, and what was on its way may arrive */

/* The n-th instance; the first EACH lose. */
static const char *id_of(const struct cut *cut, size_t n)
{
    static char id[ID_BYTES];
    snprintf(id, sizeof id, "%s-%s%zu", cut->queue, n < EACH ? "lost" : "kept", n);
    return id;
}

static void check_count(const char *id, const char *what, size_t got, size_t want)
{
    CU_ASSERT_EQUAL(got, want);
    if (got != want)
        fprintf(stderr, "  [%s] %s: %zu instead of %zu\n", id, what, got, want);
}

static size_t first_of(const struct cut *cut)
{
    return cut->loses ? 0 : EACH;
}

typedef bool fact_fn(struct cut *cut);

static void until(struct cut *cut, const char *what, fact_fn *fact)
{
    uint64_t const end_ms = clock_monotonic_ms() + CANCELS_WAIT_MS;
    bool is = fact(cut);
    while (!is && clock_monotonic_ms() < end_ms) {
        pause_ms(2);
        is = fact(cut);
    }
    CU_ASSERT_TRUE(is);
    if (!is)
        fprintf(stderr, "  [%s] never: %s\n", cut->queue, what);
}

/* ---- the queue ---- */

static void consumer_target(const struct cut *cut, const char *more, char ret[API_SUBJECT_BYTES])
{
    struct work_names names;
    CHECK_OK(work_names_make("default", thole_slice_from(cut->queue), &names, &stack.err), &stack.err);
    snprintf(ret, API_SUBJECT_BYTES, "%s.%s%s%s", names.stream, names.consumer, more == NULL ? "" : ".",
             more == NULL ? "" : names.filter);
}

static void consumer_info(const struct cut *cut, struct buf *answer)
{
    char target[API_SUBJECT_BYTES];
    consumer_target(cut, NULL, target);
    buf_init(answer, API_ANSWER_MAX);
    CHECK_OK(api_call(connection, "CONSUMER.INFO", target, THOLE_STR(""), answer, NULL, &stack.err),
             &stack.err);
}

static bool all_are_delivered(struct cut *cut)
{
    struct buf answer;
    thole_slice pending;
    uint64_t n = 0;
    consumer_info(cut, &answer);
    CU_ASSERT_TRUE(json_find(buf_bytes(&answer), "num_ack_pending", &pending) && json_uint(pending, &n));
    buf_release(&answer);
    return n == ALL - first_of(cut);
}

/* The leases of the killed worker are over, long before their time. Its crash reporter has ended those of its
 * rows, unless it was cut off, too. */
static void end_leases(const struct cut *cut)
{
    (void)cancels_sql("WITH ended AS (UPDATE thole_default.worker_queue SET lease_until = now()"
                      " WHERE queue = '%s' AND worker IS NOT NULL RETURNING 1) SELECT count(*) FROM ended",
                      cut->queue);
    char target[API_SUBJECT_BYTES], body[4096];
    struct buf info, answer;
    thole_slice config, ack_wait;
    consumer_info(cut, &info);
    consumer_target(cut, "filter", target);
    buf_init(&answer, API_ANSWER_MAX);
    bool const found =
        json_find(buf_bytes(&info), "config", &config) && json_find(config, "ack_wait", &ack_wait);
    CU_ASSERT_TRUE(found);
    if (found) {
        const uint8_t *const behind = ack_wait.ptr + ack_wait.len;
        snprintf(
            body, sizeof body,
            "{\"stream_name\":\"THOLE_default_WORK\",\"action\":\"update\",\"config\":%.*s1000000000%.*s}",
            (int)(ack_wait.ptr - config.ptr), (const char *)config.ptr,
            (int)(config.ptr + config.len - behind), (const char *)behind);
        CHECK_OK(api_call(connection, "CONSUMER.CREATE", target, thole_slice_from(body), &answer, NULL,
                          &stack.err),
                 &stack.err);
    }
    buf_release(&info);
    buf_release(&answer);
}

/* ---- rows and events of a cut ---- */

static bool some_are_claimed(struct cut *cut)
{
    return cancels_sql("SELECT count(*) FROM thole_default.worker_queue WHERE queue = '%s' AND attempt > 0",
                       cut->queue) > 0;
}

/* Whoever completes an activity holds its row, deleted and not committed. */
static bool some_are_held(struct cut *cut)
{
    return cancels_sql("SELECT count(*) - (SELECT count(*) FROM (SELECT 1 FROM thole_default.worker_queue"
                       " WHERE queue = '%s' FOR UPDATE SKIP LOCKED) AS free)"
                       " FROM thole_default.worker_queue WHERE queue = '%s'",
                       cut->queue, cut->queue) > 0;
}

static bool some_are_gone(struct cut *cut)
{
    return cancels_sql("SELECT count(*) FROM thole_default.worker_queue WHERE queue = '%s'", cut->queue) <
           ALL - first_of(cut);
}

static bool some_are_recorded(struct cut *cut)
{
    for (size_t n = first_of(cut); n < ALL; n++)
        if (cancels_events(id_of(cut, n), "ActivityCompleted", NULL, NULL) > 0)
            return true;
    return false;
}

static bool losses_are_recorded(struct cut *cut)
{
    for (size_t n = first_of(cut); n < EACH; n++)
        if (cancels_events(id_of(cut, n), "ActivityCancelled", "select_loser", NULL) == 0)
            return false;
    return true;
}

static bool losers_are_gone(struct cut *cut)
{
    return cancels_sql("SELECT count(*) FROM thole_default.worker_queue WHERE instance LIKE '%s-lost%%'",
                       cut->queue) == 0;
}

static bool losers_are_withdrawn(struct cut *cut)
{
    for (size_t n = first_of(cut); n < EACH; n++)
        if (cancels_queued(id_of(cut, n)))
            return stack_count(engine->log, "closed: ") > 0; /* on a busy machine: then nobody knows where */
    return true;
}

static bool done_are_gone(struct cut *cut)
{
    size_t rows = 0;
    for (size_t n = first_of(cut); n < ALL; n++)
        rows += cut->done[n] ? cancels_rows(id_of(cut, n)) : 0;
    return rows == 0;
}

static thole_status note_queue(void *arg, const thole_queue_info *info)
{
    *(thole_queue_info *)arg = *info;
    return THOLE_OK;
}

static thole_queue_info queue_of(const struct cut *cut)
{
    thole_queue_info info = {.waiting = 0};
    CHECK_OK(thole_client_queues(client, thole_slice_from(cut->queue), note_queue, &info, &stack.err),
             &stack.err);
    return info;
}

static bool its_worker_is_silent(struct cut *cut)
{
    thole_queue_info const info = queue_of(cut);
    return info.running == 0 && info.waiting == EACH && info.workers_len == 1;
}

/* ---- steps ---- */

static void hold_claims(struct cut *cut)
{
    tcp_proxy_stall(cut->net.postgres, TCP_TO_SERVER);
}

static void hold_claimed(struct cut *cut)
{
    tcp_proxy_stall(cut->net.postgres, TCP_TO_CLIENT);
}

static void until_delivered(struct cut *cut)
{
    until(cut, "delivered", all_are_delivered);
}

static void until_claimed(struct cut *cut)
{
    until(cut, "claimed", some_are_claimed);
    until(cut, "delivered", all_are_delivered);
}

static void until_begun(struct cut *cut)
{
    for (size_t n = first_of(cut); n < ALL; n++)
        cancels_until(id_of(cut, n), "begins", 1);
}

static void lose(struct cut *cut)
{
    for (size_t n = first_of(cut); n < EACH; n++)
        cancels_signal(id_of(cut, n), "go");
    until(cut, "recorded losses", losses_are_recorded);
}

static void lose_rows(struct cut *cut)
{
    lose(cut);
    if (pass == 1) /* else the engine dies wherever it is */
        until(cut, "losers' rows gone", losers_are_gone);
}

static void lose_unclaimed(struct cut *cut)
{
    lose_rows(cut);
    if (pass == 1)
        until(cut, "losers' messages withdrawn", losers_are_withdrawn);
}

static void lose_without_push(struct cut *cut)
{
    tcp_proxy_stall(cut->net.nats, TCP_TO_CLIENT);
    lose_rows(cut);
}

static void lose_until_told(struct cut *cut)
{
    lose(cut);
    CU_ASSERT_TRUE(stack_logged(cut->worker, "token fired: path=push", pass * EACH, CANCELS_WAIT_MS));
}

static void allow(struct cut *cut)
{
    for (size_t n = ALL; n-- > first_of(cut);)
        cancels_allow(id_of(cut, n));
}

/* The handlers have returned, and nobody knows it. */
static void return_unseen(struct cut *cut)
{
    tcp_proxy_stall(cut->net.postgres, TCP_TO_SERVER);
    allow(cut);
    for (size_t n = first_of(cut); n < ALL; n++)
        cancels_until(id_of(cut, n), "returns", 1);
    lose_rows(cut);
}

/* The results do not reach the stream. What loses now has lost. */
static void return_unpublished(struct cut *cut)
{
    tcp_proxy_stall(cut->net.nats, TCP_TO_SERVER);
    allow(cut);
    until(cut, "rows deleted and not committed", some_are_held);
    lose(cut);
}

/* The worker does not hear that they are stored. */
static void return_uncommitted(struct cut *cut)
{
    tcp_proxy_stall(cut->net.nats, TCP_TO_CLIENT);
    allow(cut);
    until(cut, "recorded results", some_are_recorded);
}

/* The worker gets the answer, but its acknowledgement is lost. */
static void return_unacknowledged(struct cut *cut)
{
    return_uncommitted(cut);
    tcp_proxy_stall(cut->net.nats, TCP_TO_SERVER);
    until(cut, "rows deleted", some_are_gone);
}

/* Those that keep the rows of a partition from being changed come last. */
static struct cut cuts[STEPS] = {
    {"delivered", true, hold_claims, until_delivered, lose_unclaimed},
    {"claimed", true, hold_claimed, until_claimed, lose_rows},
    {"running", true, NULL, until_begun, lose_without_push},
    {"grace", true, NULL, until_begun, lose_until_told},
    {"returned", true, NULL, until_begun, return_unseen},
    {"unacknowledged", false, NULL, until_begun, return_unacknowledged},
    {"unpublished", true, NULL, until_begun, return_unpublished},
    {"uncommitted", false, NULL, until_begun, return_uncommitted},
};

/* ---- a pass ---- */

static void start_worker(struct cut *cut, const char *lease)
{
    char queue[48], nats[160], postgres[200];
    snprintf(queue, sizeof queue, "--queue=%s", cut->queue);
    snprintf(nats, sizeof nats, "--nats=%s", cut->net.nats_url);
    snprintf(postgres, sizeof postgres, "--postgres=%s", cut->net.postgres_url);
    cut->worker = stack_program_with(&stack, "program_cancels", cut->name, "worker", queue, nats, postgres,
                                     "--grace=1h", lease, NULL);
}

static void start(struct cut *cut)
{
    for (size_t i = 0; i < ALL; i++) {
        size_t const n = pass == 1 ? i : ALL - 1 - i; /* of the first one comes first what it claims */
        if (n >= first_of(cut))
            cancels_start(id_of(cut, n), n < EACH ? "races" : "all", cut->queue, "rude", 1);
    }
}

static void start_all(void)
{
    for (size_t i = 0; i < STEPS; i++) {
        struct cut *const cut = &cuts[i];
        snprintf(cut->queue, sizeof cut->queue, "%s-%u", cut->name, pass);
        actor_options(&cut->net, &stack, cut->queue, 0);
        actor_proxies(&cut->net, &stack);
        start_worker(cut, "--lease=1h");
    }
    for (size_t i = 0; i < STEPS; i++) {
        CU_ASSERT_TRUE(stack_logged(cuts[i].worker, "serving", cuts[i].worker->lives, CANCELS_WAIT_MS));
        if (cuts[i].hold != NULL)
            cuts[i].hold(&cuts[i]);
        start(&cuts[i]);
    }
    for (size_t i = 0; i < STEPS; i++)
        cuts[i].ready(&cuts[i]);
}

/* Nothing of the killed worker's arrives any more, or what the proxies have of it. */
static void heal(struct cut *cut)
{
    if (pass == 1) {
        tcp_proxy_cut(cut->net.nats);
        tcp_proxy_cut(cut->net.postgres);
    }
    tcp_proxy_heal(cut->net.nats);
    tcp_proxy_heal(cut->net.postgres);
}

static void kill_all(void)
{
    for (size_t i = 0; i < STEPS; i++)
        kill(cuts[i].worker->pid, SIGKILL); /* all at once */
    if (pass == 2)
        stack_kill9(engine);
    /* Not by stack_kill9(): what is still dying has its crash reporter as a child, which would be killed,
     * too. */
    for (size_t i = 0; i < STEPS; i++)
        while (stack_ended(cuts[i].worker) < 0)
            pause_ms(1);
    for (size_t i = 0; i < STEPS; i++)
        for (size_t n = first_of(&cuts[i]); n < ALL; n++)
            cuts[i].done[n] = cancels_events(id_of(&cuts[i], n), "ActivityCompleted", NULL, NULL) > 0;
    if (pass == 2)
        engine = cancels_engine("engine");
    for (size_t i = 0; i < STEPS; i++)
        heal(&cuts[i]);
}

static void go_on(void)
{
    for (size_t i = 0; i < STEPS; i++) {
        struct cut *const cut = &cuts[i];
        until(cut, "losers' rows gone", losers_are_gone);
        until(cut, "rows of results gone", done_are_gone);
        for (size_t n = first_of(cut); n < ALL; n++)
            cut->runs[n] = cancels_noted(id_of(cut, n), "begins");
        allow(cut);
        if (cut->reach == lose_without_push) /* the rest has a worker, as long as its lease lasts */
            check_count(cut->queue, "running", queue_of(cut).running, EACH);
        end_leases(cut);
        if (cut->reach == lose_without_push)
            until(cut, "its worker is silent", its_worker_is_silent);
        start_worker(cut, NULL);
    }
}

/* One event has resolved its activity. */
static void check_resolved(const char *id, const char *kind)
{
    static const char *const kinds[] = {"ActivityCompleted", "ActivityCancelled", "ActivityFailed"};
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
        check_count(id, kinds[i], cancels_events(id, kinds[i], NULL, NULL), strcmp(kinds[i], kind) == 0);
}

static bool nothing_was_published(const struct cut *cut)
{
    return cut->loses && (pass == 1 || cut->reach != return_unpublished); /* there it may come late */
}

static void check_cut(struct cut *cut)
{
    bool const begun = cut->ready == until_begun;
    for (size_t n = first_of(cut); n < ALL; n++) {
        const char *const id = id_of(cut, n);
        bool const lost = n < EACH;
        if (lost)
            cancels_signal(id, "end");
        cancels_outcome(id, THOLE_INSTANCE_COMPLETED, lost ? "it was too slow" : "all");
        cancels_until_gone(id);
        check_resolved(id, lost ? "ActivityCancelled" : "ActivityCompleted");
        check_count(id, "runs before the kill", cut->runs[n], begun);
        if (lost || cut->done[n]) /* never again */
            check_count(id, "runs", cancels_noted(id, "begins"), begun);
        else if (nothing_was_published(cut))
            cancels_until(id, "begins", begun + 1);
    }
}

static void test_pass(unsigned number)
{
    struct stream_bounds bounds = {.messages = 1};
    pass = number;
    start_all();
    for (size_t i = 0; i < STEPS; i++)
        cuts[i].reach(&cuts[i]);
    kill_all();
    go_on();
    for (size_t i = 0; i < STEPS; i++)
        check_cut(&cuts[i]);
    CHECK_OK(stream_bounds(connection, "THOLE_default_WORK", &bounds, &stack.err), &stack.err);
    CU_ASSERT_EQUAL(bounds.messages, 0);
    CU_ASSERT_EQUAL(cancels_rows(NULL), 0);
    for (size_t i = 0; i < STEPS; i++) {
        stack_kill9(cuts[i].worker);
        actor_stop(&cuts[i].net);
    }
}

static void test_workers_die(void)
{
    test_pass(1);
}

static void test_workers_and_the_engine_die(void)
{
    test_pass(2);
}

static const struct thole_test tests[PASSES] = {
    {"workers die", test_workers_die},
    {"workers and the engine die", test_workers_and_the_engine_die},
};

int main(void)
{
    cancels_open();
    engine = &stack.programs[0];
    int const failed = thole_run_suite("worker_cuts", tests, PASSES);
    cancels_close();
    return failed;
}
