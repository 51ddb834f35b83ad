#include "wrap_doctor_world.h"
#include "audit_stream.h"
#include "clock.h"
#include "crowd.h"
#include "migrations.h"
#include "nats_connection.h"
#include "postgres.h"
#include "query_store.h"
#include "roll_call.h"
#include "schema_look.h"
#include "thole_cunit.h"
#include <stdio.h>
#include <string.h>

struct doctor_play doctor_played;
static struct connection *const some_connection = (void *)&doctor_played;
static struct postgres *const some_postgres = (void *)&doctor_played;

static thole_status may_fail(enum doctor_failing what, thole_error *reterr)
{
    if (doctor_played.fails != what)
        return THOLE_OK;
    return thole_fail(reterr, doctor_played.with, "it says no");
}

/* Each look at it is a part of a round trip later. */
uint64_t __wrap_clock_wall_ms(void)
{
    return doctor_played.now_ms += TRIP_MS;
}

thole_status __wrap_nats_connection_open(const struct cli_options *options, struct connection **ret,
                                         thole_error *reterr)
{
    (void)options;
    THOLE_TRY(may_fail(OPEN, reterr));
    doctor_played.open++;
    *ret = some_connection;
    return THOLE_OK;
}

void __wrap_connection_close(struct connection *connection)
{
    doctor_played.open -= connection == some_connection;
}

thole_slice __wrap_connection_server_version(const struct connection *connection)
{
    (void)connection;
    return THOLE_STR("2.10.27");
}

thole_status __wrap_topology_check_version(struct connection *connection, thole_error *reterr)
{
    (void)connection;
    return may_fail(VERSION, reterr);
}

thole_status __wrap_topology_check_jetstream(struct connection *connection, thole_error *reterr)
{
    (void)connection;
    return may_fail(JETSTREAM, reterr);
}

thole_status __wrap_overview_namespace(struct connection *connection, const char *ns,
                                       struct overview_namespace *ret, thole_error *reterr)
{
    (void)connection, (void)ns;
    THOLE_TRY(may_fail(NAMESPACE, reterr));
    *ret = (struct overview_namespace){.format = 2,
                                       .replicas = doctor_played.replicas == 0 ? 1 : doctor_played.replicas,
                                       .offline = doctor_played.offline,
                                       .clustered = doctor_played.clustered,
                                       .now_ms = doctor_played.nats_ms == 0 ? doctor_played.now_ms
                                                                            : doctor_played.nats_ms};
    return THOLE_OK;
}

thole_status __wrap_topology_read(struct connection *connection, const char *ns, struct topology *ret,
                                  thole_error *reterr)
{
    (void)connection, (void)ns;
    THOLE_TRY(may_fail(TOPOLOGY, reterr));
    *ret = (struct topology){.partitions = PARTITIONS_OF_ALL, .nodes_ttl_ms = TTL_MS, .payload_max = 1024};
    return THOLE_OK;
}

thole_status __wrap_overview_server(struct connection *connection, struct overview_server *ret,
                                    thole_error *reterr)
{
    (void)connection;
    *ret = (struct overview_server){.sync_always = doctor_played.sync_always,
                                    .sync_ms = doctor_played.sync_ms,
                                    .servers = doctor_played.servers,
                                    .room = doctor_played.server};
    return may_fail(SERVER, reterr);
}

thole_status __wrap_overview_account(struct connection *connection, uint64_t replicas,
                                     struct overview_room *ret, thole_error *reterr)
{
    (void)connection, (void)replicas;
    *ret = doctor_played.account;
    return may_fail(ACCOUNT, reterr);
}

#define DAY_MS UINT64_C(86400000)

static void play_room(struct cluster *ret)
{
    static struct cluster_mended mended = {.name = {(const uint8_t *)"stream THOLE_shop_WORK", 22},
                                           .at_ms = 1700000000000};
    static struct cluster_room hist = {.what = {(const uint8_t *)"hist", 4}, .streams = 12, .messages = 340},
                               account;
    account = (struct cluster_room){.next = &hist,
                                    .what = THOLE_STR("account"),
                                    .forecast = {.from_ms = 1,
                                                 .at_ms = 1 + 3600 * 1000,
                                                 .from_bytes = GB,
                                                 .bytes = (1 + doctor_played.grown) * GB,
                                                 .bytes_max = doctor_played.limit * GB}};
    hist.forecast = account.forecast;
    hist.forecast.bytes_max = 0;
    ret->room = doctor_played.grown > 0 ? &account : NULL;
    ret->mended = doctor_played.mended ? &mended : NULL;
}

