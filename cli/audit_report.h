/* The output of `thole audit verify`: findings as they come, the checked parts, and the progress on a
 * terminal. */
#ifndef THOLE_AUDIT_REPORT_H
#define THOLE_AUDIT_REPORT_H
#include "audit.h"
#include "command.h"

struct audit_checked; /* a log that was checked */
struct audit_report {
    const struct cli *cli;
    struct json json;
    struct audit *audit;     /* of the log that is being checked */
    const struct seal *seal; /* NULL: no key is given */
    uint32_t partition;
    thole_slice instance;
    uint64_t records, findings, begun_ms, shown_ms;
    size_t logs; /* number of logs to check; 0: not known */
    size_t kept; /* checkpoints of --dir that were compared */
    /* Records in signed checkpoints of the file, by its histories; NULL: it is not known. Borrowed. */
    const uint64_t *in_file;
    size_t in_file_len;
    struct audit_checked *checked;
    size_t checked_len, checked_cap;
    thole_slice *redactions; /* sections, allocated: -o json prints them after the findings */
    size_t redactions_len, redactions_cap;
    bool tty;
};
void audit_report_init(struct audit_report *report, const struct cli *cli);
void audit_report_begin(struct audit_report *report, const struct audit_options *options);
void audit_report_finding(struct audit_report *report, const struct audit_finding *finding);
void audit_report_found(void *report, const struct audit_finding *finding); /* audit_report_finding() for
                                                                               audit_options */
/* A note in a file about an erased payload; @p json: the section. */
void audit_report_redaction(struct audit_report *report, thole_slice json);
void audit_report_progress(struct audit_report *report);      /* a record was taken */
bool audit_report_stopped(const struct audit_report *report); /* the reader of stdout has gone away */
/* Of a log; @p whole: all of it was read. */
void audit_report_end(struct audit_report *report, bool whole);
/* The exit code. Releases what the report has. */
int audit_report_finish(struct audit_report *report);
#endif
