/* Connections, migrations and failures of projections/, on a real Postgres. */
#include "call_fiber.h"
#include "migrations.h"
#include "store_fixture.h"
#include <arpa/inet.h>
#include <libpq-fe.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

enum { MIGRATORS = 8 };

static thole_status try_open(const char *conninfo, const char *ns)
{
    struct postgres *pg = NULL;
    struct postgres_options options = {.conninfo = conninfo, .ns = ns, .connect_timeout_ms = 2000};
    thole_status status = postgres_open(&options, &pg, &store_err);
    postgres_close(pg);
    return status;
}

/* -- opening -- */

static void open_refuses_what_cannot_work(void)
{
    static const struct open_case {
        const char *name, *conninfo, *ns;
        thole_status want;
        const char *text;
    } cases[] = {
        {"no such pair", "host=127.0.0.1 hunter2", "a", THOLE_INVALID, "malformed"},
        {"not a URI", "postgres://u:hunter2@[::1", "a", THOLE_INVALID, "malformed"},
        {"unknown option", "password=hunter2 colour=red", "a", THOLE_INVALID, "malformed"},
        {"bad port", "host=127.0.0.1 port=x password=hunter2", "a", THOLE_INVALID, "\"x\""},
        {"bad sslmode", "host=127.0.0.1 sslmode=x password=hunter2", "a", THOLE_INVALID, "sslmode"},
        {"nothing listens", "host=127.0.0.1 port=1 password=hunter2", "a", THOLE_UNAVAILABLE, "127.0.0.1:1 "},
        {"no namespace", "host=127.0.0.1 port=1", "", THOLE_INVALID, "namespace"},
        {"namespace with a quote", "host=127.0.0.1 port=1", "a\"b", THOLE_INVALID, "namespace"},
        {"namespace of 51 bytes", "host=127.0.0.1 port=1",
         "n12345678901234567890123456789012345678901234567890", THOLE_INVALID, "at most 50"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK_STATUS(try_open(cases[i].conninfo, cases[i].ns), cases[i].want);
        CHECK_HAS(store_err.text, cases[i].text);
        CU_ASSERT(strstr(store_err.text, "hunter2") == NULL);
    }
}

static void open_says_who_was_denied_and_no_secret(void)
{
    char port[16];
    (void)snprintf(port, sizeof port, ":%u ", store_port());
    CHECK_STATUS(try_open(store_conninfo(NULL, "hunter2", NULL), "a"), THOLE_DENIED);
    CHECK_HAS(store_err.text, "as user \"thole\"");
    CHECK_HAS(store_err.text, "127.0.0.1");
    CHECK_HAS(store_err.text, port);
    CHECK_HAS(store_err.text, "database \"postgres\"");
    CU_ASSERT(strstr(store_err.text, "hunter2") == NULL);
    CU_ASSERT(strchr(store_err.text, '\n') == NULL);

    CHECK_STATUS(try_open(store_conninfo("nobody", "hunter2", NULL), "a"), THOLE_DENIED);
    CHECK_HAS(store_err.text, "nobody");
    CHECK_STATUS(try_open(store_conninfo(NULL, NULL, "nowhere"), "a"), THOLE_DENIED);
    CHECK_HAS(store_err.text, "nowhere");
    CHECK_HAS(store_err.text, "create the database");
}

static void open_refuses_encodings_that_lose_ids(void)
{
    store_database("latin", "ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0");
    CHECK_STATUS(try_open(store_conninfo(NULL, NULL, "latin"), "a"), THOLE_UNSUPPORTED);
    CHECK_HAS(store_err.text, "LATIN1");
}

static void open_waits_its_time_and_no_longer(void)
{
    store_pause();
    double before = store_now_us();
    CHECK_STATUS(try_open(store_conninfo(NULL, NULL, NULL), "a"), THOLE_UNAVAILABLE);
    CU_ASSERT((store_now_us() - before) < 3e6);
    CHECK_HAS(store_err.text, "no answer");
    store_resume();
    CHECK_OK(try_open(store_conninfo(NULL, NULL, NULL), "a"));
}

/* The first host accepts and never says a word; the second refuses; the third is the server. */
static void open_goes_through_all_hosts(void)
{
    char conninfo[256];
    struct postgres *pg = NULL;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof address;
    int mute = socket(AF_INET, SOCK_STREAM, 0);
    CU_ASSERT_FATAL(bind(mute, (struct sockaddr *)&address, len) == 0 && listen(mute, 4) == 0);
    CU_ASSERT_FATAL(getsockname(mute, (struct sockaddr *)&address, &len) == 0);
    (void)snprintf(conninfo, sizeof conninfo,
                   "postgres://thole:thole@127.0.0.1:%u,127.0.0.1:1,127.0.0.1:%u/postgres",
                   ntohs(address.sin_port), store_port());
    struct postgres_options options = {.conninfo = conninfo, .ns = "hosts", .connect_timeout_ms = 300};
    thole_status status = THOLE_UNAVAILABLE;
    for (int i = 0; i < 20 && status == THOLE_UNAVAILABLE; i++) /* the server too may need longer than that */
        status = postgres_open(&options, &pg, &store_err);
    CHECK_OK(status);
    postgres_close(pg);
    *strrchr(conninfo, ',') = '\0';
    CHECK_STATUS(try_open(conninfo, "hosts"), THOLE_UNAVAILABLE);
    CHECK_HAS(store_err.text, "127.0.0.1:1 ");
    close(mute);
}

static void connection_limit_is_an_outage(void)
{
    (void)store_sql("x", "CREATE ROLE few LOGIN PASSWORD 'few' CONNECTION LIMIT 0");
    CHECK_STATUS(try_open(store_conninfo("few", "few", NULL), "a"), THOLE_UNAVAILABLE);
    CHECK_HAS(store_err.text, "too many connections");
}

static void clock_is_the_databases(void)
{
    uint64_t ms = 0;
    struct postgres *pg = fixture_open("clock");
    CHECK_OK(postgres_now_ms(pg, &ms, &store_err));
    uint64_t theirs = strtoull(store_sql("x", "SELECT floor(extract(epoch FROM now()) * 1000)"), NULL, 10);
    CU_ASSERT(theirs - ms < 5000);
    uint64_t before = postgres_statements(pg);
    CHECK_OK(postgres_now_ms(pg, &ms, &store_err));
    CHECK_INT(postgres_statements(pg) - before, 1);
    postgres_close(pg);
    postgres_close(NULL);
}

/* -- migrations -- */

struct migrator {
    pthread_t thread;
    struct postgres *pg;
    thole_status status;
    thole_error err;
};

static void *migrate(void *arg)
{
    struct migrator *self = arg;
    self->status = postgres_migrate(self->pg, &self->err);
    return NULL;
}

static void eight_connections_migrate_at_once(void)
{
    struct migrator all[MIGRATORS] = {0};
    for (size_t i = 0; i < MIGRATORS; i++)
        all[i].pg = fixture_open("a-b_C");
    for (size_t i = 0; i < MIGRATORS; i++)
        CU_ASSERT_FATAL(pthread_create(&all[i].thread, NULL, migrate, &all[i]) == 0);
    for (size_t i = 0; i < MIGRATORS; i++) {
        pthread_join(all[i].thread, NULL);
        store_err = all[i].err;
        CHECK_OK(all[i].status);
        postgres_close(all[i].pg);
    }
    CHECK_INT(store_count("a-b_C", "schema_migrations"), migrations_len);
    CHECK_STR("schema", store_sql("a-b_C", "SELECT nspname FROM pg_namespace WHERE nspname LIKE 'thole_a%%'"),
              "thole_a-b_C");
}

static void migrated_twice_changes_nothing(void)
{
    struct postgres *pg = store_migrated("twice");
    uint64_t before = postgres_statements(pg);
    CHECK_OK(postgres_migrate(pg, &store_err));
    CHECK_INT(postgres_statements(pg) - before, 3);
    postgres_close(pg);
}

static void namespaces_do_not_see_each_other(void)
{
    struct postgres *one = store_partition("one"), *two = store_partition("two");
    struct batch *batch = store_batch(1, 1);
    store_add_activities(batch, "i", 1, 1);
    CHECK_OK(fixture_apply(one, batch));
    CHECK_INT(store_count("one", "worker_queue"), 1);
    CHECK_INT(store_count("two", "worker_queue"), 0);
    struct claim claim = store_claim_of("i", 1);
    CHECK_OK(worker_store_claim(two, THOLE_STR("w"), NULL, &claim, 1, NULL, &store_err));
    CHECK_INT(claim.state, ROW_MISSING);
    postgres_close(one);
    postgres_close(two);
}

static void newer_schema_is_left_alone(void)
{
    struct postgres *pg = store_migrated("newer");
    (void)store_sql("newer", "INSERT INTO schema_migrations (number, name) VALUES (999, '0999_future')");
    CHECK_STATUS(postgres_migrate(pg, &store_err), THOLE_UNSUPPORTED);
    CHECK_HAS(store_err.text, "999");
    postgres_close(pg);
}

static void run_raw(PGconn *conn, const char *text)
{
    PGresult *result = PQexec(conn, text);
    CU_ASSERT(PQresultStatus(result) == PGRES_COMMAND_OK || PQresultStatus(result) == PGRES_TUPLES_OK);
    PQclear(result);
}

/* Rows of the first schema are first tries of instances without a version. */
static void older_rows_are_brought_along(void)
{
    PGconn *conn = PQconnectdb(store_conninfo(NULL, NULL, NULL));
    run_raw(conn,
            "CREATE SCHEMA thole_older; SET search_path = thole_older; CREATE TABLE schema_migrations"
            " (number integer PRIMARY KEY, name text NOT NULL, applied_at timestamptz NOT NULL DEFAULT"
            " clock_timestamp()); INSERT INTO schema_migrations (number, name) VALUES (1, '0001_init')");
    run_raw(conn, migrations[0].sql);
    run_raw(conn,
            "INSERT INTO worker_queue (instance, execution, activity_id, p, queue, activity) VALUES"
            " ('i', 1, 1, 1, 'q', 'a'); INSERT INTO instances VALUES ('i', 1, 'o', 1, 1, 1, 1, '', 1, 1)");
    PQfinish(conn);
    struct postgres *pg = store_migrated("older");
    struct claim claim = store_claim_of("i", 1);
    CHECK_OK(worker_store_claim(pg, THOLE_STR("w"), NULL, &claim, 1, NULL, &store_err));
    CHECK_INT(claim.state, ROW_MINE);
    CU_ASSERT(!claim.expired && claim.left_ms == 0);
    CHECK_STR("instance", store_sql("older", "SELECT (version, custom_status, parent) FROM instances"),
              "(0,,\"\")");
    CHECK_INT(store_count("older", "schema_migrations"), migrations_len);
    postgres_close(pg);
}

/* Rows of before the checks that break them: removed, and their partitions, no others, are made again. */
static void foreign_rows_are_removed(void)
{
    PGconn *conn = PQconnectdb(store_conninfo(NULL, NULL, NULL));
    run_raw(conn, "CREATE SCHEMA thole_foreign; SET search_path = thole_foreign; SET thole.own = 'on';"
                  "CREATE TABLE schema_migrations (number integer PRIMARY KEY, name text NOT NULL, applied_at"
                  " timestamptz NOT NULL DEFAULT clock_timestamp())");
    for (int i = 0; i < 10; i++) {
        char text[80];
        run_raw(conn, migrations[i].sql);
        snprintf(text, sizeof text, "INSERT INTO schema_migrations VALUES (%d, 'old')", i + 1);
        run_raw(conn, text);
    }
    run_raw(
        conn,
        "INSERT INTO partitions (p, epoch, projected_seq) SELECT p, 7, 100 FROM generate_series(1, 6) AS p;"
        "INSERT INTO worker_queue (instance, execution, activity_id, p, queue, activity) VALUES"
        " ('good', 1, 1, 1, 'q', 'a'), ('bad', 1, 1, 2, 'q.>', 'a'), (repeat('x', 201), 1, 1, 3, 'q', 'a');"
        "INSERT INTO timers VALUES ('good', 1, 1, 1, 5), ('bad', -1, 1, 4, 5);"
        "INSERT INTO instances VALUES ('good', 1, 'o', 1, 1, 1, 1, '', 1, 1),"
        " ('bad', 5, 'o', 1, 77, 1, 1, '', 1, 1)");
    PQfinish(conn);
    struct postgres *pg = store_migrated("foreign");
    CHECK_STR("to be made again",
              store_sql("foreign", "SELECT string_agg(p || ':' || epoch, ' ' ORDER BY p) FROM partitions"
                                   " WHERE projected_seq = 0"),
              "2:8 3:8 4:8 5:8");
    CHECK_INT(store_count("foreign", "worker_queue"), 1);
    CHECK_INT(store_count("foreign", "timers"), 1);
    CHECK_INT(store_count("foreign", "instances"), 1);
    postgres_close(pg);
}

/* Each with the type whose limit it breaks. */
static void hostile_values_are_refused(void)
{
    static const struct {
        const char *sql, *type;
    } rows[] = {
        {"UPDATE worker_queue SET queue = 'q.>'", "code_name"},
        {"UPDATE worker_queue SET queue = ''", "code_name"},
        {"UPDATE worker_queue SET activity = repeat('a', 65)", "code_name"},
        {"UPDATE worker_queue SET instance = ''", "instance_id"},
        {"UPDATE worker_queue SET instance = repeat('i', 201)", "instance_id"},
        {"UPDATE worker_queue SET execution = -1", "number"},
        {"UPDATE worker_queue SET activity_id = -1", "number"},
        {"UPDATE worker_queue SET details = convert_to(repeat('d', 16385), 'UTF8')", "detail_bytes"},
        {"UPDATE worker_queue SET lost_word = repeat('w', 4097)", "short_text"},
        {"UPDATE worker_queue SET worker = repeat('w', 1025)", "worker_name"},
        {"INSERT INTO timers VALUES ('', 1, 1, 1, 5)", "instance_id"},
        {"INSERT INTO timers VALUES ('i', 1, 1, 1, -5)", "number"},
        {"INSERT INTO instances VALUES ('i', 1, 'o.p', 1, 1, 1, 1, '', 1, 1)", "code_name_or_none"},
        {"INSERT INTO instances VALUES ('i', 1, 'o', 1, 77, 1, 1, '', 1, 1)", "instance_status"},
        {"INSERT INTO instances VALUES ('i', 1, 'o', 1, 1, 1, 1, repeat('d', 4097), 1, 1)", "short_text"},
        {"INSERT INTO executions VALUES ('i', -1, 1, 1, 1, NULL, 1, 1)", "number"},
        {"INSERT INTO quarantine VALUES ('i', 1, 1, 1, 'q', 'a b', 1, 1, 'w', 'why', 1, 0)", "code_name"},
    };
    struct postgres *pg = store_with_activities("refusing", 1);
    PGconn *conn = PQconnectdb(store_conninfo(NULL, NULL, NULL));
    run_raw(conn, "SET search_path = thole_refusing");
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char want[64];
        PGresult *result = PQexec(conn, rows[i].sql);
        snprintf(want, sizeof want, "value for domain %s violates", rows[i].type);
        CU_ASSERT_EQUAL(PQresultStatus(result), PGRES_FATAL_ERROR);
        if (strstr(PQresultErrorMessage(result), want) == NULL)
            CHECK_STR(rows[i].sql, PQresultErrorMessage(result), want);
        PQclear(result);
    }
    PQfinish(conn);
    postgres_close(pg);
}

