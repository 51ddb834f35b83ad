/* show: the row in Postgres, and what the instance waits for, from its history, its rows and the workers.
 * With --at or --file all of it is from the history, as far as the point. */
#include "client_restored.h"
#include "clock.h"
#include "forms.h"
#include "history_input.h"
#include "inspection.h"
#include "jscan.h"
#include "pending.h"
#include "query_message.h"
#include "text.h"
#include "values.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
    DATA_COLUMNS = 200,
    DETAIL_COLUMNS = 1024,
    LINE_BYTES = 8192,
    ID_BYTES_MAX = 4096,
    PENDING_LINES_MAX = 50 /* for people; JSON has all */
};

struct show {
    const struct cli *cli;
    thole_client *client;
    struct json json;
    struct arena arena;
    struct pending pending;
    thole_inspect_point point;
    thole_slice instance;
    struct inspection *inspection; /* of a file */
    struct buf receipt;            /* of one that is restored; empty: it is not */
    bool without_row;              /* in instances: it is set aside */
    bool stands;                   /* the instance does not go on by itself */
    thole_error *reterr;
};

static bool is_table(const struct show *show)
{
    return !cli_is_json(show->cli);
}

/* ---- the row ---- */

static void show_text(const char *key, thole_slice value, size_t columns)
{
    struct buf line;
    buf_init(&line, LINE_BYTES);
    text_safe(&line, value, columns);
    (void)printf("%-16s%s\n", key, buf_cstr(&line));
    buf_release(&line);
}

static void show_line(const char *key, thole_slice value)
{
    show_text(key, value, DATA_COLUMNS);
}

static void show_number(const char *key, uint64_t value)
{
    (void)printf("%-16s%" PRIu64 "\n", key, value);
}

static void show_time(const char *key, uint64_t time_ms)
{
    char time[TIME_TEXT_BYTES];
    text_time(time_ms, time);
    show_line(key, thole_slice_from(time));
}

static void show_table(const thole_instance_info *info)
{
    show_line("instance", info->instance);
    show_line("orchestration", info->orchestration);
    show_line("status", thole_slice_from(thole_instance_status_name(info->status)));
    if (info->detail.len > 0)
        show_text("detail", info->detail, DETAIL_COLUMNS); /* why it is stuck, and what to do: whole */
    if (info->reason != NULL)
        show_line("reason", thole_slice_from(info->reason));
    if (info->custom_status.len > 0)
        show_line("custom status", info->custom_status);
    if (info->version != 0)
        show_number("version", info->version);
    if (info->parent.len > 0)
        show_line("parent", info->parent);
    show_number("execution", info->execution);
    show_number("turns", info->turns);
    show_time("created", info->created_ms);
    show_time("updated", info->updated_ms);
    show_number("open activities", info->open_activities);
    show_number("open timers", info->open_timers);
    show_number("partition", info->partition);
}

/* The document stays open for what follows. */
static thole_status show_row(void *arg, const thole_instance_info *info)
{
    struct show *show = arg;
    show->stands |= status_stands(info->status);
    if (is_table(show)) {
        show_table(info);
    } else {
        json_document(&show->json, stdout, "thole.instance.v1");
        form_instance(&show->json, info);
    }
    return THOLE_OK;
}

/* ---- rows that Postgres refuses ---- */

static thole_status set_aside_line(void *arg, const thole_set_aside_info *info)
{
    struct buf line;
    bool *const any = arg;
    *any = true;
    buf_init(&line, LINE_BYTES);
    buf_printf(&line, "table %.*s", THOLE_FMT(info->table));
    if (info->execution > 0)
        buf_printf(&line, ", execution %" PRIu64, info->execution);
    if (info->id > 0)
        buf_printf(&line, ", #%" PRIu64, info->id);
    if (info->column.len > 0)
        buf_printf(&line, ", column %.*s", THOLE_FMT(info->column));
    buf_printf(&line, "%s: %.*s", info->removal ? ", stays" : "", THOLE_FMT(info->reason));
    if (info->code.len > 0)
        buf_printf(&line, " (SQLSTATE %.*s)", THOLE_FMT(info->code));
    show_text("row set aside", buf_bytes(&line), DETAIL_COLUMNS);
    buf_release(&line);
    return THOLE_OK;
}

/* False: there is none. */
static bool show_set_aside(struct show *show)
{
    bool any = false;
    if (!is_table(show)) {
        form_set_aside(&show->json, show->client, show->instance);
        return false;
    }
    /* tables of before have none */
    thole_status const status =
        thole_client_set_aside(show->client, show->instance, set_aside_line, &any, NULL);
    return status == THOLE_OK && any;
}

