/* A connection: connecting, loss, reconnecting, alarms. See link.h. */
#include "api_prefix.h"
#include "clock.h"
#include "inbox_prefix.h"
#include "link.h"
#include "locked.h"
#include "login.h"
#include "loop.h"
#include "memory.h"
#include "nats_url.h"
#include "nkey.h"
#include "retry_pause.h"
#include "server_info.h"
#include "tls.h"
#include "wall_clock.h"
#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    VIOLATION_BYTES = 256,
    RETIRED_PAUSE_MS = 1000,
    RETIRED_FLUSH_MS = 1000,
    PING_INTERVAL_MS = 3000,
    /* nats.c 3.4.1 leaves out a signature that begins with a byte 0, one of 256: the server refuses. */
    SIGNED_TRIES = 3,
    LOOK_MS = 1000, /* at the wall clock, and at whether the server lives */
    SILENT_LOOKS_MAX = 9,
    /* nats.c 3.4.1 spins when its own connect times out between INFO and PONG; server_info_read() has already
     * reached the server, so this only bounds the rest. */
    HANDSHAKE_MS_MIN = 30000,
};

struct connection {
    pthread_mutex_t turn; /* state changes, alarms, attaching, detaching: one at a time */
    pthread_mutex_t lock; /* everything below unless it says "fixed" or "keeper" */
    pthread_cond_t changed;
    pthread_t keeper;
    bool stopping;
    struct link *current; /* NULL while disconnected; its `lost` is set before it is taken away */
    struct link *links;   /* all that are not destroyed yet, current included */
    size_t closed_owed;   /* connections whose closed callback has not run; may wrap below 0 for a moment */
    struct attachment *attachments;
    struct retired_subscription *retired; /* see connection_retire() */
    uint64_t retired_due_ms;              /* 0: none */
    uint64_t violations;
    char violation[VIOLATION_BYTES];
    char version[4][SERVER_VERSION_BYTES]; /* the last few, so that a borrowed slice stays readable */
    atomic_uint version_at;
    atomic_size_t max_payload;
    atomic_bool jetstream;
    _Atomic uint64_t epoch;
    uint64_t last_epoch;
    /* fixed */
    natsOptions *options;
    char *urls[NATS_URLS_MAX]; /* into url_text */
    size_t urls_len;
    char *url_text;
    char inbox[INBOX_OF_CONNECTION_BYTES]; /* all inboxes are below it */
    char api_prefix[API_PREFIX_BYTES_MAX + 1];
    bool creds;  /* from a file */
    char *login; /* file of a user and a password, or a token; NULL: none */
    struct tls_files tls;
    uint64_t connect_timeout_ms, request_timeout_ms;
    connection_state_fn *on_state;
    connection_trouble_fn *on_trouble;
    const struct connection_waiting *waiting;
    void *arg;
    /* keeper */
    struct wall_clock wall; /* since connecting of the current link began */
    uint64_t look_due_ms;
    size_t url_at;
    struct retry_pause retry;
};

uint64_t link_now_ms(void)
{
    return clock_monotonic_ms();
}

uint64_t connection_request_timeout_ms(const struct connection *connection)
{
    return connection->request_timeout_ms;
}

const struct connection_waiting *connection_waiting(const struct connection *connection)
{
    return connection->waiting;
}

const char *connection_api_prefix(const struct connection *connection)
{
    return connection->api_prefix;
}

const char *connection_inbox_root(const struct connection *connection)
{
    return connection->inbox;
}

uint64_t connection_epoch(const struct connection *connection)
{
    return atomic_load(&((struct connection *)(uintptr_t)connection)->epoch);
}

thole_slice connection_server_version(const struct connection *connection)
{
    struct connection *c = (struct connection *)(uintptr_t)connection;
    return thole_slice_from(c->version[atomic_load(&c->version_at) % 4]);
}

size_t connection_max_payload(const struct connection *connection)
{
    return atomic_load(&((struct connection *)(uintptr_t)connection)->max_payload);
}

bool connection_has_jetstream(const struct connection *connection)
{
    return atomic_load(&((struct connection *)(uintptr_t)connection)->jetstream);
}

uint64_t connection_violations(struct connection *connection, char *ret_text, size_t cap)
{
    pthread_mutex_lock(&connection->lock);
    uint64_t const count = connection->violations;
    (void)snprintf(ret_text, cap, "%s", connection->violation);
    pthread_mutex_unlock(&connection->lock);
    return count;
}

