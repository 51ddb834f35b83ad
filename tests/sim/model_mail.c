/* Messages between instances: none lost, none that nobody sent, each with its effect once. */
#include "checks.h"
#include "orchestrations.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- letters of committed turns ---- */

/* Of the record that is being read. */
static uint64_t sequence_of(const struct world *w, size_t sender)
{
    return w->model->partitions[instance_partition(w, sender)].sequence;
}

static void expect(struct world *w, enum message_kind kind, size_t sender, uint64_t execution, uint64_t event,
                   thole_slice target)
{
    struct model *model = w->model;
    model->letters =
        grown(w, model->letters, model->letters_len, &model->letters_cap, sizeof *model->letters);
    model->letters[model->letters_len++] = (struct model_letter){.kind = kind,
                                                                 .sender = sender,
                                                                 .target = instance_add(w, target),
                                                                 .execution = execution,
                                                                 .event = event,
                                                                 .sequence = sequence_of(w, sender),
                                                                 .parent = model_of(w, sender)->parent};
}

static enum message_kind kind_of(const struct event *event)
{
    switch (event->kind) {
    case EVENT_EVENT_SENT: return MESSAGE_EVENT;
    case EVENT_CHILD_CANCELLED: return event->flag ? MESSAGE_TERMINATE : MESSAGE_CANCEL;
    default: return MESSAGE_START;
    }
}

void model_expect_letter(struct world *w, size_t sender, uint64_t execution, const struct event *event)
{
    expect(w, kind_of(event), sender, execution, event->id, event->target);
}

void model_expect_result(struct world *w, size_t sender, uint64_t execution, const struct event *end)
{
    const struct model_instance *m = model_of(w, sender);
    if (m->parent.instance.len > 0)
        expect(w, MESSAGE_CHILD_RESULT, sender, execution, end->id, m->parent.instance);
}

static thole_slice request_id(struct world *w, const struct model_letter *letter, char text[320])
{
    int const n = snprintf(text, 320, "<%" PRIu64 ".%" PRIu64 ".%.*s", letter->execution, letter->event,
                           THOLE_FMT(w->instances[letter->sender]));
    return (thole_slice){(const uint8_t *)text, (size_t)n};
}

static bool is_letter(struct world *w, const struct model_letter *letter, const struct message *message)
{
    char text[320];
    if (message->kind != letter->kind)
        return false;
    if (letter->kind == MESSAGE_CHILD_RESULT) {
        const struct origin *parent = &letter->parent;
        return message->execution == parent->execution && message->task == parent->event &&
               thole_slice_equal(message->child, w->instances[letter->sender]);
    }
    struct origin const origin = {w->instances[letter->sender], letter->execution, letter->event};
    if (letter->kind == MESSAGE_START && message->parent.instance.len > 0)
        return model_same_origin(&message->parent, &origin);
    return thole_slice_equal(message->request_id, request_id(w, letter, text));
}

static bool is_among(struct world *w, const struct model_letter *letter, const struct inbox_entry *entries,
                     size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (entries[i].valid && entries[i].instance == letter->target &&
            is_letter(w, letter, &entries[i].message))
            return true;
    return false;
}

/* Whether the letter was stored; it may have been lost since, once it was incorporated. */
static bool in_inbox(struct world *w, const struct model_letter *letter)
{
    const struct inbox_stream *inbox = w->inboxes[instance_partition(w, letter->target)];
    return is_among(w, letter, inbox->entries, inbox->len) ||
           is_among(w, letter, inbox->lost, inbox->lost_len);
}

void model_check_sent(struct world *w, size_t instance, uint64_t below)
{
    for (size_t i = 0; i < w->model->letters_len; i++) {
        const struct model_letter *letter = &w->model->letters[i];
        if (letter->sender == instance && letter->sequence < below && !model_of(w, instance)->damaged &&
            !in_inbox(w, letter))
            broken(w, "%.*s loses records, and has not sent all that they say",
                   THOLE_FMT(w->instances[instance]));
    }
}

void model_published(struct world *w, uint32_t partition, uint64_t published)
{
    struct model_partition *part = &w->model->partitions[partition];
    if (published < part->published || published > part->sequence)
        broken(w, "partition %u: a record says that what follows from %" PRIu64 " is done, after %" PRIu64,
               partition, published, part->published);
    for (size_t i = 0; i < w->model->letters_len; i++) {
        const struct model_letter *letter = &w->model->letters[i];
        if (letter->sequence > part->published && letter->sequence <= published &&
            instance_partition(w, letter->sender) == partition && !model_of(w, letter->sender)->damaged &&
            !in_inbox(w, letter))
            broken(w, "partition %u: a record says that a message of %.*s is stored, which is not", partition,
                   THOLE_FMT(w->instances[letter->sender]));
    }
    model_published_events(w, partition, published);
    part->published = published;
    if (w->deletes)
        model_published_deletions(w, partition, published);
}

