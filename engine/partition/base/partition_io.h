/*
 * The types of a partition's interface: options, inputs (the host's answers and messages), outputs.
 * partition.h has the functions.
 */
#ifndef THOLE_PARTITION_IO_H
#define THOLE_PARTITION_IO_H
#include "batch.h"
#include "emission.h"
#include "instance.h"
#include "message_route.h"
#include "nonce.h"
#include "notices.h"
#include "thole/program.h"

/* Describes orchestration code that is about to run, for a watcher. Slices are borrowed for the call. */
enum code_kind { CODE_TURN = 1, CODE_REPLAY = 2, CODE_QUERY = 3, CODE_DROP = 4 };
struct code_run {
    enum code_kind kind;
    uint32_t partition, version;
    uint64_t execution, event; /* event: the turn's first; QUERY, DROP: the history's last */
    thole_slice instance, orchestration;
    thole_orchestration_fn *code;
};
enum { CODE_SITE_BYTES = 400 };
/* Callbacks; all are called on the machine's thread. */
struct code_watch {
    /* Called before and after each run of code. */
    void (*begins)(void *arg, const struct code_run *run);
    void (*ended)(void *arg);
    /* Calls @p body in a forked copy of this process, whose effects are discarded. THOLE_OK: it returned;
     * THOLE_APP: it crashed, the text says how; THOLE_NOMEM: it could not be called.
     */
    thole_status (*attempt)(void *arg, const struct code_run *run, void (*body)(void *body_arg),
                            void *body_arg, thole_error *reterr);
    /* Says where in the source an address of code is, such as "checkout (checkout.c:42)"; leaves the text
     * empty when that is not known. NULL: it never is. */
    void (*site)(void *arg, const void *address, char to[CODE_SITE_BYTES]);
    void *arg;
};

struct partition_options {
    thole_slice ns; /* borrowed for the machine's life */
    uint32_t partition;
    thole_slice node;                                /* written into EpochOpened */
    const thole_orchestration_entry *orchestrations; /* borrowed for the machine's life */
    size_t orchestrations_len;
    struct stack_pool *stacks;         /* borrowed for the machine's life; of the thread that runs it */
    const struct code_watch *watch;    /* borrowed for the machine's life; NULL: no watcher */
    const struct nonce_key *nonce_key; /* borrowed for the machine's life */
    const struct salt_key *salt_key;   /* likewise; NULL: payloads are written without salts, and cannot be
                                          erased later */
    size_t payload_max;
    size_t instance_memory_max;
    size_t record_max;         /* bytes of one record: the server's max_payload less room for headers; at
                                  least partition_record_min() */
    size_t parked_max;         /* live instances kept in memory */
    size_t parked_memory_max;  /* bytes that they hold */
    size_t early_memory_max;   /* bytes of events for ids that are not started; of at most parked_max ids */
    uint64_t crash_limit;      /* after so many crashes an instance's code is no longer run; at least 1 */
    size_t window_max;         /* appends in flight, at most PARTITION_WINDOW_MAX */
    uint64_t idle_ms;          /* an unsaved inbox position is written after so many ms without a turn */
    uint64_t timer_horizon_ms; /* timers due within this are in memory */
    uint64_t early_event_ms;   /* how long an event waits for its instance's start */
    uint64_t quarantine_ms;    /* see struct instance_options */
    size_t waiting_max;        /* messages held from the inbox that are not incorporated; at least 1: each
                                  record has the ranges of sequences between them */
    size_t ahead_max;          /* how far reading goes beyond the first message that is not incorporated
                                  while records list all sequences, at most PARTITION_AHEAD_MAX */
    size_t log_chunk;          /* records of the log that are read at a time */
    size_t burst_max;   /* turns in a burst of an orchestration that takes most turns while another one has
                         some; then it rests (lanes.h); 0: any number */
    size_t resting_max; /* messages of resting orchestrations, or to be rejected, that are held beside
                                waiting_max */
    uint64_t executions_max; /* executions of one instance that may begin in the span; 0: any number */
    uint64_t executions_span_ms;
    uint64_t row_age_ms;    /* the row of a running instance may lag its last turn by so much, if nothing but
                            the time has changed */
    enum events_out events; /* the events that are sent as CloudEvents */
    uint64_t deleted_keep_ms; /* how long deletions are kept: longer than a request may be repeated; 0: for
                                 ever, and nothing is dispensable */
    size_t known_max;         /* ids remembered as known; beyond that, each start looks at the log */
};
enum {
    PARTITION_WINDOW_MAX = 512,
    PARTITION_AHEAD_MAX = 4096,
    PARTITION_WAITING_MAX = 64,
    PARTITION_RESTING_MAX = 2000,
    PARTITION_KNOWN_MAX = 1000 * 1000
};

