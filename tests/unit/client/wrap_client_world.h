/* The streams and subjects that a client uses, played by one thread: where the client sleeps, what is due
 * happens. */
#ifndef THOLE_WRAP_CLIENT_WORLD_H
#define THOLE_WRAP_CLIENT_WORLD_H
#include "client_internal.h"
#include "message.h"
#include <stdio.h>

enum { RECORDS_MAX = 64, STEPS_MAX = 16, FLIGHT_MAX = 8, LISTENED_MAX = 4 };
#define OWN_REQUEST                                                                                          \
    "5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a" /* of what the client sends: its random bytes are 5a                  \
                                        */

struct played_record {
    uint64_t sequence;
    char subject[200];
    struct buf body;
};

struct played_client {
    struct thole_client client;
    FILE *said; /* log of the client's calls */
    uint64_t now_ms;
    struct played_record records[RECORDS_MAX];
    size_t records_len;
    uint64_t last;                /* sequence */
    const char *steps[STEPS_MAX]; /* events while it sleeps, in order: "100 stored", at 100 ms or later */
    size_t steps_len, step;
    void (*happen)(const char *what);
    const char *publishes, *looks, *reads; /* how they end, one word each: "unknown busy", later ones: well */
    struct {
        uint64_t token;
        char *get; /* a look: the subject; NULL: a publish */
    } flight[FLIGHT_MAX];
    size_t flight_len;
    struct {
        char subject[200];
        delivery_fn *each;
        void *arg;
    } listened[LISTENED_MAX]; /* subject empty: not taken */
    int listens, sleeps;
};
extern struct played_client play;

void played_client_begin(FILE *said);
void played_client_end(void);
/* Answers the oldest look or publish: "well", "unknown", "busy", "refused", "failed". */
void played_answer(const char *how);
bool played_matches(const char *pattern, const char *subject);
/* The next of the given words; "well" after the last one. */
const char *played_word(const char **words, char room[32]);
#endif
