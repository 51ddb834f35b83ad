/* The ordered reader: gaps, silence, refusals and lost connections, with a connection and a consumer that are
 * played. */
#include "inflow.h"
#include "push_consumer.h"
#include "reader.h"
#include "said.h"
#include "wrap_link.h"
#include "wrap_mutexes.h"
#include <semaphore.h>
#include <stdlib.h>

static struct {
    struct ordered_reader *reader;
    struct attachment *attachment;
    listener_fn *fn;
    void *arg;
    uint64_t alarm_ms;
    uint64_t fires_at_ms; /* 0: no alarm while the owner is told */
    bool no_listener;
    unsigned inboxes;
    const char *opening; /* the server's answer to the first consumer; NULL: none */
    char inbox[LINK_INBOX_BYTES];
    char first[1600]; /* the first request, whole */
    struct said said;
    bool no_room, no_thread, joins_open; /* joins_open: who joins the thread opens the gate */
    sem_t gate, entered, told;           /* each() of an owner without room waits at the gate */
    unsigned pending;                    /* messages in the stream after each one */
} play;

static thole_error err;

static void control(const char *status, const char *reply, const char *stalled, const char *last,
                    const char *body);
static void no_responders(void);

/* ---- the connection ---- */

void __wrap_connection_attach(struct connection *connection, struct attachment *attachment)
{
    (void)connection;
    play.attachment = attachment;
    if (nats.down)
        return;
    attachment->up(attachment->arg, &nats.link);
    if (play.opening != NULL && play.opening[0] == '\0')
        no_responders();
    else if (play.opening != NULL)
        control(NULL, NULL, NULL, NULL, play.opening);
}

void __wrap_connection_detach(struct connection *connection, struct attachment *attachment)
{
    (void)connection;
    CU_ASSERT_PTR_EQUAL(attachment, play.attachment);
    play.attachment = NULL;
}

void __wrap_connection_alarm(struct connection *connection, struct attachment *attachment, uint64_t due_ms)
{
    (void)connection, (void)attachment;
    play.alarm_ms = due_ms;
}

void __wrap_connection_alarm_by(struct connection *connection, struct attachment *attachment, uint64_t due_ms)
{
    (void)connection, (void)attachment;
    if (play.alarm_ms == 0 || due_ms < play.alarm_ms)
        play.alarm_ms = due_ms;
}

void __wrap_connection_inbox(struct connection *connection, char ret[LINK_INBOX_BYTES])
{
    (void)connection;
    (void)snprintf(ret, LINK_INBOX_BYTES, "_INBOX.x.%u", ++play.inboxes);
}

const char *__wrap_connection_inbox_root(const struct connection *connection)
{
    (void)connection;
    return "_INBOX.x";
}

uint64_t __wrap_connection_request_timeout_ms(const struct connection *connection)
{
    (void)connection;
    return 10;
}

/* Requests of the reader, in short: c7 = a consumer from sequence 7, d1 = the first consumer's removal, f =
 * flow control. */
void __wrap_link_hint(struct link *link, const char *subject, const char *reply, thole_slice body)
{
    char text[1024];
    CU_ASSERT_PTR_EQUAL(link, &nats.link);
    (void)snprintf(text, sizeof text, "%.*s", THOLE_FMT(body));
    if (strncmp(subject, "$JS.API.CONSUMER.CREATE.", 24) == 0) {
        const char *const from = strstr(text, "\"opt_start_seq\":");
        CHECK_STR("answers come to its inbox", reply, play.inbox);
        said_add(&play.said, "c%d ", from == NULL ? -1 : (int)strtol(from + 16, NULL, 10));
        if (play.first[0] == '\0')
            (void)snprintf(play.first, sizeof play.first, "%s %s", subject, text);
    } else if (strncmp(subject, "$JS.API.CONSUMER.DELETE.S.reader_x_", 35) == 0) {
        said_add(&play.said, "d%s ", subject + 35);
    } else {
        CU_ASSERT_PTR_NULL(reply);
        said_add(&play.said, "f:%s ", subject);
    }
}

