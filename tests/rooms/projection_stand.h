/* The projection alone, and what it says, as text: for the tests of that room. */
#ifndef THOLE_PROJECTION_STAND_H
#define THOLE_PROJECTION_STAND_H
#include "nonces.h"
#include "projection_state.h"
#include "room.h"
#include <stdlib.h>

enum { BASE = 10 }; /* sequence of the EpochOpened */

/* Of a first turn: an activity is scheduled. */
static const struct event start_and_work[] = {
    {.id = 1,
     .kind = EVENT_STARTED,
     .name = {(const uint8_t *)"o", 1},
     .code = SEMANTICS_VERSION,
     .version = 1},
    {.id = 2,
     .kind = EVENT_ACTIVITY_SCHEDULED,
     .name = {(const uint8_t *)"a", 1},
     .queue = {(const uint8_t *)"q", 1}},
};

struct stand { /* a projection, and the last outputs that ask for an answer */
    struct env env;
    struct projection *projection;
    struct log_record records[4];
    struct arena arena;
    thole_slice orchestration; /* of the turns: they have CloudEvents */
    uint64_t applied, durable; /* as batches say */
    struct rows_state follows; /* of the last one */
    uint64_t tokens[8];
    size_t tokens_len;
    struct said said;
};

static inline void say(struct stand *s, const char *text, uint64_t n)
{
    said_add(&s->said, "%s%s %llu", said_comma(&s->said), text, (unsigned long long)n);
}

static inline void say_batch(struct stand *s, struct batch *batch)
{
    say(s, "apply", batch->activities_added_len + batch->timers_added_len + batch->instances_len);
    if (batch->activities_removed_len > 0)
        say(s, "gone", batch->activities_removed_len);
    if (batch->deletions_len > 0)
        say(s, "deleted", batch->deletions[0].history_seq);
    s->applied = batch->projected.seq;
    s->follows = batch->follows;
    if (batch->durable)
        s->durable = batch->projected.seq;
    batch_destroy(batch);
}

static inline void listen(struct stand *s)
{
    struct partition_out out;
    s->tokens_len = 0;
    while (env_poll(&s->env, &out)) {
        switch (out.kind) {
        case PARTITION_OUT_STORE_OPEN: say(s, "open", out.store_open.epoch); break;
        case PARTITION_OUT_STORE_RESET: say(s, "reset", 0); break;
        case PARTITION_OUT_READ_LOG: say(s, "log from", out.read_log.from); break;
        case PARTITION_OUT_READ_RESULTS: say(s, "results from", out.read_results.from); break;
        case PARTITION_OUT_READ_TIMERS: say(s, "timers before", out.read_timers.before_ms); break;
        case PARTITION_OUT_APPLY: say_batch(s, out.apply.batch); break;
        case PARTITION_OUT_PUBLISH_WORK:
            say(s, out.publish_work.again ? "work again" : "work", out.publish_work.activity_id);
            break;
        case PARTITION_OUT_SEND: say(s, "send", out.send.bytes.len > 0); break;
        case PARTITION_OUT_EMIT:
            said_add(&s->said, "%semit %.*s/%.*s", said_comma(&s->said), THOLE_FMT(out.emit.orchestration),
                     THOLE_FMT(out.emit.type));
            say(s, "of event", out.emit.event);
            break;
        case PARTITION_OUT_PUSH_CANCEL:
            say(s, "cancel", out.push_cancel.activity_ids[0]);
            if (out.push_cancel.try_number > 1)
                say(s, "of try", out.push_cancel.try_number);
            break;
        case PARTITION_OUT_WITHDRAW: say(s, "withdraw", out.withdraw.sequence); break;
        case PARTITION_OUT_REMOVE_HISTORY: say(s, "remove before", out.remove_history.below); break;
        case PARTITION_OUT_NOTICE:
            say(s, out.notice.kind, out.notice.execution);
            if (out.notice.request_id.len > 0)
                say(s, "asked for in bytes", out.notice.request_id.len);
            break;
        default: say(s, "what", out.kind); break;
        }
        if (out.token != 0 && s->tokens_len < 8)
            s->tokens[s->tokens_len++] = out.token;
    }
}

static inline void check_said(struct stand *s, const char *row, const char *want)
{
    projection_pump(s->projection, true);
    projection_check(s->projection);
    CU_ASSERT_PTR_NULL(projection_take_step_down(s->projection));
    listen(s);
    said_check(&s->said, row, want);
}

static inline struct stand *begin(void)
{
    struct stand *s = calloc(1, sizeof *s);
    CU_ASSERT_PTR_NOT_NULL_FATAL(s);
    arena_init(&s->arena, SIZE_MAX / 2);
    s->env.now_ms = 1000;
    s->env.options =
        (struct partition_options){.log_chunk = 100, .timer_horizon_ms = 500, .nonce_key = test_nonce_key()};
    s->projection = projection_create(&s->env);
    CU_ASSERT_PTR_NOT_NULL_FATAL(s->projection);
    return s;
}

static inline void end(struct stand *s)
{
    projection_check(s->projection);
    CU_ASSERT_FALSE(s->env.nomem);
    projection_destroy(s->projection);
    env_release(&s->env);
    arena_release(&s->arena);
    free(s);
}

static inline void open_at(struct stand *s, uint64_t published)
{
    struct projection_start const start = {
        .epoch = 3, .base = BASE, .tail_last = BASE - 1, .published = published, .inbox_from = 5};
    projection_open(s->projection, &start);
}

static inline thole_slice encode(struct stand *s, const struct record *record)
{
    thole_slice const copy = record_bytes(&s->arena, record);
    struct record decoded;
    thole_error err = {0};
    if (record_decode(copy, &s->arena, &decoded, &err) != THOLE_OK)
        CU_FAIL_FATAL("the test's record does not decode");
    return copy;
}

static inline thole_slice turn_of(struct stand *s, uint64_t n, uint64_t number, const struct event *events,
                                  size_t len)
{
    struct record const record = {.kind = RECORD_TURN,
                                  .epoch = 3,
                                  .n = n,
                                  .turn = {.instance = THOLE_STR("i"),
                                           .execution = 1,
                                           .number = number,
                                           .time_ms = 1000,
                                           .ran = true,
                                           .events = events,
                                           .events_len = len,
                                           .orchestration = s->orchestration}};
    return encode(s, &record);
}

static const struct projection_facts facts = {.orchestration = {(const uint8_t *)"o", 1}};

/* Returns the number of turns that it completes. */
static inline size_t commit(struct stand *s, uint64_t n, const struct event *events, size_t len)
{
    struct projection_turns made;
    projection_record(s->projection, turn_of(s, n, n, events, len), BASE + n, &facts, &made);
    CU_ASSERT_FALSE(made.rows_uncertain);
    return made.len;
}

/* CURRENT, over an empty log. */
static inline struct stand *begin_current(void)
{
    struct stand *s = begin();
    open_at(s, 0);
    projection_store_opened(s->projection, &(struct in_store_opened){.epoch = 3});
    projection_log(s->projection, &(struct in_log){0});
    projection_pump(s->projection, true);
    CU_ASSERT_EQUAL_FATAL(projection_state(s->projection), PROJECTION_CURRENT);
    listen(s);
    s->said.text[0] = '\0';
    return s;
}
#endif
