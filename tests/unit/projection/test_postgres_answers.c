/* The projections' treatment of Postgres' answers: errors, plain SQL in the midst of pipelines, prepared
 * statements, notifications, columns. libpq is played. */
#include "postgres_call.h"
#include "thole_cunit.h"

enum { TOKEN_BYTES = 16, ASKED_MAX = 50 };

/* Answers are words: 0 = none, s = end of the pipeline, c = a command is done, tN = a row of N bytes, t =
 * none, a = skipped, eCODE = an error. */
static struct {
    char log[200];
    const char *answers, *message, *refused; /* refused: the call of that name fails */
    char code[TOKEN_BYTES];                  /* of the last error */
    const char *tag;
    bool pipeline, bad, busy;
    size_t asked;
    int results, notifies;
    PGnotify notify[4];
    size_t notify_len, notify_at;
} play;

static struct postgres pg;
static thole_error err;

static int called(const char *name)
{
    size_t const at = strlen(play.log);
    (void)snprintf(play.log + at, sizeof play.log - at, "%s ", name);
    return play.refused == NULL || strcmp(play.refused, name) != 0;
}

ConnStatusType __wrap_PQstatus(const PGconn *conn)
{
    (void)conn;
    return play.bad ? CONNECTION_BAD : CONNECTION_OK;
}

PGpipelineStatus __wrap_PQpipelineStatus(const PGconn *conn)
{
    (void)conn;
    return play.pipeline ? PQ_PIPELINE_ON : PQ_PIPELINE_OFF;
}

int __wrap_PQexitPipelineMode(PGconn *conn)
{
    (void)conn;
    return called("exit");
}

int __wrap_PQenterPipelineMode(PGconn *conn)
{
    (void)conn;
    return called("enter");
}

int __wrap_PQsendQuery(PGconn *conn, const char *sql)
{
    (void)conn;
    return called(sql);
}

int __wrap_PQsendPrepare(PGconn *conn, const char *name, const char *sql, int n, const Oid *types)
{
    (void)conn, (void)name, (void)sql, (void)n, (void)types;
    return called("prepare");
}

int __wrap_PQsendQueryPrepared(PGconn *conn, const char *name, int n, const char *const *values,
                               const int *lengths, const int *formats, int format)
{
    (void)conn, (void)n, (void)values, (void)lengths, (void)formats;
    CU_ASSERT_EQUAL(format, 1);
    return called(name);
}

int __wrap_PQpipelineSync(PGconn *conn)
{
    (void)conn;
    return called("sync");
}

int __wrap_PQflush(PGconn *conn)
{
    (void)conn;
    return play.refused != NULL && strcmp(play.refused, "flush") == 0 ? -1 : 0;
}

int __wrap_PQisBusy(PGconn *conn)
{
    (void)conn;
    return play.busy;
}

int __wrap_PQconsumeInput(PGconn *conn)
{
    (void)conn;
    return play.refused == NULL || strcmp(play.refused, "consume") != 0;
}

/* The @p i th word of the answers; none after the last one. */
static void answer_at(size_t i, char ret[TOKEN_BYTES])
{
    const char *at = play.answers;
    for (; i > 0 && at != NULL; i--) {
        at = strchr(at, ' ');
        at = at == NULL ? NULL : at + 1;
    }
    (void)snprintf(ret, TOKEN_BYTES, "%.*s", at == NULL ? 1 : (int)strcspn(at, " "), at == NULL ? "0" : at);
}

static PGresult *answered(PGconn *conn, ExecStatusType kind)
{
    play.results++;
    return PQmakeEmptyPGresult(conn, kind);
}

PGresult *__wrap_PQgetResult(PGconn *conn)
{
    char answer[TOKEN_BYTES];
    answer_at(play.asked++, answer);
    CU_ASSERT_FATAL(play.asked < ASKED_MAX); /* asks for ever */
    switch (answer[0]) {
    case 's': return answered(conn, PGRES_PIPELINE_SYNC);
    case 'c': return answered(conn, PGRES_COMMAND_OK);
    case 'a': return answered(conn, PGRES_PIPELINE_ABORTED);
    case 'e':
        (void)snprintf(play.code, sizeof play.code, "%s", answer + 1);
        return answered(conn, PGRES_FATAL_ERROR);
    case 't': break;
    default: return NULL;
    }
    static char bytes[8] = {0, 0, 0, 0, 0, 0, 1, 2};
    PGresult *const row = answered(conn, PGRES_TUPLES_OK);
    PGresAttDesc column = {
        .name = (char *)"x", .format = 1, .typid = answer[1] == '4' ? 23 : 20, .typlen = 8};
    CU_ASSERT_TRUE(PQsetResultAttrs(row, 1, &column));
    if (answer[1] != '\0')
        CU_ASSERT_TRUE(PQsetvalue(row, 0, 0, bytes, 8));
    return row;
}

