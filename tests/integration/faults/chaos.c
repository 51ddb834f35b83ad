#include "chaos.h"
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/mount.h>
#include <sys/statvfs.h>
#include <unistd.h>

enum { SMALL_DISK_MIB = 512, STOP_MS = 20000, START_MS = 500, REFUSED_CODE = 6 };

void chaos_must(bool done, const char *what, const thole_error *err)
{
    if (done)
        return;
    fprintf(stderr, "chaos: %s: %s\n", what, err == NULL ? strerror(errno) : err->text);
    exit(1);
}

uint64_t chaos_random(struct chaos *chaos, uint64_t below)
{
    chaos->seed = chaos->seed * 6364136223846793005u + 1442695040888963407u;
    return (chaos->seed >> 33) % below;
}

static void run_shell(const char *line)
{
    if (system(line) != 0)
        fprintf(stderr, "chaos: failed: %s\n", line);
}

void chaos_shell(const char *fmt, ...)
{
    char line[1024];
    va_list args;
    va_start(args, fmt);
    int const n = vsnprintf(line, sizeof line, fmt, args);
    va_end(args);
    chaos_must(n > 0 && (size_t)n < sizeof line, "a command is too long", NULL);
    run_shell(line);
}

void chaos_note_end(struct chaos *chaos, int pid)
{
    chaos_must(chaos->ends_len < CHAOS_ENDS_MAX, "too many programs have ended", NULL);
    chaos->ends[chaos->ends_len++] = (struct chaos_end){.pid = pid, .at_ms = clock_monotonic_ms()};
}

/* ---- the cluster ---- */

/* The port after `cluster { … listen: "127.0.0.1:` in a server's configuration. */
static uint16_t route_port(const struct server *server)
{
    char path[256], line[1024];
    unsigned port = 0;
    (void)snprintf(path, sizeof path, "%s/nats.conf", server->dir);
    FILE *file = fopen(path, "re");
    chaos_must(file != NULL, path, NULL);
    while (fgets(line, sizeof line, file) != NULL)
        if (strncmp(line, "cluster ", 8) == 0)
            (void)sscanf(strstr(line, "listen:"), "listen: \"127.0.0.1:%u", &port);
    (void)fclose(file);
    chaos_must(port != 0, "no route port in nats.conf", NULL);
    return (uint16_t)port;
}

/*
 * Changes the configuration so that routes go through the proxies. Servers tell each other where others are;
 * they are given an address without a server, so that no route goes past a proxy.
 */
static void route_through_proxies(struct chaos *chaos, size_t self, const uint16_t ports[CHAOS_NATS])
{
    char line[512];
    int n = snprintf(
        line, sizeof line,
        "cluster { name: thole, listen: \"127.0.0.1:%u\", advertise: \"127.0.0.1:9\", pool_size: -1, "
        "routes: [\"nats://127.0.0.1:%u\"",
        ports[self], ports[self]);
    for (size_t to = 0; to < self; to++) {
        chaos->routes[self][to] = tcp_proxy_start(ports[to]);
        chaos_must(chaos->routes[self][to] != NULL, "no proxy", NULL);
        n += snprintf(line + n, sizeof line - (size_t)n, ", \"nats://127.0.0.1:%u\"",
                      tcp_proxy_port(chaos->routes[self][to]));
    }
    chaos_shell("sed -i 's#^cluster .*#%s ] }#' '%s/nats.conf'", line, chaos->nats[self].dir);
}

/* As root: in a mount namespace of its own, so that it ends with the process. */
static bool mount_small_disk(const struct server *server)
{
    char path[256], size[32];
    (void)snprintf(path, sizeof path, "%s/jetstream", server->dir);
    (void)snprintf(size, sizeof size, "size=%dm", SMALL_DISK_MIB);
    return unshare(CLONE_NEWNS) == 0 && mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
           mount("tmpfs", path, "tmpfs", 0, size) == 0;
}

