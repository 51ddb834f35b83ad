#include "bind_plan.h"
#include "event_template.h"
#include "tagged_hash.h"
#include "trace.h"
#include "utf8.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static thole_status bind_plan_expand(const char *what, thole_slice template,
                                     const struct event_message *message, const struct cloud_event *event,
                                     struct arena *arena, thole_slice *ret, thole_error *reterr)
{
    thole_error why = {.status = THOLE_OK};
    struct buf text;
    buf_init(&text, TEMPLATE_RESULT_MAX);
    thole_status status = event_template_expand(template, message, event, &text, &why);
    if (status == THOLE_OK && arena_dup(arena, buf_bytes(&text), ret) != THOLE_OK)
        status = thole_fail(&why, THOLE_NOMEM, "no memory");
    buf_release(&text);
    return status == THOLE_OK ? THOLE_OK : thole_fail(reterr, status, "%s: %.400s", what, why.text);
}

/* ---- the request id ---- */

/* Adds the part after its length, so that no two lists of parts are the same bytes. */
static void bind_plan_add_part(struct buf *to, thole_slice part)
{
    buf_printf(to, "%zu:", part.len);
    buf_slice(to, part);
}

static thole_status make_request_id(thole_slice name, const struct event_message *message,
                                    const struct cloud_event *event, struct bind_plan *ret,
                                    thole_error *reterr)
{
    struct buf id;
    thole_slice const msg_id = event_message_header(message, "Nats-Msg-Id");
    buf_init(&id, 4 * EVENT_ATTRIBUTE_MAX);
    if (event->present) {
        ret->id_from = "ce-source and ce-id";
        buf_text(&id, "ce,");
        bind_plan_add_part(&id, cloud_event_attribute(event, THOLE_STR("source")));
        bind_plan_add_part(&id, cloud_event_attribute(event, THOLE_STR("id")));
    } else if (msg_id.len > 0) {
        ret->id_from = "Nats-Msg-Id";
        buf_text(&id, "msg,");
        bind_plan_add_part(&id, message->stream);
        bind_plan_add_part(&id, msg_id);
    } else {
        ret->id_from = "sequence";
        buf_text(&id, "seq,");
        bind_plan_add_part(&id, message->stream);
        buf_printf(&id, "%" PRIu64 ",%" PRIu64, message->sequence, message->stored_ns);
    }
    thole_status const status = buf_status(&id);
    struct tagged_hash const hash = tagged_hash_make("thole bind 1", buf_bytes(&id));
    buf_release(&id);
    (void)snprintf(ret->request_id, sizeof ret->request_id, "bind.%.*s.%s", THOLE_FMT(name), hash.text);
    return status == THOLE_OK ? THOLE_OK : thole_fail(reterr, THOLE_LIMIT, "the message's id is too long");
}

/* ---- the data ---- */

static thole_status whole_event(const struct cloud_event *event, uint64_t payload_max, struct arena *arena,
                                thole_slice *ret, thole_error *reterr)
{
    struct buf text;
    if (!event->present)
        return thole_fail(reterr, THOLE_INVALID,
                          "the message is no CloudEvent, and the rule passes whole events on (--data event)");
    buf_init(&text, (size_t)payload_max);
    cloud_event_write(event, &text);
    thole_status status = buf_status(&text);
    if (status == THOLE_OK)
        status = arena_dup(arena, buf_bytes(&text), ret);
    buf_release(&text);
    return status == THOLE_OK
               ? THOLE_OK
               : thole_fail(reterr, THOLE_LIMIT, "the event has more than %" PRIu64 " bytes", payload_max);
}

static thole_status bind_plan_take_data(const struct bind_rule *rule, const struct cloud_event *event,
                                        uint64_t payload_max, struct arena *arena, thole_slice *ret,
                                        thole_error *reterr)
{
    if (rule->data == BIND_EVENT)
        return whole_event(event, payload_max, arena, ret, reterr);
    *ret = event->data;
    if (event->data.len > payload_max)
        return thole_fail(reterr, THOLE_LIMIT, "the data has %zu bytes, the namespace takes %" PRIu64,
                          event->data.len, payload_max);
    return THOLE_OK;
}

/* ---- all of it ---- */

/* W3C Trace Context, as headers or as the extension of CloudEvents. What is not valid is ignored. */
static struct trace trace_of(const struct event_message *message, const struct cloud_event *event)
{
    struct trace trace = {event_message_header(message, "traceparent"),
                          event_message_header(message, "tracestate")};
    if (trace.parent.len == 0)
        trace = (struct trace){cloud_event_attribute(event, THOLE_STR("traceparent")),
                               cloud_event_attribute(event, THOLE_STR("tracestate"))};
    return trace_valid(&trace);
}

static thole_status name_instance(const struct bind_rule *rule, const struct event_message *message,
                                  const struct cloud_event *event, struct arena *arena, struct message *to,
                                  thole_error *reterr)
{
    thole_error why = {.status = THOLE_OK};
    THOLE_TRY(bind_plan_expand("instance", rule->instance, message, event, arena, &to->instance, reterr));
    if (id_check(to->instance, &why) != THOLE_OK)
        return thole_fail(reterr, THOLE_INVALID, "%.400s", why.text);
    if (rule->action == BIND_START)
        return THOLE_OK;
    THOLE_TRY(bind_plan_expand("event", rule->event, message, event, arena, &to->event_name, reterr));
    if (name_check(to->event_name, "event", &why) != THOLE_OK)
        return thole_fail(reterr, THOLE_INVALID, "%.400s; {…|name} writes _ for other bytes", why.text);
    return THOLE_OK;
}

thole_status bind_plan_make(const struct bind_rule *rule, thole_slice name,
                            const struct event_message *message, uint64_t payload_max, struct arena *arena,
                            struct bind_plan *ret, thole_error *reterr)
{
    struct cloud_event event;
    thole_slice data;
    memset(ret, 0, sizeof *ret);
    THOLE_TRY(cloud_event_read(message, arena, &event, reterr));
    THOLE_TRY(name_instance(rule, message, &event, arena, &ret->message, reterr));
    THOLE_TRY(bind_plan_take_data(rule, &event, payload_max, arena, &data, reterr));
    THOLE_TRY(make_request_id(name, message, &event, ret, reterr));
    ret->message.kind = rule->action == BIND_SIGNAL ? MESSAGE_EVENT : MESSAGE_START;
    ret->message.orchestration = rule->orchestration;
    ret->message.request_id = thole_slice_from(ret->request_id);
    ret->message.trace = rule->action == BIND_SIGNAL ? (struct trace){0} : trace_of(message, &event);
    if (rule->action == BIND_START)
        ret->message.data = data;
    else
        ret->message.event_data = data;
    return THOLE_OK;
}
