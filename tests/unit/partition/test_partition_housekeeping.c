/*
 * The work of a partition besides its instances' turns: it saves its position, purges its inbox, forgets
 * instances at rest, removes records a few at a time, and closes. When, in which order, and how often.
 */
#include "dropped.h"
#include "heap.h"
#include "partition_env.h"
#include "partition_stage.h"
#include "thole/orchestration.h"
#include "thole_cunit.h"
#include <stdlib.h>
#include <string.h>

/* The second execution schedules an activity and ends without waiting for it. */
static thole_status leaves(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    (void)ret_output;
    if (input.len > 0) {
        drop_task(thole_call(ctx, THOLE_STR("work"), input));
        return THOLE_OK;
    }
    THOLE_TRY(thole_await(ctx, thole_event(ctx, THOLE_STR("item")), NULL));
    return thole_continue_as_new(ctx, THOLE_STR("x"), 0);
}

static const thole_orchestration_entry entries[] = {{"plain", stage_calls, 0}, {"leaves", leaves, 0}};
enum { IDLE_MS = 1000 };

static struct stage *begin(void)
{
    struct partition_options options;
    stage_options(&options, entries, ARRAY_LEN(entries));
    options.idle_ms = IDLE_MS;
    return stage_begin_with(&options, 100);
}

static size_t positions(const struct stage *s)
{
    size_t n = 0;
    for (size_t i = 0; i < s->log_len; i++)
        n += s->log[i].kind == RECORD_POSITION;
    return n;
}

static void ask(struct stage *s, enum partition_in_kind kind)
{
    struct partition_in const in = {.kind = kind, .generation = partition_generation(s->p)};
    (void)partition_input(s->p, &in, s->now_ms);
    stage_run(s);
}

/* Is for nobody: no record takes it in, and only the memory knows the position. */
static void for_nobody(struct stage *s)
{
    stage_complete(s, "nobody", 2, THOLE_STR("done"));
}

/* The first of the answers that were held. */
static void give_held(struct stage *s)
{
    CU_ASSERT_FATAL(s->held_len > 0);
    struct partition_in const first = s->held[0];
    memmove(s->held, s->held + 1, --s->held_len * sizeof *s->held);
    (void)partition_input(s->p, &first, s->now_ms);
    stage_run(s);
}

/* ---- when nothing is to do ---- */

/* One thing after each idle time, and then nothing for ever. */
static void one_thing_at_a_time(void)
{
    struct stage *s = begin();
    stage_settle(s);
    stage_start(s, "i", "plain");
    uint64_t at = s->now_ms += 7; /* an input tells the time, too */
    for_nobody(s);
    size_t const before = positions(s);
    s->purges = 0;
    CU_ASSERT_EQUAL(partition_deadline_ms(s->p), at + IDLE_MS);
    stage_timer(s, at + IDLE_MS - 1);
    CU_ASSERT_EQUAL(positions(s), before);
    stage_timer(s, at += IDLE_MS);
    CU_ASSERT_EQUAL(positions(s), before + 1);
    CU_ASSERT_EQUAL(s->purges, 0); /* the position is younger than an idle time */
    for (int i = 0; i < 4 && partition_deadline_ms(s->p) != UINT64_MAX; i++) {
        CU_ASSERT_EQUAL(partition_deadline_ms(s->p), at + IDLE_MS);
        stage_timer(s, at += IDLE_MS);
    }
    CU_ASSERT_EQUAL(partition_deadline_ms(s->p), UINT64_MAX);
    CU_ASSERT_TRUE(partition_idle(s->p));
    CU_ASSERT_EQUAL(positions(s), before + 1);
    stage_end(s);
}

/* Whoever opens it says where it stands; nothing new is to be saved then. */
static void an_opening_saves_nothing_twice(void)
{
    struct stage *s = begin();
    stage_start(s, "i", "plain");
    stage_complete(s, "i", 2, THOLE_STR("done"));
    stage_settle(s);
    size_t const before = positions(s);
    s->projected = s->applied;
    stage_again(s);
    stage_settle(s);
    CU_ASSERT_EQUAL(positions(s), before);
    CU_ASSERT_TRUE(partition_idle(s->p));
    stage_end(s);
}

