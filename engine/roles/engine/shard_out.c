/* What a partition asks for is done, or sent on its way. Nothing here answers at once: answers are mails. */
#include "engine.h"
#include "jscan.h"
#include "notice.h"
#include "subject.h"
#include "work.h"
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { REOPEN_FIRST_MS = 20, BUSY_RETRY_MS = 100, SEND_RETRY_MS = 500, REFUSED_SAID_MS = 10000 };

enum sent_kind {
    SENT_APPEND,
    SENT_WORK,
    SENT_LOOK,
    SENT_REQUEUE,
    SENT_LOOK_FOR_WORK, /* for the sweeper */
    SENT_WITHDRAW,
    SENT_MESSAGE,
    SENT_REMOVE, /* a loader's job: here while it waits to be tried again */
};

struct sent { /* an asynchronous request; its address is the request's token */
    struct sent *next;
    enum sent_kind kind;
    uint32_t p;
    uint64_t generation, token; /* APPEND: n; REMOVE: sequence of the deletion */
    uint64_t due_ms;            /* monotonic; while it is delayed */
    bool unless_there;          /* WORK: look first whether it is queued already */
    bool aside;                 /* counts among those in no hurry */
    struct arena arena;         /* WORK: the item; LOOK, MESSAGE, REMOVE: the instance; MESSAGE: the body */
    struct work_item item;
    thole_slice instance, body;
    struct executions executions; /* REMOVE */
};

static struct sent *sent_create(enum sent_kind kind, const struct owned *owned,
                                const struct partition_out *out)
{
    struct sent *sent = calloc(1, sizeof *sent);
    if (sent == NULL)
        abort(); /* nothing can be done without a byte of memory; the log has everything */
    sent->kind = kind;
    sent->p = owned->p;
    sent->generation = out->generation;
    sent->token = kind == SENT_APPEND ? out->n : out->token;
    arena_init(&sent->arena, MESSAGE_BYTES_MAX);
    return sent;
}

static void sent_destroy(struct sent *sent)
{
    arena_release(&sent->arena);
    free(sent);
}

/* Comes from NATS's threads. */
void shard_on_request(void *arg, const struct request_done *done)
{
    struct shard *shard = arg;
    struct shard_mail *mail = shard_mail_create(SHARD_REQUEST, done->body.len);
    if (mail == NULL)
        abort();
    mail->sent = (struct sent *)(uintptr_t)done->token;
    mail->result = done->result;
    mail->sequence = done->sequence;
    mail->err_code = done->err_code;
    if (done->body.len > 0)
        memcpy(mail->bytes, done->body.ptr, done->body.len);
    shard_send(shard, mail);
}

/* A request that could not even be sent is answered like one that was lost, but never within the call. */
static void answer_unsent(struct shard *shard, struct sent *sent)
{
    shard_on_request(shard,
                     &(struct request_done){.result = REQUEST_UNKNOWN, .token = (uint64_t)(uintptr_t)sent});
}

/* ---- appends ---- */

static thole_status append_subject(struct shard *shard, const struct owned *owned,
                                   const struct partition_out *out)
{
    const char *ns = shard->engine->topology.ns;
    if (out->record_kind == RECORD_TURN)
        return subject_history(&shard->subject, ns, owned->p, out->instance, out->execution, NULL);
    if (out->record_kind == RECORD_DELETED)
        return subject_history(&shard->subject, ns, owned->p, out->instance, EXECUTION_DELETED, NULL);
    return subject_control(&shard->subject, ns, owned->p,
                           out->record_kind == RECORD_EPOCH_OPENED ? "epoch" : "position", NULL);
}

static void do_append(struct shard *shard, struct owned *owned, const struct partition_out *out)
{
    struct sent *sent = sent_create(SENT_APPEND, owned, out);
    thole_status status = append_subject(shard, owned, out);
    if (status == THOLE_OK) {
        struct publish const publish = {.subject = buf_cstr(&shard->subject),
                                        .body = out->bytes,
                                        .expect_last = true,
                                        .expected_last = out->expected_last};
        status = requests_publish(shard->appends, &publish, (uint64_t)(uintptr_t)sent, NULL);
    }
    if (status != THOLE_OK)
        answer_unsent(shard, sent);
}

