#include "remote_worker.h"
#include "activity_run.h"
#include "clock.h"
#include "codec.h"
#include "connection.h"
#include "event.h"
#include "gateway.pb-c.h"
#include "inbox_prefix.h"
#include "log.h"
#include "memory.h"
#include "stack.h"
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    SESSIONS_MAX = 64,
    SUBJECT_BYTES = 300,
    ANSWER_BYTES = 4 << 20,
    START_MS = 60000,
    ANSWER_MS = 500,    /* a renewal or a completion is sent again then */
    WAIT_MS = 1000,     /* of a next */
    PATIENCE_MS = 6000, /* for the answers that take long: a session, tasks, the end */
    PAUSE_MS = 50,
};

struct remote_task {
    struct remote_session *session;
    char *claim;
    struct thole_activity *act;
    bool held; /* has a slot, and its outcome is wanted */
    bool told;
    struct remote_task *next;
};

struct remote_session {
    struct remote_worker *worker;
    char subject[256];
    uint32_t slots;
    uint64_t lease_ms, renew_ms,
        heard_ms; /* when the last renewal that was answered was sent; first: when it was opened */
    enum { OPEN, DRAINING, OVER } state;
    bool silent; /* the gateway has not answered */
    struct remote_task *tasks;
    size_t held;
    char **seen; /* claims that have come */
    size_t seen_len, seen_cap;
    uint64_t told_count; /* of heartbeats, of all tasks */
    pthread_t nexts, renewals;
};

struct remote_worker {
    struct remote_worker_options options;
    const thole_program *program;
    struct connection *quick, *patient;
    char inbox[128];
    struct subscription *notices;
    pthread_t manager, leases;

    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct remote_session *sessions[SESSIONS_MAX];
    size_t sessions_len;
    size_t threads; /* of tasks */
    bool stopping, stopped;
};

/* ---- helpers ---- */

static void lock(struct remote_worker *worker)
{
    (void)pthread_mutex_lock(&worker->lock);
}

static void unlock(struct remote_worker *worker)
{
    (void)pthread_cond_broadcast(&worker->changed);
    (void)pthread_mutex_unlock(&worker->lock);
}

/* Under the lock: until something has changed, or for so long. */
static void linger(struct remote_worker *worker, uint64_t wait_ms)
{
    struct timespec const until = clock_timespec(clock_monotonic_ms() + wait_ms);
    (void)pthread_cond_timedwait(&worker->changed, &worker->lock, &until);
}

/* No bytes are a message, too: all of its fields are empty. */
static bool decode(const ProtobufCMessageDescriptor *kind, thole_slice bytes, struct codec_scratch *scratch,
                   ProtobufCMessage **ret)
{
    thole_error error;
    if (bytes.len > 0)
        return codec_unpack(kind, bytes, ANSWER_BYTES, scratch, "answer", ret, &error) == THOLE_OK;
    *ret = arena_alloc(&scratch->arena, kind->sizeof_message);
    protobuf_c_message_init(kind, *ret);
    return true;
}

/* The status of the answer; UNAVAILABLE without *ret: there is none. */
static thole_status ask(struct connection *connection, const char *subject, const ProtobufCMessage *message,
                        const ProtobufCMessageDescriptor *answered, struct codec_scratch *scratch,
                        ProtobufCMessage **ret)
{
    struct buf body, answer;
    thole_error error;
    *ret = NULL;
    buf_init(&body, ANSWER_BYTES);
    buf_init(&answer, ANSWER_BYTES);
    thole_status status = codec_pack(message, &body);
    if (status == THOLE_OK)
        status = connection_request(connection, subject, buf_bytes(&body), &answer, &error);
    if (status == THOLE_OK && decode(answered, buf_bytes(&answer), scratch, ret))
        memcpy(&status, (char *)*ret + answered->fields[0].offset, sizeof(uint32_t));
    else
        status = THOLE_UNAVAILABLE;
    buf_release(&body);
    buf_release(&answer);
    return status;
}

static thole_status ask_session(const struct remote_session *session, struct connection *connection,
                                const char *operation, const ProtobufCMessage *message,
                                const ProtobufCMessageDescriptor *answered, struct codec_scratch *scratch,
                                ProtobufCMessage **ret)
{
    char subject[SUBJECT_BYTES];
    (void)snprintf(subject, sizeof subject, "%s.%s", session->subject, operation);
    return ask(connection, subject, message, answered, scratch, ret);
}

