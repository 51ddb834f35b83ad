/*
 * What one activity, or one start, costs: CPU time by process and thread, with the counts that explain it.
 * Counters are read twice, before and after a fixed number of workflows; nothing here samples. See
 * docs/benchmarks.md.
 */
#ifndef THOLE_LEDGER_H
#define THOLE_LEDGER_H
#include "servers.h"
#include <libpq-fe.h>
#include <stdio.h>

enum ledger_role { /* whose work it is */
                   ROLE_CLIENT,
                   ROLE_ENGINE,
                   ROLE_WORKER,
                   ROLE_NATS,
                   ROLE_PG_ENGINE, /* the backends of the engine's connections: the projection */
                   ROLE_PG_WORKER, /* of the workers': claims, renewals, completions */
                   ROLE_PG_REST,   /* checkpointer, WAL writer, autovacuum, … */
                   ROLES,
};
enum { THREADS_MAX = 512, TABLES_MAX = 24, STATEMENTS_MAX = 16, ROLE_NAME_BYTES = 24 };

extern const char *const ledger_role_names[ROLES];

struct process_cost {
    uint64_t cpu_ns, system_ns;  /* system_ns: in steps of 10 ms */
    uint64_t waits, preemptions; /* voluntary and other context switches */
    uint64_t syscalls;           /* counted runs only */
    uint64_t allocations, bytes; /* counted runs only: calls of malloc, calloc, realloc; bytes asked for */
    uint64_t nats_out, nats_in;  /* messages that its connections sent to NATS, and got from it */
};

struct thread_cost { /* of the threads of one name in one process */
    enum ledger_role role;
    char name[ROLE_NAME_BYTES];
    unsigned count;
    uint64_t cpu_ns, waits;
};

struct nats_counts {
    uint64_t in_messages, in_bytes, out_messages, out_bytes;
    uint64_t api_requests; /* of the JetStream API, answered in JSON */
    uint64_t subscribed, unsubscribed;
};

struct table_counts {
    char name[64];
    uint64_t inserted, updated, updated_hot, deleted, scanned;
};

struct postgres_counts {
    uint64_t writing; /* transactions that wrote, by their ids */
    uint64_t wal_bytes;
    uint64_t committed; /* all transactions; like tables, known some seconds later */
    struct table_counts tables[TABLES_MAX];
    size_t tables_len;
};

struct statement_counts {
    char text[88];
    uint64_t calls, rows;
    double execution_us;
};

/* All counters at one moment, or the difference of two. */
struct sample {
    struct process_cost roles[ROLES];
    struct thread_cost threads[THREADS_MAX];
    size_t threads_len;
    struct nats_counts nats;
    struct postgres_counts postgres;
};

/* What is measured. */
struct stand {
    char dir[SERVER_PATH_BYTES];
    struct server nats, postgres;
    uint16_t monitor_port;
    PGconn *pg;
    bool has_statements; /* pg_stat_statements is there */
    bool counted;        /* system calls, allocations and statements are counted, which costs time itself */
    pid_t client, engine, worker;
};

/* A load: so many workflows of a kind, so many of them in flight. */
struct scenario {
    const char *kind; /* the orchestration: "chain" or "start" */
    unsigned in_flight;
    unsigned warm_up, workflows;
    unsigned units; /* of each workflow: 5 activities, or 1 start */
};

struct measurement {
    struct scenario scenario;
    double load; /* of the machine, before; 1 minute */
    uint64_t wall_us, p50_us, p99_us;
    struct sample cost; /* what the counters went up by */
    struct statement_counts statements[STATEMENTS_MAX];
    size_t statements_len;
    bool has_tables, has_syscalls;
};

static inline double units(const struct measurement *m)
{
    return (double)m->scenario.workflows * m->scenario.units;
}

static inline double per(uint64_t n, const struct measurement *m) /* unit */
{
    return (double)n / units(m);
}

/* ---- ledger_gate.c ---- */
enum { LEDGER_OVER_LIMIT = 3 };
/* The program's exit code: 0, or LEDGER_OVER_LIMIT with a line to @p out for each limit that is passed. */
int ledger_gate(const struct measurement *chain, FILE *out);

/* ---- ledger_report.c ---- */
/* @p counted (NULL: none): the same scenario with everything counted, from which come system calls,
 * allocations and statements. */
void ledger_report_text(const struct measurement *plain, const struct measurement *counted);
bool ledger_report_json(const char *path, const struct measurement *plain, const struct measurement *counted,
                        size_t len);

/* ---- ledger_processes.c ---- */
/* Which process and which backend is whose; what they cost so far. False with a message: it cannot be told.
 */
bool processes_read(struct stand *stand, struct sample *ret);
/* System calls of all threads there are, from now on. False: the system does not count them (perf events). */
bool syscalls_begin(struct stand *stand);
void syscalls_end(uint64_t ret[ROLES]);
/* Where a process counts its allocations: NAME in the stand's folder, made and empty. */
bool allocations_open(const struct stand *stand, enum ledger_role role, char ret_path[128]);
void allocations_read(struct sample *ret);

/* ---- ledger_servers.c ---- */
bool nats_read(const struct stand *stand, struct sample *ret);
bool postgres_read(struct stand *stand, struct sample *ret);
/* The counts of tables and commits, which backends pass on some seconds after they became idle. */
bool postgres_read_tables(struct stand *stand, struct sample *ret);
bool postgres_backends(struct stand *stand, enum ledger_role *roles, pid_t *pids, size_t cap,
                       size_t *ret_len);
bool statements_begin(struct stand *stand);
bool statements_read(struct stand *stand, struct statement_counts *ret, size_t *ret_len);

/* ---- ledger_program.c ---- */
/* The program under test: roles engine and worker. */
int ledger_serve(int argc, char **argv);
/* The load, in a process of its own. */
int ledger_load(int argc, char **argv);

#endif
