/* Rows of instances: versions, statuses of their own, parents, what ends them, and how people find them. */
#include "store_fixture.h"
#include <inttypes.h>

struct list_seen {
    char ids[512]; /* each followed by a space */
    thole_instance_info last;
    char custom_status[64], parent[64];
};

static thole_status see(void *arg, const thole_instance_info *info)
{
    struct list_seen *seen = arg;
    size_t const used = strlen(seen->ids);
    (void)snprintf(seen->ids + used, sizeof seen->ids - used, "%.*s ", THOLE_FMT(info->instance));
    (void)snprintf(seen->custom_status, sizeof seen->custom_status, "%.*s", THOLE_FMT(info->custom_status));
    (void)snprintf(seen->parent, sizeof seen->parent, "%.*s", THOLE_FMT(info->parent));
    seen->last = *info;
    return THOLE_OK;
}

static struct batch_instance instance_row(const char *id, uint64_t execution, uint32_t status, uint64_t seq)
{
    return (struct batch_instance){.instance = thole_slice_from(id),
                                   .orchestration = THOLE_STR("checkout"),
                                   .execution = execution,
                                   .status = status,
                                   .created_ms = execution == 1 ? seq * 10 : 0,
                                   .updated_ms = seq * 10 + 1,
                                   .turns = 1,
                                   .history_seq = seq};
}

static void apply_rows(struct postgres *pg, struct batch_instance *rows, size_t n)
{
    static uint64_t seq;
    struct batch *batch = store_batch(1, ++seq);
    batch->instances = rows;
    batch->instances_len = n;
    CHECK_OK(fixture_apply(pg, batch));
}

static struct list_seen show(struct postgres *pg, const char *id)
{
    struct list_seen seen = {.ids = ""};
    CHECK_OK(query_store_show(pg, thole_slice_from(id), see, &seen, &store_err));
    return seen;
}

/* ---- contents of a row ---- */

static void unchanged_fields_stay(void)
{
    struct postgres *pg = store_partition("fields");
    struct batch_instance row = instance_row("i", 1, THOLE_INSTANCE_RUNNING, 10);
    row.version = 3;
    row.parent = THOLE_STR("order-1");
    row.custom_status_set = true;
    row.custom_status = THOLE_STR("half \0 way\xff");
    apply_rows(pg, &row, 1);
    struct list_seen seen = show(pg, "i");
    CHECK_INT(seen.last.version, 3);
    CHECK_INT(seen.last.turns, 1);
    CHECK_INT(seen.last.custom_status.len, 11);
    CHECK_STR("parent", seen.parent, "order-1");
    row = instance_row("i", 1, THOLE_INSTANCE_PAUSED, 11);
    row.orchestration = THOLE_STR("");
    row.created_ms = 0;
    apply_rows(pg, &row, 1);
    seen = show(pg, "i");
    CHECK_INT(seen.last.version, 3);
    CHECK_INT(seen.last.status, THOLE_INSTANCE_PAUSED);
    CHECK_INT(seen.last.custom_status.len, 11);
    CHECK_STR("parent", seen.parent, "order-1");
    row = instance_row("i", 1, THOLE_INSTANCE_RUNNING, 12);
    row.custom_status_set = true;
    apply_rows(pg, &row, 1);
    CHECK_STR("taken back", show(pg, "i").custom_status, "");
    postgres_close(pg);
}

/* A failure's text may hold anything: it must not stop the partition. */
static void details_are_made_readable(void)
{
    static const struct detail_case {
        const char *name;
        thole_slice from;
        const char *want;
    } cases[] = {
        {"text", {(const uint8_t *)"caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80", 14}, "café € 😀"},
        {"a NUL", {(const uint8_t *)"a\0b", 3}, "a?b"},
        {"not UTF-8", {(const uint8_t *)"\xff\xc3\x28\x80z", 5}, "\?\?(\?z"},
        {"cut off", {(const uint8_t *)"a\xe2\x82", 3}, "a??"},
        {"overlong, surrogate, beyond the end",
         {(const uint8_t *)"\xc0\xaf|\xed\xa0\x80|\xf4\x90\x80\x80|\xe0\x80\x80|\xf0\x80\x80\x80", 20},
         "??|???|????|???|????"},
    };
    struct postgres *pg = store_partition("details");
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct batch_instance row = instance_row("i", 1, THOLE_INSTANCE_FAILED, 10 + i);
        row.detail = cases[i].from;
        apply_rows(pg, &row, 1);
        CHECK_STR(cases[i].name, store_sql("details", "SELECT detail FROM instances"), cases[i].want);
    }
    postgres_close(pg);
}

