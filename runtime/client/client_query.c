/* Queries of an instance: core NATS requests to the owner of its partition. */
#include "client_internal.h"
#include "pending_start.h"
#include "query_message.h"
#include <stdlib.h>
#include <string.h>

/* A partition that is being handed over has no owner for a moment. */
enum { HANDOVER_PATIENCE_MS = 500, HANDOVER_PAUSE_MS = 50 };

struct query_target {
    thole_client *client;
    thole_slice instance;
    const char *subject;
};

static thole_status keep_output(thole_slice from, thole_slice *ret, thole_error *reterr)
{
    uint8_t *copy = malloc(from.len + 1);
    if (copy == NULL)
        return thole_fail(reterr, THOLE_NOMEM, "out of memory for an answer of %zu bytes", from.len);
    if (from.len > 0)
        memcpy(copy, from.ptr, from.len);
    copy[from.len] = '\0'; /* not counted: for those who print it */
    *ret = (thole_slice){copy, from.len};
    return THOLE_OK;
}

void thole_client_release(thole_slice owned)
{
    free((void *)(uintptr_t)owned.ptr);
}

/* The engine knows neither what the caller has asked for, nor how the namespace is called there. */
static thole_status client_query_refusal(const struct query_target *of, const struct query_answer *answer,
                                         thole_error *reterr)
{
    if (answer->status == THOLE_NOT_FOUND &&
        thole_slice_equal(answer->data, THOLE_STR("there is no such instance"))) {
        enum absence absence;
        THOLE_TRY(absence_explain(of->client, of->instance, &absence, reterr));
        return thole_fail(reterr, THOLE_UNAVAILABLE,
                          "the start of \"%.*s\" is stored and waits for its first turn: try again",
                          THOLE_FMT(of->instance));
    }
    return thole_fail(reterr, (thole_status)answer->status, "%.*s",
                      (int)(answer->data.len < 400 ? answer->data.len : 400), (const char *)answer->data.ptr);
}

static thole_status client_query_take_answer(const struct query_target *of, thole_slice body,
                                             thole_slice *ret_output, thole_error *reterr)
{
    struct query_answer answer;
    struct arena arena;
    arena_init(&arena, CLIENT_ARENA_MAX);
    thole_status status = query_answer_decode(body, &arena, &answer, reterr);
    if (status == THOLE_OK && answer.status == THOLE_OK)
        status = keep_output(answer.data, ret_output, reterr);
    else if (status == THOLE_OK)
        status = client_query_refusal(of, &answer, reterr);
    arena_release(&arena);
    return status;
}

static thole_status ask_once(const struct query_target *of, thole_slice body, thole_slice *ret_output,
                             thole_error *reterr)
{
    struct buf answer;
    thole_error error = {.status = THOLE_OK};
    buf_init(&answer, MESSAGE_BYTES_MAX);
    thole_status status = connection_request(of->client->connection, of->subject, body, &answer, &error);
    if (status == THOLE_OK)
        status = client_query_take_answer(of, buf_bytes(&answer), ret_output, reterr);
    else if (status == THOLE_UNAVAILABLE)
        status = thole_fail(reterr, status, "no engine answers: %.300s", error.text);
    else
        status = thole_fail(reterr, status, "%s", error.text);
    buf_release(&answer);
    return status;
}

static thole_status client_query_ask(const struct query_target *of, thole_slice body, thole_slice *ret_output,
                                     thole_error *reterr)
{
    thole_client *const client = of->client;
    uint64_t const patience =
        client->timeout_ms < HANDOVER_PATIENCE_MS ? client->timeout_ms : HANDOVER_PATIENCE_MS;
    uint64_t const until = client_now_ms() + patience;
    for (;;) {
        thole_status const status = ask_once(of, body, ret_output, reterr);
        if (status != THOLE_UNAVAILABLE || client_now_ms() >= until)
            return status;
        connection_pause(client->connection, HANDOVER_PAUSE_MS);
    }
}

thole_status thole_client_query(thole_client *client, thole_slice instance, thole_slice name,
                                thole_slice input, thole_slice *ret_output, thole_error *reterr)
{
    struct query const query = {.instance = instance, .name = name, .input = input};
    struct buf subject, body;
    THOLE_TRY(client_check_id(instance, reterr));
    THOLE_TRY(name_check(name, "query", reterr));
    THOLE_TRY(client_check_payload(client, "input", input.len, reterr));
    buf_init(&subject, SUBJECT_BYTES_MAX);
    buf_init(&body, MESSAGE_BYTES_MAX);
    uint32_t const p = subject_partition(instance, client->topology.partitions);
    thole_status status = subject_query(&subject, client->topology.ns, p, name, instance, reterr);
    if (status == THOLE_OK && query_encode(&query, &body) != THOLE_OK)
        status = thole_fail(reterr, buf_status(&body), "the query cannot be encoded");
    if (status == THOLE_OK)
        status = client_query_ask(&(struct query_target){client, instance, buf_cstr(&subject)},
                                  buf_bytes(&body), ret_output, reterr);
    buf_release(&subject);
    buf_release(&body);
    return status;
}
