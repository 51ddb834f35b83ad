/* A whole gateway, from requests to answers. gateway.transcript has scripts ("$ …") of steps with "|" between
 * them, each followed by what the gateway did, by its clock in milliseconds. With THOLE_WRITE_TRANSCRIPT=1 in
 * the environment the file is written again, to be read and committed. Steps:
 *   MS STEP                       the clock goes to MS, with all that is due before, then STEP
 *   connect, client, listen, host, asked, publish, shown, told WORD…   how the next such calls end, in order;
 *                                 later ones succeed. asked rows:N: a list has N rows; shown: the state of an
 *                                 instance, by its row, then its history; told: its hindrance
 *   payload N; nothreads; threads; stopping
 *   start, stop                   the gateway; up: start, without the lines of connections and listeners
 *   ask, binary, plain, tell SUBJECT BODY    a request in JSON, in protobuf (hex digits), without a
 *                                 Content-Type, or without a reply; "as TYPE SUBJECT BODY"
 *   with NAME: VALUE              a header of the requests that follow
 *   unheard SUBJECT               an answer on this reply subject had no subscriber
 *   wants                         whether the session claims activities for its worker role
 *   run ID ACTIVITY INPUT [TIMEOUT_MS [DETAILS]]; fire ID REASON; hurry ID; ended ID stored|lost; stopped
 *                                 the worker role
 * In subjects a leading ~ stands for thole.shop.gateway. and @N for the session whose random bytes are N. In
 * bodies #N stands for N bytes of base64. */
#include "activity_run.h"
#include "gateway_host.h"
#include "remote_handlers.h"
#include "thole_cunit.h"
#include "transcript.h"
#include "wrap_claims.h"
#include "wrap_gateway_world.h"
#include "wrap_played.h"
#include <inttypes.h>
#include <stdlib.h>

#define TRANSCRIPT THOLE_SOURCE_DIR "/tests/unit/gateway/gateway.transcript"
enum { BODY_BYTES = 9 << 20, SUBJECT_BYTES = 256 };

static struct gateway_host *gateway;
static unsigned requests;
static uint32_t queue_sessions; /* the option; 0: no limit */
static char body[BODY_BYTES];

/* ---- the gateway ---- */

static bool is_stopping(void *arg)
{
    (void)arg;
    return gate.stopping;
}
static const struct stop_check stop = {.requested = is_stopping};

static void *start_main(void *arg)
{
    static struct host_options const options = {.nats_url = "nats://here",
                                                .nats_creds = "creds",
                                                .nats_ca = "ca",
                                                .nats_cert = "cert",
                                                .nats_key = "key",
                                                .nats_server_name = "server",
                                                .nats_inbox = "inbox",
                                                .postgres = "postgres://here",
                                                .ns = "shop",
                                                .node = "gate",
                                                .queue = "not this one",
                                                .slots = 7,
                                                .postgres_connections = 3,
                                                .grace_ms = 1500,
                                                .stop_limit_ms = 2500};
    struct host_options with = options;
    thole_error error = {.status = THOLE_OK};
    (void)arg;
    with.queue_sessions = queue_sessions;
    thole_status const status = gateway_host_start(&with, &stop, &gateway, &error);
    if (status != THOLE_OK)
        played_say("did not start: %s %s", thole_status_name(status), error.text);
    CU_ASSERT_EQUAL(status == THOLE_OK, gateway != NULL);
    return NULL;
}

static void *stop_main(void *arg)
{
    (void)arg;
    gateway_host_stop(gateway);
    gateway = NULL;
    played_say("has stopped");
    return NULL;
}

/* ---- requests ---- */

static void expand_subject(const char *text, char ret[SUBJECT_BYTES])
{
    const char *const begin = text;
    size_t len = 0;
    for (; *text != '\0' && len < SUBJECT_BYTES - 80; text++) {
        if (*text == '~' && text == begin) {
            len += (size_t)snprintf(ret + len, SUBJECT_BYTES - len, "thole.shop.gateway.");
        } else if (*text == '@') {
            len += (size_t)snprintf(ret + len, SUBJECT_BYTES - len,
                                    "thole.shop.gateway.session.0101010101010101.");
            for (int i = 0; i < 16; i++)
                len += (size_t)snprintf(ret + len, SUBJECT_BYTES - len, "0%c", text[1]);
            text++;
        } else {
            ret[len++] = *text;
        }
    }
    ret[len] = '\0';
}

