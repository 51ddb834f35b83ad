/*
 * Several results in one message, from a bare NATS client that plays a worker: each counts as if it had come
 * alone, invalid ones are kept apart, a crash between two of them loses and doubles none; workers send such
 * messages only when every live engine takes them.
 */
#include "connection.h"
#include "header_names.h"
#include "message_route.h"
#include "nodes.h"
#include "old_engine.h"
#include "reader.h"
#include "result_list.h"
#include "stack.h"
#include "subject.h"
#include "topology.h"

enum { PARTITIONS = 8, ACTIVITY = 2, MANY = 200, ID_BYTES = 32 };

static struct stack stack;
static thole_client *client;
static struct connection *bare;
static struct nonce_key key;

static uint32_t place(const char *id)
{
    return subject_partition(thole_slice_from(id), PARTITIONS);
}

/* The next id of that partition: "NAME-N" for a growing N. */
static void name_in(uint32_t p, const char *name, unsigned *n, char id[ID_BYTES])
{
    do
        snprintf(id, ID_BYTES, "%s-%u", name, (*n)++);
    while (place(id) != p);
}

static void start(const char *id)
{
    CHECK_OK(
        thole_client_start(client, thole_slice_from(id), THOLE_STR("one"), THOLE_STR("in"), NULL, &stack.err),
        &stack.err);
}

/* Adds the result of its activity, "by hand". */
static void add(struct buf *list, const char *id, bool forged)
{
    struct nonce const nonce = nonce_make(&key, thole_slice_from(id), 1, ACTIVITY);
    struct message const message = {.kind = MESSAGE_ACTIVITY_RESULT,
                                    .instance = thole_slice_from(id),
                                    .execution = 1,
                                    .task = ACTIVITY,
                                    .try_number = 1,
                                    .data = THOLE_STR("by hand"),
                                    .source.place = {.worker = THOLE_STR("nobody"), .attempt = 1},
                                    .nonce = forged ? THOLE_STR("00000000000000000000000000000000")
                                                    : thole_slice_from(nonce.text)};
    struct buf bytes;
    buf_init(&bytes, MESSAGE_BYTES_MAX);
    CU_ASSERT_EQUAL(message_encode(&message, &bytes), THOLE_OK);
    result_list_add(list, buf_bytes(&bytes));
    buf_release(&bytes);
}

static void publish(uint32_t p, thole_slice body)
{
    struct buf subject;
    buf_init(&subject, SUBJECT_BYTES_MAX);
    CHECK_OK(subject_results(&subject, "default", p, &stack.err), &stack.err);
    CHECK_OK(connection_publish(bare, buf_cstr(&subject), NULL, 0, body, &stack.err), &stack.err);
    buf_release(&subject);
}

static void publish_list(uint32_t p, const struct buf *list)
{
    struct buf body;
    buf_init(&body, MESSAGE_BYTES_MAX);
    result_list_write(buf_bytes(list), &body);
    publish(p, buf_bytes(&body));
    buf_release(&body);
}

static void check_ended(const char *id)
{
    thole_instance_status status;
    CHECK_STR(id, stack_outcome(client, id, 20000, &status), "by hand");
}

/* ---- rejected messages ---- */

struct seen {
    const char *code, *in_subject;
    size_t found;
    uint64_t sequence;
};

static thole_status see(void *arg, const thole_rejected_info *info)
{
    struct seen *seen = arg;
    char subject[256];
    snprintf(subject, sizeof subject, "%.*s", THOLE_FMT(info->subject));
    if (thole_slice_equal(info->code, thole_slice_from(seen->code)) &&
        strstr(subject, seen->in_subject) != NULL) {
        seen->found++;
        seen->sequence = info->sequence;
    }
    return THOLE_OK;
}

/* *ret_sequence: of the message in the inbox. */
static size_t rejected(const char *code, const char *in_subject, uint64_t *ret_sequence)
{
    struct seen seen = {.code = code, .in_subject = in_subject};
    for (unsigned i = 0; i < 100 && seen.found == 0; i++) {
        CHECK_OK(thole_client_rejected(client, 0, 1000, see, &seen, &stack.err), &stack.err);
        if (seen.found == 0)
            pause_ms(50);
    }
    *ret_sequence = seen.sequence;
    return seen.found;
}

/* --- the tests --- */

static void test_each_counts_alone(void)
{
    char a[ID_BYTES], b[ID_BYTES], c[ID_BYTES];
    unsigned n = 0, m = 0;
    uint64_t forged = 0, elsewhere = 0;
    struct buf list;
    name_in(3, "list", &n, a);
    name_in(3, "list", &n, b);
    name_in(4, "other", &m, c);
    start(a), start(b), start(c);
    buf_init(&list, MESSAGE_BYTES_MAX);
    add(&list, b, true);
    add(&list, c, false);
    add(&list, a, false);
    publish_list(3, &list);
    check_ended(a);
    CU_ASSERT_EQUAL(rejected("nonce", b, &forged), 1);
    CU_ASSERT_EQUAL(rejected("partition", c, &elsewhere), 1);
    CU_ASSERT_TRUE(forged > 0 && forged == elsewhere);
    buf_clear(&list);
    add(&list, a, false); /* again: it changes nothing */
    add(&list, b, false);
    publish_list(3, &list);
    check_ended(b);
    CHECK_STR("once", stack_history(client, a),
              "1:Started 1:ActivityScheduled 1:ActivityCompleted 1:Completed");
    buf_clear(&list);
    add(&list, c, false);
    publish_list(4, &list);
    check_ended(c);
    buf_release(&list);
}

