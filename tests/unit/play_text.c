/* Plays as text: see play.h. */
#include "play.h"
#include <stdlib.h>

enum { EVENTS_MAX = 64, FINALS_MAX = 8 };

struct cursor {
    const char *at;
    struct arena *arena;
};

static _Noreturn void give_up(const struct cursor *c, const char *what)
{
    fprintf(stderr, "play: %s at: %s\n", what, c->at);
    abort();
}

static bool skip(struct cursor *c, const char *text)
{
    size_t const len = strlen(text);
    if (strncmp(c->at, text, len) != 0)
        return false;
    c->at += len;
    return true;
}

static uint64_t number(struct cursor *c)
{
    char *end;
    uint64_t const n = strtoull(c->at, &end, 10);
    if (end == c->at)
        give_up(c, "a number is missing");
    c->at = end;
    return n;
}

static thole_slice until(struct cursor *c, const char *stops)
{
    size_t const len = strcspn(c->at, stops);
    thole_slice copy = {NULL, 0};
    if (len > 0 && arena_dup(c->arena, (thole_slice){(const uint8_t *)c->at, len}, &copy) != THOLE_OK)
        abort();
    c->at += len;
    return copy;
}

/* ---- one event ---- */

static enum event_kind kind_named(thole_slice name)
{
    for (int kind = EVENT_STARTED; kind <= EVENT_LAST; kind++) {
        if (thole_slice_equal(name, thole_slice_from(event_kind_name((enum event_kind)kind))))
            return (enum event_kind)kind;
    }
    return EVENT_UNKNOWN;
}

static bool cancels(enum event_kind kind)
{
    return kind == EVENT_ACTIVITY_CANCELLED || kind == EVENT_TIMER_CANCELLED ||
           kind == EVENT_EVENT_AWAIT_CANCELLED || kind == EVENT_CHILD_CANCELLED;
}

static bool fails(enum event_kind kind)
{
    return kind == EVENT_ACTIVITY_FAILED || kind == EVENT_ACTIVITY_TRY_FAILED || kind == EVENT_CHILD_FAILED ||
           kind == EVENT_FAILED;
}

static bool has_name(enum event_kind kind)
{
    switch (kind) {
    case EVENT_STARTED:
    case EVENT_ACTIVITY_SCHEDULED:
    case EVENT_ACTIVITY_TRY_STARTED:
    case EVENT_ACTIVITY_QUARANTINED:
    case EVENT_EVENT_RECEIVED:
    case EVENT_EVENT_AWAITED:
    case EVENT_CHILD_SCHEDULED:
    case EVENT_DETACHED_STARTED:
    case EVENT_EVENT_SENT:
    case EVENT_STATE_SET:
    case EVENT_PATCHED:
    case EVENT_STATE_CARRIED: return true;
    default: return false;
    }
}

static uint32_t code_named(struct cursor *c, bool cancel, thole_slice name)
{
    for (uint32_t code = 0; code < 32; code++) {
        const char *text =
            cancel ? thole_cancel_kind_name((thole_cancel_kind)code) : thole_status_name((thole_status)code);
        if (thole_slice_equal(name, thole_slice_from(text)))
            return code;
    }
    give_up(c, "unknown code");
}

static void parse_outcome(struct cursor *c, struct event *e)
{
    if (skip(c, " #"))
        e->ref = number(c);
    if (skip(c, " try "))
        e->try_number = (uint32_t)number(c);
    if ((fails(e->kind) || cancels(e->kind)) && skip(c, " "))
        e->code = code_named(c, cancels(e->kind), until(c, " "));
    if (fails(e->kind) && *c->at == ' ' && c->at[1] != '(' && c->at[1] != '|' && c->at[1] != '/') {
        c->at++;
        e->error_type = until(c, " ");
    }
}

