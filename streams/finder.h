/*
 * Finds messages of one stream, several at a time: a round of questions is under way at once, so that it
 * takes about one round trip. For threads that may wait; one thread at a time. The leader answers.
 */
#ifndef THOLE_FINDER_H
#define THOLE_FINDER_H
#include "connection.h"

enum { FINDER_QUESTIONS_MAX = 64 }; /* of a round */

struct finder_question {
    thole_slice subject; /* with wildcards; valid during the call */
    uint64_t from;       /* the first message from there on; 0: the last one of all */
};
struct finder_answer {
    uint64_t sequence;         /* 0: there is none */
    thole_slice subject, body; /* valid until the next round, or until the finder is closed */
};

struct finder;
/* @p connection and @p stream must live longer than the finder. THOLE_UNAVAILABLE: not connected. */
THOLE_NODISCARD thole_status finder_open(struct connection *connection, const char *stream,
                                         struct finder **ret, thole_error *reterr);
void finder_close(struct finder *finder); /* NULL-safe */
/* Asks all @p n questions, 1 to FINDER_QUESTIONS_MAX, and waits for all answers; ret[i] is that of
 * questions[i]. THOLE_UNAVAILABLE: one was not answered, ask again. THOLE_LIMIT: a subject is too long. */
THOLE_NODISCARD thole_status finder_ask(struct finder *finder, const struct finder_question *questions,
                                        size_t n, struct finder_answer *ret, thole_error *reterr);
#endif