/* A record as the host read it from the stream. */
struct log_record {
    uint64_t sequence;
    thole_slice bytes;
    uint64_t execution; /* HISTORY: from its subject: says to which execution a damaged record belongs */
};

/* Why an inbox message cannot be taken. Stored by their names (reject_code_name()), which never change. */
enum reject_code {
    REJECT_NONE,
    REJECT_SUBJECT,     /* the subject's last token is not the encoding of an id, or of an actor */
    REJECT_PARTITION,   /* the id belongs to another partition */
    REJECT_MALFORMED,   /* the body is no message, or a field is not what it must be */
    REJECT_UNSUPPORTED, /* of a newer format, or of an unknown kind */
    REJECT_INSTANCE,    /* the subject and the body name different instances */
    REJECT_REQUEST_ID,  /* the request id is not one that a client may use */
    REJECT_TOO_LARGE,   /* over the namespace's payload_max, or more than a record can hold */
    REJECT_TOO_MANY,   /* too many events wait for an instance that does not exist, or that does not take them
                        */
    REJECT_ROUTE,      /* the subject's kind or name is not that of the message */
    REJECT_NONCE,      /* a result without the nonce of its activity */
    REJECT_UNREADABLE, /* a decision on a quarantine, or a prune, and the history cannot be read */
    REJECT_EVENT,      /* of the host: a CloudEvent that the stream of events will never take */
    REJECT_HELD,       /* a deletion or a prune of an instance under legal hold */
    REJECT_HOLD_UNKNOWN, /* likewise, and whether it is held could not be found out */
};
enum {
    REJECTED_PAYLOAD_MAX = 1024
};                                                   /* largest number of bytes of the message that are
                                                        kept */
const char *reject_code_name(enum reject_code code); /* "subject", "too_large", … */

