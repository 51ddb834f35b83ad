/* The file that an export makes. */
#include "export_file.h"
#include "file_fault.h"
#include "jscan.h"
#include "private_file.h"
#include "subject.h"
#include "text.h"
#include "thole/program.h"
#include "write_flaw.h"
#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH_BYTES_MAX = 4096, COPY_BYTES = 64 * 1024, HEAD_BYTES_MAX = 8 * 1024 * 1024 };

static thole_status cannot_write(const struct export_file *file, thole_error *reterr)
{
    return file_fault_write(file->part.len > 0 ? buf_cstr(&file->part) : file->options.path, errno, reterr);
}

/* THOLE_OK: all that @p to was given is written. */
static thole_status write_out(const struct export_file *file, FILE *to, thole_error *reterr)
{
    int const flaw = write_flaw(to);
    return flaw == 0 ? THOLE_OK
                     : file_fault_write(file->part.len > 0 ? buf_cstr(&file->part) : file->options.path, flaw,
                                        reterr);
}

/* ---- contents of a .part ---- */

struct resuming {
    struct export_file *file;
    struct buf instance;
    long whole; /* bytes up to the end of what is whole */
    bool head;
    thole_error *reterr;
};

static thole_status found_section(void *arg, thole_slice name, thole_slice json)
{
    struct resuming *resuming = arg;
    const struct export_options *options = &resuming->file->options;
    thole_slice selection, ns;
    if (!thole_slice_equal(name, THOLE_STR("export")) || resuming->head)
        return THOLE_CANCELLED; /* a manifest: it is made again */
    if (!json_find(json, "selection", &selection) || !thole_slice_equal(selection, options->selection) ||
        !json_find(json, "namespace", &ns) || !json_text_is(ns, options->ns))
        return thole_fail(resuming->reterr, THOLE_CONFLICT,
                          "%.300s is of another export: remove it, or repeat that one's command",
                          buf_cstr(&resuming->file->part));
    resuming->head = true;
    resuming->whole = ftell(resuming->file->work);
    return THOLE_OK;
}

static thole_status found_begin(void *arg, thole_slice instance)
{
    struct resuming *resuming = arg;
    struct export_file *file = resuming->file;
    buf_clear(&resuming->instance);
    buf_slice(&resuming->instance, instance);
    history_digest_copy(&file->before.digest, &file->writer.totals.digest);
    history_writer_begin(&file->writer, subject_partition(instance, file->options.partitions), instance);
    return THOLE_OK;
}

static thole_status found_record(void *arg, uint64_t sequence, thole_slice bytes)
{
    struct resuming *resuming = arg;
    history_writer_record(&resuming->file->writer, sequence, bytes);
    return THOLE_OK;
}

static thole_status found_end(void *arg)
{
    struct resuming *resuming = arg;
    struct export_file *file = resuming->file;
    history_writer_end(&file->writer);
    history_digest_copy(&file->before.digest, &file->writer.totals.digest);
    (void)id_set_add(&file->done, buf_bytes(&resuming->instance));
    resuming->whole = ftell(file->work);
    return THOLE_OK;
}

static void put_schema(struct json *json, struct buf *to)
{
    json_to_buf(json, to);
    json_object(json);
    json_member_text(json, "schema", "thole.export.v1");
}

/* Whether the file begins like every export of the form, as far as it goes. */
static bool is_of_form(const struct export_file *file)
{
    char found[64];
    struct json json;
    struct buf expected;
    buf_init(&expected, sizeof found);
    if (file->options.form == HISTORY_JSONL)
        put_schema(&json, &expected);
    else
        buf_text(&expected, "thole export 1 ");
    size_t const n = fread(found, 1, expected.len, file->work);
    bool const is = memcmp(found, expected.ptr, n) == 0;
    rewind(file->work);
    buf_release(&expected);
    return is;
}

