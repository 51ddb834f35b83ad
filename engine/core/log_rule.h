/*
 * Which records of a partition's log count. One rule for all readers.
 *
 * The log is a stream. An owner opens an epoch with the record EpochOpened; its record n is stored n
 * sequences after it or not at all. Before an owner opens an epoch it removes the void records that it has
 * found, so everything up to the last EpochOpened counts, and only the records after it need the rule:
 *
 *   A record after the last EpochOpened counts if it is of that epoch, at its expected sequence, and all
 *   records of the epoch before it were stored.
 *
 * Deletion and pruning remove records that count. Each record says how many of its epoch its writer knew to
 * be stored (record.committed), so a reader that has seen a later one continues after such a gap.
 *
 * A record that does not decode is given as NULL. A record in the place of one that is known to be stored,
 * but with another number, is treated as one that does not decode: it stops its instance, and no reader takes
 * it for a rival's.
 */
#ifndef THOLE_LOG_RULE_H
#define THOLE_LOG_RULE_H
#include "codec.h"
#include "event.h"

struct log_rule {
    uint64_t epoch;  /* of the last EpochOpened; 0: there is none, and nothing counts */
    uint64_t opened; /* sequence of that EpochOpened */
    uint64_t known;  /* records 1..known of the epoch are known to have been stored */
    uint64_t n;      /* log_rule_feed(): of the last record that counts */
    bool broken;     /* log_rule_feed_front(): a void record stands after the last EpochOpened */
};

enum log_verdict {
    LOG_COUNTS,
    LOG_DAMAGED,  /* counts, and does not decode or has another number */
    LOG_UNPROVEN, /* of the epoch and at its sequence, but not known that all before it were stored */
    LOG_VOID,
    LOG_RIVAL, /* of a later epoch: another owner has opened the partition since */
};

/* Takes over how many records of its epoch a record says were stored. Before the first log_rule_feed(). */
void log_rule_learn(struct log_rule *rule, const struct record *record);

/* Judges records in any order, by `known`. For an owner, `known` is the number of its committed records. */
enum log_verdict log_rule_judge(const struct log_rule *rule, const struct record *record, uint64_t sequence);

/* Whether another owner wrote this record after the EpochOpened. If so, an owner must not use the records
 * that it has read. */
bool log_rule_foreign(const struct log_rule *rule, const struct record *record, uint64_t sequence);

/* Checks the records after the last EpochOpened in order: a record also counts if it follows the last one
 * that counts. */
enum log_verdict log_rule_feed(struct log_rule *rule, const struct record *record, uint64_t sequence);

/*
 * Judges the whole log in order, from its first record or a later one; @p rule begins as {0}. Weaker than
 * log_rule_feed(): removed records are taken for stored, since the reader does not look ahead. Gives
 * LOG_COUNTS, LOG_DAMAGED or LOG_VOID.
 */
enum log_verdict log_rule_feed_front(struct log_rule *rule, const struct record *record, uint64_t sequence);

/*
 * For a reader that has single records and the last EpochOpened, but not the log between them. Weaker: true
 * is certain, false is not. Uses only rule.epoch and rule.opened.
 */
bool log_rule_surely_void(const struct log_rule *rule, const struct record *record, uint64_t sequence);
#endif