/* Under the lock. */
static struct remote_task *find(struct remote_session *session, const char *claim)
{
    struct remote_task *task = session->tasks;
    while (task != NULL && strcmp(task->claim, claim) != 0)
        task = task->next;
    return task;
}

/* Under the lock. */
static void let_go(struct remote_task *task)
{
    if (task->held)
        task->session->held--;
    task->held = false;
}

/* ---- tokens ---- */

/* Under the lock. */
static void fire(struct remote_task *task, const char *kind, const char *reason, uint64_t grace_ms)
{
    uint64_t const end_ms = clock_monotonic_ms() + grace_ms;
    struct activity_cancel const cancel = {.kind = cancel_kind_find(thole_slice_from(kind)),
                                           .reason = thole_slice_from(reason),
                                           .grace_end_ms = end_ms};
    if (task->told)
        activity_hurry(task->act, end_ms);
    else
        activity_fire(task->act, &cancel);
    task->told = true;
}

static void take_notice(struct remote_session *session, const Thole__V1__Notice *notice)
{
    struct remote_task *const task = find(session, notice->claim);
    if (task != NULL)
        fire(task, notice->kind, notice->reason, notice->grace_ms);
}

/* The subject ends with the number of the session. */
static void on_notice(void *arg, const struct delivery *delivery)
{
    struct remote_worker *const worker = arg;
    struct codec_scratch scratch;
    ProtobufCMessage *notice;
    thole_error error;
    size_t const prefix = strlen(worker->inbox) + 1;
    char number[16] = "";
    if (delivery->subject.len > prefix)
        (void)snprintf(number, sizeof number, "%.*s", (int)(delivery->subject.len - prefix),
                       (const char *)delivery->subject.ptr + prefix);
    size_t const n = strtoul(number, NULL, 10);
    codec_init(&scratch);
    if (codec_unpack(&thole__v1__notice__descriptor, delivery->body, ANSWER_BYTES, &scratch, "notice",
                     &notice, &error) == THOLE_OK) {
        lock(worker);
        if (n < worker->sessions_len && worker->sessions[n] != NULL)
            take_notice(worker->sessions[n], (Thole__V1__Notice *)notice);
        unlock(worker);
    }
    codec_release(&scratch);
}

/* Under the lock: the lease is over. Nothing is sent for its tasks any more. */
static void lose(struct remote_session *session)
{
    for (struct remote_task *task = session->tasks; task != NULL; task = task->next) {
        if (task->held)
            fire(task, "lease_lost", "", 0);
        let_go(task);
    }
    session->state = OVER;
}

/* ---- a task ---- */

static void fill_outcome(const struct thole_activity *act, thole_slice failure,
                         Thole__V1__TaskFailure *failed, Thole__V1__Outcome *ret)
{
    if (act->status == THOLE_OK) {
        ret->output = codec_bytes(act->output);
    } else if (act->status == THOLE_CANCELLED && thole_activity_cancelled(act)) {
        ret->cancelled = true;
    } else {
        failed->text = (char *)(uintptr_t)failure.ptr;
        failed->type = act->failure_type.len > 0 ? (char *)(uintptr_t)act->failure_type.ptr : failed->type;
        failed->final = act->final;
        ret->failure = failed;
    }
}

static bool is_held(struct remote_task *task)
{
    lock(task->session->worker);
    bool const held = task->held;
    unlock(task->session->worker);
    return held;
}

