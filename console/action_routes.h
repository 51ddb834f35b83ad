/* Routes that act. Who may is decided before. */
#ifndef THOLE_ACTION_ROUTES_H
#define THOLE_ACTION_ROUTES_H
#include "routes.h"

void act_start(struct session *session, const struct request *request, struct answer *answer);
void act_signal(struct session *session, const struct request *request, struct answer *answer);
void act_query(struct session *session, const struct request *request, struct answer *answer);
void act_cancel(struct session *session, const struct request *request, struct answer *answer);
void act_terminate(struct session *session, const struct request *request, struct answer *answer);
void act_pause(struct session *session, const struct request *request, struct answer *answer);
void act_resume(struct session *session, const struct request *request, struct answer *answer);
void act_retry(struct session *session, const struct request *request, struct answer *answer);
void act_quarantine_retry(struct session *session, const struct request *request, struct answer *answer);
void act_quarantine_fail(struct session *session, const struct request *request, struct answer *answer);
/* An action on many instances: batch_route.c. */
void act_batch(struct session *session, const struct request *request, struct answer *answer);

/* A line in the log: who did what to which instance. */
void act_log(const struct request *request, const char *action, thole_slice instance);
#endif
