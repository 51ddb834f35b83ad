/* What a namespace's streams, buckets and consumers are made as, and what becomes of each request that fails
 * or finds something else; JetStream is played: it keeps what it is given. */
#include "api.h"
#include "jscan.h"
#include "link.h"
#include "reader.h"
#include "thole_cunit.h"
#include "topology.h"
#include "wrap_one_attempt.h"
#include <stdlib.h>

enum { THINGS_MAX = 40, CONFIG_BYTES = 2048, NEVER = 1000 };

struct thing { /* a stream's or consumer's configuration, a key's value */
    char name[160], text[CONFIG_BYTES];
};

static struct {
    struct thing things[THINGS_MAX];
    size_t things_len;
    char log[32 * 1024];   /* of what was made */
    size_t asked, fail_at; /* the number of the request that fails */
    thole_status status;   /* with which */
    const char *answer;    /* or is answered so */
    const char *version;
    bool no_jetstream, forgets; /* forgets: what is made is not there */
    uint64_t delivered, last;
    const char *rival; /* value that another process writes before each of ours */
} play;

static thole_error err;

static void note(const char *what, const char *name, thole_slice text)
{
    size_t const at = strlen(play.log);
    (void)snprintf(play.log + at, sizeof play.log - at, "%s %s %.*s\n", what, name, THOLE_FMT(text));
}

static struct thing *find(const char *name)
{
    for (size_t i = 0; i < play.things_len; i++)
        if (strcmp(play.things[i].name, name) == 0)
            return &play.things[i];
    return NULL;
}

static void keep(const char *name, thole_slice text)
{
    struct thing *thing = find(name);
    if (play.forgets)
        return;
    CU_ASSERT_TRUE_FATAL(thing != NULL || play.things_len < THINGS_MAX);
    if (thing == NULL)
        thing = &play.things[play.things_len++];
    CU_ASSERT_TRUE_FATAL(text.len < CONFIG_BYTES);
    (void)snprintf(thing->name, sizeof thing->name, "%s", name);
    (void)snprintf(thing->text, sizeof thing->text, "%.*s", THOLE_FMT(text));
}

static void keep_text(const char *name, const char *text)
{
    keep(name, thole_slice_from(text));
}

static void forget(const char *name)
{
    struct thing *const thing = find(name);
    if (thing != NULL)
        *thing = play.things[--play.things_len];
}

/* ---- JetStream ---- */

thole_slice __wrap_connection_server_version(const struct connection *connection)
{
    (void)connection;
    return thole_slice_from(play.version);
}

uint64_t __wrap_connection_epoch(const struct connection *connection)
{
    (void)connection;
    return 1;
}

bool __wrap_connection_has_jetstream(const struct connection *connection)
{
    (void)connection;
    return !play.no_jetstream;
}

/* Whether this request fails, and how. */
static bool fails(struct buf *ret, thole_status *ret_status, thole_error *reterr)
{
    *ret_status = THOLE_OK;
    if (play.asked++ != play.fail_at)
        return false;
    if (play.status != THOLE_OK)
        *ret_status = thole_fail(reterr, play.status, "as the test says");
    else if (ret != NULL)
        buf_text(ret, play.answer);
    return true;
}

static void refuse(struct buf *ret, unsigned code)
{
    buf_printf(ret, "{\"type\":\"x\",\"error\":{\"code\":404,\"err_code\":%u,\"description\":\"no\"}}", code);
}

static void answer_info(struct buf *ret, const char *name, unsigned missing)
{
    const struct thing *const thing = find(name);
    if (thing == NULL)
        refuse(ret, missing);
    else
        buf_printf(ret,
                   "{\"type\":\"x\",\"config\":%s,\"delivered\":{\"consumer_seq\":7,\"stream_seq\":%llu}}",
                   thing->text, (unsigned long long)play.delivered);
}

static void make_consumer(const char *target, thole_slice body)
{
    char name[160];
    thole_slice config, durable;
    CU_ASSERT_TRUE_FATAL(json_find(body, "config", &config) && json_find(config, "durable_name", &durable));
    (void)snprintf(name, sizeof name, "THOLE_shop_WORK.%.*s", (int)durable.len - 2,
                   (const char *)durable.ptr + 1);
    CU_ASSERT_EQUAL(strncmp(target, name, strlen(name)), 0);
    keep(name, config);
}

static void answer(const char *verb, const char *target, thole_slice body, struct buf *ret)
{
    static const char made[] = "{\"type\":\"x\"}";
    if (strcmp(verb, "INFO") == 0) {
        buf_text(ret, made);
    } else if (strcmp(verb, "STREAM.INFO") == 0) {
        answer_info(ret, target, API_STREAM_NOT_FOUND);
    } else if (strcmp(verb, "CONSUMER.INFO") == 0) {
        answer_info(ret, target, API_CONSUMER_NOT_FOUND);
    } else if (strcmp(verb, "CONSUMER.DELETE") == 0) {
        note("delete", target, body);
        if (find(target) == NULL)
            refuse(ret, API_CONSUMER_NOT_FOUND);
        else
            buf_text(ret, made);
        forget(target);
        play.delivered = 0;
    } else {
        note(verb, target, body);
        buf_text(ret, made);
        if (strcmp(verb, "CONSUMER.CREATE") == 0)
            make_consumer(target, body);
        else
            keep(target, body);
    }
}

