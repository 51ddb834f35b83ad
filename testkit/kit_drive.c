/* Carries out the machine's outputs at once; moves time; kills the engine. */
#include "call_site.h"
#include "kit.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MISHAPS_MAX = 100 }; /* partitions that close by themselves */

/* ---- outputs ---- */

static void kit_drive_input(thole_test_env *env, const struct partition_in *in)
{
    kit_must(partition_input(env->machine, in, env->now_ms) == THOLE_OK);
}

static void kit_drive_delete_records(thole_test_env *env, const struct out_delete_records *records)
{
    for (size_t i = 0; i < records->sequences_len; i++)
        env->records[records->sequences[i] - 1].deleted = true;
}

static void kit_drive_apply(thole_test_env *env, struct batch *batch)
{
    kit_rows_apply(env, batch);
    batch_destroy(batch);
}

/* Does it, and answers at once. */
static void kit_drive_answer(thole_test_env *env, const struct partition_out *out)
{
    struct partition_in in = partition_answer(out);
    struct arena arena;
    arena_init(&arena, SIZE_MAX / 2);
    switch (out->kind) {
    case PARTITION_OUT_READ_TAIL: kit_log_tail(env, out->read_tail.count, &arena, &in.tail); break;
    case PARTITION_OUT_DELETE_RECORDS: kit_drive_delete_records(env, &out->delete_records); break;
    case PARTITION_OUT_APPEND: in.appended.sequence = kit_log_append(env, &out->append); break;
    case PARTITION_OUT_READ_LOG: kit_log_read(env, &out->read_log, &arena, &in.log); break;
    case PARTITION_OUT_LOAD: kit_log_load(env, &out->load, &arena, &in.history); break;
    case PARTITION_OUT_FIND_DISPENSABLE:
    case PARTITION_OUT_REMOVE_RECORDS: break; /* a test is too short for it: deleted_keep_ms is 0 */
    case PARTITION_OUT_READ_IDS: break;       /* not all: to look them up costs nothing here */
    case PARTITION_OUT_REMOVE_HISTORY: kit_log_remove(env, &out->remove_history); break;
    case PARTITION_OUT_STORE_OPEN: in.store_opened.rows = env->rows; break;
    case PARTITION_OUT_STORE_RESET:
        kit_rows_reset(env);
        in.store_reset.rows = env->rows;
        break;
    case PARTITION_OUT_READ_LIVE: kit_rows_live(env, &arena, &in.live); break;
    case PARTITION_OUT_READ_TIMERS:
        kit_rows_timers(env, out->read_timers.before_ms, &arena, &in.timers);
        break;
    case PARTITION_OUT_APPLY: kit_drive_apply(env, out->apply.batch); break;
    case PARTITION_OUT_PUBLISH_WORK: kit_work_published(env, &out->publish_work); break;
    case PARTITION_OUT_SEND: kit_inbox_add(env, out->send.route, out->send.instance, out->send.bytes); break;
    case PARTITION_OUT_EMIT: kit_event_add(env, &out->emit); break;
    case PARTITION_OUT_READ_RESULTS:
        kit_inbox_results(env, out->read_results.from, &arena, &in.results);
        break;
    case PARTITION_OUT_REJECT: break;       /* the kit does not keep them */
    case PARTITION_OUT_READ_CRASHES: break; /* there are none: it dies of the first one */
    default: abort();
    }
    kit_drive_input(env, &in);
    arena_release(&arena);
}

static void kit_drive_on_closed(thole_test_env *env, const struct out_closed *closed)
{
    if (++env->mishaps > MISHAPS_MAX) {
        (void)fprintf(stderr, "thole test kit: the partition closes again and again: %s\n", closed->text);
        abort();
    }
    env->reading = false;
    kit_drive_input(env, &(struct partition_in){.kind = PARTITION_IN_OPEN});
}

static void kit_drive_on_notice(thole_test_env *env, const struct event_notice *notice)
{
    if (env->asked_request.len > 0 && thole_slice_equal(notice->request_id, env->asked_request))
        env->asked_event = notice->kind;
}

static void on_query_answer(thole_test_env *env, uint64_t token, const struct out_query_answer *said)
{
    if (token != env->asked_query)
        return;
    env->query_answered = true;
    env->query_status = said->status;
    buf_clear(&env->query_output);
    buf_slice(&env->query_output, said->data);
    if (said->site != NULL)
        call_site_text(said->site, &env->query_output);
}

static void on_line(const struct out_line *line)
{
    if (getenv("THOLE_TEST_LOG") != NULL)
        (void)fprintf(stderr, "%.*s: %.*s\n", THOLE_FMT(line->instance), THOLE_FMT(line->text));
}

static void read_inbox(thole_test_env *env, const struct partition_out *out)
{
    env->reading = true;
    env->read_generation = out->generation;
    env->read_next = out->read_inbox.from;
}

static void purge_inbox(thole_test_env *env, uint64_t below)
{
    for (uint64_t s = below - 1; s > 0 && !env->inbox[s - 1].purged; s--)
        env->inbox[s - 1].purged = true;
}

