/* Which consumers of a connection may send: the windows are nats-server's, and the bytes are those that it
 * would count. */
#include "inflow.h"
#include "thole_cunit.h"
#include <stdlib.h>

enum { MIB = 1024 * 1024, PARTS = 24 };

static struct {
    struct inflow *inflow;
    struct inflow_part parts[PARTS];
    size_t turns[PARTS], turns_len; /* whose turn has come, in order */
} play;

static void turn(void *arg)
{
    CU_ASSERT_FATAL(play.turns_len < PARTS);
    play.turns[play.turns_len++] = (size_t)((struct inflow_part *)arg - play.parts);
}

static void begin(void)
{
    memset(&play, 0, sizeof play);
    play.inflow = inflow_create();
    for (size_t i = 0; i < PARTS; i++)
        play.parts[i] = (struct inflow_part){.inflow = play.inflow, .turn = turn, .arg = &play.parts[i]};
}

/* Asserts that nothing is under way and nobody waits. */
static void end(void)
{
    for (size_t i = 0; i < PARTS; i++)
        inflow_end(&play.parts[i]);
    inflow_destroy(play.inflow);
}

static void check_turns(const char *name, const char *want)
{
    char got[200] = "";
    for (size_t i = 0; i < play.turns_len; i++)
        (void)snprintf(got + strlen(got), sizeof got - strlen(got), "%zu ", play.turns[i]);
    CHECK_STR(name, got, want);
    play.turns_len = 0;
}

/* A consumer that has used up its window: a message that ends the first half, the flow control, the rest. */
static void use_window(struct inflow_part *part)
{
    size_t const half = part->window / 2;
    inflow_came(part, half, true);
    inflow_stops(part);
    inflow_came(part, half, true);
}

static void test_windows_grow(void)
{
    static const size_t windows[] = {2, 4, 8, 16, 32, 32};
    begin();
    struct inflow_part *const part = &play.parts[0];
    CU_ASSERT(inflow_ask(part));
    for (size_t i = 0; i < ARRAY_LEN(windows); i++) {
        CU_ASSERT_EQUAL(part->window, windows[i] * MIB);
        inflow_came(part, part->window / 2, true);
        inflow_stops(part);
        CU_ASSERT_EQUAL(part->due, part->window / 2);
        CU_ASSERT(inflow_ask(part)); /* one alone never waits */
    }
    CU_ASSERT_EQUAL(part->due, 32 * MIB);
    end();
}

static void test_as_many_begin_as_have_room(void)
{
    size_t began = 0;
    begin();
    while (began < PARTS && inflow_ask(&play.parts[began]))
        began++;
    CU_ASSERT_EQUAL(began, INFLOW_BYTES / INFLOW_WINDOW_FIRST);
    CU_ASSERT_FALSE(inflow_ask(&play.parts[began])); /* asked twice, it waits once */
    CU_ASSERT_FALSE(inflow_ask(&play.parts[began + 1]));
    inflow_came(&play.parts[0], MIB, true);
    check_turns("half of a window is not enough", "");
    inflow_came(&play.parts[0], MIB, true);
    check_turns("in order", "10 ");
    CU_ASSERT(inflow_ask(&play.parts[began]));
    inflow_came(&play.parts[1], 100, false);
    check_turns("at the end of its stream nothing is under way", "11 ");
    CU_ASSERT(inflow_ask(&play.parts[began + 1]));
    inflow_came(&play.parts[1], 100, true);
    CU_ASSERT_EQUAL(play.parts[1].due, 2 * MIB - 100); /* may send more again */
    end();
}

static void test_those_that_go_on_wait_in_order(void)
{
    begin();
    for (size_t i = 0; i < 4; i++) {
        CU_ASSERT(inflow_ask(&play.parts[i]));
        for (size_t k = 0; k < 3; k++) { /* 2 to 16 MiB */
            use_window(&play.parts[i]);
            CU_ASSERT(inflow_ask(&play.parts[i]));
        }
        inflow_came(&play.parts[i], 1, false);
    }
    CU_ASSERT_EQUAL(play.parts[3].window, 16 * MIB);
    for (size_t i = 0; i < 4; i++) /* all of them at once: 8 MiB and later bytes */
        inflow_came(&play.parts[i], 8 * MIB, true);
    for (size_t i = 0; i < 4; i++)
        inflow_stops(&play.parts[i]);
    for (size_t i = 0; i < 4; i++)
        CU_ASSERT_FALSE(inflow_ask(&play.parts[i])); /* 24 MiB of others, 32 of its own */
    for (size_t i = 1; i < 4; i++)
        inflow_came(&play.parts[i], 8 * MIB, true);
    check_turns("nothing of others is under way", "0 ");
    CU_ASSERT_EQUAL(play.parts[0].due, 32 * MIB);
    CU_ASSERT(inflow_ask(&play.parts[0]));
    CU_ASSERT_EQUAL(play.parts[0].due, 32 * MIB); /* granted once */
    inflow_came(&play.parts[0], 31 * MIB, true);
    check_turns("1 MiB of the first, and 24 of the next are too much", "");
    inflow_came(&play.parts[0], 1 * MIB, true);
    check_turns("all of the first has come", "1 ");
    inflow_end(&play.parts[2]);
    inflow_end(&play.parts[0]);
    check_turns("one has ended, the last one waits", "");
    inflow_rests(&play.parts[1], true);
    check_turns("a heartbeat from before the answer", "");
    inflow_rests(&play.parts[1], false);
    check_turns("a heartbeat: nothing is under way", "3 ");
    end();
}

