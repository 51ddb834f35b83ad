/*
 * What goes into a partition and what comes out of it: the options, the answers and messages that the host
 * gives, the outputs that it takes. The types alone; what is done with them: partition.h.
 */
#ifndef THOLE_PARTITION_IO_H
#define THOLE_PARTITION_IO_H
#include "batch.h"
#include "instance.h"
#include "message.h"
#include "thole/program.h"

/* Code of an orchestration that is about to run, for whoever watches it. Slices are borrowed for the call. */
enum code_kind { CODE_TURN = 1, CODE_REPLAY = 2, CODE_QUERY = 3 };
struct code_run {
    enum code_kind kind;
    uint32_t partition, version;
    uint64_t execution, event; /* TURN, REPLAY: the first event of the turn; QUERY: the last there is */
    thole_slice instance, orchestration;
    thole_orchestration_fn *code;
};
/* All on the machine's thread. */
struct code_watch {
    /* Around each run of code. */
    void (*begins)(void *arg, const struct code_run *run);
    void (*ended)(void *arg);
    /* Calls @p body where a crash harms nobody, in a copy of this process, and throws away what it did.
     * THOLE_OK: it returned; THOLE_APP: it did not, the text says why; THOLE_NOMEM: it could not be called.
     */
    thole_status (*attempt)(void *arg, const struct code_run *run, void (*body)(void *body_arg),
                            void *body_arg, thole_error *reterr);
    void *arg;
};

struct partition_options {
    uint32_t partition;
    thole_slice node;                                /* written into EpochOpened */
    const thole_orchestration_entry *orchestrations; /* borrowed for the machine's life */
    size_t orchestrations_len;
    struct stack_pool *stacks;      /* borrowed for the machine's life; of the thread that runs it */
    const struct code_watch *watch; /* borrowed likewise; NULL: nobody watches */
    size_t payload_max;
    size_t instance_memory_max;
    size_t record_max;         /* bytes of one record: the server's max_payload less room for headers; at
                                  least partition_record_min() */
    size_t parked_max;         /* live instances kept in memory */
    uint64_t crash_limit;      /* an instance that has crashed so often is run no more; at least 1 */
    size_t window_max;         /* appends in flight, at most PARTITION_WINDOW_MAX */
    uint64_t idle_ms;          /* an unsaved inbox position is written after so long without a turn */
    uint64_t timer_horizon_ms; /* timers due within this are in memory */
    uint64_t early_event_ms;   /* how long an event waits for its instance to start */
    uint64_t quarantine_ms;    /* see struct instance_options */
    size_t ahead_max;          /* inbox messages taken in beyond the first one that is not, at most
                                  PARTITION_AHEAD_MAX: each record lists them */
    size_t log_chunk;          /* records of the log that are read at a time */
};
enum { PARTITION_WINDOW_MAX = 512, PARTITION_AHEAD_MAX = 4096 };

/* A record as the host read it from the stream. */
struct log_record {
    uint64_t sequence;
    thole_slice bytes;
    uint64_t execution; /* HISTORY: of its subject, which tells whose a damaged one is */
};

/* Why an inbox message cannot be taken. For ever, as their names are: reject_code_name(). */
enum reject_code {
    REJECT_NONE,
    REJECT_SUBJECT,     /* its last token is not the encoding of an id */
    REJECT_PARTITION,   /* the id's partition is another one */
    REJECT_MALFORMED,   /* the body is no message, or a field is not what it must be */
    REJECT_UNSUPPORTED, /* of a newer format, or of an unknown kind */
    REJECT_INSTANCE,    /* the subject and the body name different instances */
    REJECT_REQUEST_ID,  /* not what a client's may be */
    REJECT_TOO_LARGE,   /* over the namespace's payload_max, or more than a record can hold */
    REJECT_TOO_MANY,    /* too many events wait for an instance that does not exist */
    REJECT_UNREADABLE,  /* a decision on a quarantine, or a prune, and the history cannot be read */
};
enum { REJECTED_PAYLOAD_MAX = 1024 };                /* bytes of the message that are kept */
const char *reject_code_name(enum reject_code code); /* "subject", "too_large", … */

