/* doctor: Postgres. */
#include "buf.h"
#include "clock.h"
#include "doctor_checks.h"
#include "migrations.h"
#include "postgres.h"

enum { ROUND_TRIP_MS = 5000, LIST_BYTES_MAX = 64 * 1024 };

/* False: there are none. */
static bool check_tables(struct doctor_report *report, struct postgres *pg)
{
    static const char todo[] = "thole migrate, or start an engine of this version";
    const char *const ns = report->cli->options.ns;
    size_t applied = 0;
    thole_error error = {.status = THOLE_OK};
    error.status = postgres_applied(pg, &applied, &error);
    if (error.status != THOLE_OK)
        report_error(report, "tables", NULL,
                     error.status == THOLE_UNSUPPORTED ? "use a thole as new as the engines"
                     : error.status == THOLE_DENIED    ? "thole migrate --grants, after each migration"
                                                       : todo,
                     &error);
    else if (applied == 0)
        report_add(report, "tables", FINDING_FAIL, todo, "namespace %s has no tables in this database", ns);
    else if (applied < migrations_len)
        report_add(report, "tables", FINDING_FAIL, todo,
                   "namespace %s is at migration %zu, this program knows %zu", ns, applied, migrations_len);
    else
        report_add(report, "tables", FINDING_OK, NULL, "namespace %s is at migration %zu, as this program",
                   ns, applied);
    return error.status == THOLE_DENIED || applied > 0;
}

/* Of the roles of deploy/postgres/roles.sql, where they are used. */
static void check_rights(struct doctor_report *report, struct postgres *pg)
{
    struct buf lacking;
    size_t roles = 0;
    thole_error error = {.status = THOLE_OK};
    buf_init(&lacking, LIST_BYTES_MAX);
    error.status = postgres_rights(pg, &roles, &lacking, &error);
    if (error.status != THOLE_OK)
        report_error(report, "rights", NULL, NULL, &error);
    else if (roles == 0)
        report_add(report, "rights", FINDING_SKIP, NULL,
                   "there are no roles as deploy/postgres/roles.sql makes them: programs share a user");
    else if (lacking.len > 0)
        report_add(report, "rights", FINDING_FAIL, "thole migrate --grants", "rights are missing: %s",
                   buf_cstr(&lacking));
    else
        report_add(report, "rights", FINDING_OK, NULL, "the roles of the namespace have theirs");
    buf_release(&lacking);
}

static void check_clock(struct doctor_report *report, struct postgres *pg)
{
    uint64_t there_ms = 0;
    thole_error error = {.status = THOLE_OK};
    uint64_t const begun_ms = clock_wall_ms();
    error.status = postgres_now_ms(pg, &there_ms, &error);
    if (error.status != THOLE_OK)
        report_error(report, "postgres_clock", NULL, NULL, &error);
    else
        report_clock(report, "postgres_clock", "Postgres", there_ms, begun_ms, clock_wall_ms());
}

void doctor_postgres(struct doctor_report *report)
{
    const struct cli_options *const options = &report->cli->options;
    uint64_t const timeout_ms = options->timeout_ms != 0 ? options->timeout_ms : ROUND_TRIP_MS;
    struct postgres_options const settings = {.conninfo = options->postgres,
                                              .ns = options->ns,
                                              .application = "thole-doctor",
                                              .connect_timeout_ms = timeout_ms,
                                              .statement_timeout_ms = timeout_ms};
    struct postgres *pg = NULL;
    thole_error error = {.status = THOLE_OK};
    if (options->postgres == NULL || options->postgres[0] == '\0') {
        report_add(report, "postgres", FINDING_SKIP, "--postgres, or THOLE_POSTGRES",
                   "Postgres was not looked at: nothing says where it is");
        return;
    }
    error.status = postgres_open(&settings, &pg, &error);
    if (error.status != THOLE_OK) {
        report_error(report, "postgres", NULL, "is it running there, and may this user connect?", &error);
        return;
    }
    int const version = postgres_server_version(pg);
    report_add(report, "postgres", FINDING_OK, NULL, "Postgres %d.%d answers; the encoding is UTF8%s",
               version / 10000, version % 10000, postgres_is_pooled(pg) ? "; a pooler stands between" : "");
    if (check_tables(report, pg))
        check_rights(report, pg);
    check_clock(report, pg);
    postgres_close(pg);
}
