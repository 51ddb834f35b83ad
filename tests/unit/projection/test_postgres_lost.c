/* Connections to Postgres: what they are asked to be, and calls whose connection is lost; libpq is played. */
#include "postgres_call.h"
#include "thole_cunit.h"

enum { ANSWERS_MAX = 8, ASKED_MAX = 50 };

static struct {
    const char *const *names, *const *values; /* of the connection's start */
    PGVerbosity verbosity;
    bool quiet; /* notices are taken */
    /* answers, in turn: s = end of the pipeline, c = a command is done, 0 = none; then it is lost, if it is
     */
    const char *answers;
    bool lost, unsent; /* unsent: a statement cannot be sent */
    bool unread;       /* received bytes cannot be read */
    size_t asked;
    int open, results; /* open: connections; results: that libpq holds for us */
} play;

/* ---- libpq ---- */

PGconn *__real_PQconnectStartParams(const char *const *names, const char *const *values, int expand);
PGconn *__wrap_PQconnectStartParams(const char *const *names, const char *const *values, int expand)
{
    play.names = names;
    play.values = values;
    CU_ASSERT_EQUAL(expand, 1);
    /* the requested attributes must stand before the connection string, which may say otherwise */
    size_t i = 0;
    while (names[i] != NULL && strcmp(names[i], "target_session_attrs") != 0 &&
           strcmp(names[i], "dbname") != 0)
        i++;
    CU_ASSERT_PTR_NOT_NULL_FATAL(names[i]);
    CHECK_STR("before dbname", names[i], "target_session_attrs");
    CHECK_STR("a standby is not taken", values[i], "read-write");
    play.open++;
    return __real_PQconnectStartParams(names, values, expand);
}

void __real_PQfinish(PGconn *conn);
void __wrap_PQfinish(PGconn *conn)
{
    play.open -= conn != NULL;
    __real_PQfinish(conn);
}

PQnoticeProcessor __wrap_PQsetNoticeProcessor(PGconn *conn, PQnoticeProcessor processor, void *arg)
{
    (void)conn;
    (void)arg;
    play.quiet = processor != NULL;
    if (processor != NULL)
        processor(arg, "NOTICE:  not for stderr");
    return NULL;
}

/* Only a verbose message has the SQLSTATE of a refusal. */
PGVerbosity __wrap_PQsetErrorVerbosity(PGconn *conn, PGVerbosity verbosity)
{
    (void)conn;
    play.verbosity = verbosity;
    return PQERRORS_DEFAULT;
}

ConnStatusType __real_PQstatus(const PGconn *conn);
ConnStatusType __wrap_PQstatus(const PGconn *conn)
{
    if (play.answers == NULL)
        return __real_PQstatus(conn);
    return play.lost && play.asked > strlen(play.answers) ? CONNECTION_BAD : CONNECTION_OK;
}

int __wrap_PQsendPrepare(PGconn *conn, const char *name, const char *sql, int n, const Oid *types)
{
    (void)conn, (void)name, (void)sql, (void)n, (void)types;
    return 1;
}

int __wrap_PQsendQueryPrepared(PGconn *conn, const char *name, int n, const char *const *values,
                               const int *lengths, const int *formats, int format)
{
    (void)conn, (void)name, (void)n, (void)values, (void)lengths, (void)formats, (void)format;
    return !play.unsent;
}

int __wrap_PQpipelineSync(PGconn *conn)
{
    (void)conn;
    return 1;
}

int __wrap_PQflush(PGconn *conn)
{
    (void)conn;
    return 0;
}

int __wrap_PQconsumeInput(PGconn *conn)
{
    (void)conn;
    return !play.unread;
}

int __wrap_PQisBusy(PGconn *conn)
{
    (void)conn;
    return 0;
}

PGresult *__wrap_PQgetResult(PGconn *conn)
{
    size_t const i = play.asked++;
    CU_ASSERT_FATAL(play.asked < ASKED_MAX); /* asks a connection for ever that is lost */
    char const answer = i < strlen(play.answers) ? play.answers[i] : '0';
    play.results += answer != '0';
    return answer == '0' ? NULL
                         : PQmakeEmptyPGresult(conn, answer == 's' ? PGRES_PIPELINE_SYNC : PGRES_COMMAND_OK);
}

void __real_PQclear(PGresult *result);
void __wrap_PQclear(PGresult *result)
{
    play.results -= result != NULL;
    __real_PQclear(result);
}

/* ---- tests ---- */

static void test_what_a_connection_is_asked_to_be(void)
{
    struct postgres *pg = NULL;
    struct postgres_options const options = {.conninfo = "host=/nonexistent/folder port=5432",
                                             .ns = "test",
                                             .application = "test",
                                             .connect_timeout_ms = 1000,
                                             .statement_timeout_ms = 1000};
    memset(&play, 0, sizeof play);
    thole_error err = {0};
    CU_ASSERT_EQUAL(postgres_open(&options, &pg, &err), THOLE_UNAVAILABLE);
    CU_ASSERT_PTR_NOT_NULL(play.names);
    CU_ASSERT_TRUE(play.quiet); /* a library prints nothing */
    CU_ASSERT_EQUAL(play.verbosity, PQERRORS_VERBOSE);
    CU_ASSERT_PTR_NULL(pg);
    CU_ASSERT_EQUAL(play.open, 0); /* otherwise each try would leave one open */
}

