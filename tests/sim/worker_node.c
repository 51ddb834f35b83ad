#include "cancel_proof.h"
#include "checks.h"
#include "client_fake.h"
#include "losses.h"
#include "nonces.h"
#include "worker_request.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORKER_LIMIT_MS = 2000, PUSH_IDS_MAX = 256, RETURN_MS = 200 };

static void start_machine(struct world *w, struct worker *worker);
static void drive_soon(struct world *w, struct worker *worker);

/* After every step of the machine. */
static void check_machine(struct world *w, const struct worker *worker)
{
    const char *invariant = worker_check(worker->machine);
    if (invariant != NULL)
        broken(w, "%s: its machine is not as it must be: %s", worker->node.name, invariant);
}

void worker_hears(struct world *w, struct worker *worker, const struct worker_in *in)
{
    if (worker->machine == NULL)
        return;
    if (worker_input(worker->machine, in, w->now_ms) != THOLE_OK)
        broken(w, "%s: an input was refused", worker->node.name);
    check_machine(w, worker);
    drive_soon(w, worker);
}

/* ---- pulling ---------------------------------------------------------------------------------------------
 */

/* Takes over a repetition, or another message with the same contents: one will do. */
static void adopt(struct world *w, struct worker *worker, const struct worker_key *key, struct held *again)
{
    struct held *h = worker_find_held(worker, worker_holds(worker->machine, key, &again->digest));
    if (h == NULL || h->forgotten || !worker_same_try(h, again) || h->forged != again->forged) {
        broken(w, "%s takes %.*s#%" PRIu64 " for one that it does not hold", worker->node.name,
               THOLE_FMT(w->instances[again->instance]), again->activity_id);
        return;
    }
    trace(w, "%s: %.*s#%" PRIu64 " comes again", worker->node.name, THOLE_FMT(w->instances[h->instance]),
          h->activity_id);
    bool const takes = worker_takes_again(h->work_sequence, again->work_sequence);
    if (h->work_sequence != again->work_sequence)
        worker_signals(w, worker, takes ? h : again, SIGNAL_ACK, 0);
    if (takes)
        h->work_sequence = again->work_sequence;
}

static bool knows(const struct worker *worker, thole_slice activity)
{
    return !worker->ignorant || !thole_slice_equal(activity, THOLE_STR("slow"));
}

bool workers_know(const struct world *w, thole_slice activity)
{
    for (size_t i = 0; i < w->workers_len; i++)
        if (w->workers[i]->node.alive && knows(w->workers[i], activity))
            return true;
    return false;
}

/* The answers may be old, or some may be missing. */
static bool seems_unserved(struct world *w, thole_slice activity)
{
    uint64_t const hears = rnd(w, 8);
    return hears > 1 ? !workers_know(w, activity) : hears == 1;
}

static void task_arrives(struct world *w, void *arg, uint64_t life)
{
    struct held *h = arg;
    struct worker *worker = h->worker;
    if (!node_runs(w, &worker->node, life, task_arrives, arg) || h->node_life != worker->machine_life)
        return;
    worker->coming--;
    if (worker->node.links[SERVER_NATS].life != h->link_life)
        return; /* lost with its connection: it comes again */
    if (worker->wanted > 0)
        worker->wanted--;
    h->id = ++worker->next_id;
    h->next = worker->held;
    worker->held = h;
    struct nonce const nonce =
        nonce_make(test_nonce_key(), w->instances[h->instance], h->execution, h->activity_id);
    struct worker_in const in = {
        .kind = WORKER_IN_DELIVERED,
        .id = h->id,
        .key = {w->instances[h->instance], h->execution, h->activity_id, h->try_number},
        .digest = h->digest,
        .nonce = thole_slice_from(nonce.text),
        .quick = h->quick,
        .known = knows(worker, h->activity),
        .unserved = w->unserved && !knows(worker, h->activity) && seems_unserved(w, h->activity),
        .deliveries = h->deliveries};
    thole_status const status = worker_input(worker->machine, &in, w->now_ms);
    check_machine(w, worker);
    drive_soon(w, worker);
    h->forgotten = status != THOLE_OK;
    if (status == THOLE_CONFLICT)
        adopt(w, worker, &in.key, h);
    else if (status != THOLE_OK)
        worker_signals(w, worker, h, SIGNAL_NAK, 0);
}

