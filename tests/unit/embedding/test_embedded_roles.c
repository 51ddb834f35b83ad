/* A role inside a service, from thole_engine_start() to its join, with the roles and the monitoring played:
 * the order of the calls, the causes of a stop, and the state after an error. */
#include "engine_host.h"
#include "log.h"
#include "logged.h"
#include "monitoring.h"
#include "thole/embedding.h"
#include "thole_cunit.h"
#include "worker_host.h"
#include <dirent.h>
#include <errno.h>
#include <getopt.h>
#include <pthread.h>
#include <stdlib.h>

static struct {
    pthread_mutex_t lock;
    char said[1024];
    size_t len;
    thole_status monitoring, start; /* how they end */
    bool waits;                     /* the start: for a stop, or until this is false */
} play = {.lock = PTHREAD_MUTEX_INITIALIZER};

static const char some_monitoring, some_engine, some_worker;

static void say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static void say(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    (void)pthread_mutex_lock(&play.lock);
    play.len += (size_t)vsnprintf(play.said + play.len, sizeof play.said - play.len, fmt, args);
    (void)pthread_mutex_unlock(&play.lock);
    va_end(args);
}

static bool waits(void)
{
    (void)pthread_mutex_lock(&play.lock);
    bool const still = play.waits;
    (void)pthread_mutex_unlock(&play.lock);
    return still;
}

/* ---- calls of the role ---- */

void __wrap_log_line_of(enum log_level level, const char *area, const struct log_fields *fields,
                        const char *fmt, ...) THOLE_PRINTF(4, 5);
void __wrap_log_line_of(enum log_level level, const char *area, const struct log_fields *fields,
                        const char *fmt, ...)
{
    char text[256];
    va_list args;
    va_start(args, fmt);
    logged_text(text, sizeof text, fields, fmt, args);
    va_end(args);
    if (level != LOG_LEVEL_INFO)
        say("%d %s: %s; ", (int)level, area, text);
}

thole_status __wrap_monitoring_start(const thole_program *program, struct host_command *command,
                                     const struct service_wish *wish, struct monitoring **ret,
                                     thole_error *reterr)
{
    CU_ASSERT_TRUE(wish->watchdog_ms == 0 && strcmp(program->name, "shop") == 0);
    say("monitoring of %s; ", host_role_name(command->role));
    if (play.monitoring != THOLE_OK)
        return thole_fail(reterr, play.monitoring, "no monitoring");
    *ret = (struct monitoring *)(uintptr_t)&some_monitoring;
    return THOLE_OK;
}

void __wrap_monitoring_serving(struct monitoring *monitoring, enum host_role role, bool serving)
{
    CU_ASSERT_PTR_EQUAL(monitoring, &some_monitoring);
    say("%s serves=%d; ", host_role_name(role), serving);
}

void __wrap_monitoring_stop(struct monitoring *monitoring)
{
    say(monitoring == NULL ? "" : "monitoring ends; ");
}