thole_status __wrap_connection_request(struct connection *connection, const char *subject, thole_slice body,
                                       struct buf *ret, thole_error *reterr)
{
    static const char *const verbs[] = {"INFO",          "STREAM.INFO",     "STREAM.CREATE",  "STREAM.UPDATE",
                                        "CONSUMER.INFO", "CONSUMER.CREATE", "CONSUMER.DELETE"};
    thole_status status;
    size_t i = 0;
    (void)connection;
    buf_clear(ret);
    if (fails(ret, &status, reterr))
        return status;
    if (strncmp(subject, "$JS.API.", 8) != 0) {
        note("put", subject, body);
        keep(subject, body);
        buf_text(ret, "{\"stream\":\"x\",\"seq\":1}");
        return THOLE_OK;
    }
    for (size_t len = 0; i < ARRAY_LEN(verbs); i++) {
        len = strlen(verbs[i]);
        if (strncmp(subject + 8, verbs[i], len) == 0 && (subject[8 + len] == '.' || subject[8 + len] == 0))
            break;
    }
    CU_ASSERT_TRUE_FATAL(i < ARRAY_LEN(verbs));
    const char *const target = subject + 8 + strlen(verbs[i]);
    answer(verbs[i], target + (*target == '.'), body, ret);
    return THOLE_OK;
}

static const char rivals_key[] = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";

#define is_secret(subject) (strstr(subject, "_SECRET.") != NULL)

/* Keys that are made unless they are there. */
thole_status __wrap_connection_request_with(struct connection *connection, const char *subject,
                                            const struct header *headers, size_t headers_len,
                                            thole_slice body, struct buf *ret, thole_error *reterr)
{
    thole_status status;
    (void)connection;
    CU_ASSERT_EQUAL_FATAL(headers_len, 1);
    CHECK_STR("only if it is not there", headers[0].key, "Nats-Expected-Last-Subject-Sequence");
    CU_ASSERT_TRUE(thole_slice_equal(headers[0].value, THOLE_STR("0")));
    if (fails(ret, &status, reterr))
        return status;
    if (play.rival != NULL)
        keep_text(subject, is_secret(subject) ? rivals_key : play.rival);
    if (find(subject) != NULL) {
        buf_text(ret,
                 "{\"error\":{\"code\":400,\"err_code\":10071,\"description\":\"wrong last sequence\"}}");
        return THOLE_OK;
    }
    CU_ASSERT_TRUE(!is_secret(subject) || body.len == 2 * NONCE_KEY_BYTES);
    note("make", subject, is_secret(subject) ? THOLE_STR("a random key") : body);
    keep(subject, body);
    buf_text(ret, "{\"stream\":\"x\",\"seq\":1}");
    return THOLE_OK;
}

thole_status __wrap_stream_last_by_subject(struct connection *connection, const char *stream,
                                           const char *subject, uint64_t *ret_sequence, struct buf *ret_body,
                                           thole_error *reterr)
{
    thole_status status;
    (void)connection;
    CHECK_STR("bucket", stream, is_secret(subject) ? "KV_THOLE_shop_SECRET" : "KV_THOLE_shop_CONFIG");
    if (fails(NULL, &status, reterr))
        return status;
    const struct thing *const thing = find(subject);
    *ret_sequence = thing != NULL;
    if (thing != NULL)
        buf_text(ret_body, thing->text);
    return THOLE_OK;
}

thole_status __wrap_stream_bounds(struct connection *connection, const char *stream,
                                  struct stream_bounds *ret, thole_error *reterr)
{
    thole_status status;
    (void)connection;
    CHECK_STR("stream", stream, "THOLE_shop_WORK");
    if (fails(NULL, &status, reterr))
        return status;
    *ret = (struct stream_bounds){.first = 1, .last = play.last};
    return THOLE_OK;
}

/* ---- tests ---- */

static void begin(void)
{
    memset(&play, 0, sizeof play);
    memset(&err, 0, sizeof err);
    play.version = "2.10.27";
    play.fail_at = NEVER;
}

static thole_status ensure_with(struct topology_options options, struct topology *ret)
{
    options.ns = "shop";
    return topology_ensure(NULL, &options, ret, &err);
}

static thole_status ensure(void)
{
    struct topology topology;
    return ensure_with((struct topology_options){.partitions = 1}, &topology);
}

#define BUCKET(name, age, window)                                                                            \
    "STREAM.CREATE KV_THOLE_shop_" name " {\"name\":\"KV_THOLE_shop_" name                                   \
    "\",\"subjects\":[\"$KV.THOLE_shop_" name                                                                \
    ".>\"],\"retention\":\"limits\",\"storage\":\"file\",\"discard\":\"new\",\"num_replicas\":1,"            \
    "\"max_consumers\":-1,\"max_msgs\":-1,\"max_bytes\":-1,\"max_age\":" age                                 \
    ",\"max_msg_size\":-1,\"max_msgs_per_subject\":1,\"duplicate_window\":" window                           \
    ",\"allow_direct\":true,\"allow_rollup_hdrs\":true,\"deny_delete\":true,\"deny_purge\":false}\n"
#define STREAM(name, subjects, retention, discard, msgs, bytes, age, window, purge)                          \
    "STREAM.CREATE THOLE_shop_" name " {\"name\":\"THOLE_shop_" name "\",\"subjects\":[" subjects            \
    "],\"retention\":\"" retention "\",\"storage\":\"file\",\"discard\":\"" discard                          \
    "\",\"num_replicas\":1,\"max_consumers\":-1,\"max_msgs\":" msgs ",\"max_bytes\":" bytes                  \
    ",\"max_age\":" age ",\"max_msg_size\":-1,\"max_msgs_per_subject\":-1" window                            \
    ",\"allow_direct\":true,\"allow_rollup_hdrs\":false,\"deny_delete\":false,\"deny_purge\":" purge "}\n"
