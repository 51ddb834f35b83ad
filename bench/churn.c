/*
 * Remains of ids that are started, end and are deleted: `churn --help`, docs/benchmarks.md. Threads run one
 * id after the other and delete each, with the same namespace all the time; now and then a line shows
 * messages and subjects of the histories, bytes on nats-server's disk, its memory and the engine's, rows.
 * Exit codes: 0; 1: could not measure; 2: usage; 77: a server is not installed.
 */
#include "bench_program.h"
#include "client_internal.h"
#include "jscan.h"
#include "stand.h"
#include <getopt.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS_MAX = 256, PARTITIONS = 8, WAIT_MS = 120 * 1000, TEXT_BYTES = 64, LINE_BYTES = 512 };

struct churn {
    uint64_t ids, every_us;
    unsigned threads;
    const char *keep;
    struct stand stand;
    thole_client *client;
    atomic_uint_fast64_t next, done;
    atomic_bool failed;
};

/* ---- the lives ---- */

static thole_status live(struct churn *churn, uint64_t number, thole_error *reterr)
{
    char id[TEXT_BYTES];
    bool accepted;
    thole_outcome outcome = {.status = THOLE_INSTANCE_UNKNOWN};
    (void)snprintf(id, sizeof id, "churn-%" PRIu64, number);
    THOLE_TRY(thole_client_run(churn->client, thole_slice_from(id), THOLE_STR("one"), THOLE_STR("x"), WAIT_MS,
                               &outcome, reterr));
    thole_outcome_release(&outcome);
    return thole_client_delete(churn->client, thole_slice_from(id), NULL, &accepted, reterr);
}

static void *live_main(void *arg)
{
    struct churn *const churn = arg;
    thole_error error = {.status = THOLE_OK};
    for (uint64_t i; !atomic_load(&churn->failed) && (i = atomic_fetch_add(&churn->next, 1)) < churn->ids;) {
        if (live(churn, i, &error) != THOLE_OK) {
            atomic_store(&churn->failed, true);
            (void)bench_fail("an id", error.text);
        }
        atomic_fetch_add(&churn->done, 1);
    }
    return NULL;
}

/* ---- counts ---- */

static uint64_t churn_read_number(thole_slice answer, const char *path)
{
    thole_slice value;
    uint64_t number = 0;
    return json_path(answer, path, &value) && json_uint(value, &number) ? number : 0;
}

struct left {
    uint64_t messages, subjects, bytes, rows;
};

static bool look_at_streams(struct churn *churn, struct left *left)
{
    thole_error err = {.status = THOLE_OK};
    struct buf answer;
    bool good = true;
    buf_init(&answer, 1024 * 1024);
    for (int p = 0; p < PARTITIONS && good; p++) {
        char api[TEXT_BYTES];
        (void)snprintf(api, sizeof api, "$JS.API.STREAM.INFO.THOLE_default_HIST_%d", p);
        buf_clear(&answer);
        good = connection_request(churn->client->connection, api, (thole_slice){NULL, 0}, &answer, &err) ==
                   THOLE_OK ||
               bench_fail("a stream", err.text);
        left->messages += churn_read_number(buf_bytes(&answer), "state.messages");
        left->subjects += churn_read_number(buf_bytes(&answer), "state.num_subjects");
        left->bytes += churn_read_number(buf_bytes(&answer), "state.bytes");
    }
    buf_release(&answer);
    return good;
}

/* The first number of what the line prints. */
static uint64_t number_of(const char *line)
{
    unsigned long long number = 0;
    FILE *const from = popen(line, "r");
    if (from == NULL || fscanf(from, "%llu", &number) != 1)
        number = 0;
    if (from != NULL)
        (void)pclose(from);
    return number;
}

/* Of the process, and of those that it has started: an engine's serving one is a child. */
static uint64_t memory_kib(pid_t pid)
{
    char line[LINE_BYTES];
    (void)snprintf(line, sizeof line, "ps -o rss= --pid %ld --ppid %ld | awk '{s += $1} END {print s}'",
                   (long)pid, (long)pid);
    return number_of(line);
}

static uint64_t disk_kib(const struct churn *churn)
{
    char line[LINE_BYTES];
    (void)snprintf(line, sizeof line, "du -sk '%s'/nats* | awk '{s += $1} END {print s}'", churn->stand.dir);
    return number_of(line);
}

