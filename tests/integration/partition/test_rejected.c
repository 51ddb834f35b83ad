/*
 * Messages that no engine can take, from a bare NATS client: each is kept with its reason, none disturbs
 * others, the log stays short, and a crash loses none.
 */
#include "connection.h"
#include "message_route.h"
#include "stack.h"
#include "subject.h"

enum { FLOOD = 10000, ORDERS = 50, PARTITIONS = 8, SEEN_MAX = 20000 };

static struct stack stack;
static thole_client *client;
static struct connection *bare;

static void publish_as(uint32_t p, const char *route, thole_slice token, thole_slice body)
{
    struct buf subject;
    buf_init(&subject, 4096);
    buf_printf(&subject, "thole.default.in.%u.%s.%.*s", p, route, THOLE_FMT(token));
    CHECK_OK(connection_publish(bare, buf_cstr(&subject), NULL, 0, body, &stack.err), &stack.err);
    buf_release(&subject);
}

static void publish(uint32_t p, thole_slice token, thole_slice body)
{
    publish_as(p, "event.item", token, body);
}

/* Where it belongs. */
static void publish_to(const char *id, const struct message *message)
{
    struct buf bytes, token;
    buf_init(&bytes, MESSAGE_BYTES_MAX);
    buf_init(&token, 1024);
    CU_ASSERT_EQUAL(message_encode(message, &bytes), THOLE_OK);
    CHECK_OK(subject_token(&token, thole_slice_from(id), &stack.err), &stack.err);
    struct message_route const route = message_route(message, SENDER_CLIENT);
    publish_as(subject_partition(thole_slice_from(id), PARTITIONS), route.text, buf_bytes(&token),
               buf_bytes(&bytes));
    buf_release(&token);
    buf_release(&bytes);
}

/* ---- the list of rejected messages ---- */

struct seen {
    thole_rejected_info info; /* of the one that is looked for */
    char text[4096];          /* code, subject and reason */
    const char *code, *in_subject;
    size_t rows, found;
    uint64_t newest;
};

static thole_status see(void *arg, const thole_rejected_info *info)
{
    struct seen *seen = arg;
    seen->newest = seen->rows++ == 0 ? info->number : seen->newest;
    char subject[2048];
    snprintf(subject, sizeof subject, "%.*s", THOLE_FMT(info->subject));
    if (seen->code != NULL && thole_slice_equal(info->code, thole_slice_from(seen->code)) &&
        strstr(subject, seen->in_subject) != NULL) {
        seen->found++;
        seen->info = *info;
        snprintf(seen->text, sizeof seen->text, "%.*s %s %.*s", THOLE_FMT(info->code), subject,
                 THOLE_FMT(info->reason));
    }
    return THOLE_OK;
}

/* *ret_all: how many there ever were. */
static struct seen look(const char *code, const char *in_subject, uint64_t *ret_all)
{
    struct seen seen = {.code = code, .in_subject = in_subject};
    CHECK_OK(thole_client_rejected(client, 0, SEEN_MAX, see, &seen, &stack.err), &stack.err);
    if (ret_all != NULL)
        *ret_all = seen.newest;
    return seen;
}

static bool appears(const char *code, const char *in_subject, uint64_t wait_ms)
{
    uint64_t const end = clock_monotonic_ms() + wait_ms;
    struct seen seen = {.found = 0};
    while (seen.found == 0 && clock_monotonic_ms() < end) {
        seen = look(code, in_subject, NULL);
        if (seen.found == 0)
            pause_ms(20);
    }
    fprintf(stderr, "  %s\n", seen.found > 0 ? seen.text : "not there");
    return seen.found > 0;
}

static uint64_t count_all(uint64_t wanted, uint64_t wait_ms)
{
    uint64_t all = 0;
    uint64_t const end = clock_monotonic_ms() + wait_ms;
    do {
        (void)look(NULL, "", &all);
        if (all < wanted)
            pause_ms(100);
    } while (all < wanted && clock_monotonic_ms() < end);
    return all;
}

/* --- each kind --- */

static const char *run_command(const char *arguments, int *ret_code)
{
    static char out[65536];
    char command[1024];
    snprintf(command, sizeof command, "%s %s 2>&1", THOLE_COMMAND, arguments);
    FILE *from = popen(command, "r");
    out[from == NULL ? 0 : fread(out, 1, sizeof out - 1, from)] = '\0';
    *ret_code = from == NULL ? -1 : pclose(from) >> 8;
    return out;
}

