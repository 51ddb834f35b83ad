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
    p->options = *options;
    memcpy(p->node, options->node.ptr, options->node.len);
    p->event_room = options->record_max - record_beside(options);
    slots_init(&p->slots);
    timer_book_reset(&p->timers);
    return p;
}

/* --- outputs ------------------------------------------------------------------------------------- */

static void node_destroy(struct out_node *node)
{
    if (node == NULL)
        return;
    if (node->out.kind == PARTITION_OUT_APPLY)
        batch_destroy(node->out.batch); /* not taken: still ours */
    arena_release(&node->own);
    free(node);
}

struct partition_out *partition_emit(struct partition *p, enum partition_out_kind kind)
{
    struct out_node *node = calloc(1, sizeof *node);
    if (node == NULL) {
        partition_no_memory(p);
        arena_release(&p->spare.own);
        p->spare.out = (struct partition_out){.kind = kind};
        arena_init(&p->spare.own, SIZE_MAX / 2);
        return &p->spare.out;
    }
    arena_init(&node->own, SIZE_MAX / 2);
    node->out.kind = kind;
    node->out.generation = p->generation;
    if (p->out_last != NULL)
        p->out_last->next = node;
    else
        p->out_first = node;
    p->out_last = node;
    return &node->out;
}

static struct arena *last_arena(struct partition *p)
{
    return p->nomem || p->out_last == NULL ? &p->spare.own : &p->out_last->own;
}

thole_slice partition_out_copy(struct partition *p, thole_slice from)
{
    thole_slice copy = {0};
    if (from.len > 0 && arena_dup(last_arena(p), from, &copy) != THOLE_OK)
        partition_no_memory(p);
    return copy;
}

uint64_t *partition_out_numbers(struct partition *p, size_t n)
{
    uint64_t *numbers = arena_array(last_arena(p), n, sizeof *numbers);
    if (numbers == NULL)
        partition_no_memory(p);
    return numbers;
}

bool partition_poll(struct partition *p, struct partition_out *ret)
{
    if (p->out_taken != NULL) {
        p->out_taken->out.batch = NULL; /* given away */
        node_destroy(p->out_taken);
        p->out_taken = NULL;
    }
    struct out_node *node = p->out_first;
    if (node == NULL)
        return false;
    p->out_first = node->next;
    if (p->out_first == NULL)
        p->out_last = NULL;
    p->out_taken = node;
    *ret = node->out;
    return true;
}

static void clear_outputs(struct partition *p)
{
    for (struct out_node *next; p->out_first != NULL; p->out_first = next) {
        next = p->out_first->next;
        node_destroy(p->out_first);
    }
    p->out_last = NULL;
}

/* --- states -------------------------------------------------------------------------------------- */

void partition_no_memory(struct partition *p)
{
    p->nomem = true;
}

static void forget(struct partition *p)
{
    clear_outputs(p);
    projector_release(&p->projector);
    chain_release(&p->chain);
    slots_release(&p->slots);
    timer_book_reset(&p->timers);
    progress_release(&p->progress);
    names_release(p);
    outbox_release(p);
    redo_release(&p->redo);
    deletion_release(p);
    suspects_release(&p->suspects);
    p->purged_below = 0;
    p->open_activities = 0;
    p->recount = p->recounting = false;
    p->ending = false;
    p->rejecting = 0;
    p->redo_reading = p->redo_unproven = p->tail_again = false;
    p->phase = PHASE_CLOSED;
    p->generation++;
}

void partition_drop(struct partition *p, const char *why, bool reopen)
{
    if (p->phase == PHASE_CLOSED)
        return;
    char text[512] = {0};
    for (size_t i = 0; i + 1 < sizeof text && why != NULL && why[i] != '\0'; i++)
        text[i] = why[i];
    uint64_t const epoch = p->chain.base > 0 ? p->chain.epoch : 0, committed = p->chain.committed_n;
    forget(p);
    struct partition_out *out = partition_emit(p, PARTITION_OUT_CLOSED);
    out->epoch = epoch;
    out->count = committed;
    out->reopen = reopen;
    out->text = (const char *)partition_out_copy(p, thole_slice_from(text)).ptr;
    if (out->text == NULL)
        out->text = "";
}

