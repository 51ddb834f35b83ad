/* SIGTERM and SIGINT as a request to stop. One process-wide state: install once, from the main thread. */
#ifndef THOLE_STOP_SIGNALS_H
#define THOLE_STOP_SIGNALS_H
#include "thole/types.h"

/* SIGPIPE is ignored from then on. A SIGINT after the first request ends the process at once with code 130.
 */
THOLE_NODISCARD thole_status stop_signals_install(thole_error *reterr);
bool stop_requested(void); /* any thread */
void stop_request(void);   /* as SIGTERM does; any thread */
void stop_wait(void);      /* returns when a stop has been requested */
/* Like stop_wait(); returns false when the other end of @p socket is closed before a stop is requested. */
bool stop_wait_beside(int socket);
#endif
