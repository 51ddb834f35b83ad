/* The web console's server: what each address gives, who is refused, what the stream says and when, with an
 * engine and a worker in this process and real servers, of which NATS is killed. */
#include "browser.h"
#include "console.h"
#include "listen_address.h"
#include "stack.h"
#include "thole/embedding.h"
#include <unistd.h>

enum { WAIT_MS = 30000, HEARD_BYTES = 4 * 1024 * 1024, BIG_BYTES = 200000 };

static struct stack stack;
static thole_engine *engine;
static thole_worker *worker;
static thole_client *client;
static thole_client_options client_options;
static struct console *console;
static struct browser browser;
static char csrf[64], heard[HEARD_BYTES], acting[512];
static thole_error err;

/* ---- the program ---- */

static thole_status says(thole_ctx *ctx, void *arg, thole_slice input, thole_slice *ret_output)
{
    (void)arg;
    *ret_output = thole_format(ctx, "asked %.*s", THOLE_FMT(input));
    return THOLE_OK;
}

static thole_status waits(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    thole_set_status(ctx, input.len < 100 ? input : THOLE_STR("long"));
    thole_on_query(ctx, THOLE_STR("says"), says, NULL);
    return thole_await(ctx, thole_event(ctx, THOLE_STR("go")), ret_output);
}

static thole_status works(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    return thole_await(ctx, thole_call(ctx, THOLE_STR("echo"), input), ret_output);
}

static thole_status echo(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    (void)act;
    *ret_output = input;
    return THOLE_OK;
}

static thole_status throws(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    (void)input, (void)ret_output;
    return thole_throw_as(ctx, THOLE_STR("declined"), "no money");
}

static const thole_orchestration_entry orchestrations[] = {
    {.name = "waits", .run = waits}, {.name = "works", .run = works}, {.name = "throws", .run = throws}};
static const thole_activity_entry activities[] = {{.name = "echo", .run = echo}};
static const thole_program program = {.size = sizeof program,
                                      .name = "console",
                                      .orchestrations = orchestrations,
                                      .orchestrations_len = ARRAY_LEN(orchestrations),
                                      .activities = activities,
                                      .activities_len = ARRAY_LEN(activities)};

/* ---- asking ---- */

static struct console *open_console(struct console_options options, thole_status want)
{
    struct console *opened = NULL;
    options.client = &client_options;
    if (options.address.ss_family == 0)
        listen_address_loopback(0, &options.address);
    CU_ASSERT_EQUAL(console_start(&options, &opened, &err), want);
    if (opened != NULL)
        (void)snprintf(browser.host, sizeof browser.host, "%s", console_address(opened));
    return opened;
}

static void get(const char *path, int code, const char *text)
{
    browser_ask(&browser, "GET", path, "", NULL);
    CU_ASSERT_EQUAL(browser.code, code);
    CU_ASSERT_TRUE(browser_said(&browser, text));
    if (browser.code != code || !browser_said(&browser, text))
        fprintf(stderr, "\n  GET %s: %d %.600s\n  want %d %s\n", path, browser.code, browser.body, code,
                text);
}

static void post_with(const char *headers, const char *path, const char *body, int code, const char *text)
{
    browser_ask(&browser, "POST", path, headers, body);
    CU_ASSERT_EQUAL(browser.code, code);
    CU_ASSERT_TRUE(browser_said(&browser, text));
    if (browser.code != code || !browser_said(&browser, text))
        fprintf(stderr, "\n  POST %s %.300s: %d %.600s\n  want %d %s\n", path, body, browser.code,
                browser.body, code, text);
}

static void post(const char *path, const char *body, int code, const char *text)
{
    post_with(acting, path, body, code, text);
}

static void get_until(const char *path, const char *text)
{
    uint64_t const until = clock_monotonic_ms() + WAIT_MS;
    do {
        browser_ask(&browser, "GET", path, "", NULL);
        if (!browser_said(&browser, text))
            pause_ms(20);
    } while (!browser_said(&browser, text) && clock_monotonic_ms() < until);
    CU_ASSERT_TRUE(browser_said(&browser, text));
}

