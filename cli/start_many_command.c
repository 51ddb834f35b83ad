/* start-many: one start for each line of JSON. */
#include "client_known.h"
#include "jscan.h"
#include "json_check.h"
#include "line_read.h"
#include "message.h"
#include "payload.h"
#include "range.h"
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <string.h>

enum { LINE_MAX = 16 * 1024 * 1024, ASKED_MAX = 64 };

/* The engines' answer about an orchestration, from when a line named it first. */
struct asked {
    char name[THOLE_NAME_BYTES_MAX + 1];
    uint32_t version;
    thole_error error; /* THOLE_OK: one knows it */
};

struct lines {
    const struct cli *cli;
    thole_client *client;
    const char *name; /* of the file */
    FILE *from;
    uint64_t line;    /* the last one that was read, from 1 */
    uint64_t handled; /* the last one that was started, refused or skipped */
    uint64_t stored, refused;
    int code;   /* of the first that was refused */
    int unread; /* an errno: the lines cannot be read any further */
    struct buf text, id, orchestration, input;
    struct asked asked[ASKED_MAX];
    size_t asked_len;
};

static volatile sig_atomic_t interrupted;

static void on_interrupt(int number)
{
    (void)number;
    interrupted = 1;
}

/* ---- output of a line ---- */

static void tell_json(const struct lines *lines, uint64_t line, thole_slice id, const thole_error *error)
{
    struct json json;
    (void)lines;
    json_document(&json, stdout, "thole.start_many.v1");
    json_member_number(&json, "line", line);
    json_member(&json, "instance", id);
    json_member_text(&json, "status",
                     error->status == THOLE_OK ? "STORED" : thole_status_name(error->status));
    if (error->status != THOLE_OK)
        json_member_text(&json, "error", error->text);
    json_end(&json);
}

static void tell_as(struct lines *lines, uint64_t line, thole_slice id, const thole_error *error, int code)
{
    lines->stored += error->status == THOLE_OK;
    lines->refused += error->status != THOLE_OK;
    if (error->status != THOLE_OK && lines->code == EXIT_DONE)
        lines->code = code;
    if (cli_is_json(lines->cli))
        tell_json(lines, line, id, error);
    else if (error->status != THOLE_OK)
        cli_note(lines->cli, "%s:%" PRIu64 ": %s", lines->name, line, error->text);
}

static void start_many_command_notify(struct lines *lines, uint64_t line, thole_slice id,
                                      const thole_error *error)
{
    tell_as(lines, line, id, error, cli_exit_code(error->status));
}

static thole_status start_many_command_on_answer(void *arg, uint64_t token, thole_slice instance,
                                                 const thole_error *error)
{
    start_many_command_notify(arg, token, instance, error);
    return ferror(stdout) ? THOLE_APP : THOLE_OK;
}

/* ---- reading ---- */

/* False: the end of the file. */
static bool start_line_read(struct lines *lines)
{
    bool const any = line_read(lines->from, &lines->text) != LINE_READ_NONE;
    lines->line += any;
    return any;
}

static bool start_many_command_field_text(thole_slice object, const char *key, struct buf *to)
{
    thole_slice value;
    return json_find(object, key, &value) && json_text(value, to);
}

/* A string is its text; any other value is its JSON. */
static bool read_input(thole_slice object, struct buf *to)
{
    thole_slice value;
    if (json_find(object, "input_base64", &value)) {
        struct buf text;
        buf_init(&text, LINE_MAX);
        bool const good = json_text(value, &text) && base64_decode(buf_bytes(&text), to);
        buf_release(&text);
        return good;
    }
    if (!json_find(object, "input", &value))
        return true;
    if (value.len > 0 && value.ptr[0] == '"')
        return json_text(value, to);
    buf_slice(to, value);
    return buf_status(to) == THOLE_OK;
}

