/* console: the web console, until a signal ends it. */
#include "command.h"
#include "console.h"
#include "inbox_prefix.h"
#include "line_read.h"
#include "listen_address.h"
#include "shared_options.h"
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#define FIELD(member) OPTION_FIELD(struct cli_options, member)
const struct option_row console_rows[CONSOLE_ROWS] = {
    {.flag = "http",
     .kind = OPTION_TEXT,
     .env = "THOLE_CONSOLE_HTTP",
     .unit = "ADDRESS",
     .fallback = "127.0.0.1:8233",
     FIELD(http),
     .help = "where it listens: PORT (of 127.0.0.1), IPV4:PORT or [IPV6]:PORT; port 0: a free one"},
    {.flag = "allow-actions",
     .kind = OPTION_SWITCH,
     FIELD(allow_actions),
     .help = "everybody on this machine may start, signal, cancel, …; only on a loopback address"},
    {.flag = "token-file",
     .kind = OPTION_TEXT,
     .env = "THOLE_CONSOLE_TOKEN_FILE",
     .unit = "FILE",
     FIELD(token_file),
     .help = "who knows the token in its first line may act; beyond loopback reading needs it too"},
    {.flag = "identity-header",
     .kind = OPTION_TEXT,
     .env = "THOLE_CONSOLE_IDENTITY_HEADER",
     .unit = "NAME",
     FIELD(identity_header),
     .help = "header in which the proxy in front says who the user is, who may then act"},
    {.flag = "trusted-proxy",
     .kind = OPTION_TEXT,
     .env = "THOLE_CONSOLE_TRUSTED_PROXY",
     .unit = "IP",
     FIELD(trusted_proxy),
     .help = "with --identity-header: the only address that requests may come from"},
    OPTION_ROW_PAYLOAD_MAX(FIELD(payload_max), .fallback = "262144",
                           .help = "largest input; the same as the engines'"),
};

struct token {
    char text[CONSOLE_TOKEN_BYTES_MAX + 2];
};

/* False: there is none, it is longer than a token can be, or has a byte that ends a string. */
static bool token_line_read(FILE *from, struct token *to)
{
    struct buf line;
    buf_init(&line, sizeof to->text - 1);
    (void)line_read(from, &line);
    line.len -= line.len > 0 && line.ptr[line.len - 1] == '\r';
    bool const whole = buf_status(&line) == THOLE_OK && line.len > 0 && memchr(line.ptr, 0, line.len) == NULL;
    if (whole)
        (void)snprintf(to->text, sizeof to->text, "%.*s", THOLE_FMT(buf_bytes(&line)));
    buf_release(&line);
    return whole;
}

/* The first line of the file. EXIT_DONE, or what a complaint ends with. */
static int console_command_read_token(const struct cli *cli, struct token *to)
{
    const char *const path = cli->options.token_file;
    if (path == NULL)
        return EXIT_DONE;
    FILE *const from = fopen(path, "re");
    if (from == NULL)
        return cli_unread(cli, path, errno, "the path of a file with the token, for --token-file");
    bool const whole = token_line_read(from, to);
    int const failed = ferror(from) ? errno : 0;
    (void)fclose(from);
    if (failed != 0)
        return cli_unread(cli, path, failed, "the path of a file with the token, for --token-file");
    return whole ? EXIT_DONE : cli_misused(cli, "--token-file: %s has no token in its first line", path);
}

static void say_address(const struct cli *cli, const struct console *console)
{
    struct json json;
    if (!cli_is_json(cli)) {
        (void)printf("http://%s/\n", console_address(console));
    } else {
        char url[128];
        (void)snprintf(url, sizeof url, "http://%s/", console_address(console));
        json_document(&json, stdout, "thole.console.v1");
        json_member_text(&json, "url", url);
        json_end(&json);
    }
    (void)fflush(stdout);
}

static int console_command_serve(const struct cli *cli, const struct console_options *options)
{
    struct console *console = NULL;
    thole_error error = {.status = THOLE_OK};
    sigset_t ends, before;
    int number = 0;
    sigemptyset(&ends);
    sigaddset(&ends, SIGINT);
    sigaddset(&ends, SIGTERM);
    (void)pthread_sigmask(SIG_BLOCK, &ends, &before);
    error.status = console_start(options, &console, &error);
    if (error.status == THOLE_OK) {
        say_address(cli, console);
        (void)sigwait(&ends, &number);
    }
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL); /* a second signal ends it at once */
    console_stop(console);
    if (error.status == THOLE_INVALID)
        return cli_misused(cli, "%s", error.text);
    if (error.status != THOLE_OK)
        return cli_complain_with(cli, "", &error, cli_exit_code(error.status),
                                 "another --http, for example --http 127.0.0.1:0");
    return number == SIGINT ? EXIT_INTERRUPTED : EXIT_DONE;
}

int command_console(struct cli *cli)
{
    char inbox[INBOX_PREFIX_BYTES_MAX + 1];
    struct inbox_owner const owner = {.ns = cli->options.ns, .role = "console"};
    struct token token = {.text = ""};
    thole_client_options client;
    thole_error error;
    struct console_options options = {.client = &client,
                                      .identity_header = cli->options.identity_header,
                                      .trusted_proxy = cli->options.trusted_proxy,
                                      .allow_actions = cli->options.allow_actions};
    if (listen_address_parse(cli->options.http, &options.address, &error) != THOLE_OK)
        return cli_misused(cli, "--http: %s", error.text);
    int const read = console_command_read_token(cli, &token);
    if (read != EXIT_DONE)
        return read;
    options.token = cli->options.token_file == NULL ? NULL : token.text;
    cli_client_options(cli, &client);
    client.nats_inbox = inbox_prefix_or_own(client.nats_inbox, &owner, inbox);
    return console_command_serve(cli, &options);
}