/*
 * The machine asks with outputs; the host carries them out and gives the answer as an input, with the
 * output's generation and token: partition_answer() begins it. A request that fails is answered by STEP_DOWN
 * unless the table says otherwise.
 *
 *   output           what the host does                                    input that answers it
 *   CLOSED           opens it again (OPEN), if it still should
 *   OPENED           lets clients ask
 *   READ_TAIL        reads the end of the log                              TAIL
 *   DELETE_RECORDS   removes void records from the log                     DELETED
 *   APPEND           stores a record, or finds that it cannot              APPENDED or APPEND_FAILED
 *   READ_LOG         reads a piece of the log                              LOG
 *   READ_RESULTS     looks for results of activities in the inbox          RESULTS
 *   LOAD             reads an instance's history                           HISTORY
 *   READ_IDS         reads which instances the log has records of          IDS
 *   REMOVE_HISTORY   removes records of an instance, for as long as that   REMOVED
 *                    takes
 *   FIND_DISPENSABLE looks for records that may go: dispensable.h          DISPENSABLE
 *   REMOVE_RECORDS   removes those that a committed record lists           REMOVED
 *   STORE_OPEN       registers the epoch in the database                   STORE_OPENED
 *   STORE_RESET      removes all rows of the partition                     STORE_RESET
 *   READ_LIVE        reads what is live from the rows                      LIVE
 *   READ_TIMERS      reads the timers that are due soon from the rows      TIMERS
 *   APPLY            commits a batch of rows                               APPLIED
 *   PUBLISH_WORK     queues an activity, until that is stored              PUBLISHED
 *   PUSH_CANCEL      tells workers, at most once; early: before the rows are deleted
 *   WITHDRAW         removes an activity's message, if it is still there
 *   SEND             stores a message in an inbox, until that is done      SENT
 *   EMIT             sends a CloudEvent, until that is done                EMITTED
 *   NOTICE           tells clients, at most once
 *   READ_INBOX       reads the inbox from now on                           MESSAGE, for each, without end; or
 *                                                                          once INBOX_BACK
 *   PURGE_INBOX      removes what is incorporated
 *   LIMITED          counts it, and says it now and then
 *   REJECT           keeps a message that cannot be taken, or gives up     REJECTED
 *   LINE             writes an orchestration's line into the log file
 *   READ_CRASHES     reads whose code has crashed                          CRASHES
 *   CRASHED          keeps that an instance's code has crashed
 *   CRASHES_OVER     forgets an instance's crashes
 *   QUERY_ANSWER     gives it to who asked: this one answers an input, QUERY, with its token
 *
 * Inputs that answer nothing: OPEN, CLOSE, STEP_DOWN, RIVAL, QUERY.
 *
 * Each kind that says more than its name has a struct, which is the member of the union with the kind's name.
 * All that an input points to is borrowed for the call. What an output points to is borrowed until the next
 * partition_poll(), where nothing else is said.
 */

/* An inbox message that identifies the stream: as long as the inbox has it, the inbox has not gone back.
 * Sequence 0: none. */
struct seen {
    uint64_t sequence, stored_ns;
};

/* --- outputs ----------------------------------------------------------------------------------------- */

enum partition_out_kind {
    PARTITION_OUT_CLOSED,
    PARTITION_OUT_OPENED,
    /* The log. */
    PARTITION_OUT_READ_TAIL,
    PARTITION_OUT_DELETE_RECORDS,
    PARTITION_OUT_APPEND,
    PARTITION_OUT_READ_LOG,
    /* Histories. */
    PARTITION_OUT_LOAD,
    PARTITION_OUT_READ_IDS,
    PARTITION_OUT_REMOVE_HISTORY,
    PARTITION_OUT_FIND_DISPENSABLE,
    PARTITION_OUT_REMOVE_RECORDS,
    /* The store: all over the connection over which STORE_OPEN was done, or not at all. When the database
     * knows of a newer epoch, or its rows are not those that the batch follows: STEP_DOWN. */
    PARTITION_OUT_STORE_OPEN,
    PARTITION_OUT_STORE_RESET,
    PARTITION_OUT_READ_LIVE,
    PARTITION_OUT_READ_TIMERS,
    PARTITION_OUT_APPLY,
    /* After the rows are committed. */
    PARTITION_OUT_PUBLISH_WORK,
    PARTITION_OUT_PUSH_CANCEL,
    PARTITION_OUT_WITHDRAW,
    PARTITION_OUT_SEND,
    /* After the record is committed. */
    PARTITION_OUT_NOTICE,
    PARTITION_OUT_LINE,
    PARTITION_OUT_STOPPED,
    PARTITION_OUT_LIMITED,
    /* The inbox. */
    PARTITION_OUT_READ_INBOX,
    PARTITION_OUT_PURGE_INBOX,
    PARTITION_OUT_READ_RESULTS,
    PARTITION_OUT_REJECT,
    /* Crashes of instances' code, kept outside so that the next owner knows. */
    PARTITION_OUT_READ_CRASHES,
    PARTITION_OUT_CRASHED,
    PARTITION_OUT_CRASHES_OVER,
    PARTITION_OUT_QUERY_ANSWER,
    /* After the rows are committed: repeated until it is stored, where events are. The slices stay valid
     * until the answer, or until CLOSED. Those of an instance come in order: the next one after the answer.
     */
    PARTITION_OUT_EMIT,
};

