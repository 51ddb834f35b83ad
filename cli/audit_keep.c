/* audit keep: writes the newest signed checkpoint of each partition to a file, if it continues the one in the
 * file. */
#include "audit_keep.h"
#include "archive_seal.h"
#include "export_file.h"
#include "file_fault.h"
#include "listing.h"
#include "private_file.h"
#include "table.h"
#include "write_flaw.h"
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH_BYTES = 4096 };

struct keeper {
    struct cli *cli;
    thole_client *client;
    struct audit_keys keys;
    struct listing listing;
    bool wrong;
};

/* ---- a kept one ---- */

static thole_status audit_keep_name_of(const char *folder, const char *ns, uint32_t partition,
                                       char path[PATH_BYTES], thole_error *reterr)
{
    int const n = snprintf(path, PATH_BYTES, "%s/%s-%" PRIu32 ".checkpoint", folder, ns, partition);
    return n > 0 && n < PATH_BYTES ? THOLE_OK : thole_fail(reterr, THOLE_INVALID, "the path is too long");
}

/* THOLE_OK: one of the keys has signed it, whatever log it is of. */
static thole_status audit_keep_size_of(thole_slice note, const struct audit_keys *keys, uint64_t *ret_size,
                                       thole_error *reterr)
{
    struct checkpoint checkpoint;
    thole_slice text;
    for (size_t i = 0; i < keys->len; i++)
        if (note_verify(note, &keys->keys[i], &text, NULL) == THOLE_OK) {
            THOLE_TRY(checkpoint_parse(text, &checkpoint, reterr));
            *ret_size = checkpoint.size;
            return THOLE_OK;
        }
    return thole_fail(reterr, THOLE_CORRUPT, "it is not signed by --key");
}

thole_status audit_kept_read(const char *folder, const char *ns, uint32_t partition,
                             const struct audit_keys *keys, struct buf *ret, thole_error *reterr)
{
    char path[PATH_BYTES], bytes[NOTE_TEXT_BYTES_MAX];
    thole_error why;
    uint64_t size;
    buf_clear(ret);
    THOLE_TRY(audit_keep_name_of(folder, ns, partition, path, reterr));
    FILE *const from = fopen(path, "re");
    if (from == NULL && errno == ENOENT)
        return THOLE_OK;
    if (from == NULL)
        return file_fault_read(path, errno, reterr);
    size_t const len = fread(bytes, 1, sizeof bytes, from);
    int const failed = ferror(from) ? errno : 0;
    (void)fclose(from);
    if (failed != 0)
        return file_fault_read(path, failed, reterr);
    buf_append(ret, bytes, len);
    if (audit_keep_size_of(buf_bytes(ret), keys, &size, &why) != THOLE_OK)
        return thole_fail(reterr, THOLE_CORRUPT, "%.300s: %.200s", path, why.text);
    return buf_status(ret);
}

/* Killed at any moment, the file is the one of before or the new one. */
static thole_status write_kept(const char *path, thole_slice note, thole_error *reterr)
{
    char part[PATH_BYTES];
    int const n = snprintf(part, sizeof part, "%s.part", path);
    if (n < 0 || n >= PATH_BYTES)
        return thole_fail(reterr, THOLE_INVALID, "the path is too long");
    FILE *const to = private_file_open(part, "w");
    if (to == NULL)
        return file_fault_write(part, errno, reterr);
    (void)fwrite(note.ptr, 1, note.len, to);
    int flaw = write_flaw(to);
    if (flaw == 0 && fsync(fileno(to)) != 0)
        flaw = errno;
    if (fclose(to) != 0 && flaw == 0)
        flaw = errno;
    if (flaw == 0 && rename(part, path) != 0)
        flaw = errno;
    if (flaw != 0)
        return file_fault_write(part, flaw, reterr);
    export_sync_folder(path);
    return THOLE_OK;
}

/* ---- the verb ---- */

static const struct table_column kept_columns[] = {
    {"PARTITION", 9, 9, 0, true},
    {"RECORDS", 12, 8, 0, true},
    {"CHECKPOINT", 10, 10, 0, false},
    {"FILE", TABLE_WHOLE, 12, 0, false},
};

