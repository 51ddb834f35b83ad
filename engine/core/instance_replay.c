/* Recorded turns: they are checked in form, then executed again; instance_mismatch.c compares. */
#include "instance_state.h"

/* ---- checks of form, before anything is changed ---- */

static thole_status turn_check(struct instance *in, const struct turn *turn)
{
    unsigned long long const number = turn->number;
    if (!thole_slice_equal(turn->instance, in->options.id) || turn->execution != in->options.execution)
        return instance_break(in, THOLE_CORRUPT, "turn %llu belongs to another instance or execution",
                              number);
    if (turn->number != in->turns + 1)
        return instance_break(in, THOLE_CORRUPT, "turn %llu follows turn %llu", number,
                              (unsigned long long)in->turns);
    if (in->ended)
        return instance_break(in, THOLE_CORRUPT, "turn %llu follows the end of the execution", number);
    if (!in->started && (turn->events_len == 0 || turn->events[0].kind != EVENT_STARTED))
        return instance_break(in, THOLE_CORRUPT, "turn %llu does not begin with Started", number);
    return THOLE_OK;
}

static thole_status newer(struct instance *in, const struct event *e)
{
    if (in->options.code == NULL)
        return THOLE_OK; /* nothing is interpreted without code */
    if (e->kind == EVENT_UNKNOWN)
        return instance_break(in, THOLE_UNSUPPORTED, "event %llu is of a kind that this engine does not know",
                              (unsigned long long)e->id);
    if (e->kind == EVENT_STARTED && e->code > SEMANTICS_VERSION)
        return instance_break(in, THOLE_UNSUPPORTED, "execution of semantics %u, this engine knows %d",
                              e->code, SEMANTICS_VERSION);
    return THOLE_OK;
}

/* Numbers, order and kinds of the events. *ret_received is how many come first that were received. What is
 * of an unknown kind may be either. */
static thole_status events_check(struct instance *in, const struct turn *turn, size_t *ret_received)
{
    bool asked_before = false;
    *ret_received = 0;
    for (size_t i = 0; i < turn->events_len; i++) {
        const struct event *e = &turn->events[i];
        unsigned long long const id = e->id, want = in->next_event + i;
        if (id != want)
            return instance_break(in, THOLE_CORRUPT, "event %llu is where event %llu should be", id, want);
        THOLE_TRY(newer(in, e));
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

static thole_status receive_all(struct instance *in, const struct turn *turn, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const struct event *e = &turn->events[i];
        if (e->kind != EVENT_UNKNOWN)
            THOLE_TRY(instance_receive(in, e));
        else
            in->next_event++;
    }
    return THOLE_OK;
}

static thole_status replay_turn(struct instance *in, const struct turn *turn)
{
    size_t received = 0;
    THOLE_TRY(turn_check(in, turn));
    THOLE_TRY(events_check(in, turn, &received));
    instance_turn_begin(in, turn->time_ms, in->reterr);
    in->unchecked = !turn->ran;
    THOLE_TRY(receive_all(in, turn, received));
    if (!turn->ran)
        return THOLE_OK;
    if (in->paused)
        return instance_break(in, THOLE_CORRUPT, "turn %llu ran while the execution was paused",
                              (unsigned long long)turn->number);
    in->expected = turn->events + received;
    in->expected_len = turn->events_len - received;
    if (in->options.code == NULL)
        return instance_apply(in);
    THOLE_TRY(instance_run(in));
    return instance_nothing_left(in);
}

thole_status instance_replay(struct instance *instance, const struct turn *turn, thole_error *reterr)
{
    if (instance->broken != THOLE_OK)
        return thole_fail(reterr, instance->broken, "an earlier turn of this instance failed");
    instance->reterr = reterr;
    instance->replaying = true;
    thole_status const status = replay_turn(instance, turn);
    instance->expected = NULL;
    instance->expected_len = 0;
    instance->matched = NULL;
    instance->reterr = NULL;
    return status;
}