/* Half of those that would return soon, in three of eight seeds: not in those that found something before
 * there were any. */
static bool is_quick(const struct world *w, const struct held *h)
{
    uint64_t const kind = w->seed % 8;
    return (kind == 1 || kind == 2 || kind == 4) && h->activity_id % 2 == 0 &&
           !thole_slice_equal(h->activity, THOLE_STR("slow")) &&
           !thole_slice_equal(h->activity, THOLE_STR("stubborn")) &&
           !thole_slice_equal(h->activity, THOLE_STR("outside"));
}

static void task_pull(struct world *w, void *arg, uint64_t life)
{
    struct worker *worker = arg;
    const struct work_item_fake *item;
    if (!node_runs(w, &worker->node, life, task_pull, arg))
        return;
    worker->pull_due = false;
    while (worker->machine != NULL && worker->wanted > worker->coming && worker->node.links[SERVER_NATS].up &&
           !server_down(w, SERVER_NATS) && (item = work_deliver(w)) != NULL) {
        struct held *h = keep(w, sizeof *h);
        *h = (struct held){.worker = worker,
                           .node_life = worker->machine_life,
                           .link_life = worker->node.links[SERVER_NATS].life,
                           .work_sequence = item->sequence,
                           .instance = item->instance,
                           .execution = item->execution,
                           .activity_id = item->activity_id,
                           .try_number = item->try_number,
                           .deliveries = item->deliveries,
                           .activity = item->activity,
                           .queue = item->queue,
                           .input = item->input,
                           .digest = work_digest_fake(item),
                           .forged = item->forged};
        h->quick = is_quick(w, h);
        worker->coming++;
        after(w, net_latency_ms(w), task_arrives, h, worker->node.life);
    }
}

static void pull_soon(struct world *w, struct worker *worker)
{
    if (worker->pull_due || !worker->node.alive || worker->wanted <= worker->coming)
        return;
    worker->pull_due = true;
    after(w, rnd(w, 3), task_pull, worker, worker->node.life);
}

void workers_stir(struct world *w)
{
    for (size_t i = 0; i < w->workers_len; i++)
        pull_soon(w, w->workers[i]);
}

/* ---- handlers --------------------------------------------------------------------------------------------
 */

static void task_returns(struct world *w, void *arg, uint64_t life)
{
    struct held *h = arg;
    struct worker *worker = h->worker;
    if (!node_runs(w, &worker->node, life, task_returns, arg) || h->finished ||
        h->node_life != worker->machine_life)
        return;
    h->finished = true;
    if (h->fired && h->run.returns_after_ms != UINT64_MAX)
        h->run.status = THOLE_CANCELLED;
    if (!h->abandoned && !h->quick)
        worker->running--;
    char text[64 + LONG_PAYLOAD];
    int const more = h->activity_id % 2 == 0 ? LONG_PAYLOAD : 0;
    snprintf(text, sizeof text, "%s by attempt %" PRIu64 " of try %u%*s",
             h->run.status == THOLE_OK ? "done" : "failed", h->attempt, h->try_number, more, "");
    h->output = keep_slice(w, thole_slice_from(text));
    trace(w, "%s: handler of %.*s#%" PRIu64 " returns", worker->node.name,
          THOLE_FMT(w->instances[h->instance]), h->activity_id);
    if (!h->abandoned || rnd(w, 2) == 0)
        worker_hears(w, worker,
                     &(struct worker_in){.kind = WORKER_IN_FINISHED, .id = h->id, .status = h->run.status});
}

/* Of the try, by the database's clock. */
static uint64_t time_left_ms(const struct world *w, const struct held *h)
{
    const struct row *row = store_find(w->store, ROW_ACTIVITY, instance_partition(w, h->instance),
                                       h->instance, h->execution, h->activity_id);
    if (row == NULL || row->try_number != h->try_number || row->deadline_ms == 0)
        return UINT64_MAX;
    return row->deadline_ms > w->now_ms ? row->deadline_ms - w->now_ms : 0;
}

