/* The classification of Postgres's failures: one table. */
#include "postgres_call.h"
#include <ctype.h>
#include <string.h>

struct error_class {
    const char *code; /* prefix of the SQLSTATE; the first matching row counts */
    thole_status status;
    bool drop;        /* the connection is not usable any more */
    const char *hint; /* advice on what to try */
};

static const struct error_class classes[] = {
    {"08", THOLE_UNAVAILABLE, true, ""},                                      /* connection failure */
    {"57P01", THOLE_UNAVAILABLE, true, "the server is going down"},           /* administrator's shutdown */
    {"57P02", THOLE_UNAVAILABLE, true, "the server is going down"},           /* crash of another backend */
    {"57P03", THOLE_UNAVAILABLE, true, "the server is starting or stopping"}, /* cannot connect now */
    {"57P05", THOLE_UNAVAILABLE, true, "the server closed an idle session"},  /* idle_session_timeout */
    {"25P03", THOLE_UNAVAILABLE, true, "the transaction was left open for too long"},
    {"25006", THOLE_UNAVAILABLE, true, "this server only reads: point to the primary"},
    {"26000", THOLE_UNAVAILABLE, true, "it was prepared in another session"},
    {"0A000", THOLE_UNAVAILABLE, true, "planned again on a new connection"}, /* a table was changed */
    {"57014", THOLE_UNAVAILABLE, false, "statement timeout, or cancelled by an administrator"},
    {"55P03", THOLE_UNAVAILABLE, false, "lock timeout"},
    {"40001", THOLE_UNAVAILABLE, false, ""}, /* serialization failure */
    {"40P01", THOLE_UNAVAILABLE, false, ""}, /* deadlock */
    {"53300", THOLE_UNAVAILABLE, true, "raise max_connections, or start fewer processes"},
    {"53", THOLE_UNAVAILABLE, false, "the server is out of a resource"},
    {"58", THOLE_UNAVAILABLE, false, "the server's own disk or system"},
    {"42P01", THOLE_UNAVAILABLE, true, "the tables are not there yet: start an engine, which makes them"},
    {"3F000", THOLE_UNAVAILABLE, false, "the schema is not there yet: start an engine, which makes it"},
    {"42703", THOLE_UNAVAILABLE, true,
     "an engine is just making the tables, or they are older than this program: start an engine of this "
     "version"},
    {"42501", THOLE_DENIED, false,
     "grant the role the privilege: `thole migrate --grants` does, as the role that migrates"},
    {"28", THOLE_DENIED, true, "check user, password and pg_hba.conf"},
    {"3D000", THOLE_DENIED, true, "create the database, or correct its name"},
    /* Errors that Postgres reports because of the data: a row with other data is written. */
    {"21", THOLE_INVALID, false, ""},    /* a row twice in one statement */
    {"22", THOLE_INVALID, false, ""},    /* for example text that is not UTF-8 */
    {"23", THOLE_INVALID, false, ""},    /* a constraint */
    {"27", THOLE_INVALID, false, ""},    /* a trigger has changed the row */
    {"38", THOLE_INVALID, false, ""},    /* a function that a user has added */
    {"39", THOLE_INVALID, false, ""},    /* likewise */
    {"44", THOLE_INVALID, false, ""},    /* a view's check */
    {"54000", THOLE_INVALID, false, ""}, /* longer than an index holds */
    /* Classes of SQL and of Postgres; all others are of functions and triggers that a user has added. */
    {"0", THOLE_CORRUPT, false, ""},
    {"1", THOLE_CORRUPT, false, ""},
    {"2", THOLE_CORRUPT, false, ""},
    {"3", THOLE_CORRUPT, false, ""},
    {"4", THOLE_CORRUPT, false, ""},
    {"5", THOLE_CORRUPT, false, ""},
    {"F", THOLE_CORRUPT, false, ""},
    {"H", THOLE_CORRUPT, false, ""},
    {"XX", THOLE_CORRUPT, false, ""},
    {"", THOLE_INVALID, false, ""}, /* P0001: RAISE EXCEPTION */
};

static const struct error_class *find_class(const char *code)
{
    size_t i = 0;
    while (strncmp(code, classes[i].code, strlen(classes[i].code)) != 0)
        i++;
    return &classes[i];
}

