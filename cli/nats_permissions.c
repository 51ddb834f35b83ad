/* The table of rights, and what its patterns stand for. */
#include "nats_permissions.h"
#include "api_prefix.h"
#include "message.h"
#include "subject.h"
#include "values.h"
#include <assert.h>
#include <stdio.h>
#include <string.h>

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

enum {
    NAMES_MAX = 64,
    LIST_BYTES_MAX = NAMES_MAX * (THOLE_NAME_BYTES_MAX + 1),
    KNOWN_BYTES_MAX = 512,
    ROLE_BYTES = 32
};

/* The rights of a user, of which verbs and roles are sets; an enumerator has no room for so many. */
#define ENGINE (UINT64_C(1) << 0)
#define WORKER (UINT64_C(1) << 1)
#define SETTINGS (UINT64_C(1) << 2)  /* reads the configuration of the namespace: everybody but engines */
#define HISTORIES (UINT64_C(1) << 3) /* reads records, and starts that wait for the first of them */
#define EVENTS (UINT64_C(1) << 4)    /* hears live events */
#define ENGINES (UINT64_C(1) << 5)   /* reads heartbeats */
#define ROLL_CALL (UINT64_C(1) << 6) /* asks the workers what they run */
#define START (UINT64_C(1) << 7)
#define SIGNAL (UINT64_C(1) << 8)
#define QUERY (UINT64_C(1) << 9)
#define COMPLETE (UINT64_C(1) << 10)
#define REJECTED (UINT64_C(1) << 11)
#define QUEUES (UINT64_C(1) << 12)
#define QUEUE_LIMIT (UINT64_C(1) << 13)
#define CANCEL (UINT64_C(1) << 14)
#define TERMINATE (UINT64_C(1) << 15)
#define PAUSE (UINT64_C(1) << 16)
#define RESUME (UINT64_C(1) << 17)
#define DELETE (UINT64_C(1) << 18)
#define FORCE_DELETE (UINT64_C(1) << 19)
#define PRUNE (UINT64_C(1) << 20)
#define RETRY (UINT64_C(1) << 21)
#define RELEASE (UINT64_C(1) << 22)
#define REPLAY (UINT64_C(1) << 23) /* reads all histories of a partition at once, with a consumer */
#define GATEWAY (UINT64_C(1) << 24)
#define REMOTE_WORKER (UINT64_C(1) << 25) /* by way of a gateway, as the next */
#define REMOTE_CLIENT (UINT64_C(1) << 26)
#define RULES (UINT64_C(1) << 27)   /* stores rules of thole bind */
#define BINDER (UINT64_C(1) << 28)  /* serves them */
#define CALL (UINT64_C(1) << 29)    /* has an instance run, and hears its result */
#define IDS (UINT64_C(1) << 30)     /* lists which histories there are */
#define FOLLOW (UINT64_C(1) << 31)  /* hears that a record is written */
#define WAITING (UINT64_C(1) << 32) /* reads the messages to instances that wait */
#define NOTARY (UINT64_C(1) << 33)  /* publishes checkpoints of the logs */
#define HEAR (UINT64_C(1) << 34)    /* hears CloudEvents, also those that are stored */
#define HELD (UINT64_C(1) << 35)    /* reads whether an instance is under legal hold */
#define HOLD (UINT64_C(1) << 36)    /* sets and releases holds */
#define LAG (UINT64_C(1) << 37)     /* learns how many messages to instances there were */
#define RESTORE (UINT64_C(1) << 38) /* puts histories back from archives, and removes them again */
#define FIRE (UINT64_C(1) << 39)    /* has timers fire */
#define LOOK (UINT64_C(1) << 40)    /* looks at each stream and queue, whether it is as it must be */
#define ASK (UINT64_C(1) << 41)     /* asks the engines how they are */

enum streams {
    IN = 1 << 0,
    HIST = 1 << 1,
    WORK = 1 << 2,
    REJECTS = 1 << 3,
    CONFIG = 1 << 4,
    NODES = 1 << 5,
    CRASHES = 1 << 6,
    SECRET = 1 << 7,
    EVERY = (1 << 8) - 1, /* all that an engine makes */
    EVERY_BUT_SECRET = EVERY & ~SECRET,
    BINDINGS = 1 << 8,
    AUDITS = 1 << 9,
    TOLD = 1 << 10, /* CloudEvents; an engine makes it when it is asked to */
    HOLDS = 1 << 11,
    RESTORED = 1 << 12,
    STORES = BINDINGS | AUDITS | HOLDS | RESTORED,
};

/*
 * In the patterns {ns} stands for one text, {stream} for each of the row's streams, {inbox} for each prefix
 * of the user's inboxes, {notices} for that of the remote workers of each queue, {queue}, {orchestration},
 * {event}, {query} for each name of the list, or * without a list; {bound} for each stream of messages that
 * rules of thole bind are about. {by}, at the end, for .by. and the actor that NATS vouches for, or nothing;
 * of those who pass requests of others on, for both.
 */
struct row {
    uint64_t rights; /* any of them gives it */
    enum permission_side side;
    const char *pattern;
    uint32_t streams;
};
#define PUB PERMISSION_PUBLISH
#define SUB PERMISSION_SUBSCRIBE
#define API "$JS.API."

