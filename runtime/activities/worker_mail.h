/* Mail of a worker's loop. The node is the first member of its owner. */
#ifndef THOLE_WORKER_MAIL_H
#define THOLE_WORKER_MAIL_H
#include "mailbox.h"

enum worker_mail_kind {
    WORKER_MAIL_STATE,     /* of the host: the connection, or the wish for messages, is to be looked at */
    WORKER_MAIL_STOP,      /* of the host */
    WORKER_MAIL_DELIVERED, /* of an activity */
    WORKER_MAIL_FINISHED,  /* of an activity */
    WORKER_MAIL_PUBLISHED, /* of an activity */
    WORKER_MAIL_ANSWER,    /* of a row_call */
    WORKER_MAIL_PUSH,      /* of a push_mail */
};

struct worker_mail {
    struct mail mail;
    enum worker_mail_kind kind;
    void *owner;
};
#endif