/* Until it is stored or refused, or nobody wants it any more. */
static void complete(struct remote_task *task)
{
    struct thole_activity *const act = task->act;
    Thole__V1__CompleteTasks message = THOLE__V1__COMPLETE_TASKS__INIT;
    Thole__V1__Outcome outcome = THOLE__V1__OUTCOME__INIT, *outcomes[] = {&outcome};
    Thole__V1__TaskFailure failed = THOLE__V1__TASK_FAILURE__INIT;
    thole_slice const failure = act->failure.len > 0 ? act->failure
                                                     : thole_activity_format(act, "the handler returned %s",
                                                                             thole_status_name(act->status));
    outcome.claim = task->claim;
    fill_outcome(act, failure, &failed, &outcome);
    message.n_outcomes = 1;
    message.outcomes = outcomes;
    while (is_held(task)) {
        struct codec_scratch scratch;
        ProtobufCMessage *answer;
        codec_init(&scratch);
        thole_status status =
            ask_session(task->session, task->session->worker->quick, "complete", &message.base,
                        &thole__v1__tasks_completed__descriptor, &scratch, &answer);
        if (status == THOLE_OK)
            status = (thole_status)((Thole__V1__TasksCompleted *)answer)->results[0]->status;
        codec_release(&scratch);
        if (status == THOLE_OK || status == THOLE_FENCED)
            return;
        if (status != THOLE_UNAVAILABLE && status != THOLE_NOT_FOUND)
            log_line(LOG_LEVEL_WARN, "remote", "a result was not taken: %s", thole_status_name(status));
        pause_ms(PAUSE_MS);
    }
}

static void *task_main(void *arg)
{
    struct remote_task *const task = arg;
    struct remote_session *const session = task->session;
    struct remote_worker *const worker = session->worker;
    activity_run(task->act);
    complete(task);
    lock(worker);
    let_go(task);
    struct remote_task **at = &session->tasks;
    while (*at != task)
        at = &(*at)->next;
    *at = task->next;
    activity_destroy(task->act);
    free(task->claim);
    free(task);
    worker->threads--;
    unlock(worker);
    return NULL;
}

static thole_slice keep(struct buf *texts, thole_slice from, char *base)
{
    size_t const at = buf_bytes(texts).len;
    buf_slice(texts, from);
    return (thole_slice){(const uint8_t *)base + at, from.len};
}

/* Makes a message as if it had come from the queue. Its texts follow the struct. */
static struct work_message *make_message(const struct remote_worker *worker, const Thole__V1__Task *task)
{
    size_t const size = strlen(task->instance) + strlen(task->activity) + task->input.len;
    struct work_message *const message = memory_new(sizeof *message + size + 1);
    struct buf texts;
    buf_init(&texts, size + 1);
    char *const base = (char *)(message + 1);
    message->item = (struct work_item){.queue = thole_slice_from(worker->options.queue),
                                       .instance = keep(&texts, thole_slice_from(task->instance), base),
                                       .activity = keep(&texts, thole_slice_from(task->activity), base),
                                       .input = keep(&texts, codec_slice(task->input), base),
                                       .execution = task->execution,
                                       .activity_id = task->activity_id,
                                       .try_number = task->try_number};
    if (size > 0)
        memcpy(base, buf_bytes(&texts).ptr, size);
    buf_release(&texts);
    return message;
}

static thole_activity_fn *function_of(const thole_program *program, const char *name)
{
    for (size_t i = 0; i < program->activities_len; i++)
        if (strcmp(program->activities[i].name, name) == 0)
            return program->activities[i].run;
    return NULL;
}

/* Under the lock. One that has come before is ignored. */
static void begin_task(struct remote_session *session, const Thole__V1__Task *given)
{
    struct remote_worker *const worker = session->worker;
    uint64_t const now_ms = clock_monotonic_ms();
    pthread_t thread;
    for (size_t i = 0; i < session->seen_len; i++)
        if (strcmp(session->seen[i], given->claim) == 0)
            return;
    session->seen =
        memory_reserve(session->seen, &session->seen_cap, session->seen_len + 1, sizeof *session->seen);
    session->seen[session->seen_len++] = memory_text(given->claim);
    struct remote_task *const task = memory_new(sizeof *task);
    struct activity_parties const parties = {.orchestration = thole_slice_from(given->orchestration),
                                             .version = given->version,
                                             .worker = thole_slice_from(worker->options.name)};
    *task = (struct remote_task){.session = session,
                                 .claim = memory_text(given->claim),
                                 .act = activity_create(make_message(worker, given), now_ms),
                                 .held = true,
                                 .next = session->tasks};
    task->act->run = function_of(worker->program, given->activity);
    if (task->act->run == NULL ||
        activity_begin(task->act, given->attempt,
                       given->timeout_ms == 0 ? UINT64_MAX : now_ms + given->timeout_ms,
                       codec_slice(given->details), &parties) != THOLE_OK ||
        pthread_create(&thread, NULL, task_main, task) != 0)
        memory_give_up(1, sizeof *task);
    (void)pthread_detach(thread);
    session->tasks = task;
    session->held++;
    worker->threads++;
}

