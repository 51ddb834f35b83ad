/* The proxy that tests put between a worker and its servers. The test is both the client and the server. */
#include "clock.h"
#include "tcp_proxy.h"
#include "thole_cunit.h"
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

enum { WAIT_MS = 20000, QUIET_MS = 30, LARGE_BYTES = 1 << 20 };

static int listener = -1;
static uint16_t port;
static struct tcp_proxy *proxy;
static int client, server;

static int tcp_socket(void)
{
    return socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
}

static int dial(uint16_t to)
{
    struct sockaddr_in const address = {
        .sin_family = AF_INET, .sin_port = htons(to), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int const fd = tcp_socket();
    CU_ASSERT_EQUAL(connect(fd, (const struct sockaddr *)&address, sizeof address), 0);
    return fd;
}

static bool readable(int fd, int wait_ms)
{
    return poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, wait_ms) == 1;
}

static int take(void)
{
    return readable(listener, WAIT_MS) ? accept(listener, NULL, NULL) : -1;
}

static void say(int fd, const char *text)
{
    CU_ASSERT_EQUAL(send(fd, text, strlen(text), MSG_NOSIGNAL), (ssize_t)strlen(text));
}

/* Reads exactly what is expected, or says what came. */
static void hear(int fd, const char *want)
{
    char got[64] = "";
    size_t len = 0;
    while (len < strlen(want) && readable(fd, WAIT_MS)) {
        ssize_t const n = recv(fd, got + len, strlen(want) - len, 0);
        if (n <= 0)
            break;
        len += (size_t)n;
    }
    CHECK_STR("heard", got, want);
}

static void check_end(const char *who, int fd, const char *want)
{
    char byte;
    ssize_t const n = readable(fd, WAIT_MS) ? recv(fd, &byte, 1, 0) : 1;
    const char *const got = n == 0 ? "end" : n < 0 && errno == ECONNRESET ? "reset" : "alive";
    CHECK_STR(who, got, want);
}

static void begin(void)
{
    proxy = tcp_proxy_start(port);
    CU_ASSERT_PTR_NOT_NULL(proxy);
    client = dial(tcp_proxy_port(proxy));
    server = take();
    CU_ASSERT_TRUE(server >= 0);
}

static void end(void)
{
    close(client);
    close(server);
    tcp_proxy_stop(proxy);
}

static void test_passes_both_ways(void)
{
    begin();
    say(client, "hello");
    hear(server, "hello");
    say(server, "good day");
    hear(client, "good day");
    CU_ASSERT_EQUAL(tcp_proxy_passed(proxy, TCP_TO_SERVER), 5);
    CU_ASSERT_EQUAL(tcp_proxy_passed(proxy, TCP_TO_CLIENT), 8);
    CU_ASSERT_EQUAL(tcp_proxy_connections(proxy), 1);
    end();
}

static void test_stalls(void)
{
    static const struct stall_case {
        const char *name;
        enum tcp_way ways;
        bool to_server, to_client; /* comes through at once */
    } cases[] = {
        {"both", TCP_BOTH, false, false},
        {"to the server", TCP_TO_SERVER, false, true},
        {"to the client", TCP_TO_CLIENT, true, false},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        begin();
        tcp_proxy_stall(proxy, cases[i].ways);
        say(client, "up");
        say(server, "down");
        if (cases[i].to_server)
            hear(server, "up");
        if (cases[i].to_client)
            hear(client, "down");
        CHECK_STR(cases[i].name, readable(server, cases[i].to_server ? 0 : QUIET_MS) ? "heard" : "", "");
        CHECK_STR(cases[i].name, readable(client, cases[i].to_client ? 0 : QUIET_MS) ? "heard" : "", "");
        say(client, ", more");
        tcp_proxy_heal(proxy);
        hear(server, cases[i].to_server ? ", more" : "up, more");
        hear(client, cases[i].to_client ? "" : "down");
        end();
    }
}

static void test_new_connections_wait_for_the_end_of_a_stall(void)
{
    begin();
    tcp_proxy_stall(proxy, TCP_TO_CLIENT);
    int const second = dial(tcp_proxy_port(proxy)); /* the kernel answers for it */
    say(second, "early");
    CU_ASSERT_FALSE(readable(listener, QUIET_MS));
    tcp_proxy_heal(proxy);
    int const accepted = take();
    hear(accepted, "early");
    close(second);
    close(accepted);
    end();
}

static void test_delay(void)
{
    enum { DELAY_MS = 150 };
    begin();
    tcp_proxy_delay(proxy, TCP_TO_SERVER, DELAY_MS);
    uint64_t const from_ms = clock_monotonic_ms();
    say(client, "late");
    say(server, "at once");
    hear(client, "at once");
    CU_ASSERT_EQUAL(tcp_proxy_passed(proxy, TCP_TO_SERVER), 0);
    hear(server, "late");
    CU_ASSERT_TRUE(clock_monotonic_ms() - from_ms >= DELAY_MS);
    tcp_proxy_heal(proxy);
    end();
}