/* The position does not fit the inbox any more; the first record of the next epoch says so. */
static void an_inbox_that_went_back_is_said_once(void)
{
    struct stage *s = begin();
    stage_start(s, "i", "plain");
    stage_settle(s);
    size_t const before = positions(s);
    ask(s, PARTITION_IN_INBOX_BACK);
    stage_open(s);
    stage_settle(s);
    CU_ASSERT_EQUAL(partition_epoch(s->p), 2);
    CU_ASSERT_EQUAL(positions(s), before);
    CU_ASSERT_TRUE(partition_idle(s->p));
    stage_end(s);
}

/* A purge that was asked for before it closed may not have been carried out. */
static void each_opening_purges(void)
{
    struct stage *s = begin();
    for (int i = 0; i < 3; i++)
        stage_start(s, (const char *const[]){"a", "b", "c"}[i], "plain");
    stage_settle(s);
    CU_ASSERT_EQUAL(s->purges, 1);
    CU_ASSERT_EQUAL(s->purged_below, s->inbox); /* the one at the floor stays */
    ask(s, PARTITION_IN_CLOSE);
    stage_open(s);
    stage_settle(s);
    CU_ASSERT_EQUAL(s->purges, 2);
    CU_ASSERT_EQUAL(s->purged_below, s->inbox);
    stage_end(s);
}

/* ---- instances at rest are forgotten ---- */

/* Not the one that a message was for since. */
static void who_was_used_last_stays(void)
{
    struct stage *s = begin();
    s->options.parked_max = 2;
    stage_again(s);
    stage_start(s, "a", "plain");
    stage_start(s, "b", "plain");
    stage_tell(s, "a", MESSAGE_EVENT, "for a");
    stage_start(s, "c", "plain");
    s->loads = 0;
    stage_tell(s, "a", MESSAGE_EVENT, "for a again");
    CU_ASSERT_EQUAL(s->loads, 0);
    stage_tell(s, "b", MESSAGE_EVENT, "for b");
    CU_ASSERT_EQUAL(s->loads, 1);
    stage_end(s);
}

/* A load takes its time: what it is for is needed now, and not what was used meanwhile. */
static void who_was_loaded_last_stays(void)
{
    struct stage *s = begin();
    s->options.parked_max = 2;
    stage_again(s);
    stage_start(s, "a", "plain");
    stage_start(s, "b", "plain");
    stage_start(s, "c", "plain");
    s->hold_loads = true;
    stage_tell(s, "a", MESSAGE_EVENT, "for a");
    stage_tell(s, "c", MESSAGE_EVENT, "for c");
    stage_release(s);
    stage_start(s, "d", "plain");
    s->loads = 0;
    stage_tell(s, "a", MESSAGE_EVENT, "for a again");
    CU_ASSERT_EQUAL(s->loads, 0);
    stage_tell(s, "c", MESSAGE_EVENT, "for c again");
    CU_ASSERT_EQUAL(s->loads, 1);
    stage_end(s);
}

/* Two of them fit, however many others there may be. */
static void who_takes_too_much_goes(void)
{
    enum { LARGE = 200 * 1000 };
    static uint8_t text[LARGE];
    struct stage *s = begin();
    s->options.parked_memory_max = 600 * 1000;
    stage_again(s);
    memset(text, 'x', LARGE);
    stage_start(s, "small", "plain");
    for (unsigned i = 0; i < 3; i++) {
        char const id[] = {(char)('a' + (int)i), '\0'};
        stage_start(s, id, "plain");
        stage_message(s, &(struct message){.kind = MESSAGE_EVENT,
                                           .instance = thole_slice_from(id),
                                           .request_id = THOLE_STR("large"),
                                           .event_name = THOLE_STR("item"),
                                           .event_data = {text, LARGE}});
    }
    s->loads = 0;
    stage_tell(s, "c", MESSAGE_EVENT, "for c");
    stage_tell(s, "b", MESSAGE_EVENT, "for b");
    CU_ASSERT_EQUAL(s->loads, 0);
    stage_tell(s, "a", MESSAGE_EVENT, "for a");
    CU_ASSERT_EQUAL(s->loads, 1); /* was used before them; now c was */
    stage_tell(s, "b", MESSAGE_EVENT, "for b again");
    CU_ASSERT_EQUAL(s->loads, 1);
    stage_tell(s, "c", MESSAGE_EVENT, "for c again");
    CU_ASSERT_EQUAL(s->loads, 2);
    stage_end(s);
}

