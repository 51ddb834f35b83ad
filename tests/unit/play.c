#include "play.h"
#include <stdlib.h>

enum { RECORD_MAX = 16 * 1024 * 1024 };

struct play play_of(thole_orchestration_fn *code)
{
    return (struct play){
        .code = code, .memory_max = 1 << 20, .payload_max = 256, .stacks = stack_pool_create(4, 16)};
}

void play_release(struct play *play)
{
    stack_pool_destroy(play->stacks);
}

struct instance *play_instance(const struct play *play)
{
    struct instance *instance = NULL;
    struct instance_options const options = {.code = play->code,
                                             .id = THOLE_STR("order-1"),
                                             .execution = 1,
                                             .memory_max = play->memory_max,
                                             .payload_max = play->payload_max,
                                             .stacks = play->stacks};
    if (instance_create(&options, &instance) != THOLE_OK)
        abort();
    return instance;
}

/* ---- text to turns ---- */

struct cursor {
    const char *at;
    struct arena *arena;
};

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
    if (end == c->at) {
        fprintf(stderr, "play: a number is missing at: %s\n", c->at);
        abort();
    }
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

static enum event_kind kind_named(thole_slice name)
{
    for (int kind = EVENT_STARTED; kind <= EVENT_CANCELLED; kind++) {
        if (thole_slice_equal(name, thole_slice_from(event_kind_name((enum event_kind)kind))))
            return (enum event_kind)kind;
    }
    return EVENT_UNKNOWN;
}

static uint32_t code_named(enum event_kind kind, thole_slice name)
{
    bool const cancels = kind == EVENT_ACTIVITY_CANCELLED || kind == EVENT_TIMER_CANCELLED;
    for (uint32_t code = 0; code < 32; code++) {
        const char *text = cancels ? cancel_kind_name(code) : thole_status_name((thole_status)code);
        if (thole_slice_equal(name, thole_slice_from(text)))
            return code;
    }
    fprintf(stderr, "play: unknown code %.*s\n", THOLE_FMT(name));
    abort();
}

static void parse_event(struct cursor *c, struct event *e)
{
    *e = (struct event){.kind = EVENT_UNKNOWN};
    if (skip(c, "#")) {
        e->id = number(c);
        (void)skip(c, " ");
    }
    e->kind = kind_named(until(c, " |/"));
    if (skip(c, " #"))
        e->ref = number(c);
    if (skip(c, " due "))
        e->due_ms = number(c);
    if (*c->at == ' ' && c->at[1] != '|' && c->at[1] != '/') {
        c->at++;
        thole_slice const word = until(c, " (");
        if (e->kind == EVENT_STARTED || e->kind == EVENT_ACTIVITY_SCHEDULED)
            e->name = word;
        else if (word.len > 0)
            e->code = code_named(e->kind, word);
        (void)skip(c, " ");
    }
    if (e->kind == EVENT_STARTED)
        e->code = SEMANTICS_VERSION;
    if (e->kind == EVENT_ACTIVITY_SCHEDULED)
        e->queue = THOLE_STR("default");
    if (skip(c, "(")) {
        e->data = until(c, ")");
        (void)skip(c, ")");
    }
}

static void parse_turn(struct cursor *c, struct turn *turn, uint64_t number_from_1)
{
    struct event *events = arena_array(c->arena, 64, sizeof *events);
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
        parse_event(c, &events[turn->events_len++]);
        (void)skip(c, " | ");
    }
}

void play_parse(const char *text, struct play_turns *ret)
{
    ret->len = 0;
    arena_init(&ret->arena, 16 << 20);
    struct cursor c = {text, &ret->arena};
    while (*c.at != '\0') {
        if (ret->len == PLAY_TURNS_MAX)
            abort();
        parse_turn(&c, &ret->turns[ret->len], ret->len + 1);
        ret->len++;
    }
}

void play_turns_release(struct play_turns *turns)
{
    arena_release(&turns->arena);
}

/* ---- live ---- */

static void render_turn(const struct turn *turn, struct buf *to)
{
    if (to->len > 0)
        buf_text(to, " / ");
    if (!turn->ran)
        buf_text(to, "~");
    if (turn->events_len == 0)
        buf_text(to, "-");
    for (size_t i = 0; i < turn->events_len; i++) {
        if (i > 0)
            buf_text(to, " | ");
        event_render(&turn->events[i], to);
    }
}

static thole_status turn_live(struct instance *instance, const struct turn *script, struct buf *record,
                              thole_error *err)
{
    struct turn_in const in = {.time_ms = script->time_ms,
                               .received = script->events,
                               .received_len = script->events_len,
                               .run = script->ran};
    struct turn_out out;
    THOLE_TRY(instance_turn(instance, &in, &out, err));
    CU_ASSERT_EQUAL(out.ended, instance_ended(instance));
    CU_ASSERT_EQUAL(out.number, instance_turns(instance));
    struct record const r = {.kind = RECORD_TURN,
                             .epoch = 1,
                             .n = out.number,
                             .turn = {.instance = script->instance,
                                      .execution = 1,
                                      .number = out.number,
                                      .time_ms = out.time_ms,
                                      .ran = script->ran,
                                      .blocked = script->blocked,
                                      .events = out.events,
                                      .events_len = out.events_len}};
    return record_encode(&r, record);
}

