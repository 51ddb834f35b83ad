/* Streams, buckets and consumers of a namespace: made, made by many at once, and refused when they are wrong.
 */
#include "reader.h"
#include "streams_fixture.h"
#include "subject.h"
#include <nats/nats.h>

static struct connection *connection;

static thole_status ensure(const char *ns, uint32_t partitions, thole_error *err)
{
    struct topology topology;
    struct topology_options const options = {.ns = ns, .partitions = partitions};
    return topology_ensure(connection, &options, &topology, err);
}

static bool has(const char *text, const char *part)
{
    bool const found = strstr(text, part) != NULL;
    if (!found)
        fprintf(stderr, "\n  \"%s\" is not in\n  \"%s\"\n", part, text);
    return found;
}

/* ---- making ---- */

static void test_made_and_read(void)
{
    struct topology t = {0}, again = {0};
    thole_error err = {0};
    struct stream_bounds bounds;
    char ns[32], name[TEXT_BYTES];
    snprintf(ns, sizeof ns, "%s", fresh_ns());
    CU_ASSERT_EQUAL(topology_read(connection, ns, &t, &err), THOLE_NOT_FOUND);
    CU_ASSERT(has(err.text, ns));
    struct topology_options const options = {.ns = ns, .partitions = 3, .nodes_ttl_ms = 2000};
    CHECK_OK(topology_ensure(connection, &options, &t, &err), &err);
    CHECK_STR("ns", t.ns, ns);
    CU_ASSERT(t.partitions == 3 && t.replicas == 1 && t.nodes_ttl_ms == 2000);
    CHECK_OK(topology_ensure(connection, &(struct topology_options){.ns = ns}, &again, &err), &err);
    CU_ASSERT(memcmp(&t, &again, sizeof t) == 0); /* zeroes ask for the present values */
    CHECK_OK(topology_read(connection, ns, &again, &err), &err);
    static const struct nonce_key none = {.bytes = {0}};
    CU_ASSERT(memcmp(&again.nonce_key, &none, sizeof none) == 0); /* clients have no business with it */
    CU_ASSERT(memcmp(&t.nonce_key, &none, sizeof none) != 0);
    again.nonce_key = t.nonce_key;
    CU_ASSERT(again.id.text[0] == '\0' && strlen(t.id.text) == NAMESPACE_ID_BYTES);
    again.id = t.id;
    CU_ASSERT(t.ensured && !again.ensured);
    again.ensured = true;
    CU_ASSERT(memcmp(&t, &again, sizeof t) == 0);
    for (int p = 0; p < 3; p++) {
        put_text(name, "THOLE_%s_IN_%d", ns, p);
        CHECK_OK(stream_bounds(connection, name, &bounds, &err), &err);
        put_text(name, "THOLE_%s_HIST_%d", ns, p);
        CHECK_OK(stream_bounds(connection, name, &bounds, &err), &err);
    }
    put_text(name, "THOLE_%s_IN_3", ns);
    CU_ASSERT_EQUAL(stream_bounds(connection, name, &bounds, &err), THOLE_NOT_FOUND);
}

static void remove_stream(const char *name)
{
    char subject[TEXT_BYTES];
    thole_error err = {0};
    struct buf answer;
    put_text(subject, "$JS.API.STREAM.DELETE.%s", name);
    buf_init(&answer, 4096);
    CHECK_OK(connection_request(connection, subject, THOLE_STR(""), &answer, &err), &err);
    CU_ASSERT_PTR_NOT_NULL(strstr(buf_cstr(&answer), "\"success\":true"));
    buf_release(&answer);
}

/* Parts that are gone: only those that can be made again are made. */
static void test_parts_that_are_gone(void)
{
    static const struct {
        const char *before, *after; /* of its name */
        const char *text;           /* NULL: it is made again */
    } rows[] = {{"THOLE", "HIST_0", "and with it the histories"},
                {"THOLE", "IN_0", "and with it starts, events and results"},
                {"KV_THOLE", "SECRET", "and with it the key"},
                {"KV_THOLE", "CONFIG", "and with it the number of partitions"},
                {"KV_THOLE", "NODES", NULL},
                {"KV_THOLE", "CRASHES", NULL},
                {"THOLE", "WORK", NULL},
                {"THOLE", "REJECTED", NULL}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct topology t;
        struct stream_bounds bounds;
        thole_error err = {0};
        char ns[32], name[TEXT_BYTES], subject[TEXT_BYTES];
        snprintf(ns, sizeof ns, "%s", fresh_ns());
        put_text(name, "%s_%s_%s", rows[i].before, ns, rows[i].after);
        CHECK_OK(ensure(ns, 1, &err), &err);
        put_text(subject, "thole.%s.ctl.0.epoch", ns);
        CHECK_OK(connection_publish(connection, subject, NULL, 0, THOLE_STR("x"), &err), &err);
        remove_stream(name);
        CU_ASSERT_EQUAL(ensure(ns, 1, &err), rows[i].text == NULL ? THOLE_OK : THOLE_CONFLICT);
        CU_ASSERT_EQUAL(stream_bounds(connection, name, &bounds, NULL),
                        rows[i].text == NULL ? THOLE_OK : THOLE_NOT_FOUND);
        if (rows[i].text != NULL)
            CU_ASSERT(has(err.text, rows[i].text) && has(err.text, "estore NATS's data, or, when") &&
                      has(err.text, "thole recover"));
        struct topology_options const accepts = {.ns = ns, .partitions = 1, .accept_loss = true};
        CHECK_OK(topology_ensure(connection, &accepts, &t, &err), &err);
        CHECK_OK(stream_bounds(connection, name, &bounds, &err), &err);
    }
}