static const struct row rows[] = {
    /* Messages to instances: docs/wire.md, "Messages to an instance". */
    {START, PUB, "thole.{ns}.in.*.start.{orchestration}.*{by}", 0},
    {START, PUB, "thole.{ns}.in.*.start_event.{start_event}.*{by}", 0},
    {SIGNAL, PUB, "thole.{ns}.in.*.event.{event}.*{by}", 0},
    {CANCEL, PUB, "thole.{ns}.in.*.control.cancel.*{by}", 0},
    {TERMINATE, PUB, "thole.{ns}.in.*.control.terminate.*{by}", 0},
    {PAUSE, PUB, "thole.{ns}.in.*.control.pause.*{by}", 0},
    {RESUME, PUB, "thole.{ns}.in.*.control.resume.*{by}", 0},
    {DELETE, PUB, "thole.{ns}.in.*.control.delete.*{by}", 0},
    {FORCE_DELETE, PUB, "thole.{ns}.in.*.control.force_delete.*{by}", 0},
    {PRUNE, PUB, "thole.{ns}.in.*.control.prune.*{by}", 0},
    {RETRY, PUB, "thole.{ns}.in.*.control.retry.*{by}", 0},
    {RELEASE, PUB, "thole.{ns}.in.*.control.release.*{by}", 0},
    {FIRE, PUB, "thole.{ns}.in.*.control.fire.*{by}", 0},
    {COMPLETE, PUB, "thole.{ns}.in.*.result.outside.*{by}", 0},
    {WORKER, PUB, "thole.{ns}.in.*.result.worker.*", 0},
    {ENGINE, PUB, "thole.{ns}.in.*.engine.*.*", 0},
    /* Subjects that engines alone publish. */
    {ENGINE, PUB, "thole.{ns}.hist.*.*.*", 0},
    {ENGINE, PUB, "thole.{ns}.ctl.*.*", 0},
    {ENGINE, PUB, "thole.{ns}.work.*.*.*.*.*", 0},
    {ENGINE | BINDER, PUB, "thole.{ns}.rejected.*", 0},
    {ENGINE, PUB, "thole.{ns}.cancel.*.*", 0},
    {ENGINE, PUB, "thole.{ns}.event.*.*.*", 0},
    {ENGINE, PUB, "thole.{ns}.event.*.*.ce.>", 0},
    {ENGINE, PUB, "$KV.THOLE_{ns}_CONFIG.*", 0},
    {ENGINE, PUB, "$KV.THOLE_{ns}_NODES.*", 0},
    {ENGINE, PUB, "$KV.THOLE_{ns}_CRASHES.*.*", 0},
    {ENGINE, PUB, "$KV.THOLE_{ns}_SECRET.nonces", 0},
    {ENGINE | NOTARY, PUB, "thole.{ns}.audit.*.*", 0},
    {HOLD, PUB, "$KV.THOLE_{ns}_HOLDS.*", 0},
    /* Not a key of CONFIG: who may publish to one may replace the whole bucket, with a header (Nats-Rollup).
     */
    {RESTORE, PUB, "thole.{ns}.restored.*.*.*", 0},
    /* Core NATS. */
    {QUERY, PUB, "thole.{ns}.query.*.{query}.*", 0},
    {ENGINE | WORKER | ROLL_CALL, PUB, "thole.{ns}.workers", 0},
    {WORKER, PUB, "thole.{ns}.queues.{queue}", 0},
    {QUEUE_LIMIT, PUB, "thole.{ns}.queues.{queue}.settings", 0}, /* engines change consumers */
    {ENGINE, PUB, "thole.{ns}.engines.*", 0},
    {ASK, PUB, "thole.{ns}.engines.*.state", 0},
    /* By way of a gateway: docs/gateway.md. A gateway's notices go to inboxes of its workers. */
    {GATEWAY, PUB, "_INBOX.>", 0},
    {GATEWAY, PUB, "{notices}.>", 0},
    {REMOTE_WORKER, PUB, "thole.{ns}.gateway.open.{queue}", 0},
    {REMOTE_WORKER, PUB, "thole.{ns}.gateway.session.>", 0},
    {REMOTE_CLIENT, PUB, "thole.{ns}.gateway.client.start.{orchestration}{by}", 0},
    {REMOTE_CLIENT, PUB, "thole.{ns}.gateway.client.start_event.{start_event}{by}", 0},
    {REMOTE_CLIENT, PUB, "thole.{ns}.gateway.client.signal.{event}{by}", 0},
    {REMOTE_CLIENT, PUB, "thole.{ns}.gateway.client.query.{query}{by}", 0},
    {REMOTE_CLIENT, PUB, "thole.{ns}.gateway.client.cancel{by}", 0},
    {REMOTE_CLIENT, PUB, "thole.{ns}.gateway.client.wait{by}", 0},
    {REMOTE_CLIENT, PUB, "thole.{ns}.gateway.client.describe{by}", 0},
    {REMOTE_CLIENT, PUB, "thole.{ns}.gateway.client.complete_activity{by}", 0},
    /* JetStream: streams. */
    {ENGINE | SETTINGS, PUB, API "INFO", 0},
    {ENGINE, PUB, API "STREAM.INFO.{stream}", EVERY | TOLD},
    {SETTINGS, PUB, API "STREAM.INFO.{stream}", CONFIG | NODES},
    {LOOK, PUB, API "STREAM.INFO.{stream}", EVERY_BUT_SECRET},
    /* Which consumers and streams fill the account: streams/crowd.h. Of streams that others may make
     * consumers of, engines alone learn the names: who knows one could change it. */
    {ENGINE | LOOK, PUB, API "CONSUMER.LIST.{stream}", WORK},
    {ENGINE, PUB, API "CONSUMER.LIST.{stream}", EVERY_BUT_SECRET | TOLD | BINDINGS | AUDITS},
    {WORKER, PUB, API "STREAM.INFO.{stream}", WORK},
    {LAG, PUB, API "STREAM.INFO.{stream}", IN},
    {REJECTED, PUB, API "STREAM.INFO.{stream}", REJECTS},
    {REJECTED, PUB, API "STREAM.MSG.GET.{stream}", REJECTS},
    {REPLAY | IDS, PUB, API "STREAM.INFO.{stream}", HIST},
    {ENGINE | REPLAY, PUB, API "STREAM.INFO.{stream}", AUDITS},
    {ENGINE, PUB, API "STREAM.INFO.{stream}", HOLDS | BINDINGS | RESTORED},
    {LOOK, PUB, API "STREAM.INFO.{stream}", TOLD | HOLDS | BINDINGS | RESTORED | AUDITS},
    {ENGINE | REPLAY, PUB, API "STREAM.MSG.GET.{stream}", AUDITS},
    {HELD | HOLD, PUB, API "STREAM.INFO.{stream}", HOLDS},
    {ENGINE | HELD | HOLD, PUB, API "STREAM.MSG.GET.{stream}", HOLDS},
    {HISTORIES | REPLAY | RESTORE, PUB, API "STREAM.MSG.GET.{stream}", RESTORED},
    {RESTORE, PUB, API "STREAM.INFO.{stream}", RESTORED},
    {RESTORE, PUB, API "STREAM.PURGE.{stream}", RESTORED},
    /* A user that may create a stream may have it copy or republish any other stream: engines alone. */
    {ENGINE, PUB, API "STREAM.CREATE.{stream}", EVERY | TOLD | STORES},
    {ENGINE, PUB, API "STREAM.UPDATE.{stream}", EVERY},
    {ENGINE, PUB, API "STREAM.MSG.GET.{stream}", IN | HIST | WORK | CONFIG | CRASHES | SECRET},
    {ENGINE, PUB, API "DIRECT.GET.{stream}", HIST},
    {SETTINGS, PUB, API "STREAM.MSG.GET.{stream}", CONFIG},
    {HISTORIES | REPLAY, PUB, API "STREAM.MSG.GET.{stream}", HIST},
    {HISTORIES | WAITING, PUB, API "STREAM.MSG.GET.{stream}", IN}, /* whether a start waits */
    {ENGINES, PUB, API "STREAM.MSG.GET.{stream}", NODES},
    {ENGINE, PUB, API "STREAM.MSG.DELETE.{stream}", HIST | WORK},
    {ENGINE, PUB, API "STREAM.PURGE.{stream}", IN},
    /* JetStream: consumers. Who may create one may let it deliver to any subject of the account, and make so
     * many that no engine gets another one. */
    {ENGINE, PUB, API "CONSUMER.CREATE.{stream}.>", IN | HIST | WORK | NODES | CRASHES},
    {REPLAY, PUB, API "CONSUMER.CREATE.{stream}.>", HIST | AUDITS},
    {ENGINE, PUB, API "CONSUMER.CREATE.{stream}.>", AUDITS},
    {ENGINE, PUB, API "CONSUMER.DELETE.{stream}.*",
     IN | HIST | WORK | NODES | CRASHES | TOLD | BINDINGS | AUDITS},
    {ENGINE, PUB, API "CONSUMER.INFO.{stream}.*", WORK},
    {ENGINE, PUB, "$JS.FC.{stream}.>", IN | HIST | NODES | CRASHES},
    {REPLAY, PUB, "$JS.FC.{stream}.>", HIST | AUDITS},
    {ENGINE, PUB, "$JS.FC.{stream}.>", AUDITS},
    {WORKER, PUB, API "CONSUMER.INFO.{stream}.q_{queue}", WORK},
    {WORKER, PUB, API "CONSUMER.MSG.NEXT.{stream}.q_{queue}", WORK},
    {WORKER, PUB, "$JS.ACK.{stream}.q_{queue}.>", WORK},
    {WORKER, PUB, "$JS.ACK.*.*.{stream}.q_{queue}.>", WORK}, /* domain and account hash: newer servers */
    {QUEUES, PUB, API "CONSUMER.INFO.{stream}.*", WORK},
    {QUEUE_LIMIT, PUB, API "CONSUMER.INFO.{stream}.q_{queue}", WORK},
    /* Rules of thole bind, and the consumers of their messages. */
    {RULES, PUB, "$KV.THOLE_{ns}_BINDINGS.*", 0},
    {ENGINE | RULES, PUB, API "STREAM.NAMES", 0},
    {RULES | BINDER, PUB, API "STREAM.INFO.{stream}", BINDINGS},
    {RULES | BINDER, PUB, API "STREAM.MSG.GET.{stream}", BINDINGS},
    {BINDER, PUB, API "CONSUMER.CREATE.{stream}.>", BINDINGS},
    {BINDER, PUB, API "CONSUMER.DELETE.{stream}.*", BINDINGS},
    {BINDER, PUB, "$JS.FC.{stream}.>", BINDINGS},
    {RULES, PUB, API "STREAM.INFO.{bound}", 0}, /* of a mirror: it has no subject to be found by */
    {RULES | BINDER, PUB, API "CONSUMER.INFO.{bound}.*", 0},
    {RULES | BINDER, PUB, API "CONSUMER.DELETE.{bound}.*", 0},
    {BINDER, PUB, API "CONSUMER.CREATE.{bound}.>", 0},
    {BINDER, PUB, API "CONSUMER.MSG.NEXT.{bound}.*", 0},
    {BINDER, PUB, "$JS.ACK.{bound}.>", 0},
    {BINDER, PUB, "$JS.ACK.*.*.{bound}.>", 0}, /* domain and account hash: newer servers */
    /* CloudEvents, from their stream. */
    {HEAR, PUB, API "STREAM.INFO.{stream}", TOLD},
    {HEAR, PUB, API "CONSUMER.CREATE.{stream}.>", TOLD},
    {HEAR, PUB, API "CONSUMER.INFO.{stream}.*", TOLD},
    {HEAR, PUB, API "CONSUMER.DELETE.{stream}.*", TOLD},
    {HEAR, PUB, API "CONSUMER.MSG.NEXT.{stream}.*", TOLD},
    {HEAR, PUB, "$JS.ACK.{stream}.>", TOLD},
    {HEAR, PUB, "$JS.ACK.*.*.{stream}.>", TOLD}, /* domain and account hash: newer servers */
    /* Subjects that a user subscribes to. */
    {ENGINE | SETTINGS | REMOTE_WORKER | REMOTE_CLIENT, SUB, "{inbox}.>", 0},
    {BINDER, SUB, "thole.{ns}.call.*", 0},
    {BINDER, SUB, "thole.{ns}.call.*.by.*", 0},
    {CALL, PUB, "thole.{ns}.call.{orchestration}{by}", 0},
    {GATEWAY, SUB, "thole.{ns}.gateway.>", 0},
    {GATEWAY, SUB, "$SRV.>", 0},
    {ENGINE, SUB, "thole.{ns}.query.*.*.*", 0},
    {ENGINE, SUB, "thole.{ns}.queues.*", 0},
    {ENGINE, SUB, "thole.{ns}.queues.*.settings", 0},
    {ENGINE, SUB, "thole.{ns}.engines.*", 0},
    {ENGINE, SUB, "thole.{ns}.engines.*.state", 0},
    {ENGINE, SUB, "thole.{ns}.ctl.*.epoch", 0},
    {WORKER, SUB, "thole.{ns}.cancel.>", 0},
    {WORKER, SUB, "thole.{ns}.workers", 0},
    {EVENTS, SUB, "thole.{ns}.event.*.*.*", 0},
    {HEAR, SUB, "thole.{ns}.event.{orchestration}.*.ce.>", 0},
    {FOLLOW, SUB, "thole.{ns}.hist.>", 0},
};

