/* The state of the process by its metrics: whether it moves, and whether it does its work. */
#include "metrics_state.h"
#include <inttypes.h>
#include <stdio.h>

/* How long the loop has been busy; a clock that was read a little earlier is no reason for a large number. */
static uint64_t busy_ms(struct pulse *pulse, uint64_t now_ms)
{
    uint64_t const since_ms = atomic_load_explicit(&pulse->since_ms, memory_order_relaxed);
    return since_ms == 0 || since_ms > now_ms ? 0 : now_ms - since_ms;
}

uint64_t metrics_busy_ms(const struct metrics *metrics, uint64_t now_ms)
{
    uint64_t most_ms = 0;
    for (struct pulse *pulse = atomic_load(&metrics->pulses); pulse != NULL; pulse = pulse->next) {
        uint64_t const ms = busy_ms(pulse, now_ms);
        most_ms = ms > most_ms ? ms : most_ms;
    }
    return most_ms;
}

bool metrics_live(const struct metrics *metrics, uint64_t now_ms, struct buf *to)
{
    bool live = true;
    for (struct pulse *pulse = atomic_load(&metrics->pulses); pulse != NULL; pulse = pulse->next) {
        uint64_t const ms = busy_ms(pulse, now_ms);
        if (pulse->limit_ms == 0 || ms <= pulse->limit_ms)
            continue;
        live = false;
        buf_printf(to, "loop %s is stuck: busy for %" PRIu64 " ms, its limit is %" PRIu64 " ms\n",
                   pulse->name, ms, pulse->limit_ms);
    }
    if (live)
        buf_text(to, "ok\n");
    return live;
}

static bool metrics_health_condition(struct buf *to, bool holds, const char *what, const char *otherwise)
{
    buf_printf(to, "%s: %s\n", what, holds ? "ok" : otherwise);
    return holds;
}

/* All are up, and there is one. */
static bool metrics_health_connected(const struct metrics *metrics, enum metric metric)
{
    return metrics_value(metrics, metric, CONNECTIONS_UP) > 0 &&
           metrics_value(metrics, metric, CONNECTIONS_DOWN) == 0;
}

/* Whether the partitions that the engine should own are open. */
static bool partitions_ready(const struct metrics *metrics, struct buf *to)
{
    uint64_t const wanted = metrics_value(metrics, METRIC_ENGINE_PARTITIONS_WANTED, 0);
    uint64_t const open = metrics_value(metrics, METRIC_ENGINE_PARTITIONS, PARTITIONS_OPEN);
    char text[96];
    (void)snprintf(text, sizeof text, "%" PRIu64 " of %" PRIu64 " are open", open, wanted);
    bool const joined = metrics_health_condition(to, metrics_value(metrics, METRIC_ENGINE_JOINED, 0) == 1,
                                                 "membership", "not joined, or its heartbeat is not stored");
    /* One that has not stored its heartbeat for long owns none any more. */
    return metrics_health_condition(to, joined && open >= wanted, "partitions", text);
}

bool metrics_ready(const struct metrics *metrics, struct buf *to)
{
    static char const waits[] = "starting, or asked to stop";
    bool const engine = (metrics->options.roles & METRIC_ENGINE) != 0;
    bool const worker = (metrics->options.roles & METRIC_WORKER) != 0;
    bool const binder = (metrics->options.roles & METRIC_BINDER) != 0;
    bool const gateway = (metrics->options.roles & METRIC_GATEWAY) != 0;
    bool ready = true;
    if (gateway)
        ready &= metrics_health_condition(to, metrics_value(metrics, METRIC_SERVING, SERVING_GATEWAY) == 1,
                                          "gateway", waits);
    if (engine)
        ready &= metrics_health_condition(to, metrics_value(metrics, METRIC_SERVING, SERVING_ENGINE) == 1,
                                          "engine", waits);
    if (worker)
        ready &= metrics_health_condition(to, metrics_value(metrics, METRIC_SERVING, SERVING_WORKER) == 1,
                                          "worker", waits);
    if (binder)
        ready &= metrics_health_condition(to, metrics_value(metrics, METRIC_SERVING, SERVING_BINDER) == 1,
                                          "binder", waits);
    ready &= metrics_health_condition(to, metrics_health_connected(metrics, METRIC_NATS_CONNECTIONS), "NATS",
                                      "not connected");
    if (gateway) /* without a session it has none */
        ready &= metrics_health_condition(
            to, metrics_value(metrics, METRIC_POSTGRES_CONNECTIONS, CONNECTIONS_DOWN) == 0, "Postgres",
            "not connected");
    else if (engine || worker)
        ready &= metrics_health_condition(to, metrics_health_connected(metrics, METRIC_POSTGRES_CONNECTIONS),
                                          "Postgres", "not connected");
    if (engine)
        ready &= partitions_ready(metrics, to);
    if (worker)
        ready &= metrics_health_condition(to, metrics_value(metrics, METRIC_WORKER_QUEUE_OK, 0) > 0, "queue",
                                          "gives no work; the log says why");
    return ready;
}
