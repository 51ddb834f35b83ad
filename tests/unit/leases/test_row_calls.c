/* A worker's statements: what is called, by which thread, what is answered, when it is tried again. The store
 * is played; the thread is real. */
#include "call_fiber.h"
#include "clock.h"
#include "metrics.h"
#include "row_calls.h"
#include "said.h"
#include "thole_cunit.h"
#include "wrap_mutexes.h"
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <unistd.h>

static struct {
    struct said said;
    uint64_t now_ms;
    bool down;
    int closed;
    uint32_t random;
    int socket; /* of the connection; -1: there is none, and only the thread may ask */
    postgres_wait_fn *wait;
    void *wait_arg;
    pthread_t sender;
    atomic_bool holds;    /* the thread, in a call */
    atomic_int by_thread; /* calls that the thread carried out */
} play;

static struct mailbox answers;

static thole_status called(const char *name, struct claim *claims, size_t n, thole_error *reterr)
{
    bool const here = pthread_equal(pthread_self(), play.sender) != 0;
    CU_ASSERT_EQUAL(here, play.wait != NULL); /* the sender's thread never waits itself */
    said_add(&play.said, "%s %zu; ", name, n);
    while (!here && atomic_load(&play.holds))
        (void)sched_yield();
    atomic_fetch_add(&play.by_thread, !here);
    if (here && play.wait(play.wait_arg, play.socket, POLLIN, play.now_ms + 100) == 0) {
        play.socket = -1;
        return thole_fail(reterr, THOLE_UNAVAILABLE, "no answer in time");
    }
    if (play.down)
        return thole_fail(reterr, THOLE_UNAVAILABLE, "no server");
    for (size_t i = 0; i < n; i++) {
        claims[i].attempt += 1;
        claims[i].state = ROW_MINE;
        claims[i].expired = i == 0;
        claims[i].left_ms = 50 + i;
        claims[i].lost = (uint32_t)(2 + i);
        claims[i].poisoned = i == 1;
    }
    return THOLE_OK;
}

thole_status __wrap_worker_store_claim(struct postgres *pg, thole_slice worker,
                                       const struct claim_policy *policy, struct claim *claims, size_t n,
                                       struct arena *arena, thole_error *reterr)
{
    (void)pg, (void)arena;
    said_add(&play.said, "by %.*s, %llu ms of %.*s %llu.%llu.%u isolated=%d settled=%d: ", THOLE_FMT(worker),
             (unsigned long long)claims[0].lease_ms, THOLE_FMT(claims[0].key.instance),
             (unsigned long long)claims[0].key.execution, (unsigned long long)claims[0].key.activity_id,
             (unsigned)claims[0].key.try_number, claims[0].isolated, claims[0].settled);
    CU_ASSERT_PTR_NOT_NULL(policy);
    return called("claim", claims, n, reterr);
}

thole_status __wrap_worker_store_renew(struct postgres *pg, thole_slice worker, struct claim *claims,
                                       size_t n, thole_error *reterr)
{
    (void)pg, (void)worker;
    return called("renew", claims, n, reterr);
}

thole_status __wrap_worker_store_release(struct postgres *pg, thole_slice worker, struct claim *claims,
                                         size_t n, thole_error *reterr)
{
    (void)pg, (void)worker;
    return called("release", claims, n, reterr);
}

thole_status __wrap_worker_store_leave(struct postgres *pg, thole_slice worker, struct claim *claims,
                                       size_t n, thole_error *reterr)
{
    (void)pg, (void)worker;
    return called("leave", claims, n, reterr);
}

thole_status __wrap_worker_store_shelve(struct postgres *pg, thole_slice worker, struct claim *claims,
                                        size_t n, thole_error *reterr)
{
    (void)pg, (void)worker;
    return called("shelve", claims, n, reterr);
}

thole_status __wrap_worker_store_not_lost(struct postgres *pg, thole_slice worker, struct claim *claims,
                                          size_t n, thole_error *reterr)
{
    (void)pg, (void)worker;
    return called("not lost", claims, n, reterr);
}

thole_status __wrap_worker_store_complete_begin(struct postgres *pg, thole_slice worker, struct claim *claims,
                                                size_t n, thole_error *reterr)
{
    (void)pg, (void)worker;
    return called("begin", claims, n, reterr);
}

thole_status __wrap_worker_store_complete_commit(struct postgres *pg, thole_error *reterr)
{
    (void)pg;
    return called("commit", NULL, 0, reterr);
}

void __wrap_worker_store_complete_rollback(struct postgres *pg)
{
    (void)pg;
    said_add(&play.said, "rollback; ");
}

