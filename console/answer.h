/* The answer to a request. */
#ifndef THOLE_ANSWER_H
#define THOLE_ANSWER_H
#include "buf.h"
#include "json.h"

enum { ANSWER_BYTES_MAX = 16 * 1024 * 1024 };

struct answer {
    unsigned code; /* of HTTP */
    const char *type;
    struct buf body;
    bool download; /* bytes that a browser saves and never shows */
};

void answer_init(struct answer *answer);
void answer_release(struct answer *answer);
/* Begins a document that says which it is. */
void answer_document(struct answer *answer, struct json *json, const char *schema);
/* Replaces the answer by a problem (RFC 9457). @p name: for programs. */
void answer_problem(struct answer *answer, unsigned code, const char *name, const char *text);
/* Replaces the answer by a problem made from a status; NULL text: the status's own. */
void answer_error(struct answer *answer, const thole_error *error);
#endif