static void executions_end_when_the_next_one_begins(void)
{
    struct postgres *pg = store_partition("again");
    struct batch_instance rows[] = {
        instance_row("i", 1, THOLE_INSTANCE_CONTINUED_AS_NEW, 10),
        instance_row("i", 2, THOLE_INSTANCE_CONTINUED_AS_NEW, 20),
        instance_row("i", 3, THOLE_INSTANCE_RUNNING, 30),
    };
    rows[0].custom_status_set = true;
    rows[0].custom_status = THOLE_STR("first");
    rows[1].custom_status_set = true;
    rows[1].custom_status = THOLE_STR("second");
    rows[1].orchestration = THOLE_STR("");
    rows[0].version = 2;
    apply_rows(pg, rows, 3);
    CHECK_STR("instance",
              store_sql("again", "SELECT (execution, status, created_ms, updated_ms) FROM instances"),
              "(3,1,100,301)");
    CHECK_STR("status", show(pg, "i").custom_status, "second"); /* of the last that says one */
    CHECK_STR("executions",
              store_sql("again", "SELECT (execution, status, ended_ms) FROM executions ORDER BY execution"),
              "(1,9,101)\n(2,9,201)\n(3,1,)");
    struct batch_instance last = instance_row("i", 3, THOLE_INSTANCE_TERMINATED, 40);
    apply_rows(pg, &last, 1);
    CHECK_STR("ended", store_sql("again", "SELECT ended_ms FROM executions WHERE execution = 3"), "401");
    postgres_close(pg);
}

static thole_status keep_execution(void *arg, const thole_execution_info *e)
{
    char *const text = arg;
    size_t const at = strlen(text);
    (void)snprintf(text + at, 256 - at, "%" PRIu64 " %s %" PRIu64 " %" PRIu64 " %" PRIu64 "|", e->execution,
                   thole_instance_status_name(e->status), e->started_ms, e->ended_ms, e->turns);
    return THOLE_OK;
}

/* Of several rows of one instance, in whichever order they come. */
static void the_last_row_counts(void)
{
    struct postgres *pg = store_partition("merged");
    struct batch_instance rows[] = {
        instance_row("b", 1, THOLE_INSTANCE_COMPLETED, 25),
        instance_row("a", 2, THOLE_INSTANCE_RUNNING, 30),
        instance_row("a", 0, THOLE_INSTANCE_WAITING, 10),
        instance_row("b", 1, THOLE_INSTANCE_RUNNING, 15),
        instance_row("a", 1, THOLE_INSTANCE_CONTINUED_AS_NEW, 20),
    };
    rows[2].created_ms = 7; /* when an event came that waited for it */
    rows[4].custom_status_set = true;
    rows[4].custom_status = THOLE_STR("one");
    apply_rows(pg, rows, ARRAY_LEN(rows));
    CHECK_STR("instances",
              store_sql("merged",
                        "SELECT (instance, execution, status, created_ms, updated_ms, custom_status)"
                        " FROM instances ORDER BY instance"),
              "(a,2,1,200,301,\"\\\\x6f6e65\")\n(b,1,4,150,251,)");
    CHECK_STR("executions",
              store_sql("merged", "SELECT (instance, execution, status, ended_ms) FROM executions"
                                  " ORDER BY instance, execution"),
              "(a,1,9,201)\n(a,2,1,)"); /* b had only one */
    postgres_close(pg);
}

