/*
 * Messages of committed turns to other instances: starts and cancellations of children, events, results for
 * parents. Each goes to an inbox after the rows of its batch are committed, and the host repeats it until it
 * is stored; the watermark waits for it. Each record says up to which record all messages are stored, so that
 * a redo, even of the whole log, repeats only those that may not be stored. Receivers drop repeated ones (by
 * the parent's event, by request id, by what is resolved).
 */
#include "projection_state.h"
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- committed turns ----------------------------------------------------------------------------- */

/* "<execution.event.instance": a client's request id never begins with '<'. */
static thole_slice request_id_of(struct projection *p, struct projection_batch *b, const struct turn *turn,
                                 const struct event *event)
{
    char text[REQUEST_ID_BYTES_MAX + 1];
    thole_slice copy = {0};
    int const n = snprintf(text, sizeof text, "<%llu.%llu.%.*s", (unsigned long long)turn->execution,
                           (unsigned long long)event->id, THOLE_FMT(turn->instance));
    assert(n > 0 && n < (int)sizeof text);
    if (arena_dup(&b->arena, (thole_slice){(const uint8_t *)text, (size_t)n}, &copy) != THOLE_OK)
        env_no_memory(p->env);
    return copy;
}

static void outbox_enter(struct projection_batch *b, const struct turn *turn, const struct message *message)
{
    struct projected_send *send = projection_batch_send(b);
    send->message = *message;
    message_into_range(&send->message); /* an older history may say what no reader takes */
    send->execution = turn->execution;
}

