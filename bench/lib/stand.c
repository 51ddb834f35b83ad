#include "stand.h"
#include "counters.h"
#include "server_process.h"
#include "tokens.h"
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { REMOVE_TRIES = 50, REMOVE_PAUSE_US = 200 * 1000, SET_UP_US = 60 * 1000000 };

/* ---- the guard ---- */

/* Waits for the end of the process that holds the other end of the pipe; servers end with it, within moments.
 */
static void guard(const char *dir, int pipe_end)
{
    char byte;
    (void)setpgid(0, 0); /* Ctrl-C is not for it */
    (void)prctl(PR_SET_NAME, "bench-guard");
    while (read(pipe_end, &byte, 1) > 0)
        continue;
    for (unsigned i = 0; i < REMOVE_TRIES && access(dir, F_OK) == 0; i++) {
        bench_nap_us(REMOVE_PAUSE_US);
        server_dir_remove(dir);
    }
    _exit(0);
}

static bool start_guard(struct stand *stand)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        return bench_fail("guard", "no pipe");
    stand->guard = fork();
    if (stand->guard == 0) {
        (void)close(ends[1]);
        guard(stand->dir, ends[0]);
    }
    (void)close(ends[0]);
    stand->guard_pipe = ends[1];
    return stand->guard > 0 ? true : bench_fail("guard", "cannot be started");
}

static void stop_guard(struct stand *stand)
{
    if (stand->guard <= 0)
        return;
    (void)kill(stand->guard, SIGKILL);
    (void)waitpid(stand->guard, NULL, 0);
    (void)close(stand->guard_pipe);
    stand->guard = 0;
}

/* ---- servers ---- */

static bool find_statements(void)
{
    char program[1024], path[1100];
    if (server_find_postgres(program, sizeof program, NULL) != THOLE_OK)
        return false;
    (void)snprintf(path, sizeof path, "%s/../lib/pg_stat_statements.so", program);
    return access(path, R_OK) == 0;
}

static bool start_nats(struct stand *stand, const struct stand_options *options, thole_error *reterr)
{
    char dir[BENCH_PATH_BYTES], config[256];
    (void)snprintf(dir, sizeof dir, "%s/nats", stand->dir);
    stand->monitor_port = server_free_port();
    int const n = snprintf(config, sizeof config, "http: \"127.0.0.1:%u\"\n", stand->monitor_port);
    if (options->profile_port > 0)
        (void)snprintf(config + n, sizeof config - (size_t)n, "prof_port: %u\n", options->profile_port);
    struct nats_server_options const nats = {
        .dir = dir, .config = config, .sync_always = options->sync_always};
    return mkdir(dir, 0711) == 0 && server_nats_start(&nats, &stand->nats, reterr) == THOLE_OK;
}

/* fsync and synchronous_commit are Postgres's defaults: on. */
static bool start_postgres(struct stand *stand, const struct stand_options *options, thole_error *reterr)
{
    char dir[BENCH_PATH_BYTES];
    (void)snprintf(dir, sizeof dir, "%s/postgres", stand->dir);
    stand->has_statements = options->statements && find_statements();
    struct postgres_server_options const postgres = {
        .dir = dir,
        .config = stand->has_statements ? "shared_preload_libraries = 'pg_stat_statements'\n"
                                          "pg_stat_statements.track = none\n"
                                        : NULL};
    return mkdir(dir, 0711) == 0 && server_postgres_start(&postgres, &stand->postgres, reterr) == THOLE_OK;
}

bool stand_open(struct stand *ret, const struct stand_options *options)
{
    thole_error error = {.status = THOLE_OK};
    memset(ret, 0, sizeof *ret);
    if (server_dir_create("thole-bench", ret->dir, &error) != THOLE_OK)
        return bench_fail("servers", error.text);
    if (!start_guard(ret))
        return false;
    if (!start_nats(ret, options, &error) || !start_postgres(ret, options, &error)) {
        ret->missing = error.status == THOLE_NOT_FOUND;
        return bench_fail("servers", error.text);
    }
    (void)setenv("THOLE_NATS_URL", ret->nats.url, 1);
    (void)setenv("THOLE_POSTGRES", ret->postgres.url, 1);
    (void)unsetenv("THOLE_NAMESPACE");
    if (tokens_make(ret->dir) == NULL)
        return false;
    ret->pg = PQconnectdb(ret->postgres.url);
    return PQstatus(ret->pg) == CONNECTION_OK ? true : bench_fail("Postgres", PQerrorMessage(ret->pg));
}

void stand_close(struct stand *stand)
{
    stand_stop_programs(stand);
    PQfinish(stand->pg);
    stand->pg = NULL;
    server_stop(&stand->nats);
    server_stop(&stand->postgres);
    server_dir_remove(stand->dir);
    stop_guard(stand);
}

