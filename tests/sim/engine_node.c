#include "checks.h"
#include "clock_fake.h"
#include "coro.h"
#include "crash_fake.h"
#include "engine_request.h"
#include "nonces.h"
#include "orchestrations.h"
#include "restores.h"
#include "work_fake.h"
#include "worker_node.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    SIM_KEEP_MS = 1500,
    ROUND_MS = 2 * LEASE_MS,
    OTHERS_COME_MS = 4096 /* engines of another version come, or go */
};

static void seat_open(struct world *w, struct seat *seat);

/* ---- inputs ----------------------------------------------------------------------------------------------
 */

void seat_input(struct world *w, struct seat *seat, const struct partition_in *in)
{
    struct engine *engine = seat->engine;
    if (seat->machine == NULL || engine->dying)
        return;
    if (partition_input(seat->machine, in, seat_now_ms(w, seat)) != THOLE_OK)
        broken(w, "%s: out of memory", engine->node.name);
    partition_check(seat->machine);
    seat_drive_soon(w, seat);
}

/* Asks a question of the seat's machine. */
static void ask(struct world *w, struct seat *seat)
{
    size_t const i = (size_t)rnd(w, w->instances_len);
    if (instance_partition(w, i) != seat->partition)
        return;
    seat_input(w, seat,
               &(struct partition_in){.kind = PARTITION_IN_QUERY,
                                      .token = i + 1,
                                      .query = {w->instances[i],
                                                rnd(w, 8) == 0 ? THOLE_STR("why") : THOLE_STR("where"),
                                                THOLE_STR("now")}});
}

/* ---- the inbox -------------------------------------------------------------------------------------------
 */

static void task_deliver(struct world *w, void *arg, uint64_t life);

static bool reader_lives(const struct world *w, const struct seat *seat)
{
    const struct link *link = &seat->engine->node.links[SERVER_NATS];
    return seat->reader.active && link->up && seat->reader.link_life == link->life &&
           seat->reader.inbox_life == w->inboxes[seat->partition]->life;
}

static void deliver_soon(struct world *w, struct seat *seat)
{
    if (seat->deliver_due || !reader_lives(w, seat) || server_down(w, SERVER_NATS) ||
        inbox_next(w->inboxes[seat->partition], seat->reader.next) == NULL)
        return;
    seat->deliver_due = true;
    after(w, net_latency_ms(w), task_deliver, seat, seat->engine->node.life);
}

/* All its parts at once, as the reader gives them. */
static void give_message(struct world *w, struct seat *seat, const struct inbox_entry *entry)
{
    bool const first_only = w->mutation == MUTATION_LIST_FIRST && entry->parts > 0;
    for (const struct inbox_entry *part = entry; part != NULL; part = first_only ? NULL : part->more) {
        struct partition_in in = {.kind = PARTITION_IN_MESSAGE,
                                  .generation = seat->reader.generation,
                                  .message = {.sequence = part->sequence,
                                              .stored_ns = part->stored_ns,
                                              .part = part->part,
                                              .parts = first_only ? 1 : part->parts,
                                              .refused = part->refused,
                                              .bytes = part->bytes}};
        if (part->refused == REJECT_NONE || part->parts > 0)
            in.message.instance = w->instances[part->instance], in.message.route = part->route;
        if (part->refused != REJECT_NONE)
            in.message.subject = THOLE_STR("thole.sim.in.0.%zz");
        seat_input(w, seat, &in);
    }
}

static void task_deliver(struct world *w, void *arg, uint64_t life)
{
    struct seat *seat = arg;
    if (!node_runs(w, &seat->engine->node, life, task_deliver, arg))
        return;
    seat->deliver_due = false;
    if (rnd(w, 30) == 0)
        ask(w, seat);
    for (uint64_t left = between(w, 1, 6); left > 0; left--) {
        const struct inbox_entry *entry = inbox_next(w->inboxes[seat->partition], seat->reader.next);
        if (!reader_lives(w, seat) || seat->machine == NULL || entry == NULL ||
            partition_room(seat->machine) == 0)
            return;
        seat->reader.next = entry->sequence + 1;
        if (w->mutation == MUTATION_INBOX_SKIPS && rnd(w, 10) == 0)
            continue;
        give_message(w, seat, entry);
    }
    deliver_soon(w, seat);
}

