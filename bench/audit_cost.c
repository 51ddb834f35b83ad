/*
 * The cost of the audit: `audit_cost --help`, docs/benchmarks.md. First alone, in CPU time, which other load
 * changes little: a record encoded without hashes, with the hash of its bytes, and with salts and the hash
 * that a redaction leaves; and how many records a core verifies. Then engines with and without --audit-key in
 * turn, on one pair of servers: workflows a second and the engine's CPU time of each, and the median of the
 * pairs' ratios. Exit codes: 0; 1: could not measure; 2: usage; 77: a server is not installed.
 */
#include "audit.h"
#include "bench_program.h"
#include "client_internal.h"
#include "counters.h"
#include "load.h"
#include "note.h"
#include "payload_hash.h"
#include "server_process.h"
#include "sha256.h"
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
    RECORDS = 20000,
    ROUNDS = 9,
    VERIFY_ROUNDS = 5,
    PAIRS_MAX = 99,
    SETTLE_MS = 500,
    PAYLOAD_BYTES = 100,
    RECORD_ROOM = 4096
};

/* ---- alone ---- */

static uint64_t cpu_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static struct record record_of(uint64_t n, const struct event *events)
{
    return (struct record){.kind = RECORD_TURN,
                           .epoch = 1,
                           .n = n,
                           .committed = n - 1,
                           .position = {.floor = n},
                           .turn = {.instance = THOLE_STR("order-17"),
                                    .execution = 1,
                                    .number = n,
                                    .time_ms = 1795235063123 + n,
                                    .ran = true,
                                    .events = events,
                                    .events_len = 2}};
}

enum form { WITHOUT, AS_STORED, SALTED };

/* A log of turns of one instance: an activity's result, and the next activity. Nanoseconds for a record. */
static double write_records(struct buf made[RECORDS], enum form form)
{
    static const struct salt_key key = {.bytes = {1}};
    static const struct salt_source salts = {&key, 0};
    static uint8_t payload[PAYLOAD_BYTES];
    thole_slice const data = {payload, sizeof payload};
    struct record_hash newest = {{1}}; /* of what stands before */
    uint64_t const begun = cpu_ns();
    for (uint64_t n = 1; n <= RECORDS; n++) {
        struct event const events[] = {
            {.id = 2 * n, .kind = EVENT_ACTIVITY_COMPLETED, .ref = 1, .try_number = 1, .data = data},
            {.id = 2 * n + 1,
             .kind = EVENT_ACTIVITY_SCHEDULED,
             .name = THOLE_STR("charge"),
             .queue = THOLE_STR("default"),
             .data = data}};
        struct record record = record_of(n, events);
        struct buf *const to = &made[n - 1];
        record.salts = form == SALTED ? &salts : NULL;
        if (form != WITHOUT)
            record.previous = record.previous_of_instance.hash = newest;
        buf_clear(to);
        if (record_encode(&record, to) != THOLE_OK)
            abort();
        if (form != WITHOUT)
            newest = record_hash_make(THOLE_STR("bench"), 0, buf_bytes(to));
    }
    return (double)(cpu_ns() - begun) / RECORDS;
}

static void found(void *arg, const struct audit_finding *finding)
{
    (void)arg;
    fprintf(stderr, "audit: %s: %s\n", audit_fault_name(finding->fault), finding->text);
    abort();
}

static double verify_records(const struct buf made[RECORDS])
{
    struct audit *const audit = audit_create(&(struct audit_options){.scope = AUDIT_INSTANCE,
                                                                     .ns = THOLE_STR("bench"),
                                                                     .instance = THOLE_STR("order-17"),
                                                                     .found = found});
    uint64_t const begun = cpu_ns();
    for (uint64_t n = 1; n <= RECORDS; n++)
        audit_take(audit, &(struct audit_record){.sequence = n + 1, .bytes = buf_bytes(&made[n - 1])});
    audit_end(audit);
    double const ns = (double)(cpu_ns() - begun) / RECORDS;
    audit_destroy(audit);
    return ns;
}