static const char *why_not_stored(enum request_result result)
{
    switch (result) {
    case REQUEST_REFUSED: return "an append was refused: another owner wrote first";
    case REQUEST_UNKNOWN: return "an append was not answered";
    case REQUEST_BUSY: return "the stream is busy or has no leader";
    case REQUEST_ANSWERED:
    case REQUEST_STORED:
    case REQUEST_FAILED: break;
    }
    return "the server refused an append";
}

static void append_answered(struct shard *shard, struct owned *owned, const struct sent *sent,
                            const struct shard_mail *mail)
{
    struct partition_in in = {.kind = PARTITION_IN_APPENDED,
                              .generation = sent->generation,
                              .n = sent->token,
                              .sequence = mail->sequence};
    if (mail->result != REQUEST_STORED) {
        in.kind = PARTITION_IN_APPEND_FAILED;
        in.text = why_not_stored(mail->result);
        if (mail->result == REQUEST_FAILED)
            log_line(LOG_LEVEL_ERROR, "partition", "p=%u the server refused an append, error %u", owned->p,
                     mail->err_code);
    }
    shard_input(shard, owned, &in);
}

/* ---- work ---- */

static thole_status keep_item(struct sent *sent, const struct partition_out *out)
{
    struct work_item *item = &sent->item;
    item->execution = out->execution;
    item->activity_id = out->activity_id;
    item->try_number = out->try_number == 0 ? 1 : out->try_number;
    THOLE_TRY(arena_dup(&sent->arena, out->queue, &item->queue));
    THOLE_TRY(arena_dup(&sent->arena, out->instance, &item->instance));
    THOLE_TRY(arena_dup(&sent->arena, out->activity, &item->activity));
    return arena_dup(&sent->arena, out->data, &item->input);
}

static void append(struct sent **first, struct sent **last, struct sent *sent)
{
    sent->next = NULL;
    if (*last != NULL)
        (*last)->next = sent;
    else
        *first = sent;
    *last = sent;
}

static struct sent *take_first(struct sent **first, struct sent **last)
{
    struct sent *const sent = *first;
    *first = sent->next;
    if (*first == NULL)
        *last = NULL;
    return sent;
}

static void wait_for_window(struct shard *shard, struct sent *sent)
{
    append(&shard->waiting_first, &shard->waiting_last, sent);
}

static thole_status send_look(struct shard *shard, struct sent *sent, thole_error *reterr)
{
    char api[STREAM_NAME_BYTES_MAX + 32];
    snprintf(api, sizeof api, "$JS.API.STREAM.MSG.GET.%s", shard_owned(shard, sent->p)->hist_stream);
    THOLE_TRY(subject_history(&shard->subject, shard->engine->topology.ns, sent->p, sent->instance,
                              EXECUTIONS_ALL, reterr));
    buf_clear(&shard->body);
    THOLE_TRY(stream_get_request(&shard->body, buf_cstr(&shard->subject)));
    return requests_send(shard->works, api, buf_bytes(&shard->body), (uint64_t)(uintptr_t)sent, reterr);
}

static thole_status send_withdraw(struct shard *shard, struct sent *sent, thole_error *reterr)
{
    char api[STREAM_NAME_BYTES_MAX + 40], body[64];
    snprintf(api, sizeof api, "$JS.API.STREAM.MSG.DELETE.THOLE_%s_WORK", shard->engine->topology.ns);
    snprintf(body, sizeof body, "{\"seq\":%llu,\"no_erase\":true}", (unsigned long long)sent->token);
    return requests_send(shard->works, api, thole_slice_from(body), (uint64_t)(uintptr_t)sent, reterr);
}

static thole_status send_message(struct shard *shard, struct sent *sent, thole_error *reterr)
{
    const struct topology *topology = &shard->engine->topology;
    uint32_t const p = subject_partition(sent->instance, topology->partitions);
    THOLE_TRY(subject_inbox(&shard->subject, topology->ns, p, sent->instance, reterr));
    struct publish const publish = {.subject = buf_cstr(&shard->subject), .body = sent->body};
    return requests_publish(shard->works, &publish, (uint64_t)(uintptr_t)sent, reterr);
}