bool checks_mail(struct world *w, char *why, size_t size)
{
    for (size_t i = 0; i < w->model->letters_len; i++) {
        const struct model_letter *letter = &w->model->letters[i];
        if (model_of(w, letter->sender)->damaged || in_inbox(w, letter))
            continue;
        snprintf(why, size,
                 "%.*s/%" PRIu64 "#%" PRIu64 " has sent a message of kind %d to %.*s, which is lost",
                 THOLE_FMT(w->instances[letter->sender]), letter->execution, letter->event, (int)letter->kind,
                 THOLE_FMT(w->instances[letter->target]));
        return false;
    }
    return true;
}

/* ---- sent letters ---- */

static bool is_refusal(struct world *w, const struct message *m)
{
    size_t const child = instance_index(w, m->child);
    struct origin const asked = {m->instance, m->execution, m->task};
    bool in_the_way = false;
    for (size_t i = 0; child != SIZE_MAX && i < model_of(w, child)->executions_len; i++)
        in_the_way |= !model_same_origin(&model_of(w, child)->executions[i].parent, &asked);
    return m->status == THOLE_CONFLICT && thole_slice_equal(m->error_type, THOLE_STR("conflict")) &&
           in_the_way;
}

static bool is_end(const struct model_execution *x, const struct message *m)
{
    if (!x->ended || !thole_slice_equal(m->data, x->end_data))
        return false;
    switch (x->terminal) {
    case EVENT_COMPLETED: return m->status == THOLE_OK;
    case EVENT_FAILED: return m->status == x->end_code && thole_slice_equal(m->error_type, x->end_type);
    case EVENT_CANCELLED:
    case EVENT_TERMINATED: return m->status == THOLE_CANCELLED;
    default: return false;
    }
}

/* Of any life of the child. */
static bool is_result(struct world *w, const struct message *m)
{
    size_t const child = instance_index(w, m->child);
    struct origin const asked = {m->instance, m->execution, m->task};
    for (size_t i = 0; child != SIZE_MAX && i < model_of(w, child)->executions_len; i++) {
        const struct model_execution *x = &model_of(w, child)->executions[i];
        if (model_same_origin(&x->parent, &asked) && is_end(x, m))
            return true;
    }
    return false;
}

static bool sent_by(struct world *w, const struct message *m, const struct origin *origin,
                    enum event_kind kind)
{
    size_t const sender = instance_index(w, origin->instance);
    const struct model_event *e =
        sender == SIZE_MAX ? NULL : model_find(w, sender, origin->execution, origin->event);
    return e != NULL && e->kind == kind && thole_slice_equal(e->target, m->instance);
}

/* Whether the message names the child that it is for. */
static bool is_for_child(struct world *w, const struct message *m, const struct origin *origin)
{
    size_t const sender = instance_index(w, origin->instance);
    const struct model_event *e =
        sender == SIZE_MAX ? NULL : model_find(w, sender, origin->execution, origin->event);
    struct origin const child = {origin->instance, origin->execution, e == NULL ? 0 : e->ref};
    return sent_by(w, m, origin, EVENT_CHILD_CANCELLED) && model_same_origin(&m->parent, &child);
}

/* "<execution.event.instance" */
static struct origin parse(thole_slice id)
{
    struct origin origin = {0};
    uint64_t numbers[2] = {0, 0};
    size_t at = 1;
    for (int i = 0; i < 2; i++, at++)
        for (; at < id.len && id.ptr[at] != '.'; at++)
            numbers[i] = numbers[i] * 10 + (uint64_t)(id.ptr[at] - '0');
    if (at < id.len)
        origin = (struct origin){{id.ptr + at, id.len - at}, numbers[0], numbers[1]};
    return origin;
}

