/* The gateway role against real servers: the test is the worker, and does what the engine would do. */
#include "api.h"
#include "gateway_worker.h"
#include "jscan.h"
#include "topology.h"
#include "wrap_claims.h"
#include <inttypes.h>
#include <libpq-fe.h>

/* ---- a task ---- */

static void test_a_task_is_done(void)
{
    struct worker_session session;
    begin("done");
    open_session(&session, "py", 2);
    stage_schedule(&stage, "order 1/ä", 7, "pay", "hello");
    const char *const task = next_task(&session, 5000);
    same("claim", answer_at(task, "claim"), "1");
    same("activity", answer_at(task, "activity"), "pay");
    same("instance", answer_at(task, "instance"), "order 1/ä");
    same("input", answer_at(task, "input"), "aGVsbG8=");
    same("key", answer_at(task, "key"), "order%201%2F%C3%A4.1.7");
    same("execution", answer_at(task, "execution"), "1");
    same("id", answer_at(task, "activityId"), "7");
    same("try", answer_at(task, "tryNumber"), "1");
    same("attempt", answer_at(task, "attempt"), "1");
    same("timeout", answer_at(task, "timeoutMs"), "");
    same("queue", answer_at(task, "queue"), "default");
    CU_ASSERT_EQUAL(complete(&session, "1", "\"output\":\"b2s=\""), 0);
    CU_ASSERT_EQUAL(stage_results(&stage, "order 1/ä", 1, 5000), 1);
    same("output", stage_last.data, "ok");
    CU_ASSERT_EQUAL(complete(&session, "1", "\"output\":\"b2s=\""), 0); /* the answer was lost */
    CU_ASSERT_EQUAL(complete(&session, "2", "\"output\":\"b2s=\""), THOLE_FENCED);
    CU_ASSERT_EQUAL(complete(&session, "01", "\"output\":\"b2s=\""), THOLE_FENCED);
    CU_ASSERT_EQUAL(complete(&session, "-1", "\"output\":\"b2s=\""), THOLE_FENCED);
    CU_ASSERT_TRUE(stage_drained(&stage, 2000));
    CU_ASSERT_EQUAL(stage_results(&stage, "order 1/ä", 1, 0), 1);
    close_session(&session);
    CU_ASSERT_EQUAL(status_of(renew(&session, "")), THOLE_NOT_FOUND);
    end();
}

static void test_failures(void)
{
    struct worker_session session;
    begin("failed");
    open_session(&session, "py", 2);
    stage_schedule(&stage, "i", 1, "pay", "");
    (void)next_task(&session, 5000);
    CU_ASSERT_EQUAL(
        complete(&session, "1", "\"failure\":{\"text\":\"no\",\"type\":\"declined\",\"final\":true}"), 0);
    CU_ASSERT_EQUAL(stage_results(&stage, "i", 1, 5000), 1);
    same("text", stage_last.data, "no");
    same("type", stage_last.error_type, "declined");
    CU_ASSERT_TRUE(stage_last.final);
    stage_schedule(&stage, "i", 2, "ship", "");
    (void)next_task(&session, 5000);
    CU_ASSERT_EQUAL(complete(&session, "2", "\"failure\":{}"), 0);
    CU_ASSERT_EQUAL(stage_results(&stage, "i", 2, 5000), 2);
    CU_ASSERT_EQUAL(stage_last.status, THOLE_APP);
    CU_ASSERT_FALSE(stage_last.final);
    stage_schedule(&stage, "i", 3, "ship", "");
    (void)next_task(&session, 5000);
    CU_ASSERT_EQUAL(complete(&session, "3", "\"cancelled\":true"), 0); /* by nobody */
    CU_ASSERT_EQUAL(stage_results(&stage, "i", 3, 5000), 3);
    same("text", stage_last.data, "the handler returned CANCELLED, but nothing had cancelled it");
    close_session(&session);
    end();
}

