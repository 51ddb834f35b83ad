/* `thole man`: manual pages in man(7)'s form, made from the table of verbs and its option rows. */
#include "command.h"
#include "text.h"
#include "thole/program.h"
#include "write_flaw.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { PAGE_BYTES_MAX = 256 * 1024, PATH_BYTES_MAX = 4096 };

/* Text of a line: backslashes, dashes, and what begins a line are not taken for requests. */
static void man_command_roff(struct buf *to, const char *text)
{
    bool start = true;
    for (; *text != '\0'; text++) {
        if (start && (*text == '.' || *text == '\''))
            buf_text(to, "\\&");
        if (*text == '\\')
            buf_text(to, "\\e");
        else if (*text == '-')
            buf_text(to, "\\-");
        else
            buf_append(to, text, 1);
        start = *text == '\n';
    }
}

static void man_command_title(struct buf *to, const char *verb, const char *summary)
{
    buf_printf(
        to, ".\\\" Made by thole man from its table of verbs.\n.TH THOLE%s%s 1 \"\" \"thole %s\" \"thole\"\n",
        verb[0] == '\0' ? "" : "\\-", verb, thole_version());
    buf_printf(to, ".SH NAME\nthole%s%s \\- ", verb[0] == '\0' ? "" : "\\-", verb);
    man_command_roff(to, summary);
    buf_text(to, "\n");
}

static void man_command_option(struct buf *to, const struct option_row *row)
{
    if (row->hidden)
        return;
    buf_text(to, ".TP\n.B ");
    if (row->letter != 0)
        buf_printf(to, "\\-%c, ", row->letter);
    buf_text(to, "\\-\\-");
    man_command_roff(to, row->flag);
    for (size_t k = 0; row->choices != NULL && row->choices[k] != NULL; k++) {
        buf_text(to, k == 0 ? " " : "|");
        man_command_roff(to, row->choices[k]);
    }
    if (row->choices == NULL && row->unit != NULL) {
        buf_text(to, " ");
        man_command_roff(to, row->unit);
    }
    buf_text(to, "\n");
    man_command_roff(to, row->help);
    buf_text(to, ".\n");
    if (row->env != NULL)
        buf_printf(to, "Environment: %s.\n", row->env);
    if (row->shown != NULL || (row->fallback != NULL && row->fallback[0] != '\0')) {
        buf_text(to, "Default: ");
        man_command_roff(to, row->shown != NULL ? row->shown : row->fallback);
        buf_text(to, ".\n");
    }
}

static void man_command_options(struct buf *to, const char *heading, const struct option_row *rows,
                                size_t len)
{
    if (len == 0)
        return;
    buf_printf(to, ".SH %s\n", heading);
    for (size_t i = 0; i < len; i++)
        man_command_option(to, &rows[i]);
}

static void man_command_examples(struct buf *to, const char *text)
{
    buf_text(to, ".SH EXAMPLES\n.nf\n");
    for (; *text != '\0'; text += strspn(text, " \n")) {
        char line[512];
        size_t const len = strcspn(text, "\n");
        (void)snprintf(line, sizeof line, "%.*s", (int)len, text);
        man_command_roff(to, line);
        buf_text(to, "\n");
        text += len;
    }
    buf_text(to, ".fi\n");
}

static void exit_status(struct buf *to)
{
    buf_text(to, ".SH EXIT STATUS\n");
    for (size_t i = 0; i < EXIT_CODES; i++) {
        buf_printf(to, ".TP\n.B %d\n", exit_codes[i].code);
        man_command_roff(to, exit_codes[i].text);
        buf_text(to, "\n");
    }
}

static void see_also(struct buf *to, const struct verbs *verbs, const struct command *except)
{
    buf_text(to, ".SH SEE ALSO\n");
    if (except != NULL)
        buf_text(to, ".BR thole (1)\n");
    for (size_t i = 0; except == NULL && i < verbs->commands_len; i++)
        buf_printf(to, ".BR thole\\-%s (1)%s\n", verbs->commands[i].name,
                   i + 1 < verbs->commands_len ? "," : "");
}

static void page_of_verb(struct buf *to, const struct verbs *verbs, const struct command *command)
{
    man_command_title(to, command->name, command->summary);
    buf_printf(to, ".SH SYNOPSIS\n.B thole %s\n", command->name);
    man_command_roff(to, command->usage);
    buf_text(to, "\n[OPTION]...\n");
    man_command_options(to, "OPTIONS", command->rows, command->rows_len);
    man_command_options(to, "OPTIONS OF EVERY VERB", verbs->options, verbs->options_len);
    exit_status(to);
    man_command_examples(to, command->example);
    see_also(to, verbs, command);
}

static void page_of_all(struct buf *to, const struct verbs *verbs)
{
    man_command_title(to, "", "durable execution on NATS JetStream and Postgres");
    buf_text(to, ".SH SYNOPSIS\n.B thole\nVERB [WORD]... [OPTION]...\n.SH VERBS\n");
    for (size_t i = 0; i < verbs->commands_len; i++) {
        buf_printf(to, ".TP\n.B %s ", verbs->commands[i].name);
        man_command_roff(to, verbs->commands[i].usage);
        buf_text(to, "\n");
        man_command_roff(to, verbs->commands[i].summary);
        buf_text(to, ".\n");
    }
    man_command_options(to, "OPTIONS OF EVERY VERB", verbs->options, verbs->options_len);
    exit_status(to);
    man_command_examples(
        to, "thole dev -- ./checkout run\nthole start checkout --id order-17 --input 'order=17'");
    see_also(to, verbs, NULL);
}

/* The page of a verb, or of the command (NULL), to stdout or a file. */
static int write_page(const struct cli *cli, const struct command *command, FILE *file)
{
    struct buf text;
    buf_init(&text, PAGE_BYTES_MAX);
    if (command == NULL)
        page_of_all(&text, cli->verbs);
    else
        page_of_verb(&text, cli->verbs, command);
    bool const whole = buf_status(&text) == THOLE_OK;
    if (whole)
        (void)fwrite(text.ptr, 1, text.len, file);
    buf_release(&text);
    return whole ? EXIT_DONE : EXIT_GENERIC;
}

static int man_command_write_file(const struct cli *cli, const struct command *command)
{
    char path[PATH_BYTES_MAX];
    int const n = snprintf(path, sizeof path, "%s/thole%s%s.1", cli->options.dir, command == NULL ? "" : "-",
                           command == NULL ? "" : command->name);
    if (n < 0 || (size_t)n >= sizeof path)
        return cli_misused(cli, "--dir: the path is too long");
    FILE *file = fopen(path, "we");
    if (file == NULL)
        return cli_unwritten(cli, path, errno);
    int const code = write_page(cli, command, file);
    int const flaw = write_flaw_close(file);
    return flaw == 0 || code != EXIT_DONE ? code : cli_unwritten(cli, path, flaw);
}

int command_man(struct cli *cli)
{
    const struct command *command = cli->words_len == 0 ? NULL : verbs_find(cli->verbs, cli->words[0]);
    if (cli->words_len > 0 && command == NULL)
        return no_such_verb(cli, cli->words[0]);
    if (cli->options.dir == NULL)
        return write_page(cli, command, stdout);
    if (command != NULL)
        return cli_misused(cli, "--dir is for the pages of all verbs");
    int code = man_command_write_file(cli, NULL);
    for (size_t i = 0; i < cli->verbs->commands_len && code == EXIT_DONE; i++)
        code = man_command_write_file(cli, &cli->verbs->commands[i]);
    return code;
}
