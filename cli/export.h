/* Exports of histories to a file. */
#ifndef THOLE_EXPORT_H
#define THOLE_EXPORT_H
#include "command.h"

/* The events of a record, for people: of history_writer. */
void export_decorate(void *arg, struct json *json, uint64_t sequence, thole_slice bytes);
/* `thole history ID --raw FILE`: the one instance, or no file. */
int export_one(const struct cli *cli, thole_client *client);
/* `thole export ID --test FILE.c`: the unit test that begins from the history that was exported to that file.
 */
int export_test_write(const struct cli *cli, thole_client *client, const char *history);
#endif