static int by_size(const void *a, const void *b)
{
    double const x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double median(double *of, size_t n)
{
    qsort(of, n, sizeof *of, by_size);
    return of[n / 2];
}

static void measure_alone(void)
{
    static struct buf bytes[RECORDS];
    double forms[3][ROUNDS], verified[2][ROUNDS];
    for (size_t i = 0; i < RECORDS; i++)
        buf_init(&bytes[i], RECORD_ROOM);
    for (size_t round = 0; round < ROUNDS; round++)
        for (size_t form = WITHOUT; form <= SALTED; form++) {
            forms[form][round] = write_records(bytes, (enum form)form) / 1000;
            if (form != WITHOUT)
                verified[form - 1][round] = 1e9 / verify_records(bytes);
        }
    printf("a record of %zu bytes, two payloads of %d: CPU of its writer\n",
           buf_bytes(&bytes[RECORDS - 1]).len, PAYLOAD_BYTES);
    printf("  without hashes          %6.2f us\n", median(forms[WITHOUT], ROUNDS));
    printf("  form 1, as it is stored %6.2f us, %8.0f records/s verified by a core\n",
           median(forms[AS_STORED], ROUNDS), median(verified[0], ROUNDS));
    printf("  form 2, with salts      %6.2f us, %8.0f records/s verified by a core\n",
           median(forms[SALTED], ROUNDS), median(verified[1], ROUNDS));
    for (size_t i = 0; i < RECORDS; i++)
        buf_release(&bytes[i]);
}

/* ---- engines ---- */

struct options {
    unsigned verify, pairs, count, in_flight;
};
struct run {
    double rate, cpu_us; /* workflows a second; the engine's CPU time of one */
};

static bool write_key(const struct stand *stand, char *path, size_t room)
{
    uint8_t const seed[NOTE_KEY_BYTES] = {1};
    struct note_key key;
    struct buf text;
    (void)snprintf(path, room, "%s/audit.key", stand->dir);
    if (note_key_make(THOLE_STR("bench"), seed, &key, NULL) != THOLE_OK)
        return bench_fail("audit key", "it cannot be made");
    buf_init(&text, 4096);
    note_key_text(&key, true, &text);
    FILE *const to = fopen(path, "we");
    bool const good = to != NULL && fchmod(fileno(to), 0600) == 0 && fprintf(to, "%s\n", buf_cstr(&text)) > 0;
    if (to != NULL)
        (void)fclose(to);
    buf_release(&text);
    return good || bench_fail("audit key", "it cannot be written");
}

static bool measure(struct stand *stand, const struct options *options, const char *const *arguments,
                    struct run *ret)
{
    static struct sample before, after;
    struct load_client client = {.to = NULL};
    struct load_result result;
    struct load const load = {.kind = "chain",
                              .in_flight = options->in_flight,
                              .warm_up = options->in_flight,
                              .count = options->count};
    bool good = stand_start_engine(stand, 0, arguments) && stand_start_worker(stand, options->in_flight) &&
                load_start(stand, &load, &client) && load_ready(&client);
    memset(&before, 0, sizeof before);
    memset(&after, 0, sizeof after);
    good = good && processes_read(stand, &before) && load_run(&client, &result);
    process_pause_ms(SETTLE_MS);
    good = good && processes_read(stand, &after);
    load_stop(stand, &client);
    stand_stop_programs(stand);
    if (!good)
        return false;
    ret->rate = (double)result.done * 1e6 / (double)result.wall_us;
    ret->cpu_us = (double)(after.roles[ROLE_ENGINE].cpu_ns - before.roles[ROLE_ENGINE].cpu_ns) / 1000 /
                  (double)result.done;
    return true;
}

static bool measure_pairs(struct stand *stand, const struct options *options)
{
    char path[SERVER_PATH_BYTES + 16], key[sizeof path + 16];
    const char *const arguments[] = {key, NULL};
    double rates[PAIRS_MAX], costs[PAIRS_MAX];
    if (!write_key(stand, path, sizeof path))
        return false;
    (void)snprintf(key, sizeof key, "--audit-key=%s", path);
    for (unsigned i = 0; i < options->pairs; i++) {
        struct run with = {.rate = 0}, without = {.rate = 0};
        bool const first = i % 2 == 0; /* so that what grows meets both alike */
        if (!measure(stand, options, first ? NULL : arguments, first ? &without : &with) ||
            !measure(stand, options, first ? arguments : NULL, first ? &with : &without))
            return false;
        rates[i] = with.rate / without.rate;
        costs[i] = with.cpu_us / without.cpu_us;
        printf("pair %u: without %7.0f/s, engine %6.0f us; with --audit-key %7.0f/s, engine %6.0f us\n",
               i + 1, without.rate, without.cpu_us, with.rate, with.cpu_us);
        (void)fflush(stdout);
    }
    printf("median of %u pairs: throughput with --audit-key %.3f of that without, engine's CPU %.3f (load "
           "%.1f)\n",
           options->pairs, median(rates, options->pairs), median(costs, options->pairs),
           bench_load_average());
    return true;
}

/* ---- thole audit verify, from real servers ---- */

/* Runs the command that stands beside this program. False: it failed. */
static bool command(const char *words, double *ret_cpu_s, double *ret_wall_s)
{
    char self[SERVER_PATH_BYTES], line[2 * SERVER_PATH_BYTES];
    struct rusage before, after;
    struct timespec begun, ended;
    ssize_t const len = readlink("/proc/self/exe", self, sizeof self - 1);
    if (len < 0)
        return bench_fail("thole", "/proc/self/exe cannot be read");
    self[len] = '\0';
    *strrchr(self, '/') = '\0';
    (void)snprintf(line, sizeof line, "exec %s/../cli/thole %s >/dev/null", self, words);
    (void)getrusage(RUSAGE_CHILDREN, &before);
    (void)clock_gettime(CLOCK_MONOTONIC, &begun);
    int const status = system(line);
    (void)clock_gettime(CLOCK_MONOTONIC, &ended);
    (void)getrusage(RUSAGE_CHILDREN, &after);
    *ret_cpu_s = (double)(after.ru_utime.tv_sec - before.ru_utime.tv_sec) +
                 (double)(after.ru_stime.tv_sec - before.ru_stime.tv_sec) +
                 (double)(after.ru_utime.tv_usec - before.ru_utime.tv_usec) / 1e6 +
                 (double)(after.ru_stime.tv_usec - before.ru_stime.tv_usec) / 1e6;
    *ret_wall_s = (double)(ended.tv_sec - begun.tv_sec) + (double)(ended.tv_nsec - begun.tv_nsec) / 1e9;
    return status == 0 || bench_fail("thole", words);
}

static bool verify_stored(const char *path, uint64_t records)
{
    char words[SERVER_PATH_BYTES + 64];
    double cpu[VERIFY_ROUNDS], wall[VERIFY_ROUNDS], rates[2][VERIFY_ROUNDS];
    (void)snprintf(words, sizeof words, "audit checkpoint --key %s", path);
    if (!command(words, &cpu[0], &wall[0]))
        return false;
    (void)snprintf(words, sizeof words, "audit verify --all --key %s", path);
    for (size_t i = 0; i < VERIFY_ROUNDS; i++) {
        if (!command(words, &cpu[i], &wall[i]))
            return false;
        rates[0][i] = (double)records / cpu[i];
        rates[1][i] = (double)records / wall[i];
    }
    printf("thole audit verify --all --key, %llu records of real servers: %.0f records/s of its CPU time, "
           "%.0f/s of the clock (load %.1f)\n",
           (unsigned long long)records, median(rates[0], VERIFY_ROUNDS), median(rates[1], VERIFY_ROUNDS),
           bench_load_average());
    return true;
}

static bool count_records(thole_client *client, uint64_t *ret)
{
    struct buf stream;
    thole_error err = {.status = THOLE_OK};
    thole_status status = THOLE_OK;
    *ret = 0;
    for (uint32_t p = 0; p < client->topology.partitions && status == THOLE_OK; p++) {
        struct stream_bounds bounds;
        buf_init(&stream, STREAM_NAME_BYTES_MAX);
        status = stream_name(&stream, client->topology.ns, "HIST", p, &err);
        if (status == THOLE_OK)
            status = stream_bounds(client->connection, buf_cstr(&stream), &bounds, &err);
        if (status == THOLE_OK)
            *ret += bounds.messages;
        buf_release(&stream);
    }
    return status == THOLE_OK || bench_fail("records", err.text);
}

/* Workflows with no activity, until there are so many records. */
static bool measure_verify(struct stand *stand, unsigned wanted)
{
    char path[SERVER_PATH_BYTES + 16];
    thole_client *client = NULL;
    uint64_t records = 0;
    if (!write_key(stand, path, sizeof path) || !stand_start_engine(stand, 0, NULL) || !stand_client(&client))
        return false;
    bool good = true;
    while (good && records < wanted) {
        struct load_client load_client = {.to = NULL};
        struct load_result result;
        struct load const load = {.kind = "start", .in_flight = 512, .warm_up = 1, .count = 20000};
        good = load_start(stand, &load, &load_client) && load_ready(&load_client) &&
               load_run(&load_client, &result);
        load_stop(stand, &load_client);
        good = good && count_records(client, &records);
    }
    stand_stop_programs(stand);
    good = good && count_records(client, &records) && verify_stored(path, records);
    thole_client_close(client);
    return good;
}

static int run(const struct options *options)
{
    struct stand stand;
    if (options->verify == 0)
        measure_alone();
    (void)fflush(stdout);
    if (options->verify > 0) {
        if (!stand_open(&stand, &(struct stand_options){.sync_always = false}))
            return stand.missing ? BENCH_SKIPPED : 1;
        bool const verified = measure_verify(&stand, options->verify);
        stand_close(&stand);
        return verified ? 0 : 1;
    }
    if (options->pairs == 0)
        return 0;
    if (!stand_open(&stand, &(struct stand_options){.sync_always = false}))
        return stand.missing ? BENCH_SKIPPED : 1;
    bool const good = measure_pairs(&stand, options);
    stand_close(&stand);
    return good ? 0 : 1;
}

static int usage(FILE *to, int code)
{
    fprintf(to, "usage: audit_cost [--pairs N] [--count N] [--in-flight N] | --verify N\n"
                "  --verify N     instead: thole audit verify of N records or more that real servers have\n"
                "  --pairs N      engines without and with --audit-key, in turn (9; 0: only the part without "
                "servers)\n"
                "  --count N      workflows in each run, chains of five activities (2000)\n"
                "  --in-flight N  at a time (256)\n");
    return code;
}

int main(int argc, char **argv)
{
    static const struct option known[] = {{"verify", 1, NULL, 'v'}, {"pairs", 1, NULL, 'p'},
                                          {"count", 1, NULL, 'c'},  {"in-flight", 1, NULL, 'i'},
                                          {"help", 0, NULL, 'h'},   {NULL, 0, NULL, 0}};
    struct options options = {.pairs = 9, .count = 2000, .in_flight = 256};
    int code;
    if (program_role(argc, argv, &code))
        return code;
    for (int option; (option = getopt_long(argc, argv, "", known, NULL)) != -1;)
        switch (option) {
        case 'v': options.verify = (unsigned)strtoul(optarg, NULL, 10); break;
        case 'p': options.pairs = (unsigned)strtoul(optarg, NULL, 10); break;
        case 'c': options.count = (unsigned)strtoul(optarg, NULL, 10); break;
        case 'i': options.in_flight = (unsigned)strtoul(optarg, NULL, 10); break;
        case 'h': return usage(stdout, 0);
        default: return usage(stderr, 2);
        }
    if (optind != argc || options.pairs > PAIRS_MAX || options.count == 0 || options.in_flight == 0)
        return usage(stderr, 2);
    return run(&options);
}
