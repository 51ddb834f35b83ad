/* The subjects that a role may use: present ones, absent ones, and that each occurs once. */
#include "nats_permissions.h"
#include "thole_cunit.h"
#include <stdlib.h>
#include <string.h>

enum { TEXT_BYTES = 400000 };

static struct {
    char text[TEXT_BYTES]; /* each subject followed by a blank, and one before all */
    size_t len, subjects;
} said;

static void say(void *arg, const char *subject)
{
    char own[600];
    (void)arg;
    (void)snprintf(own, sizeof own, " %s ", subject);
    if (strstr(said.text, own) != NULL)
        fprintf(stderr, "twice: %s\n", subject);
    CU_ASSERT_PTR_NULL(strstr(said.text, own));
    said.len += (size_t)snprintf(said.text + said.len, sizeof said.text - said.len, "%s ", subject);
    CU_ASSERT_FATAL(said.len < sizeof said.text);
    said.subjects++;
}

static thole_status ask(struct permission_wish wish, enum permission_side side, thole_error *reterr)
{
    static struct permissions permissions;
    if (wish.ns == NULL)
        wish.ns = "ns";
    if (wish.partitions == 0)
        wish.partitions = 2;
    said.len = (size_t)snprintf(said.text, sizeof said.text, " ");
    said.subjects = 0;
    THOLE_TRY(permissions_make(&wish, &permissions, reterr));
    permissions_each(&permissions, side, say, NULL);
    return THOLE_OK;
}

static bool has(const char *subject)
{
    char own[600];
    (void)snprintf(own, sizeof own, " %s ", subject);
    return strstr(said.text, own) != NULL;
}

struct row {
    struct permission_wish wish;
    enum permission_side side;
    const char *has[8];
    const char *lacks[10]; /* no subject holds this text */
};