enum partition_in_kind {
    PARTITION_IN_OPEN,      /* own it: open it */
    PARTITION_IN_CLOSE,     /* hand it over: finish what is in flight, then CLOSED */
    PARTITION_IN_STEP_DOWN, /* something failed: text; fenced: a newer owner is known to exist. Appends in
                           flight must still be answered: CLOSED comes after the last answer */
    PARTITION_IN_RIVAL, /* sequence: somebody opens, or tries to open, the partition under this epoch. An idle
                           owner would meet no record of its rival's. Ignored unless it is newer */
    PARTITION_IN_TAIL,  /* answer to READ_TAIL */
    PARTITION_IN_DELETED,       /* answer to DELETE_RECORDS: all are gone */
    PARTITION_IN_APPENDED,      /* record n is stored at sequence */
    PARTITION_IN_APPEND_FAILED, /* n: refused, timed out, connection lost: the epoch ends before n. The
                                   answers to smaller n must still be given */
    PARTITION_IN_STORE_OPENED,  /* epoch, projected */
    PARTITION_IN_STORE_RESET,   /* done */
    PARTITION_IN_LOG,           /* answer to READ_LOG: records; all from..to that exist */
    PARTITION_IN_RESULTS,       /* answer to READ_RESULTS: results */
    PARTITION_IN_LIVE,          /* answer to READ_LIVE */
    PARTITION_IN_TIMERS,        /* answer to READ_TIMERS */
    PARTITION_IN_APPLIED,       /* the batch is committed; removed */
    PARTITION_IN_PUBLISHED,     /* token: stored or already there; sequence in WORK (0 = unknown) */
    PARTITION_IN_MESSAGE,       /* an inbox message, in order */
    PARTITION_IN_INBOX_BACK, /* answer to READ_INBOX, before any message: the inbox does not hold what it says
                              */
    PARTITION_IN_HISTORY,    /* answer to LOAD: records; may be none */
    PARTITION_IN_SENT,       /* answer to SEND: token: stored */
    PARTITION_IN_REMOVED,    /* answer to REMOVE_HISTORY: sequence */
    PARTITION_IN_REJECTED,   /* answer to REJECTED: sequence */
    PARTITION_IN_CRASHES,    /* answer to READ_CRASHES: crashes */
    PARTITION_IN_QUERY,      /* token, instance, query, bytes = input; answered by QUERY_ANSWER, unless CLOSED
                                comes   before it */
};

struct partition_crash {
    thole_slice instance, text;
    uint64_t count;     /* with the code that is registered here; 0: it is tried alone */
    uint64_t execution; /* that crashed last; 0: not known */
};

/* The result of an activity's try, as it stands in the inbox. */
struct partition_result {
    thole_slice instance;
    uint64_t execution, activity_id;
    uint32_t try_number; /* from 1 */
    uint64_t sequence;   /* 0: of an inbox that went back, which no position speaks of */
};

