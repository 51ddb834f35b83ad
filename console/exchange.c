#include "exchange.h"
#include "assets.h"
#include "clock.h"
#include "hash.h"
#include "memory.h"
#include "thole/program.h"
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STREAM_BLOCK_BYTES = 16 * 1024, ETAG_BYTES = 24 };

static const char api[] = "/api/v1/";

struct exchange {
    struct console *console;
    struct MHD_Connection *connection;
    struct request request;
    struct answer answer;
    const struct route *route;
    bool answered; /* the answer has come: from a worker, or at once */
    struct feed *stream;
};

/* ---- headers ---- */

static const char *exchange_header(struct MHD_Connection *connection, const char *name)
{
    return MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);
}

static struct access_facts facts_of(const struct exchange *exchange)
{
    struct MHD_Connection *const connection = exchange->connection;
    const char *const identity = exchange->console->options.identity_header;
    const union MHD_ConnectionInfo *const info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    return (struct access_facts){
        .peer = info == NULL ? NULL : info->client_addr,
        .host = exchange_header(connection, "Host"),
        .origin = exchange_header(connection, "Origin"),
        .fetch_site = exchange_header(connection, "Sec-Fetch-Site"),
        .authorization = exchange_header(connection, "Authorization"),
        .csrf = exchange_header(connection, "X-Thole-Csrf"),
        .identity = identity == NULL ? NULL : exchange_header(connection, identity),
        .cookie = exchange_header(connection, "Cookie"),
    };
}

/* Pages of this console may only load what is its own. */
static enum MHD_Result add_headers(struct MHD_Response *response)
{
    static const char *const headers[][2] = {
        {"Content-Security-Policy",
         "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
         "form-action 'none'; frame-ancestors 'none'; base-uri 'none'"},
        {"X-Content-Type-Options", "nosniff"},
        {"Referrer-Policy", "no-referrer"},
        {"Cross-Origin-Opener-Policy", "same-origin"},
        {"Cross-Origin-Resource-Policy", "same-origin"},
    };
    enum MHD_Result result = MHD_YES;
    for (size_t i = 0; i < sizeof headers / sizeof headers[0] && result == MHD_YES; i++)
        result = MHD_add_response_header(response, headers[i][0], headers[i][1]);
    return result;
}

static enum MHD_Result exchange_queue(struct exchange *exchange, unsigned code, struct MHD_Response *response,
                                      const char *type, const char *cache)
{
    enum MHD_Result result = add_headers(response);
    if (result == MHD_YES && type != NULL)
        result = MHD_add_response_header(response, "Content-Type", type);
    if (result == MHD_YES)
        result = MHD_add_response_header(response, "Cache-Control", cache);
    if (result == MHD_YES && code == 401)
        result = MHD_add_response_header(response, "WWW-Authenticate", "Bearer");
    if (result == MHD_YES && code == 503)
        result = MHD_add_response_header(response, "Retry-After", "1");
    if (result == MHD_YES)
        result = MHD_queue_response(exchange->connection, code, response);
    MHD_destroy_response(response);
    return result;
}

/* ---- answers ---- */

/* To a browser that has shown the token: it cannot send that with the request for a stream. */
static enum MHD_Result add_cookie(const struct exchange *exchange, struct MHD_Response *response)
{
    struct access_facts const facts = facts_of(exchange);
    char cookie[128];
    if (!access_has_token(&exchange->console->rules, &facts))
        return MHD_YES;
    (void)snprintf(cookie, sizeof cookie, "thole_stream=%s; Path=/api/v1/stream; HttpOnly; SameSite=Strict",
                   exchange->console->rules.cookie);
    return MHD_add_response_header(response, "Set-Cookie", cookie);
}

/* Takes the answer's bytes. */
static enum MHD_Result exchange_send_answer(struct exchange *exchange)
{
    struct answer *const answer = &exchange->answer;
    struct MHD_Response *const response =
        MHD_create_response_from_buffer(answer->body.len, answer->body.ptr, MHD_RESPMEM_MUST_FREE);
    if (response == NULL)
        return MHD_NO;
    buf_init(&answer->body, 0);
    enum MHD_Result result = add_cookie(exchange, response);
    if (result == MHD_YES && answer->download)
        result = MHD_add_response_header(response, "Content-Disposition", "attachment; filename=\"data\"");
    if (result == MHD_YES)
        return exchange_queue(exchange, answer->code, response, answer->type, "no-store");
    MHD_destroy_response(response);
    return result;
}