static void test_what_is_no_list(void)
{
    uint64_t sequence;
    publish(2, THOLE_STR("garbage"));
    CU_ASSERT_EQUAL(rejected("malformed", "in.2.result.worker.+", &sequence), 1);
    publish(5, THOLE_STR("\x08\x02\x7a\x00"));
    CU_ASSERT_EQUAL(rejected("unsupported", "in.5.result.worker.+", &sequence), 1);
    publish(6, THOLE_STR("\x08\x01\x7a\x00")); /* no result in it */
    CU_ASSERT_EQUAL(rejected("malformed", "in.6.result.worker.+", &sequence), 1);
}

/* Killed while it takes them, again and again. */
static void test_a_crash_in_the_midst(void)
{
    static char ids[MANY][ID_BYTES];
    unsigned n = 0;
    struct buf list;
    for (unsigned round = 0; round < 3; round++) {
        struct stack_program *engine = &stack.programs[0];
        buf_init(&list, MESSAGE_BYTES_MAX);
        for (size_t i = 0; i < MANY; i++) {
            name_in(1, "crash", &n, ids[i]);
            start(ids[i]);
            add(&list, ids[i], false);
        }
        publish_list(1, &list);
        pause_ms(round * 3);
        stack_kill9(engine);
        (void)stack_program(&stack, "engine", "engine", "--node-ttl=3s", NULL);
        for (size_t i = 0; i < MANY; i++) {
            check_ended(ids[i]);
            CHECK_STR(ids[i], stack_history(client, ids[i]),
                      "1:Started 1:ActivityScheduled 1:ActivityCompleted 1:Completed");
        }
        buf_release(&list);
    }
}

/* --- with an engine that does not take them --- */

/* Whether the headers of its work, once that is queued, say that they are taken. */
static bool is_marked(const char *id)
{
    char asked[128];
    uint64_t sequence = 0;
    struct buf answer, body, headers;
    buf_init(&answer, 1 << 20);
    buf_init(&body, 1 << 20);
    buf_init(&headers, 4096);
    snprintf(asked, sizeof asked, "{\"last_by_subj\":\"thole.default.work.default.%s.1.%d.1\"}", id,
             ACTIVITY);
    for (unsigned i = 0; i < 400 && sequence == 0; i++) {
        pause_ms(50);
        buf_clear(&answer);
        buf_clear(&body);
        CHECK_OK(connection_request(bare, "$JS.API.STREAM.MSG.GET.THOLE_default_WORK",
                                    thole_slice_from(asked), &answer, &stack.err),
                 &stack.err);
        CHECK_OK(stream_get_answer(buf_bytes(&answer), &sequence, &body, &stack.err), &stack.err);
    }
    CU_ASSERT_TRUE(sequence > 0);
    CHECK_OK(stream_get_headers(buf_bytes(&answer), &headers, &stack.err), &stack.err);
    bool const marked = strstr(buf_cstr(&headers), HEADER_RESULTS ": list\r\n") != NULL;
    CU_ASSERT_PTR_NOT_NULL(strstr(buf_cstr(&headers), HEADER_NONCE ": "));
    buf_release(&answer);
    buf_release(&body);
    buf_release(&headers);
    return marked;
}

static void test_only_if_all_engines_take_them(void)
{
    struct stack_program *engine = &stack.programs[0];
    start("mark-before");
    CU_ASSERT_TRUE(is_marked("mark-before"));
    size_t const joined = stack_count(engine->log, "node old joined"),
                 left = stack_count(engine->log, "node old left");
    struct presence *const old = old_engine_join(bare, (struct heartbeat){.takes_results = false});
    CU_ASSERT_TRUE(stack_logged(engine, "node old joined", joined + 1, 10000));
    start("mark-beside");
    CU_ASSERT_FALSE(is_marked("mark-beside"));
    CHECK_OK(nodes_delete(bare, "default", THOLE_STR("old"), &stack.err), &stack.err);
    presence_close(old);
    CU_ASSERT_TRUE(stack_logged(engine, "node old left", left + 1, 10000));
    start("mark-after");
    CU_ASSERT_TRUE(is_marked("mark-after"));
}

static const struct thole_test tests[] = {
    {"each_counts_alone", test_each_counts_alone},
    {"what_is_no_list", test_what_is_no_list},
    {"a_crash_in_the_midst", test_a_crash_in_the_midst},
    {"only_if_all_engines_take_them", test_only_if_all_engines_take_them},
};

int main(void)
{
    skip_without_nats();
    skip_without_postgres();
    stack_start(&stack);
    (void)stack_program(&stack, "engine", "engine", "--node-ttl=3s", NULL);
    client = stack_client(&stack);
    bare = stack_connect(&stack);
    bool there = false;
    int const failed = topology_read_key(bare, "default", &key, &there, &stack.err) != THOLE_OK || !there ||
                       thole_run_suite("result_lists", tests, ARRAY_LEN(tests));
    connection_close(bare);
    thole_client_close(client);
    stack_stop(&stack);
    return failed;
}
