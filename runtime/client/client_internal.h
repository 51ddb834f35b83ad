/* Inside the client library. */
#ifndef THOLE_CLIENT_INTERNAL_H
#define THOLE_CLIENT_INTERNAL_H
#include "event.h"
#include "log_rule.h"
#include "message_route.h"
#include "postgres.h"
#include "query_store.h"
#include "reader.h"
#include "repetition.h"
#include "requests.h"
#include "subject.h"
#include "thole/client.h"
#include "topology.h"
#include "watch_table.h"
#include <pthread.h>
#include <stdatomic.h>

enum {
    CLIENT_WINDOW = 4096, /* requests in flight, of all threads together */
    CLIENT_TIMEOUT_MS_DEFAULT = 5000,
    CLIENT_ARENA_MAX = 64 * 1024 * 1024,
    MESSAGE_OVERHEAD = 5120, /* of an inbox message and its headers around the payload */
    REQUEST_ID_BYTES = 32,   /* 16 random bytes in hex */
};

struct client_queues { /* by queue and worker, in the arena */
    thole_slice queue; /* in; empty = all */
    struct arena arena;
    struct queue_row *rows;
    size_t rows_len;
    struct queue_activity *activities;
    size_t activities_len;
};
THOLE_NODISCARD thole_status client_read_queues(struct thole_client *client, struct client_queues *queues,
                                                thole_error *reterr);
/* Up to which sequence of its log the rows of partition @p p are made. */
THOLE_NODISCARD thole_status client_read_watermark(struct thole_client *client, uint32_t p, uint64_t *ret,
                                                   thole_error *reterr);

/*
 * How the client receives notices. A single watch subscribes to its instance. Two or more watches at a time,
 * or one soon after the other, share one subscription to the whole namespace, so that not each instance needs
 * one. The server ends the shared subscription a second after the last watch. If most of its notices are for
 * other clients, each watch has its own subscription for a while.
 */
struct listening {
    pthread_mutex_t turn; /* held while a subscription is made or ended; outside client.lock */
    struct subscription *together;
    /* Under client.lock: */
    size_t listeners, together_users;
    uint64_t left_ms;                  /* when a watch stopped listening last; 0: none has */
    uint64_t heard, heard_own;         /* notices by the subscription of all, since they were judged */
    uint64_t apart_until_ms, apart_ms; /* no subscription of all until then; how long it was the last time */
};

struct thole_client {
    struct connection *connection;
    struct requests *requests;
    struct topology topology;
    uint64_t timeout_ms;
    size_t payload_max;
    pthread_mutex_t lock; /* guards the next two and what struct watch and struct listening say; never held
                             while calling streams/ */
    struct watch_table watches;
    uint64_t tokens; /* the last one given out */
    struct listening listening;
    atomic_bool inbox_denied;      /* the user may not read the inboxes: pending_start.h */
    atomic_size_t loops;           /* loops that run its calls on tasks: client_task.h */
    pthread_mutex_t postgres_lock; /* held while a statement runs; guards the next two */
    struct postgres *postgres;
    char *conninfo;
    char *ns;
    char *actor, *name; /* of all its requests */
    bool vouched;       /* the actor stands in the subjects */
};

/* Milliseconds of the monotonic clock; for deadlines. UINT64_MAX in a task that was abandoned: all its time
 * is over (client_task.h). */
uint64_t client_now_ms(void);

struct request_id {
    char text[REQUEST_ID_BYTES + 1];
};
THOLE_NODISCARD thole_status request_id_make(struct request_id *ret, thole_error *reterr);
/* "checkout-3f9c2a7be1d04c58": an id for an instance whose user gave it none. */
enum { CHOSEN_ID_BYTES = THOLE_NAME_BYTES_MAX + 20 };
THOLE_NODISCARD thole_status client_choose_id(thole_slice orchestration, char ret[CHOSEN_ID_BYTES],
                                              thole_error *reterr);