static void parse_thing(struct cursor *c, struct event *e)
{
    if (has_name(e->kind) && skip(c, " "))
        e->name = until(c, " (@|/");
    if (skip(c, "@") || skip(c, " @"))
        e->version = (uint32_t)number(c);
    if (skip(c, "(") || skip(c, " (")) {
        e->data = until(c, ")");
        (void)skip(c, ")");
    }
    if (e->kind == EVENT_ORIGINS_CARRIED && skip(c, " ")) {
        size_t const n = number(c);
        uint8_t *hashes = arena_array(c->arena, n, 8);
        for (size_t i = 0; i < n; i++)
            hashes[i * 8] = (uint8_t)(i + 1);
        e->data = (thole_slice){hashes, n * 8};
    }
}

static void parse_rest(struct cursor *c, struct event *e)
{
    if (skip(c, " -> "))
        e->target = until(c, " ");
    if (skip(c, " of ")) {
        e->parent.instance = until(c, ":");
        (void)skip(c, ":");
        e->parent.execution = number(c);
        (void)skip(c, "#");
        e->parent.event = number(c);
    }
    if (skip(c, " due "))
        e->due_ms = number(c);
    e->flag = skip(c, " removed") || skip(c, " terminate");
    e->quarantined = skip(c, " from quarantine");
}

static void parse_finals(struct cursor *c, struct retry *retry)
{
    thole_slice *types = arena_array(c->arena, FINALS_MAX, sizeof *types);
    do
        types[retry->final_types_len++] = until(c, ", ]");
    while (skip(c, ","));
    retry->final_types = types;
}

static void parse_extra(struct cursor *c, struct event *e, struct retry *r)
{
    if (skip(c, "timed"))
        e->timed = true;
    else if (skip(c, "finals="))
        parse_finals(c, r);
    else if (skip(c, "final"))
        e->final = true;
    else if (skip(c, "id="))
        e->request_id = until(c, " ]");
    else if (skip(c, "queue="))
        e->queue = until(c, " ]");
    else if (skip(c, "details="))
        e->details = until(c, " ]");
    else if (skip(c, "close="))
        e->code = (uint32_t)number(c);
    else if (skip(c, "code="))
        e->code = (uint32_t)number(c);
    else if (skip(c, "tries="))
        r->tries_max = (uint32_t)number(c);
    else if (skip(c, "delay="))
        r->first_delay_ms = number(c);
    else if (skip(c, "factor="))
        r->factor_milli = (uint32_t)number(c);
    else if (skip(c, "max="))
        r->max_delay_ms = number(c);
    else if (skip(c, "jitter="))
        r->jitter_milli = (uint32_t)number(c);
    else if (skip(c, "try_ms="))
        r->try_timeout_ms = number(c);
    else if (skip(c, "total_ms="))
        r->total_timeout_ms = number(c);
    else if (skip(c, "poison="))
        r->poison = (uint32_t)number(c);
    else if (skip(c, "lost="))
        e->lost = (uint32_t)number(c);
    else if (skip(c, "worker="))
        e->worker = until(c, " ]");
    else if (skip(c, "input="))
        e->input = until(c, " ]");
    else
        give_up(c, "unknown word");
}

static bool retry_given(const struct retry *r)
{
    return r->tries_max != 0 || r->try_timeout_ms != 0 || r->total_timeout_ms != 0 || r->poison != 0;
}

static void parse_event(struct cursor *c, struct event *e)
{
    struct retry *retry = arena_alloc(c->arena, sizeof *retry);
    *e = (struct event){.kind = EVENT_UNKNOWN};
    if (skip(c, "#")) {
        e->id = number(c);
        (void)skip(c, " ");
    }
    e->kind = kind_named(until(c, " |/"));
    if (e->kind == EVENT_STARTED)
        e->code = SEMANTICS_VERSION;
    if (e->kind == EVENT_ACTIVITY_SCHEDULED || e->kind == EVENT_ACTIVITY_TRY_STARTED ||
        e->kind == EVENT_ACTIVITY_QUARANTINED)
        e->queue = THOLE_STR("default");
    parse_outcome(c, e);
    parse_thing(c, e);
    parse_rest(c, e);
    if (skip(c, " [")) {
        while (!skip(c, "]")) {
            parse_extra(c, e, retry);
            (void)skip(c, " ");
        }
    }
    if (retry_given(retry))
        e->retry = retry;
}