static void test_defaults(void)
{
    struct topology t = {0};
    thole_error err = {0};
    CHECK_OK(topology_ensure(connection, &(struct topology_options){.ns = fresh_ns()}, &t, &err), &err);
    CU_ASSERT(t.partitions == PARTITIONS_DEFAULT && t.replicas == 1 &&
              t.nodes_ttl_ms == NODES_TTL_MS_DEFAULT && t.payload_max == THOLE_PAYLOAD_BYTES_DEFAULT);
}

/* The first engine says it; who says otherwise is refused, and who says nothing takes it. */
static void test_payload_max(void)
{
    struct topology t = {0};
    thole_error err = {0};
    char ns[32], subject[TEXT_BYTES];
    snprintf(ns, sizeof ns, "%s", fresh_ns());
    struct topology_options const small = {.ns = ns, .partitions = 1, .payload_max = 4096};
    struct topology_options const other = {.ns = ns, .payload_max = 8192};
    CHECK_OK(topology_ensure(connection, &small, &t, &err), &err);
    CU_ASSERT_EQUAL(t.payload_max, 4096);
    CHECK_OK(topology_ensure(connection, &(struct topology_options){.ns = ns}, &t, &err), &err);
    CU_ASSERT_EQUAL(t.payload_max, 4096);
    CU_ASSERT_EQUAL(topology_ensure(connection, &other, &t, &err), THOLE_INVALID);
    CU_ASSERT(has(err.text, ns) && has(err.text, "at most 4096 bytes, 8192 were asked for"));
    CU_ASSERT(has(err.text, "leave --payload-max away"));
    CHECK_OK(topology_read(connection, ns, &t, &err), &err);
    CU_ASSERT_EQUAL(t.payload_max, 4096);
    CHECK_OK(topology_check_payload(&t, 4096, &err), &err);
    CU_ASSERT_EQUAL(topology_check_payload(&t, 4097, &err), THOLE_INVALID);
    put_text(subject, "$KV.THOLE_%s_CONFIG.payload_max", ns);
    CU_ASSERT(has(api_answer(connection, subject, "1000000000"), "\"seq\""));
    CU_ASSERT_EQUAL(topology_read(connection, ns, &t, &err), THOLE_CORRUPT);
    CU_ASSERT(has(err.text, "key payload_max of bucket"));
}

static void test_bad_options(void)
{
    static const struct topology_options rows[] = {
        {.ns = ""},
        {.ns = "a.b"},
        {.ns = "a b"},
        {.ns = NULL},
        {.ns = "a\r\nb"},
        {.ns = "x", .replicas = 2},
        {.ns = "x", .replicas = 7},
        {.ns = "x", .nodes_ttl_ms = 10},
        {.ns = "x", .partitions = PARTITIONS_MAX + 1},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct topology t;
        thole_error err = {0};
        CU_ASSERT_EQUAL(topology_ensure(connection, &rows[i], &t, &err), THOLE_INVALID);
        CU_ASSERT(err.text[0] != 0);
    }
    thole_error err = {0};
    struct topology t;
    struct topology_options const three = {.ns = fresh_ns(), .replicas = 3}; /* one server */
    CU_ASSERT_EQUAL(topology_ensure(connection, &three, &t, &err), THOLE_INVALID);
    CU_ASSERT(has(err.text, "replicas > 1"));
}

struct racer {
    const char *ns;
    uint32_t partitions;
    thole_status status;
    struct topology topology;
    thole_error err;
};

static void *race(void *arg)
{
    struct racer *racer = arg;
    struct connection *own = connect_here();
    struct topology_options const options = {.ns = racer->ns, .partitions = racer->partitions};
    racer->status = topology_ensure(own, &options, &racer->topology, &racer->err);
    connection_close(own);
    return NULL;
}

/* Eight engines start at once; half of them ask for another number of partitions. */
static void test_many_at_once(void)
{
    enum { RACERS = 8, ROUNDS = 3 };
    for (int round = 0; round < ROUNDS; round++) {
        struct racer racers[RACERS];
        pthread_t threads[RACERS];
        const char *ns = fresh_ns();
        uint32_t won = 0;
        for (size_t i = 0; i < RACERS; i++) {
            racers[i] = (struct racer){.ns = ns, .partitions = round == 0 ? 4 : 4 + i % 2};
            pthread_create(&threads[i], NULL, race, &racers[i]);
        }
        for (size_t i = 0; i < RACERS; i++)
            pthread_join(threads[i], NULL);
        for (size_t i = 0; i < RACERS; i++) {
            if (racers[i].status == THOLE_OK) {
                CU_ASSERT(won == 0 || won == racers[i].topology.partitions);
                won = racers[i].topology.partitions;
            }
        }
        CU_ASSERT(won == 4 || won == 5);
        for (size_t i = 0; i < RACERS; i++) {
            CU_ASSERT_EQUAL(racers[i].status, racers[i].partitions == won ? THOLE_OK : THOLE_INVALID);
            if (racers[i].status != THOLE_OK)
                CU_ASSERT(has(racers[i].err.text, "partitions"));
        }
    }
}

