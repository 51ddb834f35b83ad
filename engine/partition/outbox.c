/*
 * What committed turns say to other instances: children to start and to cancel, events, results for parents.
 * Each is a message to an inbox, sent after the rows of its build, repeated by the host until it is stored;
 * the watermark waits for it. Each record says how far that has come, so that a redo, be it of the whole log,
 * sends again what perhaps was not stored and no more. Receivers know those from what they have (by the
 * parent's event, by request id, by what is resolved).
 */
#include "machine.h"
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- committed turns ----------------------------------------------------------------------------- */

/* "<execution.event.instance": no client's begins so. */
static thole_slice request_id_of(struct partition *p, struct build *b, const struct turn *turn,
                                 const struct event *event)
{
    char text[REQUEST_ID_BYTES_MAX + 1];
    thole_slice copy = {0};
    int const n = snprintf(text, sizeof text, "<%llu.%llu.%.*s", (unsigned long long)turn->execution,
                           (unsigned long long)event->id, THOLE_FMT(turn->instance));
    assert(n > 0 && n < (int)sizeof text);
    if (arena_dup(&b->arena, (thole_slice){(const uint8_t *)text, (size_t)n}, &copy) != THOLE_OK)
        env_no_memory(&p->env);
    return copy;
}

static void enter(struct partition *p, struct build *b, const struct turn *turn,
                  const struct message *message)
{
    struct fold_send *send = build_send(b);
    if (send == NULL) {
        env_no_memory(&p->env);
        return;
    }
    send->message = *message;
    send->execution = turn->execution;
}

static struct message start_of(const struct event *event)
{
    return (struct message){.kind = MESSAGE_START,
                            .instance = event->target,
                            .orchestration = event->name,
                            .version = event->version,
                            .data = event->data};
}

static struct message result_for(const struct origin *parent, const struct turn *turn,
                                 const struct event *event)
{
    struct message message = {.kind = MESSAGE_CHILD_RESULT,
                              .instance = parent->instance,
                              .execution = parent->execution,
                              .task = parent->event,
                              .status = THOLE_CANCELLED,
                              .data = event->data,
                              .child = turn->instance};
    if (event->kind == EVENT_COMPLETED) {
        message.status = THOLE_OK;
    } else if (event->kind == EVENT_FAILED) {
        message.status = event->code;
        message.error_type = event->error_type;
    }
    return message;
}

/* --- results ---------------------------------------------------------------------------------- */

/* Whose child it is: the slot knows, or the build if it has seen it start; else the history must be asked. */
static void end_of_child(struct partition *p, struct build *b, const struct turn *turn,
                         const struct event *event, const struct slot *slot)
{
    struct origin parent = {0};
    bool known = slot != NULL;
    if (slot != NULL) {
        parent = slot->parent;
    } else {
        const struct fold_instance *row = build_instance(b, turn->instance, turn->execution, NULL);
        known = row != NULL && row->parent_known;
        parent = known ? row->parent : parent;
    }
    if ((known && parent.instance.len == 0) || (!known && redo_is_loner(p, turn->instance)))
        return;
    struct message message = result_for(&parent, turn, event);
    if (slot != NULL && arena_dup(&b->arena, parent.instance, &message.instance) != THOLE_OK)
        env_no_memory(&p->env); /* the slot may go before the message does */
    enter(p, b, turn, &message);
}

void outbox_fold(struct partition *p, struct build *b, const struct turn *turn, const struct event *event,
                 const struct slot *slot)
{
    struct message message;
    switch (event->kind) {
    case EVENT_CHILD_SCHEDULED:
        message = start_of(event);
        message.parent = (struct origin){turn->instance, turn->execution, event->id};
        break;
    case EVENT_DETACHED_STARTED:
        message = start_of(event);
        message.request_id = request_id_of(p, b, turn, event);
        break;
    case EVENT_CHILD_CANCELLED:
        message = (struct message){.kind = event->flag ? MESSAGE_TERMINATE : MESSAGE_CANCEL,
                                   .instance = event->target,
                                   .data = event->data,
                                   .request_id = request_id_of(p, b, turn, event)};
        if (message.instance.len == 0)
            return; /* its parent lets it go */
        break;
    case EVENT_EVENT_SENT:
        message = (struct message){.kind = MESSAGE_EVENT,
                                   .instance = event->target,
                                   .event_name = event->name,
                                   .event_data = event->data,
                                   .request_id = request_id_of(p, b, turn, event)};
        break;
    case EVENT_COMPLETED:
    case EVENT_FAILED:
    case EVENT_CANCELLED:
    case EVENT_TERMINATED: end_of_child(p, b, turn, event, slot); return;
    default: return;
    }
    enter(p, b, turn, &message);
}