thole_status __wrap_cluster_read(struct cluster *ret, struct connection *connection, const char *ns,
                                 uint32_t partitions, thole_error *reterr)
{
    static struct cluster_engine engine;
    static struct cluster_partition owners[PARTITIONS_OF_ALL];
    (void)connection, (void)ns;
    *ret = (struct cluster){.engines = NULL};
    THOLE_TRY(may_fail(CLUSTER, reterr));
    static struct cluster_defect defect;
    engine = (struct cluster_engine){.heartbeat_ms = doctor_played.heartbeat_ms,
                                     .reads_all = !doctor_played.older,
                                     .node = THOLE_STR("e1"),
                                     .told = doctor_played.told,
                                     .asked_ms = doctor_played.now_ms,
                                     .now_ms = doctor_played.engine_ms == 0 ? doctor_played.now_ms
                                                                            : doctor_played.engine_ms,
                                     .answered_ms = doctor_played.now_ms};
    if (doctor_played.told_defect != NULL) {
        const char *const text = strchr(doctor_played.told_defect, ' ') + 1;
        defect = (struct cluster_defect){.text = thole_slice_from(text),
                                         .remedy = THOLE_STR("the remedy"),
                                         .object = {(const uint8_t *)doctor_played.told_defect,
                                                    (size_t)(text - 1 - doctor_played.told_defect)}};
        ret->defects = &defect;
    }
    play_room(ret);
    for (uint32_t p = 0; p < partitions; p++)
        owners[p] = (struct cluster_partition){
            .owned = p >= doctor_played.unowned,
            .state = !doctor_played.told                  ? CLUSTER_UNTOLD
                     : p == 7 && doctor_played.state != 0 ? doctor_played.state
                                                          : CLUSTER_OPEN,
            .closed_lately = p == 7 ? doctor_played.closed_lately : 0,
            .since_ms = p == 7 ? doctor_played.since_ms : 0,
            .why = thole_slice_from(p == 7 && doctor_played.why != NULL ? doctor_played.why : "")};
    ret->engines = doctor_played.no_engine ? NULL : &engine;
    ret->engines_len = doctor_played.no_engine ? 0 : 1;
    ret->partitions = owners;
    ret->partitions_len = partitions;
    return THOLE_OK;
}

thole_status __wrap_topology_look(struct connection *connection, const struct topology *topology,
                                  struct topology_seen *ret, defect_fn *each, void *arg, thole_error *reterr)
{
    struct defect defect = {.object = DEFECT_WORK,
                            .weight = DEFECT_REFUSED,
                            .cure = doctor_played.cure,
                            .name = "stream THOLE_shop_WORK",
                            .remedy = "this"};
    (void)connection, (void)topology;
    *ret = (struct topology_seen){.looked = 9, .hidden = doctor_played.hidden, .now_ms = 2 * DAY_MS};
    ret->kinds[DEFECT_HIST] = (struct topology_usage){.streams = 12, .bytes = 24 * GB, .created_ms = DAY_MS};
    ret->limits_len = 1;
    ret->limits[0] = (struct topology_limit){
        .name = "THOLE_shop_IN_0", .bytes = 10 * GB, .bytes_max = 30 * GB, .created_ms = DAY_MS};
    THOLE_TRY(may_fail(LOOK, reterr));
    if (doctor_played.defective)
        each(arg, &defect);
    return THOLE_OK;
}

thole_status __wrap_topology_look_queues(struct connection *connection, const struct topology *topology,
                                         defect_fn *each, void *arg, thole_error *reterr)
{
    (void)connection, (void)topology, (void)each, (void)arg;
    return may_fail(QUEUES, reterr);
}

thole_status __wrap_crowd_look(struct connection *connection, const struct topology *topology,
                               defect_fn *each, void *arg, thole_error *reterr)
{
    struct defect const defect = {.object = DEFECT_LIMITS,
                                  .weight = DEFECT_WARNS,
                                  .name = "stream THOLE_shop_HIST_0",
                                  .field = "consumers",
                                  .found = "900 of at most 1000: 880 x_* (inboxes of auditor)",
                                  .needed = "room for those of engines",
                                  .remedy = "remove those"};
    (void)connection, (void)topology;
    THOLE_TRY(may_fail(CROWD, reterr));
    if (doctor_played.crowded)
        each(arg, &defect);
    return THOLE_OK;
}

thole_status __wrap_topology_look_stores(struct connection *connection, const struct topology *topology,
                                         struct topology_seen *seen, defect_fn *each, void *arg,
                                         thole_error *reterr)
{
    struct defect defect = {.object = DEFECT_HOLDS,
                            .weight = DEFECT_REFUSED,
                            .name = "stream KV_THOLE_shop_HOLDS",
                            .remedy = "thole recover -n shop"};
    (void)connection, (void)topology, (void)seen;
    THOLE_TRY(may_fail(STORES, reterr));
    if (doctor_played.holds_gone)
        each(arg, &defect);
    return THOLE_OK;
}