static thole_status send_kind(struct shard *shard, struct sent *sent, thole_error *reterr)
{
    switch (sent->kind) {
    case SENT_LOOK: return send_look(shard, sent, reterr);
    case SENT_WITHDRAW: return send_withdraw(shard, sent, reterr);
    case SENT_MESSAGE: return send_message(shard, sent, reterr);
    case SENT_WORK:
    case SENT_REQUEUE:
    case SENT_LOOK_FOR_WORK:
    case SENT_REMOVE:
    case SENT_APPEND: break;
    }
    const char *ns = shard->engine->topology.ns;
    uint64_t const token = (uint64_t)(uintptr_t)sent;
    if (sent->kind == SENT_LOOK_FOR_WORK || sent->unless_there)
        return work_look(shard->works, ns, &sent->item, token, reterr);
    return work_publish(shard->works, ns, &sent->item, token, reterr);
}

static void leave_aside(struct shard *shard, struct sent *sent)
{
    shard->aside -= sent->aside;
    sent->aside = false;
}

static void submit_removal(struct shard *shard, struct sent *sent)
{
    struct job *job = job_create(JOB_REMOVE, shard, sent->p, sent->generation);
    if (job == NULL || arena_dup(&job->arena, sent->instance, &job->instance) != THOLE_OK)
        abort();
    job->to = sent->token;
    job->executions = sent->executions;
    loader_submit(shard->engine->loader, job);
    sent_destroy(sent);
}

/* Work and look-ups share a window; what finds no room waits its turn. */
static void send_now(struct shard *shard, struct sent *sent)
{
    thole_error err = {0};
    if (sent->generation != partition_generation(shard_owned(shard, sent->p)->machine)) {
        leave_aside(shard, sent);
        sent_destroy(sent); /* of an earlier life: the next one asks for all that is missing */
        return;
    }
    if (sent->kind == SENT_REMOVE) {
        submit_removal(shard, sent);
        return;
    }
    thole_status const status = send_kind(shard, sent, &err);
    if (status == THOLE_LIMIT && requests_in_flight(shard->works) > 0) {
        wait_for_window(shard, sent);
    } else if (status != THOLE_OK) {
        if (status != THOLE_UNAVAILABLE)
            log_line(LOG_LEVEL_ERROR, "partition", "p=%u cannot send: %s", sent->p, err.text);
        answer_unsent(shard, sent);
    }
}

static void send_in_turn(struct shard *shard, struct sent *sent)
{
    if (shard->waiting_first != NULL)
        wait_for_window(shard, sent);
    else
        send_now(shard, sent);
}

/* Thousands may be cancelled at once: what is new does not wait behind them. */
static void send_aside(struct shard *shard)
{
    while (shard->aside_first != NULL && shard->waiting_first == NULL && shard->aside < ASIDE_WINDOW) {
        struct sent *const sent = take_first(&shard->aside_first, &shard->aside_last);
        sent->aside = true;
        shard->aside++;
        send_now(shard, sent);
    }
}

static void put_aside(struct shard *shard, struct sent *sent)
{
    append(&shard->aside_first, &shard->aside_last, sent);
    send_aside(shard);
}

static void do_work(struct shard *shard, const struct owned *owned, const struct partition_out *out)
{
    struct sent *sent = sent_create(SENT_WORK, owned, out);
    if (keep_item(sent, out) != THOLE_OK)
        abort();
    sent->unless_there = out->again;
    if (sent->unless_there)
        put_aside(shard, sent);
    else
        send_in_turn(shard, sent);
}

static struct sent *sent_for(enum sent_kind kind, const struct owned *owned,
                             const struct batch_activity *activity, thole_slice input)
{
    struct partition_out const out = {.generation = partition_generation(owned->machine),
                                      .queue = activity->queue,
                                      .instance = activity->instance,
                                      .execution = activity->execution,
                                      .activity_id = activity->activity_id,
                                      .try_number = activity->try_number,
                                      .activity = activity->activity,
                                      .data = input};
    struct sent *sent = sent_create(kind, owned, &out);
    if (keep_item(sent, &out) != THOLE_OK)
        abort();
    return sent;
}

