/* Functions for orchestrations: random numbers, side effects, status, state, versions. */
#include "hash.h"
#include "instance_code.h"
#include "instance_end.h"
#include "instance_memory.h"
#include "instance_names.h"
#include "instance_state_map.h"
#include "instance_turn.h"
#include "message.h"
#include <stdio.h>
#include <string.h>

/* ---- randomness ---- */

static uint64_t next_random(struct instance *in)
{
    return hash_number(in->facts.random_seed, ++in->random_count);
}

uint64_t thole_random(thole_ctx *ctx)
{
    NOTE_CALL_SITE(ctx->instance);
    return code_refuses(ctx->instance) ? 0 : next_random(ctx->instance);
}

thole_slice thole_uuid(thole_ctx *ctx)
{
    struct instance *in = ctx->instance;
    NOTE_CALL_SITE(in);
    if (code_refuses(in))
        return (thole_slice){NULL, 0};
    uint64_t const a = next_random(in), b = next_random(in);
    return thole_format(ctx, "%08x-%04x-4%03x-%04x-%012llx", (unsigned)(a >> 32),
                        (unsigned)(a >> 16 & 0xffff), (unsigned)(a & 0xfff),
                        (unsigned)(b >> 48 & 0x3fff) | 0x8000u,
                        (unsigned long long)(b & UINT64_C(0xffffffffffff)));
}

/* ---- values from outside ---- */

static thole_status effect_run(struct instance *in, thole_side_effect_fn *make, void *arg, thole_slice *value)
{
    code_guard(in, GUARD_EFFECT);
    thole_status status = make(&in->ctx, arg, value);
    bool const allowed = code_unguard(in);
    if (status == THOLE_OK && !allowed)
        status = THOLE_INVALID;
    if (status == THOLE_OK && value->len > in->options.payload_max)
        status = THOLE_LIMIT;
    if (status != THOLE_OK)
        *value = (thole_slice){NULL, 0};
    return status;
}

/* Live and in replay the code gets a copy that lives as long as the execution. */
static thole_status effect_live(struct instance *in, thole_side_effect_fn *make, void *arg,
                                thole_slice *ret_value)
{
    struct event event = {.kind = EVENT_SIDE_EFFECT_RECORDED};
    thole_status const status = effect_run(in, make, arg, &event.data);
    if (in->broken != THOLE_OK || instance_keep(in, event.data, ret_value) != THOLE_OK)
        return THOLE_LIMIT;
    event.code = (uint32_t)status;
    event.data = *ret_value;
    return instance_emit(in, &event) == 0 ? THOLE_LIMIT : status;
}

static thole_status effect_replayed(struct instance *in, thole_slice *ret_value)
{
    const struct event *had = instance_expect(in, EVENT_SIDE_EFFECT_RECORDED);
    if (had == NULL || instance_keep(in, had->data, ret_value) != THOLE_OK)
        return THOLE_LIMIT;
    return (thole_status)had->code;
}

thole_status thole_side_effect(thole_ctx *ctx, thole_side_effect_fn *make, void *arg, thole_slice *ret_value)
{
    struct instance *in = ctx->instance;
    thole_slice value = {NULL, 0};
    NOTE_CALL_SITE(in);
    if (code_refuses(in))
        return THOLE_INVALID;
    if (in->broken != THOLE_OK)
        return THOLE_LIMIT;
    thole_status const status =
        in->turn.replaying ? effect_replayed(in, &value) : effect_live(in, make, arg, &value);
    if (status == THOLE_OK)
        *ret_value = value;
    return status;
}

/* ---- custom status ---- */

void thole_set_status(thole_ctx *ctx, thole_slice status)
{
    struct instance *in = ctx->instance;
    struct event event = {.kind = EVENT_CUSTOM_STATUS_SET};
    NOTE_CALL_SITE(in);
    if (code_refuses(in) || in->broken != THOLE_OK || instance_set_custom_status(in, status) != THOLE_OK ||
        instance_keep_for_turn(in, in->status.text, &event.data) != THOLE_OK)
        return;
    (void)instance_emit(in, &event);
}

