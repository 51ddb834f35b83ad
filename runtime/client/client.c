/* Opening and closing, and the reads of the projection. */
#include "client_task.h"
#include "inbox_prefix.h"
#include "locked.h"
#include "memory.h"
#include "message.h"
#include "row_store.h"
#include "utf8.h"
#include "watch.h"
#include <assert.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PAYLOAD_MAX_MAX = MESSAGE_BYTES_MAX / 2 };

/* ---- options ---- */

void thole_client_options_init(thole_client_options *options)
{
    memset(options, 0, sizeof *options);
    options->size = sizeof *options;
    options->timeout_ms = CLIENT_TIMEOUT_MS_DEFAULT;
}

static const char *client_setting(const char *given, const char *env, const char *fallback)
{
    if (given == NULL)
        given = getenv(env);
    return given == NULL || given[0] == '\0' ? fallback : given;
}

/* Checks a text that the client gives about itself. */
static thole_status check_said(const char *what, const char *text, size_t bytes_max, thole_error *reterr)
{
    if (text == NULL || (strlen(text) <= bytes_max && utf8_is_valid(thole_slice_from(text))))
        return THOLE_OK;
    return thole_fail(reterr, THOLE_INVALID, "%s must be UTF-8 of at most %zu bytes", what, bytes_max);
}

char *client_own_actor(void)
{
    enum { PASSWORD_ENTRY_BYTES = 1024, HOST_BYTES = 65 };
    char host[HOST_BYTES] = "", entry[PASSWORD_ENTRY_BYTES], text[ACTOR_NAME_BYTES_MAX + 1];
    struct passwd user, *found = NULL;
    (void)gethostname(host, sizeof host - 1); /* cut is fine */
    if (getpwuid_r(geteuid(), &user, entry, sizeof entry, &found) == 0 && found != NULL)
        (void)snprintf(text, sizeof text, "%s@%s", user.pw_name, host);
    else
        (void)snprintf(text, sizeof text, "%u@%s", (unsigned)geteuid(), host);
    return memory_text(text);
}

static thole_status client_resolve(const thole_client_options *given, thole_client_options *ret,
                                   thole_error *reterr)
{
    thole_client_options_init(ret);
    if (given != NULL && given->size < sizeof *given)
        return thole_fail(reterr, THOLE_INVALID,
                          "thole_client_options.size is not set; call thole_client_options_init() first");
    if (given != NULL)
        *ret = *given;
    ret->nats_url = client_setting(ret->nats_url, "THOLE_NATS_URL", "nats://127.0.0.1:4222");
    ret->nats_creds = client_setting(ret->nats_creds, "THOLE_NATS_CREDS", NULL);
    ret->nats_ca = client_setting(ret->nats_ca, "THOLE_NATS_CA", NULL);
    ret->nats_cert = client_setting(ret->nats_cert, "THOLE_NATS_CERT", NULL);
    ret->nats_key = client_setting(ret->nats_key, "THOLE_NATS_KEY", NULL);
    ret->nats_server_name = client_setting(ret->nats_server_name, "THOLE_NATS_SERVER_NAME", NULL);
    ret->nats_inbox = client_setting(ret->nats_inbox, "THOLE_NATS_INBOX", NULL);
    ret->nats_api_prefix = client_setting(ret->nats_api_prefix, "THOLE_NATS_API_PREFIX", NULL);
    ret->postgres = client_setting(ret->postgres, "THOLE_POSTGRES", NULL);
    ret->ns = client_setting(ret->ns, "THOLE_NAMESPACE", "default");
    ret->actor = client_setting(ret->actor, "THOLE_ACTOR", NULL);
    ret->vouched_actor = client_setting(ret->vouched_actor, "THOLE_VOUCHED_ACTOR", NULL);
    ret->client_name = client_setting(ret->client_name, "", "thole " THOLE_VERSION);
    THOLE_TRY(check_said("actor", ret->actor, ACTOR_NAME_BYTES_MAX, reterr));
    THOLE_TRY(check_said("vouched_actor", ret->vouched_actor, ACTOR_NAME_BYTES_MAX, reterr));
    THOLE_TRY(check_said("client_name", ret->client_name, ACTOR_CLIENT_BYTES_MAX, reterr));
    if (ret->timeout_ms == 0 || ret->payload_max > PAYLOAD_MAX_MAX)
        return thole_fail(reterr, THOLE_INVALID, "timeout_ms must not be 0, payload_max must be at most %d",
                          PAYLOAD_MAX_MAX);
    return name_check(thole_slice_from(ret->ns), "namespace", reterr);
}