/* ---- a session's two threads ---- */

static void take_tasks(struct remote_session *session, const Thole__V1__Tasks *tasks)
{
    lock(session->worker);
    for (size_t i = 0; i < tasks->n_tasks; i++)
        begin_task(session, tasks->tasks[i]);
    unlock(session->worker);
}

/* How many slots are free; 0: it wants no more. */
static uint32_t await_slots(struct remote_session *session)
{
    struct remote_worker *const worker = session->worker;
    lock(worker);
    while (session->state == OPEN && !worker->stopping && session->held >= session->slots)
        linger(worker, WAIT_MS);
    uint32_t const n =
        session->state == OPEN && !worker->stopping ? session->slots - (uint32_t)session->held : 0;
    unlock(worker);
    return n;
}

static void *nexts_main(void *arg)
{
    struct remote_session *const session = arg;
    struct remote_worker *const worker = session->worker;
    Thole__V1__NextTasks message = THOLE__V1__NEXT_TASKS__INIT;
    message.wait_ms = WAIT_MS;
    while ((message.max = await_slots(session)) > 0) {
        struct codec_scratch scratch;
        ProtobufCMessage *answer;
        codec_init(&scratch);
        thole_status const status = ask_session(session, worker->patient, "next", &message.base,
                                                &thole__v1__tasks__descriptor, &scratch, &answer);
        if (status == THOLE_OK)
            take_tasks(session, (Thole__V1__Tasks *)answer);
        lock(worker);
        if (answer == NULL)
            session->silent = true;
        else if (status == THOLE_UNAVAILABLE && session->state == OPEN)
            session->state = DRAINING;
        else if (status == THOLE_NOT_FOUND)
            lose(session);
        unlock(worker);
        codec_release(&scratch);
        if (status != THOLE_OK)
            pause_ms(PAUSE_MS);
    }
    return NULL;
}

/* Under the lock: everything in hand, with the newest heartbeats. */
static void fill_renewal(struct remote_session *session, struct arena *arena, Thole__V1__RenewTasks *ret)
{
    thole__v1__renew_tasks__init(ret);
    ret->running = arena_array(arena, session->held + 1, sizeof *ret->running);
    for (struct remote_task *task = session->tasks; task != NULL; task = task->next) {
        if (!task->held)
            continue;
        Thole__V1__RunningTask *const running = arena_alloc(arena, sizeof *running);
        struct buf details;
        thole_slice copy = {0};
        thole__v1__running_task__init(running);
        size_t const size = strlen(task->claim) + 1;
        running->claim = memcpy(arena_alloc(arena, size), task->claim, size); /* the task may end before */
        buf_init(&details, 1 << 20);
        running->heartbeat = activity_details_since(task->act, &task->act->sent_count, &details);
        if (arena_dup(arena, buf_bytes(&details), &copy) == THOLE_OK)
            running->details = codec_bytes(copy);
        buf_release(&details);
        ret->running[ret->n_running++] = running;
    }
}

/* Under the lock. */
static void take_renewed(struct remote_session *session, const Thole__V1__TasksRenewed *renewed)
{
    for (size_t i = 0; i < renewed->n_cancelled; i++)
        take_notice(session, renewed->cancelled[i]);
    for (size_t i = 0; i < renewed->n_gone; i++) {
        struct remote_task *const task = find(session, renewed->gone[i]);
        if (task == NULL)
            continue;
        fire(task, "lease_lost", "", 0);
        let_go(task);
    }
}

