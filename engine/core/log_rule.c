#include "log_rule.h"

/* The record is at the sequence that its writer expected. */
static bool log_rule_in_place(const struct log_rule *rule, const struct record *record, uint64_t sequence)
{
    return record->epoch == rule->epoch && record->n == sequence - rule->opened;
}

void log_rule_learn(struct log_rule *rule, const struct record *record)
{
    if (record->epoch == rule->epoch && record->committed > rule->known)
        rule->known = record->committed;
}

/* Whether the record is after the EpochOpened, and known to be stored by its owner. */
static bool log_rule_is_known(const struct log_rule *rule, uint64_t sequence)
{
    return sequence > rule->opened && sequence - rule->opened <= rule->known;
}

static enum log_verdict judge_damaged(const struct log_rule *rule, uint64_t sequence)
{
    bool const stored = sequence <= rule->opened || sequence - rule->opened <= rule->known;
    return stored ? LOG_DAMAGED : LOG_VOID;
}

enum log_verdict log_rule_judge(const struct log_rule *rule, const struct record *record, uint64_t sequence)
{
    if (record == NULL)
        return judge_damaged(rule, sequence);
    if (sequence <= rule->opened)
        return record->epoch < rule->epoch ? LOG_COUNTS : LOG_VOID;
    if (!log_rule_in_place(rule, record, sequence) && log_rule_is_known(rule, sequence))
        return LOG_DAMAGED; /* the record that was stored there said something else */
    if (record->epoch > rule->epoch)
        return LOG_RIVAL;
    if (!log_rule_in_place(rule, record, sequence))
        return LOG_VOID;
    return record->n <= rule->known ? LOG_COUNTS : LOG_UNPROVEN;
}

bool log_rule_foreign(const struct log_rule *rule, const struct record *record, uint64_t sequence)
{
    return sequence > rule->opened && (record == NULL || !log_rule_in_place(rule, record, sequence));
}

enum log_verdict log_rule_feed(struct log_rule *rule, const struct record *record, uint64_t sequence)
{
    enum log_verdict verdict = log_rule_judge(rule, record, sequence);
    if (verdict == LOG_UNPROVEN && record->n == rule->n + 1)
        verdict = LOG_COUNTS;
    if ((verdict == LOG_COUNTS || verdict == LOG_DAMAGED) && sequence > rule->opened)
        rule->n = sequence - rule->opened;
    return verdict;
}

enum log_verdict log_rule_feed_front(struct log_rule *rule, const struct record *record, uint64_t sequence)
{
    if (record == NULL) /* damages only its instance, and proves nothing about other records */
        return LOG_DAMAGED;
    if (record->kind == RECORD_EPOCH_OPENED) {
        *rule = (struct log_rule){.epoch = record->epoch, .opened = sequence};
        return LOG_COUNTS;
    }
    if (rule->epoch == 0) /* the beginning of the log is missing */
        *rule = (struct log_rule){.epoch = record->epoch, .opened = sequence - record->n};
    rule->broken |= !log_rule_in_place(rule, record, sequence);
    return rule->broken ? LOG_VOID : LOG_COUNTS;
}

bool log_rule_surely_void(const struct log_rule *rule, const struct record *record, uint64_t sequence)
{
    return record->epoch < rule->epoch && sequence > rule->opened;
}