/* Those that were closed just now may still take up room. */
static int listen_to(const char *path, const char *headers)
{
    uint64_t const until = clock_monotonic_ms() + WAIT_MS;
    for (;;) {
        int const fd = browser_listen(&browser, path, headers);
        heard[0] = '\0';
        bool const answered = browser_heard(fd, heard, sizeof heard, "\r\n\r\n", WAIT_MS);
        bool const open = answered && strstr(heard, " 200 ") != NULL;
        if (open || clock_monotonic_ms() >= until) {
            CU_ASSERT_TRUE(open);
            return fd;
        }
        (void)close(fd);
        pause_ms(20);
    }
}

static void learn_csrf(void)
{
    get("/api/v1/session", 200, "\"csrf\":\"");
    (void)sscanf(strstr(browser.body, "\"csrf\":\"") + 8, "%63[0-9a-f]", csrf);
    (void)snprintf(
        acting, sizeof acting,
        "Content-Type: application/json\r\nX-Thole-Csrf: %s\r\nOrigin: http://%s\r\nSec-Fetch-Site: "
        "same-origin\r\n",
        csrf, browser.host);
}

/* ---- tests ---- */

static void test_opens(void)
{
    console = open_console((struct console_options){.allow_actions = true}, THOLE_OK);
    CU_ASSERT_PTR_NOT_NULL_FATAL(console);
    get_until("/api/v1/nodes", "\"role\":\"worker\"");
    learn_csrf();
}

static void test_reads(void)
{
    post("/api/v1/instances", "{\"orchestration\":\"works\",\"id\":\"done\",\"input\":\"<b>\\u0000x\"}", 200,
         "\"instance\":\"done\",\"accepted\":true");
    post("/api/v1/instances", "{\"orchestration\":\"waits\",\"id\":\"a/\xc3\xbc 1\",\"input\":{\"n\":1}}",
         200, "\"instance\":\"a/\xc3\xbc 1\"");
    get_until("/api/v1/instances/done", "\"status\":\"Completed\"");
    get("/api/v1/instances/done", 200, "\"output\":\"<b>\\u0000x\"");
    get("/api/v1/instances/a%2F%C3%BC%201", 200, "\"kind\":\"event\",\"id\":");
    get("/api/v1/instances/a%2F%C3%BC%201", 200, "\"input\":\"{\\\"n\\\":1}\"");
    get("/api/v1/instances?limit=1", 200, "\"complete\":false,\"next\":\"");
    char path[512] = "/api/v1/instances?limit=1&next=";
    for (const char *at = strstr(browser.body, "\"next\":\"") + 8; *at != '"'; at++)
        (void)snprintf(path + strlen(path), sizeof path - strlen(path), *at == '%' ? "%%25" : "%c", *at);
    get(path, 200, "\"instance\":\"done\"");
    get("/api/v1/instances?status=running", 200, "\"instance\":\"a/\xc3\xbc 1\"");
    get("/api/v1/instances?status=OPEN", 200, "\"instance\":\"a/\xc3\xbc 1\"");
    get("/api/v1/instances?status=stuck,paused", 200, "\"instances\":[]");
    get("/api/v1/instances?status=stuck,Running", 200, "\"instances\":[{\"instance\":\"a/\xc3\xbc 1\"");
    get("/api/v1/instances?custom_status=%7B%22n%22%3A1%7D", 200, "\"custom_status\":\"{\\\"n\\\":1}\"");
    get("/api/v1/instances?custom_status=other", 200, "\"instances\":[],\"complete\":true");
    get("/api/v1/instances?prefix=do&orchestration=works&after=1h", 200, "\"instance\":\"done\"");
    get("/api/v1/instances?before=1000", 200, "\"instances\":[]");
    get("/api/v1/counts", 200, "\"counts\":{\"Running\":1,\"Completed\":1},\"exact\":true");
    get("/api/v1/counts?prefix=do", 200, "\"counts\":{\"Completed\":1},");
    get("/api/v1/instances/done/history", 200, "\"kind\":\"Completed\"");
    get("/api/v1/instances/done/history?limit=1", 200, "\"complete\":false,\"next\":");
    get("/api/v1/instances/done/history?from=1000000", 200, "\"events\":[],\"complete\":true,\"next\":null");
    get("/api/v1/instances/a%2F%C3%BC%201/source", 200, "\"instance\":\"a/\xc3\xbc 1\",\"source\":\"");
    CU_ASSERT_PTR_NOT_NULL(strstr(browser.body, "test_console")); /* the file, or at least the program */
    get("/api/v1/instances/done/source", 200, "\"source\":null,\"source_error\":\"it has ended");
    get("/api/v1/instances/nobody/source", 200,
        "\"source_error\":\"there is no instance \\\"nobody\\\" in namespace ");
    get("/api/v1/queues", 200, "\"queues\":[");
    get("/api/v1/quarantine", 200, "\"poisoned\":[]");
    get("/api/v1/nodes", 200, "\"role\":\"engine\"");
    get("/api/v1/nodes", 200, "\"role\":\"worker\"");
    get("/api/v1/defects", 200, "\"defects\":[]");
    get("/api/v1/mended", 200, "\"mended\":[]");
    get("/api/v1/room", 200, "\"what\":\"hist\",\"streams\":");
    get("/api/v1/partitions", 200, "\"partition\":1,\"owner\":\"");
    get("/api/v1/rejected", 200, "\"rejected\":[");
    get("/api/v1/orchestrations", 200, "[\"waits\",\"works\",\"throws\"]");
    get("/healthz", 200, "ok");
    get("/", 200, "<!doctype html>");
    get("/instances/a%2Fb", 200, "<!doctype html>");
}

