#include "tcp_proxy.h"
#include "clock.h"
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    CONNECTIONS_MAX = 64,
    FLOW_BYTES_MAX = 64 * 1024,
    CHUNKS_MAX = 64,
    SIDES = 2, /* 0: the client's, 1: the server's; flow i goes from side i to the other */
};

struct conditions {
    unsigned stalled; /* enum tcp_way */
    uint64_t delay_ms[SIDES];
    bool cut, stop;
};

struct chunk {
    size_t len;
    uint64_t due_ms;
};

/* Bytes read on one side and not yet written to the other. */
struct flow {
    uint8_t bytes[FLOW_BYTES_MAX];
    size_t len;
    struct chunk chunks[CHUNKS_MAX];
    size_t chunks_len;
    bool ended;  /* the source has closed, or is gone */
    bool passed; /* and the other side has been told so */
};

struct connection_pair {
    int fds[SIDES]; /* -1: that side is gone, and the other one does not know it yet */
    struct flow flows[SIDES];
};

struct tcp_proxy {
    pthread_t thread;
    int listener, bell;
    uint16_t port, server_port;

    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t taken;
    struct conditions wanted;
    uint64_t wishes, wishes_taken;
    size_t connections;
    uint64_t passed[SIDES];

    /* the thread's */
    struct conditions conditions;
    struct connection_pair *pairs[CONNECTIONS_MAX];
    size_t pairs_len;
};

static bool is_stalled(const struct tcp_proxy *proxy, int flow)
{
    return (proxy->conditions.stalled & (flow == 0 ? TCP_TO_SERVER : TCP_TO_CLIENT)) != 0;
}

/* ---- sockets ---- */

static int listen_here(uint16_t *ret_port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof address;
    int const fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&address, len) != 0 || listen(fd, CONNECTIONS_MAX) != 0 ||
        getsockname(fd, (struct sockaddr *)&address, &len) != 0) {
        if (fd >= 0)
            close(fd);
        return -1;
    }
    *ret_port = ntohs(address.sin_port);
    return fd;
}

static void set_up(int fd)
{
    int const one = 1;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    (void)fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
}

/* On this machine: at once, or not at all. */
static int connect_to(uint16_t port)
{
    struct sockaddr_in const address = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int const fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, (const struct sockaddr *)&address, sizeof address) == 0)
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}

static void reset(int fd)
{
    struct linger const none = {.l_onoff = 1, .l_linger = 0};
    if (fd < 0)
        return;
    (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &none, sizeof none);
    close(fd);
}

/* ---- connections ---- */

static void end_pair(struct tcp_proxy *proxy, size_t i, bool with_reset)
{
    struct connection_pair *const pair = proxy->pairs[i];
    for (int side = 0; side < SIDES; side++) {
        if (with_reset)
            reset(pair->fds[side]);
        else if (pair->fds[side] >= 0)
            close(pair->fds[side]);
    }
    free(pair);
    proxy->pairs[i] = proxy->pairs[--proxy->pairs_len];
}

static void accept_one(struct tcp_proxy *proxy)
{
    int const client = accept4(proxy->listener, NULL, NULL, SOCK_CLOEXEC);
    if (client < 0)
        return;
    bool const refused = proxy->conditions.cut || proxy->pairs_len == CONNECTIONS_MAX;
    int const server = refused ? -1 : connect_to(proxy->server_port);
    struct connection_pair *const pair = server < 0 ? NULL : calloc(1, sizeof *pair);
    if (pair == NULL) {
        reset(client);
        reset(server);
        return;
    }
    set_up(client);
    set_up(server);
    pair->fds[0] = client;
    pair->fds[1] = server;
    proxy->pairs[proxy->pairs_len++] = pair;
}

/* A side that is gone: nothing can be written to it, and the other one is told when that way is open. */
static void lose_side(struct connection_pair *pair, int side)
{
    reset(pair->fds[side]);
    pair->fds[side] = -1;
    pair->flows[side].ended = true;
    pair->flows[1 - side].len = pair->flows[1 - side].chunks_len = 0;
}

static void read_some(struct tcp_proxy *proxy, struct connection_pair *pair, int side, uint64_t now_ms)
{
    struct flow *const flow = &pair->flows[side];
    ssize_t const n = recv(pair->fds[side], flow->bytes + flow->len, FLOW_BYTES_MAX - flow->len, 0);
    if (n > 0) {
        flow->chunks[flow->chunks_len++] =
            (struct chunk){.len = (size_t)n, .due_ms = now_ms + proxy->conditions.delay_ms[side]};
        flow->len += (size_t)n;
    } else if (n == 0) {
        flow->ended = true;
    } else if (errno != EAGAIN && errno != EINTR) {
        lose_side(pair, side);
    }
}

static void forget_written(struct flow *flow, size_t n)
{
    flow->len -= n;
    memmove(flow->bytes, flow->bytes + n, flow->len);
    flow->chunks[0].len -= n;
    if (flow->chunks[0].len == 0)
        memmove(flow->chunks, flow->chunks + 1, --flow->chunks_len * sizeof flow->chunks[0]);
}

