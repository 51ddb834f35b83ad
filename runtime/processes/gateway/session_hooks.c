/* Decisions of a session's worker role, on its loop. */
#include "session_parts.h"

static void session_hooks_notify(const struct session *session, const struct task *task)
{
    struct codec_scratch scratch;
    Thole__V1__Notice notice;
    metric_count(session->options.cells, METRIC_GATEWAY_CANCELLATIONS, 0, 1);
    if (session->inbox == NULL)
        return;
    codec_init(&scratch);
    session_notice(task, &scratch.arena, &notice);
    gateway_tell(session->options.connection, session->inbox, session->form, &notice.base);
    codec_release(&scratch);
}

static bool on_wants(void *arg, struct worker_host *host)
{
    struct session *const session = arg;
    (void)pthread_mutex_lock(&session->lock);
    bool const wants = session_wants(session);
    if (!wants && !session->rests) {
        session->rests = true;
        worker_host_rests(host);
    }
    (void)pthread_mutex_unlock(&session->lock);
    return wants;
}

static void on_run(void *arg, struct worker_host *host, struct thole_activity *act)
{
    struct session *const session = arg;
    (void)pthread_mutex_lock(&session->lock);
    if (session->state != SESSION_OVER)
        session->host = host; /* the start may not have returned yet */
    act->remote = session_task_new(session, act, NULL);
    if (session->hears || session->host == NULL)
        session_give(session);
    else
        session_task_returned(session, act->remote, &(struct remote_return){.unknown = true});
    (void)pthread_mutex_unlock(&session->lock);
}

static void on_fired(void *arg, struct worker_host *host, struct thole_activity *act)
{
    struct session *const session = arg;
    (void)host;
    (void)pthread_mutex_lock(&session->lock);
    struct task *const task = act->remote;
    if (task != NULL && task->act == act) {
        task->fired = true;
        if (task->state == TASK_WAITING && session->host != NULL)
            session_task_returned(session, task, &(struct remote_return){.status = THOLE_CANCELLED});
        else if (task->state == TASK_GIVEN)
            session_hooks_notify(session, task);
    }
    (void)pthread_mutex_unlock(&session->lock);
}

static void session_hooks_on_ended(void *arg, struct worker_host *host, struct thole_activity *act,
                                   bool stored)
{
    struct session *const session = arg;
    (void)host;
    (void)pthread_mutex_lock(&session->lock);
    struct task *const task = act->remote;
    if (task != NULL && task->state == TASK_RETURNED) {
        task->stored = stored;
        session_task_over(session, task);
    } else if (task != NULL && task->act == act) {
        task->gone = true; /* given up: what it returns does not count */
    }
    act->remote = NULL;
    (void)pthread_mutex_unlock(&session->lock);
}

static void on_stopped(void *arg, struct worker_host *host)
{
    struct session *const session = arg;
    (void)host;
    (void)pthread_mutex_lock(&session->lock);
    session->stopped = true;
    (void)pthread_cond_signal(&session->changed);
    (void)pthread_mutex_unlock(&session->lock);
}

const struct remote_handlers session_handlers = {.wants = on_wants,
                                                 .run = on_run,
                                                 .resumed = session_resumed,
                                                 .fired = on_fired,
                                                 .ended = session_hooks_on_ended,
                                                 .stopped = on_stopped};
