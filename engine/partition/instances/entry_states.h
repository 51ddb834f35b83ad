/* Inside of the instances room: the states of an entry, and which may follow which. docs/architecture.md
 * shows the table. */
#ifndef THOLE_ENTRY_STATES_H
#define THOLE_ENTRY_STATES_H
#include <stdbool.h>

/* lint.state_tables draws these lines in docs/architecture.md: one state a line, with what it means. */
enum entry_state {
    ENTRY_LOADING,    /* its history is being read */
    ENTRY_TO_LOAD,    /* its history is read again as soon as all of its records are committed */
    ENTRY_RECALLED,   /* has ended; its history is read again to answer queries */
    ENTRY_ABSENT,     /* there is no such instance */
    ENTRY_EARLY,      /* only events that came before the instance: execution 0 */
    ENTRY_LIVE,       /* an instance with its code, parked */
    ENTRY_BLOCKED,    /* its code cannot run: an instance without code takes what is received */
    ENTRY_UNREADABLE, /* even an instance without code cannot: what is received is recorded unchecked */
    ENTRY_CONTINUED,  /* its execution has ended with continue-as-new: the next one begins */
    ENTRY_ENDED,      /* the outcome is remembered, without an instance */
};

bool entry_may_follow(enum entry_state from, enum entry_state to);

/* The payload that an entry has only in some states: see struct entry. */
enum entry_payload {
    PAYLOAD_NONE,
    PAYLOAD_LOADING,  /* LOADING, TO_LOAD */
    PAYLOAD_EARLY,    /* EARLY */
    PAYLOAD_INSTANCE, /* LIVE, BLOCKED, CONTINUED */
};
enum entry_payload entry_payload_of(enum entry_state state);
/* LOADING, TO_LOAD, RECALLED: what is received waits until the history is there. */
bool entry_waits_for_history(enum entry_state state);
/* ABSENT, ENDED: cheap and many. They have a list of their own so that they do not displace others.
 */
bool entry_is_over(enum entry_state state);
#endif
