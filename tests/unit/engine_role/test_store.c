/* A projector while Postgres comes and goes: who carries a request out, who gets an answer, and which.
 * Postgres is played; its thread is real, and the test's is the shard's. */
#include "heap.h"
#include "postgres.h"
#include "said.h"
#include "shard_parts.h"
#include "store.h"
#include "thole_cunit.h"
#include "wrap_mutexes.h"
#include <sched.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { REQUESTS = 3 };

static struct {
    struct engine_host engine;
    struct shard shard;
    struct request requests[REQUESTS];
    struct batch batches[REQUESTS];
    thole_error errors[REQUESTS];
    atomic_size_t tries, links, finished;
    char last_link[8];
    bool away;               /* Postgres */
    bool denies;             /* and not because it is not there */
    struct metrics *metrics; /* NULL: nothing is counted */
    atomic_bool holds;       /* the thread, where it looks for a connection */
    char ns[32], conninfo[32];
    int socket; /* of the connection; -1: only the store's thread may ask */
    pthread_t shard_thread;
    postgres_wait_fn *wait;
    void *wait_arg;
    thole_status status; /* of what is applied on the shard's thread */
    thole_status idle;   /* of the connection while nothing runs */
    atomic_size_t backs; /* mails that say that the store's thread has nothing to do */
    struct said said;    /* by the test's thread, or while it waits for the other one */
} play;

/* ---- the world ---- */

thole_status __wrap_postgres_open(const struct postgres_options *options, struct postgres **ret,
                                  thole_error *reterr)
{
    (void)snprintf(play.ns, sizeof play.ns, "%s", options->ns == NULL ? "none" : options->ns);
    (void)snprintf(play.conninfo, sizeof play.conninfo, "%s",
                   options->conninfo == NULL ? "none" : options->conninfo);
    atomic_fetch_add(&play.tries, 1);
    while (atomic_load(&play.holds))
        (void)sched_yield();
    *ret = play.away ? NULL : (struct postgres *)&play;
    if (play.denies)
        return thole_fail(reterr, THOLE_DENIED, "28P01");
    return play.away ? thole_fail(reterr, THOLE_UNAVAILABLE, "no Postgres") : THOLE_OK;
}

thole_status __wrap_postgres_migrate(struct postgres *pg, thole_error *reterr)
{
    (void)pg, (void)reterr;
    return THOLE_OK;
}

thole_status __wrap_postgres_listen(struct postgres *pg, thole_error *reterr)
{
    (void)pg, (void)reterr;
    return THOLE_OK;
}

bool __wrap_postgres_next_removal(struct postgres *pg, uint32_t *ret_partition)
{
    (void)pg, (void)ret_partition;
    return false;
}

int __wrap_postgres_socket(const struct postgres *pg)
{
    (void)pg;
    return play.socket;
}

void __wrap_postgres_set_wait(struct postgres *pg, postgres_wait_fn *wait, void *arg)
{
    (void)pg;
    CU_ASSERT_TRUE(pthread_equal(pthread_self(), play.shard_thread) != 0);
    play.wait = wait;
    play.wait_arg = arg;
}

thole_status __wrap_postgres_check_idle(struct postgres *pg, thole_error *reterr)
{
    (void)pg;
    said_add(&play.said, "looked at; ");
    return play.idle == THOLE_OK ? THOLE_OK : thole_fail(reterr, play.idle, "gone");
}

uint64_t __wrap_postgres_statements(const struct postgres *pg)
{
    (void)pg;
    return 1;
}

void __wrap_postgres_close(struct postgres *pg)
{
    (void)pg;
}

thole_status __wrap_projector_store_apply(struct postgres *pg, struct batch *const *batches, size_t n,
                                          thole_error *reterr)
{
    (void)pg;
    bool const here = pthread_equal(pthread_self(), play.shard_thread) != 0;
    CU_ASSERT_EQUAL(here, play.wait != NULL);
    said_add(&play.said, "%s applies", here ? "shard" : "store");
    for (size_t i = 0; i < n; i++)
        said_add(&play.said, " %u", batches[i]->partition);
    said_add(&play.said, "; ");
    if (here)
        (void)play.wait(play.wait_arg, play.socket, POLLIN, 5);
    return !here || play.status == THOLE_OK ? THOLE_OK : thole_fail(reterr, play.status, "lost");
}

thole_status __wrap_projector_store_timers(struct postgres *pg, uint32_t partition, uint64_t before_ms,
                                           size_t limit, struct arena *arena, struct batch_timer **ret_timers,
                                           size_t *ret_len, uint64_t *ret_next_due_ms, thole_error *reterr)
{
    (void)pg, (void)before_ms, (void)limit, (void)arena, (void)ret_timers, (void)ret_len;
    (void)ret_next_due_ms, (void)reterr;
    CU_ASSERT_FALSE(pthread_equal(pthread_self(), play.shard_thread) != 0);
    said_add(&play.said, "store reads timers of %u; ", partition);
    return THOLE_OK;
}

void __wrap_request_finish(struct request *request)
{
    (void)request;
    atomic_fetch_add(&play.finished, 1);
}

