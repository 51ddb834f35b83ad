/* The server's INFO line: reaching the server, reading the line however it comes, and what it says. Sockets
 * and names are played. */
#include "clock.h"
#include "heap.h"
#include "server_info.h"
#include "thole_cunit.h"
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

enum { FD_FIRST = 500, LINE_BYTES = 300 * 1024 };

/* "|" separates parts that come at once; then it ends. ? = nothing comes any more; ~ = nothing yet; ! = an
 * error; * = interrupted. Of connects: o = at once, w = later, f = later, failed, g = later, result unknown,
 * s = no socket, r = refused, ? = never, further ones: o. */
static struct {
    char log[4096];
    const char *answers, *connects;
    size_t addresses; /* 0: the name has none */
    uint64_t now_ms;
    int opened, open, lists;
    struct addrinfo list[4];
    struct sockaddr_in places[4];
} play;

static void note(const char *fmt, ...) THOLE_PRINTF(1, 2);
static void note(const char *fmt, ...)
{
    size_t const at = strlen(play.log);
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(play.log + at, sizeof play.log - at, fmt, args);
    va_end(args);
}

uint64_t __wrap_clock_monotonic_ms(void)
{
    return play.now_ms;
}

int __wrap_getaddrinfo(const char *host, const char *port, const struct addrinfo *hints,
                       struct addrinfo **ret)
{
    CU_ASSERT_TRUE(hints->ai_socktype == SOCK_STREAM && hints->ai_family == AF_UNSPEC);
    note("looks up %s %s; ", host, port);
    if (play.addresses == 0)
        return EAI_NONAME;
    for (size_t i = 0; i < play.addresses; i++) {
        play.places[i] = (struct sockaddr_in){.sin_port = (in_port_t)i};
        play.list[i] = (struct addrinfo){.ai_family = AF_INET,
                                         .ai_socktype = SOCK_STREAM,
                                         .ai_protocol = IPPROTO_TCP,
                                         .ai_addrlen = sizeof play.places[i],
                                         .ai_addr = (struct sockaddr *)(void *)&play.places[i],
                                         .ai_next = i + 1 < play.addresses ? &play.list[i + 1] : NULL};
    }
    play.lists++;
    *ret = play.list;
    return 0;
}

void __wrap_freeaddrinfo(struct addrinfo *list)
{
    CU_ASSERT_PTR_EQUAL(list, play.list);
    play.lists--;
}

static char way;

int __wrap_socket(int family, int type, int protocol)
{
    CU_ASSERT_TRUE(family == AF_INET && protocol == IPPROTO_TCP);
    CU_ASSERT_EQUAL(type, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK);
    way = play.connects[0] == '\0' ? 'o' : *play.connects++;
    if (way == 's')
        return -1;
    play.open++;
    return FD_FIRST + play.opened++;
}

int __wrap_connect(int fd, __CONST_SOCKADDR_ARG to, socklen_t len)
{
    const struct sockaddr_in *const in = (const struct sockaddr_in *)(const void *)to.__sockaddr__;
    CU_ASSERT_TRUE(fd >= FD_FIRST && len == sizeof *in);
    note("connects to %u%c; ", in->sin_port, way);
    errno = way == 'r' ? ECONNREFUSED : EINPROGRESS;
    return way == 'o' ? 0 : -1;
}

int __wrap_getsockopt(int fd, int level, int name, void *value, socklen_t *len)
{
    (void)fd;
    CU_ASSERT_TRUE(level == SOL_SOCKET && name == SO_ERROR && *len == sizeof(int));
    *(int *)value = way == 'f' ? ECONNREFUSED : 0;
    return way == 'g' ? -1 : 0;
}

int __wrap_poll(struct pollfd *fds, nfds_t n, int timeout_ms)
{
    struct pollfd *const volatile at = fds; /* gcc takes it for written only */
    bool const writes = at->events == POLLOUT;
    CU_ASSERT_EQUAL(n, 1);
    note("waits%s %d; ", writes ? " to write" : "", timeout_ms);
    if (writes ? way == '?' : play.answers[0] == '?') {
        play.now_ms += (uint64_t)timeout_ms;
        return 0;
    }
    play.now_ms += 10;
    if (!writes && play.answers[0] == '*') {
        play.answers++;
        errno = EINTR;
        return -1;
    }
    if (!writes && play.answers[0] == '!') {
        errno = EBADF;
        return -1;
    }
    return 1;
}

