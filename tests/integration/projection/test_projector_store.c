/* The writes and reads of a partition's projector, and the reads of people, on a real Postgres. */
#include "store_fixture.h"
#include <pthread.h>
#include <stdlib.h>

static uint64_t open_epoch(struct postgres *pg, uint64_t epoch)
{
    struct rows_state rows = {{UINT64_MAX, UINT64_MAX}, UINT64_MAX};
    uint64_t registered = 0;
    CHECK_OK(projector_store_open(pg, 1, epoch, &rows, &registered, &store_err));
    struct projected const projected = rows.projected;
    CHECK_INT(registered, epoch);
    CHECK_INT(projected.mark, projected.seq == 0 ? 0 : 1000 + projected.seq);
    return projected.seq;
}

static struct batch_timer *add_timers(struct batch *batch, size_t n)
{
    batch->timers_added = arena_array(&batch->arena, n, sizeof *batch->timers_added);
    batch->timers_added_len = n;
    for (size_t i = 0; i < n; i++)
        batch->timers_added[i] = (struct batch_timer){
            .instance = THOLE_STR("i"), .execution = 1, .timer_id = i + 1, .due_ms = 1000 * (i + 1)};
    return batch->timers_added;
}

static struct batch_instance *add_instances(struct batch *batch, size_t n)
{
    batch->instances = arena_array(&batch->arena, n, sizeof *batch->instances);
    batch->instances_len = n;
    for (size_t i = 0; i < n; i++)
        batch->instances[i] = (struct batch_instance){.instance = THOLE_STR("i"),
                                                      .orchestration = THOLE_STR("checkout"),
                                                      .execution = 2,
                                                      .status = THOLE_INSTANCE_RUNNING,
                                                      .created_ms = 100,
                                                      .updated_ms = 200,
                                                      .detail = THOLE_STR(""),
                                                      .turns = 3,
                                                      .history_seq = 50};
    return batch->instances;
}

/* One of everything. */
static struct batch *full_batch(uint64_t epoch, uint64_t seq)
{
    struct batch *batch = store_batch(epoch, seq);
    store_add_activities(batch, "i", 1, 2);
    (void)add_timers(batch, 2);
    (void)add_instances(batch, 1);
    return batch;
}

/* All that a projector writes, as text; without times. */
static const char *dump(const char *ns)
{
    return store_sql(
        ns, "SELECT 'p ' || p || ' ' || epoch || ' ' || projected_seq || ' ' || projected_mark FROM "
            "partitions UNION ALL"
            " SELECT 'a ' || instance || ' ' || execution || ' ' || activity_id || ' ' || p || ' ' ||"
            " queue || ' ' || activity FROM worker_queue UNION ALL"
            " SELECT 't ' || instance || ' ' || execution || ' ' || timer_id || ' ' || p || ' ' || due_ms"
            " FROM timers UNION ALL SELECT 'i ' || i::text FROM instances i UNION ALL"
            " SELECT 'e ' || e::text FROM executions e ORDER BY 1");
}

/* -- batches -- */

static void apply_writes_every_kind(void)
{
    struct postgres *pg = store_partition("apply");
    CHECK_OK(fixture_apply(pg, full_batch(1, 50)));
    CHECK_STR(
        "rows", dump("apply"),
        "a i 1 1 1 default charge\na i 1 2 1 default charge\ne (i,2,1,1,100,,3,50)\n"
        "i (i,1,checkout,2,1,100,200,\"\",3,50,0,,\"\",0)\np 1 1 50 1050\nt i 1 1 1 1000\nt i 1 2 1 2000");
    struct batch *batch = store_batch(1, 60);
    struct batch_instance *row = add_instances(batch, 1);
    store_remove_activities(batch, "i", 1, 2);
    batch->timers_removed = arena_array(&batch->arena, 1, sizeof *batch->timers_removed);
    batch->timers_removed_len = 1;
    batch->timers_removed[0] =
        (struct batch_timer){.instance = THOLE_STR("i"), .execution = 1, .timer_id = 2};
    *row = (struct batch_instance){.instance = THOLE_STR("i"),
                                   .execution = 2,
                                   .status = THOLE_INSTANCE_FAILED,
                                   .updated_ms = 300,
                                   .detail = THOLE_STR("card declined"),
                                   .turns = 4,
                                   .history_seq = 60};
    CHECK_OK(fixture_apply(pg, batch));
    CHECK_STR("rows", dump("apply"),
              "e (i,2,1,5,100,300,4,60)\ni (i,1,checkout,2,5,100,300,\"card declined\",4,60,0,,\"\",0)\n"
              "p 1 1 60 1060\nt i 1 1 1 1000");
    postgres_close(pg);
}

static struct batch *quarantine_batch(uint64_t seq, struct batch_quarantine row)
{
    struct batch *batch = store_batch(1, seq);
    batch->quarantine_added = arena_array(&batch->arena, 1, sizeof row);
    batch->quarantine_added_len = 1;
    batch->quarantine_added[0] = row;
    return batch;
}

