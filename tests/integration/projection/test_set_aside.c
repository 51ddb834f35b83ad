/* Rows that Postgres refuses, one after the other, on a real server: they are set aside, all others are
 * written. */
#include "store_fixture.h"
#include <stdlib.h>

enum { BEFORE = 10, AFTER = 20, COLUMNS_MAX = 128 };

static const char *const tables[] = {"worker_queue", "timers", "quarantine", "instances", "executions"};

/* ---- batches ---- */

static struct batch *several(size_t instances, uint64_t seq)
{
    struct batch *batch = store_batch(1, seq);
    batch->activities_added = arena_array(&batch->arena, 2 * instances, sizeof *batch->activities_added);
    batch->timers_added = arena_array(&batch->arena, instances, sizeof *batch->timers_added);
    batch->quarantine_added = arena_array(&batch->arena, instances, sizeof *batch->quarantine_added);
    batch->instances = arena_array(&batch->arena, instances, sizeof *batch->instances);
    return batch;
}

/* One row of each table; two of worker_queue, one of them a later try. */
static void add_one_of_each(struct batch *batch, const char *name)
{
    thole_slice const id = thole_slice_from(name), q = THOLE_STR("q"), a = THOLE_STR("a");
    uint64_t const seq = batch->projected.seq;
    for (uint32_t i = 1; i <= 2; i++)
        batch->activities_added[batch->activities_added_len++] = (struct batch_activity){
            .instance = id, .execution = 2, .activity_id = i, .queue = q, .activity = a, .try_number = i};
    batch->timers_added[batch->timers_added_len++] =
        (struct batch_timer){.instance = id, .execution = 2, .timer_id = 3, .due_ms = 1000};
    batch->quarantine_added[batch->quarantine_added_len++] =
        (struct batch_quarantine){.instance = id,
                                  .execution = 2,
                                  .activity_id = 4,
                                  .queue = q,
                                  .activity = a,
                                  .try_number = 1,
                                  .lost = 3,
                                  .worker = THOLE_STR("w"),
                                  .reason = THOLE_STR("r"),
                                  .since_ms = 5};
    batch->instances[batch->instances_len++] = (struct batch_instance){.instance = id,
                                                                       .orchestration = THOLE_STR("checkout"),
                                                                       .version = 1,
                                                                       .execution = 2,
                                                                       .status = THOLE_INSTANCE_RUNNING,
                                                                       .created_ms = 100,
                                                                       .updated_ms = 200,
                                                                       .turns = seq,
                                                                       .history_seq = seq};
}

static struct batch *good_bad_good(uint64_t seq)
{
    struct batch *const batch = several(3, seq);
    add_one_of_each(batch, "good1");
    add_one_of_each(batch, "bad");
    add_one_of_each(batch, "good2");
    return batch;
}

static struct rows_state rows; /* after a reset or an opening */

/* As the engine does. Destroys the batch. */
static thole_status apply_as_engine(struct postgres *pg, struct batch *batch, struct projector_refused *ret)
{
    *ret = (struct projector_refused){.rows = 0};
    fixture_follow(pg, batch);
    thole_status status = projector_store_apply(pg, &batch, 1, &store_err);
    if (status == THOLE_INVALID || status == THOLE_LIMIT)
        status = projector_store_apply_apart(pg, batch, ret, &store_err);
    batch_destroy(batch);
    return status;
}

static void check_written(const char *ns, uint64_t seq, const char *but_of_bad)
{
    CHECK_STR("watermark", store_sql(ns, "SELECT projected_seq FROM partitions WHERE p = 1"),
              seq == BEFORE ? "10" : "20");
    for (size_t i = 0; i < ARRAY_LEN(tables); i++) {
        bool const two = i == 0;
        CHECK_STR(tables[i], store_sql(ns, "SELECT count(*) FROM %s WHERE instance LIKE 'good%%'", tables[i]),
                  two ? "4" : "2");
        CHECK_STR(tables[i], store_sql(ns, "SELECT count(*) FROM %s WHERE instance = 'bad'", tables[i]),
                  strcmp(tables[i], but_of_bad) == 0 ? "0"
                  : two                              ? "2"
                                                     : "1");
    }
}

