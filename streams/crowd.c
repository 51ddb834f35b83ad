#include "crowd.h"
#include "api.h"
#include "inbox_prefix.h"
#include "jscan.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    SHOWN_MAX = 3, /* groups in a text */
    NAME_BYTES = 300,
    DELIVER_BYTES = 400,
};

/* ---- groups; pure ---- */

/* "reader_ab_12" is reader_*, "copy17" copy*, "auditor" itself. */
static void crowd_begin_of(thole_slice name, char ret[CROWD_TEXT_BYTES])
{
    size_t n = 0;
    while (n < name.len && name.ptr[n] != '_' && name.ptr[n] != '-' &&
           !(name.ptr[n] >= '0' && name.ptr[n] <= '9'))
        n++;
    bool const cut = n < name.len;
    if (cut && (name.ptr[n] == '_' || name.ptr[n] == '-'))
        n++;
    (void)snprintf(ret, CROWD_TEXT_BYTES, "%.*s%s", n > CROWD_TEXT_BYTES - 2 ? CROWD_TEXT_BYTES - 2 : (int)n,
                   (const char *)name.ptr, cut ? "*" : "");
}

/* The role that follows _INBOX_<ns>_ in the first token; for a worker with its queue. */
static void crowd_role_of(const char *ns, thole_slice deliver, char ret[CROWD_TEXT_BYTES])
{
    char prefix[INBOX_PREFIX_BYTES_MAX + 1];
    thole_slice const token = subject_nth(deliver, 0);
    inbox_prefix_of(&(struct inbox_owner){.ns = ns, .role = ""}, prefix);
    size_t const len = strlen(prefix);
    bool const own = token.len > len && memcmp(token.ptr, prefix, len) == 0;
    thole_slice const shown = own ? (thole_slice){token.ptr + len, token.len - len} : token;
    (void)snprintf(ret, CROWD_TEXT_BYTES, "%.*s",
                   shown.len > CROWD_TEXT_BYTES - 1 ? CROWD_TEXT_BYTES - 1 : (int)shown.len,
                   shown.len == 0 ? "" : (const char *)shown.ptr);
}

void crowd_add(struct crowd *crowd, const char *ns, thole_slice name, thole_slice deliver)
{
    struct crowd_group group = {.count = 0};
    crowd_begin_of(name, group.begin);
    crowd_role_of(ns, deliver, group.role);
    crowd->counted++;
    size_t i = 0;
    while (i < crowd->len && !(strcmp(crowd->groups[i].begin, group.begin) == 0 &&
                               strcmp(crowd->groups[i].role, group.role) == 0))
        i++;
    if (i == CROWD_GROUPS_MAX) {
        crowd->ungrouped++;
        return;
    }
    if (i == crowd->len)
        crowd->groups[crowd->len++] = group;
    crowd->groups[i].count++;
}

static int crowd_compare(const void *a, const void *b)
{
    const struct crowd_group *const x = a, *const y = b;
    if (x->count != y->count)
        return x->count > y->count ? -1 : 1;
    return strcmp(x->begin, y->begin);
}

void crowd_text(struct crowd *crowd, char *to, size_t cap)
{
    size_t len = 0;
    uint64_t rest = crowd->counted;
    qsort(crowd->groups, crowd->len, sizeof crowd->groups[0], crowd_compare);
    to[0] = '\0';
    for (size_t i = 0; i < crowd->len && i < SHOWN_MAX && len < cap; i++) {
        const struct crowd_group *const group = &crowd->groups[i];
        bool const heard = group->role[0] != '\0';
        rest -= group->count;
        len +=
            (size_t)snprintf(to + len, cap - len, "%s%" PRIu64 " %s%s%s%s", i == 0 ? "" : ", ", group->count,
                             group->begin, heard ? " (inboxes of " : "", group->role, heard ? ")" : "");
    }
    if (rest > 0 && len < cap)
        (void)snprintf(to + len, cap - len, "%s%" PRIu64 " others", len == 0 ? "" : ", ", rest);
}

/* ---- looking ---- */

