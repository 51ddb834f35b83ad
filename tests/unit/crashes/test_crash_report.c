/* A supervisor's text and report about an engine's death: whom it blames, and its behaviour while NATS is
 * away. The bucket and the clock are played. */
#include "captured.h"
#include "clock.h"
#include "crash_report.h"
#include "crashes.h"
#include "engine.h"
#include "shard_parts.h"
#include "thole_cunit.h"
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static struct {
    struct crash_page *page;
    int status, code; /* of the engine; of the report */
    uint64_t now_ms;
    thole_status open_status, add_status;
    unsigned fails, adds, opens, closes; /* fails: adds that fail before one is done */
    char stored[512];
    struct request request;
} play;

uint64_t __wrap_clock_monotonic_ms(void)
{
    return play.now_ms;
}

int __wrap_nanosleep(const struct timespec *time, struct timespec *left)
{
    (void)left;
    play.now_ms += (uint64_t)time->tv_nsec / 1000000;
    return 0;
}

unsigned __wrap_alarm(unsigned seconds)
{
    CU_ASSERT_EQUAL(seconds, 15);
    return 0;
}

thole_status __wrap_connection_open(const struct connection_options *options, struct connection **ret,
                                    thole_error *reterr)
{
    CHECK_STR("server", options->url, "nats://n:1");
    CHECK_STR("credentials", options->creds, "file");
    CHECK_STR("authorities", options->ca, "ca");
    CHECK_STR("certificate", options->cert, "cert");
    CHECK_STR("key", options->key, "key");
    CHECK_STR("server name", options->server_name, "name");
    CHECK_STR("inbox", options->inbox, "_INBOX_e");
    CHECK_STR("name", options->name, "thole-reporter");
    CU_ASSERT_TRUE(options->connect_timeout_ms == 1500 && options->request_timeout_ms == 1500);
    play.opens++;
    *ret = play.open_status == THOLE_OK ? (struct connection *)&play : NULL;
    return play.open_status == THOLE_OK ? THOLE_OK : thole_fail(reterr, play.open_status, "NATS is away");
}

void __wrap_connection_close(struct connection *connection)
{
    play.closes += connection != NULL;
}

thole_status __wrap_crashes_add(struct connection *connection, const char *ns, uint32_t p,
                                const struct crash_entry *entry, bool certain, uint64_t *ret_count,
                                thole_error *reterr)
{
    size_t const at = strlen(play.stored);
    CU_ASSERT_PTR_EQUAL(connection, (struct connection *)&play);
    CU_ASSERT_TRUE(entry->time_ms > 0 && entry->build.len > 0);
    play.now_ms += 10;
    if (play.adds++ < play.fails)
        return thole_fail(reterr, THOLE_UNAVAILABLE, "the bucket is busy");
    (void)snprintf(play.stored + at, sizeof play.stored - at, "%s/%u %.*s#%llu %.*s@%llu%s: %.*s|", ns, p,
                   THOLE_FMT(entry->instance), (unsigned long long)entry->execution,
                   THOLE_FMT(entry->orchestration), (unsigned long long)entry->version, certain ? "" : "?",
                   THOLE_FMT(entry->text));
    *ret_count = 4;
    return THOLE_OK;
}

thole_status __wrap_crashes_put(struct connection *connection, const char *ns, uint32_t p,
                                const struct crash_entry *entry, thole_error *reterr)
{
    (void)connection, (void)ns, (void)p, (void)entry;
    return thole_fail(reterr, THOLE_UNAVAILABLE, "not put");
}

thole_status __wrap_crashes_remove(struct connection *connection, const char *ns, uint32_t p,
                                   thole_slice instance, thole_error *reterr)
{
    (void)connection, (void)ns, (void)p, (void)instance;
    return thole_fail(reterr, THOLE_UNAVAILABLE, "not removed");
}

/* ---- tests ---- */

static void place_of(size_t i, const char *instance, uint64_t since_ms)
{
    struct crash_place *const place = &play.page->places[i];
    place->since_ms = since_ms;
    place->kind = CODE_TURN;
    place->partition = (uint32_t)(i + 3);
    place->version = 2;
    place->execution = 5;
    place->event = 7;
    place->instance_len = (uint32_t)strlen(instance);
    memcpy(place->instance, instance, strlen(instance));
    (void)snprintf(place->orchestration, sizeof place->orchestration, "checkout");
}