static void test_one_that_stalls(void)
{
    begin();
    CU_ASSERT(inflow_ask(&play.parts[0]));
    for (size_t k = 0; k < 4; k++) { /* 2 to 32 MiB */
        inflow_stops(&play.parts[0]);
        CU_ASSERT(inflow_ask(&play.parts[0]));
    }
    CU_ASSERT_FALSE(inflow_ask(&play.parts[1]));
    inflow_stops(&play.parts[0]);
    inflow_came(&play.parts[0], 14 * MIB, true); /* and what was not counted: it is all that it had */
    check_turns("there is room", "1 ");
    CU_ASSERT(inflow_ask(&play.parts[1]));
    for (size_t k = 0; k < 3; k++) { /* 2 to 16 MiB */
        inflow_stops(&play.parts[1]);
        CU_ASSERT(inflow_ask(&play.parts[1]));
    }
    CU_ASSERT_FALSE(inflow_ask(&play.parts[0])); /* 16 of the other, 18 that it has not had */
    CU_ASSERT_EQUAL(play.parts[0].due, 2 * MIB);
    inflow_rests(&play.parts[0], true);
    CU_ASSERT_EQUAL(play.parts[0].due, 0);
    check_turns("its own do not count for itself", "");
    inflow_stops(&play.parts[1]);
    CU_ASSERT_EQUAL(play.parts[1].due, 8 * MIB);
    inflow_rests(&play.parts[1], true); /* before its owner has asked */
    CU_ASSERT_EQUAL(play.parts[1].due, 0);
    check_turns("nothing of the other is under way", "0 ");
    end();
}

/* Later messages come as fast as they are published. */
static void test_the_end_of_a_stream(void)
{
    begin();
    for (size_t i = 0; i < PARTS; i++) { /* of an empty one, as the answer to its creation says */
        CU_ASSERT(inflow_ask(&play.parts[i]));
        inflow_rests(&play.parts[i], false);
    }
    for (size_t i = 0; i < PARTS; i++) {
        inflow_stops(&play.parts[i]);
        CU_ASSERT(inflow_ask(&play.parts[i]));
        CU_ASSERT(play.parts[i].window == 4 * MIB && play.parts[i].due == 0);
    }
    inflow_came(&play.parts[0], MIB, true);
    CU_ASSERT_EQUAL(play.parts[0].due, 3 * MIB);
    end();
}

/* Also while others have all the room, and one waits for it. */
static void test_the_end_needs_no_room(void)
{
    begin();
    CU_ASSERT(inflow_ask(&play.parts[0]));
    inflow_rests(&play.parts[0], false);
    CU_ASSERT(inflow_ask(&play.parts[1]));
    for (size_t k = 0; k < 4; k++) { /* 2 to 32 MiB */
        inflow_stops(&play.parts[1]);
        CU_ASSERT(inflow_ask(&play.parts[1]));
    }
    CU_ASSERT_FALSE(inflow_ask(&play.parts[2]));
    inflow_stops(&play.parts[0]);
    CU_ASSERT(inflow_ask(&play.parts[0]));
    end();
}

static void test_who_waits_for_a_consumer_goes_first(void)
{
    begin();
    CU_ASSERT(inflow_ask(&play.parts[0]));
    inflow_came(&play.parts[0], 1, true);
    inflow_stops(&play.parts[0]);
    for (size_t i = 1; i < 10; i++)
        CU_ASSERT(inflow_ask(&play.parts[i]));
    CU_ASSERT_FALSE(inflow_ask(&play.parts[0])); /* would go on */
    CU_ASSERT_FALSE(inflow_ask(&play.parts[10]));
    CU_ASSERT_FALSE(inflow_ask(&play.parts[11]));
    inflow_end(&play.parts[1]);
    inflow_end(&play.parts[2]);
    inflow_end(&play.parts[3]);
    check_turns("in order", "10 11 0 ");
    end();
}

static void test_one_that_has_none(void)
{
    struct inflow_part part = {.inflow = NULL};
    CU_ASSERT(inflow_ask(&part));
    for (int i = 0; i < 3; i++) {
        inflow_came(&part, 100 * MIB, true);
        inflow_stops(&part);
        CU_ASSERT(inflow_ask(&part));
    }
    inflow_rests(&part, false);
    inflow_end(&part);
    CU_ASSERT_EQUAL(part.due + part.window, 0);
    inflow_destroy(NULL);
}

static const struct thole_test tests[] = {
    {"windows grow", test_windows_grow},
    {"as many begin as have room", test_as_many_begin_as_have_room},
    {"those that go on wait in order", test_those_that_go_on_wait_in_order},
    {"one that stalls", test_one_that_stalls},
    {"the end of a stream", test_the_end_of_a_stream},
    {"the end needs no room", test_the_end_needs_no_room},
    {"who waits for a consumer goes first", test_who_waits_for_a_consumer_goes_first},
    {"one that has none", test_one_that_has_none},
};
THOLE_TEST_MAIN("inflow", tests)
