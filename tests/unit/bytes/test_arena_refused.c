/*
 * Each request for memory of an arena is refused once, one after the other, and all later ones are granted:
 * the caller must report it, and pass it on to the end. Nothing may succeed with a part left out.
 */
#include "dropped.h"
#include "play.h"
#include "query_message.h"
#include "samples.h"
#include "thole/orchestration.h"
#include "wrap_arena.h"

enum { ARENA_MAX = 8 << 20, REQUESTS_MAX = 2000 };

/* Does it once; any status. */
typedef thole_status attempt_fn(void *arg);

/* Until it asks no more. */
static void refuse_each(const char *what, attempt_fn *attempt, void *arg)
{
    size_t n = 1;
    bool refused = true;
    for (; refused && n < REQUESTS_MAX; n++) {
        arena_refuse(n);
        thole_status const status = attempt(arg);
        refused = arena_refused();
        CU_ASSERT_EQUAL(status == THOLE_OK, !refused);
        if ((status == THOLE_OK) == refused)
            fprintf(stderr, "\n  %s: request %zu %s, and it says %s\n", what, n,
                    refused ? "was refused" : "was not made", thole_status_name(status));
    }
    CU_ASSERT_FALSE(refused);
}

/* ---- decoding ---- */

static struct buf bytes;

static thole_status decode_record(void *arg)
{
    struct arena arena;
    struct record record;
    (void)arg;
    arena_init(&arena, ARENA_MAX);
    thole_status const status = record_decode(buf_bytes(&bytes), &arena, &record, NULL);
    arena_release(&arena);
    return status;
}

static thole_status encode_record(void *arg)
{
    struct buf to;
    buf_init(&to, RECORD_BYTES_MAX);
    thole_status const status = record_encode(arg, &to);
    buf_release(&to);
    return status;
}

static thole_status decode_message(void *arg)
{
    struct arena arena;
    struct message message;
    (void)arg;
    arena_init(&arena, ARENA_MAX);
    thole_status const status = message_decode(buf_bytes(&bytes), &arena, &message, NULL);
    arena_release(&arena);
    return status;
}

static void of_record(struct record *record)
{
    buf_init(&bytes, RECORD_BYTES_MAX);
    CU_ASSERT_EQUAL(record_encode(record, &bytes), THOLE_OK);
    refuse_each("decoding a record", decode_record, NULL);
    refuse_each("encoding a record", encode_record, record);
    buf_release(&bytes);
}

static void records(void)
{
    static const struct sequence_range above[] = {{9, 9}, {11, 12}};
    struct position const position = {.floor = 7, .ranges = above, .ranges_len = 2, .seen = 12, .seen_ns = 5};
    struct record record = {.kind = RECORD_EPOCH_OPENED, .epoch = 2, .n = 0, .node = THOLE_STR("n")};
    record.position = position;
    of_record(&record);
    record.position.listed = true;
    of_record(&record);
    record = (struct record){.kind = RECORD_DELETED, .epoch = 2, .n = 3};
    record.position = position;
    record.deletion = (struct deletion){.instance = THOLE_STR("i"),
                                        .execution = 1,
                                        .orchestration = THOLE_STR("o"),
                                        .reason = THOLE_STR("old"),
                                        .request_id = THOLE_STR("r"),
                                        .started_by = THOLE_STR("s"),
                                        .parent = {THOLE_STR("p"), 1, 2}};
    of_record(&record);
    for (size_t i = 0; i < sample_events_len; i++) {
        record = (struct record){.kind = RECORD_TURN, .epoch = 2, .n = 3};
        record.position = position;
        record.turn = (struct turn){.instance = THOLE_STR("i"),
                                    .execution = 1,
                                    .number = 1,
                                    .blocked = BLOCKED_NO_CODE,
                                    .blocked_text = THOLE_STR("why"),
                                    .events = &sample_events[i],
                                    .events_len = 1};
        of_record(&record);
    }
}

static void messages(void)
{
    for (size_t i = 0; i < sample_messages_len; i++) {
        buf_init(&bytes, MESSAGE_BYTES_MAX);
        CU_ASSERT_EQUAL(message_encode(&sample_messages[i], &bytes), THOLE_OK);
        refuse_each("decoding a message", decode_message, NULL);
        buf_release(&bytes);
    }
}

