/* From argv to a verb, and the form of what it prints. */
#include "clock.h"
#include "command.h"
#include "context.h"
#include "values.h"
#include "yaml_output.h"
#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int check_words(const struct cli *cli)
{
    const struct command *command = cli->command;
    if (cli->words_len < command->words_min) {
        const char *word = command->usage;
        for (int i = 0; i < cli->words_len; i++)
            word += strcspn(word, " ") + 1;
        return cli_misused(cli, "%.*s is missing", (int)strcspn(word, " ["), word);
    }
    if (cli->words_len > command->words_max)
        return cli_misused(cli, "\"%.60s\" is one word too many", cli->words[command->words_max]);
    return EXIT_DONE;
}

/* The form that --output asks for, among those that the verb knows. */
static int settle_output(struct cli *cli)
{
    struct cli_options *const options = &cli->options;
    const struct command *command = cli->command;
    switch ((enum output)options->output) {
    case OUTPUT_TABLE:
    case OUTPUT_JSON:
    case OUTPUT_JSONL: return EXIT_DONE;
    case OUTPUT_NAME:
        if (command->names)
            return EXIT_DONE;
        options->output = OUTPUT_TABLE;
        return cli_misused(cli, "there is no list of names that %s could print", command->name);
    case OUTPUT_WIDE:
        cli->wide = true;
        options->output = OUTPUT_TABLE;
        return EXIT_DONE;
    case OUTPUT_YAML: break;
    }
    options->output = OUTPUT_JSON;
    if (command->program || command->early_stop || command->stays || options->follow || options->watch)
        return cli_misused(cli, "--output yaml is converted at the end; here use jsonl");
    return EXIT_DONE;
}

/* JSON is collected, and printed as YAML. */
static int run_for_yaml(struct cli *cli)
{
    FILE *const out = stdout;
    char *json = NULL;
    size_t len = 0;
    stdout = open_memstream(&json, &len);
    if (stdout == NULL) {
        stdout = out;
        return EXIT_GENERIC;
    }
    int const code = cli->command->run(cli);
    bool const whole = fclose(stdout) == 0;
    stdout = out;
    bool const good = whole && yaml_write(out, json, len);
    free(json);
    if (good || ferror(out) || code != EXIT_DONE)
        return code; /* cli_finish() reports an error of stdout */
    thole_error error = {.status = THOLE_UNSUPPORTED};
    (void)snprintf(error.text, sizeof error.text,
                   "this cannot be written as YAML: a text has characters that YAML lacks");
    return cli_complain_with(cli, "", &error, EXIT_GENERIC, "-o json");
}

static int run_verb(struct cli *cli)
{
    bool const yaml = cli->options.output == OUTPUT_YAML;
    int code = settle_output(cli);
    if (code != EXIT_DONE)
        return code;
    if (cli->options.help)
        return help_print(cli, cli->command, stdout);
    code = check_words(cli);
    if (code != EXIT_DONE)
        return code;
    return yaml ? run_for_yaml(cli) : cli->command->run(cli);
}

static int verb_is_missing(const struct cli *cli)
{
    if (cli_is_json(cli))
        return cli_misused(cli, "a verb is missing");
    (void)help_print(cli, NULL, stderr);
    return EXIT_USAGE;
}

static bool has_value(const struct option_row *rows, size_t len, const char *flag)
{
    for (size_t i = 0; i < len; i++)
        if (strcmp(rows[i].flag, flag) == 0 && rows[i].kind != OPTION_SWITCH)
            return true;
    return false;
}

/* Whether the next word is the value of this one, even when it is "--". The verb is not known yet. */
static bool takes_value(const char *word)
{
    bool takes = has_value(cli_verbs.options, cli_verbs.options_len, word + 2);
    for (size_t i = 0; i < cli_verbs.commands_len && !takes; i++)
        takes = has_value(cli_verbs.commands[i].rows, cli_verbs.commands[i].rows_len, word + 2);
    return takes;
}

static bool ends_options(int argc, char **argv, int i)
{
    return i < argc && strcmp(argv[i], "--") == 0 &&
           !(i > 1 && strncmp(argv[i - 1], "--", 2) == 0 && takes_value(argv[i - 1]));
}

/* Errors before --output are printed in its form too. */
static uint32_t output_wanted(int argc, char **argv)
{
    static const char *const forms[] = {"-ojson",  "-ojsonl",  "--output=json", "--output=jsonl",
                                        "-o json", "-o jsonl", "--output json", "--output jsonl"};
    char pair[32];
    for (int i = 1; i < argc && !ends_options(argc, argv, i); i++) {
        (void)snprintf(pair, sizeof pair, "%s %s", argv[i], i + 1 < argc ? argv[i + 1] : "");
        for (size_t k = 0; k < sizeof forms / sizeof forms[0]; k++)
            if (strcmp(forms[k], argv[i]) == 0 || strcmp(forms[k], pair) == 0)
                return k % 2 == 0 ? OUTPUT_JSON : OUTPUT_JSONL;
    }
    return OUTPUT_TABLE;
}

