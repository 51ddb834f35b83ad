/* audit: whether histories are what was written. */
#include "audit_file.h"
#include "audit_keep.h"
#include "audit_notary.h"
#include "audit_redact.h"
#include "audit_report.h"
#include "client_log.h"
#include "text.h"
#include <string.h>
#include <unistd.h>

static thole_status audit_command_on_record(void *arg, const struct audit_record *record)
{
    struct audit_report *report = arg;
    audit_take(report->audit, record);
    audit_report_progress(report);
    return audit_report_stopped(report) ? THOLE_CANCELLED : THOLE_OK;
}

static void audit_command_on_wrong_seal(void *arg, uint64_t sequence, const char *text)
{
    char whole[512];
    if (sequence == 0)
        (void)snprintf(whole, sizeof whole, "the kept checkpoint: %.480s", text);
    else
        (void)snprintf(whole, sizeof whole, "message #%llu of the audit stream: %s",
                       (unsigned long long)sequence, text);
    audit_report_finding(arg, &(struct audit_finding){.fault = AUDIT_CHECKPOINT, .text = whole});
}

/* Of --dir: what was signed before must still be there. */
static thole_status audit_command_take_kept(struct audit_report *report, const char *ns,
                                            const struct audit_keys *keys, struct seal *seal,
                                            thole_error *reterr)
{
    struct buf note;
    thole_error why = {.status = THOLE_OK};
    if (report->cli->options.dir == NULL)
        return THOLE_OK;
    buf_init(&note, NOTE_TEXT_BYTES_MAX);
    thole_status status = audit_kept_read(report->cli->options.dir, ns, report->partition, keys, &note, &why);
    report->kept += note.len > 0;
    if (status == THOLE_OK && note.len > 0)
        seal_take_checkpoint(seal, 0, buf_bytes(&note));
    else if (status == THOLE_CORRUPT)
        audit_command_on_wrong_seal(report, 0, why.text);
    else if (status != THOLE_OK)
        *reterr = why;
    buf_release(&note);
    return status == THOLE_CORRUPT ? THOLE_OK : status;
}

static thole_status read_seal(struct audit_report *report, thole_client *client,
                              const struct audit_keys *keys, uint32_t partition, struct seal **ret,
                              thole_error *reterr)
{
    report->partition = partition;
    *ret = keys->len == 0 ? NULL
                          : seal_create(&(struct seal_options){.ns = thole_slice_from(client->topology.ns),
                                                               .partition = partition,
                                                               .keys = keys->keys,
                                                               .keys_len = keys->len,
                                                               .found = audit_command_on_wrong_seal,
                                                               .arg = report});
    if (*ret == NULL)
        return THOLE_OK;
    THOLE_TRY(audit_command_take_kept(report, client->topology.ns, keys, *ret, reterr));
    return notary_read(client, partition, *ret, reterr);
}

/* Checks one log, or the records of one instance of it. */
static thole_status audit_command_check(struct audit_report *report, thole_client *client,
                                        const struct audit_keys *keys, uint32_t partition,
                                        thole_slice instance, thole_error *reterr)
{
    struct audit_options options = {.scope = instance.len == 0 ? AUDIT_PARTITION : AUDIT_INSTANCE,
                                    .ns = thole_slice_from(client->topology.ns),
                                    .partition = partition,
                                    .instance = instance,
                                    .found = audit_report_found,
                                    .arg = report};
    uint64_t read = 0;
    thole_status status = read_seal(report, client, keys, partition, &options.seal, reterr);
    if (status == THOLE_OK) {
        audit_report_begin(report, &options);
        status = instance.len == 0
                     ? client_log_read(client, partition, &read, audit_command_on_record, report, reterr)
                     : client_log_read_instance(client, instance, audit_command_on_record, report, reterr);
        audit_report_end(report, status == THOLE_OK);
    }
    seal_destroy(options.seal);
    return status;
}

static thole_status audit_command_check_all(struct audit_report *report, thole_client *client,
                                            const struct audit_keys *keys, thole_error *reterr)
{
    report->logs = client->topology.partitions;
    for (uint32_t p = 0; p < client->topology.partitions; p++)
        THOLE_TRY(audit_command_check(report, client, keys, p, (thole_slice){0}, reterr));
    return THOLE_OK;
}

