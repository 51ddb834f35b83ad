#include "retry_pause.h"
#include "thole_cunit.h"

enum { MAX_MS = 15000, MINUTE_MS = 60 * 1000 };

static void test_failed(void)
{
    static const uint64_t most_ms[] = {50, 100, 200, 400, 800, 1600, 2000, 2000};
    struct retry_pause pause;
    retry_pause_begin(&pause, 0, 7);
    for (size_t i = 0; i < ARRAY_LEN(most_ms); i++) {
        retry_pause_failed(&pause, 1000);
        CU_ASSERT(pause.due_ms >= 1000 + most_ms[i] / 2 && pause.due_ms <= 1000 + most_ms[i]);
    }
    retry_pause_connected(&pause, 5000);
    CU_ASSERT_EQUAL(pause.due_ms, 5050);
    retry_pause_failed(&pause, 6000);
    CU_ASSERT(pause.due_ms <= 6050); /* from the beginning */
}

/* A connection without pauses of its own is made again at once, but not within the same moment. */
static void test_lost_without_pauses(void)
{
    struct retry_pause pause;
    retry_pause_begin(&pause, 0, 7);
    for (uint64_t at = 1000; at < 3000; at += 100) {
        retry_pause_connected(&pause, at);
        retry_pause_lost(&pause, at + 10);
        CU_ASSERT_EQUAL(pause.due_ms, at + 50);
    }
}

static void test_lost_again_and_again(void)
{
    struct retry_pause pause;
    uint64_t now_ms = 1000;
    unsigned losses = 0;
    retry_pause_begin(&pause, MAX_MS, 7);
    for (; now_ms < 1000 + 11 * MINUTE_MS; now_ms = pause.due_ms) {
        retry_pause_connected(&pause, now_ms);
        retry_pause_lost(&pause, now_ms + 100);
        losses += now_ms > 1000 + MINUTE_MS;
        CU_ASSERT(pause.due_ms <= now_ms + 100 + MAX_MS);
    }
    CU_ASSERT(losses > 10 * 3 && losses <= 10 * 8); /* a minute */
}

static void test_lost_once_in_a_while(void)
{
    struct retry_pause pause;
    retry_pause_begin(&pause, MAX_MS, 7);
    for (uint64_t at = 1000; at < 20 * MINUTE_MS; at += 2 * MINUTE_MS) {
        retry_pause_connected(&pause, at);
        retry_pause_lost(&pause, at + MINUTE_MS);
        CU_ASSERT_EQUAL(pause.due_ms, at + 50);
    }
    for (unsigned i = 0; i < 10; i++)
        retry_pause_lost(&pause, pause.connected_ms + 1);
    retry_pause_connected(&pause, 30 * MINUTE_MS);
    retry_pause_lost(&pause, 31 * MINUTE_MS); /* this one was steady: pauses are short again */
    retry_pause_connected(&pause, 31 * MINUTE_MS + 50);
    retry_pause_lost(&pause, 31 * MINUTE_MS + 60);
    CU_ASSERT(pause.due_ms <= 31 * MINUTE_MS + 60 + 250);
}

/* The due time of the last loss does not hold back an attempt that failed after it. */
static void test_lost_and_failed(void)
{
    struct retry_pause pause;
    retry_pause_begin(&pause, MAX_MS, 7);
    retry_pause_connected(&pause, 1000);
    retry_pause_lost(&pause, 1100);
    retry_pause_failed(&pause, pause.due_ms);
    CU_ASSERT(pause.due_ms <= 1100 + 250 + 50);
}

int main(void)
{
    static const struct thole_test tests[] = {
        {"failed", test_failed},
        {"lost_without_pauses", test_lost_without_pauses},
        {"lost_again_and_again", test_lost_again_and_again},
        {"lost_once_in_a_while", test_lost_once_in_a_while},
        {"lost_and_failed", test_lost_and_failed},
    };
    return thole_run_suite("retry_pause", tests, ARRAY_LEN(tests));
}