#define KEY(name, value) "make $KV.THOLE_shop_CONFIG." name " " value "\n"
#define WINDOW ",\"duplicate_window\":120000000000"

static const char made[] = BUCKET("CONFIG", "0", "120000000000") KEY("partitions", "1")
    KEY("payload_max", "262144") BUCKET("NODES", "10000000000", "10000000000")
        BUCKET("SECRET", "0", "120000000000") "make $KV.THOLE_shop_SECRET.nonces a random key\n" BUCKET(
            "CRASHES", "0", "120000000000")
            STREAM("WORK", "\"thole.shop.work.>\"", "workqueue", "new", "-1", "-1", "0", "", "true")
                STREAM("REJECTED", "\"thole.shop.rejected.*\"", "limits", "old", "10000", "33554432",
                       "604800000000000", WINDOW, "false")
                    STREAM("IN_0", "\"thole.shop.in.0.*.*.*\",\"thole.shop.in.0.*.*.*.by.*\"", "limits",
                           "new", "-1", "-1", "0", WINDOW, "false")
                        STREAM("HIST_0", "\"thole.shop.hist.0.*.*\",\"thole.shop.ctl.0.*\"", "limits", "new",
                               "-1", "-1", "0", "", "true") KEY("format", "2");

static bool same(const struct topology *a, const struct topology *b)
{
    return a->partitions == b->partitions && a->replicas == b->replicas &&
           a->nodes_ttl_ms == b->nodes_ttl_ms && a->payload_max == b->payload_max; /* the key is random */
}

static void test_made(void)
{
    static const struct topology usual = {
        .partitions = 1, .replicas = 1, .nodes_ttl_ms = 10000, .payload_max = 262144};
    struct topology topology = {.partitions = 0};
    begin();
    CU_ASSERT_EQUAL(ensure_with((struct topology_options){.partitions = 1}, &topology), THOLE_OK);
    CHECK_STR("made", play.log, made);
    CU_ASSERT_TRUE(same(&topology, &usual));
    CHECK_STR("namespace", topology.ns, "shop");
    play.log[0] = '\0';
    memset(&topology, 0, sizeof topology);
    CU_ASSERT_EQUAL(ensure_with((struct topology_options){.partitions = 0}, &topology), THOLE_OK);
    CHECK_STR("all is there", play.log, "");
    CU_ASSERT_TRUE(same(&topology, &usual));
    memset(&topology, 0, sizeof topology);
    CU_ASSERT_EQUAL(topology_read(NULL, "shop", &topology, &err), THOLE_OK);
    CHECK_STR("read", topology.ns, "shop");
    CU_ASSERT_TRUE(same(&topology, &usual));
}

/* Each request fails once; the next engine's start makes the rest. */
static void test_each_request_fails(void)
{
    begin();
    CU_ASSERT_EQUAL(ensure(), THOLE_OK);
    size_t const all = play.asked;
    CU_ASSERT_TRUE(all > 20);
    for (size_t i = 0; i < all; i++) {
        begin();
        play.fail_at = i;
        play.status = THOLE_UNAVAILABLE;
        CU_ASSERT_EQUAL(ensure(), THOLE_UNAVAILABLE);
        CHECK_STR("why", err.text, "as the test says");
        CU_ASSERT_EQUAL(play.asked, i + 1);
        CU_ASSERT_TRUE(find("$KV.THOLE_shop_CONFIG.format") == NULL || i == all - 1);
        CU_ASSERT_EQUAL(ensure(), THOLE_OK);
        CHECK_STR("made in the end", play.log, made);
    }
    begin();
    CU_ASSERT_EQUAL(ensure(), THOLE_OK);
    play.asked = 0;
    struct topology topology;
    CU_ASSERT_EQUAL(topology_read(NULL, "shop", &topology, &err), THOLE_OK);
    size_t const reads = play.asked;
    CU_ASSERT_EQUAL(reads, 6);
    for (size_t i = 0; i < reads; i++) {
        play.asked = 0;
        play.fail_at = i;
        play.status = THOLE_DENIED;
        CU_ASSERT_EQUAL(topology_read(NULL, "shop", &topology, &err), THOLE_DENIED);
        CU_ASSERT_EQUAL(play.asked, i + 1);
    }
}

/* Replaces the first @p from in the configuration of @p name. */
static void change(const char *name, const char *from, const char *to)
{
    struct thing *const thing = find(name);
    CU_ASSERT_PTR_NOT_NULL_FATAL(thing);
    char *const at = strstr(thing->text, from);
    if (at == NULL)
        fprintf(stderr, "\n  no %s in %s\n", from, thing->text);
    CU_ASSERT_PTR_NOT_NULL_FATAL(at);
    char text[CONFIG_BYTES];
    (void)snprintf(text, sizeof text, "%.*s%s%s", (int)(at - thing->text), thing->text, to,
                   at + strlen(from));
    memcpy(thing->text, text, sizeof text);
}

