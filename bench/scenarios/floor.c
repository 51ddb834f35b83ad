#include "floor.h"
#include "buf.h"
#include "floor_streams.h"
#include <inttypes.h>
#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { NUMBER_BYTES = 24, PARAMETERS = 2 };

struct floor {
    struct floor_streams streams;
    PGconn *pg;
    struct buf ids; /* of the workflows of a round, as an array of Postgres */
    uint64_t rounds;
    size_t batch;
    unsigned activities;
};

/* ---- rows ---- */

static bool run_sql(PGconn *pg, const char *sql)
{
    PGresult *const result = PQexec(pg, sql);
    bool const good = PQresultStatus(result) == PGRES_COMMAND_OK || PQresultStatus(result) == PGRES_TUPLES_OK;
    if (!good)
        (void)bench_fail("floor", PQerrorMessage(pg));
    PQclear(result);
    return good;
}

static bool prepare(PGconn *pg, const char *name, const char *sql)
{
    PGresult *const result = PQprepare(pg, name, sql, 0, NULL);
    bool const good = PQresultStatus(result) == PGRES_COMMAND_OK;
    if (!good)
        (void)bench_fail("floor", PQerrorMessage(pg));
    PQclear(result);
    return good;
}

/* $1: ids of instances; $2: the activity. */
#define KEYS "unnest($1::text[]) AS k (instance)"
#define KEY " q.instance = k.instance AND q.execution = 1 AND q.activity_id = $2::int8"

static bool open_rows(struct floor *floor)
{
    const char *const url = getenv("THOLE_POSTGRES");
    floor->pg = PQconnectdb(url == NULL ? "" : url);
    if (PQstatus(floor->pg) != CONNECTION_OK)
        return bench_fail("floor", PQerrorMessage(floor->pg));
    return run_sql(floor->pg,
                   "SET client_min_messages = warning; SET synchronous_commit = off;"
                   " CREATE SCHEMA IF NOT EXISTS bench_floor; SET search_path = bench_floor;"
                   " DROP TABLE IF EXISTS queue, instances;"
                   " CREATE TABLE queue (instance text COLLATE \"C\", execution int8, activity_id int8,"
                   " p int4, try int4, attempt int8, activity text, queue text, worker text,"
                   " lease_until timestamptz, PRIMARY KEY (instance, execution, activity_id));"
                   " CREATE TABLE instances (instance text COLLATE \"C\" PRIMARY KEY, p int4,"
                   " orchestration text, status int2, created_ms int8, updated_ms int8)") &&
           prepare(floor->pg, "insert",
                   "WITH i AS (INSERT INTO instances SELECT instance, 0, 'floor', 1, 0, 0 FROM " KEYS
                   " WHERE $2::int8 = 1) INSERT INTO queue SELECT instance, 1, $2::int8, 0, 1, 0, 'echo', "
                   "'default'"
                   " FROM " KEYS) &&
           prepare(floor->pg, "claim",
                   "UPDATE queue AS q SET worker = 'w', attempt = q.attempt + 1,"
                   " lease_until = clock_timestamp() + interval '30 s' FROM " KEYS " WHERE" KEY) &&
           prepare(floor->pg, "delete", "DELETE FROM queue AS q USING " KEYS " WHERE" KEY) &&
           prepare(floor->pg, "end",
                   "UPDATE instances AS q SET status = 4, updated_ms = $2::int8 FROM " KEYS
                   " WHERE q.instance = k.instance");
}

/* One statement for the rows of a round: all of them must be there. */
static bool change_rows(struct floor *floor, const char *statement, unsigned activity)
{
    char number[NUMBER_BYTES];
    const char *const values[PARAMETERS] = {buf_cstr(&floor->ids), number};
    (void)snprintf(number, sizeof number, "%u", activity);
    PGresult *const result = PQexecPrepared(floor->pg, statement, PARAMETERS, values, NULL, NULL, 0);
    bool const good =
        PQresultStatus(result) == PGRES_COMMAND_OK && strtoul(PQcmdTuples(result), NULL, 10) == floor->batch;
    if (!good)
        (void)bench_fail_at("floor", "%s: %s rows of %zu: %s", statement, PQcmdTuples(result), floor->batch,
                            PQerrorMessage(floor->pg));
    PQclear(result);
    return good;
}

/* ---- a round: a workflow, or many, step by step ---- */

