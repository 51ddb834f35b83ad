/*
 * The cost of removal on a large stream: `removal_cost --help`, docs/benchmarks.md. Orders (one activity, one
 * after the other) are timed alone and beside each removal. First instances of which each record stands among
 * many others, then so many MiB of those, then the removals: `prune` of instances that continue as new,
 * `delete`, `archive run`. Exit codes: 0; 1: could not measure; 2: usage; 77: a server is not installed.
 */
#include "bench_program.h"
#include "client_internal.h"
#include "counters.h"
#include "load.h"
#include "memory.h"
#include "reader.h"
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum {
    FILL_BYTES = 2000, /* of an input; a record has input and output */
    FILL_RECORD_BYTES = 4300,
    ROUNDS = 20, /* loops and what fills the stream take turns */
    ORDERS_ALONE_US = 5 * 1000000,
    ORDERS_MAX = 1000000,
    STALLED_US = 120 * 1000000,
    DELETE_THREADS = 64,
    POLL_US = 20 * 1000,
    LOOK_US = 2 * 1000,
    TEXT_BYTES = 64,
    PRUNES = 50,
    FLOOR_RECORDS = 5000, /* records that a floor deletes */
    FLOOR_UNDER_WAY = 64,
    FLOOR_PURGES = 20,
    PRUNED = 10,
};
#define PRUNED_TEXT THOLE_STR("9") /* the executions before the next one */

struct options {
    unsigned mib, loops, executions, deleted, archived;
};

struct bench {
    struct options options;
    struct stand stand;
    thole_client *client;
    char stream[STREAM_NAME_BYTES_MAX];
    double alone_us; /* p50 of an order */
};

/* ---- records ---- */

static bool count_records(struct bench *bench, uint64_t *ret)
{
    thole_error err = {.status = THOLE_OK};
    struct stream_bounds bounds = {.messages = 0};
    (void)snprintf(bench->stream, sizeof bench->stream, "THOLE_%s_HIST_0", bench->client->topology.ns);
    if (stream_bounds(bench->client->connection, bench->stream, &bounds, &err) != THOLE_OK)
        return bench_fail("records", err.text);
    *ret = bounds.messages;
    return true;
}

/* ---- starts ---- */

struct starts {
    const char *kind, *prefix;
    thole_slice input;
    uint64_t next, end, stored;
    char id[TEXT_BYTES];
};

static thole_status give(void *arg, thole_start_item *ret_item, thole_error *reterr)
{
    struct starts *const starts = arg;
    (void)reterr;
    if (starts->next == starts->end)
        return THOLE_NOT_FOUND;
    (void)snprintf(starts->id, sizeof starts->id, "%s%" PRIu64, starts->prefix, starts->next++);
    ret_item->instance = thole_slice_from(starts->id);
    ret_item->orchestration = thole_slice_from(starts->kind);
    ret_item->input = starts->input;
    return THOLE_OK;
}

static thole_status on_answer(void *arg, uint64_t token, thole_slice instance, const thole_error *error)
{
    (void)token, (void)instance;
    ((struct starts *)arg)->stored += error->status == THOLE_OK;
    return error->status;
}

static bool start_all(struct bench *bench, struct starts *starts)
{
    thole_error error = {.status = THOLE_OK};
    thole_status const status = thole_client_start_many(bench->client, give, on_answer, starts, &error);
    return status == THOLE_OK || bench_fail(starts->prefix, error.text);
}

/* Until so many have ended, or, of loops, wait at that execution. */
static bool removal_cost_await_rows(struct bench *bench, const char *prefix, const char *condition,
                                    uint64_t count)
{
    char statement[256];
    uint64_t n = 0, before = 0, moved_us = bench_now_us();
    (void)snprintf(statement, sizeof statement,
                   "SELECT count(*) FROM thole_default.instances WHERE instance >= '%s' AND instance < '%s~' "
                   "AND %s",
                   prefix, prefix, condition);
    for (; n < count; bench_nap_us(POLL_US)) {
        if (!stand_ask_number(&bench->stand, statement, &n))
            return false;
        moved_us = n != before ? bench_now_us() : moved_us;
        before = n;
        if (bench_now_us() > moved_us + STALLED_US)
            return bench_fail_at(prefix, "%" PRIu64 " of %" PRIu64 " have %s", n, count, condition);
    }
    return true;
}