static void test_nothing_was_rejected(void)
{
    uint64_t all = 1;
    int code = -1;
    CU_ASSERT_EQUAL(look(NULL, "", &all).rows, 0);
    CU_ASSERT_EQUAL(all, 0);
    const char *out = run_command("rejected", &code);
    CHECK_STR("empty", out, "nothing was rejected\n");
    CU_ASSERT_EQUAL(code, 0);
}

static void test_each_kind_with_its_reason(void)
{
    static uint8_t large[THOLE_PAYLOAD_BYTES_DEFAULT + 1], reason[REASON_BYTES_MAX + 1];
    struct message m = {.kind = MESSAGE_START,
                        .instance = THOLE_STR("kind"),
                        .orchestration = THOLE_STR("one"),
                        .request_id = THOLE_STR("r")};
    uint32_t const p = subject_partition(THOLE_STR("kind"), PARTITIONS);
    publish(p, THOLE_STR("%zz"), THOLE_STR("x"));
    CU_ASSERT_TRUE(appears("subject", "%zz", 5000));
    publish(p, THOLE_STR("%6bind"), THOLE_STR("x")); /* in lower case, and not needed */
    CU_ASSERT_TRUE(appears("subject", "6bind", 5000));
    publish((p + 1) % PARTITIONS, THOLE_STR("kind"), THOLE_STR("x"));
    CU_ASSERT_TRUE(appears("partition", "kind", 5000));
    publish(p, THOLE_STR("kind"), THOLE_STR("{\"json\":true}"));
    CU_ASSERT_TRUE(appears("malformed", "kind", 5000));
    publish(p, THOLE_STR("kind"), THOLE_STR("\x08\x02\x12\x04kind"));
    CU_ASSERT_TRUE(appears("unsupported", "kind", 5000));
    m.instance = THOLE_STR("another");
    publish_to("kind", &m);
    CU_ASSERT_TRUE(appears("instance", "kind", 5000));
    m.instance = THOLE_STR("kind");
    publish_as(p, "start.two", THOLE_STR("kind"), THOLE_STR("\x08\x01\x12\x04kind\x1a\x05\x0a\x03one"));
    CU_ASSERT_TRUE(appears("route", "start.two.kind", 5000));
    m.request_id = THOLE_STR("\xff\xfe");
    publish_to("kind", &m);
    CU_ASSERT_TRUE(appears("request_id", "kind", 5000));
    m.request_id = THOLE_STR("r");
    m.data = (thole_slice){large, sizeof large};
    publish_to("kind", &m);
    CU_ASSERT_TRUE(appears("too_large", "kind", 5000));
    m = (struct message){.kind = MESSAGE_CANCEL, .instance = THOLE_STR("long-reason")};
    memset(reason, 'r', sizeof reason);
    m.data = (thole_slice){reason, sizeof reason};
    publish_to("long-reason", &m);
    CU_ASSERT_TRUE(appears("malformed", "long-reason", 5000));
    /* Starts that were rejected are pending until the log says that they are done with. */
    thole_status status = THOLE_TIMEOUT;
    for (int i = 0; i < 1000 && status == THOLE_TIMEOUT; i++)
        status = thole_client_wait(client, THOLE_STR("kind"), 10, &(thole_outcome){0}, &stack.err);
    CHECK_STR("rejected starts", thole_status_name(status), "NOT_FOUND");
}

/* Each is an id that the client library refuses (test_bad_input.c); engines have the same rule. */
static void test_ids_that_are_none(void)
{
    static char utf8_201[202];
    memset(utf8_201, 'a', 201);
    static const char *const tokens[] = {utf8_201, "a%00b", "%FF%FE", "%C0%AF", "%ED%A0%80", "%F4%90%80%80"};
    static const struct {
        const char *id;
        size_t len;
    } ids[] = {{utf8_201, 201}, {"a\0b", 3},         {"\xff\xfe", 2},
               {"\xc0\xaf", 2}, {"\xed\xa0\x80", 3}, {"\xf4\x90\x80\x80", 4}};
    for (size_t i = 0; i < ARRAY_LEN(tokens); i++) {
        thole_slice const id = {(const uint8_t *)ids[i].id, ids[i].len};
        publish(subject_partition(id, PARTITIONS), thole_slice_from(tokens[i]), THOLE_STR("x"));
        CU_ASSERT_TRUE(appears("subject", tokens[i], 5000));
        CU_ASSERT_EQUAL(thole_client_start(client, id, THOLE_STR("one"), THOLE_STR(""), NULL, &stack.err),
                        THOLE_INVALID);
    }
}

/* --- a secret stays where it is --- */

