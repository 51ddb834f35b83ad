/* Tries that are past their deadline: rows and timeouts, in this order, with each step made to fail. Postgres
 * and the inbox are played. */
#include "deadlines.h"
#include "message.h"
#include "said.h"
#include "shard_request.h"
#include "thole_cunit.h"
#include "wrap_mutexes.h"

static struct {
    struct said said;
    const char *refused;
    uint64_t deadlines_ms[2];
    size_t asked, expired;
    enum request_result result;
    request_done_fn *done;
    void *arg;
    int open;
} play;

static struct engine_host engine;
static struct shard shard;
static struct expired_try tries[2];

static thole_status called(const char *name, thole_error *reterr)
{
    said_add(&play.said, "%s; ", name);
    if (play.refused != NULL && strcmp(play.refused, name) == 0)
        return thole_fail(reterr, THOLE_UNAVAILABLE, "%s fails", name);
    return THOLE_OK;
}

thole_status __wrap_projector_store_next_deadline(struct postgres *pg, uint32_t partition,
                                                  uint64_t *ret_in_ms, thole_error *reterr)
{
    (void)pg;
    CU_ASSERT_EQUAL(partition, 3);
    *ret_in_ms = play.deadlines_ms[play.asked++ % 2];
    return called(play.asked == 1 ? "look" : "look again", reterr);
}

thole_status __wrap_projector_store_expire_begin(struct postgres *pg, const struct rows_owner *owner,
                                                 uint64_t since_ms, size_t limit, struct arena *arena,
                                                 struct expired_try **ret, size_t *ret_len,
                                                 thole_error *reterr)
{
    (void)pg, (void)arena;
    CU_ASSERT_TRUE(owner->partition == 3 && since_ms == 700 && limit == 256);
    *ret = tries;
    *ret_len = play.expired;
    return called("begin", reterr);
}

thole_status __wrap_projector_store_expire_commit(struct postgres *pg, thole_error *reterr)
{
    (void)pg;
    return called("commit", reterr);
}

void __wrap_projector_store_expire_rollback(struct postgres *pg)
{
    (void)pg;
    (void)called("rollback", NULL);
}

thole_status __wrap_requests_open(struct connection *connection, size_t window, uint64_t timeout_ms,
                                  request_done_fn *done, void *arg, struct requests **ret,
                                  thole_error *reterr)
{
    (void)connection;
    CU_ASSERT_TRUE(window >= 256 && timeout_ms == 3000);
    THOLE_TRY(called("open", reterr));
    play.done = done;
    play.arg = arg;
    play.open++;
    *ret = (struct requests *)&play;
    return THOLE_OK;
}

void __wrap_requests_close(struct requests *requests)
{
    play.open -= requests != NULL;
}

thole_status __wrap_requests_publish(struct requests *requests, const struct publish *publish, uint64_t token,
                                     thole_error *reterr)
{
    struct arena arena;
    struct message m;
    (void)requests, (void)token;
    arena_init(&arena, 100000);
    CU_ASSERT_EQUAL_FATAL(message_decode(publish->body, &arena, &m, NULL), THOLE_OK);
    CU_ASSERT_TRUE(m.kind == MESSAGE_ACTIVITY_RESULT && m.status == THOLE_TIMEOUT);
    said_add(&play.said, "%s %.*s %llu.%llu.%u attempt %llu %.*s (%.*s) %.*s\n  ", publish->subject,
             THOLE_FMT(m.instance), (unsigned long long)m.execution, (unsigned long long)m.task,
             (unsigned)m.try_number, (unsigned long long)m.source.place.attempt, THOLE_FMT(m.data),
             THOLE_FMT(m.error_type), THOLE_FMT(m.details));
    arena_release(&arena);
    THOLE_TRY(called("publish", reterr));
    play.done(play.arg, &(struct request_done){.result = play.result});
    return THOLE_OK;
}

static struct request request;
static thole_error request_err;

/* The status; the calls are in play.said. */
static thole_status store(const char *refused, size_t expired, uint64_t first_ms, enum request_result result)
{
    memset(&request, 0, sizeof request);
    request.expiry.owner.partition = 3;
    request_err = (thole_error){.status = THOLE_OK};
    request.err = &request_err;
    request.mail.p = 3;
    request.shard = &shard;
    request.expiry.slack_ms = 700;
    play.refused = refused;
    play.expired = expired;
    play.asked = 0;
    play.deadlines_ms[0] = first_ms;
    play.deadlines_ms[1] = 4000;
    play.result = result;
    return deadlines_store((struct postgres *)&play, &request);
}

