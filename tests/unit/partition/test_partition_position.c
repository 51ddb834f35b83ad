/* The inbox position: any order of messages, and what a record says of it, however many messages wait. */
#include "partition_stage.h"
#include "progress.h"
#include "thole_cunit.h"
#include <stdlib.h>

/* ---- beside a simple model ---- */

enum { MOST = 3000 };

static struct model {
    uint64_t last; /* last sequence read */
    bool exists[MOST + 2], incorporated[MOST + 2];
} model;
static uint64_t dice;

static uint64_t roll(uint64_t sides)
{
    dice = dice * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (dice >> 33) % sides;
}

static bool model_has(uint64_t sequence)
{
    return model.incorporated[sequence] || (sequence <= model.last && !model.exists[sequence]);
}

static void compare(const struct progress *progress)
{
    uint64_t floor = 0, open = 0;
    for (uint64_t s = 1; s <= model.last; s++)
        open += model.exists[s] && !model.incorporated[s];
    while (floor < model.last && model_has(floor + 1))
        floor++;
    CU_ASSERT(progress->floor == floor && progress->open == open && progress->received == model.last);
    struct position const position = progress_position(progress);
    uint64_t not_had = 0;
    for (uint64_t s = 1, i = 0; s <= MOST; s++) {
        while (i < position.ranges_len && position.ranges[i].last < s)
            i++;
        bool const said = s <= position.floor || (i < position.ranges_len && s >= position.ranges[i].first);
        if (said != progress_has(progress, s) || said != position_has(&position, s) ||
            (model.incorporated[s] && !said) || (said && !model_has(s)))
            CU_FAIL("the position says something else than what was incorporated");
    }
    for (uint64_t s = 1; s <= MOST; s++) {
        not_had += !progress_has(progress, s);
        CU_ASSERT_EQUAL(position_open(&position, s), not_had);
    }
    for (size_t i = 1; i < position.ranges_len; i++)
        CU_ASSERT(position.ranges[i].first > position.ranges[i - 1].last + 1);
}

static void read_next(struct progress *progress)
{
    uint64_t const sequence = model.last + 1 + (roll(9) == 0 ? roll(5) : 0);
    if (sequence > MOST)
        return;
    model.last = sequence;
    model.exists[sequence] = true;
    CU_ASSERT_TRUE(progress_receive(progress, &(struct in_message){.sequence = sequence, .parts = 1}));
}

/* One of the first few that wait, or of all. */
static void incorporate(struct progress *progress, uint64_t among)
{
    uint64_t left = roll(among);
    for (uint64_t s = progress->floor + 1; s <= model.last; s++)
        if (model.exists[s] && !model.incorporated[s] && left-- == 0) {
            model.incorporated[s] = true;
            progress_add(progress, s, 0);
            return;
        }
}

static void test_any_order(void)
{
    for (uint64_t seed = 1; seed <= 60; seed++) {
        struct progress progress = {0};
        memset(&model, 0, sizeof model);
        dice = seed;
        uint64_t const among = seed % 3 == 0 ? MOST : 1 + roll(60), reads = 1 + roll(4);
        for (uint64_t step = 0; step < 900; step++) {
            if (roll(4) < reads)
                read_next(&progress);
            else
                incorporate(&progress, among);
            if (step % 30 == 0)
                compare(&progress);
        }
        while (progress.open > 0)
            incorporate(&progress, 1);
        compare(&progress);
        CU_ASSERT(progress.floor == model.last && progress.ranges_len == 0 && progress.gaps_len == 0);
        progress_release(&progress);
    }
}

/* A new owner that finds a long list, as engines before wrote it, fills it in from either end: a step costs
 * no more than what lies between it and the nearer end. */
static void test_a_long_list_is_taken_over(void)
{
    struct sequence_range *const ranges = calloc(POSITION_ABOVE_MAX, sizeof *ranges);
    struct position const position = {.floor = 1, .ranges = ranges, .ranges_len = POSITION_ABOVE_MAX};
    for (uint64_t i = 0; i < POSITION_ABOVE_MAX; i++)
        ranges[i] = (struct sequence_range){3 + 2 * i, 3 + 2 * i};
    struct progress progress = {0};
    progress_set(&progress, &position);
    for (uint64_t i = 0; i < POSITION_ABOVE_MAX / 2; i++) {
        progress_add(&progress, 4 + 2 * i, 0); /* after the first, which stands */
        progress_add(&progress, 2 * (POSITION_ABOVE_MAX - i), 0);
    }
    CU_ASSERT(progress.floor == 1 && progress.ranges_len == 1);
    progress_add(&progress, 2, 0);
    CU_ASSERT(progress.floor == 1 + 2 * POSITION_ABOVE_MAX && progress.ranges_len == 0);
    progress_release(&progress);
    free(ranges);
}

