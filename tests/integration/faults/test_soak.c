/*
 * Everything that users do and that goes wrong, round after round, and then nothing may be left over: what
 * the processes hold (descriptors, threads, memory, children), what the servers hold for them (consumers,
 * messages, rows), and what runs out one day (questions, slots) is as it was after the first rounds.
 *   test_soak            about half a minute
 *   test_soak MINUTES    scripts/soak
 */
#include "connection.h"
#include "query_message.h"
#include "requests.h"
#include "stack.h"
#include "subject.h"
#include "tcp_proxy.h"
#include <arpa/inet.h>
#include <dirent.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    SLOTS = 3,
    SETTLE_MS = 30000,
    WARM_ROUNDS = 3,
    SHORT_ROUNDS = 10,
    PARTITIONS = 2,
    AT_ONCE = 1000,
    QUERIES =
        100, /* of a round: an engine's shard refuses more than 256 at once, counted from first to last */
    MEMORY_KIB = 12 * 1024, /* allowed growth of a process */
    WAIT_MS = 30000,
    CONNECTIONS = 7, /* of the engine, its queries and its two shards, the worker, the client and the hand */
    SESSIONS = 5     /* of the engine's two shards and its look at the tables, and of the worker's claims and
                        completions */
};

static struct stack stack;
static thole_client *client;
static struct connection *hand;
static struct stack_program *engine, *worker;
static struct tcp_proxy *nats, *postgres;
static unsigned rounds, minutes;
static unsigned long queries, failed_queries;
static uint16_t monitor_port; /* of nats-server's own pages */

/* ---- resources of processes ---- */

struct held {
    unsigned descriptors, threads, children, child_descriptors;
    unsigned long memory_kib;
};

static unsigned count_entries(pid_t pid, const char *folder)
{
    char path[64];
    unsigned n = 0;
    snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, folder);
    DIR *const dir = opendir(path);
    for (const struct dirent *entry; dir != NULL && (entry = readdir(dir)) != NULL;)
        n += entry->d_name[0] != '.';
    if (dir != NULL)
        closedir(dir);
    return n;
}

static unsigned long memory_of(pid_t pid)
{
    char path[64], line[256];
    unsigned long kib = 0;
    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    FILE *const file = fopen(path, "r");
    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        if (strncmp(line, "VmRSS:", 6) == 0)
            kib = strtoul(line + 6, NULL, 10);
    if (file != NULL)
        fclose(file);
    return kib;
}

static pid_t parent_of(const char *pid)
{
    char path[300], text[512] = "";
    snprintf(path, sizeof path, "/proc/%s/stat", pid);
    FILE *const file = fopen(path, "r");
    size_t const n = file == NULL ? 0 : fread(text, 1, sizeof text - 1, file);
    if (file != NULL)
        fclose(file);
    text[n] = '\0';
    const char *const at = strrchr(text, ')'); /* "12 (name) S 11 ..." */
    return at == NULL || strlen(at) < 4 ? 0 : (pid_t)strtol(at + 4, NULL, 10);
}

/* Of everything below the process: the forkserver, the crash reporter, guards and processes of activities. */
static void add_children(pid_t pid, struct held *held)
{
    DIR *const dir = opendir("/proc");
    for (const struct dirent *entry; dir != NULL && (entry = readdir(dir)) != NULL;) {
        if (entry->d_name[0] < '1' || entry->d_name[0] > '9' || parent_of(entry->d_name) != pid)
            continue;
        pid_t const child = (pid_t)strtol(entry->d_name, NULL, 10);
        held->children++;
        held->child_descriptors += count_entries(child, "fd");
        add_children(child, held);
    }
    if (dir != NULL)
        closedir(dir);
}

/* Of the process that serves, and of everything below the one that was started. */
static struct held held_by(const struct stack_program *program)
{
    pid_t const pid = stack_serving(program);
    struct held held = {.descriptors = count_entries(pid, "fd"),
                        .threads = count_entries(pid, "task"),
                        .memory_kib = memory_of(pid)};
    add_children(program->pid, &held);
    return held;
}

/* ---- resources of the servers ---- */

static const char *const streams[] = {
    "THOLE_default_WORK",      "THOLE_default_IN_0",    "THOLE_default_IN_1",
    "THOLE_default_HIST_0",    "THOLE_default_HIST_1",  "KV_THOLE_default_NODES",
    "KV_THOLE_default_CONFIG", "THOLE_default_CRASHES", "THOLE_default_REJECTED"};