/* One that is none becomes one, and an outcome that cannot be read does not fail the others. */
static void test_texts(void)
{
    struct worker_session session;
    begin("texts");
    open_session(&session, "py", 2);
    stage_schedule(&stage, "i", 1, "pay", "");
    (void)next_task(&session, 5000);
    stage_schedule(&stage, "i", 2, "pay", "");
    (void)next_task(&session, 5000);
    const char *answer =
        ask(operation(&session, "complete"),
            "{\"outcomes\":[{\"claim\":\"1\",\"output\":\"?\"},{\"claim\":\"2\",\"failure\":{"
            "\"text\":\"a\\u0000b\\ud800\",\"type\":\"a\\u0000\"}}]}");
    CU_ASSERT_EQUAL(status_of(answer), 0);
    same("1", answer_at(answer_item(answer, "results", 0), "status"), "2");
    same("why", answer_at(answer_item(answer, "results", 0), "text"), "output is not base64");
    same("2", answer_at(answer_item(answer, "results", 1), "status"), "");
    CU_ASSERT_EQUAL(stage_results(&stage, "i", 1, 5000), 1);
    CU_ASSERT_EQUAL(stage_last.status, THOLE_APP);
    same("text", stage_last.data, "a?b?");
    same("type", stage_last.error_type, "");
    CU_ASSERT_EQUAL(complete(&session, "1", "\"output\":\"b2s=\""), 0);
    stage_schedule(&stage, "i", 3, "pay", "");
    (void)next_task(&session, 5000);
    CU_ASSERT_EQUAL(
        complete(&session, "3", "\"failure\":{\"text\":\"no\"},\"heartbeat\":true,\"details\":\"YXQgMw==\""),
        0);
    CU_ASSERT_EQUAL(stage_results(&stage, "i", 3, 5000), 3);
    same("details", stage_last.details, "at 3");
    close_session(&session);
    end();
}

/* As many as there are slots, in one answer; the rest when slots are free. */
static void test_slots(void)
{
    struct worker_session session;
    begin("slots");
    open_session(&session, "py", 3);
    for (uint64_t i = 1; i <= 5; i++)
        stage_schedule(&stage, "i", i, "pay", "");
    stage_pause_ms(300);
    const char *answer = ask(operation(&session, "next"), "{\"max\":2,\"waitMs\":1000}");
    same("second", answer_at(answer_item(answer, "tasks", 1), "claim"), "2");
    same("third", answer_item(answer, "tasks", 2), "");
    same("its slot", answer_at(next_task(&session, 1000), "claim"), "3");
    same("no slot", next_task(&session, 300), "");
    CU_ASSERT_EQUAL(complete(&session, "2", "\"output\":\"\""), 0);
    same("a slot", answer_at(next_task(&session, 5000), "claim"), "4");
    answer = ask(operation(&session, "complete"),
                 "{\"outcomes\":[{\"claim\":\"1\"},{\"claim\":\"9\"},{\"claim\":\"3\"},{\"claim\":\"4\"}]}");
    same("1", answer_at(answer_item(answer, "results", 0), "status"), "");
    same("9", answer_at(answer_item(answer, "results", 1), "status"), "14");
    same("4", answer_at(answer_item(answer, "results", 3), "status"), "");
    same("the last", answer_at(next_task(&session, 5000), "claim"), "5");
    CU_ASSERT_EQUAL(complete(&session, "5", "\"output\":\"\""), 0);
    CU_ASSERT_EQUAL(stage_results(&stage, "i", 5, 5000), 5);
    close_session(&session);
    end();
}

/* ---- leases ---- */

static void test_a_lease_is_renewed(void)
{
    struct worker_session session, other;
    begin("renewed");
    open_session(&session, "py", 1);
    stage_schedule(&stage, "i", 1, "pay", "");
    same("claim", answer_at(next_task(&session, 5000), "claim"), "1");
    open_session(&other, "other", 1);
    renew_for(&session, "1", STAGE_LEASE_MS * 5 / 2);
    CU_ASSERT_EQUAL(status_of(renew(&other, "")), THOLE_NOT_FOUND); /* was silent for a lease */
    CU_ASSERT_EQUAL(complete(&session, "1", "\"output\":\"\""), 0);
    CU_ASSERT_EQUAL(stage_results(&stage, "i", 1, 5000), 1);
    CU_ASSERT_EQUAL(stage_last.attempt, 1);
    forget_session(&other);
    close_session(&session);
    end();
}

static const char *lost(void)
{
    static char text[64];
    char sql[200];
    PGconn *const conn = PQconnectdb(stage.postgres.url);
    (void)snprintf(sql, sizeof sql,
                   "SELECT coalesce(cardinality(lost), 0) || ' ' || coalesce(lost_worker ~ '^dead-', false)"
                   " FROM \"thole_%s\".worker_queue",
                   stage.ns);
    PGresult *const result = PQexec(conn, sql);
    (void)snprintf(text, sizeof text, "%s", PQntuples(result) == 1 ? PQgetvalue(result, 0, 0) : "no row");
    PQclear(result);
    PQfinish(conn);
    return text;
}

/* The worker's tasks go to others at once, as those of a worker that died: with the loss, and its last
 * words. */