void shard_look_for_work(struct shard *shard, struct owned *owned, const struct batch_activity *activity)
{
    put_aside(shard, sent_for(SENT_LOOK_FOR_WORK, owned, activity, (thole_slice){0}));
}

void shard_requeue(struct shard *shard, struct owned *owned, const struct batch_activity *activity,
                   thole_slice input)
{
    send_in_turn(shard, sent_for(SENT_REQUEUE, owned, activity, input));
}

static void do_withdraw(struct shard *shard, const struct owned *owned, const struct partition_out *out)
{
    struct sent *sent = sent_create(SENT_WITHDRAW, owned, out);
    sent->token = out->sequence;
    put_aside(shard, sent);
}

/* To another instance, in whichever partition: its own message, with its own meaning, so that a repetition
 * does no harm. */
static void do_send(struct shard *shard, const struct owned *owned, const struct partition_out *out)
{
    struct sent *sent = sent_create(SENT_MESSAGE, owned, out);
    if (arena_dup(&sent->arena, out->instance, &sent->instance) != THOLE_OK ||
        arena_dup(&sent->arena, out->bytes, &sent->body) != THOLE_OK)
        abort();
    send_in_turn(shard, sent);
}

static void delay(struct shard *shard, struct sent *sent, uint64_t pause_ms)
{
    sent->due_ms = clock_monotonic_ms() + pause_ms;
    if (shard->delayed == NULL || sent->due_ms < shard->delayed_ms)
        shard->delayed_ms = sent->due_ms;
    sent->next = shard->delayed;
    shard->delayed = sent;
}

static void take_due(struct shard *shard)
{
    uint64_t const now = clock_monotonic_ms();
    struct sent *all = shard->delayed;
    if (all == NULL || now < shard->delayed_ms)
        return;
    shard->delayed = NULL;
    for (struct sent *next; all != NULL; all = next) {
        next = all->next;
        if (now >= all->due_ms)
            wait_for_window(shard, all);
        else
            delay(shard, all, all->due_ms - now);
    }
}

void shard_send_waiting(struct shard *shard)
{
    take_due(shard);
    while (shard->waiting_first != NULL && requests_in_flight(shard->works) < WORK_WINDOW)
        send_now(shard, take_first(&shard->waiting_first, &shard->waiting_last));
    send_aside(shard);
}

/* A stream that is full, or read-only: what it refuses is tried again until it takes it. */
static void say_refused(struct shard *shard, const struct sent *sent, const struct shard_mail *mail)
{
    uint64_t const now = clock_monotonic_ms();
    if (now < shard->refused_ms + REFUSED_SAID_MS && shard->refused_ms != 0)
        return;
    shard->refused_ms = now;
    if (sent->kind == SENT_MESSAGE)
        log_line(LOG_LEVEL_WARN, "partition",
                 "p=%u a message to %.*s is refused with error %u; it is tried again", sent->p,
                 THOLE_FMT(sent->instance), mail->err_code);
    else
        log_line(LOG_LEVEL_WARN, "partition",
                 "p=%u the message of activity %llu of %.*s is refused with error %u; it is tried again",
                 sent->p, (unsigned long long)sent->item.activity_id, THOLE_FMT(sent->item.instance),
                 mail->err_code);
}

static void send_again(struct shard *shard, struct sent *sent, const struct shard_mail *mail)
{
    if (mail->result == REQUEST_FAILED)
        say_refused(shard, sent, mail);
    delay(shard, sent, mail->result == REQUEST_BUSY ? BUSY_RETRY_MS : SEND_RETRY_MS);
}

static void published(struct shard *shard, struct owned *owned, struct sent *sent, uint64_t sequence)
{
    shard_input(shard, owned,
                &(struct partition_in){.kind = PARTITION_IN_PUBLISHED,
                                       .generation = sent->generation,
                                       .token = sent->token,
                                       .sequence = sequence});
    sent_destroy(sent);
}

/* Is it queued? False: nobody knows. *ret_sequence 0: it is not. */
static bool found_work(const struct shard_mail *mail, uint64_t *ret_sequence)
{
    return mail->result == REQUEST_ANSWERED && stream_get_answer((thole_slice){mail->bytes, mail->bytes_len},
                                                                 ret_sequence, NULL, NULL) == THOLE_OK;
}

