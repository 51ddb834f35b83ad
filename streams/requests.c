/* The window of requests. */
#include "requests.h"
#include "api.h"
#include "api_prefix.h"
#include "inflow.h"
#include "jscan.h"
#include "link.h"
#include "memory.h"
#include "push_consumer.h"
#include <assert.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ERR_TOO_MANY = 10167, HELD_TIMEOUTS = 4 };
enum { REPLY_BYTES = LINK_INBOX_BYTES + 24, NUMBER_DIGITS = 10 /* of a uint32_t */ };
static_assert(REPLY_BYTES - LINK_INBOX_BYTES >= 2 * (1 + NUMBER_DIGITS), "an inbox and an address fit");
#define NO_SLOT UINT32_MAX

enum request_form { FORM_RAW, FORM_PUBLISH, FORM_GET }; /* how its answer is read */

/* Where the answer to a request goes. */
struct place_in_window {
    char reply[REPLY_BYTES];
    uint32_t slot, generation;
    uint64_t token;
    bool held; /* a read whose turn has not come */
};

/* Such a read has no slot yet. */
struct held_read {
    struct held_read *next;
    uint64_t token, due_ms; /* given up then: who waits for it may have gone long ago */
    enum request_form form;
    size_t body_len;
    char bytes[]; /* the subject, with its NUL, and the body */
};

struct slot {
    uint64_t token, due_ms, epoch;
    uint32_t generation;     /* of the request in it; grows when it is answered */
    uint32_t prev, next;     /* in flight: by age; free: only next */
    bool in_flight, suspect; /* suspect: see requests_take_refusal() */
    bool reads;              /* one of the window's reads */
    enum request_form form;
};

struct requests {
    struct connection *connection;
    struct attachment attachment;
    struct listeners listeners;
    char inbox[LINK_INBOX_BYTES]; /* of the newest epoch; changes in up(), under the lock */
    size_t inbox_len;
    uint64_t inbox_epoch;
    pthread_mutex_t dispatch; /* held during done(): one call at a time, on any thread */
    pthread_mutex_t lock;     /* slots */
    struct slot *slots;
    uint32_t window, free_head, oldest, youngest;
    uint32_t refused, suspects; /* so many of the suspects have no responders */
    uint32_t reads;             /* in flight: at most INFLOW_READS */
    struct held_read *held_first, *held_last;
    atomic_size_t held_len; /* read without the lock, too */
    uint32_t given_up;      /* in this epoch, by time: a refusal may be theirs */
    atomic_size_t in_flight;
    uint64_t timeout_ms;
    request_done_fn *done;
    void *arg;
};

/* ---- slots; the lock is held ---- */

static uint32_t take_slot(struct requests *requests, uint64_t token, uint64_t due_ms, enum request_form form)
{
    uint32_t const at = requests->free_head;
    assert(at != NO_SLOT && at < requests->window);
    struct slot *slot = &requests->slots[at];
    assert(!slot->in_flight);
    assert(requests->inbox_epoch > 0 && requests->inbox_len > 0);
    requests->free_head = slot->next;
    slot->token = token;
    slot->form = form;
    slot->epoch = requests->inbox_epoch;
    slot->due_ms = due_ms;
    slot->in_flight = true;
    slot->prev = requests->youngest;
    slot->next = NO_SLOT;
    if (slot->prev != NO_SLOT)
        requests->slots[slot->prev].next = at;
    else
        requests->oldest = at;
    requests->youngest = at;
    atomic_fetch_add(&requests->in_flight, 1);
    return at;
}

static void free_slot(struct requests *requests, uint32_t at)
{
    struct slot *slot = &requests->slots[at];
    assert(at < requests->window && slot->in_flight);
    assert((slot->prev == NO_SLOT) == (requests->oldest == at));
    assert((slot->next == NO_SLOT) == (requests->youngest == at));
    requests->suspects -= slot->suspect;
    requests->reads -= slot->reads;
    slot->suspect = slot->reads = false;
    slot->in_flight = false;
    slot->generation++;
    if (slot->prev != NO_SLOT)
        requests->slots[slot->prev].next = slot->next;
    else
        requests->oldest = slot->next;
    if (slot->next != NO_SLOT)
        requests->slots[slot->next].prev = slot->prev;
    else
        requests->youngest = slot->prev;
    slot->next = requests->free_head;
    requests->free_head = at;
    atomic_fetch_sub(&requests->in_flight, 1);
}

