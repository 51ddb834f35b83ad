#include "membership.h"
#include "engine.h"
#include "memory.h"
#include "message.h"
#include "nodes.h"
#include "ownership.h"
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    HEARTBEAT_BYTES_MAX = 512 * 1024,
    NODES_MAX = 1024,
    PUT_RETRY_MS = 200,
    PUT_WARN_EVERY_MS = 10000,
    HANDOVER_MS = 250, /* for a live owner to hand a partition over, before the next owner fences it */
};

struct node { /* a live node by its last heartbeat */
    struct arena arena;
    struct heartbeat heartbeat;
    /* when the heartbeat was received; when it was stored, by the server's clock */
    uint64_t seen_ms, stored_ns;
};

struct node_mail {
    struct mail mail;
    uint64_t seen_ms, stored_ns;
    size_t node_len, bytes_len; /* bytes_len 0: the node has left */
    uint8_t bytes[];            /* node, then its heartbeat */
};

struct membership {
    struct engine_host *engine;
    pthread_t thread;
    bool running;
    struct mailbox mailbox;
    struct nodes_watch *watch;
    struct node *nodes[NODES_MAX];
    size_t nodes_len;
    uint64_t self_seen_ms, self_stored_ns;          /* of the last own heartbeat that was received */
    uint64_t started_ms, next_put_ms, confirmed_ms; /* monotonic but started_ms */
    uint64_t put_failed_ms, put_warned_ms;          /* monotonic; start of the current failure, 0 = none */
    atomic_bool needs_changed;
    bool *mine;                               /* by partition */
    char (*owners)[THOLE_NAME_BYTES_MAX + 1]; /* by the last computation; "" = unknown */
    struct buf body;
};

static uint64_t ttl_ms(const struct membership *m)
{
    return m->engine->topology.nodes_ttl_ms;
}

static thole_slice self(const struct membership *m)
{
    return thole_slice_from(m->engine->options.node);
}

/* ---- the view ---- */

static void node_destroy(struct node *node)
{
    if (node == NULL)
        return;
    arena_release(&node->arena);
    free(node);
}

static size_t find_node(const struct membership *m, thole_slice name)
{
    size_t i = 0;
    while (i < m->nodes_len && !thole_slice_equal(m->nodes[i]->heartbeat.node, name))
        i++;
    return i;
}

static void remove_node(struct membership *m, size_t i)
{
    assert(i < m->nodes_len && m->nodes_len <= NODES_MAX);
    node_destroy(m->nodes[i]);
    m->nodes[i] = m->nodes[--m->nodes_len];
}

/* A line of the log about nodes. */
#define NODES_LINE(m, kind, ...)                                                                             \
    log_limits_line((m)->engine->lines, clock_monotonic_ms(), kind, LOG_NO_PARTITION, __VA_ARGS__)

static struct node *decode_node(struct membership *m, const struct node_mail *mail)
{
    struct node *node = memory_new(sizeof *node);
    thole_error err = {0};
    arena_init(&node->arena, 4 * HEARTBEAT_BYTES_MAX);
    thole_slice const name = {mail->bytes, mail->node_len};
    thole_status status = heartbeat_decode((thole_slice){mail->bytes + mail->node_len, mail->bytes_len},
                                           &node->arena, &node->heartbeat, &err);
    if (status == THOLE_OK && !thole_slice_equal(node->heartbeat.node, name))
        status = thole_fail(&err, THOLE_CORRUPT, "key and heartbeat name different nodes");
    if (status != THOLE_OK) {
        NODES_LINE(m, LINE_HEARTBEAT_IGNORED, "heartbeat of node %.*s ignored: %s", THOLE_FMT(name),
                   err.text);
        node_destroy(node);
        return NULL;
    }
    node->seen_ms = mail->seen_ms;
    node->stored_ns = mail->stored_ns;
    return node;
}

/* An entry that was stored before the own heartbeat is older by the difference of the server's times. That
 * matters for entries that existed when watching began: a dead node's entry must not count as a current
 * heartbeat. */
static void age(const struct membership *m, struct node *node)
{
    if (node->stored_ns >= m->self_stored_ns)
        return;
    uint64_t const older_ms = (m->self_stored_ns - node->stored_ns) / 1000000;
    uint64_t const seen_ms = older_ms < m->self_seen_ms ? m->self_seen_ms - older_ms : 0;
    if (seen_ms < node->seen_ms)
        node->seen_ms = seen_ms;
}

/* Other nodes' entries are aged only when this node joins: a later change of the server's clock must not make
 * them dead. */
