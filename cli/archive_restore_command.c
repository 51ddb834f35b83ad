/* archive restore: puts histories back from archives, for reading; archive list without files: which. */
#include "archive.h"
#include "archive_folder.h"
#include "archive_hook.h"
#include "archive_restore.h"
#include "clock.h"
#include "id_set.h"
#include "jscan.h"
#include "json_file.h"
#include "listing.h"
#include "table.h"
#include "text.h"
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PROGRESS_MS = 200, SHA256_BYTES = 65, RECEIPT_FILE_BYTES = 64 * 1024 };

struct restoring {
    struct cli *cli;
    thole_client *client;
    struct audit_keys keys, signers;
    struct archive_restorer restorer;
    struct listing listing;
    struct id_set wanted, seen;      /* ids of the command line; those that an archive has */
    char object[ARCHIVE_PATH_BYTES]; /* of an error */
    uint64_t restored, kept, shown_ms;
    bool terminal;
};

/* ---- progress, on a terminal ---- */

static void archive_restore_command_clear_progress(const struct restoring *restoring)
{
    if (restoring->terminal && restoring->shown_ms > 0)
        (void)fputs("\r\033[K", stderr);
}

static void archive_restore_command_progress(void *arg, const char *name, size_t done, size_t total)
{
    struct restoring *restoring = arg;
    uint64_t const now_ms = clock_monotonic_ms();
    if (!restoring->terminal || now_ms < restoring->shown_ms + PROGRESS_MS)
        return;
    restoring->shown_ms = now_ms;
    (void)fprintf(stderr, "\r\033[K%zu of %zu instances of %s", done, total, name);
}

/* ---- which, and what came of it ---- */

/* Old executions stay in their files: they are no instance that has ended. Who asks for theirs alone is told.
 */
static bool is_no_matter(const struct restoring *restoring, const struct archive_facts *facts)
{
    bool of_interest = restoring->wanted.len > 0;
    for (size_t i = 0; i < restoring->seen.len; i++)
        of_interest &= !thole_slice_equal(restoring->seen.ids[i], facts->instance);
    return facts->status == THOLE_INSTANCE_CONTINUED_AS_NEW && !of_interest;
}

static bool archive_restore_command_selects(void *arg, const struct archive_facts *facts)
{
    struct restoring *restoring = arg;
    const char *const prefix = restoring->cli->options.prefix;
    if (is_no_matter(restoring, facts))
        return false;
    if (restoring->wanted.len == 0)
        return prefix == NULL || (facts->instance.len >= strlen(prefix) &&
                                  memcmp(facts->instance.ptr, prefix, strlen(prefix)) == 0);
    if (!id_set_has(&restoring->wanted, facts->instance))
        return false;
    (void)id_set_add(&restoring->seen, facts->instance);
    return true;
}

static const char *result_name(const struct restoring *restoring, enum client_restore verdict)
{
    switch (verdict) {
    case RESTORE_GOES:
    case RESTORE_BROKEN: return restoring->cli->options.dry_run ? "would be restored" : "restored";
    case RESTORE_ALREADY: return "restored already";
    case RESTORE_EXISTS: return "stays: the log has an instance with that id";
    case RESTORE_UNKNOWN:
        return "stays: the log has no deletion of that id; if it is gone after its time, --key proves the "
               "archive";
    case RESTORE_OTHER: return "stays: no deletion in the log names this history";
    case RESTORE_TAKEN: return "stays: another history of that id is restored";
    case RESTORE_EXECUTIONS: return "stays: executions of one that went on: --file reads them";
    }
    return "";
}

static const struct table_column restored_columns[] = {
    {"INSTANCE", 36, 12, 0, false}, {"ORCHESTRATION", 24, 8, 3, false}, {"STATUS", 10, 10, 1, false},
    {"RECORDS", 7, 7, 2, true},     {"RESULT", 44, 16, 0, false},       {"FILE", TABLE_WHOLE, 12, 0, false},
};

static void archive_restore_command_row(const struct archive_facts *facts, const char *result,
                                        const char *name, bool first)
{
    struct table table;
    table_begin(&table, restored_columns, sizeof restored_columns / sizeof *restored_columns, first);
    table_cell(&table, TONE_PLAIN, facts->instance);
    table_text(&table, facts->orchestration);
    table_text(&table, thole_instance_status_name(facts->status));
    table_number(&table, facts->records);
    table_text(&table, result);
    table_text(&table, name);
    table_release(&table);
}

