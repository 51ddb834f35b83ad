/*
 * Carries out batches: rows in one transaction, then work messages and messages to other instances, then the
 * watermark. CloudEvents outlive their batch: see emissions.c. One batch is applied at a time, while the
 * messages of those before it are being sent. Cancellations do not wait for that. Workers are told as soon as
 * the record is committed, so that tokens fire; then their rows are deleted first, in a transaction of their
 * own, and workers are told again, so that they ask for the row.
 */
#include "projection_state.h"
#include <assert.h>
#include <stdlib.h>

bool project_undurable(const struct projection *p)
{
    uint64_t const last = removals_last(&p->removals);
    return last > p->projector.durable && last <= p->projector.watermark.seq;
}

/* Not again at once: see DURABLE_PAUSE_MS. But before the removals that wait are too many, as they are when
 * the clock stands still since it was put back. */
static bool durable_is_due(const struct projection *p)
{
    return project_undurable(p) &&
           (p->env->now_ms >= p->projector.durable_next_ms || projection_removals(p) >= REMOVALS_MAX / 2);
}

/* Adds nonces for the workers, and digests that their claims are compared with. */
static void sign_activities(const struct projection *p, struct projection_batch *b)
{
    for (size_t i = 0; i < b->activities_len; i++) {
        struct projected_activity *const a = &b->activities[i];
        if (a->gone)
            continue;
        a->nonce =
            nonce_make(p->env->options.nonce_key, a->row.instance, a->row.execution, a->row.activity_id);
        a->digest =
            work_digest_make(a->row.queue, a->row.activity, thole_slice_from(a->nonce.text), a->input);
    }
}

/* One batch is applied at a time, so the rows are those that the one before it has left. */
static void emit_apply(struct projection *p, struct batch *batch, struct projected to)
{
    batch->follows = p->projector.rows;
    batch->projected = p->projector.moves_to = to;
    env_emit(p->env, PARTITION_OUT_APPLY)->apply.batch = batch;
}

static void project_apply(struct projection *p, struct projection_batch *b)
{
    if (b->applied == 0)
        sign_activities(p, b);
    struct batch *batch = projection_batch_rows(b, p->env->options.partition, p->start.epoch, &b->applied);
    if (batch == NULL) {
        env_no_memory(p->env);
        return;
    }
    assert(p->projector.watermark.seq >= p->projector.watermark_sent); /* the watermark never decreases */
    batch->durable = durable_is_due(p);
    if (batch->durable)
        p->projector.durable_next_ms = p->env->now_ms + DURABLE_PAUSE_MS;
    p->projector.watermark_sent = p->projector.watermark.seq;
    p->projector.durable_sent = batch->durable ? p->projector.watermark.seq : 0;
    projection_batch_become(b, BATCH_APPLYING);
    emit_apply(p, batch, p->projector.watermark);
}

/* False: nothing more to remove. */
static bool apply_removals(struct projection *p, struct projection_batch *b)
{
    struct batch *batch = NULL;
    if (projection_batch_removals(b, p->env->options.partition, p->start.epoch, &b->removed, &batch) !=
        THOLE_OK) {
        env_no_memory(p->env);
        return true;
    }
    if (batch == NULL)
        return false;
    projection_batch_become(b, BATCH_REMOVING);
    emit_apply(p, batch, p->projector.rows.projected);
    return true;
}

static void project_retire(struct projection *p)
{
    struct projector *projector = &p->projector;
    struct projection_batch *b;
    while ((b = projector->first) != NULL && b->state == BATCH_PUBLISHING && b->publishes_left == 0) {
        /* While the log is read again the watermark stays: see redo.c. */
        struct projected *done = p->state == PROJECTION_CATCHING_UP ? &p->redo.done : &projector->watermark;
        if (b->last.seq > done->seq)
            *done = b->last;
        if (b->sends_len > 0)
            projector->sayable_seq = b->last.seq;
        for (size_t i = 0; i < b->deletions_len; i++)
            if (!b->deletions[i].removed)
                removals_owe(p, b->deletions[i].row.instance, b->deletions[i].row.pruned,
                             b->deletions[i].sequence);
        assert(projector->unprojected >= b->records);
        projector->unprojected -= b->records;
        projector->unprojected_bytes -= b->bytes;
        projector->first = b->next;
        if (projector->first == NULL)
            projector->last = NULL;
        projection_batch_destroy(b);
    }
}