static void test_errors(void)
{
    get("/api/v1/nothing", 404, "\"code\":\"NOT_FOUND\"");
    get("/api/v1/instances/nobody", 404, "no instance \\\"nobody\\\"");
    get("/api/v1/instances/nobody/history", 404, "there is no instance");
    get("/api/v1/instances/done/history/1/data?id=999", 404, "no such event");
    get("/api/v1/instances/%00", 400, "\"code\":\"INVALID\"");
    get("/api/v1/instances/%zz", 400, "not followed by two digits");
    get("/api/v1/instances?status=odd", 400, "there is no status \\\"odd\\\"");
    get("/api/v1/instances?status=stuck,", 400, "there is no status \\\"\\\"");
    get("/api/v1/instances?status=running%00", 400, "there is no status");
    get("/api/v1/instances?stauts=running", 400,
        "there is no argument \\\"stauts\\\" here; there are: orchestration prefix parent custom_status "
        "after "
        "before status limit next");
    get("/api/v1/counts?status=running", 400, "there is no argument");
    get("/api/v1/nodes?limit=1", 400, "here; there is none");
    get("/api/v1/stream?last=1", 400, "there are: instance from");
    get("/api/v1/instances?limit=many", 400, "limit must be a number");
    get("/api/v1/instances?limit=0", 400, "limit must be a number from 1");
    post("/api/v1/instances", "{\"orchestration\":\"waits\",\"id\":\"typo\",\"inptu\":1}", 400,
         "there is no \\\"inptu\\\"; there are: orchestration id input");
    get("/api/v1/instances?next=odd", 400, "is no token");
    get("/api/v1/instances?after=odd", 400, "is no time");
    get("/api/v1/instances?limit=1&limit=2", 400, "is given twice");
    get("/api/v1/a/b/c/d/e/f/g", 404, "nothing at this address");
    get("/assets/none.js", 404, "nothing at this address");
    get("/assets/..%2Findex.html", 404, "nothing at this address");
    get("/api/v1/batch", 405, "\"code\":\"METHOD\"");
    browser_ask(&browser, "DELETE", "/api/v1/instances/done", "", NULL);
    CU_ASSERT_EQUAL(browser.code, 405);
    post("/api/v1/instances", "{\"orchestration\":\"works\",\"id\":\"done\"}", 409, "exists already");
    post("/api/v1/instances", "{\"id\":\"x\"}", 400, "\\\"orchestration\\\" is missing");
    post("/api/v1/instances", "{\"orchestration\":1}", 400, "is no text");
    post("/api/v1/instances", "{\"orchestration\":\"works\",\"input_base64\":\"?\"}", 400, "is not base64");
    post("/api/v1/instances", "{\"orchestration\":", 400, "no JSON object");
    post("/api/v1/instances", "[]", 400, "no JSON object");
    post("/api/v1/instances/nobody/cancel", "{}", 404, "NOT_FOUND");
    post("/api/v1/instances/done/cancel", "{}", 409, "ended as Completed");
    post("/api/v1/quarantine/retry", "{\"instance\":\"done\"}", 400, "numbers from 1");
    post("/api/v1/quarantine/retry", "{\"instance\":\"done\",\"execution\":1,\"activity_id\":2}", 404,
         "is not in quarantine");
    post("/api/v1/quarantine/fail", "{\"instance\":\"nobody\",\"execution\":1,\"activity_id\":2}", 404,
         "NOT_FOUND");
    get("/api/v1/queues?queue=typo", 404, "nothing is in a queue typo, and no worker has served it");
    get("/api/v1/quarantine?queue=typo", 404, "nothing is in a queue typo");
    char *const big = malloc(CONSOLE_BODY_BYTES_MAX + 2);
    memset(big, ' ', CONSOLE_BODY_BYTES_MAX + 1);
    big[CONSOLE_BODY_BYTES_MAX + 1] = '\0';
    post("/api/v1/instances", big, 413, "more than 1 MiB");
    free(big);
}