static const char *entries(const char *ns)
{
    return store_sql(
        ns,
        "SELECT string_agg(concat_ws('/', instance, row_table, execution, id, row_column, nullif(code, ''),"
        " CASE WHEN removal THEN 'removal' END), ' ' ORDER BY row_table, execution, id)"
        " FROM set_aside");
}

static uint64_t keys_of(const char *table)
{
    return strcmp(table, "worker_queue") == 0 ? 2 : 1;
}

/* ---- each column of each table ---- */

static void refuse_column(const char *ns, const char *table, const char *column, bool trigger)
{
    if (trigger)
        (void)store_sql(ns,
                        "CREATE OR REPLACE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
                        " RAISE EXCEPTION 'not this one' USING COLUMN = TG_ARGV[0]; END $$; CREATE TRIGGER"
                        " fault BEFORE INSERT OR UPDATE ON %s FOR EACH ROW WHEN (NEW.instance = 'bad')"
                        " EXECUTE FUNCTION refuse('%s')",
                        table, column);
    else
        (void)store_sql(
            ns,
            "ALTER TABLE %s ADD CONSTRAINT fault CHECK (CASE WHEN instance = 'bad' THEN %s IS NULL"
            " AND %s IS NOT NULL ELSE true END)",
            table, column, column);
}

static void allow_column(const char *ns, const char *table, bool trigger)
{
    if (trigger)
        (void)store_sql(ns, "DROP TRIGGER fault ON %s", table);
    else
        (void)store_sql(ns, "ALTER TABLE %s DROP CONSTRAINT fault", table);
}

static void one_column(struct postgres *pg, const char *table, const char *column, bool trigger)
{
    static const char ns[] = "columns";
    struct projector_refused refused;
    refuse_column(ns, table, column, trigger);
    CHECK_OK(apply_as_engine(pg, good_bad_good(BEFORE), &refused));
    CHECK_INT(refused.rows, keys_of(table));
    CHECK_INT(projector_store_set_aside(pg, 1), keys_of(table));
    CHECK_HAS(refused.first, table);
    CHECK_HAS(refused.first, column);
    check_written(ns, BEFORE, table);
    CHECK_STR(column,
              store_sql(ns,
                        "SELECT bool_and(instance = 'bad' AND row_table = '%s' AND NOT removal"
                        " AND row_column ~ '\\y%s\\y')::text FROM set_aside",
                        table, column),
              "true");
    allow_column(ns, table, trigger);
    CHECK_OK(apply_as_engine(pg, good_bad_good(AFTER), &refused));
    CHECK_INT(refused.rows, 0);
    CHECK_INT(store_count(ns, "set_aside"), 0);
    CHECK_INT(projector_store_set_aside(pg, 1), 0);
    check_written(ns, AFTER, "");
    CHECK_OK(projector_store_reset(pg, 1, 1, &rows, &store_err));
}

/* All that there are: a new one is covered. */
static void each_column_of_each_table(void)
{
    char columns[8192], *left = columns, *word;
    struct postgres *pg = store_partition("columns");
    size_t n = 0;
    (void)snprintf(columns, sizeof columns, "%s",
                   store_sql("columns", "SELECT string_agg(table_name || '.' || column_name, ' ') FROM"
                                        " information_schema.columns WHERE table_schema = 'thole_columns' AND"
                                        " table_name IN ('worker_queue', 'timers', 'quarantine', 'instances',"
                                        " 'executions')"));
    for (; (word = strsep(&left, " ")) != NULL; n++) {
        char *const column = strchr(word, '.');
        *column = '\0';
        one_column(pg, word, column + 1, n % 2 == 0);
    }
    CHECK_INT(n > 50, 1);
    postgres_close(pg);
}

/* ---- each statement that removes ---- */

