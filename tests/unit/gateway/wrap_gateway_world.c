#include "wrap_gateway_world.h"
#include "activity_run.h"
#include "client_notes.h"
#include "jscan.h"
#include "link.h"
#include "memory.h"
#include "remote_handlers.h"
#include "thole/client.h"
#include "thole_cunit.h"
#include "utf8.h"
#include "worker_host.h"
#include "wrap_played.h"
#include <inttypes.h>
#include <stdlib.h>
#include <strings.h>

struct listened {
    char subject[160];
    delivery_fn *each;
    void *arg;
};

struct played_gateway gate;
static struct listened listened[LISTENED_MAX];
enum { HEADERS_MAX = 8 };
static const char some_subscription[LISTENED_MAX], some_host, some_connection, some_client;
static int opened; /* connections and clients */

/* ---- the connection ---- */

thole_status __wrap_connection_open(const struct connection_options *o, struct connection **ret,
                                    thole_error *reterr)
{
    SAY_ALWAYS("connects to %s as %s: creds %s, ca %s, cert %s, key %s, server %s, inbox %s, %d+%d ms",
               o->url, o->name, o->creds, o->ca, o->cert, o->key, o->server_name, o->inbox,
               (int)o->connect_timeout_ms, (int)o->request_timeout_ms);
    THOLE_TRY(played_ends(CALL_CONNECT, reterr));
    opened++;
    *ret = (struct connection *)(uintptr_t)&some_connection;
    return THOLE_OK;
}

void __wrap_connection_close(struct connection *connection)
{
    if (connection != NULL) {
        for (size_t i = 0; i < LISTENED_MAX; i++)
            CU_ASSERT_PTR_NULL(listened[i].each);
        opened--;
        SAY_ALWAYS("disconnects");
    }
}

size_t __wrap_connection_max_payload(const struct connection *connection)
{
    CU_ASSERT_PTR_EQUAL(connection, &some_connection);
    return gate.max_payload;
}

thole_status __wrap_connection_serve(struct connection *connection, const char *subject, const char *group,
                                     delivery_fn *each, void *arg, struct subscription **ret,
                                     thole_error *reterr)
{
    size_t i = 0;
    CU_ASSERT_PTR_EQUAL(connection, &some_connection);
    SAY_ALWAYS("listens to %s%s%s", subject, group == NULL ? "" : " in the group ",
               group == NULL ? "" : group);
    THOLE_TRY(played_ends(CALL_LISTEN, reterr));
    while (listened[i].each != NULL)
        i++;
    (void)snprintf(listened[i].subject, sizeof listened[i].subject, "%s", subject);
    listened[i].each = each;
    listened[i].arg = arg;
    *ret = (struct subscription *)(uintptr_t)&some_subscription[i];
    return THOLE_OK;
}

thole_status __wrap_connection_subscribe(struct connection *connection, const char *subject,
                                         delivery_fn *each, void *arg, struct subscription **ret,
                                         thole_error *reterr)
{
    return __wrap_connection_serve(connection, subject, NULL, each, arg, ret, reterr);
}

void __wrap_subscription_close(struct subscription *subscription)
{
    if (subscription == NULL)
        return;
    struct listened *const to = &listened[(const char *)subscription - some_subscription];
    SAY_ALWAYS("no longer listens to %s", to->subject);
    to->each = NULL;
}

thole_status __wrap_connection_flush(struct connection *connection, thole_error *reterr)
{
    (void)connection;
    return played_ends(CALL_LISTEN, reterr);
}

static void say_body(thole_slice body)
{
    if (utf8_is_valid(body) && body.len > 0 && body.ptr[0] == '{') {
        (void)fprintf(play.said, "%.*s\n", THOLE_FMT(body));
        return;
    }
    for (size_t i = 0; i < body.len; i++)
        (void)fprintf(play.said, body.ptr[i] > ' ' && body.ptr[i] < 127 ? "%c" : "<%02x>", body.ptr[i]);
    (void)fputc('\n', play.said);
}

