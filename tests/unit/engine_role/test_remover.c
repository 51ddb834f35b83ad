/* The requests of the remover to a server, and its use of the answers: a stream that the test plays answers
 * within the call, and can be cut off, refuse, or be silent. */
#include "event.h"
#include "reader.h"
#include "remover.h"
#include "removing.h"
#include "requests.h"
#include "subject_list.h"
#include "thole_cunit.h"
#include "wrap_shard_world.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define LIST_COUNTED UINT64_MAX
enum { STORED_MAX = 16, BELOW = 8, WAIT_S = 10, TEXT_MAX = 2048 };

static struct {
    const char *subjects[STORED_MAX]; /* by sequence; NULL: none */
    uint64_t before[STORED_MAX];
    uint64_t last;
    const char *fails;              /* the API call that is not answered */
    uint64_t list_total, list_last; /* list_total: LIST_COUNTED: as many as there are */
    char said[TEXT_MAX];
    pthread_mutex_t lock;
    pthread_cond_t finished;
    struct removing_place known[REMOVING_KNOWN];
    size_t known_len;
    thole_status status;
    bool done;
    bool holds;       /* no request is answered, and the first one returns when all removals are submitted */
    bool submitted;   /* they are */
    size_t in_flight; /* requests that are held */
} play = {.lock = PTHREAD_MUTEX_INITIALIZER, .finished = PTHREAD_COND_INITIALIZER};

static struct {
    request_done_fn *done;
    void *arg;
} window;

static void say(const char *what, unsigned long long sequence)
{
    size_t const len = strlen(play.said);
    (void)snprintf(play.said + len, sizeof play.said - len, "%s%s %llu", len == 0 ? "" : ", ", what,
                   sequence);
}

/* ---- the window ---- */

thole_status __wrap_requests_open(struct connection *connection, size_t size, uint64_t timeout_ms,
                                  request_done_fn *done, void *arg, struct requests **ret,
                                  thole_error *reterr)
{
    (void)connection, (void)size, (void)timeout_ms, (void)ret, (void)reterr;
    window.done = done;
    window.arg = arg;
    return THOLE_OK;
}

void __wrap_requests_close(struct requests *requests)
{
    (void)requests;
}

static void hold_request(void)
{
    pthread_mutex_lock(&play.lock);
    play.in_flight++;
    pthread_cond_broadcast(&play.finished);
    while (!play.submitted)
        pthread_cond_wait(&play.finished, &play.lock);
    pthread_mutex_unlock(&play.lock);
}

static thole_status answer(const char *api, const char *body, uint64_t token)
{
    bool const silent = play.fails != NULL && strstr(api, play.fails) != NULL;
    window.done(window.arg, &(struct request_done){.result = silent ? REQUEST_UNKNOWN : REQUEST_ANSWERED,
                                                   .token = token,
                                                   .body = thole_slice_from(body)});
    return THOLE_OK;
}

static bool matches(const char *subject, const char *filter)
{
    size_t const len = strlen(filter);
    return subject != NULL &&
           (filter[len - 1] == '*' ? strncmp(subject, filter, len - 1) == 0 : strcmp(subject, filter) == 0);
}

thole_status __wrap_requests_send(struct requests *requests, const char *subject, thole_slice body,
                                  uint64_t token, thole_error *reterr)
{
    char text[TEXT_MAX];
    size_t len = 0;
    (void)requests, (void)reterr;
    CHECK_STR("api", subject, "$JS.API.STREAM.INFO.HIST");
    CU_ASSERT_PTR_NOT_NULL(strstr((const char *)body.ptr, "\"thole.shop.hist.0.order.*\""));
    say("list", 0);
    len +=
        (size_t)snprintf(text, sizeof text, "{\"type\":\"info\",\"state\":{\"last_seq\":%llu,\"subjects\":{",
                         (unsigned long long)play.list_last);
    uint64_t n = 0;
    if (play.holds) {
        hold_request();
        return THOLE_OK;
    }
    for (uint64_t s = 1; s <= play.last; s++) {
        uint64_t count = 0, first = 0;
        for (uint64_t k = play.last; k >= 1; k--)
            if (play.subjects[s] != NULL && matches(play.subjects[k], play.subjects[s])) {
                count++;
                first = k;
            }
        if (first == s && matches(play.subjects[s], "thole.shop.hist.0.order.*"))
            len += (size_t)snprintf(text + len, sizeof text - len, "%s\"%s\":%llu", n++ == 0 ? "" : ",",
                                    play.subjects[s], (unsigned long long)count);
    }
    (void)snprintf(text + len, sizeof text - len, "}},\"total\":%llu}",
                   (unsigned long long)(play.list_total == LIST_COUNTED ? n : play.list_total));
    return answer(subject, text, token);
}

