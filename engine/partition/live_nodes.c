#include "live_nodes.h"
#include "memory.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum {
    ASK_SOON_MS = 100,
    UNPROVEN_BYTES_MAX = 16 * 1024 * 1024, /* of all heartbeats whose engine has not answered */
};

struct live_nodes {
    char self[THOLE_NAME_BYTES_MAX + 1];
    uint32_t partitions;
    uint64_t ttl_ms, ask_ms;
    struct live_calls calls;
    struct tagged_hash own, own_before;
    uint64_t self_seen_ms, self_stored_ns; /* of the last own heartbeat that was received */
    struct member *members[LIVE_MAX];      /* several may share a name; at most one of these is live */
    size_t len;
};

struct tagged_hash live_hash(thole_slice heartbeat)
{
    return tagged_hash_make("thole heartbeat 1", heartbeat);
}

static bool is_named(const struct member *member, thole_slice node)
{
    return thole_slice_equal(member->heartbeat.node, node);
}

static bool is_self(const struct live_nodes *live, thole_slice node)
{
    return thole_slice_equal(node, thole_slice_from(live->self));
}

static void live_nodes_report(const struct live_nodes *live, enum live_line line, thole_slice node,
                              const char *why)
{
    live->calls.say(live->calls.arg, line, node, why);
}

static void member_destroy(struct member *member)
{
    if (member == NULL)
        return;
    arena_release(&member->arena);
    free(member->left_out);
    free(member);
}

static void live_nodes_drop(struct live_nodes *live, size_t i)
{
    assert(i < live->len && live->len <= LIVE_MAX);
    member_destroy(live->members[i]);
    live->members[i] = live->members[--live->len];
}

/* ---- questions ---- */

/* One question for all that have the name. */
static void live_nodes_ask(struct live_nodes *live, thole_slice node, uint64_t now_ms)
{
    bool const sent = live->calls.ask(live->calls.arg, node);
    for (size_t i = 0; i < live->len; i++) {
        struct member *const member = live->members[i];
        if (!is_named(member, node))
            continue;
        if (sent && member->asked_ms == 0)
            member->asked_ms = now_ms;
        member->next_ask_ms = now_ms + member->pause_ms;
        member->pause_ms = member->pause_ms * 2 < live->ask_ms ? member->pause_ms * 2 : live->ask_ms;
    }
}

static void ask_soon(struct member *member, uint64_t now_ms)
{
    member->pause_ms = ASK_SOON_MS;
    member->next_ask_ms = now_ms + ASK_SOON_MS;
}

/* Marks a member as away. An absent member has no past. */
static void is_away(struct member *member)
{
    member->there = false;
    free(member->left_out);
    member->left_out = NULL;
}

/* ---- heartbeats ---- */

static struct member *live_nodes_decode(const struct live_nodes *live, const struct live_entry *entry)
{
    struct member *const member = memory_new(sizeof *member);
    thole_error err = {0};
    arena_init(&member->arena, 4 * HEARTBEAT_BYTES_MAX);
    thole_status status = entry->bytes.len > HEARTBEAT_BYTES_MAX
                              ? thole_fail(&err, THOLE_LIMIT, "it has %zu bytes", entry->bytes.len)
                              : heartbeat_decode(entry->bytes, &member->arena, &member->heartbeat, &err);
    if (status == THOLE_OK && !is_named(member, entry->node))
        status = thole_fail(&err, THOLE_CORRUPT, "key and heartbeat name different nodes");
    if (status != THOLE_OK) {
        live_nodes_report(live, LIVE_IGNORED, entry->node, err.text);
        member_destroy(member);
        return NULL;
    }
    member->hash = live_hash(entry->bytes);
    member->bytes = entry->bytes.len;
    member->first_ms = member->seen_ms = entry->seen_ms;
    member->stored_ns = entry->stored_ns;
    member->pause_ms = ASK_SOON_MS;
    return member;
}

/* A heartbeat that was stored before the own one is older by the difference of the server's times. That
 * matters for those that existed when watching began: a dead engine's must not count as current. */
static void live_nodes_age(const struct live_nodes *live, struct member *member)
{
    if (member->stored_ns >= live->self_stored_ns)
        return;
    uint64_t const older_ms = (live->self_stored_ns - member->stored_ns) / 1000000;
    uint64_t const seen_ms = older_ms < live->self_seen_ms ? live->self_seen_ms - older_ms : 0;
    if (seen_ms < member->seen_ms)
        member->seen_ms = seen_ms;
}