static size_t expand_body(const char *text)
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
    return len;
}

static size_t from_hex(const char *text)
{
    size_t len = 0;
    unsigned byte;
    for (; sscanf(text, "%2x", &byte) == 1; text += 2)
        body[len++] = (char)byte;
    return len;
}

static void ask(const char *rest, const char *type, bool reply)
{
    char subject[SUBJECT_BYTES], word[200] = "", to[16];
    int at = 0;
    CU_ASSERT_FATAL(sscanf(rest, "%199s%n", word, &at) == 1);
    expand_subject(word, subject);
    rest += at + (rest[at] == ' ');
    size_t const len =
        type != NULL && strcmp(type, "application/protobuf") == 0 ? from_hex(rest) : expand_body(rest);
    char *const exact = malloc(len == 0 ? 1 : len);
    memcpy(exact, body, len);
    (void)snprintf(to, sizeof to, "_INBOX.r%u", ++requests);
    played_deliver(subject, reply ? to : NULL, type, exact, len);
    free(exact);
}

/* ---- the worker role ---- */

static void run(const char *rest)
{
    char letter, name[64] = "", input[64] = "", details[64] = "";
    unsigned timeout_ms = 0;
    const struct activity_parties parties = {.orchestration = THOLE_STR("checkout"), .version = 5};
    CU_ASSERT_FATAL(sscanf(rest, "%c %63s %63s %u %63s", &letter, name, input, &timeout_ms, details) >= 2);
    struct work_message *const message = calloc(1, sizeof *message);
    struct thole_activity **const act = &gate.acts[letter - 'a'];
    CU_ASSERT_FATAL(*act == NULL && message != NULL);
    size_t const n = input[0] == '#' ? strtoull(input + 1, NULL, 10) : strlen(input);
    char *const bytes = calloc(1, n + 80); /* both end with the activity: in its memory */
    memcpy(bytes, input, input[0] == '#' ? 0 : n);
    message->item = (struct work_item){.queue = THOLE_STR("slow"),
                                       .instance = THOLE_STR("order 7"),
                                       .nonce = THOLE_STR("0123456789abcdef0123456789abcdef"),
                                       .trace = {.parent = THOLE_STR("parent"), .list = THOLE_STR("list")},
                                       .execution = 3,
                                       .activity_id = 4,
                                       .try_number = 2};
    *act = activity_create(message, 0);
    char *const kept = thole_activity_alloc(*act, n + 80);
    (void)snprintf(bytes + n, 79, "%s", name);
    memcpy(kept, bytes, n + 80);
    free(bytes);
    message->item.input = (thole_slice){(const uint8_t *)kept, n};
    message->item.activity = thole_slice_from(kept + n);
    CU_ASSERT_EQUAL(activity_begin(*act, 6, timeout_ms == 0 ? UINT64_MAX : play.now_ms + timeout_ms - 1,
                                   thole_slice_from(details), &parties),
                    THOLE_OK);
    gate.handlers->run(gate.handlers->arg, played_host(), *act);
}

static void worker_role(const char *verb, const char *rest)
{
    struct thole_activity *const act = rest[0] == '\0' ? NULL : gate.acts[rest[0] - 'a'];
    if (gate.handlers == NULL) {
        played_say("there is no worker role");
    } else if (strcmp(verb, "wants") == 0) {
        played_say("the session %s",
                   gate.handlers->wants(gate.handlers->arg, played_host()) ? "wants it" : "does not want it");
    } else if (strcmp(verb, "run") == 0) {
        run(rest);
    } else if (strcmp(verb, "stopped") == 0) {
        gate.handlers->stopped(gate.handlers->arg, played_host());
    } else if (strcmp(verb, "fire") == 0) {
        activity_fire(act, &(struct activity_cancel){.kind = THOLE_CANCEL_REQUESTED,
                                                     .reason = thole_slice_from(rest + 2),
                                                     .grace_end_ms = play.now_ms + 700});
        gate.handlers->fired(gate.handlers->arg, played_host(), act);
    } else if (strcmp(verb, "ended") == 0) {
        uint64_t count = 0;
        struct buf noted;
        buf_init(&noted, 1000);
        if (activity_details_since(act, &count, &noted))
            played_say("%c noted %s", rest[0], buf_cstr(&noted));
        buf_release(&noted);
        played_ended(act, strcmp(rest + 2, "stored") == 0);
    } else {
        CU_FAIL("an unknown step");
        fprintf(stderr, "\n  unknown: %s\n", verb);
    }
}