static const struct row rows[] = {
    {{.roles = "client", .verbs = "start"},
     PERMISSION_PUBLISH,
     {"thole.ns.in.*.start.*.*", "thole.ns.in.*.start_event.*.*", "$JS.API.STREAM.MSG.GET.THOLE_ns_HIST_1"},
     {".control.", ".result.", ".event.", "CONSUMER", "SECRET", "HIST_2", "DELETE", "PURGE"}},
    {{.roles = "client", .verbs = "start,cancel,query", .orchestrations = "a,b", .actor = "a.b@c"},
     PERMISSION_PUBLISH,
     {"thole.ns.in.*.start.a.*.by.a%2Eb%40c", "thole.ns.in.*.start.b.*.by.a%2Eb%40c",
      "thole.ns.in.*.control.cancel.*.by.a%2Eb%40c", "thole.ns.query.*.*.*"},
     {"start.a.* ", "cancel.* ", "by.*", "query.*.*.*.by"}},
    {{.roles = "client", .verbs = "start,call", .actor = "{{name()}}"},
     PERMISSION_PUBLISH,
     {"thole.ns.in.*.start.*.*.by.{{name()}}", "thole.ns.call.*.by.{{name()}}"},
     {"start.*.* ", "call.* "}},
    {{.roles = "remote-client", .actor = "*"},
     PERMISSION_PUBLISH,
     {"thole.ns.gateway.client.start.*.by.*", "thole.ns.gateway.client.cancel.by.*"},
     {"start.* ", "cancel "}},
    {{.roles = "gateway,binder", .bound = "ORDERS"},
     PERMISSION_PUBLISH,
     {"thole.ns.in.*.start.*.*", "thole.ns.in.*.start.*.*.by.*", "thole.ns.in.*.control.terminate.*.by.*"},
     {"worker.*.by"}},
    {{.roles = "binder", .bound = "ORDERS"},
     PERMISSION_SUBSCRIBE,
     {"thole.ns.call.*", "thole.ns.call.*.by.*"},
     {NULL}},
    {{.roles = "client", .verbs = "start", .orchestrations = "a,b"},
     PERMISSION_PUBLISH,
     {"thole.ns.in.*.start.a.*", "thole.ns.in.*.start.b.*"},
     {"start.*", "start_event"}},
    {{.roles = "client", .verbs = "start", .orchestrations = "a,b", .events = "x,y"},
     PERMISSION_PUBLISH,
     {"thole.ns.in.*.start_event.a~x.*", "thole.ns.in.*.start_event.a~y.*", "thole.ns.in.*.start_event.b~x.*",
      "thole.ns.in.*.start_event.b~y.*"},
     {"start_event.*", ".event."}},
    {{.roles = "client", .verbs = "signal,query,cancel", .events = "x", .queries = "q"},
     PERMISSION_PUBLISH,
     {"thole.ns.in.*.event.x.*", "thole.ns.query.*.q.*", "thole.ns.in.*.control.cancel.*"},
     {"start", "terminate", "force"}},
    {{.roles = "client"},
     PERMISSION_SUBSCRIBE,
     {"_INBOX_ns_client.>", "thole.ns.event.*.*.*"},
     {"cancel", "work"}},
    {{.roles = "client", .inbox = "_INBOX.x"}, PERMISSION_SUBSCRIBE, {"_INBOX.x.>"}, {"_INBOX_client"}},
    {{.roles = "worker", .queues = "gpu"},
     PERMISSION_PUBLISH,
     {"thole.ns.in.*.result.worker.*", "$JS.ACK.THOLE_ns_WORK.q_gpu.>",
      "$JS.API.CONSUMER.MSG.NEXT.THOLE_ns_WORK.q_gpu"},
     {"q_default", "outside", "HIST", "SECRET", ".work.>", "STREAM.CREATE", "MSG.DELETE", "$KV"}},
    {{.roles = "worker"}, PERMISSION_PUBLISH, {"$JS.ACK.THOLE_ns_WORK.q_default.>"}, {"q_*"}},
    {{.roles = "engine", .partitions = 3},
     PERMISSION_PUBLISH,
     {"thole.ns.hist.*.*.*", "$JS.API.STREAM.CREATE.THOLE_ns_HIST_2", "$JS.API.STREAM.PURGE.THOLE_ns_IN_2",
      "$KV.THOLE_ns_SECRET.nonces"},
     {".start.", ".control.", ".result.", "STREAM.DELETE", "PURGE.THOLE_ns_HIST", "IN_3", "MSG.NEXT",
      "$JS.API.>"}},
    {{.roles = "engine,worker"},
     PERMISSION_PUBLISH,
     {"thole.ns.in.*.engine.*.*", "thole.ns.in.*.result.worker.*"},
     {".start."}},
    {{.roles = "auditor"},
     PERMISSION_PUBLISH,
     {"$JS.API.CONSUMER.CREATE.THOLE_ns_HIST_0.>", "$JS.API.STREAM.MSG.GET.THOLE_ns_REJECTED"},
     {"thole.ns.in.", "CONSUMER.CREATE.THOLE_ns_REJECTED", "CONSUMER.DELETE", "MSG.NEXT", "SECRET", "$KV",
      "$JS.ACK"}},
    {{.roles = "notary"},
     PERMISSION_PUBLISH,
     {"thole.ns.audit.*.*", "$JS.API.CONSUMER.CREATE.THOLE_ns_HIST_0.>"},
     {"STREAM.CREATE", "thole.ns.in.", "thole.ns.hist.", "CONSUMER.DELETE", "STREAM.UPDATE", "MSG.DELETE",
      "PURGE", "SECRET", "CONFIG.*"}},
    {{.roles = "archivist"},
     PERMISSION_PUBLISH,
     {"thole.ns.in.*.control.delete.*", "$JS.API.STREAM.MSG.GET.KV_THOLE_ns_HOLDS",
      "$JS.API.CONSUMER.CREATE.THOLE_ns_AUDIT.>"},
     {"force_delete", "thole.ns.hist.", "thole.ns.audit", "STREAM.UPDATE", "MSG.DELETE",
      "PURGE.THOLE_ns_HIST", "$KV.THOLE_ns_HOLDS", "CONFIG.*"}},
    {{.roles = "archivist", .verbs = "hold"},
     PERMISSION_PUBLISH,
     {"$KV.THOLE_ns_HOLDS.*", "$JS.API.STREAM.MSG.GET.KV_THOLE_ns_HOLDS"},
     {"thole.ns.", "STREAM.UPDATE", "MSG.DELETE", "PURGE", "CONFIG.*"}},
    {{.roles = "console", .verbs = "queue-limit", .queues = "gpu"},
     PERMISSION_PUBLISH,
     {"thole.ns.queues.gpu.settings"},
     {"$KV.", "q_*", "q_default", "thole.ns.in.", "CONSUMER.CREATE"}},
    {{.roles = "client", .verbs = "run"}, PERMISSION_PUBLISH, {"thole.ns.workers"}, {"CONSUMER.CREATE"}},
    {{.roles = "client", .verbs = "wait"}, PERMISSION_PUBLISH, {"thole.ns.workers"}, {"thole.ns.in."}},
    {{.roles = "client", .verbs = "console"},
     PERMISSION_PUBLISH,
     {"$JS.API.STREAM.MSG.GET.THOLE_ns_HIST_0", "$JS.API.CONSUMER.INFO.THOLE_ns_WORK.*", "thole.ns.workers"},
     {"thole.ns.in.", "thole.ns.query", "CONSUMER.DELETE", "CONFIG.queue"}},
    {{.roles = "client", .verbs = "console"},
     PERMISSION_SUBSCRIBE,
     {"thole.ns.event.*.*.*", "thole.ns.hist.>"},
     {"thole.ns.in."}},
    {{.roles = "console"},
     PERMISSION_PUBLISH,
     {"thole.ns.in.*.start.*.*", "$JS.API.STREAM.MSG.GET.THOLE_ns_REJECTED"},
     {"force_delete", "CONSUMER.CREATE"}},
    {{.roles = "service"},
     PERMISSION_PUBLISH,
     {"thole.ns.in.*.result.outside.*"},
     {"result.worker", "terminate", "CONSUMER"}},
    {{.roles = "gateway"},
     PERMISSION_PUBLISH,
     {"thole.ns.in.*.result.worker.*", "_INBOX_ns_remote-worker_default.>",
      "thole.ns.in.*.control.terminate.*"},
     {"gateway", "force_delete", "STREAM.CREATE", "thole.ns.hist", "thole.ns.cancel", "SECRET"}},
    {{.roles = "gateway"}, PERMISSION_SUBSCRIBE, {"thole.ns.gateway.>", "$SRV.>"}, {"thole.ns.query"}},
    {{.roles = "remote-worker", .queues = "gpu"},
     PERMISSION_PUBLISH,
     {"thole.ns.gateway.open.gpu", "thole.ns.gateway.session.>"},
     {"client", "$JS", "thole.ns.in.", "open.*"}},
    {{.roles = "binder", .bound = "ORDERS", .orchestrations = "checkout", .events = "paid"},
     PERMISSION_PUBLISH,
     {"thole.ns.in.*.start.checkout.*", "thole.ns.in.*.event.paid.*", "$JS.API.CONSUMER.CREATE.ORDERS.>",
      "$JS.ACK.ORDERS.>", "thole.ns.rejected.*"},
     {"start.*", "event.*", "CONSUMER.CREATE.*", "$KV.THOLE_ns_BINDINGS", "CONFIG.*", "control", "hist",
      "STREAM.NAMES"}},
    {{.roles = "client", .verbs = "events", .orchestrations = "checkout"},
     PERMISSION_SUBSCRIBE,
     {"thole.ns.event.checkout.*.ce.>", "_INBOX_ns_client.>"},
     {"event.*"}},
    {{.roles = "client", .verbs = "events"},
     PERMISSION_PUBLISH,
     {"$JS.API.CONSUMER.CREATE.THOLE_ns_EVENTS.>", "$JS.ACK.THOLE_ns_EVENTS.>"},
     {"thole.ns.event", "HIST", "STREAM.CREATE", "PURGE"}},
    {{.roles = "binder", .bound = "ORDERS"},
     PERMISSION_SUBSCRIBE,
     {"thole.ns.call.*", "thole.ns.event.*.*.*"},
     {"in."}},
    {{.roles = "client", .verbs = "call", .orchestrations = "checkout"},
     PERMISSION_PUBLISH,
     {"thole.ns.call.checkout"},
     {"thole.ns.in", "call.*", "HIST"}},
    {{.roles = "client", .verbs = "bind", .bound = "ORDERS"},
     PERMISSION_PUBLISH,
     {"$KV.THOLE_ns_BINDINGS.*", "$JS.API.STREAM.NAMES", "$JS.API.STREAM.INFO.ORDERS"},
     {"CONSUMER.CREATE", "MSG.NEXT", "$JS.ACK", "thole.ns.in"}},
    {{.roles = "remote-worker"}, PERMISSION_SUBSCRIBE, {"_INBOX_ns_remote-worker_default.>"}, {"thole."}},
    {{.roles = "remote-client", .orchestrations = "checkout"},
     PERMISSION_PUBLISH,
     {"thole.ns.gateway.client.start.checkout", "thole.ns.gateway.client.wait"},
     {"open", "session", "$JS", "thole.ns.in.", "start.*", "terminate", "start_event", "client.list"}},
    {{.roles = "remote-client", .orchestrations = "cart", .events = "add"},
     PERMISSION_PUBLISH,
     {"thole.ns.gateway.client.start_event.cart~add", "thole.ns.gateway.client.describe",
      "thole.ns.gateway.client.complete_activity"},
     {"start_event.*", "client.list"}},
};

