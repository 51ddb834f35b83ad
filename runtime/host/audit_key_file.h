/* Files of keys that sign checkpoints, and of those that verify them (note.h). */
#ifndef THOLE_AUDIT_KEY_FILE_H
#define THOLE_AUDIT_KEY_FILE_H
#include "seal.h"

/* One key. *ret_open: it is a private one, and everybody on this machine may read it. THOLE_NOT_FOUND: the
 * file cannot be read; THOLE_INVALID: it has no key. The text never has it. */
THOLE_NODISCARD thole_status audit_key_file_read(const char *path, struct note_key *ret, bool *ret_open,
                                                 thole_error *reterr);

struct audit_key_list {
    struct note_key keys[SEAL_KEYS_MAX];
    size_t len;
    bool open_to_all; /* everybody on this machine may read one of the files */
};
/* Of a list of files with commas: private keys. THOLE_INVALID: the text begins with the option. */
THOLE_NODISCARD thole_status audit_key_list_read(const char *files, struct audit_key_list *ret,
                                                 thole_error *reterr);
void audit_key_list_forget(struct audit_key_list *list); /* overwrites them */
#endif