/* One that is too large alone goes, and not all others in its place. */
static void who_is_too_large_goes_alone(void)
{
    enum { LARGE = 200 * 1000 };
    static uint8_t text[LARGE];
    struct stage *s = begin();
    s->options.parked_memory_max = 150 * 1000;
    stage_again(s);
    memset(text, 'x', LARGE);
    stage_start(s, "small", "plain");
    stage_start(s, "large", "plain");
    s->loads = 0;
    for (unsigned i = 0; i < 2; i++) {
        stage_message(s, &(struct message){.kind = MESSAGE_EVENT,
                                           .instance = THOLE_STR("large"),
                                           .request_id = THOLE_STR("large"),
                                           .event_name = THOLE_STR("item"),
                                           .event_data = {text, LARGE}});
        stage_tell(s, "small", MESSAGE_EVENT, "for the small one");
        CU_ASSERT_EQUAL(s->loads, i);
    }
    stage_end(s);
}

/* ---- counts ---- */

/* An activity that the next execution leaves in its first turn was never an open one. */
static void what_is_left_at_once_is_not_counted_again(void)
{
    struct stage *s = begin();
    stage_start(s, "i", "leaves");
    stage_settle(s);
    stage_again(s); /* of what was scheduled up to now it is not known whether it was counted */
    stage_query(s, "i", "how");
    stage_settle(s);
    size_t const reads = s->live_reads;
    stage_tell(s, "i", MESSAGE_EVENT, "go on");
    CU_ASSERT_PTR_NOT_NULL(strstr(stage_history(s, "i"), "2.1 ran"));
    CU_ASSERT_EQUAL(partition_open_activities(s->p), 0);
    stage_settle(s);
    CU_ASSERT_EQUAL(s->live_reads, reads);
    stage_end(s);
}

static void check_live(struct stage *s, const char *want)
{
    const thole_slice *names = NULL;
    size_t const n = partition_live_names(s->p, &names);
    CU_ASSERT_EQUAL(n, want == NULL ? 0 : 1);
    if (n == 1 && want != NULL)
        CU_ASSERT_TRUE(thole_slice_equal(names[0], thole_slice_from(want)));
}

/* The last instance of an orchestration takes its name along. */
static void a_name_lives_as_long_as_an_instance(void)
{
    struct stage *s = begin();
    stage_start(s, "a", "plain");
    stage_start(s, "b", "plain");
    check_live(s, "plain");
    stage_complete(s, "a", 2, THOLE_STR("done"));
    check_live(s, "plain");
    stage_complete(s, "b", 2, THOLE_STR("done"));
    check_live(s, NULL);
    stage_end(s);
}

/* A name is counted once, in whichever execution. */
static void a_name_is_counted_once_for_an_instance(void)
{
    struct stage *s = begin();
    stage_start(s, "i", "leaves");
    check_live(s, "leaves");
    stage_tell(s, "i", MESSAGE_EVENT, "item");
    CU_ASSERT_PTR_NOT_NULL(strstr(stage_history(s, "i"), "2.1 ran"));
    check_live(s, NULL);
    stage_end(s);
}

/* An activity that is scheduled while the rows are counted may be among them, or not. */
static void what_changes_while_it_is_counted_is_counted_again(void)
{
    struct stage *s = begin();
    stage_start(s, "i", "plain");
    stage_complete(s, "i", 2, THOLE_STR("done"));
    stage_settle(s);
    size_t const reads = s->live_reads;
    s->hold_live = true;
    stage_tell(s, "i", MESSAGE_DELETE, "gone");
    stage_settle(s);
    CU_ASSERT_EQUAL(s->live_reads, reads + 1);
    stage_start(s, "j", "plain");
    s->hold_live = false;
    give_held(s);
    CU_ASSERT_EQUAL(partition_open_activities(s->p), 1); /* as it knows itself, not as it was counted */
    stage_settle(s);
    CU_ASSERT_EQUAL(s->live_reads, reads + 2);
    stage_end(s);
}

/* ---- events for an instance that nobody starts ---- */