/* The verb's options are known only once the verb is: what stands before it is read first. */
static int words_behind_dashes(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "--") == 0)
            return argc - i - 1;
    return 0;
}

/* Options of --config, or else of the context. */
static thole_status read_files(struct cli *cli, const struct option_set *sets, size_t n,
                               const struct option_given *given, thole_error *reterr)
{
    char context[CONTEXT_PATH_BYTES];
    const char *path = cli->options.config;
    if (path == NULL || path[0] == '\0') {
        THOLE_TRY(context_path(cli->options.context, context, reterr));
        path = context;
    }
    if (path[0] == '\0')
        return THOLE_OK;
    THOLE_TRY(option_file_read(sets, n, path, given, &cli->config, reterr));
    if (cli->config.open_secret)
        (void)fprintf(
            stderr,
            "thole: warning: %s has a password in it, and everybody on this machine may read it: chmod o-r\n",
            path);
    return THOLE_OK;
}

static bool is_given(const struct option_set *set, const struct option_given *given, const char *flag)
{
    for (size_t i = 0; i < set->len; i++)
        if (given->row[i] && strcmp(set->rows[i].flag, flag) == 0)
            return true;
    return false;
}

static int command_line_parse_and_run(struct cli *cli, int argc, char **argv)
{
    struct option_set sets[] = {
        {.rows = cli_verbs.options, .len = cli_verbs.options_len, .target = &cli->options},
        {.target = &cli->options}};
    thole_error error = {.status = THOLE_OK};
    int first;
    struct option_given given, before; /* the verb */
    bool const defaults = options_defaults(sets, 1, &error) == THOLE_OK;
    thole_error const why = error;
    if (options_read(sets, 1, true, argc, argv, &first, &before, &error) != THOLE_OK ||
        options_refuse_secrets(sets, 1, &before, &error) != THOLE_OK)
        return cli_misused(cli, "%s", error.text);
    cli->ns_given = is_given(sets, &before, "namespace");
    if (cli->options.version)
        return command_version(cli);
    if (first >= argc)
        return cli->options.help ? help_print(cli, NULL, stdout) : verb_is_missing(cli);
    cli->command = verbs_find(&cli_verbs, argv[first]);
    if (cli->command == NULL)
        return no_such_verb(cli, argv[first]);
    if (!defaults && !cli->command->local)
        return cli_misused(cli, "%s", why.text);
    sets[1].rows = cli->command->rows;
    sets[1].len = cli->command->rows_len;
    argc -= first;
    argv += first;
    cli->program_len = cli->command->program ? words_behind_dashes(argc, argv) : 0;
    if (options_defaults(sets + 1, 1, &error) != THOLE_OK ||
        options_read(sets, sizeof sets / sizeof sets[0], cli->command->early_stop, argc, argv, &first, &given,
                     &error) != THOLE_OK ||
        options_refuse_secrets(sets, sizeof sets / sizeof sets[0], &given, &error) != THOLE_OK)
        return cli_misused(cli, "%s", error.text);
    cli->ns_given = cli->ns_given || is_given(sets, &given, "namespace");
    bool const reads = !cli->command->local;
    bool const named = cli->options.config != NULL && cli->options.config[0] != '\0';
    thole_status const status =
        reads ? read_files(cli, sets, sizeof sets / sizeof sets[0], &given, &error) : THOLE_OK;
    if (status == THOLE_NOT_FOUND)
        return cli_complain_with(cli, "", &error, EXIT_NOT_FOUND,
                                 named ? "the path of a file with options" : "thole context list");
    if (status != THOLE_OK)
        return cli_misused(cli, "%s", error.text);
    cli->words = argv + first;
    cli->words_len = argc - first;
    return cli->options.version ? command_version(cli) : run_verb(cli);
}

int cli_main(int argc, char **argv)
{
    if (argc > 1 && (strcmp(argv[1], "gateway") == 0 || strcmp(argv[1], "binder") == 0))
        return role_main(argc, argv); /* a role of libthole, with its options */
    struct cli cli;
    memset(&cli, 0, sizeof cli);
    cli.verbs = &cli_verbs;
    cli.begun_ms = clock_monotonic_ms();
    cli.options.output = output_wanted(argc, argv);
    (void)signal(SIGPIPE, SIG_IGN); /* a broken pipe is seen where it is written to */
    int const code = cli_finish(&cli, command_line_parse_and_run(&cli, argc, argv));
    option_file_free(&cli.config);
    return code;
}
