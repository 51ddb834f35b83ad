#include "wrap_played_libpq.h"
#include "clock.h"
#include "migrations.h"
#include "played_text.h"
#include "thole_cunit.h"
#include <inttypes.h>
#include <poll.h>
#include <stdarg.h>
#include <stdlib.h>

enum {
    MESSAGES_MAX = 128,
    ANSWER_BYTES = 2048,
    COLUMNS_MAX = 20,
    SHOWN_MAX = 12,
    CALLS_MAX = 100000,
    ASKED_MAX = 100
};
enum { OID_BOOL = 16, OID_BYTEA = 17, OID_INT8 = 20, OID_INT4 = 23, OID_TEXT = 25 };

struct played_libpq played;

enum message_kind { PREPARE, STATEMENT, SQL, SYNC, NO_MORE };
struct message {
    enum message_kind kind;
    const struct statement_text *text;
    char answer[ANSWER_BYTES];
};

/* The state of the connection. */
static struct {
    struct message messages[MESSAGES_MAX];
    size_t first, len, asked;
    bool pipeline, bad, unsent, busy, silent, aborted, polled;
    char connect[256], host[128], code[6], tag[32];
} at;

static void say(const char *fmt, ...) THOLE_PRINTF(1, 2);
static void say(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    if (played.to != NULL)
        (void)vfprintf(played.to, fmt, args);
    va_end(args);
}

void played_libpq_begin(void)
{
    memset(&played, 0, sizeof played);
    memset(&at, 0, sizeof at);
    played.answers = played.connects = played.fail_how = "";
    played.now_ms = 100000;
    played.version = 150004;
    played.encoding = "UTF8";
}

/* Counts a call that can fail; false: it fails now. */
static bool well(const char *name, bool answers)
{
    bool const lost = strcmp(played.fail_how, "lost") == 0;
    if (played.fail_at == 0 || (!lost && !answers)) {
        played.calls += lost || answers;
        return true;
    }
    CU_ASSERT_FATAL(played.calls < CALLS_MAX);
    if (++played.calls != played.fail_at)
        return true;
    (void)snprintf(played.failed, sizeof played.failed, "%s", name);
    at.bad = at.bad || lost;
    return false;
}

/* Takes the next of a script's parts off. */
static void next_part(const char **script, char *ret, size_t cap)
{
    size_t const len = strcspn(*script, ";");
    CU_ASSERT_FATAL(len < cap);
    (void)snprintf(ret, cap, "%.*s", (int)len, *script);
    *script += len + ((*script)[len] == ';');
    size_t const blank = strspn(ret, " ");
    memmove(ret, ret + blank, strlen(ret + blank) + 1);
    for (size_t end = strlen(ret); end > 0 && ret[end - 1] == ' '; end--)
        ret[end - 1] = '\0';
}

static struct message *put(enum message_kind kind, const struct statement_text *text)
{
    CU_ASSERT_FATAL(at.len < MESSAGES_MAX);
    struct message *const message = &at.messages[at.len++];
    *message = (struct message){.kind = kind, .text = text};
    if (kind == STATEMENT || kind == SQL)
        next_part(&played.answers, message->answer, sizeof message->answer);
    if (++at.asked > ASKED_MAX) /* asks for ever */
        (void)snprintf(message->answer, sizeof message->answer, "!57P01");
    return message;
}

/* ---- connections ---- */

PGconn *__wrap_PQconnectStartParams(const char *const *names, const char *const *values, int expand)
{
    memset(&at, 0, sizeof at);
    next_part(&played.connects, at.connect, sizeof at.connect);
    say("  connects%s:", expand == 1 ? "" : " without the string");
    for (size_t i = 0; names[i] != NULL; i++) {
        say(" %s=%s", names[i], values[i]);
        if (strcmp(names[i], "host") == 0)
            (void)snprintf(at.host, sizeof at.host, "%s", values[i]);
    }
    say("\n");
    played.connections++;
    return PQconnectStart("host=/nonexistent/folder");
}

PostgresPollingStatusType __wrap_PQconnectPoll(PGconn *conn)
{
    (void)conn;
    if (!well("PQconnectPoll", false))
        return PGRES_POLLING_FAILED;
    if (!at.polled) {
        at.polled = true;
        return PGRES_POLLING_READING;
    }
    if (at.connect[0] == '\0' || strcmp(at.connect, "ok") == 0)
        return PGRES_POLLING_OK;
    return strcmp(at.connect, "late") == 0 ? PGRES_POLLING_READING : PGRES_POLLING_FAILED;
}

