/*
 * Rows that are damaged without thole's knowledge, each in another way, while instances start and end: `thole
 * projections verify` names each of them and nothing else, `rebuild` repairs all, and nothing is lost.
 */
#include "stack.h"
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

enum { OUTPUT_BYTES = 1 << 18, ID_BYTES = 64, LOAD_PAUSE_MS = 20, OUTCOME_MS = 60000, DRIFT_WAIT_MS = 60000 };

static struct stack stack;
static thole_client *client;
static struct stack_program *engine, *worker;
static char runs[128], go[128];

/* ---- damages ---- */

struct damage {
    const char *id;             /* of the instance that it is done to, and its first letters: what that is */
    const char *sql;            /* $ is the id */
    const char *table, *column; /* names that must be reported; NULL: a row that is missing, or one too
                                   many */
};

#define SET(table, assign) "UPDATE " table " SET " assign " WHERE instance = '$'"
#define DROP(table) "DELETE FROM " table " WHERE instance = '$'"
/* v-: a victim whose activity runs; q-: one whose activity waits; a-: one that has continued as new; b-: one
 * that has failed; n-: there is no such instance */
static const struct damage damages[] = {
    {"v-deleted", DROP("worker_queue"), "worker_queue", NULL},
    {"v-queue", SET("worker_queue", "queue = 'other'"), "worker_queue", "queue"},
    {"v-activity", SET("worker_queue", "activity = 'quick'"), "worker_queue", "activity"},
    {"v-try", SET("worker_queue", "try_number = 2"), "worker_queue", "try_number"},
    {"v-timeout", SET("worker_queue", "try_timeout_ms = 3600001"), "worker_queue", "try_timeout_ms"},
    {"v-digest", SET("worker_queue", "digest = decode(repeat('ab', 16), 'hex')"), "worker_queue", "digest"},
    {"q-digest", SET("worker_queue", "digest = NULL"), "worker_queue", "digest"},
    {"q-details", SET("worker_queue", "details = 'x'"), "worker_queue", "details"},
    {"v-partition", SET("worker_queue", "p = (p + 1) % 8"), "worker_queue", "p"},
    {"v-nobody",
     SET("worker_queue",
         "worker = 'nobody', attempt = attempt + 1, claimed_at = now(), lease_until = now() + "
         "interval '9 years'"),
     "worker_queue", "claim"},
    {"q-nobody", SET("worker_queue", "lease_until = now() + interval '9 years'"), "worker_queue", "claim"},
    {"q-worker", SET("worker_queue", "worker = 'nobody'"), "worker_queue", "claim"},
    {"q-strikes", SET("worker_queue", "strikes = '{1,2,3}', lost = '{1,2,3}'"), "worker_queue", "claim"},
    {"q-swept", SET("worker_queue", "swept_at = now() + interval '9 years'"), "worker_queue", "claim"},
    {"v-deadline", SET("worker_queue", "deadline_at = now() + interval '9 years'"), "worker_queue", "claim"},
    {"q-attempt", SET("worker_queue", "attempt = -1"), "worker_queue", "claim"},
    {"v-key", SET("worker_queue", "activity_id = 99"), "worker_queue", NULL},
    {"v-stale", SET("worker_queue", "execution = 7"), "worker_queue", NULL},
    {"q-twice",
     "INSERT INTO worker_queue (instance, execution, activity_id, p, queue, activity, digest) SELECT "
     "instance,"
     " execution, activity_id + 100, p, queue, activity, digest FROM worker_queue WHERE instance = '$'",
     "worker_queue", NULL},
    {"n-activity",
     "INSERT INTO worker_queue (instance, execution, activity_id, p, queue, activity) VALUES ('$', 1, 2, 3,"
     " 'nowhere', 'hold')",
     "worker_queue", NULL},
    {"v-no-timer", DROP("timers") " AND timer_id = 4", "timers", NULL},
    {"v-early", SET("timers", "due_ms = due_ms - 60000") " AND timer_id = 4", "timers", "due_ms"},
    {"v-late", SET("timers", "due_ms = due_ms + 1") " AND timer_id = 4", "timers", "due_ms"},
    {"v-timer-partition", SET("timers", "p = (p + 1) % 8") " AND timer_id = 4", "timers", "p"},
    {"v-timer-key", SET("timers", "timer_id = 98") " AND timer_id = 4", "timers", NULL},
    {"v-timer-stale", SET("timers", "execution = 0") " AND timer_id = 4", "timers", NULL},
    {"b-timer",
     "INSERT INTO timers SELECT instance, 1, 5, p, 9999999999999 FROM instances WHERE instance = '$'",
     "timers", NULL},
    {"v-gone", DROP("instances"), "instances", NULL},
    {"v-orchestration", SET("instances", "orchestration = 'load'"), "instances", "orchestration"},
    {"v-ended", SET("instances", "status = 4"), "instances", "status"},
    {"b-running", SET("instances", "status = 1"), "instances", "status"},
    {"b-detail", SET("instances", "detail = 'as it may'"), "instances", "detail"},
    {"v-custom", SET("instances", "custom_status = 'steady'"), "instances", "custom_status"},
    {"v-no-custom", SET("instances", "custom_status = NULL"), "instances", "custom_status"},
    {"v-created", SET("instances", "created_ms = created_ms + 1"), "instances", "created_ms"},
    {"v-updated", SET("instances", "updated_ms = updated_ms - 1"), "instances", "updated_ms"},
    {"v-turns", SET("instances", "turns = turns + 1"), "instances", "turns"},
    {"v-sequence", SET("instances", "history_seq = history_seq + 100000"), "instances", "history_seq"},
    {"v-version", SET("instances", "version = 9"), "instances", "version"},
    {"v-parent", SET("instances", "parent = 'v-gone'"), "instances", "parent"},
    {"a-execution", SET("instances", "execution = 1"), "instances", "execution"},
    {"v-no-partition", SET("instances", "p = 4711"), "instances", "p"},
    {"v-renamed", "UPDATE instances SET instance = 'n-renamed' WHERE instance = '$'", "instances", NULL},
    {"n-instance",
     "INSERT INTO instances (instance, p, orchestration, execution, status, created_ms, updated_ms, detail,"
     " turns, history_seq) VALUES ('$', 5000, 'load', 1, 1, 1, 1, '', 1, 1)",
     "instances", NULL},
    {"a-deleted", DROP("executions") " AND execution = 1", "executions", NULL},
    {"a-status", SET("executions", "status = 5") " AND execution = 1", "executions", "status"},
    {"a-end", SET("executions", "ended_ms = ended_ms + 1") " AND execution = 1", "executions", "ended_ms"},
    {"a-never", SET("executions", "ended_ms = NULL") " AND execution = 1", "executions", "ended_ms"},
    {"a-start", SET("executions", "started_ms = started_ms - 1") " AND execution = 2", "executions",
     "started_ms"},
    {"a-turns", SET("executions", "turns = turns + 5") " AND execution = 2", "executions", "turns"},
    {"a-more",
     "INSERT INTO executions SELECT instance, 3, p, 1, started_ms, NULL, 1, history_seq FROM"
     " executions WHERE instance = '$' AND execution = 2",
     "executions", NULL},
    {"b-poisoned",
     "INSERT INTO quarantine SELECT instance, 1, 2, p, 'default', 'hold', 1, 5, 'w', 'no', 1, 2 FROM "
     "instances"
     " WHERE instance = '$'",
     "quarantine", NULL},
};

