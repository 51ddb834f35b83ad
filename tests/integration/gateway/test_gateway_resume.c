/*
 * Sessions that go on at another gateway: real gateways, which are killed and frozen, and the test is the
 * worker. It knows which tasks it was given, so that a task that is given twice is seen.
 */
#include "jscan.h"
#include "json_answer.h"
#include "link.h"
#include "seed_stage.h"

enum { LEASE_MS = 3000, TASKS = 20, KILLS = 10, CLAIM_BYTES = 513, NOTICES_MAX = 64 };
#define HOST "the-machine.example"

static struct stack_program *gateways[2];
static struct connection *worker;

struct moving {
    char subject[256], session[64], gateway[32], queue[64];
    unsigned slots;
    char claims[TASKS][CLAIM_BYTES], instances[TASKS][ACTOR_ID_BYTES];
    size_t claims_len;
};

/* CHECK_STR() evaluates its arguments more than once. */
static void same(const char *what, const char *got, const char *want)
{
    CHECK_STR(what, got, want);
}

/* ---- the worker ---- */

static char answer[1 << 18];

/* "" when there is no answer. */
static const char *ask(const char *subject, const char *body)
{
    struct buf to;
    struct header const json = {"Content-Type", THOLE_STR("application/json")};
    buf_init(&to, sizeof answer);
    bool const answered = connection_request_with(worker, subject, &json, 1, thole_slice_from(body), &to,
                                                  &seed.err) == THOLE_OK;
    snprintf(answer, sizeof answer, "%.*s", answered ? (int)buf_bytes(&to).len : 0,
             (const char *)buf_bytes(&to).ptr);
    buf_release(&to);
    return answer;
}

static const char *ask_session(const struct moving *m, const char *operation, const char *body)
{
    char subject[300];
    snprintf(subject, sizeof subject, "%s.%s", m->subject, operation);
    return ask(subject, body);
}

static size_t count(const char *json, const char *list)
{
    size_t n = 0;
    while (answer_item(json, list, n)[0] != '\0')
        n++;
    return n;
}

static unsigned status_of(const char *json)
{
    return json[0] == '\0' ? 99 : (unsigned)strtoul(answer_at(json, "status"), NULL, 10);
}

/* A list of all claims in hand. */
static const char *claims_of(const struct moving *m, const char *before, const char *behind)
{
    static char text[TASKS * (CLAIM_BYTES + 32)];
    size_t len = 0;
    text[0] = '\0';
    for (size_t i = 0; i < m->claims_len; i++)
        len += (size_t)snprintf(text + len, sizeof text - len, "%s%s\"%s\"%s", i == 0 ? "" : ",", before,
                                m->claims[i], behind);
    return text;
}

static void take_session(struct moving *m, const char *opened)
{
    snprintf(m->subject, sizeof m->subject, "%s", answer_at(opened, "subject"));
    snprintf(m->session, sizeof m->session, "%s", answer_at(opened, "session"));
    snprintf(m->gateway, sizeof m->gateway, "%s", answer_at(opened, "gateway"));
}

/* The answer of any gateway; in `answer`, too. With the old session's id and claims, unless `resume` is "".
 */
static const char *try_open(const struct moving *m, const char *resume, const char *claims)
{
    static char body[TASKS * (CLAIM_BYTES + 32) + 512];
    char subject[128];
    snprintf(subject, sizeof subject, "thole.default.gateway.open.%s", m->queue);
    snprintf(body, sizeof body,
             "{\"worker\":\"mover\",\"slots\":%u,\"activities\":[\"rude\",\"polite\"],\"inbox\":"
             "\"_INBOX.mover.%s\",\"host\":\"" HOST "\",\"resume\":\"%s\",\"claims\":[%s]}",
             m->slots, m->queue, resume, claims);
    return ask(subject, body);
}

/* One that is frozen may be asked, and does not answer. */
static const char *open_somewhere(const struct moving *m, const char *resume, const char *claims)
{
    uint64_t const until_ms = clock_monotonic_ms() + ACTOR_WAIT_MS;
    while (status_of(try_open(m, resume, claims)) != 0 && clock_monotonic_ms() < until_ms)
        pause_ms(20);
    CU_ASSERT_EQUAL(status_of(answer), 0);
    return answer;
}

