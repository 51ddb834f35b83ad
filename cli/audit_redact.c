/* audit redact: erases payloads from a history in a file of thole export, and notes in the file who did so
 * and why. The new file is written beside the old one, and takes its name when it is complete. */
#include "audit_redact.h"
#include "audit_scan.h"
#include "clock.h"
#include "export.h"
#include "export_readable.h"
#include "file_fault.h"
#include "history_file.h"
#include "jscan.h"
#include "message.h"
#include "private_file.h"
#include "read_commands.h"
#include "redaction.h"
#include "text.h"
#include "write_flaw.h"
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH_BYTES_MAX = 4096, SECTION_BYTES_MAX = 8 * 1024 * 1024, SHA256_TEXT = 64 };

struct redacting {
    const struct cli *cli;
    struct history_writer writer;
    struct buf part; /* the new file's name, until it has its own */
    thole_slice id;
    char ns[THOLE_NAME_BYTES_MAX + 1];
    uint32_t partition;
    bool here;                    /* in the history of the id */
    uint64_t execution, sequence; /* where the event was; sequence 0: not yet */
    uint64_t records;             /* number of redacted ones */
    uint32_t found_in;            /* the partition of the instance */
    thole_error *reterr;
};

/* ---- output ---- */

static void audit_redact_members(const struct redacting *r, struct json *json)
{
    const struct cli_options *const o = &r->cli->options;
    json_member_number(json, "partition", r->found_in);
    json_member(json, "instance", r->id);
    json_member_number(json, "execution", r->execution);
    if (o->redact_event != 0)
        json_member_number(json, "event", o->redact_event);
    json_member_number(json, "records", r->records);
    json_member_number(json, "sequence", r->sequence);
    json_member_text(json, "field", o->field != NULL ? o->field : "all");
    json_member_text(json, "by", o->actor != NULL ? o->actor : "");
    json_member_text(json, "reason", o->reason);
    json_member_time(json, "time", clock_wall_ms());
}

static thole_status audit_redact_put_section(struct redacting *r)
{
    struct json json;
    struct buf section;
    buf_init(&section, SECTION_BYTES_MAX);
    json_to_buf(&json, &section);
    json_object(&json);
    json_member_text(&json, "schema", "thole.export.redaction.v1");
    audit_redact_members(r, &json);
    json_end(&json);
    thole_status const status = buf_status(&section);
    if (status == THOLE_OK)
        history_writer_section(&r->writer, "redaction", buf_bytes(&section));
    buf_release(&section);
    return status == THOLE_OK ? THOLE_OK : thole_fail(r->reterr, status, "the reason is too long");
}

/* ---- the file, copied ---- */

static thole_status audit_redact_on_place(void *arg, const char *ns, uint32_t partition)
{
    struct redacting *r = arg;
    THOLE_TRY(name_check(thole_slice_from(ns), "namespace", r->reterr));
    (void)snprintf(r->ns, sizeof r->ns, "%s", ns);
    r->partition = partition;
    return THOLE_OK;
}

static thole_status audit_redact_on_begin(void *arg, thole_slice instance)
{
    struct redacting *r = arg;
    r->here = thole_slice_equal(instance, r->id);
    history_writer_begin(&r->writer, r->partition, instance);
    return THOLE_OK;
}

/* The new bytes must have the hash of the old ones, or they are not written. */
static thole_status check_hash(const struct redacting *r, uint64_t sequence, thole_slice before,
                               thole_slice after)
{
    thole_slice const ns = thole_slice_from(r->ns);
    struct record_hash const a = record_hash_make(ns, r->partition, before),
                             b = record_hash_make(ns, r->partition, after);
    if (record_hash_equal(&a, &b))
        return THOLE_OK;
    return thole_fail(r->reterr, THOLE_CORRUPT,
                      "record #%llu is not as it was written: thole audit verify --file",
                      (unsigned long long)sequence);
}

static thole_status redact_record(struct redacting *r, uint64_t sequence, uint64_t execution,
                                  thole_slice bytes, struct buf *to)
{
    const struct cli_options *const o = &r->cli->options;
    struct redaction const what = {o->redact_event,
                                   o->field == NULL ? (thole_slice){0} : thole_slice_from(o->field)};
    thole_status const status = record_redact(bytes, &what, to, r->reterr);
    if (status == THOLE_NOT_FOUND) {
        history_writer_record(&r->writer, sequence, bytes);
        return THOLE_OK;
    }
    THOLE_TRY(status);
    if (r->sequence != 0 && what.event != 0)
        return thole_fail(r->reterr, THOLE_INVALID,
                          "executions %llu and %llu have an event %llu: say which with --execution",
                          (unsigned long long)r->execution, (unsigned long long)execution,
                          (unsigned long long)what.event);
    THOLE_TRY(check_hash(r, sequence, bytes, buf_bytes(to)));
    history_writer_record(&r->writer, sequence, buf_bytes(to));
    if (r->records++ > 0) /* of all that were redacted the first is named */
        return THOLE_OK;
    r->found_in = r->partition;
    r->execution = execution;
    r->sequence = sequence;
    return THOLE_OK;
}

