/* Does what the machine says, at once; moves time; kills the engine. */
#include "kit.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MISHAPS_MAX = 100 }; /* partitions that close by themselves */

/* ---- outputs ---- */

static void input(thole_test_env *env, const struct partition_in *in)
{
    kit_must(partition_input(env->machine, in, env->now_ms) == THOLE_OK);
}

/* Answers what is answered with data from the streams or the rows. */
static void answer(thole_test_env *env, const struct partition_out *out)
{
    struct arena arena;
    struct partition_in in = {.generation = out->generation, .token = out->token, .n = out->n};
    arena_init(&arena, SIZE_MAX / 2);
    switch (out->kind) {
    case PARTITION_OUT_READ_TAIL:
        in.kind = PARTITION_IN_TAIL;
        kit_log_tail(env, out->count, &arena, &in);
        break;
    case PARTITION_OUT_READ_LOG:
        in.kind = PARTITION_IN_LOG;
        kit_log_read(env, out->from, out->to, &arena, &in);
        break;
    case PARTITION_OUT_READ_RESULTS:
        in.kind = PARTITION_IN_RESULTS;
        kit_inbox_results(env, out->from, &arena, &in);
        break;
    case PARTITION_OUT_LOAD:
        in.kind = PARTITION_IN_HISTORY;
        kit_log_load(env, out->instance, out->execution, &arena, &in);
        break;
    case PARTITION_OUT_READ_CRASHES: in.kind = PARTITION_IN_CRASHES; break; /* it dies of the first one */
    case PARTITION_OUT_READ_LIVE:
        in.kind = PARTITION_IN_LIVE;
        kit_rows_live(env, &arena, &in);
        break;
    case PARTITION_OUT_READ_TIMERS:
        in.kind = PARTITION_IN_TIMERS;
        kit_rows_timers(env, out->before_ms, &arena, &in);
        break;
    default: abort();
    }
    input(env, &in);
    arena_release(&arena);
}

static void done(thole_test_env *env, const struct partition_out *out, enum partition_in_kind kind,
                 uint64_t sequence)
{
    struct partition_in const in = {
        .kind = kind, .generation = out->generation, .n = out->n, .token = out->token, .sequence = sequence};
    input(env, &in);
}

static void store_opened(thole_test_env *env, const struct partition_out *out)
{
    input(env, &(struct partition_in){.kind = PARTITION_IN_STORE_OPENED,
                                      .generation = out->generation,
                                      .projected = env->projected});
}

static void delete_records(thole_test_env *env, const struct partition_out *out)
{
    for (size_t i = 0; i < out->sequences_len; i++)
        env->records[out->sequences[i] - 1].deleted = true;
    done(env, out, PARTITION_IN_DELETED, 0);
}

static void on_closed(thole_test_env *env, const struct partition_out *out)
{
    if (++env->mishaps > MISHAPS_MAX) {
        (void)fprintf(stderr, "thole test kit: the partition closes again and again: %s\n", out->text);
        abort();
    }
    env->reading = false;
    input(env, &(struct partition_in){.kind = PARTITION_IN_OPEN});
}

static void on_notice(thole_test_env *env, const struct partition_out *out)
{
    if (env->asked_request.len > 0 && thole_slice_equal(out->request_id, env->asked_request))
        env->asked_event = out->event_kind;
}

static void on_query_answer(thole_test_env *env, const struct partition_out *out)
{
    if (out->token != env->asked_query)
        return;
    env->query_answered = true;
    env->query_status = out->status;
    buf_clear(&env->query_output);
    buf_slice(&env->query_output, out->data);
}

static void on_log(const struct partition_out *out)
{
    if (getenv("THOLE_TEST_LOG") != NULL)
        (void)fprintf(stderr, "%.*s: %.*s\n", THOLE_FMT(out->instance), THOLE_FMT(out->data));
}

static void on_output(thole_test_env *env, const struct partition_out *out)
{
    switch (out->kind) {
    case PARTITION_OUT_CLOSED: on_closed(env, out); break;
    case PARTITION_OUT_READ_TAIL:
    case PARTITION_OUT_READ_LOG:
    case PARTITION_OUT_READ_RESULTS:
    case PARTITION_OUT_LOAD:
    case PARTITION_OUT_READ_CRASHES:
    case PARTITION_OUT_READ_LIVE:
    case PARTITION_OUT_READ_TIMERS: answer(env, out); break;
    case PARTITION_OUT_DELETE_RECORDS: delete_records(env, out); break;
    case PARTITION_OUT_REMOVE_HISTORY:
        kit_log_remove(env, out->instance, out->executions, out->sequence);
        done(env, out, PARTITION_IN_REMOVED, out->sequence);
        break;
    case PARTITION_OUT_APPEND: done(env, out, PARTITION_IN_APPENDED, kit_log_append(env, out)); break;
    case PARTITION_OUT_STORE_OPEN: store_opened(env, out); break;
    case PARTITION_OUT_STORE_RESET:
        kit_rows_reset(env);
        done(env, out, PARTITION_IN_STORE_RESET, 0);
        break;
    case PARTITION_OUT_APPLY:
        kit_rows_apply(env, out->batch);
        batch_destroy(out->batch);
        done(env, out, PARTITION_IN_APPLIED, 0);
        break;
    case PARTITION_OUT_PUBLISH_WORK:
        kit_work_published(env, out);
        done(env, out, PARTITION_IN_PUBLISHED, 0);
        break;
    case PARTITION_OUT_PUSH_CANCEL: kit_work_cancelled(env, out); break;
    case PARTITION_OUT_SEND:
        kit_inbox_add(env, out->instance, out->bytes);
        done(env, out, PARTITION_IN_SENT, 0);
        break;
    case PARTITION_OUT_EVENT: on_notice(env, out); break;
    case PARTITION_OUT_READ_INBOX:
        env->reading = true;
        env->read_generation = out->generation;
        env->read_next = out->from;
        break;
    case PARTITION_OUT_PURGE_INBOX:
        for (uint64_t s = out->from - 1; s > 0 && !env->inbox[s - 1].purged; s--)
            env->inbox[s - 1].purged = true;
        break;
    case PARTITION_OUT_QUERY_ANSWER: on_query_answer(env, out); break;
    case PARTITION_OUT_OPENED:
    case PARTITION_OUT_WITHDRAW: break;
    case PARTITION_OUT_REJECTED: done(env, out, PARTITION_IN_REJECTED, out->sequence); break;
    case PARTITION_OUT_LOG: on_log(out); break;
    case PARTITION_OUT_CRASHED:
    case PARTITION_OUT_CRASHES_OVER: break; /* nobody outlives a crash here */
    }
}