static void begin(struct moving *m, const char *queue, unsigned slots)
{
    *m = (struct moving){.slots = slots};
    snprintf(m->queue, sizeof m->queue, "%s", queue);
    take_session(m, open_somewhere(m, "", ""));
}

/* Takes further tasks; none comes twice. */
static void take_tasks(struct moving *m, size_t n)
{
    uint64_t const until_ms = clock_monotonic_ms() + ACTOR_WAIT_MS;
    while (m->claims_len < n && clock_monotonic_ms() < until_ms) {
        char given[sizeof answer];
        snprintf(given, sizeof given, "%s", ask_session(m, "next", "{\"max\":20,\"waitMs\":500}"));
        for (size_t i = 0; answer_item(given, "tasks", i)[0] != '\0'; i++) {
            const char *const instance = answer_at(answer_item(given, "tasks", i), "instance");
            for (size_t k = 0; k < m->claims_len; k++)
                CU_ASSERT_STRING_NOT_EQUAL(m->instances[k], instance);
            CU_ASSERT_FATAL(m->claims_len < TASKS);
            snprintf(m->instances[m->claims_len], ACTOR_ID_BYTES, "%s", instance);
            snprintf(m->claims[m->claims_len++], CLAIM_BYTES, "%s",
                     answer_at(answer_item(given, "tasks", i), "claim"));
        }
    }
    CU_ASSERT_EQUAL(m->claims_len, n);
}

static const char *renew(const struct moving *m)
{
    static char body[TASKS * (CLAIM_BYTES + 64)];
    snprintf(body, sizeof body, "{\"running\":[%s]}", claims_of(m, "{\"claim\":", "}"));
    return ask_session(m, "renew", body);
}

/* Keeps all that it has. */
static void renew_for(const struct moving *m, unsigned for_ms)
{
    uint64_t const until_ms = clock_monotonic_ms() + for_ms;
    while (clock_monotonic_ms() < until_ms) {
        CU_ASSERT_EQUAL(status_of(renew(m)), 0);
        CU_ASSERT_EQUAL(count(answer, "gone"), 0);
        CU_ASSERT_EQUAL(count(answer, "cancelled"), 0);
        pause_ms(300);
    }
}

/* The status of that outcome; 99: no answer. */
static unsigned complete(const struct moving *m, size_t n, const char *outcome)
{
    char body[CLAIM_BYTES + 128];
    snprintf(body, sizeof body, "{\"outcomes\":[{\"claim\":\"%s\",%s}]}", m->claims[n], outcome);
    if (status_of(ask_session(m, "complete", body)) != 0)
        return 100 + status_of(answer);
    return (unsigned)strtoul(answer_at(answer_item(answer, "results", 0), "status"), NULL, 10);
}

/* Goes on with all that it has: none of it is gone. */
static void resume(struct moving *m)
{
    char claims[TASKS * CLAIM_BYTES];
    snprintf(claims, sizeof claims, "%s", claims_of(m, "", ""));
    open_somewhere(m, m->session, claims);
    CU_ASSERT_EQUAL(count(answer, "gone"), 0);
    take_session(m, answer);
}

/* ---- the gateways ---- */

static size_t place_of(const struct moving *m)
{
    for (size_t i = 0; i < ARRAY_LEN(gateways); i++)
        if (gateways[i]->pid != 0 && stack_count(gateways[i]->log, m->gateway) > 0)
            return i;
    fprintf(stderr, "no gateway is %s\n", m->gateway);
    exit(1);
}

static void start_gateway(size_t i)
{
    gateways[i] = seed_program(i == 0 ? "gateway1" : "gateway2", "gateway");
    CU_ASSERT_TRUE(stack_logged(gateways[i], "serves namespace", gateways[i]->lives, ACTOR_WAIT_MS));
}

/* The row of an instance's activity, as "worker's name, attempt, losses". */
static const char *row_of(const char *id)
{
    return seed_sql(
        "SELECT regexp_replace(worker, '-[0-9a-f]{16}$', '') || ' ' || attempt || ' '"
        " || coalesce(cardinality(lost), 0) FROM thole_default.worker_queue WHERE instance = '%s'",
        id);
}

