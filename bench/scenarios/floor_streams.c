#include "floor_streams.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WAIT_MS = 30000, SUBJECT_BYTES = 96 };

static const char body[FLOOR_BODY_BYTES] = "what a workflow has to say, as long as it usually is";

static bool failed(const char *what, natsStatus status)
{
    return bench_fail_at("floor", "%s: %s", what, natsStatus_GetText(status));
}

/* ---- opening ---- */

static bool connect_nats(struct floor_streams *streams, bool many)
{
    const char *const url = getenv("THOLE_NATS_URL");
    natsOptions *options = NULL;
    natsStatus status = natsOptions_Create(&options);
    if (status == NATS_OK)
        status = natsOptions_SetURL(options, url == NULL ? NATS_DEFAULT_URL : url);
    if (status == NATS_OK)
        status = natsOptions_SetSendAsap(options, !many);
    if (status == NATS_OK)
        status = natsConnection_Connect(&streams->connection, options);
    natsOptions_Destroy(options);
    if (status == NATS_OK)
        status = natsConnection_JetStream(&streams->js, streams->connection, NULL);
    return status == NATS_OK ? true : failed("connect", status);
}

static bool make_stream(struct floor_streams *streams, const char *name, const char *subject,
                        jsRetentionPolicy retention)
{
    jsStreamConfig config;
    const char *subjects[] = {subject};
    (void)jsStreamConfig_Init(&config);
    config.Name = name;
    config.Subjects = subjects;
    config.SubjectsLen = 1;
    config.Storage = js_FileStorage;
    config.Retention = retention;
    config.AllowDirect = true;
    (void)js_DeleteStream(streams->js, name, NULL, NULL); /* of an earlier floor */
    natsStatus const status = js_AddStream(NULL, streams->js, &config, NULL, NULL);
    return status == NATS_OK ? true : failed(name, status);
}

static bool make_streams(struct floor_streams *streams)
{
    jsConsumerConfig config;
    if (!make_stream(streams, "BENCH_IN", "bench.in.>", js_LimitsPolicy) ||
        !make_stream(streams, "BENCH_HIST", "bench.hist.>", js_LimitsPolicy) ||
        !make_stream(streams, "BENCH_WORK", "bench.work.>", js_WorkQueuePolicy))
        return false;
    (void)jsConsumerConfig_Init(&config);
    config.Durable = "workers";
    config.AckPolicy = js_AckExplicit;
    config.MaxAckPending = 2 * FLOOR_BATCH_MAX;
    natsStatus const status = js_AddConsumer(NULL, streams->js, "BENCH_WORK", &config, NULL, NULL);
    return status == NATS_OK ? true : failed("consumer", status);
}

static natsStatus subscribe(struct floor_streams *streams, const char *to, natsSubscription **ret)
{
    natsStatus const status = natsConnection_SubscribeSync(ret, streams->connection, to);
    return status == NATS_OK ? natsSubscription_SetPendingLimits(*ret, -1, -1) : status;
}

static bool listen_all(struct floor_streams *streams)
{
    jsSubOptions ordered;
    (void)jsSubOptions_Init(&ordered);
    ordered.Ordered = true;
    ordered.Stream = "BENCH_IN";
    natsStatus status = js_SubscribeSync(&streams->inbox, streams->js, "bench.in.>", NULL, &ordered, NULL);
    if (status == NATS_OK)
        status = subscribe(streams, streams->acks_to, &streams->acks);
    if (status == NATS_OK)
        status = subscribe(streams, streams->work_to, &streams->work);
    if (status == NATS_OK)
        status = subscribe(streams, "bench.end.*", &streams->ends);
    return status == NATS_OK ? true : failed("subscribe", status);
}

bool floor_streams_open(struct floor_streams *ret, bool many)
{
    natsInbox *inbox = NULL;
    if (natsInbox_Create(&inbox) != NATS_OK)
        return bench_fail("floor", "no memory");
    (void)snprintf(ret->acks_to, sizeof ret->acks_to, "%.40s.acks", inbox);
    (void)snprintf(ret->work_to, sizeof ret->work_to, "%.40s.work", inbox);
    natsInbox_Destroy(inbox);
    return connect_nats(ret, many) && make_streams(ret) && listen_all(ret);
}

void floor_streams_close(struct floor_streams *streams)
{
    natsSubscription *const all[] = {streams->acks, streams->inbox, streams->work, streams->ends};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        natsSubscription_Destroy(all[i]);
    jsCtx_Destroy(streams->js);
    natsConnection_Destroy(streams->connection);
}