/* One field differs: whose, and what is needed. Empty: it may. */
static const struct {
    const char *name, *from, *to, *text;
} fields[] = {
    {"THOLE_shop_HIST_0", "{", "{\"mirror\":{\"name\":\"x\"},", "mirror"},
    {"THOLE_shop_HIST_0", "{", "{\"mirror\":null,", ""},
    {"THOLE_shop_HIST_0", "{", "{\"sources\":[{}],", "sources"},
    {"THOLE_shop_HIST_0", "{", "{\"subject_transform\":{},", "subject_transform"},
    {"THOLE_shop_HIST_0", "{", "{\"sealed\":true,", "sealed true, but false is needed"},
    {"THOLE_shop_HIST_0", "{", "{\"no_ack\":true,", "no_ack true, but false is needed"},
    {"THOLE_shop_HIST_0", "{", "{\"discard_new_per_subject\":true,", "discard_new_per_subject true"},
    {"THOLE_shop_HIST_0", "hist.0.*.*", "hist.0.*", "thole.shop.hist.0.*.* and thole.shop.ctl.0.* is needed"},
    {"THOLE_shop_HIST_0", ",\"thole.shop.ctl.0.*\"", "", "subjects"},
    {"THOLE_shop_HIST_0", "\"thole.shop.ctl.0.*\"", "\"thole.shop.ctl.0.*\",\"more\"", "subjects"},
    {"THOLE_shop_HIST_0", "\"limits\"", "\"interest\"", "retention \"interest\", but limits is needed"},
    {"THOLE_shop_WORK", "\"workqueue\"", "\"limits\"", "but workqueue is needed"},
    {"THOLE_shop_HIST_0", "\"file\"", "\"memory\"", "but file is needed"},
    {"THOLE_shop_HIST_0", "\"discard\":\"new\"", "\"discard\":\"old\"", "but new is needed"},
    {"THOLE_shop_REJECTED", "\"discard\":\"old\"", "\"discard\":\"new\"", "but old is needed"},
    {"THOLE_shop_HIST_0", "\"max_age\":0", "\"max_age\":1500000000",
     "max_age 1500ms, but no limit is needed"},
    {"THOLE_shop_HIST_0", "\"max_age\":0", "\"max_age\":\"x\"", "but a time is needed"},
    {"KV_THOLE_shop_NODES", "\"max_age\":10000000000", "\"max_age\":999999999", "but at least a second"},
    {"KV_THOLE_shop_NODES", "\"max_age\":10000000000", "\"max_age\":1000000000", ""},
    {"THOLE_shop_REJECTED", "\"max_age\":604800000000000", "\"max_age\":1000000000", ""},
    {"THOLE_shop_REJECTED", "\"max_age\":604800000000000", "\"max_age\":0", "max_age 0s, but at least"},
    {"THOLE_shop_REJECTED", "\"max_msgs\":10000", "\"max_msgs\":5", ""},
    {"THOLE_shop_REJECTED", "\"max_bytes\":33554432", "\"max_bytes\":5", ""},
    {"THOLE_shop_HIST_0", "\"max_msgs_per_subject\":-1", "\"max_msgs_per_subject\":0", ""},
    {"THOLE_shop_HIST_0", "\"max_msgs_per_subject\":-1", "\"max_msgs_per_subject\":1",
     "but no limit is needed"},
    {"KV_THOLE_shop_NODES", "\"max_msgs_per_subject\":1", "\"max_msgs_per_subject\":2", "but 1 is needed"},
    {"KV_THOLE_shop_NODES", "\"max_msgs_per_subject\":1", "\"max_msgs_per_subject\":-1", "but 1 is needed"},
    {"THOLE_shop_HIST_0", "\"max_consumers\":-1", "\"max_consumers\":1", "max_consumers"},
    {"THOLE_shop_HIST_0", "\"max_msgs\":-1", "\"max_msgs\":1", "max_msgs 1"},
    {"THOLE_shop_HIST_0", "\"max_bytes\":-1", "\"max_bytes\":1", "max_bytes"},
    {"THOLE_shop_IN_0", "\"max_msgs\":-1", "\"max_msgs\":1", ""},
    {"THOLE_shop_HIST_0", "\"max_msg_size\":-1", "\"max_msg_size\":1", "max_msg_size"},
    {"KV_THOLE_shop_NODES", "\"deny_delete\":true", "\"deny_delete\":false", "deny_delete false, but true"},
    {"THOLE_shop_HIST_0", "\"deny_purge\":true", "\"deny_purge\":false", "deny_purge"},
    {"KV_THOLE_shop_NODES", "\"allow_rollup_hdrs\":true", "\"allow_rollup_hdrs\":false", "allow_rollup_hdrs"},
    {"THOLE_shop_HIST_0", "\"allow_direct\":true", "\"allow_direct\":false", ""},
    {"THOLE_shop_HIST_0", "\"num_replicas\":1", "\"num_replicas\":3", "num_replicas 3, but 1 is needed"},
    {"THOLE_shop_HIST_0", "\"num_replicas\":1", "\"num_replicas\":0", "but a number is needed"},
    {"THOLE_shop_HIST_0", "\"num_replicas\":1", "\"num_replicas\":101", "but a number is needed"},
    {"THOLE_shop_HIST_0", "\"name\":", "\"num_replicas\":7,\"name\":", "num_replicas 7"},
    {"$KV.THOLE_shop_CONFIG.partitions", "1", "0", "but a positive number is needed"},
    {"$KV.THOLE_shop_CONFIG.partitions", "1", "2", "has 2 partitions, 1 were asked for"},
    {"$KV.THOLE_shop_CONFIG.partitions", "1", "99999999", "at most"},
    {"$KV.THOLE_shop_CONFIG.format", "2", "3", "upgrade this program"},
    {"$KV.THOLE_shop_CONFIG.format", "2", "1", "use another namespace"},
    {"$KV.THOLE_shop_SECRET.nonces", "", "x", "64 hexadecimal digits"},
    {"$KV.THOLE_shop_CONFIG.payload_max", "262144", "x", "payload_max of bucket THOLE_shop_CONFIG is \"x\""},
    {"$KV.THOLE_shop_CONFIG.payload_max", "262144", "999999999", "at most"},
    {"$KV.THOLE_shop_CONFIG.payload_max", "262144", "1000", ""},
};