static thole_status archive_restore_command_decided(void *arg, const char *name,
                                                    const struct archive_facts *facts,
                                                    enum client_restore verdict)
{
    struct restoring *restoring = arg;
    struct listing *const listing = &restoring->listing;
    const char *const result = result_name(restoring, verdict);
    bool const is = verdict == RESTORE_GOES || verdict == RESTORE_BROKEN || verdict == RESTORE_ALREADY;
    restoring->kept += !is;
    restoring->restored += is && !restoring->cli->options.dry_run;
    archive_restore_command_clear_progress(restoring);
    switch (listing_row(listing, "thole.restored_instance.v1")) {
    case LISTING_STOP: return THOLE_CANCELLED;
    case LISTING_TABLE: archive_restore_command_row(facts, result, name, listing->rows == 0); break;
    case LISTING_NAME:
        if (is)
            listing_name(facts->instance);
        break;
    case LISTING_JSON:
        archive_facts_members(facts, &listing->json);
        json_member_bool(&listing->json, "restored", is && !restoring->cli->options.dry_run);
        json_member_text(&listing->json, "result", result);
        json_member_text(&listing->json, "file", name);
        break;
    }
    return listing_row_end(listing);
}

/* ---- output ---- */

static thole_slice archive_restore_command_text_of(thole_slice receipt, const char *key, struct buf *room)
{
    thole_slice value;
    buf_clear(room);
    return json_find(receipt, key, &value) && json_text(value, room) ? buf_bytes(room)
                                                                     : (thole_slice){NULL, 0};
}

static const struct table_column receipt_columns[] = {
    {"INSTANCE", 36, 12, 0, false}, {"ORCHESTRATION", 24, 8, 2, false},
    {"STATUS", 10, 10, 1, false},   {"RESTORED", 24, 24, 0, false},
    {"BY", 24, 10, 3, false},       {"ARCHIVE", TABLE_WHOLE, 10, 0, false},
};

static void receipt_row(thole_slice receipt, bool first)
{
    static const char *const keys[] = {"instance", "orchestration", "status", "restored", "by", "archive"};
    struct table table;
    struct buf room;
    table_begin(&table, receipt_columns, sizeof receipt_columns / sizeof *receipt_columns, first);
    buf_init(&room, RESTORED_RECEIPT_BYTES_MAX);
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        table_cell(&table, TONE_PLAIN, archive_restore_command_text_of(receipt, keys[i], &room));
    buf_release(&room);
    table_release(&table);
}

/* Copies the receipt's members, except for the schema. */
static void receipt_members(thole_slice receipt, struct json *json)
{
    static const char *const texts[] = {"instance",    "orchestration", "status", "started",  "ended",
                                        "last_record", "archive",       "sha256", "restored", "by",
                                        "client",      "reason"};
    static const char *const numbers[] = {"partition", "execution", "records", "bytes", "last_sequence"};
    thole_slice value;
    uint64_t number;
    struct buf room;
    buf_init(&room, RESTORED_RECEIPT_BYTES_MAX);
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        json_member(json, texts[i], archive_restore_command_text_of(receipt, texts[i], &room));
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        if (json_find(receipt, numbers[i], &value) && json_uint(value, &number))
            json_member_number(json, numbers[i], number);
    json_member_bool(json, "in_checkpoint",
                     json_find(receipt, "in_checkpoint", &value) && json_is_true(value));
    buf_release(&room);
}

static thole_status print_receipt(void *arg, thole_slice instance, thole_slice receipt)
{
    struct listing *const listing = arg;
    switch (listing_row(listing, "thole.restored.v1")) {
    case LISTING_STOP: return THOLE_CANCELLED;
    case LISTING_NAME: listing_name(instance); break;
    case LISTING_TABLE: receipt_row(receipt, listing->rows == 0); break;
    case LISTING_JSON: receipt_members(receipt, &listing->json); break;
    }
    return listing_row_end(listing);
}

