/* Histories: how they are made, and how they are kept in a file. */
#include "coro.h"
#include "golden.h"
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

struct instance *golden_begin(const struct golden_story *story, struct stack_pool *stacks, bool code)
{
    struct instance *instance = NULL;
    struct instance_options const options = {.code = code ? story->code : NULL,
                                             .id = golden_instance,
                                             .execution = execution_of(story),
                                             .version = story->version,
                                             .memory_max = 1024 * 1024,
                                             .payload_max = THOLE_PAYLOAD_BYTES_DEFAULT,
                                             .stacks = stacks};
    if (instance_create(&options, &instance) != THOLE_OK)
        abort();
    return instance;
}

struct turn_in golden_input(const struct golden_story *story, size_t i, struct stack_pool *stacks,
                            struct arena *arena)
{
    const struct golden_turn *turn = &story->turns[i];
    struct turn_in const in = {turn->time_ms, turn->received, turn->received_len, !turn->held};
    (void)stacks, (void)arena;
    return in;
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

static void write_turn(struct writing *w, const struct golden_story *story, bool ran,
                       const struct turn_out *out)
{
    struct turn const turn = {.instance = golden_instance,
                              .execution = execution_of(story),
                              .number = out->number,
                              .time_ms = out->time_ms,
                              .ran = ran,
                              .blocked = ran ? BLOCKED_NOT : BLOCKED_NO_CODE};
    size_t const part = story->part == 0 ? out->events_len : story->part;
    size_t first = 0;
    do {
        size_t const left = out->events_len - first;
        size_t const n = left < part ? left : part;
        write_record(w, turn, out->events + first, n, n < left);
        first += n;
    } while (first < out->events_len);
}

void golden_run(const struct golden_story *story, struct stack_pool *stacks, struct buf *to)
{
    struct instance *instance = golden_begin(story, stacks, true);
    struct writing w = {.to = to};
    struct arena arena;
    arena_init(&arena, GOLDEN_BYTES_MAX);
    for (size_t i = 0; i < story->turns_len; i++) {
        struct turn_in const in = golden_input(story, i, stacks, &arena);
        struct turn_out out;
        thole_error err = {.text = ""};
        if (instance_turn(instance, &in, &out, &err) != THOLE_OK) {
            fprintf(stderr, "%s, turn %zu: %s\n", story->name, i + 1, err.text);
            abort();
        }
        write_turn(&w, story, in.run, &out);
    }
    instance_destroy(instance);
    arena_release(&arena);
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