static void test_payload_is_cut_and_not_logged(void)
{
    char body[4000];
    memset(body, 'z', sizeof body);
    memcpy(body, "S3cretPayload", 13);
    publish(subject_partition(THOLE_STR("cut"), PARTITIONS), THOLE_STR("cut"),
            (thole_slice){(const uint8_t *)body, sizeof body});
    CU_ASSERT_TRUE(appears("malformed", "cut", 5000));
    struct seen const seen = look("malformed", ".cut", NULL);
    CU_ASSERT_EQUAL(seen.info.bytes, sizeof body);
    CU_ASSERT_EQUAL(seen.info.payload.len, 1024);
    CU_ASSERT_EQUAL(stack_count(stack.programs[0].log, "S3cretPayload"), 0);
}

/* --- the command --- */

static void test_the_command_lists_them(void)
{
    int code = -1;
    const char *out = run_command("rejected --limit 1", &code);
    CU_ASSERT_EQUAL(code, 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(out, "  malformed    "));
    CU_ASSERT_PTR_NOT_NULL(strstr(out, "  4000  thole.default.in."));
    CU_ASSERT_PTR_NOT_NULL(strstr(out, "  message does not decode\n"));
    char next[128], arguments[256];
    const char *token = strstr(out, "there are more: --next ");
    CU_ASSERT_PTR_NOT_NULL_FATAL(token);
    snprintf(next, sizeof next, "%s", token + strlen("there are more: "));
    snprintf(arguments, sizeof arguments, "rejected --limit 2 %.*s", (int)strcspn(next, ","), next);
    CU_ASSERT_PTR_NULL(strstr(out, "S3cretPayload"));
    CU_ASSERT_PTR_NULL(strstr(out, "too_large"));
    out = run_command(arguments, &code);
    CU_ASSERT_EQUAL(code, 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(out, "long-reason")); /* the one before */
    CU_ASSERT_PTR_NOT_NULL(strstr(out, "  too_large "));
    (void)run_command("rejected --next 3.another", &code);
    CU_ASSERT_EQUAL(code, 2);
    out = run_command("rejected -o json", &code);
    CU_ASSERT_EQUAL(code, 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(out, "\"schema\":\"thole.rejected_list.v1\""));
    CU_ASSERT_PTR_NOT_NULL(strstr(out, "\"code\":\"too_large\",\"reason\":\"the input has 262145 bytes, the "
                                       "namespace allows 262144\",\"subject\":\"thole.default.in."));
    CU_ASSERT_PTR_NOT_NULL(strstr(out, "\"complete\":true"));
    out = run_command("rejected --limit 0", &code);
    CU_ASSERT_EQUAL(code, 2);
}

/* --- a flood --- */

static uint64_t finish_orders(const char *round)
{
    char id[64];
    uint64_t const begin = now_us();
    thole_instance_status status;
    for (int i = 0; i < ORDERS; i++) {
        snprintf(id, sizeof id, "%s-%d", round, i);
        CHECK_OK(thole_client_start(client, thole_slice_from(id), THOLE_STR("order"), THOLE_STR("x"), NULL,
                                    &stack.err),
                 &stack.err);
    }
    for (int i = 0; i < ORDERS; i++) {
        snprintf(id, sizeof id, "%s-%d", round, i);
        CHECK_STR(id, stack_outcome(client, id, 30000, &status), "x,reserve,charge,ship");
    }
    return now_us() - begin;
}

static void flood(void)
{
    for (int i = 0; i < FLOOD; i++)
        publish((uint32_t)i % PARTITIONS, THOLE_STR("flood"), THOLE_STR("\xff\xff garbage"));
    CHECK_OK(connection_flush(bare, &stack.err), &stack.err);
}

static void test_a_flood_disturbs_nobody(void)
{
    uint64_t before = 0;
    (void)look(NULL, "", &before);
    struct stack_program *run = &stack.programs[0];
    size_t const lines = stack_count(run->log, "\n");
    uint64_t const quiet_us = finish_orders("quiet"), begin = now_us();
    flood();
    uint64_t const flooded_us = finish_orders("flooded");
    uint64_t const all = count_all(before + FLOOD, 60000);
    uint64_t const seconds = (now_us() - begin) / 1000000 + 2;
    CU_ASSERT_EQUAL(all, before + FLOOD);
    CU_ASSERT_TRUE(look(NULL, "", NULL).rows <= 10000);
    CU_ASSERT_TRUE(stack_logged(run, "more inbox messages were rejected", 1, 5000));
    size_t const written = stack_count(run->log, "\n") - lines;
    fprintf(stderr, "  %d orders: %.0f ms quiet, %.0f ms beside %d bad messages; %zu lines of log in %u s\n",
            ORDERS, (double)quiet_us / 1000, (double)flooded_us / 1000, FLOOD, written, (unsigned)seconds);
    CU_ASSERT_TRUE(flooded_us < 5 * quiet_us + 3000000);
    /* Intervals of 1, 2, 4 … seconds; each has a line of its own and one that sums up. */
    unsigned doubled = 1;
    for (uint64_t left = seconds; left > 0; left /= 2)
        doubled++;
    CU_ASSERT_TRUE(written <= (size_t)2 * PARTITIONS * doubled);
}

