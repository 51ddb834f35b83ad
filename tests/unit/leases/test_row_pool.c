/* Connections that workers share: who gets the next one. Opening and closing one is played. */
#include "row_pool.h"
#include "thole_cunit.h"
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

enum { CONNECTIONS = 4, WAIT_MS = 20000, SHORT_MS = 50 };

static char played[CONNECTIONS];
static atomic_size_t opened, closed;
static atomic_bool away;
static atomic_ullong timeout; /* of the connection that was taken last */

thole_status __wrap_postgres_open(const struct postgres_options *, struct postgres **, thole_error *);
thole_status __wrap_postgres_open(const struct postgres_options *options, struct postgres **ret,
                                  thole_error *reterr)
{
    CU_ASSERT_EQUAL(options->connect_timeout_ms, options->statement_timeout_ms);
    atomic_store(&timeout, options->statement_timeout_ms);
    if (atomic_load(&away))
        return thole_fail(reterr, THOLE_UNAVAILABLE, "away");
    *ret = (struct postgres *)(void *)&played[atomic_fetch_add(&opened, 1)];
    return THOLE_OK;
}

void __wrap_postgres_close(struct postgres *);
void __wrap_postgres_close(struct postgres *pg)
{
    CU_ASSERT_PTR_NOT_NULL(pg);
    atomic_fetch_add(&closed, 1);
}

void __wrap_postgres_set_timeout(struct postgres *, uint64_t);
void __wrap_postgres_set_timeout(struct postgres *pg, uint64_t timeout_ms)
{
    CU_ASSERT_PTR_NOT_NULL(pg);
    atomic_store(&timeout, timeout_ms);
}

static uint64_t patience_ms;

static struct row_pool *begin(uint64_t wait_ms)
{
    patience_ms = wait_ms;
    atomic_store(&opened, 0);
    atomic_store(&closed, 0);
    atomic_store(&away, false);
    return row_pool_create(&(struct row_pool_options){.connections = CONNECTIONS});
}

static void end(struct row_pool *pool)
{
    row_pool_destroy(pool);
    CU_ASSERT_EQUAL(atomic_load(&opened), atomic_load(&closed));
}

static struct postgres *take(struct row_pool *pool, enum row_pool_use use)
{
    struct postgres *pg = NULL;
    CU_ASSERT_EQUAL_FATAL(row_pool_take(pool, use, patience_ms, &pg, NULL), THOLE_OK);
    CU_ASSERT_PTR_NOT_NULL_FATAL(pg);
    return pg;
}

/* Each worker's lease says how long a statement of its may take, whoever had the connection before. */
static void test_statements_have_the_takers_time(void)
{
    struct row_pool *const pool = begin(WAIT_MS);
    row_pool_give(pool, ROW_POOL_OTHER, take(pool, ROW_POOL_OTHER));
    CU_ASSERT_EQUAL(atomic_load(&timeout), WAIT_MS);
    patience_ms = SHORT_MS;
    row_pool_give(pool, ROW_POOL_OTHER, take(pool, ROW_POOL_OTHER));
    CU_ASSERT_EQUAL(atomic_load(&timeout), SHORT_MS);
    CU_ASSERT_EQUAL(atomic_load(&opened), 1);
    end(pool);
}

static void test_one_is_used_again(void)
{
    struct row_pool *const pool = begin(WAIT_MS);
    struct postgres *const first = take(pool, ROW_POOL_OTHER);
    row_pool_give(pool, ROW_POOL_OTHER, first);
    CU_ASSERT_PTR_EQUAL(take(pool, ROW_POOL_RENEWAL), first);
    row_pool_give(pool, ROW_POOL_RENEWAL, first);
    CU_ASSERT_EQUAL(atomic_load(&opened), 1);
    end(pool);
}

