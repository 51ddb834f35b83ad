/*
 * The view of a call on one instance while it waits. Notices wake it and may be lost; looks (reads of the
 * last history record) are authoritative. Both arrive on the connection's reading thread and are stored here
 * for the caller's thread. All functions are for the thread that opened the watch.
 */
#ifndef THOLE_WATCH_H
#define THOLE_WATCH_H
#include "client_internal.h"

enum watch_kind {
    WATCH_QUIET,   /* no subscription: for calls that only ask and publish */
    WATCH_NOTICES, /* gets the instance's notices */
};
enum look_state { LOOK_NONE, LOOK_UNDER_WAY, LOOK_ANSWERED, LOOK_FAILED };

struct watch;
typedef bool watch_predicate(const struct watch *watch); /* called under client.lock, on any thread */

struct watch {
    struct thole_client *client;
    struct client_task *task;    /* on which the call runs; NULL: a thread that may block */
    thole_slice instance;        /* borrowed from the caller, as is request */
    thole_slice request;         /* id of this call's own request; empty: none */
    const struct message *start; /* likewise: of a call that starts the instance; NULL: it does not */
    char api_subject[STREAM_NAME_BYTES_MAX + 32];
    struct buf api_body;
    struct buf name;                   /* of the instance, as it stands in subjects */
    struct subscription *subscription; /* a subscription of its own; NULL: that of all, or none */
    bool listens, together;            /* to notices; by the subscription of all */
    pthread_cond_t changed;
    uint64_t token;         /* of looks; + 1 is that of the publish */
    const char *message_id; /* of the publish; NULL: none */
    /* Under client.lock: */
    struct watch *next, **link, *next_token, *next_name; /* watch_table.h */
    unsigned pins;           /* of the reading thread, which uses it without the lock: not closed meanwhile */
    watch_predicate *holds;  /* the condition for which the caller's thread sleeps; NULL: it is awake */
    bool accepted, rejected; /* notices that name this request */
    thole_error refusal;     /* from the rejected messages: why this one is among them; else no text */
    uint64_t ended;          /* execution whose end a notice has told; 0 = none */
    uint64_t execution; /* the one that is waited for, once that is known; 0: not, or notices may have been
                           missed */
    bool completed;     /* so has this execution ended; its output is in result */
    struct buf result;
    bool end_heard; /* the look for it has still to be sent */
    bool reconnected;
    bool look_wanted; /* something happened that the current look may have missed */
    enum look_state look;
    uint64_t look_sequence; /* of the answer; 0: there is no record */
    struct buf look_body;
    thole_error look_error;
    bool stored, not_stored; /* of the publish */
    uint64_t twin;           /* the inbox had the message id before, with this message; 0: it had not */
    thole_error publish_error;
};

/* ---- watch_open.c ---- */
/* The watch must not move. After an error it is closed already. */
THOLE_NODISCARD thole_status watch_open(struct thole_client *client, enum watch_kind kind,
                                        thole_slice instance, thole_slice request, struct watch *ret,
                                        thole_error *reterr);
void watch_close(struct watch *watch);
/* Called from time to time during a long wait: gives the watch a subscription of its own if the shared one
 * has too many notices for others. */
void watch_listen_apart(struct watch *watch);

/* ---- watch.c ---- */

/* Sleeps until it holds (true) or until @p until_ms (false). */
bool watch_sleep(struct watch *watch, watch_predicate *holds, uint64_t until_ms);
/* Before something that failed is tried again: a moment, cut short by a new connection. */
void watch_pause(struct watch *watch, uint64_t until_ms);

/* Sends a look unless one is under way or its answer waits to be taken. Never blocks; a failure shows in the
 * answer. */
void watch_look(struct watch *watch);
/* The execution that is waited for. */
void watch_expect(struct watch *watch, uint64_t execution);
/* Waits for a look's answer, and looks again while the stream cannot be read, until @p until_ms. Sequence 0:
 * there is no record, or only of events that wait for the instance, or of its deletion. The record lives in
 * @p arena. */
THOLE_NODISCARD thole_status watch_take_look(struct watch *watch, uint64_t until_ms, struct arena *arena,
                                             uint64_t *ret_sequence, struct record *ret_record,
                                             thole_error *reterr);
/* Publishes to the instance's inbox and repeats that until it is stored or @p until_ms has passed. A notice
 * that names the request counts as stored. */
THOLE_NODISCARD thole_status watch_publish(struct watch *watch, const struct letter *letter,
                                           uint64_t until_ms, thole_error *reterr);
/* Like watch_publish(), for a caller that also waits for the end: the mere acknowledgement does not wake it,
 * and it returns at the latest @p pause_ms after that. */
THOLE_NODISCARD thole_status watch_publish_and_wait(struct watch *watch, const struct letter *letter,
                                                    uint64_t until_ms, uint64_t pause_ms,
                                                    thole_error *reterr);
/* Of a publish with a message id that is stored: the message that stood there before, and then the publish
 * itself is not, and may be repeated; 0: there was none. */
uint64_t watch_take_twin(struct watch *watch);
/* THOLE_OK, or why what was stored stands among the rejected messages. */
thole_status watch_refusal(struct watch *watch, thole_error *reterr);
/* Whether a notice has named this request. */
bool watch_is_decided(const struct watch *watch);
/* A reason to read the stream has come, or the result itself. */
bool watch_is_worth_waking(const struct watch *watch);

/* A notice of the instance with this name in subjects, on the connection's reading thread. False: no watch
 * for it.
 */
bool watches_on_notice(struct thole_client *client, const struct delivery *delivery);
/* Callbacks of the client's connection and requests; arg is the client. */
void watches_on_state(void *arg, bool connected, uint64_t epoch);
void watches_on_done(void *arg, const struct request_done *done);
#endif