/* ---- links ---- */

struct link *link_acquire(struct connection *connection)
{
    pthread_mutex_lock(&connection->lock);
    struct link *link = connection->current;
    if (link != NULL && link->lost)
        link = NULL;
    if (link != NULL)
        link->refs++;
    assert(link == NULL || link->epoch == connection->last_epoch);
    pthread_mutex_unlock(&connection->lock);
    return link;
}

void link_retain(struct link *link)
{
    pthread_mutex_lock(&link->connection->lock);
    assert(link->refs > 0 || !link->lost);
    link->refs++;
    pthread_mutex_unlock(&link->connection->lock);
}

void link_release(struct link *link)
{
    if (link == NULL)
        return;
    struct connection *connection = link->connection;
    pthread_mutex_lock(&connection->lock);
    assert(link->refs > 0);
    if (--link->refs == 0 && link->lost)
        pthread_cond_broadcast(&connection->changed); /* the keeper destroys it */
    pthread_mutex_unlock(&connection->lock);
}

/* The lock is held. */
static void mark_lost(struct connection *connection, struct link *link)
{
    assert(is_locked(&connection->lock) && link->connection == connection);
    if (link->lost)
        return;
    link->lost = true;
    if (link == connection->current)
        atomic_store(&connection->epoch, 0);
    pthread_cond_broadcast(&connection->changed);
}

void link_break(struct link *link)
{
    pthread_mutex_lock(&link->connection->lock);
    mark_lost(link->connection, link);
    pthread_mutex_unlock(&link->connection->lock);
}

static void tell_trouble(struct connection *connection, enum connection_trouble trouble,
                         const thole_error *error)
{
    assert(error->status != THOLE_OK);
    if (connection->on_trouble != NULL)
        connection->on_trouble(connection->arg, trouble, error);
}

/* ---- nats.c's callbacks ---- */

static void on_disconnected(natsConnection *nc, void *closure)
{
    struct connection *connection = closure;
    pthread_mutex_lock(&connection->lock);
    for (struct link *link = connection->links; link != NULL; link = link->next) {
        if (link->nc == nc)
            mark_lost(connection, link);
    }
    pthread_mutex_unlock(&connection->lock);
}

static void connection_on_closed(natsConnection *nc, void *closure)
{
    struct connection *connection = closure;
    on_disconnected(nc, closure);
    pthread_mutex_lock(&connection->lock);
    connection->closed_owed--;
    pthread_cond_broadcast(&connection->changed);
    pthread_mutex_unlock(&connection->lock);
}

/* natsConnection_GetLastError() hands out nats.c's own 256 bytes, which its reading thread may overwrite with
 * the next error meanwhile (nats.c 3.4, src/conn.c: errStr). They always end with 0, so all that can happen
 * is that the text is partly that of the next error. */
__attribute__((no_sanitize("thread"))) static void copy_last_error(char *to, size_t to_len, const char *from)
{
    size_t n = 0;
    for (; n + 1 < to_len && from[n] != '\0'; n++)
        to[n] = from[n];
    to[n] = '\0';
}

static void on_error(natsConnection *nc, natsSubscription *subscription, natsStatus status, void *closure)
{
    struct connection *connection = closure;
    const char *text = NULL;
    (void)subscription;
    if (status != NATS_NOT_PERMITTED || natsConnection_GetLastError(nc, &text) == NATS_OK || text == NULL)
        return;
    thole_error error = {.status = THOLE_DENIED};
    pthread_mutex_lock(&connection->lock);
    connection->violations++;
    copy_last_error(connection->violation, sizeof connection->violation, text);
    (void)thole_fail(&error, THOLE_DENIED, "the NATS server forbids it: %s", connection->violation);
    pthread_mutex_unlock(&connection->lock);
    tell_trouble(connection, CONNECTION_FORBIDS, &error);
}

/* ---- attachments ---- */

void connection_attach(struct connection *connection, struct attachment *attachment)
{
    pthread_mutex_lock(&connection->turn);
    pthread_mutex_lock(&connection->lock);
    assert(attachment->up != NULL && attachment->down != NULL && attachment->fire != NULL);
    assert(attachment->prev == NULL && attachment->next == NULL && connection->attachments != attachment);
    attachment->due_ms = 0;
    attachment->next = connection->attachments;
    if (attachment->next != NULL)
        attachment->next->prev = attachment;
    connection->attachments = attachment;
    struct link *link = connection->current; /* also a lost one: down() is still called for it */
    if (link != NULL)
        link->refs++;
    pthread_mutex_unlock(&connection->lock);
    if (link != NULL)
        attachment->up(attachment->arg, link);
    link_release(link);
    pthread_mutex_unlock(&connection->turn);
}

