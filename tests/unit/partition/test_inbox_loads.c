/* The engine role's reading of an inbox, from streams that the test plays; whether its reader keeps up. */
#include "message.h"
#include "nonces.h"
#include "reader.h"
#include "records.h"
#include "result_list.h"
#include "said.h"
#include "subject.h"
#include "thole_cunit.h"
#include "wrap_mutexes.h"
#include "wrap_shard_world.h"
#include "wrap_submitted.h"
#include <stdlib.h>

enum { STORED_NS = 1, FIRST = 5, LOOK_MS = 2000, STORED_MAX = 8 };

static struct {
    struct ordered_reader_options reader; /* as opened */
    bool gone_back, cannot_open;
    unsigned freed; /* readers */
    size_t waits;
    bool no_turn; /* the reader's consumer waits for its turn */
    uint64_t step_downs;
    /* the stream */
    struct stream_bounds bounds;
    struct buf stored[STORED_MAX];
    char subjects[STORED_MAX][128];
    uint64_t read_from, read_to;
    size_t reads;
    size_t room, inputs; /* of the machine; what it was given */
    uint64_t last_input;
    struct { /* the last input of the machine */
        char instance[32], route[32], subject[64], bytes[32], actor[48];
        enum reject_code refused;
        uint64_t sequence, stored_ns;
    } given;
    struct said said; /* inputs of the machine, from lists */
} play;

/* ---- the world ---- */

void __wrap_shard_step_down(struct owned *owned, const char *text)
{
    CU_ASSERT_PTR_EQUAL(owned, &world.owned);
    CHECK_STR("step down", text, "the inbox reader stays behind");
    play.step_downs++;
}

thole_status __wrap_ordered_reader_open(struct connection *connection,
                                        const struct ordered_reader_options *options,
                                        struct ordered_reader **ret, thole_error *reterr)
{
    (void)connection;
    play.reader = *options;
    *ret = NULL;
    CU_ASSERT_FALSE(options->room(options->arg, &(struct delivery){.subject = THOLE_STR("")})); /* not yet */
    return play.cannot_open ? thole_fail(reterr, THOLE_UNAVAILABLE, "no consumer") : THOLE_OK;
}

void __real_free(void *memory);
void __wrap_free(void *memory)
{
    play.freed += memory != NULL && memory == play.reader.arg;
    __real_free(memory);
}

void __wrap_ordered_reader_close(struct ordered_reader *reader)
{
    CU_ASSERT_PTR_NULL(reader);
}

bool __wrap_ordered_reader_waits(struct ordered_reader *reader)
{
    CU_ASSERT_PTR_NULL(reader);
    return play.no_turn;
}

thole_status __wrap_stream_still_holds(struct connection *connection, const char *stream, uint64_t sequence,
                                       uint64_t stored_ns, bool *ret, uint64_t *ret_last, thole_error *reterr)
{
    (void)connection;
    (void)stream;
    (void)sequence;
    (void)stored_ns;
    (void)reterr;
    *ret = !play.gone_back;
    *ret_last = 1;
    return THOLE_OK;
}

thole_status __wrap_stream_bounds(struct connection *connection, const char *stream,
                                  struct stream_bounds *ret, thole_error *reterr)
{
    (void)connection;
    (void)reterr;
    CHECK_STR("stream", stream, "IN");
    *ret = play.bounds;
    return THOLE_OK;
}

thole_status __wrap_stream_read(struct connection *connection, const char *stream, const char *filter,
                                uint64_t from, uint64_t to, stream_read_fn *each, void *arg,
                                thole_error *reterr)
{
    (void)connection;
    (void)stream;
    (void)filter;
    (void)reterr;
    play.reads++;
    play.read_from = from;
    play.read_to = to;
    for (uint64_t i = from; i <= to && i <= play.bounds.last; i++)
        THOLE_TRY(
            each(arg, i, thole_slice_from(play.subjects[i - FIRST]), buf_bytes(&play.stored[i - FIRST])));
    return THOLE_OK;
}

uint64_t __wrap_delivery_stored_ns(const struct delivery *delivery)
{
    (void)delivery;
    return STORED_NS;
}

size_t __wrap_partition_room(const struct partition *p)
{
    CU_ASSERT_PTR_EQUAL(p, world.owned.machine);
    return play.room;
}