struct seen {
    size_t results;
    uint64_t attempt;
    char host[64];
};

static thole_status see(void *arg, const thole_history_event *event)
{
    struct seen *const seen = arg;
    if (strncmp(event->kind, "Activity", 8) != 0 || event->ref == 0)
        return THOLE_OK;
    seen->results++;
    seen->attempt = event->attempt;
    snprintf(seen->host, sizeof seen->host, "%.*s", THOLE_FMT(event->host));
    return THOLE_OK;
}

/* One result, of the first claim, from the worker's machine. */
static void check_end(const char *id, const char *output)
{
    struct seen seen = {.results = 0};
    seed_check_outcome(id, output);
    CHECK_OK(thole_client_history(seed.client, thole_slice_from(id), see, &seen, &seed.err), &seed.err);
    CU_ASSERT_EQUAL(seen.results, 1);
    CU_ASSERT_EQUAL(seen.attempt, 1);
    same(id, seen.host, HOST);
}

/* ---- tests ---- */

static void test_its_gateway_is_killed(void)
{
    struct moving m;
    seed_start("killed", "rude", "killed");
    begin(&m, "killed", 1);
    take_tasks(&m, 1);
    renew_for(&m, LEASE_MS * 3 / 2);
    size_t const dead = place_of(&m);
    stack_kill9(gateways[dead]);
    resume(&m);
    CU_ASSERT_TRUE(place_of(&m) != dead);
    renew_for(&m, LEASE_MS * 5 / 2);
    same("row", row_of("killed"), "mover 1 0");
    same("nothing else", answer_item(ask_session(&m, "next", "{\"max\":1,\"waitMs\":100}"), "tasks", 0), "");
    CU_ASSERT_EQUAL(complete(&m, 0, "\"output\":\"b2s=\""), 0);
    CU_ASSERT_EQUAL(complete(&m, 0, "\"output\":\"b2s=\""), 0); /* the answer was lost */
    check_end("killed", "ok");
    start_gateway(dead);
}

/* The worker takes up its tasks, and requests made meanwhile, by a worker that waits no longer. */
static void test_its_gateway_is_frozen(void)
{
    struct moving m;
    seed_start("frozen", "rude", "frozen");
    begin(&m, "frozen", 2);
    take_tasks(&m, 1);
    renew_for(&m, LEASE_MS / 2);
    struct moving const before = m;
    size_t const frozen = place_of(&m);
    CU_ASSERT_TRUE(stack_freeze(gateways[frozen]));
    resume(&m);
    renew_for(&m, LEASE_MS / 2);
    char claims[CLAIM_BYTES + 2];
    snprintf(claims, sizeof claims, "%s", claims_of(&m, "", ""));
    for (int i = 0; i < 4; i++) { /* some of them go to the frozen one, and wait there */
        if (status_of(try_open(&m, before.session, claims)) == 0)
            CU_ASSERT_EQUAL(count(answer, "gone"), 1);
        renew_for(&m, 1);
    }
    (void)renew(&before); /* as does this */
    renew_for(&m, LEASE_MS);
    stack_thaw(gateways[frozen]);
    renew_for(&m, 2 * LEASE_MS);
    CU_ASSERT_NOT_EQUAL(complete(&before, 0, "\"output\":\"bm8=\""), 0);
    same("row", row_of("frozen"), "mover 1 0");
    CU_ASSERT_EQUAL(complete(&m, 0, "\"output\":\"b2s=\""), 0);
    check_end("frozen", "ok");
}

static struct {
    pthread_mutex_t lock;
    char notices[NOTICES_MAX][1024]; /* under lock */
    size_t len;
} heard = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void on_notice(void *arg, const struct delivery *delivery)
{
    (void)arg;
    (void)pthread_mutex_lock(&heard.lock);
    if (heard.len < NOTICES_MAX)
        snprintf(heard.notices[heard.len++], sizeof heard.notices[0], "%.*s", THOLE_FMT(delivery->body));
    (void)pthread_mutex_unlock(&heard.lock);
}

static bool is_heard(const char *claim, const char *kind)
{
    bool found = false;
    (void)pthread_mutex_lock(&heard.lock);
    for (size_t i = 0; i < heard.len; i++)
        found |= strstr(heard.notices[i], claim) != NULL && strstr(heard.notices[i], kind) != NULL;
    (void)pthread_mutex_unlock(&heard.lock);
    return found;
}

