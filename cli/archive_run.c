/* archive run: writes instances that have ended to archives, verifies these, then purges what they have. */
#include "archive.h"
#include "archive_folder.h"
#include "archive_pick.h"
#include "archive_purge.h"
#include "archive_write.h"
#include "clock.h"
#include "listing.h"
#include "read_commands.h"
#include "text.h"
#include <inttypes.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { PROGRESS_MS = 200, SELECTION_BYTES_MAX = 64 * 1024, INSTANCES_OF_FILE_MAX = 20000 };

struct tally { /* of a pass */
    uint64_t archived, goes_on, purged, bytes, held, parent_runs, unsealed, damaged;
};

struct run {
    struct cli *cli;
    thole_client *client;
    struct audit_keys keys;
    struct archive_writer writer;
    struct archive_ahead ahead;
    struct listing listing;
    struct buf selection; /* a JSON value */
    char path[ARCHIVE_PATH_BYTES];
    struct tally tally;
    bool incomplete; /* an instance is damaged */
    bool came_back_wrong;
    bool terminal;
    uint64_t shown_ms;
};

/* ---- progress, on a terminal ---- */

static void archive_run_clear_progress(const struct run *run)
{
    if (run->terminal && run->shown_ms > 0)
        (void)fputs("\r\033[K", stderr);
}

static void archive_run_progress(void *arg, const char *what, uint64_t done, uint64_t total)
{
    struct run *run = arg;
    uint64_t const now_ms = clock_monotonic_ms();
    if (!run->terminal || now_ms < run->shown_ms + PROGRESS_MS)
        return;
    run->shown_ms = now_ms;
    (void)fprintf(stderr, "\r\033[K%" PRIu64 " of %" PRIu64 " instances %s; %" PRIu64 " purged before", done,
                  total, what, run->tally.purged);
}

/* ---- rows: one for each archive ---- */

static thole_status archive_run_print_row(struct run *run, const char *path,
                                          const struct archive_result *result)
{
    struct listing *listing = &run->listing;
    archive_run_clear_progress(run);
    enum listing_step const step = listing_row(listing, "thole.archived.v1");
    if (step == LISTING_NAME) {
        listing_name(thole_slice_from(path));
    } else if (step == LISTING_JSON) {
        json_member_text(&listing->json, "file", path);
        json_member_number(&listing->json, "instances", result->instances);
        json_member_number(&listing->json, "records", result->records);
        json_member_number(&listing->json, "bytes", result->bytes);
        json_member_number(&listing->json, "purged", result->purged);
        json_member_number(&listing->json, "kept", result->kept);
    } else {
        if (listing->rows == 0)
            (void)printf("%9s  %9s  %12s  %9s  %5s  %s\n", "INSTANCES", "RECORDS", "BYTES", "PURGED", "KEPT",
                         "FILE");
        (void)printf("%9" PRIu64 "  %9" PRIu64 "  %12" PRIu64 "  %9" PRIu64 "  %5" PRIu64 "  %s\n",
                     result->instances, result->records, result->bytes, result->purged, result->kept, path);
    }
    return listing_row_end(listing);
}

static void archive_run_count(const struct run *run, uint64_t n, const char *why)
{
    if (n > 0)
        cli_note(run->cli, "%" PRIu64 " %s", n, why);
}

static void say_tally(struct run *run)
{
    const struct tally *tally = &run->tally;
    archive_run_clear_progress(run);
    if (run->cli->options.dry_run)
        cli_note(run->cli,
                 "%" PRIu64 " instances with %" PRIu64 " bytes of records would be archived and purged; "
                 "nothing was changed",
                 tally->archived, tally->bytes);
    if (run->cli->options.dry_run)
        archive_run_count(run, tally->goes_on,
                          "of them go on: their old executions would be archived and pruned");
    archive_run_count(run, tally->held, "stay: they are under legal hold");
    archive_run_count(run, tally->parent_runs, "stay: their parents run");
    archive_run_count(run, tally->unsealed, "stay: no checkpoint by --key has all of their records yet");
    archive_run_count(run, tally->damaged, "stay: their histories cannot be read");
}

/* ---- leftovers of earlier runs ---- */

static thole_status finish_one(struct run *run, const char *path, thole_error *reterr)
{
    struct archive_finisher const finisher = {.cli = run->cli,
                                              .client = run->client,
                                              .keys = &run->keys,
                                              .progress = archive_run_progress,
                                              .arg = run};
    struct archive_result result;
    if (path != run->path)
        (void)snprintf(run->path, sizeof run->path, "%s", path);
    thole_status const status = archive_finish(&finisher, path, &result, reterr);
    run->came_back_wrong = result.came_back_wrong;
    THOLE_TRY(status);
    run->tally.purged += result.purged;
    return archive_run_print_row(run, path, &result);
}