void __wrap_shard_input(struct owned *owned, const struct partition_in *in)
{
    const struct in_message *const message = &in->message;
    CU_ASSERT_PTR_EQUAL(owned, &world.owned);
    if (in->kind != PARTITION_IN_MESSAGE)
        return;
    play.inputs++;
    play.last_input = message->sequence;
    play.room -= message->part + 1 >= message->parts && play.room > 0;
    CU_ASSERT_EQUAL(in->generation, world.generation);
    (void)snprintf(play.given.instance, sizeof play.given.instance, "%.*s", THOLE_FMT(message->instance));
    (void)snprintf(play.given.route, sizeof play.given.route, "%.*s", THOLE_FMT(message->route));
    (void)snprintf(play.given.subject, sizeof play.given.subject, "%.*s", THOLE_FMT(message->subject));
    (void)snprintf(play.given.bytes, sizeof play.given.bytes, "%.*s", THOLE_FMT(message->bytes));
    (void)snprintf(play.given.actor, sizeof play.given.actor, "%.*s%s", THOLE_FMT(message->sender.name),
                   message->sender.authenticated ? ", vouched for" : "");
    said_add(&play.said, "%s%u of %u", play.said.text[0] == '\0' ? "" : ", ", message->part, message->parts);
    if (message->instance.len > 0)
        said_add(&play.said, " %s", play.given.instance);
    if (message->subject.len > 0)
        said_add(&play.said, " under %s", play.given.subject);
    if (message->refused != REJECT_NONE)
        said_add(&play.said, ": %s", reject_code_name(message->refused));
    play.given.refused = message->refused;
    play.given.sequence = message->sequence;
    play.given.stored_ns = message->stored_ns;
}

/* The reader's thread has no room: the shard looks meanwhile, and then takes some. */
int __wrap_pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex)
{
    CU_ASSERT_PTR_EQUAL(cond, &world.shard.backlog.room);
    CU_ASSERT_EQUAL_FATAL(play.waits++, 0);
    (void)pthread_mutex_unlock(mutex);
    inbox_watch(&world.shard, &world.owned, 1000 + 2 * LOOK_MS);
    inbox_held(&world.shard, 0, 0);
    (void)pthread_mutex_lock(mutex);
    return 0;
}

static void begin(void)
{
    memset(&play, 0, sizeof play);
    shard_world_begin(request_rules);
    world.engine.options.sweep_ms = 4 * LOOK_MS;
    world.engine.topology.partitions = 1;
    world.engine.topology.nonce_key = *test_nonce_key();
    world.owned.in_stream = (char *)"IN";
    atomic_store(&world.engine.ready, true);
    mailbox_init(&world.shard.mailbox);
    (void)pthread_mutex_init(&world.shard.backlog.lock, NULL);
    (void)pthread_cond_init(&world.shard.backlog.room, NULL);
    play.bounds = (struct stream_bounds){.first = FIRST, .last = FIRST - 1};
    play.room = 1;
}

static void end(void)
{
    for (struct mail *mail = mailbox_take_all(&world.shard.mailbox), *next; mail != NULL; mail = next) {
        next = mail->next;
        free(mail);
    }
    for (size_t i = 0; i < submitted.len; i++)
        CU_ASSERT_EQUAL(submitted.requests[i]->kind, REQ_LOOK_INBOX);
    submitted_clear();
    for (size_t i = 0; i < STORED_MAX; i++)
        buf_release(&play.stored[i]);
    inbox_reader_close(world.owned.reader);
    mailbox_release(&world.shard.mailbox);
    (void)pthread_mutex_destroy(&world.shard.backlog.lock);
    (void)pthread_cond_destroy(&world.shard.backlog.room);
}

static void open_reader(void)
{
    struct request *const request = request_create(REQ_OPEN_INBOX, &world.shard, &world.owned);
    request->inbox.from = FIRST;
    CU_ASSERT_EQUAL(inbox_open_load(&world.engine, request), THOLE_OK);
    CU_ASSERT_EQUAL(play.reader.from, FIRST);
    inbox_opened(&world.owned, request);
    CU_ASSERT_PTR_NOT_NULL_FATAL(world.owned.reader);
    request_destroy(request);
}

