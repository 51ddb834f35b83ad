/* Queries of a parked instance; the public part is in instance.h. */
#ifndef THOLE_INSTANCE_QUERY_H
#define THOLE_INSTANCE_QUERY_H
#include "instance_state.h"

/* Keeps the text of thole_throw() in a query. */
void query_throw(struct instance *in, thole_slice text);
/* Frees the scratch memory of the last query, and its answer with it. */
void query_release(struct instance *in);
#endif
