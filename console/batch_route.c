/* One action for all instances that a filter selects: first a preview of what it hits, then, with the number
 * that was shown, the action. */
#include "action_routes.h"
#include "body.h"
#include "forms.h"
#include "jscan.h"
#include "read_routes.h"
#include "text.h"

enum {
    BATCH_MAX = 10000,
    SAMPLE_MAX = 20,
    ERRORS_MAX = 20,
    IDS_BYTES_MAX = BATCH_MAX * (THOLE_ID_BYTES_MAX + 1),
    TEXT_BYTES_MAX = 4096,
    FILTER_COLUMNS = 500,
};

typedef thole_status batch_fn(thole_client *client, thole_slice instance, thole_slice reason,
                              thole_error *reterr);

struct batch {
    struct session *session;
    const struct request *request;
    struct answer *answer;
    thole_slice object;
    struct request filter_request; /* the body's filter, as the list would have it in its address */
    thole_list_filter filter;
    struct buf action, reason;
    batch_fn *call;
    bool stuck;     /* only what is stuck can be hit; else what has not ended */
    struct buf ids; /* of all that are hit, each followed by a NUL */
    size_t count;
    struct buf sample;
    struct json sample_json;
};

/* ---- the action ---- */

static thole_status read_action(struct batch *batch, thole_error *reterr)
{
    static const struct {
        const char *name;
        batch_fn *call;
    } actions[] = {{"cancel", thole_client_cancel},
                   {"terminate", thole_client_terminate},
                   {"retry", thole_client_retry}};
    THOLE_TRY(body_text(batch->object, "action", BODY_REQUIRED, &batch->action, reterr));
    THOLE_TRY(body_text(batch->object, "reason", BODY_OPTIONAL, &batch->reason, reterr));
    for (size_t i = 0; i < sizeof actions / sizeof actions[0]; i++)
        if (thole_slice_equal(buf_bytes(&batch->action), thole_slice_from(actions[i].name)))
            batch->call = actions[i].call;
    batch->stuck = batch->call == thole_client_retry;
    if (batch->call == NULL)
        return thole_fail(reterr, THOLE_INVALID, "\"action\" is cancel, terminate or retry");
    return THOLE_OK;
}

#define FILTER_NAMES "status orchestration prefix parent custom_status after before"

static thole_status batch_route_read_filter(struct batch *batch, thole_error *reterr)
{
    static const char *const names[] = {"status",        "orchestration", "prefix", "parent",
                                        "custom_status", "after",         "before"};
    struct request *const to = &batch->filter_request;
    thole_slice object;
    if (!json_find(batch->object, "filter", &object) || object.len == 0 || object.ptr[0] != '{')
        return thole_fail(reterr, THOLE_INVALID,
                          "\"filter\" is missing: an object; {} selects every instance");
    /* A name that is not known would select more than was meant. */
    THOLE_TRY(json_members_check(object, "filter: ", FILTER_NAMES, reterr));
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        struct buf text;
        thole_slice raw;
        uint64_t number;
        buf_init(&text, TEXT_BYTES_MAX);
        bool const numeric = json_find(object, names[i], &raw) && json_uint(raw, &number);
        thole_status status = THOLE_OK;
        if (numeric)
            buf_slice(&text, raw);
        else
            status = body_text(object, names[i], BODY_OPTIONAL, &text, reterr);
        to->args[to->args_len].name = names[i];
        if (status == THOLE_OK &&
            arena_dup(&to->arena, buf_bytes(&text), &to->args[to->args_len++].value) != THOLE_OK)
            status = thole_fail(reterr, THOLE_LIMIT, "the filter is too long");
        buf_release(&text);
        THOLE_TRY(status);
    }
    return filter_read(to, &batch->filter, reterr);
}

/* ---- the instances concerned ---- */

static bool can_hit(const struct batch *batch, thole_instance_status status)
{
    switch (status) {
    case THOLE_INSTANCE_STUCK: return true;
    case THOLE_INSTANCE_RUNNING:
    case THOLE_INSTANCE_WAITING:
    case THOLE_INSTANCE_PAUSED: return !batch->stuck;
    case THOLE_INSTANCE_UNKNOWN:
    case THOLE_INSTANCE_PENDING: /* not in a list */
    case THOLE_INSTANCE_COMPLETED:
    case THOLE_INSTANCE_FAILED:
    case THOLE_INSTANCE_CANCELLED:
    case THOLE_INSTANCE_TERMINATED:
    case THOLE_INSTANCE_CONTINUED_AS_NEW: return false;
    }
    return false;
}

static thole_status take_row(void *arg, const thole_instance_info *info)
{
    struct batch *const batch = arg;
    bool const begun = info->execution > 0; /* else only events are kept for it: there is nothing to end */
    if (info->foreign || !begun || !can_hit(batch, info->status)) /* may have changed since the last page */
        return THOLE_OK;
    if (batch->count == BATCH_MAX)
        return THOLE_LIMIT;
    batch->count++;
    buf_slice(&batch->ids, info->instance);
    buf_append(&batch->ids, "", 1);
    if (batch->count <= SAMPLE_MAX) {
        json_object(&batch->sample_json);
        form_instance(&batch->sample_json, info);
        json_end(&batch->sample_json);
    }
    return buf_status(&batch->ids);
}

