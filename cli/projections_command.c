/* projections: are the rows in Postgres what the histories say? And making them so. */
#include "client_internal.h"
#include "clock.h"
#include "command.h"
#include "namespace_store.h"
#include "postgres.h"
#include "row_rebuild.h"
#include "table.h"
#include "text.h"
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

enum {
    STATEMENT_TIMEOUT_MS = 60 * 1000,
    SETTLE_MS = 30 * 1000, /* how long a partition may take to make its rows */
    PROGRESS_MS = 200,
    SAYS_COLUMNS = 80,
};

struct projections {
    struct cli *cli;
    thole_client *client;
    struct postgres *pg;
    struct nonce_key key;
    bool has_key, mends;
    bool only_reads; /* nobody may write to this Postgres */
    struct row_counts counts;
    uint32_t partitions; /* checked */
    uint64_t shown;      /* differences */
    struct json json;
    bool begun;      /* the document of -o json */
    bool terminal;   /* stderr is one */
    uint64_t due_ms; /* of the next line of progress */
};

/* ---- progress, on a terminal ---- */

static void projections_command_clear_progress(const struct projections *of)
{
    if (of->terminal)
        (void)fputs("\r\033[K", stderr);
}

static bool projections_command_progress(void *arg, uint32_t p, uint64_t done, uint64_t total)
{
    struct projections *const of = arg;
    uint64_t const now_ms = clock_monotonic_ms();
    if (!of->terminal || now_ms < of->due_ms)
        return true;
    of->due_ms = now_ms + PROGRESS_MS;
    projections_command_clear_progress(of);
    (void)fprintf(stderr,
                  "partition %" PRIu32 " of %" PRIu32 ": %" PRIu64 " of %" PRIu64 " instances; %" PRIu64
                  " rows are wrong",
                  p, of->client->topology.partitions, done, total, of->counts.wrong);
    return true;
}

/* ---- output of a row ---- */

static const struct table_column difference_columns[] = {
    {"TABLE", 12, 10, 0, false},
    {"INSTANCE", 36, 10, 0, false},
    {"EXECUTION", 9, 9, 2, true},
    {"ID", 6, 4, 1, true},
    {"COLUMN", 14, 8, 0, false},
    {"HISTORY SAYS", 32, 8, 0, false},
    {"ROW SAYS", SAYS_COLUMNS, 8, 0, false},
};

static void projections_command_table_row(const struct row_report *report, bool first)
{
    struct table table;
    table_begin(&table, difference_columns, sizeof difference_columns / sizeof *difference_columns, first);
    table_text(&table, report->table);
    table_cell(&table, TONE_PLAIN, report->instance);
    table_number(&table, report->execution);
    table_number(&table, report->id);
    table_text(&table, report->column == NULL ? "-" : report->column);
    table_text(&table, report->history_says);
    table_text(&table, report->row_says);
    table_release(&table);
}

static void projections_command_begin_document(struct projections *of)
{
    if (of->begun || of->cli->options.output != OUTPUT_JSON)
        return;
    of->begun = true;
    json_document(&of->json, stdout, "thole.projections.v1");
    json_key(&of->json, "differences");
    json_array(&of->json);
}

static void json_row(struct projections *of, const struct row_report *report)
{
    struct json *const json = &of->json;
    projections_command_begin_document(of);
    if (of->cli->options.output == OUTPUT_JSON)
        json_object(json);
    else
        json_document(json, stdout, "thole.row_difference.v1");
    json_member_text(json, "table", report->table);
    json_member(json, "instance", report->instance);
    json_member_number(json, "execution", report->execution);
    if (report->id_name != NULL)
        json_member_number(json, report->id_name, report->id);
    json_key(json, "column");
    if (report->column == NULL)
        json_null(json);
    else
        json_string(json, thole_slice_from(report->column));
    json_member_text(json, "history_says", report->history_says);
    json_member_text(json, "row_says", report->row_says);
    json_end(json);
}

static thole_status projections_command_on_report(void *arg, const struct row_report *report)
{
    struct projections *const of = arg;
    if (of->shown == of->cli->options.limit)
        return THOLE_OK;
    projections_command_clear_progress(of);
    if (of->cli->options.output == OUTPUT_TABLE)
        projections_command_table_row(report, of->shown == 0);
    else
        json_row(of, report);
    of->shown++;
    return ferror(stdout) ? THOLE_CANCELLED : THOLE_OK;
}

/* ---- the result ---- */

static void projections_command_members(struct projections *of, bool complete)
{
    struct json *const json = &of->json;
    json_member_bool(json, "complete", complete);
    json_member_number(json, "partitions", of->partitions);
    json_member_number(json, "instances", of->counts.instances);
    json_member_number(json, "rows", of->counts.rows);
    json_member_number(json, "wrong", of->counts.wrong);
    json_member_number(json, "mended", of->counts.mended);
    json_member_number(json, "refused", of->counts.refused);
    json_member_number(json, "unsettled", of->counts.unsettled);
    json_member_number(json, "unreadable", of->counts.unreadable);
    json_member_bool(json, "digests", of->has_key);
    json_end(json);
}