static void write_record(struct buf *to, uint64_t sequence)
{
    struct event const event = {.id = 1, .kind = EVENT_ACTIVITY_COMPLETED, .ref = 1, .try_number = 1};
    struct record record = {.kind = RECORD_TURN,
                            .epoch = 1,
                            .n = sequence,
                            .previous = {{1}},
                            .turn = {.instance = THOLE_STR("order"),
                                     .execution = 1,
                                     .number = 1,
                                     .ran = true,
                                     .events = &event,
                                     .events_len = 1}};
    if (play.before[sequence] > 0)
        record.previous_of_instance = (struct record_link){{{2}}, play.before[sequence]};
    CU_ASSERT_EQUAL(record_encode(&record, to), THOLE_OK);
}

thole_status __wrap_requests_get(struct requests *requests, const char *subject, thole_slice body,
                                 uint64_t token, thole_error *reterr)
{
    unsigned long long sequence = 0;
    struct buf bytes;
    char text[TEXT_MAX];
    (void)requests, (void)reterr;
    CHECK_STR("api", subject, "$JS.API.DIRECT.GET.HIST");
    (void)snprintf(text, sizeof text, "%.*s", (int)body.len, (const char *)body.ptr);
    if (strstr(text, "last_by_subj") != NULL || strstr(text, "next_by_subj") != NULL) {
        bool const is_last = strstr(text, "last_by_subj") != NULL;
        char *const wanted = strstr(text, ".hist.");
        *strchr(wanted, '"') = '\0';
        for (uint64_t s = 1; s <= play.last; s++)
            if (play.subjects[s] != NULL && strcmp(strstr(play.subjects[s], ".hist."), wanted) == 0 &&
                (is_last || sequence == 0))
                sequence = s;
        say(is_last ? "last" : "first", sequence);
    } else {
        CU_ASSERT_EQUAL(sscanf(text, "{\"seq\":%llu}", &sequence), 1);
        say("at", sequence);
        sequence = sequence <= play.last && play.subjects[sequence] != NULL ? sequence : 0;
    }
    struct request_done done = {.result = REQUEST_ANSWERED, .token = token, .sequence = sequence};
    buf_init(&bytes, RECORD_BYTES_MAX);
    if (sequence > 0) {
        write_record(&bytes, sequence);
        done.subject = thole_slice_from(play.subjects[sequence]);
        done.body = buf_bytes(&bytes);
    }
    if (play.fails != NULL && strstr(subject, play.fails) != NULL)
        done = (struct request_done){.result = REQUEST_UNKNOWN, .token = token};
    window.done(window.arg, &done);
    buf_release(&bytes);
    return THOLE_OK;
}

void __wrap_connection_cork(struct connection *connection)
{
    (void)connection;
}

void __wrap_connection_uncork(struct connection *connection)
{
    (void)connection;
}

thole_status __wrap_stream_delete_tell(struct connection *connection, const char *stream, uint64_t sequence,
                                       thole_error *reterr)
{
    (void)connection, (void)reterr;
    CHECK_STR("stream", stream, "HIST");
    say("tell", sequence);
    if (play.fails == NULL || strcmp(play.fails, "TELL") != 0)
        play.subjects[sequence] = NULL;
    return THOLE_OK;
}

thole_status __wrap_stream_delete_send(struct requests *requests, const char *stream, uint64_t sequence,
                                       uint64_t token, thole_error *reterr)
{
    (void)requests, (void)reterr;
    CHECK_STR("stream", stream, "HIST");
    say("delete", sequence);
    bool const there = play.subjects[sequence] != NULL;
    if (play.fails == NULL || strcmp(play.fails, "DELETE") != 0)
        play.subjects[sequence] = NULL;
    return answer("DELETE",
                  there ? "{\"type\":\"delete\",\"success\":true}"
                        : "{\"type\":\"delete\",\"error\":{\"code\":404,\"err_code\":10037}}",
                  token);
}

thole_status __wrap_stream_read(struct connection *connection, const char *stream, const char *filter,
                                uint64_t from, uint64_t to, stream_read_fn *each, void *arg,
                                thole_error *reterr)
{
    (void)connection, (void)stream;
    say("scan to", to);
    CU_ASSERT_EQUAL(from, 1);
    if (play.fails != NULL && strcmp(play.fails, "SCAN") == 0)
        return thole_fail(reterr, THOLE_UNAVAILABLE, "cut off");
    for (uint64_t s = from; s <= to && s <= play.last; s++)
        if (matches(play.subjects[s], filter))
            THOLE_TRY(each(arg, s, thole_slice_from(play.subjects[s]), THOLE_STR("")));
    return THOLE_OK;
}

void __wrap_request_finish(struct request *request)
{
    pthread_mutex_lock(&play.lock);
    play.status = request->status;
    play.done = true;
    pthread_cond_signal(&play.finished);
    pthread_mutex_unlock(&play.lock);
    request_destroy(request);
}