/* ---- the script ---- */

static bool world_step(const char *verb, const char *rest)
{
    static const char *const names[CALLS] = {
        [CALL_CONNECT] = "connect", [CALL_CLIENT] = "client", [CALL_LISTEN] = "listen",
        [CALL_HOST] = "host",       [CALL_ASKED] = "asked",   [CALL_PUBLISH] = "publish",
        [CALL_SHOWN] = "shown",     [CALL_TOLD] = "told"};
    for (size_t i = 0; i < CALLS; i++)
        if (strcmp(verb, names[i]) == 0) {
            play.ends[i] = rest;
            return true;
        }
    if (strcmp(verb, "payload") == 0)
        gate.max_payload = strtoull(rest, NULL, 10);
    else if (strcmp(verb, "nothreads") == 0 || strcmp(verb, "threads") == 0)
        play.no_threads = verb[0] == 'n';
    else if (strcmp(verb, "stopping") == 0)
        gate.stopping = true;
    else if (strcmp(verb, "start") == 0 || strcmp(verb, "up") == 0) {
        play.brief = verb[0] == 'u';
        played_thread(start_main, NULL);
    } else if (strcmp(verb, "stop") == 0)
        played_thread(stop_main, NULL);
    else
        return false;
    return true;
}

static void step(const char *text)
{
    char verb[32] = "", type[100] = "";
    int at = 0;
    CU_ASSERT_FATAL(sscanf(text, "%31s%n", verb, &at) == 1);
    const char *rest = text + at + (text[at] == ' ');
    if (world_step(verb, rest))
        return;
    if (strcmp(verb, "ask") == 0 || strcmp(verb, "tell") == 0) {
        ask(rest, "application/json", verb[0] == 'a');
    } else if (strcmp(verb, "with") == 0) {
        played_with(rest);
    } else if (strcmp(verb, "plain") == 0) {
        ask(rest, NULL, true);
    } else if (strcmp(verb, "binary") == 0) {
        ask(rest, "application/protobuf", true);
    } else if (strcmp(verb, "unheard") == 0) {
        char subject[SUBJECT_BYTES];
        expand_subject(rest, subject);
        played_unheard(subject);
    } else if (strcmp(verb, "as") == 0) {
        CU_ASSERT_FATAL(sscanf(rest, "%99[^,],%n", type, &at) == 1);
        ask(rest + at, type, true);
    } else {
        worker_role(verb, rest);
    }
}

static void play_line(const char *line, FILE *to)
{
    gateway_world_begin(to);
    gateway = NULL;
    requests = 0;
    claims_begin();
    played_line(line, step);
    gateway_world_end();
    CU_ASSERT_PTR_NULL(gateway);
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

static void test_large_requests(void)
{
    char *const text = played("up | ask ~open.default {\"worker\":\"#8388595\"} | ask ~open.default "
                              "{\"worker\":\"#8388596\"} | stop");
    CU_ASSERT_PTR_NOT_NULL(
        strstr(text, "to _INBOX.r1: [Content-Type: application/json] [Nats-Service-Error: worker "
                     "name has 8388595 bytes"));
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "the request has 8388609 bytes, at most 8388608 are allowed"));
    free(text);
}

/* A request of so many more than there may be is refused; when all have ended one is served again. */
static void check_limit(size_t max, const char *ask_one, const char *settings, const char *want)
{
    char *line = NULL, answer[32];
    size_t len = 0;
    FILE *const to = open_memstream(&line, &len);
    (void)fprintf(to, "%sup", settings);
    for (size_t i = 0; i < max + 1; i++)
        (void)fprintf(to, " | %s", ask_one);
    (void)fprintf(to, " | 9000 %s | stop", ask_one);
    (void)fclose(to);
    char *const text = played(line);
    CU_ASSERT_PTR_NOT_NULL(strstr(text, want));
    size_t refused = 0;
    for (const char *at = text; (at = strstr(at, want)) != NULL; at++)
        refused++;
    CU_ASSERT_EQUAL(refused, 2); /* in the header, and in the body */
    (void)snprintf(answer, sizeof answer, "to _INBOX.r%zu: ", max + 1);
    CU_ASSERT_PTR_NOT_NULL(strstr(text, answer));
    CU_ASSERT_TRUE(strstr(text, answer) < strstr(text, want));
    free(text);
    free(line);
}