/* Whether the thread that delivers for all may hand it over. */
static bool has_room(const char *route)
{
    char subject[128];
    (void)snprintf(subject, sizeof subject, "thole.ns.in.0.%s.order", route);
    return play.reader.room(play.reader.arg, &(struct delivery){.subject = thole_slice_from(subject)});
}

static void message_comes(uint64_t sequence)
{
    struct delivery const delivery = {.subject = THOLE_STR("thole.ns.in.0.event.item.order"),
                                      .body = THOLE_STR("x")};
    play.reader.each(play.reader.arg, sequence, &delivery);
}

/* The stream has `sequence` at or after the requested one. */
static void look_finds(uint64_t sequence)
{
    struct request *const look = submitted_last(REQ_LOOK_INBOX);
    look->inbox.found = sequence;
    inbox_looked(&world.owned, look);
}

/* ---- does the reader keep up? ---- */

static void test_a_reader_that_stays_behind(void)
{
    begin();
    open_reader();
    inbox_watch(&world.shard, &world.owned, 1000);
    CU_ASSERT_EQUAL(inbox_watch_ms(&world.owned), 1000 + LOOK_MS);
    inbox_watch(&world.shard, &world.owned, 1000 + LOOK_MS - 1);
    CU_ASSERT_EQUAL(submitted.len, 0);
    inbox_watch(&world.shard, &world.owned, 1000 + LOOK_MS);
    CU_ASSERT_EQUAL_FATAL(submitted.len, 1);
    CU_ASSERT_EQUAL(submitted_last(REQ_LOOK_INBOX)->inbox.from, FIRST);
    inbox_watch(&world.shard, &world.owned, 1000 + 5 * LOOK_MS); /* one at a time */
    CU_ASSERT_EQUAL(submitted.len, 1);
    look_finds(FIRST);
    inbox_watch(&world.shard, &world.owned, 1000 + 6 * LOOK_MS);
    CU_ASSERT_EQUAL(play.step_downs, 1);
    inbox_watch(&world.shard, &world.owned, 1000 + 7 * LOOK_MS); /* logged once */
    CU_ASSERT_EQUAL(play.step_downs, 1);
    CU_ASSERT_EQUAL(submitted.len, 2);
    end();
}

static void test_a_reader_whose_turn_has_not_come(void)
{
    begin();
    open_reader();
    play.no_turn = true;
    inbox_watch(&world.shard, &world.owned, 1000);
    inbox_watch(&world.shard, &world.owned, 1000 + LOOK_MS);
    look_finds(FIRST);
    inbox_watch(&world.shard, &world.owned, 1000 + 2 * LOOK_MS);
    CU_ASSERT_EQUAL(play.step_downs, 0); /* others of this engine have sent instead */
    play.no_turn = false;
    look_finds(FIRST);
    inbox_watch(&world.shard, &world.owned, 1000 + 3 * LOOK_MS);
    CU_ASSERT_EQUAL(play.step_downs, 1);
    end();
}

static void test_a_reader_that_goes_on(void)
{
    begin();
    open_reader();
    inbox_watch(&world.shard, &world.owned, 1000);
    inbox_watch(&world.shard, &world.owned, 1000 + LOOK_MS);
    look_finds(FIRST);
    message_comes(FIRST);
    inbox_watch(&world.shard, &world.owned, 1000 + 2 * LOOK_MS);
    CU_ASSERT_EQUAL(play.step_downs, 0);
    CU_ASSERT_EQUAL_FATAL(submitted.len, 2);
    CU_ASSERT_EQUAL(submitted_last(REQ_LOOK_INBOX)->inbox.from, FIRST + 1);
    look_finds(0); /* an empty inbox: a reader that waits for messages does not lag */
    inbox_watch(&world.shard, &world.owned, 1000 + 3 * LOOK_MS);
    CU_ASSERT_EQUAL(play.step_downs, 0);
    end();
}

/* The reader waits for the shard, and not for the server. */
static void waits_when_so_much_is_held(size_t messages, size_t bytes, size_t waits)
{
    begin();
    open_reader();
    inbox_watch(&world.shard, &world.owned, 1000);
    inbox_watch(&world.shard, &world.owned, 1000 + LOOK_MS);
    look_finds(FIRST + 3);
    inbox_held(&world.shard, messages, bytes);
    CU_ASSERT_EQUAL(has_room("event.item"), waits == 0);
    if (waits == 0)
        inbox_held(&world.shard, INBOX_BACKLOG_MAX, 1); /* another reader was faster */
    message_comes(FIRST);
    CU_ASSERT_EQUAL(play.waits, waits);
    CU_ASSERT_EQUAL(play.step_downs, 0);
    end();
}

