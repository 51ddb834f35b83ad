/* Is a server ready? Asked in its own protocol by hand, so that no client library is needed. */
#include "clock.h"
#include "jscan.h"
#include "json.h"
#include "server_process.h"
#include <arpa/inet.h>
#include <assert.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum {
    ANSWER_BYTES = 16384,
    BODY_BYTES = 256,
    ATTEMPT_MS = 2000,
    PORT_FIRST = 20000,
    PORT_COUNT = 10000,
    PORT_SHARE = 25,
    PORT_SHARES = PORT_COUNT / PORT_SHARE,
    PORT_STRIDE = 7919
};

static struct sockaddr_in server_probe_loopback(uint16_t port)
{
    return (struct sockaddr_in){
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
}

static int connect_to(uint16_t port)
{
    struct sockaddr_in const to = server_probe_loopback(port);
    int const fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, (const struct sockaddr *)&to, sizeof to) != 0) {
        close(fd);
        return -1;
    }
    return fd;
}

bool server_port_is_open(uint16_t port)
{
    int const fd = connect_to(port);
    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

static bool can_bind(uint16_t port)
{
    struct sockaddr_in const at = server_probe_loopback(port);
    int const fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int const on = 1;
    bool const bound = fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0 &&
                       bind(fd, (const struct sockaddr *)&at, sizeof at) == 0 && listen(fd, 1) == 0;
    if (fd >= 0)
        close(fd);
    return bound;
}

static uint32_t own_share;

/* A name in the kernel's list of sockets, which it forgets when this process ends, says that a share is
 * taken. */
static void take_share(void)
{
    int const fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    uint32_t const first = (uint32_t)getpid() % PORT_SHARES;
    own_share = first;
    for (uint32_t i = 0; fd >= 0 && i < PORT_SHARES; i++) {
        struct sockaddr_un name = {.sun_family = AF_UNIX};
        uint32_t const share = (first + i) % PORT_SHARES;
        int const len = snprintf(name.sun_path + 1, sizeof name.sun_path - 1, "thole-ports-%u", share);
        if (bind(fd, (const struct sockaddr *)&name,
                 (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)len)) == 0) {
            own_share = share;
            return; /* and it stays open */
        }
    }
    if (fd >= 0)
        close(fd); /* all are taken: the first is as good as any */
}

/*
 * Not a port that the kernel chooses: those are also given to outgoing connections, and one could take the
 * port of a server between its end and its restart (a client that keeps trying can even connect to itself).
 * Each process has a part of the range of its own: another one must not choose, nor try, the port of a server
 * that is about to be started again. Other parts come second.
 */
uint16_t server_free_port(void)
{
    static atomic_uint turn;
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, take_share);
    uint32_t const own = own_share * PORT_SHARE;
    uint32_t const first = atomic_fetch_add(&turn, 1);
    for (uint32_t i = 0; i < PORT_SHARE + PORT_COUNT; i++) {
        uint32_t const offset = i < PORT_SHARE ? own + (first + i) % PORT_SHARE : own + i * PORT_STRIDE;
        uint16_t const port = (uint16_t)(PORT_FIRST + offset % PORT_COUNT);
        if (can_bind(port))
            return port;
    }
    return 0;
}

static bool server_probe_send_all(int fd, const void *bytes, size_t len)
{
    return send(fd, bytes, len, MSG_NOSIGNAL) == (ssize_t)len;
}

/* Reads on until the text holds one of the two words; false when it ends or takes too long before that. */
static bool server_probe_read_until(int fd, char *text, size_t cap, const char *word, const char *other)
{
    uint64_t const end = clock_monotonic_ms() + ATTEMPT_MS;
    size_t len = 0;
    text[0] = '\0';
    while (len < cap - 1 && strstr(text, word) == NULL && strstr(text, other) == NULL) {
        struct pollfd wait = {.fd = fd, .events = POLLIN};
        uint64_t const now = clock_monotonic_ms();
        if (now >= end || poll(&wait, 1, (int)(end - now)) != 1)
            return false;
        ssize_t const n = recv(fd, text + len, cap - 1 - len, 0);
        if (n <= 0)
            return false;
        len += (size_t)n;
        text[len] = '\0';
    }
    return true;
}