static void on_output(thole_test_env *env, const struct partition_out *out)
{
    switch (out->kind) {
    case PARTITION_OUT_CLOSED: kit_drive_on_closed(env, &out->closed); break;
    case PARTITION_OUT_PUSH_CANCEL: kit_work_cancelled(env, &out->push_cancel); break;
    case PARTITION_OUT_NOTICE: kit_drive_on_notice(env, &out->notice); break;
    case PARTITION_OUT_READ_INBOX: read_inbox(env, out); break;
    case PARTITION_OUT_PURGE_INBOX: purge_inbox(env, out->purge_inbox.below); break;
    case PARTITION_OUT_QUERY_ANSWER: on_query_answer(env, out->token, &out->query_answer); break;
    case PARTITION_OUT_LINE: on_line(&out->line); break;
    case PARTITION_OUT_OPENED:
    case PARTITION_OUT_STOPPED: /* the row has the state */
    case PARTITION_OUT_LIMITED: /* no limit of the kit's is such a one */
    case PARTITION_OUT_WITHDRAW: break;
    case PARTITION_OUT_CRASHED:
    case PARTITION_OUT_CRASHES_OVER: break; /* a crash ends the test program */
    default: kit_drive_answer(env, out); break;
    }
}

/* ---- the engine's life ---- */

void kit_open(thole_test_env *env)
{
    partition_destroy(env->machine);
    env->reading = false;
    env->machine = partition_create(&env->options);
    kit_must(partition_input(env->machine, &(struct partition_in){.kind = PARTITION_IN_OPEN}, env->now_ms) ==
             THOLE_OK);
}

static void kit_drive_crash(thole_test_env *env)
{
    env->crash_in = UINT64_MAX;
    env->dying = false;
    env->crashes++;
    kit_work_crash(env, false);
    kit_open(env);
}

/* Until nothing comes out and nothing is due. False: the engine is to die. */
static bool kit_drive_drain(thole_test_env *env)
{
    struct partition_out out;
    bool more = true;
    while (more && env->steps_left > 0) {
        more = false;
        (void)partition_flush(env->machine, env->now_ms, true);
        while (partition_poll(env->machine, &out)) {
            more = true;
            if (!kit_step(env)) {
                if (out.kind == PARTITION_OUT_APPLY)
                    batch_destroy(out.apply.batch);
                return false;
            }
            on_output(env, &out);
        }
    }
    kit_replay_drop(env);
    return true;
}

/* Each message is a turn of its own, with all that follows from it. */
static bool pump_once(thole_test_env *env)
{
    const struct kit_message *message;
    uint64_t sequence;
    if (env->dying || !kit_drive_drain(env))
        return false;
    while (env->steps_left > 0 && (message = kit_inbox_next(env, &sequence)) != NULL) {
        struct partition_in const in = {.kind = PARTITION_IN_MESSAGE,
                                        .generation = env->read_generation,
                                        .message = {.sequence = sequence,
                                                    .route = message->route,
                                                    .instance = message->instance,
                                                    .bytes = message->bytes}};
        kit_drive_input(env, &in);
        if (!kit_step(env) || !kit_drive_drain(env))
            return false;
    }
    return true;
}

static void kit_drive_pump(thole_test_env *env)
{
    env->pumping = true;
    while (!pump_once(env))
        kit_drive_crash(env);
    env->pumping = false;
}

void kit_pump(thole_test_env *env)
{
    if (env->pumping)
        return; /* a caller further up does */
    env->steps_left = KIT_STEPS_MAX;
    kit_drive_pump(env);
}

/* ---- time ---- */

static void kit_drive_settle(thole_test_env *env)
{
    do
        kit_drive_pump(env);
    while (env->steps_left > 0 && kit_work_step(env));
}

/* To where something happens next. */
static void skip_to(thole_test_env *env, uint64_t time_ms)
{
    if (time_ms > env->now_ms)
        env->now_ms = time_ms;
    (void)kit_step(env);
    kit_drive_settle(env);
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
    kit_drive_settle(env);
}

void thole_test_advance(thole_test_env *env, uint64_t duration_ms)
{
    uint64_t const end_ms = env->now_ms + duration_ms;
    uint64_t next;
    if (env->running != NULL)
        return;
    env->steps_left = KIT_STEPS_MAX;
    kit_drive_settle(env);
    while (env->steps_left > 0 && (next = next_ms(env)) <= end_ms)
        skip_to(env, next);
    skip_to(env, end_ms);
}

thole_instance_status thole_test_status(thole_test_env *env, thole_slice id)
{
    kit_pump(env);
    const struct kit_instance *const instance = kit_instance_find(env, id);
    if (instance == NULL)
        return THOLE_INSTANCE_UNKNOWN;
    return instance->diverged != NULL ? THOLE_INSTANCE_STUCK : instance->status;
}

static bool kit_drive_has_ended(thole_instance_status status)
{
    return status == THOLE_INSTANCE_COMPLETED || status == THOLE_INSTANCE_FAILED ||
           status == THOLE_INSTANCE_CANCELLED || status == THOLE_INSTANCE_TERMINATED;
}

void kit_run_until(thole_test_env *env, bool (*over)(void *arg), void *arg)
{
    uint64_t next;
    env->steps_left = KIT_STEPS_MAX;
    kit_drive_settle(env);
    while (env->steps_left > 0 && !over(arg) && (next = next_ms(env)) != UINT64_MAX)
        skip_to(env, next);
}

struct run_of {
    thole_test_env *env;
    thole_slice instance;
};

static bool run_is_over(void *arg)
{
    const struct run_of *const run = arg;
    return kit_drive_has_ended(thole_test_status(run->env, run->instance)) ||
           kit_work_say_unknown(run->env, run->instance);
}

thole_instance_status thole_test_run(thole_test_env *env, thole_slice instance)
{
    if (env->running != NULL)
        return thole_test_status(env, instance);
    kit_run_until(env, run_is_over, &(struct run_of){env, instance});
    if (!kit_drive_has_ended(thole_test_status(env, instance)))
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
    kit_drive_crash(env);
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