static bool is_committed(struct world *w, const struct message *m)
{
    struct origin const origin = parse(m->request_id);
    if (model_damaged(w, origin.instance) || model_damaged(w, m->parent.instance) ||
        model_damaged(w, m->child))
        return true;
    switch (m->kind) {
    case MESSAGE_START:
        if (m->parent.instance.len > 0)
            return sent_by(w, m, &m->parent, EVENT_CHILD_SCHEDULED);
        return sent_by(w, m, &origin, EVENT_DETACHED_STARTED);
    case MESSAGE_EVENT: return sent_by(w, m, &origin, EVENT_EVENT_SENT);
    case MESSAGE_CANCEL:
    case MESSAGE_TERMINATE: return is_for_child(w, m, &origin);
    case MESSAGE_CHILD_RESULT: return is_refusal(w, m) || is_result(w, m);
    case MESSAGE_ACTIVITY_RESULT:
    case MESSAGE_PAUSE:
    case MESSAGE_RESUME:
    case MESSAGE_PRUNE:
    case MESSAGE_RELEASE:
    case MESSAGE_RETRY:
    case MESSAGE_DELETE: break;
    }
    return false;
}

bool checks_sent_before(struct world *w, thole_slice bytes)
{
    size_t times = 0;
    for (size_t i = 0; i < w->model->sent_len; i++)
        times += thole_slice_equal(w->model->sent[i], bytes);
    return times > 1;
}

/* Of deleted instances only the last is remembered: a start that comes once more after two deletions is taken
 * in again, and its result is sent again. */
static bool came_again(const struct world *w, const struct model_letter *letter)
{
    const struct model_instance *sender = model_of(w, letter->sender);
    for (size_t i = (size_t)letter->execution; i < sender->executions_len; i++)
        if (letter->kind == MESSAGE_CHILD_RESULT &&
            model_same_origin(&sender->executions[i].parent, &letter->parent))
            return true;
    return false;
}

/* The database may have forgotten what was done, the log has not. */
static void check_not_again(struct world *w, uint32_t partition, uint64_t epoch,
                            const struct message *message, const char *who)
{
    if (is_refusal(w, message) || model_damaged(w, message->child))
        return; /* whoever asks again is refused again */
    const struct model_partition *part = &w->model->partitions[partition];
    uint64_t const published = epoch < part->epochs_len ? part->epochs[epoch].published : 0;
    for (size_t i = 0; i < w->model->letters_len; i++) {
        const struct model_letter *letter = &w->model->letters[i];
        if (letter->sequence <= published && instance_partition(w, letter->sender) == partition &&
            !came_again(w, letter) && thole_slice_equal(w->instances[letter->target], message->instance) &&
            is_letter(w, letter, message))
            broken(w, "%s sends again what the log says is stored: %.*s/%" PRIu64 "#%" PRIu64, who,
                   THOLE_FMT(w->instances[letter->sender]), letter->execution, letter->event);
    }
}

void checks_send(struct world *w, uint32_t partition, uint64_t epoch, const struct out_send *out,
                 const char *who)
{
    struct message message;
    thole_error err = {0};
    w->stats.sends++;
    if (w->mutation == MUTATION_SEND_ONCE) {
        w->model->sent =
            grown(w, w->model->sent, w->model->sent_len, &w->model->sent_cap, sizeof *w->model->sent);
        w->model->sent[w->model->sent_len++] = keep_slice(w, out->bytes);
    }
    if (message_decode(out->bytes, &w->memory, &message, &err) != THOLE_OK)
        broken(w, "%s sends what nobody understands: %s", who, err.text);
    else if (!thole_slice_equal(message.instance, out->instance))
        broken(w, "%s sends a message for %.*s to %.*s", who, THOLE_FMT(message.instance),
               THOLE_FMT(out->instance));
    else if (!is_committed(w, &message))
        broken(w, "%s sends %.*s a message of kind %d, which is not committed", who,
               THOLE_FMT(message.instance), (int)message.kind);
    else
        check_not_again(w, partition, epoch, &message, who);
}

/* ---- effects of letters ---- */

void model_check_child(struct world *w, size_t parent, uint64_t execution, const struct event *event)
{
    const struct model_event *scheduled = model_find(w, parent, execution, event->ref);
    struct message const result = {.kind = MESSAGE_CHILD_RESULT,
                                   .instance = w->instances[parent],
                                   .execution = execution,
                                   .task = event->ref,
                                   .status = event->code,
                                   .data = event->data,
                                   .error_type = event->error_type,
                                   .child = scheduled->target};
    w->stats.conflicts += event->code == THOLE_CONFLICT;
    if (!is_committed(w, &result))
        broken(w, "%.*s/%" PRIu64 "#%" PRIu64 ": child %.*s did not end so", THOLE_FMT(w->instances[parent]),
               execution, event->id, THOLE_FMT(scheduled->target));
}