/* Now or soon: the answer to a renewal may overtake it, as another thread takes notices. */
static bool was_noticed(const char *claim, const char *kind)
{
    uint64_t const until_ms = clock_monotonic_ms() + ACTOR_WAIT_MS;
    while (!is_heard(claim, kind) && clock_monotonic_ms() < until_ms)
        pause_ms(20);
    return is_heard(claim, kind);
}

/* The only task is told to end: the kind in the answer of a renewal. */
static const char *await_cancelled(const struct moving *m)
{
    uint64_t const until_ms = clock_monotonic_ms() + ACTOR_WAIT_MS;
    while (count(renew(m), "cancelled") == 0 && clock_monotonic_ms() < until_ms)
        pause_ms(20);
    same("claim", answer_at(answer_item(answer, "cancelled", 0), "claim"), m->claims[0]);
    return answer_at(answer_item(answer, "cancelled", 0), "kind");
}

static void test_cancelled_after_the_move(void)
{
    struct moving m;
    char output[SEED_TEXT_BYTES];
    seed_start("cancelled", "polite", "cancelled");
    begin(&m, "cancelled", 1);
    take_tasks(&m, 1);
    size_t const dead = place_of(&m);
    stack_kill9(gateways[dead]);
    resume(&m);
    seed_cancel("cancelled", "not needed");
    same("kind", await_cancelled(&m), "requested");
    same("reason", answer_at(answer_item(answer, "cancelled", 0), "reason"), "not needed");
    CU_ASSERT_TRUE(was_noticed(m.claims[0], "requested"));
    CU_ASSERT_EQUAL(complete(&m, 0, "\"cancelled\":true"), 0);
    CU_ASSERT_EQUAL(seed_end("cancelled", output), THOLE_INSTANCE_CANCELLED);
    start_gateway(dead);
}

static void test_cancelled_without_a_gateway(void)
{
    struct moving m;
    char output[SEED_TEXT_BYTES];
    seed_start("alone", "polite", "alone");
    begin(&m, "alone", 1);
    take_tasks(&m, 1);
    stack_kill9(gateways[0]);
    stack_kill9(gateways[1]);
    seed_cancel("alone", "not needed");
    CU_ASSERT_EQUAL(seed_end("alone", output), THOLE_INSTANCE_CANCELLED);
    CU_ASSERT_TRUE(seed_wait_rows("alone", 0));
    start_gateway(0);
    start_gateway(1);
    resume(&m);
    same("kind", await_cancelled(&m), "cancelled");
    CU_ASSERT_TRUE(was_noticed(m.claims[0], "cancelled"));
    CU_ASSERT_EQUAL(complete(&m, 0, "\"cancelled\":true"), 0);
}

static void test_a_deadline_after_the_move(void)
{
    struct moving m;
    seed_start("limited", "limited", "limited");
    begin(&m, "limited", 1);
    take_tasks(&m, 1);
    size_t const dead = place_of(&m);
    stack_kill9(gateways[dead]);
    resume(&m);
    same("kind", await_cancelled(&m), "timeout");
    CU_ASSERT_EQUAL(complete(&m, 0, "\"output\":\"b2s=\""), 0); /* done on its part: the timeout is stored */
    check_end("limited", "timed out");
    start_gateway(dead);
}