/* ---- refusals ---- */

/* A good configuration of each stream with one field of it replaced; %s is the namespace. */
struct wrong {
    const char *stream, *subjects, *more, *field;
};
#define LIMITS "\"retention\":\"limits\",\"storage\":\"file\",\"discard\":\"new\",\"num_replicas\":1"
#define WORKQ "\"retention\":\"workqueue\",\"storage\":\"file\",\"discard\":\"new\",\"num_replicas\":1"
#define HIST "\"thole.%s.hist.0.*.*\",\"thole.%s.ctl.0.*\""
static const struct wrong wrongs[] = {
    {"THOLE_%s_HIST_0", "\"thole.%s.hist.0.*.*\"", LIMITS ",\"deny_purge\":true", "subjects"},
    {"THOLE_%s_HIST_0", "\"thole.%s.hist.>\",\"thole.%s.ctl.0.*\"", LIMITS ",\"deny_purge\":true",
     "subjects"},
    {"THOLE_%s_HIST_0", HIST, LIMITS ",\"deny_purge\":true,\"max_age\":3600000000000", "max_age"},
    {"THOLE_%s_HIST_0", HIST, LIMITS ",\"deny_purge\":true,\"max_msgs\":1000", "max_msgs"},
    {"THOLE_%s_HIST_0", HIST, LIMITS ",\"deny_purge\":true,\"max_bytes\":1000000", "max_bytes"},
    {"THOLE_%s_HIST_0", HIST, LIMITS ",\"deny_purge\":true,\"max_msgs_per_subject\":5",
     "max_msgs_per_subject"},
    {"THOLE_%s_HIST_0", HIST, LIMITS ",\"deny_purge\":true,\"max_msg_size\":5000", "max_msg_size"},
    {"THOLE_%s_HIST_0", HIST, LIMITS ",\"deny_purge\":true,\"deny_delete\":true", "deny_delete"},
    {"THOLE_%s_HIST_0", HIST, LIMITS, "deny_purge"},
    {"THOLE_%s_HIST_0", HIST, LIMITS ",\"deny_purge\":true,\"max_consumers\":1", "max_consumers"},
    {"THOLE_%s_HIST_0", HIST, LIMITS ",\"allow_rollup_hdrs\":true", "deny_purge"},
    {"THOLE_%s_HIST_0", HIST, LIMITS ",\"deny_purge\":true,\"no_ack\":true", "no_ack"},
    {"THOLE_%s_HIST_0", HIST,
     LIMITS ",\"deny_purge\":true,\"subject_transform\":{\"src\":\">\",\"dest\":\"x.>\"}",
     "subject_transform"},
    {"THOLE_%s_HIST_0", HIST, LIMITS ",\"deny_purge\":true,\"sources\":[{\"name\":\"ELSE\"}]", "sources"},
    {"THOLE_%s_HIST_0", HIST,
     "\"retention\":\"limits\",\"storage\":\"file\",\"discard\":\"old\",\"deny_purge\":true", "discard"},
    {"THOLE_%s_HIST_0", HIST,
     "\"retention\":\"limits\",\"storage\":\"memory\",\"discard\":\"new\",\"deny_purge\":true", "storage"},
    {"THOLE_%s_HIST_0", HIST,
     "\"retention\":\"interest\",\"storage\":\"file\",\"discard\":\"new\",\"deny_purge\":true", "retention"},
    {"THOLE_%s_IN_0", "\"thole.%s.in.0.*.*.*\"", WORKQ, "retention"},
    {"THOLE_%s_IN_0", "\"thole.%s.in.0.*.*.*\"", LIMITS ",\"max_age\":3600000000000", "max_age"},
    {"THOLE_%s_IN_0", "\"thole.%s.in.0.*.*.*\"", LIMITS ",\"deny_purge\":true", "deny_purge"},
    {"THOLE_%s_IN_0", "\"thole.%s.in.0.*.*.*\"", LIMITS ",\"max_msgs_per_subject\":1",
     "max_msgs_per_subject"},
    {"THOLE_%s_IN_0", "\"thole.%s.in.0.*.*.*\"", LIMITS ",\"allow_rollup_hdrs\":true", "allow_rollup_hdrs"},
    {"THOLE_%s_WORK", "\"thole.%s.work.>\"", LIMITS, "retention"},
    {"THOLE_%s_WORK", "\"thole.%s.work.>\"", WORKQ, "deny_purge"},
    {"THOLE_%s_WORK", "\"thole.%s.work.>\"", WORKQ ",\"deny_purge\":true,\"max_msg_size\":5000",
     "max_msg_size"},
    {"THOLE_%s_REJECTED", "\"thole.%s.rejected.*\"", LIMITS ",\"max_age\":3600000000000", "discard"},
    {"KV_THOLE_%s_CONFIG", "\"$KV.THOLE_%s_CONFIG.>\"", LIMITS ",\"max_msgs_per_subject\":1", "deny_delete"},
    {"KV_THOLE_%s_CONFIG", "\"$KV.THOLE_%s_CONFIG.>\"",
     LIMITS
     ",\"max_msgs_per_subject\":1,\"deny_delete\":true,\"allow_rollup_hdrs\":true,\"max_age\":5000000000",
     "max_age"},
    {"KV_THOLE_%s_NODES", "\"$KV.THOLE_%s_NODES.>\"",
     LIMITS ",\"max_msgs_per_subject\":1,\"deny_delete\":true,\"allow_rollup_hdrs\":true", "max_age"},
};

