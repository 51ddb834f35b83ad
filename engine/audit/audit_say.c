/* The findings, in words. */
#include "audit_state.h"
#include <stdarg.h>
#include <stdio.h>

enum { TEXT_BYTES = 512 };

const char *audit_fault_name(enum audit_fault fault)
{
    switch (fault) {
    case AUDIT_UNREADABLE: return "unreadable";
    case AUDIT_CHANGED: return "changed";
    case AUDIT_MISSING: return "missing";
    case AUDIT_ADDED: return "added";
    case AUDIT_REORDERED: return "reordered";
    case AUDIT_TRUNCATED: return "truncated";
    case AUDIT_CHECKPOINT: return "checkpoint";
    case AUDIT_REPLAYED: return "replayed";
    }
    return "unknown";
}

void audit_say(struct audit *audit, enum audit_fault fault, uint64_t sequence, const struct audit_scan *of,
               const char *format, ...)
{
    char text[TEXT_BYTES];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    struct audit_finding finding = {.fault = fault, .sequence = sequence, .text = text};
    if (of != NULL) {
        finding.instance = of->instance;
        finding.execution = of->execution;
    }
    audit->summary.findings++;
    audit->options.found(audit->options.arg, &finding);
}
