/* What the code asks for against what history has, and the words for a difference. */
#include "instance_state.h"
#include <stdio.h>
#include <string.h>

enum { DESCRIPTION_BYTES = 200, SHOWN_MAX = 64 };

static const char *status_text(uint32_t code)
{
    return thole_status_name((thole_status)code);
}

/* An instance id or a key may hold anything and be long. */
static void shown(thole_slice text, char to[SHOWN_MAX + 4])
{
    size_t const len = text.len < SHOWN_MAX ? text.len : SHOWN_MAX;
    for (size_t i = 0; i < len; i++)
        to[i] = (char)(text.ptr[i] >= 0x20 && text.ptr[i] < 0x7f ? text.ptr[i] : '.');
    (void)snprintf(to + len, 4, "%s", len < text.len ? "..." : "");
}

/* "ActivityScheduled 'charge'", "TimerCreated due 5000", "ActivityCancelled of event 3 (select_loser)". */
static void describe(const struct event *e, char to[DESCRIPTION_BYTES])
{
    const char *kind = event_kind_name(e->kind);
    char text[SHOWN_MAX + 4], target[SHOWN_MAX + 4];
    shown(e->name, text);
    shown(e->target, target);
    switch (e->kind) {
    case EVENT_ACTIVITY_SCHEDULED:
    case EVENT_EVENT_AWAITED:
    case EVENT_STATE_SET:
    case EVENT_PATCHED:
        (void)snprintf(to, DESCRIPTION_BYTES, "%s '%s'%s", kind, text, e->flag ? ", removed" : "");
        break;
    case EVENT_CHILD_SCHEDULED:
    case EVENT_DETACHED_STARTED:
        (void)snprintf(to, DESCRIPTION_BYTES, "%s '%s' as '%s'", kind, text, target);
        break;
    case EVENT_EVENT_SENT:
        (void)snprintf(to, DESCRIPTION_BYTES, "%s '%s' to '%s'", kind, text, target);
        break;
    case EVENT_TIMER_CREATED:
        (void)snprintf(to, DESCRIPTION_BYTES, "%s due %llu", kind, (unsigned long long)e->due_ms);
        break;
    case EVENT_ACTIVITY_CANCELLED:
    case EVENT_TIMER_CANCELLED:
    case EVENT_EVENT_AWAIT_CANCELLED:
    case EVENT_CHILD_CANCELLED:
        (void)snprintf(to, DESCRIPTION_BYTES, "%s of event %llu (%s)", kind, (unsigned long long)e->ref,
                       thole_cancel_kind_name((thole_cancel_kind)e->code));
        break;
    case EVENT_FAILED: (void)snprintf(to, DESCRIPTION_BYTES, "%s %s", kind, status_text(e->code)); break;
    default: (void)snprintf(to, DESCRIPTION_BYTES, "%s", kind); break;
    }
}

/* What to call the data of an event that differs from the recorded one in nothing else that is described. */
static const char *data_name(enum event_kind kind)
{
    switch (kind) {
    case EVENT_ACTIVITY_SCHEDULED:
    case EVENT_CHILD_SCHEDULED:
    case EVENT_DETACHED_STARTED:
    case EVENT_CONTINUED_AS_NEW: return "input";
    case EVENT_COMPLETED: return "output";
    case EVENT_FAILED: return "failure text";
    case EVENT_ACTIVITY_CANCELLED:
    case EVENT_TIMER_CANCELLED:
    case EVENT_EVENT_AWAIT_CANCELLED:
    case EVENT_CHILD_CANCELLED:
    case EVENT_TERMINATED:
    case EVENT_CANCELLED: return "reason";
    case EVENT_STATE_SET: return "value";
    case EVENT_CUSTOM_STATUS_SET: return "status";
    default: break;
    }
    return "content";
}

static const char *difference(const struct event *a, const struct event *b)
{
    if (!thole_slice_equal(a->data, b->data))
        return data_name(a->kind);
    if (!thole_slice_equal(a->queue, b->queue))
        return "queue";
    if (!thole_slice_equal(a->error_type, b->error_type))
        return "error type";
    if (a->version != b->version)
        return "version";
    if (a->code != b->code && a->kind == EVENT_CHILD_SCHEDULED)
        return "close policy";
    return "content";
}

static thole_status mismatch(struct instance *in, const struct event *had, const struct event *asked)
{
    char history[DESCRIPTION_BYTES], code[DESCRIPTION_BYTES];
    unsigned long long const id = asked->id;
    describe(had, history);
    describe(asked, code);
    if (strcmp(history, code) == 0)
        return instance_break(in, THOLE_NONDETERMINISM,
                              "event %llu: history has %s, the code asked for the same, but the %s differs",
                              id, history, difference(had, asked));
    return instance_break(in, THOLE_NONDETERMINISM, "event %llu: history has %s, the code asked for %s", id,
                          history, code);
}

static const struct event *take_expected(struct instance *in, const struct event *asked)
{
    char code[DESCRIPTION_BYTES];
    if (in->expected_len == 0) {
        describe(asked, code);
        (void)instance_break(in, THOLE_NONDETERMINISM,
                             "event %llu: history ends the turn, the code asked for %s",
                             (unsigned long long)asked->id, code);
        return NULL;
    }
    in->expected_len--;
    return in->expected++;
}

thole_status instance_match(struct instance *in, const struct event *asked)
{
    const struct event *had = take_expected(in, asked);
    if (had == NULL)
        return in->broken;
    if (!event_equal(had, asked))
        return mismatch(in, had, asked);
    in->matched = had;
    instance_count_event(in, had);
    return THOLE_OK;
}

const struct event *instance_expect(struct instance *in, enum event_kind kind)
{
    struct event const asked = {.kind = kind, .id = instance_next_id(in)};
    const struct event *had = take_expected(in, &asked);
    if (had == NULL)
        return NULL;
    if (had->kind != kind) {
        (void)mismatch(in, had, &asked);
        return NULL;
    }
    in->matched = had;
    in->next_event++;
    instance_count_event(in, had);
    return had;
}

void instance_absorb_patches(struct instance *in)
{
    while (in->broken == THOLE_OK && in->expected_len > 0 && in->expected->kind == EVENT_PATCHED) {
        struct name *name = names_intern(in, in->expected->name);
        if (name == NULL)
            return;
        name->patch = PATCH_TRUE;
        in->next_event++;
        instance_count_event(in, in->expected);
        in->expected++;
        in->expected_len--;
    }
}

thole_status instance_nothing_left(struct instance *in)
{
    char history[DESCRIPTION_BYTES];
    instance_absorb_patches(in);
    if (in->broken != THOLE_OK || in->expected_len == 0)
        return in->broken;
    describe(in->expected, history);
    return instance_break(in, THOLE_NONDETERMINISM,
                          "event %llu: history has %s, the code asked for nothing more",
                          (unsigned long long)in->expected->id, history);
}