static bool churn_print_line(struct churn *churn, uint64_t begun_us)
{
    struct left left = {.rows = 0};
    uint64_t const done = atomic_load(&churn->done);
    double const seconds = (double)(bench_now_us() - begun_us) / 1e6;
    if (!look_at_streams(churn, &left) ||
        !stand_ask_number(&churn->stand, "SELECT count(*) FROM thole_default.instances", &left.rows))
        return false;
    (void)printf("%9" PRIu64 " %8.0f %9" PRIu64 " %9" PRIu64 " %9.1f %9.1f %9.1f %9.1f %6" PRIu64 " %6.1f\n",
                 done, (double)done / seconds, left.messages, left.subjects, (double)left.bytes / 1e6,
                 (double)disk_kib(churn) / 1024, (double)memory_kib(churn->stand.nats.pid) / 1024,
                 (double)memory_kib(churn->stand.engines[0]) / 1024, left.rows, bench_load_average());
    (void)fflush(stdout);
    return true;
}

/* ---- all of it ---- */

static bool churn_all(struct churn *churn)
{
    pthread_t threads[THREADS_MAX];
    uint64_t const begun_us = bench_now_us();
    unsigned started = 0;
    bool good = true;
    (void)printf("%9s %8s %9s %9s %9s %9s %9s %9s %6s %6s\n", "ids", "ids/s", "messages", "subjects",
                 "stream MB", "disk MiB", "NATS MiB", "eng. MiB", "rows", "load");
    while (started < churn->threads && pthread_create(&threads[started], NULL, live_main, churn) == 0)
        started++;
    while (good && !atomic_load(&churn->failed) && atomic_load(&churn->done) < churn->ids) {
        uint64_t const until_us = bench_now_us() + churn->every_us;
        while (bench_now_us() < until_us && atomic_load(&churn->done) < churn->ids &&
               !atomic_load(&churn->failed))
            bench_nap_us(50 * 1000);
        good = churn_print_line(churn, begun_us);
    }
    atomic_store(&churn->next, churn->ids);
    for (unsigned i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
    bench_nap_us(churn->every_us);
    return good && churn_print_line(churn, begun_us) && !atomic_load(&churn->failed);
}

static bool run_all(struct churn *churn)
{
    const char *const arguments[] = {"--partitions", "8", "--test-deletions-keep", churn->keep, NULL};
    return stand_start_engine(&churn->stand, 0, arguments) && stand_start_worker(&churn->stand, 64) &&
           stand_client(&churn->client) && churn_all(churn);
}

static int churn_print_usage(FILE *to, int code)
{
    fprintf(to, "usage: churn [--ids N] [--threads N] [--keep DURATION] [--every SECONDS]\n"
                "  --ids N          that are started, run and deleted (300000)\n"
                "  --threads N      at a time (64)\n"
                "  --keep DURATION  how long deletions are kept (5s)\n"
                "  --every SECONDS  a line (10)\n");
    return code;
}

int main(int argc, char **argv)
{
    static const struct option known[] = {{"ids", 1, NULL, 'i'},  {"threads", 1, NULL, 't'},
                                          {"keep", 1, NULL, 'k'}, {"every", 1, NULL, 'e'},
                                          {"help", 0, NULL, 'h'}, {NULL, 0, NULL, 0}};
    struct churn churn = {.ids = 300000, .threads = 64, .keep = "5s", .every_us = 10 * 1000000};
    int code;
    if (program_role(argc, argv, &code))
        return code;
    for (int option; (option = getopt_long(argc, argv, "", known, NULL)) != -1;)
        switch (option) {
        case 'i': churn.ids = strtoull(optarg, NULL, 10); break;
        case 't': churn.threads = (unsigned)strtoul(optarg, NULL, 10); break;
        case 'k': churn.keep = optarg; break;
        case 'e': churn.every_us = strtoull(optarg, NULL, 10) * 1000000; break;
        case 'h': return churn_print_usage(stdout, 0);
        default: return churn_print_usage(stderr, 2);
        }
    if (optind != argc || churn.threads == 0 || churn.threads > THREADS_MAX || churn.every_us == 0)
        return churn_print_usage(stderr, 2);
    if (!stand_open(&churn.stand, &(struct stand_options){.sync_always = false}))
        return churn.stand.missing ? BENCH_SKIPPED : 1;
    bool const good = run_all(&churn);
    thole_client_close(churn.client);
    stand_close(&churn.stand);
    return good ? 0 : 1;
}
