/* Names, comparison and rendering of history events. The codec is in record.c. */
#include "event.h"
#include <assert.h>

enum { RENDER_DATA_MAX = 64 };

/* Which fields of an event are rendered, in this order. */
enum {
    LATER_TRY = 1, /* the number of a try that is not the first */
    EVERY_TRY = 2,
    STATUS = 4, /* with the error type */
    CANCEL = 8,
    NAME = 16,
    VERSION = 32,
    DATA = 64,
    HASHES = 128, /* the number of hashes */
    TARGET = 256,
    PARENT = 512,
    DUE = 1024, /* unless 0 */
    DUE_ALWAYS = 2048,
    FLAG = 4096,
    HELD = 8192, /* rendered when it ends a quarantine */
    BEFORE = 16384,
    PRUNED = 32768,
};

/* Which fields of struct event each kind uses is in record.c's table. */
static const struct {
    const char *name;
    enum event_kind kind;
    enum { RECEIVED, ASKED, TERMINAL } by; /* terminal: asked for by code, and the last of its execution */
    unsigned shows;
} kinds[] = {
    {"Started", EVENT_STARTED, RECEIVED, NAME | VERSION | DATA | PARENT | BEFORE},
    {"ActivityScheduled", EVENT_ACTIVITY_SCHEDULED, ASKED, NAME | DATA},
    {"ActivityCompleted", EVENT_ACTIVITY_COMPLETED, RECEIVED, LATER_TRY | DATA},
    {"ActivityFailed", EVENT_ACTIVITY_FAILED, RECEIVED, LATER_TRY | STATUS | DATA | HELD},
    {"ActivityCancelled", EVENT_ACTIVITY_CANCELLED, ASKED, CANCEL | DATA | HELD},
    {"TimerCreated", EVENT_TIMER_CREATED, ASKED, DUE_ALWAYS},
    {"TimerFired", EVENT_TIMER_FIRED, RECEIVED, 0},
    {"TimerCancelled", EVENT_TIMER_CANCELLED, ASKED, CANCEL | DATA},
    {"CancelRequested", EVENT_CANCEL_REQUESTED, RECEIVED, DATA},
    {"Completed", EVENT_COMPLETED, TERMINAL, DATA},
    {"Failed", EVENT_FAILED, TERMINAL, STATUS | DATA},
    {"Cancelled", EVENT_CANCELLED, TERMINAL, DATA},
    {"ActivityTryFailed", EVENT_ACTIVITY_TRY_FAILED, RECEIVED, EVERY_TRY | STATUS | DATA | DUE},
    {"ActivityTryStarted", EVENT_ACTIVITY_TRY_STARTED, RECEIVED, EVERY_TRY | NAME | DATA | DUE | HELD},
    {"EventReceived", EVENT_EVENT_RECEIVED, RECEIVED, NAME | DATA},
    {"EventAwaited", EVENT_EVENT_AWAITED, ASKED, NAME},
    {"EventAwaitCancelled", EVENT_EVENT_AWAIT_CANCELLED, ASKED, CANCEL | DATA},
    {"ChildScheduled", EVENT_CHILD_SCHEDULED, ASKED, NAME | VERSION | DATA | TARGET},
    {"ChildCompleted", EVENT_CHILD_COMPLETED, RECEIVED, DATA},
    {"ChildFailed", EVENT_CHILD_FAILED, RECEIVED, STATUS | DATA},
    {"ChildCancelled", EVENT_CHILD_CANCELLED, ASKED, CANCEL | DATA | TARGET | FLAG},
    {"DetachedStarted", EVENT_DETACHED_STARTED, ASKED, NAME | VERSION | DATA | TARGET},
    {"EventSent", EVENT_EVENT_SENT, ASKED, NAME | DATA | TARGET},
    {"SideEffectRecorded", EVENT_SIDE_EFFECT_RECORDED, ASKED, DATA},
    {"CustomStatusSet", EVENT_CUSTOM_STATUS_SET, ASKED, DATA},
    {"StateSet", EVENT_STATE_SET, ASKED, NAME | DATA | FLAG},
    {"Patched", EVENT_PATCHED, ASKED, NAME},
    {"ContinuedAsNew", EVENT_CONTINUED_AS_NEW, TERMINAL, VERSION | DATA},
    {"TerminateRequested", EVENT_TERMINATE_REQUESTED, RECEIVED, DATA},
    {"Terminated", EVENT_TERMINATED, TERMINAL, DATA},
    {"Paused", EVENT_PAUSED, RECEIVED, DATA},
    {"Resumed", EVENT_RESUMED, RECEIVED, DATA},
    {"StateCarried", EVENT_STATE_CARRIED, RECEIVED, NAME | DATA},
    {"OriginsCarried", EVENT_ORIGINS_CARRIED, RECEIVED, HASHES},
    {"VersionChosen", EVENT_VERSION_CHOSEN, RECEIVED, VERSION},
    {"Discarded", EVENT_DISCARDED, RECEIVED, DATA},
    {"ActivityQuarantined", EVENT_ACTIVITY_QUARANTINED, RECEIVED, EVERY_TRY | NAME | DATA | DUE},
    {"HistoryPruned", EVENT_HISTORY_PRUNED, RECEIVED, DATA | PRUNED},
    {"EventEmitted", EVENT_EVENT_EMITTED, ASKED, NAME | DATA},
};
enum { KINDS_LEN = sizeof kinds / sizeof kinds[0] };

