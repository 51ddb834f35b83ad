/* libpq, played: its calls are written to a transcript, and answers come from a script. Time passes only
 * while a thread waits. */
#ifndef WRAP_PLAYED_LIBPQ_H
#define WRAP_PLAYED_LIBPQ_H
#include "postgres_call.h"
#include <stdio.h>

struct played_libpq {
    FILE *to; /* NULL: nothing is written */
    /* Of the statements still to be sent, with ";" between them: rows with "/" between them, of cells with
     * spaces between them; *N = N rows of numbers; !CODE = an error; ? = never; ~ = of another shape; =TAG =
     * done; last-N = a number of a migration. Further ones: no rows. */
    const char *answers;
    const char *connects; /* of connections: ok, late, refused, a message of libpq's; further ones: ok */
    const char *fail_how; /* "lost", a SQLSTATE, or "shape" */
    unsigned fail_at;     /* the call of libpq that fails so: 1 is the first; 0: none */
    unsigned calls;       /* calls that could fail */
    char failed[48];      /* the call that did */
    uint64_t now_ms;
    int version;                         /* of the server */
    const char *encoding;                /* of its database */
    int connections, results, converted; /* which libpq holds for the product */
    bool needs_password;
};
extern struct played_libpq played;

void played_libpq_begin(void);
#endif
