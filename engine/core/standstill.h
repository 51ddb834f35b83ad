/* Texts about an instance that does not go on: for the engine's log, the command and the console alike. */
#ifndef THOLE_STANDSTILL_H
#define THOLE_STANDSTILL_H
#include "event.h"
#include "thole/client.h"

struct standstill { /* static texts */
    thole_instance_status status;
    const char *state;  /* "is Stuck": follows the instance */
    const char *remedy; /* the next step, for remedy_fill(); NULL: it runs */
};
struct standstill standstill_of(enum blocked_kind kind);
/* By blocked_kind_name(). An unknown name, or NULL, is BLOCKED_NOT. */
enum blocked_kind blocked_kind_of(const char *name);
#endif
