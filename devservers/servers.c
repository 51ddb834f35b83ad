#include "servers.h"
#include "clock.h"
#include "file_fault.h"
#include "server_process.h"
#include "write_flaw.h"
#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    PATH_BYTES = 1024,
    PORT_TRIES = 5,
    POLL_READY_MS = 20,
    STOP_MS = 15000,
    CLUSTER_TRIES = 5,
    ROUTES_BYTES_MAX = 512, /* of SERVER_CLUSTER_MAX members */
    CLUSTER_ATTEMPT_MS = 10000,
    LEFTOVERS_MAX = 128, /* more than Postgres has processes: max_connections and its own */
    LEFTOVERS_PATIENCE_MS = 2000
};

/* ---- folders and files ---- */

static thole_status use_dir(struct server *server, const char *dir, thole_error *reterr)
{
    char real[PATH_MAX];
    struct stat info;
    if (dir == NULL || realpath(dir, real) == NULL || stat(real, &info) != 0 || !S_ISDIR(info.st_mode))
        return thole_fail(reterr, THOLE_INVALID, "%s is not a folder", dir == NULL ? "NULL" : dir);
    if (strlen(real) >= sizeof server->dir)
        return thole_fail(reterr, THOLE_INVALID, "the path %s is longer than %zu bytes", real,
                          sizeof server->dir - 1);
    if (strpbrk(real, "\"\\\n") != NULL)
        return thole_fail(reterr, THOLE_INVALID, "the path %s holds a quote, a backslash or a line end",
                          real);
    memcpy(server->dir, real, strlen(real) + 1);
    return THOLE_OK;
}

static thole_status use_password(struct server *server, const char *password, thole_error *reterr)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
    size_t const len = strlen(password);
    if (len < 1 || len >= sizeof server->password || strspn(password, letters) != len)
        return thole_fail(reterr, THOLE_INVALID, "a password is 1 to %d letters and digits",
                          (int)sizeof server->password - 1);
    memcpy(server->password, password, len + 1);
    return THOLE_OK;
}

/* ---- one server ---- */

static const char *server_name(const struct server *server)
{
    return server->kind == SERVER_NATS ? "nats" : "postgres";
}

static void log_path(const struct server *server, char *ret, size_t cap)
{
    (void)snprintf(ret, cap, "%s/%s.log", server->dir, server_name(server));
}

static void postgres_args(const struct server *server, struct process *process)
{
    process->as_postgres = true;
    process_arg(process, "%s/postgres", server->program);
    process_arg(process, "-D");
    process_arg(process, "%s/data", server->dir);
    process_arg(process, "-p");
    process_arg(process, "%u", server->port);
    const char *const settings[] = {
        "listen_addresses=127.0.0.1",
        "max_connections=100",
        "shared_buffers=32MB",
        "dynamic_shared_memory_type=mmap", /* files in the folder: a kill -9 leaves nothing elsewhere */
        "logging_collector=off",
        "log_destination=stderr",
        server->no_fsync ? "fsync=off" : "fsync=on",
    };
    for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++) {
        process_arg(process, "-c");
        process_arg(process, "%s", settings[i]);
    }
    process_arg(process, "-c");
    process_arg(process, "unix_socket_directories=%s/s", server->dir);
}

thole_status server_relaunch(struct server *server, thole_error *reterr)
{
    struct process process = {.len = 0};
    assert(server->kind != SERVER_NONE);
    assert(server->pid == 0);
    log_path(server, process.log, sizeof process.log);
    if (server->kind == SERVER_POSTGRES) {
        postgres_args(server, &process);
    } else {
        process_arg(&process, "%s", server->program);
        process_arg(&process, "-c");
        process_arg(&process, "%s/nats.conf", server->dir);
    }
    return process_spawn(&process, &server->pid, reterr);
}

static bool servers_answers(const struct server *server)
{
    return server->kind == SERVER_NATS ? nats_answers(server) : postgres_answers(server->port);
}

