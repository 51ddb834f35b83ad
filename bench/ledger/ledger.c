/*
 * CPU time and counts of one activity and of one start: see `ledger --help` and docs/benchmarks.md. Starts
 * servers of its own, an engine, a worker and a client as processes, puts a fixed number of workflows on
 * them, and compares all counters before and after. Exit codes: 0; 1: could not measure; 2: usage; 3: the
 * gate.
 */
#include "ledger.h"
#include "server_process.h"
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    IN_FLIGHT_MAX = 8,
    MEASUREMENTS_MAX = 2 * IN_FLIGHT_MAX,
    COUNTED_SHARE = 3,     /* a counted run is a third as long */
    SETTLE_MS = 500,       /* what follows the last answer is over, and servers have counted it */
    STATISTICS_MS = 11000, /* an idle backend passes its counts on within 10 s */
    PATH_BYTES = 512,
};

struct options {
    unsigned workflows, starts, warm_up, slots, in_flight[IN_FLIGHT_MAX];
    size_t in_flight_len;
    const char *json, *only;
    unsigned profile_port;
    bool counts, tables, gate, sync_always;
};

static char self[PATH_BYTES];
static bool no_servers;

static bool fail(const char *what, const char *why)
{
    fprintf(stderr, "ledger: %s: %s\n", what, why);
    return false;
}

/* ---- the stand ---- */

/* Beside the program, where the build puts it. */
static void allocations_library(char *ret, size_t cap)
{
    (void)snprintf(ret, cap, "%.*s/ledger_allocations.so", (int)(strrchr(self, '/') - self), self);
}

static bool has_statements(void)
{
    char program[1024], path[1100];
    if (server_find_postgres(program, sizeof program, NULL) != THOLE_OK)
        return false;
    (void)snprintf(path, sizeof path, "%s/../lib/pg_stat_statements.so", program);
    return access(path, R_OK) == 0;
}

static bool start_servers(struct stand *stand, const struct options *options)
{
    char nats_dir[PATH_BYTES], postgres_dir[PATH_BYTES], config[256];
    thole_error error = {.status = THOLE_OK};
    if (server_dir_create("thole-ledger", stand->dir, &error) != THOLE_OK)
        return fail("servers", error.text);
    (void)snprintf(nats_dir, sizeof nats_dir, "%s/nats", stand->dir);
    (void)snprintf(postgres_dir, sizeof postgres_dir, "%s/postgres", stand->dir);
    if (mkdir(nats_dir, 0711) != 0 || mkdir(postgres_dir, 0711) != 0)
        return fail("servers", "cannot make their folders");
    stand->monitor_port = server_free_port();
    int n = snprintf(config, sizeof config, "http: \"127.0.0.1:%u\"\n", stand->monitor_port);
    if (options->profile_port > 0)
        (void)snprintf(config + n, sizeof config - (size_t)n, "prof_port: %u\n", options->profile_port);
    stand->has_statements = has_statements();
    struct nats_server_options const nats = {
        .dir = nats_dir, .config = config, .sync_always = options->sync_always};
    struct postgres_server_options const postgres = {
        .dir = postgres_dir,
        .config = stand->has_statements ? "shared_preload_libraries = 'pg_stat_statements'\n"
                                          "pg_stat_statements.track = none\n"
                                        : NULL};
    if (server_nats_start(&nats, &stand->nats, &error) != THOLE_OK ||
        server_postgres_start(&postgres, &stand->postgres, &error) != THOLE_OK) {
        no_servers = error.status == THOLE_NOT_FOUND;
        return fail("servers", error.text);
    }
    (void)setenv("THOLE_NATS_URL", stand->nats.url, 1);
    (void)setenv("THOLE_POSTGRES", stand->postgres.url, 1);
    (void)unsetenv("THOLE_NAMESPACE");
    stand->pg = PQconnectdb(stand->postgres.url);
    return PQstatus(stand->pg) == CONNECTION_OK ? true : fail("Postgres", PQerrorMessage(stand->pg));
}

static void stop_servers(struct stand *stand)
{
    PQfinish(stand->pg);
    server_stop(&stand->nats);
    server_stop(&stand->postgres);
    server_dir_remove(stand->dir);
}

