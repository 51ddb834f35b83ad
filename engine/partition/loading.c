/* A history as read from the stream becomes a parked instance, or a reason why it cannot. */
#include "log_rule.h"
#include "machine.h"
#include "turn_list.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { HISTORY_ARENA_MAX = 1024 * 1024 * 1024 };

struct history { /* the counted records of the newest execution, in order */
    struct turn_list list;
    bool damaged, too_new, foreign;
    uint64_t execution;       /* the newest one */
    uint64_t lost;            /* records of it that do not decode, behind the last one that does */
    struct deletion deletion; /* of the life before; instance empty: there was none */
};

/* What may be left of what stood before is on its way out, and nothing is missing. */
static void begin_again(struct history *history, const struct deletion *deletion)
{
    history->list.len = history->list.held = 0;
    history->damaged = history->too_new = false;
    history->execution = history->lost = 0;
    history->deletion = *deletion;
}

/* Its subject says whose it is. What is of an execution that another has followed is missed by nobody. */
static void note_damage(struct history *history, const struct log_record *record)
{
    if (record->execution < history->execution)
        return;
    history->lost = record->execution > history->execution ? 1 : history->lost + 1;
    history->execution = record->execution;
    history->damaged = true;
}

static void take(struct history *history, const struct record *record)
{
    const struct turn *turn = &record->turn;
    turn_list_take(&history->list, record);
    if (turn->more || turn->execution < history->execution)
        return;
    history->damaged &= turn->execution == history->execution;
    history->execution = turn->execution;
    history->lost = 0;
}

static struct history decode(struct partition *p, const struct partition_in *in, struct arena *arena)
{
    struct history history = {.list.records =
                                  arena_array(arena, in->records_len + 1, sizeof *history.list.records)};
    if (history.list.records == NULL) {
        env_no_memory(&p->env);
        return history;
    }
    struct log_rule const rule = log_view(p->log);
    for (size_t i = 0; i < in->records_len; i++) {
        struct record record;
        thole_status const status = record_decode(in->records[i].bytes, arena, &record, NULL);
        if (status == THOLE_NOMEM) {
            env_no_memory(&p->env);
            return history;
        }
        history.foreign |=
            log_rule_foreign(&rule, status == THOLE_OK ? &record : NULL, in->records[i].sequence);
        history.too_new |= status == THOLE_UNSUPPORTED;
        if (status != THOLE_OK && status != THOLE_UNSUPPORTED)
            note_damage(&history, &in->records[i]);
        if (status != THOLE_OK || log_rule_judge(&rule, &record, in->records[i].sequence) != LOG_COUNTS)
            continue;
        if (record.kind == RECORD_TURN)
            take(&history, &record);
        else if (record.kind == RECORD_DELETED)
            begin_again(&history, &record.deletion);
    }
    return history;
}

/* --- facts that need no code --------------------------------------------------------------------- */

static void note_turn(struct partition *p, struct slot *slot, const struct turn *turn)
{
    bool nomem = false;
    slot->execution = turn->execution;
    slot->turns = turn->number;
    slot->time_ms = turn->time_ms;
    slot->blocked = turn->ran ? BLOCKED_NOT : turn->blocked;
    for (size_t i = 0; i < turn->events_len; i++) {
        const struct event *event = &turn->events[i];
        slot_note(slot, event);
        (void)slot_note_tries(slot, event, &nomem);
        if (event_is_terminal(event->kind))
            slot->state = event->kind == EVENT_CONTINUED_AS_NEW ? SLOT_CONTINUED : SLOT_ENDED;
    }
    if (nomem)
        env_no_memory(&p->env);
}

/* --- instances ----------------------------------------------------------------------------------- */

