/*
 * The reads of people from Postgres: rows in which no two values are alike, and each read has each value in
 * its place, each filter leaves out what it should and nothing else, and pages together are the whole.
 */
#include "store_fixture.h"
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>

#define NS "reads"
enum { MANY = 1203, SILENT_S = 40 };

static struct postgres *pg;

/* ---- reads, as text ---- */

struct seen {
    char text[4096];
    size_t len, rows, stop_at; /* stop_at: the callback refuses this row; 0: none */
};

static thole_status say(struct seen *seen, const char *format, ...) THOLE_PRINTF(2, 3);
static thole_status say(struct seen *seen, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int const n = vsnprintf(seen->text + seen->len, sizeof seen->text - seen->len, format, args);
    va_end(args);
    if (n > 0 && seen->len + (size_t)n < sizeof seen->text)
        seen->len += (size_t)n;
    return ++seen->rows == seen->stop_at ? THOLE_APP : THOLE_OK;
}

/* Silent for as long as the row says, give or take the time that the test needs. */
static const char *silence(uint64_t silent_ms)
{
    return silent_ms == 0                                                ? "now"
           : silent_ms >= SILENT_S * 1000 && silent_ms < SILENT_S * 2000 ? "long"
                                                                         : "?";
}

static thole_status see_instance(void *arg, const thole_instance_info *i)
{
    return say(arg,
               "%.*s %.*s %" PRIu64 " %s %" PRIu64 " %" PRIu64 " [%.*s] p%u a%" PRIu64 " t%" PRIu64
               " v%u [%.*s] [%.*s] %" PRIu64 "|",
               THOLE_FMT(i->instance), THOLE_FMT(i->orchestration), i->execution,
               thole_instance_status_name(i->status), i->created_ms, i->updated_ms, THOLE_FMT(i->detail),
               i->partition, i->open_activities, i->open_timers, i->version, THOLE_FMT(i->custom_status),
               THOLE_FMT(i->parent), i->turns);
}

static thole_status see_id(void *arg, const thole_instance_info *i)
{
    return say(arg, "%.*s ", THOLE_FMT(i->instance));
}

static thole_status see_execution(void *arg, const thole_execution_info *e)
{
    return say(arg, "%" PRIu64 " %s %" PRIu64 " %" PRIu64 " %" PRIu64 "|", e->execution,
               thole_instance_status_name(e->status), e->started_ms, e->ended_ms, e->turns);
}

static thole_status see_poisoned(void *arg, const thole_poisoned_info *p)
{
    return say(arg, "%.*s %" PRIu64 " %" PRIu64 " %.*s %.*s %u %u %.*s [%.*s] %" PRIu64 " %" PRIu64 "|",
               THOLE_FMT(p->instance), p->execution, p->activity_id, THOLE_FMT(p->queue),
               THOLE_FMT(p->activity), p->try_number, p->claims, THOLE_FMT(p->worker), THOLE_FMT(p->reason),
               p->since_ms, p->until_ms);
}

static thole_status see_activity(void *arg, const thole_activity_info *a)
{
    return say(arg, "%" PRIu64 " %" PRIu64 " %.*s %.*s %u [%.*s] %s %s|", a->execution, a->activity_id,
               THOLE_FMT(a->queue), THOLE_FMT(a->activity), a->try_number, THOLE_FMT(a->worker),
               silence(a->silent_ms), a->outside ? "outside" : "here");
}

/* ---- the rows ---- */

static void insert_instance(const char *id, const char *orchestration, unsigned status, unsigned created,
                            const char *parent)
{
    (void)store_sql(NS,
                    "INSERT INTO instances (instance, p, orchestration, execution, status, created_ms,"
                    " updated_ms, detail, turns, history_seq, version, custom_status, parent)"
                    " VALUES ('%s', 6, '%s', 5, %u, %u, 1002, 'why', 7, 1003, 8, 'said', '%s')",
                    id, orchestration, status, created, parent);
}

static void insert_activity(const char *id, unsigned number, const char *queue, const char *activity,
                            const char *worker, bool later)
{
    (void)store_sql(
        NS,
        "INSERT INTO worker_queue (instance, execution, activity_id, p, queue, activity, try_number,"
        " worker, claimed_at, renewed_at, later) VALUES ('%s', 5, %u, 6, '%s', '%s', %u, nullif('%s', ''),"
        " now() - interval '%d s' * 3, now() - interval '%d s', %s)",
        id, number, queue, activity, number + 10, worker, SILENT_S, SILENT_S, later ? "true" : "false");
}

