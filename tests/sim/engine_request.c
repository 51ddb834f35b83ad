/* Requests of an engine to the streams and the database, their execution there, and the answers. */
#include "engine_request.h"
#include "checks.h"
#include "dispensable_fake.h"
#include "removal_fake.h"
#include "work_fake.h"
#include "worker_node.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STATEMENT_TIMEOUT_MS = 3000 };

/* ---- at the servers --------------------------------------------------------------------------------------
 */

/* Bounds, then the last EpochOpened, then the records, as a host reads them: others write in between. */
enum { TAIL_BOUNDS, TAIL_EPOCH, TAIL_RECORDS, TAIL_STEPS };

static void tail_epoch(struct engine_request *r, const struct log_stream *log)
{
    r->epoch_sequence = log_last_epoch_opened(log);
    if (r->epoch_sequence > r->last_sequence && r->last_sequence != UINT64_MAX)
        r->status = THOLE_CONFLICT; /* a rival opened the partition meanwhile */
}

static void tail_records(struct world *w, struct engine_request *r, const struct log_stream *log)
{
    uint64_t from = r->epoch_sequence + 1;
    uint64_t const count = r->out.read_tail.count;
    if (count > 0 && r->last_sequence >= count && r->last_sequence - count + 1 > from)
        from = r->last_sequence - count + 1;
    r->records = log_read(w, log, from, r->last_sequence, SIZE_MAX);
    if (r->epoch_sequence == 0)
        return;
    struct log_records const head = log_read(w, log, r->epoch_sequence, r->epoch_sequence, SIZE_MAX);
    struct log_record *all = keep(w, (r->records.len + 1) * sizeof *all);
    size_t const opened = head.len; /* 0: a rival removed it meanwhile */
    if (opened > 0)
        all[0] = head.items[0];
    if (r->records.len > 0)
        memcpy(all + opened, r->records.items, r->records.len * sizeof *all);
    r->records = (struct log_records){all, r->records.len + opened};
}

/* Without the rule that a newer epoch is never overlooked. */
static void forget_rivals(struct world *w, struct engine_request *r, const struct log_stream *log)
{
    size_t n = 0;
    struct log_record *items = keep(w, (r->records.len + 1) * sizeof *items);
    for (size_t i = 0; i < r->records.len; i++)
        if (r->epoch_sequence == 0 ||
            log->entries[r->records.items[i].sequence - 1].epoch <= log->entries[r->epoch_sequence - 1].epoch)
            items[n++] = r->records.items[i];
    r->records = (struct log_records){items, n};
}

static enum executed execute_tail(struct world *w, struct engine_request *r)
{
    static const unsigned forward[] = {TAIL_BOUNDS, TAIL_EPOCH, TAIL_RECORDS};
    static const unsigned backward[] = {TAIL_EPOCH, TAIL_BOUNDS, TAIL_RECORDS};
    const struct log_stream *log = w->logs[r->seat->partition];
    bool const mutant = w->mutation == MUTATION_TAIL_BACKWARDS;
    if (r->step == 0)
        r->last_sequence = UINT64_MAX;
    while (r->step < TAIL_STEPS) {
        switch ((mutant ? backward : forward)[r->step++]) {
        case TAIL_BOUNDS: r->last_sequence = log->len; break;
        case TAIL_EPOCH: tail_epoch(r, log); break;
        default: tail_records(w, r, log); break;
        }
        if (r->status != THOLE_OK)
            return EXECUTED;
        if (r->step < TAIL_STEPS && (rnd(w, 2) == 0 || strikes(w, FAULT_TAIL_RACE, 500)))
            return EXECUTE_LATER;
    }
    if (w->mutation != MUTATION_LISTS_UNREAD)
        r->folded = dispensable_list_last(log);
    if (mutant)
        forget_rivals(w, r, log);
    return EXECUTED;
}

static void execute_delete(struct world *w, struct engine_request *r)
{
    const struct out_delete_records *const asked = &r->out.delete_records;
    if (w->logs[r->seat->partition]->len != asked->expected_last) {
        r->status = THOLE_CONFLICT;
        return;
    }
    for (size_t i = 0; i < asked->sequences_len; i++) {
        if (strikes(w, FAULT_STATEMENT, 10)) {
            r->status = THOLE_UNAVAILABLE;
            return;
        }
        if (w->mutation != MUTATION_VOIDS_STAY)
            log_delete(w, w->logs[r->seat->partition], asked->sequences[i]);
    }
}

