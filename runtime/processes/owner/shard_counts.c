/* Counters of a shard's thread. Names of instances never become labels. */
#include "nats_watch.h"
#include "remover.h"
#include "shard_parts.h"
#include <assert.h>

enum {
    STUCK_MS = 60000,     /* beyond the time that a turn may take */
    COUNT_EVERY_MS = 100, /* the gauges of the partitions */
    NANOS_IN_MICRO = 1000,
    MICROS_IN_MILLI = 1000,
};

static_assert((int)PARTITIONS_CLOSED == (int)PARTITION_CLOSED &&
                  (int)PARTITIONS_OPENING == (int)PARTITION_OPENING &&
                  (int)PARTITIONS_OPEN == (int)PARTITION_OPEN &&
                  (int)PARTITIONS_CLOSING == (int)PARTITION_CLOSING,
              "partitions are counted by their state");

void shard_count_start(struct shard *shard)
{
    const struct host_options *const options = &shard->engine->options;
    /* without a limit a turn is never too long */
    uint64_t const limit_ms = options->turn_limit_ms == 0 ? 0 : options->turn_limit_ms + STUCK_MS;
    shard->cells = metrics_cells(options->metrics);
    shard->pulse = metrics_pulse(options->metrics, "shard", limit_ms);
    shard_count_link(shard, false, false);
    shard_count_store(shard, false);
}

/* ---- connections ---- */

/* The connections of a process are counted as one, by the first shard. */
void shard_count_link(struct shard *shard, bool was_up, bool up)
{
    if (shard->index != 0)
        return;
    if (was_up && !up)
        metric_add(shard->cells, METRIC_NATS_DISCONNECTS, 0, 1);
    metric_set(shard->cells, METRIC_NATS_CONNECTIONS, CONNECTIONS_UP, up);
    metric_set(shard->cells, METRIC_NATS_CONNECTIONS, CONNECTIONS_DOWN, !up);
}

void shard_count_store(struct shard *shard, bool up)
{
    metric_set(shard->cells, METRIC_POSTGRES_CONNECTIONS, CONNECTIONS_UP, up);
    metric_set(shard->cells, METRIC_POSTGRES_CONNECTIONS, CONNECTIONS_DOWN, !up);
}

/* ---- requests ---- */

static void count_failure(struct shard *shard, const struct request *request)
{
    metric_add(shard->cells, METRIC_ENGINE_REQUEST_FAILURES, request->kind, 1);
    switch (request_rule(request)->executor) {
    case EXECUTOR_WINDOW:
        metric_add(shard->cells, METRIC_NATS_ERRORS,
                   nats_error_class(request->reply.result, request->reply.err_code), 1);
        break;
    case EXECUTOR_LOADER:
    case EXECUTOR_CLEANER:
    case EXECUTOR_REMOVER:
        metric_add(shard->cells, METRIC_NATS_ERRORS, metric_error_class(request->status), 1);
        break;
    case EXECUTOR_STORE:
        metric_add(shard->cells, METRIC_POSTGRES_ERRORS, metric_error_class(request->status), 1);
        break;
    }
}

static void count_duration(struct shard *shard, size_t which, const struct request *request)
{
    metric_observe(shard->cells, METRIC_ENGINE_REQUEST_DURATION, which,
                   clock_monotonic_us() - request->begun_us);
}

/* Measures the requests that each activity waits for, also without metrics. */
static void hear_wait(const struct request *request)
{
    bool const waited_for = request->kind == REQ_APPEND || request->kind == REQ_PUBLISH_WORK;
    if (waited_for && request->status == THOLE_OK && request->begun_us != 0)
        remover_hear_wait(request->shard->engine->remover, clock_monotonic_us() - request->begun_us);
}

void shard_count_request(const struct request *request)
{
    struct shard *const shard = request->shard;
    hear_wait(request);
    if (shard->cells == NULL || request->begun_us == 0)
        return;
    metric_add(shard->cells, METRIC_ENGINE_REQUESTS, request->kind, 1);
    if (request->status != THOLE_OK)
        count_failure(shard, request);
    else if (request->kind == REQ_APPEND)
        count_duration(shard, DURATION_APPEND, request);
    else if (request->kind == REQ_PUBLISH_WORK)
        count_duration(shard, DURATION_PUBLISH_WORK, request);
    else if (request->kind == REQ_SEND_MESSAGE)
        count_duration(shard, DURATION_SEND_MESSAGE, request);
    else if (request->kind == REQ_LOAD)
        count_duration(shard, DURATION_LOAD, request);
    else if (request->kind == REQ_STORE_APPLY)
        count_duration(shard, DURATION_APPLY, request);
}

void shard_count_refused(struct shard *shard, uint64_t rows)
{
    metric_add(shard->cells, METRIC_ENGINE_REFUSED, 0, rows);
}

/* ---- messages ---- */

/* The clocks of two machines: a message from the future has come at once. */
static uint64_t since_us(uint64_t then_us)
{
    uint64_t const now_us = clock_wall_us();
    return now_us > then_us ? now_us - then_us : 0;
}

void shard_count_message(struct shard *shard, uint64_t stored_ns)
{
    if (shard->cells == NULL)
        return;
    metric_add(shard->cells, METRIC_ENGINE_INBOX_MESSAGES, 0, 1);
    metric_observe(shard->cells, METRIC_ENGINE_INBOX_DELAY, 0, since_us(stored_ns / NANOS_IN_MICRO));
}

