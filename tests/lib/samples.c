#include "samples.h"

#define S(literal)                                                                                           \
    {                                                                                                        \
        (const uint8_t *)("" literal), sizeof(literal) - 1                                                   \
    }

static const thole_slice final_types[] = {S("card_declined"), S(""), S("any bytes \xff\x00")};
static const struct retry retry = {.try_timeout_ms = 1001,
                                   .total_timeout_ms = UINT64_MAX,
                                   .tries_max = 10000,
                                   .first_delay_ms = 1003,
                                   .max_delay_ms = 1004,
                                   .factor_milli = 2500,
                                   .jitter_milli = 100,
                                   .final_types = final_types,
                                   .final_types_len = 3};
static const struct retry try_timeout = {.try_timeout_ms = 1001};

const struct event sample_events[] = {
    {.kind = EVENT_STARTED,
     .id = 1,
     .name = S("checkout"),
     .data = S("in\0put"),
     .code = 1,
     .request_id = S("r-1"),
     .version = 3,
     .parent = {S("shop/\xe2\x82\xac"), 4, 5}},
    {.kind = EVENT_ACTIVITY_SCHEDULED,
     .id = 2,
     .name = S("charge"),
     .data = S("card"),
     .queue = S("default"),
     .retry = &retry},
    {.kind = EVENT_ACTIVITY_COMPLETED, .id = 3, .ref = 2, .try_number = 2, .timed = true, .data = S("ok")},
    {.kind = EVENT_ACTIVITY_FAILED,
     .id = 4,
     .ref = 2,
     .try_number = 3,
     .timed = true,
     .code = THOLE_APP,
     .error_type = S("card_declined"),
     .data = S("declined")},
    {.kind = EVENT_ACTIVITY_CANCELLED,
     .id = 5,
     .ref = 2,
     .timed = true,
     .code = CANCEL_SELECT_LOSER,
     .data = S("select_loser")},
    {.kind = EVENT_TIMER_CREATED, .id = 6, .due_ms = UINT64_MAX},
    {.kind = EVENT_TIMER_FIRED, .id = 7, .ref = 6},
    {.kind = EVENT_TIMER_CANCELLED, .id = 8, .ref = 6, .code = CANCEL_ENDED, .data = S("ended")},
    {.kind = EVENT_CANCEL_REQUESTED, .id = 9, .data = S("why"), .request_id = S("r-2")},
    {.kind = EVENT_COMPLETED, .id = 10, .data = S("out")},
    {.kind = EVENT_FAILED, .id = 11, .code = THOLE_TIMEOUT, .error_type = S("timeout"), .data = S("text")},
    {.kind = EVENT_CANCELLED, .id = 12, .data = S("why")},
    {.kind = EVENT_ACTIVITY_TRY_FAILED,
     .id = 13,
     .ref = 2,
     .try_number = 1,
     .code = THOLE_APP,
     .error_type = S("a.b_c-D9"),
     .data = S("text"),
     .due_ms = 5000,
     .details = S("half \x80")},
    {.kind = EVENT_ACTIVITY_TRY_STARTED,
     .id = 14,
     .ref = 2,
     .try_number = 2,
     .name = S("charge"),
     .queue = S("default"),
     .data = S("card"),
     .retry = &try_timeout,
     .due_ms = 9000,
     .details = S("half")},
    {.kind = EVENT_EVENT_RECEIVED,
     .id = 15,
     .name = S("approved"),
     .data = S("yes"),
     .request_id = S("<1.2.shop")},
    {.kind = EVENT_EVENT_AWAITED, .id = 16, .name = S("approved")},
    {.kind = EVENT_EVENT_AWAIT_CANCELLED, .id = 17, .ref = 16, .code = CANCEL_EXPLICIT, .data = S("late")},
    {.kind = EVENT_CHILD_SCHEDULED,
     .id = 18,
     .name = S("ship"),
     .data = S("in"),
     .target = S("shop:1:18"),
     .version = 2,
     .code = CLOSE_TERMINATE},
    {.kind = EVENT_CHILD_COMPLETED, .id = 19, .ref = 18, .data = S("out")},
    {.kind = EVENT_CHILD_FAILED,
     .id = 20,
     .ref = 18,
     .code = THOLE_CONFLICT,
     .error_type = S("conflict"),
     .data = S("in use")},
    {.kind = EVENT_CHILD_CANCELLED,
     .id = 21,
     .ref = 18,
     .code = CANCEL_TERMINATED,
     .data = S("why"),
     .target = S("shop:1:18"),
     .flag = true},
    {.kind = EVENT_DETACHED_STARTED,
     .id = 22,
     .name = S("audit"),
     .data = S("in"),
     .target = S("audit/7"),
     .version = 7},
    {.kind = EVENT_EVENT_SENT, .id = 23, .name = S("ready"), .data = S("now"), .target = S("shop")},
    {.kind = EVENT_SIDE_EFFECT_RECORDED, .id = 24, .data = S("\x01\x02")},
    {.kind = EVENT_CUSTOM_STATUS_SET, .id = 25, .data = S("packing")},
    {.kind = EVENT_STATE_SET, .id = 26, .name = S("key \xff"), .data = S("value"), .flag = true},
    {.kind = EVENT_PATCHED, .id = 27, .name = S("faster-tax")},
    {.kind = EVENT_CONTINUED_AS_NEW, .id = 28, .data = S("next"), .version = 4},
    {.kind = EVENT_TERMINATE_REQUESTED, .id = 29, .data = S("why"), .request_id = S("r-3")},
    {.kind = EVENT_TERMINATED, .id = 30, .data = S("why")},
    {.kind = EVENT_PAUSED, .id = 31, .data = S("why"), .request_id = S("r-4")},
    {.kind = EVENT_RESUMED, .id = 32, .data = S("why"), .request_id = S("r-5")},
    {.kind = EVENT_STATE_CARRIED, .id = 33, .name = S("key"), .data = S("value")},
    {.kind = EVENT_ORIGINS_CARRIED, .id = 34, .data = S("01234567abcdefgh")},
    {.kind = EVENT_VERSION_CHOSEN, .id = 35, .version = UINT32_MAX},
    {.kind = EVENT_DISCARDED, .id = 36, .data = S("too old")},
    {.kind = EVENT_ACTIVITY_QUARANTINED,
     .id = 37,
     .ref = 2,
     .try_number = 2,
     .name = S("charge"),
     .queue = S("default"),
     .input = S("card"),
     .data = S("5 workers that ran it were lost"),
     .worker = S("w-1"),
     .lost = 5,
     .due_ms = 9000,
     .details = S("half")},
    {.kind = EVENT_HISTORY_PRUNED,
     .id = 38,
     .kept = 1,
     .before = UINT64_MAX,
     .data = S("why"),
     .request_id = S("r-7")},
    {.kind = EVENT_EVENT_EMITTED, .id = 39, .name = S("com.example.order.shipped"), .data = S("parcel")},
};
const size_t sample_events_len = sizeof sample_events / sizeof sample_events[0];

