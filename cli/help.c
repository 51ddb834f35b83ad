/* --help and `thole help`: for people, and with --output json for programs. */
#include "command.h"
#include "values.h"
#include <string.h>

enum { HELP_BYTES_MAX = 64 * 1024 };

const struct exit_code exit_codes[EXIT_CODES] = {
#define X(name, code, text) {code, text},
    EXIT_CODE_MAP(X)
#undef X
};

const struct command *verbs_find(const struct verbs *verbs, const char *name)
{
    for (size_t i = 0; i < verbs->commands_len; i++)
        if (strcmp(verbs->commands[i].name, name) == 0)
            return &verbs->commands[i];
    return NULL;
}

static void help_of_all(const struct verbs *verbs, struct buf *to)
{
    const struct command *commands = verbs->commands;
    buf_text(to,
             "usage: thole [OPTION]... VERB [WORD]... [OPTION]...\n\nDurable execution on NATS JetStream and "
             "Postgres.\n\nVerbs:\n");
    for (size_t i = 0; i < verbs->commands_len; i++)
        buf_printf(to, "  %-10s %s\n", commands[i].name, commands[i].summary);
    buf_text(to, "\nOptions of every verb, before or after it:\n");
    options_help(&(struct option_set){.rows = verbs->options, .len = verbs->options_len}, 0, to);
    buf_text(to, "\nExit codes:\n");
    for (size_t i = 0; i < EXIT_CODES; i++)
        buf_printf(to, "  %3d  %s\n", exit_codes[i].code, exit_codes[i].text);
    buf_text(to, "\nExamples:\n  thole dev -- ./checkout run\n");
    for (size_t i = 0; i < 2; i++)
        buf_printf(to, "  %s\n", commands[i].example);
}

static void help_of(const struct verbs *verbs, const struct command *command, struct buf *to)
{
    buf_printf(to, "usage: thole %s%s%s [OPTION]...\n\n%s.\n\n", command->name,
               command->usage[0] == '\0' ? "" : " ", command->usage, command->summary);
    if (command->rows_len > 0) {
        buf_text(to, "Options:\n");
        options_help(&(struct option_set){.rows = command->rows, .len = command->rows_len}, 0, to);
        buf_text(to, "\n");
    }
    buf_text(to, "Options of every verb:\n");
    options_help(&(struct option_set){.rows = verbs->options, .len = verbs->options_len}, 0, to);
    buf_printf(to, "\nExample:\n  %s\n", command->example);
}

static void verb_json(struct json *json, const struct command *command)
{
    json_object(json);
    json_member_text(json, "verb", command->name);
    json_member_text(json, "usage", command->usage);
    json_member_text(json, "summary", command->summary);
    json_member_text(json, "example", command->example);
    json_key(json, "options");
    json_array(json);
    for (size_t i = 0; i < command->rows_len; i++)
        if (!command->rows[i].hidden)
            json_string(json, thole_slice_from(command->rows[i].flag));
    json_end(json);
    json_end(json);
}

static void help_json(const struct verbs *verbs, const struct command *command)
{
    const struct command *commands = verbs->commands;
    struct json json;
    json_document(&json, stdout, "thole.help.v1");
    json_key(&json, "verbs");
    json_array(&json);
    for (size_t i = 0; i < verbs->commands_len; i++)
        if (command == NULL || command == &commands[i])
            verb_json(&json, &commands[i]);
    json_end(&json);
    json_key(&json, "exit_codes");
    json_array(&json);
    for (size_t i = 0; i < EXIT_CODES; i++) {
        json_object(&json);
        json_member_number(&json, "code", (uint64_t)exit_codes[i].code);
        json_member_text(&json, "meaning", exit_codes[i].text);
        json_end(&json);
    }
    json_end(&json);
    json_end(&json);
}

int help_print(const struct cli *cli, const struct command *command, FILE *to)
{
    struct buf text;
    if (cli_is_json(cli)) {
        help_json(cli->verbs, command);
        return EXIT_DONE;
    }
    buf_init(&text, HELP_BYTES_MAX);
    if (command == NULL)
        help_of_all(cli->verbs, &text);
    else
        help_of(cli->verbs, command, &text);
    bool const whole = buf_status(&text) == THOLE_OK;
    (void)fputs(buf_cstr(&text), to);
    buf_release(&text);
    return whole ? EXIT_DONE : EXIT_GENERIC;
}

int no_such_verb(const struct cli *cli, const char *name)
{
    enum { VERBS_MAX = 64 };
    const char *names[VERBS_MAX];
    size_t n = 0;
    for (; n < cli->verbs->commands_len && n < VERBS_MAX; n++)
        names[n] = cli->verbs->commands[n].name;
    const char *near = word_suggest(name, names, n);
    return cli_misused_try(cli, "thole help", "there is no verb \"%.60s\"%s%s%s", name,
                           near == NULL ? "" : "; did you mean ", near == NULL ? "" : near,
                           near == NULL ? "" : "?");
}

int command_help(struct cli *cli)
{
    const struct command *command = cli->words_len == 0 ? NULL : verbs_find(cli->verbs, cli->words[0]);
    if (cli->words_len > 0 && command == NULL)
        return no_such_verb(cli, cli->words[0]);
    return help_print(cli, command, stdout);
}
