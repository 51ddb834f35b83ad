/* The specifications by which a namespace's streams, buckets and consumers are made, and the result of each
 * request that fails or finds something else; JetStream is played: it keeps the given configurations. */
#include "api.h"
#include "jscan.h"
#include "link.h"
#include "reader.h"
#include "thole_cunit.h"
#include "topology.h"
#include "wrap_one_attempt.h"
#include "wrap_topology.h"
#include <stdlib.h>

/* ---- tests ---- */

#define BUCKET(name, age, window)                                                                            \
    "STREAM.CREATE KV_THOLE_shop_" name " {\"name\":\"KV_THOLE_shop_" name                                   \
    "\",\"subjects\":[\"$KV.THOLE_shop_" name                                                                \
    ".>\"],\"retention\":\"limits\",\"storage\":\"file\",\"discard\":\"new\",\"num_replicas\":1,"            \
    "\"max_consumers\":-1,\"max_msgs\":-1,\"max_bytes\":-1,\"max_age\":" age                                 \
    ",\"max_msg_size\":-1,\"max_msgs_per_subject\":1,\"duplicate_window\":" window                           \
    ",\"allow_direct\":true,\"allow_rollup_hdrs\":true,\"deny_delete\":true,\"deny_purge\":false}\n"
#define ONCE(name)                                                                                           \
    "STREAM.CREATE KV_THOLE_shop_" name " {\"name\":\"KV_THOLE_shop_" name                                   \
    "\",\"subjects\":[\"$KV.THOLE_shop_" name                                                                \
    ".>\"],\"retention\":\"limits\",\"storage\":\"file\",\"discard\":\"new\",\"num_replicas\":1,"            \
    "\"max_consumers\":-1,\"max_msgs\":-1,\"max_bytes\":-1,\"max_age\":0,\"max_msg_size\":-1,"               \
    "\"max_msgs_per_subject\":1,\"discard_new_per_subject\":true,\"duplicate_window\":120000000000,"         \
    "\"allow_direct\":true,\"allow_rollup_hdrs\":true,\"deny_delete\":true,\"deny_purge\":false}\n"
#define STREAM(name, subjects, retention, discard, msgs, bytes, age, window, purge)                          \
    "STREAM.CREATE THOLE_shop_" name " {\"name\":\"THOLE_shop_" name "\",\"subjects\":[" subjects            \
    "],\"retention\":\"" retention "\",\"storage\":\"file\",\"discard\":\"" discard                          \
    "\",\"num_replicas\":1,\"max_consumers\":-1,\"max_msgs\":" msgs ",\"max_bytes\":" bytes                  \
    ",\"max_age\":" age ",\"max_msg_size\":-1,\"max_msgs_per_subject\":-1" window                            \
    ",\"allow_direct\":true,\"allow_rollup_hdrs\":false,\"deny_delete\":false,\"deny_purge\":" purge "}\n"
#define KEY(name, value) "make $KV.THOLE_shop_CONFIG." name " " value "\n"
#define WINDOW ",\"duplicate_window\":120000000000"

#define KEPT(name, subjects, each, rollup, deny_delete, deny_purge)                                          \
    "STREAM.CREATE " name " {\"name\":\"" name "\",\"subjects\":[\"" subjects                                \
    "\"],\"retention\":\"limits\",\"storage\":\"file\",\"discard\":\"new\",\"num_replicas\":1,"              \
    "\"max_consumers\":-1,\"max_msgs\":-1,\"max_bytes\":-1,\"max_age\":0,\"max_msg_size\":-1,"               \
    "\"max_msgs_per_subject\":" each ",\"allow_direct\":true,\"allow_rollup_hdrs\":" rollup                  \
    ",\"deny_delete\":" deny_delete ",\"deny_purge\":" deny_purge "}\n"
#define STORE(kind, each, rollup, deny_purge)                                                                \
    KEPT("KV_THOLE_shop_" kind, "$KV.THOLE_shop_" kind ".>", each, rollup, "true", deny_purge)
