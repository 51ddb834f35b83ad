/* The current turn: new events are appended to it, or compared to the recorded ones. */
#include "instance_turn.h"
#include "event_text.h"
#include "instance_memory.h"
#include "instance_names.h"
#include "range.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { EVENTS_CAP_MIN = 4 };
static_assert(EVENTS_CAP_MIN * sizeof(struct event) < 1008, "a small block for malloc: arena.c");

/* ---- beginning and end ---- */

void instance_turn_init(struct instance *in)
{
    arena_init(&in->turn.arena, in->options.memory_max);
    in->turn.next_event = 1;
}

void instance_turn_open(struct instance *in, bool replaying, thole_error *reterr)
{
    in->turn.replaying = replaying;
    in->reterr = reterr;
}

void instance_turn_begin(struct instance *in, uint64_t time_ms)
{
    assert(in->turn.expected_len == 0);
    in->turn.number++;
    in->turn.clock_ms = time_ms;
    if (time_ms > in->turn.time_ms)
        in->turn.time_ms = time_ms;
}

void instance_turn_expects(struct instance *in, const struct event *recorded, size_t len)
{
    assert(in->turn.replaying);
    in->turn.expected = recorded;
    in->turn.expected_len = len;
}

void instance_turn_close(struct instance *in)
{
    assert(in->turn.replaying || (in->turn.expected_len == 0 && in->turn.matched == NULL));
    in->turn.expected = NULL;
    in->turn.expected_len = 0;
    in->turn.matched = NULL;
    in->reterr = NULL;
}

void instance_turn_release(struct instance *in)
{
    arena_release(&in->turn.arena);
    free(in->turn.events);
    in->turn.events = NULL;
    in->turn.events_len = in->turn.events_cap = 0;
    in->turn.logs = NULL;
    in->turn.logs_len = in->turn.logs_cap = in->turn.logs_bytes = 0;
}

/* ---- against the history ---- */

static thole_status instance_turn_mismatch(struct instance *in, const struct event *had,
                                           const struct event *asked)
{
    char history[EVENT_TEXT_BYTES], code[EVENT_TEXT_BYTES];
    unsigned long long const id = asked->id;
    event_describe(had, history);
    event_describe(asked, code);
    if (strcmp(history, code) == 0)
        return instance_break(in, THOLE_NONDETERMINISM,
                              "event %llu: history has %s, the code asked for the same, but the %s differs",
                              id, history, event_difference(had, asked));
    return instance_break(in, THOLE_NONDETERMINISM, "event %llu: history has %s, the code asked for %s", id,
                          history, code);
}

bool instance_turn_takes(const struct event *recorded, uint32_t version)
{
    return version <= RANGE_INT4 || (recorded != NULL && recorded->version == version);
}

static const struct event *take_expected(struct instance *in, const struct event *asked)
{
    char code[EVENT_TEXT_BYTES];
    if (in->turn.expected_len == 0) {
        event_describe(asked, code);
        (void)instance_break(in, THOLE_NONDETERMINISM,
                             "event %llu: history ends the turn, the code asked for %s",
                             (unsigned long long)asked->id, code);
        return NULL;
    }
    in->turn.expected_len--;
    return in->turn.expected++;
}

static thole_status instance_turn_match(struct instance *in, const struct event *asked)
{
    const struct event *had = take_expected(in, asked);
    if (had == NULL)
        return in->broken;
    if (!event_equal(had, asked))
        return instance_turn_mismatch(in, had, asked);
    in->turn.matched = had;
    instance_count_event(in, had);
    return THOLE_OK;
}

const struct event *instance_expect(struct instance *in, enum event_kind kind)
{
    assert(in->turn.replaying);
    struct event const asked = {.kind = kind, .id = instance_next_id(in)};
    const struct event *had = take_expected(in, &asked);
    if (had == NULL)
        return NULL;
    if (had->kind != kind) {
        (void)instance_turn_mismatch(in, had, &asked);
        return NULL;
    }
    in->turn.matched = had;
    (void)instance_take_id(in);
    instance_count_event(in, had);
    return had;
}

void instance_absorb_patches(struct instance *in)
{
    while (in->broken == THOLE_OK && in->turn.expected_len > 0 && in->turn.expected->kind == EVENT_PATCHED) {
        struct name *name = names_intern(in, in->turn.expected->name);
        if (name == NULL)
            return;
        names_answer_patch(name, PATCH_TRUE);
        (void)instance_take_id(in);
        instance_count_event(in, in->turn.expected);
        in->turn.expected++;
        in->turn.expected_len--;
    }
}

