/* Log lines about turns that do not end: the clock and the waits of the watchdog are the test's. */
#include "crash_page.h"
#include "logged.h"
#include "resident.h"
#include "thole_cunit.h"
#include "watchdog.h"
#include "wrap_mutexes.h"
#include <errno.h>
#include <malloc.h>
#include <sched.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

enum { SHARDS = 2, LOOK_MS = 200, WARN_MS = 1000 };

static struct {
    struct engine_host engine;
    struct shard shards[SHARDS];
    struct crash_page *page;
    atomic_uint_fast64_t now_ms;
    atomic_size_t looks; /* ended ones */
    size_t looks_max;    /* then it stays where it is */
    void (*before)(size_t look);
    char lines[8][256];
    size_t lines_len;
    size_t busy; /* looks in which code runs */
    uint64_t growth, garbage,
        resident;    /* of the process in each of them; of 4 parts of it are free; in all */
    uint64_t kept;   /* memory of the process when memory was given back last */
    char trims[128]; /* after how many looks memory was given back */
} play;

uint64_t __wrap_clock_monotonic_ms(void)
{
    return atomic_load(&play.now_ms);
}

int __wrap_malloc_trim(size_t pad)
{
    size_t const len = strlen(play.trims);
    CU_ASSERT_EQUAL(pad, 0);
    (void)snprintf(play.trims + len, sizeof play.trims - len, "%zu ", atomic_load(&play.looks));
    play.resident = play.kept += (play.resident - play.kept) / 4 * (4 - play.garbage);
    return 1;
}

uint64_t __wrap_resident_bytes(void)
{
    return play.resident;
}

THOLE_PRINTF(4, 5)
void __wrap_log_line_of(enum log_level level, const char *area, const struct log_fields *fields,
                        const char *fmt, ...);
void __wrap_log_line_of(enum log_level level, const char *area, const struct log_fields *fields,
                        const char *fmt, ...)
{
    va_list args;
    CU_ASSERT_EQUAL(level, LOG_LEVEL_WARN);
    CHECK_STR("area", area, "partition");
    CU_ASSERT_FATAL(play.lines_len < ARRAY_LEN(play.lines));
    va_start(args, fmt);
    logged_text(play.lines[play.lines_len++], sizeof play.lines[0], fields, fmt, args);
    va_end(args);
}

/* The next look, at once. */
int __wrap_pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex, const struct timespec *until)
{
    (void)until;
    size_t const look = atomic_load(&play.looks) + 1;
    if (look > play.looks_max)
        return pthread_cond_wait(cond, mutex);
    atomic_fetch_add(&play.now_ms, LOOK_MS);
    play.before(look);
    atomic_store(&play.looks, look);
    return ETIMEDOUT;
}

static void begins(size_t place)
{
    struct crash_place *const to = &play.page->places[place];
    to->partition = 5;
    to->execution = 2;
    to->event = 7;
    to->instance_len = 5;
    memcpy(to->instance, "order", 5);
    (void)snprintf(to->orchestration, sizeof to->orchestration, "ship");
    atomic_fetch_add(&to->runs, 1);
    atomic_store(&to->since_ms, atomic_load(&play.now_ms));
}

static void ends(size_t place)
{
    atomic_store(&play.page->places[place].since_ms, 0);
}

static void set_up(size_t looks, void (*before)(size_t look))
{
    memset(&play, 0, sizeof play);
    play.page = calloc(1, sizeof *play.page);
    play.page->places_len = SHARDS;
    play.engine.options.crash_page = play.page;
    play.engine.shards = play.shards;
    play.engine.shards_len = SHARDS;
    play.looks_max = looks;
    play.before = before;
    atomic_store(&play.now_ms, 5000);
    begins(0);
}

static void run(size_t looks, void (*before)(size_t look))
{
    struct watchdog *dog = NULL;
    set_up(looks, before);
    CU_ASSERT_EQUAL_FATAL(watchdog_start(&play.engine, &dog, NULL), THOLE_OK);
    while (atomic_load(&play.looks) < looks)
        (void)sched_yield();
    watchdog_stop(dog);
    free(play.page);
}

static void nothing(size_t look)
{
    (void)look;
}

static void test_one_that_does_not_end(void)
{
    run(WARN_MS / LOOK_MS - 1, nothing);
    CU_ASSERT_EQUAL(play.lines_len, 0);
    run(10 * WARN_MS / LOOK_MS, nothing); /* once, and not five times a second */
    CU_ASSERT_EQUAL(play.lines_len, 1);
    CHECK_STR(
        "line", play.lines[0],
        "partition=5 instance=order execution=2 the code of ship has not returned for 1000 ms, at event 7; "
        "the partitions of its thread wait for it");
}

static void one_after_the_other(size_t look)
{
    ends(0);
    if (look % 2 == 0)
        begins(0);
}

static void test_many_that_end(void)
{
    run(10 * WARN_MS / LOOK_MS, one_after_the_other);
    CU_ASSERT_EQUAL(play.lines_len, 0);
}

/* Another one, on another thread and later on the same one. */
static void others(size_t look)
{
    if (look == 10)
        begins(1);
    if (look == 20)
        begins(0);
}

static void test_each_is_said_once(void)
{
    run(40, others);
    CU_ASSERT_EQUAL(play.lines_len, 3);
}

/* ---- memory ---- */

enum { QUIET_LOOKS = 10, MEBIBYTE = 1024 * 1024 };

/* Code runs in the first looks, and the process grows in each of them. */
static void grow(size_t look)
{
    ends(0);
    if (look <= play.busy) {
        atomic_fetch_add(&play.page->places[1].runs, 1);
        play.resident += play.growth;
    }
}

static void test_memory_is_given_back(void)
{
    static const struct {
        const char *name;
        size_t busy;
        uint64_t growth, garbage; /* MiB in each look; how much of 4 MiB of them is free */
        const char *trims;        /* after so many looks */
    } rows[] = {{"it grows to 60 MiB", 6, 10, 4, "16 "},
                {"to 90 MiB: at once, and when it is quiet", 9, 10, 4, "7 19 "},
                {"once a second", 12, 100, 4, "1 6 11 16 "},
                {"what stays is no reason", 20, 10, 0, "7 14 30 "},
                {"what was in use when it was given back", 14, 10, 0, "7 14 24 "},
                {"a large one is searched less often", 60, 30, 0, "3 8 13 18 23 28 33 38 43 49 56 70 "},
                {"it hardly grows", 10, 1, 4, ""},
                {"the system does not say", 10, 0, 4, ""}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct watchdog *dog = NULL;
        size_t const looks = rows[i].busy + QUIET_LOOKS;
        set_up(looks, grow);
        play.busy = rows[i].busy;
        play.growth = rows[i].growth * MEBIBYTE;
        play.garbage = rows[i].garbage;
        CU_ASSERT_EQUAL_FATAL(watchdog_start(&play.engine, &dog, NULL), THOLE_OK);
        while (atomic_load(&play.looks) < looks)
            (void)sched_yield();
        (void)usleep(10000); /* falls asleep */
        watchdog_stop(dog);
        CHECK_STR(rows[i].name, play.trims, rows[i].trims);
        free(play.page);
    }
}

static const struct thole_test tests[] = {
    {"one that does not end", test_one_that_does_not_end},
    {"many that end", test_many_that_end},
    {"each is said once", test_each_is_said_once},
    {"memory is given back", test_memory_is_given_back},
};
THOLE_TEST_MAIN("watchdog", tests)