static void execute_remove(struct world *w, struct engine_request *r)
{
    if (!removal_execute(w, w->logs[r->seat->partition], r->instance, &r->out.remove_history))
        r->status = THOLE_UNAVAILABLE;
}

static void execute_dispense(struct world *w, struct engine_request *r)
{
    if (!dispensable_removal(w, w->logs[r->seat->partition], r->out.token, &r->out.remove_records))
        r->status = THOLE_UNAVAILABLE;
}

static size_t parts_of(const struct inbox_stream *inbox)
{
    size_t n = 0;
    for (size_t i = 0; i < inbox->len; i++)
        n += inbox->entries[i].parts > 0 ? inbox->entries[i].parts : 1;
    return n;
}

static struct partition_result partition_result(const struct inbox_entry *entry, uint64_t sequence)
{
    const struct message *m = &entry->message;
    return (struct partition_result){.instance = m->instance,
                                     .execution = m->execution,
                                     .activity_id = m->task,
                                     .try_number = m->try_number,
                                     .sequence = sequence};
}

static void execute_results(struct world *w, struct engine_request *r)
{
    const struct inbox_stream *inbox = w->inboxes[r->seat->partition];
    const struct inbox_entry *entry;
    r->results = keep(w, (parts_of(inbox) + 1) * sizeof *r->results);
    const struct out_read_results *const asked = &r->out.read_results;
    bool const holds = inbox_holds(inbox, asked->seen.sequence, asked->seen.stored_ns);
    uint64_t const from = holds ? asked->from : 1;
    for (uint64_t s = from; (entry = inbox_next(inbox, s)) != NULL; s = entry->sequence + 1)
        for (const struct inbox_entry *part = entry; part != NULL; part = part->more)
            if (part->valid && part->message.kind == MESSAGE_ACTIVITY_RESULT)
                r->results[r->results_len++] = partition_result(part, holds ? part->sequence : 0);
}

/* Appends that the seat has requested and that are not stored: they never will be. */
static void lose_appends(const struct seat *seat)
{
    for (struct request *at = seat->engine->node.pending; at != NULL; at = at->next) {
        const struct engine_request *const r = (const struct engine_request *)at;
        if (r->seat == seat && r->out.kind == PARTITION_OUT_APPEND && !at->arrived)
            at->never = true;
    }
}

/* A part of a turn is stored, and then its writer goes, or the rest is lost. Few turns come in parts, so this
 * is not left to the other faults. It draws nothing: the other worlds stay as they are. */
static void cut_turn(struct world *w, struct engine_request *r)
{
    uint64_t const h = (w->seed + r->sequence) * 0x9E3779B97F4A7C15u >> 32;
    if (w->model->partitions[r->seat->partition].part_of == SIZE_MAX || h % 4 == 0)
        return;
    if (h % 4 == 1 && fault_enabled(w, FAULT_CRASH_POINT))
        engine_crash(w, r->seat->engine, 50 + h / 4 % 2000);
    else if (fault_enabled(w, FAULT_REQUEST_LOST))
        lose_appends(r->seat);
}

static void execute_append(struct world *w, struct engine_request *r)
{
    const struct out_append *const asked = &r->out.append;
    struct log_append const append = {.kind = asked->kind,
                                      .instance = r->instance,
                                      .execution = asked->execution,
                                      .expected_last = asked->expected_last,
                                      .bytes = asked->bytes};
    r->sequence = log_append(w, w->logs[r->seat->partition], &append);
    if (r->sequence == 0)
        trace(w, "%s: append %" PRIu64 "/%" PRIu64 " at %" PRIu64 " is refused", r->request.node->name,
              r->epoch_asked, r->out.token, asked->expected_last);
    else
        cut_turn(w, r);
}

static void execute_work(struct world *w, struct engine_request *r)
{
    const struct out_publish_work *const asked = &r->out.publish_work;
    struct work_item_fake const item = {.instance = r->instance,
                                        .execution = asked->execution,
                                        .activity_id = asked->activity_id,
                                        .try_number = asked->try_number,
                                        .queue = asked->queue,
                                        .activity = asked->activity,
                                        .input = asked->input,
                                        .nonce = asked->nonce};
    r->sequence = asked->again ? work_look_fake(w, &item) : 0;
    if (r->sequence == 0)
        r->sequence = work_publish_fake(w, &item);
}

