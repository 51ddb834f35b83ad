/* A few threads that do the blocking stream reads of all shards. */
#include "engine.h"
#include "jscan.h"
#include "log.h"
#include "subject.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct loader {
    struct engine_host *engine;
    pthread_t threads[LOADER_THREADS];
    size_t threads_len;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    struct job *first, *last;
    bool stopping;
};

enum {
    JOB_ARENA_MAX = 1024 * 1024 * 1024,
    RECORDS_MIN = 64,
    REMOVED_MAX = 1000, /* records of one job */
};

struct job *job_create(enum job_kind kind, struct shard *shard, uint32_t p, uint64_t generation)
{
    struct job *job = calloc(1, sizeof *job);
    if (job == NULL)
        return NULL;
    job->kind = kind;
    job->shard = shard;
    job->p = p;
    job->generation = generation;
    job->in.generation = generation;
    arena_init(&job->arena, JOB_ARENA_MAX);
    return job;
}

void job_destroy(struct job *job)
{
    if (job == NULL)
        return;
    batch_destroy(job->batch);
    arena_release(&job->arena);
    free(job);
}

void job_answer(struct job *job)
{
    struct shard_mail *mail = shard_mail_create(SHARD_ANSWER, 0);
    if (mail == NULL)
        abort(); /* a lost answer would stall its partition for ever */
    mail->p = job->p;
    mail->generation = job->generation;
    mail->job = job;
    shard_send(job->shard, mail);
}

/* ---- collecting records ---- */

struct collect {
    struct job *job;
    struct log_record *records;
    size_t len, cap;
};

static thole_status collect_record(void *arg, uint64_t sequence, thole_slice subject, thole_slice body)
{
    enum { TOKEN_EXECUTION = 5 };
    struct collect *c = arg;
    if (c->len == c->cap) {
        size_t const cap = c->cap == 0 ? RECORDS_MIN : c->cap * 2;
        struct log_record *grown = arena_array(&c->job->arena, cap, sizeof *grown);
        if (grown == NULL)
            return THOLE_NOMEM;
        if (c->len > 0)
            memcpy(grown, c->records, c->len * sizeof *grown);
        c->records = grown;
        c->cap = cap;
    }
    struct log_record *record = &c->records[c->len];
    record->sequence = sequence;
    if (!json_uint(subject_nth(subject, TOKEN_EXECUTION), &record->execution))
        record->execution = 0; /* no turn's */
    THOLE_TRY(arena_dup(&c->job->arena, body, &record->bytes));
    c->len++;
    return THOLE_OK;
}

static thole_status read_records(struct loader *loader, struct collect *c, const char *stream,
                                 const char *filter, uint64_t from, uint64_t to)
{
    if (from > to)
        return THOLE_OK;
    return stream_read(loader->engine->connection, stream, filter, from, to, collect_record, c, &c->job->err);
}

static struct owned *owned_of(const struct job *job)
{
    return shard_owned(job->shard, job->p);
}

static void use(struct job *job, const struct collect *c, enum partition_in_kind kind)
{
    job->in.kind = kind;
    job->in.records = c->records;
    job->in.records_len = c->len;
}

/* ---- the jobs ---- */

static thole_status read_tail(struct loader *loader, struct job *job)
{
    struct connection *connection = loader->engine->connection;
    const char *stream = owned_of(job)->hist_stream;
    struct collect c = {.job = job};
    struct buf subject, body;
    buf_init(&subject, SUBJECT_BYTES_MAX);
    buf_init(&body, RECORD_BYTES_MAX);
    uint64_t opened = 0;
    struct stream_bounds bounds = {0};
    thole_status status = subject_control(&subject, loader->engine->topology.ns, job->p, "epoch", &job->err);
    /* In this order: every EpochOpened up to the bound is known when the last one is asked for. */
    if (status == THOLE_OK)
        status = stream_bounds(connection, stream, &bounds, &job->err);
    if (status == THOLE_OK)
        status = stream_last_by_subject(connection, stream, buf_cstr(&subject), &opened, &body, &job->err);
    if (status == THOLE_OK && opened > bounds.last)
        status = thole_fail(&job->err, THOLE_CONFLICT, "a rival opened the partition meanwhile");
    if (status == THOLE_OK && opened > 0)
        status = collect_record(&c, opened, (thole_slice){0}, buf_bytes(&body));
    if (status == THOLE_OK) {
        uint64_t from = opened + 1;
        if (job->count > 0 && bounds.last >= job->count && bounds.last - job->count + 1 > from)
            from = bounds.last - job->count + 1;
        status = read_records(loader, &c, stream, NULL, from, bounds.last);
    }
    buf_release(&subject);
    buf_release(&body);
    use(job, &c, PARTITION_IN_TAIL);
    job->in.epoch_sequence = opened;
    job->in.last_sequence = bounds.last;
    return status;
}

