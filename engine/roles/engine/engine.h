/*
 * Inside of the engine role: the process that serves.
 *
 *   engine_host.c     start, stop
 *   membership.c      heartbeats, views, who owns what
 *   shard.c           one thread, its partitions      shard_mail.c      mails to it
 *   shard_out.c       outputs of a partition's machine
 *   shard_request.c   the life of a request           request_table.c   which executor, who takes its
 * answer store.c           one thread, one Postgres        loader.c          a few threads for blocking
 * stream reads
 *
 * and the requests, by what they are about; each file makes them, carries them out and takes their answers:
 *
 *   log_requests.c the partition's log history_requests.c an instance's history work_requests.c work for the
 *   workers inbox_reader.c what comes to a partition shard_send.c messages to other instances shard_reject.c
 *   messages that cannot be taken store_requests.c rows shard_code.c crashes of code, and its lines sweeper.c
 *   activities that no worker renews are queued again, or ended by their deadline deadlines.c how the latter
 *   are
 *
 * shard_query.c answers questions to instances; nothing of them is a request.
 */
#ifndef THOLE_ENGINE_H
#define THOLE_ENGINE_H
#include "engine_host.h"
#include "log_limit.h"
#include "shard.h"
#include "topology.h"

enum {
    INBOX_BACKLOG_MAX = 20000, /* messages of one shard between NATS's threads and its own */
    RETRY_MS_MAX = 5000,
    RECORD_HEADROOM = 4096, /* of a message around its record */
};

struct loader;
struct membership;
struct watchdog;

struct engine_host {
    struct host_options options;
    const thole_program *program;
    struct crash_page *own_page; /* where it was given none */
    struct connection *connection;
    struct topology topology;
    struct loader *loader;
    struct membership *membership;
    struct watchdog *watchdog;   /* of the code that the shards run */
    struct subscription *epochs; /* who else opens our partitions */
    struct shard *shards;
    size_t shards_len;
    atomic_bool ready;        /* shards may be sent to */
    struct log_limit rejects; /* lines about them */
    /* names that each partition's live instances need; written by shards, read by membership */
    pthread_mutex_t needs_lock;
    struct needs {
        thole_slice *names; /* one allocation */
        size_t names_len;
    } * needs; /* by partition */
};
#endif
