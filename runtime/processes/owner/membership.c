#include "membership.h"
#include "engine.h"
#include "engine_clock.h"
#include "memory.h"
#include "message.h"
#include "name_difference.h"
#include "nodes.h"
#include "ownership.h"
#include "presence.h"
#include "shares.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    PUT_RETRY_MS = 200,
    PUT_WARN_EVERY_MS = 10000,
    SETTLE_MS = 1000, /* at most, for who has a heartbeat to answer, before this engine joins */
    OTHER_CODE_BYTES = 600,
    HANDOVER_MS = 250, /* for a live owner to hand a partition over, before the next owner fences it */
};

enum node_mail_kind { MAIL_WAKE, MAIL_CLOCK, MAIL_HEARTBEAT, MAIL_ANSWER, MAIL_OPENED };

struct node_mail {
    struct mail mail;
    enum node_mail_kind kind;
    uint32_t p; /* OPENED */
    uint64_t seen_ms, stored_ns;
    size_t node_len, bytes_len; /* HEARTBEAT: 0: it was removed; ANSWER: the hash, 0: no engine answers */
    uint8_t bytes[];            /* node, then its heartbeat or hash */
};

struct membership {
    struct engine_host *engine;
    pthread_t thread;
    bool running;
    struct mailbox mailbox;
    struct nodes_watch *watch;
    struct presence *presence;
    struct live_nodes *live;
    struct shares *shares;
    bool joined, answering;
    uint64_t settle_by_ms;                          /* monotonic; 0: not yet */
    uint64_t started_ms, next_put_ms, confirmed_ms; /* monotonic but started_ms */
    uint64_t put_failed_ms, put_warned_ms;          /* monotonic; start of the current failure, 0 = none */
    uint64_t computing_ms;                          /* the time for which owners are computed */
    atomic_bool needs_changed;
    struct buf body;
    struct metric_cells *cells; /* of its thread; NULL: nothing is counted */
};

static uint64_t ttl_ms(const struct membership *m)
{
    return m->engine->topology.nodes_ttl_ms;
}

static thole_slice membership_own_node(const struct membership *m)
{
    return thole_slice_from(m->engine->options.node);
}

/* ---- callbacks of the pure parts ---- */

/* A line of the log about nodes. */
#define NODES_LINE(m, kind, fields, ...)                                                                     \
    log_limits_line((m)->engine->lines, clock_monotonic_ms(), kind, fields, __VA_ARGS__)

static bool membership_on_ask(void *arg, thole_slice node)
{
    struct membership *const m = arg;
    return presence_ask(m->presence, node, NULL) == THOLE_OK; /* note_put() says that NATS is away */
}

/* As partition_live_names() returns them: "name", or "name@version" for versions above 1. */
static thole_status membership_live_name(const thole_orchestration_entry *entry, struct arena *arena,
                                         thole_slice *ret)
{
    char text[THOLE_NAME_BYTES_MAX + 16];
    if (entry->version <= 1)
        return arena_dup(arena, thole_slice_from(entry->name), ret);
    (void)snprintf(text, sizeof text, "%s@%" PRIu32, entry->name, entry->version);
    return arena_dup(arena, thole_slice_from(text), ret);
}

/* All engines of a namespace must have the same orchestrations: what an owner lacks waits. During an upgrade
 * they differ for a while. */
