/* Whether a server is ready, and which ports are free: what is said to it, and what its answers mean. Sockets
 * are played. */
#include "clock.h"
#include "server_process.h"
#include "thole_cunit.h"
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { FD_FIRST = 500, LOG_BYTES = 8192 };

static struct {
    char log[LOG_BYTES];
    const char *answers; /* "|" separates parts that come at once; ? = nothing comes; then it ends */
    const char *fails;   /* this call */
    uint64_t now_ms;
    int opened, open;
    uint16_t taken_from, taken_upto; /* ports that cannot be bound */
    unsigned binds;
} play;

static bool called(const char *fmt, ...) THOLE_PRINTF(1, 2);
static bool called(const char *fmt, ...)
{
    size_t const at = strlen(play.log);
    va_list args;
    va_start(args, fmt);
    int const n = vsnprintf(play.log + at, sizeof play.log - at, fmt, args);
    va_end(args);
    CU_ASSERT_FATAL(n >= 0 && at + (size_t)n + 3 < sizeof play.log);
    bool const fine = play.fails == NULL || strncmp(play.log + at, play.fails, strlen(play.fails)) != 0;
    (void)snprintf(play.log + strlen(play.log), 4, fine ? "; " : "!; ");
    return fine;
}

/* Bytes but letters and marks as \xx. */
static void called_with(const char *name, const void *bytes, size_t len)
{
    char text[2048];
    size_t n = 0;
    for (size_t i = 0; i < len && n < sizeof text - 5; i++) {
        unsigned char const byte = ((const unsigned char *)bytes)[i];
        n += (size_t)snprintf(text + n, sizeof text - n, byte >= 32 && byte < 127 ? "%c" : "\\%02x", byte);
    }
    text[n] = '\0';
    (void)called("%s %s", name, text);
}

/* ---- libc ---- */

int __real_socket(int family, int type, int protocol);
int __wrap_socket(int family, int type, int protocol)
{
    (void)protocol;
    CU_ASSERT_EQUAL(type, SOCK_STREAM | SOCK_CLOEXEC);
    if (!called(family == AF_INET ? "socket" : "local"))
        return -1;
    play.open++;
    return FD_FIRST + play.opened++;
}

int __wrap_connect(int fd, __CONST_SOCKADDR_ARG to, socklen_t len)
{
    const struct sockaddr_in *const in = (const struct sockaddr_in *)(const void *)to.__sockaddr__;
    char host[32];
    CU_ASSERT_TRUE(fd >= FD_FIRST && len == sizeof *in && in->sin_family == AF_INET);
    return called("connect %s:%u", inet_ntop(AF_INET, &in->sin_addr, host, sizeof host), ntohs(in->sin_port))
               ? 0
               : -1;
}

int __wrap_setsockopt(int fd, int level, int name, const void *value, socklen_t len)
{
    (void)fd;
    CU_ASSERT_TRUE(level == SOL_SOCKET && name == SO_REUSEADDR && len == sizeof(int) &&
                   *(const int *)value == 1);
    return called("again") ? 0 : -1;
}

int __wrap_bind(int fd, __CONST_SOCKADDR_ARG to, socklen_t len)
{
    const struct sockaddr *const at = to.__sockaddr__;
    (void)fd;
    play.binds++;
    if (at->sa_family == AF_UNIX) {
        const struct sockaddr_un *const name = (const struct sockaddr_un *)(const void *)at;
        char text[40] = "";
        CU_ASSERT_EQUAL(name->sun_path[0], '\0');
        memcpy(text, name->sun_path + 1, len - 3);
        unsigned const share = (unsigned)strtoul(strrchr(text, '-') + 1, NULL, 10);
        return called("name %.12s%+d of the process", text, (int)share - (int)((unsigned)getpid() % 400))
                   ? 0
                   : -1;
    }
    const struct sockaddr_in *const in = (const struct sockaddr_in *)(const void *)at;
    uint16_t const port = ntohs(in->sin_port);
    CU_ASSERT_TRUE(len == sizeof *in && in->sin_addr.s_addr == htonl(INADDR_LOOPBACK));
    return called("bind") && (port < play.taken_from || port >= play.taken_upto) ? 0 : -1;
}

int __wrap_listen(int fd, int backlog)
{
    (void)fd;
    CU_ASSERT_EQUAL(backlog, 1);
    return called("listen") ? 0 : -1;
}

int __real_close(int fd);
int __wrap_close(int fd)
{
    if (fd < FD_FIRST)
        return __real_close(fd);
    play.open--;
    (void)called("close");
    return 0;
}

ssize_t __wrap_send(int fd, const void *bytes, size_t len, int flags)
{
    CU_ASSERT_TRUE(fd >= FD_FIRST && flags == MSG_NOSIGNAL);
    const char *const fails = play.fails;
    play.fails = NULL;
    called_with("send", bytes, len);
    play.fails = fails;
    return play.fails != NULL && strcmp(play.fails, "send") == 0 ? (ssize_t)len - 1 : (ssize_t)len;
}