struct out_closed {
    const char *text; /* why */
    bool reopen;      /* whether the host should OPEN it again, after a pause, if this engine still should
                         own it */
    uint64_t epoch;   /* 0: none was opened */
    uint64_t records; /* of the epoch that are committed: 1..records */
};
struct out_opened { /* the partition serves */
    uint64_t epoch;
};
/* To read: o, the sequence of the last EpochOpened, with its record; L, the stream's last sequence; the
 * records max(o, L - count + 1)..L. */
struct out_read_tail {
    uint64_t count; /* 0: from o on */
};
/* Only if expected_last is still the stream's last sequence before the first is removed; else STEP_DOWN. */
struct out_delete_records {
    const uint64_t *sequences;
    size_t sequences_len;
    uint64_t expected_last;
};
/* Record number `token` of the epoch. Each append is answered, also those after a failed one. */
struct out_append {
    enum record_kind kind; /* EPOCH_OPENED: ctl.<p>.epoch; POSITION: ctl.<p>.position; TURN, DELETED: hist… */
    bool lists;            /* POSITION: ctl.<p>.folded */
    thole_slice instance;   /* TURN, DELETED */
    uint64_t execution;     /* likewise */
    uint64_t expected_last; /* the stream's last sequence; with any other the append is refused */
    thole_slice bytes;      /* valid until the answer, or until CLOSED */
};
struct out_read_log {
    uint64_t from, to; /* sequences; both are included */
};
/* execution 0: at least all records, in order, of the execution of the last record and of the one before it
 * (the first turn of the newer one may be incomplete after a crash); a DELETED belongs to the execution that
 * it names, and of execution 0 all records since then. Else: all records of that execution. */
struct out_load {
    thole_slice instance;
    uint64_t execution;
};
/* Reads all ids that have a record in the log, from a server that has the record at `since`. Without a time
 * limit: starts do not wait for it. */
struct out_read_ids {
    uint64_t since; /* sequence */
    size_t most;    /* more are not wanted */
};
/* Never removes records above `below`: they are of the id's next incarnation. */
struct out_remove_history {
    thole_slice instance;
    struct executions executions; /* whose records are removed */
    uint64_t below;               /* sequence of the record that asks for the removal; also the token */
    bool urgent; /* so many histories wait for their removal that turns will soon pause for them */
};
/* Without a time limit: nothing waits for it. */
struct out_find_dispensable {
    uint64_t below;     /* records from this sequence on stay */
    uint64_t published; /* deletions after this one stay: others still follow from them */
    uint64_t looked;    /* deletions up to here were looked at */
    uint64_t before_ms; /* deletions, and lists, from this time on stay */
};
/* The record with the sequence `token` lists them. If another record has this sequence, the stream went back,
 * and none is removed (STEP_DOWN). */
struct out_remove_records {
    const uint64_t *sequences; /* valid until the answer, or until CLOSED */
    size_t len;
};
struct out_store_open {
    uint64_t epoch;
};
/* Why the rows are of no use, and are made again. */
enum rows_fault {
    ROWS_FAULT_OTHER_LOG, /* of another log, or of a time of which the log has no deletions any more */
    ROWS_FAULT_OTHER_KEY, /* signed with another key of nonces than the namespace has */
};
struct out_store_reset {
    enum rows_fault fault;
};
struct out_read_timers {
    uint64_t before_ms; /* wall clock: timers due before it */
};
struct out_apply {
    struct batch *batch; /* given away: the host frees it with batch_destroy() */
};
/* Repeated until it is stored. The slices stay valid until the answer, or until CLOSED. */
struct out_publish_work {
    thole_slice instance, queue, activity, input;
    thole_slice nonce; /* see nonce.h */
    struct trace trace;
    uint64_t execution, activity_id;
    uint32_t try_number;
    bool again; /* an earlier owner may have published it: look first, publish if it is not there */
};
struct out_withdraw {
    uint64_t sequence; /* in WORK */
};
/* To the inbox of the instance, in any partition; repeated until it is stored. Messages to one instance come
 * in order: the next one after the answer. */