/* ---- state ---- */

/* Emits the event first: it copies the slices, while the map may free the memory that they point to. */
static bool state_event(struct instance *in, struct event *event)
{
    return in->broken == THOLE_OK && instance_keep_for_turn(in, event->name, &event->name) == THOLE_OK &&
           instance_keep_for_turn(in, event->data, &event->data) == THOLE_OK && instance_emit(in, event) != 0;
}

static enum task_fault state_fault(const struct instance *in, thole_slice key, thole_slice value)
{
    thole_slice old = {NULL, 0};
    if (key.len == 0 || key.len > STATE_KEY_BYTES_MAX)
        return FAULT_STATE_KEY;
    size_t bytes = in->state.bytes;
    bytes = state_find(&in->state, key, &old) ? bytes - old.len : bytes + key.len;
    bool const fits = bytes <= in->options.payload_max && value.len <= in->options.payload_max - bytes;
    return fits ? 0 : FAULT_STATE_SIZE;
}

void thole_state_set(thole_ctx *ctx, thole_slice key, thole_slice value)
{
    struct instance *in = ctx->instance;
    struct event event = {.kind = EVENT_STATE_SET, .name = key, .data = value};
    NOTE_CALL_SITE(in);
    if (code_refuses(in))
        return;
    enum task_fault const fault = state_fault(in, key, value);
    if (fault != 0)
        code_fault(in, fault);
    else if (state_event(in, &event))
        (void)state_put(in, key, value);
}

void thole_state_remove(thole_ctx *ctx, thole_slice key)
{
    struct instance *in = ctx->instance;
    struct event event = {.kind = EVENT_STATE_SET, .name = key, .flag = true};
    thole_slice old;
    NOTE_CALL_SITE(in);
    if (!code_refuses(in) && state_find(&in->state, key, &old) && state_event(in, &event))
        state_drop(&in->state, key);
}

thole_status thole_state_get(thole_ctx *ctx, thole_slice key, thole_slice *ret_value)
{
    NOTE_CALL_SITE(ctx->instance);
    return state_find(&ctx->instance->state, key, ret_value) ? THOLE_OK : THOLE_NOT_FOUND;
}

thole_status thole_state_next(thole_ctx *ctx, thole_slice key, thole_slice *ret_key, thole_slice *ret_value)
{
    NOTE_CALL_SITE(ctx->instance);
    return state_next(&ctx->instance->state, key, ret_key, ret_value) ? THOLE_OK : THOLE_NOT_FOUND;
}

/* ---- continue-as-new, versions ---- */

thole_status thole_continue_as_new(thole_ctx *ctx, thole_slice input, uint32_t version)
{
    struct instance *in = ctx->instance;
    NOTE_CALL_SITE(in);
    if (code_refuses(in))
        return THOLE_INVALID;
    size_t const left = in->turn.expected_len;
    if (!instance_turn_takes(left > 0 ? &in->turn.expected[left - 1] : NULL, version))
        return THOLE_INVALID;
    if (in->broken != THOLE_OK || input.len > in->options.payload_max ||
        instance_continues(in, input, version) != THOLE_OK)
        return THOLE_LIMIT;
    return THOLE_OK;
}

static bool patch_live(struct instance *in, struct name *name)
{
    struct event event = {.kind = EVENT_PATCHED, .name = name->text};
    return instance_emit(in, &event) != 0;
}

bool thole_patch(thole_ctx *ctx, thole_slice change)
{
    struct instance *in = ctx->instance;
    NOTE_CALL_SITE(in);
    if (code_refuses(in) || in->broken != THOLE_OK || name_check(change, "change", NULL) != THOLE_OK)
        return false;
    if (in->turn.replaying)
        instance_absorb_patches(in);
    struct name *name = in->broken == THOLE_OK ? names_intern(in, change) : NULL;
    if (name == NULL)
        return false;
    if (name->patch == PATCH_UNKNOWN)
        names_answer_patch(name, !in->turn.replaying && patch_live(in, name) ? PATCH_TRUE : PATCH_FALSE);
    return name->patch == PATCH_TRUE;
}
