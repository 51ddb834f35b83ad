/* Turns a history that was read from the stream into a parked instance, or into a reason why that is not
 * possible. */
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
    uint64_t execution;              /* the newest one */
    uint64_t lost;                   /* number of records after the last one that decodes */
    struct deletion deletion;        /* of the incarnation before; instance empty: none */
    const struct log_record *newest; /* the last record that counts; NULL: none does */
};

/* Records before the deletion may still be there; they are being removed and are ignored. */
static void begin_again(struct history *history, const struct deletion *deletion)
{
    history->list.len = history->list.held = 0;
    history->damaged = history->too_new = false;
    history->execution = history->lost = 0;
    history->deletion = *deletion;
}

/* The subject says to which execution the damaged record belongs. In an execution that another one has
 * followed it does not matter. */
static void note_damage(struct history *history, const struct log_record *record)
{
    if (record->execution < history->execution)
        return;
    history->lost = record->execution > history->execution ? 1 : history->lost + 1;
    history->execution = record->execution;
    history->damaged = true;
}

static void loading_take(struct history *history, const struct record *record)
{
    const struct turn *turn = &record->turn;
    turn_list_take(&history->list, record);
    if (turn->more || turn->execution < history->execution)
        return;
    history->damaged &= turn->execution == history->execution;
    history->execution = turn->execution;
    history->lost = 0;
}

static struct history loading_decode(struct instances *p, const struct in_history *in,
                                     const struct log_rule *log, struct arena *arena)
{
    struct history history = {.list.records =
                                  arena_array(arena, in->records_len + 1, sizeof *history.list.records)};
    if (history.list.records == NULL) {
        env_no_memory(p->env);
        return history;
    }
    for (size_t i = 0; i < in->records_len; i++) {
        struct record record;
        thole_status status = record_decode(in->records[i].bytes, arena, &record, NULL);
        if (status == THOLE_NOMEM) {
            env_no_memory(p->env);
            return history;
        }
        if (status == THOLE_OK && !record_has_rows(&record))
            status = THOLE_CORRUPT;
        history.foreign |=
            log_rule_foreign(log, status == THOLE_OK ? &record : NULL, in->records[i].sequence);
        history.too_new |= status == THOLE_UNSUPPORTED;
        if (status != THOLE_OK && status != THOLE_UNSUPPORTED)
            note_damage(&history, &in->records[i]);
        enum log_verdict const verdict =
            log_rule_judge(log, status == THOLE_OK ? &record : NULL, in->records[i].sequence);
        if (verdict == LOG_COUNTS || verdict == LOG_DAMAGED)
            history.newest = &in->records[i];
        if (status != THOLE_OK || verdict != LOG_COUNTS)
            continue;
        if (record.kind == RECORD_TURN)
            loading_take(&history, &record);
        else if (record.kind == RECORD_DELETED)
            begin_again(&history, &record.deletion);
    }
    return history;
}

/* --- facts that need no code --------------------------------------------------------------------- */

/* The event that ends the turn's execution; NULL: none does. */
static const struct event *loading_note_turn(struct entry *entry, const struct turn *turn)
{
    const struct event *end = NULL;
    entry->execution = turn->execution;
    entry->turns = turn->number;
    entry->time_ms = turn->time_ms;
    entry->counted.stopped = turn->ran ? BLOCKED_NOT : turn->blocked;
    for (size_t i = 0; i < turn->events_len; i++) {
        const struct event *event = &turn->events[i];
        entry_note(entry, event);
        (void)entry_note_tries(entry, event);
        if (event_is_terminal(event->kind))
            end = event;
    }
    return end;
}

/* --- instances ----------------------------------------------------------------------------------- */

struct replayed { /* how a replay has ended */
    thole_status status;
    thole_error error;
    const void *site; /* where the code was; NULL: not known */
};

/* An instance that has replayed all turns; code NULL: an instance without code. NULL: ret->status says why
 * not. */
