/* The life of a request of the engine role, with executors, a clock and a partition that the test plays. */
#include "loader.h"
#include "store.h"
#include "thole_cunit.h"
#include "wrap_shard_world.h"
#include <stdlib.h>

enum { ROOM = 3, ASIDE = 64, SENT_MAX = 256 };

static struct {
    struct request *sent[SENT_MAX]; /* in flight */
    size_t sent_len, in_flight;
    thole_status send_status; /* when there is room */
    char log[512];
} play;

static void note(const char *text)
{
    (void)snprintf(play.log + strlen(play.log), sizeof play.log - strlen(play.log), "%s%s",
                   play.log[0] == '\0' ? "" : " ", text);
}

/* ---- the world ---- */

size_t __wrap_requests_in_flight(const struct requests *requests)
{
    (void)requests;
    return play.in_flight;
}

void __wrap_shard_step_down(struct owned *owned, const char *text)
{
    CU_ASSERT_PTR_EQUAL(owned, &world.owned);
    note("step down:");
    note(text);
}

void __wrap_loader_submit(struct loader *loader, struct request *request)
{
    (void)loader;
    note("load");
    request_finish(request);
}

void __wrap_store_submit(struct store *store, struct request *request)
{
    (void)store;
    note("store");
    request_finish(request);
}

static thole_status play_send(struct request *request, thole_error *reterr)
{
    (void)reterr;
    if (play.send_status != THOLE_OK)
        return play.send_status;
    if (play.in_flight == request_window(request)->limit)
        return THOLE_LIMIT;
    play.in_flight++;
    play.sent[play.sent_len++] = request;
    return THOLE_OK;
}

static void play_answer(struct owned *owned, struct request *request)
{
    (void)owned;
    note(request->status == THOLE_OK ? "answer" : "failure");
}

static void play_kept(struct owned *owned, struct request *request)
{
    char text[120];
    (void)owned;
    (void)snprintf(text, sizeof text, "%s at %llu error %u: [%.*s] [%.*s]",
                   thole_status_name(request->status), (unsigned long long)request->reply.sequence,
                   request->reply.err_code, THOLE_FMT(request->reply.subject),
                   THOLE_FMT(request->reply.body));
    note(text);
}

static void play_refused(const struct request *request)
{
    (void)request;
    note("refused");
}

static thole_status play_load(struct engine_host *engine, struct request *request)
{
    (void)engine;
    (void)request;
    return THOLE_OK;
}

#define WINDOW_OF(which) .executor = EXECUTOR_WINDOW, .window = WINDOW_##which, .send = play_send
static const struct request_rule rules[REQ_KINDS] = {
    [REQ_APPEND] = {WINDOW_OF(APPENDS), .failure = FAILURE_ANSWER, .answer = play_answer},
    [REQ_SEND_MESSAGE] = {WINDOW_OF(MESSAGES), .failure = FAILURE_AGAIN, .answer = play_answer,
                          .refused = play_refused},
    [REQ_PUBLISH_WORK] = {WINDOW_OF(MESSAGES), .failure = FAILURE_AGAIN_WHEN_SURE, .failed = "unsure",
                          .answer = play_answer, .refused = play_refused},
    [REQ_WITHDRAW_WORK] = {WINDOW_OF(MESSAGES), .failure = FAILURE_DROP, .failed = "dropped"},
    [REQ_REQUEUE] = {WINDOW_OF(MESSAGES), .failure = FAILURE_ANSWER, .answer = play_kept},
    [REQ_LOAD] = {.executor = EXECUTOR_LOADER,
                  .load = play_load,
                  .failure = FAILURE_STEP_DOWN,
                  .failed = "unread",
                  .answer = play_answer},
};

static void begin(void)
{
    memset(&play, 0, sizeof play);
    shard_world_begin(rules);
    for (size_t i = 0; i < WINDOWS; i++)
        world.shard.windows[i] = (struct window){.limit = ROOM, .waits = i != WINDOW_APPENDS};
    mailbox_init(&world.shard.mailbox);
}

static void end(void)
{
    for (size_t i = 0; i < play.sent_len; i++)
        request_destroy(play.sent[i]);
    requests_forget(&world.shard);
    mailbox_release(&world.shard.mailbox);
}

static void submit(enum request_kind kind)
{
    request_submit(request_create(kind, &world.shard, &world.owned));
}

/* The shard's thread takes what has come back. */
static void take(void)
{
    for (struct mail *mail = mailbox_take_all(&world.shard.mailbox), *next; mail != NULL; mail = next) {
        next = mail->next;
        request_answered((struct request *)mail);
    }
}