/* ---- open and close ---- */

static thole_status client_connect(struct thole_client *client, const thole_client_options *options,
                                   thole_error *reterr)
{
    char inbox[INBOX_PREFIX_BYTES_MAX + 1];
    struct inbox_owner const owner = {.ns = options->ns, .role = "client"};
    struct connection_options const connection = {
        .url = options->nats_url,
        .creds = options->nats_creds,
        .ca = options->nats_ca,
        .cert = options->nats_cert,
        .key = options->nats_key,
        .server_name = options->nats_server_name,
        .inbox = inbox_prefix_or_own(options->nats_inbox, &owner, inbox),
        .api_prefix = options->nats_api_prefix,
        .name = "thole-client",
        .connect_timeout_ms = options->timeout_ms,
        .request_timeout_ms = options->timeout_ms,
        .on_state = watches_on_state,
        .waiting = &client_task_waiting,
        .arg = client,
    };
    THOLE_TRY(connection_open(&connection, &client->connection, reterr));
    THOLE_TRY(topology_read(client->connection, options->ns, &client->topology, reterr));
    if (client->payload_max == 0 ||
        client->payload_max > client->topology.payload_max) /* engines refuse more */
        client->payload_max = client->topology.payload_max;
    return requests_open(client->connection, CLIENT_WINDOW, options->timeout_ms, watches_on_done, client,
                         &client->requests, reterr);
}

thole_status thole_client_open(const thole_client_options *options, thole_client **ret_client,
                               thole_error *reterr)
{
    thole_client_options resolved;
    THOLE_TRY(client_resolve(options, &resolved, reterr));
    struct thole_client *client = memory_new(sizeof *client);
    client->timeout_ms = resolved.timeout_ms;
    client->payload_max = resolved.payload_max;
    pthread_mutex_init(&client->lock, NULL);
    pthread_mutex_init(&client->listening.turn, NULL);
    pthread_mutex_init(&client->postgres_lock, NULL);
    client->conninfo = resolved.postgres == NULL ? NULL : memory_text(resolved.postgres);
    client->ns = memory_text(resolved.ns);
    client->vouched = resolved.vouched_actor != NULL;
    if (client->vouched)
        client->actor = memory_text(resolved.vouched_actor);
    else
        client->actor = resolved.actor == NULL ? client_own_actor() : memory_text(resolved.actor);
    client->name = memory_text(resolved.client_name);
    thole_status const status = client_connect(client, &resolved, reterr);
    if (status != THOLE_OK) {
        thole_client_close(client);
        return status;
    }
    *ret_client = client;
    return THOLE_OK;
}

/* The connection string may hold a password. */
static void forget_text(char *text)
{
    if (text != NULL)
        explicit_bzero(text, strlen(text));
    free(text);
}

void thole_client_close(thole_client *client)
{
    if (client == NULL)
        return;
    assert(client->watches.first == NULL);    /* no call is under way */
    assert(atomic_load(&client->loops) == 0); /* each thole_async was closed before */
    requests_close(client->requests);
    subscription_close(client->listening.together);
    connection_close(client->connection);
    postgres_close(client->postgres);
    forget_text(client->conninfo);
    free(client->ns);
    free(client->actor);
    free(client->name);
    pthread_mutex_destroy(&client->postgres_lock);
    pthread_mutex_destroy(&client->listening.turn);
    pthread_mutex_destroy(&client->lock);
    free(client);
}

/* ---- the projection ---- */

/* One of the reads. */
struct query {
    thole_execution_fn *each_execution;    /* executions of instance, which have no other filter */
    const thole_poisoned_filter *poisoned; /* poisoned, which has no other filter */
    thole_poisoned_fn *each_poisoned;
    thole_slice instance;            /* show */
    const thole_list_filter *filter; /* list; NULL: show */
    thole_instance_fn *each;
    thole_activity_info_fn *each_activity;
    thole_set_aside_fn *each_set_aside; /* of instance */
    thole_instance_counts *counts;      /* of filter */
    thole_standing_fn *each_standing;   /* of all */
    struct client_queues *queues;       /* queues, which has nothing else */
    uint64_t *watermark;                /* of partition, which has nothing else */
    uint32_t partition;
    void *arg;
    bool answered; /* a row has been given to the caller: repeating would give it twice */
};