/* Whoever has the token may use it before the handler returns, and long after it is good for nothing. */
static void hand_out_token(struct world *w, const struct held *h)
{
    struct message const result = {.execution = h->execution,
                                   .task = h->activity_id,
                                   .try_number = h->try_number,
                                   .status = (uint32_t)h->run.outside_status,
                                   .data = h->run.outside_status == THOLE_OK ? THOLE_STR(DONE_OUTSIDE)
                                                                             : THOLE_STR("nobody is there")};
    if (h->run.outside_ms != UINT64_MAX)
        client_completes(w, h->run.outside_ms, h->instance, &result);
}

/* In place of a run: the result is that too many workers were lost with it. */
static void poison(struct world *w, struct worker *worker, struct held *h, uint64_t attempt)
{
    char text[96];
    if (!h->claimed || h->attempt != attempt || h->running)
        broken(w, "%s gives %.*s#%" PRIu64 " up, which it has not claimed", worker->node.name,
               THOLE_FMT(w->instances[h->instance]), h->activity_id);
    losses_poisoned(w, h);
    snprintf(text, sizeof text, "%u workers were lost with it", h->lost);
    h->poisoned = h->finished = true;
    h->run.status = THOLE_APP;
    h->output = keep_slice(w, thole_slice_from(text));
    trace(w, "%s: %.*s#%" PRIu64 " attempt %" PRIu64 " is poisoned: %s", worker->node.name,
          THOLE_FMT(w->instances[h->instance]), h->activity_id, attempt, text);
}

/* ---- deaths ---- */

struct death {
    struct sim_claim blamed;
    thole_slice worker;
    unsigned tries;
};

static void task_crash_reporter(struct world *w, void *arg, uint64_t value)
{
    struct death *death = arg;
    (void)value;
    bool const down = server_down(w, SERVER_STORE);
    bool const done = !down && store_died(w, death->worker, &death->blamed,
                                          worker_candidate_after(w->poison_after)) == EXECUTED;
    if (!done && death->tries++ < 10)
        after(w, 200, task_crash_reporter, death, 0);
}

/* A crash on a handler's thread leaves a crash report, which the crash reporter stores: half of them do. */
static void write_crash_report(struct world *w, const struct held *h)
{
    if (rnd(w, 2) == 0)
        return;
    struct death *death = keep(w, sizeof *death);
    death->worker = h->worker->identity;
    death->blamed = (struct sim_claim){.instance = h->instance,
                                       .execution = h->execution,
                                       .activity_id = h->activity_id,
                                       .try_number = h->try_number,
                                       .attempt = h->attempt};
    uint64_t const delay_ms = rnd(w, 8) == 0 ? between(w, 100, 5000) : rnd(w, 20);
    after(w, delay_ms, task_crash_reporter, death, 0);
}

static void task_kills(struct world *w, void *arg, uint64_t life)
{
    struct held *h = arg;
    struct worker *worker = h->worker;
    if (!node_runs(w, &worker->node, life, task_kills, arg) || h->finished ||
        h->node_life != worker->machine_life)
        return;
    trace(w, "%s: %.*s#%" PRIu64 " kills it", worker->node.name, THOLE_FMT(w->instances[h->instance]),
          h->activity_id);
    losses_killed(w, h);
    write_crash_report(w, h);
    worker_node_crash(w, worker, between(w, 50, 3000));
}

static void check_run(struct world *w, const struct worker *worker, const struct held *h, uint64_t attempt)
{
    if (!h->claimed || !h->row_was_there || h->attempt != attempt)
        broken(w, "%s starts %.*s#%" PRIu64 " without a claim", worker->node.name,
               THOLE_FMT(w->instances[h->instance]), h->activity_id);
    const struct model_event *scheduled = model_find(w, h->instance, h->execution, h->activity_id);
    if (scheduled == NULL && !model_of(w, h->instance)->damaged)
        broken(w, "%s starts %.*s#%" PRIu64 ", which is not committed", worker->node.name,
               THOLE_FMT(w->instances[h->instance]), h->activity_id);
    if (h->forged)
        broken(w, "%s runs %.*s#%" PRIu64 " as a message says that no engine has written", worker->node.name,
               THOLE_FMT(w->instances[h->instance]), h->activity_id);
    for (const struct held *o = worker->held; o != NULL; o = o->next)
        if (o != h && worker_same_try(o, h) && o->running && !o->finished && !o->abandoned)
            broken(w, "%s runs %.*s#%" PRIu64 " twice at a time", worker->node.name,
                   THOLE_FMT(w->instances[h->instance]), h->activity_id);
}

