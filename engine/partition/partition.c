/*
 * The conductor of the rooms of a partition: the only file that includes more than one of them. It gives
 * inputs to their room, and gives what a room returns to the next one:
 *
 *   messages, timers → instances → a record to append → log → committed records, in order
 *     → projection (rows, messages, timers) → instances (counts, and who may be told now)
 */
#include "partition.h"
#include "folding.h"
#include "instances.h"
#include "memory.h"
#include "partition_log.h"
#include "partition_phases.h"
#include "projection.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum {
    PURGE_EVERY = 1000,                  /* inbox messages */
    WINDOW_BYTES_MAX = 16 * 1024 * 1024, /* of appends in flight, beside the turn that exceeds it */
    CLOSING_EVENTS_MS = 1000,            /* how long a partition that closes waits for CloudEvents */
};

struct partition {
    struct env env;
    char node[THOLE_NAME_BYTES_MAX + 1];
    enum phase phase;
    struct partition_log *log;
    struct projection *projection;
    struct instances *instances;
    uint64_t busy_ms;      /* when something last happened */
    uint64_t closing_ms;   /* CLOSING: since when */
    uint64_t purged_below; /* inbox sequence */
    uint64_t turns;        /* number of appended turns */
    /* the message that the inbox did not hold when it was last opened; sequence 0: it did */
    struct seen inbox_lost;
    struct record_forms read; /* by every engine that may own the partition next */
    struct folding folding;
    uint64_t ids_asked; /* token of the last READ_IDS: an earlier list lacks what was appended meanwhile */
    /* steps down: takes no more input; memory is dropped once all appends are answered */
    bool ending;
    char ending_why[160];
};

struct partition *partition_create(const struct partition_options *options)
{
    assert(options->window_max > 0 && options->window_max <= PARTITION_WINDOW_MAX);
    assert(options->node.len <= THOLE_NAME_BYTES_MAX);
    assert(options->log_chunk > 0 && options->crash_limit > 0 && options->nonce_key != NULL);
    assert(options->ahead_max > 0 && options->ahead_max <= PARTITION_AHEAD_MAX && options->waiting_max > 0);
    assert(options->executions_span_ms > 0 && options->record_max >= partition_record_min(options));
    struct partition *p = memory_new(sizeof *p);
    p->env.options = *options;
    memcpy(p->node, options->node.ptr, options->node.len);
    p->env.options.node = thole_slice_from(p->node);
    p->log = log_create(&p->env);
    p->projection = projection_create(&p->env);
    p->instances = instances_create(&p->env);
    return p;
}

bool partition_poll(struct partition *p, struct partition_out *ret)
{
    return env_poll(&p->env, ret);
}

/* --- phases -------------------------------------------------------------------------------------- */

/* The only way to change the phase. */
static void partition_become(struct partition *p, enum phase phase)
{
    assert(phase_may_follow(p->phase, phase) && "no such transition of the partition");
    p->phase = phase;
}

static void partition_forget(struct partition *p)
{
    env_clear(&p->env);
    projection_reset(p->projection);
    log_reset(p->log);
    instances_reset(p->instances);
    p->purged_below = 0;
    p->ids_asked = 0;
    p->ending = false;
    partition_become(p, PHASE_CLOSED);
    p->env.generation++;
}

static void partition_close_now(struct partition *p, const char *why, bool reopen)
{
    if (p->phase == PHASE_CLOSED)
        return;
    char text[512] = {0};
    for (size_t i = 0; i + 1 < sizeof text && why != NULL && why[i] != '\0'; i++)
        text[i] = why[i];
    uint64_t const epoch = log_facts(p->log)->base > 0 ? log_facts(p->log)->epoch : 0,
                   committed = log_facts(p->log)->committed_n;
    partition_forget(p);
    struct out_closed *out = &env_emit(&p->env, PARTITION_OUT_CLOSED)->closed;
    thole_slice const copy = env_copy(&p->env, thole_slice_from(text));
    *out = (struct out_closed){.text = copy.ptr == NULL ? "" : (const char *)copy.ptr,
                               .reopen = reopen,
                               .epoch = epoch,
                               .records = committed};
}