static void test_a_worker_dies(void)
{
    struct worker_session dead, other;
    begin("dead");
    open_session(&dead, "dead", 1);
    stage_schedule(&stage, "i", 1, "pay", "");
    same("claim", answer_at(next_task(&dead, 5000), "claim"), "1");
    (void)renew(&dead, "{\"claim\":\"1\",\"heartbeat\":true,\"details\":\"cGFnZSAz\"}");
    stage_pause_ms(1500); /* until a renewal of the row has stored it */
    (void)renew(&dead, "{\"claim\":\"1\"}");
    uint64_t const silent_ms = clock_monotonic_ms();
    open_session(&other, "other", 1);
    const char *task = "";
    while (task[0] == '\0' && clock_monotonic_ms() < silent_ms + 4 * STAGE_LEASE_MS)
        task = next_task(&other, 500);
    uint64_t const took_ms = clock_monotonic_ms() - silent_ms;
    fprintf(stderr, "\n  taken over %u ms after its last word, lease %d ms\n", (unsigned)took_ms,
            STAGE_LEASE_MS);
    CU_ASSERT_TRUE(took_ms >= STAGE_LEASE_MS - 50 && took_ms < STAGE_LEASE_MS + 2000);
    same("attempt", answer_at(task, "attempt"), "2");
    same("details", answer_at(task, "details"), "cGFnZSAz");
    same("loss", lost(), "1 true");
    CU_ASSERT_EQUAL(complete(&dead, "1", "\"output\":\"\""), 100 + THOLE_NOT_FOUND);
    CU_ASSERT_EQUAL(complete(&other, "1", "\"output\":\"\""), 0);
    CU_ASSERT_EQUAL(stage_results(&stage, "i", 1, 5000), 1);
    CU_ASSERT_EQUAL(stage_last.attempt, 2);
    forget_session(&dead);
    close_session(&other);
    end();
}

/* A `next` waits, and nobody waits for the answer: others get the tasks, long before the lease ends. */
static void test_a_worker_hears_nothing(void)
{
    struct worker_session dead, other;
    struct header const header = {"Content-Type", THOLE_STR("application/json")};
    begin("unheard");
    open_session(&dead, "dead", 4);
    CHECK_OK(connection_publish_asking(worker, operation(&dead, "next"), "_INBOX.thole.gone", &header, 1,
                                       THOLE_STR("{\"max\":4,\"waitMs\":10000}"), &stage.err),
             &stage.err);
    stage_pause_ms(300);
    open_session(&other, "other", 8);
    uint64_t const begin_ms = clock_monotonic_ms();
    for (uint64_t i = 1; i <= 6; i++)
        stage_schedule(&stage, "i", i, "pay", "");
    unsigned n = 0;
    char claim[1024];
    while (n < 6 && clock_monotonic_ms() < begin_ms + 2 * STAGE_LEASE_MS) {
        const char *const answer = ask(operation(&other, "next"), "{\"max\":1,\"waitMs\":500}");
        (void)snprintf(claim, sizeof claim, "%s", answer_at(answer_item(answer, "tasks", 0), "claim"));
        if (claim[0] != '\0')
            n += complete(&other, claim, "\"output\":\"\"") == 0;
    }
    uint64_t const took_ms = clock_monotonic_ms() - begin_ms;
    fprintf(stderr, "\n  6 tasks beside a dead worker took %u ms, lease %d ms\n", (unsigned)took_ms,
            STAGE_LEASE_MS);
    CU_ASSERT_EQUAL(stage_results(&stage, "i", 6, 2000), 6);
    CU_ASSERT_TRUE(took_ms < STAGE_LEASE_MS - 1000);
    same("loss", lost(), "no row");
    close_session(&other);
    stage_schedule(&stage, "i", 7, "pay", "");
    same("it asks again", answer_at(next_task(&dead, 2000), "activity"), "pay");
    close_session(&dead);
    end();
}

/* The answer with the task was lost: it is not among what runs, and comes again under the same claim. */
static void test_a_task_has_not_arrived(void)
{
    struct worker_session session;
    begin("arrived");
    open_session(&session, "py", 1);
    stage_schedule(&stage, "i", 1, "pay", "");
    same("claim", answer_at(next_task(&session, 5000), "claim"), "1");
    (void)renew(&session, ""); /* may have crossed the answer */
    same("on its way", next_task(&session, 200), "");
    stage_pause_ms(1000);
    (void)renew(&session, "");
    same("again", answer_at(next_task(&session, 1000), "claim"), "1");
    stage_pause_ms(1000);
    (void)renew(&session, "{\"claim\":\"1\"}");
    same("it has arrived", next_task(&session, 200), "");
    CU_ASSERT_EQUAL(complete(&session, "1", "\"output\":\"\""), 0);
    CU_ASSERT_EQUAL(stage_results(&stage, "i", 1, 5000), 1);
    CU_ASSERT_EQUAL(stage_last.attempt, 1);
    close_session(&session);
    end();
}

