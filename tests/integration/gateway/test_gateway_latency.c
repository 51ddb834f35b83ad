/* integration.latency with a worker elsewhere. */
#define BY_GATEWAY
#include "../faults/test_latency.c"