static void work_answered(struct shard *shard, struct owned *owned, struct sent *sent,
                          const struct shard_mail *mail)
{
    uint64_t sequence = mail->sequence;
    if (sent->generation != partition_generation(owned->machine)) {
        sent_destroy(sent); /* the next owner asks for it again */
    } else if (mail->result == REQUEST_BUSY || mail->result == REQUEST_FAILED) {
        send_again(shard, sent, mail);
    } else if (mail->result == REQUEST_STORED || (found_work(mail, &sequence) && sequence != 0)) {
        published(shard, owned, sent, sequence);
    } else if (found_work(mail, &sequence)) {
        sent->unless_there = false;
        send_in_turn(shard, sent);
    } else {
        shard_doubt(shard, owned, "a work message could not be published", false);
        sent_destroy(sent);
    }
}

/* What nobody knows the sweeper asks again. */
static void looked_for_work(struct shard *shard, struct owned *owned, struct sent *sent,
                            const struct shard_mail *mail)
{
    uint64_t sequence = 0;
    const struct work_item *item = &sent->item;
    struct batch_activity const activity = {.instance = item->instance,
                                            .execution = item->execution,
                                            .activity_id = item->activity_id,
                                            .try_number = (uint32_t)item->try_number,
                                            .queue = item->queue,
                                            .activity = item->activity};
    if (sent->generation == partition_generation(owned->machine) && found_work(mail, &sequence) &&
        sequence == 0)
        sweeper_missing(shard, owned, &activity);
    sent_destroy(sent);
}

/* Whether it was stored may be unknown: it is sent again, and receivers know a repetition by its meaning. */
static void message_answered(struct shard *shard, struct owned *owned, struct sent *sent,
                             const struct shard_mail *mail)
{
    if (mail->result != REQUEST_STORED && sent->generation == partition_generation(owned->machine)) {
        send_again(shard, sent, mail);
        return;
    }
    if (mail->result == REQUEST_STORED)
        shard_input(shard, owned,
                    &(struct partition_in){.kind = PARTITION_IN_SENT,
                                           .generation = sent->generation,
                                           .token = sent->token,
                                           .sequence = mail->sequence});
    sent_destroy(sent);
}

/* ---- histories that go ---- */

static struct sent *removal_of(const struct owned *owned, uint64_t generation, uint64_t sequence,
                               struct executions executions, thole_slice instance)
{
    struct partition_out const out = {.generation = generation, .token = sequence};
    struct sent *sent = sent_create(SENT_REMOVE, owned, &out);
    if (arena_dup(&sent->arena, instance, &sent->instance) != THOLE_OK)
        abort();
    sent->executions = executions;
    return sent;
}

/* In small pieces, so that histories can be loaded in between, and for as long as it takes: nothing but the
 * watermark waits for it. */
void shard_removed(struct shard *shard, struct owned *owned, const struct job *job)
{
    if (job->generation != partition_generation(owned->machine))
        return;
    if (job->status == THOLE_OK && !job->more) {
        shard_input(shard, owned,
                    &(struct partition_in){
                        .kind = PARTITION_IN_REMOVED, .generation = job->generation, .sequence = job->to});
        return;
    }
    struct sent *again = removal_of(owned, job->generation, job->to, job->executions, job->instance);
    if (job->status == THOLE_OK) {
        wait_for_window(shard, again);
        return;
    }
    log_line(LOG_LEVEL_WARN, "partition",
             "p=%u the history of %.*s is deleted, but its records cannot be removed yet: %s", owned->p,
             THOLE_FMT(job->instance), job->err.text);
    delay(shard, again, SEND_RETRY_MS);
}

/* ---- histories ---- */

static struct job *job_for(struct shard *shard, enum job_kind kind, const struct owned *owned,
                           const struct partition_out *out)
{
    struct job *job = job_create(kind, shard, owned->p, out->generation);
    if (job == NULL)
        abort();
    return job;
}

