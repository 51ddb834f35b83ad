/* export: histories of one instance, of those of a filter, or of all, to a file. */
#include "client_internal.h"
#include "clock.h"
#include "export.h"
#include "export_file.h"
#include "export_seal.h"
#include "file_fault.h"
#include "forms.h"
#include "read_commands.h"
#include "text.h"
#include "timeline.h"
#include "write_flaw.h"
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

enum {
    SELECTION_BYTES_MAX = 4 * 1024 * 1024,
    MANIFEST_BYTES_MAX = 8 * 1024 * 1024,
    MISSING_LISTED_MAX = 10000, /* in the manifest; all are counted */
    PROGRESS_MS = 200,
    TEST_PATH_BYTES_MAX = 4096,
    LIST_ALL = INT32_MAX,
};

struct export
{
    const struct cli *cli;
    thole_client *client;
    struct id_set ids; /* the requested ones */
    struct export_file file;
    struct export_seal seal;
    uint32_t partition;            /* of the history in hand */
    struct buf selection, missing; /* JSON: a value; an array without its end */
    struct json missing_json;
    uint64_t missing_len, records;
    bool single;       /* one instance or none: nothing may be missing */
    uint64_t shown_ms; /* when progress was shown; 0: never */
};

/* ---- JSON lines, for people ---- */

void export_decorate(void *arg, struct json *json, uint64_t sequence, thole_slice bytes)
{
    struct record record;
    struct arena arena;
    (void)arg;
    arena_init(&arena, CLIENT_ARENA_MAX);
    if (record_decode(bytes, &arena, &record, NULL) == THOLE_OK && record.kind == RECORD_TURN) {
        json_key(json, "events");
        json_array(json);
        for (size_t i = 0; i < record.turn.events_len; i++) {
            thole_history_event const event =
                history_event_of(sequence, &record.turn, &record.turn.events[i]);
            json_object(json);
            form_event(json, &event, SIZE_MAX);
            json_end(json);
        }
        json_end(json);
    }
    arena_release(&arena);
}

/* ---- which ---- */

static bool has_filter(const struct cli_options *o)
{
    return o->statuses != 0 || o->orchestration != NULL || o->prefix != NULL || o->parent != NULL ||
           o->after != NULL || o->before != NULL;
}

static void export_command_member_if(struct json *json, const char *key, const char *text)
{
    if (text != NULL)
        json_member_text(json, key, text);
}

/* As it was given, so that it is known again when the command is repeated. */
static void export_command_describe_selection(struct export *export)
{
    const struct cli_options *o = &export->cli->options;
    struct json json;
    json_to_buf(&json, &export->selection);
    json_object(&json);
    if (export->cli->words_len > 0) {
        json_key(&json, "ids");
        json_array(&json);
        for (int i = 0; i < export->cli->words_len; i++)
            json_string(&json, thole_slice_from(export->cli->words[i]));
        json_end(&json);
    } else if (o->all) {
        json_member_bool(&json, "all", true);
    } else {
        list_statuses_json(export->cli, &json);
        export_command_member_if(&json, "orchestration", o->orchestration);
        export_command_member_if(&json, "prefix", o->prefix);
        export_command_member_if(&json, "parent", o->parent);
        export_command_member_if(&json, "after", o->after);
        export_command_member_if(&json, "before", o->before);
    }
    json_end(&json);
}

static void export_command_note_id(void *arg, thole_slice instance)
{
    struct export *export = arg;
    (void)id_set_add(&export->ids, instance);
}

static thole_status export_command_note_row(void *arg, const thole_instance_info *info)
{
    struct export *export = arg;
    if (!info->foreign)
        (void)id_set_add(&export->ids, info->instance);
    return export->ids.full ? THOLE_CANCELLED : THOLE_OK;
}

