/*
 * Orchestrations, activities and senders that want more than they may have: what each meets, with the text
 * that its user reads, and what it costs the engine and its neighbours. With --long the storm has 100,000
 * events, the orchestration a million activities, and the parent 10,000 children.
 */
#include "connection.h"
#include "message.h"
#include "message_route.h"
#include "sanitized.h"
#include "stack.h"
#include "subject.h"

enum { PARTITIONS = 8, EVENT_BYTES = 1000, KEPT = 10000, TURN = 1000 };

static struct stack stack;
static thole_client *client;
static struct connection *bare;
static struct stack_program *engine, *worker;
static bool is_long;

static void start(const char *id, const char *orchestration, const char *input)
{
    CHECK_OK(thole_client_start(client, thole_slice_from(id), thole_slice_from(orchestration),
                                thole_slice_from(input), NULL, &stack.err),
             &stack.err);
}

static void run(const char *id, const char *orchestration, const char *input, const char *want)
{
    thole_instance_status status;
    start(id, orchestration, input);
    uint64_t const begun = clock_monotonic_ms();
    CHECK_STR(id, stack_outcome(client, id, 120000, &status), want);
    fprintf(stderr, "  %s %s: %llu ms\n", orchestration, input,
            (unsigned long long)(clock_monotonic_ms() - begun));
}

static void event_of(const char *id, const char *name, const char *request_id, thole_slice data)
{
    struct buf bytes, subject;
    struct message const message = {.kind = MESSAGE_EVENT,
                                    .instance = thole_slice_from(id),
                                    .event_name = thole_slice_from(name),
                                    .event_data = data,
                                    .request_id = thole_slice_from(request_id)};
    buf_init(&bytes, MESSAGE_BYTES_MAX);
    buf_init(&subject, 1024);
    CU_ASSERT_EQUAL(message_encode(&message, &bytes), THOLE_OK);
    struct message_route const route = message_route(&message, SENDER_CLIENT);
    buf_printf(&subject, "thole.default.in.%u.%s.%s", subject_partition(message.instance, PARTITIONS),
               route.text, id);
    CHECK_OK(connection_publish(bare, buf_cstr(&subject), NULL, 0, buf_bytes(&bytes), &stack.err),
             &stack.err);
    buf_release(&subject);
    buf_release(&bytes);
}

static void storm(const char *id, const char *name, size_t n, size_t bytes)
{
    char request_id[32];
    uint8_t *const data = malloc(bytes);
    memset(data, 'd', bytes);
    for (size_t i = 0; i < n; i++) {
        (void)snprintf(request_id, sizeof request_id, "%s-%zu", name, i);
        event_of(id, name, request_id, (thole_slice){data, bytes});
    }
    CHECK_OK(connection_flush(bare, &stack.err), &stack.err);
    free(data);
}

/* ---- measurements ---- */

/* MiB, at most since it began. */
static unsigned long peak_of(const struct stack_program *program)
{
    char path[64], line[256];
    unsigned long kib = 0;
    (void)snprintf(path, sizeof path, "/proc/%d/status", (int)stack_serving(program));
    FILE *const file = fopen(path, "r");
    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        if (strncmp(line, "VmHWM:", 6) == 0)
            kib = strtoul(line + 6, NULL, 10);
    if (file != NULL)
        (void)fclose(file);
    return kib / 1024;
}

static void check_peak(const char *after, unsigned long mib_max)
{
    unsigned long const mib = peak_of(engine);
    fprintf(stderr, "  the engine after %s: %lu MiB at most\n", after, mib);
    CU_ASSERT_TRUE(mib > 0 && (SANITIZED || mib <= mib_max));
}

struct row {
    thole_instance_status status;
    char detail[512];
};

static thole_status see_row(void *arg, const thole_instance_info *info)
{
    struct row *row = arg;
    row->status = info->status;
    (void)snprintf(row->detail, sizeof row->detail, "%.*s", THOLE_FMT(info->detail));
    return THOLE_OK;
}

static bool becomes_stuck(const char *id, const char *text)
{
    uint64_t const end = clock_monotonic_ms() + 120000;
    struct row row = {0};
    while (row.status != THOLE_INSTANCE_STUCK && clock_monotonic_ms() < end) {
        if (thole_client_show(client, thole_slice_from(id), see_row, &row, NULL) != THOLE_OK ||
            row.status != THOLE_INSTANCE_STUCK)
            pause_ms(50);
    }
    fprintf(stderr, "  %s: %s\n", id, row.detail);
    return row.status == THOLE_INSTANCE_STUCK && strstr(row.detail, text) != NULL;
}

static thole_status see_rejected(void *arg, const thole_rejected_info *info)
{
    CU_ASSERT_TRUE(thole_slice_equal(info->code, THOLE_STR("too_many")));
    *(uint64_t *)arg = info->number;
    return THOLE_OK;
}

/* How many messages were rejected so far. */
static uint64_t rejected(void)
{
    uint64_t n = 0;
    CHECK_OK(thole_client_rejected(client, 0, 1, see_rejected, &n, &stack.err), &stack.err);
    return n;
}

/* The number once it has not grown for a second: rejected messages are stored later than messages after them
 * are handled. */
static uint64_t rejected_at_rest(void)
{
    uint64_t n = rejected();
    for (unsigned same = 0; same < 10;) {
        pause_ms(100);
        uint64_t const again = rejected();
        same = again == n ? same + 1 : 0;
        n = again;
    }
    return n;
}

static void neighbours_run(const char *id)
{
    run(id, "calls", "echo", "x");
}

/* ---- events ---- */

/* Events above the limit are rejected and listed, the instance runs, and takes the event that it waits
 * for. */
