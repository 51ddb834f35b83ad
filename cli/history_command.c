/* history: of an instance, or from a file. */
#include "client_internal.h"
#include "export.h"
#include "history_input.h"
#include "text.h"
#include "timeline.h"

static int history_command_verdict(const struct cli *cli, const char *object, thole_error *error,
                                   thole_status status)
{
    error->status = status;
    if (status == THOLE_OK || (status == THOLE_CANCELLED && ferror(stdout)))
        return EXIT_DONE; /* cli_finish() reports an error of stdout */
    return cli_complain(cli, object, error);
}

/* ---- from a file ---- */

struct shown {
    struct timeline timeline;
    uint64_t histories;
};

static thole_status show_begin(void *arg, thole_slice instance)
{
    struct shown *shown = arg;
    const struct cli *cli = shown->timeline.cli;
    struct buf title;
    shown->timeline.instance = instance;
    shown->timeline.events = 0;
    if (cli_is_json(cli) || cli->words_len > 0)
        return THOLE_OK;
    buf_init(&title, THOLE_ID_BYTES_MAX * 4);
    text_safe(&title, instance, THOLE_ID_BYTES_MAX);
    (void)printf("%s%s\n", shown->histories++ == 0 ? "" : "\n", buf_cstr(&title));
    buf_release(&title);
    return THOLE_OK;
}

static thole_status show_record(void *arg, uint64_t sequence, const struct record *record, thole_slice bytes)
{
    struct shown *shown = arg;
    (void)bytes;
    for (size_t i = 0; i < record->turn.events_len; i++) {
        thole_history_event const event = history_event_of(sequence, &record->turn, &record->turn.events[i]);
        THOLE_TRY(timeline_event(&shown->timeline, &event));
    }
    return THOLE_OK;
}

static thole_status show_end(void *arg)
{
    struct shown *shown = arg;
    timeline_end(&shown->timeline, true);
    shown->timeline.events = 0;
    return THOLE_OK;
}

static int history_of_file(const struct cli *cli)
{
    struct shown shown = {.timeline = {.cli = cli}};
    struct history_input const input = {.only = cli->words_len > 0 ? thole_slice_from(cli->words[0])
                                                                   : (thole_slice){NULL, 0},
                                        .begin = show_begin,
                                        .record = show_record,
                                        .end = show_end,
                                        .arg = &shown};
    thole_error error = {.status = THOLE_OK};
    thole_status const status = history_input_read(cli->options.file, &input, &error);
    timeline_end(&shown.timeline, false);
    error.status = status;
    if (status == THOLE_OK || (status == THOLE_CANCELLED && ferror(stdout)))
        return EXIT_DONE;
    return cli_complain_with(cli, "", &error, cli_exit_code(status),
                             status == THOLE_NOT_FOUND ? "a file that thole export wrote" : NULL);
}

/* ---- of the namespace ---- */

static int history_of_instance(const struct cli *cli, thole_client *client)
{
    struct timeline timeline = {.cli = cli, .instance = thole_slice_from(cli->words[0])};
    thole_error error = {.status = THOLE_OK};
    thole_status const status =
        cli->options.follow
            ? thole_client_history_follow(client, timeline.instance, timeline_event, &timeline, &error)
            : thole_client_history(client, timeline.instance, timeline_event, &timeline, &error);
    if (status == THOLE_OK && timeline.events == 0)
        timeline_none(&timeline);
    timeline_end(&timeline, status == THOLE_OK);
    return history_command_verdict(cli, cli->words[0], &error, status);
}

int command_history(struct cli *cli)
{
    int code = EXIT_DONE;
    if (cli->options.file != NULL && cli->options.raw != NULL)
        return cli_misused(cli, "--file reads and --raw writes: one of them");
    if (cli->options.file != NULL && cli->options.follow)
        return cli_misused(cli, "--follow is for a history that grows, not for a --file");
    if (cli->options.file != NULL)
        return history_of_file(cli);
    if (cli->words_len == 0)
        return cli_misused(cli, "ID is missing");
    if (cli->options.follow && cli->options.output == OUTPUT_JSON)
        return cli_misused(cli, "--follow has no end: -o jsonl prints a line for each event");
    if (cli->options.follow && cli->options.raw != NULL)
        return cli_misused(cli, "--follow prints events, --raw writes records: one of them");
    thole_client *client = cli_connect(cli, &code);
    if (client == NULL)
        return code;
    code = cli->options.raw != NULL ? export_one(cli, client) : history_of_instance(cli, client);
    thole_client_close(client);
    return code;
}