static void test_headers(void)
{
    static const char *const wanted[] = {"Content-Security-Policy: default-src 'none'; script-src 'self'",
                                         "X-Content-Type-Options: nosniff", "Referrer-Policy: no-referrer",
                                         "Cross-Origin-Opener-Policy: same-origin",
                                         "Cross-Origin-Resource-Policy: same-origin"};
    static const char *const paths[] = {"/", "/api/v1/session", "/api/v1/instances", "/nothing.x",
                                        "/healthz"};
    char tag[64] = "", again[128];
    for (size_t p = 0; p < ARRAY_LEN(paths); p++) {
        browser_ask(&browser, "GET", paths[p], "", NULL);
        for (size_t i = 0; i < ARRAY_LEN(wanted); i++)
            CU_ASSERT_PTR_NOT_NULL(strstr(browser.head, wanted[i]));
    }
    get("/", 200, "<!doctype html>");
    CU_ASSERT_PTR_NOT_NULL_FATAL(strstr(browser.head, "ETag: "));
    (void)sscanf(strstr(browser.head, "ETag: ") + 6, "%63s", tag);
    (void)snprintf(again, sizeof again, "If-None-Match: %s\r\n", tag);
    browser_ask(&browser, "GET", "/", again, NULL);
    CU_ASSERT_EQUAL(browser.code, 304);
    CU_ASSERT_EQUAL(browser.body_len, 0);
}

static void test_actions(void)
{
    post("/api/v1/instances/a%2F%C3%BC%201/query", "{\"name\":\"says\",\"input\":\"this\"}", 200,
         "\"output\":\"asked this\"");
    post("/api/v1/instances/a%2F%C3%BC%201/query", "{\"name\":\"odd\"}", 404, "NOT_FOUND");
    post("/api/v1/instances/a%2F%C3%BC%201/pause", "{\"reason\":\"look\"}", 200, "\"accepted\":true");
    get_until("/api/v1/instances/a%2F%C3%BC%201", "\"status\":\"Paused\"");
    post("/api/v1/instances/a%2F%C3%BC%201/resume", "{}", 200, "\"accepted\":true");
    post("/api/v1/instances/a%2F%C3%BC%201/signal", "{\"name\":\"go\",\"data_base64\":\"/wA=\"}", 200,
         "\"stored\":true");
    get_until("/api/v1/instances/a%2F%C3%BC%201", "\"output_base64\":\"/wA=\"");
    post("/api/v1/instances/later/signal", "{\"name\":\"go\"}", 200, "\"kept\":true");
    post("/api/v1/instances", "{\"orchestration\":\"waits\",\"id\":\"t\"}", 200, "\"accepted\":true");
    post("/api/v1/instances/t/terminate", "{\"reason\":\"why\"}", 200, "\"accepted\":true");
    get_until("/api/v1/instances/t", "\"status\":\"Terminated\"");
}

/* An instance's document has all that `thole show` prints. */
static void test_one(void)
{
    post("/api/v1/instances", "{\"orchestration\":\"throws\",\"id\":\"threw\"}", 200, "\"accepted\":true");
    get_until("/api/v1/instances/threw", "\"status\":\"Failed\"");
    get("/api/v1/instances/threw", 200, "\"error_type\":\"declined\"");
    post("/api/v1/instances", "{\"orchestration\":\"waits\",\"id\":\"p\"}", 200, "\"accepted\":true");
    post("/api/v1/instances/p/signal", "{\"name\":\"gone\"}", 200, "\"stored\":true");
    post("/api/v1/instances/p/signal", "{\"name\":\"gone\"}", 200, "\"stored\":true");
    get_until("/api/v1/instances/p", "\"events_kept\":[{\"name\":\"gone\",\"count\":2}]");
    get("/api/v1/instances/p", 200, "\"status\":\"Running\"");
    CU_ASSERT_FALSE(browser_said(&browser, "hindrances"));
    post("/api/v1/instances/p/pause", "{\"reason\":\"look\"}", 200, "\"accepted\":true");
    get_until("/api/v1/instances/p", "\"status\":\"Paused\"");
    get("/api/v1/instances/p", 200, "\"hindrances\":[{\"kind\":\"paused\",\"text\":\"");
    get_until("/api/v1/instances?prefix=p&status=stuck,paused", "[{\"instance\":\"p\"");
    post("/api/v1/batch",
         "{\"action\":\"terminate\",\"filter\":{\"prefix\":\"p\",\"status\":\"stuck,paused\"},"
         "\"preview\":true}",
         200, "\"count\":1,\"sample\":[{\"instance\":\"p\"");
    post("/api/v1/batch",
         "{\"action\":\"terminate\",\"filter\":{\"prefix\":\"p\",\"status\":\"open\"},\"expect\":1}", 200,
         "\"done\":1,\"failed\":0");
    get_until("/api/v1/instances/p", "\"status\":\"Terminated\"");
}

