/* Attempts on NATS. */
#include "connection.h"
#include "jscan.h"
#include "link.h"
#include "rights_stage.h"
#include <stdio.h>
#include <string.h>

enum {
    ATTEMPTS_LEAST = 300,
    FINGERPRINT_BYTES = 256 * 1024,
    REFUSED_WAIT_MS = 5000,
    SETTLE_MS = 500,
    BODY_BYTES = 300
};

#define E (1u << USER_ENGINE)
#define W (1u << USER_WORKER)
#define C (1u << USER_CLIENT)
#define G (1u << USER_SERVICE)
#define A (1u << USER_AUDITOR)
#define K (1u << USER_CONSOLE)
#define Y (1u << USER_GATEWAY)
#define R (1u << USER_REMOTE_WORKER)
#define S (1u << USER_REMOTE_CLIENT)
#define V (1u << USER_ARCHIVIST)
#define N (1u << USER_NOTARY)
#define Q (1u << USER_WORKER_GPU)
#define ALL (E | W | C | G | A | K | R | S)

struct attempt {
    unsigned users; /* users who try it */
    const char *subject;
    const char *body; /* NULL: a subscription */
};
#define IN "thole.default.in.0."
#define API "$JS.API."
#define HIST "THOLE_default_HIST_0"
#define WORK "THOLE_default_WORK"
#define CONSUMER                                                                                             \
    "{\"stream_name\":\"" HIST "\",\"config\":{\"name\":\"x\",\"deliver_subject\":\"thole.default.in.0.x\"," \
    "\"ack_policy\":\"none\"}}"