static void begin(void)
{
    memset(&play, 0, sizeof play);
    memset(&engine, 0, sizeof engine);
    (void)snprintf(engine.topology.ns, sizeof engine.topology.ns, "shop");
    engine.topology.partitions = 8;
    tries[0] = (struct expired_try){.row = {.instance = THOLE_STR("order"),
                                            .execution = 2,
                                            .activity_id = 7,
                                            .try_number = 3,
                                            .details = THOLE_STR("half")},
                                    .attempt = 4};
    tries[1] = (struct expired_try){
        .row = {.instance = THOLE_STR("cart"), .execution = 5, .activity_id = 8, .try_number = 1},
        .attempt = 9};
    shard.deadlines = deadlines_create(&engine);
}

/* The subjects without what they say of the message's route, which message_route.h has. */
static void check(const char *row, const char *want, uint64_t deadline_ms, size_t expired)
{
    char got[sizeof play.said.text], *to = got;
    for (const char *at = play.said.text; *at != '\0';) {
        bool const subject = strncmp(at, "thole.shop.in.3.", 16) == 0;
        if (subject)
            at += strcspn(at, " ") + 1;
        *to++ = *at++;
    }
    *to = '\0';
    CHECK_STR(row, got, want);
    said_clear(&play.said);
    CU_ASSERT_EQUAL(request.expiry.deadline_in_ms, deadline_ms);
    CU_ASSERT_EQUAL(request.expiry.expired_len, expired);
}

#define BOTH                                                                                                 \
    "order 2.7.3 attempt 4 timeout (timeout) half\n  publish; cart 5.8.1 attempt 9 timeout (timeout) \n  "   \
    "publish; "

static void test_each_step(void)
{
    begin();
    CU_ASSERT_EQUAL(store(NULL, 2, 30, REQUEST_STORED), THOLE_OK);
    check("not yet", "look; ", 30, 0);
    CU_ASSERT_EQUAL(store("look", 2, 0, REQUEST_STORED), THOLE_UNAVAILABLE);
    check("the look fails", "look; ", 0, 0);
    CU_ASSERT_EQUAL(store(NULL, 0, 0, REQUEST_STORED), THOLE_OK);
    check("a worker was first", "look; begin; rollback; ", 0, 0);
    CU_ASSERT_EQUAL(store("begin", 2, 0, REQUEST_STORED), THOLE_UNAVAILABLE);
    check("the rows fail", "look; begin; ", 0, 2);
    CU_ASSERT_EQUAL(store("open", 2, 0, REQUEST_STORED), THOLE_OK);
    check("no window", "look; begin; open; rollback; ", 1000, 0);
    CU_ASSERT_EQUAL(store("publish", 2, 0, REQUEST_STORED), THOLE_OK);
    check("they cannot be sent", "look; begin; open; " BOTH "rollback; ", 1000, 0);
    CU_ASSERT_EQUAL(store(NULL, 2, 0, REQUEST_UNKNOWN), THOLE_OK);
    check("they are not answered", "look; begin; " BOTH "rollback; ", 1000, 0);
    CU_ASSERT_EQUAL(store(NULL, 2, 0, REQUEST_STORED), THOLE_OK);
    check("all is well", "look; begin; " BOTH "commit; look again; ", 4000, 2);
    CU_ASSERT_EQUAL(store("commit", 2, 0, REQUEST_STORED), THOLE_UNAVAILABLE);
    check("the commit fails", "look; begin; " BOTH "commit; ", 0, 2);
    CU_ASSERT_EQUAL(store("look again", 2, 0, REQUEST_STORED), THOLE_UNAVAILABLE);
    check("the second look fails", "look; begin; " BOTH "commit; look again; ", 4000, 2);
    CU_ASSERT_EQUAL(play.open, 1);
    deadlines_destroy(shard.deadlines);
    CU_ASSERT_EQUAL(play.open, 0);
    deadlines_destroy(NULL);
}

static const struct thole_test tests[] = {{"each step", test_each_step}};
THOLE_TEST_MAIN("late_tries", tests)
