/*
 * Inside the binder role: requests to thole.<ns>.call.<orchestration>[.by.<actor>] run an instance, and are
 * answered with its result (docs/events.md). Each has a thread while it waits.
 */
#ifndef THOLE_CALLS_H
#define THOLE_CALLS_H
#include "connection.h"
#include "thole/client.h"

enum { CALL_WAIT_MS_DEFAULT = 30000, CALL_WAIT_MS_MAX = 110000, CALLS_MAX = 512 /* at a time */ };

struct calls;
/* @p client is used until calls_close(); @p connection carries requests and answers. */
THOLE_NODISCARD thole_status calls_open(struct connection *connection, thole_client *client, const char *ns,
                                        struct calls **ret, thole_error *reterr);
/* No new ones; those that wait are answered that this binder stops, within seconds. NULL-safe. */
void calls_close(struct calls *calls);
#endif