void chaos_start_program(struct chaos *chaos, size_t i)
{
    static const char *const names[CHAOS_PROGRAMS] = {"engine-a", "engine-b", "worker-a", "worker-b"};
    struct stack *stack = &chaos->stack;
    jumping_clock_use(&chaos->clocks[i]);
    chaos->programs[i] = i < 2 ? stack_program(stack, names[i], "engine",
                                               chaos->nats_len == 1 ? "--replicas=1" : "--replicas=3",
                                               "--node-ttl=3s", "--sweep=10s", NULL)
                               : stack_program(stack, names[i], "worker", "--lease=3s", NULL);
    jumping_clock_use(NULL);
}

void chaos_start_server(struct chaos *chaos, struct server *server)
{
    if (server->pid != 0)
        return;
    jumping_clock_use(server == &chaos->stack.postgres ? &chaos->clocks[CHAOS_PROGRAMS] : NULL);
    chaos_must(server_relaunch(server, &chaos->stack.err) == THOLE_OK, "server", &chaos->stack.err);
    jumping_clock_use(NULL);
}

static void open_clocks(struct chaos *chaos)
{
    for (size_t i = 0; i < CHAOS_CLOCKS; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "clock-%zu", i);
        chaos_must(jumping_clock_open(&chaos->clocks[i], chaos->stack.dir, name), "clock", NULL);
    }
    server_stop(&chaos->stack.postgres); /* runs without its own clock so far */
    chaos_start_server(chaos, &chaos->stack.postgres);
    chaos_must(server_wait_ready(&chaos->stack.postgres, &chaos->stack.err) == THOLE_OK, "Postgres",
               &chaos->stack.err);
}

static void start_one_server(struct chaos *chaos)
{
    stack_start(&chaos->stack);
    open_clocks(chaos);
    chaos->nats[0] = chaos->stack.nats;
    server_kill9(&chaos->nats[0]);
    chaos->has_small_disk = mount_small_disk(&chaos->nats[0]);
    chaos_must(server_restart(&chaos->nats[0], &chaos->stack.err) == THOLE_OK, "nats-server",
               &chaos->stack.err);
}

static void start_cluster(struct chaos *chaos)
{
    uint16_t ports[CHAOS_NATS];
    stack_start_cluster(&chaos->stack);
    open_clocks(chaos);
    chaos->nats[0] = chaos->stack.nats;
    chaos->nats[1] = chaos->stack.others[0];
    chaos->nats[2] = chaos->stack.others[1];
    for (size_t i = 0; i < CHAOS_NATS; i++) {
        server_kill9(&chaos->nats[i]);
        ports[i] = route_port(&chaos->nats[i]);
    }
    for (size_t i = 0; i < CHAOS_NATS; i++)
        route_through_proxies(chaos, i, ports);
    chaos->has_small_disk = mount_small_disk(&chaos->nats[CHAOS_NATS - 1]);
    chaos_must(server_nats_cluster_restart(chaos->nats, CHAOS_NATS, &chaos->stack.err) == THOLE_OK,
               "nats cluster", &chaos->stack.err);
}

void chaos_start(struct chaos *chaos, uint64_t seed, size_t servers)
{
    *chaos = (struct chaos){.seed = seed, .nats_len = servers};
    if (servers == 1)
        start_one_server(chaos);
    else
        start_cluster(chaos);
    chaos->stage = (struct stage){.stack = &chaos->stack, .connection = stack_connect(&chaos->stack)};
    setenv("ORDERS_WORK_MS", "20", 1);
    (void)snprintf(chaos->runs, sizeof chaos->runs, "%s/runs", chaos->stack.dir);
    setenv("ORDERS_RUNS", chaos->runs, 1);
    for (size_t i = 0; i < CHAOS_PROGRAMS; i++)
        chaos_start_program(chaos, i);
}

void chaos_stop(struct chaos *chaos)
{
    for (size_t i = 0; i < CHAOS_PROGRAMS; i++)
        (void)stack_terminate(chaos->programs[i], STOP_MS);
    connection_close(chaos->stage.connection);
    chaos->stack.nats = chaos->nats[0];
    chaos->stack.others[0] = chaos->nats[1];
    chaos->stack.others[1] = chaos->nats[2];
    stack_stop(&chaos->stack);
    for (size_t i = 0; i < chaos->nats_len; i++)
        for (size_t to = 0; to < i; to++)
            tcp_proxy_stop(chaos->routes[i][to]);
}