static void insert_poisoned(const char *id, unsigned number, const char *queue, unsigned since)
{
    (void)store_sql(
        NS,
        "INSERT INTO quarantine (instance, execution, activity_id, p, queue, activity, try_number,"
        " lost, worker, reason, since_ms, until_ms)"
        " VALUES ('%s', 2, %u, 4, '%s', 'bad', 5, 9, 'died', 'a reason', %u, 7001)",
        id, number, queue, since);
}

static void insert_all(void)
{
    insert_instance("one", "sells", 1, 1001, "up");
    insert_instance("o_e", "buys", 4, 1004, "");
    insert_instance("ope", "buys", 1, 1004, "up");
    insert_instance("two%", "sells", 7, 1006, "other");
    insert_instance("two\\", "sells", 4, 1007, "");
    insert_activity("one", 1, "q", "x", "alive", false);
    insert_activity("one", 2, "q", "y", "", false);
    insert_activity("one", 3, "r", "x", "left", true);
    insert_activity("ope", 4, "q", "x", "alive", false);
    (void)store_sql(NS, "INSERT INTO timers VALUES ('one', 5, 9, 6, 2000), ('one', 5, 10, 6, 2001)");
    (void)store_sql(NS, "INSERT INTO executions VALUES ('one', 1, 6, 9, 11, 12, 13, 14),"
                        " ('one', 2, 6, 1, 15, NULL, 16, 17), ('two', 1, 6, 4, 18, 19, 20, 21)");
    insert_poisoned("sick", 3, "q", 6001);
    insert_poisoned("sick", 4, "r", 6002);
    insert_poisoned("weak", 3, "q", 6001);
}

static void check_seen(const char *what, const struct seen *seen, const char *want)
{
    CHECK_STR(what, seen->text, want);
}

/* ---- each value in its place ---- */

static void test_values(void)
{
    struct seen seen = {.len = 0};
    CHECK_OK(query_store_show(pg, THOLE_STR("one"), see_instance, &seen, &store_err));
    check_seen("show", &seen, "one sells 5 Running 1001 1002 [why] p6 a3 t2 v8 [said] [up] 7|");
    seen = (struct seen){.len = 0};
    CHECK_STATUS(query_store_show(pg, THOLE_STR("on"), see_instance, &seen, &store_err), THOLE_NOT_FOUND);
    check_seen("show nobody", &seen, "");
    CHECK_OK(query_store_executions(pg, THOLE_STR("one"), see_execution, &seen, &store_err));
    check_seen("executions", &seen, "1 ContinuedAsNew 11 12 13|2 Running 15 0 16|5 Running 1001 0 7|");
    seen = (struct seen){.len = 0};
    CHECK_OK(query_store_activities(pg, THOLE_STR("one"), see_activity, &seen, &store_err));
    check_seen("activities", &seen,
               "5 1 q x 11 [alive] long here|5 2 q y 12 [] long here|5 3 r x 13 [] long outside|");
    seen = (struct seen){.len = 0};
    thole_poisoned_filter const all = {.size = sizeof all};
    CHECK_OK(query_store_poisoned(pg, &all, see_poisoned, &seen, &store_err));
    check_seen("poisoned", &seen,
               "sick 2 4 r bad 5 9 died [a reason] 6002 7001|sick 2 3 q bad 5 9 died [a reason] 6001 7001|"
               "weak 2 3 q bad 5 9 died [a reason] 6001 7001|");
}

static const char *queue_text(thole_slice queue)
{
    static struct seen seen;
    struct queue_row *rows = NULL;
    struct queue_activity *activities = NULL;
    size_t n = 0;
    struct arena arena;
    arena_init(&arena, 1 << 20);
    seen = (struct seen){.len = 0};
    CHECK_OK(query_store_queues(pg, queue, &arena, &rows, &n, &store_err));
    for (size_t i = 0; i < n; i++)
        (void)say(&seen, "%.*s [%.*s] %" PRIu64 " %" PRIu64 " %" PRIu64 " %s|", THOLE_FMT(rows[i].queue),
                  THOLE_FMT(rows[i].worker), rows[i].activities, rows[i].outside, rows[i].poisoned,
                  silence(rows[i].silent_ms));
    CHECK_OK(query_store_queue_activities(pg, queue, &arena, &activities, &n, &store_err));
    for (size_t i = 0; i < n; i++)
        (void)say(&seen, "%.*s %.*s %" PRIu64 "|", THOLE_FMT(activities[i].queue),
                  THOLE_FMT(activities[i].activity), activities[i].activities);
    arena_release(&arena);
    return seen.text;
}