struct out_send {
    thole_slice route; /* of its subject: see message_route.h */
    thole_slice instance;
    thole_slice bytes; /* valid until the answer, or until CLOSED */
};
struct out_line {   /* of an orchestration */
    uint32_t level; /* a thole_log_level */
    thole_slice instance, text;
    uint64_t execution;
    thole_slice traceparent; /* empty: none */
};
/* An instance does not go on, for a reason that its turn before did not have. */
struct out_stopped {
    enum blocked_kind kind; /* neither NOT nor NOT_STARTED */
    thole_slice instance, orchestration, text;
    uint64_t execution;
    uint32_t version; /* 0: not chosen yet */
};
/* Limits of what one instance or one orchestration may have of the partition. */
enum partition_limit {
    LIMIT_EXECUTIONS, /* an execution begins later: its instance continues as new too often */
    LIMIT_TURNS,      /* the orchestration rests beside others: said once a second at most */
    PARTITION_LIMITS
};
const char *partition_limit_name(enum partition_limit limit);
/* An instance meets a limit. */
struct out_limited {
    enum partition_limit limit;
    thole_slice instance, orchestration;
    uint64_t execution;
    uint64_t max; /* the limit */
};
/* Gives every message from `from` on, in order, without end, if the stream contains `seen`, or has purged it
 * and continues after it; else INBOX_BACK. This is checked after the consumer is created and before the first
 * MESSAGE. If the stream may have gone back later: STEP_DOWN. */
struct out_read_inbox {
    uint64_t from; /* sequence */
    struct seen seen;
};
/* Only if the stream holds `seen` as in out_read_inbox, else STEP_DOWN. */
struct out_purge_inbox {
    uint64_t below; /* sequence */
    struct seen seen;
};
/* Looks from `from` on, or everywhere if the inbox does not hold `seen` as in out_read_inbox; at least
 * through the last `count` messages. */
struct out_read_results {
    uint64_t from, count;
    struct seen seen;
};
/* Repeated until it is stored, or cannot be stored: until then the message is not incorporated. After a crash
 * it may come twice: sequence, stored_ns and part identify it. */
struct out_reject {
    uint64_t sequence, stored_ns;
    uint32_t part; /* of several in one message */
    enum reject_code code;
    const char *text;                     /* why */
    thole_slice route, instance, subject; /* as in the MESSAGE */
    thole_slice actor;                    /* the actor that the subject names; or empty */
    thole_slice bytes;                    /* the part of the message that is kept */
    size_t message_bytes;                 /* size of the whole message */
};
struct out_crashed {
    thole_slice instance, orchestration, text;
    uint64_t count;     /* number of crashes */
    uint64_t execution; /* the execution that crashed last */
    uint32_t version;
};
struct out_crashes_over { /* the instance's end is committed */
    thole_slice instance;
};
struct out_query_answer {
    thole_status status;
    thole_slice data; /* output, or error text */
    const void *site; /* the output is the place of this return address in the source; NULL: it is data */
};

struct partition_out {
    enum partition_out_kind kind;
    uint64_t generation;
    uint64_t token; /* identifies one of several requests of a kind; 0 where there is one at a time */
    union {
        struct out_closed closed;
        struct out_opened opened;
        struct out_read_tail read_tail;
        struct out_delete_records delete_records;
        struct out_append append;
        struct out_read_log read_log;
        struct out_load load;
        struct out_read_ids read_ids;
        struct out_remove_history remove_history;
        struct out_find_dispensable find_dispensable;
        struct out_remove_records remove_records;
        struct out_store_open store_open;
        struct out_store_reset store_reset;
        struct out_read_timers read_timers;
        struct out_apply apply;
        struct out_publish_work publish_work;
        struct cancel_notice push_cancel;
        struct out_withdraw withdraw;
        struct out_send send;
        struct emission emit;
        struct event_notice notice;
        struct out_line line;
        struct out_stopped stopped;
        struct out_limited limited;
        struct out_read_inbox read_inbox;
        struct out_purge_inbox purge_inbox;
        struct out_read_results read_results;
        struct out_reject reject;
        struct out_crashed crashed;
        struct out_crashes_over crashes_over;
        struct out_query_answer query_answer;
    };
};