static const struct attempt attempts[] = {
    /* by way of a gateway */
    {R | S, IN "start.gate.victim", "x"},
    {R | S, IN "event.go.victim", "x"},
    {R | S, IN "control.cancel.victim", "x"},
    {R | S, IN "result.worker.victim", "x"},
    {R | S, "thole.default.work.default.victim.1.2.1", "x"},
    {R | S, "thole.default.cancel.victim.1", "x"},
    {R | S, "thole.default.query.0.passed.victim", "x"},
    {R | S, "$KV.THOLE_default_CONFIG.partitions", "7"},
    {R | S, API "CONSUMER.MSG.NEXT." WORK ".q_default", "1"},
    {R | S, API "STREAM.MSG.GET." HIST, "{\"seq\":1}"},
    {R | S, "thole.other.gateway.open.default", "x"},
    {R | S, "thole.default.gateway.>", NULL},
    {R | S, "thole.default.cancel.>", NULL},
    {R, "thole.default.gateway.open.gpu", "x"},
    {R, "thole.default.gateway.client.start.gate", "x"},
    {R, "_INBOX_default_remote-client.>", NULL},
    {S, "thole.default.gateway.open.default", "x"},
    {S, "thole.default.gateway.session.a.b.next", "x"},
    {S, "thole.default.gateway.client.start.steps", "x"},
    {S, "thole.default.gateway.client.signal.other", "x"},
    {S, "thole.default.gateway.client.query.other", "x"},
    {S, "thole.default.gateway.client.terminate", "x"},
    {S, "thole.default.gateway.client.list", "x"},
    {S, "thole.default.gateway.client.start_event.gate~other", "x"},
    {S, "_INBOX_default_remote-worker_default.>", NULL},
    {R, "_INBOX_default_remote-worker_gpu.>", NULL},
    {E | W | C | G | A | K, "thole.default.gateway.open.default", "x"},
    {E | W | C | G | A | K, "thole.default.gateway.session.a.b.complete", "x"},
    {E | W | C | G | A | K, "thole.default.gateway.client.terminate", "x"},
    {E | W | C | G | A | K, "thole.default.gateway.>", NULL},
    /* checkpoints */
    {ALL | N, API "STREAM.DELETE.THOLE_default_AUDIT", ""},
    {ALL | N, API "STREAM.PURGE.THOLE_default_AUDIT", ""},
    {ALL | N, API "STREAM.MSG.DELETE.THOLE_default_AUDIT", "{\"seq\":1}"},
    {ALL | N, API "STREAM.UPDATE.THOLE_default_AUDIT", "{}"},
    {W | C | G | A | K | R | S, "thole.default.audit.0.leaves", "x"},
    {W | C | G | A | K | R | S, "thole.default.audit.0.checkpoint", "x"},
    {N, IN "start.gate.victim", "x"},
    {N, IN "control.delete.victim", "x"},
    {N, "thole.default.hist.0.victim.1", "x"},
    {N, "thole.default.ctl.0.epoch", "x"},
    {N, "thole.default.work.default.victim.1.2.1", "x"},
    {N, "thole.default.cancel.victim.1", "x"},
    {N, "$KV.THOLE_default_CONFIG.partitions", "7"},
    {N, API "STREAM.MSG.DELETE." HIST, "{\"seq\":1}"},
    {N, API "STREAM.PURGE." HIST, ""},
    {N, API "STREAM.MSG.GET.KV_THOLE_default_SECRET", "{\"last_by_subj\":\"$KV.*.nonces\"}"},
    {N, "thole.other.audit.0.leaves", "x"},
    {N, "thole.>", NULL},
    {N, "_INBOX_default_auditor.*.*", NULL},
    {Y, IN "control.pause.victim", "x"},
    {Y, IN "control.delete.victim", "x"},
    {Y, IN "engine.start.victim", "x"},
    {Y, "thole.default.hist.0.victim.1", "x"},
    {Y, "thole.default.work.default.victim.1.2.1", "x"},
    {Y, "thole.default.cancel.victim.1", "x"},
    {Y, "$KV.THOLE_default_CONFIG.partitions", "7"},
    {Y, "_INBOX_default_client.x", "x"},
    {Y, API "STREAM.DELETE." HIST, ""},
    {Y, API "STREAM.PURGE." WORK, ""},
    {Y, API "STREAM.MSG.GET.KV_THOLE_default_SECRET", "{\"last_by_subj\":\">\"}"},
    {Y, ">", NULL},
    {Y, "_INBOX.>", NULL},
    {Y, "_INBOX_default_remote-worker_default.>", NULL},
    {Y, "thole.default.in.>", NULL},
    {Y, "thole.default.hist.>", NULL},
    {Y, "thole.other.gateway.>", NULL},
    /* of archives */
    {V, IN "start.gate.victim", "x"},
    {V, IN "control.terminate.victim", "x"},
    {V, IN "control.force_delete.victim", "x"},
    {V, IN "control.pause.victim", "x"},
    {V, "thole.default.hist.0.victim.1", "x"},
    {V, "thole.default.hist.0.victim.deleted", "x"},
    {V, "thole.default.audit.0.checkpoint", "x"},
    {V, "$KV.THOLE_default_CONFIG.partitions", "7"},
    {V, API "STREAM.DELETE.KV_THOLE_default_HOLDS", ""},
    {V, API "STREAM.DELETE.THOLE_default_RESTORED", ""},
    {E | W | C | G | A | K, "thole.default.restored.0.victim.receipt", "{}"},
    {E | W | C | G | A | K, API "STREAM.PURGE.THOLE_default_RESTORED", ""},
    {V, API "STREAM.PURGE.KV_THOLE_default_HOLDS", ""},
    {V, API "STREAM.UPDATE.KV_THOLE_default_HOLDS", "{}"},
    {V, API "STREAM.MSG.DELETE.KV_THOLE_default_HOLDS", "{\"seq\":1}"},
    {V, API "STREAM.MSG.DELETE." HIST, "{\"seq\":1}"},
    {V, API "STREAM.MSG.GET.KV_THOLE_default_SECRET", "{\"last_by_subj\":\">\"}"},
    {E | W | C | G | A | K, "$KV.THOLE_default_HOLDS.victim", "{\"held\":false}"},
    /* messages to instances */
    {E | W | A | K, IN "start.gate.victim", "x"},
    {E | W | C | A | K, IN "start.steps.victim", "x"},
    {E | W | C | A | K, IN "start_event.gate~other.victim", "x"},
    {E | W | A | K, IN "event.go.victim", "x"},
    {E | W | C | A | K, IN "event.other.victim", "x"},
    {E | W | A, IN "control.cancel.victim", "x"},
    {E | W | C | G | A, IN "control.terminate.victim", "x"},
    {E | W | C | G | A, IN "control.pause.victim", "x"},
    {E | W | C | G | A, IN "control.resume.victim", "x"},
    {E | W | C | G | A, IN "control.delete.victim", "x"},
    {ALL, IN "control.force_delete.victim", "x"},
    {E | W | C | G | A, IN "control.prune.victim", "x"},
    {E | W | C | G | A, IN "control.retry.victim", "x"},
    {E | W | C | G | A, IN "control.release.victim", "x"},
    {ALL, IN "control.fire.victim", "x"},
    {E | W | C | A | K, IN "result.outside.victim", "x"},
    {E | C | G | A | K, IN "result.worker.victim", "x"},
    {W | C | G | A | K, IN "engine.start.victim", "x"},
    {W | C | G | A | K, IN "engine.child_result.victim", "x"},
    {ALL, IN "other.kind.victim", "x"},
    {ALL, "thole.other.in.0.start.gate.victim", "x"},
    /* subjects that engines alone publish */
    {W | C | G | A | K, "thole.default.hist.0.victim.1", "x"},
    {W | C | G | A | K, "thole.default.hist.0.victim.deleted", "x"},
    {W | C | G | A | K, "thole.default.ctl.0.epoch", "x"},
    {W | C | G | A | K, "thole.default.ctl.0.position", "x"},
    {W | C | G | A | K, "thole.default.work.default.victim.1.2.1", "x"},
    {W | C | G | A | K, "thole.default.rejected.0", "x"},
    {W | C | G | A | K, "thole.default.cancel.victim.1", "x"},
    {W | C | G | A | K, "thole.default.event.gate.victim.completed", "x"},
    {W | C | G | A | K, "$KV.THOLE_default_CONFIG.partitions", "7"},
    {W | C | G | A, "$KV.THOLE_default_CONFIG.queue_default", "1"},
    {W | C | G | A | K, "$KV.THOLE_default_CONFIG.queue_gpu", "1"},
    {W | C | G | A | K, "$KV.THOLE_default_NODES.ghost", "x"},
    {W | C | G | A | K, "$KV.THOLE_default_CRASHES.0.victim", "x"},
    {W | C | G | A | K, "$KV.THOLE_default_SECRET.nonces", "00"},
    {E, "$KV.THOLE_other_CONFIG.partitions", "7"},
    {E, "thole.other.hist.0.victim.1", "x"},
    /* core NATS */
    {E | W | A, "thole.default.query.0.passed.victim", "x"},
    {C, "thole.default.query.0.other.victim", "x"},
    {E | W | C | G | A, "_INBOX_default_client.x", "x"},
    {ALL, "_INBOX.x.y", "x"},
    {ALL, "_INBOX_hand.x", "x"},
    {R | S, "thole.default.workers", ""},
    /* streams */
    {ALL, API "STREAM.DELETE." HIST, ""},
    {ALL, API "STREAM.DELETE.THOLE_default_IN_0", ""},
    {ALL, API "STREAM.DELETE." WORK, ""},
    {ALL, API "STREAM.DELETE.KV_THOLE_default_SECRET", ""},
    {ALL, API "STREAM.PURGE." HIST, ""},
    {ALL, API "STREAM.PURGE." WORK, ""},
    {ALL, API "STREAM.PURGE.KV_THOLE_default_NODES", ""},
    {W | C | G | A | K, API "STREAM.PURGE.THOLE_default_IN_0", ""},
    {ALL, API "STREAM.CREATE.MINE", "{\"name\":\"MINE\",\"subjects\":[\"thole.default.query.>\"]}"},
    {W | C | G | A | K, API "STREAM.UPDATE." HIST, "{\"name\":\"" HIST "\",\"max_msgs\":1}"},
    {W | C | G | A | K, API "STREAM.MSG.DELETE." HIST, "{\"seq\":1}"},
    {W | C | G | A | K, API "STREAM.MSG.DELETE." WORK, "{\"seq\":1}"},
    {ALL, API "STREAM.MSG.DELETE.THOLE_default_IN_0", "{\"seq\":1}"},
    {ALL, API "STREAM.MSG.DELETE.KV_THOLE_default_SECRET", "{\"seq\":1}"},
    {W | C | G | A | K, API "STREAM.MSG.GET.KV_THOLE_default_SECRET", "{\"last_by_subj\":\">\"}"},
    {W, API "STREAM.MSG.GET.THOLE_default_IN_0", "{\"seq\":1}"},
    {W | C | G | A | K, API "STREAM.MSG.GET." WORK, "{\"seq\":1}"},
    {W | C | G | A | K, API "STREAM.MSG.GET.KV_THOLE_default_CRASHES", "{\"seq\":1}"},
    {W, API "STREAM.MSG.GET." HIST, "{\"seq\":1}"},
    {W, API "STREAM.MSG.GET.KV_THOLE_default_NODES", "{\"seq\":1}"},
    {ALL, API "STREAM.MSG.GET.THOLE_other_HIST_0", "{\"seq\":1}"},
    {ALL, API "DIRECT.GET.THOLE_default_IN_0", "{\"seq\":1}"},
    {ALL, API "DIRECT.GET." WORK, "{\"seq\":1}"},
    {ALL, API "DIRECT.GET.KV_THOLE_default_SECRET", "{\"last_by_subj\":\">\"}"},
    {ALL, API "DIRECT.GET.KV_THOLE_default_SECRET.$KV.THOLE_default_SECRET.nonces", ""},
    {ALL, API "STREAM.LIST", ""},
    {ALL & ~E, API "STREAM.NAMES", ""},
    {ALL, API "STREAM.SNAPSHOT." HIST, "{\"deliver_subject\":\"thole.default.in.0.x\"}"},
    {ALL, API "STREAM.RESTORE.MINE", "{}"},
    {ALL, API "STREAM.LEADER.STEPDOWN." HIST, ""},
    {W | C | G | A | K, API "STREAM.INFO.KV_THOLE_default_SECRET", ""},
    {ALL, API "ACCOUNT.PURGE.$G", ""},
    {ALL, "$SYS.REQ.SERVER.PING", ""},
    {ALL, "$SYS.REQ.ACCOUNT.PING.CONNZ", ""},
    /* consumers */
    {W | C | G | K, API "CONSUMER.CREATE." HIST ".x.thole.default.hist.0.*.*", CONSUMER},
    {W | C | G | K, API "CONSUMER.CREATE." HIST ".x", CONSUMER},
    {W | C | G | K, API "CONSUMER.CREATE.THOLE_default_AUDIT.x.>", CONSUMER},
    {ALL, API "CONSUMER.CREATE." HIST, CONSUMER},
    {ALL, API "CONSUMER.DURABLE.CREATE." HIST ".x", CONSUMER},
    {W | C | G | A | K, API "CONSUMER.CREATE.THOLE_default_IN_0.x", CONSUMER},
    {ALL | V | N, API "CONSUMER.CREATE.THOLE_default_REJECTED.x", CONSUMER},
    {ALL, API "CONSUMER.CREATE.KV_THOLE_default_SECRET.x", CONSUMER},
    {ALL & ~E, API "CONSUMER.CREATE." WORK ".q_default", CONSUMER},
    {ALL & ~E, API "CONSUMER.CREATE." WORK ".q_default.thole.default.work.>", CONSUMER},
    {ALL & ~E, API "CONSUMER.CREATE." WORK ".q_gpu.thole.default.work.gpu.>", CONSUMER},
    {ALL & ~E, API "CONSUMER.CREATE." WORK ".mine.thole.default.work.default.>", CONSUMER},
    {W | C | G | A | K | Y, API "CONSUMER.CREATE." WORK ".q_default.thole.default.work.default.>", CONSUMER},
    {W | C | G | A | K | Y, API "CONSUMER.DURABLE.CREATE." WORK ".q_default", CONSUMER},
    {Q, API "CONSUMER.CREATE." WORK ".q_gpu.thole.default.work.gpu.>", CONSUMER},
    {Q, API "CONSUMER.DELETE." WORK ".q_gpu", ""},
    {W | Y, "thole.default.queues.gpu", "{}"},
    {Q | C | G | A | R | S, "thole.default.queues.default", "{}"},
    {W | C | G | A | K | Y, "thole.default.queues.*", NULL},
    {W | C | G | A | K | Y, "thole.default.queues.*.settings", NULL},
    {W | C | G | A | R | S | Y, "thole.default.queues.default.settings", "{\"limit\":1}"},
    {K, "thole.default.queues.gpu.settings", "{\"limit\":1}"},
    {W | C | G | A | K | Y, "$KV.THOLE_default_CONFIG.lease_default", "1000"},
    {W | C | G | A | K | Y, "$KV.THOLE_default_CONFIG.queue_default", "1"},
    /* With a header it would empty the bucket: streams with roll-ups have one right, to all of it. */
    {(ALL & ~E) | Y | V | N | Q, "$KV.THOLE_default_CONFIG.store_holds", "{}"},
    {(ALL & ~E) | Y | V | N | Q, "$KV.THOLE_default_CONFIG.store_bindings", "{}"},
    {W | C | G | A | K, API "CONSUMER.DELETE." HIST ".reader", ""},
    {W | C | G | A | K, API "CONSUMER.DELETE.THOLE_default_IN_0.reader", ""},
    {ALL, API "CONSUMER.DELETE.THOLE_default_REJECTED.reader", ""},
    {W | C | G | A | K | Y, API "CONSUMER.DELETE." WORK ".q_default", ""},
    {ALL & ~E, API "CONSUMER.DELETE." WORK ".q_gpu", ""},
    {(ALL & ~E) | V | N, API "CONSUMER.LIST." HIST, ""},
    {(ALL & ~E) | V | N, API "CONSUMER.LIST.THOLE_default_IN_0", ""},
    {ALL, API "CONSUMER.NAMES." HIST, ""},
    {ALL, API "CONSUMER.NAMES.THOLE_default_IN_0", ""},
    {ALL, API "CONSUMER.INFO." HIST ".reader", ""},
    {ALL, API "CONSUMER.LEADER.STEPDOWN." WORK ".q_default", ""},
    {ALL, API "CONSUMER.PAUSE." WORK ".q_default", "{\"pause_until\":\"2100-01-01T00:00:00Z\"}"},
    {E | C | G | A | K, API "CONSUMER.MSG.NEXT." WORK ".q_default", "1"},
    {ALL, API "CONSUMER.MSG.NEXT." WORK ".q_gpu", "1"},
    {E | C | G | A | K, "$JS.ACK." WORK ".q_default.1.1.1.1700000000000000000.0", "+ACK"},
    {ALL, "$JS.ACK." WORK ".q_gpu.1.1.1.1700000000000000000.0", "+ACK"},
    {ALL, "$JS.ACK._.hash." WORK ".q_gpu.1.1.1.1700000000000000000.0", "+ACK"},
    /* subscriptions */
    {ALL, ">", NULL},
    {ALL, "*.>", NULL},
    {ALL, "thole.>", NULL},
    {ALL, "thole.default.>", NULL},
    {ALL, "_INBOX.>", NULL},
    {ALL, "_INBOX_hand.>", NULL},
    {W | C | G | A | K, "_INBOX_default_engine.>", NULL},
    {E | C | G | A | K | Q, "_INBOX_default_worker_default.>", NULL},
    {W, "_INBOX_default_worker_gpu.>", NULL},
    {W | Q, "_INBOX_default_worker.>", NULL},
    {E | W | G | A | K, "_INBOX_default_client.>", NULL},
    {E | W | C | G | K, "_INBOX_default_auditor.*.*", NULL},
    {ALL, "thole.default.in.>", NULL},
    {ALL, "thole.default.in.0.start.gate.*", NULL},
    {ALL & ~(A | K), "thole.default.hist.>", NULL}, /* those two follow histories */
    {ALL, "thole.other.hist.>", NULL},
    {ALL, "thole.default.ctl.>", NULL},
    {ALL, "thole.default.work.>", NULL},
    {ALL, "thole.default.work.default.>", NULL},
    {ALL, "thole.default.rejected.>", NULL},
    {E | C | G | A | K, "thole.default.cancel.>", NULL},
    {W | C | G | A | K, "thole.default.query.>", NULL},
    {W | C | G | A | K, "thole.default.query.0.passed.victim", NULL},
    {E | C | G | A | K, "thole.default.workers", NULL},
    {ALL, "thole.default.event.>", NULL},
    {ALL, "thole.default.event.*.*.ce.>", NULL},
    {W | C | G | A | K, "thole.default.event.gate.victim.ce.x", "x"},
    {ALL, API "CONSUMER.CREATE.THOLE_default_EVENTS.x", CONSUMER},
    {ALL, "thole.other.event.>", NULL},
    {ALL, "$KV.>", NULL},
    {ALL, "$KV.THOLE_default_SECRET.>", NULL},
    {ALL, "$KV.THOLE_default_NODES.>", NULL},
    {ALL, "$JS.>", NULL},
    {ALL, "$JS.API.>", NULL},
    {ALL, "$JS.ACK.>", NULL},
    {ALL, "$JS.EVENT.>", NULL},
    {ALL, "$SYS.>", NULL},
};