/* Room for one more, if need be at the cost of the oldest that has not answered. */
static bool live_nodes_make_room(struct live_nodes *live, size_t bytes)
{
    for (;;) {
        size_t oldest = live->len, unproven = 0;
        for (size_t i = 0; i < live->len; i++) {
            if (live->members[i]->there)
                continue;
            unproven += live->members[i]->bytes;
            if (oldest == live->len || live->members[i]->first_ms < live->members[oldest]->first_ms)
                oldest = i;
        }
        if (live->len < LIVE_MAX && unproven + bytes <= UNPROVEN_BYTES_MAX)
            return true;
        if (oldest == live->len)
            return false;
        live_nodes_drop(live, oldest);
    }
}

static struct member *live_nodes_find(const struct live_nodes *live, thole_slice node,
                                      const struct tagged_hash *hash)
{
    for (size_t i = 0; i < live->len; i++)
        if (is_named(live->members[i], node) && strcmp(live->members[i]->hash.text, hash->text) == 0)
            return live->members[i];
    return NULL;
}

static struct member *find_there(const struct live_nodes *live, thole_slice node)
{
    for (size_t i = 0; i < live->len; i++)
        if (live->members[i]->there && is_named(live->members[i], node))
            return live->members[i];
    return NULL;
}

/* Takes the member over. NULL: there is no room. */
static struct member *live_nodes_add(struct live_nodes *live, struct member *member)
{
    if (!live_nodes_make_room(live, member->bytes)) {
        live_nodes_report(live, LIVE_FULL, member->heartbeat.node, NULL);
        member_destroy(member);
        return NULL;
    }
    return live->members[live->len++] = member;
}

static void heard_again(const struct live_nodes *live, struct member *member, const struct live_entry *entry)
{
    member->seen_ms = entry->seen_ms;
    member->stored_ns = entry->stored_ns;
    member->removed = false;
    live_nodes_age(live, member);
}

/* A heartbeat in our name that we have not stored: ours is to be stored again. */
static bool heard_false(const struct live_nodes *live, const struct live_entry *entry,
                        const struct tagged_hash *hash)
{
    bool const old =
        entry->stored_ns <= live->self_stored_ns || strcmp(hash->text, live->own_before.text) == 0;
    if (live->self_stored_ns == 0 || old)
        return false; /* of an earlier process, or from before the last change */
    live_nodes_report(live, LIVE_IGNORED, entry->node, "this engine has not stored it");
    return true;
}

/* Others' heartbeats are aged when this node joins, and not later: a change of the server's clock must not
 * make them dead. */
static bool heard_own(struct live_nodes *live, const struct live_entry *entry)
{
    struct tagged_hash const hash = live_hash(entry->bytes);
    if (strcmp(hash.text, live->own.text) != 0)
        return heard_false(live, entry, &hash);
    bool const joined = find_there(live, entry->node) == NULL;
    struct member *member = live_nodes_find(live, entry->node, &hash);
    if (member == NULL && (member = live_nodes_decode(live, entry)) != NULL)
        member = live_nodes_add(live, member);
    if (member == NULL)
        return false;
    live->self_seen_ms = entry->seen_ms;
    live->self_stored_ns = entry->stored_ns;
    heard_again(live, member, entry);
    member->there = true;
    for (size_t i = live->len; i-- > 0;)
        if (live->members[i] != member && is_self(live, live->members[i]->heartbeat.node))
            live_nodes_drop(live, i);
    for (size_t i = 0; joined && i < live->len; i++)
        live_nodes_age(live, live->members[i]);
    if (joined)
        live_nodes_report(live, LIVE_JOINED, entry->node, NULL);
    return false;
}

static void heard_removal(struct live_nodes *live, const struct live_entry *entry)
{
    bool was_there = false;
    for (size_t i = live->len; i-- > 0;) {
        struct member *const member = live->members[i];
        if (!is_named(member, entry->node))
            continue;
        if (member->there) {
            was_there = member->removed = true;
            member->pause_ms = ASK_SOON_MS;
        } else {
            live_nodes_drop(live, i);
        }
    }
    if (was_there)
        live_nodes_ask(live, entry->node, entry->seen_ms);
}

/* Whether it is to be stored again. */
static bool heard_own_removal(const struct live_nodes *live, const struct live_entry *entry)
{
    if (live_find(live, entry->node) == NULL || entry->stored_ns <= live->self_stored_ns)
        return false; /* of an earlier process */
    live_nodes_report(live, LIVE_IGNORED, entry->node, "this engine has not removed it, and stores it again");
    return true;
}