/* ---- tests ---- */

#define ORDER "thole.shop.hist.0.order."
#define OTHER "thole.shop.hist.0.order-2.1"

static void store(uint64_t sequence, const char *subject, uint64_t before)
{
    play.subjects[sequence] = subject;
    play.before[sequence] = before;
    play.last = play.last < sequence ? sequence : play.last;
}

/* Two turns, among another's; the deletion. */
static void play_begin(void)
{
    shard_world_begin(request_rules);
    (void)snprintf(world.engine.topology.ns, sizeof world.engine.topology.ns, "shop");
    world.owned.hist_stream = (char *)"HIST";
    memset(play.subjects, 0, sizeof play.subjects);
    play.said[0] = '\0';
    play.fails = NULL;
    play.done = false;
    play.last = 0;
    play.list_total = 2;
    play.list_last = BELOW + 1;
    play.known_len = 0;
    store(2, ORDER "1", 0);
    store(3, OTHER, 0);
    store(5, ORDER "1", 2);
    store(6, OTHER, 3);
    store(BELOW, ORDER "deleted", 5);
}

static thole_status play_removal(struct executions executions)
{
    struct remover *remover = NULL;
    struct timespec until;
    CU_ASSERT_EQUAL_FATAL(remover_start(&world.engine, &remover, NULL), THOLE_OK);
    struct request *const request = request_create(REQ_REMOVE_HISTORY, &world.shard, &world.owned);
    request->removal = (struct asked_removal){.instance = THOLE_STR("order"),
                                              .executions = executions,
                                              .below = BELOW,
                                              .places = play.known,
                                              .places_len = play.known_len};
    (void)clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += WAIT_S;
    remover_submit(remover, request);
    pthread_mutex_lock(&play.lock);
    while (!play.done && pthread_cond_timedwait(&play.finished, &play.lock, &until) == 0)
        continue;
    CU_ASSERT_TRUE(play.done);
    pthread_mutex_unlock(&play.lock);
    remover_stop(remover);
    return play.status;
}

/* The requests in flight, of so many removals of which none is answered, the last ones urgent. */
static size_t in_flight_of(size_t removals, size_t urgent, size_t wanted)
{
    struct remover *remover = NULL;
    struct timespec until;
    play_begin();
    play.holds = true;
    play.submitted = false;
    play.in_flight = 0;
    CU_ASSERT_EQUAL_FATAL(remover_start(&world.engine, &remover, NULL), THOLE_OK);
    for (size_t i = 0; i < removals; i++) {
        struct request *const request = request_create(REQ_REMOVE_HISTORY, &world.shard, &world.owned);
        request->removal = (struct asked_removal){
            .instance = THOLE_STR("order"), .below = BELOW, .urgent = i + urgent >= removals};
        remover_submit(remover, request);
    }
    (void)clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += WAIT_S;
    pthread_mutex_lock(&play.lock);
    play.submitted = true;
    pthread_cond_broadcast(&play.finished);
    while (play.in_flight < wanted && pthread_cond_timedwait(&play.finished, &play.lock, &until) == 0)
        continue;
    pthread_mutex_unlock(&play.lock);
    remover_stop(remover); /* its thread has sent all that it may */
    play.holds = false;
    return play.in_flight;
}

/* Few requests are in flight, so that others have the server; all of them when turns would wait for it. */
static void test_urgent_removals(void)
{
    enum { REMOVALS = 40, FREE = 16 };
    CU_ASSERT_EQUAL(in_flight_of(REMOVALS, 0, FREE), FREE);
    CU_ASSERT_EQUAL(in_flight_of(REMOVALS, 1, REMOVALS), REMOVALS);
}

static void test_a_deletion(void)
{
    play_begin();
    CU_ASSERT_EQUAL(play_removal((struct executions){0, 0}), THOLE_OK);
    CHECK_STR("said", play.said, "list 0, last 5, at 2, delete 2, delete 5");
    CU_ASSERT_PTR_NOT_NULL(play.subjects[3]);
    CU_ASSERT_PTR_NOT_NULL(play.subjects[6]);
    CU_ASSERT_PTR_NOT_NULL(play.subjects[BELOW]);
}

/* Of several the last one is answered; the list says whether the others are gone. */
static void test_several(void)
{
    play_begin();
    play.list_total = LIST_COUNTED;
    store(4, ORDER "1", 2);
    store(5, ORDER "1", 4);
    CU_ASSERT_EQUAL(play_removal((struct executions){0, 0}), THOLE_OK);
    CHECK_STR("said", play.said, "list 0, last 5, at 4, at 2, tell 2, tell 4, delete 5, list 0");
    play_begin();
    play.list_total = LIST_COUNTED;
    store(4, ORDER "1", 2);
    store(5, ORDER "1", 4);
    play.fails = "TELL";
    CU_ASSERT_EQUAL(play_removal((struct executions){0, 0}), THOLE_OK);
    CHECK_STR(
        "said", play.said,
        "list 0, last 5, at 4, at 2, tell 2, tell 4, delete 5, list 0, last 4, at 2, delete 2, delete 4");
}