static void requests_hold(struct requests *requests, const struct publish *publish, enum request_form form,
                          uint64_t token)
{
    size_t const subject_bytes = strlen(publish->subject) + 1;
    struct held_read *const held = memory_new(sizeof *held + subject_bytes + publish->body.len);
    held->token = token;
    held->due_ms = link_now_ms() + HELD_TIMEOUTS * requests->timeout_ms;
    held->form = form;
    held->body_len = publish->body.len;
    memcpy(held->bytes, publish->subject, subject_bytes);
    if (publish->body.len > 0)
        memcpy(held->bytes + subject_bytes, publish->body.ptr, publish->body.len);
    *(requests->held_first == NULL ? &requests->held_first : &requests->held_last->next) = held;
    requests->held_last = held;
    atomic_fetch_add(&requests->held_len, 1);
}

static struct held_read *take_held(struct requests *requests)
{
    struct held_read *const held = requests->held_first;
    assert(held != NULL && atomic_load(&requests->held_len) > 0);
    requests->held_first = held->next;
    atomic_fetch_sub(&requests->held_len, 1);
    return held;
}

/* ---- answers ---- */

static void decode_error(thole_slice error, struct request_done *done)
{
    thole_slice value;
    uint64_t code = 0, http = 0;
    if (json_find(error, "err_code", &value))
        (void)json_uint(value, &code);
    if (json_find(error, "code", &value))
        (void)json_uint(value, &http);
    done->err_code = code <= UINT32_MAX ? (uint32_t)code : 0;
    if (code == API_WRONG_LAST || code == API_WRONG_LAST_BUSY)
        done->result = REQUEST_REFUSED;
    else if (code == ERR_TOO_MANY || http == 503 || request_is_full(done->err_code))
        done->result = REQUEST_BUSY;
    else
        done->result = REQUEST_FAILED;
}

bool request_is_full(uint32_t err_code)
{
    return api_full(err_code) != NULL;
}

const char *request_reason(enum request_result result, uint32_t err_code)
{
    const char *const full = api_full(err_code);
    if (full != NULL)
        return full;
    switch (result) {
    case REQUEST_REFUSED: return "another one has written first";
    case REQUEST_UNKNOWN: return "it was not acknowledged in time";
    case REQUEST_BUSY: return "the stream has no leader or is busy";
    case REQUEST_ANSWERED:
    case REQUEST_STORED:
    case REQUEST_FAILED: break;
    }
    return "the server refuses it";
}

/* The pub ack: {"stream":"S","seq":7,"duplicate":true} or {"error":{…},…}. */
static void decode_publish(struct request_done *done)
{
    thole_slice value;
    if (json_find(done->body, "error", &value))
        decode_error(value, done);
    else if (json_find(done->body, "seq", &value) && json_uint(value, &done->sequence) &&
             done->sequence > 0) {
        done->result = REQUEST_STORED;
        done->duplicate = json_find(done->body, "duplicate", &value) && json_is_true(value);
    } else {
        done->result = REQUEST_FAILED; /* the answer is not from JetStream */
    }
}

/* A message with its place in headers, or a status without one. */
static void decode_get(const struct delivery *delivery, uint32_t status, struct request_done *done)
{
    if (status == 404)
        return;
    if (status == 0 && slice_uint(delivery_header(delivery, "Nats-Sequence"), &done->sequence) &&
        done->sequence > 0)
        done->subject = delivery_header(delivery, "Nats-Subject");
    else
        done->result = REQUEST_FAILED;
}

/* Reads one decimal number that ends at a dot or at the end. */
static bool requests_read_number(const char **at, uint32_t *ret)
{
    uint64_t n = 0;
    const char *c = *at;
    if (*c < '0' || *c > '9')
        return false;
    for (; *c >= '0' && *c <= '9'; c++) {
        n = n * 10 + (uint64_t)(*c - '0');
        if (n > UINT32_MAX)
            return false;
    }
    if (*c != 0 && *c != '.')
        return false;
    *at = *c == '.' ? c + 1 : c;
    *ret = (uint32_t)n;
    return true;
}

static char *write_number(char *to, uint32_t n)
{
    char digits[NUMBER_DIGITS];
    size_t len = 0;
    do
        digits[len++] = (char)('0' + n % 10);
    while ((n /= 10) > 0);
    while (len > 0)
        *to++ = digits[--len];
    return to;
}