static thole_status set_aside_note(void *arg, const thole_set_aside_info *info)
{
    bool *const missing = arg;
    *missing |= thole_slice_equal(info->table, THOLE_STR("instances"));
    return THOLE_OK;
}

/* ---- open tasks ---- */

static void show_command_note(void *arg, const char *text)
{
    const struct show *show = arg;
    cli_note(show->cli, "%s", text);
}

static void pending_line(struct show *show, uint64_t execution, const thole_pending *p)
{
    char time[TIME_TEXT_BYTES], key[32];
    struct pending_said said = {.state = NULL};
    struct buf line;
    buf_init(&line, LINE_BYTES);
    text_time(p->due_ms, time);
    switch (p->kind) {
    case THOLE_PENDING_ACTIVITY:
        pending_say(&show->pending, execution, p, &said);
        show->stands |= said.stands;
        buf_printf(&line, "activity %.*s, queue %.*s, try %" PRIu32 ": %s", THOLE_FMT(p->name),
                   THOLE_FMT(p->queue), p->try_number, said.text);
        break;
    case THOLE_PENDING_TIMER: buf_printf(&line, "timer, due at %s", time); break;
    case THOLE_PENDING_EVENT: buf_printf(&line, "event %.*s", THOLE_FMT(p->name)); break;
    case THOLE_PENDING_CHILD:
        buf_printf(&line, "child %.*s (%.*s)", THOLE_FMT(p->instance), THOLE_FMT(p->name));
        break;
    }
    (void)snprintf(key, sizeof key, "waits for #%" PRIu64, p->id);
    show_line(key, buf_bytes(&line));
    buf_release(&line);
}

static void pending_lines(struct show *show, const thole_inspection *inspection)
{
    size_t const len = inspection->pending_len;
    size_t const shown = len < PENDING_LINES_MAX ? len : PENDING_LINES_MAX;
    for (size_t i = 0; i < shown; i++)
        pending_line(show, inspection->execution, &inspection->pending[i]);
    if (shown < len)
        (void)printf("%-16s%zu more; -o json prints all\n", "and", len - shown);
}

static void show_data(const char *key, thole_slice data, bool redacted)
{
    struct buf line;
    char size[40];
    buf_init(&line, LINE_BYTES);
    text_safe(&line, data, DATA_COLUMNS);
    (void)snprintf(size, sizeof size, " (%zu bytes)", data.len);
    (void)printf("%-16s%s%s\n", key, buf_cstr(&line),
                 redacted        ? "(redacted)"
                 : data.len == 0 ? "(empty)"
                                 : size);
    buf_release(&line);
}

/* Events that nothing has waited for: perhaps their name is mistyped. */
static void show_kept(const thole_inspection *inspection)
{
    char text[THOLE_NAME_BYTES_MAX + 128];
    for (size_t i = 0; i < inspection->kept_len && i < PENDING_LINES_MAX; i++) {
        const thole_kept_event *const kept = &inspection->kept[i];
        (void)snprintf(text, sizeof text, "%.*s (%" PRIu64 "): nothing has waited for it yet",
                       THOLE_FMT(kept->name), kept->count);
        show_line("event kept", thole_slice_from(text));
    }
    if (inspection->kept_len > PENDING_LINES_MAX)
        (void)printf("%-16s%zu more names of events; -o json prints all\n", "and",
                     inspection->kept_len - PENDING_LINES_MAX);
}

static void show_inspection_table(struct show *show, const thole_inspection *inspection)
{
    show_data("input", inspection->input, inspection->input_redacted);
    if (inspection_has_ended(inspection)) {
        show_data("output", inspection->output, inspection->output_redacted);
        if (inspection->error_type.len > 0)
            show_line("error type", inspection->error_type);
    }
    pending_lines(show, inspection);
    show_kept(inspection);
}

static thole_status show_inspection(void *arg, const thole_inspection *inspection)
{
    struct show *show = arg;
    pending_read(&show->pending, show->client, show->instance, inspection, show_command_note, show);
    if (is_table(show))
        show_inspection_table(show, inspection);
    else
        show->stands |= form_inspection(&show->json, &show->pending, inspection, SIZE_MAX);
    for (size_t i = 0; i < inspection->pending_len; i++) /* which may not go on either */
        show->stands |= inspection->pending[i].kind == THOLE_PENDING_CHILD;
    return THOLE_OK;
}

/* ---- why it does not go on ---- */

static thole_status hindrance_line(void *arg, const thole_hindrance *hindrance)
{
    (void)arg;
    show_text("next step", hindrance->remedy, DETAIL_COLUMNS);
    return THOLE_OK;
}

