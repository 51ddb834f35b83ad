/* audit verify --file: histories of thole export and thole history --raw, without a server unless --key is
 * given. */
#include "audit_file.h"
#include "history_file.h"
#include <errno.h>
#include <string.h>

struct file_check {
    struct audit_report *report;
    const struct audit_keys *keys;
    thole_client *client; /* NULL: without --key */
    struct seal *seal;
    char ns[THOLE_NAME_BYTES_MAX + 1];
    uint8_t instance[THOLE_ID_BYTES_MAX]; /* a copy: the reader's own ends before a file that is cut off has
                                             its end */
    uint32_t partition;
    audit_seal_fn *read_seal;
    thole_error *reterr;
};

static thole_status on_place(void *arg, const char *ns, uint32_t partition)
{
    struct file_check *check = arg;
    THOLE_TRY(name_check(thole_slice_from(ns), "namespace", check->reterr));
    (void)snprintf(check->ns, sizeof check->ns, "%s", ns);
    check->partition = partition;
    return THOLE_OK;
}

static thole_status on_begin(void *arg, thole_slice instance)
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
    if (check->client != NULL)
        THOLE_TRY(check->read_seal(check->report, check->client, check->keys, check->partition, &check->seal,
                                   check->reterr));
    options.seal = check->seal;
    audit_report_begin(check->report, &options);
    return THOLE_OK;
}

static thole_status on_record(void *arg, uint64_t sequence, thole_slice bytes)
{
    struct file_check *check = arg;
    audit_take(check->report->audit,
               &(struct audit_record){.sequence = sequence, .kind = RECORD_UNKNOWN, .bytes = bytes});
    audit_report_progress(check->report);
    return audit_report_stopped(check->report) ? THOLE_CANCELLED : THOLE_OK;
}

/* By whom, when, why: as the file says it. */
static thole_status on_section(void *arg, thole_slice name, thole_slice json)
{
    struct file_check *check = arg;
    if (thole_slice_equal(name, THOLE_STR("redaction")))
        audit_report_redaction(check->report, json);
    return THOLE_OK;
}

static void end(struct file_check *check, bool whole)
{
    if (check->report->audit != NULL)
        audit_report_end(check->report, whole);
    seal_destroy(check->seal);
    check->seal = NULL;
}

static thole_status on_end(void *arg)
{
    end(arg, true);
    return THOLE_OK;
}

thole_status audit_file_check(struct audit_report *report, const char *path, const struct audit_keys *keys,
                              thole_client *client, audit_seal_fn *read_seal, thole_error *reterr)
{
    struct file_check check = {
        .report = report, .keys = keys, .client = client, .read_seal = read_seal, .reterr = reterr};
    struct history_file_reader const reader = {.begin = on_begin,
                                               .record = on_record,
                                               .end = on_end,
                                               .section = on_section,
                                               .place = on_place,
                                               .arg = &check};
    FILE *from = strcmp(path, "-") == 0 ? stdin : fopen(path, "re");
    if (from == NULL)
        return thole_fail(reterr, errno == ENOENT ? THOLE_NOT_FOUND : THOLE_UNAVAILABLE, "cannot open %s: %s",
                          path, strerror(errno));
    thole_status const status = history_file_read(from, &reader, reterr);
    end(&check, false);
    if (from != stdin)
        (void)fclose(from);
    return status;
}
