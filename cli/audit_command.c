/* audit: whether histories are what was written. */
#include "audit_report.h"
#include "client_log.h"
#include "text.h"
#include <string.h>

static void on_found(void *arg, const struct audit_finding *finding)
{
    audit_report_finding(arg, finding);
}

static thole_status on_record(void *arg, const struct audit_record *record)
{
    struct audit_report *report = arg;
    audit_take(report->audit, record);
    audit_report_progress(report);
    return audit_report_stopped(report) ? THOLE_CANCELLED : THOLE_OK;
}

/* Checks one log, or the records of one instance of it. */
static thole_status check(struct audit_report *report, thole_client *client, uint32_t partition,
                          thole_slice instance, thole_error *reterr)
{
    struct audit_options const options = {.scope = instance.len == 0 ? AUDIT_PARTITION : AUDIT_INSTANCE,
                                          .ns = thole_slice_from(client->topology.ns),
                                          .partition = partition,
                                          .instance = instance,
                                          .found = on_found,
                                          .arg = report};
    audit_report_begin(report, &options);
    thole_status const status = instance.len == 0
                                    ? client_log_read(client, partition, on_record, report, reterr)
                                    : client_log_read_instance(client, instance, on_record, report, reterr);
    audit_report_end(report, status == THOLE_OK);
    return status;
}

static thole_status check_all(struct audit_report *report, thole_client *client, thole_error *reterr)
{
    report->logs = client->topology.partitions;
    for (uint32_t p = 0; p < client->topology.partitions; p++)
        THOLE_TRY(check(report, client, p, (thole_slice){0}, reterr));
    return THOLE_OK;
}

static thole_status check_each(struct audit_report *report, thole_client *client, const char **ret_object,
                               thole_error *reterr)
{
    const struct cli *cli = report->cli;
    for (int i = 1; i < cli->words_len; i++) {
        thole_slice const id = thole_slice_from(cli->words[i]);
        *ret_object = cli->words[i];
        THOLE_TRY(check(report, client, subject_partition(id, client->topology.partitions), id, reterr));
    }
    return THOLE_OK;
}

static int verify(struct cli *cli)
{
    struct audit_report report;
    thole_error error = {.status = THOLE_OK};
    const char *object = "";
    int code = EXIT_DONE;
    if ((cli->words_len > 1) + cli->options.all != 1)
        return cli_misused(cli, "what is to be verified? IDs or --all");
    thole_client *client = cli_connect(cli, &code);
    if (client == NULL)
        return code;
    audit_report_init(&report, cli);
    thole_status const status =
        cli->options.all ? check_all(&report, client, &error) : check_each(&report, client, &object, &error);
    code = audit_report_finish(&report);
    if (status != THOLE_OK && status != THOLE_CANCELLED)
        code = cli_complain(cli, object, &error);
    thole_client_close(client);
    return code;
}

int command_audit(struct cli *cli)
{
    if (strcmp(cli->words[0], "verify") == 0)
        return verify(cli);
    return cli_misused(cli, "unknown word: %.60s; expected verify", cli->words[0]);
}