/* A reader finds out some time that nothing more will come. */
static void task_reader_lost(struct world *w, void *arg, uint64_t life)
{
    struct seat *seat = arg;
    if (!node_runs(w, &seat->engine->node, life, task_reader_lost, arg) || !seat->reader.active ||
        reader_lives(w, seat))
        return;
    struct partition_in const in = {.kind = PARTITION_IN_STEP_DOWN,
                                    .generation = seat->reader.generation,
                                    .step_down.text = "the inbox reader lost its consumer"};
    seat->reader.active = false;
    seat_input(w, seat, &in);
}

static void reader_lost_soon(struct world *w, struct seat *seat)
{
    after(w, between(w, 1, 5000), task_reader_lost, seat, seat->engine->node.life);
}

void seat_reads(struct world *w, struct seat *seat, const struct engine_request *r)
{
    if (r->out.generation != partition_generation(seat->machine))
        return;
    seat->reader.active = true;
    seat->reader.generation = r->out.generation;
    seat->reader.next = r->out.read_inbox.from + (w->mutation == MUTATION_POSITION_AHEAD);
    seat->reader.inbox_life = r->inbox_life;
    seat->reader.link_life = r->request.link_life;
    if (reader_lives(w, seat))
        deliver_soon(w, seat);
    else
        reader_lost_soon(w, seat);
}

void engines_inbox_went_back(struct world *w, uint32_t partition)
{
    for (size_t i = 0; i < w->engines_len; i++)
        if (w->engines[i]->seats[partition].reader.active)
            reader_lost_soon(w, &w->engines[i]->seats[partition]);
}

void engines_inbox_stirs(struct world *w, uint32_t partition)
{
    for (size_t i = 0; i < w->engines_len; i++)
        deliver_soon(w, &w->engines[i]->seats[partition]);
}

/* ---- outputs ---------------------------------------------------------------------------------------------
 */

static void task_open(struct world *w, void *arg, uint64_t life)
{
    struct seat *seat = arg;
    if (!node_runs(w, &seat->engine->node, life, task_open, arg))
        return;
    seat->open_due = false;
    seat_open(w, seat);
}

void seat_open_soon(struct world *w, struct seat *seat, uint64_t delay_ms)
{
    if (seat->open_due || !seat->wanted || !seat->engine->node.alive)
        return;
    seat->open_due = true;
    after(w, delay_ms, task_open, seat, seat->engine->node.life);
}

static void on_closed(struct world *w, struct seat *seat, const struct out_closed *closed)
{
    trace(w, "%s: partition %u closed: %s", seat->engine->node.name, seat->partition, closed->text);
    seat->reader.active = false;
    seat_open_soon(w, seat, between(w, 1, 800)); /* the pause is short: the more attempts, the better */
}

static void note_inbox(const struct world *w, struct seat *seat)
{
    const struct inbox_stream *inbox = w->inboxes[seat->partition];
    seat->opened_last = inbox->len;
    seat->opened_inbox_life = inbox->life;
}

/* An incorporated message has had its effect: it may have come too late to change anything. */
static bool waits(const struct world *w, const struct seat *seat, uint64_t sequence)
{
    const struct model_partition *mp = &w->model->partitions[seat->partition];
    return mp->stale ? sequence > mp->incorporated : !model_incorporated(&mp->position, sequence);
}

static bool result_waits(const struct world *w, const struct seat *seat, const struct batch_activity *row)
{
    const struct inbox_stream *inbox = w->inboxes[seat->partition];
    size_t const instance = instance_index(w, row->instance);
    for (uint64_t s = inbox->first; s <= seat->opened_last && s <= inbox->len; s++)
        if (waits(w, seat, s) && inbox_result(&inbox->entries[s - 1], instance, row->execution,
                                              row->activity_id, row->try_number) != NULL)
            return true;
    return false;
}