static thole_status audit_redact_on_record(void *arg, uint64_t sequence, thole_slice bytes)
{
    struct redacting *r = arg;
    uint64_t const wanted = r->cli->options.redact_execution;
    struct audit_scan scan;
    struct buf to;
    if (!r->here || !audit_scan(bytes, &scan) || scan.kind != RECORD_TURN ||
        (wanted != 0 && scan.execution != wanted)) {
        history_writer_record(&r->writer, sequence, bytes);
        return THOLE_OK;
    }
    buf_init(&to, RECORD_BYTES_MAX);
    thole_status const status = redact_record(r, sequence, scan.execution, bytes, &to);
    buf_release(&to);
    return status;
}

static thole_status audit_redact_on_end(void *arg)
{
    struct redacting *r = arg;
    history_writer_end(&r->writer);
    bool const done = r->here && r->sequence != 0;
    r->here = false;
    return done ? audit_redact_put_section(r) : THOLE_OK;
}

static void audit_redact_put_manifest(struct redacting *r, thole_slice json, thole_slice sha256)
{
    struct buf manifest;
    char digest[SHA256_TEXT + 1];
    size_t const before = (size_t)(sha256.ptr - json.ptr) + 1;
    history_digest_text(&r->writer.totals.digest, digest);
    buf_init(&manifest, SECTION_BYTES_MAX);
    buf_append(&manifest, json.ptr, before);
    buf_append(&manifest, digest, SHA256_TEXT);
    buf_append(&manifest, json.ptr + before + SHA256_TEXT, json.len - before - SHA256_TEXT);
    history_writer_section(&r->writer, "manifest", buf_bytes(&manifest));
    buf_release(&manifest);
}

static thole_status audit_redact_on_section(void *arg, thole_slice name, thole_slice json)
{
    struct redacting *r = arg;
    char text[THOLE_NAME_BYTES_MAX + 1];
    thole_slice sha256;
    if (thole_slice_equal(name, THOLE_STR("manifest")) && json_find(json, "sha256", &sha256) &&
        sha256.len == SHA256_TEXT + 2) {
        audit_redact_put_manifest(r, json, sha256);
        return THOLE_OK;
    }
    THOLE_TRY(name_check(name, "section", r->reterr));
    (void)snprintf(text, sizeof text, "%.*s", THOLE_FMT(name));
    history_writer_section(&r->writer, text, json);
    return THOLE_OK;
}

/* ---- both files ---- */

static thole_status audit_redact_not_found(const struct redacting *r, const char *path, thole_error *reterr)
{
    const struct cli_options *const o = &r->cli->options;
    const char *const where = o->redact_execution == 0 ? "" : " in that execution";
    if (o->redact_event == 0)
        return thole_fail(reterr, THOLE_NOT_FOUND,
                          "%.300s has no payload of instance \"%.*s\"%s that can be erased", path,
                          THOLE_FMT(r->id), where);
    return thole_fail(reterr, THOLE_NOT_FOUND, "%.300s has no event %llu of instance \"%.*s\"%s", path,
                      (unsigned long long)o->redact_event, THOLE_FMT(r->id), where);
}

static thole_status audit_redact_copy(struct redacting *r, FILE *from, FILE *to, const char *path,
                                      thole_error *reterr)
{
    struct history_file_reader const reader = {.begin = audit_redact_on_begin,
                                               .record = audit_redact_on_record,
                                               .readable = export_readable,
                                               .end = audit_redact_on_end,
                                               .section = audit_redact_on_section,
                                               .place = audit_redact_on_place,
                                               .arg = r};
    int const first = getc(from);
    rewind(from);
    history_writer_init(&r->writer, to, first == '{' ? HISTORY_JSONL : HISTORY_BINARY, r->ns);
    r->writer.decorate = export_decorate;
    thole_status status = history_file_read(from, &reader, reterr);
    history_writer_release(&r->writer);
    if (status == THOLE_OK && r->sequence == 0)
        status = audit_redact_not_found(r, path, reterr);
    if (status != THOLE_OK)
        return status;
    int const flaw = write_flaw(to);
    if (flaw != 0)
        return file_fault_write(buf_cstr(&r->part), flaw, reterr);
    return fsync(fileno(to)) == 0 ? THOLE_OK : file_fault_write(buf_cstr(&r->part), errno, reterr);
}