thole_status __wrap_connection_publish(struct connection *connection, const char *subject,
                                       const struct header *headers, size_t headers_len, thole_slice body,
                                       thole_error *reterr)
{
    CU_ASSERT_PTR_EQUAL(connection, &some_connection);
    (void)fprintf(play.said, "%6" PRIu64 " to %s:", play.now_ms, subject);
    for (size_t i = 0; i < headers_len; i++)
        (void)fprintf(play.said, " [%s: %.*s]", headers[i].key, THOLE_FMT(headers[i].value));
    (void)fputs(" ", play.said);
    say_body(body);
    return played_ends(CALL_PUBLISH, reterr);
}

/* The receiver of a report of no subscriber is not noted. */
thole_status __wrap_connection_publish_asking(struct connection *connection, const char *subject,
                                              const char *reply, const struct header *headers,
                                              size_t headers_len, thole_slice body, thole_error *reterr)
{
    CU_ASSERT_STRING_NOT_EQUAL(reply, "");
    return __wrap_connection_publish(connection, subject, headers, headers_len, body, reterr);
}

void played_unheard(const char *subject)
{
    bool heard = false;
    struct delivery const delivery = {.no_responders = true};
    for (size_t i = 0; i < LISTENED_MAX; i++)
        if (listened[i].each != NULL && strcmp(listened[i].subject, subject) == 0) {
            heard = true;
            listened[i].each(listened[i].arg, &delivery);
        }
    if (!heard)
        played_say("nobody listens to %s", subject);
}

static bool matches(const char *pattern, const char *subject)
{
    while (*pattern != '\0' && *subject != '\0' && *pattern != '>') {
        size_t const p = strcspn(pattern, "."), s = strcspn(subject, ".");
        if (!(p == 1 && *pattern == '*') && (p != s || strncmp(pattern, subject, p) != 0))
            return false;
        pattern += p + (pattern[p] == '.');
        subject += s + (subject[s] == '.');
    }
    return *pattern == *subject || *pattern == '>';
}

static struct {
    char name[64], value[1024];
} with[HEADERS_MAX];
static size_t with_len;

void played_with(const char *header)
{
    CU_ASSERT_FATAL(with_len < HEADERS_MAX - 1);
    CU_ASSERT_FATAL(sscanf(header, "%63[^:]: %1023[^\n]", with[with_len].name, with[with_len].value) == 2);
    with_len++;
}

void played_deliver(const char *subject, const char *reply, const char *type, const void *body, size_t len)
{
    natsMsg *message = NULL;
    bool heard = false;
    struct header headers[HEADERS_MAX];
    for (size_t i = 0; i < with_len; i++)
        headers[i] = (struct header){with[i].name, thole_slice_from(with[i].value)};
    headers[with_len] = (struct header){"Content-Type", thole_slice_from(type)};
    if (link_message(subject, reply, headers, with_len + (type != NULL), (thole_slice){body, len}, &message,
                     NULL) != THOLE_OK)
        abort();
    struct delivery delivery = link_delivery(message);
    /* neither ends with a NUL */
    char *const exact = memory_new(strlen(subject));
    memcpy(exact, subject, strlen(subject));
    delivery.subject.ptr = (const uint8_t *)exact;
    for (size_t i = 0; i < LISTENED_MAX; i++)
        if (listened[i].each != NULL && matches(listened[i].subject, subject)) {
            heard = true;
            listened[i].each(listened[i].arg, &delivery);
        }
    if (!heard)
        played_say("nobody listens to %s", subject);
    natsMsg_Destroy(message);
    free(exact);
}

/* ---- the worker role ---- */