void __wrap_shard_send(struct shard *shard, struct shard_mail *mail)
{
    CU_ASSERT_PTR_EQUAL(shard, &play.shard);
    CU_ASSERT_TRUE(mail->kind == SHARD_STORE_LINK || mail->kind == SHARD_STORE_BACK);
    if (mail->kind == SHARD_STORE_LINK) {
        (void)snprintf(play.last_link, sizeof play.last_link, "%s", mail->up ? "up" : "down");
        atomic_fetch_add(&play.links, 1);
    } else {
        atomic_fetch_add(&play.backs, 1);
    }
    free(mail);
}

static struct store *begin(bool away)
{
    struct store *store = NULL;
    struct metrics *const metrics = play.metrics;
    bool const denies = play.denies;
    memset(&play, 0, sizeof play);
    play.engine.options.metrics = play.metrics = metrics;
    play.denies = denies;
    play.away = away;
    play.socket = -1;
    play.shard_thread = pthread_self();
    atomic_store(&play.holds, true);
    play.engine.options.ns = "shop";
    play.engine.options.postgres = "host=x";
    play.engine.shards = &play.shard;
    play.engine.shards_len = 1;
    play.shard.engine = &play.engine;
    play.shard.rules = request_rules;
    for (uint32_t i = 0; i < REQUESTS; i++) {
        play.batches[i] = (struct batch){.partition = i};
        play.requests[i] = (struct request){.kind = REQ_STORE_APPLY,
                                            .shard = &play.shard,
                                            .mail = {.kind = SHARD_ANSWER, .p = i},
                                            .store = {.batch = &play.batches[i]},
                                            .err = &play.errors[i]};
    }
    CU_ASSERT_EQUAL_FATAL(store_start(&play.shard, &store, NULL), THOLE_OK);
    return store;
}

/* They wait while the thread looks for its connection, and then go together. */
static void submit_all(struct store *store)
{
    while (atomic_load(&play.tries) == 0)
        (void)sched_yield();
    for (size_t i = 0; i < REQUESTS; i++)
        store_submit(store, &play.requests[i]);
    atomic_store(&play.holds, false);
    while (atomic_load(&play.finished) < REQUESTS)
        (void)sched_yield();
}

/* ---- tests ---- */

/* An answer that said OK would let a partition forget what is nowhere. */
static void test_nobody_is_told_ok_without_postgres(void)
{
    struct store *const store = begin(true);
    submit_all(store);
    store_stop(store);
    for (size_t i = 0; i < REQUESTS; i++) {
        CU_ASSERT_EQUAL(play.requests[i].status, THOLE_UNAVAILABLE);
        CHECK_STR("why", play.errors[i].text, "Postgres is not connected");
    }
    CU_ASSERT_EQUAL(atomic_load(&play.links), 0);
}

/* The attempts to connect; the requests are the shard's to count. */
static void test_attempts_to_connect_are_counted(void)
{
    struct metrics_options const options = {.roles = METRIC_ENGINE};
    for (int denies = 0; denies <= 1; denies++) {
        play.metrics = metrics_create(&options);
        play.denies = denies == 1;
        struct store *const store = begin(true);
        submit_all(store);
        store_stop(store);
        uint64_t const label = denies == 1 ? ERRORS_DENIED : ERRORS_UNAVAILABLE;
        CU_ASSERT_EQUAL(metrics_value(play.metrics, METRIC_POSTGRES_ERRORS, label), atomic_load(&play.tries));
        metrics_destroy(play.metrics);
        play.metrics = NULL;
        play.denies = false;
    }
}

static void test_with_postgres(void)
{
    struct store *const store = begin(false);
    submit_all(store);
    CU_ASSERT_EQUAL(store_statements(store), 1);
    store_stop(store);
    for (size_t i = 0; i < REQUESTS; i++)
        CU_ASSERT_EQUAL(play.requests[i].status, THOLE_OK);
    CU_ASSERT_EQUAL(atomic_load(&play.links), 1);
    CHECK_STR("link", play.last_link, "up");
    CHECK_STR("namespace", play.ns, "shop");
    CHECK_STR("conninfo", play.conninfo, "host=x");
}

static void test_nothing_stays(void)
{
    enum { ROUNDS = 16, JUDGED = 6 }; /* the first ones may fill lists of what is used again */
    size_t before = SIZE_MAX, grown = 0;
    for (int i = 0; i < ROUNDS; i++) {
        struct store *const store = begin(i % 2 == 0);
        submit_all(store);
        store_stop(store);
        size_t const used = heap_used();
        grown += i >= ROUNDS - JUDGED && used > before;
        before = used;
    }
    CU_ASSERT_TRUE(grown < JUDGED);
}

/* ---- on the shard's thread ---- */

static void await_back(size_t n)
{
    while (atomic_load(&play.backs) < n)
        (void)sched_yield();
}

