/* Real servers start, are killed, come back with their data on the same port, and leave no processes or
 * files. */
#include "integration.h"
#include <libpq-fe.h>
#include <nats/nats.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/prctl.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

struct knocking {
    atomic_bool stop;
    char url[256];
};

static bool stream_create(jsCtx *js, const char *name, int64_t replicas)
{
    jsStreamConfig config;
    const char *subject = "kept.>";
    jsStreamConfig_Init(&config);
    config.Name = name;
    config.Subjects = &subject;
    config.SubjectsLen = 1;
    config.Replicas = replicas;
    return js_AddStream(NULL, js, &config, NULL, NULL) == NATS_OK;
}

/* One connection, one thing to do: publish with an acknowledgement, or count what is stored. */
static bool with_js(const struct server *server, bool (*run)(jsCtx *js, int64_t arg), int64_t arg)
{
    natsConnection *connection = NULL;
    jsCtx *js = NULL;
    bool ok = natsConnection_ConnectTo(&connection, server->url) == NATS_OK &&
              natsConnection_JetStream(&js, connection, NULL) == NATS_OK && run(js, arg);
    jsCtx_Destroy(js);
    natsConnection_Destroy(connection);
    return ok;
}

static bool fill(jsCtx *js, int64_t replicas)
{
    bool ok = stream_create(js, "KEPT", replicas);
    for (int i = 0; ok && i < 10; i++)
        ok = js_Publish(NULL, js, "kept.x", "abc", 3, NULL, NULL) == NATS_OK;
    return ok;
}

static bool holds(jsCtx *js, int64_t want)
{
    jsStreamInfo *info = NULL;
    bool ok = js_GetStreamInfo(&info, js, "KEPT", NULL, NULL) == NATS_OK && (int64_t)info->State.Msgs == want;
    jsStreamInfo_Destroy(info);
    return ok;
}

static void test_nats(void)
{
    char dir[SERVER_PATH_BYTES];
    thole_error err = {0};
    struct server server;
    CHECK_OK(server_dir_create("thole-test", dir, &err), &err);
    CHECK_OK(server_nats_start(&(struct nats_server_options){.dir = dir, .sync_always = true}, &server, &err),
             &err);
    uint16_t const port = server.port;
    CU_ASSERT(with_js(&server, fill, 1));
    for (int round = 0; round < 2; round++) {
        server_kill9(&server);
        CU_ASSERT_FALSE(server_port_is_open(port));
        CHECK_OK(server_restart(&server, &err), &err);
        CU_ASSERT_EQUAL(server.port, port);
        CU_ASSERT(with_js(&server, holds, 10));
    }
    server_stop(&server);
    CU_ASSERT_FALSE(server_port_is_open(port));
    CHECK_OK(server_restart(&server, &err), &err);
    CU_ASSERT(with_js(&server, holds, 10));
    server_stop(&server);
    server_dir_remove(dir);
    CU_ASSERT(access(dir, F_OK) != 0);
}

/* A stream elects its own leader, some seconds after the servers are ready. */
static bool holds_soon(const struct server *server)
{
    bool ok = false;
    for (int i = 0; !ok && i < 10; i++)
        ok = with_js(server, holds, 10);
    return ok;
}

static void test_nats_cluster(void)
{
    char dir[SERVER_PATH_BYTES];
    thole_error err = {0};
    struct server servers[3];
    uint16_t ports[3];
    CHECK_OK(server_dir_create("thole-test", dir, &err), &err);
    CHECK_OK(server_nats_cluster_start(&(struct nats_server_options){.dir = dir}, 3, servers, &err), &err);
    CU_ASSERT(with_js(&servers[0], fill, 3));
    for (int i = 0; i < 3; i++)
        ports[i] = servers[i].port;
    server_kill9(&servers[1]);
    CHECK_OK(server_restart(&servers[1], &err), &err);
    CU_ASSERT(holds_soon(&servers[1]));
    for (int i = 0; i < 3; i++) /* all at once: none is ready before there is a majority again */
        server_kill9(&servers[i]);
    CHECK_OK(server_nats_cluster_restart(servers, 3, &err), &err);
    CU_ASSERT(holds_soon(&servers[2]));
    for (int i = 0; i < 3; i++)
        server_stop(&servers[i]);
    for (int i = 0; i < 3; i++)
        CU_ASSERT_FALSE(server_port_is_open(ports[i]));
    server_dir_remove(dir);
}

