/*
 * Inside of the engine role: the process that serves.
 *
 *   engine_host.c       start and stop
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
 *   loader.c            executor: a few threads for reads of streams that block
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
 *
 * No requests: inbox_reader.c reads the messages to a partition; shard_query.c and query_reply.c answer
 * queries, source_lines.c those for a line of the source; deadlines.c
 * ends tries that are past their deadline; crash_trial.c runs code in a forked copy; watchdog.c notices turns
 * that do not end; drift_job.c compares rows with histories; audit_job.c publishes checkpoints of the logs.
 */
#ifndef THOLE_ENGINE_H
#define THOLE_ENGINE_H
#include "engine_host.h"
#include "engine_lines.h"
#include "nats_watch.h"
#include "payload_hash.h"
#include "shard.h"
#include "topology.h"

enum {
    INBOX_BACKLOG_MAX = 20000, /* messages, and results, of one shard between NATS's threads and its own */
    INBOX_BACKLOG_BYTES_MAX = 64 * 1024 * 1024, /* their memory, beside the message that exceeds it */
    RETRY_MS_MAX = 5000,
    RECORD_HEADROOM = 4096, /* of a message around its record */
};

struct audit_job;
struct drift_job;
struct loader;
struct membership;
struct source_lines;
struct watchdog;

struct engine_host {
    struct host_options options;
    const thole_program *program;
    struct crash_page *own_page; /* where it was given none */
    struct connection *connection;
    struct nats_watch nats; /* of all its connections */
    struct topology topology;
    struct salt_key salt_key; /* of this process alone, random, and never stored */
    struct loader *loader;
    struct membership *membership;
    struct source_lines *source_lines;
    struct watchdog *watchdog; /* of the code that the shards run */
    struct drift_job *drift;   /* NULL: --drift is 0 */
    struct audit_job *audit;   /* NULL: there is no --audit-key */
    /* sequence of the last record of each partition that is known to be committed; written by shards */
    atomic_uint_least64_t *committed;
    struct subscription *epochs; /* who else opens our partitions */
    struct shard *shards;
    size_t shards_len;
    atomic_bool ready;        /* shards may be sent to */
    atomic_bool lists;        /* results may come several in one message; written by membership */
    struct log_limits *lines; /* NULL before the threads are started; see engine_lines.h */
    /* names that each partition's live instances need; written by shards, read by membership */
    pthread_mutex_t needs_lock;
    struct needs {
        thole_slice *names; /* one allocation */
        size_t names_len;
    } * needs; /* by partition */
};
#endif
