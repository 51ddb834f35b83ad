/* A history as read from the stream becomes a parked instance, or a reason why it cannot. */
#include "machine.h"
#include "turn_list.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { HISTORY_ARENA_MAX = 1024 * 1024 * 1024 };

struct history { /* the counted records of the newest execution, in order */
    struct turn_list list;
    bool damaged, too_new;
};

/*
 * Everything up to the epoch's start counts (open has removed the rest); after it only this epoch's.
 */
static bool counts(const struct partition *p, const struct record *record, uint64_t sequence)
{
    if (sequence <= p->chain.base)
        return record->epoch < p->chain.epoch;
    return record->epoch == p->chain.epoch && record->n <= p->chain.committed_n &&
           sequence == p->chain.base + record->n;
}

static struct history decode(struct partition *p, const struct partition_in *in, struct arena *arena)
{
    struct history history = {.list.records =
                                  arena_array(arena, in->records_len + 1, sizeof *history.list.records)};
    if (history.list.records == NULL) {
        partition_no_memory(p);
        return history;
    }
    for (size_t i = 0; i < in->records_len; i++) {
        struct record record;
        thole_status const status = record_decode(in->records[i].bytes, arena, &record, NULL);
        if (status == THOLE_NOMEM) {
            partition_no_memory(p);
            return history;
        }
        bool const counted = in->records[i].sequence <= p->chain.base; /* behind it, it is not ours: void */
        history.too_new |= status == THOLE_UNSUPPORTED && counted;
        history.damaged |= status != THOLE_OK && status != THOLE_UNSUPPORTED && counted;
        if (status == THOLE_OK && record.kind == RECORD_TURN && counts(p, &record, in->records[i].sequence))
            turn_list_take(&history.list, &record);
    }
    return history;
}

/* --- facts that need no code -----------------------------------------------------------------------------
 */

static void note_turn(struct partition *p, struct slot *slot, const struct turn *turn)
{
    slot->execution = turn->execution;
    slot->turns = turn->number;
    slot->time_ms = turn->time_ms;
    slot->blocked = turn->ran ? BLOCKED_NOT : turn->blocked;
    for (size_t i = 0; i < turn->events_len; i++) {
        const struct event *event = &turn->events[i];
        slot->events = event->id;
        if (event->kind == EVENT_STARTED) {
            slot_remember(slot, event->name, &slot->orchestration);
            slot_remember(slot, event->request_id, &slot->request_id);
        }
        slot->cancel_requested |= event->kind == EVENT_CANCEL_REQUESTED;
        if (event_is_terminal(event->kind))
            slot->state = SLOT_ENDED;
        if (slot_mark(slot, event) != THOLE_OK)
            partition_no_memory(p);
    }
    slot->cancel_delivered |= turn->ran && slot->cancel_requested;
}

static void set_blocked(struct slot *slot, enum blocked_kind kind, const char *text)
{
    slot->state = SLOT_BLOCKED;
    slot->blocked = kind;
    slot_remember(slot, thole_slice_from(text), &slot->blocked_text);
}

static enum blocked_kind blocked_by(thole_status status)
{
    switch (status) {
    case THOLE_NONDETERMINISM: return BLOCKED_NONDETERMINISM;
    case THOLE_UNSUPPORTED: return BLOCKED_TOO_NEW;
    case THOLE_LIMIT: return BLOCKED_LIMIT;
    default: return BLOCKED_DAMAGED;
    }
}

static void replay(struct partition *p, struct slot *slot, const struct turn *turns, size_t n)
{
    const thole_orchestration_entry *code = turns_code(p, slot->orchestration);
    thole_error err = {0};
    if (code == NULL) {
        (void)thole_fail(&err, THOLE_NOT_FOUND, "no live engine knows orchestration '%.*s'",
                         THOLE_FMT(slot->orchestration));
        set_blocked(slot, BLOCKED_NO_CODE, err.text);
        return;
    }
    struct instance_options const options = {.code = code->run,
                                             .id = slot->id,
                                             .execution = slot->execution,
                                             .memory_max = p->options.instance_memory_max,
                                             .payload_max = p->options.payload_max,
                                             .stacks = p->options.stacks};
    thole_status status = instance_create(&options, &slot->instance);
    for (size_t i = 0; i < n && status == THOLE_OK; i++)
        status = instance_replay(slot->instance, &turns[i], &err);
    if (status == THOLE_OK) {
        slot->state = SLOT_LIVE;
        return;
    }
    instance_destroy(slot->instance);
    slot->instance = NULL;
    if (status == THOLE_NOMEM)
        partition_no_memory(p);
    else
        set_blocked(slot, blocked_by(status), err.text);
}

static void settle(struct partition *p, struct slot *slot, const struct history *history, struct arena *arena)
{
    struct turn *turns = arena_array(arena, history->list.len, sizeof *turns);
    if (turns == NULL) {
        partition_no_memory(p);
        return;
    }
    size_t n = 0;
    for (size_t first = 0, parts; first < history->list.len; first += parts) {
        parts = turn_list_join(&history->list, first, arena, &turns[n]);
        if (parts == 0) {
            partition_no_memory(p);
            return;
        }
        if (turns[n].more)
            continue;
        note_turn(p, slot, &turns[n++]);
    }
    if (slot->state == SLOT_ENDED)
        return;
    if (n == 0 && !history->damaged && !history->too_new)
        slot->state = SLOT_ABSENT;
    else if (history->too_new)
        set_blocked(slot, BLOCKED_TOO_NEW, "the history was written by a newer version of thole");
    else if (history->damaged)
        set_blocked(slot, BLOCKED_DAMAGED, "a record of the history does not decode");
    else
        replay(p, slot, turns, n);
}

void loading_history(struct partition *p, const struct partition_in *in)
{
    struct slot *slot = slots_find_token(&p->slots, in->token, in->instance);
    if (slot == NULL)
        return;
    assert(slot->in_flight == 0);
    struct arena arena;
    arena_init(&arena, HISTORY_ARENA_MAX);
    struct history const history = decode(p, in, &arena);
    bool const was_retry = slot->retry;
    if (!p->nomem)
        settle(p, slot, &history, &arena);
    arena_release(&arena);
    /* An owner that can run what another could not: run it, so that its status says so. */
    slot->retry = was_retry && slot->state == SLOT_LIVE;
    slots_touch(&p->slots, slot);
    if (slot->first != NULL || slot->retry)
        slots_ready(&p->slots, slot);
}