/* A message as it is published. */
struct letter {
    struct message_route route;
    thole_slice actor; /* the actor named by the subject; borrowed. Empty: the body names the actor, if
                          anything does */
    struct buf body;
};
/* THOLE_INVALID: a name that is too long, or no UTF-8, or vouched for and none. Borrows. */
/* USER@HOST, as far as the system knows them; for free(). */
char *client_own_actor(void);
THOLE_NODISCARD thole_status client_sender(const thole_sender *given, struct actor *ret, thole_error *reterr);
/* Adds to the text of a refusal what to try when its subject has an actor. */
thole_status letter_advise(const struct letter *letter, thole_status status, thole_error *reterr);
/* The letter's body must be initialised. A message whose sender has no name has the client's. */
THOLE_NODISCARD thole_status client_encode(const struct thole_client *client, const struct message *message,
                                           struct letter *to, thole_error *reterr);
/* THOLE_LIMIT unless so many bytes of payload are allowed and fit into a message. @p what: "input". */
THOLE_NODISCARD thole_status client_check_payload(const struct thole_client *client, const char *what,
                                                  size_t bytes, thole_error *reterr);

/* The id, the names and the sizes of a start. */
THOLE_NODISCARD thole_status client_check_start(const struct thole_client *client,
                                                const struct message *start, thole_error *reterr);

/* THOLE_INVALID with the id, as far as it can be shown, and the rule that it breaks. Engines have the same.
 */
THOLE_NODISCARD thole_status client_check_id(thole_slice instance, thole_error *reterr);
/* Empty: it is chosen. */
THOLE_NODISCARD thole_status client_check_request_id(thole_slice request_id, thole_error *reterr);
THOLE_NODISCARD thole_status client_check_reason(thole_slice reason, thole_error *reterr);

/* An instance's stream of kind "IN" or "HIST" and its subject there. Released by place_release(), also after
 * an error and when zeroed. */
struct place {
    struct buf stream, subject;
};
THOLE_NODISCARD thole_status place_inbox(const struct thole_client *client, thole_slice instance,
                                         const struct letter *letter, struct place *ret, thole_error *reterr);
THOLE_NODISCARD thole_status place_history(const struct thole_client *client, thole_slice instance,
                                           struct place *ret, thole_error *reterr);
THOLE_NODISCARD thole_status place_execution(const struct thole_client *client, thole_slice instance,
                                             uint64_t execution, struct place *ret, thole_error *reterr);
THOLE_NODISCARD thole_status place_deletion(const struct thole_client *client, thole_slice instance,
                                            struct place *ret, thole_error *reterr);
THOLE_NODISCARD thole_status place_epoch(const struct thole_client *client, thole_slice instance,
                                         struct place *ret, thole_error *reterr);
void place_release(struct place *place);
/*
 * Reads at a place: streams/reader.h. An engine has made the streams of instances before any client could
 * open the namespace: a stream that is missing now was lost. The status is then THOLE_UNAVAILABLE, not that
 * of a missing instance.
 */
THOLE_NODISCARD thole_status place_last(const struct thole_client *client, const struct place *place,
                                        uint64_t *ret_sequence, struct buf *ret_body, thole_error *reterr);
THOLE_NODISCARD thole_status place_find(const struct thole_client *client, const struct place *place,
                                        uint64_t from, struct stored_message *ret, struct buf *ret_body,
                                        thole_error *reterr);
THOLE_NODISCARD thole_status place_message(const struct thole_client *client, const struct place *place,
                                           uint64_t sequence, bool *ret_there, struct buf *ret_body,
                                           thole_error *reterr);
THOLE_NODISCARD thole_status place_walk(const struct thole_client *client, const struct place *place,
                                        uint64_t from, uint64_t to, stream_read_fn *each, void *arg,
                                        thole_error *reterr);
/* @p status of a look into a stream of instances; NOT_FOUND becomes what it means. */
THOLE_NODISCARD thole_status place_status(thole_status status, const char *stream, thole_error *reterr);

/* A record of @p instance's history, a turn or a deletion, in @p arena; THOLE_CORRUPT when it is anything
 * else. The turn of a deletion is empty. */
THOLE_NODISCARD thole_status history_decode(thole_slice bytes, thole_slice instance, struct arena *arena,
                                            struct record *ret, thole_error *reterr);