/* So that nobody recognises it. */
static thole_slice disguised(struct world *w, thole_slice bytes)
{
    struct message message;
    struct buf buf;
    char text[REQUEST_ID_BYTES_MAX];
    if (message_decode(bytes, &w->memory, &message, NULL) != THOLE_OK || message.kind != MESSAGE_EVENT)
        return bytes;
    int const n = snprintf(text, sizeof text, "<again %" PRIu64, w->stats.steps);
    message.request_id = (thole_slice){(const uint8_t *)text, (size_t)n};
    buf_init(&buf, MESSAGE_BYTES_MAX);
    if (message_encode(&message, &buf) != THOLE_OK)
        abort();
    thole_slice const copy = keep_slice(w, buf_bytes(&buf));
    buf_release(&buf);
    return copy;
}

static void execute_send(struct world *w, struct engine_request *r)
{
    struct inbox_stream *inbox = w->inboxes[instance_partition(w, r->instance)];
    bool again = false;
    for (size_t i = 0; i < inbox->len && w->mutation == MUTATION_SEND_ANEW && !again; i++)
        again = inbox->entries[i].instance == r->instance &&
                thole_slice_equal(inbox->entries[i].bytes, r->out.send.bytes);
    inbox_publish_as(w, r->instance, again ? disguised(w, r->out.send.bytes) : r->out.send.bytes,
                     r->out.send.route, REJECT_NONE);
}

static void execute_load(struct world *w, struct engine_request *r)
{
    const struct log_stream *log = w->logs[r->seat->partition];
    r->records = log_read(w, log, 1, UINT64_MAX, r->instance);
    w->stats.cold_loads++;
    size_t const len = r->records.len;
    size_t n = 0;
    bool const only = r->out.load.execution != 0;
    uint64_t const newest = len == 0 ? 0 : log->entries[r->records.items[len - 1].sequence - 1].execution;
    uint64_t const last = only ? r->out.load.execution : newest;
    uint64_t gone = 0;
    for (size_t i = 0; i < len; i++)
        if (log->entries[r->records.items[i].sequence - 1].kind == RECORD_DELETED)
            gone = log->entries[r->records.items[i].sequence - 1].execution;
    for (size_t i = 0; i < len; i++) {
        const struct log_entry *e = &log->entries[r->records.items[i].sequence - 1];
        uint64_t const execution = e->execution;
        bool const all = !only && last <= gone + 1; /* events may be recorded after an attempt to start */
        if (all && e->kind == RECORD_DELETED)
            n = 0;
        if ((execution == last || all || (execution + 1 == last && !only)) &&
            (execution > 0 || w->mutation != MUTATION_EARLY_LOST))
            r->records.items[n++] = r->records.items[i];
    }
    r->records.len = n;
}

/* As a server that has the record at `since`; what is stored while the answer is on its way is not in it. */
static void execute_ids(struct world *w, struct engine_request *r)
{
    const struct log_stream *log = w->logs[r->seat->partition];
    const struct out_read_ids *const asked = &r->out.read_ids;
    size_t const until = w->mutation == MUTATION_IDS_STALE ? (size_t)asked->since / 2 : log->len;
    uint64_t *hashes = keep(w, (w->instances_len + 1) * sizeof *hashes);
    bool *listed = keep(w, (w->instances_len + 1) * sizeof *listed);
    size_t n = 0;
    for (size_t i = 0; i < until; i++) {
        const struct log_entry *const e = &log->entries[i];
        if (e->deleted || e->instance == SIZE_MAX || listed[e->instance])
            continue;
        listed[e->instance] = true;
        hashes[n++] = instance_id_hash(w->instances[e->instance]);
    }
    if (w->mutation == MUTATION_IDS_CUT)
        n /= 2;
    r->ids = n > asked->most ? (struct in_ids){.all = false} : (struct in_ids){hashes, n, true};
}

