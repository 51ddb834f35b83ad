/* `thole completion`: completion for a shell, made from the table of verbs. The scripts know verbs, options
 * and the values of choices; ids of instances they ask of `thole list -o name`. */
#include "command.h"
#include <stdio.h>
#include <string.h>

enum { SCRIPT_BYTES_MAX = 256 * 1024 };

static const char *const shells[] = {"bash", "zsh", "fish"};

/* The kind of an option's value, or of a verb's word. */
enum value { VALUE_NONE, VALUE_ANY, VALUE_CHOICE, VALUE_FILE, VALUE_DIR, VALUE_INSTANCE };

static enum value value_of(const struct option_row *row)
{
    if (row->kind == OPTION_SWITCH)
        return VALUE_NONE;
    if (row->choices != NULL)
        return VALUE_CHOICE;
    if (row->unit == NULL)
        return VALUE_ANY;
    if (strstr(row->unit, "FILE") != NULL)
        return VALUE_FILE;
    if (strcmp(row->unit, "DIR") == 0)
        return VALUE_DIR;
    return strcmp(row->flag, "parent") == 0 || strcmp(row->flag, "instance") == 0 ? VALUE_INSTANCE
                                                                                  : VALUE_ANY;
}

/* The first word of a verb is an instance's id. */
static bool takes_id(const struct command *command)
{
    return strncmp(command->usage, "ID", 2) == 0 || strncmp(command->usage, "[ID]", 4) == 0;
}

/* Whether the word is another verb's name. */
static bool takes_verb(const struct command *command)
{
    return strcmp(command->usage, "[VERB]") == 0;
}

/* Words that a verb begins with, such as "list|poisoned|retry"; NULL: none. Not NUL-terminated: *ret_len. */
static const char *completion_command_subverbs(const struct command *command, size_t *ret_len)
{
    *ret_len = strcspn(command->usage, " ");
    return *ret_len > 0 && strchr("abcdefghijklmnopqrstuvwxyz", command->usage[0]) != NULL ? command->usage
                                                                                           : NULL;
}

/* In single quotes of a shell. */
static void completion_command_quoted(struct buf *to, const char *text)
{
    buf_text(to, "'");
    for (; *text != '\0'; text++)
        if (*text == '\'')
            buf_text(to, "'\\''");
        else
            buf_append(to, text, 1);
    buf_text(to, "'");
}

static void completion_command_words(struct buf *to, const char *list, size_t len)
{
    for (size_t i = 0; i < len; i++)
        buf_append(to, list[i] == '|' ? " " : &list[i], 1);
}

static void completion_command_choices(struct buf *to, const struct option_row *row)
{
    for (size_t i = 0; row->choices[i] != NULL; i++)
        buf_printf(to, "%s%s", i == 0 ? "" : " ", row->choices[i]);
}

static void verb_names(struct buf *to, const struct verbs *verbs)
{
    for (size_t i = 0; i < verbs->commands_len; i++)
        buf_printf(to, "%s%s", i == 0 ? "" : " ", verbs->commands[i].name);
}

/* ---- bash ---- */

static void bash_flags(struct buf *to, const struct option_row *rows, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (!rows[i].hidden)
            buf_printf(to, " --%s", rows[i].flag);
}

static void bash_value(struct buf *to, const char *verb, const struct option_row *row)
{
    static const char *const kinds[] = {[VALUE_FILE] = "file", [VALUE_DIR] = "dir", [VALUE_INSTANCE] = "id"};
    enum value const value = value_of(row);
    if (row->hidden || value == VALUE_NONE)
        return;
    buf_printf(to, "        %s:--%s", verb, row->flag);
    if (row->letter != 0)
        buf_printf(to, " | %s:-%c", verb, row->letter);
    buf_text(to, ") ");
    if (value == VALUE_CHOICE) {
        buf_text(to, "_thole_words '");
        completion_command_choices(to, row);
        buf_text(to, "'");
    } else {
        buf_printf(to, "_thole_%s", value == VALUE_ANY ? "nothing" : kinds[value]);
    }
    buf_text(to, "; return ;;\n");
}