#define LOG(kind, token, deny_delete, deny_purge)                                                            \
    KEPT("THOLE_shop_" kind, "thole.shop." token ".>", "-1", "false", deny_delete, deny_purge)

static const char first[] = BUCKET("CONFIG", "0", "120000000000") KEY("partitions", "1") KEY(
    "identity", "a random key") KEY("payload_max", "262144") BUCKET("NODES", "10000000000", "10000000000")
    ONCE("SECRET") "make $KV.THOLE_shop_SECRET.nonces a random key\n" BUCKET("CRASHES", "0", "120000000000")
        STREAM("WORK", "\"thole.shop.work.>\"", "workqueue", "new", "-1", "-1", "0", "", "true")
            STREAM("REJECTED", "\"thole.shop.rejected.*\"", "limits", "old", "10000", "33554432",
                   "604800000000000", WINDOW, "false");
#define MARK(store) KEY("store_" store, "{\"made\":true,\"last\":0}")
static const char then[] = STORE("HOLDS", "64", "false", "true") MARK("holds")
    STORE("BINDINGS", "16", "true", "false") MARK("bindings") LOG("AUDIT", "audit", "true", "true")
        MARK("audit") LOG("RESTORED", "restored", "false", "false") MARK("restored")
            STREAM("IN_0", "\"thole.shop.in.0.*.*.*\",\"thole.shop.in.0.*.*.*.by.*\"", "limits", "new", "-1",
                   "-1", "0", WINDOW, "false")
                STREAM("HIST_0", "\"thole.shop.hist.0.*.*\",\"thole.shop.ctl.0.*\"", "limits", "new", "-1",
                       "-1", "0", "", "true") KEY("format", "2");

/* All that is made, in order: longer than a string literal may be. */
static const char *all_made(void)
{
    static char text[sizeof first + sizeof then];
    (void)snprintf(text, sizeof text, "%s%s", first, then);
    return text;
}

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
    play_begin();
    CU_ASSERT_EQUAL(play_ensure_with((struct topology_options){.partitions = 1}, &topology), THOLE_OK);
    CHECK_STR("made", play.log, all_made());
    CU_ASSERT_TRUE(same(&topology, &usual));
    CHECK_STR("namespace", topology.ns, "shop");
    play.log[0] = '\0';
    memset(&topology, 0, sizeof topology);
    CU_ASSERT_EQUAL(play_ensure_with((struct topology_options){.partitions = 0}, &topology), THOLE_OK);
    CHECK_STR("all is there", play.log, "");
    CU_ASSERT_TRUE(same(&topology, &usual));
    memset(&topology, 0, sizeof topology);
    CU_ASSERT_EQUAL(topology_read(NULL, "shop", &topology, &play_err), THOLE_OK);
    CHECK_STR("read", topology.ns, "shop");
    CU_ASSERT_TRUE(same(&topology, &usual));
}

/* The first line of what is made that was not; "": all was. The stores that can be made are made where
 * another one cannot: in any order. */
static const char *not_made(void)
{
    static char line[2000];
    for (const char *at = all_made(); *at != '\0'; at += strlen(line)) {
        (void)snprintf(line, sizeof line, "%.*s", (int)strcspn(at, "\n") + 1, at);
        if (strstr(play.log, line) == NULL)
            return line;
    }
    return "";
}

