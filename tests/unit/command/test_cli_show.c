/* thole show, in this process, with a client that the test plays: each state of what is waited for. */
#include "captured.h"
#include "command.h"
#include "thole/client.h"
#include "thole_cunit.h"
#include <stdlib.h>
#include <unistd.h>

enum { DUE_MS = 86400 * 1000 };

static struct {
    thole_instance_info info;
    thole_inspection inspection;
    const thole_activity_info *rows;
    size_t rows_len;
    const thole_set_aside_info *set_aside;
    size_t set_aside_len;
    const thole_worker_info *workers;
    size_t workers_len;
    thole_status rows_status, workers_status, show_status;
} play;

static thole_client *const some_client = (thole_client *)&play;

thole_status __wrap_thole_client_open(const thole_client_options *options, thole_client **ret,
                                      thole_error *reterr)
{
    (void)options, (void)reterr;
    *ret = some_client;
    return THOLE_OK;
}

void __wrap_thole_client_close(thole_client *client)
{
    CU_ASSERT_PTR_EQUAL(client, some_client);
}

thole_status __wrap_thole_client_show(thole_client *client, thole_slice instance, thole_instance_fn *each,
                                      void *arg, thole_error *reterr)
{
    (void)client;
    CU_ASSERT_TRUE(thole_slice_equal(instance, THOLE_STR("order")));
    if (play.show_status != THOLE_OK)
        return thole_fail(reterr, play.show_status, "no row");
    return each(arg, &play.info);
}

thole_status __wrap_thole_client_inspect(thole_client *client, thole_slice instance,
                                         thole_inspection_fn *each, void *arg, thole_error *reterr)
{
    (void)client, (void)reterr;
    CU_ASSERT_TRUE(thole_slice_equal(instance, THOLE_STR("order")));
    return each(arg, &play.inspection);
}

thole_status __wrap_thole_client_explain(thole_client *client, thole_slice instance, thole_hindrance_fn *each,
                                         void *arg, thole_error *reterr)
{
    thole_hindrance const hindrance = {
        .kind = "no_worker", .text = THOLE_STR("nobody"), .remedy = THOLE_STR("start somebody")};
    (void)client, (void)reterr;
    CU_ASSERT_TRUE(thole_slice_equal(instance, THOLE_STR("order")));
    return each(arg, &hindrance);
}

thole_status __wrap_thole_client_activities(thole_client *client, thole_slice instance,
                                            thole_activity_info_fn *each, void *arg, thole_error *reterr)
{
    (void)client;
    CU_ASSERT_TRUE(thole_slice_equal(instance, THOLE_STR("order")));
    for (size_t i = 0; i < play.rows_len; i++)
        THOLE_TRY(each(arg, &play.rows[i]));
    return play.rows_status == THOLE_OK ? THOLE_OK : thole_fail(reterr, play.rows_status, "no rows");
}

thole_status __wrap_thole_client_set_aside(thole_client *client, thole_slice instance,
                                           thole_set_aside_fn *each, void *arg, thole_error *reterr)
{
    (void)client, (void)reterr;
    CU_ASSERT_TRUE(thole_slice_equal(instance, THOLE_STR("order")));
    for (size_t i = 0; i < play.set_aside_len; i++)
        THOLE_TRY(each(arg, &play.set_aside[i]));
    return THOLE_OK;
}

thole_status __wrap_thole_client_workers(thole_client *client, thole_worker_fn *each, void *arg,
                                         thole_error *reterr)
{
    (void)client;
    for (size_t i = 0; i < play.workers_len; i++)
        THOLE_TRY(each(arg, &play.workers[i]));
    return play.workers_status == THOLE_OK ? THOLE_OK : thole_fail(reterr, play.workers_status, "no answer");
}

static void run_show(void *arg)
{
    char *argv[] = {(char *)"thole", (char *)"show", (char *)"order", (char *)"-o", arg, NULL};
    CU_ASSERT_EQUAL(cli_main(5, argv), 0);
}

static char *show(const char *output)
{
    return captured(STDOUT_FILENO, run_show, (char *)output);
}

static void begin(void)
{
    memset(&play, 0, sizeof play);
    play.info = (thole_instance_info){.instance = THOLE_STR("order"),
                                      .orchestration = THOLE_STR("checkout"),
                                      .execution = 2,
                                      .status = THOLE_INSTANCE_RUNNING,
                                      .created_ms = 1000,
                                      .updated_ms = 2000,
                                      .partition = 3,
                                      .open_activities = 4,
                                      .open_timers = 5,
                                      .version = 6,
                                      .custom_status = THOLE_STR("half"),
                                      .parent = THOLE_STR("cart"),
                                      .turns = 7};
    play.inspection = (thole_inspection){.execution = 2,
                                         .status = THOLE_INSTANCE_RUNNING,
                                         .input = THOLE_STR("in"),
                                         .output = THOLE_STR("out")};
}