/* --- cancellations ------------------------------------------------------------------------- */

static bool same_push(const struct projected_push *a, const struct projected_push *b)
{
    return a->kind == b->kind && a->execution == b->execution && a->try_number == b->try_number &&
           a->early == b->early && thole_slice_equal(a->instance, b->instance) &&
           thole_slice_equal(a->reason, b->reason);
}

/* Whether the row is not deleted but replaced by that of a later try, together with all other rows. */
static bool is_replaced(struct projection_batch *b, const struct projected_push *push)
{
    const struct projected_activity *const activity =
        projection_batch_find_activity(b, push->instance, push->execution, push->activity_id);
    return activity != NULL && !activity->gone;
}

/* Best effort: a message that is not withdrawn is dropped by the worker, which finds no row. A message whose
 * sequence is not known yet is withdrawn when it is known. */
static void project_withdraw(struct projection *p, struct projection_batch *of,
                             const struct projected_push *push)
{
    uint64_t const key = key_hash(push->instance, push->execution, push->activity_id);
    uint64_t const sequence = work_refs_take(&p->projector.work_refs, key);
    const struct projected_activity *const gone =
        projection_batch_find_activity(of, push->instance, push->execution, push->activity_id);
    if (gone != NULL && gone->held)
        return;
    if (sequence != 0) {
        env_emit(p->env, PARTITION_OUT_WITHDRAW)->withdraw.sequence = sequence;
        return;
    }
    for (struct projection_batch *b = p->projector.first; b != NULL && b->state == BATCH_PUBLISHING;
         b = b->next) {
        struct projected_activity *const activity =
            projection_batch_find_activity(b, push->instance, push->execution, push->activity_id);
        if (activity != NULL && (push->try_number == 0 || push->try_number == activity->row.try_number))
            activity->unwanted = true;
    }
}

static void emit_push(struct projection *p, const struct projected_push *pushes, size_t n, bool early)
{
    struct cancel_notice *out = &env_emit(p->env, PARTITION_OUT_PUSH_CANCEL)->push_cancel;
    uint64_t *ids = env_numbers(p->env, n);
    for (size_t i = 0; ids != NULL && i < n; i++)
        ids[i] = pushes[i].activity_id;
    *out = (struct cancel_notice){
        .instance = env_copy(p->env, pushes->instance),
        .reason = env_copy(p->env, pushes->reason),
        .execution = pushes->execution,
        .activity_ids = ids,
        .activity_ids_len = ids == NULL ? 0 : n,
        .try_number = pushes->try_number,
        .decided_ms = pushes->decided_ms,
        .kind = thole_slice_from(thole_cancel_kind_name((thole_cancel_kind)pushes->kind)),
        .early = early,
        .repeats = pushes->early && !early};
}

/* One notice for each run of cancellations of one instance with one reason. */
static void project_push(struct projection *p, struct projection_batch *b, bool replaced)
{
    const struct projected_push *const all = b->pushes;
    for (size_t first = 0, n; first < b->pushes_len; first += n) {
        bool const now = is_replaced(b, &all[first]) == replaced;
        for (n = 1; first + n < b->pushes_len && same_push(&all[first], &all[first + n]) &&
                    (is_replaced(b, &all[first + n]) == replaced) == now;)
            n++;
        if (now)
            emit_push(p, &all[first], n, false);
    }
    for (size_t i = 0; i < b->pushes_len; i++)
        if (is_replaced(b, &all[i]) == replaced)
            project_withdraw(p, b, &all[i]);
}

