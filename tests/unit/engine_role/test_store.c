/* A projector's thread while Postgres comes and goes: who gets an answer, and which. Postgres is played. */
#include "heap.h"
#include "postgres.h"
#include "shard_parts.h"
#include "store.h"
#include "thole_cunit.h"
#include "wrap_mutexes.h"
#include <sched.h>
#include <stdlib.h>

enum { REQUESTS = 3 };

static struct {
    struct engine_host engine;
    struct shard shard;
    struct request requests[REQUESTS];
    struct batch batches[REQUESTS];
    atomic_size_t tries, links, finished;
    char last_link[8];
    bool away;         /* Postgres */
    atomic_bool holds; /* the thread, where it looks for a connection */
    char ns[32], conninfo[32];
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
    return -1;
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
    (void)pg, (void)batches, (void)n, (void)reterr;
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
    CU_ASSERT_EQUAL(mail->kind, SHARD_STORE_LINK);
    (void)snprintf(play.last_link, sizeof play.last_link, "%s", mail->up ? "up" : "down");
    atomic_fetch_add(&play.links, 1);
    free(mail);
}

static struct store *begin(bool away)
{
    struct store *store = NULL;
    memset(&play, 0, sizeof play);
    play.away = away;
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
                                            .store = {.batch = &play.batches[i]}};
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
        CHECK_STR("why", play.requests[i].err.text, "Postgres is not connected");
    }
    CU_ASSERT_EQUAL(atomic_load(&play.links), 0);
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

static const struct thole_test tests[] = {
    {"nothing stays", test_nothing_stays},
    {"nobody is told OK without Postgres", test_nobody_is_told_ok_without_postgres},
    {"with Postgres", test_with_postgres},
};
THOLE_TEST_MAIN("store", tests)