static void load_execution(struct shard *shard, const struct owned *owned, const struct partition_out *out)
{
    struct job *job = job_for(shard, JOB_LOAD, owned, out);
    job->token = out->token;
    job->to = UINT64_MAX;
    job->execution = out->execution;
    job->only = true;
    if (arena_dup(&job->arena, out->instance, &job->instance) != THOLE_OK)
        abort();
    loader_submit(shard->engine->loader, job);
}

/* Most instances are new when they are first heard of: ask that first, without a thread and a consumer. */
static void do_load(struct shard *shard, struct owned *owned, const struct partition_out *out)
{
    if (out->execution != 0) { /* which is known */
        load_execution(shard, owned, out);
        return;
    }
    struct sent *sent = sent_create(SENT_LOOK, owned, out);
    if (arena_dup(&sent->arena, out->instance, &sent->instance) != THOLE_OK)
        abort();
    send_in_turn(shard, sent);
}

/* Of the newest record of an instance: its sequence (0: there is none) and execution, or EXECUTION_DELETED.
 */
static thole_status newest_record(thole_slice answer, uint64_t *ret_sequence, uint64_t *ret_execution,
                                  thole_error *reterr)
{
    enum { TOKEN_EXECUTION = 5 };
    struct buf subject;
    THOLE_TRY(stream_get_answer(answer, ret_sequence, NULL, reterr));
    if (*ret_sequence == 0)
        return THOLE_OK;
    buf_init(&subject, SUBJECT_BYTES_MAX);
    thole_status status = stream_get_subject(answer, &subject, reterr);
    thole_slice const execution = subject_nth(buf_bytes(&subject), TOKEN_EXECUTION);
    if (thole_slice_equal(execution, THOLE_STR(SUBJECT_DELETED)))
        *ret_execution = EXECUTION_DELETED;
    else if (status == THOLE_OK && !json_uint(execution, ret_execution))
        status = thole_fail(reterr, THOLE_CORRUPT, "a history's subject names no execution");
    buf_release(&subject);
    return status;
}

static void load_history(struct shard *shard, const struct owned *owned, const struct sent *sent,
                         uint64_t sequence, uint64_t execution)
{
    struct partition_out const out = {.generation = sent->generation};
    struct job *job = job_for(shard, JOB_LOAD, owned, &out);
    job->token = sent->token;
    job->to = sequence;
    job->execution = execution;
    if (arena_dup(&job->arena, sent->instance, &job->instance) != THOLE_OK)
        abort();
    loader_submit(shard->engine->loader, job);
}

static void look_answered(struct shard *shard, struct owned *owned, const struct sent *sent,
                          const struct shard_mail *mail)
{
    uint64_t sequence = 0, execution = 0;
    thole_error err = {0};
    thole_status status = THOLE_UNAVAILABLE;
    if (mail->result == REQUEST_ANSWERED)
        status = newest_record((thole_slice){mail->bytes, mail->bytes_len}, &sequence, &execution, &err);
    if (status != THOLE_OK) {
        if (sent->generation == partition_generation(owned->machine))
            shard_doubt(shard, owned, "a history could not be looked up", false);
    } else if (sequence > 0) {
        load_history(shard, owned, sent, sequence, execution);
    } else {
        shard_input(shard, owned,
                    &(struct partition_in){.kind = PARTITION_IN_HISTORY,
                                           .generation = sent->generation,
                                           .token = sent->token,
                                           .instance = sent->instance});
    }
}

void shard_request_answered(struct shard *shard, struct shard_mail *mail)
{
    struct sent *sent = mail->sent;
    struct owned *owned = shard_owned(shard, sent->p);
    leave_aside(shard, sent);
    switch (sent->kind) {
    case SENT_APPEND:
        append_answered(shard, owned, sent, mail);
        sent_destroy(sent);
        break;
    case SENT_WORK: work_answered(shard, owned, sent, mail); break;
    case SENT_MESSAGE: message_answered(shard, owned, sent, mail); break;
    case SENT_LOOK:
        look_answered(shard, owned, sent, mail);
        sent_destroy(sent);
        break;
    case SENT_LOOK_FOR_WORK: looked_for_work(shard, owned, sent, mail); break;
    case SENT_REMOVE: sent_destroy(sent); break;
    case SENT_WITHDRAW: /* gone, or a worker has it: either is fine */ sent_destroy(sent); break;
    case SENT_REQUEUE:
        if (mail->result == REQUEST_STORED)
            log_line(LOG_LEVEL_WARN, "sweeper", "p=%u activity %llu of %.*s was lost and is queued again",
                     sent->p, (unsigned long long)sent->item.activity_id, THOLE_FMT(sent->item.instance));
        sent_destroy(sent);
        break;
    }
}