/* The row went to another worker, as after a partition of the network that this gateway did not see. */
static void test_a_lease_is_lost(void)
{
    struct worker_session session;
    char sql[160];
    begin("lost");
    open_session(&session, "py", 1);
    stage_schedule(&stage, "i", 1, "pay", "");
    same("claim", answer_at(next_task(&session, 5000), "claim"), "1");
    PGconn *const conn = PQconnectdb(stage.postgres.url);
    (void)snprintf(sql, sizeof sql,
                   "UPDATE \"thole_%s\".worker_queue SET worker = 'thief', attempt = attempt + 1,"
                   " lease_until = clock_timestamp() + interval '1 h'",
                   stage.ns);
    PQclear(PQexec(conn, sql));
    PQfinish(conn);
    CU_ASSERT_TRUE(await_notices(&session, 1, STAGE_LEASE_MS));
    same("kind", answer_at(session.notices[0], "kind"), "lease_lost");
    const char *const renewed = renew(&session, "{\"claim\":\"1\"}");
    same("told again", answer_at(answer_item(renewed, "cancelled", 0), "kind"), "lease_lost");
    CU_ASSERT_EQUAL(complete(&session, "1", "\"output\":\"\""), THOLE_FENCED);
    CU_ASSERT_EQUAL(stage_results(&stage, "i", 1, 300), 0);
    close_session(&session);
    end();
}

/* ---- cancellation ---- */

static void test_cancelled(void)
{
    struct worker_session session;
    begin("cancelled");
    open_session(&session, "py", 3);
    for (uint64_t i = 1; i <= 3; i++)
        stage_schedule(&stage, "i", i, "pay", "");
    for (unsigned n = 0; n < 3; n++)
        CU_ASSERT_STRING_NOT_EQUAL(
            answer_item(ask(operation(&session, "next"), "{\"max\":1,\"waitMs\":5000}"), "tasks", 0), "");
    /* ends because of it */
    stage_row(&stage, "i", 1, "pay", false);
    uint64_t const pushed_us = stage_now_us();
    stage_push(&stage, "i", 1);
    CU_ASSERT_TRUE(await_notices(&session, 1, 2000));
    fprintf(stderr, "\n  notice %u us after the push\n", (unsigned)(stage_now_us() - pushed_us));
    same("kind", answer_at(session.notices[0], "kind"), "requested");
    same("reason", answer_at(session.notices[0], "reason"), "not needed");
    CU_ASSERT_TRUE(strtoul(answer_at(session.notices[0], "graceMs"), NULL, 10) > 900);
    char claim[16];
    (void)snprintf(claim, sizeof claim, "%s", answer_at(session.notices[0], "claim"));
    CU_ASSERT_EQUAL(complete(&session, claim, "\"cancelled\":true"), 0);
    /* ignores it, and succeeds: nobody wants that */
    stage_row(&stage, "i", 2, "pay", false);
    stage_push(&stage, "i", 2);
    CU_ASSERT_TRUE(await_notices(&session, 2, 2000));
    (void)snprintf(claim, sizeof claim, "%s", answer_at(session.notices[1], "claim"));
    CU_ASSERT_EQUAL(complete(&session, claim, "\"output\":\"\""), THOLE_FENCED);
    /* is never heard of again: its slot is free after its grace, when the worker was told that it is gone */
    stage_row(&stage, "i", 3, "pay", false);
    stage_push(&stage, "i", 3);
    CU_ASSERT_TRUE(await_notices(&session, 3, 2000));
    (void)snprintf(claim, sizeof claim, "{\"claim\":\"%s\"}", answer_at(session.notices[2], "claim"));
    stage_pause_ms(1500);
    same("gone", answer_item(renew(&session, claim), "gone", 0)[0] == '"' ? "gone" : "", "gone");
    same("nothing", answer_item(renew(&session, ""), "cancelled", 0), "");
    CU_ASSERT_TRUE(stage_drained(&stage, 2000));
    CU_ASSERT_EQUAL(stage_results(&stage, "i", 1, 200), 0);
    for (uint64_t i = 4; i <= 6; i++)
        stage_schedule(&stage, "i", i, "pay", "");
    size_t given = 0; /* all three slots, in one answer or several */
    for (unsigned n = 0; n < 3 && given < 3; n++) {
        const char *const answer = ask(operation(&session, "next"), "{\"max\":8,\"waitMs\":3000}");
        for (size_t i = 0; answer_item(answer, "tasks", i)[0] != '\0'; i++)
            given++;
    }
    CU_ASSERT_EQUAL(given, 3);
    forget_session(&session);
    end();
}

