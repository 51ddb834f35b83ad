/* A browser as far as the console's interface needs one: a connection for each request, and one that stays.
 */
#ifndef THOLE_BROWSER_H
#define THOLE_BROWSER_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { BROWSER_BYTES_MAX = 1024 * 1024 };

struct browser {
    char host[64]; /* "127.0.0.1:8233" */
    int code;      /* of the last answer; 0: there was none */
    char head[8192];
    char body[BROWSER_BYTES_MAX];
    size_t body_len;
};

/* @p headers: lines, each with its end; "" for none. @p body: NULL for none. */
void browser_ask(struct browser *browser, const char *method, const char *path, const char *headers,
                 const char *body);
bool browser_said(const struct browser *browser, const char *text);

/* Sends the begin of a request. -1: there is no connection. */
int browser_begin(const struct browser *browser, const char *text);
/* Opens a stream. -1: not. */
int browser_listen(const struct browser *browser, const char *path, const char *headers);
/* Appends received bytes to @p to until that has @p text. False: not within @p wait_ms, or the stream has
 * ended. */
bool browser_heard(int fd, char *to, size_t cap, const char *text, uint64_t wait_ms);
#endif
