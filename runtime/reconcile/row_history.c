#include "row_history.h"
#include "memory.h"
#include "message.h"
#include "proto_json.h"
#include "reader.h"
#include "result_list.h"
#include "subject.h"
#include "subject_list.h"
#include <stdlib.h>

enum {
    SUBJECTS_MAX = 100 * 1000 * 1000,
    SUBJECTS_TRIES = 5,
    ARENA_BYTES = RECORD_BYTES_MAX * 8,
    WALK_RECORDS = 12, /* one request each; a consumer costs the server about as much as ten */
    TOKEN_KIND = 2,
    TOKEN_INSTANCE = 4,
};

/* ---- a partition ---- */

thole_status row_history_owner(struct row_history *of, thole_error *reterr)
{
    struct buf subject, body;
    struct arena arena;
    struct record record;
    buf_init(&subject, SUBJECT_BYTES_MAX);
    buf_init(&body, RECORD_BYTES_MAX);
    arena_init(&arena, ARENA_BYTES);
    thole_status status = subject_control(&subject, of->ns, of->p, "epoch", reterr);
    if (status == THOLE_OK)
        status = stream_last_by_subject(of->connection, buf_cstr(&of->history), buf_cstr(&subject),
                                        &of->owner.opened, &body, reterr);
    if (status == THOLE_OK && of->owner.opened > 0)
        status = record_decode(buf_bytes(&body), &arena, &record, reterr);
    if (status == THOLE_OK && of->owner.opened > 0)
        of->owner.epoch = record.epoch;
    arena_release(&arena);
    buf_release(&subject);
    buf_release(&body);
    return status;
}

thole_status row_history_open(struct row_history *of, struct connection *connection, const char *ns,
                              uint32_t p, thole_error *reterr)
{
    *of = (struct row_history){.connection = connection, .ns = ns, .p = p};
    buf_init(&of->history, STREAM_NAME_BYTES_MAX);
    buf_init(&of->inbox, STREAM_NAME_BYTES_MAX);
    THOLE_TRY(stream_name(&of->history, ns, "HIST", p, reterr));
    THOLE_TRY(stream_name(&of->inbox, ns, "IN", p, reterr));
    return row_history_owner(of, reterr);
}

void row_history_release(struct row_history *of)
{
    buf_release(&of->history);
    buf_release(&of->inbox);
}

/* ---- ids ---- */

struct gathering {
    struct id_set *to;
    struct buf id;
    thole_status status;
};

static void row_history_gather(void *arg, thole_slice subject)
{
    struct gathering *const g = arg;
    if (g->status != THOLE_OK || !thole_slice_equal(subject_nth(subject, TOKEN_KIND), THOLE_STR("hist")))
        return;
    buf_clear(&g->id);
    if (subject_token_decode(subject_nth(subject, TOKEN_INSTANCE), &g->id, NULL) == THOLE_OK)
        g->status = id_set_add(g->to, buf_bytes(&g->id));
}

thole_status row_history_ids(const struct row_history *of, struct id_set *to, thole_error *reterr)
{
    struct stream_bounds bounds = {0};
    struct gathering g = {.to = to, .status = THOLE_OK};
    const char *const stream = buf_cstr(&of->history);
    THOLE_TRY(stream_bounds(of->connection, stream, &bounds, reterr));
    if (bounds.messages == 0)
        return THOLE_OK;
    buf_init(&g.id, SUBJECT_BYTES_MAX);
    thole_status status = THOLE_UNAVAILABLE;
    for (int i = 0; i < SUBJECTS_TRIES && status == THOLE_UNAVAILABLE; i++)
        status = stream_subjects(of->connection, stream, bounds.last, SUBJECTS_MAX, row_history_gather, &g,
                                 reterr);
    buf_release(&g.id);
    return status != THOLE_OK ? status : g.status;
}

static thole_status gather_delivery(void *arg, uint64_t sequence, const struct delivery *delivery)
{
    struct gathering *const g = arg;
    (void)sequence;
    row_history_gather(g, delivery->subject);
    return g->status;
}

thole_status row_history_ids_behind(const struct row_history *of, uint64_t sequence, struct id_set *to,
                                    thole_error *reterr)
{
    struct stream_bounds bounds = {0};
    struct gathering g = {.to = to, .status = THOLE_OK};
    const char *const stream = buf_cstr(&of->history);
    THOLE_TRY(stream_bounds(of->connection, stream, &bounds, reterr));
    if (bounds.last <= sequence)
        return THOLE_OK;
    buf_init(&g.id, SUBJECT_BYTES_MAX);
    thole_status const status = stream_read_deliveries(of->connection, stream, NULL, sequence + 1,
                                                       bounds.last, gather_delivery, &g, reterr);
    buf_release(&g.id);
    return status;
}

/* ---- the history of one instance ---- */

struct taking {
    const struct row_history *of;
    struct row_check *check;
    uint64_t last;
    size_t records, records_max; /* then stop */
    thole_error *reterr;
};

