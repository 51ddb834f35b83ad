#include "binder_lines.h"

const struct log_kind binder_lines[BINDER_LINES] = {
    [BINDER_LINE_REJECTED] = {LOG_LEVEL_WARN, "binder", "messages_rejected",
                              "messages were rejected; thole rejected lists them", 5},
    [BINDER_LINE_CHANGED] = {LOG_LEVEL_INFO, "binder", "rules_changed",
                             "rules began or went; thole bind list has them", 20},
    [BINDER_LINE_NOT_SERVED] = {LOG_LEVEL_WARN, "binder", "rules_not_served",
                                "rules were not served; thole bind list says why", 5},
};