static thole_status did_not_start(const struct server *server, const char *what, thole_error *reterr)
{
    char path[PATH_BYTES], line[256];
    log_path(server, path, sizeof path);
    process_last_line(path, line, sizeof line);
    return thole_fail(reterr, THOLE_UNAVAILABLE, "%s on port %u %s: %s", server_name(server), server->port,
                      what, line);
}

thole_status server_wait_ready(struct server *server, thole_error *reterr)
{
    uint64_t const end = clock_monotonic_ms() + SERVER_WAIT_MS;
    assert(server->kind != SERVER_NONE);
    while (server->pid != 0) {
        if (process_ended(server->pid)) {
            server->pid = 0;
            break;
        }
        if (servers_answers(server))
            return THOLE_OK;
        if (clock_monotonic_ms() >= end)
            return did_not_start(server, "did not become ready", reterr);
        process_pause_ms(POLL_READY_MS);
    }
    return did_not_start(server, "ended at once", reterr);
}

thole_status server_restart(struct server *server, thole_error *reterr)
{
    thole_status status = server_relaunch(server, reterr);
    if (status == THOLE_OK)
        status = server_wait_ready(server, reterr);
    if (status != THOLE_OK)
        server_kill9(server);
    return status;
}

/* Writes what the server reads at its start; its port is known. */
typedef thole_status prepare_fn(struct server *server, const void *options, thole_error *reterr);

/* A port that was free may be taken by the time the server binds it: then another one. */
static thole_status servers_launch(struct server *server, uint16_t port, prepare_fn *prepare,
                                   const void *options, thole_error *reterr)
{
    thole_status status = THOLE_OK;
    for (unsigned attempt = 0; attempt < PORT_TRIES; attempt++) {
        server->port = port == 0 ? server_free_port() : port;
        THOLE_TRY(prepare(server, options, reterr));
        if (server_port_is_open(server->port))
            status = thole_fail(reterr, THOLE_UNAVAILABLE, "port %u is in use", server->port);
        else
            status = server_restart(server, reterr);
        if (status == THOLE_OK || port != 0 || !server_port_is_open(server->port))
            break;
    }
    return status;
}

void server_kill9(struct server *server)
{
    if (server->kind == SERVER_NONE || server->pid == 0)
        return;
    process_kill9(server->pid);
    server->pid = 0;
}

/* Postgres that was killed leaves a small System V segment, which it would reuse; its id is in
 * postmaster.pid. */
static void remove_segment(const struct server *server)
{
    char path[PATH_BYTES], line[256];
    unsigned long key;
    int id;
    (void)snprintf(path, sizeof path, "%s/data/postmaster.pid", server->dir);
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return;
    for (unsigned n = 1; fgets(line, sizeof line, file) != NULL; n++)
        if (n == 7 && sscanf(line, "%lu %d", &key, &id) == 2)
            (void)shmctl(id, IPC_RMID, NULL);
    (void)fclose(file);
}

/* The postmaster that its file names; 0: none. */
static pid_t postgres_master(const char *path)
{
    char line[32] = "";
    FILE *file = fopen(path, "re");
    bool const read = file != NULL && fgets(line, sizeof line, file) != NULL;
    if (file != NULL)
        (void)fclose(file);
    return read ? (pid_t)strtol(line, NULL, 10) : 0;
}

/* Of a postmaster that has ended: its socket has a file with its number, too. */
static void postgres_forget(const struct server *server, const char *master_file)
{
    char path[PATH_BYTES];
    (void)snprintf(path, sizeof path, "%s/s", server->dir);
    DIR *const sockets = opendir(path);
    for (const struct dirent *one; sockets != NULL && (one = readdir(sockets)) != NULL;)
        if (strncmp(one->d_name, ".s.PGSQL.", 9) == 0)
            (void)unlinkat(dirfd(sockets), one->d_name, 0);
    if (sockets != NULL)
        (void)closedir(sockets);
    remove_segment(server);
    (void)unlink(master_file);
}

