/*
 * Plays the engine's part for tests of the client: reads the inbox, writes history records and sends notices
 * as it is told, so that every order of events and every loss can be tried. One partition.
 */
#ifndef THOLE_ENGINE_SCRIPT_H
#define THOLE_ENGINE_SCRIPT_H
#include "event.h"
#include "message.h"
#include "reader.h"
#include "requests.h"
#include "topology.h"
#include <pthread.h>

enum script_mode {
    SCRIPT_SILENT,      /* reads the inbox and does nothing */
    SCRIPT_COMPLETE,    /* runs each start to its end: Started, then Completed with the input as output */
    SCRIPT_NO_NOTICES,  /* as COMPLETE, and every notice is lost */
    SCRIPT_REJECT,      /* answers each start as if the instance had ended */
    SCRIPT_REJECT_FULL, /* answers each as if the instance kept no more events */
    SCRIPT_TAKE_EVENT,  /* records the event of a start, as for an existing instance */
    SCRIPT_TAKE_EVENT_QUIETLY, /* as TAKE_EVENT, and the notice is lost */
};

struct engine_script {
    struct connection *connection;
    struct requests *requests;
    struct ordered_reader *reader;
    struct topology topology;
    pthread_mutex_t appending; /* one append at a time; held around all of it */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    enum script_mode mode; /* under lock, as is all below */
    uint64_t n;            /* of the last record that the modes wrote, under epoch 1 */
    size_t messages;       /* inbox messages seen; the last of them is in arena */
    struct message last;
    struct arena arena;
    bool answered, stored; /* of the append under way */
};

THOLE_NODISCARD thole_status engine_script_open(struct engine_script *script, const char *url, const char *ns,
                                                thole_error *reterr);
void engine_script_close(struct engine_script *script);
void engine_script_mode(struct engine_script *script, enum script_mode mode);
size_t engine_script_messages(struct engine_script *script);
/* Waits until so many inbox messages have been seen; false after ten seconds. */
bool engine_script_seen(struct engine_script *script, size_t messages);

/* Each appends a record; false when it is not stored. */
bool engine_script_epoch(struct engine_script *script, uint64_t epoch);
bool engine_script_turn(struct engine_script *script, uint64_t epoch, uint64_t n, const struct turn *turn);
/* Takes in all messages up to @p floor without a turn. */
bool engine_script_position(struct engine_script *script, uint64_t epoch, uint64_t n, uint64_t floor);
bool engine_script_deleted(struct engine_script *script, uint64_t epoch, uint64_t n,
                           const struct deletion *deletion);
void engine_script_notice(struct engine_script *script, const char *kind, thole_slice instance,
                          thole_slice request_id, thole_slice data);
#endif
