/*
 * Recorded turns. With code, the turn is executed again and each event that the code asks for is compared to
 * the one that history has. Without code, the recorded events are taken as facts, so that an instance whose
 * code is missing still knows which messages would change something.
 */
#include "instance_state.h"
#include "message.h"
#include <stdio.h>

enum { DESCRIPTION_BYTES = 160 };

/* ---- what a mismatch says ---- */

/* "ActivityScheduled 'charge'", "TimerCreated due 5000", "ActivityCancelled of event 3 (select_loser)". */
static void describe(const struct event *e, char to[DESCRIPTION_BYTES])
{
    const char *kind = event_kind_name(e->kind);
    switch (e->kind) {
    case EVENT_ACTIVITY_SCHEDULED:
        (void)snprintf(to, DESCRIPTION_BYTES, "%s '%.*s'", kind, THOLE_FMT(e->name));
        break;
    case EVENT_TIMER_CREATED:
        (void)snprintf(to, DESCRIPTION_BYTES, "%s due %llu", kind, (unsigned long long)e->due_ms);
        break;
    case EVENT_ACTIVITY_CANCELLED:
    case EVENT_TIMER_CANCELLED:
        (void)snprintf(to, DESCRIPTION_BYTES, "%s of event %llu (%s)", kind, (unsigned long long)e->ref,
                       cancel_kind_name(e->code));
        break;
    case EVENT_FAILED:
        (void)snprintf(to, DESCRIPTION_BYTES, "%s %s", kind, thole_status_name((thole_status)e->code));
        break;
    default: (void)snprintf(to, DESCRIPTION_BYTES, "%s", kind); break;
    }
}

/* What to call the data of an event that differs from the recorded one in nothing else that is described. */
static const char *data_name(enum event_kind kind)
{
    switch (kind) {
    case EVENT_ACTIVITY_SCHEDULED: return "input";
    case EVENT_COMPLETED: return "output";
    case EVENT_FAILED: return "failure text";
    case EVENT_ACTIVITY_CANCELLED:
    case EVENT_TIMER_CANCELLED:
    case EVENT_CANCELLED: return "reason";
    default: break;
    }
    return "content";
}

static const char *difference(const struct event *a, const struct event *b)
{
    if (!thole_slice_equal(a->data, b->data))
        return data_name(a->kind);
    return thole_slice_equal(a->queue, b->queue) ? "content" : "queue";
}

static bool same_description(const struct event *a, const struct event *b)
{
    return a->kind == b->kind && a->ref == b->ref && a->due_ms == b->due_ms && a->code == b->code &&
           thole_slice_equal(a->name, b->name);
}

static thole_status mismatch(struct instance *in, const struct event *had, const struct event *asked)
{
    char history[DESCRIPTION_BYTES], code[DESCRIPTION_BYTES];
    unsigned long long const id = asked->id;
    describe(had, history);
    describe(asked, code);
    if (same_description(had, asked))
        return instance_break(in, THOLE_NONDETERMINISM,
                              "event %llu: history has %s, the code asked for the same, but the %s differs",
                              id, history, difference(had, asked));
    return instance_break(in, THOLE_NONDETERMINISM, "event %llu: history has %s, the code asked for %s", id,
                          history, code);
}

thole_status instance_match(struct instance *in, const struct event *asked)
{
    char code[DESCRIPTION_BYTES];
    if (in->expected_len == 0) {
        describe(asked, code);
        return instance_break(in, THOLE_NONDETERMINISM,
                              "event %llu: history ends the turn, the code asked for %s",
                              (unsigned long long)asked->id, code);
    }
    const struct event *had = in->expected++;
    in->expected_len--;
    return event_equal(had, asked) ? THOLE_OK : mismatch(in, had, asked);
}

/* The code waits or has ended: nothing recorded may be left. */
static thole_status nothing_left(struct instance *in)
{
    char history[DESCRIPTION_BYTES];
    if (in->expected_len == 0)
        return THOLE_OK;
    describe(in->expected, history);
    return instance_break(in, THOLE_NONDETERMINISM,
                          "event %llu: history has %s, the code asked for nothing more",
                          (unsigned long long)in->expected->id, history);
}

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