/* All of the line, not only the members that are looked up in it. */
static thole_status start_line_check(thole_slice object, thole_error *reterr)
{
    thole_slice value;
    THOLE_TRY(json_check(object, reterr));
    THOLE_TRY(json_members_check(object, "", "id orchestration input input_base64 version", reterr));
    if (json_find(object, "input", &value) && json_find(object, "input_base64", &value))
        return thole_fail(reterr, THOLE_INVALID, "\"input\" and \"input_base64\" are both there");
    return THOLE_OK;
}

static thole_status start_many_command_read_item(struct lines *lines, thole_start_item *ret,
                                                 thole_error *reterr)
{
    thole_slice const object = buf_bytes(&lines->text);
    thole_slice value;
    uint64_t version = 0;
    buf_clear(&lines->id);
    buf_clear(&lines->orchestration);
    buf_clear(&lines->input);
    if (buf_status(&lines->text) != THOLE_OK)
        return thole_fail(reterr, THOLE_LIMIT, "the line is longer than %d bytes", LINE_MAX);
    THOLE_TRY(start_line_check(object, reterr));
    if (!start_many_command_field_text(object, "id", &lines->id) ||
        !start_many_command_field_text(object, "orchestration", &lines->orchestration))
        return thole_fail(reterr, THOLE_INVALID,
                          "not a JSON object with the texts \"id\" and \"orchestration\"");
    if (json_find(object, "version", &value) && (!json_uint(value, &version) || version > RANGE_INT4))
        return thole_fail(reterr, THOLE_INVALID, "\"version\" is not a number up to %d", RANGE_INT4);
    if (!read_input(object, &lines->input))
        return thole_fail(reterr, THOLE_INVALID, "\"input\" or \"input_base64\" is malformed");
    ret->instance = buf_bytes(&lines->id);
    ret->orchestration = buf_bytes(&lines->orchestration);
    ret->input = buf_bytes(&lines->input);
    ret->version = (uint32_t)version;
    ret->token = lines->line;
    return THOLE_OK;
}

/* ---- orchestrations that the engines know ---- */

static void start_many_command_ask_engines(const struct lines *lines, const thole_start_item *item,
                                           struct asked *ret)
{
    enum known known = KNOWN_YES;
    char near[THOLE_NAME_BYTES_MAX + 1];
    ret->error = (thole_error){.status = THOLE_OK};
    (void)snprintf(ret->name, sizeof ret->name, "%.*s", THOLE_FMT(item->orchestration));
    ret->version = item->version;
    ret->error.status =
        client_engines_know(lines->client, item->orchestration, item->version, &known, near, &ret->error);
    if (ret->error.status == THOLE_OK && known != KNOWN_YES)
        client_unknown_text(item->orchestration, item->version, lines->cli->options.ns, known, near,
                            &ret->error);
}

/* Looks each name up once. False: the line is not started, and the user was told why. */
static bool line_is_known(struct lines *lines, const thole_start_item *item)
{
    bool const required = lines->cli->options.require_known;
    struct asked *asked = lines->asked;
    if (name_check(item->orchestration, "orchestration", NULL) != THOLE_OK)
        return true; /* the client refuses it, and says why */
    while (asked < lines->asked + lines->asked_len &&
           !(asked->version == item->version &&
             thole_slice_equal(thole_slice_from(asked->name), item->orchestration)))
        asked++;
    if (asked == lines->asked + lines->asked_len) {
        if (lines->asked_len < ASKED_MAX)
            lines->asked_len++;
        else
            asked--; /* the last place is for all that are more */
        start_many_command_ask_engines(lines, item, asked);
        if (!required && asked->error.status == THOLE_NOT_FOUND)
            cli_note(lines->cli, "%s:%" PRIu64 ": %s; what is started waits until one does", lines->name,
                     lines->line, asked->error.text);
    }
    if (asked->error.status == THOLE_OK || !required)
        return true;
    tell_as(lines, lines->line, item->instance, &asked->error,
            asked->error.status == THOLE_NOT_FOUND ? EXIT_NO_CODE : cli_exit_code(asked->error.status));
    return false;
}