static int kind_find(enum event_kind kind)
{
    int const i = (int)kind - (int)EVENT_STARTED; /* the table has no gaps */
    if (i < 0 || i >= KINDS_LEN)
        return -1;
    assert(kinds[i].kind == kind);
    return i;
}

const char *blocked_kind_name(enum blocked_kind kind)
{
    static const char *const names[BLOCKED_KINDS] = {[BLOCKED_NO_CODE] = "no_code",
                                                     [BLOCKED_NONDETERMINISM] = "divergence",
                                                     [BLOCKED_DAMAGED] = "damaged",
                                                     [BLOCKED_TOO_NEW] = "too_new",
                                                     [BLOCKED_LIMIT] = "limit",
                                                     [BLOCKED_PAUSED] = "paused",
                                                     [BLOCKED_NOT_STARTED] = "not_started",
                                                     [BLOCKED_CRASHED] = "crashed"};
    return (size_t)kind < BLOCKED_KINDS ? names[kind] : NULL;
}

const char *event_kind_name(enum event_kind kind)
{
    int const i = kind_find(kind);
    return i < 0 ? "Unknown" : kinds[i].name;
}

bool event_is_received(enum event_kind kind)
{
    int const i = kind_find(kind);
    return i >= 0 && kinds[i].by == RECEIVED;
}

bool event_is_terminal(enum event_kind kind)
{
    int const i = kind_find(kind);
    return i >= 0 && kinds[i].by == TERMINAL;
}

const char *thole_cancel_kind_name(thole_cancel_kind kind)
{
    switch (kind) {
#define X(name, value, text)                                                                                 \
    case THOLE_CANCEL_##name: return text;
        THOLE_CANCEL_KIND_MAP(X)
#undef X
    }
    return "unknown";
}

thole_cancel_kind cancel_kind_find(thole_slice name)
{
    static const thole_cancel_kind all[] = {
#define X(name, value, text) THOLE_CANCEL_##name,
        THOLE_CANCEL_KIND_MAP(X)
#undef X
    };
    for (size_t i = 1; i < sizeof all / sizeof all[0]; i++)
        if (thole_slice_equal(name, thole_slice_from(thole_cancel_kind_name(all[i]))))
            return all[i];
    return THOLE_CANCEL_CANCELLED;
}

bool event_equal(const struct event *a, const struct event *b)
{
    return a->kind == b->kind && a->ref == b->ref && a->due_ms == b->due_ms && a->code == b->code &&
           a->version == b->version && a->flag == b->flag && thole_slice_equal(a->data, b->data) &&
           thole_slice_equal(a->name, b->name) && thole_slice_equal(a->queue, b->queue) &&
           thole_slice_equal(a->target, b->target) && thole_slice_equal(a->error_type, b->error_type);
}

