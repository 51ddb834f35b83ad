/* Requests of a session's remote worker. */
#include "clock.h"
#include "log.h"
#include "memory.h"
#include "message.h"
#include "session_parts.h"
#include "utf8.h"
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    TASK_ROOM_BYTES = 3328,   /* of a task beside its payloads and texts */
    ANSWER_ROOM_BYTES = 4096, /* of the server's max_payload, for headers and the like */
};

/* ---- next ---- */

static ProtobufCBinaryData session_requests_bytes_of(thole_slice slice)
{
    return (ProtobufCBinaryData){.data = (uint8_t *)(uintptr_t)slice.ptr, .len = slice.len};
}

static void fill_task(const struct task *task, struct arena *arena, Thole__V1__Task *ret)
{
    thole_activity *const act = task->act;
    uint64_t const left_ms = thole_activity_time_left_ms(act);
    thole_slice token;
    thole__v1__task__init(ret);
    ret->claim = task->claim;
    ret->activity = gateway_copy_text(arena, thole_activity_name(act));
    ret->instance = gateway_copy_text(arena, thole_activity_instance(act));
    ret->execution = thole_activity_execution(act);
    ret->activity_id = thole_activity_id(act);
    ret->try_number = thole_activity_try(act);
    ret->attempt = thole_activity_attempt(act);
    ret->input = session_requests_bytes_of(act->message->item.input);
    ret->key = gateway_copy_text(arena, thole_activity_key(act));
    ret->orchestration = gateway_copy_text(arena, thole_activity_orchestration(act));
    ret->version = thole_activity_version(act);
    ret->details = session_requests_bytes_of(thole_activity_details(act));
    ret->timeout_ms = left_ms == UINT64_MAX ? 0 : left_ms == 0 ? 1 : left_ms;
    ret->queue = gateway_copy_text(arena, thole_activity_queue(act));
    ret->traceparent = gateway_copy_text(arena, thole_activity_traceparent(act));
    ret->tracestate = gateway_copy_text(arena, thole_activity_tracestate(act));
    if (!act->quick && thole_activity_later(act, &token) == THOLE_LATER)
        ret->token = gateway_copy_text(arena, token);
}

static size_t session_requests_size_of(const struct session *session, const struct task *task,
                                       enum gateway_form form)
{
    size_t const payload = task->act->message->item.input.len + thole_activity_details(task->act).len;
    (void)session;
    return TASK_ROOM_BYTES + (form == GATEWAY_JSON ? payload / 3 * 4 + 8 : payload);
}

/* An input that the server cannot transport to this worker. */
static void refuse_large(struct session *session, struct task *task, size_t bytes, size_t room)
{
    char text[256];
    (void)snprintf(
        text, sizeof text,
        "the task has %zu bytes in the form that its worker asked for, and this NATS server takes %zu: "
        "raise max_payload, or let the worker use protobuf",
        bytes, room);
    session_task_returned(
        session, task,
        &(struct remote_return){
            .status = THOLE_APP, .text = thole_slice_from(text), .type = THOLE_STR("limit"), .final = true});
}

/* How many of the first waiting tasks fit in one answer. */
static size_t count_fitting(struct session *session, const struct gateway_request *request)
{
    size_t const max = connection_max_payload(session->options.connection);
    size_t const room = max > 2 * ANSWER_ROOM_BYTES ? max - ANSWER_ROOM_BYTES : SIZE_MAX;
    size_t n = 0, sum = 0;
    struct task *next;
    for (struct task *task = session->lists[TASK_WAITING].first; task != NULL && n < session->next_max;
         task = next) {
        next = task->next;
        size_t const bytes = session_requests_size_of(session, task, request->form);
        if (bytes > room)
            refuse_large(session, task, bytes, room);
        else if (sum + bytes > room)
            break;
        else
            n++, sum += bytes;
    }
    return n;
}