/* Two shards: "a" runs in the first, "b" in the second; a third runs nothing. */
static void begin(int status)
{
    memset(&play, 0, sizeof play);
    play.page = crash_page_create();
    CU_ASSERT_PTR_NOT_NULL_FATAL(play.page);
    play.page->places_len = 3;
    place_of(0, "a", 100);
    place_of(1, "b", 100);
    place_of(2, "c", 0);
    play.status = status;
    play.now_ms = 1000;
}

static void report(void *arg)
{
    struct host_options const options = {.nats_url = "nats://n:1",
                                         .nats_creds = "file",
                                         .nats_ca = "ca",
                                         .nats_cert = "cert",
                                         .nats_key = "key",
                                         .nats_server_name = "name",
                                         .nats_inbox = "_INBOX_e",
                                         .ns = "shop"};
    (void)arg;
    play.code = crash_report(&options, play.page, play.status);
}

static void check(const char *row, int code, const char *stored, const char *const *lines, size_t n)
{
    char *const said = captured(STDERR_FILENO, report, NULL);
    CU_ASSERT_EQUAL(play.code, code);
    CHECK_STR(row, play.stored, stored);
    for (size_t i = 0; i < n; i++)
        CHECK_STR(row, strstr(said, lines[i]) != NULL ? "said" : said,
                  strstr(said, lines[i]) != NULL ? "said" : lines[i]);
    CU_ASSERT_PTR_NOT_NULL(
        strstr(said, "level=error program=thole area=supervisor ")); /* a death is no warning */
    CU_ASSERT_EQUAL(play.closes, play.opens > 0 && play.open_status == THOLE_OK);
    free(said);
    crash_page_destroy(play.page);
}

#define SAID(...)                                                                                            \
    (const char *const[]){__VA_ARGS__}, sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *)

static void reports(enum crash_kind kind, int number, int place)
{
    play.page->crash.kind = kind;
    play.page->crash.number = number;
    play.page->crash.place = place;
    play.page->crash.state = CRASH_REPORTED;
}

#define ANYWHERE "in a turn of orchestration checkout, at event 7, or in other code of the process|"

static void test_who_is_blamed(void)
{
    begin(SIGSEGV);
    reports(CRASH_SIGNAL, SIGSEGV, 1);
    check("it was reported", 0,
          "shop/4 b#5 checkout@2: SIGSEGV, in a turn of orchestration checkout, at event 7|",
          SAID("instance=b execution=5 msg=\"the engine crashed: version=2: SIGSEGV",
               "instance=b execution=5 msg=\"crash 4 with this build is stored; it is tried in a forked copy "
               "from now on"));
    begin(SIGABRT);
    check("killed, and nobody knows by whom", 0,
          "shop/3 a#5 checkout@2?: killed by SIGABRT, " ANYWHERE
          "shop/4 b#5 checkout@2?: killed by SIGABRT, " ANYWHERE,
          SAID("instance=a execution=5", "instance=b execution=5"));
    begin(3 << 8);
    play.page->places[0].since_ms = 0;
    check("_exit(3)", 0,
          "shop/4 b#5 checkout@2?: the process ended with code 3: _exit() was called, " ANYWHERE,
          SAID("instance=b execution=5"));
    begin(SIGKILL);
    check("killed from outside", 0, "", SAID("the engine died: ", "no orchestration's code is to blame"));
    begin(SIGSEGV);
    reports(CRASH_SIGNAL, SIGSEGV, -1);
    check("in no orchestration", 0, "",
          SAID("the engine died: SIGSEGV", "no orchestration's code is to blame"));
    begin(SIGABRT);
    play.page->places[0].since_ms = play.page->places[1].since_ms = 0;
    check("no code ran", 0, "", SAID("no orchestration's code is to blame"));
}

static void test_while_nats_is_away(void)
{
    begin(SIGSEGV);
    reports(CRASH_SIGNAL, SIGSEGV, 0);
    play.fails = 5;
    check("it is tried again", 0,
          "shop/3 a#5 checkout@2: SIGSEGV, in a turn of orchestration checkout, at event 7|",
          SAID("crash 4 with this build is stored"));
    CU_ASSERT_EQUAL(play.adds, 6);
    CU_ASSERT_EQUAL(play.opens, 1);
    CU_ASSERT_EQUAL(play.now_ms, 1000 + 6 * 10 + 5 * 100);
    begin(SIGSEGV);
    reports(CRASH_SIGNAL, SIGSEGV, 0);
    play.open_status = THOLE_UNAVAILABLE;
    check("not for ever", 1, "", SAID("the crash could not be stored: NATS is away"));
    CU_ASSERT_EQUAL(play.adds, 0);
    CU_ASSERT_EQUAL(play.now_ms, 9000);
}