char *__wrap_PQresultErrorField(const PGresult *result, int field)
{
    (void)result;
    return field == PG_DIAG_SQLSTATE ? play.code : (char *)play.message;
}

char *__wrap_PQcmdStatus(PGresult *result)
{
    (void)result;
    return (char *)play.tag;
}

PGnotify *__wrap_PQnotifies(PGconn *conn)
{
    (void)conn;
    if (play.notify_at == play.notify_len)
        return NULL;
    play.notifies++;
    return &play.notify[play.notify_at++];
}

void __real_PQfreemem(void *ptr);
void __wrap_PQfreemem(void *ptr)
{
    for (size_t i = 0; i < play.notify_len; i++)
        if (ptr == &play.notify[i]) {
            play.notifies--;
            return;
        }
    __real_PQfreemem(ptr);
}

void __real_PQclear(PGresult *result);
void __wrap_PQclear(PGresult *result)
{
    play.results -= result != NULL;
    __real_PQclear(result);
}

/* ---- tests ---- */

static void begin(const char *answers)
{
    memset(&play, 0, sizeof play);
    memset(&pg, 0, sizeof pg);
    memset(&err, 0, sizeof err);
    buf_init(&pg.bytes, 1000);
    pg.conn = PQconnectStart("host=/nonexistent/folder");
    pg.conninfo = (char *)"host=/nonexistent/folder";
    pg.application = (char *)"test";
    pg.statement_timeout_ms = pg.connect_timeout_ms = 1000;
    (void)snprintf(pg.schema, sizeof pg.schema, "thole_shop");
    (void)snprintf(pg.where, sizeof pg.where, "db:1");
    CU_ASSERT_PTR_NOT_NULL_FATAL(pg.conn);
    play.answers = answers;
    play.message = "no";
    play.tag = "COMMIT";
}

/* Nothing of libpq is left. */
static void end(void)
{
    for (size_t i = 0; i < pg.results_len; i++)
        PQclear(pg.results[i]);
    CU_ASSERT_EQUAL(play.results, 0);
    CU_ASSERT_EQUAL(play.notifies, 0);
    session_drop(&pg);
    buf_release(&pg.bytes);
}

static thole_status run(size_t statements)
{
    call_begin(&pg, "paying");
    for (size_t i = 0; i < statements; i++)
        call_send(&pg, STATEMENT_COMMIT);
    return call_run(&pg, &err);
}