/* The executions as they are read; the row of the second one. */
static void check_executions(struct postgres *pg, const char *what, const char *read, const char *row)
{
    char text[256] = "";
    CHECK_OK(query_store_executions(pg, THOLE_STR("i"), keep_execution, text, &store_err));
    CHECK_STR(what, text, read);
    CHECK_STR(what,
              store_sql("turns", "SELECT (status, started_ms, ended_ms, turns, history_seq) FROM executions "
                                 "WHERE execution = 2"),
              row);
}

static void an_only_execution_is_the_instance(void)
{
    struct postgres *pg = store_partition("only");
    char text[256] = "";
    struct batch_instance row = instance_row("i", 1, THOLE_INSTANCE_RUNNING, 10);
    apply_rows(pg, &row, 1);
    CHECK_OK(query_store_executions(pg, THOLE_STR("i"), keep_execution, text, &store_err));
    CHECK_STR("runs", text, "1 Running 100 0 1|");
    row = instance_row("i", 1, THOLE_INSTANCE_FAILED, 20);
    row.created_ms = 0;
    apply_rows(pg, &row, 1);
    text[0] = 0;
    CHECK_OK(query_store_executions(pg, THOLE_STR("i"), keep_execution, text, &store_err));
    CHECK_STR("ended", text, "1 Failed 100 201 1|");
    CHECK_INT(store_count("only", "executions"), 0);
    row.status = THOLE_INSTANCE_CONTINUED_AS_NEW;
    row.history_seq = 30;
    apply_rows(pg, &row, 1);
    CHECK_STR("row", store_sql("only", "SELECT (execution, status, started_ms, ended_ms) FROM executions"),
              "(1,9,100,201)"); /* began with the instance */
    postgres_close(pg);
}

static void turns_do_not_write_their_execution(void)
{
    struct postgres *pg = store_partition("turns");
    struct batch_instance rows[] = {instance_row("i", 1, THOLE_INSTANCE_CONTINUED_AS_NEW, 10),
                                    instance_row("i", 2, THOLE_INSTANCE_RUNNING, 20)};
    rows[0].turns = 7;
    apply_rows(pg, rows, 2);
    check_executions(pg, "it begins", "1 ContinuedAsNew 100 101 7|2 Running 201 0 1|", "(1,201,,1,20)");
    struct batch_instance row = instance_row("i", 2, THOLE_INSTANCE_PAUSED, 30);
    row.orchestration = THOLE_STR("");
    row.turns = 5;
    uint64_t const before = postgres_statements(pg);
    apply_rows(pg, &row, 1);
    CHECK_INT(postgres_statements(pg) - before, 2); /* the fence, and the instance */
    check_executions(pg, "a turn", "1 ContinuedAsNew 100 101 7|2 Paused 201 0 5|", "(1,201,,1,20)");
    row = instance_row("i", 2, THOLE_INSTANCE_FAILED, 40);
    row.orchestration = THOLE_STR("");
    row.turns = 6;
    apply_rows(pg, &row, 1);
    check_executions(pg, "it ends", "1 ContinuedAsNew 100 101 7|2 Failed 201 401 6|", "(5,201,401,6,40)");
    postgres_close(pg);
}

/* Execution 0: events that came first. */
static void what_waits_for_its_instance_is_no_execution(void)
{
    struct postgres *pg = store_partition("early");
    struct batch_instance row = instance_row("i", 0, THOLE_INSTANCE_WAITING, 10);
    row.orchestration = THOLE_STR("");
    row.created_ms = 5;
    apply_rows(pg, &row, 1);
    CHECK_STR("waits", store_sql("early", "SELECT (orchestration, execution, created_ms) FROM instances"),
              "(\"\",0,5)");
    CHECK_INT(store_count("early", "executions"), 0);
    struct arena arena;
    struct live_summary live;
    arena_init(&arena, 1 << 20);
    CHECK_OK(projector_store_live(pg, 1, &arena, &live, &store_err));
    CHECK_INT(live.blocked_len + live.orchestrations_len, 0);
    arena_release(&arena);
    row = instance_row("i", 1, THOLE_INSTANCE_RUNNING, 20);
    apply_rows(pg, &row, 1);
    CHECK_STR("started", store_sql("early", "SELECT (orchestration, execution, created_ms) FROM instances"),
              "(checkout,1,200)");
    postgres_close(pg);
}