/* A task that nobody has fetched is cancelled, and its slot is free at once. */
static void test_cancelled_before_it_is_fetched(void)
{
    struct worker_session session;
    begin("unfetched");
    open_session(&session, "py", 1);
    stage_schedule(&stage, "i", 1, "pay", "");
    stage_pause_ms(500);
    stage_row(&stage, "i", 1, "pay", false);
    stage_push(&stage, "i", 1);
    CU_ASSERT_TRUE(stage_drained(&stage, 3000));
    stage_schedule(&stage, "i", 2, "ship", "");
    same("the next", answer_at(next_task(&session, 5000), "activityId"), "2");
    CU_ASSERT_EQUAL(count_notices(&session), 0);
    CU_ASSERT_EQUAL(complete(&session, "2", "\"output\":\"\""), 0);
    close_session(&session);
    end();
}

static void test_timeout(void)
{
    struct worker_session session;
    begin("timeout");
    open_session(&session, "py", 1);
    stage_schedule_try(&stage, "i", 1, (struct stage_try){.number = 1, .timeout_ms = 700, .details = ""},
                       "pay", "");
    unsigned const left_ms = (unsigned)strtoul(answer_at(next_task(&session, 5000), "timeoutMs"), NULL, 10);
    CU_ASSERT_TRUE(left_ms > 300 && left_ms <= 700);
    CU_ASSERT_TRUE(await_notices(&session, 1, 3000));
    same("kind", answer_at(session.notices[0], "kind"), "timeout");
    CU_ASSERT_EQUAL(complete(&session, "1", "\"output\":\"\""),
                    0); /* done on its part: the timeout is stored */
    CU_ASSERT_EQUAL(stage_results(&stage, "i", 1, 5000), 1);
    CU_ASSERT_EQUAL(stage_last.status, THOLE_TIMEOUT);
    close_session(&session);
    end();
}

/* ---- the end ---- */

struct closing {
    const struct worker_session *session;
    unsigned limit_ms, status;
    uint64_t took_ms;
};

static void *close_main(void *arg)
{
    struct closing *const closing = arg;
    struct buf answer;
    char subject[300], body[64];
    struct header const header = {"Content-Type", THOLE_STR("application/json")};
    uint64_t const from_ms = clock_monotonic_ms();
    (void)snprintf(subject, sizeof subject, "%s.close", closing->session->subject);
    (void)snprintf(body, sizeof body, "{\"limitMs\":%u}", closing->limit_ms);
    buf_init(&answer, 4096);
    thole_status const status =
        connection_request_with(worker, subject, &header, 1, thole_slice_from(body), &answer, NULL);
    closing->status = status == THOLE_OK ? status_of(buf_cstr(&answer)) : 99;
    closing->took_ms = clock_monotonic_ms() - from_ms;
    buf_release(&answer);
    return NULL;
}

static void test_closed(void)
{
    struct worker_session session;
    pthread_t thread;
    begin("closed");
    open_session(&session, "py", 2);
    stage_schedule(&stage, "i", 1, "pay", "");
    stage_schedule(&stage, "i", 2, "ship", "");
    const char *task = next_task(&session, 5000);
    CU_ASSERT_STRING_NOT_EQUAL(task, "");
    stage_pause_ms(300); /* the second one has a slot, and may not have been fetched */
    struct closing closing = {.session = &session, .limit_ms = 1500};
    CU_ASSERT_EQUAL(pthread_create(&thread, NULL, close_main, &closing), 0);
    stage_pause_ms(300);
    CU_ASSERT_EQUAL(status_of(ask(operation(&session, "next"), "{}")), THOLE_UNAVAILABLE);
    CU_ASSERT_EQUAL(complete(&session, "1", "\"output\":\"\""), 0);
    CU_ASSERT_TRUE(stage_has_result(&stage, "i", 2000));
    (void)pthread_join(thread, NULL);
    CU_ASSERT_EQUAL(closing.status, 0);
    fprintf(stderr, "\n  closed after %u ms\n", (unsigned)closing.took_ms);
    CU_ASSERT_TRUE(closing.took_ms < 6000);
    forget_session(&session);
    open_session(&session, "next", 2); /* unfinished tasks are handed back */
    same("the other", answer_at(next_task(&session, 5000), "activityId"), "2");
    CU_ASSERT_EQUAL(complete(&session, "1", "\"output\":\"\""), 0);
    close_session(&session);
    end();
}

static void *stop_main(void *arg)
{
    (void)arg;
    gateway_host_stop(gateway);
    return NULL;
}