/*
 * A postmaster that was killed with its parent leaves its processes for a moment, longer when one of them has
 * work: as long as they exist Postgres refuses to start. So this waits for them, and ends them after a while.
 * A postmaster that goes on living belongs to a user: Postgres says so. Postgres cannot tell whether its
 * number is now that of another process, or of one that nobody has reaped; then its files are removed.
 * Without the file of the postmaster the file of the socket may exist: a start that met it has removed its
 * own.
 */
static void postgres_leftovers(const struct server *server)
{
    char data[PATH_BYTES], file[PATH_BYTES + 32];
    pid_t left[LEFTOVERS_MAX];
    (void)snprintf(data, sizeof data, "%s/data", server->dir);
    (void)snprintf(file, sizeof file, "%s/postmaster.pid", data);
    pid_t const master = postgres_master(file);
    uint64_t const begun = clock_monotonic_ms();
    for (;;) {
        size_t const n = process_within(data, left, LEFTOVERS_MAX);
        uint64_t const waited = clock_monotonic_ms() - begun;
        bool lives = false;
        for (size_t i = 0; i < n; i++)
            lives |= left[i] == master;
        if (n == 0 && (master <= 1 || kill(master, 0) == 0))
            postgres_forget(server, file);
        if (n == 0 || master <= 1 || waited > (lives ? LEFTOVERS_PATIENCE_MS : SERVER_WAIT_MS))
            return;
        for (size_t i = 0; i < n && !lives && waited > LEFTOVERS_PATIENCE_MS; i++)
            (void)kill(left[i], SIGKILL);
        process_pause_ms(POLL_READY_MS);
    }
}

void server_stop(struct server *server)
{
    if (server->kind == SERVER_NONE)
        return;
    if (server->pid != 0) {
        process_signal(server->pid, SIGCONT); /* if it is paused, it would not notice */
        kill(server->pid, server->kind == SERVER_POSTGRES ? SIGINT : SIGTERM);
        if (process_wait(server->pid, STOP_MS))
            server->pid = 0;
        server_kill9(server);
    }
    if (server->kind == SERVER_POSTGRES)
        remove_segment(server);
}

void server_pause(const struct server *server)
{
    siginfo_t info;
    if (server->kind == SERVER_NONE || server->pid == 0)
        return;
    process_signal(server->pid, SIGSTOP);
    /* Until it has stopped it may still answer. */
    while (waitid(P_PID, (id_t)server->pid, &info, WSTOPPED | WEXITED | WNOWAIT) != 0 && errno == EINTR)
        ;
}

void server_resume(const struct server *server)
{
    if (server->kind != SERVER_NONE && server->pid != 0)
        process_signal(server->pid, SIGCONT);
}

/* ---- NATS ---- */

/* A member of a cluster, or a server of its own when members is 1. */
struct nats_plan {
    const struct nats_server_options *options;
    size_t self, members;
    const uint16_t *route_ports;
};

/* Of two members only the later one connects, once: when both do, several times each, both ends sometimes
 * close the same route as the duplicate of another. A server wants at least one route: the first has one to
 * itself. */
static int routes_text(const struct nats_plan *plan, char *to, size_t cap)
{
    int n = snprintf(to, cap, "cluster { name: thole, listen: \"127.0.0.1:%u\", pool_size: -1, routes: [",
                     plan->route_ports[plan->self]);
    for (size_t i = 0; i <= plan->self; i++)
        n += snprintf(to + n, cap - (size_t)n, "%s\"nats://127.0.0.1:%u\"", i == 0 ? "" : ", ",
                      plan->route_ports[i]);
    return n + snprintf(to + n, cap - (size_t)n, " ] }\n");
}