void __real_PQfinish(PGconn *conn);
void __wrap_PQfinish(PGconn *conn)
{
    if (conn != NULL)
        say("  closes the connection\n");
    played.connections -= conn != NULL;
    at.len = at.first = 0;
    __real_PQfinish(conn);
}

PQnoticeProcessor __wrap_PQsetNoticeProcessor(PGconn *conn, PQnoticeProcessor processor, void *arg)
{
    (void)conn, (void)arg;
    say("  notices go %s\n", processor == NULL ? "to stderr" : "nowhere");
    return NULL;
}

PGVerbosity __wrap_PQsetErrorVerbosity(PGconn *conn, PGVerbosity verbosity)
{
    (void)conn;
    say("  errors are %s\n", verbosity == PQERRORS_VERBOSE ? "verbose" : "short");
    return PQERRORS_DEFAULT;
}

int __wrap_PQsetnonblocking(PGconn *conn, int on)
{
    (void)conn;
    say("  does%s block\n", on ? " not" : "");
    return well("PQsetnonblocking", false) ? 0 : -1;
}

ConnStatusType __wrap_PQstatus(const PGconn *conn)
{
    return conn == NULL || at.bad ? CONNECTION_BAD : CONNECTION_OK;
}

char *__wrap_PQhost(const PGconn *conn)
{
    (void)conn;
    return at.host[0] != '\0' ? at.host : (char *)(uintptr_t) "db";
}

char *__wrap_PQport(const PGconn *conn)
{
    (void)conn;
    return (char *)(uintptr_t) "5432";
}

char *__wrap_PQdb(const PGconn *conn)
{
    (void)conn;
    return (char *)(uintptr_t) "shop";
}

char *__wrap_PQuser(const PGconn *conn)
{
    (void)conn;
    return (char *)(uintptr_t) "thole";
}

int __wrap_PQserverVersion(const PGconn *conn)
{
    (void)conn;
    return played.version;
}

const char *__wrap_PQparameterStatus(const PGconn *conn, const char *name)
{
    (void)conn;
    return strcmp(name, "server_encoding") == 0 ? played.encoding : NULL;
}

char *__wrap_PQerrorMessage(const PGconn *conn)
{
    (void)conn;
    return at.connect[0] != '\0' ? at.connect : (char *)(uintptr_t) "server closed the connection\n";
}

int __wrap_PQconnectionNeedsPassword(const PGconn *conn)
{
    (void)conn;
    return played.needs_password;
}

int __wrap_PQsocket(const PGconn *conn)
{
    (void)conn;
    return 77;
}

/* ---- waiting ---- */

uint64_t __wrap_clock_monotonic_ms(void)
{
    return played.now_ms;
}

int __wrap_poll(struct pollfd *fds, nfds_t n, int timeout_ms)
{
    CU_ASSERT_EQUAL_FATAL(n, 1);
    CU_ASSERT_EQUAL(fds->fd, 77);
    bool const connecting = at.connect[0] != '\0' && strcmp(at.connect, "late") == 0 && at.polled;
    bool const never = at.silent || connecting;
    say("  waits for%s%s at most %d ms\n", fds->events & POLLIN ? " r" : "",
        fds->events & POLLOUT ? " w" : "", timeout_ms);
    CU_ASSERT_FATAL(timeout_ms > 0);
    played.now_ms += never ? (uint64_t)timeout_ms : 5;
    bool const writes = (fds->events & POLLOUT) != 0;
    fds->revents = (short)(never ? 0 : writes ? POLLOUT : POLLIN);
    at.unsent = at.unsent && !writes;
    return !never;
}

int __wrap_PQflush(PGconn *conn)
{
    (void)conn;
    return !well("PQflush", false) ? -1 : at.unsent ? 1 : 0;
}

int __wrap_PQisBusy(PGconn *conn)
{
    (void)conn;
    return at.busy || at.silent;
}

int __wrap_PQconsumeInput(PGconn *conn)
{
    (void)conn;
    at.busy = false;
    return well("PQconsumeInput", false);
}

/* ---- sending ---- */

PGpipelineStatus __wrap_PQpipelineStatus(const PGconn *conn)
{
    (void)conn;
    return at.pipeline ? PQ_PIPELINE_ON : PQ_PIPELINE_OFF;
}

int __wrap_PQexitPipelineMode(PGconn *conn)
{
    (void)conn;
    at.pipeline = false;
    return well("PQexitPipelineMode", false);
}

int __wrap_PQenterPipelineMode(PGconn *conn)
{
    (void)conn;
    CU_ASSERT_FALSE(at.pipeline);
    at.pipeline = true;
    return well("PQenterPipelineMode", false);
}