/* Nobody has told it to. */
static void look_for_ends(struct chaos *chaos, size_t i)
{
    struct stack_program *program = chaos->programs[i];
    int const code = stack_ended(program);
    bool const refuses = chaos->may_refuse && code == REFUSED_CODE;
    size_t const restarts = stack_count(program->log, "the engine is started again");
    if (code >= 0 && !refuses)
        fprintf(stderr, "  %s has ended by itself, with exit code %d\n", program->name, code);
    if (restarts > chaos->restarts[i])
        fprintf(stderr, "  %s has started its engine again, %zu times\n", program->name,
                restarts - chaos->restarts[i]);
    chaos->ended_alone += (code >= 0 && !refuses) + (unsigned)(restarts - chaos->restarts[i]);
    chaos->restarts[i] = restarts;
}

void chaos_heal(struct chaos *chaos)
{
    for (size_t i = 0; i < chaos->nats_len; i++)
        chaos_start_server(chaos, &chaos->nats[i]);
    chaos_start_server(chaos, &chaos->stack.postgres);
    for (size_t i = 0; i < chaos->nats_len; i++)
        chaos_must(server_wait_ready(&chaos->nats[i], &chaos->stack.err) == THOLE_OK,
                   "nats-server is not ready again", &chaos->stack.err);
    chaos_must(server_wait_ready(&chaos->stack.postgres, &chaos->stack.err) == THOLE_OK,
               "Postgres is not ready again", &chaos->stack.err);
    for (size_t i = 0; i < CHAOS_PROGRAMS; i++) {
        look_for_ends(chaos, i);
        if (chaos->programs[i]->pid == 0)
            chaos_start_program(chaos, i);
    }
    chaos->may_refuse = false;
}

/* ---- faults: to a program (0..3), a NATS server (0..2), or Postgres ---- */

void chaos_kill_program(struct chaos *chaos, size_t i)
{
    look_for_ends(chaos, i);
    if (chaos->programs[i]->pid > 0)
        chaos_note_end(chaos, chaos->programs[i]->pid);
    stack_kill9(chaos->programs[i]);
}

static void kill_engine(struct chaos *chaos, size_t i)
{
    chaos_kill_program(chaos, i);
}

static void kill_worker(struct chaos *chaos, size_t i)
{
    chaos_kill_program(chaos, 2 + i);
}

static void start_engine(struct chaos *chaos, size_t i)
{
    chaos_start_program(chaos, i);
}

static void start_worker(struct chaos *chaos, size_t i)
{
    chaos_start_program(chaos, 2 + i);
}

static void freeze_engine(struct chaos *chaos, size_t i)
{
    process_signal(chaos->programs[i]->pid, SIGSTOP);
}

static void thaw_engine(struct chaos *chaos, size_t i)
{
    process_signal(chaos->programs[i]->pid, SIGCONT);
}

static void freeze_worker(struct chaos *chaos, size_t i)
{
    freeze_engine(chaos, 2 + i);
}

static void thaw_worker(struct chaos *chaos, size_t i)
{
    thaw_engine(chaos, 2 + i);
}

static void term_program(struct chaos *chaos, size_t i)
{
    look_for_ends(chaos, i);
    if (chaos->programs[i]->pid > 0)
        chaos_note_end(chaos, chaos->programs[i]->pid);
    int const code = stack_terminate(chaos->programs[i], STOP_MS);
    if (code == 0)
        return;
    fprintf(stderr, "  %s has ended with exit code %d after SIGTERM\n", chaos->programs[i]->name, code);
    chaos->ended_alone++;
}

static void term_worker(struct chaos *chaos, size_t i)
{
    term_program(chaos, 2 + i);
}

static struct server *nats_of(struct chaos *chaos, size_t i)
{
    return &chaos->nats[i % chaos->nats_len];
}

static void kill_nats(struct chaos *chaos, size_t i)
{
    server_kill9(nats_of(chaos, i));
}

static void start_nats(struct chaos *chaos, size_t i)
{
    chaos_start_server(chaos, nats_of(chaos, i));
}

static void term_nats(struct chaos *chaos, size_t i)
{
    server_stop(nats_of(chaos, i));
}

static void freeze_nats(struct chaos *chaos, size_t i)
{
    server_pause(nats_of(chaos, i));
}