static struct instance *loading_replay(struct instances *p, struct entry *entry,
                                       const thole_orchestration_entry *code, const struct turn *turns,
                                       size_t n, struct replayed *ret)
{
    struct instance *instance = turns_instance(p, entry, code);
    *ret = (struct replayed){.status = THOLE_OK};
    ret->status = watched_replay(p, entry, instance, code, turns, n, &ret->error);
    if (ret->status == THOLE_OK)
        return instance;
    ret->site = code == NULL ? NULL : instance_call_site(instance);
    instance_destroy(instance);
    return NULL;
}

static void block_unreadable(struct instances *p, struct entry *entry, enum blocked_kind kind,
                             const char *text)
{
    entry_block(entry, ENTRY_KEEPS, kind, thole_slice_from(text));
    entry_become(&p->entries, entry, ENTRY_UNREADABLE);
}

/* The execution is the one that the subjects of the records name, but at least 1: nothing can end in
 * execution 0. */
static void block_damaged(struct instances *p, struct entry *entry, const struct history *history)
{
    uint64_t const execution = history->execution == 0 ? history->deletion.execution + 1 : history->execution;
    if (execution != entry->execution)
        entry->turns = entry->events = 0;
    if (execution == history->execution)
        entry->turns += history->lost;
    entry->execution = execution;
    block_unreadable(p, entry, BLOCKED_DAMAGED, "a record of the history does not decode");
}

/* An instance without code with the facts of the history. NULL: the history cannot be replayed even without
 * code. */
static struct instance *replay_bare(struct instances *p, struct entry *entry, const struct turn *turns,
                                    size_t n)
{
    struct replayed end;
    if (entry->limit == ENTRY_KEEPS) {
        entry_become(&p->entries, entry, ENTRY_UNREADABLE);
        return NULL;
    }
    struct instance *instance = loading_replay(p, entry, NULL, turns, n, &end);
    if (end.status == THOLE_NOMEM)
        env_no_memory(p->env);
    else if (end.status != THOLE_OK)
        block_unreadable(p, entry, turns_blocked_by(end.status), end.error.text);
    return instance;
}

/* NULL: the entry has the reason. */
static struct instance *replay_code(struct instances *p, struct entry *entry, const struct turn *turns,
                                    size_t n)
{
    const thole_orchestration_entry *code = turns_code(p, entry->orchestration, entry->version);
    struct replayed end;
    if (entry->limit != ENTRY_RUNS || crash_candidates_stuck(p, entry))
        return NULL;
    if (code == NULL) {
        turns_no_code(p, entry);
        return NULL;
    }
    struct instance *instance = loading_replay(p, entry, code, turns, n, &end);
    bool const crashed = end.status == THOLE_APP;
    while (end.status == THOLE_APP && !crash_candidates_stuck(p, entry))
        instance = loading_replay(p, entry, code, turns, n, &end);
    if (crashed)
        crash_candidates_tell(p, entry);
    if (end.status == THOLE_APP)
        return NULL;
    if (end.status == THOLE_NOMEM && !entry->memory_retried) {
        entry->memory_retried = true; /* others are released, and with them their stacks */
        entries_evict_half(&p->entries);
        instance = loading_replay(p, entry, code, turns, n, &end);
    }
    if (end.status != THOLE_OK)
        turns_code_failed(p, entry, end.status, end.error.text, end.site);
    return instance;
}

static void settle_turns(struct instances *p, struct entry *entry, const struct turn *turns, size_t n)
{
    enum entry_state state = ENTRY_LIVE;
    struct instance *instance = replay_code(p, entry, turns, n);
    if (instance == NULL) {
        state = ENTRY_BLOCKED;
        instance = replay_bare(p, entry, turns, n);
    }
    if (instance == NULL)
        return;
    entry_become(&p->entries, entry, state);
    entry->running.instance = instance;
}

/* An instance without code, for what the next execution takes over. */
static void settle_continued(struct instances *p, struct entry *entry, const struct turn *turns, size_t n)
{
    struct instance *instance = replay_bare(p, entry, turns, n);
    if (instance == NULL)
        return;
    entry_become(&p->entries, entry, ENTRY_CONTINUED);
    entry->running.instance = instance;
}

/* Memory of @p arena. NULL: none left. */
static struct turn *loading_join(const struct history *history, struct arena *arena, size_t *ret_len)
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