static const struct event_source sample_actor = {
    .actor = {.name = S("jos\xc3\xa9"),
              .client = S("thole 1.0.0"),
              .trace = {S("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"), S("rojo=1")},
              .authenticated = true}};
static const struct event_source sample_place = {
    .place = {.worker = S("w-1"), .host = S("host-1"), .attempt = 3, .started_ms = 1000, .ended_ms = 1020}};
const struct event sample_events_said[2] = {
    {.kind = EVENT_CANCEL_REQUESTED,
     .id = 1,
     .data = S("why"),
     .request_id = S("r-8"),
     .source = &sample_actor},
    {.kind = EVENT_ACTIVITY_COMPLETED,
     .id = 2,
     .ref = 2,
     .try_number = 1,
     .data = S("done"),
     .source = &sample_place},
};

const struct message sample_messages[] = {
    {.kind = MESSAGE_START,
     .instance = S("order-1"),
     .orchestration = S("checkout"),
     .data = S("in\0put"),
     .request_id = S("r-1"),
     .version = 3,
     .parent = {S("shop/\xe2\x82\xac"), 4, 5},
     .event_name = S("approved"),
     .event_data = S("yes")},
    {.kind = MESSAGE_ACTIVITY_RESULT,
     .instance = S("\xe2\x82\xac"),
     .execution = 2,
     .task = UINT64_MAX,
     .status = THOLE_APP,
     .data = S("declined"),
     .source.place = {.attempt = 3, .worker = S("w-1")},
     .try_number = 2,
     .error_type = S("card_declined"),
     .final = true,
     .details = S("half \x80")},
    {.kind = MESSAGE_CANCEL, .instance = S("order-1"), .data = S("why"), .request_id = S("r-2")},
    {.kind = MESSAGE_EVENT,
     .instance = S("order-1"),
     .event_name = S("approved"),
     .event_data = S("yes"),
     .request_id = S("<1.2.shop")},
    {.kind = MESSAGE_CHILD_RESULT,
     .instance = S("shop"),
     .execution = 1,
     .task = 18,
     .status = THOLE_CONFLICT,
     .data = S("in use"),
     .error_type = S("conflict"),
     .child = S("shop:1:18")},
    {.kind = MESSAGE_TERMINATE, .instance = S("order-1"), .data = S("why"), .request_id = S("r-3")},
    {.kind = MESSAGE_PAUSE, .instance = S("order-1"), .data = S("why"), .request_id = S("r-4")},
    {.kind = MESSAGE_RESUME, .instance = S("order-1"), .data = S("why"), .request_id = S("r-5")},
    {.kind = MESSAGE_DELETE,
     .instance = S("order-1"),
     .data = S("why"),
     .request_id = S("r-6"),
     .execution = UINT64_MAX,
     .force = true},
    {.kind = MESSAGE_RELEASE,
     .instance = S("order-1"),
     .execution = 2,
     .task = UINT64_MAX,
     .try_number = 3,
     .fail = true},
    {.kind = MESSAGE_PRUNE,
     .instance = S("order-1"),
     .data = S("why"),
     .request_id = S("r-7"),
     .execution = UINT64_MAX},
    {.kind = MESSAGE_RETRY, .instance = S("order-1"), .data = S("why"), .request_id = S("r-8")},
};
const size_t sample_messages_len = sizeof sample_messages / sizeof sample_messages[0];