void session_give(struct session *session)
{
    struct gateway_request *const request = session->next;
    Thole__V1__Tasks answer;
    if (request == NULL || session->host == NULL)
        return;
    size_t const n = count_fitting(session, request);
    if (n == 0)
        return;
    thole__v1__tasks__init(&answer);
    Thole__V1__Task *const tasks = memory_array(n, sizeof *tasks);
    Thole__V1__Task **const pointers = memory_array(n, sizeof(Thole__V1__Task *));
    uint64_t const now_ms = clock_monotonic_ms();
    for (size_t i = 0; i < n; i++) {
        struct task *const task = session->lists[TASK_WAITING].first;
        fill_task(task, &request->scratch.arena, &tasks[i]);
        pointers[i] = &tasks[i];
        task->given_ms = now_ms;
        task->answer = session->answers + 1;
        session_move_task(session, task, TASK_GIVEN);
    }
    answer.n_tasks = n;
    answer.tasks = pointers;
    session->next = NULL;
    session->next_ms = now_ms;
    session->answers++;
    session->asks = true;
    if (session->unheard_subscription != NULL) {
        request->asks = worker_host_connection(session->host);
        request->unheard = session->unheard;
    }
    metric_count(session->options.cells, METRIC_GATEWAY_TASKS, TASKS_GIVEN, n);
    gateway_answer(request, &answer.base, THOLE_OK, "");
    free(pointers);
    free(tasks);
}

static void answer_empty(struct session *session)
{
    Thole__V1__Tasks answer;
    struct gateway_request *const request = session->next;
    if (request == NULL)
        return;
    thole__v1__tasks__init(&answer);
    session->next = NULL;
    session->next_ms = clock_monotonic_ms();
    gateway_answer(request, &answer.base, THOLE_OK, "");
}

bool session_wants(struct session *session)
{
    return session->state == SESSION_STARTING ||
           (session->hears &&
            (session->next != NULL || clock_monotonic_ms() < session->next_ms + SESSION_WANTS_MS));
}

/* Withdraws waiting tasks and those in the unheard answer: others get them, and none of them runs here. A
 * live worker asks again. */
void session_is_unheard(struct session *session)
{
    struct task *next;
    size_t n = 0;
    if (!session->asks || session->host == NULL)
        return;
    session->hears = session->asks = false;
    for (int state = TASK_WAITING; state <= TASK_GIVEN; state++)
        for (struct task *task = session->lists[state].first; task != NULL; task = next) {
            next = task->next;
            if (state == TASK_GIVEN &&
                (task->answer != session->answers || task->renewed != 0 || task->resumed))
                continue;
            n++;
            session_task_returned(session, task, &(struct remote_return){.unknown = true});
        }
    log_line(LOG_LEVEL_INFO, "gateway",
             "worker %s does not subscribe the answer to its request for tasks: %zu are handed back",
             session->worker, n);
    if (!session->rests) {
        session->rests = true;
        worker_host_rests(session->host);
    }
}

static void session_requests_observe(struct session *session)
{
    session->hears = true;
    session->asks = false; /* the last answer has arrived, or nobody waits for it */
    if (session->rests)
        worker_host_wants(session->host);
    session->rests = false;
}

static void session_requests_take_next(struct session *session, struct gateway_request *request)
{
    const Thole__V1__NextTasks *const asked = (const Thole__V1__NextTasks *)request->message;
    uint32_t const wait_ms = asked->wait_ms < SESSION_WAIT_MS_MAX ? asked->wait_ms : SESSION_WAIT_MS_MAX;
    if (session->state != SESSION_OPEN) {
        gateway_refuse(request, THOLE_UNAVAILABLE, "this session is closing: open another one");
        return;
    }
    answer_empty(session); /* of two at a time the older one is no longer waited for */
    session_requests_observe(session);
    session->next = request;
    session->next_max = asked->max == 0 ? 1 : asked->max;
    session->next_until_ms = clock_monotonic_ms() + wait_ms;
    session_give(session);
}

/* ---- renew ---- */

/* Once for each task. False: they are not taken. */
static bool note_details(const struct session *session, struct task *task, ProtobufCBinaryData details)
{
    thole_status const status = thole_activity_heartbeat(task->act, (thole_slice){details.data, details.len});
    bool const taken = status == THOLE_OK || status == THOLE_CANCELLED;
    if (!taken && !task->refused_details)
        log_line(
            LOG_LEVEL_WARN, "gateway",
            "details of a heartbeat of worker %s are not stored: they have %zu bytes, at most %d are allowed",
            session->worker, details.len, DETAILS_BYTES_MAX);
    task->refused_details = task->refused_details || !taken;
    return taken;
}

