/*
 * A worker of a gateway beside a worker in C, with servers of its own: see `gateway_speed --help` and
 * docs/benchmarks.md. The gateway's worker is this program, too: one session, which takes as many tasks as it
 * has slots by one request, in JSON as the thin clients do, and completes all of them by another.
 */
#include "bench_program.h"
#include "connection.h"
#include "counters.h"
#include "jscan.h"
#include "json.h"
#include "link.h"
#include "load.h"
#include "server_process.h"
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    ANSWER_BYTES = 8 << 20,
    SUBJECT_BYTES = 300,
    WAIT_MS = 500,
    REQUEST_MS = 10000,
    SETTLE_MS = 500,
    PAIRS_MAX = 99,
    SLOTS_MAX = 8,
};

/* ---- the gateway's worker ---- */

struct session {
    struct connection *connection;
    char subject[SUBJECT_BYTES];
    uint64_t renew_us, renewed_us;
    struct buf body, answer;
};

static bool ask(struct session *session, const char *subject)
{
    thole_error error = {.status = THOLE_OK};
    struct header const json = {"Content-Type", THOLE_STR("application/json")};
    thole_slice status;
    buf_clear(&session->answer);
    if (connection_request_with(session->connection, subject, &json, 1, buf_bytes(&session->body),
                                &session->answer, &error) != THOLE_OK)
        return bench_fail("remote", error.text);
    if (json_find(buf_bytes(&session->answer), "status", &status))
        return bench_fail("remote", buf_cstr(&session->answer));
    return true;
}

static bool operation(struct session *session, const char *name)
{
    char subject[SUBJECT_BYTES + 16];
    (void)snprintf(subject, sizeof subject, "%s.%s", session->subject, name);
    return ask(session, subject);
}

/* A gateway answers after moments: it starts at the same time. */
static bool open_session(struct session *session, unsigned slots)
{
    uint64_t const end_us = bench_now_us() + 1000 * (uint64_t)REQUEST_MS;
    thole_slice subject, renew;
    uint64_t renew_ms = 0;
    buf_clear(&session->body);
    buf_printf(&session->body, "{\"worker\":\"remote\",\"slots\":%u,\"activities\":[\"echo\"]}", slots);
    while (!ask(session, "thole.default.gateway.open.default")) {
        if (bench_now_us() > end_us)
            return false;
        bench_nap_us(100 * 1000);
    }
    session->renewed_us = bench_now_us();
    if (!json_find(buf_bytes(&session->answer), "subject", &subject) || subject.len < 2 ||
        !json_find(buf_bytes(&session->answer), "renewMs", &renew) || !json_uint(renew, &renew_ms))
        return bench_fail("remote", "the session has no subject");
    session->renew_us = renew_ms * 1000;
    (void)snprintf(session->subject, sizeof session->subject, "%.*s", (int)subject.len - 2, subject.ptr + 1);
    return true;
}

/* Each returns its input. Of the tasks that came; false: there are none. */
static bool echo_all(struct session *session)
{
    struct json json;
    thole_slice tasks, task, claim, input;
    size_t at = 0;
    bool any = false;
    buf_clear(&session->body);
    json_to_buf(&json, &session->body);
    json_object(&json);
    json_key(&json, "outcomes");
    json_array(&json);
    if (json_find(buf_bytes(&session->answer), "tasks", &tasks))
        while (json_item(tasks, &at, &task)) {
            any = true;
            json_object(&json);
            if (json_find(task, "claim", &claim))
                json_member_copy(&json, THOLE_STR("claim"), claim);
            if (json_find(task, "input", &input))
                json_member_copy(&json, THOLE_STR("output"), input);
            json_end(&json);
        }
    json_end(&json);
    json_end(&json);
    return any;
}

static bool take_and_complete(struct session *session, unsigned slots)
{
    buf_clear(&session->body);
    buf_printf(&session->body, "{\"max\":%u,\"waitMs\":%d}", slots, WAIT_MS);
    if (!operation(session, "next") || (echo_all(session) && !operation(session, "complete")))
        return false;
    if (bench_now_us() < session->renewed_us + session->renew_us / 2)
        return true;
    session->renewed_us = bench_now_us();
    buf_clear(&session->body);
    buf_text(&session->body, "{}");
    return operation(session, "renew");
}