/* ---- orders, beside which all else happens ---- */

struct orders {
    struct bench *bench;
    thole_client *client;
    pthread_t thread;
    atomic_bool stopping;
    uint64_t *us;
    size_t len;
    bool failed;
    const char *prefix;
};

static void *orders_main(void *arg)
{
    struct orders *const orders = arg;
    thole_error error = {.status = THOLE_OK};
    while (!atomic_load(&orders->stopping) && orders->len < ORDERS_MAX && !orders->failed) {
        char id[TEXT_BYTES];
        thole_outcome outcome = {.status = THOLE_INSTANCE_UNKNOWN};
        (void)snprintf(id, sizeof id, "%s%zu", orders->prefix, orders->len);
        uint64_t const begun_us = bench_now_us();
        orders->failed = thole_client_run(orders->client, thole_slice_from(id), THOLE_STR("one"),
                                          THOLE_STR("x"), STALLED_US / 1000, &outcome, &error) != THOLE_OK;
        orders->us[orders->len++] = bench_now_us() - begun_us;
        thole_outcome_release(&outcome);
    }
    if (orders->failed)
        (void)bench_fail("order", error.text);
    return NULL;
}

static bool orders_begin(struct bench *bench, const char *prefix, struct orders *orders)
{
    *orders = (struct orders){.bench = bench, .prefix = prefix};
    orders->us = memory_array(ORDERS_MAX, sizeof *orders->us);
    return stand_client(&orders->client) &&
           (pthread_create(&orders->thread, NULL, orders_main, orders) == 0 || bench_fail("thread", "none"));
}

static bool orders_end(struct orders *orders, struct spread *ret)
{
    atomic_store(&orders->stopping, true);
    pthread_join(orders->thread, NULL);
    *ret = bench_spread(orders->us, orders->len);
    free(orders->us);
    thole_client_close(orders->client);
    return !orders->failed;
}

/* ---- the stream ---- */

/* Whether the engine runs a first order. */
static bool removal_cost_runs_first(thole_client *client)
{
    thole_outcome outcome = {.status = THOLE_INSTANCE_UNKNOWN};
    thole_error error = {.status = THOLE_OK};
    thole_status const status = thole_client_run(client, THOLE_STR("first"), THOLE_STR("one"), THOLE_STR("x"),
                                                 STALLED_US / 1000, &outcome, &error);
    thole_outcome_release(&outcome);
    return status == THOLE_OK || bench_fail("first order", error.text);
}

static bool fill(struct bench *bench)
{
    static uint8_t bytes[FILL_BYTES];
    struct options const *const o = &bench->options;
    uint64_t const filling = (uint64_t)o->mib * 1024 * 1024 / FILL_RECORD_BYTES;
    char number[TEXT_BYTES], condition[TEXT_BYTES];
    memset(bytes, 'x', sizeof bytes);
    (void)snprintf(number, sizeof number, "%u", o->executions / ROUNDS - 1);
    struct starts loops = {.kind = "loop", .prefix = "loop-", .input = THOLE_STR("0"), .end = o->loops};
    struct starts deleted = {.kind = "chain", .prefix = "gone-", .input = THOLE_STR("x")};
    struct starts archived = {.kind = "chain", .prefix = "kept-", .input = THOLE_STR("x")};
    struct starts fillers = {.kind = "start", .prefix = "fill-", .input = {bytes, sizeof bytes}};
    if (!start_all(bench, &loops))
        return false;
    for (uint64_t round = 1; round <= ROUNDS; round++) {
        deleted.end = o->deleted * round / ROUNDS;
        archived.end = o->archived * round / ROUNDS;
        fillers.end = filling * round / ROUNDS;
        for (unsigned i = 0; i < o->loops; i++) {
            char id[TEXT_BYTES];
            thole_error error;
            (void)snprintf(id, sizeof id, "loop-%u", i);
            if (thole_client_signal(bench->client, thole_slice_from(id), THOLE_STR("go"),
                                    thole_slice_from(number), (thole_slice){0}, NULL, &error) != THOLE_OK)
                return bench_fail(id, error.text);
        }
        if (!start_all(bench, &deleted) || !start_all(bench, &archived) || !start_all(bench, &fillers))
            return false;
        (void)snprintf(condition, sizeof condition, "execution >= %" PRIu64,
                       round * (o->executions / ROUNDS) + 1);
        if (!removal_cost_await_rows(bench, "gone-", "status = 4", deleted.end) ||
            !removal_cost_await_rows(bench, "kept-", "status = 4", archived.end) ||
            !removal_cost_await_rows(bench, "fill-", "status = 4", fillers.end) ||
            !removal_cost_await_rows(bench, "loop-", condition, o->loops))
            return false;
        fprintf(stderr, "removal_cost: %" PRIu64 " of %d parts are filled\n", round, ROUNDS);
    }
    return true;
}

