/*
 * The invariants of the simulation. model.c is the independent reader: it sees every record when it is
 * stored, applies the log rule, joins the parts of turns, replays each instance, and knows which effect each
 * inbox message must have had. Everything outside (rows, messages, pushes, notices) is compared to it.
 *
 *   model.c         the log rule, parts, inbox positions
 *   model_turn.c    which events a turn may have, and their effects
 *   model_mail.c    messages between instances
 *   model_poison.c  activities in quarantine
 *   model_events.c  CloudEvents
 *   checks.c        what writers give away
 *   checks_end.c    the store's promises, and the end
 */
#ifndef THOLE_CHECKS_H
#define THOLE_CHECKS_H
#include "instance.h"
#include "log_fake.h"
#include "world.h"

struct row;

struct model_row { /* a row of the projection, as of the record with that sequence */
    bool there;
    uint32_t try_number;
    uint64_t due_ms, sequence;
};

struct model_event { /* by event id - 1 */
    enum event_kind kind;
    uint64_t ref, due_ms;
    enum event_kind resolved_by; /* of what was scheduled; EVENT_UNKNOWN = open */
    uint64_t sequence;           /* of the record that said so */
    uint32_t code;
    thole_slice name, queue, data, target;
    struct retry retry;            /* ACTIVITY_SCHEDULED; then its tries */
    uint32_t try_number, left_try; /* left_try: whose worker has left it to a completion from outside; 0:
                                      none */
    bool waiting, quarantined;     /* quarantined: waits for a decision */
    bool left_quarantine;          /* at least once */
    bool terminated;               /* of a child: it was asked to be */
    bool fire_asked;               /* of a timer: it may fire before it is due */
    uint64_t next_due_ms, deadline_ms;
    thole_slice why; /* in quarantine */
    struct model_row work, timer, held;
};

struct model_link { /* the link that the next record must have to this one */
    bool there;
    uint64_t sequence;       /* of this one */
    struct record_hash hash; /* of its bytes as they were when it was stored */
};

struct model_execution {
    bool ended, paused, cancel_requested, cancel_delivered, terminate_requested;
    bool released; /* an activity was run again from quarantine */
    bool fired;    /* a request made a timer fire: they may come in another order */
    enum event_kind terminal;
    struct model_event *events;
    size_t events_len, events_cap;
    uint64_t turns, time_ms, history_seq, pruned_before;
    uint64_t *turn_seqs; /* of the last record of each turn */
    size_t turn_seqs_len, turn_seqs_cap;
    struct model_turn_row { /* the instance's row after it, for each of them */
        uint64_t time_ms;
        bool running; /* still running, without any news */
        bool plain;   /* nothing but that and the time */
    } * turn_rows;
    size_t turn_rows_cap;
    enum blocked_kind blocked;
    uint32_t version, end_code;
    struct origin parent;
    thole_slice end_data, end_type;
    struct turn *history; /* until its version is known */
    size_t history_len, history_cap;
    struct instance *replay;
};

struct model_request {
    enum event_kind kind;
    thole_slice id;
};

/* A damaged instance suffers alone: nothing is said of it any more, but that it ends when it is terminated.
 */
struct model_instance {
    struct model_link newest;           /* of its last record that counts */
    bool damaged, over, swept;          /* swept: terminated, and nobody knew what was outstanding */
    struct model_execution *executions; /* from execution 1 on, of all lives of the id */
    size_t executions_len, executions_cap;
    size_t gone, deletions; /* executions up to gone were deleted; the rest is of this life */
    uint64_t deleted_seq;   /* of the last deletion's record */
    struct model_prune {    /* of all lives */
        uint64_t sequence;  /* of the record that ends its turn */
        struct executions executions;
    } * prunes;
    size_t prunes_len, prunes_cap;
    thole_slice orchestration, request_id, custom_status;
    struct origin parent;
    uint64_t created_ms;
    struct model_request *seen;
    size_t seen_len, seen_cap;
    thole_slice *items; /* of all executions, as they came */
    size_t items_len, items_cap;
    thole_slice *given_up; /* came too early: they may come again, in any order */
    size_t given_up_len, given_up_cap;
    /* execution 0 */
    struct model_execution early;
    struct event *kept;
    size_t kept_len, kept_cap;
    uint64_t kept_ms;
    struct model_row early_timer;
    /* the parts of a turn that has not ended yet */
    struct event *part_events;
    size_t part_events_len, part_events_cap;
};

