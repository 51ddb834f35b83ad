#include "wrap_topology.h"
#include "api.h"
#include "jscan.h"
#include "link.h"
#include "reader.h"

struct topology_play play;

thole_error play_err;

void play_check_done(thole_status status)
{
    CHECK_STR("done", status == THOLE_OK ? "" : play_err.text, "");
}

static void note(const char *what, const char *name, thole_slice text)
{
    size_t const at = strlen(play.log);
    (void)snprintf(play.log + at, sizeof play.log - at, "%s %s %.*s\n", what, name, THOLE_FMT(text));
}

struct thing *play_find(const char *name)
{
    for (size_t i = 0; i < play.things_len; i++)
        if (strcmp(play.things[i].name, name) == 0)
            return &play.things[i];
    return NULL;
}

static void keep(const char *name, thole_slice text)
{
    struct thing *thing = play_find(name);
    if (play.forgets)
        return;
    CU_ASSERT_TRUE_FATAL(thing != NULL || play.things_len < THINGS_MAX);
    if (thing == NULL)
        thing = &play.things[play.things_len++];
    CU_ASSERT_TRUE_FATAL(text.len < CONFIG_BYTES);
    (void)snprintf(thing->name, sizeof thing->name, "%s", name);
    (void)snprintf(thing->text, sizeof thing->text, "%.*s", THOLE_FMT(text));
}

void play_keep_text(const char *name, const char *text)
{
    keep(name, thole_slice_from(text));
}