static void missing_tables_say_what_to_do(void)
{
    struct claim claim = store_claim_of("i", 1);
    struct postgres *pg = fixture_open("bare");
    CHECK_STATUS(worker_store_claim(pg, THOLE_STR("w"), NULL, &claim, 1, NULL, &store_err),
                 THOLE_UNAVAILABLE);
    CHECK_HAS(store_err.text, "start an engine");
    CHECK_OK(postgres_migrate(pg, &store_err));
    CHECK_OK(worker_store_claim(pg, THOLE_STR("w"), NULL, &claim, 1, NULL,
                                &store_err)); /* on the same connection */
    postgres_close(pg);
}

static void privileges_are_named(void)
{
    struct postgres *pg = store_migrated("rights"), *poor = NULL;
    struct claim claim = store_claim_of("i", 1);
    (void)store_sql("rights", "CREATE ROLE poor LOGIN PASSWORD 'poor'");
    struct postgres_options options = {.conninfo = store_conninfo("poor", "poor", NULL), .ns = "rights2"};
    CHECK_OK(postgres_open(&options, &poor, &store_err));
    CHECK_STATUS(postgres_migrate(poor, &store_err), THOLE_DENIED);
    CHECK_HAS(store_err.text, "creating the schema");
    postgres_close(poor);
    options.ns = "rights";
    (void)store_sql("rights", "GRANT USAGE ON SCHEMA \"thole_rights\" TO poor");
    CHECK_OK(postgres_open(&options, &poor, &store_err));
    CHECK_STATUS(worker_store_claim(poor, THOLE_STR("w"), NULL, &claim, 1, NULL, &store_err), THOLE_DENIED);
    CHECK_HAS(store_err.text, "worker_queue");
    (void)store_sql("rights", "GRANT SELECT, UPDATE ON worker_queue TO poor");
    (void)store_sql("rights", "GRANT SELECT ON instances, partitions, incarnation TO poor");
    CHECK_OK(worker_store_claim(poor, THOLE_STR("w"), NULL, &claim, 1, NULL, &store_err));
    postgres_close(poor);
    postgres_close(pg);
}