/* --- inputs ------------------------------------------------------------------------------------------ */

enum partition_in_kind {
    PARTITION_IN_OPEN,      /* this engine should own the partition */
    PARTITION_IN_CLOSE,     /* another engine should own it: finishes what is in flight, then CLOSED */
    PARTITION_IN_STEP_DOWN, /* something failed. Appends in flight must still be answered: CLOSED comes after
                               the last answer */
    PARTITION_IN_RIVAL, /* another engine opens, or tries to open, the partition. An idle owner would not read
                           its rival's record */
    PARTITION_IN_TAIL,
    PARTITION_IN_DELETED, /* all are gone */
    PARTITION_IN_APPENDED,
    PARTITION_IN_APPEND_FAILED, /* refused, timed out, connection lost: the epoch ends before this record.
                                   Appends before it must still be answered */
    PARTITION_IN_LOG,
    PARTITION_IN_HISTORY,
    PARTITION_IN_IDS,
    PARTITION_IN_REMOVED, /* none is left */
    PARTITION_IN_DISPENSABLE,
    PARTITION_IN_STORE_OPENED,
    PARTITION_IN_STORE_RESET, /* done */
    PARTITION_IN_LIVE,
    PARTITION_IN_TIMERS,
    PARTITION_IN_APPLIED,    /* the batch is committed */
    PARTITION_IN_PUBLISHED,  /* stored, or already there */
    PARTITION_IN_SENT,       /* stored */
    PARTITION_IN_EMITTED,    /* stored, or sent where no events are stored */
    PARTITION_IN_MESSAGE,    /* an inbox message, in order; generation: of READ_INBOX */
    PARTITION_IN_INBOX_BACK, /* before any MESSAGE: the inbox does not hold the `seen` of READ_INBOX */
    PARTITION_IN_RESULTS,
    PARTITION_IN_REJECTED,
    PARTITION_IN_CRASHES,
    PARTITION_IN_QUERY, /* answered by QUERY_ANSWER, unless CLOSED comes before it */
};

