#include "presence.h"
#include "link.h"
#include "memory.h"
#include "message.h"
#include "subject.h"
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

enum {
    NUMBER_DIGITS = 32,
    NUMBER_FOR_MS =
        1000, /* questions within it have the same number; answers with the one before are taken */
    ASKED_FOR_MS = 60000, /* an engine that is not asked again within it may have gone for good */
    PLACE_BYTES = LINK_INBOX_BYTES + THOLE_NAME_BYTES_MAX + 2,
};

/* An engine that is asked, with a subscription of its own: only so it is known for whom there are no
 * responders. */
struct asked {
    struct presence *presence;
    struct asked *next;
    struct subscription *answers;
    uint64_t at_ms;
    char node[THOLE_NAME_BYTES_MAX + 1];
};

struct presence {
    struct connection *connection;
    struct subscription *questions;
    presence_fn *each;
    void *arg;
    struct asked *asked;                  /* of the thread that asks */
    char inbox[LINK_INBOX_BYTES];         /* answers about <node> come to <inbox>.<node> */
    char root[THOLE_NAME_BYTES_MAX + 32]; /* thole.<ns>.engines */
    char subject[2 * THOLE_NAME_BYTES_MAX + 32];
    pthread_mutex_t lock; /* guards the rest */
    uint64_t number_ms;   /* when the number was made; 0: there is none */
    char number[NUMBER_DIGITS + 1], number_before[NUMBER_DIGITS + 1];
    char hash[PRESENCE_HASH_MAX + 1];
};

/* ---- answering ---- */

void presence_stand_by(struct presence *presence, const char *hash)
{
    pthread_mutex_lock(&presence->lock);
    (void)snprintf(presence->hash, sizeof presence->hash, "%s", hash);
    pthread_mutex_unlock(&presence->lock);
}

static void presence_on_question(void *arg, const struct delivery *delivery)
{
    struct presence *const presence = arg;
    char body[NUMBER_DIGITS + PRESENCE_HASH_MAX + 2], reply[SUBJECT_BYTES_MAX];
    if (delivery->body.len != NUMBER_DIGITS || !subject_is_reply(delivery->reply))
        return;                                              /* not from an engine */
    memcpy(reply, delivery->reply.ptr, delivery->reply.len); /* shorter, as subject_is_reply() has seen */
    reply[delivery->reply.len] = '\0';
    pthread_mutex_lock(&presence->lock);
    int const n = snprintf(body, sizeof body, "%.*s %s", THOLE_FMT(delivery->body), presence->hash);
    pthread_mutex_unlock(&presence->lock);
    if (n < NUMBER_DIGITS || (size_t)n >= sizeof body)
        return;
    if (connection_publish(presence->connection, reply, NULL, 0, (thole_slice){(uint8_t *)body, (size_t)n},
                           NULL) != THOLE_OK)
        return; /* will be asked again */
}

thole_status presence_answer(struct presence *presence, thole_error *reterr)
{
    return connection_subscribe(presence->connection, presence->subject, presence_on_question, presence,
                                &presence->questions, reterr);
}

void presence_quiet(struct presence *presence)
{
    subscription_close(presence->questions);
    presence->questions = NULL;
}

/* ---- asking ---- */

bool presence_parse(thole_slice body, thole_slice *ret_number, thole_slice *ret_hash)
{
    if (body.len <= NUMBER_DIGITS + 1 || body.ptr[NUMBER_DIGITS] != ' ' ||
        body.len > NUMBER_DIGITS + 1 + PRESENCE_HASH_MAX)
        return false;
    for (size_t i = 0; i < body.len; i++)
        if ((body.ptr[i] <= ' ' || body.ptr[i] > '~') && i != NUMBER_DIGITS)
            return false;
    *ret_number = (thole_slice){body.ptr, NUMBER_DIGITS};
    *ret_hash = (thole_slice){body.ptr + NUMBER_DIGITS + 1, body.len - NUMBER_DIGITS - 1};
    return true;
}

static bool is_asked(struct presence *presence, thole_slice number)
{
    pthread_mutex_lock(&presence->lock);
    bool const asked = memcmp(number.ptr, presence->number, NUMBER_DIGITS) == 0 ||
                       (presence->number_before[0] != '\0' &&
                        memcmp(number.ptr, presence->number_before, NUMBER_DIGITS) == 0);
    pthread_mutex_unlock(&presence->lock);
    return asked;
}

static void presence_on_answer(void *arg, const struct delivery *delivery)
{
    const struct asked *const asked = arg;
    struct presence *const presence = asked->presence;
    thole_slice const node = thole_slice_from(asked->node);
    thole_slice number, hash;
    if (delivery->no_responders)
        presence->each(presence->arg, node, (thole_slice){NULL, 0});
    else if (presence_parse(delivery->body, &number, &hash) && is_asked(presence, number))
        presence->each(presence->arg, node, hash);
}