void partition_destroy(struct partition *p)
{
    if (p == NULL)
        return;
    env_clear(&p->env);
    log_destroy(p->log);
    projection_destroy(p->projection);
    instances_destroy(p->instances);
    env_release(&p->env);
    free(p);
}

static void begin_opening(struct partition *p, uint64_t now_ms)
{
    if (p->phase != PHASE_CLOSED)
        return;
    p->env.now_ms = now_ms;
    p->env.generation++;
    partition_become(p, PHASE_LOG);
    log_open(p->log);
}

static void close_gracefully(struct partition *p)
{
    if (p->phase == PHASE_SERVING) {
        partition_become(p, PHASE_CLOSING);
        p->closing_ms = p->env.now_ms;
    } else if (p->phase != PHASE_CLOSED && p->phase != PHASE_CLOSING) {
        partition_close_now(p, "handed over while opening", false);
    }
}

/*
 * The owner steps down. Appends in flight are answered first (by the server, or by the host when it gives
 * up), so that what is committed in this epoch is known; then the memory is dropped.
 */
static void step_down(struct partition *p, const char *why)
{
    if (log_facts(p->log)->in_flight == 0) {
        partition_close_now(p, why, true);
        return;
    }
    if (p->ending)
        return;
    size_t len = why == NULL ? 0 : strlen(why);
    if (len >= sizeof p->ending_why)
        len = sizeof p->ending_why - 1;
    if (len > 0)
        memcpy(p->ending_why, why, len);
    p->ending_why[len] = '\0';
    p->ending = true;
}

static void hear_of_rival(struct partition *p, uint64_t epoch)
{
    if ((p->phase == PHASE_SERVING || p->phase == PHASE_CLOSING) && epoch > log_facts(p->log)->epoch)
        step_down(p, "a rival opens the partition");
}

/* Nothing was read from the inbox since the partition was opened: the position is the one that was found
 * then. */
static void inbox_back(struct partition *p)
{
    p->inbox_lost = progress_seen(instances_inbox(p->instances));
    step_down(p, "the inbox lost its tail or was recreated: it is read again");
}

/* --- the log ------------------------------------------------------------------------------------- */

/* An engine that does not read ranges may be the next owner: also one of an older version after this engine
 * was stopped for good, so what a closing partition leaves is for every engine. */
static bool lists_wanted(const struct partition *p)
{
    return !p->read.ranges || p->phase == PHASE_CLOSING;
}

static bool may_list(const struct partition *p, const struct position *position)
{
    return position_sequences(position) <= p->env.options.ahead_max;
}

/* The log says with ranges what a list must say. */
static bool partition_unlisted(const struct partition *p)
{
    struct position const position = progress_position(instances_inbox(p->instances));
    return lists_wanted(p) && log_facts(p->log)->ranges && may_list(p, &position);
}

static struct log_saying partition_saying(struct partition *p)
{
    struct position position = progress_position(instances_inbox(p->instances));
    position.listed = lists_wanted(p) && may_list(p, &position);
    return (struct log_saying){
        .position = position, .published = projection_done(p->projection), .refers = p->read.references};
}

void partition_forms_read(struct partition *p, struct record_forms by_all)
{
    p->read = by_all;
    p->folding.by_all = by_all.lists;
}

static void append_position(struct partition *p)
{
    struct log_saying const now = partition_saying(p);
    log_append_position(p->log, &now);
    instances_position_saved(p->instances);
}

/*
 * The inbox went back: it lost its tail, or was created again. The position is no longer valid: its sequences
 * now belong to new messages, or to old ones from before the loss. All messages are read again; their request
 * ids and event ids tell whether they were incorporated. Not if another owner has opened the partition since
 * and found another position.
 */
