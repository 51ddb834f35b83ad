/* A whole binder, from what the rules and messages say to what the binder sends and answers.
 * binder.transcript has scripts ("$ …") of steps with "|" between them, each followed by what the binder did,
 * by its clock in milliseconds. With THOLE_WRITE_TRANSCRIPT=1 in the environment the file is written again,
 * to be read and committed. Steps:
 *   MS STEP                       the clock goes to MS, with all that is due before, then STEP
 *   connect, topology, bucket, client, requests, listen, watch, get, consumer, pull, state, forget, send,
 *   signal, asked, publish WORD…  how the next such calls end, in order; later ones succeed
 *   payload N; inputs N; nothreads; threads; stopping; down; up; die N (for --test-die-at)
 *   start; stop                   the binder starts, stops; brief: it starts, without the lines that are
 *                                 always the same
 *   rule NAME REVISION ACTION STREAM [new]; text NAME REVISION [VALUE]    an entry of the bucket
 *   take RULE SEQUENCE SUBJECT [BODY]         a message of a stream
 *   with NAME: VALUE                          a header of the next message or call
 *   done SEQUENCE stored|busy|unknown|failed|refused; refused RULE
 *   call ORCHESTRATION [BODY]                 a call; tell: one without a reply subject
 *   counts                                    what its metrics show
 * In bodies #N stands for N bytes. */
#include "bind_rule.h"
#include "binder_host.h"
#include "memory.h"
#include "metrics.h"
#include "thole_cunit.h"
#include "transcript.h"
#include "wrap_binder_world.h"
#include "wrap_mutexes.h"
#include "wrap_played.h"
#include <inttypes.h>
#include <stdlib.h>

#define TRANSCRIPT THOLE_SOURCE_DIR "/tests/unit/bindings/binder.transcript"
enum { BODY_BYTES = 2 << 20, HEADERS_BYTES = 4096 };

static struct binder_host *binder;
static struct metrics *metrics;
static unsigned die_at, calls;
static char body[BODY_BYTES], headers[HEADERS_BYTES];

/* ---- the binder ---- */

static bool is_stopping(void *arg)
{
    (void)arg;
    return binder_world.stopping;
}
static const struct stop_check stop = {.requested = is_stopping};

static void *start_main(void *arg)
{
    struct host_options const options = {.nats_url = "nats://here",
                                         .nats_creds = "creds",
                                         .nats_ca = "ca",
                                         .nats_cert = "cert",
                                         .nats_key = "key",
                                         .nats_server_name = "server",
                                         .nats_inbox = "inbox",
                                         .postgres = "postgres://here",
                                         .ns = "shop",
                                         .node = "bind",
                                         .bind_die_at = die_at,
                                         .metrics = metrics};
    thole_error error = {.status = THOLE_OK};
    (void)arg;
    thole_status const status = binder_host_start(&options, &stop, &binder, &error);
    if (status != THOLE_OK)
        played_say("did not start: %s %s", thole_status_name(status), error.text);
    CU_ASSERT_EQUAL(status == THOLE_OK, binder != NULL);
    return NULL;
}

static void *stop_main(void *arg)
{
    (void)arg;
    binder_host_stop(binder);
    binder = NULL;
    played_say("has stopped");
    return NULL;
}

static void say_counts(void)
{
    static const struct {
        enum metric metric;
        size_t labels;
        const char *name;
    } rows[] = {{METRIC_BINDER_MESSAGES, BINDER_PUT_BACK + 1, "messages"},
                {METRIC_BINDER_IN_FLIGHT, 1, "in flight"},
                {METRIC_BINDER_RULES, BINDER_RULES_FAILING + 1, "rules"},
                {METRIC_BINDER_LAG, BINDER_LAG_ACK_PENDING + 1, "lag"},
                {METRIC_NATS_CONNECTIONS, CONNECTIONS_DOWN + 1, "connections"}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        (void)fprintf(play.said, "%6" PRIu64 " %s:", play.now_ms, rows[i].name);
        for (size_t label = 0; label < rows[i].labels; label++)
            (void)fprintf(play.said, " %" PRIu64, metrics_value(metrics, rows[i].metric, label));
        (void)fputc('\n', play.said);
    }
}

/* ---- steps ---- */