static void summary_json(struct projections *of, bool complete)
{
    projections_command_begin_document(of);
    if (of->cli->options.output == OUTPUT_JSON)
        json_end(&of->json); /* of the array */
    else
        json_document(&of->json, stdout, "thole.projections.v1");
    projections_command_members(of, complete);
}

static void summary_table(const struct projections *of)
{
    const struct row_counts *const counts = &of->counts;
    (void)printf("%" PRIu32 " partitions, %" PRIu64 " instances, %" PRIu64 " rows compared: ", of->partitions,
                 counts->instances, counts->rows);
    if (counts->wrong == 0)
        (void)printf("all are as their histories say\n");
    else if (of->mends || counts->mended > 0)
        (void)printf("%" PRIu64 " were wrong, %" PRIu64 " are written from the history\n", counts->wrong,
                     counts->mended);
    else
        (void)printf("%" PRIu64 " are wrong\n", counts->wrong);
}

static void projections_command_notes(const struct projections *of)
{
    const struct row_counts *const counts = &of->counts;
    if (counts->unsettled > 0)
        cli_note(of->cli,
                 "%" PRIu64 " instances changed all the time: their rows were compared with what they were "
                 "meanwhile",
                 counts->unsettled);
    if (counts->refused > 0)
        cli_note(of->cli,
                 "Postgres still refuses %" PRIu64
                 " rows, which stay set aside: thole doctor and thole show ID "
                 "say which and why",
                 counts->refused);
    if (counts->set_aside > 0 && (counts->denied || of->only_reads || !of->has_key))
        cli_note(of->cli, "rows of %" PRIu64 " instances are set aside and were not tried again: %s",
                 counts->set_aside,
                 of->only_reads ? "nobody may write to this Postgres"
                                : "this user may not write rows, or not read the bucket SECRET");
    if (counts->unreadable > 0)
        cli_note(of->cli, "%" PRIu64 " instances have a history that cannot be read: not compared",
                 counts->unreadable);
    if (!of->has_key)
        cli_note(of->cli, "digests of messages were not compared: this user may not read the bucket SECRET");
}

/* ---- the command ---- */

static struct postgres_options postgres_settings(const struct projections *of)
{
    const struct cli_options *const options = &of->cli->options;
    return (struct postgres_options){.conninfo = options->postgres,
                                     .ns = options->ns,
                                     .application = "thole-projections",
                                     .connect_timeout_ms = options->timeout_ms,
                                     .statement_timeout_ms = STATEMENT_TIMEOUT_MS,
                                     .synchronous_commit = true,
                                     .reads = !of->mends};
}

static thole_status projections_command_open_postgres(struct projections *of, thole_error *reterr)
{
    const struct cli_options *const options = &of->cli->options;
    struct postgres_options const settings = postgres_settings(of);
    if (options->postgres == NULL || options->postgres[0] == '\0')
        return thole_fail(reterr, THOLE_INVALID,
                          "the rows are in Postgres, and no connection string was given: set THOLE_POSTGRES "
                          "or --postgres");
    THOLE_TRY(postgres_open(&settings, &of->pg, reterr));
    return of->mends ? THOLE_OK : postgres_only_reads(of->pg, &of->only_reads, reterr);
}

/* Without it rows cannot be written; they are compared but for their digests. */
static thole_status read_key(struct projections *of, thole_error *reterr)
{
    thole_status const status =
        topology_read_key(of->client->connection, of->client->topology.ns, &of->key, &of->has_key, reterr);
    if (status == THOLE_OK && of->mends && !of->has_key)
        return thole_fail(reterr, THOLE_NOT_FOUND, "bucket THOLE_%s_SECRET has no key: no engine ever ran",
                          of->client->topology.ns);
    return of->mends || status != THOLE_DENIED ? status : THOLE_OK;
}

static struct row_checker_options checker_settings(struct projections *of)
{
    const struct cli_options *const options = &of->cli->options;
    return (struct row_checker_options){.connection = of->client->connection,
                                        .ns = of->client->topology.ns,
                                        .partitions = of->client->topology.partitions,
                                        .key = of->has_key ? &of->key : NULL,
                                        .pg = of->pg,
                                        .rate = options->rate,
                                        .settle_ms =
                                            options->timeout_ms > 0 ? options->timeout_ms : SETTLE_MS,
                                        .mend = of->mends,
                                        .retry = of->has_key && !of->only_reads,
                                        .report = projections_command_on_report,
                                        .progress = projections_command_progress,
                                        .arg = of};
}

static thole_status projections_command_check(struct projections *of, thole_error *reterr)
{
    const struct cli_options *const options = &of->cli->options;
    bool const all = options->partition == UINT32_MAX;
    struct row_checker_options const wish = checker_settings(of);
    struct row_checker *const checker = row_checker_create(&wish);
    thole_status status = THOLE_OK;
    for (uint32_t p = all ? 0 : options->partition;
         status == THOLE_OK && p < (all ? wish.partitions : options->partition + 1); p++) {
        status = row_checker_partition(checker, p, &of->counts, reterr);
        of->partitions += status == THOLE_OK;
    }
    if (status == THOLE_OK && all)
        status = row_checker_stray(checker, &of->counts, reterr);
    row_checker_destroy(checker);
    projections_command_clear_progress(of);
    return status;
}