/* ---- roles and verbs ---- */

/* The sender of such a request first looks whether the instance has ended. */
#define CONTROL(what) (what | HISTORIES)

static const struct {
    const char *name;
    uint64_t rights;
} verbs[] = {
    {"start", START | HISTORIES | EVENTS | ENGINES},
    {"start-many", START},
    {"run", START | HISTORIES | EVENTS | ENGINES | ROLL_CALL}, /* why an instance does not go on */
    {"wait", HISTORIES | EVENTS | ENGINES | ROLL_CALL},
    {"show", HISTORIES | ROLL_CALL | ENGINES},
    {"history", HISTORIES | FOLLOW},
    {"export", HISTORIES | IDS},
    {"diff", HISTORIES},
    {"list", SETTINGS},
    {"rejected", REJECTED},
    {"signal", SIGNAL | HISTORIES | ENGINES},
    {"query", QUERY},
    {"cancel", CONTROL(CANCEL)},
    {"terminate", CONTROL(TERMINATE)},
    {"pause", CONTROL(PAUSE)},
    {"resume", CONTROL(RESUME)},
    {"retry", CONTROL(RETRY)},
    {"delete", CONTROL(DELETE) | EVENTS | HELD},
    {"force-delete", CONTROL(FORCE_DELETE) | EVENTS | HELD},
    {"prune", CONTROL(PRUNE) | EVENTS | HELD},
    {"complete", COMPLETE},
    {"fail", COMPLETE},
    {"nodes", HISTORIES | ENGINES | ROLL_CALL | ASK},
    {"partitions", HISTORIES | ENGINES | LAG | ASK},
    {"doctor", HISTORIES | ENGINES | ROLL_CALL | LOOK | ASK},
    {"timer", CONTROL(FIRE)},
    {"queue", QUEUES | ROLL_CALL | RELEASE},
    {"queue-limit", QUEUE_LIMIT | ROLL_CALL},
    {"replay", REPLAY | HISTORIES},
    {"projections", REPLAY | HISTORIES | WAITING},
    {"audit", REPLAY | HISTORIES},
    {"hold", HOLD},
    {"archive", REPLAY | HISTORIES | HELD | CONTROL(DELETE) | CONTROL(PRUNE) | EVENTS | RESTORE},
    {"bind", RULES},
    {"console", HISTORIES | FOLLOW | EVENTS | ENGINES | ROLL_CALL | QUEUES | REJECTED | SETTINGS | LAG | ASK},
    {"call", CALL},
    {"events", HEAR},
};

