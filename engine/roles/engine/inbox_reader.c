/*
 * The reader of a partition's inbox, and a look at whether it keeps up.
 *
 * Its consumer stands on one server. With three replicas that may be one that has fallen behind for good
 * (seen with nats-server 2.10.27 after a kill -9): it goes on sending heartbeats, and no message. So the
 * stream's leader is asked now and then for the message that would be next; when it has had one since the
 * last look, the partition is opened anew, with a consumer that may stand elsewhere.
 */
#include "engine.h"
#include "subject.h"
#include <stdlib.h>
#include <string.h>

enum { LOOK_MS_MIN = 1000 };

struct inbox_tap {
    struct shard *shard;
    uint32_t p;
    uint64_t generation;
    struct ordered_reader *reader;
    /* under backlog_lock */
    bool open, closing; /* not open: nothing is let through yet */
    bool held;          /* a message waits for room */
    uint64_t next;      /* nothing below it will come */
};

static bool enter_backlog(struct inbox_tap *tap, uint64_t sequence)
{
    struct shard *shard = tap->shard;
    pthread_mutex_lock(&shard->backlog_lock);
    tap->next = sequence + 1;
    tap->held = true;
    while (!tap->closing && (!tap->open || shard->backlog_mails + shard->backlog_held >= INBOX_BACKLOG_MAX))
        pthread_cond_wait(&shard->backlog_room, &shard->backlog_lock);
    tap->held = false;
    bool const open = !tap->closing;
    if (open)
        shard->backlog_mails++;
    pthread_mutex_unlock(&shard->backlog_lock);
    return open;
}

static void on_inbox_message(void *arg, uint64_t sequence, const struct delivery *delivery)
{
    struct inbox_tap *tap = arg;
    if (!enter_backlog(tap, sequence))
        return;
    struct buf id;
    enum reject_code refused = REJECT_NONE;
    buf_init(&id, THOLE_ID_BYTES_MAX);
    if (subject_token_decode(subject_nth(delivery->subject, 4), &id, NULL) != THOLE_OK)
        refused = REJECT_SUBJECT;
    else if (subject_partition(buf_bytes(&id), tap->shard->engine->topology.partitions) != tap->p)
        refused = REJECT_PARTITION;
    thole_slice const named = refused == REJECT_NONE ? buf_bytes(&id) : delivery->subject;
    struct shard_mail *mail = shard_mail_create(SHARD_INBOX, named.len + delivery->body.len);
    if (mail == NULL)
        abort(); /* a message that is skipped would never be seen again */
    mail->p = tap->p;
    mail->refused = refused;
    mail->generation = tap->generation;
    mail->sequence = sequence;
    mail->stored_ns = delivery_stored_ns(delivery);
    mail->instance_len = named.len;
    if (named.len > 0)
        memcpy(mail->bytes, named.ptr, named.len);
    if (delivery->body.len > 0)
        memcpy(mail->bytes + named.len, delivery->body.ptr, delivery->body.len);
    buf_release(&id);
    shard_send(tap->shard, mail);
}

static void on_reader_lost(void *arg)
{
    const struct inbox_tap *tap = arg;
    struct shard_mail *mail = shard_mail_create(SHARD_INBOX_LOST, 0);
    if (mail == NULL)
        abort();
    mail->p = tap->p;
    mail->generation = tap->generation;
    shard_send(tap->shard, mail);
}

static void let_through(struct inbox_tap *tap)
{
    pthread_mutex_lock(&tap->shard->backlog_lock);
    tap->open = true;
    pthread_cond_broadcast(&tap->shard->backlog_room);
    pthread_mutex_unlock(&tap->shard->backlog_lock);
}

thole_status inbox_check(struct job *job, thole_error *reterr)
{
    const char *stream = shard_owned(job->shard, job->p)->in_stream;
    uint64_t last = 0;
    bool holds = true;
    if (job->sequence == 0)
        return THOLE_OK;
    THOLE_TRY(stream_still_holds(job->shard->engine->connection, stream, job->sequence, job->stored_ns,
                                 &holds, &last, reterr));
    job->gone_back = !holds;
    if (job->gone_back)
        log_line(
            LOG_LEVEL_WARN, "partition",
            "p=%u stream %s went back: message %llu was read from it and is not there; its last is %llu. It "
            "was made anew, or the server lost what it had acknowledged (power, backup)",
            job->p, stream, (unsigned long long)job->sequence, (unsigned long long)last);
    return THOLE_OK;
}

