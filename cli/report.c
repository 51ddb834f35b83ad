/* Output common to all verbs: errors, exit codes, the version. */
#include "clock.h"
#include "command.h"
#include "file_fault.h"
#include "message.h"
#include "remedy.h"
#include "requests.h"
#include "text.h"
#include "thole/program.h"
#include "utf8.h"
#include "write_flaw.h"
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

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

/* Advice on what to try next. */
static const char *report_advice(const struct cli *cli, thole_status status, bool connecting)
{
    switch (status) {
    case THOLE_UNAVAILABLE:
        if (!connecting && cli->command->unavailable_hint != NULL)
            return cli->command->unavailable_hint;
        return connecting ? "is the server running there? Without one, try: thole dev"
                          : "the server may be restarting; the same command may be repeated";
    case THOLE_UNSUPPORTED: return "upgrade the server; nats-server 2.10.23 and Postgres 14 are the oldest";
    case THOLE_DENIED: return "check --nats, --nats-creds, --postgres and the user's permissions";
    case THOLE_NOT_FOUND:
        if (!connecting && cli->command->not_found_hint != NULL)
            return cli->command->not_found_hint;
        return connecting ? "start an engine for this namespace (PROGRAM run), or name another with -n"
                          : "thole list";
    case THOLE_CONFLICT:
        if (cli->command->conflict_hint != NULL)
            return cli->command->conflict_hint;
        return cli->command->conflict != 0 ? "thole show ID" : "another --id, or: thole show ID";
    case THOLE_TIMEOUT: return "a longer --timeout, or: thole history ID";
    case THOLE_CORRUPT:
        return cli->command->corrupt_hint != NULL
                   ? cli->command->corrupt_hint
                   : "thole audit verify ID, which says what is missing or changed";
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

/* ---- printing errors ---- */

enum { SAID_BYTES_MAX = 8192 };

struct problem {
    const char *status, *object, *message, *hint; /* hint: NULL = none */
    int code;
};

static void member_unless_empty(struct json *json, const char *key, const char *text)
{
    if (text != NULL && text[0] != '\0')
        json_member(json, key, thole_slice_from(text));
}

static void say_json(const char *verb, const struct problem *problem)
{
    struct json json;
    json_document(&json, stderr, "thole.error.v1");
    json_key(&json, "error");
    json_object(&json);
    json_member_text(&json, "status", problem->status);
    json_member_number(&json, "exit_code", (uint64_t)problem->code);
    member_unless_empty(&json, "verb", verb);
    member_unless_empty(&json, "object", problem->object);
    json_member_text(&json, "message", problem->message);
    member_unless_empty(&json, "hint", problem->hint);
    json_end(&json);
    json_end(&json);
}

/* Whether the text goes on with a verb that asks a namespace; --help asks none. */
static bool names_verb(const struct cli *cli, const char *text)
{
    static const char help[] = " --help";
    size_t const len = strcspn(text, " ;:,)");
    if (strncmp(text + len, help, strlen(help)) == 0)
        return false;
    for (size_t i = 0; cli->verbs != NULL && i < cli->verbs->commands_len; i++) {
        const struct command *const verb = &cli->verbs->commands[i];
        if (strlen(verb->name) == len && strncmp(text, verb->name, len) == 0)
            return !verb->local;
    }
    return false;
}

/* The namespace, if the command line names one: what is pasted is to ask the same. */
static void fill_namespace(const struct cli *cli, const char *hint, char *to, size_t cap)
{
    static const char command[] = "thole ";
    size_t len = 0;
    to[0] = '\0';
    for (const char *at = hint; cli->ns_given && len < cap && (at = strstr(at, command)) != NULL;) {
        at += strlen(command);
        if (!names_verb(cli, at))
            continue;
        int const n = snprintf(to + len, cap - len, "%.*s-n %s ", (int)(at - hint), hint, cli->options.ns);
        len += n > 0 ? (size_t)n : 0;
        hint = at;
    }
    if (len < cap)
        (void)snprintf(to + len, cap - len, "%s", hint);
}

/* "thole wait order-17: there is no …", "Try: …" */
static void say_text(const char *verb, const struct problem *problem)
{
    struct buf text;
    buf_init(&text, SAID_BYTES_MAX);
    buf_printf(&text, "thole%s%s", verb[0] == '\0' ? "" : " ", verb);
    if (problem->object[0] != '\0')
        buf_text(&text, " ");
    text_lines(&text, thole_slice_from(problem->object));
    buf_text(&text, ": ");
    text_lines(&text, thole_slice_from(problem->message));
    if (problem->hint != NULL)
        buf_printf(&text, "\nTry: %s", problem->hint);
    (void)fprintf(stderr, "%s\n", buf_cstr(&text));
    buf_release(&text);
}

static int report_print(const struct cli *cli, struct problem problem)
{
    char hint[SAID_BYTES_MAX], whole[SAID_BYTES_MAX];
    const char *verb = cli->command == NULL ? "" : cli->command->name;
    if (problem.hint != NULL) {
        fill_namespace(cli, problem.hint, hint, sizeof hint);
        remedy_fill(hint, thole_slice_from(problem.object), whole, sizeof whole);
        problem.hint = whole;
    }
    if (!cli_is_json(cli))
        say_text(verb, &problem);
    else
        say_json(verb, &problem);
    return problem.code;
}

static const char *report_text_of(const thole_error *error)
{
    return error->text[0] == '\0' ? thole_status_text(error->status) : error->text;
}

static int report_problem(const struct cli *cli, const char *object, const thole_error *error,
                          bool connecting)
{
    int const own = cli->command->conflict;
    if (file_fault_is_write(error))
        return cli_complain_with(cli, object, error, EXIT_GENERIC, NULL);
    const char *hint = strstr(error->text, CANNOT_STORE) != NULL
                           ? "thole doctor; nats server report jetstream; the log of nats-server"
                           : report_advice(cli, error->status, connecting);
    if (hint != NULL && object[0] == '\0' && strstr(hint, " ID") != NULL)
        hint = NULL; /* the hint is about one instance, and none is named */
    return cli_complain_with(cli, object, error,
                             error->status == THOLE_CONFLICT && own != 0 ? own : cli_exit_code(error->status),
                             hint);
}

int cli_complain(const struct cli *cli, const char *object, const thole_error *error)
{
    return report_problem(cli, object, error, false);
}

int cli_complain_with(const struct cli *cli, const char *object, const thole_error *error, int code,
                      const char *hint)
{
    return report_print(cli, (struct problem){.status = thole_status_name(error->status),
                                              .object = object,
                                              .message = report_text_of(error),
                                              .hint = hint,
                                              .code = file_fault_is_write(error) ? EXIT_GENERIC : code});
}

int cli_unread(const struct cli *cli, const char *path, int why, const char *hint)
{
    thole_error error = {.status = THOLE_OK};
    (void)file_fault_read(path, why, &error);
    return cli_complain_with(cli, "", &error, cli_exit_code(error.status), hint);
}

int cli_unwritten(const struct cli *cli, const char *path, int flaw)
{
    thole_error error = {.status = THOLE_OK};
    if (flaw == EEXIST) /* another file is wanted, and not another disk */
        return cli_misused(cli, "%.300s is there already", path);
    (void)file_fault_write(path, flaw, &error);
    return cli_complain_with(cli, "", &error, EXIT_GENERIC, NULL);
}

static int THOLE_PRINTF(3, 0)
    report_misused(const struct cli *cli, const char *hint, const char *fmt, va_list args)
{
    thole_error error = {.status = THOLE_INVALID};
    char help[64];
    const char *verb = cli->command == NULL ? "" : cli->command->name;
    (void)vsnprintf(error.text, sizeof error.text, fmt, args);
    (void)snprintf(help, sizeof help, "thole%s%s --help", verb[0] == '\0' ? "" : " ", verb);
    return cli_complain_with(cli, "", &error, EXIT_USAGE, hint == NULL ? help : hint);
}

int cli_misused(const struct cli *cli, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    int const code = report_misused(cli, NULL, fmt, args);
    va_end(args);
    return code;
}

int cli_misused_try(const struct cli *cli, const char *hint, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    int const code = report_misused(cli, hint, fmt, args);
    va_end(args);
    return code;
}

bool cli_reason_is_good(const struct cli *cli)
{
    const char *const reason = cli->options.reason == NULL ? "" : cli->options.reason;
    if (strlen(reason) > REASON_BYTES_MAX)
        (void)cli_misused(cli, "--reason: more than %d bytes", REASON_BYTES_MAX);
    else if (!utf8_is_valid(thole_slice_from(reason)))
        (void)cli_misused(cli, "--reason is not UTF-8");
    else
        return true;
    return false;
}

static void report_say_note(const struct cli *cli, const char *text)
{
    struct json json;
    struct buf safe;
    if (!cli_is_json(cli)) {
        buf_init(&safe, SAID_BYTES_MAX);
        text_lines(&safe, thole_slice_from(text));
        (void)fprintf(stderr, "%s\n", buf_cstr(&safe));
        buf_release(&safe);
        return;
    }
    json_document(&json, stderr, "thole.note.v1");
    json_member_text(&json, "note", text);
    json_end(&json);
}

void cli_note(const struct cli *cli, const char *fmt, ...)
{
    char text[SAID_BYTES_MAX];
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    report_say_note(cli, text);
}

void cli_note_of(const struct cli *cli, thole_slice instance, const char *fmt, ...)
{
    char text[SAID_BYTES_MAX], filled[SAID_BYTES_MAX];
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    remedy_fill(text, instance, filled, sizeof filled);
    report_say_note(cli, filled);
}

/* ---- connecting ---- */

enum { ROUND_TRIP_MS = 5000, AGAIN_MS_MIN = 50, AGAIN_MS_MAX = 1000 };

uint64_t cli_left_ms(const struct cli *cli)
{
    uint64_t const now_ms = clock_monotonic_ms(), end_ms = cli->begun_ms + cli->options.timeout_ms;
    if (cli->options.timeout_ms == 0 || end_ms < cli->begun_ms)
        return UINT64_MAX;
    return now_ms < end_ms ? end_ms - now_ms : 1;
}

static void report_pause_ms(uint64_t ms)
{
    struct timespec const pause = clock_timespec(ms);
    (void)nanosleep(&pause, NULL);
}

/* A server that is away may come back within --timeout, of verbs that wait that long. */
static thole_status report_open_client(const struct cli *cli, const thole_client_options *options,
                                       thole_client **ret, thole_error *reterr)
{
    bool const patient = cli->command->waits && cli->options.timeout_ms != 0;
    thole_status status;
    for (uint64_t again_ms = AGAIN_MS_MIN;;
         again_ms = again_ms * 2 < AGAIN_MS_MAX ? again_ms * 2 : AGAIN_MS_MAX) {
        status = thole_client_open(options, ret, reterr);
        if (status != THOLE_UNAVAILABLE || !patient || cli_left_ms(cli) <= again_ms)
            return status;
        if (again_ms == AGAIN_MS_MIN)
            cli_note(cli, "%s; trying again until --timeout is over", reterr->text);
        report_pause_ms(again_ms);
    }
}

void cli_client_options(const struct cli *cli, thole_client_options *ret)
{
    thole_client_options options;
    thole_client_options_init(&options);
    options.nats_url = cli->options.nats_url;
    options.nats_creds = cli->options.nats_creds;
    options.nats_ca = cli->options.nats_ca;
    options.nats_cert = cli->options.nats_cert;
    options.nats_key = cli->options.nats_key;
    options.nats_server_name = cli->options.nats_server_name;
    options.nats_inbox = cli->options.nats_inbox;
    options.nats_api_prefix = cli->options.nats_api_prefix;
    options.postgres = cli->options.postgres;
    options.ns = cli->options.ns;
    options.actor = cli->options.actor;
    options.vouched_actor = cli->options.vouched_actor;
    options.timeout_ms = cli->options.timeout_ms;
    if (options.timeout_ms == 0 || (cli->command->waits && options.timeout_ms > ROUND_TRIP_MS))
        options.timeout_ms = ROUND_TRIP_MS;
    if (cli->options.payload_max != 0)
        options.payload_max = cli->options.payload_max;
    *ret = options;
}

bool cli_lacks_file(const struct cli *cli, const thole_error *error)
{
    const struct cli_options *const options = &cli->options;
    const char *const paths[] = {options->nats_creds, options->nats_ca, options->nats_cert,
                                 options->nats_key};
    for (size_t i = 0; error->status == THOLE_INVALID && i < sizeof paths / sizeof paths[0]; i++)
        if (paths[i] != NULL && paths[i][0] != '\0' && access(paths[i], R_OK) != 0)
            return true;
    return false;
}

thole_client *cli_connect(const struct cli *cli, int *ret_code)
{
    thole_client_options options;
    thole_client *client = NULL;
    thole_error error = {.status = THOLE_OK};
    cli_client_options(cli, &options);
    thole_status const status = report_open_client(cli, &options, &client, &error);
    error.status = status;
    if (status != THOLE_OK)
        *ret_code = cli_complain_connect(cli, &error);
    return client;
}

int cli_complain_connect(const struct cli *cli, const thole_error *error)
{
    thole_error said = *error;
    if (!cli_lacks_file(cli, error))
        return report_problem(cli, "", error, true);
    said.status = THOLE_NOT_FOUND;
    return cli_complain_with(cli, "", &said, EXIT_NOT_FOUND, "the path of a file");
}

int cli_flawed(const struct cli *cli, int code, int flaw)
{
    if (flaw == EPIPE)
        return code == EXIT_DONE ? EXIT_SIGNALLED + SIGPIPE : code;
    return cli_unwritten(cli, "stdout", flaw);
}

int cli_finish(const struct cli *cli, int code)
{
    int const flaw = write_flaw(stdout);
    return flaw == 0 ? code : cli_flawed(cli, code, flaw);
}

int command_version(struct cli *cli)
{
    struct json json;
    if (!cli_is_json(cli)) {
        (void)printf("thole %s\n", thole_version());
        return EXIT_DONE;
    }
    json_document(&json, stdout, "thole.version.v1");
    json_member_text(&json, "version", thole_version());
    json_end(&json);
    return EXIT_DONE;
}