static void test_rows(void)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        thole_error err = {.status = THOLE_OK};
        CU_ASSERT_EQUAL_FATAL(ask(rows[i].wish, rows[i].side, &err), THOLE_OK);
        for (size_t k = 0; k < 8 && rows[i].has[k] != NULL; k++) {
            if (!has(rows[i].has[k]))
                fprintf(stderr, "row %zu lacks %s\n", i, rows[i].has[k]);
            CU_ASSERT(has(rows[i].has[k]));
        }
        for (size_t k = 0; k < 10 && rows[i].lacks[k] != NULL; k++) {
            if (strstr(said.text, rows[i].lacks[k]) != NULL)
                fprintf(stderr, "row %zu has %s\n", i, rows[i].lacks[k]);
            CU_ASSERT_PTR_NULL(strstr(said.text, rows[i].lacks[k]));
        }
    }
}

/* No role has a pattern of NATS that reaches beyond its namespace. */
static void test_nothing_wide(void)
{
    static const char *const roles[] = {"engine",  "worker",        "client",        "auditor", "console",
                                        "service", "remote-worker", "remote-client", "notary",  "archivist"};
    static const char *const wide[] = {" > ",       " *.",          " $JS.> ",      " $JS.API.> ",
                                       " $KV.> ",   " thole.> ",    "thole.*",      " $SYS",
                                       " _INBOX.>", "THOLE_other_", " thole.ns.> ", "STREAM.DELETE"};
    for (size_t r = 0; r < sizeof roles / sizeof roles[0]; r++)
        for (int side = 0; side < 2; side++) {
            CU_ASSERT_EQUAL(ask((struct permission_wish){.roles = roles[r]}, side, NULL), THOLE_OK);
            CU_ASSERT(said.subjects > 0);
            for (size_t w = 0; w < sizeof wide / sizeof wide[0]; w++)
                CU_ASSERT_PTR_NULL(strstr(said.text, wide[w]));
        }
}