struct crowd_limits { /* 0: there is none, or it is not said */
    uint64_t consumers, consumers_max, streams, streams_max;
};

static uint64_t crowd_number(thole_slice said, const char *tier, const char *name)
{
    char path[64];
    thole_slice value;
    uint64_t n = 0;
    (void)snprintf(path, sizeof path, "%s%s", tier, name);
    return json_path(said, path, &value) && json_uint(value, &n) ? n : 0;
}

static thole_status crowd_read_limits(struct connection *connection, uint64_t replicas,
                                      struct crowd_limits *ret, thole_error *reterr)
{
    char tier[40] = "";
    struct buf answer;
    thole_slice tiers;
    buf_init(&answer, API_ANSWER_MAX);
    thole_status const status = api_call(connection, "INFO", "", THOLE_STR(""), &answer, NULL, reterr);
    if (status == THOLE_OK && json_find(buf_bytes(&answer), "tiers", &tiers) && replicas > 0)
        (void)snprintf(tier, sizeof tier, "tiers.R%" PRIu64 ".", replicas);
    *ret =
        (struct crowd_limits){.consumers = crowd_number(buf_bytes(&answer), tier, "consumers"),
                              .consumers_max = crowd_number(buf_bytes(&answer), tier, "limits.max_consumers"),
                              .streams = crowd_number(buf_bytes(&answer), tier, "streams"),
                              .streams_max = crowd_number(buf_bytes(&answer), tier, "limits.max_streams")};
    buf_release(&answer);
    return status;
}

struct crowd_adding {
    struct crowd *crowd;
    const char *ns;
};

static void crowd_add_consumer(void *arg, thole_slice info)
{
    const struct crowd_adding *const adding = arg;
    thole_slice value;
    struct buf name, deliver;
    buf_init(&name, NAME_BYTES);
    buf_init(&deliver, DELIVER_BYTES);
    if (!json_find(info, "name", &value) || !json_text(value, &name))
        buf_clear(&name);
    if (!json_path(info, "config.deliver_subject", &value) || !json_text(value, &deliver))
        buf_clear(&deliver);
    crowd_add(adding->crowd, adding->ns, buf_bytes(&name), buf_bytes(&deliver));
    buf_release(&name);
    buf_release(&deliver);
}

static void crowd_add_stream(void *arg, thole_slice item)
{
    const struct crowd_adding *const adding = arg;
    struct buf name;
    buf_init(&name, NAME_BYTES);
    if (json_text(item, &name))
        crowd_add(adding->crowd, adding->ns, buf_bytes(&name), (thole_slice){NULL, 0});
    buf_release(&name);
}

/* @p stream NULL: the names of all streams. Those of the first pages count, if the others do not come. */
static thole_status crowd_read(struct connection *connection, const char *ns, const char *stream,
                               struct crowd *crowd, thole_error *reterr)
{
    struct crowd_adding adding = {crowd, ns};
    thole_status const status =
        stream == NULL
            ? api_list(connection, "STREAM.NAMES", "", "streams", crowd_add_stream, &adding, reterr)
            : api_list(connection, "CONSUMER.LIST", stream, "consumers", crowd_add_consumer, &adding, reterr);
    return status == THOLE_NOT_FOUND || (status == THOLE_UNAVAILABLE && crowd->counted > 0) ? THOLE_OK
                                                                                            : status;
}

static void crowd_tell(struct crowd *crowd, const char *name, const char *what, uint64_t n, uint64_t most,
                       defect_fn *each, void *arg)
{
    struct defect defect = {.object = DEFECT_LIMITS, .weight = DEFECT_WARNS};
    char groups[DEFECT_VALUE_BYTES - 60];
    (void)snprintf(defect.name, sizeof defect.name, "%s", name);
    (void)snprintf(defect.field, sizeof defect.field, "%s", what);
    if (n > crowd->counted) /* those that this user cannot list */
        crowd->counted = n;
    crowd_text(crowd, groups, sizeof groups);
    (void)snprintf(defect.found, sizeof defect.found, "%" PRIu64 " of at most %" PRIu64 ": %s", n, most,
                   groups);
    (void)snprintf(defect.needed, sizeof defect.needed, "room for those of engines");
    (void)snprintf(
        defect.remedy, sizeof defect.remedy,
        "remove those that are not used (nats consumer rm, nats stream rm), take the right to make "
        "them from who has made them, or raise the limit of the account");
    each(arg, &defect);
}

