/* Messages that are removed many at a time: the server's answers come from the test, one of them late. */
#include "link.h"
#include "reader.h"
#include "requests.h"
#include "thole_cunit.h"
#include "wrap_mutexes.h"
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

enum { MANY = 1000, WINDOW = 256, LATE_MS = 50 };

#define REMOVED "{\"type\":\"io.nats.jetstream.api.v1.stream_msg_delete_response\",\"success\":true}"
#define ANSWER_ERROR(code, err_code)                                                                         \
    "{\"type\":\"io.nats.jetstream.api.v1.stream_msg_delete_response\",\"error\":{\"code\":" #code           \
    ",\"err_code\":" #err_code ",\"description\":\"d\"}}"

static struct {
    request_done_fn *done;
    void *arg;
    size_t n, sent, most;
    atomic_size_t in_flight;
    const char *last;    /* the answer to the last one; NULL: none comes */
    size_t refuse_at;    /* this one cannot be sent; SIZE_MAX: each can */
    uint64_t anew[MANY]; /* removed one by one */
    size_t anew_len, open;
    pthread_t late;
    bool late_runs;
    uint64_t late_token;
} play;

uint64_t __wrap_connection_request_timeout_ms(const struct connection *connection)
{
    (void)connection;
    return 1000;
}

thole_status __wrap_requests_open(struct connection *connection, size_t window, uint64_t timeout_ms,
                                  request_done_fn *done, void *arg, struct requests **ret,
                                  thole_error *reterr)
{
    (void)connection, (void)timeout_ms, (void)reterr;
    CU_ASSERT_TRUE(window >= WINDOW);
    play.done = done;
    play.arg = arg;
    play.open++;
    *ret = NULL;
    return THOLE_OK;
}

void __wrap_requests_close(struct requests *requests)
{
    (void)requests;
    CU_ASSERT_EQUAL(atomic_load(&play.in_flight), 0); /* their answers would be lost */
    play.open--;
}

static void answer(uint64_t token, const char *text)
{
    struct request_done const done = {.result = text == NULL ? REQUEST_UNKNOWN : REQUEST_ANSWERED,
                                      .token = token,
                                      .body = text == NULL ? (thole_slice){0} : thole_slice_from(text)};
    atomic_fetch_sub(&play.in_flight, 1);
    play.done(play.arg, &done);
}

static void *answer_late(void *arg)
{
    (void)arg;
    (void)nanosleep(&(struct timespec){.tv_nsec = LATE_MS * 1000000L}, NULL);
    answer(play.late_token, play.last);
    return NULL;
}

thole_status __wrap_requests_send(struct requests *requests, const char *subject, thole_slice body,
                                  uint64_t token, thole_error *reterr)
{
    (void)requests, (void)body;
    CHECK_STR("subject", subject, "$JS.API.STREAM.MSG.DELETE.S");
    if (play.sent == play.refuse_at)
        return thole_fail(reterr, THOLE_UNAVAILABLE, "not connected");
    size_t const now = atomic_fetch_add(&play.in_flight, 1) + 1;
    play.most = now > play.most ? now : play.most;
    if (++play.sent == play.n) {
        play.late_token = token;
        play.late_runs = pthread_create(&play.late, NULL, answer_late, NULL) == 0;
    } else {
        answer(token, REMOVED);
    }
    return THOLE_OK;
}

thole_status __wrap_stream_delete(struct connection *connection, const char *stream, uint64_t sequence,
                                  thole_error *reterr)
{
    (void)connection, (void)reterr;
    CHECK_STR("stream", stream, "S");
    play.anew[play.anew_len++] = sequence;
    return THOLE_OK;
}

static thole_status remove_all(size_t n, const char *last, size_t refuse_at)
{
    static uint64_t sequences[MANY];
    thole_error err = {0};
    memset(&play, 0, sizeof play);
    play.n = n;
    play.last = last;
    play.refuse_at = refuse_at;
    for (size_t i = 0; i < n; i++)
        sequences[i] = 100 + i;
    thole_status const status = stream_delete_all(NULL, "S", sequences, n, &err);
    if (play.late_runs)
        (void)pthread_join(play.late, NULL);
    CU_ASSERT_EQUAL(play.open, 0);
    CU_ASSERT_EQUAL(status == THOLE_OK, err.text[0] == '\0');
    return status;
}

/* All of them are done when it says so, the last one, too. */
static void test_the_last_answer_counts(void)
{
    static const struct {
        const char *name, *last;
        thole_status status;
        size_t anew;
    } rows[] = {{"removed", REMOVED, THOLE_OK, 0},
                {"not answered", NULL, THOLE_UNAVAILABLE, 0},
                {"is not there", ANSWER_ERROR(400, 10043), THOLE_OK, 0},
                {"no message", ANSWER_ERROR(404, 10037), THOLE_OK, 0},
                {"unclear", ANSWER_ERROR(500, 10057), THOLE_OK, 1}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        for (size_t n = 3; n <= MANY; n += MANY - 3) {
            thole_status const status = remove_all(n, rows[i].last, SIZE_MAX);
            CHECK_STR(rows[i].name, thole_status_name(status), thole_status_name(rows[i].status));
            CU_ASSERT_EQUAL(play.sent, n);
            CU_ASSERT_EQUAL(play.anew_len, rows[i].anew);
            if (rows[i].anew == 1)
                CU_ASSERT_EQUAL(play.anew[0], 100 + n - 1);
        }
}

static void test_one_that_cannot_be_sent(void)
{
    CU_ASSERT_EQUAL(remove_all(10, REMOVED, 4), THOLE_UNAVAILABLE);
    CU_ASSERT_EQUAL(play.sent, 4);
}

static void test_few_go_one_by_one(void)
{
    for (size_t n = 0; n <= 2; n++) {
        CU_ASSERT_EQUAL(remove_all(n, REMOVED, SIZE_MAX), THOLE_OK);
        CU_ASSERT_EQUAL(play.sent, 0);
        CU_ASSERT_EQUAL(play.anew_len, n);
    }
}

static const struct thole_test tests[] = {
    {"the last answer counts", test_the_last_answer_counts},
    {"one that cannot be sent", test_one_that_cannot_be_sent},
    {"few go one by one", test_few_go_one_by_one},
};
THOLE_TEST_MAIN("removal", tests)