static void audit_keep_table_row(uint32_t partition, uint64_t size, bool is_new, const char *path, bool first)
{
    struct table table;
    table_begin(&table, kept_columns, sizeof kept_columns / sizeof *kept_columns, first);
    table_number(&table, partition);
    table_number(&table, size);
    table_text(&table, is_new ? "new" : "there");
    table_text(&table, path);
    table_release(&table);
}

static thole_status audit_keep_print_row(struct keeper *keeper, uint32_t partition, uint64_t size,
                                         bool is_new, const char *path)
{
    struct listing *listing = &keeper->listing;
    switch (listing_row(listing, "thole.audit_kept.v1")) {
    case LISTING_STOP: return THOLE_CANCELLED;
    case LISTING_NAME: listing_name(thole_slice_from(path)); break;
    case LISTING_JSON:
        json_member_number(&listing->json, "partition", partition);
        json_member_number(&listing->json, "records", size);
        json_member_bool(&listing->json, "new", is_new);
        json_member_text(&listing->json, "file", path);
        break;
    case LISTING_TABLE: audit_keep_table_row(partition, size, is_new, path, listing->rows == 0); break;
    }
    return listing_row_end(listing);
}

/* THOLE_CORRUPT: the log does not continue the kept checkpoint, or does not fit the published ones. */
static thole_status keep_one(struct keeper *keeper, uint32_t partition, thole_error *reterr)
{
    const char *const folder = keeper->cli->options.dir, *const ns = keeper->client->topology.ns;
    struct archive_seal seal = {.partition = partition};
    struct buf kept;
    char path[PATH_BYTES];
    uint64_t size = 0;
    buf_init(&kept, NOTE_TEXT_BYTES_MAX);
    thole_status status = audit_keep_name_of(folder, ns, partition, path, reterr);
    if (status == THOLE_OK)
        status = audit_kept_read(folder, ns, partition, &keeper->keys, &kept, reterr);
    if (status == THOLE_OK)
        status = archive_seal_read(&seal, keeper->client, &keeper->keys, buf_bytes(&kept), reterr);
    if (status == THOLE_OK && kept.len > 0)
        status = audit_keep_size_of(buf_bytes(&kept), &keeper->keys, &size, reterr);
    bool const is_new = seal.size > size;
    if (status == THOLE_OK && is_new)
        status = write_kept(path, buf_bytes(&seal.note), reterr);
    if (status == THOLE_OK && seal.size > 0)
        status = audit_keep_print_row(keeper, partition, seal.size, is_new, path);
    archive_seal_release(&seal);
    buf_release(&kept);
    return status;
}

static thole_status keep_all(struct keeper *keeper, thole_error *reterr)
{
    for (uint32_t p = 0; p < keeper->client->topology.partitions; p++) {
        thole_status const status = keep_one(keeper, p, reterr);
        if (status == THOLE_CORRUPT) {
            cli_note(keeper->cli, "%s: what is kept of partition %" PRIu32 " stays as it is", reterr->text,
                     p);
            keeper->wrong = true;
        } else if (status != THOLE_OK) {
            return status;
        }
    }
    return THOLE_OK;
}

int audit_keep(struct cli *cli)
{
    struct keeper keeper = {.cli = cli};
    thole_error error = {.status = THOLE_OK};
    int code = EXIT_DONE;
    if (cli->words_len != 1 || cli->options.key == NULL || cli->options.dir == NULL)
        return cli_misused(cli, cli->words_len != 1 ? "keep is of all partitions: no word belongs behind it"
                                : cli->options.key == NULL
                                    ? "--key is missing: the public keys of the checkpoints"
                                    : "--dir is missing: the folder where checkpoints are kept");
    if (!audit_keys_read(cli, false, &keeper.keys, &code))
        return code;
    if (mkdir(cli->options.dir, PRIVATE_FOLDER_MODE) != 0 && errno != EEXIST)
        return cli_unwritten(cli, cli->options.dir, errno);
    keeper.client = cli_connect(cli, &code);
    if (keeper.client == NULL)
        return code;
    listing_begin(&keeper.listing, cli, "thole.audit_kept_list.v1", "checkpoints", 0);
    thole_status const status = keep_all(&keeper, &error);
    code = listing_end(&keeper.listing, status, &error, "there is no checkpoint by --key");
    thole_client_close(keeper.client);
    return code == EXIT_DONE && keeper.wrong ? EXIT_DIVERGED : code;
}