static void every_column_is_described(void)
{
    struct postgres *pg = store_migrated("words");
    CHECK_STR("columns without a comment",
              store_sql("words",
                        "SELECT a.attrelid::regclass || '.' || a.attname FROM pg_attribute a JOIN pg_class c"
                        " ON c.oid = a.attrelid JOIN pg_namespace n ON n.oid = c.relnamespace WHERE"
                        " n.nspname = 'thole_words' AND c.relkind = 'r' AND a.attnum > 0 AND"
                        " (col_description(c.oid, a.attnum) IS NULL OR obj_description(c.oid) IS NULL)"),
              "");
    postgres_close(pg);
}

/* -- losing the server -- */

static void terminated_while_idle_is_noticed(void)
{
    uint64_t ms;
    struct postgres *pg = fixture_open("idle");
    uint64_t before = postgres_statements(pg);
    CHECK_OK(postgres_check_idle(pg, &store_err));
    CU_ASSERT(postgres_socket(pg) >= 0);
    (void)store_sql(
        "x", "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'thole-test'");
    struct pollfd fd = {.fd = postgres_socket(pg), .events = POLLIN};
    CHECK_INT(poll(&fd, 1, 5000), 1);
    thole_status status = THOLE_OK;
    for (int i = 0; i < 100 && status == THOLE_OK; i++, poll(&fd, 1, 100))
        status = postgres_check_idle(pg, &store_err);
    CHECK_STATUS(status, THOLE_UNAVAILABLE);
    CHECK_INT(postgres_socket(pg), -1);
    CHECK_STATUS(postgres_check_idle(pg, &store_err), THOLE_UNAVAILABLE);
    CHECK_INT(postgres_statements(pg) - before, 0);
    CHECK_OK(postgres_now_ms(pg, &ms, &store_err)); /* connects again */
    CU_ASSERT(postgres_socket(pg) >= 0);
    postgres_close(pg);
}

