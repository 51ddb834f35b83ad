#include "forms.h"
#include "standstill.h"
#include "utf8.h"
#include <stdio.h>

void form_instance(struct json *json, const thole_instance_info *info)
{
    json_member(json, "instance", info->instance);
    json_member(json, "orchestration", info->orchestration);
    if (info->version != 0)
        json_member_number(json, "version", info->version);
    json_member_text(json, "status", thole_instance_status_name(info->status));
    json_member_number(json, "execution", info->execution);
    json_member_time(json, "created", info->created_ms);
    json_member_time(json, "updated", info->updated_ms);
    json_member_data(json, "detail", info->detail);
    if (info->reason != NULL) {
        struct standstill const stop = standstill_of(blocked_kind_of(info->reason));
        json_member_text(json, "reason", info->reason);
        json_member_text(json, "next_step", stop.remedy);
    }
    if (info->custom_status.len > 0)
        json_member_data(json, "custom_status", info->custom_status);
    if (info->parent.len > 0)
        json_member(json, "parent", info->parent);
    json_member_number(json, "turns", info->turns);
    json_member_number(json, "partition", info->partition);
    json_member_number(json, "open_activities", info->open_activities);
    json_member_number(json, "open_timers", info->open_timers);
}

/* ---- histories ---- */

static void event_details(struct json *json, const thole_history_event *event)
{
    if (event->try_number != 0)
        json_member_number(json, "try", event->try_number);
    if (event->version != 0)
        json_member_number(json, "version", event->version);
    if (event->status != THOLE_OK)
        json_member_text(json, "status", thole_status_name(event->status));
    if (event->error_type.len > 0)
        json_member(json, "error_type", event->error_type);
    if (event->cause != NULL)
        json_member_text(json, "cause", event->cause);
    if (event->queue.len > 0)
        json_member(json, "queue", event->queue);
    if (event->pruned_before != 0)
        json_member_number(json, "pruned_before", event->pruned_before);
    if (event->instance.len > 0)
        json_member(json, "other", event->instance);
    if (event->request_id.len > 0)
        json_member(json, "request_id", event->request_id);
}

/* As much of it as is allowed; of a text whole characters. */
static bool data_within(struct json *json, const char *key, thole_slice data, size_t data_max)
{
    thole_slice shown = data;
    if (data.len > data_max) {
        shown.len = data_max;
        while (shown.len > 0 && data_max - shown.len < 3 && (data.ptr[shown.len] & 0xC0) == 0x80)
            shown.len--;
        if (!utf8_is_valid(shown))
            shown.len = data_max;
    }
    json_member_data(json, key, shown);
    return shown.len < data.len;
}

/* The actor of the event, and the worker that ran it. */
static void event_origin(struct json *json, const thole_history_event *event)
{
    if (event->actor.len > 0) {
        json_member(json, "actor", event->actor);
        json_member_bool(json, "actor_authenticated", event->actor_authenticated);
    }
    if (event->client.len > 0)
        json_member(json, "client", event->client);
    if (event->traceparent.len > 0)
        json_member(json, "traceparent", event->traceparent);
    if (event->worker.len > 0)
        json_member(json, "worker", event->worker);
    if (event->host.len > 0)
        json_member(json, "host", event->host);
    if (event->attempt != 0)
        json_member_number(json, "attempt", event->attempt);
    if (event->run_started_ms != 0)
        json_member_time(json, "run_started", event->run_started_ms);
    if (event->run_ended_ms != 0)
        json_member_time(json, "run_ended", event->run_ended_ms);
}

void form_event(struct json *json, const thole_history_event *event, size_t data_max)
{
    json_member_number(json, "execution", event->execution);
    json_member_number(json, "id", event->id);
    json_member_text(json, "kind", event->kind);
    if (event->ref != 0)
        json_member_number(json, "ref", event->ref);
    if (event->name.len > 0)
        json_member(json, "name", event->name);
    if (data_within(json, "data", event->data, data_max))
        json_member_number(json, "data_bytes", event->data.len);
    if (event->redacted)
        json_member_bool(json, "redacted", true);
    event_details(json, event);
    event_origin(json, event);
    if (event->due_ms != 0)
        json_member_time(json, "due", event->due_ms);
    json_member_time(json, "time", event->time_ms);
    json_member_number(json, "turn", event->turn);
    json_member_number(json, "sequence", event->sequence);
}

void form_data(struct json *json, const char *key, thole_slice data, size_t data_max)
{
    char bytes[40];
    (void)snprintf(bytes, sizeof bytes, "%s_bytes", key);
    (void)data_within(json, key, data, data_max);
    json_member_number(json, bytes, data.len);
}

