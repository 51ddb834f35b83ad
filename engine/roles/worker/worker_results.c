/* Publishes a handler's result to its instance's inbox. */
#include "clock.h"
#include "message_route.h"
#include "subject.h"
#include "worker_parts.h"

enum { HEADER_ROOM_BYTES = 4096 /* of the server's max_payload, for ids */ };

/* Adds the details of the last heartbeat to a result that is no success, for the next try; also for a timed
 * out handler that still runs. @p details must be empty at first and live as long as @p message. */
static void add_details(struct thole_activity *act, size_t payload_max, struct buf *details,
                        struct message *message)
{
    uint64_t none = 0;
    if (act->timed_out)
        message->details = activity_details_since(act, &none, details) ? buf_bytes(details) : act->before;
    if (message->details.len > payload_max)
        message->details = (thole_slice){0};
    if (message->data.len > payload_max - message->details.len && message->status != THOLE_OK)
        message->data.len = payload_max - message->details.len;
}

/* The wall clock may jump while it runs: the end is its beginning and what the monotonic clock says. */
static struct activity_place place_of(const struct worker_host *host, const struct thole_activity *act)
{
    enum { MICROS_IN_MILLI = 1000 };
    struct activity_place place = {.worker = host->incarnation_slice,
                                   .host = thole_slice_from(host->host_name),
                                   .attempt = act->attempt,
                                   .started_ms = act->started_ms};
    if (act->started_ms > 0 && !act->poisoned) /* else no handler ran */
        place.ended_ms = act->started_ms + (clock_monotonic_us() - act->started_us) / MICROS_IN_MILLI;
    return place;
}

static thole_status encode(const struct worker_host *host, struct thole_activity *act, struct buf *subject,
                           struct buf *body, thole_error *reterr)
{
    const struct work_item *const item = &act->message->item;
    size_t const server_max = connection_max_payload(host->connection);
    size_t payload_max = host->options.payload_max;
    char text[ACTIVITY_RESULT_TEXT_BYTES];
    struct buf details;
    struct message message = {.kind = MESSAGE_ACTIVITY_RESULT,
                              .instance = item->instance,
                              .execution = item->execution,
                              .task = item->activity_id,
                              .try_number = thole_activity_try(act),
                              .source.place = place_of(host, act),
                              .nonce = item->nonce};
    if (server_max > HEADER_ROOM_BYTES && payload_max > server_max - HEADER_ROOM_BYTES)
        payload_max = server_max - HEADER_ROOM_BYTES;
    if (payload_max > MESSAGE_BYTES_MAX - HEADER_ROOM_BYTES)
        payload_max = MESSAGE_BYTES_MAX - HEADER_ROOM_BYTES; /* a larger message could not be stored */
    struct message_route const route = message_route(&message, SENDER_WORKER);
    THOLE_TRY(subject_inbox(subject, host->options.ns, act->partition, thole_slice_from(route.text),
                            item->instance, reterr));
    buf_init(&details, DETAILS_BYTES_MAX);
    activity_result(act, payload_max, text, &message);
    add_details(act, payload_max, &details, &message);
    thole_status const status = message_encode(&message, body);
    buf_release(&details);
    return status == THOLE_OK ? status : thole_fail(reterr, status, "cannot encode a result");
}

/* Without a message id: on three replicas a server may answer "duplicate" for a message that it has lost. A
 * result that comes twice is dropped by its receiver, who knows what it resolves. */
void worker_result_publish(struct worker_host *host, struct thole_activity *act)
{
    struct buf subject, body;
    thole_error error = {.status = THOLE_OK};
    buf_init(&subject, SUBJECT_BYTES_MAX);
    buf_init(&body, MESSAGE_BYTES_MAX);
    thole_status status = encode(host, act, &subject, &body, &error);
    if (status == THOLE_OK) {
        struct publish const publish = {.subject = buf_cstr(&subject), .body = buf_bytes(&body)};
        status = requests_publish(host->requests, &publish, (uint64_t)(uintptr_t)act, &error);
    }
    if (status != THOLE_OK) { /* no callback comes: answer here */
        log_line(LOG_LEVEL_DEBUG, "worker", "publishing a result: %s", error.text);
        act->published_ok = false;
        act->publish_err_code = 0;
        mailbox_push(&host->inbox, &act->published.mail);
    }
    buf_release(&subject);
    buf_release(&body);
}

void worker_result_done(void *arg, const struct request_done *done)
{
    struct worker_host *const host = arg;
    struct thole_activity *const act = (struct thole_activity *)(uintptr_t)done->token;
    act->published_ok = done->result == REQUEST_STORED;
    act->publish_err_code = done->err_code;
    mailbox_push(&host->inbox, &act->published.mail);
}
