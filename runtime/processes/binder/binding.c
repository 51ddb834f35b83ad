#include "binding.h"
#include "bind_plan.h"
#include "clock.h"
#include "log.h"
#include "memory.h"
#include "message_route.h"
#include "rejected.h"
#include "subject.h"
#include <assert.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    RULE_ARENA_MAX = 64 * 1024,
    MESSAGE_OVERHEAD = 5120, /* of an inbox message around its payload */
    PUT_BACK_MS = 1000,      /* longer with each delivery, up to */
    PUT_BACK_MS_MAX = 30000,
    REJECTED_BODY_MAX = 1024,
};

struct binding {
    struct binding_host *host;
    char name[THOLE_NAME_BYTES_MAX + 1];
    struct arena arena; /* of the rule */
    struct bind_rule rule;
    struct puller *puller;
    atomic_bool refused;
    pthread_mutex_t lock;
    pthread_cond_t idle;
    size_t in_flight; /* under lock */
    bool closing;     /* under lock */
};

/* A message from its delivery to its end; its address is the token of the request. */
struct bound {
    struct binding *binding;
    struct work_message *message;
    bool rejected;
};

static void die_at(const struct binding *binding, enum binding_step step)
{
    if (binding->host->die_at == (unsigned)step)
        (void)kill(getpid(), SIGKILL);
}

/* ---- the end of a message ---- */

static void binding_finish(struct bound *bound)
{
    struct binding *const binding = bound->binding;
    work_message_destroy(bound->message);
    free(bound);
    (void)atomic_fetch_sub(&binding->host->counts.in_flight, 1);
    (void)pthread_mutex_lock(&binding->lock);
    binding->in_flight--;
    size_t const room = binding->rule.in_flight > binding->in_flight
                            ? (size_t)binding->rule.in_flight - binding->in_flight
                            : 0;
    if (!binding->closing && binding->puller != NULL)
        puller_want(binding->puller, (uint32_t)room);
    (void)pthread_cond_broadcast(&binding->idle);
    (void)pthread_mutex_unlock(&binding->lock);
}

/* A message that is not known to be stored comes again: handed back, or else after the ack wait. */
static void binding_put_back(struct bound *bound, const char *why)
{
    struct binding *const binding = bound->binding;
    uint64_t const deliveries = bound->message->deliveries > 0 ? bound->message->deliveries : 1;
    uint64_t const delay_ms =
        deliveries < PUT_BACK_MS_MAX / PUT_BACK_MS ? deliveries * PUT_BACK_MS : PUT_BACK_MS_MAX;
    (void)atomic_fetch_add(&binding->host->counts.put_back, 1);
    log_line(LOG_LEVEL_DEBUG, "binder", "rule %s: message %llu comes again in %llu ms: %s", binding->name,
             (unsigned long long)bound->message->sequence, (unsigned long long)delay_ms, why);
    thole_status const ignored =
        work_message_put_back(binding->host->connection, bound->message, delay_ms, NULL);
    (void)ignored;
    binding_finish(bound);
}

static void binding_acknowledge(struct bound *bound)
{
    struct binding *const binding = bound->binding;
    die_at(binding, bound->rejected ? BINDING_REJECT_STORED : BINDING_STORED);
    thole_status const ignored =
        work_message_signal(binding->host->connection, bound->message, WORK_ACK, NULL);
    (void)ignored; /* lost: it is delivered again, and its request id says that it was taken */
    if (!bound->rejected)
        die_at(binding, BINDING_ACKED);
    (void)atomic_fetch_add(bound->rejected ? &binding->host->counts.rejected
                                           : &binding->host->counts.sent[binding->rule.action],
                           1);
    binding_finish(bound);
}

void binding_on_done(void *arg, const struct request_done *done)
{
    struct bound *const bound = (struct bound *)(uintptr_t)done->token;
    (void)arg;
    if (bound == NULL)
        return; /* of refused_starts.c */
    switch (done->result) {
    case REQUEST_STORED: binding_acknowledge(bound); break;
    case REQUEST_BUSY: binding_put_back(bound, "the stream is busy"); break;
    case REQUEST_UNKNOWN: binding_put_back(bound, "nothing says that it is stored"); break;
    case REQUEST_ANSWERED:
    case REQUEST_REFUSED:
    case REQUEST_FAILED: binding_put_back(bound, "the server refuses it"); break;
    }
}

/* ---- sending and rejecting ---- */