static void removal_takes_nothing_newer(void)
{
    struct postgres *pg = store_partition("removed");
    struct batch_instance rows[] = {instance_row("a", 0, THOLE_INSTANCE_WAITING, 10),
                                    instance_row("b", 0, THOLE_INSTANCE_WAITING, 10),
                                    instance_row("c", 1, THOLE_INSTANCE_RUNNING, 10)};
    apply_rows(pg, rows, 3);
    struct batch_instance gone[] = {
        instance_row("a", 0, THOLE_INSTANCE_WAITING, 20), instance_row("b", 0, THOLE_INSTANCE_WAITING, 20),
        instance_row("b", 1, THOLE_INSTANCE_RUNNING, 21), instance_row("c", 0, THOLE_INSTANCE_WAITING, 9)};
    gone[0].removed = gone[1].removed = gone[3].removed = true;
    apply_rows(pg, gone, 4);
    CHECK_STR("left",
              store_sql("removed", "SELECT (instance, execution, history_seq) FROM instances ORDER BY 1"),
              "(b,1,21)\n(c,1,10)");
    gone[1].removed = false; /* a redo puts it back for a moment, */
    apply_rows(pg, &gone[0], 1);
    struct batch_instance again = instance_row("a", 0, THOLE_INSTANCE_WAITING, 10);
    apply_rows(pg, &again, 1);
    CHECK_INT(store_count("removed", "instances"), 3);
    apply_rows(pg, &gone[0], 1); /* and takes it away again */
    CHECK_INT(store_count("removed", "instances"), 2);
    postgres_close(pg);
}

/* -- deletions -- */

static void delete_rows(struct postgres *pg, const struct batch_deletion *rows, size_t n,
                        const struct batch_instance *after)
{
    struct batch *batch = store_batch(1, 0);
    batch->deletions = arena_array(&batch->arena, n, sizeof *rows);
    memcpy(batch->deletions, rows, n * sizeof *rows);
    batch->deletions_len = n;
    if (after != NULL) {
        batch->instances = arena_array(&batch->arena, 1, sizeof *after);
        batch->instances[0] = *after;
        batch->instances_len = 1;
    }
    CHECK_OK(fixture_apply(pg, batch));
}

