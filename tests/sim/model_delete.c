/* Deletions, as the independent reader sees them: what of an id counts no more, what may be removed, what is
 * left. */
#include "checks.h"
#include "store_fake.h"
#include <stdio.h>
#include <string.h>

/* ---- requests to delete and prune ---- */

bool model_is_over(const struct model_instance *m, const struct message *message)
{
    if (m->gone == 0)
        return false;
    if (message->parent.instance.len > 0)
        return model_same_origin(&message->parent, &m->parent);
    return message->request_id.len > 0 && thole_slice_equal(message->request_id, m->request_id);
}

bool model_accepts_deletion(struct model_instance *m, const struct message *message)
{
    const struct model_execution *x = model_current(m);
    if (message->execution != 0 && message->execution <= m->gone)
        return false;
    if (x == NULL)
        return m->kept_len > 0;
    return x->ended && x->terminal != EVENT_CONTINUED_AS_NEW;
}

static bool is_among(const struct inbox_entry *entries, size_t len, size_t instance, thole_slice request_id)
{
    for (size_t i = 0; i < len; i++)
        if (entries[i].valid && entries[i].instance == instance && entries[i].message.force &&
            entries[i].message.kind == MESSAGE_DELETE &&
            thole_slice_equal(entries[i].message.request_id, request_id))
            return true;
    return false;
}

bool model_is_forced(const struct world *w, size_t instance, const struct event *event)
{
    const struct inbox_stream *inbox = w->inboxes[instance_partition(w, instance)];
    return event->kind == EVENT_TERMINATE_REQUESTED && event->request_id.len > 0 &&
           (is_among(inbox->entries, inbox->len, instance, event->request_id) ||
            is_among(inbox->lost, inbox->lost_len, instance, event->request_id));
}

void model_check_deletion(struct world *w, size_t instance, const struct deletion *d,
                          const struct message *message)
{
    struct model_instance *m = model_of(w, instance);
    if (d->execution != m->executions_len || !thole_slice_equal(d->request_id, message->request_id) ||
        !thole_slice_equal(d->reason, message->data) || !thole_slice_equal(d->started_by, m->request_id) ||
        !thole_slice_equal(d->parent.instance, m->parent.instance) || d->parent.event != m->parent.event)
        broken(w, "%.*s: its deletion up to %" PRIu64 " is not what was asked for",
               THOLE_FMT(w->instances[instance]), d->execution);
}

/* Items that it took in may come a second time to the next instance with its id, in any order. */
static void give_up_items(struct world *w, struct model_instance *m)
{
    for (size_t i = 0; i < m->kept_len + m->items_len; i++) {
        m->given_up = grown(w, m->given_up, m->given_up_len, &m->given_up_cap, sizeof *m->given_up);
        m->given_up[m->given_up_len++] = i < m->kept_len ? m->kept[i].data : m->items[i - m->kept_len];
    }
    m->kept_len = m->items_len = 0;
}

void model_prune(struct world *w, size_t instance, uint64_t sequence, struct executions executions)
{
    struct model_instance *m = model_of(w, instance);
    m->prunes = grown(w, m->prunes, m->prunes_len, &m->prunes_cap, sizeof *m->prunes);
    m->prunes[m->prunes_len++] = (struct model_prune){sequence, executions};
    w->stats.prunes++;
}

const struct model_prune *model_pruned(const struct model_instance *m, uint64_t execution)
{
    for (size_t i = 0; i < m->prunes_len; i++)
        if (execution > m->prunes[i].executions.above && execution <= m->prunes[i].executions.upto)
            return &m->prunes[i];
    return NULL;
}

/* Whether an existing deletion or prune says that the execution, too, is gone. */
static bool is_gone_by(const struct world *w, size_t instance, uint64_t execution,
                       const struct log_entry *entry)
{
    const struct model_instance *const m = model_of(w, instance);
    if (entry->instance != instance || entry->deleted || !entry->counts)
        return false;
    for (size_t i = 0; i < m->prunes_len; i++)
        if (m->prunes[i].sequence == entry->sequence && execution > m->prunes[i].executions.above &&
            execution <= m->prunes[i].executions.upto)
            return true;
    return entry->kind == RECORD_DELETED;
}

bool model_is_unsaid(const struct world *w, size_t instance, uint64_t execution, uint64_t sequence,
                     uint64_t upto)
{
    const struct log_stream *log = w->logs[instance_partition(w, instance)];
    if (!w->restores || sequence > log->len || !log->entries[sequence - 1].deleted)
        return false;
    for (uint64_t s = sequence; s < upto && s < log->len; s++)
        if (is_gone_by(w, instance, execution, &log->entries[s]))
            return false;
    return true;
}

