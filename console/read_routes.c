/* Routes that read. Each answer is the document that the verb of the same name prints with -o json. */
#include "read_routes.h"
#include "client_internal.h"
#include "clock.h"
#include "forms.h"
#include "memory.h"
#include "page.h"
#include "pending.h"
#include "query_message.h"
#include "text.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    ROWS_NORMALLY = 100,
    ROWS_MAX = 1000,
    EVENTS_NORMALLY = 1000,
    EVENTS_MAX = 10000,
    DATA_BYTES_MAX = 64 * 1024,       /* in a document; all of it by read_event_data() */
    STATUS_SHOWN_MAX = 32,            /* bytes of one that there is not */
    DOCUMENT_BYTES = 4 * 1024 * 1024, /* a history's page ends here, whatever its limit */
};

/* ---- lists ---- */

struct list {
    struct json json;
    struct answer *answer;
    const struct roster *roster;
    uint64_t rows, limit;
    bool more;
    char next[PAGE_TOKEN_BYTES];
};

static void list_begin(struct list *list, struct answer *answer, const char *schema, const char *name)
{
    list->answer = answer;
    answer_document(answer, &list->json, schema);
    json_key(&list->json, name);
    json_array(&list->json);
}

/* False: the row is beyond the limit. */
static bool read_routes_list_row(struct list *list)
{
    if (list->limit > 0 && list->rows == list->limit) {
        list->more = true;
        return false;
    }
    list->rows++;
    json_object(&list->json);
    return true;
}

static void list_end(struct list *list, thole_status status, thole_error *error)
{
    if (status != THOLE_OK && !(status == THOLE_CANCELLED && list->more)) {
        error->status = status;
        answer_error(list->answer, error);
        return;
    }
    json_end(&list->json);
    json_member_bool(&list->json, "complete", !list->more);
    if (list->more)
        json_member_text(&list->json, "next", list->next);
    json_end(&list->json);
}

static void say_invalid(struct answer *answer, thole_error *error, thole_status status)
{
    error->status = status;
    answer_error(answer, error);
}

/* ---- instances ---- */

static thole_status read_routes_read_time(const struct request *request, const char *name, uint64_t *ret,
                                          thole_error *reterr)
{
    thole_slice const value = request_value(request, name);
    char text[64];
    uint64_t ms;
    if (value.len == 0)
        return THOLE_OK;
    (void)snprintf(text, sizeof text, "%.*s", THOLE_FMT(value));
    if (request_number(request, name, 0, INT64_MAX, &ms, NULL) == THOLE_OK) {
        *ret = ms;
        return THOLE_OK;
    }
    if (value.len < sizeof text && text_time_parse(text, clock_wall_ms(), ret))
        return THOLE_OK;
    return thole_fail(reterr, THOLE_INVALID,
                      "%s: %.40s is no time; expected 2026-11-21T09:30:00Z, milliseconds since 1970, or a "
                      "duration such as 2h, which is that long ago",
                      name, text);
}

static bool is_status(thole_slice word, const char *name)
{
    return word.len == strlen(name) && strncasecmp((const char *)word.ptr, name, word.len) == 0;
}

/* "open", or a status. */
static thole_status read_status(thole_slice word, uint32_t *to, thole_error *reterr)
{
    for (int i = THOLE_INSTANCE_RUNNING; i <= THOLE_INSTANCE_CONTINUED_AS_NEW; i++)
        if (is_status(word, thole_instance_status_name((thole_instance_status)i))) {
            *to |= UINT32_C(1) << i;
            return THOLE_OK;
        }
    if (!is_status(word, "open"))
        return thole_fail(reterr, THOLE_INVALID,
                          "status: there is no status \"%.*s\"; expected one, several with commas between "
                          "them, or open: all that have not ended",
                          (int)(word.len < STATUS_SHOWN_MAX ? word.len : STATUS_SHOWN_MAX), word.ptr);
    *to |= (uint32_t)THOLE_STATUSES_OPEN;
    return THOLE_OK;
}

static thole_status read_statuses(const struct request *request, uint32_t *ret, thole_error *reterr)
{
    thole_slice const all = request_value(request, "status");
    for (size_t at = 0; all.len > 0 && at <= all.len;) {
        const uint8_t *const comma = at < all.len ? memchr(all.ptr + at, ',', all.len - at) : NULL;
        size_t const end = comma == NULL ? all.len : (size_t)(comma - all.ptr);
        THOLE_TRY(read_status((thole_slice){all.ptr + at, end - at}, ret, reterr));
        at = end + 1;
    }
    return THOLE_OK;
}

