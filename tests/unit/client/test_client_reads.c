/* Reads of the projection over a connection that is lost: which are repeated. Postgres is played. */
#include "client_internal.h"
#include "thole_cunit.h"

static struct {
    struct thole_client client;
    unsigned opened, closed, reads, rows;
    unsigned rows_first, fails; /* so many rows come before the first failure; so many reads fail */
} play;

static struct postgres *const some_postgres = (struct postgres *)&play;

thole_status __wrap_postgres_open(const struct postgres_options *options, struct postgres **ret,
                                  thole_error *reterr)
{
    char said[160];
    (void)reterr;
    (void)snprintf(said, sizeof said, "%s of %s for %s: %d and %d ms, synchronous=%d, idle in one %d",
                   options->conninfo, options->ns, options->application, (int)options->connect_timeout_ms,
                   (int)options->statement_timeout_ms, options->synchronous_commit,
                   (int)options->idle_in_transaction_ms);
    CHECK_STR("opened", said, "x of shop for thole-client: 700 and 700 ms, synchronous=1, idle in one 0");
    play.opened++;
    *ret = some_postgres;
    return THOLE_OK;
}

void __wrap_postgres_close(struct postgres *pg)
{
    CU_ASSERT_PTR_EQUAL(pg, some_postgres);
    play.closed++;
}

/* How a read ends, after one row or none. */
#define READ(give_row)                                                                                       \
    CU_ASSERT_PTR_EQUAL(pg, some_postgres);                                                                  \
    unsigned const read = play.reads++;                                                                      \
    if (read >= play.fails || play.rows_first > 0)                                                           \
        THOLE_TRY(give_row);                                                                                 \
    return read < play.fails ? thole_fail(reterr, THOLE_UNAVAILABLE, "lost") : THOLE_OK

thole_status __wrap_query_store_show(struct postgres *pg, thole_slice instance, thole_instance_fn *each,
                                     void *arg, thole_error *reterr)
{
    (void)instance;
    READ(each(arg, &(thole_instance_info){0}));
}

thole_status __wrap_query_store_list(struct postgres *pg, const thole_list_filter *filter,
                                     thole_instance_fn *each, void *arg, thole_error *reterr)
{
    (void)filter;
    READ(each(arg, &(thole_instance_info){0}));
}

thole_status __wrap_query_store_executions(struct postgres *pg, thole_slice instance,
                                           thole_execution_fn *each, void *arg, thole_error *reterr)
{
    (void)instance;
    READ(each(arg, &(thole_execution_info){0}));
}

thole_status __wrap_query_store_poisoned(struct postgres *pg, const thole_poisoned_filter *filter,
                                         thole_poisoned_fn *each, void *arg, thole_error *reterr)
{
    (void)filter;
    READ(each(arg, &(thole_poisoned_info){0}));
}

thole_status __wrap_query_store_activities(struct postgres *pg, thole_slice instance,
                                           thole_activity_info_fn *each, void *arg, thole_error *reterr)
{
    (void)instance;
    READ(each(arg, &(thole_activity_info){0}));
}

thole_status __wrap_query_store_set_aside(struct postgres *pg, thole_slice instance, thole_set_aside_fn *each,
                                          void *arg, thole_error *reterr)
{
    (void)instance;
    READ(each(arg, &(thole_set_aside_info){.execution = 0}));
}

static thole_status on_instance(void *arg, const thole_instance_info *info)
{
    (void)arg, (void)info;
    play.rows++;
    return THOLE_OK;
}

static thole_status on_execution(void *arg, const thole_execution_info *info)
{
    (void)arg, (void)info;
    play.rows++;
    return THOLE_OK;
}

static thole_status on_poisoned(void *arg, const thole_poisoned_info *info)
{
    (void)arg, (void)info;
    play.rows++;
    return THOLE_OK;
}

static thole_status on_activity(void *arg, const thole_activity_info *info)
{
    (void)arg, (void)info;
    play.rows++;
    return THOLE_OK;
}

static thole_status on_set_aside(void *arg, const thole_set_aside_info *info)
{
    (void)arg, (void)info;
    play.rows++;
    return THOLE_OK;
}

static const char *const reads[] = {"show", "list", "executions", "poisoned", "activities", "set aside"};

static thole_status read_by(size_t way)
{
    thole_client *const client = &play.client;
    switch (way) {
    case 0: return thole_client_show(client, THOLE_STR("order"), on_instance, NULL, NULL);
    case 1: return thole_client_list(client, NULL, on_instance, NULL, NULL);
    case 2: return thole_client_executions(client, THOLE_STR("order"), on_execution, NULL, NULL);
    case 3: return thole_client_poisoned(client, NULL, on_poisoned, NULL, NULL);
    case 4: return thole_client_set_aside(client, THOLE_STR("order"), on_set_aside, NULL, NULL);
    default: return thole_client_activities(client, THOLE_STR("order"), on_activity, NULL, NULL);
    }
}

