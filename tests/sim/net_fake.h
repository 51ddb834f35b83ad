/*
 * Nodes, their connections, and requests on them. A request arrives in the order in which it was sent on its
 * connection unless a fault changes that; it may be lost, or arrive long after its sender gave up, and
 * so may its answer. Its sender hears exactly once: the answer, or that nothing is known.
 */
#ifndef THOLE_NET_FAKE_H
#define THOLE_NET_FAKE_H
#include "world.h"

enum server { SERVER_NATS, SERVER_STORE, SERVERS_LEN };

struct node;
struct link {
    struct node *node;
    enum server server;
    bool up;
    bool telling_loss; /* while on_link() is told of a loss, though it may be up again */
    uint64_t life;     /* grows with every loss */
    uint64_t last_there_ms, last_back_ms;
};

struct request;
struct node {
    char name[24];
    bool alive;
    uint64_t life; /* grows with every crash */
    uint64_t paused_until_ms;
    int64_t clock_ms; /* error of its wall clock */
    struct link links[SERVERS_LEN];
    struct request *pending; /* not yet done, newest first */
    void *owner;
    /* The node notices that a connection is gone, or there again. May be NULL. */
    void (*on_link)(struct world *w, struct node *node, enum server server);
};

enum executed { EXECUTED, EXECUTE_LATER /* blocked by a lock */ };
struct request { /* first member of every kind of request */
    struct node *node;
    enum server server;
    uint64_t node_life, link_life, sent_ms, arrived_ms;
    uint64_t server_life;   /* a server that crashed has no connections of before */
    uint64_t not_before_ms; /* stuck somewhere until then */
    bool arrived, never, done;
    enum executed (*execute)(struct world *w, struct request *request);     /* at the server */
    void (*answered)(struct world *w, struct request *request, bool known); /* at the node, once */
    void (*dropped)(struct world *w, struct request *request); /* the node died: once, instead. May be NULL */
    struct request *next, *prev;
};

void node_begin(struct world *w, struct node *node, const char *kind, unsigned index, void *owner);
uint64_t node_now_ms(const struct world *w, const struct node *node);
/* For every task of a node: false when that life is over or the node is paused (then the task comes again).
 */
bool node_runs(struct world *w, struct node *node, uint64_t life, task_fn *run, void *arg);
/* Memory gone; what is in flight may or may not arrive; no answer comes. */
void node_crash(struct world *w, struct node *node);
void node_restart(struct world *w, struct node *node);
void node_pause(struct world *w, struct node *node, uint64_t pause_ms);
/* Loses a connection; it comes back after a while. */
void node_lose_link(struct world *w, struct node *node, enum server server);

void net_send(struct world *w, struct node *node, enum server server, struct request *request);
uint64_t net_latency_ms(struct world *w);
bool server_down(const struct world *w, enum server server);
#endif
