/* Inside the gateway role: what clients ask for, carried out with the client library. Each request has a
 * thread for as long as it takes. */
#ifndef THOLE_INSTANCE_CALLS_H
#define THOLE_INSTANCE_CALLS_H
#include "gateway_request.h"
#include "thole/client.h"

enum { INSTANCE_CALLS_MAX = 512 /* at a time */, INSTANCE_WAIT_MS_MAX = 60000 };

struct instance_calls;
/* The client is borrowed. */
struct instance_calls *instance_calls_create(struct thole_client *client);
/* Takes the request; answers it when it is done. */
void instance_calls_take(struct instance_calls *calls, struct gateway_request *request);
/* Waits end early; returns when all are answered, and frees. NULL-safe. */
void instance_calls_destroy(struct instance_calls *calls);
#endif