/* The activity's next try is quarantined, too: nothing of the first row is left. */
static void a_later_quarantine_replaces_all(void)
{
    struct batch_quarantine const first = {THOLE_STR("i"),      1,  7, THOLE_STR("q"),
                                           THOLE_STR("charge"), 2,  3, THOLE_STR("w"),
                                           THOLE_STR("why"),    10, 20};
    struct batch_quarantine const second = {THOLE_STR("i"),       1,  7, THOLE_STR("r"),
                                            THOLE_STR("refund"),  4,  5, THOLE_STR("x"),
                                            THOLE_STR("because"), 30, 40};
    struct postgres *pg = store_partition("quarantine");
    CHECK_OK(fixture_apply(pg, quarantine_batch(50, first)));
    CHECK_STR("first", store_sql("quarantine", "SELECT q::text FROM quarantine q"),
              "(i,1,7,1,q,charge,2,3,w,why,10,20)");
    CHECK_OK(fixture_apply(pg, quarantine_batch(60, second)));
    CHECK_STR("second", store_sql("quarantine", "SELECT q::text FROM quarantine q"),
              "(i,1,7,1,r,refund,4,5,x,because,30,40)");
    postgres_close(pg);
}

static void redone_batch_changes_nothing(void)
{
    char before[4096];
    struct postgres *pg = store_partition("redo");
    CHECK_OK(fixture_apply(pg, full_batch(1, 50)));
    (void)snprintf(before, sizeof before, "%s", dump("redo"));
    CHECK_OK(fixture_apply(pg, full_batch(1, 50)));
    CHECK_STR("redone", dump("redo"), before);
    CHECK_OK(fixture_apply(pg, full_batch(1, 0))); /* leaves the position */
    CHECK_STR("redone", dump("redo"), before);
    postgres_close(pg);
}

static void fenced_batch_applies_nothing(void)
{
    char before[4096];
    uint64_t now_ms, registered = 0;
    struct rows_state rows;
    struct postgres *old = store_partition("fence"), *new = fixture_open("fence");
    CHECK_OK(fixture_apply(old, store_batch(1, 30)));
    CHECK_INT(open_epoch(new, 2), 30);
    CHECK_INT(open_epoch(new, 2), 30);
    (void)snprintf(before, sizeof before, "%s", dump("fence"));
    CHECK_STATUS(fixture_apply(old, full_batch(1, 50)), THOLE_FENCED);
    CHECK_HAS(store_err.text, "partition 1");
    CHECK_STATUS(projector_store_reset(old, 1, 1, &rows, &store_err), THOLE_FENCED);
    CHECK_STATUS(projector_store_open(old, 1, 1, &rows, &registered, &store_err), THOLE_FENCED);
    CHECK_INT(registered, 2); /* an owner with nothing newer in its log goes on beyond it */
    CHECK_STATUS(fixture_apply(new, full_batch(3, 50)), THOLE_CONFLICT); /* never registered */
    CHECK_STR("unchanged", dump("fence"), before);
    CHECK_OK(fixture_apply(new, full_batch(2, 50)));
    CHECK_OK(postgres_now_ms(old, &now_ms, &store_err)); /* the connection goes on */
    postgres_close(old);
    postgres_close(new);
}

static void partition_must_be_open_on_the_connection(void)
{
    struct postgres *pg = store_migrated("unopened"), *other = store_partition("unopened");
    CHECK_STATUS(fixture_apply(pg, full_batch(1, 50)), THOLE_FENCED);
    CHECK_OK(fixture_apply(other, full_batch(1, 50)));
    postgres_close(other);
    (void)open_epoch(pg, 1);
    struct batch *batch = full_batch(1, 50);
    batch->partition = 2;
    CHECK_STATUS(fixture_apply(pg, batch), THOLE_FENCED);
    CHECK_OK(fixture_apply(pg, full_batch(1, 50)));
    postgres_close(pg);
}

enum { APPLIED_MAX = 20000 };

struct applier {
    pthread_t thread;
    struct postgres *pg;
    struct rows_state rows;
    uint64_t applied;
    thole_status status;
    thole_error err;
};

/* One activity for each batch until something stops it. */
static void *apply_until_fenced(void *arg)
{
    struct applier *self = arg;
    while (self->status == THOLE_OK && self->applied < APPLIED_MAX) {
        struct batch *batch = store_batch(1, self->applied + 1);
        store_add_activities(batch, "i", self->applied + 1, 1);
        batch->follows = self->rows;
        self->status = projector_store_apply(self->pg, &batch, 1, &self->err);
        fixture_followed(&self->rows, batch);
        self->applied += self->status == THOLE_OK;
        batch_destroy(batch);
    }
    return NULL;
}