static void binding_reject(struct bound *bound, const struct bound_view *view, const char *reason)
{
    struct binding *const binding = bound->binding;
    size_t const kept = view->body.len < REJECTED_BODY_MAX ? view->body.len : REJECTED_BODY_MAX;
    struct rejected_item const item = {.binding = binding->name,
                                       .sequence = view->sequence,
                                       .stored_ns = view->stored_ns,
                                       .code = THOLE_STR("binding"),
                                       .reason = thole_slice_from(reason),
                                       .subject = view->subject,
                                       .payload = {view->body.ptr, kept},
                                       .bytes = view->body.len};
    thole_error error = {.status = THOLE_OK};
    bound->rejected = true;
    log_limits_line(binding->host->lines, clock_monotonic_ms(), BINDER_LINE_REJECTED, NULL,
                    "rule %s: message %llu is rejected: %s", binding->name,
                    (unsigned long long)view->sequence, reason);
    if (rejected_publish(binding->host->requests, binding->host->topology->ns, &item,
                         (uint64_t)(uintptr_t)bound, &error) != THOLE_OK)
        binding_put_back(bound, error.text);
}

/* To the inbox of the instance's partition; the answer comes to binding_on_done(). */
static thole_status binding_send_message(struct bound *bound, const struct message *message, bool *ret_never,
                                         thole_error *reterr)
{
    struct binding_host *const host = bound->binding->host;
    struct message_route const route = message_route(message, SENDER_CLIENT);
    struct buf body, subject;
    buf_init(&body, MESSAGE_BYTES_MAX);
    buf_init(&subject, SUBJECT_BYTES_MAX);
    struct message said = *message;
    said.source.actor.name = thole_slice_from(bound->binding->name);
    said.source.actor.client = THOLE_STR("thole bind");
    thole_status status = message_encode(&said, &body);
    *ret_never = status != THOLE_OK && status != THOLE_NOMEM;
    if (status == THOLE_OK && body.len + MESSAGE_OVERHEAD > connection_max_payload(host->connection)) {
        *ret_never = true;
        status = THOLE_LIMIT;
    }
    if (status != THOLE_OK)
        status =
            thole_fail(reterr, status, "the message is too large for NATS: see max_payload of its servers");
    if (status == THOLE_OK)
        status = subject_inbox(&subject, host->topology->ns,
                               subject_partition(message->instance, host->topology->partitions),
                               thole_slice_from(route.text), message->instance, reterr);
    if (status == THOLE_OK) {
        struct publish const publish = {.subject = buf_cstr(&subject), .body = buf_bytes(&body)};
        status = requests_publish(host->requests, &publish, (uint64_t)(uintptr_t)bound, reterr);
    }
    buf_release(&body);
    buf_release(&subject);
    return status;
}

static void binding_carry_out(struct bound *bound, const struct bound_view *view,
                              const struct bind_plan *plan)
{
    struct binding *const binding = bound->binding;
    thole_error error = {.status = THOLE_OK};
    bool never = false;
    /* An event that is delivered again may have been taken before the instance ended. */
    if (plan->message.kind == MESSAGE_START || bound->message->deliveries <= 1)
        refused_starts_note(binding->host->refused_starts, binding->name, &plan->message, view);
    thole_status const status = binding_send_message(bound, &plan->message, &never, &error);
    if (status == THOLE_OK)
        die_at(binding, BINDING_SENT);
    else if (never)
        binding_reject(bound, view, error.text);
    else
        binding_put_back(bound, error.text);
}

static thole_status plan_for(const struct binding *binding, const struct bound_view *view,
                             struct arena *arena, struct bind_plan *ret, thole_error *reterr)
{
    struct event_header headers[BOUND_HEADERS_MAX];
    if (view->more_headers)
        return thole_fail(reterr, THOLE_INVALID, "the message has more than %d headers", BOUND_HEADERS_MAX);
    for (size_t i = 0; i < view->headers_len; i++)
        headers[i] = (struct event_header){view->headers[i].name, view->headers[i].value};
    struct event_message const message = {.subject = view->subject,
                                          .stream = view->stream,
                                          .body = view->body,
                                          .headers = headers,
                                          .headers_len = view->headers_len,
                                          .sequence = view->sequence,
                                          .stored_ns = view->stored_ns};
    return bind_plan_make(&binding->rule, thole_slice_from(binding->name), &message,
                          binding->host->topology->payload_max, arena, ret, reterr);
}

