/*
 * Messages that must wait, on a thread of their own: a listener whose function may block gives them away, so
 * that the connection's reading thread, which delivers for all, goes on. They come in order, and while there
 * are any, all that arrive for this listener must be given away. The thread ends when there are no more.
 */
#ifndef THOLE_ASIDE_H
#define THOLE_ASIDE_H
#include "link.h"

struct aside_message;
struct aside {
    listener_fn *fn;
    void *arg;
    pthread_mutex_t lock;
    struct aside_message *first, *last;
    bool running; /* the thread takes present and future messages */
    bool ending;  /* the thread drops them instead */
    bool owed;    /* the thread is to be joined */
    pthread_t thread;
};
void aside_init(struct aside *aside, listener_fn *fn, void *arg);
/* Takes the message if others wait already. */
bool aside_follow(struct aside *aside, natsMsg **message, uint64_t epoch);
/* Takes it in any case. False: there is no thread for it. */
THOLE_NODISCARD bool aside_begin(struct aside *aside, natsMsg **message, uint64_t epoch);
bool aside_is_running(struct aside *aside);
/* Waits for a call of fn in progress; drops the rest. No thread may give it more meanwhile. */
void aside_release(struct aside *aside);
#endif