/* ---- programs ---- */

/* Beside the program, where the build puts it. */
static void allocations_library(char *ret, size_t cap)
{
    const char *const self = bench_self();
    (void)snprintf(ret, cap, "%.*s/ledger_allocations.so", (int)(strrchr(self, '/') - self), self);
}

void stand_disarm(void)
{
    (void)unsetenv("LD_PRELOAD");
}

bool stand_arm(const struct stand *stand, enum bench_role role)
{
    char library[BENCH_PATH_BYTES + 32], path[128];
    stand_disarm();
    if (!stand->counted)
        return true;
    allocations_library(library, sizeof library);
    if (access(library, R_OK) != 0 || !allocations_open(stand, role, path))
        return bench_fail("allocations cannot be counted without", library);
    return setenv("THOLE_LEDGER_ALLOCATIONS", path, 1) == 0 && setenv("LD_PRELOAD", library, 1) == 0;
}

static bool start_program(struct stand *stand, enum bench_role role, const char *name, const char *node,
                          const char *const *arguments, pid_t *ret)
{
    static struct process process; /* large */
    thole_error error = {.status = THOLE_OK};
    memset(&process, 0, sizeof process);
    process_arg(&process, "%s", bench_self());
    process_arg(&process, "%s", name);
    process_arg(&process, "--log-level=warn");
    process_arg(&process, "--node=%s", node);
    for (; arguments != NULL && *arguments != NULL; arguments++)
        process_arg(&process, "%s", *arguments);
    (void)snprintf(process.log, sizeof process.log, "%s/%s.log", stand->dir, node);
    bool const started = stand_arm(stand, role) && process_spawn(&process, ret, &error) == THOLE_OK;
    stand_disarm();
    return started ? true : bench_fail(node, error.text);
}

bool stand_start_engine(struct stand *stand, size_t index, const char *const *arguments)
{
    char node[32];
    if (index >= STAND_ENGINES_MAX || stand->engines[index] != 0)
        return bench_fail("engine", "there is no place for one more");
    (void)snprintf(node, sizeof node, "engine-%zu", index);
    return start_program(stand, ROLE_ENGINE, "engine", node, arguments, &stand->engines[index]);
}

bool stand_start_worker(struct stand *stand, unsigned slots)
{
    char text[32];
    const char *const arguments[] = {text, NULL};
    (void)snprintf(text, sizeof text, "--slots=%u", slots);
    return start_program(stand, ROLE_WORKER, "worker", "worker", arguments, &stand->worker);
}

bool stand_start_gateway(struct stand *stand, unsigned slots)
{
    char text[32];
    const char *const arguments[] = {text, NULL};
    (void)snprintf(text, sizeof text, "--slots=%u", slots);
    return start_program(stand, ROLE_WORKER, "gateway", "gateway", NULL, &stand->worker) &&
           start_program(stand, ROLE_CLIENT, "remote", "remote", arguments, &stand->remote);
}

void stand_stop(pid_t *pid)
{
    if (*pid > 0) {
        (void)kill(*pid, SIGTERM);
        if (!process_wait(*pid, SERVER_WAIT_MS))
            process_kill9(*pid);
    }
    *pid = 0;
}

void stand_kill9(pid_t *pid)
{
    if (*pid > 0)
        process_kill9(*pid);
    *pid = 0;
}

void stand_stop_worker(struct stand *stand)
{
    stand_stop(&stand->remote);
    stand_stop(&stand->worker);
}

void stand_stop_programs(struct stand *stand)
{
    stand_kill9(&stand->client);
    stand_stop_worker(stand);
    for (size_t i = 0; i < STAND_ENGINES_MAX; i++)
        stand_stop(&stand->engines[i]);
}

bool stand_client(thole_client **ret)
{
    thole_error error = {.status = THOLE_OK};
    uint64_t const end_us = bench_now_us() + SET_UP_US;
    while (thole_client_open(NULL, ret, &error) != THOLE_OK) {
        if (bench_now_us() > end_us)
            return bench_fail("client", error.text);
        bench_nap_us(20000);
    }
    return true;
}

/* ---- Postgres ---- */

PGresult *stand_ask(struct stand *stand, const char *statement)
{
    PGresult *const result = PQexec(stand->pg, statement);
    ExecStatusType const status = PQresultStatus(result);
    if (status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK)
        return result;
    (void)bench_fail("Postgres", PQerrorMessage(stand->pg));
    PQclear(result);
    return NULL;
}

bool stand_ask_number(struct stand *stand, const char *statement, uint64_t *ret)
{
    PGresult *const result = stand_ask(stand, statement);
    if (result == NULL)
        return false;
    *ret = PQntuples(result) == 1 ? strtoull(PQgetvalue(result, 0, 0), NULL, 10) : 0;
    PQclear(result);
    return true;
}
