/* start-many: one start for each line of JSON. */
#include "jscan.h"
#include "payload.h"
#include <errno.h>
#include <inttypes.h>
#include <string.h>

enum { LINE_MAX = 16 * 1024 * 1024, PART_BYTES = 65536 };

struct lines {
    const struct cli *cli;
    const char *name; /* of the file */
    FILE *from;
    uint64_t line; /* the last one that was read, from 1 */
    uint64_t stored, refused;
    int code; /* of the first that was refused */
    struct buf text, id, orchestration, input;
};

/* ---- what is said of a line ---- */

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

static void tell(struct lines *lines, uint64_t line, thole_slice id, const thole_error *error)
{
    lines->stored += error->status == THOLE_OK;
    lines->refused += error->status != THOLE_OK;
    if (error->status != THOLE_OK && lines->code == EXIT_DONE)
        lines->code = cli_exit_code(error->status);
    if (cli_is_json(lines->cli))
        tell_json(lines, line, id, error);
    else if (error->status != THOLE_OK)
        cli_note(lines->cli, "%s:%" PRIu64 ": %s", lines->name, line, error->text);
}

static thole_status on_answer(void *arg, uint64_t token, thole_slice instance, const thole_error *error)
{
    tell(arg, token, instance, error);
    return ferror(stdout) ? THOLE_APP : THOLE_OK;
}

/* ---- reading ---- */

/* False: the end of the file. A line that is too long is read to its end, and lines->text is full then. */
static bool read_line(struct lines *lines)
{
    static char part[PART_BYTES];
    bool more = true, any = false;
    buf_clear(&lines->text);
    while (more && fgets(part, sizeof part, lines->from) != NULL) {
        size_t const len = strlen(part);
        any = true;
        more = len == 0 || part[len - 1] != '\n';
        buf_append(&lines->text, part, len - (more ? 0 : 1));
    }
    lines->line += any;
    return any;
}

static bool field_text(thole_slice object, const char *key, struct buf *to)
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

static thole_status read_item(struct lines *lines, thole_start_item *ret, thole_error *reterr)
{
    thole_slice const object = buf_bytes(&lines->text);
    thole_slice value;
    uint64_t version = 0;
    buf_clear(&lines->id);
    buf_clear(&lines->orchestration);
    buf_clear(&lines->input);
    if (buf_status(&lines->text) != THOLE_OK)
        return thole_fail(reterr, THOLE_LIMIT, "the line is longer than %d bytes", LINE_MAX);
    if (!field_text(object, "id", &lines->id) || !field_text(object, "orchestration", &lines->orchestration))
        return thole_fail(reterr, THOLE_INVALID,
                          "not a JSON object with the texts \"id\" and \"orchestration\"");
    if (json_find(object, "version", &value) && (!json_uint(value, &version) || version > UINT32_MAX))
        return thole_fail(reterr, THOLE_INVALID, "\"version\" is not a number up to %" PRIu32, UINT32_MAX);
    if (!read_input(object, &lines->input))
        return thole_fail(reterr, THOLE_INVALID, "\"input\" or \"input_base64\" is malformed");
    ret->instance = buf_bytes(&lines->id);
    ret->orchestration = buf_bytes(&lines->orchestration);
    ret->input = buf_bytes(&lines->input);
    ret->version = (uint32_t)version;
    ret->token = lines->line;
    return THOLE_OK;
}

static bool is_blank(const struct buf *text)
{
    for (size_t i = 0; i < text->len; i++)
        if (strchr(" \t\r", text->ptr[i]) == NULL)
            return false;
    return buf_status(text) == THOLE_OK;
}

/* A line that is no start is told of, and the next one is read. */
static thole_status next_start(void *arg, thole_start_item *ret_item, thole_error *reterr)
{
    struct lines *const lines = arg;
    thole_error error = {.status = THOLE_OK};
    while (read_line(lines)) {
        if (is_blank(&lines->text))
            continue;
        if (read_item(lines, ret_item, &error) == THOLE_OK)
            return THOLE_OK;
        tell(lines, lines->line, buf_bytes(&lines->id), &error);
    }
    return ferror(lines->from)
               ? thole_fail(reterr, THOLE_INVALID, "%s cannot be read: %s", lines->name, strerror(errno))
               : THOLE_NOT_FOUND;
}

/* ---- the verb ---- */

static bool open_lines(const struct cli *cli, struct lines *ret, int *ret_code)
{
    const char *const name = cli->words_len > 0 ? cli->words[0] : "-";
    thole_error error = {.status = THOLE_NOT_FOUND};
    bool const standard = strcmp(name, "-") == 0;
    *ret = (struct lines){.cli = cli, .name = standard ? "stdin" : name, .code = EXIT_DONE};
    ret->from = standard ? stdin : fopen(name, "re");
    if (ret->from == NULL) {
        (void)snprintf(error.text, sizeof error.text, "%s cannot be opened: %s", name, strerror(errno));
        *ret_code =
            cli_complain_with(cli, name, &error, EXIT_NOT_FOUND, "a file with one JSON object in each line");
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

int command_start_many(struct cli *cli)
{
    struct lines lines;
    thole_error error = {.status = THOLE_OK};
    int code = EXIT_DONE;
    if (!open_lines(cli, &lines, &code))
        return code;
    thole_client *const client = cli_connect(cli, &code);
    if (client != NULL) {
        error.status = thole_client_start_many(client, next_start, on_answer, &lines, &error);
        if (!cli_is_json(cli))
            printf("%" PRIu64 " stored, %" PRIu64 " refused\n", lines.stored, lines.refused);
        code =
            error.status == THOLE_OK || ferror(stdout) ? lines.code : cli_complain(cli, lines.name, &error);
    }
    thole_client_close(client);
    close_lines(&lines);
    return cli_finish(cli, code);
}
