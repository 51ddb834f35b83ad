/*
 * Queries of a parked instance, or of one that has ended and was replayed for them. The handler runs on a
 * stack of its own with the orchestration's context under guard: calls that would change anything are
 * refused, memory comes from a scratch arena, and a handler that awaits is dropped.
 */
#include "instance_query.h"
#include "instance_code.h"
#include "instance_memory.h"
#include "message.h"
#include <assert.h>

static const struct query_handler *handler_find(const struct instance *in, thole_slice name)
{
    for (const struct query_handler *h = in->queries.first; h != NULL; h = h->next)
        if (thole_slice_equal(h->name, name))
            return h;
    return NULL;
}

void thole_on_query(thole_ctx *ctx, thole_slice name, thole_query_fn *answer, void *arg)
{
    struct instance *in = ctx->instance;
    NOTE_CALL_SITE(in);
    if (code_refuses(in) || in->broken != THOLE_OK || name_check(name, "query", NULL) != THOLE_OK)
        return;
    struct query_handler *handler = (struct query_handler *)handler_find(in, name);
    if (handler == NULL) {
        if (in->queries.len >= QUERIES_MAX)
            return;
        handler = arena_alloc(&in->arena, sizeof *handler);
        if (handler == NULL) {
            (void)instance_full(in);
            return;
        }
        if (instance_keep(in, name, &handler->name) != THOLE_OK)
            return;
        handler->next = in->queries.first;
        in->queries.first = handler;
        in->queries.len++;
    }
    handler->answer = answer;
    handler->arg = arg;
    handler->on_stack = coro_has(in->code.coro, arg);
}

static void query_entry(void *arg)
{
    struct instance *in = arg;
    struct query *query = &in->queries.current;
    query->status = query->handler->answer(&in->ctx, query->handler->arg, query->input, &query->output);
    query->done = true;
}

static thole_status instance_query_query_run(struct instance *in, thole_error *reterr)
{
    struct query *query = &in->queries.current;
    query->coro = coro_create_sized(in->options.stacks, in->options.stack_bytes, query_entry, in);
    if (query->coro == NULL)
        return thole_fail(reterr, THOLE_NOMEM, "no stack for a query (%zu are in use)",
                          stack_pool_in_use(in->options.stacks));
    code_guard(in, GUARD_QUERY);
    (void)coro_resume(query->coro);
    bool const allowed = code_unguard(in);
    coro_destroy(query->coro);
    query->coro = NULL;
    if (!allowed)
        return thole_fail(reterr, THOLE_INVALID, "the query tried to schedule, wait or set something");
    assert(query->done);
    return THOLE_OK;
}

static thole_status instance_query_query_answer(const struct instance *in, thole_slice *ret_output,
                                                thole_error *reterr)
{
    const struct query *query = &in->queries.current;
    if (query->status != THOLE_OK && query->thrown.len > 0)
        return thole_fail(reterr, query->status, "%.*s", THOLE_FMT(query->thrown));
    if (query->status != THOLE_OK)
        return thole_fail(reterr, query->status, "%s", thole_status_text(query->status));
    if (query->output.len > in->options.payload_max)
        return thole_fail(reterr, THOLE_LIMIT, "the answer has %zu bytes, at most %zu are allowed",
                          query->output.len, in->options.payload_max);
    *ret_output = query->output;
    return THOLE_OK;
}

/* No such query: the text lists the registered ones, as many as fit. */
static thole_status not_answered(const struct instance *in, thole_slice name, thole_error *reterr)
{
    enum { NAMES_BYTES_MAX = 360 };
    struct buf names;
    buf_init(&names, NAMES_BYTES_MAX);
    const struct query_handler *h = in->queries.first;
    for (; h != NULL && names.len + h->name.len + sizeof ", , …" < NAMES_BYTES_MAX; h = h->next)
        buf_printf(&names, "%s%.*s", names.len == 0 ? "" : ", ", THOLE_FMT(h->name));
    if (h != NULL)
        buf_text(&names, ", …");
    thole_status const status =
        thole_fail(reterr, THOLE_NOT_FOUND, "there is no query '%.*s'; %s%s",
                   (int)(name.len < 64 ? name.len : 64), (const char *)name.ptr,
                   names.len == 0 ? "the instance answers none" : "the instance answers: ", buf_cstr(&names));
    buf_release(&names);
    return status;
}

thole_status instance_query(struct instance *instance, thole_slice name, thole_slice input,
                            thole_slice *ret_output, thole_error *reterr)
{
    struct query *query = &instance->queries.current;
    if (instance->broken != THOLE_OK || instance->options.code == NULL)
        return thole_fail(reterr, THOLE_INVALID, "no code can run here to answer a query");
    query_release(instance);
    const struct query_handler *handler = handler_find(instance, name);
    if (handler == NULL)
        return not_answered(instance, name, reterr);
    if (instance->end.ended && handler->on_stack)
        return thole_fail(
            reterr, THOLE_INVALID,
            "the execution has ended, and what query '%.*s' is about stood on its stack: keep it in "
            "memory of thole_alloc()",
            (int)(name.len < 64 ? name.len : 64), (const char *)name.ptr);
    *query = (struct query){.arena = query->arena, .handler = handler, .input = input};
    THOLE_TRY(instance_query_query_run(instance, reterr));
    return instance_query_query_answer(instance, ret_output, reterr);
}

void query_throw(struct instance *in, thole_slice text)
{
    assert(in->code.guard == GUARD_QUERY);
    in->queries.current.thrown = text;
}

void query_release(struct instance *in)
{
    assert(in->queries.current.coro == NULL);
    arena_release(&in->queries.current.arena);
}
