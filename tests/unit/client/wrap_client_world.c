#include "wrap_client_world.h"
#include "clock.h"
#include "json_file.h"
#include "link.h"
#include "query_message.h"
#include "thole_cunit.h"
#include "watch.h"
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/random.h>
#include <time.h>

struct played_client play;

static const char some_subscription[LISTENED_MAX];

/* ---- subjects and records ---- */

bool played_matches(const char *pattern, const char *subject)
{
    while (*pattern != '\0' && *subject != '\0') {
        size_t const p = strcspn(pattern, "."), s = strcspn(subject, ".");
        if (!(p == 1 && *pattern == '*') && (p != s || strncmp(pattern, subject, p) != 0))
            return false;
        pattern += p + (pattern[p] == '.');
        subject += s + (subject[s] == '.');
    }
    return *pattern == *subject;
}

static const struct played_record *last_of(const char *pattern)
{
    const struct played_record *found = NULL;
    for (size_t i = 0; i < play.records_len; i++)
        if (played_matches(pattern, play.records[i].subject))
            found = &play.records[i];
    return found;
}

const char *played_word(const char **words, char room[32])
{
    size_t const len = *words == NULL ? 0 : strcspn(*words, " ");
    if (len == 0)
        return "well";
    (void)snprintf(room, 32, "%.*s", (int)len, *words);
    *words += len + ((*words)[len] == ' ');
    return room;
}

static void base64(struct buf *to, thole_slice bytes)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < bytes.len; i += 3) {
        uint32_t const n = (uint32_t)bytes.ptr[i] << 16 |
                           (uint32_t)(i + 1 < bytes.len ? bytes.ptr[i + 1] : 0) << 8 |
                           (i + 2 < bytes.len ? bytes.ptr[i + 2] : 0);
        buf_printf(to, "%c%c%c%c", digits[n >> 18], digits[n >> 12 & 63],
                   i + 1 < bytes.len ? digits[n >> 6 & 63] : '=', i + 2 < bytes.len ? digits[n & 63] : '=');
    }
}

#define TYPE "{\"type\":\"io.nats.jetstream.api.v1.stream_msg_get_response\","

/* The answer of $JS.API.STREAM.MSG.GET. */
static void answer_get(struct buf *to, const char *subject, const char *how)
{
    const struct played_record *const record = last_of(subject);
    buf_clear(to);
    if (strcmp(how, "unknown") == 0 || strcmp(how, "failed") == 0)
        buf_printf(to, TYPE "\"error\":{\"code\":500,\"err_code\":%d,\"description\":\"no quorum\"}}", 10008);
    else if (record == NULL)
        buf_printf(to,
                   TYPE "\"error\":{\"code\":404,\"err_code\":10037,\"description\":\"no message found\"}}");
    else {
        buf_printf(to, TYPE "\"message\":{\"subject\":\"%s\",\"seq\":%" PRIu64 ",\"data\":\"",
                   record->subject, record->sequence);
        base64(to, buf_bytes(&record->body));
        buf_printf(to, "\"}}");
    }
}

/* {"last_by_subj":"…"} */
static char *asked_subject(thole_slice body)
{
    char text[400], subject[300] = "";
    (void)snprintf(text, sizeof text, "%.*s", THOLE_FMT(body));
    CU_ASSERT_EQUAL_FATAL(sscanf(text, "{\"last_by_subj\":\"%299[^\"]", subject), 1);
    return strdup(subject);
}

/* ---- requests ---- */

size_t __wrap_connection_max_payload(const struct connection *connection)
{
    (void)connection;
    return 100000;
}

static thole_status fly(uint64_t token, char *get, const char *how, thole_error *reterr)
{
    if (strcmp(how, "offline") == 0 || strcmp(how, "full") == 0 || strcmp(how, "invalid") == 0) {
        free(get);
        return how[0] == 'o'   ? thole_fail(reterr, THOLE_UNAVAILABLE, "not connected")
               : how[0] == 'f' ? thole_fail(reterr, THOLE_LIMIT, "the window is full")
                               : thole_fail(reterr, THOLE_INVALID, "a bad subject");
    }
    CU_ASSERT_FATAL(play.flight_len < FLIGHT_MAX);
    play.flight[play.flight_len].token = token;
    play.flight[play.flight_len++].get = get;
    return THOLE_OK;
}

static bool is_refused_at_once(const char *words)
{
    return words != NULL && (strncmp(words, "offline", 7) == 0 || strncmp(words, "full", 4) == 0 ||
                             strncmp(words, "invalid", 7) == 0);
}

