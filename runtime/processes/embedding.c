/* A role on a thread of its own, inside a service with another main(). */
#include "thole/embedding.h"
#include "clock.h"
#include "engine_host.h"
#include "forkserver.h"
#include "memory.h"
#include "monitoring.h"
#include "program_check.h"
#include "worker_host.h"
#include <errno.h>
#include <getopt.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { ARGUMENTS_MAX = 256 };

enum state { STARTING, SERVING, ENDED };

struct embedded {
    const thole_program *program;
    char **arguments; /* memory that the options point to */
    int arguments_len;
    struct host_command command;
    atomic_bool stop;
    int wake; /* an eventfd that is readable from the first stop on */
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed; /* monotonic */
    enum state state;
    thole_error end; /* of a start that failed */
};

/* Handles of the two roles differ in their type alone. */
struct thole_worker {
    struct embedded role;
};
struct thole_engine {
    struct embedded role;
};

/* ---- the role's thread ---- */

static bool embedding_is_stopping(void *arg)
{
    return atomic_load(&((struct embedded *)arg)->stop);
}

static void set_state(struct embedded *role, enum state state)
{
    (void)pthread_mutex_lock(&role->lock);
    role->state = state;
    (void)pthread_cond_broadcast(&role->changed);
    (void)pthread_mutex_unlock(&role->lock);
}

static void embedding_wait_for_stop(struct embedded *role)
{
    uint64_t count;
    while (!atomic_load(&role->stop) && read(role->wake, &count, sizeof count) < 0 && errno == EINTR)
        ;
}

static thole_status embedding_serve(struct embedded *role, struct monitoring *monitoring)
{
    const struct host_command *const command = &role->command;
    struct stop_check const stop = {.requested = embedding_is_stopping, .arg = role};
    struct engine_host *engine = NULL;
    struct worker_host *worker = NULL;
    const char *const name = host_role_name(command->role);
    log_line(LOG_LEVEL_INFO, name, "%s starts inside a service: thole %s, namespace %s, node %s",
             role->program->name, thole_version(), command->options.ns, command->options.node);
    thole_status const status =
        command->role == HOST_ENGINE
            ? engine_host_start(&command->options, role->program, &stop, &engine, &role->end)
            : worker_host_start(&command->options, role->program, &stop, &worker, &role->end);
    if (status == THOLE_OK) {
        monitoring_serving(monitoring, command->role, true);
        set_state(role, SERVING);
        embedding_wait_for_stop(role);
        monitoring_serving(monitoring, command->role, false);
        log_line(LOG_LEVEL_INFO, name, "stopping");
    }
    worker_host_stop(worker);
    engine_host_stop(engine);
    return status;
}

static void *embedding_run(void *arg)
{
    struct embedded *const role = arg;
    struct service_wish const none = {.watchdog_ms = 0};
    struct monitoring *monitoring = NULL;
    (void)pthread_setname_np(pthread_self(), "thole-role");
    thole_status status = monitoring_start(role->program, &role->command, &none, &monitoring, &role->end);
    if (status == THOLE_OK)
        status = embedding_serve(role, monitoring);
    monitoring_stop(monitoring);
    role->end.status = status == THOLE_CANCELLED ? THOLE_OK : status; /* stopped while it was starting */
    if (role->end.status != THOLE_OK)
        log_line(LOG_LEVEL_ERROR, host_role_name(role->command.role), "%s", role->end.text);
    set_state(role, ENDED);
    return NULL;
}

/* ---- starting ---- */

static void copy_arguments(struct embedded *role, const char *const *arguments, int len)
{
    role->arguments = memory_array((size_t)len + 3, sizeof *role->arguments);
    role->arguments[role->arguments_len++] = memory_text(role->program->name);
    role->arguments[role->arguments_len++] = memory_text(host_role_name(role->command.role));
    for (int i = 0; i < len; i++)
        role->arguments[role->arguments_len++] = memory_text(arguments[i]);
}

/* The parser has process-wide state, which the service may use itself. */
static thole_status embedding_parse(struct embedded *role, thole_error *reterr)
{
    static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;
    enum host_role const wanted = role->command.role;
    char *words[ARGUMENTS_MAX + 3]; /* which it puts into another order */
    memcpy(words, role->arguments, ((size_t)role->arguments_len + 1) * sizeof *words);
    (void)pthread_mutex_lock(&one_at_a_time);
    int const index = optind, says = opterr, bad = optopt;
    char *const argument = optarg;
    thole_status const status = host_command_parse(role->arguments_len, words, &role->command, reterr);
    optind = index, opterr = says, optopt = bad, optarg = argument;
    if (status == THOLE_OK)
        log_configure_once(role->command.options.log_level, role->command.options.log_format,
                           role->program->name);
    (void)pthread_mutex_unlock(&one_at_a_time);
    if (status == THOLE_OK && (role->command.help || role->command.version))
        return thole_fail(reterr, THOLE_INVALID, "--help and --version are for a command line");
    role->command.role = wanted;
    role->command.options.turn_limit_ms = 0; /* a turn's end would be that of the service */
    return status;
}

static thole_status embedding_check(const thole_program *program, enum host_role role, thole_error *reterr)
{
    THOLE_TRY(program_check(program, reterr));
    THOLE_TRY(program_check_role(program, role, reterr));
    if (role == HOST_WORKER && forkserver_is_needed(program))
        return thole_fail(reterr, THOLE_UNSUPPORTED,
                          "%s has an activity with THOLE_ISOLATION_PROCESS, which needs a program of "
                          "thole_main(): serve it from there, on a queue of its own",
                          program->name);
    return THOLE_OK;
}