static void write_some(struct tcp_proxy *proxy, struct connection_pair *pair, int side)
{
    struct flow *const flow = &pair->flows[side];
    (void)pthread_mutex_lock(&proxy->lock); /* whoever has got it finds it counted */
    ssize_t const n = send(pair->fds[1 - side], flow->bytes, flow->chunks[0].len, MSG_NOSIGNAL);
    proxy->passed[side] += n > 0 ? (uint64_t)n : 0;
    (void)pthread_mutex_unlock(&proxy->lock);
    if (n > 0)
        forget_written(flow, (size_t)n);
    else if (n < 0 && errno != EAGAIN && errno != EINTR)
        lose_side(pair, 1 - side);
}

static bool wants_read(const struct tcp_proxy *proxy, const struct connection_pair *pair, int side)
{
    const struct flow *const flow = &pair->flows[side];
    return pair->fds[side] >= 0 && !flow->ended && !is_stalled(proxy, side) && flow->len < FLOW_BYTES_MAX &&
           flow->chunks_len < CHUNKS_MAX;
}

static bool wants_write(const struct tcp_proxy *proxy, const struct connection_pair *pair, int side,
                        uint64_t now_ms)
{
    const struct flow *const flow = &pair->flows[side];
    return pair->fds[1 - side] >= 0 && flow->chunks_len > 0 && !is_stalled(proxy, side) &&
           flow->chunks[0].due_ms <= now_ms;
}

/* Tells ends; false when nothing is left to be done for this connection. */
static bool settle(const struct tcp_proxy *proxy, struct connection_pair *pair)
{
    for (int side = 0; side < SIDES; side++) {
        struct flow *const flow = &pair->flows[side];
        if (!flow->ended || flow->len > 0 || is_stalled(proxy, side))
            continue;
        if (pair->fds[side] < 0) /* one side broke: so does the other */
            return false;
        if (!flow->passed && pair->fds[1 - side] >= 0)
            (void)shutdown(pair->fds[1 - side], SHUT_WR);
        flow->passed = true;
    }
    return !pair->flows[0].passed || !pair->flows[1].passed;
}

/* ---- the thread ---- */

/* False: stop. */
static bool take_conditions(struct tcp_proxy *proxy)
{
    (void)pthread_mutex_lock(&proxy->lock);
    proxy->conditions = proxy->wanted;
    while (proxy->conditions.cut && proxy->pairs_len > 0)
        end_pair(proxy, 0, true);
    proxy->connections = proxy->pairs_len;
    proxy->wishes_taken = proxy->wishes;
    (void)pthread_cond_broadcast(&proxy->taken);
    (void)pthread_mutex_unlock(&proxy->lock);
    return !proxy->conditions.stop;
}

struct poll_set {
    struct pollfd fds[2 + CONNECTIONS_MAX * SIDES];
    int timeout_ms;
};

static void watch(struct tcp_proxy *proxy, struct poll_set *set, uint64_t now_ms)
{
    bool const accepts = proxy->conditions.stalled == 0;
    set->timeout_ms = -1;
    set->fds[0] = (struct pollfd){.fd = proxy->bell, .events = POLLIN};
    set->fds[1] = (struct pollfd){.fd = accepts ? proxy->listener : -1, .events = POLLIN};
    for (size_t i = 0; i < proxy->pairs_len; i++) {
        const struct connection_pair *const pair = proxy->pairs[i];
        for (int side = 0; side < SIDES; side++) {
            const struct flow *const flow = &pair->flows[side];
            short const in = wants_read(proxy, pair, side) ? POLLIN : 0;
            short const out = wants_write(proxy, pair, 1 - side, now_ms) ? POLLOUT : 0;
            short const events = (short)(in | out);
            /* -1: whoever wants nothing must not be told of its end, either */
            set->fds[2 + i * SIDES + (size_t)side] =
                (struct pollfd){.fd = events != 0 ? pair->fds[side] : -1, .events = events};
            if (flow->chunks_len > 0 && flow->chunks[0].due_ms > now_ms && !is_stalled(proxy, side) &&
                (set->timeout_ms < 0 || flow->chunks[0].due_ms - now_ms < (uint64_t)set->timeout_ms))
                set->timeout_ms = (int)(flow->chunks[0].due_ms - now_ms);
        }
    }
}

static void serve(struct tcp_proxy *proxy, const struct poll_set *set, uint64_t now_ms)
{
    for (size_t i = proxy->pairs_len; i-- > 0;) { /* backwards: the last one takes the place of what ends */
        struct connection_pair *const pair = proxy->pairs[i];
        for (int side = 0; side < SIDES; side++) {
            short const got = set->fds[2 + i * SIDES + (size_t)side].revents;
            if (got != 0 && wants_read(proxy, pair, side))
                read_some(proxy, pair, side, now_ms);
            if (got != 0 && wants_write(proxy, pair, 1 - side, now_ms))
                write_some(proxy, pair, 1 - side);
        }
        if (!settle(proxy, pair))
            end_pair(proxy, i, false);
    }
}