void connection_detach(struct connection *connection, struct attachment *attachment)
{
    pthread_mutex_lock(&connection->turn);
    pthread_mutex_lock(&connection->lock);
    assert(attachment->prev != NULL || connection->attachments == attachment);
    if (attachment->prev != NULL)
        attachment->prev->next = attachment->next;
    else
        connection->attachments = attachment->next;
    if (attachment->next != NULL)
        attachment->next->prev = attachment->prev;
    attachment->prev = attachment->next = NULL;
    pthread_mutex_unlock(&connection->lock);
    pthread_mutex_unlock(&connection->turn);
}

void connection_alarm(struct connection *connection, struct attachment *attachment, uint64_t due_ms)
{
    pthread_mutex_lock(&connection->lock);
    bool const sooner = due_ms != 0 && (attachment->due_ms == 0 || due_ms < attachment->due_ms);
    attachment->due_ms = due_ms;
    if (sooner)
        pthread_cond_broadcast(&connection->changed);
    pthread_mutex_unlock(&connection->lock);
}

void connection_alarm_by(struct connection *connection, struct attachment *attachment, uint64_t due_ms)
{
    pthread_mutex_lock(&connection->lock);
    if (attachment->due_ms == 0 || due_ms < attachment->due_ms) {
        attachment->due_ms = due_ms;
        pthread_cond_broadcast(&connection->changed);
    }
    pthread_mutex_unlock(&connection->lock);
}

/* Takes one due alarm off; the lock is held. *ret_next: when the next one is due, 0 = none. */
static struct attachment *due_alarm(struct connection *connection, uint64_t now, uint64_t *ret_next)
{
    *ret_next = 0;
    assert(is_locked(&connection->lock));
    for (struct attachment *at = connection->attachments; at != NULL; at = at->next) {
        if (at->due_ms == 0)
            continue;
        if (at->due_ms <= now) {
            at->due_ms = 0;
            return at;
        }
        if (*ret_next == 0 || at->due_ms < *ret_next)
            *ret_next = at->due_ms;
    }
    return NULL;
}

static void fire_alarms(struct connection *connection)
{
    uint64_t next;
    pthread_mutex_lock(&connection->turn);
    for (;;) {
        pthread_mutex_lock(&connection->lock);
        struct attachment *due = due_alarm(connection, link_now_ms(), &next);
        pthread_mutex_unlock(&connection->lock);
        if (due == NULL)
            break;
        due->fire(due->arg); /* stays attached: detaching needs the turn */
    }
    pthread_mutex_unlock(&connection->turn);
}

/* ---- connecting ---- */

/* The link has no epoch yet, and is in no list. */
static thole_status link_handshake(struct connection *connection, const char *url,
                                   const struct server_info *info, struct link **ret, thole_error *reterr)
{
    char address[NATS_ADDRESS_BYTES] = "";
    (void)nats_url_address(url, address);
    if (natsOptions_SetURL(connection->options, url) != NATS_OK) /* whose text could hold a password */
        return thole_fail(reterr, THOLE_INVALID, "the NATS URL of server %s is malformed", address);
    wall_clock_begin(&connection->wall, clock_wall_ms(), link_now_ms());
    THOLE_TRY(tls_choose(&connection->tls, url, address, info, connection->options, reterr));
    if (connection->login != NULL) /* read each time, so that a password can be replaced while programs run */
        THOLE_TRY(login_again(connection->login, connection->options, reterr));
    struct link *const link = link_create(connection);
    if (link == NULL)
        return thole_fail(reterr, THOLE_NOMEM, "no thread or descriptor for the NATS connection");
    natsStatus status = loop_set_options(link->loop, connection->options);
    if (status == NATS_OK)
        status = natsConnection_Connect(&link->nc, connection->options);
    if (status == NATS_OK) {
        *ret = link;
        return THOLE_OK;
    }
    link_destroy(link);
    return link_explain_connect(status, address, connection->creds, reterr);
}