static void run_handler(struct world *w, struct worker *worker, struct held *h, uint64_t attempt)
{
    check_run(w, worker, h, attempt);
    if (h->running || ++worker->running > worker->options.slots)
        broken(w, "%s runs more handlers than it has slots", worker->node.name);
    h->running = true;
    h->ran_ms = w->now_ms;
    h->run = activity_run(w, h->activity);
    if (w->lists) /* several return at the same time */
        h->run.duration_ms += RETURN_MS - (w->now_ms + h->run.duration_ms) % RETURN_MS;
    bool kills = losses_kills(w, h);
    w->stats.isolated += h->isolated;
    if (h->run.status == THOLE_LATER)
        hand_out_token(w, h);
    uint64_t const limit_ms = time_left_ms(w, h);
    if (h->run.duration_ms > limit_ms) { /* gives up by itself, or is ended from outside */
        h->run.duration_ms = limit_ms;
        h->run.status = THOLE_TIMEOUT;
        h->run.error_type = NULL;
        kills = false;
    }
    w->stats.handlers++;
    trace(w, "%s: runs %.*s#%" PRIu64 " attempt %" PRIu64 " for %" PRIu64 " ms%s", worker->node.name,
          THOLE_FMT(w->instances[h->instance]), h->activity_id, attempt, h->run.duration_ms,
          h->isolated ? ", apart" : "");
    after(w, h->run.duration_ms, kills ? task_kills : task_returns, h, worker->node.life);
}

/* Returns at once, or, against the rules, much later; or kills its worker. */
static void run_quick(struct world *w, struct worker *worker, struct held *h, uint64_t attempt)
{
    check_run(w, worker, h, attempt);
    if (h->running)
        broken(w, "%s runs a quick handler twice", worker->node.name);
    h->running = true;
    h->ran_ms = w->now_ms;
    h->run = activity_run(w, h->activity);
    h->run.duration_ms = w->faults && rnd(w, w->restores ? 3 : 15) == 0 ? between(w, 0, 2500) : 0;
    w->stats.handlers++;
    w->stats.quick++;
    trace(w, "%s: runs %.*s#%" PRIu64 " at once, for %" PRIu64 " ms", worker->node.name,
          THOLE_FMT(w->instances[h->instance]), h->activity_id, h->run.duration_ms);
    worker_idles(w, worker, h->run.duration_ms);
    after(w, h->run.duration_ms, losses_kills(w, h) ? task_kills : task_returns, h, worker->node.life);
}

static void run_batch(struct world *w, struct worker *worker, const struct worker_out *out)
{
    for (size_t i = 0; i < out->rows_len; i++) {
        struct held *const h = worker_find_held(worker, out->rows[i].id);
        if (h == NULL || h->forgotten)
            broken(w, "%s runs message %" PRIu64 ", which it does not hold", worker->node.name,
                   out->rows[i].id);
        else
            run_quick(w, worker, h, out->rows[i].attempt);
    }
}

#define FORGED THOLE_STR("forged")

/* By one who has the nonce of another activity. It changes nothing: neither what is drawn nor what is traced.
 */
static void forge_push(struct world *w, struct worker *worker, const struct held *h)
{
    struct nonce const nonce =
        nonce_make(test_nonce_key(), w->instances[h->instance], h->execution, h->activity_id + 1);
    struct tagged_hash const about = cancel_about(0, THOLE_STR("requested"), FORGED);
    uint64_t const proof = cancel_proof(thole_slice_from(nonce.text), &about);
    struct worker_in const in = {.kind = WORKER_IN_PUSHED,
                                 .key = {w->instances[h->instance], h->execution, 0, 0},
                                 .activity_ids = &h->activity_id,
                                 .activity_ids_len = 1,
                                 .proofs = &proof,
                                 .cancel_kind = THOLE_STR("requested"),
                                 .reason = FORGED};
    uint64_t const unproven = worker_counters(worker->machine).unproven;
    if (worker_input(worker->machine, &in, w->now_ms) != THOLE_OK ||
        worker_counters(worker->machine).unproven == unproven)
        broken(w, "%s does not count a forged push", worker->node.name);
}

