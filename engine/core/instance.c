/* Creation and destruction of an instance, its facts, and live turns. */
#include "instance_code.h"
#include "instance_memory.h"
#include "instance_query.h"
#include "instance_receive.h"
#include "instance_run.h"
#include "instance_turn.h"
#include "memory.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

void instance_options_code(struct instance_options *options, const thole_orchestration_entry *entry)
{
    options->code = entry->run;
    options->arg = entry->arg;
    options->call_options = entry->call_options;
    options->stack_bytes = entry->stack_bytes;
    options->version = entry_version(entry);
}

struct instance *instance_create(const struct instance_options *options)
{
    struct instance *in = memory_new(sizeof *in + options->id.len + 1);
    in->options = *options;
    if (options->id.len > 0)
        memcpy(in->id, options->id.ptr, options->id.len);
    in->options.id.ptr = in->id;
    in->ctx.instance = in;
    arena_init(&in->arena, options->memory_max);
    instance_turn_init(in);
    arena_init(&in->queries.current.arena, options->memory_max);
    return in;
}

void instance_destroy(struct instance *instance)
{
    if (instance == NULL)
        return;
    code_release(instance);
    code_drop(instance);
    instance_trim(instance);
    arena_release(&instance->arena);
    free(instance);
}

void instance_trim(struct instance *instance)
{
    instance_turn_release(instance);
    query_release(instance);
}

/* ---- facts ---- */

const struct instance_options *instance_options_of(const struct instance *instance)
{
    return &instance->options;
}

bool instance_started(const struct instance *instance)
{
    return instance->facts.started;
}

bool instance_ended(const struct instance *instance)
{
    return instance->end.ended;
}

bool instance_paused(const struct instance *instance)
{
    return instance->facts.paused;
}

thole_slice instance_pause_reason(const struct instance *instance)
{
    return instance->facts.paused ? instance->facts.pause_reason : (thole_slice){NULL, 0};
}

bool instance_continued(const struct instance *instance)
{
    return instance->end.continued;
}

uint32_t instance_version(const struct instance *instance)
{
    return instance->facts.version;
}

thole_slice instance_custom_status(const struct instance *instance)
{
    return instance->status.text;
}

struct origin instance_parent(const struct instance *instance)
{
    return instance->facts.parent;
}

const void *instance_call_site(const struct instance *instance)
{
    return instance->code.call_site;
}

thole_slice instance_orchestration(const struct instance *instance)
{
    return instance->facts.orchestration;
}

uint64_t instance_turns(const struct instance *instance)
{
    return instance->turn.number;
}

uint64_t instance_events(const struct instance *instance)
{
    return instance->turn.next_event - 1;
}

uint64_t instance_time_ms(const struct instance *instance)
{
    return instance->turn.time_ms;
}

size_t instance_memory(const struct instance *instance)
{
    return sizeof *instance + instance->options.id.len + instance->arena.held + instance->turn.arena.held +
           instance->queries.current.arena.held + instance->turn.events_cap * sizeof *instance->turn.events +
           (instance->code.coro != NULL ? coro_stack_bytes(instance->code.coro) : 0);
}

size_t instance_parked_memory(const struct instance *instance)
{
    enum { STACK_USED = 8 * 1024 }; /* of a small stack, without asking the system after each turn */
    const struct coro *const co = instance->code.coro;
    if (co == NULL)
        return instance_memory(instance);
    size_t const stack = coro_stack_bytes(co);
    size_t const used = stack > CORO_STACK_BYTES ? coro_stack_resident(co) : (size_t)STACK_USED;
    return instance_memory(instance) - stack + used;
}

bool instance_has_undelivered(const struct instance *instance)
{
    return instance->facts.undelivered;
}

/* ---- live turns ---- */

/* An execution whose history names no version gets that of the code, before the code first runs; a paused one
 * when it is resumed. */
static thole_status choose_version(struct instance *in, const struct turn_in *turn)
{
    bool const has_code = in->options.code != NULL && in->options.version != 0;
    if (!in->facts.started || in->facts.version != 0 || !has_code || !turn->run || in->facts.has_run)
        return THOLE_OK;
    bool stays_paused = in->facts.paused;
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
    THOLE_TRY(instance_receive_live(in, turn->received, turn->received_len));
    if (!in->facts.started)
        return instance_break(in, THOLE_INVALID, "the execution has not started");
    *ret_ran = in->facts.terminate_received || (turn->run && !in->facts.paused);
    return *ret_ran ? instance_run(in) : THOLE_OK;
}

thole_status instance_turn(struct instance *instance, const struct turn_in *in, struct turn_out *ret,
                           thole_error *reterr)
{
    if (instance->end.ended)
        return thole_fail(reterr, THOLE_INVALID, "the execution has ended");
    if (instance->broken != THOLE_OK)
        return thole_fail(reterr, instance->broken, "an earlier turn of this instance failed");
    bool ran = false;
    instance_trim(instance);
    instance_turn_open(instance, false, reterr);
    instance_turn_begin(instance, in->time_ms);
    thole_status const status = turn_live(instance, in, &ran);
    instance_turn_close(instance);
    if (status != THOLE_OK)
        return status;
    *ret = (struct turn_out){.number = instance->turn.number,
                             .time_ms = instance->turn.time_ms,
                             .events = instance->turn.events,
                             .events_len = instance->turn.events_len,
                             .ran = ran,
                             .ended = instance->end.ended,
                             .logs = instance->turn.logs,
                             .logs_len = instance->turn.logs_len};
    return THOLE_OK;
}
