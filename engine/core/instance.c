/* Life of an instance, its facts, and live turns. */
#include "instance_state.h"
#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EVENTS_CAP_MIN = 8 };

thole_status instance_create(const struct instance_options *options, struct instance **ret)
{
    struct instance *in = calloc(1, sizeof *in + options->id.len + 1);
    if (in == NULL)
        return THOLE_NOMEM;
    in->options = *options;
    if (options->id.len > 0)
        memcpy(in->id, options->id.ptr, options->id.len);
    in->options.id.ptr = in->id;
    in->ctx.instance = in;
    in->next_event = 1;
    arena_init(&in->arena, options->memory_max);
    arena_init(&in->turn_arena, options->memory_max);
    arena_init(&in->query.arena, options->memory_max);
    *ret = in;
    return THOLE_OK;
}

static void events_release(struct instance *in)
{
    free(in->events);
    in->events = NULL;
    in->events_len = in->events_cap = 0;
}

void instance_destroy(struct instance *instance)
{
    if (instance == NULL)
        return;
    coro_destroy(instance->coro);
    events_release(instance);
    arena_release(&instance->arena);
    arena_release(&instance->turn_arena);
    arena_release(&instance->query.arena);
    free(instance);
}

void instance_trim(struct instance *instance)
{
    arena_release(&instance->turn_arena);
    arena_release(&instance->query.arena);
    events_release(instance);
    instance->logs = NULL;
    instance->logs_len = instance->logs_cap = instance->logs_bytes = 0;
}

/* ---- facts ---- */

bool instance_started(const struct instance *instance)
{
    return instance->started;
}

bool instance_ended(const struct instance *instance)
{
    return instance->ended;
}

bool instance_paused(const struct instance *instance)
{
    return instance->paused;
}

bool instance_continued(const struct instance *instance)
{
    return instance->continued;
}

uint32_t instance_version(const struct instance *instance)
{
    return instance->version;
}

thole_slice instance_custom_status(const struct instance *instance)
{
    return instance->custom_status;
}

struct origin instance_parent(const struct instance *instance)
{
    return instance->parent;
}

const void *instance_call_site(const struct instance *instance)
{
    return instance->call_site;
}

thole_slice instance_orchestration(const struct instance *instance)
{
    return instance->orchestration;
}

uint64_t instance_turns(const struct instance *instance)
{
    return instance->turns;
}

uint64_t instance_time_ms(const struct instance *instance)
{
    return instance->time_ms;
}

size_t instance_memory(const struct instance *instance)
{
    return sizeof *instance + instance->options.id.len + instance->arena.held + instance->turn_arena.held +
           instance->query.arena.held + instance->events_cap * sizeof *instance->events +
           (instance->coro != NULL ? (size_t)CORO_STACK_BYTES : 0);
}

bool instance_has_undelivered(const struct instance *instance)
{
    return instance->undelivered;
}

/* ---- failure of a turn ---- */

thole_status instance_break(struct instance *in, thole_status status, const char *fmt, ...)
{
    assert(status != THOLE_OK);
    if (in->broken != THOLE_OK)
        return in->broken;
    in->broken = status;
    if (in->reterr != NULL) {
        va_list args;
        va_start(args, fmt);
        in->reterr->status = status;
        (void)vsnprintf(in->reterr->text, sizeof in->reterr->text, fmt, args);
        va_end(args);
    }
    return status;
}

thole_status instance_full(struct instance *in)
{
    if (in->arena.nomem || in->turn_arena.nomem)
        return instance_break(in, THOLE_NOMEM, "out of memory");
    return instance_break(
        in, THOLE_LIMIT,
        "the instance's memory limit of %zu bytes is reached: see --instance-memory-max; code that runs "
        "for long continues as new",
        in->options.memory_max);
}

thole_status instance_keep(struct instance *in, thole_slice from, thole_slice *ret)
{
    *ret = (thole_slice){NULL, 0};
    if (from.len > 0 && arena_dup(&in->arena, from, ret) != THOLE_OK)
        return instance_full(in);
    return THOLE_OK;
}

thole_status instance_keep_for_turn(struct instance *in, thole_slice from, thole_slice *ret)
{
    *ret = from;
    if (!in->replaying && from.len > 0 && arena_dup(&in->turn_arena, from, ret) != THOLE_OK)
        return instance_full(in);
    return THOLE_OK;
}

/* ---- events of the turn ---- */