static void do_damage(const struct damage *damage)
{
    char sql[1024];
    size_t len = (size_t)snprintf(sql, sizeof sql,
                                  "SET session_replication_role = replica; SET search_path = "
                                  "thole_default; ");
    for (const char *at = damage->sql; *at != '\0'; at++)
        len += (size_t)(*at == '$' ? snprintf(sql + len, sizeof sql - len, "%s", damage->id)
                                   : snprintf(sql + len, sizeof sql - len, "%c", *at));
    (void)stack_sql(&stack, sql);
}

static bool is_real(const struct damage *damage)
{
    return damage->id[0] != 'n';
}

/* ---- load ---- */

struct load {
    const char *name;
    unsigned pause_ms; /* between two starts */
    pthread_t thread;
    atomic_bool stop;
    unsigned started;
};

static void *start_many(void *arg)
{
    struct load *const load = arg;
    thole_error err = {0};
    while (!atomic_load(&load->stop)) {
        char id[ID_BYTES];
        snprintf(id, sizeof id, "%s-%u", load->name, load->started);
        if (thole_client_start(client, thole_slice_from(id), THOLE_STR("load"), thole_slice_from(id), NULL,
                               &err) == THOLE_OK)
            load->started++;
        pause_ms(load->pause_ms);
    }
    return NULL;
}