int archive_list_restored(struct cli *cli)
{
    thole_error error = {.status = THOLE_OK};
    struct listing listing;
    int code = EXIT_DONE;
    thole_client *client = cli_connect(cli, &code);
    if (client == NULL)
        return code;
    listing_begin(&listing, cli, "thole.restored_list.v1", "instances", 0);
    thole_status const status =
        restored_list(client->connection, client->topology.ns, print_receipt, &listing, &error);
    code = listing_end(&listing, status, &error, "nothing is restored from an archive");
    thole_client_close(client);
    return code;
}

/* ---- the files that are meant ---- */

static thole_status sha256_of_receipt(const char *name, char ret[SHA256_BYTES], thole_error *reterr)
{
    thole_slice value;
    struct buf text, sha256;
    ret[0] = '\0';
    buf_init(&text, RECEIPT_FILE_BYTES);
    buf_init(&sha256, SHA256_BYTES);
    thole_status status =
        archive_mark_is_there(name, ".done") ? archive_mark_read(name, ".done", &text, reterr) : THOLE_OK;
    if (status == THOLE_OK && json_find(buf_bytes(&text), "sha256", &value) && json_text(value, &sha256))
        (void)snprintf(ret, SHA256_BYTES, "%.*s", THOLE_FMT(buf_bytes(&sha256)));
    buf_release(&text);
    buf_release(&sha256);
    return status;
}

/* Restores the output of --back-command, kept in a file of this run alone. */
static thole_status restore_fetched(struct restoring *restoring, const char *name, thole_error *reterr)
{
    char path[ARCHIVE_FETCHED_BYTES], sha256[SHA256_BYTES];
    THOLE_TRY(sha256_of_receipt(name, sha256, reterr));
    THOLE_TRY(archive_hook_fetch(restoring->cli->options.back_command, name, path, reterr));
    thole_status const status = archive_restore_file(&restoring->restorer, path, name, sha256, reterr);
    (void)unlink(path);
    return status;
}

static void set_object(struct restoring *restoring, const char *path)
{
    (void)snprintf(restoring->object, sizeof restoring->object, "%s", path);
}

static thole_status restore_one(struct restoring *restoring, const char *name, thole_error *reterr)
{
    set_object(restoring, name);
    if (access(name, F_OK) != 0 && restoring->cli->options.back_command != NULL)
        return restore_fetched(restoring, name, reterr);
    return archive_restore_file(&restoring->restorer, name, name, "", reterr);
}

/* The folder's archives, and those that are stored elsewhere and have only receipts here. Both sorted. */
static thole_status list_folder(const struct restoring *restoring, const char *folder,
                                struct archive_names *ret, thole_error *reterr)
{
    struct archive_names receipts;
    THOLE_TRY(archive_folder_list(folder, ".thole", ret, reterr));
    if (restoring->cli->options.back_command == NULL)
        return THOLE_OK;
    thole_status status = archive_folder_list(folder, ".thole.done", &receipts, reterr);
    for (size_t i = 0; i < receipts.len && status == THOLE_OK; i++) {
        char *const name = receipts.items[i];
        name[strlen(name) - strlen(".done")] = '\0';
        if (!archive_mark_is_there(name, ""))
            status = archive_names_add(ret, name, reterr);
    }
    archive_names_release(&receipts);
    return status;
}

/* The newest first: of two instances with one id the later one is what is restored. */
static thole_status restore_folder(struct restoring *restoring, const char *folder, thole_error *reterr)
{
    struct archive_names names = {.len = 0};
    thole_status status = list_folder(restoring, folder, &names, reterr);
    if (status == THOLE_OK && names.len == 0)
        status = thole_fail(reterr, THOLE_NOT_FOUND, "there is no archive in %.300s", folder);
    archive_names_sort(&names);
    for (size_t i = names.len; i > 0 && status == THOLE_OK; i--)
        status = restore_one(restoring, names.items[i - 1], reterr);
    archive_names_release(&names);
    return status;
}

/* ---- the verb ---- */

static thole_status check_seen(struct restoring *restoring, thole_error *reterr)
{
    id_set_sort(&restoring->seen);
    for (size_t i = 0; i < restoring->wanted.len; i++)
        if (!id_set_has(&restoring->seen, restoring->wanted.ids[i]))
            return thole_fail(reterr, THOLE_NOT_FOUND, "\"%.*s\" is in no archive of %.300s",
                              THOLE_FMT(restoring->wanted.ids[i]), restoring->cli->words[1]);
    return THOLE_OK;
}

