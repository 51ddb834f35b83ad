#include "partition_env.h"
#include "memory.h"
#include <assert.h>
#include <stdlib.h>

#define NAMELESS "-" /* in notices: the orchestration's name is not known */

size_t env_record_beside(const struct partition_options *options)
{
    return RECORD_OVERHEAD + THOLE_ID_BYTES_MAX + DETAIL_BYTES_MAX + options->ahead_max * POSITION_BYTES_EACH;
}

static void output_destroy(struct output *output)
{
    if (output == NULL)
        return;
    if (output->out.kind == PARTITION_OUT_APPLY)
        batch_destroy(output->out.apply.batch); /* NULL: it was taken */
    arena_release(&output->own);
    free(output);
}

void env_no_memory(struct env *env)
{
    env->nomem = true;
}

struct partition_out *env_emit(struct env *env, enum partition_out_kind kind)
{
    struct output *output = memory_new(sizeof *output);
    arena_init(&output->own, SIZE_MAX / 2);
    output->out.kind = kind;
    output->out.generation = env->generation;
    assert((env->first == NULL) == (env->last == NULL));
    if (env->last != NULL)
        env->last->next = output;
    else
        env->first = output;
    env->last = output;
    return &output->out;
}

thole_slice env_copy(struct env *env, thole_slice from)
{
    thole_slice copy = {0};
    assert(env->last != NULL);
    if (from.len > 0 && arena_dup(&env->last->own, from, &copy) != THOLE_OK)
        env_no_memory(env);
    return copy;
}

uint64_t *env_numbers(struct env *env, size_t n)
{
    assert(env->last != NULL);
    uint64_t *numbers = arena_array(&env->last->own, n, sizeof *numbers);
    if (numbers == NULL)
        env_no_memory(env);
    return numbers;
}

static void destroy_taken(struct env *env)
{
    if (env->taken == NULL)
        return;
    if (env->taken->out.kind == PARTITION_OUT_APPLY)
        env->taken->out.apply.batch = NULL; /* given away */
    output_destroy(env->taken);
    env->taken = NULL;
}

bool env_poll(struct env *env, struct partition_out *ret)
{
    destroy_taken(env);
    struct output *output = env->first;
    assert((env->first == NULL) == (env->last == NULL) && env->taken == NULL);
    if (output == NULL)
        return false;
    env->first = output->next;
    if (env->first == NULL)
        env->last = NULL;
    env->taken = output;
    *ret = output->out;
    return true;
}

void env_clear(struct env *env)
{
    for (struct output *next; env->first != NULL; env->first = next) {
        next = env->first->next;
        output_destroy(env->first);
    }
    env->last = NULL;
}

void env_release(struct env *env)
{
    env_clear(env);
    destroy_taken(env);
}

void env_send(struct env *env, const struct message *message, thole_slice bytes, uint64_t token)
{
    struct message_route const route = message_route(message, SENDER_ENGINE);
    struct partition_out *out = env_emit(env, PARTITION_OUT_SEND);
    out->token = token;
    out->send = (struct out_send){.route = env_copy(env, thole_slice_from(route.text)),
                                  .instance = env_copy(env, message->instance),
                                  .bytes = bytes};
}

void env_notice_deletion(struct env *env, const struct deletion *d, const char *kind)
{
    thole_slice const name = d->orchestration.len > 0 ? d->orchestration : THOLE_STR(NAMELESS);
    struct event_notice *notice = &env_emit(env, PARTITION_OUT_NOTICE)->notice;
    *notice = (struct event_notice){.kind = kind,
                                    .orchestration = env_copy(env, name),
                                    .instance = env_copy(env, d->instance),
                                    .request_id = env_copy(env, d->request_id),
                                    .data = env_copy(env, d->reason),
                                    .execution = d->execution};
}