/* Puts the namespace in for each %s of the pattern. */
static void expand(const char *pattern, const char *ns, char ret[TEXT_BYTES])
{
    size_t len = 0;
    for (const char *c = pattern; *c != 0 && len < TEXT_BYTES - 64; c++) {
        if (c[0] == '%' && c[1] == 's') {
            len += (size_t)snprintf(ret + len, TEXT_BYTES - len, "%s", ns);
            c++;
        } else {
            ret[len++] = *c;
        }
    }
    ret[len] = 0;
}

static void test_every_wrong_field_is_refused(void)
{
    for (size_t i = 0; i < ARRAY_LEN(wrongs); i++) {
        char name[TEXT_BYTES], subjects[TEXT_BYTES], subject[TEXT_BYTES], json[2 * TEXT_BYTES + 512];
        char ns[32], there[64];
        thole_error err = {0};
        snprintf(ns, sizeof ns, "%s", fresh_ns());
        expand(wrongs[i].stream, ns, name);
        expand(wrongs[i].subjects, ns, subjects);
        put_text(subject, "$JS.API.STREAM.CREATE.%s", name);
        snprintf(json, sizeof json, "{\"name\":\"%s\",\"subjects\":[%s],%s}", name, subjects, wrongs[i].more);
        CU_ASSERT(has(api_answer(connection, subject, json), "\"did_create\":true"));
        CU_ASSERT_EQUAL(ensure(ns, 1, &err), THOLE_INVALID);
        snprintf(there, sizeof there, " has %s ", wrongs[i].field);
        CU_ASSERT(has(err.text, name) && has(err.text, there) && has(err.text, "is needed") &&
                  has(err.text, "nats stream edit"));
    }
}

/* With what is in it, and what its operator has chosen. */
static void test_limit_of_an_earlier_version_is_lifted(void)
{
    static const char *const limits[] = {"\"max_msgs_per_subject\":1,\"discard_new_per_subject\":true",
                                         "\"max_msgs_per_subject\":1"};
    for (size_t i = 0; i < ARRAY_LEN(limits); i++) {
        char subject[TEXT_BYTES], work[TEXT_BYTES], json[1024], ns[32];
        thole_error err = {0};
        snprintf(ns, sizeof ns, "%s", fresh_ns());
        put_text(subject, "$JS.API.STREAM.CREATE.THOLE_%s_WORK", ns);
        snprintf(json, sizeof json,
                 "{\"name\":\"THOLE_%s_WORK\",\"subjects\":[\"thole.%s.work.>\"]," WORKQ
                 ",\"deny_purge\":true,\"max_bytes\":1000000,\"allow_direct\":true,%s}",
                 ns, ns, limits[i]);
        CU_ASSERT(has(api_answer(connection, subject, json), "\"did_create\":true"));
        put_text(work, "thole.%s.work.q.a.1.1.1", ns);
        CU_ASSERT(has(api_answer(connection, work, "x"), "\"seq\":1"));
        CU_ASSERT(has(api_answer(connection, work, "x"), i == 0 ? "10077" : "\"seq\":2"));
        CHECK_OK(ensure(ns, 1, &err), &err);
        CU_ASSERT(has(api_answer(connection, work, "x"), i == 0 ? "\"seq\":2" : "\"seq\":3"));
        put_text(subject, "$JS.API.STREAM.INFO.THOLE_%s_WORK", ns);
        const char *const info = api_answer(connection, subject, "");
        CU_ASSERT(has(info, "\"max_msgs_per_subject\":-1") &&
                  strstr(info, "discard_new_per_subject\":true") == NULL);
        CU_ASSERT(has(info, "\"max_bytes\":1000000") && has(info, "\"deny_purge\":true"));
        CU_ASSERT(has(info, "\"messages\":2"));
        CHECK_OK(ensure(ns, 1, &err), &err);
    }
}