static void say_other_code(struct membership *m, thole_slice node)
{
    const struct member *const member = live_find(m->live, node);
    const thole_program *const program = m->engine->program;
    struct arena arena;
    struct buf mine, theirs;
    arena_init(&arena, HEARTBEAT_BYTES_MAX);
    thole_slice *const names = arena_array(&arena, program->orchestrations_len, sizeof *names);
    thole_status status = names == NULL ? THOLE_NOMEM : THOLE_OK;
    for (size_t i = 0; i < program->orchestrations_len && status == THOLE_OK; i++)
        status = membership_live_name(&program->orchestrations[i], &arena, &names[i]);
    struct name_list const here = {names, program->orchestrations_len};
    buf_init(&mine, OTHER_CODE_BYTES);
    buf_init(&theirs, OTHER_CODE_BYTES);
    if (status == THOLE_OK && member != NULL) {
        struct name_list const there = {member->heartbeat.orchestrations,
                                        member->heartbeat.orchestrations_len};
        size_t const lacking = name_list_lacking(&here, &there, &mine);
        size_t const more = name_list_lacking(&there, &here, &theirs);
        if (lacking + more > 0)
            NODES_LINE(m, LINE_OTHER_CODE, NULL,
                       "engine %.*s has other orchestrations than this one: it lacks %s, and this one lacks "
                       "%s. All engines of a namespace must have the same: instances of those that the owner "
                       "of a partition lacks wait. Give each program a namespace of its own, or finish the "
                       "upgrade",
                       THOLE_FMT(node), lacking == 0 ? "none" : buf_cstr(&mine),
                       more == 0 ? "none" : buf_cstr(&theirs));
    }
    buf_release(&mine);
    buf_release(&theirs);
    arena_release(&arena);
}

static void on_say(void *arg, enum live_line line, thole_slice node, const char *why)
{
    struct membership *const m = arg;
    unsigned long long const ttl = ttl_ms(m);
    switch (line) {
    case LIVE_JOINED:
        NODES_LINE(m, LINE_NODE_JOINED, NULL, "node %.*s joined", THOLE_FMT(node));
        say_other_code(m, node);
        break;
    case LIVE_LEFT: NODES_LINE(m, LINE_NODE_LEFT, NULL, "node %.*s left", THOLE_FMT(node)); break;
    case LIVE_GONE:
        NODES_LINE(m, LINE_NODE_GONE, NULL, "node %.*s is gone: no heartbeat for %llu ms", THOLE_FMT(node),
                   ttl);
        break;
    case LIVE_SILENT:
        NODES_LINE(m, LINE_NODE_SILENT, NULL, "node %.*s does not answer for %llu ms: it owns nothing",
                   THOLE_FMT(node), ttl);
        break;
    case LIVE_ABSENT:
        NODES_LINE(m, LINE_NODE_ABSENT, NULL,
                   "node %.*s has a heartbeat and does not answer: it owns nothing. If it has not just died, "
                   "another program writes to the bucket THOLE_%s_NODES",
                   THOLE_FMT(node), m->engine->topology.ns);
        break;
    case LIVE_IGNORED:
        NODES_LINE(m, LINE_HEARTBEAT_IGNORED, NULL, "heartbeat of node %.*s ignored: %s", THOLE_FMT(node),
                   why);
        break;
    case LIVE_FULL:
        NODES_LINE(m, LINE_NODES_TOO_MANY, NULL, "more than %d nodes: one is ignored", LIVE_MAX);
        break;
    }
}

static void membership_on_ownership(void *arg, uint32_t p, bool own, bool wait)
{
    struct membership *const m = arg;
    struct shard *const shard = &m->engine->shards[p % m->engine->shards_len];
    struct shard_mail *const mail = shard_mail_create(own ? SHARD_OWN : SHARD_DISOWN, p, sizeof *mail);
    mail->since_ms = wait ? m->computing_ms + HANDOVER_MS : m->computing_ms;
    shard_send(shard, mail);
}

static void on_not_opened(void *arg, uint32_t p, const char *node)
{
    struct membership *const m = arg;
    NODES_LINE(m, LINE_NOT_OPENED, LOG_PARTITION(p),
               "node %s has not opened it within %llu ms: another one gets it", node,
               (unsigned long long)ttl_ms(m));
}

/* ---- mails ---- */