/* Under the lock. */
static thole_status renew_number(struct presence *presence, thole_error *reterr)
{
    uint64_t random[2];
    uint64_t const now_ms = link_now_ms();
    if (presence->number_ms != 0 && now_ms < presence->number_ms + NUMBER_FOR_MS)
        return THOLE_OK;
    if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random)
        return thole_fail(reterr, THOLE_UNSUPPORTED, "the system gives no random numbers");
    memcpy(presence->number_before, presence->number, sizeof presence->number);
    (void)snprintf(presence->number, sizeof presence->number, "%016" PRIx64 "%016" PRIx64, random[0],
                   random[1]);
    presence->number_ms = now_ms;
    return THOLE_OK;
}

static void presence_forget(struct asked **at)
{
    struct asked *const asked = *at;
    *at = asked->next;
    subscription_close(asked->answers);
    free(asked);
}

/* Listens for answers about the node, and no more for those about nodes that are not asked any more. */
static thole_status listen_for(struct presence *presence, thole_slice node, thole_error *reterr)
{
    char subject[PLACE_BYTES];
    uint64_t const now_ms = link_now_ms();
    struct asked **at = &presence->asked;
    while (*at != NULL && !thole_slice_equal(thole_slice_from((*at)->node), node)) {
        if (now_ms >= (*at)->at_ms + ASKED_FOR_MS)
            presence_forget(at);
        else
            at = &(*at)->next;
    }
    if (*at != NULL) {
        (*at)->at_ms = now_ms;
        return THOLE_OK;
    }
    struct asked *const asked = memory_new(sizeof *asked);
    *asked = (struct asked){.presence = presence, .at_ms = now_ms};
    (void)snprintf(asked->node, sizeof asked->node, "%.*s", THOLE_FMT(node));
    (void)snprintf(subject, sizeof subject, "%s.%s", presence->inbox, asked->node);
    thole_status const status = connection_subscribe(presence->connection, subject, presence_on_answer, asked,
                                                     &asked->answers, reterr);
    if (status == THOLE_OK)
        *at = asked;
    else
        free(asked);
    return status;
}

thole_status presence_ask(struct presence *presence, thole_slice node, thole_error *reterr)
{
    char number[NUMBER_DIGITS + 1], subject[2 * THOLE_NAME_BYTES_MAX + 32], reply[PLACE_BYTES];
    natsMsg *message;
    bool sent;
    THOLE_TRY(name_check(node, "node", reterr));
    THOLE_TRY(listen_for(presence, node, reterr));
    pthread_mutex_lock(&presence->lock);
    thole_status status = renew_number(presence, reterr);
    memcpy(number, presence->number, sizeof number);
    pthread_mutex_unlock(&presence->lock);
    if (status != THOLE_OK)
        return status;
    (void)snprintf(subject, sizeof subject, "%s.%.*s", presence->root, THOLE_FMT(node));
    (void)snprintf(reply, sizeof reply, "%s.%.*s", presence->inbox, THOLE_FMT(node));
    THOLE_TRY(link_message(subject, reply, NULL, 0, thole_slice_from(number), &message, reterr));
    struct link *const link = link_acquire(presence->connection);
    status = link == NULL ? thole_fail(reterr, THOLE_UNAVAILABLE, "asking the engines: not connected to NATS")
                          : link_send(link, message, &sent, reterr);
    link_release(link);
    link_message_free(message);
    return status;
}

/* ---- open, close ---- */

thole_status presence_open(struct connection *connection, const char *ns, const char *node, presence_fn *each,
                           void *arg, struct presence **ret, thole_error *reterr)
{
    THOLE_TRY(name_check(thole_slice_from(ns), "namespace", reterr));
    THOLE_TRY(name_check(thole_slice_from(node), "node", reterr));
    struct presence *const presence = memory_new(sizeof *presence);
    presence->connection = connection;
    presence->each = each;
    presence->arg = arg;
    pthread_mutex_init(&presence->lock, NULL);
    connection_inbox(connection, presence->inbox);
    (void)snprintf(presence->root, sizeof presence->root, "thole.%s.engines", ns);
    (void)snprintf(presence->subject, sizeof presence->subject, "%s.%s", presence->root, node);
    *ret = presence;
    return THOLE_OK;
}

void presence_close(struct presence *presence)
{
    if (presence == NULL)
        return;
    subscription_close(presence->questions);
    while (presence->asked != NULL)
        presence_forget(&presence->asked);
    pthread_mutex_destroy(&presence->lock);
    free(presence);
}