struct model_partition {
    struct model_link newest; /* of its last record that counts */
    uint64_t epoch, n;
    uint64_t records; /* records that count */
    struct model_epoch {
        uint64_t counted;   /* how many of its records count */
        uint64_t published; /* number of published records at its begin */
    } * epochs;
    size_t epochs_len, epochs_cap;
    uint64_t durable;   /* the store has had the rows up to this record, and promised not to forget them */
    uint64_t published; /* the records up to this one: what they say to others is stored */
    uint64_t last_counted_seq;
    uint64_t known;           /* the writer of this epoch has said that its records up to there are stored */
    struct position position; /* of the last record that ends a turn, or is none */
    struct model_position {   /* of each record of the epoch that counts, from its EpochOpened on */
        uint64_t sequence;    /* 0: the EpochOpened */
        struct position says;
        bool lost; /* does not decode any more: its messages may be incorporated again */
    } * positions;
    size_t positions_len, positions_cap;
    bool stale;            /* the inbox went back since: the position means nothing until it is given up */
    uint64_t incorporated; /* all messages up to here were when it went back, and are what they were */
    size_t part_of;        /* instance whose turn comes in parts; SIZE_MAX = none */
    uint64_t part_number;
    size_t part_from;     /* entry of the first part */
    uint64_t sequence;    /* of the record that is being read */
    uint64_t store_epoch; /* the newest that the store knows */
};

struct model_letter { /* a message that a committed turn stands for */
    enum message_kind kind;
    size_t sender, target;
    uint64_t execution, event, sequence; /* sequence: of the turn's record */
    struct origin parent;                /* of the sender, as it was then */
};

struct model_emitted { /* a CloudEvent that a committed turn stands for; of an instance in the order of its
                          history */
    size_t instance;
    uint64_t execution, event, sequence; /* event 0: it was deleted. sequence: of the record */
    bool stored;
};

struct model_line {
    size_t instance;
    uint64_t execution;
    thole_slice text;
};

struct model {
    struct model_partition partitions[WORLD_PARTITIONS_MAX];
    struct model_instance instances[WORLD_INSTANCES_MAX];
    struct model_letter *letters;
    size_t letters_len, letters_cap;
    struct model_emitted *emitted;
    size_t emitted_len, emitted_cap;
    thole_slice *sent; /* bytes of messages that were given away to be sent */
    size_t sent_len, sent_cap;
    struct model_line *lines; /* logged */
    size_t lines_len, lines_cap;
};
struct model *model_create(struct world *w);
void model_destroy(struct model *model);
struct model_instance *model_of(const struct world *w, size_t instance);
/* The newest one; NULL: it was never started, or was deleted since. */
struct model_execution *model_current(struct model_instance *m);
struct model_execution *model_execution(struct model_instance *m, uint64_t execution); /* NULL: none */
/* Of a record that is not damaged; salted: some of its payloads have salts. model_hash.c */
struct record_hash model_hash_of(uint32_t partition, thole_slice record, bool salted);
bool model_damaged(const struct world *w, thole_slice instance);
/* The record with this sequence was damaged: the position that it says is lost with it. */
void model_position_lost(struct model_partition *part, uint64_t sequence);
/* Whether the record counts for good, and its instance, which has not ended, has nobody waiting for it. */
bool model_may_be_damaged(const struct world *w, const struct log_stream *log, const struct log_entry *entry);
/* The event with that id; NULL when the counted history has none. */
const struct model_event *model_find(const struct world *w, size_t instance, uint64_t execution, uint64_t id);