static size_t mark_running(struct session *session, const Thole__V1__RenewTasks *asked, struct arena *arena,
                           Thole__V1__TasksRenewed *answer)
{
    size_t refused_details = 0;
    for (size_t i = 0; i < asked->n_running; i++) {
        const Thole__V1__RunningTask *const running = asked->running[i];
        struct task *const task = session_find_task(session, running->claim);
        bool const refused =
            task != NULL && task->state == TASK_OVER && session_task_result(task) != THOLE_OK;
        if (task == NULL || task->gone || refused)
            answer->gone[answer->n_gone++] = gateway_copy_text(arena, thole_slice_from(running->claim));
        if (task == NULL)
            continue;
        task->renewed = session->renewals;
        if (running->heartbeat && task->state == TASK_GIVEN && !task->gone)
            refused_details += !note_details(session, task, running->details);
    }
    return refused_details;
}

static void look_at_given(struct session *session, uint64_t now_ms, struct arena *arena,
                          Thole__V1__TasksRenewed *answer, Thole__V1__Notice *notices)
{
    struct task *next;
    for (struct task *task = session->lists[TASK_GIVEN].first; task != NULL; task = next) {
        next = task->next;
        bool const named = task->renewed == session->renewals;
        if (task->gone) {
            session_task_returned(session, task, &(struct remote_return){.status = THOLE_CANCELLED});
        } else if (!named && task->resumed) { /* for others, who find its input where it is queued */
            session_task_returned(session, task, &(struct remote_return){.unknown = true});
        } else if (!named && now_ms - task->given_ms >= SESSION_ARRIVED_MS) {
            session_task_again(session, task);
            metric_count(session->options.cells, METRIC_GATEWAY_TASKS, TASKS_AGAIN, 1);
        } else if (named && task->fired) {
            session_notice(task, arena, &notices[answer->n_cancelled]);
            answer->cancelled[answer->n_cancelled] = &notices[answer->n_cancelled];
            answer->n_cancelled++;
        }
    }
}

static void take_renew(struct session *session, struct gateway_request *request)
{
    const Thole__V1__RenewTasks *const asked = (const Thole__V1__RenewTasks *)request->message;
    size_t const given = session->lists[TASK_GIVEN].len;
    Thole__V1__TasksRenewed answer;
    thole__v1__tasks_renewed__init(&answer);
    answer.gone = memory_array(asked->n_running + 1, sizeof(char *));
    answer.cancelled = memory_array(given + 1, sizeof(Thole__V1__Notice *));
    Thole__V1__Notice *const notices = memory_array(given + 1, sizeof *notices);
    session->renewals++;
    size_t const refused = mark_running(session, asked, &request->scratch.arena, &answer);
    look_at_given(session, clock_monotonic_ms(), &request->scratch.arena, &answer, notices);
    metric_count(session->options.cells, METRIC_GATEWAY_RENEWALS, RENEWALS_HELD,
                 asked->n_running - answer.n_gone);
    metric_count(session->options.cells, METRIC_GATEWAY_RENEWALS, RENEWALS_GONE, answer.n_gone);
    char **const gone = answer.gone;
    Thole__V1__Notice **const cancelled = answer.cancelled;
    char text[128] = "";
    if (refused > 0)
        (void)snprintf(text, sizeof text,
                       "details of heartbeats are not stored, since they have more than %d bytes: %zu",
                       DETAILS_BYTES_MAX, refused);
    gateway_answer(request, &answer.base, THOLE_OK, text);
    free(gone);
    free(cancelled);
    free(notices);
    session_give(session);
}

/* ---- complete ---- */

/* A longer one would be cut within a character. */
static thole_slice cut_text(thole_slice text)
{
    size_t at = 0, n;
    if (text.len <= ACTIVITY_FAILURE_BYTES_MAX)
        return text;
    while ((n = utf8_character((thole_slice){text.ptr + at, text.len - at})) > 0 &&
           at + n <= ACTIVITY_FAILURE_BYTES_MAX)
        at += n;
    return (thole_slice){text.ptr, at};
}

static struct remote_return outcome_of(const Thole__V1__Outcome *outcome)
{
    if (outcome->cancelled)
        return (struct remote_return){.status = THOLE_CANCELLED};
    if (outcome->failure == NULL && outcome->later)
        return (struct remote_return){.status = THOLE_LATER};
    if (outcome->failure == NULL)
        return (struct remote_return){.status = THOLE_OK,
                                      .output = {outcome->output.data, outcome->output.len}};
    return (struct remote_return){.status = THOLE_APP,
                                  .text = cut_text(thole_slice_from(outcome->failure->text)),
                                  .type = thole_slice_from(outcome->failure->type),
                                  .final = outcome->failure->final};
}

