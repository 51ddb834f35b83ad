/* The records that a removal takes from a stream: all intended ones and no others, however wrong the places
 * are that records name, in whatever order answers come, and wherever it was cut off. */
#include "removing.h"
#include "thole_cunit.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RECORDS_MAX = 12000, TEXT_MAX = 512, OUT_MAX = 8, ASKS_MAX = 100000 };
#define OTHER UINT64_MAX

struct stored {
    uint64_t execution; /* OTHER: of another instance */
    uint64_t before;    /* the place that it names */
    bool there;
};

static struct {
    struct stored records[RECORDS_MAX + 1]; /* by sequence */
    uint64_t len;
    size_t asks[REMOVING_DELETE + 1];
    size_t deletions;
    uint64_t last_deleted; /* sequence */
    bool descends;         /* an older record goes after a newer one, and did not come early */
    bool deaf;             /* nothing is removed */
    bool forgets;          /* unanswered deletions are not done */
    bool pages;            /* lists come in several answers */
    uint64_t stale;        /* a replica that lags still has this one */
    uint32_t random;
} stream;

static void stream_fill(uint64_t records, uint64_t every, uint64_t of_execution);
static uint64_t known_places[REMOVING_KNOWN + 1]; /* 0: no more */

/* "1 1 2/1 x d": executions; after a slash the place that the record names, without one the right one; "x":
 * of another instance, "d": a deletion, "." no longer stored. */
static void stream_write(const char *text)
{
    uint64_t previous = 0;
    memset(&stream, 0, sizeof stream);
    for (const char *at = text; *at != '\0'; at += strcspn(at, " "), at += strspn(at, " ")) {
        struct stored *const to = &stream.records[++stream.len];
        const char *const slash = memchr(at, '/', strcspn(at, " "));
        *to = (struct stored){strtoul(at, NULL, 10), previous, *at != '.'};
        if (*at == 'x')
            to->execution = OTHER;
        if (*at == 'd')
            to->execution = REMOVING_DELETIONS;
        if (slash != NULL)
            to->before = strtoul(slash + 1, NULL, 10);
        if (*at != 'x')
            previous = stream.len;
    }
}

/* The remaining records, by their sequences. */
static const char *stream_text(void)
{
    static char text[TEXT_MAX];
    size_t len = 0;
    text[0] = '\0';
    for (uint64_t s = 1; s <= stream.len && len < TEXT_MAX - 16; s++)
        if (stream.records[s].there && stream.records[s].execution != OTHER)
            len += (size_t)snprintf(text + len, TEXT_MAX - len, "%s%llu", len == 0 ? "" : " ",
                                    (unsigned long long)s);
    return text;
}

/* ---- answers ---- */

static void answer_list(struct removing *removing)
{
    static uint64_t counts[RECORDS_MAX + 2];
    memset(counts, 0, sizeof counts);
    for (uint64_t s = 1; s <= stream.len; s++) {
        uint64_t const execution = stream.records[s].execution;
        if (stream.records[s].there && execution != OTHER)
            counts[execution == REMOVING_DELETIONS ? RECORDS_MAX + 1 : execution]++;
    }
    for (size_t i = RECORDS_MAX + 2; i-- > 0;) /* in no order that would help */
        if (counts[i] > 0)
            removing_item(removing, i == RECORDS_MAX + 1 ? REMOVING_DELETIONS : i, counts[i]);
    removing_listed(removing, !stream.pages);
}

static void answer_record(struct removing *removing, const struct removing_ask *ask)
{
    struct removing_record record = {.sequence = 0};
    uint64_t found = 0;
    for (uint64_t s = 1; s <= stream.len && ask->kind != REMOVING_AT; s++)
        if (stream.records[s].there && stream.records[s].execution == ask->execution) {
            found = s;
            if (ask->kind == REMOVING_FIRST)
                break;
        }
    if (ask->kind == REMOVING_AT && ask->sequence <= stream.len &&
        (stream.records[ask->sequence].there || stream.stale == ask->sequence))
        found = ask->sequence;
    if (found > 0)
        record = (struct removing_record){found, stream.records[found].execution != OTHER,
                                          stream.records[found].execution, stream.records[found].before};
    removing_found(removing, ask->unit, &record);
}

static void answer_scan(struct removing *removing, const struct removing_ask *ask)
{
    bool all = true;
    for (uint64_t s = 1; s <= ask->sequence && s <= stream.len && all; s++)
        if (stream.records[s].there && stream.records[s].execution == ask->execution)
            all = removing_met(removing, ask->unit, s);
    removing_scanned(removing, ask->unit, all);
}