static void test_what_an_error_means(void)
{
    static const struct {
        const char *code;
        thole_status status;
        bool drops;
        const char *hint;
    } rows[] = {{"08006", THOLE_UNAVAILABLE, true, ")"},
                {"57P01", THOLE_UNAVAILABLE, true, "going down"},
                {"57P02", THOLE_UNAVAILABLE, true, "going down"},
                {"57P03", THOLE_UNAVAILABLE, true, "starting or stopping"},
                {"57P05", THOLE_UNAVAILABLE, true, "idle session"},
                {"25P03", THOLE_UNAVAILABLE, true, "left open for too long"},
                {"25006", THOLE_UNAVAILABLE, true, "point to the primary"},
                {"26000", THOLE_UNAVAILABLE, true, "another session"},
                {"0A000", THOLE_UNAVAILABLE, true, "planned again"},
                {"57014", THOLE_UNAVAILABLE, false, "statement timeout"},
                {"55P03", THOLE_UNAVAILABLE, false, "lock timeout"},
                {"40001", THOLE_UNAVAILABLE, false, ")"},
                {"40P01", THOLE_UNAVAILABLE, false, ")"},
                {"53300", THOLE_UNAVAILABLE, true, "max_connections"},
                {"53100", THOLE_UNAVAILABLE, false, "out of a resource"},
                {"58030", THOLE_UNAVAILABLE, false, "disk or system"},
                {"42P01", THOLE_UNAVAILABLE, true, "start an engine, which makes them"},
                {"3F000", THOLE_UNAVAILABLE, false, "start an engine, which makes it"},
                {"42703", THOLE_UNAVAILABLE, true, "an engine is just making the tables, or they are older"},
                {"42501", THOLE_DENIED, false, "grant the role the privilege"},
                {"28P01", THOLE_DENIED, true, "pg_hba.conf"},
                {"3D000", THOLE_DENIED, true, "create the database"},
                {"22012", THOLE_INVALID, false, ")"},
                {"22021", THOLE_INVALID, false, ")"},
                {"23505", THOLE_INVALID, false, ")"},
                {"P0001", THOLE_INVALID, false, ")"},
                {"XX001", THOLE_CORRUPT, false, ")"}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char answers[40], want[80];
        (void)snprintf(answers, sizeof answers, "c 0 e%s 0 s", rows[i].code);
        begin(answers);
        play.message = "it says\n\tno\n";
        thole_status const status = run(1);
        CHECK_STR(rows[i].code, thole_status_name(status), thole_status_name(rows[i].status));
        CHECK_STR(rows[i].code, pg.conn == NULL ? "dropped" : "kept", rows[i].drops ? "dropped" : "kept");
        (void)snprintf(want, sizeof want, "paying failed on Postgres db:1: it says  no (SQLSTATE %s)",
                       rows[i].code);
        CU_ASSERT_EQUAL(strncmp(err.text, want, strlen(want)), 0);
        size_t const len = strlen(err.text), hint = strlen(rows[i].hint);
        CHECK_STR(rows[i].code, strstr(err.text, rows[i].hint) != NULL ? "hint" : err.text, "hint");
        CU_ASSERT_TRUE(hint > 1 || strcmp(err.text + len - 1, ")") == 0); /* nothing dangles */
        end();
    }
}

/* Whatever was said last: without a connection it is lost, unless the reason is better known. */
static void test_an_error_and_no_connection(void)
{
    static const struct {
        const char *answers;
        thole_status status;
        const char *text;
    } rows[] = {{"c 0 e23505", THOLE_UNAVAILABLE, "the connection was lost"},
                {"c 0 e40001", THOLE_UNAVAILABLE, "the connection was lost"},
                {"c 0 e57P01", THOLE_UNAVAILABLE, "going down"},
                {"c 0 e42501", THOLE_DENIED, "grant the role"}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        begin(rows[i].answers);
        pg.prepared[STATEMENT_COMMIT] = true;
        play.asked = 2;
        play.bad = true;
        thole_status const status = run(1);
        CHECK_STR(rows[i].answers, thole_status_name(status), thole_status_name(rows[i].status));
        CU_ASSERT_PTR_NOT_NULL(strstr(err.text, rows[i].text));
        CU_ASSERT_PTR_NULL(pg.conn);
        end();
    }
}

static void test_plain_sql(void)
{
    static const struct {
        const char *name, *answers, *refused;
        bool pipeline;
        const char *log;
        thole_status status;
        const char *text;
        bool kept;
    } rows[] = {
        {"alone", "c 0", NULL, false, "SQL ", THOLE_OK, "", true},
        {"leaves the pipeline and comes back", "c 0", NULL, true, "exit SQL enter ", THOLE_OK, "", true},
        {"several commands", "c t1 c 0", NULL, true, "exit SQL enter ", THOLE_OK, "", true},
        {"refused, and back", "e42501 0", NULL, true, "exit SQL enter ", THOLE_DENIED, "42501", true},
        {"the first error counts", "c e42501 e23505 0", NULL, true, "exit SQL enter ", THOLE_DENIED, "42501",
         true},
        {"an error that ends it", "e57P01 0", NULL, true, "exit SQL ", THOLE_UNAVAILABLE, "57P01", false},
        {"cannot leave", "c 0", "exit", true, "exit ", THOLE_UNAVAILABLE, "lost", false},
        {"cannot ask", "c 0", "SQL", true, "exit SQL ", THOLE_UNAVAILABLE, "lost", false},
        {"cannot come back", "c 0", "enter", true, "exit SQL enter ", THOLE_UNAVAILABLE, "lost", false},
        {"an error, and cannot come back", "e42501 0", "enter", true, "exit SQL enter ", THOLE_DENIED,
         "42501", true},
        {"cannot send", "c 0", "flush", true, "exit SQL ", THOLE_UNAVAILABLE, "lost", false},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        PGresult *last = NULL;
        begin(rows[i].answers);
        play.refused = rows[i].refused;
        play.pipeline = rows[i].pipeline;
        thole_status const status = session_sql(&pg, "paying", "SQL", 1000, &last, &err);
        CHECK_STR(rows[i].name, thole_status_name(status), thole_status_name(rows[i].status));
        CHECK_STR(rows[i].name, play.log, rows[i].log);
        CHECK_STR(rows[i].name, strstr(err.text, rows[i].text) != NULL ? "" : err.text, "");
        CU_ASSERT_EQUAL(pg.conn != NULL, rows[i].kept);
        CU_ASSERT_EQUAL(last != NULL, status == THOLE_OK);
        CU_ASSERT_EQUAL(postgres_statements(&pg), 1);
        PQclear(last);
        end();
    }
}