/* A migration's text is its file's. */
int __wrap_PQsendQuery(PGconn *conn, const char *sql)
{
    const char *name = NULL;
    (void)conn;
    CU_ASSERT_FALSE(at.pipeline);
    for (size_t i = 0; i < migrations_len; i++)
        if (strcmp(migrations[i].sql, sql) == 0)
            name = migrations[i].name;
    say("  %s%s\n", name == NULL ? "" : "all of ", name == NULL ? sql : name);
    struct message *const message = put(SQL, NULL);
    at.silent = strcmp(message->answer, "?") == 0;
    put(NO_MORE, NULL);
    at.unsent = at.busy = true;
    return well("PQsendQuery", false);
}

static const struct statement_text *find(const char *name)
{
    for (size_t i = 0; i < STATEMENTS; i++)
        if (strcmp(statement_texts[i].name, name) == 0)
            return &statement_texts[i];
    CU_FAIL_FATAL("no statement has this name");
    return NULL;
}

int __wrap_PQsendPrepare(PGconn *conn, const char *name, const char *sql, int n, const Oid *types)
{
    const struct statement_text *const text = find(name);
    (void)conn, (void)types;
    CU_ASSERT_TRUE(at.pipeline);
    CU_ASSERT_EQUAL(n, 0);
    CHECK_STR(name, sql, text->sql);
    say("  prepares %s\n", name);
    put(PREPARE, text);
    put(NO_MORE, NULL);
    return well("PQsendPrepare", false);
}

