/* archive: ended instances in files, with the proof that they are what was written. */
#include "archive.h"
#include "archive_check.h"
#include "archive_folder.h"
#include "listing.h"
#include "text.h"
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

enum { CELL_BYTES = 1024 };

/* ---- the files that are meant ---- */

typedef thole_status archive_file_fn(void *arg, const char *path, thole_error *reterr);

static thole_status each_of_folder(const char *folder, archive_file_fn *each, void *arg, thole_error *reterr)
{
    struct archive_names names;
    thole_status status = archive_folder_list(folder, ".thole", &names, reterr);
    if (status == THOLE_OK && names.len == 0)
        status = thole_fail(reterr, THOLE_NOT_FOUND, "there is no archive in %.300s", folder);
    for (size_t i = 0; i < names.len && status == THOLE_OK; i++)
        status = each(arg, names.items[i], reterr);
    archive_names_release(&names);
    return status;
}

static thole_status each_file(const struct cli *cli, archive_file_fn *each, void *arg,
                              const char **ret_object, thole_error *reterr)
{
    for (int i = 1; i < cli->words_len; i++) {
        struct stat about;
        *ret_object = cli->words[i];
        bool const folder = stat(cli->words[i], &about) == 0 && S_ISDIR(about.st_mode);
        THOLE_TRY(folder ? each_of_folder(cli->words[i], each, arg, reterr)
                         : each(arg, cli->words[i], reterr));
    }
    return THOLE_OK;
}

/* ---- verify ---- */

struct verifying {
    struct cli *cli;
    struct audit_keys keys;
    struct json json;
    uint64_t findings;
};

static void archive_command_on_finding(void *arg, uint32_t partition, const struct audit_finding *finding)
{
    struct verifying *verifying = arg;
    struct json *json = &verifying->json;
    struct buf safe;
    if (!cli_is_json(verifying->cli)) {
        buf_init(&safe, CELL_BYTES);
        text_safe(&safe, finding->instance, THOLE_ID_BYTES_MAX);
        (void)printf("%-10s  partition %" PRIu32, audit_fault_name(finding->fault), partition);
        if (finding->sequence > 0)
            (void)printf(" #%" PRIu64, finding->sequence);
        if (finding->instance.len > 0)
            (void)printf(" %s/%" PRIu64, buf_cstr(&safe), finding->execution);
        (void)printf(": %s\n", finding->text);
        buf_release(&safe);
        return;
    }
    json_object(json);
    json_member_text(json, "fault", audit_fault_name(finding->fault));
    json_member_number(json, "partition", partition);
    json_member_number(json, "sequence", finding->sequence);
    if (finding->instance.len > 0)
        json_member(json, "instance", finding->instance);
    json_member_text(json, "text", finding->text);
    json_end(json);
}

static void checkpoints_members(struct json *json, const struct archive_check *check)
{
    json_key(json, "checkpoints");
    json_array(json);
    for (size_t i = 0; i < check->checkpoints_len; i++) {
        const struct archive_checkpoint *checkpoint = &check->checkpoints[i];
        json_object(json);
        json_member_number(json, "partition", checkpoint->partition);
        json_member_number(json, "signed", checkpoint->size);
        json_member_number(json, "records", checkpoint->records);
        json_end(json);
    }
    json_end(json);
}

static void archive_command_end_document(struct json *json, const struct archive_check *check,
                                         thole_status status, const thole_error *error)
{
    json_end(json); /* of the findings */
    json_member_text(json, "namespace", check->ns);
    json_member_number(json, "records", check->records);
    json_member_number(json, "bytes", check->bytes);
    json_member_text(json, "sha256", check->sha256);
    checkpoints_members(json, check);
    json_key(json, "instances");
    json_array(json);
    for (size_t i = 0; i < check->instances_len; i++) {
        const struct archive_facts *facts = &check->instances[i];
        json_object(json);
        archive_facts_members(facts, json);
        json_member_bool(json, "included", facts->records > 0 && facts->sealed == facts->records);
        json_end(json);
    }
    json_end(json);
    json_member_bool(json, "whole", status == THOLE_OK && check->findings == 0);
    if (status != THOLE_OK)
        json_member_text(json, "error", error->text);
    json_end(json);
}

static void archive_command_print_line(const struct cli *cli, const char *path,
                                       const struct archive_check *check)
{
    if (cli->wide)
        for (size_t i = 0; i < check->instances_len; i++)
            archive_facts_row(&check->instances[i], i == 0);
    (void)printf("%s: %zu instances, %" PRIu64 " records: ", path, check->instances_len, check->records);
    if (check->findings > 0)
        (void)printf("%" PRIu64 " findings\n", check->findings);
    else if (check->keys->len == 0)
        (void)printf("whole, by their hashes alone\n");
    else
        (void)printf("whole, and all in signed checkpoints of %zu partitions\n", check->checkpoints_len);
}

