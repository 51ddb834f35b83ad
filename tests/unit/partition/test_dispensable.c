/* Which records of a log may go, and when a list of them is worth a record. */
#include "dispensable.h"
#include "folding.h"
#include "thole_cunit.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NOW = 1000 * 1000, KEEP = 100 * 1000, ROOM = 4096 };

static struct buf bytes;

static thole_slice encoded(const struct record *record)
{
    buf_clear(&bytes);
    CU_ASSERT_EQUAL(record_encode(record, &bytes), THOLE_OK);
    return buf_bytes(&bytes);
}

static struct dispensable *look(uint64_t below, uint64_t published, uint64_t looked)
{
    struct out_find_dispensable const asked = {below, published, looked, NOW - KEEP};
    return dispensable_create(&asked, THOLE_STR("ns"), 3);
}

static bool opening(struct dispensable *d, uint64_t sequence, uint64_t previous_epoch, uint64_t counted)
{
    struct record const record = {.kind = RECORD_EPOCH_OPENED,
                                  .epoch = previous_epoch + 1,
                                  .previous_epoch = previous_epoch,
                                  .counted = counted};
    return dispensable_control(d, sequence, encoded(&record));
}

static bool position(struct dispensable *d, uint64_t sequence)
{
    struct record const record = {.kind = RECORD_POSITION, .epoch = 1, .n = 1};
    return dispensable_control(d, sequence, encoded(&record));
}

static bool list(struct dispensable *d, uint64_t sequence, uint64_t time_ms)
{
    static const uint64_t one = 1;
    static const uint8_t hash[FOLDED_HASH_BYTES];
    struct record const record = {
        .kind = RECORD_POSITION, .epoch = 1, .n = 1, .folded = {&one, 1, {hash, sizeof hash}, 0, 0, time_ms}};
    return dispensable_control(d, sequence, encoded(&record));
}

static enum dispensable_verdict deletion(struct dispensable *d, uint64_t sequence, uint64_t time_ms,
                                         bool last)
{
    struct record const record = {
        .kind = RECORD_DELETED,
        .epoch = 1,
        .n = 1,
        .deletion = {.instance = THOLE_STR("a"), .execution = 1, .time_ms = time_ms}};
    return dispensable_deletion(d, sequence, encoded(&record), last);
}

/* All epochs that may go are empty, but those with a record at one of these places. */
static void epochs(struct dispensable *d, uint64_t held)
{
    uint64_t from, until;
    while (dispensable_next_epoch(d, &from, &until))
        if (!(held > from && held < until))
            dispensable_epoch(d);
}

/* "2 5 9", then the deletions, the newest of them, and how far was looked. Static. Ends the look. */
static const char *said(struct dispensable *d)
{
    static char text[ROOM];
    struct in_dispensable const in = dispensable_list(d);
    size_t len = 0;
    text[0] = '\0';
    for (size_t i = 0; i < in.len && len < sizeof text - 64; i++)
        len += (size_t)snprintf(text + len, sizeof text - len, "%llu ", (unsigned long long)in.sequences[i]);
    (void)snprintf(text + len, sizeof text - len, "| %zu %llu %llu%s", in.deletions,
                   (unsigned long long)in.deleted, (unsigned long long)in.looked, in.more ? " more" : "");
    CU_ASSERT_EQUAL(in.hashes.len, in.len * FOLDED_HASH_BYTES);
    dispensable_destroy(d);
    return text;
}

static void says(const char *row, struct dispensable *d, const char *want)
{
    const char *const got = said(d);
    CHECK_STR(row, got, want);
}

static void test_positions(void)
{
    struct dispensable *d = look(10, 0, 0);
    CU_ASSERT_TRUE(opening(d, 1, 0, 0));
    CU_ASSERT_TRUE(position(d, 2));
    CU_ASSERT_TRUE(position(d, 9));
    CU_ASSERT_FALSE(position(d, 10)); /* not committed yet */
    epochs(d, 0);
    says("positions", d, "2 9 | 0 0 0");
}

