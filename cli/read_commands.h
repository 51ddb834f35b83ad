/* What list, show and export share. */
#ifndef THOLE_READ_COMMANDS_H
#define THOLE_READ_COMMANDS_H
#include "command.h"

/* A row of the projection as members of an object. */
void info_members(struct json *json, const thole_instance_info *info);
/* What the options of a list select. False after a complaint. */
bool list_filter_make(const struct cli *cli, thole_list_filter *ret);
#endif