/* ---- the removals ---- */

/* Until none of these executions has a record. */
static bool gone(struct bench *bench, const char *prefix, uint64_t count, uint64_t execution)
{
    uint64_t moved_us = bench_now_us();
    for (uint64_t i = 0; i < count;) {
        char subject[TEXT_BYTES];
        thole_error error = {.status = THOLE_OK};
        uint64_t last = 0;
        (void)snprintf(subject, sizeof subject, "thole.default.hist.0.%s%" PRIu64 ".%" PRIu64, prefix, i,
                       execution);
        if (stream_last_by_subject(bench->client->connection, bench->stream, subject, &last, NULL, &error) !=
            THOLE_OK)
            return bench_fail(subject, error.text);
        if (last == 0)
            moved_us = bench_now_us();
        else
            bench_nap_us(LOOK_US);
        i += last == 0;
        if (bench_now_us() > moved_us + STALLED_US)
            return bench_fail(subject, "it is not removed");
    }
    return true;
}

static bool prune_all(struct bench *bench, uint64_t *ret_removed)
{
    struct options const *const o = &bench->options;
    for (unsigned i = 0; i < o->loops; i++) {
        char id[TEXT_BYTES];
        thole_error error = {.status = THOLE_OK};
        (void)snprintf(id, sizeof id, "loop-%u", i);
        if (thole_client_prune(bench->client, thole_slice_from(id), o->executions / ROUNDS * ROUNDS + 1,
                               THOLE_STR("bench"), &error) != THOLE_OK)
            return bench_fail(id, error.text);
    }
    *ret_removed = (uint64_t)o->loops * (o->executions / ROUNDS * ROUNDS - 1);
    return gone(bench, "loop-", o->loops, o->executions / ROUNDS * ROUNDS);
}

/* One instance goes on for some executions, and is pruned again and again: its first record is old. */
static bool prune_again(struct bench *bench, uint64_t *ret_removed)
{
    uint64_t execution = bench->options.executions / ROUNDS * ROUNDS + 1;
    uint64_t us[PRUNES];
    struct spread spread;
    for (unsigned i = 0; i < PRUNES; i++) {
        char condition[TEXT_BYTES], subject[TEXT_BYTES];
        thole_error error = {.status = THOLE_OK};
        uint64_t last = 1;
        execution += PRUNED;
        (void)snprintf(condition, sizeof condition, "execution >= %" PRIu64, execution);
        (void)snprintf(subject, sizeof subject, "thole.default.hist.0.loop-0.%" PRIu64, execution - 1);
        if (thole_client_signal(bench->client, THOLE_STR("loop-0"), THOLE_STR("go"), PRUNED_TEXT,
                                (thole_slice){0}, NULL, &error) != THOLE_OK ||
            !removal_cost_await_rows(bench, "loop-0", condition, 1))
            return bench_fail("loop-0", error.text);
        uint64_t const begun_us = bench_now_us();
        thole_status status =
            thole_client_prune(bench->client, THOLE_STR("loop-0"), execution, THOLE_STR("bench"), &error);
        while (status == THOLE_OK && last != 0)
            status = stream_last_by_subject(bench->client->connection, bench->stream, subject, &last, NULL,
                                            &error);
        if (status != THOLE_OK)
            return bench_fail("loop-0", error.text);
        us[i] = bench_now_us() - begun_us;
    }
    spread = bench_spread(us, PRUNES);
    printf("  each of %d prunings of %d executions: p50 %.2f ms, p99 %.1f: %.0f executions/s\n", PRUNES,
           PRUNED, spread.p50 / 1000, spread.p99 / 1000, PRUNED * 1e6 / spread.p50);
    *ret_removed = 0;
    return true;
}

