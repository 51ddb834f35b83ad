/* The verdict of integration.ledger on a run that costs more than allowed, and its end. */
#include "ledger.h"
#include "thole_cunit.h"
#include <stdlib.h>

enum { WORKFLOWS = 200, UNITS = 5, ACTIVITIES = WORKFLOWS * UNITS };

/* Counts for each thousand activities. */
struct costs {
    uint64_t messages, transactions, engine_waits, worker_waits;
};

static int gate(const struct costs *costs, char **ret_said)
{
    size_t len;
    static struct measurement m;
    FILE *const out = open_memstream(ret_said, &len);
    CU_ASSERT_PTR_NOT_NULL_FATAL(out);
    m = (struct measurement){.scenario = {.kind = "chain", .workflows = WORKFLOWS, .units = UNITS}};
    m.cost.nats.in_messages = costs->messages;
    m.cost.postgres.writing = costs->transactions;
    m.cost.roles[ROLE_ENGINE].waits = costs->engine_waits;
    m.cost.roles[ROLE_WORKER].waits = costs->worker_waits;
    m.cost.roles[ROLE_CLIENT].waits = 1000 * ACTIVITIES; /* has no limit */
    int const code = ledger_gate(&m, out);
    (void)fclose(out);
    return code;
}

static size_t count_lines(const char *text)
{
    size_t n = 0;
    for (; (text = strchr(text, '\n')) != NULL; text++)
        n++;
    return n;
}

static void test_each_limit(void)
{
    static const struct {
        const char *name;
        struct costs costs;
        const char *says[3];
    } rows[] = {{"as measured", {4200, 140, 1400, 400}, {NULL}},
                {"at each limit", {4700, 300, 3000, 3000}, {NULL}},
                {"messages",
                 {4701, 300, 3000, 3000},
                 {"messages into NATS per activity: 4.701, and 4.700 is the limit"}},
                {"transactions",
                 {4700, 301, 3000, 3000},
                 {"transactions that write per activity: 0.301, and 0.300 is the limit"}},
                {"waits of the engine",
                 {4700, 300, 3001, 3000},
                 {"waits of the engine and the worker per activity: 6.001, and 6.000 is the limit"}},
                {"waits of the worker",
                 {4700, 300, 3000, 3001},
                 {"waits of the engine and the worker per activity: 6.001, and 6.000 is the limit"}},
                {"all",
                 {60000, 12000, 90000, 90000},
                 {"messages into NATS per activity: 60.000", "transactions that write per activity: 12.000",
                  "the worker per activity: 180.000"}}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char *said = NULL;
        size_t lines = 0;
        int const code = gate(&rows[i].costs, &said);
        for (; lines < ARRAY_LEN(rows[i].says) && rows[i].says[lines] != NULL; lines++)
            CU_ASSERT_PTR_NOT_NULL(strstr(said, rows[i].says[lines]));
        CU_ASSERT_EQUAL(code, lines == 0 ? 0 : 3); /* as docs/benchmarks.md says */
        CU_ASSERT_EQUAL(count_lines(said), lines);
        if (lines > 0) {
            CU_ASSERT_PTR_NOT_NULL(strstr(said, "scripts/bench ledger"));
            CU_ASSERT_PTR_NOT_NULL(strstr(said, "raise the limit in bench/ledger/ledger_gate.c"));
        }
        free(said);
    }
}

static const struct thole_test tests[] = {{"each limit", test_each_limit}};
THOLE_TEST_MAIN("ledger_gate", tests)