/* The row of their timer is of a time when they were kept for less long. */
static void a_timer_that_fires_too_early_fires_again(void)
{
    struct stage *s = begin();
    s->options.early_event_ms = 1000;
    stage_again(s);
    stage_tell(s, "nobody", MESSAGE_EVENT, "e");
    uint64_t const at = s->now_ms;
    struct batch_timer const row = {
        .instance = THOLE_STR("nobody"), .timer_id = EARLY_TIMER, .due_ms = at + 1000};
    s->timer_rows = (struct in_timers){.timers = &row, .timers_len = 1};
    s->options.early_event_ms = 5000;
    stage_again(s);
    s->timer_rows.timers_len = 0;
    stage_timer(s, at + 1000);
    stage_timer(s, at + 4999);
    CU_ASSERT_PTR_NULL(strstr(stage_history(s, "nobody"), "Discarded"));
    CU_ASSERT_TRUE(partition_deadline_ms(s->p) <= at + 5000);
    stage_timer(s, at + 5000);
    CU_ASSERT_PTR_NOT_NULL(strstr(stage_history(s, "nobody"), "Discarded"));
    stage_end(s);
}

/* They displace one another, and no instance; what was put out of memory is read again for the start. */
static void early_events_have_memory_of_their_own(void)
{
    enum { LARGE = 200 * 1000, IDS = 6 };
    static uint8_t text[LARGE];
    struct stage *s = begin();
    s->options.parked_memory_max = 150 * 1000;
    s->options.early_memory_max = 3 * LARGE;
    stage_again(s);
    memset(text, 'x', LARGE);
    stage_start(s, "lives", "plain");
    for (unsigned i = 0; i < IDS; i++) {
        char const id[] = {(char)('a' + (int)i), '\0'};
        stage_message(s, &(struct message){.kind = MESSAGE_EVENT,
                                           .instance = thole_slice_from(id),
                                           .request_id = thole_slice_from(id),
                                           .event_name = THOLE_STR("item"),
                                           .event_data = {text, LARGE}});
    }
    struct partition_facts const facts = partition_facts(s->p);
    CU_ASSERT_EQUAL(facts.early, 2); /* a third one does not fit with what is around it */
    CU_ASSERT_TRUE(facts.early_bytes >= (size_t)2 * LARGE && facts.early_bytes <= (size_t)3 * LARGE);
    s->loads = 0;
    stage_tell(s, "lives", MESSAGE_EVENT, "e");
    stage_start(s, "f", "plain");
    CU_ASSERT_EQUAL(s->loads, 0);
    stage_start(s, "a", "plain");
    CU_ASSERT_EQUAL(s->loads, 1);
    CU_ASSERT_PTR_NOT_NULL(strstr(stage_history(s, "a"), "EventReceived"));
    CU_ASSERT_EQUAL(partition_facts(s->p).early, 1);
    stage_end(s);
}

/* ---- rows that are ahead of the log ---- */

/* By one record already; also when nobody has kept which one it was. */
static void rows_ahead_of_the_log_are_made_again(void)
{
    for (uint64_t mark = 0; mark <= 1; mark++)
        for (uint64_t ahead = 0; ahead <= 2; ahead++) {
            struct stage *s = begin();
            stage_start(s, "i", "plain");
            stage_settle(s);
            s->projected = (struct projected){s->log_len + ahead, ahead == 0 ? 0 : mark};
            stage_again(s);
            CU_ASSERT_EQUAL(s->resets, ahead > 0);
            stage_end(s);
        }
}

/* ---- removals ---- */

enum { MANY = 70, OUT_MAX = 64 };

static void delete_many(struct stage *s)
{
    char id[16], text[32];
    for (size_t i = 0; i < MANY; i++) {
        (void)snprintf(id, sizeof id, "i%zu", i);
        stage_start(s, id, "plain");
        stage_complete(s, id, 2, THOLE_STR("done"));
    }
    stage_settle(s);
    s->removals = s->durables = 0;
    s->hold_removed = true;
    for (size_t i = 0; i < MANY; i++) {
        (void)snprintf(id, sizeof id, "i%zu", i);
        (void)snprintf(text, sizeof text, "delete %zu", i);
        stage_tell(s, id, MESSAGE_DELETE, text);
    }
    stage_settle(s);
}

static void so_many_at_a_time(void)
{
    struct stage *s = begin();
    delete_many(s);
    CU_ASSERT_EQUAL(s->removals, OUT_MAX);
    give_held(s);
    CU_ASSERT_EQUAL(s->removals, OUT_MAX + 1);
    while (s->held_len > 0)
        stage_release(s);
    CU_ASSERT_EQUAL(s->removals, MANY);
    stage_settle(s);
    CU_ASSERT_TRUE(partition_idle(s->p));
    stage_end(s);
}

