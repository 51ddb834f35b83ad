/* Routes that read. */
#ifndef THOLE_READ_ROUTES_H
#define THOLE_READ_ROUTES_H
#include "routes.h"

void read_instances(thole_client *client, const struct request *request, struct answer *answer);
void read_instance(thole_client *client, const struct request *request, struct answer *answer);
void read_history(thole_client *client, const struct request *request, struct answer *answer);
void read_event_data(thole_client *client, const struct request *request, struct answer *answer);
void read_queues(thole_client *client, const struct request *request, struct answer *answer);
void read_quarantine(thole_client *client, const struct request *request, struct answer *answer);
void read_nodes(thole_client *client, const struct request *request, struct answer *answer);
void read_partitions(thole_client *client, const struct request *request, struct answer *answer);
void read_rejected(thole_client *client, const struct request *request, struct answer *answer);
void read_orchestrations(thole_client *client, const struct request *request, struct answer *answer);

/* Of the arguments of a list. THOLE_INVALID with a sentence. The slices are the request's. */
THOLE_NODISCARD thole_status filter_read(const struct request *request, thole_list_filter *ret,
                                         thole_error *reterr);
#endif