/* ---- queues ---- */

void form_poisoned(struct json *json, const thole_poisoned_info *info)
{
    json_member(json, "instance", info->instance);
    json_member_number(json, "execution", info->execution);
    json_member_number(json, "activity_id", info->activity_id);
    json_member(json, "activity", info->activity);
    json_member(json, "queue", info->queue);
    json_member_number(json, "try", info->try_number);
    json_member_number(json, "claims", info->claims);
    json_member(json, "last_worker", info->worker);
    json_member_time(json, "since", info->since_ms);
    json_member_time(json, "until", info->until_ms);
    json_member_data(json, "reason", info->reason);
}

/* Workers that have answered, also those that have nothing now; null: the question failed. */
static void serving_members(struct json *json, const struct roster *roster, thole_slice queue)
{
    json_key(json, "serving");
    if (!roster->asked) {
        json_null(json);
        return;
    }
    json_array(json);
    for (const struct roster_worker *w = roster->first; w != NULL; w = w->next)
        if (thole_slice_equal(w->queue, queue)) {
            json_object(json);
            json_member(json, "worker", w->worker);
            json_member_number(json, "slots", w->slots);
            json_end(json);
        }
    json_end(json);
}

static void activity_members(struct json *json, const struct roster *roster, const thole_queue_info *info)
{
    json_key(json, "activities");
    json_array(json);
    for (size_t i = 0; i < info->activities_len; i++) {
        json_object(json);
        json_member(json, "name", info->activities[i].activity);
        json_member_number(json, "count", info->activities[i].count);
        json_key(json, "known");
        if (roster->asked)
            json_bool(json, roster_knows(roster, info->queue, info->activities[i].activity));
        else
            json_null(json);
        json_end(json);
    }
    json_end(json);
}

void form_queue(struct json *json, const struct roster *roster, const thole_queue_info *info)
{
    json_member(json, "queue", info->queue);
    json_member_number(json, "waiting", info->waiting);
    json_member_number(json, "running", info->running);
    json_member_number(json, "outside", info->outside);
    json_member_number(json, "poisoned", info->poisoned);
    json_key(json, "limit");
    if (info->limit == 0)
        json_null(json);
    else
        json_number(json, info->limit);
    json_member_number(json, "lease_ms", info->lease_ms);
    json_key(json, "oldest_ms");
    if (info->oldest_ms == 0)
        json_null(json);
    else
        json_number(json, info->oldest_ms);
    json_member_number(json, "delivered", info->delivered);
    json_key(json, "workers");
    json_array(json);
    for (size_t i = 0; i < info->workers_len; i++) {
        json_object(json);
        json_member(json, "worker", info->workers[i].worker);
        json_member_number(json, "activities", info->workers[i].activities);
        json_member_number(json, "silent_ms", info->workers[i].silent_ms);
        json_end(json);
    }
    json_end(json);
    serving_members(json, roster, info->queue);
    activity_members(json, roster, info);
}

/* ---- engines, workers, partitions ---- */

void form_engine(struct json *json, const struct cluster *cluster, const struct cluster_engine *engine)
{
    json_member(json, "node", engine->node);
    json_member_text(json, "role", "engine");
    json_member_number(json, "heartbeat_ms", engine->heartbeat_ms);
    json_member_time(json, "started", engine->started_ms);
    json_member_number(json, "orchestrations", engine->orchestrations_len);
    json_key(json, "partitions");
    json_array(json);
    for (uint32_t p = 0; p < cluster->partitions_len; p++)
        if (cluster->partitions[p].owned && thole_slice_equal(cluster->partitions[p].last, engine->node))
            json_number(json, p);
    json_end(json);
}

void form_worker(struct json *json, const struct roster_worker *worker)
{
    json_member(json, "node", worker->worker);
    json_member_text(json, "role", "worker");
    json_member(json, "queue", worker->queue);
    json_member_number(json, "slots", worker->slots);
    json_key(json, "activities");
    json_array(json);
    for (size_t i = 0; i < worker->activities_len; i++)
        json_string(json, worker->activities[i]);
    json_end(json);
}