/* The inbox must hold what the partition has seen of it. */
static void execute_inbox(struct world *w, struct engine_request *r)
{
    struct inbox_stream *inbox = w->inboxes[r->seat->partition];
    bool const purges = r->out.kind == PARTITION_OUT_PURGE_INBOX;
    if (purges && strikes(w, FAULT_INBOX_BACK, 100))
        (void)inbox_loses(w, inbox); /* while the request was on its way */
    struct seen const seen = purges ? r->out.purge_inbox.seen : r->out.read_inbox.seen;
    bool holds = inbox_holds(inbox, seen.sequence, seen.stored_ns);
    if (w->mutation == (purges ? MUTATION_BACK_PURGED : MUTATION_BACK_UNSEEN))
        holds = true;
    if (w->mutation == MUTATION_BACK_BY_LAST && !purges)
        holds = inbox->len >= seen.sequence;
    r->inbox_life = inbox->life;
    if (!holds)
        r->status = THOLE_CONFLICT;
    else if (purges)
        inbox_purge(w, inbox, r->out.purge_inbox.below);
}

static void execute_emit(struct world *w, struct engine_request *r)
{
    if (w->events_shut)
        r->status = THOLE_LIMIT;
    else
        checks_event_stored(w, &r->out.emit);
}

static enum executed execute_stream(struct world *w, struct request *request)
{
    struct engine_request *r = (struct engine_request *)request;
    uint32_t const p = r->seat->partition;
    r->status = THOLE_OK;
    switch (r->out.kind) {
    case PARTITION_OUT_READ_TAIL: return execute_tail(w, r);
    case PARTITION_OUT_DELETE_RECORDS: execute_delete(w, r); break;
    case PARTITION_OUT_APPEND: execute_append(w, r); break;
    case PARTITION_OUT_READ_LOG:
        r->records = log_read(w, w->logs[p], r->out.read_log.from, r->out.read_log.to, SIZE_MAX);
        break;
    case PARTITION_OUT_READ_RESULTS: execute_results(w, r); break;
    case PARTITION_OUT_LOAD: execute_load(w, r); break;
    case PARTITION_OUT_READ_IDS: execute_ids(w, r); break;
    case PARTITION_OUT_REMOVE_HISTORY: execute_remove(w, r); break;
    case PARTITION_OUT_REMOVE_RECORDS: execute_dispense(w, r); break;
    case PARTITION_OUT_FIND_DISPENSABLE:
        r->dispensable = dispensable_look(w, w->logs[p], &r->out.find_dispensable);
        break;
    case PARTITION_OUT_SEND: execute_send(w, r); break;
    case PARTITION_OUT_EMIT: execute_emit(w, r); break;
    case PARTITION_OUT_PUBLISH_WORK: execute_work(w, r); break;
    case PARTITION_OUT_REJECT: inbox_reject(w, w->inboxes[p], &r->out.reject); break;
    case PARTITION_OUT_WITHDRAW: work_withdraw(w, r->out.withdraw.sequence); break;
    case PARTITION_OUT_READ_INBOX:
    case PARTITION_OUT_PURGE_INBOX: execute_inbox(w, r); break;
    default: abort();
    }
    return EXECUTED;
}

/* A server that was lost may have lost its last commits: on another connection nothing is applied. */
static enum executed apply(struct world *w, struct engine_request *r)
{
    if (r->seat->opened_life == r->request.link_life)
        return store_apply(w, r->out.apply.batch, &r->status);
    r->status = THOLE_FENCED;
    return EXECUTED;
}

/* As soon as the rows are complete; of another connection nobody knows what its server has lost. */
static void read_live(struct world *w, struct engine_request *r)
{
    if (r->seat->opened_life != r->request.link_life) {
        r->status = THOLE_FENCED;
        return;
    }
    store_complete(w, r->seat->partition, r->epoch_asked, r->rows.batches);
    r->live = store_live(w, r->seat->partition);
}

static enum executed run_statement(struct world *w, struct engine_request *r)
{
    uint32_t const p = r->seat->partition;
    switch (r->out.kind) {
    case PARTITION_OUT_STORE_OPEN:
        r->seat->opened_life = r->request.link_life;
        return store_open(w, p, r->epoch_asked, &r->rows, &r->epoch);
    case PARTITION_OUT_STORE_RESET: return store_reset(w, p, r->epoch_asked, &r->rows, &r->status);
    case PARTITION_OUT_APPLY: return apply(w, r);
    case PARTITION_OUT_READ_LIVE: read_live(w, r); return EXECUTED;
    case PARTITION_OUT_READ_TIMERS:
        r->timers = store_timers(w, p, r->out.read_timers.before_ms);
        return EXECUTED;
    default: abort();
    }
}