static void bash_verb(struct buf *to, const struct verbs *verbs, const struct command *command)
{
    size_t len;
    const char *first = completion_command_subverbs(command, &len);
    buf_printf(to, "        %s) flags='", command->name);
    bash_flags(to, command->rows, command->rows_len);
    buf_text(to, "'; first='");
    if (first != NULL)
        completion_command_words(to, first, len);
    else if (takes_verb(command))
        verb_names(to, verbs);
    else if (takes_id(command))
        buf_text(to, "@id");
    buf_text(to, "' ;;\n");
}

static const char bash_functions[] =
    "# bash completion of thole. Load it with: source <(thole completion bash)\n"
    "# or write it to /etc/bash_completion.d/thole.\n"
    "_thole_words() { mapfile -t COMPREPLY < <(compgen -W \"$1\" -- \"$cur\"); }\n"
    "_thole_file() { compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -f -- \"${cur#@}\"); "
    "}\n"
    "_thole_dir() { compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -d -- \"$cur\"); }\n"
    "_thole_nothing() { COMPREPLY=(); }\n"
    "# Ids that begin so, from the projection; none when no server answers. Bash has split words at each of\n"
    "# COMP_WORDBREAKS, such as a colon: what stands before the last one is on the line already.\n"
    "_thole_id() {\n"
    "    local id before=''\n"
    "    COMPREPLY=()\n"
    "    [[ $cur = *[:=]* && $COMP_WORDBREAKS = *:* ]] && before=${cur%\"${cur##*[:=]}\"}\n"
    "    while IFS= read -r id; do\n"
    "        id=$(printf '%q' \"$id\")\n"
    "        COMPREPLY+=(\"${id#\"$before\"}\")\n"
    "    done < <(\"$program\" list -o name --limit 100 --timeout 1s --prefix \"$cur\" 2>/dev/null)\n"
    "}\n"
    "_thole() {\n";

static const char bash_begin[] = "    local words=() joined i\n"
                                 "    for ((i = 0; i <= COMP_CWORD; i++)); do # a:b=c is one word again\n"
                                 "        joined=${COMP_WORDS[i]}\n"
                                 "        if ((i > 1)) && [[ $joined != -* && ${words[-1]} != -* ]] &&\n"
                                 "            [[ $joined = [:=]* || ${words[-1]} = ?*[:=] ]]; then "
                                 "words[-1]+=$joined; else words+=(\"$joined\"); fi\n"
                                 "    done\n"
                                 "    local COMP_WORDS=(\"${words[@]}\") COMP_CWORD=$((${#words[@]} - 1))\n"
                                 "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} "
                                 "program=${COMP_WORDS[0]/#\\~/$HOME}\n"
                                 "    local verb='' verb_at=0 flags='' first=''\n"
                                 "    COMPREPLY=()\n"
                                 "    if [ \"$cur\" = '=' ]; then cur=''; elif [ \"$prev\" = '=' ]; then "
                                 "prev=${COMP_WORDS[COMP_CWORD-2]}; fi\n"
                                 "    for ((i = 1; i < COMP_CWORD; i++)); do\n"
                                 "        case ${COMP_WORDS[i]} in\n"
                                 "            --) _thole_file; return ;;\n"
                                 "            -*) ;;\n"
                                 "            *) if [[ \" $verbs \" = *\" ${COMP_WORDS[i]} \"* ]]; then\n"
                                 "                verb=${COMP_WORDS[i]}; verb_at=$i; break\n"
                                 "            fi ;;\n"
                                 "        esac\n"
                                 "    done\n"
                                 "    case $verb:$prev in\n";

