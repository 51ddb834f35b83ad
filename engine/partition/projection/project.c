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

/* The last deletion is not yet durable in the database. */
static bool undurable(const struct projection *p)
{
    const struct removal *last = p->removals.last;
    return last != NULL && last->sequence > p->projector.durable &&
           last->sequence <= p->projector.watermark.seq;
}

/* What workers are given, and what their claims are compared with. */
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

static void apply(struct projection *p, struct projection_batch *b)
{
    if (b->applied == 0)
        sign_activities(p, b);
    struct batch *batch = projection_batch_rows(b, p->env->options.partition, p->start.epoch, &b->applied);
    if (batch == NULL) {
        env_no_memory(p->env);
        return;
    }
    assert(p->projector.watermark.seq >= p->projector.watermark_sent); /* the watermark never decreases */
    batch->projected = p->projector.watermark;
    batch->durable = undurable(p);
    p->projector.watermark_sent = p->projector.watermark.seq;
    p->projector.durable_sent = batch->durable ? p->projector.watermark.seq : 0;
    projection_batch_become(b, BATCH_APPLYING);
    env_emit(p->env, PARTITION_OUT_APPLY)->apply.batch = batch;
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
    env_emit(p->env, PARTITION_OUT_APPLY)->apply.batch = batch;
    return true;
}

static void retire(struct projection *p)
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

/* Its row is not deleted but replaced by that of a later try, together with all other rows. */
static bool is_replaced(struct projection_batch *b, const struct projected_push *push)
{
    const struct projected_activity *const activity =
        projection_batch_find_activity(b, push->instance, push->execution, push->activity_id);
    return activity != NULL && !activity->gone;
}

/* Best effort: a message that is not withdrawn is dropped by the worker, which finds no row. A message whose
 * sequence is not known yet is withdrawn when it is known. */
static void withdraw(struct projection *p, struct projection_batch *of, const struct projected_push *push)
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
static void push(struct projection *p, struct projection_batch *b, bool replaced)
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
            withdraw(p, b, &all[i]);
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
static void send(struct projection *p, struct projection_batch *b)
{
    assert((b->sends_len == 0 && b->emissions_len == 0) ||
           !projection_batch_empty(b)); /* every turn changes an instance's row */
    if (b->pushes_len > 0 && apply_removals(p, b))
        return;
    push(p, b, false);
    if (!projection_batch_empty(b)) {
        apply(p, b);
        return;
    }
    projection_batch_become(b, BATCH_PUBLISHING);
    retire(p);
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

bool project_has_rows(const struct projection *p)
{
    const struct projection_batch *const b = next_batch(p);
    return b != NULL && (b->pushes_len > 0 || !projection_batch_empty(b));
}

void project_next(struct projection *p)
{
    struct projection_batch *const b = next_batch(p);
    if (b != NULL)
        send(p, b);
}

/* --- after the rows ------------------------------------------------------------------------------ */

static void publish(struct projection *p, struct projection_batch *b)
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

static void removed(struct projection *p, struct projection_batch *b, const struct in_applied *in)
{
    note_removed(b, in->removed, in->removed_len);
    if (apply_removals(p, b))
        return;
    push(p, b, false);
    apply(p, b);
}

void projection_applied(struct projection *p, const struct in_applied *in)
{
    struct projection_batch *b = p->projector.first;
    while (b != NULL && b->state != BATCH_APPLYING && b->state != BATCH_REMOVING)
        b = b->next;
    if (b == NULL)
        return;
    if (b->state == BATCH_REMOVING) {
        removed(p, b, in);
        return;
    }
    if (p->projector.durable_sent > p->projector.durable)
        p->projector.durable = p->projector.durable_sent;
    if (projection_batch_has_more(b, b->applied)) {
        apply(p, b);
        return;
    }
    projection_batch_become(b, BATCH_PUBLISHING);
    push(p, b, true);
    publish(p, b);
    outbox_post(p, b);
    emissions_post(p, b);
    retire(p);
}

/* One of the batch's messages is stored, or not needed. */
static void answered(struct projection *p, struct projection_batch *b)
{
    assert(b->publishes_left > 0);
    b->publishes_left--;
    retire(p);
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
    answered(p, b);
}

void projection_sent(struct projection *p, uint64_t token)
{
    struct projection_batch *b = outbox_sent(p, token);
    if (b != NULL)
        answered(p, b);
}

void projection_history(struct projection *p, uint64_t token, const struct in_history *in,
                        const struct log_rule *log)
{
    struct projection_batch *b = outbox_history(p, token, in, log);
    if (b != NULL)
        answered(p, b);
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
    const struct removal *const removal = p->removals.first;
    const struct owed_emission *const emission = p->emissions.owed.first;
    if (removal != NULL && removal->sequence <= done)
        done = removal->sequence - 1;
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
    if (p->projector.first != NULL || (known && !undurable(p)))
        return;
    apply(p, project_filling(p));
}

void projection_remove(struct projection *p, uint64_t confirmed_seq)
{
    if (undurable(p))
        projection_save(p);
    removals_pump(p, confirmed_seq);
}