static void test_mirror_and_seal_are_refused(void)
{
    char subject[TEXT_BYTES], json[1024], ns[32];
    thole_error err = {0};
    snprintf(ns, sizeof ns, "%s", fresh_ns());
    put_text(subject, "$JS.API.STREAM.CREATE.THOLE_%s_IN_0", ns);
    snprintf(json, sizeof json, "{\"name\":\"THOLE_%s_IN_0\"," LIMITS ",\"mirror\":{\"name\":\"ELSE\"}}", ns);
    CU_ASSERT(has(api_answer(connection, subject, json), "\"did_create\":true"));
    CU_ASSERT_EQUAL(ensure(ns, 1, &err), THOLE_INVALID);
    CU_ASSERT(has(err.text, " has mirror {"));
    snprintf(ns, sizeof ns, "%s", fresh_ns());
    CHECK_OK(ensure(ns, 1, &err), &err);
    put_text(subject, "$JS.API.STREAM.UPDATE.THOLE_%s_IN_0", ns);
    snprintf(json, sizeof json,
             "{\"name\":\"THOLE_%s_IN_0\",\"subjects\":[\"thole.%s.in.0.*.*.*\"]," LIMITS ",\"sealed\":true}",
             ns, ns);
    CU_ASSERT(has(api_answer(connection, subject, json), "\"sealed\":true"));
    CU_ASSERT_EQUAL(ensure(ns, 1, &err), THOLE_INVALID);
    CU_ASSERT(has(err.text, " has sealed true"));
}

/* Settings of the operator's choice are left alone. */
static void test_limits_of_the_inbox_are_allowed(void)
{
    char subject[TEXT_BYTES], json[1024];
    thole_error err = {0};
    const char *ns = fresh_ns();
    put_text(subject, "$JS.API.STREAM.CREATE.THOLE_%s_IN_0", ns);
    snprintf(json, sizeof json,
             "{\"name\":\"THOLE_%s_IN_0\",\"subjects\":[\"thole.%s.in.0.*.*.*\"]," LIMITS
             ",\"max_bytes\":1000000,"
             "\"compression\":\"s2\",\"duplicate_window\":60000000000}",
             ns, ns);
    CU_ASSERT(has(api_answer(connection, subject, json), "\"did_create\":true"));
    CHECK_OK(ensure(ns, 1, &err), &err);
}

/* An inbox of an earlier version, with a message in it: it takes the longer subjects as well. */
static void test_an_inbox_gets_a_subject(void)
{
    char subject[TEXT_BYTES], json[1024];
    thole_error err = {0};
    const char *ns = fresh_ns();
    put_text(subject, "$JS.API.STREAM.CREATE.THOLE_%s_IN_0", ns);
    snprintf(json, sizeof json,
             "{\"name\":\"THOLE_%s_IN_0\",\"subjects\":[\"thole.%s.in.0.*.*.*\"]," LIMITS
             ",\"max_bytes\":1000000}",
             ns, ns);
    CU_ASSERT(has(api_answer(connection, subject, json), "\"did_create\":true"));
    put_text(subject, "thole.%s.in.0.event.e.i", ns);
    CU_ASSERT(has(api_answer(connection, subject, "x"), "\"seq\":1"));
    put_text(subject, "thole.%s.in.0.event.e.i.by.alice", ns);
    CHECK_OK(ensure(ns, 1, &err), &err);
    CU_ASSERT(has(api_answer(connection, subject, "x"), "\"seq\":2"));
    put_text(subject, "$JS.API.STREAM.INFO.THOLE_%s_IN_0", ns);
    CU_ASSERT(has(api_answer(connection, subject, ""), "\"max_bytes\":1000000"));
}

static void test_another_stream_has_the_subjects(void)
{
    char subject[TEXT_BYTES], json[1024];
    thole_error err = {0};
    const char *ns = fresh_ns();
    put_text(subject, "$JS.API.STREAM.CREATE.OTHER_%s", ns);
    snprintf(json, sizeof json, "{\"name\":\"OTHER_%s\",\"subjects\":[\"thole.%s.>\"]," LIMITS "}", ns, ns);
    CU_ASSERT(has(api_answer(connection, subject, json), "\"did_create\":true"));
    CU_ASSERT_EQUAL(ensure(ns, 1, &err), THOLE_INVALID);
    CU_ASSERT(has(err.text, "subjects overlap"));
}