/* The instance has ended: its code is replayed to answer the queries, then released. */
static void loading_recall(struct instances *p, struct entry *entry, const struct history *history,
                           const struct turn *turns, size_t n)
{
    const thole_orchestration_entry *code = turns_code(p, entry->orchestration, entry->version);
    struct instance *instance = NULL;
    struct replayed end = {.status = THOLE_INVALID};
    if (history->too_new || history->damaged)
        (void)thole_fail(&end.error, THOLE_INVALID, "it has ended, and its history cannot be read here");
    else if (code == NULL)
        (void)thole_fail(&end.error, THOLE_INVALID, "it has ended, and its code is not registered here");
    else if (crash_candidates_stuck(p, entry))
        (void)thole_fail(&end.error, THOLE_INVALID, "%.*s", THOLE_FMT(entry_blocked_text(entry)));
    else
        instance = loading_replay(p, entry, code, turns, n, &end);
    if (end.status == THOLE_NOMEM) {
        entries_evict_half(&p->entries);
        instance = loading_replay(p, entry, code, turns, n, &end);
    }
    if (end.status == THOLE_APP)
        crash_candidates_tell(p, entry);
    if (end.status == THOLE_OK)
        queries_answer_by(p, entry, instance);
    else
        queries_refuse(p, entry, end.status == THOLE_NOMEM ? THOLE_UNAVAILABLE : THOLE_INVALID,
                       thole_slice_from(end.error.text));
    instance_destroy(instance);
}

static void loading_settle(struct instances *p, struct entry *entry, const struct history *history,
                           struct arena *arena)
{
    size_t n = 0;
    const struct turn *turns = loading_join(history, arena, &n);
    if (turns == NULL) {
        env_no_memory(p->env);
        return;
    }
    if (history->deletion.instance.len > 0) {
        entry->execution = 0;
        deletion_note(entry, &history->deletion);
    }
    if (history->newest != NULL)
        entry->newest = (struct record_link){
            record_hash_make(p->env->options.ns, p->env->options.partition, history->newest->bytes),
            history->newest->sequence};
    const struct event *end = NULL;
    for (size_t i = 0; i < n; i++) {
        const struct event *ends = loading_note_turn(entry, &turns[i]);
        end = ends != NULL ? ends : end;
    }
    if (end != NULL && end->kind != EVENT_CONTINUED_AS_NEW) {
        if (entry->questions != NULL)
            loading_recall(p, entry, history, turns, n);
        entry_become(&p->entries, entry, ENTRY_ENDED);
    } else if (history->too_new) {
        block_unreadable(p, entry, BLOCKED_TOO_NEW, "the history was written by a newer version of thole");
    } else if (history->damaged) {
        block_damaged(p, entry, history);
    } else if (n == 0) {
        entry_become(&p->entries, entry, ENTRY_ABSENT);
    } else if (entry->execution == 0) {
        early_load(p, entry, turns, n);
    } else if (end != NULL) {
        settle_continued(p, entry, turns, n);
    } else {
        settle_turns(p, entry, turns, n);
    }
}

bool instances_history(struct instances *p, uint64_t token, const struct in_history *in,
                       const struct log_rule *log)
{
    struct entry *entry = entries_find_token(&p->entries, token, in->instance);
    if (entry == NULL)
        return true;
    assert(entry->in_flight == 0);
    bool const retry = entry->state == ENTRY_LOADING && entry->loading.retry;
    struct arena arena;
    arena_init(&arena, HISTORY_ARENA_MAX);
    struct history const history = loading_decode(p, in, log, &arena);
    if (!p->env->nomem && !history.foreign)
        loading_settle(p, entry, &history, &arena);
    arena_release(&arena);
    if (p->env->nomem)
        return true;
    if (history.foreign)
        return false;
    entry_note_counted(entry);
    /* This owner can run what another could not: run it, so that its status changes. */
    if (entry->state == ENTRY_LIVE)
        entry->running.retry = retry;
    entries_weigh(entry);
    entries_touch(&p->entries, entry);
    if (entry->questions != NULL && entry->state != ENTRY_CONTINUED)
        queries_answer(p, entry);
    if (entry->first != NULL || (entry->state == ENTRY_LIVE && retry) || entry->state == ENTRY_CONTINUED)
        entries_ready(&p->entries, entry);
    return true;
}