static struct batch *removals(uint64_t seq)
{
    static const char *const names[] = {"good1", "bad", "good2"};
    struct batch *const batch = store_batch(1, seq);
    batch->activities_removed = arena_array(&batch->arena, 3, sizeof *batch->activities_removed);
    batch->timers_removed = arena_array(&batch->arena, 3, sizeof *batch->timers_removed);
    batch->quarantine_removed = arena_array(&batch->arena, 3, sizeof *batch->quarantine_removed);
    for (size_t i = 0; i < 3; i++) {
        thole_slice const id = thole_slice_from(names[i]);
        batch->activities_removed[batch->activities_removed_len++] =
            (struct batch_activity){.instance = id, .execution = 2, .activity_id = 1};
        batch->timers_removed[batch->timers_removed_len++] =
            (struct batch_timer){.instance = id, .execution = 2, .timer_id = 3};
        batch->quarantine_removed[batch->quarantine_removed_len++] =
            (struct batch_quarantine){.instance = id, .execution = 2, .activity_id = 4};
    }
    return batch;
}

static struct batch *deletions(uint64_t seq)
{
    static const char *const names[] = {"good1", "bad", "good2"};
    struct batch *const batch = store_batch(1, seq);
    batch->deletions = arena_array(&batch->arena, 3, sizeof *batch->deletions);
    for (size_t i = 0; i < 3; i++)
        batch->deletions[batch->deletions_len++] = (struct batch_deletion){
            .instance = thole_slice_from(names[i]), .execution = 2, .history_seq = seq};
    return batch;
}

/* A worker has the first activity of each: `held` must be said of the right ones. */
static void claim_all(struct postgres *pg)
{
    struct claim claims[] = {{.key = {THOLE_STR("bad"), 2, 1, 1}}, {.key = {THOLE_STR("good2"), 2, 1, 1}}};
    CHECK_OK(worker_store_claim(pg, THOLE_STR("w"), NULL, claims, 2, NULL, &store_err));
}

static void refuse_removal(const char *ns, const char *table)
{
    (void)store_sql(ns,
                    "CREATE OR REPLACE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE"
                    " EXCEPTION 'this one stays'; END $$; CREATE TRIGGER fault BEFORE DELETE ON %s FOR EACH"
                    " ROW WHEN (OLD.instance = 'bad') EXECUTE FUNCTION keep()",
                    table);
}

static void one_removal(struct postgres *pg, const char *table, bool deletes)
{
    static const char ns[] = "removals";
    struct projector_refused refused;
    struct batch *gone = deletes ? deletions(AFTER) : removals(AFTER);
    bool const activities = strcmp(table, "worker_queue") == 0;
    CHECK_OK(projector_store_reset(pg, 1, 1, &rows, &store_err));
    CHECK_OK(apply_as_engine(pg, good_bad_good(BEFORE), &refused));
    claim_all(pg);
    refuse_removal(ns, table);
    fixture_follow(pg, gone);
    CHECK_STATUS(projector_store_apply(pg, &gone, 1, &store_err), THOLE_INVALID);
    CHECK_OK(projector_store_apply_apart(pg, gone, &refused, &store_err));
    for (size_t i = 0; i < gone->activities_removed_len; i++)
        CHECK_INT(gone->activities_removed[i].held, i == 2 || (i == 1 && !activities));
    batch_destroy(gone);
    CHECK_INT(refused.rows, 1);
    CHECK_STR(table, store_sql(ns, "SELECT instance || row_table || removal FROM set_aside"),
              activities                         ? "badworker_queuetrue"
              : strcmp(table, "timers") == 0     ? "badtimerstrue"
              : strcmp(table, "quarantine") == 0 ? "badquarantinetrue"
              : strcmp(table, "instances") == 0  ? "badinstancestrue"
                                                 : "badexecutionstrue");
    for (size_t i = 0; i < ARRAY_LEN(tables); i++) {
        bool const stays = !deletes && (i == 0 || i > 2), here = strcmp(tables[i], table) == 0;
        CHECK_INT(strtoull(store_sql(ns, "SELECT count(DISTINCT instance) FROM %s", tables[i]), NULL, 10),
                  stays ? 3 : here);
    }
    (void)store_sql(ns, "DROP TRIGGER fault ON %s", table);
    gone = deletions(AFTER + 1);
    CHECK_OK(apply_as_engine(pg, gone, &refused));
    CHECK_INT(store_count(ns, "set_aside") + store_count(ns, table), 0);
}