static void test_config_that_does_not_fit(void)
{
    char subject[TEXT_BYTES], ns[32];
    thole_error err = {0};
    struct topology t;
    snprintf(ns, sizeof ns, "%s", fresh_ns());
    CHECK_OK(ensure(ns, 4, &err), &err);
    CU_ASSERT_EQUAL(ensure(ns, 5, &err), THOLE_INVALID);
    CU_ASSERT(has(err.text, "has 4 partitions, 5 were asked for"));
    struct topology_options const ttl = {.ns = ns, .nodes_ttl_ms = 60000};
    CU_ASSERT_EQUAL(topology_ensure(connection, &ttl, &t, &err), THOLE_INVALID);
    CU_ASSERT(has(err.text, "_NODES has max_age 10s, but 60s is needed"));
    struct topology_options const replicas = {.ns = ns, .replicas = 3};
    CU_ASSERT_EQUAL(topology_ensure(connection, &replicas, &t, &err), THOLE_INVALID);
    CU_ASSERT(has(err.text, "_CONFIG has num_replicas 1, but 3 is needed"));
    put_text(subject, "$KV.THOLE_%s_CONFIG.format", ns);
    CU_ASSERT(has(api_answer(connection, subject, "3"), "\"seq\""));
    CU_ASSERT_EQUAL(ensure(ns, 0, &err), THOLE_UNSUPPORTED);
    CU_ASSERT(has(err.text, "has format 3, this program knows 2"));
    CU_ASSERT_EQUAL(topology_read(connection, ns, &t, &err), THOLE_UNSUPPORTED);
    CU_ASSERT(has(api_answer(connection, subject, "1"), "\"seq\""));
    CU_ASSERT_EQUAL(topology_read(connection, ns, &t, &err), THOLE_UNSUPPORTED);
    CU_ASSERT(has(err.text, "has format 1, this program knows 2"));
    CU_ASSERT(has(api_answer(connection, subject, "2"), "\"seq\""));
    put_text(subject, "$KV.THOLE_%s_CONFIG.partitions", ns);
    static const char *const garbage[] = {"0", "x", "", "-1", "1e9", "99999999999999999999"};
    for (size_t i = 0; i < ARRAY_LEN(garbage); i++) {
        CU_ASSERT(has(api_answer(connection, subject, garbage[i]), "\"seq\""));
        CU_ASSERT_EQUAL(ensure(ns, 0, &err), THOLE_CORRUPT);
        CU_ASSERT(has(err.text, "key partitions of bucket"));
    }
    CU_ASSERT(has(api_answer(connection, subject, "1000000"), "\"seq\""));
    CU_ASSERT_EQUAL(ensure(ns, 0, &err), THOLE_CORRUPT);
    CU_ASSERT_EQUAL(topology_read(connection, ns, &t, &err), THOLE_CORRUPT);
}

/* An engine that died between the two keys. */
static void test_half_made_is_completed(void)
{
    char subject[TEXT_BYTES], json[1024], ns[32];
    thole_error err = {0};
    struct topology t = {0};
    snprintf(ns, sizeof ns, "%s", fresh_ns());
    put_text(subject, "$JS.API.STREAM.CREATE.KV_THOLE_%s_CONFIG", ns);
    snprintf(
        json, sizeof json,
        "{\"name\":\"KV_THOLE_%s_CONFIG\",\"subjects\":[\"$KV.THOLE_%s_CONFIG.>\"]," LIMITS
        ",\"max_msgs_per_subject\":1,\"deny_delete\":true,\"allow_rollup_hdrs\":true,\"allow_direct\":true}",
        ns, ns);
    CU_ASSERT(has(api_answer(connection, subject, json), "\"did_create\":true"));
    CU_ASSERT_EQUAL(topology_read(connection, ns, &t, &err), THOLE_NOT_FOUND);
    put_text(subject, "$KV.THOLE_%s_CONFIG.partitions", ns);
    CU_ASSERT(has(api_answer(connection, subject, "2"), "\"seq\""));
    CU_ASSERT_EQUAL(topology_read(connection, ns, &t, &err), THOLE_NOT_FOUND);
    CHECK_OK(ensure(ns, 0, &err), &err);
    CHECK_OK(topology_read(connection, ns, &t, &err), &err);
    CU_ASSERT_EQUAL(t.partitions, 2);
}

/* ---- other clients and other servers ---- */

static void test_buckets_are_ordinary_ones(void)
{
    struct topology const t = fresh_topology(connection, 6);
    natsConnection *nc = NULL;
    jsCtx *js = NULL;
    kvStore *kv = NULL;
    kvEntry *entry = NULL;
    char bucket[TEXT_BYTES];
    uint64_t revision = 0;
    put_text(bucket, "THOLE_%s_CONFIG", t.ns);
    CU_ASSERT_EQUAL(natsConnection_ConnectTo(&nc, fixture_server.url), NATS_OK);
    CU_ASSERT_EQUAL(natsConnection_JetStream(&js, nc, NULL), NATS_OK);
    CU_ASSERT_EQUAL(js_KeyValue(&kv, js, bucket), NATS_OK);
    CU_ASSERT_EQUAL(kvStore_Get(&entry, kv, "partitions"), NATS_OK);
    CHECK_STR("partitions", kvEntry_ValueString(entry), "6");
    kvEntry_Destroy(entry);
    CU_ASSERT_EQUAL(kvStore_PutString(&revision, kv, "note", "hello"), NATS_OK);
    CU_ASSERT_EQUAL(kvStore_Delete(kv, "note"), NATS_OK);
    CU_ASSERT_NOT_EQUAL(kvStore_CreateString(&revision, kv, "partitions", "9"), NATS_OK);
    kvStore_Destroy(kv);
    jsCtx_Destroy(js);
    natsConnection_Destroy(nc);
}