static void forget_position(struct partition *p)
{
    struct seen const seen = progress_seen(instances_inbox(p->instances)), lost = p->inbox_lost;
    p->inbox_lost = (struct seen){0};
    if (lost.sequence > 0 && seen.sequence == lost.sequence && seen.stored_ns == lost.stored_ns)
        instances_forget_inbox(p->instances); /* stored with the EpochOpened, before a message is read */
}

/* The tail of the log is known and holds no void records. */
static void begin_epoch(struct partition *p)
{
    const struct log_tail *tail = log_found(p->log);
    instances_set_inbox(p->instances, &tail->position);
    forget_position(p);
    struct log_saying now = partition_saying(p);
    now.published = tail->published;
    log_begin(p->log, projection_epoch_known(p->projection), &now);
}

/* The epoch is open: the rows are brought up to the log. */
static void epoch_opened(struct partition *p)
{
    const struct log_facts *facts = log_facts(p->log);
    const struct log_tail *tail = log_found(p->log);
    const struct progress *inbox = instances_inbox(p->instances);
    struct projection_start const start = {.epoch = facts->epoch,
                                           .base = facts->base,
                                           .tail_last = tail->last,
                                           .published = tail->published,
                                           .deleted = tail->deleted,
                                           .inbox_from = inbox->floor + 1,
                                           .inbox_seen = progress_seen(inbox)};
    partition_become(p, PHASE_PROJECTION);
    projection_open(p->projection, &start);
}

static void partition_committed(struct partition *p, const struct log_committed *record)
{
    struct entry *entry = record->tag;
    struct projection_turns made;
    struct projection_facts facts = {0};
    if (entry != NULL)
        facts = (struct projection_facts){instances_orchestration(entry), *instances_parent(entry),
                                          *instances_trace(entry), instances_running_ms(entry)};
    projection_record(p->projection, record->bytes, record->sequence, entry == NULL ? NULL : &facts, &made);
    if (made.rows_uncertain)
        instances_count_is_uncertain(p->instances);
    if (entry == NULL)
        return;
    instances_set_running_ms(entry, made.running_ms);
    instances_count(p->instances, entry, made.turns, made.len);
    instances_committed(p->instances, entry, record->execution, record->lines, record->lines_len);
}

/* Handles what an answer changed in the log. */
static void hear_log(struct partition *p)
{
    struct log_committed record;
    while (log_take_committed(p->log, &record)) {
        if (record.n > 0)
            partition_committed(p, &record);
        else
            epoch_opened(p);
    }
    if (log_state(p->log) == LOG_FOUND)
        begin_epoch(p);
    else if (log_state(p->log) == LOG_LOST)
        partition_close_now(p, log_why(p->log), true);
}

/* The crash candidates are known: code may run. */
static void read_live(struct partition *p, const struct in_crashes *in)
{
    if (p->phase != PHASE_CRASHES)
        return;
    instances_crashes(p->instances, in);
    partition_become(p, PHASE_LIVE);
    env_emit(&p->env, PARTITION_OUT_READ_LIVE);
}

static void live_known(struct partition *p, const struct in_live *in)
{
    if (p->phase != PHASE_LIVE) {
        instances_counted_again(p->instances, in, log_facts(p->log)->in_flight > 0);
        return;
    }
    instances_live(p->instances, in);
    partition_become(p, PHASE_TIMERS);
    /* The engine may have code that its predecessor lacked; an execution that ended with continue-as-new goes on. */
    for (size_t i = 0; i < in->blocked_len; i++)
        instances_retry(p->instances, in->blocked[i].instance);
    projection_read_timers(p->projection);
}