static enum MHD_Result send_problem(struct exchange *exchange, unsigned code, const char *name,
                                    const char *text)
{
    answer_problem(&exchange->answer, code, name, text);
    return exchange_send_answer(exchange);
}

static enum MHD_Result send_refusal(struct exchange *exchange, const struct access_refusal *refusal)
{
    return send_problem(exchange, refusal->code, refusal->name, refusal->text);
}

static enum MHD_Result send_error(struct exchange *exchange, const thole_error *error)
{
    answer_error(&exchange->answer, error);
    return exchange_send_answer(exchange);
}

/* ---- files ---- */

static enum MHD_Result send_asset(struct exchange *exchange, const struct asset *asset)
{
    char etag[ETAG_BYTES];
    const char *const known = exchange_header(exchange->connection, "If-None-Match");
    (void)snprintf(etag, sizeof etag, "\"%016" PRIx64 "\"",
                   hash_bytes(asset->len, (thole_slice){asset->bytes, asset->len}));
    bool const same = known != NULL && strcmp(known, etag) == 0;
    union {
        const uint8_t *from;
        void *to;
    } const bytes = {.from = asset->bytes}; /* only read */
    struct MHD_Response *const response =
        MHD_create_response_from_buffer(same ? 0 : asset->len, bytes.to, MHD_RESPMEM_PERSISTENT);
    if (response == NULL)
        return MHD_NO;
    if (MHD_add_response_header(response, "ETag", etag) == MHD_YES)
        return exchange_queue(exchange, same ? 304 : 200, response, asset_type(asset->name), "no-cache");
    MHD_destroy_response(response);
    return MHD_NO;
}

/* Any path of a page gives the one page there is; it shows what the path says. */
static enum MHD_Result send_file(struct exchange *exchange, const char *path)
{
    static const char folder[] = "/assets/";
    bool const file = strncmp(path, folder, sizeof folder - 1) == 0;
    const struct asset *const asset =
        asset_find(file ? path + sizeof folder - 1
                   : strncmp(path, "/api/", 5) == 0 || strcmp(path, "/favicon.ico") == 0 ? ""
                                                                                         : "index.html");
    if (asset == NULL)
        return send_problem(exchange, 404, "NOT_FOUND", "there is nothing at this address");
    return send_asset(exchange, asset);
}

/* ---- the session ---- */

static void answer_session(struct exchange *exchange)
{
    const struct console *const console = exchange->console;
    struct access_facts const facts = facts_of(exchange);
    struct access_refusal refusal = {.code = 0};
    struct json json;
    bool const may = access_act(&console->rules, &facts, &refusal);
    answer_document(&exchange->answer, &json, "thole.session.v1");
    json_member_text(&json, "namespace", console->options.client->ns);
    json_member_text(&json, "version", thole_version());
    json_member_bool(&json, "actions", may);
    if (!may)
        json_member_text(&json, "actions_why", refusal.text);
    json_member_bool(&json, "token", console->options.token != NULL);
    json_key(&json, "user");
    if (console->options.identity_header != NULL && facts.identity != NULL)
        json_string(&json, thole_slice_from(facts.identity));
    else
        json_null(&json);
    json_member_text(&json, "csrf", console->rules.csrf);
    json_member_number(&json, "now_ms", clock_wall_ms());
    json_end(&json);
}

/* ---- streams ---- */

static void exchange_suspend(void *arg)
{
    struct exchange *const exchange = arg;
    MHD_suspend_connection(exchange->connection);
}

static void exchange_resume(void *arg)
{
    struct exchange *const exchange = arg;
    MHD_resume_connection(exchange->connection);
}

