/* The check of a history's hashes: forgeries of a log and of one instance's records, each found and named. */
#include "audit_log.h"
#include "sanitized.h"
#include "thole_cunit.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void want(const struct log *log, const char *what, const char *text)
{
    if (strcmp(log->said, text) != 0)
        (void)printf("\n  %s: got \"%s\", want \"%s\"\n", what, log->said, text);
    CU_ASSERT_STRING_EQUAL(log->said, text);
}

/* ---- valid logs ---- */

static void test_right(void)
{
    struct log *log = story_written();
    struct audit_summary summary = story_check(log);
    want(log, "a log", "");
    CU_ASSERT(summary.records == 12 && summary.voids == 0 && summary.removed == 0 && summary.unchained == 0);
    CU_ASSERT(summary.chained_from == 1 && summary.last_sequence == 12);
    for (size_t i = 0; i < 3; i++) {
        (void)story_check_instance(log, i);
        want(log, story_ids[i], "");
    }
    story_end(log);
}

static void test_deletion(void)
{
    struct log *log = story_written();
    story_delete_instance(log, 1);
    story_turn(log, 0);
    log->turns[1] = 0;
    story_turn_in(log, 1, 2, false);
    log->records[2].sequence = 0; /* #3 is removed, #6 not yet */
    (void)story_check(log);
    want(log, "on the way", "");
    log->records[5].sequence = log->records[9].sequence = 0;
    struct audit_summary const summary = story_check(log);
    want(log, "all", "");
    CU_ASSERT_EQUAL(summary.removed, 3);
    (void)story_check_instance(log, 1);
    want(log, "the instance", "");
    log->records[3].sequence = 0; /* #4 of an instance that exists */
    (void)story_check(log);
    want(log, "and another's", "missing 0");
    story_end(log);
}

/* Events come early again: of execution 0, after the deletion of execution 1. */
static void test_event_after_deletion(void)
{
    struct log *log = story_written();
    story_delete_instance(log, 1);
    log->records[2].sequence = log->records[5].sequence = log->records[9].sequence = 0;
    for (uint64_t execution = 0; execution <= 2; execution += 2) {
        log->turns[1] = 0;
        for (int i = 0; i < 2; i++) {
            story_turn_in(log, 1, execution, false);
            (void)story_check_instance(log, 1);
            want(log, "the instance", "");
            (void)story_check(log);
            want(log, "all", "");
        }
    }
    log->turns[1] = 0;
    story_turn_in(log, 1, 0, false);
    (void)story_check_instance(log, 1);
    want(log, "an early event of an instance that is there", "missing 0");
    story_end(log);
}

static void test_pruning(void)
{
    struct log *log = story_written();
    log->turns[0] = 0, story_turn_in(log, 0, 2, false);
    log->turns[0] = 0, story_turn_in(log, 0, 3, true);
    story_turn_in(log, 0, 3, false);
    log->records[12].sequence = 0;
    (void)story_check(log);
    want(log, "pruned", "");
    (void)story_check_instance(log, 0);
    want(log, "the instance", "");
    log->records[13].sequence = 0;
    (void)story_check_instance(log, 0);
    want(log, "without saying so", "missing 15, missing 0");
    story_end(log);
}

static void test_old_versions(void)
{
    struct log *log = story_written();
    log->old = true;
    story_open_epoch(log);
    story_turn(log, 0), story_turn(log, 1);
    log->old = false;
    story_open_epoch(log);
    story_turn(log, 0), story_turn(log, 2);
    struct audit_summary summary = story_check(log);
    want(log, "in between", "");
    CU_ASSERT(summary.unchained == 3 && summary.unchained_from == 13 && summary.unchained_until == 15);
    (void)story_check_instance(log, 0);
    want(log, "the instance", "");
    story_end(log);

    log = calloc(1, sizeof *log);
    CU_ASSERT_PTR_NOT_NULL_FATAL(log);
    arena_init(&log->arena, 1 << 24);
    log->old = true;
    story_open_epoch(log);
    story_turn(log, 0), story_turn(log, 1);
    log->old = false;
    story_open_epoch(log);
    story_turn(log, 0);
    summary = story_check(log);
    want(log, "before", "");
    CU_ASSERT(summary.unchained == 2 && summary.unchained_from == 0 && summary.chained_from == 3);
    story_end(log);
}