static void answer_delete(struct removing *removing, const struct removing_ask *ask)
{
    bool was_there = false;
    for (size_t i = 0; i < ask->n; i++) {
        struct stored *const record = &stream.records[ask->sequences[i]];
        bool const answered = i + 1 == ask->n;
        was_there = record->there && !stream.deaf && (answered || !stream.forgets);
        CU_ASSERT_NOT_EQUAL(record->execution, OTHER);
        record->there &= !was_there;
        stream.deletions++;
    }
    removing_deleted(removing, ask->n, was_there);
}

static void answer_ask(struct removing *removing, const struct removing_ask *ask)
{
    stream.asks[ask->kind]++;
    switch (ask->kind) {
    case REMOVING_LIST: answer_list(removing); break;
    case REMOVING_LAST:
    case REMOVING_FIRST:
    case REMOVING_AT: answer_record(removing, ask); break;
    case REMOVING_SCAN: answer_scan(removing, ask); break;
    case REMOVING_DELETE: answer_delete(removing, ask); break;
    }
}

static void note_asked(const struct removing_ask *ask)
{
    if (ask->kind != REMOVING_DELETE)
        return;
    for (size_t i = 0; i < ask->n; i++) {
        uint64_t const sequence = ask->sequences[i];
        stream.descends |= sequence < stream.last_deleted && stream.records[sequence].execution != 0;
        stream.last_deleted = sequence;
    }
}

/* At most so many answers, in any order. */
static enum removing_state run_some(struct executions executions, uint64_t below, size_t most)
{
    struct removing_ask out[OUT_MAX];
    size_t len = 0, answers = 0;
    struct removing *const removing = removing_create(executions, below);
    for (size_t i = 0; known_places[i] > 0; i++)
        removing_know(removing,
                      (struct removing_place){stream.records[known_places[i]].execution, known_places[i]});
    while (answers < most && removing_state(removing) == REMOVING_GOES) {
        for (; len < OUT_MAX && removing_next(removing, &out[len]); len++)
            note_asked(&out[len]);
        CU_ASSERT(len > 0);
        if (len == 0)
            break;
        stream.random = stream.random * 1664525 + 1013904223;
        size_t const at = (stream.random >> 16) % len;
        struct removing_ask const ask = out[at];
        out[at] = out[--len];
        answer_ask(removing, &ask);
        answers++;
    }
    enum removing_state const state = removing_state(removing);
    removing_destroy(removing);
    return state;
}

static enum removing_state run_all(struct executions executions, uint64_t below)
{
    return run_some(executions, below, ASKS_MAX);
}

/* ---- tests ---- */

static const struct removing_case {
    const char *name, *records;
    struct executions executions;
    uint64_t below;
    const char *left;
    bool scans; /* places that do not lead to all records are detected */
} cases[] = {
    {"a deletion", "1 1 1 d", {0, 0}, 4, "4", false},
    {"among others", "x 1 x x 1 x d x", {0, 0}, 7, "7", false},
    {"its first record", "1 d", {0, 0}, 2, "2", false},
    {"nothing is left", "x d x", {0, 0}, 2, "2", false},
    {"several executions", "1 1 2 3 3 3 d", {0, 0}, 7, "7", false},
    {"the next incarnation", "1 1 d 2 2", {0, 0}, 3, "3 4 5", false},
    {"a deletion before", "d 2 2 d", {0, 0}, 4, "4", false},
    {"deletions before", "d x d 2 d", {0, 0}, 5, "5", false},
    {"a deletion behind", "1 d 2 d", {0, 0}, 2, "2 3 4", false},
    {"one before, one behind", "d 2 d 3 d", {0, 0}, 3, "3 4 5", false},
    {"early events", "0 0 1 1 d", {0, 0}, 5, "5", false},
    {"early events between", "0 1 0 1 0 1 d", {0, 0}, 7, "7", false},
    {"early events behind", "0 1 d 0 0", {0, 0}, 3, "3 4 5", false},
    {"early events alone", "0 0 d 0", {0, 0}, 3, "3 4", false},
    {"a pruning", "1 1 2 2 3 4 4", {1, 3}, 7, "1 2 6 7", false},
    {"a pruning that others follow", "1 2 3 4 5 6", {1, 2}, 4, "1 3 4 5 6", false},
    {"a pruning again", "1 . . 4 4 5 6", {1, 5}, 7, "1 7", false},
    {"a pruning that was done", "1 . . 4", {1, 3}, 4, "1 4", false},
    {"a pruning of a later incarnation", "d 3 3 4 5", {3, 4}, 5, "1 2 3 5", false},
    {"no places", "1/0 1/0 1/0 d/0", {0, 0}, 4, "4", true},
    {"places from some record on", "1/0 1/0 1 1 d", {0, 0}, 5, "5", true},
    {"no places, pruned", "1/0 2/0 2/0 3/0", {1, 2}, 4, "1 4", true},
    {"a place of another instance", "1 x 1/2 d", {0, 0}, 4, "4", true},
    {"a place of nothing", "1 . 1/2 d", {0, 0}, 4, "4", true},
    {"a place behind", "1 1/5 1 d x", {0, 0}, 4, "4", true},
    {"its own place", "1 1/2 d", {0, 0}, 3, "3", true},
    {"a place that leaves out one", "1 1 1/1 d", {0, 0}, 4, "4", true},
    {"a place of an execution that stays", "1 2 2/1 3", {1, 2}, 4, "1 4", true},
    {"a place by way of another", "2 1/1 2/2 d", {0, 0}, 4, "4", false},
};