static void each_statement_that_removes(void)
{
    struct postgres *pg = store_partition("removals");
    for (size_t i = 0; i < ARRAY_LEN(tables); i++) {
        if (i < 3)
            one_removal(pg, tables[i], false);
        one_removal(pg, tables[i], true);
    }
    postgres_close(pg);
}

/* ---- values that the program itself does not send ---- */

static void numbers_that_do_not_fit(void)
{
    static const char *const said[] = {"bad/instances/0/0/version", "bad/worker_queue/2/1/try_number",
                                       "bad/timers/9223372036854775807/3/execution",
                                       "bad/quarantine/2/4/since_ms"};
    struct postgres *pg = store_partition("numbers");
    struct projector_refused refused;
    for (size_t i = 0; i < ARRAY_LEN(said); i++) {
        struct batch *const batch = good_bad_good(BEFORE);
        if (i == 0)
            batch->instances[1].version = UINT32_C(1) << 31;
        else if (i == 1)
            batch->activities_added[2].try_number = UINT32_MAX;
        else if (i == 2)
            batch->timers_added[1].execution = UINT64_MAX;
        else
            batch->quarantine_added[1].since_ms = UINT64_MAX;
        CHECK_OK(apply_as_engine(pg, batch, &refused));
        CHECK_STR(said[i], entries("numbers"), said[i]);
        CHECK_HAS(refused.first, "a number does not fit");
        CHECK_INT(store_count("numbers", "instances"), i == 0 ? 2 : 3);
        CHECK_OK(projector_store_reset(pg, 1, 1, &rows, &store_err));
        CHECK_INT(store_count("numbers", "set_aside"), 0);
        CHECK_INT(projector_store_set_aside(pg, 1), 0);
    }
    postgres_close(pg);
}

/* Each row fits, all together do not: nothing is refused. */
static void more_bytes_than_a_call_may_have(void)
{
    enum { ROWS = 5000, DETAILS = 16384 };
    struct postgres *pg = store_partition("bytes");
    struct projector_refused refused;
    struct batch *const batch = store_batch(1, BEFORE);
    uint8_t *const details = arena_alloc(&batch->arena, DETAILS);
    memset(details, 'x', DETAILS);
    store_add_activities(batch, "large", 1, ROWS);
    for (size_t i = 0; i < ROWS; i++)
        batch->activities_added[i].details = (thole_slice){details, DETAILS};
    CHECK_OK(apply_as_engine(pg, batch, &refused));
    CHECK_INT(refused.rows, 0);
    CHECK_INT(store_count("bytes", "worker_queue"), ROWS);
    postgres_close(pg);
}

/* ---- which failures are the row's ---- */

static void refuse_with(const char *ns, const char *how)
{
    (void)store_sql(
        ns,
        "DROP TRIGGER IF EXISTS fault ON timers; CREATE OR REPLACE FUNCTION fault() RETURNS trigger"
        " LANGUAGE plpgsql AS $$ BEGIN %s; RETURN NEW; END $$; CREATE TRIGGER fault BEFORE INSERT"
        " ON timers FOR EACH ROW WHEN (NEW.instance = 'bad') EXECUTE FUNCTION fault()",
        how);
}

