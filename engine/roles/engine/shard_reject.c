/*
 * Messages that a partition cannot take are kept in the REJECTED stream and told of in the log, once a second
 * at most. The partition waits for none of them: until one is kept it only does not count as incorporated.
 * When the stream takes nothing although NATS is there, they are given up after a while: it must not hold up
 * the rest.
 */
#include "engine.h"
#include "rejected.h"
#include "subject.h"
#include <stdlib.h>
#include <string.h>

enum {
    REJECT_TIMEOUT_MS = 2000,
    REJECT_RETRY_MS = 200,
    REJECT_PATIENCE_MS = 3000, /* with a stream that takes nothing */
    REJECT_AWAY_MS = 30000,    /* and so long it gets one try for each message */
};

struct rejection { /* its address is the request's token */
    struct rejection *next;
    uint32_t p;
    uint64_t generation;
    uint64_t due_ms, until_ms; /* monotonic: tried again then; given up after */
    struct rejected_item item; /* in bytes */
    uint8_t bytes[];
};

void shard_rejection_destroy(struct rejection *rejection)
{
    free(rejection);
}

/* Comes from NATS's threads. */
static void on_answer(void *arg, const struct request_done *done)
{
    struct shard *shard = arg;
    struct shard_mail *mail = shard_mail_create(SHARD_REJECTED, 0);
    if (mail == NULL)
        abort();
    mail->rejection = (struct rejection *)(uintptr_t)done->token;
    mail->result = done->result;
    mail->err_code = done->err_code;
    shard_send(shard, mail);
}

thole_status shard_rejects_open(struct shard *shard, thole_error *reterr)
{
    return requests_open(shard->engine->connection, REJECT_WINDOW, REJECT_TIMEOUT_MS, on_answer, shard,
                         &shard->rejects, reterr);
}

/* ---- the log ---- */

#define MORE "inbox messages were rejected; thole rejected lists them"

/* Neither subject nor payload: what stands in them is somebody's own. */
static void tell(struct shard *shard, const struct owned *owned, const struct partition_out *out)
{
    log_limit_warn(&shard->engine->rejects, clock_monotonic_ms(), "partition", MORE,
                   "p=%u inbox message %llu rejected (%s): %s; thole rejected lists it", owned->p,
                   (unsigned long long)out->sequence, reject_code_name(out->reject), out->text);
}

/* ---- on their way ---- */

static void done(struct shard *shard, struct rejection *r)
{
    struct owned *owned = shard_owned(shard, r->p);
    shard_input(shard, owned,
                &(struct partition_in){.kind = PARTITION_IN_REJECTED,
                                       .generation = r->generation,
                                       .sequence = r->item.sequence});
    shard_rejection_destroy(r);
}

static void give_up(struct shard *shard, struct rejection *r, uint64_t now_ms)
{
    if (now_ms >= shard->rejects_away_ms)
        log_line(
            LOG_LEVEL_ERROR, "partition",
            "p=%u rejected inbox message %llu cannot be kept, nor others for now: stream THOLE_%s_REJECTED "
            "takes nothing. Is it there, and has it a leader? They are dropped",
            r->p, (unsigned long long)r->item.sequence, shard->engine->topology.ns);
    shard->rejects_away_ms = now_ms + REJECT_AWAY_MS;
    done(shard, r);
}

static void try_later(struct shard *shard, struct rejection *r)
{
    uint64_t const now = clock_monotonic_ms();
    if (r->generation != partition_generation(shard_owned(shard, r->p)->machine)) {
        shard_rejection_destroy(r); /* of an earlier life: the next one reads the message again */
        return;
    }
    if (now >= r->until_ms || now < shard->rejects_away_ms) {
        give_up(shard, r, now);
        return;
    }
    r->due_ms = now + REJECT_RETRY_MS;
    if (shard->rejects_late == NULL || r->due_ms < shard->rejects_late_ms)
        shard->rejects_late_ms = r->due_ms;
    r->next = shard->rejects_late;
    shard->rejects_late = r;
}

