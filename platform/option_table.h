/*
 * Command-line options as a table: one row says the flag, the environment variable, the default, the unit and
 * the sentence of --help, and where the value goes. Flags win over the environment, which wins over defaults.
 * Every bad value becomes one sentence (THOLE_INVALID). Uses getopt_long: one thread at a time.
 */
#ifndef THOLE_OPTION_TABLE_H
#define THOLE_OPTION_TABLE_H
#include "buf.h"
#include <stddef.h>

enum option_kind {
    OPTION_TEXT,     /* const char *, borrowed from argv, the environment or the table */
    OPTION_NAME,     /* like OPTION_TEXT, checked with name_check() */
    OPTION_DURATION, /* uint64_t milliseconds */
    OPTION_SIZE,     /* uint64_t bytes */
    OPTION_NUMBER,   /* uint32_t or uint64_t */
    OPTION_CHOICE,   /* int, or bool for two choices: index into choices */
    OPTION_CHOICES,  /* uint32_t or uint64_t: bit i for each of choices, "a,b", given once or several times */
    OPTION_SWITCH,   /* bool, no value */
};

struct option_row {
    const char *flag; /* without the dashes */
    char letter;      /* short form; 0 = none */
    enum option_kind kind;
    bool hidden;                /* works, but --help does not show it */
    const char *env;            /* NULL = none */
    const char *unit;           /* shown after the flag: "URL", "DURATION" */
    const char *fallback;       /* read like a given value; NULL leaves the field zeroed */
    const char *shown;          /* the default in words, when the fallback does not say it */
    const char *help;           /* one sentence */
    const char *const *choices; /* NULL-terminated */
    uint64_t min, max;          /* of numbers, durations and sizes; max 0 = no limit */
    /* Of a text: whether there is a password in it. It is then refused in a command line, and `instead` says
     * where it belongs. */
    bool (*is_secret)(const char *text);
    const char *instead;
    unsigned readers; /* of a program with several roles: a bit for each that reads it; 0: as its set says */
    size_t offset, width; /* see OPTION_FIELD */
};
#define OPTION_FIELD(type, member) .offset = offsetof(type, member), .width = sizeof(((type *)0)->member)

enum { OPTION_ROWS_MAX = 128, OPTION_TABLES_MAX = 5 }; /* rows: of all tables of a program */

/* Of each row, in the order of all rows of all sets: whether it stands in a command line. */
struct option_given {
    bool row[OPTION_ROWS_MAX];
};

/* A table and the struct that its values go into. */
struct option_set {
    const struct option_row *rows;
    size_t len;
    void *target;
    unsigned readers; /* of rows that say nothing themselves; 0: each role */
};

/* Whether the option is a setting: it may stand in the environment, and in a file (option_file.h). */
bool option_in_file(const struct option_row *row);
/* Reads @p text as the row's value; @p origin stands in front of the error text. @p text is borrowed. */
THOLE_NODISCARD thole_status option_set_from(const struct option_row *row, void *target, const char *origin,
                                             const char *text, thole_error *reterr);
/* Fills every target with defaults and what the environment says. */
THOLE_NODISCARD thole_status options_defaults(const struct option_set *sets, size_t n, thole_error *reterr);
/*
 * Reads flags from @p argv (its first element is skipped). Without @p stop, options may stand anywhere and
 * argv is reordered so that what is not an option comes last; with it, reading ends at the first such word.
 * "--" ends it always. *ret_first: index of the first word that is left. ret_given may be NULL.
 */
THOLE_NODISCARD thole_status options_read(const struct option_set *sets, size_t n, bool stop, int argc,
                                          char **argv, int *ret_first, struct option_given *ret_given,
                                          thole_error *reterr);
/* THOLE_INVALID when there is a password in a flag of a command line, which everybody on the machine can see.
 * @p given: as options_read() left it. */
THOLE_NODISCARD thole_status options_refuse_secrets(const struct option_set *sets, size_t n,
                                                    const struct option_given *given, thole_error *reterr);
/* The first row with a flag in a command line that none of @p readers reads; NULL: there is none.
 * @p given: as options_read() left it. *ret_readers: who does. */
const struct option_row *options_unread(const struct option_set *sets, size_t n,
                                        const struct option_given *given, unsigned readers,
                                        unsigned *ret_readers);
/* Appends the rows that one of @p readers reads as --help shows them; 0: all. */
void options_help(const struct option_set *set, unsigned readers, struct buf *to);
#endif