/* The options of CONNECT. */
static thole_slice connect_options(const struct server *server, char bytes[BODY_BYTES])
{
    struct json json;
    struct json_room room = {.bytes = bytes, .cap = BODY_BYTES};
    json_to_room(&json, &room);
    json_object(&json);
    json_member_bool(&json, "verbose", false);
    json_member_bool(&json, "headers", true);
    json_member_bool(&json, "no_responders", true);
    if (server->password[0] != 0) {
        json_member_text(&json, "user", "thole");
        json_member_text(&json, "pass", server->password);
    }
    json_end(&json);
    return json_room_bytes(&room);
}

/* Whether the message has an answer of JetStream's API that is not an error. */
static bool is_good_answer(const char *message)
{
    const char *const brace = strchr(message, '{');
    thole_slice const body = thole_slice_from(brace == NULL ? "" : brace);
    thole_slice value;
    return json_find(body, "type", &value) && !json_find(body, "error", &value);
}

/* One request of JetStream's API; true when the answer came and is not an error. */
static bool nats_request(const struct server *server, const char *subject, thole_slice body)
{
    char text[ANSWER_BYTES], ask[512], bytes[BODY_BYTES];
    thole_slice const options = connect_options(server, bytes);
    int const n =
        snprintf(ask, sizeof ask, "CONNECT %.*s\r\nSUB _INBOX.ready 1\r\nPUB %s _INBOX.ready %zu\r\n%.*s\r\n",
                 THOLE_FMT(options), subject, body.len, THOLE_FMT(body));
    assert(n > 0 && (size_t)n < sizeof ask);
    int const fd = connect_to(server->port);
    if (fd < 0)
        return false;
    bool const answered = server_probe_read_until(fd, text, sizeof text, "\r\n", "\r\n") &&
                          strncmp(text, "INFO ", 5) == 0 && server_probe_send_all(fd, ask, (size_t)n) &&
                          server_probe_read_until(fd, text, sizeof text, "_response\"", "HMSG") &&
                          is_good_answer(text);
    close(fd);
    return answered;
}

/* A JetStream server without its leader answers with an error, or not at all. */
bool nats_answers(const struct server *server)
{
    return nats_request(server, "$JS.API.INFO", THOLE_STR(""));
}

/* A young cluster has a leader before the leader knows all members: tried with a stream that is removed
 * again. */
bool nats_places(const struct server *server, size_t replicas)
{
    char body[BODY_BYTES];
    struct json json;
    struct json_room room = {.bytes = body, .cap = sizeof body};
    json_to_room(&json, &room);
    json_object(&json);
    json_member_text(&json, "name", "THOLE_READY");
    json_key(&json, "subjects");
    json_array(&json);
    json_string(&json, THOLE_STR("thole.ready"));
    json_end(&json);
    json_member_text(&json, "storage", "memory");
    json_member_number(&json, "num_replicas", replicas);
    json_end(&json);
    return nats_request(server, "$JS.API.STREAM.CREATE.THOLE_READY", json_room_bytes(&room)) &&
           nats_request(server, "$JS.API.STREAM.DELETE.THOLE_READY", THOLE_STR(""));
}

/* A Postgres that is starting or recovering answers with an error (E), a ready one asks who we are (R). */
bool postgres_answers(uint16_t port)
{
    static const char startup[] =
        "\0\0\0\x26\0\3\0\0user\0thole\0database\0postgres\0"; /* and the NUL of the literal */
    char answer = 0;
    int const fd = connect_to(port);
    if (fd < 0)
        return false;
    struct pollfd wait = {.fd = fd, .events = POLLIN};
    bool const answered = server_probe_send_all(fd, startup, sizeof startup) &&
                          poll(&wait, 1, ATTEMPT_MS) == 1 && recv(fd, &answer, 1, 0) == 1;
    close(fd);
    return answered && answer == 'R';
}
