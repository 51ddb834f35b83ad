/* Which records of a log count: every row of the rule, and of its two weaker questions. */
#include "log_rule.h"
#include "thole_cunit.h"
#include <string.h>

enum { RECORDS_MAX = 8 };

struct written {
    uint64_t sequence, epoch, n; /* epoch 0: does not decode; sequence 0 ends the row; n 0: an EpochOpened */
    uint64_t committed;
};

struct row {
    const char *name;
    uint64_t epoch, opened, known;
    struct written written[RECORDS_MAX];
    const char *want; /* a letter for each record */
};

/* C: counts, D: damaged, U: unproven, V: void, R: rival */
static char letter(enum log_verdict verdict)
{
    switch (verdict) {
    case LOG_COUNTS: return 'C';
    case LOG_DAMAGED: return 'D';
    case LOG_UNPROVEN: return 'U';
    case LOG_VOID: return 'V';
    case LOG_RIVAL: return 'R';
    }
    return '?';
}

static const struct record *record_of(const struct written *w, struct record *record)
{
    *record = (struct record){.kind = w->n == 0 ? RECORD_EPOCH_OPENED : RECORD_TURN,
                              .epoch = w->epoch,
                              .n = w->n,
                              .committed = w->committed};
    return w->epoch == 0 ? NULL : record;
}

/* Epoch 3 was opened at sequence 10. */
static const struct row judged[] = {
    {"before the EpochOpened all of earlier epochs counts", 3, 10, 0, {{9, 2, 7}, {1, 1, 1}}, "CC"},
    {"before it, what does not decode is damaged", 3, 10, 0, {{9}, {10}}, "DD"},
    {"before it, what is of its epoch or a later one", 3, 10, 5, {{9, 3, 1}, {9, 4, 1}}, "VV"},
    {"what is known to be stored counts, in its place", 3, 10, 2, {{11, 3, 1}, {12, 3, 2}}, "CC"},
    {"what is not known is unproven", 3, 10, 2, {{13, 3, 3}, {14, 3, 4}}, "UU"},
    {"in another's place", 3, 10, 1, {{12, 3, 1}, {12, 3, 3}, {13, 3, 0}}, "VVV"},
    {"of an epoch before", 3, 10, 0, {{11, 2, 1}, {12, 1, 2}}, "VV"},
    {"of a later epoch", 3, 10, 0, {{11, 4, 0}, {12, 4, 2}, {13, 9, 1}}, "RRR"},
    {"in the place of one that was stored",
     3,
     10,
     3,
     {{12, 3, 1}, {13, 3, 4}, {11, 2, 1}, {12, 1, 2}, {11, 4, 0}, {13, 4, 3}, {14, 4, 4}},
     "DDDDDDR"},
    {"what was stored and does not decode", 3, 10, 2, {{11}, {12}}, "DD"},
    {"what does not decode and may never have counted", 3, 10, 2, {{13}}, "V"},
    {"no EpochOpened", 0, 0, 0, {{1, 1, 0}, {2, 1, 1}, {3}}, "RRV"},
};

static const struct row fed[] = {
    {"one behind the other", 3, 10, 0, {{11, 3, 1}, {12, 3, 2}, {13, 3, 3}}, "CCC"},
    {"a gap that nothing explains", 3, 10, 0, {{11, 3, 1}, {13, 3, 3}, {14, 3, 4}}, "CUU"},
    {"the first one is missing", 3, 10, 0, {{12, 3, 2}}, "U"},
    {"beyond what is known it follows one that is there",
     3,
     10,
     0,
     {{11, 3, 1}, {14, 3, 4, 3}, {15, 3, 5}},
     "CUU"},
    {"a gap that a later record explains", 3, 10, 0, {{11, 3, 1}, {14, 3, 4}, {15, 3, 5, 4}}, "CCC"},
    {"another's record takes a place", 3, 10, 0, {{11, 3, 1}, {12, 2, 8}, {13, 3, 3}}, "CVU"},
    {"a damaged one that was stored", 3, 10, 0, {{11}, {12, 3, 2, 1}, {13, 3, 3}}, "DCC"},
    {"a damaged one at the end", 3, 10, 0, {{11, 3, 1}, {12}, {13, 3, 3}}, "CVU"},
    {"behind a damaged one that was stored", 3, 10, 0, {{11, 3, 1, 2}, {12}, {13, 3, 3}}, "CDC"},
    {"what another epoch knows is not ours", 3, 10, 0, {{12, 3, 2}, {13, 2, 9, 9}}, "UV"},
    {"less is learnt from a later one", 3, 10, 0, {{12, 3, 2, 2}, {13, 3, 3, 1}}, "CC"},
    {"a rival behind it", 3, 10, 0, {{11, 3, 1}, {12, 4, 0}, {13, 4, 1}}, "CRR"},
    {"what stands before moves nothing", 3, 10, 0, {{9, 2, 1}, {11, 3, 1}}, "CC"},
};