/* Runs one statement; true when its first value is want ("" for none). */
static bool query(const struct server *server, const char *sql, const char *want)
{
    PGconn *connection = PQconnectdb(server->url);
    PGresult *result = PQexec(connection, sql);
    const char *got = PQntuples(result) > 0 ? PQgetvalue(result, 0, 0) : "";
    bool const done = PQresultStatus(result) == PGRES_TUPLES_OK || PQresultStatus(result) == PGRES_COMMAND_OK;
    bool const ok = done && strcmp(got, want) == 0;
    if (!ok)
        fprintf(stderr, "\n  %s: got '%s' %s\n", sql, got, PQerrorMessage(connection));
    PQclear(result);
    PQfinish(connection);
    return ok;
}

/* Postgres notes it in its pid file: "key id" is the seventh line. */
static int segment_of(const struct server *server)
{
    char path[SERVER_PATH_BYTES + 32], line[256] = "";
    unsigned long key;
    int id = -1;
    snprintf(path, sizeof path, "%s/data/postmaster.pid", server->dir);
    FILE *const file = fopen(path, "r");
    for (int n = 0; file != NULL && n < 7; n++)
        if (fgets(line, sizeof line, file) == NULL)
            line[0] = '\0';
    if (file != NULL)
        fclose(file);
    CU_ASSERT_EQUAL(sscanf(line, "%lu %d", &key, &id), 2);
    return id;
}

static void test_postgres(void)
{
    struct shmid_ds left;
    char dir[SERVER_PATH_BYTES];
    thole_error err = {0};
    struct server server;
    CHECK_OK(server_dir_create("thole-test", dir, &err), &err);
    CHECK_OK(server_postgres_start(&(struct postgres_server_options){.dir = dir}, &server, &err), &err);
    uint16_t const port = server.port;
    CU_ASSERT(query(&server, "CREATE TABLE kept AS SELECT generate_series(1, 10) AS n", ""));
    CU_ASSERT(query(&server, "SHOW fsync", "on"));
    for (int round = 0; round < 2; round++) {
        server_kill9(&server);
        CU_ASSERT_FALSE(server_port_is_open(port));
        CHECK_OK(server_restart(&server, &err), &err);
        CU_ASSERT(query(&server, "SELECT count(*) FROM kept", "10"));
    }
    server_stop(&server);
    CU_ASSERT_FALSE(server_port_is_open(port));
    CHECK_OK(
        server_postgres_start(&(struct postgres_server_options){.dir = dir, .no_fsync = true}, &server, &err),
        &err);
    CU_ASSERT(query(&server, "SELECT count(*) FROM kept", "10"));
    CU_ASSERT(query(&server, "SHOW fsync", "off"));
    int const segment = segment_of(&server);
    server_kill9(&server);
    CU_ASSERT_EQUAL(shmctl(segment, IPC_STAT, &left), 0);
    server_stop(&server); /* also removes what the killed one left in the kernel */
    CU_ASSERT(shmctl(segment, IPC_STAT, &left) != 0 || (left.shm_perm.mode & SHM_DEST) != 0);
    server_dir_remove(dir);
    CU_ASSERT(access(dir, F_OK) != 0);
}

static void *knock(void *arg)
{
    struct knocking *knocking = arg;
    while (!atomic_load(&knocking->stop))
        PQfinish(PQconnectdb(knocking->url));
    return NULL;
}