/* Running tasks may end; other requests are told to go to another gateway. */
static void test_a_gateway_stops(void)
{
    struct worker_session session;
    pthread_t thread;
    begin("stops");
    open_session(&session, "py", 1);
    stage_schedule(&stage, "i", 1, "pay", "");
    same("claim", answer_at(next_task(&session, 5000), "claim"), "1");
    CU_ASSERT_EQUAL(pthread_create(&thread, NULL, stop_main, NULL), 0);
    stage_pause_ms(300);
    CU_ASSERT_EQUAL(status_of(ask(operation(&session, "next"), "{}")), THOLE_UNAVAILABLE);
    same("no other gateway", ask(open_subject(), "{\"worker\":\"w\",\"slots\":1,\"activities\":[\"pay\"]}"),
         "");
    CU_ASSERT_EQUAL(status_of(renew(&session, "{\"claim\":\"1\"}")), 0);
    CU_ASSERT_EQUAL(complete(&session, "1", "\"output\":\"\""), 0);
    (void)pthread_join(thread, NULL);
    CU_ASSERT_EQUAL(stage_results(&stage, "i", 1, 1000), 1);
    gateway = NULL;
    forget_session(&session);
    end();
}

/* ---- requests ---- */

static void test_wrong_requests(void)
{
    static const struct {
        const char *body;
        unsigned status;
        const char *text;
    } rows[] = {
        {"", THOLE_INVALID, "the message is not an object"},
        {"[]", THOLE_INVALID, "the message is not an object"},
        {"{\"worker\":\"w\"", THOLE_INVALID, "the message is not an object"},
        {"{\"worker\":\"w\",}", THOLE_INVALID, "the message is not valid JSON"},
        {"{\"worker\":7}", THOLE_INVALID, "worker is not a text"},
        {"{\"worker\":\"a\\u0000b\"}", THOLE_INVALID, "worker is not a text in UTF-8 without NUL"},
        {"{\"slots\":4294967296}", THOLE_INVALID, "slots is not a number from 0 to 4294967295"},
        {"{\"slots\":-1}", THOLE_INVALID, "slots is not a number from 0 to 4294967295"},
        {"{\"activities\":\"pay\"}", THOLE_INVALID, "activities is not a list"},
        {"{}", THOLE_INVALID, "worker name is empty"},
        {"{\"worker\":\"w\"}", THOLE_INVALID, "slots is 0, it must be 1 to 10000"},
        {"{\"worker\":\"w\",\"slots\":\"1\"}", THOLE_INVALID,
         "activities has 0 names, it must have 1 to 1000"},
        {"{\"worker\":\"w\",\"slots\":1,\"activities\":[\"a b\"]}", THOLE_INVALID,
         "activity name has byte 0x20, allowed is [A-Za-z0-9_-]"},
        {"{\"worker\":\"w\",\"slots\":1,\"activities\":[\"a\"],\"inbox\":\"a.>\"}", THOLE_INVALID,
         "inbox is not a subject below _INBOX"},
        {"{\"worker\":\"w\",\"slots\":1,\"activities\":[\"a\"],"
         "\"inbox\":\"thole.wrong.in.0.control.cancel.i\"}",
         THOLE_INVALID, "inbox is not a subject below _INBOX"},
    };
    begin("wrong");
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const char *const answer = ask(open_subject(), "%s", rows[i].body);
        CU_ASSERT_EQUAL(status_of(answer), rows[i].status);
        same(rows[i].body, answer_at(answer, "text"), rows[i].text);
    }
    const char *const answer = ask_as("text/xml", open_subject(), THOLE_STR("<open/>"));
    CU_ASSERT_PTR_NOT_NULL(strstr(answer, "Content-Type"));
    end();
}

/* The failure is not the worker's fault: a worker that gets INVALID or DENIED ends. */
static void test_a_queue_that_cannot_be_served(void)
{
    struct worker_session session;
    uint64_t lease_ms;
    begin("lease_differs");
    CHECK_OK(topology_ensure_queue(stage.connection, stage.options.ns, THOLE_STR("default"),
                                   stage.options.lease_ms + 1000, &lease_ms, NULL, &stage.err),
             &stage.err);
    const char *answer = ask(open_subject(), "{\"worker\":\"w\",\"slots\":1,\"activities\":[\"a\"]}");
    CU_ASSERT_EQUAL(status_of(answer), THOLE_UNAVAILABLE);
    same("text", answer_at(answer, "text"),
         "this gateway cannot serve queue default: consumer q_default of stream THOLE_lease_differs_WORK has "
         "ack_wait 4s, but 3s is "
         "needed: take the lease that the queue has, by leaving out --lease, or change it with `thole queue "
         "lease "
         "default`");
    struct buf told;
    buf_init(&told, 4096);
    CHECK_OK(api_call(stage.connection, "CONSUMER.DELETE", "THOLE_lease_differs_WORK.q_default",
                      THOLE_STR(""), &told, NULL, &stage.err),
             &stage.err);
    buf_release(&told);
    open_session(&session, "py", 2); /* repaired */
    close_session(&session);
    end();
}