/* ---- the engine's life ---- */

bool kit_step(thole_test_env *env)
{
    if (env->steps_left > 0)
        env->steps_left--;
    if (env->crash_in != UINT64_MAX && env->crash_in-- == 0)
        env->dying = true;
    return !env->dying;
}

static void crash(thole_test_env *env)
{
    env->crash_in = UINT64_MAX;
    env->dying = false;
    env->crashes++;
    kit_work_crash(env, false);
    kit_open(env);
}

/* Until nothing comes out and nothing is due. False: the engine is to die. */
static bool drain(thole_test_env *env)
{
    struct partition_out out;
    bool more = true;
    while (more && env->steps_left > 0) {
        more = false;
        partition_flush(env->machine, env->now_ms);
        while (partition_poll(env->machine, &out)) {
            more = true;
            if (!kit_step(env)) {
                if (out.kind == PARTITION_OUT_APPLY)
                    batch_destroy(out.batch);
                return false;
            }
            on_output(env, &out);
        }
    }
    return true;
}

/* Each message is a turn of its own, with all that follows from it. */
static bool pump_once(thole_test_env *env)
{
    const struct kit_message *message;
    uint64_t sequence;
    if (env->dying || !drain(env))
        return false;
    while (env->steps_left > 0 && (message = kit_inbox_next(env, &sequence)) != NULL) {
        struct partition_in const in = {.kind = PARTITION_IN_MESSAGE,
                                        .generation = env->read_generation,
                                        .sequence = sequence,
                                        .instance = message->instance,
                                        .bytes = message->bytes};
        input(env, &in);
        if (!kit_step(env) || !drain(env))
            return false;
    }
    return true;
}

static void pump(thole_test_env *env)
{
    env->pumping = true;
    while (!pump_once(env))
        crash(env);
    env->pumping = false;
}

void kit_pump(thole_test_env *env)
{
    if (env->pumping)
        return; /* somebody further up does */
    env->steps_left = KIT_STEPS_MAX;
    pump(env);
}

/* ---- time ---- */

static void settle(thole_test_env *env)
{
    do
        pump(env);
    while (env->steps_left > 0 && kit_work_step(env));
}

/* To where something happens next. */
static void skip_to(thole_test_env *env, uint64_t time_ms)
{
    if (time_ms > env->now_ms)
        env->now_ms = time_ms;
    (void)kit_step(env);
    settle(env);
}

static uint64_t next_ms(const thole_test_env *env)
{
    uint64_t const machine_ms = partition_deadline_ms(env->machine), work_ms = kit_work_next_ms(env);
    return machine_ms < work_ms ? machine_ms : work_ms;
}

void thole_test_settle(thole_test_env *env)
{
    if (env->running != NULL)
        return; /* an activity asks: it is what runs */
    env->steps_left = KIT_STEPS_MAX;
    settle(env);
}

void thole_test_advance(thole_test_env *env, uint64_t duration_ms)
{
    uint64_t const end_ms = env->now_ms + duration_ms;
    uint64_t next;
    if (env->running != NULL)
        return;
    env->steps_left = KIT_STEPS_MAX;
    settle(env);
    while (env->steps_left > 0 && (next = next_ms(env)) <= end_ms)
        skip_to(env, next);
    skip_to(env, end_ms);
}

static bool has_ended(thole_instance_status status)
{
    return status == THOLE_INSTANCE_COMPLETED || status == THOLE_INSTANCE_FAILED ||
           status == THOLE_INSTANCE_CANCELLED || status == THOLE_INSTANCE_TERMINATED;
}

thole_instance_status thole_test_run(thole_test_env *env, thole_slice instance)
{
    uint64_t next;
    if (env->running != NULL)
        return thole_test_status(env, instance);
    env->steps_left = KIT_STEPS_MAX;
    settle(env);
    while (env->steps_left > 0 && !has_ended(thole_test_status(env, instance)) &&
           !kit_work_say_unknown(env, instance) && (next = next_ms(env)) != UINT64_MAX)
        skip_to(env, next);
    if (!has_ended(thole_test_status(env, instance)))
        (void)kit_work_say_unknown(env, (thole_slice){0}); /* a child's, perhaps */
    return thole_test_status(env, instance);
}

uint64_t thole_test_now_ms(const thole_test_env *env)
{
    return env->now_ms;
}

void thole_test_crash(thole_test_env *env)
{
    if (env->running != NULL || env->pumping) {
        env->dying = true; /* as soon as what runs is off the stack */
        return;
    }
    crash(env);
    kit_pump(env);
}

void thole_test_crash_after(thole_test_env *env, size_t steps)
{
    env->crash_in = steps;
}

size_t thole_test_crashes(const thole_test_env *env)
{
    return env->crashes;
}
