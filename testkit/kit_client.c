/* Requests of clients. A message is stored, and the engine takes it in at once; activities begin when the
 * test lets time, or the instance, run. */
#include "kit.h"
#include "range.h"
#include <inttypes.h>
#include <stdio.h>

enum { REQUEST_BYTES = 32 };

static thole_slice request_id(thole_test_env *env)
{
    char text[REQUEST_BYTES];
    (void)snprintf(text, sizeof text, "test-%" PRIu64, ++env->serial);
    return kit_dup(env, thole_slice_from(text));
}

thole_status thole_test_start(thole_test_env *env, thole_slice instance, thole_slice orchestration,
                              thole_slice input)
{
    return thole_test_start_with(env, instance, orchestration, input, NULL);
}

/* A request that the engine may refuse. */
static thole_status kit_client_ask(thole_test_env *env, struct message *message)
{
    env->asked_event = NULL;
    env->asked_request = message->request_id = request_id(env);
    kit_inbox_send(env, message, SENDER_CLIENT);
    kit_pump(env);
    env->asked_request = (thole_slice){0};
    /* no answer: the engine died with it, but the request is stored */
    bool const refused = env->asked_event != NULL &&
                         thole_slice_equal(thole_slice_from(env->asked_event), THOLE_STR("rejected"));
    return refused ? THOLE_CONFLICT : THOLE_OK;
}

thole_status thole_test_start_with(thole_test_env *env, thole_slice instance, thole_slice orchestration,
                                   thole_slice input, const thole_start_options *options)
{
    struct message message = {
        .kind = MESSAGE_START, .instance = instance, .orchestration = orchestration, .data = input};
    THOLE_TRY(id_check(instance, NULL));
    THOLE_TRY(name_check(orchestration, "orchestration", NULL));
    if (options != NULL) {
        message.version = options->version;
        message.event_name = options->event;
        message.event_data = options->event_data;
        if (options->event.len > 0)
            THOLE_TRY(name_check(options->event, "event", NULL));
    }
    THOLE_TRY(range_check_as(RANGE_VERSION, "the orchestration's version", message.version, NULL));
    if (input.len > env->options.payload_max || message.event_data.len > env->options.payload_max)
        return THOLE_LIMIT;
    return kit_client_ask(env, &message);
}

static void kit_client_send_message(thole_test_env *env, struct message message)
{
    if (id_check(message.instance, NULL) != THOLE_OK || message.data.len > env->options.payload_max ||
        message.event_data.len > env->options.payload_max)
        return;
    message.request_id = request_id(env);
    kit_inbox_send(env, &message, SENDER_CLIENT);
    kit_pump(env);
}

void thole_test_signal(thole_test_env *env, thole_slice instance, thole_slice name, thole_slice data)
{
    if (name_check(name, "event", NULL) == THOLE_OK)
        kit_client_send_message(
            env, (struct message){
                     .kind = MESSAGE_EVENT, .instance = instance, .event_name = name, .event_data = data});
}

static thole_slice kit_client_cut(thole_slice reason)
{
    reason.len = reason.len < REASON_BYTES_MAX ? reason.len : REASON_BYTES_MAX;
    return reason;
}

void thole_test_cancel(thole_test_env *env, thole_slice instance, thole_slice reason)
{
    kit_client_send_message(
        env, (struct message){.kind = MESSAGE_CANCEL, .instance = instance, .data = kit_client_cut(reason)});
}

void thole_test_terminate(thole_test_env *env, thole_slice instance, thole_slice reason)
{
    kit_client_send_message(
        env,
        (struct message){.kind = MESSAGE_TERMINATE, .instance = instance, .data = kit_client_cut(reason)});
}

void thole_test_pause(thole_test_env *env, thole_slice instance)
{
    kit_client_send_message(env, (struct message){.kind = MESSAGE_PAUSE, .instance = instance});
}

void thole_test_resume(thole_test_env *env, thole_slice instance)
{
    kit_client_send_message(env, (struct message){.kind = MESSAGE_RESUME, .instance = instance});
}

thole_status thole_test_delete(thole_test_env *env, thole_slice instance, const thole_delete_options *options)
{
    struct message message = {.kind = MESSAGE_DELETE, .instance = instance};
    THOLE_TRY(id_check(instance, NULL));
    if (thole_test_status(env, instance) == THOLE_INSTANCE_UNKNOWN)
        return THOLE_NOT_FOUND;
    if (options != NULL) {
        message.force = options->force;
        message.data = kit_client_cut(options->reason);
    }
    return kit_client_ask(env, &message);
}

thole_status thole_test_query(thole_test_env *env, thole_slice instance, thole_slice name, thole_slice input,
                              thole_slice *ret_output)
{
    THOLE_TRY(id_check(instance, NULL));
    THOLE_TRY(name_check(name, "query", NULL));
    kit_pump(env);
    env->asked_query = ++env->serial;
    env->query_answered = false;
    struct partition_in const in = {.kind = PARTITION_IN_QUERY,
                                    .generation = partition_generation(env->machine),
                                    .token = env->asked_query,
                                    .query = {instance, name, input}};
    kit_must(partition_input(env->machine, &in, env->now_ms) == THOLE_OK);
    kit_pump(env);
    if (!env->query_answered)
        return THOLE_UNAVAILABLE; /* the engine died with it */
    buf_clear(&env->answer);
    buf_slice(&env->answer, buf_bytes(&env->query_output));
    if (env->query_status == THOLE_OK)
        *ret_output = buf_bytes(&env->answer);
    return env->query_status;
}