static enum executed execute_store(struct world *w, struct request *request)
{
    struct engine_request *r = (struct engine_request *)request;
    r->status = THOLE_OK;
    if (strikes(w, FAULT_STATEMENT, 10) || w->now_ms > request->arrived_ms + STATEMENT_TIMEOUT_MS) {
        r->status = THOLE_UNAVAILABLE;
        r->executed = true;
        return EXECUTED;
    }
    enum executed const executed = run_statement(w, r);
    r->executed = executed == EXECUTED;
    return executed;
}

/* ---- answers ---------------------------------------------------------------------------------------------
 */

static void step_down(struct world *w, struct engine_request *r, const char *text)
{
    struct partition_in const in = {
        .kind = PARTITION_IN_STEP_DOWN, .generation = r->out.generation, .step_down = {text}};
    seat_input(w, r->seat, &in);
}

static struct in_live live_of(const struct store_live *live)
{
    return (struct in_live){.blocked = live->blocked,
                            .blocked_len = live->blocked_len,
                            .names = live->names,
                            .counts = live->counts,
                            .names_len = live->names_len,
                            .activities = live->activities};
}

static void give_answer(struct world *w, struct engine_request *r)
{
    struct partition_in in = partition_answer(&r->out);
    switch (in.kind) {
    case PARTITION_IN_TAIL:
        in.tail = (struct in_tail){.epoch_sequence = r->epoch_sequence,
                                   .last_sequence = r->last_sequence,
                                   .records = r->records.items,
                                   .records_len = r->records.len,
                                   .folded = r->folded};
        break;
    case PARTITION_IN_APPENDED: in.appended.sequence = r->sequence; break;
    case PARTITION_IN_LOG: in.log = (struct in_log){r->records.items, r->records.len}; break;
    case PARTITION_IN_HISTORY:
        in.history = (struct in_history){r->out.load.instance, r->records.items, r->records.len};
        break;
    case PARTITION_IN_IDS: in.ids = r->ids; break;
    case PARTITION_IN_DISPENSABLE: in.dispensable = r->dispensable; break;
    case PARTITION_IN_STORE_OPENED: in.store_opened = (struct in_store_opened){r->epoch, r->rows}; break;
    case PARTITION_IN_STORE_RESET: in.store_reset.rows = r->rows; break;
    case PARTITION_IN_LIVE: in.live = live_of(&r->live); break;
    case PARTITION_IN_TIMERS:
        in.timers = (struct in_timers){r->timers.items, r->timers.len, r->timers.next_due_ms};
        break;
    case PARTITION_IN_PUBLISHED: in.published.sequence = r->sequence; break;
    case PARTITION_IN_RESULTS: in.results = (struct in_results){r->results, r->results_len}; break;
    default: break; /* the answer says no more than that it is done */
    }
    seat_input(w, r->seat, &in);
}

/* Of the generation that the machine has now: it forgets what it asked for in others. */
static void count_asked(struct seat *seat, const struct partition_out *out)
{
    if (!partition_is_answered(out->kind))
        return;
    if (seat->asked_generation != out->generation)
        seat->asked = 0;
    seat->asked_generation = out->generation;
    seat->asked++;
}

static void count_answer(const struct engine_request *r)
{
    struct seat *const seat = r->seat;
    if (partition_is_answered(r->out.kind) && seat->asked_generation == r->out.generation && seat->asked > 0)
        seat->asked--;
}

void seat_check_goes_on(struct world *w, const struct seat *seat)
{
    static const char *const does[] = {"is closed", "opens", "is open", "closes"};
    const struct partition *const machine = seat->machine;
    enum partition_state const state = partition_state(machine);
    bool const asked = seat->asked > 0 && seat->asked_generation == partition_generation(machine);
    if (w->mutation != MUTATION_NONE || seat->drive_due || state == PARTITION_CLOSED || asked ||
        seat->rows_wait || partition_deadline_ms(machine) != UINT64_MAX ||
        (state == PARTITION_OPEN && partition_idle(machine)))
        return;
    broken(w, "%s: partition %u %s and waits for nothing", seat->engine->node.name, seat->partition,
           does[state]);
}