static void heard_self(struct membership *m, const struct node *node, bool known)
{
    if (node->heartbeat.started_ms != m->started_ms)
        return; /* of an earlier process with the same name */
    bool const joined = !known || m->self_stored_ns == 0;
    m->self_seen_ms = node->seen_ms;
    m->self_stored_ns = node->stored_ns;
    for (size_t i = 0; joined && i < m->nodes_len; i++)
        age(m, m->nodes[i]);
}

static void heard(struct membership *m, const struct node_mail *mail)
{
    thole_slice const name = {mail->bytes, mail->node_len};
    size_t const i = find_node(m, name);
    struct node *node = mail->bytes_len == 0 ? NULL : decode_node(m, mail);
    if (node == NULL && mail->bytes_len > 0)
        return;
    bool const known = i < m->nodes_len;
    if (known != (node != NULL))
        NODES_LINE(m, known ? LINE_NODE_LEFT : LINE_NODE_JOINED, "node %.*s %s", THOLE_FMT(name),
                   known ? "left" : "joined");
    if (known)
        remove_node(m, i);
    if (node == NULL)
        return;
    if (m->nodes_len == NODES_MAX) {
        NODES_LINE(m, LINE_NODES_TOO_MANY, "more than %d nodes: one is ignored", NODES_MAX);
        node_destroy(node);
        return;
    }
    m->nodes[m->nodes_len++] = node;
    if (thole_slice_equal(name, self(m)))
        heard_self(m, node, known);
    else
        age(m, node);
}

static void expire(struct membership *m, uint64_t now_ms)
{
    for (size_t i = 0; i < m->nodes_len;) {
        if (now_ms < m->nodes[i]->seen_ms + ttl_ms(m)) {
            i++;
            continue;
        }
        NODES_LINE(m, LINE_NODE_GONE, "node %.*s is gone: no heartbeat for %llu ms",
                   THOLE_FMT(m->nodes[i]->heartbeat.node), (unsigned long long)ttl_ms(m));
        remove_node(m, i);
    }
}

static void on_node(void *arg, thole_slice node, thole_slice heartbeat, uint64_t stored_ns)
{
    struct membership *m = arg;
    struct node_mail *mail = malloc(sizeof *mail + node.len + heartbeat.len);
    if (mail == NULL)
        return; /* the next heartbeat will replace it */
    mail->seen_ms = clock_monotonic_ms();
    mail->stored_ns = stored_ns;
    mail->node_len = node.len;
    mail->bytes_len = heartbeat.len;
    if (node.len > 0)
        memcpy(mail->bytes, node.ptr, node.len);
    if (heartbeat.len > 0)
        memcpy(mail->bytes + node.len, heartbeat.ptr, heartbeat.len);
    mailbox_push(&m->mailbox, &mail->mail);
}

/* ---- the own heartbeat ---- */

static struct node_view view_of(const struct node *node)
{
    return (struct node_view){node->heartbeat.node, node->heartbeat.orchestrations,
                              node->heartbeat.orchestrations_len};
}

static bool all_know(const struct membership *m, thole_slice name)
{
    for (size_t i = 0; i < m->nodes_len; i++) {
        struct node_view const view = view_of(m->nodes[i]);
        if (!node_knows(&view, &name, 1))
            return false;
    }
    return true;
}

/* Heartbeats have only names that some live node does not know: usually none. */
static size_t collect_needs(struct membership *m, struct arena *arena, struct partition_needs **ret)
{
    struct engine_host *engine = m->engine;
    size_t len = 0;
    struct partition_needs *needs = arena_array(arena, engine->topology.partitions, sizeof *needs);
    *ret = needs;
    pthread_mutex_lock(&engine->needs_lock);
    for (uint32_t p = 0; needs != NULL && p < engine->topology.partitions; p++) {
        const struct needs *have = &engine->needs[p];
        thole_slice *names = arena_array(arena, have->names_len, sizeof *names);
        size_t n = 0;
        for (size_t i = 0; names != NULL && i < have->names_len; i++)
            if (!all_know(m, have->names[i]) && arena_dup(arena, have->names[i], &names[n]) == THOLE_OK)
                n++;
        if (n > 0)
            needs[len++] = (struct partition_needs){p, names, n};
    }
    pthread_mutex_unlock(&engine->needs_lock);
    return len;
}

/* As partition_live_names() returns them: "name", or "name@version" for versions above 1. */
static thole_status live_name(const thole_orchestration_entry *entry, struct arena *arena, thole_slice *ret)
{
    char text[THOLE_NAME_BYTES_MAX + 16];
    if (entry->version <= 1)
        return arena_dup(arena, thole_slice_from(entry->name), ret);
    (void)snprintf(text, sizeof text, "%s@%" PRIu32, entry->name, entry->version);
    return arena_dup(arena, thole_slice_from(text), ret);
}