static void terminated_between_calls_is_reported_once(void)
{
    uint64_t ms;
    struct postgres *pg = fixture_open("idle2");
    CHECK_OK(postgres_now_ms(pg, &ms, &store_err));
    (void)store_sql(
        "x",
        "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE application_name = 'thole-test'");
    CHECK_STATUS(postgres_now_ms(pg, &ms, &store_err), THOLE_UNAVAILABLE);
    CHECK_OK(postgres_now_ms(pg, &ms, &store_err));
    postgres_close(pg);
}

struct side {
    struct postgres *pg;
    struct call_fiber *fiber;
    unsigned waits;
    thole_status status;
    uint64_t ms;
};

static void ask_aside(void *arg)
{
    struct side *const side = arg;
    side->status = postgres_now_ms(side->pg, &side->ms, &store_err);
}

/* On a fiber; this thread waits where a loop would. */
static void ask(struct side *side)
{
    side->waits = 0;
    postgres_set_wait(side->pg, call_fiber_wait, side->fiber);
    call_fiber_begin(side->fiber, ask_aside, side);
    while (call_fiber_runs(side->fiber)) {
        struct pollfd fd = call_fiber_socket(side->fiber);
        CHECK_INT(fd.fd, postgres_socket(side->pg));
        CHECK_INT(poll(&fd, 1, 5000), 1);
        call_fiber_continue(side->fiber, fd.revents);
        side->waits++;
    }
    postgres_set_wait(side->pg, NULL, NULL);
}

