/*
 * Queries: core NATS requests to the owner of a partition. The subscription exists while the partition is
 * open, so that NATS answers "no responders" when there is no owner. Queries are not stored. They have a
 * connection of their own: NATS closes one whose messages are not read as fast as they come.
 */
#include "memory.h"
#include "messages.pb-c.h"
#include "proto_json.h"
#include "query_message.h"
#include "query_reply.h"
#include "shard_parts.h"
#include "source_lines.h"
#include "subject.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum {
    QUERIES_MAX = 256,                    /* of one shard, from their arrival to their answer */
    QUERIES_BYTES_MAX = 32 * 1024 * 1024, /* likewise, beside the one that exceeds it */
    QUERY_OVERHEAD = 4096,                /* of a query without its input */
    AGAIN_MS = 1000,                      /* after a subscription that failed */
};

struct query_subscription { /* an open partition's subscription */
    struct shard *shard;
    uint32_t p;
    uint64_t generation;
    struct subscription *subscription;
};

struct query_mail {
    struct shard_mail mail;
    size_t reply_len, tokens_len, body_len;
    char bytes[]; /* reply subject and a NUL, the subject's tokens of the query and the instance, body */
};

struct asked { /* a query that the machine has */
    struct asked *next;
    uint64_t token;
    size_t bytes; /* as it was counted */
    bool json;    /* asked in JSON, and answered in JSON */
    char reply[];
};

static void query_ends(struct shard *shard, size_t bytes)
{
    atomic_fetch_sub(&shard->queries, 1);
    atomic_fetch_sub(&shard->queries_bytes, bytes);
}

static void shard_query_answer_text(struct shard *shard, const char *reply, bool json, thole_status status,
                                    const char *text)
{
    query_reply_text(shard->engine->services, reply, json, status, text);
}

/* JSON takes a third more bytes than the payload that is in it: an answer that does not fit into a message is
 * one that says so. */
static void shard_query_answer(struct shard *shard, const char *reply, bool json,
                               const struct out_query_answer *said)
{
    struct query_answer const whole = {.status = (uint32_t)said->status, .data = said->data};
    thole_error err = {0};
    thole_status const status = query_reply(shard->engine->services, reply, json, &whole, &err);
    if (status == THOLE_LIMIT)
        shard_query_answer_text(shard, reply, json, THOLE_LIMIT,
                                "the answer is larger than a message may be");
    else if (status != THOLE_OK)
        log_line(LOG_LEVEL_DEBUG, "query", "an answer was not sent: %s", err.text);
}

/* ---- arriving: NATS's threads ---- */

static void shard_query_refuse(const struct query_subscription *queries, const struct delivery *delivery,
                               thole_status status, const char *text)
{
    char to[SUBJECT_BYTES_MAX];
    memcpy(to, delivery->reply.ptr, delivery->reply.len); /* fits: checked by subject_is_reply() */
    to[delivery->reply.len] = '\0';
    shard_query_answer_text(queries->shard, to, proto_json_is(delivery->body), status, text);
}

/* The one that exceeds the limit by its bytes is taken, so that any fits. */
static bool query_begins(struct shard *shard, size_t bytes)
{
    size_t const before = atomic_fetch_add(&shard->queries_bytes, bytes);
    if (atomic_fetch_add(&shard->queries, 1) < QUERIES_MAX && before < QUERIES_BYTES_MAX)
        return true;
    query_ends(shard, bytes);
    return false;
}

static void query_over(struct shard *shard, uint32_t p)
{
    log_limits_line(
        shard->engine->lines, clock_monotonic_ms(), LINE_QUERIES_REFUSED, LOG_PARTITION(p),
        "a query was refused: the engine has %d of them, or %d MiB, at once; who asks may try again",
        (int)QUERIES_MAX, QUERIES_BYTES_MAX / 1024 / 1024);
}