/* The completion stays until it has all results: also while this one's is found at once. */
static void take_outcome(struct session *session, struct completion *completion, size_t at,
                         const Thole__V1__Outcome *outcome)
{
    struct task *const task = session_find_task(session, outcome->claim);
    if (task == NULL || task->state == TASK_OVER) {
        completion->results[at] = task == NULL ? THOLE_FENCED : session_task_result(task);
        completion->left--;
        return;
    }
    session_await_task(completion, at, task);
    if (task->state != TASK_RETURNED) {
        if (outcome->heartbeat && (outcome->cancelled || outcome->failure != NULL) && !task->gone)
            (void)note_details(session, task, outcome->details);
        struct remote_return const returned = outcome_of(outcome);
        session_task_returned(session, task, &returned);
    }
}

static void take_complete(struct session *session, struct gateway_request *request)
{
    const Thole__V1__CompleteTasks *const asked = (const Thole__V1__CompleteTasks *)request->message;
    struct completion *const completion = memory_new(sizeof *completion);
    completion->request = request;
    completion->results = memory_array(asked->n_outcomes + 1, sizeof *completion->results);
    completion->until_ms = clock_monotonic_ms() + SESSION_COMPLETION_MS;
    completion->left = asked->n_outcomes + 1; /* one is for this function */
    completion->next = session->completions;
    session->completions = completion;
    for (size_t i = 0; i < asked->n_outcomes; i++) {
        completion->results[i] = THOLE_UNAVAILABLE;
        if (request->item_errors != NULL && request->item_errors[i] != NULL) {
            log_line(LOG_LEVEL_WARN, "gateway", "an outcome of worker %s cannot be read: %s", session->worker,
                     request->item_errors[i]);
            completion->results[i] = THOLE_INVALID;
            completion->left--;
        } else if (session->host == NULL) {
            completion->results[i] = THOLE_FENCED;
            completion->left--;
        } else {
            take_outcome(session, completion, i, asked->outcomes[i]);
        }
    }
    if (--completion->left == 0)
        session_answer_completion(session, completion);
}

/* ---- close ---- */

static void take_close(struct session *session, struct gateway_request *request)
{
    const Thole__V1__CloseSession *const asked = (const Thole__V1__CloseSession *)request->message;
    if (session->close != NULL)
        gateway_refuse(session->close, THOLE_UNAVAILABLE, "asked again");
    session->close = request;
    if (session->state == SESSION_OPEN) {
        session->state = SESSION_CLOSING;
        session->limit_ms = asked->limit_ms;
    }
    answer_empty(session);
    (void)pthread_cond_signal(&session->changed);
}

/* ---- all ---- */

void session_request(struct session *session, struct gateway_request *request)
{
    (void)pthread_mutex_lock(&session->lock);
    if (session->state == SESSION_STARTING || session->state == SESSION_OVER) {
        (void)pthread_mutex_unlock(&session->lock);
        gateway_refuse(request, THOLE_NOT_FOUND, "there is no such session: open another one");
        return;
    }
    session->heard_ms = clock_monotonic_ms();
    worker_host_heard(session->host);
    switch (request->endpoint->kind) {
    case ENDPOINT_NEXT: session_requests_take_next(session, request); break;
    case ENDPOINT_RENEW: take_renew(session, request); break;
    case ENDPOINT_COMPLETE: take_complete(session, request); break;
    default: take_close(session, request); break;
    }
    (void)pthread_cond_signal(&session->changed); /* the session's deadlines have changed */
    (void)pthread_mutex_unlock(&session->lock);
}

uint64_t session_expire(struct session *session, uint64_t now_ms)
{
    uint64_t deadline_ms = UINT64_MAX;
    struct completion *next;
    if (session->next != NULL && now_ms >= session->next_until_ms)
        answer_empty(session);
    if (session->next != NULL)
        deadline_ms = session->next_until_ms;
    for (struct completion *completion = session->completions; completion != NULL; completion = next) {
        next = completion->next;
        if (now_ms >= completion->until_ms)
            session_give_up_completion(session, completion);
        else if (completion->until_ms < deadline_ms)
            deadline_ms = completion->until_ms;
    }
    return deadline_ms;
}

void session_refuse_all(struct session *session)
{
    if (session->next != NULL)
        gateway_refuse(session->next, THOLE_UNAVAILABLE, "this session has ended: open another one");
    session->next = NULL;
    while (session->completions != NULL)
        session_give_up_completion(session, session->completions);
}