static void test_epochs(void)
{
    struct dispensable *d = look(100, 0, 0);
    (void)opening(d, 1, 0, 0); /* the log's first: it stays */
    (void)opening(d, 10, 1, 5);
    (void)opening(d, 20, 2, 9); /* holds a record */
    (void)opening(d, 30, 3, 20);
    (void)opening(d, 40, 4, 0); /* of a version that did not count: the one before it stays, too */
    (void)opening(d, 50, 5, 30);
    (void)opening(d, 60, 6, 31); /* the newest */
    epochs(d, 25);
    says("epochs", d, "10 40 50 | 0 0 0");
}

static void test_lists(void)
{
    struct dispensable *d = look(100, 0, 0);
    (void)opening(d, 1, 0, 0);
    (void)opening(d, 10, 1, 5);
    CU_ASSERT_TRUE(list(d, 12, NOW - KEEP - 2)); /* old */
    CU_ASSERT_TRUE(list(d, 15, NOW - KEEP - 1)); /* old, too, and the next is stored */
    CU_ASSERT_FALSE(list(d, 22, NOW - KEEP));    /* young: it stays, and all that follow it */
    (void)opening(d, 20, 2, 9);
    (void)opening(d, 30, 3, 20);
    epochs(d, 22);
    says("lists", d, "10 12 15 | 0 0 0");
    d = look(100, 0, 0);
    CU_ASSERT_TRUE(list(d, 12, NOW - KEEP - 2));
    CU_ASSERT_TRUE(list(d, 15, NOW - KEEP - 1)); /* the newest of all */
    says("the newest list", d, "12 | 0 0 0");
}

static void test_deletions(void)
{
    struct dispensable *d = look(100, 60, 10);
    CU_ASSERT_EQUAL(deletion(d, 11, NOW - KEEP - 5, true), DISPENSABLE_LISTED);
    CU_ASSERT_EQUAL(deletion(d, 12, NOW - KEEP - 5, false), DISPENSABLE_PASSED); /* the id lives again */
    CU_ASSERT_EQUAL(deletion(d, 13, NOW - KEEP - 1, true), DISPENSABLE_LISTED);
    CU_ASSERT_EQUAL(dispensable_deletion(d, 14, THOLE_STR("\xff\xff"), true), DISPENSABLE_PASSED);
    CU_ASSERT_EQUAL(deletion(d, 20, NOW - KEEP, true), DISPENSABLE_YOUNG);
    says("deletions", d, "11 13 | 2 13 14");
    d = look(100, 60, 10);
    CU_ASSERT_EQUAL(deletion(d, 61, 1, true), DISPENSABLE_YOUNG); /* something still follows from it */
    says("not done", d, "| 0 0 10");
    d = look(50, 60, 10);
    CU_ASSERT_EQUAL(deletion(d, 50, 1, true), DISPENSABLE_YOUNG);
    says("not committed", d, "| 0 0 10");
}

static void test_many(void)
{
    struct dispensable *d = look(UINT64_MAX, UINT64_MAX, 0);
    uint64_t s = 1;
    for (int i = 0; i < DISPENSABLE_CONTROLS_MAX; i++)
        CU_ASSERT_TRUE(position(d, s++));
    CU_ASSERT_FALSE(position(d, s));
    for (int i = 0; i < DISPENSABLE_DELETIONS_MAX; i++)
        CU_ASSERT_EQUAL(deletion(d, s++, 1, true), DISPENSABLE_LISTED);
    CU_ASSERT_EQUAL(deletion(d, s, 1, true), DISPENSABLE_FULL);
    struct in_dispensable const in = dispensable_list(d);
    CU_ASSERT_EQUAL(in.len, FOLDED_MAX);
    CU_ASSERT_TRUE(in.more);
    CU_ASSERT_EQUAL(in.looked, s - 1);
    dispensable_destroy(d);
}

/* ---- when ---- */

static struct folding begun(uint64_t keep_ms)
{
    struct folding folding = {.by_all = true};
    folding_open(&folding, keep_ms, 7, 9, NOW);
    return folding;
}