static void timers_known(struct partition *p, const struct in_timers *in)
{
    projection_timers(p->projection, in);
    if (p->phase != PHASE_TIMERS)
        return;
    partition_become(p, PHASE_SERVING);
    p->busy_ms = p->env.now_ms;
    const struct log_tail *const tail = log_found(p->log);
    folding_open(&p->folding, p->env.options.deleted_keep_ms, tail->deleted, tail->looked, p->env.now_ms);
    env_emit(&p->env, PARTITION_OUT_OPENED)->opened.epoch = log_facts(p->log)->epoch;
    const struct progress *inbox = instances_inbox(p->instances);
    env_emit(&p->env, PARTITION_OUT_READ_INBOX)->read_inbox =
        (struct out_read_inbox){inbox->floor + 1, progress_seen(inbox)};
    env_emit(&p->env, PARTITION_OUT_READ_IDS)->read_ids =
        (struct out_read_ids){log_facts(p->log)->base, p->env.options.known_max};
}

static void partition_sent(struct partition *p, uint64_t token)
{
    if ((token & INSTANCES_TOKEN) != 0)
        instances_sent(p->instances, token);
    else
        projection_sent(p->projection, token);
}

static void partition_history(struct partition *p, uint64_t token, const struct in_history *in)
{
    struct log_rule const log = log_view(p->log);
    if ((token & PROJECTION_TOKEN) != 0)
        projection_history(p->projection, token, in, &log);
    else if (!instances_history(p->instances, token, in, &log))
        step_down(p, LOG_FOREIGN);
}

static bool partition_may_run(const struct partition *p)
{
    const struct log_facts *log = log_facts(p->log);
    return p->phase == PHASE_SERVING && !p->env.nomem && log_is_open(p->log) && !p->ending &&
           log->in_flight < p->env.options.window_max && log->in_flight_bytes < WINDOW_BYTES_MAX &&
           projection_has_room(p->projection);
}

/* Lists what may go; it goes when that record is committed, and all before it is projected. */
static void take_dispensable(struct partition *p, const struct in_dispensable *in)
{
    struct folded folded;
    if (!folding_take(&p->folding, in, p->env.now_ms, &folded) || !partition_may_run(p))
        return;
    struct log_saying const now = partition_saying(p);
    uint64_t const sequence = log_append_folded(p->log, &folded, &now);
    instances_position_saved(p->instances);
    folding_listed(&p->folding, &folded, sequence, p->env.now_ms);
    instances_forget_deleted(p->instances, folded.deleted);
}

/* Of what is committed and projected, so that no answer is of records that may still be void. */
static void look_for_dispensable(struct partition *p)
{
    const struct log_facts *const log = log_facts(p->log);
    if (p->env.now_ms < folding_due_ms(&p->folding) || !log_is_open(p->log))
        return;
    struct out_find_dispensable *const out =
        &env_emit(&p->env, PARTITION_OUT_FIND_DISPENSABLE)->find_dispensable;
    out->below = log->base + log->committed_n + 1;
    out->published = log->published;
    folding_ask(&p->folding, p->env.now_ms, out);
}

/* The list is that of a server which has all that was appended by now, so that none of it is left out. */
static void read_ids_again(struct partition *p)
{
    struct partition_out *const out = env_emit(&p->env, PARTITION_OUT_READ_IDS);
    out->token = ++p->ids_asked;
    out->read_ids = (struct out_read_ids){log_facts(p->log)->base + log_facts(p->log)->next_n - 1,
                                          p->env.options.known_max};
}

static void take_removed(struct partition *p, uint64_t sequence)
{
    size_t deletions;
    if (projection_removed(p->projection, sequence))
        p->busy_ms = p->env.now_ms;
    if (!folding_removed(&p->folding, sequence, &deletions))
        return;
    instances_forget_deleted(p->instances, p->folding.deleted);
    if (p->phase == PHASE_SERVING && instances_wants_ids(p->instances, deletions))
        read_ids_again(p);
}