/* .<slot>.<generation> and a NUL; by hand because it is done for every publish. */
static void write_address(char *to, uint32_t slot, uint32_t generation)
{
    *to++ = '.';
    to = write_number(to, slot);
    *to++ = '.';
    to = write_number(to, generation);
    *to = 0;
}

/* The lock is held. */
static void requests_name_place(const struct requests *requests, uint32_t at, struct place_in_window *ret)
{
    const struct slot *const slot = &requests->slots[at];
    assert(requests->inbox_len < LINK_INBOX_BYTES);
    ret->slot = at;
    ret->generation = slot->generation;
    ret->token = slot->token;
    ret->held = false;
    memcpy(ret->reply, requests->inbox, requests->inbox_len);
    write_address(ret->reply + requests->inbox_len, at, slot->generation);
}

/* <inbox>.<slot>.<generation> */
static bool read_address(const char *subject, uint32_t *ret_slot, uint32_t *ret_generation)
{
    const char *at = subject + strlen(subject);
    for (int dots = 0; at > subject; at--) {
        if (at[-1] == '.' && ++dots == 2)
            return requests_read_number(&at, ret_slot) && requests_read_number(&at, ret_generation) &&
                   *at == 0;
    }
    return false;
}

/*
 * Requests without responders. nats.c tells that there is one, but not which: any of those in flight may be
 * it, and all of these are suspects. The server answers the others, and when there are no more suspects than
 * refusals, all of them have no responders. What is not certain stays in flight until its time is over, and
 * is then answered with REQUEST_UNKNOWN.
 */
static void requests_take_refusal(struct requests *requests, uint64_t epoch)
{
    pthread_mutex_lock(&requests->lock);
    if (epoch == requests->inbox_epoch && requests->given_up > 0) {
        requests->given_up--;
    } else if (epoch == requests->inbox_epoch) {
        requests->refused++;
        requests->suspects = 0;
        for (uint32_t at = requests->oldest; at != NO_SLOT; at = requests->slots[at].next) {
            requests->slots[at].suspect = true;
            requests->suspects++;
        }
    }
    pthread_mutex_unlock(&requests->lock);
}

/* The lock is held. */
static void forget_refusals(struct requests *requests)
{
    for (uint32_t at = requests->oldest; at != NO_SLOT; at = requests->slots[at].next)
        requests->slots[at].suspect = false;
    requests->refused = requests->suspects = 0;
}

/* Answers the suspects when it is certain; dispatch is held. */
static void settle_refusals(struct requests *requests)
{
    for (;;) {
        pthread_mutex_lock(&requests->lock);
        bool const certain = requests->refused > 0 && requests->suspects <= requests->refused;
        uint32_t at = certain ? requests->oldest : NO_SLOT;
        while (at != NO_SLOT && !requests->slots[at].suspect)
            at = requests->slots[at].next;
        uint64_t const token = at == NO_SLOT ? 0 : requests->slots[at].token;
        if (at != NO_SLOT) {
            free_slot(requests, at);
            requests->refused--;
        } else if (certain) {
            requests->refused = 0;
        }
        pthread_mutex_unlock(&requests->lock);
        if (at == NO_SLOT)
            return;
        requests->done(requests->arg, &(struct request_done){.result = REQUEST_BUSY, .token = token});
    }
}

static void requests_take_answer(struct requests *requests, natsMsg *message)
{
    struct delivery const delivery = link_delivery(message);
    struct request_done done = {.result = REQUEST_ANSWERED, .body = delivery.body};
    uint32_t at, generation;
    thole_slice text;
    if (!read_address(natsMsg_GetSubject(message), &at, &generation) || at >= requests->window)
        return;
    pthread_mutex_lock(&requests->lock);
    struct slot const slot = requests->slots[at];
    bool const mine = slot.in_flight && slot.generation == generation;
    if (mine)
        free_slot(requests, at);
    pthread_mutex_unlock(&requests->lock);
    if (!mine)
        return;
    done.token = slot.token;
    if (slot.form == FORM_PUBLISH)
        decode_publish(&done);
    else if (slot.form == FORM_GET)
        decode_get(&delivery, link_status(&delivery, &text), &done);
    requests->done(requests->arg, &done);
}

/* Frees a slot for which nothing was sent. False: its callback was called meanwhile. */
static bool requests_unreserve(struct requests *requests, const struct place_in_window *place)
{
    pthread_mutex_lock(&requests->lock);
    struct slot const *slot = &requests->slots[place->slot];
    bool const mine = slot->in_flight && slot->generation == place->generation;
    if (mine)
        free_slot(requests, place->slot);
    pthread_mutex_unlock(&requests->lock);
    return mine;
}