/* Complete parts stay, the rest goes. */
static thole_status export_file_resume(struct export_file *file, thole_error *reterr)
{
    struct resuming resuming = {.file = file, .reterr = reterr};
    thole_error ignored = {.text = ""};
    struct history_file_reader const reader = {.begin = found_begin,
                                               .record = found_record,
                                               .end = found_end,
                                               .section = found_section,
                                               .arg = &resuming,
                                               .unfinished = true};
    if (!is_of_form(file))
        return thole_fail(reterr, THOLE_CONFLICT, "%.300s is no part of an export in this --form: remove it",
                          buf_cstr(&file->part));
    buf_init(&resuming.instance, THOLE_ID_BYTES_MAX);
    file->writer.to = NULL; /* only its digest */
    thole_status const status = history_file_read(file->work, &reader, &ignored);
    file->writer.to = file->work;
    buf_release(&resuming.instance);
    history_digest_copy(&file->writer.totals.digest, &file->before.digest);
    id_set_sort(&file->done);
    if (status == THOLE_CONFLICT || status == THOLE_NOMEM)
        return status == THOLE_CONFLICT ? status : thole_fail(reterr, status, "%s", ignored.text);
    if (file->done.full)
        return thole_fail(reterr, THOLE_LIMIT, "%.300s has too many instances", buf_cstr(&file->part));
    clearerr(file->work);
    if (ftruncate(fileno(file->work), resuming.whole) != 0 ||
        fseek(file->work, resuming.whole, SEEK_SET) != 0)
        return cannot_write(file, reterr);
    return THOLE_OK;
}

/* ---- opening ---- */

static thole_status export_file_put_head(struct export_file *file, thole_error *reterr)
{
    const struct export_options *options = &file->options;
    char time[TIME_TEXT_BYTES];
    struct json json;
    struct buf head;
    buf_init(&head, HEAD_BYTES_MAX);
    put_schema(&json, &head);
    json_member_text(&json, "thole", thole_version());
    json_member_text(&json, "namespace", options->ns);
    json_member_number(&json, "partitions", options->partitions);
    text_time(options->begun_ms, time);
    json_member_text(&json, "begun", time);
    json_member_copy(&json, THOLE_STR("selection"), options->selection);
    json_end(&json);
    thole_status const status = buf_status(&head);
    if (status == THOLE_OK)
        history_writer_section(&file->writer, "export", buf_bytes(&head));
    buf_release(&head);
    return status == THOLE_OK ? THOLE_OK : thole_fail(reterr, status, "too many ids for an export's head");
}

/* Stdout, a device, a pipe: there is nothing to rename. */
static bool is_special(const char *path)
{
    struct stat about;
    return strcmp(path, "-") == 0 || (stat(path, &about) == 0 && !S_ISREG(about.st_mode));
}

static thole_status open_special(struct export_file *file, thole_error *reterr)
{
    bool const standard = strcmp(file->options.path, "-") == 0;
    file->out = standard ? stdout : private_file_open(file->options.path, "w");
    if (file->out == NULL)
        return cannot_write(file, reterr);
    file->work = tmpfile();
    return file->work == NULL ? file_fault_write("a temporary file", errno, reterr) : THOLE_OK;
}

static thole_status open_part(struct export_file *file, thole_error *reterr)
{
    buf_printf(&file->part, "%s.part", file->options.path);
    if (buf_status(&file->part) != THOLE_OK)
        return thole_fail(reterr, THOLE_INVALID, "the path is longer than %d bytes", PATH_BYTES_MAX);
    file->work = private_file_open(buf_cstr(&file->part), "a+");
    if (file->work == NULL)
        return cannot_write(file, reterr);
    if (flock(fileno(file->work), LOCK_EX | LOCK_NB) != 0)
        return thole_fail(reterr, THOLE_CONFLICT, "another process writes %.300s", buf_cstr(&file->part));
    rewind(file->work);
    return THOLE_OK;
}

thole_status export_file_open(struct export_file *file, const struct export_options *options,
                              thole_error *reterr)
{
    *file = (struct export_file){.options = *options};
    buf_init(&file->part, PATH_BYTES_MAX);
    id_set_init(&file->done);
    history_digest_init(&file->before.digest);
    history_writer_init(&file->writer, NULL, options->form, options->ns);
    bool const special = is_special(options->path);
    THOLE_TRY(special ? open_special(file, reterr) : open_part(file, reterr));
    file->writer.to = file->work;
    if (!special)
        THOLE_TRY(export_file_resume(file, reterr));
    return ftell(file->work) == 0 ? export_file_put_head(file, reterr) : THOLE_OK;
}

