#include "archive_restore.h"
#include "archive_receipt.h"
#include "clock.h"
#include "export_readable.h"
#include "file_fault.h"
#include "history_file.h"
#include "memory.h"
#include "old_executions.h"
#include "text.h"
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct putting {
    const struct archive_restorer *restorer;
    struct archive_check check;
    enum client_restore *verdicts; /* of the check's instances; of those that are not meant: EXISTS */
    const char *name;
    size_t begun; /* instances of the second reading; the last is in hand */
    thole_error *reterr;
};

/* ---- the first reading: what it is, and what goes ---- */

static thole_status archive_restore_verify(struct putting *putting, const char *path, const char *sha256,
                                           thole_error *reterr)
{
    struct archive_check *check = &putting->check;
    const char *const ns = putting->restorer->client->topology.ns;
    struct archive_first_finding first = {.then = "nothing of it was restored", .reterr = reterr};
    check->keys = putting->restorer->keys;
    check->found = archive_first_found;
    check->arg = &first;
    THOLE_TRY(archive_check_file(check, path, reterr));
    if (check->findings > 0)
        return THOLE_CORRUPT;
    if (sha256[0] != '\0' && strcmp(sha256, check->sha256) != 0)
        return thole_fail(reterr, THOLE_CORRUPT, "its receipt has sha256 %.64s, and it has %.64s", sha256,
                          check->sha256);
    if (strcmp(check->ns, ns) != 0)
        return thole_fail(reterr, THOLE_INVALID,
                          "it is an archive of namespace %s: its hashes are of that name, so it cannot be "
                          "restored into %s",
                          check->ns, ns);
    return THOLE_OK;
}

static struct client_restore_wish wish_of(const struct archive_facts *facts)
{
    return (struct client_restore_wish){.instance = facts->instance,
                                        .records = facts->records,
                                        .last = facts->last,
                                        .sealed = facts->sealed == facts->records};
}

static bool archive_restore_may_proceed(enum client_restore verdict)
{
    return verdict == RESTORE_GOES || verdict == RESTORE_BROKEN;
}

/* *ret_goes: how many are to be put back. The others are decided. */
static thole_status archive_restore_check(struct putting *putting, size_t *ret_goes, thole_error *reterr)
{
    const struct archive_restorer *const restorer = putting->restorer;
    const struct archive_check *const check = &putting->check;
    putting->verdicts = memory_array(check->instances_len + 1, sizeof *putting->verdicts);
    *ret_goes = 0;
    for (size_t i = 0; i < check->instances_len; i++) {
        const struct archive_facts *const facts = &check->instances[i];
        struct client_restore_wish const wish = wish_of(facts);
        putting->verdicts[i] = RESTORE_EXISTS;
        /* such executions are read with --file, and are no instance that has ended */
        if (facts->status == THOLE_INSTANCE_CONTINUED_AS_NEW)
            putting->verdicts[i] = RESTORE_EXECUTIONS;
        if (!restorer->wants(restorer->arg, facts))
            continue;
        if (putting->verdicts[i] == RESTORE_EXECUTIONS) {
            THOLE_TRY(restorer->decided(restorer->arg, putting->name, facts, RESTORE_EXECUTIONS));
            continue;
        }
        if (!instance_has_ended(facts->status) || facts->damaged)
            return thole_fail(reterr, THOLE_INVALID, "\"%.*s\" has not ended in it: it is no archive",
                              THOLE_FMT(facts->instance));
        THOLE_TRY(client_restore_judge(restorer->client, &wish, &putting->verdicts[i], reterr));
        *ret_goes += archive_restore_may_proceed(putting->verdicts[i]);
        if (!archive_restore_may_proceed(putting->verdicts[i]) || restorer->dry_run)
            THOLE_TRY(restorer->decided(restorer->arg, putting->name, facts, putting->verdicts[i]));
    }
    return THOLE_OK;
}

/* ---- the second reading: the records ---- */

static const struct archive_facts *in_hand(const struct putting *putting)
{
    return &putting->check.instances[putting->begun - 1];
}

static thole_status archive_restore_on_begin(void *arg, thole_slice instance)
{
    struct putting *putting = arg;
    const struct archive_restorer *const restorer = putting->restorer;
    struct restored_place const place = client_restored_place(restorer->client, instance);
    if (putting->begun == putting->check.instances_len ||
        !thole_slice_equal(putting->check.instances[putting->begun].instance, instance))
        return thole_fail(putting->reterr, THOLE_CORRUPT, "it was changed while it was read");
    restorer->progress(restorer->arg, putting->name, putting->begun, putting->check.instances_len);
    return archive_restore_may_proceed(putting->verdicts[putting->begun++])
               ? restored_remove(restorer->client->connection, &place, putting->reterr)
               : THOLE_OK;
}

