/* Inside projections/: the single rows of a batch, and those that are set aside no more. */
#ifndef THOLE_PROJECTOR_UNITS_H
#define THOLE_PROJECTOR_UNITS_H
#include "postgres_call.h"
#include "projector_store.h"

/* Kinds of rows of a batch that are added, and all. */
#define EACH_ADDED(X) X(activities_added) X(timers_added) X(quarantine_added) X(instances)
#define EACH_KIND(X) EACH_ADDED(X) X(activities_removed) X(timers_removed) X(quarantine_removed) X(deletions)

/* Statements of deletions. */
enum deletes {
    DELETES_ACTIVITIES,
    DELETES_TIMERS,
    DELETES_QUARANTINE,
    DELETES_INSTANCES,
    DELETES_EXECUTIONS,
    DELETES_PRUNED,
    DELETES
};

/* One row of one table, in the order in which those of one instance are written: that of the statements. */
enum unit_kind {
    UNIT_DELETES, /* and one for each enum deletes */
    UNIT_ADD_FIRST = UNIT_DELETES + DELETES,
    UNIT_REMOVE_ACTIVITY,
    UNIT_ADD_LATER,
    UNIT_REMOVE_TIMER,
    UNIT_ADD_TIMER,
    UNIT_REMOVE_QUARANTINE,
    UNIT_ADD_QUARANTINE,
    UNIT_INSTANCE,
    UNIT_EXECUTION,
    UNIT_KINDS
};
enum unit_table { OF_ACTIVITIES, OF_TIMERS, OF_QUARANTINE, OF_INSTANCES, OF_EXECUTIONS, UNIT_TABLES };

extern const char *const unit_table_names[UNIT_TABLES];

struct unit_rule {
    enum unit_table table;
    bool removal;
    bool whole; /* removes all of the instance up to the execution */
};
extern const struct unit_rule unit_rules[UNIT_KINDS];

struct unit {
    enum unit_kind kind;
    bool removal;
    size_t index; /* in its array of the batch */
    thole_slice instance;
    uint64_t execution, id; /* the key in set_aside */
};

struct units {
    struct unit *items;
    size_t len;
};

/* At most. */
size_t units_most(const struct batch *batch);
/* Adds those of the batch; there is room. */
void units_of_batch(struct units *to, const struct batch *batch);
/* For qsort(): by instance, as the collation "C" compares, then in the order in which they are written. */
int units_compare(const void *left, const void *right);

/* A key of set_aside. */
struct cleared {
    thole_slice instance, table;
    uint64_t execution, id;
    bool whole;
};

struct cleared aside_cleared_by(const struct unit *unit);
void aside_send_cleared(struct postgres *pg, const struct cleared *keys, size_t n);

/* The rows of the batches are set aside no more, of partitions that have any; and how many they have then.
 * Returns the place of the answer for aside_keep_counts_of(); 0: nothing is sent. */
size_t aside_send_clear(struct postgres *pg, struct batch *const *batches, size_t n);
/* How many rows of the partitions are set aside: asks, and keeps the answer. */
void aside_send_counts(struct postgres *pg, const uint32_t *partitions, size_t n);
void aside_keep_counts(struct postgres *pg, const uint32_t *partitions, size_t n, size_t place);
void aside_keep_counts_of(struct postgres *pg, struct batch *const *batches, size_t n, size_t place);
void aside_keep_count(struct postgres *pg, uint32_t partition, uint64_t rows);

/* A row that is refused, and why: texts are borrowed. */
struct aside_row {
    thole_slice instance, table, column, code, reason;
    uint64_t execution, id;
    bool removal;
};
struct aside_row aside_row_of(thole_slice instance, enum unit_table table, const struct call_refusal *why);
/* Names them in set_aside; @p seq: up to where the partition was projected before. */
void aside_send_add(struct postgres *pg, uint32_t partition, uint64_t seq, const struct aside_row *rows,
                    size_t n);
/* Whether a call failed for what is in its rows: a part of them may be written. */
bool aside_is_of_data(thole_status status);
/* Of a constraint; where a domain is refused, all columns that have it. */
THOLE_NODISCARD thole_status aside_find_columns(struct postgres *pg, enum unit_table table,
                                                struct call_refusal *why, thole_error *reterr);
#endif