static void refused_by(const char *program, const char *config, const char *text)
{
    struct server server;
    struct topology t;
    thole_error err = {0};
    CU_ASSERT(start_configured(&server, program, config));
    struct connection *there = connect_to(server.url);
    struct topology_options const options = {.ns = "x", .partitions = 1};
    CU_ASSERT_EQUAL(topology_ensure(there, &options, &t, &err), THOLE_UNSUPPORTED);
    CU_ASSERT(has(err.text, text));
    CU_ASSERT_EQUAL(topology_read(there, "x", &t, &err), THOLE_UNSUPPORTED);
    connection_close(there);
    server_stop(&server);
    server_dir_remove(server.dir);
}

static void test_servers_that_will_not_do(void)
{
    char program[1024];
    thole_error err = {0};
    const char *old = getenv("NATS_SERVER_OLD"); /* for example 2.9.10 */
    CHECK_OK(server_find_nats(program, sizeof program, &err), &err);
    refused_by(program, "", "JetStream is off");
    refused_by(program,
               "jetstream: {}\naccounts { A: { users: [ { user: a, password: a } ] } }\nno_auth_user: a",
               "JetStream is off");
    if (old != NULL)
        refused_by(old, "jetstream: {}", "2.10.23 or newer is needed");
    else
        fprintf(stderr, "(NATS_SERVER_OLD is not set: no old server was tried) ");
}

/* ---- queues ---- */

static void test_queues(void)
{
    struct topology const t = fresh_topology(connection, 1);
    uint64_t lease = 0;
    thole_error err = {0};
    CU_ASSERT_EQUAL(topology_ensure_queue(connection, "none", THOLE_STR("q"), 0, &lease, NULL, &err),
                    THOLE_NOT_FOUND);
    CHECK_OK(topology_ensure_queue(connection, t.ns, THOLE_STR("q"), 5000, &lease, NULL, &err), &err);
    CU_ASSERT_EQUAL(lease, 5000);
    CHECK_OK(topology_ensure_queue(connection, t.ns, THOLE_STR("q"), 0, &lease, NULL, &err), &err);
    CU_ASSERT_EQUAL(lease, 5000);
    CU_ASSERT_EQUAL(topology_ensure_queue(connection, t.ns, THOLE_STR("q"), 6000, &lease, NULL, &err),
                    THOLE_INVALID);
    CU_ASSERT(has(err.text, "consumer q_q of stream") && has(err.text, "ack_wait 5s, but 6s is needed"));
    CHECK_OK(topology_ensure_queue(connection, t.ns, THOLE_STR("other"), 0, &lease, NULL, &err), &err);
    CU_ASSERT_EQUAL(lease, 30000);
    CU_ASSERT_EQUAL(topology_ensure_queue(connection, t.ns, THOLE_STR("a.b"), 0, &lease, NULL, &err),
                    THOLE_INVALID);
    CU_ASSERT_EQUAL(topology_ensure_queue(connection, t.ns, THOLE_STR("q2"), 999, &lease, NULL, &err),
                    THOLE_INVALID);
}

struct queue_racer {
    const char *ns;
    uint64_t asked_ms, got_ms;
    thole_status status;
};

static void *race_for_queue(void *arg)
{
    struct queue_racer *racer = arg;
    thole_error err = {0};
    struct connection *own = connect_here();
    racer->status =
        topology_ensure_queue(own, racer->ns, THOLE_STR("q"), racer->asked_ms, &racer->got_ms, NULL, &err);
    connection_close(own);
    return NULL;
}

/* Nobody changes the lease of a queue that another worker has just made. */
static void test_many_workers_at_once(void)
{
    enum { RACERS = 8 };
    for (int round = 0; round < 5; round++) {
        struct topology const t = fresh_topology(connection, 1);
        struct queue_racer racers[RACERS];
        pthread_t threads[RACERS];
        uint64_t lease = 0;
        size_t won = 0;
        thole_error err = {0};
        for (size_t i = 0; i < RACERS; i++) {
            racers[i] = (struct queue_racer){.ns = t.ns, .asked_ms = 1000 * (i + 1)};
            pthread_create(&threads[i], NULL, race_for_queue, &racers[i]);
        }
        for (size_t i = 0; i < RACERS; i++)
            pthread_join(threads[i], NULL);
        CHECK_OK(topology_ensure_queue(connection, t.ns, THOLE_STR("q"), 0, &lease, NULL, &err), &err);
        for (size_t i = 0; i < RACERS; i++) {
            won += racers[i].status == THOLE_OK;
            CU_ASSERT_EQUAL(racers[i].status, racers[i].asked_ms == lease ? THOLE_OK : THOLE_INVALID);
        }
        CU_ASSERT_EQUAL(won, 1);
    }
}

/* Of the queue's consumer, as the server has it. */
static bool pending_max(const struct topology *t, const char *text)
{
    char subject[TEXT_BYTES];
    put_text(subject, "$JS.API.CONSUMER.INFO.THOLE_%s_WORK.q_q", t->ns);
    return has(api_answer(connection, subject, ""), text);
}