thole_status filter_read(const struct request *request, thole_list_filter *ret, thole_error *reterr)
{
    *ret = (thole_list_filter){.size = sizeof *ret,
                               .orchestration = request_value(request, "orchestration"),
                               .id_prefix = request_value(request, "prefix"),
                               .parent = request_value(request, "parent"),
                               .custom_status = request_value(request, "custom_status")};
    THOLE_TRY(read_statuses(request, &ret->statuses, reterr));
    THOLE_TRY(read_routes_read_time(request, "after", &ret->created_after_ms, reterr));
    return read_routes_read_time(request, "before", &ret->created_before_ms, reterr);
}

static thole_status read_routes_instance_row(void *arg, const thole_instance_info *info)
{
    struct list *const list = arg;
    if (info->foreign)
        return THOLE_OK;
    if (!read_routes_list_row(list))
        return THOLE_CANCELLED;
    form_instance(&list->json, info);
    json_end(&list->json);
    page_token(list->next, &info->created_ms, 1, info->instance);
    return THOLE_OK;
}

void read_instances(struct session *session, const struct request *request, struct answer *answer)
{
    thole_client *const client = session->client;
    thole_list_filter filter;
    thole_error error = {.status = THOLE_OK};
    struct list list = {.rows = 0};
    struct buf behind;
    buf_init(&behind, THOLE_ID_BYTES_MAX);
    thole_status status = filter_read(request, &filter, &error);
    if (status == THOLE_OK)
        status = request_limit(request, ROWS_NORMALLY, ROWS_MAX, &list.limit, &error);
    if (status == THOLE_OK)
        status = page_read(request_value(request, "next"), &filter.behind_created_ms, 1, &behind, &error);
    if (status != THOLE_OK) {
        say_invalid(answer, &error, status);
    } else {
        filter.limit = list.limit + 1;
        filter.behind_instance = buf_bytes(&behind);
        list_begin(&list, answer, "thole.list.v1", "instances");
        status = thole_client_list(client, &filter, read_routes_instance_row, &list, &error);
        list_end(&list, status, &error);
    }
    buf_release(&behind);
}

void read_counts(struct session *session, const struct request *request, struct answer *answer)
{
    thole_list_filter filter;
    thole_instance_counts counts = {.size = sizeof counts};
    thole_error error = {.status = THOLE_OK};
    struct json json;
    thole_status status = filter_read(request, &filter, &error);
    if (status == THOLE_OK)
        status = thole_client_count(session->client, &filter, &counts, &error);
    if (status != THOLE_OK) {
        say_invalid(answer, &error, status);
        return;
    }
    answer_document(answer, &json, "thole.counts.v1");
    json_key(&json, "counts");
    json_object(&json);
    for (int i = THOLE_INSTANCE_RUNNING; i <= THOLE_INSTANCE_CONTINUED_AS_NEW; i++)
        if (counts.of[i] > 0)
            json_member_number(&json, thole_instance_status_name((thole_instance_status)i), counts.of[i]);
    json_end(&json);
    json_member_bool(&json, "exact", counts.exact);
    json_end(&json);
}

/* ---- one instance ---- */

struct one {
    thole_client *client;
    thole_slice instance;
    struct json json;
    struct answer *answer;
    struct pending pending;
    bool stands; /* the instance does not go on by itself */
    char note[1024];
};

static thole_status one_row(void *arg, const thole_instance_info *info)
{
    struct one *const one = arg;
    one->stands |= status_stands(info->status);
    answer_document(one->answer, &one->json, "thole.instance.v1");
    form_instance(&one->json, info);
    return THOLE_OK;
}

static void one_note(void *arg, const char *text)
{
    struct one *const one = arg;
    (void)snprintf(one->note, sizeof one->note, "%s", text);
}

static thole_status one_inspection(void *arg, const thole_inspection *inspection)
{
    struct one *const one = arg;
    pending_read(&one->pending, one->client, one->instance, inspection, one_note, one);
    one->stands |= form_inspection(&one->json, &one->pending, inspection, DATA_BYTES_MAX);
    return THOLE_OK;
}

static void one_hindrances(struct one *one)
{
    thole_error error = {.status = THOLE_OK};
    if (one->stands && form_hindrances(&one->json, one->client, one->instance, &error) != THOLE_OK)
        (void)snprintf(one->note, sizeof one->note, "what would let it go on is not known: %s", error.text);
}