/* Until it is told to end: nothing is lost, since what has no answer yet runs again. */
static int remote_main(unsigned slots)
{
    struct session session = {.connection = NULL};
    thole_error error = {.status = THOLE_OK};
    struct connection_options const options = {.url = getenv("THOLE_NATS_URL"),
                                               .name = "remote",
                                               .connect_timeout_ms = REQUEST_MS,
                                               .request_timeout_ms = REQUEST_MS};
    buf_init(&session.body, ANSWER_BYTES);
    buf_init(&session.answer, ANSWER_BYTES);
    (void)signal(SIGTERM, SIG_DFL);
    if (connection_open(&options, &session.connection, &error) != THOLE_OK) {
        (void)bench_fail("remote", error.text);
        return 1;
    }
    if (open_session(&session, slots))
        while (take_and_complete(&session, slots))
            continue;
    connection_close(session.connection);
    return 1;
}

/* ---- measuring ---- */

struct options {
    unsigned pairs, workflows, slots[SLOTS_MAX];
    size_t slots_len;
};

struct figures {
    double per_second, p50_us, p99_us;
    double cpu_us[ROLES]; /* of an activity */
    double cpu_all_us;
};

static bool measure_load(struct stand *stand, struct load_client *client, const struct load *load,
                         struct figures *ret)
{
    static struct sample before, after; /* large */
    struct load_result result;
    if (!load_ready(client))
        return false;
    process_pause_ms(SETTLE_MS);
    memset(&before, 0, sizeof before);
    memset(&after, 0, sizeof after);
    if (!processes_read(stand, &before) || !load_run(client, &result))
        return false;
    process_pause_ms(SETTLE_MS);
    if (!processes_read(stand, &after))
        return false;
    sample_subtract(&after, &before);
    ret->per_second = (double)result.done * 1e6 / (double)result.wall_us;
    ret->p50_us = result.us.p50;
    ret->p99_us = result.us.p99;
    for (int role = 0; role < ROLES; role++)
        ret->cpu_us[role] = (double)after.roles[role].cpu_ns / 1000 / load->count;
    ret->cpu_all_us = (double)sample_cpu_ns(&after) / 1000 / load->count;
    return true;
}

/* Workflows of one activity, by a worker of so many slots. */
static bool measure(struct stand *stand, bool by_gateway, unsigned slots, const struct load *load,
                    struct figures *ret)
{
    struct load_client client = {.to = NULL};
    bool good = by_gateway ? stand_start_gateway(stand, slots) : stand_start_worker(stand, slots);
    good = good && load_start(stand, load, &client) && measure_load(stand, &client, load, ret);
    load_stop(stand, &client);
    stand_stop_worker(stand);
    return good;
}