/* Nobody is silent where nobody has anything. */
static void test_queues(void)
{
    CHECK_STR("all", queue_text(THOLE_STR("")),
              "q [] 1 0 0 now|q [] 0 0 2 now|q [alive] 2 0 0 long|r [] 0 1 0 now|r [] 0 0 1 now|"
              "q x 2|q y 1|");
    CHECK_STR("one", queue_text(THOLE_STR("r")), "r [] 0 1 0 now|r [] 0 0 1 now|");
    CHECK_STR("none", queue_text(THOLE_STR("s")), "");
}

/* ---- filters ---- */

static void test_list_filters(void)
{
    static const struct {
        const char *what;
        thole_list_filter filter;
        const char *ids;
    } cases[] = {
        {"all", {.limit = 9}, "two\\ two% o_e ope one "},
        {"default limit", {.limit = 0}, "two\\ two% o_e ope one "},
        {"limit", {.limit = 2}, "two\\ two% "},
        {"status", {.status = THOLE_INSTANCE_COMPLETED}, "two\\ o_e "},
        {"orchestration", {.orchestration = {(const uint8_t *)"buys", 4}}, "o_e ope "},
        {"parent", {.parent = {(const uint8_t *)"up", 2}}, "ope one "},
        {"prefix", {.id_prefix = {(const uint8_t *)"o", 1}}, "o_e ope one "},
        {"prefix with _", {.id_prefix = {(const uint8_t *)"o_", 2}}, "o_e "},
        {"prefix with %", {.id_prefix = {(const uint8_t *)"two%", 4}}, "two% "},
        {"prefix with \\", {.id_prefix = {(const uint8_t *)"two\\", 4}}, "two\\ "},
        {"after, inclusive", {.created_after_ms = 1006}, "two\\ two% "},
        {"before, exclusive", {.created_before_ms = 1004}, "one "},
        {"both", {.created_after_ms = 1004, .created_before_ms = 1007}, "two% o_e ope "},
        {"behind one of two of a time",
         {.behind_instance = {(const uint8_t *)"o_e", 3}, .behind_created_ms = 1004},
         "ope one "},
        {"behind, and before",
         {.behind_instance = {(const uint8_t *)"two\\", 4},
          .behind_created_ms = 1007,
          .created_before_ms = 1004},
         "one "},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct seen seen = {.len = 0};
        CHECK_OK(query_store_list(pg, &cases[i].filter, see_id, &seen, &store_err));
        check_seen(cases[i].what, &seen, cases[i].ids);
    }
}

static thole_status see_poisoned_key(void *arg, const thole_poisoned_info *p)
{
    return say(arg, "%.*s/%" PRIu64 " ", THOLE_FMT(p->instance), p->activity_id);
}

static void test_poisoned_filters(void)
{
    static const struct {
        const char *what;
        thole_poisoned_filter filter;
        const char *keys;
    } cases[] = {
        {"limit", {.limit = 1}, "sick/4 "},
        {"queue", {.queue = {(const uint8_t *)"q", 1}}, "sick/3 weak/3 "},
        {"instance", {.instance = {(const uint8_t *)"sick", 4}}, "sick/4 sick/3 "},
        {"behind",
         {.behind_instance = {(const uint8_t *)"sick", 4},
          .behind_since_ms = 6001,
          .behind_execution = 2,
          .behind_activity_id = 3},
         "weak/3 "},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct seen seen = {.len = 0};
        CHECK_OK(query_store_poisoned(pg, &cases[i].filter, see_poisoned_key, &seen, &store_err));
        check_seen(cases[i].what, &seen, cases[i].keys);
    }
}

/* The callback's status ends the reading, and is returned. */
static void test_callback_refuses(void)
{
    thole_list_filter const instances = {.limit = 9};
    thole_poisoned_filter const poisoned = {.limit = 9};
    struct seen seen = {.stop_at = 2};
    CHECK_STATUS(query_store_list(pg, &instances, see_id, &seen, &store_err), THOLE_APP);
    CHECK_INT(seen.rows, 2);
    seen = (struct seen){.stop_at = 1};
    CHECK_STATUS(query_store_executions(pg, THOLE_STR("one"), see_execution, &seen, &store_err), THOLE_APP);
    CHECK_INT(seen.rows, 1);
    seen = (struct seen){.stop_at = 2};
    CHECK_STATUS(query_store_poisoned(pg, &poisoned, see_poisoned_key, &seen, &store_err), THOLE_APP);
    CHECK_INT(seen.rows, 2);
    seen = (struct seen){.stop_at = 2};
    CHECK_STATUS(query_store_activities(pg, THOLE_STR("one"), see_activity, &seen, &store_err), THOLE_APP);
    CHECK_INT(seen.rows, 2);
}

