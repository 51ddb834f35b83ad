/*
 * Numbers at the ends of their ranges and beyond, in each field of each message to an instance, from a bare
 * NATS client: what no reader takes is kept with its reason, no partition closes, and each of them takes a
 * start, also after a crash. And what an older engine has recorded.
 */
#include "codec.h"
#include "connection.h"
#include "engine_script.h"
#include "message_route.h"
#include "messages.pb-c.h"
#include "result_list.h"
#include "stack.h"
#include "subject.h"

enum { PARTITIONS = 4, ORDERS = 16, CASES_MAX = 400, TEXT_BYTES = 160, REJECTED_MAX = 2000, OLD_LOST = 7 };

#define S(literal)                                                                                           \
    {                                                                                                        \
        (const uint8_t *)("" literal), sizeof(literal) - 1                                                   \
    }

static struct stack stack;
static thole_client *client;
static struct connection *bare;

/* ---- a message of each kind that has numbers ---- */

struct sample {
    struct message message;
    enum message_sender sender;
};
static const struct sample samples[] = {
    {{.kind = MESSAGE_START, .orchestration = S("one"), .request_id = S("r")}, SENDER_CLIENT},
    {{.kind = MESSAGE_START,
      .orchestration = S("one"),
      .request_id = S("<1.2.nobody"),
      .parent = {S("nobody"), 1, 2}},
     SENDER_ENGINE},
    {{.kind = MESSAGE_ACTIVITY_RESULT,
      .execution = 1,
      .task = 2,
      .try_number = 1,
      .status = THOLE_APP,
      .lost = 1,
      .queue = S("default")},
     SENDER_ENGINE},
    {{.kind = MESSAGE_CHILD_RESULT, .execution = 1, .task = 2, .child = S("child")}, SENDER_ENGINE},
    {{.kind = MESSAGE_DELETE, .request_id = S("r")}, SENDER_CLIENT},
    {{.kind = MESSAGE_RELEASE, .execution = 1, .task = 2}, SENDER_CLIENT},
    {{.kind = MESSAGE_PRUNE, .request_id = S("r"), .execution = 1}, SENDER_CLIENT},
};

static struct {
    char id[16], reason[TEXT_BYTES];
    bool seen;
} refused[CASES_MAX]; /* cases that must be rejected */
static size_t refused_len, sent;

static void publish(const char *id, const char *route, thole_slice body)
{
    struct buf subject;
    thole_slice const instance = thole_slice_from(id);
    buf_init(&subject, 4096);
    CHECK_OK(subject_inbox(&subject, "default", subject_partition(instance, PARTITIONS),
                           thole_slice_from(route), instance, &stack.err),
             &stack.err);
    CHECK_OK(connection_publish(bare, buf_cstr(&subject), NULL, 0, body, &stack.err), &stack.err);
    buf_release(&subject);
}

static struct message_route encode(const struct sample *sample, const char *id, struct buf *to)
{
    struct message message = sample->message;
    message.instance = thole_slice_from(id);
    CU_ASSERT_EQUAL(message_encode(&message, to), THOLE_OK);
    return message_route(&message, sample->sender);
}

/* The instance waits for its activity, whose id is 2. */
static void publish_waiting(const char *id)
{
    static const struct sample waiting = {
        {.kind = MESSAGE_START, .orchestration = S("lost"), .request_id = S("w")}, SENDER_CLIENT};
    struct buf bytes;
    buf_init(&bytes, MESSAGE_BYTES_MAX);
    struct message_route const route = encode(&waiting, id, &bytes);
    publish(id, route.text, buf_bytes(&bytes));
    buf_release(&bytes);
}

/* ---- a number in it ---- */

struct place { /* of a number: the n-th of the message and of those in it */
    size_t n;
    uint8_t *at;
    const ProtobufCFieldDescriptor *field;
    const char *message;
};

/* False: there is no such number; *n is less by those that were passed. */
static bool find_number(ProtobufCMessage *pb, size_t *n, struct place *ret)
{
    for (unsigned i = 0; i < pb->descriptor->n_fields; i++) {
        const ProtobufCFieldDescriptor *const field = &pb->descriptor->fields[i];
        uint8_t *const at = (uint8_t *)pb + field->offset;
        bool const absent = (field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) != 0 &&
                            *(uint32_t *)(void *)((uint8_t *)pb + field->quantifier_offset) != field->id;
        if (field->type == PROTOBUF_C_TYPE_MESSAGE && !absent && field->label != PROTOBUF_C_LABEL_REPEATED &&
            *(void **)(void *)at != NULL && find_number(*(ProtobufCMessage **)(void *)at, n, ret))
            return true;
        if ((field->type != PROTOBUF_C_TYPE_UINT32 && field->type != PROTOBUF_C_TYPE_UINT64) ||
            strcmp(field->name, "format") == 0)
            continue;
        if ((*n)-- == 0) {
            *ret = (struct place){.at = at, .field = field, .message = pb->descriptor->short_name};
            return true;
        }
    }
    return false;
}