static void heard_other(struct live_nodes *live, const struct live_entry *entry)
{
    struct tagged_hash const hash = live_hash(entry->bytes);
    struct member *member = live_nodes_find(live, entry->node, &hash);
    if (member != NULL) {
        heard_again(live, member, entry);
        if (!member->there)
            live_nodes_ask(live, entry->node, entry->seen_ms);
        return;
    }
    member = live_nodes_decode(live, entry);
    if (member != NULL)
        member = live_nodes_add(live, member);
    if (member == NULL)
        return;
    live_nodes_age(live, member);
    live_nodes_ask(live, entry->node, entry->seen_ms);
}

bool live_heard(struct live_nodes *live, const struct live_entry *entry)
{
    bool const removed = entry->bytes.len == 0;
    if (is_self(live, entry->node) && removed)
        return heard_own_removal(live, entry);
    if (is_self(live, entry->node))
        return heard_own(live, entry);
    if (removed)
        heard_removal(live, entry);
    else
        heard_other(live, entry);
    return false;
}

void live_stand_by(struct live_nodes *live, const struct tagged_hash *own)
{
    if (strcmp(live->own.text, own->text) != 0)
        live->own_before = live->own;
    live->own = *own;
}

/* ---- answers ---- */

static void nobody_answers(struct live_nodes *live, thole_slice node, uint64_t now_ms)
{
    for (size_t i = live->len; i-- > 0;) {
        struct member *const member = live->members[i];
        if (!is_named(member, node))
            continue;
        if (member->removed) {
            live_nodes_report(live, LIVE_LEFT, node, NULL);
            live_nodes_drop(live, i);
            continue;
        }
        if (member->there)
            ask_soon(member, now_ms); /* the connection may have been lost */
        else
            member->nobody = true;
    }
}

static void is_there(const struct live_nodes *live, struct member *member, uint64_t now_ms)
{
    member->nobody = member->told = false;
    member->there = true;
    member->asked_ms = 0;
    member->pause_ms = live->ask_ms;
    member->next_ask_ms = now_ms + live->ask_ms;
}

void live_answered(struct live_nodes *live, thole_slice node, thole_slice hash, uint64_t now_ms)
{
    struct member *member = NULL, *const before = find_there(live, node);
    if (is_self(live, node))
        return;
    if (hash.len == 0) {
        nobody_answers(live, node, now_ms);
        return;
    }
    for (size_t i = 0; i < live->len && member == NULL; i++)
        if (is_named(live->members[i], node) && tagged_hash_is(&live->members[i]->hash, hash))
            member = live->members[i];
    if (member == NULL) { /* the answer names a heartbeat that is still on its way */
        if (before != NULL)
            is_there(live, before, now_ms);
        return;
    }
    if (before != NULL && before != member && before->heartbeat.started_ms == member->heartbeat.started_ms) {
        free(member->left_out);
        member->left_out = before->left_out;
        before->left_out = NULL;
    }
    is_there(live, member, now_ms);
    if (before == NULL) /* the caller may look at what it has */
        live_nodes_report(live, LIVE_JOINED, node, NULL);
    for (size_t i = live->len; i-- > 0;)
        if (live->members[i] != member && is_named(live->members[i], member->heartbeat.node))
            live_nodes_drop(live, i);
}

/* ---- time ---- */

static bool is_silent(const struct live_nodes *live, const struct member *member, uint64_t now_ms)
{
    return member->there && member->asked_ms != 0 && now_ms >= member->asked_ms + live->ttl_ms;
}

static void note_absence(const struct live_nodes *live, struct member *member, uint64_t now_ms)
{
    if (member->there || member->told || now_ms < member->first_ms + live->ttl_ms / 2)
        return;
    member->told = true;
    live_nodes_report(live, LIVE_ABSENT, member->heartbeat.node, NULL);
}

void live_step(struct live_nodes *live, uint64_t now_ms)
{
    for (size_t i = 0; i < live->len;) {
        struct member *const member = live->members[i];
        bool const self = is_self(live, member->heartbeat.node);
        note_absence(live, member, now_ms);
        if (now_ms >= member->seen_ms + live->ttl_ms) {
            if (member->there)
                live_nodes_report(live, LIVE_GONE, member->heartbeat.node, NULL);
            live_nodes_drop(live, i);
            continue;
        }
        if (!self && is_silent(live, member, now_ms)) {
            live_nodes_report(live, LIVE_SILENT, member->heartbeat.node, NULL);
            is_away(member);
            member->told = true;
        }
        if (!self && now_ms >= member->next_ask_ms)
            live_nodes_ask(live, member->heartbeat.node, now_ms);
        i++;
    }
}