static void test_what_is_there_is_another(void)
{
    for (size_t i = 0; i < ARRAY_LEN(fields); i++) {
        begin();
        CU_ASSERT_EQUAL(ensure(), THOLE_OK);
        change(fields[i].name, fields[i].from, fields[i].to);
        memset(&err, 0, sizeof err);
        bool const fits = ensure() == THOLE_OK;
        bool const told = strstr(err.text, fields[i].text) != NULL &&
                          (fields[i].name[0] == '$' || fits || strstr(err.text, fields[i].name) != NULL);
        CHECK_STR(fields[i].to, fits ? "fits" : "refused", fields[i].text[0] == '\0' ? "fits" : "refused");
        CHECK_STR(fields[i].to, told ? "told" : err.text, "told");
    }
}

/* A stream of an earlier version loses its limit for each subject, or gets a subject; all else stays. */
static void test_an_earlier_version_is_brought_forward(void)
{
#define LIMIT "\"max_msgs_per_subject\":"
#define REFUSE "\"discard_new_per_subject\":"
#define IN "\"thole.shop.in.0.*.*.*\""
#define BY "\"thole.shop.in.0.*.*.*.by.*\""
    static const struct {
        const char *name, *made, *earlier, *now; /* `made` stands in a new one */
    } rows[] = {{"THOLE_shop_WORK", LIMIT "-1", LIMIT "1", LIMIT "-1"},
                {"THOLE_shop_WORK", LIMIT "-1", LIMIT "1," REFUSE "true", LIMIT "-1," REFUSE "false"},
                {"THOLE_shop_WORK", LIMIT "-1", REFUSE "true," LIMIT "1", REFUSE "false," LIMIT "-1"},
                {"THOLE_shop_IN_0", IN "," BY, IN, IN "," BY}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char now[CONFIG_BYTES + 64];
        begin();
        CU_ASSERT_EQUAL(ensure(), THOLE_OK);
        change(rows[i].name, rows[i].made, rows[i].now);
        (void)snprintf(now, sizeof now, "STREAM.UPDATE %s %s\n", rows[i].name, find(rows[i].name)->text);
        change(rows[i].name, rows[i].now, rows[i].earlier);
        play.log[0] = '\0', play.asked = 0;
        CU_ASSERT_EQUAL(ensure(), THOLE_OK);
        CHECK_STR("update", play.log, now);
        for (size_t k = 0, all = play.asked; k < all; k++) {
            change(rows[i].name, rows[i].now, rows[i].earlier);
            play.asked = 0, play.fail_at = k, play.status = THOLE_UNAVAILABLE;
            CU_ASSERT_EQUAL(ensure(), THOLE_UNAVAILABLE);
            play.fail_at = NEVER;
            CU_ASSERT_EQUAL(ensure(), THOLE_OK);
        }
    }
}

static void test_options(void)
{
    static const struct {
        struct topology_options options;
        thole_status status;
        struct topology made;
    } rows[] = {{{.partitions = 0},
                 THOLE_OK,
                 {.partitions = 8, .replicas = 1, .nodes_ttl_ms = 10000, .payload_max = 262144}},
                {{.partitions = 2, .replicas = 3, .nodes_ttl_ms = 1000, .payload_max = 1000},
                 THOLE_OK,
                 {.partitions = 2, .replicas = 3, .nodes_ttl_ms = 1000, .payload_max = 1000}},
                {{.partitions = 1, .replicas = 5},
                 THOLE_OK,
                 {.partitions = 1, .replicas = 5, .nodes_ttl_ms = 10000, .payload_max = 262144}},
                {{.replicas = 2}, THOLE_INVALID, {.partitions = 0}},
                {{.replicas = 4}, THOLE_INVALID, {.partitions = 0}},
                {{.replicas = 6}, THOLE_INVALID, {.partitions = 0}},
                {{.nodes_ttl_ms = 999}, THOLE_INVALID, {.partitions = 0}},
                {{.partitions = 100000}, THOLE_INVALID, {.partitions = 0}},
                {{.partitions = 1, .payload_max = 900000000}, THOLE_CORRUPT, {.partitions = 0}}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct topology got = {.partitions = 0};
        begin();
        CU_ASSERT_EQUAL(ensure_with(rows[i].options, &got), rows[i].status);
        CU_ASSERT_TRUE(same(&got, &rows[i].made));
    }
    begin();
    struct topology got;
    struct topology_options const bad = {.ns = "a b"};
    CU_ASSERT_EQUAL(topology_ensure(NULL, &bad, &got, &err), THOLE_INVALID);
    CU_ASSERT_EQUAL(topology_read(NULL, "a b", &got, &err), THOLE_INVALID);
    CU_ASSERT_EQUAL(play.asked, 0);
}

/* Two engines begin at the same time; the first value written counts. */
static void test_rivals(void)
{
    struct topology topology;
    begin();
    play.rival = "1";
    CU_ASSERT_EQUAL(ensure_with((struct topology_options){.payload_max = 1}, &topology), THOLE_OK);
    CU_ASSERT_TRUE(topology.partitions == 1 && topology.payload_max == 1);
    begin();
    play.rival = "1";
    CU_ASSERT_EQUAL(ensure_with((struct topology_options){.partitions = 2}, &topology), THOLE_INVALID);
    begin();
    play.fail_at = 2; /* making the first bucket: another engine makes it otherwise */
    play.answer = "{\"type\":\"x\",\"error\":{\"code\":400,\"err_code\":10058,\"description\":\"in use\"}}";
    CU_ASSERT_EQUAL(ensure(), THOLE_UNAVAILABLE);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "is being made by another engine: try again"));
    begin();
    play.fail_at = 5; /* making the number of partitions */
    play.answer = "{\"error\":{\"code\":503,\"err_code\":10999,\"description\":\"later\"}}";
    CU_ASSERT_EQUAL(ensure(), THOLE_UNAVAILABLE);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "write to $KV.THOLE_shop_CONFIG.partitions: the server says: "));
    begin();
    play.fail_at = 5;
    play.answer = "{\"stream\":\"x\",\"seq\":1}";
    CU_ASSERT_EQUAL(ensure(), THOLE_UNAVAILABLE);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "was written and is not there: try again"));
}

