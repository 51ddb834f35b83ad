/* The metrics of a process that serves, and the HTTP server that shows them. */
#ifndef THOLE_MONITORING_H
#define THOLE_MONITORING_H
#include "host_options.h"

struct monitoring;
/* *ret NULL, and nothing is counted, unless the command has --http. Sets the command's metrics. The program
 * and the command are borrowed. THOLE_UNAVAILABLE: it cannot listen there. */
THOLE_NODISCARD thole_status monitoring_start(const thole_program *program, struct host_command *command,
                                              struct monitoring **ret, thole_error *reterr);
/* The roles have started, or are to stop. From the thread that started it. NULL-safe, as is the next. */
void monitoring_serving(struct monitoring *monitoring, enum host_role role, bool serving);
/* When no role runs any more. */
void monitoring_stop(struct monitoring *monitoring);
#endif