/* All rows of a life go at once; those of the next one stay, also when it is done again. */
static void a_deletion_takes_a_whole_life(void)
{
    struct postgres *pg = store_partition("deleted");
    struct batch_instance old[] = {instance_row("a", 1, THOLE_INSTANCE_CONTINUED_AS_NEW, 10),
                                   instance_row("a", 2, THOLE_INSTANCE_TERMINATED, 11),
                                   instance_row("b", 1, THOLE_INSTANCE_CONTINUED_AS_NEW, 12),
                                   instance_row("b", 2, THOLE_INSTANCE_RUNNING, 13)};
    struct batch_deletion const deletion = {.instance = THOLE_STR("a"), .execution = 2, .history_seq = 20};
    struct batch_instance const again = instance_row("a", 3, THOLE_INSTANCE_RUNNING, 21);
    apply_rows(pg, old, ARRAY_LEN(old));
    store_sql("deleted",
              "INSERT INTO worker_queue (instance, execution, activity_id, p, queue, activity)"
              " VALUES ('a', 1, 1, 1, 'q', 'x'), ('a', 2, 7, 1, 'q', 'x'), ('b', 1, 1, 1, 'q', 'x')");
    store_sql("deleted", "INSERT INTO timers VALUES ('a', 0, 1, 1, 5), ('a', 2, 3, 1, 5), ('b', 2, 3, 1, 5)");
    store_sql("deleted",
              "INSERT INTO quarantine (instance, execution, activity_id, p, queue, activity, try_number,"
              " lost, worker, reason, since_ms, until_ms)"
              " SELECT i, 2, 7, 1, 'q', 'x', 1, 3, 'w', 'why', 5, 0 FROM unnest('{a,b}'::text[]) AS i");
    delete_rows(pg, &deletion, 1, &again);
    store_sql("deleted", "INSERT INTO worker_queue (instance, execution, activity_id, p, queue, activity)"
                         " VALUES ('a', 3, 1, 1, 'q', 'x')");
    for (int i = 0; i < 2; i++) { /* the second time in a redo */
        CHECK_STR("instances",
                  store_sql("deleted", "SELECT (instance, execution, history_seq) FROM instances ORDER BY 1"),
                  "(a,3,21)\n(b,2,13)");
        CHECK_STR("executions",
                  store_sql("deleted", "SELECT (instance, execution) FROM executions ORDER BY 1"),
                  "(a,3)\n(b,1)\n(b,2)");
        CHECK_STR("activities",
                  store_sql("deleted", "SELECT (instance, execution) FROM worker_queue ORDER BY 1"),
                  "(a,3)\n(b,1)");
        CHECK_STR("timers", store_sql("deleted", "SELECT instance FROM timers"), "b");
        CHECK_STR("quarantine", store_sql("deleted", "SELECT instance FROM quarantine"), "b");
        delete_rows(pg, &deletion, 1, NULL);
    }
    const char *const plan = store_own_sql(pg, "EXPLAIN EXECUTE activities_deleted('{a}', '{2}')");
    CHECK_HAS(plan, "worker_queue_pkey");
    CU_ASSERT_PTR_NULL(strstr(plan, "Seq Scan"));
    postgres_close(pg);
}

/* The instance stays, as do the activities of its next life. */
static void a_deletion_of_its_work_alone(void)
{
    struct postgres *pg = store_partition("unread");
    struct batch_instance rows[] = {instance_row("a", 1, THOLE_INSTANCE_TERMINATED, 10),
                                    instance_row("b", 1, THOLE_INSTANCE_RUNNING, 11)};
    struct batch_deletion const deletion = {.instance = THOLE_STR("a"), .execution = 1};
    apply_rows(pg, rows, ARRAY_LEN(rows));
    store_sql("unread",
              "INSERT INTO worker_queue (instance, execution, activity_id, p, queue, activity)"
              " VALUES ('a', 1, 1, 1, 'q', 'x'), ('a', 2, 7, 1, 'q', 'x'), ('b', 1, 1, 1, 'q', 'x')");
    store_sql("unread", "INSERT INTO timers VALUES ('a', 1, 3, 1, 5), ('b', 1, 3, 1, 5)");
    delete_rows(pg, &deletion, 1, NULL);
    CHECK_STR("instances", store_sql("unread", "SELECT instance FROM instances ORDER BY 1"), "a\nb");
    CHECK_STR("activities", store_sql("unread", "SELECT (instance, execution) FROM worker_queue ORDER BY 1"),
              "(a,2)\n(b,1)");
    CHECK_STR("timers", store_sql("unread", "SELECT instance FROM timers"), "b");
    postgres_close(pg);
}