thole_status __wrap_requests_send(struct requests *requests, const char *subject, thole_slice body,
                                  uint64_t token, thole_error *reterr)
{
    char room[32];
    (void)requests;
    char *const get = asked_subject(body);
    (void)fprintf(play.said, "%6" PRIu64 " looks at %s of %s\n", play.now_ms, get,
                  subject + strlen("$JS.API.STREAM.MSG.GET."));
    return fly(token, get, is_refused_at_once(play.looks) ? played_word(&play.looks, room) : "well", reterr);
}

static void say_field(const char *name, thole_slice text)
{
    if (text.len > 0)
        (void)fprintf(play.said, " %s=%.*s", name,
                      THOLE_FMT(thole_slice_equal(text, THOLE_STR(OWN_REQUEST)) ? THOLE_STR("own") : text));
}

static void say_message(const char *subject, thole_slice body, bool once)
{
    struct arena arena;
    struct message m;
    arena_init(&arena, 100000);
    CU_ASSERT_EQUAL_FATAL(message_decode(body, &arena, &m, NULL), THOLE_OK);
    (void)fprintf(play.said, "%6" PRIu64 " publishes to %s: kind %d", play.now_ms, subject, m.kind);
    say_field("of", m.instance);
    say_field("orchestration", m.orchestration);
    say_field("data", m.data);
    say_field("request", m.request_id);
    say_field("event", m.event_name);
    say_field("event_data", m.event_data);
    say_field("type", m.error_type);
    if (m.execution != 0 || m.task != 0)
        (void)fprintf(play.said, " at=%" PRIu64 ".%" PRIu64 ".%u", m.execution, m.task, m.try_number);
    (void)fprintf(play.said, " status=%u version=%u fail=%d force=%d%s\n", m.status, m.version, m.fail,
                  m.force, once ? " once" : "");
    arena_release(&arena);
}

thole_status __wrap_requests_publish(struct requests *requests, const struct publish *publish, uint64_t token,
                                     thole_error *reterr)
{
    char room[32];
    (void)requests;
    CU_ASSERT_TRUE(!publish->expect_last && publish->headers_len == 0);
    say_message(publish->subject, publish->body, publish->message_id != NULL);
    return fly(token, NULL, is_refused_at_once(play.publishes) ? played_word(&play.publishes, room) : "well",
               reterr);
}

void played_answer(const char *how)
{
    static const char *const hows[] = {[REQUEST_STORED] = "well",
                                       [REQUEST_UNKNOWN] = "unknown",
                                       [REQUEST_BUSY] = "busy",
                                       [REQUEST_REFUSED] = "refused",
                                       [REQUEST_FAILED] = "failed"};
    struct request_done done = {.sequence = 77, .err_code = 10071, .body = THOLE_STR("its text")};
    struct buf body;
    buf_init(&body, RECORD_BYTES_MAX);
    CU_ASSERT_FATAL(play.flight_len > 0);
    char *const get = play.flight[0].get;
    done.token = play.flight[0].token;
    play.flight_len--;
    memmove(play.flight, play.flight + 1, play.flight_len * sizeof play.flight[0]);
    done.result = REQUEST_STORED;
    while (get == NULL && strcmp(hows[done.result], how) != 0)
        done.result++;
    done.err_code = strcmp(how, "failed") == 0 ? 0 : done.err_code;
    if (get != NULL) {
        answer_get(&body, get, how);
        done.result = strcmp(how, "unknown") == 0 ? REQUEST_UNKNOWN : REQUEST_ANSWERED;
        done.body = buf_bytes(&body);
    }
    watches_on_done(&play.client, &done);
    buf_release(&body);
    free(get);
}

static thole_status answer_query(const char *how, struct buf *to, thole_error *reterr)
{
    bool const absent = strcmp(how, "absent") == 0;
    struct query_answer const answer = {.status = absent                        ? THOLE_NOT_FOUND
                                                  : strcmp(how, "invalid") == 0 ? THOLE_INVALID
                                                                                : THOLE_OK,
                                        .data = absent ? THOLE_STR("there is no such instance")
                                                       : THOLE_STR("half way")};
    if (strcmp(how, "away") == 0)
        return thole_fail(reterr, THOLE_UNAVAILABLE, "nobody listens");
    if (strcmp(how, "denied") == 0)
        return thole_fail(reterr, THOLE_DENIED, "no permission");
    buf_clear(to);
    if (strcmp(how, "garbage") == 0)
        buf_text(to, "garbage");
    else
        CU_ASSERT_EQUAL(query_answer_encode(&answer, to), THOLE_OK);
    return THOLE_OK;
}