/* Only the tail after the last EpochOpened can have records that do not count. */
static bool row_history_counts(const struct row_history *of, uint64_t sequence, thole_slice body)
{
    struct arena arena;
    struct record record;
    if (sequence <= of->owner.opened)
        return true;
    arena_init(&arena, ARENA_BYTES);
    bool const is_void = record_decode(body, &arena, &record, NULL) == THOLE_OK &&
                         log_rule_surely_void(&of->owner, &record, sequence);
    arena_release(&arena);
    return !is_void;
}

static thole_status row_history_take(void *arg, uint64_t sequence, thole_slice subject, thole_slice body)
{
    struct taking *const t = arg;
    (void)subject;
    t->last = sequence;
    if (row_history_counts(t->of, sequence, body))
        THOLE_TRY(row_check_take(t->check, sequence, body, t->reterr));
    return ++t->records == t->records_max ? THOLE_CANCELLED : THOLE_OK;
}

/* A few records one by one, what is left with a consumer. */
static thole_status row_history_read_all(struct taking *t, const char *subject, thole_error *reterr)
{
    struct stream_bounds bounds = {0};
    const char *const stream = buf_cstr(&t->of->history);
    t->records_max = WALK_RECORDS;
    thole_status const status =
        stream_walk(t->of->connection, stream, subject, 1, UINT64_MAX, row_history_take, t, reterr);
    if (status != THOLE_CANCELLED || t->records < WALK_RECORDS)
        return status;
    t->records_max = SIZE_MAX;
    THOLE_TRY(stream_bounds(t->of->connection, stream, &bounds, reterr));
    if (bounds.last <= t->last)
        return THOLE_OK;
    return stream_read(t->of->connection, stream, subject, t->last + 1, bounds.last, row_history_take, t,
                       reterr);
}

thole_status row_history_read(const struct row_history *of, thole_slice instance, struct row_check *check,
                              thole_error *reterr)
{
    struct taking t = {.of = of, .check = check, .reterr = reterr};
    struct buf subject;
    buf_init(&subject, SUBJECT_BYTES_MAX);
    thole_status status = subject_history(&subject, of->ns, of->p, instance, EXECUTIONS_ALL, reterr);
    if (status == THOLE_OK)
        status = row_history_read_all(&t, buf_cstr(&subject), reterr);
    buf_release(&subject);
    return status;
}

/* ---- results that wait ---- */

struct results {
    thole_slice instance; /* whose */
    struct waiting_result *items;
    size_t len, cap;
};

static void row_history_take_message(struct results *results, thole_slice body)
{
    struct arena arena;
    struct message message;
    arena_init(&arena, MESSAGE_BYTES_MAX * 2);
    if (message_decode(body, &arena, &message, NULL) == THOLE_OK && message.kind == MESSAGE_ACTIVITY_RESULT &&
        thole_slice_equal(message.instance, results->instance)) {
        results->items =
            memory_reserve(results->items, &results->cap, results->len + 1, sizeof *results->items);
        results->items[results->len++] = (struct waiting_result){
            message.execution, message.task, message.try_number == 0 ? 1 : message.try_number};
    }
    arena_release(&arena);
}

static thole_status row_history_take_result(void *arg, uint64_t sequence, thole_slice subject,
                                            thole_slice body)
{
    struct results *const results = arg;
    struct result_list list;
    struct result_item item;
    struct buf converted;
    size_t len;
    (void)sequence;
    body = proto_json_inbox_body(body, &converted);
    if (!subject_is_results(subject))
        row_history_take_message(results, body);
    else if (result_list_read(body, &list, &len, NULL) == THOLE_OK)
        while (result_list_next(&list, &item))
            if (thole_slice_equal(item.instance, results->instance))
                row_history_take_message(results, item.bytes);
    buf_release(&converted);
    return THOLE_OK;
}

static thole_status row_history_walk(const struct row_history *of, const struct buf *subject,
                                     struct results *results, thole_error *reterr)
{
    return stream_walk(of->connection, buf_cstr(&of->inbox), buf_cstr(subject), 1, UINT64_MAX,
                       row_history_take_result, results, reterr);
}

thole_status row_history_results(const struct row_history *of, thole_slice instance,
                                 struct waiting_result **ret, size_t *ret_len, thole_error *reterr)
{
    struct results results = {.instance = instance};
    struct buf subject, token;
    buf_init(&subject, SUBJECT_BYTES_MAX);
    buf_init(&token, SUBJECT_BYTES_MAX);
    thole_status status = subject_token(&token, instance, reterr);
    if (status == THOLE_OK) {
        buf_printf(&subject, "thole.%s.in.%u.*.*.%s", of->ns, of->p, buf_cstr(&token));
        status = row_history_walk(of, &subject, &results, reterr);
    }
    if (status == THOLE_OK) { /* those of senders that NATS vouches for */
        buf_text(&subject, ".by.*");
        status = row_history_walk(of, &subject, &results, reterr);
    }
    if (status == THOLE_OK) { /* those that came with others */
        buf_clear(&subject);
        status = subject_results(&subject, of->ns, of->p, reterr);
    }
    if (status == THOLE_OK)
        status = row_history_walk(of, &subject, &results, reterr);
    buf_release(&token);
    buf_release(&subject);
    if (status != THOLE_OK) {
        free(results.items);
        return status;
    }
    *ret = results.items;
    *ret_len = results.len;
    return THOLE_OK;
}