void instance_turn_begin(struct instance *in, uint64_t time_ms, thole_error *reterr)
{
    instance_trim(in);
    in->expected = NULL;
    in->expected_len = 0;
    in->matched = NULL;
    in->turns++;
    if (time_ms > in->time_ms)
        in->time_ms = time_ms;
    in->reterr = reterr;
}

void instance_count_event(struct instance *in, const struct event *event)
{
    in->event_bytes += event_bytes_max(event);
}

/* One block that grows, as an arena would keep the smaller ones too; the ceiling is the turn's. */
static thole_status events_grow(struct instance *in)
{
    size_t const cap = in->events_cap == 0 ? EVENTS_CAP_MIN : in->events_cap * 2;
    size_t const room = in->options.memory_max - in->turn_arena.used;
    if (cap > room / sizeof *in->events)
        return instance_full(in);
    struct event *events = realloc(in->events, cap * sizeof *events);
    if (events == NULL)
        return instance_break(in, THOLE_NOMEM, "out of memory");
    in->events = events;
    in->events_cap = cap;
    return THOLE_OK;
}

thole_status instance_push(struct instance *in, const struct event *event)
{
    if (in->events_len == in->events_cap)
        THOLE_TRY(events_grow(in));
    in->events[in->events_len++] = *event;
    instance_count_event(in, event);
    return THOLE_OK;
}

uint64_t instance_next_id(struct instance *in)
{
    if (in->replaying)
        instance_absorb_patches(in);
    return in->next_event;
}

uint64_t instance_emit(struct instance *in, struct event *event)
{
    assert(!event_is_received(event->kind));
    if (in->broken != THOLE_OK)
        return 0;
    event->id = instance_next_id(in);
    thole_status const status = in->replaying ? instance_match(in, event) : instance_push(in, event);
    if (status != THOLE_OK)
        return 0;
    return in->next_event++;
}

/* ---- live turns ---- */

/* An execution whose history names no version takes that of the code, before the code first runs. A paused
 * one that stays so has no need yet. */
static thole_status choose_version(struct instance *in, const struct turn_in *turn)
{
    bool const has_code = in->options.code != NULL && in->options.version != 0;
    if (!in->started || in->version != 0 || !has_code || !turn->run || in->has_run)
        return THOLE_OK;
    bool stays_paused = in->paused;
    for (size_t i = 0; i < turn->received_len && stays_paused; i++) {
        enum event_kind const kind = turn->received[i].kind;
        stays_paused = kind != EVENT_RESUMED && kind != EVENT_CANCEL_REQUESTED;
    }
    if (stays_paused)
        return THOLE_OK;
    struct event const event = {.kind = EVENT_VERSION_CHOSEN, .version = in->options.version};
    return instance_receive(in, &event);
}

static thole_status turn_live(struct instance *in, const struct turn_in *turn, bool *ret_ran)
{
    THOLE_TRY(choose_version(in, turn));
    in->receiving = true;
    for (size_t i = 0; i < turn->received_len; i++) {
        struct event event = turn->received[i];
        if (instance_accepts(in, &event) && instance_convert(in, &event))
            THOLE_TRY(instance_receive(in, &event));
    }
    in->receiving = false;
    if (!in->started)
        return instance_break(in, THOLE_INVALID, "the execution has not started");
    *ret_ran = in->terminate_received || (turn->run && !in->paused);
    return *ret_ran ? instance_run(in) : THOLE_OK;
}

thole_status instance_turn(struct instance *instance, const struct turn_in *in, struct turn_out *ret,
                           thole_error *reterr)
{
    if (instance->ended)
        return thole_fail(reterr, THOLE_INVALID, "the execution has ended");
    if (instance->broken != THOLE_OK)
        return thole_fail(reterr, instance->broken, "an earlier turn of this instance failed");
    bool ran = false;
    instance->replaying = false;
    instance->unchecked = false;
    instance_turn_begin(instance, in->time_ms, reterr);
    thole_status const status = turn_live(instance, in, &ran);
    instance->reterr = NULL;
    if (status != THOLE_OK)
        return status;
    *ret = (struct turn_out){.number = instance->turns,
                             .time_ms = instance->time_ms,
                             .events = instance->events,
                             .events_len = instance->events_len,
                             .ran = ran,
                             .ended = instance->ended,
                             .logs = instance->logs,
                             .logs_len = instance->logs_len};
    return THOLE_OK;
}