thole_status __wrap_listener_open(struct link *link, const char *subject, const char *group, listener_fn *fn,
                                  void *arg, struct listener **ret, thole_error *reterr)
{
    (void)group;
    (void)link;
    if (play.no_listener)
        return thole_fail(reterr, THOLE_UNAVAILABLE, "no");
    (void)snprintf(play.inbox, sizeof play.inbox, "%s", subject);
    play.fn = fn;
    play.arg = arg;
    *ret = (struct listener *)&play;
    return THOLE_OK;
}

void __wrap_listeners_replace(struct listeners *listeners, struct listener *listener)
{
    (void)listeners, (void)listener;
}

void __wrap_listeners_close(struct listeners *listeners)
{
    (void)listeners;
    CU_ASSERT_PTR_NULL(play.attachment);
}

/* ---- the consumer ---- */

static void deliver(const char *subject, const char *reply, const char *const headers[3], const char *body,
                    uint64_t epoch)
{
    static const char *const names[3] = {"Status", "Nats-Consumer-Stalled", "Nats-Last-Consumer"};
    natsMsg *message = NULL;
    CU_ASSERT_EQUAL_FATAL(natsMsg_Create(&message, subject, reply, body, (int)strlen(body)), NATS_OK);
    for (size_t i = 0; i < 3; i++)
        if (headers[i] != NULL)
            CU_ASSERT_EQUAL(natsMsgHeader_Set(message, names[i], headers[i]), NATS_OK);
    play.fn(play.arg, &message, epoch);
    natsMsg_Destroy(message);
}

static void control(const char *status, const char *reply, const char *stalled, const char *last,
                    const char *body)
{
    deliver(play.inbox, reply, (const char *const[]){status, stalled, last}, body, nats.link.epoch);
}

/* No server answers what was asked with its inbox as the reply. */
static void no_responders(void)
{
    natsMsg *none = NULL;
    play.fn(play.arg, &none, nats.link.epoch);
}

static const char made[] = "{\"type\":\"x\"}", refused[] = "{\"type\":\"x\",\"error\":{\"err_code\":10059}}";

static void message_of(const char *consumer, uint64_t sequence, uint64_t consumer_sequence, uint64_t epoch)
{
    char reply[128];
    (void)snprintf(reply, sizeof reply, "$JS.ACK.S.%s.1.%llu.%llu.77.%u", consumer,
                   (unsigned long long)sequence, (unsigned long long)consumer_sequence, play.pending);
    deliver("thole.x", reply, (const char *const[]){NULL, NULL, NULL}, "body", epoch);
}

/* From the consumer of the newest inbox. */
static void message(uint64_t sequence, uint64_t consumer_sequence)
{
    char name[32];
    (void)snprintf(name, sizeof name, "reader_x_%u", play.inboxes);
    message_of(name, sequence, consumer_sequence, nats.link.epoch);
}

/* ---- threads ---- */

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*main)(void *), void *arg);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*main)(void *), void *arg)
{
    return play.no_thread ? EAGAIN : __real_pthread_create(thread, attr, main, arg);
}

int __real_pthread_join(pthread_t thread, void **ret);
int __wrap_pthread_join(pthread_t thread, void **ret)
{
    if (play.joins_open)
        sem_post(&play.gate);
    return __real_pthread_join(thread, ret);
}

/* ---- the reader's owner ---- */

static bool room(void *arg, const struct delivery *delivery)
{
    CU_ASSERT_PTR_EQUAL(arg, &play);
    CU_ASSERT_EQUAL(delivery->body.len, 4); /* asked for messages alone */
    return !play.no_room;
}

static void each_waits(void *arg, uint64_t sequence, const struct delivery *delivery)
{
    (void)arg, (void)delivery;
    sem_post(&play.entered);
    while (sem_wait(&play.gate) != 0)
        ;
    said_add(&play.said, "#%llu ", (unsigned long long)sequence);
    sem_post(&play.told);
}