static void test_event_storm(void)
{
    size_t const events = is_long ? 100000 : SANITIZED ? 12000 : 30000;
    start("deaf", "waits", "");
    storm("deaf", "item", events, EVENT_BYTES);
    event_of("deaf", "go", "go", THOLE_STR("now"));
    thole_instance_status status;
    CHECK_STR("it takes what it awaits", stack_outcome(client, "deaf", 120000, &status), "now");
    uint64_t const end = clock_monotonic_ms() + 60000;
    while (rejected() < events - KEPT - TURN && clock_monotonic_ms() < end)
        pause_ms(100);
    fprintf(stderr, "  %zu events of %d bytes: %llu rejected\n", events, EVENT_BYTES,
            (unsigned long long)rejected());
    CU_ASSERT_TRUE(rejected() >= events - KEPT - TURN && rejected() < events);
    CU_ASSERT_TRUE(stack_logged(engine, "rejected (too_many): ", 1, 5000));
    neighbours_run("beside-a-storm");
    check_peak("the storm", 150);
}

static void test_large_event_storm(void)
{
    size_t const events = SANITIZED ? 100 : 1500;
    start("deaf-2", "waits", "");
    storm("deaf-2", "item", events, 200000);
    event_of("deaf-2", "go", "go", THOLE_STR("now"));
    thole_instance_status status;
    CHECK_STR("it takes what it awaits", stack_outcome(client, "deaf-2", 120000, &status), "now");
    check_peak("the storm of large events", 250);
}

/* Each is taken: nothing is rejected, however many there are. */
static void test_code_that_takes_them(void)
{
    char text[16];
    uint64_t const before = rejected_at_rest();
    size_t const events = SANITIZED ? 12000 : 25000;
    (void)snprintf(text, sizeof text, "%zu", events);
    start("keen", "takes", text);
    storm("keen", "item", events, 100);
    thole_instance_status status;
    CHECK_STR("it takes all", stack_outcome(client, "keen", 120000, &status), text);
    CU_ASSERT_EQUAL(rejected_at_rest(), before);
}

/* ---- orchestrations ---- */

static void test_schedules_too_much(void)
{
    start("a-million", "schedules", "1000000");
    CU_ASSERT_TRUE(becomes_stuck("a-million", "the instance's memory limit of 67108864 bytes is reached ("));
    CU_ASSERT_TRUE(becomes_stuck("a-million",
                                 "schedule less at a time, continue as new, or raise --instance-memory-max"));
    neighbours_run("beside-a-million");
    run("many", "schedules", is_long ? "100000" : "10000", is_long ? "100000" : "10000");
    CHECK_OK(thole_client_terminate(client, THOLE_STR("a-million"), THOLE_STR("enough"), &stack.err),
             &stack.err);
    thole_instance_status status;
    (void)stack_outcome(client, "a-million", 20000, &status);
    CU_ASSERT_EQUAL(status, THOLE_INSTANCE_TERMINATED);
}

static void test_many_children(void)
{
    run("family", "family", is_long ? "10000" : "2000", is_long ? "10000" : "2000");
}

static void test_outputs_at_the_limit(void)
{
    run("fits", "one_output_of", "262144", "fits");
    run("too-large", "one_output_of", "262145",
        "activity 'output_of' failed: the output has 262145 bytes; at most 262144 are allowed");
    run("outputs", "outputs", "100", "100");
    start("outputs-too-many", "outputs", "300");
    CU_ASSERT_TRUE(becomes_stuck("outputs-too-many", "(300 tasks scheduled, 0 events waiting)"));
    neighbours_run("beside-outputs");
}

/* ---- activities ---- */

/* In a process each costs itself: the worker lives, and so do its other handlers. */
static void test_activities_that_allocate(void)
{
    pid_t const pid = worker->pid;
    if (!SANITIZED) {
        run("eats", "calls", "eats", "activity 'eats' failed: there was some memory");
        start("eats-blindly", "calls", "eats_blindly");
        thole_instance_status status;
        const char *const text = stack_outcome(client, "eats-blindly", 60000, &status);
        fprintf(stderr, "  %s\n", text);
        CU_ASSERT_PTR_NOT_NULL(
            strstr(text, "the process was killed by SIGSEGV; its address space is limited to "));
    }
    run("eats-of-thole", "calls", "eats_of_thole", "activity 'eats_of_thole' failed: 255 MiB");
    neighbours_run("beside-eaters");
    CU_ASSERT_EQUAL(worker->pid, pid);
    CU_ASSERT_EQUAL(stack_ended(worker), -1);
}

static const struct thole_test tests[] = {
    {"event_storm", test_event_storm},
    {"large_event_storm", test_large_event_storm},
    {"code_that_takes_them", test_code_that_takes_them},
    {"schedules_too_much", test_schedules_too_much},
    {"many_children", test_many_children},
    {"outputs_at_the_limit", test_outputs_at_the_limit},
    {"activities_that_allocate", test_activities_that_allocate},
};

int main(int argc, char **argv)
{
    is_long = argc > 1 && strcmp(argv[1], "--long") == 0;
    skip_without_nats();
    skip_without_postgres();
    stack_start(&stack);
    engine = stack_program_of(&stack, "program_limits", "engine", "engine");
    worker = stack_program_with(&stack, "program_limits", "worker", "worker",
                                SANITIZED ? NULL : "--process-memory-max=300MiB", NULL);
    client = stack_client(&stack);
    struct connection_options const options = {
        .url = stack.nats.url, .name = "bare", .connect_timeout_ms = 2000, .request_timeout_ms = 20000};
    int const failed = connection_open(&options, &bare, &stack.err) != THOLE_OK ||
                       thole_run_suite("limits", tests, ARRAY_LEN(tests));
    connection_close(bare);
    thole_client_close(client);
    stack_stop(&stack);
    return failed;
}
