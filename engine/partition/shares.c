#include "shares.h"
#include "memory.h"
#include "ownership.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { NEEDS_MAX = 64 };

typedef char name_text[THOLE_NAME_BYTES_MAX + 1]; /* "" = unknown */

struct share {
    name_text owner;  /* by the last computation */
    name_text opener; /* the last that was seen */
    uint64_t due_ms;  /* until then the owner, another, has time to open it; 0: it has */
    bool mine;
};

struct shares {
    name_text self;
    bool own_all;
    uint32_t partitions;
    uint64_t ttl_ms;
    struct shares_calls calls;
    struct share *shares;
    /* while computing */
    const struct member *there[LIVE_MAX];
    struct node_view views[LIVE_MAX];
};

static void set_name(name_text to, thole_slice name)
{
    assert(name.len <= THOLE_NAME_BYTES_MAX);
    memset(to, 0, sizeof(name_text));
    memcpy(to, name.ptr, name.len);
}

static bool shares_same(const name_text text, thole_slice name)
{
    return thole_slice_equal(thole_slice_from(text), name);
}

/* By all heartbeats that count. */
static size_t needs_of(const struct shares *s, size_t there, uint32_t p, thole_slice *names)
{
    size_t n = 0;
    for (size_t i = 0; i < there; i++)
        for (size_t k = 0; k < s->there[i]->heartbeat.needs_len; k++) {
            const struct partition_needs *needs = &s->there[i]->heartbeat.needs[k];
            for (size_t j = 0; needs->partition == p && j < needs->orchestrations_len && n < NEEDS_MAX; j++)
                names[n++] = needs->orchestrations[j];
        }
    return n;
}

/* NULL: no engine is live. */
static const struct member *owner_of(struct shares *s, size_t there, uint32_t p)
{
    const struct member *choice[LIVE_MAX];
    thole_slice needs[NEEDS_MAX];
    size_t len = 0;
    for (size_t i = 0; i < there; i++)
        if (!member_is_left_out(s->there[i], p)) {
            const struct heartbeat *const heartbeat = &s->there[i]->heartbeat;
            s->views[len] =
                (struct node_view){heartbeat->node, heartbeat->orchestrations, heartbeat->orchestrations_len};
            choice[len++] = s->there[i];
        }
    size_t const needs_len = needs_of(s, there, p, needs);
    size_t const owner = ownership_of(p, s->views, len, needs, needs_len);
    return owner == SIZE_MAX ? NULL : choice[owner];
}

static void shares_settle(struct shares *s, const struct live_nodes *live, uint32_t p, bool mine)
{
    struct share *const share = &s->shares[p];
    if (mine == share->mine)
        return;
    thole_slice const before = thole_slice_from(share->owner);
    bool const alive = before.len > 0 && !shares_same(s->self, before) && live_find(live, before) != NULL;
    bool const unknown = before.len == 0 && !live_alone(live);
    share->mine = mine;
    s->calls.own(s->calls.arg, p, mine, alive || unknown);
}

static void set_owner(const struct shares *s, struct share *share, thole_slice owner, uint64_t now_ms)
{
    if (shares_same(share->owner, owner))
        return;
    set_name(share->owner, owner);
    bool const expected =
        share->opener[0] != '\0' && !shares_same(share->opener, owner) && !shares_same(s->self, owner);
    share->due_ms = expected ? now_ms + s->ttl_ms : 0;
}

static void note_due(struct shares *s, struct live_nodes *live, uint32_t p, uint64_t now_ms)
{
    struct share *const share = &s->shares[p];
    thole_slice const owner = thole_slice_from(share->owner);
    if (share->due_ms == 0 || now_ms < share->due_ms)
        return;
    share->due_ms = 0;
    if (live_find(live, owner) == NULL)
        return; /* no longer live */
    s->calls.not_opened(s->calls.arg, p, share->owner);
    live_leave_out(live, owner, p);
}

void shares_step(struct shares *s, struct live_nodes *live, bool valid, uint64_t now_ms)
{
    size_t const there = valid ? live_there(live, s->there) : 0;
    for (uint32_t p = 0; p < s->partitions; p++) {
        struct share *const share = &s->shares[p];
        if (!valid)
            share->due_ms = 0;
        note_due(s, live, p, now_ms);
        const struct member *const owner = owner_of(s, there, p);
        if (owner == NULL) {
            shares_settle(s, live, p, false);
            continue;
        }
        thole_slice const node = owner->heartbeat.node;
        shares_settle(s, live, p, s->own_all || shares_same(s->self, node));
        set_owner(s, share, node, now_ms);
    }
}

void shares_opened(struct shares *s, struct live_nodes *live, uint32_t p, thole_slice node)
{
    assert(p < s->partitions);
    if (node.len > THOLE_NAME_BYTES_MAX)
        return; /* not an engine's */
    struct share *const share = &s->shares[p];
    set_name(share->opener, node);
    if (shares_same(share->owner, node))
        share->due_ms = 0;
    live_take_in(live, node, p);
}

uint64_t shares_deadline(const struct shares *s)
{
    uint64_t deadline = UINT64_MAX;
    for (uint32_t p = 0; p < s->partitions; p++)
        if (s->shares[p].due_ms != 0 && s->shares[p].due_ms < deadline)
            deadline = s->shares[p].due_ms;
    return deadline;
}

void shares_own_all(struct shares *s)
{
    s->own_all = true;
}

struct shares *shares_create(thole_slice self, uint32_t partitions, uint64_t ttl_ms,
                             const struct shares_calls *calls)
{
    struct shares *const s = memory_new(sizeof *s);
    set_name(s->self, self);
    s->partitions = partitions;
    s->ttl_ms = ttl_ms;
    s->calls = *calls;
    s->shares = memory_array(partitions, sizeof *s->shares);
    return s;
}

void shares_destroy(struct shares *s)
{
    if (s == NULL)
        return;
    free(s->shares);
    free(s);
}