static bool for_this_machine(const struct engine_request *r)
{
    return r->seat->machine != NULL && r->seat->machine_life == r->machine_life;
}

static void task_again(struct world *w, void *arg, uint64_t life)
{
    struct engine_request *r = arg;
    if (!node_runs(w, &r->seat->engine->node, life, task_again, arg) || !for_this_machine(r))
        return;
    if (r->out.generation != partition_generation(r->seat->machine) && rnd(w, 2) == 0)
        return; /* was told to forget it; a host may or may not notice */
    net_send(w, &r->seat->engine->node, SERVER_NATS, &r->request);
}

static void append_failed(struct world *w, struct engine_request *r)
{
    struct partition_in const in = {
        .kind = PARTITION_IN_APPEND_FAILED, .generation = r->out.generation, .token = r->out.token};
    seat_input(w, r->seat, &in);
}

static void check_lent_bytes(struct world *w, const struct engine_request *r)
{
    if (r->lent_bytes != NULL && r->out.generation == partition_generation(r->seat->machine) &&
        memcmp(r->lent_bytes, r->out.append.bytes.ptr, r->out.append.bytes.len) != 0)
        broken(w, "%s: the bytes of append %" PRIu64 " changed before its answer", r->request.node->name,
               r->out.token);
}

static void task_append_failed(struct world *w, void *arg, uint64_t life)
{
    struct engine_request *r = arg;
    if (node_runs(w, &r->seat->engine->node, life, task_append_failed, arg) && for_this_machine(r))
        append_failed(w, r);
}

/* Without the prefix rule: all before it are told to be stored too, and what was refused is heard of late.
 * The machine is right to take back the bytes of what it was told of, so nobody looks at those. */
static void prefix_skipped(struct world *w, struct engine_request *r, bool stored)
{
    uint64_t const n = r->out.token, sequence = r->sequence;
    if (!stored) {
        after(w, between(w, 1, 30), task_append_failed, r, r->seat->engine->node.life);
        return;
    }
    for (r->out.token = n > 0 ? 1 : 0; r->out.token <= n; r->out.token++) {
        r->sequence = sequence - (n - r->out.token);
        give_answer(w, r);
    }
}

static void append_answered(struct world *w, struct engine_request *r, bool known)
{
    bool const stored = known && r->sequence != 0;
    if (w->mutation == MUTATION_PREFIX_SKIPPED) {
        prefix_skipped(w, r, stored);
        return;
    }
    check_lent_bytes(w, r);
    if (stored)
        give_answer(w, r);
    else
        append_failed(w, r);
}

static bool is_repeated_by_the_host(const struct engine_request *r, bool known)
{
    if (r->out.kind == PARTITION_OUT_REMOVE_HISTORY || r->out.kind == PARTITION_OUT_READ_IDS ||
        r->out.kind == PARTITION_OUT_REMOVE_RECORDS || r->out.kind == PARTITION_OUT_FIND_DISPENSABLE ||
        r->out.kind == PARTITION_OUT_EMIT)
        return !known || r->status != THOLE_OK;
    return !known && (r->out.kind == PARTITION_OUT_PUBLISH_WORK || r->out.kind == PARTITION_OUT_SEND ||
                      r->out.kind == PARTITION_OUT_REJECT);
}

static void stream_answered(struct world *w, struct request *request, bool known)
{
    struct engine_request *r = (struct engine_request *)request;
    if (!for_this_machine(r))
        return;
    if (!is_repeated_by_the_host(r, known))
        count_answer(r);
    if (r->out.kind == PARTITION_OUT_APPEND) {
        append_answered(w, r, known);
    } else if (is_repeated_by_the_host(r, known)) {
        struct engine_request *again = keep(w, sizeof *again); /* the old one may still arrive */
        *again = *r;
        if (again->out.kind == PARTITION_OUT_PUBLISH_WORK)
            again->out.publish_work.again = true;
        after(w, between(w, 5, 500), task_again, again, request->node_life);
    } else if (known && r->out.kind == PARTITION_OUT_READ_INBOX && r->status == THOLE_CONFLICT) {
        seat_input(w, r->seat,
                   &(struct partition_in){.kind = PARTITION_IN_INBOX_BACK, .generation = r->out.generation});
    } else if (known && r->out.kind == PARTITION_OUT_READ_INBOX) {
        seat_reads(w, r->seat, r);
    } else if (!known || r->status != THOLE_OK) {
        step_down(w, r, "the stream did not answer");
    } else {
        give_answer(w, r);
    }
}

