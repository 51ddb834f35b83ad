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
    struct rows_state rows;
    for (uint32_t p = 0; p < 3; p++)
        CHECK_OK(projector_store_open(pg, p, 1, &rows, NULL, &store_err));
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
    for (uint32_t p = 0; p < 3; p++)
        fixture_follow(pg, second[p]);
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

/* The epoch of one is another's, one is not open here, one follows another batch, a number of one does not
 * fit.
 */
static void what_is_wrong_with_one_is_wrong_with_all(void)
{
    struct postgres *pg = store_migrated("all");
    struct rows_state rows;
    open_partitions(pg);
    for (uint32_t wrong = 0; wrong < 3; wrong++) {
        for (int why = 0; why < 4; why++) {
            struct batch *batches[3] = {batch_of(0, 10), batch_of(1, 10), batch_of(2, 10)};
            if (why == 0)
                batches[wrong]->epoch = 2;
            else if (why == 1)
                batches[wrong]->partition = 7;
            else if (why == 2)
                batches[wrong]->follows.batches = 1;
            else
                batches[wrong]->timers_added[1].execution = UINT64_MAX;
            CHECK_STATUS(projector_store_apply(pg, batches, 3, &store_err),
                         why == 3 ? THOLE_INVALID : THOLE_FENCED);
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
    CHECK_OK(projector_store_open(pg, 0, 1, &rows, NULL, &store_err)); /* the connection goes on */
    postgres_close(pg);
}

/* ---- rows of another time ---- */

/* The row of partition 1, after two batches up to 10 and 20, is what @p sql makes of it. */
struct other_time {
    const char *sql;
    thole_status apply, look;
    const char *says;
};

static const struct other_time other_times[] = {
    {"SELECT 1", THOLE_OK, THOLE_OK, ""},
    {"UPDATE partitions SET batches = 1 WHERE p = 1", THOLE_CONFLICT, THOLE_CONFLICT,
     "it has epoch 1, projected up to 20 with 1 batches, and should have epoch 1, projected up to 20 with 2"},
    {"UPDATE partitions SET batches = 3 WHERE p = 1", THOLE_CONFLICT, THOLE_CONFLICT, "with 3 batches"},
    {"UPDATE partitions SET projected_seq = 10 WHERE p = 1", THOLE_CONFLICT, THOLE_CONFLICT, "up to 10 with"},
    {"UPDATE partitions SET projected_mark = 7 WHERE p = 1", THOLE_CONFLICT, THOLE_CONFLICT, "another time"},
    {"UPDATE partitions SET epoch = 0 WHERE p = 1", THOLE_CONFLICT, THOLE_CONFLICT, "gone"},
    {"UPDATE partitions SET epoch = 2 WHERE p = 1", THOLE_FENCED, THOLE_FENCED, "not its owner's"},
    {"DELETE FROM partitions WHERE p = 1", THOLE_CONFLICT, THOLE_CONFLICT, "gone"},
    {"UPDATE partitions SET incarnation = NULL WHERE p = 1", THOLE_OK, THOLE_CONFLICT, "complete"},
    {"TRUNCATE incarnation", THOLE_OK, THOLE_CONFLICT, "complete"},
};

/* The columns of all that a batch may not overwrite. */
static const char *row_of(const char *ns)
{
    return store_sql(ns,
                     "SELECT string_agg(p || ' ' || epoch || ' ' || projected_seq || ' ' || projected_mark"
                     " || ' ' || batches, ',') FROM partitions WHERE p = 1");
}

static void check_other_time(const struct other_time *of, struct postgres *pg, const char *ns)
{
    char before[256];
    struct rows_owner const owner = {.partition = 1, .epoch = 1};
    struct rows_look look = {.partition = 1, .epoch = 1, .rows = {{20, 1020}, 2}, .complete = true};
    struct batch *batch = batch_of(1, 30);
    CHECK_OK(projector_store_complete(pg, &owner, &store_err));
    (void)store_sql(ns, "%s", of->sql);
    (void)snprintf(before, sizeof before, "%s", row_of(ns));
    CHECK_OK(projector_store_look(pg, &look, 1, &store_err));
    CHECK_STATUS(projector_store_found(&look, &store_err), of->look);
    if (of->look != THOLE_OK)
        CHECK_HAS(store_err.text, of->says);
    batch->follows = look.rows;
    CHECK_STATUS(projector_store_apply(pg, &batch, 1, &store_err), of->apply);
    if (of->apply == THOLE_CONFLICT)
        CHECK_HAS(store_err.text, of->says);
    CHECK_STR(of->sql, of->apply == THOLE_OK ? "1 1 30 1030 3" : before, row_of(ns));
    CHECK_STR("activities", store_sql(ns, "SELECT min(activity_id) FROM worker_queue"),
              of->apply == THOLE_OK ? "30" : "10");
    batch_destroy(batch);
}

static void rows_of_another_time_are_left_alone(void)
{
    for (size_t i = 0; i < ARRAY_LEN(other_times); i++) {
        char ns[16];
        (void)snprintf(ns, sizeof ns, "time%zu", i);
        struct postgres *pg = store_migrated(ns);
        open_partitions(pg);
        CHECK_OK(fixture_apply(pg, batch_of(1, 10)));
        struct batch *second = batch_of(1, 20);
        second->activities_added_len = 0;
        second->activities_removed_len = 0;
        CHECK_OK(fixture_apply(pg, second));
        check_other_time(&other_times[i], pg, ns);
        postgres_close(pg);
    }
}

/* The result of a look at the rows of several partitions, whichever of them differ. */
static void looks_at_several(void)
{
    struct postgres *pg = store_migrated("looks");
    open_partitions(pg);
    (void)store_sql("looks",
                    "UPDATE partitions SET batches = 5 WHERE p = 0; DELETE FROM partitions WHERE p = 2");
    struct rows_look looks[] = {
        {.partition = 2, .epoch = 1}, {.partition = 0, .epoch = 1}, {.partition = 1, .epoch = 1}};
    CHECK_OK(projector_store_look(pg, looks, 3, &store_err));
    CHECK_STATUS(looks[0].status, THOLE_CONFLICT);
    CHECK_INT(looks[0].found_epoch, 0);
    CHECK_STATUS(looks[1].status, THOLE_CONFLICT);
    CHECK_INT(looks[1].found.batches, 5);
    CHECK_STATUS(looks[2].status, THOLE_OK);
    postgres_close(pg);
}

/* A reset is counted, too: what was written before it is of another time. */
static void a_reset_is_a_batch(void)
{
    struct postgres *pg = store_partition("counted");
    struct rows_state rows;
    CHECK_OK(fixture_apply(pg, batch_of(1, 10)));
    CHECK_OK(projector_store_reset(pg, 1, 1, &rows, &store_err));
    CHECK_INT(rows.batches, 2);
    CHECK_INT(rows.projected.seq, 0);
    struct batch *batch = batch_of(1, 10);
    batch->follows = rows;
    CHECK_OK(projector_store_apply(pg, &batch, 1, &store_err));
    batch_destroy(batch);
    postgres_close(pg);
}

/* Rows that are older than what their owner knows: nobody's loss is looked for in them. */
static void nothing_is_swept_in_rows_of_another_time(void)
{
    struct postgres *pg = store_with_activities("swept", 2);
    struct rows_owner const known = {.partition = 1, .epoch = 1, .batches = 1},
                            newer = {.partition = 1, .epoch = 1, .batches = 2},
                            another = {.partition = 1, .epoch = 2, .batches = 1};
    const struct rows_owner *const owners[] = {&newer, &another, &known};
    (void)store_sql("swept", "UPDATE worker_queue SET created_at = now() - interval '1 hour',"
                             " try_timeout_ms = 5, deadline_at = now() - interval '1 hour'");
    for (size_t i = 0; i < ARRAY_LEN(owners); i++) {
        struct arena arena;
        struct batch_activity *rows = NULL;
        struct expired_try *tries = NULL;
        size_t len = 9;
        uint64_t next_ms = 0;
        arena_init(&arena, 1 << 20);
        CHECK_OK(projector_store_orphans(pg, owners[i], 1000, 10, &arena, &rows, &len, &next_ms, &store_err));
        CHECK_INT(len, owners[i] == &known ? 2 : 0);
        CHECK_OK(projector_store_expire_begin(pg, owners[i], 0, 10, &arena, &tries, &len, &store_err));
        CHECK_INT(len, owners[i] == &known ? 2 : 0);
        projector_store_expire_rollback(pg);
        arena_release(&arena);
    }
    postgres_close(pg);
}

static const struct thole_test tests[] = {
    {"rows of another time are left alone", rows_of_another_time_are_left_alone},
    {"looks at several", looks_at_several},
    {"a reset is a batch", a_reset_is_a_batch},
    {"nothing is swept in rows of another time", nothing_is_swept_in_rows_of_another_time},
    {"several partitions in one transaction", several_partitions_in_one_transaction},
    {"what is wrong with one is wrong with all", what_is_wrong_with_one_is_wrong_with_all},
};

int main(void)
{
    return store_run("projector_apply", tests, ARRAY_LEN(tests));
}