static void test_batch(void)
{
    for (int i = 0; i < 25; i++) {
        char body[128];
        (void)snprintf(body, sizeof body, "{\"orchestration\":\"waits\",\"id\":\"b-%d\",\"input\":\"s\"}", i);
        post("/api/v1/instances", body, 200, "\"accepted\":true");
    }
    get_until("/api/v1/counts?prefix=b-", "\"Running\":25");
    post("/api/v1/instances/b-early/signal", "{\"name\":\"go\"}", 200, "\"kept\":true");
    get_until("/api/v1/counts?prefix=b-", "\"Waiting\":1"); /* an id that cannot be cancelled: not begun */
    post("/api/v1/batch", "{\"action\":\"cancel\",\"filter\":{\"prefix\":\"b-\"},\"preview\":true}", 200,
         "\"count\":25,\"sample\":[{\"instance\":\"b-");
    post("/api/v1/batch", "{\"action\":\"retry\",\"filter\":{\"prefix\":\"b-\"},\"preview\":true}", 200,
         "\"count\":0");
    post("/api/v1/batch", "{\"action\":\"cancel\",\"filter\":{\"prefix\":\"b-\"},\"expect\":24}", 409,
         "selects 25 instances now, 24 were shown");
    get("/api/v1/counts?prefix=b-", 200, "\"Running\":25");
    post("/api/v1/batch", "{\"action\":\"cancel\",\"filter\":{\"prefix\":\"b-early\"},\"expect\":0}", 200,
         "\"done\":0,\"failed\":0");
    post("/api/v1/batch", "{\"action\":\"cancel\",\"filter\":{\"prefix\":\"b-\"},\"expcet\":25}", 400,
         "there is no \\\"expcet\\\"");
    post("/api/v1/batch", "{\"action\":\"cancel\",\"filter\":{\"prefix\":\"b-\"}}", 400, "is missing");
    post("/api/v1/batch", "{\"action\":\"delete\",\"filter\":{}}", 400, "cancel, terminate or retry");
    post("/api/v1/batch", "{\"action\":\"cancel\",\"filter\":{\"prefx\":\"b-\"},\"preview\":true}", 400,
         "there is no \\\"prefx\\\"");
    post("/api/v1/batch", "{\"action\":\"cancel\",\"preview\":true}", 400, "is missing");
    post("/api/v1/batch",
         "{\"action\":\"cancel\",\"filter\":{\"prefix\":\"b-\",\"custom_status\":\"s\"},\"expect\":25,"
         "\"reason\":\"all\"}",
         200, "\"done\":25,\"failed\":0");
    get_until("/api/v1/counts?prefix=b-", "\"Cancelled\":25");
}

static void test_big_data(void)
{
    char *const body = malloc(BIG_BYTES + 200);
    int const n = snprintf(body, 200, "{\"orchestration\":\"works\",\"id\":\"big\",\"input\":\"");
    memset(body + n, 'y', BIG_BYTES);
    (void)snprintf(body + n + BIG_BYTES, 10, "\"}");
    post("/api/v1/instances", body, 200, "\"accepted\":true");
    free(body);
    get_until("/api/v1/instances/big", "\"status\":\"Completed\"");
    get("/api/v1/instances/big/history", 200, "\"data_bytes\":200000");
    CU_ASSERT_TRUE(browser.body_len < 4 * 70000);
    uint64_t const sequence = strtoull(strstr(browser.body, "\"sequence\":") + 11, NULL, 10);
    char path[128];
    (void)snprintf(path, sizeof path, "/api/v1/instances/big/history/%llu/data?id=1",
                   (unsigned long long)sequence);
    get(path, 200, "yyy");
    CU_ASSERT_EQUAL(browser.body_len, BIG_BYTES);
    CU_ASSERT_PTR_NOT_NULL(strstr(browser.head, "Content-Disposition: attachment"));
    CU_ASSERT_PTR_NOT_NULL(strstr(browser.head, "application/octet-stream"));
}