static void one_way_answered(struct world *w, struct request *request, bool known)
{
    struct engine_request *r = (struct engine_request *)request;
    if (known && r->status == THOLE_CONFLICT && for_this_machine(r))
        step_down(w, r, "the inbox went back");
}

static void free_batch(struct engine *engine, struct engine_request *r)
{
    struct engine_request **at = &engine->batches;
    if (r->out.kind != PARTITION_OUT_APPLY || r->out.apply.batch == NULL)
        return;
    while (*at != r)
        at = &(*at)->next_batch;
    *at = r->next_batch;
    batch_destroy(r->out.apply.batch);
    r->out.apply.batch = NULL;
}

static void next_statement(struct world *w, struct seat *seat);

static void store_answered(struct world *w, struct request *request, bool known)
{
    struct engine_request *r = (struct engine_request *)request;
    struct seat *seat = r->seat;
    seat->statement_out = false;
    memmove(seat->statements, seat->statements + 1, --seat->statements_len * sizeof *seat->statements);
    if (r->executed)
        free_batch(seat->engine, r);
    if (for_this_machine(r)) {
        count_answer(r);
        if (known && r->status == THOLE_OK)
            give_answer(w, r);
        else
            step_down(w, r, known ? thole_status_name(r->status) : "the database did not answer");
    }
    next_statement(w, seat);
    for (uint32_t p = 0; p < w->partitions; p++)
        if (seat->engine->seats[p].rows_wait)
            seat_drive_soon(w, &seat->engine->seats[p]);
}

/* ---- sending ---------------------------------------------------------------------------------------------
 */

static void next_statement(struct world *w, struct seat *seat)
{
    if (seat->statement_out || seat->statements_len == 0)
        return;
    seat->statement_out = true;
    net_send(w, &seat->engine->node, SERVER_STORE, &seat->statements[0]->request);
}

bool engine_is_writing(const struct engine *engine)
{
    for (uint32_t p = 0; p < WORLD_PARTITIONS_MAX; p++) {
        const struct seat *const seat = &engine->seats[p];
        if (seat->statement_out && seat->statements[0]->out.kind == PARTITION_OUT_APPLY)
            return true;
    }
    return false;
}

void engine_forget_statements(struct seat *seat)
{
    seat->statements_len = 0;
    seat->statement_out = false;
}

void engine_free_batches(struct engine *engine)
{
    for (; engine->batches != NULL; engine->batches = engine->batches->next_batch)
        batch_destroy(engine->batches->out.apply.batch);
}

/* The instance that an output names; empty: none. */
static thole_slice *instance_of(struct partition_out *out)
{
    static thole_slice none;
    switch (out->kind) {
    case PARTITION_OUT_APPEND: return &out->append.instance;
    case PARTITION_OUT_LOAD: return &out->load.instance;
    case PARTITION_OUT_REMOVE_HISTORY: return &out->remove_history.instance;
    case PARTITION_OUT_PUBLISH_WORK: return &out->publish_work.instance;
    case PARTITION_OUT_SEND: return &out->send.instance;
    case PARTITION_OUT_EMIT: return &out->emit.instance;
    case PARTITION_OUT_REJECT: return &out->reject.instance;
    default: return &none;
    }
}

static void own(struct world *w, thole_slice *slice)
{
    *slice = keep_slice(w, *slice);
}