int __wrap_poll(struct pollfd *fds, nfds_t n, int timeout_ms)
{
    CU_ASSERT_EQUAL(n, 1);
    CU_ASSERT_EQUAL(fds->events, POLLIN);
    (void)called("poll %d", timeout_ms);
    bool const never = play.answers[0] == '?';
    play.now_ms += never ? (uint64_t)timeout_ms : 100;
    return !never;
}

ssize_t __wrap_recv(int fd, void *to, size_t cap, int flags)
{
    CU_ASSERT_TRUE(fd >= FD_FIRST && flags == 0);
    size_t len = strcspn(play.answers, "|");
    size_t const given = len < cap ? len : cap;
    memcpy(to, play.answers, given);
    play.answers += given + (given == len && play.answers[given] == '|');
    (void)called("recv %zu", given);
    return (ssize_t)given;
}

uint64_t __wrap_clock_monotonic_ms(void)
{
    return play.now_ms;
}

static void begin(const char *answers, const char *fails)
{
    memset(&play, 0, sizeof play);
    play.answers = answers;
    play.fails = fails;
    play.now_ms = 5000;
}

static void check(const char *name, bool got, bool want, const char *log)
{
    CHECK_STR(name, got ? "ready" : "not ready", want ? "ready" : "not ready");
    CHECK_STR(name, play.log, log);
    CU_ASSERT_EQUAL(play.open, 0);
}

/* ---- NATS ---- */

#define OPEN "socket; connect 127.0.0.1:4222; "
#define ASK                                                                                                  \
    "send CONNECT {\"verbose\":false,\"headers\":true,\"no_responders\":true}\\0d\\0aSUB _INBOX.ready "      \
    "1\\0d\\0aPUB $JS.API.INFO _INBOX.ready 0\\0d\\0a\\0d\\0a; "
#define GOOD "{\"type\":\"io.nats.jetstream.api.v1.account_info_response\"}"

static void test_nats(void)
{
    static const struct {
        const char *answers, *fails;
        bool ready;
        const char *log;
    } rows[] = {
        {"INFO {}\r\n|" GOOD, NULL, true, OPEN "poll 2000; recv 9; " ASK "poll 2000; recv 57; close; "},
        {"IN|FO {}|\r\n|MSG {\"type\":\"x_|response\"}", NULL, true,
         OPEN "poll 2000; recv 2; poll 1900; recv 5; poll 1800; recv 2; " ASK
              "poll 2000; recv 15; poll 1900; recv 10; close; "},
        {"INFO {}\r\n|MSG {\"type\":\"x_response\",\"error\":{\"code\":503}}", NULL, false,
         OPEN "poll 2000; recv 9; " ASK "poll 2000; recv 46; close; "},
        {"INFO {}\r\n|HMSG _INBOX.ready 1 NATS/1.0 503", NULL, false,
         OPEN "poll 2000; recv 9; " ASK "poll 2000; recv 32; close; "},
        {"INFO {}\r\n|MSG {\"no\":\"x_response\"}", NULL, false,
         OPEN "poll 2000; recv 9; " ASK "poll 2000; recv 23; close; "},
        {"INFO {}\r\n|", NULL, false, OPEN "poll 2000; recv 9; " ASK "poll 2000; recv 0; close; "},
        {"INFO {}\r\n|?", NULL, false, OPEN "poll 2000; recv 9; " ASK "poll 2000; close; "},
        {"HELLO\r\n|" GOOD, NULL, false, OPEN "poll 2000; recv 7; close; "},
        {"INFO", NULL, false, OPEN "poll 2000; recv 4; poll 1900; recv 0; close; "},
        {"?", NULL, false, OPEN "poll 2000; close; "},
        {"", "socket", false, "socket!; "},
        {"", "connect", false, "socket; connect 127.0.0.1:4222!; close; "},
        {"INFO {}\r\n|" GOOD, "send", false, OPEN "poll 2000; recv 9; " ASK "close; "}};
    struct server const server = {.kind = SERVER_NATS, .port = 4222};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        begin(rows[i].answers, rows[i].fails);
        check(rows[i].answers, nats_answers(&server), rows[i].ready, rows[i].log);
    }
}

/* The server sends a byte at a time, for ever. */
static void test_nats_never_ends(void)
{
    static char answers[2 * 40000];
    struct server const server = {.kind = SERVER_NATS, .port = 4222};
    for (size_t i = 0; i + 2 < sizeof answers; i += 2)
        memcpy(answers + i, "x|", 3);
    begin(answers, NULL);
    CU_ASSERT_FALSE(nats_answers(&server));
    CU_ASSERT_EQUAL(play.now_ms, 7000);
    for (size_t i = 0; i + 1 < sizeof answers; i++)
        answers[i] = 'x';
    begin(answers, NULL);
    CU_ASSERT_FALSE(nats_answers(&server));
    CHECK_STR("fills the room", play.log, OPEN "poll 2000; recv 16383; close; ");
}