static void expect_refusal(const char *id, const char *reason)
{
    CU_ASSERT_FATAL(refused_len < CASES_MAX);
    (void)snprintf(refused[refused_len].id, sizeof refused[0].id, "%s", id);
    (void)snprintf(refused[refused_len++].reason, TEXT_BYTES, "%s", reason);
}

static void expect_refusal_of(const char *id, const struct place *place, uint64_t value, uint64_t most)
{
    char reason[TEXT_BYTES];
    (void)snprintf(reason, sizeof reason, "field %s of %s: %llu is more than %llu", place->field->name,
                   place->message, (unsigned long long)value, (unsigned long long)most);
    expect_refusal(id, reason);
}

/* End 0 to 3 of the range of the n-th number: least, most, one more, the most that the field can say. */
static bool send_number(const struct sample *sample, size_t n, unsigned end)
{
    struct codec_scratch scratch;
    ProtobufCMessage *pb = NULL;
    struct place place;
    struct buf bytes;
    char id[16];
    (void)snprintf(id, sizeof id, "c-%zu", sent);
    codec_init(&scratch);
    buf_init(&bytes, MESSAGE_BYTES_MAX);
    struct message_route const route = encode(sample, id, &bytes);
    CHECK_OK(codec_unpack(&thole__v1__inbox_message__descriptor, buf_bytes(&bytes), MESSAGE_BYTES_MAX,
                          &scratch, "sample", &pb, &stack.err),
             &stack.err);
    bool const there = pb != NULL && find_number(pb, &n, &place);
    if (there) {
        bool const wide = place.field->type == PROTOBUF_C_TYPE_UINT64;
        enum range_field const row = range_find(place.message, place.field->name);
        const struct range_row *const range = range_row(range_field_row(row)->range);
        uint64_t const type_most = wide ? UINT64_MAX : UINT32_MAX;
        uint64_t const most = range->most < type_most ? range->most : type_most;
        uint64_t const ends[] = {range->least, most, most < type_most ? most + 1 : most, type_most};
        if (wide)
            *(uint64_t *)(void *)place.at = ends[end];
        else
            *(uint32_t *)(void *)place.at = (uint32_t)ends[end];
        if (ends[end] > most)
            expect_refusal_of(id, &place, ends[end], most);
        buf_clear(&bytes);
        CU_ASSERT_EQUAL(codec_pack(pb, &bytes), THOLE_OK);
        if (sample->message.kind != MESSAGE_START)
            publish_waiting(id);
        publish(id, route.text, buf_bytes(&bytes));
        sent++;
    }
    buf_release(&bytes);
    codec_release(&scratch);
    return there;
}

/* In JSON, and as the second of two results in one message. */
static void send_in_other_forms(void)
{
    static const char json[] =
        "{\"format\":1,\"instance\":\"anNvbg==\",\"start\":{\"orchestration\":\"b25l\","
        "\"version\":2147483648}}";
    static const char beyond[] = "\x08\x01\x12\x04list\x22\x0a\x08\x01\x10\x02\x38\x80\x80\x80\x80\x08";
    static const char good[] = "\x08\x01\x12\x04list\x22\x04\x08\x01\x10\x02";
    struct buf list, message, subject;
    buf_init(&list, MESSAGE_BYTES_MAX);
    buf_init(&message, MESSAGE_BYTES_MAX);
    buf_init(&subject, 1024);
    publish("json", "start.one", (thole_slice){(const uint8_t *)json, sizeof json - 1});
    expect_refusal("json", "field version of Start: 2147483648 is more than 2147483647");
    result_list_add(&list, (thole_slice){(const uint8_t *)good, sizeof good - 1});
    result_list_add(&list, (thole_slice){(const uint8_t *)beyond, sizeof beyond - 1});
    result_list_write(buf_bytes(&list), &message);
    buf_printf(&subject, "thole.default.in.%u.result.worker.+",
               subject_partition(THOLE_STR("list"), PARTITIONS));
    CHECK_OK(connection_publish(bare, buf_cstr(&subject), NULL, 0, buf_bytes(&message), &stack.err),
             &stack.err);
    expect_refusal("list", "field try_number of ActivityResult: 2147483648 is more than 2147483647");
    buf_release(&list);
    buf_release(&message);
    buf_release(&subject);
}

static void send_all(void)
{
    for (size_t i = 0; i < ARRAY_LEN(samples); i++) {
        bool there = true;
        for (size_t n = 0; there; n++)
            for (unsigned end = 0; end < 4; end++)
                there = send_number(&samples[i], n, end);
    }
    send_in_other_forms();
    CHECK_OK(connection_flush(bare, &stack.err), &stack.err);
    fprintf(stderr, "  %zu messages, %zu of them beyond\n", sent, refused_len);
}