static void test_a_connection_that_is_lost(void)
{
    static const struct {
        const char *name, *answers;
        bool lost, unsent;
        thole_status status;
    } rows[] = {{"whole", "c0c0s", false, false, THOLE_OK},
                {"lost at once", "", true, false, THOLE_UNAVAILABLE},
                {"lost before the statement", "c0", true, false, THOLE_UNAVAILABLE},
                {"lost before the end", "c0c0", true, false, THOLE_UNAVAILABLE},
                {"sent in part", "c0c0s", false, true, THOLE_UNAVAILABLE},
                {"more answers than questions", "c0c0cs", false, false, THOLE_UNAVAILABLE}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        static struct postgres pg;
        thole_error err = {0};
        memset(&pg, 0, sizeof pg);
        memset(&play, 0, sizeof play);
        buf_init(&pg.bytes, 1000);
        pg.conn = PQconnectStart("host=/nonexistent/folder");
        pg.statement_timeout_ms = 1000;
        CU_ASSERT_PTR_NOT_NULL_FATAL(pg.conn);
        play.answers = rows[i].answers;
        play.lost = rows[i].lost;
        play.unsent = rows[i].unsent;
        call_begin(&pg, "a test");
        call_send(&pg, STATEMENT_COMMIT);
        thole_status const status = call_run(&pg, &err);
        CHECK_STR(rows[i].name, thole_status_name(status), thole_status_name(rows[i].status));
        CU_ASSERT_EQUAL(pg.conn == NULL, status != THOLE_OK); /* the next call makes another one */
        for (size_t k = 0; k < pg.results_len; k++)
            PQclear(pg.results[k]);
        CU_ASSERT_EQUAL(play.results, 0); /* a worker makes thousands of calls a second */
        session_drop(&pg);
        buf_release(&pg.bytes);
    }
}

/* Nobody else looks at it before the next statement. */
static void test_an_idle_connection_that_is_lost(void)
{
    static const struct {
        bool lost, unread;
        thole_status status;
    } rows[] = {{false, false, THOLE_OK},
                {true, false, THOLE_UNAVAILABLE},
                {false, true, THOLE_UNAVAILABLE},
                {true, true, THOLE_UNAVAILABLE}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        static struct postgres pg;
        memset(&pg, 0, sizeof pg);
        memset(&play, 0, sizeof play);
        pg.conn = PQconnectStart("host=/nonexistent/folder");
        CU_ASSERT_PTR_NOT_NULL_FATAL(pg.conn);
        play.answers = "";
        play.asked = 1;
        play.lost = rows[i].lost;
        play.unread = rows[i].unread;
        CU_ASSERT_EQUAL(postgres_check_idle(&pg, NULL), rows[i].status);
        CU_ASSERT_EQUAL(pg.conn == NULL, rows[i].status != THOLE_OK);
        session_drop(&pg);
    }
}

/* A number that is cut off would be another one's. */
static void test_numbers_that_do_not_fit(void)
{
    static const struct {
        const char *name;
        uint64_t value;
        bool fits;
    } rows[] = {{"int4", INT32_MAX, true},    {"int4", (uint64_t)INT32_MAX + 1, false},
                {"int4s", INT32_MAX, true},   {"int4s", (uint64_t)INT32_MAX + 1, false},
                {"int8", INT64_MAX, true},    {"int8", (uint64_t)INT64_MAX + 1, false},
                {"int8s", INT64_MAX, true},   {"int8s", (uint64_t)INT64_MAX + 1, false},
                {"at most", INT64_MAX, true}, {"at most", UINT64_MAX, true}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        static struct postgres pg;
        uint32_t const small = (uint32_t)rows[i].value;
        memset(&pg, 0, sizeof pg);
        memset(&play, 0, sizeof play);
        buf_init(&pg.bytes, 1000);
        pg.conn = PQconnectStart("host=/nonexistent/folder");
        pg.statement_timeout_ms = 1000;
        play.answers = "c0c0s";
        call_begin(&pg, "a test");
        if (strcmp(rows[i].name, "int4") == 0)
            call_int4(&pg, small);
        else if (strcmp(rows[i].name, "int4s") == 0)
            call_int4_array(&pg, &small, sizeof small, 1);
        else if (strcmp(rows[i].name, "int8") == 0)
            call_int8(&pg, rows[i].value);
        else if (strcmp(rows[i].name, "int8s") == 0)
            call_int8_array(&pg, &rows[i].value, sizeof rows[i].value, 1);
        else
            call_int8_array_most(&pg, &rows[i].value, sizeof rows[i].value, 1, INT64_MAX);
        call_send(&pg, STATEMENT_TIMERS_RESET); /* the statement has one parameter */
        thole_status const status = call_run(&pg, NULL);
        CHECK_STR(rows[i].name, thole_status_name(status),
                  thole_status_name(rows[i].fits ? THOLE_OK : THOLE_INVALID));
        CU_ASSERT_EQUAL(play.asked > 0, rows[i].fits); /* nothing was sent */
        for (size_t k = 0; k < pg.results_len; k++)
            PQclear(pg.results[k]);
        session_drop(&pg);
        buf_release(&pg.bytes);
    }
}

static const struct thole_test tests[] = {
    {"what a connection is asked to be", test_what_a_connection_is_asked_to_be},
    {"a connection that is lost", test_a_connection_that_is_lost},
    {"an idle connection that is lost", test_an_idle_connection_that_is_lost},
    {"numbers that do not fit", test_numbers_that_do_not_fit},
};
THOLE_TEST_MAIN("postgres_lost", tests)