static void test_no_namespace(void)
{
    static const char *const keys[] = {"$KV.THOLE_shop_CONFIG.partitions", "$KV.THOLE_shop_CONFIG.format",
                                       "KV_THOLE_shop_NODES", "KV_THOLE_shop_CONFIG"};
    struct topology topology;
    begin();
    CU_ASSERT_EQUAL(topology_read(NULL, "shop", &topology, &err), THOLE_NOT_FOUND);
    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        begin();
        CU_ASSERT_EQUAL(ensure(), THOLE_OK);
        forget(keys[i]);
        CU_ASSERT_EQUAL(topology_read(NULL, "shop", &topology, &err), THOLE_NOT_FOUND);
        CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "start an engine for it first"));
    }
    begin();
    CU_ASSERT_EQUAL(ensure(), THOLE_OK);
    forget("$KV.THOLE_shop_CONFIG.payload_max");
    CU_ASSERT_EQUAL(topology_read(NULL, "shop", &topology, &err), THOLE_OK);
    CU_ASSERT_EQUAL(topology.payload_max, 262144);
}

#define FAILS(http, code, text)                                                                              \
    "{\"type\":\"x\",\"error\":{\"code\":" #http ",\"err_code\":" #code ",\"description\":\"" text "\"}}"
/* What the API's errors come to, and answers that are none. */
static void test_errors(void)
{
    static const struct {
        const char *answer;
        thole_status status;
        const char *text;
    } rows[] = {
        {FAILS(503, 1, "busy"), THOLE_UNAVAILABLE, "busy (1)"},
        {FAILS(500, 10008, "no leader"), THOLE_UNAVAILABLE, "no leader (10008)"},
        {FAILS(500, 10009, "x"), THOLE_UNAVAILABLE, "x (10009)"},
        {FAILS(500, 10012, "no store"), THOLE_UNAVAILABLE, "no store (10012)"},
        {FAILS(500, 10104, "no store"), THOLE_UNAVAILABLE, "no store (10104)"},
        {FAILS(500, 10049, "no disk"), THOLE_UNAVAILABLE, "no disk (10049)"},
        {FAILS(500, 10052, "wrong"), THOLE_INVALID, "wrong (10052)"},
        {FAILS(400, 10023, "no room"), THOLE_INVALID, "no room (10023)"},
        {FAILS(503, 10076, "off"), THOLE_UNSUPPORTED, "JetStream is off"},
        {FAILS(503, 10039, "off"), THOLE_UNSUPPORTED, "JetStream is off"},
        {"{\"type\":\"x\",\"error\":{}}", THOLE_INVALID, " (0)"},
        {"{}", THOLE_CORRUPT, "INFO : the answer is not one of JetStream's"},
        {"", THOLE_CORRUPT, "not one of JetStream's"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        begin();
        play.fail_at = 0;
        play.answer = rows[i].answer;
        CU_ASSERT_EQUAL(ensure(), rows[i].status);
        CHECK_STR(rows[i].answer, strstr(err.text, rows[i].text) != NULL ? "told" : err.text, "told");
    }
    begin();
    play.fail_at = 0;
    play.status = THOLE_UNAVAILABLE;
    play.no_jetstream = true;
    CU_ASSERT_EQUAL(ensure(), THOLE_UNSUPPORTED);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "JetStream is off"));
    begin();
    CU_ASSERT_EQUAL(ensure(), THOLE_OK);
    play.asked = 0;
    play.fail_at = 1;
    play.answer = "{\"type\":\"x\"}";
    CU_ASSERT_EQUAL(ensure(), THOLE_CORRUPT);
    CU_ASSERT_PTR_NOT_NULL(
        strstr(err.text, "stream KV_THOLE_shop_CONFIG: the server's answer has no config"));
}

/* ---- the consumer of a queue ---- */

#define CONSUMER(action, lease, limit)                                                                       \
    "CONSUMER.CREATE THOLE_shop_WORK.q_mail.thole.shop.work.mail.> {\"stream_name\":\"THOLE_shop_WORK\","    \
    "\"action\":\"" action "\",\"config\":{\"durable_name\":\"q_mail\",\"name\":\"q_mail\","                 \
    "\"filter_subject\":\"thole.shop.work.mail.>\",\"deliver_policy\":\"all\",\"replay_policy\":"            \
    "\"instant\","                                                                                           \
    "\"ack_policy\":\"explicit\",\"ack_wait\":" lease                                                        \
    "000000000,\"max_deliver\":-1,\"max_ack_pending\":" limit ",\"max_waiting\":4096,\"num_replicas\":0}}\n"
#define queue_lease(lease, delivered)                                                                        \
    topology_queue_lease(NULL, "shop", THOLE_STR("mail"), lease, delivered, &err)
#define LIMITED(limit) "put $KV.THOLE_shop_CONFIG.queue_mail " limit "\n"
#define MAIL "THOLE_shop_WORK.q_mail"