static void each(void *arg, uint64_t sequence, const struct delivery *delivery)
{
    CU_ASSERT_PTR_EQUAL(arg, &play);
    CU_ASSERT_EQUAL(delivery_stored_ns(delivery), 77);
    said_add(&play.said, "#%llu ", (unsigned long long)sequence);
    if (play.fires_at_ms != 0) { /* while it is told of a message */
        nats.now_ms = play.fires_at_ms;
        play.alarm_ms = 0;
        play.attachment->fire(play.attachment->arg);
    }
}

static void lost(void *arg, bool with_connection)
{
    CU_ASSERT_PTR_EQUAL(arg, &play);
    said_add(&play.said, with_connection ? "gone " : "lost ");
}

static thole_status open_with(struct ordered_reader_options options)
{
    options.stream = "S";
    options.each = options.each == NULL ? each : options.each;
    options.arg = &play;
    play.reader = NULL;
    return ordered_reader_open(NULL, &options, &play.reader, &err);
}

static void begin_without(void)
{
    memset(&play, 0, sizeof play);
    memset(&err, 0, sizeof err);
    played_nats_begin();
    nats.link.epoch = 1;
    nats.now_ms = 50000;
    play.opening = made;
}

static void begin(ordered_reader_lost_fn *on_lost)
{
    begin_without();
    CU_ASSERT_EQUAL_FATAL(open_with((struct ordered_reader_options){.from = 5, .lost = on_lost}), THOLE_OK);
    said_check(&play.said, "opened", "c5 ");
}

static void end(void)
{
    ordered_reader_close(play.reader);
    CU_ASSERT_EQUAL(nats.acquired, 0);
}

static void fire_at(uint64_t now_ms)
{
    nats.now_ms = now_ms;
    play.alarm_ms = 0;
    play.attachment->fire(play.attachment->arg);
}

/* ---- tests ---- */

/* An owner that takes its time is no silence: nothing is asked for again, and the alarm comes again later. */
static void test_an_owner_that_is_slow(void)
{
    begin(NULL);
    play.fires_at_ms = 58000;
    message(5, 1);
    play.fires_at_ms = 0;
    said_check(&play.said, "no other consumer", "#5 ");
    CU_ASSERT_EQUAL(play.alarm_ms, 58000 + 5000);
    end();
}

static void test_what_is_asked_for(void)
{
    static const struct {
        struct ordered_reader_options options;
        const char *subject, *policy;
    } rows[] = {
        {{.from = 0}, "", "\"deliver_policy\":\"by_start_sequence\",\"opt_start_seq\":1"},
        {{.from = 9, .filter = "a.*"},
         ".a.*",
         "\"deliver_policy\":\"by_start_sequence\",\"opt_start_seq\":9,\"filter_subject\":\"a.*\""},
        {{.last_per_subject = true},
         ".>",
         "\"deliver_policy\":\"last_per_subject\",\"filter_subject\":\">\""},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char want[1024];
        begin_without();
        CU_ASSERT_EQUAL(open_with(rows[i].options), THOLE_OK);
        (void)snprintf(
            want, sizeof want,
            "$JS.API.CONSUMER.CREATE.S.reader_x_1%s {\"stream_name\":\"S\",\"config\":{\"name\":"
            "\"reader_x_1\",%s,\"ack_policy\":\"none\",\"replay_policy\":\"instant\",\"max_deliver\":1,"
            "\"deliver_subject\":\"_INBOX.x.1\",\"flow_control\":true,\"idle_heartbeat\":2000000000,"
            "\"inactive_threshold\":30000000000,\"num_replicas\":1,\"mem_storage\":true}}",
            rows[i].subject, rows[i].policy);
        CHECK_STR("request", play.first, want);
        said_clear(&play.said);
        end();
        said_check(&play.said, "its consumer is removed", "d1 ");
    }
}