/* Postgres forks for each client: one that it makes while it is killed must not keep the port. */
static void test_postgres_under_clients(void)
{
    enum { KNOCKERS = 4, ROUNDS = 10 };
    char dir[SERVER_PATH_BYTES];
    thole_error err = {0};
    struct server server;
    struct knocking knocking = {0};
    pthread_t threads[KNOCKERS];
    CHECK_OK(server_dir_create("thole-test", dir, &err), &err);
    CHECK_OK(
        server_postgres_start(&(struct postgres_server_options){.dir = dir, .no_fsync = true}, &server, &err),
        &err);
    snprintf(knocking.url, sizeof knocking.url, "%s", server.url);
    for (int i = 0; i < KNOCKERS; i++)
        pthread_create(&threads[i], NULL, knock, &knocking);
    for (int i = 0; i < ROUNDS; i++) {
        server_kill9(&server);
        CHECK_OK(server_restart(&server, &err), &err);
    }
    atomic_store(&knocking.stop, true);
    for (int i = 0; i < KNOCKERS; i++)
        pthread_join(threads[i], NULL);
    server_stop(&server);
    server_dir_remove(dir);
}

static void test_nats_password(void)
{
    char dir[SERVER_PATH_BYTES];
    thole_error err = {0};
    struct server server;
    CHECK_OK(server_dir_create("thole-test", dir, &err), &err);
    CHECK_OK(
        server_nats_start(&(struct nats_server_options){.dir = dir, .password = "secret1"}, &server, &err),
        &err);
    CU_ASSERT_PTR_NOT_NULL(strstr(server.url, "nats://thole:secret1@127.0.0.1:"));
    CU_ASSERT(with_js(&server, fill, 1));
    server_kill9(&server);
    CHECK_OK(server_restart(&server, &err), &err);
    CU_ASSERT(with_js(&server, holds, 10));
    (void)snprintf(server.url, sizeof server.url, "nats://127.0.0.1:%u", server.port);
    CU_ASSERT_FALSE(with_js(&server, holds, 10));
    (void)snprintf(server.url, sizeof server.url, "nats://thole:other@127.0.0.1:%u", server.port);
    CU_ASSERT_FALSE(with_js(&server, holds, 10));
    server_stop(&server);
    server_dir_remove(dir);
    CU_ASSERT_EQUAL(
        server_nats_start(&(struct nats_server_options){.dir = dir, .password = "a\"b"}, &server, NULL),
        THOLE_INVALID);
}

/* Nobody else can read it at any time, and a link that waits at its place is not followed. */
static void test_private_files(void)
{
    char dir[SERVER_PATH_BYTES], path[2 * SERVER_PATH_BYTES], fresh[2 * SERVER_PATH_BYTES],
        other[2 * SERVER_PATH_BYTES], text[32] = "";
    struct stat info;
    thole_error err = {0};
    CHECK_OK(server_dir_create("thole-test", dir, &err), &err);
    (void)snprintf(path, sizeof path, "%s/password", dir);
    (void)snprintf(fresh, sizeof fresh, "%s/password.new", dir);
    (void)snprintf(other, sizeof other, "%s/other", dir);
    CU_ASSERT_EQUAL(symlink(other, path), 0);
    CU_ASSERT_EQUAL(symlink(other, fresh), 0);
    CHECK_OK(server_write_private(path, "secret", &err), &err);
    CU_ASSERT_EQUAL(lstat(other, &info), -1);
    CU_ASSERT_EQUAL(lstat(path, &info), 0);
    CU_ASSERT(S_ISREG(info.st_mode) && (info.st_mode & 0777) == 0600);
    CHECK_OK(server_write_private(path, "next", &err), &err);
    FILE *file = fopen(path, "re");
    CU_ASSERT(file != NULL && fgets(text, sizeof text, file) != NULL && fclose(file) == 0);
    CHECK_STR("the file", text, "next");
    CU_ASSERT_EQUAL(lstat(fresh, &info), -1);
    (void)snprintf(path, sizeof path, "%s/nowhere/password", dir);
    CU_ASSERT_EQUAL(server_write_private(path, "x", &err), THOLE_UNAVAILABLE);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, path));
    server_dir_remove(dir);
}

