/* doctor: Postgres. */
#include "buf.h"
#include "clock.h"
#include "doctor_checks.h"
#include "migrations.h"
#include "postgres.h"
#include "query_store.h"
#include "schema_look.h"

enum { ROUND_TRIP_MS = 5000, LIST_BYTES_MAX = 64 * 1024 };

/* The purpose of such rows is not served. Older tables have none. */
static void check_set_aside(struct doctor_report *report, struct postgres *pg)
{
    struct set_aside_total total;
    thole_error error = {.status = THOLE_OK};
    error.status = query_store_set_aside_total(pg, &total, &error);
    if (error.status != THOLE_OK)
        report_error(report, "set_aside", NULL, "thole migrate --grants, after each migration", &error);
    else if (total.rows > 0)
        report_add(
            report, "set_aside", FINDING_FAIL,
            "thole show ID says which; remove the cause, then thole projections verify tries them again",
            "Postgres refuses %llu rows of %llu instances, and what they are for does not happen: a row of "
            "%s",
            (unsigned long long)total.rows, (unsigned long long)total.instances, total.first);
    else
        report_add(report, "set_aside", FINDING_OK, NULL, "Postgres has taken all rows");
}

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
    if (error.status == THOLE_OK && applied == migrations_len)
        check_set_aside(report, pg);
    return error.status == THOLE_DENIED || applied > 0;
}

static void report_part(void *arg, const struct defect *defect)
{
    struct doctor_report *const report = arg;
    struct buf text;
    buf_init(&text, LIST_BYTES_MAX);
    defect_text(defect, &text);
    report_add(report, "defect", defect->weight == DEFECT_WARNS ? FINDING_WARN : FINDING_FAIL, defect->remedy,
               "%s", buf_cstr(&text));
    buf_release(&text);
}

/* The number of the last migration says what was made, not what still exists. */
static void doctor_postgres_check_shape(struct doctor_report *report, struct postgres *pg)
{
    thole_error error = {.status = THOLE_OK};
    unsigned const before = report->counts[FINDING_FAIL] + report->counts[FINDING_WARN];
    if (report->cli->options.fix) {
        error.status = postgres_migrate(pg, &error);
        if (error.status != THOLE_OK)
            report_error(report, "fix", NULL,
                         error.status == THOLE_DENIED ? "thole migrate --grants, as the role that migrates"
                                                      : NULL,
                         &error);
    }
    error.status = schema_look(pg, report_part, report, &error);
    if (error.status != THOLE_OK)
        report_error(report, "shape", NULL, NULL, &error);
    else if (report->counts[FINDING_FAIL] + report->counts[FINDING_WARN] == before)
        report_add(report, "shape", FINDING_OK, NULL, "tables, columns, indexes and triggers are there");
}

/* A disk that is full answers questions, as a server that only reads does. */
static void check_write(struct doctor_report *report, struct postgres *pg)
{
    uint32_t tables = 0;
    bool only_reads = false;
    thole_error error = {.status = THOLE_OK};
    error.status = postgres_only_reads(pg, &only_reads, &error);
    if (error.status == THOLE_OK && !only_reads)
        error.status = postgres_try_write(pg, &tables, &error);
    if (only_reads)
        report_add(report, "write", FINDING_SKIP, NULL,
                   "nobody may write here: a hot standby, or a role whose transactions are read-only");
    else if (error.status == THOLE_DENIED)
        report_add(report, "write", FINDING_SKIP, NULL, "this user may not write rows: an engine's may");
    else if (error.status != THOLE_OK)
        report_error(report, "write", NULL, "the log of Postgres; the disk of its server", &error);
    else
        report_add(report, "write", FINDING_OK, NULL,
                   "a row of each of %u tables was written and rolled back", tables);
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

struct postgres_options doctor_postgres_options(const struct cli_options *options)
{
    uint64_t const timeout_ms = options->timeout_ms != 0 ? options->timeout_ms : ROUND_TRIP_MS;
    return (struct postgres_options){.conninfo = options->postgres,
                                     .ns = options->ns,
                                     .application = "thole-doctor",
                                     .connect_timeout_ms = timeout_ms,
                                     .statement_timeout_ms = timeout_ms,
                                     .reads = true};
}

void doctor_postgres(struct doctor_report *report)
{
    const struct cli_options *const options = &report->cli->options;
    struct postgres_options const settings = doctor_postgres_options(options);
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
    if (check_tables(report, pg)) {
        doctor_postgres_check_shape(report, pg);
        check_write(report, pg);
        check_rights(report, pg);
    }
    check_clock(report, pg);
    postgres_close(pg);
}