struct partition_in {
    enum partition_in_kind kind;
    uint64_t generation; /* of the output that this answers; ignored for OPEN, CLOSE, RIVAL and QUERY */
    uint64_t n;          /* APPENDED, APPEND_FAILED */
    uint64_t sequence;   /* APPENDED, PUBLISHED, REMOVED; MESSAGE, REJECTED: inbox sequence */
    uint64_t token;      /* PUBLISHED, HISTORY, SENT, QUERY */
    uint64_t stored_ns;  /* MESSAGE: when the stream stored it */
    const char *text;    /* STEP_DOWN */
    bool fenced;         /* STEP_DOWN */
    struct projected projected; /* STORE_OPENED */
    uint64_t epoch;             /* STORE_OPENED: that the database has now; a newer one than asked fences */
    /* TAIL: epoch_sequence = last EpochOpened (0 = none), last_sequence = of the stream;
     * records: as READ_TAIL asked. LOG and HISTORY: records. */
    uint64_t epoch_sequence, last_sequence;
    const struct log_record *records;
    size_t records_len;
    /* MESSAGE: the instance that the subject names, and the body; or refused: why that subject is none of
     * this partition's, and subject. HISTORY: the instance that LOAD named */
    thole_slice instance, bytes, query, subject;
    enum reject_code refused;
    /* LIVE: instances that are Waiting, Stuck or ContinuedAsNew (those of execution 0 left out); names of
     * live orchestrations ("name", "name@version" beyond version 1) with their counts */
    const struct batch_instance *blocked;
    size_t blocked_len;
    const thole_slice *live_names;
    const uint64_t *live_counts;
    size_t live_names_len;
    uint64_t live_activities; /* scheduled and not resolved: rows in worker_queue */
    /* APPLIED: the batch's, with held. Without them the messages of all are withdrawn */
    const struct batch_activity *removed;
    size_t removed_len;
    /* RESULTS */
    const struct partition_result *results;
    size_t results_len;
    /* TIMERS: due before what was asked; next_due_ms: of the first one after them, 0 = none */
    const struct batch_timer *timers;
    size_t timers_len;
    uint64_t next_due_ms;
    const struct partition_crash *crashes; /* CRASHES */
    size_t crashes_len;
};
enum partition_out_kind {
    PARTITION_OUT_CLOSED, /* text: why; reopen: an accident, OPEN again if it is still yours;
                             epoch (0: none was opened) and count: its records 1..count are committed */
    PARTITION_OUT_OPENED, /* open and serving: epoch */
    /* The log. Answers TAIL, DELETED, APPENDED or APPEND_FAILED. */
    PARTITION_OUT_READ_TAIL,      /* last EpochOpened o (its own record too), last sequence L, and records
                                     max(o, L - count + 1)..L; count 0 = from o on */
    PARTITION_OUT_DELETE_RECORDS, /* sequences: void records, if expected_last is still the stream's last
                                     sequence before the first of them goes; else STEP_DOWN */
    PARTITION_OUT_APPEND,   /* bytes at expected_last; subject by record kind: see struct; answered for each n
                             */
    PARTITION_OUT_READ_LOG, /* records from..to (inclusive) */
    PARTITION_OUT_READ_RESULTS, /* the results of activities that the inbox has from `from` on, or in all when
                                   it does not hold `sequence` as stored at stored_ns (see READ_INBOX): at
                                   least those of its last count messages. Answer RESULTS, with sequence 0
                                   in that case */
    PARTITION_OUT_LOAD,         /* history of instance; answer HISTORY with token. execution 0: at least all
                                   records, in order, of the execution of its last record and of the one before it
                                   (a crash may have cut the first turn of the newer one short); a DELETED is one
                                   of the execution that it names, and of execution 0 there are all since then.
                                   Else: of that execution */
    PARTITION_OUT_REMOVE_HISTORY, /* remove the instance's records below sequence, where its DELETED is; retry
                                     until none is left, then REMOVED with sequence. Never what is above it */
    /* The store. Answers STORE_OPENED, STORE_RESET, LIVE, TIMERS, APPLIED; STEP_DOWN with fenced when fenced.
     * All are done over the connection over which STORE_OPEN was, or not at all. */
    PARTITION_OUT_STORE_OPEN, /* epoch */
    PARTITION_OUT_STORE_RESET,
    PARTITION_OUT_READ_LIVE,
    PARTITION_OUT_READ_TIMERS, /* due before before_ms */
    PARTITION_OUT_APPLY,       /* batch: given away, free with batch_destroy() */
    /* After the rows are committed. */
    PARTITION_OUT_PUBLISH_WORK, /* activity: retry until stored; again: unless it is there. Answer PUBLISHED
                                   with token. Its slices stay valid until then, or until CLOSED */
    PARTITION_OUT_PUSH_CANCEL,  /* at most once, no answer */
    PARTITION_OUT_SEND,     /* bytes to the inbox of instance (any partition): retry until stored; answer SENT
                               with token. bytes stay valid until then, or until CLOSED. What is meant for one
                               instance comes in order: the next one after the answer */
    PARTITION_OUT_WITHDRAW, /* delete message `sequence` from WORK if it is still there; no answer */
    /* After the record is committed; at most once, no answer. */
    PARTITION_OUT_EVENT, /* live notice: event_kind (see streams/notice.h), orchestration, instance,
                            execution, request_id, data */
    /* The inbox. */
    PARTITION_OUT_READ_INBOX,  /* deliver MESSAGE for every message from `from` on, in order, without end, if
                                  the stream holds `sequence` as stored at stored_ns (0: whenever; sequence 0:
                                  nothing to look for), or has removed it since and goes on behind it; else
                                  INBOX_BACK. To be found out after the place to read from is taken, before
                                  the first MESSAGE. When the stream may have gone back later: STEP_DOWN */
    PARTITION_OUT_PURGE_INBOX, /* remove messages below `from`, if the stream holds `sequence` in the same
                                  way, else STEP_DOWN; no answer */
    PARTITION_OUT_REJECTED,    /* an inbox message that cannot be taken, to be kept where people look: reject,
                                  text, sequence, stored_ns, instance or (empty) subject, bytes = as much of the
                                  message as is kept, count = its bytes. Retry until stored, or until it is
                                  certain that it cannot be; then REJECTED with sequence. Until then it does
                                  not count as incorporated. Twice after a crash: known by sequence and
                                  stored_ns */
    PARTITION_OUT_LOG,         /* a line of an orchestration: level, instance, execution, data; no answer */
    /* Crashes of instances' code, kept outside so that the next owner knows. No answers but CRASHES. */
    PARTITION_OUT_READ_CRASHES, /* of all instances of the partition */
    PARTITION_OUT_CRASHED, /* instance has crashed count times, last in execution; orchestration, version;
                              data: how */
    PARTITION_OUT_CRASHES_OVER, /* the end of instance is committed: forget its crashes */
    PARTITION_OUT_QUERY_ANSWER, /* token, status, data = output or error text; no answer */
};