/* Whatever completions wait for, one connection is left. */
static void test_completions_leave_some(void)
{
    struct row_pool *const pool = begin(SHORT_MS);
    struct postgres *held[CONNECTIONS], *pg = NULL;
    thole_error error = {.status = THOLE_OK};
    for (size_t i = 0; i < CONNECTIONS - 1; i++)
        held[i] = take(pool, ROW_POOL_COMPLETION);
    CU_ASSERT_EQUAL(row_pool_take(pool, ROW_POOL_COMPLETION, patience_ms, &pg, &error), THOLE_UNAVAILABLE);
    CHECK_STR(
        "text", error.text,
        "none of the 4 connections to Postgres was free for 50 ms: allow more by --postgres-connections");
    for (int i = 0; i < 3; i++)
        row_pool_give(pool, ROW_POOL_RENEWAL, take(pool, ROW_POOL_RENEWAL));
    row_pool_give(pool, ROW_POOL_OTHER, take(pool, ROW_POOL_OTHER));
    for (size_t i = 0; i < CONNECTIONS - 1; i++)
        row_pool_give(pool, ROW_POOL_COMPLETION, held[i]);
    CU_ASSERT_EQUAL(atomic_load(&opened), CONNECTIONS);
    end(pool);
}

static void test_one_that_cannot_be_opened_takes_no_place(void)
{
    struct row_pool *const pool = begin(SHORT_MS);
    struct postgres *pg = NULL;
    atomic_store(&away, true);
    for (int i = 0; i < 2 * CONNECTIONS; i++)
        CU_ASSERT_EQUAL(row_pool_take(pool, ROW_POOL_OTHER, patience_ms, &pg, NULL), THOLE_UNAVAILABLE);
    atomic_store(&away, false);
    row_pool_give(pool, ROW_POOL_OTHER, take(pool, ROW_POOL_OTHER));
    end(pool);
}

/* ---- order ---- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char order[16]; /* under lock */

struct asking {
    struct row_pool *pool;
    enum row_pool_use use;
    char name;
    pthread_t thread;
};

static void *ask(void *arg)
{
    struct asking *const asking = arg;
    struct postgres *const pg = take(asking->pool, asking->use);
    (void)pthread_mutex_lock(&lock);
    order[strlen(order)] = asking->name;
    (void)pthread_mutex_unlock(&lock);
    row_pool_give(asking->pool, asking->use, pg);
    return NULL;
}

static void nap(void)
{
    (void)nanosleep(&(struct timespec){.tv_nsec = 50 * 1000000L}, NULL);
}

/* All are in use. Who came last of renewals goes before who came first of the others. */
static void test_renewals_go_first(void)
{
    struct row_pool *const pool = begin(WAIT_MS);
    struct postgres *held[CONNECTIONS];
    struct asking asking[] = {{.name = 'o', .use = ROW_POOL_OTHER},
                              {.name = 'p', .use = ROW_POOL_OTHER},
                              {.name = 'c', .use = ROW_POOL_COMPLETION},
                              {.name = 'r', .use = ROW_POOL_RENEWAL},
                              {.name = 's', .use = ROW_POOL_RENEWAL}};
    for (size_t i = 0; i < CONNECTIONS; i++)
        held[i] = take(pool, ROW_POOL_OTHER);
    for (size_t i = 0; i < ARRAY_LEN(asking); i++) {
        asking[i].pool = pool;
        CU_ASSERT_EQUAL_FATAL(pthread_create(&asking[i].thread, NULL, ask, &asking[i]), 0);
        nap(); /* until it waits: the test is of their order */
    }
    CHECK_STR("nobody yet", order, "");
    row_pool_give(pool, ROW_POOL_OTHER, held[0]); /* one at a time, handed on from each to the next */
    for (size_t i = 0; i < ARRAY_LEN(asking); i++)
        (void)pthread_join(asking[i].thread, NULL);
    CHECK_STR("order", order, "rscop");
    for (size_t i = 1; i < CONNECTIONS; i++)
        row_pool_give(pool, ROW_POOL_OTHER, held[i]);
    end(pool);
}

static const struct thole_test tests[] = {
    {"one is used again", test_one_is_used_again},
    {"statements have the taker's time", test_statements_have_the_takers_time},
    {"completions leave some", test_completions_leave_some},
    {"one that cannot be opened takes no place", test_one_that_cannot_be_opened_takes_no_place},
    {"renewals go first", test_renewals_go_first},
};
THOLE_TEST_MAIN("row pool", tests)