static void one_rest(struct one *one)
{
    thole_error error = {.status = THOLE_OK};
    thole_status const status = thole_client_inspect(one->client, one->instance, one_inspection, one, &error);
    if (status != THOLE_OK && status != THOLE_NOT_FOUND) /* never started: events wait for it */
        (void)snprintf(one->note, sizeof one->note,
                       "what it waits for is not known, as its history cannot be read: %s", error.text);
    one_hindrances(one);
    form_set_aside(&one->json, one->client, one->instance);
    if (one->note[0] != '\0')
        json_member_text(&one->json, "note", one->note);
    json_end(&one->json);
}

/* An instance without a row: its start waits for its first turn, or it has just had it, or its row is set
 * aside. */
static thole_status one_without_row(void *arg, const thole_inspection *inspection)
{
    struct one *const one = arg;
    struct json *const json = &one->json;
    answer_document(one->answer, json, "thole.instance.v1");
    json_member(json, "instance", one->instance);
    json_member(json, "orchestration", inspection->orchestration);
    if (inspection->version != 0)
        json_member_number(json, "version", inspection->version);
    json_member_text(json, "status", thole_instance_status_name(inspection->status));
    json_member_number(json, "execution", inspection->execution);
    json_member_time(json, inspection->status == THOLE_INSTANCE_PENDING ? "stored" : "updated",
                     inspection->time_ms);
    if (inspection->status == THOLE_INSTANCE_PENDING)
        json_member_number(json, "ahead", inspection->ahead);
    one->stands |= status_stands(inspection->status);
    return one_inspection(one, inspection);
}

static thole_status one_unprojected(struct one *one, thole_error *reterr)
{
    THOLE_TRY(thole_client_inspect(one->client, one->instance, one_without_row, one, reterr));
    one_hindrances(one);
    form_set_aside(&one->json, one->client, one->instance);
    if (one->note[0] != '\0')
        json_member_text(&one->json, "note", one->note);
    json_end(&one->json);
    return THOLE_OK;
}

void read_instance(struct session *session, const struct request *request, struct answer *answer)
{
    thole_client *const client = session->client;
    struct one one = {.client = client, .instance = request->parts[1], .answer = answer};
    thole_error error = {.status = THOLE_OK};
    pending_init(&one.pending, false);
    error.status = thole_client_show(client, one.instance, one_row, &one, &error);
    if (error.status == THOLE_OK)
        one_rest(&one);
    else if (error.status != THOLE_NOT_FOUND || one_unprojected(&one, &error) != THOLE_OK)
        answer_error(answer, &error);
    pending_release(&one.pending);
}

/* Where in the source its code waits; null: not known, and why. */
void read_source(struct session *session, const struct request *request, struct answer *answer)
{
    thole_slice site = {NULL, 0};
    thole_error error = {.status = THOLE_OK};
    struct json json;
    error.status = thole_client_query(session->client, request->parts[1], THOLE_STR(QUERY_SOURCE),
                                      THOLE_STR(""), &site, &error);
    answer_document(answer, &json, "thole.source.v1");
    json_member(&json, "instance", request->parts[1]);
    json_key(&json, "source");
    if (error.status == THOLE_OK)
        json_string(&json, site);
    else
        json_null(&json);
    if (error.status != THOLE_OK)
        json_member_text(&json, "source_error", error.text);
    json_end(&json);
    thole_client_release(site);
}

/* ---- histories ---- */

struct page {
    struct json json;
    struct answer *answer;
    uint64_t events, limit, sequence, next;
};

/* A page ends at the end of a record, as a sequence is one of a record. */
static thole_status page_event(void *arg, const thole_history_event *event)
{
    struct page *const page = arg;
    if (event->sequence != page->sequence &&
        (page->events >= page->limit || page->answer->body.len >= DOCUMENT_BYTES)) {
        page->next = event->sequence;
        return THOLE_CANCELLED;
    }
    page->sequence = event->sequence;
    page->events++;
    json_object(&page->json);
    form_event(&page->json, event, DATA_BYTES_MAX);
    json_end(&page->json);
    return THOLE_OK;
}