void model_forget(struct world *w, size_t instance, uint64_t sequence)
{
    struct model_instance *m = model_of(w, instance);
    give_up_items(w, m);
    m->gone = m->executions_len;
    m->deleted_seq = sequence;
    m->deletions++;
    m->seen_len = 0;
    m->early = (struct model_execution){0};
    if (m->early_timer.there)
        m->early_timer = (struct model_row){.sequence = sequence};
    m->custom_status = (thole_slice){NULL, 0};
    w->stats.deletions++;
}

/* ---- permitted removals ---- */

/* Whoever reads the tail must know that the deletion counts, although what is before it is not there. */
static bool is_attested(const struct log_stream *log, const struct log_entry *deletion)
{
    for (size_t i = (size_t)deletion->sequence; i < log->len; i++) {
        const struct log_entry *e = &log->entries[i];
        if (e->counts && !e->deleted &&
            (e->epoch > deletion->epoch || (e->epoch == deletion->epoch && e->committed >= deletion->n)))
            return true;
    }
    return false;
}

/* Is it a turn that prunes what the entry is of, or a part of it? */
static bool is_pruned_by(struct world *w, const struct log_entry *entry, const struct log_entry *by)
{
    const struct model_instance *m = model_of(w, entry->instance);
    if (m->damaged && entry->kind == RECORD_TURN && by->kind == RECORD_TURN)
        return entry->execution < by->execution; /* may have been pruned before the damage was noticed */
    for (size_t i = 0; i < m->prunes_len && by->kind == RECORD_TURN; i++)
        if (entry->kind == RECORD_TURN && entry->execution > m->prunes[i].executions.above &&
            entry->execution <= m->prunes[i].executions.upto && m->prunes[i].sequence >= by->sequence &&
            by->execution > m->prunes[i].executions.upto)
            return true;
    return false;
}

/* A record that removes another counts for good, and the rows have come as far. */
static void check_settled(struct world *w, const struct log_stream *log, const struct log_entry *entry,
                          const struct log_entry *by)
{
    uint64_t const durable = w->model->partitions[log->partition].durable;
    if (!is_attested(log, by))
        broken(w, "partition %u: record %" PRIu64 " is removed before a record says that %" PRIu64 " counts",
               log->partition, entry->sequence, by->sequence);
    else if (durable < by->sequence)
        broken(w,
               "partition %u: record %" PRIu64 " is removed for %" PRIu64 ", the store has come to %" PRIu64,
               log->partition, entry->sequence, by->sequence, durable);
}

void checks_on_remove(struct world *w, struct log_stream *log, const struct log_entry *entry, uint64_t by)
{
    const struct log_entry *deletion = &log->entries[by - 1];
    if (!deletion->counts || deletion->instance != entry->instance || entry->sequence >= by ||
        entry->instance == SIZE_MAX ||
        (deletion->kind != RECORD_DELETED && !is_pruned_by(w, entry, deletion)))
        broken(w, "partition %u: record %" PRIu64 " is removed for %" PRIu64 ", which does not say so",
               log->partition, entry->sequence, by);
    else
        check_settled(w, log, entry, deletion);
    model_check_sent(w, entry->instance, by);
    model_check_emitted(w, entry->instance, by);
}

/* Nobody needs it: a later record has a position, nothing of the epoch is left, nothing of the instance. */
static bool is_dispensable(const struct log_stream *log, const struct log_entry *entry)
{
    uint64_t next = 0;
    for (size_t i = (size_t)entry->sequence; i < log->len && next == 0; i++) {
        const struct log_entry *const e = &log->entries[i];
        if (entry->kind == RECORD_DELETED && e->instance == entry->instance && !e->deleted)
            return false;
        if (entry->kind == RECORD_EPOCH_OPENED && e->counts && e->kind != RECORD_EPOCH_OPENED &&
            e->kind != RECORD_POSITION && !e->deleted)
            return false;
        next = e->counts && e->kind == RECORD_EPOCH_OPENED && entry->kind == RECORD_EPOCH_OPENED ? i + 1 : 0;
    }
    return entry->kind != RECORD_EPOCH_OPENED || (next > 0 && entry->sequence > 1);
}

