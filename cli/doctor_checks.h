/* What `thole doctor` looks at. */
#ifndef THOLE_DOCTOR_CHECKS_H
#define THOLE_DOCTOR_CHECKS_H
#include "doctor_report.h"

/* The server, the namespace and who is there. */
void doctor_nats(struct doctor_report *report);
void doctor_postgres(struct doctor_report *report);
#endif