static void test_messages(void)
{
    begin(NULL);
    message(7, 1);
    message(8, 2);
    message_of("reader_other", 9, 3, 1);
    message_of("reader_x_1", 9, 3, 0); /* of the last connection */
    message(6, 3);                     /* from a replica that lags */
    message(12, 4);
    said_check(&play.said, "in order", "#7 #8 #12 ");
    message(14, 6);
    said_check(&play.said, "one is missing", "d1 c13 ");
    message_of("reader_x_1", 13, 5, 1);
    said_check(&play.said, "of the consumer before", "");
    control(NULL, NULL, NULL, NULL, made);
    message(13, 1);
    said_check(&play.said, "goes on", "#13 ");
    message(13, 1);
    said_check(&play.said, "one is there twice", "d2 c14 ");
    end();
    begin_without(); /* last per subject: they come as they are stored, not in the order of sequences alone */
    CU_ASSERT_EQUAL(open_with((struct ordered_reader_options){.last_per_subject = true}), THOLE_OK);
    message(9, 1);
    message(4, 2);
    said_check(&play.said, "last per subject", "c-1 #9 #4 ");
    end();
}

static void test_heartbeats(void)
{
    begin(NULL);
    message(7, 1);
    control("100", "flow.1", NULL, NULL, "");
    control("100", NULL, "flow.2", "1", "");
    said_check(&play.said, "flow control is answered", "#7 f:flow.1 f:flow.2 ");
    control("100", NULL, NULL, "2", "");
    said_check(&play.said, "the last message was lost", "d1 c8 ");
    end();
}

/* Which alarm is set, and what it does: silence of two heartbeats and a second, an answer that does not come.
 */
static void test_silence(void)
{
    begin(NULL);
    CU_ASSERT_EQUAL(play.alarm_ms, 55000);
    nats.now_ms = 53000;
    message(7, 1);
    fire_at(55000);
    CU_ASSERT_EQUAL(play.alarm_ms, 58000);
    said_check(&play.said, "not silent for long enough", "#7 ");
    nats.now_ms = 57000;
    control("100", NULL, NULL, "1", "");
    fire_at(58000);
    CU_ASSERT_EQUAL(play.alarm_ms, 62000);
    fire_at(62000);
    said_check(&play.said, "silent", "d1 c8 ");
    CU_ASSERT_EQUAL(play.alarm_ms, 65000); /* for the answer */
    fire_at(64999);
    said_check(&play.said, "not yet", "");
    CU_ASSERT_EQUAL(play.alarm_ms, 65000);
    fire_at(65000);
    said_check(&play.said, "no answer", "d2 c8 ");
    nats.down = true;
    fire_at(70000);
    said_check(&play.said, "not connected", "");
    end();
}

static void test_refusals(void)
{
    static const uint64_t pauses[] = {100, 200, 400, 800, 1600, 2000, 2000};
    begin(NULL);
    control("409", NULL, NULL, NULL, "");
    said_check(&play.said, "it was deleted", "d1 ");
    CU_ASSERT_EQUAL(play.alarm_ms, 50100);
    fire_at(50100);
    said_check(&play.said, "after a pause", "c5 ");
    for (size_t i = 1; i < ARRAY_LEN(pauses); i++) {
        uint64_t const now_ms = nats.now_ms;
        if (i % 2 == 0)
            no_responders();
        else
            control(NULL, NULL, NULL, NULL, refused);
        CU_ASSERT_EQUAL(play.alarm_ms, now_ms + pauses[i]);
        said_clear(&play.said);
        fire_at(now_ms + pauses[i] - 1);
        said_check(&play.said, "too early", "");
        fire_at(now_ms + pauses[i]);
        said_check(&play.said, "again", "c5 ");
    }
    control(NULL, NULL, NULL, NULL, made);
    no_responders(); /* to flow control: the consumer exists */
    said_check(&play.said, "made", "");
    control("409", NULL, NULL, NULL, "");
    CU_ASSERT_EQUAL(play.alarm_ms, nats.now_ms + 100); /* pauses are short again */
    end();
}