thole_status __wrap_topology_mend(struct connection *connection, const struct topology *topology,
                                  const struct defect *defect, thole_error *reterr)
{
    (void)connection, (void)topology;
    CU_ASSERT_TRUE(doctor_played.fix && defect->cure != CURE_NONE);
    THOLE_TRY(may_fail(MEND, reterr));
    doctor_played.defective = false;
    return THOLE_OK;
}

void __wrap_cluster_release(struct cluster *cluster)
{
    *cluster = (struct cluster){.engines = NULL};
}

thole_status __wrap_roll_call(struct connection *connection, const char *ns, struct arena *arena,
                              struct roll_answer **ret, size_t *ret_len, thole_error *reterr)
{
    (void)connection, (void)ns, (void)arena, (void)ret;
    *ret_len = doctor_played.workers;
    return may_fail(ROLL, reterr);
}

thole_status __wrap_audit_stream_waiting(struct connection *connection, const char *ns, uint32_t partitions,
                                         struct audit_waiting *ret, thole_error *reterr)
{
    (void)connection, (void)ns, (void)partitions;
    ret->checkpoints = doctor_played.checkpoints;
    ret->p = 3;
    ret->stored_ms = doctor_played.waits_ms == 0 ? 0 : NOW_MS - doctor_played.waits_ms;
    return may_fail(AUDIT, reterr);
}

thole_status __wrap_postgres_open(const struct postgres_options *options, struct postgres **ret,
                                  thole_error *reterr)
{
    CU_ASSERT_TRUE(options->reads);
    THOLE_TRY(may_fail(PG_OPEN, reterr));
    doctor_played.open++;
    *ret = some_postgres;
    return THOLE_OK;
}

void __wrap_postgres_close(struct postgres *pg)
{
    doctor_played.open -= pg == some_postgres;
}

int __wrap_postgres_server_version(const struct postgres *pg)
{
    (void)pg;
    return 150014;
}

bool __wrap_postgres_is_pooled(const struct postgres *pg)
{
    (void)pg;
    return doctor_played.pooled;
}

thole_status __wrap_postgres_applied(struct postgres *pg, size_t *ret, thole_error *reterr)
{
    (void)pg;
    *ret = doctor_played.behind > migrations_len ? 0 : migrations_len - doctor_played.behind;
    return may_fail(APPLIED, reterr);
}

thole_status __wrap_postgres_rights(struct postgres *pg, size_t *ret_roles, struct buf *lacking,
                                    thole_error *reterr)
{
    (void)pg;
    *ret_roles = doctor_played.no_roles ? 0 : 3;
    buf_text(lacking, doctor_played.lacking == NULL ? "" : doctor_played.lacking);
    return may_fail(RIGHTS, reterr);
}

thole_status __wrap_query_store_set_aside_total(struct postgres *pg, struct set_aside_total *ret,
                                                thole_error *reterr)
{
    (void)pg;
    *ret = (struct set_aside_total){.rows = doctor_played.set_aside, .instances = 1};
    (void)snprintf(ret->first, sizeof ret->first, "instances of bad, column version: too large");
    return may_fail(SET_ASIDE, reterr);
}

thole_status __wrap_schema_look(struct postgres *pg, defect_fn *each, void *arg, thole_error *reterr)
{
    struct defect const defect = {.object = DEFECT_TABLES,
                                  .weight = doctor_played.warns ? DEFECT_WARNS : DEFECT_REFUSED,
                                  .name = "table timers",
                                  .remedy = "thole migrate"};
    (void)pg;
    THOLE_TRY(may_fail(SHAPE, reterr));
    if (doctor_played.dropped)
        each(arg, &defect);
    return THOLE_OK;
}

thole_status __wrap_postgres_migrate(struct postgres *pg, thole_error *reterr)
{
    (void)pg;
    CU_ASSERT_TRUE(doctor_played.fix);
    THOLE_TRY(may_fail(MIGRATE, reterr));
    doctor_played.dropped = false;
    return THOLE_OK;
}

thole_status __wrap_postgres_only_reads(struct postgres *pg, bool *ret, thole_error *reterr)
{
    (void)pg, (void)reterr;
    *ret = doctor_played.only_reads;
    return THOLE_OK;
}

thole_status __wrap_postgres_try_write(struct postgres *pg, uint32_t *ret_tables, thole_error *reterr)
{
    CU_ASSERT_FALSE(doctor_played.only_reads);
    *ret_tables = 7;
    (void)pg;
    return may_fail(PG_WRITE, reterr);
}

thole_status __wrap_postgres_now_ms(struct postgres *pg, uint64_t *ret_ms, thole_error *reterr)
{
    (void)pg;
    *ret_ms = doctor_played.postgres_ms == 0 ? doctor_played.now_ms : doctor_played.postgres_ms;
    return may_fail(PG_NOW, reterr);
}