static void load_begin(struct load *load)
{
    atomic_store(&load->stop, false);
    CU_ASSERT_EQUAL_FATAL(pthread_create(&load->thread, NULL, start_many, load), 0);
}

static void load_end(struct load *load)
{
    thole_instance_status status;
    char id[ID_BYTES];
    char pattern[ID_BYTES];
    unsigned wrong = 0;
    snprintf(pattern, sizeof pattern, "%s-*", load->name);
    atomic_store(&load->stop, true);
    pthread_join(load->thread, NULL);
    for (unsigned i = 0; i < load->started; i++) {
        snprintf(id, sizeof id, "%s-%u", load->name, i);
        wrong += strcmp(stack_outcome(client, id, OUTCOME_MS, &status), id) != 0;
    }
    fprintf(stderr, "  %u instances started and ended meanwhile, %zu activities\n", load->started,
            stack_count(runs, pattern));
    CU_ASSERT_EQUAL(wrong, 0);
    CU_ASSERT_TRUE(load->started > 50);
    CU_ASSERT_TRUE(stack_count(runs, pattern) >= (size_t)load->started * 2);
}

/* ---- the command ---- */

static char out[OUTPUT_BYTES];

static int thole(const char *arguments)
{
    char command[512];
    uint64_t const began_us = now_us();
    snprintf(command, sizeof command, THOLE_COMMAND " projections %s 2>&1", arguments);
    FILE *const from = popen(command, "r");
    CU_ASSERT_PTR_NOT_NULL_FATAL(from);
    out[fread(out, 1, sizeof out - 1, from)] = '\0';
    int const code = pclose(from);
    fprintf(stderr, "  projections %s: %llu ms\n", arguments,
            (unsigned long long)(now_us() - began_us) / 1000);
    return WEXITSTATUS(code);
}

static bool is_named(const struct damage *damage)
{
    char line[256], column[64] = "null";
    if (damage->column != NULL)
        snprintf(column, sizeof column, "\"%s\"", damage->column);
    for (const char *at = out; at != NULL && *at != '\0';
         at = strchr(at, '\n') == NULL ? NULL : strchr(at, '\n') + 1) {
        size_t const len = strcspn(at, "\n");
        char copy[2048];
        snprintf(copy, sizeof copy, "%.*s", (int)(len < sizeof copy ? len : sizeof copy - 1), at);
        snprintf(line, sizeof line, "\"table\":\"%s\",\"instance\":\"%s\"", damage->table, damage->id);
        if (strstr(copy, line) == NULL)
            continue;
        snprintf(line, sizeof line, "\"column\":%s", column);
        if (strstr(copy, line) != NULL)
            return true;
    }
    return false;
}

/* Of load, that is. */
static void check_no_other(void)
{
    const char *const other = strstr(out, "\"instance\":\"load");
    CU_ASSERT_PTR_NULL(other);
    if (other != NULL)
        fprintf(stderr, "  %.*s\n", (int)strcspn(other, "\n"), other);
}

static void check_clean(const char *when)
{
    int const code = thole("verify --rate 0 -o jsonl");
    CU_ASSERT_EQUAL(code, 0);
    if (code != 0)
        fprintf(stderr, "  %s: %s\n", when, out);
}

/* ---- the test ---- */

static void start(const char *id)
{
    const char *const orchestration = id[0] == 'a' ? "again" : id[0] == 'b' ? "breaks" : "victim";
    const char *const queue = id[0] == 'q' ? "later" : "default";
    CHECK_OK(thole_client_start(client, thole_slice_from(id), thole_slice_from(orchestration),
                                thole_slice_from(queue), NULL, &stack.err),
             &stack.err);
}

/* Running activities may end. */
static void let_end(void)
{
    FILE *const file = fopen(go, "we");
    CU_ASSERT_PTR_NOT_NULL_FATAL(file);
    (void)fclose(file);
}

static void check_end(const char *id)
{
    thole_instance_status status;
    if (id[0] != 'b')
        CHECK_OK(thole_client_signal(client, thole_slice_from(id), THOLE_STR("end"), THOLE_STR(""),
                                     THOLE_STR(""), NULL, &stack.err),
                 &stack.err);
    CHECK_STR(id, stack_outcome(client, id, OUTCOME_MS, &status), id[0] == 'b' ? "as it must" : "done");
}

