/*
 * The fenced append pipeline. Record n of an epoch is stored at base + n or not at all: it expects the last
 * sequence to be base + n - 1. A record is committed when 1..n are all acknowledged (prefix rule).
 */
#include "machine.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

static void link_release(struct link *link)
{
    buf_release(&link->bytes);
    arena_release(&link->arena);
}

void chain_release(struct chain *chain)
{
    for (size_t i = 0; i < chain->len; i++)
        link_release(&chain->links[(chain->head + i) % chain->cap]);
    free(chain->links);
    *chain = (struct chain){0};
}

static struct link *chain_push(struct chain *chain)
{
    if (chain->len == chain->cap) {
        size_t const cap = chain->cap == 0 ? 64 : chain->cap * 2;
        struct link *links = calloc(cap, sizeof *links);
        if (links == NULL)
            return NULL;
        for (size_t i = 0; i < chain->len; i++)
            links[i] = chain->links[(chain->head + i) % chain->cap];
        free(chain->links);
        chain->links = links;
        chain->cap = cap;
        chain->head = 0;
    }
    struct link *link = &chain->links[(chain->head + chain->len++) % chain->cap];
    *link = (struct link){0};
    return link;
}

/* Encodes the record, enters it into the pipeline and asks the host to append it. NULL: out of memory. */
static struct link *append(struct partition *p, struct record *record, struct slot *slot, bool moves_position)
{
    struct chain *chain = &p->chain;
    struct link *link = chain_push(chain);
    if (link == NULL) {
        partition_no_memory(p);
        return NULL;
    }
    record->epoch = chain->epoch;
    record->n = chain->next_n++;
    record->committed = chain->committed_n;
    record->published = chain->said_published = project_published_seq(p);
    link->n = record->n;
    link->slot = slot;
    link->execution = record->turn.execution;
    link->committed = record->committed;
    link->floor = moves_position ? p->progress.floor : chain->committed_floor;
    buf_init(&link->bytes, RECORD_BYTES_MAX);
    if (record_encode(record, &link->bytes) != THOLE_OK) {
        partition_no_memory(p);
        return NULL;
    }
    if (slot != NULL)
        slot->in_flight++;
    if (moves_position)
        p->progress.dirty = false;
    struct partition_out *out = partition_emit(p, PARTITION_OUT_APPEND);
    out->record_kind = record->kind;
    out->n = record->n;
    out->expected_last = record->n == 0 ? p->tail_last : chain->base + record->n - 1;
    out->bytes = buf_bytes(&link->bytes);
    if (slot != NULL) {
        out->instance = slot->id;
        out->execution = record->turn.execution;
    }
    return link;
}

static struct position position_now(const struct partition *p)
{
    const struct progress *progress = &p->progress;
    return (struct position){progress->floor, progress->above, progress->above_len, progress->seen.sequence,
                             progress->seen.stored_ns};
}

/* What the orchestration's lines wait for: until then nobody is to hear of the turn. */
static void keep_logs(struct partition *p, struct link *link, const struct turn_log *logs, size_t n)
{
    arena_init(&link->arena, SIZE_MAX / 2);
    link->logs = arena_array(&link->arena, n, sizeof *link->logs);
    for (size_t i = 0; i < n && link->logs != NULL; i++) {
        link->logs[i].level = logs[i].level;
        if (arena_dup(&link->arena, logs[i].text, &link->logs[i].text) != THOLE_OK)
            link->logs = NULL;
    }
    link->logs_len = n;
    if (link->logs == NULL)
        partition_no_memory(p);
}

/* A turn in as many records as it needs; only the last carries the inbox position. */
void chain_append_turn(struct partition *p, struct slot *slot, const struct turn *turn,
                       const struct turn_log *logs, size_t logs_len)
{
    size_t const overhead = RECORD_OVERHEAD + turn->instance.len + turn->blocked_text.len +
                            p->progress.above_len * POSITION_BYTES_EACH;
    size_t const room = overhead < p->options.record_max ? p->options.record_max - overhead : 0;
    size_t first = 0;
    p->busy_ms = p->now_ms;
    do {
        size_t bytes = 0, n = 0;
        while (first + n < turn->events_len) {
            size_t const more = event_bytes_max(&turn->events[first + n]);
            if (n > 0 && (bytes + more > room || n == RECORD_EVENTS_MAX))
                break;
            bytes += more;
            n++;
        }
        bool const last = first + n == turn->events_len;
        struct record record = {.kind = RECORD_TURN, .turn = *turn};
        if (last)
            record.position = position_now(p);
        record.turn.events = turn->events + first;
        record.turn.events_len = n;
        record.turn.more = !last;
        struct link *link = append(p, &record, slot, last);
        if (link != NULL && last && logs_len > 0)
            keep_logs(p, link, logs, logs_len);
        first += n;
    } while (first < turn->events_len && !p->nomem);
}