static void forget_list(struct sent *first)
{
    for (struct sent *next; first != NULL; first = next) {
        next = first->next;
        sent_destroy(first);
    }
}

void shard_forget_sent(struct shard *shard)
{
    forget_list(shard->waiting_first);
    forget_list(shard->aside_first);
    forget_list(shard->delayed);
}

void shard_mail_destroy(struct shard_mail *mail)
{
    if (mail->kind == SHARD_REQUEST)
        sent_destroy(mail->sent);
    if (mail->kind == SHARD_REJECTED)
        shard_rejection_destroy(mail->rejection);
    if (mail->kind == SHARD_ANSWER) {
        inbox_tap_close(mail->job->kind == JOB_OPEN_INBOX ? mail->job->tap : NULL);
        job_destroy(mail->job);
    }
    free(mail);
}

/* ---- the rest ---- */

static void submit_stream_job(struct shard *shard, struct owned *owned, const struct partition_out *out,
                              enum job_kind kind)
{
    struct job *job = job_for(shard, kind, owned, out);
    job->from = out->from;
    job->to = out->to;
    job->count = out->count;
    job->sequence = out->sequence;
    job->stored_ns = out->stored_ns;
    job->expected_last = out->expected_last;
    if (out->sequences_len > 0) {
        job->sequences = arena_array(&job->arena, out->sequences_len, sizeof *job->sequences);
        if (job->sequences == NULL)
            abort();
        memcpy(job->sequences, out->sequences, out->sequences_len * sizeof *job->sequences);
        job->sequences_len = out->sequences_len;
    }
    loader_submit(shard->engine->loader, job);
}

static void submit_store_job(struct shard *shard, struct owned *owned, const struct partition_out *out,
                             enum job_kind kind)
{
    struct job *job = job_for(shard, kind, owned, out);
    job->epoch = kind == JOB_STORE_OPEN ? out->epoch : partition_epoch(owned->machine);
    job->before_ms = out->before_ms;
    job->batch = out->batch;
    store_submit(shard->store, job);
}

static void do_push(struct shard *shard, const struct partition_out *out)
{
    struct cancel_notice const notice = {.instance = out->instance,
                                         .execution = out->execution,
                                         .activity_ids = out->sequences,
                                         .activity_ids_len = out->sequences_len,
                                         .try_number = out->try_number,
                                         .kind = thole_slice_from(out->event_kind),
                                         .reason = out->data};
    thole_error err = {0};
    if (cancel_notice_publish(shard->engine->connection, shard->engine->topology.ns, &notice, &err) !=
        THOLE_OK)
        log_line(LOG_LEVEL_DEBUG, "partition", "a cancel push was not sent: %s", err.text);
}

static void do_event(struct shard *shard, const struct partition_out *out)
{
    struct event_notice const notice = {.orchestration = out->orchestration,
                                        .instance = out->instance,
                                        .kind = out->event_kind,
                                        .execution = out->execution,
                                        .request_id = out->request_id,
                                        .data = out->data};
    thole_error err = {0};
    if (event_notice_publish(shard->engine->connection, shard->engine->topology.ns, &notice, &err) !=
        THOLE_OK)
        log_line(LOG_LEVEL_DEBUG, "partition", "a live event was not sent: %s", err.text);
}

