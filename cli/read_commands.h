/* What list, show and export share. */
#ifndef THOLE_READ_COMMANDS_H
#define THOLE_READ_COMMANDS_H
#include "command.h"

/* What the options of a list select. False after a complaint. */
bool list_filter_make(const struct cli *cli, thole_list_filter *ret);
#endif
