/*
 * What must hold. model.c is the independent reader: it sees every record at the moment it is stored, applies
 * the log rule, joins the parts of turns, replays each instance, and knows which inbox messages must have had
 * which effect. Everything outside (rows, messages, pushes, notices) is compared to it.
 */
#ifndef THOLE_CHECKS_H
#define THOLE_CHECKS_H
#include "instance.h"
#include "log_fake.h"
#include "world.h"

struct model_event { /* by event id - 1 */
    enum event_kind kind;
    uint64_t ref, due_ms;
    enum event_kind resolved_by;          /* of what was scheduled; EVENT_UNKNOWN = open */
    uint64_t sequence, resolved_sequence; /* of the records that said so */
    thole_slice name, queue, data;
};

struct model_instance {
    bool started, ended, cancel_requested, cancel_delivered;
    enum event_kind terminal;
    thole_slice orchestration, request_id;
    struct model_event *events;
    size_t events_len, events_cap;
    uint64_t turns, time_ms, created_ms, history_seq;
    uint64_t *turn_seqs; /* of the last record of each turn */
    size_t turn_seqs_len, turn_seqs_cap;
    enum blocked_kind blocked;
    struct instance *replay;
    /* the parts of a turn that has not ended yet */
    struct event *part_events;
    size_t part_events_len, part_events_cap;
};

struct model_partition {
    uint64_t epoch, n;
    uint64_t *counted; /* by epoch: how many of its records count */
    size_t counted_len, counted_cap;
    uint64_t last_counted_seq;
    struct position position; /* of the last record that ends a turn, or is none */
    size_t part_of;           /* instance whose turn comes in parts; SIZE_MAX = none */
    uint64_t part_number;
    size_t part_from;     /* entry of the first part */
    uint64_t sequence;    /* of the record that is being read */
    uint64_t store_epoch; /* the newest that the store knows */
};

struct model {
    struct model_partition partitions[WORLD_PARTITIONS_MAX];
    struct model_instance instances[WORLD_INSTANCES_MAX];
};
struct model *model_create(struct world *w);
void model_destroy(struct model *model);
/* The event with that id; NULL when the counted history has none. */
const struct model_event *model_find(const struct world *w, size_t instance, uint64_t id);

/* Durable changes, called by the fakes. */
void checks_on_append(struct world *w, struct log_stream *log, struct log_entry *entry);
void checks_on_delete(struct world *w, struct log_stream *log, const struct log_entry *entry);
void checks_on_purge(struct world *w, const struct inbox_stream *inbox, uint64_t below);
void checks_on_store_open(struct world *w, uint32_t partition, uint64_t epoch, uint64_t projected_seq);
void checks_on_apply(struct world *w, const struct batch *batch);
void checks_on_store_crash(struct world *w);
/* Outputs of a writer, when it gives them away: nothing that is not committed. */
void checks_writer(struct world *w, uint32_t partition, uint64_t epoch, uint64_t committed_n,
                   const char *who);
void checks_batch(struct world *w, const struct batch *batch, const char *who);
void checks_work(struct world *w, const struct partition_out *out, const char *who);
void checks_push(struct world *w, const struct partition_out *out, const char *who);
void checks_notice(struct world *w, const struct partition_out *out, const char *who);

/* At the end. The first two say why not yet; the last one writes "" when all is well. */
bool checks_all_ended(struct world *w, char *why, size_t size);
void checks_at_the_end(struct world *w, char *why, size_t size);
#endif
