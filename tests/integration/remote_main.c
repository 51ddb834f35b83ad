/* A remote worker as a process of its own. */
#include "host_options.h"
#include "inbox_prefix.h"
#include "log.h"
#include "remote_worker.h"
#include "stop_signals.h"
#include <stdio.h>
#include <string.h>

int remote_or_main(int argc, char **argv, const thole_program *program)
{
    static struct host_command command;
    char inbox[INBOX_PREFIX_BYTES_MAX + 1];
    thole_error err = {0};
    if (argc < 2 || strcmp(argv[1], "remote") != 0)
        return thole_main(argc, argv, program);
    argv[1] = (char *)"worker";
    if (host_command_parse(argc, argv, &command, &err) != THOLE_OK ||
        stop_signals_install(&err) != THOLE_OK) {
        fprintf(stderr, "%s\n", err.text);
        return 2;
    }
    log_configure(LOG_LEVEL_DEBUG, LOG_FORMAT_LOGFMT, command.options.node);
    struct inbox_owner const owner = {
        .ns = command.options.ns, .role = "remote-worker", .queue = command.options.queue};
    struct remote_worker_options const options = {
        .nats_url = command.options.nats_url,
        .inbox = inbox_prefix_or_own(command.options.nats_inbox, &owner, inbox),
        .ns = command.options.ns,
        .name = command.options.node,
        .queue = command.options.queue,
        .slots = command.options.slots,
        .stop_limit_ms = command.options.stop_limit_ms};
    struct remote_worker *const worker = remote_worker_start(&options, program);
    log_line(LOG_LEVEL_INFO, "worker", "serving");
    stop_wait();
    remote_worker_stop(worker);
    host_command_free(&command);
    return 0;
}