static thole_status decode_heartbeat(void *arg)
{
    struct arena arena;
    struct heartbeat heartbeat;
    (void)arg;
    arena_init(&arena, ARENA_MAX);
    thole_status const status = heartbeat_decode(buf_bytes(&bytes), &arena, &heartbeat, NULL);
    arena_release(&arena);
    return status;
}

static void heartbeats(void)
{
    thole_slice const names[] = {THOLE_STR("a"), THOLE_STR("b@2")};
    struct partition_needs const needs = {.partition = 3, .orchestrations = names, .orchestrations_len = 2};
    struct heartbeat const heartbeat = {.node = THOLE_STR("n"),
                                        .started_ms = 4,
                                        .orchestrations = names,
                                        .orchestrations_len = 2,
                                        .needs = &needs,
                                        .needs_len = 1};
    buf_init(&bytes, MESSAGE_BYTES_MAX);
    CU_ASSERT_EQUAL(heartbeat_encode(&heartbeat, &bytes), THOLE_OK);
    refuse_each("decoding a heartbeat", decode_heartbeat, NULL);
    buf_release(&bytes);
}

static thole_status decode_query(void *arg)
{
    struct arena arena;
    struct query query;
    (void)arg;
    arena_init(&arena, ARENA_MAX);
    thole_status const status = query_decode(buf_bytes(&bytes), &arena, &query, NULL);
    arena_release(&arena);
    return status;
}

static thole_status decode_answer(void *arg)
{
    struct arena arena;
    struct query_answer answer;
    (void)arg;
    arena_init(&arena, ARENA_MAX);
    thole_status const status = query_answer_decode(buf_bytes(&bytes), &arena, &answer, NULL);
    arena_release(&arena);
    return status;
}

static void queries(void)
{
    struct query const query = {
        .instance = THOLE_STR("i"), .name = THOLE_STR("how"), .input = THOLE_STR("now")};
    struct query_answer const answer = {.data = THOLE_STR("well")};
    buf_init(&bytes, MESSAGE_BYTES_MAX);
    CU_ASSERT_EQUAL(query_encode(&query, &bytes), THOLE_OK);
    refuse_each("decoding a query", decode_query, NULL);
    buf_clear(&bytes);
    CU_ASSERT_EQUAL(query_answer_encode(&answer, &bytes), THOLE_OK);
    refuse_each("decoding an answer", decode_answer, NULL);
    buf_release(&bytes);
}

/* ---- turns ---- */

static thole_status make(thole_ctx *ctx, void *arg, thole_slice *ret_value)
{
    (void)ctx, (void)arg;
    *ret_value = THOLE_STR("straw");
    return THOLE_OK;
}

static thole_status answers(thole_ctx *ctx, void *arg, thole_slice input, thole_slice *ret_output)
{
    (void)arg;
    *ret_output = thole_format(ctx, "well, %.*s", THOLE_FMT(input));
    return ret_output->len > 0 ? THOLE_OK : THOLE_LIMIT;
}

/* Takes no status for more than it is: the last one decides. */
static thole_status all_kinds(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    thole_slice const final = THOLE_STR("declined");
    thole_call_options const options = {
        .size = sizeof options,
        .queue = THOLE_STR("cards"),
        .retry = {.tries_max = 3, .first_delay_ms = 5, .final_types = &final, .final_types_len = 1}};
    thole_saga saga = {0};
    thole_slice value = {0};
    (void)ret_output;
    thole_on_query(ctx, THOLE_STR("how"), answers, NULL);
    (void)thole_patch(ctx, THOLE_STR("change"));
    thole_set_status(ctx, input);
    thole_state_set(ctx, THOLE_STR("key"), input);
    thole_state_set(ctx, THOLE_STR("other"), THOLE_STR("value"));
    thole_state_remove(ctx, THOLE_STR("other"));
    thole_task const charge = thole_call_with(ctx, THOLE_STR("charge"), input, &options);
    drop_task(thole_child(ctx, THOLE_STR("kid"), input, NULL));
    thole_start(ctx, THOLE_STR("mail"), input, NULL);
    thole_raise(ctx, THOLE_STR("other"), THOLE_STR("news"), input);
    thole_saga_add(ctx, &saga, THOLE_STR("undo"), input, &options);
    THOLE_TRY(thole_side_effect(ctx, make, NULL, &value));
    thole_task tasks[] = {thole_event(ctx, THOLE_STR("go")), charge, thole_timer(ctx, 9)};
    size_t winner;
    THOLE_TRY(thole_await_any(ctx, tasks, 3, &winner));
    THOLE_TRY(thole_await(ctx, thole_event(ctx, THOLE_STR("more")), NULL));
    return thole_continue_as_new(ctx, value, 0);
}

