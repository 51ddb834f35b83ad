/* replay: runs the program, which replays with its own code; passes the servers and the namespace on to it.
 */
#include "command.h"
#include "memory.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* In the environment and not as arguments: an URL may hold a password, and everybody can read those. */
static void export_setting(const char *name, const char *value)
{
    if (value != NULL && value[0] != '\0')
        (void)setenv(name, value, 1);
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
    if (cli_is_json(cli))
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

int command_replay(struct cli *cli)
{
    int const ids = cli->words_len - cli->program_len;
    if (cli->program_len == 0)
        return cli_misused(cli,
                           "PROGRAM is missing: the program that registers the orchestrations, behind --");
    if ((ids > 0) + cli->options.all + (cli->options.file != NULL) != 1)
        return cli_misused(cli, "what is to be replayed? IDs, --all or --file");
    char **arguments = make_arguments(cli, ids);
    export_setting("THOLE_NATS_URL", cli->options.nats_url);
    export_setting("THOLE_NATS_CREDS", cli->options.nats_creds);
    export_setting("THOLE_NATS_CA", cli->options.nats_ca);
    export_setting("THOLE_NATS_CERT", cli->options.nats_cert);
    export_setting("THOLE_NATS_KEY", cli->options.nats_key);
    export_setting("THOLE_NATS_SERVER_NAME", cli->options.nats_server_name);
    export_setting("THOLE_NATS_INBOX", cli->options.nats_inbox);
    export_setting("THOLE_NAMESPACE", cli->options.ns);
    (void)execvp(arguments[0], arguments);
    int const code = errno == ENOENT ? EXIT_NO_PROGRAM : EXIT_CANNOT_RUN;
    thole_error error = {.status = THOLE_NOT_FOUND};
    (void)snprintf(error.text, sizeof error.text, "cannot run %s: %s", arguments[0], strerror(errno));
    free(arguments);
    return cli_complain_with(cli, "", &error, code,
                             "the path of a program that calls thole_main(), behind --");
}
