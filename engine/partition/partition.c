#include "partition.h"
#include "machine.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

void partition_options_init(struct partition_options *options)
{
    *options = (struct partition_options){.payload_max = THOLE_PAYLOAD_BYTES_DEFAULT,
                                          .instance_memory_max = 64u * 1024 * 1024,
                                          .record_max = 1000 * 1000,
                                          .parked_max = 1000,
                                          .crash_limit = 2,
                                          .window_max = 256,
                                          .idle_ms = 1000,
                                          .timer_horizon_ms = 60 * 1000,
                                          .early_event_ms = UINT64_C(7) * 24 * 3600 * 1000,
                                          .quarantine_ms = 3600 * 1000,
                                          .ahead_max = PARTITION_AHEAD_MAX,
                                          .log_chunk = 2000};
}

static size_t record_beside(const struct partition_options *options)
{
    return RECORD_OVERHEAD + THOLE_ID_BYTES_MAX + DETAIL_BYTES_MAX + options->ahead_max * POSITION_BYTES_EACH;
}

size_t partition_record_min(const struct partition_options *options)
{
    return record_beside(options) + options->payload_max + EVENT_BYTES_BESIDE;
}

struct partition *partition_create(const struct partition_options *options)
{
    assert(options->window_max > 0 && options->window_max <= PARTITION_WINDOW_MAX);
    assert(options->node.len <= THOLE_NAME_BYTES_MAX);
    assert(options->log_chunk > 0 && options->crash_limit > 0);
    assert(options->ahead_max > 0 && options->ahead_max <= PARTITION_AHEAD_MAX);
    assert(options->record_max >= partition_record_min(options));
    struct partition *p = calloc(1, sizeof *p);
    if (p == NULL)
        return NULL;
    p->env.options = *options;
    memcpy(p->node, options->node.ptr, options->node.len);
    p->env.options.node = thole_slice_from(p->node);
    p->log = log_create(&p->env);
    p->projection = projection_create(&p->env);
    if (p->log == NULL || p->projection == NULL) {
        log_destroy(p->log);
        projection_destroy(p->projection);
        free(p);
        return NULL;
    }
    p->event_room = options->record_max - record_beside(options);
    slots_init(&p->slots);
    return p;
}

bool partition_poll(struct partition *p, struct partition_out *ret)
{
    return env_poll(&p->env, ret);
}

/* --- states -------------------------------------------------------------------------------------- */

static void forget(struct partition *p)
{
    env_clear(&p->env);
    projection_reset(p->projection);
    log_reset(p->log);
    slots_release(&p->slots);
    progress_release(&p->progress);
    names_release(p);
    refusals_release(p);
    suspects_release(&p->suspects);
    p->purged_below = 0;
    p->open_activities = 0;
    p->recount = p->recounting = false;
    p->ending = false;
    p->rejecting = 0;
    p->phase = PHASE_CLOSED;
    p->env.generation++;
}

void partition_drop(struct partition *p, const char *why, bool reopen)
{
    if (p->phase == PHASE_CLOSED)
        return;
    char text[512] = {0};
    for (size_t i = 0; i + 1 < sizeof text && why != NULL && why[i] != '\0'; i++)
        text[i] = why[i];
    uint64_t const epoch = log_facts(p->log)->base > 0 ? log_facts(p->log)->epoch : 0,
                   committed = log_facts(p->log)->committed_n;
    forget(p);
    struct partition_out *out = env_emit(&p->env, PARTITION_OUT_CLOSED);
    out->epoch = epoch;
    out->count = committed;
    out->reopen = reopen;
    out->text = (const char *)env_copy(&p->env, thole_slice_from(text)).ptr;
    if (out->text == NULL)
        out->text = "";
}

void partition_destroy(struct partition *p)
{
    if (p == NULL)
        return;
    forget(p);
    log_destroy(p->log);
    projection_destroy(p->projection);
    env_release(&p->env);
    free(p);
}

static void open(struct partition *p)
{
    if (p->phase != PHASE_CLOSED)
        return;
    p->env.generation++;
    p->phase = PHASE_LOG;
    log_open(p->log);
}

