#include "dev_folder.h"
#include "file_fault.h"
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

static thole_status make_folder(const char *path, bool *ret_made, thole_error *reterr)
{
    *ret_made = mkdir(path, 0711) == 0; /* user postgres must get through */
    if (*ret_made || errno == EEXIST)
        return THOLE_OK;
    return file_fault_write(path, errno, reterr);
}

static thole_status make_inside(const struct dev_folder *folder, const char *name, thole_error *reterr)
{
    char path[DEV_PATH_BYTES];
    bool made;
    (void)snprintf(path, sizeof path, "%s/%s", folder->path, name);
    return make_folder(path, &made, reterr);
}

/* Another nats-server on the same store would damage it. */
static thole_status dev_folder_lock(struct dev_folder *folder, thole_error *reterr)
{
    char path[DEV_PATH_BYTES];
    (void)snprintf(path, sizeof path, "%s/lock", folder->path);
    folder->lock = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (folder->lock < 0)
        return file_fault_write(path, errno, reterr);
    if (flock(folder->lock, LOCK_EX | LOCK_NB) == 0)
        return THOLE_OK;
    (void)close(folder->lock);
    folder->lock = -1;
    return thole_fail(
        reterr, THOLE_UNAVAILABLE,
        "another thole dev uses %s: take its settings (. %s/env), end it, or choose another --dir",
        folder->path, folder->path);
}

/* ---- kept state: small files of text ---- */

static bool dev_folder_read_file(const struct dev_folder *folder, const char *name, char *ret, size_t cap)
{
    char path[DEV_PATH_BYTES];
    (void)snprintf(path, sizeof path, "%s/%s", folder->path, name);
    int const fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t const len = fd >= 0 ? read(fd, ret, cap - 1) : -1;
    if (fd >= 0)
        (void)close(fd);
    ret[len > 0 ? len : 0] = '\0';
    return len > 0;
}

static thole_status dev_folder_write_file(const struct dev_folder *folder, const char *name, const char *text,
                                          thole_error *reterr)
{
    char path[DEV_PATH_BYTES];
    (void)snprintf(path, sizeof path, "%s/%s", folder->path, name);
    return server_write_private(path, text, reterr);
}

static thole_status make_password(char ret[DEV_PASSWORD_BYTES], thole_error *reterr)
{
    uint8_t bytes[(DEV_PASSWORD_BYTES - 1) / 2];
    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        return thole_fail(reterr, THOLE_UNAVAILABLE, "no random bytes: %s", strerror(errno));
    for (size_t i = 0; i < sizeof bytes; i++)
        (void)snprintf(ret + 2 * i, 3, "%02x", bytes[i]);
    return THOLE_OK;
}

static thole_status dev_folder_take_over(struct dev_folder *folder, thole_error *reterr)
{
    char ports[64];
    if (dev_folder_read_file(folder, "ports", ports, sizeof ports) &&
        sscanf(ports, "%hu %hu", &folder->nats_port, &folder->postgres_port) != 2)
        folder->nats_port = folder->postgres_port = 0;
    if (dev_folder_read_file(folder, "password", folder->password, sizeof folder->password) &&
        strspn(folder->password, "0123456789abcdef") == DEV_PASSWORD_BYTES - 1)
        return THOLE_OK;
    THOLE_TRY(make_password(folder->password, reterr));
    return dev_folder_write_file(folder, "password", folder->password, reterr);
}

thole_status dev_folder_prepare(struct dev_folder *folder, const char *wish, thole_error *reterr)
{
    char real[PATH_MAX];
    *folder = (struct dev_folder){.lock = -1};
    if (wish == NULL) {
        THOLE_TRY(server_dir_create("thole-dev", folder->path, reterr));
        folder->temporary = true;
    } else {
        THOLE_TRY(make_folder(wish, &folder->made, reterr));
        if (realpath(wish, real) == NULL || strlen(real) >= sizeof folder->path) {
            if (folder->made)
                (void)rmdir(wish);
            return thole_fail(reterr, THOLE_INVALID,
                              "the path of --dir %s has more than %zu bytes: a socket's path goes in it",
                              wish, sizeof folder->path - 1);
        }
        memcpy(folder->path, real, strlen(real) + 1);
    }
    THOLE_TRY(dev_folder_lock(folder, reterr));
    THOLE_TRY(dev_folder_take_over(folder, reterr));
    THOLE_TRY(make_inside(folder, "nats", reterr));
    return make_inside(folder, "postgres", reterr);
}

thole_status dev_folder_note(const struct dev_folder *folder, const struct server *nats,
                             const struct server *postgres, thole_error *reterr)
{
    char text[512];
    assert(folder->lock >= 0);
    (void)snprintf(text, sizeof text, "%u %u\n", nats->port, postgres->port);
    THOLE_TRY(dev_folder_write_file(folder, "ports", text, reterr));
    (void)snprintf(text, sizeof text,
                   "export THOLE_NATS_URL='%s'\nexport THOLE_POSTGRES='%s'\nexport THOLE_CONTEXT=none\n",
                   nats->url, postgres->url);
    return dev_folder_write_file(folder, "env", text, reterr);
}

void dev_folder_end(struct dev_folder *folder, bool served)
{
    if (folder->temporary || (folder->made && !served))
        server_dir_remove(folder->path);
    if (folder->lock >= 0)
        (void)close(folder->lock);
    folder->lock = -1;
}
