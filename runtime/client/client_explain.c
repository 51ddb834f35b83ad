/* Why an instance does not go on: its last turn, what it waits for, the workers, the engines. */
#include "client_standing.h"
#include "name_difference.h"
#include "remedy.h"
#include "roster.h"
#include "standstill.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    TEXT_BYTES_MAX = 2000,
    LIST_BYTES_MAX = 600,
    CHILDREN_MAX = 10, /* largest number of instances to look at, children of children included */
    DEPTH_MAX = 3,     /* of them */
};

struct explaining {
    thole_client *client;
    const struct explaining *parent; /* of a child, else NULL */
    thole_slice instance;
    thole_hindrance_fn *each;
    void *arg;
    struct standing standing;
    thole_slice orchestration; /* of the arena */
    uint32_t version;
    struct arena arena;
    size_t engines;   /* number of engines with a heartbeat */
    struct buf known; /* those of them that have its code */
    size_t *children; /* how many have been looked at */
    thole_error *reterr;
};

static thole_status client_explain_report(const struct explaining *e, const char *kind, const char *text,
                                          const char *remedy)
{
    thole_hindrance const hindrance = {
        .kind = kind, .text = thole_slice_from(text), .remedy = thole_slice_from(remedy)};
    return e->each(e->arg, &hindrance);
}

/* ---- engines ---- */

static thole_status client_explain_on_engine(void *arg, const thole_engine_info *info)
{
    struct explaining *const e = arg;
    struct name_list const list = {info->orchestrations, info->orchestrations_len};
    char versioned[THOLE_NAME_BYTES_MAX + 16];
    int const n = snprintf(versioned, sizeof versioned, e->version > 1 ? "%.*s@%u" : "%.*s",
                           THOLE_FMT(e->orchestration), e->version);
    e->engines++;
    if (n > 0 && (size_t)n < sizeof versioned && name_list_has(&list, thole_slice_from(versioned)))
        buf_printf(&e->known, "%s%.*s", e->known.len == 0 ? "" : ", ", THOLE_FMT(info->node));
    return THOLE_OK;
}

static thole_status look_at_engines(struct explaining *e)
{
    thole_status const status = thole_client_engines(e->client, client_explain_on_engine, e, e->reterr);
    if (status != THOLE_OK || e->engines > 0 || e->parent != NULL) /* reported for the parent */
        return status == THOLE_DENIED ? THOLE_OK : status;         /* the user may not see heartbeats */
    return client_explain_report(
        e, "no_engine", "no engine has a heartbeat in this namespace: nothing goes on here",
        "start the program that registers its orchestration: PROGRAM run, or PROGRAM engine");
}

/* ---- the last turn ---- */

static thole_status say_no_code(const struct explaining *e, const char *text)
{
    char remedy[LIST_BYTES_MAX + 300];
    if (e->known.len == 0) {
        remedy_fill(
            "no engine that runs has it: start the program that registers it; thole terminate ID ends "
            "the instance without its code",
            e->instance, remedy, sizeof remedy);
        return client_explain_report(e, blocked_kind_name(BLOCKED_NO_CODE), text, remedy);
    }
    (void)snprintf(
        remedy, sizeof remedy,
        "engine %s has it, and the one that owned the partition then had not: run the same program in all "
        "engines of the namespace, or give each program a namespace of its own",
        buf_cstr(&e->known));
    return client_explain_report(e, blocked_kind_name(BLOCKED_NO_CODE), text, remedy);
}