static const struct {
    const char *name;
    uint64_t rights;   /* of a role that has no verbs */
    const char *verbs; /* the usual verbs of the role */
} roles[] = {
    {"engine", ENGINE, NULL},
    {"worker", WORKER | SETTINGS, NULL},
    {"client", 0, "start,run,wait,signal,query,cancel,list"},
    {"auditor", 0, "wait,show,history,export,diff,list,nodes,partitions,doctor,rejected,replay,audit"},
    {"console", 0,
     "console,show,history,list,nodes,partitions,doctor,rejected,start,signal,query,cancel,terminate,pause,"
     "resume,retry,delete,"
     "prune,"
     "queue"},
    {"service", 0, "start,start-many,run,wait,signal,query,cancel,complete,fail,list"},
    {"gateway", WORKER | GATEWAY | SETTINGS, "start,wait,show,signal,query,cancel,terminate,complete,list"},
    {"binder", BINDER | START | SIGNAL | HISTORIES | EVENTS | SETTINGS, NULL},
    {"remote-worker", REMOTE_WORKER, NULL},
    {"remote-client", REMOTE_CLIENT, NULL},
    {"notary", NOTARY | REPLAY | HISTORIES | SETTINGS, NULL},
    {"archivist", 0, "archive"},
};

/* ---- lists of names ---- */