static uint32_t int4(const char *bytes)
{
    const uint8_t *const b = (const uint8_t *)bytes;
    return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

static void say_value(const char *type, const char *bytes, size_t len)
{
    if (strncmp(type, "int", 3) == 0) {
        CU_ASSERT_EQUAL_FATAL(len, type[3] == '8' ? 8 : 4);
        uint64_t const high = type[3] == '8' ? int4(bytes) : 0;
        say("%" PRIu64, high << 32 | int4(bytes + len - 4));
    } else if (strncmp(type, "bool", 4) == 0) {
        CU_ASSERT_EQUAL_FATAL(len, 1);
        say("%s", bytes[0] == 1 ? "yes" : bytes[0] == 0 ? "no" : "?");
    } else if (played.to != NULL) {
        played_text(played.to, (thole_slice){(const uint8_t *)bytes, len});
    }
}

static uint32_t oid_of(const char *type)
{
    return strncmp(type, "int8", 4) == 0   ? OID_INT8
           : strncmp(type, "int4", 4) == 0 ? OID_INT4
           : strncmp(type, "bool", 4) == 0 ? OID_BOOL
           : strncmp(type, "text", 4) == 0 ? OID_TEXT
                                           : OID_BYTEA;
}

static void say_array(const char *type, const char *bytes, size_t len)
{
    uint32_t const dimensions = int4(bytes), n = dimensions > 0 ? int4(bytes + 12) : 0;
    size_t from = dimensions > 0 ? 20 : 12;
    CU_ASSERT_TRUE_FATAL(len >= from && dimensions <= 1);
    CU_ASSERT_EQUAL(int4(bytes + 4), 0);
    CU_ASSERT_EQUAL(int4(bytes + 8), oid_of(type));
    CU_ASSERT_TRUE(dimensions == 0 || int4(bytes + 16) == 1);
    say("{");
    for (uint32_t i = 0; i < n; i++) {
        CU_ASSERT_TRUE_FATAL(len >= from + 4);
        size_t const bytes_of = int4(bytes + from);
        CU_ASSERT_TRUE_FATAL(len >= from + 4 + bytes_of);
        if (i < SHOWN_MAX) {
            say("%s", i > 0 ? "," : "");
            say_value(type, bytes + from + 4, bytes_of);
        }
        from += 4 + bytes_of;
    }
    CU_ASSERT_EQUAL(from, len);
    say(n > SHOWN_MAX ? ",... of %u}" : "}", n);
}

/* The type that the statement names for its parameter: "$3::int8[]". */
static const char *type_of(const char *sql, int i)
{
    char what[16];
    (void)snprintf(what, sizeof what, "$%d::", i + 1);
    const char *const found = strstr(sql, what);
    CU_ASSERT_PTR_NOT_NULL_FATAL(found);
    return found + strlen(what);
}

int __wrap_PQsendQueryPrepared(PGconn *conn, const char *name, int n, const char *const *values,
                               const int *lengths, const int *formats, int format)
{
    const struct statement_text *const text = find(name);
    (void)conn;
    CU_ASSERT_TRUE(at.pipeline);
    CU_ASSERT_EQUAL(format, 1);
    say("  %s", name);
    for (int i = 0; i < n; i++) {
        const char *const type = type_of(text->sql, i);
        CU_ASSERT_EQUAL(formats[i], 1);
        say(" ");
        if (type[strcspn(type, "[ ,)")] == '[')
            say_array(type, values[i], (size_t)lengths[i]);
        else
            say_value(type, values[i], (size_t)lengths[i]);
    }
    say("\n");
    put(STATEMENT, text);
    put(NO_MORE, NULL);
    return well("PQsendQueryPrepared", false);
}

int __wrap_PQpipelineSync(PGconn *conn)
{
    (void)conn;
    CU_ASSERT_TRUE(at.pipeline);
    put(SYNC, NULL);
    at.unsent = at.busy = true;
    for (size_t i = at.first; i < at.len; i++)
        at.silent = at.silent || strcmp(at.messages[i].answer, "?") == 0;
    return well("PQpipelineSync", false);
}

/* ---- results ---- */

static PGresult *make(PGconn *conn, ExecStatusType kind)
{
    played.results++;
    return PQmakeEmptyPGresult(conn, kind);
}

static PGresult *error(PGconn *conn, const char *code)
{
    (void)snprintf(at.code, sizeof at.code, "%s", code);
    at.aborted = at.pipeline;
    return make(conn, PGRES_FATAL_ERROR);
}

static void set_columns(PGresult *result, const char *columns)
{
    PGresAttDesc descs[COLUMNS_MAX] = {{.name = NULL}};
    for (size_t i = 0; columns[i] != '\0'; i++)
        descs[i] = (PGresAttDesc){.name = (char *)(uintptr_t) "x",
                                  .format = columns[i] == 'x' ? 0 : 1,
                                  .typid = columns[i] == 'i'   ? OID_INT8
                                           : columns[i] == 'b' ? OID_BYTEA
                                                               : OID_TEXT,
                                  .typlen = columns[i] == 'i' ? 8 : -1};
    if (columns[0] != '\0')
        CU_ASSERT_TRUE_FATAL(PQsetResultAttrs(result, (int)strlen(columns), descs));
}

static void set_cell(PGresult *result, int row, int column, char letter, const char *word, size_t len)
{
    char room[ANSWER_BYTES];
    if (letter == 'i') {
        uint64_t const value = (uint64_t)strtoll(word, NULL, 10);
        for (unsigned i = 0; i < 8; i++)
            room[i] = (char)(value >> (56 - 8 * i));
        len = 8;
    } else {
        char *end = NULL;
        unsigned long const letters = word[0] == '@' ? strtoul(word + 1, &end, 10) : 0;
        len = letters > 0 && letters < sizeof room ? letters : played_unescape(word, len, room, sizeof room);
        if (letters > 0)
            memset(room, 'a', len);
        room[len] = '\0';
        if (strncmp(room, "last", 4) == 0) /* of the migrations */
            len = (size_t)snprintf(room, sizeof room, "%d",
                                   (int)migrations_len + (int)strtol(room + 4, NULL, 10));
    }
    CU_ASSERT_TRUE_FATAL(PQsetvalue(result, row, column, room, (int)len));
}

/* Row r, column c is (r + 1) * 100 + c. */
static void set_numbers(PGresult *result, const char *columns, int rows)
{
    char word[16];
    for (int row = 0; row < rows; row++)
        for (int column = 0; columns[column] != '\0'; column++) {
            (void)snprintf(word, sizeof word, "%d", (row + 1) * 100 + column);
            set_cell(result, row, column, columns[column], word, strlen(word));
        }
}

static PGresult *rows_of(PGconn *conn, const char *columns, const char *answer)
{
    PGresult *const result = make(conn, columns[0] == '\0' ? PGRES_COMMAND_OK : PGRES_TUPLES_OK);
    set_columns(result, columns);
    if (answer[0] == '*') {
        set_numbers(result, columns, (int)strtol(answer + 1, NULL, 10));
        return result;
    }
    for (int row = 0; *answer != '\0'; row++) {
        const char *const began = answer;
        int column = 0;
        for (answer += strspn(answer, " "); *answer != '\0' && *answer != '/';
             answer += strspn(answer, " ")) {
            size_t const len = strcspn(answer, " /");
            if (columns[column] == '\0')
                (void)fprintf(stderr, "\n  columns %s, but: %s\n", columns, answer);
            CU_ASSERT_TRUE_FATAL(columns[column] != '\0');
            set_cell(result, row, column, columns[column], answer, len);
            column++;
            answer += len;
        }
        if (columns[column] != '\0')
            (void)fprintf(stderr, "\n  columns %s, and no more behind: %s\n", columns, began);
        CU_ASSERT_EQUAL(columns[column], '\0');
        answer += *answer == '/';
    }
    return result;
}

/* Of SQL: as many columns of text as its first row has. */
static PGresult *answered(PGconn *conn, const struct message *message)
{
    const char *const answer = message->answer;
    char columns[COLUMNS_MAX + 1] = "";
    if (answer[0] == '!')
        return error(conn, answer + 1);
    if (answer[0] == '~')
        return rows_of(conn, "it", "");
    (void)snprintf(at.tag, sizeof at.tag, "%s", answer[0] == '=' ? answer + 1 : "COMMIT");
    if (message->text != NULL)
        return rows_of(conn, message->text->columns,
                       answer[0] == '=' || message->text->columns[0] == '\0' ? "" : answer);
    if (answer[0] != '\0')
        (void)snprintf(columns, sizeof columns, "x");
    return rows_of(conn, columns, answer);
}

PGresult *__wrap_PQgetResult(PGconn *conn)
{
    CU_ASSERT_FATAL(played.calls < CALLS_MAX);
    if (at.first == at.len || at.bad) {
        at.bad = at.bad || at.pipeline; /* would wait for ever */
        return NULL;
    }
    const struct message *const message = &at.messages[at.first];
    bool const answers =
        message->kind == STATEMENT || (message->kind == SQL && strcmp(played.fail_how, "shape") != 0);
    bool const fine =
        (message->kind == NO_MORE && !at.pipeline) || well("PQgetResult", answers && !at.aborted);
    if (!fine && at.bad)
        return error(conn, "");
    at.first++;
    if (!fine && strcmp(played.fail_how, "shape") == 0)
        return rows_of(conn, "it", "");
    if (!fine)
        return error(conn, played.fail_how);
    switch (message->kind) {
    case NO_MORE: break;
    case SYNC:
        at.aborted = false;
        at.first = at.len = 0;
        return make(conn, PGRES_PIPELINE_SYNC);
    case PREPARE: return make(conn, at.aborted ? PGRES_PIPELINE_ABORTED : PGRES_COMMAND_OK);
    default: return at.aborted ? make(conn, PGRES_PIPELINE_ABORTED) : answered(conn, message);
    }
    if (at.first == at.len)
        at.first = at.len = 0;
    return NULL;
}

char *__wrap_PQresultErrorField(const PGresult *result, int field)
{
    (void)result;
    return field == PG_DIAG_SQLSTATE ? at.code : (char *)(uintptr_t) "it says no";
}

char *__wrap_PQresultErrorMessage(const PGresult *result)
{
    return result == NULL ? (char *)(uintptr_t) ""
                          : (char *)(uintptr_t) "server closed the connection unexpectedly\n";
}

char *__wrap_PQcmdStatus(PGresult *result)
{
    (void)result;
    return at.tag;
}

void __real_PQclear(PGresult *result);
void __wrap_PQclear(PGresult *result)
{
    played.results -= result != NULL;
    __real_PQclear(result);
}

/* ---- memory that libpq lends ---- */

char *__real_PQescapeIdentifier(PGconn *conn, const char *text, size_t len);
char *__wrap_PQescapeIdentifier(PGconn *conn, const char *text, size_t len)
{
    played.converted++;
    return __real_PQescapeIdentifier(conn, text, len);
}

char *__real_PQescapeLiteral(PGconn *conn, const char *text, size_t len);
char *__wrap_PQescapeLiteral(PGconn *conn, const char *text, size_t len)
{
    played.converted++;
    return __real_PQescapeLiteral(conn, text, len);
}

void __real_PQfreemem(void *ptr);
void __wrap_PQfreemem(void *ptr)
{
    played.converted--;
    __real_PQfreemem(ptr);
}

PQconninfoOption *__real_PQconninfoParse(const char *text, char **message);
PQconninfoOption *__wrap_PQconninfoParse(const char *text, char **message)
{
    PQconninfoOption *const options = __real_PQconninfoParse(text, message);
    played.converted += (options != NULL) + (message != NULL && *message != NULL);
    return options;
}

void __real_PQconninfoFree(PQconninfoOption *options);
void __wrap_PQconninfoFree(PQconninfoOption *options)
{
    played.converted -= options != NULL;
    __real_PQconninfoFree(options);
}
