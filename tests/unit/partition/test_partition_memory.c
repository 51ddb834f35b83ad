/*
 * Memory runs out in the partition: each allocation of its machine fails once, each in a world of its own.
 * Either the process ends, with the words of memory_give_up(), or the partition steps down and is opened
 * again; what it was given is done then, as if nothing had been.
 */
#include "dropped.h"
#include "lent.h"
#include "partition_stage.h"
#include "sanitized.h"
#include "thole_cunit.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- allocations that fail ---- */

enum { ENDED = 0, DIFFERS = 1, GAVE_UP = 2, NOT_REACHED = 3 }; /* exit codes of a world */

static bool flushes; /* the machine runs, outside of an input */
static bool failed_in_input;
static size_t asked, fails_at;

static bool fails(void)
{
    if ((!flushes && !lent_machine_runs()) || ++asked != fails_at)
        return false;
    failed_in_input = !flushes;
    return true;
}

void *__real_malloc(size_t bytes);
void *__wrap_malloc(size_t bytes)
{
    return fails() ? NULL : __real_malloc(bytes);
}

void *__real_calloc(size_t n, size_t bytes);
void *__wrap_calloc(size_t n, size_t bytes)
{
    return fails() ? NULL : __real_calloc(n, bytes);
}

void *__real_realloc(void *old, size_t bytes);
void *__wrap_realloc(void *old, size_t bytes)
{
    return fails() ? NULL : __real_realloc(old, bytes);
}

/* Of an arena each allocation may fail, not only the first of a block. */
void *__real_arena_alloc(struct arena *arena, size_t size);
void *__wrap_arena_alloc(struct arena *arena, size_t size)
{
    if (!fails())
        return __real_arena_alloc(arena, size);
    arena->nomem = true;
    return NULL;
}

void *__real_arena_array(struct arena *arena, size_t n, size_t size);
void *__wrap_arena_array(struct arena *arena, size_t n, size_t size)
{
    if (!fails())
        return __real_arena_array(arena, n, size);
    arena->nomem = true;
    return NULL;
}

thole_status __real_arena_dup(struct arena *arena, thole_slice from, thole_slice *ret);
thole_status __wrap_arena_dup(struct arena *arena, thole_slice from, thole_slice *ret)
{
    if (!fails())
        return __real_arena_dup(arena, from, ret);
    arena->nomem = true;
    return THOLE_NOMEM;
}

/* memory_give_up() calls it; what an assertion calls is libc's own. */
_Noreturn void __wrap_abort(void)
{
    _exit(GAVE_UP);
}

bool __real_partition_flush(struct partition *p, uint64_t now_ms, bool rows);
bool __wrap_partition_flush(struct partition *p, uint64_t now_ms, bool rows)
{
    flushes = true;
    bool const rows_wait = __real_partition_flush(p, now_ms, rows);
    flushes = false;
    return rows_wait;
}

/* ---- orchestrations ---- */

static thole_status plain(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    thole_log(ctx, THOLE_LOG_INFO, "it begins");
    return thole_await(ctx, thole_call(ctx, THOLE_STR("work"), input), ret_output);
}

static thole_status parent(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    thole_task const work = thole_call(ctx, THOLE_STR("work"), input);
    thole_raise(ctx, THOLE_STR("other"), THOLE_STR("news"), input);
    thole_start(ctx, THOLE_STR("plain"), input, NULL);
    drop_task(thole_timer(ctx, 3600 * 1000));
    THOLE_TRY(thole_await(ctx, thole_child(ctx, THOLE_STR("plain"), input, NULL), ret_output));
    return thole_await(ctx, work, NULL);
}

static thole_status rounds(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    THOLE_TRY(thole_await(ctx, thole_event(ctx, THOLE_STR("item")), ret_output));
    return input.len == 2 ? THOLE_OK
                          : thole_continue_as_new(ctx, thole_format(ctx, "%.*s+", THOLE_FMT(input)), 0);
}

static const thole_orchestration_entry entries[] = {
    {"plain", plain, 0}, {"parent", parent, 0}, {"rounds", rounds, 0}};

/* ---- a world ---- */

