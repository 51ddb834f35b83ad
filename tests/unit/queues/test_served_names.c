/* Which activities the workers know, as they answered, and for how long that is believed. */
#include "clock.h"
#include "served_names.h"
#include "thole_cunit.h"

static struct {
    uint64_t now_ms;
    thole_status status;
    struct roll_answer answers[3];
    size_t len, calls;
} play;

uint64_t __wrap_clock_monotonic_ms(void)
{
    return play.now_ms;
}

thole_status __wrap_roll_call(struct connection *connection, const char *ns, struct arena *arena,
                              struct roll_answer **ret, size_t *ret_len, thole_error *reterr)
{
    (void)connection;
    CHECK_STR("namespace", ns, "shop");
    play.calls++;
    if (play.status != THOLE_OK)
        return thole_fail(reterr, play.status, "not asked");
    *ret = arena_array(arena, play.len, sizeof **ret);
    for (size_t i = 0; i < play.len; i++)
        (*ret)[i] = play.answers[i];
    *ret_len = play.len;
    return THOLE_OK;
}

static const thole_slice both[] = {{(const uint8_t *)"b", 1}, {(const uint8_t *)"a", 1}};
static const thole_slice one[] = {{(const uint8_t *)"c", 1}};

static struct served_names *begin(void)
{
    memset(&play, 0, sizeof play);
    play.now_ms = 1000;
    play.answers[0] = (struct roll_answer){
        .worker = THOLE_STR("w-1"), .queue = THOLE_STR("q"), .activities = both, .activities_len = 2};
    play.answers[1] = (struct roll_answer){
        .worker = THOLE_STR("w-2"), .queue = THOLE_STR("q"), .activities = both, .activities_len = 1};
    play.answers[2] = (struct roll_answer){
        .worker = THOLE_STR("w-3"), .queue = THOLE_STR("r"), .activities = one, .activities_len = 1};
    play.len = 3;
    return served_names_create();
}

static thole_status ask(struct served_names *served, const char *queue, const char *self)
{
    return served_names_ask(served, NULL, "shop", thole_slice_from(queue), thole_slice_from(self), NULL);
}

static enum served look(struct served_names *served, const char *queue, const char *name)
{
    bool asks;
    return served_names_look(served, thole_slice_from(queue), thole_slice_from(name), play.now_ms, &asks);
}

static void test_who_knows_what(void)
{
    struct served_names *const served = begin();
    CU_ASSERT_EQUAL(look(served, "q", "a"), SERVED_UNKNOWN);
    CU_ASSERT_TRUE(served_names_asks(served, play.now_ms));
    CU_ASSERT_EQUAL(ask(served, "", ""), THOLE_OK);
    CU_ASSERT_EQUAL(look(served, "q", "a"), SERVED_BY_SOME);
    CU_ASSERT_EQUAL(look(served, "q", "b"), SERVED_BY_SOME);
    CU_ASSERT_EQUAL(look(served, "q", "c"), SERVED_BY_NONE); /* of another queue */
    CU_ASSERT_EQUAL(look(served, "r", "c"), SERVED_BY_SOME);
    CU_ASSERT_EQUAL(look(served, "r", "ca"), SERVED_BY_NONE);
    CU_ASSERT_EQUAL(ask(served, "r", "w-3"), THOLE_OK); /* of this queue alone */
    CU_ASSERT_EQUAL(look(served, "q", "a"), SERVED_BY_NONE);
    CU_ASSERT_EQUAL(look(served, "r", "c"), SERVED_BY_SOME);
    play.len = 0;
    CU_ASSERT_EQUAL(ask(served, "", ""), THOLE_OK); /* there is no worker */
    CU_ASSERT_EQUAL(look(served, "r", "c"), SERVED_BY_NONE);
    CU_ASSERT_TRUE(served_names_silent(served)); /* or they do not hear the question */
    play.len = 1;
    CU_ASSERT_EQUAL(ask(served, "", ""), THOLE_OK);
    CU_ASSERT_FALSE(served_names_silent(served));
    served_names_destroy(served);
    served_names_destroy(NULL);
}

static void test_how_long_it_is_believed(void)
{
    struct served_names *const served = begin();
    CU_ASSERT_EQUAL(ask(served, "", ""), THOLE_OK);
    CU_ASSERT_FALSE(served_names_asks(served, 1000 + 3059)); /* 3 s, and more with each that answers */
    CU_ASSERT_TRUE(served_names_asks(served, 1000 + 3060));
    play.now_ms = 1000 + 2 * 3060;
    CU_ASSERT_EQUAL(look(served, "q", "a"), SERVED_BY_SOME);
    play.now_ms++;
    CU_ASSERT_EQUAL(look(served, "q", "a"), SERVED_UNKNOWN);
    CU_ASSERT_EQUAL(look(served, "q", "c"), SERVED_UNKNOWN);
    play.status = THOLE_UNAVAILABLE; /* known names end, and it asks again */
    CU_ASSERT_EQUAL(ask(served, "", ""), THOLE_UNAVAILABLE);
    CU_ASSERT_EQUAL(look(served, "q", "a"), SERVED_UNKNOWN);
    CU_ASSERT_FALSE(served_names_asks(served, play.now_ms + 3059));
    CU_ASSERT_TRUE(served_names_asks(served, play.now_ms + 3060));
    served_names_destroy(served);
}

/* A worker that has not heard itself may not have heard others. */
static void test_who_does_not_hear_itself(void)
{
    struct served_names *const served = begin();
    CU_ASSERT_EQUAL(ask(served, "q", "w-9"), THOLE_UNAVAILABLE);
    CU_ASSERT_EQUAL(look(served, "q", "c"), SERVED_UNKNOWN);
    CU_ASSERT_EQUAL(ask(served, "q", "w-2"), THOLE_OK);
    CU_ASSERT_EQUAL(look(served, "q", "c"), SERVED_BY_NONE);
    served_names_destroy(served);
}

static void test_who_may_not_ask(void)
{
    struct served_names *const served = begin();
    CU_ASSERT_EQUAL(ask(served, "", ""), THOLE_OK);
    CU_ASSERT_FALSE(served_names_silent(served));
    play.status = THOLE_DENIED;
    CU_ASSERT_EQUAL(ask(served, "", ""), THOLE_DENIED);
    CU_ASSERT_TRUE(served_names_silent(served));
    CU_ASSERT_EQUAL(look(served, "q", "a"), SERVED_UNKNOWN);
    CU_ASSERT_FALSE(served_names_asks(served, 1000 + 59999));
    CU_ASSERT_TRUE(served_names_asks(served, 1000 + 60000));
    play.status = THOLE_OK;
    CU_ASSERT_EQUAL(ask(served, "", ""), THOLE_OK);
    CU_ASSERT_FALSE(served_names_silent(served));
    CU_ASSERT_EQUAL(look(served, "q", "a"), SERVED_BY_SOME);
    CU_ASSERT_FALSE(served_names_asks(served, 1000 + 3059)); /* the pause is the usual one again */
    CU_ASSERT_TRUE(served_names_asks(served, 1000 + 3060));
    served_names_destroy(served);
}

static const struct thole_test tests[] = {
    {"who knows what", test_who_knows_what},
    {"how long it is believed", test_how_long_it_is_believed},
    {"who does not hear itself", test_who_does_not_hear_itself},
    {"who may not ask", test_who_may_not_ask},
};
THOLE_TEST_MAIN("served_names", tests)