static void test_which_reads_are_repeated(void)
{
    static const struct {
        const char *name;
        bool was_open;
        unsigned rows_first, fails;
        thole_status status;
        unsigned reads, rows, opened, closed;
    } rows[] = {{"well", true, 0, 0, THOLE_OK, 1, 1, 0, 0},
                {"the first", false, 0, 0, THOLE_OK, 1, 1, 1, 0},
                {"it was idle for long and lost", true, 0, 1, THOLE_OK, 2, 1, 1, 1},
                {"it stays lost", true, 0, 2, THOLE_UNAVAILABLE, 2, 0, 1, 2},
                {"lost when it was new", false, 0, 1, THOLE_UNAVAILABLE, 1, 0, 1, 1},
                {"a row was given, and would be again", true, 1, 1, THOLE_UNAVAILABLE, 1, 1, 0, 1}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        for (size_t way = 0; way < ARRAY_LEN(reads); way++) {
            char name[80], got[80], want[80];
            memset(&play, 0, sizeof play);
            (void)pthread_mutex_init(&play.client.postgres_lock, NULL);
            play.client.conninfo = (char *)"x";
            play.client.ns = (char *)"shop";
            play.client.timeout_ms = 700;
            play.client.postgres = rows[i].was_open ? some_postgres : NULL;
            play.rows_first = rows[i].rows_first;
            play.fails = rows[i].fails;
            thole_status const status = read_by(way);
            (void)snprintf(name, sizeof name, "%s: %s", reads[way], rows[i].name);
            (void)snprintf(got, sizeof got, "%s reads=%u rows=%u opened=%u closed=%u",
                           thole_status_name(status), play.reads, play.rows, play.opened, play.closed);
            (void)snprintf(want, sizeof want, "%s reads=%u rows=%u opened=%u closed=%u",
                           thole_status_name(rows[i].status), rows[i].reads, rows[i].rows, rows[i].opened,
                           rows[i].closed);
            CHECK_STR(name, got, want);
            CU_ASSERT_EQUAL(play.client.postgres != NULL, status == THOLE_OK);
            (void)pthread_mutex_destroy(&play.client.postgres_lock);
        }
}

/* Nobody is asked about what cannot be. */
static void test_what_is_refused(void)
{
    static uint8_t long_id[THOLE_ID_BYTES_MAX + 1];
    memset(long_id, 'x', sizeof long_id);
    thole_slice const ids[] = {THOLE_STR(""), THOLE_STR("a\xff"), {long_id, sizeof long_id}};
    thole_client *const client = &play.client;
    memset(&play, 0, sizeof play);
    (void)pthread_mutex_init(&client->postgres_lock, NULL);
    client->conninfo = (char *)"x";
    for (size_t i = 0; i < ARRAY_LEN(ids); i++) {
        thole_error errors[4] = {{.status = THOLE_OK}};
        CU_ASSERT_EQUAL(thole_client_show(client, ids[i], on_instance, NULL, &errors[0]), THOLE_INVALID);
        CU_ASSERT_EQUAL(thole_client_executions(client, ids[i], on_execution, NULL, &errors[1]),
                        THOLE_INVALID);
        CU_ASSERT_EQUAL(thole_client_activities(client, ids[i], on_activity, NULL, &errors[2]),
                        THOLE_INVALID);
        CU_ASSERT_EQUAL(thole_client_set_aside(client, ids[i], on_set_aside, NULL, &errors[3]),
                        THOLE_INVALID);
        for (size_t k = 0; k < ARRAY_LEN(errors); k++)
            CU_ASSERT_NOT_EQUAL(errors[k].text[0], '\0');
    }
    thole_list_filter const list = {.size = sizeof list - 1};
    thole_poisoned_filter const poisoned = {.size = sizeof poisoned - 1};
    thole_error err = {.status = THOLE_OK};
    CU_ASSERT_EQUAL(thole_client_list(client, &list, on_instance, NULL, &err), THOLE_INVALID);
    CHECK_STR("list", err.text, "thole_list_filter.size is not set");
    CU_ASSERT_EQUAL(thole_client_poisoned(client, &poisoned, on_poisoned, NULL, &err), THOLE_INVALID);
    CHECK_STR("poisoned", err.text, "thole_poisoned_filter.size is not set");
    CU_ASSERT_EQUAL(play.opened + play.reads + play.rows, 0);
    client->conninfo = NULL;
    for (size_t way = 0; way < ARRAY_LEN(reads); way++)
        CU_ASSERT_EQUAL(read_by(way), THOLE_INVALID);
    CU_ASSERT_EQUAL(play.opened + play.reads + play.rows, 0);
    (void)pthread_mutex_destroy(&client->postgres_lock);
}

static const struct thole_test tests[] = {
    {"what is refused", test_what_is_refused},
    {"which reads are repeated", test_which_reads_are_repeated},
};
THOLE_TEST_MAIN("client_reads", tests)