thole_status __wrap_worker_host_start(const struct host_options *o, const thole_program *program,
                                      const struct stop_check *stop, struct worker_host **ret,
                                      thole_error *reterr)
{
    char room[64];
    const char *const how = play.ends[CALL_HOST];
    played_say("a worker role starts: %s of queue %s in %s at %s, %u slots, %zu activities from %s", o->node,
               o->queue, o->ns, o->nats_url, o->slots, program->activities_len, program->activities[0].name);
    CU_ASSERT_PTR_EQUAL(program->activities[program->activities_len - 1].run, remote_handler);
    CU_ASSERT_STRING_EQUAL(program->name, o->node);
    CU_ASSERT_EQUAL(program->size, sizeof *program);
    CU_ASSERT_TRUE(o->crash_reporter == NULL && o->forkserver == NULL && o->metrics == NULL);
    CU_ASSERT_TRUE(stop_is_requested(stop));
    gate.handlers = o->remote;
    if (how != NULL && strncmp(how, "slow:", 5) == 0)
        played_sleep(strtoull(played_word(CALL_HOST, room) + 5, NULL, 10));
    thole_status const status = played_ends(CALL_HOST, reterr);
    if (status != THOLE_OK)
        gate.handlers = NULL;
    THOLE_TRY(status);
    *ret = (struct worker_host *)(uintptr_t)&some_host;
    return THOLE_OK;
}

static void drop(struct thole_activity *act)
{
    for (size_t i = 0; i < ACTS_MAX; i++)
        if (gate.acts[i] == act)
            gate.acts[i] = NULL;
}

/* Of those that it has got back. */
static void free_returned(void)
{
    for (size_t i = 0; i < ACTS_MAX; i++) {
        if (gate.acts[i] != NULL && gate.acts[i]->given_up)
            activity_destroy(gate.acts[i]);
        gate.acts[i] = NULL; /* the others are the session's */
    }
    gate.handlers = NULL;
}

struct worker_host *played_host(void)
{
    return (struct worker_host *)(uintptr_t)&some_host;
}

void __wrap_worker_host_stop_within(struct worker_host *worker, uint64_t limit_ms)
{
    CU_ASSERT_PTR_EQUAL(worker, &some_host);
    played_say("the worker role is to stop within %" PRIu64 " ms", limit_ms);
}

void __wrap_worker_host_stop(struct worker_host *worker)
{
    CU_ASSERT_PTR_EQUAL(worker, &some_host);
    free_returned();
    played_say("the worker role stops");
}

void __wrap_worker_host_died(struct worker_host *worker, const char *report)
{
    CU_ASSERT_PTR_EQUAL(worker, &some_host);
    played_say("the worker role dies: %s", report);
    played_sleep(1); /* the loop may still call */
    free_returned();
}

void __wrap_worker_host_rests(struct worker_host *worker)
{
    CU_ASSERT_PTR_EQUAL(worker, &some_host);
    played_say("the worker role rests");
}

void __wrap_worker_host_wants(struct worker_host *worker)
{
    CU_ASSERT_PTR_EQUAL(worker, &some_host);
    played_say("the worker role wants tasks");
}

struct connection *__wrap_worker_host_connection(const struct worker_host *worker)
{
    CU_ASSERT_PTR_EQUAL(worker, &some_host);
    return (struct connection *)(uintptr_t)&some_connection;
}

void __wrap_worker_host_heard(struct worker_host *worker)
{
    CU_ASSERT_PTR_EQUAL(worker, &some_host);
}

uint64_t __wrap_worker_host_lease_ms(const struct worker_host *worker)
{
    CU_ASSERT_PTR_EQUAL(worker, &some_host);
    return 3000;
}

uint64_t __wrap_worker_host_payload_max(const struct worker_host *worker)
{
    CU_ASSERT_PTR_EQUAL(worker, &some_host);
    return 262144;
}