static const struct row front[] = {
    {"two epochs", 0, 0, 0, {{1, 1, 0}, {2, 1, 1}, {3, 1, 2}, {4, 2, 0}, {5, 2, 1}}, "CCCCC"},
    {"what was removed was stored", 0, 0, 0, {{1, 1, 0}, {5, 1, 4}, {9, 1, 8}}, "CCC"},
    {"behind another's record nothing counts", 0, 0, 0, {{1, 2, 0}, {2, 1, 7}, {3, 2, 2}}, "CVV"},
    {"until the next EpochOpened", 0, 0, 0, {{1, 2, 0}, {2, 1, 7}, {3, 3, 0}, {4, 3, 1}}, "CVCC"},
    {"in another's place", 0, 0, 0, {{1, 2, 0}, {2, 2, 2}, {3, 2, 2}}, "CVV"},
    {"of a later epoch that was never opened", 0, 0, 0, {{1, 2, 0}, {2, 3, 1}}, "CV"},
    {"the beginning is not there", 0, 0, 0, {{8, 2, 3}, {9, 2, 4}, {11, 2, 5}}, "CCV"},
    {"a damaged one says nothing of others", 0, 0, 0, {{1, 1, 0}, {2}, {3, 1, 2}}, "CDC"},
};

static void render(const struct row *row,
                   enum log_verdict (*ask)(struct log_rule *, const struct record *, uint64_t), bool learn,
                   char *to)
{
    struct log_rule rule = {.epoch = row->epoch, .opened = row->opened, .known = row->known};
    struct record record;
    size_t n = 0;
    while (n < RECORDS_MAX && row->written[n].sequence > 0)
        n++;
    for (size_t i = 0; learn && i < n; i++)
        if (record_of(&row->written[i], &record) != NULL)
            log_rule_learn(&rule, &record);
    for (size_t i = 0; i < n; i++)
        to[i] = letter(ask(&rule, record_of(&row->written[i], &record), row->written[i].sequence));
    to[n] = '\0';
}

static enum log_verdict judge(struct log_rule *rule, const struct record *record, uint64_t sequence)
{
    return log_rule_judge(rule, record, sequence);
}

static void check_rows(const struct row *rows, size_t len, bool learn,
                       enum log_verdict (*ask)(struct log_rule *, const struct record *, uint64_t))
{
    char got[RECORDS_MAX + 1];
    for (size_t i = 0; i < len; i++) {
        render(&rows[i], ask, learn, got);
        CHECK_STR(rows[i].name, got, rows[i].want);
    }
}

static void what_is_known_decides(void)
{
    check_rows(judged, ARRAY_LEN(judged), false, judge);
}

static void a_tail_counts_on(void)
{
    check_rows(fed, ARRAY_LEN(fed), true, log_rule_feed);
}

static void a_whole_log_is_read_from_the_front(void)
{
    check_rows(front, ARRAY_LEN(front), false, log_rule_feed_front);
}

/* All records after the EpochOpened that are not the owner's own, in their place. */
static void an_owner_knows_its_own(void)
{
    static const struct {
        struct written written;
        bool foreign;
    } rows[] = {
        {{11, 3, 1}, false}, {{14, 3, 4}, false}, {{11, 3, 2}, true}, {{11, 2, 1}, true}, {{11, 4, 1}, true},
        {{11}, true},        {{14}, true},        {{10}, false},      {{9, 2, 1}, false}, {{9, 7, 1}, false},
    };
    struct log_rule const rule = {.epoch = 3, .opened = 10, .known = 2};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct record record;
        const struct record *r = record_of(&rows[i].written, &record);
        CU_ASSERT_EQUAL(log_rule_foreign(&rule, r, rows[i].written.sequence), rows[i].foreign);
    }
}

static void from_outside_only_a_deposed_owner_is_seen(void)
{
    static const struct {
        struct written written;
        bool is_void;
    } rows[] = {
        {{11, 2, 1}, true},  {{99, 1, 1}, true},  {{10, 2, 1}, false}, {{9, 2, 1}, false},
        {{11, 3, 1}, false}, {{11, 3, 7}, false}, {{11, 4, 1}, false},
    };
    struct log_rule const rule = {.epoch = 3, .opened = 10};
    struct log_rule const none = {.epoch = 0};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct record record;
        const struct record *r = record_of(&rows[i].written, &record);
        CU_ASSERT_EQUAL(log_rule_surely_void(&rule, r, rows[i].written.sequence), rows[i].is_void);
        CU_ASSERT_FALSE(log_rule_surely_void(&none, r, rows[i].written.sequence));
    }
}

static const struct thole_test tests[] = {
    {"what_is_known_decides", what_is_known_decides},
    {"a_tail_counts_on", a_tail_counts_on},
    {"a_whole_log_is_read_from_the_front", a_whole_log_is_read_from_the_front},
    {"an_owner_knows_its_own", an_owner_knows_its_own},
    {"from_outside_only_a_deposed_owner_is_seen", from_outside_only_a_deposed_owner_is_seen},
};

int main(void)
{
    return thole_run_suite("log_rule", tests, ARRAY_LEN(tests));
}
