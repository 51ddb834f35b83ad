#include "audit_report.h"
#include "clock.h"
#include "jscan.h"
#include "memory.h"
#include "text.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    SHOW_EVERY = 4096 /* records */,
    SHOW_MS = 200,
    CELL_BYTES = 1024,
    HEX_BYTES = 2 * RECORD_HASH_BYTES + 1,
    REDACTION_TEXT_MAX = 2048, /* of a reason */
};

struct audit_checked {
    struct audit_options options; /* instance: allocated */
    struct audit_summary summary;
    uint64_t is_signed, checkpoints, sealed; /* sealed: there is a seal */
    bool of_file;
    uint64_t in_file;
    uint64_t foreign; /* messages of the audit stream that are none of thole's */
};

void audit_report_init(struct audit_report *report, const struct cli *cli)
{
    *report = (struct audit_report){
        .cli = cli, .begun_ms = clock_monotonic_ms(), .tty = isatty(STDERR_FILENO) == 1};
    if (cli->options.output != OUTPUT_JSON)
        return;
    json_document(&report->json, stdout, "thole.audit.v1");
    json_member_text(&report->json, "namespace", cli->options.ns);
    json_key(&report->json, "findings");
    json_array(&report->json);
}

void audit_report_begin(struct audit_report *report, const struct audit_options *options)
{
    report->seal = options->seal;
    report->audit = audit_create(options);
    report->partition = options->partition;
    report->instance = options->instance;
}

bool audit_report_stopped(const struct audit_report *report)
{
    (void)report;
    return ferror(stdout) != 0;
}

/* ---- progress ---- */

static void audit_report_clear_progress(const struct audit_report *report)
{
    if (report->tty && report->shown_ms > 0)
        (void)fputs("\r\033[K", stderr);
}

void audit_report_progress(struct audit_report *report)
{
    if (++report->records % SHOW_EVERY != 0 || !report->tty || report->cli->options.output != OUTPUT_TABLE)
        return;
    uint64_t const now = clock_monotonic_ms(), taken = now - report->begun_ms;
    if (now < report->shown_ms + SHOW_MS)
        return;
    report->shown_ms = now;
    (void)fprintf(stderr, "\r\033[Kpartition %" PRIu32, report->partition);
    if (report->logs > 0)
        (void)fprintf(stderr, " (%zu of %zu)", report->checked_len + 1, report->logs);
    (void)fprintf(stderr, ": %" PRIu64 " records, %" PRIu64 " a second", report->records,
                  report->records * 1000 / (taken + 1));
}

/* ---- findings ---- */

static void finding_members(struct json *json, const struct audit_report *report,
                            const struct audit_finding *finding)
{
    json_member_text(json, "fault", audit_fault_name(finding->fault));
    json_member_number(json, "partition", report->partition);
    json_key(json, "sequence");
    if (finding->sequence == 0)
        json_null(json);
    else
        json_number(json, finding->sequence);
    if (finding->instance.len > 0) {
        json_member(json, "instance", finding->instance);
        json_member_number(json, "execution", finding->execution);
    }
    json_member_text(json, "text", finding->text);
}

static void finding_line(const struct audit_report *report, const struct audit_finding *finding)
{
    struct buf safe;
    audit_report_clear_progress(report);
    (void)printf("%-10s  partition %" PRIu32, audit_fault_name(finding->fault), report->partition);
    if (finding->sequence > 0)
        (void)printf(" #%" PRIu64, finding->sequence);
    if (finding->instance.len > 0) {
        buf_init(&safe, CELL_BYTES);
        text_safe(&safe, finding->instance, THOLE_ID_BYTES_MAX);
        (void)printf(" %s/%" PRIu64, buf_cstr(&safe), finding->execution);
        buf_release(&safe);
    }
    (void)printf(": %s\n", finding->text);
}

void audit_report_finding(struct audit_report *report, const struct audit_finding *finding)
{
    struct json *json = &report->json;
    report->findings++;
    switch ((enum output)report->cli->options.output) {
    case OUTPUT_JSON:
        json_object(json);
        finding_members(json, report, finding);
        json_end(json);
        break;
    case OUTPUT_JSONL:
        json_document(json, stdout, "thole.audit_finding.v1");
        finding_members(json, report, finding);
        json_end(json);
        break;
    default: finding_line(report, finding);
    }
}

void audit_report_found(void *report, const struct audit_finding *finding)
{
    audit_report_finding(report, finding);
}

/* ---- redactions ---- */

static void text_member(thole_slice json, const char *key, struct buf *to)
{
    struct buf text;
    thole_slice value;
    buf_init(&text, REDACTION_TEXT_MAX);
    if (json_find(json, key, &value) && json_text(value, &text))
        text_safe(to, buf_bytes(&text), REDACTION_TEXT_MAX);
    buf_release(&text);
}

