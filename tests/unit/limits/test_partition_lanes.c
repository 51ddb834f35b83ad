/* Which instance has the next turn, and when an orchestration rests. */
#include "lanes.h"
#include "memory.h"
#include "partition_stage.h"
#include "thole/orchestration.h"
#include "thole_cunit.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ENTRIES = 200, BURST = 4 };

static struct lanes lanes;
static struct entry *entries[ENTRIES];
static size_t entries_len;
static struct lane_view view;
static uint64_t last_n;

static void begin(void)
{
    memset(&lanes, 0, sizeof lanes);
    view = (struct lane_view){.now_ms = 1000 * 1000, .burst = BURST, .full = SIZE_MAX};
    entries_len = 0;
    last_n = 0;
}

static void end(void)
{
    while (entries_len > 0)
        free(entries[--entries_len]);
}

static void add(const char *orchestration, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        CU_ASSERT_FATAL(entries_len < ENTRIES);
        struct entry *const entry = memory_new(sizeof *entry);
        entry->state = ENTRY_LIVE;
        entry->orchestration = thole_slice_from(orchestration);
        entries[entries_len++] = entry;
        lanes_add(&lanes, entry);
    }
}

/* The first letters of the orchestrations that have turns, until none may have one. */
static const char *turns(size_t most)
{
    static char said[ENTRIES + 1];
    size_t n = 0;
    const struct entry *entry;
    while (n < most && (entry = lanes_take(&lanes, &view)) != NULL) {
        said[n++] = (char)entry->orchestration.ptr[0];
        lanes_ran(&lanes, 0, ++last_n, view.now_ms);
    }
    said[n] = '\0';
    return said;
}

static void check_turns(const char *row, size_t most, const char *want)
{
    const char *const got = turns(most);
    CHECK_STR(row, got, want);
}

static void each_in_turn(void)
{
    begin();
    add("a", 5);
    add("b", 2);
    add("c", 1);
    check_turns("in turn", 100, "abcabaaa");
    CU_ASSERT_TRUE(lanes_empty(&lanes));
    end();
}

static void alone_it_does_not_rest(void)
{
    begin();
    add("a", 150);
    CU_ASSERT_EQUAL(strlen(turns(1000)), 150);
    end();
}

/* "b" has had a turn, so the lane that is busy has four, waits for what follows from them, and rests. */
static void beside_another_it_rests(void)
{
    begin();
    add("b", 1);
    add("a", 40);
    (void)turns(33);
    check_turns("a burst", 100, "aaaa");
    CU_ASSERT_EQUAL(lanes_deadline_ms(&lanes), UINT64_MAX); /* waits */
    view.now_ms += 5;
    check_turns("not done", 100, "");
    CU_ASSERT_EQUAL(lanes_resting(&lanes), 4);
    view.done_n = last_n;
    check_turns("it rests", 100, "");
    CU_ASSERT_EQUAL(lanes_deadline_ms(&lanes), view.now_ms + 5);
    CU_ASSERT_TRUE(lanes_say_rest(&lanes, view.now_ms) != NULL);
    CU_ASSERT_TRUE(lanes_say_rest(&lanes, view.now_ms + 1) == NULL);
    add("b", 1);
    check_turns("another does not", 100, "b");
    view.now_ms += 4;
    check_turns("still", 100, "");
    view.now_ms += 1;
    check_turns("the next burst", 100, "aaaa");
    end();
}

/* Ten seconds after the other's last turn it is alone. */
static void the_other_is_forgotten(void)
{
    begin();
    add("b", 1);
    add("a", 100);
    (void)turns(33);
    check_turns("a burst", 100, "aaaa");
    view.now_ms += 10000;
    CU_ASSERT_EQUAL(strlen(turns(1000)), 64);
    end();
}

/* Half of the turns is not most of them. */
static void two_that_are_busy_do_not_rest(void)
{
    begin();
    add("a", 80);
    add("b", 80);
    CU_ASSERT_EQUAL(strlen(turns(1000)), 160);
    end();
}