/* Each request fails once; the next engine's start makes the rest. */
static void test_each_request_fails(void)
{
    play_begin();
    CU_ASSERT_EQUAL(play_ensure(), THOLE_OK);
    size_t const all = play.asked;
    CU_ASSERT_TRUE(all > 20);
    for (size_t i = 0; i < all; i++) {
        play_begin();
        play.fail_at = i;
        play.status = THOLE_UNAVAILABLE;
        CU_ASSERT_EQUAL(play_ensure(), THOLE_UNAVAILABLE);
        CHECK_STR("why", play_err.text, "as the test says");
        CU_ASSERT(play.asked > i); /* the other stores are made, too */
        CU_ASSERT_TRUE(play_find("$KV.THOLE_shop_CONFIG.format") == NULL || i == all - 1);
        CU_ASSERT_EQUAL(play_ensure(), THOLE_OK);
        CU_ASSERT_EQUAL(strlen(play.log), strlen(all_made()));
        CHECK_STR("made in the end", not_made(), "");
    }
    play_begin();
    CU_ASSERT_EQUAL(play_ensure(), THOLE_OK);
    play.asked = 0;
    struct topology topology;
    CU_ASSERT_EQUAL(topology_read(NULL, "shop", &topology, &play_err), THOLE_OK);
    size_t const reads = play.asked;
    CU_ASSERT_EQUAL(reads, 6);
    for (size_t i = 0; i < reads; i++) {
        play.asked = 0;
        play.fail_at = i;
        play.status = THOLE_DENIED;
        CU_ASSERT_EQUAL(topology_read(NULL, "shop", &topology, &play_err), THOLE_DENIED);
        CU_ASSERT_EQUAL(play.asked, i + 1);
    }
}

static void test_what_is_there_is_another(void)
{
    for (size_t i = 0; i < topology_fields_len; i++) {
        play_begin();
        CU_ASSERT_EQUAL(play_ensure(), THOLE_OK);
        play_change(topology_fields[i].name, topology_fields[i].from, topology_fields[i].to);
        memset(&play_err, 0, sizeof play_err);
        bool const fits = play_ensure() == THOLE_OK;
        bool const told = strstr(play_err.text, topology_fields[i].text) != NULL &&
                          (topology_fields[i].name[0] == '$' || fits ||
                           strstr(play_err.text, topology_fields[i].name) != NULL);
        CHECK_STR(topology_fields[i].to, fits ? "fits" : "refused",
                  topology_fields[i].text[0] == '\0' ? "fits" : "refused");
        CHECK_STR(topology_fields[i].to, told ? "told" : play_err.text, "told");
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
        play_begin();
        CU_ASSERT_EQUAL(play_ensure(), THOLE_OK);
        play_change(rows[i].name, rows[i].made, rows[i].now);
        (void)snprintf(now, sizeof now, "STREAM.UPDATE %s %s\n", rows[i].name, play_find(rows[i].name)->text);
        play_change(rows[i].name, rows[i].now, rows[i].earlier);
        play.log[0] = '\0', play.asked = 0;
        CU_ASSERT_EQUAL(play_ensure(), THOLE_OK);
        CHECK_STR("update", play.log, now);
        for (size_t k = 0, all = play.asked; k < all; k++) {
            play_change(rows[i].name, rows[i].now, rows[i].earlier);
            play.asked = 0, play.fail_at = k, play.status = THOLE_UNAVAILABLE;
            CU_ASSERT_EQUAL(play_ensure(), THOLE_UNAVAILABLE);
            play.fail_at = NEVER;
            CU_ASSERT_EQUAL(play_ensure(), THOLE_OK);
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
        play_begin();
        CU_ASSERT_EQUAL(play_ensure_with(rows[i].options, &got), rows[i].status);
        CU_ASSERT_TRUE(same(&got, &rows[i].made));
    }
    play_begin();
    struct topology got;
    struct topology_options const bad = {.ns = "a b"};
    CU_ASSERT_EQUAL(topology_ensure(NULL, &bad, &got, &play_err), THOLE_INVALID);
    CU_ASSERT_EQUAL(topology_read(NULL, "a b", &got, &play_err), THOLE_INVALID);
    CU_ASSERT_EQUAL(play.asked, 0);
}

/* Two engines begin at the same time; the first value written counts. */
static void test_rivals(void)
{
    struct topology topology;
    play_begin();
    play.rival = "1";
    CU_ASSERT_EQUAL(play_ensure_with((struct topology_options){.payload_max = 1}, &topology), THOLE_OK);
    CU_ASSERT_TRUE(topology.partitions == 1 && topology.payload_max == 1);
    play_begin();
    play.rival = "1";
    CU_ASSERT_EQUAL(play_ensure_with((struct topology_options){.partitions = 2}, &topology), THOLE_INVALID);
    play_begin();
    play.fail_at = 4; /* making the first bucket: another engine makes it otherwise */
    play.answer = "{\"type\":\"x\",\"error\":{\"code\":400,\"err_code\":10058,\"description\":\"in use\"}}";
    CU_ASSERT_EQUAL(play_ensure(), THOLE_UNAVAILABLE);
    CU_ASSERT_PTR_NOT_NULL(strstr(play_err.text, "is being made by another engine: try again"));
    play_begin();
    play.fail_at = 7; /* making the number of partitions */
    play.answer = "{\"error\":{\"code\":503,\"err_code\":10999,\"description\":\"later\"}}";
    CU_ASSERT_EQUAL(play_ensure(), THOLE_UNAVAILABLE);
    CU_ASSERT_PTR_NOT_NULL(
        strstr(play_err.text, "write to $KV.THOLE_shop_CONFIG.partitions: the server says: "));
    play_begin();
    play.fail_at = 7;
    play.answer = "{\"stream\":\"x\",\"seq\":1}";
    CU_ASSERT_EQUAL(play_ensure(), THOLE_UNAVAILABLE);
    CU_ASSERT_PTR_NOT_NULL(strstr(play_err.text, "was written and is not there: try again"));
}

static void test_no_namespace(void)
{
    static const char *const keys[] = {"$KV.THOLE_shop_CONFIG.partitions", "$KV.THOLE_shop_CONFIG.format",
                                       "KV_THOLE_shop_NODES", "KV_THOLE_shop_CONFIG"};
    struct topology topology;
    play_begin();
    CU_ASSERT_EQUAL(topology_read(NULL, "shop", &topology, &play_err), THOLE_NOT_FOUND);
    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        play_begin();
        CU_ASSERT_EQUAL(play_ensure(), THOLE_OK);
        play_forget(keys[i]);
        CU_ASSERT_EQUAL(topology_read(NULL, "shop", &topology, &play_err), THOLE_NOT_FOUND);
        CU_ASSERT_PTR_NOT_NULL(strstr(play_err.text, "start an engine for it first"));
    }
    play_begin();
    CU_ASSERT_EQUAL(play_ensure(), THOLE_OK);
    play_forget("$KV.THOLE_shop_CONFIG.payload_max");
    CU_ASSERT_EQUAL(topology_read(NULL, "shop", &topology, &play_err), THOLE_OK);
    CU_ASSERT_EQUAL(topology.payload_max, 262144);
}

