#include "play.h"
#include "instance_events.h"
#include <stdlib.h>

enum { RECORD_MAX = 16 * 1024 * 1024 };

struct play play_of(thole_orchestration_fn *code)
{
    return (struct play){.code = code,
                         .id = "order-1",
                         .memory_max = 1 << 20,
                         .payload_max = 256,
                         .quarantine_ms = 5000,
                         .stacks = stack_pool_create(4, 16)};
}

void play_release(struct play *play)
{
    stack_pool_destroy(play->stacks);
}

static struct instance *create(const struct play *play, thole_orchestration_fn *code)
{
    struct instance_options const options = {.code = code,
                                             .id = thole_slice_from(play->id),
                                             .execution = 1,
                                             .version = code == NULL ? 0 : play->version,
                                             .memory_max = play->memory_max,
                                             .payload_max = play->payload_max,
                                             .quarantine_ms = play->quarantine_ms,
                                             .stacks = play->stacks};
    return instance_create(&options);
}

struct instance *play_instance(const struct play *play)
{
    return create(play, play->code);
}

struct instance *play_codeless(const struct play *play)
{
    return create(play, NULL);
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
        play_render(&turn->events[i], to);
    }
}

static enum blocked_kind blocked_by(const struct instance *instance, const struct turn_out *out)
{
    if (out->ran)
        return BLOCKED_NOT;
    return instance_paused(instance) ? BLOCKED_PAUSED : BLOCKED_NO_CODE;
}

static thole_status turn_live(const struct play *play, struct instance *instance, const struct turn_in *in,
                              struct buf *record, struct turn_out *out, thole_error *err)
{
    THOLE_TRY(instance_turn(instance, in, out, err));
    CU_ASSERT_EQUAL(out->ended, instance_ended(instance));
    CU_ASSERT_EQUAL(out->number, instance_turns(instance));
    CU_ASSERT_EQUAL(instance_kept(instance), events_kept(instance, NULL, NULL));
    struct record const r = {.kind = RECORD_TURN,
                             .epoch = 1,
                             .n = out->number,
                             .turn = {.instance = thole_slice_from(play->id),
                                      .execution = 1,
                                      .number = out->number,
                                      .time_ms = out->time_ms,
                                      .ran = out->ran,
                                      .blocked = blocked_by(instance, out),
                                      .events = out->events,
                                      .events_len = out->events_len}};
    return record_encode(&r, record);
}

thole_status play_feed(struct played *p, struct instance *instance, struct turn_in in, struct turn_out *ret,
                       thole_error *reterr)
{
    struct buf *record = &p->records[p->len];
    buf_init(record, RECORD_MAX);
    if (p->before_turn != NULL)
        p->before_turn(p->len);
    thole_status const status = turn_live(p->play, instance, &in, record, ret, reterr);
    if (status == THOLE_OK)
        p->fed[p->len++] = in;
    else
        buf_release(record);
    p->ended = instance_ended(instance);
    return status;
}