/* Beside a flood of one kind in every partition, one message of another kind is shown at once; the log stays
 * short, and says at its end how many of each there were. */
static void test_a_flood_of_one_kind_hides_no_other(void)
{
    enum { BAD = 20000, FORGED = 500 };
    char subject[128];
    uint64_t before = 0;
    (void)look(NULL, "", &before);
    CU_ASSERT_EQUAL(stack_terminate(&stack.programs[0], 20000), 0);
    struct stack_program *run = stack_program(&stack, "run", "run", "--node-ttl=3s", NULL);
    (void)finish_orders("before-kinds");
    size_t const lines = stack_count(run->log, "\n"), joined = stack_count(run->log, " joined"),
                 absent = stack_count(run->log, "a heartbeat and does not answer"),
                 subjects = stack_count(run->log, "rejected (subject)");
    uint64_t const begin = now_us();
    for (int i = 0; i < BAD; i++) {
        publish((uint32_t)i % PARTITIONS, THOLE_STR("flood"), THOLE_STR("\xff\xff garbage"));
        if (i == BAD / 2)
            publish(3, THOLE_STR("%zz"), THOLE_STR("x"));
    }
    CU_ASSERT_EQUAL(count_all(before + BAD + 1, 60000), before + BAD + 1);
    for (int i = 0; i < FORGED; i++) { /* each a well-formed heartbeat of a node that does not exist */
        char body[64];
        int const n = snprintf(body, sizeof body, "\x08\x01\x12\x0aghost-%04d\x18\x01", i);
        snprintf(subject, sizeof subject, "$KV.THOLE_default_NODES.ghost-%04d", i);
        CHECK_OK(connection_publish(bare, subject, NULL, 0, (thole_slice){(const uint8_t *)body, (size_t)n},
                                    &stack.err),
                 &stack.err);
    }
    CHECK_OK(connection_flush(bare, &stack.err), &stack.err);
    CU_ASSERT_TRUE(stack_logged(run, "rejected (subject)", subjects + 1, 5000));
    CU_ASSERT_TRUE(stack_logged(run, "node ghost-0000 has a heartbeat and does not answer", 1, 5000));
    pause_ms(5000); /* the heartbeats' TTL, and then some */
    size_t const written = stack_count(run->log, "\n") - lines;
    CU_ASSERT_EQUAL(stack_terminate(run, 20000), 0);
    fprintf(stderr, "  %d bad messages, %d forged nodes: %zu lines (%zu of nodes) in %.1f s\n", BAD, FORGED,
            written, stack_count(run->log, "a heartbeat and does not answer") - absent,
            (double)(now_us() - begin) / 1e6);
    CU_ASSERT_TRUE(written <= 250);
    CU_ASSERT_EQUAL(stack_count(run->log, " joined"), joined);
    CU_ASSERT_EQUAL(stack_count(run->log, " rejected_partition=17500 rejected_malformed=2500 "), 1);
    CU_ASSERT_EQUAL(stack_count(run->log, " rejected_subject=1 rejected_partition=17500"), 1);
    (void)stack_program(&stack, "run", "run", "--node-ttl=3s", NULL);
    (void)finish_orders("after-kinds");
}

/* Messages that are no work of a queue, and no heartbeat: logged, counted, at most a line a second of
 * each. */
