/*
 * CloudEvents that instances emit, in the stream of events and to who listens: each arrives, in the order of
 * its instance, although the engine is killed again and again, and what comes again has the same id.
 */
#include "api.h"
#include "cloud_event.h"
#include "connection.h"
#include "reader.h"
#include "stack.h"
#include "thole_cunit.h"
#include <pthread.h>
#include <stdlib.h>

enum { WAIT_MS = 60000, INSTANCES = 30, STEPS = 12, KILLS = 6, HEARD_MAX = 8000, ID_MAX = 64 };
#define STREAM "THOLE_default_EVENTS"

static struct stack stack;
static struct stack_program *engine;
static struct connection *connection;
static thole_client *client;

static struct stack_program *start_engine(void)
{
    return stack_program_with(&stack, "program_bindings", "engine", "engine", "--events", "all",
                              "--events-age", "1h", "--node-ttl", "2s", NULL);
}

static void start(thole_client *by, const char *id)
{
    bool accepted = false;
    CHECK_OK(thole_client_start(by, thole_slice_from(id), THOLE_STR("announce"), thole_slice_from(id),
                                &accepted, &stack.err),
             &stack.err);
    CU_ASSERT_TRUE(accepted);
}

static void ended(thole_client *by, const char *id)
{
    thole_instance_status status = THOLE_INSTANCE_UNKNOWN;
    CHECK_STR(id, stack_outcome(by, id, WAIT_MS, &status), "announced");
}

/* ---- the listener ---- */

struct heard { /* all that is published, before the stream drops what it has */
    pthread_mutex_t lock;
    size_t len;
    struct {
        char id[ID_MAX], type[ID_MAX], body[ID_MAX];
    } events[HEARD_MAX];
};
static struct heard heard = {.lock = PTHREAD_MUTEX_INITIALIZER}, quiet = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void copy(char to[ID_MAX], thole_slice from)
{
    (void)snprintf(to, ID_MAX, "%.*s", THOLE_FMT(from));
}

static void on_event(void *arg, const struct delivery *delivery)
{
    struct heard *const to = arg;
    (void)pthread_mutex_lock(&to->lock);
    if (to->len < HEARD_MAX) {
        copy(to->events[to->len].id, delivery_header(delivery, "ce-id"));
        copy(to->events[to->len].type, delivery_header(delivery, "ce-type"));
        copy(to->events[to->len].body, delivery->body);
        to->len++;
    }
    (void)pthread_mutex_unlock(&to->lock);
}

static size_t heard_len(struct heard *of)
{
    (void)pthread_mutex_lock(&of->lock);
    size_t const len = of->len;
    (void)pthread_mutex_unlock(&of->lock);
    return len;
}

static struct subscription *listen_to(const char *subject, struct heard *to)
{
    struct subscription *subscription = NULL;
    CHECK_OK(connection_subscribe(connection, subject, on_event, to, &subscription, &stack.err), &stack.err);
    CHECK_OK(connection_flush(connection, &stack.err), &stack.err);
    return subscription;
}

/* ---- the stream ---- */

struct seen { /* events of an instance in the stream */
    unsigned events;
    char texts[40][2 * ID_MAX]; /* "ID TYPE BODY" */
};
static struct seen seen[INSTANCES];

static thole_status take(void *arg, uint64_t sequence, const struct delivery *delivery)
{
    thole_slice const id = delivery_header(delivery, "ce-id"), type = delivery_header(delivery, "ce-type");
    unsigned instance = 0;
    char copied[ID_MAX];
    (void)arg, (void)sequence;
    copy(copied, id);
    if (sscanf(copied, "default/i-%u/", &instance) != 1 || instance >= INSTANCES)
        return THOLE_OK;
    struct seen *const of = &seen[instance];
    CU_ASSERT_FATAL(of->events < ARRAY_LEN(of->texts));
    CU_ASSERT(thole_slice_equal(delivery_header(delivery, "ce-specversion"), THOLE_STR("1.0")));
    CU_ASSERT(
        thole_slice_equal(delivery_header(delivery, "ce-source"), THOLE_STR("/thole/default/announce")));
    CU_ASSERT(thole_slice_equal(delivery_header(delivery, "Nats-Msg-Id"), id));
    (void)snprintf(of->texts[of->events++], sizeof of->texts[0], "%.*s %.*s %.*s", THOLE_FMT(id),
                   THOLE_FMT(type), THOLE_FMT(delivery->body));
    return THOLE_OK;
}