/* Heartbeats from before and after the move; the earlier ones count if none follow. */
static void test_heartbeats(void)
{
    struct moving m;
    char body[CLAIM_BYTES + 128];
    const char *const details = "SELECT convert_from(details, 'UTF8') FROM thole_default.worker_queue"
                                " WHERE instance = 'beats'";
    seed_start("beats", "rude", "beats");
    begin(&m, "beats", 1);
    take_tasks(&m, 1);
    snprintf(body, sizeof body, "{\"running\":[{\"claim\":\"%s\",\"heartbeat\":true,\"details\":\"b25l\"}]}",
             m.claims[0]);
    CU_ASSERT_EQUAL(status_of(ask_session(&m, "renew", body)), 0);
    CU_ASSERT_TRUE(seed_wait_sql("one", "%s", details));
    size_t const dead = place_of(&m);
    stack_kill9(gateways[dead]);
    resume(&m);
    renew_for(&m, LEASE_MS);
    same("kept", seed_sql("%s", details), "one");
    snprintf(body, sizeof body, "{\"running\":[{\"claim\":\"%s\",\"heartbeat\":true,\"details\":\"dHdv\"}]}",
             m.claims[0]);
    CU_ASSERT_EQUAL(status_of(ask_session(&m, "renew", body)), 0);
    CU_ASSERT_TRUE(seed_wait_sql("two", "%s", details));
    CU_ASSERT_EQUAL(complete(&m, 0, "\"output\":\"b2s=\""), 0);
    check_end("beats", "ok");
    start_gateway(dead);
}

static void test_taken_by_another(void)
{
    struct moving m, other;
    seed_start("taken", "rude", "taken");
    begin(&m, "taken", 1);
    take_tasks(&m, 1);
    size_t const dead = place_of(&m);
    stack_kill9(gateways[dead]);
    begin(&other, "taken", 1);
    take_tasks(&other, 1); /* a lease later */
    same("row", row_of("taken"), "mover 2 1");
    open_somewhere(&m, m.session, claims_of(&m, "", ""));
    CU_ASSERT_EQUAL(count(answer, "gone"), 1);
    CU_ASSERT_PTR_NOT_NULL(strstr(answer_item(answer, "gone", 0), m.claims[0]));
    take_session(&m, answer);
    CU_ASSERT_EQUAL(complete(&m, 0, "\"output\":\"bm8=\""), THOLE_FENCED);
    CU_ASSERT_EQUAL(complete(&other, 0, "\"output\":\"b2s=\""), 0);
    seed_check_outcome("taken", "ok");
    seed_check_one_result("taken");
    start_gateway(dead);
}

/* The rest is not known then: neither is the session opened, nor is anything gone. */
static void test_postgres_is_away(void)
{
    struct moving m;
    char claims[CLAIM_BYTES + 2];
    seed_start("away", "rude", "away");
    begin(&m, "away", 1);
    take_tasks(&m, 1);
    renew_for(&m, LEASE_MS / 2);
    size_t const dead = place_of(&m);
    stack_kill9(gateways[dead]);
    server_kill9(&seed.stack.postgres);
    snprintf(claims, sizeof claims, "%s", claims_of(&m, "", ""));
    CU_ASSERT_EQUAL(status_of(try_open(&m, m.session, claims)), THOLE_UNAVAILABLE);
    CHECK_OK(server_restart(&seed.stack.postgres, &seed.err), &seed.err);
    resume(&m);
    renew_for(&m, LEASE_MS * 3 / 2);
    same("row", row_of("away"), "mover 1 0");
    CU_ASSERT_EQUAL(complete(&m, 0, "\"output\":\"b2s=\""), 0);
    check_end("away", "ok");
    start_gateway(dead);
}

/* A worker that does not know the session, or has no claim that a gateway has written for it, gets
 * nothing. */
static void test_forged(void)
{
    struct moving m;
    char claims[8 * CLAIM_BYTES], damaged[3][CLAIM_BYTES];
    seed_start("forged", "rude", "forged");
    begin(&m, "forged", 2);
    take_tasks(&m, 1);
    size_t const len = strlen(m.claims[0]);
    for (size_t i = 0; i < ARRAY_LEN(damaged); i++) {
        snprintf(damaged[i], CLAIM_BYTES, "%s", m.claims[0]);
        damaged[i][len * (i + 1) / 4] ^= 1;
    }
    renew_for(&m, LEASE_MS / 2); /* a renewal has shown that the worker lives */
    CU_ASSERT_TRUE(seed_wait_sql("t", "SELECT renewed_at IS NOT NULL FROM thole_default.worker_queue WHERE"
                                      " instance = 'forged'"));
    snprintf(claims, sizeof claims, "\"\",\"1\",\"%s\",\"%s\",\"%s\",\"%sA\",\"%.*s\"", damaged[0],
             damaged[1], damaged[2], m.claims[0], (int)len - 4, m.claims[0]);
    open_somewhere(&m, m.session, claims);
    CU_ASSERT_EQUAL(count(answer, "gone"), 7);
    open_somewhere(&m, "0123456789abcdef0123456789abcdef", claims_of(&m, "", ""));
    CU_ASSERT_EQUAL(count(answer, "gone"), 1);
    struct moving elsewhere = m;
    snprintf(elsewhere.queue, sizeof elsewhere.queue, "another");
    open_somewhere(&elsewhere, m.session, claims_of(&m, "", "")); /* a user of that queue only */
    CU_ASSERT_EQUAL(count(answer, "gone"), 1);
    renew_for(&m, LEASE_MS * 3 / 2);
    same("row", row_of("forged"), "mover 1 0");
    CU_ASSERT_EQUAL(complete(&m, 0, "\"output\":\"b2s=\""), 0);
    check_end("forged", "ok");
}

