#include "instance_views.h"
#include "memory.h"
#include "proto_json.h"
#include "standstill.h"
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum {
    STATE_BYTES = 32,
    INFO_ROOM_BYTES = 512, /* of an instance beside its texts */
    INSTANCES_DEFAULT = 100
};

/* ---- states ---- */

/* "Running" is "running" here, and "ContinuedAsNew", which is one for a moment, too. */
static void state_name(thole_instance_status status, char ret[STATE_BYTES])
{
    if (status == THOLE_INSTANCE_CONTINUED_AS_NEW)
        status = THOLE_INSTANCE_RUNNING;
    const char *const name = thole_instance_status_name(status);
    size_t const len = strnlen(name, STATE_BYTES - 1);
    for (size_t i = 0; i < len; i++)
        ret[i] = (char)tolower((unsigned char)name[i]);
    ret[len] = '\0';
}

static bool state_parse(const char *text, uint32_t *statuses)
{
    static const thole_instance_status listed[] = {
        THOLE_INSTANCE_RUNNING, THOLE_INSTANCE_WAITING,   THOLE_INSTANCE_STUCK,      THOLE_INSTANCE_COMPLETED,
        THOLE_INSTANCE_FAILED,  THOLE_INSTANCE_CANCELLED, THOLE_INSTANCE_TERMINATED, THOLE_INSTANCE_PAUSED};
    char name[STATE_BYTES];
    for (size_t i = 0; i < sizeof listed / sizeof listed[0]; i++) {
        state_name(listed[i], name);
        if (strcmp(text, name) != 0)
            continue;
        *statuses |= UINT32_C(1) << listed[i];
        if (listed[i] == THOLE_INSTANCE_RUNNING)
            *statuses |= UINT32_C(1) << THOLE_INSTANCE_CONTINUED_AS_NEW;
        return true;
    }
    return false;
}

/* ---- one ---- */

static void fill_info(struct arena *arena, const thole_instance_info *from, Thole__V1__InstanceInfo *to)
{
    char state[STATE_BYTES];
    thole__v1__instance_info__init(to);
    state_name(from->status, state);
    to->instance = gateway_copy_text(arena, from->instance);
    to->orchestration = gateway_copy_text(arena, from->orchestration);
    to->version = from->version;
    to->execution = from->execution;
    to->state = gateway_copy_text(arena, thole_slice_from(state));
    to->reason = gateway_copy_text(arena, thole_slice_from(from->reason == NULL ? "" : from->reason));
    to->detail = gateway_copy_text(arena, from->detail);
    to->custom_status = gateway_copy_text(arena, from->custom_status);
    to->parent = gateway_copy_text(arena, from->parent);
    to->created_ms = from->created_ms;
    to->updated_ms = from->updated_ms;
    to->turns = from->turns;
    to->open_activities = from->open_activities;
    to->open_timers = from->open_timers;
    proto_texts_mend(&to->base); /* a detail is the head of a text */
}

struct viewing {
    struct arena *arena;
    const char *instance;
    struct instance_view *view;
};

static thole_status on_row(void *arg, const thole_instance_info *info)
{
    const struct viewing *const viewing = arg;
    fill_info(viewing->arena, info, &viewing->view->info);
    return THOLE_OK;
}

static thole_status instance_views_on_inspection(void *arg, const thole_inspection *inspection)
{
    const struct viewing *const viewing = arg;
    uint64_t activities = 0, timers = 0;
    for (size_t i = 0; i < inspection->pending_len; i++) {
        activities += inspection->pending[i].kind == THOLE_PENDING_ACTIVITY;
        timers += inspection->pending[i].kind == THOLE_PENDING_TIMER;
    }
    fill_info(viewing->arena,
              &(thole_instance_info){.instance = thole_slice_from(viewing->instance),
                                     .orchestration = inspection->orchestration,
                                     .execution = inspection->execution,
                                     .status = inspection->status,
                                     .updated_ms = inspection->time_ms,
                                     .open_activities = activities,
                                     .open_timers = timers,
                                     .version = inspection->version,
                                     .custom_status = inspection->custom_status,
                                     .turns = inspection->turns},
              &viewing->view->info);
    return THOLE_OK;
}

thole_status instance_view_read(thole_client *client, const char *instance, struct arena *arena,
                                struct instance_view *ret, thole_error *reterr)
{
    struct viewing viewing = {.arena = arena, .instance = instance, .view = ret};
    *ret = (struct instance_view){.hindrances_len = 0};
    thole__v1__instance_info__init(&ret->info);
    if (thole_client_show(client, thole_slice_from(instance), on_row, &viewing, NULL) == THOLE_OK)
        return THOLE_OK;
    ret->rowless = true; /* or its row may not be read */
    return thole_client_inspect(client, thole_slice_from(instance), instance_views_on_inspection, &viewing,
                                reterr);
}