static thole_status nats_prepare(struct server *server, const void *opaque, thole_error *reterr)
{
    const struct nats_plan *plan = opaque;
    char text[8192], path[PATH_BYTES];
    size_t const room = sizeof text - (plan->members > 1 ? ROUTES_BYTES_MAX : 0);
    int n = snprintf(text, sizeof text,
                     "server_name: n%zu\nlisten: \"127.0.0.1:%u\"\n"
                     "jetstream { store_dir: \"%s/jetstream\"%s }\n",
                     plan->self + 1, server->port, server->dir,
                     plan->options->sync_always ? ", sync_interval: always" : "");
    if (plan->options->max_payload_bytes > 0)
        n += snprintf(text + n, sizeof text - (size_t)n, "max_payload: %zu\n",
                      plan->options->max_payload_bytes);
    if (plan->options->config != NULL)
        n += snprintf(text + n, sizeof text - (size_t)n, "%s", plan->options->config);
    if ((size_t)n < sizeof text && server->password[0] != 0)
        n += snprintf(text + n, sizeof text - (size_t)n, "authorization { user: thole, password: \"%s\" }\n",
                      server->password);
    if ((size_t)n >= room)
        return thole_fail(reterr, THOLE_LIMIT, "the configuration of nats-server is longer than %zu bytes",
                          room - 1);
    if (plan->members > 1)
        n += routes_text(plan, text + n, sizeof text - (size_t)n);
    assert((size_t)n < sizeof text);
    (void)snprintf(server->url, sizeof server->url, "nats://%s%s%s127.0.0.1:%u",
                   server->password[0] == 0 ? "" : "thole:", server->password,
                   server->password[0] == 0 ? "" : "@", server->port);
    (void)snprintf(path, sizeof path, "%s/nats.conf", server->dir);
    return server_write_private(path, text, reterr);
}

thole_status server_nats_start(const struct nats_server_options *options, struct server *ret,
                               thole_error *reterr)
{
    struct nats_plan const plan = {.options = options, .members = 1};
    *ret = (struct server){.kind = SERVER_NATS};
    thole_status status = use_dir(ret, options->dir, reterr);
    if (status == THOLE_OK && options->password != NULL)
        status = use_password(ret, options->password, reterr);
    if (status == THOLE_OK)
        status = server_find_nats(ret->program, sizeof ret->program, reterr);
    if (status == THOLE_OK)
        status = servers_launch(ret, options->port, nats_prepare, &plan, reterr);
    if (status != THOLE_OK)
        *ret = (struct server){.kind = SERVER_NONE};
    return status;
}

static thole_status cluster_member(const struct nats_plan *plan, struct server *ret, thole_error *reterr)
{
    char dir[PATH_BYTES];
    *ret = (struct server){.kind = SERVER_NATS};
    (void)snprintf(dir, sizeof dir, "%s/n%zu", plan->options->dir, plan->self + 1);
    if (mkdir(dir, 0711) != 0 && errno != EEXIST)
        return thole_fail(reterr, THOLE_INVALID, "cannot make %s: %s", dir, strerror(errno));
    THOLE_TRY(use_dir(ret, dir, reterr));
    THOLE_TRY(server_find_nats(ret->program, sizeof ret->program, reterr));
    ret->port = server_free_port();
    return nats_prepare(ret, plan, reterr);
}

/* False when a server ended, or when they do not find together in time. */
static bool cluster_settles(struct server *servers, size_t count)
{
    uint64_t const end = clock_monotonic_ms() + CLUSTER_ATTEMPT_MS;
    size_t ready = 0;
    while (clock_monotonic_ms() < end) {
        if (process_ended(servers[ready].pid)) {
            servers[ready].pid = 0;
            return false;
        }
        if (ready < count - 1 && nats_answers(&servers[ready]))
            ready++;
        else if (ready == count - 1 && nats_answers(&servers[ready]) && nats_places(&servers[0], count))
            return true;
        process_pause_ms(POLL_READY_MS);
    }
    return false;
}

