/* The small parts of the partition machine: inbox position, timers, ownership. */
#include "coro.h"
#include "instances_state.h"
#include "lease_table.h"
#include "ownership.h"
#include "partition.h"
#include "partition_log.h"
#include "progress.h"
#include "projection_state.h"
#include "sanitized.h"
#include "thole_cunit.h"
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *render(const struct progress *progress)
{
    static char text[256];
    int n = snprintf(text, sizeof text, "%llu", (unsigned long long)progress->floor);
    struct position const position = progress_position(progress);
    for (size_t i = 0; i < position.ranges_len; i++) {
        unsigned long long const first = position.ranges[i].first, last = position.ranges[i].last;
        n += snprintf(text + n, sizeof text - (size_t)n, first == last ? " %llu" : " %llu-%llu", first, last);
    }
    return text;
}

static const struct progress_case {
    const char *name;
    uint64_t floor;
    struct sequence_range above[4];
    uint64_t above_len, add[8], add_len;
    const char *expected;
} progress_cases[] = {
    {"in order", 0, {{0, 0}}, 0, {1, 2, 3}, 3, "3"},
    {"out of order", 0, {{0, 0}}, 0, {3, 1}, 2, "1 3"},
    {"a gap closes", 0, {{0, 0}}, 0, {3, 2, 1}, 3, "3"},
    {"a gap closes up to the next", 0, {{0, 0}}, 0, {5, 3, 2, 1}, 4, "3 5"},
    {"twice is once", 4, {{6, 6}}, 1, {6, 4, 3}, 3, "4 6"},
    {"taken over", 10, {{12, 12}, {14, 14}}, 2, {11, 13}, 2, "14"},
    {"behind a range", 10, {{12, 14}}, 1, {15}, 1, "10 12-15"},
    {"before a range", 10, {{13, 14}}, 1, {12}, 1, "10 12-14"},
    {"between two", 10, {{12, 14}, {16, 18}}, 2, {15}, 1, "10 12-18"},
    {"before, between and behind", 10, {{14, 14}}, 1, {12, 16, 18, 13}, 4, "10 12-14 16 18"},
    {"within a range", 10, {{12, 14}}, 1, {13}, 1, "10 12-14"},
};

static void test_progress_table(void)
{
    for (size_t i = 0; i < ARRAY_LEN(progress_cases); i++) {
        const struct progress_case *c = &progress_cases[i];
        struct progress progress = {0};
        struct position const position = {.floor = c->floor, .ranges = c->above, .ranges_len = c->above_len};
        progress_set(&progress, &position);
        for (size_t k = 0; k < c->add_len; k++)
            progress_add(&progress, c->add[k], 0);
        for (size_t k = 0; k < c->add_len; k++)
            CU_ASSERT_TRUE(progress_has(&progress, c->add[k]));
        CHECK_STR(c->name, render(&progress), c->expected);
        progress_release(&progress);
    }
}

/* ---- answers and their outputs ---- */

