/*
 * All outputs of a machine: each output with all of its fields, as a hash and, for readers, as text. The hash
 * of each seed of a random world is kept in tests/told/NAME: "SEED HASH" lines, written by a build whose
 * behaviour was right. A change that is meant to change no behaviour changes no line. After any other change
 * the test writes the lines again, with THOLE_TOLD=write in its environment. The changed seeds show where to
 * look, and the texts of both builds (THOLE_TOLD=SEED; sim --told SEED), compared by diff, show the change.
 */
#ifndef THOLE_TOLD_H
#define THOLE_TOLD_H
#include "event.h"
#include "partition_io.h"
#include "worker.h"
#include <stdio.h>

struct told {
    uint64_t hash;
    FILE *to; /* the text goes there; NULL: it is not written */
};

void told_begin(struct told *told, FILE *to);
void told_line(struct told *told, const char *what);
void told_number(struct told *told, const char *name, uint64_t n);
void told_bytes(struct told *told, const char *name, thole_slice bytes);
void told_event(struct told *told, const struct event *event);
void told_partition(struct told *told, const struct partition_out *out);
void told_worker(struct told *told, const struct worker_out *out);
void told_counters(struct told *told, const struct worker_counters *counters);

/* The lines of tests/told/NAME, from the first on. */
struct told_book {
    FILE *file;
    const char *name;
    bool writes;
    unsigned wrong;
};
/* For told_begin(): with THOLE_TOLD=SEED that seed's text is printed. */
FILE *told_reader(uint64_t seed);
/* False: it cannot be opened. */
bool told_book_open(struct told_book *book, const char *name);
/* The next seed and its hash. What is not the next line is said on stderr, of the first few. */
void told_book_check(struct told_book *book, uint64_t seed, uint64_t hash);
/* True: each line was as expected. */
bool told_book_close(struct told_book *book);
#endif