/* Newlines would break log lines; the last one goes. Cuts at @p cap. */
static void one_line(const char *message, char *ret, size_t cap)
{
    size_t len = strnlen(message, cap - 1);
    memcpy(ret, message, len);
    while (len > 0 && isspace((unsigned char)ret[len - 1]))
        len--;
    ret[len] = '\0';
    for (size_t i = 0; i < len; i++)
        if (iscntrl((unsigned char)ret[i]))
            ret[i] = ' ';
}

static thole_status postgres_error_fail(const struct postgres *pg, const char *what,
                                        const struct error_class *class, const char *code,
                                        const char *message, thole_error *reterr)
{
    char line[320];
    one_line(message, line, sizeof line);
    return thole_fail(reterr, class->status, "%s failed on Postgres %s: %s%s%s%s%s%s", what, pg->where, line,
                      code[0] != '\0' ? " (SQLSTATE " : "", code, code[0] != '\0' ? ")" : "",
                      class->hint[0] != '\0' ? "; " : "", class->hint);
}

thole_status error_from_result(const struct postgres *pg, const char *what, const PGresult *result,
                               bool *ret_useless, thole_error *reterr)
{
    static const struct error_class lost = {"08", THOLE_UNAVAILABLE, true, "the connection was lost"};
    const char *code = result != NULL ? PQresultErrorField(result, PG_DIAG_SQLSTATE) : NULL;
    const char *message = result != NULL ? PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY) : NULL;
    bool broken = PQstatus(pg->conn) != CONNECTION_OK;
    const struct error_class *class = code != NULL ? find_class(code) : &lost;
    if (message == NULL)
        message = result != NULL ? PQresultErrorMessage(result) : PQerrorMessage(pg->conn);
    if (broken && class->status != THOLE_DENIED) /* the connection is lost, whatever the last message says */
        class = class->drop ? class : &lost;
    *ret_useless = broken || class->drop;
    return postgres_error_fail(pg, what, class, code != NULL ? code : "", message, reterr);
}

static void copy_field(const PGresult *result, int field, char *ret, size_t cap)
{
    const char *const text = PQresultErrorField(result, field);
    one_line(text != NULL ? text : "", ret, cap);
}

void error_refusal(const PGresult *result, struct call_refusal *ret)
{
    copy_field(result, PG_DIAG_SQLSTATE, ret->code, sizeof ret->code);
    copy_field(result, PG_DIAG_COLUMN_NAME, ret->column, sizeof ret->column);
    copy_field(result, PG_DIAG_CONSTRAINT_NAME, ret->constraint, sizeof ret->constraint);
    copy_field(result, PG_DIAG_MESSAGE_PRIMARY, ret->reason, sizeof ret->reason);
}

/* The last "FATAL:  28P01: " of a verbose message; the word differs with the server's language. */
static bool find_code(const char *message, char ret_code[6])
{
    bool found = false;
    for (const char *at = strstr(message, ":  "); at != NULL; at = strstr(at + 1, ":  ")) {
        size_t len = strspn(at + 3, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ");
        if (len == 5 && at[3 + 5] == ':') {
            memcpy(ret_code, at + 3, 5);
            ret_code[5] = '\0';
            found = true;
        }
    }
    return found;
}

thole_status error_from_connect(const struct postgres *pg, PGconn *conn, thole_error *reterr)
{
    static const struct error_class unreachable = {"", THOLE_UNAVAILABLE, true, ""};
    static const struct error_class malformed = {"", THOLE_INVALID, true, "correct the connection string"};
    static const struct error_class no_password = {"", THOLE_DENIED, true, "give a password"};
    static const struct error_class only_reads = {"", THOLE_UNAVAILABLE, true,
                                                  "it is a standby, or this role's transactions are "
                                                  "read-only: point to the primary, with a role that may "
                                                  "write"};
    char code[6] = "", message[256], what[256];
    const struct error_class *class = &unreachable;
    one_line(PQerrorMessage(conn), message, sizeof message);
    char *location = strstr(message, " LOCATION:");
    if (location != NULL)
        *location = '\0';
    if (find_code(message, code))
        class = find_class(code);
    else if (strstr(message, "session is read-only") != NULL) /* libpq has asked the server */
        class = &only_reads;
    else if (PQconnectionNeedsPassword(conn))
        class = &no_password;
    else if (strncmp(message, "invalid ", 8) == 0) /* an option's value; nothing was sent */
        class = &malformed;
    (void)snprintf(what, sizeof what, "connecting as user \"%s\"", PQuser(conn) != NULL ? PQuser(conn) : "");
    return postgres_error_fail(pg, what, class, "", message, reterr);
}