static void test_a_lost_connection(void)
{
    begin(NULL);
    message(7, 1);
    nats.down = true;
    play.attachment->down(play.attachment->arg, 1);
    CU_ASSERT_EQUAL(play.alarm_ms, 0);
    nats.down = false;
    nats.link.epoch = 2;
    play.attachment->up(play.attachment->arg, &nats.link);
    said_check(&play.said, "goes on behind the last one", "#7 c8 ");
    control(NULL, NULL, NULL, NULL, made);
    message(8, 1);
    said_check(&play.said, "well", "#8 ");
    play.attachment->down(play.attachment->arg, 2);
    play.no_listener = true;
    play.attachment->up(play.attachment->arg, &nats.link);
    CU_ASSERT_EQUAL(nats.broken, 1);
    end();
}

/* An owner with a callback for losses is told once, and gets nothing any more. */
static void test_who_wants_to_be_told(void)
{
    for (int way = 0; way < 5; way++) {
        begin(lost);
        message(7, 1);
        if (way == 0)
            message(9, 3);
        else if (way == 1)
            control("409", NULL, NULL, NULL, "");
        else if (way == 2)
            control("100", NULL, NULL, "2", "");
        else if (way == 3)
            fire_at(60000);
        else
            play.attachment->down(play.attachment->arg, 1);
        said_check(&play.said, "told", way == 4 ? "#7 gone " : "#7 d1 lost ");
        CU_ASSERT_EQUAL(play.alarm_ms, 0);
        message_of("reader_x_1", 8, 2, 1);
        play.attachment->down(play.attachment->arg, 1);
        play.attachment->up(play.attachment->arg, &nats.link);
        fire_at(90000);
        said_check(&play.said, "once", "");
        end();
    }
}

static void begin_with_room(void)
{
    begin_without();
    sem_init(&play.gate, 0, 0);
    sem_init(&play.entered, 0, 0);
    sem_init(&play.told, 0, 0);
    CU_ASSERT_EQUAL_FATAL(
        open_with((struct ordered_reader_options){.from = 5, .lost = lost, .each = each_waits, .room = room}),
        THOLE_OK);
    said_check(&play.said, "opened", "c5 ");
}

static void end_with_room(void)
{
    end();
    sem_destroy(&play.gate);
    sem_destroy(&play.entered);
    sem_destroy(&play.told);
}

/* nats.c's thread, which is this one, goes on; later messages wait, too, and the owner gets all in order. */
static void test_an_owner_without_room(void)
{
    begin_with_room();
    sem_post(&play.gate);
    message(5, 1);
    said_check(&play.said, "there is room: at once", "#5 ");
    sem_wait(&play.entered), sem_wait(&play.told);
    play.no_room = true;
    message(6, 2);
    sem_wait(&play.entered);
    message(7, 3);
    play.no_room = false;
    control("100", "flow.1", NULL, NULL, "");
    message(8, 4);
    fire_at(90000);
    CU_ASSERT_EQUAL(play.alarm_ms, 95000);
    said_check(&play.said, "they wait, and so does flow control; it is no silence", "");
    for (int i = 0; i < 3; i++)
        sem_post(&play.gate);
    for (int i = 0; i < 3; i++)
        sem_wait(&play.told);
    end_with_room();
    CHECK_STR("in order", play.said.text, "#6 #7 f:flow.1 #8 d1 ");
}

static void test_an_owner_without_room_that_ends(void)
{
    begin_with_room();
    play.no_room = true;
    message(5, 1);
    sem_wait(&play.entered);
    message(6, 2);
    play.joins_open = true;
    end_with_room();
    said_check(&play.said, "the call in progress has ended, the next one is none", "#5 d1 ");
    begin_with_room();
    play.no_room = play.no_thread = true;
    message(5, 1);
    CU_ASSERT_EQUAL(nats.broken, 1); /* the next epoch reads it again */
    play.no_thread = false;
    end_with_room();
    said_check(&play.said, "no thread", "d1 ");
}

/* ---- readers of one inflow ---- */

enum { MIB = 1024 * 1024 };

static void no_turn(void *arg)
{
    (void)arg;
}