static void membership_send(struct membership *m, const struct node_mail *about, thole_slice node,
                            thole_slice bytes)
{
    struct node_mail *const mail = malloc(sizeof *mail + node.len + bytes.len);
    if (mail == NULL)
        return; /* a heartbeat and a question are repeated; what was not seen opened is taken back */
    *mail = *about;
    mail->seen_ms = clock_monotonic_ms();
    mail->node_len = node.len;
    mail->bytes_len = bytes.len;
    if (node.len > 0)
        memcpy(mail->bytes, node.ptr, node.len);
    if (bytes.len > 0)
        memcpy(mail->bytes + node.len, bytes.ptr, bytes.len);
    mailbox_push(&m->mailbox, &mail->mail);
}

static void membership_on_node(void *arg, thole_slice node, thole_slice heartbeat, uint64_t stored_ns)
{
    membership_send(arg, &(struct node_mail){.kind = MAIL_HEARTBEAT, .stored_ns = stored_ns}, node,
                    heartbeat);
}

static void membership_on_answer(void *arg, thole_slice node, thole_slice hash)
{
    membership_send(arg, &(struct node_mail){.kind = MAIL_ANSWER}, node, hash);
}

void membership_opened(struct membership *m, uint32_t p, thole_slice node)
{
    membership_send(m, &(struct node_mail){.kind = MAIL_OPENED, .p = p}, node, (thole_slice){NULL, 0});
}

void membership_needs_changed(struct membership *m)
{
    atomic_store(&m->needs_changed, true);
    membership_send(m, &(struct node_mail){.kind = MAIL_WAKE}, (thole_slice){NULL, 0},
                    (thole_slice){NULL, 0});
}

void membership_clock_changed(struct membership *m)
{
    if (m != NULL)
        membership_send(m, &(struct node_mail){.kind = MAIL_CLOCK}, (thole_slice){NULL, 0},
                        (thole_slice){NULL, 0});
}

static void put_soon(struct membership *m)
{
    uint64_t const soon_ms = clock_monotonic_ms() + PUT_RETRY_MS;
    if (soon_ms < m->next_put_ms)
        m->next_put_ms = soon_ms;
}

static void membership_take_answer(struct membership *m, thole_slice node, thole_slice hash, uint64_t seen_ms)
{
    const struct member *const before = live_find(m->live, node);
    live_answered(m->live, node, hash, seen_ms);
    if (live_find(m->live, node) != before)
        atomic_store(&m->needs_changed, true); /* the new engine may not know all needed orchestrations */
}

static void membership_take_mail(struct membership *m, const struct node_mail *mail)
{
    thole_slice const node = {mail->bytes, mail->node_len},
                      bytes = {mail->bytes + mail->node_len, mail->bytes_len};
    switch (mail->kind) {
    case MAIL_WAKE: break;
    case MAIL_CLOCK: m->next_put_ms = 0; break;
    case MAIL_HEARTBEAT:
        if (live_heard(m->live, &(struct live_entry){node, bytes, mail->stored_ns, mail->seen_ms}))
            put_soon(m);
        break;
    case MAIL_ANSWER: membership_take_answer(m, node, bytes, mail->seen_ms); break;
    case MAIL_OPENED: shares_opened(m->shares, m->live, mail->p, node); break;
    }
}

static void take_mails(struct membership *m)
{
    for (struct mail *mail = mailbox_take_all(&m->mailbox), *next; mail != NULL; mail = next) {
        next = mail->next;
        membership_take_mail(m, (struct node_mail *)mail);
        free(mail);
    }
}

/* ---- the own heartbeat ---- */