/* Without keys nothing can be said of an id that has no record: it may never have been there. */
static thole_status check_there(const struct cli *cli, thole_client *client, const char **ret_object,
                                thole_error *reterr)
{
    for (int i = 1; i < cli->words_len; i++) {
        thole_slice const id = thole_slice_from(cli->words[i]);
        struct place place = {.stream = {.ptr = NULL}};
        uint64_t last = 0;
        *ret_object = cli->words[i];
        THOLE_TRY(client_check_id(id, reterr));
        thole_status status = place_history(client, id, &place, reterr); /* of a deletion, too */
        if (status == THOLE_OK)
            status = place_last(client, &place, &last, NULL, reterr);
        place_release(&place);
        THOLE_TRY(status);
        if (last == 0)
            return thole_fail(reterr, THOLE_NOT_FOUND, "there is no instance \"%.*s\" in namespace %s",
                              THOLE_FMT(id), client->topology.ns);
    }
    return THOLE_OK;
}

static thole_status check_each(struct audit_report *report, thole_client *client,
                               const struct audit_keys *keys, const char **ret_object, thole_error *reterr)
{
    const struct cli *cli = report->cli;
    for (int i = 1; i < cli->words_len; i++) {
        thole_slice const id = thole_slice_from(cli->words[i]);
        *ret_object = cli->words[i];
        THOLE_TRY(audit_command_check(report, client, keys,
                                      subject_partition(id, client->topology.partitions), id, reterr));
    }
    return THOLE_OK;
}

static thole_status check_wish(struct audit_report *report, thole_client *client,
                               const struct audit_keys *keys, const char **ret_object, thole_error *reterr)
{
    const struct cli_options *options = &report->cli->options;
    if (options->file != NULL)
        return audit_file_check(report, options->file, keys, client, read_seal, reterr);
    if (options->all)
        return audit_command_check_all(report, client, keys, reterr);
    return check_each(report, client, keys, ret_object, reterr);
}

/* A file that cannot be read is told as such, with a server or without. */
static bool needs_server(const struct cli *cli, const struct audit_keys *keys)
{
    const char *const file = cli->options.file;
    if (file == NULL)
        return true;
    return keys->len > 0 && (strcmp(file, "-") == 0 || access(file, R_OK) == 0) &&
           !audit_file_has_checkpoints(file);
}

/* False: there is nothing to compare with, which must not look like a success. */
static bool kept_are_there(const struct audit_report *report)
{
    return report->cli->options.dir == NULL || report->kept > 0;
}

static int audit_command_verify(struct cli *cli)
{
    struct audit_report report;
    struct audit_keys keys;
    thole_error error = {.status = THOLE_OK};
    thole_client *client = NULL;
    const char *object = "";
    int code = EXIT_DONE;
    if ((cli->words_len > 1) + cli->options.all + (cli->options.file != NULL) != 1)
        return cli_misused(cli, "what is to be verified? IDs, --all or --file");
    if (!audit_keys_read(cli, false, &keys, &code))
        return code;
    if (cli->options.dir != NULL && (keys.len == 0 || cli->options.file != NULL))
        return cli_misused(cli, "--dir is compared with the logs: it needs --key, and no --file");
    if (needs_server(cli, &keys)) {
        client = cli_connect(cli, &code);
        if (client == NULL)
            return code;
    }
    if (keys.len == 0 && (error.status = check_there(cli, client, &object, &error)) != THOLE_OK) {
        thole_client_close(client);
        return cli_complain(cli, object, &error);
    }
    audit_report_init(&report, cli);
    thole_status const status = check_wish(&report, client, &keys, &object, &error);
    code = audit_report_finish(&report);
    if (status == THOLE_CORRUPT && cli->options.file != NULL)
        code = cli_complain_with(cli, cli->options.file, &error, EXIT_DIVERGED, NULL);
    else if (status != THOLE_OK && status != THOLE_CANCELLED)
        code = cli_complain(cli, object, &error);
    else if (status == THOLE_OK && !kept_are_there(&report))
        code = cli_misused_try(cli, "thole audit keep --key KEY --dir FOLDER",
                               "%.300s has no checkpoint of it", cli->options.dir);
    thole_client_close(client);
    return code;
}

int command_audit(struct cli *cli)
{
    if (strcmp(cli->words[0], "verify") == 0)
        return audit_command_verify(cli);
    if (strcmp(cli->words[0], "checkpoint") == 0)
        return audit_checkpoint(cli);
    if (strcmp(cli->words[0], "keep") == 0)
        return audit_keep(cli);
    if (strcmp(cli->words[0], "keygen") == 0)
        return audit_keygen(cli);
    if (strcmp(cli->words[0], "redact") == 0)
        return audit_redact(cli);
    return cli_misused(cli, "unknown word: %.60s; expected verify, checkpoint, keep, keygen or redact",
                       cli->words[0]);
}
