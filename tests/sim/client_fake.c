#include "client_fake.h"
#include "checks.h"
#include "clock_fake.h"
#include "log_fake.h"
#include "net_fake.h"
#include "nonces.h"
#include "orchestrations.h"
#include <stdio.h>
#include <string.h>

enum { TRIES_MAX = 200 };

struct client_fake {
    struct node node;
    uint64_t requests;
};

struct letter { /* one message that a client wants to be stored; it repeats until it knows */
    struct request request;
    size_t instance;
    thole_slice bytes;
    thole_slice route;        /* empty: the message's own */
    enum reject_code refused; /* the subject is none of an instance of that inbox */
    uint64_t tries;
};

static void post(struct world *w, struct letter *letter);

static void task_post(struct world *w, void *arg, uint64_t value)
{
    (void)value;
    post(w, arg);
}

static enum executed store_letter(struct world *w, struct request *request)
{
    struct letter *letter = (struct letter *)request;
    if (letter->refused != REJECT_NONE || letter->route.len > 0)
        inbox_publish_as(w, letter->instance, letter->bytes, letter->route, letter->refused);
    else
        inbox_publish(w, letter->instance, letter->bytes, SENDER_CLIENT);
    return EXECUTED;
}

static void letter_answered(struct world *w, struct request *request, bool known)
{
    struct letter *letter = (struct letter *)request;
    if (known || letter->tries > TRIES_MAX)
        return;
    struct letter *again = keep(w, sizeof *again); /* the old one may still arrive */
    *again = *letter;
    after(w, between(w, 1, 1000), task_post, again, 0);
}

static void post(struct world *w, struct letter *letter)
{
    letter->tries++;
    letter->request.execute = store_letter;
    letter->request.answered = letter_answered;
    net_send(w, &w->client->node, SERVER_NATS, &letter->request);
}

static thole_slice encoded(struct world *w, const struct message *message)
{
    struct buf bytes;
    buf_init(&bytes, MESSAGE_BYTES_MAX);
    if (message_encode(message, &bytes) != THOLE_OK)
        broken(w, "a client's message cannot be encoded");
    thole_slice const kept = keep_slice(w, buf_bytes(&bytes));
    buf_release(&bytes);
    return kept;
}

static void send_message(struct world *w, uint64_t delay_ms, size_t instance, const struct message *message)
{
    struct nonce room;
    struct message const with_nonce = test_with_nonce(message, &room);
    thole_slice const bytes = encoded(w, &with_nonce);
    unsigned const copies = fault_enabled(w, FAULT_PUBLISH_TWICE) && rnd(w, 4) == 0 ? 2 : 1;
    for (unsigned i = 0; i < copies; i++) {
        struct letter *letter = keep(w, sizeof *letter);
        letter->instance = instance;
        letter->bytes = bytes;
        after(w, delay_ms, task_post, letter, 0);
        delay_ms += between(w, 0, 8000);
    }
}

static thole_slice request_id(struct world *w)
{
    char text[32];
    snprintf(text, sizeof text, "request-%" PRIu64, ++w->client->requests);
    return keep_slice(w, thole_slice_from(text));
}

/* Some are so long that a record which has them twice stores them once. */
static thole_slice input(struct world *w)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz";
    char text[128 + LONG_PAYLOAD];
    int const n = (int)between(w, 1, rnd(w, 4) == 0 ? 40 : 6);
    thole_slice const whom = w->instances[rnd(w, w->client_instances_len)];
    int const more = w->client->requests % 3 == 0 ? LONG_PAYLOAD : 0;
    int const len = snprintf(text, sizeof text, "%.*s|%.*s|%*s", n, letters, THOLE_FMT(whom), more, "");
    return keep_slice(w, (thole_slice){(const uint8_t *)text, (size_t)len});
}

static void start(struct world *w, uint64_t delay_ms, size_t instance, const thole_orchestration_entry *entry)
{
    struct message message = {.kind = MESSAGE_START,
                              .instance = w->instances[instance],
                              .orchestration = thole_slice_from(entry->name),
                              .version = rnd(w, 2) == 0 ? entry->version : 0};
    message.data = input(w);
    if (w->prunes && strcmp(entry->name, "chain") == 0)
        message.data = THOLE_STR("abcdefghijkl|");
    message.request_id = request_id(w);
    if (rnd(w, 5) == 0) { /* signal with start */
        message.event_name = THOLE_STR("item");
        message.event_data = message.request_id;
    }
    send_message(w, delay_ms, instance, &message);
}

