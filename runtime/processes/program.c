#include "thole/program.h"
#include "binder_host.h"
#include "core_dumps.h"
#include "crash_page.h"
#include "crash_reporter.h"
#include "engine_host.h"
#include "forkserver.h"
#include "gateway_host.h"
#include "host_options.h"
#include "message.h"
#include "monitoring.h"
#include "program_check.h"
#include "replay_host.h"
#include "stop_signals.h"
#include "supervisor.h"
#include "worker_host.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { EXIT_STOPPED = 0, EXIT_FAILED = 1, EXIT_USAGE = 2, EXIT_REFUSED = 6, HELP_BYTES_MAX = 64 * 1024 };

const char *thole_version(void)
{
    return THOLE_VERSION;
}

/* ---- running a role ---- */

static int exit_code(thole_status status)
{
    switch (status) {
    case THOLE_OK:
    case THOLE_CANCELLED: return EXIT_STOPPED; /* stopped while connecting */
    case THOLE_INVALID:
    case THOLE_DENIED:
    case THOLE_UNSUPPORTED:
    case THOLE_NOT_FOUND:
    case THOLE_CONFLICT:
    case THOLE_UNAVAILABLE: return EXIT_REFUSED;
    case THOLE_NOMEM:
    case THOLE_LIMIT:
    case THOLE_CORRUPT:
    case THOLE_NONDETERMINISM:
    case THOLE_APP:
    case THOLE_TIMEOUT:
    case THOLE_FENCED:
    case THOLE_LATER: return EXIT_FAILED;
    }
    return EXIT_FAILED;
}

/* Logs now that the crash reporter has ended: it cannot be logged when the worker dies. */
static void program_wait_for_stop(const struct crash_reporter *reporter)
{
    if (stop_wait_beside(crash_reporter_socket(reporter)))
        return;
    if (crash_reporter_is_lost(reporter))
        log_line(LOG_LEVEL_WARN, "worker",
                 "its crash reporter has died: if this worker dies, the reason will not be stored");
    stop_wait();
}

static bool stop_is_signalled(void *arg)
{
    (void)arg;
    return stop_requested();
}

/* The engine starts first, since a worker waits for the namespace that an engine sets up. It stops last, so
 * that it takes the results of the worker's last activities. */
static thole_status run_role(const thole_program *program, const struct host_command *command,
                             struct monitoring *monitoring, thole_error *reterr)
{
    const char *role = host_role_name(command->role);
    struct engine_host *engine = NULL;
    struct worker_host *worker = NULL;
    struct gateway_host *gateway = NULL;
    struct binder_host *binder = NULL;
    struct stop_check const stop = {.requested = stop_is_signalled};
    thole_status status = THOLE_OK;
    log_line(LOG_LEVEL_INFO, role, "%s starts: thole %s, namespace %s, node %s", program->name,
             thole_version(), command->options.ns, command->options.node);
    if ((command->role & HOST_ENGINE) != 0)
        status = engine_host_start(&command->options, program, &stop, &engine, reterr);
    if (status == THOLE_OK && (command->role & HOST_WORKER) != 0 && program->activities_len > 0)
        status = worker_host_start(&command->options, program, &stop, &worker, reterr);
    if (status == THOLE_OK && (command->role & HOST_GATEWAY) != 0)
        status = gateway_host_start(&command->options, &stop, &gateway, reterr);
    if (status == THOLE_OK && (command->role & HOST_BINDER) != 0)
        status = binder_host_start(&command->options, &stop, &binder, reterr);
    if (status == THOLE_OK) {
        monitoring_serving(monitoring, command->role, true);
        log_line(LOG_LEVEL_INFO, role, "serving");
        program_wait_for_stop(command->options.crash_reporter);
        monitoring_serving(monitoring, command->role, false);
        log_line(LOG_LEVEL_INFO, role, "stopping");
    } else if (status == THOLE_CANCELLED) { /* stopped while it was starting */
        monitoring_serving(monitoring, command->role, false);
    }
    binder_host_stop(binder);
    gateway_host_stop(gateway);
    worker_host_stop(worker);
    engine_host_stop(engine);
    if (status == THOLE_OK || status == THOLE_CANCELLED)
        log_line(LOG_LEVEL_INFO, role, "stopped");
    return status;
}

/* Before there is any thread or connection. */
static thole_status start_forkserver(const thole_program *program, char **argv, struct host_command *command,
                                     thole_error *reterr)
{
    struct host_options *const options = &command->options;
    if ((command->role & HOST_WORKER) == 0 || !forkserver_is_needed(program))
        return THOLE_OK;
    struct forkserver_options const wish = {
        .program = program,
        .argv = argv,
        /* the namespace's limit is not known yet; each payload is checked again */
        .payload_max = options->payload_max != 0 ? options->payload_max : MESSAGE_BYTES_MAX / 2,
        .memory_max = options->process_memory_max,
        .env = options->process_env,
        .lost = stop_request,
        .secrets = {options->nats_url, options->nats_creds, options->nats_key, options->postgres}};
    return forkserver_start(&wish, &options->forkserver, reterr);
}

/* Before there is any thread or connection. */
static void start_crash_reporter(const thole_program *program, struct host_command *command)
{
    thole_error error = {.status = THOLE_OK};
    if ((command->role & HOST_WORKER) != 0 && program->activities_len > 0 &&
        crash_reporter_start(&command->options, &command->options.crash_reporter, &error) != THOLE_OK)
        log_line(LOG_LEVEL_INFO, "worker",
                 "no crash reporter, so if this worker dies the reason will not be stored: %s", error.text);
}