static void shard_query_on_question(void *arg, const struct delivery *delivery)
{
    struct query_subscription *queries = arg;
    struct shard *shard = queries->shard;
    if (!subject_is_reply(delivery->reply))
        return; /* no reply subject, or one that may belong to a stream */
    uint64_t const payload_max = shard->engine->options.payload_max;
    if (delivery->body.len >
        (proto_json_is(delivery->body) ? payload_max / 3 * 4 + 4 : payload_max) + QUERY_OVERHEAD) {
        shard_query_refuse(queries, delivery, THOLE_LIMIT, "the query is larger than a payload may be");
        return;
    }
    if (!query_begins(shard, delivery->body.len)) {
        query_over(shard, queries->p);
        shard_query_refuse(queries, delivery, THOLE_UNAVAILABLE, "the engine has too many queries at once");
        return;
    }
    thole_slice const query = subject_nth(delivery->subject, QUERY_TOKEN_QUERY);
    thole_slice const instance = subject_nth(delivery->subject, QUERY_TOKEN_INSTANCE);
    thole_slice const tokens = {query.ptr, query.len + 1 + instance.len};
    struct query_mail *mail = shard_mail_create(
        SHARD_QUERY, queries->p, sizeof *mail + delivery->reply.len + 1 + tokens.len + delivery->body.len);
    mail->mail.generation = queries->generation;
    mail->reply_len = delivery->reply.len;
    mail->tokens_len = tokens.len;
    mail->body_len = delivery->body.len;
    memcpy(mail->bytes, delivery->reply.ptr, delivery->reply.len);
    memcpy(mail->bytes + mail->reply_len + 1, tokens.ptr, tokens.len);
    if (delivery->body.len > 0)
        memcpy(mail->bytes + mail->reply_len + 1 + tokens.len, delivery->body.ptr, delivery->body.len);
    shard_send(shard, &mail->mail);
}

/* ---- asking and answering: the shard's thread ---- */

static bool is_subjects(const struct query *query, thole_slice tokens)
{
    struct buf id;
    buf_init(&id, THOLE_ID_BYTES_MAX);
    bool const same = thole_slice_equal(subject_nth(tokens, 0), query->name) &&
                      subject_token_decode(subject_nth(tokens, 1), &id, NULL) == THOLE_OK &&
                      thole_slice_equal(buf_bytes(&id), query->instance);
    buf_release(&id);
    return same;
}

static thole_slice tokens_of(const struct query_mail *mail)
{
    return (thole_slice){(const uint8_t *)mail->bytes + mail->reply_len + 1, mail->tokens_len};
}

static thole_slice body_of(const struct query_mail *mail)
{
    return (thole_slice){(const uint8_t *)mail->bytes + mail->reply_len + 1 + mail->tokens_len,
                         mail->body_len};
}

static bool is_here(const struct shard *shard, const struct query_mail *mail, const struct query *query)
{
    return is_subjects(query, tokens_of(mail)) &&
           subject_partition(query->instance, shard->engine->topology.partitions) == mail->mail.p;
}

static void shard_query_ask(struct shard *shard, struct owned *owned, const struct query_mail *mail,
                            bool json, const struct query *query)
{
    const char *const reply = mail->bytes;
    size_t const len = strlen(reply);
    struct asked *asked = memory_new(sizeof *asked + len + 1);
    memcpy(asked->reply, reply, len);
    asked->token = ++shard->query_token;
    asked->json = json;
    asked->bytes = mail->body_len;
    asked->next = owned->asked;
    owned->asked = asked;
    shard_input(owned, &(struct partition_in){.kind = PARTITION_IN_QUERY,
                                              .generation = partition_generation(owned->machine),
                                              .token = asked->token,
                                              .query = {query->instance, query->name, query->input}});
}