static size_t stored(void)
{
    struct stream_bounds bounds = {.messages = 0};
    return stream_bounds(connection, STREAM, &bounds, &stack.err) == THOLE_OK ? (size_t)bounds.messages : 0;
}

static void await_stored(size_t least)
{
    for (int i = 0; i < WAIT_MS / 20 && stored() < least; i++)
        pause_ms(20);
    CU_ASSERT(stored() >= least);
}

/* Event n of a history: 1 Started; then an event and a timer, and the timer's end, for each step. */
static void want(unsigned instance, unsigned nth, char text[2 * ID_MAX])
{
    unsigned const last = 2 + 3 * STEPS;
    if (nth == 0)
        (void)snprintf(text, 2 * ID_MAX, "default/i-%u/1/1 thole.instance.started ", instance);
    else if (nth <= STEPS)
        (void)snprintf(text, 2 * ID_MAX, "default/i-%u/1/%u com.example.step {\"of\":\"i-%u\",\"step\":%u}",
                       instance, 2 + 3 * (nth - 1), instance, nth - 1);
    else if (nth == STEPS + 1)
        (void)snprintf(text, 2 * ID_MAX, "default/i-%u/1/%u com.example.almost over", instance, last);
    else if (nth == STEPS + 2)
        (void)snprintf(text, 2 * ID_MAX, "default/i-%u/1/%u over ", instance, last + 1);
    else
        (void)snprintf(text, 2 * ID_MAX, "default/i-%u/1/%u thole.instance.completed announced", instance,
                       last + 2);
}
enum { EACH = STEPS + 4 };

static void check_instance(unsigned instance)
{
    char text[2 * ID_MAX];
    CU_ASSERT_EQUAL(seen[instance].events, EACH);
    for (unsigned n = 0; n < seen[instance].events && n < EACH; n++) {
        want(instance, n, text);
        CHECK_STR("event", seen[instance].texts[n], text);
    }
}

/* Repeated publishes of an event are equal; returns their number. */
static size_t check_repetitions(void)
{
    size_t again = 0;
    for (size_t i = 0; i < heard.len; i++)
        for (size_t k = 0; k < i; k++) {
            if (strcmp(heard.events[i].id, heard.events[k].id) != 0)
                continue;
            CU_ASSERT_STRING_EQUAL(heard.events[i].type, heard.events[k].type);
            CU_ASSERT_STRING_EQUAL(heard.events[i].body, heard.events[k].body);
            again++;
            break;
        }
    return again;
}

static void test_kill9_around_the_sending(void)
{
    struct subscription *const all = listen_to("thole.default.event.*.*.ce.>", &heard);
    char id[16];
    for (unsigned i = 0; i < INSTANCES; i++) {
        (void)snprintf(id, sizeof id, "i-%u", i);
        start(client, id);
    }
    for (unsigned n = 0; n < KILLS; n++) { /* while events are on their way */
        size_t const before = heard_len(&heard);
        for (int i = 0; i < WAIT_MS / 2 && heard_len(&heard) < before + 15 + 7 * n; i++)
            pause_ms(1);
        stack_kill9(engine);
        engine = start_engine();
    }
    for (unsigned i = 0; i < INSTANCES; i++) {
        (void)snprintf(id, sizeof id, "i-%u", i);
        ended(client, id);
    }
    await_stored(INSTANCES * EACH);
    CU_ASSERT_EQUAL(stored(), INSTANCES * EACH);
    CHECK_OK(stream_read_deliveries(connection, STREAM, NULL, 1, INSTANCES * EACH, take, NULL, &stack.err),
             &stack.err);
    for (unsigned i = 0; i < INSTANCES; i++)
        check_instance(i);
    CU_ASSERT(heard_len(&heard) >= INSTANCES * EACH);
    subscription_close(all);
    fprintf(stderr, "  %u kills, %d events, %zu sent more than once\n", KILLS, INSTANCES * EACH,
            check_repetitions());
}

/* ---- a stream that takes nothing ---- */