static thole_status count_row(void *arg, const thole_instance_info *info)
{
    struct query *query = arg;
    query->answered = true;
    return query->each(query->arg, info);
}

static thole_status count_poisoned(void *arg, const thole_poisoned_info *info)
{
    struct query *query = arg;
    query->answered = true;
    return query->each_poisoned(query->arg, info);
}

static thole_status count_activity(void *arg, const thole_activity_info *info)
{
    struct query *query = arg;
    query->answered = true;
    return query->each_activity(query->arg, info);
}

static thole_status count_set_aside(void *arg, const thole_set_aside_info *info)
{
    struct query *query = arg;
    query->answered = true;
    return query->each_set_aside(query->arg, info);
}

static thole_status count_standing(void *arg, const thole_standing_info *info)
{
    struct query *query = arg;
    query->answered = true;
    return query->each_standing(query->arg, info);
}

static thole_status count_execution(void *arg, const thole_execution_info *info)
{
    struct query *query = arg;
    query->answered = true;
    return query->each_execution(query->arg, info);
}

static thole_status postgres_ready(struct thole_client *client, thole_error *reterr)
{
    struct postgres_options const options = {
        .conninfo = client->conninfo,
        .ns = client->ns,
        .application = "thole-client",
        .connect_timeout_ms = client->timeout_ms,
        .statement_timeout_ms = client->timeout_ms,
        .synchronous_commit = true,
        .reads = true,
    };
    if (client->conninfo == NULL)
        return thole_fail(
            reterr, THOLE_INVALID,
            "show, list, executions, poisoned and queues read Postgres, and no connection string was "
            "given: set THOLE_POSTGRES "
            "or --postgres");
    return client->postgres != NULL ? THOLE_OK : postgres_open(&options, &client->postgres, reterr);
}

static thole_status read_watermark(struct postgres *pg, const struct query *query, thole_error *reterr)
{
    struct row_partition partition;
    THOLE_TRY(row_store_partition(pg, query->partition, &partition, reterr));
    *query->watermark = partition.watermark;
    return THOLE_OK;
}

static thole_status query_read(struct postgres *pg, struct query *query, thole_error *reterr)
{
    struct client_queues *queues = query->queues;
    assert((query->queues != NULL) + (query->each_activity != NULL) + (query->each_execution != NULL) +
               (query->poisoned != NULL) + (query->each != NULL) + (query->counts != NULL) +
               (query->watermark != NULL) + (query->each_set_aside != NULL) +
               (query->each_standing != NULL) ==
           1);
    if (query->watermark != NULL)
        return read_watermark(pg, query, reterr);
    if (queues != NULL) {
        THOLE_TRY(
            query_store_queues(pg, queues->queue, &queues->arena, &queues->rows, &queues->rows_len, reterr));
        return query_store_queue_activities(pg, queues->queue, &queues->arena, &queues->activities,
                                            &queues->activities_len, reterr);
    }
    if (query->each_activity != NULL)
        return query_store_activities(pg, query->instance, count_activity, query, reterr);
    if (query->each_set_aside != NULL)
        return query_store_set_aside(pg, query->instance, count_set_aside, query, reterr);
    if (query->each_execution != NULL)
        return query_store_executions(pg, query->instance, count_execution, query, reterr);
    if (query->each_standing != NULL)
        return query_store_standing(pg, true, count_standing, query, reterr);
    if (query->counts != NULL)
        return query_store_count(pg, query->filter, query->counts, reterr);
    if (query->poisoned != NULL)
        return query_store_poisoned(pg, query->poisoned, count_poisoned, query, reterr);
    return query->filter == NULL ? query_store_show(pg, query->instance, count_row, query, reterr)
                                 : query_store_list(pg, query->filter, count_row, query, reterr);
}

static thole_status query_once(struct thole_client *client, struct query *query, thole_error *reterr)
{
    assert(is_locked(&client->postgres_lock) && !query->answered);
    THOLE_TRY(postgres_ready(client, reterr));
    assert(client->postgres != NULL);
    thole_status const status = query_read(client->postgres, query, reterr);
    if (status == THOLE_UNAVAILABLE) {
        postgres_close(client->postgres);
        client->postgres = NULL;
    }
    return status;
}