void checks_on_dispense(struct world *w, struct log_stream *log, const struct log_entry *entry, uint64_t by)
{
    struct record list;
    const struct log_entry *const lists = &log->entries[by - 1];
    bool said = record_decode(lists->bytes, &w->memory, &list, NULL) == THOLE_OK && lists->counts;
    for (size_t i = 0; said && i < list.folded.len && list.folded.sequences[i] != entry->sequence; i++)
        said = i + 1 < list.folded.len;
    if (!said || list.folded.len == 0 || entry->sequence >= by)
        broken(w, "partition %u: record %" PRIu64 " is removed for %" PRIu64 ", which does not list it",
               log->partition, entry->sequence, by);
    else if (entry->kind == RECORD_TURN || !is_dispensable(log, entry))
        broken(w, "partition %u: record %" PRIu64 " is removed for %" PRIu64 ", and is needed",
               log->partition, entry->sequence, by);
    else
        check_settled(w, log, entry, lists);
}

void checks_on_durable(struct world *w, const struct row *row)
{
    struct model_partition *part = &w->model->partitions[row->partition];
    if (!row->foreign && row->state.projected.seq > part->durable)
        part->durable = row->state.projected.seq;
}

void checks_on_store_forgets(struct world *w)
{
    for (uint32_t p = 0; p < w->partitions; p++) {
        const struct row *row = store_find(w->store, ROW_PARTITION, p, 0, 0, 0);
        uint64_t const seq = row == NULL || row->foreign ? 0 : row->state.projected.seq;
        if (seq > 0 && !w->restores && seq <= w->logs[p]->len && w->logs[p]->entries[seq - 1].deleted)
            broken(w, "partition %u: the store goes back to record %" PRIu64 ", which has been removed", p,
                   seq);
    }
}

/* ---- remains ---- */

static size_t find_left(const struct world *w, size_t instance, uint64_t below)
{
    const struct log_stream *log = w->logs[instance_partition(w, instance)];
    for (size_t i = 0; i < log->len && i + 1 < below; i++)
        if (log->entries[i].instance == instance && !log->entries[i].deleted && log->entries[i].counts)
            return i + 1;
    return 0;
}

static size_t find_unpruned(const struct world *w, size_t instance, const struct model_prune *prune)
{
    const struct log_stream *log = w->logs[instance_partition(w, instance)];
    for (size_t i = 0; i < log->len && i + 1 < prune->sequence; i++) {
        const struct log_entry *e = &log->entries[i];
        if (e->instance == instance && !e->deleted && e->counts && e->kind == RECORD_TURN &&
            e->execution > prune->executions.above && e->execution <= prune->executions.upto)
            return i + 1;
    }
    return 0;
}

/* A later pruning takes the record of this one, too, and all that this one had to take: while that one is
 * owed, nobody forgets what is left. */
static bool is_covered(const struct world *w, size_t instance, size_t of, uint64_t published)
{
    const struct model_instance *const m = model_of(w, instance);
    const struct model_prune *const prune = &m->prunes[of];
    bool covered = false;
    for (size_t k = of + 1; k < m->prunes_len && !covered; k++)
        covered = m->prunes[k].sequence > published &&
                  m->prunes[k].executions.above <= prune->executions.above &&
                  m->prunes[k].executions.upto >= prune->executions.upto;
    return covered && w->logs[instance_partition(w, instance)]->entries[prune->sequence - 1].deleted;
}

void model_published_deletions(struct world *w, uint32_t partition, uint64_t published)
{
    for (size_t i = 0; i < w->instances_len; i++) {
        uint64_t const seq = model_of(w, i)->deleted_seq;
        if (seq > 0 && seq <= published && instance_partition(w, i) == partition && find_left(w, i, seq) > 0)
            broken(w, "partition %u: a record says that %.*s is gone, record %zu is there", partition,
                   THOLE_FMT(w->instances[i]), find_left(w, i, seq));
        for (size_t k = 0; k < model_of(w, i)->prunes_len && !model_of(w, i)->damaged; k++) {
            const struct model_prune *prune = &model_of(w, i)->prunes[k];
            if (prune->sequence <= published && instance_partition(w, i) == partition &&
                !is_covered(w, i, k, published) && find_unpruned(w, i, prune) > 0)
                broken(w, "partition %u: a record says that %.*s is pruned, record %zu is there", partition,
                       THOLE_FMT(w->instances[i]), find_unpruned(w, i, prune));
        }
    }
}

bool checks_deletions(struct world *w, char *why, size_t size)
{
    for (size_t i = 0; i < w->instances_len; i++) {
        const struct model_instance *m = model_of(w, i);
        size_t left = m->deletions == 0 ? 0 : find_left(w, i, m->deleted_seq);
        for (size_t k = 0; k < m->prunes_len && left == 0 && !m->damaged; k++)
            left = find_unpruned(w, i, &m->prunes[k]);
        if (left == 0)
            continue;
        snprintf(why, size, "record %zu of %.*s is left, which was deleted or pruned", left,
                 THOLE_FMT(w->instances[i]));
        return false;
    }
    return true;
}