/* Records that a rival stored at the end, and those after them, do not count. */
static void test_void(void)
{
    struct log *log = story_written(), *rival = story_written();
    log->committed_lag = 10;
    rival->epoch = 1;
    rival->n = 7;
    story_turn(rival, 1);
    log->records[log->len] = rival->records[rival->len - 1];
    log->len++;
    log->n++;
    log->sequence++;
    story_turn(log, 2);
    struct audit_summary const summary = story_check(log);
    want(log, "at the end", "");
    CU_ASSERT(summary.voids == 2 && summary.records == 12);
    story_open_epoch(log);
    (void)story_check(log);
    CU_ASSERT_EQUAL(strncmp(log->said, "added 13", 8), 0);
    story_end(rival);
    story_end(log);
}

/* ---- forged logs ---- */

static uint8_t *bytes_of(struct log *log, uint64_t sequence)
{
    return (uint8_t *)(uintptr_t)log->records[sequence - 1].bytes.ptr;
}

static void swap(struct log *log, size_t a, size_t b)
{
    thole_slice const bytes = log->records[a - 1].bytes;
    log->records[a - 1].bytes = log->records[b - 1].bytes;
    log->records[b - 1].bytes = bytes;
}

/* Another record in that place, with all numbers as they were. */
static void forge(struct log *log, uint64_t sequence, const char *data, bool links)
{
    struct record record;
    struct buf bytes;
    buf_init(&bytes, 1 << 16);
    CU_ASSERT_EQUAL(record_decode(log->records[sequence - 1].bytes, &log->arena, &record, NULL), THOLE_OK);
    struct event event = record.turn.events[0];
    event.data = thole_slice_from(data);
    record.turn.events = &event;
    if (!links)
        record.previous = record.previous_of_instance.hash = (struct record_hash){{0}};
    CU_ASSERT_EQUAL(record_encode(&record, &bytes), THOLE_OK);
    CU_ASSERT_EQUAL(arena_dup(&log->arena, buf_bytes(&bytes), &log->records[sequence - 1].bytes), THOLE_OK);
    buf_release(&bytes);
}

static void insert(struct log *log, size_t at, thole_slice bytes)
{
    memmove(&log->records[at], &log->records[at - 1], (log->len - at + 1) * sizeof log->records[0]);
    log->records[at - 1].bytes = bytes;
    log->len++;
    for (size_t i = 0; i < log->len; i++)
        log->records[i].sequence = i + 1;
}

static void take_out(struct log *log, size_t at)
{
    memmove(&log->records[at - 1], &log->records[at], (log->len - at) * sizeof log->records[0]);
    log->len--;
    for (size_t i = 0; i < log->len; i++)
        log->records[i].sequence = i + 1;
}

