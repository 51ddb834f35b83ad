#include "standstill.h"
#include <string.h>

struct standstill standstill_of(enum blocked_kind kind)
{
    switch (kind) {
    case BLOCKED_NOT: return (struct standstill){THOLE_INSTANCE_RUNNING, "runs", NULL};
    case BLOCKED_PAUSED:
        return (struct standstill){THOLE_INSTANCE_PAUSED, "is paused", "thole resume ID lets it go on"};
    case BLOCKED_NO_CODE:
    case BLOCKED_NOT_STARTED:
        return (struct standstill){
            THOLE_INSTANCE_WAITING, "waits for code",
            "an engine that has it lets it go on, thole terminate ID ends it without its code"};
    case BLOCKED_NONDETERMINISM:
        return (struct standstill){
            THOLE_INSTANCE_STUCK, "is Stuck",
            "it goes on with the code that its history is from, thole terminate ID ends it without its "
            "code"};
    case BLOCKED_DAMAGED:
        return (struct standstill){THOLE_INSTANCE_STUCK, "is Stuck",
                                   "thole audit verify ID names the record; restore it from a "
                                   "backup, or thole terminate ID ends it without its code"};
    case BLOCKED_TOO_NEW:
        return (struct standstill){THOLE_INSTANCE_STUCK, "is Stuck",
                                   "an engine of the newer version of thole lets it go on"};
    case BLOCKED_LIMIT:
    case BLOCKED_CRASHED: break;
    }
    return (struct standstill){THOLE_INSTANCE_STUCK, "is Stuck",
                               "thole retry ID tries it again when the cause is mended, "
                               "thole terminate ID ends it without its code"};
}

enum blocked_kind blocked_kind_of(const char *name)
{
    for (int kind = BLOCKED_NO_CODE; name != NULL && kind < BLOCKED_KINDS; kind++)
        if (strcmp(name, blocked_kind_name((enum blocked_kind)kind)) == 0)
            return (enum blocked_kind)kind;
    return BLOCKED_NOT;
}