/* ---- texts ---- */

static void show_slice(struct buf *to, const char *name, thole_slice bytes)
{
    if (bytes.len == 0)
        return;
    buf_printf(to, "%s: \"", name);
    for (size_t i = 0; i < bytes.len; i++) {
        uint8_t const c = bytes.ptr[i];
        bool const plain = c >= 0x20 && c < 0x7f && c != '"' && c != '\\';
        buf_printf(to, plain ? "%c" : "\\x%02x", c);
    }
    buf_text(to, "\"\n");
}

static void show_number(struct buf *to, const char *name, uint64_t number)
{
    if (number != 0)
        buf_printf(to, "%s: %llu\n", name, (unsigned long long)number);
}

static void show_origin(struct buf *to, const struct origin *origin)
{
    show_slice(to, "parent.instance", origin->instance);
    show_number(to, "parent.execution", origin->execution);
    show_number(to, "parent.event", origin->event);
}

static void show_retry(struct buf *to, const struct retry *r)
{
    show_number(to, "retry.try_timeout_ms", r->try_timeout_ms);
    show_number(to, "retry.total_timeout_ms", r->total_timeout_ms);
    show_number(to, "retry.tries_max", r->tries_max);
    show_number(to, "retry.first_delay_ms", r->first_delay_ms);
    show_number(to, "retry.max_delay_ms", r->max_delay_ms);
    show_number(to, "retry.factor_milli", r->factor_milli);
    show_number(to, "retry.jitter_milli", r->jitter_milli);
    show_number(to, "retry.poison", r->poison);
    for (size_t i = 0; i < r->final_types_len; i++) {
        buf_printf(to, "retry.final_types: %zu bytes\n", r->final_types[i].len);
        show_slice(to, "retry.final_types", r->final_types[i]);
    }
}