/* ---- the row ---- */

static void test_row(void)
{
    begin();
    char *text = show("table");
    CHECK_STR("table", text,
              "instance        order\norchestration   checkout\nstatus          Running\n"
              "custom status   half\nversion         6\nparent          cart\nexecution       2\n"
              "turns           7\ncreated         1970-01-01T00:00:01.000Z\n"
              "updated         1970-01-01T00:00:02.000Z\nopen activities 4\nopen timers     5\n"
              "partition       3\ninput           in (2 bytes)\n");
    free(text);
    play.inspection.status = THOLE_INSTANCE_COMPLETED;
    play.inspection.output = THOLE_STR("");
    text = show("table");
    CU_ASSERT_PTR_NOT_NULL(
        strstr(text, "partition       3\ninput           in (2 bytes)\noutput          (empty)\n"));
    free(text);
    play.inspection.output = THOLE_STR("out");
    text = show("json");
    CHECK_STR("json", text,
              "{\"schema\":\"thole.instance.v1\",\"instance\":\"order\",\"orchestration\":\"checkout\","
              "\"version\":6,\"status\":\"Running\",\"execution\":2,\"created\":\"1970-01-01T00:00:01.000Z\","
              "\"updated\":\"1970-01-01T00:00:02.000Z\",\"detail\":\"\",\"custom_status\":\"half\","
              "\"parent\":\"cart\",\"turns\":7,\"partition\":3,\"open_activities\":4,\"open_timers\":5,"
              "\"input\":\"in\",\"input_bytes\":2,\"output\":\"out\",\"output_bytes\":3,\"pending\":[]}\n");
    free(text);
}

/* One object is the same line in both. */
static void test_json_lines(void)
{
    begin();
    char *const json = show("json"), *const lines = show("jsonl");
    CHECK_STR("jsonl", lines, json);
    free(json);
    free(lines);
}

/* Why it is stuck and what to do is longer than a line, and whole; other texts are cut. */
static void test_long_texts(void)
{
    char detail[801], want[900];
    memset(detail, 'd', sizeof detail - 1);
    detail[sizeof detail - 1] = '\0';
    begin();
    play.info.detail = play.info.custom_status = thole_slice_from(detail);
    char *const text = show("table");
    (void)snprintf(want, sizeof want, "\ndetail          %s\n", detail);
    CU_ASSERT_PTR_NOT_NULL(strstr(text, want));
    (void)snprintf(want, sizeof want, "\ncustom status   %s\n", detail);
    CU_ASSERT_PTR_NULL(strstr(text, want));
    free(text);
}

/* ---- open tasks ---- */

#define ACTIVITY_OF(number, activity, of_queue, ...)                                                         \
    {                                                                                                        \
        .kind = THOLE_PENDING_ACTIVITY, .id = number, .name = THOLE_STR(activity),                           \
        .queue = THOLE_STR(of_queue), .try_number = 3, .asked_for_ms = 1000, __VA_ARGS__                     \
    }
#define ACTIVITY(number, ...) ACTIVITY_OF(number, "charge", "q", __VA_ARGS__)
#define DUE "1970-01-02T00:00:00.000Z"

struct row {
    thole_pending pending;
    const char *line; /* after the number; NULL: that of the text */
    const char *json; /* after kind, id, name and asked_for */
};

static thole_slice const known[] = {{(const uint8_t *)"charge", 6}};

static void check_rows(const struct row *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        char want[512];
        play.inspection.pending = &rows[i].pending;
        play.inspection.pending_len = 1;
        char *text = show("table");
        (void)snprintf(want, sizeof want, "waits for #%-5llu%s\n", (unsigned long long)rows[i].pending.id,
                       rows[i].line);
        char *const at = strstr(text, "waits for");
        char *const step = at == NULL ? NULL : strstr(at, "next step       start somebody\n");
        bool const stands = rows[i].pending.kind == THOLE_PENDING_CHILD || /* which may not go on */
                            strstr(rows[i].json, "unserved") != NULL ||
                            strstr(rows[i].json, "quarantined") != NULL ||
                            strstr(rows[i].json, "\"unknown\"") != NULL;
        CU_ASSERT_EQUAL(step != NULL, stands);
        if (step != NULL)
            *step = '\0';
        CHECK_STR(rows[i].line, at == NULL ? "" : at, want);
        free(text);
        text = show("json");
        if (strstr(text, rows[i].json) == NULL)
            CHECK_STR(rows[i].line, text, rows[i].json);
        free(text);
    }
}