static thole_status select_listed(struct export *export, thole_error *reterr)
{
    thole_list_filter filter;
    if (!list_filter_make(export->cli, &filter))
        return THOLE_INVALID;
    filter.limit = LIST_ALL;
    thole_status const status =
        thole_client_list(export->client, &filter, export_command_note_row, export, reterr);
    return status == THOLE_CANCELLED ? THOLE_OK : status; /* full */
}

/* THOLE_INVALID without a text: it was complained already. */
static thole_status select_ids(struct export *export, thole_error *reterr)
{
    thole_status status = THOLE_OK;
    for (int i = 0; i < export->cli->words_len; i++) {
        THOLE_TRY(client_check_id(thole_slice_from(export->cli->words[i]), reterr));
        export_command_note_id(export, thole_slice_from(export->cli->words[i]));
    }
    if (export->cli->options.all)
        status = client_history_ids(export->client, export_command_note_id, export, reterr);
    else if (export->cli->words_len == 0)
        status = select_listed(export, reterr);
    if (status == THOLE_OK && export->ids.full)
        status =
            thole_fail(reterr, THOLE_LIMIT, "too many instances for one export; narrow it with a filter");
    id_set_sort(&export->ids);
    return status;
}

/* ---- one history ---- */

static thole_status export_command_write_record(void *arg, uint64_t sequence, thole_slice bytes)
{
    struct export *export = arg;
    history_writer_record(&export->file.writer, sequence, bytes);
    export_seal_take(&export->seal, export->partition, bytes);
    export->records++;
    return ferror(export->file.work) ? THOLE_CANCELLED : THOLE_OK;
}

static void note_missing(struct export *export, thole_slice instance, const thole_error *why)
{
    struct json *json = &export->missing_json;
    cli_note(export->cli, "missing: %.*s: %s", THOLE_FMT(instance), why->text);
    if (export->missing_len++ >= MISSING_LISTED_MAX)
        return;
    json_object(json);
    json_member(json, "instance", instance);
    json_member_text(json, "status", thole_status_name(why->status));
    json_member_text(json, "why", why->text);
    json_end(json);
}

static thole_status export_history(struct export *export, thole_slice instance, thole_error *reterr)
{
    thole_error why = {.status = THOLE_OK};
    size_t const sealing = export->seal.len;
    export_file_begin(&export->file, instance);
    export->partition = subject_partition(instance, export->file.options.partitions);
    why.status = client_history_records(export->client, instance, export_command_write_record, export, &why);
    if (why.status == THOLE_OK)
        return export_file_keep(&export->file, reterr);
    export_file_drop(&export->file);
    export->seal.len = sealing;
    if (ferror(export->file.work))
        return file_fault_write(export->file.options.path, write_flaw(export->file.work), reterr);
    if (!export_is_missing(why.status) || export->single) {
        *reterr = why;
        return why.status;
    }
    note_missing(export, instance, &why);
    return THOLE_OK;
}

static void export_command_show_progress(struct export *export, size_t done, bool last)
{
    uint64_t const now_ms = clock_monotonic_ms();
    bool const due = last ? export->shown_ms != 0 : now_ms >= export->shown_ms + PROGRESS_MS;
    if (!due || cli_is_json(export->cli) || isatty(STDERR_FILENO) != 1)
        return;
    export->shown_ms = now_ms;
    (void)fprintf(stderr, "\r%zu of %zu instances, %" PRIu64 " records\033[K%s", done, export->ids.len,
                  export->records, last ? "\r\033[K" : "");
}

static thole_status export_histories(struct export *export, thole_error *reterr)
{
    thole_status status = THOLE_OK;
    size_t const len = export->ids.len;
    if (export->file.done.len > 0)
        cli_note(export->cli, "%s has %zu instances already: going on behind them",
                 buf_cstr(&export->file.part), export->file.done.len);
    for (size_t i = 0; i < len && status == THOLE_OK; i++) {
        thole_slice const instance = export->ids.ids[i];
        export_command_show_progress(export, i, false);
        if (!id_set_has(&export->file.done, instance))
            status = export_history(export, instance, reterr);
    }
    export_command_show_progress(export, len, true);
    return status;
}

