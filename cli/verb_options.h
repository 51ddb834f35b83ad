/* Options of verbs: what their tables share, and those that do not stand in commands.c. */
#ifndef THOLE_VERB_OPTIONS_H
#define THOLE_VERB_OPTIONS_H
#include "command.h"
#include "shared_options.h"

#define FIELD(member) OPTION_FIELD(struct cli_options, member)
#define TEXT_ROW(name, what, member, text)                                                                   \
    {                                                                                                        \
        .flag = name, .kind = OPTION_TEXT, .unit = what, FIELD(member), .help = text                         \
    }
#define KEY_ROW(text)                                                                                        \
    {                                                                                                        \
        .flag = "key", .kind = OPTION_TEXT, .unit = "KEY,...", .shown = "none", FIELD(key), .help = text     \
    }
#define EVERY_ROW(text)                                                                                      \
    {                                                                                                        \
        .flag = "every", .kind = OPTION_DURATION, .unit = "DURATION", .fallback = "0s", .shown = "once",     \
        .max = 7 * 24 * 3600 * UINT64_C(1000), FIELD(every_ms), .help = text                                 \
    }
#define INPUT_ROW                                                                                            \
    {                                                                                                        \
        .flag = "input", .letter = 'i', .kind = OPTION_TEXT, .unit = "TEXT|@FILE|-", .shown = "empty",       \
        FIELD(input), .help = "input: text, the bytes of a file, or of stdin"                                \
    }
#define PAYLOAD_ROW                                                                                          \
    OPTION_ROW_PAYLOAD_MAX(FIELD(payload_max), .fallback = "262144",                                         \
                           .help = "largest input; the same as the engines'")

#define LIMIT_ROW(normally, most, text)                                                                      \
    {                                                                                                        \
        .flag = "limit", .kind = OPTION_NUMBER, .unit = "N", .fallback = normally, .min = 1, .max = most,    \
        FIELD(limit), .help = text                                                                           \
    }
#define NEXT_ROW                                                                                             \
    {                                                                                                        \
        .flag = "next", .kind = OPTION_TEXT, .unit = "TOKEN", FIELD(next),                                   \
        .help = "the next page: the token that the page before ended with"                                   \
    }

extern const char *const cli_statuses[]; /* by thole_instance_status, from 0 */

enum { GLOBAL_ROWS = 18, DOCTOR_ROWS = 11 };
extern const struct option_row global_rows[GLOBAL_ROWS];    /* global_options.c */
extern const struct option_row doctor_options[DOCTOR_ROWS]; /* doctor_options.c */
enum { ARCHIVE_ROWS = 18, AUDIT_ROWS = 9, HOLD_ROWS = 1, BIND_ROWS = 13, QUEUE_ROWS = 6, CONTEXT_ROWS = 1 };
extern const struct option_row archive_rows[ARCHIVE_ROWS]; /* archive_options.c */
extern const struct option_row audit_rows[AUDIT_ROWS];     /* archive_options.c */
extern const struct option_row hold_rows[HOLD_ROWS];       /* archive_options.c */
extern const struct option_row bind_rows[BIND_ROWS];       /* bind_options.c */
extern const struct option_row queue_rows[QUEUE_ROWS];     /* queue_command.c */
extern const struct option_row context_rows[CONTEXT_ROWS]; /* context_command.c */
#endif