/* Puts a connected link in place as the next epoch. The turn is held, or there is no keeper yet. */
static void link_install(struct connection *connection, struct link *link, const struct server_info *info)
{
    pthread_mutex_lock(&connection->lock);
    connection->closed_owed++;
    assert(connection->current == NULL);
    unsigned const at = atomic_load(&connection->version_at) + 1;
    (void)snprintf(connection->version[at % 4], SERVER_VERSION_BYTES, "%s", info->version);
    atomic_store(&connection->version_at, at);
    atomic_store(&connection->max_payload, (size_t)info->max_payload);
    atomic_store(&connection->jetstream, info->jetstream);
    link->epoch = ++connection->last_epoch;
    link->next = connection->links;
    assert(link->next == NULL || link->next->epoch < link->epoch); /* the newest is the first */
    connection->links = link;
    connection->current = link;
    atomic_store(&connection->epoch, link->epoch);
    if (natsConnection_IsClosed(link->nc)) /* the callback may have come before the link was in the list */
        mark_lost(connection, link);
    pthread_mutex_unlock(&connection->lock);
}

/* Tries every URL once, beginning after the one used last. */
static thole_status connect_once(struct connection *connection, struct link **ret,
                                 struct server_info *ret_info, thole_error *reterr)
{
    thole_status status = THOLE_UNAVAILABLE;
    assert(connection->urls_len > 0 && connection->url_at < connection->urls_len);
    for (size_t i = 0; i < connection->urls_len; i++) {
        const char *url = connection->urls[connection->url_at];
        connection->url_at = (connection->url_at + 1) % connection->urls_len;
        status = server_info_read(url, connection->connect_timeout_ms, ret_info, reterr);
        int tries = connection->creds && connection->login == NULL ? SIGNED_TRIES : 1;
        if (status == THOLE_OK)
            do
                status = link_handshake(connection, url, ret_info, ret, reterr);
            while (status == THOLE_DENIED && --tries > 0);
        if (status == THOLE_OK)
            return THOLE_OK;
    }
    return status;
}

/* ---- the keeper's thread ---- */

static void connection_tell_state(struct connection *connection, bool connected, uint64_t epoch)
{
    if (connection->on_state != NULL)
        connection->on_state(connection->arg, connected, epoch);
}

static void go_up(struct connection *connection, struct link *link, const struct server_info *info)
{
    pthread_mutex_lock(&connection->turn);
    link_install(connection, link, info);
    for (struct attachment *at = connection->attachments; at != NULL; at = at->next)
        at->up(at->arg, link);
    connection_tell_state(connection, true, link->epoch);
    link_release(link);
    pthread_mutex_unlock(&connection->turn);
}

/* See wall_clock.h and loop_is_stalled(). The lock is held. */
static void look_at_link(struct connection *connection)
{
    unsigned const blocked_max = (unsigned)(connection->request_timeout_ms / LOOK_MS) + 2;
    assert(is_locked(&connection->lock) && connection->current != NULL);
    connection->look_due_ms = link_now_ms() + LOOK_MS;
    if (wall_clock_went_back(&connection->wall, clock_wall_ms(), link_now_ms()) ||
        loop_is_stalled(connection->current->loop, SILENT_LOOKS_MAX, blocked_max))
        mark_lost(connection, connection->current);
}

static void go_down(struct connection *connection)
{
    loop_shut(connection->current->loop); /* requests that wait for an answer end soon */
    pthread_mutex_lock(&connection->turn);
    pthread_mutex_lock(&connection->lock);
    uint64_t const epoch = connection->current->epoch;
    assert(connection->current->lost && epoch == connection->last_epoch);
    assert(atomic_load(&connection->epoch) == 0);
    connection->current = NULL;
    pthread_mutex_unlock(&connection->lock);
    retry_pause_lost(&connection->retry, link_now_ms());
    for (struct attachment *at = connection->attachments; at != NULL; at = at->next)
        at->down(at->arg, epoch);
    connection_tell_state(connection, false, epoch);
    pthread_mutex_unlock(&connection->turn);
}

/* Destroys links that are lost and not in use. The lock is held, and released meanwhile. */
static void connection_reap(struct connection *connection)
{
    struct link **at = &connection->links;
    assert(is_locked(&connection->lock));
    while (*at != NULL) {
        struct link *link = *at;
        if (!link->lost || link->refs > 0 || link == connection->current) {
            at = &link->next;
            continue;
        }
        *at = link->next;
        assert(link->epoch <= connection->last_epoch);
        pthread_mutex_unlock(&connection->lock);
        link_destroy(link);
        pthread_mutex_lock(&connection->lock);
        at = &connection->links;
    }
}