/* The @p i-th name of a list with commas; false after the last. */
static bool nats_permissions_nth(const char *list, size_t i, thole_slice *ret)
{
    for (; i > 0; i--) {
        list = strchr(list, ',');
        if (list == NULL)
            return false;
        list++;
    }
    *ret = (thole_slice){(const uint8_t *)list, strcspn(list, ",")};
    return true;
}

static thole_status nats_permissions_check_names(const char *list, const char *what, thole_error *reterr)
{
    thole_slice name;
    if (list == NULL)
        return THOLE_OK;
    if (strnlen(list, LIST_BYTES_MAX + 1) > LIST_BYTES_MAX || nats_permissions_nth(list, NAMES_MAX, &name))
        return thole_fail(reterr, THOLE_INVALID, "more than %d names of one kind: use several users",
                          NAMES_MAX);
    for (size_t i = 0; nats_permissions_nth(list, i, &name); i++)
        THOLE_TRY(name_check(name, what, reterr));
    return THOLE_OK;
}

static void known_names(struct buf *to, const char *name)
{
    buf_printf(to, "%s%s", to->len == 0 ? "" : ", ", name);
}

static thole_status nats_permissions_unknown(const char *what, thole_slice name, struct buf *known,
                                             thole_error *reterr)
{
    thole_status const status =
        thole_fail(reterr, THOLE_INVALID, "there is no %s \"%.*s\"; there are: %s", what,
                   name.len > 60 ? 60 : (int)name.len, (const char *)name.ptr, buf_cstr(known));
    buf_release(known);
    return status;
}

static thole_status verbs_add(const char *list, uint64_t *rights, thole_error *reterr)
{
    thole_slice name;
    for (size_t i = 0; nats_permissions_nth(list, i, &name); i++) {
        size_t at = 0;
        while (at < COUNT(verbs) && !thole_slice_equal(name, thole_slice_from(verbs[at].name)))
            at++;
        if (at == COUNT(verbs)) {
            struct buf known;
            buf_init(&known, KNOWN_BYTES_MAX);
            for (size_t v = 0; v < COUNT(verbs); v++)
                known_names(&known, verbs[v].name);
            return nats_permissions_unknown("verb", name, &known, reterr);
        }
        *rights |= verbs[at].rights | SETTINGS;
    }
    return THOLE_OK;
}

/* Any actor, or what NATS replaces in the permissions of a scoped signing key, such as {{name()}}. */
static bool actor_is_pattern(const char *actor)
{
    size_t const len = strlen(actor);
    bool const template =
        len > 4 && actor[0] == '{' && actor[1] == '{' && actor[len - 1] == '}' && actor[len - 2] == '}';
    return strcmp(actor, "*") == 0 || (template && strpbrk(actor, ". \t\r\n\"*>") == NULL);
}

static thole_status check_actor(const char *actor, thole_error *reterr)
{
    if (actor == NULL || actor_is_pattern(actor) || id_check(thole_slice_from(actor), NULL) == THOLE_OK)
        return THOLE_OK;
    return thole_fail(
        reterr, THOLE_INVALID,
        "a vouched actor is a name of at most %d bytes of UTF-8, {{name()}} or another template of a "
        "scoped signing key, or * for any",
        ACTOR_NAME_BYTES_MAX);
}

/* *ret_verbs: one of the roles has verbs. */
static thole_status roles_add(const struct permission_wish *wish, uint64_t *rights, bool *ret_verbs,
                              thole_error *reterr)
{
    thole_slice name;
    *ret_verbs = false;
    for (size_t i = 0; nats_permissions_nth(wish->roles, i, &name); i++) {
        size_t at = 0;
        while (at < COUNT(roles) && !thole_slice_equal(name, thole_slice_from(roles[at].name)))
            at++;
        if (at == COUNT(roles)) {
            struct buf known;
            buf_init(&known, KNOWN_BYTES_MAX);
            for (size_t r = 0; r < COUNT(roles); r++)
                known_names(&known, roles[r].name);
            return nats_permissions_unknown("role", name, &known, reterr);
        }
        *rights |= roles[at].rights;
        if (roles[at].verbs != NULL) {
            *ret_verbs = true;
            THOLE_TRY(verbs_add(wish->verbs != NULL ? wish->verbs : roles[at].verbs, rights, reterr));
        }
    }
    return THOLE_OK;
}