/* ---- positions in records ---- */

static thole_status plain(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    return thole_await(ctx, thole_call(ctx, THOLE_STR("work"), input), ret_output);
}

static const thole_orchestration_entry entries[] = {{"plain", plain, 0}};

static struct stage *begin(bool ranges_read)
{
    struct stage *const s = stage_begin(entries, ARRAY_LEN(entries));
    partition_forms_read(s->p, (struct record_forms){.ranges = ranges_read});
    stage_start(s, "kid", "plain");
    stage_settle(s);
    s->hold_sent = true;
    return s;
}

/* A start that collides: it waits until its answer is stored. */
static void one_waits(struct stage *s)
{
    stage_message(s, &(struct message){.kind = MESSAGE_START,
                                       .instance = THOLE_STR("kid"),
                                       .orchestration = THOLE_STR("plain"),
                                       .parent = {THOLE_STR("other"), 1, 2}});
}

static struct position last_position(const struct stage *s, struct arena *arena)
{
    struct record record = {.kind = RECORD_UNKNOWN};
    arena_init(arena, 64 << 20);
    CU_ASSERT_EQUAL(record_decode(s->log[s->log_len - 1].bytes, arena, &record, NULL), THOLE_OK);
    return record.position;
}

/* Bytes of the record of a new instance's first turn. */
static size_t start_bytes(struct stage *s, const char *instance)
{
    size_t const before = s->log_len;
    stage_start(s, instance, "plain");
    CU_ASSERT_EQUAL_FATAL(s->log_len, before + 1);
    CHECK_STR("the record", s->log[before].instance, instance);
    return s->log[before].bytes.len;
}

/* Numbers that grow take a few bytes more: of the record, of the message that was seen, of the range. */
enum { BEHIND = 100000, NUMBERS_BYTES = 24 };

static void test_bytes_do_not_depend_on_what_waits(void)
{
    struct stage *const s = begin(true);
    size_t const alone = start_bytes(s, "i-1");
    one_waits(s);
    for (int i = 0; i < BEHIND; i++)
        stage_tell(s, "absent", MESSAGE_CANCEL, "why"); /* changes nothing, and is incorporated */
    size_t const behind = start_bytes(s, "i-2");
    CU_ASSERT(behind <= alone + NUMBERS_BYTES);
    struct arena arena;
    struct position const position = last_position(s, &arena);
    CU_ASSERT(position.ranges_len == 1 && position_sequences(&position) == BEHIND + 1 && !position.listed);
    arena_release(&arena);
    stage_end(s);
}

/* Every second message waits. There is no room for more before the ranges are many. */
static void test_every_second_waits(void)
{
    struct stage *const s = begin(true);
    size_t const alone = start_bytes(s, "i-00");
    size_t started = 0, most = 0;
    char instance[16];
    while (partition_room(s->p) > 0) {
        one_waits(s);
        (void)snprintf(instance, sizeof instance, "i-%02zu", ++started);
        size_t const bytes = start_bytes(s, instance);
        most = bytes > most ? bytes : most;
    }
    CU_ASSERT_EQUAL(started, PARTITION_WAITING_MAX);
    CU_ASSERT(most > alone && most <= alone + NUMBERS_BYTES + 2 * PARTITION_WAITING_MAX);
    stage_release(s);
    CU_ASSERT_EQUAL(partition_room(s->p), PARTITION_WAITING_MAX);
    CU_ASSERT(start_bytes(s, "i-99") <= alone + NUMBERS_BYTES);
    stage_end(s);
}

static const char *form_of_last(const struct stage *s)
{
    static char text[64];
    struct arena arena;
    struct position const position = last_position(s, &arena);
    (void)snprintf(text, sizeof text, "%zu %s", position.ranges_len,
                   position.ranges_len == 0 ? "nothing"
                   : position.listed        ? "listed"
                                            : "ranges");
    arena_release(&arena);
    return text;
}