/*
 * First the reader, then the look at what the stream holds, then the first message. If the stream goes back
 * after the look, the reader has lost its consumer; if before, the look finds it out, even when by then the
 * stream has more messages than it ever had. Nothing of a stream that went back comes to the partition in
 * between.
 */
thole_status inbox_tap_open(struct job *job, thole_error *reterr)
{
    struct inbox_tap *tap = calloc(1, sizeof *tap);
    if (tap == NULL)
        return thole_fail(reterr, THOLE_NOMEM, "no memory for an inbox reader");
    tap->shard = job->shard;
    tap->p = job->p;
    tap->generation = job->generation;
    tap->next = job->from;
    struct ordered_reader_options const options = {.stream = shard_owned(job->shard, job->p)->in_stream,
                                                   .from = job->from,
                                                   .each = on_inbox_message,
                                                   .lost = on_reader_lost,
                                                   .arg = tap};
    thole_status status = ordered_reader_open(job->shard->engine->connection, &options, &tap->reader, reterr);
    if (status != THOLE_OK) {
        free(tap);
        return status;
    }
    status = inbox_check(job, reterr);
    if (status != THOLE_OK || job->gone_back) {
        inbox_tap_close(tap);
        return status;
    }
    let_through(tap);
    job->tap = tap;
    return THOLE_OK;
}

void inbox_tap_close(struct inbox_tap *tap)
{
    if (tap == NULL)
        return;
    pthread_mutex_lock(&tap->shard->backlog_lock);
    tap->closing = true;
    pthread_cond_broadcast(&tap->shard->backlog_room);
    pthread_mutex_unlock(&tap->shard->backlog_lock);
    ordered_reader_close(tap->reader);
    free(tap);
}

/* ---- does it keep up? ---- */

thole_status inbox_look(struct job *job, thole_error *reterr)
{
    return stream_next(job->shard->engine->connection, shard_owned(job->shard, job->p)->in_stream, job->from,
                       &job->sequence, reterr);
}

static bool reads_on(struct inbox_tap *tap, uint64_t sequence, uint64_t *ret_next)
{
    pthread_mutex_lock(&tap->shard->backlog_lock);
    bool const on = tap->held || tap->next > sequence;
    *ret_next = tap->next;
    pthread_mutex_unlock(&tap->shard->backlog_lock);
    return on;
}

/* A reader that stays behind is noticed within two looks: half of the option's time. */
static uint64_t look_every_ms(const struct shard *shard)
{
    uint64_t const ms = shard->engine->options.sweep_ms / 4;
    return ms > LOOK_MS_MIN ? ms : LOOK_MS_MIN;
}

void inbox_watch(struct shard *shard, struct owned *owned, uint64_t now_ms)
{
    uint64_t next;
    if (owned->tap == NULL) {
        owned->look_ms = owned->unread = 0;
        return;
    }
    if (owned->look_ms == 0)
        owned->look_ms = now_ms + look_every_ms(shard);
    if (owned->looking || now_ms < owned->look_ms)
        return;
    owned->look_ms = now_ms + look_every_ms(shard);
    if (!reads_on(owned->tap, owned->unread, &next) && owned->unread != 0) {
        log_line(
            LOG_LEVEL_WARN, "partition",
            "p=%u stream %s has message %llu, and its consumer has not sent it for %llu ms: read anew. Does "
            "each replica keep up? (nats stream info %s)",
            owned->p, owned->in_stream, (unsigned long long)owned->unread,
            (unsigned long long)look_every_ms(shard), owned->in_stream);
        owned->unread = 0;
        shard_doubt(shard, owned, "the inbox reader stays behind", false);
        return;
    }
    struct job *job = job_create(JOB_LOOK_INBOX, shard, owned->p, partition_generation(owned->machine));
    if (job == NULL)
        return;
    job->from = next;
    owned->looking = true;
    loader_submit(shard->engine->loader, job);
}

uint64_t inbox_watch_ms(const struct owned *owned)
{
    return owned->look_ms == 0 || owned->looking ? UINT64_MAX : owned->look_ms;
}

void inbox_looked(struct owned *owned, const struct job *job)
{
    owned->looking = false;
    owned->unread = job->status == THOLE_OK && partition_generation(owned->machine) == job->generation
                        ? job->sequence
                        : 0;
}