static void test_limits_of_a_queue(void)
{
    struct topology const t = fresh_topology(connection, 1);
    thole_slice const q = THOLE_STR("q");
    thole_error err = {0};
    uint64_t lease, limit = 7;
    CHECK_OK(topology_queue_limit(connection, t.ns, q, &limit, &err), &err);
    CU_ASSERT_EQUAL(limit, 0);
    CHECK_OK(topology_limit_queue(connection, t.ns, q, 3, &err), &err); /* before it has a consumer */
    CHECK_OK(topology_ensure_queue(connection, t.ns, q, 2000, &lease, NULL, &err), &err);
    CU_ASSERT_TRUE(pending_max(&t, "\"max_ack_pending\":3,"));
    CHECK_OK(topology_limit_queue(connection, t.ns, q, 5, &err), &err);
    CU_ASSERT_TRUE(pending_max(&t, "\"max_ack_pending\":5,"));
    CHECK_OK(topology_ensure_queue(connection, t.ns, q, 0, &lease, NULL, &err), &err);
    CU_ASSERT_TRUE(pending_max(&t, "\"max_ack_pending\":5,")); /* no worker undoes it */
    CU_ASSERT_EQUAL(lease, 2000);
    CHECK_OK(topology_queue_limit(connection, t.ns, q, &limit, &err), &err);
    CU_ASSERT_EQUAL(limit, 5);
    CHECK_OK(topology_limit_queue(connection, t.ns, q, 0, &err), &err);
    CU_ASSERT_TRUE(pending_max(&t, "\"max_ack_pending\":100000,"));
    CU_ASSERT_EQUAL(topology_limit_queue(connection, t.ns, q, 100001, &err), THOLE_INVALID);
    CHECK_OK(topology_limit_queue(connection, t.ns, q, 100000, &err), &err);
}

static const struct {
    const char *more, *text;
} consumers[] = {
    {"\"ack_policy\":\"explicit\",\"max_deliver\":5", "max_deliver 5"},
    {"\"ack_policy\":\"explicit\",\"max_deliver\":-1,\"deliver_subject\":\"x\"", "deliver_subject \"x\""},
    {"\"ack_policy\":\"explicit\",\"max_deliver\":3,\"backoff\":[1000000000,2000000000]", "backoff"},
};

static void test_wrong_consumers_are_refused(void)
{
    for (size_t i = 0; i < ARRAY_LEN(consumers); i++) {
        struct topology const t = fresh_topology(connection, 1);
        char subject[TEXT_BYTES], json[1024];
        uint64_t lease;
        thole_error err = {0};
        put_text(subject, "$JS.API.CONSUMER.DURABLE.CREATE.THOLE_%s_WORK.q_q", t.ns);
        snprintf(json, sizeof json,
                 "{\"stream_name\":\"THOLE_%s_WORK\",\"config\":{\"durable_name\":\"q_q\",\"filter_subject\":"
                 "\"thole.%s.work.q.>\",\"deliver_policy\":\"all\",\"replay_policy\":\"instant\",%s}}",
                 t.ns, t.ns, consumers[i].more);
        CU_ASSERT(has(api_answer(connection, subject, json), "consumer_create_response"));
        CU_ASSERT_EQUAL(topology_ensure_queue(connection, t.ns, THOLE_STR("q"), 0, &lease, NULL, &err),
                        THOLE_INVALID);
        CU_ASSERT(has(err.text, consumers[i].text) && has(err.text, "nats consumer rm"));
    }
}

static const struct thole_test tests[] = {
    {"made, and read", test_made_and_read},
    {"parts that are gone", test_parts_that_are_gone},
    {"defaults", test_defaults},
    {"payload max is one for a namespace", test_payload_max},
    {"options that are refused", test_bad_options},
    {"many engines at once", test_many_at_once},
    {"every wrong field is refused", test_every_wrong_field_is_refused},
    {"limit of an earlier version is lifted", test_limit_of_an_earlier_version_is_lifted},
    {"mirrors and sealed streams are refused", test_mirror_and_seal_are_refused},
    {"limits of the inbox are the operator's", test_limits_of_the_inbox_are_allowed},
    {"an inbox of an earlier version gets a subject", test_an_inbox_gets_a_subject},
    {"another stream has the subjects", test_another_stream_has_the_subjects},
    {"CONFIG that does not fit", test_config_that_does_not_fit},
    {"what is half made is completed", test_half_made_is_completed},
    {"buckets work with NATS clients", test_buckets_are_ordinary_ones},
    {"servers that will not do", test_servers_that_will_not_do},
    {"queues", test_queues},
    {"many workers at once", test_many_workers_at_once},
    {"wrong consumers are refused", test_wrong_consumers_are_refused},
    {"limits of a queue", test_limits_of_a_queue},
};

static void run_open(void)
{
    connection = connect_here();
}

static void run_close(void)
{
    connection_close(connection);
}

int main(void)
{
    struct thole_test all[ARRAY_LEN(tests) + 2];
    all[0] = (struct thole_test){"connect", run_open};
    memcpy(all + 1, tests, sizeof tests);
    all[ARRAY_LEN(tests) + 1] = (struct thole_test){"close", run_close};
    return fixture_main("topology", all, ARRAY_LEN(all));
}