static void a_call_whose_thread_goes_on(void)
{
    struct side side = {.pg = fixture_open("aside"), .fiber = call_fiber_create()};
    ask(&side);
    CHECK_OK(side.status);
    CU_ASSERT(side.ms > 0 && side.waits > 0);
    (void)store_sql(
        "x",
        "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE application_name = 'thole-test'");
    ask(&side);
    CHECK_STATUS(side.status, THOLE_UNAVAILABLE);
    CHECK_INT(postgres_socket(side.pg), -1);
    ask(&side); /* connecting might take long */
    CHECK_STATUS(side.status, THOLE_UNAVAILABLE);
    CHECK_HAS(store_err.text, "the connection was lost");
    CHECK_INT(side.waits, 0);
    CHECK_OK(postgres_now_ms(side.pg, &side.ms, &store_err)); /* a thread that waits may */
    ask(&side);
    CHECK_OK(side.status);
    call_fiber_destroy(side.fiber);
    postgres_close(side.pg);
}

static void killed_in_a_transaction(void)
{
    struct rows_state rows;
    struct postgres *pg = store_partition("killed"), *worker = fixture_open("killed");
    struct claim claim = store_claim_of("i", 1);
    struct batch *batch = store_batch(1, 7);
    store_add_activities(batch, "i", 1, 1);
    CHECK_OK(fixture_apply(pg, batch));
    CHECK_OK(worker_store_claim(worker, THOLE_STR("w"), NULL, &claim, 1, NULL, &store_err));
    (void)store_sql("killed", "CHECKPOINT");
    CHECK_OK(worker_store_complete_begin(worker, THOLE_STR("w"), &claim, 1, &store_err));
    CHECK_INT(claim.state, ROW_MINE);
    store_kill9();
    CHECK_STATUS(worker_store_complete_commit(worker, &store_err), THOLE_UNAVAILABLE);
    CHECK_STATUS(projector_store_open(pg, 1, 1, &rows, NULL, &store_err), THOLE_UNAVAILABLE);
    CHECK_STATUS(projector_store_open(pg, 1, 1, &rows, NULL, &store_err),
                 THOLE_UNAVAILABLE); /* nothing listens */
    store_restart();
    CHECK_OK(worker_store_complete_begin(worker, THOLE_STR("w"), &claim, 1, &store_err));
    CHECK_INT(claim.state, ROW_MINE); /* the first try was rolled back */
    CHECK_OK(worker_store_complete_commit(worker, &store_err));
    batch = store_batch(1, 8);
    CHECK_STATUS(fixture_apply(pg, batch), THOLE_FENCED); /* not opened since the connection was made */
    CHECK_HAS(store_err.text, "open it again");
    CHECK_OK(projector_store_open(pg, 1, 1, &rows, NULL, &store_err));
    CHECK_INT(rows.projected.seq, 7);
    CHECK_OK(fixture_apply(pg, store_batch(1, 8)));
    postgres_close(pg);
    postgres_close(worker);
}