/* In protobuf a message without contents has no bytes. */
static void test_empty_messages(void)
{
    struct worker_session session;
    struct buf answer;
    char subject[300];
    begin("empty");
    open_session(&session, "py", 1);
    stage_schedule(&stage, "i", 1, "pay", "");
    stage_pause_ms(300);
    buf_init(&answer, ANSWER_BYTES);
    (void)snprintf(subject, sizeof subject, "%s", operation(&session, "renew"));
    CHECK_OK(connection_request(worker, subject, THOLE_STR(""), &answer, &stage.err), &stage.err);
    CU_ASSERT_EQUAL(buf_bytes(&answer).len, 0); /* OK, and nothing to say */
    (void)snprintf(subject, sizeof subject, "%s", operation(&session, "next"));
    CHECK_OK(connection_request(worker, subject, THOLE_STR(""), &answer, &stage.err), &stage.err);
    CU_ASSERT_TRUE(buf_bytes(&answer).len > 0 && buf_bytes(&answer).ptr[0] == (3 << 3 | 2)); /* a task */
    CU_ASSERT_EQUAL(complete(&session, "1", "\"output\":\"\""), 0);
    (void)snprintf(subject, sizeof subject, "%s", operation(&session, "close"));
    CHECK_OK(connection_request(worker, subject, THOLE_STR(""), &answer, &stage.err), &stage.err);
    CU_ASSERT_EQUAL(buf_bytes(&answer).len, 0);
    CHECK_OK(connection_request(worker, open_subject(), THOLE_STR(""), &answer, &stage.err), &stage.err);
    CU_ASSERT_PTR_NOT_NULL(strstr(buf_cstr(&answer), "worker name is empty"));
    buf_release(&answer);
    forget_session(&session);
    end();
}

/* An answer goes nowhere but to an inbox: who may ask a gateway may not publish what it may. */
static void test_replies(void)
{
    struct buf answer;
    struct subscription *subscription = NULL;
    struct worker_session heard = {.notices_len = 0};
    begin("replies");
    (void)pthread_mutex_init(&heard.lock, NULL);
    CHECK_OK(connection_subscribe(worker, "thole.replies.in.>", on_notice, &heard, &subscription, &stage.err),
             &stage.err);
    CHECK_OK(connection_flush(worker, &stage.err), &stage.err);
    struct link *const link = link_acquire(worker);
    CU_ASSERT_PTR_NOT_NULL_FATAL(link);
    link_hint(link, open_subject(), "thole.replies.in.0.control.terminate.i", THOLE_STR("{}"));
    link_release(link);
    buf_init(&answer, 4096);
    CHECK_OK(connection_request(worker, open_subject(), THOLE_STR("{}"), &answer, &stage.err), &stage.err);
    CU_ASSERT_EQUAL(count_notices(&heard), 0);
    buf_release(&answer);
    subscription_close(subscription);
    (void)pthread_mutex_destroy(&heard.lock);
    end();
}