struct deleting {
    struct bench *bench;
    atomic_uint next;
    atomic_bool failed;
};

static void *delete_main(void *arg)
{
    struct deleting *const deleting = arg;
    for (unsigned i; (i = atomic_fetch_add(&deleting->next, 1)) < deleting->bench->options.deleted;) {
        char id[TEXT_BYTES];
        thole_error error = {.status = THOLE_OK};
        bool accepted = false;
        (void)snprintf(id, sizeof id, "gone-%u", i);
        if (thole_client_delete(deleting->bench->client, thole_slice_from(id), NULL, &accepted, &error) !=
                THOLE_OK ||
            !accepted) {
            (void)bench_fail(id, error.text);
            atomic_store(&deleting->failed, true);
        }
    }
    return NULL;
}

static bool delete_all(struct bench *bench, uint64_t *ret_removed)
{
    enum { CHAIN_RECORDS = PROGRAM_CHAIN + 1 };
    struct deleting deleting = {.bench = bench};
    pthread_t threads[DELETE_THREADS];
    uint64_t const begun_us = bench_now_us();
    for (size_t i = 0; i < DELETE_THREADS; i++)
        if (pthread_create(&threads[i], NULL, delete_main, &deleting) != 0)
            return bench_fail("thread", "none");
    for (size_t i = 0; i < DELETE_THREADS; i++)
        pthread_join(threads[i], NULL);
    printf("  accepted: %.0f instances/s\n",
           bench->options.deleted * 1e6 / (double)(bench_now_us() - begun_us));
    *ret_removed = (uint64_t)bench->options.deleted * CHAIN_RECORDS;
    return !atomic_load(&deleting.failed) && gone(bench, "gone-", bench->options.deleted, 1);
}

