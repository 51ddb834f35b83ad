/* What every verb says in the same way: errors, exit codes, the version. */
#include "command.h"
#include "thole/program.h"
#include <errno.h>
#include <stdarg.h>
#include <string.h>

int cli_exit_code(thole_status status)
{
    switch (status) {
    case THOLE_OK: return EXIT_DONE;
    case THOLE_INVALID:
    case THOLE_LIMIT: return EXIT_USAGE;
    case THOLE_NOT_FOUND: return EXIT_NOT_FOUND;
    case THOLE_CONFLICT: return EXIT_CONFLICT;
    case THOLE_UNAVAILABLE:
    case THOLE_UNSUPPORTED: return EXIT_UNREACHABLE;
    case THOLE_DENIED: return EXIT_DENIED;
    case THOLE_TIMEOUT: return EXIT_TIMEOUT;
    case THOLE_NONDETERMINISM: return EXIT_DIVERGED;
    case THOLE_NOMEM:
    case THOLE_CORRUPT:
    case THOLE_CANCELLED:
    case THOLE_APP:
    case THOLE_FENCED:
    case THOLE_LATER: return EXIT_GENERIC;
    }
    return EXIT_GENERIC;
}

/* What to try next. */
static const char *advice(const struct cli *cli, thole_status status, bool connecting)
{
    switch (status) {
    case THOLE_UNAVAILABLE:
        if (!connecting && cli->command->run == command_query)
            return "an engine must run for this namespace (PROGRAM run); a moment later it may have one";
        return connecting ? "is the server running there? Without one, try: thole dev"
                          : "the server may be restarting; the same command may be repeated";
    case THOLE_UNSUPPORTED: return "upgrade the server; nats-server 2.10.23 and Postgres 14 are the oldest";
    case THOLE_DENIED: return "check --nats-creds, --postgres and the user's permissions";
    case THOLE_NOT_FOUND:
        if (!connecting && cli->command->run == command_query)
            return "thole show ID: is it there, and does its code answer this query?";
        return connecting ? "start an engine for this namespace (PROGRAM run), or name another with -n"
                          : "thole list";
    case THOLE_CONFLICT: return "another --id, or: thole show ID";
    case THOLE_TIMEOUT: return "a longer --timeout, or: thole history ID";
    case THOLE_CORRUPT: return "thole history ID -o json, and report it";
    case THOLE_OK:
    case THOLE_NOMEM:
    case THOLE_INVALID:
    case THOLE_LIMIT:
    case THOLE_NONDETERMINISM:
    case THOLE_CANCELLED:
    case THOLE_APP:
    case THOLE_FENCED:
    case THOLE_LATER: return NULL;
    }
    return NULL;
}

static int complain(const struct cli *cli, const char *object, const thole_error *error, bool connecting)
{
    const char *text = error->text[0] == '\0' ? thole_status_text(error->status) : error->text;
    const char *next = advice(cli, error->status, connecting);
    (void)fprintf(stderr, "thole %s%s%s: %s\n", cli->command->name, object[0] == '\0' ? "" : " ", object,
                  text);
    if (next != NULL)
        (void)fprintf(stderr, "Try: %s\n", next);
    return cli_exit_code(error->status);
}

int cli_complain(const struct cli *cli, const char *object, const thole_error *error)
{
    return complain(cli, object, error, false);
}

int cli_misused(const struct cli *cli, const char *fmt, ...)
{
    const char *verb = cli->command == NULL ? "" : cli->command->name;
    va_list args;
    (void)fprintf(stderr, "thole%s%s: ", verb[0] == '\0' ? "" : " ", verb);
    va_start(args, fmt);
    (void)vfprintf(stderr, fmt, args);
    va_end(args);
    (void)fprintf(stderr, "\nTry: thole%s%s --help\n", verb[0] == '\0' ? "" : " ", verb);
    return EXIT_USAGE;
}

thole_client *cli_connect(const struct cli *cli, int *ret_code)
{
    enum { ROUND_TRIP_MS = 5000 };
    thole_client_options options;
    thole_client *client = NULL;
    thole_error error = {.status = THOLE_OK};
    thole_client_options_init(&options);
    options.nats_url = cli->options.nats_url;
    options.nats_creds = cli->options.nats_creds;
    options.postgres = cli->options.postgres;
    options.ns = cli->options.ns;
    options.timeout_ms = cli->options.timeout_ms;
    if (options.timeout_ms == 0 || (cli->command->waits && options.timeout_ms > ROUND_TRIP_MS))
        options.timeout_ms = ROUND_TRIP_MS;
    if (cli->options.payload_max != 0)
        options.payload_max = cli->options.payload_max;
    thole_status const status = thole_client_open(&options, &client, &error);
    error.status = status;
    if (status != THOLE_OK)
        *ret_code = complain(cli, "", &error, true);
    return client;
}

void cli_json_begin(struct json *json, const char *schema)
{
    json_object(json);
    json_member(json, "schema", thole_slice_from(schema));
}

int cli_finish(int code)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return code;
    if (errno == EPIPE)
        return code == EXIT_DONE ? EXIT_GENERIC : code;
    (void)fprintf(stderr, "thole: cannot write to stdout: %s\n", strerror(errno));
    return EXIT_GENERIC;
}

int command_version(struct cli *cli)
{
    struct json json;
    if (cli->options.output == OUTPUT_TABLE) {
        (void)printf("thole %s\n", thole_version());
        return EXIT_DONE;
    }
    json_init(&json, stdout);
    cli_json_begin(&json, "thole.version.v1");
    json_member(&json, "version", thole_slice_from(thole_version()));
    json_end(&json);
    return EXIT_DONE;
}