/* An instance that has been through all turns; code NULL: without. */
static thole_status replay(struct partition *p, struct slot *slot, const thole_orchestration_entry *code,
                           const struct turn *turns, size_t n, thole_error *reterr)
{
    thole_status status = turns_instance(p, slot, code, &slot->instance);
    if (status != THOLE_OK)
        return thole_fail(reterr, status, "out of memory");
    status = watched_replay(p, slot, code, turns, n, reterr);
    if (status == THOLE_OK)
        return THOLE_OK;
    instance_destroy(slot->instance);
    slot->instance = NULL;
    return status;
}

static void block_raw(struct slot *slot, enum blocked_kind kind, const char *text)
{
    slot->state = SLOT_BLOCKED;
    slot->raw = true;
    slot_block(slot, kind, thole_slice_from(text));
}

/* It is in the execution that its records' subjects say; in the first one at least, for nothing can end in
 * execution 0. */
static void block_damaged(struct slot *slot, const struct history *history)
{
    uint64_t const execution = history->execution == 0 ? history->deletion.execution + 1 : history->execution;
    if (execution != slot->execution)
        slot->turns = slot->events = 0;
    if (execution == history->execution)
        slot->turns += history->lost;
    slot->execution = execution;
    block_raw(slot, BLOCKED_DAMAGED, "a record of the history does not decode");
}

/* What its history says of it, if nothing can be run. False: not even that. */
static bool replay_bare(struct partition *p, struct slot *slot, const struct turn *turns, size_t n)
{
    thole_error err = {0};
    thole_status const status = slot->raw ? THOLE_LIMIT : replay(p, slot, NULL, turns, n, &err);
    if (status == THOLE_OK)
        return true;
    if (status == THOLE_NOMEM)
        env_no_memory(&p->env);
    else if (slot->raw)
        slot->state = SLOT_BLOCKED;
    else
        block_raw(slot, turns_blocked_by(status), err.text);
    return false;
}

/* True: it is live. Else why not is noted. */
static bool replay_code(struct partition *p, struct slot *slot, const struct turn *turns, size_t n)
{
    const thole_orchestration_entry *code = turns_code(p, slot->orchestration, slot->version);
    thole_error err = {0};
    if (slot->failed != BLOCKED_NOT) {
        slot->blocked = slot->failed; /* its text is still there */
        return false;
    }
    if (suspects_stuck(p, slot))
        return false;
    if (code == NULL) {
        turns_no_code(p, slot);
        return false;
    }
    thole_status status = replay(p, slot, code, turns, n, &err);
    bool const crashed = status == THOLE_APP;
    while (status == THOLE_APP && !suspects_stuck(p, slot))
        status = replay(p, slot, code, turns, n, &err);
    if (crashed)
        suspects_tell(p, slot);
    if (status == THOLE_APP)
        return false;
    if (status == THOLE_NOMEM && !slot->squeezed) {
        slot->squeezed = true; /* others go, and so do their stacks */
        slots_evict(&p->slots, p->slots.len / 2);
        status = replay(p, slot, code, turns, n, &err);
    }
    if (status != THOLE_OK) {
        slot_block(slot, turns_blocked_by(status), thole_slice_from(err.text));
        slot->failed = slot->blocked;
    }
    return status == THOLE_OK;
}

static void settle_turns(struct partition *p, struct slot *slot, const struct turn *turns, size_t n)
{
    if (slot->state == SLOT_CONTINUED) {
        (void)replay_bare(p, slot, turns, n); /* for what it hands on */
    } else if (replay_code(p, slot, turns, n)) {
        slot->state = SLOT_LIVE;
    } else if (replay_bare(p, slot, turns, n)) {
        slot->state = SLOT_BLOCKED;
    }
}

/* Memory of @p arena. NULL: none left. */
static struct turn *join(const struct history *history, struct arena *arena, size_t *ret_len)
{
    struct turn *turns = arena_array(arena, history->list.len, sizeof *turns);
    *ret_len = 0;
    for (size_t first = 0, parts; turns != NULL && first < history->list.len; first += parts) {
        struct turn *turn = &turns[*ret_len];
        parts = turn_list_join(&history->list, first, arena, turn);
        if (parts == 0)
            return NULL;
        if (!turn->more)
            ++*ret_len;
    }
    return turns;
}