/* model_turn.c: a whole turn counts. */
void model_turn(struct world *w, uint32_t partition, size_t instance, const struct turn *turn,
                const struct position *position, uint64_t sequence);
/* Inbox messages that a position takes in beyond the last one, other than those of @p turn: they have no
 * effect. instance SIZE_MAX: no turn. */
size_t model_messages(struct world *w, uint32_t partition, size_t instance, const struct turn *turn,
                      const struct position *position);
bool model_incorporated(const struct position *position, uint64_t sequence);

/* model_turn.c: a deletion counts. */
void model_deletion(struct world *w, uint32_t partition, size_t instance, const struct deletion *deletion,
                    const struct position *position, uint64_t sequence);

/* model_delete.c */
bool model_is_over(const struct model_instance *m, const struct message *start); /* of a life that is gone */
bool model_accepts_deletion(struct model_instance *m, const struct message *message);
/* model_accept.c. Would this message change anything, in the state that the counted history says? */
bool model_accepts(struct world *w, size_t instance, const struct message *message);
/* Is that event of a turn at that time what it changes? */
bool model_is_effect(struct world *w, struct model_execution *x, uint64_t time_ms, const struct event *event,
                     const struct message *message);
bool model_is_raised(const struct event *event, const struct message *message);
bool model_has_seen(const struct model_instance *m, enum event_kind kind, thole_slice request_id);
bool model_is_kept(const struct model_instance *m, thole_slice request_id); /* came before the start */
void model_note_request(struct world *w, struct model_instance *m, enum event_kind kind, thole_slice id);
bool model_same_origin(const struct origin *a, const struct origin *b);
struct model_event *model_event_at(struct model_execution *x, uint64_t id); /* NULL: none */
/* A termination that no message asks for, but a deletion by force that will follow it. */
bool model_is_forced(const struct world *w, size_t instance, const struct event *event);
void model_check_deletion(struct world *w, size_t instance, const struct deletion *deletion,
                          const struct message *message);
/* The histories of these executions go. */
void model_prune(struct world *w, size_t instance, uint64_t sequence, struct executions executions);
/* The prune that says so of this execution; NULL: none. */
const struct model_prune *model_pruned(const struct model_instance *m, uint64_t execution);
/* The record of that execution has been removed, and no deletion or prune up to @p upto says so: a late
 * owner, which takes in nothing newer, cannot learn from the log what the record said, and leaves it as it is
 * in older rows. Whoever takes in the deletion or the prune removes those rows. */
bool model_is_unsaid(const struct world *w, size_t instance, uint64_t execution, uint64_t sequence,
                     uint64_t upto);
void model_forget(struct world *w, size_t instance, uint64_t sequence);
void model_published_deletions(struct world *w, uint32_t partition, uint64_t published);
bool checks_deletions(struct world *w, char *why, size_t size);

/* model_poison.c. Where it is poisoned, does it wait? */
bool model_waits_in_quarantine(const struct world *w, const struct model_event *scheduled);
bool model_is_quarantine(const struct world *w, uint64_t time_ms, const struct model_event *scheduled,
                         const struct event *e, const struct message *message);
bool model_is_given_up(const struct model_event *target, const struct event *e);
bool model_is_released(const struct model_event *target, const struct event *e,
                       const struct message *message);
void checks_quarantine(struct world *w, const struct batch *batch, const char *who);

/* model_mail.c */
/* All that the instance says to others in records below that one is stored. */
void model_check_sent(struct world *w, size_t instance, uint64_t below);
/* A record says that what follows from the records up to there is stored. */
void model_published(struct world *w, uint32_t partition, uint64_t published);
void model_expect_letter(struct world *w, size_t sender, uint64_t execution, const struct event *event);
void model_expect_result(struct world *w, size_t sender, uint64_t execution, const struct event *end);
/* Checks that a child's result is the one that the child has. */
void model_check_child(struct world *w, size_t parent, uint64_t execution, const struct event *event);
/* A start that was refused has been answered. */
void model_check_refused(struct world *w, const struct message *start);
/* Whether the parent has the answer that the id is in use. */
bool model_was_refused(struct world *w, const struct message *start);
void model_check_items(struct world *w, size_t instance, thole_slice item);
/* A collector gives back what it got, once and in order. */
void model_check_output(struct world *w, size_t instance, const struct event *end);