/* An event comes within 200 ms, with time for a slow machine; after a break later ones come again. */
static void test_stream(void)
{
    char path[128];
    post("/api/v1/instances", "{\"orchestration\":\"waits\",\"id\":\"live\"}", 200, "\"accepted\":true");
    int fd = listen_to("/api/v1/stream?instance=live", "");
    CU_ASSERT_TRUE(browser_heard(fd, heard, sizeof heard, "\"kind\":\"EventAwaited\"", WAIT_MS));
    CU_ASSERT_PTR_NOT_NULL(strstr(heard, "text/event-stream"));
    const char *const id = strstr(heard, "\nid: ");
    CU_ASSERT_PTR_NOT_NULL_FATAL(id);
    unsigned long long const first = strtoull(id + 5, NULL, 10);
    uint64_t const begun = now_us();
    CHECK_OK(thole_client_signal(client, THOLE_STR("live"), THOLE_STR("go"), THOLE_STR("now"),
                                 (thole_slice){NULL, 0}, NULL, &err),
             &err);
    CU_ASSERT_TRUE(
        browser_heard(fd, heard, sizeof heard, "event: end\ndata: {\"instance\":\"live\"}", WAIT_MS));
    uint64_t const took = now_us() - begun;
    CU_ASSERT_TRUE(browser_heard(fd, heard, sizeof heard, "event: changed", WAIT_MS));
    fprintf(stderr, "\n  from the request to the end of the stream: %.1f ms\n", (double)took / 1000);
    CU_ASSERT_TRUE(took < 2000000);
    (void)close(fd);
    (void)snprintf(path, sizeof path, "Last-Event-ID: %llu\r\n", first + 1);
    fd = listen_to("/api/v1/stream?instance=live", path);
    CU_ASSERT_TRUE(browser_heard(fd, heard, sizeof heard, "event: end", WAIT_MS));
    CU_ASSERT_PTR_NULL(strstr(heard, "\"kind\":\"Started\""));
    CU_ASSERT_PTR_NOT_NULL(strstr(heard, "\"kind\":\"Completed\""));
    (void)close(fd);
    fd = listen_to("/api/v1/stream?instance=nobody", "");
    CU_ASSERT_TRUE(browser_heard(fd, heard, sizeof heard, "event: missing", WAIT_MS));
    (void)close(fd);
}

/* One that does not read loses what it cannot take; the others and the pages do not notice. */
static void test_slow_reader(void)
{
    int slow[CONSOLE_WORKERS + 1];
    for (size_t i = 0; i < ARRAY_LEN(slow); i++)
        slow[i] = browser_listen(&browser, "/api/v1/stream?instance=big", "");
    int const fd = listen_to("/api/v1/stream", "");
    CU_ASSERT_TRUE(browser_heard(fd, heard, sizeof heard, "retry:", WAIT_MS));
    for (int i = 0; i < 40; i++) {
        char id[32];
        (void)snprintf(id, sizeof id, "s-%d", i);
        CHECK_OK(thole_client_start(client, thole_slice_from(id), THOLE_STR("works"), (thole_slice){NULL, 0},
                                    NULL, &err),
                 &err);
    }
    CU_ASSERT_TRUE(browser_heard(fd, heard, sizeof heard, "event: changed", WAIT_MS));
    CU_ASSERT_TRUE(browser_heard(fd, heard, sizeof heard, "{\"many\":true}", WAIT_MS));
    get("/api/v1/session", 200, "csrf");
    for (size_t i = 0; i < ARRAY_LEN(slow); i++)
        (void)close(slow[i]);
    (void)close(fd);
}