/* A record after the deletion says that it is committed; until that is stored nothing is removed. */
static void not_before_the_deletion_is_confirmed(void)
{
    struct stage *s = begin();
    stage_start(s, "i", "plain");
    stage_complete(s, "i", 2, THOLE_STR("done"));
    stage_settle(s);
    s->hold_applied = true;
    stage_tell(s, "i", MESSAGE_DELETE, "gone");
    s->hold_appends = true;
    s->hold_applied = false;
    give_held(s);
    stage_settle(s);
    CU_ASSERT_EQUAL(s->held_len, 1); /* the confirming record */
    CU_ASSERT_EQUAL(s->removals, 0);
    stage_release(s);
    stage_settle(s);
    CU_ASSERT_EQUAL(s->removals, 1);
    stage_end(s);
}

/* The database is to keep for good how far it is, once for each deletion at the most: it waits for its disk.
 */
static void what_is_durable_stays_so(void)
{
    struct stage *s = begin();
    delete_many(s);
    size_t const durables = s->durables;
    CU_ASSERT(durables >= 1 && durables <= MANY);
    for (int i = 0; i < 6; i++) { /* the deletions still wait */
        char id[2] = {(char)('p' + i), 0};
        stage_start(s, id, "plain");
        stage_settle(s);
    }
    CU_ASSERT_EQUAL(s->durables, durables);
    stage_end(s);
}

static void delete_at(struct stage *s, const char *id, const char *request, uint64_t now_ms)
{
    stage_tell(s, id, MESSAGE_DELETE, request);
    for (int i = 0; i < 4; i++)
        stage_timer(s, now_ms);
}

/* Rows of others wait for the disk after a durable watermark: of consecutive deletions not each has one. */
static void what_is_durable_is_not_so_at_once(void)
{
    enum { PAUSE_MS = 50 };
    struct stage *s = begin();
    for (int i = 0; i < 3; i++) {
        char id[2] = {(char)('i' + i), 0};
        stage_start(s, id, "plain");
        stage_complete(s, id, 2, THOLE_STR("done"));
    }
    stage_settle(s);
    uint64_t const begun_ms = s->now_ms;
    s->removals = s->durables = 0;
    delete_at(s, "i", "first", begun_ms);
    CU_ASSERT_EQUAL(s->removals, 1);
    size_t const durables = s->durables;
    delete_at(s, "j", "second", begun_ms + 1);
    delete_at(s, "k", "third", begun_ms + PAUSE_MS - 1);
    CU_ASSERT_EQUAL(s->durables, durables);
    CU_ASSERT_EQUAL(s->removals, 1);
    CU_ASSERT_EQUAL(partition_deadline_ms(s->p), begun_ms + PAUSE_MS);
    for (int i = 0; i < 4; i++)
        stage_timer(s, begun_ms + PAUSE_MS);
    CU_ASSERT_EQUAL(s->durables, durables + 1);
    CU_ASSERT_EQUAL(s->removals, 3);
    stage_end(s);
}

/* Also when the rows are brought up to just that record: it is read again, to see that it is the same log. */
static void what_is_removed_is_not_removed_again(void)
{
    struct stage *s = begin();
    stage_start(s, "i", "plain");
    stage_complete(s, "i", 2, THOLE_STR("done"));
    stage_settle(s);
    stage_tell(s, "i", MESSAGE_DELETE, "gone");
    stage_settle(s);
    CU_ASSERT_EQUAL(s->removals, 1);
    for (size_t i = 0; i < s->log_len; i++)
        if (s->log[i].kind == RECORD_DELETED)
            s->projected = (struct projected){.seq = i + 1};
    CU_ASSERT(s->projected.seq > 0);
    stage_again(s);
    stage_settle(s);
    CU_ASSERT_EQUAL(s->removals, 1);
    stage_end(s);
}

/* A request for nothing leaves no record. */
static void there_is_nothing_to_prune(void)
{
    struct stage *s = begin();
    stage_start(s, "i", "plain");
    size_t const turns = s->log_len;
    for (uint64_t execution = 0; execution <= 1; execution++) {
        struct message const prune = {.kind = MESSAGE_PRUNE,
                                      .instance = THOLE_STR("i"),
                                      .request_id = execution == 0 ? THOLE_STR("a") : THOLE_STR("b"),
                                      .execution = execution};
        stage_message(s, &prune);
    }
    CU_ASSERT_EQUAL(s->log_len, turns);
    stage_end(s);
}

