/*
 * Which records of a partition's log count. One rule, for all who read a log.
 *
 * The log is a stream. An owner opens an epoch with the record EpochOpened; its record n is stored n
 * sequences behind it or not at all. Before an owner opens an epoch it removes the void records that it has
 * found, so everything up to the last EpochOpened counts, and only the records behind it are in question:
 *
 *   A record behind the last EpochOpened counts if it is of that epoch, stands in its place, and all records
 * of the epoch before it were stored.
 *
 * Deletion and pruning remove records that count. Each record says how many of its epoch its writer knew to
 * be stored (record.committed), so a reader that has seen a later one counts on over such a gap.
 *
 * A record that does not decode is given as NULL.
 */
#ifndef THOLE_LOG_RULE_H
#define THOLE_LOG_RULE_H
#include "codec.h"
#include "event.h"

struct log_rule {
    uint64_t epoch;  /* of the last EpochOpened; 0: there is none, and nothing counts */
    uint64_t opened; /* its sequence */
    uint64_t known;  /* records 1..known of the epoch are known to have been stored */
    uint64_t n;      /* log_rule_feed(): of the last record that counts */
    bool broken;     /* log_rule_feed_front(): a void record stands behind the last EpochOpened */
};

enum log_verdict {
    LOG_COUNTS,
    LOG_DAMAGED,  /* it counts and does not decode */
    LOG_UNPROVEN, /* of the epoch and in its place; nothing yet says that all before it were stored */
    LOG_VOID,
    LOG_RIVAL, /* of a later epoch: another owner has opened the partition since */
};

/* A record of the log says how many of its epoch were stored. Before the first log_rule_feed(). */
void log_rule_learn(struct log_rule *rule, const struct record *record);

/* By what is known, in any order. What an owner asks: known is the number of its committed records. */
enum log_verdict log_rule_judge(const struct log_rule *rule, const struct record *record, uint64_t sequence);

/* An owner's question about what it reads: did another owner write this behind the EpochOpened? If so, what
 * it has read is not the whole truth. */
bool log_rule_foreign(const struct log_rule *rule, const struct record *record, uint64_t sequence);

/* The records behind the last EpochOpened, in order: one counts, too, when it follows the last that counts.
 */
enum log_verdict log_rule_feed(struct log_rule *rule, const struct record *record, uint64_t sequence);

/*
 * The whole log in order, from its first record or a later one; @p rule begins as {0}. A weaker question than
 * log_rule_feed()'s: what was removed is taken for stored, since the reader does not look ahead. Gives
 * LOG_COUNTS, LOG_DAMAGED or LOG_VOID.
 */
enum log_verdict log_rule_feed_front(struct log_rule *rule, const struct record *record, uint64_t sequence);

/*
 * The question of a reader that sees single records and the last EpochOpened, not the log between them.
 * Weaker: true is certain, false is not. Only rule.epoch and rule.opened matter.
 */
bool log_rule_surely_void(const struct log_rule *rule, const struct record *record, uint64_t sequence);
#endif
