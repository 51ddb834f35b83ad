/* Each kind of request of the engine role has a complete rule: an executor, and a meaning of failures. */
#include "shard_request.h"
#include "thole_cunit.h"

static int carriers(const struct request_rule *rule)
{
    return (rule->send != NULL) + (rule->load != NULL) + (rule->store != NULL);
}

static bool has_its_carrier(const struct request_rule *rule)
{
    switch (rule->executor) {
    case EXECUTOR_WINDOW: return rule->send != NULL && rule->window < WINDOWS;
    case EXECUTOR_LOADER:
    case EXECUTOR_CLEANER: return rule->load != NULL;
    case EXECUTOR_REMOVER: return carriers(rule) == 0;
    case EXECUTOR_STORE: return rule->store != NULL;
    }
    return false;
}

static void test_each_is_carried_out(void)
{
    for (size_t i = 0; i < REQ_KINDS; i++) {
        CU_ASSERT_EQUAL(carriers(&request_rules[i]), request_rules[i].executor != EXECUTOR_REMOVER);
        CU_ASSERT_TRUE(has_its_carrier(&request_rules[i]));
    }
}

/* Only a window says whether something was stored; what is refused for long is told in the log. */
static void test_each_failure_means_something(void)
{
    for (size_t i = 0; i < REQ_KINDS; i++) {
        const struct request_rule *const rule = &request_rules[i];
        bool const again = rule->failure == FAILURE_AGAIN || rule->failure == FAILURE_AGAIN_WHEN_SURE;
        CU_ASSERT_PTR_NOT_NULL_FATAL(rule->failed);
        CU_ASSERT_NOT_EQUAL(rule->failed[0], '\0');
        CU_ASSERT_EQUAL(again, rule->refused != NULL);
        CU_ASSERT_TRUE(!again || rule->executor == EXECUTOR_WINDOW);
        CU_ASSERT_TRUE(rule->answer != NULL || rule->failure == FAILURE_DROP);
    }
}

/* An append is sent in the order of its log, or not at all: nothing of it is tried again. */
static void test_appends_are_alone(void)
{
    for (size_t i = 0; i < REQ_KINDS; i++)
        CU_ASSERT_EQUAL(request_rules[i].executor == EXECUTOR_WINDOW &&
                            request_rules[i].window == WINDOW_APPENDS,
                        i == REQ_APPEND);
    CU_ASSERT_EQUAL(request_rules[REQ_APPEND].failure, FAILURE_ANSWER);
}

static const struct thole_test tests[] = {
    {"each is carried out", test_each_is_carried_out},
    {"each failure means something", test_each_failure_means_something},
    {"appends are alone", test_appends_are_alone},
};
THOLE_TEST_MAIN("request_table", tests)
