#include "listen_address.h"
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static thole_status listen_address_refuse(const char *text, thole_error *reterr)
{
    return thole_fail(reterr, THOLE_INVALID,
                      "\"%.60s\" is no address to listen on: give it as PORT, 0.0.0.0:PORT or [::]:PORT",
                      text);
}

/* 1 to 5 digits, at most 65535. */
static bool read_port(const char *text, in_port_t *ret)
{
    unsigned value = 0;
    size_t const len = strnlen(text, 6);
    if (len == 0 || len > 5)
        return false;
    for (size_t i = 0; i < len; i++) {
        if (text[i] < '0' || text[i] > '9')
            return false;
        value = value * 10 + (unsigned)(text[i] - '0');
    }
    *ret = htons((uint16_t)value);
    return value <= UINT16_MAX;
}

thole_status listen_address_parse(const char *text, struct sockaddr_storage *ret, thole_error *reterr)
{
    char host[INET6_ADDRSTRLEN + 2];
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6};
    in_port_t port = 0;
    const char *const colon = strrchr(text, ':');
    size_t const len = colon == NULL ? 0 : (size_t)(colon - text);
    if (!read_port(colon == NULL ? text : colon + 1, &port) || len >= sizeof host)
        return listen_address_refuse(text, reterr);
    v4.sin_port = v6.sin6_port = port;
    memset(ret, 0, sizeof *ret);
    (void)snprintf(host, sizeof host, "%.*s", (int)len, text);
    if (len > 2 && host[0] == '[' && host[len - 1] == ']') {
        host[len - 1] = '\0';
        if (inet_pton(AF_INET6, host + 1, &v6.sin6_addr) != 1)
            return listen_address_refuse(text, reterr);
        memcpy(ret, &v6, sizeof v6);
        return THOLE_OK;
    }
    if (colon != NULL && inet_pton(AF_INET, host, &v4.sin_addr) != 1)
        return listen_address_refuse(text, reterr);
    memcpy(ret, &v4, sizeof v4);
    return THOLE_OK;
}

void listen_address_loopback(uint16_t port, struct sockaddr_storage *ret)
{
    struct sockaddr_in const v4 = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    memset(ret, 0, sizeof *ret);
    memcpy(ret, &v4, sizeof v4);
}

void listen_address_format(const struct sockaddr_storage *address, char ret[LISTEN_ADDRESS_BYTES])
{
    char host[INET6_ADDRSTRLEN] = "";
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    memcpy(&v4, address, sizeof v4);
    memcpy(&v6, address, sizeof v6);
    bool const is_v6 = address->ss_family == AF_INET6;
    (void)inet_ntop(address->ss_family, is_v6 ? (const void *)&v6.sin6_addr : (const void *)&v4.sin_addr,
                    host, sizeof host);
    (void)snprintf(ret, LISTEN_ADDRESS_BYTES, is_v6 ? "[%s]:%u" : "%s:%u", host,
                   (unsigned)ntohs(is_v6 ? v6.sin6_port : v4.sin_port));
}

thole_status listen_address_open(const struct sockaddr_storage *address, int backlog, int *ret,
                                 thole_error *reterr)
{
    char text[LISTEN_ADDRESS_BYTES];
    int const on = 1;
    socklen_t const len =
        address->ss_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
    listen_address_format(address, text);
    int const fd = socket(address->ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return thole_fail(reterr, THOLE_UNAVAILABLE, "--http: cannot listen on %s: %s", text,
                          strerror(errno));
    if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
        bind(fd, (const struct sockaddr *)address, len) != 0 || listen(fd, backlog) != 0) {
        int const why = errno;
        (void)close(fd);
        return thole_fail(reterr, THOLE_UNAVAILABLE, "--http: cannot listen on %s: %s", text, strerror(why));
    }
    *ret = fd;
    return THOLE_OK;
}

void listen_address_of(int fd, char ret[LISTEN_ADDRESS_BYTES])
{
    struct sockaddr_storage bound = {0};
    socklen_t len = sizeof bound;
    ret[0] = '\0';
    if (getsockname(fd, (struct sockaddr *)&bound, &len) == 0)
        listen_address_format(&bound, ret);
}