static void renew(struct remote_session *session)
{
    struct remote_worker *const worker = session->worker;
    uint64_t const sent_ms = clock_monotonic_ms();
    struct codec_scratch asked, scratch;
    Thole__V1__RenewTasks message;
    ProtobufCMessage *answer;
    codec_init(&asked);
    codec_init(&scratch);
    lock(worker);
    fill_renewal(session, &asked.arena, &message);
    unlock(worker);
    thole_status const status = ask_session(session, worker->quick, "renew", &message.base,
                                            &thole__v1__tasks_renewed__descriptor, &scratch, &answer);
    lock(worker);
    session->silent = answer == NULL;
    if (status == THOLE_OK && session->state != OVER) {
        session->heard_ms = sent_ms;
        take_renewed(session, (Thole__V1__TasksRenewed *)answer);
    }
    if (status == THOLE_NOT_FOUND)
        lose(session);
    unlock(worker);
    codec_release(&asked);
    codec_release(&scratch);
}

/* Tasks that have a slot there and were not fetched go elsewhere; those in hand have all the time they want.
 * It is answered in the end: nobody waits for that here. */
static void close_soon(const struct remote_session *session)
{
    Thole__V1__CloseSession message = THOLE__V1__CLOSE_SESSION__INIT;
    struct codec_scratch scratch;
    ProtobufCMessage *answer;
    message.limit_ms = UINT32_MAX;
    codec_init(&scratch);
    (void)ask_session(session, session->worker->quick, "close", &message.base,
                      &thole__v1__session_closed__descriptor, &scratch, &answer);
    codec_release(&scratch);
}

static void *renewals_main(void *arg)
{
    struct remote_session *const session = arg;
    struct remote_worker *const worker = session->worker;
    uint64_t next_ms = clock_monotonic_ms() + session->renew_ms;
    for (;;) {
        lock(worker);
        uint64_t const now_ms = clock_monotonic_ms();
        if (now_ms < next_ms && session->state != OVER)
            linger(worker, next_ms - now_ms);
        bool const over =
            session->state == OVER || worker->stopped || (session->state == DRAINING && session->held == 0);
        unlock(worker);
        if (over)
            break;
        if (clock_monotonic_ms() < next_ms)
            continue;
        renew(session);
        if (session->state == DRAINING && !session->silent)
            close_soon(session);
        next_ms = clock_monotonic_ms() + (session->silent ? PAUSE_MS : session->renew_ms);
    }
    lock(worker);
    session->state = OVER;
    unlock(worker);
    return NULL;
}

/* ---- sessions ---- */

static bool open_session(struct remote_worker *worker, uint32_t slots)
{
    Thole__V1__OpenSession message = THOLE__V1__OPEN_SESSION__INIT;
    struct codec_scratch scratch;
    ProtobufCMessage *answer;
    char subject[SUBJECT_BYTES], inbox[160];
    char **const names = memory_array(worker->program->activities_len, sizeof(char *));
    for (size_t i = 0; i < worker->program->activities_len; i++)
        names[i] = (char *)(uintptr_t)worker->program->activities[i].name;
    (void)snprintf(subject, sizeof subject, "thole.%s.gateway.open.%s", worker->options.ns,
                   worker->options.queue);
    (void)snprintf(inbox, sizeof inbox, "%s.%zu", worker->inbox, worker->sessions_len);
    message.worker = (char *)(uintptr_t)worker->options.name;
    message.slots = slots;
    message.n_activities = worker->program->activities_len;
    message.activities = names;
    message.inbox = inbox;
    codec_init(&scratch);
    bool const open = ask(worker->patient, subject, &message.base, &thole__v1__session_opened__descriptor,
                          &scratch, &answer) == THOLE_OK;
    if (open) {
        const Thole__V1__SessionOpened *const opened = (Thole__V1__SessionOpened *)answer;
        struct remote_session *const session = memory_new(sizeof *session);
        *session = (struct remote_session){.worker = worker,
                                           .slots = slots,
                                           .lease_ms = opened->lease_ms,
                                           .renew_ms = opened->renew_ms,
                                           .heard_ms = clock_monotonic_ms()};
        (void)snprintf(session->subject, sizeof session->subject, "%s", opened->subject);
        log_line(LOG_LEVEL_INFO, "remote", "serving by way of gateway %s, slots=%" PRIu32, opened->gateway,
                 slots);
        lock(worker);
        worker->sessions[worker->sessions_len++] = session;
        unlock(worker);
        if (pthread_create(&session->nexts, NULL, nexts_main, session) != 0 ||
            pthread_create(&session->renewals, NULL, renewals_main, session) != 0)
            memory_give_up(1, sizeof *session);
    }
    codec_release(&scratch);
    free(names);
    return open;
}