/* Changes a number or a word in the stream's configuration: KEY":FROM becomes KEY":TO. */
static void reconfigure(const char *key, const char *from, const char *to)
{
    char config[4096], was[128];
    struct buf answer, request;
    buf_init(&answer, API_ANSWER_MAX);
    buf_init(&request, API_ANSWER_MAX);
    CHECK_OK(api_call(connection, "STREAM.INFO", STREAM, THOLE_STR(""), &answer, NULL, &stack.err),
             &stack.err);
    const char *const begin = strstr(buf_cstr(&answer), "\"config\":{");
    CU_ASSERT_PTR_NOT_NULL_FATAL(begin);
    size_t depth = 0, len = 0;
    const char *const object = begin + strlen("\"config\":");
    do {
        depth += object[len] == '{';
        depth -= object[len] == '}';
    } while (object[len++] != '\0' && depth > 0);
    (void)snprintf(config, sizeof config, "%.*s", (int)len, object);
    (void)snprintf(was, sizeof was, "\"%s\":%s", key, from);
    const char *const at = strstr(config, was);
    CU_ASSERT_PTR_NOT_NULL_FATAL(at);
    buf_printf(&request, "%.*s\"%s\":%s%s", (int)(at - config), config, key, to, at + strlen(was));
    CHECK_OK(api_call(connection, "STREAM.UPDATE", STREAM, buf_bytes(&request), &answer, NULL, &stack.err),
             &stack.err);
    buf_release(&answer);
    buf_release(&request);
}

struct arrived { /* events of one instance in the stream */
    const char *of;
    size_t len;
    unsigned last; /* event id of the last one */
    bool in_order;
};

static thole_status look(void *arg, uint64_t sequence, const struct delivery *delivery)
{
    struct arrived *const to = arg;
    char id[ID_MAX];
    unsigned event = 0;
    (void)sequence;
    if (!thole_slice_equal(delivery_header(delivery, "ce-subject"), thole_slice_from(to->of)))
        return THOLE_OK;
    copy(id, delivery_header(delivery, "ce-id"));
    CU_ASSERT_EQUAL(sscanf(strrchr(id, '/'), "/%u", &event), 1);
    to->in_order = to->in_order && event > to->last;
    to->last = event;
    to->len++;
    return THOLE_OK;
}

static struct arrived arrived_of(const char *instance)
{
    struct arrived arrived = {.of = instance, .in_order = true};
    size_t const n = stored();
    if (n > 0)
        CHECK_OK(stream_read_deliveries(connection, STREAM, NULL, 1, n, look, &arrived, &stack.err),
                 &stack.err);
    return arrived;
}

static void await_all_of(const char *instance, size_t want_len)
{
    struct arrived arrived = arrived_of(instance);
    for (int i = 0; i < WAIT_MS / 50 && arrived.len < want_len; i++) {
        pause_ms(50);
        arrived = arrived_of(instance);
    }
    CU_ASSERT_EQUAL(arrived.len, want_len);
    CU_ASSERT(arrived.in_order);
}

/* The partitions of an engine that was killed open, and instances run, although what the one before has left
 * to be sent is not taken; when it is, it comes in order. */
static void test_a_full_stream_stops_nobody(void)
{
    char full[24];
    (void)snprintf(full, sizeof full, "%zu", stored());
    reconfigure("max_msgs", "-1", full);
    reconfigure("discard", "\"old\"", "\"new\"");
    start(client, "full-1");
    ended(client, "full-1");
    stack_kill9(engine);
    engine = start_engine();
    for (unsigned i = 2; i < 10; i++) { /* in each partition one or more */
        char id[16];
        (void)snprintf(id, sizeof id, "full-%u", i);
        start(client, id);
        ended(client, id);
    }
    stack_kill9(engine); /* the events that it owes are of turns of two engines now */
    engine = start_engine();
    CU_ASSERT_EQUAL(arrived_of("full-1").len, 0);
    reconfigure("max_msgs", full, "-1");
    for (unsigned i = 1; i < 10; i++) {
        char id[16];
        (void)snprintf(id, sizeof id, "full-%u", i);
        await_all_of(id, EACH);
    }
    reconfigure("discard", "\"new\"", "\"old\"");
}

struct refused {
    size_t events, other;
};

static bool has(thole_slice text, const char *part)
{
    char copied[512];
    (void)snprintf(copied, sizeof copied, "%.*s", THOLE_FMT(text));
    return strstr(copied, part) != NULL;
}

