/* Inside the gateway role: instances as clients see them, in memory of the request's scratch. */
#ifndef THOLE_INSTANCE_VIEWS_H
#define THOLE_INSTANCE_VIEWS_H
#include "gateway_request.h"

enum { INSTANCES_MAX = 1000 /* in one answer */, HINDRANCES_MAX = 32 };

struct instance_view {
    bool rowless; /* of its history, which says of one that has not ended that it runs, or is paused */
    Thole__V1__InstanceInfo info;
    Thole__V1__Hindrance *hindrances[HINDRANCES_MAX];
    size_t hindrances_len;
};
/* The row of the instance; where there is none, or no database, what its history says. THOLE_NOT_FOUND. */
THOLE_NODISCARD thole_status instance_view_read(thole_client *client, const char *instance,
                                                struct arena *arena, struct instance_view *ret,
                                                thole_error *reterr);
/* Adds the hindrances of the instance; failures are left out. Up to half a second. An instance without a row
 * then has its present state. */
void instance_view_explain(thole_client *client, const char *instance, struct arena *arena,
                           struct instance_view *view);
/* Lists, and answers. At most @p room bytes of instances. */
void instance_views_list(thole_client *client, struct gateway_request *request, size_t room);
#endif