/* Another partition's may go on. */
static void test_a_partition_with_enough(void)
{
    begin();
    open_reader();
    world.owned.inbox.mails = INBOX_PARTITION_MAX - 1;
    CU_ASSERT_TRUE(has_room("event.item"));
    world.owned.inbox.mails++;
    CU_ASSERT_FALSE(has_room("event.item"));
    world.owned.inbox.mails = 0;
    world.owned.inbox.mail_bytes = INBOX_PARTITION_BYTES_MAX;
    CU_ASSERT_FALSE(has_room("event.item"));
    world.owned.inbox.mail_bytes = 0;
    end();
}

static void test_a_reader_without_room(void)
{
    waits_when_so_much_is_held(INBOX_BACKLOG_MAX, 1, 1);
    waits_when_so_much_is_held(1, INBOX_BACKLOG_BYTES_MAX, 1);
    waits_when_so_much_is_held(INBOX_BACKLOG_MAX - 1, INBOX_BACKLOG_BYTES_MAX - 1, 0);
}

/* A hold is looked up at the server: not by the thread that delivers for all. */
static void test_what_is_looked_up(void)
{
    static const struct {
        const char *route;
        bool room;
    } rows[] = {{"control.cancel", true}, {"control.delete", false},       {"control.prune", false},
                {"event.delete", true},   {"control.force_delete", false}, {"result.worker", true}};
    begin();
    open_reader();
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        CU_ASSERT_EQUAL(has_room(rows[i].route), rows[i].room);
    end();
}

static void test_an_inbox_that_went_back(void)
{
    begin();
    struct request *const request = request_create(REQ_OPEN_INBOX, &world.shard, &world.owned);
    request->inbox.from = request->inbox.seen.sequence = FIRST;
    play.gone_back = true;
    CU_ASSERT_EQUAL(inbox_open_load(&world.engine, request), THOLE_OK);
    CU_ASSERT_TRUE(request->inbox.gone_back);
    CU_ASSERT_PTR_NULL(request->inbox.reader);
    CU_ASSERT_EQUAL(play.freed, 1);
    request_destroy(request);
    end();
}

/* The reader is opened again as long as the server is away. */
static void test_a_reader_that_cannot_be_opened(void)
{
    begin();
    struct request *const request = request_create(REQ_OPEN_INBOX, &world.shard, &world.owned);
    request->inbox.from = FIRST;
    play.cannot_open = true;
    CU_ASSERT_EQUAL(inbox_open_load(&world.engine, request), THOLE_UNAVAILABLE);
    CHECK_STR("why", request_error_text(request), "no consumer");
    CU_ASSERT_PTR_NULL(request->inbox.reader);
    CU_ASSERT_EQUAL(play.freed, 1);
    request_destroy(request);
    end();
}

/* ---- arriving messages ---- */

static void bytes_of(const char *subject, thole_slice body)
{
    struct delivery const delivery = {.subject = thole_slice_from(subject), .body = body};
    play.reader.each(play.reader.arg, FIRST, &delivery);
}

static void message_of(const char *subject, const char *body)
{
    bytes_of(subject, thole_slice_from(body));
}

/* The only mail of the shard. */
static void take_mail(void)
{
    struct shard_mail *const mail = (struct shard_mail *)mailbox_take_all(&world.shard.mailbox);
    CU_ASSERT_PTR_NOT_NULL_FATAL(mail);
    CU_ASSERT_PTR_NULL(mail->node.next);
    CU_ASSERT_EQUAL(mail->kind, SHARD_INBOX);
    inbox_take(&world.shard, mail);
    inbox_give(&world.shard, &world.owned);
    CU_ASSERT(world.shard.backlog.mails == 0 && world.shard.backlog.mail_bytes == 0);
    CU_ASSERT(world.owned.inbox.messages == 0 && world.owned.inbox.bytes == 0);
    CU_ASSERT(world.owned.inbox.mails == 0 && world.owned.inbox.mail_bytes == 0);
}

