/* replay: runs the program, which replays with its own code; passes the servers and the namespace on to it,
 * and what it prints on. */
#include "command.h"
#include "memory.h"
#include "write_flaw.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PART_BYTES = 8192 };

/* In the environment and not as arguments: an URL may hold a password, and everybody can read those. */
static void export_setting(const char *name, const char *value)
{
    if (value != NULL && value[0] != '\0')
        (void)setenv(name, value, 1);
}

static void export_settings(const struct cli_options *options)
{
    export_setting("THOLE_NATS_URL", options->nats_url);
    export_setting("THOLE_NATS_CREDS", options->nats_creds);
    export_setting("THOLE_NATS_CA", options->nats_ca);
    export_setting("THOLE_NATS_CERT", options->nats_cert);
    export_setting("THOLE_NATS_KEY", options->nats_key);
    export_setting("THOLE_NATS_SERVER_NAME", options->nats_server_name);
    export_setting("THOLE_NATS_INBOX", options->nats_inbox);
    export_setting("THOLE_NATS_API_PREFIX", options->nats_api_prefix);
    export_setting("THOLE_NAMESPACE", options->ns);
}

/* PROGRAM ARGUMENT... replay [--all] [--file FILE] [--until EVENT] [--break] -- ID... */
static char **make_arguments(const struct cli *cli, int ids)
{
    static char replay[] = "replay", all[] = "--all", file[] = "--file", end[] = "--";
    static char until[] = "--until", stop[] = "--break";
    static char json[] = "--output=json", jsonl[] = "--output=jsonl";
    char **made = memory_array((size_t)cli->words_len + 10, sizeof *made);
    size_t n = 0;
    for (int i = ids; i < cli->words_len; i++)
        made[n++] = cli->words[i];
    made[n++] = replay;
    if (cli->options.all)
        made[n++] = all;
    if (cli->reads_replay)
        made[n++] = jsonl;
    else if (cli_is_json(cli))
        made[n++] = cli->options.output == OUTPUT_JSON ? json : jsonl;
    if (cli->options.until != NULL) {
        made[n++] = until;
        made[n++] = (char *)(uintptr_t)cli->options.until;
    }
    if (cli->options.stop)
        made[n++] = stop;
    if (cli->options.file != NULL) {
        made[n++] = file;
        made[n++] = (char *)(uintptr_t)cli->options.file;
    }
    made[n++] = end;
    for (int i = 0; i < ids; i++)
        made[n++] = cli->words[i];
    return made;
}

/* ---- the program's output ---- */

/* Whether the words have gone by, over any number of parts. */
enum { SIGNS = 2 }; /* in a table, and in JSON: the options of the program may choose, too */
struct sign {
    const char *words;
    size_t found; /* of them */
    bool seen;
};

static void sign_look(struct sign *sign, const char *part, size_t len)
{
    for (size_t i = 0; i < len && !sign->seen; i++) {
        if (sign->words[sign->found] != part[i])
            sign->found = 0; /* only the first character can start them again */
        if (sign->words[sign->found] == part[i])
            sign->found++;
        sign->seen = sign->words[sign->found] == '\0';
    }
}

/* 0, or the errno of the first write that failed: nothing is passed on after it. */
static int replay_command_read_all(int from, struct sign signs[SIGNS])
{
    char part[PART_BYTES];
    int flaw = 0;
    while (flaw != EPIPE) { /* nobody reads any more: the program is told so by its own pipe */
        ssize_t const n = read(from, part, sizeof part);
        if (n == 0 || (n < 0 && errno != EINTR))
            break;
        if (n < 0)
            continue;
        for (size_t i = 0; i < SIGNS; i++)
            sign_look(&signs[i], part, (size_t)n);
        if (flaw == 0)
            flaw = write_whole(STDOUT_FILENO, part, (size_t)n);
    }
    return flaw;
}

/* ---- running it ---- */