/* The oldest in flight is answered. */
static void reply_with(enum request_result result)
{
    struct request *const request = play.sent[0];
    CU_ASSERT_TRUE_FATAL(play.sent_len > 0);
    memmove(play.sent, play.sent + 1, --play.sent_len * sizeof play.sent[0]);
    play.in_flight--;
    request_on_reply(&world.shard, &(struct request_done){.result = result, .token = request_token(request)});
    take();
}

static void run_at(uint64_t now_ms)
{
    world.now_ms = now_ms;
    (void)requests_run(&world.shard, now_ms);
}

/* ---- tests ---- */

static void test_what_finds_no_room_waits(void)
{
    begin();
    for (size_t i = 0; i < ROOM + 2; i++)
        submit(REQ_SEND_MESSAGE);
    CU_ASSERT_EQUAL(play.sent_len, ROOM);
    run_at(1000);
    CU_ASSERT_EQUAL(play.sent_len, ROOM);
    reply_with(REQUEST_STORED);
    CU_ASSERT_EQUAL(play.sent_len, ROOM - 1);
    struct request *const first = world.shard.windows[WINDOW_MESSAGES].waiting.first;
    submit(REQ_SEND_MESSAGE);
    CU_ASSERT_EQUAL(play.sent_len, ROOM - 1);
    run_at(1000);
    CU_ASSERT_EQUAL(play.sent_len, ROOM);
    CU_ASSERT_PTR_EQUAL(play.sent[ROOM - 1], first);
    CU_ASSERT_PTR_NOT_NULL(world.shard.windows[WINDOW_MESSAGES].waiting.first);
    CHECK_STR("answers", play.log, "answer");
    end();
}

/* A request that the server takes only later is not sent again and again, and no later one comes first. */
static void test_what_is_refused_for_its_size_waits(void)
{
    begin();
    submit(REQ_SEND_MESSAGE);
    play.send_status = THOLE_LIMIT;
    submit(REQ_SEND_MESSAGE);
    struct request *const first = world.shard.windows[WINDOW_MESSAGES].waiting.first;
    CU_ASSERT_PTR_NOT_NULL_FATAL(first);
    submit(REQ_SEND_MESSAGE);
    run_at(1000);
    CU_ASSERT_EQUAL(play.sent_len, 1);
    play.send_status = THOLE_OK;
    run_at(1000);
    CU_ASSERT_EQUAL(play.sent_len, ROOM);
    end();
}

/* The bytes of an append are lent for the call, and later ones must not come before it. */
static void test_an_append_never_waits(void)
{
    begin();
    for (size_t i = 0; i < ROOM + 1; i++)
        submit(REQ_APPEND);
    CU_ASSERT_PTR_NULL(world.shard.windows[WINDOW_APPENDS].waiting.first);
    CHECK_STR("not within the call", play.log, "");
    take();
    CHECK_STR("as one that was lost", play.log, "failure");
    end();
}

static void test_when_it_is_tried_again(void)
{
    static const struct {
        const char *name;
        enum request_kind kind;
        enum request_result result;
        const char *log;
        uint64_t after_ms; /* 0: never */
    } rows[] = {{"stored", REQ_SEND_MESSAGE, REQUEST_STORED, "answer", 0},
                {"busy", REQ_SEND_MESSAGE, REQUEST_BUSY, "", 100},
                {"refused", REQ_SEND_MESSAGE, REQUEST_FAILED, "refused", 500},
                {"unknown", REQ_SEND_MESSAGE, REQUEST_UNKNOWN, "", 500},
                {"work, busy", REQ_PUBLISH_WORK, REQUEST_BUSY, "", 100},
                {"work, refused", REQ_PUBLISH_WORK, REQUEST_FAILED, "refused", 500},
                {"work, unknown", REQ_PUBLISH_WORK, REQUEST_UNKNOWN, "step down: unsure", 0},
                {"dropped", REQ_WITHDRAW_WORK, REQUEST_UNKNOWN, "", 0},
                {"append, unknown", REQ_APPEND, REQUEST_UNKNOWN, "failure", 0}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        begin();
        submit(rows[i].kind);
        reply_with(rows[i].result);
        CHECK_STR(rows[i].name, play.log, rows[i].log);
        run_at(1000 + (rows[i].after_ms == 0 ? 100000 : rows[i].after_ms - 1));
        CU_ASSERT_EQUAL(play.sent_len, 0);
        run_at(1000 + (rows[i].after_ms == 0 ? 100000 : rows[i].after_ms));
        CU_ASSERT_EQUAL(play.sent_len, rows[i].after_ms != 0);
        end();
    }
}