/* Nobody is made to do again what was done, and said so, before the partition was opened. */
static void check_results_are_heard(struct world *w, const struct seat *seat, const struct batch *batch)
{
    if (partition_state(seat->machine) != PARTITION_OPENING ||
        seat->opened_inbox_life != w->inboxes[seat->partition]->life)
        return;
    for (size_t i = 0; i < batch->activities_added_len; i++) {
        const struct batch_activity *row = &batch->activities_added[i];
        if (!model_damaged(w, row->instance) && result_waits(w, seat, row))
            broken(w, "%s projects %.*s#%" PRIu64 " again, although its result waits in the inbox",
                   seat->engine->node.name, THOLE_FMT(row->instance), row->activity_id);
    }
}

static void on_output(struct world *w, struct seat *seat, const struct partition_out *out)
{
    struct engine *engine = seat->engine;
    const char *who = engine->node.name;
    switch (out->kind) {
    case PARTITION_OUT_CLOSED: on_closed(w, seat, &out->closed); return;
    case PARTITION_OUT_OPENED:
        w->stats.opens++;
        trace(w, "%s: partition %u open, epoch %" PRIu64, who, seat->partition, out->opened.epoch);
        return;
    case PARTITION_OUT_PUSH_CANCEL:
        checks_push(w, &out->push_cancel, rows_as_answered(w, seat), who);
        if (engine->node.links[SERVER_NATS].up && !server_down(w, SERVER_NATS))
            workers_pushed(w, &out->push_cancel);
        return;
    case PARTITION_OUT_NOTICE: checks_notice(w, &out->notice, who); return;
    case PARTITION_OUT_REJECT:
        trace(w, "%s: inbox message %" PRIu64 " rejected: %s", who, out->reject.sequence, out->reject.text);
        break;
    case PARTITION_OUT_APPEND:
        checks_append(w, &out->append, seat->read, who);
        if (out->append.kind == RECORD_TURN && strikes(w, FAULT_RIVAL, w->rivalry))
            engines_rival(w, engine, seat->partition);
        break;
    case PARTITION_OUT_READ_TAIL: note_inbox(w, seat); break;
    case PARTITION_OUT_APPLY:
        checks_batch(w, out->apply.batch, who);
        check_results_are_heard(w, seat, out->apply.batch);
        break;
    case PARTITION_OUT_PUBLISH_WORK: checks_work(w, &out->publish_work, who); break;
    case PARTITION_OUT_SEND:
        checks_send(w, seat->partition, partition_epoch(seat->machine), &out->send, who);
        break;
    case PARTITION_OUT_EMIT:
        checks_emit(w, seat->partition, partition_epoch(seat->machine), &out->emit, who);
        break;
    case PARTITION_OUT_LINE: checks_line(w, &out->line, who); return;
    case PARTITION_OUT_STOPPED:
        if (out->stopped.kind == BLOCKED_NOT || out->stopped.kind == BLOCKED_NOT_STARTED)
            broken(w, "%s says that an instance stands still, which does not", who);
        return;
    case PARTITION_OUT_LIMITED:
        if (out->limited.max == 0)
            broken(w, "%s says that an instance meets a limit, which there is not", who);
        return;
    case PARTITION_OUT_QUERY_ANSWER:
        if (out->token == 0 || out->token > w->instances_len)
            broken(w, "%s answers a query that nobody asked", who);
        else
            checks_answer(w, (size_t)out->token - 1, &out->query_answer, who);
        return;
    default: break;
    }
    engine_ask(w, seat, out);
}

static void task_drive(struct world *w, void *arg, uint64_t life);

static void check_seat(struct world *w, const struct seat *seat)
{
    enum partition_state const state = partition_state(seat->machine);
    if (state == PARTITION_OPEN || state == PARTITION_CLOSING)
        checks_writer(w, seat->partition, partition_epoch(seat->machine),
                      partition_committed_n(seat->machine), seat->engine->node.name);
}

static void sleep_until_deadline(struct world *w, struct seat *seat)
{
    uint64_t const deadline_ms = partition_deadline_ms(seat->machine);
    if (deadline_ms == UINT64_MAX)
        return;
    int64_t const due_ms = (int64_t)deadline_ms - seat->engine->node.clock_ms;
    uint64_t const wake_ms = due_ms <= (int64_t)w->now_ms ? w->now_ms + 1 : (uint64_t)due_ms;
    if (seat->wake_ms > w->now_ms && seat->wake_ms <= wake_ms)
        return; /* wakes before that anyway */
    seat->wake_ms = wake_ms;
    at(w, wake_ms, task_drive, seat, seat->engine->node.life);
}

