#include "doctor_report.h"
#include "text.h"
#include <inttypes.h>
#include <stdarg.h>

enum { SKEW_WARN_MS = 1000, SKEW_FAIL_MS = 30 * 1000, LINE_BYTES_MAX = 8 * SEEN_BYTES_MAX };

static const char *const names[] = {"OK", "WARN", "FAIL", "SKIP"};

void report_begin(struct doctor_report *report, const struct cli *cli)
{
    *report = (struct doctor_report){.cli = cli};
    listing_begin(&report->listing, cli, "thole.doctor.v1", "checks", 0);
}

static void doctor_report_print_line(const char *finding, const char *check, const char *text)
{
    struct buf safe;
    buf_init(&safe, LINE_BYTES_MAX);
    text_safe(&safe, thole_slice_from(text), LINE_BYTES_MAX / 8);
    (void)printf("%-4s  %-15s  %s\n", finding, check, buf_cstr(&safe));
    buf_release(&safe);
}

void report_add(struct doctor_report *report, const char *check, enum finding finding, const char *todo,
                const char *fmt, ...)
{
    char seen[SEEN_BYTES_MAX], line[SEEN_BYTES_MAX];
    struct json *const json = &report->listing.json;
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(seen, sizeof seen, fmt, args);
    va_end(args);
    report->counts[finding]++;
    if (listing_row(&report->listing, "thole.check.v1") == LISTING_TABLE) {
        doctor_report_print_line(names[finding], check, seen);
        if (todo != NULL) {
            (void)snprintf(line, sizeof line, "Try: %s", todo);
            doctor_report_print_line("", "", line);
        }
    } else {
        json_member_text(json, "check", check);
        json_member_text(json, "result", names[finding]);
        json_member_text(json, "seen", seen);
        if (todo != NULL)
            json_member_text(json, "try", todo);
    }
    (void)listing_row_end(&report->listing); /* cli_finish() reports an error of stdout */
}

void report_error(struct doctor_report *report, const char *check, const char *role, const char *todo,
                  const thole_error *error)
{
    char lacking[SEEN_BYTES_MAX];
    if (error->status == THOLE_DENIED && role != NULL) {
        (void)snprintf(lacking, sizeof lacking,
                       "what the role %s may do is enough: thole doctor --nats-permissions %s", role, role);
        todo = lacking;
    }
    report_add(report, check, FINDING_FAIL, todo, "%s",
               error->text[0] == '\0' ? thole_status_text(error->status) : error->text);
}

void report_clock(struct doctor_report *report, const char *check, const char *whose, uint64_t there_ms,
                  uint64_t begun_ms, uint64_t ended_ms)
{
    /* The clock was read at some time within the round trip. */
    bool const ahead = there_ms > ended_ms, behind = there_ms < begun_ms;
    uint64_t const skew_ms = ahead ? there_ms - ended_ms : behind ? begun_ms - there_ms : 0;
    enum finding const finding = skew_ms > SKEW_FAIL_MS   ? FINDING_FAIL
                                 : skew_ms > SKEW_WARN_MS ? FINDING_WARN
                                                          : FINDING_OK;
    report_add(report, check, finding,
               finding == FINDING_OK ? NULL
                                     : "synchronise the clocks of all machines (chrony, systemd-timesyncd)",
               "the clock of %s is %" PRIu64 " ms %s this machine's", whose, skew_ms,
               ahead    ? "ahead of"
               : behind ? "behind"
                        : "away from");
}

int report_end(struct doctor_report *report)
{
    thole_error error = {.status = THOLE_OK};
    int const code = listing_end(&report->listing, THOLE_OK, &error, "");
    if (!cli_is_json(report->cli))
        cli_note(report->cli, "%u OK, %u WARN, %u FAIL, %u SKIP", report->counts[FINDING_OK],
                 report->counts[FINDING_WARN], report->counts[FINDING_FAIL], report->counts[FINDING_SKIP]);
    if (code != EXIT_DONE || report->counts[FINDING_FAIL] == 0)
        return code;
    return report->file_lacks ? EXIT_NOT_FOUND : EXIT_UNHEALTHY;
}