/* ---- pages ---- */

struct counted {
    uint64_t next; /* the one that must come */
    uint64_t rows, astray;
};

static thole_status count(void *arg, uint64_t number)
{
    struct counted *counted = arg;
    counted->astray += number != counted->next;
    counted->next = number + 1;
    return ++counted->rows > 3 * MANY ? THOLE_APP : THOLE_OK; /* a loop of pages */
}

static uint64_t number_of(thole_slice id)
{
    char text[16] = "";
    (void)snprintf(text, sizeof text, "%.*s", THOLE_FMT(id));
    return strtoull(text + 1, NULL, 10);
}

static thole_status count_instance(void *arg, const thole_instance_info *i)
{
    return count(arg, number_of(i->instance));
}

static thole_status count_execution(void *arg, const thole_execution_info *e)
{
    return count(arg, e->execution);
}

static thole_status count_poisoned(void *arg, const thole_poisoned_info *p)
{
    return count(arg, p->activity_id);
}

static void check_counted(const char *what, struct counted *counted, uint64_t want)
{
    if (counted->rows != want || counted->astray != 0)
        fprintf(stderr, "\n  %s: %" PRIu64 " rows, %" PRIu64 " not in order\n", what, counted->rows,
                counted->astray);
    CHECK_INT(counted->rows, want);
    CHECK_INT(counted->astray, 0);
    *counted = (struct counted){.next = 1};
}

/* Many of one time: the order is that of their keys. */
static void test_pages(void)
{
    thole_list_filter list = {.id_prefix = THOLE_STR("m"), .limit = 10 * MANY};
    thole_poisoned_filter poisoned = {.instance = THOLE_STR("many"), .limit = 10 * MANY};
    struct counted counted = {.next = 1};
    (void)store_sql(NS,
                    "INSERT INTO instances (instance, p, orchestration, execution, status, created_ms,"
                    " updated_ms, detail, turns, history_seq)"
                    " SELECT 'm' || to_char(n, 'FM0000'), 6, 'many', 1, 1, 50, 50, '', 1, n"
                    " FROM generate_series(1, %d) AS n",
                    MANY);
    (void)store_sql(
        NS, "INSERT INTO executions SELECT 'many', n, 6, 9, 1, 2, 3, 4 FROM generate_series(1, %d) AS n",
        MANY);
    (void)store_sql(NS,
                    "INSERT INTO quarantine SELECT 'many', 1, n, 6, 'q', 'bad', 1, 1, '', '', 5, 6"
                    " FROM generate_series(1, %d) AS n",
                    MANY);
    CHECK_OK(query_store_list(pg, &list, count_instance, &counted, &store_err));
    check_counted("instances", &counted, MANY);
    CHECK_OK(query_store_executions(pg, THOLE_STR("many"), count_execution, &counted, &store_err));
    check_counted("executions", &counted, MANY);
    CHECK_OK(query_store_poisoned(pg, &poisoned, count_poisoned, &counted, &store_err));
    check_counted("quarantine", &counted, MANY);
    for (uint64_t limit = 499; limit <= 502; limit++) { /* around a page */
        list.limit = poisoned.limit = limit;
        CHECK_OK(query_store_list(pg, &list, count_instance, &counted, &store_err));
        check_counted("instances up to a limit", &counted, limit);
        CHECK_OK(query_store_poisoned(pg, &poisoned, count_poisoned, &counted, &store_err));
        check_counted("quarantine up to a limit", &counted, limit);
    }
    list.limit = poisoned.limit = 0;
    CHECK_OK(query_store_list(pg, &list, count_instance, &counted, &store_err));
    check_counted("instances, no limit named", &counted, 100);
    CHECK_OK(query_store_poisoned(pg, &poisoned, count_poisoned, &counted, &store_err));
    check_counted("quarantine, no limit named", &counted, 100);
}

/* ---- rows that thole has not written ---- */

struct others {
    uint64_t own, foreign, longest;
};

static thole_status count_kinds(struct others *others, thole_slice id, bool foreign)
{
    others->own += !foreign;
    others->foreign += foreign;
    if (foreign && id.len > others->longest)
        others->longest = id.len;
    return others->own + others->foreign > 10 * MANY ? THOLE_APP : THOLE_OK;
}

