/*
 * Private nats-server and Postgres processes on 127.0.0.1, each with its data in a folder of its own: for
 * `thole dev` and for tests. None outlives the thread that started it: the kernel kills a server when that
 * thread ends, so start servers from the main thread. A struct server belongs to one thread at a time.
 *
 * The programs are looked for in $NATS_SERVER and $POSTGRES_BIN (a folder), then where this project's scripts
 * put them, then where Debian and PATH have them. Postgres refuses to run as root: for root it runs as user
 * `postgres`, who must be able to reach the folder.
 */
#ifndef THOLE_SERVERS_H
#define THOLE_SERVERS_H
#include "thole/types.h"
#include <sys/types.h>

enum {
    SERVER_PATH_BYTES =
        80, /* a folder's path with its NUL; the path of a socket inside must stay below 108 */
    SERVER_PASSWORD_BYTES = 33,
    SERVER_WAIT_MS = 30000, /* how long a server may take to become ready, or to stop */
    SERVER_CLUSTER_MAX = 5,
};

enum server_kind { SERVER_NONE, SERVER_NATS, SERVER_POSTGRES };

/* Plain data. Zeroed: nothing started; server_stop() and server_kill9() then do nothing. */
struct server {
    enum server_kind kind;
    pid_t pid; /* 0 while it does not run */
    uint16_t port;
    char dir[SERVER_PATH_BYTES];
    char program[1024];
    char url[128];                        /* nats://[thole:PASSWORD@]127.0.0.1:PORT, or
                                             postgres://thole:PASSWORD@127.0.0.1:PORT/postgres */
    char password[SERVER_PASSWORD_BYTES]; /* of user thole; NATS: empty where none is asked for */
    bool no_fsync;
};

struct nats_server_options {
    const char
        *dir;      /* exists; configuration, log and JetStream store go there; what is stored there is kept */
    uint16_t port; /* 0: a free one */
    bool sync_always;         /* every write is synced before it is acknowledged */
    size_t max_payload_bytes; /* 0: the server's default, 1 MiB */
    const char *password; /* of user thole, [A-Za-z0-9]{1,32}; NULL: none is asked for. Not in a cluster */
    const char *config;   /* more lines of configuration, for example "http: 127.0.0.1:8222\n"; or NULL */
};

struct postgres_server_options {
    const char *dir; /* exists; the cluster is made in it unless it has one */
    uint16_t port;   /* 0: a free one */
    const char
        *password; /* of superuser thole, [A-Za-z0-9]{1,32}; NULL: "thole". Counts when the cluster is made */
    bool no_fsync; /* for tests that do not cut the power: several times faster */
    const char *config; /* lines that are added to postgresql.conf when the cluster is made; or NULL */
};

/*
 * Starts and waits until it serves. The options are borrowed for the call.
 * Returns THOLE_OK; THOLE_NOT_FOUND (program not installed, or too old); THOLE_INVALID (folder);
 * THOLE_UNAVAILABLE (did not become ready; the error holds the last line of its log). On failure nothing
 * runs.
 */
THOLE_NODISCARD thole_status server_nats_start(const struct nats_server_options *options, struct server *ret,
                                               thole_error *reterr);
THOLE_NODISCARD thole_status server_postgres_start(const struct postgres_server_options *options,
                                                   struct server *ret, thole_error *reterr);
/* Three (at most SERVER_CLUSTER_MAX) servers in dir/n1, dir/n2, …; ready means that a
 * stream with a replica on each can be made.
 */
THOLE_NODISCARD thole_status server_nats_cluster_start(const struct nats_server_options *options,
                                                       size_t count, struct server *ret, thole_error *reterr);

/* Starts all members again, killing those that run; ready as above. Data stays. */
THOLE_NODISCARD thole_status server_nats_cluster_restart(struct server *servers, size_t count,
                                                         thole_error *reterr);

/* SIGKILL to the server and all its processes; returns when they are gone. Data stays. */
void server_kill9(struct server *server);
/* Starts a server that was killed or stopped: same port, same folder, same options. Waits until it serves. */
THOLE_NODISCARD thole_status server_restart(struct server *server, thole_error *reterr);
/* Like server_restart() without waiting, for members of a cluster that has lost its majority; then
 * server_wait_ready(). */
THOLE_NODISCARD thole_status server_relaunch(struct server *server, thole_error *reterr);
/* NATS: answers a JetStream request. Postgres: asks for a password. At most SERVER_WAIT_MS. */
THOLE_NODISCARD thole_status server_wait_ready(struct server *server, thole_error *reterr);
/* SIGTERM, for Postgres a fast shutdown; waits; SIGKILL if that takes too long. Data stays. */
void server_stop(struct server *server);
/* SIGSTOP and SIGCONT: a server that exists and does not answer. */
void server_pause(const struct server *server);
void server_resume(const struct server *server);

/* Writes the path of a usable program, or of the folder of initdb and postgres. THOLE_OK or THOLE_NOT_FOUND.
 */
THOLE_NODISCARD thole_status server_find_nats(char *ret_path, size_t cap, thole_error *reterr);
THOLE_NODISCARD thole_status server_find_postgres(char *ret_path, size_t cap, thole_error *reterr);

/* A new folder PREFIX.XXXXXX below $TMPDIR, or /tmp. THOLE_OK, THOLE_INVALID (path too long),
 * THOLE_UNAVAILABLE. */
THOLE_NODISCARD thole_status server_dir_create(const char *prefix, char ret_dir[SERVER_PATH_BYTES],
                                               thole_error *reterr);
/* Writes a file that only its owner can read, in one step: what was there, a link too, is replaced and never
 * followed. */
THOLE_NODISCARD thole_status server_write_private(const char *path, const char *text, thole_error *reterr);
/* Removes the folder and all in it; follows no links. NULL and "" are allowed. */
void server_dir_remove(const char *dir);

/* A TCP port of 127.0.0.1 that nothing listens on, outside the range of outgoing connections: 20000..29999.
 */
uint16_t server_free_port(void);
bool server_port_is_open(uint16_t port);

#endif