static void test_each_damage_is_named_and_mended(void)
{
    struct load load = {.name = "load", .pause_ms = LOAD_PAUSE_MS};
    size_t running = 0;
    for (size_t i = 0; i < ARRAY_LEN(damages); i++)
        if (is_real(&damages[i])) {
            start(damages[i].id);
            running += damages[i].id[0] == 'v';
        }
    for (int i = 0; i < 1000 && stack_count(runs, "v-") < running; i++)
        pause_ms(20);
    load_begin(&load);
    check_clean("before");
    for (size_t i = 0; i < ARRAY_LEN(damages); i++)
        do_damage(&damages[i]);
    CU_ASSERT_EQUAL(thole("verify --rate 0 --limit 10000 -o jsonl"), 15);
    size_t found = 0;
    for (size_t i = 0; i < ARRAY_LEN(damages); i++) {
        bool const named = is_named(&damages[i]);
        found += named;
        CU_ASSERT_TRUE(named);
        if (!named)
            fprintf(stderr, "  %s is not named\n", damages[i].id);
    }
    fprintf(stderr, "  %zu of %zu damages are named\n", found, ARRAY_LEN(damages));
    check_no_other();
    CU_ASSERT_EQUAL(thole("rebuild --rate 0 --limit 1 -o jsonl"), 0);
    fprintf(stderr, "  %s", out);
    check_clean("after");
    let_end();
    struct stack_program *const later =
        stack_program_with(&stack, "program_rows", "later", "worker", "--queue=later", "--lease=4s", NULL);
    for (size_t i = 0; i < ARRAY_LEN(damages); i++)
        if (is_real(&damages[i]))
            check_end(damages[i].id);
    load_end(&load);
    check_clean("at the end");
    fprintf(stderr, "  %zu runs of %zu activities that were running\n", stack_count(runs, "v-*"), running);
    (void)stack_terminate(later, 10000);
}

/* The engine compares as it runs: what is wrong is in its log and its metric, until it is mended. */
static void test_drift_is_told(void)
{
    CU_ASSERT_EQUAL(stack_count(engine->log, "area=drift *instance=load-"), 0);
    size_t const before = stack_count(engine->log, ": 1 are wrong; thole projections verify");
    (void)stack_sql(&stack,
                    "UPDATE thole_default.instances SET detail = 'changed' WHERE instance = 'b-timer'");
    CU_ASSERT_TRUE(
        stack_logged(engine, "instance=b-timer *column detail: the row says changed, the history as it must",
                     1, DRIFT_WAIT_MS));
    CU_ASSERT_TRUE(
        stack_logged(engine, ": 1 are wrong; thole projections verify", before + 1, DRIFT_WAIT_MS));
    CU_ASSERT_EQUAL(thole("rebuild"), 0);
    size_t const clean = stack_count(engine->log, ": 0 are wrong");
    CU_ASSERT_TRUE(stack_logged(engine, ": 0 are wrong", clean + 1, DRIFT_WAIT_MS));
    check_clean("after");
}

/* ---- a second schema ---- */

static const char *const seconds[] = {"v-2-gone", "v-2-timer", "v-2-c", "v-2-d", "a-2-turns", "b-2"};

static const char *sql(const char *text)
{
    return stack_sql(&stack, text);
}

static void check_one_schema(void)
{
    CHECK_STR("schemas", sql("SELECT string_agg(nspname, ' ') FROM pg_namespace WHERE nspname LIKE 'thole%'"),
              "thole_default");
}

/* Killed while it makes rows, and in front of its switch: the rows that are in use are as they were. Postgres
 * may take a moment to see that the one before is gone, for which the next one is refused: it is tried again.
 */
static void test_killed_rebuild(void)
{
    static const unsigned after_ms[] = {150, 400, 800};
    for (size_t i = 0; i < ARRAY_LEN(after_ms); i++) {
        char command[512];
        snprintf(command, sizeof command,
                 "for i in 1 2 3 4 5; do " THOLE_COMMAND
                 " projections rebuild --second-schema --rate 100 >/dev/null 2>&1 & sleep %u.%03u; "
                 "kill -9 $! && exit; sleep 1; done; exit 1",
                 after_ms[i] / 1000, after_ms[i] % 1000);
        CU_ASSERT_EQUAL(system(command), 0);
    }
    CHECK_STR("left behind", sql("SELECT count(*) FROM pg_namespace WHERE nspname = 'thole_default~next'"),
              "1");
    check_clean("after kills");
}

/* All rows are made again while instances run, with rows that were damaged before; claims of running
 * activities are kept, nothing is lost. */