static thole_status read_log(struct loader *loader, struct job *job)
{
    struct collect c = {.job = job};
    thole_status const status =
        read_records(loader, &c, owned_of(job)->hist_stream, NULL, job->from, job->to);
    use(job, &c, PARTITION_IN_LOG);
    return status;
}

static thole_status read_execution(struct loader *loader, struct collect *c, uint64_t execution,
                                   uint64_t from)
{
    const struct job *job = c->job;
    struct buf subject;
    buf_init(&subject, SUBJECT_BYTES_MAX);
    thole_status status = subject_history(&subject, loader->engine->topology.ns, job->p, job->instance,
                                          execution, &c->job->err);
    if (status == THOLE_OK)
        status = read_records(loader, c, owned_of(job)->hist_stream, buf_cstr(&subject), from, job->to);
    buf_release(&subject);
    return status;
}

/* Where the id's last life ended by a deletion (0: it never did), and with which execution (of one that does
 * not decode: any). */
static thole_status read_deletion(struct loader *loader, struct job *job, uint64_t *ret_sequence,
                                  uint64_t *ret_execution)
{
    struct buf subject, body;
    struct record record;
    struct arena arena;
    buf_init(&subject, SUBJECT_BYTES_MAX);
    buf_init(&body, RECORD_BYTES_MAX);
    arena_init(&arena, RECORD_BYTES_MAX * 2);
    thole_status status = subject_history(&subject, loader->engine->topology.ns, job->p, job->instance,
                                          EXECUTION_DELETED, &job->err);
    if (status == THOLE_OK)
        status = stream_last_by_subject(loader->engine->connection, owned_of(job)->hist_stream,
                                        buf_cstr(&subject), ret_sequence, &body, &job->err);
    if (status == THOLE_OK && *ret_sequence > 0) {
        thole_status const decoded = record_decode(buf_bytes(&body), &arena, &record, NULL);
        bool const good = decoded == THOLE_OK && record.kind == RECORD_DELETED;
        *ret_execution = good ? record.deletion.execution : UINT64_MAX - 1;
        if (decoded == THOLE_NOMEM)
            status = thole_fail(&job->err, decoded, "out of memory");
    }
    arena_release(&arena);
    buf_release(&subject);
    buf_release(&body);
    return status;
}

/*
 * Up to the instance's newest record, which is known. Of its first execution, and of what came before that,
 * all since the id was deleted last: events that come before a start may be recorded after an attempt at it
 * that was cut short. An execution that continued as a new one is not written to any more.
 */
static thole_status load_newest(struct loader *loader, struct job *job, struct collect *c)
{
    uint64_t deleted = 0, last = 0;
    if (job->execution == EXECUTION_DELETED)
        return read_execution(loader, c, EXECUTION_DELETED, job->to);
    if (job->execution != 1)
        THOLE_TRY(read_deletion(loader, job, &deleted, &last));
    if (job->execution <= last + 1)
        return read_execution(loader, c, EXECUTIONS_ALL, deleted);
    THOLE_TRY(read_execution(loader, c, job->execution - 1, 1));
    return read_execution(loader, c, job->execution, 1);
}

static thole_status load(struct loader *loader, struct job *job)
{
    struct collect c = {.job = job};
    thole_status const status =
        job->only ? read_execution(loader, &c, job->execution, 1) : load_newest(loader, job, &c);
    if (status == THOLE_OK)
        log_line(LOG_LEVEL_DEBUG, "partition", "p=%u instance %.*s, execution %llu: loads from %zu records",
                 job->p, THOLE_FMT(job->instance), (unsigned long long)job->execution, c.len);
    use(job, &c, PARTITION_IN_HISTORY);
    job->in.token = job->token;
    job->in.instance = job->instance;
    return status;
}

/* ---- results that wait in the inbox ---- */

struct results {
    struct job *job;
    struct partition_result *items;
    size_t len, cap;
};