static void test_states(void)
{
    thole_activity_info const infos[] = {
        {.execution = 2, .activity_id = 3, .outside = true},
        {.execution = 2, .activity_id = 4, .worker = THOLE_STR("w-1"), .silent_ms = 61999},
        {.execution = 2, .activity_id = 6},
        {.execution = 1, .activity_id = 5, .worker = THOLE_STR("of another execution")}};
    thole_worker_info const workers[] = {{.worker = THOLE_STR("w"),
                                          .queue = THOLE_STR("q"),
                                          .activities = known,
                                          .activities_len = ARRAY_LEN(known)}};
#define HEAD "\"name\":\"charge\",\"asked_for\":\"1970-01-01T00:00:01.000Z\","
#define TRY "\"queue\":\"q\",\"try\":3,\"state\":"
#define LINE "activity charge, queue q, try 3: "
#define QUARANTINE(until) "in quarantine" until "; thole queue poisoned says why"
#define RETRY "failed, its next try is due at " DUE
    struct row const rows[] = {
        {ACTIVITY(1, .waiting = true, .quarantined = true, .due_ms = DUE_MS), LINE QUARANTINE(" until " DUE),
         HEAD "\"due\":\"" DUE "\"," TRY "\"quarantined\",\"text\":\"" QUARANTINE(" until " DUE) "\"}"},
        {ACTIVITY(1, .quarantined = true), LINE QUARANTINE(""),
         HEAD TRY "\"quarantined\",\"text\":\"" QUARANTINE("") "\"}"},
        {ACTIVITY(2, .waiting = true, .due_ms = DUE_MS), LINE RETRY,
         HEAD "\"due\":\"" DUE "\"," TRY "\"retrying\",\"text\":\"" RETRY "\"}"},
        {ACTIVITY(3, .due_ms = 0), LINE "is completed from outside, with its token", HEAD TRY "\"outside\","},
        {ACTIVITY(4, .due_ms = 0), LINE "worker w-1 has it, heard of 61 s ago",
         HEAD TRY "\"running\",\"text\":\"worker w-1 has it, heard of 61 s ago\",\"worker\":\"w-1\","
                  "\"silent_ms\":61999}"},
        {ACTIVITY(5, .due_ms = 0), LINE "on its way to its queue, or completed just now",
         HEAD TRY "\"between\","},
        {ACTIVITY(6, .due_ms = 0), LINE "waits for a worker", HEAD TRY "\"queued\","},
        {ACTIVITY_OF(6, "chage", "q", .due_ms = 0),
         "activity chage, queue q, try 3: no worker of queue q knows chage; did the code mean charge?",
         TRY "\"unknown\",\"text\":\"no worker of queue q knows chage; did the code mean charge?\"}"},
        {ACTIVITY_OF(6, "charge", "r", .due_ms = 0),
         "activity charge, queue r, try 3: no worker serves queue r", "\"state\":\"unserved\","},
        {{.kind = THOLE_PENDING_TIMER, .id = 8, .due_ms = DUE_MS},
         "timer, due at " DUE,
         "{\"kind\":\"timer\",\"id\":8,\"asked_for\":null,\"due\":\"" DUE "\"}"},
        {{.kind = THOLE_PENDING_EVENT, .id = 9, .name = THOLE_STR("paid")},
         "event paid",
         "{\"kind\":\"event\",\"id\":9,\"name\":\"paid\",\"asked_for\":null}"},
        {{.kind = THOLE_PENDING_CHILD, .id = 10, .name = THOLE_STR("ship"), .instance = THOLE_STR("order/1")},
         "child order/1 (ship)",
         "{\"kind\":\"child\",\"id\":10,\"name\":\"ship\",\"child\":\"order/1\","
         "\"asked_for\":null}"},
    };
    begin();
    play.rows = infos;
    play.rows_len = ARRAY_LEN(infos);
    play.workers = workers;
    play.workers_len = ARRAY_LEN(workers);
    check_rows(rows, ARRAY_LEN(rows));
}

