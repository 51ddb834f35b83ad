#include "archive_folder.h"
#include "export_file.h"
#include "file_fault.h"
#include "memory.h"
#include "private_file.h"
#include "text.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { NAMES_MAX = 1000 * 1000, SAME_SECOND_MAX = 100000 };

/* ---- names ---- */

static bool ends_with(const char *name, const char *end)
{
    size_t const len = strlen(name), end_len = strlen(end);
    return len > end_len && strcmp(name + len - end_len, end) == 0;
}

static int archive_folder_by_name(const void *a, const void *b)
{
    return strcmp(a, b);
}

static thole_status archive_folder_join(const char *folder, const char *name, char ret[ARCHIVE_PATH_BYTES],
                                        thole_error *reterr)
{
    int const n = snprintf(ret, ARCHIVE_PATH_BYTES, "%s/%s", folder, name);
    return n > 0 && n < ARCHIVE_PATH_BYTES ? THOLE_OK
                                           : thole_fail(reterr, THOLE_INVALID, "the path is too long");
}

thole_status archive_names_add(struct archive_names *names, const char *path, thole_error *reterr)
{
    if (names->len == NAMES_MAX)
        return thole_fail(reterr, THOLE_LIMIT, "more than %d archives", NAMES_MAX);
    names->items = memory_reserve(names->items, &names->cap, names->len + 1, sizeof *names->items);
    (void)snprintf(names->items[names->len++], ARCHIVE_PATH_BYTES, "%s", path);
    return THOLE_OK;
}

void archive_names_sort(struct archive_names *names)
{
    if (names->len > 0)
        qsort(names->items, names->len, sizeof *names->items, archive_folder_by_name);
}

thole_status archive_folder_list(const char *folder, const char *end, struct archive_names *ret,
                                 thole_error *reterr)
{
    char path[ARCHIVE_PATH_BYTES];
    thole_status status = THOLE_OK;
    *ret = (struct archive_names){.len = 0};
    DIR *const opened = opendir(folder);
    if (opened == NULL)
        return file_fault_read(folder, errno, reterr);
    for (const struct dirent *item; status == THOLE_OK && (item = readdir(opened)) != NULL;) {
        if (!ends_with(item->d_name, end))
            continue;
        status = archive_folder_join(folder, item->d_name, path, reterr);
        if (status == THOLE_OK)
            status = archive_names_add(ret, path, reterr);
    }
    (void)closedir(opened);
    archive_names_sort(ret);
    return status;
}

void archive_names_release(struct archive_names *names)
{
    free(names->items);
    *names = (struct archive_names){.len = 0};
}

/* ---- the folder ---- */

thole_status archive_folder_lock(const char *folder, int *ret_lock, thole_error *reterr)
{
    char path[ARCHIVE_PATH_BYTES];
    if (mkdir(folder, PRIVATE_FOLDER_MODE) != 0 && errno != EEXIST)
        return file_fault_write(folder, errno, reterr);
    THOLE_TRY(archive_folder_join(folder, ".lock", path, reterr));
    int const lock = private_file_descriptor(path, O_RDWR);
    if (lock < 0)
        return file_fault_write(path, errno, reterr);
    if (flock(lock, LOCK_EX | LOCK_NB) != 0) {
        (void)close(lock);
        return thole_fail(reterr, THOLE_CONFLICT, "another run uses %.300s", folder);
    }
    *ret_lock = lock;
    return THOLE_OK;
}

static thole_status remove_each(const char *folder, const char *end, bool (*is_spent)(const char *),
                                thole_error *reterr)
{
    struct archive_names names;
    thole_status status = archive_folder_list(folder, end, &names, reterr);
    for (size_t i = 0; i < names.len && status == THOLE_OK; i++)
        if (is_spent(names.items[i]) && unlink(names.items[i]) != 0)
            status = file_fault_write(names.items[i], errno, reterr);
    archive_names_release(&names);
    return status;
}

static bool archive_folder_is_part(const char *path)
{
    (void)path;
    return true;
}