#define FAILS(http, code, text)                                                                              \
    "{\"type\":\"x\",\"error\":{\"code\":" #http ",\"err_code\":" #code ",\"description\":\"" text "\"}}"
/* The results of the API's errors, and of answers that are none. */
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
        play_begin();
        play.fail_at = 0;
        play.answer = rows[i].answer;
        CU_ASSERT_EQUAL(play_ensure(), rows[i].status);
        CHECK_STR(rows[i].answer, strstr(play_err.text, rows[i].text) != NULL ? "told" : play_err.text,
                  "told");
    }
    play_begin();
    play.fail_at = 0;
    play.status = THOLE_UNAVAILABLE;
    play.no_jetstream = true;
    CU_ASSERT_EQUAL(play_ensure(), THOLE_UNSUPPORTED);
    CU_ASSERT_PTR_NOT_NULL(strstr(play_err.text, "JetStream is off"));
    play_begin();
    CU_ASSERT_EQUAL(play_ensure(), THOLE_OK);
    play.asked = 0;
    play.fail_at = 1;
    play.answer = "{\"type\":\"x\"}";
    CU_ASSERT_EQUAL(play_ensure(), THOLE_CORRUPT);
    CU_ASSERT_PTR_NOT_NULL(
        strstr(play_err.text, "stream KV_THOLE_shop_CONFIG: the server's answer has no config"));
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
    topology_queue_lease(NULL, "shop", THOLE_STR("mail"), lease, delivered, &play_err)
#define LIMITED(limit) "put $KV.THOLE_shop_CONFIG.queue_mail " limit "\n"
#define MAIL "THOLE_shop_WORK.q_mail"

