/* The names of an execution: of activities, events, orchestrations, changes. Each name is stored once, at a
 * stable address. */
#ifndef THOLE_INSTANCE_NAMES_H
#define THOLE_INSTANCE_NAMES_H
#include "instance_state.h"

struct name *names_find(const struct instance *in, thole_slice text);
/* Finds or adds; NULL: out of memory, the turn is broken. */
struct name *names_intern(struct instance *in, thole_slice text);
/* Sets what thole_patch() returns for a change from now on. */
void names_answer_patch(struct name *name, enum patch_answer answer);
#endif