static thole_status keep_result(struct results *results, const struct message *message, uint64_t sequence)
{
    struct arena *arena = &results->job->arena;
    if (results->len == results->cap) {
        size_t const cap = results->cap == 0 ? RECORDS_MIN : results->cap * 2;
        struct partition_result *grown = arena_array(arena, cap, sizeof *grown);
        if (grown == NULL)
            return THOLE_NOMEM;
        if (results->len > 0)
            memcpy(grown, results->items, results->len * sizeof *grown);
        results->items = grown;
        results->cap = cap;
    }
    struct partition_result *to = &results->items[results->len++];
    *to = (struct partition_result){.execution = message->execution,
                                    .activity_id = message->task,
                                    .try_number = message->try_number == 0 ? 1 : message->try_number,
                                    .sequence = results->job->gone_back ? 0 : sequence};
    return arena_dup(arena, message->instance, &to->instance);
}

/* A message whose subject names another instance is nobody's result. */
static thole_status collect_result(void *arg, uint64_t sequence, thole_slice subject, thole_slice body)
{
    enum { TOKEN_INSTANCE = 4 };
    struct results *results = arg;
    struct arena arena;
    struct message message;
    struct buf id;
    thole_status status = THOLE_OK;
    arena_init(&arena, MESSAGE_BYTES_MAX * 2);
    buf_init(&id, THOLE_ID_BYTES_MAX);
    if (message_decode(body, &arena, &message, NULL) == THOLE_OK && message.kind == MESSAGE_ACTIVITY_RESULT &&
        subject_token_decode(subject_nth(subject, TOKEN_INSTANCE), &id, NULL) == THOLE_OK &&
        thole_slice_equal(buf_bytes(&id), message.instance))
        status = keep_result(results, &message, sequence);
    buf_release(&id);
    arena_release(&arena);
    return status;
}

static thole_status read_results(struct loader *loader, struct job *job)
{
    struct connection *connection = loader->engine->connection;
    const char *stream = owned_of(job)->in_stream;
    struct stream_bounds bounds = {0};
    struct results results = {.job = job};
    THOLE_TRY(inbox_check(job, &job->err));
    THOLE_TRY(stream_bounds(connection, stream, &bounds, &job->err));
    uint64_t from = job->from > bounds.first && !job->gone_back ? job->from : bounds.first;
    if (bounds.last >= job->count && from < bounds.last - job->count + 1)
        from = bounds.last - job->count + 1;
    thole_status status = THOLE_OK;
    if (bounds.messages > 0 && from <= bounds.last)
        status =
            stream_read(connection, stream, NULL, from, bounds.last, collect_result, &results, &job->err);
    job->in.kind = PARTITION_IN_RESULTS;
    job->in.results = results.items;
    job->in.results_len = results.len;
    return status;
}

/* ---- the input of an activity ---- */

static thole_status find_scheduled(void *arg, uint64_t sequence, thole_slice subject, thole_slice body)
{
    struct job *job = arg;
    struct arena arena;
    struct record record;
    thole_status status = THOLE_OK;
    (void)sequence;
    (void)subject;
    arena_init(&arena, RECORD_BYTES_MAX * 2);
    if (record_decode(body, &arena, &record, NULL) == THOLE_OK && record.kind == RECORD_TURN &&
        record.turn.execution == job->activity.execution)
        for (size_t i = 0; i < record.turn.events_len && status == THOLE_OK; i++) {
            const struct event *event = &record.turn.events[i];
            if (event->kind != EVENT_ACTIVITY_SCHEDULED || event->id != job->activity.activity_id)
                continue;
            job->found = true;
            status = arena_dup(&job->arena, event->data, &job->input);
        }
    arena_release(&arena);
    return status;
}

static thole_status find_input(struct loader *loader, struct job *job)
{
    struct buf subject;
    struct stream_bounds bounds = {0};
    const struct batch_activity *activity = &job->activity;
    buf_init(&subject, SUBJECT_BYTES_MAX);
    thole_status status = subject_history(&subject, loader->engine->topology.ns, job->p, activity->instance,
                                          activity->execution, &job->err);
    if (status == THOLE_OK)
        status = stream_bounds(loader->engine->connection, owned_of(job)->hist_stream, &bounds, &job->err);
    if (status == THOLE_OK)
        status = stream_read(loader->engine->connection, owned_of(job)->hist_stream, buf_cstr(&subject), 1,
                             bounds.last, find_scheduled, job, &job->err);
    buf_release(&subject);
    return status;
}

