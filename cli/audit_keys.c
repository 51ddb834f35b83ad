#include "audit_keys.h"
#include "audit_key_file.h"
#include "private_file.h"
#include "write_flaw.h"
#include <errno.h>
#include <fcntl.h>
#include <openssl/crypto.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

enum { KEY_FILE_BYTES_MAX = 1024 };

/* ---- reading ---- */

static bool take_key(const struct cli *cli, const char *flag, thole_slice word, struct note_key *ret,
                     int *ret_code)
{
    char path[4096], keygen[sizeof path + 64];
    bool open_to_all = false;
    thole_error err = {.status = THOLE_OK};
    if (note_key_parse(word, ret, NULL) == THOLE_OK)
        return true;
    if (word.len == 0 || word.len >= sizeof path) {
        *ret_code = cli_misused(cli, "%s: a name is empty or too long", flag);
        return false;
    }
    memcpy(path, word.ptr, word.len);
    path[word.len] = '\0';
    thole_status const status = audit_key_file_read(path, ret, &open_to_all, &err);
    (void)snprintf(keygen, sizeof keygen, "thole audit keygen NAME --key %s makes one", path);
    if (status == THOLE_NOT_FOUND)
        *ret_code = cli_complain_with(cli, "", &err, EXIT_NOT_FOUND, keygen);
    else if (status != THOLE_OK)
        *ret_code = cli_misused(cli, "%s", err.text);
    if (open_to_all)
        (void)fprintf(stderr,
                      "thole: warning: %s has a key that signs, and everybody on this machine may read it: "
                      "chmod o-r\n",
                      path);
    return status == THOLE_OK;
}

bool audit_keys_read_list(const struct cli *cli, const char *flag, const char *list, bool sign,
                          struct audit_keys *ret, int *ret_code)
{
    *ret = (struct audit_keys){.len = 0};
    while (list != NULL) {
        size_t const len = strcspn(list, ",");
        if (ret->len == SEAL_KEYS_MAX) {
            *ret_code = cli_misused(cli, "%s: more than %d keys", flag, SEAL_KEYS_MAX);
            return false;
        }
        struct note_key *key = &ret->keys[ret->len];
        if (!take_key(cli, flag, (thole_slice){(const uint8_t *)list, len}, key, ret_code))
            return false;
        ret->len++;
        if (sign && !key->signs) {
            *ret_code =
                cli_misused(cli, "%s: %s is a public key; what is signed needs the file of the private one",
                            flag, key->name);
            return false;
        }
        list = list[len] == ',' ? list + len + 1 : NULL;
    }
    return true;
}

bool audit_keys_read(const struct cli *cli, bool sign, struct audit_keys *ret, int *ret_code)
{
    return audit_keys_read_list(cli, "--key", cli->options.key, sign, ret, ret_code);
}

void audit_keys_forget(struct audit_keys *keys)
{
    for (size_t i = 0; i < keys->len; i++)
        note_key_forget(&keys->keys[i]);
    keys->len = 0;
}

/* ---- making one ---- */

/* 0, or an errno. */
static int audit_keys_write_file(const char *path, thole_slice text)
{
    int const fd = private_file_descriptor(path, O_WRONLY | O_EXCL);
    if (fd < 0)
        return errno;
    int flaw = write_whole(fd, text.ptr, text.len);
    if (flaw == 0 && fsync(fd) != 0)
        flaw = errno;
    if (close(fd) != 0 && flaw == 0)
        flaw = errno;
    if (flaw != 0)
        (void)unlink(path);
    return flaw;
}

static void print_key(const struct cli *cli, const struct note_key *key)
{
    struct buf text;
    struct json json;
    buf_init(&text, KEY_FILE_BYTES_MAX);
    note_key_text(key, false, &text);
    if (cli->options.output == OUTPUT_TABLE) {
        (void)printf("%s\n", buf_cstr(&text));
    } else {
        json_document(&json, stdout, "thole.audit_key.v1");
        json_member(&json, "public_key", buf_bytes(&text));
        json_member_text(&json, "file", cli->options.key);
        json_end(&json);
    }
    buf_release(&text);
}

int audit_keygen(struct cli *cli)
{
    uint8_t seed[NOTE_KEY_BYTES];
    struct note_key key;
    struct buf text;
    thole_error err = {.status = THOLE_OK};
    int code = EXIT_DONE;
    if (cli->words_len != 2)
        return cli_misused(cli, "NAME is missing: whose key it is, such as audit.example.com");
    if (cli->options.key == NULL)
        return cli_misused(cli, "--key is missing: the file that the private key is written to");
    if (getrandom(seed, sizeof seed, 0) != (ssize_t)sizeof seed) {
        (void)thole_fail(&err, THOLE_UNAVAILABLE, "the system gives no random bytes: %s", strerror(errno));
        return cli_complain(cli, cli->words[1], &err);
    }
    thole_status const status = note_key_make(thole_slice_from(cli->words[1]), seed, &key, &err);
    OPENSSL_cleanse(seed, sizeof seed);
    if (status != THOLE_OK)
        return cli_misused(cli, "%s", err.text);
    buf_init(&text, KEY_FILE_BYTES_MAX);
    note_key_text(&key, true, &text);
    buf_text(&text, "\n");
    int const flaw = audit_keys_write_file(cli->options.key, buf_bytes(&text));
    if (flaw == 0)
        print_key(cli, &key);
    else
        code = cli_unwritten(cli, cli->options.key, flaw);
    OPENSSL_cleanse(text.ptr, text.len);
    buf_release(&text);
    note_key_forget(&key);
    return code;
}