/* Messages for which the machine has no room wait, in order, and count as read but not as taken; messages
 * that an older reader has read are not given. */
static void test_a_message_waits_for_room(void)
{
    begin();
    open_reader();
    for (uint64_t i = 0; i < 3; i++)
        message_comes(FIRST + i);
    for (struct mail *mail = mailbox_take_all(&world.shard.mailbox), *next; mail != NULL; mail = next) {
        next = mail->next;
        inbox_take(&world.shard, (struct shard_mail *)mail);
    }
    CU_ASSERT_TRUE(world.owned.touched);
    play.room = 0;
    CU_ASSERT_FALSE(inbox_may_give(&world.owned));
    inbox_give(&world.shard, &world.owned);
    CU_ASSERT(play.inputs == 0 && world.owned.inbox.messages == 3 && world.shard.backlog.mails == 3);
    play.room = 2;
    CU_ASSERT_TRUE(inbox_may_give(&world.owned));
    inbox_give(&world.shard, &world.owned);
    CU_ASSERT(play.inputs == 2 && play.last_input == FIRST + 1);
    CU_ASSERT(world.owned.inbox.messages == 1 && world.shard.backlog.mails == 1);
    world.generation++; /* without room: nobody will have it */
    CU_ASSERT_TRUE(inbox_may_give(&world.owned));
    inbox_give(&world.shard, &world.owned);
    CU_ASSERT(play.inputs == 2 && world.owned.inbox.messages == 0 && world.owned.inbox.bytes == 0);
    CU_ASSERT(world.shard.backlog.mails == 0 && world.shard.backlog.mail_bytes == 0);
    end();
}

/* Waiting messages go with the partition. */
static void test_what_waits_is_dropped_with_the_reader(void)
{
    begin();
    open_reader();
    message_comes(FIRST);
    inbox_take(&world.shard, (struct shard_mail *)mailbox_take_all(&world.shard.mailbox));
    inbox_drop(&world.shard, &world.owned);
    CU_ASSERT(play.inputs == 0 && world.owned.inbox.messages == 0 && world.shard.backlog.mails == 0);
    CU_ASSERT_FALSE(inbox_may_give(&world.owned));
    end();
}

static void test_a_message_is_passed_on_whole(void)
{
    static const struct {
        const char *subject, *named;
        enum reject_code refused;
        const char *actor;
    } rows[] = {{"thole.ns.in.0.event.item.order", "order", REJECT_NONE, ""},
                {"thole.ns.in.0.event.item.a%2Eb", "a.b", REJECT_NONE, ""},
                {"thole.ns.in.0.event.item.%zz", "", REJECT_SUBJECT, ""},
                {"thole.ns.in.0.event.item.order.by.a%40b", "order", REJECT_NONE, "a@b, vouched for"},
                {"thole.ns.in.0.event.item.order.by.%zz", "", REJECT_SUBJECT, ""}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        begin();
        open_reader();
        message_of(rows[i].subject, "body");
        memset(&play.given, 0, sizeof play.given);
        take_mail();
        CHECK_STR(rows[i].subject, play.given.instance, rows[i].named);
        CHECK_STR(rows[i].subject, play.given.subject, rows[i].refused == REJECT_NONE ? "" : rows[i].subject);
        CHECK_STR(rows[i].subject, play.given.route, rows[i].refused == REJECT_NONE ? "event.item" : "");
        CHECK_STR(rows[i].subject, play.given.bytes, "body");
        CHECK_STR(rows[i].subject, play.given.actor, rows[i].actor);
        CU_ASSERT_EQUAL(play.given.refused, rows[i].refused);
        CU_ASSERT_EQUAL(play.given.sequence, FIRST);
        CU_ASSERT_EQUAL(play.given.stored_ns, STORED_NS);
        end();
    }
}

/* ---- several results in one message ---- */

#define RESULTS "thole.ns.in.0.result.worker.+"

/* Adds a result of `instance`; without a nonce that is its own one. */
static void add_result(struct buf *list, const char *instance, thole_slice nonce)
{
    struct message const message = {.kind = MESSAGE_ACTIVITY_RESULT,
                                    .instance = thole_slice_from(instance),
                                    .execution = 1,
                                    .task = 2,
                                    .nonce = nonce,
                                    .data = thole_slice_from(instance)};
    struct nonce room;
    struct message const with_nonce = test_with_nonce(&message, &room);
    struct buf bytes;
    buf_init(&bytes, 4096);
    CU_ASSERT_EQUAL_FATAL(message_encode(&with_nonce, &bytes), THOLE_OK);
    result_list_add(list, buf_bytes(&bytes));
    buf_release(&bytes);
}