static void codes_of_a_row(void)
{
    static const struct {
        const char *how, *code;
        thole_status want;
    } cases[] = {
        {"PERFORM 1 / 0", "22012", THOLE_OK}, /* the fence's, elsewhere */
        {"RAISE EXCEPTION 'no'", "P0001", THOLE_OK},
        {"RAISE EXCEPTION USING ERRCODE = 'TH001'", "TH001", THOLE_OK},
        {"RAISE EXCEPTION USING ERRCODE = '23514'", "23514", THOLE_OK},
        {"RAISE EXCEPTION USING ERRCODE = '54000'", "54000", THOLE_OK},
        {"PERFORM 'x'::int", "22P02", THOLE_OK},
        {"RAISE EXCEPTION USING ERRCODE = '53100'", "", THOLE_UNAVAILABLE},
        {"RAISE EXCEPTION USING ERRCODE = '40001'", "", THOLE_UNAVAILABLE},
        {"RAISE EXCEPTION USING ERRCODE = '57014'", "", THOLE_UNAVAILABLE},
        {"RAISE EXCEPTION USING ERRCODE = '42501'", "", THOLE_DENIED},
        {"RAISE EXCEPTION USING ERRCODE = 'XX001'", "", THOLE_CORRUPT},
        {"PERFORM * FROM nowhere", "", THOLE_UNAVAILABLE}, /* the last: it ends the session */
    };
    struct postgres *pg = store_partition("codes");
    struct projector_refused refused;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        refuse_with("codes", cases[i].how);
        CHECK_STATUS(apply_as_engine(pg, good_bad_good(BEFORE), &refused), cases[i].want);
        CHECK_INT(refused.rows, cases[i].want == THOLE_OK);
        CHECK_STR(cases[i].how, store_sql("codes", "SELECT string_agg(code, ' ') FROM set_aside"),
                  cases[i].code);
        CHECK_STR(cases[i].how, store_sql("codes", "SELECT projected_seq FROM partitions WHERE p = 1"),
                  cases[i].want == THOLE_OK ? "10" : "0");
        if (cases[i].want == THOLE_OK)
            CHECK_OK(projector_store_reset(pg, 1, 1, &rows, &store_err));
    }
    postgres_close(pg);
}

/* ---- the database is broken, and not the row ---- */

static void check_nothing(const char *ns, const char *part)
{
    CHECK_HAS(store_err.text, part);
    CHECK_STR("watermark", store_sql(ns, "SELECT projected_seq FROM partitions WHERE p = 1"), "0");
    for (size_t i = 0; i < ARRAY_LEN(tables); i++)
        CHECK_INT(store_count(ns, tables[i]), 0);
    CHECK_INT(store_count(ns, "set_aside"), 0);
}

static void a_table_that_takes_no_row(void)
{
    struct postgres *pg = store_partition("broken");
    struct projector_refused refused;
    for (size_t i = 0; i < ARRAY_LEN(tables); i++) {
        (void)store_sql("broken", "ALTER TABLE %s ADD COLUMN must int NOT NULL", tables[i]);
        CHECK_STATUS(apply_as_engine(pg, good_bad_good(BEFORE), &refused), THOLE_INVALID);
        check_nothing("broken", "takes no row");
        CHECK_HAS(store_err.text, tables[i]);
        (void)store_sql("broken", "ALTER TABLE %s DROP COLUMN must", tables[i]);
    }
    CHECK_OK(apply_as_engine(pg, good_bad_good(BEFORE), &refused));
    CHECK_INT(refused.rows, 0);
    check_written("broken", BEFORE, "");
    postgres_close(pg);
}

static void more_rows_than_may_be_set_aside(void)
{
    struct postgres *pg = store_partition("many");
    struct projector_refused refused;
    struct batch *batch = store_batch(1, BEFORE);
    (void)store_sql("many", "ALTER TABLE worker_queue ADD CONSTRAINT fault CHECK (instance <> 'bad')");
    store_add_activities(batch, "bad", 1, SET_ASIDE_MAX + 1);
    CHECK_STATUS(apply_as_engine(pg, batch, &refused), THOLE_INVALID);
    check_nothing("many", "1000 rows of partition 1 are set aside already");
    batch = store_batch(1, BEFORE);
    store_add_activities(batch, "bad", 1, SET_ASIDE_MAX);
    CHECK_OK(apply_as_engine(pg, batch, &refused));
    CHECK_INT(projector_store_set_aside(pg, 1), SET_ASIDE_MAX);
    batch = store_batch(1, AFTER);
    store_add_activities(batch, "bad", SET_ASIDE_MAX + 1, 1);
    CHECK_STATUS(apply_as_engine(pg, batch, &refused), THOLE_INVALID);
    batch = store_batch(1, AFTER);
    store_add_activities(batch, "good", 1, 1);
    CHECK_OK(apply_as_engine(pg, batch, &refused));
    CHECK_INT(store_count("many", "worker_queue"), 1);
    postgres_close(pg);
}

/* ---- the fence, and an owner that dies ---- */

