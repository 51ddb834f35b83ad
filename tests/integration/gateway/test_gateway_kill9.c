/* integration.kill9 with a worker elsewhere; and its gateways are killed, too. */
#define BY_GATEWAY
#include "../faults/test_kill9.c"