static void say_returned(struct thole_activity *act, char letter)
{
    thole_slice output = {0};
    act->failure = act->failure_type = (thole_slice){0};
    thole_status const status = remote_handler(act, act->message->item.input, &output);
    if (act->returned->unknown)
        played_say("%c is given back", letter);
    else
        played_say("%c has returned: %s output=%.*s failure=%.*s type=%.*s final=%d", letter,
                   thole_status_name(status), THOLE_FMT(output), THOLE_FMT(act->failure),
                   THOLE_FMT(act->failure_type), act->final);
    CU_ASSERT_TRUE(output.len == 0 || output.ptr != act->returned->output.ptr); /* returned output is
                                                                                   borrowed */
}

/* given_up: it has returned; forgotten: its part is over. */
void __wrap_worker_host_returned(struct worker_host *worker, struct thole_activity *act,
                                 const struct remote_return *returned)
{
    char letter = '?';
    CU_ASSERT_PTR_EQUAL(worker, &some_host);
    for (size_t i = 0; i < ACTS_MAX; i++)
        if (gate.acts[i] == act)
            letter = (char)('a' + i);
    CU_ASSERT_FALSE(act->given_up); /* once */
    act->returned = returned;
    say_returned(act, letter);
    act->given_up = true;
    if (act->forgotten) {
        drop(act);
        activity_destroy(act);
    }
}

void played_ended(struct thole_activity *act, bool stored)
{
    act->forgotten = true;
    gate.handlers->ended(gate.handlers->arg, (struct worker_host *)(uintptr_t)&some_host, act, stored);
    CU_ASSERT_PTR_NULL(act->remote);
    if (act->given_up) {
        drop(act);
        activity_destroy(act);
    }
}

/* ---- the client library ---- */

/* " by ACTOR with CLIENT, trace PARENT,LIST", "BY" of an actor that is vouched for; nothing: it says nothing.
 */
static const char *said_by(const thole_sender *sender)
{
    static char text[1024];
    (void)snprintf(text, sizeof text, " %s %.*s with %.*s, trace %.*s,%.*s", sender->vouched ? "BY" : "by",
                   THOLE_FMT(sender->actor), THOLE_FMT(sender->client_name), THOLE_FMT(sender->traceparent),
                   THOLE_FMT(sender->tracestate));
    return sender->actor.len + sender->client_name.len + sender->traceparent.len > 0 ? text : "";
}

thole_status __wrap_thole_client_open(const thole_client_options *o, thole_client **ret, thole_error *reterr)
{
    SAY_ALWAYS("a client at %s and %s of %s: creds %s, ca %s, cert %s, key %s, server %s, inbox %s",
               o->nats_url, o->postgres, o->ns, o->nats_creds, o->nats_ca, o->nats_cert, o->nats_key,
               o->nats_server_name, o->nats_inbox);
    CU_ASSERT_EQUAL(o->size, sizeof *o);
    THOLE_TRY(played_ends(CALL_CLIENT, reterr));
    opened++;
    *ret = (thole_client *)(uintptr_t)&some_client;
    return THOLE_OK;
}

void __wrap_thole_client_close(thole_client *client)
{
    opened -= client != NULL;
}

thole_status __wrap_thole_client_start_with(thole_client *client, thole_slice instance,
                                            thole_slice orchestration, thole_slice input,
                                            const thole_start_options *o, bool *ret_accepted,
                                            thole_error *reterr)
{
    CU_ASSERT_PTR_EQUAL(client, &some_client);
    CU_ASSERT_EQUAL(o->size, sizeof *o);
    (void)ret_accepted;
    played_say("starts %.*s of %.*s: input=%.*s version=%u request=%.*s trace=%.*s,%.*s%s",
               THOLE_FMT(instance), THOLE_FMT(orchestration), THOLE_FMT(input), o->version,
               THOLE_FMT(o->request_id), THOLE_FMT(o->traceparent), THOLE_FMT(o->tracestate),
               said_by(&o->sender));
    if (o->event.len > 0 || o->event_data.len > 0)
        played_say("with event %.*s: %.*s", THOLE_FMT(o->event), THOLE_FMT(o->event_data));
    if (o->require_known)
        played_say("if it is known");
    return played_ends(CALL_ASKED, reterr);
}