/* ---- memory ---- */

static size_t used(const struct stage *s)
{
    size_t const all = heap_used();
    return all > s->arena.held ? all - s->arena.held : 0; /* the stage keeps all that was said */
}

/* Each begins, works, raises what nobody takes, ends and is deleted. */
static void live(struct stage *s, size_t lives)
{
    for (size_t i = 0; i < lives; i++) {
        char id[32];
        (void)snprintf(id, sizeof id, "life-%04zu", i);
        stage_start(s, id, "plain");
        stage_tell(s, id, MESSAGE_EVENT, "unheard");
        stage_complete(s, id, 2, THOLE_STR("done"));
        stage_tell(s, id, MESSAGE_DELETE, "over");
        stage_timer(s, s->now_ms + 2 * IDLE_MS);
        (void)stage_said(s);
    }
}

static void many_lives_leave_nothing(void)
{
    enum { LIVES = 150, NOISE = 8 * 1024 };
    struct stage *s = begin();
    live(s, LIVES);
    live(s, LIVES);
    size_t const before = used(s);
    live(s, LIVES);
    live(s, LIVES);
    CU_ASSERT(used(s) <= before + NOISE);
    CU_ASSERT_EQUAL(s->removals, 4 * LIVES);
    stage_end(s);
}

/* ---- closing ---- */

static void check_waits(struct stage *s)
{
    CU_ASSERT_EQUAL(partition_state(s->p), PARTITION_CLOSING);
    CU_ASSERT_EQUAL(partition_deadline_ms(s->p), UINT64_MAX);
    CU_ASSERT_STRING_EQUAL(s->closed, "");
}

/* Answers to what was asked before it closed are not those that it waits for now. */
static void answers_of_its_last_life_are_ignored(void)
{
    struct stage *s = begin();
    stage_start(s, "i", "plain");
    s->hold_rejected = true;
    stage_bytes(s, THOLE_STR("bad"), THOLE_STR("\xff"), REJECT_NONE);
    CU_ASSERT_EQUAL_FATAL(s->held_len, 1);
    ask(s, PARTITION_IN_INBOX_BACK);
    stage_open(s);
    s->inbox--;
    stage_bytes(s, THOLE_STR("bad"), THOLE_STR("\xff"), REJECT_NONE); /* read again */
    CU_ASSERT_EQUAL_FATAL(s->held_len, 2);
    give_held(s);
    stage_settle(s);
    CU_ASSERT_FALSE(partition_idle(s->p));
    stage_release(s);
    stage_settle(s);
    CU_ASSERT_TRUE(partition_idle(s->p));
    stage_end(s);
}

/* The partition waits for its appends, and stores its position before it purges the inbox. */
static void it_closes_in_order(void)
{
    struct stage *s = begin();
    stage_start(s, "i", "plain");
    stage_start(s, "j", "plain");
    s->purges = 0;
    s->hold_appends = true;
    stage_complete(s, "i", 2, THOLE_STR("done"));
    ask(s, PARTITION_IN_CLOSE);
    check_waits(s);
    stage_release(s);
    CU_ASSERT_STRING_EQUAL(s->closed, "handed over");
    CU_ASSERT_TRUE(s->closed_for_good);
    CU_ASSERT_EQUAL(s->purges, 1);
    stage_end(s);
}

static void it_closes_when_its_position_is_stored(void)
{
    struct stage *s = begin();
    stage_start(s, "i", "plain");
    stage_start(s, "j", "plain");
    for_nobody(s);
    size_t const before = positions(s);
    s->purges = 0;
    s->hold_appends = true;
    ask(s, PARTITION_IN_CLOSE);
    CU_ASSERT_EQUAL(positions(s), before + 1);
    CU_ASSERT_EQUAL(s->purges, 0);
    check_waits(s);
    stage_release(s);
    CU_ASSERT_STRING_EQUAL(s->closed, "handed over");
    CU_ASSERT_EQUAL(s->purges, 1);
    stage_end(s);
}

static void it_closes_when_its_rows_are_stored(void)
{
    struct stage *s = begin();
    s->hold_applied = true;
    stage_start(s, "i", "plain");
    ask(s, PARTITION_IN_CLOSE);
    check_waits(s);
    stage_release(s);
    CU_ASSERT_STRING_EQUAL(s->closed, "handed over");
    stage_end(s);
}