/* Answers a question about the partition's state. */
static void tell_state(struct world *w, const struct seat *seat)
{
    const thole_slice *names;
    size_t const n = partition_live_names(seat->machine, &names);
    told_number(&w->told, "state", partition_state(seat->machine));
    told_number(&w->told, "deadline_ms", partition_deadline_ms(seat->machine));
    told_number(&w->told, "room", partition_room(seat->machine));
    told_number(&w->told, "pending", partition_pending(seat->machine));
    told_number(&w->told, "idle", partition_idle(seat->machine));
    told_number(&w->told, "open_activities", partition_open_activities(seat->machine));
    for (size_t i = 0; i < n; i++)
        told_bytes(&w->told, "live", names[i]);
}

static void task_drive(struct world *w, void *arg, uint64_t life)
{
    struct seat *seat = arg;
    struct partition_out out;
    if (!node_runs(w, &seat->engine->node, life, task_drive, arg))
        return;
    seat->drive_due = false;
    if (seat->machine == NULL || seat->engine->dying)
        return;
    bool const rows = !engine_is_writing(seat->engine);
    seat->rows_wait = partition_flush(seat->machine, seat_now_ms(w, seat), rows);
    partition_check(seat->machine);
    if (seat->engine->dying)
        return;
    check_seat(w, seat);
    while (!is_broken(w) && partition_poll(seat->machine, &out)) {
        told_partition(&w->told, &out);
        if (crash_output(w, seat, &out))
            continue; /* at once: what the network does to other requests it could do to these, too */
        on_output(w, seat, &out);
        if (strikes(w, FAULT_CRASH_POINT, (unsigned)w->wildness)) {
            engine_crash(w, seat->engine, between(w, 50, 5000));
            return;
        }
    }
    seat->read = (struct record_forms){.ranges = (w->seed + w->now_ms / OTHERS_COME_MS) % 4 != 0,
                                       .references = (w->seed + 1 + w->now_ms / OTHERS_COME_MS) % 3 != 0,
                                       .lists = (w->seed / 4 + w->now_ms / OTHERS_COME_MS) % 5 != 0};
    partition_forms_read(seat->machine, seat->read);
    check_seat(w, seat);
    tell_state(w, seat);
    if (partition_state(seat->machine) == PARTITION_CLOSED && !seat->wanted && rnd(w, 2) == 0) {
        partition_destroy(seat->machine);
        seat->machine = NULL;
        seat->machine_life++;
        return;
    }
    seat_check_goes_on(w, seat);
    sleep_until_deadline(w, seat);
    if (partition_room(seat->machine) > 0)
        deliver_soon(w, seat);
}

void seat_drive_soon(struct world *w, struct seat *seat)
{
    if (seat->drive_due)
        return;
    seat->drive_due = true;
    after(w, rnd(w, 4) == 0 ? between(w, 1, 3) : 0, task_drive, seat, seat->engine->node.life);
}

/* ---- ownership -------------------------------------------------------------------------------------------
 */

static void seat_open(struct world *w, struct seat *seat)
{
    if (!seat->wanted || clock_keeps_closed(w, seat->engine))
        return;
    if (seat->machine == NULL) {
        struct partition_options options = seat->engine->options;
        options.partition = seat->partition;
        seat->world = w;
        seat->watch = crash_watch(seat);
        options.watch = w->crashes ? &seat->watch : NULL;
        options.orchestrations_len = seat->engine->knows_late ? ORCHESTRATIONS_LEN : ORCHESTRATIONS_EARLY;
        if (seat->engine->knows_late)
            options.instance_memory_max = (size_t)16 << 20;
        seat->machine = partition_create(&options);
        seat->read = (struct record_forms){.ranges = false};
        seat->machine_life++;
        if (seat->machine == NULL)
            broken(w, "out of memory");
    }
    if (is_broken(w) || partition_state(seat->machine) != PARTITION_CLOSED)
        return;
    trace(w, "%s: opens partition %u", seat->engine->node.name, seat->partition);
    seat_input(w, seat, &(struct partition_in){.kind = PARTITION_IN_OPEN});
}