/* Of all sessions, also of those that have ended; what is a state of theirs is gone with them. */
static void test_metrics(void)
{
    struct worker_session first, second;
    metrics = metrics_create(&(struct metrics_options){.roles = METRIC_GATEWAY});
    begin("metrics");
    for (uint64_t i = 1; i <= 2; i++) {
        struct worker_session *const session = i == 1 ? &first : &second;
        open_session(session, i == 1 ? "first" : "second", 2);
        CU_ASSERT_EQUAL(metrics_value(metrics, METRIC_GATEWAY_SESSIONS, 0), 1);
        CU_ASSERT(metrics_value(metrics, METRIC_POSTGRES_CONNECTIONS, CONNECTIONS_UP) >= 1);
        stage_schedule(&stage, "i", i, "pay", "");
        (void)next_task(session, 5000);
        (void)renew(session, "{\"claim\":\"1\"},{\"claim\":\"9\"}");
        CU_ASSERT_EQUAL(complete(session, "1", "\"output\":\"\""), 0);
        close_session(session);
        for (int k = 0; k < 500 && metrics_value(metrics, METRIC_GATEWAY_SESSIONS, 0) > 0; k++)
            stage_pause_ms(10);
    }
    CU_ASSERT_EQUAL(metrics_value(metrics, METRIC_GATEWAY_SESSIONS, 0), 0);
    CU_ASSERT_EQUAL(metrics_value(metrics, METRIC_GATEWAY_SESSIONS_ENDED, SESSIONS_STOPPED), 2);
    CU_ASSERT_EQUAL(metrics_value(metrics, METRIC_GATEWAY_TASKS, TASKS_GIVEN), 2);
    CU_ASSERT_EQUAL(metrics_value(metrics, METRIC_GATEWAY_OUTCOMES, OUTCOMES_STORED), 2);
    CU_ASSERT_EQUAL(metrics_value(metrics, METRIC_GATEWAY_RENEWALS, RENEWALS_HELD), 2);
    CU_ASSERT_EQUAL(metrics_value(metrics, METRIC_GATEWAY_RENEWALS, RENEWALS_GONE), 2);
    CU_ASSERT_EQUAL(metrics_value(metrics, METRIC_GATEWAY_REQUESTS, 0), 2);
    CU_ASSERT_EQUAL(metrics_value(metrics, METRIC_GATEWAY_REQUESTS, 4), 2);
    CU_ASSERT_EQUAL(metrics_value(metrics, METRIC_GATEWAY_REQUEST_FAILURES, 0), 0);
    CU_ASSERT_EQUAL(metrics_value(metrics, METRIC_WORKER_CLAIMS, CLAIMS_CLAIMED), 2);
    CU_ASSERT_EQUAL(metrics_value(metrics, METRIC_WORKER_SLOTS, 0), 0);
    CU_ASSERT_EQUAL(metrics_value(metrics, METRIC_NATS_CONNECTIONS, CONNECTIONS_UP), 1);
    CU_ASSERT(metrics_value(metrics, METRIC_POSTGRES_CONNECTIONS, CONNECTIONS_UP) >= 1); /* of the pool */
    end();
    metrics_destroy(metrics);
    metrics = NULL;
}

static void test_services(void)
{
    struct worker_session session;
    begin("services");
    open_session(&session, "py", 1);
    (void)renew(&session, "");
    (void)ask(open_subject(), "{}");
    const char *const ping = ask("$SRV.PING.thole-gateway", "%s", "");
    same("type", answer_at(ping, "type"), "io.nats.micro.v1.ping_response");
    same("name", answer_at(ping, "name"), "thole-gateway");
    same("namespace", answer_at(ping, "metadata.namespace"), "services");
    char one[128];
    (void)snprintf(one, sizeof one, "$SRV.STATS.thole-gateway.%s", answer_at(ping, "id"));
    char stats[8192];
    (void)snprintf(stats, sizeof stats, "%s", ask(one, "%s", ""));
    const char *const open = answer_item(stats, "endpoints", 0);
    same("name", answer_at(open, "name"), "open");
    same("subject", answer_at(open, "subject"), "thole.services.gateway.open.*");
    same("requests", answer_at(open, "num_requests"), "2");
    same("errors", answer_at(open, "num_errors"), "1");
    same("last", answer_at(open, "last_error"), "invalid argument");
    same("renewals", answer_at(answer_item(stats, "endpoints", 2), "num_requests"), "1");
    same("info", answer_at(ask("$SRV.INFO", "%s", ""), "type"), "io.nats.micro.v1.info_response");
    close_session(&session);
    end();
}

static const struct thole_test tests[] = {
    {"a task is done", test_a_task_is_done},
    {"failures", test_failures},
    {"texts", test_texts},
    {"slots", test_slots},
    {"a lease is renewed", test_a_lease_is_renewed},
    {"a worker dies", test_a_worker_dies},
    {"a worker hears nothing", test_a_worker_hears_nothing},
    {"a task has not arrived", test_a_task_has_not_arrived},
    {"a lease is lost", test_a_lease_is_lost},
    {"cancelled", test_cancelled},
    {"cancelled before it is fetched", test_cancelled_before_it_is_fetched},
    {"timeout", test_timeout},
    {"closed", test_closed},
    {"a gateway stops", test_a_gateway_stops},
    {"wrong requests", test_wrong_requests},
    {"a queue that cannot be served", test_a_queue_that_cannot_be_served},
    {"empty messages", test_empty_messages},
    {"replies", test_replies},
    {"metrics", test_metrics},
    {"services", test_services},
};

/* An argument: only tests with that in their names. */
int main(int argc, char **argv)
{
    struct thole_test chosen[ARRAY_LEN(tests)];
    size_t n = 0;
    skip_without_nats();
    skip_without_postgres();
    for (size_t i = 0; i < ARRAY_LEN(tests); i++)
        if (argc < 2 || strstr(tests[i].name, argv[1]) != NULL)
            chosen[n++] = tests[i];
    stage_open(&stage);
    int const result = thole_run_suite("gateway", chosen, n);
    stage_close(&stage);
    return result;
}