ssize_t __wrap_recv(int fd, void *to, size_t cap, int flags)
{
    CU_ASSERT_TRUE(fd >= FD_FIRST && flags == 0);
    char const first = play.answers[0];
    errno = first == '#' ? ECONNRESET : EAGAIN;
    if (first == '~' || first == '#') {
        play.answers++;
        return -1;
    }
    if (first == '?' || first == '*' || first == '!')
        return -1;
    size_t const len = strcspn(play.answers, "|"), given = len < cap ? len : cap;
    memcpy(to, play.answers, given);
    play.answers += given + (given == len && play.answers[given] == '|');
    return (ssize_t)given;
}

int __real_close(int fd);
int __wrap_close(int fd)
{
    if (fd < FD_FIRST)
        return __real_close(fd);
    play.open--;
    return 0;
}

static thole_status read_from(const char *url, const char *answers, struct server_info *info,
                              thole_error *err)
{
    play.answers = answers;
    memset(info, 0xAA, sizeof *info);
    memset(err, 0, sizeof *err);
    thole_status const status = server_info_read(url, 1000, info, err);
    CU_ASSERT_EQUAL(play.open, 0);
    CU_ASSERT_EQUAL(play.lists, 0);
    return status;
}

static void begin(void)
{
    memset(&play, 0, sizeof play);
    play.addresses = 1;
    play.connects = "";
    play.now_ms = 7000;
}

#define INFO                                                                                                 \
    "INFO {\"version\":\"2.10.27\",\"max_payload\":1048576,\"tls_required\":true,\"jetstream\":true}\r\n"

static void test_how_it_comes(void)
{
    static const struct {
        const char *answers;
        bool good;
        const char *log;
    } rows[] = {{INFO, true, ""},
                {"I|N|F|O| |{|\"|v|e|r|s|i|o|n|\"|:|\"|2|.|1|0|.|2|7|\"|}|\r|\n", true, ""},
                {"~" INFO, true, "waits 1000; "},
                {"INFO {\"version\"|~:\"2.10.27\"}|~\r\n", true, "waits 1000; waits 990; "},
                {"*" INFO, true, "waits 1000; waits 990; "},
                {"~?", false, "waits 1000; "},
                {"INFO |~~?", false, "waits 1000; waits 990; "},
                {"!", false, "waits 1000; "},
                {"#", false, ""},
                {"", false, ""},
                {"INFO {\"version\":\"2.10.27\"}", false, ""},
                {"INFO {\"version\":\"2.10.27\"}\n", true, ""},
                {"INFO {}\r\n", false, ""},
                {"INFO {\"version\":7}\r\n", false, ""},
                {"INFO\r\n", false, ""},
                {"\n", false, ""},
                {"info {\"version\":\"2.10.27\"}\r\n", false, ""},
                {"-ERR 'x'\r\n", false, ""}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct server_info info;
        thole_error err;
        begin();
        thole_status const status = read_from("nats://u:secret@host:77", rows[i].answers, &info, &err);
        CHECK_STR(rows[i].answers, thole_status_name(status),
                  thole_status_name(rows[i].good ? THOLE_OK : THOLE_UNAVAILABLE));
        CHECK_STR(rows[i].answers, err.text,
                  rows[i].good ? "" : "host:77 does not greet like a NATS server within 1000 ms");
        CU_ASSERT_EQUAL(strncmp(play.log, "looks up host 77; connects to 0o; ", 34), 0);
        CHECK_STR(rows[i].answers, play.log + 34, rows[i].log);
        if (rows[i].good)
            CHECK_STR(rows[i].answers, info.version, "2.10.27");
    }
}