static void fire_token(struct world *w, struct worker *worker, struct held *h, const struct worker_out *out)
{
    trace(w, "%s: cancels %.*s#%" PRIu64 " by %s", worker->node.name, THOLE_FMT(w->instances[h->instance]),
          h->activity_id, worker_path_name(out->path));
    if (h->fired)
        broken(w, "%s fires a token twice", worker->node.name);
    if (out->path == WORKER_PATH_PUSH && thole_slice_equal(out->reason, FORGED))
        broken(w, "%s believes a forged push", worker->node.name);
    if (out->path == WORKER_PATH_LEASE_LOST && !h->stolen && w->now_ms < h->kept_ms + LEASE_MS - LEASE_MS / 5)
        broken(w, "%s gives %.*s#%" PRIu64 " up, whose lease lasts", worker->node.name,
               THOLE_FMT(w->instances[h->instance]), h->activity_id);
    h->fired = true;
    h->cancelled = out->path != WORKER_PATH_LEASE_LOST;
    if (h->running && !h->finished && h->run.returns_after_ms != UINT64_MAX)
        after(w, h->run.returns_after_ms, task_returns, h, worker->node.life);
}

static void task_slot(struct world *w, void *arg, uint64_t life)
{
    struct worker *worker = arg;
    if (!node_runs(w, &worker->node, life, task_slot, arg))
        return;
    worker_hears(w, worker, &(struct worker_in){.kind = WORKER_IN_SLOT});
}

static void abandon(struct world *w, struct worker *worker, struct held *h)
{
    if (!h->running || h->abandoned)
        broken(w, "%s abandons a handler that does not run", worker->node.name);
    h->abandoned = true;
    if (!h->finished)
        worker->running--;
    after(w, rnd(w, 50), task_slot, worker, worker->node.life);
}

/* ---- outputs ---------------------------------------------------------------------------------------------
 */

static void end_message(struct world *w, struct worker *worker, struct held *h, const struct worker_out *out)
{
    trace(w, "%s: %.*s#%" PRIu64 " ends: %s, %s", worker->node.name, THOLE_FMT(w->instances[h->instance]),
          h->activity_id, worker_end_name(out->end),
          out->kind == WORKER_OUT_ACK    ? "ack"
          : out->kind == WORKER_OUT_NAK  ? "nak"
          : out->kind == WORKER_OUT_TERM ? "term"
                                         : "drop");
    w->stats.forged_removed += out->kind == WORKER_OUT_TERM;
    if (out->kind == WORKER_OUT_TERM && !h->forged)
        broken(w, "%s removes the engine's message of %.*s#%" PRIu64, worker->node.name,
               THOLE_FMT(w->instances[h->instance]), h->activity_id);
    w->stats.left += out->end == WORKER_END_LATER;
    if (out->end == WORKER_END_UNSERVED && !h->shelved) /* may have learnt the name meanwhile */
        broken(w, "%s removes the message of %.*s#%" PRIu64 ", whose row is not on the shelf",
               worker->node.name, THOLE_FMT(w->instances[h->instance]), h->activity_id);
    if (out->kind == WORKER_OUT_ACK && !h->missing && !h->published && !h->left && !h->shelved)
        broken(w, "%s acknowledges %.*s#%" PRIu64 " without completion or confirmed cancellation",
               worker->node.name, THOLE_FMT(w->instances[h->instance]), h->activity_id);
    /* Before anybody has seen that the rows are older, a message whose row they lack is taken for a late one;
     * it is published again with the row. So is one that an owner lacks which was replaced before. */
    bool const lacked = w->restores && (!h->claimed || h->replaced);
    if (out->kind == WORKER_OUT_ACK && !h->left && !h->shelved && !h->forged && !lacked &&
        !checks_try_is_over(w, h->instance, h->execution, h->activity_id, h->try_number))
        broken(w, "%s acknowledges %.*s#%" PRIu64 ", which has not ended", worker->node.name,
               THOLE_FMT(w->instances[h->instance]), h->activity_id);
    if (out->delay_ms > LEASE_MS)
        broken(w, "%s puts %.*s#%" PRIu64 " back for longer than a lease", worker->node.name,
               THOLE_FMT(w->instances[h->instance]), h->activity_id);
    h->forgotten = true;
    if (out->kind != WORKER_OUT_DROP)
        worker_signals(w, worker, h,
                       out->kind == WORKER_OUT_ACK    ? SIGNAL_ACK
                       : out->kind == WORKER_OUT_TERM ? SIGNAL_TERM
                                                      : SIGNAL_NAK,
                       out->delay_ms);
}