static void take_input(struct partition *p, const struct partition_in *in, uint64_t now_ms)
{
    switch (in->kind) {
    case PARTITION_IN_OPEN: begin_opening(p, now_ms); break;
    case PARTITION_IN_CLOSE: close_gracefully(p); break;
    case PARTITION_IN_STEP_DOWN: step_down(p, in->step_down.text); break;
    case PARTITION_IN_RIVAL: hear_of_rival(p, in->rival.epoch); break;
    case PARTITION_IN_TAIL:
        log_tail(p->log, &in->tail);
        hear_log(p);
        break;
    case PARTITION_IN_DELETED:
        log_deleted(p->log);
        hear_log(p);
        break;
    case PARTITION_IN_APPENDED:
        p->busy_ms = p->env.now_ms;
        log_appended(p->log, in->token, in->appended.sequence);
        hear_log(p);
        break;
    case PARTITION_IN_APPEND_FAILED:
        log_append_failed(p->log, in->token, in->append_failed.text);
        hear_log(p);
        break;
    case PARTITION_IN_STORE_OPENED: projection_store_opened(p->projection, &in->store_opened); break;
    case PARTITION_IN_STORE_RESET: projection_store_reset(p->projection, &in->store_reset); break;
    case PARTITION_IN_LOG: projection_log(p->projection, &in->log); break;
    case PARTITION_IN_RESULTS:
        projection_results(p->projection, &in->results, instances_inbox(p->instances));
        break;
    case PARTITION_IN_LIVE: live_known(p, &in->live); break;
    case PARTITION_IN_TIMERS: timers_known(p, &in->timers); break;
    case PARTITION_IN_APPLIED: projection_applied(p->projection, &in->applied); break;
    case PARTITION_IN_PUBLISHED:
        projection_published(p->projection, in->token, in->published.sequence);
        break;
    case PARTITION_IN_SENT: partition_sent(p, in->token); break;
    case PARTITION_IN_EMITTED:
        if (projection_emitted(p->projection, in->token))
            p->busy_ms = p->env.now_ms;
        break;
    case PARTITION_IN_MESSAGE:
        if (p->phase == PHASE_SERVING && instances_message(p->instances, &in->message))
            p->busy_ms = p->env.now_ms;
        break;
    case PARTITION_IN_INBOX_BACK: inbox_back(p); break;
    case PARTITION_IN_HISTORY: partition_history(p, in->token, &in->history); break;
    case PARTITION_IN_IDS:
        if (in->token == p->ids_asked)
            instances_ids(p->instances, &in->ids);
        break;
    case PARTITION_IN_DISPENSABLE: take_dispensable(p, &in->dispensable); break;
    case PARTITION_IN_REMOVED: take_removed(p, in->token); break;
    case PARTITION_IN_REJECTED: instances_rejected(p->instances, in->token); break;
    case PARTITION_IN_CRASHES: read_live(p, &in->crashes); break;
    case PARTITION_IN_QUERY:
        instances_query(p->instances, in->token, &in->query, p->phase == PHASE_SERVING);
        break;
    }
}

/* Handles what a step changed in the projection. */
static void hear_projection(struct partition *p)
{
    const char *step_down_why = projection_take_step_down(p->projection);
    if (projection_state(p->projection) == PROJECTION_FAILED) {
        partition_close_now(p, projection_why(p->projection), true);
    } else if (step_down_why != NULL) {
        step_down(p, step_down_why);
    } else if (p->phase == PHASE_PROJECTION && projection_state(p->projection) == PROJECTION_CURRENT) {
        partition_become(p, PHASE_CRASHES); /* before any code runs */
        env_emit(&p->env, PARTITION_OUT_READ_CRASHES);
    }
}

static thole_status after_step(struct partition *p)
{
    if (!p->env.nomem && p->phase != PHASE_CLOSED)
        hear_projection(p);
    if (!p->env.nomem && p->ending && log_facts(p->log)->in_flight == 0)
        partition_close_now(p, p->ending_why, true);
    if (!p->env.nomem)
        return THOLE_OK;
    p->env.nomem = false;
    partition_close_now(p, "out of memory", true);
    return THOLE_NOMEM;
}