/* Reads only rows with a status that can be hit. */
static thole_status batch_route_collect(struct batch *batch, thole_error *reterr)
{
    static const thole_instance_status live[] = {THOLE_INSTANCE_RUNNING, THOLE_INSTANCE_WAITING,
                                                 THOLE_INSTANCE_STUCK, THOLE_INSTANCE_PAUSED};
    uint32_t const wanted = batch->filter.statuses; /* 0: any */
    thole_status status = THOLE_OK;
    batch->filter.limit = UINT32_MAX;
    json_to_buf(&batch->sample_json, &batch->sample);
    json_array(&batch->sample_json);
    for (size_t i = 0; i < sizeof live / sizeof live[0] && status == THOLE_OK; i++) {
        if (!can_hit(batch, live[i]) || (wanted != 0 && (wanted >> live[i] & 1) == 0))
            continue;
        batch->filter.status = live[i];
        status = thole_client_list(batch->session->client, &batch->filter, take_row, batch, reterr);
    }
    json_end(&batch->sample_json);
    if (status == THOLE_LIMIT)
        return thole_fail(reterr, THOLE_LIMIT,
                          "the filter selects more than %d instances: narrow it, or do them in parts",
                          BATCH_MAX);
    return status;
}

static void answer_preview(struct batch *batch)
{
    struct json json;
    answer_document(batch->answer, &json, "thole.batch_preview.v1");
    json_member(&json, "action", buf_bytes(&batch->action));
    json_member_number(&json, "count", batch->count);
    json_member_copy(&json, THOLE_STR("sample"), buf_bytes(&batch->sample));
    json_end(&json);
}

/* ---- the action ---- */

static void batch_route_run_all(struct batch *batch)
{
    const char *at = buf_cstr(&batch->ids);
    uint64_t done = 0, failed = 0;
    struct json json;
    answer_document(batch->answer, &json, "thole.batch.v1");
    json_key(&json, "errors");
    json_array(&json);
    bool away = false; /* the servers: the rest would wait as long, each */
    for (size_t i = 0; i < batch->count && !away; i++) {
        thole_slice const id = thole_slice_from(at);
        thole_error error = {.status = THOLE_OK};
        at += id.len + 1;
        error.status = batch->call(batch->session->client, id, buf_bytes(&batch->reason), &error);
        done += error.status == THOLE_OK;
        failed += error.status != THOLE_OK;
        away = error.status == THOLE_UNAVAILABLE;
        if (error.status == THOLE_OK || failed > ERRORS_MAX)
            continue;
        json_object(&json);
        json_member(&json, "instance", id);
        json_member_text(&json, "code", thole_status_name(error.status));
        json_member_text(&json, "detail", error.text);
        json_end(&json);
    }
    json_end(&json);
    json_member_number(&json, "done", done);
    json_member_number(&json, "failed", batch->count - done);
    json_end(&json);
}

static thole_status check_expected(const struct batch *batch, thole_error *reterr)
{
    uint64_t expected;
    THOLE_TRY(body_number(batch->object, "expect", UINT64_MAX, &expected, reterr));
    if (expected == UINT64_MAX)
        return thole_fail(reterr, THOLE_INVALID,
                          "\"expect\" is missing: the number that the preview has shown");
    if (batch->count > expected)
        return thole_fail(
            reterr, THOLE_CONFLICT,
            "the filter selects %zu instances now, %llu were shown: look again; nothing was done",
            batch->count, (unsigned long long)expected);
    return THOLE_OK;
}

static thole_status batch_read(struct batch *batch, thole_error *reterr)
{
    THOLE_TRY(body_check(batch->request, "action filter preview expect reason", reterr));
    THOLE_TRY(read_action(batch, reterr));
    THOLE_TRY(batch_route_read_filter(batch, reterr));
    THOLE_TRY(batch_route_collect(batch, reterr));
    return body_is_true(batch->object, "preview") ? THOLE_OK : check_expected(batch, reterr);
}

/* Of a filter as it was sent: its names are known, its values are those of the user. */
static void log_batch(const struct batch *batch)
{
    struct buf what;
    thole_slice filter = THOLE_STR("");
    (void)json_find(batch->object, "filter", &filter); /* present: see batch_route_read_filter() */
    buf_init(&what, TEXT_BYTES_MAX);
    buf_printf(&what, "%zu instances of the filter ", batch->count);
    text_safe(&what, filter, FILTER_COLUMNS);
    act_log(batch->request, buf_cstr(&batch->action), buf_bytes(&what));
    buf_release(&what);
}

static void batch_run(struct batch *batch)
{
    thole_error error = {.status = THOLE_OK};
    error.status = batch_read(batch, &error);
    if (error.status != THOLE_OK) {
        answer_error(batch->answer, &error);
    } else if (body_is_true(batch->object, "preview")) {
        answer_preview(batch);
    } else {
        log_batch(batch);
        batch_route_run_all(batch);
    }
}

void act_batch(struct session *session, const struct request *request, struct answer *answer)
{
    struct batch batch = {
        .session = session, .request = request, .answer = answer, .object = buf_bytes(&request->body)};
    bool free_now = false;
    if (!atomic_compare_exchange_strong(session->batch, &free_now, true)) {
        answer_problem(answer, 409, "CONFLICT", "another batch is under way; try again when it is done");
        return;
    }
    request_init(&batch.filter_request, 0);
    buf_init(&batch.action, TEXT_BYTES_MAX);
    buf_init(&batch.reason, TEXT_BYTES_MAX);
    buf_init(&batch.ids, IDS_BYTES_MAX);
    buf_init(&batch.sample, ANSWER_BYTES_MAX);
    batch_run(&batch);
    request_release(&batch.filter_request);
    buf_release(&batch.action);
    buf_release(&batch.reason);
    buf_release(&batch.ids);
    buf_release(&batch.sample);
    atomic_store(session->batch, false);
}