/*
 * Servers of 2.10.27 that start at the same moment on a busy machine sometimes (1 of 25, ten clusters at once
 * on two cores) never join each other's JetStream, because both ends of a route close it as the duplicate of
 * the other. Waiting does not help; starting again does.
 */
thole_status server_nats_cluster_restart(struct server *servers, size_t count, thole_error *reterr)
{
    assert(count > 1 && count <= SERVER_CLUSTER_MAX);
    for (unsigned attempt = 0; attempt < CLUSTER_TRIES; attempt++) {
        for (size_t i = 0; i < count; i++) {
            server_kill9(&servers[i]);
            THOLE_TRY(server_relaunch(&servers[i], reterr));
        }
        if (cluster_settles(servers, count))
            return THOLE_OK;
    }
    for (size_t i = 0; i < count; i++)
        server_kill9(&servers[i]);
    return did_not_start(&servers[0], "and the others do not become a cluster", reterr);
}

thole_status server_nats_cluster_start(const struct nats_server_options *options, size_t count,
                                       struct server *ret, thole_error *reterr)
{
    uint16_t routes[SERVER_CLUSTER_MAX];
    thole_status status = THOLE_OK;
    assert(count > 1 && count <= SERVER_CLUSTER_MAX);
    assert(options->port == 0);
    for (size_t i = 0; i < count; i++) {
        ret[i] = (struct server){.kind = SERVER_NONE};
        routes[i] = server_free_port();
    }
    for (size_t i = 0; status == THOLE_OK && i < count; i++) {
        struct nats_plan const plan = {
            .options = options, .self = i, .members = count, .route_ports = routes};
        status = cluster_member(&plan, &ret[i], reterr);
    }
    if (status == THOLE_OK)
        status = server_nats_cluster_restart(ret, count, reterr);
    for (size_t i = 0; status != THOLE_OK && i < count; i++) {
        server_kill9(&ret[i]);
        ret[i] = (struct server){.kind = SERVER_NONE};
    }
    return status;
}

/* ---- Postgres ---- */

/* Gives a file or folder to who runs Postgres. */
static thole_status postgres_owns(const char *path, thole_error *reterr)
{
    uid_t uid;
    gid_t gid;
    if (!process_postgres_user(&uid, &gid))
        return thole_fail(reterr, THOLE_INVALID,
                          "Postgres does not run as root, and there is no user postgres to run it as");
    if (geteuid() == 0 && lchown(path, uid, gid) != 0)
        return thole_fail(reterr, THOLE_INVALID, "cannot give %s to user postgres: %s", path,
                          strerror(errno));
    return THOLE_OK;
}

/* Root's own folders are usually closed to others, and initdb would only say "permission denied". */
static thole_status postgres_reaches(const struct server *server, thole_error *reterr)
{
    char path[SERVER_PATH_BYTES];
    struct stat info;
    uid_t uid;
    gid_t gid;
    if (geteuid() != 0 || !process_postgres_user(&uid, &gid))
        return THOLE_OK;
    memcpy(path, server->dir, sizeof path);
    for (char *slash = path + strlen(path); slash != NULL && slash != path; slash = strrchr(path, '/')) {
        *slash = '\0';
        if (stat(path, &info) == 0 && info.st_uid != uid && (info.st_mode & S_IXOTH) == 0)
            return thole_fail(
                reterr, THOLE_INVALID,
                "Postgres runs as user postgres here, who cannot enter %s: choose another folder than "
                "%s, or do not run this as root",
                path, server->dir);
    }
    return THOLE_OK;
}

static thole_status postgres_folder(const struct server *server, const char *name, mode_t mode,
                                    thole_error *reterr)
{
    char path[PATH_BYTES];
    (void)snprintf(path, sizeof path, "%s/%s", server->dir, name);
    if (mkdir(path, mode) != 0 && errno != EEXIST)
        return thole_fail(reterr, THOLE_INVALID, "cannot make %s: %s", path, strerror(errno));
    return postgres_owns(path, reterr);
}

