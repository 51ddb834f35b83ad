#include "audit_key_file.h"
#include <errno.h>
#include <fcntl.h>
#include <openssl/crypto.h>
#include <string.h>
#include <unistd.h>

enum { KEY_FILE_BYTES_MAX = 1024, PATH_BYTES_MAX = 4096 };

thole_status audit_key_file_read(const char *path, struct note_key *ret, thole_error *reterr)
{
    uint8_t text[KEY_FILE_BYTES_MAX];
    thole_error err = {.status = THOLE_OK};
    int const fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t const len = fd < 0 ? -1 : read(fd, text, sizeof text);
    int const failed = errno;
    if (fd >= 0)
        (void)close(fd);
    if (len < 0)
        return thole_fail(reterr, THOLE_NOT_FOUND, "cannot read the key %.200s: %s", path, strerror(failed));
    thole_status const status = note_key_parse((thole_slice){text, (size_t)len}, ret, &err);
    OPENSSL_cleanse(text, sizeof text);
    return status == THOLE_OK ? THOLE_OK : thole_fail(reterr, THOLE_INVALID, "%.200s: %s", path, err.text);
}

static thole_status add(struct audit_key_list *list, const char *name, size_t len, thole_error *reterr)
{
    char path[PATH_BYTES_MAX];
    struct note_key *key = &list->keys[list->len];
    if (len == 0 || len >= sizeof path)
        return thole_fail(reterr, THOLE_INVALID, "the name of a key's file is empty or too long");
    if (list->len == SEAL_KEYS_MAX)
        return thole_fail(reterr, THOLE_INVALID, "more than %d keys", SEAL_KEYS_MAX);
    memcpy(path, name, len);
    path[len] = '\0';
    if (audit_key_file_read(path, key, reterr) != THOLE_OK)
        return THOLE_INVALID;
    if (!key->signs)
        return thole_fail(reterr, THOLE_INVALID,
                          "%.200s is a public key; a checkpoint needs the file of the private one", path);
    list->len++;
    return THOLE_OK;
}

thole_status audit_key_list_read(const char *files, struct audit_key_list *ret, thole_error *reterr)
{
    thole_status status = THOLE_OK;
    ret->len = 0;
    while (files != NULL && status == THOLE_OK) {
        size_t const len = strcspn(files, ",");
        status = add(ret, files, len, reterr);
        files = files[len] == ',' ? files + len + 1 : NULL;
    }
    if (status != THOLE_OK)
        audit_key_list_forget(ret);
    return status;
}

void audit_key_list_forget(struct audit_key_list *list)
{
    OPENSSL_cleanse(list, sizeof *list);
}