static thole_status look_at_turn(struct explaining *e)
{
    char text[TEXT_BYTES_MAX];
    standing_of_idle(e->client, e->instance, &e->standing);
    if (!e->standing.known || e->standing.blocked == BLOCKED_NOT)
        return THOLE_OK;
    struct standstill const stop = standstill_of(e->standing.blocked);
    (void)snprintf(text, sizeof text, "the instance %s%s%s", stop.state,
                   e->standing.why[0] == '\0' ? "" : ": ", e->standing.why);
    if (e->standing.blocked == BLOCKED_NO_CODE)
        return say_no_code(e, text);
    char remedy[TEXT_BYTES_MAX];
    remedy_fill(stop.remedy, e->instance, remedy, sizeof remedy);
    return client_explain_report(e, blocked_kind_name(e->standing.blocked), text, remedy);
}

/* ---- activities ---- */

static bool is_repeated(const thole_inspection *inspection, size_t i)
{
    const thole_pending *const p = inspection->pending;
    for (size_t k = 0; k < i; k++)
        if (p[k].kind == p[i].kind && p[k].quarantined == p[i].quarantined && p[k].waiting == p[i].waiting &&
            thole_slice_equal(p[k].name, p[i].name) && thole_slice_equal(p[k].queue, p[i].queue))
            return true;
    return false;
}

static thole_status look_at_activity(const struct explaining *e, const struct roster *roster,
                                     const thole_pending *p)
{
    char text[TEXT_BYTES_MAX], complaint[LIST_BYTES_MAX], to_try[160], remedy[TEXT_BYTES_MAX];
    if (p->quarantined) {
        (void)snprintf(text, sizeof text, "activity %.*s is in quarantine: its workers were lost with it",
                       THOLE_FMT(p->name));
        (void)snprintf(to_try, sizeof to_try,
                       "thole queue poisoned --instance ID says how, thole queue retry ID %" PRIu64
                       " runs it again, thole queue fail ID %" PRIu64 " gives it up",
                       p->id, p->id);
        remedy_fill(to_try, e->instance, remedy, sizeof remedy);
        return client_explain_report(e, "quarantined", text, remedy);
    }
    if (p->waiting || !roster_complaint(roster, p->queue, p->name, complaint, sizeof complaint))
        return THOLE_OK;
    (void)snprintf(text, sizeof text, "activity %.*s waits: %s", THOLE_FMT(p->name), complaint);
    if (roster_workers(roster, p->queue) == 0)
        return client_explain_report(
            e, "no_worker", text,
            "start a worker for that queue: PROGRAM worker --queue QUEUE, or PROGRAM run");
    return client_explain_report(
        e, "unknown_activity", text,
        "start a worker that registers it, or correct the name in the code; the workers of a queue "
        "should all know its activities");
}

static thole_status look_at_activities(const struct explaining *e, const thole_inspection *inspection)
{
    struct roster roster;
    bool asks = false;
    for (size_t i = 0; i < inspection->pending_len; i++)
        asks |= inspection->pending[i].kind == THOLE_PENDING_ACTIVITY;
    if (!asks)
        return THOLE_OK;
    thole_status status = roster_read(&roster, e->client, e->reterr);
    if (status == THOLE_DENIED) /* the user may not ask the workers */
        status = THOLE_OK;
    for (size_t i = 0; i < inspection->pending_len && status == THOLE_OK; i++)
        if (inspection->pending[i].kind == THOLE_PENDING_ACTIVITY && !is_repeated(inspection, i))
            status = look_at_activity(e, &roster, &inspection->pending[i]);
    roster_release(&roster);
    return status;
}

/* ---- children ---- */

static thole_status client_explain_on_inspection(void *arg, const thole_inspection *inspection);

static thole_status explain_instance(struct explaining *e)
{
    arena_init(&e->arena, LIST_BYTES_MAX);
    buf_init(&e->known, LIST_BYTES_MAX);
    thole_status const status =
        thole_client_inspect(e->client, e->instance, client_explain_on_inspection, e, e->reterr);
    buf_release(&e->known);
    arena_release(&e->arena);
    return status;
}