#define START(id, orchestration_name)                                                                        \
    {                                                                                                        \
        .kind = MESSAGE_START, .instance = {(const uint8_t *)(id), sizeof(id) - 1},                          \
        .orchestration = {(const uint8_t *)(orchestration_name), sizeof(orchestration_name) - 1},            \
        .request_id = {                                                                                      \
            (const uint8_t *)"start " id,                                                                    \
            sizeof("start " id) - 1                                                                          \
        }                                                                                                    \
    }
#define TELL(id, message_kind, text)                                                                         \
    {                                                                                                        \
        .kind = (message_kind), .instance = {(const uint8_t *)(id), sizeof(id) - 1},                         \
        .data = {(const uint8_t *)(text), sizeof(text) - 1}, .request_id = {                                 \
            (const uint8_t *)(text),                                                                         \
            sizeof(text) - 1                                                                                 \
        }                                                                                                    \
    }
#define RAISE(id, text)                                                                                      \
    {                                                                                                        \
        .kind = MESSAGE_EVENT, .instance = {(const uint8_t *)(id), sizeof(id) - 1},                          \
        .event_name = {(const uint8_t *)"item", 4},                                                          \
        .event_data = {(const uint8_t *)(text), sizeof(text) - 1}, .request_id = {                           \
            (const uint8_t *)(text),                                                                         \
            sizeof(text) - 1                                                                                 \
        }                                                                                                    \
    }
#define RESULT(id, activity)                                                                                 \
    {                                                                                                        \
        .kind = MESSAGE_ACTIVITY_RESULT, .instance = {(const uint8_t *)(id), sizeof(id) - 1},                \
        .execution = 1, .task = (activity), .source.place.attempt = 1, .data = {                             \
            (const uint8_t *)"done",                                                                         \
            4                                                                                                \
        }                                                                                                    \
    }

static const struct message inbox[] = {
    START("a", "plain"),
    START("b", "parent"),
    RAISE("c", "early"),
    START("c", "rounds"),
    RESULT("a", 2),
    RAISE("c", "second"),
    RESULT("b", 2),
    START("d", "nobody"),
    TELL("b", MESSAGE_CANCEL, "enough"),
    START("e", "plain"),
    RAISE("c", "third"),
    TELL("a", MESSAGE_DELETE, "away"),
    START("a", "plain"),
    TELL("d", MESSAGE_TERMINATE, "no use"),
};
enum { HANDED_OVER = 9 }; /* another owner opens it then */
static const char *const ids[] = {"a", "b", "c", "d", "e"};

struct outcome {
    char histories[8192];
    size_t activities;
    uint64_t open;
    char sent[4096]; /* a line for each message */
};

/* As the stream does it: whoever opens the partition reads all again that may not be done. */
static void deliver(struct stage *s, size_t upto)
{
    static const size_t tries = 5;
    for (size_t i = 0; i < tries; i++) {
        if (partition_state(s->p) == PARTITION_CLOSED) {
            stage_open(s);
            stage_query(s, "c", "how"); /* the rows name it: it may have to continue as new */
        }
        for (size_t k = i == 0 ? upto - 1 : 0; k < upto && partition_state(s->p) == PARTITION_OPEN; k++) {
            s->inbox = k;
            stage_message(s, &inbox[k]);
            stage_timer(s, s->now_ms + 2000);
        }
        if (partition_state(s->p) == PARTITION_OPEN)
            return;
    }
}

/* Blurs times, since a repeated step happens later. */
static void blur_times(char *text)
{
    while ((text = strstr(text, " due ")) != NULL)
        for (text += 5; *text >= '0' && *text <= '9'; text++)
            *text = '9';
}

/* Each message once, however often it was sent. */
static void keep_sent(const char *said, char *to, size_t room)
{
    for (const char *line = said, *end; (end = strchr(line, '\n')) != NULL; line = end + 1) {
        char one[256];
        (void)snprintf(one, sizeof one, "%.*s", (int)(end + 1 - line), line);
        size_t const len = strlen(to);
        if (strncmp(one, "send ", 5) == 0 && strstr(to, one) == NULL && len + strlen(one) < room)
            memcpy(to + len, one, strlen(one) + 1);
    }
}