static const char script[] =
    "Started t(bread) of p:1#2 [id=r0] | EventReceived kept(1) [id=r1] | EventReceived kept(2) [id=r2] / "
    "ActivityFailed #9 APP busy (no) [details=half] / EventReceived go(now) / EventReceived more(x) [id=r3]";

struct course {
    struct play play;
    struct play_turns script;
    struct instance *instance; /* instance after the turns before `turn` */
    size_t turn;
};

static struct instance *at_turn(const struct course *c, size_t turn)
{
    struct instance *const instance = play_instance(&c->play);
    for (size_t i = 0; i < turn; i++) {
        const struct turn *const from = &c->script.turns[i];
        struct turn_in const in = {from->time_ms, from->events, from->events_len, .run = true};
        struct turn_out out;
        CU_ASSERT_EQUAL(instance_turn(instance, &in, &out, NULL), THOLE_OK);
    }
    return instance;
}

/* Only the last turn is refused anything. */
static thole_status take_turn(void *arg)
{
    struct course *const c = arg;
    const struct turn *const from = &c->script.turns[c->turn];
    struct turn_in const in = {from->time_ms, from->events, from->events_len, .run = true};
    struct turn_out out;
    thole_status const status = instance_turn(c->instance, &in, &out, NULL);
    return status;
}

static void refuse_in_turn(struct course *c)
{
    bool refused = true;
    for (size_t n = 1; refused && n < REQUESTS_MAX; n++) {
        c->instance = at_turn(c, c->turn);
        arena_refuse(n);
        thole_status const status = take_turn(c);
        refused = arena_refused();
        CU_ASSERT_EQUAL(status == THOLE_OK, !refused);
        if ((status == THOLE_OK) == refused)
            fprintf(stderr, "\n  turn %zu: request %zu, and it says %s\n", c->turn + 1, n,
                    thole_status_name(status));
        instance_destroy(c->instance);
    }
    CU_ASSERT_FALSE(refused);
}

static thole_status carry(void *arg)
{
    const struct course *const c = arg;
    struct arena arena;
    struct event *events;
    size_t len;
    arena_init(&arena, ARENA_MAX);
    thole_status const status = instance_carry(c->instance, &arena, &events, &len);
    arena_release(&arena);
    return status;
}

static void turns_and_what_is_carried(void)
{
    struct course c = {.play = play_of(all_kinds)};
    play_parse(script, &c.script);
    for (c.turn = 0; c.turn < c.script.len; c.turn++)
        refuse_in_turn(&c);
    c.instance = at_turn(&c, c.script.len);
    CU_ASSERT_TRUE_FATAL(instance_continued(c.instance));
    refuse_each("what is carried", carry, &c);
    instance_destroy(c.instance);
    play_turns_release(&c.script);
    play_release(&c.play);
}

static thole_status ask(void *arg)
{
    const struct course *const c = arg;
    thole_slice answer;
    return instance_query(c->instance, THOLE_STR("how"), THOLE_STR("you?"), &answer, NULL);
}

static void a_question(void)
{
    struct course c = {.play = play_of(all_kinds)};
    play_parse(script, &c.script);
    c.instance = at_turn(&c, 1);
    refuse_each("a question", ask, &c);
    instance_destroy(c.instance);
    play_turns_release(&c.script);
    play_release(&c.play);
}

static const struct thole_test tests[] = {
    {"records", records},
    {"messages", messages},
    {"heartbeats", heartbeats},
    {"queries", queries},
    {"turns, and what is carried", turns_and_what_is_carried},
    {"a question", a_question},
};
THOLE_TEST_MAIN("arena refused", tests)
