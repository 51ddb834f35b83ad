/* One try of one activity, without an orchestration: it has no row, and only the caller waits for it. */
#include "kit.h"
#include <string.h>

static bool options_are_right(const thole_test_activity_options *options)
{
    return options->size >= sizeof *options && options->details.len <= DETAILS_BYTES_MAX &&
           strcmp(thole_cancel_kind_name(options->cancel_kind), "unknown") != 0;
}

static thole_slice text_or(thole_slice text, thole_slice instead)
{
    return text.len > 0 ? text : instead;
}

static struct kit_alone *alone_create(thole_test_env *env, const thole_test_activity_options *options)
{
    struct kit_alone *const alone = kit_alloc(env, sizeof *alone);
    alone->cancel_kind = options->cancel_kind;
    alone->cancel_reason = kit_dup(env, options->cancel_reason);
    alone->cancel_at_ms = options->cancel_kind == THOLE_CANCEL_NONE ? UINT64_MAX : options->cancel_ms;
    return alone;
}

static struct kit_work *alone_queue(thole_test_env *env, thole_slice name, thole_slice input,
                                    const thole_test_activity_options *options)
{
    struct kit_work const filled = {
        .row = {.instance = kit_instance_at(env, text_or(options->instance, THOLE_STR("test")))->id,
                .queue = kit_dup(env, text_or(options->queue, THOLE_STR("default"))),
                .activity = name,
                .details = kit_dup(env, options->details),
                .execution = 1,
                .activity_id = ++env->serial,
                .try_number = options->try_number == 0 ? 1 : options->try_number,
                .try_timeout_ms = options->try_timeout_ms},
        .input = kit_dup(env, input),
        .attempt = options->attempt == 0 ? 0 : options->attempt - 1, /* the claim counts up */
        .alone = alone_create(env, options)};
    return kit_work_alone(env, &filled);
}

static bool alone_is_over(void *arg)
{
    const struct kit_work *const w = arg;
    return w->alone->reported && w->co == NULL;
}

thole_status thole_test_activity(thole_test_env *env, const char *name, thole_slice input,
                                 const thole_test_activity_options *options,
                                 thole_test_activity_result *ret_result)
{
    thole_test_activity_options const none = {.size = sizeof none};
    options = options == NULL ? &none : options;
    if (env->running != NULL || !options_are_right(options))
        return THOLE_INVALID;
    if (input.len > env->options.payload_max)
        return THOLE_LIMIT;
    const struct kit_name *const known = kit_name_at(env, thole_slice_from(name));
    if (known->run == NULL)
        return THOLE_NOT_FOUND;
    struct kit_work *const w = alone_queue(env, known->name, input, options);
    kit_run_until(env, alone_is_over, w);
    if (!alone_is_over(w))
        return THOLE_LIMIT;
    *ret_result = w->alone->result;
    return THOLE_OK;
}