/* Printable ASCII as it is, anything else as '.'. */
static void render_bytes(struct buf *to, thole_slice bytes)
{
    size_t const len = bytes.len < RENDER_DATA_MAX ? bytes.len : RENDER_DATA_MAX;
    for (size_t i = 0; i < len; i++) {
        uint8_t const c = bytes.ptr[i];
        buf_append(to, c >= 0x20 && c < 0x7f ? &bytes.ptr[i] : (const uint8_t *)".", 1);
    }
    if (len < bytes.len)
        buf_text(to, "...");
}

/* A space, then the text. */
static void render_word(struct buf *to, thole_slice text)
{
    buf_text(to, " ");
    render_bytes(to, text);
}

/* The outcome: try, status and error type, or why it was cancelled. */
static void render_outcome(struct buf *to, const struct event *event, unsigned shows)
{
    if ((shows & EVERY_TRY) != 0 || ((shows & LATER_TRY) != 0 && event->try_number > 1))
        buf_printf(to, " try %u", event->try_number);
    if ((shows & STATUS) != 0)
        buf_printf(to, " %s", thole_status_name((thole_status)event->code));
    if ((shows & STATUS) != 0 && event->error_type.len > 0)
        render_word(to, event->error_type);
    if ((shows & CANCEL) != 0)
        buf_printf(to, " %s", thole_cancel_kind_name((thole_cancel_kind)event->code));
}

/* The subject: name@version(data). */
static void render_thing(struct buf *to, const struct event *event, unsigned shows)
{
    bool const version = (shows & VERSION) != 0 && event->version != 0;
    if ((shows & NAME) != 0)
        render_word(to, event->name);
    if (version)
        buf_printf(to, "%s@%u", (shows & NAME) != 0 ? "" : " ", event->version);
    if ((shows & DATA) != 0) {
        buf_text(to, (shows & NAME) != 0 || version ? "(" : " (");
        render_bytes(to, event->data);
        buf_text(to, ")");
    }
    if ((shows & HASHES) != 0)
        buf_printf(to, " %zu", event->data.len / sizeof(uint64_t));
}

static void render_rest(struct buf *to, const struct event *event, unsigned shows)
{
    if ((shows & TARGET) != 0) {
        buf_text(to, " ->");
        render_word(to, event->target);
    }
    if ((shows & PARENT) != 0 && event->parent.instance.len > 0) {
        buf_text(to, " of");
        render_word(to, event->parent.instance);
        buf_printf(to, ":%llu#%llu", (unsigned long long)event->parent.execution,
                   (unsigned long long)event->parent.event);
    }
    if ((shows & BEFORE) != 0 && event->before != 0)
        buf_printf(to, " after %llu deleted", (unsigned long long)event->before);
    if ((shows & PRUNED) != 0)
        buf_printf(to, " after %llu before %llu", (unsigned long long)event->kept,
                   (unsigned long long)event->before);
    if ((shows & DUE_ALWAYS) != 0 || ((shows & DUE) != 0 && event->due_ms != 0))
        buf_printf(to, " due %llu", (unsigned long long)event->due_ms);
    if ((shows & FLAG) != 0 && event->flag)
        buf_text(to, event->kind == EVENT_STATE_SET ? " removed" : " terminate");
    if ((shows & HELD) != 0 && event->quarantined)
        buf_text(to, " from quarantine");
}

void event_render(const struct event *event, struct buf *to)
{
    int const i = kind_find(event->kind);
    unsigned const shows = i < 0 ? 0 : kinds[i].shows;
    buf_printf(to, "#%llu %s", (unsigned long long)event->id, event_kind_name(event->kind));
    if (event->ref != 0)
        buf_printf(to, " #%llu", (unsigned long long)event->ref);
    render_outcome(to, event, shows);
    render_thing(to, event, shows);
    render_rest(to, event, shows);
    if (event->data_erased || event->details_erased || event->input_erased)
        buf_text(to, " (redacted)");
}