static void test_what_it_says(void)
{
    static const struct {
        const char *answers;
        uint64_t max_payload;
        bool tls, jetstream;
        const char *version;
        bool verify;
    } rows[] = {{INFO, 1048576, true, true, "2.10.27"},
                {"INFO {\"version\":\"2\",\"tls_verify\":true}\r\n", 0, false, false, "2", true},
                {"INFO {\"version\":\"2\"}\r\n", 0, false, false, "2"},
                {"INFO {\"version\":\"2\",\"max_payload\":\"x\",\"tls_required\":false,\"jetstream\":1}\r\n",
                 0, false, false, "2"},
                {"INFO {\"version\":\"1234567890123456789012345678901\"}\r\n", 0, false, false,
                 "1234567890123456789012345678901"}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct server_info info;
        thole_error err;
        begin();
        CU_ASSERT_EQUAL(read_from("nats://host:77", rows[i].answers, &info, &err), THOLE_OK);
        CHECK_STR(rows[i].answers, info.version, rows[i].version);
        CU_ASSERT_EQUAL(info.max_payload, rows[i].max_payload);
        CU_ASSERT_EQUAL(info.tls_required, rows[i].tls);
        CU_ASSERT_EQUAL(info.tls_verify, rows[i].verify);
        CU_ASSERT_EQUAL(info.jetstream, rows[i].jetstream);
    }
}

/* A line of at most 256 KiB. */
static void test_a_long_line(void)
{
    static char line[LINE_BYTES];
    struct server_info info;
    thole_error err;
    for (size_t len = 262143; len <= 262145; len++) {
        memset(line, ' ', sizeof line);
        memcpy(line, "INFO {\"version\":\"2\"}", 20);
        line[len - 1] = '\n';
        line[len] = '\0';
        begin();
        CU_ASSERT_EQUAL(read_from("nats://host:77", line, &info, &err),
                        len <= 262144 ? THOLE_OK : THOLE_UNAVAILABLE);
    }
}

static void test_reaching_it(void)
{
    static const struct {
        const char *url;
        size_t addresses;
        const char *connects;
        thole_status status;
        const char *text, *log;
    } rows[] = {
        {"nats://host", 1, "w", THOLE_OK, "", "looks up host 4222; connects to 0w; waits to write 1000; "},
        {"nats://[::1]:5", 1, "o", THOLE_OK, "", "looks up ::1 5; connects to 0o; "},
        {"nats://h:5", 3, "rfo", THOLE_OK, "",
         "looks up h 5; connects to 0r; connects to 1f; waits to write 1000; connects to 2o; "},
        {"nats://h:5", 2, "so", THOLE_OK, "", "looks up h 5; connects to 1o; "},
        {"nats://h:5", 2, "gg", THOLE_UNAVAILABLE, "no NATS server answers at h:5",
         "looks up h 5; connects to 0g; waits to write 1000; connects to 1g; waits to write 990; "},
        {"nats://h:5", 2, "?o", THOLE_OK, "",
         "looks up h 5; connects to 0?; waits to write 1000; connects to 1o; "},
        {"nats://h:5", 2, "?w", THOLE_UNAVAILABLE, "no NATS server answers at h:5",
         "looks up h 5; connects to 0?; waits to write 1000; connects to 1w; "},
        {"nats://h:5", 0, "", THOLE_UNAVAILABLE, "no NATS server answers at h:5", "looks up h 5; "},
        {"nats://:5", 1, "", THOLE_INVALID, "the NATS URL names no server; expected nats://host:port", ""}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct server_info info;
        thole_error err;
        begin();
        play.addresses = rows[i].addresses;
        play.connects = rows[i].connects;
        thole_status const status = read_from(rows[i].url, INFO, &info, &err);
        CHECK_STR(rows[i].url, thole_status_name(status), thole_status_name(rows[i].status));
        CHECK_STR(rows[i].url, err.text, rows[i].text);
        CHECK_STR(rows[i].url, play.log, rows[i].log);
    }
}

static void test_nothing_is_left(void)
{
    size_t before = SIZE_MAX, grown = 0;
    for (int i = 0; i < 16; i++) {
        test_how_it_comes();
        size_t const used = heap_used();
        grown += i >= 10 && used > before;
        before = used;
    }
    CU_ASSERT_TRUE(grown < 6);
}

static const struct thole_test tests[] = {
    {"how it comes", test_how_it_comes}, {"what it says", test_what_it_says},
    {"a long line", test_a_long_line},   {"nothing is left", test_nothing_is_left},
    {"reaching it", test_reaching_it},
};
THOLE_TEST_MAIN("server_info", tests)
