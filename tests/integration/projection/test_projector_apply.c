/* Batches of several partitions in one transaction, on a real Postgres. */
#include "store_fixture.h"

/* One of everything, and what goes, of instance i<p>. */
static struct batch *batch_of(uint32_t p, uint64_t seq)
{
    static char names[3][8];
    struct batch *batch = store_batch(1, seq);
    (void)snprintf(names[p], sizeof names[p], "i%u", p);
    thole_slice const name = thole_slice_from(names[p]);
    batch->partition = p;
    store_add_activities(batch, names[p], seq, 2);
    batch->timers_added = arena_array(&batch->arena, 2, sizeof *batch->timers_added);
    batch->timers_added_len = 2;
    for (size_t i = 0; i < 2; i++)
        batch->timers_added[i] =
            (struct batch_timer){.instance = name, .execution = 1, .timer_id = i + 1, .due_ms = 1000};
    batch->instances = arena_array(&batch->arena, 1, sizeof *batch->instances);
    batch->instances_len = 1;
    batch->instances[0] = (struct batch_instance){.instance = name,
                                                  .orchestration = THOLE_STR("checkout"),
                                                  .execution = 2,
                                                  .status = THOLE_INSTANCE_RUNNING,
                                                  .created_ms = 100,
                                                  .updated_ms = 200,
                                                  .turns = seq,
                                                  .history_seq = seq};
    batch->quarantine_added = arena_array(&batch->arena, 1, sizeof *batch->quarantine_added);
    batch->quarantine_added[0] = (struct batch_quarantine){.instance = name,
                                                           .execution = 1,
                                                           .activity_id = 9,
                                                           .queue = THOLE_STR("q"),
                                                           .activity = THOLE_STR("a"),
                                                           .try_number = 1,
                                                           .lost = 3,
                                                           .worker = THOLE_STR("w"),
                                                           .since_ms = 5};
    batch->quarantine_added_len = 1;
    if (seq > 10)
        store_remove_activities(batch, names[p], 10, p + 1);
    return batch;
}

static void open_partitions(struct postgres *pg)
{
    struct projected projected;
    for (uint32_t p = 0; p < 3; p++)
        CHECK_OK(projector_store_open(pg, p, 1, &projected, NULL, &store_err));
}

static void several_partitions_in_one_transaction(void)
{
    static const char of_all[] = "SELECT string_agg(p || instance, ',' ORDER BY instance, %s) FROM %s";
    struct postgres *pg = store_migrated("several");
    struct batch *first[3], *second[3];
    open_partitions(pg);
    for (uint32_t p = 0; p < 3; p++) {
        first[p] = batch_of(2 - p, 10); /* in any order */
        second[p] = batch_of(p, 20);
    }
    uint64_t const before = postgres_statements(pg);
    CHECK_OK(projector_store_apply(pg, first, 3, &store_err));
    CHECK_INT(postgres_statements(pg) - before, 6); /* as for one */
    CHECK_STR("activities", store_sql("several", of_all, "activity_id", "worker_queue"),
              "0i0,0i0,1i1,1i1,2i2,2i2");
    CHECK_STR("timers", store_sql("several", of_all, "timer_id", "timers"), "0i0,0i0,1i1,1i1,2i2,2i2");
    CHECK_STR("quarantine", store_sql("several", of_all, "activity_id", "quarantine"), "0i0,1i1,2i2");
    CHECK_STR("instances", store_sql("several", of_all, "turns", "instances"), "0i0,1i1,2i2");
    CHECK_STR("executions", store_sql("several", of_all, "turns", "executions"), "0i0,1i1,2i2");
    struct claim claims[] = {{.key = {THOLE_STR("i2"), 1, 11, 1}}, {.key = {THOLE_STR("i0"), 1, 10, 1}}};
    CHECK_OK(worker_store_claim(pg, THOLE_STR("w"), NULL, claims, 2, NULL, &store_err));
    CHECK_OK(projector_store_apply(pg, second, 3, &store_err));
    for (uint32_t p = 0; p < 3; p++)
        for (size_t i = 0; i < second[p]->activities_removed_len; i++)
            CHECK_INT(second[p]->activities_removed[i].held, (p == 0 && i == 0) || (p == 2 && i == 1));
    CHECK_STR("partitions",
              store_sql("several",
                        "SELECT string_agg(p || ':' || projected_seq || ':' || projected_mark, ',' "
                        "ORDER BY p) FROM partitions"),
              "0:20:1020,1:20:1020,2:20:1020");
    for (uint32_t p = 0; p < 3; p++) {
        batch_destroy(first[p]);
        batch_destroy(second[p]);
    }
    postgres_close(pg);
}

/* The epoch of one is another's, one is not open here, a number of one does not fit. */
static void what_is_wrong_with_one_is_wrong_with_all(void)
{
    struct postgres *pg = store_migrated("all");
    struct projected projected;
    open_partitions(pg);
    for (uint32_t wrong = 0; wrong < 3; wrong++) {
        for (int why = 0; why < 3; why++) {
            struct batch *batches[3] = {batch_of(0, 10), batch_of(1, 10), batch_of(2, 10)};
            if (why == 0)
                batches[wrong]->epoch = 2;
            else if (why == 1)
                batches[wrong]->partition = 7;
            else
                batches[wrong]->timers_added[1].execution = UINT64_MAX;
            CHECK_STATUS(projector_store_apply(pg, batches, 3, &store_err),
                         why == 2 ? THOLE_INVALID : THOLE_FENCED);
            CHECK_STR("nothing",
                      store_sql("all", "SELECT string_agg(projected_seq::text, ',') FROM partitions"),
                      "0,0,0");
            CHECK_INT(store_count("all", "worker_queue") + store_count("all", "timers") +
                          store_count("all", "instances") + store_count("all", "quarantine"),
                      0);
            for (uint32_t p = 0; p < 3; p++)
                batch_destroy(batches[p]);
        }
    }
    CHECK_OK(projector_store_open(pg, 0, 1, &projected, NULL, &store_err)); /* the connection goes on */
    postgres_close(pg);
}

static const struct thole_test tests[] = {
    {"several partitions in one transaction", several_partitions_in_one_transaction},
    {"what is wrong with one is wrong with all", what_is_wrong_with_one_is_wrong_with_all},
};

int main(void)
{
    return store_run("projector_apply", tests, ARRAY_LEN(tests));
}
