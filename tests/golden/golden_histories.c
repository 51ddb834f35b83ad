/* Histories: how they are made, and how they are kept in a file. */
#include "coro.h"
#include "golden.h"
#include "turn_list.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LENGTH_BYTES = 4 };

const thole_slice golden_instance = {(const uint8_t *)"order 1/\xe2\x82\xac", 11};

static const struct golden_story *story_named(const char *name)
{
    for (size_t i = 0; i < golden_stories_len; i++)
        if (strcmp(golden_stories[i].name, name) == 0)
            return &golden_stories[i];
    abort();
}

static uint64_t execution_of(const struct golden_story *story)
{
    return story->follows == NULL ? 1 : execution_of(story_named(story->follows)) + 1;
}

struct instance *golden_begin(const struct golden_story *story, struct stack_pool *stacks,
                              thole_orchestration_fn *code)
{
    struct instance_options const options = {.code = code,
                                             .id = golden_instance,
                                             .execution = execution_of(story),
                                             .version = code == NULL ? 0 : story->version,
                                             .memory_max = 1024 * 1024,
                                             .payload_max = THOLE_PAYLOAD_BYTES_DEFAULT,
                                             .stacks = stacks};
    return instance_create(&options);
}

static void give_up(const struct golden_story *story, size_t turn, const thole_error *err)
{
    fprintf(stderr, "%s, turn %zu: %s\n", story->name, turn + 1, err->text);
    abort();
}

/* The state that the preceding story carries over. */
static struct turn_in carried(const struct golden_story *story, struct stack_pool *stacks,
                              struct arena *arena)
{
    const struct golden_story *before = story_named(story->follows);
    struct golden_history history;
    struct event *events = NULL;
    struct buf bytes;
    size_t n = 0;
    thole_error err = {.text = ""};
    buf_init(&bytes, GOLDEN_BYTES_MAX);
    golden_run(before, stacks, &bytes);
    golden_turns(buf_bytes(&bytes), &history, &err);
    struct instance *ended = golden_begin(before, stacks, NULL);
    if (golden_replay(ended, &history, history.turns_len, &err) != THOLE_OK ||
        instance_carry(ended, arena, &events, &n) != THOLE_OK)
        give_up(story, 0, &err);
    struct turn_in const in = {instance_time_ms(ended), events, n, true};
    instance_destroy(ended);
    golden_release(&history);
    buf_release(&bytes);
    return in;
}

struct turn_in golden_input(const struct golden_story *story, size_t i, struct stack_pool *stacks,
                            struct arena *arena)
{
    const struct golden_turn *turn = &story->turns[i];
    if (i == 0 && story->follows != NULL)
        return carried(story, stacks, arena);
    return (struct turn_in){turn->time_ms, turn->received, turn->received_len, !turn->held};
}

/* ---- writing ---- */

struct writing {
    struct buf *to;
    uint64_t n;
};

static void write_record(struct writing *w, struct turn turn, const struct event *events, size_t n, bool more)
{
    struct buf bytes;
    buf_init(&bytes, GOLDEN_BYTES_MAX);
    turn.events = events;
    turn.events_len = n;
    turn.more = more;
    w->n++;
    struct record const record = {.kind = RECORD_TURN,
                                  .epoch = 1,
                                  .n = w->n,
                                  .committed = w->n - 1,
                                  .position = {.floor = more ? 0 : w->n},
                                  .turn = turn};
    if (record_encode(&record, &bytes) != THOLE_OK)
        abort();
    for (size_t i = 0; i < LENGTH_BYTES; i++)
        buf_append(w->to, &(uint8_t){(uint8_t)(bytes.len >> 8 * i)}, 1);
    buf_slice(w->to, buf_bytes(&bytes));
    buf_release(&bytes);
}