/* Before there is any thread or connection. Returns in the process that serves. */
static struct supervised start_supervisor(struct host_command *command)
{
    thole_error error = {.status = THOLE_OK};
    struct supervised self = {.socket = -1};
    if ((command->role & HOST_ENGINE) != 0 && supervise(&command->options, &self, &error) != THOLE_OK)
        log_line(LOG_LEVEL_WARN, host_role_name(command->role),
                 "no supervisor, so it is not started again after a crash: %s", error.text);
    command->options.crash_page = self.page;
    return self;
}

static thole_status program_serve(const thole_program *program, char **argv, struct host_command *command,
                                  const struct service_wish *wish, const struct supervised *self,
                                  thole_error *reterr)
{
    THOLE_TRY(start_forkserver(program, argv, command, reterr));
    struct forkserver *const forkserver = command->options.forkserver;
    struct monitoring *monitoring = NULL;
    start_crash_reporter(program, command);
    if (self->page != NULL)
        crash_listen(self->page, self->socket);
    thole_status status = stop_signals_install(reterr);
    if (status == THOLE_OK)
        status = monitoring_start(program, command, wish, &monitoring, reterr);
    if (status == THOLE_OK)
        status = run_role(program, command, monitoring, reterr);
    monitoring_stop(monitoring);
    if (status == THOLE_OK && forkserver != NULL && forkserver_is_lost(forkserver))
        status = thole_fail(reterr, THOLE_APP, "stopped because the forkserver has died: start it again");
    crash_reporter_stop(command->options.crash_reporter);
    forkserver_stop(forkserver);
    return status;
}

/* Exit codes as of the command: docs/cli.md. */
static int replay_exit_code(thole_status status)
{
    enum { EXIT_NOT_FOUND = 3, EXIT_DENIED = 7, EXIT_TIMEOUT = 8 };
    switch (status) {
    case THOLE_INVALID: return EXIT_USAGE;
    case THOLE_NOT_FOUND: return EXIT_NOT_FOUND;
    case THOLE_DENIED: return EXIT_DENIED;
    case THOLE_TIMEOUT: return EXIT_TIMEOUT;
    case THOLE_UNAVAILABLE:
    case THOLE_UNSUPPORTED: return EXIT_REFUSED;
    default: return EXIT_FAILED;
    }
}

/* A replay ends by itself: signals have their default actions. */
static int program_run_replay(const thole_program *program, const struct host_command *command)
{
    thole_error error = {.status = THOLE_OK};
    int code = EXIT_FAILED;
    thole_status const status = replay_host_run(command, program, &code, &error);
    if (status == THOLE_OK)
        return code;
    error.status = status;
    code = replay_exit_code(status);
    replay_host_complain(command, program, code, &error);
    return code;
}

static int usage_error(const char *name, const thole_error *error)
{
    (void)fprintf(stderr, "%s: %s\nTry: %s --help\n", name, error->text, name);
    return EXIT_USAGE;
}

static int program_print_help(const thole_program *program)
{
    struct buf text;
    buf_init(&text, HELP_BYTES_MAX);
    host_command_help(program, &text);
    bool const ok =
        buf_status(&text) == THOLE_OK && fputs(buf_cstr(&text), stdout) >= 0 && fflush(stdout) == 0;
    buf_release(&text);
    return ok ? EXIT_STOPPED : EXIT_FAILED;
}

static int program_parse_and_run(int argc, char **argv, const thole_program *program,
                                 struct host_command *command)
{
    thole_error error = {.status = THOLE_OK};
    thole_status status = program_check(program, &error);
    if (status != THOLE_OK)
        return usage_error(argc > 0 ? argv[0] : "program", &error);
    status = host_command_parse(argc, argv, command, &error);
    if (status == THOLE_OK && command->help)
        return program_print_help(program);
    if (status == THOLE_OK && command->version)
        return printf("%s: thole %s\n", program->name, thole_version()) > 0 ? EXIT_STOPPED : EXIT_FAILED;
    if (status == THOLE_OK) {
        error = command->exposed;
        status = error.status;
    }
    if (status == THOLE_OK)
        status = program_check_role(program, command->role, &error);
    if (status != THOLE_OK)
        return status == THOLE_INVALID || status == THOLE_NOT_FOUND /* a file */
                   ? usage_error(program->name, &error)
                   : (fprintf(stderr, "%s: %s\n", program->name, error.text), EXIT_FAILED);
    log_configure(command->options.log_level, command->options.log_format, program->name);
    if (command->config.open_secret)
        log_line(LOG_LEVEL_WARN, "config",
                 "%s has a password in it, and everybody on this machine may read it: chmod o-r",
                 command->options.config);
    core_dumps_choose(command->options.core_dumps_full); /* before the first fork */
    if (command->role == HOST_REPLAY)
        return program_run_replay(program, command);
    struct service_wish const wish = service_wish_take(); /* before the first fork */
    struct supervised const self = start_supervisor(command);
    status = program_serve(program, argv, command, &wish, &self, &error);
    int const code = exit_code(status);
    if (code != EXIT_STOPPED)
        log_line(LOG_LEVEL_ERROR, host_role_name(command->role), "%s", error.text);
    supervised_returns(&self);
    return code;
}

int thole_main(int argc, char **argv, const thole_program *program)
{
    struct host_command command = {.help = false};
    int const code = program_parse_and_run(argc, argv, program, &command);
    host_command_free(&command);
    return code;
}