void shard_count_push(struct shard *shard, const struct cancel_notice *notice)
{
    if (shard->cells == NULL || notice->repeats)
        return;
    metric_add(shard->cells, METRIC_ENGINE_CANCEL_PUSHES, 0, notice->activity_ids_len);
    metric_observe(shard->cells, METRIC_ENGINE_CANCEL_PUSH_DELAY, 0,
                   since_us(notice->decided_ms * MICROS_IN_MILLI));
}

/* ---- partitions ---- */

void shard_count_opened(struct shard *shard, struct owned *owned)
{
    owned->cause = CLOSED_OTHER;
    metric_add(shard->cells, METRIC_ENGINE_OPENED, 0, 1);
    metric_add(shard->cells, METRIC_ENGINE_LOST_RECORDS, 0, owned->lacks);
    owned->lacks = 0;
}

void shard_count_closed(struct shard *shard, struct owned *owned, bool reopen)
{
    metric_add(shard->cells, METRIC_ENGINE_CLOSED, reopen ? owned->cause : CLOSED_HANDED_OVER, 1);
    owned->cause = CLOSED_OTHER;
}

struct sums {
    uint64_t states[PARTITIONS_CLOSING + 1];
    uint64_t wanted, waiting, waiting_bytes, oldest_ms, set_aside, shelved;
    struct partition_facts facts;
};

static void add_partition(struct sums *to, const struct owned *owned)
{
    enum partition_state const state = partition_state(owned->machine);
    struct partition_facts const facts = partition_facts(owned->machine);
    if (owned->wanted || state != PARTITION_CLOSED)
        to->states[state]++;
    to->wanted += owned->wanted;
    if (state != PARTITION_CLOSED)
        to->set_aside += owned->set_aside;
    to->shelved += owned->shelf.rows;
    to->facts.turns += facts.turns;
    to->facts.unprojected += facts.unprojected;
    to->facts.emissions += facts.emissions;
    to->facts.open_activities += facts.open_activities;
    to->facts.appends += facts.appends;
    to->facts.append_bytes += facts.append_bytes;
    to->facts.instances += facts.instances;
    to->facts.parked += facts.parked;
    to->facts.early += facts.early;
    to->facts.early_bytes += facts.early_bytes;
    if (owned->sweeps.waiting_ms > to->oldest_ms)
        to->oldest_ms = owned->sweeps.waiting_ms;
    to->waiting += partition_pending(owned->machine) + owned->inbox.messages;
    to->waiting_bytes += partition_pending_bytes(owned->machine) + owned->inbox.bytes;
}

static void set_sums(struct metric_cells *cells, const struct sums *sums)
{
    for (size_t state = 0; state <= PARTITIONS_CLOSING; state++)
        metric_set(cells, METRIC_ENGINE_PARTITIONS, state, sums->states[state]);
    metric_set(cells, METRIC_ENGINE_PARTITIONS_WANTED, 0, sums->wanted);
    metric_set(cells, METRIC_ENGINE_TURNS, 0, sums->facts.turns);
    metric_set(cells, METRIC_ENGINE_UNPROJECTED, 0, sums->facts.unprojected);
    metric_set(cells, METRIC_ENGINE_EVENTS_WAITING, 0, sums->facts.emissions);
    metric_set(cells, METRIC_ENGINE_OPEN_ACTIVITIES, 0, sums->facts.open_activities);
    metric_set(cells, METRIC_ENGINE_OLDEST_WAITING, 0, sums->oldest_ms);
    metric_set(cells, METRIC_ENGINE_APPENDS_IN_FLIGHT, 0, sums->facts.appends);
    metric_set(cells, METRIC_ENGINE_APPENDS_IN_FLIGHT_BYTES, 0, sums->facts.append_bytes);
    metric_set(cells, METRIC_ENGINE_INSTANCES, 0, sums->facts.instances);
    metric_set(cells, METRIC_ENGINE_PARKED, 0, sums->facts.parked);
    metric_set(cells, METRIC_ENGINE_EARLY, 0, sums->facts.early);
    metric_set(cells, METRIC_ENGINE_EARLY_BYTES, 0, sums->facts.early_bytes);
    metric_set(cells, METRIC_ENGINE_SET_ASIDE, 0, sums->set_aside);
    metric_set(cells, METRIC_ENGINE_SHELVED, 0, sums->shelved);
    metric_set(cells, METRIC_ENGINE_INBOX_WAITING, 0, sums->waiting);
    metric_set(cells, METRIC_ENGINE_INBOX_WAITING_BYTES, 0, sums->waiting_bytes);
}

uint64_t shard_count_partitions(struct shard *shard, uint64_t now_ms)
{
    struct sums sums = {.wanted = 0};
    if (shard->cells == NULL || !shard->uncounted)
        return UINT64_MAX;
    if (now_ms < shard->counted_ms + COUNT_EVERY_MS)
        return shard->counted_ms + COUNT_EVERY_MS;
    for (size_t i = 0; i < shard->owned_len; i++)
        add_partition(&sums, &shard->owned[i]);
    set_sums(shard->cells, &sums);
    for (size_t line = 0; shard->index == 0 && line < ENGINE_LINES; line++)
        metric_set(shard->cells, METRIC_ENGINE_EVENTS, line, log_limits_total(shard->engine->lines, line));
    shard->counted_ms = now_ms;
    shard->uncounted = false;
    return UINT64_MAX;
}