static void test_many_streams(void)
{
    int fds[65];
    for (size_t i = 0; i < 64; i++)
        fds[i] = listen_to("/api/v1/stream", "");
    fds[64] = browser_listen(&browser, "/api/v1/stream", "");
    heard[0] = '\0';
    CU_ASSERT_TRUE(browser_heard(fds[64], heard, sizeof heard, "follow what happens", WAIT_MS));
    CU_ASSERT_PTR_NOT_NULL(strstr(heard, " 503 "));
    for (size_t i = 0; i < ARRAY_LEN(fds); i++)
        (void)close(fds[i]);
    get("/api/v1/instances", 200, "instances");
}

/* Far more connections than there are places, whose requests never end, in their headers or in their body:
 * each request beside is answered at once, and a stream that was there before stays. */
static void test_slow_requests(void)
{
    enum { SLOW = CONSOLE_CONNECTIONS_MAX * 3 / 2, BESIDE = 32 };
    static int fds[SLOW];
    char text[256];
    int const stream = listen_to("/api/v1/stream", "");
    for (size_t i = 0; i < SLOW; i++) {
        fds[i] = browser_begin(&browser, i % 2 == 0 ? "GET /api/v1/inst"
                                                    : "POST /api/v1/instances HTTP/1.1\r\nHost: x\r\n"
                                                      "Content-Length: 1000\r\n\r\n{");
        CU_ASSERT_FATAL(fds[i] >= 0);
        if (i % BESIDE == 0) {
            uint64_t const began = clock_monotonic_ms();
            get("/api/v1/session", 200, "csrf");
            CU_ASSERT_TRUE(clock_monotonic_ms() - began < CONSOLE_IDLE_S * 1000 / 3);
        }
    }
    CU_ASSERT_EQUAL(recv(fds[0], text, sizeof text, 0), 0); /* the oldest was closed */
    CHECK_OK(thole_client_start(client, THOLE_STR("beside"), THOLE_STR("works"), (thole_slice){NULL, 0}, NULL,
                                &err),
             &err);
    heard[0] = '\0';
    CU_ASSERT_TRUE(browser_heard(stream, heard, sizeof heard, "\"beside\"", WAIT_MS));
    for (size_t i = 0; i < SLOW; i++)
        (void)close(fds[i]);
    (void)close(stream);
    get("/api/v1/instances", 200, "instances");
}

static void test_refusals(void)
{
    char headers[512];
    static const char type[] = "Content-Type: application/json\r\n";
    static const char start[] = "{\"orchestration\":\"works\",\"id\":\"refused\"}";
    browser_ask(&browser, "GET", "/api/v1/session", "Host: evil.example\r\n", NULL);
    CU_ASSERT_EQUAL(browser.code, 403);
    browser_ask(&browser, "GET", "/", "Host: evil.example:8233\r\n", NULL);
    CU_ASSERT_EQUAL(browser.code, 403);
    post_with(type, "/api/v1/instances", start, 403, "\"code\":\"CSRF\"");
    (void)snprintf(headers, sizeof headers, "%sX-Thole-Csrf: %.31s0\r\n", type, csrf);
    headers[strlen(headers) - 3] = headers[strlen(headers) - 3] == csrf[31] ? '1' : '0';
    post_with(headers, "/api/v1/instances", start, 403, "\"code\":\"CSRF\"");
    (void)snprintf(headers, sizeof headers, "%sX-Thole-Csrf: %s\r\nOrigin: http://evil.example\r\n", type,
                   csrf);
    post_with(headers, "/api/v1/instances", start, 403, "\"code\":\"ORIGIN\"");
    (void)snprintf(headers, sizeof headers, "%sX-Thole-Csrf: %s\r\nOrigin: null\r\n", type, csrf);
    post_with(headers, "/api/v1/instances", start, 403, "\"code\":\"ORIGIN\"");
    (void)snprintf(headers, sizeof headers, "%sX-Thole-Csrf: %s\r\nSec-Fetch-Site: cross-site\r\n", type,
                   csrf);
    post_with(headers, "/api/v1/instances", start, 403, "\"code\":\"ORIGIN\"");
    (void)snprintf(headers, sizeof headers, "Content-Type: text/plain\r\nX-Thole-Csrf: %s\r\n", csrf);
    post_with(headers, "/api/v1/instances", start, 415, "application/json");
    char *const big = malloc(2 * CONSOLE_BODY_BYTES_MAX);
    memset(big, ' ', 2 * CONSOLE_BODY_BYTES_MAX - 1);
    big[2 * CONSOLE_BODY_BYTES_MAX - 1] = '\0';
    post_with(type, "/api/v1/instances", big, 403, "\"code\":\"CSRF\"");
    free(big);
    get("/api/v1/instances/refused", 404, "refused");
}