static bool exchange_is_gone(void *arg)
{
    const struct exchange *const exchange = arg;
    const union MHD_ConnectionInfo *const info =
        MHD_get_connection_info(exchange->connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    char byte;
    return info != NULL && recv(info->connect_fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

static ssize_t exchange_read_stream(void *arg, uint64_t at, char *to, size_t max)
{
    struct exchange *const exchange = arg;
    (void)at;
    size_t const n = feed_read(exchange->stream, to, max);
    return n == SIZE_MAX ? MHD_CONTENT_READER_END_OF_STREAM : (ssize_t)n;
}

static thole_status open_stream(struct exchange *exchange, thole_error *reterr)
{
    struct request *const request = &exchange->request;
    struct feed_owner const owner = {
        .sleep = exchange_suspend, .wake = exchange_resume, .gone = exchange_is_gone, .arg = exchange};
    const char *const last = exchange_header(exchange->connection, "Last-Event-ID");
    uint64_t from = 0;
    THOLE_TRY(request_check_args(request, "instance from", reterr));
    if (last != NULL && request_value(request, "from").len == 0)
        THOLE_TRY(request_arg(request, "from", last, reterr));
    THOLE_TRY(request_number(request, "from", 0, INT64_MAX, &from, reterr));
    thole_slice const instance = request_value(request, "instance");
    if (instance.len > THOLE_ID_BYTES_MAX)
        return thole_fail(reterr, THOLE_INVALID, "instance is longer than any id");
    return feed_open(exchange->console->hub, instance, from, owner, &exchange->stream, reterr);
}

static enum MHD_Result send_stream(struct exchange *exchange)
{
    struct access_facts const facts = facts_of(exchange);
    struct access_refusal refusal;
    thole_error error = {.status = THOLE_OK};
    if (!access_stream(&exchange->console->rules, &facts, &refusal))
        return send_refusal(exchange, &refusal);
    error.status = open_stream(exchange, &error);
    if (error.status != THOLE_OK)
        return send_error(exchange, &error);
    struct MHD_Response *const response = MHD_create_response_from_callback(
        MHD_SIZE_UNKNOWN, STREAM_BLOCK_BYTES, exchange_read_stream, exchange, NULL);
    if (response == NULL)
        return MHD_NO;
    return exchange_queue(exchange, 200, response, "text/event-stream", "no-store");
}

/* ---- requests ---- */

static enum MHD_Result take_arg(void *arg, enum MHD_ValueKind kind, const char *name, const char *value)
{
    thole_error *const error = ((void **)arg)[1];
    struct exchange *const exchange = ((void **)arg)[0];
    (void)kind;
    error->status = request_arg(&exchange->request, name, value == NULL ? "" : value, error);
    return error->status == THOLE_OK ? MHD_YES : MHD_NO;
}

/* Sends to a worker; the connection sleeps until the answer comes. */
static enum MHD_Result send_to_worker(struct exchange *exchange)
{
    MHD_suspend_connection(exchange->connection);
    if (jobs_put(exchange->console->jobs, exchange))
        return MHD_YES;
    answer_problem(&exchange->answer, 503, "BUSY", "so many requests wait already; try again in a moment");
    exchange->answered = true;
    MHD_resume_connection(exchange->connection);
    return MHD_YES;
}

void exchange_work(void *arg, size_t worker, void *job)
{
    struct console *const console = arg;
    struct exchange *const exchange = job;
    assert(worker < CONSOLE_WORKERS && !exchange->answered);
    route_run(exchange->route, &console->sessions[worker], &exchange->request, &exchange->answer);
    exchange->answered = true;
    MHD_resume_connection(exchange->connection);
}

static bool exchange_may_run(const struct exchange *exchange, struct access_refusal *ret)
{
    struct access_facts const facts = facts_of(exchange);
    const struct access_rules *const rules = &exchange->console->rules;
    return exchange->request.post ? access_action(rules, &facts, ret) : access_read(rules, &facts, ret);
}

static bool is_json(const struct exchange *exchange)
{
    static const char json[] = "application/json";
    const char *const type = exchange_header(exchange->connection, "Content-Type");
    size_t const len = sizeof json - 1;
    return type != NULL && strncasecmp(type, json, len) == 0 && strchr("; ", type[len]) != NULL;
}

static void keep_user(struct exchange *exchange)
{
    struct access_facts const facts = facts_of(exchange);
    thole_slice kept;
    if (facts.identity != NULL &&
        arena_dup(&exchange->request.arena, thole_slice_from(facts.identity), &kept) == THOLE_OK)
        exchange->request.user = kept;
}

static enum MHD_Result answer_api(struct exchange *exchange, const char *path)
{
    struct request *const request = &exchange->request;
    struct access_refusal refusal;
    thole_error error = {.status = THOLE_OK};
    void *both[] = {exchange, &error};
    bool other;
    error.status = request_path(request, path + sizeof api - 1, &error);
    if (error.status == THOLE_OK)
        (void)MHD_get_connection_values(exchange->connection, MHD_GET_ARGUMENT_KIND, take_arg, both);
    if (error.status != THOLE_OK)
        return send_error(exchange, &error);
    if (!request->post && request_is(request, "stream"))
        return send_stream(exchange);
    exchange->route = route_find(request, &other);
    bool const session = !request->post && request_is(request, "session");
    if (!session && exchange->route == NULL)
        return other ? send_problem(exchange, 405, "METHOD", "this address takes another method")
                     : send_problem(exchange, 404, "NOT_FOUND", "there is nothing at this address");
    if (!exchange_may_run(exchange, &refusal))
        return send_refusal(exchange, &refusal);
    if (buf_status(&request->body) != THOLE_OK)
        return send_problem(exchange, 413, "LIMIT", "the body has more than 1 MiB");
    if (request->post && !is_json(exchange))
        return send_problem(exchange, 415, "TYPE", "an action is JSON: Content-Type: application/json");
    keep_user(exchange);
    if (!session)
        return send_to_worker(exchange);
    answer_session(exchange);
    return exchange_send_answer(exchange);
}

static struct visitor *visitor_of(struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *const info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    return info == NULL ? NULL : info->socket_context;
}

void exchange_on_connection(void *arg, struct MHD_Connection *connection, void **state,
                            enum MHD_ConnectionNotificationCode what)
{
    struct console *const console = arg;
    const union MHD_ConnectionInfo *const info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    if (what == MHD_CONNECTION_NOTIFY_CLOSED) {
        visitors_go(&console->visitors, *state);
        *state = NULL;
    } else if (info != NULL) {
        *state = visitors_come(&console->visitors, info->connect_fd, clock_monotonic_ms());
    }
}

static enum MHD_Result answer_request(struct exchange *exchange, const char *path)
{
    struct access_facts const facts = facts_of(exchange);
    struct access_refusal refusal;
    if (strncmp(path, api, sizeof api - 1) == 0)
        return answer_api(exchange, path);
    if (exchange->request.post)
        return send_problem(exchange, 405, "METHOD", "only what is below /api/v1/ takes POST");
    if (strcmp(path, "/healthz") == 0) {
        exchange->answer.type = "text/plain; charset=utf-8";
        buf_text(&exchange->answer.body, "ok\n");
        return exchange_send_answer(exchange);
    }
    /* The files are the same for everybody; a page of a name that is not ours gets none of them. */
    if (!access_read(&exchange->console->rules, &facts, &refusal) && refusal.code != 401)
        return send_refusal(exchange, &refusal);
    return send_file(exchange, path);
}

static struct exchange *exchange_begin(struct console *console, struct MHD_Connection *connection, bool post)
{
    struct exchange *const exchange = memory_new(sizeof *exchange);
    struct access_refusal refusal;
    exchange->console = console;
    exchange->connection = connection;
    request_init(&exchange->request, CONSOLE_BODY_BYTES_MAX);
    answer_init(&exchange->answer);
    exchange->request.post = post;
    if (post && !exchange_may_run(exchange, &refusal)) /* a body that will be refused is read, and not kept */
        exchange->request.body.max = 0;
    return exchange;
}

enum MHD_Result exchange_on_request(void *arg, struct MHD_Connection *connection, const char *path,
                                    const char *method, const char *version, const char *body,
                                    size_t *body_len, void **state)
{
    struct exchange *exchange = *state;
    bool const post = strcmp(method, MHD_HTTP_METHOD_POST) == 0;
    bool const known =
        post || strcmp(method, MHD_HTTP_METHOD_GET) == 0 || strcmp(method, MHD_HTTP_METHOD_HEAD) == 0;
    (void)version;
    if (exchange == NULL) { /* the headers have come */
        exchange = *state = exchange_begin(arg, connection, post);
        return known ? MHD_YES : send_problem(exchange, 405, "METHOD", "only GET, HEAD and POST");
    }
    if (exchange->answered)
        return exchange_send_answer(exchange);
    if (*body_len > 0) {
        buf_append(&exchange->request.body, body, *body_len);
        *body_len = 0;
        return MHD_YES;
    }
    struct visitor *const visitor = visitor_of(connection);
    if (visitor != NULL)
        visitor_asks(visitor);
    return answer_request(exchange, path);
}

void exchange_on_end(void *arg, struct MHD_Connection *connection, void **state,
                     enum MHD_RequestTerminationCode why)
{
    struct console *const console = arg;
    struct exchange *const exchange = *state;
    struct visitor *const visitor = visitor_of(connection);
    (void)why;
    if (visitor != NULL)
        visitors_answered(&console->visitors, visitor, clock_monotonic_ms());
    if (exchange == NULL)
        return;
    if (exchange->stream != NULL)
        feed_close(exchange->stream);
    request_release(&exchange->request);
    answer_release(&exchange->answer);
    free(exchange);
    *state = NULL;
}

size_t exchange_unescape(void *arg, struct MHD_Connection *connection, char *text)
{
    (void)arg;
    (void)connection;
    return strlen(text);
}