static void test_postgres_password(void)
{
    char dir[SERVER_PATH_BYTES];
    thole_error err = {0};
    struct server server;
    struct postgres_server_options options = {.dir = dir, .password = "secret1", .no_fsync = true};
    CHECK_OK(server_dir_create("thole-test", dir, &err), &err);
    CHECK_OK(server_postgres_start(&options, &server, &err), &err);
    CU_ASSERT(query(&server, "SELECT 1", "1"));
    (void)snprintf(server.url, sizeof server.url, "postgres://thole:other@127.0.0.1:%u/postgres",
                   server.port);
    PGconn *connection = PQconnectdb(server.url);
    CU_ASSERT_EQUAL(PQstatus(connection), CONNECTION_BAD);
    CU_ASSERT_PTR_NOT_NULL(strstr(PQerrorMessage(connection), "password authentication failed"));
    PQfinish(connection);
    server_stop(&server);
    server_dir_remove(dir);
}

static void test_pause(void)
{
    char dir[SERVER_PATH_BYTES];
    thole_error err = {0};
    struct server server;
    CHECK_OK(server_dir_create("thole-test", dir, &err), &err);
    CHECK_OK(server_nats_start(&(struct nats_server_options){.dir = dir}, &server, &err), &err);
    server_pause(&server);
    server_resume(&server);
    CHECK_OK(server_wait_ready(&server, &err), &err);
    server_pause(&server);
    server_stop(&server); /* a paused server stops too */
    CU_ASSERT_FALSE(server_port_is_open(server.port));
    server_dir_remove(dir);
}

static void test_refusals(void)
{
    char dir[SERVER_PATH_BYTES];
    thole_error err = {0};
    struct server server, second;
    CU_ASSERT_EQUAL(server_nats_start(&(struct nats_server_options){.dir = "/does/not/exist"}, &server, &err),
                    THOLE_INVALID);
    CHECK_STR("folder", err.text, "/does/not/exist is not a folder");
    CHECK_OK(server_dir_create("thole-test", dir, &err), &err);
    struct postgres_server_options const quoted = {.dir = dir, .password = "a'b"};
    CU_ASSERT_EQUAL(server_postgres_start(&quoted, &server, &err), THOLE_INVALID);
    CHECK_OK(server_nats_start(&(struct nats_server_options){.dir = dir}, &server, &err), &err);
    struct nats_server_options const same = {.dir = dir, .port = server.port};
    CU_ASSERT_EQUAL(server_nats_start(&same, &second, &err), THOLE_UNAVAILABLE);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "in use"));
    server_stop(&server);
    server_stop(&second); /* nothing was started */
    setenv("NATS_SERVER", "/bin/true", 1);
    CU_ASSERT_EQUAL(server_nats_start(&(struct nats_server_options){.dir = dir}, &server, &err),
                    THOLE_NOT_FOUND);
    server_dir_remove(dir);
}

/* A process that starts both servers and is killed: the kernel takes the servers with it. */
static void test_die_with_parent(void)
{
    char dir[SERVER_PATH_BYTES];
    thole_error err = {0};
    uint16_t ports[2] = {0, 0};
    int pipes[2];
    CHECK_OK(server_dir_create("thole-test", dir, &err), &err);
    CU_ASSERT_EQUAL(pipe(pipes), 0);
    pid_t const pid = fork();
    if (pid == 0) {
        struct server nats, postgres;
        bool ok = server_nats_start(&(struct nats_server_options){.dir = dir}, &nats, &err) == THOLE_OK &&
                  server_postgres_start(&(struct postgres_server_options){.dir = dir, .no_fsync = true},
                                        &postgres, &err) == THOLE_OK;
        ports[0] = ok ? nats.port : 0;
        ports[1] = ok ? postgres.port : 0;
        ok = write(pipes[1], ports, sizeof ports) == (ssize_t)sizeof ports;
        pause();
        _exit(ok ? 0 : 1);
    }
    CU_ASSERT_EQUAL(read(pipes[0], ports, sizeof ports), (ssize_t)sizeof ports);
    CU_ASSERT(ports[0] != 0 && server_port_is_open(ports[0]));
    CU_ASSERT(ports[1] != 0 && server_port_is_open(ports[1]));
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    for (int i = 0; i < 500 && (server_port_is_open(ports[0]) || server_port_is_open(ports[1])); i++)
        usleep(10000);
    CU_ASSERT_FALSE(server_port_is_open(ports[0]));
    CU_ASSERT_FALSE(server_port_is_open(ports[1]));
    close(pipes[0]);
    close(pipes[1]);
    usleep(100000); /* Postgres' own processes end by themselves a moment later */
    struct server gone = {.kind = SERVER_POSTGRES};
    memcpy(gone.dir, dir, sizeof gone.dir);
    server_stop(&gone);
    server_dir_remove(dir);
}