static void take_over_is_a_clean_cut(void)
{
    struct applier old = {.pg = store_partition("cut")};
    struct postgres *new = fixture_open("cut");
    CU_ASSERT_FATAL(pthread_create(&old.thread, NULL, apply_until_fenced, &old) == 0);
    while (store_count("cut", "worker_queue") < 100) {
    }
    uint64_t seq = open_epoch(new, 2), rows = store_count("cut", "worker_queue");
    pthread_join(old.thread, NULL);
    store_err = old.err;
    CHECK_STATUS(old.status, THOLE_FENCED);
    CHECK_INT(rows, old.applied);
    CHECK_INT(seq, old.applied);
    CHECK_INT(store_count("cut", "worker_queue"), old.applied);
    postgres_close(old.pg);
    postgres_close(new);
}

static void instances_only_move_forward(void)
{
    struct postgres *pg = store_partition("forward");
    CHECK_OK(fixture_apply(pg, full_batch(1, 50)));
    struct batch *batch = store_batch(1, 51);
    struct batch_instance *rows = add_instances(batch, 1);
    rows[0].history_seq = 49;
    rows[0].status = THOLE_INSTANCE_COMPLETED;
    CHECK_OK(fixture_apply(pg, batch));
    CHECK_STR("older", store_sql("forward", "SELECT i FROM instances i"),
              "(i,1,checkout,2,1,100,200,\"\",3,50,0,,\"\",0)");
    CHECK_STR("older", store_sql("forward", "SELECT e FROM executions e"), "(i,2,1,1,100,,3,50)");

    batch = store_batch(1, 52); /* two executions of one instance, the later one first */
    rows = add_instances(batch, 2);
    rows[0].execution = 3;
    rows[0].history_seq = 70;
    rows[0].created_ms = 0;
    rows[0].updated_ms = 700;
    rows[1].history_seq = 60;
    rows[1].status = THOLE_INSTANCE_COMPLETED;
    rows[1].updated_ms = 600;
    CHECK_OK(fixture_apply(pg, batch));
    CHECK_STR("instance", store_sql("forward", "SELECT i FROM instances i"),
              "(i,1,checkout,3,1,100,700,\"\",3,70,0,,\"\",0)");
    CHECK_STR("executions", store_sql("forward", "SELECT e FROM executions e ORDER BY execution"),
              "(i,2,1,4,100,600,3,60)\n(i,3,1,1,700,,3,70)");
    postgres_close(pg);
}

static void what_does_not_fit_is_refused_whole(void)
{
    struct postgres *pg = store_partition("refused");
    struct batch *batch = full_batch(1, 50);
    batch->activities_added[1].execution = UINT64_MAX;
    CHECK_STATUS(fixture_apply(pg, batch), THOLE_INVALID);
    batch = full_batch(1, 50);
    batch->instances[0].parent = THOLE_STR("\xc3\x28");
    CHECK_STATUS(fixture_apply(pg, batch), THOLE_INVALID);
    batch = full_batch(1, 50);
    batch->timers_added[1].instance = THOLE_STR("a\0b");
    CHECK_STATUS(fixture_apply(pg, batch), THOLE_INVALID);
    batch = full_batch(1, 50);
    batch->activities_added_len = BATCH_ROWS_MAX + 1;
    CHECK_STATUS(fixture_apply(pg, batch), THOLE_INVALID);
    CHECK_STR("nothing", dump("refused"), "p 1 1 0 0");
    CHECK_OK(fixture_apply(pg, full_batch(1, 50)));
    postgres_close(pg);
}

/* -- ids -- */

#define TEN                                                                                                  \
    "\xf0\x9f\x98\x80\xf0\x9f\x98\x80\xf0\x9f\x98\x80\xf0\x9f\x98\x80\xf0\x9f\x98\x80" /* 20 bytes           \
                                                                                        */
static const char *const ids[] = {
    "'",
    "\"",
    "\\",
    "\\\\",
    "{}",
    "{a,b}",
    ",",
    "NULL",
    "null",
    " ",
    " leading and trailing ",
    "\t\r\n",
    "%",
    "a%",
    "a_",
    "ab",
    "a\\",
    "'; DROP TABLE worker_queue; --",
    "$1",
    "\x01\x7f",
    "\xc3\x9f",
    "\xe2\x80\xae",
    "\xf4\x8f\xbf\xbf",
    "A",
    "a",
    "\xc3\x84",
    "A\xcc\x88",
    TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN,
};

struct seen {
    char id[THOLE_ID_BYTES_MAX + 1];
    size_t count, stop_after;
    thole_instance_info info; /* with slices that are not valid any more */
    char all[1024];           /* ids, each followed by a space, as far as they fit */
};

static thole_status see(void *arg, const thole_instance_info *info)
{
    struct seen *seen = arg;
    size_t used = strlen(seen->all);
    (void)snprintf(seen->id, sizeof seen->id, "%.*s", THOLE_FMT(info->instance));
    (void)snprintf(seen->all + used, sizeof seen->all - used, "%.*s ", THOLE_FMT(info->instance));
    seen->info = *info;
    seen->count++;
    return seen->stop_after > 0 && seen->count == seen->stop_after ? THOLE_APP : THOLE_OK;
}

