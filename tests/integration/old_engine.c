#include "old_engine.h"
#include "integration.h"
#include "live_nodes.h"
#include "nodes.h"

static void ignore_asking(void *arg, thole_slice node, thole_slice hash)
{
    (void)arg, (void)node, (void)hash;
}

struct presence *old_engine_join(struct connection *connection, struct heartbeat heartbeat)
{
    struct presence *presence = NULL;
    thole_error err = {.status = THOLE_OK};
    struct buf bytes;
    heartbeat.node = THOLE_STR("old");
    heartbeat.started_ms = 1;
    buf_init(&bytes, HEARTBEAT_BYTES_MAX);
    CU_ASSERT_EQUAL(heartbeat_encode(&heartbeat, &bytes), THOLE_OK);
    struct tagged_hash const hash = live_hash(buf_bytes(&bytes));
    CHECK_OK(presence_open(connection, "default", "old", ignore_asking, NULL, &presence, &err), &err);
    presence_stand_by(presence, hash.text);
    CHECK_OK(presence_answer(presence, &err), &err);
    CHECK_OK(nodes_put(connection, "default", heartbeat.node, buf_bytes(&bytes), &err), &err);
    buf_release(&bytes);
    return presence;
}