/* ---- reads that wait; dispatch is held ---- */

/* The next one that may be sent, with a slot now; NULL: none. */
static struct held_read *next_read(struct requests *requests, const struct link *link,
                                   struct place_in_window *ret)
{
    struct held_read *held = NULL;
    uint64_t const due_ms = link_now_ms() + requests->timeout_ms;
    pthread_mutex_lock(&requests->lock);
    if (requests->held_first != NULL && requests->reads < INFLOW_READS && requests->free_head != NO_SLOT &&
        requests->inbox_epoch == link->epoch) {
        held = take_held(requests);
        uint32_t const at = take_slot(requests, held->token, due_ms, held->form);
        requests->slots[at].reads = true;
        requests->reads++;
        requests_name_place(requests, at, ret);
        connection_alarm_by(requests->connection, &requests->attachment, due_ms);
    }
    pthread_mutex_unlock(&requests->lock);
    return held;
}

static void requests_send_held(struct requests *requests)
{
    struct place_in_window place;
    bool sent;
    if (atomic_load(&requests->held_len) == 0) /* as nearly always */
        return;
    struct link *const link = link_acquire(requests->connection);
    for (struct held_read *held; link != NULL && (held = next_read(requests, link, &place)) != NULL;
         free(held)) {
        thole_slice const body = {(const uint8_t *)held->bytes + strlen(held->bytes) + 1, held->body_len};
        thole_status const status = link_send_bytes(link, held->bytes, place.reply, body, &sent, NULL);
        if (status != THOLE_OK && !sent && requests_unreserve(requests, &place))
            requests->done(requests->arg,
                           &(struct request_done){.result = REQUEST_UNKNOWN, .token = place.token});
    }
    link_release(link);
}

static void requests_on_answer(void *arg, natsMsg **message, uint64_t epoch)
{
    struct requests *requests = arg;
    pthread_mutex_lock(&requests->dispatch);
    if (*message == NULL)
        requests_take_refusal(requests, epoch);
    else
        requests_take_answer(requests, *message);
    settle_refusals(requests);
    requests_send_held(requests);
    pthread_mutex_unlock(&requests->dispatch);
}

/* Those that are due by @p now. The lock is held; gives it back. */
static void give_up_held(struct requests *requests, bool lost, uint64_t now)
{
    while (requests->held_first != NULL && requests->held_first->due_ms <= now) {
        struct held_read *const held = take_held(requests);
        pthread_mutex_unlock(&requests->lock);
        requests->done(requests->arg,
                       &(struct request_done){.result = REQUEST_UNKNOWN, .token = held->token, .lost = lost});
        free(held);
        pthread_mutex_lock(&requests->lock);
    }
    pthread_mutex_unlock(&requests->lock);
}

/* Answers with REQUEST_UNKNOWN, oldest first: those of epochs up to @p epoch, or those due by @p now. */
static void requests_give_up(struct requests *requests, uint64_t epoch, uint64_t now)
{
    pthread_mutex_lock(&requests->dispatch);
    for (;;) {
        pthread_mutex_lock(&requests->lock);
        uint32_t const at = requests->oldest;
        bool const found =
            at != NO_SLOT && (requests->slots[at].epoch <= epoch || requests->slots[at].due_ms <= now);
        uint64_t const token = found ? requests->slots[at].token : 0;
        bool const lost = found && requests->slots[at].epoch <= epoch;
        if (found) {
            free_slot(requests, at);
            forget_refusals(requests); /* this request may have been one of them */
            requests->given_up++;
        }
        pthread_mutex_unlock(&requests->lock);
        if (!found)
            break;
        requests->done(requests->arg,
                       &(struct request_done){.result = REQUEST_UNKNOWN, .token = token, .lost = lost});
    }
    pthread_mutex_lock(&requests->lock);
    give_up_held(requests, epoch > 0, epoch > 0 ? UINT64_MAX : now); /* all that wait are of the newest one */
    requests_send_held(requests);
    pthread_mutex_unlock(&requests->dispatch);
}

/* ---- following the connection ---- */