static void hostile_ids_come_back_as_they_are(void)
{
    struct postgres *pg = store_partition("hostile");
    struct batch *batch = store_batch(1, 1);
    size_t n = ARRAY_LEN(ids);
    store_add_activities(batch, "", 7, n);
    struct batch_timer *timers = add_timers(batch, n);
    struct batch_instance *instances = add_instances(batch, n);
    static struct claim claims[ARRAY_LEN(ids)];
    for (size_t i = 0; i < n; i++) {
        thole_slice id = thole_slice_from(ids[i]);
        batch->activities_added[i].instance = timers[i].instance = instances[i].instance = id;
        claims[i] = (struct claim){.key = {id, 1, 7 + i, 1}};
    }
    CHECK_OK(fixture_apply(pg, batch));
    CHECK_OK(worker_store_claim(pg, THOLE_STR("w"), NULL, claims, n, NULL, &store_err));
    for (size_t i = 0; i < n; i++) {
        struct seen seen = {0};
        CHECK_INT(claims[i].state, ROW_MINE);
        CHECK_OK(query_store_show(pg, claims[i].key.instance, see, &seen, &store_err));
        CHECK_STR("id", seen.id, ids[i]);
        CHECK_INT(seen.info.open_activities, 1);
    }
    struct arena arena;
    uint64_t next;
    size_t len = 0;
    arena_init(&arena, 1 << 20);
    CHECK_OK(projector_store_timers(pg, 1, UINT64_MAX, n, &arena, &timers, &len, &next, &store_err));
    CHECK_INT(len, n);
    for (size_t i = 0; i < len; i++)
        CHECK_STR("id", (const char *)timers[i].instance.ptr, ids[i]);
    arena_release(&arena);
    batch = store_batch(1, 2);
    store_remove_activities(batch, "", 7, n);
    for (size_t i = 0; i < n; i++)
        batch->activities_removed[i].instance = claims[i].key.instance;
    CHECK_OK(fixture_apply(pg, batch));
    CHECK_INT(store_count("hostile", "worker_queue"), 0);
    postgres_close(pg);
}

/* The removal reports which messages workers have. */
static void removals_say_what_workers_had(void)
{
    struct postgres *pg = store_partition("held");
    struct batch *batch = store_batch(1, 1);
    store_add_activities(batch, "i", 1, 4);
    CHECK_OK(fixture_apply(pg, batch));
    struct claim claims[] = {{.key = {THOLE_STR("i"), 1, 2, 1}}, {.key = {THOLE_STR("i"), 1, 4, 1}}};
    CHECK_OK(worker_store_claim(pg, THOLE_STR("w"), NULL, claims, 2, NULL, &store_err));
    CHECK_OK(worker_store_release(pg, THOLE_STR("w"), &claims[1], 1, &store_err));
    batch = store_batch(1, 2);
    store_remove_activities(batch, "i", 1, 5); /* one that was never there */
    fixture_follow(pg, batch);
    CHECK_OK(projector_store_apply(pg, &batch, 1, &store_err));
    for (size_t i = 0; i < 5; i++)
        CHECK_INT(batch->activities_removed[i].held, i == 1);
    CHECK_INT(store_count("held", "worker_queue"), 0);
    batch_destroy(batch);
    postgres_close(pg);
}

/* -- many rows -- */

static void ten_thousand_of_each_in_one_batch(void)
{
    struct postgres *pg = store_partition("many");
    struct batch *batch = store_batch(1, 1);
    store_add_activities(batch, "i", 1, BATCH_ROWS_MAX);
    (void)add_timers(batch, BATCH_ROWS_MAX);
    struct batch_instance *instances = add_instances(batch, BATCH_ROWS_MAX);
    char *detail = arena_alloc(&batch->arena, 1024), *names = arena_array(&batch->arena, BATCH_ROWS_MAX, 200);
    memset(detail, 'd', 1024);
    for (size_t i = 0; i < BATCH_ROWS_MAX; i++) {
        (void)snprintf(names + 200 * i, 200, "%0199zu", i);
        instances[i].instance = (thole_slice){(uint8_t *)names + 200 * i, 199};
        instances[i].detail = (thole_slice){(uint8_t *)detail, 1024};
    }
    struct rows_state rows;
    double start = store_now_us();
    CHECK_OK(fixture_apply(pg, batch));
    printf("\n    10,000 activities, timers and instances: %.0f ms", (store_now_us() - start) / 1e3);
    CHECK_INT(store_count("many", "worker_queue"), BATCH_ROWS_MAX);
    CHECK_INT(store_count("many", "timers"), BATCH_ROWS_MAX);
    CHECK_INT(store_count("many", "instances"), BATCH_ROWS_MAX);
    CHECK_INT(store_count("many", "executions"), BATCH_ROWS_MAX);
    start = store_now_us();
    CHECK_OK(projector_store_reset(pg, 1, 1, &rows, &store_err));
    printf(", emptied in %.0f ms", (store_now_us() - start) / 1e3);
    CHECK_STR("empty", dump("many"), "p 1 1 0 0");
    postgres_close(pg);
}

