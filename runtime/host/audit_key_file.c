#include "audit_key_file.h"
#include "file_fault.h"
#include <errno.h>
#include <fcntl.h>
#include <openssl/crypto.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { KEY_FILE_BYTES_MAX = 1024, PATH_BYTES_MAX = 4096 };

thole_status audit_key_file_read(const char *path, struct note_key *ret, bool *ret_open, thole_error *reterr)
{
    uint8_t text[KEY_FILE_BYTES_MAX];
    struct stat about = {.st_mode = 0};
    thole_error err = {.status = THOLE_OK};
    int const fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t const len = fd < 0 ? -1 : read(fd, text, sizeof text);
    int const failed = errno;
    bool const open_to_all = fd >= 0 && fstat(fd, &about) == 0 && (about.st_mode & S_IROTH) != 0;
    if (fd >= 0)
        (void)close(fd);
    if (len < 0)
        return file_fault_read(path, failed, reterr);
    thole_status const status = note_key_parse((thole_slice){text, (size_t)len}, ret, &err);
    OPENSSL_cleanse(text, sizeof text);
    if (status != THOLE_OK)
        return thole_fail(reterr, THOLE_INVALID, "%.200s: %s", path, err.text);
    *ret_open = open_to_all && ret->signs;
    return THOLE_OK;
}

static thole_status audit_key_file_add(struct audit_key_list *list, const char *name, size_t len,
                                       thole_error *reterr)
{
    char path[PATH_BYTES_MAX];
    struct note_key *key = &list->keys[list->len];
    bool open_to_all = false;
    if (len == 0 || len >= sizeof path)
        return thole_fail(reterr, THOLE_INVALID, "the name of a key's file is empty or too long");
    if (list->len == SEAL_KEYS_MAX)
        return thole_fail(reterr, THOLE_INVALID, "more than %d keys", SEAL_KEYS_MAX);
    memcpy(path, name, len);
    path[len] = '\0';
    if (audit_key_file_read(path, key, &open_to_all, reterr) != THOLE_OK)
        return THOLE_INVALID;
    if (!key->signs)
        return thole_fail(reterr, THOLE_INVALID,
                          "%.200s is a public key; a checkpoint needs the file of the private one", path);
    list->open_to_all |= open_to_all;
    list->len++;
    return THOLE_OK;
}

thole_status audit_key_list_read(const char *files, struct audit_key_list *ret, thole_error *reterr)
{
    thole_error err = {.status = THOLE_OK};
    thole_status status = THOLE_OK;
    *ret = (struct audit_key_list){.len = 0};
    while (files != NULL && status == THOLE_OK) {
        size_t const len = strcspn(files, ",");
        status = audit_key_file_add(ret, files, len, &err);
        files = files[len] == ',' ? files + len + 1 : NULL;
    }
    if (status == THOLE_OK)
        return THOLE_OK;
    audit_key_list_forget(ret);
    return thole_fail(reterr, status, "--audit-key: %s", err.text);
}

void audit_key_list_forget(struct audit_key_list *list)
{
    OPENSSL_cleanse(list, sizeof *list);
}
