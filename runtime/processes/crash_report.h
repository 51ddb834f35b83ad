/* Stores an engine's crash for the next owner of the partition, and logs it. */
#ifndef THOLE_CRASH_REPORT_H
#define THOLE_CRASH_REPORT_H
#include "host_options.h"

struct crash_page;
/* In a process of its own with the engine's image. @p status: of waitpid(); 0 while the engine still waits
 * for the report. Returns 0 when everything is stored. */
int crash_report(const struct host_options *options, struct crash_page *page, int status);
#endif