static void requests_up(void *arg, struct link *link)
{
    struct requests *requests = arg;
    char inbox[LINK_INBOX_BYTES], pattern[LINK_INBOX_BYTES + 8];
    struct listener *listener = NULL;
    connection_inbox(requests->connection, inbox);
    (void)snprintf(pattern, sizeof pattern, "%s.*.*", inbox);
    if (listener_open(link, pattern, NULL, requests_on_answer, requests, &listener, NULL) != THOLE_OK)
        link_break(link);
    listeners_replace(&requests->listeners, listener);
    pthread_mutex_lock(&requests->lock);
    assert(requests->inbox_epoch == 0); /* down() has come for the last one */
    memcpy(requests->inbox, inbox, sizeof inbox);
    requests->inbox_len = strlen(inbox);
    requests->inbox_epoch = listener == NULL ? 0 : link->epoch;
    requests->given_up = 0;
    pthread_mutex_unlock(&requests->lock);
}

static void requests_down(void *arg, uint64_t epoch)
{
    struct requests *requests = arg;
    pthread_mutex_lock(&requests->lock);
    assert(requests->inbox_epoch == 0 || requests->inbox_epoch == epoch);
    requests->inbox_epoch = 0; /* later answers are ignored */
    pthread_mutex_unlock(&requests->lock);
    requests_give_up(requests, epoch, 0);
}

static void requests_fire(void *arg)
{
    struct requests *requests = arg;
    requests_give_up(requests, 0, link_now_ms());
    pthread_mutex_lock(&requests->lock);
    if (requests->oldest != NO_SLOT)
        connection_alarm_by(requests->connection, &requests->attachment,
                            requests->slots[requests->oldest].due_ms);
    pthread_mutex_unlock(&requests->lock);
}

thole_status requests_open(struct connection *connection, size_t window, uint64_t timeout_ms,
                           request_done_fn *done, void *arg, struct requests **ret, thole_error *reterr)
{
    if (window == 0 || window >= NO_SLOT || timeout_ms == 0)
        return thole_fail(reterr, THOLE_INVALID, "a window of %zu requests with a timeout of %llu ms", window,
                          (unsigned long long)timeout_ms);
    struct requests *requests = memory_new(sizeof *requests);
    struct slot *slots = memory_array(window, sizeof *slots);
    *requests = (struct requests){.connection = connection,
                                  .slots = slots,
                                  .window = (uint32_t)window,
                                  .free_head = 0,
                                  .oldest = NO_SLOT,
                                  .youngest = NO_SLOT,
                                  .timeout_ms = timeout_ms,
                                  .done = done,
                                  .arg = arg};
    requests->attachment =
        (struct attachment){.up = requests_up, .down = requests_down, .fire = requests_fire, .arg = requests};
    for (uint32_t i = 0; i < requests->window; i++)
        slots[i].next = i + 1 < requests->window ? i + 1 : NO_SLOT;
    pthread_mutex_init(&requests->dispatch, NULL);
    pthread_mutex_init(&requests->lock, NULL);
    connection_attach(connection, &requests->attachment);
    *ret = requests;
    return THOLE_OK;
}

void requests_close(struct requests *requests)
{
    if (requests == NULL)
        return;
    connection_detach(requests->connection, &requests->attachment);
    pthread_mutex_lock(&requests->lock);
    requests->inbox_epoch = 0;
    pthread_mutex_unlock(&requests->lock);
    listeners_close(&requests->listeners);
    requests_give_up(requests, UINT64_MAX, 0);
    assert(requests->oldest == NO_SLOT && requests->youngest == NO_SLOT && requests->held_first == NULL);
    assert(atomic_load(&requests->in_flight) == 0); /* each has been answered */
    pthread_mutex_destroy(&requests->lock);
    pthread_mutex_destroy(&requests->dispatch);
    free(requests->slots);
    free(requests);
}

size_t requests_in_flight(const struct requests *requests)
{
    struct requests *const all = (struct requests *)(uintptr_t)requests;
    return atomic_load(&all->in_flight) + atomic_load(&all->held_len);
}

/* ---- sending ---- */