static thole_status started(const struct host_options *o, const thole_program *program,
                            const struct stop_check *stop, thole_error *reterr)
{
    CU_ASSERT_STRING_EQUAL(program->name, "shop");
    CU_ASSERT_EQUAL(o->turn_limit_ms, 0);
    say("starts in %s as %s, queue %s; ", o->ns, o->node, o->queue);
    while (waits() && !stop_is_requested(stop))
        (void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    if (stop_is_requested(stop))
        return thole_fail(reterr, THOLE_CANCELLED, "stopped while waiting");
    return play.start == THOLE_OK ? THOLE_OK : thole_fail(reterr, play.start, "it may not");
}

thole_status __wrap_engine_host_start(const struct host_options *o, const thole_program *program,
                                      const struct stop_check *stop, struct engine_host **ret,
                                      thole_error *reterr)
{
    THOLE_TRY(started(o, program, stop, reterr));
    *ret = (struct engine_host *)(uintptr_t)&some_engine;
    return THOLE_OK;
}

thole_status __wrap_worker_host_start(const struct host_options *o, const thole_program *program,
                                      const struct stop_check *stop, struct worker_host **ret,
                                      thole_error *reterr)
{
    THOLE_TRY(started(o, program, stop, reterr));
    *ret = (struct worker_host *)(uintptr_t)&some_worker;
    return THOLE_OK;
}

void __wrap_engine_host_stop(struct engine_host *engine)
{
    say(engine == NULL ? "" : "engine stops; ");
}

void __wrap_worker_host_stop(struct worker_host *worker)
{
    say(worker == NULL ? "" : "worker stops; ");
}

/* ---- the service ---- */

static thole_status decide(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    (void)ctx, (void)input, (void)ret_output;
    return THOLE_OK;
}

static thole_status act(thole_activity *activity, thole_slice input, thole_slice *ret_output)
{
    (void)activity, (void)input, (void)ret_output;
    return THOLE_OK;
}

static const thole_activity_options apart = {.size = sizeof apart, .isolation = THOLE_ISOLATION_PROCESS};
static const thole_orchestration_entry orchestrations[] = {{.name = "order", .run = decide}};
static const thole_activity_entry activities[] = {{.name = "charge", .run = act}};
static const thole_activity_entry isolated[] = {{.name = "charge", .run = act, .options = &apart}};
static const thole_program program = {.size = sizeof program,
                                      .name = "shop",
                                      .orchestrations = orchestrations,
                                      .orchestrations_len = 1,
                                      .activities = activities,
                                      .activities_len = 1};
static const char *const arguments[] = {"--namespace", "spring", "--node=n1", "--queue", "mail", NULL};

static size_t descriptors(void)
{
    size_t n = 0;
    DIR *const dir = opendir("/proc/self/fd");
    while (dir != NULL && readdir(dir) != NULL)
        n++;
    if (dir != NULL)
        (void)closedir(dir);
    return n;
}

static void begin(void)
{
    (void)setenv("THOLE_POSTGRES", "host=db", 1); /* all roles need it */
    play.len = 0;
    play.said[0] = '\0';
    play.monitoring = play.start = THOLE_OK;
    play.waits = false;
}

static void check(const char *row, const char *want)
{
    CHECK_STR(row, play.said, want);
}

/* ---- tests ---- */

static void test_lives(void)
{
    thole_error error = {.status = THOLE_OK};
    thole_engine *engine = NULL;
    thole_worker *worker = NULL;
    begin();
    CU_ASSERT_EQUAL_FATAL(
        thole_engine_start(&program, (const char *const[]){"--node=n1", NULL}, &engine, &error), THOLE_OK);
    CU_ASSERT_EQUAL(thole_engine_wait(engine, 30000, &error), THOLE_OK);
    check("engine serves", "monitoring of engine; starts in default as n1, queue default; engine serves=1; ");
    thole_engine_stop(engine);
    thole_engine_stop(engine);
    CU_ASSERT_EQUAL(thole_engine_wait(engine, 30000, &error), THOLE_CANCELLED);
    CU_ASSERT_STRING_EQUAL(error.text, "it was stopped");
    CU_ASSERT_EQUAL(thole_engine_join(engine, &error), THOLE_OK);
    check("engine", "monitoring of engine; starts in default as n1, queue default; engine serves=1; "
                    "engine serves=0; engine stops; monitoring ends; ");
    begin();
    CU_ASSERT_EQUAL_FATAL(thole_worker_start(&program, arguments, &worker, &error), THOLE_OK);
    CU_ASSERT_EQUAL(thole_worker_wait(worker, 30000, &error), THOLE_OK);
    thole_worker_stop(worker);
    CU_ASSERT_EQUAL(thole_worker_join(worker, &error), THOLE_OK);
    check("worker", "monitoring of worker; starts in spring as n1, queue mail; worker serves=1; "
                    "worker serves=0; worker stops; monitoring ends; ");
    thole_engine_stop(NULL);
    thole_worker_stop(NULL);
    CU_ASSERT_EQUAL(thole_engine_join(NULL, NULL), THOLE_OK);
    CU_ASSERT_EQUAL(thole_worker_join(NULL, NULL), THOLE_OK);
}

/* The error of its start is that of the wait and of the join. */
static void test_does_not_start(void)
{
    thole_error error = {.status = THOLE_OK};
    thole_worker *worker = NULL;
    begin();
    play.start = THOLE_DENIED;
    CU_ASSERT_EQUAL_FATAL(thole_worker_start(&program, arguments, &worker, &error), THOLE_OK);
    CU_ASSERT_EQUAL(thole_worker_wait(worker, 30000, &error), THOLE_DENIED);
    CU_ASSERT_STRING_EQUAL(error.text, "it may not");
    error = (thole_error){.status = THOLE_OK};
    CU_ASSERT_EQUAL(thole_worker_join(worker, &error), THOLE_DENIED);
    CU_ASSERT_STRING_EQUAL(error.text, "it may not");
    check(
        "denied",
        "monitoring of worker; starts in spring as n1, queue mail; monitoring ends; 0 worker: it may not; ");
    begin();
    play.monitoring = THOLE_INVALID;
    CU_ASSERT_EQUAL_FATAL(thole_worker_start(&program, arguments, &worker, &error), THOLE_OK);
    CU_ASSERT_EQUAL(thole_worker_join(worker, NULL), THOLE_INVALID);
    check("no monitoring", "monitoring of worker; 0 worker: no monitoring; ");
}

static void test_stopped_while_it_starts(void)
{
    thole_error error = {.status = THOLE_OK};
    thole_engine *engine = NULL;
    begin();
    play.waits = true;
    CU_ASSERT_EQUAL_FATAL(thole_engine_start(&program, NULL, &engine, &error), THOLE_OK);
    CU_ASSERT_EQUAL(thole_engine_wait(engine, 0, &error), THOLE_TIMEOUT);
    CU_ASSERT_STRING_EQUAL(error.text, "it does not serve yet: its log says what it waits for");
    CU_ASSERT_EQUAL(thole_engine_wait(engine, 20, &error), THOLE_TIMEOUT);
    errno = 77;
    thole_engine_stop(engine);
    CU_ASSERT_EQUAL(errno, 77);
    CU_ASSERT_EQUAL(thole_engine_wait(engine, 30000, &error), THOLE_CANCELLED);
    CU_ASSERT_EQUAL(thole_engine_join(engine, &error), THOLE_OK);
    CU_ASSERT_PTR_NOT_NULL(strstr(play.said, "monitoring ends; "));
    CU_ASSERT_PTR_NULL(strstr(play.said, "serves="));
}

static void test_lists_of_nothing(void)
{
    thole_error error = {.status = THOLE_OK};
    thole_program wrong = program;
    thole_worker *worker = NULL;
    thole_engine *engine = NULL;
    begin();
    wrong.activities = NULL;
    CU_ASSERT_EQUAL(thole_worker_start(&wrong, arguments, &worker, &error), THOLE_INVALID);
    CHECK_STR("activities", error.text, "thole_program.activities is NULL, and .activities_len is 1");
    wrong = program;
    wrong.orchestrations = NULL;
    CU_ASSERT_EQUAL(thole_engine_start(&wrong, arguments, &engine, &error), THOLE_INVALID);
    CHECK_STR("orchestrations", error.text,
              "thole_program.orchestrations is NULL, and .orchestrations_len is 1");
}

static void test_refused(void)
{
    static thole_program apart_program;
    static const char *many[258];
    static char word[] = "word";
    static const struct {
        const char *name, *arguments[3], *text;
    } rows[] = {{"unknown", {"--speed", NULL}, "there is no option --speed"},
                {"help", {"--help", NULL}, "--help and --version are for a command line"},
                {"version", {"--version", NULL}, "--help and --version are for a command line"},
                {"a word", {"gateway", NULL}, "gateway"}};
    thole_error error = {.status = THOLE_OK};
    thole_worker *worker = NULL;
    begin();
    optind = 5, opterr = 6, optopt = 7, optarg = word;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        CU_ASSERT_EQUAL(thole_worker_start(&program, rows[i].arguments, &worker, &error), THOLE_INVALID);
        CHECK_STR(rows[i].name, strstr(error.text, rows[i].text) != NULL ? "told" : error.text, "told");
    }
    CU_ASSERT_TRUE(optind == 5 && opterr == 6 && optopt == 7 && optarg == word);
    for (size_t i = 0; i < 257; i++)
        many[i] = "--slots=4";
    CU_ASSERT_EQUAL(thole_worker_start(&program, many, &worker, &error), THOLE_INVALID);
    CHECK_STR("many", error.text, "more than 256 arguments, or no NULL at their end");
    apart_program = program;
    apart_program.activities = isolated;
    CU_ASSERT_EQUAL(thole_worker_start(&apart_program, NULL, &worker, &error), THOLE_UNSUPPORTED);
    CU_ASSERT_PTR_NULL(worker);
    check("nothing was begun", "");
    many[256] = NULL;
    CU_ASSERT_EQUAL_FATAL(thole_worker_start(&program, many, &worker, &error), THOLE_OK);
    thole_worker_stop(worker);
    CU_ASSERT_EQUAL(thole_worker_join(worker, &error), THOLE_OK);
}

static void test_nothing_stays(void)
{
    size_t const fds = descriptors();
    for (int i = 0; i < 5; i++) {
        test_lives();
        test_does_not_start();
        test_stopped_while_it_starts();
        test_refused();
    }
    CU_ASSERT_EQUAL(descriptors(), fds);
}

static const struct thole_test tests[] = {
    {"lives", test_lives},
    {"does not start", test_does_not_start},
    {"stopped while it starts", test_stopped_while_it_starts},
    {"refused", test_refused},
    {"lists of nothing", test_lists_of_nothing},
    {"nothing stays", test_nothing_stays},
};
THOLE_TEST_MAIN("embedded_roles", tests)