static void test_limits(void)
{
    check_limit(512, "ask ~client.wait {\"instance\":\"i\",\"waitMs\":500}", "asked timeout | ",
                "the gateway has 512 requests under way: ask again");
    check_limit(1000, "ask ~open.default {\"worker\":\"py\",\"slots\":2,\"activities\":[\"pay\"]}", "",
                "this gateway has 1000 sessions: start another gateway");
    check_limit(5, "ask ~open.default {\"worker\":\"py\",\"slots\":10000,\"activities\":[\"pay\"]}", "",
                "the sessions of this gateway have 50000 slots, of at most 50000: ask for fewer, or start "
                "another gateway");
}

/* Of one queue, and no matter how many there are of another. Who goes on with what a dead gateway has left
 * may be one of twice as many. */
static void test_limits_of_queues(void)
{
    static const char *const want =
        "this gateway has %d sessions of queue default, as many as --queue-sessions "
        "allows: use fewer workers with more slots, or start another gateway";
    char text[256];
    queue_sessions = 3;
    (void)snprintf(text, sizeof text, want, 3);
    check_limit(3, "ask ~open.default {\"worker\":\"py\",\"slots\":2,\"activities\":[\"pay\"]}", "", text);
    (void)snprintf(text, sizeof text, want, 6);
    check_limit(6,
                "ask ~open.default {\"worker\":\"py\",\"slots\":2,\"activities\":[\"pay\"],"
                "\"resume\":\"00000000000000000000000000000001\"}",
                "", text);
    char *const said =
        played("up | ask ~open.default {\"worker\":\"py\",\"slots\":2,\"activities\":[\"pay\"]} | "
               "ask ~open.default {\"worker\":\"py\",\"slots\":2,\"activities\":[\"pay\"]} | "
               "ask ~open.default {\"worker\":\"py\",\"slots\":2,\"activities\":[\"pay\"]} | "
               "ask ~open.other {\"worker\":\"py\",\"slots\":2,\"activities\":[\"pay\"]} | stop");
    CU_ASSERT_PTR_NULL(strstr(said, "--queue-sessions"));
    CU_ASSERT_PTR_NOT_NULL(strstr(said, "to _INBOX.r4: "));
    free(said);
    queue_sessions = 0;
}

/* The first claim is still known when there were so many that another one has its place in the table, and is
 * over. */
static void test_many_claims(void)
{
    enum { PLACES = 1024 };
    char *line = NULL;
    size_t len = 0;
    FILE *const to = open_memstream(&line, &len);
    (void)fputs("up | ask ~open.default {\"worker\":\"py\",\"slots\":2,\"activities\":[\"pay\"]} | "
                "run a pay in | ask @2.next {}",
                to);
    for (int i = 2; i <= PLACES + 1; i++)
        (void)fprintf(
            to,
            " | run b pay in | ask @2.next {} | ask @2.complete {\"outcomes\":[{\"claim\":\"%d\"}]} | "
            "ended b stored",
            i);
    (void)fputs(" | ask @2.complete {\"outcomes\":[{\"claim\":\"1\"}]} | ended a stored | "
                "ask @2.close {} | stopped | stop",
                to);
    (void)fclose(to);
    char *const text = played(line);
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "{\"results\":[{\"claim\":\"1025\"}]}"));
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "{\"results\":[{\"claim\":\"1\"}]}"));
    free(text);
    free(line);
}

static const struct thole_test tests[] = {
    {"many claims", test_many_claims},
    {"limits", test_limits},
    {"limits of queues", test_limits_of_queues},
    {"large requests", test_large_requests},
    {"transcript", test_transcript},
    {"nothing stays", test_nothing_stays},
};
THOLE_TEST_MAIN("gateway_transcript", tests)