/* They go before anything is listed, if the last one is where it was. */
static void test_known_places(void)
{
    play_begin();
    play.list_total = LIST_COUNTED;
    play.known[0] = (struct removing_place){1, 2};
    play.known[1] = (struct removing_place){1, 5};
    play.known_len = 2;
    CU_ASSERT_EQUAL(play_removal((struct executions){0, 0}), THOLE_OK);
    CHECK_STR("said", play.said, "last 5, delete 2, delete 5, list 0");
    play_begin();
    play.list_total = LIST_COUNTED;
    play.known[1].sequence = 4;
    play.known_len = 2;
    CU_ASSERT_EQUAL(play_removal((struct executions){0, 0}), THOLE_OK);
    CHECK_STR("said", play.said, "last 5, list 0, last 5, at 2, delete 2, delete 5");
    CU_ASSERT_PTR_NOT_NULL(play.subjects[3]);
}

/* Another instance's record stands there, whose id begins likewise; nothing stands there. */
static void test_wrong_places(void)
{
    static const uint64_t places[] = {3, 4, 1, 7, 15};
    for (size_t i = 0; i < ARRAY_LEN(places); i++) {
        play_begin();
        play.before[5] = places[i];
        CU_ASSERT_EQUAL(play_removal((struct executions){0, 0}), THOLE_OK);
        CU_ASSERT_PTR_NOT_NULL(strstr(play.said, "scan to 7, delete 2, delete 5"));
        CU_ASSERT_PTR_NOT_NULL(play.subjects[3]);
        CU_ASSERT_PTR_NOT_NULL(play.subjects[6]);
    }
}

static void test_a_pruning(void)
{
    play_begin();
    store(5, ORDER "2", 2);
    store(7, ORDER "3", 5);
    store(BELOW, ORDER "3", 7);
    play.list_total = 3;
    CU_ASSERT_EQUAL(play_removal((struct executions){1, 2}), THOLE_OK);
    CHECK_STR("said", play.said, "list 0, last 5, delete 5");
}

static void test_old_deletion(void)
{
    play_begin();
    store(1, ORDER "deleted", 0);
    play.list_total = 2;
    CU_ASSERT_EQUAL(play_removal((struct executions){0, 0}), THOLE_OK);
    CHECK_STR("said", play.said, "list 0, first 1, delete 1, last 5, at 2, delete 2, delete 5");
}

/* Each fails once; then nothing is lost, and the next one does the rest. */
static void test_calls_that_fail(void)
{
    static const char *const calls[] = {"STREAM.INFO", "DIRECT.GET", "DELETE"};
    for (size_t i = 0; i < ARRAY_LEN(calls); i++) {
        play_begin();
        play.fails = calls[i];
        CU_ASSERT_EQUAL(play_removal((struct executions){0, 0}), THOLE_UNAVAILABLE);
        CU_ASSERT_PTR_NOT_NULL(play.subjects[2]);
        play.fails = NULL;
        play.done = false;
        CU_ASSERT_EQUAL(play_removal((struct executions){0, 0}), THOLE_OK);
        CU_ASSERT_PTR_NULL(play.subjects[2]);
        CU_ASSERT_PTR_NULL(play.subjects[5]);
    }
    play_begin();
    play.before[5] = 0;
    play.fails = "SCAN";
    CU_ASSERT_EQUAL(play_removal((struct executions){0, 0}), THOLE_UNAVAILABLE);
}

/* A former leader, and an empty list, are no proof that no records exist. */
static void test_lists_that_prove_nothing(void)
{
    play_begin();
    play.list_last = BELOW - 1;
    CU_ASSERT_EQUAL(play_removal((struct executions){0, 0}), THOLE_UNAVAILABLE);
    CHECK_STR("said", play.said, "list 0");
    play_begin();
    play.list_total = 0;
    memset(play.subjects, 0, sizeof play.subjects);
    CU_ASSERT_EQUAL(play_removal((struct executions){0, 0}), THOLE_UNAVAILABLE);
}

static const struct thole_test tests[] = {
    {"urgent removals", test_urgent_removals},
    {"a deletion", test_a_deletion},
    {"several", test_several},
    {"known places", test_known_places},
    {"wrong places", test_wrong_places},
    {"a pruning", test_a_pruning},
    {"an old deletion", test_old_deletion},
    {"calls that fail", test_calls_that_fail},
    {"lists that prove nothing", test_lists_that_prove_nothing},
};
THOLE_TEST_MAIN("remover", tests)