static thole_status ensure_queue(uint64_t lease_ms, uint64_t *ret_lease_ms, bool *ret_anew)
{
    return topology_ensure_queue(NULL, "shop", THOLE_STR("mail"), lease_ms, ret_lease_ms, ret_anew,
                                 &play_err);
}

static void test_queue_made(void)
{
    uint64_t lease_ms = 0, delivered = 9;
    bool anew = false;
    play_begin();
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
    CU_ASSERT_TRUE(topology_queue_depth(NULL, "shop", THOLE_STR("mail"), n, n, &play_err) == THOLE_OK &&
                   *n == 0);
    CU_ASSERT_EQUAL(ensure_queue(31000, &lease_ms, &anew), THOLE_INVALID);
    CU_ASSERT_PTR_NOT_NULL(strstr(play_err.text, "has ack_wait 30s, but 31s is needed"));
    CU_ASSERT_EQUAL(ensure_queue(999, &lease_ms, &anew), THOLE_INVALID);
    play_begin();
    CU_ASSERT_EQUAL(ensure_queue(1000, &lease_ms, &anew), THOLE_OK);
    CHECK_STR("the shortest lease", play.log, CONSUMER("create", "1", "100000"));
    CU_ASSERT_EQUAL(lease_ms, 1000);
    CU_ASSERT_EQUAL(ensure_queue(86400001, &lease_ms, &anew), THOLE_INVALID);
    CU_ASSERT_PTR_NOT_NULL(strstr(play_err.text, "too long, at most 86400000 are needed"));
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
        play_begin();
        CU_ASSERT_EQUAL(ensure_queue(20000, &lease_ms, NULL), THOLE_OK);
        play.log[0] = '\0';
        play.delivered = rows[i].delivered;
        play.last = rows[i].last;
        CU_ASSERT_EQUAL(ensure_queue(0, &lease_ms, &anew), THOLE_OK);
        CU_ASSERT_EQUAL(anew, rows[i].anew);
        CU_ASSERT_EQUAL(lease_ms, 20000); /* the lease stays, also for a consumer that is made again */
        CHECK_STR("made", play.log,
                  rows[i].anew ? "delete " MAIL " \n" CONSUMER("create", "20", "100000") : "");
    }
}

