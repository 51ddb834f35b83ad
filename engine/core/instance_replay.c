/* Recorded turns: checks their form, then executes them again; instance_turn.c compares. */
#include "instance_apply.h"
#include "instance_memory.h"
#include "instance_receive.h"
#include "instance_run.h"
#include "instance_turn.h"

/* ---- checks of form, before anything is changed ---- */

static thole_status turn_check(struct instance *in, const struct turn *turn)
{
    unsigned long long const number = turn->number;
    if (!thole_slice_equal(turn->instance, in->options.id) || turn->execution != in->options.execution)
        return instance_break(in, THOLE_CORRUPT, "turn %llu belongs to another instance or execution",
                              number);
    if (turn->number != in->turn.number + 1)
        return instance_break(in, THOLE_CORRUPT, "turn %llu follows turn %llu", number,
                              (unsigned long long)in->turn.number);
    if (in->end.ended)
        return instance_break(in, THOLE_CORRUPT, "turn %llu follows the end of the execution", number);
    if (!in->facts.started && (turn->events_len == 0 || turn->events[0].kind != EVENT_STARTED))
        return instance_break(in, THOLE_CORRUPT, "turn %llu does not begin with Started", number);
    return THOLE_OK;
}

static thole_status instance_replay_newer(struct instance *in, const struct event *e)
{
    if (in->options.code == NULL)
        return THOLE_OK; /* without code no semantics are needed */
    if (e->kind == EVENT_UNKNOWN)
        return instance_break(in, THOLE_UNSUPPORTED, "event %llu is of a kind that this engine does not know",
                              (unsigned long long)e->id);
    if (e->data_erased || e->details_erased || e->input_erased)
        return instance_break(in, THOLE_UNSUPPORTED,
                              "event %llu: a payload was erased by a redaction, so its code cannot run again",
                              (unsigned long long)e->id);
    if (e->kind == EVENT_STARTED && e->code > SEMANTICS_VERSION)
        return instance_break(in, THOLE_UNSUPPORTED, "execution of semantics %u, this engine knows %d",
                              e->code, SEMANTICS_VERSION);
    return THOLE_OK;
}

/* Numbers, order and kinds of the events. *ret_received is the number of received events, which come first.
 * An unknown kind may be received or new. */
static thole_status events_check(struct instance *in, const struct turn *turn, size_t *ret_received)
{
    bool asked_before = false;
    *ret_received = 0;
    for (size_t i = 0; i < turn->events_len; i++) {
        const struct event *e = &turn->events[i];
        unsigned long long const id = e->id, want = in->turn.next_event + i;
        if (id != want)
            return instance_break(in, THOLE_CORRUPT, "event %llu is where event %llu should be", id, want);
        THOLE_TRY(instance_replay_newer(in, e));
        bool const received = event_is_received(e->kind), asked = !received && e->kind != EVENT_UNKNOWN;
        if (received && asked_before)
            return instance_break(in, THOLE_CORRUPT, "event %llu: %s after what the code asked for", id,
                                  event_kind_name(e->kind));
        if (asked && !turn->ran)
            return instance_break(in, THOLE_CORRUPT, "event %llu: %s in a turn in which no code ran", id,
                                  event_kind_name(e->kind));
        if (event_is_terminal(e->kind) && i + 1 < turn->events_len)
            return instance_break(in, THOLE_CORRUPT, "event %llu follows the end of the execution", id + 1);
        asked_before |= asked;
        if (received || !turn->ran)
            *ret_received = i + 1;
    }
    return THOLE_OK;
}

/* ---- one recorded turn ---- */

static thole_status replay_turn(struct instance *in, const struct turn *turn)
{
    size_t received = 0;
    THOLE_TRY(turn_check(in, turn));
    THOLE_TRY(events_check(in, turn, &received));
    instance_turn_begin(in, turn->time_ms);
    THOLE_TRY(instance_receive_recorded(in, turn, received));
    if (!turn->ran)
        return THOLE_OK;
    if (in->facts.paused)
        return instance_break(in, THOLE_CORRUPT, "turn %llu ran while the execution was paused",
                              (unsigned long long)turn->number);
    instance_turn_expects(in, turn->events + received, turn->events_len - received);
    if (in->options.code == NULL)
        return instance_apply(in);
    THOLE_TRY(instance_run(in));
    return instance_nothing_left(in);
}

thole_status instance_replay(struct instance *instance, const struct turn *turn, thole_error *reterr)
{
    if (instance->broken != THOLE_OK)
        return thole_fail(reterr, instance->broken, "an earlier turn of this instance failed");
    instance_trim(instance);
    instance_turn_open(instance, true, reterr);
    thole_status const status = replay_turn(instance, turn);
    instance_turn_close(instance);
    return status;
}
