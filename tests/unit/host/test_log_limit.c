/* Lines that others can cause at any rate: the first of each kind is written, few follow, each is counted. */
#include "captured.h"
#include "log_limit.h"
#include "thole_cunit.h"
#include "wrap_mutexes.h"
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

enum { PARTITIONS = 4096, SECONDS = 1000 };
enum { BAD, WORSE, FEW, KINDS };
static const struct log_kind kinds[KINDS] = {
    [BAD] = {LOG_LEVEL_WARN, "partition", "bad", "messages were bad", 1},
    [WORSE] = {LOG_LEVEL_WARN, "partition", "worse", "messages were worse", 1},
    [FEW] = {LOG_LEVEL_INFO, "members", "few", "came", 3},
};

static struct log_limits *limits;

/* The lines that @p f writes, without times. */
static const char *said_by(void (*f)(void *arg))
{
    static char said[1 << 21];
    enum { TIME_LEN = sizeof "time=2026-11-21T03:46:41.521Z " - 1 };
    size_t len = 0;
    limits = log_limits_create(kinds, KINDS, PARTITIONS);
    char *const all = captured(STDERR_FILENO, f, NULL);
    log_limits_destroy(limits);
    for (const char *line = all, *end; (end = strchr(line, '\n')) != NULL; line = end + 1) {
        size_t const n = (size_t)(end - line) + 1 - TIME_LEN;
        memcpy(said + len, line + TIME_LEN, n);
        len += n;
    }
    said[len] = '\0';
    free(all);
    return said;
}

static size_t lines_of(const char *said, const char *with)
{
    size_t n = 0;
    for (const char *at = said; (at = strstr(at, with)) != NULL; at++)
        n++;
    return n;
}

static void bad(uint64_t now_ms, uint32_t p)
{
    log_limits_line(limits, now_ms, BAD, LOG_PARTITION(p), "bad at %" PRIu64, now_ms);
}

/* Within the interval the rest is counted, and its end says so; the next interval is twice as long. */
static void flood_for_a_while(void *arg)
{
    (void)arg;
    bad(5000, 7);
    CU_ASSERT_EQUAL(log_limits_rest(limits, 5000), UINT64_MAX);
    for (uint64_t i = 0; i < 1000; i++)
        bad(5000 + i, 7);
    CU_ASSERT_EQUAL(log_limits_rest(limits, 5999), 6000);
    CU_ASSERT_EQUAL(log_limits_rest(limits, 6000), UINT64_MAX);
    bad(6500, 7);
    bad(7500, 7);
    CU_ASSERT_EQUAL(log_limits_rest(limits, 7999), 8000);
    CU_ASSERT_EQUAL(log_limits_rest(limits, 8250), UINT64_MAX);
    CU_ASSERT_EQUAL(log_limits_rest(limits, 20000), UINT64_MAX);
    bad(20000, 7); /* a new interval, of one second again: nothing was counted in the last one */
    bad(20001, 7);
    CU_ASSERT_EQUAL(log_limits_rest(limits, 20002), 21000);
    CU_ASSERT_EQUAL(log_limits_total(limits, BAD), 1005);
}

static void test_the_rest_is_counted(void)
{
    CHECK_STR("flood", said_by(flood_for_a_while),
              "level=warn program=thole area=partition partition=7 msg=\"bad at 5000\"\n"
              "level=warn program=thole area=partition partition=7 msg=\"and 1000 more messages were bad, in "
              "1000 ms; 1001 since the start\"\n"
              "level=warn program=thole area=partition partition=7 msg=\"bad at 6500\"\n"
              "level=warn program=thole area=partition partition=7 msg=\"and 1 more messages were bad, in "
              "750 ms; 1003 since the start\"\n"
              "level=warn program=thole area=partition partition=7 msg=\"bad at 20000\"\n");
}

/* Neither another kind nor another partition. */
static void flood_and_others(void *arg)
{
    (void)arg;
    for (uint64_t i = 0; i < 20000; i++)
        bad(5000, 7);
    bad(5000, 8);
    log_limits_line(limits, 5000, WORSE, LOG_PARTITION(7), "worse");
    for (int i = 0; i < 5; i++)
        log_limits_line(limits, 5000, FEW, NULL, "few %d", i);
    log_limits_say_totals(limits, "engine");
}

static void test_a_flood_hides_no_other_kind(void)
{
    CHECK_STR("others", said_by(flood_and_others),
              "level=warn program=thole area=partition partition=7 msg=\"bad at 5000\"\n"
              "level=warn program=thole area=partition partition=8 msg=\"bad at 5000\"\n"
              "level=warn program=thole area=partition partition=7 msg=worse\n"
              "level=info program=thole area=members msg=\"few 0\"\n"
              "level=info program=thole area=members msg=\"few 1\"\n"
              "level=info program=thole area=members msg=\"few 2\"\n"
              "level=info program=thole area=engine msg=\"counted: bad=20001 worse=1 few=5 \"\n");
}

/* In every partition, for long. */
static void flood_everywhere(void *arg)
{
    (void)arg;
    for (uint64_t s = 1; s <= SECONDS; s++) {
        for (uint32_t p = 0; p < PARTITIONS; p++)
            bad(1000 * s, p);
        (void)log_limits_rest(limits, 1000 * s + 999);
        if (s == SECONDS / 2)
            log_limits_line(limits, 1000 * s, WORSE, LOG_PARTITION(4095), "worse");
    }
    CU_ASSERT_EQUAL(log_limits_total(limits, BAD), (uint64_t)SECONDS * PARTITIONS);
    for (uint64_t now = SECONDS * 1000; log_limits_rest(limits, now) != UINT64_MAX;)
        now += 1000; /* nothing that was counted stays untold */
}

/* The counts in the lines add up to all events. */
static void test_all_partitions_together_are_limited(void)
{
    const char *const said = said_by(flood_everywhere);
    uint64_t told = lines_of(said, "\"bad at ");
    size_t const lines = lines_of(said, "\n");
    for (const char *at = said; (at = strstr(at, "and ")) != NULL; at++)
        told += strtoull(at + 4, NULL, 10);
    CU_ASSERT_EQUAL(told, (uint64_t)SECONDS * PARTITIONS);
    CU_ASSERT_EQUAL(lines_of(said, "partition=4095 msg=worse\n"), 1);
    fprintf(stderr, "  %zu lines of %u\n", lines, SECONDS * PARTITIONS);
    CU_ASSERT_TRUE(lines <= LOG_LIMIT_BURST + 2 * SECONDS * (1000 / LOG_LIMIT_LINE_MS));
}

/* At level error these are not written, and are counted. */
static void quiet(void *arg)
{
    (void)arg;
    bad(1, 0);
    CU_ASSERT_EQUAL(log_limits_total(limits, BAD), 1);
    log_limits_say_totals(limits, "engine");
}

static void test_a_level_that_is_not_written(void)
{
    log_configure(LOG_LEVEL_ERROR, LOG_FORMAT_LOGFMT, "test");
    CHECK_STR("quiet", said_by(quiet), "");
    log_configure(LOG_LEVEL_INFO, LOG_FORMAT_LOGFMT, "test");
}

static const struct thole_test tests[] = {
    {"the_rest_is_counted", test_the_rest_is_counted},
    {"a_flood_hides_no_other_kind", test_a_flood_hides_no_other_kind},
    {"all_partitions_together_are_limited", test_all_partitions_together_are_limited},
    {"a_level_that_is_not_written", test_a_level_that_is_not_written},
};
THOLE_TEST_MAIN("log limit", tests)