/* Whatever the reason, the answers to what is on its way come first: they say what this epoch has done. */
static void it_steps_down_when_all_is_answered(void)
{
    struct stage *s = begin();
    stage_start(s, "i", "plain");
    stage_start(s, "j", "plain");
    stage_settle(s);
    uint64_t const done = partition_committed_n(s->p);
    s->hold_appends = true;
    stage_complete(s, "i", 2, THOLE_STR("done"));
    CU_ASSERT_EQUAL_FATAL(s->held_len, 1);
    memset((void *)(uintptr_t)s->appended.ptr, 0xff, s->appended.len); /* cannot be read again */
    stage_complete(s, "j", 2, THOLE_STR("done"));
    CU_ASSERT_EQUAL_FATAL(s->held_len, 2);
    stage_release(s);
    CU_ASSERT_STRING_EQUAL(s->closed, "a record does not decode as it was written");
    CU_ASSERT_FALSE(s->closed_for_good);
    CU_ASSERT_EQUAL(s->closed_records, done + 2);
    stage_end(s);
}

/* Times that the host gave while the partition was closed may have been of a wrong clock: timers are not set
 * by them. */
static void a_time_from_before_the_opening_is_forgotten(void)
{
    enum { HOUR_MS = 3600 * 1000 };
    struct record record;
    struct stage *s = begin();
    stage_settle(s);
    ask(s, PARTITION_IN_CLOSE);
    CU_ASSERT_EQUAL_FATAL(partition_state(s->p), PARTITION_CLOSED);
    (void)partition_flush(s->p, s->now_ms + HOUR_MS, true);
    ask(s, PARTITION_IN_OPEN);
    stage_start(s, "i", "plain");
    CU_ASSERT_EQUAL_FATAL(record_decode(s->log[s->log_len - 1].bytes, &s->arena, &record, NULL), THOLE_OK);
    CU_ASSERT_EQUAL_FATAL(record.kind, RECORD_TURN);
    CU_ASSERT_EQUAL(record.turn.time_ms, s->now_ms);
    stage_end(s);
}

static const struct thole_test tests[] = {
    {"a time from before the opening is forgotten", a_time_from_before_the_opening_is_forgotten},
    {"a timer that fires too early fires again", a_timer_that_fires_too_early_fires_again},
    {"early events have memory of their own", early_events_have_memory_of_their_own},
    {"one thing at a time", one_thing_at_a_time},
    {"an opening saves nothing twice", an_opening_saves_nothing_twice},
    {"an inbox that went back is said once", an_inbox_that_went_back_is_said_once},
    {"each opening purges", each_opening_purges},
    {"who was used last stays", who_was_used_last_stays},
    {"who was loaded last stays", who_was_loaded_last_stays},
    {"who takes too much goes", who_takes_too_much_goes},
    {"who is too large goes alone", who_is_too_large_goes_alone},
    {"what is left at once is not counted again", what_is_left_at_once_is_not_counted_again},
    {"a name lives as long as an instance", a_name_lives_as_long_as_an_instance},
    {"a name is counted once for an instance", a_name_is_counted_once_for_an_instance},
    {"what changes while it is counted is counted again", what_changes_while_it_is_counted_is_counted_again},
    {"rows ahead of the log are made again", rows_ahead_of_the_log_are_made_again},
    {"so many at a time", so_many_at_a_time},
    {"what is durable is not so at once", what_is_durable_is_not_so_at_once},
    {"not before the deletion is confirmed", not_before_the_deletion_is_confirmed},
    {"what is durable stays so", what_is_durable_stays_so},
    {"what is removed is not removed again", what_is_removed_is_not_removed_again},
    {"there is nothing to prune", there_is_nothing_to_prune},
    {"many lives leave nothing", many_lives_leave_nothing},
    {"answers of its last life are ignored", answers_of_its_last_life_are_ignored},
    {"it closes in order", it_closes_in_order},
    {"it closes when its position is stored", it_closes_when_its_position_is_stored},
    {"it closes when its rows are stored", it_closes_when_its_rows_are_stored},
    {"it steps down when all is answered", it_steps_down_when_all_is_answered},
};
THOLE_TEST_MAIN("partition housekeeping", tests)
