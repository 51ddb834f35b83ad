/* An instance that does not go on is said once for each reason, and its row has the reason. */
#include "partition_stage.h"
#include "standstill.h"
#include "thole_cunit.h"
#include <stdio.h>
#include <string.h>

static bool changed, slow; /* the code of `steps` is another one; it is too large */

static thole_status steps(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    thole_slice const name = changed ? THOLE_STR("weigh") : THOLE_STR("ship");
    if (slow && thole_alloc(ctx, (size_t)1 << 40) == NULL)
        return thole_await(ctx, thole_event(ctx, THOLE_STR("never")), NULL);
    return thole_await(ctx, thole_call(ctx, name, input), ret_output);
}

static void on_site(void *arg, const void *address, char to[CODE_SITE_BYTES])
{
    size_t *const asked = arg;
    CU_ASSERT_PTR_NOT_NULL(address);
    ++*asked;
    (void)snprintf(to, CODE_SITE_BYTES, "steps (shop.c:%zu)", *asked);
}
static void on_run(void *arg, const struct code_run *run)
{
    (void)arg, (void)run;
}
static void on_end(void *arg)
{
    (void)arg;
}

static size_t sites;
static const struct code_watch watch = {.begins = on_run, .ended = on_end, .site = on_site, .arg = &sites};
static const thole_orchestration_entry entries[] = {{"steps", steps, 0}};

static struct stage *begun(void)
{
    struct partition_options options;
    changed = slow = false;
    sites = 0;
    stage_options(&options, entries, ARRAY_LEN(entries));
    options.watch = &watch;
    return stage_begin_with(&options, 100);
}

static void said(const struct stage *s, const char *row, size_t stops, const char *words, uint32_t blocked)
{
    if (s->stops != stops || strstr(s->stopped, words) == NULL || s->blocked != blocked)
        fprintf(stderr, "\n  [%s] %zu stops, blocked %u: %s\n", row, s->stops, s->blocked, s->stopped);
    CU_ASSERT_EQUAL(s->stops, stops);
    CU_ASSERT_EQUAL(s->blocked, blocked);
    CU_ASSERT_PTR_NOT_NULL(strstr(s->stopped, words));
}

static void test_no_code(void)
{
    struct stage *s = begun();
    stage_start(s, "i", "sells");
    said(s, "no code", 1,
         "no_code i of sells@0: engine stage, which owned partition 0 then, does not have orchestration "
         "'sells': "
         "all "
         "engines of a namespace must have the same orchestrations",
         BLOCKED_NO_CODE);
    stage_tell(s, "i", MESSAGE_EVENT, "go");
    stage_tell(s, "i", MESSAGE_EVENT, "go on");
    said(s, "once", 1, "no_code", BLOCKED_NO_CODE);
    stage_again(s); /* the next owner lacks it, too: it is known */
    stage_tell(s, "i", MESSAGE_EVENT, "come");
    said(s, "nor by the next owner", 1, "no_code", BLOCKED_NO_CODE);
    stage_tell(s, "i", MESSAGE_TERMINATE, "enough");
    said(s, "over", 1, "no_code", BLOCKED_NOT);
    stage_end(s);
}

static void test_paused(void)
{
    struct stage *s = begun();
    stage_start(s, "i", "steps");
    CU_ASSERT_EQUAL(s->stops, 0);
    stage_tell(s, "i", MESSAGE_PAUSE, "the audit");
    said(s, "paused", 1, "paused i of steps@1: the audit", BLOCKED_PAUSED);
    CU_ASSERT_STRING_EQUAL(s->detail, "the audit");
    stage_tell(s, "i", MESSAGE_EVENT, "go");
    said(s, "once", 1, "paused", BLOCKED_PAUSED);
    CU_ASSERT_STRING_EQUAL(s->detail, "the audit");
    stage_again(s);
    stage_tell(s, "i", MESSAGE_EVENT, "go");
    CU_ASSERT_STRING_EQUAL(s->detail, "the audit"); /* from the history */
    stage_tell(s, "i", MESSAGE_RESUME, "");
    said(s, "resumed", 1, "paused", BLOCKED_NOT);
    CU_ASSERT_STRING_EQUAL(s->detail, "");
    stage_tell(s, "i", MESSAGE_PAUSE, "");
    said(s, "another time", 2, "paused i of steps@1: ", BLOCKED_PAUSED);
    CU_ASSERT_STRING_EQUAL(s->detail, "");
    stage_end(s);
}

static void test_diverged(void)
{
    struct stage *s = begun();
    stage_start(s, "i", "steps");
    changed = true;
    stage_again(s);
    CU_ASSERT_EQUAL(s->stops, 0); /* nothing has come for it */
    stage_complete(s, "i", 2, THOLE_STR("done"));
    said(s, "diverged", 1, "divergence i of steps@1: event 2: history has ActivityScheduled 'ship'",
         BLOCKED_NONDETERMINISM);
    said(s, "with the line", 1, "; asked for at steps (shop.c:1)", BLOCKED_NONDETERMINISM);
    CU_ASSERT_PTR_NOT_NULL(strstr(s->detail, "; asked for at steps (shop.c:1)"));
    stage_tell(s, "i", MESSAGE_EVENT, "go");
    said(s, "once", 1, "divergence", BLOCKED_NONDETERMINISM);
    CU_ASSERT_EQUAL(sites, 1);
    changed = false;
    stage_tell(s, "i", MESSAGE_RETRY, "");
    said(s, "runs", 1, "divergence", BLOCKED_NOT);
    stage_end(s);
}

static void test_limit(void)
{
    struct stage *s = begun();
    slow = true;
    stage_start(s, "i", "steps");
    said(s, "limit", 1, "limit i of steps@", BLOCKED_LIMIT);
    CU_ASSERT_EQUAL(sites, 0); /* where it was does not matter */
    stage_end(s);
}

static void test_words(void)
{
    for (int kind = BLOCKED_NO_CODE; kind < BLOCKED_KINDS; kind++) {
        CU_ASSERT_EQUAL(blocked_kind_of(blocked_kind_name((enum blocked_kind)kind)), (enum blocked_kind)kind);
        CU_ASSERT_PTR_NOT_NULL(standstill_of((enum blocked_kind)kind).remedy);
    }
    CU_ASSERT_PTR_NULL(blocked_kind_name(BLOCKED_NOT));
    CU_ASSERT_PTR_NULL(blocked_kind_name((enum blocked_kind)BLOCKED_KINDS));
    CU_ASSERT_EQUAL(blocked_kind_of(NULL), BLOCKED_NOT);
    CU_ASSERT_EQUAL(blocked_kind_of("tired"), BLOCKED_NOT);
    CU_ASSERT_PTR_NULL(standstill_of(BLOCKED_NOT).remedy);
}

static const struct thole_test tests[] = {{"no code", test_no_code},
                                          {"paused", test_paused},
                                          {"diverged", test_diverged},
                                          {"limit", test_limit},
                                          {"words", test_words}};
THOLE_TEST_MAIN("partition_standing", tests)