static void progress(struct world *w, struct worker *worker, const struct worker_out *out)
{
    for (size_t i = 0; i < out->ids_len; i++)
        worker_signals(w, worker, worker_find_held(worker, out->ids[i]), SIGNAL_PROGRESS, 0);
}

/* Takes the group of the first result out of the array: the later ones for the same partition, in their
 * order. A result that could not be stored with others goes alone. */
static size_t take_group(const struct world *w, struct held **held, size_t len, struct held **group)
{
    struct held *const first = held[0];
    size_t n = 0;
    for (size_t i = 0; i < len; i++) {
        struct held *const h = held[i];
        if (h == NULL || instance_partition(w, h->instance) != instance_partition(w, first->instance))
            continue;
        if (n > 0 && (!w->lists || first->publish_alone || h->publish_alone))
            break;
        group[n++] = h;
        held[i] = NULL;
    }
    return n;
}

static void publish_all(struct world *w, struct worker *worker, const struct worker_out *out)
{
    struct held *held[WORKER_CLAIM_MAX], *group[WORKER_CLAIM_MAX];
    size_t n = 0;
    for (size_t i = 0; i < out->ids_len; i++) {
        held[n] = worker_find_held(worker, out->ids[i]);
        if (held[n] == NULL)
            broken(w, "%s publishes what it does not hold", worker->node.name);
        n += held[n] != NULL;
    }
    for (size_t i = 0; i < n; i++)
        if (held[i] != NULL)
            worker_publishes(w, worker, group, take_group(w, held + i, n - i, group));
}

static void task_restart(struct world *w, void *arg, uint64_t life)
{
    struct worker *worker = arg;
    if (worker->node.alive || worker->node.life != life)
        return;
    trace(w, "%s: starts again", worker->node.name);
    node_restart(w, &worker->node);
    start_machine(w, worker);
}

static void on_output(struct world *w, struct worker *worker, const struct worker_out *out)
{
    struct held *h = out->id != 0 ? worker_find_held(worker, out->id) : NULL;
    if (out->id != 0 && (h == NULL || h->forgotten)) {
        broken(w, "%s: output %d for message %" PRIu64 ", which it does not hold", worker->node.name,
               (int)out->kind, out->id);
        return;
    }
    switch (out->kind) {
    case WORKER_OUT_WANT:
        worker->wanted = out->count;
        pull_soon(w, worker);
        break;
    case WORKER_OUT_CLAIM:
    case WORKER_OUT_RENEW:
    case WORKER_OUT_RELEASE:
    case WORKER_OUT_NOT_LOST:
    case WORKER_OUT_LEAVE:
    case WORKER_OUT_SHELVE:
    case WORKER_OUT_COMPLETE_BEGIN:
    case WORKER_OUT_COMPLETE_COMMIT: worker_asks(w, worker, out); break;
    case WORKER_OUT_COMPLETE_ROLLBACK: /* nobody waits for it, so what comes next has another connection */
        worker_asks(w, worker, out);
        worker_new_tx(w, worker);
        break;
    case WORKER_OUT_EXPIRED: broken(w, "%s: a try without a timeout is over", worker->node.name); break;
    case WORKER_OUT_POISONED: poison(w, worker, h, out->attempt); break;
    case WORKER_OUT_RUN:
        run_handler(w, worker, h, out->attempt);
        forge_push(w, worker, h);
        break;
    case WORKER_OUT_COMPLETE_RUN: run_batch(w, worker, out); break;
    case WORKER_OUT_FIRE: fire_token(w, worker, h, out); break;
    case WORKER_OUT_HURRY: break; /* how long is told to those who want to know */
    case WORKER_OUT_ABANDON: abandon(w, worker, h); break;
    case WORKER_OUT_PROGRESS: progress(w, worker, out); break;
    case WORKER_OUT_COMPLETE_PUBLISH: publish_all(w, worker, out); break;
    case WORKER_OUT_ACK:
    case WORKER_OUT_NAK:
    case WORKER_OUT_TERM:
    case WORKER_OUT_DROP: end_message(w, worker, h, out); break;
    case WORKER_OUT_STOPPED:
        if (worker_held(worker->machine) != 0)
            broken(w, "%s stopped and holds %zu messages", worker->node.name, worker_held(worker->machine));
        worker->stopping = true;
        break;
    }
}

