/* A history as read from the stream becomes a parked instance, or a reason why it cannot. */
#include "instances_state.h"
#include "log_rule.h"
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

static struct history decode(struct instances *p, const struct in_history *in, const struct log_rule *log,
                             struct arena *arena)
{
    struct history history = {.list.records =
                                  arena_array(arena, in->records_len + 1, sizeof *history.list.records)};
    if (history.list.records == NULL) {
        env_no_memory(p->env);
        return history;
    }
    for (size_t i = 0; i < in->records_len; i++) {
        struct record record;
        thole_status const status = record_decode(in->records[i].bytes, arena, &record, NULL);
        if (status == THOLE_NOMEM) {
            env_no_memory(p->env);
            return history;
        }
        history.foreign |=
            log_rule_foreign(log, status == THOLE_OK ? &record : NULL, in->records[i].sequence);
        history.too_new |= status == THOLE_UNSUPPORTED;
        if (status != THOLE_OK && status != THOLE_UNSUPPORTED)
            note_damage(&history, &in->records[i]);
        if (status != THOLE_OK || log_rule_judge(log, &record, in->records[i].sequence) != LOG_COUNTS)
            continue;
        if (record.kind == RECORD_TURN)
            take(&history, &record);
        else if (record.kind == RECORD_DELETED)
            begin_again(&history, &record.deletion);
    }
    return history;
}

/* --- facts that need no code --------------------------------------------------------------------- */

static void note_turn(struct instances *p, struct entry *entry, const struct turn *turn)
{
    bool nomem = false;
    entry->execution = turn->execution;
    entry->turns = turn->number;
    entry->time_ms = turn->time_ms;
    entry->blocked = turn->ran ? BLOCKED_NOT : turn->blocked;
    for (size_t i = 0; i < turn->events_len; i++) {
        const struct event *event = &turn->events[i];
        entry_note(entry, event);
        (void)entry_note_tries(entry, event, &nomem);
        if (event_is_terminal(event->kind))
            entry_become(entry, event->kind == EVENT_CONTINUED_AS_NEW ? ENTRY_CONTINUED : ENTRY_ENDED);
    }
    if (nomem)
        env_no_memory(p->env);
}

/* --- instances ----------------------------------------------------------------------------------- */

/* An instance that has been through all turns; code NULL: without. */
static thole_status replay(struct instances *p, struct entry *entry, const thole_orchestration_entry *code,
                           const struct turn *turns, size_t n, thole_error *reterr)
{
    entry->instance = turns_instance(p, entry, code);
    thole_status const status = watched_replay(p, entry, code, turns, n, reterr);
    if (status == THOLE_OK)
        return THOLE_OK;
    instance_destroy(entry->instance);
    entry->instance = NULL;
    return status;
}

static void block_raw(struct entry *entry, enum blocked_kind kind, const char *text)
{
    entry_become(entry, ENTRY_BLOCKED);
    entry->raw = true;
    entry_block(entry, kind, thole_slice_from(text));
}

/* It is in the execution that its records' subjects say; in the first one at least, for nothing can end in
 * execution 0. */
static void block_damaged(struct entry *entry, const struct history *history)
{
    uint64_t const execution = history->execution == 0 ? history->deletion.execution + 1 : history->execution;
    if (execution != entry->execution)
        entry->turns = entry->events = 0;
    if (execution == history->execution)
        entry->turns += history->lost;
    entry->execution = execution;
    block_raw(entry, BLOCKED_DAMAGED, "a record of the history does not decode");
}

/* What its history says of it, if nothing can be run. False: not even that. */
static bool replay_bare(struct instances *p, struct entry *entry, const struct turn *turns, size_t n)
{
    thole_error err = {0};
    thole_status const status = entry->raw ? THOLE_LIMIT : replay(p, entry, NULL, turns, n, &err);
    if (status == THOLE_OK)
        return true;
    if (status == THOLE_NOMEM)
        env_no_memory(p->env);
    else if (entry->raw)
        entry_become(entry, ENTRY_BLOCKED);
    else
        block_raw(entry, turns_blocked_by(status), err.text);
    return false;
}

/* True: it is live. Else why not is noted. */
static bool replay_code(struct instances *p, struct entry *entry, const struct turn *turns, size_t n)
{
    const thole_orchestration_entry *code = turns_code(p, entry->orchestration, entry->version);
    thole_error err = {0};
    if (entry->failed != BLOCKED_NOT) {
        entry->blocked = entry->failed; /* its text is still there */
        return false;
    }
    if (crash_candidates_stuck(p, entry))
        return false;
    if (code == NULL) {
        turns_no_code(p, entry);
        return false;
    }
    thole_status status = replay(p, entry, code, turns, n, &err);
    bool const crashed = status == THOLE_APP;
    while (status == THOLE_APP && !crash_candidates_stuck(p, entry))
        status = replay(p, entry, code, turns, n, &err);
    if (crashed)
        crash_candidates_tell(p, entry);
    if (status == THOLE_APP)
        return false;
    if (status == THOLE_NOMEM && !entry->memory_retried) {
        entry->memory_retried = true; /* others go, and so do their stacks */
        entries_evict(&p->entries, p->entries.len / 2);
        status = replay(p, entry, code, turns, n, &err);
    }
    if (status != THOLE_OK) {
        entry_block(entry, turns_blocked_by(status), thole_slice_from(err.text));
        entry->failed = entry->blocked;
    }
    return status == THOLE_OK;
}