static void test_cut(void)
{
    begin();
    tcp_proxy_stall(proxy, TCP_BOTH);
    say(client, "never");
    tcp_proxy_cut(proxy);
    check_end("client", client, "reset");
    check_end("server", server, "reset");
    tcp_proxy_stall(proxy, 0); /* still cut */
    int const refused = dial(tcp_proxy_port(proxy));
    check_end("refused", refused, "reset");
    close(refused);
    close(client);
    close(server);
    tcp_proxy_heal(proxy);
    client = dial(tcp_proxy_port(proxy));
    server = take();
    say(client, "again");
    hear(server, "again");
    end();
}

static void test_ends(void)
{
    begin();
    say(client, "that is all");
    CU_ASSERT_EQUAL(shutdown(client, SHUT_WR), 0);
    hear(server, "that is all");
    check_end("client's end", server, "end");
    say(server, "thanks");
    hear(client, "thanks");
    close(server);
    check_end("server's end", client, "end");
    end();
}

/* The server does not know that its client is gone until the stall is over; then it gets all of it. */
static void test_an_end_behind_a_stall(void)
{
    begin();
    tcp_proxy_stall(proxy, TCP_TO_SERVER);
    say(client, "last words");
    close(client);
    say(server, "to nobody");
    CU_ASSERT_FALSE(readable(server, QUIET_MS));
    tcp_proxy_heal(proxy);
    hear(server, "last words");
    CU_ASSERT_TRUE(readable(server, WAIT_MS)); /* end of the connection, or a reset because of the bytes
                                                  sent */
    client = -1;
    end();
}

static void test_no_server(void)
{
    uint16_t free_port;
    struct tcp_proxy *other = tcp_proxy_start(1);
    free_port = tcp_proxy_port(other);
    int const fd = dial(free_port);
    check_end("nobody listens", fd, "reset");
    close(fd);
    tcp_proxy_stop(other);
}

static uint8_t pattern(size_t i)
{
    return (uint8_t)(i * 31 + i / 251);
}

static void *send_large(void *arg)
{
    uint8_t *const bytes = arg;
    for (size_t at = 0; at < LARGE_BYTES;) {
        ssize_t const n = send(client, bytes + at, LARGE_BYTES - at, MSG_NOSIGNAL);
        if (n <= 0)
            break;
        at += (size_t)n;
    }
    return NULL;
}

/* More than the proxy and the kernel hold, through a stall and a delay: all of it, in order. */
static void test_much(void)
{
    uint8_t *const bytes = malloc(LARGE_BYTES), *const got = calloc(1, LARGE_BYTES);
    pthread_t sender;
    size_t at = 0;
    for (size_t i = 0; i < LARGE_BYTES; i++)
        bytes[i] = pattern(i);
    begin();
    tcp_proxy_stall(proxy, TCP_TO_SERVER);
    CU_ASSERT_EQUAL(pthread_create(&sender, NULL, send_large, bytes), 0);
    CU_ASSERT_FALSE(readable(server, QUIET_MS));
    tcp_proxy_stall(proxy, 0);
    tcp_proxy_delay(proxy, TCP_BOTH, 1);
    while (at < LARGE_BYTES && readable(server, WAIT_MS)) {
        ssize_t const n = recv(server, got + at, LARGE_BYTES - at, 0);
        if (n <= 0)
            break;
        at += (size_t)n;
    }
    (void)pthread_join(sender, NULL);
    CU_ASSERT_EQUAL(at, LARGE_BYTES);
    CU_ASSERT_EQUAL(memcmp(bytes, got, LARGE_BYTES), 0);
    end();
    free(bytes);
    free(got);
}

static const struct thole_test tests[] = {
    {"passes both ways", test_passes_both_ways},
    {"stalls", test_stalls},
    {"new connections wait for the end of a stall", test_new_connections_wait_for_the_end_of_a_stall},
    {"delay", test_delay},
    {"cut", test_cut},
    {"ends", test_ends},
    {"an end behind a stall", test_an_end_behind_a_stall},
    {"no server", test_no_server},
    {"much", test_much},
};

int main(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof address;
    listener = tcp_socket();
    if (bind(listener, (struct sockaddr *)&address, len) != 0 || listen(listener, 8) != 0 ||
        getsockname(listener, (struct sockaddr *)&address, &len) != 0)
        return 1;
    port = ntohs(address.sin_port);
    int const result = thole_run_suite("tcp_proxy", tests, ARRAY_LEN(tests));
    close(listener);
    return result;
}