/* ---- the source ---- */

static bool is_blank(const struct buf *text)
{
    for (size_t i = 0; i < text->len; i++)
        if (memchr(" \t\r", text->ptr[i], 3) == NULL)
            return false;
    return buf_status(text) == THOLE_OK;
}

/* A line that is no start is told of, and the next one is read. */
static thole_status next_start(void *arg, thole_start_item *ret_item, thole_error *reterr)
{
    (void)reterr; /* errors are reported for the line, or at the end */
    struct lines *const lines = arg;
    thole_error error = {.status = THOLE_OK};
    while (!interrupted && start_line_read(lines) && !interrupted) { /* which cuts the line that is read */
        lines->handled = lines->line;
        if (is_blank(&lines->text))
            continue;
        if (start_many_command_read_item(lines, ret_item, &error) != THOLE_OK)
            start_many_command_notify(lines, lines->line, buf_bytes(&lines->id), &error);
        else if (line_is_known(lines, ret_item))
            return THOLE_OK;
    }
    if (!interrupted && ferror(lines->from))
        lines->unread = errno;
    return THOLE_NOT_FOUND;
}

/* ---- the verb ---- */

static bool open_lines(const struct cli *cli, struct lines *ret, int *ret_code)
{
    const char *const name = cli->words_len > 0 ? cli->words[0] : "-";
    bool const standard = strcmp(name, "-") == 0;
    *ret = (struct lines){.cli = cli, .name = standard ? "stdin" : name, .code = EXIT_DONE};
    ret->from = standard ? stdin : fopen(name, "re");
    if (ret->from == NULL) {
        *ret_code = cli_unread(cli, name, errno, "a file with one JSON object in each line");
        return false;
    }
    buf_init(&ret->text, LINE_MAX);
    buf_init(&ret->id, LINE_MAX);
    buf_init(&ret->orchestration, LINE_MAX);
    buf_init(&ret->input, LINE_MAX);
    return true;
}

static void close_lines(struct lines *lines)
{
    if (lines->from != stdin)
        (void)fclose(lines->from);
    buf_release(&lines->text);
    buf_release(&lines->id);
    buf_release(&lines->orchestration);
    buf_release(&lines->input);
}

/* The first interrupt ends the reading, and what was sent is waited for; the second one ends the command. */
static void catch_interrupt(void)
{
    struct sigaction before, action = {.sa_handler = on_interrupt, .sa_flags = (int)SA_RESETHAND};
    (void)sigemptyset(&action.sa_mask);
    if (sigaction(SIGINT, NULL, &before) != 0 ||
        before.sa_handler == SIG_IGN) /* as a shell's background job */
        return;
    (void)sigaction(SIGINT, &action, NULL); /* without SA_RESTART: a read that waits returns */
}

static int start_lines(struct cli *cli, struct lines *lines)
{
    thole_error error = {.status = THOLE_OK};
    catch_interrupt();
    error.status =
        thole_client_start_many(lines->client, next_start, start_many_command_on_answer, lines, &error);
    if (!cli_is_json(cli))
        printf("%" PRIu64 " stored, %" PRIu64 " refused\n", lines->stored, lines->refused);
    if (interrupted)
        cli_note(cli, "interrupted after line %" PRIu64 ": what stands after it was not started",
                 lines->handled);
    if (error.status != THOLE_OK && !ferror(stdout))
        return cli_complain(cli, lines->name, &error);
    if (lines->unread != 0)
        return cli_unread(cli, lines->name, lines->unread, "a file with one JSON object in each line");
    return interrupted ? EXIT_INTERRUPTED : lines->code;
}

int command_start_many(struct cli *cli)
{
    struct lines lines;
    int code = EXIT_DONE;
    if (!open_lines(cli, &lines, &code))
        return code;
    lines.client = cli_connect(cli, &code);
    if (lines.client != NULL)
        code = start_lines(cli, &lines);
    thole_client_close(lines.client);
    close_lines(&lines);
    return code;
}