thole_status permissions_make(const struct permission_wish *wish, struct permissions *ret,
                              thole_error *reterr)
{
    bool has_verbs;
    *ret = (struct permissions){.wish = *wish};
    THOLE_TRY(roles_add(wish, &ret->rights, &has_verbs, reterr));
    THOLE_TRY(name_check(thole_slice_from(wish->ns), "namespace", reterr));
    THOLE_TRY(nats_permissions_check_names(wish->queues, "queue", reterr));
    THOLE_TRY(nats_permissions_check_names(wish->orchestrations, "orchestration", reterr));
    THOLE_TRY(nats_permissions_check_names(wish->events, "event", reterr));
    THOLE_TRY(nats_permissions_check_names(wish->queries, "query", reterr));
    THOLE_TRY(check_actor(wish->actor, reterr));
    if (wish->verbs != NULL && !has_verbs)
        return thole_fail(reterr, THOLE_INVALID, "an engine or a worker has no verbs");
    if ((ret->rights & (RULES | BINDER)) != 0 && wish->bound == NULL)
        return thole_fail(
            reterr, THOLE_INVALID,
            "name the streams whose messages may be bound, with --stream: who may make a consumer "
            "of a stream may read all of it");
    THOLE_TRY(nats_permissions_check_names(wish->bound, "stream", reterr));
    if (wish->partitions == 0 || wish->partitions > PARTITIONS_MAX)
        return thole_fail(reterr, THOLE_INVALID, "%u partitions: there are 1 to %d", wish->partitions,
                          PARTITIONS_MAX);
    if (wish->inbox != NULL)
        THOLE_TRY(inbox_prefix_check(wish->inbox, reterr));
    THOLE_TRY(api_prefix_check(wish->api_prefix, reterr));
    if (wish->api_prefix == NULL)
        ret->wish.api_prefix = API_PREFIX_DEFAULT;
    ret->answers = (ret->rights & (ENGINE | WORKER | GATEWAY | BINDER)) != 0;
    return THOLE_OK;
}

/* ---- inboxes ---- */

/* Of one that serves queues. */
static bool inbox_of_queue(const struct permission_wish *wish, const char *role, size_t i,
                           char ret[INBOX_PREFIX_BYTES_MAX + 1])
{
    char queue[THOLE_NAME_BYTES_MAX + 1];
    thole_slice name;
    if (!nats_permissions_nth(wish->queues != NULL ? wish->queues : "default", i, &name))
        return false;
    (void)snprintf(queue, sizeof queue, "%.*s", THOLE_FMT(name));
    inbox_prefix_of(&(struct inbox_owner){wish->ns, role, queue}, ret);
    return true;
}

/* A worker has one for each queue, a gateway another one for what is of no queue. */
static bool inbox_of_role(const struct permission_wish *wish, const char *role, size_t i,
                          char ret[INBOX_PREFIX_BYTES_MAX + 1])
{
    bool const gateway = strcmp(role, "gateway") == 0;
    if (strcmp(role, "worker") == 0 || strcmp(role, "remote-worker") == 0 || (gateway && i > 0))
        return inbox_of_queue(wish, role, gateway ? i - 1 : i, ret);
    if (i == 0)
        inbox_prefix_of(&(struct inbox_owner){.ns = wish->ns, .role = role}, ret);
    return i == 0;
}

bool permissions_inbox(const struct permissions *permissions, size_t i, char ret[INBOX_PREFIX_BYTES_MAX + 1])
{
    const struct permission_wish *const wish = &permissions->wish;
    char role[ROLE_BYTES];
    thole_slice name;
    if (wish->inbox != NULL) {
        (void)snprintf(ret, INBOX_PREFIX_BYTES_MAX + 1, "%s", wish->inbox);
        return i == 0;
    }
    for (size_t r = 0; nats_permissions_nth(wish->roles, r, &name); r++) {
        size_t n = 0;
        (void)snprintf(role, sizeof role, "%.*s", THOLE_FMT(name));
        for (; inbox_of_role(wish, role, n, ret); n++)
            if (i-- == 0)
                return true;
    }
    return false;
}

/* ---- patterns ---- */

struct expansion {
    const struct permissions *permissions;
    uint32_t streams;
    bool crossing; /* subjects that cross between accounts */
    permission_fn *each;
    void *arg;
};

/* @p i-th of @p list, or * when there is none. */
static bool name_or_any(const char *list, size_t i, char *ret, size_t cap)
{
    thole_slice name = THOLE_STR("*");
    if (list == NULL ? i > 0 : !nats_permissions_nth(list, i, &name))
        return false;
    (void)snprintf(ret, cap, "%.*s", THOLE_FMT(name));
    return true;
}