static void *thread_main(void *arg)
{
    struct tcp_proxy *const proxy = arg;
    static _Thread_local struct poll_set set;
    uint64_t rung;
    while (take_conditions(proxy)) {
        watch(proxy, &set, clock_monotonic_ms());
        if (poll(set.fds, (nfds_t)(2 + proxy->pairs_len * SIDES), set.timeout_ms) < 0 && errno != EINTR)
            break;
        if (set.fds[0].revents != 0 && read(proxy->bell, &rung, sizeof rung) < 0 && errno != EAGAIN)
            break;
        serve(proxy, &set, clock_monotonic_ms());
        if (set.fds[1].revents != 0) /* last: the set knows nothing of it */
            accept_one(proxy);
    }
    while (proxy->pairs_len > 0)
        end_pair(proxy, 0, true);
    return NULL;
}

/* ---- calls of tests ---- */

static void release(struct tcp_proxy *proxy)
{
    if (proxy->listener >= 0)
        close(proxy->listener);
    if (proxy->bell >= 0)
        close(proxy->bell);
    (void)pthread_mutex_destroy(&proxy->lock);
    (void)pthread_cond_destroy(&proxy->taken);
    free(proxy);
}

struct tcp_proxy *tcp_proxy_start(uint16_t server_port)
{
    struct tcp_proxy *const proxy = calloc(1, sizeof *proxy);
    if (proxy == NULL)
        return NULL;
    proxy->server_port = server_port;
    proxy->listener = listen_here(&proxy->port);
    proxy->bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    (void)pthread_mutex_init(&proxy->lock, NULL);
    (void)pthread_cond_init(&proxy->taken, NULL);
    if (proxy->listener >= 0 && proxy->bell >= 0 &&
        pthread_create(&proxy->thread, NULL, thread_main, proxy) == 0)
        return proxy;
    release(proxy);
    return NULL;
}

/* Returns when the thread has taken it. */
static void set_conditions(struct tcp_proxy *proxy, const struct conditions *conditions)
{
    uint64_t const one = 1;
    (void)pthread_mutex_lock(&proxy->lock);
    proxy->wanted = *conditions;
    uint64_t const wish = ++proxy->wishes;
    ssize_t const n = write(proxy->bell, &one, sizeof one);
    assert(n == (ssize_t)sizeof one);
    (void)n;
    while (proxy->wishes_taken < wish)
        (void)pthread_cond_wait(&proxy->taken, &proxy->lock);
    (void)pthread_mutex_unlock(&proxy->lock);
}

static struct conditions wanted_conditions(struct tcp_proxy *proxy)
{
    (void)pthread_mutex_lock(&proxy->lock);
    struct conditions const conditions = proxy->wanted;
    (void)pthread_mutex_unlock(&proxy->lock);
    return conditions;
}

void tcp_proxy_stop(struct tcp_proxy *proxy)
{
    if (proxy == NULL)
        return;
    set_conditions(proxy, &(struct conditions){.stop = true});
    (void)pthread_join(proxy->thread, NULL);
    release(proxy);
}

uint16_t tcp_proxy_port(const struct tcp_proxy *proxy)
{
    return proxy->port;
}

void tcp_proxy_stall(struct tcp_proxy *proxy, enum tcp_way ways)
{
    struct conditions conditions = wanted_conditions(proxy);
    conditions.stalled = ways;
    set_conditions(proxy, &conditions);
}

void tcp_proxy_delay(struct tcp_proxy *proxy, enum tcp_way ways, uint64_t delay_ms)
{
    struct conditions conditions = wanted_conditions(proxy);
    for (int side = 0; side < SIDES; side++)
        if ((ways & (side == 0 ? TCP_TO_SERVER : TCP_TO_CLIENT)) != 0)
            conditions.delay_ms[side] = delay_ms;
    set_conditions(proxy, &conditions);
}

void tcp_proxy_cut(struct tcp_proxy *proxy)
{
    struct conditions conditions = wanted_conditions(proxy);
    conditions.cut = true;
    set_conditions(proxy, &conditions);
}

void tcp_proxy_heal(struct tcp_proxy *proxy)
{
    set_conditions(proxy, &(struct conditions){.cut = false});
}

size_t tcp_proxy_connections(struct tcp_proxy *proxy)
{
    (void)pthread_mutex_lock(&proxy->lock);
    size_t const n = proxy->connections;
    (void)pthread_mutex_unlock(&proxy->lock);
    return n;
}

uint64_t tcp_proxy_passed(struct tcp_proxy *proxy, enum tcp_way way)
{
    (void)pthread_mutex_lock(&proxy->lock);
    uint64_t const n = proxy->passed[way == TCP_TO_SERVER ? 0 : 1];
    (void)pthread_mutex_unlock(&proxy->lock);
    return n;
}
