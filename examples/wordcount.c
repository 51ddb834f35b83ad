/*
 * Fan-out and fan-in: the words of a text are counted, each line by an activity of its own, all at once and
 * on all the workers there are; then the numbers are added up.
 *
 *   thole dev -- build/release/examples/wordcount run
 *   thole run wordcount --input "$(cat README.md)"
 *
 * A thousand activities are one turn, one message of the history. What is too much for the workers waits in
 * the queue. When one line fails for good the whole count fails, and what still runs is cancelled.
 */
#include <inttypes.h>
#include <string.h>
#include <thole/program.h>

enum { LINES_MAX = 1000 };

/* Cuts the first line off @p text. */
static thole_slice take_line(thole_slice *text)
{
    const uint8_t *end = text->len == 0 ? NULL : memchr(text->ptr, '\n', text->len);
    thole_slice const line = {text->ptr, end == NULL ? text->len : (size_t)(end - text->ptr)};
    size_t const taken = end == NULL ? line.len : line.len + 1;
    text->ptr += taken;
    text->len -= taken;
    return line;
}

static uint64_t number(thole_slice text)
{
    uint64_t n = 0;
    return thole_slice_u64(text, &n) == THOLE_OK ? n : 0;
}

static thole_status wordcount(thole_ctx *ctx, thole_slice text, thole_slice *ret_output)
{
    static const thole_call_options options = {.size = sizeof options,
                                               .try_timeout_ms = 60 * 1000,
                                               .retry = {.tries_max = 3, .first_delay_ms = 1000}};
    thole_task *tasks = thole_alloc(ctx, LINES_MAX * sizeof *tasks);
    thole_slice *counts = thole_alloc(ctx, LINES_MAX * sizeof *counts);
    if (tasks == NULL || counts == NULL)
        return THOLE_LIMIT;
    size_t n = 0;
    while (text.len > 0 && n < LINES_MAX) {
        thole_slice const line = take_line(&text);
        if (line.len > 0)
            tasks[n++] = thole_call_with(ctx, THOLE_STR("count"), line, &options);
    }
    if (n > 0)
        THOLE_TRY(thole_await_all(ctx, tasks, n, counts));
    uint64_t sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += number(counts[i]);
    *ret_output = thole_format(ctx, "%" PRIu64 " words in %zu lines", sum, n);
    return THOLE_OK;
}

static thole_status count(thole_activity *act, thole_slice line, thole_slice *ret_output)
{
    uint64_t words = 0;
    bool inside = false;
    for (size_t i = 0; i < line.len; i++) {
        bool const is_space = line.ptr[i] == ' ' || line.ptr[i] == '\t';
        words += !is_space && !inside;
        inside = !is_space;
    }
    *ret_output = thole_activity_format(act, "%" PRIu64, words);
    return THOLE_OK;
}

static const thole_orchestration_entry orchestrations[] = {{.name = "wordcount", .run = wordcount}};
static const thole_activity_entry activities[] = {{.name = "count", .run = count}};
static const thole_program program = {.size = sizeof program,
                                      .name = "wordcount",
                                      THOLE_ORCHESTRATIONS_OF(orchestrations),
                                      THOLE_ACTIVITIES_OF(activities)};

int main(int argc, char **argv)
{
    return thole_main(argc, argv, &program);
}