static void rollback_after_a_loss_is_quiet(void)
{
    uint64_t ms;
    struct postgres *worker = store_migrated("quiet");
    struct claim claim = store_claim_of("i", 1);
    CHECK_OK(worker_store_complete_begin(worker, THOLE_STR("w"), &claim, 1, &store_err));
    store_kill9();
    worker_store_complete_rollback(worker);
    store_restart();
    CHECK_OK(postgres_now_ms(worker, &ms, &store_err));
    postgres_close(worker);
}

static void silent_server_is_noticed(void)
{
    uint64_t ms;
    struct postgres *pg = NULL;
    struct postgres_options options = {
        .conninfo = store_conninfo(NULL, NULL, NULL), .ns = "silent", .statement_timeout_ms = 500};
    CHECK_OK(postgres_open(&options, &pg, &store_err));
    CHECK_OK(postgres_now_ms(pg, &ms, &store_err));
    store_pause();
    double before = store_now_us();
    CHECK_STATUS(postgres_now_ms(pg, &ms, &store_err), THOLE_UNAVAILABLE);
    CU_ASSERT(store_now_us() - before < 4e6);
    CHECK_HAS(store_err.text, "in time");
    CHECK_INT(postgres_socket(pg), -1); /* the answer may still come: to nobody */
    store_resume();
    CHECK_OK(postgres_now_ms(pg, &ms, &store_err));
    postgres_close(pg);
}

