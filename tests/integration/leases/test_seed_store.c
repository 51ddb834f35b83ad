/*
 * Seeds 000, 001, 004: activities whose instance, or whose execution, has been deleted. What they call state
 * Missing is the rows being gone: nothing is claimed, renewed or completed, and the message may be dropped.
 */
#include "store_fixture.h"
#include "thole/client.h"

#define ME THOLE_STR("worker-1")

/* Instance "i" in its execution 2, with activity 1 of each execution; claimed by nobody. */
static struct postgres *begin(const char *ns)
{
    struct postgres *pg = store_partition(ns);
    struct batch *batch = store_batch(1, 1);
    struct batch_activity rows[2];
    struct batch_instance const instances[] = {{.instance = THOLE_STR("i"),
                                                .orchestration = THOLE_STR("o"),
                                                .status = THOLE_INSTANCE_CONTINUED_AS_NEW,
                                                .execution = 1,
                                                .history_seq = 1},
                                               {.instance = THOLE_STR("i"),
                                                .orchestration = THOLE_STR("o"),
                                                .status = THOLE_INSTANCE_RUNNING,
                                                .execution = 2,
                                                .history_seq = 2}};
    for (size_t i = 0; i < 2; i++)
        rows[i] = (struct batch_activity){.instance = THOLE_STR("i"),
                                          .execution = i + 1,
                                          .activity_id = 1,
                                          .queue = THOLE_STR("q"),
                                          .activity = THOLE_STR("a"),
                                          .try_number = 1};
    batch->activities_added = rows;
    batch->activities_added_len = 2;
    batch->instances = (struct batch_instance *)instances;
    batch->instances_len = 2;
    CHECK_OK(fixture_apply(pg, batch));
    return pg;
}

static struct claim claim_of(uint64_t execution)
{
    struct claim claim = store_claim_of("i", 1);
    claim.key.execution = execution;
    return claim;
}

/* Acts like an engine when an instance is deleted: all its rows go in one transaction. */
static void delete_instance(struct postgres *pg)
{
    struct batch *batch = store_batch(1, 2);
    struct batch_activity const rows[] = {{.instance = THOLE_STR("i"), .execution = 1, .activity_id = 1},
                                          {.instance = THOLE_STR("i"), .execution = 2, .activity_id = 1}};
    struct batch_instance const instance = {
        .instance = THOLE_STR("i"), .execution = 2, .history_seq = 3, .removed = true};
    batch->activities_removed = (struct batch_activity *)rows;
    batch->activities_removed_len = 2;
    batch->instances = (struct batch_instance *)&instance;
    batch->instances_len = 1;
    CHECK_OK(fixture_apply(pg, batch));
}

/* Acts like an engine when executions are pruned (see also test_prune.c): their rows go, the instance
 * stays. */
static void delete_first_execution(struct postgres *pg, const char *ns)
{
    struct batch *batch = store_batch(1, 2);
    struct batch_deletion const row = {.instance = THOLE_STR("i"), .execution = 1, .pruned = {.upto = 1}};
    batch->deletions = (struct batch_deletion *)&row;
    batch->deletions_len = 1;
    CHECK_OK(fixture_apply(pg, batch));
    CHECK_INT(store_count(ns, "instances"), 1);
    CHECK_INT(store_count(ns, "executions"), 1);
}

static enum row_state fetch(struct postgres *pg, struct claim *claim)
{
    CHECK_OK(worker_store_claim(pg, ME, NULL, claim, 1, NULL, &store_err));
    return claim->state;
}

static enum row_state renew(struct postgres *pg, struct claim *claim)
{
    CHECK_OK(worker_store_renew(pg, ME, claim, 1, &store_err));
    return claim->state;
}

static enum row_state ack(struct postgres *pg, struct claim *claim)
{
    CHECK_OK(worker_store_complete_begin(pg, ME, claim, 1, &store_err));
    enum row_state const state = claim->state;
    CHECK_OK(worker_store_complete_commit(pg, &store_err));
    return state;
}

static void fetch_after_instance_delete(void)
{
    struct postgres *pg = begin("fetch_instance");
    struct claim claims[] = {claim_of(1), claim_of(2)};
    delete_instance(pg);
    CHECK_INT(fetch(pg, &claims[0]), ROW_MISSING);
    CHECK_INT(fetch(pg, &claims[1]), ROW_MISSING);
    CHECK_INT(store_count("fetch_instance", "instances"), 0);
    postgres_close(pg);
}

static void fetch_after_execution_delete(void)
{
    struct postgres *pg = begin("fetch_execution");
    struct claim claims[] = {claim_of(1), claim_of(2)};
    delete_first_execution(pg, "fetch_execution");
    CHECK_INT(fetch(pg, &claims[0]), ROW_MISSING);
    CHECK_INT(fetch(pg, &claims[1]), ROW_MINE); /* the other execution of the same instance */
    postgres_close(pg);
}

static void renew_after_instance_delete(void)
{
    struct postgres *pg = begin("renew_instance");
    struct claim claims[] = {claim_of(1), claim_of(2)};
    CHECK_INT(fetch(pg, &claims[0]), ROW_MINE);
    CHECK_INT(fetch(pg, &claims[1]), ROW_MINE);
    delete_instance(pg);
    CHECK_INT(renew(pg, &claims[0]), ROW_MISSING);
    CHECK_INT(renew(pg, &claims[1]), ROW_MISSING);
    postgres_close(pg);
}

static void renew_after_execution_delete(void)
{
    struct postgres *pg = begin("renew_execution");
    struct claim claims[] = {claim_of(1), claim_of(2)};
    CHECK_INT(fetch(pg, &claims[0]), ROW_MINE);
    CHECK_INT(fetch(pg, &claims[1]), ROW_MINE);
    delete_first_execution(pg, "renew_execution");
    CHECK_INT(renew(pg, &claims[0]), ROW_MISSING);
    CHECK_INT(renew(pg, &claims[1]), ROW_MINE);
    postgres_close(pg);
}

/* The activity runs on, and its result has no row to delete: nothing is sent to a missing instance. */
static void orphan_activity(void)
{
    struct postgres *pg = begin("orphan");
    struct claim claim = claim_of(2);
    CHECK_INT(fetch(pg, &claim), ROW_MINE);
    delete_instance(pg);
    CHECK_INT(ack(pg, &claim), ROW_MISSING);
    CHECK_INT(store_count("orphan", "worker_queue"), 0);
    postgres_close(pg);
}

static const struct thole_test tests[] = {
    {"fetch_returns_missing_state_when_instance_deleted", fetch_after_instance_delete},
    {"fetch_returns_missing_state_when_execution_deleted", fetch_after_execution_delete},
    {"renew_returns_missing_when_instance_deleted", renew_after_instance_delete},
    {"renew_returns_missing_when_execution_deleted", renew_after_execution_delete},
    {"orphan_activity_after_instance_delete", orphan_activity},
};

int main(void)
{
    return store_run("seed_store", tests, ARRAY_LEN(tests));
}
