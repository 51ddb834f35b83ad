/* The findings of `thole doctor`: a line for each check, and the exit code. */
#ifndef THOLE_DOCTOR_REPORT_H
#define THOLE_DOCTOR_REPORT_H
#include "listing.h"

enum finding { FINDING_OK, FINDING_WARN, FINDING_FAIL, FINDING_SKIP };

enum { FINDINGS = FINDING_SKIP + 1, SEEN_BYTES_MAX = 1024 };

struct doctor_report {
    const struct cli *cli;
    struct listing listing;
    unsigned counts[FINDINGS];
    bool file_lacks; /* one of the options cannot be read */
};

void report_begin(struct doctor_report *report, const struct cli *cli);
/* @p todo NULL: nothing. */
void report_add(struct doctor_report *report, const char *check, enum finding finding, const char *todo,
                const char *fmt, ...) THOLE_PRINTF(5, 6);
/* A check that could not be made is FAIL with the error's text. A request that the NATS server has denied is
 * one that @p role may send. */
void report_error(struct doctor_report *report, const char *check, const char *role, const char *todo,
                  const thole_error *error);
/* Two clocks, and how long the answer took. */
void report_clock(struct doctor_report *report, const char *check, const char *whose, uint64_t there_ms,
                  uint64_t begun_ms, uint64_t ended_ms);
/* Ends the output; returns the exit code. */
int report_end(struct doctor_report *report);
#endif