static void thaw_nats(struct chaos *chaos, size_t i)
{
    server_resume(nats_of(chaos, i));
}

static void kill_postgres(struct chaos *chaos, size_t i)
{
    (void)i;
    chaos_note_end(chaos, 0);
    server_kill9(&chaos->stack.postgres);
}

static void term_postgres(struct chaos *chaos, size_t i)
{
    (void)i;
    server_stop(&chaos->stack.postgres);
}

static void start_postgres(struct chaos *chaos, size_t i)
{
    (void)i;
    chaos_start_server(chaos, &chaos->stack.postgres);
}

static void freeze_postgres(struct chaos *chaos, size_t i)
{
    (void)i;
    server_pause(&chaos->stack.postgres);
}

static void thaw_postgres(struct chaos *chaos, size_t i)
{
    (void)i;
    server_resume(&chaos->stack.postgres);
}

/* ---- a full disk: what frees it, restarts the server too, for it gives JetStream up until then ---- */

static bool can_fill(const struct chaos *chaos)
{
    return chaos->has_small_disk;
}

static void fill_disk(struct chaos *chaos, size_t i)
{
    (void)i;
    chaos_shell("head -c %dm /dev/zero >'%s/jetstream/ballast' 2>/dev/null || true", SMALL_DISK_MIB,
                chaos->nats[chaos->nats_len - 1].dir);
}

static void free_disk(struct chaos *chaos, size_t i)
{
    struct server *server = &chaos->nats[chaos->nats_len - 1];
    (void)i;
    chaos_shell("rm -f '%s/jetstream/ballast'", server->dir);
    server_stop(server);
    chaos_start_server(chaos, server);
}

/* ---- a partition: target i is cut off from both others; i + 3: what it sends and is sent is held ---- */

static void part(struct chaos *chaos, size_t target, void (*what)(struct tcp_proxy *proxy))
{
    for (size_t from = 0; from < CHAOS_NATS; from++)
        for (size_t to = 0; to < from; to++)
            if (from == target % CHAOS_NATS || to == target % CHAOS_NATS)
                what(chaos->routes[from][to]);
}

static void hold(struct tcp_proxy *proxy)
{
    tcp_proxy_stall(proxy, TCP_BOTH);
}

static bool is_cluster(const struct chaos *chaos)
{
    return chaos->nats_len > 1;
}

static void begin_partition(struct chaos *chaos, size_t target)
{
    part(chaos, target, target < CHAOS_NATS ? tcp_proxy_cut : hold);
}

static void end_partition(struct chaos *chaos, size_t target)
{
    part(chaos, target, tcp_proxy_heal);
}

/* ---- a clock that jumps an hour: target 0..3 a program, 4 Postgres; + 5: backwards ---- */

static void set_clocks(struct chaos *chaos, size_t target, int64_t jump_ms)
{
    for (size_t i = 0; i < CHAOS_CLOCKS; i++)
        jumping_clock_set(&chaos->clocks[i], i == target ? jump_ms : 0);
}

/* An engine whose clock is wrong owns no partition: the other one takes them over. */
static void begin_jump(struct chaos *chaos, size_t target)
{
    bool const forward = target < CHAOS_CLOCKS;
    set_clocks(chaos, target % CHAOS_CLOCKS, forward ? JUMPING_CLOCK_HOUR_MS : -JUMPING_CLOCK_HOUR_MS);
}

static void end_jump(struct chaos *chaos, size_t target)
{
    set_clocks(chaos, target, 0);
}

/* Target 0..3: the program's clock is ahead by ten years; + 4: it is back by ten. */
static void begin_jump_of_years(struct chaos *chaos, size_t target)
{
    int64_t const years_ms = INT64_C(10) * 365 * 24 * JUMPING_CLOCK_HOUR_MS;
    set_clocks(chaos, target % CHAOS_PROGRAMS, target < CHAOS_PROGRAMS ? years_ms : -years_ms);
}