void project_push_early(struct projection *p, const struct projection_batch *batch, size_t first)
{
    const struct projected_push *const all = batch->pushes;
    for (size_t n; first < batch->pushes_len; first += n) {
        for (n = 1; first + n < batch->pushes_len && same_push(&all[first], &all[first + n]);)
            n++;
        if (all[first].early)
            emit_push(p, &all[first], n, true);
    }
}

/* Records that change no row need no transaction: the watermark is saved when the partition is idle. */
static void project_send(struct projection *p, struct projection_batch *b)
{
    assert((b->sends_len == 0 && b->emissions_len == 0) ||
           !projection_batch_empty(b)); /* every turn changes an instance's row */
    if (b->pushes_len > 0 && apply_removals(p, b))
        return;
    project_push(p, b, false);
    if (!projection_batch_empty(b)) {
        project_apply(p, b);
        return;
    }
    projection_batch_become(b, BATCH_PUBLISHING);
    project_retire(p);
}

/* The one that may be sent; NULL: there is none, or one is being applied. */
static struct projection_batch *next_batch(const struct projection *p)
{
    struct projection_batch *b = p->projector.first;
    while (b != NULL && b->state == BATCH_PUBLISHING)
        b = b->next;
    if (b == NULL || b->state == BATCH_REMOVING || b->state == BATCH_APPLYING)
        return NULL;
    return b->state == BATCH_FILLING && p->projector.parts_len > 0 ? NULL : b;
}

static bool has_rows(const struct projection_batch *b)
{
    return b->pushes_len > 0 || !projection_batch_empty(b);
}

/* Those that change no row are done at once. */
bool project_next(struct projection *p, bool rows)
{
    struct projection_batch *b;
    while ((b = next_batch(p)) != NULL && (rows || !has_rows(b)) && !p->env->nomem)
        project_send(p, b);
    return b != NULL && !p->env->nomem;
}

/* --- after the rows ------------------------------------------------------------------------------ */

static void project_publish(struct projection *p, struct projection_batch *b)
{
    assert(b->state == BATCH_PUBLISHING && b->activities_len < UINT64_C(1) << BATCH_TOKEN_BITS);
    for (size_t i = 0; i < b->activities_len; i++) {
        const struct projected_activity *activity = &b->activities[i];
        if (activity->gone)
            continue;
        struct partition_out *out = env_emit(p->env, PARTITION_OUT_PUBLISH_WORK);
        out->token = b->id << BATCH_TOKEN_BITS | i;
        out->publish_work = (struct out_publish_work){.instance = activity->row.instance,
                                                      .queue = activity->row.queue,
                                                      .activity = activity->row.activity,
                                                      .input = activity->input,
                                                      .nonce = thole_slice_from(activity->nonce.text),
                                                      .trace = activity->trace,
                                                      .execution = activity->row.execution,
                                                      .activity_id = activity->row.activity_id,
                                                      .try_number = activity->row.try_number,
                                                      .again = p->state == PROJECTION_CATCHING_UP};
        b->publishes_left++;
    }
}

/* A message that a worker holds is acknowledged by that worker; if the worker is dead, the next one's claim
 * finds no row. */
static void note_removed(struct projection_batch *b, const struct batch_activity *rows, size_t n)
{
    for (size_t i = 0; i < b->removed; i++)
        if (b->activities[i].gone)
            b->activities[i].before = false; /* not any more */
    for (size_t i = 0; i < n; i++) {
        struct projected_activity *const activity =
            projection_batch_find_activity(b, rows[i].instance, rows[i].execution, rows[i].activity_id);
        if (activity != NULL)
            activity->held = rows[i].held;
    }
}

static void project_removed(struct projection *p, struct projection_batch *b, const struct in_applied *in)
{
    note_removed(b, in->removed, in->removed_len);
    if (apply_removals(p, b))
        return;
    project_push(p, b, false);
    project_apply(p, b);
}