/* ---- subscriptions that are not used any more ---- */

struct retired_subscription {
    struct retired_subscription *next;
    natsSubscription *native;
    uint64_t epoch;
};

void connection_retire(struct connection *connection, natsSubscription *native, uint64_t epoch)
{
    assert(native != NULL && epoch > 0);
    struct retired_subscription *old = memory_new(sizeof *old);
    (void)natsSubscription_Unsubscribe(native);
    *old = (struct retired_subscription){.native = native, .epoch = epoch};
    pthread_mutex_lock(&connection->lock);
    assert(epoch <= connection->last_epoch);
    old->next = connection->retired;
    connection->retired = old;
    if (connection->retired_due_ms == 0) {
        connection->retired_due_ms = link_now_ms() + RETIRED_PAUSE_MS;
        pthread_cond_broadcast(&connection->changed);
    }
    pthread_mutex_unlock(&connection->lock);
}

/* The lock is held. Its thread may still read. */
static bool link_is_there(const struct connection *connection, uint64_t epoch)
{
    for (const struct link *link = connection->links; link != NULL; link = link->next)
        if (link->epoch == epoch)
            return true;
    return false;
}

/* Destroys subscriptions that are certainly unused; keeps the others for the next time. */
static void destroy_retired(struct connection *connection)
{
    struct link *link = link_acquire(connection);
    pthread_mutex_lock(&connection->lock);
    struct retired_subscription *all = connection->retired, *keep = NULL;
    connection->retired = NULL;
    connection->retired_due_ms = 0;
    pthread_mutex_unlock(&connection->lock);
    bool const flushed = link != NULL && natsConnection_FlushTimeout(link->nc, RETIRED_FLUSH_MS) == NATS_OK;
    for (struct retired_subscription *next; all != NULL; all = next) {
        next = all->next;
        pthread_mutex_lock(&connection->lock);
        bool const gone = !link_is_there(connection, all->epoch);
        pthread_mutex_unlock(&connection->lock);
        if (gone || (flushed && all->epoch == link->epoch)) {
            natsSubscription_Destroy(all->native);
            free(all);
        } else {
            all->next = keep;
            keep = all;
        }
    }
    link_release(link);
    pthread_mutex_lock(&connection->lock);
    for (struct retired_subscription *next; keep != NULL; keep = next) {
        next = keep->next;
        keep->next = connection->retired;
        connection->retired = keep;
        connection->retired_due_ms = link_now_ms() + RETIRED_PAUSE_MS;
    }
    pthread_mutex_unlock(&connection->lock);
}

static void try_connect(struct connection *connection)
{
    struct link *link = NULL;
    struct server_info info;
    thole_error error = {.status = THOLE_OK};
    if (connect_once(connection, &link, &info, &error) != THOLE_OK) {
        retry_pause_failed(&connection->retry, link_now_ms());
        tell_trouble(connection, CONNECTION_NOT_MADE, &error);
        return;
    }
    retry_pause_connected(&connection->retry, link_now_ms());
    go_up(connection, link, &info);
}

static void connection_wait_until(struct connection *connection, uint64_t due_ms)
{
    if (due_ms == 0) {
        pthread_cond_wait(&connection->changed, &connection->lock);
        return;
    }
    struct timespec const at = clock_timespec(due_ms);
    (void)pthread_cond_timedwait(&connection->changed, &connection->lock, &at);
}