static thole_status look_rejected(void *arg, uint64_t sequence, const struct delivery *delivery)
{
    struct refused *const to = arg;
    (void)sequence;
    bool const is_event = thole_slice_equal(delivery_header(delivery, "Thole-Code"), THOLE_STR("event"));
    to->events += is_event;
    to->other += !is_event;
    if (is_event) {
        CU_ASSERT_EQUAL(delivery->body.len, 1024);
        CU_ASSERT(has(delivery_header(delivery, "Thole-Subject"), ".big.ce.com.example.step"));
        CU_ASSERT(has(delivery_header(delivery, "Thole-Reason"), "10054"));
    }
    return THOLE_OK;
}

/* An event that the stream never takes goes among the rejected messages; later ones are sent. */
static void test_what_is_too_large_holds_nothing_up(void)
{
    static char input[2000];
    bool accepted = false;
    struct refused refused = {0};
    memset(input, 'x', sizeof input - 1);
    reconfigure("max_msg_size", "-1", "1500");
    CHECK_OK(thole_client_start(client, THOLE_STR("big"), THOLE_STR("announce"), thole_slice_from(input),
                                &accepted, &stack.err),
             &stack.err);
    ended(client, "big");
    await_all_of("big", EACH - STEPS);
    reconfigure("max_msg_size", "1500", "-1");
    CHECK_OK(stream_read_deliveries(connection, "THOLE_default_REJECTED", NULL, 1, STEPS, look_rejected,
                                    &refused, &stack.err),
             &stack.err);
    CU_ASSERT_EQUAL(refused.events, STEPS);
    CU_ASSERT_EQUAL(refused.other, 0);
}

static thole_status count(void *arg, uint64_t sequence, const struct delivery *delivery)
{
    (void)sequence;
    *(size_t *)arg += thole_slice_equal(delivery_header(delivery, "ce-subject"), THOLE_STR("waits"));
    return THOLE_OK;
}

/* The next engine makes the stream again, and sends what has waited for it. */
static void test_without_the_stream_events_wait(void)
{
    struct buf answer;
    buf_init(&answer, API_ANSWER_MAX);
    CHECK_OK(api_call(connection, "STREAM.DELETE", STREAM, THOLE_STR(""), &answer, NULL, &stack.err),
             &stack.err);
    buf_release(&answer);
    start(client, "waits");
    ended(client, "waits"); /* instances do not */
    stack_kill9(engine);
    engine = start_engine();
    size_t arrived = 0;
    for (int i = 0; i < WAIT_MS / 50 && arrived < EACH; i++) {
        pause_ms(50);
        arrived = 0;
        CHECK_OK(stream_read_deliveries(connection, STREAM, NULL, 1, stored(), count, &arrived, &stack.err),
                 &stack.err);
    }
    CU_ASSERT_EQUAL(arrived, EACH);
}

/* An engine of another namespace, and a client of it. */
static struct stack_program *start_other(const char *ns, thole_client **ret, const char *option,
                                         const char *value)
{
    struct stack_program *const other =
        stack_program_with(&stack, "program_bindings", ns, "engine", "--namespace", ns, option, value, NULL);
    thole_client_options options;
    thole_client_options_init(&options);
    options.ns = ns;
    for (int i = 0; i < WAIT_MS / 50 && thole_client_open(&options, ret, &stack.err) != THOLE_OK; i++)
        pause_ms(50);
    CU_ASSERT_PTR_NOT_NULL_FATAL(*ret);
    return other;
}

/* Without a stream, and in a namespace that asked for nothing: what is emitted goes to who listens. */
static void test_without_a_stream(void)
{
    struct subscription *const all = listen_to("thole.quiet.event.*.*.ce.>", &quiet);
    thole_client *by = NULL;
    struct stack_program *const other = start_other("quiet", &by, NULL, NULL);
    start(by, "q");
    ended(by, "q");
    for (int i = 0; i < WAIT_MS / 20 && heard_len(&quiet) < STEPS + 2; i++)
        pause_ms(20);
    CU_ASSERT_EQUAL(heard_len(&quiet), STEPS + 2);
    CU_ASSERT_STRING_EQUAL(quiet.events[0].id, "quiet/q/1/2");
    CU_ASSERT_STRING_EQUAL(quiet.events[STEPS + 1].type, "over");
    thole_client_close(by);
    subscription_close(all);
    CU_ASSERT_EQUAL(stack_terminate(other, WAIT_MS), 0);
}