static bool crowd_is_near(uint64_t n, uint64_t most)
{
    return most > 0 && n >= (most * CROWD_SHARE_PERCENT + 99) / 100;
}

struct crowd_looking {
    struct connection *connection;
    const char *ns;
    uint64_t consumers_max;
    defect_fn *each;
    void *arg;
};

/* One that is not there, or that this user may not see, is passed over. */
static thole_status crowd_look_at_stream(const struct crowd_looking *looking, const char *stream,
                                         thole_error *reterr)
{
    char name[STREAM_NAME_BYTES_MAX + 8];
    struct buf answer;
    thole_slice value;
    uint64_t n = 0;
    buf_init(&answer, API_ANSWER_MAX);
    thole_status status =
        api_call(looking->connection, "STREAM.INFO", stream, THOLE_STR(""), &answer, NULL, reterr);
    if (status == THOLE_OK && json_path(buf_bytes(&answer), "state.consumer_count", &value))
        (void)json_uint(value, &n);
    buf_release(&answer);
    if (status == THOLE_OK && crowd_is_near(n, looking->consumers_max)) {
        struct crowd crowd = {.len = 0};
        status = crowd_read(looking->connection, looking->ns, stream, &crowd, reterr);
        (void)snprintf(name, sizeof name, "stream %s", stream);
        if (status == THOLE_OK || status == THOLE_DENIED)
            crowd_tell(&crowd, name, "consumers", n, looking->consumers_max, looking->each, looking->arg);
    }
    return status == THOLE_NOT_FOUND || status == THOLE_DENIED ? THOLE_OK : status;
}

static thole_status crowd_look_at_streams(const struct crowd_looking *looking, uint32_t partitions,
                                          thole_error *reterr)
{
    static const struct {
        bool bucket;
        const char *kind;
    } others[] = {{false, "WORK"}, {true, "NODES"}, {true, "CRASHES"}, {false, "AUDIT"}, {true, "BINDINGS"}};
    static const char *const kinds[] = {"HIST", "IN"};
    char stream[STREAM_NAME_BYTES_MAX];
    for (size_t kind = 0; kind < sizeof kinds / sizeof kinds[0]; kind++)
        for (uint32_t p = 0; p < partitions; p++) {
            (void)snprintf(stream, sizeof stream, "THOLE_%s_%s_%" PRIu32, looking->ns, kinds[kind], p);
            THOLE_TRY(crowd_look_at_stream(looking, stream, reterr));
        }
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        (void)snprintf(stream, sizeof stream, "%sTHOLE_%s_%s", others[i].bucket ? "KV_" : "", looking->ns,
                       others[i].kind);
        THOLE_TRY(crowd_look_at_stream(looking, stream, reterr));
    }
    return THOLE_OK;
}

/* The account's consumers are counted together: while they are few, no stream has many. */
thole_status crowd_look(struct connection *connection, const struct topology *topology, defect_fn *each,
                        void *arg, thole_error *reterr)
{
    struct crowd_limits limits;
    THOLE_TRY(crowd_read_limits(connection, topology->replicas, &limits, reterr));
    struct crowd_looking const looking = {connection, topology->ns, limits.consumers_max, each, arg};
    if (crowd_is_near(limits.consumers, limits.consumers_max))
        THOLE_TRY(crowd_look_at_streams(&looking, topology->partitions, reterr));
    if (crowd_is_near(limits.streams, limits.streams_max)) {
        struct crowd crowd = {.len = 0};
        THOLE_TRY(crowd_read(connection, topology->ns, NULL, &crowd, reterr));
        crowd_tell(&crowd, "the account of NATS", "streams", limits.streams, limits.streams_max, each, arg);
    }
    return THOLE_OK;
}