static void *keeper_main(void *arg)
{
    struct connection *connection = arg;
    (void)pthread_setname_np(pthread_self(), "thole-keeper");
    pthread_mutex_lock(&connection->turn);
    connection_tell_state(connection, true, connection->last_epoch);
    pthread_mutex_unlock(&connection->turn);
    pthread_mutex_lock(&connection->lock);
    while (!connection->stopping) {
        uint64_t const now = link_now_ms();
        uint64_t due = 0;
        connection_reap(connection);
        if (connection->stopping)
            break;
        if (connection->current != NULL && connection->current->lost) {
            pthread_mutex_unlock(&connection->lock);
            go_down(connection);
        } else if (connection->current == NULL && now >= connection->retry.due_ms) {
            pthread_mutex_unlock(&connection->lock);
            try_connect(connection);
        } else if (due_alarm(connection, 0, &due), due != 0 && due <= now) {
            pthread_mutex_unlock(&connection->lock);
            fire_alarms(connection);
        } else if (connection->retired_due_ms != 0 && now >= connection->retired_due_ms) {
            pthread_mutex_unlock(&connection->lock);
            destroy_retired(connection);
        } else if (connection->current != NULL && now >= connection->look_due_ms) {
            look_at_link(connection);
            continue;
        } else {
            if (connection->current == NULL && (due == 0 || connection->retry.due_ms < due))
                due = connection->retry.due_ms;
            if (connection->retired_due_ms != 0 && (due == 0 || connection->retired_due_ms < due))
                due = connection->retired_due_ms;
            if (connection->current != NULL && (due == 0 || connection->look_due_ms < due))
                due = connection->look_due_ms;
            connection_wait_until(connection, due);
            continue;
        }
        pthread_mutex_lock(&connection->lock);
    }
    pthread_mutex_unlock(&connection->lock);
    nats_ReleaseThreadMemory();
    return NULL;
}

/* ---- opening and closing ---- */

static thole_status set_urls(struct connection *connection, const char *text, thole_error *reterr)
{
    size_t len;
    THOLE_TRY(nats_urls_measure(text, &len, reterr));
    connection->url_text = memory_copy(text, len);
    return nats_urls_split(connection->url_text, connection->urls, &connection->urls_len, reterr);
}

static thole_status connection_set_options(struct connection *connection,
                                           const struct connection_options *options, thole_error *reterr)
{
    char nkey[NKEY_PUBLIC_BYTES];
    thole_status const key =
        options->creds == NULL ? THOLE_NOT_FOUND : nkey_public(options->creds, nkey, reterr);
    if (key != THOLE_OK && key != THOLE_NOT_FOUND)
        return key;
    natsOptions **o = &connection->options;
    int64_t const handshake_ms = options->connect_timeout_ms > HANDSHAKE_MS_MIN
                                     ? (int64_t)options->connect_timeout_ms
                                     : HANDSHAKE_MS_MIN;
    struct thread_name const own = link_name_begin("nats-library"); /* timers, callbacks, destruction */
    natsStatus status = natsOptions_Create(o);
    link_name_end(&own);
#define SET(call) status = status == NATS_OK ? (call) : status
    SET(natsOptions_SetSendAsap(*o, true)); /* no thread of nats.c's that flushes */
    SET(natsOptions_SetAllowReconnect(*o, false));
    SET(natsOptions_SetReconnectBufSize(*o, 0));
    SET(natsOptions_SetTimeout(*o, handshake_ms));
    SET(natsOptions_SetPingInterval(*o, PING_INTERVAL_MS));
    SET(natsOptions_SetMaxPingsOut(*o, INT_MAX)); /* nats.c must not close the socket while it is read */
    SET(natsOptions_SetDisconnectedCB(*o, on_disconnected, connection));
    SET(natsOptions_SetClosedCB(*o, connection_on_closed, connection));
    SET(natsOptions_SetErrorHandler(*o, on_error, connection));
    SET(natsOptions_SetCustomInboxPrefix(*o, connection->inbox));
    if (options->name != NULL)
        SET(natsOptions_SetName(*o, options->name));
    thole_status login = THOLE_NOT_FOUND;
    if (options->creds != NULL && key == THOLE_NOT_FOUND && status == NATS_OK)
        login = login_set(options->creds, *o, reterr);
    if (login != THOLE_OK && login != THOLE_NOT_FOUND)
        return login;
    if (login == THOLE_OK) {
        THOLE_TRY(login_alone(options->creds, connection->urls, connection->urls_len, reterr));
        connection->login = memory_text(options->creds);
    }
    if (options->creds != NULL && login == THOLE_NOT_FOUND)
        SET(key == THOLE_OK ? natsOptions_SetNKeyFromSeed(*o, nkey, options->creds)
                            : natsOptions_SetUserCredentialsFromFiles(*o, options->creds, NULL));
#undef SET
    return link_fail(status, "NATS connection", "options", reterr);
}

