#include "console.h"
#include "exchange.h"
#include "listen_address.h"
#include "memory.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    CONNECTION_BYTES = 64 * 1024, /* memory of one: its request line and headers, and what is sent */
    CLOSING = 16,                 /* connections that were ended, until the server's next look */
};

/* libmicrohttpd would write what clients send wrongly to stderr. */
static void console_on_log(void *arg, const char *fmt, va_list args)
{
    (void)arg;
    (void)fmt;
    (void)args;
}

static thole_status start_server(struct console *console, thole_error *reterr)
{
    int fd = -1;
    THOLE_TRY(listen_address_open(&console->options.address, CONSOLE_CONNECTIONS_MAX, &fd, reterr));
    listen_address_of(fd, console->address);
    console->daemon = MHD_start_daemon(
        MHD_USE_AUTO_INTERNAL_THREAD | MHD_USE_ERROR_LOG | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL,
        exchange_on_request, console, MHD_OPTION_EXTERNAL_LOGGER, console_on_log, NULL,
        MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_LIMIT,
        (unsigned)CONSOLE_CONNECTIONS_MAX + CLOSING, MHD_OPTION_NOTIFY_CONNECTION, exchange_on_connection,
        console, MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)CONSOLE_IDLE_S, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
        (size_t)CONNECTION_BYTES, MHD_OPTION_NOTIFY_COMPLETED, exchange_on_end, console,
        MHD_OPTION_UNESCAPE_CALLBACK, exchange_unescape, NULL, MHD_OPTION_END);
    if (console->daemon != NULL)
        return THOLE_OK;
    (void)close(fd);
    return thole_fail(reterr, THOLE_UNAVAILABLE, "--http: the HTTP server does not start");
}

thole_status console_start(const struct console_options *options, struct console **ret, thole_error *reterr)
{
    struct console *const console = memory_new(sizeof *console);
    console->options = *options;
    console->visitors.max = CONSOLE_CONNECTIONS_MAX;
    for (size_t i = 0; i < CONSOLE_WORKERS; i++)
        console->sessions[i] = (struct session){.options = options->client, .batch = &console->batch};
    thole_status status = access_rules_make(&console->options, &console->rules, reterr);
    if (status == THOLE_OK)
        status = hub_start(options->client, &console->hub, reterr);
    if (status == THOLE_OK)
        status =
            jobs_start(CONSOLE_WORKERS, CONSOLE_WAITING_MAX, exchange_work, console, &console->jobs, reterr);
    if (status == THOLE_OK)
        status = start_server(console, reterr);
    if (status != THOLE_OK) {
        console_stop(console);
        return status;
    }
    *ret = console;
    return THOLE_OK;
}

const char *console_address(const struct console *console)
{
    return console->address;
}

/* Nothing may be suspended when the server is stopped: requests are answered first, and streams end. */
void console_stop(struct console *console)
{
    if (console == NULL)
        return;
    if (console->hub != NULL)
        hub_close(console->hub);
    jobs_stop(console->jobs);
    if (console->daemon != NULL)
        MHD_stop_daemon(console->daemon);
    jobs_free(console->jobs); /* only now does no request come */
    hub_stop(console->hub);
    for (size_t i = 0; i < CONSOLE_WORKERS; i++)
        session_end(&console->sessions[i]);
    free(console);
}