static void close_it(struct stage *s)
{
    (void)partition_input(s->p, &(struct partition_in){.kind = PARTITION_IN_CLOSE}, s->now_ms);
    stage_settle(s);
    CU_ASSERT_EQUAL(partition_state(s->p), PARTITION_CLOSED);
}

/* Sequences that an engine without ranges may need are listed: at once when such an engine comes, and by a
 * partition that closes, as any engine may open it next. */
static void test_who_reads_no_ranges_finds_a_list(void)
{
    struct stage *const s = begin(false);
    one_waits(s);
    (void)start_bytes(s, "i-1");
    CHECK_STR("one does not read them", form_of_last(s), "1 listed");
    partition_forms_read(s->p, (struct record_forms){.ranges = true});
    (void)start_bytes(s, "i-2");
    CHECK_STR("all read them", form_of_last(s), "1 ranges");
    size_t const before = s->log_len;
    stage_timer(s, s->now_ms + 1);
    CU_ASSERT_EQUAL(s->log_len, before);
    partition_forms_read(s->p, (struct record_forms){.ranges = false});
    stage_timer(s, s->now_ms + 1);
    CU_ASSERT_EQUAL(s->log_len, before + 1);
    CHECK_STR("one has come that does not", form_of_last(s), "1 listed");
    stage_timer(s, s->now_ms + 1);
    CU_ASSERT_EQUAL(s->log_len, before + 1); /* once */
    partition_forms_read(s->p, (struct record_forms){.ranges = true});
    (void)start_bytes(s, "i-3");
    CHECK_STR("it is gone", form_of_last(s), "1 ranges");
    close_it(s);
    CHECK_STR("closed", form_of_last(s), "1 listed");
    stage_end(s);
}

/* A list of all would make records too large: ranges are shorter, and room is short until they are few. */
static void test_too_many_for_a_list(void)
{
    struct partition_options options;
    stage_options(&options, entries, ARRAY_LEN(entries));
    options.ahead_max = 8;
    struct stage *const s = stage_begin_with(&options, 1000);
    partition_forms_read(s->p, (struct record_forms){.ranges = true});
    stage_start(s, "kid", "plain");
    s->hold_sent = true;
    one_waits(s);
    for (int i = 0; i < 8; i++)
        stage_tell(s, "absent", MESSAGE_CANCEL, "why");
    CU_ASSERT_EQUAL(partition_room(s->p), PARTITION_WAITING_MAX - 1);
    (void)start_bytes(s, "i-1");
    partition_forms_read(s->p, (struct record_forms){.ranges = false});
    CU_ASSERT_EQUAL(partition_room(s->p), 0);
    stage_timer(s, s->now_ms + 1);
    CHECK_STR("too many", form_of_last(s), "1 ranges");
    stage_release(s);
    stage_settle(s);
    CHECK_STR("none", form_of_last(s), "0 nothing");
    stage_end(s);
}

/* The next owner continues from the same position, from either form. */
static void test_the_next_owner_finds_the_same(void)
{
    for (int ranges = 0; ranges <= 1; ranges++) {
        struct stage *const s = begin(ranges == 1);
        one_waits(s);
        for (int i = 0; i < 10; i++)
            stage_tell(s, "absent", MESSAGE_CANCEL, "why");
        (void)start_bytes(s, "i-1");
        struct arena before, after;
        struct position const was = last_position(s, &before);
        stage_again(s);
        struct position const is = last_position(s, &after);
        CU_ASSERT(was.floor == is.floor && was.ranges_len == 1 && is.ranges_len == 1);
        CU_ASSERT(was.ranges[0].first == is.ranges[0].first && was.ranges[0].last == is.ranges[0].last);
        CU_ASSERT(was.listed == (ranges == 0) && is.listed); /* the new one has not been told */
        arena_release(&before);
        arena_release(&after);
        stage_end(s);
    }
}

static const struct thole_test tests[] = {
    {"any order", test_any_order},
    {"a long list is taken over", test_a_long_list_is_taken_over},
    {"bytes do not depend on what waits", test_bytes_do_not_depend_on_what_waits},
    {"every second waits", test_every_second_waits},
    {"who reads no ranges finds a list", test_who_reads_no_ranges_finds_a_list},
    {"too many for a list", test_too_many_for_a_list},
    {"the next owner finds the same", test_the_next_owner_finds_the_same},
};
THOLE_TEST_MAIN("partition_position", tests)
