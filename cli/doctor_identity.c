/* doctor: are NATS and Postgres of one namespace? */
#include "doctor_checks.h"
#include "namespace_check.h"
#include "nats_connection.h"
#include "text.h"

static void report_verdict(struct doctor_report *report, const struct namespace_check *check)
{
    char is[NAMESPACE_SAYS_BYTES], was[NAMESPACE_SAYS_BYTES], time[TIME_TEXT_BYTES];
    namespace_check_was(check, was);
    namespace_check_is(check, is);
    if (!namespace_verdict_serves(check->verdict))
        report_add(report, "identity", FINDING_FAIL,
                   check->verdict == NAMESPACE_OTHER ? "connect to the right servers; or thole recover"
                                                     : "restore NATS's data; or thole recover",
                   "%s; %s", was, is);
    else if (check->verdict == NAMESPACE_EMPTIED && namespace_check_has_records(check))
        report_add(report, "identity", FINDING_WARN, "start an engine: it makes the rows from the histories",
                   "%s; %s", was, is);
    else if (check->cut > 0)
        report_add(report, "identity", FINDING_WARN,
                   "docs/operations.md, When NATS has lost something; the engines' logs",
                   "NATS has lost the last records of %u logs; %s", check->cut, was);
    else
        report_add(report, "identity", FINDING_OK, NULL, "%s, the same in NATS and in Postgres",
                   namespace_check_id(check));
    if (check->rows.loss_ms == 0)
        return;
    text_time(check->rows.loss_ms, time);
    report_add(report, "loss", FINDING_OK, NULL, "the last one was given up %s by %s: %s", time,
               check->rows.loss_actor, check->rows.loss_reason);
}

/* A user that may not look at the streams may read the identity. */
static thole_status compare_ids(struct namespace_check *check, struct connection *connection,
                                thole_error *reterr)
{
    THOLE_TRY(topology_read_id(connection, check->ns, &check->nats.id, reterr));
    check->verdict = namespace_judge(&(struct namespace_sides){
        .made = true, .nats = check->nats.id, .postgres = check->rows.id, .owned = check->rows.owned});
    return THOLE_OK;
}

static thole_status look_at_both(struct namespace_check *check, struct connection *connection,
                                 struct postgres *pg, thole_error *reterr)
{
    THOLE_TRY(namespace_check_rows(check, pg, reterr));
    thole_status const status = namespace_check_nats(check, connection, NAMESPACE_RECORDS, reterr);
    return status == THOLE_DENIED ? compare_ids(check, connection, reterr) : status;
}

void doctor_identity(struct doctor_report *report)
{
    const struct cli_options *const options = &report->cli->options;
    struct postgres_options const settings = doctor_postgres_options(options);
    struct connection *connection = NULL;
    struct postgres *pg = NULL;
    thole_error error = {.status = THOLE_OK};
    if (options->postgres == NULL || options->postgres[0] == '\0')
        return; /* doctor_postgres() has said so */
    struct namespace_check *const check =
        namespace_check_create(options->ns); /* other checks report absent parts */
    bool const both = nats_connection_open(options, &connection, NULL) == THOLE_OK &&
                      postgres_open(&settings, &pg, NULL) == THOLE_OK;
    if (both)
        error.status = look_at_both(check, connection, pg, &error);
    if (both && error.status == THOLE_UNSUPPORTED)
        report_add(report, "identity", FINDING_SKIP, NULL,
                   "not compared, as the check of the tables has failed");
    else if (both && error.status != THOLE_OK)
        report_error(report, "identity", "auditor", NULL, &error);
    else if (both && check->verdict != NAMESPACE_NEW)
        report_verdict(report, check);
    namespace_check_destroy(check);
    postgres_close(pg);
    connection_close(connection);
}