static thole_status encode_self(struct membership *m)
{
    const thole_program *program = m->engine->program;
    struct arena arena;
    arena_init(&arena, 4 * HEARTBEAT_BYTES_MAX);
    thole_slice *names = arena_array(&arena, program->orchestrations_len, sizeof *names);
    thole_status status = names == NULL ? THOLE_NOMEM : THOLE_OK;
    if (status == THOLE_OK) {
        struct partition_needs *needs;
        for (size_t i = 0; i < program->orchestrations_len && status == THOLE_OK; i++)
            status = live_name(&program->orchestrations[i], &arena, &names[i]);
        struct heartbeat heartbeat = {.node = self(m),
                                      .started_ms = m->started_ms,
                                      .orchestrations = names,
                                      .orchestrations_len = program->orchestrations_len};
        heartbeat.needs_len = collect_needs(m, &arena, &needs);
        heartbeat.needs = needs;
        buf_clear(&m->body);
        if (status == THOLE_OK)
            status = heartbeat_encode(&heartbeat, &m->body);
    }
    arena_release(&arena);
    return status;
}

/* A name that every live node knows changes no owner, and is not in heartbeats. */
static bool needs_are_news(struct membership *m)
{
    struct arena arena;
    struct partition_needs *needs;
    arena_init(&arena, 4 * HEARTBEAT_BYTES_MAX);
    bool const news = collect_needs(m, &arena, &needs) > 0;
    arena_release(&arena);
    return news;
}

/* While NATS is not reachable it is retried several times a second: logged at once, then every 10 s. */
static void note_put(struct membership *m, thole_status status, const thole_error *err)
{
    uint64_t const now_ms = clock_monotonic_ms();
    if (status == THOLE_OK) {
        if (m->put_failed_ms != 0)
            log_line(LOG_LEVEL_INFO, "membership", "heartbeat stored again after %llu ms",
                     (unsigned long long)(now_ms - m->put_failed_ms));
        m->put_failed_ms = m->put_warned_ms = 0;
        return;
    }
    if (m->put_failed_ms == 0)
        m->put_failed_ms = now_ms;
    if (m->put_warned_ms != 0 && now_ms - m->put_warned_ms < PUT_WARN_EVERY_MS)
        return;
    m->put_warned_ms = now_ms;
    log_line(LOG_LEVEL_WARN, "membership", "heartbeat not stored, trying again: %s", err->text);
}

static void put(struct membership *m)
{
    thole_error err = {0};
    uint64_t const before = clock_monotonic_ms();
    thole_status status = encode_self(m);
    if (status == THOLE_OK)
        status = nodes_put(m->engine->connection, m->engine->topology.ns, self(m), buf_bytes(&m->body), &err);
    if (status == THOLE_OK)
        m->confirmed_ms = before;
    note_put(m, status, &err);
    m->next_put_ms =
        clock_monotonic_ms() + (status == THOLE_OK ? m->engine->options.heartbeat_ms : PUT_RETRY_MS);
}

/* ---- ownership ---- */

/* A node whose own heartbeat is not confirmed owns nothing: others may take over. */
static bool confirmed(const struct membership *m, uint64_t now_ms)
{
    uint64_t const margin = ttl_ms(m) / 10;
    return m->confirmed_ms != 0 && now_ms + margin < m->confirmed_ms + ttl_ms(m) &&
           find_node(m, self(m)) < m->nodes_len;
}

static size_t needs_of(const struct membership *m, uint32_t p, thole_slice *names, size_t cap)
{
    size_t n = 0;
    for (size_t i = 0; i < m->nodes_len; i++)
        for (size_t k = 0; k < m->nodes[i]->heartbeat.needs_len; k++) {
            const struct partition_needs *needs = &m->nodes[i]->heartbeat.needs[k];
            for (size_t j = 0; needs->partition == p && j < needs->orchestrations_len && n < cap; j++)
                names[n++] = needs->orchestrations[j];
        }
    return n;
}

static void tell(struct membership *m, uint32_t p, bool own, uint64_t since_ms)
{
    struct shard *shard = &m->engine->shards[p % m->engine->shards_len];
    struct shard_mail *mail = shard_mail_create(own ? SHARD_OWN : SHARD_DISOWN, p, sizeof *mail);
    mail->since_ms = since_ms;
    shard_send(shard, mail);
}

static void settle(struct membership *m, uint32_t p, bool mine, uint64_t now_ms)
{
    assert(p < m->engine->topology.partitions);
    if (mine == m->mine[p])
        return;
    thole_slice const before = thole_slice_from(m->owners[p]);
    bool const alive =
        before.len > 0 && !thole_slice_equal(before, self(m)) && find_node(m, before) < m->nodes_len;
    bool const unknown = before.len == 0 && m->nodes_len > 1;
    m->mine[p] = mine;
    tell(m, p, mine, alive || unknown ? now_ms + HANDOVER_MS : now_ms);
}

