/* Events since the last check, as text: a test's world adds to it. */
#ifndef THOLE_SAID_H
#define THOLE_SAID_H
#include "thole_cunit.h"
#include <stdarg.h>

struct said {
    char text[1024];
};

__attribute__((format(printf, 2, 3))) static inline void said_add(struct said *said, const char *format, ...)
{
    size_t const at = strlen(said->text);
    va_list args;
    va_start(args, format);
    int const n = vsnprintf(said->text + at, sizeof said->text - at, format, args);
    va_end(args);
    CU_ASSERT_FATAL(n >= 0 && at + (size_t)n < sizeof said->text);
}

static inline void said_clear(struct said *said)
{
    said->text[0] = '\0';
}

/* Checks that the text is exactly this. */
static inline void said_check(struct said *said, const char *row, const char *want)
{
    CHECK_STR(row, said->text, want);
    said_clear(said);
}
#endif