static void f_changed(struct log *log)
{
    forge(log, 4, "date", true);
}
static void f_changed_longer(struct log *log)
{
    forge(log, 4, "more data than there was", true);
}
static void f_changed_opening(struct log *log)
{
    *(uint8_t *)memchr(bytes_of(log, 8), 'e', log->records[7].bytes.len) ^= 1;
}
static void f_changed_first(struct log *log)
{
    forge(log, 2, "x", true);
}
static void f_stripped(struct log *log)
{
    forge(log, 4, "data", false);
}
static void f_removed(struct log *log)
{
    log->records[3].sequence = 0;
}
static void f_removed_last_of_instance(struct log *log)
{
    log->records[9].sequence = 0;
}
static void f_removed_opening(struct log *log)
{
    log->records[7].sequence = 0;
}
static void f_removed_epoch(struct log *log)
{
    story_open_epoch(log);
    story_turn(log, 0);
    for (size_t i = 7; i < 12; i++)
        log->records[i].sequence = 0;
}
static void f_removed_and_renumbered(struct log *log)
{
    take_out(log, 4);
}
static void f_beginning(struct log *log)
{
    for (size_t i = 0; i < 3; i++)
        log->records[i].sequence = 0;
}
static void f_beginning_epoch(struct log *log)
{
    for (size_t i = 0; i < 7; i++)
        log->records[i].sequence = 0;
}
static void f_swapped(struct log *log)
{
    swap(log, 4, 5);
}
static void f_swapped_far(struct log *log)
{
    swap(log, 3, 11);
}
static void f_copied_over(struct log *log)
{
    log->records[5].bytes = log->records[2].bytes;
}
static void f_inserted(struct log *log)
{
    insert(log, 5, log->records[2].bytes);
}
static void f_other_subject(struct log *log)
{
    log->records[3].instance = THOLE_STR("b");
}
static void f_other_execution(struct log *log)
{
    log->records[3].execution = 2;
}
static void f_other_kind(struct log *log)
{
    log->records[3].kind = RECORD_DELETED;
}
static void f_garbage(struct log *log)
{
    log->records[3].bytes = THOLE_STR("\xff\xff garbage");
}
static void f_empty(struct log *log)
{
    log->records[3].bytes = (thole_slice){0};
}

static const struct forgery {
    const char *name;
    void (*forge)(struct log *log);
    const char *found;
} forgeries[] = {
    {"a record's payload is another", f_changed, "changed 4"},
    {"a record's payload is longer", f_changed_longer, "changed 4"},
    {"an opening names another node", f_changed_opening, "changed 8"},
    {"the first turn is another", f_changed_first, "changed 2"},
    {"a record is without hashes", f_stripped, "changed 4"},
    {"a record is removed", f_removed, "missing 4, missing 0"},
    {"an instance's last record is removed", f_removed_last_of_instance, "missing 10"},
    {"an opening is removed", f_removed_opening, "missing 0"},
    {"an epoch is removed", f_removed_epoch, "missing 8"},
    {"a record is taken out and the rest moved up", f_removed_and_renumbered, "missing 4"},
    {"the beginning is removed", f_beginning, "truncated 4"},
    {"the first epoch is removed", f_beginning_epoch, "truncated 8"},
    {"two neighbours have changed places", f_swapped, "reordered 4"},
    {"two records of two epochs have changed places", f_swapped_far, "reordered 3"},
    {"a record is repeated in another's place", f_copied_over, "added 6"},
    {"a record is repeated in between", f_inserted, "added 5"},
    {"a record is under another instance", f_other_subject, "replayed 4"},
    {"a record is under another execution", f_other_execution, "replayed 4"},
    {"a turn is under the subject of deletions", f_other_kind, "replayed 4"},
    {"garbage stands for a record", f_garbage, "unreadable 4"},
    {"nothing stands for a record", f_empty, "unreadable 4"},
};

/* The first finding names it; what follows from it may be named too. */
static void test_forgeries(void)
{
    for (size_t i = 0; i < ARRAY_LEN(forgeries); i++) {
        struct log *log = story_written();
        forgeries[i].forge(log);
        (void)story_check(log);
        size_t const len = strlen(forgeries[i].found);
        bool const named = strncmp(log->said, forgeries[i].found, len) == 0 &&
                           (log->said[len] == '\0' || log->said[len] == ',');
        if (!named)
            want(log, forgeries[i].name, forgeries[i].found);
        CU_ASSERT_TRUE(named);
        story_end(log);
    }
}

static void test_another_stream(void)
{
    struct log *log = story_written();
    (void)story_check_as(log, "other", 3);
    want(log, "namespace", "replayed 1");
    (void)story_check_as(log, "ns", 4);
    want(log, "partition", "replayed 1");
    story_end(log);
}

/* Each bit of each record but the last, which nothing names. */
static void test_every_bit(void)
{
    struct log *log = story_written();
    for (size_t r = 0; r + 1 < log->len; r++)
        for (size_t bit = 0; bit < 8 * log->records[r].bytes.len; bit++) {
            bytes_of(log, r + 1)[bit / 8] ^= (uint8_t)(1u << bit % 8);
            if (story_check(log).findings == 0) {
                (void)printf("\n  bit %zu of record #%zu\n", bit, r + 1);
                CU_FAIL("a flipped bit is not found");
            }
            bytes_of(log, r + 1)[bit / 8] ^= (uint8_t)(1u << bit % 8);
        }
    (void)story_check(log);
    want(log, "as it was", "");
    story_end(log);
}