static int by_size(const void *a, const void *b)
{
    double const x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* One workflow at a time, in turns: what the machine does meanwhile meets both. */
static bool report_latency(struct stand *stand, const struct options *options)
{
    double more_us[PAIRS_MAX];
    struct load const load = {
        .kind = "one", .in_flight = 1, .warm_up = 100, .count = options->workflows / 4 + 1};
    printf("Latency of one activity, one at a time, p50 in ms (%u in each run):\n\n", load.count);
    printf("| pair | worker in C | behind a gateway | more |\n|---|---|---|---|\n");
    for (unsigned i = 0; i < options->pairs; i++) {
        struct figures direct, far;
        if (!measure(stand, false, 1, &load, &direct) || !measure(stand, true, 1, &load, &far))
            return false;
        more_us[i] = far.p50_us - direct.p50_us;
        printf("| %u | %.2f | %.2f | %+.2f |\n", i + 1, direct.p50_us / 1000, far.p50_us / 1000,
               more_us[i] / 1000);
        (void)fflush(stdout);
    }
    qsort(more_us, options->pairs, sizeof *more_us, by_size);
    printf("| median | | | %+.2f |\n\n", more_us[options->pairs / 2] / 1000);
    return true;
}

static void report_row(const char *who, unsigned slots, const struct figures *f)
{
    printf("| %s | %u | %.0f | %.2f | %.2f | %.0f | %.0f | %.0f | %.0f |\n", who, slots, f->per_second,
           f->p50_us / 1000, f->p99_us / 1000, f->cpu_us[ROLE_WORKER], f->cpu_us[ROLE_PG_WORKER],
           f->cpu_us[ROLE_NATS], f->cpu_all_us);
    (void)fflush(stdout);
}

static bool report_batches(struct stand *stand, const struct options *options)
{
    struct load const load = {.kind = "one", .in_flight = 64, .warm_up = 200, .count = options->workflows};
    printf("Batches, %u workflows of one activity, %u in flight; CPU in us of an activity:\n\n", load.count,
           load.in_flight);
    printf("| | slots | activities/s | p50 ms | p99 ms | CPU of worker or gateway | of its Postgres backends "
           "| of nats-server | of all |\n|---|---|---|---|---|---|---|---|---|\n");
    for (size_t i = 0; i < options->slots_len; i++)
        for (int far = 0; far < 2; far++) {
            struct figures figures;
            if (!measure(stand, far, options->slots[i], &load, &figures))
                return false;
            report_row(far ? "behind a gateway" : "worker in C", options->slots[i], &figures);
        }
    printf("\n");
    return true;
}

static int run(const struct options *options)
{
    static struct stand stand;
    struct stand_options const asked = {.statements = false};
    bool good = stand_open(&stand, &asked) && stand_start_engine(&stand, 0, NULL);
    printf("Load of the machine before: %.2f\n\n", bench_load_average());
    good = good && (options->pairs == 0 || report_latency(&stand, options)) &&
           (options->slots_len == 0 || report_batches(&stand, options));
    stand_close(&stand);
    return good ? 0 : stand.missing ? BENCH_SKIPPED : 1;
}

/* ---- options ---- */

static int usage(FILE *out, int code)
{
    fprintf(out,
            "usage: gateway_speed [OPTION]...\n"
            "A worker behind a gateway beside a worker in C: latency, throughput, CPU of an activity.\n"
            "  --pairs N      runs of each for the latency, in turns (7); 0: none\n"
            "  --slots A,B    of the workers, for the throughput (1,16,64); 0: none\n"
            "  --workflows N  in each run of the throughput; a quarter in those of the latency (4000)\n");
    return code;
}

static bool parse_slots(struct options *options, char *text)
{
    options->slots_len = 0;
    for (char *rest = text, *one; (one = strsep(&rest, ",")) != NULL;) {
        unsigned long const n = strtoul(one, NULL, 10);
        if (n > 10000 || options->slots_len == SLOTS_MAX)
            return false;
        if (n > 0)
            options->slots[options->slots_len++] = (unsigned)n;
    }
    return true;
}

static bool parse_option(struct options *options, int option)
{
    switch (option) {
    case 'p': options->pairs = (unsigned)strtoul(optarg, NULL, 10); return options->pairs <= PAIRS_MAX;
    case 's': return parse_slots(options, optarg);
    case 'w': options->workflows = (unsigned)strtoul(optarg, NULL, 10); return options->workflows > 0;
    default: return false;
    }
}

int main(int argc, char **argv)
{
    static const struct option known[] = {{"pairs", 1, NULL, 'p'},
                                          {"slots", 1, NULL, 's'},
                                          {"workflows", 1, NULL, 'w'},
                                          {"help", 0, NULL, 'h'},
                                          {NULL, 0, NULL, 0}};
    struct options options = {.pairs = 7, .workflows = 4000, .slots = {1, 16, 64}, .slots_len = 3};
    int code;
    if (argc > 1 && strcmp(argv[1], "remote") == 0)
        return remote_main((unsigned)strtoul(strchr(argv[argc - 1], '=') + 1, NULL, 10));
    if (program_role(argc, argv, &code))
        return code;
    program_on_threads(); /* a gateway's worker has no quick activities */
    for (int option; (option = getopt_long(argc, argv, "", known, NULL)) != -1;) {
        if (option == 'h')
            return usage(stdout, 0);
        if (!parse_option(&options, option))
            return usage(stderr, 2);
    }
    return optind < argc ? usage(stderr, 2) : run(&options);
}
