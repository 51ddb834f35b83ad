/*
 * The instances alone, and who gives them what they ask for: histories come from the records that they gave,
 * once these are committed.
 */
#ifndef THOLE_INSTANCES_STAND_H
#define THOLE_INSTANCES_STAND_H
#include "coro.h"
#include "instances_state.h"
#include "nonces.h"
#include "room.h"
#include <stdlib.h>

static inline thole_status plain(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    thole_log(ctx, THOLE_LOG_INFO, "it begins");
    return thole_await(ctx, thole_call(ctx, THOLE_STR("work"), input), ret_output);
}

static inline thole_status again(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    THOLE_TRY(thole_await(ctx, thole_call(ctx, THOLE_STR("work"), input), ret_output));
    return thole_continue_as_new(ctx, input, 0);
}

static inline thole_status greedy(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    THOLE_TRY(thole_await(ctx, thole_call(ctx, THOLE_STR("work"), input), ret_output));
    while (thole_alloc(ctx, 1 << 16) != NULL)
        ;
    return THOLE_OK;
}

static const thole_orchestration_entry entries[] = {
    {.name = "plain", .run = plain}, {.name = "again", .run = again}, {.name = "greedy", .run = greedy}};

struct stand { /* instances, and who gives them what they ask for */
    struct env env;
    struct instances *instances;
    struct stack_pool *stacks;
    uint64_t inbox, rejection; /* the latter: the token of the last one */
    struct log_rule log;
    struct said said;
    struct arena arena;            /* of the records */
    struct log_record records[40]; /* of the epoch, in order */
    size_t records_len, committed;
    size_t history_max; /* so many of them are read back; 0: none is */
    bool damaged;       /* the last of these does not decode */
};

static inline void say(struct stand *s, const char *what, thole_slice of)
{
    thole_slice const text = of.len == 0 ? THOLE_STR("") : of;
    said_add(&s->said, "%s%s %.*s", said_comma(&s->said), what, THOLE_FMT(text));
}

static inline struct record stored(struct stand *s, size_t i)
{
    struct record record;
    CU_ASSERT_EQUAL_FATAL(record_decode(s->records[i].bytes, &s->arena, &record, NULL), THOLE_OK);
    return record;
}

/* All that is committed of it. */
static inline void give_history(struct stand *s, uint64_t token, thole_slice instance)
{
    struct log_record of[ARRAY_LEN(s->records)];
    struct in_history in = {.instance = instance, .records = of};
    for (size_t i = 0; i < s->committed; i++) {
        struct record const record = stored(s, i);
        bool const turn = record.kind == RECORD_TURN;
        if (thole_slice_equal(turn ? record.turn.instance : record.deletion.instance, instance))
            of[in.records_len++] = s->records[i];
    }
    in.records_len = in.records_len < s->history_max ? in.records_len : s->history_max;
    if (s->damaged) {
        of[in.records_len - 1].sequence = s->log.opened - 1; /* of an earlier epoch: it was stored */
        of[in.records_len - 1].bytes = THOLE_STR("\xff");
    }
    CU_ASSERT_TRUE(instances_history(s->instances, token, &in, &s->log));
}

/* Takes the outputs; a LOAD is answered with what is committed. */
static inline void listen(struct stand *s)
{
    struct partition_out out;
    while (env_poll(&s->env, &out)) {
        switch (out.kind) {
        case PARTITION_OUT_LOAD:
            say(s, "load", out.load.instance);
            give_history(s, out.token, out.load.instance);
            break;
        case PARTITION_OUT_LINE: say(s, "line", out.line.text); break;
        case PARTITION_OUT_NOTICE: say(s, out.notice.kind, out.notice.instance); break;
        case PARTITION_OUT_QUERY_ANSWER: say(s, "answer", out.query_answer.data); break;
        case PARTITION_OUT_REJECT:
            s->rejection = out.token;
            say(s, reject_code_name(out.reject.code), out.reject.instance);
            if (out.reject.actor.len > 0)
                say(s, "of", out.reject.actor);
            if (out.reject.part > 0)
                said_add(&s->said, ", part %u", out.reject.part);
            break;
        default: say(s, "what", (thole_slice){0}); break;
        }
    }
    instances_check(s->instances);
}

static inline void check_said(struct stand *s, const char *row, const char *want)
{
    listen(s);
    said_check(&s->said, row, want);
}