/* The instance "stuck" is. */
static void played_standing(thole_slice instance, struct standing *ret)
{
    struct turn const turn = {.blocked = BLOCKED_CRASHED, .blocked_text = THOLE_STR("its code crashed")};
    *ret = (struct standing){.known = false};
    if (thole_slice_equal(instance, THOLE_STR("stuck")))
        standing_note(ret, instance, &turn);
}

thole_status __wrap_client_signal_noted(thole_client *client, thole_slice instance, thole_slice name,
                                        thole_slice data, const thole_signal_options *o, bool *ret_kept,
                                        struct standing *ret_standing, thole_error *reterr)
{
    played_standing(instance, ret_standing);
    CU_ASSERT_PTR_EQUAL(client, &some_client);
    CU_ASSERT_EQUAL(o->size, sizeof *o);
    (void)ret_kept;
    played_say("signals %.*s: event=%.*s data=%.*s request=%.*s%s", THOLE_FMT(instance), THOLE_FMT(name),
               THOLE_FMT(data), THOLE_FMT(o->request_id), said_by(&o->sender));
    return played_ends(CALL_ASKED, reterr);
}

thole_status __wrap_client_cancel_noted(thole_client *client, thole_slice instance,
                                        const thole_end_options *options, struct standing *ret_standing,
                                        thole_error *reterr)
{
    played_standing(instance, ret_standing);
    CU_ASSERT_PTR_EQUAL(client, &some_client);
    CU_ASSERT_EQUAL(options->size, sizeof *options);
    played_say("cancels %.*s: %.*s request=%.*s%s", THOLE_FMT(instance), THOLE_FMT(options->reason),
               THOLE_FMT(options->request_id), said_by(&options->sender));
    return played_ends(CALL_ASKED, reterr);
}

thole_status __wrap_thole_client_terminate_with(thole_client *client, thole_slice instance,
                                                const thole_end_options *options, thole_error *reterr)
{
    CU_ASSERT_PTR_EQUAL(client, &some_client);
    CU_ASSERT_EQUAL(options->size, sizeof *options);
    played_say("terminates %.*s: %.*s request=%.*s%s", THOLE_FMT(instance), THOLE_FMT(options->reason),
               THOLE_FMT(options->request_id), said_by(&options->sender));
    return played_ends(CALL_ASKED, reterr);
}

static thole_slice owned(const char *text)
{
    return (thole_slice){memory_copy(text, strlen(text)), strlen(text)};
}

thole_status __wrap_thole_client_query(thole_client *client, thole_slice instance, thole_slice name,
                                       thole_slice input, thole_slice *ret_output, thole_error *reterr)
{
    CU_ASSERT_PTR_EQUAL(client, &some_client);
    played_say("queries %.*s: %.*s of %.*s", THOLE_FMT(instance), THOLE_FMT(name), THOLE_FMT(input));
    THOLE_TRY(played_ends(CALL_ASKED, reterr));
    *ret_output = owned("half way");
    return THOLE_OK;
}

