/* Histories of released versions are replayed for ever: with their code, without it, and up to any turn. */
#include "coro.h"
#include "golden.h"
#include "thole_cunit.h"
#include <dirent.h>

static void read_history(const struct golden_story *story, struct golden_history *ret)
{
    struct buf bytes;
    thole_error err = {.text = "no file"};
    buf_init(&bytes, GOLDEN_BYTES_MAX);
    (void)golden_read(golden_path(1, (struct golden){"histories", story->name}, ".bin"), &bytes);
    golden_turns(buf_bytes(&bytes), ret, &err);
    if (ret->turns_len == 0)
        fprintf(stderr, "\n  [%s] %s\n", story->name, err.text);
    CU_ASSERT(ret->turns_len > 0);
    buf_release(&bytes);
}

static void check_text(const struct golden_story *story)
{
    struct golden const golden = {"histories", story->name};
    struct buf bytes, text, show;
    buf_init(&bytes, GOLDEN_BYTES_MAX);
    buf_init(&text, GOLDEN_BYTES_MAX);
    buf_init(&show, GOLDEN_BYTES_MAX);
    CU_ASSERT(golden_read(golden_path(1, golden, ".bin"), &bytes));
    CU_ASSERT(golden_read(golden_path(1, golden, ".txt"), &text));
    golden_show(golden, buf_bytes(&bytes), &show);
    CHECK_STR(story->name, buf_cstr(&show), buf_cstr(&text));
    buf_release(&bytes);
    buf_release(&text);
    buf_release(&show);
}

static void texts(void)
{
    for (size_t i = 0; i < golden_stories_len; i++)
        check_text(&golden_stories[i]);
}

static bool history_ends(const struct golden_history *history)
{
    const struct turn *last = &history->turns[history->turns_len - 1];
    return history->turns_len > 0 && last->events_len > 0 &&
           event_is_terminal(last->events[last->events_len - 1].kind);
}

static void check_replay(const struct golden_story *story, struct stack_pool *stacks,
                         thole_orchestration_fn *code)
{
    struct golden_history history;
    thole_error err = {.text = ""};
    read_history(story, &history);
    struct instance *instance = golden_begin(story, stacks, code);
    thole_status const status = golden_replay(instance, &history, history.turns_len, &err);
    CU_ASSERT_EQUAL(status, THOLE_OK);
    CHECK_STR(story->name, err.text, "");
    CU_ASSERT_EQUAL(instance_turns(instance), history.turns_len);
    CU_ASSERT_EQUAL(instance_ended(instance), history_ends(&history));
    instance_destroy(instance);
    golden_release(&history);
}

static void replayed(void)
{
    struct stack_pool *stacks = stack_pool_create(4, 16);
    for (size_t i = 0; i < golden_stories_len; i++) {
        check_replay(&golden_stories[i], stacks, golden_stories[i].code);
        check_replay(&golden_stories[i], stacks, NULL);
    }
    CU_ASSERT_EQUAL(stack_pool_in_use(stacks), 0);
    stack_pool_destroy(stacks);
}

/* After an update in its middle an instance comes to the same end. */
static void check_taken_over_at(const struct golden_story *story, const struct golden_history *history,
                                size_t n, struct stack_pool *stacks)
{
    struct instance *instance = golden_begin(story, stacks, story->code);
    struct arena arena;
    thole_error err = {.text = ""};
    arena_init(&arena, GOLDEN_BYTES_MAX);
    thole_status status = golden_replay(instance, history, n, &err);
    for (size_t i = n; i < story->turns_len && status == THOLE_OK; i++) {
        struct turn_in in = golden_input(story, i, stacks, &arena);
        struct turn_out out;
        status = instance_turn(instance, &in, &out, &err);
    }
    CU_ASSERT_EQUAL(status, THOLE_OK);
    CHECK_STR(story->name, err.text, "");
    if (story->written_by == NULL) /* other code may ask for more */
        CHECK_STR(story->name, instance_ended(instance) ? "ended" : "goes on",
                  history_ends(history) ? "ended" : "goes on");
    instance_destroy(instance);
    arena_release(&arena);
}

static void check_taken_over(const struct golden_story *story, struct stack_pool *stacks)
{
    struct golden_history history;
    read_history(story, &history);
    CU_ASSERT_EQUAL(history.turns_len, story->turns_len);
    for (size_t n = 1; n < history.turns_len; n++)
        check_taken_over_at(story, &history, n, stacks);
    golden_release(&history);
}

static void taken_over(void)
{
    struct stack_pool *stacks = stack_pool_create(4, 16);
    for (size_t i = 0; i < golden_stories_len; i++)
        check_taken_over(&golden_stories[i], stacks);
    stack_pool_destroy(stacks);
}

/* A history without its story would be replayed no more. */
static void none_forgotten(void)
{
    DIR *folder = opendir(THOLE_SOURCE_DIR "/tests/golden/v1/histories");
    size_t n = 0;
    CU_ASSERT(folder != NULL);
    for (struct dirent *entry; folder != NULL && (entry = readdir(folder)) != NULL;)
        n += strstr(entry->d_name, ".bin") != NULL;
    CU_ASSERT_EQUAL(n, golden_stories_len);
    if (folder != NULL)
        (void)closedir(folder);
}

static const struct thole_test tests[] = {
    {"texts", texts},
    {"replayed", replayed},
    {"taken over", taken_over},
    {"none forgotten", none_forgotten},
};
THOLE_TEST_MAIN("golden histories", tests)