static uint64_t number_member(thole_slice json, const char *key)
{
    thole_slice value;
    uint64_t number = 0;
    return json_find(json, key, &value) && json_uint(value, &number) ? number : 0;
}

static void redaction_line(const struct audit_report *report, thole_slice json)
{
    struct buf line;
    buf_init(&line, 4 * REDACTION_TEXT_MAX + CELL_BYTES);
    buf_printf(&line, "redacted    partition %" PRIu64 " #%" PRIu64 " ", number_member(json, "partition"),
               number_member(json, "sequence"));
    text_member(json, "instance", &line);
    buf_printf(&line, "/%" PRIu64 ": event %" PRIu64 ", ", number_member(json, "execution"),
               number_member(json, "event"));
    text_member(json, "field", &line);
    buf_text(&line, ", ");
    text_member(json, "time", &line);
    buf_text(&line, ", by ");
    struct buf by;
    buf_init(&by, REDACTION_TEXT_MAX);
    text_member(json, "by", &by);
    buf_printf(&line, "%s%s: ", by.len == 0 ? "an unknown actor" : "stated:", /* as in thole history */
               buf_cstr(&by));
    buf_release(&by);
    text_member(json, "reason", &line);
    audit_report_clear_progress(report);
    (void)printf("%s\n", buf_cstr(&line));
    buf_release(&line);
}

static void text_to(struct json *to, thole_slice json, const char *key)
{
    struct buf text;
    buf_init(&text, REDACTION_TEXT_MAX);
    text_member(json, key, &text);
    json_member(to, key, buf_bytes(&text));
    buf_release(&text);
}

static void redaction_members(struct json *to, thole_slice json)
{
    json_member_number(to, "partition", number_member(json, "partition"));
    json_member_number(to, "sequence", number_member(json, "sequence"));
    text_to(to, json, "instance");
    json_member_number(to, "execution", number_member(json, "execution"));
    json_member_number(to, "event", number_member(json, "event"));
    text_to(to, json, "field");
    text_to(to, json, "by");
    text_to(to, json, "reason");
    text_to(to, json, "time");
}

void audit_report_redaction(struct audit_report *report, thole_slice json)
{
    if (report->cli->options.output == OUTPUT_TABLE) {
        redaction_line(report, json);
    } else if (report->cli->options.output == OUTPUT_JSONL) {
        json_document(&report->json, stdout, "thole.audit_redaction.v1");
        redaction_members(&report->json, json);
        json_end(&report->json);
    } else {
        report->redactions = memory_reserve(report->redactions, &report->redactions_cap,
                                            report->redactions_len + 1, sizeof *report->redactions);
        report->redactions[report->redactions_len++] =
            (thole_slice){memory_copy(json.ptr, json.len), json.len};
    }
}

static void redactions_end(struct audit_report *report)
{
    struct json *const json = &report->json;
    json_key(json, "redactions");
    json_array(json);
    for (size_t i = 0; i < report->redactions_len; i++) {
        json_object(json);
        redaction_members(json, report->redactions[i]);
        json_end(json);
        free((void *)(uintptr_t)report->redactions[i].ptr);
    }
    json_end(json);
    free(report->redactions);
}

/* ---- the summary ---- */

static void to_hex(const struct record_hash *hash, char to[HEX_BYTES])
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < RECORD_HASH_BYTES; i++) {
        to[2 * i] = digits[hash->bytes[i] >> 4];
        to[2 * i + 1] = digits[hash->bytes[i] & 15];
    }
    to[HEX_BYTES - 1] = '\0';
}

static void checked_members(struct json *json, const struct audit_checked *checked)
{
    const struct audit_summary *summary = &checked->summary;
    char hex[HEX_BYTES];
    json_member_number(json, "partition", checked->options.partition);
    if (checked->options.instance.len > 0)
        json_member(json, "instance", checked->options.instance);
    json_member_number(json, "findings", summary->findings);
    json_member_number(json, "records", summary->records);
    json_member_number(json, "removed", summary->removed);
    json_member_number(json, "redacted", summary->redacted);
    json_member_number(json, "void", summary->voids);
    json_member_number(json, "unchained", summary->unchained);
    json_member_number(json, "chained_from", summary->chained_from);
    if (summary->unchained_from > 0) {
        json_member_number(json, "unchained_from", summary->unchained_from);
        json_member_number(json, "unchained_until", summary->unchained_until);
    }
    if (checked->sealed > 0) {
        json_member_number(json, "checkpoints", checked->checkpoints);
        json_member_number(json, "signed", checked->is_signed);
        json_member_number(json, "left_out", checked->foreign);
    }
    if (checked->of_file)
        json_member_number(json, "in_checkpoints", checked->in_file);
    json_member_number(json, "last_sequence", summary->last_sequence);
    json_member_time(json, "last_time", summary->last_time_ms);
    to_hex(&summary->last, hex);
    json_member_text(json, "last_hash", hex);
}