/* Under the lock: slots that are in no session whose gateway answers, and run nothing. */
static uint32_t free_slots(const struct remote_worker *worker)
{
    size_t taken = 0;
    for (size_t i = 0; i < worker->sessions_len; i++) {
        const struct remote_session *const session = worker->sessions[i];
        if (session->state == OPEN && !session->silent)
            taken += session->slots;
        else if (session->state != OVER)
            taken += session->held;
    }
    return taken < worker->options.slots ? worker->options.slots - (uint32_t)taken : 0;
}

/* One that was silent and for which there is another now takes nothing any more. */
static void drain_silent(struct remote_worker *worker, size_t before)
{
    for (size_t i = 0; i < before; i++)
        if (worker->sessions[i]->state == OPEN && worker->sessions[i]->silent)
            worker->sessions[i]->state = DRAINING;
}

static void *manager_main(void *arg)
{
    struct remote_worker *const worker = arg;
    lock(worker);
    while (!worker->stopping) {
        uint32_t const slots = free_slots(worker);
        size_t const before = worker->sessions_len;
        if (slots == 0 || before == SESSIONS_MAX) {
            linger(worker, PAUSE_MS);
            continue;
        }
        unlock(worker);
        bool const open = open_session(worker, slots);
        if (!open)
            pause_ms(1);
        lock(worker);
        if (open)
            drain_silent(worker, before);
    }
    unlock(worker);
    return NULL;
}

/* On a thread of its own: those that ask may wait for an answer when a lease is over. */
static void *leases_main(void *arg)
{
    struct remote_worker *const worker = arg;
    lock(worker);
    while (!worker->stopped) {
        uint64_t const now_ms = clock_monotonic_ms();
        uint64_t next_ms = now_ms + PAUSE_MS;
        for (size_t i = 0; i < worker->sessions_len; i++) {
            struct remote_session *const session = worker->sessions[i];
            uint64_t const end_ms = session->heard_ms + session->lease_ms;
            if (session->state != OVER && now_ms >= end_ms)
                lose(session);
            else if (session->state != OVER && end_ms < next_ms)
                next_ms = end_ms;
        }
        linger(worker, next_ms - now_ms);
    }
    unlock(worker);
    return NULL;
}

/* ---- the worker ---- */

static void must(thole_status status, const thole_error *err)
{
    if (status == THOLE_OK)
        return;
    fprintf(stderr, "a remote worker: %s\n", err->text);
    exit(1);
}

static struct connection *connect_to(const struct remote_worker_options *options, uint64_t timeout_ms)
{
    uint64_t const until_ms = clock_monotonic_ms() + START_MS;
    struct connection *connection = NULL;
    thole_error err = {0};
    struct connection_options const wish = {.url = options->nats_url,
                                            .inbox = options->inbox,
                                            .name = options->name,
                                            .connect_timeout_ms = 5000,
                                            .request_timeout_ms = timeout_ms};
    while (connection_open(&wish, &connection, &err) != THOLE_OK && clock_monotonic_ms() < until_ms)
        pause_ms(PAUSE_MS);
    must(connection == NULL ? THOLE_UNAVAILABLE : THOLE_OK, &err);
    return connection;
}

struct remote_worker *remote_worker_start(const struct remote_worker_options *options,
                                          const thole_program *program)
{
    static atomic_uint number;
    struct remote_worker *const worker = memory_new(sizeof *worker);
    uint64_t const until_ms = clock_monotonic_ms() + START_MS;
    pthread_condattr_t attributes;
    thole_error err = {0};
    char subject[160];
    *worker = (struct remote_worker){.options = *options, .program = program};
    (void)pthread_mutex_init(&worker->lock, NULL);
    (void)pthread_condattr_init(&attributes);
    (void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&worker->changed, &attributes);
    (void)pthread_condattr_destroy(&attributes);
    worker->quick = connect_to(options, ANSWER_MS);
    worker->patient = connect_to(options, PATIENCE_MS);
    (void)snprintf(worker->inbox, sizeof worker->inbox, "%s.%s-%d-%u",
                   options->inbox == NULL ? INBOX_PREFIX_DEFAULT : options->inbox, options->name,
                   (int)getpid(), atomic_fetch_add(&number, 1));
    (void)snprintf(subject, sizeof subject, "%s.*", worker->inbox);
    must(connection_subscribe(worker->quick, subject, on_notice, worker, &worker->notices, &err), &err);
    must(connection_flush(worker->quick, &err), &err);
    if (pthread_create(&worker->manager, NULL, manager_main, worker) != 0 ||
        pthread_create(&worker->leases, NULL, leases_main, worker) != 0)
        memory_give_up(1, sizeof *worker);
    lock(worker);
    while (worker->sessions_len == 0 && clock_monotonic_ms() < until_ms)
        linger(worker, PAUSE_MS);
    must(worker->sessions_len == 0 ? thole_fail(&err, THOLE_UNAVAILABLE, "no gateway") : THOLE_OK, &err);
    unlock(worker);
    return worker;
}