/* Copies the memory of the machine that the output points to. */
static void copy_output(struct world *w, struct engine_request *r, const struct partition_out *from)
{
    struct partition_out *const out = &r->out;
    *out = *from;
    thole_slice *const instance = instance_of(out);
    if (instance->len > 0)
        own(w, instance);
    r->instance = instance->len > 0 ? instance_add(w, *instance) : SIZE_MAX;
    switch (out->kind) {
    case PARTITION_OUT_DELETE_RECORDS: {
        struct out_delete_records *const asked = &out->delete_records;
        uint64_t *copy = keep(w, asked->sequences_len * sizeof *copy);
        memcpy(copy, asked->sequences, asked->sequences_len * sizeof *copy);
        asked->sequences = copy;
        break;
    }
    case PARTITION_OUT_APPEND: own(w, &out->append.bytes); break;
    case PARTITION_OUT_REMOVE_RECORDS: {
        struct out_remove_records *const asked = &out->remove_records;
        uint64_t *copy = keep(w, asked->len * sizeof *copy);
        memcpy(copy, asked->sequences, asked->len * sizeof *copy);
        asked->sequences = copy;
        break;
    }
    case PARTITION_OUT_PUBLISH_WORK:
        own(w, &out->publish_work.queue);
        own(w, &out->publish_work.nonce);
        own(w, &out->publish_work.activity);
        own(w, &out->publish_work.input);
        break;
    case PARTITION_OUT_SEND: own(w, &out->send.bytes), own(w, &out->send.route); break;
    case PARTITION_OUT_EMIT:
        out->emit.orchestration = out->emit.error_type = (thole_slice){0};
        own(w, &out->emit.type);
        own(w, &out->emit.data);
        break;
    case PARTITION_OUT_REJECT:
        out->reject.text = NULL;
        own(w, &out->reject.subject);
        own(w, &out->reject.bytes);
        break;
    default: break;
    }
}

static bool is_statement(enum partition_out_kind kind)
{
    return kind == PARTITION_OUT_STORE_OPEN || kind == PARTITION_OUT_STORE_RESET ||
           kind == PARTITION_OUT_READ_LIVE || kind == PARTITION_OUT_READ_TIMERS ||
           kind == PARTITION_OUT_APPLY;
}

/* Only where a rule is broken: whether the output was given to a host before. */
static bool is_repeated(struct world *w, const struct partition_out *out)
{
    return w->mutation == MUTATION_SEND_ONCE && checks_sent_before(w, out->send.bytes);
}

static void task_sent(struct world *w, void *arg, uint64_t life)
{
    struct engine_request *r = arg;
    if (!node_runs(w, &r->seat->engine->node, life, task_sent, arg) || !for_this_machine(r))
        return;
    count_answer(r);
    give_answer(w, r);
}

static void task_send(struct world *w, void *arg, uint64_t value)
{
    struct engine_request *r = arg;
    (void)value;
    inbox_publish_as(w, r->instance, r->out.send.bytes, r->out.send.route, REJECT_NONE);
}

static void pretend_sent(struct world *w, struct engine_request *r, bool really)
{
    if (really)
        after(w, rnd(w, 300), task_send, r, 0);
    after(w, 0, task_sent, r, r->seat->engine->node.life);
}

void engine_ask(struct world *w, struct seat *seat, const struct partition_out *out)
{
    struct engine_request *r = keep(w, sizeof *r);
    r->seat = seat;
    r->machine_life = seat->machine_life;
    count_asked(seat, out);
    copy_output(w, r, out);
    if (is_statement(out->kind)) {
        r->epoch_asked = partition_epoch(seat->machine);
        (void)partition_rows(seat->machine, &r->rows);
        r->request.execute = execute_store;
        r->request.answered = store_answered;
        if (seat->statements_len == SEAT_QUEUE_MAX) {
            broken(w, "%s: more than %d statements wait", seat->engine->node.name, SEAT_QUEUE_MAX);
            if (out->kind == PARTITION_OUT_APPLY)
                batch_destroy(out->apply.batch);
            return;
        }
        if (out->kind == PARTITION_OUT_APPLY) {
            r->next_batch = seat->engine->batches;
            seat->engine->batches = r;
        }
        seat->statements[seat->statements_len++] = r;
        next_statement(w, seat);
        return;
    }
    if (out->kind == PARTITION_OUT_SEND && (is_repeated(w, out) || w->mutation == MUTATION_SEND_SHUFFLED)) {
        pretend_sent(w, r, !is_repeated(w, out));
        return;
    }
    bool const one_way = out->kind == PARTITION_OUT_WITHDRAW || out->kind == PARTITION_OUT_PURGE_INBOX;
    r->lent_bytes = out->kind == PARTITION_OUT_APPEND ? out->append.bytes.ptr : NULL;
    r->request.execute = execute_stream;
    r->request.answered = one_way ? one_way_answered : stream_answered;
    net_send(w, &seat->engine->node, SERVER_NATS, &r->request);
}