/* Numbers, order and kinds of the events. *ret_received is how many come first that were received. */
static thole_status events_check(struct instance *in, const struct turn *turn, size_t *ret_received)
{
    size_t received = 0;
    for (size_t i = 0; i < turn->events_len; i++) {
        const struct event *e = &turn->events[i];
        unsigned long long const id = e->id, want = in->next_event + i;
        if (id != want)
            return instance_break(in, THOLE_CORRUPT, "event %llu is where event %llu should be", id, want);
        THOLE_TRY(newer(in, e));
        bool const is_received = event_is_received(e->kind) || (e->kind == EVENT_UNKNOWN && !turn->ran);
        if (is_received && received != i)
            return instance_break(in, THOLE_CORRUPT, "event %llu: %s after what the code asked for", id,
                                  event_kind_name(e->kind));
        if (!is_received && !turn->ran)
            return instance_break(in, THOLE_CORRUPT, "event %llu: %s in a turn in which no code ran", id,
                                  event_kind_name(e->kind));
        if (event_is_terminal(e->kind) && i + 1 < turn->events_len)
            return instance_break(in, THOLE_CORRUPT, "event %llu follows the end of the execution", id + 1);
        received += is_received;
    }
    *ret_received = received;
    return THOLE_OK;
}

/* ---- without code ---- */

static thole_status apply_scheduled(struct instance *in, const struct event *e)
{
    if (e->kind == EVENT_ACTIVITY_SCHEDULED && e->name.len == 0)
        return instance_break(in, THOLE_CORRUPT, "event %llu: an activity without a name",
                              (unsigned long long)e->id);
    return task_add(in, e->id, e->kind == EVENT_TIMER_CREATED ? (thole_slice){0} : e->name) == NULL
               ? in->broken
               : THOLE_OK;
}

static thole_status apply_cancelled(struct instance *in, const struct event *e)
{
    struct task *task = task_resolved_by(in, e);
    struct event const bare = {.kind = e->kind, .id = e->id, .ref = e->ref, .code = e->code};
    if (task == NULL || task->state != TASK_OUTSTANDING)
        return instance_break(in, THOLE_CORRUPT, "event %llu: %s of event %llu, which is not outstanding",
                              (unsigned long long)e->id, event_kind_name(e->kind),
                              (unsigned long long)e->ref);
    task_resolve(in, task, &bare);
    return THOLE_OK;
}

static thole_status apply(struct instance *in, const struct event *e)
{
    in->next_event++;
    switch (e->kind) {
    case EVENT_ACTIVITY_SCHEDULED:
    case EVENT_TIMER_CREATED: return apply_scheduled(in, e);
    case EVENT_ACTIVITY_CANCELLED:
    case EVENT_TIMER_CANCELLED: return apply_cancelled(in, e);
    case EVENT_COMPLETED:
    case EVENT_FAILED:
    case EVENT_CANCELLED: in->ended = true; return THOLE_OK;
    default: return THOLE_OK;
    }
}

static thole_status apply_turn(struct instance *in)
{
    in->undelivered = false;
    in->cancel_delivered = in->cancel_received;
    for (size_t i = 0; i < in->expected_len; i++)
        THOLE_TRY(apply(in, &in->expected[i]));
    return THOLE_OK;
}

/* ---- one recorded turn ---- */

/* A turn that ran had refused what refers to nothing. What was recorded while the instance was blocked was
 * not checked against anything, so it may hold such a thing, and it changes nothing. */
static bool refers_to_nothing(const struct instance *in, const struct turn *turn, const struct event *e)
{
    return !turn->ran && e->ref != 0 && task_resolved_by(in, e) == NULL;
}

static thole_status receive_all(struct instance *in, const struct turn *turn, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const struct event *e = &turn->events[i];
        if (e->kind == EVENT_UNKNOWN || refers_to_nothing(in, turn, e))
            in->next_event++;
        else
            THOLE_TRY(instance_receive(in, e));
    }
    return THOLE_OK;
}

static thole_status replay_turn(struct instance *in, const struct turn *turn)
{
    size_t received = 0;
    THOLE_TRY(turn_check(in, turn));
    THOLE_TRY(events_check(in, turn, &received));
    instance_turn_begin(in, turn->time_ms, in->reterr);
    THOLE_TRY(receive_all(in, turn, received));
    if (!turn->ran)
        return THOLE_OK;
    in->expected = turn->events + received;
    in->expected_len = turn->events_len - received;
    if (in->options.code == NULL)
        return apply_turn(in);
    THOLE_TRY(instance_run(in));
    return nothing_left(in);
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
    instance->reterr = NULL;
    return status;
}