static void test_every_bit_of_an_instance(void)
{
    struct log *log = story_written();
    for (size_t r = 0; r + 1 < log->len; r++)
        for (size_t bit = 0; bit < 8 * log->records[r].bytes.len && log->records[r].instance.len > 0 &&
                             log->records[r].instance.ptr[0] == 'a';
             bit++) {
            bytes_of(log, r + 1)[bit / 8] ^= (uint8_t)(1u << bit % 8);
            if (story_check_instance(log, 0).findings == 0) {
                (void)printf("\n  bit %zu of record #%zu\n", bit, r + 1);
                CU_FAIL("a flipped bit is not found");
            }
            bytes_of(log, r + 1)[bit / 8] ^= (uint8_t)(1u << bit % 8);
        }
    story_end(log);
}

static void test_instance_forgeries(void)
{
    static const struct forgery rows[] = {
        {"changed", f_changed, "changed 4"},    {"stripped", f_stripped, "changed 4"},
        {"removed", f_removed, "missing 9"},    {"the first is removed", f_beginning, "truncated 4"},
        {"garbage", f_garbage, "unreadable 4"}, {"copied over", f_changed_longer, "changed 4"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct log *log = story_written();
        rows[i].forge(log);
        (void)story_check_instance(log, 0);
        size_t const len = strlen(rows[i].found);
        if (strncmp(log->said, rows[i].found, len) != 0)
            want(log, rows[i].name, rows[i].found);
        CU_ASSERT_EQUAL(strncmp(log->said, rows[i].found, len), 0);
        story_end(log);
    }
}

/* The n-th number of a seed (SplitMix64). */
static uint64_t draw(uint64_t seed, uint64_t n)
{
    uint64_t x = seed * UINT64_C(0x9e3779b97f4a7c15) + n * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

/* One bit of one of 10,000 records: of 500 seeds (20 with sanitizers, which find nothing new in more), in
 * each a record and a bit of it. The last record is in unit.seal: no record names it. */
static void test_ten_thousand(void)
{
    enum { RECORDS = 10000, SEEDS = SANITIZED ? 20 : 500 };
    struct log *log = story_written();
    while (log->len < RECORDS)
        if (log->len % 1000 == 0)
            story_open_epoch(log);
        else
            story_turn(log, log->len % LOG_INSTANCES);
    (void)story_check(log);
    CU_ASSERT_STRING_EQUAL(log->said, "");
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        const struct audit_record *record = &log->records[draw(seed, 1) % (RECORDS - 1)];
        uint64_t const bit = draw(seed, 2) % (8 * record->bytes.len);
        uint8_t *byte = (uint8_t *)(uintptr_t)record->bytes.ptr + bit / 8;
        *byte ^= (uint8_t)(1u << bit % 8);
        (void)story_check(log);
        if (log->findings == 0)
            printf("\n  seed %d: bit %d of record %d\n", (int)seed, (int)bit, (int)record->sequence);
        CU_ASSERT(log->findings > 0);
        *byte ^= (uint8_t)(1u << bit % 8);
    }
    story_end(log);
}

static const struct thole_test tests[] = {
    {"a bit of 10,000 records", test_ten_thousand},
    {"what is right", test_right},
    {"a deletion", test_deletion},
    {"an event after a deletion", test_event_after_deletion},
    {"a pruning", test_pruning},
    {"records of older versions", test_old_versions},
    {"void records", test_void},
    {"forgeries", test_forgeries},
    {"another stream", test_another_stream},
    {"every bit", test_every_bit},
    {"every bit of an instance", test_every_bit_of_an_instance},
    {"forgeries of an instance", test_instance_forgeries},
};
THOLE_TEST_MAIN("audit", tests)