static thole_status delete_records(struct loader *loader, struct job *job)
{
    struct connection *connection = loader->engine->connection;
    const char *stream = owned_of(job)->hist_stream;
    struct stream_bounds bounds = {0};
    job->in.kind = PARTITION_IN_DELETED;
    THOLE_TRY(stream_bounds(connection, stream, &bounds, &job->err));
    if (bounds.last != job->expected_last)
        return thole_fail(&job->err, THOLE_CONFLICT, "a rival wrote to the history while its tail was read");
    return stream_delete_all(connection, stream, job->sequences, job->sequences_len, &job->err);
}

static thole_status note_sequence(void *arg, uint64_t sequence, thole_slice subject, thole_slice body)
{
    enum { TOKEN_EXECUTION = 5 };
    struct job *job = arg;
    uint64_t execution = 0;
    (void)body;
    if (job->executions.upto > 0 && (!json_uint(subject_nth(subject, TOKEN_EXECUTION), &execution) ||
                                     execution <= job->executions.above || execution > job->executions.upto))
        return THOLE_OK;
    job->sequences[job->sequences_len++] = sequence;
    job->more = job->sequences_len == REMOVED_MAX;
    return job->more ? THOLE_CANCELLED : THOLE_OK;
}

/* Never by a purge of its subject, which the stream does not allow: that is not safe in a crash, and looks at
 * every block. What is above `to` stays: it is of the id's next life. */
static thole_status remove_history(struct loader *loader, struct job *job)
{
    struct connection *connection = loader->engine->connection;
    const char *stream = owned_of(job)->hist_stream;
    struct buf subject;
    job->sequences = arena_array(&job->arena, REMOVED_MAX, sizeof *job->sequences);
    if (job->sequences == NULL)
        return thole_fail(&job->err, THOLE_NOMEM, "out of memory");
    buf_init(&subject, SUBJECT_BYTES_MAX);
    thole_status status = subject_history(&subject, loader->engine->topology.ns, job->p, job->instance,
                                          EXECUTIONS_ALL, &job->err);
    if (status == THOLE_OK)
        status = stream_read(connection, stream, buf_cstr(&subject), 1, job->to - 1, note_sequence, job,
                             &job->err);
    buf_release(&subject);
    if (status == THOLE_OK || job->more)
        status = stream_delete_all(connection, stream, job->sequences, job->sequences_len, &job->err);
    return status;
}

/* What waited for its turn while the inbox was made anew must not take from the new one. */
static thole_status purge_inbox(struct loader *loader, struct job *job)
{
    THOLE_TRY(inbox_check(job, &job->err));
    if (job->gone_back)
        return THOLE_OK;
    return stream_purge_below(loader->engine->connection, owned_of(job)->in_stream, job->from, &job->err);
}

/* ---- crashes ---- */

struct crash_list {
    struct loader *loader;
    struct job *job;
    struct partition_crash *crashes;
    size_t len, cap;
};

/* The build of the code that would run here. Code that is not here does not run. */
static bool same_build(const struct loader *loader, const struct crash_entry *entry)
{
    char id[BUILD_ID_BYTES];
    const thole_program *const program = loader->engine->program;
    for (size_t i = 0; i < program->orchestrations_len; i++)
        if (thole_slice_equal(thole_slice_from(program->orchestrations[i].name), entry->orchestration) &&
            thole_slice_equal(
                thole_slice_from(build_id((const void *)(uintptr_t)program->orchestrations[i].run, id)),
                entry->build))
            return true;
    return false;
}

static thole_status collect_crash(void *arg, const struct crash_entry *entry)
{
    struct crash_list *const list = arg;
    struct arena *const arena = &list->job->arena;
    if (list->len == list->cap) {
        size_t const cap = list->cap == 0 ? RECORDS_MIN : list->cap * 2;
        struct partition_crash *const grown = arena_array(arena, cap, sizeof *grown);
        if (grown == NULL)
            return THOLE_NOMEM;
        if (list->len > 0)
            memcpy(grown, list->crashes, list->len * sizeof *grown);
        list->crashes = grown;
        list->cap = cap;
    }
    struct partition_crash *const crash = &list->crashes[list->len];
    crash->count = same_build(list->loader, entry) ? entry->count : 0;
    THOLE_TRY(arena_dup(arena, entry->instance, &crash->instance));
    THOLE_TRY(arena_dup(arena, entry->text, &crash->text));
    list->len++;
    return THOLE_OK;
}

