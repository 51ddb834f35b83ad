#include "terminal.h"
#include "text.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { LINES_DEFAULT = 24, SCREEN_LINE_BYTES_MAX = 512 };

bool terminal_there(void)
{
    const char *term = getenv("TERM");
    return isatty(STDOUT_FILENO) == 1 && (term == NULL || strcmp(term, "dumb") != 0);
}

static bool terminal_coloured(void)
{
    const char *no = getenv("NO_COLOR");
    return terminal_there() && (no == NULL || no[0] == '\0');
}

const char *tone_begin(enum tone tone)
{
    static const char *const begins[] = {[TONE_PLAIN] = "",
                                         [TONE_GOOD] = "\033[32m",
                                         [TONE_WARN] = "\033[33m",
                                         [TONE_BAD] = "\033[31m",
                                         [TONE_QUIET] = "\033[2m"};
    return terminal_coloured() ? begins[tone] : "";
}

const char *tone_end(enum tone tone)
{
    return tone != TONE_PLAIN && terminal_coloured() ? "\033[0m" : "";
}

enum tone tone_of_status(thole_instance_status status)
{
    switch (status) {
    case THOLE_INSTANCE_COMPLETED: return TONE_GOOD;
    case THOLE_INSTANCE_FAILED:
    case THOLE_INSTANCE_STUCK: return TONE_BAD;
    case THOLE_INSTANCE_CANCELLED:
    case THOLE_INSTANCE_TERMINATED:
    case THOLE_INSTANCE_PAUSED: return TONE_WARN;
    default: return TONE_PLAIN;
    }
}

enum tone tone_of_event(const char *kind)
{
    static const struct {
        const char *part;
        enum tone tone;
    } tones[] = {{"Failed", TONE_BAD},     {"Quarantined", TONE_BAD}, {"Cancel", TONE_WARN},
                 {"Terminate", TONE_WARN}, {"Completed", TONE_GOOD},  {"Started", TONE_PLAIN}};
    for (size_t i = 0; i < sizeof tones / sizeof tones[0]; i++)
        if (strstr(kind, tones[i].part) != NULL)
            return tones[i].tone;
    return TONE_PLAIN;
}

unsigned terminal_lines(void)
{
    struct winsize size;
    return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 0 ? size.ws_row : LINES_DEFAULT;
}

unsigned terminal_columns(void)
{
    struct winsize size;
    return terminal_there() && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

void screen_begin(void)
{
    if (terminal_there())
        (void)fputs("\033[H\033[J\033[?7l", stdout); /* top left, erase, no wrap */
}

void screen_line(enum tone tone, const char *fmt, ...)
{
    struct buf shown;
    char text[SCREEN_LINE_BYTES_MAX];
    unsigned const columns = terminal_columns();
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    buf_init(&shown, sizeof text * 4);
    text_fit(&shown, thole_slice_from(text), columns == 0 ? sizeof text : columns);
    (void)printf("%s%s%s\n", tone_begin(tone), buf_cstr(&shown), tone_end(tone));
    buf_release(&shown);
}

void screen_end(void)
{
    if (terminal_there())
        (void)fputs("\033[?7h", stdout);
    (void)fflush(stdout);
}