static void remove_and_count(struct postgres *pg, size_t n)
{
    struct batch *batch = store_batch(1, 1);
    store_add_activities(batch, "i", 1, n);
    CHECK_OK(fixture_apply(pg, batch));
    uint64_t before = postgres_statements(pg);
    batch = store_batch(1, 2);
    store_remove_activities(batch, "i", 1, n);
    double start = store_now_us();
    CHECK_OK(fixture_apply(pg, batch));
    printf("\n    %zu cancelled in %.0f us", n, store_now_us() - start);
    CHECK_INT(postgres_statements(pg) - before, 2); /* the fence and one delete */
    CHECK_STR("left", store_sql("mass", "SELECT count(*) FROM worker_queue WHERE instance = 'i'"), "0");
}

/* The plan is made while the table is empty and has to be right when it is not. */
static void mass_cancellation_deletes_all_activities(void)
{
    struct postgres *pg = store_partition("mass");
    (void)store_sql("mass", "SELECT 1");
    (void)store_own_sql(pg, "VACUUM ANALYZE worker_queue");
    remove_and_count(pg, 50);
    remove_and_count(pg, 2000);
    (void)store_sql("mass", "INSERT INTO worker_queue (instance, execution, activity_id, p, queue, activity)"
                            " SELECT 'other', 1, g, 1, 'q', 'a' FROM generate_series(1, 20000) g");
    remove_and_count(pg, 2000);
    const char *plan = store_own_sql(
        pg, "EXPLAIN (ANALYZE, TIMING OFF) EXECUTE activities_remove(array_fill('i'::text, '{2000}'),"
            " array_fill(1::int8, '{2000}'), array_fill(7::int8, '{2000}'), array_fill(2, '{2000}'),"
            " array_fill(0, '{2000}'))");
    CHECK_HAS(plan, "Index Scan using worker_queue_pkey on worker_queue q");
    CHECK_HAS(plan, "Index Cond: (((instance)::text = ANY (ARRAY[k.instance])) AND"
                    " ((execution)::bigint = k.execution) AND ((activity_id)::bigint = k.id))");
    CHECK_HAS(plan, "loops=2000)");
    CU_ASSERT(strstr(plan, "Seq Scan") == NULL);
    for (size_t i = 0; i < 2; i++) {
        plan = store_own_sql(pg, i == 0 ? "EXPLAIN DELETE FROM timers AS q WHERE p = 1"
                                        : "EXPLAIN SELECT count(*) FROM worker_queue WHERE p = 1");
        CU_ASSERT(strstr(plan, "Seq Scan") == NULL);
    }
    postgres_close(pg);
}

/* -- reads -- */

static void timers_come_by_due_time(void)
{
    static const struct timers_case {
        const char *name;
        uint64_t before_ms;
        size_t limit, len;
        uint64_t next_due_ms;
    } cases[] = {
        {"none due", 1000, 10, 0, 1000},
        {"one due", 1001, 10, 1, 2000},
        {"all due", 9000, 10, 5, 0},
        {"as many as the limit", 9000, 5, 5, 0},
        {"more than the limit", 9000, 2, 2, 3000},
        {"no room", 9000, 0, 0, 1000},
        {"the end of time", UINT64_MAX, 10, 5, 0},
    };
    struct postgres *pg = store_partition("timers");
    struct batch *batch = store_batch(1, 1);
    (void)add_timers(batch, 5);
    CHECK_OK(fixture_apply(pg, batch));
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct arena arena;
        struct batch_timer *timers = NULL;
        size_t len = 99;
        uint64_t next = 99;
        arena_init(&arena, 1 << 20);
        CHECK_OK(projector_store_timers(pg, 1, cases[i].before_ms, cases[i].limit, &arena, &timers, &len,
                                        &next, &store_err));
        CHECK_INT(len, cases[i].len);
        CHECK_INT(next, cases[i].next_due_ms);
        for (size_t t = 0; t < len; t++) {
            CHECK_INT(timers[t].timer_id, t + 1);
            CHECK_INT(timers[t].due_ms, 1000 * (t + 1));
        }
        arena_release(&arena);
        arena_init(&arena, 1);
        CHECK_STATUS(projector_store_timers(pg, 1, 9000, 10, &arena, &timers, &len, &next, &store_err),
                     THOLE_LIMIT);
        arena_release(&arena);
    }
    postgres_close(pg);
}