/* On the connection's reading thread, one at a time. */
static void binding_on_message(void *arg, struct work_message *message)
{
    struct binding *const binding = arg;
    struct bound *const bound = memory_new(sizeof *bound);
    struct bound_view view;
    struct bind_plan plan;
    struct arena arena;
    thole_error error = {.status = THOLE_OK};
    *bound = (struct bound){.binding = binding, .message = message};
    (void)atomic_fetch_add(&binding->host->counts.in_flight, 1);
    (void)pthread_mutex_lock(&binding->lock);
    binding->in_flight++;
    (void)pthread_mutex_unlock(&binding->lock);
    die_at(binding, BINDING_DELIVERED);
    bound_view(message, &view);
    arena_init(&arena, BIND_ARENA_MAX);
    thole_status const status = plan_for(binding, &view, &arena, &plan, &error);
    if (status == THOLE_OK)
        binding_carry_out(bound, &view, &plan);
    else if (status == THOLE_NOMEM)
        binding_put_back(bound, "out of memory");
    else
        binding_reject(bound, &view, error.text);
    arena_release(&arena);
}

static void binding_on_refused(void *arg)
{
    struct binding *const binding = arg;
    atomic_store(&binding->refused, true);
    binding->host->refused(binding->host->arg);
}

/* ---- open and close ---- */

static thole_status copy_rule(struct binding *binding, const struct bind_rule *rule)
{
    struct bind_rule *const to = &binding->rule;
    *to = *rule;
    THOLE_TRY(arena_dup(&binding->arena, rule->subject, &to->subject));
    THOLE_TRY(arena_dup(&binding->arena, rule->stream, &to->stream));
    THOLE_TRY(arena_dup(&binding->arena, rule->orchestration, &to->orchestration));
    THOLE_TRY(arena_dup(&binding->arena, rule->instance, &to->instance));
    return arena_dup(&binding->arena, rule->event, &to->event);
}

thole_status binding_ensure(struct binding *binding, thole_error *reterr)
{
    struct binding_consumer const consumer = {.stream = binding->rule.stream,
                                              .subject = binding->rule.subject,
                                              .only_new = binding->rule.from == BIND_NEW,
                                              .in_flight = binding->rule.in_flight};
    return binding_consumer_ensure(binding->host->connection, binding->host->topology->ns,
                                   thole_slice_from(binding->name), &consumer, reterr);
}

static thole_status binding_open_puller(struct binding *binding, thole_error *reterr)
{
    struct puller *puller = NULL;
    THOLE_TRY(binding_puller_open(binding->host->connection, binding->host->topology->ns,
                                  thole_slice_from(binding->name), binding->rule.stream, binding_on_message,
                                  binding_on_refused, binding, &puller, reterr));
    (void)pthread_mutex_lock(&binding->lock);
    binding->puller = puller;
    (void)pthread_mutex_unlock(&binding->lock);
    puller_want(puller, (uint32_t)binding->rule.in_flight);
    return THOLE_OK;
}

thole_status binding_open(struct binding_host *host, thole_slice name, const struct bind_rule *rule,
                          struct binding **ret, thole_error *reterr)
{
    struct binding *const binding = memory_new(sizeof *binding);
    binding->host = host;
    (void)snprintf(binding->name, sizeof binding->name, "%.*s", THOLE_FMT(name));
    (void)pthread_mutex_init(&binding->lock, NULL);
    (void)pthread_cond_init(&binding->idle, NULL);
    arena_init(&binding->arena, RULE_ARENA_MAX);
    thole_status status = copy_rule(binding, rule);
    if (status == THOLE_OK)
        status = binding_ensure(binding, reterr);
    if (status == THOLE_OK)
        status = binding_open_puller(binding, reterr);
    if (status != THOLE_OK) {
        binding_close(binding);
        return status;
    }
    *ret = binding;
    return THOLE_OK;
}

void binding_close(struct binding *binding)
{
    if (binding == NULL)
        return;
    (void)pthread_mutex_lock(&binding->lock);
    binding->closing = true;
    (void)pthread_mutex_unlock(&binding->lock);
    puller_close(binding->puller);
    (void)pthread_mutex_lock(&binding->lock);
    while (binding->in_flight > 0)
        (void)pthread_cond_wait(&binding->idle, &binding->lock);
    (void)pthread_mutex_unlock(&binding->lock);
    (void)pthread_cond_destroy(&binding->idle);
    (void)pthread_mutex_destroy(&binding->lock);
    arena_release(&binding->arena);
    free(binding);
}

bool binding_take_refused(struct binding *binding)
{
    return atomic_exchange(&binding->refused, false);
}

thole_status binding_state(struct binding *binding, struct binding_state *ret, thole_error *reterr)
{
    return binding_consumer_state(binding->host->connection, binding->host->topology->ns,
                                  thole_slice_from(binding->name), binding->rule.stream, ret, reterr);
}