static void task_drive(struct world *w, void *arg, uint64_t life)
{
    struct worker *worker = arg;
    struct worker_out out;
    if (!node_runs(w, &worker->node, life, task_drive, arg))
        return;
    worker->drive_due = false;
    if (worker->machine == NULL)
        return;
    worker_advance(worker->machine, w->now_ms);
    check_machine(w, worker);
    while (!is_broken(w) && worker_poll(worker->machine, &out)) {
        told_worker(&w->told, &out);
        check_machine(w, worker);
        on_output(w, worker, &out);
        if (strikes(w, FAULT_CRASH_POINT, (unsigned)w->wildness)) {
            worker_node_crash(w, worker, between(w, 50, 4000));
            return;
        }
    }
    if (worker->stopping) {
        worker_node_crash(w, worker, between(w, 10, 1000));
        return;
    }
    struct worker_counters const counters = worker_counters(worker->machine);
    uint64_t deadline_ms = worker_next_deadline_ms(worker->machine);
    told_counters(&w->told, &counters);
    told_number(&w->told, "deadline_ms", deadline_ms);
    if (deadline_ms == UINT64_MAX)
        return;
    deadline_ms = deadline_ms <= w->now_ms ? w->now_ms + 1 : deadline_ms;
    if (worker->wake_ms > w->now_ms && worker->wake_ms <= deadline_ms)
        return;
    worker->wake_ms = deadline_ms;
    at(w, deadline_ms, task_drive, worker, worker->node.life);
}

static void drive_soon(struct world *w, struct worker *worker)
{
    if (worker->drive_due)
        return;
    worker->drive_due = true;
    after(w, rnd(w, 4) == 0 ? 1 : 0, task_drive, worker, worker->node.life);
}

/* ---- pushes ----------------------------------------------------------------------------------------------
 */

struct push {
    struct worker *worker;
    thole_slice instance, cancel_kind, reason;
    uint64_t execution, ids[PUSH_IDS_MAX], proofs[PUSH_IDS_MAX];
    size_t ids_len;
    uint32_t try_number;
    bool early;
};

static void task_pushed(struct world *w, void *arg, uint64_t life)
{
    struct push *push = arg;
    if (!node_runs(w, &push->worker->node, life, task_pushed, arg) ||
        !push->worker->node.links[SERVER_NATS].up)
        return;
    worker_hears(
        w, push->worker,
        &(struct worker_in){
            .kind = WORKER_IN_PUSHED,
            .key = {.instance = push->instance, .execution = push->execution, .try_number = push->try_number},
            .activity_ids = push->ids,
            .activity_ids_len = push->ids_len,
            .proofs = push->proofs,
            .early = push->early,
            .cancel_kind = push->cancel_kind,
            .reason = push->reason});
}

/* As the engine's publish does. */
static void prove(struct push *push)
{
    struct tagged_hash const about = cancel_about(push->try_number, push->cancel_kind, push->reason);
    for (size_t i = 0; i < push->ids_len; i++) {
        struct nonce const nonce =
            nonce_make(test_nonce_key(), push->instance, push->execution, push->ids[i]);
        push->proofs[i] = cancel_proof(thole_slice_from(nonce.text), &about);
    }
}