static void show_hindrances(struct show *show)
{
    thole_error error = {.status = THOLE_OK};
    if (!show->stands)
        return;
    error.status = is_table(show)
                       ? thole_client_explain(show->client, show->instance, hindrance_line, NULL, &error)
                       : form_hindrances(&show->json, show->client, show->instance, &error);
    if (error.status != THOLE_OK)
        cli_note(show->cli, "what would let it go on is not known: %s", error.text);
}

/* ---- at a point of the history ---- */

static void show_point_table(const struct show *show, const thole_inspection *inspection)
{
    show_line("instance", show->instance);
    show_line("orchestration", inspection->orchestration);
    show_line("status", thole_slice_from(thole_instance_status_name(inspection->status)));
    if (inspection->custom_status.len > 0)
        show_line("custom status", inspection->custom_status);
    if (inspection->version != 0)
        show_number("version", inspection->version);
    show_number("execution", inspection->execution);
    show_number("turns", inspection->turns);
    show_number("event", inspection->event);
    show_time("as of", inspection->time_ms);
}

static void show_point_members(struct show *show, const thole_inspection *inspection)
{
    struct json *json = &show->json;
    json_document(json, stdout, "thole.instance_at.v1");
    json_member(json, "instance", show->instance);
    json_member(json, "orchestration", inspection->orchestration);
    if (inspection->version != 0)
        json_member_number(json, "version", inspection->version);
    json_member_text(json, "status", thole_instance_status_name(inspection->status));
    if (inspection->custom_status.len > 0)
        json_member_data(json, "custom_status", inspection->custom_status);
    json_member_number(json, "execution", inspection->execution);
    json_member_number(json, "turns", inspection->turns);
    json_member_number(json, "event", inspection->event);
    json_member_time(json, "as_of", inspection->time_ms);
}

/* The person who has restored it, and the archive. */
static void show_receipt(struct show *show)
{
    static const char *const texts[] = {"restored", "by", "archive", "reason"};
    thole_slice value;
    struct buf text;
    buf_init(&text, RESTORED_RECEIPT_BYTES_MAX);
    if (!is_table(show)) {
        json_key(&show->json, "restored");
        json_object(&show->json);
    }
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        buf_clear(&text);
        if (!json_find(buf_bytes(&show->receipt), texts[i], &value) || !json_text(value, &text))
            continue;
        if (!is_table(show))
            json_member(&show->json, i == 0 ? "time" : texts[i], buf_bytes(&text));
        else if (text.len > 0)
            show_line(texts[i], buf_bytes(&text));
    }
    if (!is_table(show))
        json_end(&show->json);
    buf_release(&text);
}

static thole_status show_point(void *arg, const thole_inspection *inspection)
{
    struct show *show = arg;
    if (is_table(show))
        show_point_table(show, inspection);
    else
        show_point_members(show, inspection);
    thole_status const status = show_inspection(show, inspection);
    if (show->receipt.len > 0)
        show_receipt(show);
    if (show->without_row)
        (void)show_set_aside(show);
    if (!is_table(show))
        json_end(&show->json);
    return status;
}

/* 17, 2.17 (event 17 of execution 2), or a time. False after a complaint. */
static bool point_read(const struct cli *cli, thole_inspect_point *ret)
{
    const char *text = cli->options.at;
    const char *dot = text == NULL ? NULL : strchr(text, '.');
    char execution[24];
    *ret = (thole_inspect_point){.size = sizeof *ret};
    if (text == NULL || (number_parse(text, &ret->event, NULL) == THOLE_OK && ret->event > 0))
        return true;
    (void)snprintf(execution, sizeof execution, "%.*s", dot == NULL ? 0 : (int)(dot - text), text);
    if (dot != NULL && number_parse(execution, &ret->execution, NULL) == THOLE_OK && ret->execution > 0 &&
        number_parse(dot + 1, &ret->event, NULL) == THOLE_OK && ret->event > 0)
        return true;
    ret->execution = ret->event = 0;
    bool const is_event = strcmp(text, "0") == 0; /* which there is not; as a duration it is now */
    if (!is_event && text_time_parse(text, clock_wall_ms(), &ret->time_ms) && ret->time_ms > 0)
        return true;
    (void)cli_misused(cli,
                      "--at: %.60s is neither an event nor a time; expected 17, 2.17 (of execution 2), "
                      "2026-11-21T09:30:00Z, 2026-11-21, or a duration such as 2h, which is that long ago",
                      text);
    return false;
}