/* The event that ends the instance, or NULL: the last event of its turn. Continuing as new is no end. */
const struct event *turn_end(const struct turn *turn);
/* The status of an instance that ended with such an event. */
thole_instance_status end_status(enum event_kind end);
/* The request id of the STARTED event; empty when the turn has none. */
thole_slice turn_request(const struct turn *turn);

/* Reads the partition's last EpochOpened, for log_rule_surely_void(). */
THOLE_NODISCARD thole_status owner_read(struct thole_client *client, thole_slice instance,
                                        struct log_rule *ret, thole_error *reterr);

/* The id may have belonged to a deleted instance before. Records before the deletion may still exist for a
 * while, and do not count. */
struct life {
    uint64_t deleted; /* sequence of the last deletion; 0: there was none */
    uint64_t first;   /* execution with which the instance begins */
};
THOLE_NODISCARD thole_status life_read(struct thole_client *client, thole_slice instance, struct life *ret,
                                       thole_error *reterr);

/* The first turn of the instance's first execution, in @p arena; sequence 0: the instance does not exist. */
THOLE_NODISCARD thole_status history_first_turn(struct thole_client *client, thole_slice instance,
                                                struct arena *arena, uint64_t *ret_sequence, struct turn *ret,
                                                thole_error *reterr);
/* As thole_client_history(), from the record after sequence *last; 0: from the first. *last becomes the
 * sequence of the last record that was given. No new record is no error, unless *last was 0. */
THOLE_NODISCARD thole_status client_history_behind(struct thole_client *client, thole_slice instance,
                                                   uint64_t *last, thole_history_fn *each, void *arg,
                                                   thole_error *reterr);
/* As thole_client_history_follow(), from the record after this sequence; 0: from the first. */
THOLE_NODISCARD thole_status client_history_follow_behind(struct thole_client *client, thole_slice instance,
                                                          uint64_t behind, thole_history_fn *each, void *arg,
                                                          thole_error *reterr);
/* The records that count, in order, as they are stored. Otherwise as thole_client_history(). */
typedef thole_status client_record_fn(void *arg, uint64_t sequence, thole_slice bytes);
THOLE_NODISCARD thole_status client_history_records(struct thole_client *client, thole_slice instance,
                                                    client_record_fn *each, void *arg, thole_error *reterr);
/* Like client_history_records(), for one execution. */
THOLE_NODISCARD thole_status client_execution_records(struct thole_client *client, thole_slice instance,
                                                      uint64_t execution, client_record_fn *each, void *arg,
                                                      thole_error *reterr);
/* An event of a history, for users. Borrows from the event. */
thole_history_event history_event_of(uint64_t sequence, const struct turn *turn, const struct event *event);
/* Calls @p each for every instance of which the streams have a history, some of them more than once. Needs no
 * Postgres. THOLE_LIMIT: a partition has more than 10 million subjects. */
typedef void client_id_fn(void *arg, thole_slice instance);
THOLE_NODISCARD thole_status client_history_ids(struct thole_client *client, client_id_fn *each, void *arg,
                                                thole_error *reterr);
/* The execution of the last record; 0: there is none, or only of events that wait or, *ret_deleted, of a
 * deletion. Of the log alone. */
THOLE_NODISCARD thole_status history_latest(struct thole_client *client, thole_slice instance,
                                            uint64_t *ret_execution, bool *ret_deleted, thole_error *reterr);
/* Whether deletions are gone from the instance's partition, after their time: of an id that has no record it
 * is not known any more whether it was deleted. */
THOLE_NODISCARD thole_status deletions_gone(struct thole_client *client, thole_slice instance, bool *ret,
                                            thole_error *reterr);
/* The event that the history of the message's instance has under the message's request id. Reads all of
 * it. */
THOLE_NODISCARD thole_status history_repetition(struct thole_client *client, const struct message *message,
                                                enum repetition *ret, thole_error *reterr);
/* Like history_repetition(), of the records after @p sequence, which becomes that of the last one. */
THOLE_NODISCARD thole_status history_repetition_after(struct thole_client *client,
                                                      const struct message *message, uint64_t *sequence,
                                                      enum repetition *ret, thole_error *reterr);
#endif