static void bash_script(struct buf *to, const struct verbs *verbs)
{
    const struct command *commands = verbs->commands;
    buf_text(to, bash_functions);
    buf_text(to, "    local verbs='");
    verb_names(to, verbs);
    buf_text(to, "'\n");
    buf_text(to, bash_begin);
    for (size_t i = 0; i < verbs->commands_len; i++)
        for (size_t k = 0; k < commands[i].rows_len; k++)
            bash_value(to, commands[i].name, &commands[i].rows[k]);
    for (size_t k = 0; k < verbs->options_len; k++)
        bash_value(to, "*", &verbs->options[k]);
    buf_text(to, "    esac\n    case $verb in\n");
    for (size_t i = 0; i < verbs->commands_len; i++)
        bash_verb(to, verbs, &commands[i]);
    buf_text(to, "    esac\n    case $cur in\n        -*) _thole_words \"$flags");
    bash_flags(to, verbs->options, verbs->options_len);
    buf_text(to, "\"; return ;;\n    esac\n"
                 "    if [ -z \"$verb\" ]; then _thole_words \"$verbs\"\n"
                 "    elif ((COMP_CWORD != verb_at + 1)); then _thole_file\n"
                 "    elif [ \"$first\" = @id ]; then _thole_id\n"
                 "    elif [ -n \"$first\" ]; then _thole_words \"$first\"\n"
                 "    else _thole_file\n    fi\n}\n"
                 "complete -F _thole thole\n");
}

/* ---- zsh ---- */

/* In a specification of _arguments, within single quotes. */
static void zsh_text(struct buf *to, const char *text)
{
    for (; *text != '\0'; text++) {
        if (strchr("[]:\\", *text) != NULL)
            buf_text(to, "\\");
        if (*text == '\'')
            buf_text(to, "'\\''");
        else
            buf_append(to, text, 1);
    }
}

static void zsh_option(struct buf *to, const struct option_row *row)
{
    enum value const value = value_of(row);
    if (row->hidden)
        return;
    if (row->letter != 0)
        buf_printf(to, " \\\n        '(-%c --%s)'{-%c,--%s}'[", row->letter, row->flag, row->letter,
                   row->flag);
    else
        buf_printf(to, " \\\n        '--%s[", row->flag);
    zsh_text(to, row->help);
    buf_text(to, "]");
    if (value != VALUE_NONE) {
        buf_text(to, ":");
        zsh_text(to, row->unit == NULL ? "value" : row->unit);
        buf_text(to, ":");
    }
    switch (value) {
    case VALUE_CHOICE:
        buf_text(to, "(");
        completion_command_choices(to, row);
        buf_text(to, ")");
        break;
    case VALUE_FILE: buf_text(to, "_files"); break;
    case VALUE_DIR: buf_text(to, "_files -/"); break;
    case VALUE_INSTANCE: buf_text(to, "_thole_ids"); break;
    case VALUE_NONE:
    case VALUE_ANY: break;
    }
    buf_text(to, "'");
}

static void zsh_verb(struct buf *to, const struct command *command)
{
    size_t len;
    const char *first = completion_command_subverbs(command, &len);
    buf_printf(to, "    %s) _arguments $common", command->name);
    for (size_t k = 0; k < command->rows_len; k++)
        zsh_option(to, &command->rows[k]);
    if (first != NULL) {
        buf_text(to, " \\\n        '1:word:(");
        completion_command_words(to, first, len);
        buf_text(to, ")'");
    } else if (takes_id(command)) {
        buf_text(to, " \\\n        '1:instance:_thole_ids'");
    } else if (takes_verb(command)) {
        buf_text(to, " \\\n        '1:verb:($names)'");
    }
    buf_text(to, " \\\n        '*: :_files' ;;\n");
}

static void zsh_script(struct buf *to, const struct verbs *verbs)
{
    const struct command *commands = verbs->commands;
    buf_text(to, "#compdef thole\n"
                 "# zsh completion of thole. Write it as _thole to a folder of $fpath, or load it with:\n"
                 "# source <(thole completion zsh)\n"
                 "_thole_ids() {\n    local -a ids\n"
                 "    ids=(${(f)\"$(thole list -o name --limit 100 --timeout 1s --prefix \"$PREFIX\" "
                 "2>/dev/null)\"})\n"
                 "    compadd -a ids\n}\n"
                 "_thole() {\n    local curcontext=\"$curcontext\" state line\n    local -a verbs common "
                 "names\n    names=(");
    verb_names(to, verbs);
    buf_text(to, ")\n    verbs=(");
    for (size_t i = 0; i < verbs->commands_len; i++) {
        buf_printf(to, "\n        '%s:", commands[i].name);
        zsh_text(to, commands[i].summary);
        buf_text(to, "'");
    }
    buf_text(to, ")\n    common=(");
    for (size_t k = 0; k < verbs->options_len; k++)
        zsh_option(to, &verbs->options[k]);
    buf_text(to, ")\n    _arguments -C $common '1: :->verb' '*:: :->rest'\n"
                 "    [[ $state = verb ]] && _describe -t verbs verb verbs\n"
                 "    [[ $state = rest ]] && case $words[1] in\n");
    for (size_t i = 0; i < verbs->commands_len; i++)
        zsh_verb(to, &commands[i]);
    buf_text(
        to,
        "    esac\n}\nif [[ $funcstack[1] = _thole ]]; then _thole \"$@\"; else compdef _thole thole; fi\n");
}