/* A mark whose archive is removed. */
static bool is_left_over(const char *mark)
{
    char path[ARCHIVE_PATH_BYTES];
    (void)snprintf(path, sizeof path, "%.*s", (int)(strlen(mark) - strlen(".sent")), mark);
    return !archive_mark_is_there(path, "");
}

thole_status archive_folder_clean(const char *folder, thole_error *reterr)
{
    THOLE_TRY(remove_each(folder, ".thole.part", archive_folder_is_part, reterr));
    return remove_each(folder, ".thole.sent", is_left_over, reterr);
}

bool archive_mark_is_there(const char *path, const char *end)
{
    char mark[ARCHIVE_PATH_BYTES + 16];
    (void)snprintf(mark, sizeof mark, "%s%s", path, end);
    return access(mark, F_OK) == 0;
}

/* Times as 20261124T154500Z: names sort by them. */
thole_status archive_folder_name(const char *folder, const char *ns, uint64_t now_ms,
                                 char ret[ARCHIVE_PATH_BYTES], thole_error *reterr)
{
    char time[TIME_TEXT_BYTES], digits[TIME_TEXT_BYTES], name[256];
    size_t n = 0;
    text_time(now_ms, time);
    for (size_t i = 0; time[i] != '\0' && time[i] != '.'; i++)
        if (time[i] != '-' && time[i] != ':')
            digits[n++] = time[i];
    digits[n] = '\0';
    for (int i = 1; i <= SAME_SECOND_MAX; i++) {
        (void)snprintf(name, sizeof name, "%s-%sZ-%d.thole", ns, digits, i);
        THOLE_TRY(archive_folder_join(folder, name, ret, reterr));
        if (!archive_mark_is_there(ret, "") && !archive_mark_is_there(ret, ".done") &&
            !archive_mark_is_there(ret, ".part"))
            return THOLE_OK;
    }
    return thole_fail(reterr, THOLE_LIMIT, "%.300s has too many archives of this second", folder);
}

/* ---- marks ---- */

static bool archive_folder_write_all(int fd, thole_slice text)
{
    while (text.len > 0) {
        ssize_t const n = write(fd, text.ptr, text.len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        text.ptr += n;
        text.len -= (size_t)n;
    }
    return true;
}

thole_status archive_mark_write(const char *path, const char *end, thole_slice text, thole_error *reterr)
{
    char mark[ARCHIVE_PATH_BYTES + 16], part[ARCHIVE_PATH_BYTES + 32];
    (void)snprintf(mark, sizeof mark, "%s%s", path, end);
    (void)snprintf(part, sizeof part, "%s.tmp", mark);
    int const fd = private_file_descriptor(part, O_WRONLY | O_TRUNC);
    if (fd < 0)
        return file_fault_write(part, errno, reterr);
    bool const written = archive_folder_write_all(fd, text) && fsync(fd) == 0;
    int const why = errno;
    (void)close(fd);
    errno = why;
    if (!written || rename(part, mark) != 0)
        return file_fault_write(mark, errno, reterr);
    export_sync_folder(mark);
    return THOLE_OK;
}

thole_status archive_mark_read(const char *path, const char *end, struct buf *to, thole_error *reterr)
{
    char mark[ARCHIVE_PATH_BYTES + 16], bytes[1024];
    (void)snprintf(mark, sizeof mark, "%s%s", path, end);
    FILE *const from = fopen(mark, "re");
    if (from == NULL)
        return file_fault_read(mark, errno, reterr);
    buf_clear(to);
    for (size_t n; (n = fread(bytes, 1, sizeof bytes, from)) > 0 && buf_status(to) == THOLE_OK;)
        buf_append(to, bytes, n);
    bool const read = !ferror(from);
    int const why = errno;
    (void)fclose(from);
    if (!read)
        return file_fault_read(mark, why, reterr);
    return buf_status(to) == THOLE_OK ? THOLE_OK
                                      : thole_fail(reterr, THOLE_INVALID, "%.300s is too large", mark);
}

void archive_mark_remove(const char *path, const char *end)
{
    char mark[ARCHIVE_PATH_BYTES + 16];
    (void)snprintf(mark, sizeof mark, "%s%s", path, end);
    (void)unlink(mark); /* a file that cannot be removed stays, and the next run looks at it again */
}