/* ---- a page that a crashing or hostile process has written into ---- */

static uint64_t draw(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static void fill(uint64_t *state, void *to, size_t len)
{
    for (size_t i = 0; i < len; i++)
        ((uint8_t *)to)[i] = (uint8_t)draw(state);
}

/* Ids and names stay what they may be, and nothing beyond a member is read, whatever the page holds. */
static void report_pages(void *arg)
{
    enum { PAGES = 2000 };
    uint64_t state = 88172645463325252u;
    (void)arg;
    for (int i = 0; i < PAGES; i++) {
        begin((int)(draw(&state) % 256));
        struct crash_page *const page = play.page;
        if (i % 4 == 0)
            fill(&state, page, sizeof *page);
        if (i % 4 == 1)
            memset(page, 0xff, sizeof *page);
        if (i % 4 == 2)
            fill(&state, &page->places[0].kind, sizeof page->places[0] - offsetof(struct crash_place, kind));
        if (i % 4 != 1)
            page->crash.place = (int)(draw(&state) % 3);
        page->crash.state = i % 3 == 0 ? CRASH_UNREPORTED : CRASH_REPORTED;
        page->crash.frames_len = i % 5 == 0 ? SIZE_MAX : i % 5 == 1 ? CRASH_FRAMES_MAX + 1 : 3;
        page->places_len = i % 7 == 0 ? SIZE_MAX : 3;
        if (i % 4 == 3) {
            memset(page->places[0].orchestration, 'o', sizeof page->places[0].orchestration);
            page->places[1].instance_len = (uint32_t)draw(&state);
        }
        report(NULL);
        CU_ASSERT_PTR_NULL(strstr(play.stored, "oooo"));
        crash_page_destroy(page);
    }
}

static void test_hostile_pages(void)
{
    char *const said = captured(STDERR_FILENO, report_pages, NULL);
    CU_ASSERT_PTR_NOT_NULL(strstr(said, "no orchestration's code is to blame"));
    CU_ASSERT_PTR_NOT_NULL(strstr(said, "instance=b execution=5")); /* the others are still reported */
    free(said);
}

/* A change that is not stored is told, so that it is tried again. */
static void test_what_is_not_stored(void)
{
    static struct engine_host engine;
    thole_error err = {.status = THOLE_OK};
    memset(&play, 0, sizeof play);
    play.request.err = &err;
    CU_ASSERT_EQUAL(crash_put_load(&engine, &play.request), THOLE_UNAVAILABLE);
    CHECK_STR("why", err.text, "not put");
    CU_ASSERT_EQUAL(crash_forget_load(&engine, &play.request), THOLE_UNAVAILABLE);
    CHECK_STR("why", err.text, "not removed");
}

/* ---- log lines of orchestrations ---- */

static void log_all(void *arg)
{
    (void)arg;
    for (int level = THOLE_LOG_DEBUG; level <= THOLE_LOG_ERROR + 1; level++)
        code_log(7, &(struct out_line){.level = (thole_log_level)level,
                                       .instance = THOLE_STR("order"),
                                       .execution = 2,
                                       .text = THOLE_STR("hello")});
}

static void test_levels(void)
{
    static const char *const levels[] = {" level=debug ", " level=info ", " level=warn ", " level=error ",
                                         " level=info "};
    log_configure(LOG_LEVEL_DEBUG, LOG_FORMAT_LOGFMT, "test");
    char *const said = captured(STDERR_FILENO, log_all, NULL);
    const char *at = said;
    for (size_t i = 0; i < ARRAY_LEN(levels); i++) {
        const char *const end = strchr(at, '\n');
        CU_ASSERT_PTR_NOT_NULL_FATAL(end);
        char line[200];
        (void)snprintf(line, sizeof line, "%.*s", (int)(end - at), at);
        CHECK_STR(levels[i], strstr(line, levels[i]) != NULL ? levels[i] : line, levels[i]);
        CU_ASSERT_PTR_NOT_NULL(strstr(line, " partition=7 instance=order execution=2 msg=hello"));
        at = end + 1;
    }
    log_configure(LOG_LEVEL_INFO, LOG_FORMAT_LOGFMT, "test");
    free(said);
}

static thole_status code(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    (void)ctx, (void)input, (void)ret_output;
    return THOLE_OK;
}

/* A report's facts about the code that ran are the machine's; none is of the run before. */
static void test_a_place_is_its_last_run(void)
{
    struct crash_page *const page = crash_page_create();
    CU_ASSERT_PTR_NOT_NULL_FATAL(page);
    struct crash_place *const place = &page->places[0];
    struct code_run const runs[] = {
        {CODE_REPLAY, 9, 8, 7, 6, THOLE_STR("a longer id"), THOLE_STR("a_longer_name"), NULL},
        {CODE_TURN, 1, 2, 3, 4, THOLE_STR("id"), THOLE_STR("name"), code},
        {CODE_QUERY, 5, 6, 7, 8, THOLE_STR("i"), THOLE_STR(""), code}};
    for (size_t i = 0; i < ARRAY_LEN(runs); i++) {
        const struct code_run *const run = &runs[i];
        play.now_ms = 1000 + i;
        crash_begins(place, run);
        CU_ASSERT_EQUAL(place->kind, run->kind);
        CU_ASSERT_EQUAL(place->partition, run->partition);
        CU_ASSERT_EQUAL(place->version, run->version);
        CU_ASSERT_EQUAL(place->execution, run->execution);
        CU_ASSERT_EQUAL(place->event, run->event);
        CU_ASSERT_TRUE(place->code == run->code);
        CU_ASSERT_TRUE(thole_slice_equal((thole_slice){place->instance, place->instance_len}, run->instance));
        CU_ASSERT_TRUE(thole_slice_equal(thole_slice_from(place->orchestration), run->orchestration));
        CU_ASSERT_EQUAL(atomic_load(&place->since_ms), 1000 + i);
        CU_ASSERT_EQUAL(atomic_load(&place->runs), i + 1);
    }
    crash_page_destroy(page);
}

/* ---- watched by another thread ---- */

struct runner {
    struct crash_place *place;
    struct code_run runs[2];
    atomic_bool stop;
};

static void *run_in_turn(void *arg)
{
    struct runner *const runner = arg;
    for (size_t i = 0; !atomic_load(&runner->stop); i++) {
        crash_begins(runner->place, &runner->runs[i % 2]);
        crash_ended(runner->place);
    }
    return NULL;
}

static bool is_run(const struct crash_place *place, const struct code_run *run)
{
    return place->kind == run->kind && place->partition == run->partition && place->version == run->version &&
           place->execution == run->execution && place->event == run->event && place->code == run->code &&
           thole_slice_equal((thole_slice){place->instance, place->instance_len}, run->instance) &&
           thole_slice_equal(thole_slice_from(place->orchestration), run->orchestration);
}

/* All runs begin in the same millisecond: a copy that counts as one run has no part of the run before or
 * after it. */
static void test_a_watched_place_is_one_run(void)
{
    enum { COPIES = 2000 };
    struct crash_page *const page = crash_page_create();
    CU_ASSERT_PTR_NOT_NULL_FATAL(page);
    struct runner runner = {
        .place = &page->places[0],
        .runs = {{CODE_REPLAY, 9, 9, 9, 9, THOLE_STR("a longer id"), THOLE_STR("a_longer_name"), NULL},
                 {CODE_TURN, 1, 1, 1, 1, THOLE_STR("id"), THOLE_STR("name"), code}}};
    struct crash_place copy;
    pthread_t thread;
    size_t mixed = 0;
    play.now_ms = 7;
    CU_ASSERT_FALSE(crash_watch_place(runner.place, 0, &copy));
    CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, run_in_turn, &runner), 0);
    for (size_t copies = 0; copies < COPIES;) {
        if (!crash_watch_place(runner.place, play.now_ms, &copy))
            continue;
        copies++;
        mixed += !is_run(&copy, &runner.runs[0]) && !is_run(&copy, &runner.runs[1]);
    }
    atomic_store(&runner.stop, true);
    CU_ASSERT_EQUAL(pthread_join(thread, NULL), 0);
    CU_ASSERT_EQUAL(mixed, 0);
    CU_ASSERT_FALSE(crash_watch_place(runner.place, play.now_ms, &copy)); /* has ended */
    crash_begins(runner.place, &runner.runs[1]);
    CU_ASSERT_TRUE(crash_watch_place(runner.place, play.now_ms, &copy));
    CU_ASSERT_FALSE(crash_watch_place(runner.place, play.now_ms - 1, &copy)); /* another one */
    crash_page_destroy(page);
}

static const struct thole_test tests[] = {
    {"a place is its last run", test_a_place_is_its_last_run},
    {"who is blamed", test_who_is_blamed},
    {"while NATS is away", test_while_nats_is_away},
    {"hostile pages", test_hostile_pages},
    {"what is not stored", test_what_is_not_stored},
    {"levels", test_levels},
    {"a watched place is one run", test_a_watched_place_is_one_run},
};
THOLE_TEST_MAIN("crash_report", tests)