static void on_closed(struct shard *shard, struct owned *owned, const struct partition_out *out)
{
    log_line(out->reopen ? LOG_LEVEL_WARN : LOG_LEVEL_INFO, "partition",
             "p=%u closed: %s (epoch %llu, %llu records committed)", owned->p, out->text,
             (unsigned long long)out->epoch, (unsigned long long)out->count);
    owned->close_by_ms = 0;
    shard_queries_close(shard, owned);
    if (owned->tap != NULL) {
        struct job *job = job_for(shard, JOB_CLOSE_INBOX, owned, out);
        job->tap = owned->tap;
        owned->tap = NULL;
        loader_submit(shard->engine->loader, job);
    }
    uint64_t const pause = (uint64_t)REOPEN_FIRST_MS << (owned->failures < 8 ? owned->failures : 8);
    uint64_t const now = clock_monotonic_ms();
    uint64_t const until =
        now + (pause < RETRY_MS_MAX ? pause : RETRY_MS_MAX) + (now ^ owned->p) % REOPEN_FIRST_MS;
    if (until > owned->not_before_ms)
        owned->not_before_ms = until;
    owned->failures++;
}

static void on_opened(struct shard *shard, struct owned *owned, const struct partition_out *out)
{
    shard_queries_open(shard, owned);
    sweeper_opened(owned);
    log_line(LOG_LEVEL_INFO, "partition", "p=%u open, epoch %llu", owned->p, (unsigned long long)out->epoch);
}

void shard_do(struct shard *shard, struct owned *owned, const struct partition_out *out)
{
    switch (out->kind) {
    case PARTITION_OUT_CLOSED: on_closed(shard, owned, out); break;
    case PARTITION_OUT_OPENED: on_opened(shard, owned, out); break;
    case PARTITION_OUT_READ_TAIL: submit_stream_job(shard, owned, out, JOB_READ_TAIL); break;
    case PARTITION_OUT_DELETE_RECORDS:
        log_line(LOG_LEVEL_INFO, "partition", "p=%u removes void records: %zu of a former owner", owned->p,
                 out->sequences_len);
        submit_stream_job(shard, owned, out, JOB_DELETE);
        break;
    case PARTITION_OUT_APPEND: do_append(shard, owned, out); break;
    case PARTITION_OUT_READ_LOG: submit_stream_job(shard, owned, out, JOB_READ_LOG); break;
    case PARTITION_OUT_READ_RESULTS: submit_stream_job(shard, owned, out, JOB_READ_RESULTS); break;
    case PARTITION_OUT_REMOVE_HISTORY:
        send_in_turn(shard,
                     removal_of(owned, out->generation, out->sequence, out->executions, out->instance));
        break;
    case PARTITION_OUT_LOAD: do_load(shard, owned, out); break;
    case PARTITION_OUT_STORE_OPEN: submit_store_job(shard, owned, out, JOB_STORE_OPEN); break;
    case PARTITION_OUT_STORE_RESET: submit_store_job(shard, owned, out, JOB_STORE_RESET); break;
    case PARTITION_OUT_READ_LIVE: submit_store_job(shard, owned, out, JOB_STORE_LIVE); break;
    case PARTITION_OUT_READ_TIMERS: submit_store_job(shard, owned, out, JOB_STORE_TIMERS); break;
    case PARTITION_OUT_APPLY: submit_store_job(shard, owned, out, JOB_STORE_APPLY); break;
    case PARTITION_OUT_PUBLISH_WORK: do_work(shard, owned, out); break;
    case PARTITION_OUT_PUSH_CANCEL: do_push(shard, out); break;
    case PARTITION_OUT_WITHDRAW: do_withdraw(shard, owned, out); break;
    case PARTITION_OUT_EVENT: do_event(shard, out); break;
    case PARTITION_OUT_READ_INBOX: submit_stream_job(shard, owned, out, JOB_OPEN_INBOX); break;
    case PARTITION_OUT_PURGE_INBOX: submit_stream_job(shard, owned, out, JOB_PURGE); break;
    case PARTITION_OUT_REJECTED: shard_reject(shard, owned, out); break;
    case PARTITION_OUT_SEND: do_send(shard, owned, out); break;
    case PARTITION_OUT_LOG: shard_log(out); break;
    case PARTITION_OUT_READ_CRASHES:
    case PARTITION_OUT_CRASHED:
    case PARTITION_OUT_CRASHES_OVER: shard_crash(shard, owned, out); break;
    case PARTITION_OUT_QUERY_ANSWER: shard_query_answered(shard, owned, out); break;
    }
}
