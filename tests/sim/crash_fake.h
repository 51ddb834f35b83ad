/*
 * Code that crashes whoever runs it: that of some instances, in some worlds, until there is other code. And
 * the list of what has crashed, which everybody can reach at any time.
 */
#ifndef THOLE_CRASH_FAKE_H
#define THOLE_CRASH_FAKE_H
#include "partition.h"
#include "world.h"

struct crash_list;
struct seat;
struct crash_list *crash_list_create(struct world *w);
/* For a machine of that seat. */
struct code_watch crash_watch(struct seat *seat);
/* True: the output was about crashes, and is done. */
bool crash_output(struct world *w, struct seat *seat, const struct partition_out *out);
#endif