void partition_destroy(struct partition *p)
{
    if (p == NULL)
        return;
    forget(p);
    if (p->out_taken != NULL) {
        p->out_taken->out.batch = NULL;
        node_destroy(p->out_taken);
    }
    arena_release(&p->spare.own);
    free(p);
}

static void open(struct partition *p)
{
    if (p->phase != PHASE_CLOSED)
        return;
    p->generation++;
    opening_start(p);
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
    if (p->chain.len == 0) {
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
    if ((p->phase == PHASE_SERVING || p->phase == PHASE_CLOSING) && epoch > p->chain.epoch)
        partition_doubt(p, "a rival opens the partition");
}

/* Nothing was read from it since the partition was opened: the position is the one that was found then. */
static void inbox_back(struct partition *p)
{
    p->gone = progress_seen(&p->progress);
    partition_doubt(p, "the inbox lost its tail or was made anew: it is read again");
}

static void answer(struct partition *p, const struct partition_in *in)
{
    switch (in->kind) {
    case PARTITION_IN_OPEN: open(p); break;
    case PARTITION_IN_CLOSE: close_gracefully(p); break;
    case PARTITION_IN_DOUBT: partition_doubt(p, in->text); break;
    case PARTITION_IN_RIVAL: hear_of_rival(p, in->sequence); break;
    case PARTITION_IN_TAIL: opening_tail(p, in); break;
    case PARTITION_IN_DELETED: opening_deleted(p); break;
    case PARTITION_IN_APPENDED: chain_appended(p, in); break;
    case PARTITION_IN_APPEND_FAILED: chain_append_failed(p, in); break;
    case PARTITION_IN_STORE_OPENED: opening_store(p, in); break;
    case PARTITION_IN_STORE_RESET: opening_reset(p); break;
    case PARTITION_IN_LOG: opening_log(p, in); break;
    case PARTITION_IN_RESULTS: opening_results(p, in); break;
    case PARTITION_IN_LIVE: opening_live(p, in); break;
    case PARTITION_IN_TIMERS:
        timer_book_loaded(p, in);
        opening_timers(p);
        break;
    case PARTITION_IN_APPLIED: project_applied(p, in); break;
    case PARTITION_IN_PUBLISHED: project_published(p, in); break;
    case PARTITION_IN_SENT: outbox_sent(p, in); break;
    case PARTITION_IN_MESSAGE: intake_message(p, in); break;
    case PARTITION_IN_INBOX_BACK: inbox_back(p); break;
    case PARTITION_IN_HISTORY:
        if ((in->token & OUTBOX_TOKEN) != 0)
            outbox_history(p, in);
        else
            loading_history(p, in);
        break;
    case PARTITION_IN_REMOVED: deletion_removed(p, in); break;
    case PARTITION_IN_REJECTED: rejections_kept(p, in); break;
    case PARTITION_IN_CRASHES: suspects_read(p, in); break;
    case PARTITION_IN_QUERY: queries_ask(p, in); break;
    }
}

static void after_step(struct partition *p)
{
    if (!p->nomem && p->phase != PHASE_CLOSED)
        project_pump(p);
    if (!p->nomem && p->phase == PHASE_REDO)
        opening_redo_more(p);
    if (!p->nomem && p->ending && p->chain.len == 0)
        partition_drop(p, p->ending_why, true);
    if (p->nomem) {
        p->nomem = false;
        partition_drop(p, "out of memory", true);
    }
}

thole_status partition_input(struct partition *p, const struct partition_in *in, uint64_t now_ms)
{
    if (now_ms > p->now_ms)
        p->now_ms = now_ms;
    bool const unconditional = in->kind == PARTITION_IN_OPEN || in->kind == PARTITION_IN_CLOSE ||
                               in->kind == PARTITION_IN_RIVAL || in->kind == PARTITION_IN_QUERY;
    if (!unconditional && in->generation != p->generation)
        return THOLE_OK;
    answer(p, in);
    bool const nomem = p->nomem;
    after_step(p);
    return nomem ? THOLE_NOMEM : THOLE_OK;
}

/* --- time ---------------------------------------------------------------------------------------- */

static bool quiet(const struct partition *p)
{
    return p->chain.len == 0 && project_idle(p) && p->slots.ready_first == NULL && p->refusals == NULL &&
           p->rejecting == 0;
}

static bool unsaved(const struct partition *p)
{
    return p->progress.dirty || project_unsaid(p) || p->projector.watermark.seq > p->projector.watermark_sent;
}

static bool unpurged(const struct partition *p)
{
    return p->chain.committed_floor > 1 && p->chain.committed_floor > p->purged_below;
}

/* The message at the floor stays: it may be the one by which the stream is known. */
static void purge(struct partition *p, uint64_t step)
{
    uint64_t const below = p->chain.committed_floor;
    if (below < p->purged_below + step || below <= 1)
        return;
    struct seen const seen = progress_seen(&p->progress);
    struct partition_out *out = partition_emit(p, PARTITION_OUT_PURGE_INBOX);
    p->purged_below = out->from = below;
    out->sequence = seen.sequence;
    out->stored_ns = seen.stored_ns;
}

/* Saves what only memory knows, once nothing else is going on. */
static void save(struct partition *p)
{
    if (p->chain.failed)
        return;
    if (p->progress.dirty || project_unsaid(p))
        chain_append(p, RECORD_POSITION, NULL, NULL);
    else
        project_save_watermark(p);
}

static void serve(struct partition *p)
{
    timer_book_fire(p);
    turns_run_ready(p);
    purge(p, PURGE_EVERY);
    if (deletion_unattested(p) && p->chain.len == 0 && !p->chain.failed)
        chain_append(p, RECORD_POSITION, NULL, NULL);
    if (deletion_undurable(p))
        project_save_watermark(p);
    deletion_pump(p);
    if (!quiet(p) || p->now_ms < p->busy_ms + p->options.idle_ms)
        return;
    if (unsaved(p)) {
        save(p);
        return;
    }
    purge(p, 1);
    if (p->recount && !p->recounting)
        fold_recount(p);
}

static void finish(struct partition *p)
{
    if (p->chain.len > 0 || !project_idle(p))
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
    if (now_ms > p->now_ms)
        p->now_ms = now_ms;
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
        return p->chain.len == 0 && project_idle(p) ? p->now_ms : UINT64_MAX;
    if (p->phase != PHASE_SERVING)
        return UINT64_MAX;
    uint64_t deadline = timer_book_deadline(p);
    if (quiet(p) && (unsaved(p) || unpurged(p) || (p->recount && !p->recounting))) {
        uint64_t const idle = p->busy_ms + p->options.idle_ms;
        deadline = idle < deadline ? idle : deadline;
    }
    return deadline;
}

size_t partition_room(const struct partition *p)
{
    const struct progress *progress = &p->progress;
    uint64_t const ahead = progress->received > progress->floor ? progress->received - progress->floor : 0;
    if (p->phase != PHASE_SERVING || p->slots.pending_len >= PENDING_MAX || ahead >= p->options.ahead_max)
        return 0;
    size_t const room = PENDING_MAX - p->slots.pending_len, ahead_room = p->options.ahead_max - (size_t)ahead;
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
    case PHASE_TAIL:
    case PHASE_DELETE:
    case PHASE_EPOCH:
    case PHASE_STORE:
    case PHASE_RESET:
    case PHASE_REDO:
    case PHASE_CRASHES:
    case PHASE_LIVE:
    case PHASE_TIMERS: break;
    }
    return PARTITION_OPENING;
}

uint64_t partition_epoch(const struct partition *p)
{
    return p->chain.epoch;
}

uint64_t partition_generation(const struct partition *p)
{
    return p->generation;
}

uint64_t partition_open_activities(const struct partition *p)
{
    return p->open_activities;
}

uint64_t partition_committed_n(const struct partition *p)
{
    return p->chain.committed_n;
}

bool partition_idle(const struct partition *p)
{
    return p->phase == PHASE_SERVING && quiet(p) && !unsaved(p) && p->slots.pending_len == 0 && !p->recount &&
           !p->recounting && p->removals.len == 0;
}
