/* Publishes handlers' results to the inboxes of their instances' partitions, several in one message. */
#include "clock.h"
#include "message_route.h"
#include "result_list.h"
#include "subject.h"
#include "worker_parts.h"
#include <assert.h>

enum {
    HEADER_ROOM_BYTES = 4096,   /* of the server's max_payload, for ids */
    LIST_BYTES_MAX = 64 * 1024, /* of several results in one message */
};

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
static struct activity_place worker_results_place_of(const struct worker_host *host,
                                                     const struct thole_activity *act)
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

static thole_status worker_results_encode(const struct worker_host *host, struct thole_activity *act,
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
                              .source.place = worker_results_place_of(host, act),
                              .nonce = item->nonce};
    if (server_max > HEADER_ROOM_BYTES && payload_max > server_max - HEADER_ROOM_BYTES)
        payload_max = server_max - HEADER_ROOM_BYTES;
    if (payload_max > MESSAGE_BYTES_MAX - HEADER_ROOM_BYTES)
        payload_max = MESSAGE_BYTES_MAX - HEADER_ROOM_BYTES; /* a larger message could not be stored */
    buf_init(&details, DETAILS_BYTES_MAX);
    activity_result(act, payload_max, text, &message);
    add_details(act, payload_max, &details, &message);
    message_into_range(&message); /* a clock may say anything */
    thole_status const status = message_encode(&message, body);
    buf_release(&details);
    return status == THOLE_OK ? status : thole_fail(reterr, status, "cannot encode a result");
}

/* ---- several in one message ---- */

/* Results for one partition, on their way into one message. */
struct list {
    struct worker_host *host;
    struct buf items;                    /* as result_list_add() writes them */
    struct thole_activity *first, *last; /* linked by published_next */
    size_t len;
};

static bool worker_results_has_room(const struct list *list, size_t message_bytes)
{
    size_t const server_max = connection_max_payload(list->host->connection);
    size_t most = LIST_BYTES_MAX;
    if (server_max > HEADER_ROOM_BYTES && most > server_max - HEADER_ROOM_BYTES)
        most = server_max - HEADER_ROOM_BYTES;
    return list->len < RESULT_LIST_MAX &&
           list->items.len + result_list_bytes(message_bytes) + RESULT_LIST_ROOM_BYTES <= most;
}

static void worker_results_answer(struct worker_host *host, struct thole_activity *act, bool ok,
                                  uint32_t err_code)
{
    act->published_ok = ok;
    act->publish_err_code = err_code;
    mailbox_push(&host->inbox, &act->published.mail);
}

/* Results that were refused together are sent alone from then on: the stream may refuse one of them, or all
 * of them may be too large together. */
static void answer_all(struct worker_host *host, struct thole_activity *first, bool ok, uint32_t err_code)
{
    bool const several = first->published_next != NULL;
    for (struct thole_activity *act = first, *next; act != NULL; act = next) {
        next = act->published_next;
        act->publish_alone |= several && !ok && err_code != 0;
        worker_results_answer(host, act, ok, err_code);
    }
}

static thole_status worker_results_write_message(const struct list *list, struct buf *subject,
                                                 struct buf *body, thole_error *reterr)
{
    const struct worker_host *const host = list->host;
    uint32_t const p = list->first->partition;
    if (buf_status(&list->items) != THOLE_OK)
        return thole_fail(reterr, buf_status(&list->items), "results do not fit in a message");
    if (list->len > 1) {
        THOLE_TRY(subject_results(subject, host->options.ns, p, reterr));
        result_list_write(buf_bytes(&list->items), body);
    } else {
        struct message_route const route =
            message_route(&(struct message){.kind = MESSAGE_ACTIVITY_RESULT}, SENDER_WORKER);
        THOLE_TRY(subject_inbox(subject, host->options.ns, p, thole_slice_from(route.text),
                                list->first->message->item.instance, reterr));
        buf_slice(body, result_list_only(buf_bytes(&list->items)));
    }
    return buf_status(body) == THOLE_OK
               ? THOLE_OK
               : thole_fail(reterr, buf_status(body), "results do not fit in a message");
}

/* Without a message id: on three replicas a server may answer "duplicate" for a message that it has lost. A
 * result that comes twice is dropped by its receiver, who knows what it resolves. */
static thole_status worker_results_send(const struct list *list, thole_error *reterr)
{
    struct buf subject, body;
    buf_init(&subject, SUBJECT_BYTES_MAX);
    buf_init(&body, MESSAGE_BYTES_MAX);
    thole_status status = worker_results_write_message(list, &subject, &body, reterr);
    if (status == THOLE_OK) {
        struct publish const publish = {.subject = buf_cstr(&subject), .body = buf_bytes(&body)};
        status = requests_publish(list->host->requests, &publish, (uint64_t)(uintptr_t)list->first, reterr);
    }
    buf_release(&subject);
    buf_release(&body);
    return status;
}

static void worker_results_finish(struct list *list)
{
    thole_error error = {.status = THOLE_OK};
    if (list->len > 0 && worker_results_send(list, &error) != THOLE_OK) { /* no callback comes */
        nats_watch_failed(&list->host->nats, error.status);
        log_line(LOG_LEVEL_DEBUG, "worker", "publishing results: %s", error.text);
        answer_all(list->host, list->first, false, 0);
    }
    buf_clear(&list->items);
    list->first = list->last = NULL;
    list->len = 0;
}

static void worker_results_append(struct list *list, struct thole_activity *act, thole_slice message)
{
    result_list_add(&list->items, message);
    act->published_next = NULL;
    if (list->len++ == 0)
        list->first = act;
    else
        list->last->published_next = act;
    list->last = act;
}

static void worker_results_add(struct list *list, struct thole_activity *act)
{
    bool const alone = act->publish_alone || !act->message->item.lists;
    thole_error error = {.status = THOLE_OK};
    struct buf message;
    buf_init(&message, MESSAGE_BYTES_MAX - RESULT_LIST_ROOM_BYTES);
    if (worker_results_encode(list->host, act, &message, &error) != THOLE_OK) {
        log_line(LOG_LEVEL_DEBUG, "worker", "publishing a result: %s", error.text);
        worker_results_answer(list->host, act, false, 0);
    } else {
        if (alone || !worker_results_has_room(list, message.len))
            worker_results_finish(list);
        worker_results_append(list, act, buf_bytes(&message));
        if (alone)
            worker_results_finish(list);
    }
    buf_release(&message);
}

/* Those of one partition, in their order. */
void worker_results_publish(struct worker_host *host, const uint64_t *ids, size_t len)
{
    struct list list = {.host = host};
    bool taken[WORKER_CLAIM_MAX] = {false};
    assert(len <= WORKER_CLAIM_MAX);
    buf_init(&list.items, MESSAGE_BYTES_MAX);
    for (size_t i = 0; i < len; i++) {
        uint32_t const p = worker_activity(ids[i])->partition;
        if (taken[i])
            continue;
        for (size_t j = i; j < len; j++) {
            struct thole_activity *const act = worker_activity(ids[j]);
            if (taken[j] || act->partition != p)
                continue;
            taken[j] = true;
            worker_results_add(&list, act);
        }
        worker_results_finish(&list);
    }
    buf_release(&list.items);
}

void worker_result_done(void *arg, const struct request_done *done)
{
    struct worker_host *const host = arg;
    nats_watch_answered(&host->nats, done->result, done->err_code);
    answer_all(host, (struct thole_activity *)(uintptr_t)done->token, done->result == REQUEST_STORED,
               done->err_code);
}