/* A user who may create a stream may have it copy any other one, or send its messages anywhere. */
static void test_engines_make_streams(void)
{
    static const char *const roles[] = {"worker",        "client",  "auditor",  "console",
                                        "service",       "gateway", "binder",   "remote-worker",
                                        "remote-client", "notary",  "archivist"};
    static const char verbs[] = "start,start-many,run,wait,show,history,export,diff,list,rejected,signal,"
                                "query,cancel,terminate,pause,"
                                "resume,retry,delete,force-delete,prune,complete,fail,nodes,partitions,"
                                "doctor,timer,queue,queue-limit,"
                                "replay,projections,audit,hold,archive,bind,console,call,events";
    CU_ASSERT_EQUAL(ask((struct permission_wish){.roles = "engine"}, PERMISSION_PUBLISH, NULL), THOLE_OK);
    CU_ASSERT(has("$JS.API.STREAM.CREATE.KV_THOLE_ns_HOLDS") && has("$JS.API.STREAM.CREATE.THOLE_ns_AUDIT") &&
              has("$JS.API.STREAM.CREATE.KV_THOLE_ns_BINDINGS") &&
              has("$JS.API.STREAM.CREATE.THOLE_ns_RESTORED"));
    for (size_t r = 0; r <= sizeof roles / sizeof roles[0]; r++) {
        bool const all = r == sizeof roles / sizeof roles[0];
        CU_ASSERT_EQUAL(ask((struct permission_wish){.roles = all ? "client" : roles[r],
                                                     .verbs = all ? verbs : NULL,
                                                     .queues = "gpu",
                                                     .bound = "ORDERS"},
                            PERMISSION_PUBLISH, NULL),
                        THOLE_OK);
        CU_ASSERT_PTR_NULL(strstr(said.text, "$KV.THOLE_ns_CONFIG")); /* a header empties all of a bucket */
        CU_ASSERT_PTR_NULL(strstr(said.text, "STREAM.CREATE"));
        CU_ASSERT_PTR_NULL(strstr(said.text, "STREAM.UPDATE"));
        CU_ASSERT_PTR_NULL(strstr(said.text, "STREAM.RESTORE"));
    }
}