static void checked_line(const struct audit_checked *checked)
{
    const struct audit_summary *summary = &checked->summary;
    struct buf safe;
    char time[TIME_TEXT_BYTES];
    buf_init(&safe, CELL_BYTES);
    text_safe(&safe, checked->options.instance, THOLE_ID_BYTES_MAX);
    (void)printf("partition %" PRIu32 "%s%s: %" PRIu64 " records, ", checked->options.partition,
                 checked->options.instance.len > 0 ? " " : "", buf_cstr(&safe), summary->records);
    if (summary->findings > 0)
        (void)printf("%" PRIu64 " findings", summary->findings);
    else if (summary->records == 0)
        (void)printf("empty");
    else if (summary->chained_from == 0)
        (void)printf("without hashes: nothing is shown");
    else
        (void)printf("whole");
    if (summary->unchained > 0 && summary->chained_from > 0)
        (void)printf(", chained from #%" PRIu64, summary->chained_from);
    if (summary->unchained_from > 0)
        (void)printf(", not chained from #%" PRIu64 " to #%" PRIu64, summary->unchained_from,
                     summary->unchained_until);
    if (summary->removed > 0)
        (void)printf(", %" PRIu64 " removed by deletions and prunings", summary->removed);
    if (summary->redacted > 0)
        (void)printf(", %" PRIu64 " redacted", summary->redacted);
    if (summary->voids > 0)
        (void)printf(", %" PRIu64 " at the end do not count", summary->voids);
    if (checked->sealed > 0)
        (void)printf(", %" PRIu64 " checkpoints, the last of %" PRIu64 " records", checked->checkpoints,
                     checked->is_signed);
    if (checked->foreign > 0)
        (void)printf(", %" PRIu64 " messages left out that are answers of a server", checked->foreign);
    if (checked->of_file)
        (void)printf(", %s%" PRIu64 " of them in signed checkpoints of the file",
                     checked->in_file < summary->records ? "only " : "", checked->in_file);
    text_time(summary->last_time_ms, time);
    if (summary->records > 0)
        (void)printf("; the last is #%" PRIu64 ", %s", summary->last_sequence, time);
    (void)printf("\n");
    buf_release(&safe);
}

void audit_report_end(struct audit_report *report, bool whole)
{
    if (whole)
        audit_end(report->audit);
    if (whole && report->seal != NULL && seal_signed(report->seal) == 0 &&
        audit_summary(report->audit).records > 0)
        audit_report_finding(report,
                             &(struct audit_finding){.fault = AUDIT_CHECKPOINT,
                                                     .text = "there is no checkpoint of this log by --key"});
    report->checked = memory_reserve(report->checked, &report->checked_cap, report->checked_len + 1,
                                     sizeof *report->checked);
    struct audit_checked *checked = &report->checked[report->checked_len++];
    *checked = (struct audit_checked){.summary = audit_summary(report->audit)};
    if (report->checked_len <= report->in_file_len) {
        checked->of_file = true;
        checked->in_file = report->in_file[report->checked_len - 1];
    }
    checked->options.partition = report->partition;
    checked->options.instance =
        (thole_slice){memory_copy(report->instance.ptr, report->instance.len), report->instance.len};
    checked->sealed = report->seal != NULL;
    if (report->seal != NULL) {
        checked->is_signed = seal_signed(report->seal);
        checked->checkpoints = seal_checkpoints(report->seal);
        checked->foreign = seal_foreign(report->seal);
    }
    audit_destroy(report->audit);
    report->audit = NULL;
    audit_report_clear_progress(report);
    if (!whole)
        return;
    if (report->cli->options.output == OUTPUT_TABLE)
        checked_line(checked);
    if (report->cli->options.output != OUTPUT_JSONL)
        return;
    json_document(&report->json, stdout, "thole.audit_log.v1");
    checked_members(&report->json, checked);
    json_end(&report->json);
}

int audit_report_finish(struct audit_report *report)
{
    struct json *json = &report->json;
    bool const document = report->cli->options.output == OUTPUT_JSON;
    if (document) {
        json_end(json);
        redactions_end(report);
        json_key(json, "logs");
        json_array(json);
    }
    for (size_t i = 0; i < report->checked_len; i++) {
        if (document) {
            json_object(json);
            checked_members(json, &report->checked[i]);
            json_end(json);
        }
        free((void *)(uintptr_t)report->checked[i].options.instance.ptr);
    }
    if (document) {
        json_end(json);
        json_end(json);
    }
    free(report->checked);
    return report->findings > 0 ? EXIT_DIVERGED : EXIT_DONE;
}