static thole_status archive_restore_command_restore(struct restoring *restoring, thole_error *reterr)
{
    const char *const path = restoring->cli->words[1];
    const struct topology *const topology = &restoring->client->topology;
    struct stat about;
    for (int i = 2; i < restoring->cli->words_len; i++) {
        THOLE_TRY(client_check_id(thole_slice_from(restoring->cli->words[i]), reterr));
        THOLE_TRY(id_set_add(&restoring->wanted, thole_slice_from(restoring->cli->words[i])));
    }
    id_set_sort(&restoring->wanted);
    if (!restoring->cli->options.dry_run)
        THOLE_TRY(restored_require(restoring->client->connection, topology->ns, reterr));
    set_object(restoring, path);
    bool const folder = stat(path, &about) == 0 && S_ISDIR(about.st_mode);
    THOLE_TRY(folder ? restore_folder(restoring, path, reterr) : restore_one(restoring, path, reterr));
    set_object(restoring, "");
    return check_seen(restoring, reterr);
}

static bool archive_restore_command_wish_is_good(struct cli *cli, int *ret_code)
{
    const struct cli_options *const o = &cli->options;
    if (cli->words_len < 2)
        *ret_code = cli_misused(cli, "which archive? thole archive restore FILE|FOLDER ID..., or --all");
    else if ((cli->words_len > 2) + o->all + (o->prefix != NULL) != 1)
        *ret_code = cli_misused(cli, "which instances of %.300s? IDs, --prefix, or --all", cli->words[1]);
    else if (!cli_reason_is_good(cli))
        *ret_code = EXIT_USAGE;
    else
        return true;
    return false;
}

static int archive_restore_command_finish(struct restoring *restoring, thole_status status,
                                          thole_error *error)
{
    struct cli *const cli = restoring->cli;
    archive_restore_command_clear_progress(restoring);
    if (status != THOLE_OK && status != THOLE_CANCELLED)
        return cli_complain_with(
            cli, restoring->object, error, status == THOLE_CORRUPT ? EXIT_DIVERGED : cli_exit_code(status),
            status == THOLE_CORRUPT ? "thole archive verify says all that is wrong" : NULL);
    int const code = listing_end(&restoring->listing, status, error, "there was nothing to restore");
    if (code == EXIT_DONE && restoring->restored > 0)
        cli_note(cli,
                 "thole show, history, export, diff, replay ID and audit verify ID read what is restored; "
                 "thole list, wait and query do not know it: thole archive list does");
    return code == EXIT_DONE && restoring->kept > 0 ? EXIT_CONFLICT : code;
}

int archive_restore(struct cli *cli)
{
    struct restoring restoring = {.cli = cli,
                                  .terminal = isatty(STDERR_FILENO) == 1 && !cli_is_json(cli),
                                  .restorer = {.cli = cli,
                                               .dry_run = cli->options.dry_run,
                                               .wants = archive_restore_command_selects,
                                               .decided = archive_restore_command_decided,
                                               .progress = archive_restore_command_progress}};
    thole_error error = {.status = THOLE_OK};
    int code = EXIT_DONE;
    if (!archive_restore_command_wish_is_good(cli, &code) ||
        !audit_keys_read(cli, false, &restoring.keys, &code) ||
        !audit_keys_read_list(cli, "--sign-key", cli->options.sign_key, true, &restoring.signers, &code))
        return code;
    restoring.client = cli_connect(cli, &code);
    if (restoring.client == NULL) {
        audit_keys_forget(&restoring.signers);
        return code;
    }
    restoring.restorer.client = restoring.client;
    restoring.restorer.keys = &restoring.keys;
    restoring.restorer.signers = &restoring.signers;
    restoring.restorer.arg = &restoring;
    id_set_init(&restoring.wanted);
    id_set_init(&restoring.seen);
    listing_begin(&restoring.listing, cli, "thole.archive_restore.v1", "instances", 0);
    code = archive_restore_command_finish(&restoring, archive_restore_command_restore(&restoring, &error),
                                          &error);
    id_set_release(&restoring.wanted);
    id_set_release(&restoring.seen);
    audit_keys_forget(&restoring.signers);
    thole_client_close(restoring.client);
    return code;
}
