#ifndef THOLE_CAPTURED_H
#define THOLE_CAPTURED_H

/* Runs @p f and returns what it wrote to stdout (STDOUT_FILENO) or stderr, terminated with a NUL; malloc. */
char *captured(int fd, void (*f)(void *arg), void *arg);
#endif