thole_status partition_input(struct partition *p, const struct partition_in *in, uint64_t now_ms)
{
    if (now_ms > p->env.now_ms)
        p->env.now_ms = now_ms;
    bool const unconditional = in->kind == PARTITION_IN_OPEN || in->kind == PARTITION_IN_CLOSE ||
                               in->kind == PARTITION_IN_RIVAL || in->kind == PARTITION_IN_QUERY;
    if (!unconditional && in->generation != p->env.generation)
        return THOLE_OK;
    take_input(p, in, now_ms);
    return after_step(p);
}

/* --- time ---------------------------------------------------------------------------------------- */

static bool is_quiet(const struct partition *p)
{
    return log_facts(p->log)->in_flight == 0 && projection_idle(p->projection) &&
           instances_quiet(p->instances);
}

static bool partition_unsaid(const struct partition *p)
{
    return projection_unsaid(p->projection, log_facts(p->log)->published);
}

static bool rows_owed(const struct partition *p)
{
    return instances_inbox(p->instances)->dirty || partition_unsaid(p) || partition_unlisted(p) ||
           projection_unsaved(p->projection);
}

static bool inbox_unpurged(const struct partition *p)
{
    return log_facts(p->log)->floor > 1 && log_facts(p->log)->floor > p->purged_below;
}

/* The message at the floor is kept: it may be the one that identifies the stream. */
static void partition_purge(struct partition *p, uint64_t step)
{
    uint64_t const below = log_facts(p->log)->floor;
    if (below < p->purged_below + step || below <= 1)
        return;
    p->purged_below = below;
    env_emit(&p->env, PARTITION_OUT_PURGE_INBOX)->purge_inbox =
        (struct out_purge_inbox){below, progress_seen(instances_inbox(p->instances))};
}

/* Saves what only memory holds, when the partition is idle. False: it holds nothing. */
static bool partition_save(struct partition *p)
{
    bool const wanted = rows_owed(p), may = wanted && log_is_open(p->log);
    if (may && (instances_inbox(p->instances)->dirty || partition_unsaid(p) || partition_unlisted(p)))
        append_position(p);
    else if (may)
        projection_save(p->projection);
    return wanted;
}

/* Appends the record of a turn. Returns the number of records. */
static size_t partition_append(struct partition *p, const struct instances_record *record)
{
    if (record->entry == NULL)
        return 0;
    struct log_saying now = partition_saying(p);
    now.newest = record->newest;
    if (record->turn != NULL)
        return log_append_turn(p->log, record->turn, record->lines, record->lines_len, &now, record->entry);
    log_append_deletion(p->log, record->deletion, &now, record->entry);
    return 1;
}

static void run_turns(struct partition *p)
{
    struct instances_record record;
    uint64_t const base = log_facts(p->log)->base, done = projection_projected(p->projection);
    while (partition_may_run(p) && instances_run(p->instances, done > base ? done - base : 0, &record)) {
        size_t const records = partition_append(p, &record);
        p->turns += record.turn != NULL;
        if (record.wake.due_ms > 0)
            projection_wake(p->projection, &record.wake);
        instances_ran(p->instances, records, log_facts(p->log)->next_n - 1);
    }
    instances_evict(p->instances);
}

bool partition_drop(struct partition *p, thole_slice instance)
{
    return instances_drop(p->instances, instance);
}

static void partition_serve(struct partition *p)
{
    struct projection_timer due;
    while (projection_take_due(p->projection, &due))
        instances_timer(p->instances, due.instance, due.execution, due.timer_id);
    instances_wake(p->instances);
    run_turns(p);
    if (partition_unlisted(p) && partition_may_run(p))
        append_position(p);
    partition_purge(p, PURGE_EVERY);
    uint64_t const confirmed = log_facts(p->log)->confirmed_seq;
    if (projection_unconfirmed(p->projection, confirmed) && log_facts(p->log)->in_flight == 0 &&
        log_is_open(p->log))
        append_position(p);
    projection_remove(p->projection, confirmed);
    look_for_dispensable(p);
    if (!is_quiet(p) || p->env.now_ms < p->busy_ms + p->env.options.idle_ms)
        return;
    if (partition_save(p))
        return;
    partition_purge(p, 1);
    if (instances_counts_wanted(p->instances))
        instances_count_again(p->instances);
}