static void live_says_what_is_left_to_do(void)
{
    static const struct live_case {
        const char *id, *orchestration;
        uint32_t status;
    } rows[] = {
        {"a", "checkout", THOLE_INSTANCE_RUNNING}, {"b", "checkout", THOLE_INSTANCE_STUCK},
        {"c", "refund", THOLE_INSTANCE_WAITING},   {"d", "refund", THOLE_INSTANCE_COMPLETED},
        {"e", "audit", THOLE_INSTANCE_CANCELLED},  {"f", "checkout", THOLE_INSTANCE_FAILED},
    };
    struct postgres *pg = store_partition("live");
    struct batch *batch = store_batch(1, 1);
    struct batch_instance *instances = add_instances(batch, ARRAY_LEN(rows));
    store_add_activities(batch, "a", 1, 3);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        instances[i].instance = thole_slice_from(rows[i].id);
        instances[i].orchestration = thole_slice_from(rows[i].orchestration);
        instances[i].status = rows[i].status;
        instances[i].detail = THOLE_STR("why");
    }
    CHECK_OK(fixture_apply(pg, batch));
    (void)store_sql("live", "INSERT INTO worker_queue (instance, execution, activity_id, p, queue, activity)"
                            " VALUES ('z', 1, 1, 2, 'q', 'a')");
    struct arena arena;
    struct live_summary live;
    arena_init(&arena, 1 << 20);
    CHECK_OK(projector_store_live(pg, 1, &arena, &live, &store_err));
    CHECK_INT(live.open_activities, 3);
    CHECK_INT(live.blocked_len, 2);
    CHECK_STR("blocked", (const char *)live.blocked[0].instance.ptr, "b");
    CHECK_INT(live.blocked[0].status, THOLE_INSTANCE_STUCK);
    CHECK_INT(live.blocked[0].history_seq, 50);
    CHECK_STR("blocked", (const char *)live.blocked[1].orchestration.ptr, "refund");
    CHECK_STR("blocked", (const char *)live.blocked[1].detail.ptr, "why");
    CHECK_INT(live.orchestrations_len, 2);
    CHECK_STR("live", (const char *)live.orchestrations[0].ptr, "checkout");
    CHECK_INT(live.orchestration_counts[0], 2);
    CHECK_STR("live", (const char *)live.orchestrations[1].ptr, "refund");
    CHECK_INT(live.orchestration_counts[1], 1);
    (void)store_sql("live", "UPDATE instances SET version = CASE instance WHEN 'a' THEN 1 ELSE 2 END");
    CHECK_OK(
        projector_store_live(pg, 1, &arena, &live, &store_err)); /* the first version has none in its name */
    CHECK_INT(live.orchestrations_len, 3);
    CHECK_STR("live", (const char *)live.orchestrations[0].ptr, "checkout");
    CHECK_STR("live", (const char *)live.orchestrations[1].ptr, "checkout@2");
    CHECK_STR("live", (const char *)live.orchestrations[2].ptr, "refund@2");
    CHECK_OK(projector_store_live(pg, 7, &arena, &live, &store_err));
    CHECK_INT(live.open_activities + live.blocked_len + live.orchestrations_len, 0);
    arena_release(&arena);
    postgres_close(pg);
}

static uint64_t next_orphan_ms; /* of the last call */

static size_t orphans(struct postgres *pg, uint64_t older_than_ms, size_t limit, uint64_t *ret_first_id)
{
    struct arena arena;
    struct batch_activity *rows = NULL;
    size_t len = 0;
    arena_init(&arena, 1 << 20);
    CHECK_OK(projector_store_orphans(pg, &store_owner, older_than_ms, limit, &arena, &rows, &len,
                                     &next_orphan_ms, &store_err));
    *ret_first_id = len > 0 ? rows[0].activity_id : 0;
    if (len > 0) {
        CHECK_STR("queue", (const char *)rows[0].queue.ptr, "default");
        CHECK_STR("activity", (const char *)rows[0].activity.ptr, "charge");
    }
    arena_release(&arena);
    return len;
}