/* ---- sending and taking ---- */

static bool publish(struct floor_streams *streams, const char *kind, const char *expected_last)
{
    char subject[SUBJECT_BYTES];
    natsMsg *msg = NULL;
    (void)snprintf(subject, sizeof subject, "bench.%s.%" PRIu64, kind, ++streams->number);
    natsStatus status = natsMsg_Create(&msg, subject, streams->acks_to, body, sizeof body);
    if (status == NATS_OK && expected_last != NULL)
        status = natsMsgHeader_Set(msg, "Nats-Expected-Last-Sequence", expected_last);
    if (status == NATS_OK)
        status = natsConnection_PublishMsg(streams->connection, msg);
    natsMsg_Destroy(msg);
    return status == NATS_OK ? true : failed(subject, status);
}

static natsMsg *next(natsSubscription *from, const char *what)
{
    natsMsg *msg = NULL;
    natsStatus const status = natsSubscription_NextMsg(&msg, from, WAIT_MS);
    if (status != NATS_OK)
        (void)failed(what, status);
    return status == NATS_OK ? msg : NULL;
}

static bool take(natsSubscription *from, size_t n, const char *what)
{
    for (size_t i = 0; i < n; i++) {
        natsMsg *const msg = next(from, what);
        if (msg == NULL)
            return false;
        natsMsg_Destroy(msg);
    }
    return true;
}

static bool take_acks(struct floor_streams *streams, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        natsMsg *const msg = next(streams->acks, "acknowledgement");
        bool const stored = msg != NULL && strstr(natsMsg_GetData(msg), "\"error\"") == NULL;
        if (msg != NULL && !stored)
            (void)bench_fail("floor", natsMsg_GetData(msg));
        natsMsg_Destroy(msg);
        if (!stored)
            return false;
    }
    return true;
}

/* ---- the steps ---- */

bool floor_inbox(struct floor_streams *streams, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!publish(streams, "in", NULL))
            return false;
    return take(streams->inbox, n, "the inbox") && take_acks(streams, n);
}

bool floor_history(struct floor_streams *streams, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        char last[24];
        (void)snprintf(last, sizeof last, "%" PRIu64, streams->history_last++);
        if (!publish(streams, "hist", last))
            return false;
    }
    return take_acks(streams, n);
}

/* Messages are requested before they exist, as by a worker with free slots. */
static bool pull(struct floor_streams *streams, size_t n)
{
    char request[64];
    (void)snprintf(request, sizeof request, "{\"batch\":%zu,\"expires\":%lld}", n, WAIT_MS * 1000000LL);
    natsStatus const status = natsConnection_PublishRequestString(
        streams->connection, "$JS.API.CONSUMER.MSG.NEXT.BENCH_WORK.workers", streams->work_to, request);
    return status == NATS_OK ? true : failed("pull", status);
}

bool floor_work(struct floor_streams *streams, size_t n)
{
    if (n > FLOOR_BATCH_MAX || !pull(streams, n))
        return false;
    for (size_t i = 0; i < n; i++)
        if (!publish(streams, "work", NULL))
            return false;
    for (size_t i = 0; i < n; i++) {
        natsMsg *const msg = next(streams->work, "work");
        if (msg == NULL)
            return false;
        (void)snprintf(streams->replies[i], sizeof streams->replies[i], "%s",
                       natsMsg_GetReply(msg) == NULL ? "" : natsMsg_GetReply(msg));
        natsMsg_Destroy(msg);
    }
    return take_acks(streams, n);
}

bool floor_work_done(struct floor_streams *streams, size_t n)
{
    if (!floor_inbox(streams, n))
        return false;
    for (size_t i = 0; i < n; i++) {
        natsStatus const status =
            natsConnection_PublishString(streams->connection, streams->replies[i], "+ACK");
        if (status != NATS_OK)
            return failed("acknowledge", status);
    }
    return true;
}

bool floor_end(struct floor_streams *streams, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        char subject[SUBJECT_BYTES];
        (void)snprintf(subject, sizeof subject, "bench.end.%zu", i);
        natsStatus const status = natsConnection_Publish(streams->connection, subject, body, sizeof body);
        if (status != NATS_OK)
            return failed(subject, status);
    }
    return take(streams->ends, n, "ends");
}