static int projections_command_finish(struct projections *of, thole_error *error)
{
    bool const complete = error->status == THOLE_OK;
    if (of->cli->options.output != OUTPUT_TABLE)
        summary_json(of, complete);
    else if (complete)
        summary_table(of);
    if (!complete)
        return ferror(stdout) ? EXIT_DONE : cli_complain(of->cli, "", error); /* cli_finish() reports it */
    projections_command_notes(of);
    return of->counts.wrong == of->counts.mended ? EXIT_DONE : EXIT_DRIFTED;
}

/* ---- into a second schema ---- */

static int rebuild_beside(struct projections *of)
{
    struct row_checker_options const wish = checker_settings(of);
    struct postgres_options const settings = postgres_settings(of);
    struct row_rebuild done;
    thole_error error = {.status = THOLE_OK};
    error.status = row_rebuild(&wish, &settings, &done, &error);
    projections_command_clear_progress(of);
    if (error.status != THOLE_OK)
        return cli_complain_with(of->cli, "", &error, cli_exit_code(error.status),
                                 error.status == THOLE_CONFLICT ? "wait for its end" : NULL);
    of->counts = done.counts;
    if (!cli_is_json(of->cli)) {
        (void)printf("%" PRIu64 " rows of %" PRIu64 " instances are made anew, and in their place; programs "
                     "waited %" PRIu64 " ms at most\n",
                     done.counts.mended, done.counts.instances, done.switch_ms);
    } else {
        json_document(&of->json, stdout, "thole.projections_rebuilt.v1");
        json_member_number(&of->json, "instances", done.counts.instances);
        json_member_number(&of->json, "rows", done.counts.mended);
        json_member_number(&of->json, "unreadable", done.counts.unreadable);
        json_member_number(&of->json, "passes", done.passes);
        json_member_number(&of->json, "switch_ms", done.switch_ms);
        json_end(&of->json);
    }
    projections_command_notes(of);
    return EXIT_DONE;
}

/* ---- the verb ---- */

/* Rows of another namespace are all wrong, and must not be mended. */
static thole_status check_identity(const struct projections *of, thole_error *reterr)
{
    struct namespace_rows rows;
    struct namespace_id id;
    THOLE_TRY(topology_read_id(of->client->connection, of->cli->options.ns, &id, reterr));
    THOLE_TRY(namespace_store_read(of->pg, &rows, reterr));
    if (id.text[0] == '\0' || rows.id.text[0] == '\0' || namespace_id_is(&id, &rows.id))
        return THOLE_OK;
    return thole_fail(
        reterr, THOLE_CONFLICT,
        "namespace %s: NATS has identity %s, Postgres has the rows of %s: connect to the right servers",
        of->cli->options.ns, id.text, rows.id.text);
}

static int projections_command_run(struct projections *of)
{
    thole_error error = {.status = THOLE_OK};
    uint32_t const partitions = of->client->topology.partitions;
    if (of->cli->options.partition != UINT32_MAX && of->cli->options.partition >= partitions)
        return cli_misused(of->cli, "--partition: namespace %s has %" PRIu32 " partitions, from 0",
                           of->cli->options.ns, partitions);
    error.status = projections_command_open_postgres(of, &error);
    if (error.status == THOLE_UNAVAILABLE)
        return cli_complain_with(of->cli, "", &error, cli_exit_code(error.status),
                                 of->mends
                                     ? "is Postgres running there (--postgres), and may rows be "
                                       "written? See also: thole doctor"
                                     : "is Postgres running there (--postgres)? See also: thole doctor");
    if (error.status == THOLE_OK)
        error.status = check_identity(of, &error);
    if (error.status == THOLE_OK)
        error.status = read_key(of, &error);
    if (error.status != THOLE_OK)
        return cli_complain(of->cli, "", &error);
    if (of->cli->options.second_schema)
        return rebuild_beside(of);
    error.status = projections_command_check(of, &error);
    return projections_command_finish(of, &error);
}

int command_projections(struct cli *cli)
{
    struct projections of = {.cli = cli, .terminal = isatty(STDERR_FILENO) == 1};
    int code = EXIT_DONE;
    of.mends = strcmp(cli->words[0], "rebuild") == 0;
    if (!of.mends && strcmp(cli->words[0], "verify") != 0)
        return cli_misused(cli, "\"%.40s\" is none of verify, rebuild", cli->words[0]);
    if (cli->options.second_schema && (!of.mends || cli->options.partition != UINT32_MAX))
        return cli_misused(cli, "--second-schema is for rebuild, of all partitions");
    of.client = cli_connect(cli, &code);
    if (of.client == NULL)
        return code;
    code = projections_command_run(&of);
    postgres_close(of.pg);
    explicit_bzero(&of.key, sizeof of.key);
    thole_client_close(of.client);
    return code;
}