static void orphans_are_what_nobody_touched(void)
{
    uint64_t id;
    struct postgres *pg = store_partition("orphans");
    struct batch *batch = store_batch(1, 1);
    store_add_activities(batch, "i", 1, 4);
    CHECK_OK(fixture_apply(pg, batch));
    CHECK_INT(orphans(pg, 60000, 10, &id), 0);
    CU_ASSERT(next_orphan_ms > 50000 && next_orphan_ms <= 60000);
    (void)store_sql("orphans", "UPDATE worker_queue SET created_at = now() - interval '1 hour'");
    struct claim claims[] = {store_claim_of("i", 1), store_claim_of("i", 2)};
    CHECK_OK(worker_store_claim(pg, THOLE_STR("w"), NULL, claims, 2, NULL,
                                &store_err)); /* 1 and 2 are being run */
    (void)store_sql("orphans", "UPDATE worker_queue SET claimed_at = created_at WHERE activity_id <= 2");
    CHECK_OK(worker_store_renew(pg, THOLE_STR("w"), claims, 1, &store_err)); /* 2's worker is gone */
    CHECK_INT(orphans(pg, 7200000, 10, &id), 0);
    (void)store_sql("orphans", "BEGIN; SELECT 1 FROM worker_queue WHERE activity_id = 4 FOR UPDATE");
    CHECK_INT(orphans(pg, 60000, 1, &id), 1); /* takes turns: */
    CHECK_INT(next_orphan_ms, 0);
    CHECK_INT(orphans(pg, 60000, 10, &id), 1); /* 2 and 3, in some order; 4 is locked */
    CHECK_INT(orphans(pg, 60000, 10, &id), 0);
    (void)store_sql("orphans", "COMMIT");
    CHECK_INT(orphans(pg, 60000, 10, &id), 1);
    CHECK_INT(id, 4);
    CHECK_INT(orphans(pg, 60000, 10, &id), 0);
    CHECK_OK(worker_store_release(pg, THOLE_STR("w"), claims, 1, &store_err));
    CHECK_INT(orphans(pg, 60000, 10, &id), 0); /* given back just now */
    (void)store_sql("orphans", "UPDATE worker_queue SET swept_at = NULL WHERE activity_id = 3");
    CHECK_INT(orphans(pg, UINT64_MAX, 10, &id), 0);
    CHECK_INT(orphans(pg, 60000, UINT64_MAX, &id), 1);
    CHECK_INT(id, 3);
    CU_ASSERT(next_orphan_ms > 50000 && next_orphan_ms <= 60000);
    (void)store_sql("orphans", "UPDATE worker_queue SET created_at = now() - interval '30 seconds', "
                               "claimed_at = NULL, renewed_at = NULL, swept_at = NULL; "
                               "UPDATE worker_queue SET renewed_at = now() - interval '10 seconds' "
                               "WHERE activity_id > 1");
    CHECK_INT(orphans(pg, 60000, 10, &id), 0);
    CU_ASSERT(next_orphan_ms > 20000 && next_orphan_ms <= 30000); /* of 1 */
    CHECK_INT(orphans(pg, 20000, 10, &id), 1);
    CU_ASSERT(next_orphan_ms > 1000 && next_orphan_ms <= 10000); /* of the others */
    (void)store_sql("orphans", "UPDATE worker_queue SET later = true");
    CHECK_INT(orphans(pg, 1000, 10, &id), 0);
    CHECK_INT(next_orphan_ms, UINT64_MAX);
    postgres_close(pg);
}

static void reset_empties_one_partition(void)
{
    struct rows_state rows;
    struct postgres *pg = store_partition("reset");
    CHECK_OK(fixture_apply(pg, full_batch(1, 50)));
    CHECK_OK(projector_store_open(pg, 2, 1, &rows, NULL, &store_err));
    struct batch *batch = full_batch(1, 60);
    batch->partition = 2;
    batch->instances[0].instance = batch->activities_added[0].instance = THOLE_STR("j");
    batch->activities_added_len = 1;
    batch->timers_added_len = 0;
    CHECK_OK(fixture_apply(pg, batch));
    CHECK_OK(projector_store_reset(pg, 1, 1, &rows, &store_err));
    CHECK_STR(
        "left", dump("reset"),
        "a j 1 1 2 default charge\ne (j,2,2,1,100,,3,50)\ni (j,2,checkout,2,1,100,200,\"\",3,50,0,,\"\",0)\n"
        "p 1 1 0 0\np 2 1 60 1060");
    CHECK_STR("settings", store_own_sql(pg, "SHOW statement_timeout"), "10s\n");
    CHECK_STR("settings", store_own_sql(pg, "SHOW synchronous_commit"), "off\n");
    CHECK_OK(fixture_apply(pg, full_batch(1, 50)));
    postgres_close(pg);
}

/* -- people -- */

static void list_filters_and_sorts(void)
{
    static const struct list_case {
        const char *name;
        thole_instance_status status;
        const char *orchestration, *prefix;
        uint64_t limit;
        const char *want;
    } cases[] = {
        {"all, newest first", 0, "", "", 0, "a_b aXb a%c b "},
        {"status", THOLE_INSTANCE_STUCK, "", "", 0, "aXb "},
        {"orchestration", 0, "refund", "", 0, "b "},
        {"prefix", 0, "", "a", 0, "a_b aXb a%c "},
        {"prefix with a letter for LIKE", 0, "", "a_", 0, "a_b "},
        {"another", 0, "", "a%", 0, "a%c "},
        {"limit", 0, "", "", 3, "a_b aXb a%c "},
        {"nothing", 0, "none", "", 0, ""},
        {"all at once", THOLE_INSTANCE_RUNNING, "checkout", "a", 1, "a_b "},
    };
    static const char *const names[] = {"b", "a%c", "aXb", "a_b"};
    struct postgres *pg = store_partition("list");
    struct batch *batch = store_batch(1, 1);
    struct batch_instance *rows = add_instances(batch, ARRAY_LEN(names));
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        rows[i].instance = thole_slice_from(names[i]);
        rows[i].created_ms = 100 + i;
    }
    rows[0].orchestration = THOLE_STR("refund");
    rows[2].status = THOLE_INSTANCE_STUCK;
    CHECK_OK(fixture_apply(pg, batch));
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct seen seen = {0};
        thole_list_filter filter = {.size = sizeof filter,
                                    .status = cases[i].status,
                                    .orchestration = thole_slice_from(cases[i].orchestration),
                                    .id_prefix = thole_slice_from(cases[i].prefix),
                                    .limit = cases[i].limit};
        CHECK_OK(query_store_list(pg, &filter, see, &seen, &store_err));
        CHECK_STR(cases[i].name, seen.all, cases[i].want);
    }
    struct seen seen = {.stop_after = 2};
    thole_list_filter filter = {.size = sizeof filter};
    CHECK_STATUS(query_store_list(pg, &filter, see, &seen, &store_err), THOLE_APP);
    CHECK_INT(seen.count, 2);
    static const uint8_t long_prefix[500];
    filter.id_prefix = (thole_slice){long_prefix, sizeof long_prefix};
    CHECK_STATUS(query_store_list(pg, &filter, see, &seen, &store_err), THOLE_LIMIT);
    CHECK_STATUS(query_store_show(pg, THOLE_STR("none"), see, &seen, &store_err), THOLE_NOT_FOUND);
    postgres_close(pg);
}