static thole_status audit_redact_rewrite(struct redacting *r, FILE *from, const char *path,
                                         thole_error *reterr)
{
    struct stat about;
    FILE *const to = private_file_open(buf_cstr(&r->part), "wx");
    if (to == NULL && errno == EEXIST)
        return thole_fail(reterr, THOLE_CONFLICT,
                          "another process writes %.300s, or was killed: then remove it", buf_cstr(&r->part));
    if (to == NULL)
        return file_fault_write(buf_cstr(&r->part), errno, reterr);
    thole_status status =
        fstat(fileno(from), &about) == 0 && S_ISREG(about.st_mode) &&
                fchmod(fileno(to), about.st_mode & 07777) == 0
            ? audit_redact_copy(r, from, to, path, reterr)
            : thole_fail(reterr, THOLE_INVALID, "%.300s is no file that can be replaced", path);
    (void)fclose(to);
    if (status == THOLE_OK && rename(buf_cstr(&r->part), path) != 0)
        status = file_fault_write(path, errno, reterr);
    if (status != THOLE_OK)
        (void)unlink(buf_cstr(&r->part));
    return status;
}

static thole_status redact_file(struct redacting *r, thole_error *reterr)
{
    const char *const path = r->cli->options.file;
    FILE *const from = fopen(path, "re");
    if (from == NULL)
        return file_fault_read(path, errno, reterr);
    buf_init(&r->part, PATH_BYTES_MAX);
    buf_printf(&r->part, "%s.part", path);
    thole_status const status =
        buf_status(&r->part) == THOLE_OK
            ? audit_redact_rewrite(r, from, path, reterr)
            : thole_fail(reterr, THOLE_INVALID, "the path is longer than %d bytes", PATH_BYTES_MAX);
    buf_release(&r->part);
    (void)fclose(from);
    return status;
}

/* ---- the verb ---- */

static void audit_redact_print_line(const struct redacting *r)
{
    const struct cli_options *const o = &r->cli->options;
    if (o->all)
        (void)printf("redacted: %llu records of %.*s in %s\n", (unsigned long long)r->records,
                     THOLE_FMT(r->id), o->file);
    else
        (void)printf("redacted: event %llu of %.*s/%llu, record #%llu, in %s\n",
                     (unsigned long long)o->redact_event, THOLE_FMT(r->id), (unsigned long long)r->execution,
                     (unsigned long long)r->sequence, o->file);
}

/* Errors on which another command has more to say. */
static int audit_redact_report_error(const struct cli *cli, const thole_error *error)
{
    char hint[PATH_BYTES_MAX];
    bool const wrong = error->status == THOLE_CORRUPT, erased = error->status == THOLE_CONFLICT;
    (void)snprintf(hint, sizeof hint, "thole %s --file %s", wrong || erased ? "audit verify" : "history",
                   cli->options.file);
    if (wrong)
        return cli_complain_with(cli, cli->options.file, error, EXIT_DIVERGED, hint);
    if (erased)
        return cli_complain_with(cli, cli->words[1], error, EXIT_CONFLICT, hint);
    if (error->status == THOLE_NOT_FOUND)
        return cli_complain_with(cli, cli->words[1], error, EXIT_NOT_FOUND, hint);
    return cli_complain(cli, cli->words[1], error);
}

static void print_done(const struct redacting *r)
{
    const struct cli_options *const o = &r->cli->options;
    struct json json;
    if (o->output == OUTPUT_TABLE) {
        audit_redact_print_line(r);
        return;
    }
    json_document(&json, stdout, "thole.redaction.v1");
    audit_redact_members(r, &json);
    json_end(&json);
}

int audit_redact(struct cli *cli)
{
    thole_error error = {.status = THOLE_OK};
    struct redacting r = {.cli = cli, .reterr = &error};
    if (cli->words_len != 2)
        return cli_misused(cli, "which instance? thole audit redact ID --file FILE --event N --reason TEXT");
    if (cli->options.file == NULL)
        return cli_misused(cli,
                           "--file is needed: what is in a stream cannot be rewritten; export the instance, "
                           "redact the file, and delete the instance");
    if ((cli->options.redact_event != 0) == cli->options.all)
        return cli_misused(cli, "which payloads? --event N, an id that thole history --file shows, or --all");
    if (cli->options.reason == NULL)
        return cli_misused(cli, "--reason is needed: it is kept in the file, with --actor and the time");
    r.id = thole_slice_from(cli->words[1]);
    if (redact_file(&r, &error) == THOLE_OK) {
        print_done(&r);
        return EXIT_DONE;
    }
    return audit_redact_report_error(cli, &error);
}
