/* Inside of the instances room: the states of an entry, and which may follow which. docs/architecture.md
 * shows the table. */
#ifndef THOLE_ENTRY_STATES_H
#define THOLE_ENTRY_STATES_H
#include <stdbool.h>

/* lint.state_tables draws these lines in docs/architecture.md: one state a line, with what it means. */
enum entry_state {
    ENTRY_LOADING,    /* the history is being read */
    ENTRY_TO_LOAD,    /* the history is read again as soon as all records are committed */
    ENTRY_RECALLED,   /* has ended; its history is read again to answer queries */
    ENTRY_ABSENT,     /* there is no such instance */
    ENTRY_EARLY,      /* only events that came before the instance: execution 0 */
    ENTRY_LIVE,       /* an instance with its code, parked */
    ENTRY_BLOCKED,    /* the code cannot run: an instance without code takes received events */
    ENTRY_UNREADABLE, /* even an instance without code cannot: what is received is recorded unchecked */
    ENTRY_CONTINUED,  /* the execution has ended with continue-as-new: the next one begins */
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
/* LOADING, TO_LOAD, RECALLED: received messages wait for the history. */
bool entry_waits_for_history(enum entry_state state);
/* ABSENT, ENDED: cheap and many. They have a list of their own so that they do not displace others.
 */
bool entry_is_over(enum entry_state state);
#endif