static thole_status postgres_initdb(const struct server *server, thole_error *reterr)
{
    struct process initdb = {.as_postgres = true};
    char path[PATH_BYTES], text[64];
    (void)snprintf(path, sizeof path, "%s/s/password", server->dir);
    (void)snprintf(text, sizeof text, "%s\n", server->password);
    log_path(server, initdb.log, sizeof initdb.log);
    THOLE_TRY(server_write_private(path, text, reterr));
    THOLE_TRY(postgres_owns(path, reterr));
    process_arg(&initdb, "%s/initdb", server->program);
    const char *const options[] = {"--username=thole", "--auth=scram-sha-256",
                                   "--encoding=UTF8",  "--locale=C",
                                   "--no-sync",        "--no-instructions"};
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++)
        process_arg(&initdb, "%s", options[i]);
    process_arg(&initdb, "--pwfile=%s", path);
    process_arg(&initdb, "--pgdata=%s/data", server->dir);
    thole_status const status = process_run(&initdb, reterr);
    (void)unlink(path);
    return status;
}

static thole_status postgres_configure(const struct server *server, const char *config, thole_error *reterr)
{
    char path[PATH_BYTES];
    (void)snprintf(path, sizeof path, "%s/data/postgresql.conf", server->dir);
    FILE *file = fopen(path, "ae");
    if (file == NULL)
        return file_fault_write(path, errno, reterr);
    (void)fprintf(file, "%s\n", config);
    int const flaw = write_flaw_close(file);
    return flaw == 0 ? THOLE_OK : file_fault_write(path, flaw, reterr);
}

/* Makes the cluster, unless one was finished here before; what is left of an unfinished one goes away. */
static thole_status postgres_make(const struct server *server, const char *config, thole_error *reterr)
{
    char data[PATH_BYTES - 32], made[PATH_BYTES];
    (void)snprintf(data, sizeof data, "%s/data", server->dir);
    (void)snprintf(made, sizeof made, "%s/cluster-made", server->dir);
    THOLE_TRY(postgres_reaches(server, reterr));
    THOLE_TRY(postgres_folder(server, "s", 0755, reterr));
    if (access(made, F_OK) == 0)
        return THOLE_OK;
    server_dir_remove(data);
    THOLE_TRY(postgres_folder(server, "data", 0700, reterr));
    THOLE_TRY(postgres_initdb(server, reterr));
    if (config != NULL)
        THOLE_TRY(postgres_configure(server, config, reterr));
    return server_write_private(made, "", reterr);
}

static thole_status postgres_prepare(struct server *server, const void *opaque, thole_error *reterr)
{
    (void)opaque, (void)reterr;
    (void)snprintf(server->url, sizeof server->url, "postgres://thole:%s@127.0.0.1:%u/postgres",
                   server->password, server->port);
    return THOLE_OK;
}

thole_status server_postgres_start(const struct postgres_server_options *options, struct server *ret,
                                   thole_error *reterr)
{
    *ret = (struct server){.kind = SERVER_POSTGRES, .no_fsync = options->no_fsync};
    thole_status status = use_dir(ret, options->dir, reterr);
    if (status == THOLE_OK)
        status = use_password(ret, options->password == NULL ? "thole" : options->password, reterr);
    if (status == THOLE_OK)
        status = server_find_postgres(ret->program, sizeof ret->program, reterr);
    if (status == THOLE_OK)
        status = postgres_make(ret, options->config, reterr);
    if (status == THOLE_OK)
        postgres_leftovers(ret);
    if (status == THOLE_OK)
        status = servers_launch(ret, options->port, postgres_prepare, NULL, reterr);
    if (status != THOLE_OK)
        *ret = (struct server){.kind = SERVER_NONE};
    return status;
}
