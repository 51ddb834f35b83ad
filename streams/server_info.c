/* The server's INFO line. */
#include "server_info.h"
#include "clock.h"
#include "jscan.h"
#include "nats_url.h"
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { INFO_LINE_MAX = 256 * 1024, INFO_READ_BYTES = 4096 };

/* Waits for events until the deadline. */
static bool socket_ready(int fd, short events, int64_t deadline)
{
    for (;;) {
        int64_t const left = deadline - (int64_t)clock_monotonic_ms();
        struct pollfd slot = {.fd = fd, .events = events};
        int const n = left <= 0 ? 0 : poll(&slot, 1, (int)left);
        if (n > 0)
            return true;
        if (n == 0 || errno != EINTR)
            return false;
    }
}

static int connect_one(const struct addrinfo *at, int64_t deadline)
{
    int const fd = socket(at->ai_family, at->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, at->ai_protocol);
    if (fd < 0)
        return -1;
    int failure = 0;
    socklen_t len = sizeof failure;
    if (connect(fd, at->ai_addr, at->ai_addrlen) == 0 ||
        (errno == EINPROGRESS && socket_ready(fd, POLLOUT, deadline) &&
         getsockopt(fd, SOL_SOCKET, SO_ERROR, &failure, &len) == 0 && failure == 0))
        return fd;
    (void)close(fd);
    return -1;
}

static int server_info_connect_any(const char *address, int64_t deadline)
{
    char host[NATS_ADDRESS_BYTES];
    const char *port = strrchr(address, ':') + 1; /* nats_url_address() put one there */
    size_t len = (size_t)(port - 1 - address);
    bool const bracket = len >= 2 && address[0] == '[' && address[len - 1] == ']';
    (void)snprintf(host, sizeof host, "%.*s", (int)(bracket ? len - 2 : len),
                   bracket ? address + 1 : address);
    struct addrinfo const hints = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *list = NULL;
    if (getaddrinfo(host, port, &hints, &list) != 0)
        return -1;
    int fd = -1;
    for (const struct addrinfo *at = list; at != NULL && fd < 0; at = at->ai_next)
        fd = connect_one(at, deadline);
    freeaddrinfo(list);
    return fd;
}

static bool server_info_read_line(int fd, int64_t deadline, struct buf *line)
{
    while (line->len == 0 || memchr(line->ptr, '\n', line->len) == NULL) {
        char piece[INFO_READ_BYTES];
        ssize_t const n = recv(fd, piece, sizeof piece, 0);
        if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
            return false;
        if (n < 0 && !socket_ready(fd, POLLIN, deadline))
            return false;
        if (n > 0)
            buf_append(line, piece, (size_t)n);
        if (buf_status(line) != THOLE_OK)
            return false;
    }
    return true;
}

static bool parse_info(thole_slice line, struct server_info *ret)
{
    thole_slice value;
    struct buf version;
    if (line.len < 5 || memcmp(line.ptr, "INFO ", 5) != 0)
        return false;
    thole_slice const json = {line.ptr + 5, line.len - 5};
    *ret = (struct server_info){.max_payload = 0};
    buf_init(&version, SERVER_VERSION_BYTES - 1);
    bool const found = json_find(json, "version", &value) && json_text(value, &version);
    (void)snprintf(ret->version, sizeof ret->version, "%s", buf_cstr(&version));
    buf_release(&version);
    if (json_find(json, "max_payload", &value))
        (void)json_uint(value, &ret->max_payload);
    ret->tls_verify = json_find(json, "tls_verify", &value) && json_is_true(value);
    ret->tls_required = json_find(json, "tls_required", &value) && json_is_true(value);
    ret->jetstream = json_find(json, "jetstream", &value) && json_is_true(value);
    return found;
}

thole_status server_info_read(const char *url, uint64_t timeout_ms, struct server_info *ret,
                              thole_error *reterr)
{
    char address[NATS_ADDRESS_BYTES];
    if (!nats_url_address(url, address))
        return thole_fail(reterr, THOLE_INVALID, "the NATS URL names no server; expected nats://host:port");
    int64_t const deadline = (int64_t)clock_monotonic_ms() + (int64_t)timeout_ms;
    int const fd = server_info_connect_any(address, deadline);
    if (fd < 0)
        return thole_fail(reterr, THOLE_UNAVAILABLE, "no NATS server answers at %s", address);
    struct buf line;
    buf_init(&line, INFO_LINE_MAX);
    bool const good = server_info_read_line(fd, deadline, &line) && parse_info(buf_bytes(&line), ret);
    buf_release(&line);
    (void)close(fd);
    if (!good)
        return thole_fail(reterr, THOLE_UNAVAILABLE, "%s does not greet like a NATS server within %llu ms",
                          address, (unsigned long long)timeout_ms);
    return THOLE_OK;
}
