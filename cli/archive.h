/* The verbs of `thole archive`. */
#ifndef THOLE_ARCHIVE_H
#define THOLE_ARCHIVE_H
#include "audit_keys.h"

int archive_run(struct cli *cli);
int archive_verify(struct cli *cli);
int archive_verify_restored(struct cli *cli, const struct audit_keys *keys);
int archive_list(struct cli *cli);
int archive_list_restored(struct cli *cli); /* lists restored instances */
int archive_restore(struct cli *cli);
#endif
