/*
 * A service with an event loop: its own descriptors and thole's in one epoll, no thread, nothing that blocks.
 * Each line of its input is an order, "ID ORCHESTRATION INPUT"; an order's outcome is printed when it has
 * ended, in whatever order they end. Any number of them is under way.
 *
 *   printf 'order-1 checkout order=1;pay_ms=50\norder-2 checkout order=2;pay_ms=20\n' | event_loop
 *
 * Where the servers are is in THOLE_NATS_URL and THOLE_NAMESPACE.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <thole/async.h>
#include <unistd.h>

enum { ORDER_MS = 60 * 1000, LINE_BYTES = 4096 };

struct service {
    thole_async *async;
    char line[LINE_BYTES]; /* the begin of the next one */
    size_t line_len;
    bool input_ended;
};

struct order {
    char id[THOLE_ID_BYTES_MAX + 1];
};

static void on_ended(void *arg, const thole_completion *completion)
{
    struct order *order = arg;
    if (completion->status != THOLE_OK)
        printf("%s: %s: %s\n", order->id, thole_status_name(completion->status), completion->text);
    else
        printf("%s: %s: %.*s\n", order->id, thole_instance_status_name(completion->outcome.status),
               THOLE_FMT(completion->outcome.output));
    (void)fflush(stdout);
    free(order);
}

static void begin_order(struct service *service, const char *line)
{
    char id[THOLE_ID_BYTES_MAX + 1], orchestration[THOLE_NAME_BYTES_MAX + 1];
    int input = 0;
    thole_error err;
    if (sscanf(line, "%200s %64s%n", id, orchestration, &input) != 2) {
        fprintf(stderr, "no order: %s\n", line);
        return;
    }
    input += line[input] == ' ';
    struct order *order = malloc(sizeof *order);
    if (order == NULL)
        return;
    (void)snprintf(order->id, sizeof order->id, "%s", id);
    if (thole_async_run(service->async, thole_slice_from(id), thole_slice_from(orchestration),
                        thole_slice_from(line + input), ORDER_MS, on_ended, order, NULL, &err) == THOLE_OK)
        return;
    printf("%s: %s: %s\n", id, thole_status_name(err.status), err.text); /* then on_ended() is not called */
    free(order);
}

static void read_orders(struct service *service)
{
    ssize_t const n =
        read(STDIN_FILENO, service->line + service->line_len, sizeof service->line - 1 - service->line_len);
    if (n <= 0) {
        service->input_ended = true;
        return;
    }
    service->line_len += (size_t)n;
    service->line[service->line_len] = '\0';
    char *line = service->line, *end;
    for (; (end = strchr(line, '\n')) != NULL; line = end + 1) {
        *end = '\0';
        begin_order(service, line);
    }
    service->line_len = strlen(line);
    if (service->line_len == sizeof service->line - 1) /* no order is so long */
        service->line_len = 0;
    memmove(service->line, line, service->line_len + 1);
}

static int serve(struct service *service)
{
    int const loop = epoll_create1(EPOLL_CLOEXEC), thole = thole_async_fd(service->async);
    struct epoll_event input = {.events = EPOLLIN, .data.fd = STDIN_FILENO},
                       answers = {.events = EPOLLIN, .data.fd = thole}, event;
    if (loop < 0 || epoll_ctl(loop, EPOLL_CTL_ADD, thole, &answers) != 0 ||
        epoll_ctl(loop, EPOLL_CTL_ADD, STDIN_FILENO, &input) != 0) { /* a pipe or a terminal; not a file */
        perror("epoll");
        return EXIT_FAILURE;
    }
    while (!service->input_ended || thole_async_in_flight(service->async) > 0) {
        if (epoll_wait(loop, &event, 1, -1) != 1)
            continue;
        if (event.data.fd == thole)
            (void)thole_async_dispatch(service->async);
        else
            read_orders(service);
        if (service->input_ended)
            (void)epoll_ctl(loop, EPOLL_CTL_DEL, STDIN_FILENO, NULL);
    }
    (void)close(loop);
    return EXIT_SUCCESS;
}

int main(void)
{
    static struct service service;
    thole_client *client = NULL;
    thole_error err;
    int code = EXIT_FAILURE;
    if (thole_client_open(NULL, &client, &err) == THOLE_OK &&
        thole_async_open(client, NULL, &service.async, &err) == THOLE_OK)
        code = serve(&service);
    else
        fprintf(stderr, "%s\n", err.text);
    thole_async_close(service.async); /* before its client */
    thole_client_close(client);
    return code;
}