void engine_wants(struct world *w, struct engine *engine, uint32_t partition, bool wants)
{
    struct seat *seat = &engine->seats[partition];
    seat->wanted = wants;
    if (!engine->node.alive)
        return;
    if (wants)
        seat_open_soon(w, seat, rnd(w, 20));
    else if (seat->machine != NULL && partition_state(seat->machine) != PARTITION_CLOSED) {
        trace(w, "%s: hands partition %u over", engine->node.name, partition);
        seat_input(w, seat, &(struct partition_in){.kind = PARTITION_IN_CLOSE});
    }
}

static void task_round(struct world *w, void *arg, uint64_t life);
static void task_expire(struct world *w, void *arg, uint64_t life);

void engines_rival(struct world *w, const struct engine *by, uint32_t partition)
{
    struct engine *rival = w->engines[rnd(w, w->engines_len)];
    if (rival == by || !rival->node.alive)
        return;
    rival->seats[partition].wanted = true;
    seat_open_soon(w, &rival->seats[partition], rnd(w, 12));
}

static void drop_machines(struct engine *engine)
{
    for (uint32_t p = 0; p < WORLD_PARTITIONS_MAX; p++) {
        struct seat *seat = &engine->seats[p];
        partition_destroy(seat->machine);
        seat->machine = NULL;
        seat->machine_life++;
        seat->open_due = seat->drive_due = seat->deliver_due = seat->reader.active = false;
        seat->wake_ms = 0;
        engine_forget_statements(seat);
    }
}

static void task_restart(struct world *w, void *arg, uint64_t life)
{
    struct engine *engine = arg;
    if (engine->node.alive || engine->node.life != life)
        return;
    trace(w, "%s: starts again", engine->node.name);
    node_restart(w, &engine->node);
    if (rnd(w, 4) == 0)
        engine->knows_late = true;
    after(w, ROUND_MS, task_round, engine, engine->node.life);
    after(w, 1000, task_expire, engine, engine->node.life);
    for (uint32_t p = 0; p < w->partitions; p++)
        seat_open_soon(w, &engine->seats[p], rnd(w, 100));
}

void engine_crash(struct world *w, struct engine *engine, uint64_t down_ms)
{
    if (!engine->node.alive)
        return;
    trace(w, "%s: crashes", engine->node.name);
    engine->dying = false;
    node_crash(w, &engine->node);
    drop_machines(engine);
    after(w, down_ms, task_restart, engine, engine->node.life);
}

void engine_learns(struct world *w, struct engine *engine)
{
    (void)w;
    engine->knows_late = true;
}

bool engine_knows_all(const struct engine *engine)
{
    return engine->knows_late;
}

struct node *engine_node(struct engine *engine)
{
    return &engine->node;
}

void engine_loses_link(struct world *w, struct engine *engine, enum server server)
{
    node_lose_link(w, &engine->node, server);
}

/* ---- rounds ----------------------------------------------------------------------------------------------
 */

/*
 * The sweeper: work that nobody holds is published again. It repairs what an acknowledgement that arrives
 * late does to the message of another, and what happens when the database loses a row, a worker finds it
 * missing and drops the message, and between the two the row is projected again and its message found to be
 * there still. Where there are none of those faults the sweeper stays off, so that it hides nothing.
 */
static bool sweeps(const struct world *w)
{
    enum { NEEDED = 1 << FAULT_REQUEST_LATE | 1 << FAULT_STORE_CRASH }; /* or AHEAD */
    return (w->enabled & NEEDED) != 0 || w->restores;
}

static void sweep(struct world *w, const struct seat *seat)
{
    const struct row *row;
    while (sweeps(w) && rows_not_older(w, seat) &&
           (row = store_orphan(w, seat->partition, 2 * LEASE_MS)) != NULL)
        w->stats.swept += work_queue_again(w, row);
}