/* What a process that is started next has in its environment. */
static bool arm(const struct stand *stand, enum ledger_role role)
{
    char library[PATH_BYTES + 32], path[128];
    (void)unsetenv("LD_PRELOAD");
    if (!stand->counted)
        return true;
    allocations_library(library, sizeof library);
    if (access(library, R_OK) != 0 || !allocations_open(stand, role, path))
        return fail("allocations cannot be counted without", library);
    return setenv("THOLE_LEDGER_ALLOCATIONS", path, 1) == 0 && setenv("LD_PRELOAD", library, 1) == 0;
}

static bool start_program(struct stand *stand, enum ledger_role role, const char *name, const char *argument,
                          pid_t *ret)
{
    static struct process process; /* large */
    thole_error error = {.status = THOLE_OK};
    memset(&process, 0, sizeof process);
    process_arg(&process, "%s", self);
    process_arg(&process, "%s", name);
    process_arg(&process, "--log-level=warn");
    process_arg(&process, "--node=%s", name);
    if (argument[0] != '\0')
        process_arg(&process, "%s", argument);
    (void)snprintf(process.log, sizeof process.log, "%s/%s.log", stand->dir, name);
    bool const started = arm(stand, role) && process_spawn(&process, ret, &error) == THOLE_OK;
    (void)unsetenv("LD_PRELOAD");
    return started ? true : fail(name, error.text);
}

static bool start_programs(struct stand *stand, const struct options *options)
{
    char slots[32];
    (void)snprintf(slots, sizeof slots, "--slots=%u", options->slots);
    return start_program(stand, ROLE_ENGINE, "engine", "", &stand->engine) &&
           start_program(stand, ROLE_WORKER, "worker", slots, &stand->worker);
}

static void stop_program(pid_t *pid)
{
    if (*pid > 0) {
        (void)kill(*pid, SIGTERM);
        if (!process_wait(*pid, SERVER_WAIT_MS))
            process_kill9(*pid);
    }
    *pid = 0;
}

static void stop_programs(struct stand *stand)
{
    stop_program(&stand->worker);
    stop_program(&stand->engine);
}

/* ---- the client ---- */

struct client {
    FILE *to, *from;
};

static void run_client(char **argv, const int to[2], const int from[2])
{
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)dup2(to[0], 0);
    (void)dup2(from[1], 1);
    for (int i = 0; i < 2; i++) {
        (void)close(to[i]);
        (void)close(from[i]);
    }
    (void)execv(self, argv);
    _exit(127);
}

static bool start_client(struct stand *stand, const struct scenario *s, struct client *ret)
{
    static unsigned serial;
    char kind[16], prefix[32], in_flight[16], warm_up[16], count[16];
    char name[] = "ledger", verb[] = "client";
    char *argv[] = {name, verb, kind, prefix, in_flight, warm_up, count, NULL};
    int to[2], from[2];
    (void)snprintf(kind, sizeof kind, "%s", s->kind);
    (void)snprintf(prefix, sizeof prefix, "%s-%u", s->kind, ++serial);
    (void)snprintf(in_flight, sizeof in_flight, "%u", s->in_flight);
    (void)snprintf(warm_up, sizeof warm_up, "%u", s->warm_up);
    (void)snprintf(count, sizeof count, "%u", s->workflows);
    if (!arm(stand, ROLE_CLIENT) || pipe(to) != 0 || pipe(from) != 0)
        return fail("client", "cannot be started");
    stand->client = fork();
    if (stand->client == 0)
        run_client(argv, to, from);
    (void)unsetenv("LD_PRELOAD");
    close(to[0]);
    close(from[1]);
    ret->to = fdopen(to[1], "w");
    ret->from = fdopen(from[0], "r");
    return stand->client > 0 && ret->to != NULL && ret->from != NULL;
}

static bool hear(struct client *client, const char *word, char *line, size_t cap)
{
    return fgets(line, (int)cap, client->from) != NULL && strncmp(line, word, strlen(word)) == 0
               ? true
               : fail("client", "it ended before its work was done");
}

static bool say(struct client *client, const char *word)
{
    return fprintf(client->to, "%s\n", word) > 0 && fflush(client->to) == 0;
}

