/* Routes that read. */
#ifndef THOLE_READ_ROUTES_H
#define THOLE_READ_ROUTES_H
#include "routes.h"

void read_instances(struct session *session, const struct request *request, struct answer *answer);
void read_instance(struct session *session, const struct request *request, struct answer *answer);
void read_counts(struct session *session, const struct request *request, struct answer *answer);
void read_history(struct session *session, const struct request *request, struct answer *answer);
void read_source(struct session *session, const struct request *request, struct answer *answer);
void read_event_data(struct session *session, const struct request *request, struct answer *answer);
void read_queues(struct session *session, const struct request *request, struct answer *answer);
void read_quarantine(struct session *session, const struct request *request, struct answer *answer);
void read_nodes(struct session *session, const struct request *request, struct answer *answer);
void read_defects(struct session *session, const struct request *request, struct answer *answer);
void read_mended(struct session *session, const struct request *request, struct answer *answer);
void read_room(struct session *session, const struct request *request, struct answer *answer);
void read_partitions(struct session *session, const struct request *request, struct answer *answer);
void read_rejected(struct session *session, const struct request *request, struct answer *answer);
void read_orchestrations(struct session *session, const struct request *request, struct answer *answer);

/* Of the arguments of a list. THOLE_INVALID with a sentence. The slices are the request's. */
THOLE_NODISCARD thole_status filter_read(const struct request *request, thole_list_filter *ret,
                                         thole_error *reterr);
#endif
