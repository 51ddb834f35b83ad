/* The verdict of integration.scenarios on a run that costs more than allowed, and which targets count as
 * missed. */
#include "scenarios.h"
#include "thole_cunit.h"
#include <stdlib.h>

static struct figures figures;

static void begin(void)
{
    figures.len = 0;
}

static void note(const char *scenario, const char *at, const char *name, double value)
{
    CU_ASSERT_TRUE(figures_add(&figures, DURABILITY_DEFAULT, scenario, at, name, value));
}

static int gate(double cpu, double messages, char **ret_said)
{
    size_t len;
    FILE *const out = open_memstream(ret_said, &len);
    CU_ASSERT_PTR_NOT_NULL_FATAL(out);
    begin();
    note("floor-5", "64", "cpu_us", 100);
    note("floor-5", "64", "messages_in", 10);
    note("S2", "64", "cpu_us", cpu);
    note("S2", "64", "messages_in", messages);
    int const code = scenarios_gate(&figures, out);
    (void)fclose(out);
    return code;
}

static void test_each_ratio_has_a_limit(void)
{
    static const struct {
        double cpu, messages;
        const char *says;
    } rows[] = {{450, 12, ""}, {451, 12, "cpu_us"}, {450, 12.1, "messages_in"}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char *said = NULL;
        int const code = gate(rows[i].cpu, rows[i].messages, &said);
        CU_ASSERT_EQUAL(code, rows[i].says[0] == '\0' ? 0 : SCENARIOS_OVER_LIMIT);
        CU_ASSERT_PTR_NOT_NULL(strstr(said, rows[i].says));
        CU_ASSERT_EQUAL(said[0] == '\0', code == 0);
        free(said);
    }
}

static const struct target *find_target(const char *scenario, const char *at, const char *name)
{
    for (size_t i = 0; i < targets_len; i++)
        if (strcmp(targets[i].scenario, scenario) == 0 && strcmp(targets[i].at, at) == 0 &&
            strcmp(targets[i].name, name) == 0 && targets[i].durability == DURABILITY_DEFAULT)
            return &targets[i];
    CU_FAIL_FATAL("no such target");
    return NULL;
}

static enum verdict check(const char *scenario, const char *at, const char *name)
{
    double limit, by;
    return target_check(&figures, find_target(scenario, at, name), &limit, &by);
}

/* The median counts: two of three runs are enough. */
static void test_targets_are_those_of_the_median(void)
{
    begin();
    CU_ASSERT_EQUAL(check("S2", "64", "per_s"), VERDICT_UNKNOWN);
    note("S2", "64", "per_s", 999);
    CU_ASSERT_EQUAL(check("S2", "64", "per_s"), VERDICT_MISSED);
    note("S2", "64", "per_s", 1000);
    CU_ASSERT_EQUAL(check("S2", "64", "per_s"), VERDICT_MISSED);
    note("S2", "64", "per_s", 1001);
    CU_ASSERT_EQUAL(check("S2", "64", "per_s"), VERDICT_MET);
    note("S4", "10000", "p99_ms", 50);
    CU_ASSERT_EQUAL(check("S4", "10000", "p99_ms"), VERDICT_MET);
    note("S4", "10000", "missing", 1);
    CU_ASSERT_EQUAL(check("S4", "10000", "missing"), VERDICT_MISSED);
}

static void test_a_floor_is_that_of_the_run(void)
{
    begin();
    note("S1", "1", "p50_ms", 1.3);
    CU_ASSERT_EQUAL(check("S1", "1", "p50_ms"), VERDICT_UNKNOWN);
    note("floor-1", "1", "p50_ms", 1);
    CU_ASSERT_EQUAL(check("S1", "1", "p50_ms"), VERDICT_MET);
    note("S1", "1", "p50_ms", 1.4);
    CU_ASSERT_EQUAL(check("S1", "1", "p50_ms"), VERDICT_MISSED);
}

/* Percentiles are of the samples themselves: the smallest that so many are not above. */
static void test_percentiles(void)
{
    static uint64_t samples[1000];
    for (size_t i = 0; i < 1000; i++)
        samples[i] = 1000 - i;
    struct spread const many = bench_spread(samples, 1000);
    CU_ASSERT_EQUAL(many.p50, 500);
    CU_ASSERT_EQUAL(many.p90, 900);
    CU_ASSERT_EQUAL(many.p99, 990);
    CU_ASSERT_EQUAL(many.p999, 999);
    CU_ASSERT_EQUAL(many.max, 1000);
    samples[0] = 7;
    CU_ASSERT_EQUAL(bench_spread(samples, 1).p999, 7);
    CU_ASSERT_EQUAL(bench_spread(samples, 0).p50, 0);
}

static void test_numbers(void)
{
    static const struct {
        double value;
        const char *text;
    } rows[] = {{0, "0"},         {0.456, "0.46"},   {12.34, "12.3"},       {123.4, "123"},
                {999.9, "1,000"}, {12345, "12,345"}, {1234567, "1,234,567"}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char text[32];
        CU_ASSERT_STRING_EQUAL(report_number(rows[i].value, text), rows[i].text);
    }
}

static const struct thole_test tests[] = {
    {"each ratio has a limit", test_each_ratio_has_a_limit},
    {"targets are those of the median", test_targets_are_those_of_the_median},
    {"a floor is that of the run", test_a_floor_is_that_of_the_run},
    {"percentiles", test_percentiles},
    {"numbers", test_numbers}};
THOLE_TEST_MAIN("scenarios_report", tests)
