#include "net_fake.h"
#include "store_fake.h"
#include <stdio.h>
#include <string.h>

void node_begin(struct world *w, struct node *node, const char *kind, unsigned index, void *owner)
{
    (void)w;
    snprintf(node->name, sizeof node->name, "%s%u", kind, index);
    node->owner = owner;
    node->alive = true;
    node->life = 1;
    for (int s = 0; s < SERVERS_LEN; s++)
        node->links[s] = (struct link){.node = node, .server = (enum server)s, .up = true, .life = 1};
}

uint64_t node_now_ms(const struct world *w, const struct node *node)
{
    return (uint64_t)((int64_t)w->now_ms + node->clock_ms);
}

bool node_runs(struct world *w, struct node *node, uint64_t life, task_fn *run, void *arg)
{
    if (!node->alive || node->life != life)
        return false;
    if (w->now_ms < node->paused_until_ms) {
        at(w, node->paused_until_ms, run, arg, life);
        return false;
    }
    return true;
}

uint64_t net_latency_ms(struct world *w)
{
    if (w->now_ms < w->slow_until_ms)
        return between(w, 20, 600);
    return rnd(w, 16) == 0 ? between(w, 2, 30) : rnd(w, w->latency_ms);
}

bool server_down(const struct world *w, enum server server)
{
    return w->now_ms < (server == SERVER_NATS ? w->nats_down_until_ms : store_down_until_ms(w->store));
}

static void unlink_request(struct request *r)
{
    if (r->prev != NULL)
        r->prev->next = r->next;
    else
        r->node->pending = r->next;
    if (r->next != NULL)
        r->next->prev = r->prev;
}

static void finish(struct world *w, struct request *r, bool known)
{
    if (r->done)
        return;
    r->done = true;
    unlink_request(r);
    r->answered(w, r, known);
}

static void task_unknown(struct world *w, void *arg, uint64_t life)
{
    struct request *r = arg;
    if (!r->done && node_runs(w, r->node, life, task_unknown, arg))
        finish(w, r, false);
}

static void task_answer(struct world *w, void *arg, uint64_t life)
{
    struct request *r = arg;
    if (r->done || r->link_life != r->node->links[r->server].life)
        return;
    /* After a long pause the timeout and the answer wait side by side: either may be looked at first. */
    bool const overdue = r->sent_ms + REQUEST_TIMEOUT_MS < r->node->paused_until_ms;
    if (node_runs(w, r->node, life, task_answer, arg))
        finish(w, r, !overdue || rnd(w, 2) == 0);
}

static void task_execute(struct world *w, void *arg, uint64_t life)
{
    struct request *r = arg;
    (void)life;
    if (!r->never && w->now_ms < r->not_before_ms) {
        at(w, r->not_before_ms, task_execute, arg, 0);
        return;
    }
    if (r->never || server_down(w, r->server) ||
        (r->server == SERVER_STORE && r->server_life != store_life(w->store)))
        return;
    if (!r->arrived)
        r->arrived_ms = w->now_ms;
    r->arrived = true;
    if (r->execute(w, r) == EXECUTE_LATER) {
        after(w, 5, task_execute, arg, 0);
        return;
    }
    if (r->done || strikes(w, FAULT_ANSWER_LOST, 5))
        return;
    struct link *link = &r->node->links[r->server];
    uint64_t due_ms = w->now_ms + net_latency_ms(w);
    if (due_ms < link->last_back_ms)
        due_ms = link->last_back_ms;
    link->last_back_ms = due_ms;
    at(w, due_ms, task_answer, r, r->node_life);
}