static void test_refused(void)
{
    static const struct {
        struct permission_wish wish;
        const char *want;
    } bad[] = {
        {{.roles = "root"},
         "there is no role \"root\"; there are: engine, worker, client, auditor, console, "
         "service, gateway, binder, remote-worker, remote-client, notary, archivist"},
        {{.roles = "engine,"},
         "there is no role \"\"; there are: engine, worker, client, auditor, console, "
         "service, gateway, binder, remote-worker, remote-client, notary, archivist"},
        {{.roles = "binder"},
         "name the streams whose messages may be bound, with --stream: who may make a consumer of a stream "
         "may "
         "read all of it"},
        {{.roles = "worker", .verbs = "start"}, "an engine or a worker has no verbs"},
        {{.roles = "worker", .queues = "a.b"}, "queue name has byte 0x2e, allowed is [A-Za-z0-9_-]"},
        {{.roles = "worker", .queues = "*"}, "queue name has byte 0x2a, allowed is [A-Za-z0-9_-]"},
        {{.roles = "client", .orchestrations = ">"},
         "orchestration name has byte 0x3e, allowed is [A-Za-z0-9_-]"},
        {{.roles = "client", .inbox = "thole.ns.in"},
         "the inbox prefix must begin with _INBOX, because "
         "engines and workers answer nowhere else; for example "
         "_INBOX_orders"},
        {{.roles = "client", .partitions = 4097}, "4097 partitions: there are 1 to 4096"},
        {{.roles = "client", .ns = "a\"b"}, "namespace name has byte 0x22, allowed is [A-Za-z0-9_-]"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        thole_error err = {.status = THOLE_OK};
        CU_ASSERT_EQUAL(ask(bad[i].wish, PERMISSION_PUBLISH, &err), THOLE_INVALID);
        CHECK_STR("text", err.text, bad[i].want);
    }
    thole_error err = {.status = THOLE_OK};
    CU_ASSERT_EQUAL(
        ask((struct permission_wish){.roles = "client", .verbs = "start,sing"}, PERMISSION_PUBLISH, &err),
        THOLE_INVALID);
    CHECK_STR(
        "every verb", err.text,
        "there is no verb \"sing\"; there are: start, start-many, run, wait, show, history, export, diff, "
        "list, "
        "rejected, "
        "signal, "
        "query, cancel, terminate, pause, resume, retry, delete, force-delete, prune, complete, fail, nodes, "
        "partitions, doctor, timer, queue, queue-limit, replay, projections, audit, hold, archive, bind, "
        "console, "
        "call, "
        "events");
}

static void passes(const char *roles, const char *queues, enum permission_side side)
{
    static struct permissions permissions;
    thole_error err = {.status = THOLE_OK};
    struct permission_wish const wish = {
        .roles = roles, .ns = "ns", .partitions = 2, .queues = queues, .api_prefix = "JS.thole.API"};
    said.len = (size_t)snprintf(said.text, sizeof said.text, " ");
    CU_ASSERT_EQUAL(permissions_make(&wish, &permissions, &err), THOLE_OK);
    CU_ASSERT_TRUE(permissions_may_cross(&permissions));
    permissions_each_crossing(&permissions, side, say, NULL);
}

/* Between two accounts: under the server's own names, without what another pattern covers, and without what
 * programs of one account say to each other. */
static void test_crossing(void)
{
    static const char *const not_there[] = {
        " $JS.API.CONSUMER.INFO.THOLE_ns_WORK.q_gpu ", /* the console's * covers it */
        " thole.ns.workers ",
        " _INBOX",
        " thole.ns.gateway",
        " $SRV",
        " JS.thole.API"};
    passes("worker,console,gateway,remote-worker,remote-client", "gpu", PERMISSION_PUBLISH);
    CU_ASSERT_PTR_NOT_NULL(strstr(said.text, " $JS.API.CONSUMER.INFO.THOLE_ns_WORK.* "));
    CU_ASSERT_PTR_NOT_NULL(strstr(said.text, " $JS.API.CONSUMER.MSG.NEXT.THOLE_ns_WORK.q_gpu "));
    CU_ASSERT_PTR_NOT_NULL(strstr(said.text, " thole.ns.in.*.start.*.* "));
    CU_ASSERT_PTR_NOT_NULL(strstr(said.text, " thole.ns.in.*.start.*.*.by.* "));
    for (size_t i = 0; i < ARRAY_LEN(not_there); i++) {
        CU_ASSERT_PTR_NULL(strstr(said.text, not_there[i]));
        if (strstr(said.text, not_there[i]) != NULL)
            fprintf(stderr, "passes: %s\n", not_there[i]);
    }
    passes("worker,console", NULL, PERMISSION_SUBSCRIBE);
    CHECK_STR("what is heard", said.text, " thole.ns.cancel.> thole.ns.event.*.*.* thole.ns.hist.> ");
    passes("worker", "gpu", PERMISSION_PUBLISH);
    CU_ASSERT_PTR_NOT_NULL(strstr(said.text, " $JS.API.CONSUMER.INFO.THOLE_ns_WORK.q_gpu "));
}

/* A user who makes streams, or has the server deliver to subjects, is in their account. */
static void test_not_apart(void)
{
    static const char *const roles[] = {"engine", "binder",    "auditor",
                                        "notary", "archivist", "client,engine"};
    static struct permissions permissions;
    thole_error err = {.status = THOLE_OK};
    for (size_t i = 0; i < ARRAY_LEN(roles); i++) {
        struct permission_wish const wish = {
            .roles = roles[i], .ns = "ns", .partitions = 2, .bound = "ORDERS"};
        CU_ASSERT_EQUAL(permissions_make(&wish, &permissions, &err), THOLE_OK);
        CU_ASSERT_FALSE(permissions_may_cross(&permissions));
    }
}

/* A user says JetStream's subjects as its account imports them. */
static void test_own_names(void)
{
    thole_error err = {.status = THOLE_OK};
    CU_ASSERT_EQUAL(ask((struct permission_wish){.roles = "client", .api_prefix = "JS.thole.API"},
                        PERMISSION_PUBLISH, &err),
                    THOLE_OK);
    CU_ASSERT_PTR_NOT_NULL(strstr(said.text, " JS.thole.API.STREAM.MSG.GET.THOLE_ns_HIST_1 "));
    CU_ASSERT_PTR_NULL(strstr(said.text, "$JS.API"));
    CU_ASSERT_EQUAL(
        ask((struct permission_wish){.roles = "client", .api_prefix = "JS."}, PERMISSION_PUBLISH, &err),
        THOLE_INVALID);
}

static const struct thole_test tests[] = {
    {"what each may and may not", test_rows},
    {"nothing beyond the namespace", test_nothing_wide},
    {"engines make streams", test_engines_make_streams},
    {"what is refused", test_refused},
    {"what passes between accounts", test_crossing},
    {"who is not apart", test_not_apart},
    {"JetStream's own names", test_own_names},
};

THOLE_TEST_MAIN("nats_permissions", tests)