/* ---- the end ---- */

static void result_members(const struct export *export, struct json *json)
{
    const struct history_totals *totals = &export->file.writer.totals;
    char digest[HISTORY_DIGEST_TEXT_LEN + 1];
    json_member_number(json, "instances", totals->instances);
    json_member_number(json, "records", totals->records);
    history_digest_text(&totals->digest, digest);
    json_member_text(json, "sha256", digest);
    json_member_bool(json, "complete", export->missing_len == 0);
    json_member_number(json, "missing_count", export->missing_len);
    json_member_copy(json, THOLE_STR("missing"), buf_bytes(&export->missing));
}

static thole_status export_command_finish(struct export *export, thole_error *reterr)
{
    char time[TIME_TEXT_BYTES];
    struct json json;
    struct buf manifest;
    buf_init(&manifest, MANIFEST_BYTES_MAX);
    json_end(&export->missing_json);
    json_to_buf(&json, &manifest);
    json_object(&json);
    json_member_text(&json, "schema", "thole.export.manifest.v1");
    json_member_text(&json, "namespace", export->file.options.ns);
    text_time(clock_wall_ms(), time);
    json_member_text(&json, "ended", time);
    result_members(export, &json);
    json_end(&json);
    thole_status status = buf_status(&manifest);
    status = status == THOLE_OK ? export_file_finish(&export->file, buf_bytes(&manifest), reterr)
                                : thole_fail(reterr, status, "the manifest is too large");
    buf_release(&manifest);
    return status;
}

static void say_result(const struct export *export)
{
    const struct history_totals *totals = &export->file.writer.totals;
    struct json json;
    if (export->file.out != NULL || export->single)
        return;
    if (!cli_is_json(export->cli)) {
        (void)printf("%s: %" PRIu64 " instances, %" PRIu64 " records; %" PRIu64 " missing\n",
                     export->file.options.path, totals->instances, totals->records, export->missing_len);
        if (export->seal.keys.len > 0)
            (void)printf("%" PRIu64 " of the records are in signed checkpoints\n", export->seal.sealed);
        return;
    }
    json_document(&json, stdout, "thole.export_result.v1");
    json_member_text(&json, "file", export->file.options.path);
    result_members(export, &json);
    if (export->seal.keys.len > 0)
        json_member_number(&json, "in_checkpoints", export->seal.sealed);
    json_end(&json);
}

static int export_command_report_error(const struct export *export, const thole_error *error)
{
    const struct cli *cli = export->cli;
    if (error->status == THOLE_CANCELLED) /* cli_finish() says it */
        return EXIT_DONE;
    if (error->status == THOLE_INVALID && error->text[0] == '\0')
        return EXIT_USAGE; /* said already */
    if (export->single)
        return cli_complain(cli, cli->words[0], error);
    bool const again =
        error->status != THOLE_CONFLICT && export->file.work != NULL && export->file.part.len > 0;
    return cli_complain_with(cli, "", error, cli_exit_code(error->status),
                             again ? "the same command, which goes on where this one stopped" : NULL);
}

static thole_status export_command_write_all(struct export *export, const struct export_options *options,
                                             thole_error *reterr)
{
    THOLE_TRY(select_ids(export, reterr));
    THOLE_TRY(buf_status(&export->selection));
    THOLE_TRY(export_file_open(&export->file, options, reterr));
    export->file.writer.decorate = export_decorate;
    THOLE_TRY(export_seal_resume(&export->seal, &export->file, reterr));
    THOLE_TRY(export_histories(export, reterr));
    THOLE_TRY(export_seal_put(&export->seal, &export->file, reterr));
    return export_command_finish(export, reterr);
}

/* Reports requested instances that were not found, except those that an engine has written since its last
 * checkpoint. */
static int export_command_check(const struct export *export)
{
    if (export->seal.bare > 0)
        cli_note(export->cli,
                 "the logs of %" PRIu32 " partitions with records of it have no checkpoint by --key",
                 export->seal.bare);
    return export->missing_len > 0 || export->seal.bare > 0 ? EXIT_INCOMPLETE : EXIT_DONE;
}

