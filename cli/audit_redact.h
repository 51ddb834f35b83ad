/* `thole audit redact`, and what a file says of redactions. */
#ifndef THOLE_AUDIT_REDACT_H
#define THOLE_AUDIT_REDACT_H
#include "command.h"

int audit_redact(struct cli *cli);
#endif