/* Those in between: the first execution stays, and so do the instance and what is of later ones. */
static void pruned_executions_alone(void)
{
    struct postgres *pg = store_partition("pruned");
    struct batch_instance rows[] = {instance_row("a", 1, THOLE_INSTANCE_CONTINUED_AS_NEW, 10),
                                    instance_row("a", 2, THOLE_INSTANCE_CONTINUED_AS_NEW, 11),
                                    instance_row("a", 3, THOLE_INSTANCE_CONTINUED_AS_NEW, 12),
                                    instance_row("a", 4, THOLE_INSTANCE_RUNNING, 13),
                                    instance_row("b", 2, THOLE_INSTANCE_RUNNING, 14)};
    struct batch_deletion const deletion = {
        .instance = THOLE_STR("a"), .execution = 3, .pruned = {.above = 1, .upto = 3}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        apply_rows(pg, &rows[i], 1);
    store_sql("pruned",
              "INSERT INTO worker_queue (instance, execution, activity_id, p, queue, activity)"
              " VALUES ('a', 2, 1, 1, 'q', 'x'), ('a', 4, 7, 1, 'q', 'x'), ('b', 2, 1, 1, 'q', 'x')");
    for (int i = 0; i < 2; i++) { /* the second time in a redo */
        delete_rows(pg, &deletion, 1, NULL);
        CHECK_STR("instances", store_sql("pruned", "SELECT (instance, execution) FROM instances ORDER BY 1"),
                  "(a,4)\n(b,2)");
        CHECK_STR("executions",
                  store_sql("pruned", "SELECT (instance, execution) FROM executions ORDER BY 1"),
                  "(a,1)\n(a,4)\n(b,2)");
        CHECK_STR("activities",
                  store_sql("pruned", "SELECT (instance, execution) FROM worker_queue ORDER BY 1"),
                  "(a,4)\n(b,2)");
    }
    postgres_close(pg);
}

/* ---- questions of a new owner ---- */

static void live_names_have_versions(void)
{
    static const struct live_case {
        const char *id;
        uint32_t version, status;
    } rows[] = {
        {"a", 0, THOLE_INSTANCE_RUNNING},   {"b", 1, THOLE_INSTANCE_PAUSED},
        {"c", 2, THOLE_INSTANCE_RUNNING},   {"d", 2, THOLE_INSTANCE_CONTINUED_AS_NEW},
        {"e", 3, THOLE_INSTANCE_COMPLETED}, {"f", 4, THOLE_INSTANCE_TERMINATED},
        {"g", 10, THOLE_INSTANCE_STUCK},
    };
    struct postgres *pg = store_partition("versions");
    struct batch_instance batch[ARRAY_LEN(rows)];
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        batch[i] = instance_row(rows[i].id, 1, rows[i].status, i + 1);
        batch[i].version = rows[i].version;
    }
    apply_rows(pg, batch, ARRAY_LEN(rows));
    struct arena arena;
    struct live_summary live;
    arena_init(&arena, 1 << 20);
    CHECK_OK(projector_store_live(pg, 1, &arena, &live, &store_err));
    CHECK_INT(live.orchestrations_len, 3);
    CHECK_STR("name", (const char *)live.orchestrations[0].ptr, "checkout");
    CHECK_INT(live.orchestration_counts[0], 2); /* paused ones need their code as well */
    CHECK_STR("name", (const char *)live.orchestrations[1].ptr, "checkout@10");
    CHECK_STR("name", (const char *)live.orchestrations[2].ptr, "checkout@2");
    CHECK_INT(live.orchestration_counts[2], 2);
    CHECK_INT(live.blocked_len, 2); /* stuck, and continued as new; not the paused one */
    CHECK_STR("blocked", (const char *)live.blocked[0].instance.ptr, "d");
    CHECK_INT(live.blocked[0].status, THOLE_INSTANCE_CONTINUED_AS_NEW);
    CHECK_INT(live.blocked[0].version, 2);
    CHECK_STR("blocked", (const char *)live.blocked[1].instance.ptr, "g");
    CHECK_INT(live.deadline_in_ms, UINT64_MAX);
    arena_release(&arena);
    const char *const plan = store_own_sql(pg, "EXPLAIN EXECUTE live_orchestrations(1)");
    CHECK_HAS(plan, "using instances_live");
    postgres_close(pg);
}

/* ---- questions of people ---- */