static void stop_client(struct stand *stand, struct client *client)
{
    if (client->to != NULL)
        (void)fclose(client->to);
    if (client->from != NULL)
        (void)fclose(client->from);
    if (stand->client > 0) {
        (void)kill(stand->client, SIGKILL);
        (void)waitpid(stand->client, NULL, 0);
        stand->client = 0;
    }
}

/* ---- measuring ---- */

static bool take(struct stand *stand, struct sample *ret)
{
    memset(ret, 0, sizeof *ret);
    if (stand->counted)
        allocations_read(ret);
    return processes_read(stand, ret) && nats_read(stand, ret) && postgres_read(stand, ret);
}

static void subtract_process(struct process_cost *to, const struct process_cost *from)
{
    uint64_t *const a = (uint64_t *)to;
    const uint64_t *const b = (const uint64_t *)from;
    for (size_t i = 0; i < sizeof *to / sizeof *a; i++)
        a[i] = a[i] > b[i] ? a[i] - b[i] : 0;
}

static void subtract_threads(struct sample *to, const struct sample *from)
{
    for (size_t i = 0; i < to->threads_len; i++)
        for (size_t k = 0; k < from->threads_len; k++)
            if (to->threads[i].role == from->threads[k].role &&
                strcmp(to->threads[i].name, from->threads[k].name) == 0) {
                to->threads[i].cpu_ns -= from->threads[k].cpu_ns;
                to->threads[i].waits -= from->threads[k].waits;
            }
}

static void subtract(struct sample *to, const struct sample *from)
{
    for (int role = 0; role < ROLES; role++)
        subtract_process(&to->roles[role], &from->roles[role]);
    subtract_threads(to, from);
    to->nats.in_messages -= from->nats.in_messages;
    to->nats.in_bytes -= from->nats.in_bytes;
    to->nats.out_messages -= from->nats.out_messages;
    to->nats.out_bytes -= from->nats.out_bytes;
    to->nats.api_requests -= from->nats.api_requests;
    to->nats.subscribed -= from->nats.subscribed;
    to->nats.unsubscribed -= from->nats.unsubscribed;
    to->postgres.writing -= from->postgres.writing;
    to->postgres.wal_bytes -= from->postgres.wal_bytes;
    to->postgres.committed -= from->postgres.committed;
    for (size_t i = 0; i < to->postgres.tables_len && i < from->postgres.tables_len; i++) {
        struct table_counts *const t = &to->postgres.tables[i];
        const struct table_counts *const f = &from->postgres.tables[i];
        t->inserted -= f->inserted;
        t->updated -= f->updated;
        t->updated_hot -= f->updated_hot;
        t->deleted -= f->deleted;
        t->scanned -= f->scanned;
    }
}

static double load_average(void)
{
    double load[1] = {0};
    return getloadavg(load, 1) == 1 ? load[0] : 0;
}

/* From "go" to the last answer, and what follows it. */
static bool run_load(struct stand *stand, struct client *client, struct measurement *ret)
{
    char line[128];
    uint64_t syscalls[ROLES] = {0};
    ret->has_syscalls = stand->counted && syscalls_begin(stand);
    if (!say(client, "go") || !hear(client, "done ", line, sizeof line) ||
        sscanf(line, "done %" SCNu64 " %" SCNu64 " %" SCNu64, &ret->wall_us, &ret->p50_us, &ret->p99_us) != 3)
        return false;
    process_pause_ms(SETTLE_MS);
    if (ret->has_syscalls)
        syscalls_end(syscalls);
    if (!take(stand, &ret->cost))
        return false;
    for (int role = 0; role < ROLES; role++)
        ret->cost.roles[role].syscalls = syscalls[role];
    return true;
}

static bool read_tables(struct stand *stand, struct sample *ret)
{
    process_pause_ms(STATISTICS_MS);
    return postgres_read_tables(stand, ret);
}