static thole_status show_command_file_begin(void *arg, thole_slice instance)
{
    struct show *show = arg;
    if (show->inspection != NULL)
        return thole_fail(show->reterr, THOLE_INVALID, "it has several histories: name one with its ID");
    show->inspection = inspection_create(instance, &show->point);
    return arena_dup(&show->arena, instance, &show->instance);
}

static thole_status show_command_file_record(void *arg, uint64_t sequence, const struct record *record,
                                             thole_slice bytes)
{
    struct show *show = arg;
    (void)sequence;
    (void)record;
    return inspection_take(show->inspection, bytes, show->reterr);
}

static thole_status show_command_file_end(void *arg)
{
    (void)arg;
    return THOLE_OK;
}

static int show_file(struct show *show)
{
    const struct cli *cli = show->cli;
    struct history_input const input = {.only = cli->words_len > 0 ? thole_slice_from(cli->words[0])
                                                                   : (thole_slice){NULL, 0},
                                        .begin = show_command_file_begin,
                                        .record = show_command_file_record,
                                        .end = show_command_file_end,
                                        .arg = show};
    thole_error error = {.text = ""};
    show->reterr = &error;
    error.status = history_input_read(cli->options.file, &input, &error);
    if (error.status == THOLE_OK && show->inspection == NULL)
        error.status = thole_fail(&error, THOLE_NOT_FOUND, "%.300s has no history", cli->options.file);
    if (error.status == THOLE_OK)
        error.status =
            inspection_end(show->inspection, THOLE_PAYLOAD_BYTES_DEFAULT, show_point, show, &error);
    inspection_destroy(show->inspection);
    if (error.status == THOLE_OK)
        return EXIT_DONE;
    return cli_complain_with(cli, "", &error, cli_exit_code(error.status), NULL);
}

static int show_past(struct show *show)
{
    thole_error error = {.text = ""};
    int code = EXIT_DONE;
    show->client = cli_connect(show->cli, &code);
    if (show->client == NULL)
        return code;
    error.status =
        thole_client_inspect_at(show->client, show->instance, &show->point, show_point, show, &error);
    if (error.status != THOLE_OK)
        code = cli_complain_with(show->cli, show->cli->words[0], &error, cli_exit_code(error.status),
                                 error.status == THOLE_NOT_FOUND ? "thole history ID" : NULL);
    thole_client_close(show->client);
    return code;
}

/* ---- where the code waits ---- */

/* "source", or why it is not known as "source_error". */
static void show_source(struct show *show)
{
    thole_slice site = {NULL, 0};
    thole_error error = {.status = THOLE_OK};
    error.status = thole_client_query(show->client, show->instance, THOLE_STR(QUERY_SOURCE), THOLE_STR(""),
                                      &site, &error);
    bool const known = error.status == THOLE_OK;
    thole_slice const text = known ? site : thole_slice_from(error.text);
    if (!is_table(show))
        json_member(&show->json, known ? "source" : "source_error", text);
    else if (known)
        show_line("code is at", text);
    else
        cli_note(show->cli, "where its code is, is not known: %s", error.text);
    thole_client_release(site);
}

/* ---- the verb ---- */

static void show_rest(struct show *show)
{
    thole_error error = {.status = THOLE_OK};
    thole_status const status = thole_client_inspect(show->client, thole_slice_from(show->cli->words[0]),
                                                     show_inspection, show, &error);
    if (status != THOLE_OK && status != THOLE_NOT_FOUND) /* never started: events wait for it */
        cli_note(show->cli, "what it waits for is not known, as its history cannot be read: %s", error.text);
    show_hindrances(show);
    if (show->cli->options.source)
        show_source(show);
    if (show_set_aside(show))
        cli_note(show->cli,
                 "what these rows are for does not happen: remove the cause, then thole projections verify");
    if (!is_table(show))
        json_end(&show->json);
}

/* ---- instances without a row ---- */

static thole_status count_engine(void *arg, const thole_engine_info *info)
{
    size_t *engines = arg;
    (void)info;
    ++*engines;
    return THOLE_OK;
}

/* Why the start waits; how many engines run is in @p engines, SIZE_MAX: not known. */
static void show_pending_table(struct show *show, const thole_inspection *inspection, size_t engines)
{
    char why[128];
    if (engines == 0)
        (void)snprintf(why, sizeof why, "no engine runs");
    else if (inspection->ahead > 0)
        (void)snprintf(why, sizeof why, "up to %" PRIu64 " messages of its partition are before it",
                       inspection->ahead);
    else
        (void)snprintf(why, sizeof why, "no engine has taken it: does one own its partition?");
    show_line("instance", show->instance);
    show_line("orchestration", inspection->orchestration);
    show_line("status", thole_slice_from(thole_instance_status_name(inspection->status)));
    if (inspection->version != 0)
        show_number("version", inspection->version);
    show_time("stored", inspection->time_ms);
    show_text("waits", THOLE_STR("for its first turn"), DATA_COLUMNS);
    show_line("because", thole_slice_from(why));
    show_data("input", inspection->input, false);
}

