#include "repetition.h"
#include "text.h"
#include "utf8.h"
#include <stdio.h>

static enum event_kind repetition_kind(const struct message *message)
{
    switch (message->kind) {
    case MESSAGE_START: return message->event_name.len > 0 ? EVENT_EVENT_RECEIVED : EVENT_STARTED;
    case MESSAGE_EVENT: return EVENT_EVENT_RECEIVED;
    case MESSAGE_CANCEL: return EVENT_CANCEL_REQUESTED;
    case MESSAGE_TERMINATE: return EVENT_TERMINATE_REQUESTED;
    case MESSAGE_PAUSE: return EVENT_PAUSED;
    case MESSAGE_RESUME: return EVENT_RESUMED;
    case MESSAGE_PRUNE: return EVENT_HISTORY_PRUNED;
    default: return EVENT_UNKNOWN;
    }
}

static bool repetition_same_data(const struct event *event, thole_slice data)
{
    return event->data_erased || thole_slice_equal(event->data, data);
}

/* A start without a version gets one that the engine chooses. */
static bool repetition_same_version(uint32_t version, uint32_t other)
{
    return version == 0 || other == 0 || version == other;
}

static bool repetition_same_content(const struct event *event, const struct message *message)
{
    switch (event->kind) {
    case EVENT_STARTED:
        return thole_slice_equal(event->name, message->orchestration) &&
               repetition_same_version(event->version, message->version) &&
               repetition_same_data(event, message->data);
    case EVENT_EVENT_RECEIVED:
        return thole_slice_equal(event->name, message->event_name) &&
               repetition_same_data(event, message->event_data);
    default: return repetition_same_data(event, message->data);
    }
}

enum repetition repetition_in(const struct turn *turn, const struct message *message)
{
    enum event_kind const kind = repetition_kind(message);
    enum repetition found = REPETITION_NONE;
    for (size_t i = 0; i < turn->events_len && message->request_id.len > 0; i++) {
        const struct event *const event = &turn->events[i];
        bool const starts = message->kind == MESSAGE_START && event->kind == EVENT_STARTED;
        if ((event->kind != kind && !starts) || !thole_slice_equal(event->request_id, message->request_id))
            continue;
        if (!repetition_same_content(event, message))
            return REPETITION_OTHER;
        if (event->kind == kind)
            found = REPETITION_SAME;
    }
    return found;
}

bool repetition_is_of_request(const struct message *message, const struct message *other)
{
    return message->kind == other->kind && thole_slice_equal(message->instance, other->instance) &&
           thole_slice_equal(message->request_id, other->request_id);
}

bool repetition_is_same(const struct message *message, const struct message *other)
{
    return thole_slice_equal(message->orchestration, other->orchestration) &&
           repetition_same_version(message->version, other->version) &&
           message->execution == other->execution && thole_slice_equal(message->data, other->data) &&
           thole_slice_equal(message->event_name, other->event_name) &&
           thole_slice_equal(message->event_data, other->event_data);
}

#define ID_OF_ITS_OWN "this one is not carried out; give it a request id of its own"

thole_status repetition_refuse(const struct message *message, thole_error *reterr)
{
    return thole_fail(reterr, THOLE_CONFLICT,
                      "request id \"%.*s\" stands for another request to instance \"%.*s\", with other "
                      "contents: " ID_OF_ITS_OWN,
                      THOLE_FMT(message->request_id), THOLE_FMT(message->instance));
}

/* For people: what a request has asked for. */
static void repetition_describe(const struct message *message, char *to, size_t cap)
{
    enum { SHOWN_MAX = 60 };
    bool const event = message->event_name.len > 0;
    thole_slice const data = event ? message->event_data : message->data;
    thole_slice const shown = text_cut(data, SHOWN_MAX);
    char what[2 * THOLE_NAME_BYTES_MAX + 64] = "the reason";
    if (message->kind == MESSAGE_START)
        (void)snprintf(what, sizeof what, "start of %.*s%s%.*s with", THOLE_FMT(message->orchestration),
                       event ? " and event " : "", THOLE_FMT(message->event_name));
    else if (event)
        (void)snprintf(what, sizeof what, "event %.*s with", THOLE_FMT(message->event_name));
    if (utf8_is_valid(shown))
        (void)snprintf(to, cap, "%s \"%.*s%s\"", what, THOLE_FMT(shown), shown.len < data.len ? "..." : "");
    else
        (void)snprintf(to, cap, "%s %zu bytes", what, data.len);
}

thole_status repetition_refuse_after(const struct message *message, const struct message *before,
                                     thole_error *reterr)
{
    char was[300];
    repetition_describe(before, was, sizeof was);
    return thole_fail(reterr, THOLE_CONFLICT,
                      "request id \"%.*s\" stands for another request to instance \"%.*s\", which was sent "
                      "before (%s): " ID_OF_ITS_OWN,
                      THOLE_FMT(message->request_id), THOLE_FMT(message->instance), was);
}