/* Queues activities that a worker now knows. An engine that dies in between leaves an orphan. */
static void unshelve(struct world *w, const struct seat *seat)
{
    const struct row *row;
    while (w->unserved && workers_know(w, THOLE_STR("slow")) && w->mutation != MUTATION_SHELF_STAYS &&
           rows_not_older(w, seat) && (row = store_unshelve(w, seat->partition)) != NULL) {
        bool const dies = sweeps(w) && strikes(w, FAULT_CRASH_POINT, 200);
        w->stats.unshelved += !dies && work_queue_again(w, row);
    }
}

/* Tries whose time is over, also when nobody runs them: the row goes, and the result is published. A crash in
 * between leaves the row, and the result comes twice. */
static void expire(struct world *w, const struct seat *seat)
{
    const struct row *row;
    while (rows_not_older(w, seat) && (row = store_expired(w, seat->partition)) != NULL) {
        struct message const message = {.kind = MESSAGE_ACTIVITY_RESULT,
                                        .instance = w->instances[row->instance],
                                        .execution = row->execution,
                                        .task = row->id,
                                        .try_number = row->try_number,
                                        .status = THOLE_TIMEOUT,
                                        .data = THOLE_STR("the try took too long"),
                                        .error_type = THOLE_STR("timeout"),
                                        .source.place.attempt = row->attempt};
        struct buf bytes;
        buf_init(&bytes, MESSAGE_BYTES_MAX);
        if (message_encode(&message, &bytes) != THOLE_OK)
            abort();
        inbox_publish(w, row->instance, buf_bytes(&bytes), SENDER_ENGINE);
        buf_release(&bytes);
        w->stats.expired++;
        if (strikes(w, FAULT_STATEMENT, 50))
            return;
        store_expire(w, row);
    }
}

/*
 * An owner that is idle learns of nothing: a rival that opened the partition, committed a turn and died
 * before it projected it would leave that turn to nobody. So every host looks now and then at the last
 * EpochOpened.
 */
static void look_for_rivals(struct world *w, struct seat *seat)
{
    const struct log_stream *log = w->logs[seat->partition];
    uint64_t const opened = log_last_epoch_opened(log);
    if (opened == 0 || log->entries[opened - 1].epoch <= partition_epoch(seat->machine))
        return;
    struct partition_in const in = {.kind = PARTITION_IN_STEP_DOWN,
                                    .generation = partition_generation(seat->machine),
                                    .step_down = {"a newer epoch was opened"}};
    w->stats.rivals_seen++;
    seat_input(w, seat, &in);
}

static void task_die(struct world *w, void *arg, uint64_t life)
{
    struct engine *engine = arg;
    if (engine->node.life == life)
        engine_crash(w, engine, between(w, 20, 2000));
}

void engine_dies(struct world *w, struct engine *engine)
{
    engine->dying = true;
    after(w, 0, task_die, engine, engine->node.life);
}

static uint64_t rows_of(const struct world *w, uint32_t partition)
{
    uint64_t rows = 0;
    const struct row *row;
    for (size_t i = 0; (row = store_row(w->store, i)) != NULL; i++)
        rows += row->present && row->kind == ROW_ACTIVITY && row->partition == partition;
    return rows;
}

/* Whoever looks after rows must know that there are any. */
static void check_rows_are_known(struct world *w, const struct seat *seat)
{
    uint64_t const rows = rows_of(w, seat->partition);
    const struct row *row = store_find(w->store, ROW_PARTITION, seat->partition, 0, 0, 0);
    if (row != NULL && row->foreign)
        return; /* of another time: nobody has looked at them yet */
    if (!partition_idle(seat->machine) ||
        partition_epoch(seat->machine) != w->model->partitions[seat->partition].epoch)
        return;
    if (rows > partition_open_activities(seat->machine))
        broken(w, "partition %u: %s knows of %" PRIu64 " activities, %" PRIu64 " have rows", seat->partition,
               seat->engine->node.name, partition_open_activities(seat->machine), rows);
}