void query_take(struct shard *shard, const struct shard_mail *mail)
{
    const struct query_mail *const asking = (const struct query_mail *)mail;
    struct owned *owned = shard_owned(shard, mail->p);
    struct query query;
    struct arena arena;
    struct buf converted;
    thole_error err = {0};
    assert(mail->kind == SHARD_QUERY);
    arena_init(&arena, MESSAGE_BYTES_MAX);
    buf_init(&converted, MESSAGE_BYTES_MAX);
    thole_slice body = body_of(asking);
    bool const json = proto_json_is(body);
    thole_status status = THOLE_OK;
    if (json) {
        status = proto_json_pack(&thole__v1__query__descriptor, body, &converted, &err);
        body = buf_bytes(&converted);
    }
    if (status == THOLE_OK)
        status = query_decode(body, &arena, &query, &err);
    if (status == THOLE_OK && query.input.len > shard->engine->options.payload_max)
        status = thole_fail(&err, THOLE_LIMIT, "the query is larger than a payload may be");
    if (status == THOLE_OK && !is_here(shard, asking, &query))
        status = thole_fail(&err, THOLE_CORRUPT,
                            "the query is another one, or for another instance, than its subject says");
    if (status == THOLE_OK && partition_state(owned->machine) != PARTITION_OPEN)
        status = thole_fail(&err, THOLE_UNAVAILABLE, "the partition is being handed over");
    if (status == THOLE_OK) {
        shard_query_ask(shard, owned, asking, json, &query);
    } else {
        query_ends(shard, asking->body_len);
        shard_query_answer_text(shard, asking->bytes, json, status, err.text);
    }
    buf_release(&converted);
    arena_release(&arena);
}

static void shard_query_forget(struct shard *shard, struct asked *asked)
{
    query_ends(shard, asked->bytes);
    free(asked);
}

void query_answer(struct shard *shard, struct owned *owned, const struct partition_out *out)
{
    struct asked **at = &owned->asked;
    while (*at != NULL && (*at)->token != out->token)
        at = &(*at)->next;
    struct asked *asked = *at;
    if (asked == NULL)
        return;
    *at = asked->next;
    const struct out_query_answer *const said = &out->query_answer;
    if (said->status == THOLE_OK && said->data.len > shard->engine->options.payload_max)
        shard_query_answer_text(shard, asked->reply, asked->json, THOLE_LIMIT,
                                "the answer is larger than a payload may be");
    else if (said->site == NULL)
        shard_query_answer(shard, asked->reply, asked->json, said);
    else if (!source_lines_ask(shard->engine->source_lines, asked->reply, asked->json, said->site))
        shard_query_answer_text(shard, asked->reply, asked->json, THOLE_UNAVAILABLE,
                                "the engine has too many queries at once");
    shard_query_forget(shard, asked);
}

/* ---- opening and closing ---- */

static thole_status shard_query_subscribe(struct shard *shard, const struct owned *owned,
                                          struct query_subscription **ret, thole_error *reterr)
{
    struct query_subscription *queries = memory_new(sizeof *queries);
    *queries = (struct query_subscription){
        .shard = shard, .p = owned->p, .generation = partition_generation(owned->machine)};
    thole_status status = subject_query(&shard->subject, shard->engine->topology.ns, owned->p,
                                        (thole_slice){0}, (thole_slice){0}, reterr);
    if (status == THOLE_OK)
        status = connection_subscribe(shard->engine->services, buf_cstr(&shard->subject),
                                      shard_query_on_question, queries, &queries->subscription, reterr);
    if (status != THOLE_OK)
        free(queries);
    else
        *ret = queries;
    return status;
}

void queries_open(struct shard *shard, struct owned *owned)
{
    thole_error err = {0};
    assert(owned->queries == NULL);
    thole_status const status = shard_query_subscribe(shard, owned, &owned->queries, &err);
    owned->queries_ms = status == THOLE_OK ? 0 : clock_monotonic_ms() + AGAIN_MS;
    if (status != THOLE_OK)
        log_line_of(LOG_LEVEL_WARN, "query", LOG_PARTITION(owned->p),
                    "answers no queries, trying again in %d ms: %s", (int)AGAIN_MS, err.text);
}

void queries_retry(struct shard *shard, struct owned *owned, uint64_t now_ms)
{
    if (owned->queries_ms != 0 && now_ms >= owned->queries_ms)
        queries_open(shard, owned);
}

void queries_close(struct shard *shard, struct owned *owned)
{
    if (owned->queries != NULL)
        subscription_close(owned->queries->subscription);
    free(owned->queries);
    owned->queries = NULL;
    owned->queries_ms = 0;
    for (struct asked *asked = owned->asked, *next; asked != NULL; asked = next) {
        next = asked->next;
        shard_query_answer_text(shard, asked->reply, asked->json, THOLE_UNAVAILABLE,
                                "the partition is being handed over");
        shard_query_forget(shard, asked);
    }
    owned->asked = NULL;
}
