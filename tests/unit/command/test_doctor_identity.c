/* The doctor's findings about the identities of NATS and Postgres. Both are played. */
#include "captured.h"
#include "doctor_checks.h"
#include "namespace_check.h"
#include "nats_connection.h"
#include "postgres.h"
#include "thole_cunit.h"
#include "topology.h"
#include <stdlib.h>
#include <string.h>

static enum away { NONE, NATS, POSTGRES } away;
static unsigned opened;
static struct connection *const some_connection = (void *)&away;
static struct postgres *const some_postgres = (void *)&opened;

struct look {
    const char *postgres;
    int code;
};

thole_status __wrap_nats_connection_open(const struct cli_options *options, struct connection **ret,
                                         thole_error *reterr)
{
    (void)options;
    if (away == NATS)
        return thole_fail(reterr, THOLE_UNAVAILABLE, "it says no");
    opened++;
    *ret = some_connection;
    return THOLE_OK;
}

void __wrap_connection_close(struct connection *connection)
{
    opened -= connection == some_connection;
}

thole_status __wrap_postgres_open(const struct postgres_options *options, struct postgres **ret,
                                  thole_error *reterr)
{
    (void)options;
    if (away == POSTGRES)
        return thole_fail(reterr, THOLE_UNAVAILABLE, "it says no");
    opened++;
    *ret = some_postgres;
    return THOLE_OK;
}

void __wrap_postgres_close(struct postgres *pg)
{
    opened -= pg == some_postgres;
}

/* ---- are the two of one namespace? ---- */

static struct namespace_check compared;
static thole_status compares; /* DENIED: by NATS */

thole_status __wrap_namespace_check_rows(struct namespace_check *check, struct postgres *pg,
                                         thole_error *reterr)
{
    CU_ASSERT_PTR_EQUAL(pg, some_postgres);
    check->tables = true;
    check->rows = compared.rows;
    check->rows.owned = 8;
    return compares == THOLE_UNSUPPORTED ? thole_fail(reterr, compares, "it says no") : THOLE_OK;
}

thole_status __wrap_namespace_check_nats(struct namespace_check *check, struct connection *connection,
                                         enum namespace_depth depth, thole_error *reterr)
{
    CU_ASSERT_PTR_EQUAL(connection, some_connection);
    CU_ASSERT_EQUAL(depth, NAMESPACE_RECORDS);
    check->verdict = compared.verdict;
    check->nats = compared.nats;
    check->cut = compared.cut;
    return compares == THOLE_OK ? THOLE_OK : thole_fail(reterr, compares, "it says no");
}

thole_status __wrap_topology_read_id(struct connection *connection, const char *ns, struct namespace_id *ret,
                                     thole_error *reterr)
{
    (void)connection, (void)ns, (void)reterr;
    *ret = compared.nats.id;
    return THOLE_OK;
}

static void compare(void *arg)
{
    struct look *const look = arg;
    struct cli const cli = {.options = {.ns = "shop", .postgres = look->postgres}};
    struct doctor_report report;
    report_begin(&report, &cli);
    doctor_identity(&report);
    look->code = report_end(&report);
}

#define ID_A "01234567-89ab-4cde-8f01-23456789abcd"
#define ID_B "11234567-89ab-4cde-8f01-23456789abcd"

static const struct {
    struct namespace_check as;
    thole_status compares;
    enum away away;
    const char *postgres, *line, *todo; /* line NULL: it says nothing */
    int code;
} comparisons[] = {
    {{.verdict = NAMESPACE_SAME, .rows = {.id = {ID_A}}},
     THOLE_OK,
     NONE,
     "db",
     "OK    identity         " ID_A ", the same in NATS and in Postgres",
     NULL,
     0},
    {{.verdict = NAMESPACE_SAME, .rows = {.loss_ms = 1, .loss_actor = "ann", .loss_reason = "fire"}},
     THOLE_OK,
     NONE,
     "db",
     "OK    loss             the last one was given up 1970-01-01T00:00:00.001Z by ann: fire",
     NULL,
     0},
    {{.verdict = NAMESPACE_SAME, .cut = 2},
     THOLE_OK,
     NONE,
     "db",
     "WARN  identity         NATS has lost the last records of 2 logs",
     "docs/operations.md",
     0},
    {{.verdict = NAMESPACE_OTHER, .nats = {.id = {ID_B}}, .rows = {.id = {ID_A}}},
     THOLE_OK,
     NONE,
     "db",
     "FAIL  identity         Postgres has rows of 8 partitions",
     "connect to the right servers; or thole recover",
     12},
    {{.verdict = NAMESPACE_LOST, .rows = {.id = {ID_A}}},
     THOLE_OK,
     NONE,
     "db",
     "NATS has nothing of it",
     "restore NATS's data; or thole recover",
     12},
    {{.verdict = NAMESPACE_SAME, .nats = {.id = {ID_B}}, .rows = {.id = {ID_A}}},
     THOLE_DENIED,
     NONE,
     "db",
     "FAIL  identity         Postgres has rows of 8 partitions",
     "connect to the right servers",
     12},
    {{.verdict = NAMESPACE_SAME, .nats = {.id = {ID_A}}, .rows = {.id = {ID_A}}},
     THOLE_DENIED,
     NONE,
     "db",
     "OK    identity         " ID_A,
     NULL,
     0},
    {{.verdict = NAMESPACE_SAME},
     THOLE_UNAVAILABLE,
     NONE,
     "db",
     "FAIL  identity         it says no",
     NULL,
     12},
    {{.verdict = NAMESPACE_SAME},
     THOLE_UNSUPPORTED,
     NONE,
     "db",
     "SKIP  identity         not compared",
     NULL,
     0},
    {{.verdict = NAMESPACE_NEW}, THOLE_OK, NONE, "db", NULL, NULL, 0},
    {{.verdict = NAMESPACE_SAME}, THOLE_OK, NATS, "db", NULL, NULL, 0},
    {{.verdict = NAMESPACE_SAME}, THOLE_OK, POSTGRES, "db", NULL, NULL, 0},
    {{.verdict = NAMESPACE_SAME}, THOLE_OK, NONE, "", NULL, NULL, 0},
    {{.verdict = NAMESPACE_SAME}, THOLE_OK, NONE, NULL, NULL, NULL, 0},
};

static void test_identity(void)
{
    for (size_t i = 0; i < ARRAY_LEN(comparisons); i++) {
        struct look arg = {.postgres = comparisons[i].postgres};
        away = comparisons[i].away;
        compared = comparisons[i].as;
        compares = comparisons[i].compares;
        char *const said = captured(1, compare, &arg);
        CU_ASSERT_EQUAL(opened, 0);
        CU_ASSERT_EQUAL(arg.code, comparisons[i].code);
        if (comparisons[i].line != NULL && strstr(said, comparisons[i].line) == NULL)
            CHECK_STR("line", said, comparisons[i].line);
        if (comparisons[i].todo != NULL && strstr(said, comparisons[i].todo) == NULL)
            CHECK_STR("todo", said, comparisons[i].todo);
        CU_ASSERT_EQUAL(strstr(said, "identity") == NULL, comparisons[i].line == NULL);
        free(said);
    }
}

static const struct thole_test tests[] = {{"identity", test_identity}};
THOLE_TEST_MAIN("doctor_identity", tests)