void __wrap_postgres_close(struct postgres *pg)
{
    CU_ASSERT_PTR_EQUAL(pg, (struct postgres *)&play);
    play.closed++;
}

int __wrap_postgres_socket(const struct postgres *pg)
{
    CU_ASSERT_PTR_EQUAL(pg, (struct postgres *)&play);
    return play.socket;
}

void __wrap_postgres_set_wait(struct postgres *pg, postgres_wait_fn *wait, void *arg)
{
    CU_ASSERT_PTR_EQUAL(pg, (struct postgres *)&play);
    CU_ASSERT_TRUE((wait == NULL) != (play.wait == NULL));
    play.wait = wait;
    play.wait_arg = arg;
}

uint64_t __wrap_clock_monotonic_ms(void)
{
    return play.now_ms;
}

ssize_t __wrap_getrandom(void *to, size_t len, unsigned flags)
{
    (void)flags;
    memcpy(to, &play.random, len < sizeof play.random ? len : sizeof play.random);
    return (ssize_t)len;
}

static struct metrics *metrics;

static struct row_calls *begin(void)
{
    struct row_calls *calls = NULL;
    struct row_calls_options const options = {.name = "claims",
                                              .pg = (struct postgres *)&play,
                                              .worker = THOLE_STR("w1"),
                                              .answers = &answers,
                                              .metrics = metrics};
    memset(&play, 0, sizeof play);
    play.now_ms = 100000;
    play.socket = -1;
    play.sender = pthread_self();
    mailbox_init(&answers);
    CU_ASSERT_EQUAL_FATAL(row_calls_create(&options, &calls, NULL), THOLE_OK);
    return calls;
}

static void end(struct row_calls *calls)
{
    row_calls_destroy(calls);
    CU_ASSERT_EQUAL(play.closed, 1);
    CU_ASSERT_EQUAL(mailbox_len(&answers), 0);
    mailbox_release(&answers);
}

static void fill(struct row_call *call)
{
    struct worker_row rows[2] = {
        {.key = {.instance = THOLE_STR("order"), .execution = 2, .activity_id = 7, .try_number = 3},
         .attempt = 4,
         .isolated = true},
        {.key = {.instance = THOLE_STR("cart"), .execution = 5, .activity_id = 8, .try_number = 1},
         .attempt = 9,
         .settled = true}};
    row_call_fill(call, rows, 2, 6000);
    memset(rows, 0, sizeof rows); /* they were copied */
}

/* Sends it and waits for the answer; a rollback is answered by the next call. */
static void send(struct row_calls *calls, struct row_call *call)
{
    row_calls_send(calls, call);
    if (call->kind == ROW_CALL_ROLLBACK)
        return;
    CU_ASSERT_TRUE(mailbox_wait(&answers, UINT64_MAX));
    struct mail *const mail = mailbox_take_all(&answers);
    CU_ASSERT_PTR_EQUAL(mail, &call->mail.mail);
    CU_ASSERT_FALSE(call->away);
    said_add(&play.said, "unknown=%d\n", call->unknown);
}

static void test_each_kind(void)
{
    struct row_calls *const calls = begin();
    for (enum row_call_kind kind = 0; kind < ROW_CALL_KINDS; kind++) {
        struct row_call call;
        row_call_init(&call, kind, 3);
        fill(&call);
        if (kind != ROW_CALL_ROLLBACK)
            send(calls, &call);
        for (size_t i = 0; i < 2 && kind < ROW_CALL_COMMIT; i++) {
            const struct worker_row *const row = &call.rows[i];
            CU_ASSERT_EQUAL(row->attempt, i == 0 ? 5 : 10);
            CU_ASSERT_EQUAL(row->state, WORKER_ROW_MINE);
            CU_ASSERT_EQUAL(row->expired, i == 0);
            CU_ASSERT_EQUAL(row->left_ms, 50 + i);
            CU_ASSERT_EQUAL(row->lost, 2 + i);
            CU_ASSERT_EQUAL(row->poisoned, i == 1);
            CU_ASSERT_TRUE(
                thole_slice_equal(row->key.instance, i == 0 ? THOLE_STR("order") : THOLE_STR("cart")));
        }
        row_call_release(&call);
    }
    said_check(&play.said, "kinds",
               "by w1, 6000 ms of order 2.7.3 isolated=1 settled=0: claim 2; unknown=0\nrenew 2; unknown=0\n"
               "release 2; unknown=0\nleave 2; unknown=0\nnot lost 2; unknown=0\nshelve 2; unknown=0\nbegin "
               "2; unknown=0\ncommit "
               "0; unknown=0\n");
    end(calls);
}

