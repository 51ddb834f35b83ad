/* Histories of released versions are replayed for ever: with their code, without it, and up to any turn. */
#include "coro.h"
#include "golden.h"
#include "thole_cunit.h"
#include "turn_list.h"
#include <dirent.h>

struct history {
    struct arena arena;
    struct turn turns[GOLDEN_RECORDS_MAX];
    size_t turns_len;
};

static void read_history(const struct golden_story *story, struct history *ret)
{
    struct record records[GOLDEN_RECORDS_MAX];
    struct record taken[GOLDEN_RECORDS_MAX];
    struct turn_list list = {taken, 0};
    struct buf bytes;
    thole_error err = {.text = "no file"};
    buf_init(&bytes, GOLDEN_BYTES_MAX);
    arena_init(&ret->arena, 64 * 1024 * 1024);
    ret->turns_len = 0;
    (void)golden_read(golden_path(1, (struct golden){"histories", story->name}, ".bin"), &bytes);
    size_t const n = golden_records(buf_bytes(&bytes), &ret->arena, records, &err);
    if (n == 0)
        fprintf(stderr, "\n  [%s] %s\n", story->name, err.text);
    CU_ASSERT(n > 0);
    for (size_t i = 0; i < n; i++)
        turn_list_take(&list, &records[i]);
    for (size_t i = 0, used; i < list.len; i += used) {
        used = turn_list_join(&list, i, &ret->arena, &ret->turns[ret->turns_len++]);
        CU_ASSERT(used > 0 && !ret->turns[ret->turns_len - 1].more);
        if (used == 0)
            break;
    }
    buf_release(&bytes);
}

/* Replays the first @p n turns; "" or what went wrong. */
static void replay(struct instance *instance, const struct history *history, size_t n, thole_error *ret)
{
    *ret = (thole_error){.text = ""};
    for (size_t i = 0; i < n; i++)
        if (instance_replay(instance, &history->turns[i], ret) != THOLE_OK)
            return;
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

static bool history_ends(const struct history *history)
{
    const struct turn *last = &history->turns[history->turns_len - 1];
    return last->events_len > 0 && event_is_terminal(last->events[last->events_len - 1].kind);
}

static void check_replay(const struct golden_story *story, struct stack_pool *stacks, bool code)
{
    struct history history;
    thole_error err;
    read_history(story, &history);
    struct instance *instance = golden_begin(story, stacks, code);
    replay(instance, &history, history.turns_len, &err);
    CHECK_STR(story->name, err.text, "");
    CU_ASSERT_EQUAL(instance_turns(instance), history.turns_len);
    CU_ASSERT_EQUAL(instance_ended(instance), history.turns_len > 0 && history_ends(&history));
    instance_destroy(instance);
    arena_release(&history.arena);
}

static void replayed(void)
{
    struct stack_pool *stacks = stack_pool_create(4, 16);
    for (size_t i = 0; i < golden_stories_len; i++) {
        check_replay(&golden_stories[i], stacks, true);
        check_replay(&golden_stories[i], stacks, false);
    }
    CU_ASSERT_EQUAL(stack_pool_in_use(stacks), 0);
    stack_pool_destroy(stacks);
}

/* After an update in its middle an instance comes to the same end. */
static void check_taken_over(const struct golden_story *story, struct stack_pool *stacks)
{
    struct history history;
    read_history(story, &history);
    for (size_t n = 0; n < story->turns_len && n < history.turns_len; n++) {
        struct instance *instance = golden_begin(story, stacks, true);
        struct arena arena;
        thole_error err;
        arena_init(&arena, GOLDEN_BYTES_MAX);
        replay(instance, &history, n, &err);
        for (size_t i = n; i < story->turns_len && err.text[0] == '\0'; i++) {
            struct turn_in const in = golden_input(story, i, stacks, &arena);
            struct turn_out out;
            thole_status const status = instance_turn(instance, &in, &out, &err);
            CU_ASSERT_EQUAL(status, THOLE_OK);
        }
        CHECK_STR(story->name, err.text, "");
        CU_ASSERT_EQUAL(instance_ended(instance), history_ends(&history));
        instance_destroy(instance);
        arena_release(&arena);
    }
    arena_release(&history.arena);
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