static void wait_for_room(struct shard *shard, struct rejection *r)
{
    r->next = NULL;
    if (shard->rejects_last != NULL)
        shard->rejects_last->next = r;
    else
        shard->rejects_first = r;
    shard->rejects_last = r;
}

static void send(struct shard *shard, struct rejection *r)
{
    thole_error err = {0};
    thole_status const status =
        rejected_publish(shard->rejects, shard->engine->topology.ns, &r->item, (uint64_t)(uintptr_t)r, &err);
    if (status == THOLE_LIMIT && requests_in_flight(shard->rejects) > 0)
        wait_for_room(shard, r);
    else if (status != THOLE_OK)
        try_later(shard, r);
}

static thole_slice keep(uint8_t **at, thole_slice from)
{
    thole_slice const copy = {*at, from.len};
    if (from.len > 0)
        memcpy(*at, from.ptr, from.len);
    *at += from.len;
    return copy;
}

/* A subject that names an instance of the partition is what it is; the others came along. */
static thole_slice subject_of(struct shard *shard, const struct owned *owned, const struct partition_out *out)
{
    if (out->instance.len == 0 ||
        subject_inbox(&shard->subject, shard->engine->topology.ns, owned->p, out->instance, NULL) != THOLE_OK)
        return out->subject;
    return buf_bytes(&shard->subject);
}

void shard_reject(struct shard *shard, struct owned *owned, const struct partition_out *out)
{
    thole_slice const subject = subject_of(shard, owned, out), reason = thole_slice_from(out->text);
    struct rejection *r = calloc(1, sizeof *r + subject.len + reason.len + out->bytes.len);
    if (r == NULL)
        abort();
    uint8_t *at = r->bytes;
    r->p = owned->p;
    r->generation = out->generation;
    r->until_ms = clock_monotonic_ms() + REJECT_PATIENCE_MS;
    r->item = (struct rejected_item){.partition = owned->p,
                                     .sequence = out->sequence,
                                     .stored_ns = out->stored_ns,
                                     .bytes = out->count,
                                     .code = thole_slice_from(reject_code_name(out->reject)),
                                     .reason = keep(&at, reason),
                                     .subject = keep(&at, subject)};
    r->item.payload = keep(&at, out->bytes);
    tell(shard, owned, out);
    if (shard->rejects_first != NULL)
        wait_for_room(shard, r);
    else
        send(shard, r);
}

void shard_rejected(struct shard *shard, const struct shard_mail *mail)
{
    if (mail->result != REQUEST_STORED) {
        try_later(shard, mail->rejection);
        return;
    }
    shard->rejects_away_ms = 0;
    done(shard, mail->rejection);
}

static void take_due(struct shard *shard, uint64_t now_ms)
{
    struct rejection *all = shard->rejects_late;
    if (all == NULL || now_ms < shard->rejects_late_ms)
        return;
    shard->rejects_late = NULL;
    for (struct rejection *next; all != NULL; all = next) {
        next = all->next;
        wait_for_room(shard, all);
    }
}

uint64_t shard_rejects_run(struct shard *shard, uint64_t now_ms)
{
    take_due(shard, now_ms);
    while (shard->rejects_first != NULL && requests_in_flight(shard->rejects) < REJECT_WINDOW) {
        struct rejection *const r = shard->rejects_first;
        shard->rejects_first = r->next;
        if (shard->rejects_first == NULL)
            shard->rejects_last = NULL;
        send(shard, r);
    }
    log_limit_warn_rest(&shard->engine->rejects, now_ms, "partition", MORE);
    uint64_t const told = log_limit_due_ms(&shard->engine->rejects);
    return shard->rejects_late != NULL && shard->rejects_late_ms < told ? shard->rejects_late_ms : told;
}

static void forget(struct rejection *first)
{
    for (struct rejection *next; first != NULL; first = next) {
        next = first->next;
        shard_rejection_destroy(first);
    }
}

void shard_rejects_forget(struct shard *shard)
{
    forget(shard->rejects_first);
    forget(shard->rejects_late);
}