static void raise_item(struct world *w, uint64_t delay_ms, size_t instance)
{
    struct message message = {
        .kind = MESSAGE_EVENT, .instance = w->instances[instance], .request_id = request_id(w)};
    message.event_name = rnd(w, 6) == 0 ? THOLE_STR("other") : THOLE_STR("item");
    message.event_data = message.request_id;
    send_message(w, delay_ms, instance, &message);
}

static void request(struct world *w, uint64_t delay_ms, size_t instance, enum message_kind kind)
{
    struct message const message = {.kind = kind,
                                    .instance = w->instances[instance],
                                    .data = THOLE_STR("the customer went away"),
                                    .request_id = request_id(w)};
    send_message(w, delay_ms, instance, &message);
}

void client_completes(struct world *w, uint64_t delay_ms, size_t instance, const struct message *result)
{
    struct message message = *result;
    message.kind = MESSAGE_ACTIVITY_RESULT;
    message.instance = w->instances[instance];
    send_message(w, delay_ms, instance, &message);
}

/* Messages that no engine can take, each for a reason of its own. */
static void hostile(struct world *w, struct letter *letter)
{
    static const uint8_t large[SIM_PAYLOAD_MAX + 1] = {'x'};
    struct message m = {.kind = MESSAGE_EVENT,
                        .instance = w->instances[letter->instance],
                        .event_name = THOLE_STR("item"),
                        .event_data = THOLE_STR("hostile")};
    switch (rnd(w, 12)) {
    case 0: letter->bytes = THOLE_STR("\xff\xff\xff"); return;
    case 1: letter->bytes = THOLE_STR(""); return;
    case 2: letter->bytes = THOLE_STR("\x08\x02\x12\x01i"); return; /* of another format */
    case 3: m.instance = w->instances[(letter->instance + 1) % w->client_instances_len]; break;
    case 4: m.request_id = THOLE_STR("\xff"); break;
    case 5: m.event_data = (thole_slice){large, sizeof large}; break;
    case 6: letter->refused = REJECT_SUBJECT; break;
    case 7: letter->refused = REJECT_PARTITION; break;
    case 8: letter->route = THOLE_STR("event.other"); break;
    case 9: /* without the nonce, which a sender cannot know */
    case 10:
        m = (struct message){.kind = MESSAGE_ACTIVITY_RESULT,
                             .instance = m.instance,
                             .execution = 1,
                             .task = between(w, 2, 4),
                             .nonce = rnd(w, 2) == 0 ? THOLE_STR("")
                                                     : THOLE_STR("0123456789abcdef0123456789abcdef"),
                             .data = THOLE_STR("forged")};
        break;
    default: /* only an engine may say so */
        m.request_id = THOLE_STR("<1.2.somebody");
        letter->route = THOLE_STR("event.item");
        break;
    }
    letter->bytes = encoded(w, &m);
}

/* A completion of something that was never scheduled, or bytes that are no message at all. */
static void nonsense(struct world *w, uint64_t delay_ms, size_t instance)
{
    uint64_t const second = w->deletes ? 999 : 2; /* an id that is used again may be in any execution */
    struct message const strangers[] = {
        {.execution = second, .task = 2}, {.execution = 1, .task = 1}, {.execution = 1, .task = 99999}};
    struct message message = strangers[rnd(w, 3)];
    message.kind = MESSAGE_ACTIVITY_RESULT;
    message.instance = w->instances[instance];
    message.data = THOLE_STR("nobody asked");
    message.source.place.attempt = 1;
    if (rnd(w, 2) == 0) {
        send_message(w, delay_ms, instance, &message);
        return;
    }
    struct letter *letter = keep(w, sizeof *letter);
    letter->instance = instance;
    hostile(w, letter);
    after(w, delay_ms, task_post, letter, 0);
}