static void test_second_schema(void)
{
    struct load load = {.name = "more", .pause_ms = 4 * LOAD_PAUSE_MS};
    static const char claims_sql[] =
        "SELECT string_agg(instance || ' ' || attempt || ' ' || claimed_at, ', ' ORDER BY instance)"
        " FROM thole_default.worker_queue WHERE instance LIKE 'v-2-%'";
    char oid[32], claims[512];
    size_t running = 0;
    snprintf(oid, sizeof oid, "%s", sql("SELECT 'thole_default'::regnamespace::oid::text"));
    (void)unlink(go);
    size_t const before = stack_count(runs, "v-");
    for (size_t i = 0; i < ARRAY_LEN(seconds); i++) {
        start(seconds[i]);
        running += seconds[i][0] == 'v';
    }
    for (int i = 0; i < 1000 && stack_count(runs, "v-") < before + running; i++)
        pause_ms(20);
    snprintf(claims, sizeof claims, "%s", sql(claims_sql));
    CU_ASSERT_PTR_NOT_NULL(strstr(claims, "v-2-c 1 "));
    load_begin(&load);
    (void)sql("SET session_replication_role = replica; SET search_path = thole_default;"
              " DELETE FROM instances WHERE instance = 'v-2-gone'; UPDATE executions SET turns = 99"
              " WHERE instance = 'a-2-turns'; DELETE FROM timers WHERE instance = 'v-2-timer'");
    CU_ASSERT_EQUAL(thole("verify --rate 0"), 15);
    for (int i = 0; i < 2; i++) {
        CU_ASSERT_EQUAL(thole("rebuild --second-schema --rate 0"), 0);
        fprintf(stderr, "  %s", out);
        CU_ASSERT_PTR_NOT_NULL(strstr(out, "are made anew, and in their place"));
        CHECK_STR("claims", sql(claims_sql), claims); /* at once: workers write theirs again with a renewal */
        check_clean("after the switch");
    }
    CU_ASSERT_STRING_NOT_EQUAL(oid, sql("SELECT 'thole_default'::regnamespace::oid::text"));
    check_one_schema();
    let_end();
    for (size_t i = 0; i < ARRAY_LEN(seconds); i++)
        check_end(seconds[i]);
    load_end(&load);
    check_clean("at the end");
    fprintf(stderr, "  %zu runs of %zu activities that were running\n", stack_count(runs, "v-2-*"), running);
    CU_ASSERT_EQUAL(stack_count(runs, "v-2-*"), running);
}

static void test_second_schema_refused(void)
{
    CU_ASSERT_EQUAL(thole("verify --second-schema"), 2);
    CU_ASSERT_EQUAL(thole("rebuild --second-schema --partition 1"), 2);
    CU_ASSERT_EQUAL(system(THOLE_COMMAND " projections rebuild --second-schema --rate 50 >/dev/null 2>&1 & "
                                         "echo $! >$D/other; sleep 0.7"),
                    0);
    CU_ASSERT_EQUAL(thole("rebuild --second-schema"), 4);
    CU_ASSERT_PTR_NOT_NULL(strstr(out, "another rebuild makes a second schema"));
    CU_ASSERT_EQUAL(system("kill -9 $(cat $D/other)"), 0);
    CU_ASSERT_EQUAL(thole("rebuild --second-schema"), 0);
    check_one_schema();
}

static const struct thole_test tests[] = {
    {"each_damage_is_named_and_mended", test_each_damage_is_named_and_mended},
    {"drift_is_told", test_drift_is_told},
    {"killed_rebuild", test_killed_rebuild},
    {"second_schema_refused", test_second_schema_refused},
    {"second_schema", test_second_schema},
};

int main(void)
{
    skip_without_nats();
    skip_without_postgres();
    stack_start(&stack);
    snprintf(runs, sizeof runs, "%s/runs", stack.dir);
    snprintf(go, sizeof go, "%s/go", stack.dir);
    setenv("ROWS_RUNS", runs, 1);
    setenv("ROWS_GO", go, 1);
    setenv("D", stack.dir, 1);
    engine = stack_program_with(&stack, "program_rows", "engine", "engine", "--sweep=8s", "--drift=2s", NULL);
    client = stack_client(&stack);
    worker = stack_program_with(&stack, "program_rows", "worker", "worker", "--lease=4s", "--slots=64", NULL);
    int const failed = thole_run_suite("damaged_rows", tests, ARRAY_LEN(tests));
    thole_client_close(client);
    stack_stop(&stack);
    return failed;
}