static bool measure_with(struct stand *stand, const struct options *options, struct client *client,
                         struct measurement *ret)
{
    static struct sample before;
    struct postgres_counts tables = {.tables_len = 0};
    char line[128];
    bool const statements = stand->counted && stand->has_statements;
    ret->has_tables = options->tables && !stand->counted;
    if (!hear(client, "ready", line, sizeof line))
        return false;
    if (ret->has_tables && !read_tables(stand, &before))
        return false;
    tables = before.postgres;
    process_pause_ms(SETTLE_MS);
    if ((statements && !statements_begin(stand)) || !take(stand, &before) || !run_load(stand, client, ret) ||
        (statements && !statements_read(stand, ret->statements, &ret->statements_len)) ||
        (ret->has_tables && !read_tables(stand, &ret->cost)))
        return false;
    before.postgres.committed = tables.committed;
    before.postgres.tables_len = tables.tables_len;
    memcpy(before.postgres.tables, tables.tables, sizeof tables.tables);
    subtract(&ret->cost, &before);
    return true;
}

static bool measure(struct stand *stand, const struct options *options, struct measurement *ret)
{
    struct client client = {.to = NULL};
    ret->load = load_average();
    fprintf(stderr, "ledger: %s, %u in flight%s …\n", ret->scenario.kind, ret->scenario.in_flight,
            stand->counted ? ", everything counted" : "");
    bool const good =
        start_client(stand, &ret->scenario, &client) && measure_with(stand, options, &client, ret);
    stop_client(stand, &client);
    return good;
}

/* All scenarios with one engine and one worker. */
static bool measure_all(struct stand *stand, const struct options *options, struct measurement *list,
                        size_t len)
{
    bool good = start_programs(stand, options);
    for (size_t i = 0; good && i < len; i++)
        good = measure(stand, options, &list[i]);
    stop_programs(stand);
    return good;
}

static size_t list_scenarios(const struct options *options, unsigned share, struct measurement *ret)
{
    size_t n = 0;
    for (size_t i = 0; i < options->in_flight_len; i++)
        if (options->workflows / share > 0)
            ret[n++].scenario = (struct scenario){.kind = "chain",
                                                  .in_flight = options->in_flight[i],
                                                  .warm_up = options->warm_up,
                                                  .workflows = options->workflows / share,
                                                  .units = 5};
    for (size_t i = options->in_flight_len; i > 0 && options->starts / share > 0; i = 0)
        ret[n++].scenario = (struct scenario){.kind = "start",
                                              .in_flight = options->in_flight[i - 1],
                                              .warm_up = options->warm_up,
                                              .workflows = options->starts / share,
                                              .units = 1};
    return n;
}

static int run(const struct options *options)
{
    static struct measurement plain[MEASUREMENTS_MAX], counted[MEASUREMENTS_MAX];
    static struct stand stand;
    size_t const n = list_scenarios(options, 1, plain);
    size_t const counted_n = options->counts ? list_scenarios(options, COUNTED_SHARE, counted) : 0;
    bool good = start_servers(&stand, options) && measure_all(&stand, options, plain, n);
    stand.counted = true;
    good = good && (counted_n == 0 || measure_all(&stand, options, counted, counted_n));
    stop_servers(&stand);
    if (!good)
        return no_servers ? 77 : 1;
    bool const both = counted_n == n;
    for (size_t i = 0; i < n; i++)
        ledger_report_text(&plain[i], both ? &counted[i] : NULL);
    if (options->json != NULL && !ledger_report_json(options->json, plain, both ? counted : NULL, n))
        return 1;
    return options->gate ? ledger_gate(&plain[0], stderr) : 0;
}

/* ---- options ---- */

static int usage(FILE *out, int code)
{
    fprintf(
        out,
        "usage: ledger [OPTION]...\n"
        "What an activity and a start cost, by process: CPU time, context switches, messages, transactions.\n"
        "  --workflows N    chains of 5 activities in each run (3000); 0: none\n"
        "  --starts N       starts of an orchestration that ends at once (10000); 0: none\n"
        "  --warm-up N      workflows before each run (500)\n"
        "  --in-flight A,B  how many at a time (64,256); starts: the last of them\n"
        "  --slots N        of the worker (256)\n"
        "  --json FILE      all counts, as JSON\n"
        "  --no-counts      without the second runs, in which system calls, allocations and statements are "
        "counted\n"
        "  --no-tables      without rows of each table, which Postgres tells 10 s later\n"
        "  --sync-always    both servers write to the disk before they acknowledge\n"
        "  --nats-profile P nats-server serves its profile on this port\n"
        "  --gate           exit with 3 when the first run passes a limit on counts\n"
        "  --short          for CI: --workflows 600 --starts 600 --warm-up 200 --in-flight 64 --no-counts\n"
        "                   --no-tables --gate\n");
    return code;
}