uint64_t live_deadline(const struct live_nodes *live)
{
    uint64_t deadline = UINT64_MAX;
    for (size_t i = 0; i < live->len; i++) {
        const struct member *const member = live->members[i];
        bool const self = is_self(live, member->heartbeat.node);
        uint64_t at = member->seen_ms + live->ttl_ms;
        if (!self && member->next_ask_ms < at)
            at = member->next_ask_ms;
        if (!self && member->there && member->asked_ms != 0 && member->asked_ms + live->ttl_ms < at)
            at = member->asked_ms + live->ttl_ms;
        if (at < deadline)
            deadline = at;
    }
    return deadline;
}

/* ---- questions about the nodes ---- */

bool live_settled(const struct live_nodes *live)
{
    bool settled = true;
    for (size_t i = 0; settled && i < live->len; i++)
        settled = live->members[i]->there || live->members[i]->nobody;
    return settled;
}

bool live_alone(const struct live_nodes *live)
{
    bool alone = true;
    for (size_t i = 0; alone && i < live->len; i++)
        alone = is_self(live, live->members[i]->heartbeat.node);
    return alone;
}

const struct member *live_find(const struct live_nodes *live, thole_slice node)
{
    return find_there(live, node);
}

size_t live_there(const struct live_nodes *live, const struct member *ret[LIVE_MAX])
{
    size_t len = 0;
    for (size_t i = 0; i < live->len; i++)
        if (live->members[i]->there)
            ret[len++] = live->members[i];
    return len;
}

static bool node_takes_results(const struct heartbeat *heartbeat)
{
    return heartbeat->takes_results;
}

static bool node_reads_ranges(const struct heartbeat *heartbeat)
{
    return heartbeat->reads_ranges;
}

static bool node_reads_references(const struct heartbeat *heartbeat)
{
    return heartbeat->reads_references;
}

static bool node_reads_lists(const struct heartbeat *heartbeat)
{
    return heartbeat->reads_lists;
}

/* Also of those that are silent: they may come back. */
static bool all_say(const struct live_nodes *live, bool (*says)(const struct heartbeat *heartbeat))
{
    bool any = false, all = true;
    for (size_t i = 0; i < live->len; i++) {
        any |= live->members[i]->there;
        all &= live->members[i]->nobody || says(&live->members[i]->heartbeat);
    }
    return any && all;
}

bool live_take_results(const struct live_nodes *live)
{
    return all_say(live, node_takes_results);
}

bool live_read_ranges(const struct live_nodes *live)
{
    return all_say(live, node_reads_ranges);
}

bool live_read_references(const struct live_nodes *live)
{
    return all_say(live, node_reads_references);
}

bool live_read_lists(const struct live_nodes *live)
{
    return all_say(live, node_reads_lists);
}

/* ---- nodes that do not open their partition ---- */

void live_leave_out(struct live_nodes *live, thole_slice node, uint32_t p)
{
    struct member *const member = find_there(live, node);
    assert(p < live->partitions);
    if (member == NULL || is_self(live, node))
        return;
    if (member->left_out == NULL)
        member->left_out = memory_array((live->partitions + 7) / 8, 1);
    member->left_out[p / 8] |= (uint8_t)(1u << p % 8);
}

void live_take_in(struct live_nodes *live, thole_slice node, uint32_t p)
{
    struct member *const member = find_there(live, node);
    assert(p < live->partitions);
    if (member != NULL && member->left_out != NULL)
        member->left_out[p / 8] &= (uint8_t) ~(1u << p % 8);
}

bool member_is_left_out(const struct member *member, uint32_t p)
{
    return member->left_out != NULL && (member->left_out[p / 8] & 1u << p % 8) != 0;
}

/* ---- create, destroy ---- */

struct live_nodes *live_create(thole_slice self, uint32_t partitions, uint64_t ttl_ms, uint64_t ask_ms,
                               const struct live_calls *calls)
{
    struct live_nodes *const live = memory_new(sizeof *live);
    assert(self.len > 0 && self.len <= THOLE_NAME_BYTES_MAX);
    memcpy(live->self, self.ptr, self.len);
    live->partitions = partitions;
    live->ttl_ms = ttl_ms;
    live->ask_ms = ask_ms;
    live->calls = *calls;
    return live;
}

void live_destroy(struct live_nodes *live)
{
    if (live == NULL)
        return;
    while (live->len > 0)
        live_nodes_drop(live, 0);
    free(live);
}
