/* thole gateway, thole binder: roles that need no program of a user. */
#include "command.h"
#include "host_options.h"
#include "thole/program.h"
#include <string.h>

enum { HELP_BYTES_MAX = 64 * 1024 };

static bool wants_help(int argc, char **argv)
{
    for (int i = 2; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
            return true;
    return false;
}

/* thole_main() would show all roles: those of a user's program. */
static int gateway_command_print_help(const char *verb)
{
    struct buf text;
    buf_init(&text, HELP_BYTES_MAX);
    host_role_help(strcmp(verb, "gateway") == 0 ? HOST_GATEWAY : HOST_BINDER, "thole", &text);
    bool const good =
        buf_status(&text) == THOLE_OK && fputs(buf_cstr(&text), stdout) >= 0 && fflush(stdout) == 0;
    buf_release(&text);
    return good ? EXIT_DONE : EXIT_GENERIC;
}

int role_main(int argc, char **argv)
{
    thole_program const program = {.size = sizeof program, .name = "thole"};
    if (wants_help(argc, argv))
        return gateway_command_print_help(argv[1]);
    return thole_main(argc, argv, &program);
}

int command_gateway(struct cli *cli)
{
    return cli_misused_try(cli, "thole gateway --help", "options of the gateway stand behind the verb");
}

int command_binder(struct cli *cli)
{
    return cli_misused_try(cli, "thole binder --help", "options of the binder stand behind the verb");
}
