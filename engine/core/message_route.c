/* The table of routes. */
#include "message_route.h"
#include <assert.h>
#include <stdio.h>
#include <string.h>

static const char ENGINES[] = "engine.", WORKERS[] = "result.worker";

/* The verb of a control message, and what an engine calls the others. */
static const char *message_route_word(const struct message *m)
{
    switch (m->kind) {
    case MESSAGE_START: return "start";
    case MESSAGE_ACTIVITY_RESULT: return "result";
    case MESSAGE_EVENT: return "event";
    case MESSAGE_CHILD_RESULT: return "child_result";
    case MESSAGE_CANCEL: return "cancel";
    case MESSAGE_TERMINATE: return "terminate";
    case MESSAGE_PAUSE: return "pause";
    case MESSAGE_RESUME: return "resume";
    case MESSAGE_DELETE: return m->force ? "force_delete" : "delete";
    case MESSAGE_RELEASE: return m->timer ? "fire" : "release";
    case MESSAGE_PRUNE: return "prune";
    case MESSAGE_RETRY: return "retry";
    }
    assert(false);
    return "";
}

/* A client's request ids do not begin so, and it has no children. */
static bool is_engines(const struct message *m)
{
    return m->kind == MESSAGE_CHILD_RESULT || m->parent.instance.len > 0 ||
           (m->request_id.len > 0 && m->request_id.ptr[0] == '<');
}

static bool is_workers(const struct message *m)
{
    return activity_place_known(&m->source.place) || m->lost > 0;
}

struct message_route message_route(const struct message *m, enum message_sender sender)
{
    struct message_route to;
    int len = 0;
    if (sender == SENDER_ENGINE || is_engines(m))
        len = snprintf(to.text, sizeof to.text, "%s%s", ENGINES, message_route_word(m));
    else if (m->kind == MESSAGE_START && m->event_name.len > 0)
        len = snprintf(to.text, sizeof to.text, "start_event.%.*s~%.*s", THOLE_FMT(m->orchestration),
                       THOLE_FMT(m->event_name));
    else if (m->kind == MESSAGE_START)
        len = snprintf(to.text, sizeof to.text, "start.%.*s", THOLE_FMT(m->orchestration));
    else if (m->kind == MESSAGE_EVENT)
        len = snprintf(to.text, sizeof to.text, "event.%.*s", THOLE_FMT(m->event_name));
    else if (m->kind == MESSAGE_ACTIVITY_RESULT)
        len = snprintf(to.text, sizeof to.text, "%s",
                       sender == SENDER_WORKER || is_workers(m) ? WORKERS : "result.outside");
    else
        len = snprintf(to.text, sizeof to.text, "control.%s", message_route_word(m));
    assert(len > 0 && (size_t)len < sizeof to.text); /* names are checked */
    (void)len;
    return to;
}

enum message_sender message_route_sender(thole_slice route)
{
    size_t const engines = sizeof ENGINES - 1;
    if (route.len > engines && memcmp(route.ptr, ENGINES, engines) == 0)
        return SENDER_ENGINE;
    return thole_slice_equal(route, thole_slice_from(WORKERS)) ? SENDER_WORKER : SENDER_CLIENT;
}

thole_status message_route_check(const struct message *message, thole_slice route, thole_error *reterr)
{
    struct message_route const own = message_route(message, message_route_sender(route));
    if (thole_slice_equal(route, thole_slice_from(own.text)))
        return THOLE_OK;
    return thole_fail(reterr, THOLE_INVALID,
                      "the message is one for \"%s\", but its subject has another kind or name", own.text);
}