static void test_a_flood_of_other_garbage(void)
{
    enum { EACH = 3000 };
    struct stack_program *run = &stack.programs[0];
    size_t const lines = stack_count(run->log, "\n");
    uint64_t const begin = now_us();
    char subject[128];
    for (int i = 0; i < EACH; i++) {
        snprintf(subject, sizeof subject, "thole.default.work.default.flood-%d.1.1.1", i);
        CHECK_OK(connection_publish(bare, subject, NULL, 0, THOLE_STR("garbage"), &stack.err), &stack.err);
        snprintf(subject, sizeof subject, "$KV.THOLE_default_NODES.flood-%d", i % 50);
        CHECK_OK(connection_publish(bare, subject, NULL, 0, THOLE_STR("garbage"), &stack.err), &stack.err);
    }
    CHECK_OK(connection_flush(bare, &stack.err), &stack.err);
    CU_ASSERT_TRUE(stack_logged(run, "a malformed message was removed from queue default", 1, 5000));
    CU_ASSERT_TRUE(stack_logged(run, "more malformed messages were removed from the queue", 1, 5000));
    CU_ASSERT_TRUE(stack_logged(run, "heartbeat of node flood-", 1, 5000));
    CU_ASSERT_TRUE(stack_logged(run, "more heartbeats were ignored", 1, 5000));
    (void)finish_orders("beside-garbage"); /* follows it in the queue */
    size_t const written = stack_count(run->log, "\n") - lines;
    uint64_t const seconds = (now_us() - begin) / 1000000 + 2;
    fprintf(stderr, "  %d bad works, %d bad heartbeats: %zu lines of log in %u s\n", EACH, EACH, written,
            (unsigned)seconds);
    CU_ASSERT_TRUE(written <= 5 * seconds);
}

/* Killed in the midst of it, again and again: what it had read and not kept is read again, and kept once. */
static void test_a_crash_loses_none(void)
{
    uint64_t before = 0;
    (void)look(NULL, "", &before);
    flood();
    for (int i = 0; i < 5; i++) {
        pause_ms(60);
        stack_kill9(&stack.programs[0]);
        (void)stack_program(&stack, "run", "run", "--node-ttl=3s", NULL);
        CU_ASSERT_TRUE(stack_logged(&stack.programs[0], "open, epoch", 1, 20000));
    }
    uint64_t const all = count_all(before + FLOOD, 60000);
    fprintf(stderr, "  %llu kept of %d, five times killed\n", (unsigned long long)(all - before), FLOOD);
    CU_ASSERT_EQUAL(all, before + FLOOD);
    (void)finish_orders("after-crashes");
}

/* Without the stream nothing can be kept. Nobody waits for it. */
static void test_without_the_stream_nobody_waits(void)
{
    struct buf answer;
    buf_init(&answer, 1 << 20);
    CHECK_OK(connection_request(bare, "$JS.API.STREAM.DELETE.THOLE_default_REJECTED", THOLE_STR(""), &answer,
                                &stack.err),
             &stack.err);
    buf_release(&answer);
    flood();
    uint64_t const us = finish_orders("without-stream");
    fprintf(stderr, "  %.0f ms\n", (double)us / 1000);
    CU_ASSERT_TRUE(us < 20000000);
    /* Engines look at what there is, and make it again. */
    CU_ASSERT_TRUE(
        stack_logged(&stack.programs[0], "THOLE_default_REJECTED was missing and is made again", 1, 20000));
    CU_ASSERT_EQUAL(stack_terminate(&stack.programs[0], 20000), 0);
    (void)stack_program(&stack, "run", "run", "--node-ttl=3s", NULL);
    (void)finish_orders("stream-again");
    publish(0, THOLE_STR("%zz"), THOLE_STR("x"));
    CU_ASSERT_TRUE(appears("subject", "zz", 10000));
}

static const struct thole_test tests[] = {
    {"nothing_was_rejected", test_nothing_was_rejected},
    {"each_kind_with_its_reason", test_each_kind_with_its_reason},
    {"payload_is_cut_and_not_logged", test_payload_is_cut_and_not_logged},
    {"the_command_lists_them", test_the_command_lists_them},
    {"ids_that_are_none", test_ids_that_are_none},
    {"a_flood_disturbs_nobody", test_a_flood_disturbs_nobody},
    {"a_flood_of_other_garbage", test_a_flood_of_other_garbage},
    {"a_flood_of_one_kind_hides_no_other", test_a_flood_of_one_kind_hides_no_other},
    {"a_crash_loses_none", test_a_crash_loses_none},
    {"without_the_stream_nobody_waits", test_without_the_stream_nobody_waits},
};

int main(void)
{
    skip_without_nats();
    skip_without_postgres();
    stack_start(&stack);
    (void)stack_program(&stack, "run", "run", "--node-ttl=3s", NULL);
    client = stack_client(&stack);
    struct connection_options const options = {
        .url = stack.nats.url, .name = "bare", .connect_timeout_ms = 2000, .request_timeout_ms = 2000};
    int const failed = connection_open(&options, &bare, &stack.err) != THOLE_OK ||
                       thole_run_suite("rejected", tests, ARRAY_LEN(tests));
    connection_close(bare);
    thole_client_close(client);
    stack_stop(&stack);
    return failed;
}
