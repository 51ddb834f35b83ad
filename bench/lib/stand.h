/*
 * The measured system: private servers on loopback, engines and a worker as processes of their own. All end
 * with the process that started them, also when it is killed; a helper process then removes their folder.
 */
#ifndef THOLE_BENCH_STAND_H
#define THOLE_BENCH_STAND_H
#include "bench.h"
#include "servers.h"
#include "thole/client.h"
#include <libpq-fe.h>

enum { STAND_ENGINES_MAX = 8, STAND_ARGUMENTS_MAX = 8 };

enum bench_role { /* whose work it is */
                  ROLE_CLIENT,
                  ROLE_ENGINE,
                  ROLE_WORKER,
                  ROLE_NATS,
                  ROLE_PG_ENGINE, /* the backends of the engine's connections: the projection */
                  ROLE_PG_WORKER, /* of the workers': claims, renewals, completions */
                  ROLE_PG_REST,   /* checkpointer, WAL writer, autovacuum, … */
                  ROLES,
};
extern const char *const bench_role_names[ROLES];

struct stand_options {
    bool sync_always;      /* nats-server syncs each write before it acknowledges it */
    bool statements;       /* Postgres counts statements, where pg_stat_statements is installed */
    unsigned profile_port; /* nats-server serves its profile there; 0: not at all */
};

struct stand {
    char dir[SERVER_PATH_BYTES];
    struct server nats, postgres;
    uint16_t monitor_port;
    PGconn *pg;
    bool missing;        /* a server is not installed */
    bool has_statements; /* pg_stat_statements is installed */
    bool counted;        /* system calls, allocations and statements are counted, which costs time itself */
    pid_t client, engines[STAND_ENGINES_MAX]; /* 0: not running, as the next two */
    pid_t worker;                             /* or a gateway */
    pid_t remote;                             /* the gateway's worker; its cost counts as the client's */
    pid_t guard;                              /* removes the folder if this process is killed */
    int guard_pipe;
};

/* From the main thread. False with a message; what was started is then stopped by stand_close(). Sets
 * THOLE_NATS_URL and THOLE_POSTGRES. */
bool stand_open(struct stand *ret, const struct stand_options *options);
/* Stops all processes and servers; their folder is removed. */
void stand_close(struct stand *stand);

/* This program in the role engine or worker, with more arguments (NULL-terminated). */
bool stand_start_engine(struct stand *stand, size_t index, const char *const *arguments);
bool stand_start_worker(struct stand *stand, unsigned slots);
/* A gateway in the worker's place, and this program with the role "remote" and the slots as its argument. */
bool stand_start_gateway(struct stand *stand, unsigned slots);
void stand_stop_worker(struct stand *stand);
void stand_stop_programs(struct stand *stand);
void stand_stop(pid_t *pid);
/* SIGKILL to the process and its children. */
void stand_kill9(pid_t *pid);
/* Sets the environment of a process that is started next, where allocations are counted. */
bool stand_arm(const struct stand *stand, enum bench_role role);
void stand_disarm(void);

/* Waits until the engine has set up the namespace. */
bool stand_client(thole_client **ret);

/* One statement's result, or NULL with a message. */
PGresult *stand_ask(struct stand *stand, const char *statement);
/* The first cell of the answer as a number. */
bool stand_ask_number(struct stand *stand, const char *statement, uint64_t *ret);
#endif