/* ---- turns ---- */

static void parse_turn(struct cursor *c, struct turn *turn, uint64_t number_from_1)
{
    struct event *events = arena_array(c->arena, EVENTS_MAX, sizeof *events);
    *turn =
        (struct turn){.instance = THOLE_STR("order-1"), .execution = 1, .number = number_from_1, .ran = true};
    turn->time_ms = number_from_1 * 1000;
    if (skip(c, "@")) {
        turn->time_ms = number(c);
        (void)skip(c, " ");
    }
    if (skip(c, "~")) {
        turn->ran = false;
        turn->blocked = BLOCKED_NO_CODE;
    }
    turn->events = events;
    (void)skip(c, "-");
    while (*c->at != '\0' && !skip(c, " / ")) {
        if (turn->events_len == EVENTS_MAX)
            give_up(c, "too many events");
        parse_event(c, &events[turn->events_len++]);
        bool const more = skip(c, " | ");
        if (!more && *c->at != '\0' && strncmp(c->at, " / ", 3) != 0)
            give_up(c, "not understood");
    }
}

void play_parse(const char *text, struct play_turns *ret)
{
    ret->len = 0;
    arena_init(&ret->arena, 16 << 20);
    struct cursor c = {text, &ret->arena};
    while (*c.at != '\0') {
        if (ret->len == PLAY_TURNS_MAX)
            give_up(&c, "too many turns");
        parse_turn(&c, &ret->turns[ret->len], ret->len + 1);
        ret->len++;
    }
}

void play_turns_release(struct play_turns *turns)
{
    arena_release(&turns->arena);
}

/* ---- events to text ---- */

static void render_number(struct buf *to, const char *what, uint64_t value)
{
    if (value != 0)
        buf_printf(to, " %s=%llu", what, (unsigned long long)value);
}

static void render_retry(struct buf *to, const struct retry *r)
{
    render_number(to, "tries", r->tries_max);
    render_number(to, "delay", r->first_delay_ms);
    render_number(to, "factor", r->factor_milli);
    render_number(to, "max", r->max_delay_ms);
    render_number(to, "jitter", r->jitter_milli);
    for (size_t i = 0; i < r->final_types_len; i++)
        buf_printf(to, "%s%.*s", i == 0 ? " finals=" : ",", THOLE_FMT(r->final_types[i]));
    render_number(to, "try_ms", r->try_timeout_ms);
    render_number(to, "total_ms", r->total_timeout_ms);
    render_number(to, "poison", r->poison);
}

static void render_slice(struct buf *to, const char *what, thole_slice value)
{
    if (value.len > 0)
        buf_printf(to, " %s=%.*s", what, THOLE_FMT(value));
}

void play_render(const struct event *event, struct buf *to)
{
    struct buf extra;
    buf_init(&extra, PLAY_TEXT_MAX);
    event_render(event, to);
    if (event->timed)
        buf_text(&extra, " timed");
    render_slice(&extra, "id", event->request_id);
    if (!thole_slice_equal(event->queue, THOLE_STR("default")))
        render_slice(&extra, "queue", event->queue);
    render_slice(&extra, "details", event->details);
    render_number(&extra, "lost", event->lost);
    render_slice(&extra, "worker", event->worker);
    render_slice(&extra, "input", event->input);
    if (event->kind == EVENT_CHILD_SCHEDULED)
        render_number(&extra, "close", event->code);
    if (event->kind == EVENT_SIDE_EFFECT_RECORDED)
        render_number(&extra, "code", event->code);
    if (event->retry != NULL)
        render_retry(&extra, event->retry);
    if (extra.len > 0)
        buf_printf(to, " [%s]", buf_cstr(&extra) + 1);
    buf_release(&extra);
}