static void long_lists_come_in_pages(void)
{
    struct postgres *pg = store_partition("pages");
    (void)store_sql("pages", "INSERT INTO instances SELECT 'i' || g, 1, 'o', 1, 1, g / 100, 0, '', 1, 1"
                             " FROM generate_series(1, 1700) g; ANALYZE instances");
    static const uint64_t limits[] = {1, 499, 500, 501, 1000, 1699, 1700, 5000};
    for (size_t i = 0; i < ARRAY_LEN(limits); i++) {
        struct seen seen = {0};
        thole_list_filter filter = {.size = sizeof filter, .limit = limits[i]};
        CHECK_OK(query_store_list(pg, &filter, see, &seen, &store_err));
        CHECK_INT(seen.count, limits[i] < 1700 ? limits[i] : 1700);
    }
    postgres_close(pg);
}

static void show_counts_what_is_open(void)
{
    struct postgres *pg = store_partition("show");
    struct seen seen = {0};
    struct batch *batch = full_batch(1, 50);
    CHECK_OK(fixture_apply(pg, batch));
    CHECK_OK(query_store_show(pg, THOLE_STR("i"), see, &seen, &store_err));
    CHECK_INT(seen.count, 1);
    CHECK_INT(seen.info.open_activities, 2);
    CHECK_INT(seen.info.open_timers, 2);
    CHECK_INT(seen.info.partition, 1);
    CHECK_INT(seen.info.execution, 2);
    CHECK_INT(seen.info.status, THOLE_INSTANCE_RUNNING);
    CHECK_INT(seen.info.created_ms, 100);
    CHECK_INT(seen.info.updated_ms, 200);
    seen.stop_after = 2;
    CHECK_STATUS(query_store_show(pg, THOLE_STR("i"), see, &seen, &store_err), THOLE_APP);
    postgres_close(pg);
}

/* Prints: the batch of one turn, which is what an idle system's latency is made of. */
static void speed_of_one_turn(void)
{
    enum { TURNS = 2000 };
    struct postgres *pg = store_partition("turn");
    struct rows_state rows = {.batches = 0};
    double us = 0;
    for (uint64_t i = 1; i <= TURNS; i++) {
        char id[32];
        (void)snprintf(id, sizeof id, "instance-%llu", (unsigned long long)i);
        struct batch *batch = store_batch(1, i);
        store_add_activities(batch, id, 2, 1);
        add_instances(batch, 1)->instance = thole_slice_from(id);
        batch->follows = rows;
        double start = store_now_us();
        CHECK_OK(projector_store_apply(pg, &batch, 1, &store_err));
        fixture_followed(&rows, batch);
        us += store_now_us() - start;
        batch_destroy(batch);
    }
    printf("\n    a turn with one activity: %.0f us", us / (double)TURNS);
    postgres_close(pg);
}

static const struct thole_test tests[] = {
    {"apply writes every kind", apply_writes_every_kind},
    {"a later quarantine replaces all", a_later_quarantine_replaces_all},
    {"redone batch changes nothing", redone_batch_changes_nothing},
    {"fenced batch applies nothing", fenced_batch_applies_nothing},
    {"partition must be open on the connection", partition_must_be_open_on_the_connection},
    {"take-over is a clean cut", take_over_is_a_clean_cut},
    {"instances only move forward", instances_only_move_forward},
    {"what does not fit is refused whole", what_does_not_fit_is_refused_whole},
    {"hostile ids come back as they are", hostile_ids_come_back_as_they_are},
    {"removals say what workers had", removals_say_what_workers_had},
    {"ten thousand of each in one batch", ten_thousand_of_each_in_one_batch},
    {"mass_cancellation_deletes_all_activities", mass_cancellation_deletes_all_activities},
    {"timers come by due time", timers_come_by_due_time},
    {"live says what is left to do", live_says_what_is_left_to_do},
    {"orphans are what nobody touched", orphans_are_what_nobody_touched},
    {"reset empties one partition", reset_empties_one_partition},
    {"list filters and sorts", list_filters_and_sorts},
    {"long lists come in pages", long_lists_come_in_pages},
    {"show counts what is open", show_counts_what_is_open},
    {"speed of one turn", speed_of_one_turn},
};

int main(void)
{
    return store_run("projector_store", tests, ARRAY_LEN(tests));
}