void chain_append(struct partition *p, enum record_kind kind, struct slot *slot, const struct turn *turn)
{
    if (turn != NULL) {
        chain_append_turn(p, slot, turn, NULL, 0);
        return;
    }
    p->busy_ms = p->now_ms;
    struct record record = {.kind = kind, .position = position_now(p)};
    if (kind == RECORD_EPOCH_OPENED) {
        record.node = thole_slice_from(p->node);
        record.time_ms = p->now_ms;
        record.previous_epoch = p->tail_epoch;
        record.previous_n = p->tail_n;
    }
    (void)append(p, &record, NULL, true);
}

void chain_append_deletion(struct partition *p, struct slot *slot, const struct deletion *deletion)
{
    struct record record = {.kind = RECORD_DELETED, .position = position_now(p), .deletion = *deletion};
    p->busy_ms = p->now_ms;
    (void)append(p, &record, slot, true);
}

static void say_lines(struct partition *p, const struct link *link)
{
    for (size_t i = 0; i < link->logs_len; i++) {
        struct partition_out *out = partition_emit(p, PARTITION_OUT_LOG);
        out->level = link->logs[i].level;
        out->instance = partition_out_copy(p, link->slot->id);
        out->execution = link->execution;
        out->data = partition_out_copy(p, link->logs[i].text);
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

static void committed(struct partition *p, struct link *link)
{
    if (link->n > 0)
        fold_record(p, buf_bytes(&link->bytes), p->chain.base + link->n, link->slot, true);
    p->chain.committed_n = link->n;
    p->chain.committed_floor = link->floor;
    p->chain.attested_n = link->committed;
    if (link->slot != NULL) {
        assert(link->slot->in_flight > 0);
        say_lines(p, link);
        if (--link->slot->in_flight == 0)
            settled(p, link->slot);
    }
    link_release(link);
}

/* Records before the failed one may still be acknowledged: only then is what was committed known. */
static void settle_failure(struct partition *p)
{
    struct chain *chain = &p->chain;
    if (chain->len == 0 || chain->links[chain->head].n == chain->failed_n)
        partition_drop(p, chain->why, true);
}

void chain_append_failed(struct partition *p, const struct partition_in *in)
{
    struct chain *chain = &p->chain;
    if (chain->len == 0 || in->n < chain->links[chain->head].n || (chain->failed && in->n >= chain->failed_n))
        return;
    const char *why = in->text != NULL ? in->text : "an append was refused or not answered";
    size_t len = strlen(why);
    if (len >= sizeof chain->why)
        len = sizeof chain->why - 1;
    memcpy(chain->why, why, len);
    chain->why[len] = '\0';
    chain->failed = true;
    chain->failed_n = in->n;
    settle_failure(p);
}

/* The prefix rule: takes from the front what is acknowledged without a gap. */
void chain_appended(struct partition *p, const struct partition_in *in)
{
    struct chain *chain = &p->chain;
    if (chain->len == 0)
        return;
    uint64_t const first = chain->links[chain->head].n;
    if (in->n < first || in->n - first >= chain->len)
        return;
    bool const epoch = in->n == 0;
    if (epoch)
        chain->base = in->sequence;
    if (in->sequence != chain->base + in->n) {
        partition_drop(p, "a record was stored at an unexpected sequence", true);
        return;
    }
    if (chain->failed && in->n >= chain->failed_n)
        return; /* stored behind a gap: void */
    chain->links[(chain->head + (size_t)(in->n - first)) % chain->cap].acked = true;
    p->busy_ms = p->now_ms;
    while (chain->len > 0 && chain->links[chain->head].acked && !p->nomem) {
        assert(!chain->failed || chain->links[chain->head].n < chain->failed_n);
        struct link *link = &chain->links[chain->head];
        committed(p, link);
        chain->head = (chain->head + 1) % chain->cap;
        chain->len--;
    }
    if (chain->failed)
        settle_failure(p);
    else if (epoch)
        opening_epoch_stored(p);
}