/* ---- structured mode ---- */

struct whole { /* events in structured mode; "TYPE DATA" of each */
    pthread_mutex_t lock;
    size_t len;
    char texts[4 * (STEPS + 2)][2 * ID_MAX];
    bool wrong; /* one was not in structured mode, or is no CloudEvent */
};
static struct whole whole = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void on_whole(void *arg, const struct delivery *delivery)
{
    struct whole *const to = arg;
    struct arena arena;
    struct cloud_event event = {.present = false};
    thole_slice const type = delivery_header(delivery, "Content-Type");
    struct event_header const header = {THOLE_STR("Content-Type"), type};
    struct event_message const message = {
        .subject = delivery->subject, .body = delivery->body, .headers = &header, .headers_len = 1};
    arena_init(&arena, 1 << 20);
    bool const right = thole_slice_equal(type, THOLE_STR("application/cloudevents+json")) &&
                       delivery_header(delivery, "ce-id").len == 0 &&
                       delivery_header(delivery, "Nats-Msg-Id").len > 0 &&
                       cloud_event_read(&message, &arena, &event, NULL) == THOLE_OK && event.present;
    (void)pthread_mutex_lock(&to->lock);
    to->wrong |= !right;
    if (right && to->len < ARRAY_LEN(to->texts))
        (void)snprintf(to->texts[to->len++], sizeof to->texts[0], "%.*s %.*s",
                       THOLE_FMT(cloud_event_attribute(&event, THOLE_STR("type"))), THOLE_FMT(event.data));
    (void)pthread_mutex_unlock(&to->lock);
    arena_release(&arena);
}

static size_t whole_len(void)
{
    (void)pthread_mutex_lock(&whole.lock);
    size_t const len = whole.len;
    (void)pthread_mutex_unlock(&whole.lock);
    return len;
}

static void await_whole(size_t len)
{
    for (int i = 0; i < WAIT_MS / 20 && whole_len() < len; i++)
        pause_ms(20);
    CU_ASSERT_EQUAL(whole_len(), len);
}

/* Data of each kind: JSON, text, bytes that are no text (the input is part of what the instance emits), none.
 */
static void test_structured_mode(void)
{
    struct subscription *all = NULL;
    thole_client *by = NULL;
    bool accepted = false;
    CHECK_OK(
        connection_subscribe(connection, "thole.whole.event.*.*.ce.>", on_whole, &whole, &all, &stack.err),
        &stack.err);
    struct stack_program *const other = start_other("whole", &by, "--events-mode", "structured");
    CHECK_OK(thole_client_start(by, THOLE_STR("w"), THOLE_STR("announce"), THOLE_STR("\xff"), &accepted,
                                &stack.err),
             &stack.err);
    ended(by, "w");
    await_whole(STEPS + 2); /* two instances' events come in no order */
    start(by, "x");
    ended(by, "x");
    await_whole(2 * (STEPS + 2));
    CU_ASSERT_FALSE(whole.wrong);
    CHECK_STR("bytes", whole.texts[0], "com.example.step {\"of\":\"\xff\",\"step\":0}");
    CHECK_STR("text", whole.texts[STEPS], "com.example.almost over");
    CHECK_STR("nothing", whole.texts[STEPS + 1], "over ");
    CHECK_STR("JSON", whole.texts[STEPS + 2], "com.example.step {\"of\":\"x\",\"step\":0}");
    thole_client_close(by);
    subscription_close(all);
    CU_ASSERT_EQUAL(stack_terminate(other, WAIT_MS), 0);
}

static const struct thole_test tests[] = {
    {"kill -9 around the sending", test_kill9_around_the_sending},
    {"a full stream stops nobody", test_a_full_stream_stops_nobody},
    {"what is too large holds nothing up", test_what_is_too_large_holds_nothing_up},
    {"without the stream events wait", test_without_the_stream_events_wait},
    {"without a stream", test_without_a_stream},
    {"structured mode", test_structured_mode},
};

int main(void)
{
    skip_without_nats();
    skip_without_postgres();
    stack_start(&stack);
    connection = stack_connect(&stack);
    engine = start_engine();
    client = stack_client(&stack);
    int const failed = thole_run_suite("events out", tests, ARRAY_LEN(tests));
    thole_client_close(client);
    connection_close(connection);
    stack_stop(&stack);
    return failed;
}