/* So many that the inbox is purged while turns are running. */
static void flood(struct world *w, uint64_t spread_ms)
{
    for (uint64_t i = between(w, 1000, 1500); i > 0; i--) {
        struct letter *letter = keep(w, sizeof *letter);
        letter->instance = 0;
        letter->bytes = THOLE_STR("\xff");
        after(w, rnd(w, spread_ms), task_post, letter, 0);
    }
}

static void new_instance(struct world *w)
{
    static const char *const shapes[] = {"order-", "Bestellung \xc3\xa4 ", "a.b.*.>.", "/\r\n"};
    char text[64];
    snprintf(text, sizeof text, "%s%zu", shapes[rnd(w, 4) == 0 ? rnd(w, 4) : 0], w->instances_len);
    (void)instance_add(w, thole_slice_from(text));
}

/* Requests to one instance while it lives, and before. */
static void bother(struct world *w, size_t instance, uint64_t start_ms)
{
    if (rnd(w, 4) == 0)
        request(w, start_ms + rnd(w, 4000), instance, MESSAGE_CANCEL);
    if (rnd(w, 8) == 0)
        request(w, start_ms + rnd(w, 1000), instance, MESSAGE_CANCEL);
    if (rnd(w, 12) == 0)
        request(w, start_ms + rnd(w, 3000), instance, MESSAGE_TERMINATE);
    for (uint64_t n = rnd(w, 4) == 0 ? between(w, 1, 4) : 0; n > 0; n--) {
        request(w, start_ms + rnd(w, 3000), instance, MESSAGE_PAUSE);
        request(w, start_ms + rnd(w, 6000), instance, MESSAGE_RESUME);
    }
    if (rnd(w, 6) == 0)
        nonsense(w, start_ms + rnd(w, 3000), instance);
    for (uint64_t n = rnd(w, 2) == 0 ? between(w, 1, 5) : 0; n > 0; n--)
        raise_item(w, start_ms < 3000 || rnd(w, 3) > 0 ? start_ms + rnd(w, 6000) : start_ms - rnd(w, 3000),
                   instance);
}

/* Whoever is paused when the faults have stopped goes on, children too; who is damaged ends. */
static void task_resume(struct world *w, void *arg, uint64_t value)
{
    (void)arg, (void)value;
    for (size_t i = 0; i < w->instances_len && !w->faults; i++) {
        const struct model_execution *x = model_current(model_of(w, i));
        if (model_of(w, i)->damaged && !model_of(w, i)->over) /* the operator gives up */
            request(w, 0, i, MESSAGE_TERMINATE);
        else if (x != NULL && !x->ended && x->paused)
            request(w, 0, i, MESSAGE_RESUME);
    }
    after(w, 3000, task_resume, NULL, 0);
}

/* Children have no client of their own, but other clients may know of them. */
static void task_meddle(struct world *w, void *arg, uint64_t value)
{
    static const enum message_kind kinds[] = {MESSAGE_CANCEL, MESSAGE_PAUSE, MESSAGE_RESUME,
                                              MESSAGE_TERMINATE, MESSAGE_RESUME};
    (void)arg, (void)value;
    if (!w->faults)
        return;
    if (w->instances_len > w->client_instances_len) {
        size_t const n = w->instances_len - w->client_instances_len;
        size_t const child = w->client_instances_len + (size_t)rnd(w, n);
        request(w, 0, child, kinds[rnd(w, 5)]);
    }
    after(w, between(w, 500, 6000), task_meddle, NULL, 0);
}

static const thole_orchestration_entry *any_orchestration(struct world *w);

static void delete_one(struct world *w, size_t instance, bool force)
{
    const struct model_instance *m = model_of(w, instance);
    bool const there = m->executions_len > m->gone;
    struct message const message = {.kind = MESSAGE_DELETE,
                                    .instance = w->instances[instance],
                                    .data = THOLE_STR("nobody needs it"),
                                    .request_id = request_id(w),
                                    .execution = there ? m->executions_len : 0,
                                    .force = force};
    send_message(w, 0, instance, &message);
}