/* A connection that was idle for long may be gone: that is noticed at its next use, which is then repeated
 * once. */
static thole_status client_query_run(struct thole_client *client, struct query *query, thole_error *reterr)
{
    pthread_mutex_lock(&client->postgres_lock);
    bool const was_open = client->postgres != NULL;
    thole_status status = query_once(client, query, reterr);
    if (status == THOLE_UNAVAILABLE && was_open && !query->answered)
        status = query_once(client, query, reterr);
    pthread_mutex_unlock(&client->postgres_lock);
    return status;
}

thole_status thole_client_show(thole_client *client, thole_slice instance, thole_instance_fn *each, void *arg,
                               thole_error *reterr)
{
    struct query query = {.instance = instance, .each = each, .arg = arg};
    THOLE_TRY(client_check_id(instance, reterr));
    return client_query_run(client, &query, reterr);
}

thole_status thole_client_activities(thole_client *client, thole_slice instance, thole_activity_info_fn *each,
                                     void *arg, thole_error *reterr)
{
    struct query query = {.instance = instance, .each_activity = each, .arg = arg};
    THOLE_TRY(id_check(instance, reterr));
    return client_query_run(client, &query, reterr);
}

thole_status thole_client_set_aside(thole_client *client, thole_slice instance, thole_set_aside_fn *each,
                                    void *arg, thole_error *reterr)
{
    struct query query = {.instance = instance, .each_set_aside = each, .arg = arg};
    THOLE_TRY(id_check(instance, reterr));
    return client_query_run(client, &query, reterr);
}

thole_status thole_client_executions(thole_client *client, thole_slice instance, thole_execution_fn *each,
                                     void *arg, thole_error *reterr)
{
    struct query query = {.instance = instance, .each_execution = each, .arg = arg};
    THOLE_TRY(id_check(instance, reterr));
    return client_query_run(client, &query, reterr);
}

thole_status thole_client_standing(thole_client *client, thole_standing_fn *each, void *arg,
                                   thole_error *reterr)
{
    struct query query = {.each_standing = each, .arg = arg};
    return client_query_run(client, &query, reterr);
}

thole_status thole_client_list(thole_client *client, const thole_list_filter *filter, thole_instance_fn *each,
                               void *arg, thole_error *reterr)
{
    thole_list_filter const all = {.size = sizeof all};
    struct query query = {.filter = filter == NULL ? &all : filter, .each = each, .arg = arg};
    if (query.filter->size < sizeof all)
        return thole_fail(reterr, THOLE_INVALID, "thole_list_filter.size is not set");
    return client_query_run(client, &query, reterr);
}

thole_status thole_client_count(thole_client *client, const thole_list_filter *filter,
                                thole_instance_counts *ret, thole_error *reterr)
{
    thole_list_filter const all = {.size = sizeof all};
    struct query query = {.filter = filter == NULL ? &all : filter, .counts = ret};
    if (query.filter->size < sizeof all || ret->size < sizeof *ret)
        return thole_fail(reterr, THOLE_INVALID,
                          "thole_list_filter.size or thole_instance_counts.size is not set");
    return client_query_run(client, &query, reterr);
}

thole_status thole_client_poisoned(thole_client *client, const thole_poisoned_filter *filter,
                                   thole_poisoned_fn *each, void *arg, thole_error *reterr)
{
    thole_poisoned_filter const all = {.size = sizeof all};
    struct query query = {.poisoned = filter == NULL ? &all : filter, .each_poisoned = each, .arg = arg};
    if (query.poisoned->size < sizeof all)
        return thole_fail(reterr, THOLE_INVALID, "thole_poisoned_filter.size is not set");
    return client_query_run(client, &query, reterr);
}

thole_status client_read_watermark(struct thole_client *client, uint32_t p, uint64_t *ret,
                                   thole_error *reterr)
{
    struct query query = {.watermark = ret, .partition = p};
    return client_query_run(client, &query, reterr);
}

thole_status client_read_queues(struct thole_client *client, struct client_queues *queues,
                                thole_error *reterr)
{
    struct query query = {.queues = queues};
    return client_query_run(client, &query, reterr);
}