/* Connected, and nothing to do. */
static struct store *begin_connected(void)
{
    struct store *const store = begin(false);
    play.socket = eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK); /* always ready */
    atomic_store(&play.holds, false);
    await_back(1);
    uint64_t until_ms;
    struct pollfd const idle = store_socket(store, &until_ms);
    CU_ASSERT_TRUE(idle.fd == play.socket && idle.events == POLLIN && until_ms == UINT64_MAX);
    return store;
}

static void end_connected(struct store *store)
{
    store_stop(store);
    (void)close(play.socket);
}

static void test_batches_wake_nobody(void)
{
    struct store *const store = begin_connected();
    uint64_t until_ms;
    store_submit(store, &play.requests[0]);
    said_check(&play.said, "not yet", "");
    store_begin(store);
    said_check(&play.said, "the first", "shard applies 0; ");
    for (size_t i = 1; i < REQUESTS; i++)
        store_submit(store, &play.requests[i]);
    store_begin(store);
    said_check(&play.said, "one at a time", "");
    CU_ASSERT_EQUAL(store_socket(store, &until_ms).fd, play.socket);
    CU_ASSERT_EQUAL(until_ms, 5);
    CU_ASSERT_EQUAL(atomic_load(&play.finished), 0);
    CU_ASSERT_TRUE(store_is_calling(store));
    store_continue(store, POLLIN);
    CU_ASSERT_EQUAL(atomic_load(&play.finished), 1);
    said_check(&play.said, "others may come yet", "");
    CU_ASSERT_FALSE(store_is_calling(store));
    store_begin(store);
    said_check(&play.said, "the others together", "shard applies 1 2; ");
    store_continue(store, POLLIN);
    CU_ASSERT_EQUAL(atomic_load(&play.finished), REQUESTS);
    for (size_t i = 0; i < REQUESTS; i++)
        CU_ASSERT_EQUAL(play.requests[i].status, THOLE_OK);
    store_continue(store, 0); /* for another reason */
    said_check(&play.said, "nothing more", "");
    CU_ASSERT_EQUAL(atomic_load(&play.backs), 1);
    end_connected(store);
}

/* The requests that all partitions have submitted by then. */
static void test_they_begin_together(void)
{
    struct store *const store = begin_connected();
    for (size_t i = 0; i < REQUESTS; i++)
        store_submit(store, &play.requests[i]);
    store_begin(store);
    said_check(&play.said, "all", "shard applies 0 1 2; ");
    end_connected(store);
    CU_ASSERT_EQUAL(atomic_load(&play.finished), REQUESTS);
}

static void test_order_is_kept(void)
{
    struct store *const store = begin_connected();
    play.requests[1].kind = REQ_STORE_TIMERS;
    for (size_t i = 0; i < REQUESTS; i++)
        store_submit(store, &play.requests[i]);
    store_begin(store);
    store_continue(store, POLLIN);
    store_begin(store);
    await_back(2); /* the connection was with the thread, and the last one has waited */
    said_check(&play.said, "one after the other", "shard applies 0; store reads timers of 1; ");
    CU_ASSERT_EQUAL(atomic_load(&play.finished), 2);
    store_begin(store);
    said_check(&play.said, "here again", "shard applies 2; ");
    end_connected(store); /* which finishes it */
    CU_ASSERT_EQUAL(atomic_load(&play.finished), REQUESTS);
}

static void test_a_failure_connects_again(void)
{
    struct store *const store = begin_connected();
    CU_ASSERT_EQUAL(atomic_load(&play.links), 1);
    play.status = THOLE_UNAVAILABLE;
    store_submit(store, &play.requests[0]);
    store_begin(store);
    store_continue(store, POLLIN);
    CU_ASSERT_EQUAL(play.requests[0].status, THOLE_UNAVAILABLE);
    store_begin(store);
    await_back(2);
    CU_ASSERT_EQUAL(atomic_load(&play.links), 3);
    CU_ASSERT_EQUAL(atomic_load(&play.tries), 2);
    CHECK_STR("link", play.last_link, "up");
    end_connected(store);
}

static void test_an_idle_connection_is_lost(void)
{
    struct store *const store = begin_connected();
    store_continue(store, POLLIN);
    said_check(&play.said, "it said something", "looked at; ");
    CU_ASSERT_EQUAL(atomic_load(&play.links), 1);
    play.idle = THOLE_UNAVAILABLE;
    store_continue(store, POLLIN);
    store_begin(store);
    await_back(2);
    CU_ASSERT_EQUAL(atomic_load(&play.links), 3);
    said_clear(&play.said);
    end_connected(store);
}

static const struct thole_test tests[] = {
    {"batches wake nobody", test_batches_wake_nobody},
    {"they begin together", test_they_begin_together},
    {"order is kept", test_order_is_kept},
    {"a failure connects again", test_a_failure_connects_again},
    {"an idle connection is lost", test_an_idle_connection_is_lost},
    {"nothing stays", test_nothing_stays},
    {"nobody is told OK without Postgres", test_nobody_is_told_ok_without_postgres},
    {"with Postgres", test_with_postgres},
    {"attempts to connect are counted", test_attempts_to_connect_are_counted},
};
THOLE_TEST_MAIN("store", tests)