static void decide(struct world *w, size_t instance, uint64_t id, const struct model_event *e, bool fail)
{
    bool const another = w->faults && rnd(w, 4) == 0; /* a decision that is late, or means something else */
    uint32_t const which = another          ? e->try_number + 1 - 2 * (e->try_number > 1)
                           : rnd(w, 3) == 0 ? 0
                                            : e->try_number;
    struct message const message = {.kind = MESSAGE_RELEASE,
                                    .instance = w->instances[instance],
                                    .execution = model_of(w, instance)->executions_len,
                                    .task = id,
                                    .try_number = which,
                                    .fail = fail};
    w->stats.released++;
    send_message(w, 0, instance, &message);
}

/* He takes one for a timer that a wrong clock has set. */
static void fire(struct world *w, size_t instance, struct model_execution *x, uint64_t id)
{
    struct message const message = {.kind = MESSAGE_RELEASE,
                                    .instance = w->instances[instance],
                                    .execution = model_of(w, instance)->executions_len,
                                    .task = id,
                                    .timer = true};
    x->events[id - 1].fire_asked = x->fired = true;
    send_message(w, 0, instance, &message);
}

/* Their operator looks now and then at what waits in quarantine. When the faults have stopped he leaves to
 * itself what ends by itself, and decides on the rest. */
static bool is_to_decide(struct world *w, const struct model_event *e)
{
    if (!e->quarantined)
        return rnd(w, 500) == 0; /* he is wrong */
    bool const ends = e->next_due_ms != 0 && !clock_is_wrong_time(w, e->next_due_ms);
    return w->faults ? rnd(w, 8) == 0 : !ends && rnd(w, 2) == 0;
}

/* A worker that was away for long says the same again, or that it has done it after all. */
static void late_result(struct world *w, size_t instance, uint64_t id, const struct model_event *e)
{
    bool const done = rnd(w, 2) == 0;
    struct message const result = {.execution = model_of(w, instance)->executions_len,
                                   .task = id,
                                   .try_number = e->try_number,
                                   .status = done ? THOLE_OK : THOLE_APP,
                                   .data = THOLE_STR("late"),
                                   .error_type = done ? (thole_slice){NULL, 0} : POISON_TYPE,
                                   .lost = done ? 0 : w->poison_after,
                                   .lost_worker = THOLE_STR("somebody"),
                                   .queue = e->queue,
                                   .input = e->data};
    client_completes(w, rnd(w, 300), instance, &result);
}

/* When a timer fires, or the next try of an activity begins; 0: a try is under way. */
static uint64_t waits_until(const struct model_event *e)
{
    return e->kind == EVENT_TIMER_CREATED ? e->due_ms : e->waiting ? e->next_due_ms : 0;
}

/* Other disturbances of waiting activities. */
static void disturb(struct world *w, size_t instance, uint64_t id, const struct model_event *e)
{
    switch (rnd(w, 24)) {
    case 0:
    case 1:
    case 2: late_result(w, instance, id, e); break;
    case 3:
    case 4: request(w, 0, instance, MESSAGE_CANCEL); break;
    case 5: request(w, 0, instance, MESSAGE_TERMINATE); break;
    case 6:
        if (w->deletes)
            delete_one(w, instance, true);
        break;
    default: break;
    }
}

static void task_operate(struct world *w, void *arg, uint64_t value)
{
    (void)arg, (void)value;
    for (size_t i = 0; i < w->instances_len; i++) {
        struct model_execution *x = model_current(model_of(w, i));
        for (size_t k = 0; x != NULL && !x->ended && k < x->events_len; k++) {
            const struct model_event *e = &x->events[k];
            if (w->faults && e->resolved_by == EVENT_UNKNOWN &&
                rnd(w, e->kind == EVENT_TIMER_CREATED ? 8 : 400) == 0)
                fire(w, i, x, k + 1);
            else if (e->resolved_by == EVENT_UNKNOWN && !e->quarantined && !w->faults &&
                     clock_is_wrong_time(w, waits_until(e)))
                fire(w, i, x, k + 1);
            else if (e->resolved_by == EVENT_UNKNOWN && !w->faults &&
                     clock_is_wrong_time(w, e->deadline_ms) &&
                     rnd(w, 20) == 0) /* only its total timeout would end it */
                request(w, 0, i, MESSAGE_TERMINATE);
            if (e->kind == EVENT_ACTIVITY_SCHEDULED && e->resolved_by == EVENT_UNKNOWN && is_to_decide(w, e))
                decide(w, i, k + 1, e, rnd(w, 3) != 0);
            if (w->faults && e->quarantined && e->resolved_by == EVENT_UNKNOWN)
                disturb(w, i, k + 1, e);
        }
    }
    uint64_t const next_ms = between(w, 500, 4000);
    after(w, next_ms, task_operate, NULL, 0);
}

