/* Completions of a session: outcomes of tasks, and who waits for their results. */
#include "memory.h"
#include "session_parts.h"
#include <assert.h>
#include <stdlib.h>

void session_answer_completion(struct session *session, struct completion *completion)
{
    struct gateway_request *const request = completion->request;
    const Thole__V1__CompleteTasks *const asked = (const Thole__V1__CompleteTasks *)request->message;
    size_t const n = asked->n_outcomes;
    Thole__V1__TasksCompleted answer;
    thole__v1__tasks_completed__init(&answer);
    Thole__V1__OutcomeResult *const results = memory_array(n + 1, sizeof *results);
    Thole__V1__OutcomeResult **const pointers = memory_array(n + 1, sizeof(Thole__V1__OutcomeResult *));
    for (size_t i = 0; i < n; i++) {
        thole__v1__outcome_result__init(&results[i]);
        results[i].claim = asked->outcomes[i]->claim;
        results[i].status = completion->results[i];
        if (completion->results[i] == THOLE_FENCED)
            results[i].text = (char *)"refused: the claim is gone, it was cancelled, or runs elsewhere";
        else if (completion->results[i] == THOLE_UNAVAILABLE)
            results[i].text = (char *)"not known yet: ask again";
        else if (completion->results[i] == THOLE_INVALID)
            results[i].text = (char *)(uintptr_t)request->item_errors[i];
        pointers[i] = &results[i];
    }
    answer.n_results = n;
    answer.results = pointers;
    struct completion **at = &session->completions;
    while (*at != NULL && *at != completion)
        at = &(*at)->next;
    if (*at != NULL)
        *at = completion->next;
    gateway_answer(request, &answer.base, THOLE_OK, "");
    free(pointers);
    free(results);
    free(completion->results);
    free(completion);
}

static void session_completions_settle(struct session *session, struct task *task)
{
    struct waiter *next;
    for (struct waiter *waiter = task->waiters; waiter != NULL; waiter = next) {
        struct completion *const completion = waiter->completion;
        next = waiter->next;
        completion->results[waiter->at] = session_task_result(task);
        free(waiter);
        assert(completion->left > 0);
        if (--completion->left == 0)
            session_answer_completion(session, completion);
    }
    task->waiters = NULL;
}

void session_await_task(struct completion *completion, size_t at, struct task *task)
{
    struct waiter *const waiter = memory_new(sizeof *waiter);
    *waiter = (struct waiter){.completion = completion, .at = at, .next = task->waiters};
    task->waiters = waiter;
}

void session_task_over(struct session *session, struct task *task)
{
    session_move_task(session, task, TASK_OVER);
    if (task->waiters != NULL) /* the remote worker has sent it */
        metric_count(session->options.cells, METRIC_GATEWAY_OUTCOMES,
                     task->stored      ? OUTCOMES_STORED
                     : task->cancelled ? OUTCOMES_CANCELLED
                                       : OUTCOMES_REFUSED,
                     1);
    session_completions_settle(session, task);
    struct task_list *const list = &session->lists[TASK_OVER];
    if (list->len > SESSION_OVER_MAX)
        session_task_free(session, list->first);
}

void session_task_returned(struct session *session, struct task *task, const struct remote_return *returned)
{
    struct thole_activity *const act = task->act;
    assert(task->state == TASK_WAITING || task->state == TASK_GIVEN);
    task->act = NULL; /* the worker role's from now on */
    task->cancelled = returned->status == THOLE_CANCELLED;
    bool const gone = task->gone;
    session_move_task(session, task, TASK_RETURNED);
    worker_host_returned(session->host, act, returned);
    if (gone)
        session_task_over(session, task);
}

/* Gives up waiting; the awaited tasks continue. */
void session_give_up_completion(struct session *session, struct completion *completion)
{
    for (struct task *task = session->lists[TASK_RETURNED].first; task != NULL; task = task->next) {
        struct waiter **at = &task->waiters;
        while (*at != NULL) {
            struct waiter *const waiter = *at;
            if (waiter->completion != completion) {
                at = &waiter->next;
                continue;
            }
            *at = waiter->next;
            free(waiter);
        }
    }
    session_answer_completion(session, completion);
}