/* <orchestration>~<event> is one token: with a list of one of the two only, none can be named. */
static bool start_event(const struct permission_wish *wish, size_t i, char *ret, size_t cap)
{
    thole_slice orchestration, event;
    size_t events = 0;
    if (wish->orchestrations == NULL || wish->events == NULL)
        return wish->orchestrations == NULL && wish->events == NULL && name_or_any(NULL, i, ret, cap);
    while (nats_permissions_nth(wish->events, events, &event))
        events++;
    if (!nats_permissions_nth(wish->orchestrations, i / events, &orchestration))
        return false;
    (void)nats_permissions_nth(wish->events, i % events, &event);
    (void)snprintf(ret, cap, "%.*s~%.*s", THOLE_FMT(orchestration), THOLE_FMT(event));
    return true;
}

/* The @p i-th of the expansion's streams. */
static bool nats_permissions_stream(const struct expansion *expansion, size_t i, char *ret, size_t cap)
{
    static const struct {
        const char *before, *behind;
        bool partitioned;
    } names[] = {
        {"THOLE", "IN_", true},         {"THOLE", "HIST_", true},      {"THOLE", "WORK", false},
        {"THOLE", "REJECTED", false},   {"KV_THOLE", "CONFIG", false}, {"KV_THOLE", "NODES", false},
        {"KV_THOLE", "CRASHES", false}, {"KV_THOLE", "SECRET", false}, {"KV_THOLE", "BINDINGS", false},
        {"THOLE", "AUDIT", false},      {"THOLE", "EVENTS", false},    {"KV_THOLE", "HOLDS", false},
        {"THOLE", "RESTORED", false}};
    const struct permission_wish *wish = &expansion->permissions->wish;
    for (size_t kind = 0; kind < COUNT(names); kind++) {
        size_t const n = names[kind].partitioned ? wish->partitions : 1;
        if ((expansion->streams & 1u << kind) == 0)
            continue;
        if (i < n) {
            char number[12] = "";
            if (names[kind].partitioned)
                (void)snprintf(number, sizeof number, "%zu", i);
            (void)snprintf(ret, cap, "%s_%s_%s%s", names[kind].before, wish->ns, names[kind].behind, number);
            return true;
        }
        i -= n;
    }
    return false;
}

/* The @p i-th text that @p key stands for; false after the last. */
static bool nats_permissions_value(const struct expansion *expansion, const char *key, size_t i, char *ret,
                                   size_t cap)
{
    const struct permissions *permissions = expansion->permissions;
    const struct permission_wish *wish = &permissions->wish;
    if (strcmp(key, "ns") == 0) {
        (void)snprintf(ret, cap, "%s", wish->ns);
        return i == 0;
    }
    assert(cap > INBOX_PREFIX_BYTES_MAX);
    if (strcmp(key, "inbox") == 0)
        return permissions_inbox(permissions, i, ret);
    if (strcmp(key, "notices") == 0)
        return inbox_of_queue(wish, "remote-worker", i, ret);
    if (strcmp(key, "stream") == 0)
        return nats_permissions_stream(expansion, i, ret, cap);
    if (strcmp(key, "queue") == 0)
        return name_or_any(wish->queues != NULL ? wish->queues : "default", i, ret, cap);
    if (strcmp(key, "orchestration") == 0)
        return name_or_any(wish->orchestrations, i, ret, cap);
    if (strcmp(key, "bound") == 0)
        return name_or_any(wish->bound, i, ret, cap);
    if (strcmp(key, "event") == 0)
        return name_or_any(wish->events, i, ret, cap);
    if (strcmp(key, "query") == 0)
        return name_or_any(wish->queries, i, ret, cap);
    assert(strcmp(key, "start_event") == 0);
    return start_event(wish, i, ret, cap);
}

/* The placeholder {by}, the last one: nothing, .by.<actor>, or both for who passes on what others ask. */
static void expand_by(const struct expansion *expansion, const char *text, const char *open)
{
    const struct permissions *const permissions = expansion->permissions;
    const char *const actor = permissions->wish.actor;
    bool const passes_on = (permissions->rights & (GATEWAY | BINDER)) != 0;
    struct buf to;
    assert(open[sizeof "{by}" - 1] == '\0');
    buf_init(&to, SUBJECT_BYTES_MAX);
    buf_append(&to, text, (size_t)(open - text));
    if (passes_on || actor == NULL)
        expansion->each(expansion->arg, buf_cstr(&to));
    if (passes_on || actor != NULL) {
        if (passes_on || actor_is_pattern(actor))
            buf_printf(&to, ".by.%s", passes_on ? "*" : actor);
        else if (subject_add_actor(&to, thole_slice_from(actor), NULL) != THOLE_OK)
            assert(false); /* checked before */
        expansion->each(expansion->arg, buf_cstr(&to));
    }
    buf_release(&to);
}

/* Of a user's permissions as the user says it; of what passes between accounts as the server does. */
static void expansion_end(const struct expansion *expansion, const char *text)
{
    char room[API_SUBJECT_BYTES];
    const char *const prefix = expansion->permissions->wish.api_prefix;
    expansion->each(expansion->arg, expansion->crossing ? text : api_prefix_apply(prefix, text, room));
}