static void removing_check(const struct removing_case *c, const char *how, enum removing_state state)
{
    char name[TEXT_MAX];
    (void)snprintf(name, sizeof name, "%s%s", c->name, how);
    CHECK_STR(name, stream_text(), c->left);
    CU_ASSERT_EQUAL(state, REMOVING_DONE);
}

static void test_what_goes(void)
{
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        stream_write(cases[i].records);
        removing_check(&cases[i], "", run_all(cases[i].executions, cases[i].below));
        bool const scans = stream.asks[REMOVING_SCAN] > 0;
        if (scans != cases[i].scans)
            fprintf(stderr, "\n  %s: scans %d\n", cases[i].name, scans);
        CU_ASSERT_EQUAL(scans, cases[i].scans);
        CU_ASSERT_FALSE(stream.descends && !scans);
    }
}

/* A second removal does not know how far the first one has got. */
static void test_cut_off(void)
{
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        for (size_t cut = 0;; cut++) {
            stream_write(cases[i].records);
            stream.random = (uint32_t)cut;
            bool const ended = run_some(cases[i].executions, cases[i].below, cut) != REMOVING_GOES;
            removing_check(&cases[i], ", cut off", run_all(cases[i].executions, cases[i].below));
            if (ended)
                break;
        }
}

static void test_lists_in_pages(void)
{
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        stream_write(cases[i].records);
        stream.pages = true;
        removing_check(&cases[i], ", in pages", run_all(cases[i].executions, cases[i].below));
        CU_ASSERT(stream.asks[REMOVING_LIST] > 1 || stream.asks[REMOVING_DELETE] == 0);
    }
}

/* An absent record does not count for one that exists. */
static void test_replica_behind(void)
{
    stream_write("1 . 1 d");
    stream.records[2] = (struct stored){1, 1, false};
    stream.records[3].before = 2;
    stream.stale = 2;
    CU_ASSERT_EQUAL(run_all((struct executions){0, 0}, 4), REMOVING_DONE);
    CHECK_STR("left", stream_text(), "4");
}

static void test_nothing_goes(void)
{
    stream_write("1 1 d");
    stream.deaf = true;
    CU_ASSERT_EQUAL(run_all((struct executions){0, 0}, 3), REMOVING_STUCK);
    CU_ASSERT_EQUAL(stream.asks[REMOVING_LIST], 2);
    CU_ASSERT_EQUAL(stream.asks[REMOVING_SCAN], 1);
}

/* Deletions without an answer that were not done are seen in the next list, and then each answer is looked
 * at. */
static void test_untold(void)
{
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        stream_write(cases[i].records);
        stream.forgets = true;
        removing_check(&cases[i], ", forgotten", run_all(cases[i].executions, cases[i].below));
    }
    stream_write("1 1 1 1 1 1 d");
    stream.deaf = true;
    CU_ASSERT_EQUAL(run_all((struct executions){0, 0}, 7), REMOVING_STUCK);
    CU_ASSERT(stream.asks[REMOVING_LIST] <= 4);
}

/* A list is dearer than answers where most of what it names stays. */
static void test_few_of_many(void)
{
    stream_fill(2000, 1, 1);
    CU_ASSERT_EQUAL(run_all((struct executions){1, 11}, RECORDS_MAX), REMOVING_DONE);
    CU_ASSERT_EQUAL(stream.asks[REMOVING_LIST], 1);
    CU_ASSERT_EQUAL(stream.asks[REMOVING_DELETE], 10);
}

/* ---- places that are known ---- */

static enum removing_state run_known(const char *records, uint64_t below, const char *known)
{
    stream_write(records);
    memset(known_places, 0, sizeof known_places);
    for (size_t i = 0; *known != '\0'; known += strcspn(known, " "), known += strspn(known, " "))
        known_places[i++] = strtoul(known, NULL, 10);
    enum removing_state const state = run_all((struct executions){0, 0}, below);
    memset(known_places, 0, sizeof known_places);
    return state;
}