static void test_queue_limit(void)
{
    uint64_t limit = 7, lease_ms;
    play_begin();
    CU_ASSERT_EQUAL(topology_queue_limit(NULL, "shop", THOLE_STR("mail"), &limit, &play_err), THOLE_OK);
    CU_ASSERT_EQUAL(limit, 0);
    CU_ASSERT_EQUAL(topology_limit_queue(NULL, "shop", THOLE_STR("mail"), 5, &play_err), THOLE_OK);
    CHECK_STR("before the first worker", play.log, LIMITED("5"));
    CU_ASSERT_EQUAL(topology_queue_limit(NULL, "shop", THOLE_STR("mail"), &limit, &play_err), THOLE_OK);
    CU_ASSERT_EQUAL(limit, 5);
    CU_ASSERT_EQUAL(ensure_queue(0, &lease_ms, NULL), THOLE_OK);
    CHECK_STR("which makes it so", play.log, LIMITED("5") CONSUMER("create", "30", "5"));
    play.log[0] = '\0';
    CU_ASSERT_EQUAL(topology_limit_queue(NULL, "shop", THOLE_STR("mail"), 5, &play_err), THOLE_OK);
    CHECK_STR("as it is", play.log, LIMITED("5"));
    play.log[0] = '\0';
    CU_ASSERT_EQUAL(topology_limit_queue(NULL, "shop", THOLE_STR("mail"), 100000, &play_err), THOLE_OK);
    CHECK_STR("at most", play.log, LIMITED("100000") CONSUMER("update", "30", "100000"));
    play.log[0] = '\0';
    CU_ASSERT_EQUAL(topology_limit_queue(NULL, "shop", THOLE_STR("mail"), 1, &play_err), THOLE_OK);
    CU_ASSERT_EQUAL(topology_limit_queue(NULL, "shop", THOLE_STR("mail"), 0, &play_err), THOLE_OK);
    CHECK_STR("lifted", play.log,
              LIMITED("1") CONSUMER("update", "30", "1") LIMITED("0") CONSUMER("update", "30", "100000"));
    CU_ASSERT_EQUAL(topology_limit_queue(NULL, "shop", THOLE_STR("mail"), 100001, &play_err), THOLE_INVALID);
    CU_ASSERT_EQUAL(ensure_queue(0, &lease_ms, NULL), THOLE_OK);
    play.log[0] = '\0';
    CU_ASSERT_EQUAL(topology_lease_queue(NULL, "shop", THOLE_STR("mail"), 120000, &play_err), THOLE_OK);
    CHECK_STR("another lease", play.log,
              CONSUMER("update", "120", "100000") "put $KV.THOLE_shop_CONFIG.lease_mail 120000\n");
    CU_ASSERT_EQUAL(ensure_queue(0, &lease_ms, NULL), THOLE_OK);
    CU_ASSERT_EQUAL(lease_ms, 120000);
    CU_ASSERT_EQUAL(ensure_queue(30000, &lease_ms, NULL), THOLE_INVALID);
    CU_ASSERT_EQUAL(topology_lease_queue(NULL, "shop", THOLE_STR("mail"), 30000, &play_err), THOLE_OK);
    /* written while no worker looked */
    play.log[0] = '\0';
    play_keep_text("$KV.THOLE_shop_CONFIG.queue_mail", "9");
    CU_ASSERT_EQUAL(ensure_queue(0, &lease_ms, NULL), THOLE_OK);
    CHECK_STR("settled", play.log, CONSUMER("update", "30", "9"));
    play_keep_text("$KV.THOLE_shop_CONFIG.queue_mail", "");
    CU_ASSERT_EQUAL(topology_queue_limit(NULL, "shop", THOLE_STR("mail"), &limit, &play_err), THOLE_OK);
    CU_ASSERT_EQUAL(limit, 0);
    play_keep_text("$KV.THOLE_shop_CONFIG.queue_mail", "many");
    CU_ASSERT_EQUAL(topology_queue_limit(NULL, "shop", THOLE_STR("mail"), &limit, &play_err), THOLE_CORRUPT);
    CU_ASSERT_PTR_NOT_NULL(strstr(play_err.text, "queue_mail is \"many\", but a number is needed"));
}

/* Without a limit a foreign consumer may have any large one. */
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
        play_begin();
        CU_ASSERT_EQUAL(ensure_queue(0, &lease_ms, NULL), THOLE_OK);
        play.log[0] = '\0';
        play_change(MAIL, rows[i].from, rows[i].to);
        bool const fits = ensure_queue(0, &lease_ms, NULL) == THOLE_OK;
        CHECK_STR(rows[i].to, fits ? "fits" : "refused", rows[i].text[0] == '\0' ? "fits" : "refused");
        CHECK_STR(rows[i].to, strstr(play_err.text, rows[i].text) != NULL ? "told" : play_err.text, "told");
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
            play_begin();
            if (way > 0)
                CU_ASSERT_EQUAL(ensure_queue(0, &lease_ms, NULL), THOLE_OK);
            play.delivered = way == 2 ? 1 : 0;
            if (way == 1)
                play_keep_text("$KV.THOLE_shop_CONFIG.queue_mail", "9");
            play.asked = 0;
            play.fail_at = i;
            play.status = THOLE_UNAVAILABLE;
            thole_status const status =
                way < 3 ? ensure_queue(0, &lease_ms, &anew)
                        : topology_limit_queue(NULL, "shop", THOLE_STR("mail"), 3, &play_err);
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
    play_begin();
    play.fail_at = 0;
    play.answer = "{\"error\":{\"code\":400,\"description\":\"full\"}}";
    CU_ASSERT_EQUAL(topology_limit_queue(NULL, "shop", THOLE_STR("mail"), 3, &play_err), THOLE_UNAVAILABLE);
    CU_ASSERT_PTR_NOT_NULL(
        strstr(play_err.text, "write to $KV.THOLE_shop_CONFIG.queue_mail: the server says: "));
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