/* It has ended: its code goes through all of it once more to answer, and is let go. */
static void recall(struct partition *p, struct slot *slot, const struct history *history,
                   const struct turn *turns, size_t n)
{
    const thole_orchestration_entry *code = turns_code(p, slot->orchestration, slot->version);
    thole_error err = {0};
    thole_status status = THOLE_OK;
    if (history->too_new || history->damaged)
        status = thole_fail(&err, THOLE_INVALID, "it has ended, and its history cannot be read here");
    else if (code == NULL)
        status = thole_fail(&err, THOLE_INVALID, "it has ended, and its code is not registered here");
    else if (suspects_stuck(p, slot))
        status = thole_fail(&err, THOLE_INVALID, "%.*s", THOLE_FMT(slot->blocked_text));
    else
        status = replay(p, slot, code, turns, n, &err);
    if (status == THOLE_NOMEM) {
        slots_evict(&p->slots, p->slots.len / 2);
        status = replay(p, slot, code, turns, n, &err);
    }
    if (status == THOLE_APP)
        suspects_tell(p, slot);
    if (status == THOLE_OK)
        queries_answer(p, slot);
    else
        queries_refuse(p, slot, status == THOLE_NOMEM ? THOLE_UNAVAILABLE : THOLE_INVALID,
                       thole_slice_from(err.text));
    instance_destroy(slot->instance);
    slot->instance = NULL;
}

static void settle(struct partition *p, struct slot *slot, const struct history *history, struct arena *arena)
{
    size_t n = 0;
    const struct turn *turns = join(history, arena, &n);
    if (turns == NULL) {
        env_no_memory(&p->env);
        return;
    }
    if (history->deletion.instance.len > 0) {
        slot->execution = 0;
        deletion_note(slot, &history->deletion);
    }
    for (size_t i = 0; i < n; i++)
        note_turn(p, slot, &turns[i]);
    if (slot->state == SLOT_ENDED) {
        if (slot->questions != NULL)
            recall(p, slot, history, turns, n);
        return;
    }
    if (history->too_new)
        block_raw(slot, BLOCKED_TOO_NEW, "the history was written by a newer version of thole");
    else if (history->damaged)
        block_damaged(slot, history);
    else if (n == 0)
        slot->state = SLOT_ABSENT;
    else if (slot->execution == 0)
        early_load(p, slot, turns, n);
    else
        settle_turns(p, slot, turns, n);
}

void loading_history(struct partition *p, const struct partition_in *in)
{
    struct slot *slot = slots_find_token(&p->slots, in->token, in->instance);
    if (slot == NULL || slot->reload)
        return;
    assert(slot->in_flight == 0);
    p->slots.recalled_len -= slot->recalled;
    slot->recalled = false;
    struct arena arena;
    arena_init(&arena, HISTORY_ARENA_MAX);
    struct history const history = decode(p, in, &arena);
    bool const was_retry = slot->retry;
    if (!p->env.nomem && !history.foreign)
        settle(p, slot, &history, &arena);
    arena_release(&arena);
    if (p->env.nomem)
        return;
    if (history.foreign) {
        partition_doubt(p, LOG_FOREIGN);
        return;
    }
    /* What the rows count it for, before anything new is committed. */
    slot->counted = slot->execution > 0 && slot->state != SLOT_ENDED && slot->state != SLOT_ABSENT;
    slot->counted_version = slot->version;
    slot->old_execution = slot->execution;
    slot->old_events = slot->events;
    /* An owner that can run what another could not: run it, so that its status says so. */
    slot->retry = was_retry && slot->state == SLOT_LIVE;
    slots_touch(&p->slots, slot);
    if (slot->questions != NULL && slot->state != SLOT_CONTINUED)
        queries_answer(p, slot);
    if (slot->first != NULL || slot->retry || slot->state == SLOT_CONTINUED)
        slots_ready(&p->slots, slot);
}