static void test_known_places(void)
{
    static const struct known_case {
        const char *name, *records;
        uint64_t below;
        const char *known, *left;
        size_t looks; /* at single records, after the last one */
    } known_cases[] = {
        {"all", "1 x 1 x 1 1 d", 7, "1 3 5 6", "7", 0},
        {"one too few", "1 x 1 x 1 1 d", 7, "3 5 6", "7", 0},
        {"one that was removed", "1 x . x 1 1 d", 7, "1 3 5 6", "7", 0},
        {"another last one", "1 x 1 x 1 1 d", 7, "1 3 5", "7", 3},
        {"early events", "0 0 1 1 1 d", 6, "1 2 3 4 5", "6", 0},
        {"a later incarnation", "1 x 1 d 2 2", 4, "1 3", "4 5 6", 0},
        {"nothing is left", ". . d", 3, "1 2", "3", 0},
    };
    for (size_t i = 0; i < ARRAY_LEN(known_cases); i++) {
        const struct known_case *const c = &known_cases[i];
        CU_ASSERT_EQUAL(run_known(c->records, c->below, c->known), REMOVING_DONE);
        CHECK_STR(c->name, stream_text(), c->left);
        if (stream.asks[REMOVING_AT] != c->looks)
            fprintf(stderr, "\n  %s: %zu looks\n", c->name, stream.asks[REMOVING_AT]);
        CU_ASSERT_EQUAL(stream.asks[REMOVING_AT], c->looks);
    }
}

/* One of its records in @p every. */
static void stream_fill(uint64_t records, uint64_t every, uint64_t of_execution)
{
    uint64_t previous = 0;
    memset(&stream, 0, sizeof stream);
    for (uint64_t i = 0; i < records; i++) {
        uint64_t const s = 1 + i * every;
        for (uint64_t k = s + 1; k < s + every && k <= RECORDS_MAX; k++)
            stream.records[k] = (struct stored){OTHER, 0, true};
        stream.records[s] = (struct stored){1 + i / of_execution, previous, true};
        previous = s;
        stream.len = s;
    }
}

/* Side by side they are read in order, in pieces; far from each other one by one, which costs what they are.
 */
static void test_long_executions(void)
{
    stream_fill(10000, 1, 10000);
    CU_ASSERT_EQUAL(run_all((struct executions){0, 0}, RECORDS_MAX), REMOVING_DONE);
    CHECK_STR("left", stream_text(), "");
    CU_ASSERT_EQUAL(stream.asks[REMOVING_SCAN], 3);
    CU_ASSERT_FALSE(stream.descends);

    stream_fill(1000, 1, 1000);
    CU_ASSERT_EQUAL(run_all((struct executions){0, 0}, RECORDS_MAX), REMOVING_DONE);
    CHECK_STR("left", stream_text(), "");
    CU_ASSERT_EQUAL(stream.asks[REMOVING_SCAN], 1);
    CU_ASSERT(stream.asks[REMOVING_AT] < 100);

    stream_fill(200, 50, 200);
    CU_ASSERT_EQUAL(run_all((struct executions){0, 0}, RECORDS_MAX), REMOVING_DONE);
    CHECK_STR("left", stream_text(), "");
    CU_ASSERT_EQUAL(stream.asks[REMOVING_SCAN], 0);
    CU_ASSERT_EQUAL(stream.asks[REMOVING_AT], 199);
}

/* More than are kept in mind at a time: the oldest go first. */
static void test_many_executions(void)
{
    stream_fill(10000, 1, 2);
    CU_ASSERT_EQUAL(run_all((struct executions){1, 4999}, RECORDS_MAX), REMOVING_DONE);
    CHECK_STR("left", stream_text(), "1 2 9999 10000");
    CU_ASSERT_EQUAL(stream.asks[REMOVING_LIST], 2);
    CU_ASSERT_FALSE(stream.descends);
    CU_ASSERT_EQUAL(stream.asks[REMOVING_LAST], 4998);
    CU_ASSERT_EQUAL(stream.deletions, 9996);
    CU_ASSERT(stream.asks[REMOVING_DELETE] < 9996 / REMOVING_GROUP + REMOVING_GROUP);
    CU_ASSERT_EQUAL(stream.asks[REMOVING_SCAN], 0);
}

static const struct thole_test tests[] = {
    {"what goes", test_what_goes},
    {"cut off", test_cut_off},
    {"lists in pages", test_lists_in_pages},
    {"a replica that has fallen behind", test_replica_behind},
    {"nothing goes", test_nothing_goes},
    {"what is told is not done", test_untold},
    {"few of many", test_few_of_many},
    {"known places", test_known_places},
    {"long executions", test_long_executions},
    {"many executions", test_many_executions},
};
THOLE_TEST_MAIN("removing", tests)
