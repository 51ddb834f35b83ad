/* audit verify --file: histories of thole export and thole history --raw, without a server, but for --key
 * when the file has no checkpoints. */
#include "audit_file.h"
#include "archive_check.h"
#include "export_readable.h"
#include "file_fault.h"
#include "history_file.h"
#include "memory.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct file_check {
    struct audit_report *report;
    const struct audit_keys *keys;
    thole_client *client; /* NULL: without --key */
    struct seal **seals;  /* by partition, as many as the namespace has; NULL: it was not read yet */
    char ns[THOLE_NAME_BYTES_MAX + 1];
    uint8_t instance[THOLE_ID_BYTES_MAX]; /* a copy: the reader's own ends before a file that is cut off has
                                             its end */
    uint32_t partition;
    audit_seal_fn *read_seal;
    thole_error *reterr;
};

static thole_status audit_file_on_place(void *arg, const char *ns, uint32_t partition)
{
    struct file_check *check = arg;
    THOLE_TRY(name_check(thole_slice_from(ns), "namespace", check->reterr));
    (void)snprintf(check->ns, sizeof check->ns, "%s", ns);
    check->partition = partition;
    return THOLE_OK;
}

static thole_status audit_file_on_begin(void *arg, thole_slice instance)
{
    struct file_check *check = arg;
    THOLE_TRY(client_check_id(instance, check->reterr));
    memcpy(check->instance, instance.ptr, instance.len);
    struct audit_options options = {.scope = AUDIT_INSTANCE,
                                    .ns = thole_slice_from(check->ns),
                                    .partition = check->partition,
                                    .instance = {check->instance, instance.len},
                                    .found = audit_report_found,
                                    .arg = check->report};
    if (check->client != NULL && strcmp(check->ns, check->client->topology.ns) != 0)
        return thole_fail(check->reterr, THOLE_INVALID,
                          "a history of namespace %s: give it with -n, or leave --key away", check->ns);
    if (check->client != NULL) {
        if (check->partition >= check->client->topology.partitions)
            return thole_fail(check->reterr, THOLE_CORRUPT, "namespace %s has no partition %u", check->ns,
                              check->partition);
        struct seal **const seal = &check->seals[check->partition];
        if (*seal == NULL)
            THOLE_TRY(check->read_seal(check->report, check->client, check->keys, check->partition, seal,
                                       check->reterr));
        options.seal = *seal;
    }
    audit_report_begin(check->report, &options);
    return THOLE_OK;
}

static thole_status audit_file_on_record(void *arg, uint64_t sequence, thole_slice bytes)
{
    struct file_check *check = arg;
    audit_take(check->report->audit,
               &(struct audit_record){.sequence = sequence, .kind = RECORD_UNKNOWN, .bytes = bytes});
    audit_report_progress(check->report);
    return audit_report_stopped(check->report) ? THOLE_CANCELLED : THOLE_OK;
}

/* By whom, when, why: as the file says it. */
static thole_status audit_file_on_section(void *arg, thole_slice name, thole_slice json)
{
    struct file_check *check = arg;
    if (thole_slice_equal(name, THOLE_STR("redaction")))
        audit_report_redaction(check->report, json);
    return THOLE_OK;
}

static void audit_file_end(struct file_check *check, bool whole)
{
    if (check->report->audit != NULL)
        audit_report_end(check->report, whole);
}

static void forget_seals(struct file_check *check)
{
    for (uint32_t p = 0; check->client != NULL && p < check->client->topology.partitions; p++)
        seal_destroy(check->seals[p]);
    free(check->seals);
}

static thole_status audit_file_on_end(void *arg)
{
    audit_file_end(arg, true);
    return THOLE_OK;
}

/* ---- the file's own checkpoints ---- */

static thole_status look_at_section(void *arg, thole_slice name, thole_slice json)
{
    bool *const has = arg;
    (void)json;
    *has = thole_slice_equal(name, THOLE_STR("checkpoint"));
    return *has ? THOLE_CANCELLED : THOLE_OK;
}

bool audit_file_has_checkpoints(const char *path)
{
    bool has = false;
    struct history_file_reader const reader = {.section = look_at_section, .arg = &has};
    FILE *const from = strcmp(path, "-") == 0 ? NULL : fopen(path, "re");
    if (from == NULL)
        return false;
    thole_status const status = history_file_read(from, &reader, NULL);
    (void)fclose(from);
    return has && status == THOLE_CANCELLED;
}

/* Reading the histories finds the other flaws. */
static void on_unsealed(void *arg, uint32_t partition, const struct audit_finding *finding)
{
    struct audit_report *const report = arg;
    report->partition = partition;
    if (finding->fault == AUDIT_CHECKPOINT)
        audit_report_finding(report, finding);
}

/* *ret: as many as histories, allocated. */
static thole_status check_seals(struct audit_report *report, const char *path, const struct audit_keys *keys,
                                uint64_t **ret, thole_error *reterr)
{
    struct archive_check check = {.keys = keys, .may_go_on = true, .found = on_unsealed, .arg = report};
    thole_status const status = archive_check_file(&check, path, reterr);
    *ret = memory_array(check.instances_len + 1, sizeof **ret);
    for (size_t i = 0; i < check.instances_len; i++)
        (*ret)[i] = check.instances[i].sealed;
    report->in_file = *ret;
    report->in_file_len = check.instances_len;
    archive_check_release(&check);
    return status;
}

/* ---- the histories ---- */

static thole_status check_histories(struct audit_report *report, const char *path,
                                    const struct audit_keys *keys, thole_client *client,
                                    audit_seal_fn *read_seal, thole_error *reterr)
{
    struct file_check check = {
        .report = report, .keys = keys, .client = client, .read_seal = read_seal, .reterr = reterr};
    struct history_file_reader const reader = {.begin = audit_file_on_begin,
                                               .record = audit_file_on_record,
                                               .readable = export_readable,
                                               .end = audit_file_on_end,
                                               .section = audit_file_on_section,
                                               .place = audit_file_on_place,
                                               .arg = &check};
    FILE *from = strcmp(path, "-") == 0 ? stdin : fopen(path, "re");
    if (from == NULL)
        return file_fault_read(path, errno, reterr);
    if (client != NULL) {
        check.seals = memory_array(client->topology.partitions, sizeof(struct seal *));
        memset(check.seals, 0, client->topology.partitions * sizeof(struct seal *));
    }
    thole_status const status = history_file_read(from, &reader, reterr);
    audit_file_end(&check, false);
    forget_seals(&check);
    if (from != stdin)
        (void)fclose(from);
    return status;
}

thole_status audit_file_check(struct audit_report *report, const char *path, const struct audit_keys *keys,
                              thole_client *client, audit_seal_fn *read_seal, thole_error *reterr)
{
    thole_error why = {.status = THOLE_OK};
    uint64_t *in_file = NULL;
    if (client == NULL && keys->len > 0)
        why.status = check_seals(report, path, keys, &in_file, &why);
    thole_status const status = check_histories(report, path, keys, client, read_seal, reterr);
    report->in_file = NULL;
    report->in_file_len = 0;
    free(in_file);
    if (status == THOLE_OK && why.status != THOLE_OK) { /* a whole file, but none with checkpoints */
        *reterr = why;
        return why.status;
    }
    return status;
}