/* Another consumer has all that may be under way to the connection but for @p room bytes. */
static void take_all_but(struct inflow_part *other, struct inflow *inflow, size_t room)
{
    *other = (struct inflow_part){.inflow = inflow, .turn = no_turn};
    for (int i = 0; i < 5; i++) {
        CU_ASSERT(inflow_ask(other));
        if (i < 4)
            inflow_stops(other);
    }
    inflow_came(other, INFLOW_WINDOW_MAX - INFLOW_BYTES + room, true);
}

static void begin_with_inflow(struct inflow *inflow)
{
    begin_without();
    CU_ASSERT_EQUAL_FATAL(
        open_with((struct ordered_reader_options){.from = 5, .lost = lost, .inflow = inflow}), THOLE_OK);
    message(5, 1); /* there are no more: nothing of it is under way */
    said_check(&play.said, "opened", "c5 #5 ");
    CU_ASSERT_FALSE(ordered_reader_waits(play.reader));
}

static void test_flow_control_waits_for_its_turn(void)
{
    struct inflow *const inflow = inflow_create();
    begin_with_inflow(inflow);
    struct inflow_part other;
    take_all_but(&other, inflow, 2 * MIB);
    control("100", "flow.0", NULL, NULL, "");
    said_check(&play.said, "nothing of it is under way at the end of the stream", "f:flow.0 ");
    play.pending = 3;
    message(6, 2);
    said_check(&play.said, "there is more", "#6 ");
    control("100", "flow.1", NULL, NULL, "");
    CU_ASSERT(ordered_reader_waits(play.reader));
    control("100", NULL, "flow.1", "2", ""); /* a heartbeat repeats it */
    nats.now_ms = 52000;
    control("100", NULL, "flow.1", "2", "");
    fire_at(54000);
    said_check(&play.said, "not yet, and it is no silence", "");
    CU_ASSERT_EQUAL(play.alarm_ms, 57000);
    inflow_came(&other, 6 * MIB, true);    /* the next window is of 8 MiB */
    CU_ASSERT_EQUAL(play.alarm_ms, 54000); /* the reader's turn */
    fire_at(54000);
    said_check(&play.said, "answered", "f:flow.1 ");
    CU_ASSERT_FALSE(ordered_reader_waits(play.reader));
    control("100", NULL, "flow.1", "2", "");
    said_check(&play.said, "the answer may have been lost", "f:flow.1 ");
    inflow_end(&other);
    end();
    inflow_destroy(inflow);
}

/* As the answer to its creation says: its first heartbeat comes much later. */
static void test_an_empty_stream_counts_as_nothing(void)
{
    static const char *const answers[] = {"{\"type\":\"x\",\"num_pending\":0}",
                                          "{\"type\":\"x\",\"num_pending\":1}"};
    for (unsigned i = 0; i < 2; i++) {
        struct inflow *const inflow = inflow_create();
        struct inflow_part others[INFLOW_BYTES / INFLOW_WINDOW_FIRST];
        begin_without();
        play.opening = answers[i];
        CU_ASSERT_EQUAL_FATAL(open_with((struct ordered_reader_options){.from = 5, .inflow = inflow}),
                              THOLE_OK);
        for (size_t k = 0; k < ARRAY_LEN(others); k++) {
            others[k] = (struct inflow_part){.inflow = inflow, .turn = no_turn};
            CU_ASSERT_EQUAL(inflow_ask(&others[k]), i == 0 || k + 1 < ARRAY_LEN(others));
        }
        for (size_t k = 0; k < ARRAY_LEN(others); k++)
            inflow_end(&others[k]);
        said_check(&play.said, "opened", "c5 ");
        end();
        inflow_destroy(inflow);
    }
}