/* Takes a slot of this link's epoch, or keeps a read whose turn has not come. */
static thole_status requests_reserve(struct requests *requests, const struct link *link,
                                     const struct publish *publish, enum request_form form, uint64_t token,
                                     struct place_in_window *ret, thole_error *reterr)
{
    uint64_t const due_ms = link_now_ms() + requests->timeout_ms;
    bool const reads = link_is_read(publish->subject);
    thole_status status = THOLE_OK;
    pthread_mutex_lock(&requests->lock);
    bool const full = requests_in_flight(requests) >= requests->window;
    /* after the held ones, while an answer is to come that continues with them */
    ret->held =
        reads && (requests->reads == INFLOW_READS || (requests->held_first != NULL && requests->reads > 0));
    if (requests->inbox_epoch != link->epoch) { /* connected, but up() has not come yet */
        status = thole_fail(reterr, THOLE_UNAVAILABLE, "not connected to NATS");
    } else if (full) {
        status =
            thole_fail(reterr, THOLE_LIMIT, "all %u requests of the window are in flight", requests->window);
    } else if (ret->held) {
        requests_hold(requests, publish, form, token);
    } else {
        bool const first = requests->oldest == NO_SLOT;
        uint32_t const at = take_slot(requests, token, due_ms, form);
        assert(requests->slots[at].epoch == link->epoch && requests->youngest == at);
        requests->slots[at].reads = reads;
        requests->reads += reads;
        requests_name_place(requests, at, ret);
        if (first)
            connection_alarm_by(requests->connection, &requests->attachment, due_ms);
    }
    pthread_mutex_unlock(&requests->lock);
    return status;
}

static thole_status send_with_headers(struct link *link, const char *reply, const struct publish *publish,
                                      bool *ret_sent, thole_error *reterr)
{
    natsMsg *message;
    char room[API_SUBJECT_BYTES];
    const char *const subject =
        api_prefix_apply(connection_api_prefix(link->connection), publish->subject, room);
    THOLE_TRY(link_message(subject, reply, publish->headers, publish->headers_len, publish->body, &message,
                           reterr));
    thole_status const status = link_send(link, message, ret_sent, reterr);
    link_message_free(message);
    return status;
}

/* Of @p publish the subject, the headers and the body. */
static thole_status send_request(struct requests *requests, const struct publish *publish,
                                 enum request_form form, uint64_t token, thole_error *reterr)
{
    struct place_in_window place;
    bool sent = false;
    struct link *link = link_acquire(requests->connection);
    if (link == NULL)
        return thole_fail(reterr, THOLE_UNAVAILABLE, "publish to %s: not connected to NATS",
                          publish->subject);
    thole_status status = requests_reserve(requests, link, publish, form, token, &place, reterr);
    if (status != THOLE_OK || place.held) {
        link_release(link);
        return status;
    }
    if (publish->headers_len == 0)
        status = link_send_bytes(link, publish->subject, place.reply, publish->body, &sent, reterr);
    else
        status = send_with_headers(link, place.reply, publish, &sent, reterr);
    link_release(link);
    if (status == THOLE_OK || sent) /* sent in part: answered when the connection is lost */
        return THOLE_OK;
    return requests_unreserve(requests, &place) ? status : THOLE_OK;
}

enum { PUBLISH_HEADERS_MAX = MESSAGE_HEADERS_MAX + 2 };

thole_status requests_publish(struct requests *requests, const struct publish *publish, uint64_t token,
                              thole_error *reterr)
{
    struct header headers[PUBLISH_HEADERS_MAX];
    char expected[24];
    size_t len = 0;
    if (publish->headers_len > MESSAGE_HEADERS_MAX)
        return thole_fail(reterr, THOLE_INVALID, "more than %d headers", MESSAGE_HEADERS_MAX);
    if (publish->message_id != NULL) {
        if (publish->message_id[0] == 0)
            return thole_fail(reterr, THOLE_INVALID, "message id is empty");
        headers[len++] = (struct header){"Nats-Msg-Id", thole_slice_from(publish->message_id)};
    }
    if (publish->expect_last) {
        (void)snprintf(expected, sizeof expected, "%llu", (unsigned long long)publish->expected_last);
        headers[len++] = (struct header){"Nats-Expected-Last-Sequence", thole_slice_from(expected)};
    }
    for (size_t i = 0; i < publish->headers_len; i++)
        headers[len++] = publish->headers[i];
    assert(len <= PUBLISH_HEADERS_MAX);
    struct publish const whole = {
        .subject = publish->subject, .body = publish->body, .headers = headers, .headers_len = len};
    return send_request(requests, &whole, FORM_PUBLISH, token, reterr);
}

thole_status requests_send(struct requests *requests, const char *subject, thole_slice body, uint64_t token,
                           thole_error *reterr)
{
    return send_request(requests, &(struct publish){.subject = subject, .body = body}, FORM_RAW, token,
                        reterr);
}

thole_status requests_get(struct requests *requests, const char *subject, thole_slice body, uint64_t token,
                          thole_error *reterr)
{
    return send_request(requests, &(struct publish){.subject = subject, .body = body}, FORM_GET, token,
                        reterr);
}