/* The first failure is tried again at once; then with growing pauses, during which nothing is asked. */
static void test_a_server_that_is_away(void)
{
    static const uint64_t pauses_ms[] = {0, 50, 100, 200, 400, 800, 1600, 2500, 2500};
    struct row_calls *const calls = begin();
    struct row_call call, rollback;
    row_call_init(&call, ROW_CALL_RENEW, 2);
    row_call_init(&rollback, ROW_CALL_ROLLBACK, 0);
    play.down = true;
    for (size_t i = 0; i < ARRAY_LEN(pauses_ms); i++) {
        fill(&call);
        send(calls, &call);
        said_check(&play.said, "asked", "renew 2; unknown=1\n");
        if (pauses_ms[i] > 0) {
            play.now_ms += pauses_ms[i] - 1;
            send(calls, &call);
            said_check(&play.said, "too early", "unknown=1\n");
            row_calls_send(calls, &rollback); /* ends an open transaction in any case */
            send(calls, &call);
            said_check(&play.said, "and a rollback", "rollback; unknown=1\n");
            play.now_ms += 1;
        }
    }
    said_clear(&play.said);
    play.down = false;
    play.now_ms += 5000;
    fill(&call);
    send(calls, &call);
    play.down = true;
    send(calls, &call);
    send(calls, &call);
    send(calls, &call);
    CU_ASSERT_PTR_NOT_NULL(
        strstr(play.said.text, "renew 2; unknown=0\nrenew 2; unknown=1\nrenew 2; unknown=1\nunknown=1\n"));
    row_call_release(&call);
    row_call_release(&rollback);
    end(calls);
}

/* Half of the pause is random. */
static void test_jitter(void)
{
    struct row_calls *const calls = begin();
    struct row_call call;
    row_call_init(&call, ROW_CALL_RENEW, 2);
    play.down = true;
    play.random = 50 + 51 * 7;
    fill(&call);
    send(calls, &call);
    send(calls, &call);
    said_clear(&play.said);
    play.now_ms += 99;
    send(calls, &call);
    play.now_ms += 1;
    send(calls, &call);
    said_check(&play.said, "100 ms", "unknown=1\nrenew 2; unknown=1\n");
    row_call_release(&call);
    end(calls);
    row_calls_destroy(NULL);
}

static void check_counted(uint64_t up)
{
    CU_ASSERT_EQUAL(metrics_value(metrics, METRIC_POSTGRES_CONNECTIONS, CONNECTIONS_UP), up);
    CU_ASSERT_EQUAL(metrics_value(metrics, METRIC_POSTGRES_CONNECTIONS, CONNECTIONS_DOWN), 1 - up);
}

/* From its beginning on, before anything is asked. */
static void test_its_connection_is_counted(void)
{
    metrics = metrics_create(&(struct metrics_options){.roles = METRIC_WORKER});
    struct row_calls *const calls = begin();
    struct row_call call;
    row_call_init(&call, ROW_CALL_RENEW, 2);
    check_counted(1);
    play.down = true;
    fill(&call);
    send(calls, &call);
    check_counted(0);
    play.down = false;
    fill(&call);
    send(calls, &call);
    check_counted(1);
    row_call_release(&call);
    end(calls);
    CU_ASSERT_EQUAL(metrics_value(metrics, METRIC_POSTGRES_CONNECTIONS, CONNECTIONS_UP), 0);
    metrics_destroy(metrics);
    metrics = NULL;
}

/* ---- on the sender's thread ---- */

static void check_answered(const struct row_call *call, bool unknown)
{
    struct mail *const mail = mailbox_take_all(&answers);
    CU_ASSERT_PTR_EQUAL(mail, call == NULL ? NULL : &call->mail.mail);
    if (mail == NULL)
        return;
    CU_ASSERT_PTR_NULL(mail->next);
    CU_ASSERT_FALSE(call->away);
    CU_ASSERT_EQUAL(call->unknown, unknown);
}

static int waits_for(const struct row_calls *calls, uint64_t *ret_deadline_ms)
{
    struct pollfd const socket = row_calls_socket(calls, ret_deadline_ms);
    CU_ASSERT_TRUE(socket.fd < 0 || socket.events == POLLIN);
    return socket.fd;
}