static thole_slice expand(const char *text)
{
    size_t len = 0;
    char *end = NULL;
    for (; *text != '\0'; text++) {
        if (*text != '#') {
            body[len++] = *text;
            continue;
        }
        size_t const n = strtoull(text + 1, &end, 10);
        CU_ASSERT_FATAL(len + n < sizeof body);
        memset(body + len, 'A', n);
        len += n;
        text = end - 1;
    }
    return (thole_slice){(const uint8_t *)body, len};
}

/* Orders of stream @p stream: instances are named by the data. */
static void rule(const char *name, uint64_t revision, const char *action, const char *stream, bool only_new)
{
    struct bind_rule r = {.subject = THOLE_STR("orders.>"),
                          .stream = thole_slice_from(stream),
                          .instance = THOLE_STR("o-{json.id}"),
                          .from = only_new ? BIND_NEW : BIND_ALL,
                          .in_flight = 2};
    struct json json;
    struct buf text;
    while (strcmp(bind_action_names[r.action], action) != 0)
        r.action++;
    if (r.action != BIND_SIGNAL)
        r.orchestration = THOLE_STR("order");
    if (r.action != BIND_START)
        r.event = THOLE_STR("paid");
    buf_init(&text, BIND_RULE_JSON_MAX);
    json_to_buf(&json, &text);
    bind_rule_write(&r, &json);
    played_rule(name, revision, buf_bytes(&text));
    buf_release(&text);
}

static bool setting(const char *verb, const char *rest)
{
    static const char *const names[CALLS] = {
        [CALL_CONNECT] = "connect", [CALL_TOPOLOGY] = "topology", [CALL_BUCKET] = "bucket",
        [CALL_CLIENT] = "client",   [CALL_REQUESTS] = "requests", [CALL_LISTEN] = "listen",
        [CALL_WATCH] = "watch",     [CALL_GET] = "get",           [CALL_CONSUMER] = "consumer",
        [CALL_PULL] = "pull",       [CALL_STATE] = "state",       [CALL_FORGET] = "forget",
        [CALL_SEND] = "send",       [CALL_SIGNAL] = "signal",     [CALL_ASKED] = "asked",
        [CALL_PUBLISH] = "publish"};
    for (size_t i = 0; i < CALLS; i++)
        if (strcmp(verb, names[i]) == 0) {
            play.ends[i] = rest;
            return true;
        }
    if (strcmp(verb, "payload") == 0)
        binder_world.max_payload = strtoull(rest, NULL, 10);
    else if (strcmp(verb, "inputs") == 0)
        binder_world.payload_max = strtoull(rest, NULL, 10);
    else if (strcmp(verb, "nothreads") == 0 || strcmp(verb, "threads") == 0)
        play.no_threads = verb[0] == 'n';
    else if (strcmp(verb, "down") == 0 || strcmp(verb, "up") == 0)
        binder_world.down = verb[0] == 'd';
    else if (strcmp(verb, "stopping") == 0)
        binder_world.stopping = true;
    else if (strcmp(verb, "die") == 0)
        die_at = (unsigned)strtoul(rest, NULL, 10);
    else if (strcmp(verb, "with") == 0)
        (void)snprintf(headers + strlen(headers), sizeof headers - strlen(headers), "%s\n", rest);
    else
        return false;
    return true;
}

static enum request_result result_of(const char *word)
{
    static const char *const words[] = {
        [REQUEST_ANSWERED] = "answered", [REQUEST_STORED] = "stored", [REQUEST_REFUSED] = "refused",
        [REQUEST_BUSY] = "busy",         [REQUEST_FAILED] = "failed", [REQUEST_UNKNOWN] = "unknown"};
    size_t i = 0;
    while (strcmp(words[i], word) != 0)
        i++;
    return (enum request_result)i;
}