/* A call that finds no leader is not made again. */
uint64_t __wrap_connection_request_timeout_ms(const struct connection *connection)
{
    (void)connection;
    return 0;
}

thole_status __wrap_connection_request(struct connection *connection, const char *subject, thole_slice body,
                                       struct buf *ret, thole_error *reterr)
{
    char room[32];
    (void)connection;
    const char *const how = played_word(&play.reads, room);
    if (strncmp(subject, "$JS", 3) != 0) {
        (void)fprintf(play.said, "%6" PRIu64 " asks %s (%zu bytes): %s\n", play.now_ms, subject, body.len,
                      how);
        return answer_query(how, ret, reterr);
    }
    char *const get = asked_subject(body);
    (void)fprintf(play.said, "%6" PRIu64 " reads the last of %s: %s\n", play.now_ms, get, how);
    answer_get(ret, get, how);
    free(get);
    return THOLE_OK;
}

thole_status __wrap_stream_walk(struct connection *connection, const char *stream, const char *filter,
                                uint64_t from, uint64_t to, stream_read_fn *each, void *arg,
                                thole_error *reterr)
{
    char room[32];
    thole_status status = THOLE_OK;
    (void)connection;
    const char *const how = played_word(&play.reads, room);
    (void)fprintf(play.said, "%6" PRIu64 " reads %s %s from %" PRIu64 " to %" PRId64 ": %s\n", play.now_ms,
                  stream, filter, from, (int64_t)to, how);
    for (size_t i = 0; i < play.records_len && status == THOLE_OK; i++) {
        const struct played_record *const record = &play.records[i];
        if (record->sequence >= from && record->sequence <= to && played_matches(filter, record->subject))
            status = each(arg, record->sequence, thole_slice_from(record->subject), buf_bytes(&record->body));
    }
    return status == THOLE_OK && strcmp(how, "well") != 0
               ? thole_fail(reterr, THOLE_UNAVAILABLE, "it breaks off")
               : status;
}

/* ---- notices ---- */

thole_status __wrap_connection_subscribe(struct connection *connection, const char *subject,
                                         delivery_fn *each, void *arg, struct subscription **ret,
                                         thole_error *reterr)
{
    size_t i = 0;
    (void)connection;
    (void)fprintf(play.said, "%6" PRIu64 " listens to %s\n", play.now_ms, subject);
    if (strstr(subject, "deaf") != NULL)
        return thole_fail(reterr, THOLE_DENIED, "no permission");
    while (i < LISTENED_MAX && play.listened[i].each != NULL)
        i++;
    CU_ASSERT_FATAL(i < LISTENED_MAX);
    (void)snprintf(play.listened[i].subject, sizeof play.listened[i].subject, "%s", subject);
    play.listened[i].each = each;
    play.listened[i].arg = arg;
    play.listens++;
    *ret = (struct subscription *)(uintptr_t)&some_subscription[i];
    return THOLE_OK;
}

void __wrap_subscription_close(struct subscription *subscription)
{
    if (subscription == NULL)
        return;
    size_t const i = (size_t)((const char *)subscription - some_subscription);
    CU_ASSERT_FATAL(i < LISTENED_MAX && play.listened[i].each != NULL);
    play.listened[i].each = NULL;
    play.listens--;
}

/* A published message arrives at once. */
thole_status __wrap_connection_publish(struct connection *connection, const char *subject,
                                       const struct header *headers, size_t headers_len, thole_slice body,
                                       thole_error *reterr)
{
    natsMsg *message = NULL;
    (void)connection;
    THOLE_TRY(link_message(subject, NULL, headers, headers_len, body, &message, reterr));
    struct delivery const delivery = link_delivery(message);
    for (size_t i = 0; i < LISTENED_MAX; i++)
        if (play.listened[i].each != NULL && played_matches(play.listened[i].subject, subject))
            play.listened[i].each(play.listened[i].arg, &delivery);
    natsMsg_Destroy(message);
    return THOLE_OK;
}

/* ---- time ---- */

uint64_t __wrap_connection_violations(struct connection *connection, char *ret_text, size_t cap)
{
    (void)connection;
    (void)snprintf(ret_text, cap, "%s", "");
    return 0;
}

thole_status __wrap_connection_explain_silence(struct connection *connection, uint64_t violations_before,
                                               const char *subject, thole_status status, thole_error *reterr)
{
    (void)connection, (void)violations_before, (void)subject, (void)reterr;
    return status;
}