void played_release(struct played *p)
{
    for (size_t i = 0; i < p->len; i++)
        buf_release(&p->records[i]);
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

/* ---- invariants of every play ---- */

static struct instance *replayed(const struct played *p, size_t prefix, struct instance *instance)
{
    thole_error err = {.text = ""};
    thole_status status = THOLE_OK;
    if (p->before_replay != NULL)
        p->before_replay();
    for (size_t i = 0; i < prefix && status == THOLE_OK; i++)
        status = replay_record(instance, &p->records[i], &err);
    CHECK_STR("replay of a prefix", err.text, "");
    CU_ASSERT_EQUAL(status, THOLE_OK);
    return instance;
}

/* Goes on live after the prefix. */
static void check_going_on(const struct played *p, size_t prefix)
{
    struct instance *instance = replayed(p, prefix, play_instance(p->play));
    thole_status status = THOLE_OK;
    thole_error err = {.text = ""};
    for (size_t i = prefix; i < p->len && status == THOLE_OK; i++) {
        struct turn_out out;
        struct buf record;
        buf_init(&record, RECORD_MAX);
        thole_slice answer;
        if (i % 2 == prefix % 2) /* a question changes nothing */
            play_ignore(instance_query(instance, THOLE_STR("a"), THOLE_STR(""), &answer, NULL));
        if (p->before_turn != NULL)
            p->before_turn(i);
        status = turn_live(p->play, instance, &p->fed[i], &record, &out, &err);
        CU_ASSERT_EQUAL(status, THOLE_OK);
        CU_ASSERT(thole_slice_equal(buf_bytes(&record), buf_bytes(&p->records[i])));
        buf_release(&record);
    }
    CHECK_STR("going on after a prefix", err.text, "");
    instance_destroy(instance);
}

/* The next turn, recorded with and without code. */
static void check_facts(const struct played *p, size_t prefix)
{
    struct instance *instance = replayed(p, prefix, play_instance(p->play));
    struct instance *facts = replayed(p, prefix, play_codeless(p->play));
    struct turn_in in = p->fed[prefix];
    struct turn_out out;
    struct buf a, b;
    buf_init(&a, RECORD_MAX);
    buf_init(&b, RECORD_MAX);
    in.run = false;
    for (size_t i = 0; i < in.received_len; i++)
        CU_ASSERT_EQUAL(instance_accepts(instance, &in.received[i]),
                        instance_accepts(facts, &in.received[i]));
    CU_ASSERT_EQUAL(turn_live(p->play, instance, &in, &a, &out, NULL), THOLE_OK);
    CU_ASSERT_EQUAL(turn_live(p->play, facts, &in, &b, &out, NULL), THOLE_OK);
    CU_ASSERT(thole_slice_equal(buf_bytes(&a), buf_bytes(&b)) || (prefix == 0 && p->play->version != 0));
    CU_ASSERT_EQUAL(instance_paused(instance), instance_paused(facts));
    CU_ASSERT_EQUAL(instance_has_undelivered(instance), instance_has_undelivered(facts));
    CU_ASSERT(thole_slice_equal(instance_custom_status(instance), instance_custom_status(facts)));
    buf_release(&a);
    buf_release(&b);
    instance_destroy(instance);
    instance_destroy(facts);
}

/* Terminated without code; the code must accept the history. */
static void check_termination(const struct played *p, size_t prefix)
{
    struct instance *facts = replayed(p, prefix, play_codeless(p->play));
    struct event const terminate = {.kind = EVENT_TERMINATE_REQUESTED, .data = THOLE_STR("enough")};
    struct turn_in const in = {.time_ms = 1, .received = &terminate, .received_len = 1};
    struct turn_out out;
    struct buf record;
    thole_error err = {.text = ""};
    buf_init(&record, RECORD_MAX);
    CU_ASSERT_EQUAL(turn_live(p->play, facts, &in, &record, &out, &err), THOLE_OK);
    CU_ASSERT(instance_ended(facts));
    struct instance *instance = replayed(p, prefix, play_instance(p->play));
    CU_ASSERT_EQUAL(replay_record(instance, &record, &err), THOLE_OK);
    CHECK_STR("terminated without code", err.text, "");
    CU_ASSERT(instance_ended(instance));
    buf_release(&record);
    instance_destroy(instance);
    instance_destroy(facts);
}

static void render_carried(const struct instance *instance, struct buf *to)
{
    struct arena arena;
    struct event *events = NULL;
    size_t n = 0;
    arena_init(&arena, RECORD_MAX);
    buf_text(to, " => ");
    CU_ASSERT_EQUAL(instance_carry(instance, &arena, &events, &n), THOLE_OK);
    for (size_t i = 0; i < n; i++) {
        if (i > 0)
            buf_text(to, " | ");
        play_render(&events[i], to);
    }
    arena_release(&arena);
}

void play_check_carried(const struct played *p, const struct instance *live, struct buf *to)
{
    struct instance *others[] = {replayed(p, p->len, play_instance(p->play)),
                                 replayed(p, p->len, play_codeless(p->play))};
    struct buf carried;
    buf_init(&carried, PLAY_TEXT_MAX);
    render_carried(live, &carried);
    for (size_t i = 0; i < ARRAY_LEN(others); i++) {
        struct buf other;
        buf_init(&other, PLAY_TEXT_MAX);
        CU_ASSERT(instance_continued(others[i]));
        render_carried(others[i], &other);
        CHECK_STR("carried", buf_cstr(&other), buf_cstr(&carried));
        buf_release(&other);
        instance_destroy(others[i]);
    }
    buf_text(to, buf_cstr(&carried));
    buf_release(&carried);
}

void play_check_prefix(const struct played *p, size_t prefix)
{
    check_going_on(p, prefix);
    if (p->play->bare)
        return;
    if (prefix < p->len)
        check_facts(p, prefix);
    if (prefix > 0 && (prefix < p->len || !p->ended))
        check_termination(p, prefix);
}

static struct turn_in scripted(const struct turn *script)
{
    return (struct turn_in){.time_ms = script->time_ms,
                            .received = script->events,
                            .received_len = script->events_len,
                            .run = script->ran};
}

void play_live(const struct play *play, const char *text, struct buf *to)
{
    struct played *p = calloc(1, sizeof *p);
    struct play_turns script;
    struct instance *instance = play_instance(play);
    struct turn_out out;
    thole_error err = {0};
    thole_status status = THOLE_OK;
    p->play = play;
    play_parse(text, &script);
    for (size_t i = 0; i < script.len && status == THOLE_OK; i++) {
        status = play_feed(p, instance, scripted(&script.turns[i]), &out, &err);
        if (status == THOLE_OK)
            show_record(&p->records[i], to);
    }
    if (status != THOLE_OK)
        buf_printf(to, "%s%s: %s", to->len > 0 ? " / " : "", thole_status_name(status), err.text);
    if (instance_continued(instance))
        play_check_carried(p, instance, to);
    instance_destroy(instance);
    for (size_t prefix = 0; prefix <= p->len; prefix++)
        play_check_prefix(p, prefix);
    played_release(p);
    play_turns_release(&script);
    free(p);
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