static void test_when_to_come_back(void)
{
    begin();
    CU_ASSERT_EQUAL(requests_run(&world.shard, 1000), UINT64_MAX);
    submit(REQ_SEND_MESSAGE);
    submit(REQ_SEND_MESSAGE);
    reply_with(REQUEST_UNKNOWN);
    reply_with(REQUEST_BUSY);
    CU_ASSERT_EQUAL(requests_run(&world.shard, 1000), 1100);
    run_at(1100);
    CU_ASSERT_EQUAL(play.sent_len, 1);
    CU_ASSERT_EQUAL(requests_run(&world.shard, 1100), 1500);
    end();
}

/* Requests of an earlier generation of the partition are not sent any more, and their failure does not make
 * it step down. */
static void test_of_an_earlier_life(void)
{
    begin();
    for (size_t i = 0; i < ROOM + 1; i++)
        submit(i == 0 ? REQ_PUBLISH_WORK : REQ_SEND_MESSAGE);
    world.generation++;
    reply_with(REQUEST_UNKNOWN);
    reply_with(REQUEST_UNKNOWN);
    CHECK_STR("failures", play.log, "");
    CU_ASSERT_PTR_NULL(world.shard.delayed);
    run_at(100000);
    CU_ASSERT_EQUAL(play.sent_len, ROOM - 2);
    CU_ASSERT_PTR_NULL(world.shard.windows[WINDOW_MESSAGES].waiting.first);
    end();
}

static void test_one_that_is_delayed_into_another_life(void)
{
    begin();
    submit(REQ_SEND_MESSAGE);
    reply_with(REQUEST_UNKNOWN);
    world.generation++;
    run_at(100000);
    CU_ASSERT_EQUAL(play.sent_len, 0);
    CU_ASSERT_PTR_NULL(world.shard.delayed);
    end();
}

static void test_what_is_in_no_hurry(void)
{
    begin();
    world.shard.windows[WINDOW_MESSAGES].limit = SENT_MAX;
    for (size_t i = 0; i < ASIDE + 10; i++)
        request_put_aside(request_create(REQ_WITHDRAW_WORK, &world.shard, &world.owned));
    CU_ASSERT_EQUAL(play.sent_len, ASIDE);
    submit(REQ_SEND_MESSAGE);
    CU_ASSERT_EQUAL(play.sent_len, ASIDE + 1);
    reply_with(REQUEST_ANSWERED);
    run_at(1000);
    CU_ASSERT_EQUAL(play.sent_len, ASIDE + 1);
    CU_ASSERT_EQUAL(world.shard.windows[WINDOW_MESSAGES].aside_out, ASIDE);
    end();
}

/* The data of an answer are kept until the shard's thread has them; bodies of messages that were only stored
 * are not. */
static void test_what_is_kept_of_an_answer(void)
{
    static const struct {
        const char *name;
        enum request_result result;
        const char *subject, *log;
    } rows[] = {{"answered", REQUEST_ANSWERED, "a.b", "OK at 5 error 6: [a.b] [body]"},
                {"answered without a subject", REQUEST_ANSWERED, "", "OK at 5 error 6: [] [body]"},
                {"stored", REQUEST_STORED, "a.b", "OK at 5 error 6: [] []"},
                {"refused", REQUEST_REFUSED, "a.b", "UNAVAILABLE at 5 error 6: [] []"},
                {"failed", REQUEST_FAILED, "a.b", "UNAVAILABLE at 5 error 6: [] []"}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char subject[8], body[] = "body";
        begin();
        submit(REQ_REQUEUE);
        struct request *const request = play.sent[--play.sent_len];
        play.in_flight--;
        (void)snprintf(subject, sizeof subject, "%s", rows[i].subject);
        request_on_reply(&world.shard, &(struct request_done){.result = rows[i].result,
                                                              .token = request_token(request),
                                                              .sequence = 5,
                                                              .err_code = 6,
                                                              .subject = thole_slice_from(subject),
                                                              .body = thole_slice_from(body)});
        memset(subject, 'x', sizeof subject); /* they were lent for the call */
        memset(body, 'x', sizeof body);
        take();
        CHECK_STR(rows[i].name, play.log, rows[i].log);
        end();
    }
}

static void test_a_failed_load(void)
{
    static const struct {
        const char *name;
        thole_status status;
        const char *text, *log;
    } rows[] = {{"done", THOLE_OK, "", "load answer"},
                {"failed", THOLE_UNAVAILABLE, "no answer from NATS", "load step down: no answer from NATS"},
                {"without a text", THOLE_NOMEM, "", "load step down: unread"},
                {"fenced", THOLE_FENCED, "a newer owner", "load step down: a newer owner"}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        begin();
        struct request *const request = request_create(REQ_LOAD, &world.shard, &world.owned);
        request_submit(request);
        request->status = rows[i].status; /* in the mailbox; the loader is this thread */
        (void)thole_fail(request_error(request), rows[i].status, "%s", rows[i].text);
        take();
        CHECK_STR(rows[i].name, play.log, rows[i].log);
        end();
    }
}

