/* thole gateway: a role that needs no program of a user. */
#include "command.h"
#include "thole/program.h"

int gateway_main(int argc, char **argv)
{
    thole_program const program = {.size = sizeof program, .name = "thole"};
    return thole_main(argc, argv, &program);
}

int command_gateway(struct cli *cli)
{
    return cli_misused_try(cli, "thole gateway --help", "options of the gateway stand behind the verb");
}
