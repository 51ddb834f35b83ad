/* When the first deadline can be that the rows of a batch make: the engine looks no sooner, and no later. */
#include "deadlines.h"
#include "thole_cunit.h"
#include "wrap_mutexes.h"

static void test_the_shortest_counts(void)
{
    static const struct {
        uint64_t timeouts_ms[4]; /* 0: none */
        size_t n;
        uint64_t want_ms;
    } rows[] = {{{0}, 0, UINT64_MAX},
                {{0, 0, 0}, 3, UINT64_MAX},
                {{0, 500, 0, 0}, 4, 500},
                {{3000, 1000, 2000}, 3, 1000},
                {{1000, 3000, 0, 2000}, 4, 1000}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct batch_activity activities[4];
        for (size_t k = 0; k < rows[i].n; k++)
            activities[k] = (struct batch_activity){.try_timeout_ms = rows[i].timeouts_ms[k]};
        struct batch const batch = {.activities_added = activities, .activities_added_len = rows[i].n};
        CU_ASSERT_EQUAL(deadlines_first(&batch), rows[i].want_ms);
    }
}

static const struct thole_test tests[] = {{"the shortest counts", test_the_shortest_counts}};
THOLE_TEST_MAIN("first_deadline", tests)