static thole_status ensure_queue(uint64_t lease_ms, uint64_t *ret_lease_ms, bool *ret_anew)
{
    return topology_ensure_queue(NULL, "shop", THOLE_STR("mail"), lease_ms, ret_lease_ms, ret_anew, &err);
}

static void test_queue_made(void)
{
    uint64_t lease_ms = 0, delivered = 9;
    bool anew = false;
    begin();
    CU_ASSERT_EQUAL(queue_lease(&lease_ms, &delivered), THOLE_OK);
    CU_ASSERT_TRUE(lease_ms == 0 && delivered == 0 && ensure_queue(0, &lease_ms, &anew) == THOLE_OK);
    CHECK_STR("made", play.log, CONSUMER("create", "30", "100000"));
    CU_ASSERT_TRUE(anew && lease_ms == 30000);
    play.log[0] = '\0';
    lease_ms = 0;
    CU_ASSERT_EQUAL(ensure_queue(30000, &lease_ms, &anew), THOLE_OK);
    CHECK_STR("it is there", play.log, "");
    CU_ASSERT_TRUE(!anew && lease_ms == 30000);
    lease_ms = 0;
    CU_ASSERT_TRUE(ensure_queue(0, &lease_ms, NULL) == THOLE_OK && lease_ms == 30000);
    CU_ASSERT_TRUE(queue_lease(&lease_ms, &delivered) == THOLE_OK && delivered == 7);
    uint64_t *const n = &lease_ms; /* the server says nothing of them */
    CU_ASSERT_TRUE(topology_queue_depth(NULL, "shop", THOLE_STR("mail"), n, n, &err) == THOLE_OK && *n == 0);
    CU_ASSERT_EQUAL(ensure_queue(31000, &lease_ms, &anew), THOLE_INVALID);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "has ack_wait 30s, but 31s is needed"));
    CU_ASSERT_EQUAL(ensure_queue(999, &lease_ms, &anew), THOLE_INVALID);
    begin();
    CU_ASSERT_EQUAL(ensure_queue(1000, &lease_ms, &anew), THOLE_OK);
    CHECK_STR("the shortest lease", play.log, CONSUMER("create", "1", "100000"));
    CU_ASSERT_EQUAL(lease_ms, 1000);
}

static void test_queue_is_ahead(void)
{
    static const struct {
        uint64_t delivered, last;
        bool anew;
    } rows[] = {{7, 7, false}, {0, 0, false}, {8, 7, true}, {7, 9, false}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        uint64_t lease_ms = 0;
        bool anew = false;
        begin();
        CU_ASSERT_EQUAL(ensure_queue(20000, &lease_ms, NULL), THOLE_OK);
        play.log[0] = '\0';
        play.delivered = rows[i].delivered;
        play.last = rows[i].last;
        CU_ASSERT_EQUAL(ensure_queue(0, &lease_ms, &anew), THOLE_OK);
        CU_ASSERT_EQUAL(anew, rows[i].anew);
        CU_ASSERT_EQUAL(lease_ms, 20000); /* the lease stays, also of one that is made anew */
        CHECK_STR("made", play.log,
                  rows[i].anew ? "delete " MAIL " \n" CONSUMER("create", "20", "100000") : "");
    }
}

static void test_queue_limit(void)
{
    uint64_t limit = 7, lease_ms;
    begin();
    CU_ASSERT_EQUAL(topology_queue_limit(NULL, "shop", THOLE_STR("mail"), &limit, &err), THOLE_OK);
    CU_ASSERT_EQUAL(limit, 0);
    CU_ASSERT_EQUAL(topology_limit_queue(NULL, "shop", THOLE_STR("mail"), 5, &err), THOLE_OK);
    CHECK_STR("before the first worker", play.log, LIMITED("5"));
    CU_ASSERT_EQUAL(topology_queue_limit(NULL, "shop", THOLE_STR("mail"), &limit, &err), THOLE_OK);
    CU_ASSERT_EQUAL(limit, 5);
    CU_ASSERT_EQUAL(ensure_queue(0, &lease_ms, NULL), THOLE_OK);
    CHECK_STR("which makes it so", play.log, LIMITED("5") CONSUMER("create", "30", "5"));
    play.log[0] = '\0';
    CU_ASSERT_EQUAL(topology_limit_queue(NULL, "shop", THOLE_STR("mail"), 5, &err), THOLE_OK);
    CHECK_STR("as it is", play.log, LIMITED("5"));
    play.log[0] = '\0';
    CU_ASSERT_EQUAL(topology_limit_queue(NULL, "shop", THOLE_STR("mail"), 100000, &err), THOLE_OK);
    CHECK_STR("at most", play.log, LIMITED("100000") CONSUMER("update", "30", "100000"));
    play.log[0] = '\0';
    CU_ASSERT_EQUAL(topology_limit_queue(NULL, "shop", THOLE_STR("mail"), 1, &err), THOLE_OK);
    CU_ASSERT_EQUAL(topology_limit_queue(NULL, "shop", THOLE_STR("mail"), 0, &err), THOLE_OK);
    CHECK_STR("lifted", play.log,
              LIMITED("1") CONSUMER("update", "30", "1") LIMITED("0") CONSUMER("update", "30", "100000"));
    CU_ASSERT_EQUAL(topology_limit_queue(NULL, "shop", THOLE_STR("mail"), 100001, &err), THOLE_INVALID);
    /* written while no worker looked */
    play.log[0] = '\0';
    keep_text("$KV.THOLE_shop_CONFIG.queue_mail", "9");
    CU_ASSERT_EQUAL(ensure_queue(0, &lease_ms, NULL), THOLE_OK);
    CHECK_STR("settled", play.log, CONSUMER("update", "30", "9"));
    keep_text("$KV.THOLE_shop_CONFIG.queue_mail", "");
    CU_ASSERT_EQUAL(topology_queue_limit(NULL, "shop", THOLE_STR("mail"), &limit, &err), THOLE_OK);
    CU_ASSERT_EQUAL(limit, 0);
    keep_text("$KV.THOLE_shop_CONFIG.queue_mail", "many");
    CU_ASSERT_EQUAL(topology_queue_limit(NULL, "shop", THOLE_STR("mail"), &limit, &err), THOLE_CORRUPT);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "queue_mail is \"many\", but a number is needed"));
}