void workers_pushed(struct world *w, const struct cancel_notice *out)
{
    for (size_t i = 0; i < w->workers_len; i++) {
        struct push *push = keep(w, sizeof *push);
        push->worker = w->workers[i];
        push->instance = keep_slice(w, out->instance);
        push->cancel_kind = keep_slice(w, out->kind);
        push->reason = keep_slice(w, out->reason);
        push->execution = out->execution;
        push->try_number = out->try_number;
        push->early = out->early;
        push->ids_len = out->activity_ids_len < PUSH_IDS_MAX ? out->activity_ids_len : PUSH_IDS_MAX;
        memcpy(push->ids, out->activity_ids, push->ids_len * sizeof *push->ids);
        prove(push);
        w->stats.pushes++;
        if (strikes(w, FAULT_CORE_LOSS, 200))
            continue;
        after(w, strikes(w, FAULT_CORE_LOSS, 100) ? between(w, 50, 3000) : net_latency_ms(w), task_pushed,
              push, push->worker->node.life);
        if (strikes(w, FAULT_CORE_LOSS, 50))
            after(w, between(w, 0, 1000), task_pushed, push, push->worker->node.life);
    }
}

/* ---- life ------------------------------------------------------------------------------------------------
 */

static void on_link(struct world *w, struct node *node, enum server server)
{
    struct worker *worker = node->owner;
    if (server == SERVER_STORE) {
        if (!node->links[SERVER_STORE].up || node->links[SERVER_STORE].telling_loss)
            worker_new_tx(w, worker);
        return;
    }
    if (node->links[SERVER_NATS].up)
        pull_soon(w, worker);
}

static void start_machine(struct world *w, struct worker *worker)
{
    worker->machine = worker_create(&worker->options);
    if (worker->machine == NULL)
        abort();
    worker->machine_life++;
    snprintf(worker->name, sizeof worker->name, "%s-%" PRIu64, worker->node.name, worker->machine_life);
    worker->identity = keep_slice(w, thole_slice_from(worker->name));
    worker->held = NULL;
    worker->wanted = worker->coming = worker->running = 0;
    worker->drive_due = worker->pull_due = worker->stopping = false;
    worker->wake_ms = 0;
    worker_new_tx(w, worker);
    drive_soon(w, worker);
}

static void task_learns(struct world *w, void *arg, uint64_t value)
{
    (void)w, (void)value;
    worker_node_learns(arg);
}

struct worker *worker_node_create(struct world *w, unsigned index)
{
    struct worker *worker = keep(w, sizeof *worker);
    node_begin(w, &worker->node, "worker", index, worker);
    worker->node.on_link = on_link;
    worker_options_init(&worker->options);
    worker->options.slots = (uint32_t)between(w, 1, 8);
    worker->options.completions_max = (uint32_t)between(w, 1, 16);
    worker->options.lease_ms = LEASE_MS;
    worker->options.grace_ms = between(w, 50, 2000);
    worker->options.stop_grace_ms = between(w, 20, 500);
    worker->ignorant = (index > 0 && rnd(w, 4) == 0) || w->unserved;
    if (w->unserved && index == 0) /* a deployment; the others stay what they are */
        after(w, between(w, 500, 15000), task_learns, worker, 0);
    start_machine(w, worker);
    return worker;
}

void worker_node_destroy(struct worker *worker)
{
    worker_destroy(worker->machine);
}

void worker_node_crash(struct world *w, struct worker *worker, uint64_t down_ms)
{
    if (!worker->node.alive)
        return;
    trace(w, "%s: %s", worker->node.name, worker->stopping ? "has stopped" : "crashes");
    losses_died(w, worker->identity);
    node_crash(w, &worker->node);
    worker_destroy(worker->machine);
    worker->machine = NULL;
    worker_new_tx(w, worker);
    after(w, down_ms, task_restart, worker, worker->node.life);
}

void worker_node_stop(struct world *w, struct worker *worker)
{
    if (!worker->node.alive || worker->machine == NULL)
        return;
    trace(w, "%s: is asked to stop", worker->node.name);
    worker_hears(w, worker, &(struct worker_in){.kind = WORKER_IN_STOP, .limit_ms = rnd(w, WORKER_LIMIT_MS)});
}

void worker_node_learns(struct worker *worker)
{
    worker->ignorant = false;
}

void worker_node_loses_link(struct world *w, struct worker *worker, enum server server)
{
    node_lose_link(w, &worker->node, server);
}

struct node *worker_node(struct worker *worker)
{
    return &worker->node;
}
