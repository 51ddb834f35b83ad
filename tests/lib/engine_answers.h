/*
 * The answers of an engine to the client of a start with an event, by the state of the instance.
 * unit.partition_answers compares the machine with this table, and the script that plays an engine in tests
 * of the client (engine_script.h) answers by it.
 */
#ifndef THOLE_ENGINE_ANSWERS_H
#define THOLE_ENGINE_ANSWERS_H

enum engine_answer_case {
    ANSWER_TO_NEW,   /* there is none: it is started */
    ANSWER_TO_LIVE,  /* takes the event */
    ANSWER_TO_AGAIN, /* has taken this very event before */
    ANSWER_TO_ENDED, /* has ended, started by another request */
    ANSWER_TO_FULL,  /* runs, and keeps no more events */
    ANSWER_CASES
};

struct engine_answer {
    const char *name, *kind; /* of the live event */
    const char *code;        /* Thole-Code; NULL: none */
};

static const struct engine_answer engine_answers[ANSWER_CASES] = {
    [ANSWER_TO_NEW] = {"new", "started", 0},
    [ANSWER_TO_LIVE] = {"live", "started", 0},
    [ANSWER_TO_AGAIN] = {"again", "started", 0},
    [ANSWER_TO_ENDED] = {"ended", "rejected", 0},
    [ANSWER_TO_FULL] = {"full", "rejected", "too_many"},
};
#endif