/* Under the lock. */
static size_t count_held(const struct remote_worker *worker)
{
    size_t held = 0;
    for (size_t i = 0; i < worker->sessions_len; i++)
        held += worker->sessions[i]->held;
    return held;
}

static void close_session(struct remote_session *session)
{
    uint64_t const until_ms = clock_monotonic_ms() + START_MS;
    Thole__V1__CloseSession const message = THOLE__V1__CLOSE_SESSION__INIT;
    thole_status status = session->state == OVER ? THOLE_OK : THOLE_UNAVAILABLE;
    while (status != THOLE_OK && status != THOLE_NOT_FOUND && session->state != OVER &&
           clock_monotonic_ms() < until_ms) {
        struct codec_scratch scratch;
        ProtobufCMessage *answer;
        codec_init(&scratch);
        status = ask_session(session, session->worker->patient, "close", &message.base,
                             &thole__v1__session_closed__descriptor, &scratch, &answer);
        codec_release(&scratch);
        if (status != THOLE_OK)
            pause_ms(PAUSE_MS);
    }
}

/* Threads of tasks that were given up may be there for ever: then the worker stays. */
static bool end_threads(struct remote_worker *worker)
{
    uint64_t const until_ms = clock_monotonic_ms() + 2000;
    lock(worker);
    worker->stopped = true;
    unlock(worker);
    (void)pthread_join(worker->leases, NULL);
    for (size_t i = 0; i < worker->sessions_len; i++) {
        (void)pthread_join(worker->sessions[i]->nexts, NULL);
        (void)pthread_join(worker->sessions[i]->renewals, NULL);
    }
    lock(worker);
    while (worker->threads > 0 && clock_monotonic_ms() < until_ms)
        linger(worker, PAUSE_MS);
    size_t const left = worker->threads;
    unlock(worker);
    return left == 0;
}

void remote_worker_stop(struct remote_worker *worker)
{
    if (worker == NULL)
        return;
    uint64_t const until_ms = clock_monotonic_ms() + worker->options.stop_limit_ms;
    lock(worker);
    worker->stopping = true;
    while (count_held(worker) > 0 && clock_monotonic_ms() < until_ms)
        linger(worker, PAUSE_MS);
    unlock(worker);
    (void)pthread_join(worker->manager, NULL);
    for (size_t i = 0; i < worker->sessions_len; i++)
        close_session(worker->sessions[i]);
    if (!end_threads(worker))
        return;
    subscription_close(worker->notices);
    connection_close(worker->quick);
    connection_close(worker->patient);
    for (size_t i = 0; i < worker->sessions_len; i++) {
        for (size_t k = 0; k < worker->sessions[i]->seen_len; k++)
            free(worker->sessions[i]->seen[k]);
        free(worker->sessions[i]->seen);
        free(worker->sessions[i]);
    }
    (void)pthread_cond_destroy(&worker->changed);
    (void)pthread_mutex_destroy(&worker->lock);
    free(worker);
}

unsigned remote_worker_sessions(struct remote_worker *worker)
{
    lock(worker);
    unsigned const n = (unsigned)worker->sessions_len;
    unlock(worker);
    return n;
}

void remote_worker_subject(struct remote_worker *worker, char ret[256])
{
    lock(worker);
    (void)snprintf(ret, 256, "%s", worker->sessions[worker->sessions_len - 1]->subject);
    unlock(worker);
}