static void show_pending_members(struct show *show, const thole_inspection *inspection, size_t engines)
{
    struct json *json = &show->json;
    json_document(json, stdout, "thole.instance.v1");
    json_member(json, "instance", show->instance);
    json_member(json, "orchestration", inspection->orchestration);
    if (inspection->version != 0)
        json_member_number(json, "version", inspection->version);
    json_member_text(json, "status", thole_instance_status_name(inspection->status));
    json_member_number(json, "execution", 0);
    json_member_time(json, "stored", inspection->time_ms);
    json_member_number(json, "ahead", inspection->ahead);
    if (engines != SIZE_MAX)
        json_member_number(json, "engines", engines);
    form_data(json, "input", inspection->input, SIZE_MAX);
    json_end(json);
}

static thole_status show_unprojected(void *arg, const thole_inspection *inspection)
{
    struct show *show = arg;
    size_t engines = 0;
    if (inspection->status != THOLE_INSTANCE_PENDING)
        return show_point(show, inspection);
    if (thole_client_engines(show->client, count_engine, &engines, NULL) != THOLE_OK)
        engines = SIZE_MAX;
    if (is_table(show))
        show_pending_table(show, inspection, engines);
    else
        show_pending_members(show, inspection, engines);
    return THOLE_OK;
}

/* The instance's row is set aside: the state in its history is shown instead. */
static void show_note_set_aside(struct show *show)
{
    bool missing = false;
    if (thole_client_set_aside(show->client, show->instance, set_aside_note, &missing, NULL) == THOLE_OK)
        show->without_row = missing;
}

static void show_note_restored(struct show *show)
{
    struct restored_place const place = client_restored_place(show->client, show->instance);
    bool is = false;
    if (restored_receipt(show->client->connection, &place, &is, &show->receipt, NULL) != THOLE_OK || !is)
        buf_clear(&show->receipt);
}

/* Rows are made from the logs, and soon after a turn: of what is restored, what has had no turn yet, and what
 * has just had one there are none, nor of what Postgres refuses. False: there is nothing to show. */
static bool show_without_row(struct show *show, thole_error *reterr)
{
    thole_error error = {.status = THOLE_OK};
    show_note_set_aside(show);
    if (!show->without_row)
        show_note_restored(show);
    error.status = thole_client_inspect(show->client, show->instance, show_unprojected, show, &error);
    if (error.status != THOLE_OK)
        *reterr = error;
    return error.status == THOLE_OK;
}

static int show_now(struct show *show)
{
    const struct cli *cli = show->cli;
    thole_error error = {.status = THOLE_OK};
    int code = EXIT_DONE;
    show->client = cli_connect(cli, &code);
    if (show->client == NULL)
        return code;
    error.status = thole_client_show(show->client, show->instance, show_row, show, &error);
    if (error.status == THOLE_OK)
        show_rest(show);
    else if (error.status != THOLE_NOT_FOUND || !show_without_row(show, &error))
        code = cli_complain(cli, cli->words[0], &error);
    thole_client_close(show->client);
    return code;
}

int command_show(struct cli *cli)
{
    struct show show = {.cli = cli};
    if (cli->words_len == 0 && cli->options.file == NULL)
        return cli_misused(cli, "ID is missing");
    if (!point_read(cli, &show.point))
        return EXIT_USAGE;
    if (cli->options.source && (cli->options.at != NULL || cli->options.file != NULL))
        return cli_misused(
            cli, "--source is where the code waits now; of earlier: PROGRAM replay ID --until EVENT");
    bool const past = cli->options.at != NULL || cli->options.file != NULL;
    show.instance = cli->words_len > 0 ? thole_slice_from(cli->words[0]) : (thole_slice){NULL, 0};
    pending_init(&show.pending, past);
    arena_init(&show.arena, ID_BYTES_MAX);
    buf_init(&show.receipt, RESTORED_RECEIPT_BYTES_MAX);
    int const code = cli->options.file != NULL ? show_file(&show) : past ? show_past(&show) : show_now(&show);
    pending_release(&show.pending);
    arena_release(&show.arena);
    buf_release(&show.receipt);
    return code;
}