static void test_when_to_look(void)
{
    struct out_find_dispensable asked = {.below = 100};
    struct folding folding = begun(0);
    CU_ASSERT_EQUAL(folding_due_ms(&folding), UINT64_MAX); /* for ever */
    folding = begun(KEEP);
    CU_ASSERT_EQUAL(folding_due_ms(&folding), NOW + KEEP / 168);
    folding.by_all = false; /* one engine does not read lists */
    CU_ASSERT_EQUAL(folding_due_ms(&folding), UINT64_MAX);
    folding = begun(UINT64_C(7) * 24 * 3600 * 1000);
    CU_ASSERT_EQUAL(folding_due_ms(&folding), NOW + 600 * 1000);
    folding_ask(&folding, NOW, &asked);
    CU_ASSERT(asked.looked == 9 && asked.below == 100 && asked.before_ms == 0);
    CU_ASSERT_EQUAL(folding_due_ms(&folding), UINT64_MAX); /* one at a time */
}

static void test_what_is_worth_it(void)
{
    static const uint64_t sequences[FOLDED_MAX] = {2, 3, 4, 5};
    struct folded folded;
    size_t gone;
    struct folding folding = begun(KEEP);
    CU_ASSERT_FALSE(folding_take(&folding, &(struct in_dispensable){.len = 0}, NOW, &folded));
    CU_ASSERT_FALSE(
        folding_take(&folding, &(struct in_dispensable){.sequences = sequences, .len = 3}, NOW, &folded));
    CU_ASSERT_TRUE(
        folding_take(&folding, &(struct in_dispensable){.sequences = sequences, .len = 4}, NOW, &folded));
    CU_ASSERT(folded.deleted == 7 && folded.looked == 9 && folded.time_ms == NOW);
    struct in_dispensable const one = {
        .sequences = sequences, .len = 1, .deletions = 1, .deleted = 20, .looked = 22};
    CU_ASSERT_TRUE(folding_take(&folding, &one, NOW, &folded));
    CU_ASSERT(folded.deleted == 20 && folded.looked == 22);
    folding_listed(&folding, &folded, 50, NOW);
    CU_ASSERT_EQUAL(folding_due_ms(&folding), UINT64_MAX); /* until they are removed */
    CU_ASSERT_FALSE(folding_removed(&folding, 49, &gone));
    CU_ASSERT_TRUE(folding_removed(&folding, 50, &gone));
    CU_ASSERT_EQUAL(gone, 1);
    CU_ASSERT_EQUAL(folding_due_ms(&folding), NOW + KEEP / 168);
    CU_ASSERT_FALSE(folding_take(&folding, &one, NOW + 1, &folded)); /* so soon only when there are many */
    struct in_dispensable many = one;
    many.more = true;
    folding.by_all = false; /* an older engine has come since it was asked */
    CU_ASSERT_FALSE(folding_take(&folding, &many, NOW + 1, &folded));
    folding.by_all = true;
    CU_ASSERT_TRUE(folding_take(&folding, &many, NOW + 1, &folded));
    CU_ASSERT_EQUAL(folding_due_ms(&folding), NOW + 1 + KEEP / 168); /* if it cannot be appended now */
    folding_listed(&folding, &folded, 60, NOW + 1);
    CU_ASSERT_TRUE(folding_removed(&folding, 60, &gone));
    CU_ASSERT_EQUAL(folding_due_ms(&folding), NOW + 1);
}

static const struct thole_test tests[] = {
    {"positions", test_positions},
    {"epochs", test_epochs},
    {"lists", test_lists},
    {"deletions", test_deletions},
    {"many", test_many},
    {"when to look", test_when_to_look},
    {"what is worth it", test_what_is_worth_it},
};

int main(void)
{
    buf_init(&bytes, RECORD_BYTES_MAX);
    int const failed = thole_run_suite("dispensable", tests, ARRAY_LEN(tests));
    buf_release(&bytes);
    return failed;
}