void read_history(struct session *session, const struct request *request, struct answer *answer)
{
    thole_client *const client = session->client;
    struct page page = {.answer = answer};
    thole_error error = {.status = THOLE_OK};
    uint64_t from = 0;
    thole_status status = request_number(request, "from", 0, INT64_MAX, &from, &error);
    if (status == THOLE_OK)
        status = request_limit(request, EVENTS_NORMALLY, EVENTS_MAX, &page.limit, &error);
    if (status != THOLE_OK) {
        say_invalid(answer, &error, status);
        return;
    }
    answer_document(answer, &page.json, "thole.history.v1");
    json_member(&page.json, "instance", request->parts[1]);
    json_key(&page.json, "events");
    json_array(&page.json);
    uint64_t last = from > 0 ? from - 1 : 0;
    status = client_history_behind(client, request->parts[1], &last, page_event, &page, &error);
    if (status != THOLE_OK && page.next == 0) {
        say_invalid(answer, &error, status);
        return;
    }
    json_end(&page.json);
    json_member_bool(&page.json, "complete", page.next == 0);
    json_key(&page.json, "next");
    if (page.next == 0)
        json_null(&page.json);
    else
        json_number(&page.json, page.next);
    json_end(&page.json);
}

struct wanted {
    uint64_t sequence, id;
    struct buf *to;
    bool found;
};

static thole_status read_routes_take_data(void *arg, const thole_history_event *event)
{
    struct wanted *const wanted = arg;
    if (event->sequence > wanted->sequence)
        return THOLE_CANCELLED;
    if (event->sequence < wanted->sequence || (wanted->id != 0 && event->id != wanted->id))
        return THOLE_OK;
    wanted->found = true;
    buf_slice(wanted->to, event->data);
    return THOLE_CANCELLED;
}

void read_event_data(struct session *session, const struct request *request, struct answer *answer)
{
    thole_client *const client = session->client;
    struct request_arg const sequence = {"sequence", request->parts[3]};
    struct request part = {.args = {sequence}, .args_len = 1};
    struct wanted wanted = {.to = &answer->body};
    thole_error error = {.status = THOLE_OK};
    thole_status status = request_number(&part, "sequence", 0, INT64_MAX, &wanted.sequence, &error);
    if (status == THOLE_OK)
        status = request_number(request, "id", 0, INT64_MAX, &wanted.id, &error);
    uint64_t last = wanted.sequence > 0 ? wanted.sequence - 1 : 0;
    if (status == THOLE_OK)
        status =
            client_history_behind(client, request->parts[1], &last, read_routes_take_data, &wanted, &error);
    if (wanted.found) {
        answer->type = "application/octet-stream";
        answer->download = true;
        return;
    }
    if (status == THOLE_OK || status == THOLE_CANCELLED)
        status = thole_fail(&error, THOLE_NOT_FOUND, "its history has no such event");
    say_invalid(answer, &error, status);
}

/* ---- queues ---- */

static thole_status read_routes_queue_row(void *arg, const thole_queue_info *info)
{
    struct list *const list = arg;
    if (info->foreign)
        return THOLE_OK;
    (void)read_routes_list_row(list);
    form_queue(&list->json, list->roster, info);
    json_end(&list->json);
    return THOLE_OK;
}

/* Nothing was listed of the queue that is asked for: THOLE_NOT_FOUND if there is no such queue. */
static thole_status read_routes_check_queue(thole_client *client, const struct roster *roster,
                                            thole_slice queue, const struct list *list, thole_error *reterr)
{
    return queue.len > 0 && list->rows == 0 ? roster_queue_known(roster, client, queue, reterr) : THOLE_OK;
}

void read_queues(struct session *session, const struct request *request, struct answer *answer)
{
    thole_client *const client = session->client;
    struct roster roster;
    struct list list = {.roster = &roster};
    thole_error error = {.status = THOLE_OK};
    (void)roster_read(&roster, client, &error); /* "serving" is null then */
    list_begin(&list, answer, "thole.queue_list.v1", "queues");
    thole_slice const queue = request_value(request, "queue");
    thole_status status = thole_client_queues(client, queue, read_routes_queue_row, &list, &error);
    if (status == THOLE_OK)
        status = read_routes_check_queue(client, &roster, queue, &list, &error);
    list_end(&list, status, &error);
    roster_release(&roster);
}

static thole_status read_routes_quarantine_row(void *arg, const thole_poisoned_info *info)
{
    struct list *const list = arg;
    uint64_t const place[] = {info->since_ms, info->execution, info->activity_id};
    if (info->foreign)
        return THOLE_OK;
    if (!read_routes_list_row(list))
        return THOLE_CANCELLED;
    form_poisoned(&list->json, info);
    json_end(&list->json);
    page_token(list->next, place, sizeof place / sizeof place[0], info->instance);
    return THOLE_OK;
}

