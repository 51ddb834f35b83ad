/* Which faults happen to whom, and when; and how they stop. */
#include "engine_node.h"
#include "log_fake.h"
#include "net_fake.h"
#include "store_fake.h"
#include "work_fake.h"
#include "worker_node.h"

static struct engine *any_engine(struct world *w)
{
    return w->engines[rnd(w, w->engines_len)];
}

static struct worker *any_worker(struct world *w)
{
    return w->workers[rnd(w, w->workers_len)];
}

static uint64_t pause_ms(struct world *w)
{
    return rnd(w, 3) == 0 ? between(w, 3000, 12000) : between(w, 5, 2000);
}

static void strike_engine(struct world *w, enum fault fault)
{
    struct engine *engine = any_engine(w);
    switch (fault) {
    case FAULT_ENGINE_CRASH: engine_crash(w, engine, between(w, 20, 5000)); break;
    case FAULT_ENGINE_PAUSE:
        trace(w, "%s: pauses", engine_node(engine)->name);
        node_pause(w, engine_node(engine), pause_ms(w));
        break;
    case FAULT_ENGINE_NATS: engine_loses_link(w, engine, SERVER_NATS); break;
    case FAULT_ENGINE_STORE: engine_loses_link(w, engine, SERVER_STORE); break;
    case FAULT_RIVAL: {
        bool const wants = rnd(w, 3) != 0;
        engine_wants(w, engine, (uint32_t)rnd(w, w->partitions), wants);
        break;
    }
    case FAULT_CLOCK_JUMP:
        engine_node(engine)->clock_ms = (int64_t)rnd(w, 8000) - 4000;
        trace(w, "%s: its clock is off by %" PRId64 " ms", engine_node(engine)->name,
              engine_node(engine)->clock_ms);
        break;
    default: break;
    }
}

static void strike_worker(struct world *w, enum fault fault)
{
    struct worker *worker = any_worker(w);
    switch (fault) {
    case FAULT_WORKER_CRASH:
        if (rnd(w, 3) == 0)
            worker_node_stop(w, worker);
        else
            worker_node_crash(w, worker, between(w, 20, 5000));
        break;
    case FAULT_WORKER_PAUSE:
        trace(w, "%s: pauses", worker_node(worker)->name);
        node_pause(w, worker_node(worker), pause_ms(w));
        break;
    case FAULT_WORKER_NATS: worker_node_loses_link(w, worker, SERVER_NATS); break;
    case FAULT_WORKER_STORE: worker_node_loses_link(w, worker, SERVER_STORE); break;
    default: break;
    }
}

static void nats_goes_down(struct world *w)
{
    trace(w, "nats goes down");
    w->nats_down_until_ms = w->now_ms + between(w, 20, 4000);
    work_forgets(w);
    for (size_t i = 0; i < w->engines_len; i++)
        engine_loses_link(w, w->engines[i], SERVER_NATS);
    for (size_t i = 0; i < w->workers_len; i++)
        worker_node_loses_link(w, w->workers[i], SERVER_NATS);
}

static void inbox_back(struct world *w)
{
    struct inbox_stream *inbox = w->inboxes[rnd(w, w->partitions)];
    if (inbox_loses(w, inbox) && rnd(w, 3) != 0) /* a server that lost power */
        nats_goes_down(w);
}

static void strike(struct world *w, enum fault fault)
{
    switch (fault) {
    case FAULT_ENGINE_CRASH:
    case FAULT_ENGINE_PAUSE:
    case FAULT_ENGINE_NATS:
    case FAULT_ENGINE_STORE:
    case FAULT_RIVAL:
    case FAULT_CLOCK_JUMP: strike_engine(w, fault); break;
    case FAULT_WORKER_CRASH:
    case FAULT_WORKER_PAUSE:
    case FAULT_WORKER_NATS:
    case FAULT_WORKER_STORE: strike_worker(w, fault); break;
    case FAULT_STORE_CRASH: store_crashes(w); break;
    case FAULT_STORE_OUTAGE: store_goes_down(w, between(w, 20, 6000)); break;
    case FAULT_NATS_OUTAGE: nats_goes_down(w); break;
    case FAULT_INBOX_BACK: inbox_back(w); break;
    case FAULT_DAMAGE: (void)log_damage(w, w->logs[rnd(w, w->partitions)]); break;
    case FAULT_SLOW: w->slow_until_ms = w->now_ms + between(w, 100, 3000); break;
    case FAULT_CRASH_POINT:
    case FAULT_REQUEST_LOST:
    case FAULT_REQUEST_LATE:
    case FAULT_ANSWER_LOST:
    case FAULT_PUBLISH_TWICE:
    case FAULT_CORE_LOSS:
    case FAULT_STORE_AHEAD:
    case FAULT_STATEMENT:
    case FAULT_TAIL_RACE:
    case FAULT_REDELIVERED:
    case FAULTS_LEN: break; /* they strike where they happen */
    }
}

static void task_strike(struct world *w, void *arg, uint64_t value)
{
    enum fault const fault = (enum fault)rnd(w, FAULTS_LEN);
    (void)arg, (void)value;
    if (!w->faults)
        return;
    if (strikes(w, fault, 1000))
        strike(w, fault);
    after(w, between(w, 1, 1600 / w->wildness), task_strike, NULL, 0);
}

void faults_begin(struct world *w)
{
    for (uint32_t p = 0; p < w->partitions; p++)
        engine_wants(w, any_engine(w), p, true);
    if (w->enabled >> FAULT_CLOCK_JUMP & 1)
        for (size_t i = 0; i < w->engines_len; i++)
            engine_node(w->engines[i])->clock_ms = (int64_t)rnd(w, 2000) - 1000;
    after(w, between(w, 1, 500), task_strike, NULL, 0);
}

/* One owner for each partition, everybody is up and knows everything. Clocks stay wrong. */
void faults_end(struct world *w)
{
    w->slow_until_ms = 0;
    for (size_t i = 0; i < w->engines_len; i++) {
        if (!engine_knows_all(w->engines[i]) || w->crashes)
            engine_crash(w, w->engines[i], between(w, 10, 500)); /* the rest of a rolling deployment */
        engine_learns(w, w->engines[i]);
    }
    for (size_t i = 0; i < w->workers_len; i++)
        worker_node_learns(w->workers[i]);
    for (uint32_t p = 0; p < w->partitions; p++) {
        size_t const owner = (size_t)rnd(w, w->engines_len);
        for (size_t i = 0; i < w->engines_len; i++)
            engine_wants(w, w->engines[i], p, i == owner);
    }
}