static bool all_know(const struct membership *m, thole_slice name)
{
    const struct member *there[LIVE_MAX];
    size_t const len = live_there(m->live, there);
    for (size_t i = 0; i < len; i++) {
        const struct heartbeat *const heartbeat = &there[i]->heartbeat;
        struct node_view const view = {heartbeat->node, heartbeat->orchestrations,
                                       heartbeat->orchestrations_len};
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
            status = membership_live_name(&program->orchestrations[i], &arena, &names[i]);
        struct heartbeat heartbeat = {.node = membership_own_node(m),
                                      .started_ms = m->started_ms,
                                      .orchestrations = names,
                                      .orchestrations_len = program->orchestrations_len,
                                      .takes_results = true,
                                      .reads_ranges = true,
                                      .reads_references = true,
                                      .reads_lists = true};
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
    nats_watch_failed(&m->engine->nats, status);
    if (m->put_failed_ms == 0)
        m->put_failed_ms = now_ms;
    if (m->put_warned_ms != 0 && now_ms - m->put_warned_ms < PUT_WARN_EVERY_MS)
        return;
    m->put_warned_ms = now_ms;
    log_line(LOG_LEVEL_WARN, "membership", "heartbeat not stored, trying again: %s", err->text);
}

/* A heartbeat that was removed says that it has left: others take what it had, at once. */
static void stand_aside(struct membership *m)
{
    thole_error err = {0};
    if (m->confirmed_ms != 0 &&
        nodes_delete(m->engine->connection, m->engine->topology.ns, membership_own_node(m), &err) == THOLE_OK)
        m->confirmed_ms = 0;
    m->next_put_ms = clock_monotonic_ms() + PUT_RETRY_MS;
}

static void membership_put(struct membership *m)
{
    thole_error err = {0};
    if (!engine_clock_is_right(m->engine->clock)) {
        stand_aside(m);
        return;
    }
    uint64_t const before = clock_monotonic_ms();
    thole_status status = encode_self(m);
    if (status == THOLE_OK) {
        struct tagged_hash const hash = live_hash(buf_bytes(&m->body));
        live_stand_by(m->live, &hash);
        presence_stand_by(m->presence, hash.text);
        status = nodes_put(m->engine->connection, m->engine->topology.ns, membership_own_node(m),
                           buf_bytes(&m->body), &err);
    }
    if (status == THOLE_OK)
        m->confirmed_ms = before;
    note_put(m, status, &err);
    m->next_put_ms =
        clock_monotonic_ms() + (status == THOLE_OK ? m->engine->options.heartbeat_ms : PUT_RETRY_MS);
}

/* ---- joining ---- */

/* A node whose own heartbeat is not confirmed owns nothing: others may take over. */
static bool membership_confirmed(const struct membership *m, uint64_t now_ms)
{
    uint64_t const margin = ttl_ms(m) / 10;
    return m->confirmed_ms != 0 && now_ms + margin < m->confirmed_ms + ttl_ms(m) &&
           live_find(m->live, membership_own_node(m)) != NULL;
}

/*
 * The own heartbeat comes back after all that were stored before it. Then this engine asks which of these are
 * live, and only when that is known it takes partitions, and answers that it is live: a partition that
 * another engine hands over to it is opened at once. An engine that asked before has got no answer, and asks
 * again for the second heartbeat.
 */
static void membership_join(struct membership *m)
{
    thole_error err = {0};
    uint64_t const now_ms = clock_monotonic_ms();
    uint64_t const settle_ms = ttl_ms(m) / 3 < SETTLE_MS ? ttl_ms(m) / 3 : SETTLE_MS;
    if (!membership_confirmed(m, now_ms)) {
        m->joined = false;
        m->settle_by_ms = 0;
        return;
    }
    if (m->joined)
        return;
    if (m->settle_by_ms == 0)
        m->settle_by_ms = now_ms + settle_ms;
    if (!live_settled(m->live) && now_ms < m->settle_by_ms)
        return;
    if (!m->answering && presence_answer(m->presence, &err) != THOLE_OK) {
        NODES_LINE(m, LINE_NOT_ANSWERING, NULL, "cannot answer the other engines yet: %s", err.text);
        m->settle_by_ms = now_ms + settle_ms;
        return;
    }
    m->joined = true;
    if (!m->answering && !live_alone(m->live))
        m->next_put_ms = 0;
    m->answering = true;
}

static uint64_t membership_min_ms(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t next_deadline(const struct membership *m)
{
    uint64_t deadline =
        membership_min_ms(m->next_put_ms, log_limits_rest(m->engine->lines, clock_monotonic_ms()));
    deadline = membership_min_ms(deadline, live_deadline(m->live));
    if (!m->joined && m->settle_by_ms != 0)
        deadline = membership_min_ms(deadline, m->settle_by_ms);
    return membership_min_ms(deadline, shares_deadline(m->shares));
}

/* ---- the thread ---- */

static void membership_step(struct membership *m)
{
    take_mails(m);
    if (atomic_exchange(&m->needs_changed, false) && needs_are_news(m))
        m->next_put_ms = 0;
    membership_join(m);
    while (clock_monotonic_ms() >= m->next_put_ms) {
        membership_put(m);
        take_mails(m); /* a slow server must not make other nodes look dead */
        membership_join(m);
    }
    uint64_t const now_ms = clock_monotonic_ms();
    m->computing_ms = now_ms;
    live_step(m->live, now_ms);
    /* before anything is handed over to others */
    atomic_store(&m->engine->lists, live_take_results(m->live));
    atomic_store(&m->engine->ranges, live_read_ranges(m->live));
    atomic_store(&m->engine->references, live_read_references(m->live));
    atomic_store(&m->engine->folds, live_read_lists(m->live));
    shares_step(m->shares, m->live, m->joined && membership_confirmed(m, now_ms), now_ms);
    atomic_store(&m->engine->joined, m->joined);
    metric_set(m->cells, METRIC_ENGINE_JOINED, 0, m->joined);
}

static void *membership_main(void *arg)
{
    struct membership *m = arg;
    (void)pthread_setname_np(pthread_self(), "thole-members");
    while (!mailbox_is_closed(&m->mailbox)) {
        membership_step(m);
        (void)mailbox_wait(&m->mailbox, next_deadline(m));
    }
    return NULL;
}

struct membership *membership_create(struct engine_host *engine)
{
    struct membership *m = memory_new(sizeof *m);
    uint32_t const partitions = engine->topology.partitions;
    uint64_t const ttl = engine->topology.nodes_ttl_ms;
    mailbox_init(&m->mailbox);
    m->engine = engine;
    m->cells = metrics_cells(engine->options.metrics);
    m->started_ms = clock_wall_ms();
    buf_init(&m->body, HEARTBEAT_BYTES_MAX);
    m->live = live_create(membership_own_node(m), partitions, ttl, engine->options.heartbeat_ms,
                          &(struct live_calls){membership_on_ask, on_say, m});
    m->shares = shares_create(membership_own_node(m), partitions, ttl,
                              &(struct shares_calls){membership_on_ownership, on_not_opened, m});
    if (engine->options.own_all)
        shares_own_all(m->shares);
    return m;
}

thole_status membership_run(struct membership *m, thole_error *reterr)
{
    struct connection *const connection = m->engine->connection;
    const char *const ns = m->engine->topology.ns;
    if (m->presence == NULL)
        THOLE_TRY(presence_open(connection, ns, m->engine->options.node, membership_on_answer, m,
                                &m->presence, reterr));
    THOLE_TRY(nodes_watch_open(connection, ns, membership_on_node, m, &m->watch, reterr));
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
    presence_close(m->presence); /* before the heartbeat is removed: who then asks must find nobody */
    if (m->confirmed_ms != 0 &&
        nodes_delete(m->engine->connection, m->engine->topology.ns, membership_own_node(m), &err) != THOLE_OK)
        log_line(LOG_LEVEL_WARN, "membership", "could not say goodbye: %s", err.text);
    for (struct mail *mail = mailbox_take_all(&m->mailbox), *next; mail != NULL; mail = next) {
        next = mail->next;
        free(mail);
    }
    shares_destroy(m->shares);
    live_destroy(m->live);
    mailbox_release(&m->mailbox);
    buf_release(&m->body);
    free(m);
}