static void test_what_answers_an_output(void)
{
    static const struct {
        enum partition_out_kind out;
        enum partition_in_kind in;
    } pairs[] = {{PARTITION_OUT_READ_TAIL, PARTITION_IN_TAIL},
                 {PARTITION_OUT_DELETE_RECORDS, PARTITION_IN_DELETED},
                 {PARTITION_OUT_APPEND, PARTITION_IN_APPENDED},
                 {PARTITION_OUT_READ_LOG, PARTITION_IN_LOG},
                 {PARTITION_OUT_LOAD, PARTITION_IN_HISTORY},
                 {PARTITION_OUT_READ_IDS, PARTITION_IN_IDS},
                 {PARTITION_OUT_REMOVE_HISTORY, PARTITION_IN_REMOVED},
                 {PARTITION_OUT_REMOVE_RECORDS, PARTITION_IN_REMOVED},
                 {PARTITION_OUT_FIND_DISPENSABLE, PARTITION_IN_DISPENSABLE},
                 {PARTITION_OUT_STORE_OPEN, PARTITION_IN_STORE_OPENED},
                 {PARTITION_OUT_STORE_RESET, PARTITION_IN_STORE_RESET},
                 {PARTITION_OUT_READ_LIVE, PARTITION_IN_LIVE},
                 {PARTITION_OUT_READ_TIMERS, PARTITION_IN_TIMERS},
                 {PARTITION_OUT_APPLY, PARTITION_IN_APPLIED},
                 {PARTITION_OUT_PUBLISH_WORK, PARTITION_IN_PUBLISHED},
                 {PARTITION_OUT_SEND, PARTITION_IN_SENT},
                 {PARTITION_OUT_READ_INBOX, PARTITION_IN_INBOX_BACK},
                 {PARTITION_OUT_READ_RESULTS, PARTITION_IN_RESULTS},
                 {PARTITION_OUT_REJECT, PARTITION_IN_REJECTED},
                 {PARTITION_OUT_READ_CRASHES, PARTITION_IN_CRASHES}};
    size_t answered = 0;
    for (int kind = 0; kind <= PARTITION_OUT_QUERY_ANSWER; kind++)
        answered += partition_is_answered((enum partition_out_kind)kind);
    CU_ASSERT_EQUAL(answered, ARRAY_LEN(pairs));
    for (size_t i = 0; i < ARRAY_LEN(pairs); i++) {
        struct partition_out const out = {.kind = pairs[i].out, .generation = 3, .token = 7};
        struct partition_in const in = partition_answer(&out);
        CU_ASSERT(in.kind == pairs[i].in && in.generation == 3 && in.token == 7);
        CU_ASSERT(in.live.blocked == NULL && in.live.names_len == 0 && in.live.activities == 0);
    }
}

/* ---- removals ---- */

/* Thousands of histories may wait to be removed: what a record lists goes beside them, or it would be listed
 * more slowly than instances are deleted. */
static void test_lists_do_not_wait_for_histories(void)
{
    enum { HISTORIES = 1000, LIST = 2000, SENT_UP_TO = 3000 };
    static const uint64_t listed[] = {5, 7};
    static struct env env;
    static struct projection p = {.env = &env};
    size_t histories = 0, lists = 0;
    for (uint64_t i = 1; i <= HISTORIES; i++)
        removals_owe(&p, THOLE_STR("i"), (struct executions){0, 0}, i);
    removals_owe_listed(&p, &(struct folded){.sequences = listed, .len = ARRAY_LEN(listed)}, LIST);
    CU_ASSERT_EQUAL(removals_first(&p.removals), 1);
    CU_ASSERT_EQUAL(removals_last(&p.removals), LIST);
    p.projector.durable = SENT_UP_TO;
    removals_pump(&p, LIST - 1);
    removals_pump(&p, SENT_UP_TO);
    for (struct partition_out out; env_poll(&env, &out);) {
        histories += out.kind == PARTITION_OUT_REMOVE_HISTORY;
        lists += out.kind == PARTITION_OUT_REMOVE_RECORDS && out.token == LIST && out.remove_records.len == 2;
    }
    CU_ASSERT_EQUAL(histories, REMOVALS_OUT_MAX);
    CU_ASSERT_EQUAL(lists, 1);
    removals_check(&p.removals);
    CU_ASSERT(projection_removed(&p, LIST) && !projection_removed(&p, LIST) && projection_removed(&p, 1));
    CU_ASSERT_FALSE(projection_removed(&p, HISTORIES)); /* not under way */
    CU_ASSERT_EQUAL(removals_first(&p.removals), 2);
    CU_ASSERT_EQUAL(removals_last(&p.removals), HISTORIES);
    removals_check(&p.removals);
    removals_release(&p.removals);
    env_release(&env);
}

/* How many of the removals that go out are urgent, when so many histories wait. */
static size_t urgent_of(size_t waiting)
{
    static struct env env;
    static struct projection p = {.env = &env};
    size_t urgent = 0;
    for (uint64_t i = 1; i <= waiting; i++)
        removals_owe(&p, THOLE_STR("i"), (struct executions){0, 0}, i);
    p.projector.durable = waiting;
    removals_pump(&p, waiting);
    for (struct partition_out out; env_poll(&env, &out);)
        urgent += out.kind == PARTITION_OUT_REMOVE_HISTORY && out.remove_history.urgent;
    removals_release(&p.removals);
    env_release(&env);
    return urgent;
}