struct in_step_down {
    const char *text; /* why; NULL: nothing to say */
};
struct in_rival {
    uint64_t epoch; /* ignored unless it is newer */
};
struct in_tail {
    uint64_t epoch_sequence; /* of the last EpochOpened; 0: none */
    uint64_t last_sequence;  /* of the stream; 0: it is empty */
    const struct log_record *records;
    size_t records_len;
    struct log_record folded; /* the last one under ctl.<p>.folded; sequence 0: none */
    uint64_t counted; /* how many records count before the EpochOpened, where it does not say so itself and
                         those before it tell; 0: not known */
};
struct in_appended {
    uint64_t sequence;
};
struct in_append_failed {
    const char *text; /* why; NULL: nothing to say */
};
struct in_log { /* all records from..to that exist */
    const struct log_record *records;
    size_t records_len;
};
struct in_history {
    thole_slice instance; /* the instance of the LOAD */
    const struct log_record *records;
    size_t records_len; /* 0: there is none */
};
struct in_ids {
    const uint64_t *hashes; /* instance_id_hash() of each; more than once does no harm */
    size_t hashes_len;
    bool all; /* false: there are more than was asked for */
};
struct in_dispensable {
    const uint64_t *sequences; /* ascending; at most FOLDED_MAX */
    size_t len;
    thole_slice hashes; /* FOLDED_HASH_BYTES of each */
    size_t deletions;   /* among them */
    uint64_t deleted;   /* the newest of these; 0: there is none */
    uint64_t looked;    /* deletions up to here were looked at */
    bool more;          /* there may be more */
};
/* Never 0. For sets that are in memory alone: it may change with any version. */
uint64_t instance_id_hash(thole_slice id);
struct in_store_opened {
    uint64_t epoch; /* the database's newest epoch; if newer than the one asked for, this owner is fenced */
    struct rows_state rows;
    bool other_key; /* rows of activities are signed with another key of nonces than the namespace has */
};
struct in_store_reset {
    struct rows_state rows; /* nothing is projected */
};
struct in_live {
    const struct batch_instance *blocked; /* Waiting, Stuck or ContinuedAsNew; not of execution 0 */
    size_t blocked_len;
    const thole_slice *names; /* of live orchestrations: "name", or "name@version" for versions above 1 */
    const uint64_t *counts;   /* of each name */
    size_t names_len;
    uint64_t activities; /* scheduled and not resolved: rows in worker_queue */
};
struct in_timers {
    const struct batch_timer *timers; /* due before what was asked */
    size_t timers_len;
    uint64_t next_due_ms; /* wall clock: of the first one after them; 0: none */
};
struct in_applied {
    const struct batch_activity *removed; /* with `held`; NULL: the messages of all are withdrawn */
    size_t removed_len;
};
struct in_published {
    uint64_t sequence; /* in WORK; 0: unknown */
};
struct in_message {
    uint64_t sequence;
    uint64_t stored_ns;       /* when the stream stored it */
    uint32_t part, parts;     /* of several in one message, from 0, which come in order; 0, 0: it is one */
    enum reject_code refused; /* why its subject does not belong to this partition */
    thole_slice instance;     /* the instance that the subject names */
    thole_slice route;        /* the subject's kind and name: see message_route.h */
    thole_slice subject;      /* of a refused message, instead of both */
    thole_slice bytes;        /* the body */
    struct actor sender; /* from its headers, for a message that says nothing itself; authenticated: the name
                            is from its subject, and wins */
};
/* The result of an activity's try, as it is stored in the inbox. */
struct partition_result {
    thole_slice instance;
    uint64_t execution, activity_id;
    uint32_t try_number; /* from 1 */
    uint64_t sequence;   /* 0: the inbox went back, so the position says nothing about it */
};
struct in_results {
    const struct partition_result *results;
    size_t results_len;
};
struct partition_crash {
    thole_slice instance, text;
    uint64_t count; /* crashes with the code that is registered here; 0: none, but it is a crash candidate */
    uint64_t execution; /* the execution that crashed last; 0: not known */
};
struct in_crashes { /* of all instances of the partition */
    const struct partition_crash *crashes;
    size_t crashes_len;
};
struct in_query {
    thole_slice instance, query, input;
};

struct partition_in {
    enum partition_in_kind kind;
    uint64_t generation; /* of the output that this answers; STEP_DOWN: the partition's current one. Ignored
                            for OPEN, CLOSE, RIVAL and QUERY */
    uint64_t token;      /* of the output that this answers; QUERY: for its answer */
    union {
        struct in_step_down step_down;
        struct in_rival rival;
        struct in_tail tail;
        struct in_appended appended;
        struct in_append_failed append_failed;
        struct in_log log;
        struct in_history history;
        struct in_ids ids;
        struct in_dispensable dispensable;
        struct in_store_opened store_opened;
        struct in_store_reset store_reset;
        struct in_live live;
        struct in_timers timers;
        struct in_applied applied;
        struct in_published published;
        struct in_message message;
        struct in_results results;
        struct in_crashes crashes;
        struct in_query query;
    };
};

/* As the table above says. True for READ_INBOX, which only INBOX_BACK answers. */
bool partition_is_answered(enum partition_out_kind kind);
/* The answer to an output with kind, generation and token set and all else zero. For an APPEND: APPENDED. The
 * output must be one that is answered. */
struct partition_in partition_answer(const struct partition_out *out);
#endif