/* The batch that is being applied; NULL: none. */
static struct projection_batch *project_applying(const struct projection *p)
{
    struct projection_batch *b = p->projector.first;
    while (b != NULL && b->state != BATCH_APPLYING && b->state != BATCH_REMOVING)
        b = b->next;
    return b;
}

bool projection_rows(const struct projection *p, struct rows_state *ret)
{
    *ret = p->projector.rows;
    return p->state == PROJECTION_CURRENT && project_applying(p) == NULL;
}

void projection_applied(struct projection *p, const struct in_applied *in)
{
    struct projection_batch *const b = project_applying(p);
    if (b == NULL)
        return;
    p->projector.rows = (struct rows_state){p->projector.moves_to, p->projector.rows.batches + 1};
    if (b->state == BATCH_REMOVING) {
        project_removed(p, b, in);
        return;
    }
    if (p->projector.durable_sent > p->projector.durable)
        p->projector.durable = p->projector.durable_sent;
    if (projection_batch_has_more(b, b->applied)) {
        project_apply(p, b);
        return;
    }
    projection_batch_become(b, BATCH_PUBLISHING);
    project_push(p, b, true);
    project_publish(p, b);
    outbox_post(p, b);
    emissions_post(p, b);
    project_retire(p);
}

/* One of the batch's messages is stored, or not needed. */
static void project_answered(struct projection *p, struct projection_batch *b)
{
    assert(b->publishes_left > 0);
    b->publishes_left--;
    project_retire(p);
}

void projection_published(struct projection *p, uint64_t token, uint64_t sequence)
{
    struct projection_batch *b = project_find(p, token);
    size_t const i = token & ((UINT64_C(1) << BATCH_TOKEN_BITS) - 1);
    if (b == NULL || i >= b->activities_len || b->activities[i].published)
        return;
    struct projected_activity *const activity = &b->activities[i];
    activity->published = true;
    if (activity->unwanted && sequence != 0)
        env_emit(p->env, PARTITION_OUT_WITHDRAW)->withdraw.sequence = sequence;
    else
        work_refs_put(&p->projector.work_refs,
                      key_hash(activity->row.instance, activity->row.execution, activity->row.activity_id),
                      sequence);
    project_answered(p, b);
}

void projection_sent(struct projection *p, uint64_t token)
{
    struct projection_batch *b = outbox_sent(p, token);
    if (b != NULL)
        project_answered(p, b);
}

void projection_history(struct projection *p, uint64_t token, const struct in_history *in,
                        const struct log_rule *log)
{
    struct projection_batch *b = outbox_history(p, token, in, log);
    if (b != NULL)
        project_answered(p, b);
}

bool projection_idle(const struct projection *p)
{
    return p->projector.first == NULL;
}

uint64_t projection_projected(const struct projection *p)
{
    const struct projector *const projector = &p->projector;
    return projector->watermark.seq > projector->published ? projector->watermark.seq : projector->published;
}

uint64_t projection_done(const struct projection *p)
{
    uint64_t done = projection_projected(p);
    uint64_t const removal = removals_first(&p->removals);
    const struct owed_emission *const emission = p->emissions.owed.first;
    if (removal > 0 && removal <= done)
        done = removal - 1;
    if (emission != NULL && emission->sequence <= done)
        done = emission->sequence - 1;
    return done;
}

bool projection_unsaid(const struct projection *p, uint64_t said)
{
    return p->projector.sayable_seq > said && projection_done(p) > said;
}

bool projection_unsaved(const struct projection *p)
{
    return p->projector.watermark.seq > p->projector.watermark_sent;
}

void projection_save(struct projection *p)
{
    bool const known = p->projector.watermark.seq <= p->projector.watermark_sent;
    if (p->projector.first != NULL || (known && !durable_is_due(p)))
        return;
    project_apply(p, project_filling(p));
}

void projection_remove(struct projection *p, uint64_t confirmed_seq)
{
    if (durable_is_due(p))
        projection_save(p);
    removals_pump(p, confirmed_seq);
}