/* Workers are asked for when one of several is an activity, wherever it stands. */
static void test_several(void)
{
    thole_activity_info const infos[] = {{.execution = 2, .activity_id = 4, .worker = THOLE_STR("w-1")}};
    thole_pending const activity = ACTIVITY(4, .due_ms = 0),
                        timer = {.kind = THOLE_PENDING_TIMER, .id = 8, .due_ms = DUE_MS};
    thole_pending const both[2][2] = {{activity, timer}, {timer, activity}};
    for (size_t i = 0; i < ARRAY_LEN(both); i++) {
        begin();
        play.rows = infos;
        play.rows_len = ARRAY_LEN(infos);
        play.inspection.pending = both[i];
        play.inspection.pending_len = 2;
        char *const text = show("table");
        CU_ASSERT_PTR_NOT_NULL(strstr(text, "waits for #4    " LINE "worker w-1 has it, heard of 0 s ago\n"));
        CU_ASSERT_PTR_NOT_NULL(strstr(text, "waits for #8    timer, due at " DUE "\n"));
        free(text);
    }
}

/* A question without an answer leaves the fact unknown. */
static void test_what_is_not_known(void)
{
    struct row const rows[] = {{ACTIVITY(5, .due_ms = 0), LINE "waits for a worker", TRY "\"queued\","}};
    begin();
    play.rows_status = play.workers_status = THOLE_UNAVAILABLE;
    check_rows(rows, ARRAY_LEN(rows));
}

static void test_many(void)
{
    enum { SHOWN = 50 };
    thole_pending pending[SHOWN + 3];
    begin();
    for (size_t i = 0; i < ARRAY_LEN(pending); i++)
        pending[i] = (thole_pending){.kind = THOLE_PENDING_TIMER, .id = i + 1, .due_ms = DUE_MS};
    play.inspection.pending = pending;
    for (size_t n = SHOWN - 1; n <= ARRAY_LEN(pending); n++) {
        char last[32], more[64];
        play.inspection.pending_len = n;
        char *const text = show("table");
        (void)snprintf(last, sizeof last, "waits for #%zu ", n <= SHOWN ? n : (size_t)SHOWN);
        (void)snprintf(more, sizeof more, "and             %zu more; -o json prints all\n",
                       n > SHOWN ? n - SHOWN : 0);
        CU_ASSERT_PTR_NOT_NULL(strstr(text, last));
        CU_ASSERT_EQUAL(strstr(text, more) != NULL, n > SHOWN);
        CU_ASSERT_PTR_NULL(strstr(text, "waits for #51 "));
        free(text);
    }
}

/* ---- rows that Postgres refuses ---- */

static void test_set_aside(void)
{
    thole_set_aside_info const refused[] = {{.table = THOLE_STR("instances"),
                                             .column = THOLE_STR("version"),
                                             .reason = THOLE_STR("too large"),
                                             .since_ms = DUE_MS},
                                            {.table = THOLE_STR("timers"),
                                             .execution = 2,
                                             .id = 7,
                                             .removal = true,
                                             .code = THOLE_STR("P0001"),
                                             .reason = THOLE_STR("it\x01 stays"),
                                             .since_ms = DUE_MS}};
    begin();
    play.set_aside = refused;
    play.set_aside_len = ARRAY_LEN(refused);
    char *text = show("table");
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "row set aside   table instances, column version: too large\n"
                                        "row set aside   table timers, execution 2, #7, stays: it"));
    CU_ASSERT_PTR_NOT_NULL(strstr(text, " stays (SQLSTATE P0001)\n"));
    free(text);
    text = show("json");
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "\"set_aside\""));
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "\"version\""));
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "\"P0001\""));
    free(text);
}

/* The row in instances is missing: the state is that of the history. */
static void test_row_set_aside(void)
{
    thole_set_aside_info const refused[] = {
        {.table = THOLE_STR("instances"), .column = THOLE_STR("version"), .reason = THOLE_STR("too large")}};
    begin();
    play.show_status = THOLE_NOT_FOUND;
    play.inspection.orchestration = THOLE_STR("checkout");
    play.set_aside = refused;
    play.set_aside_len = 1;
    char *text = show("table");
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "orchestration   checkout\n"));
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "row set aside   table instances, column version: too large\n"));
    free(text);
    text = show("json");
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "\"set_aside\""));
    free(text);
}

static const struct thole_test tests[] = {
    {"json lines", test_json_lines},
    {"row", test_row},
    {"long texts", test_long_texts},
    {"states", test_states},
    {"what is not known", test_what_is_not_known},
    {"many", test_many},
    {"several", test_several},
    {"set aside", test_set_aside},
    {"row set aside", test_row_set_aside},
};
THOLE_TEST_MAIN("cli_show", tests)