/* When it may close, as far as it has nothing to commit or to project: the next owner sends the CloudEvents
 * that are not stored, and sends those again of which the log does not say that they are. */
static uint64_t may_close_ms(const struct partition *p)
{
    return projection_emissions(p->projection) == 0 ? p->env.now_ms : p->closing_ms + CLOSING_EVENTS_MS;
}

static void partition_finish(struct partition *p)
{
    if (log_facts(p->log)->in_flight > 0 || !projection_idle(p->projection) ||
        p->env.now_ms < may_close_ms(p) || partition_save(p))
        return;
    if (inbox_unpurged(p))
        partition_purge(p, 1);
    else
        partition_close_now(p, "handed over", false);
}

bool partition_flush(struct partition *p, uint64_t now_ms, bool rows)
{
    if (now_ms > p->env.now_ms)
        p->env.now_ms = now_ms;
    /* Not with each input: one batch takes the records of all. */
    bool const rows_wait = p->phase != PHASE_CLOSED && projection_pump(p->projection, rows);
    instances_tell_ends(p->instances, log_facts(p->log)->committed_n);
    if (p->phase == PHASE_SERVING && !p->ending)
        partition_serve(p);
    else if (p->phase == PHASE_CLOSING && !p->ending)
        partition_finish(p);
    (void)after_step(p); /* out of memory: CLOSED follows */
    return rows_wait;
}

uint64_t partition_deadline_ms(const struct partition *p)
{
    if (p->ending)
        return UINT64_MAX;
    if (p->phase == PHASE_CLOSING)
        return log_facts(p->log)->in_flight == 0 && projection_idle(p->projection) ? may_close_ms(p)
                                                                                   : UINT64_MAX;
    if (p->phase != PHASE_SERVING)
        return UINT64_MAX;
    uint64_t deadline = projection_deadline_ms(p->projection);
    uint64_t const look = folding_due_ms(&p->folding), wake = instances_deadline_ms(p->instances);
    deadline = look < deadline ? look : deadline;
    deadline = wake < deadline ? wake : deadline;
    if (is_quiet(p) && (rows_owed(p) || inbox_unpurged(p) || instances_counts_wanted(p->instances))) {
        uint64_t const idle = p->busy_ms + p->env.options.idle_ms;
        deadline = idle < deadline ? idle : deadline;
    }
    return deadline;
}

static size_t room_of(size_t held, size_t max)
{
    return held < max ? max - held : 0;
}

static size_t partition_least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* The oldest messages first: messages after waiting ones (which mostly wait for a history) are not taken, so
 * that a record has few ranges. While none waits there is room: the first message that is not incorporated
 * must come. */
size_t partition_room(const struct partition *p)
{
    const struct partition_options *const options = &p->env.options;
    const struct progress *const progress = instances_inbox(p->instances);
    uint64_t const ahead = progress->received > progress->floor ? progress->received - progress->floor : 0;
    bool const many = progress->open > 0 && progress->ranges_len > 2 * options->waiting_max;
    if (p->phase != PHASE_SERVING || many)
        return 0;
    size_t const resting = partition_least(instances_resting(p->instances), options->resting_max);
    size_t const room = room_of((size_t)progress->open, options->waiting_max + resting);
    return lists_wanted(p) ? partition_least(room, room_of((size_t)ahead, options->ahead_max)) : room;
}

size_t partition_pending(const struct partition *p)
{
    return instances_pending(p->instances);
}

size_t partition_pending_bytes(const struct partition *p)
{
    return instances_pending_bytes(p->instances);
}

/* --- facts --------------------------------------------------------------------------------------- */