/* --- sending ------------------------------------------------------------------------------------- */

static struct lane *lane_of(struct partition *p, const struct fold_send *send)
{
    return &p->projector.lanes[key_hash(send->message.instance, 0, 0) % OUTBOX_LANES];
}

static void emit_send(struct partition *p, thole_slice instance, thole_slice bytes, uint64_t token)
{
    struct partition_out *out = env_emit(&p->env, PARTITION_OUT_SEND);
    out->token = token;
    out->instance = env_copy(&p->env, instance);
    out->bytes = bytes;
}

static void go(struct partition *p, struct fold_send *send)
{
    buf_init(&send->bytes, MESSAGE_BYTES_MAX);
    if (message_encode(&send->message, &send->bytes) != THOLE_OK)
        env_no_memory(&p->env);
    else
        emit_send(p, send->message.instance, buf_bytes(&send->bytes), send->token);
}

/* What is meant for one instance goes in order, one at a time: a cancellation must not overtake the start,
 * nor one event another. */
static void line_up(struct partition *p, struct fold_send *send)
{
    struct lane *lane = lane_of(p, send);
    if (lane->last != NULL) {
        lane->last->next = send;
        lane->last = send;
        return;
    }
    lane->first = lane->last = send;
    go(p, send);
}

void outbox_post(struct partition *p, struct build *b)
{
    for (size_t i = 0; i < b->sends_len; i++) {
        struct fold_send *send = &b->sends[i];
        send->token = b->id << BUILD_TOKEN_BITS | i;
        b->publishes_left++;
        if (send->message.instance.len > 0) {
            line_up(p, send);
            continue;
        }
        struct partition_out *out = env_emit(&p->env, PARTITION_OUT_LOAD);
        out->token = OUTBOX_TOKEN | send->token;
        out->instance = env_copy(&p->env, send->message.child);
        out->execution = send->execution;
    }
}

static struct fold_send *find_send(struct partition *p, uint64_t token, struct build **ret_build)
{
    struct build *b = project_find(p, token);
    size_t const i = token & ((UINT64_C(1) << BUILD_TOKEN_BITS) - 1);
    if (b == NULL || i >= b->sends_len || b->sends[i].answered)
        return NULL;
    *ret_build = b;
    return &b->sends[i];
}

static void answered(struct partition *p, struct build *b, struct fold_send *send)
{
    send->answered = true;
    buf_release(&send->bytes);
    project_answered(p, b);
}

static void refusal_sent(struct partition *p, uint64_t token);

void outbox_sent(struct partition *p, const struct partition_in *in)
{
    struct build *b = NULL;
    if ((in->token & OUTBOX_TOKEN) != 0) {
        refusal_sent(p, in->token);
        return;
    }
    struct fold_send *send = find_send(p, in->token, &b);
    if (send == NULL)
        return;
    struct lane *lane = lane_of(p, send);
    if (lane->first != send)
        return; /* it has not been sent */
    lane->first = send->next;
    if (lane->first == NULL)
        lane->last = NULL;
    else
        go(p, lane->first);
    answered(p, b, send);
}

/* --- whose child it was -------------------------------------------------------------------------- */