static void task_round(struct world *w, void *arg, uint64_t life)
{
    struct engine *engine = arg;
    if (!node_runs(w, &engine->node, life, task_round, arg))
        return;
    after(w, between(w, ROUND_MS / 2, ROUND_MS), task_round, engine, life);
    if (!engine->node.links[SERVER_NATS].up || !engine->node.links[SERVER_STORE].up ||
        server_down(w, SERVER_NATS) || server_down(w, SERVER_STORE))
        return;
    for (uint32_t p = 0; p < w->partitions; p++) {
        struct seat *seat = &engine->seats[p];
        if (seat->machine == NULL || partition_state(seat->machine) != PARTITION_OPEN)
            continue;
        if (!rows_look(w, seat))
            continue;
        check_rows_are_known(w, seat);
        sweep(w, seat);
        unshelve(w, seat);
        look_for_rivals(w, seat);
    }
}

static void task_expire(struct world *w, void *arg, uint64_t life)
{
    struct engine *engine = arg;
    if (!node_runs(w, &engine->node, life, task_expire, arg))
        return;
    after(w, between(w, 200, 1500), task_expire, engine, life);
    if (!engine->node.links[SERVER_NATS].up || !engine->node.links[SERVER_STORE].up ||
        server_down(w, SERVER_NATS) || server_down(w, SERVER_STORE))
        return;
    for (uint32_t p = 0; p < w->partitions; p++)
        if (engine->seats[p].machine != NULL && partition_state(engine->seats[p].machine) == PARTITION_OPEN)
            expire(w, &engine->seats[p]);
}

/* The store may have lost what it had committed, so every seat steps down; of the streams nothing is lost but
 * what a reader finds out, and the requests that failed say so themselves: a host may close what is open
 * anyway. */
static void on_link(struct world *w, struct node *node, enum server server)
{
    struct engine *engine = node->owner;
    bool const up = node->links[server].up && !node->links[server].telling_loss;
    for (uint32_t p = 0; p < w->partitions; p++) {
        struct seat *seat = &engine->seats[p];
        if (!up && server == SERVER_NATS && seat->reader.active)
            reader_lost_soon(w, seat);
        if (up || seat->machine == NULL || (server == SERVER_NATS && rnd(w, 2) == 0))
            continue;
        struct partition_in const in = {.kind = PARTITION_IN_STEP_DOWN,
                                        .generation = partition_generation(seat->machine),
                                        .step_down.text = "connection lost"};
        seat_input(w, seat, &in);
    }
}

static void choose_options(struct world *w, struct engine *engine)
{
    struct partition_options *options = &engine->options;
    partition_options_init(options);
    options->ns = THOLE_STR("sim");
    options->node = thole_slice_from(engine->node.name);
    options->orchestrations = ORCHESTRATIONS;
    options->stacks = w->stacks;
    options->nonce_key = test_nonce_key();
    options->salt_key = test_salt_key();
    options->payload_max = SIM_PAYLOAD_MAX;
    options->early_event_ms = w->early_event_ms;
    options->row_age_ms = w->row_age_ms;
    options->quarantine_ms = w->quarantine_ms;
    options->events = w->events;
    if (rnd(w, 2) == 0)
        options->log_chunk = (size_t)between(w, 1, 30);
    if (rnd(w, 2) == 0 && !w->flood) {
        options->ahead_max = (size_t)between(w, 5, 400);
        options->record_max = partition_record_min(options);
    }
    if (rnd(w, 2) == 0)
        options->parked_max = (size_t)between(w, 1, 4);
    if (rnd(w, 3) == 0)
        options->window_max = (size_t)between(w, 1, 8);
    if (rnd(w, 2) == 0) /* until it learns: a node that is too small for some instances */
        options->instance_memory_max = (size_t)between(w, 1000, 9000);
    if (rnd(w, 3) == 0)
        options->known_max = (size_t)rnd(w, 12);
    options->burst_max = w->seed % 4; /* not drawn: seeds stay what they are */
    if (w->seed % 3 == 0) {           /* not drawn: seeds stay what they are */
        options->executions_max = 1 + w->seed % 4;
        options->executions_span_ms = 200 + w->seed % 1000;
    }
    options->deleted_keep_ms = w->churns ? SIM_KEEP_MS : 0;
    options->idle_ms = between(w, 20, 1000);
    options->timer_horizon_ms = rnd(w, 2) == 0 ? between(w, 20, 400) : between(w, 400, 20000);
}