void play_forget(const char *name)
{
    struct thing *const thing = play_find(name);
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
    const struct thing *const thing = play_find(name);
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
        if (play_find(target) == NULL)
            refuse(ret, API_CONSUMER_NOT_FOUND);
        else
            buf_text(ret, made);
        play_forget(target);
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

const char rivals_key[] = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";

#define is_secret(subject) (strstr(subject, "_SECRET.") != NULL)
#define is_id(subject) (strstr(subject, "_CONFIG.identity") != NULL)
#define is_mark(subject) (strstr(subject, "_CONFIG.store_") != NULL)
#define RIVALS_ID "01234567-89ab-4cde-8f01-23456789abcd"

/* Keys that are made unless they are there. */
thole_status __wrap_connection_request_with(struct connection *connection, const char *subject,
                                            const struct header *headers, size_t headers_len,
                                            thole_slice body, struct buf *ret, thole_error *reterr)
{
    thole_status status;
    (void)connection;
    CU_ASSERT_EQUAL_FATAL(headers_len, 1);
    CHECK_STR("only if it is not there", headers[0].key, "Nats-Expected-Last-Subject-Sequence");
    bool const again = is_mark(subject) && play_find(subject) != NULL; /* the configuration read is changed */
    CU_ASSERT_TRUE(thole_slice_equal(headers[0].value, again ? THOLE_STR("1") : THOLE_STR("0")));
    if (fails(ret, &status, reterr))
        return status;
    if (again)
        play_forget(subject);
    if (play.rival != NULL)
        play_keep_text(subject, is_secret(subject)                         ? rivals_key
                                : is_id(subject)                           ? RIVALS_ID
                                : strstr(subject, "CONFIG.store_") != NULL ? "{\"made\":true,\"last\":0}"
                                                                           : play.rival);
    if (play_find(subject) != NULL) {
        buf_text(ret,
                 "{\"error\":{\"code\":400,\"err_code\":10071,\"description\":\"wrong last sequence\"}}");
        return THOLE_OK;
    }
    CU_ASSERT_TRUE(!is_secret(subject) || body.len == 2 * NONCE_KEY_BYTES);
    note("make", subject, is_secret(subject) || is_id(subject) ? THOLE_STR("a random key") : body);
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
    if (fails(NULL, &status, reterr))
        return status;
    if (strchr(subject, '>') != NULL) { /* how far does it reach? */
        *ret_sequence = play.last;
        return play_find(stream) != NULL ? THOLE_OK : THOLE_NOT_FOUND;
    }
    CHECK_STR("bucket", stream, is_secret(subject) ? "KV_THOLE_shop_SECRET" : "KV_THOLE_shop_CONFIG");
    const struct thing *const thing = play_find(subject);
    *ret_sequence = thing != NULL;
    if (thing != NULL)
        buf_text(ret_body, thing->text);
    return THOLE_OK;
}

/* A store that not every namespace has. */
static bool is_optional(const char *stream)
{
    static const char *const kinds[] = {"_HOLDS", "_BINDINGS", "_AUDIT", "_RESTORED", "_EVENTS"};
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
        if (strstr(stream, kinds[i]) != NULL)
            return true;
    return false;
}

thole_status __wrap_stream_bounds(struct connection *connection, const char *stream,
                                  struct stream_bounds *ret, thole_error *reterr)
{
    thole_status status;
    (void)connection;
    if (fails(NULL, &status, reterr))
        return status;
    *ret = (struct stream_bounds){.first = 1, .last = strstr(stream, "_HIST_") != NULL ? 0 : play.last};
    return is_optional(stream) && play_find(stream) == NULL ? THOLE_NOT_FOUND : THOLE_OK;
}

void play_begin(void)
{
    memset(&play, 0, sizeof play);
    memset(&play_err, 0, sizeof play_err);
    play.version = "2.10.27";
    play.fail_at = NEVER;
}

thole_status play_ensure_with(struct topology_options options, struct topology *ret)
{
    options.ns = "shop";
    return topology_ensure(NULL, &options, ret, &play_err);
}

thole_status play_ensure(void)
{
    struct topology topology;
    return play_ensure_with((struct topology_options){.partitions = 1}, &topology);
}

/* Replaces the first @p from in the configuration of @p name. */
/* Concurrent steps are done one after the other. */
int __wrap_pthread_create(pthread_t *ret, const pthread_attr_t *attributes, void *(*begin)(void *), void *arg)
{
    (void)attributes;
    memset(ret, 0, sizeof *ret);
    (void)begin(arg);
    return 0;
}

int __wrap_pthread_join(pthread_t thread, void **ret)
{
    (void)thread, (void)ret;
    return 0;
}

void play_change(const char *name, const char *from, const char *to)
{
    struct thing *const thing = play_find(name);
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

const struct topology_field topology_fields[] = {
    {"THOLE_shop_HIST_0", "{", "{\"mirror\":{\"name\":\"x\"},", "mirror"},
    {"THOLE_shop_HIST_0", "{", "{\"mirror\":null,", ""},
    {"THOLE_shop_HIST_0", "{", "{\"sources\":[{}],", "sources"},
    {"THOLE_shop_HIST_0", "{", "{\"subject_transform\":{},", "subject_transform"},
    {"THOLE_shop_HIST_0", "{", "{\"republish\":{\"src\":\">\"},", "republish"},
    {"KV_THOLE_shop_CONFIG", "{", "{\"republish\":{\"src\":\">\"},", "republish"},
    {"THOLE_shop_IN_0", "{", "{\"allow_msg_schedules\":true,",
     "allow_msg_schedules true, but false is needed"},
    {"THOLE_shop_IN_0", "{", "{\"allow_msg_ttl\":true,", "allow_msg_ttl true, but false is needed"},
    {"THOLE_shop_IN_0", "{", "{\"allow_msg_ttl\":false,", ""},
    {"THOLE_shop_IN_0", "{", "{\"allow_msg_counter\":true,", "allow_msg_counter true, but false is needed"},
    {"THOLE_shop_HIST_0", "{", "{\"persist_mode\":\"async\",",
     "persist_mode \"async\", but default is needed"},
    {"THOLE_shop_HIST_0", "{", "{\"persist_mode\":\"default\",", ""},
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
const size_t topology_fields_len = ARRAY_LEN(topology_fields);