/* Messages from outside. */
static bool arrival(const char *verb, const char *rest)
{
    char a[80] = "", b[80] = "", c[80] = "", d[80] = "", reply[24];
    uint64_t number = 0;
    int at = 0;
    if (strcmp(verb, "rule") == 0) {
        CU_ASSERT_FATAL(sscanf(rest, "%79s %" SCNu64 " %79s %79s %79s", a, &number, b, c, d) >= 4);
        rule(a, number, b, c, strcmp(d, "new") == 0);
    } else if (strcmp(verb, "text") == 0) {
        CU_ASSERT_FATAL(sscanf(rest, "%79s %" SCNu64 "%n", a, &number, &at) == 2);
        played_rule(a, number, expand(rest + at + (rest[at] == ' ')));
    } else if (strcmp(verb, "take") == 0) {
        CU_ASSERT_FATAL(sscanf(rest, "%79s %" SCNu64 " %79s%n", a, &number, b, &at) == 3);
        played_message(a, number, b, headers, expand(rest + at + (rest[at] == ' ')));
    } else if (strcmp(verb, "call") == 0 || strcmp(verb, "tell") == 0) {
        CU_ASSERT_FATAL(sscanf(rest, "%79s%n", a, &at) == 1);
        (void)snprintf(reply, sizeof reply, "_INBOX.r%u", ++calls);
        played_call(a, verb[0] == 'c' ? reply : NULL, headers, expand(rest + at + (rest[at] == ' ')));
    } else {
        return false;
    }
    headers[0] = '\0';
    return true;
}

static void step(const char *text)
{
    char verb[32] = "", word[32] = "";
    uint64_t number = 0;
    int at = 0;
    CU_ASSERT_FATAL(sscanf(text, "%31s%n", verb, &at) == 1);
    const char *const rest = text + at + (text[at] == ' ');
    if (setting(verb, rest) || arrival(verb, rest))
        return;
    if (strcmp(verb, "start") == 0 || strcmp(verb, "brief") == 0) {
        play.brief = verb[0] == 'b';
        played_thread(start_main, NULL);
    } else if (strcmp(verb, "stop") == 0) {
        played_thread(stop_main, NULL);
    } else if (strcmp(verb, "refused") == 0) {
        played_refused(rest);
    } else if (strcmp(verb, "done") == 0) {
        CU_ASSERT_FATAL(sscanf(rest, "%" SCNu64 " %31s", &number, word) == 2);
        played_done(number, result_of(word));
    } else if (strcmp(verb, "counts") == 0) {
        say_counts();
    } else {
        CU_FAIL("an unknown step");
        fprintf(stderr, "\n  unknown: %s\n", verb);
    }
}

static void play_line(const char *line, FILE *to)
{
    struct metrics_options const options = {.roles = METRIC_BINDER};
    binder_world_begin(to);
    metrics = metrics_create(&options);
    binder = NULL;
    die_at = calls = 0;
    headers[0] = '\0';
    played_line(line, step);
    binder_world_end();
    metrics_destroy(metrics);
    CU_ASSERT_PTR_NULL(binder);
}

static void test_transcript(void)
{
    transcript_check(TRANSCRIPT, play_line);
}

static void test_nothing_stays(void)
{
    transcript_check_heap(TRANSCRIPT, play_line);
}

static char *played(const char *line)
{
    char *text = NULL;
    size_t len = 0;
    FILE *const to = open_memstream(&text, &len);
    play_line(line, to);
    (void)fclose(to);
    return text;
}

/* One call more than there may be is refused. */
static void test_calls_have_a_limit(void)
{
    char *line = NULL;
    size_t len = 0;
    FILE *const to = open_memstream(&line, &len);
    (void)fputs("asked ", to);
    for (unsigned i = 0; i < 512; i++)
        (void)fputs("well timeout ", to);
    (void)fputs("| brief", to);
    for (unsigned i = 0; i < 513; i++)
        (void)fputs(" | with Thole-Wait-Ms: 500 | call order", to);
    (void)fputs(" | 9000 call order | stop", to);
    (void)fclose(to);
    char *const text = played(line);
    const char *const refused = strstr(text, "this binder has too many calls: ask again");
    CU_ASSERT_PTR_NOT_NULL_FATAL(refused);
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "to _INBOX.r513: [Nats-Service-Error: this binder has too many"));
    CU_ASSERT_PTR_NULL(strstr(text, "to _INBOX.r514: [Nats-Service-Error: this binder has too many"));
    free(text);
    free(line);
}

static const struct thole_test tests[] = {
    {"calls have a limit", test_calls_have_a_limit},
    {"transcript", test_transcript},
    {"nothing stays", test_nothing_stays},
};
THOLE_TEST_MAIN("binder_transcript", tests)
