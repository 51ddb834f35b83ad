/* Common parts of list, show and export. */
#ifndef THOLE_READ_COMMANDS_H
#define THOLE_READ_COMMANDS_H
#include "command.h"

/* The selection of a list's options. False after a complaint. */
bool list_filter_make(const struct cli *cli, thole_list_filter *ret);
/* As thole_list_filter.statuses: what --status asks for. */
uint32_t cli_wanted_statuses(const struct cli *cli);
/* The member "status" of what a list selects; none: any. */
void list_statuses_json(const struct cli *cli, struct json *json);
#endif