/* "timeout" takes all of the time; "completed:…", "failed:…", "cancelled:…", "terminated:…" are outcomes. */
thole_status __wrap_thole_client_wait(thole_client *client, thole_slice instance, uint64_t wait_ms,
                                      thole_outcome *ret, thole_error *reterr)
{
    static const struct {
        const char *word;
        thole_instance_status status;
    } rows[] = {{"completed:", THOLE_INSTANCE_COMPLETED},
                {"failed:", THOLE_INSTANCE_FAILED},
                {"cancelled:", THOLE_INSTANCE_CANCELLED},
                {"terminated:", THOLE_INSTANCE_TERMINATED}};
    char room[64];
    CU_ASSERT_PTR_EQUAL(client, &some_client);
    played_say("waits for %.*s, %" PRIu64 " ms", THOLE_FMT(instance), wait_ms);
    const char *const how = play.ends[CALL_ASKED] == NULL ? "" : play.ends[CALL_ASKED];
    if (strncmp(how, "timeout", 7) == 0)
        played_sleep(wait_ms);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (strncmp(how, rows[i].word, strlen(rows[i].word)) == 0) {
            const char *const text = played_word(CALL_ASKED, room) + strlen(rows[i].word);
            *ret = (thole_outcome){
                .status = rows[i].status,
                .output = owned(text),
                .error_type = thole_slice_from(rows[i].status == THOLE_INSTANCE_FAILED ? "card" : "")};
            return THOLE_OK;
        }
    return played_ends(CALL_ASKED, reterr);
}

/* A word of how it is shown; false: it names a status. */
static bool shown_state(thole_instance_status *ret, thole_status *ret_status, thole_error *reterr)
{
    static const thole_instance_status states[] = {THOLE_INSTANCE_RUNNING, THOLE_INSTANCE_WAITING,
                                                   THOLE_INSTANCE_STUCK, THOLE_INSTANCE_PENDING,
                                                   THOLE_INSTANCE_CONTINUED_AS_NEW};
    char room[64];
    const char *const word = played_word(CALL_SHOWN, room);
    for (size_t i = 0; i < ARRAY_LEN(states); i++)
        if (strcasecmp(word, thole_instance_status_name(states[i])) == 0) {
            *ret = states[i];
            return true;
        }
    *ret = THOLE_INSTANCE_RUNNING;
    *ret_status = played_status(word, reterr);
    return *ret_status == THOLE_OK;
}

static thole_instance_info played_row(thole_slice instance, thole_instance_status status)
{
    bool const stands = status == THOLE_INSTANCE_WAITING || status == THOLE_INSTANCE_STUCK;
    return (thole_instance_info){.instance = instance,
                                 .orchestration = THOLE_STR("checkout"),
                                 .execution = 1,
                                 .status = status,
                                 .created_ms = 1700000000000,
                                 .updated_ms = 1700000000001,
                                 .detail = stands ? THOLE_STR("why\xc3") : (thole_slice){0},
                                 .open_activities = 2,
                                 .open_timers = 3,
                                 .version = 4,
                                 .custom_status = THOLE_STR("half"),
                                 .parent = THOLE_STR("p"),
                                 .turns = 5,
                                 .reason = status == THOLE_INSTANCE_WAITING ? "no_code"
                                           : status == THOLE_INSTANCE_STUCK ? "divergence"
                                                                            : NULL};
}

thole_status __wrap_thole_client_show(thole_client *client, thole_slice instance, thole_instance_fn *each,
                                      void *arg, thole_error *reterr)
{
    thole_instance_status state;
    thole_status status = THOLE_OK;
    CU_ASSERT_PTR_EQUAL(client, &some_client);
    if (!shown_state(&state, &status, reterr))
        return status;
    thole_instance_info const row = played_row(instance, state);
    return each(arg, &row);
}

thole_status __wrap_thole_client_inspect(thole_client *client, thole_slice instance,
                                         thole_inspection_fn *each, void *arg, thole_error *reterr)
{
    thole_instance_status state;
    thole_status status = THOLE_OK;
    static const thole_pending pending[] = {{.kind = THOLE_PENDING_ACTIVITY}, {.kind = THOLE_PENDING_TIMER}};
    CU_ASSERT_PTR_EQUAL(client, &some_client);
    played_say("reads the history of %.*s", THOLE_FMT(instance));
    if (!shown_state(&state, &status, reterr))
        return status;
    return each(arg, &(thole_inspection){.orchestration = THOLE_STR("checkout"),
                                         .execution = 1,
                                         .status = state,
                                         .pending = pending,
                                         .pending_len = ARRAY_LEN(pending),
                                         .turns = 6,
                                         .time_ms = 7});
}