static void another_owner(void)
{
    struct postgres *pg = store_partition("fenced");
    struct projector_refused refused;
    refuse_column("fenced", "timers", "due_ms", true);
    (void)store_sql("fenced", "UPDATE partitions SET epoch = 2 WHERE p = 1");
    struct batch *const batch = good_bad_good(BEFORE);
    CHECK_STATUS(projector_store_apply_apart(pg, batch, &refused, &store_err), THOLE_FENCED);
    check_nothing("fenced", "epoch 1 is not its owner's");
    batch_destroy(batch);
    (void)store_sql("fenced", "CREATE TRIGGER fault BEFORE UPDATE ON partitions FOR EACH ROW EXECUTE FUNCTION"
                              " refuse('epoch'); UPDATE pg_trigger SET tgenabled = 'O' WHERE false");
    CHECK_STATUS(projector_store_open(pg, 1, 3, &rows, NULL, &store_err), THOLE_INVALID);
    postgres_close(pg);
}

/* ---- workers ---- */

static void refuse_update(const char *ns, const char *when)
{
    (void)store_sql(ns,
                    "DROP TRIGGER IF EXISTS fault ON worker_queue; CREATE OR REPLACE FUNCTION keep() RETURNS"
                    " trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'this one stays'; END $$; CREATE"
                    " TRIGGER fault BEFORE %s ON worker_queue FOR EACH ROW WHEN (OLD.activity_id = 2) EXECUTE"
                    " FUNCTION keep()",
                    when);
}

static void check_states(struct postgres *pg, const struct claim *claims, enum row_state other)
{
    (void)pg;
    for (size_t i = 0; i < 3; i++)
        CHECK_INT(claims[i].state, i == 1 ? ROW_UNKNOWN : other);
}

/* A row that cannot be claimed, renewed or completed: those beside it can. */
static void a_row_beside_others_of_a_worker(void)
{
    thole_slice const worker = THOLE_STR("w");
    struct postgres *pg = store_with_activities("beside", 3);
    struct claim claims[3] = {store_claim_of("i", 1), store_claim_of("i", 2), store_claim_of("i", 3)};
    refuse_update("beside", "UPDATE");
    CHECK_OK(worker_store_claim(pg, worker, NULL, claims, 3, NULL, &store_err));
    check_states(pg, claims, ROW_MINE);
    CHECK_STATUS(worker_store_claim(pg, worker, NULL, &claims[1], 1, NULL, &store_err), THOLE_INVALID);
    (void)store_sql("beside", "DROP TRIGGER fault ON worker_queue");
    CHECK_OK(worker_store_claim(pg, worker, NULL, &claims[1], 1, NULL, &store_err));
    CHECK_INT(claims[1].state, ROW_MINE);
    refuse_update("beside", "UPDATE");
    CHECK_OK(worker_store_renew(pg, worker, claims, 3, &store_err));
    check_states(pg, claims, ROW_MINE);
    refuse_update("beside", "DELETE");
    CHECK_OK(worker_store_complete_begin(pg, worker, claims, 3, &store_err));
    check_states(pg, claims, ROW_MINE);
    CHECK_OK(worker_store_complete_commit(pg, &store_err));
    CHECK_STR("left", store_sql("beside", "SELECT string_agg(activity_id::text, ',') FROM worker_queue"),
              "2");
    postgres_close(pg);
}

/* The sweeper goes past a row that it cannot change. */
static void a_row_in_the_way_of_the_sweeper(void)
{
    struct postgres *pg = store_with_activities("sweeper", 3);
    struct arena arena;
    struct batch_activity *orphans = NULL;
    struct expired_try *expired = NULL;
    size_t len = 0;
    uint64_t next_ms = 0;
    arena_init(&arena, 1024 * 1024);
    (void)store_sql("sweeper",
                    "UPDATE worker_queue SET created_at = created_at - activity_id * interval '1 hour',"
                    " try_timeout_ms = 1, deadline_at = now() - interval '1 hour'");
    refuse_update("sweeper", "UPDATE");
    CHECK_OK(
        projector_store_orphans(pg, &store_owner, 1000, 10, &arena, &orphans, &len, &next_ms, &store_err));
    CHECK_INT(len, 2);
    CHECK_INT(len == 2 && orphans[0].activity_id == 3 && orphans[1].activity_id == 1, 1);
    CHECK_STATUS(
        projector_store_orphans(pg, &store_owner, 1000, 10, &arena, &orphans, &len, &next_ms, &store_err),
        THOLE_INVALID); /* there is no other one */
    CHECK_HAS(store_err.text, "this one stays");
    refuse_update("sweeper", "DELETE");
    CHECK_OK(projector_store_expire_begin(pg, &store_owner, 0, 10, &arena, &expired, &len, &store_err));
    CHECK_INT(len, 2);
    CHECK_OK(projector_store_expire_commit(pg, &store_err));
    CHECK_STR("left", store_sql("sweeper", "SELECT string_agg(activity_id::text, ',') FROM worker_queue"),
              "2");
    arena_release(&arena);
    postgres_close(pg);
}