/* An administrator ends sessions that rest; an engine's session rests whenever nothing is to do. */
static void idle_timeout_of_the_server_is_not_ours(void)
{
    uint64_t ms;
    struct postgres *pg = NULL;
    struct postgres_options const options = {
        .conninfo = store_conninfo(NULL, NULL, NULL), .ns = "rests", .statement_timeout_ms = 5000};
    (void)store_sql("rests", "ALTER ROLE CURRENT_USER SET idle_session_timeout = 200");
    CHECK_OK(postgres_open(&options, &pg, &store_err));
    CHECK_OK(postgres_now_ms(pg, &ms, &store_err));
    (void)store_sql("rests", "SELECT pg_sleep(0.6)"); /* of another session */
    CHECK_OK(postgres_check_idle(pg, &store_err));
    CHECK_OK(postgres_now_ms(pg, &ms, &store_err));
    (void)store_sql("rests", "ALTER ROLE CURRENT_USER RESET idle_session_timeout");
    postgres_close(pg);
}

static void statement_timeout_is_an_outage(void)
{
    struct postgres *pg = NULL, *holder = store_partition("slow");
    struct postgres_options options = {
        .conninfo = store_conninfo(NULL, NULL, NULL), .ns = "slow", .statement_timeout_ms = 200};
    struct claim held = store_claim_of("i", 1), wanted = store_claim_of("i", 1);
    CHECK_OK(postgres_open(&options, &pg, &store_err));
    struct batch *batch = store_batch(1, 7);
    store_add_activities(batch, "i", 1, 1);
    CHECK_OK(fixture_apply(holder, batch));
    CHECK_OK(worker_store_claim(holder, THOLE_STR("w"), NULL, &held, 1, NULL, &store_err));
    CHECK_OK(worker_store_complete_begin(holder, THOLE_STR("w"), &held, 1, &store_err));
    CHECK_STATUS(worker_store_claim(pg, THOLE_STR("v"), NULL, &wanted, 1, NULL, &store_err),
                 THOLE_UNAVAILABLE);
    CHECK_HAS(store_err.text, "57014");
    worker_store_complete_rollback(holder);
    CHECK_OK(worker_store_claim(pg, THOLE_STR("v"), NULL, &wanted, 1, NULL, &store_err));
    CHECK_INT(wanted.attempt, 2);
    postgres_close(pg);
    postgres_close(holder);
}

