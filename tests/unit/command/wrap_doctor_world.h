/*
 * NATS, Postgres and the engines, as the doctor sees them: each call answers by what is played. Included by a
 * test, whose program is linked with wrap_doctor_world.c.
 */
#ifndef THOLE_WRAP_DOCTOR_WORLD_H
#define THOLE_WRAP_DOCTOR_WORLD_H
#include "cluster.h"
#include "overview.h"
#include "topology.h"

#define GB UINT64_C(1000000000)
enum { NOW_MS = 1000000, TRIP_MS = 10, TTL_MS = 9000, PARTITIONS_OF_ALL = 12 };

/* An answer that is not as usual. */
enum doctor_failing {
    NOTHING,
    OPEN,
    VERSION,
    JETSTREAM,
    NAMESPACE,
    TOPOLOGY,
    SERVER,
    ACCOUNT,
    CLUSTER,
    LOOK,
    QUEUES,
    STORES,
    CROWD,
    MEND,
    ROLL,
    AUDIT,
    PG_OPEN,
    APPLIED,
    RIGHTS,
    SET_ASIDE,
    SHAPE,
    MIGRATE,
    PG_WRITE,
    PG_NOW
};

struct doctor_play {
    enum doctor_failing fails;
    thole_status with;
    uint64_t nats_ms, postgres_ms; /* their clocks; 0: as this one */
    uint64_t replicas, offline, servers, sync_ms;
    bool clustered, sync_always, no_engine, pooled;
    struct overview_room account, server;
    uint64_t heartbeat_ms;
    bool older; /* the engine does not read what this version writes */
    uint32_t unowned;
    bool told; /* the engine says how it is: */
    enum cluster_state state;
    uint64_t closed_lately, since_ms, engine_ms; /* engine_ms: the engine's clock; 0: as this one */
    const char *why, *told_defect;               /* the latter: "OBJECT TEXT" */
    bool dropped, warns;                         /* a table */
    bool defective, hidden, fix;                 /* a stream is missing; it cannot be seen */
    uint64_t grown, limit;   /* GB that the account has grown by in an hour; its limit; 0: nobody tells */
    bool holds_gone, mended; /* the latter: by an engine */
    bool crowded;            /* the account has hardly room for consumers */
    enum defect_cure cure;
    uint64_t checkpoints, waits_ms; /* of the histories; how long a record has waited for one */
    size_t workers, behind;         /* migrations that are not applied; SIZE_MAX: all */
    bool only_reads;                /* Postgres: nobody may write there */
    bool no_roles;                  /* of deploy/postgres */
    uint64_t set_aside;             /* rows */
    const char *lacking;            /* missing objects; NULL: none */
    /* the world */
    uint64_t now_ms;
    unsigned open;
};
extern struct doctor_play doctor_played;
#endif