void read_quarantine(struct session *session, const struct request *request, struct answer *answer)
{
    thole_client *const client = session->client;
    thole_poisoned_filter filter = {.size = sizeof filter,
                                    .queue = request_value(request, "queue"),
                                    .instance = request_value(request, "instance")};
    struct list list = {.rows = 0};
    struct roster roster;
    thole_error error = {.status = THOLE_OK};
    uint64_t place[3];
    struct buf behind;
    buf_init(&behind, THOLE_ID_BYTES_MAX);
    thole_status status = request_limit(request, ROWS_NORMALLY, ROWS_MAX, &list.limit, &error);
    if (status == THOLE_OK)
        status = page_read(request_value(request, "next"), place, 3, &behind, &error);
    if (status != THOLE_OK) {
        say_invalid(answer, &error, status);
    } else {
        filter.limit = list.limit + 1;
        filter.behind_instance = buf_bytes(&behind);
        filter.behind_since_ms = place[0];
        filter.behind_execution = place[1];
        filter.behind_activity_id = place[2];
        list_begin(&list, answer, "thole.poisoned_list.v1", "poisoned");
        status = thole_client_poisoned(client, &filter, read_routes_quarantine_row, &list, &error);
        if (status == THOLE_OK && list.rows == 0 && filter.queue.len > 0) {
            (void)roster_read(&roster, client, &error);
            status = read_routes_check_queue(client, &roster, filter.queue, &list, &error);
            roster_release(&roster);
        }
        list_end(&list, status, &error);
    }
    buf_release(&behind);
}

/* ---- engines, workers, partitions ---- */

void read_nodes(struct session *session, const struct request *request, struct answer *answer)
{
    thole_client *const client = session->client;
    struct cluster cluster;
    struct roster roster;
    struct list list = {.rows = 0};
    thole_error error = {.status = THOLE_OK};
    (void)request;
    thole_status status =
        cluster_read(&cluster, client->connection, client->topology.ns, client->topology.partitions, &error);
    thole_status const asked = roster_read(&roster, client, status == THOLE_OK ? &error : NULL);
    status = status == THOLE_OK ? asked : status;
    list_begin(&list, answer, "thole.node_list.v1", "nodes");
    for (const struct cluster_engine *e = cluster.engines; e != NULL && status == THOLE_OK; e = e->next) {
        (void)read_routes_list_row(&list);
        form_engine(&list.json, &cluster, e);
        json_end(&list.json);
    }
    for (const struct roster_worker *w = roster.first; w != NULL && status == THOLE_OK; w = w->next) {
        (void)read_routes_list_row(&list);
        form_worker(&list.json, w);
        json_end(&list.json);
    }
    list_end(&list, status, &error);
    cluster_release(&cluster);
    roster_release(&roster);
}

/* The rows of what the engines say. */
typedef void told_fn(struct list *list, const struct cluster *cluster);

static void read_told(struct session *session, struct answer *answer, const char *type, const char *member,
                      told_fn *rows)
{
    thole_client *const client = session->client;
    struct cluster cluster;
    struct list list = {.rows = 0};
    thole_error error = {.status = THOLE_OK};
    thole_status const status =
        cluster_read(&cluster, client->connection, client->topology.ns, client->topology.partitions, &error);
    list_begin(&list, answer, type, member);
    if (status == THOLE_OK)
        rows(&list, &cluster);
    list_end(&list, status, &error);
    cluster_release(&cluster);
}

static void list_defects(struct list *list, const struct cluster *cluster)
{
    for (const struct cluster_defect *d = cluster->defects; d != NULL; d = d->next) {
        (void)read_routes_list_row(list);
        form_defect(&list->json, d);
        json_end(&list->json);
    }
}

static void list_mended(struct list *list, const struct cluster *cluster)
{
    for (const struct cluster_mended *m = cluster->mended; m != NULL; m = m->next) {
        (void)read_routes_list_row(list);
        form_mended(&list->json, m);
        json_end(&list->json);
    }
}

static void list_room(struct list *list, const struct cluster *cluster)
{
    for (const struct cluster_room *room = cluster->room; room != NULL; room = room->next) {
        (void)read_routes_list_row(list);
        form_room(&list->json, room);
        json_end(&list->json);
    }
}