static void compute(struct membership *m, uint64_t now_ms)
{
    struct node_view views[NODES_MAX];
    thole_slice needs[64];
    bool const valid = confirmed(m, now_ms);
    for (size_t i = 0; i < m->nodes_len; i++)
        views[i] = view_of(m->nodes[i]);
    for (uint32_t p = 0; p < m->engine->topology.partitions; p++) {
        size_t const needs_len = needs_of(m, p, needs, sizeof needs / sizeof needs[0]);
        size_t const owner = ownership_of(p, views, m->nodes_len, needs, needs_len);
        if (!valid || owner == SIZE_MAX) {
            settle(m, p, false, now_ms);
            continue;
        }
        settle(m, p, m->engine->options.own_all || thole_slice_equal(views[owner].node, self(m)), now_ms);
        memset(m->owners[p], 0, sizeof m->owners[p]);
        memcpy(m->owners[p], views[owner].node.ptr, views[owner].node.len);
    }
}

static uint64_t next_deadline(struct membership *m)
{
    uint64_t const told = log_limits_rest(m->engine->lines, clock_monotonic_ms());
    uint64_t deadline = m->next_put_ms < told ? m->next_put_ms : told;
    for (size_t i = 0; i < m->nodes_len; i++)
        if (m->nodes[i]->seen_ms + ttl_ms(m) < deadline)
            deadline = m->nodes[i]->seen_ms + ttl_ms(m);
    return deadline;
}

/* ---- the thread ---- */

static void take_mails(struct membership *m)
{
    for (struct mail *mail = mailbox_take_all(&m->mailbox), *next; mail != NULL; mail = next) {
        next = mail->next;
        struct node_mail *node = (struct node_mail *)mail;
        if (node->node_len > 0) /* an empty mail only wakes the thread */
            heard(m, node);
        free(node);
    }
}

static void *membership_main(void *arg)
{
    struct membership *m = arg;
    (void)pthread_setname_np(pthread_self(), "thole-members");
    while (!mailbox_is_closed(&m->mailbox)) {
        take_mails(m);
        if (atomic_exchange(&m->needs_changed, false) && needs_are_news(m))
            m->next_put_ms = 0;
        if (clock_monotonic_ms() >= m->next_put_ms) {
            put(m);
            take_mails(m); /* a slow server must not make other nodes look dead */
        }
        uint64_t const now = clock_monotonic_ms();
        expire(m, now);
        compute(m, now);
        (void)mailbox_wait(&m->mailbox, next_deadline(m));
    }
    return NULL;
}

void membership_needs_changed(struct membership *m)
{
    atomic_store(&m->needs_changed, true);
    on_node(m, (thole_slice){0}, (thole_slice){0}, 0);
}

struct membership *membership_create(struct engine_host *engine)
{
    struct membership *m = memory_new(sizeof *m);
    mailbox_init(&m->mailbox);
    m->engine = engine;
    m->started_ms = clock_wall_ms();
    buf_init(&m->body, HEARTBEAT_BYTES_MAX);
    m->mine = memory_array(engine->topology.partitions, sizeof *m->mine);
    m->owners = memory_array(engine->topology.partitions, sizeof *m->owners);
    return m;
}

thole_status membership_run(struct membership *m, thole_error *reterr)
{
    THOLE_TRY(nodes_watch_open(m->engine->connection, m->engine->topology.ns, on_node, m, &m->watch, reterr));
    m->running = pthread_create(&m->thread, NULL, membership_main, m) == 0;
    return m->running ? THOLE_OK : thole_fail(reterr, THOLE_NOMEM, "cannot start the membership's thread");
}

void membership_quiet(struct membership *m)
{
    if (m == NULL || !m->running)
        return;
    mailbox_close(&m->mailbox);
    pthread_join(m->thread, NULL);
    m->running = false;
}

void membership_stop(struct membership *m)
{
    if (m == NULL)
        return;
    thole_error err = {0};
    membership_quiet(m);
    nodes_watch_close(m->watch);
    if (m->confirmed_ms != 0 &&
        nodes_delete(m->engine->connection, m->engine->topology.ns, self(m), &err) != THOLE_OK)
        log_line(LOG_LEVEL_WARN, "membership", "could not say goodbye: %s", err.text);
    for (struct mail *mail = mailbox_take_all(&m->mailbox), *next; mail != NULL; mail = next) {
        next = mail->next;
        free(mail);
    }
    while (m->nodes_len > 0)
        remove_node(m, 0);
    mailbox_release(&m->mailbox);
    buf_release(&m->body);
    free(m->mine);
    free(m->owners);
    free(m);
}