/* model_events.c */
void model_expect_events(struct world *w, size_t instance, const struct turn *turn, uint64_t sequence);
void model_expect_deleted(struct world *w, size_t instance, const struct deletion *deletion,
                          uint64_t sequence);
/* As model_check_sent() and model_published(). */
void model_check_emitted(struct world *w, size_t instance, uint64_t below);
void model_published_events(struct world *w, uint32_t partition, uint64_t published);
void checks_emit(struct world *w, uint32_t partition, uint64_t epoch, const struct emission *out,
                 const char *who);
/* The event comes to the stream of events. */
void checks_event_stored(struct world *w, const struct emission *out);
bool checks_events(struct world *w, char *why, size_t size); /* as checks_mail() */

/* The smallest sequence above which every message of the inbox is certainly incorporated. */
uint64_t model_last_needed(const struct world *w, const struct inbox_stream *inbox);

/* Durable changes, called by the fakes. */
void checks_on_append(struct world *w, struct log_stream *log, struct log_entry *entry);
void checks_on_delete(struct world *w, struct log_stream *log, const struct log_entry *entry);
void checks_on_remove(struct world *w, struct log_stream *log, const struct log_entry *entry, uint64_t by);
/* The record @p by lists it as dispensable. */
void checks_on_dispense(struct world *w, struct log_stream *log, const struct log_entry *entry, uint64_t by);
void checks_on_durable(struct world *w, const struct row *partition);
void checks_on_store_forgets(struct world *w);
void checks_on_purge(struct world *w, const struct inbox_stream *inbox, uint64_t below);
void checks_on_back(struct world *w, const struct inbox_stream *inbox);
void checks_on_store_open(struct world *w, uint32_t partition, const struct row *row);
void checks_on_apply(struct world *w, const struct batch *batch, const struct row *row);
void checks_on_store_crash(struct world *w);
/* Outputs of a writer, when it gives them away: nothing that is not committed. */
void checks_writer(struct world *w, uint32_t partition, uint64_t epoch, uint64_t committed_n,
                   const char *who);
/* @p read: what its machine was told that every engine reads. */
void checks_append(struct world *w, const struct out_append *out, struct record_forms read, const char *who);
void checks_batch(struct world *w, const struct batch *batch, const char *who);
void checks_work(struct world *w, const struct out_publish_work *out, const char *who);
/* as_left: the rows are what the engine's last batch has left there. */
void checks_push(struct world *w, const struct cancel_notice *out, bool as_left, const char *who);
void checks_send(struct world *w, uint32_t partition, uint64_t epoch, const struct out_send *out,
                 const char *who);
bool checks_sent_before(struct world *w, thole_slice bytes); /* given away once already, before this time */
void checks_notice(struct world *w, const struct event_notice *out, const char *who);
void checks_line(struct world *w, const struct out_line *out, const char *who);
/* The database leaves the try to a completion from outside. */
void checks_on_left(struct world *w, const struct row *row);
/* Nobody needs to run that try any more: history says so, a result of it waits in the inbox, or its row says
 * that it is completed from outside. */
bool checks_try_is_over(struct world *w, size_t instance, uint64_t execution, uint64_t id,
                        uint32_t try_number);
void checks_answer(struct world *w, size_t instance, const struct out_query_answer *out, const char *who);

/* At the end. The first two say why not yet; the last one writes "" when all is well. */
bool checks_all_ended(struct world *w, char *why, size_t size);
void checks_at_the_end(struct world *w, char *why, size_t size);
bool checks_mail(struct world *w, char *why, size_t size); /* model_mail.c */
uint32_t checks_status(const struct model_instance *m);
#endif