static void transaction_left_open_is_ended(void)
{
    struct postgres *pg = store_migrated("left");
    struct claim claim = store_claim_of("i", 1);
    CHECK_STR("limit", store_own_sql(pg, "SHOW idle_in_transaction_session_timeout"), "10s\n");
    CHECK_OK(worker_store_complete_begin(pg, THOLE_STR("w"), &claim, 1, &store_err));
    /* the limit is 10 s; the same thing at once */
    (void)store_sql("x", "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
                         " WHERE application_name = 'thole-test' AND state = 'idle in transaction'");
    CHECK_STATUS(worker_store_complete_commit(pg, &store_err), THOLE_UNAVAILABLE);
    CHECK_OK(worker_store_complete_begin(pg, THOLE_STR("w"), &claim, 1, &store_err));
    CHECK_OK(worker_store_complete_commit(pg, &store_err));
    postgres_close(pg);
}

static const struct thole_test tests[] = {
    {"open refuses what cannot work", open_refuses_what_cannot_work},
    {"open says who was denied, and no secret", open_says_who_was_denied_and_no_secret},
    {"open refuses encodings that lose ids", open_refuses_encodings_that_lose_ids},
    {"open waits its time and no longer", open_waits_its_time_and_no_longer},
    {"open goes through all hosts", open_goes_through_all_hosts},
    {"connection limit is an outage", connection_limit_is_an_outage},
    {"clock is the database's", clock_is_the_databases},
    {"eight connections migrate at once", eight_connections_migrate_at_once},
    {"migrated twice changes nothing", migrated_twice_changes_nothing},
    {"namespaces do not see each other", namespaces_do_not_see_each_other},
    {"newer schema is left alone", newer_schema_is_left_alone},
    {"older rows are brought along", older_rows_are_brought_along},
    {"foreign rows are removed", foreign_rows_are_removed},
    {"hostile values are refused", hostile_values_are_refused},
    {"missing tables say what to do", missing_tables_say_what_to_do},
    {"privileges are named", privileges_are_named},
    {"every column is described", every_column_is_described},
    {"terminated while idle is noticed", terminated_while_idle_is_noticed},
    {"terminated between calls is reported once", terminated_between_calls_is_reported_once},
    {"a call whose thread goes on", a_call_whose_thread_goes_on},
    {"killed in a transaction", killed_in_a_transaction},
    {"rollback after a loss is quiet", rollback_after_a_loss_is_quiet},
    {"silent server is noticed", silent_server_is_noticed},
    {"an idle timeout of the server is not ours", idle_timeout_of_the_server_is_not_ours},
    {"statement timeout is an outage", statement_timeout_is_an_outage},
    {"transaction left open is ended", transaction_left_open_is_ended},
};

int main(void)
{
    return store_run("projections", tests, ARRAY_LEN(tests));
}