static void list_by_parent_status_and_time(void)
{
    static const struct list_case {
        const char *name;
        thole_list_filter filter;
        const char *want;
    } cases[] = {
        {"children", {.parent = {(const uint8_t *)"p", 1}}, "d b "},
        {"children that failed", {.parent = {(const uint8_t *)"p", 1}, .status = 5}, "b "},
        {"nobody's children", {.parent = {(const uint8_t *)"q", 1}}, ""},
        {"from then on", {.created_after_ms = 30}, "e d c "},
        {"before then", {.created_before_ms = 30}, "b a "},
        {"in between", {.created_after_ms = 20, .created_before_ms = 41}, "d c b "},
        {"none in between", {.created_after_ms = 21, .created_before_ms = 30}, ""},
        {"the ends of time", {.created_after_ms = 1, .created_before_ms = UINT64_MAX}, "e d c b a "},
        {"after the end of time", {.created_after_ms = UINT64_MAX}, ""},
        {"terminated", {.status = THOLE_INSTANCE_TERMINATED}, "c "},
        {"paused", {.status = THOLE_INSTANCE_PAUSED}, "d "},
    };
    struct postgres *pg = store_partition("people");
    struct batch_instance rows[] = {
        instance_row("a", 1, THOLE_INSTANCE_RUNNING, 1), instance_row("b", 1, THOLE_INSTANCE_FAILED, 2),
        instance_row("c", 1, THOLE_INSTANCE_TERMINATED, 3), instance_row("d", 1, THOLE_INSTANCE_PAUSED, 4),
        instance_row("e", 1, THOLE_INSTANCE_RUNNING, 5)};
    rows[1].parent = rows[3].parent = THOLE_STR("p");
    apply_rows(pg, rows, ARRAY_LEN(rows));
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct list_seen seen = {.ids = ""};
        CHECK_OK(query_store_list(pg, &cases[i].filter, see, &seen, &store_err));
        CHECK_STR(cases[i].name, seen.ids, cases[i].want);
    }
    postgres_close(pg);
}

/* Pages of one filter do not read what the filter leaves out. */
static void lists_use_an_index_for_each_filter(void)
{
    static const struct plan_case {
        const char *name, *arguments, *index;
    } cases[] = {
        {"all", "'{}', '', '', 9223372036854775807, '', 100, '', 0, '{\"\"}'", "using instances_newest"},
        {"failed", "'{5}', '', '', 9223372036854775807, '', 100, '', 0, '{\"\"}'", "using instances_status"},
        {"terminated", "'{7}', '', '', 9223372036854775807, '', 100, '', 0, '{\"\"}'",
         "using instances_status"},
        {"children", "'{}', '', '', 9223372036854775807, '', 100, 'p7', 0, '{\"\"}'",
         "using instances_parent"},
        {"in between", "'{}', '', '', 200, '', 100, '', 100, '{\"\"}'", "using instances_newest"},
    };
    struct postgres *pg = store_partition("plans");
    struct list_seen seen = {.ids = ""};
    thole_list_filter const filter = {.size = sizeof filter};
    (void)store_sql("plans",
                    "INSERT INTO instances (instance, p, orchestration, execution, status, created_ms,"
                    " updated_ms, detail, turns, history_seq, parent) SELECT 'i' || g, 1, 'o', 1,"
                    " CASE WHEN g %% 1000 = 0 THEN 5 ELSE 4 END, g, g, '', 1, g,"
                    " CASE WHEN g %% 50 = 0 THEN 'p' || g / 500 ELSE '' END FROM generate_series(1, 20000) g;"
                    " ANALYZE instances");
    CHECK_OK(query_store_list(pg, &filter, see, &seen, &store_err)); /* prepares it */
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const char *const plan = store_own_sql(
            pg, "BEGIN; SET LOCAL plan_cache_mode = force_custom_plan; EXPLAIN EXECUTE list(%s)",
            cases[i].arguments);
        CHECK_HAS(plan, cases[i].index);
        CU_ASSERT(strstr(plan, "Sort") == NULL);
        (void)store_own_sql(pg, "COMMIT");
    }
    postgres_close(pg);
}