/* ---- results ---- */

static thole_status see(void *arg, const thole_rejected_info *info)
{
    size_t *const seen = arg;
    for (size_t i = 0; i < refused_len; i++) {
        size_t const len = strlen(refused[i].id);
        if (refused[i].seen || !thole_slice_equal(info->reason, thole_slice_from(refused[i].reason)) ||
            info->subject.len <= len || info->subject.ptr[info->subject.len - len - 1] != '.' ||
            memcmp(info->subject.ptr + info->subject.len - len, refused[i].id, len) != 0)
            continue;
        CU_ASSERT_TRUE(thole_slice_equal(info->code, THOLE_STR("malformed")));
        refused[i].seen = true;
        (*seen)++;
        break;
    }
    return THOLE_OK;
}

static void check_refused(void)
{
    uint64_t const end = clock_monotonic_ms() + 20000;
    size_t seen = 0;
    while (seen < refused_len && clock_monotonic_ms() < end) {
        CHECK_OK(thole_client_rejected(client, 0, REJECTED_MAX, see, &seen, &stack.err), &stack.err);
        if (seen < refused_len)
            pause_ms(50);
    }
    for (size_t i = 0; i < refused_len; i++)
        if (!refused[i].seen)
            fprintf(stderr, "\n  %s is not rejected: %s\n", refused[i].id, refused[i].reason);
    CU_ASSERT_EQUAL(seen, refused_len);
}

static void check_partitions_run(thole_client *with, const char *round)
{
    unsigned taken = 0;
    for (int i = 0; i < ORDERS; i++) {
        thole_instance_status status;
        char id[64];
        (void)snprintf(id, sizeof id, "%s-%d", round, i);
        taken |= 1u << subject_partition(thole_slice_from(id), PARTITIONS);
        CHECK_OK(thole_client_start(with, thole_slice_from(id), THOLE_STR("one"), THOLE_STR("x"), NULL,
                                    &stack.err),
                 &stack.err);
        CHECK_STR(id, stack_outcome(with, id, 20000, &status), "x");
    }
    CU_ASSERT_EQUAL(taken, (1u << PARTITIONS) - 1);
}

static void test_ends(void)
{
    struct stack_program *const run = &stack.programs[0];
    send_all();
    check_refused();
    check_partitions_run(client, "after");
    CU_ASSERT_EQUAL(stack_count(run->log, "closed:"), 0);
    CHECK_STR("lost", stack_sql(&stack, "SELECT max(lost) FROM thole_default.quarantine"), "2147483647");
    stack_kill9(run);
    (void)stack_program(&stack, "run", "run", "--node-ttl=3s", NULL);
    check_partitions_run(client, "restarted");
    CU_ASSERT_EQUAL(stack_count(run->log, "closed:"), 0);
}

/* ---- a start that no engine takes is refused at once ---- */

static const char *run_command(const char *arguments, int *ret_code)
{
    static char out[65536];
    char command[1024];
    (void)snprintf(command, sizeof command, "%s %s 2>&1", THOLE_COMMAND, arguments);
    FILE *const from = popen(command, "r");
    out[from == NULL ? 0 : fread(out, 1, sizeof out - 1, from)] = '\0';
    *ret_code = from == NULL ? -1 : pclose(from) >> 8;
    return out;
}

static thole_status ignore_info(void *arg, const thole_instance_info *info)
{
    (void)arg, (void)info;
    return THOLE_OK;
}

static void test_version(void)
{
    thole_start_options const options = {.size = sizeof options, .version = UINT32_C(2147483648)};
    int code = -1;
    const char *const out = run_command("start one@2147483648 --id bad --input x", &code);
    fprintf(stderr, "  %s", out);
    CU_ASSERT_EQUAL(code, 2);
    CU_ASSERT_PTR_NOT_NULL(strstr(out, "behind the @ stands a version, a number from 1 to 2147483647"));
    CU_ASSERT_EQUAL(thole_client_start_with(client, THOLE_STR("bad"), THOLE_STR("one"), THOLE_STR("x"),
                                            &options, NULL, &stack.err),
                    THOLE_INVALID);
    CHECK_STR("text", stack.err.text, "the orchestration's version: 2147483648 is more than 2147483647");
    CU_ASSERT_EQUAL(thole_client_show(client, THOLE_STR("bad"), ignore_info, NULL, &stack.err),
                    THOLE_NOT_FOUND);
}

/* ---- records of an older engine ---- */

static bool write_turn(struct engine_script *script, uint64_t n, const char *id, uint64_t number,
                       const struct event *event)
{
    struct turn const turn = {
        .instance = thole_slice_from(id), .execution = 1, .number = number, .events = event, .events_len = 1};
    return engine_script_turn(script, 1, n, &turn);
}