/* False: the history cannot be relied on. */
static bool find_parent(struct partition *p, const struct partition_in *in, struct build *b,
                        uint64_t execution, struct origin *ret)
{
    struct arena arena;
    bool foreign = false;
    struct log_rule const rule = log_view(p->log);
    arena_init(&arena, SIZE_MAX / 2);
    for (size_t i = 0; i < in->records_len && ret->instance.len == 0 && !p->env.nomem && !foreign; i++) {
        struct record record;
        arena_release(&arena);
        thole_status const status = record_decode(in->records[i].bytes, &arena, &record, NULL);
        if (status == THOLE_NOMEM)
            env_no_memory(&p->env);
        foreign = log_rule_foreign(&rule, status == THOLE_OK ? &record : NULL, in->records[i].sequence);
        if (foreign || status != THOLE_OK || record.kind != RECORD_TURN ||
            log_rule_judge(&rule, &record, in->records[i].sequence) != LOG_COUNTS ||
            record.turn.events_len == 0 || record.turn.execution != execution ||
            record.turn.events[0].kind != EVENT_STARTED)
            continue;
        *ret = record.turn.events[0].parent;
        if (ret->instance.len == 0)
            break; /* nobody's */
        if (arena_dup(&b->arena, ret->instance, &ret->instance) != THOLE_OK)
            env_no_memory(&p->env);
    }
    arena_release(&arena);
    return !foreign;
}

void outbox_history(struct partition *p, const struct partition_in *in)
{
    struct build *b = NULL;
    struct origin parent = {0};
    struct fold_send *send = find_send(p, in->token & ~OUTBOX_TOKEN, &b);
    if (send == NULL || send->message.instance.len > 0)
        return;
    bool const sound = find_parent(p, in, b, send->execution, &parent);
    if (p->env.nomem)
        return;
    if (!sound) {
        partition_doubt(p, LOG_FOREIGN);
        return;
    }
    if (parent.instance.len == 0) {
        answered(p, b, send);
        return;
    }
    send->message.instance = parent.instance;
    send->message.execution = parent.execution;
    send->message.task = parent.event;
    line_up(p, send);
}

/* --- children that cannot be --------------------------------------------------------------------- */

/* No record says that the start was refused: it counts as incorporated when the parent's answer is stored. */
void outbox_refuse(struct partition *p, struct slot *slot, const struct pending *start)
{
    const struct message *m = &start->message;
    struct message const message = {.kind = MESSAGE_CHILD_RESULT,
                                    .instance = m->parent.instance,
                                    .execution = m->parent.execution,
                                    .task = m->parent.event,
                                    .status = THOLE_CONFLICT,
                                    .data = THOLE_STR("the instance id is in use"),
                                    .error_type = THOLE_STR("conflict"),
                                    .child = m->instance};
    struct refusal *refusal = calloc(1, sizeof *refusal);
    if (refusal == NULL) {
        env_no_memory(&p->env);
        return;
    }
    buf_init(&refusal->bytes, MESSAGE_BYTES_MAX);
    refusal->token = OUTBOX_TOKEN | ++p->next_refusal;
    refusal->inbox_sequence = start->inbox_sequence;
    refusal->slot = slot;
    slot->refusals++;
    refusal->next = p->refusals;
    p->refusals = refusal;
    if (message_encode(&message, &refusal->bytes) != THOLE_OK)
        env_no_memory(&p->env);
    else
        emit_send(p, message.instance, buf_bytes(&refusal->bytes), refusal->token);
}

static void refusal_sent(struct partition *p, uint64_t token)
{
    struct refusal **at = &p->refusals;
    while (*at != NULL && (*at)->token != token)
        at = &(*at)->next;
    struct refusal *refusal = *at;
    if (refusal == NULL)
        return;
    *at = refusal->next;
    intake_incorporate(p, refusal->inbox_sequence);
    struct slot *slot = refusal->slot;
    if (--slot->refusals == 0 && intake_waits(slot)) /* a deletion */
        slots_ready(&p->slots, slot);
    buf_release(&refusal->bytes);
    free(refusal);
}

void outbox_release(struct partition *p)
{
    for (struct refusal *next; p->refusals != NULL; p->refusals = next) {
        next = p->refusals->next;
        buf_release(&p->refusals->bytes);
        free(p->refusals);
    }
}
