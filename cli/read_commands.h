/* What list and show share. */
#ifndef THOLE_READ_COMMANDS_H
#define THOLE_READ_COMMANDS_H
#include "command.h"

/* A row of the projection as members of an object. */
void info_members(struct json *json, const thole_instance_info *info);
#endif