static void test_a_consumer_waits_for_its_turn(void)
{
    struct inflow *const inflow = inflow_create();
    begin_with_inflow(inflow);
    struct inflow_part other;
    take_all_but(&other, inflow, MIB);
    play.attachment->down(play.attachment->arg, nats.link.epoch);
    said_check(&play.said, "told", "gone ");
    end();
    begin_without();
    play.opening = NULL;
    CU_ASSERT_EQUAL(open_with((struct ordered_reader_options){.lost = lost, .inflow = inflow}),
                    THOLE_UNAVAILABLE);
    said_check(&play.said, "nothing was asked for", "");
    CHECK_STR("why", err.text, "stream S: other streams of this connection have too much to send");
    inflow_came(&other, MIB, true); /* no longer waiting: its turn would be another's memory */
    begin_with_inflow(inflow);
    inflow_end(&other);
    end();
    inflow_destroy(inflow);
}

/* Between two runs, too. */
static void test_the_next_consumer_waits_for_its_turn(void)
{
    struct inflow *const inflow = inflow_create();
    begin_without();
    CU_ASSERT_EQUAL_FATAL(open_with((struct ordered_reader_options){.from = 5, .inflow = inflow}), THOLE_OK);
    said_check(&play.said, "opened", "c5 ");
    message(7, 1);
    struct inflow_part other;
    take_all_but(&other, inflow, MIB);
    message(9, 3);
    said_check(&play.said, "one is missing", "#7 d1 ");
    CU_ASSERT(ordered_reader_waits(play.reader));
    fire_at(90000);
    said_check(&play.said, "an alarm is not its turn", "");
    inflow_came(&other, MIB, true);
    CU_ASSERT_EQUAL(play.alarm_ms, 90000);
    fire_at(90000);
    said_check(&play.said, "created", "c8 ");
    CU_ASSERT_EQUAL(play.alarm_ms, 93000); /* for the answer */
    inflow_end(&other);
    end();
    inflow_destroy(inflow);
}

static void test_opening(void)
{
    static const struct {
        const char *opening;
        bool down;
        thole_status status;
        const char *text;
    } rows[] = {{NULL, false, THOLE_UNAVAILABLE, "stream S: no answer to the reader's request"},
                {made, true, THOLE_UNAVAILABLE, "stream S: no answer to the reader's request"},
                {"", false, THOLE_UNAVAILABLE, "stream S: JetStream does not answer"},
                {refused, false, THOLE_NOT_FOUND, "CONSUMER.CREATE S: the server says:  (10059)"}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        begin_without();
        play.opening = rows[i].opening;
        nats.down = rows[i].down;
        CU_ASSERT_EQUAL(open_with((struct ordered_reader_options){.lost = lost}), rows[i].status);
        CHECK_STR("why", err.text, rows[i].text);
        CU_ASSERT_EQUAL(nats.acquired, 0);
        CU_ASSERT_PTR_NULL(play.attachment);
        CU_ASSERT_PTR_NULL(strstr(play.said.text, "lost"));
    }
    begin_without();
    CU_ASSERT_EQUAL(open_with((struct ordered_reader_options){.filter = "a b"}), THOLE_INVALID);
    CU_ASSERT_EQUAL(open_with((struct ordered_reader_options){.filter = ""}), THOLE_INVALID);
    ordered_reader_close(NULL);
}

static const struct thole_test tests[] = {
    {"what is asked for", test_what_is_asked_for},
    {"messages", test_messages},
    {"heartbeats", test_heartbeats},
    {"silence", test_silence},
    {"an owner that is slow", test_an_owner_that_is_slow},
    {"refusals", test_refusals},
    {"a lost connection", test_a_lost_connection},
    {"who wants to be told", test_who_wants_to_be_told},
    {"an owner without room", test_an_owner_without_room},
    {"an owner without room that ends", test_an_owner_without_room_that_ends},
    {"flow control waits for its turn", test_flow_control_waits_for_its_turn},
    {"an empty stream counts as nothing", test_an_empty_stream_counts_as_nothing},
    {"a consumer waits for its turn", test_a_consumer_waits_for_its_turn},
    {"the next consumer waits for its turn", test_the_next_consumer_waits_for_its_turn},
    {"opening", test_opening},
};
THOLE_TEST_MAIN("ordered_reader", tests)