static thole_status finish_old(struct run *run, thole_error *reterr)
{
    struct archive_names names;
    thole_status status = archive_folder_clean(run->cli->options.dir, reterr);
    if (status == THOLE_OK)
        status = archive_folder_list(run->cli->options.dir, ".thole", &names, reterr);
    else
        names = (struct archive_names){.len = 0};
    for (size_t i = 0; i < names.len && status == THOLE_OK; i++) {
        if (!archive_mark_is_there(names.items[i], ".done"))
            status = finish_one(run, names.items[i], reterr);
        else if (archive_mark_is_there(names.items[i], ".sent")) { /* and is stored elsewhere */
            archive_mark_remove(names.items[i], "");
            archive_mark_remove(names.items[i], ".sent");
        }
    }
    archive_names_release(&names);
    return status;
}

/* ---- a pass ---- */

static void archive_run_member_if(struct json *json, const char *key, const char *text)
{
    if (text != NULL)
        json_member_text(json, key, text);
}

static void archive_run_describe_selection(struct run *run)
{
    const struct cli_options *o = &run->cli->options;
    struct json json;
    buf_init(&run->selection, SELECTION_BYTES_MAX);
    json_to_buf(&json, &run->selection);
    json_object(&json);
    json_member_bool(&json, "archive", true);
    if (o->executions)
        json_member_bool(&json, "executions", true);
    list_statuses_json(run->cli, &json);
    archive_run_member_if(&json, "orchestration", o->orchestration);
    archive_run_member_if(&json, "prefix", o->prefix);
    archive_run_member_if(&json, "ended_before", o->ended_before);
    archive_run_member_if(&json, "older_than", o->older_than);
    json_end(&json);
}

static bool archive_run_is_full(const struct run *run)
{
    return run->writer.bytes >= run->cli->options.file_size || run->writer.instances >= INSTANCES_OF_FILE_MAX;
}

static void note_added(struct run *run, enum archive_added added)
{
    switch (added) {
    case ARCHIVE_ADDED: run->tally.archived++; break;
    case ARCHIVE_UNSEALED: run->tally.unsealed++; break;
    case ARCHIVE_DAMAGED: run->tally.damaged++; break;
    case ARCHIVE_NOT_ENDED:
    case ARCHIVE_GONE: break; /* the rows lag */
    }
}

static thole_status begin_file(struct run *run, thole_error *reterr)
{
    if (run->cli->options.dry_run)
        (void)snprintf(run->path, sizeof run->path, "/dev/null");
    else
        THOLE_TRY(archive_folder_name(run->cli->options.dir, run->client->topology.ns, clock_wall_ms(),
                                      run->path, reterr));
    return archive_writer_begin(&run->writer, run->path, buf_bytes(&run->selection), reterr);
}

/* The rest of an instance that goes on, cut because a file is full, is added to the next file. */
static thole_status add_one(struct run *run, struct archive_candidate *candidate,
                            const struct archive_read *read, thole_error *reterr)
{
    struct archive_wish const wish = {candidate->instance, candidate->after, candidate->upto,
                                      run->cli->options.file_size, read};
    enum archive_why why = read == NULL ? ARCHIVE_GOES : read->why;
    enum archive_added added;
    thole_error damage;
    if (read == NULL)
        THOLE_TRY(archive_judge(run->client, candidate, &why, reterr));
    run->tally.held += why == ARCHIVE_HELD;
    run->tally.parent_runs += why == ARCHIVE_PARENT_RUNS;
    if (why != ARCHIVE_GOES) {
        candidate->after = candidate->upto;
        return THOLE_OK;
    }
    if (!run->writer.open)
        THOLE_TRY(begin_file(run, reterr));
    uint64_t const before = run->writer.bytes;
    THOLE_TRY(archive_writer_add(&run->writer, &wish, &added, &candidate->after, &damage, reterr));
    if (added == ARCHIVE_DAMAGED) {
        archive_run_clear_progress(run);
        cli_note(run->cli, "\"%.*s\" stays: %s", THOLE_FMT(candidate->instance), damage.text);
    }
    if (added != ARCHIVE_ADDED)
        candidate->after = candidate->upto;
    run->tally.bytes += run->writer.bytes - before;
    run->tally.goes_on += added == ARCHIVE_ADDED && wish.upto > 0;
    note_added(run, added);
    return THOLE_OK;
}

/* Ends the file in hand. A dry run has written only what it threw away. */
static thole_status end_file(struct run *run, thole_error *reterr)
{
    if (!run->writer.open)
        return THOLE_OK;
    if (run->cli->options.dry_run || run->writer.instances == 0) {
        archive_writer_drop(&run->writer);
        return THOLE_OK;
    }
    THOLE_TRY(archive_writer_finish(&run->writer, reterr));
    return finish_one(run, run->path, reterr);
}