/* ---- fish ---- */

static void fish_option(struct buf *to, const char *condition, const struct option_row *row)
{
    enum value const value = value_of(row);
    if (row->hidden)
        return;
    buf_printf(to, "complete -c thole %s -l %s", condition, row->flag);
    if (row->letter != 0)
        buf_printf(to, " -s %c", row->letter);
    if (value != VALUE_NONE)
        buf_text(to, value == VALUE_FILE || value == VALUE_DIR ? " -r -F" : " -x");
    if (value == VALUE_CHOICE) {
        buf_text(to, " -a '");
        completion_command_choices(to, row);
        buf_text(to, "'");
    } else if (value == VALUE_INSTANCE) {
        buf_text(to, " -a '(__thole_ids)'");
    }
    buf_text(to, " -d ");
    completion_command_quoted(to, row->help);
    buf_text(to, "\n");
}

static void fish_verb(struct buf *to, const struct verbs *verbs, const struct command *command)
{
    char seen[96];
    size_t len;
    const char *first = completion_command_subverbs(command, &len);
    buf_printf(to, "complete -c thole -n __fish_use_subcommand -f -a %s -d ", command->name);
    completion_command_quoted(to, command->summary);
    buf_text(to, "\n");
    (void)snprintf(seen, sizeof seen, "-n '__fish_seen_subcommand_from %s'", command->name);
    for (size_t k = 0; k < command->rows_len; k++)
        fish_option(to, seen, &command->rows[k]);
    if (first != NULL) {
        buf_printf(to, "complete -c thole %s -f -a '", seen);
        completion_command_words(to, first, len);
        buf_text(to, "'\n");
    } else if (takes_id(command)) {
        buf_printf(to, "complete -c thole %s -f -a '(__thole_ids)'\n", seen);
    } else if (takes_verb(command)) {
        buf_printf(to, "complete -c thole %s -f -a '", seen);
        verb_names(to, verbs);
        buf_text(to, "'\n");
    }
}

static void fish_script(struct buf *to, const struct verbs *verbs)
{
    buf_text(to, "# fish completion of thole. Write it to ~/.config/fish/completions/thole.fish\n"
                 "function __thole_ids\n"
                 "    thole list -o name --limit 100 --timeout 1s --prefix (commandline -ct) 2>/dev/null\n"
                 "end\n");
    for (size_t k = 0; k < verbs->options_len; k++)
        fish_option(to, "", &verbs->options[k]);
    for (size_t i = 0; i < verbs->commands_len; i++)
        fish_verb(to, verbs, &verbs->commands[i]);
}

int command_completion(struct cli *cli)
{
    static void (*const scripts[])(struct buf * to, const struct verbs *verbs) = {bash_script, zsh_script,
                                                                                  fish_script};
    struct buf text;
    size_t which = 0;
    while (which < sizeof shells / sizeof shells[0] && strcmp(shells[which], cli->words[0]) != 0)
        which++;
    if (which == sizeof shells / sizeof shells[0])
        return cli_misused(cli, "\"%.60s\" is no shell that is known here: bash, zsh, fish", cli->words[0]);
    buf_init(&text, SCRIPT_BYTES_MAX);
    scripts[which](&text, cli->verbs);
    bool const whole = buf_status(&text) == THOLE_OK;
    if (whole)
        (void)fwrite(text.ptr, 1, text.len, stdout);
    buf_release(&text);
    return whole ? EXIT_DONE : EXIT_GENERIC;
}