static void test_a_statement_is_prepared_once(void)
{
    begin("c 0 c 0 c 0 s");
    CU_ASSERT_EQUAL(run(2), THOLE_OK);
    CHECK_STR("twice in a call", play.log, "prepare commit commit sync ");
    play.asked = 0;
    play.answers = "c 0 s";
    CU_ASSERT_EQUAL(run(1), THOLE_OK);
    CHECK_STR("in the next call", play.log, "prepare commit commit sync commit sync ");
    end();
    begin("e40001 0 a 0 s");
    CU_ASSERT_EQUAL(run(1), THOLE_UNAVAILABLE);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "40001"));
    play.asked = 0;
    play.answers = "c 0 c 0 s";
    CU_ASSERT_EQUAL(run(1), THOLE_OK);
    CHECK_STR("it could not be prepared", play.log, "prepare commit sync prepare commit sync ");
    end();
}

static void test_no_connection(void)
{
    begin("");
    session_drop(&pg);
    CU_ASSERT_EQUAL(run(1), THOLE_UNAVAILABLE);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "no answer from Postgres /nonexistent/folder"));
    CHECK_STR("nothing is sent", play.log, "");
    CU_ASSERT_EQUAL(call_run(&pg, NULL), THOLE_UNAVAILABLE);
    pg.in_transaction = true;
    CU_ASSERT_EQUAL(run(1), THOLE_UNAVAILABLE);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "the transaction was lost with its connection"));
    end();
    begin("");
    call_begin(&pg, "paying");
    buf_release(&pg.bytes);
    buf_init(&pg.bytes, 3);
    call_text(&pg, THOLE_STR("four"));
    CU_ASSERT_EQUAL(call_run(&pg, &err), THOLE_LIMIT);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "bytes at once"));
    end();
}

static void test_idle(void)
{
    static const struct {
        const char *name, *refused;
        bool bad;
    } rows[] = {{"well", NULL, false}, {"cannot be read", "consume", false}, {"lost", NULL, true}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        bool const well = i == 0;
        begin("");
        play.refused = rows[i].refused;
        play.bad = rows[i].bad;
        thole_status const status = postgres_check_idle(&pg, &err);
        CHECK_STR(rows[i].name, thole_status_name(status),
                  thole_status_name(well ? THOLE_OK : THOLE_UNAVAILABLE));
        CU_ASSERT_EQUAL(pg.conn != NULL, well);
        CU_ASSERT_TRUE(postgres_socket(&pg) < 0); /* of a folder that is not there */
        if (!well) {
            CU_ASSERT_EQUAL(postgres_check_idle(&pg, &err), THOLE_UNAVAILABLE);
            CHECK_STR("afterwards", err.text, "no connection to Postgres db:1");
        }
        end();
    }
}

static void test_no_answer_in_time(void)
{
    begin("");
    play.busy = true;
    pg.prepared[STATEMENT_COMMIT] = true;
    call_begin(&pg, "paying");
    call_timeout(&pg, 1);
    call_send(&pg, STATEMENT_COMMIT);
    CU_ASSERT_EQUAL(call_run(&pg, &err), THOLE_UNAVAILABLE);
    CHECK_STR("text", err.text, "paying failed: no answer from Postgres db:1 in time");
    CU_ASSERT_PTR_NULL(pg.conn); /* later answers would be taken for the next call's */
    end();
}

