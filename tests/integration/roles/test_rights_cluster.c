/* test_rights.c on a cluster of three servers, whose streams have three replicas. */
#include "rights_stage.h"

static void test_cluster(void)
{
    rights_start(RIGHTS_CLUSTER);
    rights_day();
    rights_programs_end();
    rights_nats_attempts();
    rights_stop();
}

static const struct thole_test tests[] = {
    {"three servers", test_cluster},
};

THOLE_INTEGRATION_MAIN("rights_cluster", tests)