static void show_actor(struct buf *to, const struct actor *actor)
{
    show_slice(to, "actor", actor->name);
    show_number(to, "actor.authenticated", actor->authenticated);
    show_slice(to, "actor.client", actor->client);
    show_slice(to, "actor.traceparent", actor->trace.parent);
    show_slice(to, "actor.tracestate", actor->trace.list);
}

static void show_place(struct buf *to, const struct activity_place *place)
{
    show_slice(to, "worker", place->worker);
    show_slice(to, "host", place->host);
    show_number(to, "attempt", place->attempt);
    show_number(to, "started_ms", place->started_ms);
    show_number(to, "ended_ms", place->ended_ms);
}

void show_event(const struct event *event, struct buf *to)
{
    event_render(event, to);
    buf_text(to, "\n");
    show_number(to, "ref", event->ref);
    show_number(to, "due_ms", event->kind == EVENT_STARTED ? 0 : event->due_ms);
    show_number(to, "code", event->code);
    show_number(to, "try_number", event->try_number);
    show_number(to, "version", event->version);
    show_number(to, "timed", event->timed);
    show_number(to, "flag", event->flag);
    show_number(to, "quarantined", event->quarantined);
    show_number(to, "lost", event->lost);
    show_slice(to, "input", event->input);
    show_slice(to, "worker", event->worker);
    show_slice(to, "name", event->name);
    show_slice(to, "queue", event->queue);
    show_slice(to, "data", event->data);
    show_slice(to, "request_id", event->request_id);
    show_slice(to, "error_type", event->error_type);
    show_slice(to, "details", event->details);
    show_slice(to, "target", event->target);
    if (event->kind == EVENT_STARTED)
        show_origin(to, &event->parent);
    show_number(to, "before",
                event->kind == EVENT_STARTED || event->kind == EVENT_HISTORY_PRUNED ? event->before : 0);
    show_number(to, "kept", event->kind == EVENT_HISTORY_PRUNED ? event->kept : 0);
    if (event->retry != NULL)
        show_retry(to, event->retry);
    if (event->source != NULL)
        show_actor(to, &event->source->actor);
    if (event->source != NULL)
        show_place(to, &event->source->place);
}

const char *message_kind_text(enum message_kind kind)
{
    switch (kind) {
    case MESSAGE_START: return "start";
    case MESSAGE_ACTIVITY_RESULT: return "activity_result";
    case MESSAGE_CANCEL: return "cancel";
    case MESSAGE_EVENT: return "event";
    case MESSAGE_CHILD_RESULT: return "child_result";
    case MESSAGE_TERMINATE: return "terminate";
    case MESSAGE_PAUSE: return "pause";
    case MESSAGE_RESUME: return "resume";
    case MESSAGE_DELETE: return "delete";
    case MESSAGE_RELEASE: return "release";
    case MESSAGE_PRUNE: return "prune";
    case MESSAGE_RETRY: return "retry";
    }
    return "unknown";
}

void show_message(const struct message *m, struct buf *to)
{
    buf_printf(to, "%s\n", message_kind_text(m->kind));
    show_slice(to, "instance", m->instance);
    show_slice(to, "orchestration", m->orchestration);
    show_slice(to, "data", m->data);
    show_slice(to, "request_id", m->request_id);
    show_slice(to, "worker", m->source.place.worker);
    show_slice(to, "event_name", m->event_name);
    show_slice(to, "event_data", m->event_data);
    show_slice(to, "error_type", m->error_type);
    show_slice(to, "details", m->details);
    show_slice(to, "child", m->child);
    show_origin(to, &m->parent);
    show_number(to, "execution", m->execution);
    show_number(to, "task", m->task);
    show_number(to, "attempt", m->source.place.attempt);
    show_number(to, "status", m->status);
    show_number(to, "try_number", m->try_number);
    show_number(to, "version", m->version);
    show_number(to, "final", m->final);
    show_number(to, "lost", m->lost);
    show_number(to, "fail", m->fail);
    show_slice(to, "lost_worker", m->lost_worker);
    show_slice(to, "queue", m->queue);
    show_slice(to, "input", m->input);
    show_number(to, "force", m->force);
    show_slice(to, "host", m->source.place.host);
    show_number(to, "started_ms", m->source.place.started_ms);
    show_number(to, "ended_ms", m->source.place.ended_ms);
    show_actor(to, &m->source.actor);
}