enum partition_state partition_state(const struct partition *p)
{
    switch (p->phase) {
    case PHASE_CLOSED: return PARTITION_CLOSED;
    case PHASE_SERVING: return PARTITION_OPEN;
    case PHASE_CLOSING: return PARTITION_CLOSING;
    case PHASE_LOG:
    case PHASE_PROJECTION:
    case PHASE_CRASHES:
    case PHASE_LIVE:
    case PHASE_TIMERS: break;
    }
    return PARTITION_OPENING;
}

uint64_t partition_epoch(const struct partition *p)
{
    return log_facts(p->log)->epoch;
}

bool partition_rows(const struct partition *p, struct rows_state *ret)
{
    return projection_rows(p->projection, ret) && p->phase == PHASE_SERVING && !p->ending;
}

uint64_t partition_generation(const struct partition *p)
{
    return p->env.generation;
}

uint64_t partition_open_activities(const struct partition *p)
{
    return instances_open_activities(p->instances);
}

uint64_t partition_committed_n(const struct partition *p)
{
    return log_facts(p->log)->committed_n;
}

uint64_t partition_committed_sequence(const struct partition *p)
{
    const struct log_facts *const facts = log_facts(p->log);
    return facts->base == 0 ? 0 : facts->base + facts->committed_n;
}

/* Of this epoch: it begins when all before it is projected. */
static uint64_t partition_unprojected(const struct partition *p)
{
    const struct log_facts *const facts = log_facts(p->log);
    uint64_t const last = facts->base + facts->committed_n, done = projection_projected(p->projection);
    if (p->phase != PHASE_SERVING || done >= last)
        return 0;
    return last - done < facts->committed_n ? last - done : facts->committed_n;
}

struct partition_facts partition_facts(const struct partition *p)
{
    const struct log_facts *const facts = log_facts(p->log);
    return (struct partition_facts){.turns = p->turns,
                                    .unprojected = partition_unprojected(p),
                                    .open_activities = instances_open_activities(p->instances),
                                    .emissions = projection_emissions(p->projection),
                                    .appends = facts->in_flight,
                                    .append_bytes = facts->in_flight_bytes,
                                    .instances = instances_in_memory(p->instances),
                                    .parked = instances_parked(p->instances),
                                    .early = instances_early(p->instances),
                                    .early_bytes = instances_early_bytes(p->instances)};
}

bool partition_idle(const struct partition *p)
{
    return p->phase == PHASE_SERVING && is_quiet(p) && !rows_owed(p) &&
           instances_pending(p->instances) == 0 && instances_deadline_ms(p->instances) == UINT64_MAX &&
           instances_counts_exact(p->instances) && projection_removals(p->projection) == 0 &&
           projection_emissions(p->projection) == 0;
}

size_t partition_live_names(const struct partition *p, const thole_slice **ret_names)
{
    return instances_live_names(p->instances, ret_names);
}

void partition_check(const struct partition *p)
{
    enum log_state const log = log_state(p->log);
    enum projection_state const projection = projection_state(p->projection);
    log_check(p->log);
    projection_check(p->projection);
    instances_check(p->instances);
    assert((p->phase == PHASE_CLOSED) == (log == LOG_CLOSED) && log != LOG_FOUND && log != LOG_LOST);
    assert((p->phase > PHASE_LOG) == (log == LOG_OPEN || log == LOG_FAILING) || log == LOG_FAILING);
    assert((p->phase < PHASE_PROJECTION) == (projection == PROJECTION_CLOSED) &&
           projection != PROJECTION_FAILED);
    assert((p->phase > PHASE_PROJECTION) == (projection == PROJECTION_CURRENT));
    assert(instances_records_in_flight(p->instances) <= log_facts(p->log)->in_flight);
    assert(log_facts(p->log)->floor <= instances_inbox(p->instances)->floor);
    assert(!p->ending || log_facts(p->log)->in_flight > 0);
    assert(!p->env.nomem);
}