static void settle_turns(struct instances *p, struct entry *entry, const struct turn *turns, size_t n)
{
    if (entry->state == ENTRY_CONTINUED) {
        (void)replay_bare(p, entry, turns, n); /* for what it hands on */
    } else if (replay_code(p, entry, turns, n)) {
        entry_become(entry, ENTRY_LIVE);
    } else if (replay_bare(p, entry, turns, n)) {
        entry_become(entry, ENTRY_BLOCKED);
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

/* It has ended: its code goes through all of it once more to answer, and is released. */
static void recall(struct instances *p, struct entry *entry, const struct history *history,
                   const struct turn *turns, size_t n)
{
    const thole_orchestration_entry *code = turns_code(p, entry->orchestration, entry->version);
    thole_error err = {0};
    thole_status status = THOLE_OK;
    if (history->too_new || history->damaged)
        status = thole_fail(&err, THOLE_INVALID, "it has ended, and its history cannot be read here");
    else if (code == NULL)
        status = thole_fail(&err, THOLE_INVALID, "it has ended, and its code is not registered here");
    else if (crash_candidates_stuck(p, entry))
        status = thole_fail(&err, THOLE_INVALID, "%.*s", THOLE_FMT(entry->blocked_text));
    else
        status = replay(p, entry, code, turns, n, &err);
    if (status == THOLE_NOMEM) {
        entries_evict(&p->entries, p->entries.len / 2);
        status = replay(p, entry, code, turns, n, &err);
    }
    if (status == THOLE_APP)
        crash_candidates_tell(p, entry);
    if (status == THOLE_OK)
        queries_answer(p, entry);
    else
        queries_refuse(p, entry, status == THOLE_NOMEM ? THOLE_UNAVAILABLE : THOLE_INVALID,
                       thole_slice_from(err.text));
    instance_destroy(entry->instance);
    entry->instance = NULL;
}

static void settle(struct instances *p, struct entry *entry, const struct history *history,
                   struct arena *arena)
{
    size_t n = 0;
    const struct turn *turns = join(history, arena, &n);
    if (turns == NULL) {
        env_no_memory(p->env);
        return;
    }
    if (history->deletion.instance.len > 0) {
        entry->execution = 0;
        deletion_note(entry, &history->deletion);
    }
    for (size_t i = 0; i < n; i++)
        note_turn(p, entry, &turns[i]);
    if (entry->state == ENTRY_ENDED) {
        if (entry->questions != NULL)
            recall(p, entry, history, turns, n);
        return;
    }
    if (history->too_new)
        block_raw(entry, BLOCKED_TOO_NEW, "the history was written by a newer version of thole");
    else if (history->damaged)
        block_damaged(entry, history);
    else if (n == 0)
        entry_become(entry, ENTRY_ABSENT);
    else if (entry->execution == 0)
        early_load(p, entry, turns, n);
    else
        settle_turns(p, entry, turns, n);
}

bool instances_history(struct instances *p, uint64_t token, const struct in_history *in,
                       const struct log_rule *log)
{
    struct entry *entry = entries_find_token(&p->entries, token, in->instance);
    if (entry == NULL || entry->reload)
        return true;
    assert(entry->in_flight == 0);
    p->entries.recalled_len -= entry->recalled;
    entry->recalled = false;
    struct arena arena;
    arena_init(&arena, HISTORY_ARENA_MAX);
    struct history const history = decode(p, in, log, &arena);
    bool const was_retry = entry->retry;
    if (!p->env->nomem && !history.foreign)
        settle(p, entry, &history, &arena);
    arena_release(&arena);
    if (p->env->nomem)
        return true;
    if (history.foreign)
        return false;
    /* What the rows count it for, before anything new is committed. */
    entry->counted = entry->execution > 0 && entry->state != ENTRY_ENDED && entry->state != ENTRY_ABSENT;
    entry->counted_version = entry->version;
    entry->counted_execution = entry->execution;
    entry->counted_events = entry->events;
    /* An owner that can run what another could not: run it, so that its status says so. */
    entry->retry = was_retry && entry->state == ENTRY_LIVE;
    entries_touch(&p->entries, entry);
    if (entry->questions != NULL && entry->state != ENTRY_CONTINUED)
        queries_answer(p, entry);
    if (entry->first != NULL || entry->retry || entry->state == ENTRY_CONTINUED)
        entries_ready(&p->entries, entry);
    return true;
}