static thole_status say_of_child(void *arg, const thole_hindrance *its)
{
    const struct explaining *const child = arg;
    const struct explaining *const parent = child->parent;
    char text[TEXT_BYTES_MAX], remedy[TEXT_BYTES_MAX];
    (void)snprintf(remedy, sizeof remedy, "child %.*s: %.*s", THOLE_FMT(child->instance),
                   THOLE_FMT(its->remedy));
    (void)snprintf(text, sizeof text, "child \"%.*s\" does not go on: %.*s", THOLE_FMT(child->instance),
                   THOLE_FMT(its->text));
    thole_hindrance const hindrance = {
        .kind = "child", .text = thole_slice_from(text), .remedy = thole_slice_from(remedy)};
    return parent->each(parent->arg, &hindrance);
}

/* One that cannot be read, or whose start is on its way, is passed over. */
static thole_status look_at_child(const struct explaining *e, thole_slice instance)
{
    thole_error error = {.status = THOLE_OK};
    struct explaining child = {.client = e->client,
                               .parent = e,
                               .instance = instance,
                               .each = say_of_child,
                               .arg = &child,
                               .children = e->children,
                               .reterr = &error};
    thole_status const status = explain_instance(&child);
    return error.status == status ? THOLE_OK : status;
}

static size_t depth_of(const struct explaining *e)
{
    size_t depth = 0;
    for (; e->parent != NULL; e = e->parent)
        depth++;
    return depth;
}

static thole_status look_at_children(const struct explaining *e, const thole_inspection *inspection)
{
    bool const deep = depth_of(e) == DEPTH_MAX;
    for (size_t i = 0; i < inspection->pending_len && !deep; i++) {
        if (inspection->pending[i].kind != THOLE_PENDING_CHILD)
            continue;
        if (*e->children == CHILDREN_MAX)
            break;
        ++*e->children;
        THOLE_TRY(look_at_child(e, inspection->pending[i].instance));
    }
    return THOLE_OK;
}

/* ---- all of it ---- */

static thole_status client_explain_on_inspection(void *arg, const thole_inspection *inspection)
{
    struct explaining *const e = arg;
    bool const pending = inspection->status == THOLE_INSTANCE_PENDING;
    if (!pending && inspection->status != THOLE_INSTANCE_RUNNING &&
        inspection->status != THOLE_INSTANCE_PAUSED)
        return THOLE_OK; /* the instance has ended */
    e->version = inspection->version;
    THOLE_TRY(arena_dup(&e->arena, inspection->orchestration, &e->orchestration));
    if (pending && e->parent != NULL)
        return THOLE_OK; /* a moment after its parent's turn */
    THOLE_TRY(look_at_engines(e));
    if (pending && inspection->ahead == 0 && e->engines > 0)
        return client_explain_report(
            e, "not_taken", "its start is stored, and no engine has taken it",
            "thole partitions and thole doctor say whether an engine owns its partition");
    if (pending)
        return THOLE_OK;
    THOLE_TRY(look_at_turn(e));
    THOLE_TRY(look_at_activities(e, inspection));
    return look_at_children(e, inspection);
}

thole_status thole_client_explain(thole_client *client, thole_slice instance, thole_hindrance_fn *each,
                                  void *arg, thole_error *reterr)
{
    thole_error error = {.status = THOLE_OK};
    size_t children = 0;
    struct explaining e = {.client = client,
                           .instance = instance,
                           .each = each,
                           .arg = arg,
                           .children = &children,
                           .reterr = &error};
    THOLE_TRY(client_check_id(instance, reterr));
    thole_status status = explain_instance(&e);
    if (status == THOLE_NOT_FOUND) {
        char remedy[TEXT_BYTES_MAX];
        remedy_fill("thole start ORCHESTRATION --id ID; thole list shows which there are", instance, remedy,
                    sizeof remedy);
        status = client_explain_report(&e, "not_there", error.text, remedy);
    } else if (status != THOLE_OK && error.status == status)
        (void)thole_fail(reterr, status, "%s", error.text);
    return status;
}
