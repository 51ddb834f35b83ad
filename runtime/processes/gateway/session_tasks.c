/* The tasks of a session: what its worker role wants to be run. */
#include "hash.h"
#include "memory.h"
#include "session_parts.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* ---- the table ---- */

static struct task **session_tasks_bucket(const struct session *session, const char *claim)
{
    return (struct task **)&session->buckets[hash_bytes(0, thole_slice_from(claim)) % SESSION_BUCKETS];
}

static void session_tasks_list_add(struct task_list *list, struct task *task, bool front)
{
    task->prev = front ? NULL : list->last;
    task->next = front ? list->first : NULL;
    *(task->prev != NULL ? &task->prev->next : &list->first) = task;
    *(task->next != NULL ? &task->next->prev : &list->last) = task;
    list->len++;
}

static void session_tasks_list_remove(struct task_list *list, struct task *task)
{
    assert(list->len > 0);
    *(task->prev != NULL ? &task->prev->next : &list->first) = task->next;
    *(task->next != NULL ? &task->next->prev : &list->last) = task->prev;
    list->len--;
}

void session_move_task(struct session *session, struct task *task, enum task_state state)
{
    session_tasks_list_remove(&session->lists[task->state], task);
    task->state = state;
    session_tasks_list_add(&session->lists[state], task, false);
}

void session_task_again(struct session *session, struct task *task)
{
    session_tasks_list_remove(&session->lists[task->state], task);
    task->state = TASK_WAITING;
    session_tasks_list_add(&session->lists[TASK_WAITING], task, true);
}

void session_task_free(struct session *session, struct task *task)
{
    struct task **at = session_tasks_bucket(session, task->claim);
    assert(task->waiters == NULL);
    while (*at != task)
        at = &(*at)->same;
    *at = task->same;
    session_tasks_list_remove(&session->lists[task->state], task);
    free(task->claim);
    free(task);
}

struct task *session_task_new(struct session *session, struct thole_activity *act, const char *claim)
{
    struct task *const task = memory_new(sizeof *task);
    char own[TASK_CLAIM_BYTES];
    if (claim == NULL)
        task_claim_write(act, own);
    task->claim = memory_text(claim == NULL ? own : claim);
    task->act = act;
    struct task **const at = session_tasks_bucket(session, task->claim);
    task->same = *at;
    *at = task;
    task->state = TASK_WAITING;
    session_tasks_list_add(&session->lists[TASK_WAITING], task, false);
    return task;
}

struct task *session_find_task(const struct session *session, const char *claim)
{
    struct task *task = *session_tasks_bucket(session, claim);
    while (task != NULL && strcmp(task->claim, claim) != 0)
        task = task->same;
    return task;
}

thole_status session_task_result(const struct task *task)
{
    assert(task->state == TASK_OVER);
    return task->stored || task->cancelled ? THOLE_OK : THOLE_FENCED;
}

/* ---- notices ---- */

void session_notice(const struct task *task, struct arena *arena, Thole__V1__Notice *ret)
{
    uint64_t const grace_ms = thole_activity_grace_left_ms(task->act);
    thole__v1__notice__init(ret);
    ret->claim = task->claim;
    ret->kind = (char *)(uintptr_t)thole_cancel_kind_name(thole_activity_cancel_kind(task->act));
    ret->reason = gateway_copy_text(arena, thole_activity_cancel_reason(task->act));
    ret->grace_ms = grace_ms < UINT32_MAX ? (uint32_t)grace_ms : UINT32_MAX;
}

void session_free_tasks(struct session *session)
{
    for (int state = 0; state <= TASK_OVER; state++)
        while (session->lists[state].first != NULL) {
            struct task *const task = session->lists[state].first;
            activity_destroy(task->act); /* NULL: it has returned, and is the worker role's */
            session_task_free(session, task);
        }
}