static bool parse_list(struct options *options, char *text)
{
    options->in_flight_len = 0;
    for (char *rest = text, *one; (one = strsep(&rest, ",")) != NULL;) {
        unsigned long const n = strtoul(one, NULL, 10);
        if (n == 0 || n > 4096 || options->in_flight_len == IN_FLIGHT_MAX)
            return false;
        options->in_flight[options->in_flight_len++] = (unsigned)n;
    }
    return options->in_flight_len > 0;
}

static bool parse_number(const char *text, unsigned *ret)
{
    char *end;
    unsigned long const n = strtoul(text, &end, 10);
    *ret = (unsigned)n;
    return end != text && *end == '\0' && n <= 100000000;
}

static void be_short(struct options *options)
{
    options->workflows = options->starts = 600;
    options->warm_up = 200;
    options->in_flight[0] = 64;
    options->in_flight_len = 1;
    options->counts = options->tables = false;
    options->gate = true;
}

static bool parse_option(struct options *options, int option)
{
    switch (option) {
    case 'w': return parse_number(optarg, &options->workflows);
    case 's': return parse_number(optarg, &options->starts);
    case 'u': return parse_number(optarg, &options->warm_up);
    case 'l': return parse_number(optarg, &options->slots);
    case 'p': return parse_number(optarg, &options->profile_port) && options->profile_port < 65536;
    case 'i': return parse_list(options, optarg);
    case 'j': options->json = optarg; return true;
    case 'c': options->counts = false; return true;
    case 't': options->tables = false; return true;
    case 'a': options->sync_always = true; return true;
    case 'g': options->gate = true; return true;
    case 'x': be_short(options); return true;
    default: return false;
    }
}

int main(int argc, char **argv)
{
    static const struct option known[] = {{"workflows", 1, NULL, 'w'},    {"starts", 1, NULL, 's'},
                                          {"warm-up", 1, NULL, 'u'},      {"in-flight", 1, NULL, 'i'},
                                          {"slots", 1, NULL, 'l'},        {"json", 1, NULL, 'j'},
                                          {"no-counts", 0, NULL, 'c'},    {"no-tables", 0, NULL, 't'},
                                          {"sync-always", 0, NULL, 'a'},  {"gate", 0, NULL, 'g'},
                                          {"nats-profile", 1, NULL, 'p'}, {"short", 0, NULL, 'x'},
                                          {"help", 0, NULL, 'h'},         {NULL, 0, NULL, 0}};
    struct options options = {.workflows = 3000,
                              .starts = 10000,
                              .warm_up = 500,
                              .slots = 256,
                              .in_flight = {64, 256},
                              .in_flight_len = 2,
                              .counts = true,
                              .tables = true};
    struct rlimit files;
    if (argc > 1 && (strcmp(argv[1], "engine") == 0 || strcmp(argv[1], "worker") == 0))
        return ledger_serve(argc, argv);
    if (argc > 1 && strcmp(argv[1], "client") == 0)
        return ledger_load(argc, argv);
    for (int option; (option = getopt_long(argc, argv, "", known, NULL)) != -1;) {
        if (option == 'h')
            return usage(stdout, 0);
        if (!parse_option(&options, option))
            return usage(stderr, 2);
    }
    if (options.gate && options.workflows == 0) {
        fprintf(stderr, "ledger: the limits of --gate are those of an activity: it needs --workflows\n");
        return 2;
    }
    ssize_t const len = readlink("/proc/self/exe", self, sizeof self - 1);
    if (optind != argc || len <= 0)
        return usage(stderr, 2);
    if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < files.rlim_max) {
        files.rlim_cur = files.rlim_max; /* a counter of system calls for each thread */
        (void)setrlimit(RLIMIT_NOFILE, &files);
    }
    return run(&options);
}
