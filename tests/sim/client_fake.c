#include "client_fake.h"
#include "log_fake.h"
#include "net_fake.h"
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
    inbox_publish(w, letter->instance, letter->bytes);
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

static void send_message(struct world *w, uint64_t delay_ms, size_t instance, const struct message *message)
{
    struct buf bytes;
    buf_init(&bytes, MESSAGE_BYTES_MAX);
    if (message_encode(message, &bytes) != THOLE_OK)
        broken(w, "a client's message cannot be encoded");
    unsigned const copies = fault_enabled(w, FAULT_PUBLISH_TWICE) && rnd(w, 4) == 0 ? 2 : 1;
    for (unsigned i = 0; i < copies; i++) {
        struct letter *letter = keep(w, sizeof *letter);
        letter->instance = instance;
        letter->bytes = keep_slice(w, buf_bytes(&bytes));
        after(w, delay_ms, task_post, letter, 0);
        delay_ms += between(w, 0, 8000);
    }
    buf_release(&bytes);
}

static thole_slice request_id(struct world *w)
{
    char text[32];
    snprintf(text, sizeof text, "request-%" PRIu64, ++w->client->requests);
    return keep_slice(w, thole_slice_from(text));
}

static void start(struct world *w, uint64_t delay_ms, size_t instance, size_t orchestration)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz";
    thole_slice const input = {(const uint8_t *)letters, (size_t)between(w, 1, rnd(w, 4) == 0 ? 40 : 6)};
    struct message const message = {.kind = MESSAGE_START,
                                    .instance = w->instances[instance],
                                    .orchestration = thole_slice_from(ORCHESTRATIONS[orchestration].name),
                                    .data = input,
                                    .request_id = request_id(w)};
    send_message(w, delay_ms, instance, &message);
}

static void cancel(struct world *w, uint64_t delay_ms, size_t instance)
{
    struct message const message = {.kind = MESSAGE_CANCEL,
                                    .instance = w->instances[instance],
                                    .data = THOLE_STR("the customer went away"),
                                    .request_id = request_id(w)};
    send_message(w, delay_ms, instance, &message);
}

/* A completion of something that was never scheduled, or bytes that are no message at all. */
static void nonsense(struct world *w, uint64_t delay_ms, size_t instance)
{
    struct message const strangers[] = {
        {.execution = 2, .task = 2}, {.execution = 1, .task = 1}, {.execution = 1, .task = 99999}};
    struct message message = strangers[rnd(w, 3)];
    message.kind = MESSAGE_ACTIVITY_RESULT;
    message.instance = w->instances[instance];
    message.data = THOLE_STR("nobody asked");
    message.attempt = 1;
    if (rnd(w, 2) == 0) {
        send_message(w, delay_ms, instance, &message);
        return;
    }
    struct letter *letter = keep(w, sizeof *letter);
    letter->instance = instance;
    letter->bytes = rnd(w, 2) == 0 ? THOLE_STR("\xff\xff\xff") : THOLE_STR("");
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

static void add_instance(struct world *w)
{
    static const char *const shapes[] = {"order-", "Bestellung \xc3\xa4 ", "a.b.*.>.", "/\r\n"};
    char text[64];
    snprintf(text, sizeof text, "%s%zu", shapes[rnd(w, 4) == 0 ? rnd(w, 4) : 0], w->instances_len);
    w->instances[w->instances_len++] = keep_slice(w, thole_slice_from(text));
}

struct client_fake *client_fake_create(struct world *w)
{
    struct client_fake *client = keep(w, sizeof *client);
    size_t const n = (size_t)(rnd(w, 8) == 0 ? between(w, 16, WORLD_INSTANCES_MAX) : between(w, 3, 16));
    w->client = client;
    node_begin(w, &client->node, "client", 0, client);
    while (w->instances_len < n)
        add_instance(w);
    w->stats.instances = n;
    uint64_t const spread_ms = rnd(w, 3) == 0 ? 200 : 12000; /* all at once, or one after the other */
    w->flood = rnd(w, 50) == 0;
    if (w->flood)
        flood(w, spread_ms);
    for (size_t i = 0; i < n; i++) {
        uint64_t const start_ms = rnd(w, spread_ms);
        size_t const orchestration = (size_t)rnd(w, ORCHESTRATIONS_LEN);
        if (rnd(w, 20) != 0)
            start(w, start_ms, i, orchestration);
        if (rnd(w, 4) == 0) /* somebody else wants the same id */
            start(w, start_ms + rnd(w, 3000), i, (size_t)rnd(w, ORCHESTRATIONS_LEN));
        if (rnd(w, 4) == 0)
            cancel(w, start_ms + rnd(w, 4000), i);
        if (rnd(w, 8) == 0)
            cancel(w, start_ms + rnd(w, 1000), i);
        if (rnd(w, 6) == 0)

            nonsense(w, start_ms + rnd(w, 3000), i);
    }
    return client;
}