thole_status instance_nothing_left(struct instance *in)
{
    char history[EVENT_TEXT_BYTES];
    instance_absorb_patches(in);
    if (in->broken != THOLE_OK || in->turn.expected_len == 0)
        return in->broken;
    event_describe(in->turn.expected, history);
    return instance_break(in, THOLE_NONDETERMINISM,
                          "event %llu: history has %s, the code asked for nothing more",
                          (unsigned long long)in->turn.expected->id, history);
}

/* ---- events ---- */

void instance_count_event(struct instance *in, const struct event *event)
{
    in->turn.event_bytes += event_bytes_max(event);
}

/* One block that grows (an arena would keep the smaller ones, too), with the turn's ceiling. */
static thole_status events_grow(struct instance *in)
{
    size_t const cap = in->turn.events_cap == 0 ? EVENTS_CAP_MIN : in->turn.events_cap * 2;
    size_t const room = in->options.memory_max - in->turn.arena.used;
    if (cap > room / sizeof *in->turn.events)
        return instance_full(in);
    struct event *events = realloc(in->turn.events, cap * sizeof *events);
    if (events == NULL)
        return instance_break(in, THOLE_NOMEM, "out of memory");
    in->turn.events = events;
    in->turn.events_cap = cap;
    return THOLE_OK;
}

thole_status instance_push(struct instance *in, const struct event *event)
{
    assert(!in->turn.replaying);
    assert(in->turn.events_len == 0 || in->turn.events[in->turn.events_len - 1].id + 1 == event->id);
    if (in->turn.events_len == in->turn.events_cap)
        THOLE_TRY(events_grow(in));
    in->turn.events[in->turn.events_len++] = *event;
    instance_count_event(in, event);
    return THOLE_OK;
}

uint64_t instance_take_id(struct instance *in)
{
    return in->turn.next_event++;
}

uint64_t instance_next_id(struct instance *in)
{
    if (in->turn.replaying)
        instance_absorb_patches(in);
    return in->turn.next_event;
}

void instance_reached(struct instance *in)
{
    uint64_t const wanted = in->options.stop_event;
    if (wanted == 0 || !in->turn.replaying || in->turn.stopped || in->turn.next_event <= wanted)
        return;
    in->turn.stopped = true;
    in->options.stop(in->options.stop_arg, in);
}

uint64_t instance_emit(struct instance *in, struct event *event)
{
    assert(!event_is_received(event->kind) && !in->end.ended && in->turn.number > 0);
    if (in->broken != THOLE_OK)
        return 0;
    event->id = instance_next_id(in);
    thole_status const status =
        in->turn.replaying ? instance_turn_match(in, event) : instance_push(in, event);
    if (status != THOLE_OK)
        return 0;
    uint64_t const id = instance_take_id(in);
    instance_reached(in);
    return id;
}

void instance_emitted_retry(struct instance *in, const struct retry *retry)
{
    assert(!in->turn.replaying && in->turn.events_len > 0);
    in->turn.events[in->turn.events_len - 1].retry = retry;
}

/* ---- the log ---- */

static struct turn_log *log_line(struct instance *in)
{
    if (in->turn.logs_len == in->turn.logs_cap) {
        size_t const cap = in->turn.logs_cap == 0 ? 8 : in->turn.logs_cap * 2;
        struct turn_log *logs = arena_array(&in->turn.arena, cap, sizeof *logs);
        if (logs == NULL)
            return NULL;
        if (in->turn.logs_len > 0)
            memcpy(logs, in->turn.logs, in->turn.logs_len * sizeof *logs);
        in->turn.logs = logs;
        in->turn.logs_cap = cap;
    }
    return &in->turn.logs[in->turn.logs_len];
}

void instance_log(struct instance *in, uint32_t level, thole_slice text)
{
    assert(!in->turn.replaying);
    struct turn_log *line = in->turn.logs_bytes + text.len > LOG_BYTES_MAX ? NULL : log_line(in);
    if (line == NULL || arena_dup(&in->turn.arena, text, &line->text) != THOLE_OK)
        return;
    line->level = level;
    in->turn.logs_bytes += text.len + sizeof *line;
    in->turn.logs_len++;
}
