/* Keys of `thole audit` on the command line: a list with commas, each a file or the text of a key. */
#ifndef THOLE_AUDIT_KEYS_H
#define THOLE_AUDIT_KEYS_H
#include "command.h"
#include "seal.h"

struct audit_keys {
    struct note_key keys[SEAL_KEYS_MAX];
    size_t len;
};
/* Of @p list, which is that of option @p flag; of --key. @p sign: private ones. False after a complaint:
 * *ret_code is the exit code. */
bool audit_keys_read_list(const struct cli *cli, const char *flag, const char *list, bool sign,
                          struct audit_keys *ret, int *ret_code);
bool audit_keys_read(const struct cli *cli, bool sign, struct audit_keys *ret, int *ret_code);
void audit_keys_forget(struct audit_keys *keys);
int audit_keygen(struct cli *cli); /* the verb */
#endif
