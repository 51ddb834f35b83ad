#include "shard_request.h"
#include "memory.h"
#include <assert.h>
#include <stdlib.h>

enum { ARENA_MAX = 1024 * 1024 * 1024 };
static_assert(sizeof(struct request) < 1008, "a small block for malloc: arena.c");

const struct request_rule *request_rule(const struct request *request)
{
    assert(request->kind < REQ_KINDS);
    return &request->shard->rules[request->kind];
}

struct window *request_window(const struct request *request)
{
    assert(request_rule(request)->executor == EXECUTOR_WINDOW);
    return &request->shard->windows[request_rule(request)->window];
}

/* ---- creation and destruction ---- */

struct request *request_create(enum request_kind kind, struct shard *shard, const struct owned *owned)
{
    assert(kind < REQ_KINDS && owned->p % shard->engine->shards_len == shard->index);
    struct request *request = shard_mail_create(SHARD_ANSWER, owned->p, sizeof *request);
    request->mail.generation = partition_generation(owned->machine);
    request->kind = kind;
    request->shard = shard;
    request->begun_us = clock_monotonic_us();
    arena_init(&request->arena, ARENA_MAX);
    return request;
}

struct request *request_of(enum request_kind kind, struct shard *shard, const struct owned *owned,
                           const struct partition_out *out)
{
    struct request *request = request_create(kind, shard, owned);
    assert(out->generation == request->mail.generation);
    if (partition_is_answered(out->kind))
        request->in = partition_answer(out);
    return request;
}

void request_leave_aside(struct request *request)
{
    if (!request->aside)
        return;
    assert(request_window(request)->aside_out > 0);
    request_window(request)->aside_out--;
    request->aside = false;
}

static void leave_loads(struct request *request)
{
    struct loads *const loads = &request->shard->loads;
    if (!request->loads)
        return;
    assert(loads->bytes >= request->load_bytes);
    loads->bytes -= request->load_bytes;
    request->loads = false;
}

static void leave_unshelved(struct request *request)
{
    if (!request->unshelved)
        return;
    assert(request->shard->unshelved > 0);
    request->shard->unshelved--;
}

void request_unshelves(struct request *request)
{
    assert(!request->unshelved);
    request->unshelved = true;
    request->shard->unshelved++;
}

void request_destroy(struct request *request)
{
    if (request == NULL)
        return;
    request_leave_aside(request);
    leave_loads(request);
    leave_unshelved(request);
    if (request->kind == REQ_STORE_APPLY)
        batch_destroy(request->store.batch);
    arena_release(&request->arena);
    free(request);
}

thole_slice request_keep(struct request *request, thole_slice text)
{
    thole_slice copy = {0};
    if (arena_dup(&request->arena, text, &copy) != THOLE_OK)
        memory_give_up(1, text.len);
    return copy;
}

thole_error *request_error(struct request *request)
{
    if (request->err == NULL)
        request->err = arena_alloc(&request->arena, sizeof *request->err);
    if (request->err == NULL)
        memory_give_up(1, sizeof *request->err);
    return request->err;
}

const char *request_error_text(const struct request *request)
{
    return request->err == NULL ? "" : request->err->text;
}

struct rows_owner request_owner(const struct owned *owned)
{
    struct rows_state rows;
    (void)partition_rows(owned->machine, &rows);
    return (struct rows_owner){owned->p, partition_epoch(owned->machine), rows.batches};
}

uint64_t request_token(const struct request *request)
{
    return (uint64_t)(uintptr_t)request;
}

bool request_is_current(const struct owned *owned, const struct request *request)
{
    return partition_generation(owned->machine) == request->mail.generation;
}

bool request_is_stale(const struct request *request)
{
    return !request_is_current(shard_owned(request->shard, request->mail.p), request);
}

/* ---- lists ---- */

void request_list_append(struct request_list *list, struct request *request)
{
    assert((list->first == NULL) == (list->last == NULL));
    request->next = NULL;
    if (list->last != NULL)
        list->last->next = request;
    else
        list->first = request;
    list->last = request;
}

void request_list_prepend(struct request_list *list, struct request *request)
{
    request->next = list->first;
    list->first = request;
    if (list->last == NULL)
        list->last = request;
}

struct request *request_list_take(struct request_list *list)
{
    struct request *const request = list->first;
    if (request == NULL)
        return NULL;
    list->first = request->next;
    if (list->first == NULL)
        list->last = NULL;
    request->next = NULL;
    return request;
}

void request_finish(struct request *request)
{
    assert(request->mail.kind == SHARD_ANSWER);
    shard_send(request->shard, &request->mail);
}