static void write_turn(struct writing *w, const struct golden_story *story, bool paused,
                       const struct turn_out *out)
{
    struct turn const turn = {.instance = golden_instance,
                              .execution = execution_of(story),
                              .number = out->number,
                              .time_ms = out->time_ms,
                              .ran = out->ran,
                              .blocked = out->ran ? BLOCKED_NOT
                                         : paused ? BLOCKED_PAUSED
                                                  : BLOCKED_NO_CODE};
    size_t const part = story->part == 0 ? out->events_len : story->part;
    size_t first = 0;
    do {
        size_t const left = out->events_len - first;
        size_t const n = left < part ? left : part;
        write_record(w, turn, out->events + first, n, n < left);
        first += n;
    } while (first < out->events_len);
}

/* ---- reading ---- */

size_t golden_records(thole_slice bytes, struct arena *arena, struct record *ret, thole_error *reterr)
{
    size_t n = 0;
    while (bytes.len >= LENGTH_BYTES && n < GOLDEN_RECORDS_MAX) {
        size_t len = 0;
        for (size_t i = 0; i < LENGTH_BYTES; i++)
            len |= (size_t)bytes.ptr[i] << 8 * i;
        bytes = (thole_slice){bytes.ptr + LENGTH_BYTES, bytes.len - LENGTH_BYTES};
        if (len > bytes.len ||
            record_decode((thole_slice){bytes.ptr, len}, arena, &ret[n], reterr) != THOLE_OK)
            return 0;
        bytes = (thole_slice){bytes.ptr + len, bytes.len - len};
        n++;
    }
    return bytes.len == 0 ? n : 0;
}

void golden_turns(thole_slice bytes, struct golden_history *ret, thole_error *reterr)
{
    struct record records[GOLDEN_RECORDS_MAX], taken[GOLDEN_RECORDS_MAX];
    struct turn_list list = {taken, 0};
    arena_init(&ret->arena, 64 * 1024 * 1024);
    ret->turns_len = 0;
    size_t const n = golden_records(bytes, &ret->arena, records, reterr);
    for (size_t i = 0; i < n; i++)
        turn_list_take(&list, &records[i]);
    for (size_t i = 0, used; i < list.len; i += used) {
        used = turn_list_join(&list, i, &ret->arena, &ret->turns[ret->turns_len]);
        if (used == 0 || ret->turns[ret->turns_len].more)
            break;
        ret->turns_len++;
    }
}

void golden_release(struct golden_history *history)
{
    arena_release(&history->arena);
}

thole_status golden_replay(struct instance *instance, const struct golden_history *history, size_t n,
                           thole_error *reterr)
{
    for (size_t i = 0; i < n; i++)
        THOLE_TRY(instance_replay(instance, &history->turns[i], reterr));
    return THOLE_OK;
}

/* ---- running ---- */

static void run_turn(const struct golden_story *story, size_t i, struct stack_pool *stacks, struct writing *w)
{
    thole_orchestration_fn *code = story->written_by != NULL ? story->written_by : story->code;
    struct instance *instance = golden_begin(story, stacks, story->turns[i].held ? NULL : code);
    struct golden_history history;
    struct arena arena;
    struct turn_out out;
    thole_error err = {.text = ""};
    arena_init(&arena, GOLDEN_BYTES_MAX);
    golden_turns(buf_bytes(w->to), &history, &err);
    struct turn_in const in = golden_input(story, i, stacks, &arena);
    if (golden_replay(instance, &history, history.turns_len, &err) != THOLE_OK ||
        instance_turn(instance, &in, &out, &err) != THOLE_OK)
        give_up(story, i, &err);
    write_turn(w, story, instance_paused(instance), &out);
    instance_destroy(instance);
    golden_release(&history);
    arena_release(&arena);
}

void golden_run(const struct golden_story *story, struct stack_pool *stacks, struct buf *to)
{
    struct writing w = {.to = to};
    for (size_t i = 0; i < story->turns_len; i++)
        run_turn(story, i, stacks, &w);
}