/* In any order. */
static bool sent_the_same(const char *a, const char *b)
{
    bool same = strlen(a) == strlen(b);
    for (const char *line = a, *end; same && (end = strchr(line, '\n')) != NULL; line = end + 1) {
        char one[256];
        (void)snprintf(one, sizeof one, "%.*s", (int)(end + 1 - line), line);
        same = strstr(b, one) != NULL;
    }
    return same;
}

static struct outcome world(size_t nth)
{
    static struct partition_options options;
    struct outcome outcome = {.activities = 0};
    stage_options(&options, entries, ARRAY_LEN(entries));
    asked = 0;
    fails_at = nth;
    struct stage *const s = stage_begin_with(&options, 10);
    for (size_t i = 0; i < ARRAY_LEN(inbox); i++) {
        if (i == HANDED_OVER)
            stage_again(s);
        deliver(s, i + 1);
    }
    for (size_t i = 0; i < ARRAY_LEN(ids); i++) {
        size_t const at = strlen(outcome.histories);
        (void)snprintf(outcome.histories + at, sizeof outcome.histories - at, "%s:\n%s", ids[i],
                       stage_history(s, ids[i]));
    }
    blur_times(outcome.histories);
    outcome.activities = s->activities;
    keep_sent(stage_said(s), outcome.sent, sizeof outcome.sent);
    outcome.open = partition_open_activities(s->p);
    bool const out_of_memory = strcmp(s->closed, "out of memory") == 0;
    CU_ASSERT_FALSE(out_of_memory && s->closed_for_good);
    CU_ASSERT_EQUAL(s->inputs_refused, out_of_memory && failed_in_input);
    CU_ASSERT_TRUE(partition_idle(s->p));
    stage_end(s);
    return outcome;
}

/* In a process of its own, which it ends. What memory_give_up() says is not of interest. */
static _Noreturn void compare(size_t nth, const struct outcome *want)
{
    int const tell = dup(STDERR_FILENO), nowhere = open("/dev/null", O_WRONLY);
    (void)dup2(nowhere, STDERR_FILENO);
    unsigned const failures = CU_get_number_of_failures();
    struct outcome const got = world(nth);
    bool const same = strcmp(got.histories, want->histories) == 0 && got.activities >= want->activities &&
                      sent_the_same(got.sent, want->sent) && got.open == want->open &&
                      CU_get_number_of_failures() == failures;
    if (!same)
        (void)dprintf(tell, "allocation %zu: %zu rows (%zu), %llu open (%llu), %u failures\n%s", nth,
                      got.activities, want->activities, (unsigned long long)got.open,
                      (unsigned long long)want->open, CU_get_number_of_failures() - failures, got.histories);
    _exit(!same ? DIFFERS : asked < nth ? NOT_REACHED : ENDED);
}

static int try_one(size_t nth, const struct outcome *want)
{
    int status = 0;
    (void)fflush(NULL);
    pid_t const child = fork();
    if (child == 0)
        compare(nth, want);
    CU_ASSERT_FATAL(child > 0 && waitpid(child, &status, 0) == child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void each_allocation_may_fail(void)
{
    size_t ended = 0, gave_up = 0;
    struct outcome const want = world(0);
    CU_ASSERT(strlen(want.sent) > 0 && want.activities >= 3 && strstr(want.histories, "deleted") != NULL);
    for (size_t nth = 1;; nth += SANITIZED ? 13 : 1) {
        int const code = try_one(nth, &want);
        if (code == NOT_REACHED)
            break;
        ended += code == ENDED;
        gave_up += code == GAVE_UP;
        if (code != ENDED && code != GAVE_UP)
            (void)fprintf(stderr, "allocation %zu: exit code %d\n", nth, code);
        CU_ASSERT(code == ENDED || code == GAVE_UP);
    }
    CU_ASSERT(ended > 10 && gave_up > 10);
}

static const struct thole_test tests[] = {{"each allocation may fail", each_allocation_may_fail}};
THOLE_TEST_MAIN("partition memory", tests)