/* Long before turns pause: who removes rests as long as others wait for the server. */
static void test_many_histories_are_urgent(void)
{
    CU_ASSERT(REMOVALS_URGENT <= REMOVALS_MAX / 2);
    CU_ASSERT_EQUAL(urgent_of(REMOVALS_URGENT - 1), 0);
    CU_ASSERT_EQUAL(urgent_of(REMOVALS_URGENT), REMOVALS_OUT_MAX);
}

static void test_progress_any_order_ends_at_the_top(void)
{
    struct progress progress = {0};
    for (uint64_t i = 0; i < 1000; i++)
        progress_add(&progress, (i * 387) % 1000 + 1, 0);
    CHECK_STR("permutation", render(&progress), "1000");
    progress_release(&progress);
}

/* Missing sequences are not listed, however many they are, and are stepped over once nothing is left before
 * them. */
static void test_progress_gaps(void)
{
    struct progress progress = {0};
    progress_skip(&progress, 1, 10);
    CHECK_STR("from the start", render(&progress), "10");
    progress_add(&progress, 12, 0);
    progress_skip(&progress, 13, 5000000);
    progress_add(&progress, 5000001, 0);
    progress_skip(&progress, 5000002, 6000000);
    CHECK_STR("one is missing", render(&progress), "10 12 5000001");
    progress_add(&progress, 11, 0);
    CHECK_STR("none is missing", render(&progress), "6000000");
    CU_ASSERT_TRUE(progress.dirty);
    progress.dirty = false;
    progress_skip(&progress, 5, 6000000);
    CU_ASSERT_FALSE(progress.dirty);
    progress_release(&progress);
}

/* By the highest message that was ever read the stream is known; it is what the position says until more is
 * read. */
static void test_progress_knows_what_it_has_seen(void)
{
    struct sequence_range const above[] = {{12, 12}, {14, 14}};
    static const struct {
        uint64_t seen, seen_ns, read, sequence, stored_ns;
    } rows[] = {
        {15, 1500, 0, 15, 1500},  /* read and not incorporated yet */
        {15, 1500, 11, 15, 1500}, /* read again */
        {15, 1500, 16, 16, 1600}, {14, 1400, 0, 14, 1400}, {0, 0, 0, 14, 0}, /* written before it was noted */
        {0, 0, 11, 14, 0},        {0, 0, 15, 15, 1500},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct progress progress = {0};
        struct position const position = {10, above, 2, rows[i].seen, rows[i].seen_ns, false};
        progress_set(&progress, &position);
        if (rows[i].read > 0)
            CU_ASSERT_TRUE(progress_receive(
                &progress, &(struct in_message){.sequence = rows[i].read, .stored_ns = rows[i].read * 100}));
        struct seen const seen = progress_seen(&progress);
        CU_ASSERT(seen.sequence == rows[i].sequence && seen.stored_ns == rows[i].stored_ns);
        progress_release(&progress);
    }
    struct progress const empty = {0};
    CU_ASSERT_EQUAL(progress_seen(&empty).sequence, 0);
}

/* ---- messages with several parts ---- */

static void receive(struct progress *progress, uint64_t sequence, uint32_t parts)
{
    for (uint32_t part = 0; part == 0 || part < parts; part++) {
        struct in_message const in = {
            .sequence = sequence, .stored_ns = sequence * 100, .part = part, .parts = parts};
        CU_ASSERT_TRUE(progress_receive(progress, &in));
        CU_ASSERT_FALSE(progress_receive(progress, &in)); /* came before */
    }
}

/* The next of its parts. */
static void add_part(struct progress *progress, uint64_t sequence)
{
    uint32_t part = 0;
    for (size_t i = 0; i < progress->several_len; i++)
        while (progress->several[i].sequence == sequence &&
               (progress->several[i].done[part / 64] & (uint64_t)1 << part % 64) != 0)
            part++;
    progress_add(progress, sequence, part);
    if (part > 0 && !progress_has(progress, sequence))
        progress_add(progress, sequence, part - 1); /* again: it changes nothing */
}