static void test_the_sender_waits_for_nothing(void)
{
    struct row_calls *const calls = begin();
    struct row_call claim, renewal, rollback;
    uint64_t deadline_ms;
    row_call_init(&claim, ROW_CALL_CLAIM, 2);
    row_call_init(&renewal, ROW_CALL_RENEW, 2);
    row_call_init(&rollback, ROW_CALL_ROLLBACK, 0);
    play.socket = 77;
    CU_ASSERT_EQUAL(waits_for(calls, &deadline_ms), -1);
    CU_ASSERT_EQUAL(deadline_ms, UINT64_MAX);
    fill(&claim);
    fill(&renewal);
    row_calls_send(calls, &claim);
    row_calls_send(calls, &rollback);
    row_calls_send(calls, &renewal);
    said_check(&play.said, "one at a time", "by w1, 6000 ms of order 2.7.3 isolated=1 settled=0: claim 2; ");
    CU_ASSERT_EQUAL(waits_for(calls, &deadline_ms), 77);
    CU_ASSERT_EQUAL(deadline_ms, play.now_ms + 100);
    check_answered(NULL, false);
    row_calls_continue(calls, 0);
    check_answered(NULL, false);
    row_calls_continue(calls, POLLIN);
    check_answered(&claim, false);
    said_check(&play.said, "the next ones", "rollback; renew 2; ");
    row_calls_continue(calls, POLLIN);
    check_answered(&renewal, false);
    CU_ASSERT_EQUAL(waits_for(calls, &deadline_ms), -1);
    CU_ASSERT_EQUAL(atomic_load(&play.by_thread), 0);
    row_call_release(&claim);
    row_call_release(&renewal);
    end(calls);
}

/* The thread connects again, and calls sent meanwhile wait for that. */
static void test_a_connection_that_is_lost(void)
{
    struct row_calls *const calls = begin();
    struct row_call claim, renewal;
    row_call_init(&claim, ROW_CALL_CLAIM, 2);
    row_call_init(&renewal, ROW_CALL_RENEW, 2);
    play.socket = 77;
    fill(&claim);
    row_calls_send(calls, &claim);
    play.now_ms += 100;
    row_calls_continue(calls, 0);
    check_answered(&claim, true);
    CU_ASSERT_PTR_NULL(play.wait);
    atomic_store(&play.holds, true);
    row_calls_send(calls, &renewal);
    play.socket = 78; /* has connected */
    fill(&claim);
    row_calls_send(calls, &claim);
    uint64_t deadline_ms;
    CU_ASSERT_EQUAL(waits_for(calls, &deadline_ms), -1);
    atomic_store(&play.holds, false);
    for (int answered = 0; answered < 2;) {
        CU_ASSERT_TRUE(mailbox_wait(&answers, UINT64_MAX));
        for (struct mail *mail = mailbox_take_all(&answers); mail != NULL; mail = mail->next, answered++)
            CU_ASSERT_PTR_EQUAL(mail, answered == 0 ? &renewal.mail.mail : &claim.mail.mail);
    }
    CU_ASSERT_EQUAL(atomic_load(&play.by_thread), 2);
    fill(&claim);
    row_calls_send(calls, &claim);
    CU_ASSERT_EQUAL(waits_for(calls, &deadline_ms), 78); /* here again */
    row_calls_continue(calls, POLLIN);
    check_answered(&claim, false);
    row_call_release(&claim);
    row_call_release(&renewal);
    end(calls);
}

/* Nobody continues them any more; all that were sent are answered all the same. */
static void test_its_end_while_one_waits(void)
{
    struct row_calls *const calls = begin();
    struct row_call claim, renewal;
    uint64_t const one = 1;
    row_call_init(&claim, ROW_CALL_CLAIM, 2);
    row_call_init(&renewal, ROW_CALL_RENEW, 2);
    int const socket = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    play.socket = socket;
    fill(&claim);
    fill(&renewal);
    row_calls_send(calls, &claim);
    row_calls_send(calls, &renewal);
    CU_ASSERT_EQUAL(write(socket, &one, sizeof one), sizeof one);
    row_calls_destroy(calls);
    CU_ASSERT_EQUAL(play.closed, 1);
    CU_ASSERT_EQUAL(mailbox_len(&answers), 2);
    CU_ASSERT_FALSE(claim.away || renewal.away || claim.unknown || renewal.unknown);
    (void)mailbox_take_all(&answers);
    mailbox_release(&answers);
    row_call_release(&claim);
    row_call_release(&renewal);
    (void)close(socket);
}

static const struct thole_test tests[] = {{"the sender waits for nothing", test_the_sender_waits_for_nothing},
                                          {"a connection that is lost", test_a_connection_that_is_lost},
                                          {"its end while one waits", test_its_end_while_one_waits},
                                          {"its connection is counted", test_its_connection_is_counted},
                                          {"each kind", test_each_kind},
                                          {"a server that is away", test_a_server_that_is_away},
                                          {"jitter", test_jitter}};
THOLE_TEST_MAIN("row_calls", tests)
