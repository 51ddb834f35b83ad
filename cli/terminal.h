/* Colours, and a screen that is drawn again and again: only where stdout is a terminal. */
#ifndef THOLE_TERMINAL_H
#define THOLE_TERMINAL_H
#include "command.h"

enum tone { TONE_PLAIN, TONE_GOOD, TONE_WARN, TONE_BAD, TONE_QUIET };

/* Sequences that begin and end a colour. Empty where stdout is no terminal, TERM is dumb, or NO_COLOR is set
 * and not empty (https://no-color.org). */
const char *tone_begin(enum tone tone);
const char *tone_end(enum tone tone);
enum tone tone_of_status(thole_instance_status status);
/* Of an event's kind, such as ActivityFailed. */
enum tone tone_of_event(const char *kind);

bool terminal_there(void);
/* Lines that it has; 24 where that is not known. */
unsigned terminal_lines(void);
/* Characters in a line of it; 0 without a terminal, and where that is not known. */
unsigned terminal_columns(void);
/* Begins to draw over the present contents; lines are cut at the right edge until screen_end(). Nothing
 * without a terminal. */
void screen_begin(void);
void screen_end(void);
/* A line that fits the terminal: what is cut ends with an ellipsis. */
void screen_line(enum tone tone, const char *fmt, ...) THOLE_PRINTF(2, 3);
#endif