/* The row of an execution is written when it begins and when it ends: a turn between the two does not mend
 * it. */
static void a_turn_that_does_not_write_the_row(void)
{
    struct postgres *pg = store_partition("between");
    struct projector_refused refused;
    refuse_column("between", "executions", "turns", true);
    CHECK_OK(apply_as_engine(pg, good_bad_good(BEFORE), &refused));
    allow_column("between", "executions", true);
    struct batch *const turn = several(1, AFTER), *const end = several(1, AFTER + 1);
    turn->instances[turn->instances_len++] = (struct batch_instance){.instance = THOLE_STR("bad"),
                                                                     .execution = 2,
                                                                     .status = THOLE_INSTANCE_RUNNING,
                                                                     .updated_ms = 300,
                                                                     .turns = 5,
                                                                     .history_seq = AFTER};
    end->instances[end->instances_len++] = (struct batch_instance){.instance = THOLE_STR("bad"),
                                                                   .execution = 2,
                                                                   .status = THOLE_INSTANCE_COMPLETED,
                                                                   .updated_ms = 400,
                                                                   .turns = 6,
                                                                   .history_seq = AFTER + 1};
    CHECK_OK(apply_as_engine(pg, turn, &refused));
    CHECK_STR("between", entries("between"), "bad/executions/2/0/turns/P0001");
    CHECK_OK(apply_as_engine(pg, end, &refused));
    CHECK_INT(store_count("between", "set_aside"), 0);
    CHECK_STR("ended", store_sql("between", "SELECT turns FROM executions WHERE instance = 'bad'"), "6");
    postgres_close(pg);
}

/* Rows set aside are known to the next connection, and go with the partition's rows. */
static void the_next_owner(void)
{
    struct postgres *pg = store_partition("next");
    struct projector_refused refused;
    refuse_column("next", "timers", "due_ms", true);
    CHECK_OK(apply_as_engine(pg, good_bad_good(BEFORE), &refused));
    postgres_close(pg);
    pg = fixture_open("next");
    CHECK_INT(projector_store_set_aside(pg, 1), 0);
    CHECK_OK(projector_store_open(pg, 1, 2, &rows, NULL, &store_err));
    CHECK_INT(projector_store_set_aside(pg, 1), 1);
    CHECK_INT(rows.projected.seq, BEFORE);
    CHECK_OK(projector_store_reset(pg, 1, 2, &rows, &store_err));
    CHECK_INT(projector_store_set_aside(pg, 1), 0);
    CHECK_INT(store_count("next", "set_aside"), 0);
    postgres_close(pg);
}

static const struct thole_test all_tests[] = {
    {"each column of each table", each_column_of_each_table},
    {"each statement that removes", each_statement_that_removes},
    {"numbers that do not fit", numbers_that_do_not_fit},
    {"more bytes than a call may have", more_bytes_than_a_call_may_have},
    {"codes of a row", codes_of_a_row},
    {"a table that takes no row", a_table_that_takes_no_row},
    {"more rows than may be set aside", more_rows_than_may_be_set_aside},
    {"another owner", another_owner},
    {"a turn that does not write the row", a_turn_that_does_not_write_the_row},
    {"a row beside others of a worker", a_row_beside_others_of_a_worker},
    {"a row in the way of the sweeper", a_row_in_the_way_of_the_sweeper},
    {"the next owner", the_next_owner},
};

int main(void)
{
    return store_run("set_aside", all_tests, ARRAY_LEN(all_tests));
}