static thole_status read_crashes(struct loader *loader, struct job *job)
{
    struct crash_list list = {.loader = loader, .job = job};
    thole_status const status = crashes_read(loader->engine->connection, loader->engine->topology.ns, job->p,
                                             collect_crash, &list, &job->err);
    job->in.kind = PARTITION_IN_CRASHES;
    job->in.crashes = list.crashes;
    job->in.crashes_len = list.len;
    return status;
}

static thole_status perform(struct loader *loader, struct job *job)
{
    struct connection *const connection = loader->engine->connection;
    const char *const ns = loader->engine->topology.ns;
    switch (job->kind) {
    case JOB_READ_TAIL: return read_tail(loader, job);
    case JOB_READ_LOG: return read_log(loader, job);
    case JOB_READ_RESULTS: return read_results(loader, job);
    case JOB_LOAD: return load(loader, job);
    case JOB_FIND: return find_input(loader, job);
    case JOB_DELETE: return delete_records(loader, job);
    case JOB_REMOVE: return remove_history(loader, job);
    case JOB_PURGE: return purge_inbox(loader, job);
    case JOB_OPEN_INBOX: return inbox_tap_open(job, &job->err);
    case JOB_CLOSE_INBOX: inbox_tap_close(job->tap); return THOLE_OK;
    case JOB_LOOK_INBOX: return inbox_look(job, &job->err);
    case JOB_READ_CRASHES: return read_crashes(loader, job);
    case JOB_PUT_CRASH: return crashes_put(connection, ns, job->p, &job->crash, &job->err);
    case JOB_FORGET_CRASHES: return crashes_remove(connection, ns, job->p, job->instance, &job->err);
    case JOB_STORE_OPEN:
    case JOB_STORE_RESET:
    case JOB_STORE_LIVE:
    case JOB_STORE_TIMERS:
    case JOB_STORE_ORPHANS:
    case JOB_STORE_EXPIRE:
    case JOB_STORE_APPLY: break;
    }
    assert(false && "a store's job came to the loader");
    return THOLE_INVALID;
}

/* ---- threads ---- */

static struct job *next_job(struct loader *loader)
{
    pthread_mutex_lock(&loader->lock);
    while (loader->first == NULL && !loader->stopping)
        pthread_cond_wait(&loader->wake, &loader->lock);
    struct job *job = loader->first;
    if (job != NULL) {
        loader->first = job->next;
        if (loader->first == NULL)
            loader->last = NULL;
    }
    pthread_mutex_unlock(&loader->lock);
    return job;
}

static void *loader_main(void *arg)
{
    struct loader *loader = arg;
    struct job *job;
    while ((job = next_job(loader)) != NULL) {
        job->status = perform(loader, job);
        job_answer(job);
    }
    return NULL;
}

thole_status loader_start(struct engine_host *engine, struct loader **ret, thole_error *reterr)
{
    struct loader *loader = calloc(1, sizeof *loader);
    if (loader == NULL)
        return thole_fail(reterr, THOLE_NOMEM, "no memory for the loader");
    loader->engine = engine;
    pthread_mutex_init(&loader->lock, NULL);
    pthread_cond_init(&loader->wake, NULL);
    for (; loader->threads_len < LOADER_THREADS; loader->threads_len++)
        if (pthread_create(&loader->threads[loader->threads_len], NULL, loader_main, loader) != 0)
            break;
    if (loader->threads_len == 0) {
        loader_stop(loader);
        return thole_fail(reterr, THOLE_NOMEM, "cannot start a loader thread");
    }
    *ret = loader;
    return THOLE_OK;
}

void loader_submit(struct loader *loader, struct job *job)
{
    pthread_mutex_lock(&loader->lock);
    job->next = NULL;
    if (loader->last != NULL)
        loader->last->next = job;
    else
        loader->first = job;
    loader->last = job;
    pthread_cond_signal(&loader->wake);
    pthread_mutex_unlock(&loader->lock);
}

void loader_stop(struct loader *loader)
{
    if (loader == NULL)
        return;
    pthread_mutex_lock(&loader->lock);
    loader->stopping = true;
    pthread_cond_broadcast(&loader->wake);
    pthread_mutex_unlock(&loader->lock);
    for (size_t i = 0; i < loader->threads_len; i++)
        pthread_join(loader->threads[i], NULL);
    pthread_mutex_destroy(&loader->lock);
    pthread_cond_destroy(&loader->wake);
    free(loader);
}