static void show_record(const struct buf *record, struct buf *to)
{
    struct arena arena;
    struct record r;
    thole_error err = {0};
    arena_init(&arena, RECORD_MAX);
    if (record_decode(buf_bytes(record), &arena, &r, &err) == THOLE_OK)
        render_turn(&r.turn, to);
    else
        buf_printf(to, " / record does not decode: %s", err.text);
    arena_release(&arena);
}

static thole_status replay_record(struct instance *instance, const struct buf *record, thole_error *err)
{
    struct arena arena;
    struct record r;
    arena_init(&arena, RECORD_MAX);
    thole_status status = record_decode(buf_bytes(record), &arena, &r, err);
    if (status == THOLE_OK)
        status = instance_replay(instance, &r.turn, err);
    arena_release(&arena);
    return status;
}

/* Replays the first turns, plays the rest live, and compares all that is recorded. */
static void check_prefix(const struct play *play, const struct play_turns *script, const struct buf *records,
                         size_t records_len, size_t prefix)
{
    struct instance *instance = play_instance(play);
    thole_error err = {0};
    thole_status status = THOLE_OK;
    for (size_t i = 0; i < prefix && status == THOLE_OK; i++)
        status = replay_record(instance, &records[i], &err);
    CU_ASSERT_EQUAL(status, THOLE_OK);
    for (size_t i = prefix; i < records_len && status == THOLE_OK; i++) {
        struct buf record;
        buf_init(&record, RECORD_MAX);
        status = turn_live(instance, &script->turns[i], &record, &err);
        CU_ASSERT_EQUAL(status, THOLE_OK);
        CU_ASSERT(thole_slice_equal(buf_bytes(&record), buf_bytes(&records[i])));
        buf_release(&record);
    }
    if (status != THOLE_OK)
        fprintf(stderr, "\n  after %zu replayed turns: %s\n", prefix, err.text);
    instance_destroy(instance);
}

void play_live(const struct play *play, const char *text, struct buf *to)
{
    struct play_turns script;
    struct buf records[PLAY_TURNS_MAX];
    struct instance *instance = play_instance(play);
    thole_error err = {0};
    thole_status status = THOLE_OK;
    size_t len = 0;
    play_parse(text, &script);
    for (size_t i = 0; i < script.len && status == THOLE_OK; i++) {
        buf_init(&records[i], RECORD_MAX);
        status = turn_live(instance, &script.turns[i], &records[i], &err);
        if (status == THOLE_OK)
            show_record(&records[len++], to);
        else
            buf_release(&records[i]);
    }
    if (status != THOLE_OK)
        buf_printf(to, "%s%s: %s", to->len > 0 ? " / " : "", thole_status_name(status), err.text);
    instance_destroy(instance);
    for (size_t prefix = 0; prefix <= len; prefix++)
        check_prefix(play, &script, records, len, prefix);
    for (size_t i = 0; i < len; i++)
        buf_release(&records[i]);
    play_turns_release(&script);
}

/* ---- replay ---- */

void play_replay(const struct play *play, const char *history, struct buf *to)
{
    struct play_turns turns;
    struct instance *instance = play_instance(play);
    thole_error err = {.text = "no text"};
    thole_status status = THOLE_OK;
    play_parse(history, &turns);
    for (size_t i = 0; i < turns.len && status == THOLE_OK; i++)
        status = instance_replay(instance, &turns.turns[i], &err);
    if (status != THOLE_OK) {
        buf_printf(to, "%s: %s", thole_status_name(status), err.text);
        CU_ASSERT_EQUAL(err.status, status);
    } else {
        buf_text(to, instance_ended(instance) ? "ok, ended" : "ok");
    }
    play_turns_release(&turns);
    instance_destroy(instance);
}

/* ---- rows ---- */

static void check_row(const struct play_row *row,
                      void (*perform)(const struct play *, const char *, struct buf *))
{
    struct play play = play_of(row->code);
    struct buf got;
    buf_init(&got, PLAY_TEXT_MAX);
    perform(&play, row->text, &got);
    CHECK_STR(row->name, buf_cstr(&got), row->expected);
    CU_ASSERT_EQUAL(stack_pool_in_use(play.stacks), 0);
    buf_release(&got);
    play_release(&play);
}

void play_check_live(const struct play_row *rows, size_t n)
{
    for (size_t i = 0; i < n; i++)
        check_row(&rows[i], play_live);
}

void play_check_replay(const struct play_row *rows, size_t n)
{
    for (size_t i = 0; i < n; i++)
        check_row(&rows[i], play_replay);
}