void form_partition(struct json *json, uint32_t p, const struct cluster_partition *partition)
{
    json_member_number(json, "partition", p);
    json_key(json, "owner");
    if (partition->owned)
        json_string(json, partition->last);
    else
        json_null(json);
    json_member_number(json, "epoch", partition->epoch);
    if (partition->state != CLUSTER_UNTOLD) {
        json_member_text(json, "state", cluster_states[partition->state]);
        json_member_number(json, "closed_lately", partition->closed_lately);
    }
    if (partition->why.len > 0) {
        json_member(json, "closed_for", partition->cause);
        json_member(json, "closed_why", partition->why);
    }
    if (partition->epoch == 0)
        return;
    json_member(json, "opened_by", partition->last);
    json_member_time(json, "opened", partition->opened_ms);
    if (!partition->lag_known)
        return;
    json_member_number(json, "inbox_lag", partition->inbox_lag);
    json_member_number(json, "projection_lag", partition->projection_lag);
}

void form_defect(struct json *json, const struct cluster_defect *defect)
{
    json_member(json, "object", defect->object);
    json_member(json, "text", defect->text);
    json_member(json, "remedy", defect->remedy);
    json_member_bool(json, "warns", defect->warns);
}

void form_mended(struct json *json, const struct cluster_mended *mended)
{
    json_member(json, "object", mended->object);
    json_member(json, "name", mended->name);
    json_member_time(json, "at", mended->at_ms);
}

void form_room(struct json *json, const struct cluster_room *room)
{
    const struct forecast *const forecast = &room->forecast;
    uint64_t const days = forecast_days(forecast);
    json_member(json, "what", room->what);
    if (room->streams > 0) {
        json_member_number(json, "streams", room->streams);
        json_member_number(json, "messages", room->messages);
    }
    json_member_number(json, "bytes", forecast->bytes);
    if (forecast->bytes_max > 0)
        json_member_number(json, "bytes_max", forecast->bytes_max);
    json_member_number(json, "span_ms", forecast_span_ms(forecast));
    if (forecast_is_known(forecast))
        json_member_number(json, "bytes_per_day", forecast_per_day(forecast));
    if (days != FORECAST_NEVER)
        json_member_number(json, "days_left", days);
}

/* ---- rejected messages ---- */

void form_rejected(struct json *json, const thole_rejected_info *info)
{
    json_member_number(json, "number", info->number);
    json_member(json, "code", info->code);
    json_member(json, "reason", info->reason);
    json_member(json, "subject", info->subject);
    json_member_number(json, "partition", info->partition);
    json_member_number(json, "sequence", info->sequence);
    json_member_time(json, "time", info->stored_ms);
    json_member_number(json, "bytes", info->bytes);
    json_member_data(json, "payload", info->payload);
}

/* ---- rows that are set aside ---- */

struct setting_aside {
    struct json *json;
    bool begun;
};

static thole_status put_set_aside(void *arg, const thole_set_aside_info *info)
{
    struct setting_aside *const to = arg;
    struct json *const json = to->json;
    if (!to->begun) {
        json_key(json, "set_aside");
        json_array(json);
    }
    to->begun = true;
    json_object(json);
    json_member(json, "table", info->table);
    if (info->execution > 0)
        json_member_number(json, "execution", info->execution);
    if (info->id > 0)
        json_member_number(json, "id", info->id);
    json_member_bool(json, "removal", info->removal);
    if (info->column.len > 0)
        json_member(json, "column", info->column);
    if (info->code.len > 0)
        json_member(json, "code", info->code);
    json_member(json, "reason", info->reason);
    json_member_time(json, "since", info->since_ms);
    json_end(json);
    return THOLE_OK;
}

void form_set_aside(struct json *json, thole_client *client, thole_slice instance)
{
    struct setting_aside to = {.json = json};
    /* tables of before have none */
    thole_status const status = thole_client_set_aside(client, instance, put_set_aside, &to, NULL);
    (void)status;
    if (to.begun)
        json_end(json);
}

/* ---- instances that do not go on ---- */

bool status_stands(thole_instance_status status)
{
    return status == THOLE_INSTANCE_WAITING || status == THOLE_INSTANCE_STUCK ||
           status == THOLE_INSTANCE_PAUSED;
}

static thole_status put_hindrance(void *arg, const thole_hindrance *hindrance)
{
    struct json *const json = arg;
    json_object(json);
    json_member_text(json, "kind", hindrance->kind);
    json_member(json, "text", hindrance->text);
    json_member(json, "remedy", hindrance->remedy);
    json_end(json);
    return THOLE_OK;
}

thole_status form_hindrances(struct json *json, thole_client *client, thole_slice instance,
                             thole_error *reterr)
{
    json_key(json, "hindrances");
    json_array(json);
    thole_status const status = thole_client_explain(client, instance, put_hindrance, json, reterr);
    json_end(json);
    return status;
}
