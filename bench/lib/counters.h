/*
 * Counters of the processes and the two servers: CPU time, context switches, messages, transactions. They are
 * read before and after a load; nothing here samples.
 */
#ifndef THOLE_BENCH_COUNTERS_H
#define THOLE_BENCH_COUNTERS_H
#include "stand.h"

enum { THREADS_MAX = 512, TABLES_MAX = 24, STATEMENTS_MAX = 16, ROLE_NAME_BYTES = 24 };

struct process_cost {
    uint64_t cpu_ns, system_ns;  /* system_ns: in steps of 10 ms */
    uint64_t waits, preemptions; /* voluntary and other context switches */
    uint64_t syscalls;           /* counted runs only */
    uint64_t allocations, bytes; /* counted runs only: calls of malloc, calloc, realloc; bytes asked for */
    uint64_t nats_out, nats_in;  /* messages that its connections sent to NATS, and got from it */
};

struct thread_cost { /* of the threads of one name in one process */
    enum bench_role role;
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

/* Takes away what @p from has counted. */
void sample_subtract(struct sample *to, const struct sample *from);
/* Of all processes. */
uint64_t sample_cpu_ns(const struct sample *sample);

/* ---- counters_processes.c ---- */
/* Which process and which backend is whose; what they cost so far. False with a message: it cannot be told.
 */
bool processes_read(struct stand *stand, struct sample *ret);
/* System calls of all threads there are, from now on. False: the system does not count them (perf events). */
bool syscalls_begin(struct stand *stand);
void syscalls_end(uint64_t ret[ROLES]);
/* Where a process counts its allocations: NAME in the stand's folder, made and empty. */
bool allocations_open(const struct stand *stand, enum bench_role role, char ret_path[128]);
void allocations_read(struct sample *ret);

/* ---- counters_servers.c ---- */
/* "2.10.27" */
bool nats_version(const struct stand *stand, char *ret, size_t cap);
bool nats_read(const struct stand *stand, struct sample *ret);
bool postgres_read(struct stand *stand, struct sample *ret);
/* The counts of tables and commits, which backends pass on some seconds after they became idle. */
bool postgres_read_tables(struct stand *stand, struct sample *ret);
bool postgres_backends(struct stand *stand, enum bench_role *roles, pid_t *pids, size_t cap, size_t *ret_len);
bool statements_begin(struct stand *stand);
bool statements_read(struct stand *stand, struct statement_counts *ret, size_t *ret_len);

#endif
