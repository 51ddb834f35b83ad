#include "endpoints.h"
#include "clock.h"
#include "gateway.pb-c.h"
#include "json.h"
#include "log.h"
#include "memory.h"
#include "text.h"
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ANSWER_BYTES_MAX = 64 * 1024, SUBJECT_BYTES = 256, WAYS = 3 };

struct services {
    struct connection *connection;
    char ns[THOLE_NAME_BYTES_MAX + 1], id[64];
    uint64_t started_ms; /* wall clock */
    struct endpoint endpoints[ENDPOINT_KINDS];
    struct subscription *subscriptions[WAYS];
};

#define KIND(id, word, request, answer, ...)                                                                 \
    [ENDPOINT_##id] = {.kind = ENDPOINT_##id,                                                                \
                       .name = word,                                                                         \
                       .asked = &thole__v1__##request##__descriptor,                                         \
                       .answered = &thole__v1__##answer##__descriptor,                                       \
                       __VA_ARGS__}
static const struct endpoint kinds[ENDPOINT_KINDS] = {
    KIND(OPEN, "open", open_session, session_opened, .named = true),
    KIND(NEXT, "next", next_tasks, tasks, .of_session = true),
    KIND(RENEW, "renew", renew_tasks, tasks_renewed, .of_session = true),
    KIND(COMPLETE, "complete", complete_tasks, tasks_completed, .of_session = true,
         .items = &thole__v1__outcome__descriptor),
    KIND(CLOSE, "close", close_session, session_closed, .of_session = true),
    KIND(START, "start", start_instance, instance_started, .of_client = true, .named = true),
    KIND(SIGNAL, "signal", signal_instance, accepted, .of_client = true, .named = true),
    KIND(CANCEL, "cancel", end_instance, accepted, .of_client = true),
    KIND(TERMINATE, "terminate", end_instance, accepted, .of_client = true),
    KIND(QUERY, "query", query_instance, query_result, .of_client = true, .named = true),
    KIND(WAIT, "wait", wait_instance, instance_outcome, .of_client = true),
    KIND(START_EVENT, "start_event", start_instance, instance_started, .of_client = true, .named = true),
    KIND(DESCRIBE, "describe", describe_instance, instance_description, .of_client = true),
    KIND(LIST, "list", list_instances, instance_list, .of_client = true),
    KIND(COMPLETE_ACTIVITY, "complete_activity", complete_activity, accepted, .of_client = true),
};

static struct endpoint *endpoints_find(struct services *services, thole_slice word, bool of_session)
{
    for (int i = 0; i < ENDPOINT_KINDS; i++) {
        struct endpoint *const endpoint = &services->endpoints[i];
        bool const its = of_session ? endpoint->of_session : endpoint->of_client;
        if (its && thole_slice_equal(word, thole_slice_from(endpoint->name)))
            return endpoint;
    }
    return NULL;
}

struct endpoint *services_session_endpoint(struct services *services, thole_slice operation)
{
    return endpoints_find(services, operation, true);
}

struct endpoint *services_client_endpoint(struct services *services, thole_slice operation)
{
    return endpoints_find(services, operation, false);
}

struct endpoint *services_open_endpoint(struct services *services)
{
    return &services->endpoints[ENDPOINT_OPEN];
}

/* ---- answers ---- */

static void endpoints_begin(const struct services *services, struct json *json, const char *verb)
{
    char type[64];
    (void)snprintf(type, sizeof type, "io.nats.micro.v1.%s_response", verb);
    json_object(json);
    json_member_text(json, "type", type);
    json_member_text(json, "name", GATEWAY_SERVICE);
    json_member_text(json, "id", services->id);
    json_member_text(json, "version", THOLE_VERSION);
    json_key(json, "metadata");
    json_object(json);
    json_member_text(json, "namespace", services->ns);
    json_end(json);
}

static void say_subject(const struct services *services, struct json *json, const struct endpoint *endpoint)
{
    char subject[SUBJECT_BYTES];
    if (endpoint->of_session)
        (void)snprintf(subject, sizeof subject, "thole.%s.gateway.session.%s.*.%s", services->ns,
                       services->id, endpoint->name);
    else
        (void)snprintf(subject, sizeof subject, "thole.%s.gateway.%s%s%s", services->ns,
                       endpoint->of_client ? "client." : "", endpoint->name, endpoint->named ? ".*" : "");
    json_member_text(json, "name", endpoint->name);
    json_member_text(json, "subject", subject);
    json_member_text(json, "queue_group", endpoint->of_session ? "" : GATEWAY_GROUP);
}