static void add_all(struct progress *progress, const uint64_t *sequences, size_t len)
{
    for (size_t i = 0; i < len; i++)
        add_part(progress, sequences[i]);
}

/* A message counts with the last of its parts, whatever happens to others meanwhile. */
static void test_progress_parts(void)
{
    static const struct {
        const char *name;
        uint32_t parts[4]; /* of the messages 1, 2, 3, 4 */
        uint64_t add[8], add_len;
        const char *expected;
    } rows[] = {
        {"none of three", {3}, {0}, 0, "0"},
        {"one of three", {3}, {1}, 1, "0"},
        {"two of three", {3}, {1, 1}, 2, "0"},
        {"three of three", {3}, {1, 1, 1}, 3, "1"},
        {"it has only three", {3, 2}, {1, 1, 1, 1, 2}, 5, "1"},
        {"a list of one", {1, 0}, {1, 2}, 2, "2"},
        {"one behind the other", {3, 3}, {1, 1, 1, 2, 2}, 5, "1"},
        {"the first waits", {3, 3}, {1, 2, 1, 2, 2}, 5, "0 2"},
        {"the second waits", {3, 3}, {2, 1, 2, 1, 1}, 5, "1"},
        {"both are there", {3, 3}, {2, 1, 2, 1, 2, 1}, 6, "2"},
        {"others between them", {2, 1, 2, 0}, {3, 4, 1, 2, 3}, 5, "0 2-4"},
        {"all of them", {2, 1, 2, 0}, {3, 4, 1, 2, 3, 1}, 6, "4"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct progress progress = {0};
        for (uint64_t k = 0; k < ARRAY_LEN(rows[i].parts); k++)
            receive(&progress, k + 1, rows[i].parts[k]);
        add_all(&progress, rows[i].add, rows[i].add_len);
        CHECK_STR(rows[i].name, render(&progress), rows[i].expected);
        progress_release(&progress);
    }
}

static void test_progress_parts_are_no_news(void)
{
    struct progress progress = {0};
    receive(&progress, 1, 2);
    add_part(&progress, 1);
    CU_ASSERT_FALSE(progress.dirty || progress_has(&progress, 1)); /* there is nothing to say of it yet */
    add_part(&progress, 1);
    CU_ASSERT_TRUE(progress.dirty && progress_has(&progress, 1));
    progress_release(&progress);
}

static void test_progress_parts_and_gaps(void)
{
    struct progress progress = {0};
    receive(&progress, 11, 3);
    receive(&progress, 5001, 2);
    progress_skip(&progress, 5002, 6000);
    add_all(&progress, (const uint64_t[]){5001, 11, 5001, 11}, 4);
    CHECK_STR("the first waits", render(&progress), "10 5001");
    add_part(&progress, 11);
    CHECK_STR("all of both", render(&progress), "6000");
    progress_release(&progress);
}

/* A reader that starts over at a position reads all parts again, and of incorporated messages none. */
static void test_progress_forgets_parts(void)
{
    struct sequence_range const above[] = {{12, 12}};
    struct position const position = {.floor = 10, .ranges = above, .ranges_len = 1};
    struct progress progress = {0};
    progress_set(&progress, &position);
    receive(&progress, 11, 3);
    add_all(&progress, (const uint64_t[]){11, 11}, 2);
    progress_set(&progress, &position);
    receive(&progress, 11, 3);
    receive(&progress, 12, 2);
    receive(&progress, 13, 2);
    add_all(&progress, (const uint64_t[]){11, 12, 13}, 3);
    CHECK_STR("anew", render(&progress), "10 12");
    add_all(&progress, (const uint64_t[]){11, 13}, 2);
    CHECK_STR("one is left", render(&progress), "10 12-13");
    add_part(&progress, 11);
    CHECK_STR("none is left", render(&progress), "13");
    CU_ASSERT_EQUAL(progress.several_len, 0);
    progress_release(&progress);
}

/* Many at a time, each with 1 to 5 parts, whose parts are incorporated in any order. */
static void test_progress_parts_in_any_order(void)
{
    enum { MESSAGES = 200, PARTS = 5 };
    uint32_t left[MESSAGES + 1];
    struct progress progress = {0};
    for (uint64_t i = 1; i <= MESSAGES; i++) {
        left[i] = 1 + (uint32_t)(i % PARTS);
        receive(&progress, i, left[i]);
    }
    for (uint64_t i = 0; i < MESSAGES * PARTS; i++) {
        uint64_t const sequence = 1 + (i * 387) % (MESSAGES * PARTS) / PARTS;
        uint64_t const part = (i * 387) % PARTS;
        if (part > sequence % PARTS)
            continue;
        add_part(&progress, sequence);
        left[sequence]--;
        for (uint64_t k = 1; k <= MESSAGES; k++)
            if (progress_has(&progress, k) != (left[k] == 0))
                CU_FAIL("it counts before its last part, or not with it");
    }
    CHECK_STR("all", render(&progress), "200");
    CU_ASSERT_EQUAL(progress.several_len, 0);
    progress_release(&progress);
}

static void test_timers_fire_in_order(void)
{
    struct timer_heap heap = {0};
    struct timer_entry entry;
    for (uint64_t i = 0; i < 500; i++) {
        struct batch_timer const timer = {
            .instance = THOLE_STR("i"), .timer_id = i, .due_ms = (i * 7919) % 251};
        timer_heap_push(&heap, &timer);
    }
    CU_ASSERT_EQUAL(timer_heap_next(&heap), 0);
    uint64_t last_due = 0, fired = 0;
    while (timer_heap_pop_due(&heap, 100, &entry)) {
        CU_ASSERT_TRUE(entry.due_ms <= 100);
        fired++;
        free((void *)(uintptr_t)entry.instance.ptr);
    }
    CU_ASSERT_TRUE(timer_heap_next(&heap) > 100);
    while (timer_heap_pop_due(&heap, 1000, &entry)) {
        CU_ASSERT_TRUE(entry.due_ms >= last_due);
        last_due = entry.due_ms;
        fired++;
        free((void *)(uintptr_t)entry.instance.ptr);
    }
    CU_ASSERT_EQUAL(timer_heap_next(&heap), UINT64_MAX);
    CU_ASSERT_EQUAL(fired, 500);
    timer_heap_release(&heap);
}

/* So many events wait for an instance that does not exist, and no more; each request once. */
static void test_early_events_have_a_bound(void)
{
    struct early *early = NULL;
    struct event event = {
        .kind = EVENT_EVENT_RECEIVED, .name = THOLE_STR("item"), .request_id = THOLE_STR("r")};
    CU_ASSERT_EQUAL(early_keep(&early, &event), THOLE_OK);
    CU_ASSERT_EQUAL(early_keep(&early, &event), THOLE_CONFLICT);
    event.request_id = (thole_slice){NULL, 0};
    for (size_t i = 1; i < EVENTS_KEPT_MAX; i++)
        CU_ASSERT_EQUAL(early_keep(&early, &event), THOLE_OK);
    CU_ASSERT_EQUAL(early_keep(&early, &event), THOLE_LIMIT);
    CU_ASSERT_EQUAL(early->len, EVENTS_KEPT_MAX);
    early_destroy(early);
}

/* The texts are few and small: without memory for one the process ends. To go on without the orchestration's
 * name would be to record that no engine has its code. */
static void test_no_text_is_forgotten_for_lack_of_memory(void)
{
    struct rlimit const none = {0, 0};
    int status = 0;
    if (SANITIZED)
        return;
    pid_t const child = fork();
    CU_ASSERT_FATAL(child >= 0);
    if (child == 0) {
        thole_slice name = {0};
        (void)close(STDERR_FILENO);
        (void)setrlimit(RLIMIT_CORE, &none);
        (void)setrlimit(RLIMIT_AS, &none);
        for (size_t size = 1 << 16; size > 0; size /= 2)
            for (void *volatile block = malloc(size); block != NULL; block = malloc(size))
                ;
        entry_remember(&name, THOLE_STR("order"));
        _exit(0);
    }
    CU_ASSERT_EQUAL(waitpid(child, &status, 0), child);
    CU_ASSERT(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}

static const thole_slice knows_a[] = {{(const uint8_t *)"a", 1}};
static const thole_slice knows_ab[] = {{(const uint8_t *)"a", 1}, {(const uint8_t *)"b", 1}};

static void test_ownership_is_spread_and_stable(void)
{
    struct node_view nodes[3] = {
        {THOLE_STR("n1"), knows_a, 1}, {THOLE_STR("n2"), knows_a, 1}, {THOLE_STR("n3"), knows_a, 1}};
    size_t count[3] = {0}, moved = 0;
    for (uint32_t p = 0; p < 3000; p++) {
        size_t const three = ownership_of(p, nodes, 3, NULL, 0);
        size_t const two = ownership_of(p, nodes, 2, NULL, 0);
        count[three]++;
        moved += three != 2 && three != two; /* only what the third had may move when it goes */
    }
    CU_ASSERT_EQUAL(moved, 0);
    for (size_t i = 0; i < 3; i++)
        CU_ASSERT_TRUE(count[i] > 850 && count[i] < 1150);
    CU_ASSERT_EQUAL(ownership_of(1, nodes, 0, NULL, 0), SIZE_MAX);
}

static void test_ownership_prefers_who_knows(void)
{
    struct node_view nodes[3] = {
        {THOLE_STR("n1"), knows_a, 1}, {THOLE_STR("n2"), knows_ab, 2}, {THOLE_STR("n3"), knows_a, 1}};
    thole_slice const needs_b = THOLE_STR("b"), needs_c = THOLE_STR("c");
    for (uint32_t p = 0; p < 100; p++) {
        CU_ASSERT_EQUAL(ownership_of(p, nodes, 3, &needs_b, 1), 1);
        CU_ASSERT_EQUAL(ownership_of(p, nodes, 3, &needs_c, 1), ownership_of(p, nodes, 3, NULL, 0));
    }
}

/* ---- objects that were never made ---- */

static void test_null_is_nothing(void)
{
    struct lease_table table = {0};
    struct arena arena = {0};
    stack_pool_destroy(NULL);
    coro_destroy(NULL);
    instance_destroy(NULL);
    log_destroy(NULL);
    projection_destroy(NULL);
    projection_batch_destroy(NULL);
    early_destroy(NULL);
    instances_destroy(NULL);
    batch_destroy(NULL);
    partition_destroy(NULL);
    worker_destroy(NULL);
    lease_table_release(&table);
    arena_release(&arena);
    CU_ASSERT(table.cap == 0 && arena.held == 0);
}

static const struct thole_test tests[] = {
    {"what_answers_an_output", test_what_answers_an_output},
    {"lists do not wait for histories", test_lists_do_not_wait_for_histories},
    {"many histories are urgent", test_many_histories_are_urgent},
    {"partition: inbox position table", test_progress_table},
    {"partition: inbox position, any order", test_progress_any_order_ends_at_the_top},
    {"partition: inbox position, gaps", test_progress_gaps},
    {"partition: what it has seen", test_progress_knows_what_it_has_seen},
    {"partition: parts of a message", test_progress_parts},
    {"partition: parts are no news", test_progress_parts_are_no_news},
    {"partition: parts and gaps", test_progress_parts_and_gaps},
    {"partition: parts are forgotten", test_progress_forgets_parts},
    {"partition: parts in any order", test_progress_parts_in_any_order},
    {"partition: timers fire in order", test_timers_fire_in_order},
    {"no text is forgotten for lack of memory", test_no_text_is_forgotten_for_lack_of_memory},
    {"early events have a bound", test_early_events_have_a_bound},
    {"ownership: spread and stable", test_ownership_is_spread_and_stable},
    {"null is nothing", test_null_is_nothing},
    {"ownership: prefers who knows", test_ownership_prefers_who_knows},
};
THOLE_TEST_MAIN("partition parts", tests)
