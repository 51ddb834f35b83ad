/* The state of an execution (keys and values) and its custom status; the next execution takes both over. */
#ifndef THOLE_INSTANCE_STATE_MAP_H
#define THOLE_INSTANCE_STATE_MAP_H
#include "instance_state.h"

bool state_find(const struct state_map *map, thole_slice key, thole_slice *ret_value);
/* The first key after @p key; an empty key comes before all. */
bool state_next(const struct state_map *map, thole_slice key, thole_slice *ret_key, thole_slice *ret_value);
size_t state_len(const struct state_map *map);
thole_status state_put(struct instance *in, thole_slice key, thole_slice value);
void state_drop(struct state_map *map, thole_slice key);
/* Cut if too long. */
thole_status instance_set_custom_status(struct instance *in, thole_slice status);
#endif