static void say_info(struct services *services, struct json *json)
{
    json_member_text(json, "description", "thole: activities and instances for clients without a database");
    json_key(json, "endpoints");
    json_array(json);
    for (int i = 0; i < ENDPOINT_KINDS; i++) {
        json_object(json);
        say_subject(services, json, &services->endpoints[i]);
        json_end(json);
    }
    json_end(json);
}

static void say_stats(struct services *services, struct json *json)
{
    char started[TIME_TEXT_BYTES];
    text_time(services->started_ms, started);
    json_member_text(json, "started", started);
    json_key(json, "endpoints");
    json_array(json);
    for (int i = 0; i < ENDPOINT_KINDS; i++) {
        struct endpoint *const endpoint = &services->endpoints[i];
        uint64_t const requests = atomic_load(&endpoint->requests);
        uint64_t const busy_ns = atomic_load(&endpoint->busy_us) * 1000;
        json_object(json);
        say_subject(services, json, endpoint);
        json_member_number(json, "num_requests", requests);
        json_member_number(json, "num_errors", atomic_load(&endpoint->errors));
        json_member_text(json, "last_error",
                         atomic_load(&endpoint->errors) == 0
                             ? ""
                             : thole_status_text((thole_status)atomic_load(&endpoint->last_error)));
        json_member_number(json, "processing_time", busy_ns);
        json_member_number(json, "average_processing_time", requests == 0 ? 0 : busy_ns / requests);
        json_end(json);
    }
    json_end(json);
}

/* $SRV.<verb>… */
static thole_slice verb_of(thole_slice subject)
{
    thole_slice verb = {subject.ptr + 5, subject.len - 5};
    for (size_t i = 0; i < verb.len; i++)
        if (verb.ptr[i] == '.')
            verb.len = i;
    return verb;
}

static void endpoints_on_question(void *arg, const struct delivery *delivery)
{
    struct services *const services = arg;
    struct json json;
    struct buf body;
    thole_error error = {.status = THOLE_OK};
    if (delivery->reply.len == 0 || delivery->subject.len <= 5)
        return;
    thole_slice const verb = verb_of(delivery->subject);
    buf_init(&body, ANSWER_BYTES_MAX);
    json_to_buf(&json, &body);
    if (thole_slice_equal(verb, THOLE_STR("PING"))) {
        endpoints_begin(services, &json, "ping");
        json_end(&json);
    } else if (thole_slice_equal(verb, THOLE_STR("INFO"))) {
        endpoints_begin(services, &json, "info");
        say_info(services, &json);
        json_end(&json);
    } else if (thole_slice_equal(verb, THOLE_STR("STATS"))) {
        endpoints_begin(services, &json, "stats");
        say_stats(services, &json);
        json_end(&json);
    }
    char *const reply = memory_copy(delivery->reply.ptr, delivery->reply.len);
    if (body.len > 0 && buf_status(&body) == THOLE_OK &&
        connection_publish(services->connection, reply, NULL, 0, buf_bytes(&body), &error) != THOLE_OK)
        log_line(LOG_LEVEL_DEBUG, "gateway", "a question was not answered: %s", error.text);
    free(reply);
    buf_release(&body);
}

thole_status services_start(struct connection *connection, const char *ns, const char *id,
                            struct metric_cells *cells, struct services **ret, thole_error *reterr)
{
    struct services *const services = memory_new(sizeof *services);
    char subjects[WAYS][SUBJECT_BYTES];
    services->connection = connection;
    services->started_ms = clock_wall_ms();
    (void)snprintf(services->ns, sizeof services->ns, "%s", ns);
    (void)snprintf(services->id, sizeof services->id, "%s", id);
    memcpy(services->endpoints, kinds, sizeof kinds);
    for (int i = 0; i < ENDPOINT_KINDS; i++)
        services->endpoints[i].cells = cells;
    (void)snprintf(subjects[0], SUBJECT_BYTES, "$SRV.*");
    (void)snprintf(subjects[1], SUBJECT_BYTES, "$SRV.*.%s", GATEWAY_SERVICE);
    (void)snprintf(subjects[2], SUBJECT_BYTES, "$SRV.*.%s.%s", GATEWAY_SERVICE, id);
    for (int i = 0; i < WAYS; i++) {
        thole_status const status = connection_subscribe(connection, subjects[i], endpoints_on_question,
                                                         services, &services->subscriptions[i], reterr);
        if (status != THOLE_OK) {
            services_stop(services);
            return status;
        }
    }
    *ret = services;
    return THOLE_OK;
}

void services_stop(struct services *services)
{
    if (services == NULL)
        return;
    for (int i = 0; i < WAYS; i++)
        subscription_close(services->subscriptions[i]);
    free(services);
}