/* Likewise in the moments after a kill -9 and a start; of Postgres while it recovers. */
static void begin_jump_at_start(struct chaos *chaos, size_t target)
{
    size_t const i = target % CHAOS_CLOCKS;
    if (i < CHAOS_PROGRAMS) {
        chaos_kill_program(chaos, i);
        chaos_start_program(chaos, i);
    } else {
        kill_postgres(chaos, 0);
        chaos_start_server(chaos, &chaos->stack.postgres);
    }
    pause_ms((unsigned)chaos_random(chaos, START_MS));
    begin_jump(chaos, target);
}

/* ---- a power loss: what was written since a copy was made, is gone ---- */

static void begin_power_loss(struct chaos *chaos, size_t i)
{
    const char *dir = chaos->nats[i].dir;
    chaos_wait_current(chaos);
    server_pause(&chaos->nats[i]);
    chaos_shell("rm -rf '%s/synced' && cp -a '%s/jetstream' '%s/synced' && rm -f '%s/synced/ballast'", dir,
                dir, dir, dir);
    server_resume(&chaos->nats[i]);
    pause_ms(1000 + (unsigned)chaos_random(chaos, 3000));
    chaos_wait_current(chaos);
    server_kill9(&chaos->nats[i]);
    chaos_shell("cd '%s' && find jetstream -mindepth 1 -delete && cp -a synced/. jetstream/", dir);
}

/* ---- an older backup of Postgres is put back in place, under everybody's eyes ---- */

static void take_backup(struct chaos *chaos, size_t target)
{
    const struct server *const postgres = &chaos->stack.postgres;
    (void)target;
    chaos_shell("'%s/pg_dump' -d '%s' -n thole_default -f '%s/backup.sql'", postgres->program, postgres->url,
                chaos->stack.dir);
}

/* With what says which incarnation it is of, or without. Who has the tables at that moment may be in the way.
 */
static void put_backup_back(struct chaos *chaos, size_t target)
{
    const struct server *const postgres = &chaos->stack.postgres;
    chaos_note_end(chaos, 0);
    chaos_shell(
        "for i in 1 2 3 4 5 6 7 8 9; do '%s/psql' -X -q -1 -v ON_ERROR_STOP=1 -d '%s'"
        " -c 'DROP SCHEMA thole_default CASCADE' -f '%s/backup.sql' %s >/dev/null 2>&1 && break; sleep "
        "0.2; done",
        postgres->program, postgres->url, chaos->stack.dir,
        target == 0 ? "" : "-c 'TRUNCATE thole_default.incarnation'");
}

const struct chaos_fault chaos_faults[] = {
    {"kill -9 of an engine", 2, kill_engine, start_engine, NULL},
    {"kill -9 of a worker", 2, kill_worker, start_worker, NULL},
    {"kill -9 of a NATS server", 3, kill_nats, start_nats, NULL},
    {"kill -9 of Postgres", 1, kill_postgres, start_postgres, NULL},
    {"SIGSTOP of an engine", 2, freeze_engine, thaw_engine, NULL},
    {"SIGSTOP of a worker", 2, freeze_worker, thaw_worker, NULL},
    {"SIGSTOP of a NATS server", 3, freeze_nats, thaw_nats, NULL},
    {"SIGSTOP of Postgres", 1, freeze_postgres, thaw_postgres, NULL},
    {"SIGTERM to an engine", 2, term_program, start_engine, NULL},
    {"SIGTERM to a worker", 2, term_worker, start_worker, NULL},
    {"SIGTERM to a NATS server", 3, term_nats, start_nats, NULL},
    {"SIGTERM to Postgres", 1, term_postgres, start_postgres, NULL},
    {"full disk of a NATS server", 1, fill_disk, free_disk, can_fill},
    {"partition of a NATS server", 2 * CHAOS_NATS, begin_partition, end_partition, is_cluster},
    {"clock jump of an hour", 2 * CHAOS_CLOCKS, begin_jump, end_jump, NULL},
    {"clock jump of ten years", 2 * CHAOS_PROGRAMS, begin_jump_of_years, end_jump, NULL},
    {"clock jump at a start", 2 * CHAOS_CLOCKS, begin_jump_at_start, end_jump, NULL},
    {"power loss of a NATS server", 3, begin_power_loss, start_nats, is_cluster},
    {"older backup of Postgres", 2, take_backup, put_backup_back, NULL},
};
const size_t chaos_faults_len = sizeof chaos_faults / sizeof chaos_faults[0];