static thole_status archive_restore_on_record(void *arg, uint64_t sequence, thole_slice bytes)
{
    struct putting *putting = arg;
    struct restored_place const place =
        client_restored_place(putting->restorer->client, in_hand(putting)->instance);
    if (!archive_restore_may_proceed(putting->verdicts[putting->begun - 1]))
        return THOLE_OK;
    return restored_put(putting->restorer->client->connection, &place, sequence, bytes, putting->reterr);
}

static thole_status archive_restore_on_end(void *arg)
{
    (void)arg;
    return THOLE_OK;
}

static thole_status put_records(struct putting *putting, const char *path, thole_error *reterr)
{
    struct history_file_reader const reader = {.begin = archive_restore_on_begin,
                                               .record = archive_restore_on_record,
                                               .readable = export_readable,
                                               .end = archive_restore_on_end,
                                               .arg = putting};
    FILE *const from = fopen(path, "re");
    if (from == NULL)
        return file_fault_read(path, errno, reterr);
    putting->reterr = reterr;
    thole_status const status = history_file_read(from, &reader, reterr);
    (void)fclose(from);
    return status;
}

/* ---- the receipts ---- */

/* @p first: where the first record is, so that the receipt is of this restoration and of no other one. */
static thole_status receipt_write(const struct putting *putting, const struct archive_facts *facts,
                                  uint64_t first, struct buf *to, thole_error *reterr)
{
    const thole_client *const client = putting->restorer->client;
    const char *const reason = putting->restorer->cli->options.reason;
    const char *const slash = strrchr(putting->name, '/');
    struct buf hash;
    struct json json;
    buf_init(&hash, 2 * RECORD_HASH_BYTES);
    text_base64(&hash, record_hash_slice(&facts->last));
    json_to_buf(&json, to);
    json_object(&json);
    json_member_text(&json, "schema", "thole.restored.v1");
    archive_facts_members(facts, &json);
    json_member_number(&json, "last_sequence", facts->last_sequence);
    json_member(&json, "last_record", buf_bytes(&hash));
    json_member_number(&json, "first_stored", first);
    json_member_text(&json, "archive", slash == NULL ? putting->name : slash + 1);
    json_member_text(&json, "sha256", putting->check.sha256);
    json_member_bool(&json, "in_checkpoint", facts->sealed == facts->records);
    json_member_time(&json, "restored", clock_wall_ms());
    json_member_text(&json, "by", client->actor);
    json_member_text(&json, "client", client->name);
    json_member_text(&json, "reason", reason == NULL ? "" : reason);
    thole_status const status = archive_receipt_sign(&json, to, client->topology.ns, facts->instance,
                                                     putting->restorer->signers, reterr);
    json_end(&json);
    buf_release(&hash);
    return status == THOLE_OK ? buf_status(to) : status;
}

static thole_status put_receipt(struct putting *putting, size_t i, thole_error *reterr)
{
    const struct archive_restorer *const restorer = putting->restorer;
    const struct archive_facts *const facts = &putting->check.instances[i];
    struct client_restore_wish const wish = wish_of(facts);
    struct restored_place const place = client_restored_place(restorer->client, facts->instance);
    struct buf receipt;
    bool whole = false;
    uint64_t first = 0;
    THOLE_TRY(client_restore_check(restorer->client, &wish, &whole, reterr));
    if (!whole)
        return thole_fail(reterr, THOLE_CONFLICT,
                          "another restore has put back \"%.*s\" at the same time: run it again",
                          THOLE_FMT(facts->instance));
    buf_init(&receipt, RESTORED_RECEIPT_BYTES_MAX);
    thole_status status = restored_first(restorer->client->connection, &place, &first, reterr);
    if (status == THOLE_OK)
        status = receipt_write(putting, facts, first, &receipt, reterr);
    if (status == THOLE_OK)
        status = restored_put_receipt(restorer->client->connection, &place, buf_bytes(&receipt), reterr);
    buf_release(&receipt);
    if (status == THOLE_OK)
        status = restorer->decided(restorer->arg, putting->name, facts, putting->verdicts[i]);
    return status;
}

/* Receipts come when the whole file was read again: its digest is that of its manifest then, too. */
static thole_status archive_restore_put(struct putting *putting, const char *path, thole_error *reterr)
{
    THOLE_TRY(put_records(putting, path, reterr));
    for (size_t i = 0; i < putting->check.instances_len; i++)
        if (archive_restore_may_proceed(putting->verdicts[i]))
            THOLE_TRY(put_receipt(putting, i, reterr));
    return THOLE_OK;
}

thole_status archive_restore_file(const struct archive_restorer *restorer, const char *path, const char *name,
                                  const char *sha256, thole_error *reterr)
{
    struct putting putting = {.restorer = restorer, .name = name};
    size_t n = 0;
    thole_status status = archive_restore_verify(&putting, path, sha256, reterr);
    if (status == THOLE_OK)
        status = archive_restore_check(&putting, &n, reterr);
    if (status == THOLE_OK && n > 0 && !restorer->dry_run)
        status = archive_restore_put(&putting, path, reterr);
    archive_check_release(&putting.check);
    free(putting.verdicts);
    return status;
}