void export_file_release(struct export_file *file)
{
    if (file->work != NULL)
        (void)fclose(file->work);
    if (file->out != NULL && file->out != stdout)
        (void)fclose(file->out);
    history_writer_release(&file->writer);
    history_digest_release(&file->before.digest);
    id_set_release(&file->done);
    buf_release(&file->part);
    *file = (struct export_file){.work = NULL};
}

/* ---- histories ---- */

void export_file_begin(struct export_file *file, thole_slice instance)
{
    file->begun = ftell(file->work);
    file->before.instances = file->writer.totals.instances;
    file->before.records = file->writer.totals.records;
    history_digest_copy(&file->before.digest, &file->writer.totals.digest);
    history_writer_begin(&file->writer, subject_partition(instance, file->options.partitions), instance);
}

/* The temporary file's contents are complete: copies them to the output. */
static thole_status pass_on(struct export_file *file, thole_error *reterr)
{
    char bytes[COPY_BYTES];
    if (file->out == NULL)
        return ferror(file->work) ? write_out(file, file->work, reterr) : THOLE_OK;
    rewind(file->work);
    for (size_t n; (n = fread(bytes, 1, sizeof bytes, file->work)) > 0;)
        (void)fwrite(bytes, 1, n, file->out);
    bool const read = !ferror(file->work);
    rewind(file->work);
    if (ferror(file->out)) /* of stdout cli_finish() reports it */
        return file->out == stdout ? THOLE_CANCELLED : write_out(file, file->out, reterr);
    if (!read)
        return thole_fail(reterr, THOLE_UNAVAILABLE, "the temporary file of %.300s cannot be read",
                          file->options.path);
    return ftruncate(fileno(file->work), 0) == 0 ? THOLE_OK : cannot_write(file, reterr);
}

thole_status export_file_keep(struct export_file *file, thole_error *reterr)
{
    history_writer_end(&file->writer);
    return pass_on(file, reterr);
}

void export_file_drop(struct export_file *file)
{
    (void)fflush(file->work);
    int const cut = ftruncate(fileno(file->work), file->begun);
    (void)cut; /* a file that cannot be cut cannot be written to either: the next write reports it */
    (void)fseek(file->work, file->begun, SEEK_SET);
    file->writer.totals.instances = file->before.instances;
    file->writer.totals.records = file->before.records;
    history_digest_copy(&file->writer.totals.digest, &file->before.digest);
}

/* ---- the end ---- */

bool export_is_missing(thole_status status)
{
    return status == THOLE_NOT_FOUND || status == THOLE_CORRUPT || status == THOLE_UNSUPPORTED ||
           status == THOLE_LIMIT;
}

void export_sync_folder(const char *path)
{
    char folder[PATH_BYTES_MAX];
    const char *slash = strrchr(path, '/');
    (void)snprintf(folder, sizeof folder, "%.*s", slash == NULL ? 1 : (int)(slash - path) + 1,
                   slash == NULL ? "." : path);
    FILE *const opened = fopen(folder, "re");
    if (opened != NULL) {
        (void)fsync(fileno(opened));
        (void)fclose(opened);
    }
}

thole_status export_file_finish(struct export_file *file, thole_slice manifest, thole_error *reterr)
{
    history_writer_section(&file->writer, "manifest", manifest);
    if (file->out != NULL) {
        THOLE_TRY(pass_on(file, reterr));
        return file->out == stdout ? THOLE_OK : write_out(file, file->out, reterr);
    }
    THOLE_TRY(write_out(file, file->work, reterr));
    if (fsync(fileno(file->work)) != 0 || rename(buf_cstr(&file->part), file->options.path) != 0)
        return cannot_write(file, reterr);
    export_sync_folder(file->options.path);
    return THOLE_OK;
}

void export_file_remove(struct export_file *file)
{
    if (file->part.len > 0)
        (void)remove(buf_cstr(&file->part));
}