/* ---- the stored state ---- */

static const char *const streams[] = {
    "THOLE_default_IN_0",      "THOLE_default_IN_1",       "THOLE_default_HIST_0",
    "THOLE_default_HIST_1",    "THOLE_default_WORK",       "THOLE_default_REJECTED",
    "KV_THOLE_default_CONFIG", "KV_THOLE_default_CRASHES", "KV_THOLE_default_SECRET",
    "KV_THOLE_default_NODES",
};

static void add_member(thole_slice answer, const char *path, struct buf *to)
{
    thole_slice value = THOLE_STR("none");
    (void)json_path(answer, path, &value);
    buf_printf(to, " %s=%.*s", path, THOLE_FMT(value));
}

/* The streams, their last sequences and consumers; what NODES holds expires by itself. */
static void fingerprint(struct connection *hand, struct buf *to)
{
    char subject[200];
    struct buf answer;
    buf_init(&answer, 1024 * 1024);
    buf_clear(to);
    for (size_t i = 0; i < ARRAY_LEN(streams); i++) {
        bool const expires = strstr(streams[i], "NODES") != NULL;
        (void)snprintf(subject, sizeof subject, API "STREAM.INFO.%s", streams[i]);
        CHECK_OK(connection_request(hand, subject, THOLE_STR(""), &answer, &rights_stack.err),
                 &rights_stack.err);
        buf_printf(to, "\n%s:", streams[i]);
        add_member(buf_bytes(&answer), "state.last_seq", to);
        add_member(buf_bytes(&answer), "state.consumer_count", to);
        if (!expires)
            add_member(buf_bytes(&answer), "state.messages", to);
        if (!expires)
            add_member(buf_bytes(&answer), "state.first_seq", to);
        add_member(buf_bytes(&answer), "config", to);
    }
    CHECK_OK(connection_request(hand, API "STREAM.NAMES", THOLE_STR(""), &answer, &rights_stack.err),
             &rights_stack.err);
    add_member(buf_bytes(&answer), "total", to);
    CU_ASSERT_EQUAL_FATAL(buf_status(to), THOLE_OK);
    buf_release(&answer);
}