static bool has_refusal(const struct inbox_entry *entries, size_t len, size_t parent,
                        const struct message *start)
{
    for (size_t i = 0; i < len; i++) {
        const struct message *answer = &entries[i].message;
        if (entries[i].valid && entries[i].instance == parent && answer->kind == MESSAGE_CHILD_RESULT &&
            answer->status == THOLE_CONFLICT && answer->execution == start->parent.execution &&
            answer->task == start->parent.event)
            return true;
    }
    return false;
}

bool model_was_refused(struct world *w, const struct message *start)
{
    size_t const parent = instance_index(w, start->parent.instance);
    if (parent == SIZE_MAX)
        return false;
    const struct inbox_stream *inbox = w->inboxes[instance_partition(w, parent)];
    return has_refusal(inbox->entries, inbox->len, parent, start) ||
           has_refusal(inbox->lost, inbox->lost_len, parent, start);
}

/* A start that another instance is in the way of counts as incorporated only after the parent's answer. */
void model_check_refused(struct world *w, const struct message *start)
{
    struct model_instance *m = model_of(w, instance_index(w, start->instance));
    if (m->damaged || model_current(m) == NULL || model_same_origin(&m->parent, &start->parent) ||
        model_was_refused(w, start))
        return;
    broken(w, "%.*s#%" PRIu64 " was refused its child %.*s and never heard of it",
           THOLE_FMT(start->parent.instance), start->parent.event, THOLE_FMT(start->instance));
}

/* ---- items: "sender/execution/number" ---- */

static bool split(thole_slice item, thole_slice *ret_sender, uint64_t *ret_number)
{
    size_t at = item.len;
    while (at > 0 && item.ptr[at - 1] != '/')
        at--;
    *ret_sender = (thole_slice){item.ptr, at};
    *ret_number = 0;
    for (size_t i = at; i < item.len; i++)
        *ret_number = *ret_number * 10 + (uint64_t)(item.ptr[i] - '0');
    return at > 0;
}

/* Of a damaged record nobody can send again what was not stored; later ones go on, and a message of it that
 * is still under way comes after theirs. @p sender: "instance/execution/". */
static bool sender_is_damaged(const struct world *w, thole_slice sender)
{
    for (int slashes = 0; sender.len > 0 && slashes < 2; sender.len--)
        slashes += sender.ptr[sender.len - 1] == '/';
    return model_damaged(w, sender);
}

void model_check_items(struct world *w, size_t instance, thole_slice item)
{
    struct model_instance *m = model_of(w, instance);
    thole_slice sender, other;
    uint64_t number, before;
    /* items that an earlier incarnation had no use for may be sent again to the next one */
    bool ordered = split(item, &sender, &number) && m->deletions == 0 && !sender_is_damaged(w, sender);
    for (size_t i = 0; i < m->given_up_len; i++)
        ordered = ordered && !thole_slice_equal(m->given_up[i], item);
    for (size_t i = 0; i < m->items_len; i++) {
        if (thole_slice_equal(m->items[i], item))
            broken(w, "%.*s gets the item %.*s twice", THOLE_FMT(w->instances[instance]), THOLE_FMT(item));
        if (ordered && split(m->items[i], &other, &before) && thole_slice_equal(sender, other) &&
            before > number)
            broken(w, "%.*s gets the item %.*s after %.*s", THOLE_FMT(w->instances[instance]),
                   THOLE_FMT(item), THOLE_FMT(m->items[i]));
    }
    m->items = grown(w, m->items, m->items_len, &m->items_cap, sizeof *m->items);
    m->items[m->items_len++] = item;
}

void model_check_output(struct world *w, size_t instance, const struct event *end)
{
    const struct model_instance *m = model_of(w, instance);
    thole_slice rest = end->data;
    if (end->kind != EVENT_COMPLETED || !thole_slice_equal(m->orchestration, THOLE_STR("collector")))
        return;
    for (size_t i = 0; i < m->items_len && rest.len > 0; i++) {
        size_t const len = m->items[i].len + strlen(ITEM_END);
        if (rest.len < len || memcmp(rest.ptr, m->items[i].ptr, m->items[i].len) != 0)
            break;
        rest = (thole_slice){rest.ptr + len, rest.len - len};
    }
    if (rest.len > 0)
        broken(w, "%.*s gives back %.*s, which is not what came", THOLE_FMT(w->instances[instance]),
               THOLE_FMT(end->data));
}