static void embedding_destroy(struct embedded *role)
{
    host_command_free(&role->command);
    for (int i = 0; i < role->arguments_len; i++)
        free(role->arguments[i]);
    free(role->arguments);
    if (role->wake >= 0)
        (void)close(role->wake);
    (void)pthread_cond_destroy(&role->changed);
    (void)pthread_mutex_destroy(&role->lock);
    free(role);
}

static struct embedded *embedding_create(const thole_program *program, enum host_role which)
{
    struct embedded *const role = memory_new(sizeof *role);
    pthread_condattr_t attributes;
    (void)pthread_condattr_init(&attributes);
    (void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    (void)pthread_mutex_init(&role->lock, NULL);
    (void)pthread_cond_init(&role->changed, &attributes);
    (void)pthread_condattr_destroy(&attributes);
    role->program = program;
    role->command.role = which;
    role->wake = eventfd(0, EFD_CLOEXEC);
    return role;
}

static thole_status embedding_start(const thole_program *program, enum host_role which,
                                    const char *const *arguments, struct embedded **ret, thole_error *reterr)
{
    int len = 0;
    THOLE_TRY(embedding_check(program, which, reterr));
    while (arguments != NULL && arguments[len] != NULL)
        if (++len > ARGUMENTS_MAX)
            return thole_fail(reterr, THOLE_INVALID, "more than %d arguments, or no NULL at their end",
                              ARGUMENTS_MAX);
    struct embedded *const role = embedding_create(program, which);
    copy_arguments(role, arguments, len);
    thole_status status = embedding_parse(role, reterr);
    if (status == THOLE_OK && role->wake < 0)
        status = thole_fail(reterr, THOLE_NOMEM, "no file descriptor: %s", strerror(errno));
    if (status == THOLE_OK && pthread_create(&role->thread, NULL, embedding_run, role) != 0)
        status = thole_fail(reterr, THOLE_NOMEM, "cannot start a thread");
    if (status != THOLE_OK) {
        embedding_destroy(role);
        return status;
    }
    *ret = role;
    return THOLE_OK;
}

/* ---- waiting and stopping ---- */

static thole_status wait_until_serving(struct embedded *role, uint64_t timeout_ms, thole_error *reterr)
{
    struct timespec const until = clock_timespec(clock_monotonic_ms() + timeout_ms);
    int late = 0;
    (void)pthread_mutex_lock(&role->lock);
    while (role->state == STARTING && late == 0)
        late = pthread_cond_timedwait(&role->changed, &role->lock, &until);
    enum state const state = role->state;
    (void)pthread_mutex_unlock(&role->lock);
    if (state == STARTING)
        return thole_fail(reterr, THOLE_TIMEOUT, "it does not serve yet: its log says what it waits for");
    if (atomic_load(&role->stop) && (state == SERVING || role->end.status == THOLE_OK))
        return thole_fail(reterr, THOLE_CANCELLED, "it was stopped");
    if (state == ENDED && reterr != NULL)
        *reterr = role->end;
    return state == ENDED ? role->end.status : THOLE_OK;
}

static void embedding_stop(struct embedded *role)
{
    uint64_t const one = 1;
    int const kept = errno; /* of what a signal handler has interrupted */
    atomic_store(&role->stop, true);
    (void)!write(role->wake, &one, sizeof one);
    errno = kept;
}

static thole_status embedding_join(struct embedded *role, thole_error *reterr)
{
    (void)pthread_join(role->thread, NULL);
    thole_status const status = role->end.status;
    if (status != THOLE_OK && reterr != NULL)
        *reterr = role->end;
    embedding_destroy(role);
    return status;
}

/* ---- the handles ---- */

thole_status thole_worker_start(const thole_program *program, const char *const *arguments,
                                thole_worker **ret, thole_error *reterr)
{
    struct embedded *role;
    THOLE_TRY(embedding_start(program, HOST_WORKER, arguments, &role, reterr));
    *ret = (thole_worker *)role;
    return THOLE_OK;
}

thole_status thole_engine_start(const thole_program *program, const char *const *arguments,
                                thole_engine **ret, thole_error *reterr)
{
    struct embedded *role;
    THOLE_TRY(embedding_start(program, HOST_ENGINE, arguments, &role, reterr));
    *ret = (thole_engine *)role;
    return THOLE_OK;
}

thole_status thole_worker_wait(thole_worker *worker, uint64_t timeout_ms, thole_error *reterr)
{
    return wait_until_serving(&worker->role, timeout_ms, reterr);
}

thole_status thole_engine_wait(thole_engine *engine, uint64_t timeout_ms, thole_error *reterr)
{
    return wait_until_serving(&engine->role, timeout_ms, reterr);
}

void thole_worker_stop(thole_worker *worker)
{
    if (worker != NULL)
        embedding_stop(&worker->role);
}

void thole_engine_stop(thole_engine *engine)
{
    if (engine != NULL)
        embedding_stop(&engine->role);
}

thole_status thole_worker_join(thole_worker *worker, thole_error *reterr)
{
    return worker == NULL ? THOLE_OK : embedding_join(&worker->role, reterr);
}

thole_status thole_engine_join(thole_engine *engine, thole_error *reterr)
{
    return engine == NULL ? THOLE_OK : embedding_join(&engine->role, reterr);
}

void thole_log_to(thole_log_fn *log, void *arg)
{
    log_to(log, arg);
}