static thole_status on_hindrance(void *arg, const thole_hindrance *hindrance)
{
    const struct viewing *const viewing = arg;
    struct instance_view *const view = viewing->view;
    if (view->hindrances_len == HINDRANCES_MAX)
        return THOLE_LIMIT;
    Thole__V1__Hindrance *const to = arena_alloc(viewing->arena, sizeof *to);
    if (to == NULL)
        return THOLE_NOMEM;
    thole__v1__hindrance__init(to);
    to->kind = gateway_copy_text(viewing->arena, thole_slice_from(hindrance->kind));
    to->text = gateway_copy_text(viewing->arena, hindrance->text);
    to->next_step = gateway_copy_text(viewing->arena, hindrance->remedy);
    view->hindrances[view->hindrances_len++] = to;
    return THOLE_OK;
}

/* Where there is no row, what keeps it from going on says in which state it is. */
static void fill_state(struct arena *arena, struct instance_view *view)
{
    char state[STATE_BYTES];
    for (size_t i = 0; i < view->hindrances_len; i++) {
        enum blocked_kind const kind = blocked_kind_of(view->hindrances[i]->kind);
        if (kind == BLOCKED_NOT)
            continue;
        state_name(standstill_of(kind).status, state);
        view->info.state = gateway_copy_text(arena, thole_slice_from(state));
        view->info.reason = view->hindrances[i]->kind;
        view->info.detail = view->hindrances[i]->text;
    }
}

void instance_view_explain(thole_client *client, const char *instance, struct arena *arena,
                           struct instance_view *view)
{
    struct viewing viewing = {.arena = arena, .instance = instance, .view = view};
    thole_status const told =
        thole_client_explain(client, thole_slice_from(instance), on_hindrance, &viewing, NULL);
    (void)told; /* known facts stay */
    if (view->rowless)
        fill_state(arena, view);
}

/* ---- many ---- */

struct listing {
    struct arena *arena;
    Thole__V1__InstanceInfo **infos;
    size_t len, room; /* bytes that are left */
};

static thole_status on_listed(void *arg, const thole_instance_info *info)
{
    struct listing *const listing = arg;
    size_t const bytes =
        INFO_ROOM_BYTES + 6 * (info->instance.len + info->orchestration.len + info->detail.len +
                               info->custom_status.len + info->parent.len);
    if (info->foreign) /* a client cannot ask for such an id */
        return THOLE_OK;
    if (listing->len == INSTANCES_MAX || (listing->len > 0 && bytes > listing->room))
        return THOLE_LIMIT;
    Thole__V1__InstanceInfo *const to = arena_alloc(listing->arena, sizeof *to);
    if (to == NULL)
        return THOLE_LIMIT;
    fill_info(listing->arena, info, to);
    listing->infos[listing->len++] = to;
    listing->room -= bytes < listing->room ? bytes : listing->room;
    return THOLE_OK;
}

static thole_status instance_views_read_filter(const Thole__V1__ListInstances *asked, thole_list_filter *ret,
                                               thole_error *reterr)
{
    *ret = (thole_list_filter){.size = sizeof *ret,
                               .orchestration = thole_slice_from(asked->orchestration),
                               .id_prefix = thole_slice_from(asked->id_prefix),
                               .parent = thole_slice_from(asked->parent),
                               .custom_status = thole_slice_from(asked->custom_status),
                               .created_after_ms = asked->created_after_ms,
                               .created_before_ms = asked->created_before_ms,
                               .limit = asked->limit == 0              ? INSTANCES_DEFAULT
                                        : asked->limit > INSTANCES_MAX ? INSTANCES_MAX
                                                                       : asked->limit,
                               .behind_instance = thole_slice_from(asked->behind_instance),
                               .behind_created_ms = asked->behind_created_ms};
    for (size_t i = 0; i < asked->n_states; i++)
        if (!state_parse(asked->states[i], &ret->statuses))
            return thole_fail(reterr, THOLE_INVALID,
                              "there is no state \"%.40s\" in a list; there are running, waiting, stuck, "
                              "paused, completed, failed, cancelled and terminated",
                              asked->states[i]);
    return THOLE_OK;
}

void instance_views_list(thole_client *client, struct gateway_request *request, size_t room)
{
    const Thole__V1__ListInstances *const asked = (const Thole__V1__ListInstances *)request->message;
    thole_error error = {.status = THOLE_OK};
    thole_list_filter filter;
    struct listing listing = {.arena = &request->scratch.arena, .room = room};
    Thole__V1__InstanceList answer;
    thole__v1__instance_list__init(&answer);
    listing.infos = memory_array(INSTANCES_MAX, sizeof(Thole__V1__InstanceInfo *));
    thole_status status = instance_views_read_filter(asked, &filter, &error);
    if (status == THOLE_OK)
        status = thole_client_list(client, &filter, on_listed, &listing, &error);
    if (status == THOLE_LIMIT && listing.len > 0) /* the next page has the others */
        status = THOLE_OK;
    answer.instances = listing.infos;
    answer.n_instances = status == THOLE_OK ? listing.len : 0;
    gateway_answer(request, &answer.base, status, status == THOLE_OK ? "" : error.text);
    free(listing.infos);
}
