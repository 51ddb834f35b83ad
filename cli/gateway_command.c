/* thole gateway, thole binder: roles that need no program of a user. */
#include "command.h"
#include "thole/program.h"

int role_main(int argc, char **argv)
{
    thole_program const program = {.size = sizeof program, .name = "thole"};
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