static void test_the_end_of_a_transaction(void)
{
    static const struct {
        const char *answers, *tag;
        thole_status status;
        const char *text;
        bool kept;
    } rows[] = {{"c 0 c 0 s", "COMMIT", THOLE_OK, "", true},
                {"c 0 c 0 s", "ROLLBACK", THOLE_UNAVAILABLE, "it answered ROLLBACK", true},
                {"c 0 e40001 0 s", "", THOLE_UNAVAILABLE, "40001", true},
                {"c 0 e57P01 0 s", "", THOLE_UNAVAILABLE, "57P01", false}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        begin(rows[i].answers);
        play.tag = rows[i].tag;
        pg.in_transaction = true;
        thole_status const status = call_commit(&pg, "paying", &err);
        CHECK_STR(rows[i].answers, thole_status_name(status), thole_status_name(rows[i].status));
        CU_ASSERT_PTR_NOT_NULL(strstr(err.text, rows[i].text));
        CU_ASSERT_EQUAL(pg.conn != NULL, rows[i].kept);
        CU_ASSERT_FALSE(pg.in_transaction);
        end();
        begin(rows[i].answers);
        pg.in_transaction = true;
        call_rollback(&pg, "paying");
        CU_ASSERT_EQUAL(pg.conn != NULL, i < 2); /* an open transaction is not left to the next call */
        CU_ASSERT_FALSE(pg.in_transaction);
        end();
    }
    begin("");
    call_rollback(&pg, "paying");
    CHECK_STR("there was none", play.log, "");
    end();
}

static void test_notifications(void)
{
    static const struct {
        const char *channel, *payload;
        bool ours;
        uint32_t partition;
    } rows[] = {{"thole_shop", "0", true, 0},
                {"thole_shop", "65535", true, 65535},
                {"thole_shop", "65536", true, UINT32_MAX},
                {"thole_shop", "99999999999999999999", true, UINT32_MAX},
                {"thole_shop", "", true, UINT32_MAX},
                {"thole_shop", "instances", true, UINT32_MAX},
                {"thole_shop", "7x", true, UINT32_MAX},
                {"thole_other", "7", false, 0}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        uint32_t partition = 0;
        begin("");
        play.notify[0] = (PGnotify){.relname = (char *)rows[i].channel, .extra = (char *)rows[i].payload};
        play.notify[1] = (PGnotify){.relname = (char *)"thole_shop", .extra = (char *)"3"};
        play.notify_len = 2;
        CU_ASSERT_TRUE(postgres_next_removal(&pg, &partition));
        CU_ASSERT_EQUAL(partition, rows[i].ours ? rows[i].partition : 3);
        CU_ASSERT_EQUAL(postgres_next_removal(&pg, &partition), rows[i].ours);
        CU_ASSERT_EQUAL(partition, 3);
        CU_ASSERT_FALSE(postgres_next_removal(&pg, &partition));
        end();
    }
}

static void test_columns(void)
{
    static const struct {
        const char *answers;
        thole_status status;
    } rows[] = {{"c 0 t1 0 s", THOLE_OK},
                {"c 0 t 0 s", THOLE_CORRUPT},   /* no row */
                {"c 0 c 0 s", THOLE_CORRUPT},   /* no column */
                {"c 0 t4 0 s", THOLE_CORRUPT}}; /* of another type */
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        uint64_t now_ms = 0;
        begin(rows[i].answers);
        thole_status const status = postgres_now_ms(&pg, &now_ms, &err);
        CHECK_STR(rows[i].answers, thole_status_name(status), thole_status_name(rows[i].status));
        CU_ASSERT_EQUAL(now_ms, rows[i].status == THOLE_OK ? 0x102 : 0);
        CU_ASSERT_PTR_NOT_NULL(pg.conn);
        end();
    }
}

static const struct thole_test tests[] = {
    {"what an error means", test_what_an_error_means},
    {"an error, and no connection", test_an_error_and_no_connection},
    {"plain SQL", test_plain_sql},
    {"a statement is prepared once", test_a_statement_is_prepared_once},
    {"no connection", test_no_connection},
    {"idle", test_idle},
    {"no answer in time", test_no_answer_in_time},
    {"the end of a transaction", test_the_end_of_a_transaction},
    {"notifications", test_notifications},
    {"columns", test_columns},
};
THOLE_TEST_MAIN("postgres_answers", tests)