_Noreturn static void run_program(const struct cli_options *options, char **arguments, int out, int trouble)
{
    (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
    (void)signal(SIGINT, SIG_DFL);
    (void)signal(SIGPIPE, SIG_DFL);
    export_settings(options);
    if (dup2(out, STDOUT_FILENO) >= 0)
        (void)execvp(arguments[0], arguments);
    int const why = errno;
    (void)!write(trouble, &why, sizeof why);
    _exit(EXIT_CANNOT_RUN);
}

/* 0: it runs; otherwise an errno. */
static int start_program(const struct cli_options *options, char **arguments, pid_t *ret, int *ret_out)
{
    int out[2], trouble[2], why = 0;
    if (pipe2(out, O_CLOEXEC) != 0)
        return errno;
    if (pipe2(trouble, O_CLOEXEC) != 0) {
        why = errno;
        (void)close(out[0]);
        (void)close(out[1]);
        return why;
    }
    (void)fflush(NULL);
    *ret = fork();
    if (*ret == 0)
        run_program(options, arguments, out[1], trouble[1]);
    why = *ret < 0 ? errno : 0;
    (void)close(out[1]);
    (void)close(trouble[1]);
    if (why == 0 && read(trouble[0], &why, sizeof why) == (ssize_t)sizeof why)
        (void)waitpid(*ret, NULL, 0);
    (void)close(trouble[0]);
    *ret_out = out[0];
    return why;
}

static int replay_command_code_of(int status)
{
    return WIFSIGNALED(status) ? EXIT_SIGNALLED + WTERMSIG(status) : WEXITSTATUS(status);
}

/* A program that ends well has said what it has replayed: otherwise nothing was. */
static int replay_command_check(const struct cli *cli, const char *program, int code, bool said)
{
    if (code != EXIT_DONE || said)
        return code;
    thole_error error = {.status = THOLE_UNSUPPORTED};
    (void)snprintf(error.text, sizeof error.text,
                   "%.200s has not said what it has replayed: it is no program that calls thole_main()",
                   program);
    return cli_complain_with(cli, "", &error, EXIT_CANNOT_RUN,
                             "the path of a program that registers the orchestrations, behind --");
}

static int cannot_run(const struct cli *cli, const char *program, int why)
{
    thole_error error = {.status = THOLE_NOT_FOUND};
    (void)snprintf(error.text, sizeof error.text, "cannot run %s: %s", program, strerror(why));
    return cli_complain_with(cli, "", &error, why == ENOENT ? EXIT_NO_PROGRAM : EXIT_CANNOT_RUN,
                             "the path of a program that calls thole_main(), behind --");
}

/* A debugger needs the terminal: the program takes the place of this one. */
static int replay_command_become_program(const struct cli *cli, char **arguments)
{
    export_settings(&cli->options);
    (void)execvp(arguments[0], arguments);
    return cannot_run(cli, arguments[0], errno);
}

static int run_and_judge(const struct cli *cli, char **arguments)
{
    struct sign signs[SIGNS] = {{.words = "\"thole.replay.v1\""}, {.words = " events replayed in "}};
    int out = -1, status = 0, flaw = 0;
    pid_t pid = -1;
    (void)signal(SIGINT, SIG_IGN); /* from a terminal it goes to the program too, which says how it ends */
    int const why = start_program(&cli->options, arguments, &pid, &out);
    if (out >= 0)
        flaw = replay_command_read_all(out, signs);
    if (out >= 0)
        (void)close(out);
    if (why != 0)
        return cannot_run(cli, arguments[0], why);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (flaw != 0)
        return cli_flawed(cli, replay_command_code_of(status), flaw);
    return replay_command_check(cli, arguments[0], replay_command_code_of(status),
                                signs[0].seen || signs[1].seen);
}

int command_replay(struct cli *cli)
{
    int const ids = cli->words_len - cli->program_len;
    if (cli->program_len == 0)
        return cli_misused(cli,
                           "PROGRAM is missing: the program that registers the orchestrations, behind --");
    if ((ids > 0) + cli->options.all + (cli->options.file != NULL) != 1)
        return cli_misused(cli, "what is to be replayed? IDs, --all or --file");
    char **arguments = make_arguments(cli, ids);
    int const code =
        cli->options.stop ? replay_command_become_program(cli, arguments) : run_and_judge(cli, arguments);
    free(arguments);
    return code;
}
