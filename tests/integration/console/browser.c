#include "browser.h"
#include "clock.h"
#include <arpa/inet.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { ANSWER_MS = 20000 };

static int connect_to(const struct browser *browser)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const char *const colon = strrchr(browser->host, ':');
    address.sin_port = htons((uint16_t)strtoul(colon + 1, NULL, 10));
    int const fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, (const struct sockaddr *)&address, sizeof address) == 0)
        return fd;
    if (fd >= 0)
        (void)close(fd);
    return -1;
}

int browser_begin(const struct browser *browser, const char *text)
{
    int const fd = connect_to(browser);
    if (fd >= 0)
        (void)!send(fd, text, strlen(text), MSG_NOSIGNAL);
    return fd;
}

static int send_request(const struct browser *browser, const char *method, const char *path,
                        const char *headers, const char *body, const char *connection)
{
    size_t const len = body == NULL ? 0 : strlen(body);
    char head[4096];
    int const fd = connect_to(browser);
    bool const host = strstr(headers, "Host:") != NULL;
    int const n = snprintf(
        head, sizeof head, "%s %s HTTP/1.1\r\n%s%s%s%sConnection: %s\r\nContent-Length: %zu\r\n\r\n", method,
        path, host ? "" : "Host: ", host ? "" : browser->host, host ? "" : "\r\n", headers, connection, len);
    if (fd < 0 || n < 0 || (size_t)n >= sizeof head || send(fd, head, (size_t)n, MSG_NOSIGNAL) != n)
        return fd;
    for (size_t sent = 0; sent < len;) {
        ssize_t const k = send(fd, body + sent, len - sent, MSG_NOSIGNAL);
        if (k <= 0)
            break;
        sent += (size_t)k;
    }
    return fd;
}

void browser_ask(struct browser *browser, const char *method, const char *path, const char *headers,
                 const char *body)
{
    static char all[BROWSER_BYTES_MAX];
    size_t len = 0;
    ssize_t n;
    struct pollfd ready = {.fd = send_request(browser, method, path, headers, body, "close"),
                           .events = POLLIN};
    browser->code = 0;
    browser->body_len = 0;
    browser->head[0] = browser->body[0] = '\0';
    while (ready.fd >= 0 && len < sizeof all - 1 && poll(&ready, 1, ANSWER_MS) == 1 &&
           (n = recv(ready.fd, all + len, sizeof all - 1 - len, 0)) > 0)
        len += (size_t)n;
    if (ready.fd >= 0)
        (void)close(ready.fd);
    all[len] = '\0';
    const char *const end = strstr(all, "\r\n\r\n");
    if (end == NULL || sscanf(all, "HTTP/1.1 %d", &browser->code) != 1)
        return;
    (void)snprintf(browser->head, sizeof browser->head, "%.*s", (int)(end - all), all);
    browser->body_len = len - (size_t)(end + 4 - all);
    memcpy(browser->body, end + 4, browser->body_len);
    browser->body[browser->body_len] = '\0';
}

bool browser_said(const struct browser *browser, const char *text)
{
    return strstr(browser->body, text) != NULL;
}

int browser_listen(const struct browser *browser, const char *path, const char *headers)
{
    return send_request(browser, "GET", path, headers, NULL, "keep-alive");
}

bool browser_heard(int fd, char *to, size_t cap, const char *text, uint64_t wait_ms)
{
    uint64_t const until = clock_monotonic_ms() + wait_ms;
    for (;;) {
        size_t const len = strlen(to);
        uint64_t const now = clock_monotonic_ms();
        struct pollfd ready = {.fd = fd, .events = POLLIN};
        if (strstr(to, text) != NULL)
            return true;
        if (now >= until || len + 1 >= cap || poll(&ready, 1, (int)(until - now)) != 1)
            return false;
        ssize_t const n = recv(fd, to + len, cap - 1 - len, 0);
        if (n <= 0)
            return false;
        to[len + (size_t)n] = '\0';
    }
}