static void close_gracefully(struct partition *p)
{
    if (p->phase == PHASE_SERVING)
        p->phase = PHASE_CLOSING;
    else if (p->phase != PHASE_CLOSED && p->phase != PHASE_CLOSING)
        partition_drop(p, "handed over while opening", false);
}

/*
 * Something is in doubt. What is in flight is answered first (by the server, or by the host when it gives
 * up), so that what this epoch holds for committed is what it is: then the memory goes.
 */
void partition_doubt(struct partition *p, const char *why)
{
    if (log_facts(p->log)->in_flight == 0) {
        partition_drop(p, why, true);
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
        partition_doubt(p, "a rival opens the partition");
}

/* Nothing was read from it since the partition was opened: the position is the one that was found then. */
static void inbox_back(struct partition *p)
{
    p->gone = progress_seen(&p->progress);
    partition_doubt(p, "the inbox lost its tail or was made anew: it is read again");
}

/* --- the log ------------------------------------------------------------------------------------- */

static struct log_saying saying(struct partition *p)
{
    const struct progress *progress = &p->progress;
    p->busy_ms = p->env.now_ms;
    return (struct log_saying){{progress->floor, progress->above, progress->above_len,
                                progress->seen.sequence, progress->seen.stored_ns},
                               projection_done(p->projection)};
}

void partition_append_turn(struct partition *p, struct slot *slot, const struct turn *turn,
                           const struct turn_log *lines, size_t lines_len)
{
    struct log_saying const now = saying(p);
    slot->in_flight += log_append_turn(p->log, turn, lines, lines_len, &now, slot);
    p->progress.dirty = false;
}

void partition_append_deletion(struct partition *p, struct slot *slot, const struct deletion *deletion)
{
    struct log_saying const now = saying(p);
    slot->in_flight++;
    log_append_deletion(p->log, deletion, &now, slot);
    p->progress.dirty = false;
}

static void append_position(struct partition *p)
{
    struct log_saying const now = saying(p);
    log_append_position(p->log, &now);
    p->progress.dirty = false;
}

/*
 * The inbox went back: it lost its tail, or was made anew. What the position says of its sequences means
 * nothing any more: those that stand there now are new messages, or old ones from before the loss, and nobody
 * can tell. All are read (again); by what they say (request ids, event ids) it is known whether they were
 * incorporated. Unless somebody else has opened the partition since and found another position.
 */
static void forget_position(struct partition *p)
{
    struct seen const seen = progress_seen(&p->progress), gone = p->gone;
    p->gone = (struct seen){0};
    if (gone.sequence > 0 && seen.sequence == gone.sequence && seen.stored_ns == gone.stored_ns)
        progress_release(&p->progress); /* the EpochOpened says so before the first message is read */
}

/* The tail of the log is known, and nothing is in it that does not count. */
static void begin_epoch(struct partition *p)
{
    const struct log_tail *tail = log_found(p->log);
    if (progress_set(&p->progress, &tail->position) != THOLE_OK) {
        env_no_memory(&p->env);
        return;
    }
    forget_position(p);
    struct log_saying now = saying(p);
    now.published = tail->published;
    log_begin(p->log, projection_epoch_known(p->projection), &now);
    p->progress.dirty = false;
}

static void say_lines(struct partition *p, const struct log_committed *record)
{
    for (size_t i = 0; i < record->lines_len; i++) {
        struct partition_out *out = env_emit(&p->env, PARTITION_OUT_LOG);
        out->level = record->lines[i].level;
        out->instance = env_copy(&p->env, record->instance);
        out->execution = record->execution;
        out->data = env_copy(&p->env, record->lines[i].text);
    }
}

/* What waited for the last of its records. */
static void settled(struct partition *p, struct slot *slot)
{
    if (slot->reload)
        intake_load(p, slot);
    else if (slot->first != NULL && slot->state != SLOT_LOADING)
        slots_ready(&p->slots, slot);
    else if (slot->questions != NULL && slot->state == SLOT_ENDED)
        queries_answer(p, slot);
}

/* The log is this owner's: the rows are brought up to it. */
static void epoch_opened(struct partition *p)
{
    const struct log_facts *facts = log_facts(p->log);
    const struct log_tail *tail = log_found(p->log);
    struct seen const seen = progress_seen(&p->progress);
    struct projection_start const start = {.epoch = facts->epoch,
                                           .base = facts->base,
                                           .tail_last = tail->last,
                                           .published = tail->published,
                                           .inbox_from = p->progress.floor + 1,
                                           .seen_sequence = seen.sequence,
                                           .seen_ns = seen.stored_ns};
    p->phase = PHASE_PROJECTION;
    projection_open(p->projection, &start);
}

static void committed(struct partition *p, const struct log_committed *record)
{
    struct slot *slot = record->tag;
    struct projection_turns made;
    struct projection_facts facts = {0};
    if (slot != NULL)
        facts = (struct projection_facts){slot->orchestration, slot->parent};
    projection_record(p->projection, record->bytes, record->sequence, slot == NULL ? NULL : &facts, &made);
    p->recount |= made.rows_uncertain;
    if (slot == NULL)
        return;
    count_turns(p, slot, made.turns, made.len);
    assert(slot->in_flight > 0);
    say_lines(p, record);
    if (--slot->in_flight == 0)
        settled(p, slot);
}

/* What the log has to say after an answer. */
static void hear_log(struct partition *p)
{
    struct log_committed record;
    while (log_take_committed(p->log, &record)) {
        if (record.n > 0)
            committed(p, &record);
        else
            epoch_opened(p);
    }
    if (log_state(p->log) == LOG_FOUND)
        begin_epoch(p);
    else if (log_state(p->log) == LOG_LOST)
        partition_drop(p, log_why(p->log), true);
}

/* Whose code has crashed is known: code may run. */
static void read_live(struct partition *p, const struct partition_in *in)
{
    if (p->phase != PHASE_CRASHES)
        return;
    suspects_read(p, in);
    p->phase = PHASE_LIVE;
    env_emit(&p->env, PARTITION_OUT_READ_LIVE);
}

static void live_known(struct partition *p, const struct partition_in *in)
{
    if (p->phase != PHASE_LIVE) {
        counted_again(p, in);
        return;
    }
    for (size_t i = 0; i < in->live_names_len; i++)
        names_add(p, in->live_names[i], in->live_counts[i]);
    p->open_activities = in->live_activities;
    p->phase = PHASE_TIMERS;
    /* Perhaps this node can run what its predecessor could not; what has continued as new goes on. */
    for (size_t i = 0; i < in->blocked_len; i++) {
        struct slot *slot = intake_slot(p, in->blocked[i].instance);
        if (slot != NULL)
            slot->retry = true;
    }
    projection_read_timers(p->projection);
}

static void timers_known(struct partition *p, const struct partition_in *in)
{
    projection_timers(p->projection, in);
    if (p->phase != PHASE_TIMERS)
        return;
    p->phase = PHASE_SERVING;
    p->busy_ms = p->env.now_ms;
    env_emit(&p->env, PARTITION_OUT_OPENED)->epoch = log_facts(p->log)->epoch;
    struct seen const seen = progress_seen(&p->progress);
    struct partition_out *out = env_emit(&p->env, PARTITION_OUT_READ_INBOX);
    out->from = p->progress.floor + 1;
    out->sequence = seen.sequence;
    out->stored_ns = seen.stored_ns;
}

static void sent(struct partition *p, const struct partition_in *in)
{
    if ((in->token & REFUSAL_TOKEN) != 0)
        refusal_sent(p, in->token);
    else
        projection_sent(p->projection, in);
}

static void history(struct partition *p, const struct partition_in *in)
{
    struct log_rule const log = log_view(p->log);
    if ((in->token & PROJECTION_TOKEN) != 0)
        projection_history(p->projection, in, &log);
    else
        loading_history(p, in);
}

static void answer(struct partition *p, const struct partition_in *in)
{
    switch (in->kind) {
    case PARTITION_IN_OPEN: open(p); break;
    case PARTITION_IN_CLOSE: close_gracefully(p); break;
    case PARTITION_IN_DOUBT: partition_doubt(p, in->text); break;
    case PARTITION_IN_RIVAL: hear_of_rival(p, in->sequence); break;
    case PARTITION_IN_TAIL:
        log_tail(p->log, in);
        hear_log(p);
        break;
    case PARTITION_IN_DELETED:
        log_deleted(p->log);
        hear_log(p);
        break;
    case PARTITION_IN_APPENDED:
        p->busy_ms = p->env.now_ms;
        log_appended(p->log, in);
        hear_log(p);
        break;
    case PARTITION_IN_APPEND_FAILED:
        log_append_failed(p->log, in);
        hear_log(p);
        break;
    case PARTITION_IN_STORE_OPENED: projection_store_opened(p->projection, in); break;
    case PARTITION_IN_STORE_RESET: projection_store_reset(p->projection); break;
    case PARTITION_IN_LOG: projection_log(p->projection, in); break;
    case PARTITION_IN_RESULTS: projection_results(p->projection, in, &p->progress); break;
    case PARTITION_IN_LIVE: live_known(p, in); break;
    case PARTITION_IN_TIMERS: timers_known(p, in); break;
    case PARTITION_IN_APPLIED: projection_applied(p->projection, in); break;
    case PARTITION_IN_PUBLISHED: projection_published(p->projection, in); break;
    case PARTITION_IN_SENT: sent(p, in); break;
    case PARTITION_IN_MESSAGE: intake_message(p, in); break;
    case PARTITION_IN_INBOX_BACK: inbox_back(p); break;
    case PARTITION_IN_HISTORY: history(p, in); break;
    case PARTITION_IN_REMOVED:
        if (projection_removed(p->projection, in))
            p->busy_ms = p->env.now_ms;
        break;
    case PARTITION_IN_REJECTED: rejections_kept(p, in); break;
    case PARTITION_IN_CRASHES: read_live(p, in); break;
    case PARTITION_IN_QUERY: queries_ask(p, in); break;
    }
}

/* What the projection has to say after a step. */
static void hear_projection(struct partition *p)
{
    const char *doubt = projection_take_doubt(p->projection);
    if (projection_state(p->projection) == PROJECTION_FAILED) {
        partition_drop(p, projection_why(p->projection), true);
    } else if (doubt != NULL) {
        partition_doubt(p, doubt);
    } else if (p->phase == PHASE_PROJECTION && projection_state(p->projection) == PROJECTION_CURRENT) {
        p->phase = PHASE_CRASHES; /* before any code runs */
        env_emit(&p->env, PARTITION_OUT_READ_CRASHES);
    }
}

static void after_step(struct partition *p)
{
    if (!p->env.nomem && p->phase != PHASE_CLOSED) {
        projection_pump(p->projection);
        hear_projection(p);
    }
    if (!p->env.nomem && p->ending && log_facts(p->log)->in_flight == 0)
        partition_drop(p, p->ending_why, true);
    if (p->env.nomem) {
        p->env.nomem = false;
        partition_drop(p, "out of memory", true);
    }
}

thole_status partition_input(struct partition *p, const struct partition_in *in, uint64_t now_ms)
{
    if (now_ms > p->env.now_ms)
        p->env.now_ms = now_ms;
    bool const unconditional = in->kind == PARTITION_IN_OPEN || in->kind == PARTITION_IN_CLOSE ||
                               in->kind == PARTITION_IN_RIVAL || in->kind == PARTITION_IN_QUERY;
    if (!unconditional && in->generation != p->env.generation)
        return THOLE_OK;
    answer(p, in);
    bool const nomem = p->env.nomem;
    after_step(p);
    return nomem ? THOLE_NOMEM : THOLE_OK;
}

/* --- time ---------------------------------------------------------------------------------------- */

static bool quiet(const struct partition *p)
{
    return log_facts(p->log)->in_flight == 0 && projection_idle(p->projection) &&
           p->slots.ready_first == NULL && p->refusals == NULL && p->rejecting == 0;
}

static bool unsaid(const struct partition *p)
{
    return projection_unsaid(p->projection, log_facts(p->log)->published);
}

static bool unsaved(const struct partition *p)
{
    return p->progress.dirty || unsaid(p) || projection_unsaved(p->projection);
}

static bool unpurged(const struct partition *p)
{
    return log_facts(p->log)->floor > 1 && log_facts(p->log)->floor > p->purged_below;
}

/* The message at the floor stays: it may be the one by which the stream is known. */
static void purge(struct partition *p, uint64_t step)
{
    uint64_t const below = log_facts(p->log)->floor;
    if (below < p->purged_below + step || below <= 1)
        return;
    struct seen const seen = progress_seen(&p->progress);
    struct partition_out *out = env_emit(&p->env, PARTITION_OUT_PURGE_INBOX);
    p->purged_below = out->from = below;
    out->sequence = seen.sequence;
    out->stored_ns = seen.stored_ns;
}

/* Saves what only memory knows, once nothing else is going on. */
static void save(struct partition *p)
{
    if (!log_is_open(p->log))
        return;
    if (p->progress.dirty || unsaid(p))
        append_position(p);
    else
        projection_save(p->projection);
}

static void serve(struct partition *p)
{
    struct projection_timer due;
    while (projection_take_due(p->projection, &due))
        intake_timer(p, &due);
    turns_run_ready(p);
    purge(p, PURGE_EVERY);
    uint64_t const confirmed = log_facts(p->log)->confirmed_seq;
    if (projection_unconfirmed(p->projection, confirmed) && log_facts(p->log)->in_flight == 0 &&
        log_is_open(p->log))
        append_position(p);
    projection_remove(p->projection, confirmed);
    if (!quiet(p) || p->env.now_ms < p->busy_ms + p->env.options.idle_ms)
        return;
    if (unsaved(p)) {
        save(p);
        return;
    }
    purge(p, 1);
    if (p->recount && !p->recounting)
        count_again(p);
}

static void finish(struct partition *p)
{
    if (log_facts(p->log)->in_flight > 0 || !projection_idle(p->projection))
        return;
    if (unsaved(p)) {
        save(p);
        return;
    }
    if (unpurged(p))
        purge(p, 1);
    else
        partition_drop(p, "handed over", false);
}

void partition_flush(struct partition *p, uint64_t now_ms)
{
    if (now_ms > p->env.now_ms)
        p->env.now_ms = now_ms;
    suspects_pump(p);
    if (p->phase == PHASE_SERVING && !p->ending)
        serve(p);
    else if (p->phase == PHASE_CLOSING && !p->ending)
        finish(p);
    after_step(p);
}

uint64_t partition_deadline_ms(const struct partition *p)
{
    if (p->ending)
        return UINT64_MAX;
    if (p->phase == PHASE_CLOSING)
        return log_facts(p->log)->in_flight == 0 && projection_idle(p->projection) ? p->env.now_ms
                                                                                   : UINT64_MAX;
    if (p->phase != PHASE_SERVING)
        return UINT64_MAX;
    uint64_t deadline = projection_deadline_ms(p->projection);
    if (quiet(p) && (unsaved(p) || unpurged(p) || (p->recount && !p->recounting))) {
        uint64_t const idle = p->busy_ms + p->env.options.idle_ms;
        deadline = idle < deadline ? idle : deadline;
    }
    return deadline;
}

size_t partition_room(const struct partition *p)
{
    const struct progress *progress = &p->progress;
    uint64_t const ahead = progress->received > progress->floor ? progress->received - progress->floor : 0;
    if (p->phase != PHASE_SERVING || p->slots.pending_len >= PENDING_MAX || ahead >= p->env.options.ahead_max)
        return 0;
    size_t const room = PENDING_MAX - p->slots.pending_len,
                 ahead_room = p->env.options.ahead_max - (size_t)ahead;
    return room < ahead_room ? room : ahead_room;
}

size_t partition_pending(const struct partition *p)
{
    return p->slots.pending_len;
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

uint64_t partition_generation(const struct partition *p)
{
    return p->env.generation;
}

uint64_t partition_open_activities(const struct partition *p)
{
    return p->open_activities;
}

uint64_t partition_committed_n(const struct partition *p)
{
    return log_facts(p->log)->committed_n;
}

bool partition_idle(const struct partition *p)
{
    return p->phase == PHASE_SERVING && quiet(p) && !unsaved(p) && p->slots.pending_len == 0 && !p->recount &&
           !p->recounting && projection_removals(p->projection) == 0;
}