/* Missing or changed objects. */
void read_defects(struct session *session, const struct request *request, struct answer *answer)
{
    (void)request;
    read_told(session, answer, "thole.defect_list.v1", "defects", list_defects);
}

/* Missing objects that were made again. */
void read_mended(struct session *session, const struct request *request, struct answer *answer)
{
    (void)request;
    read_told(session, answer, "thole.mended_list.v1", "mended", list_mended);
}

/* How much is stored, and for how long there is room. */
void read_room(struct session *session, const struct request *request, struct answer *answer)
{
    (void)request;
    read_told(session, answer, "thole.room_list.v1", "room", list_room);
}

void read_partitions(struct session *session, const struct request *request, struct answer *answer)
{
    thole_client *const client = session->client;
    struct cluster cluster;
    struct list list = {.rows = 0};
    thole_error error = {.status = THOLE_OK};
    (void)request;
    thole_status const status =
        cluster_read(&cluster, client->connection, client->topology.ns, client->topology.partitions, &error);
    if (status == THOLE_OK) /* those that are not known are left out */
        (void)cluster_read_lags(&cluster, client, NULL);
    list_begin(&list, answer, "thole.partition_list.v1", "partitions");
    for (uint32_t p = 0; p < cluster.partitions_len && status == THOLE_OK; p++) {
        (void)read_routes_list_row(&list);
        form_partition(&list.json, p, &cluster.partitions[p]);
        json_end(&list.json);
    }
    list_end(&list, status, &error);
    cluster_release(&cluster);
}

struct names {
    struct list list;
    struct arena arena;
    thole_slice seen[ROWS_MAX];
    size_t seen_len;
};

static thole_status engine_names(void *arg, const thole_engine_info *info)
{
    struct names *const names = arg;
    for (size_t i = 0; i < info->orchestrations_len && names->seen_len < ROWS_MAX; i++) {
        bool known = false;
        for (size_t k = 0; k < names->seen_len; k++)
            known |= thole_slice_equal(names->seen[k], info->orchestrations[i]);
        if (known)
            continue;
        THOLE_TRY(arena_dup(&names->arena, info->orchestrations[i], &names->seen[names->seen_len]));
        json_string(&names->list.json, names->seen[names->seen_len++]);
    }
    return THOLE_OK;
}

void read_orchestrations(struct session *session, const struct request *request, struct answer *answer)
{
    thole_client *const client = session->client;
    struct names *const names = memory_new(sizeof *names);
    thole_error error = {.status = THOLE_OK};
    (void)request;
    arena_init(&names->arena, DOCUMENT_BYTES);
    list_begin(&names->list, answer, "thole.orchestration_list.v1", "orchestrations");
    thole_status const status = thole_client_engines(client, engine_names, names, &error);
    list_end(&names->list, status, &error);
    arena_release(&names->arena);
    free(names);
}

/* ---- rejected messages ---- */

static const char whose[] = "rejected"; /* in a token: it is of this list */

static thole_status rejected_row(void *arg, const thole_rejected_info *info)
{
    struct list *const list = arg;
    if (!read_routes_list_row(list))
        return THOLE_CANCELLED;
    form_rejected(&list->json, info);
    json_end(&list->json);
    page_token(list->next, &info->number, 1, thole_slice_from(whose));
    return THOLE_OK;
}

void read_rejected(struct session *session, const struct request *request, struct answer *answer)
{
    thole_client *const client = session->client;
    struct list list = {.rows = 0};
    thole_error error = {.status = THOLE_OK};
    uint64_t behind = 0;
    struct buf of;
    buf_init(&of, THOLE_ID_BYTES_MAX);
    thole_status status = request_limit(request, ROWS_NORMALLY, ROWS_MAX, &list.limit, &error);
    if (status == THOLE_OK)
        status = page_read(request_value(request, "next"), &behind, 1, &of, &error);
    if (status == THOLE_OK && of.len > 0 && !thole_slice_equal(buf_bytes(&of), thole_slice_from(whose)))
        status = thole_fail(&error, THOLE_INVALID, "next: this is a token of another list");
    buf_release(&of);
    if (status != THOLE_OK) {
        say_invalid(answer, &error, status);
        return;
    }
    list_begin(&list, answer, "thole.rejected_list.v1", "rejected");
    status = thole_client_rejected(client, behind, list.limit + 1, rejected_row, &list, &error);
    list_end(&list, status, &error);
}
