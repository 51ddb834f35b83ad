#include "monitor.h"
#include "clock.h"
#include "listen_address.h"
#include "memory.h"
#include <assert.h>
#include <errno.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct monitor {
    struct MHD_Daemon *daemon;
    const struct metrics *metrics;
    char address[LISTEN_ADDRESS_BYTES];
    int open[MONITOR_CONNECTIONS_MAX]; /* sockets of open connections, the oldest first; the server's thread's
                                        */
    size_t open_len;
};

/* ---- answers ---- */

struct answer {
    struct buf text;
    unsigned code;
};

static void answer_path(const struct monitor *monitor, const char *path, struct answer *answer)
{
    uint64_t const now_ms = clock_monotonic_ms();
    if (strcmp(path, "/metrics") == 0) {
        metrics_text(monitor->metrics, now_ms, &answer->text);
    } else if (strcmp(path, "/healthz") == 0) {
        if (!metrics_live(monitor->metrics, now_ms, &answer->text))
            answer->code = MHD_HTTP_SERVICE_UNAVAILABLE;
    } else if (strcmp(path, "/readyz") == 0) {
        if (!metrics_ready(monitor->metrics, &answer->text))
            answer->code = MHD_HTTP_SERVICE_UNAVAILABLE;
    } else {
        answer->code = MHD_HTTP_NOT_FOUND;
        buf_text(&answer->text, "there are /healthz, /readyz and /metrics\n");
    }
    if (buf_status(&answer->text) != THOLE_OK)
        answer->code = MHD_HTTP_INTERNAL_SERVER_ERROR;
}

/* Takes the text. */
static enum MHD_Result monitor_send_answer(struct MHD_Connection *connection, const struct answer *answer)
{
    struct MHD_Response *const response =
        MHD_create_response_from_buffer(answer->text.len, answer->text.ptr, MHD_RESPMEM_MUST_FREE);
    if (response == NULL) {
        free(answer->text.ptr);
        return MHD_NO;
    }
    enum MHD_Result result =
        MHD_add_response_header(response, "Content-Type", "text/plain; version=0.0.4; charset=utf-8");
    if (result == MHD_YES)
        result = MHD_add_response_header(response, "Cache-Control", "no-store");
    if (result == MHD_YES && answer->code == MHD_HTTP_METHOD_NOT_ALLOWED)
        result = MHD_add_response_header(response, "Allow", "GET, HEAD");
    if (result == MHD_YES)
        result = MHD_queue_response(connection, answer->code, response);
    MHD_destroy_response(response);
    return result;
}

/* Answers when the headers are there: a body is not waited for, and the connection of one that has a body is
 * closed. */
static enum MHD_Result on_request(void *arg, struct MHD_Connection *connection, const char *path,
                                  const char *method, const char *version, const char *body, size_t *body_len,
                                  void **state)
{
    const struct monitor *const monitor = arg;
    struct answer answer = {.code = MHD_HTTP_OK};
    (void)version;
    (void)body;
    (void)body_len;
    (void)state;
    buf_init(&answer.text, MONITOR_TEXT_BYTES_MAX);
    if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 && strcmp(method, MHD_HTTP_METHOD_HEAD) != 0) {
        answer.code = MHD_HTTP_METHOD_NOT_ALLOWED;
        buf_text(&answer.text, "only GET and HEAD\n");
    } else {
        answer_path(monitor, path, &answer);
    }
    return monitor_send_answer(connection, &answer);
}

/* ---- connections ---- */

static void monitor_forget(struct monitor *monitor, int socket)
{
    for (size_t i = 0; i < monitor->open_len; i++)
        if (monitor->open[i] == socket) {
            memmove(&monitor->open[i], &monitor->open[i + 1],
                    (--monitor->open_len - i) * sizeof monitor->open[0]);
            return;
        }
}

/* The server has room for one more than are kept: the new one stays, the oldest ends, at the server's next
 * look. */
static void on_connection(void *arg, struct MHD_Connection *connection, void **state,
                          enum MHD_ConnectionNotificationCode what)
{
    struct monitor *const monitor = arg;
    const union MHD_ConnectionInfo *const info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    (void)state;
    if (info == NULL)
        return;
    if (what == MHD_CONNECTION_NOTIFY_CLOSED) {
        monitor_forget(monitor, info->connect_fd);
        return;
    }
    if (monitor->open_len == MONITOR_CONNECTIONS_MAX) {
        int const oldest = monitor->open[0];
        monitor_forget(monitor, oldest);
        (void)shutdown(oldest, SHUT_RDWR);
    }
    monitor->open[monitor->open_len++] = info->connect_fd;
}

/* libmicrohttpd would write what clients send wrongly to stderr. */
static void monitor_on_log(void *arg, const char *fmt, va_list args)
{
    (void)arg;
    (void)fmt;
    (void)args;
}

/* ---- start and stop ---- */

thole_status monitor_start(const struct sockaddr_storage *address, const struct metrics *metrics,
                           struct monitor **ret, thole_error *reterr)
{
    int fd = -1;
    THOLE_TRY(listen_address_open(address, MONITOR_CONNECTIONS_MAX, &fd, reterr));
    struct monitor *const monitor = memory_new(sizeof *monitor);
    monitor->metrics = metrics;
    listen_address_of(fd, monitor->address);
    monitor->daemon = MHD_start_daemon(
        MHD_USE_AUTO_INTERNAL_THREAD | MHD_USE_ERROR_LOG, 0, NULL, NULL, on_request, monitor,
        MHD_OPTION_EXTERNAL_LOGGER, monitor_on_log, NULL, MHD_OPTION_LISTEN_SOCKET, fd,
        MHD_OPTION_CONNECTION_LIMIT, (unsigned)MONITOR_CONNECTIONS_MAX + 8, MHD_OPTION_CONNECTION_TIMEOUT,
        (unsigned)MONITOR_IDLE_S, MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)MONITOR_REQUEST_BYTES,
        MHD_OPTION_NOTIFY_CONNECTION, on_connection, monitor, MHD_OPTION_END);
    if (monitor->daemon == NULL) {
        (void)close(fd);
        free(monitor);
        return thole_fail(reterr, THOLE_UNAVAILABLE, "--http: the HTTP server does not start");
    }
    *ret = monitor;
    return THOLE_OK;
}

const char *monitor_address(const struct monitor *monitor)
{
    return monitor->address;
}

void monitor_stop(struct monitor *monitor)
{
    if (monitor == NULL)
        return;
    MHD_stop_daemon(monitor->daemon);
    free(monitor);
}