/* Without a limit a consumer that somebody else made may hold any that is large. */
static void test_queue_of_somebody_else(void)
{
    static const struct {
        const char *from, *to, *text, *update;
    } rows[] = {
        {"\"explicit\"", "\"all\"", "has ack_policy \"all\", but explicit is needed", NULL},
        {"\"deliver_policy\":\"all\"", "\"deliver_policy\":\"new\"", "but all is needed", NULL},
        {"\"instant\"", "\"original\"", "but instant is needed", NULL},
        {"work.mail.>", "work.>", "but thole.shop.work.mail.> is needed", NULL},
        {"{", "{\"deliver_subject\":\"x\",", "has deliver_subject \"x\", but  is needed", NULL},
        {"{", "{\"backoff\":[1],", "but none is needed", NULL},
        {"\"max_deliver\":-1", "\"max_deliver\":5", "has max_deliver 5, but no limit is needed", NULL},
        {"\"max_deliver\":-1", "\"max_deliver\":\"x\"", "but no limit is needed", NULL},
        {"\"max_deliver\":-1,", "", "", NULL},
        {"\"max_ack_pending\":100000", "\"max_ack_pending\":\"x\"", "but a number is needed", NULL},
        {"\"ack_wait\":30000000000", "\"ack_wait\":999999", "but a time is needed", NULL},
        {"\"ack_wait\":30000000000,", "", "but a time is needed", NULL},
        {"\"max_ack_pending\":100000", "\"max_ack_pending\":1000", "", NULL},
        {"\"max_ack_pending\":100000", "\"max_ack_pending\":-1", "", NULL},
        {"\"max_ack_pending\":100000", "\"max_ack_pending\":999", "", CONSUMER("update", "30", "100000")},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        uint64_t lease_ms = 0;
        begin();
        CU_ASSERT_EQUAL(ensure_queue(0, &lease_ms, NULL), THOLE_OK);
        play.log[0] = '\0';
        change(MAIL, rows[i].from, rows[i].to);
        bool const fits = ensure_queue(0, &lease_ms, NULL) == THOLE_OK;
        CHECK_STR(rows[i].to, fits ? "fits" : "refused", rows[i].text[0] == '\0' ? "fits" : "refused");
        CHECK_STR(rows[i].to, strstr(err.text, rows[i].text) != NULL ? "told" : err.text, "told");
        CHECK_STR(rows[i].to, play.log, rows[i].update == NULL ? "" : rows[i].update);
    }
}

/* Each request of a worker's start, and of a change of the limit, fails once. */
static void test_each_request_of_a_queue_fails(void)
{
    for (size_t way = 0; way < 4; way++)
        for (size_t i = 0;; i++) {
            uint64_t lease_ms = 0;
            bool anew = true;
            begin();
            if (way > 0)
                CU_ASSERT_EQUAL(ensure_queue(0, &lease_ms, NULL), THOLE_OK);
            play.delivered = way == 2 ? 1 : 0;
            if (way == 1)
                keep_text("$KV.THOLE_shop_CONFIG.queue_mail", "9");
            play.asked = 0;
            play.fail_at = i;
            play.status = THOLE_UNAVAILABLE;
            thole_status const status = way < 3
                                            ? ensure_queue(0, &lease_ms, &anew)
                                            : topology_limit_queue(NULL, "shop", THOLE_STR("mail"), 3, &err);
            if (play.asked <= i) {
                CU_ASSERT_EQUAL(status, THOLE_OK);
                CU_ASSERT_TRUE(i >= 4);
                break;
            }
            CU_ASSERT_EQUAL(status, THOLE_UNAVAILABLE);
            CU_ASSERT_EQUAL(play.asked, i + 1);
            play.fail_at = NEVER;
            CU_ASSERT_EQUAL(ensure_queue(0, &lease_ms, &anew), THOLE_OK);
            CU_ASSERT_EQUAL(lease_ms, 30000);
        }
    begin();
    play.fail_at = 0;
    play.answer = "{\"error\":{\"code\":400,\"description\":\"full\"}}";
    CU_ASSERT_EQUAL(topology_limit_queue(NULL, "shop", THOLE_STR("mail"), 3, &err), THOLE_UNAVAILABLE);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "write to $KV.THOLE_shop_CONFIG.queue_mail: the server says: "));
}

static const struct thole_test tests[] = {
    {"made", test_made},
    {"each request fails", test_each_request_fails},
    {"what is there is another", test_what_is_there_is_another},
    {"what an earlier version has made is brought forward", test_an_earlier_version_is_brought_forward},
    {"options", test_options},
    {"rivals", test_rivals},
    {"no namespace", test_no_namespace},
    {"errors", test_errors},
    {"a queue, made", test_queue_made},
    {"a queue that is ahead", test_queue_is_ahead},
    {"a queue's limit", test_queue_limit},
    {"a queue of somebody else", test_queue_of_somebody_else},
    {"each request of a queue fails", test_each_request_of_a_queue_fails},
};
THOLE_TEST_MAIN("topology_made", tests)