static struct buf results_for(const char *const *instances, size_t len)
{
    struct buf list, message;
    buf_init(&list, 1 << 20);
    buf_init(&message, 1 << 20);
    for (size_t i = 0; i < len; i++)
        add_result(&list, instances[i], (thole_slice){NULL, 0});
    result_list_write(buf_bytes(&list), &message);
    buf_release(&list);
    return message;
}

/* Results in order; one for another partition is none of ours, and counts. */
static void test_several_results_are_passed_on(void)
{
    static const struct {
        uint32_t partitions;
        const char *instances[4];
        size_t len;
        const char *want;
    } rows[] = {
        {1, {"order"}, 1, "0 of 1 order"},
        {1, {"order", "a.b", "order"}, 3, "0 of 3 order, 1 of 3 a.b, 2 of 3 order"},
        {8,
         {"order-43", "order-42", "order-43"},
         3,
         "0 of 3 order-43, 1 of 3 order-42: partition, 2 of 3 order-43"},
        {8, {"order-42", "order-42"}, 2, "0 of 2 order-42: partition, 1 of 2 order-42: partition"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        begin();
        open_reader();
        world.engine.topology.partitions = rows[i].partitions;
        struct buf message = results_for(rows[i].instances, rows[i].len);
        bytes_of(RESULTS, buf_bytes(&message));
        take_mail();
        said_check(&play.said, "given", rows[i].want);
        CHECK_STR("the last one", play.given.route, "result.worker");
        CHECK_STR("of whom", play.given.instance, rows[i].instances[rows[i].len - 1]);
        CU_ASSERT(play.given.sequence == FIRST && play.given.stored_ns == STORED_NS);
        CHECK_STR("of nobody", play.given.actor, "");
        buf_release(&message);
        end();
    }
}

/* The machine gets the bytes that the list has for each result. */
static void test_results_are_passed_on_whole(void)
{
    static const char list[] = "\x08\x01\x7a\x0d\x0a\x04\x12\x02"
                               "ab\x0a\x05\x12\x03"
                               "cde";
    begin();
    open_reader();
    bytes_of(RESULTS, (thole_slice){(const uint8_t *)list, sizeof list - 1});
    take_mail();
    said_check(&play.said, "given", "0 of 2 ab, 1 of 2 cde");
    CHECK_STR("the last one", play.given.bytes,
              "\x12\x03"
              "cde");
    end();
}

/* Bytes that are no list are one message, which no engine can take, under its subject. */
static void test_what_is_no_list_of_results(void)
{
    static const struct {
        const char *row;
        thole_slice bytes;
        const char *code;
    } rows[] = {
        {"nothing", {NULL, 0}, "malformed"},
        {"text", {(const uint8_t *)"body", 4}, "malformed"},
        {"of one instance", {(const uint8_t *)"\x08\x01\x12\x01i\x4a\x00", 7}, "malformed"},
        {"an empty list", {(const uint8_t *)"\x08\x01\x7a\x00", 4}, "malformed"},
        {"one is for no instance",
         {(const uint8_t *)"\x08\x01\x7a\x07\x0a\x03\x12\x01i\x0a\x00", 11},
         "malformed"},
        {"cut off", {(const uint8_t *)"\x08\x01\x7a\x07\x0a\x03\x12\x01i", 9}, "malformed"},
        {"newer", {(const uint8_t *)"\x08\x02\x7a\x00", 4}, "unsupported"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char want[128];
        begin();
        open_reader();
        bytes_of(RESULTS, rows[i].bytes);
        take_mail();
        (void)snprintf(want, sizeof want, "0 of 0 under " RESULTS ": %s", rows[i].code);
        said_check(&play.said, rows[i].row, want);
        CU_ASSERT_TRUE(thole_slice_equal(thole_slice_from(play.given.bytes), rows[i].bytes) ||
                       memchr(rows[i].bytes.ptr, '\0', rows[i].bytes.len) != NULL);
        end();
    }
}

/* Only workers' results have such a subject. */
static void test_other_messages_are_for_one_instance(void)
{
    static const char *const subjects[] = {"thole.ns.in.0.event.item.+", "thole.ns.in.0.result.outside.+",
                                           "thole.ns.in.0.control.cancel.+"};
    for (size_t i = 0; i < ARRAY_LEN(subjects); i++) {
        char want[128];
        begin();
        open_reader();
        struct buf message = results_for((const char *const[]){"order"}, 1);
        bytes_of(subjects[i], buf_bytes(&message));
        take_mail();
        (void)snprintf(want, sizeof want, "0 of 0 under %s: subject", subjects[i]);
        said_check(&play.said, subjects[i], want);
        buf_release(&message);
        end();
    }
}

/* ---- results that wait ---- */

/* A result of `instance`, under a subject of `named`. */
static void store_result_as(const char *route, const char *named, const char *instance, thole_slice nonce)
{
    size_t const i = (size_t)(++play.bounds.last - FIRST);
    struct message const message = {.kind = MESSAGE_ACTIVITY_RESULT,
                                    .instance = thole_slice_from(instance),
                                    .execution = 1,
                                    .task = 3 + i,
                                    .nonce = nonce,
                                    .data = THOLE_STR("done")};
    play.bounds.messages++;
    buf_init(&play.stored[i], 4096);
    struct nonce room;
    struct message const with_nonce = test_with_nonce(&message, &room);
    CU_ASSERT_EQUAL_FATAL(message_encode(&with_nonce, &play.stored[i]), THOLE_OK);
    (void)snprintf(play.subjects[i], sizeof play.subjects[i], "thole.ns.in.0.%s.%s", route, named);
}

static void store_result(const char *named, const char *instance)
{
    store_result_as("result.worker", named, instance, THOLE_STR(""));
}

static struct request *read_results(uint64_t from, uint64_t count, bool gone_back)
{
    struct request *const request = request_create(REQ_READ_RESULTS, &world.shard, &world.owned);
    request->inbox.from = from;
    request->inbox.count = count;
    request->inbox.seen.sequence = gone_back ? 1 : 0;
    play.gone_back = gone_back;
    CU_ASSERT_EQUAL(results_load(&world.engine, request), THOLE_OK);
    return request;
}

static void test_results_of_whom_the_subject_names(void)
{
    begin();
    store_result("order", "order");
    store_result("other", "order"); /* a sender that may write to other has no say about order */
    store_result("other", "other");
    store_result_as("event.paid", "order", "order", THOLE_STR("")); /* nor who may raise an event */
    store_result_as("result.worker", "order", "order", THOLE_STR("0123456789abcdef0123456789abcdef"));
    struct request *const request = read_results(1, 100, false);
    CU_ASSERT_EQUAL_FATAL(request->in.results.results_len, 2);
    const struct partition_result *const results = request->in.results.results;
    CU_ASSERT_TRUE(thole_slice_equal(results[0].instance, THOLE_STR("order")));
    CU_ASSERT_EQUAL(results[0].activity_id, 3);
    CU_ASSERT_EQUAL(results[0].sequence, FIRST);
    CU_ASSERT_EQUAL(results[0].try_number, 1);
    CU_ASSERT_TRUE(thole_slice_equal(results[1].instance, THOLE_STR("other")));
    CU_ASSERT_EQUAL(results[1].activity_id, 5);
    request_destroy(request);
    end();
}

/* Of those that came together each is looked at alone. */
static void test_results_that_came_together(void)
{
    static const thole_slice others = {(const uint8_t *)"0123456789abcdef0123456789abcdef", NONCE_TEXT_LEN};
    struct buf list;
    begin();
    store_result("order", "order");
    buf_init(&list, 4096);
    add_result(&list, "first", (thole_slice){NULL, 0});
    add_result(&list, "forged", others);
    result_list_add(&list, THOLE_STR("\x12\x01i")); /* no message */
    add_result(&list, "last", (thole_slice){NULL, 0});
    store_result("+", "order"); /* one of none, whose place the list takes */
    buf_clear(&play.stored[1]);
    result_list_write(buf_bytes(&list), &play.stored[1]);
    store_result("+", "order"); /* and no list */
    struct request *const request = read_results(1, 100, false);
    CU_ASSERT_EQUAL_FATAL(request->in.results.results_len, 3);
    const struct partition_result *const results = request->in.results.results;
    CU_ASSERT_TRUE(thole_slice_equal(results[0].instance, THOLE_STR("order")));
    CU_ASSERT_TRUE(thole_slice_equal(results[1].instance, THOLE_STR("first")));
    CU_ASSERT_TRUE(thole_slice_equal(results[2].instance, THOLE_STR("last")));
    CU_ASSERT(results[1].sequence == FIRST + 1 && results[2].sequence == FIRST + 1);
    CU_ASSERT(results[1].activity_id == 2 && results[2].activity_id == 2);
    buf_release(&list);
    request_destroy(request);
    end();
}

static void test_which_results_are_read(void)
{
    static const struct {
        uint64_t from, count;
        bool gone_back;
        uint64_t read_from; /* 0: nothing */
    } rows[] = {{1, 100, false, FIRST},
                {FIRST, 100, false, FIRST},
                {FIRST + 1, 100, false, FIRST + 1},
                {1, 2, false, FIRST + 1},
                {1, 3, false, FIRST},
                {FIRST + 2, 100, false, FIRST + 2},
                {FIRST + 2, 1, false, FIRST + 2},
                {FIRST + 3, 100, false, 0},
                {FIRST + 3, 100, true, FIRST}}; /* a position of the one before it says nothing */
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        begin();
        for (size_t k = 0; k < 3; k++)
            store_result("order", "order");
        struct request *const request = read_results(rows[i].from, rows[i].count, rows[i].gone_back);
        CU_ASSERT_EQUAL(play.reads, rows[i].read_from != 0);
        CU_ASSERT_EQUAL(play.read_from, rows[i].read_from);
        CU_ASSERT_EQUAL(play.read_to, rows[i].read_from == 0 ? 0 : FIRST + 2);
        CU_ASSERT_EQUAL(request->in.results.results_len,
                        rows[i].read_from == 0 ? 0 : FIRST + 3 - rows[i].read_from);
        for (size_t k = 0; k < request->in.results.results_len && rows[i].gone_back; k++)
            CU_ASSERT_EQUAL(request->in.results.results[k].sequence, 0);
        request_destroy(request);
        end();
    }
}

/* ---- records of a log ---- */

static void test_which_records_are_read(void)
{
    struct arena arena;
    begin();
    store_result("order", "order");
    store_result("order", "order");
    for (uint64_t to = FIRST - 1; to <= FIRST + 1; to++) {
        struct records records = {.arena = &arena};
        arena_init(&arena, 100000);
        CU_ASSERT_EQUAL(records_read(&records, NULL, "IN", NULL, FIRST, to, NULL), THOLE_OK);
        CU_ASSERT_EQUAL(records.len, to - (FIRST - 1));
        CU_ASSERT_EQUAL(play.reads, to - (FIRST - 1)); /* none asks the server for nothing */
        arena_release(&arena);
    }
    end();
}

static const struct thole_test tests[] = {
    {"a reader that stays behind", test_a_reader_that_stays_behind},
    {"a reader whose turn has not come", test_a_reader_whose_turn_has_not_come},
    {"a reader that goes on", test_a_reader_that_goes_on},
    {"a reader without room", test_a_reader_without_room},
    {"what is looked up", test_what_is_looked_up},
    {"an inbox that went back", test_an_inbox_that_went_back},
    {"a reader that cannot be opened", test_a_reader_that_cannot_be_opened},
    {"a message is passed on whole", test_a_message_is_passed_on_whole},
    {"results of whom the subject names", test_results_of_whom_the_subject_names},
    {"several results are passed on", test_several_results_are_passed_on},
    {"results are passed on whole", test_results_are_passed_on_whole},
    {"what is no list of results", test_what_is_no_list_of_results},
    {"a partition with enough", test_a_partition_with_enough},
    {"a message waits for room", test_a_message_waits_for_room},
    {"what waits is dropped with the reader", test_what_waits_is_dropped_with_the_reader},
    {"other messages are for one instance", test_other_messages_are_for_one_instance},
    {"results that came together", test_results_that_came_together},
    {"which results are read", test_which_results_are_read},
    {"which records are read", test_which_records_are_read},
};
THOLE_TEST_MAIN("inbox_loads", tests)
