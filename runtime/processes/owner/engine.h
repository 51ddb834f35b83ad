/*
 * Inside of the engine role: the process that serves.
 *
 *   engine_host.c       start and stop
 *   engine_clock.c      whether the machine's clock may be believed
 *   engine_state.c      tells who asks how it is
 *   engine_lines.c      the lines of the log that others can cause at any rate
 *   membership.c        heartbeats, views of the other nodes, who owns which partition
 *   shard.c             one thread with its partitions
 *   shard_counts.c      what a shard counts
 *   shard_mail.c        what other threads send to it
 *   shard_out.c         what each output of a partition's machine becomes
 *   shard_request.c     the life of a request
 *   request_table.c     its executor, its retries, who takes its answer
 *   request_flow.c      how many of which kind are under way
 *   store.c             executor: one thread with one Postgres connection
 *   loader.c            executors: threads that block on streams, some for loads and others for cleaning
 *   remover.c           executor: one thread that removes histories
 *
 * Requests, by what they are about; each file makes them, carries them out and takes their answers:
 *
 *   log_requests.c      the partition's log
 *   history_walk.c      an instance's history, from its newest record back
 *   history_requests.c  histories over consumers; which instances there are
 *   store_requests.c    rows
 *   work_requests.c     work for the workers
 *   message_requests.c  messages to other instances, and notices
 *   emit_requests.c     CloudEvents of instances
 *   reject_requests.c   messages that cannot be taken
 *   shard_code.c        crashes of code; and the log lines of code
 *   sweeper.c           work messages that were lost: queued again
 *   shelf.c             activities that no worker knows: queued when one does
 *
 * No requests: inbox_reader.c reads the messages to a partition; shard_query.c and query_reply.c answer
 * queries, source_lines.c those for a line of the source; deadlines.c
 * ends tries that are past their deadline; crash_trial.c runs code in a forked copy; watchdog.c notices turns
 * that do not end; served_job.c asks the workers what they know; drift_job.c compares rows with histories;
 * queue_maker.c makes the consumers of queues; audit_job.c publishes checkpoints of the logs; lookout.c looks
 * whether streams and consumers are as they must be; partition_states.c tells others how the partitions are.
 */
#ifndef THOLE_ENGINE_H
#define THOLE_ENGINE_H
#include "engine_host.h"
#include "engine_lines.h"
#include "nats_watch.h"
#include "partition_states.h"
#include "payload_hash.h"
#include "shard.h"
#include "topology.h"

enum {
    INBOX_BACKLOG_MAX = 20000, /* messages, and results, of one shard between NATS's threads and its own */
    INBOX_BACKLOG_BYTES_MAX = 64 * 1024 * 1024, /* their memory, beside the message that exceeds it */
    INBOX_PARTITION_MAX = 2000, /* of one partition: what waits there for a while does not stop the others */
    INBOX_PARTITION_BYTES_MAX = 8 * 1024 * 1024,
    RETRY_MS_MAX = 5000,
    RECORD_HEADROOM = 4096, /* of a message around its record */
};

struct audit_job;
struct drift_job;
struct engine_clock;
struct loader;
struct lookout;
struct membership;
struct queue_maker;
struct remover;
struct served_job;
struct source_lines;
struct watchdog;

struct engine_host {
    struct host_options options;
    const thole_program *program;
    struct crash_page *own_page; /* where it was given none */
    struct connection *connection;
    struct connection *services; /* receives requests of others: a flood of them ends no other connection */
    uint64_t services_lost;      /* written by its thread: the epoch of the other one when it was lost */
    struct nats_watch nats;      /* of all its connections */
    struct topology topology;
    struct namespace_check *check; /* while it starts */
    struct salt_key salt_key;      /* of this process alone, random, and never stored */
    struct engine_clock *clock;
    struct loader *loader, *cleaner;
    struct remover *remover;
    struct membership *membership;
    struct source_lines *source_lines;
    struct watchdog *watchdog;  /* of the code that the shards run */
    struct drift_job *drift;    /* NULL: --drift is 0 */
    struct lookout *lookout;    /* looks whether streams are as they must be */
    struct served_job *served;  /* asks the workers what they know */
    struct queue_maker *queues; /* makes the consumers that workers ask for */
    struct audit_job *audit;    /* NULL: there is no --audit-key */
    /* sequence of the last record of each partition that is known to be committed; written by shards */
    atomic_uint_least64_t *committed;
    struct subscription *epochs; /* openings of our partitions by others */
    struct subscription *asks;   /* how it is */
    struct shard *shards;
    size_t shards_len;
    struct partition_states *states; /* states of its partitions, as others are told */
    atomic_bool ready;               /* shards may be sent to */
    atomic_bool joined;              /* takes part in the choice of owners; written by membership */
    atomic_bool lists;               /* results may come several in one message; written by membership */
    atomic_bool ranges;     /* every engine reads the ranges of a record's inbox position; likewise */
    atomic_bool references; /* every engine reads references to payloads; likewise */
    atomic_bool folds;      /* every engine reads lists of dispensable records; likewise */
    /* messages of histories that were not published to them: since the last look, the newest one's partition
     */
    atomic_uint_least64_t intruded;
    atomic_uint_least32_t intruded_p;
    struct log_limits *lines; /* NULL before the threads are started; see engine_lines.h */
    /* names that each partition's live instances need; written by shards, read by membership */
    pthread_mutex_t needs_lock;
    struct needs {
        thole_slice *names; /* one allocation */
        size_t names_len;
    } * needs; /* by partition */
};
#endif