static double children_us(void)
{
    struct rusage usage;
    (void)getrusage(RUSAGE_CHILDREN, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1e6 +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

static bool archive_run_timed(struct bench *bench, const char *options, const char *what)
{
    char self[SERVER_PATH_BYTES], line[4 * SERVER_PATH_BYTES];
    ssize_t const len = readlink("/proc/self/exe", self, sizeof self - 1);
    if (len < 0)
        return bench_fail("thole", "/proc/self/exe cannot be read");
    self[len] = '\0';
    *strrchr(self, '/') = '\0';
    (void)snprintf(line, sizeof line,
                   "exec %s/../cli/thole archive run --unsealed --older-than 0s --prefix kept- %s --dir "
                   "%s/archive >/dev/null 2>&1",
                   self, options, bench->stand.dir);
    double const cpu_us = children_us();
    uint64_t const begun_us = bench_now_us();
    if (system(line) != 0)
        return bench_fail("thole", "archive run");
    printf("  archive run%s: %.0f instances/s, %.0f us of its own CPU time for each\n", what,
           bench->options.archived * 1e6 / (double)(bench_now_us() - begun_us),
           (children_us() - cpu_us) / bench->options.archived);
    return true;
}

static bool archive_all(struct bench *bench, uint64_t *ret_removed)
{
    enum { CHAIN_RECORDS = PROGRAM_CHAIN + 1 };
    *ret_removed = (uint64_t)bench->options.archived * CHAIN_RECORDS;
    return archive_run_timed(bench, "", "") && gone(bench, "kept-", bench->options.archived, 1);
}

static bool archive_read(struct bench *bench, uint64_t *ret_removed)
{
    *ret_removed = 0;
    return archive_run_timed(bench, "--dry-run", " --dry-run");
}

static void print_cost(const struct sample *before, const struct sample *after, uint64_t removed,
                       size_t orders)
{
    static const enum bench_role roles[] = {ROLE_ENGINE, ROLE_NATS, ROLE_PG_ENGINE};
    printf("  CPU time of these and of %zu orders:", orders);
    for (size_t i = 0; i < sizeof roles / sizeof roles[0]; i++) {
        double const us = (double)(after->roles[roles[i]].cpu_ns - before->roles[roles[i]].cpu_ns) / 1000;
        printf(" %s %.2f s (%.1f us a record)", bench_role_names[roles[i]], us / 1e6,
               removed == 0 ? 0 : us / (double)removed);
    }
    printf("\n");
}

static bool removal_cost_measure(struct bench *bench, const char *what,
                                 bool (*remove)(struct bench *bench, uint64_t *ret_removed))
{
    static struct sample from, to;
    struct orders orders;
    struct spread spread;
    uint64_t removed = 0;
    memset(&from, 0, sizeof from);
    memset(&to, 0, sizeof to);
    printf("%s\n", what);
    (void)fflush(stdout);
    if (!orders_begin(bench, what, &orders) || !processes_read(&bench->stand, &from))
        return false;
    uint64_t const begun_us = bench_now_us();
    bool good = remove(bench, &removed) && processes_read(&bench->stand, &to);
    double const seconds = (double)(bench_now_us() - begun_us) / 1e6;
    good = orders_end(&orders, &spread) && good;
    printf("  removed: %" PRIu64 " records in %.2f s: %.0f/s; %zu orders: p50 %.2f ms (%.2f of alone), p99 "
           "%.1f, max %.1f\n",
           removed, seconds, (double)removed / seconds, spread.n, spread.p50 / 1000,
           spread.p50 / bench->alone_us, spread.p99 / 1000, spread.max / 1000);
    print_cost(&from, &to, removed, spread.n);
    (void)fflush(stdout);
    return good;
}

static bool measure_alone(struct bench *bench, const char *prefix)
{
    struct orders orders;
    struct spread spread;
    if (!orders_begin(bench, prefix, &orders))
        return false;
    bench_nap_us(ORDERS_ALONE_US);
    bool const good = orders_end(&orders, &spread);
    bench->alone_us = spread.p50;
    printf("orders alone: %zu, p50 %.2f ms, p99 %.1f, max %.1f\n", spread.n, spread.p50 / 1000,
           spread.p99 / 1000, spread.max / 1000);
    return good;
}

/* ---- the floor: what the server does at best, of records whose places are known ---- */

struct floor {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    size_t out; /* under the lock */
    bool failed;
    struct requests *window;
};

static void floor_on_done(void *arg, const struct request_done *done)
{
    struct floor *const floor = arg;
    pthread_mutex_lock(&floor->lock);
    floor->out--;
    floor->failed |= done->result != REQUEST_ANSWERED;
    pthread_cond_signal(&floor->changed);
    pthread_mutex_unlock(&floor->lock);
}

static void floor_wait(struct floor *floor, size_t fewer_than)
{
    pthread_mutex_lock(&floor->lock);
    while (floor->out >= fewer_than)
        pthread_cond_wait(&floor->changed, &floor->lock);
    pthread_mutex_unlock(&floor->lock);
}

static void floor_ask(struct floor *floor, const struct bench *bench, uint64_t sequence)
{
    pthread_mutex_lock(&floor->lock);
    floor->out++;
    pthread_mutex_unlock(&floor->lock);
    if (stream_delete_send(floor->window, bench->stream, sequence, sequence, NULL) != THOLE_OK)
        floor_on_done(floor, &(struct request_done){.result = REQUEST_UNKNOWN});
}

/* FLOOR_RECORDS from @p from on, every so many, of @p group of which one is answered. */
static bool floor_delete(struct bench *bench, struct floor *floor, const char *what, uint64_t from,
                         uint64_t every, unsigned group)
{
    static struct sample before, after;
    struct connection *const connection = bench->client->connection;
    memset(&before, 0, sizeof before);
    memset(&after, 0, sizeof after);
    bool good = processes_read(&bench->stand, &before);
    uint64_t const begun_us = bench_now_us();
    for (unsigned i = 1; i <= FLOOR_RECORDS && good; i++) {
        uint64_t const sequence = from + i * every;
        if (i % group == 0) {
            floor_wait(floor, FLOOR_UNDER_WAY / group);
            floor_ask(floor, bench, sequence);
            connection_uncork(connection);
            connection_cork(connection);
        } else {
            good = stream_delete_tell(connection, bench->stream, sequence, NULL) == THOLE_OK;
        }
    }
    connection_uncork(connection);
    floor_wait(floor, 1);
    double const seconds = (double)(bench_now_us() - begun_us) / 1e6;
    good = processes_read(&bench->stand, &after) && good && !floor->failed;
    printf("  floor, %s (every %" PRIu64
           "), one answer for %u: %.0f records/s, %.1f us of nats-server's CPU time for each\n",
           what, every, group, FLOOR_RECORDS / seconds,
           (double)(after.roles[ROLE_NATS].cpu_ns - before.roles[ROLE_NATS].cpu_ns) / 1000 / FLOOR_RECORDS);
    (void)fflush(stdout);
    return good || bench_fail("floor", "a deletion was not answered");
}

/* One call removes all records of an instance. */
static bool floor_purge(struct bench *bench)
{
    char api[STREAM_NAME_BYTES_MAX + 32], body[2 * TEXT_BYTES];
    uint64_t us[FLOOR_PURGES];
    struct buf answer;
    thole_status status = THOLE_OK;
    thole_error error = {.status = THOLE_OK};
    (void)snprintf(api, sizeof api, "$JS.API.STREAM.PURGE.%s", bench->stream);
    buf_init(&answer, FILL_RECORD_BYTES);
    for (unsigned i = 0; i < FLOOR_PURGES && status == THOLE_OK; i++) {
        (void)snprintf(body, sizeof body, "{\"filter\":\"thole.default.hist.0.fill-%u.1\"}", i);
        uint64_t const begun_us = bench_now_us();
        status = connection_request(bench->client->connection, api, thole_slice_from(body), &answer, &error);
        us[i] = bench_now_us() - begun_us;
    }
    buf_release(&answer);
    if (status != THOLE_OK)
        return bench_fail("purge", error.text);
    struct spread const spread = bench_spread(us, FLOOR_PURGES);
    printf("  floor, a purge by subject: p50 %.2f ms, max %.1f\n", spread.p50 / 1000, spread.max / 1000);
    return true;
}

/* Last, as it removes all streams. */
static bool measure_floor(struct bench *bench)
{
    struct floor floor = {.failed = false};
    struct stream_bounds bounds;
    thole_error error = {.status = THOLE_OK};
    pthread_mutex_init(&floor.lock, NULL);
    pthread_cond_init(&floor.changed, NULL);
    if (stream_bounds(bench->client->connection, bench->stream, &bounds, &error) != THOLE_OK ||
        requests_open(bench->client->connection, FLOOR_UNDER_WAY, STALLED_US / 1000, floor_on_done, &floor,
                      &floor.window, &error) != THOLE_OK)
        return bench_fail("floor", error.text);
    printf("floor\n");
    if (bounds.last <= 8 * (uint64_t)FLOOR_RECORDS)
        printf("  there are too few records\n");
    /* In the last quarter; in the second half, as far from each other as those of `delete` stood; everywhere.
     */
    uint64_t const range = bounds.last - bounds.first, dense = bounds.last - range / 4;
    uint64_t const wanted = (uint64_t)bench->options.deleted * (PROGRAM_CHAIN + 1) + 1;
    uint64_t const as = range / wanted < range / (8 * FLOOR_RECORDS) ? range / wanted + 1 : 1;
    uint64_t const sparse = range / (2 * FLOOR_RECORDS + 1), from = bounds.first + range / 2;
    bool const good =
        bounds.last <= 8 * (uint64_t)FLOOR_RECORDS ||
        (floor_purge(bench) && floor_delete(bench, &floor, "side by side", dense, 1, 1) &&
         floor_delete(bench, &floor, "side by side", dense + FLOOR_RECORDS, 1, 16) &&
         floor_delete(bench, &floor, "as those of delete stood", from, as, 1) &&
         floor_delete(bench, &floor, "as those of delete stood", from + FLOOR_RECORDS * as, as, 16) &&
         floor_delete(bench, &floor, "everywhere", bounds.first, sparse, 16));
    requests_close(floor.window);
    pthread_cond_destroy(&floor.changed);
    pthread_mutex_destroy(&floor.lock);
    return good;
}

static bool run_all(struct bench *bench)
{
    const char *const arguments[] = {"--partitions=1", NULL};
    uint64_t records = 0;
    if (!stand_start_engine(&bench->stand, 0, arguments) || !stand_start_worker(&bench->stand, 256) ||
        !stand_client(&bench->client))
        return false;
    uint64_t const begun_us = bench_now_us();
    if (!removal_cost_runs_first(bench->client) || !fill(bench) || !count_records(bench, &records))
        return false;
    printf("filled: %" PRIu64 " records in %.0f s\n", records, (double)(bench_now_us() - begun_us) / 1e6);
    return measure_alone(bench, "alone-") &&
           (bench->options.loops == 0 || (removal_cost_measure(bench, "prune", prune_all) &&
                                          removal_cost_measure(bench, "again", prune_again))) &&
           measure_alone(bench, "then-") &&
           (bench->options.deleted == 0 || removal_cost_measure(bench, "delete", delete_all)) &&
           measure_alone(bench, "last-") &&
           (bench->options.archived == 0 || (removal_cost_measure(bench, "look", archive_read) &&
                                             removal_cost_measure(bench, "archive", archive_all))) &&
           measure_floor(bench) && printf("load of the machine: %.1f\n", bench_load_average()) > 0;
}

static int removal_cost_print_usage(FILE *to, int code)
{
    fprintf(to, "usage: removal_cost [--mib N] [--loops N] [--executions N] [--delete N] [--archive N]\n"
                "  --mib N         of other records in the stream (1024)\n"
                "  --loops N       instances that continue as new, and are pruned (10)\n"
                "  --executions N  of each of them (2000)\n"
                "  --delete N      instances that are deleted (20000)\n"
                "  --archive N     instances that are archived (10000)\n");
    return code;
}

int main(int argc, char **argv)
{
    static const struct option known[] = {
        {"mib", 1, NULL, 'm'},    {"loops", 1, NULL, 'l'},   {"executions", 1, NULL, 'e'},
        {"delete", 1, NULL, 'd'}, {"archive", 1, NULL, 'a'}, {"help", 0, NULL, 'h'},
        {NULL, 0, NULL, 0}};
    struct bench bench = {
        .options = {.mib = 1024, .loops = 10, .executions = 2000, .deleted = 20000, .archived = 10000}};
    struct options *const o = &bench.options;
    int code;
    if (program_role(argc, argv, &code))
        return code;
    (void)setenv("THOLE_EXECUTIONS_MAX", "0", 1); /* the removed data are from its loops */
    for (int option; (option = getopt_long(argc, argv, "", known, NULL)) != -1;)
        switch (option) {
        case 'm': o->mib = (unsigned)strtoul(optarg, NULL, 10); break;
        case 'l': o->loops = (unsigned)strtoul(optarg, NULL, 10); break;
        case 'e': o->executions = (unsigned)strtoul(optarg, NULL, 10); break;
        case 'd': o->deleted = (unsigned)strtoul(optarg, NULL, 10); break;
        case 'a': o->archived = (unsigned)strtoul(optarg, NULL, 10); break;
        case 'h': return removal_cost_print_usage(stdout, 0);
        default: return removal_cost_print_usage(stderr, 2);
        }
    if (optind != argc || o->executions < 2 * ROUNDS)
        return removal_cost_print_usage(stderr, 2);
    if (!stand_open(&bench.stand, &(struct stand_options){.sync_always = false}))
        return bench.stand.missing ? BENCH_SKIPPED : 1;
    bool const good = run_all(&bench);
    thole_client_close(bench.client);
    stand_close(&bench.stand);
    return good ? 0 : 1;
}