static struct connection *connection_create(const struct connection_options *options)
{
    struct connection *connection = memory_new(sizeof *connection);
    pthread_mutex_init(&connection->turn, NULL);
    pthread_mutex_init(&connection->lock, NULL);
    clock_condition_init(&connection->changed);
    connection->connect_timeout_ms = options->connect_timeout_ms;
    connection->request_timeout_ms = options->request_timeout_ms;
    connection->on_state = options->on_state;
    connection->on_trouble = options->on_trouble;
    connection->waiting = options->waiting;
    connection->arg = options->arg;
    connection->creds = options->creds != NULL;
    api_prefix_copy(options->api_prefix, connection->api_prefix);
    retry_pause_begin(&connection->retry, options->lost_pause_max_ms,
                      (uint64_t)(uintptr_t)connection ^ link_now_ms() << 20);
    return connection;
}

/* Waits until every natsConnection's closed callback has run, then destroys them. */
static void close_links(struct connection *connection)
{
    pthread_mutex_lock(&connection->lock);
    connection->current = NULL;
    atomic_store(&connection->epoch, 0);
    for (struct link *link = connection->links; link != NULL; link = link->next) {
        assert(link->refs == 0); /* a call on the connection is still running */
        link->lost = true;
        loop_shut(link->loop);
    }
    connection_reap(connection);
    while (connection->closed_owed > 0)
        pthread_cond_wait(&connection->changed, &connection->lock);
    pthread_mutex_unlock(&connection->lock);
}

static void connection_free(struct connection *connection)
{
    close_links(connection);
    assert(connection->links == NULL && connection->current == NULL && connection->closed_owed == 0);
    assert(connection->attachments == NULL);
    while (connection->retired != NULL) { /* all reading threads have ended */
        struct retired_subscription *old = connection->retired;
        connection->retired = old->next;
        natsSubscription_Destroy(old->native);
        free(old);
    }
    link_messages_free_rest();
    natsOptions_Destroy(connection->options);
    tls_files_release(&connection->tls);
    free(connection->login);
    pthread_cond_destroy(&connection->changed);
    pthread_mutex_destroy(&connection->lock);
    pthread_mutex_destroy(&connection->turn);
    free(connection->url_text);
    free(connection);
}

static thole_status connect_first(struct connection *connection, thole_error *reterr)
{
    struct link *link = NULL;
    struct server_info info;
    THOLE_TRY(connect_once(connection, &link, &info, reterr));
    connection->retry.connected_ms = link_now_ms();
    link_install(connection, link, &info);
    thole_status const hears =
        link_check_inbox(link, connection->inbox, connection->connect_timeout_ms, reterr);
    link_release(link);
    THOLE_TRY(hears);
    int const failed = pthread_create(&connection->keeper, NULL, keeper_main, connection);
    if (failed != 0)
        return thole_fail(reterr, THOLE_NOMEM, "no thread for the NATS connection: %s", strerror(failed));
    return THOLE_OK;
}

thole_status connection_open(const struct connection_options *options, struct connection **ret,
                             thole_error *reterr)
{
    if (options->connect_timeout_ms == 0 || options->request_timeout_ms == 0)
        return thole_fail(reterr, THOLE_INVALID, "connect and request timeouts must be above 0 ms");
    if (options->creds != NULL && access(options->creds, R_OK) != 0)
        return thole_fail(reterr, THOLE_INVALID, "NATS credentials file %s cannot be read: %s",
                          options->creds, strerror(errno));
    const char *const prefix = options->inbox == NULL ? INBOX_PREFIX_DEFAULT : options->inbox;
    THOLE_TRY(inbox_prefix_check(prefix, reterr));
    THOLE_TRY(api_prefix_check(options->api_prefix, reterr));
    struct connection *connection = connection_create(options);
    thole_status status = inbox_of_connection(prefix, connection->inbox, reterr);
    if (status == THOLE_OK)
        status = set_urls(connection, options->url, reterr);
    if (status == THOLE_OK)
        status = tls_files_copy(options, &connection->tls, reterr);
    if (status == THOLE_OK)
        status = connection_set_options(connection, options, reterr);
    if (status == THOLE_OK)
        status = connect_first(connection, reterr);
    if (status != THOLE_OK) {
        connection_free(connection);
        return status;
    }
    *ret = connection;
    return THOLE_OK;
}

void connection_close(struct connection *connection)
{
    if (connection == NULL)
        return;
    assert(connection->attachments == NULL); /* windows, readers, … are closed first */
    pthread_mutex_lock(&connection->lock);
    connection->stopping = true;
    pthread_cond_broadcast(&connection->changed);
    pthread_mutex_unlock(&connection->lock);
    pthread_join(connection->keeper, NULL);
    connection_free(connection);
}