static void name_workflows(struct floor *floor)
{
    buf_clear(&floor->ids);
    for (size_t i = 0; i < floor->batch; i++) {
        char id[2 * NUMBER_BYTES];
        int const n =
            snprintf(id, sizeof id, "%cfloor-%" PRIu64 "-%zu", i == 0 ? '{' : ',', floor->rounds, i);
        buf_append(&floor->ids, id, (size_t)n);
    }
    buf_append(&floor->ids, "}", 1);
    floor->rounds++;
}

static bool run_activity(struct floor *floor, unsigned activity)
{
    struct floor_streams *const streams = &floor->streams;
    return change_rows(floor, "insert", activity) && floor_work(streams, floor->batch) &&
           change_rows(floor, "claim", activity) && change_rows(floor, "delete", activity) &&
           floor_work_done(streams, floor->batch) && floor_history(streams, floor->batch);
}

static bool run_round(struct floor *floor, uint64_t *ret_us)
{
    struct floor_streams *const streams = &floor->streams;
    name_workflows(floor);
    uint64_t const begin_us = bench_now_us();
    bool good = floor_inbox(streams, floor->batch) && floor_history(streams, floor->batch);
    for (unsigned i = 1; good && i <= floor->activities; i++)
        good = run_activity(floor, i);
    good = good && floor_end(streams, floor->batch);
    *ret_us = bench_now_us() - begin_us;
    return good && change_rows(floor, "end", 1);
}

/* ---- the process, which speaks as a load does ---- */

static bool wait_for_go(const char *text)
{
    char line[16];
    printf("%s\n", text);
    return fflush(stdout) == 0 && fgets(line, sizeof line, stdin) != NULL;
}

static bool run_rounds(struct floor *floor, size_t n, uint64_t end_us, uint64_t *samples, size_t *ret_done)
{
    size_t done = 0;
    for (; done < n && bench_now_us() < end_us; done++)
        if (!run_round(floor, &samples[done]))
            return false;
    *ret_done = done;
    return true;
}

static int measure(struct floor *floor, size_t warm_up, size_t n, uint64_t limit_us, uint64_t *samples)
{
    char text[256];
    size_t done = 0;
    if (!run_rounds(floor, warm_up, UINT64_MAX, samples, &done) || !wait_for_go("ready"))
        return 1;
    uint64_t const begin_us = bench_now_us();
    if (!run_rounds(floor, n, limit_us == 0 ? UINT64_MAX : begin_us + limit_us, samples, &done))
        return 1;
    uint64_t const wall_us = bench_now_us() - begin_us;
    struct spread const us = bench_spread(samples, done);
    (void)snprintf(text, sizeof text, "done %zu %" PRIu64 " %.0f %.0f %.0f %.0f %.0f", done * floor->batch,
                   wall_us, us.p50, us.p90, us.p99, us.p999, us.max);
    return wait_for_go(text) ? 0 : 1;
}

bool floor_is(int argc, char **argv)
{
    return argc > 2 && strcmp(argv[1], "client") == 0 && strncmp(argv[2], "floor-", 6) == 0;
}

/* client floor-ACTIVITIES PREFIX BATCH WARM_UP COUNT MILLISECONDS RATE; warm-up and count are rounds. */
int floor_main(int argc, char **argv)
{
    static struct floor floor;
    enum { ROUNDS_MAX = 1000000 };
    if (argc != 9)
        return 2;
    floor.activities = (unsigned)strtoul(argv[2] + 6, NULL, 10);
    floor.batch = strtoul(argv[4], NULL, 10);
    size_t const warm_up = strtoul(argv[5], NULL, 10), count = strtoul(argv[6], NULL, 10);
    size_t const n = count == 0 || count > ROUNDS_MAX ? ROUNDS_MAX : count;
    if (floor.batch == 0 || floor.batch > FLOOR_BATCH_MAX || warm_up > n)
        return 2;
    buf_init(&floor.ids, floor.batch * 2 * NUMBER_BYTES + 8);
    uint64_t *const samples = calloc(n, sizeof *samples);
    if (samples == NULL)
        return 2;
    if (!floor_streams_open(&floor.streams, floor.batch > 1) || !open_rows(&floor))
        return 1;
    int const code = measure(&floor, warm_up, n, strtoul(argv[7], NULL, 10) * UINT64_C(1000), samples);
    PQfinish(floor.pg);
    floor_streams_close(&floor.streams);
    buf_release(&floor.ids);
    free(samples);
    return code;
}