thole_status __wrap_thole_client_explain(thole_client *client, thole_slice instance, thole_hindrance_fn *each,
                                         void *arg, thole_error *reterr)
{
    char room[64];
    CU_ASSERT_PTR_EQUAL(client, &some_client);
    played_say("explains %.*s", THOLE_FMT(instance));
    const char *const kind = played_word(CALL_TOLD, room);
    if (strchr(kind, '_') != NULL || strcmp(kind, "divergence") == 0)
        return each(arg, &(thole_hindrance){.kind = strcmp(kind, "no_code") == 0      ? "no_code"
                                                    : strcmp(kind, "divergence") == 0 ? "divergence"
                                                                                      : "no_worker",
                                            .text = THOLE_STR("nobody serves it"),
                                            .remedy = THOLE_STR("start one")});
    thole_status status = strcmp(kind, "many") == 0 ? THOLE_OK : played_status(kind, reterr);
    for (int i = 0; strcmp(kind, "many") == 0 && i < 40 && status == THOLE_OK; i++)
        status = each(arg, &(thole_hindrance){.kind = "quarantined"});
    return status;
}

thole_status __wrap_thole_client_list(thole_client *client, const thole_list_filter *f,
                                      thole_instance_fn *each, void *arg, thole_error *reterr)
{
    char room[64];
    CU_ASSERT_PTR_EQUAL(client, &some_client);
    CU_ASSERT_EQUAL(f->size, sizeof *f);
    played_say("lists: statuses=%x of=%.*s prefix=%.*s parent=%.*s custom=%.*s after=%" PRIu64
               " before=%" PRIu64 " limit=%" PRIu64 " behind=%.*s,%" PRIu64,
               f->statuses, THOLE_FMT(f->orchestration), THOLE_FMT(f->id_prefix), THOLE_FMT(f->parent),
               THOLE_FMT(f->custom_status), f->created_after_ms, f->created_before_ms, f->limit,
               THOLE_FMT(f->behind_instance), f->behind_created_ms);
    const char *const how = played_word(CALL_ASKED, room);
    if (strncmp(how, "rows:", 5) != 0)
        return played_status(how, reterr);
    thole_status status = THOLE_OK;
    for (uint64_t i = 0; i < strtoull(how + 5, NULL, 10) && status == THOLE_OK; i++) {
        thole_instance_info row = played_row(THOLE_STR("i"), THOLE_INSTANCE_COMPLETED);
        row.foreign = i == 1;
        status = each(arg, &row);
    }
    return status;
}

thole_status __wrap_thole_client_complete(thole_client *client, thole_slice token, thole_slice output,
                                          thole_error *reterr)
{
    CU_ASSERT_PTR_EQUAL(client, &some_client);
    played_say("completes %.*s: %.*s", THOLE_FMT(token), THOLE_FMT(output));
    return played_ends(CALL_ASKED, reterr);
}

thole_status __wrap_thole_client_fail(thole_client *client, thole_slice token, thole_slice type,
                                      thole_slice message, thole_error *reterr)
{
    CU_ASSERT_PTR_EQUAL(client, &some_client);
    played_say("fails %.*s: %.*s type=%.*s", THOLE_FMT(token), THOLE_FMT(message), THOLE_FMT(type));
    return played_ends(CALL_ASKED, reterr);
}

/* ---- begin, end ---- */

void gateway_world_begin(FILE *said)
{
    played_begin(said);
    gate = (struct played_gateway){.max_payload = 1 << 20};
    CU_ASSERT_EQUAL_FATAL(nats_Open(-1), NATS_OK); /* once; its messages need it */
    opened = 0;
    with_len = 0;
    memset(listened, 0, sizeof listened);
}

void gateway_world_end(void)
{
    played_end();
    CU_ASSERT_EQUAL(opened, 0);
}