/* The answer to an open is lost: it is asked once more, with the session that it knows of. */
static void test_an_answer_is_lost(void)
{
    struct moving m, unheard;
    seed_start("unheard", "rude", "unheard");
    begin(&m, "unheard", 1);
    take_tasks(&m, 1);
    renew_for(&m, LEASE_MS);
    struct moving const before = m;
    unheard = m;
    resume(&unheard); /* to nobody */
    resume(&m);
    CU_ASSERT_STRING_NOT_EQUAL(m.session, unheard.session);
    renew_for(&m, LEASE_MS); /* now the worker is known to live */
    open_somewhere(&m, before.session, claims_of(&m, "", ""));
    CU_ASSERT_EQUAL(count(answer, "gone"), 1);
    CU_ASSERT_NOT_EQUAL(complete(&unheard, 0, "\"output\":\"bm8=\""), 0);
    renew_for(&m, LEASE_MS);
    CU_ASSERT_EQUAL(complete(&m, 0, "\"output\":\"b2s=\""), 0);
    check_end("unheard", "ok");
}

/* The result is stored, and its gateway dies before it says so. Nobody can tell whether it was cancelled
 * instead. */
static void test_stored_and_not_answered(void)
{
    struct moving m;
    seed_start("stored", "rude", "stored");
    begin(&m, "stored", 1);
    take_tasks(&m, 1);
    CU_ASSERT_EQUAL(complete(&m, 0, "\"output\":\"b2s=\""), 0);
    size_t const dead = place_of(&m);
    stack_kill9(gateways[dead]);
    resume(&m);
    CU_ASSERT_EQUAL(complete(&m, 0, "\"output\":\"bm8=\""), THOLE_FENCED);
    check_end("stored", "ok");
    start_gateway(dead);
}

/* The worker reports the task, and then no longer: it gives the task back. */
static void test_let_go(void)
{
    struct moving m;
    seed_start("let-go", "rude", "let-go");
    begin(&m, "let-go", 1);
    take_tasks(&m, 1);
    size_t const dead = place_of(&m);
    stack_kill9(gateways[dead]);
    resume(&m);
    m.claims_len = 0;
    uint64_t const from_ms = clock_monotonic_ms();
    CU_ASSERT_EQUAL(status_of(renew(&m)), 0);
    take_tasks(&m, 1);
    fprintf(stderr, "\n  again %u ms after it was let go\n", (unsigned)(clock_monotonic_ms() - from_ms));
    same("row", row_of("let-go"), "mover 2 0");
    CU_ASSERT_EQUAL(complete(&m, 0, "\"output\":\"b2s=\""), 0);
    seed_check_outcome("let-go", "ok");
    seed_check_one_result("let-go");
    start_gateway(dead);
}

