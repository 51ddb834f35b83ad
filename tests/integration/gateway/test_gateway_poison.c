/* integration.poison with a worker elsewhere. */
#define BY_GATEWAY
#include "../poison/test_poison.c"