static struct request *load(size_t bytes)
{
    struct request *const request = request_create(REQ_LOAD, &world.shard, &world.owned);
    request_load(request, bytes);
    return request;
}

/* Loads begin one after the other while there is room for what they read. */
static void test_loads_wait_for_room(void)
{
    enum { MEBIBYTE = 1024 * 1024 };
    begin();
    struct request *const walk = request_create(REQ_SEND_MESSAGE, &world.shard, &world.owned);
    request_load(walk, 6 * MEBIBYTE); /* stays under way */
    (void)load(10 * MEBIBYTE);
    CHECK_STR("both fit", play.log, "load");
    (void)load(1);
    (void)load(100 * MEBIBYTE);
    (void)load(1);
    (void)requests_run(&world.shard, 1);
    CHECK_STR("the others wait", play.log, "load");
    take();
    (void)requests_run(&world.shard, 1);
    CHECK_STR("the next one", play.log, "load answer load");
    take();
    (void)requests_run(&world.shard, 1);
    CHECK_STR("one that is too large waits for all", play.log, "load answer load answer");
    CU_ASSERT_EQUAL(world.shard.loads.bytes, 6 * MEBIBYTE);
    request_destroy(walk);
    play.sent_len = 0;
    (void)requests_run(&world.shard, 1);
    CHECK_STR("it is alone", play.log, "load answer load answer load");
    take();
    (void)requests_run(&world.shard, 1);
    CHECK_STR("and the last", play.log, "load answer load answer load answer load");
    take();
    CU_ASSERT_EQUAL(world.shard.loads.bytes, 0);
    end();
}

/* One that has begun goes on before others, which wait for room in the window. */
static void test_loads_go_on_first(void)
{
    begin();
    for (size_t i = 0; i < ROOM + 1; i++)
        submit(REQ_SEND_MESSAGE);
    struct request *const load = request_create(REQ_SEND_MESSAGE, &world.shard, &world.owned);
    request_load(load, 1);
    struct window *const window = &world.shard.windows[WINDOW_MESSAGES];
    CU_ASSERT_PTR_EQUAL(window->waiting.first, load);
    CU_ASSERT(load->next != NULL && window->waiting.last == load->next && load->next->next == NULL);
    end();
}

/* Loads that wait when the partition is closed are not carried out; those that wait at the end are freed. */
static void test_loads_that_wait_in_vain(void)
{
    enum { LARGE = 20 * 1024 * 1024 };
    begin();
    (void)load(LARGE);
    (void)load(LARGE);
    world.generation++;
    take();
    (void)requests_run(&world.shard, 1);
    CHECK_STR("only the first was loaded", play.log, "load answer");
    CU_ASSERT_EQUAL(world.shard.loads.bytes, 0);
    (void)load(LARGE);
    (void)load(LARGE);
    world.generation--;
    take();
    end();
}

static void test_an_answer_is_begun_with_its_output(void)
{
    struct partition_out const load = {
        .kind = PARTITION_OUT_LOAD, .generation = WORLD_GENERATION, .token = 9};
    begin();
    struct request *const request = request_of(REQ_LOAD, &world.shard, &world.owned, &load);
    CU_ASSERT(request->in.kind == PARTITION_IN_HISTORY && request->in.generation == WORLD_GENERATION);
    CU_ASSERT(request->in.token == 9 && request->mail.generation == WORLD_GENERATION);
    request_destroy(request);
    end();
}

static const struct thole_test tests[] = {
    {"what finds no room waits", test_what_finds_no_room_waits},
    {"what is refused for its size waits", test_what_is_refused_for_its_size_waits},
    {"an append never waits", test_an_append_never_waits},
    {"when it is tried again", test_when_it_is_tried_again},
    {"when to come back", test_when_to_come_back},
    {"of an earlier life", test_of_an_earlier_life},
    {"one that is delayed into another life", test_one_that_is_delayed_into_another_life},
    {"what is in no hurry", test_what_is_in_no_hurry},
    {"what is kept of an answer", test_what_is_kept_of_an_answer},
    {"a failed load", test_a_failed_load},
    {"loads wait for room", test_loads_wait_for_room},
    {"loads go on first", test_loads_go_on_first},
    {"loads that wait in vain", test_loads_that_wait_in_vain},
    {"an answer is begun with its output", test_an_answer_is_begun_with_its_output},
};
THOLE_TEST_MAIN("request_flow", tests)
