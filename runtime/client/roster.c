#include "roster.h"
#include "client_internal.h"
#include "memory.h"
#include "values.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROSTER_BYTES_MAX = 64 * 1024 * 1024, NEAR_MAX = 1000 };

static thole_status roster_keep(void *arg, const thole_worker_info *info)
{
    struct roster *roster = arg;
    struct roster_worker *worker = arena_alloc(&roster->arena, sizeof *worker);
    thole_slice *names = arena_array(&roster->arena, info->activities_len + 1, sizeof *names);
    if (worker == NULL || names == NULL)
        return THOLE_NOMEM;
    *worker = (struct roster_worker){
        .slots = info->slots, .activities = names, .activities_len = info->activities_len};
    THOLE_TRY(arena_dup(&roster->arena, info->worker, &worker->worker));
    THOLE_TRY(arena_dup(&roster->arena, info->queue, &worker->queue));
    for (size_t i = 0; i < info->activities_len; i++)
        THOLE_TRY(arena_dup(&roster->arena, info->activities[i], &names[i]));
    *roster->last = worker;
    roster->last = &worker->next;
    return THOLE_OK;
}

thole_status roster_read(struct roster *roster, thole_client *client, thole_error *reterr)
{
    memset(roster, 0, sizeof *roster);
    arena_init(&roster->arena, ROSTER_BYTES_MAX);
    roster->last = &roster->first;
    thole_status const status = thole_client_workers(client, roster_keep, roster, reterr);
    roster->asked = status == THOLE_OK;
    return status;
}

void roster_release(struct roster *roster)
{
    arena_release(&roster->arena);
}

size_t roster_workers(const struct roster *roster, thole_slice queue)
{
    size_t n = 0;
    for (const struct roster_worker *w = roster->first; w != NULL; w = w->next)
        n += thole_slice_equal(w->queue, queue);
    return n;
}

bool roster_knows(const struct roster *roster, thole_slice queue, thole_slice activity)
{
    for (const struct roster_worker *w = roster->first; w != NULL; w = w->next)
        for (size_t i = 0; i < w->activities_len && thole_slice_equal(w->queue, queue); i++)
            if (thole_slice_equal(w->activities[i], activity))
                return true;
    return false;
}

/* The name that they know and that is nearest. Empty = none is near. */
static void roster_nearest(const struct roster *roster, thole_slice queue, const char *wanted,
                           char ret[THOLE_NAME_BYTES_MAX + 1])
{
    char(*const room)[THOLE_NAME_BYTES_MAX + 1] = memory_array(NEAR_MAX, sizeof *room);
    const char **const names = memory_array(NEAR_MAX, sizeof *names);
    size_t n = 0;
    for (const struct roster_worker *w = roster->first; w != NULL; w = w->next)
        for (size_t i = 0; i < w->activities_len && n < NEAR_MAX && thole_slice_equal(w->queue, queue); i++) {
            (void)snprintf(room[n], sizeof room[n], "%.*s", THOLE_FMT(w->activities[i]));
            names[n] = room[n];
            n++;
        }
    const char *near = word_suggest(wanted, names, n);
    (void)snprintf(ret, THOLE_NAME_BYTES_MAX + 1, "%s", near == NULL ? "" : near);
    free(names);
    free(room);
}

thole_status roster_queue_known(const struct roster *roster, thole_client *client, thole_slice queue,
                                thole_error *reterr)
{
    uint64_t lease_ms = 0, ignored = 0;
    if (roster_workers(roster, queue) > 0)
        return THOLE_OK;
    thole_status const status =
        topology_queue_lease(client->connection, client->ns, queue, &lease_ms, &ignored, reterr);
    if (status != THOLE_OK)
        return status == THOLE_DENIED ? THOLE_OK : status; /* the user may not see it */
    return lease_ms != 0
               ? THOLE_OK
               : thole_fail(reterr, THOLE_NOT_FOUND,
                            "nothing is in a queue %.*s, and no worker has served it", THOLE_FMT(queue));
}

bool roster_complaint(const struct roster *roster, thole_slice queue, thole_slice activity, char *to,
                      size_t cap)
{
    char wanted[THOLE_NAME_BYTES_MAX + 1], near[THOLE_NAME_BYTES_MAX + 1];
    if (!roster->asked || roster_knows(roster, queue, activity))
        return false;
    if (roster_workers(roster, queue) == 0) {
        (void)snprintf(to, cap, "no worker serves queue %.*s", THOLE_FMT(queue));
        return true;
    }
    (void)snprintf(wanted, sizeof wanted, "%.*s", THOLE_FMT(activity));
    roster_nearest(roster, queue, wanted, near);
    (void)snprintf(to, cap, "no worker of queue %.*s knows %s%s%s%s", THOLE_FMT(queue), wanted,
                   near[0] == '\0' ? "" : "; did the code mean ", near, near[0] == '\0' ? "" : "?");
    return true;
}