static void request(struct connection *hand, struct buf *to, const char *subject, const char *body)
{
    CHECK_OK(connection_request(hand, subject, thole_slice_from(body), to, &rights_stack.err),
             &rights_stack.err);
    CU_ASSERT_PTR_NULL(strstr(buf_cstr(to), "\"error\""));
}

/* The consumers of programs that were killed would go away in the midst of the attempts. In their place, each
 * stream but that of the work gets one that nobody may delete. */
static void replace_consumers(struct connection *hand, const char *stream)
{
    char subject[256], body[160];
    struct buf listed, answer;
    thole_slice names = THOLE_STR(""), name;
    size_t at = 0;
    buf_init(&listed, 64 * 1024);
    buf_init(&answer, 64 * 1024);
    (void)snprintf(subject, sizeof subject, API "CONSUMER.NAMES.%s", stream);
    request(hand, &listed, subject, "");
    CU_ASSERT_TRUE(json_find(buf_bytes(&listed), "consumers", &names));
    while (json_item(names, &at, &name)) { /* a quote on each side */
        (void)snprintf(subject, sizeof subject, API "CONSUMER.DELETE.%s.%.*s", stream, (int)name.len - 2,
                       (const char *)name.ptr + 1);
        request(hand, &answer, subject, "");
    }
    (void)snprintf(subject, sizeof subject, API "CONSUMER.CREATE.%s.reader", stream);
    (void)snprintf(body, sizeof body,
                   "{\"stream_name\":\"%s\",\"config\":{\"name\":\"reader\",\"durable_name\":\"reader\"}}",
                   stream);
    request(hand, &answer, subject, body);
    buf_release(&answer);
    buf_release(&listed);
}