struct engine *engine_create(struct world *w, unsigned index)
{
    struct engine *engine = keep(w, sizeof *engine);
    node_begin(w, &engine->node, "engine", index, engine);
    engine->node.on_link = on_link;
    engine->knows_late = rnd(w, 3) != 0;
    choose_options(w, engine);
    for (uint32_t p = 0; p < WORLD_PARTITIONS_MAX; p++) {
        engine->seats[p].engine = engine;
        engine->seats[p].partition = p;
    }
    after(w, ROUND_MS, task_round, engine, engine->node.life);
    after(w, 1000, task_expire, engine, engine->node.life);
    return engine;
}

void engine_destroy(struct engine *engine)
{
    drop_machines(engine);
    engine_free_batches(engine);
}

/* The remains of an instance that was terminated with a damaged history are not known. */
static bool damage_in(const struct world *w, uint32_t partition)
{
    for (size_t i = 0; i < w->client_instances_len; i++)
        if (instance_partition(w, i) == partition && model_of(w, i)->damaged)
            return true;
    return false;
}

/* In the end nobody lives in a partition. */
static void check_live(struct world *w, const struct seat *seat)
{
    const thole_slice *names = NULL;
    uint64_t const activities = partition_open_activities(seat->machine), rows = rows_of(w, seat->partition);
    const struct row *row = store_find(w->store, ROW_PARTITION, seat->partition, 0, 0, 0);
    if (activities < rows && row != NULL && !row->foreign) /* whose rows are of another time has not looked */
        broken(w, "partition %u: %s counts %" PRIu64 " activities, %" PRIu64 " have rows", seat->partition,
               seat->engine->node.name, activities, rows);
    if (damage_in(w, seat->partition))
        return;
    if (activities > 0)
        broken(w, "partition %u: %s counts %" PRIu64 " activities", seat->partition, seat->engine->node.name,
               activities);
    if (partition_live_names(seat->machine, &names) > 0)
        broken(w, "partition %u: %s takes %.*s for alive", seat->partition, seat->engine->node.name,
               THOLE_FMT(names[0]));
}

bool engines_serve(struct world *w)
{
    for (uint32_t p = 0; p < w->partitions; p++) {
        bool open = false;
        for (size_t i = 0; i < w->engines_len; i++) {
            const struct partition *const machine = w->engines[i]->seats[p].machine;
            open = open || (machine != NULL && partition_state(machine) == PARTITION_OPEN);
        }
        if (!open)
            return false;
    }
    return true;
}

bool engines_idle(struct world *w, char *why, size_t size)
{
    for (uint32_t p = 0; p < w->partitions; p++) {
        const struct model_partition *part = &w->model->partitions[p];
        unsigned open = 0;
        for (size_t i = 0; i < w->engines_len; i++) {
            const struct seat *seat = &w->engines[i]->seats[p];
            if (seat->machine == NULL || partition_state(seat->machine) == PARTITION_CLOSED)
                continue;
            if (partition_state(seat->machine) != PARTITION_OPEN || !partition_idle(seat->machine)) {
                snprintf(why, size, "partition %u of %s is in state %d, %s", p, seat->engine->node.name,
                         (int)partition_state(seat->machine),
                         partition_idle(seat->machine) ? "idle" : "not idle");
                return false;
            }
            open++;
            if (partition_epoch(seat->machine) != part->epoch) {
                snprintf(why, size, "%s has partition %u open at an old epoch", seat->engine->node.name, p);
                return false;
            }
            if (!rows_as_left(w, seat)) {
                snprintf(why, size, "the rows of partition %u are of another time", p);
                return false;
            }
            check_live(w, seat);
            if (partition_committed_n(seat->machine) != part->n)
                broken(w,
                       "partition %u: its idle writer holds %" PRIu64 "/%" PRIu64 " for committed, %" PRIu64
                       "/%" PRIu64 " counts",
                       p, partition_epoch(seat->machine), partition_committed_n(seat->machine), part->epoch,
                       part->n);
        }
        if (open != 1) {
            snprintf(why, size, "partition %u is open on %u nodes", p, open);
            return false;
        }
    }
    return true;
}