void net_send(struct world *w, struct node *node, enum server server, struct request *r)
{
    struct link *link = &node->links[server];
    r->node = node;
    r->server = server;
    r->node_life = node->life;
    r->link_life = link->life;
    r->server_life = store_life(w->store);
    r->sent_ms = w->now_ms;
    r->arrived = r->never = r->done = false;
    r->not_before_ms = 0;
    r->prev = NULL;
    r->next = node->pending;
    if (r->next != NULL)
        r->next->prev = r;
    node->pending = r;
    if (!link->up) {
        after(w, 1, task_unknown, r, node->life);
        return;
    }
    after(w, REQUEST_TIMEOUT_MS, task_unknown, r, node->life);
    if (strikes(w, FAULT_REQUEST_LOST, 4))
        return;
    if (strikes(w, FAULT_REQUEST_LATE, 4)) {
        after(w, between(w, 10, 15000), task_execute, r, 0);
        return;
    }
    uint64_t due_ms = w->now_ms + net_latency_ms(w);
    if (due_ms < link->last_there_ms)
        due_ms = link->last_there_ms;
    link->last_there_ms = due_ms;
    at(w, due_ms, task_execute, r, 0);
}

/* Requests sent on a lost connection that have not arrived: they are stuck for a while and arrive after all,
 * in order, or a part of them never does (a hostile network also drops from the middle). */
static void scatter(struct world *w, struct request *r, uint64_t stuck_until_ms)
{
    if (r->arrived)
        return;
    if (stuck_until_ms > 0)
        r->not_before_ms = stuck_until_ms;
    else if (rnd(w, 2) == 0)
        r->never = true;
}

static uint64_t stuck_until_ms(struct world *w)
{
    return rnd(w, 2) == 0 ? 0 : w->now_ms + between(w, 1, rnd(w, 3) == 0 ? 4000 : 100);
}

void node_crash(struct world *w, struct node *node)
{
    uint64_t const stuck_ms = stuck_until_ms(w);
    node->alive = false;
    node->life++;
    node->paused_until_ms = 0;
    for (int s = 0; s < SERVERS_LEN; s++) {
        node->links[s].life++;
        node->links[s].up = false;
    }
    while (node->pending != NULL) {
        struct request *r = node->pending;
        r->done = true;
        unlink_request(r);
        scatter(w, r, stuck_ms);
        if (r->dropped != NULL)
            r->dropped(w, r);
    }
}

static void task_link_up(struct world *w, void *arg, uint64_t life)
{
    struct link *link = arg;
    if (!node_runs(w, link->node, life, task_link_up, arg) || link->up)
        return;
    if (server_down(w, link->server)) {
        after(w, between(w, 10, 300), task_link_up, arg, life);
        return;
    }
    link->up = true;
    trace(w, "%s: connected to %s", link->node->name, link->server == SERVER_NATS ? "nats" : "the store");
    if (link->node->on_link != NULL)
        link->node->on_link(w, link->node, link->server);
}

static void task_link_down(struct world *w, void *arg, uint64_t life)
{
    struct link *link = arg;
    if (!node_runs(w, link->node, life, task_link_down, arg) || link->node->on_link == NULL)
        return;
    link->telling_loss = true;
    link->node->on_link(w, link->node, link->server);
    link->telling_loss = false;
}

void node_restart(struct world *w, struct node *node)
{
    node->alive = true;
    for (int s = 0; s < SERVERS_LEN; s++)
        node->links[s].up = true;
    for (int s = 0; s < SERVERS_LEN; s++)
        if (server_down(w, (enum server)s))
            node_lose_link(w, node, (enum server)s);
}

void node_pause(struct world *w, struct node *node, uint64_t pause_ms)
{
    uint64_t const until_ms = w->now_ms + pause_ms;
    if (node->alive && until_ms > node->paused_until_ms)
        node->paused_until_ms = until_ms;
}

void node_lose_link(struct world *w, struct node *node, enum server server)
{
    struct link *link = &node->links[server];
    uint64_t const stuck_ms = stuck_until_ms(w);
    if (!node->alive || !link->up)
        return;
    trace(w, "%s: connection to %s lost", node->name, server == SERVER_NATS ? "nats" : "the store");
    link->up = false;
    link->life++;
    for (struct request *r = node->pending; r != NULL; r = r->next) {
        if (r->server != server)
            continue;
        scatter(w, r, stuck_ms);
        after(w, rnd(w, 5), task_unknown, r, node->life);
    }
    after(w, rnd(w, 5), task_link_down, link, node->life);
    after(w, between(w, 10, 2000), task_link_up, link, node->life);
}