static void queues_are_counted_by_holder(void)
{
    static const char want[] =
        "cpu|w2 1+0 p0 | gpu|- 2+1 p0 | gpu|- 0+0 p2 | gpu|w1 2+0 p0 | old|- 0+0 p1 | ";
    struct postgres *pg = store_partition("queues");
    struct arena arena;
    struct queue_row *rows = NULL;
    size_t len = 0;
    char got[256] = "";
    (void)store_sql(
        "queues",
        "INSERT INTO worker_queue (instance, execution, activity_id, p, queue, activity, worker,"
        " claimed_at, renewed_at, later) VALUES ('a', 1, 1, 1, 'gpu', 'x', NULL, NULL, NULL, false),"
        " ('a', 1, 2, 1, 'gpu', 'x', NULL, NULL, now(), false)," /* given back */
        " ('a', 1, 3, 1, 'gpu', 'x', 'w1', now() - interval '1 h', NULL, false),"
        " ('a', 1, 4, 1, 'gpu', 'x', 'w1', now() - interval '1 h', now() - interval '10 s', false),"
        " ('a', 1, 5, 1, 'gpu', 'x', 'w1', now(), NULL, true)," /* from outside */
        /* the clock was set back: silent for no time */
        " ('a', 1, 6, 1, 'cpu', 'x', 'w2', now() + interval '1 h', NULL, false)");
    (void)store_sql("queues",
                    "INSERT INTO quarantine SELECT 'a', 1, g, 1, CASE g WHEN 9 THEN 'old' ELSE 'gpu' END,"
                    " 'x', 1, 5, 'w1', 'r', 0, 0 FROM generate_series(7, 9) g");
    (void)store_sql("queues", "UPDATE worker_queue SET created_at = now() - interval '1 h',"
                              " lease_until = CASE WHEN worker IS NOT NULL THEN now() + interval '1 h' END");
    arena_init(&arena, 1 << 20);
    CHECK_OK(query_store_queues(pg, (thole_slice){0}, &arena, &rows, &len, &store_err));
    for (size_t i = 0; i < len; i++) {
        size_t const at = strlen(got);
        snprintf(got + at, sizeof got - at, "%.*s|%.*s %d+%d p%d | ", THOLE_FMT(rows[i].queue),
                 THOLE_FMT(rows[i].worker.len == 0 ? THOLE_STR("-") : rows[i].worker),
                 (int)rows[i].activities, (int)rows[i].outside, (int)rows[i].poisoned);
        bool const is_w1 = thole_slice_equal(rows[i].worker, THOLE_STR("w1"));
        CU_ASSERT_TRUE(rows[i].silent_ms >= is_w1 * 10000 && rows[i].silent_ms <= is_w1 * 1800000);
        bool const waits = rows[i].worker.len == 0 && rows[i].activities > 0; /* since an hour; leased: not */
        CU_ASSERT_TRUE(rows[i].oldest_ms >= waits * 3600000ull && rows[i].oldest_ms <= waits * 3700000ull);
    }
    CHECK_STR("all", got, want);
    CHECK_OK(query_store_queues(pg, THOLE_STR("cpu"), &arena, &rows, &len, &store_err));
    CHECK_INT(len, 1);
    arena_release(&arena);
    postgres_close(pg);
}

static const struct thole_test tests[] = {
    {"unchanged fields stay", unchanged_fields_stay},
    {"details are made readable", details_are_made_readable},
    {"an only execution is the instance", an_only_execution_is_the_instance},
    {"executions end when the next one begins", executions_end_when_the_next_one_begins},
    {"the last row counts", the_last_row_counts},
    {"turns do not write their execution", turns_do_not_write_their_execution},
    {"what waits for its instance is no execution", what_waits_for_its_instance_is_no_execution},
    {"removal takes nothing newer", removal_takes_nothing_newer},
    {"a deletion takes a whole life", a_deletion_takes_a_whole_life},
    {"pruned executions alone", pruned_executions_alone},
    {"a deletion of its work alone", a_deletion_of_its_work_alone},
    {"live names have versions", live_names_have_versions},
    {"list by parent, status and time", list_by_parent_status_and_time},
    {"lists use an index for each filter", lists_use_an_index_for_each_filter},
    {"queues are counted by holder", queues_are_counted_by_holder},
};

int main(void)
{
    return store_run("instance_rows", tests, ARRAY_LEN(tests));
}
