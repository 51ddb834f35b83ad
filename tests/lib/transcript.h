/* Transcripts: a file with lines that are played ("$ …"), each followed by the result. A test plays the lines
 * and compares the whole. With THOLE_WRITE_TRANSCRIPT=1 in the environment it writes the file again instead,
 * to be read and committed. Lines that begin with # are kept. */
#ifndef THOLE_TRANSCRIPT_H
#define THOLE_TRANSCRIPT_H
#include <stdio.h>

typedef void transcript_line_fn(const char *line, FILE *to);

void transcript_check(const char *path, transcript_line_fn *play);
/* Played again and again, it leaves nothing on the heap: a leak would grow each time. */
void transcript_check_heap(const char *path, transcript_line_fn *play);
#endif