const struct connection_waiting *__wrap_connection_waiting(const struct connection *connection)
{
    (void)connection;
    return NULL;
}

uint64_t __wrap_clock_monotonic_ms(void)
{
    return play.now_ms;
}

static void sleep_until(uint64_t ms)
{
    play.now_ms = ms > play.now_ms ? ms : play.now_ms;
}

int __wrap_nanosleep(const struct timespec *pause, struct timespec *rest)
{
    (void)rest;
    sleep_until(play.now_ms + (uint64_t)pause->tv_nsec / 1000000);
    return 0;
}

/* The next thing that happens; false: nothing will, before @p until. */
static bool next_happens(uint64_t until)
{
    char room[32];
    char *end = NULL;
    if (play.flight_len > 0) {
        const char *const how = played_word(play.flight[0].get == NULL ? &play.publishes : &play.looks, room);
        if (strcmp(how, "never") != 0)
            played_answer(how);
        else
            sleep_until(until);
        return strcmp(how, "never") != 0;
    }
    if (play.step == play.steps_len)
        return false;
    uint64_t const at = strtoull(play.steps[play.step], &end, 10);
    if (at > until)
        return false;
    sleep_until(at);
    play.happen(end + 1);
    play.step++;
    return true;
}

int __wrap_pthread_cond_timedwait(pthread_cond_t *changed, pthread_mutex_t *lock,
                                  const struct timespec *until)
{
    uint64_t const until_ms = (uint64_t)until->tv_sec * 1000 + (uint64_t)until->tv_nsec / 1000000;
    (void)changed;
    CU_ASSERT_FATAL(play.sleeps++ < 1000); /* else for ever */
    (void)pthread_mutex_unlock(lock);
    bool const happened = next_happens(until_ms);
    (void)pthread_mutex_lock(lock);
    if (!happened)
        sleep_until(until_ms);
    return happened ? 0 : ETIMEDOUT;
}

/* Checks that only locked mutexes are unlocked, and only unlocked ones locked. */
int __real_pthread_mutex_lock(pthread_mutex_t *lock);
int __wrap_pthread_mutex_lock(pthread_mutex_t *lock)
{
    int const failed = __real_pthread_mutex_lock(lock);
    CU_ASSERT_EQUAL_FATAL(failed, 0);
    return failed;
}

int __real_pthread_mutex_unlock(pthread_mutex_t *lock);
int __wrap_pthread_mutex_unlock(pthread_mutex_t *lock)
{
    int const failed = __real_pthread_mutex_unlock(lock);
    CU_ASSERT_EQUAL_FATAL(failed, 0);
    return failed;
}

ssize_t __wrap_getrandom(void *to, size_t len, unsigned flags)
{
    (void)flags;
    memset(to, 0x5a, len);
    return (ssize_t)len;
}

/* ---- begin, end ---- */

void played_client_begin(FILE *said)
{
    pthread_mutexattr_t checking;
    memset(&play, 0, sizeof play);
    play.said = said;
    (void)snprintf(play.client.topology.ns, sizeof play.client.topology.ns, "shop");
    play.client.topology.partitions = 1;
    play.client.topology.payload_max = play.client.payload_max = 1000;
    play.client.timeout_ms = 1000;
    (void)pthread_mutexattr_init(&checking);
    (void)pthread_mutexattr_settype(&checking, PTHREAD_MUTEX_ERRORCHECK);
    (void)pthread_mutex_init(&play.client.lock, &checking);
    (void)pthread_mutex_init(&play.client.listening.turn, &checking);
    (void)pthread_mutexattr_destroy(&checking);
}

void played_client_end(void)
{
    while (play.flight_len > 0)
        played_answer("unknown");
    for (size_t i = 0; i < play.records_len; i++)
        buf_release(&play.records[i].body);
    (void)fprintf(play.said, "%s%s%s", play.listens == 0 ? "" : "! it listens still\n",
                  play.client.listening.listeners == 0 && play.client.listening.together_users == 0
                      ? ""
                      : "! listeners are left\n",
                  play.client.watches.first == NULL ? "" : "! a watch is left\n");
    CU_ASSERT_EQUAL(pthread_mutex_trylock(&play.client.lock), 0);
    CU_ASSERT_EQUAL(pthread_mutex_trylock(&play.client.listening.turn), 0);
    (void)pthread_mutex_unlock(&play.client.lock);
    (void)pthread_mutex_unlock(&play.client.listening.turn);
    (void)pthread_mutex_destroy(&play.client.lock);
    (void)pthread_mutex_destroy(&play.client.listening.turn);
}
