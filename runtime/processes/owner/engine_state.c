#include "engine_state.h"
#include "engine.h"
#include "lookout.h"
#include "subject.h"
#include <stdio.h>
#include <string.h>

enum { STATE_BYTES_MAX = 512 * 1024 };

static void state_json(struct engine_host *engine, struct buf *to)
{
    struct json json;
    json_to_buf(&json, to);
    json_object(&json);
    json_member_text(&json, "type", "thole.engine_state.v1");
    json_member_text(&json, "node", engine->options.node);
    json_member_number(&json, "now_ms", clock_wall_ms());
    json_member_bool(&json, "joined", atomic_load(&engine->joined));
    json_key(&json, "partitions");
    partition_states_json(engine->states, &json);
    json_key(&json, "defects");
    lookout_json(engine->lookout, &json);
    json_key(&json, "mended");
    lookout_mended_json(engine->lookout, &json);
    json_key(&json, "room");
    lookout_room_json(engine->lookout, &json);
    json_end(&json);
}

static void engine_state_on_ask(void *arg, const struct delivery *delivery)
{
    struct engine_host *const engine = arg;
    char reply[SUBJECT_BYTES_MAX];
    struct buf body;
    if (!subject_is_reply(delivery->reply))
        return;
    memcpy(reply, delivery->reply.ptr, delivery->reply.len); /* shorter, as subject_is_reply() has seen */
    reply[delivery->reply.len] = '\0';
    buf_init(&body, STATE_BYTES_MAX);
    state_json(engine, &body);
    thole_status const told =
        buf_status(&body) == THOLE_OK
            ? connection_publish(engine->services, reply, NULL, 0, buf_bytes(&body), NULL)
            : THOLE_LIMIT;
    (void)told; /* the asker has a time limit */
    buf_release(&body);
}

thole_status engine_state_tell(struct engine_host *engine, struct subscription **ret, thole_error *reterr)
{
    char subject[2 * THOLE_NAME_BYTES_MAX + 40];
    (void)snprintf(subject, sizeof subject, "thole.%s.engines.%s.state", engine->topology.ns,
                   engine->options.node);
    return connection_subscribe(engine->services, subject, engine_state_on_ask, engine, ret, reterr);
}