static inline struct stand *begin(void)
{
    struct stand *s = calloc(1, sizeof *s);
    CU_ASSERT_PTR_NOT_NULL_FATAL(s);
    s->stacks = stack_pool_create(1, 8);
    s->log = (struct log_rule){.epoch = 1, .opened = 10};
    arena_init(&s->arena, 1 << 20);
    s->history_max = SIZE_MAX;
    s->env.now_ms = 1000;
    s->env.options = (struct partition_options){.orchestrations = entries,
                                                .orchestrations_len = ARRAY_LEN(entries),
                                                .stacks = s->stacks,
                                                .nonce_key = test_nonce_key(),
                                                .payload_max = 65536,
                                                .instance_memory_max = 1 << 20,
                                                .record_max = 1000 * 1000,
                                                .parked_max = 10,
                                                .crash_limit = 2,
                                                .early_event_ms = 5000,
                                                .ahead_max = 100};
    s->instances = instances_create(&s->env);
    CU_ASSERT_PTR_NOT_NULL_FATAL(s->instances);
    return s;
}

static inline void end(struct stand *s)
{
    instances_check(s->instances);
    CU_ASSERT_FALSE(s->env.nomem);
    instances_destroy(s->instances);
    env_release(&s->env);
    CU_ASSERT_EQUAL(stack_pool_in_use(s->stacks), 0);
    stack_pool_destroy(s->stacks);
    arena_release(&s->arena);
    free(s);
}

static inline void give(struct stand *s, struct message *message, const char *id)
{
    struct buf bytes;
    buf_init(&bytes, MESSAGE_BYTES_MAX);
    message->instance = thole_slice_from(id);
    message->request_id = THOLE_STR("r");
    struct nonce room;
    struct message const with_nonce = test_with_nonce(message, &room);
    CU_ASSERT_EQUAL(message_encode(&with_nonce, &bytes), THOLE_OK);
    struct message_route const route = message_route(message, SENDER_CLIENT);
    struct in_message const in = {.sequence = ++s->inbox,
                                  .instance = message->instance,
                                  .route = thole_slice_from(route.text),
                                  .bytes = buf_bytes(&bytes)};
    CU_ASSERT_TRUE(instances_message(s->instances, &in));
    CU_ASSERT_FALSE(instances_message(s->instances, &in)); /* came before */
    buf_release(&bytes);
}

static inline void start(struct stand *s, const char *id, const char *orchestration)
{
    give(s, &(struct message){.kind = MESSAGE_START, .orchestration = thole_slice_from(orchestration)}, id);
}

/* Runs what is ready and returns the record, rendered; the caller says instances_ran(). */
static const char *run(struct stand *s, struct instances_record *ret)
{
    static char text[512];
    struct buf to;
    buf_init(&to, sizeof text - 1);
    CU_ASSERT_TRUE_FATAL(instances_run(s->instances, 0, ret));
    if (ret->turn != NULL) {
        buf_printf(&to, "%llu.%llu %s", (unsigned long long)ret->turn->execution,
                   (unsigned long long)ret->turn->number, ret->turn->ran ? "ran" : "waits");
        for (size_t i = 0; i < ret->turn->events_len; i++) {
            buf_text(&to, "; ");
            event_render(&ret->turn->events[i], &to);
        }
    } else if (ret->deletion != NULL) {
        buf_printf(&to, "deleted up to %llu", (unsigned long long)ret->deletion->execution);
    }
    (void)snprintf(text, sizeof text, "%.*s", THOLE_FMT(buf_bytes(&to)));
    buf_release(&to);
    return text;
}

/* Appends the record, if there is one. */
static inline void append(struct stand *s, const struct instances_record *made)
{
    struct record record = {.epoch = 1, .n = s->records_len + 1, .committed = s->committed};
    if (made->entry != NULL) {
        CU_ASSERT_FATAL(s->records_len < ARRAY_LEN(s->records));
        record.kind = made->turn != NULL ? RECORD_TURN : RECORD_DELETED;
        if (made->turn != NULL)
            record.turn = *made->turn;
        else
            record.deletion = *made->deletion;
        s->records[s->records_len++] = (struct log_record){.sequence = s->log.opened + record.n,
                                                           .execution = record.turn.execution,
                                                           .bytes = record_bytes(&s->arena, &record)};
    }
    instances_ran(s->instances, made->entry != NULL, s->records_len);
}

/* Appends the instance's record; returns the instance's entry. */
static inline struct entry *record(struct stand *s, const char *row, const char *want)
{
    struct instances_record made;
    const char *const got = run(s, &made);
    CHECK_STR(row, got, want);
    append(s, &made);
    return made.entry;
}

/* The next record is committed; it is the entry's. */
static inline void commit_with(struct stand *s, struct entry *entry, const struct turn_log *lines, size_t n)
{
    CU_ASSERT_FATAL(s->committed < s->records_len);
    struct record const record = stored(s, s->committed);
    s->log.known = ++s->committed;
    if (record.kind == RECORD_TURN)
        instances_count(s->instances, entry, &record.turn, 1);
    instances_committed(s->instances, entry, record.turn.execution, lines, n);
    instances_check(s->instances);
}

static inline void commit(struct stand *s, struct entry *entry)
{
    commit_with(s, entry, NULL, 0);
}
#endif
