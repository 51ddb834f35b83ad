/* integration.leases with workers elsewhere: the network that is broken is the one of their gateways. */
#define BY_GATEWAY
#include "../leases/test_leases.c"
#include "wrap_gateways.h"