static thole_status archive_all(struct run *run, struct archive_picked *picked, thole_error *reterr)
{
    uint64_t const most = run->cli->options.total_size;
    for (size_t i = 0; i < picked->len && (most == 0 || run->tally.bytes < most);) {
        struct archive_candidate *const candidate = &picked->items[i];
        archive_run_progress(run, run->cli->options.dry_run ? "looked at" : "archived", i, picked->len);
        if (i >= run->ahead.first + run->ahead.len)
            THOLE_TRY(archive_ahead_read(&run->ahead, run->client, picked, i, reterr));
        THOLE_TRY(add_one(run, candidate, archive_ahead_of(&run->ahead, i), reterr));
        if (run->writer.open && (archive_run_is_full(run) || candidate->after < candidate->upto))
            THOLE_TRY(end_file(run, reterr));
        if (candidate->upto == 0 || candidate->after >= candidate->upto)
            i++;
    }
    return end_file(run, reterr);
}

static thole_status archive_run_pass(struct run *run, thole_error *reterr)
{
    struct archive_picked picked = {.len = 0};
    run->tally = (struct tally){.archived = 0};
    thole_status status = run->cli->options.dry_run ? THOLE_OK : finish_old(run, reterr);
    if (status == THOLE_OK)
        status = archive_pick(run->cli, run->client, &picked, reterr);
    archive_writer_init(&run->writer, run->client, &run->keys);
    if (status == THOLE_OK)
        status = archive_all(run, &picked, reterr);
    archive_writer_release(&run->writer);
    archive_ahead_release(&run->ahead);
    archive_picked_release(&picked);
    run->incomplete |= run->tally.damaged > 0;
    if (status == THOLE_OK)
        say_tally(run);
    return status;
}

/* ---- the verb ---- */

static void archive_run_wait_ms(uint64_t ms)
{
    struct timespec const pause = clock_timespec(ms);
    (void)nanosleep(&pause, NULL);
}

static bool archive_run_wish_is_good(struct cli *cli, int *ret_code)
{
    const struct cli_options *o = &cli->options;
    if (cli->words_len != 1)
        *ret_code = cli_misused(cli, "run takes no words: --prefix, --status and --orchestration select");
    else if (o->dir == NULL && !o->dry_run)
        *ret_code = cli_misused(cli, "--dir is missing: the folder of the archives");
    else if ((o->key != NULL) + o->unsealed != 1)
        *ret_code = cli_misused(cli, "--key is missing: the public key of checkpoints, by which an archive "
                                     "proves itself; or --unsealed, without that proof");
    else if (o->back_command != NULL && o->to_command == NULL)
        *ret_code = cli_misused(cli, "--back-command brings back what --to-command stored");
    else if (o->every_ms > 0 && o->output == OUTPUT_JSON)
        *ret_code = cli_misused(cli, "--every never ends, so it is no JSON document: use -o jsonl");
    else
        return archive_age_is_good(cli, ret_code);
    return false;
}

static int archive_run_report_error(const struct run *run, const thole_error *error)
{
    archive_run_clear_progress(run);
    if (error->status == THOLE_CORRUPT)
        return cli_complain_with(run->cli, run->path, error, EXIT_DIVERGED,
                                 run->came_back_wrong
                                     ? "look at what --to-command has stored; the next run stores it again"
                                     : "thole archive verify says all that is wrong; when it is moved away, "
                                       "the next run archives its "
                                       "instances again");
    return cli_complain(run->cli, run->path, error);
}

static int run_passes(struct run *run)
{
    const struct cli_options *o = &run->cli->options;
    thole_error error = {.status = THOLE_OK};
    archive_run_describe_selection(run);
    listing_begin(&run->listing, run->cli, "thole.archive_run.v1", "archives", 0);
    thole_status status = archive_run_pass(run, &error);
    while (status == THOLE_OK && o->every_ms > 0) {
        (void)fflush(stdout);
        archive_run_wait_ms(o->every_ms);
        status = archive_run_pass(run, &error);
    }
    buf_release(&run->selection);
    if (status != THOLE_OK && status != THOLE_CANCELLED)
        return archive_run_report_error(run, &error);
    int const code = listing_end(&run->listing, status, &error,
                                 o->dry_run ? "nothing was written" : "there was nothing to archive");
    return code == EXIT_DONE && run->incomplete ? EXIT_INCOMPLETE : code;
}

int archive_run(struct cli *cli)
{
    struct run run = {.cli = cli, .terminal = isatty(STDERR_FILENO) == 1 && !cli_is_json(cli)};
    thole_error error = {.status = THOLE_OK};
    int code = EXIT_DONE, lock = -1;
    if (!archive_run_wish_is_good(cli, &code) || !audit_keys_read(cli, false, &run.keys, &code))
        return code;
    if (!cli->options.dry_run && archive_folder_lock(cli->options.dir, &lock, &error) != THOLE_OK)
        return cli_complain_with(cli, cli->options.dir, &error, cli_exit_code(error.status),
                                 error.status == THOLE_CONFLICT ? "wait for its end, or another --dir"
                                                                : NULL);
    run.client = cli_connect(cli, &code);
    if (run.client != NULL)
        code = run_passes(&run);
    thole_client_close(run.client);
    if (lock >= 0)
        (void)close(lock);
    return code;
}
