/* The metrics of a process that serves, the HTTP server that shows them, and what the service manager is
 * told. */
#ifndef THOLE_MONITORING_H
#define THOLE_MONITORING_H
#include "host_options.h"
#include "service_notify.h"

struct monitoring;
/* *ret NULL, and nothing is counted, unless the command has --http or there is a service manager. Sets the
 * command's metrics. The program and the command are borrowed. THOLE_UNAVAILABLE: it cannot listen there;
 * others: of service_notify_start(). */
THOLE_NODISCARD thole_status monitoring_start(const thole_program *program, struct host_command *command,
                                              const struct service_wish *wish, struct monitoring **ret,
                                              thole_error *reterr);
/* The roles have started, or are to stop. From the thread that started it. NULL-safe, as is the next. */
void monitoring_serving(struct monitoring *monitoring, enum host_role role, bool serving);
/* When no role runs any more. */
void monitoring_stop(struct monitoring *monitoring);
#endif
