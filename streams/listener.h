/* Inside: one listener. listener.c opens and closes them, link_deliver.c calls them. */
#ifndef THOLE_LISTENER_H
#define THOLE_LISTENER_H
#include "link.h"
#include <stdatomic.h>

struct listener {
    pthread_mutex_t lock; /* held during fn */
    bool muted;
    atomic_int refs; /* the owner, and the loop's thread while it delivers */
    listener_fn *fn;
    void *arg;
    struct link *link; /* with a reference, until it is muted */
    natsSubscription *native;
    struct listener *older;       /* of its owner */
    struct listener *prev, *next; /* in the link's list */
};

void listener_unref(struct listener *listener);
void link_listeners_add(struct link_listeners *list, struct listener *listener);
void link_listeners_remove(struct link_listeners *list, struct listener *listener);
#endif