/* Other things that the programs had open go away a moment after their end, in a cluster. */
static void settle(struct connection *hand, struct buf *to)
{
    struct buf last;
    buf_init(&last, FINGERPRINT_BYTES);
    do {
        buf_clear(&last);
        fingerprint(hand, &last);
        pause_ms(SETTLE_MS);
        buf_clear(to);
        fingerprint(hand, to);
    } while (strcmp(buf_cstr(&last), buf_cstr(to)) != 0);
    buf_release(&last);
}

/* ---- attempts ---- */

static void hear(void *arg, const struct delivery *delivery)
{
    (void)delivery;
    ++*(unsigned *)arg;
}

static uint64_t refusals(struct connection *connection)
{
    char last[256];
    return connection_violations(connection, last, sizeof last);
}

/* Whether the server has refused it: it says so to the connection. */
static bool refused(struct connection *connection, const struct attempt *attempt)
{
    static unsigned heard;
    struct subscription *subscription = NULL;
    uint64_t const before = refusals(connection);
    thole_error *const err = &rights_stack.err;
    if (attempt->body == NULL)
        CHECK_OK(connection_subscribe(connection, attempt->subject, hear, &heard, &subscription, err), err);
    else
        CHECK_OK(
            connection_publish(connection, attempt->subject, NULL, 0, thole_slice_from(attempt->body), err),
            err);
    CHECK_OK(connection_flush(connection, err), err);
    uint64_t const end = clock_monotonic_ms() + REFUSED_WAIT_MS;
    while (refusals(connection) == before && clock_monotonic_ms() < end)
        pause_ms(1);
    subscription_close(subscription);
    return refusals(connection) > before;
}