/* A user deletes instances, children too, and a client's id is used again, now or later. */
static void task_delete(struct world *w, void *arg, uint64_t value)
{
    (void)arg, (void)value;
    if (!w->faults)
        return;
    size_t const i = (size_t)rnd(w, w->instances_len);
    bool const force = rnd(w, 3) == 0;
    if (!model_of(w, i)->damaged)
        delete_one(w, i, force);
    uint64_t const later_ms = rnd(w, 2) == 0 ? rnd(w, 50) : rnd(w, 5000);
    if (i < w->client_instances_len && rnd(w, 2) == 0)
        start(w, later_ms, i, any_orchestration(w));
    uint64_t const next_ms = between(w, 100, 3000);
    after(w, next_ms, task_delete, NULL, 0);
}

/* A user finds that a history is long. The user's information may be old, or was never true. */
static void task_prune(struct world *w, void *arg, uint64_t value)
{
    (void)arg, (void)value;
    if (!w->faults)
        return;
    for (uint64_t tries = 20; tries > 0; tries--) {
        size_t const i = (size_t)rnd(w, w->instances_len);
        const struct model_instance *m = model_of(w, i);
        if (m->executions_len < m->gone + 3 || m->damaged)
            continue;
        struct message const message = {.kind = MESSAGE_PRUNE,
                                        .instance = w->instances[i],
                                        .data = THOLE_STR("too long"),
                                        .request_id = request_id(w),
                                        .execution = m->executions_len + 1 - rnd(w, 3)};
        send_message(w, 0, i, &message);
        break;
    }
    uint64_t const next_ms = between(w, 20, 800);
    after(w, next_ms, task_prune, NULL, 0);
}

static const thole_orchestration_entry *any_orchestration(struct world *w)
{
    if (w->prunes && rnd(w, 2) == 0)
        return orchestration_entry(rnd(w, 2) == 0 ? THOLE_STR("chain") : THOLE_STR("collector"), 0);
    switch (rnd(w, 9)) {
    case 0: return orchestration_entry(THOLE_STR("tries"), 0);
    case 1: return orchestration_entry(THOLE_STR("parent"), 0);
    case 2: return orchestration_entry(THOLE_STR("paged"), 0);
    case 3:
        if (w->poisons)
            return &ORCHESTRATIONS[0];
        break;
    default: break;
    }
    return &ORCHESTRATIONS[between(w, 1, ORCHESTRATIONS_LEN - 1)];
}

struct client_fake *client_fake_create(struct world *w)
{
    struct client_fake *client = keep(w, sizeof *client);
    size_t const n =
        (size_t)(rnd(w, 8) == 0 ? between(w, 16, WORLD_CLIENT_INSTANCES_MAX) : between(w, 3, 16));
    w->client = client;
    node_begin(w, &client->node, "client", 0, client);
    while (w->instances_len < n)
        new_instance(w);
    w->client_instances_len = n;
    w->stats.instances = n;
    uint64_t const spread_ms = rnd(w, 3) == 0 ? 200 : 12000; /* all at once, or one after the other */
    w->flood = rnd(w, 50) == 0;
    if (w->flood)
        flood(w, spread_ms);
    for (size_t i = 0; i < n; i++) {
        uint64_t const start_ms = rnd(w, spread_ms), later_ms = start_ms + rnd(w, 3000);
        if (rnd(w, 20) != 0)
            start(w, start_ms, i, any_orchestration(w));
        if (rnd(w, 4) == 0) /* another client wants the same id */
            start(w, later_ms, i, any_orchestration(w));
        bother(w, i, start_ms);
    }
    after(w, 1000, task_resume, NULL, 0);
    after(w, 1000, task_meddle, NULL, 0);
    if (w->deletes)
        after(w, 1500, task_delete, NULL, 0);
    if (w->prunes)
        after(w, 500, task_prune, NULL, 0);
    if (w->poisons || w->years_believed)
        after(w, 2000, task_operate, NULL, 0);
    return client;
}