struct served {
    uint64_t consumers[ARRAY_LEN(streams)], work;
    uint64_t connections, subscriptions; /* of NATS */
    unsigned long rows, sessions;        /* sessions: of Postgres */
};

static uint64_t number_after(const char *text, const char *key)
{
    const char *const at = strstr(text, key);
    return at == NULL ? UINT64_MAX : strtoull(at + strlen(key), NULL, 10);
}

/* The server's page about its connections: their number, and the subscriptions of all. */
static void count_subscriptions(struct served *served)
{
    static char text[256 * 1024];
    char request[] = "GET /connz HTTP/1.0\r\n\r\n";
    struct sockaddr_in const at = {
        .sin_family = AF_INET, .sin_port = htons(monitor_port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    size_t len = 0;
    ssize_t n = 1;
    int const fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool const asked = fd >= 0 && connect(fd, (const struct sockaddr *)&at, sizeof at) == 0 &&
                       send(fd, request, sizeof request - 1, MSG_NOSIGNAL) == (ssize_t)sizeof request - 1;
    while (asked && n > 0 && len < sizeof text - 1) {
        n = recv(fd, text + len, sizeof text - 1 - len, 0);
        len += n > 0 ? (size_t)n : 0;
    }
    text[len] = '\0';
    if (fd >= 0)
        close(fd);
    served->connections = number_after(text, "\"num_connections\": ");
    served->subscriptions = 0;
    for (const char *page = text; (page = strstr(page, "\"subscriptions\": ")) != NULL; page++)
        served->subscriptions += number_after(page, "\"subscriptions\": ");
}

static struct served served(void)
{
    struct served served = {.rows = 0};
    char api[128];
    struct buf answer;
    buf_init(&answer, 256 * 1024);
    for (size_t i = 0; i < ARRAY_LEN(streams); i++) {
        snprintf(api, sizeof api, "$JS.API.STREAM.INFO.%s", streams[i]);
        if (connection_request(hand, api, (thole_slice){0}, &answer, &stack.err) != THOLE_OK)
            buf_clear(&answer);
        served.consumers[i] = number_after(buf_cstr(&answer), "\"consumer_count\":");
        if (i == 0)
            served.work = number_after(buf_cstr(&answer), "\"messages\":");
    }
    buf_release(&answer);
    served.rows = strtoul(stack_sql(&stack, "SELECT (SELECT count(*) FROM thole_default.worker_queue) +"
                                            " (SELECT count(*) FROM thole_default.timers) +"
                                            " (SELECT count(*) FROM thole_default.instances)"),
                          NULL, 10);
    served.sessions = strtoul(stack_sql(&stack, "SELECT count(*) FROM pg_stat_activity"
                                                " WHERE application_name LIKE 'thole%'"),
                              NULL, 10);
    count_subscriptions(&served);
    return served;
}

/* ---- one round ---- */

static char names[64][64];
static size_t names_len;

static const char *begin(const char *orchestration, const char *input)
{
    char *const id = names[names_len++];
    uint64_t const end = clock_monotonic_ms() + WAIT_MS;
    thole_status status;
    snprintf(id, sizeof names[0], "%s-%s-%u-%zu", orchestration, input, rounds, names_len);
    do
        status = thole_client_start(client, thole_slice_from(id), thole_slice_from(orchestration),
                                    thole_slice_from(input), NULL, &stack.err);
    while (status == THOLE_UNAVAILABLE && clock_monotonic_ms() < end);
    CU_ASSERT_TRUE(status == THOLE_OK || status == THOLE_CONFLICT);
    return id;
}

static void check_ends(const char *id, const char *want)
{
    thole_instance_status status;
    CHECK_STR(id, stack_outcome(client, id, WAIT_MS, &status), want);
}

/* Each may fail, and some must: what is counted is that none is forgotten. */
static void ask(const char *id, const char *query, const char *input, thole_status want)
{
    thole_slice output = {0};
    thole_status status;
    uint64_t const end = clock_monotonic_ms() + WAIT_MS;
    do
        status = thole_client_query(client, thole_slice_from(id), thole_slice_from(query),
                                    thole_slice_from(input), &output, &stack.err);
    while (status == THOLE_UNAVAILABLE && clock_monotonic_ms() < end);
    if (status != want)
        fprintf(stderr, "\n  query %s of %s: %s, %s\n", query, id, thole_status_name(status), stack.err.text);
    CU_ASSERT_EQUAL(status, want);
    thole_client_release(output);
    queries++;
    failed_queries += want != THOLE_OK;
}

static void ask_all(const char *running, const char *ended)
{
    for (unsigned i = 0; i < QUERIES / 4; i++) {
        ask(running, "says", "x", THOLE_OK);
        ask(running, "says", "fail", THOLE_INVALID);
        ask(running, "nothing", "x", THOLE_NOT_FOUND);
        ask(i % 2 == 0 ? "nobody" : ended, "says", "x", i % 2 == 0 ? THOLE_NOT_FOUND : THOLE_OK);
    }
}

static atomic_uint answered, refused;

static void on_answer(void *arg, const struct request_done *done)
{
    struct query_answer answer;
    struct arena arena;
    (void)arg;
    arena_init(&arena, 4096);
    if (done->result == REQUEST_ANSWERED &&
        query_answer_decode(done->body, &arena, &answer, NULL) == THOLE_OK)
        refused += answer.status == THOLE_UNAVAILABLE;
    answered++;
    arena_release(&arena);
}

/* More at once than an engine takes: some are refused, and none of them counts for ever. */
static void overload(const char *id)
{
    struct query const query = {
        .instance = thole_slice_from(id), .name = THOLE_STR("says"), .input = THOLE_STR("slow")};
    struct requests *requests = NULL;
    struct buf subject, body;
    buf_init(&subject, SUBJECT_BYTES_MAX);
    buf_init(&body, 4096);
    CHECK_OK(subject_query(&subject, "default", subject_partition(query.instance, PARTITIONS), query.name,
                           query.instance, &stack.err),
             &stack.err);
    CU_ASSERT_EQUAL(query_encode(&query, &body), THOLE_OK);
    CHECK_OK(requests_open(hand, AT_ONCE, WAIT_MS, on_answer, NULL, &requests, &stack.err), &stack.err);
    for (unsigned i = 0; i < AT_ONCE; i++)
        CHECK_OK(requests_send(requests, buf_cstr(&subject), buf_bytes(&body), 1, &stack.err), &stack.err);
    for (uint64_t const end = clock_monotonic_ms() + WAIT_MS;
         answered < AT_ONCE && clock_monotonic_ms() < end;)
        pause_ms(10);
    CU_ASSERT_EQUAL(answered, AT_ONCE);
    CU_ASSERT_TRUE(refused > 0);
    requests_close(requests);
    buf_release(&subject);
    buf_release(&body);
}

static void let_end(const char *id)
{
    CHECK_OK(thole_client_signal(client, thole_slice_from(id), THOLE_STR("end"), THOLE_STR("ended"),
                                 THOLE_STR(""), NULL, &stack.err),
             &stack.err);
    check_ends(id, "ended");
}

static void cancel(const char *id)
{
    thole_instance_status status;
    CHECK_OK(thole_client_cancel(client, thole_slice_from(id), THOLE_STR("enough"), &stack.err), &stack.err);
    (void)stack_outcome(client, id, WAIT_MS, &status);
    CU_ASSERT_TRUE(status == THOLE_INSTANCE_CANCELLED);
}

static void cut(struct tcp_proxy *proxy)
{
    tcp_proxy_cut(proxy);
    pause_ms(100);
    tcp_proxy_heal(proxy);
}

static void delete_all(void)
{
    for (size_t i = 0; i < names_len; i++) {
        thole_status status;
        uint64_t const end = clock_monotonic_ms() + WAIT_MS;
        do
            status = thole_client_delete(
                client, thole_slice_from(names[i]),
                &(thole_delete_options){.size = sizeof(thole_delete_options), .force = true}, NULL,
                &stack.err);
        while (status == THOLE_UNAVAILABLE && clock_monotonic_ms() < end);
        CU_ASSERT_TRUE(status == THOLE_OK || status == THOLE_NOT_FOUND);
    }
    names_len = 0;
}

static void play_round(void)
{
    static const char *const inputs[] = {"x", "fail", "crash", "exit"};
    static const char *const outputs[] = {"x", "failed", "failed", "failed"};
    const char *const ended = begin("asked", ""), *const running = begin("asked", "r");
    let_end(ended);
    if (rounds == WARM_ROUNDS)
        overload(running);
    ask_all(running, ended);
    if (rounds % 2 == 0)
        cut(nats);
    else
        cut(postgres);
    for (size_t i = 0; i < ARRAY_LEN(inputs); i++)
        check_ends(begin("in_process", inputs[i]), outputs[i]);
    check_ends(begin("on_thread", "fail"), "failed");
    check_ends(begin("again", ""), "xxxx");
    check_ends(begin("parent", "x"), "x");
    check_ends(begin("races", "rude"), "raced"); /* the slot is given up */
    check_ends(begin("races", "rude"), "raced");
    check_ends(begin("races", "hold"), "raced");
    cancel(begin("on_thread", "hold"));
    cancel(begin("in_process", "hold"));
    let_end(running);
    delete_all();
    rounds++;
}

/* All slots at once: none is lost. */
static void check_slots(void)
{
    const char *ids[SLOTS];
    uint64_t const end = clock_monotonic_ms() + SETTLE_MS;
    bool all = false;
    for (size_t i = 0; i < SLOTS; i++)
        ids[i] = begin("on_thread", "hold");
    while (!all && clock_monotonic_ms() < end) {
        all = strtoul(stack_sql(&stack,
                                "SELECT count(*) FROM thole_default.worker_queue WHERE worker IS NOT NULL"),
                      NULL, 10) == SLOTS;
        pause_ms(100);
    }
    CU_ASSERT_TRUE(all);
    for (size_t i = 0; i < SLOTS; i++)
        cancel(ids[i]);
    delete_all();
}

/* ---- the whole ---- */

/* Children have names that their parents gave them. */
static void delete_children(void)
{
    const char *id;
    while ((id = stack_sql(&stack, "SELECT instance FROM thole_default.instances LIMIT 1"))[0] != '\0') {
        snprintf(names[0], sizeof names[0], "%s", id);
        names_len = 1;
        delete_all();
        pause_ms(20);
    }
}

/* A session that was cut is opened again when it is needed: the look at the tables, in ten seconds. */
static void wait_for_sessions(void)
{
    uint64_t const end = clock_monotonic_ms() + WAIT_MS;
    while (served().sessions < SESSIONS && clock_monotonic_ms() < end)
        pause_ms(200);
}

/* One process of an activity waits for the next one: so it is before, so it has to be after. */
static void come_to_rest(void)
{
    check_slots();
    check_ends(begin("in_process", "x"), "x");
    delete_all();
    delete_children();
    wait_for_sessions();
}

static unsigned least(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

/* Resources at rest: processes of activities, and readers after a cut, go a little later. */
static struct held held_at_rest(const struct stack_program *program)
{
    struct held rest = held_by(program);
    for (unsigned i = 0; i < 25; i++) {
        pause_ms(200);
        struct held const held = held_by(program);
        rest.descriptors = least(rest.descriptors, held.descriptors);
        rest.threads = least(rest.threads, held.threads);
        rest.children = least(rest.children, held.children);
        rest.child_descriptors = least(rest.child_descriptors, held.child_descriptors);
    }
    return rest;
}

static void print_held(const char *name, const struct held *held)
{
    fprintf(stderr, "  %s: %u descriptors, %u threads, %lu KiB, %u children with %u descriptors\n", name,
            held->descriptors, held->threads, held->memory_kib, held->children, held->child_descriptors);
}

static void print_served(const char *name, const struct served *served)
{
    fprintf(stderr,
            "  %s: NATS has %" PRIu64 " connections with %" PRIu64 " subscriptions, Postgres %lu sessions\n",
            name, served->connections, served->subscriptions, served->sessions);
}

static bool is_back(const struct held *now, const struct held *before)
{
    return now->descriptors <= before->descriptors && now->threads <= before->threads &&
           now->children <= before->children && now->child_descriptors <= before->child_descriptors &&
           now->memory_kib <= before->memory_kib + MEMORY_KIB;
}

/* Readers that were lost in a cut go after a while. */
static bool is_read_by_one(const char *stream)
{
    return strstr(stream, "_IN_") != NULL || strstr(stream, "_NODES") != NULL;
}

static bool serves_nothing(const struct served *now, const struct served *before)
{
    for (size_t i = 0; i < ARRAY_LEN(streams); i++)
        if (now->consumers[i] > before->consumers[i] ||
            (is_read_by_one(streams[i]) && now->consumers[i] != 1))
            return false;
    return now->work == 0 && now->rows == 0 && now->connections == before->connections &&
           now->subscriptions <= before->subscriptions && now->sessions <= before->sessions;
}

static void test_all_is_back(void)
{
    struct held engine_now, worker_now;
    struct served served_now;
    while (rounds < WARM_ROUNDS)
        play_round();
    come_to_rest();
    struct held const engine_before = held_at_rest(engine), worker_before = held_at_rest(worker);
    struct served const served_before = served();
    CU_ASSERT_EQUAL(served_before.connections, CONNECTIONS);
    CU_ASSERT_EQUAL(served_before.sessions, SESSIONS);
    uint64_t const until = clock_monotonic_ms() + minutes * UINT64_C(60000);
    while (rounds < WARM_ROUNDS + SHORT_ROUNDS || clock_monotonic_ms() < until)
        play_round();
    come_to_rest();
    uint64_t const end = clock_monotonic_ms() + SETTLE_MS;
    bool back;
    do {
        pause_ms(500);
        engine_now = held_by(engine);
        worker_now = held_by(worker);
        served_now = served();
        back = is_back(&engine_now, &engine_before) && is_back(&worker_now, &worker_before) &&
               serves_nothing(&served_now, &served_before);
    } while (!back && clock_monotonic_ms() < end);
    CU_ASSERT_TRUE(back);
    fprintf(stderr, "\n  %u rounds, %lu queries of which %lu had to fail\n", rounds, queries, failed_queries);
    print_held("engine before", &engine_before);
    print_held("engine after", &engine_now);
    print_held("worker before", &worker_before);
    print_held("worker after", &worker_now);
    fprintf(stderr, "  rows %lu, work %" PRIu64 "\n", served_now.rows, served_now.work);
    print_served("servers before", &served_before);
    print_served("servers after", &served_now);
    for (size_t i = 0; i < ARRAY_LEN(streams); i++)
        if (served_now.consumers[i] != served_before.consumers[i])
            fprintf(stderr, "  %s: %" PRIu64 " consumers, before %" PRIu64 "\n", streams[i],
                    served_now.consumers[i], served_before.consumers[i]);
    CU_ASSERT_TRUE(queries >= 1000);
}

/* The server with its pages; nothing is connected yet. */
static void open_monitor(void)
{
    char path[SERVER_PATH_BYTES + 16];
    snprintf(path, sizeof path, "%s/nats.conf", stack.nats.dir);
    monitor_port = server_free_port();
    server_stop(&stack.nats);
    FILE *const file = fopen(path, "a");
    if (file == NULL || fprintf(file, "http: \"127.0.0.1:%u\"\n", monitor_port) < 0 || fclose(file) != 0 ||
        server_restart(&stack.nats, &stack.err) != THOLE_OK)
        exit(1);
}

static void start_all(void)
{
    char nats_option[128], postgres_option[256], port[16];
    nats = tcp_proxy_start(stack.nats.port);
    postgres = tcp_proxy_start(stack.postgres.port);
    snprintf(port, sizeof port, ":%u/", stack.postgres.port);
    const char *const at = strstr(stack.postgres.url, port);
    if (nats == NULL || postgres == NULL || at == NULL)
        exit(1);
    snprintf(nats_option, sizeof nats_option, "--nats=nats://127.0.0.1:%u", tcp_proxy_port(nats));
    snprintf(postgres_option, sizeof postgres_option, "--postgres=%.*s:%u/%s", (int)(at - stack.postgres.url),
             stack.postgres.url, tcp_proxy_port(postgres), at + strlen(port));
    engine = stack_program_with(&stack, "program_soak", "engine", "engine", nats_option, postgres_option,
                                "--partitions=2", "--engine-threads=2", "--log-level=warn", NULL);
    worker = stack_program_with(&stack, "program_soak", "worker", "worker", nats_option, postgres_option,
                                "--slots=3", "--grace=200ms", "--lease=3s", "--log-level=warn", NULL);
    struct connection_options const options = {
        .url = stack.nats.url, .name = "hand", .connect_timeout_ms = 2000, .request_timeout_ms = 5000};
    if (connection_open(&options, &hand, &stack.err) != THOLE_OK)
        exit(1);
    client = stack_client(&stack);
}

static void test_ends(void)
{
    CU_ASSERT_EQUAL(stack_terminate(worker, 20000), 0);
    CU_ASSERT_EQUAL(stack_terminate(engine, 20000), 0);
}

static const struct thole_test tests[] = {{"all is back where it began", test_all_is_back},
                                          {"both end when asked", test_ends}};

int main(int argc, char **argv)
{
    skip_without_nats();
    skip_without_postgres();
    minutes = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 0;
    stack_start(&stack);
    open_monitor();
    start_all();
    int const result = thole_run_suite("soak", tests, ARRAY_LEN(tests));
    thole_client_close(client);
    connection_close(hand);
    tcp_proxy_stop(nats);
    tcp_proxy_stop(postgres);
    stack_stop(&stack);
    return result;
}