static int export_command_run(const struct cli *cli, thole_client *client, const struct audit_keys *keys,
                              const char *path, bool single)
{
    struct export export = {.cli = cli, .client = client, .single = single};
    thole_error error = {.text = ""};
    export.seal.client = client;
    if (keys != NULL)
        export.seal.keys = *keys;
    id_set_init(&export.ids);
    buf_init(&export.selection, SELECTION_BYTES_MAX);
    buf_init(&export.missing, MANIFEST_BYTES_MAX / 2);
    json_to_buf(&export.missing_json, &export.missing);
    json_array(&export.missing_json);
    export_command_describe_selection(&export);
    struct export_options const options = {.path = path,
                                           .form = (enum history_form)cli->options.form,
                                           .ns = client->topology.ns,
                                           .partitions = client->topology.partitions,
                                           .selection = buf_bytes(&export.selection),
                                           .begun_ms = clock_wall_ms()};
    error.status = export_command_write_all(&export, &options, &error);
    int code = error.status == THOLE_OK ? export_command_check(&export)
                                        : export_command_report_error(&export, &error);
    if (error.status == THOLE_OK)
        say_result(&export);
    else if (single)
        export_file_remove(&export.file);
    export_file_release(&export.file);
    export_seal_release(&export.seal);
    id_set_release(&export.ids);
    buf_release(&export.selection);
    buf_release(&export.missing);
    return code;
}

int export_one(const struct cli *cli, thole_client *client)
{
    return export_command_run(cli, client, NULL, cli->options.raw, true);
}

/* One ID, no other file, and a name that ends with .c and is not there. */
static bool test_is_good(const struct cli *cli)
{
    const char *path = cli->options.test;
    size_t const len = strlen(path);
    if (cli->words_len != 1 || cli->options.to != NULL || cli->options.key != NULL)
        (void)cli_misused(cli, "--test takes one ID, and no --to or --key");
    else if (len < 3 || strcmp(path + len - 2, ".c") != 0)
        (void)cli_misused(cli, "--test: %.300s does not end with .c", path);
    else if (access(path, F_OK) == 0)
        (void)cli_misused(cli, "--test: %.300s is there already", path);
    else
        return true;
    return false;
}

/* The history to FILE.thole, the test to FILE.c. */
static int export_test(const struct cli *cli, thole_client *client)
{
    char history[TEST_PATH_BYTES_MAX];
    const char *path = cli->options.test;
    int const n = snprintf(history, sizeof history, "%.*s.thole", (int)(strlen(path) - strlen(".c")), path);
    if (n < 0 || (size_t)n >= sizeof history)
        return cli_misused(cli, "--test: the path is too long");
    int const code = export_command_run(cli, client, NULL, history, true);
    return code == EXIT_DONE ? export_test_write(cli, client, history) : code;
}

int command_export(struct cli *cli)
{
    const struct cli_options *o = &cli->options;
    const char *path = o->to == NULL ? "-" : o->to;
    struct audit_keys keys;
    int code = EXIT_USAGE;
    if ((cli->words_len > 0) + o->all + has_filter(o) != 1)
        return cli_misused(cli, "what is to be exported? IDs, --all, or a filter as of thole list");
    if (o->test != NULL && !test_is_good(cli))
        return code;
    if (o->test == NULL && strcmp(path, "-") == 0 && o->form == HISTORY_BINARY && isatty(STDOUT_FILENO) == 1)
        return cli_misused(cli, "stdout is a terminal: --to FILE, or --form jsonl");
    if (!audit_keys_read(cli, false, &keys, &code))
        return code;
    thole_client *client = cli_connect(cli, &code);
    if (client == NULL)
        return code;
    code = o->test != NULL ? export_test(cli, client) : export_command_run(cli, client, &keys, path, false);
    thole_client_close(client);
    return code;
}