/* Starts Postgres in @p dir, lets one of its processes work, and waits to be killed. */
_Noreturn static void be_killed_parent(const char *dir, uint16_t port, int ready)
{
    thole_error err = {0};
    struct server server;
    thole_status const status =
        server_postgres_start(&(struct postgres_server_options){.dir = dir, .port = port}, &server, &err);
    PGconn *const connection = status == THOLE_OK ? PQconnectdb(server.url) : NULL;
    bool const works = connection != NULL &&
                       PQsendQuery(connection, "SELECT count(*) FROM generate_series(1, 1000000000)") == 1 &&
                       PQflush(connection) == 0;
    usleep(100000);
    if (write(ready, works ? "+" : "-", 1) != 1)
        _exit(2);
    for (;;)
        pause();
}

/* thole dev that is killed and started again at once: Postgres would say "another postmaster", or that a
 * segment is still in use. The port is the same each time, as is its socket; and, as in a container whose
 * first process reaps nobody, what was killed stays as a zombie. */
static void test_start_behind_a_kill(void)
{
    uint16_t const port = server_free_port();
    char dir[SERVER_PATH_BYTES], said = 0;
    int ends[2];
    thole_error err = {0};
    struct server server;
    CHECK_OK(server_dir_create("thole-test", dir, &err), &err);
    CU_ASSERT_EQUAL(prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), 0);
    for (int round = 0; round < 3; round++) {
        CU_ASSERT_EQUAL_FATAL(pipe(ends), 0);
        pid_t const pid = fork();
        if (pid == 0)
            be_killed_parent(dir, port, ends[1]);
        close(ends[1]);
        CU_ASSERT_EQUAL(read(ends[0], &said, 1), 1);
        CU_ASSERT_EQUAL(said, '+');
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
        close(ends[0]);
    }
    CHECK_OK(
        server_postgres_start(&(struct postgres_server_options){.dir = dir, .port = port}, &server, &err),
        &err);
    CU_ASSERT(query(&server, "SELECT 1", "1"));
    /* one that lives is left alone */
    struct server other;
    CU_ASSERT_EQUAL(server_postgres_start(&(struct postgres_server_options){.dir = dir}, &other, &err),
                    THOLE_UNAVAILABLE);
    CU_ASSERT(query(&server, "SELECT 1", "1"));
    server_stop(&server);
    CU_ASSERT_EQUAL(prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0), 0);
    while (waitpid(-1, NULL, WNOHANG) > 0)
        ;
    server_dir_remove(dir);
}

static const struct thole_test tests[] = {
    {"servers: nats is killed and comes back", test_nats},
    {"servers: a cluster of three", test_nats_cluster},
    {"servers: postgres is killed and comes back", test_postgres},
    {"servers: postgres is killed while clients come", test_postgres_under_clients},
    {"servers: nats wants its password", test_nats_password},
    {"servers: private files", test_private_files},
    {"servers: postgres wants its password", test_postgres_password},
    {"servers: pause and resume", test_pause},
    {"servers: they die with their parent", test_die_with_parent},
    {"servers: start behind a kill", test_start_behind_a_kill},
    {"servers: refusals", test_refusals},
};
THOLE_INTEGRATION_MAIN("servers", tests)