static void test_nats_with_password(void)
{
    struct server server = {.kind = SERVER_NATS, .port = 4222, .password = "Secret9"};
    begin("INFO {}\r\n|" GOOD, NULL);
    CU_ASSERT_TRUE(nats_answers(&server));
    CU_ASSERT_PTR_NOT_NULL(
        strstr(play.log, "\"no_responders\":true,\"user\":\"thole\",\"pass\":\"Secret9\"}\\0d\\0aSUB"));
}

static void test_nats_places(void)
{
    static const struct {
        const char *answers;
        bool placed;
    } rows[] = {{"INFO {}\r\n|" GOOD "|INFO {}\r\n|" GOOD, true},
                {"INFO {}\r\n|HMSG", false},
                {"INFO {}\r\n|" GOOD "|INFO {}\r\n|HMSG", false}};
    struct server const server = {.kind = SERVER_NATS, .port = 4222};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        begin(rows[i].answers, NULL);
        CU_ASSERT_EQUAL(nats_places(&server, 3), rows[i].placed);
        CU_ASSERT_PTR_NOT_NULL(strstr(play.log,
                                      "PUB $JS.API.STREAM.CREATE.THOLE_READY _INBOX.ready 85\\0d\\0a"
                                      "{\"name\":\"THOLE_READY\",\"subjects\":[\"thole.ready\"],"
                                      "\"storage\":\"memory\",\"num_replicas\":3}\\0d\\0a; "));
        bool const removes =
            strstr(play.log, "PUB $JS.API.STREAM.DELETE.THOLE_READY _INBOX.ready 0\\0d\\0a\\0d\\0a; ") !=
            NULL;
        CU_ASSERT_EQUAL(removes, i != 1);
        CU_ASSERT_EQUAL(play.open, 0);
    }
}

/* ---- Postgres ---- */

#define HELLO                                                                                                \
    "socket; connect 127.0.0.1:5432; send "                                                                  \
    "\\00\\00\\00&\\00\\03\\00\\00user\\00thole\\00database\\00postgres\\00\\00; "

static void test_postgres(void)
{
    static const struct {
        const char *answers, *fails;
        bool ready;
        const char *log;
    } rows[] = {{"R", NULL, true, HELLO "poll 2000; recv 1; close; "},
                {"Rest", NULL, true, HELLO "poll 2000; recv 1; close; "},
                {"E", NULL, false, HELLO "poll 2000; recv 1; close; "},
                {"", NULL, false, HELLO "poll 2000; recv 0; close; "},
                {"?", NULL, false, HELLO "poll 2000; close; "},
                {"R", "connect", false, "socket; connect 127.0.0.1:5432!; close; "}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        begin(rows[i].answers, rows[i].fails);
        check(rows[i].answers, postgres_answers(5432), rows[i].ready, rows[i].log);
    }
    begin("R", "send");
    CU_ASSERT_FALSE(postgres_answers(5432));
    CU_ASSERT_PTR_NULL(strstr(play.log, "poll"));
}

/* ---- ports ---- */

static void test_ports(void)
{
    begin("", NULL);
    check("open", server_port_is_open(77), true, "socket; connect 127.0.0.1:77; close; ");
    begin("", "connect");
    check("not open", server_port_is_open(77), false, "socket; connect 127.0.0.1:77!; close; ");
    begin("", "socket");
    check("no socket", server_port_is_open(77), false, "socket!; ");
}

/* The first call takes the process' share of all ports; its name stays taken. */
static void test_free_ports(void)
{
    uint16_t ports[25];
    begin("", "name thole-ports-+0");
    ports[0] = server_free_port();
    CHECK_STR("the first", play.log,
              "local; name thole-ports-+0 of the process!; name thole-ports-+1 of the process; socket; "
              "again; bind; "
              "listen; close; ");
    CU_ASSERT_EQUAL(play.open, 1);
    unsigned const share = (unsigned)(getpid() % 400 + 1) % 400;
    CU_ASSERT_EQUAL(ports[0], 20000 + share * 25);
    for (unsigned i = 1; i < 25; i++) {
        begin("", NULL);
        ports[i] = server_free_port();
        CHECK_STR("the next", play.log, "socket; again; bind; listen; close; ");
        CU_ASSERT_EQUAL(ports[i], ports[0] + i);
    }
    begin("", NULL);
    CU_ASSERT_EQUAL(server_free_port(), ports[0]); /* starts over */
    begin("", NULL);
    play.taken_from = ports[0];
    play.taken_upto = (uint16_t)(ports[0] + 25);
    uint16_t const other = server_free_port(); /* of another share */
    CU_ASSERT_TRUE(other >= 20000 && other < 30000);
    CU_ASSERT_TRUE(other < ports[0] || other >= ports[0] + 25);
    CU_ASSERT_EQUAL(play.open, 0);
}

static const struct thole_test tests[] = {
    {"NATS", test_nats},
    {"NATS that never ends", test_nats_never_ends},
    {"NATS with a password", test_nats_with_password},
    {"NATS' replicas", test_nats_places},
    {"Postgres", test_postgres},
    {"ports", test_ports},
    {"free ports", test_free_ports},
};
THOLE_TEST_MAIN("server_probe", tests)