void show_heartbeat(const struct heartbeat *h, struct buf *to)
{
    show_slice(to, "node", h->node);
    show_number(to, "started_ms", h->started_ms);
    for (size_t i = 0; i < h->orchestrations_len; i++)
        show_slice(to, "orchestration", h->orchestrations[i]);
    for (size_t i = 0; i < h->needs_len; i++) {
        buf_printf(to, "partition: %u\n", h->needs[i].partition);
        for (size_t j = 0; j < h->needs[i].orchestrations_len; j++)
            show_slice(to, "needs", h->needs[i].orchestrations[j]);
    }
    show_number(to, "takes_results", h->takes_results);
    if (h->reads_ranges)
        show_number(to, "reads_ranges", 1);
    if (h->reads_references)
        show_number(to, "reads_references", 1);
    if (h->reads_lists)
        show_number(to, "reads_lists", 1);
}

static void show_turn(const struct turn *turn, struct buf *to)
{
    show_slice(to, "instance", turn->instance);
    show_number(to, "execution", turn->execution);
    show_number(to, "turn", turn->number);
    show_number(to, "time_ms", turn->time_ms);
    show_number(to, "more", turn->more);
    show_number(to, "ran", turn->ran);
    show_number(to, "blocked", turn->blocked);
    show_slice(to, "blocked_text", turn->blocked_text);
    show_slice(to, "orchestration", turn->orchestration);
    for (size_t i = 0; i < turn->events_len; i++)
        show_event(&turn->events[i], to);
}

static void show_deletion(const struct deletion *d, struct buf *to)
{
    show_slice(to, "instance", d->instance);
    show_number(to, "execution", d->execution);
    show_number(to, "time_ms", d->time_ms);
    show_slice(to, "orchestration", d->orchestration);
    show_slice(to, "reason", d->reason);
    show_slice(to, "request_id", d->request_id);
    show_slice(to, "started_by", d->started_by);
    show_origin(to, &d->parent);
    show_actor(to, &d->actor);
}

static void show_position(const struct position *position, struct buf *to)
{
    for (size_t i = 0; i < position->ranges_len; i++) {
        struct sequence_range const range = position->ranges[i];
        for (uint64_t s = range.first; position->listed && s >= range.first && s <= range.last; s++)
            show_number(to, "above", s);
        if (position->listed)
            continue;
        show_number(to, "from", range.first);
        show_number(to, "to", range.last);
    }
}

static void show_folded(const struct folded *folded, struct buf *to)
{
    for (size_t i = 0; i < folded->len; i++)
        show_number(to, "sequence", folded->sequences[i]);
    show_slice(to, "hashes", folded->hashes);
    show_number(to, "deleted", folded->deleted);
    show_number(to, "looked", folded->looked);
    show_number(to, "listed_ms", folded->time_ms);
}

void show_record(const struct record *record, struct buf *to)
{
    static const char *const kinds[] = {"unknown", "epoch_opened", "turn", "position", "deleted"};
    bool const known = record->kind >= RECORD_EPOCH_OPENED && record->kind <= RECORD_DELETED;
    buf_printf(to, "%s\n", kinds[known ? record->kind - RECORD_EPOCH_OPENED + 1 : 0]);
    show_number(to, "epoch", record->epoch);
    show_number(to, "n", record->n);
    show_number(to, "committed", record->committed);
    show_number(to, "published", record->published);
    show_number(to, "floor", record->position.floor);
    show_position(&record->position, to);
    show_slice(to, "node", record->node);
    show_number(to, "time_ms", record->time_ms);
    show_number(to, "previous_epoch", record->previous_epoch);
    show_number(to, "previous_n", record->previous_n);
    if (record->counted > 0)
        show_number(to, "counted", record->counted);
    if (record->folded.len > 0)
        show_folded(&record->folded, to);
    if (record->kind == RECORD_TURN)
        show_turn(&record->turn, to);
    if (record->kind == RECORD_DELETED)
        show_deletion(&record->deletion, to);
}