static void it_is_busy_no_more(void)
{
    begin();
    add("b", 1);
    add("a", 60);
    (void)turns(33);
    check_turns("a burst", 100, "aaaa");
    view.now_ms += 1000; /* past use is long ago */
    CU_ASSERT_EQUAL(strlen(turns(20)), 20);
    end();
}

static void many_events_are_many_turns(void)
{
    begin();
    add("b", 1);
    add("a", 10);
    (void)turns(2);
    lanes_ran(&lanes, 1000, ++last_n, view.now_ms);
    check_turns("a burst", 100, "aaaa");
    end();
}

/* Others wait for messages that are not read, so a rest would only delay them. */
static void what_is_full_does_not_rest(void)
{
    begin();
    view.full = 50;
    add("b", 1);
    add("a", 120);
    CU_ASSERT_EQUAL(strlen(turns(1000)), 121 - 49 + BURST);
    end();
}

static void zero_is_no_rest(void)
{
    begin();
    view.burst = 0;
    add("b", 1);
    add("a", 150);
    CU_ASSERT_EQUAL(strlen(turns(1000)), 151);
    end();
}

/* More names than lanes: some share one, and none is forgotten. */
static void more_names_than_lanes(void)
{
    static char names[ENTRIES][8];
    begin();
    for (size_t i = 0; i < ENTRIES; i++) {
        (void)snprintf(names[i], sizeof names[i], "n%zu", i);
        add(names[i], 1);
    }
    CU_ASSERT_EQUAL(strlen(turns(1000)), ENTRIES);
    CU_ASSERT_TRUE(lanes_empty(&lanes));
    end();
}

/* ---- a partition ---- */

static thole_status at_once(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    (void)ctx, (void)input, (void)ret_output;
    return THOLE_OK;
}

static const thole_orchestration_entry programs[] = {{"flood", at_once, 0}, {"plain", stage_calls, 0}};

static void start(struct stage *s, const char *orchestration, unsigned first, unsigned n)
{
    for (unsigned i = first; i < first + n; i++) {
        char id[32];
        (void)snprintf(id, sizeof id, "%s-%u", orchestration, i);
        stage_start(s, id, orchestration);
    }
}

/* Messages for an orchestration that rests are beside other waiting ones: others are read past them. */
static void others_are_read_past_it(void)
{
    struct partition_options options;
    stage_options(&options, programs, ARRAY_LEN(programs));
    options.burst_max = BURST;
    struct stage *s = stage_begin_with(&options, 100);
    start(s, "plain", 0, 1);
    start(s, "flood", 0, 32);
    s->hold_applied = true;
    start(s, "flood", 32, 500);
    CU_ASSERT_TRUE(partition_pending(s->p) > 400);
    CU_ASSERT_EQUAL(partition_room(s->p), options.waiting_max);
    (void)stage_said(s);
    start(s, "plain", 1, 1);
    CU_ASSERT_PTR_NOT_NULL(strstr(stage_said(s), "notice started plain-1\n"));
    s->hold_applied = false;
    stage_release(s);
    for (unsigned i = 0; i < 3000 && partition_pending(s->p) > 0; i++)
        stage_timer(s, s->now_ms + 1);
    CU_ASSERT_EQUAL(partition_pending(s->p), 0);
    stage_end(s);
}

static const struct thole_test tests[] = {
    {"each in turn", each_in_turn},
    {"alone it does not rest", alone_it_does_not_rest},
    {"beside another it rests", beside_another_it_rests},
    {"the other is forgotten", the_other_is_forgotten},
    {"two that are busy do not rest", two_that_are_busy_do_not_rest},
    {"it is busy no more", it_is_busy_no_more},
    {"many events are many turns", many_events_are_many_turns},
    {"what is full does not rest", what_is_full_does_not_rest},
    {"zero is no rest", zero_is_no_rest},
    {"more names than lanes", more_names_than_lanes},
    {"others are read past it", others_are_read_past_it},
};
THOLE_TEST_MAIN("partition lanes", tests)
