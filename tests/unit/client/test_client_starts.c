/* Many starts at once: what is sent for each, and what becomes of each answer of the stream; the window is
 * played. */
#include "client_internal.h"
#include "thole_cunit.h"
#include "wrap_mutexes.h"

enum { SENT_MAX = 64 };

static struct {
    struct thole_client client;
    request_done_fn *done;
    void *arg;
    const char *answers; /* of the stream, in turn: s stored, u unknown, b busy, r refused, f failed without a
                            code, x cannot be sent, l too large, - none */
    size_t sent, given, limit, opened;
    uint64_t now_ms;
    bool forbidden;
    thole_status source_status, answer_status;
    size_t source_fails_at;
    char log[1024];
    char requests[SENT_MAX][REQUEST_ID_BYTES + 1];
} play;

static thole_error err;

static void note(const char *text)
{
    size_t const at = strlen(play.log);
    (void)snprintf(play.log + at, sizeof play.log - at, "%s", text);
}

uint64_t __wrap_client_now_ms(void)
{
    return play.now_ms += 10;
}

size_t __wrap_connection_max_payload(const struct connection *connection)
{
    (void)connection;
    return 1024 * 1024;
}

thole_status __wrap_requests_open(struct connection *connection, size_t window, uint64_t timeout_ms,
                                  request_done_fn *done, void *arg, struct requests **ret,
                                  thole_error *reterr)
{
    (void)connection, (void)reterr;
    CU_ASSERT_TRUE(window >= 1000);
    CU_ASSERT_EQUAL(timeout_ms, 5000);
    play.done = done;
    play.arg = arg;
    play.opened++;
    *ret = (struct requests *)&play;
    return THOLE_OK;
}

uint64_t __wrap_connection_violations(struct connection *connection, char *ret_text, size_t cap)
{
    (void)connection, (void)ret_text, (void)cap;
    return 7;
}

thole_status __wrap_connection_explain_silence(struct connection *connection, uint64_t violations_before,
                                               const char *subject, thole_status status, thole_error *reterr)
{
    (void)connection;
    CU_ASSERT_EQUAL(violations_before, 7);
    CHECK_STR("of inboxes", subject, "thole.shop.in.");
    return play.forbidden ? thole_fail(reterr, THOLE_DENIED, "Permissions Violation") : status;
}

void __wrap_requests_close(struct requests *requests)
{
    play.opened -= requests != NULL;
}

thole_status __wrap_requests_publish(struct requests *requests, const struct publish *publish, uint64_t token,
                                     thole_error *reterr)
{
    static const char letters[] = "subrf";
    static const struct request_done dones[] = {{.result = REQUEST_STORED, .sequence = 1},
                                                {.result = REQUEST_UNKNOWN},
                                                {.result = REQUEST_BUSY},
                                                {.result = REQUEST_FAILED, .err_code = 10077},
                                                {.result = REQUEST_FAILED}};
    struct arena arena;
    struct message message;
    char text[200];
    char const answer = play.sent < strlen(play.answers) ? play.answers[play.sent] : 's';
    CU_ASSERT_PTR_EQUAL(requests, (struct requests *)&play);
    arena_init(&arena, 1 << 20);
    CU_ASSERT_EQUAL(message_decode(publish->body, &arena, &message, NULL), THOLE_OK);
    CU_ASSERT_EQUAL(message.kind, MESSAGE_START);
    CU_ASSERT_EQUAL(message.request_id.len, REQUEST_ID_BYTES);
    CU_ASSERT_TRUE(publish->message_id == NULL && !publish->expect_last && publish->headers_len == 0);
    if (play.sent < SENT_MAX)
        (void)snprintf(play.requests[play.sent], sizeof play.requests[0], "%.*s",
                       THOLE_FMT(message.request_id));
    (void)snprintf(text, sizeof text, "%s %.*s:%.*s@%u(%.*s) ", publish->subject, THOLE_FMT(message.instance),
                   THOLE_FMT(message.orchestration), message.version, THOLE_FMT(message.data));
    note(text);
    arena_release(&arena);
    play.sent++;
    if (answer == 'x' || answer == 'l')
        return thole_fail(reterr, answer == 'x' ? THOLE_UNAVAILABLE : THOLE_LIMIT, "cannot be sent");
    const char *const at = strchr(letters, answer);
    if (at != NULL) {
        struct request_done done = dones[at - letters];
        done.token = token;
        play.done(play.arg, &done);
    }
    return THOLE_OK;
}