static struct message start_of(const struct turn *turn, const struct event *event)
{
    return (struct message){.kind = MESSAGE_START,
                            .instance = event->target,
                            .orchestration = event->name,
                            .version = event->version,
                            .data = event->data,
                            .trace = turn->trace};
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

/* Finds the child's parent: in the facts, or in the batch if the start is in it; else the history must be
 * read.
 */
static void end_of_child(struct projection *p, struct projection_batch *b, const struct turn *turn,
                         const struct event *event, const struct projection_facts *facts)
{
    struct origin parent = {0};
    bool known = facts != NULL;
    if (facts != NULL) {
        parent = facts->parent;
    } else {
        const struct projected_instance *row =
            projection_batch_instance(b, turn->instance, turn->execution, NULL);
        known = row->parent_known;
        parent = known ? row->parent : parent;
    }
    if ((known && parent.instance.len == 0) || (!known && redo_is_root(p, turn->instance)))
        return;
    struct message message = result_for(&parent, turn, event);
    if (facts != NULL && arena_dup(&b->arena, parent.instance, &message.instance) != THOLE_OK)
        env_no_memory(p->env); /* the batch may be freed before the message is sent */
    outbox_enter(b, turn, &message);
}

void outbox_add(struct projection *p, struct projection_batch *b, const struct turn *turn,
                const struct event *event, const struct projection_facts *facts)
{
    struct message message;
    switch (event->kind) {
    case EVENT_CHILD_SCHEDULED:
        message = start_of(turn, event);
        message.parent = (struct origin){turn->instance, turn->execution, event->id};
        break;
    case EVENT_DETACHED_STARTED:
        message = start_of(turn, event);
        message.request_id = request_id_of(p, b, turn, event);
        break;
    case EVENT_CHILD_CANCELLED:
        message = (struct message){.kind = event->flag ? MESSAGE_TERMINATE : MESSAGE_CANCEL,
                                   .instance = event->target,
                                   .data = event->data,
                                   .request_id = request_id_of(p, b, turn, event),
                                   .parent = {turn->instance, turn->execution, event->ref}};
        if (message.instance.len == 0)
            return; /* the parent does not wait for it any more */
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
    case EVENT_TERMINATED: end_of_child(p, b, turn, event, facts); return;
    default: return;
    }
    outbox_enter(b, turn, &message);
}

/* --- sending ------------------------------------------------------------------------------------- */

static struct receiver_queue *queue_of(struct projection *p, const struct projected_send *send)
{
    return &p->projector.receiver_queues[key_hash(send->message.instance, 0, 0) % OUTBOX_QUEUES];
}

static void outbox_go(struct projection *p, struct projected_send *send)
{
    assert(queue_of(p, send)->first == send && send->bytes.len == 0);
    buf_init(&send->bytes, MESSAGE_BYTES_MAX);
    if (message_encode(&send->message, &send->bytes) != THOLE_OK)
        env_no_memory(p->env);
    else
        env_send(p->env, &send->message, buf_bytes(&send->bytes), send->token);
}

/* Messages to one instance go in order, one at a time: a cancellation must not overtake the start, nor one
 * event another. */
static void outbox_enqueue(struct projection *p, struct projected_send *send)
{
    struct receiver_queue *queue = queue_of(p, send);
    assert(send->next == NULL && !send->answered && (queue->first == NULL) == (queue->last == NULL));
    if (queue->last != NULL) {
        queue->last->next = send;
        queue->last = send;
        return;
    }
    queue->first = queue->last = send;
    outbox_go(p, send);
}

void outbox_post(struct projection *p, struct projection_batch *b)
{
    assert(b->state == BATCH_PUBLISHING && b->sends_len < UINT64_C(1) << BATCH_TOKEN_BITS);
    for (size_t i = 0; i < b->sends_len; i++) {
        struct projected_send *send = &b->sends[i];
        send->token = b->id << BATCH_TOKEN_BITS | i;
        b->publishes_left++;
        if (send->message.instance.len > 0) {
            outbox_enqueue(p, send);
            continue;
        }
        struct partition_out *out = env_emit(p->env, PARTITION_OUT_LOAD);
        out->token = PROJECTION_TOKEN | send->token;
        out->load = (struct out_load){env_copy(p->env, send->message.child), send->execution};
    }
}

static struct projected_send *find_send(struct projection *p, uint64_t token,
                                        struct projection_batch **ret_batch)
{
    struct projection_batch *b = project_find(p, token);
    size_t const i = token & ((UINT64_C(1) << BATCH_TOKEN_BITS) - 1);
    if (b == NULL || i >= b->sends_len || b->sends[i].answered)
        return NULL;
    *ret_batch = b;
    return &b->sends[i];
}

static struct projection_batch *outbox_answered(struct projection_batch *b, struct projected_send *send)
{
    assert(!send->answered);
    send->answered = true;
    buf_release(&send->bytes);
    return b;
}

struct projection_batch *outbox_sent(struct projection *p, uint64_t token)
{
    struct projection_batch *b = NULL;
    struct projected_send *send = find_send(p, token, &b);
    if (send == NULL)
        return NULL;
    struct receiver_queue *queue = queue_of(p, send);
    if (queue->first != send)
        return NULL; /* not sent yet */
    queue->first = send->next;
    if (queue->first == NULL)
        queue->last = NULL;
    else
        outbox_go(p, queue->first);
    return outbox_answered(b, send);
}

/* --- looking up the parent -------------------------------------------------------------------------- */

/* False: the history cannot be relied on. */
static bool find_parent(struct projection *p, const struct in_history *in, const struct log_rule *log,
                        struct projection_batch *b, uint64_t execution, struct origin *ret)
{
    struct arena arena;
    bool foreign = false;
    arena_init(&arena, SIZE_MAX / 2);
    for (size_t i = 0; i < in->records_len && ret->instance.len == 0 && !p->env->nomem && !foreign; i++) {
        struct record record;
        arena_release(&arena);
        thole_status const status = record_decode(in->records[i].bytes, &arena, &record, NULL);
        if (status == THOLE_NOMEM)
            env_no_memory(p->env);
        foreign = log_rule_foreign(log, status == THOLE_OK ? &record : NULL, in->records[i].sequence);
        if (foreign || status != THOLE_OK || record.kind != RECORD_TURN ||
            log_rule_judge(log, &record, in->records[i].sequence) != LOG_COUNTS ||
            record.turn.events_len == 0 || record.turn.execution != execution ||
            record.turn.events[0].kind != EVENT_STARTED)
            continue;
        *ret = record.turn.events[0].parent;
        if (ret->instance.len == 0)
            break; /* a root instance */
        if (arena_dup(&b->arena, ret->instance, &ret->instance) != THOLE_OK)
            env_no_memory(p->env);
    }
    arena_release(&arena);
    return !foreign;
}

struct projection_batch *outbox_history(struct projection *p, uint64_t token, const struct in_history *in,
                                        const struct log_rule *log)
{
    struct projection_batch *b = NULL;
    struct origin parent = {0};
    struct projected_send *send = find_send(p, token & ~PROJECTION_TOKEN, &b);
    if (send == NULL || send->message.instance.len > 0)
        return NULL;
    bool const sound = find_parent(p, in, log, b, send->execution, &parent);
    if (p->env->nomem)
        return NULL;
    if (!sound) {
        p->step_down = LOG_FOREIGN;
        return NULL;
    }
    if (parent.instance.len == 0)
        return outbox_answered(b, send);
    send->message.instance = parent.instance;
    send->message.execution = parent.execution;
    send->message.task = parent.event;
    outbox_enqueue(p, send);
    return NULL;
}
