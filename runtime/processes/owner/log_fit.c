/*
 * Is the log the one that was there? Before a partition's log is opened, and anything is written to it, it is
 * compared with what Postgres knows of it (namespace_verdict.h). And while the partition is open, Postgres is
 * told now and then which record the log has kept.
 */
#include "shard_parts.h"
#include "text.h"
#include "topology.h"
#include <inttypes.h>
#include <stdio.h>

enum {
    KEEP_EACH_MS = LOG_KEPT_MS / 2,
    KEEP_TIMES = 6, /* the last written record is kept after at most three times LOG_KEPT_MS */
};

/* ---- on the store's thread ---- */

thole_status log_know(struct postgres *pg, struct request *request)
{
    return namespace_store_log(pg, request->mail.p, &request->tail.known, &request->tail.rows,
                               request_error(request));
}

thole_status log_keep(struct postgres *pg, struct request *request)
{
    return namespace_store_keep(pg, request->mail.p, request->store.owner.epoch, LOG_KEPT_MS,
                                request_error(request));
}

/* ---- on a loader's thread ---- */

static thole_status log_fit_refused(struct request *request, enum closed_cause cause, const char *what)
{
    request->cause = cause;
    return thole_fail(request_error(request), THOLE_CONFLICT,
                      "%s: nothing was written. Restore NATS's data, or give up what is lost: thole recover",
                      what);
}

static thole_status say_cut(struct request *request, const struct log_there *there)
{
    char time[TIME_TEXT_BYTES];
    struct asked_tail *const tail = &request->tail;
    tail->lacks = log_fit_lacks(&tail->known, there);
    text_time(tail->known.written_ms, time);
    log_line_of(
        LOG_LEVEL_WARN, "partition", LOG_PARTITION(request->mail.p),
        "the log has lost its end: %" PRIu64 " records or more, up to number %" PRIu64
        ", which Postgres had rows of at %s; it ends with number %" PRIu64
        ". A NATS server lost what it had not synced (power, backup). The rows are made again from what is "
        "there",
        tail->lacks, tail->known.projected, time, there->last);
    return THOLE_OK;
}

static thole_status log_fit_judge_log(struct request *request, const struct log_there *there)
{
    char what[256];
    const struct log_known *const known = &request->tail.known;
    const char *const stream = shard_owned(request->shard, request->mail.p)->hist_stream;
    switch (log_fit_judge(known, there)) {
    case LOG_FIT_SAME: return THOLE_OK;
    case LOG_FIT_CUT: return say_cut(request, there);
    case LOG_FIT_GONE:
        (void)snprintf(what, sizeof what, "stream %s is gone, and with it %s", stream,
                       part_loss(PART_HISTORY));
        return log_fit_refused(request, CLOSED_HISTORY_LOST, what);
    case LOG_FIT_OLDER: break;
    }
    (void)snprintf(what, sizeof what,
                   "stream %s is older than it was, or another one: record %" PRIu64
                   " had been in it for long, and "
                   "it ends with %" PRIu64,
                   stream, known->kept, there->last);
    return log_fit_refused(request, CLOSED_HISTORY_OLDER, what);
}

static thole_status judge_ids(struct request *request)
{
    char what[256];
    struct asked_tail *const tail = &request->tail;
    if (tail->id.text[0] == '\0')
        return log_fit_refused(request, CLOSED_HISTORY_LOST,
                               "the settings of the namespace, bucket CONFIG, are gone or have no identity");
    if (tail->rows.text[0] == '\0' || namespace_id_is(&tail->id, &tail->rows))
        return THOLE_OK;
    (void)snprintf(what, sizeof what, "NATS has the namespace %s, and Postgres the rows of %s", tail->id.text,
                   tail->rows.text);
    return log_fit_refused(request, CLOSED_HISTORY_LOST, what);
}

/* Looks at the inbox early: else a partition would be opened before its first read finds that the inbox is
 * gone. */
static thole_status look_at_inbox(const struct engine_host *engine, struct request *request)
{
    char what[320];
    bool there = false;
    THOLE_TRY(topology_look_inbox(engine->connection, engine->topology.ns, request->mail.p, &there,
                                  request_error(request)));
    if (part_judge(PART_INBOX, there, true) != PART_LOST)
        return THOLE_OK;
    (void)snprintf(what, sizeof what,
                   "stream %s is gone, and with it %s: starts may be lost that were accepted, and activities "
                   "whose results were in it run again",
                   shard_owned(request->shard, request->mail.p)->in_stream, part_loss(PART_INBOX));
    return log_fit_refused(request, CLOSED_INBOX_LOST, what);
}

thole_status log_fit_check(struct engine_host *engine, struct request *request)
{
    const char *const ns = engine->topology.ns;
    struct log_there there;
    THOLE_TRY(topology_read_id(engine->connection, ns, &request->tail.id, request_error(request)));
    THOLE_TRY(judge_ids(request));
    THOLE_TRY(topology_look_log(engine->connection, ns, request->mail.p, &request->tail.known, &there,
                                request_error(request)));
    THOLE_TRY(log_fit_judge_log(request, &there));
    return look_at_inbox(engine, request);
}

/* ---- on the shard's thread ---- */

/* Postgres's records have come: now the log itself is looked at. */
void log_known(struct owned *owned, struct request *request)
{
    (void)owned;
    request->kind = REQ_READ_TAIL;
    request_again(request, 0);
}

void tail_answered(struct owned *owned, struct request *request)
{
    if (request_is_current(owned, request)) {
        owned->adopts = (struct namespace_id){.text = ""};
        if (request->tail.rows.text[0] == '\0')
            owned->adopts = request->tail.id;
        if (request->tail.lacks >
            owned->lacks) /* an epoch that the database does not take may come in between */
            owned->lacks = request->tail.lacks;
    }
    request_input(owned, request);
}

void log_keep_begin(struct owned *owned)
{
    owned->keep_left = KEEP_TIMES;
    owned->keep_ms = clock_monotonic_ms();
}

void log_keep_soon(struct owned *owned)
{
    owned->keep_left = KEEP_TIMES;
    if (owned->keep_ms == 0)
        owned->keep_ms = clock_monotonic_ms() + KEEP_EACH_MS;
}

void log_keep_run(struct shard *shard, struct owned *owned, uint64_t now_ms)
{
    if (owned->keep_ms == 0 || now_ms < owned->keep_ms)
        return;
    owned->keep_ms = 0;
    if (partition_state(owned->machine) != PARTITION_OPEN || owned->keep_left == 0)
        return;
    struct request *const request = request_create(REQ_KEEP_LOG, shard, owned);
    request->store.owner.epoch = partition_epoch(owned->machine);
    request_submit(request);
    owned->keep_left--;
    owned->keep_ms = now_ms + KEEP_EACH_MS;
}