static thole_status archive_command_verify_one(void *arg, const char *path, thole_error *reterr)
{
    struct verifying *verifying = arg;
    struct cli *cli = verifying->cli;
    struct archive_check check = {
        .keys = &verifying->keys, .found = archive_command_on_finding, .arg = verifying};
    if (cli_is_json(cli)) {
        json_document(&verifying->json, stdout, "thole.archive_verify.v1");
        json_member_text(&verifying->json, "file", path);
        json_key(&verifying->json, "findings");
        json_array(&verifying->json);
    }
    thole_status status = archive_check_file(&check, path, reterr);
    if (cli_is_json(cli))
        archive_command_end_document(&verifying->json, &check, status, reterr);
    else if (status == THOLE_OK)
        archive_command_print_line(cli, path, &check);
    verifying->findings += check.findings;
    archive_check_release(&check);
    if (status != THOLE_CORRUPT && status != THOLE_UNSUPPORTED)
        return status;
    cli_note(cli, "%s: %s", path, reterr->text); /* the other files are looked at, too */
    verifying->findings++;
    return THOLE_OK;
}

int archive_verify(struct cli *cli)
{
    struct verifying verifying = {.cli = cli};
    thole_error error = {.status = THOLE_OK};
    const char *object = "";
    int code = EXIT_DONE;
    if (cli->words_len < 2 && cli->options.key == NULL)
        return cli_misused(cli,
                           "which archives? files, or folders; or --key, for receipts of what is restored");
    if (!audit_keys_read(cli, false, &verifying.keys, &code))
        return code;
    if (cli->words_len < 2)
        return archive_verify_restored(cli, &verifying.keys);
    if (each_file(cli, archive_command_verify_one, &verifying, &object, &error) != THOLE_OK)
        return cli_complain_with(cli, object, &error, cli_exit_code(error.status), NULL);
    return verifying.findings > 0 ? EXIT_DIVERGED : EXIT_DONE;
}

/* ---- list ---- */

struct listing_files {
    struct listing listing;
    struct audit_keys none;
};

static void ignore_finding(void *arg, uint32_t partition, const struct audit_finding *finding)
{
    (void)arg, (void)partition, (void)finding; /* verify says it */
}

static thole_status list_one(void *arg, const char *path, thole_error *reterr)
{
    struct listing_files *files = arg;
    struct archive_check check = {.keys = &files->none, .found = ignore_finding};
    thole_status status = archive_check_file(&check, path, reterr);
    for (size_t i = 0; i < check.instances_len && status == THOLE_OK; i++) {
        const struct archive_facts *facts = &check.instances[i];
        switch (listing_row(&files->listing, "thole.archived_instance.v1")) {
        case LISTING_STOP: status = THOLE_CANCELLED; continue;
        case LISTING_NAME: listing_name(facts->instance); break;
        case LISTING_TABLE: archive_facts_row(facts, files->listing.rows == 0); break;
        case LISTING_JSON:
            archive_facts_members(facts, &files->listing.json);
            json_member_text(&files->listing.json, "namespace", check.ns);
            json_member_text(&files->listing.json, "file", path);
            break;
        }
        status = listing_row_end(&files->listing);
    }
    archive_check_release(&check);
    return status;
}

int archive_list(struct cli *cli)
{
    struct listing_files files = {.none = {.len = 0}};
    thole_error error = {.status = THOLE_OK};
    const char *object = "";
    if (cli->words_len < 2)
        return archive_list_restored(cli);
    listing_begin(&files.listing, cli, "thole.archive_list.v1", "instances", 0);
    thole_status const status = each_file(cli, list_one, &files, &object, &error);
    if (status != THOLE_OK && status != THOLE_CANCELLED)
        return cli_complain_with(cli, object, &error,
                                 status == THOLE_CORRUPT ? EXIT_DIVERGED : cli_exit_code(status), NULL);
    return listing_end(&files.listing, status, &error, "the archives are empty");
}

/* ---- the verb ---- */

int command_archive(struct cli *cli)
{
    static const struct {
        const char *word;
        int (*run)(struct cli *cli);
    } words[] = {{"run", archive_run},
                 {"verify", archive_verify},
                 {"list", archive_list},
                 {"restore", archive_restore}};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strcmp(cli->words[0], words[i].word) == 0)
            return words[i].run(cli);
    return cli_misused(cli, "unknown word: %.60s; expected run, verify, list or restore", cli->words[0]);
}