static thole_status see_kind(void *arg, const thole_instance_info *i)
{
    return count_kinds(arg, i->instance, i->foreign);
}

static thole_status see_poisoned_kind(void *arg, const thole_poisoned_info *p)
{
    return count_kinds(arg, p->instance, p->foreign);
}

static void check_kinds(const char *what, struct others *others, uint64_t own)
{
    fprintf(stderr, "  %s: %" PRIu64 " own, %" PRIu64 " foreign, the longest of %" PRIu64 " bytes\n", what,
            others->own, others->foreign, others->longest);
    CHECK_INT(others->own, own);
    CHECK_INT(others->foreign, MANY + 1);
    CHECK_INT(others->longest, 100000);
    *others = (struct others){.own = 0};
}

/* Of an owner of the database who has removed the checks; newer than all others, so that a list begins with
 * them. */
static void test_foreign_rows(void)
{
    thole_list_filter const list = {.limit = MANY};
    thole_poisoned_filter const poisoned = {.limit = MANY};
    struct others others = {.own = 0};
    (void)store_sql(NS, "ALTER DOMAIN instance_id DROP CONSTRAINT instance_id_check");
    (void)store_sql(NS,
                    "INSERT INTO instances (instance, p, orchestration, execution, status, created_ms,"
                    " updated_ms, detail, turns, history_seq)"
                    " SELECT repeat('x', 201 + n * 99799 / %d) || n, 1, 'one', 1, 3, 9000000, 50, '', 1, n"
                    " FROM generate_series(0, %d) AS n",
                    MANY, MANY - 1);
    (void)store_sql(NS, "INSERT INTO instances (instance, p, orchestration, execution, status, created_ms,"
                        " updated_ms, detail, turns, history_seq)"
                        " SELECT repeat('y', 100000), 1, 'one', 1, 3, 9000000, 50, '', 1, 1");
    (void)store_sql(NS,
                    "INSERT INTO quarantine SELECT instance, 1, 1, 6, 'q', 'bad', 1, 1, '', '', 9000000, 6"
                    " FROM instances WHERE octet_length(instance) > 200");
    CHECK_OK(query_store_list(pg, &list, see_kind, &others, &store_err));
    check_kinds("instances", &others, MANY);
    CHECK_OK(query_store_poisoned(pg, &poisoned, see_poisoned_kind, &others, &store_err));
    check_kinds("quarantine", &others, MANY);
}

/* The engine does not see them. */
static void test_foreign_rows_of_a_partition(void)
{
    struct live_summary live = {0};
    struct batch_timer *timers = NULL;
    size_t len = 0;
    uint64_t next = 0;
    struct arena arena;
    arena_init(&arena, 64 << 20);
    (void)store_sql(
        NS, "INSERT INTO timers (instance, execution, timer_id, p, due_ms)"
            " VALUES (repeat('t', 201), 1, 1, 1, 1), ('', 1, 1, 1, 1), (repeat('t', 200), 1, 1, 1, 2),"
            " (repeat('t', 201), 1, 2, 1, 9000), (repeat('t', 200), 1, 2, 1, 9001)");
    CHECK_OK(projector_store_timers(pg, 1, 100, 10, &arena, &timers, &len, &next, &store_err));
    CHECK_INT(len, 1);
    CHECK_INT(timers[0].instance.len, 200);
    CHECK_INT(next, 9001);
    CHECK_OK(projector_store_live(pg, 1, &arena, &live, &store_err));
    for (size_t i = 0; i < live.blocked_len; i++)
        CU_ASSERT(live.blocked[i].instance.len <= 200);
    CHECK_INT(live.orchestrations_len, 0);
    arena_release(&arena);
}

static void test_open(void)
{
    pg = store_partition(NS);
    insert_all();
}

static void test_close(void)
{
    postgres_close(pg);
}

static const struct thole_test tests[] = {{"open", test_open},
                                          {"each value in its place", test_values},
                                          {"queues", test_queues},
                                          {"filters of instances", test_list_filters},
                                          {"filters of the quarantine", test_poisoned_filters},
                                          {"the callback refuses", test_callback_refuses},
                                          {"pages", test_pages},
                                          {"foreign rows", test_foreign_rows},
                                          {"foreign rows of a partition", test_foreign_rows_of_a_partition},
                                          {"close", test_close}};

int main(void)
{
    return store_run("reads", tests, ARRAY_LEN(tests));
}