/* A console that only reads, and one with a token. */
static void test_other_consoles(void)
{
    static const char token[] = "0123456789abcdef-token";
    char headers[1024];
    struct console *other = open_console((struct console_options){.allow_actions = false}, THOLE_OK);
    learn_csrf();
    get("/api/v1/session", 200, "\"actions\":false,\"actions_why\":\"this console only reads");
    post("/api/v1/instances", "{\"orchestration\":\"works\"}", 403, "\"code\":\"READ_ONLY\"");
    console_stop(other);
    other = open_console((struct console_options){.token = token}, THOLE_OK);
    learn_csrf();
    post("/api/v1/instances", "{\"orchestration\":\"works\"}", 401, "\"code\":\"TOKEN\"");
    CU_ASSERT_PTR_NOT_NULL(strstr(browser.head, "WWW-Authenticate: Bearer"));
    (void)snprintf(headers, sizeof headers, "%sAuthorization: Bearer %s\r\n", acting, token);
    post_with(headers, "/api/v1/instances", "{\"orchestration\":\"works\"}", 200, "\"instance\":\"works-");
    CU_ASSERT_PTR_NOT_NULL(strstr(browser.head, "Set-Cookie: thole_stream="));
    (void)snprintf(headers, sizeof headers, "%sAuthorization: Bearer %.20sx\r\n", acting, token);
    post_with(headers, "/api/v1/instances", "{\"orchestration\":\"works\"}", 401, "\"code\":\"TOKEN\"");
    console_stop(other);
    (void)snprintf(browser.host, sizeof browser.host, "%s", console_address(console));
    learn_csrf();
}

/* NATS is away for a while: each request says so, the stream goes on, and nothing has to be restarted. */
static void test_nats_returns(void)
{
    post("/api/v1/instances", "{\"orchestration\":\"waits\",\"id\":\"over\"}", 200, "\"accepted\":true");
    int const fd = listen_to("/api/v1/stream?instance=over", "");
    CU_ASSERT_TRUE(browser_heard(fd, heard, sizeof heard, "EventAwaited", WAIT_MS));
    server_kill9(&stack.nats);
    get("/api/v1/instances/over/history", 503, "\"code\":\"UNAVAILABLE\"");
    get("/api/v1/session", 200, "csrf");
    get("/api/v1/instances?prefix=over", 200, "\"instance\":\"over\""); /* Postgres answers */
    CHECK_OK(server_restart(&stack.nats, &err), &err);
    get_until("/api/v1/instances/over/history", "EventAwaited");
    CHECK_OK(thole_client_signal(client, THOLE_STR("over"), THOLE_STR("go"), THOLE_STR("on"),
                                 (thole_slice){NULL, 0}, NULL, &err),
             &err);
    CU_ASSERT_TRUE(browser_heard(fd, heard, sizeof heard, "event: end", WAIT_MS));
    (void)close(fd);
}

static const struct thole_test tests[] = {
    {"opens", test_opens},
    {"reads", test_reads},
    {"errors", test_errors},
    {"headers", test_headers},
    {"actions", test_actions},
    {"one instance", test_one},
    {"batch", test_batch},
    {"big data", test_big_data},
    {"stream", test_stream},
    {"slow reader", test_slow_reader},
    {"many streams", test_many_streams},
    {"slow requests", test_slow_requests},
    {"refusals", test_refusals},
    {"other consoles", test_other_consoles},
    {"NATS returns", test_nats_returns},
};

int main(void)
{
    static const char *const engine_arguments[] = {"--partitions", "2", "--node-ttl=6s", NULL};
    static const char *const worker_arguments[] = {NULL};
    skip_without_nats();
    skip_without_postgres();
    stack_start(&stack);
    int result = 1;
    thole_client_options_init(&client_options);
    if (thole_engine_start(&program, engine_arguments, &engine, &err) == THOLE_OK)
        client = stack_client(&stack);
    if (client != NULL && thole_worker_start(&program, worker_arguments, &worker, &err) == THOLE_OK)
        result = thole_run_suite("console", tests, ARRAY_LEN(tests));
    console_stop(console);
    thole_client_close(client);
    thole_worker_stop(worker);
    (void)thole_worker_join(worker, NULL);
    thole_engine_stop(engine);
    (void)thole_engine_join(engine, NULL);
    stack_stop(&stack);
    return result;
}