static size_t attempts_of(enum right_user user)
{
    struct connection *const connection = rights_connect(user, "attempts");
    size_t tried = 0;
    for (size_t i = 0; i < ARRAY_LEN(attempts); i++) {
        if ((attempts[i].users & 1u << user) == 0)
            continue;
        bool const good = refused(connection, &attempts[i]);
        CU_ASSERT(good);
        if (!good)
            fprintf(stderr, "%s may %s %s\n", rights_user_names[user],
                    attempts[i].body == NULL ? "subscribe to" : "publish to", attempts[i].subject);
        tried++;
    }
    connection_close(connection);
    return tried;
}

void rights_nats_attempts(void)
{
    struct connection *const hand = stack_connect(&rights_stack);
    struct buf before, after;
    size_t tried = 0, denied = rights_violations();
    buf_init(&before, FINGERPRINT_BYTES);
    buf_init(&after, FINGERPRINT_BYTES);
    for (size_t i = 0; i < ARRAY_LEN(streams); i++)
        if (strcmp(streams[i], WORK) != 0)
            replace_consumers(hand, streams[i]);
    settle(hand, &before);
    if (rights_stack.others[0].kind == SERVER_NATS)
        CU_ASSERT_PTR_NOT_NULL(strstr(buf_cstr(&before), "\"num_replicas\":3"));
    for (int user = 0; user < USERS; user++)
        tried += attempts_of((enum right_user)user);
    fingerprint(hand, &after);
    CHECK_STR("what is stored", buf_cstr(&after), buf_cstr(&before));
    CU_ASSERT(tried >= ATTEMPTS_LEAST);
    CU_ASSERT_EQUAL(rights_violations(), denied + tried);
    printf("%zu attempts on NATS\n", tried);
    buf_release(&before);
    buf_release(&after);
    connection_close(hand);
}