static void write_history(const char *ns)
{
    struct retry const retry = {.total_timeout_ms = UINT64_MAX, .try_timeout_ms = UINT64_MAX};
    struct event const began = {.kind = EVENT_STARTED,
                                .id = 1,
                                .code = SEMANTICS_VERSION,
                                .name = THOLE_STR("lost"),
                                .version = UINT32_C(2147483648),
                                .before = 0};
    struct event const events[] = {
        {.kind = EVENT_STARTED, .id = 1, .code = SEMANTICS_VERSION, .name = THOLE_STR("lost"), .version = 1},
        {.kind = EVENT_ACTIVITY_SCHEDULED,
         .id = 2,
         .name = THOLE_STR("nobody-knows-me"),
         .queue = THOLE_STR("default"),
         .retry = &retry},
        {.kind = EVENT_ACTIVITY_QUARANTINED,
         .id = 3,
         .ref = 2,
         .try_number = 1,
         .name = THOLE_STR("nobody-knows-me"),
         .queue = THOLE_STR("default"),
         .lost = UINT32_MAX,
         .due_ms = UINT64_MAX}};
    struct event const unread = {.kind = EVENT_TIMER_CREATED, .id = UINT64_MAX}; /* no engine writes it */
    struct engine_script script;
    CHECK_OK(engine_script_open(&script, stack.nats.url, ns, &stack.err), &stack.err);
    CU_ASSERT_TRUE(engine_script_epoch(&script, 1));
    CU_ASSERT_TRUE(write_turn(&script, 1, "far", 1, &began));
    CU_ASSERT_TRUE(write_turn(&script, 2, "hurt", 1, &events[0]));
    CU_ASSERT_TRUE(write_turn(&script, 3, "hurt", 2, &unread));
    CU_ASSERT_TRUE(write_turn(&script, 4, "near", 1, &events[0]));
    CU_ASSERT_TRUE(write_turn(&script, 5, "near", 2, &events[1]));
    CU_ASSERT_TRUE(write_turn(&script, 6, "near", 3, &events[2]));
    engine_script_close(&script);
}

static void test_recorded(void)
{
    thole_client_options options;
    thole_client *old = NULL;
    thole_instance_status status;
    thole_client_options_init(&options);
    options.ns = "old";
    write_history("old");
    struct stack_program *const run = stack_program(&stack, "old", "run", "--namespace=old", NULL);
    CU_ASSERT_TRUE_FATAL(stack_logged(run, "serving", 1, 30000));
    CU_ASSERT_EQUAL_FATAL(thole_client_open(&options, &old, &stack.err), THOLE_OK);
    CHECK_OK(thole_client_start(old, THOLE_STR("new"), THOLE_STR("one"), THOLE_STR("x"), NULL, &stack.err),
             &stack.err);
    CHECK_STR("new", stack_outcome(old, "new", 20000, &status), "x");
    CHECK_STR("version", stack_sql(&stack, "SELECT version FROM thole_old.instances WHERE instance = 'far'"),
              "2147483647");
    CHECK_STR("lost", stack_sql(&stack, "SELECT lost FROM thole_old.quarantine WHERE instance = 'near'"),
              "2147483647");
    int code = -1;
    const char *const checked = run_command("projections verify --namespace old", &code);
    fprintf(stderr, "  %s", checked);
    CU_ASSERT_EQUAL(code, 0); /* the expected rows have the same ends */
    CHECK_OK(thole_client_terminate(old, THOLE_STR("far"), THOLE_STR("enough"), &stack.err), &stack.err);
    CHECK_OK(thole_client_terminate(old, THOLE_STR("near"), THOLE_STR("enough"), &stack.err), &stack.err);
    (void)stack_outcome(old, "far", 20000, &status);
    CU_ASSERT_EQUAL(status, THOLE_INSTANCE_TERMINATED);
    (void)stack_outcome(old, "near", 20000, &status);
    CU_ASSERT_EQUAL(status, THOLE_INSTANCE_TERMINATED);
    CU_ASSERT_EQUAL(stack_count(run->log, "closed:"), 0);
    thole_client_close(old);
}

static const struct thole_test tests[] = {
    {"ends", test_ends}, {"version", test_version}, {"recorded", test_recorded}};

int main(void)
{
    skip_without_nats();
    skip_without_postgres();
    stack_start(&stack);
    (void)stack_program(&stack, "run", "run", "--partitions=4", "--node-ttl=3s", NULL);
    client = stack_client(&stack);
    bare = stack_connect(&stack);
    int const failed = thole_run_suite("ranges", tests, ARRAY_LEN(tests));
    connection_close(bare);
    thole_client_close(client);
    stack_stop(&stack);
    return failed;
}