/* Replaces the first placeholder, everywhere in the text, by each of its values; then the next. */
static void nats_permissions_expand(const struct expansion *expansion,
                                    const char *text) /* NOLINT(misc-no-recursion) */
{
    char key[24], with[INBOX_PREFIX_BYTES_MAX + 1];
    static_assert(sizeof with > STREAM_NAME_BYTES_MAX + THOLE_NAME_BYTES_MAX, "each value fits");
    const char *const open = strchr(text, '{');
    if (open == NULL) {
        expansion_end(expansion, text);
        return;
    }
    if (strncmp(open, "{by}", 4) == 0) {
        expand_by(expansion, text, open);
        return;
    }
    const char *const end = strchr(open, '}');
    assert(end != NULL);
    size_t const len = (size_t)(end - open) + 1; /* with its braces */
    assert(len > 2 && len < sizeof key);
    (void)snprintf(key, sizeof key, "%.*s", (int)len - 2, open + 1);
    for (size_t i = 0; nats_permissions_value(expansion, key, i, with, sizeof with); i++) {
        struct buf to;
        buf_init(&to, SUBJECT_BYTES_MAX);
        for (const char *at = text; *at != '\0';)
            if (strncmp(at, open, len) == 0) {
                buf_text(&to, with);
                at += len;
            } else {
                buf_append(&to, at++, 1);
            }
        assert(buf_status(&to) == THOLE_OK); /* patterns and names are short */
        nats_permissions_expand(expansion, buf_cstr(&to));
        buf_release(&to);
    }
}

/* Said by workers, gateways and their clients to each other, who share an account. */
static bool pattern_is_local(const char *pattern)
{
    static const char *const begins[] = {
        "thole.{ns}.gateway.", "thole.{ns}.workers", "_INBOX", "{inbox}", "{notices}", "$SRV"};
    for (size_t i = 0; i < COUNT(begins); i++)
        if (strncmp(pattern, begins[i], strlen(begins[i])) == 0)
            return true;
    return false;
}

/* Of the rows with one pattern the first one stands for all. */
static void permissions_each_row(const struct permissions *permissions, enum permission_side side,
                                 bool crossing, permission_fn *each, void *arg)
{
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct expansion expansion = {permissions, 0, crossing, each, arg};
        bool given = false, first = true;
        for (size_t k = 0; k < COUNT(rows); k++)
            if (strcmp(rows[k].pattern, rows[i].pattern) == 0 && rows[k].side == rows[i].side) {
                first = first && k >= i;
                given = given || (rows[k].rights & permissions->rights) != 0;
                if ((rows[k].rights & permissions->rights) != 0)
                    expansion.streams |= rows[k].streams;
            }
        if (first && given && rows[i].side == side && !(crossing && pattern_is_local(rows[i].pattern)))
            nats_permissions_expand(&expansion, rows[i].pattern);
    }
}

void permissions_each(const struct permissions *permissions, enum permission_side side, permission_fn *each,
                      void *arg)
{
    permissions_each_row(permissions, side, false, each, arg);
}

/* The token at *at, which moves past its dot; empty at the end. */
static thole_slice pattern_take_token(const char **at)
{
    thole_slice const token = {(const uint8_t *)*at, strcspn(*at, ".")};
    *at += token.len + ((*at)[token.len] == '.');
    return token;
}

/* Whether each subject that @p narrow matches is one that @p wide matches. */
static bool pattern_covers(const char *wide, const char *narrow)
{
    for (;;) {
        thole_slice const w = pattern_take_token(&wide), n = pattern_take_token(&narrow);
        if (w.len == 0 || n.len == 0)
            return w.len == n.len;
        if (thole_slice_equal(w, THOLE_STR(">")))
            return true;
        if (!thole_slice_equal(w, n) &&
            (!thole_slice_equal(w, THOLE_STR("*")) || thole_slice_equal(n, THOLE_STR(">"))))
            return false;
    }
}

/* Messages come once through each export that has their subject: what another pattern covers is left out. */
struct crossing {
    struct buf wide; /* patterns, each with its NUL */
    permission_fn *each;
    void *arg;
};

static void crossing_note_pattern(void *arg, const char *subject)
{
    struct crossing *const crossing = arg;
    if (strpbrk(subject, "*>") != NULL)
        buf_append(&crossing->wide, subject, strlen(subject) + 1);
}

static void crossing_pass(void *arg, const char *subject)
{
    struct crossing *const crossing = arg;
    const char *const from = buf_cstr(&crossing->wide);
    for (size_t at = 0; at < crossing->wide.len; at += strlen(from + at) + 1)
        if (strcmp(from + at, subject) != 0 && pattern_covers(from + at, subject))
            return;
    crossing->each(crossing->arg, subject);
}

void permissions_each_crossing(const struct permissions *permissions, enum permission_side side,
                               permission_fn *each, void *arg)
{
    enum { WIDE_BYTES_MAX = 4 * 1024 * 1024 };
    struct crossing crossing = {.each = each, .arg = arg};
    buf_init(&crossing.wide, WIDE_BYTES_MAX);
    permissions_each_row(permissions, side, true, crossing_note_pattern, &crossing);
    assert(buf_status(&crossing.wide) == THOLE_OK); /* lists of names are short */
    permissions_each_row(permissions, side, true, crossing_pass, &crossing);
    buf_release(&crossing.wide);
}

bool permissions_may_cross(const struct permissions *permissions)
{
    return (permissions->rights & (ENGINE | BINDER | REPLAY | NOTARY | RULES)) == 0;
}