static void test_ten_kills_in_a_row(void)
{
    struct moving m;
    char id[ACTOR_ID_BYTES];
    for (unsigned i = 0; i < TASKS; i++) {
        snprintf(id, sizeof id, "row-%u", i);
        seed_start(id, "rude", "row");
    }
    begin(&m, "row", TASKS);
    take_tasks(&m, TASKS);
    uint64_t worst_ms = 0;
    for (int kill = 0; kill < KILLS; kill++) {
        size_t const dead = place_of(&m);
        renew_for(&m, 300);
        uint64_t const from_ms = clock_monotonic_ms();
        stack_kill9(gateways[dead]);
        resume(&m);
        uint64_t const took_ms = clock_monotonic_ms() - from_ms;
        worst_ms = took_ms > worst_ms ? took_ms : worst_ms;
        renew_for(&m, 300);
        start_gateway(dead);
    }
    fprintf(stderr, "\n  %d kills, a session goes on at most %u ms later\n", KILLS, (unsigned)worst_ms);
    renew_for(&m, LEASE_MS);
    same("nothing else", answer_item(ask_session(&m, "next", "{\"max\":1,\"waitMs\":100}"), "tasks", 0), "");
    for (size_t i = 0; i < TASKS; i++)
        CU_ASSERT_EQUAL(complete(&m, i, "\"output\":\"b2s=\""), 0);
    for (unsigned i = 0; i < TASKS; i++) {
        snprintf(id, sizeof id, "row-%u", i);
        check_end(id, "ok");
    }
}

static void test_what_is_invalid(void)
{
    struct moving const m = {.slots = 1, .queue = "invalid"};
    char subject[128], body[1024], host[300];
    memset(host, 'h', sizeof host - 1);
    host[sizeof host - 1] = '\0';
    snprintf(subject, sizeof subject, "thole.default.gateway.open.%s", m.queue);
    snprintf(body, sizeof body, "{\"worker\":\"w\",\"slots\":1,\"activities\":[\"a\"],\"host\":\"%s\"}",
             host);
    CU_ASSERT_EQUAL(status_of(ask(subject, body)), THOLE_INVALID);
    host[255] = '\0';
    snprintf(body, sizeof body, "{\"worker\":\"w\",\"slots\":1,\"activities\":[\"a\"],\"host\":\"%s\"}",
             host);
    CU_ASSERT_EQUAL(status_of(ask(subject, body)), 0);
    CU_ASSERT_EQUAL(status_of(ask(subject, "{\"worker\":\"w\",\"slots\":1,\"activities\":[\"a\"],"
                                           "\"host\":\"a\\nb\"}")),
                    THOLE_INVALID);
    CU_ASSERT_EQUAL(status_of(try_open(&m, "", "\"a\"")), THOLE_INVALID);
}

static const struct thole_test tests[] = {
    {"its gateway is killed", test_its_gateway_is_killed},
    {"its gateway is frozen", test_its_gateway_is_frozen},
    {"cancelled after the move", test_cancelled_after_the_move},
    {"cancelled without a gateway", test_cancelled_without_a_gateway},
    {"a deadline after the move", test_a_deadline_after_the_move},
    {"heartbeats", test_heartbeats},
    {"taken by another", test_taken_by_another},
    {"Postgres is away", test_postgres_is_away},
    {"forged", test_forged},
    {"an answer is lost", test_an_answer_is_lost},
    {"stored and not answered", test_stored_and_not_answered},
    {"let go", test_let_go},
    {"ten kills in a row", test_ten_kills_in_a_row},
    {"what is invalid", test_what_is_invalid},
};

static struct thole_test all[ARRAY_LEN(tests) + 2];
static struct subscription *notices;

static void test_gateways_start(void)
{
    struct connection_options const options = {
        .url = seed.stack.nats.url, .name = "mover", .connect_timeout_ms = 5000, .request_timeout_ms = 1000};
    CHECK_OK(connection_open(&options, &worker, &seed.err), &seed.err);
    CHECK_OK(connection_subscribe(worker, "_INBOX.mover.*", on_notice, NULL, &notices, &seed.err), &seed.err);
    start_gateway(0);
    start_gateway(1);
}

static void test_its_connection_ends(void)
{
    subscription_close(notices);
    connection_close(worker);
}

static void environment(void)
{
    setenv("THOLE_LEASE", "3s", 1);
}

/* An argument: only tests with that in their names. */
int main(int argc, char **argv)
{
    size_t n = 0;
    all[n++] = (struct thole_test){"gateways start", test_gateways_start};
    for (size_t i = 0; i < ARRAY_LEN(tests); i++)
        if (argc < 2 || strstr(tests[i].name, argv[1]) != NULL)
            all[n++] = tests[i];
    all[n++] = (struct thole_test){"its connection ends", test_its_connection_ends};
    return seed_run("gateway_resume", all, n, environment);
}