static thole_status source(void *arg, thole_start_item *ret, thole_error *reterr)
{
    static char id[16];
    CU_ASSERT_PTR_EQUAL(arg, &play);
    CU_ASSERT_EQUAL(ret->size, sizeof *ret);
    if (play.source_status != THOLE_OK && play.given == play.source_fails_at)
        return thole_fail(reterr, play.source_status, "no more of this");
    if (play.given == play.limit)
        return THOLE_NOT_FOUND;
    (void)snprintf(id, sizeof id, "o%zu", ++play.given);
    ret->instance = thole_slice_from(id);
    ret->orchestration = THOLE_STR("ship");
    ret->input = THOLE_STR("in");
    ret->version = 3;
    ret->token = 100 + play.given;
    return THOLE_OK;
}

static thole_status answered(void *arg, uint64_t token, thole_slice instance, const thole_error *error)
{
    char text[200];
    CU_ASSERT_PTR_EQUAL(arg, &play);
    (void)snprintf(text, sizeof text, "%.*s=%llu:%s ", THOLE_FMT(instance), (unsigned long long)token,
                   thole_status_name(error->status));
    note(text);
    return play.answer_status;
}

static void begin(size_t limit, const char *answers)
{
    memset(&play, 0, sizeof play);
    memset(&err, 0, sizeof err);
    play.client.timeout_ms = 5000;
    play.client.payload_max = 1000;
    play.client.topology = (struct topology){.ns = "shop", .partitions = 1};
    play.answers = answers;
    play.limit = limit;
    play.now_ms = 1000;
}

static thole_status run(void)
{
    thole_status const status = thole_client_start_many(&play.client, source, answered, &play, &err);
    CU_ASSERT_EQUAL(play.opened, 0);
    return status;
}

#define SENT(n) "thole.shop.in.0.start.ship.o" n " o" n ":ship@3(in) "

static void test_each(void)
{
    begin(2, "ss");
    CU_ASSERT_EQUAL(run(), THOLE_OK);
    CHECK_STR("stored", play.log, SENT("1") SENT("2") "o1=101:OK o2=102:OK ");
    CU_ASSERT_NOT_EQUAL(strcmp(play.requests[0], play.requests[1]), 0);
    begin(2, "rs");
    CU_ASSERT_EQUAL(run(), THOLE_OK);
    CHECK_STR("one is refused", play.log, SENT("1") SENT("2") "o1=101:LIMIT o2=102:OK ");
    begin(2, "ls");
    CU_ASSERT_EQUAL(run(), THOLE_OK);
    CHECK_STR("one is too large", play.log, SENT("1") "o1=101:LIMIT " SENT("2") "o2=102:OK ");
    begin(0, "");
    CU_ASSERT_EQUAL(run(), THOLE_OK);
    CHECK_STR("none", play.log, "");
}

/* A start of unknown fate is sent again, under the same request id. */
static void test_again(void)
{
    static const char *const answers[] = {"us", "bs", "fs", "xs"};
    for (size_t i = 0; i < ARRAY_LEN(answers); i++) {
        begin(1, answers[i]);
        CU_ASSERT_EQUAL(run(), THOLE_OK);
        CHECK_STR(answers[i], play.log, SENT("1") SENT("1") "o1=101:OK ");
        CHECK_STR("the same request", play.requests[0], play.requests[1]);
        CU_ASSERT_TRUE(play.now_ms >= 1250);
    }
}

/* When its time is over the caller hears it, and no more are taken. */
static void test_given_up(void)
{
    begin(3, "ssuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuu");
    CU_ASSERT_EQUAL(run(), THOLE_UNAVAILABLE);
    CU_ASSERT_PTR_NOT_NULL(strstr(play.log, "o1=101:OK o2=102:OK "));
    CU_ASSERT_PTR_NOT_NULL(strstr(play.log, "o3=103:UNAVAILABLE "));
    CHECK_STR("why", err.text, "the inbox stream did not acknowledge the start in time");
    CU_ASSERT_TRUE(play.now_ms > 6000 && play.now_ms < 8000);
}

static void test_forbidden(void)
{
    begin(1, "uuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuu");
    play.forbidden = true;
    CU_ASSERT_EQUAL(run(), THOLE_DENIED);
    CU_ASSERT_PTR_NOT_NULL(strstr(play.log, "o1=101:DENIED "));
    CHECK_STR("why", err.text, "Permissions Violation");
}

static void test_stopped(void)
{
    begin(9, "");
    play.source_status = THOLE_APP;
    play.source_fails_at = 1;
    CU_ASSERT_EQUAL(run(), THOLE_APP);
    CHECK_STR("why", err.text, "no more of this");
    CHECK_STR("what was given is answered", play.log, SENT("1") "o1=101:OK ");
    begin(1, "");
    play.answer_status = THOLE_APP;
    CU_ASSERT_EQUAL(run(), THOLE_APP);
    CHECK_STR("why", err.text, "the caller has stopped it");
}

static const struct thole_test tests[] = {{"each", test_each},
                                          {"again", test_again},
                                          {"given up", test_given_up},
                                          {"forbidden", test_forbidden},
                                          {"stopped", test_stopped}};
THOLE_TEST_MAIN("client_starts", tests)