struct partition_out {
    enum partition_out_kind kind;
    uint64_t generation;
    const char *text;
    bool reopen;
    uint64_t epoch;
    uint64_t from, to, before_ms, count;
    uint64_t token, sequence, stored_ns;
    const uint64_t *sequences; /* DELETE_RECORDS; PUSH_CANCEL: activity ids */
    size_t sequences_len;
    /* APPEND. bytes stay valid until its answer. expected_last: DELETE_RECORDS, too */
    enum record_kind record_kind; /* EPOCH_OPENED: ctl.<p>.epoch; POSITION: ctl.<p>.position; TURN, DELETED:
                                     hist… */
    uint64_t n, expected_last;
    thole_slice bytes;
    /* APPEND of a turn or DELETED, LOAD, REMOVE_HISTORY, PUBLISH_WORK, PUSH_CANCEL, EVENT */
    thole_slice instance;
    uint64_t execution, activity_id;
    struct executions executions; /* REMOVE_HISTORY: whose records */
    uint32_t try_number;          /* PUBLISH_WORK; PUSH_CANCEL: 0 = any try */
    bool again;                   /* PUBLISH_WORK: an earlier owner may have done it */
    uint32_t level;               /* LOG: a thole_log_level */
    uint32_t version;             /* CRASHED */
    thole_status status;          /* QUERY_ANSWER */
    enum reject_code reject;
    thole_slice subject; /* REJECTED */
    thole_slice queue, activity, orchestration, request_id;
    thole_slice data;       /* PUBLISH_WORK: input; EVENT: payload; PUSH_CANCEL: reason */
    const char *event_kind; /* EVENT: started, completed, …; PUSH_CANCEL: thole_cancel_kind_name() */
    struct batch *batch;    /* APPLY */
};
#endif
